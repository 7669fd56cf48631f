/* poisson_lanes.h - the loops of the likelihood, lanes over the stored counts of one cell.
 *
 * Counts are taken sixteen (f64: eight) at a time: their rows of W are transposed so that a vector
 * holds one factor of all of them, and rates, logarithms and quotients need no sum across lanes.
 * Vectors have 64 bytes on every instruction set, without FMA contraction, so all sets give the
 * same bits. In dense batches lanes run over all genes and W is transposed once.
 */
#include "poisson.h"

#include <fathom/vector_wide.h>

static const real floor_rate = R(1e-8);

/* A vector of counts of one cell, and the rows of W that belong to them. */
typedef struct tile {
    const real *w; /* factor l at w + l * step */
    int64_t step;
    vr y;
} tile;

/* Rows of W of a bunch of counts are transposed before any is used: a vector load right after the
 * scalar stores that wrote it would stall (store forwarding). */
enum { BUNCH = SP_POISSON_BUNCH };

/* Factors of one count, to every LANES-th number. */
LANE void spread_row(real *to, const real *row, int64_t from, int64_t L)
{
    for (int64_t l = from; l < L; l++) to[l * LANES] = row[l];
}

#if FTH_VECTOR_REAL == 32
/* Four factors of four counts, in registers. */
LANE void turn_four(real *to, const real *const row[4])
{
    typedef real four __attribute__((vector_size(16)));
    four a, b, c, d;
    memcpy(&a, row[0], sizeof a);
    memcpy(&b, row[1], sizeof b);
    memcpy(&c, row[2], sizeof c);
    memcpy(&d, row[3], sizeof d);
    const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
               ef = __builtin_shufflevector(a, b, 2, 6, 3, 7),
               gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const four out[4] = {
        __builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
        __builtin_shufflevector(ef, gh, 0, 1, 4, 5), __builtin_shufflevector(ef, gh, 2, 3, 6, 7)};
    for (int k = 0; k < 4; k++) memcpy(to + k * LANES, &out[k], sizeof out[k]);
}
#endif

/* The `n` counts from entry `at` on, at most BUNCH tiles of them, to y[tile][LANES] and
 * w[tile][factor][LANES]; lanes behind the last are 0. Returns how many tiles. */
LANE int64_t fetch(const sp_poisson_piece *p, int64_t at, int64_t n, real *y, real *w)
{
    const real *W = p->W;
    const int32_t *gene = p->gene + at;
    const int64_t L = p->factors, tiles = (n + LANES - 1) / LANES;
    if (n % LANES != 0) {
        memset(w + (tiles - 1) * L * LANES, 0, sizeof(real) * (size_t)L * LANES);
        memset(y + (tiles - 1) * LANES, 0, sizeof(real) * LANES);
    }
    for (int64_t i = 0; i < n; i++) y[i] = (real)p->value[at + i];
    int64_t i = 0;
#if FTH_VECTOR_REAL == 32
    for (; i + 4 <= n; i += 4) {
        const real *row[4];
        real *to = w + i / LANES * L * LANES + i % LANES;
        int64_t l = 0;
        for (int k = 0; k < 4; k++) row[k] = W + gene[i + k] * p->w_step;
        for (; l + 4 <= L; l += 4)
            turn_four(to + l * LANES,
                      (const real *const[4]){row[0] + l, row[1] + l, row[2] + l, row[3] + l});
        for (int k = 0; k < 4; k++) spread_row(to + k, row[k], l, L);
    }
#endif
    for (; i < n; i++)
        spread_row(w + i / LANES * L * LANES + i % LANES, W + gene[i] * p->w_step, 0, L);
    return tiles;
}

LANE tile tile_of_bunch(const sp_poisson_piece *p, int64_t k, const real *y, const real *w)
{
    return (tile){w + k * p->factors * LANES, LANES, v_load(y + k * LANES)};
}

LANE tile tile_of_genes(const sp_poisson_piece *p, int64_t gene, const real *y)
{
    const int64_t step = (p->genes + LANES - 1) / LANES * LANES;
    return (tile){(const real *)p->turned + gene, step, v_load(y + gene)};
}

LANE vr rates(const tile *t, const real *phi, int64_t factors)
{
    vr r = {0};
    for (int64_t l = 0; l < factors; l++) r += v_load(t->w + l * t->step) * phi[l];
    return r;
}

/* y / rho, 0 where there is no count or the rate is below its floor */
LANE vr quotient(const vr *y, const vr *rho)
{
    const vr q = *y / *rho;
    return (vr)((vi)q & (*y > 0) & ~(*rho < floor_rate));
}

/* ---- a dense row of counts ---- */

LANE void fill_row(const sp_poisson_piece *p, int64_t cell, real *y)
{
    for (int64_t i = p->row_ptr[cell]; i < p->row_ptr[cell + 1]; i++)
        y[p->gene[i]] += (real)p->value[i];
}

LANE void clear_row(const sp_poisson_piece *p, int64_t cell, real *y)
{
    for (int64_t i = p->row_ptr[cell]; i < p->row_ptr[cell + 1]; i++) y[p->gene[i]] = 0;
}

/* Factors of `n` cells from `cell` on, a cell beside the other: to[cell][draw][step]. */
LANE void turn_cells(real *to, int64_t step, const real *from, int64_t draw, int64_t factor,
                     const sp_poisson_piece *p, int64_t cell, int64_t n)
{
    for (int64_t e = 0; e < p->draws; e++)
        for (int64_t l = 0; l < p->factors; l++) {
            const real *row = from + e * draw + l * factor + cell;
            real *put = to + e * step + l;
            for (int64_t c = 0; c < n; c++) put[c * p->draws * step] = row[c];
        }
}

/* ---- by cells ---- */

/* The workspace of a call, in the caller's memory. */
typedef struct workspace {
    real *acc;       /* [draw][factor][LANES]: sums of W Q */
    real *w, *y;     /* rows and counts of a bunch of tiles */
    real *q;         /* [tile][draw][LANES] */
    real *phi, *eps; /* [cell][draw][factor] of a group of cells */
    real *dense;     /* a row of counts */
} workspace;

LANE workspace workspace_of(const sp_poisson_piece *p, void *work)
{
    workspace d = {.acc = work};
    const int64_t padded = (p->factors + LANES - 1) / LANES * LANES;
    d.w = d.acc + p->draws * p->factors * LANES;
    d.y = d.w + BUNCH * p->factors * LANES;
    d.q = d.y + BUNCH * LANES;
    d.phi = d.q + BUNCH * p->draws * LANES;
    d.eps = d.phi + SP_POISSON_GROUP * p->draws * padded;
    d.dense = d.eps + SP_POISSON_GROUP * p->draws * padded;
    const int64_t row = (p->genes + LANES - 1) / LANES * LANES;
    if (p->dense) memset(d.dense, 0, sizeof(real) * (size_t)row);
    return d;
}

/* One vector of counts: adds to the logarithms, and to acc unless it is NULL. */
LANE void add_tile(const sp_poisson_piece *p, const tile *t, const real *phi, real *acc, vd *sum)
{
    for (int64_t e = 0; e < p->draws; e++) {
        const vr rho = rates(t, phi + e * p->factors, p->factors);
        const vr least = PICK(rho < floor_rate, (vr){0} + floor_rate, rho);
        const vr term = (vr)((vi)(t->y * v_log(&least)) & (t->y > 0));
#if FTH_VECTOR_REAL == 32
        *sum += __builtin_convertvector(term, vd);
#else
        *sum += term;
#endif
        if (!acc) continue;
        const vr q = quotient(&t->y, &rho);
        real *to = acc + e * p->factors * LANES;
        for (int64_t l = 0; l < p->factors; l++) {
            const vr more = v_load(to + l * LANES) + q * v_load(t->w + l * t->step);
            v_store(to + l * LANES, &more);
        }
    }
}

LANE double one_cell(const sp_poisson_piece *p, int64_t cell, const real *phi, const workspace *d,
                     bool slopes)
{
    vd sum = {0};
    real *acc = slopes ? d->acc : NULL;
    if (acc) memset(acc, 0, sizeof(real) * LANES * (size_t)(p->draws * p->factors));
    if (p->dense) {
        fill_row(p, cell, d->dense);
        for (int64_t g = 0; g < p->genes; g += LANES) {
            const tile t = tile_of_genes(p, g, d->dense);
            add_tile(p, &t, phi, acc, &sum);
        }
        clear_row(p, cell, d->dense);
    } else {
        const int64_t end = p->row_ptr[cell + 1], most = BUNCH * LANES;
        for (int64_t i = p->row_ptr[cell]; i < end; i += most) {
            const int64_t tiles = fetch(p, i, end - i < most ? end - i : most, d->y, d->w);
            for (int64_t k = 0; k < tiles; k++) {
                const tile t = tile_of_bunch(p, k, d->y, d->w);
                add_tile(p, &t, phi, acc, &sum);
            }
        }
    }
    return d_sum(&sum);
}

static void cells(const sp_poisson_piece *p, const sp_poisson_out *out, void *work)
{
    const workspace d = workspace_of(p, work);
    const int64_t L = p->factors, E = p->draws;
    const double share = 1.0 / (double)E;
    const bool slopes = out->df || out->ds;
    for (int64_t first = 0; first < p->cells; first += SP_POISSON_GROUP) {
        const int64_t left = p->cells - first,
                      n = left < SP_POISSON_GROUP ? left : SP_POISSON_GROUP;
        turn_cells(d.phi, L, p->phi, p->phi_draw, p->phi_factor, p, first, n);
        if (out->ds) turn_cells(d.eps, L, p->eps, p->eps_draw, p->eps_factor, p, first, n);
        for (int64_t c = 0; c < n; c++) {
            const real *phi = d.phi + c * E * L, *eps = d.eps + c * E * L;
            const double ell = one_cell(p, first + c, phi, &d, slopes);
            if (out->ell) out->ell[first + c] = share * ell;
            for (int64_t l = 0; slopes && l < L; l++) {
                vr f = {0}, s = {0};
                for (int64_t e = 0; e < E; e++) {
                    const vr h = v_load(d.acc + (e * L + l) * LANES) * phi[e * L + l];
                    f += h;
                    if (out->ds) s += h * eps[e * L + l];
                }
                const int64_t at = first + c;
                if (out->df) ((real *)out->df)[l * out->df_step + at] = (real)(share * v_sum(&f));
                if (out->ds) ((real *)out->ds)[l * out->ds_step + at] = (real)(share * v_sum(&s));
            }
        }
    }
}

/* ---- by genes ---- */

/* Quotients of a tile for every draw, in q. */
LANE void weigh(const sp_poisson_piece *p, const tile *t, const real *phi, int64_t step, real *q)
{
    for (int64_t e = 0; e < p->draws; e++) {
        const vr rho = rates(t, phi + e * step, p->factors);
        const vr smooth = (vr)((vi)(t->y / (rho + floor_rate)) & (t->y > 0));
        const vr put = p->update ? smooth : quotient(&t->y, &rho);
        v_store(q + e * LANES, &put);
    }
}

/* A bunch of counts to the sums of their genes. */
LANE void bunch_to_genes(const sp_poisson_piece *p, int64_t at, int64_t n, const real *phi,
                         int64_t step, const workspace *d, real *part)
{
    const int64_t tiles = fetch(p, at, n, d->y, d->w);
    for (int64_t k = 0; k < tiles; k++) {
        const tile t = tile_of_bunch(p, k, d->y, d->w);
        weigh(p, &t, phi, step, d->q + k * p->draws * LANES);
    }
    for (int64_t i = 0; i < n; i++) {
        real *row = part + p->gene[at + i] * step;
        const real *q = d->q + i / LANES * p->draws * LANES + i % LANES;
        for (int64_t l = 0; l < step; l += LANES) {
            vr add = {0};
            for (int64_t e = 0; e < p->draws; e++) add += v_load(phi + e * step + l) * q[e * LANES];
            add += v_load(row + l);
            v_store(row + l, &add);
        }
    }
}

LANE void row_to_genes(const sp_poisson_piece *p, int64_t cell, const real *phi, int64_t step,
                       const workspace *d, real *part)
{
    fill_row(p, cell, d->dense);
    for (int64_t g = 0; g < p->genes; g += LANES) {
        const tile t = tile_of_genes(p, g, d->dense);
        weigh(p, &t, phi, step, d->q);
        for (int64_t l = 0; l < p->factors; l++) {
            real *sum = part + l * t.step + g;
            vr add = {0};
            for (int64_t e = 0; e < p->draws; e++)
                add += v_load(d->q + e * LANES) * phi[e * step + l];
            add += v_load(sum);
            v_store(sum, &add);
        }
    }
    clear_row(p, cell, d->dense);
}

static void genes(const sp_poisson_piece *p, void *part, void *work)
{
    const workspace d = workspace_of(p, work);
    const int64_t step = (p->factors + LANES - 1) / LANES * LANES; /* zeros behind the factors */
    memset(d.phi, 0, sizeof(real) * (size_t)(SP_POISSON_GROUP * p->draws * step));
    for (int64_t first = 0; first < p->cells; first += SP_POISSON_GROUP) {
        const int64_t left = p->cells - first,
                      n = left < SP_POISSON_GROUP ? left : SP_POISSON_GROUP;
        turn_cells(d.phi, step, p->phi, p->phi_draw, p->phi_factor, p, first, n);
        for (int64_t c = 0; c < n; c++) {
            const real *phi = d.phi + c * p->draws * step;
            const int64_t end = p->row_ptr[first + c + 1];
            if (p->dense)
                row_to_genes(p, first + c, phi, step, &d, part);
            else
                for (int64_t i = p->row_ptr[first + c]; i < end; i += BUNCH * LANES)
                    bunch_to_genes(p, i, end - i < BUNCH * LANES ? end - i : BUNCH * LANES, phi,
                                   step, &d, part);
        }
    }
}

static void turn(void *to, const sp_poisson_piece *p)
{
    real *put = to;
    const int64_t step = (p->genes + LANES - 1) / LANES * LANES;
    memset(put, 0, sizeof(real) * (size_t)(step * p->factors));
    for (int64_t g = 0; g < p->genes; g++)
        for (int64_t l = 0; l < p->factors; l++)
            put[l * step + g] = ((const real *)p->W)[g * p->w_step + l];
}
