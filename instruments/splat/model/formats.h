/* formats.h - what each format of models fills in. */
#ifndef SPLAT_MODEL_FORMATS_H
#define SPLAT_MODEL_FORMATS_H

#include "model.h"

#include <math.h>

typedef struct gs_format_row {
    const char *name, *ending;
    /* By the first bytes of a file, its size and its name. */
    bool (*is)(const uint8_t *head, uint64_t n, uint64_t size, const char *path);
    fth_status (*look)(fth_mem *mem, const char *path, gs_model_info *info, fth_err *err);
    fth_status (*load)(gs_model *m, fth_mem *mem, const char *path, fth_err *err);
    fth_status (*save)(const gs_model *m, const char *path, fth_err *err); /* NULL: only read */
} gs_format_row;
extern const gs_format_row gs_ply_format, gs_dotsplat_format, gs_spz_format, gs_sog_format,
    gs_checkpoint_format;

/* The rows of a .splat, some at a time. */
typedef fth_status gs_put_rows(void *self, int64_t from, int64_t n, const void *rows, fth_err *err);
enum { GS_DOTSPLAT_ROW = 32 };
fth_status gs_dotsplat_write(const gs_model *m, gs_put_rows *put, void *self, fth_err *err);

bool gs_path_ends(const char *path, const char *ending);
bool gs_path_is_meta(const char *path); /* "FOLDER/meta.json": a SOG that is a folder */
static inline float gs_logit(double p)
{
    /* a byte says no more than half a step: 0 and 255 are no infinities */
    const double least = 0.5 / 255;
    const double q = p < least ? least : p > 1 - least ? 1 - least : p;
    return (float)log(q / (1 - q));
}

#endif
