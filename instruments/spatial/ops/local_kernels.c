/* local_kernels.c - the problem of one cell, in vectors, once for each instruction set.
 *
 * A matrix of k columns is stored by columns of p rows, p a multiple of LANES: k rows of its own,
 * then the right-hand sides. LANES columns are made at a time: what the columns before them take
 * away is summed in registers, then a small triangle is factored, then the rows below it follow.
 */
#include "local.h"
#include "local_lanes.h"

enum { TALL = LANES == 8 ? 3 : 2 }; /* vectors of rows in registers, by LANES columns */

static int64_t padded(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* `tall` vectors of rows from `row` on, columns from `col` on: what stands there, or the products
 * of rows of t [r][p], less the products of the columns before. */
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

/* The triangle at (col, col), n <= LANES columns of it; by: what each column was divided by. */
LANE bool triangle(double *c, int64_t p, int64_t col, int n, double jitter, double *by)
{
    vr x[LANES];
    bool ok = true;
    for (int j = 0; j < n; j++) {
        c[(col + j) * p + col + j] += jitter;
        x[j] = v_load(c + (col + j) * p + col);
    }
    for (int j = 0; j < n; j++) {
        const double d = x[j][j];
        ok &= d > 0;
        by[j] = 1 / sqrt(d);
        x[j] *= v_set(by[j]);
        for (int i = j + 1; i < n; i++) x[i] = v_fnma(x[j], v_set(x[j][i]), x[i]);
    }
    for (int j = 0; j < n; j++) v_store(c + (col + j) * p + col, x[j]);
    return ok;
}

/* A vector of rows below that triangle. */
LANE void below(double *c, int64_t p, int64_t col, int n, int64_t row, const double *by)
{
    vr x[LANES];
    for (int j = 0; j < n; j++) x[j] = v_load(c + (col + j) * p + row);
    for (int j = 0; j < n; j++) {
        x[j] *= v_set(by[j]);
        for (int i = j + 1; i < n; i++)
            x[i] = v_fnma(x[j], v_set(c[(col + j) * p + col + i]), x[i]);
        v_store(c + (col + j) * p + row, x[j]);
    }
}

/* The factor, in place; by[k]: 1 / its diagonal. false: not positive definite. */
static bool factor(double *c, int64_t k, int64_t p, double jitter, const double *t, int64_t r,
                   double *by)
{
    bool ok = true;
    int64_t col = 0;
    for (; col + LANES <= k; col += LANES) {
        tiles(c, p, col, t, r);
        ok &= triangle(c, p, col, LANES, jitter, by + col);
        for (int64_t row = col + LANES; row < p; row += LANES)
            below(c, p, col, LANES, row, by + col);
    }
    if (col == k) return ok;
    const int n = (int)(k - col);
    tiles(c, p, col, t, r);
    ok &= triangle(c, p, col, n, jitter, by + col);
    for (int64_t row = col + LANES; row < p; row += LANES) below(c, p, col, n, row, by + col);
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
    if (kernel == SP_RBF) return gain * v_exp(-0.5 * d2 * scale * scale);
    const vr v = v_sqrt(d2 + 1e-12) * scale;
    const vr with = kernel == SP_MATERN32 ? 1 + v : 1 + v + v * v * (1 / 3.0);
    return gain * with * v_exp(-v);
}

LANE void columns(const sp_local_cell *cell, sp_kernel kernel, double *c, int64_t p,
                  const double *x, const double *y, const int32_t *group)
{
    const sp_local_table *t = cell->table;
    for (int64_t j = 0; j < cell->k; j++) {
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
            v_store(c + j * p + i, covariance(kernel, v_fma(dx, dx, dy * dy), scale, gain));
        }
        c[j * p + j] = t->sigma2; /* not evaluated: distances have a floor */
    }
}

static bool weights(const sp_local_cell *cell, double *room, double *a, double *var)
{
    const int64_t k = cell->k, p = padded(k + cell->asked);
    double *c = room, *by = c + p * p, *x = by + p, *y = x + p, *h = y + p;
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
        columns(cell, SP_MATERN32, c, p, x, y, group);
    else if (kernel == SP_MATERN52)
        columns(cell, SP_MATERN52, c, p, x, y, group);
    else
        columns(cell, SP_RBF, c, p, x, y, group);
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

#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)
const sp_local_loops GLUE(sp_local_, FTH_ISA) = {weights};
