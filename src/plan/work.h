/* work.h - what the files that estimate kernels share: work.c and, of kernels along lines,
 * work_lines.c. */
#ifndef FTH_PLAN_WORK_H
#define FTH_PLAN_WORK_H

#include "ops/ops.h"
#include "plan/rates.h"

/* A call on one worker, whose operands are at hand. */
typedef struct fth__plan_work {
    const fth__rates *r;
    const fth_call *call;
    double flops;    /* as the operation counts them */
    uint32_t wanted; /* outputs that somebody reads, a bit for each */
} fth__plan_work;

/* Numbers of 8 bytes; of complex ones each part. */
static inline bool fth__is_wide(fth_dtype t)
{
    return fth_dtype_size(t) >= 8 && t != FTH_C64;
}

/* Elements of a tile of one with these axes. */
static inline double fth__tile_elements(const fth_desc *d, const fth_tile *t)
{
    double n = 1.0;
    for (int i = 0; i < d->n_axes; i++) n *= (double)t->extent[i];
    return n;
}

/* Running sums have a kernel (cpu/scan.c). */
bool fth__has_scan_kernel(const fth__scan_attr *attr);
/* Of the bytes of the table of a gather, those that are read when all of it is done. */
double fth__gather_share(const fth_node *n);
/* Of operations that sort, select, scan or search along lines, and of rows that go to places. */
bool fth__lines_seconds(const fth__plan_work *w, double *seconds);

#endif
