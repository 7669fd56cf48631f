/* trial/check.h - the promises of fathom/op.h, one trial after the other (fathom/op_check.h).
 *
 * Everything is compared with the bytes that the same kernel gives when it takes all at once. The
 * first promise that is broken ends the check with FTH_E_GRAPH_PROMISE and words: which axis was
 * cut where, which element differs, what was expected and found.
 */
#ifndef FTH_TRIAL_CHECK_H
#define FTH_TRIAL_CHECK_H

#include "trial/pieces.h"

/* Whole, twice, over different garbage: `base->out` is what the kernel makes. */
fth_status fth__check_whole(fth__trial *base, fth_err *err);
/* The kernel in pieces, `cuts` times along each axis and `cuts` times along all of them, against
 * base->out; outputs nobody wants; teams; in place; pieces at once. */
fth_status fth__check_pieces(fth__trial *base, int cuts, fth_err *err);
/* Parts of accumulated axes, joined as ranks do (fth_join); *joins counts them. */
fth_status fth__check_joins(fth__trial *base, int64_t *joins, fth_err *err);
/* infer, relation, grid and state say the same when asked again. */
fth_status fth__check_said(const fth_node *node, fth_mem *mem, fth_err *err);
/* Its gradient against differences; *worst is the largest error, -1 where there is none. */
fth_status fth__check_gradient(fth_val v, char **in, fth_mem *mem, double tolerance, uint64_t seed,
                               double *worst, fth_err *err);

/* The first byte that differs, in words; FTH_OK when there is none. */
fth_status fth__check_same(const fth__trial *t, char *const *want, char *const *got,
                           const char *when, fth_err *err);
/* Dense room for the outputs; freed by fth__check_free. */
fth_status fth__check_room(fth__trial *t, char **out, fth_err *err);
void fth__check_free(fth_mem *mem, const fth_node *node, char **out);
/* An element as a number, and back. */
double fth__check_get(fth_dtype t, const void *data, int64_t i);
void fth__check_put(fth_dtype t, void *data, int64_t i, double v);

#endif
