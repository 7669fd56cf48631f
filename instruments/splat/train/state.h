/* state.h - the state of a training and its checkpoint: all that the next iteration depends on.
 *
 * checkpoints/model.safetensors holds it by name, with every setting that it was made with. No
 * time, path or budget is in it: equal runs give equal bytes.
 */
#ifndef SPLAT_TRAIN_STATE_H
#define SPLAT_TRAIN_STATE_H

#include "../strategy/rows.h"
#include "origin.h"

enum { GS_STATE_PARTS = 24, GS_STATE_FROM = 24 };

typedef struct gs_state {
    gs_rows rows;
    int64_t iteration;            /* that is done */
    int64_t count[GS_ATTRIBUTES]; /* of Adam's steps */
    double rate;                  /* of the means, of the next iteration */
    double scale;                 /* of the scene */
    int64_t degree;               /* of the spherical harmonics that is used */
    int64_t unseen;               /* iterations on end that saw no Gaussian */
    int64_t losses;               /* bytes of loss.csv */
    char from[GS_STATE_FROM];     /* hash of the checkpoint that --resume named; "": none */
    /* Tensors of parts that are not always there, by name; others own them. */
    fth_file_tensor part[GS_STATE_PARTS];
    int parts;
} gs_state;

fth_status gs_state_save(const gs_state *s, const gs_origin *from, const char *path, fth_err *err);
/* The rows are made with room for `most`. What differs from `from` is written to `other`; NULL:
 * FTH_E_STATE tells it. */
fth_status gs_state_load(gs_state *s, fth_context *ctx, int64_t most, const gs_origin *from,
                         const char *path, gs_differences *other, fth_err *err);
/* Whether the training of a checkpoint was resumed from the one with this hash. */
bool gs_state_is_from(fth_mem *mem, const char *path, const char *hash);
/* One more tensor that is saved with the state; name and axes live as long. */
void gs_state_add_part(gs_state *s, const char *name, fth_tensor *tensor, const char *axes);
void gs_state_drop_part(gs_state *s, const char *name);
/* Fill those that were added so far. With `all` each must be in the file; else one that is not
 * there stays as it is. */
fth_status gs_state_load_parts(const gs_state *s, fth_mem *mem, bool all, const char *path,
                               fth_err *err);
void gs_state_free(gs_state *s); /* a cleared one is allowed */

#endif
