/* poisson.h - the two operations of the likelihood over stored counts, and their loops.
 *
 * Both see a batch: counts as rows of cells, phi[draw factor cellb] (the factors, exponentiated)
 * and W[geneb factor]. The rate of a stored count is a product of length `factor`; everything else
 * follows from it. sp_poisson_cells gives what belongs to cells, sp_poisson_genes what belongs to
 * genes: each recomputes the rates, which costs less than keeping them.
 */
#ifndef SPATIAL_OPS_POISSON_H
#define SPATIAL_OPS_POISSON_H

#include "../../spatial.h"
#include "poisson_node.h"

/* Which loops: by the density of the batch, or always one of them. */
typedef enum sp_poisson_path { SP_PATH_AUTO, SP_PATH_SPARSE, SP_PATH_DENSE } sp_poisson_path;

/* What both operations read. */
typedef struct sp_poisson_in {
    fth_val phi;     /* real [draw factor cellb], or [factor cellb]: one draw */
    fth_val W;       /* real [geneb factor] */
    fth_val row_ptr; /* i64 [cellb + 1] */
    fth_val gene;    /* i32 [entry] */
    fth_val value;   /* f32 [entry] */
    sp_poisson_path path;
} sp_poisson_in;

/* With rho = W phi, means over draws: output 0, f64 [cellb], the sum of y ln max(rho, 1e-8);
 * output 1, real [factor cellb], its slope in ln phi; output 2 the same, each draw weighted with
 * eps (of the shape of phi; poison: there is no output 2). */
fth_val sp_poisson_cells_(fth_site site, const sp_poisson_in *in, fth_val eps);
/* f64 [geneb factor]: sums over cells and draws of Q phi, with Q = y / rho, 0 where rho < 1e-8; or,
 * when `update`, y / (rho + 1e-8). */
fth_val sp_poisson_genes_(fth_site site, const sp_poisson_in *in, bool update);

/* ---- loops: one set per instruction set, the same bits from all ---- */

enum {
    SP_POISSON_GROUP = 16, /* cells whose factors are transposed at a time */
    SP_POISSON_BUNCH = 4   /* vectors of counts whose rows of W are transposed at a time */
};

/* A piece of a batch, as the loops see it. Numbers of type void are of the type of the loops. */
typedef struct sp_poisson_piece {
    const int64_t *row_ptr; /* of the first cell of the piece */
    const int32_t *gene;
    const float *value;
    const void *W;
    int64_t w_step; /* between genes */
    const void *phi, *eps;
    int64_t phi_draw, phi_factor, eps_draw, eps_factor; /* steps; cells are neighbours */
    int64_t cells, genes, factors, draws;
    bool dense, update;
    const void *turned; /* dense: W as [factor][padded genes], by `turn` */
} sp_poisson_piece;
typedef struct sp_poisson_out {
    double *ell; /* [cells] */
    void *df, *ds;
    int64_t df_step, ds_step; /* between factors; NULL outputs are skipped */
} sp_poisson_out;
typedef struct sp_poisson_loops {
    int lanes;
    /* W[gene][factor] to [factor][padded genes], zeros behind the last gene. */
    void (*turn)(void *to, const sp_poisson_piece *p);
    void (*cells)(const sp_poisson_piece *p, const sp_poisson_out *out, void *work);
    /* Adds to part: [gene][padded factors], or [factor][padded genes] when dense. */
    void (*genes)(const sp_poisson_piece *p, void *part, void *work);
} sp_poisson_loops;
/* Numbers of `work` and of `part`, for any of the loops. */
int64_t sp_poisson_work(int64_t genes, int64_t factors, int64_t draws);
int64_t sp_poisson_part(int64_t genes, int64_t factors);
int64_t sp_poisson_padded(int64_t n, int lanes);

FTH_ISA_DECLARE(const sp_poisson_loops, sp_poisson_f32);
FTH_ISA_DECLARE(const sp_poisson_loops, sp_poisson_f64);
/* Those of instruction set 1 (base), 3 or 4; NULL: not available in this processor or build. */
const sp_poisson_loops *sp_poisson_at(int level, fth_dtype real);
/* The best of this processor. */
const sp_poisson_loops *sp_poisson_best(fth_dtype real);

/* ---- what the two operations share ---- */

fth_status sp_poisson_check(const fth_node *node, fth_err *err);
fth_val sp_poisson_add(fth_site site, const fth_op *op, const sp_poisson_in *in, fth_val eps,
                       bool update);
int sp_poisson_cell_dim(const fth_node *node); /* of phi */
int64_t sp_poisson_draws(const fth_node *node);
double sp_poisson_flops(const fth_call *call);
/* The cells of the call's tile of phi. `turned` stays NULL. */
sp_poisson_piece sp_poisson_of(const fth_call *call);
/* Cells [from, from + n) of a piece. */
sp_poisson_piece sp_poisson_some(const sp_poisson_piece *p, int64_t from, int64_t n,
                                 fth_dtype real);

#endif
