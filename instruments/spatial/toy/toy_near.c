/* toy_near.c - factors of very many cells, each drawn given some that were drawn before it (model
 * 16).
 *
 * The lattice is filled from coarse to fine. A first coarse lattice is drawn from its whole
 * covariance; then each finer one in three steps: the middles of squares, then the middles of
 * edges, one direction after the other. A cell is drawn given the cells of earlier steps that it is
 * most correlated with among those nearest to it, and cells of one step are independent given
 * those: they are spread over the workers. What is neglected is the correlation of interpolation
 * errors within a step.
 */
#include "../grid/topk_heap.h"
#include "../neighbours/neighbours.h"
#include "toy.h"

#include <math.h>
#include <string.h>

enum { FIRST = 500, NEAR = 72, GIVEN = 32, PIECE = 256 };

/* ---- covariances ---- */

typedef struct fast {
    double slope, root_nu, factor; /* of cells of different groups; 1 and 1 within one */
} fast;

static fast fast_of(const sp_toy *t)
{
    const sp_cov cov = sp_toy_cov(t);
    const double nu = sp_cov_nu(&cov, 0, 1);
    const sp_kernel_info *info = &sp_kernels[cov.kernel];
    return (fast){.slope = info->root / fabs(cov.lengthscale),
                  .root_nu = sqrt(nu),
                  .factor = pow(nu, info->power)};
}

static double covariance(const fast *f, const float *a, int32_t ga, const float *b, int32_t gb)
{
    const double x = (double)a[0] - (double)b[0], y = (double)a[1] - (double)b[1];
    const double v = f->slope * sqrt(x * x + y * y + 1e-12);
    if (ga == gb) return (1 + v) * exp(-v);
    return (1 + v * f->root_nu) * exp(-v * f->root_nu) * f->factor;
}

/* In place: the lower triangle of n x n numbers, rows `stride` apart. A pivot that rounding makes
 * non-positive is floored. */
static void cholesky(double *a, int64_t n, int64_t stride)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = a[i * stride + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * stride + k] * a[j * stride + k];
            if (i == j)
                a[i * stride + i] = sqrt(sum > 1e-12 ? sum : 1e-12);
            else
                a[i * stride + j] = sum / a[j * stride + j];
        }
}

static void solve(const double *a, int64_t n, double *b)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) b[i] -= a[i * GIVEN + k] * b[k];
        b[i] /= a[i * GIVEN + i];
    }
}

static void solve_transposed(const double *a, int64_t n, double *b)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        b[i] /= a[i * GIVEN + i];
        for (int64_t k = 0; k < i; k++) b[k] -= a[i * GIVEN + k] * b[i];
    }
}

/* ---- one cell, given others ---- */

typedef struct bench {
    int32_t near[NEAR], given[GIVEN];
    double matrix[GIVEN * GIVEN], weight[GIVEN];
    sp_near room[NEAR];
} bench;

typedef struct field {
    sp_toy *t;
    fast cov;
    const sp_grid *grid; /* of cells that were drawn */
    int32_t *drawn;      /* their numbers: the grid knows them by their place here */
    float *at;           /* and positions */
    int64_t n_drawn;
    const int32_t *todo; /* cells of this step */
    int64_t n_todo;
    bench *bench; /* one for each worker */
} field;

/* Of the nearest cells, those with the largest covariance with this place as group g. */
static int64_t choose(const field *f, bench *b, const float *at, int32_t g)
{
    const sp_toy *t = f->t;
    const int64_t n = f->n_drawn < NEAR ? f->n_drawn : NEAR;
    sp_grid_nearest(f->grid, at, n, -1, b->near, NULL, b->room);
    sp_topk best = {.v = b->room, .k = n < GIVEN ? n : GIVEN};
    for (int64_t i = 0; i < n; i++) {
        const int32_t c = f->drawn[b->near[i]];
        sp_topk_offer(&best, -covariance(&f->cov, at, g, t->xy + 2 * c, t->group[c]), c);
    }
    const int64_t given = best.n;
    sp_topk_take(&best, b->given, NULL);
    return given;
}

/* Weights of the given cells, and the variance that is left. */
static double condition(const field *f, bench *b, const float *at, int32_t g, int64_t n)
{
    const sp_toy *t = f->t;
    for (int64_t i = 0; i < n; i++) {
        const int32_t a = b->given[i];
        for (int64_t j = 0; j < i; j++) {
            const int32_t c = b->given[j];
            b->matrix[i * GIVEN + j] =
                covariance(&f->cov, t->xy + 2 * a, t->group[a], t->xy + 2 * c, t->group[c]);
        }
        b->matrix[i * GIVEN + i] = 1 + t->jitter;
        b->weight[i] = covariance(&f->cov, at, g, t->xy + 2 * a, t->group[a]);
    }
    cholesky(b->matrix, n, GIVEN);
    solve(b->matrix, n, b->weight);
    double left = 1 + t->jitter;
    for (int64_t i = 0; i < n; i++) left -= b->weight[i] * b->weight[i];
    solve_transposed(b->matrix, n, b->weight);
    return left > 0 ? left : 0;
}

static double mean_of(const sp_toy *t, const bench *b, int64_t n, int64_t l)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += b->weight[i] * (double)t->factor[(int64_t)b->given[i] * t->factors + l];
    return sum;
}

static double noise(const sp_toy *t, int64_t cell, int64_t l)
{
    return fth_random_normal_at(t->seed, 0, SP_TOY_NOISE, cell * t->factors + l);
}

static void draw_piece(void *arg, int64_t piece, int worker)
{
    const field *f = arg;
    sp_toy *t = f->t;
    bench *b = &f->bench[worker];
    const int64_t end = (piece + 1) * PIECE < f->n_todo ? (piece + 1) * PIECE : f->n_todo;
    for (int64_t k = piece * PIECE; k < end; k++) {
        const int64_t c = f->todo[k];
        const int64_t n = choose(f, b, t->xy + 2 * c, t->group[c]);
        const double deviation = sqrt(condition(f, b, t->xy + 2 * c, t->group[c], n));
        for (int64_t l = 0; l < t->factors; l++)
            t->factor[c * t->factors + l] =
                (float)(mean_of(t, b, n, l) + deviation * noise(t, c, l));
    }
}

/* ---- from coarse to fine ---- */

static int64_t rows_of(const sp_toy *t)
{
    return (t->cells + t->side - 1) / t->side;
}

/* The coarsest lattice: every stride-th cell of every stride-th row. */
static int64_t first_stride(const sp_toy *t)
{
    int64_t stride = 1;
    while (((t->side - 1) / stride + 1) * ((rows_of(t) - 1) / stride + 1) > FIRST) stride *= 2;
    return stride;
}

/* Every `every`-th cell from column x0 and row y0; returns their number. */
static int64_t select_cells(const sp_toy *t, int64_t every, int64_t x0, int64_t y0, int32_t *out)
{
    int64_t n = 0;
    for (int64_t y = y0; y < rows_of(t); y += every)
        for (int64_t x = x0; x < t->side && y * t->side + x < t->cells; x += every)
            out[n++] = (int32_t)(y * t->side + x);
    return n;
}

static void remember(field *f)
{
    for (int64_t k = 0; k < f->n_todo; k++, f->n_drawn++) {
        const int32_t c = f->todo[k];
        f->drawn[f->n_drawn] = c;
        memcpy(f->at + 2 * f->n_drawn, f->t->xy + 2 * c, 2 * sizeof(float));
    }
}

static fth_status draw_step(field *f, fth_err *err)
{
    sp_grid *grid = NULL;
    if (f->n_todo == 0) return FTH_OK;
    FTH_TRY(sp_grid_create(&grid, f->t->mem, f->at, f->n_drawn, err));
    f->grid = grid;
    const fth_status s =
        fth_context_loop(f->t->ctx, "factors", (f->n_todo + PIECE - 1) / PIECE, draw_piece, f, err);
    sp_grid_destroy(grid);
    f->grid = NULL;
    if (s == FTH_OK) remember(f);
    return s;
}

static fth_status draw_first(field *f, fth_err *err)
{
    sp_toy *t = f->t;
    const int64_t n = f->n_todo;
    double *a = NULL;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, sizeof *a * (uint64_t)(n * n), "coarse covariance",
                         (void **)&a, err));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            const int32_t p = f->todo[i], q = f->todo[j];
            a[i * n + j] = i == j ? 1 + t->jitter
                                  : covariance(&f->cov, t->xy + 2 * p, t->group[p], t->xy + 2 * q,
                                               t->group[q]);
        }
    cholesky(a, n, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < t->factors; l++) {
            double sum = 0;
            for (int64_t k = 0; k <= i; k++) sum += a[i * n + k] * noise(t, f->todo[k], l);
            t->factor[f->todo[i] * t->factors + l] = (float)sum;
        }
    fth_mem_release(t->mem, a, NULL);
    remember(f);
    return FTH_OK;
}

static fth_status draw_all(field *f, int32_t *todo, fth_err *err)
{
    const sp_toy *t = f->t;
    int64_t stride = first_stride(t);
    f->todo = todo;
    f->n_todo = select_cells(t, stride, 0, 0, todo);
    FTH_TRY(draw_first(f, err));
    for (stride /= 2; stride >= 1; stride /= 2) {
        const int64_t from[3][2] = {{stride, stride}, {stride, 0}, {0, stride}};
        for (int step = 0; step < 3; step++) {
            f->n_todo = select_cells(t, 2 * stride, from[step][0], from[step][1], todo);
            FTH_TRY(draw_step(f, err));
        }
    }
    return FTH_OK;
}

uint64_t sp_toy_near_bytes(const sp_toy *t)
{
    const uint64_t n = (uint64_t)t->cells, workers = (uint64_t)fth_context_threads(t->ctx);
    const uint64_t a_cell = 2 * sizeof(int32_t) + 2 * sizeof(float), a_place = 24; /* the grid */
    return sizeof(bench) * workers + (a_cell + a_place) * n + sizeof(double) * FIRST * FIRST +
           sizeof(float) * (uint64_t)t->factors * (1 << 16);
}

fth_status sp_toy_draw_near(sp_toy *t, fth_err *err)
{
    const uint64_t n = (uint64_t)t->cells, workers = (uint64_t)fth_context_threads(t->ctx);
    field f = {.t = t, .cov = fast_of(t)};
    void *memory = NULL;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY,
                         sizeof(bench) * workers + (2 * sizeof(int32_t) + 2 * sizeof(float)) * n,
                         "cells being drawn", &memory, err));
    f.bench = memory;
    f.at = (float *)(void *)(f.bench + workers);
    f.drawn = (int32_t *)(void *)(f.at + 2 * n);
    const fth_status s = draw_all(&f, f.drawn + n, err);
    fth_mem_release(t->mem, memory, NULL);
    return s;
}

/* ---- as another group ---- */

typedef struct as_group {
    field f;
    int32_t group;
    int64_t from;
    float *out; /* of cells [from, from + f.n_todo) */
} as_group;

static void predict_piece(void *arg, int64_t piece, int worker)
{
    const as_group *a = arg;
    const field *f = &a->f;
    const sp_toy *t = f->t;
    bench *b = &f->bench[worker];
    const int64_t end = (piece + 1) * PIECE < f->n_todo ? (piece + 1) * PIECE : f->n_todo;
    for (int64_t k = piece * PIECE; k < end; k++) {
        const float *at = t->xy + 2 * (a->from + k);
        const int64_t n = choose(f, b, at, a->group);
        condition(f, b, at, a->group, n);
        for (int64_t l = 0; l < t->factors; l++)
            a->out[k * t->factors + l] = (float)mean_of(t, b, n, l);
    }
}

static fth_status predict(as_group *a, const fth_sink *sink, int64_t block, fth_err *err)
{
    const sp_toy *t = a->f.t;
    for (a->from = 0; a->from < t->cells; a->from += block) {
        const int64_t left = t->cells - a->from, n = left < block ? left : block;
        a->f.n_todo = n;
        FTH_TRY(fth_context_loop(t->ctx, "factors of a group", (n + PIECE - 1) / PIECE,
                                 predict_piece, a, err));
        FTH_TRY(sink->write(sink->self, (int64_t[]){a->from, 0}, (int64_t[]){n, t->factors}, a->out,
                            err));
    }
    return FTH_OK;
}

/* Conditioned on the cells around each place, including the cell there. */
fth_status sp_toy_write_group_near(const sp_toy *t, int64_t g, const fth_sink *sink, fth_err *err)
{
    enum { BLOCK = 1 << 16 };
    const int64_t block = t->cells < BLOCK ? t->cells : BLOCK;
    const uint64_t workers = (uint64_t)fth_context_threads(t->ctx), n = (uint64_t)t->cells;
    sp_toy same = *t;
    as_group a = {.f = {.t = &same, .cov = fast_of(t), .n_drawn = t->cells}, .group = (int32_t)g};
    void *memory = NULL;
    sp_grid *grid = NULL;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY,
                         sizeof(bench) * workers + sizeof(int32_t) * n +
                             sizeof(float) * (uint64_t)(block * t->factors),
                         "cells being predicted", &memory, err));
    a.f.bench = memory;
    a.f.drawn = (int32_t *)(void *)(a.f.bench + workers);
    a.out = (float *)(void *)(a.f.drawn + n);
    for (int64_t i = 0; i < t->cells; i++) a.f.drawn[i] = (int32_t)i;
    fth_status s = sp_grid_create(&grid, t->mem, t->xy, t->cells, err);
    a.f.grid = grid;
    if (s == FTH_OK) s = predict(&a, sink, block, err);
    sp_grid_destroy(grid);
    fth_mem_release(t->mem, memory, NULL);
    return s;
}
