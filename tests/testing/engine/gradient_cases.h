/* testing/engine/gradient_cases.h - one small program per operation, for the test of gradients.
 *
 * Inputs are f64 or c128 memory that the test moves a little; what must not be moved is fixed.
 */
#ifndef FATHOM_TESTING_GRADIENT_CASES_H
#define FATHOM_TESTING_GRADIENT_CASES_H

#include "testing/test.h"

#include <fathom/fathom.h>

enum { GC_LONG = 2100, GC_INPUTS = 6 };

typedef struct gc_input {
    fth_val v;
    double *data;
    int64_t count; /* doubles: complex inputs have two per element */
    bool complex, fixed;
} gc_input;

typedef struct gc_bench {
    fth_context *ctx;
    fth_graph *g;
    t_random r;
    int n;
    gc_input in[GC_INPUTS];
    void *more[GC_INPUTS];
    int n_more;
} gc_bench;

fth_val gc_real_in(gc_bench *b, const char *axes, double lo, double hi); /* uniform */
fth_val gc_complex_in(gc_bench *b, const char *axes);
fth_val gc_ranked_in(gc_bench *b, const char *axes); /* no two along the last axis are near */
fth_val gc_away_in(gc_bench *b, const char *axes);   /* not near 0 */
/* bool or i64 below a number */
fth_val gc_other_in(gc_bench *b, fth_dtype t, const char *axes, int64_t below);
/* A weighted sum, so that no element's gradient is like another's. */
fth_val gc_loss_of(gc_bench *b, fth_val y);

typedef struct gc_row {
    const char *name;
    fth_val (*build)(gc_bench *b);
    const char *stream; /* axis to force; NULL: "s"; "": none */
} gc_row;
extern const gc_row gc_rows[];
extern const int gc_n_rows;

#endif
