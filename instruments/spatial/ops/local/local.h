/* local.h - operations of the locally conditioned models: every cell given its K neighbours.
 *
 * All solve one small linear system: a K x K matrix, its Cholesky factor, a few right-hand sides.
 * It stays in the scratch memory of a worker and is f64, whatever the dtype of the values. A
 * right-hand side is one more row of the matrix, so that the factor of the larger matrix has the
 * solution of the first triangle in its last rows.
 */
#ifndef SPATIAL_OPS_LOCAL_H
#define SPATIAL_OPS_LOCAL_H

#include "../../model/kernel.h"
#include "local_node.h"

/* ---- builders ---- */

sp_local_cov sp_local_cov_of(const sp_model *m);

typedef struct sp_local_places {
    fth_val at;       /* f32 [cell dim]: what is conditioned */
    fth_val group;    /* i32 [cell]; poison without groups */
    fth_val nbr;      /* i32 [cell nbr]: rows of Z */
    fth_val Z;        /* f32 [induce dim] */
    fth_val groupsZ;  /* i32 [induce]; poison without groups */
    fth_val distance; /* f64 [group group2], squared; poison: all equally far */
    fth_val log_ell;  /* f64 [factor]: ln of a lengthscale of each factor; poison: that of the
                         covariance is that of all */
} sp_local_places;

/* a = (K + jitter)^-1 k [cell nbr], and fth_out(.., 1): sigma^2 - k.a [cell], in [lo, 100]. With
 * lengthscales of factors [factor cell nbr] and [factor cell], and fth_out(.., 2) is the slope of a
 * in ln lengthscale (model 19.6). */
fth_val sp_local_weights_(fth_site site, const sp_local_cov *cov, const sp_local_places *p,
                          fth_dtype real, double lo);
#define sp_local_weights(cov, p, real, lo) sp_local_weights_(FTH_HERE, (cov), (p), (real), (lo))
/* The weights as if cells were of each group in turn: [group cell nbr], or [group factor cell nbr].
 * `group` is not read. */
fth_val sp_local_weights_groups_(fth_site site, const sp_local_cov *cov, const sp_local_places *p,
                                 fth_dtype real);
#define sp_local_weights_groups(cov, p, real) sp_local_weights_groups_(FTH_HERE, (cov), (p), (real))

/* ---- training: a batch of cells, the axis cellb ---- */

typedef struct sp_local_batch {
    fth_val idx;     /* i64 [cellb]: which cells */
    fth_val nbr;     /* i32 [cellb nbr]: their neighbours */
    fth_val a, cp;   /* real [cellb nbr] and [cellb]: their weights; or those of each factor,
                        [factor cellb nbr] and [factor cellb] */
    fth_val mu, Lam; /* real [factor cell] and [factor cell rank] */
    double jitter;
} sp_local_batch;
/* The divergence of each cell, and what its gradient is made of (model 7.4, 7.5). Outputs, from
 * SP_TERM_EQ on:
 *
 *   0  eq/cq  [factor cellb rank], zero where cq was clamped
 *   1  ep/cp  [factor cellb rank]
 *   2  h      [factor cellb nbr]
 *   3  dj/cp  [factor cellb]
 *   4  KL_j   f64 [factor cellb]
 */
fth_val sp_local_terms_(fth_site site, const sp_local_batch *b);
#define sp_local_terms(b) sp_local_terms_(FTH_HERE, (b))
/* The slope of each KL_j in ln lengthscale, f64 [factor cellb], from that of the weights, which are
 * of each factor; cp is held (model 19.6). */
fth_val sp_local_slopes_(fth_site site, const sp_local_batch *b, fth_val terms, fth_val da);
#define sp_local_slopes(b, terms, da) sp_local_slopes_(FTH_HERE, (b), (terms), (da))
/* f and s of the batch: mu, and the root of the clamped sum of squares of Lam; [factor cellb]. */
fth_val sp_local_marginals_(fth_site site, const sp_local_batch *b);
#define sp_local_marginals(b) sp_local_marginals_(FTH_HERE, (b))

/* Contributions to each cell: row i owns items [ptr[i], ptr[i+1]), each (place in the batch) (K +
 * 1) + slot, ascending; slot K is the cell itself. */
typedef struct sp_local_touched {
    fth_val ptr;   /* i32 [cell1], one element more than cell */
    fth_val items; /* i32 [item], at least Nb (K + 1) */
} sp_local_touched;
/* Checks that they are lists of this batch and returns true, for sp_local_scatter. */
fth_val sp_local_lists_(fth_site site, const sp_local_touched *t, const sp_local_batch *b);
/* Gradients of b KL plus a loss with slopes gf and gs [factor cellb] in f and s: by Lam [factor
 * cell rank], and fth_out(.., 1): by mu [factor cell]. */
fth_val sp_local_scatter_(fth_site site, const sp_local_batch *b, fth_val terms,
                          const sp_local_touched *t, fth_val gf, fth_val gs, double weight);
#define sp_local_scatter(b, terms, t, gf, gs, weight)                                              \
    sp_local_scatter_(FTH_HERE, (b), (terms), (t), (gf), (gs), (weight))
/* The lists of a batch, on the host: ptr has cells + 1 places, items n (k + 1). */
void sp_local_touch_lists(int32_t *ptr, int32_t *items, int64_t cells, const int64_t *idx,
                          int64_t n, const int32_t *nbr, int64_t k);

/* ---- prediction ---- */

/* f and, as output 1, s [factor cell] from weights a [cell nbr] and conditional variances c [cell],
 * or those of each factor. */
fth_val sp_local_predict_(fth_site site, fth_val a, fth_val c, fth_val nbr, fth_val mu, fth_val Lam,
                          double jitter);
#define sp_local_predict(a, c, nbr, mu, Lam, jitter)                                               \
    sp_local_predict_(FTH_HERE, (a), (c), (nbr), (mu), (Lam), (jitter))
/* The mean alone: [factor cell], or [group factor cell] for weights of groups, [group cell nbr] or
 * [group factor cell nbr]. */
fth_val sp_local_means_(fth_site site, fth_val a, fth_val nbr, fth_val mu);
#define sp_local_means(a, nbr, mu) sp_local_means_(FTH_HERE, (a), (nbr), (mu))

/* ---- loops, one set for each instruction set ---- */

/* Scale of distances and gain of the covariance, for groups g and h at 2 (g G + h). */
typedef struct sp_local_table {
    int64_t groups; /* G; 1 without */
    const double *scale_gain;
    sp_kernel kernel;
    double sigma2, jitter;
} sp_local_table;
enum { SP_LOCAL_PAIR = 2 };
void sp_local_table_fill(sp_local_table *t, double *room, const sp_local_cov *cov, int64_t groups,
                         const double *distance);

/* One cell conditioned on k others, as if of each group of group[0..asked). */
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
int64_t sp_local_tangent_room(int64_t k); /* of `tangent` */

/* One cell and one factor. Rows are f32 (`single`) or f64. */
typedef struct sp_local_term {
    int64_t k, r;
    double jitter, cp;
    bool single;
    const int32_t *nbr;
    const int32_t *ahead; /* neighbours of the next cell, to prefetch; NULL: none */
    int64_t cell;
    const void *mu, *lam; /* of the factor: element i, and row i at i * lam_step */
    int64_t lam_step;
    const void *a;     /* [k] */
    void *eq, *ep, *h; /* out: [r] [r] [k]; NULL: not wanted */
    double kl, d;      /* out */
    double f, s;       /* out, of a prediction; cp is then the conditional variance */
} sp_local_term;
/* One row of the gradient, for one factor: the sum of its items. */
typedef struct sp_local_touch {
    int64_t k, r, n;
    const int32_t *item;
    bool single;
    double weight;
    const void *eq, *ep, *h, *a; /* by places in the batch, these elements apart: */
    int64_t eq_step, ep_step, h_step, a_step;
    const void *d, *gf, *gs, *lam; /* [cellb], and the row of Lam */
    void *slope;                   /* out: [r]; NULL: not wanted */
    double slope_mu;               /* out */
} sp_local_touch;

typedef struct sp_local_loops {
    /* a [asked][k], var [asked]; false: the matrix is not positive definite. */
    bool (*weights)(const sp_local_cell *c, double *room, double *a, double *var);
    /* The same for one right-hand side, and da [k], the slope of a in ln lengthscale. */
    bool (*tangent)(const sp_local_cell *c, double *room, double *a, double *var, double *da);
    void (*terms)(sp_local_term *t, double *room);
    void (*predict)(sp_local_term *t, double *room);
    void (*touch)(sp_local_touch *t, double *room);
    double (*norm2)(const void *row, bool single, int64_t n); /* sum of squares */
} sp_local_loops;
extern const sp_local_loops sp_local_plain;
FTH_ISA_DECLARE(const sp_local_loops, sp_local);
/* level 0: plain loops, the reference; 1, 3, 4: vectors. NULL: not available in this processor. */
const sp_local_loops *sp_local_loops_at(int level);
const sp_local_loops *sp_local_best(void);

#endif
