/* state.h - where a training stands, and its checkpoint: all that the next iteration depends on.
 *
 * checkpoints/model.safetensors holds it by name, with every setting that it was made with. No
 * time, path or budget is in it: equal runs give equal bytes.
 */
#ifndef SPLAT_TRAIN_STATE_H
#define SPLAT_TRAIN_STATE_H

#include "../config/settings.h"
#include "../strategy/rows.h"
#include "train.h"

typedef struct gs_state {
    gs_rows rows;
    int64_t iteration;            /* that is done */
    int64_t count[GS_ATTRIBUTES]; /* of Adam's steps */
    double rate;                  /* of the means, of the next iteration */
    double scale;                 /* of the scene */
    int64_t degree;               /* of the spherical harmonics that is used */
    int64_t unseen;               /* iterations on end that saw no Gaussian */
    int64_t losses;               /* bytes of loss.csv */
} gs_state;

/* What a checkpoint was made with. */
typedef struct gs_origin {
    const fth_config *cfg;
    uint64_t data; /* hash of cameras, names and points */
} gs_origin;

fth_status gs_state_save(const gs_state *s, const gs_origin *from, const char *path, fth_err *err);
/* The rows are made with room for `most`. With `from`, FTH_E_STATE tells the first difference;
 * NULL: any will do. */
fth_status gs_state_load(gs_state *s, fth_context *ctx, int64_t most, const gs_origin *from,
                         const char *path, fth_err *err);
void gs_state_free(gs_state *s); /* a cleared one is allowed */

#endif
