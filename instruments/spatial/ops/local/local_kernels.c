/* local_kernels.c - the linear system of one cell, vectorised, once for each instruction set.
 *
 * A matrix of k columns is stored by columns of p rows, p a multiple of LANES: k rows of its own,
 * then the right-hand sides. LANES columns are processed at a time: the products of the columns
 * before are accumulated in registers, then a small triangle is factored, then the rows below are
 * solved.
 */
#define FTH_VECTOR_REAL 64
#include "local.h"

#include <fathom/vector.h>

#include <float.h>

enum { TALL = LANES == 8 ? 3 : 2 }; /* vectors of rows in registers, by LANES columns */

static int64_t padded(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* `tall` vectors of rows from `row` on, columns from `col` on: the stored values, or the products
 * of rows of t [r][p], minus the products of the columns before. */
LANE void tile(double *c, int64_t p, int64_t col, int64_t row, int tall, const double *t, int64_t r)
{
    vr sum[TALL][LANES], x[TALL];
    for (int i = 0; i < tall; i++)
        for (int j = 0; j < LANES; j++)
            sum[i][j] = r > 0 ? v_set(0) : v_load(c + (col + j) * p + row + i * LANES);
    for (int64_t k = 0; k < r; k++) {
        const double *at = t + k * p;
        for (int i = 0; i < tall; i++) x[i] = v_load(at + row + i * LANES);
        for (int j = 0; j < LANES; j++) {
            const vr y = v_set(at[col + j]);
            for (int i = 0; i < tall; i++) sum[i][j] = v_fma(x[i], y, sum[i][j]);
        }
    }
    for (int64_t k = 0; k < col; k++) {
        const double *at = c + k * p;
        for (int i = 0; i < tall; i++) x[i] = v_load(at + row + i * LANES);
        for (int j = 0; j < LANES; j++) {
            const vr y = v_set(at[col + j]);
            for (int i = 0; i < tall; i++) sum[i][j] = v_fnma(x[i], y, sum[i][j]);
        }
    }
    for (int i = 0; i < tall; i++)
        for (int j = 0; j < LANES; j++) v_store(c + (col + j) * p + row + i * LANES, sum[i][j]);
}

static void tile_full(double *c, int64_t p, int64_t col, int64_t row, const double *t, int64_t r)
{
    tile(c, p, col, row, TALL, t, r);
}

#if FTH_ISA_LEVEL >= 4
static void tile_two(double *c, int64_t p, int64_t col, int64_t row, const double *t, int64_t r)
{
    tile(c, p, col, row, 2, t, r);
}
#endif

static void tile_one(double *c, int64_t p, int64_t col, int64_t row, const double *t, int64_t r)
{
    tile(c, p, col, row, 1, t, r);
}

static void tiles(double *c, int64_t p, int64_t col, const double *t, int64_t r)
{
    int64_t row = col;
    for (; p - row >= TALL * LANES; row += TALL * LANES) tile_full(c, p, col, row, t, r);
#if FTH_ISA_LEVEL >= 4
    for (; p - row >= 2 * LANES; row += 2 * LANES) tile_two(c, p, col, row, t, r);
#endif
    for (; row < p; row += LANES) tile_one(c, p, col, row, t, r);
}

/* Column j of a triangle of LANES columns, and its update of the columns after it. A function with
 * a constant j, so that all columns stay in registers. */
LANE void divide(vr *x, int j, double *by)
{
    if (j >= LANES) return;
    by[j] = 1 / sqrt(x[j][j]);
    x[j] *= v_set(by[j]);
    for (int i = j + 1; i < LANES; i++) x[i] = v_fnma(x[j], v_set(x[j][i]), x[i]);
}

/* The triangle at (col, col), of which n columns are inside the matrix: results of the others are
 * not used. by: 1 / the diagonal. */
static bool triangle(double *c, int64_t p, int64_t col, int64_t n, double jitter, double *by)
{
    vr x[LANES];
    bool ok = true;
    for (int j = 0; j < LANES; j++) {
        c[(col + j) * p + col + j] += jitter;
        x[j] = v_load(c + (col + j) * p + col);
    }
    divide(x, 0, by);
    divide(x, 1, by);
    divide(x, 2, by);
    divide(x, 3, by);
    divide(x, 4, by);
    divide(x, 5, by);
    divide(x, 6, by);
    divide(x, 7, by);
    for (int j = 0; j < LANES; j++) {
        v_store(c + (col + j) * p + col, x[j]);
        ok &= j >= n || (by[j] > 0 && by[j] <= DBL_MAX); /* the root of a negative number is NaN */
    }
    return ok;
}

LANE void divide_below(vr *x, int j, const double *c, int64_t p, const double *by)
{
    if (j >= LANES) return;
    x[j] *= v_set(by[j]);
    for (int i = j + 1; i < LANES; i++) x[i] = v_fnma(x[j], v_set(c[j * p + i]), x[i]);
}

/* A vector of rows below that triangle. */
LANE void below(double *c, int64_t p, int64_t col, int64_t row, const double *by)
{
    vr x[LANES];
    const double *own = c + col * p + col;
    for (int j = 0; j < LANES; j++) x[j] = v_load(c + (col + j) * p + row);
    divide_below(x, 0, own, p, by);
    divide_below(x, 1, own, p, by);
    divide_below(x, 2, own, p, by);
    divide_below(x, 3, own, p, by);
    divide_below(x, 4, own, p, by);
    divide_below(x, 5, own, p, by);
    divide_below(x, 6, own, p, by);
    divide_below(x, 7, own, p, by);
    for (int j = 0; j < LANES; j++) v_store(c + (col + j) * p + row, x[j]);
}

/* The factor, in place; by[k]: 1 / its diagonal. false: not positive definite. */
static bool factor(double *c, int64_t k, int64_t p, double jitter, const double *t, int64_t r,
                   double *by)
{
    bool ok = true;
    for (int64_t col = 0; col < k; col += LANES) {
        tiles(c, p, col, t, r);
        ok &= triangle(c, p, col, k - col, jitter, by + col);
        for (int64_t row = col + LANES; row < p; row += LANES) below(c, p, col, row, by + col);
    }
    return ok;
}

/* x of L^T x = y, where y is the right-hand side in row `row`; x has p places, zero behind k. */
static void back(const double *c, int64_t k, int64_t p, int64_t row, const double *by, double *x)
{
    for (int64_t i = k; i < p; i++) x[i] = 0;
    for (int64_t col = (k - 1) / LANES * LANES; col >= 0; col -= LANES) {
        const int n = k - col < LANES ? (int)(k - col) : LANES;
        double s[LANES];
        for (int j = 0; j < n; j++) {
            vr sum = v_set(0);
            for (int64_t i = col + LANES; i < p; i += LANES)
                sum = v_fma(v_load(c + (col + j) * p + i), v_load(x + i), sum);
            s[j] = c[(col + j) * p + row] - v_total(sum);
        }
        for (int j = n - 1; j >= 0; j--) {
            s[j] *= by[col + j];
            for (int i = 0; i < j; i++) s[i] -= c[(col + i) * p + col + j] * s[j];
        }
        for (int j = 0; j < n; j++) x[col + j] = s[j];
    }
}

/* ---- weights ---- */

LANE vr covariance(sp_kernel kernel, vr d2, vr scale, vr gain)
{
    if (kernel == SP_RBF) return gain * fth_f64v_exp_of_negative(-0.5 * d2 * scale * scale);
    const vr v = v_sqrt(d2 + 1e-12) * scale;
    const vr with = kernel == SP_MATERN32 ? 1 + v : 1 + v + v * v * (1 / 3.0);
    return gain * with * fth_f64v_exp_of_negative(-v);
}

/* Its slope in ln lengthscale (model 19.2a). */
LANE vr slope_of(sp_kernel kernel, vr d2, vr scale, vr gain)
{
    if (kernel == SP_RBF) {
        const vr v2 = d2 * scale * scale;
        return gain * v2 * fth_f64v_exp_of_negative(-0.5 * v2);
    }
    const vr v = v_sqrt(d2 + 1e-12) * scale;
    const vr with = kernel == SP_MATERN32 ? v * v : v * v * (1 + v) * (1 / 3.0);
    return gain * with * fth_f64v_exp_of_negative(-v);
}

/* Columns of the matrix, and of its slope unless that is NULL. */
LANE void columns(const sp_local_cell *cell, sp_kernel kernel, double *c, double *slope, int64_t p,
                  const double *x, const double *y, const int32_t *group)
{
    const sp_local_table *t = cell->table;
    for (int64_t j = 0; j < padded(cell->k); j++) { /* whole blocks of columns */
        const double *pair = t->scale_gain + SP_LOCAL_PAIR * t->groups * (group ? group[j] : 0);
        for (int64_t i = j / LANES * LANES; i < p; i += LANES) {
            const vr dx = v_load(x + i) - x[j], dy = v_load(y + i) - y[j];
            vr scale = v_set(pair[0]), gain = v_set(pair[1]);
            if (group) {
                double some[2][LANES];
                for (int l = 0; l < LANES; l++) {
                    some[0][l] = pair[SP_LOCAL_PAIR * group[i + l]];
                    some[1][l] = pair[SP_LOCAL_PAIR * group[i + l] + 1];
                }
                scale = v_load(some[0]);
                gain = v_load(some[1]);
            }
            const vr d2 = v_fma(dx, dx, dy * dy);
            v_store(c + j * p + i, covariance(kernel, d2, scale, gain));
            if (slope) v_store(slope + j * p + i, slope_of(kernel, d2, scale, gain));
        }
        c[j * p + j] = t->sigma2; /* exactly sigma^2, without the floor of distances */
        if (slope) slope[j * p + j] = 0;
    }
}

/* The room of a cell: its matrix, and vectors of p places. */
typedef struct rooms {
    int64_t p;
    double *c, *by, *x, *y, *h, *r;
} rooms;

static rooms rooms_in(double *room, const sp_local_cell *cell)
{
    const int64_t p = padded(cell->k + cell->asked);
    double *by = room + p * p; /* groups lie between h and r */
    return (rooms){p, room, by, by + p, by + 2 * p, by + 3 * p, by + 5 * p};
}

LANE void fill(const sp_local_cell *cell, const rooms *s, double *slope)
{
    const int64_t k = cell->k, p = s->p;
    double *c = s->c, *x = s->x, *y = s->y, *h = s->h;
    int32_t *group = cell->group ? (int32_t *)(void *)(h + p) : NULL;
    for (int64_t i = 0; i < p; i++) {
        const float *at = i < k ? cell->Z + cell->nbr[i] * cell->Z_step : cell->at;
        x[i] = (double)at[0];
        y[i] = (double)at[1];
        if (!group) continue;
        group[i] = i < k                 ? cell->groupsZ[cell->nbr[i]]
                   : i < k + cell->asked ? cell->group[i - k]
                                         : 0;
    }
    const sp_kernel kernel = cell->table->kernel;
    if (kernel == SP_MATERN32)
        columns(cell, SP_MATERN32, c, slope, p, x, y, group);
    else if (kernel == SP_MATERN52)
        columns(cell, SP_MATERN52, c, slope, p, x, y, group);
    else
        columns(cell, SP_RBF, c, slope, p, x, y, group);
}

/* The factor, variances, and weights; those of the last right-hand side stay in h. */
static bool solve(const sp_local_cell *cell, const rooms *s, double *a, double *var)
{
    const int64_t k = cell->k, p = s->p;
    double *c = s->c, *by = s->by, *h = s->h;
    if (!factor(c, k, p, cell->table->jitter, NULL, 0, by)) return false;
    for (int64_t q = 0; q < cell->asked; q++) {
        double sum = 0;
        for (int64_t i = 0; i < k; i++) sum += c[i * p + k + q] * c[i * p + k + q];
        var[q] = cell->table->sigma2 - sum;
        back(c, k, p, k + q, by, h);
        memcpy(a + q * k, h, sizeof *a * (size_t)k);
    }
    return true;
}

static bool weights(const sp_local_cell *cell, double *room, double *a, double *var)
{
    const rooms s = rooms_in(room, cell);
    fill(cell, &s, NULL);
    return solve(cell, &s, a, var);
}

/* r = dK a with a in h, from whole blocks of columns: what lies left of a block is what lies above
 * it. */
static void multiply_slope(const rooms *s, int64_t k, const double *slope)
{
    const int64_t p = s->p;
    for (int64_t i = 0; i < p; i++) s->r[i] = 0;
    for (int64_t j = 0; j < k; j++) {
        const double *col = slope + j * p;
        const int64_t from = j / LANES * LANES;
        const vr by = v_set(s->h[j]);
        vr sum = v_set(0);
        for (int64_t i = from; i < p; i += LANES) {
            const vr x = v_load(col + i);
            v_store(s->r + i, v_fma(x, by, v_load(s->r + i)));
            if (i > from) sum = v_fma(x, v_load(s->h + i), sum);
        }
        s->r[j] += v_total(sum);
    }
}

/* As the plain loop has it; the second right-hand side takes the row of the first. */
static bool tangent(const sp_local_cell *cell, double *room, double *a, double *var, double *da)
{
    const rooms s = rooms_in(room, cell);
    const int64_t k = cell->k, p = s.p;
    double *slope = room + sp_local_room(k, 1, 0);
    fill(cell, &s, slope);
    if (!solve(cell, &s, a, var)) return false;
    multiply_slope(&s, k, slope);
    for (int64_t i = 0; i < k; i++) s.r[i] = slope[i * p + k] - s.r[i];
    for (int64_t j = 0; j < k; j++) {
        const double *col = s.c + j * p, x = s.r[j] * s.by[j];
        for (int64_t i = j / LANES * LANES; i < p; i += LANES)
            v_store(s.r + i, v_fnma(v_load(col + i), v_set(x), v_load(s.r + i)));
        s.c[j * p + k] = x;
    }
    back(s.c, k, p, k, s.by, s.h);
    memcpy(da, s.h, sizeof *da * (size_t)k);
    return true;
}

/* ---- rows of f32 or f64, as doubles ---- */

/* Elements [i, i + LANES) of a row of n; zero behind its end. */
LANE vr v_row(const void *row, bool single, int64_t i, int64_t n)
{
    const int left = n - i < LANES ? (int)(n - i) : LANES;
    if (single) {
        const float *p = (const float *)row + i;
        return left == LANES ? fth_f64v_load_f32(p) : fth_f64v_load_some_f32(p, left);
    }
    const double *p = (const double *)row + i;
    return left == LANES ? v_load(p) : v_load_some(p, left);
}
LANE void v_put(void *row, bool single, int64_t i, int64_t n, vr a)
{
    const int left = n - i < LANES ? (int)(n - i) : LANES;
    if (single)
        fth_f64v_store_some_f32((float *)row + i, a, left);
    else
        v_store_some((double *)row + i, a, left);
}

/* ---- terms ---- */

static double one(const void *row, bool single, int64_t i)
{
    return single ? (double)((const float *)row)[i] : ((const double *)row)[i];
}

/* Rows of Lam, those of the neighbours and then the cell's own, as columns: t [r][p]. */
LANE void stand_up(const sp_local_term *m, bool single, double *t, int64_t p)
{
    const size_t size = single ? sizeof(float) : sizeof(double);
    for (int64_t i = 0; i < p; i += LANES) {
        const char *row[LANES];
        for (int l = 0; l < LANES; l++) {
            const int64_t n = i + l < m->k ? m->nbr[i + l] : m->cell;
            row[l] = (const char *)m->lam + (size_t)(n * m->lam_step) * size;
        }
        for (int64_t c = 0; c < m->r; c += LANES) {
            vr x[LANES];
            for (int l = 0; l < LANES; l++) x[l] = v_row(row[l], single, c, m->r);
            fth_f64v_transpose(x);
            for (int l = 0; l < LANES; l++) v_store(t + (c + l) * p + i, x[l]);
        }
    }
}

enum { WIDE = 4 }; /* vectors of a row in registers */

/* From element c on, n vectors: eq = l - sum h row, ep = l - sum a row. Returns their squares. */
LANE void residual(const sp_local_term *m, bool single, int64_t c, int n, const double *h,
                   const double *a, double *eq, double *ep, vr square[2])
{
    const size_t size = single ? sizeof(float) : sizeof(double);
    vr q[WIDE], p[WIDE];
    const char *own = (const char *)m->lam + (size_t)(m->cell * m->lam_step) * size;
    for (int v = 0; v < n; v++) q[v] = p[v] = v_row(own, single, c + v * LANES, m->r);
    for (int64_t i = 0; i < m->k; i++) {
        const char *row = (const char *)m->lam + (size_t)(m->nbr[i] * m->lam_step) * size;
        const vr hi = v_set(h[i]), ai = v_set(a[i]);
        for (int v = 0; v < n; v++) {
            const vr x = v_row(row, single, c + v * LANES, m->r);
            q[v] = v_fnma(x, hi, q[v]);
            p[v] = v_fnma(x, ai, p[v]);
        }
    }
    for (int v = 0; v < n; v++) {
        square[0] = v_fma(q[v], q[v], square[0]);
        square[1] = v_fma(p[v], p[v], square[1]);
        v_store(eq + c + v * LANES, q[v]);
        v_store(ep + c + v * LANES, p[v]);
    }
}

LANE void residuals(const sp_local_term *m, bool single, const double *h, const double *a,
                    double *eq, double *ep, vr square[2])
{
    int64_t c = 0;
    for (; m->r - c > (WIDE - 1) * LANES; c += WIDE * LANES)
        residual(m, single, c, WIDE, h, a, eq, ep, square);
    const int64_t left = (m->r - c + LANES - 1) / LANES;
    if (left == 3) residual(m, single, c, 3, h, a, eq, ep, square);
    if (left == 2) residual(m, single, c, 2, h, a, eq, ep, square);
    if (left == 1) residual(m, single, c, 1, h, a, eq, ep, square);
}

LANE void put_row(void *to, bool single, int64_t n, const double *from, double by)
{
    if (!to) return;
    for (int64_t c = 0; c < n; c += LANES) v_put(to, single, c, n, v_load(from + c) * v_set(by));
}

/* Rows of the next cell are scattered: prefetch them while this one is computed. */
LANE void fetch_ahead(const sp_local_term *m, bool single)
{
    const int64_t size = single ? (int64_t)sizeof(float) : (int64_t)sizeof(double);
    for (int64_t i = 0; i < m->k; i++) {
        const char *row = (const char *)m->lam + m->ahead[i] * m->lam_step * size;
        for (int64_t at = 0; at < m->r * size; at += 64) __builtin_prefetch(row + at);
        __builtin_prefetch((const char *)m->mu + m->ahead[i] * size);
    }
}

LANE void term(sp_local_term *m, bool single, double *room)
{
    const int64_t k = m->k, p = padded(k + 1), wide = padded(m->r);
    double *c = room, *t = c + p * p, *by = t + p * wide, *h = by + p, *a = h + p, *mu = a + p,
           *eq = mu + p, *ep = eq + wide;
    stand_up(m, single, t, p);
    if (m->ahead) fetch_ahead(m, single);
    factor(c, k, p, m->jitter, t, m->r, by);
    back(c, k, p, k, by, h);
    for (int64_t i = 0; i < p; i++) {
        a[i] = i < k ? one(m->a, single, i) : 0;
        mu[i] = i < k ? one(m->mu, single, m->nbr[i]) : 0;
    }
    vr am = v_set(0), hh = am, aa = am;
    for (int64_t i = 0; i < p; i += LANES) {
        const vr ai = v_load(a + i), hi = v_load(h + i);
        am = v_fma(ai, v_load(mu + i), am);
        hh = v_fma(hi, hi, hh);
        aa = v_fma(ai, ai, aa);
    }
    const double d = one(m->mu, single, m->cell) - v_total(am);
    vr square[2] = {v_set(0), v_set(0)};
    residuals(m, single, h, a, eq, ep, square);
    const double cq = v_total(square[0]) + m->jitter * v_total(hh),
                 trace = v_total(square[1]) + m->jitter * v_total(aa),
                 safe = cq < 1e-6  ? 1e-6
                        : cq > 100 ? 100
                                   : cq;
    put_row(m->eq, single, m->r, eq, cq < 1e-6 || cq > 100 ? 0 : 1 / cq);
    put_row(m->ep, single, m->r, ep, 1 / m->cp);
    put_row(m->h, single, k, h, 1);
    m->d = d / m->cp;
    m->kl = 0.5 * (log(m->cp) - log(safe) - 1 + (d * d + trace) / m->cp);
}

static void terms(sp_local_term *m, double *room)
{
    if (m->single)
        term(m, true, room);
    else
        term(m, false, room);
}

/* ---- prediction ---- */

LANE vr spread_of(const sp_local_term *m, bool single, int64_t c, int n)
{
    const size_t size = single ? sizeof(float) : sizeof(double);
    vr u[WIDE], sum = v_set(0);
    for (int v = 0; v < n; v++) u[v] = v_set(0);
    for (int64_t i = 0; i < m->k; i++) {
        const char *row = (const char *)m->lam + (size_t)(m->nbr[i] * m->lam_step) * size;
        const vr a = v_set(one(m->a, single, i));
        for (int v = 0; v < n; v++) u[v] = v_fma(v_row(row, single, c + v * LANES, m->r), a, u[v]);
    }
    for (int v = 0; v < n; v++) sum = v_fma(u[v], u[v], sum);
    return sum;
}

LANE void guess(sp_local_term *m, bool single)
{
    double f = 0, aa = 0;
    for (int64_t i = 0; i < m->k; i++) {
        const double a = one(m->a, single, i);
        f += a * one(m->mu, single, m->nbr[i]);
        aa += a * a;
    }
    vr sum = v_set(0);
    int64_t c = 0;
    for (; m->r - c > (WIDE - 1) * LANES; c += WIDE * LANES) sum += spread_of(m, single, c, WIDE);
    const int64_t left = (m->r - c + LANES - 1) / LANES;
    if (left == 3) sum += spread_of(m, single, c, 3);
    if (left == 2) sum += spread_of(m, single, c, 2);
    if (left == 1) sum += spread_of(m, single, c, 1);
    const double s2 = m->cp + v_total(sum) + m->jitter * aa;
    m->f = f;
    m->s = sqrt(s2 < 0 ? 0 : s2 > 100 ? 100 : s2);
}

static void predict(sp_local_term *m, double *room)
{
    (void)room;
    if (m->single)
        guess(m, true);
    else
        guess(m, false);
}

/* ---- gradient ---- */

LANE double squares(const void *row, bool single, int64_t n)
{
    vr sum = v_set(0);
    for (int64_t c = 0; c < n; c += LANES) {
        const vr x = v_row(row, single, c, n);
        sum = v_fma(x, x, sum);
    }
    return v_total(sum);
}

static double norm2(const void *row, bool single, int64_t n)
{
    return single ? squares(row, true, n) : squares(row, false, n);
}

/* n vectors of a row of the gradient; own: what the row itself is multiplied by. */
LANE void touch_some(const sp_local_touch *t, bool single, int64_t c, int n, double own)
{
    const size_t size = single ? sizeof(float) : sizeof(double);
    vr sum[WIDE];
    for (int v = 0; v < n; v++) sum[v] = v_set(0);
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t b = t->item[i] / (t->k + 1), slot = t->item[i] % (t->k + 1);
        const bool self = slot == t->k;
        const vr h = v_set(self ? -1 : one(t->h, single, b * t->h_step + slot)),
                 a = v_set(self ? -1 : one(t->a, single, b * t->a_step + slot));
        const char *eq = (const char *)t->eq + (size_t)(b * t->eq_step) * size,
                   *ep = (const char *)t->ep + (size_t)(b * t->ep_step) * size;
        for (int v = 0; v < n; v++) {
            sum[v] = v_fma(h, v_row(eq, single, c + v * LANES, t->r), sum[v]);
            sum[v] = v_fnma(a, v_row(ep, single, c + v * LANES, t->r), sum[v]);
        }
    }
    for (int v = 0; v < n; v++) {
        const vr x = own == 0 ? v_set(0) : v_row(t->lam, single, c + v * LANES, t->r);
        v_put(t->slope, single, c + v * LANES, t->r,
              v_fma(x, v_set(own), sum[v] * v_set(t->weight)));
    }
}

LANE void touch_row(sp_local_touch *t, bool single)
{
    double own = 0, mu = 0;
    t->slope_mu = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t b = t->item[i] / (t->k + 1), slot = t->item[i] % (t->k + 1);
        if (slot < t->k) {
            mu -= one(t->a, single, b * t->a_step + slot) * one(t->d, single, b);
            continue;
        }
        mu += one(t->d, single, b);
        t->slope_mu += one(t->gf, single, b);
        const double s2 = squares(t->lam, single, t->r);
        if (s2 >= 1e-3 && s2 <= 100) own += one(t->gs, single, b) / sqrt(s2);
    }
    t->slope_mu += t->weight * mu;
    if (!t->slope) return;
    int64_t c = 0;
    for (; t->r - c > (WIDE - 1) * LANES; c += WIDE * LANES) touch_some(t, single, c, WIDE, own);
    const int64_t left = (t->r - c + LANES - 1) / LANES;
    if (left == 3) touch_some(t, single, c, 3, own);
    if (left == 2) touch_some(t, single, c, 2, own);
    if (left == 1) touch_some(t, single, c, 1, own);
}

static void touch(sp_local_touch *t, double *room)
{
    (void)room;
    if (t->single)
        touch_row(t, true);
    else
        touch_row(t, false);
}

const sp_local_loops FTH_ISA_NAME(sp_local) = {weights, tangent, terms, predict, touch, norm2};
