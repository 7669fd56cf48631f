/* masks.h - the masks of a capture: images beside its own, whose pixels below half are left out. */
#ifndef SPLAT_IMAGES_MASKS_H
#define SPLAT_IMAGES_MASKS_H

#include "../scene/scene.h"

typedef struct gs_masks {
    char folder[FTH_PATH]; /* "": there is none */
    bool named;            /* those that frames of a transforms.json name are used */
    int64_t views;         /* that have one */
} gs_masks;

/* `name` is a folder beside that of the images: NULL stands for the masks that the capture names,
 * and for "masks" where that is there; "none" for no masks. FTH_E_FILE_OPEN: the named one is not
 * there, or has a mask of no view. */
fth_status gs_masks_open(gs_masks *m, const gs_scene *s, const char *name, fth_err *err);
/* false: this view has none. */
bool gs_masks_find(const gs_masks *m, const gs_scene *s, int64_t view, char path[FTH_PATH]);

#endif
