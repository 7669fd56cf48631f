/* masks.h - the masks of a capture: images beside its own, whose pixels below half are excluded. */
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
 * there, or the folder has a mask of no view; masks whose heads cannot be read are listed. */
fth_status gs_masks_open(gs_masks *m, const gs_scene *s, const char *name, fth_err *err);
/* Whether masks of these views keep pixels: each of them, or one at least. FTH_E_FILE_SHAPE lists
 * those that do not. */
fth_status gs_masks_check(const gs_masks *m, const gs_scene *s, const int64_t *view, int64_t views,
                          bool each, fth_err *err);
/* false: this view has none. */
bool gs_masks_find(const gs_masks *m, const gs_scene *s, int64_t view, char path[FTH_PATH]);

#endif
