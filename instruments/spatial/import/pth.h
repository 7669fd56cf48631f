/* pth.h - a model.pth of the public project: a zip with a pickle and raw storages (model 10.10). */
#ifndef SPATIAL_PTH_H
#define SPATIAL_PTH_H

#include "../model/model.h"
#include "pickle.h"

#include <fathom/zip.h>

typedef struct sp_pth {
    fth_mem *mem;
    const char *path;
    fth_zip *zip;
    char root[80]; /* folder of its members */
    void *text;    /* data.pkl */
    sp_pickle *pickle;
} sp_pth;

/* `path` outlives it. On failure nothing is held. */
fth_status sp_pth_open(sp_pth *f, fth_mem *mem, const char *path, fth_err *err);
void sp_pth_close(sp_pth *f); /* an empty one is allowed */
/* Numbers of factors, points and columns, and of the kernel, as the file has them; a note for each
 * that the settings had otherwise. A model of another kind, or of other genes or cells, is refused.
 */
fth_status sp_pth_settings(sp_pth *f, sp_settings *set, sp_notes *notes, fth_err *err);
/* Parameters, and inducing points with their groups, into a model of those settings. */
fth_status sp_pth_fill(sp_pth *f, sp_model *m, fth_err *err);

#endif
