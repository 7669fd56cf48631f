/* local.h - operations of the locally conditioned models: every cell given its K neighbours.
 *
 * All of them are made of one small problem: a K x K matrix, its Cholesky factor, a few right-hand
 * sides. It lives in the scratch of a worker and never leaves it; numbers inside are f64, whatever
 * the dtype of the values. A right-hand side is one more row of the matrix, so that the factor of
 * the larger matrix has the solution of the first triangle in its last rows.
 */
#ifndef SPATIAL_OPS_LOCAL_H
#define SPATIAL_OPS_LOCAL_H

#include "../kernel.h"

/* ---- builders ---- */

/* Everything a covariance depends on, as plain bytes. */
typedef struct sp_local_cov {
    double sigma, lengthscale, alpha, jitter;
    int32_t kernel;
    int32_t groups; /* G; 0: a model without groups */
} sp_local_cov;
sp_local_cov sp_local_cov_of(const sp_model *m);

typedef struct sp_local_places {
    fth_val at;       /* f32 [cell dim]: what is conditioned */
    fth_val group;    /* i32 [cell]; poison without groups */
    fth_val nbr;      /* i32 [cell nbr]: rows of Z */
    fth_val Z;        /* f32 [induce dim] */
    fth_val groupsZ;  /* i32 [induce]; poison without groups */
    fth_val distance; /* f64 [group group2], squared; poison: all equally far */
} sp_local_places;

/* a = (K + jitter)^-1 k [cell nbr], and fth_out(.., 1): sigma^2 - k.a [cell], in [lo, 100]. */
fth_val sp_local_weights_(fth_site site, const sp_local_cov *cov, const sp_local_places *p,
                          fth_dtype real, double lo);
#define sp_local_weights(cov, p, real, lo) sp_local_weights_(FTH_HERE, (cov), (p), (real), (lo))
/* The weights as if cells were of each group in turn: [group cell nbr]. `group` is not read. */
fth_val sp_local_weights_groups_(fth_site site, const sp_local_cov *cov, const sp_local_places *p,
                                 fth_dtype real);
#define sp_local_weights_groups(cov, p, real) sp_local_weights_groups_(FTH_HERE, (cov), (p), (real))

/* ---- loops, one set for each instruction set ---- */

/* What the covariance of a pair is multiplied by: for groups g and h at 2 (g G + h). */
typedef struct sp_local_table {
    int64_t groups; /* G; 1 without */
    const double *scale_gain;
    sp_kernel kernel;
    double sigma2, jitter;
} sp_local_table;
enum { SP_LOCAL_PAIR = 2 };
void sp_local_table_fill(sp_local_table *t, double *room, const sp_local_cov *cov, int64_t groups,
                         const double *distance);

/* One cell to be conditioned on k others, as `asked` kinds of cell: group[0..asked). */
typedef struct sp_local_cell {
    const sp_local_table *table;
    int64_t k, asked;
    const float *at;      /* its place */
    const int32_t *group; /* NULL: none have groups */
    const int32_t *nbr;
    const float *Z;
    int64_t Z_step;
    const int32_t *groupsZ;
} sp_local_cell;
/* Doubles of scratch: for K neighbours and `asked` right-hand sides; R columns, 0 for weights. */
int64_t sp_local_room(int64_t k, int64_t asked, int64_t r);

typedef struct sp_local_loops {
    /* a [asked][k], var [asked]; false: the matrix is not positive definite. */
    bool (*weights)(const sp_local_cell *c, double *room, double *a, double *var);
} sp_local_loops;
extern const sp_local_loops sp_local_plain, sp_local_base;
#ifdef FTH_HAVE_ISA_V3
extern const sp_local_loops sp_local_v3, sp_local_v4;
#endif
/* level 0: plain loops, the truth; 1, 3, 4: vectors. NULL: this processor has no such. */
const sp_local_loops *sp_local_loops_at(int level);
const sp_local_loops *sp_local_best(void);

#endif
