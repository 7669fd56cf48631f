/* testing/spatial/analysis.h - the analyses that once asked for 9.88 and 8.23 GiB, as graphs of any
 * size.
 *
 * Numbers come from functions of their position, so sizes cost nothing until something is read;
 * the sources count their reads.
 */
#ifndef FATHOM_TESTING_ANALYSIS_H
#define FATHOM_TESTING_ANALYSIS_H

#include "testing/test.h"

#include <fathom/fathom.h>

typedef struct a_made {
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    double scale;
    bool lower;    /* zero above the diagonal of the last two axes */
    int64_t below; /* > 0: i64 indices below this, not numbers */
    int64_t *reads;
} a_made;

typedef struct analysis {
    fth_graph *g;
    fth_val out[2];
    int64_t factors, cells;
    int64_t reads; /* calls of all sources */
    a_made made[6];
} analysis;

/* Sparse variational Gaussian processes: means and variances [factor cell] of `factors` processes
 * with `inducing` points each. */
void a_svgp(analysis *a, fth_context *ctx, int64_t cells, int64_t inducing, int64_t factors);
/* Local conditioning on `near` neighbours: one near x near system per factor and cell. */
void a_lcgp(analysis *a, fth_context *ctx, int64_t cells, int64_t near, int64_t factors);
void a_free(analysis *a);

/* A sink [factor cell] of f32 that keeps a hash, which does not depend on the order of writes. */
typedef struct a_digest {
    int64_t factors, cells;
    uint64_t hash;
    int64_t elements;
    double sum;
} a_digest;
fth_sink a_digest_sink(a_digest *d, const analysis *a);
/* The plan as JSON into a file of t_temp_dir(); returns its path. */
const char *a_plan_json(const fth_plan *p, const char *name);
/* Let tests/python/plan_simulator.py recompute these plans; fails the case when it disagrees. */
void a_simulate(const char *paths);
/* Bytes that the refusal says would fit; fails the case unless a budget of one byte is refused. */
uint64_t a_smallest(analysis *a, int threads);

#endif
