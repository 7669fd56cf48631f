/* ops/loop.h - walking over several arrays at once.
 *
 * A kernel adds one line per axis: how far it goes and how far apart neighbours are in each array
 * it touches. The last axis added turns fastest. An axis an array does not have gets stride 0.
 */
#ifndef FTH_OPS_LOOP_H
#define FTH_OPS_LOOP_H

#include "base/assert.h"

#include <stdbool.h>
#include <stdint.h>

/* Axes of a value and of what a kernel splits them into: three times FTH_MAX_AXES is more than any
 * kernel adds. Four arrays: three operands and a result, or a result and its state. */
enum { FTH__LOOP_AXES = 24, FTH__LOOP_ARRAYS = 4 };

typedef struct fth__loop {
    int n;
    int64_t extent[FTH__LOOP_AXES];
    int64_t index[FTH__LOOP_AXES];
    int64_t stride[FTH__LOOP_AXES][FTH__LOOP_ARRAYS];
    int64_t at[FTH__LOOP_ARRAYS]; /* offset of the current place in each array */
} fth__loop;

static inline void fth__loop_add(fth__loop *l, int64_t extent, int64_t s0, int64_t s1, int64_t s2,
                                 int64_t s3)
{
    FTH_ASSERT(l->n >= 0 && l->n < FTH__LOOP_AXES && extent >= 0);
    l->extent[l->n] = extent;
    l->index[l->n] = 0;
    l->stride[l->n][0] = s0;
    l->stride[l->n][1] = s1;
    l->stride[l->n][2] = s2;
    l->stride[l->n][3] = s3;
    l->n++;
}

/* Go to the first place; false when there is none. */
static inline bool fth__loop_start(fth__loop *l)
{
    bool any = true;
    for (int i = 0; i < l->n; i++) {
        l->index[i] = 0;
        any &= l->extent[i] > 0;
    }
    for (int k = 0; k < FTH__LOOP_ARRAYS; k++) l->at[k] = 0;
    return any;
}

/* Go to the next place; false when the walk is over. */
static inline bool fth__loop_next(fth__loop *l)
{
    for (int i = l->n - 1; i >= 0; i--) {
        const bool wrap = ++l->index[i] == l->extent[i];
        const int64_t step = wrap ? 1 - l->extent[i] : 1;
        for (int k = 0; k < FTH__LOOP_ARRAYS; k++) l->at[k] += step * l->stride[i][k];
        if (!wrap) return true;
        l->index[i] = 0;
    }
    return false;
}

#endif
