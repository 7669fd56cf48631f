/* sums.h - sums over stored counts for the analysis.
 *
 * Cells fall into bins: one for each group, and one more for those that were held out. With the
 * factors F[cell factor] and the loadings W[gene factor] a first pass gives, for every bin, sums
 * over its cells of all that reconstruction error, deviance and loadings of groups are made of;
 * later passes evaluate rates with other loadings. Rates are computed only where a count is stored,
 * in f64; the graphs are chunked along cells. All sums are f64, in the order of the cells.
 */
#ifndef SPATIAL_SUMS_H
#define SPATIAL_SUMS_H

#include "../data/data.h"

/* Inputs: all cells of a folder, or stand-ins with their shapes for a plan. */
typedef struct sp_sums_input {
    fth_source F;      /* f32 [cell factor] */
    fth_source spread; /* f32 [cell factor]: F is multiplied by exp(spread^2 / 2); kind NULL: not
                          at all */
    fth_source size;   /* f32 [cell]: F is multiplied by it; kind NULL: not at all */
    fth_source bin;    /* i32 [cell] */
    fth_source gene, value; /* i32 and f32 [entry]: as fth_csr_columns, fth_csr_values */
    const int64_t *row_ptr; /* cells + 1 */
    int64_t cells, genes, factors, bins;
} sp_sums_input;
/* Of opened data, all rows of the folder; F, spread and bin are left to the caller. */
sp_sums_input sp_sums_of(const sp_data *data, int64_t factors);

/* Numbers of each bin, by kind. */
typedef enum sp_sum {
    SP_SUM_Y,      /* counts */
    SP_SUM_YY,     /* their squares */
    SP_SUM_YLOG,   /* y ln(y / mu), where y > 0; mu = max(F W^T, 1e-10) */
    SP_SUM_STORED, /* entries with y > 0 */
    SP_SUM_KINDS
} sp_sum;

typedef struct sp_sums {
    fth_tensor *kind[SP_SUM_KINDS]; /* f64 [bin] */
    fth_tensor *YF;                 /* f64 [slot factor], slot = bin * genes + gene: Y^T F */
    fth_tensor *FF;                 /* f64 [factor2 bin factor]: F^T F */
    fth_tensor *F;                  /* f64 [bin factor] */
    fth_tensor *least;              /* f64 []: smallest sum of the factors of a cell */
} sp_sums;

/* A graph and its plan. Sources and loadings must outlive it. A pass over counts gains nothing from
 * large chunks: without `limits` it is planned with 128 MiB if that suffices. */
typedef struct sp_pass {
    fth_graph *g;
    fth_plan *plan;
    fth_sink sink[SP_SUM_KINDS + 4];
    int n_sinks;
    fth_run_report report; /* of the last run */
} sp_pass;
void sp_pass_clear(sp_pass *p); /* an empty one is allowed */
/* The plan of such a pass, of a graph's own; NULL: `err` says why. */
fth_plan *sp_plan_small(fth_graph *g, const fth_val *out, int n, fth_limits *l, fth_err *err);
/* Runs it and counts it; `call` may be NULL. */
fth_status sp_pass_run(sp_pass *p, const fth_stage_call *call, fth_err *err);

/* Tensors of the sums. `whole`: YF and FF too; else what deviances need. */
fth_status sp_sums_create(sp_sums *out, fth_mem *mem, const sp_sums_input *in, bool whole,
                          fth_err *err);
/* The pass that fills them. W is f32 [gene factor]. */
fth_status sp_sums_plan(sp_pass *pass, fth_context *ctx, const sp_sums_input *in, fth_tensor *W,
                        const sp_sums *to, const fth_limits *limits, fth_err *err);
void sp_sums_clear(sp_sums *s);

/* What a likelihood says of the counts of every bin (model 14.10), f64 [bin]: `like` the sum of its
 * logarithms, `deviance` twice what a rate of each count itself would add, `above`
 * twice what Poisson counts of such rates would; NULL: not wanted.
 * theta, f64 [gene], are dispersions of the negative binomial; NULL: Poisson counts. */
typedef struct sp_score {
    fth_tensor *theta, *like, *deviance, *above;
} sp_score;
fth_status sp_score_plan(sp_pass *pass, fth_context *ctx, const sp_sums_input *in, fth_tensor *W,
                         const sp_score *to, const fth_limits *limits, fth_err *err);

/* Sums of y ln max(rate, 1e-8) of every bin, for two sets of loadings A and B, f64 [slot factor];
 * into a and b, f64 [bin]. With B NULL: for A alone, and QF [slot factor] = sum of y / rate * F. */
fth_status sp_fit_plan(sp_pass *pass, fth_context *ctx, const sp_sums_input *in, fth_tensor *A,
                       fth_tensor *B, fth_tensor *a, fth_tensor *b, fth_tensor *QF,
                       const fth_limits *limits, fth_err *err);

#endif
