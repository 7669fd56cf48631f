/* grid.c - the nearest places, by a uniform grid of squares.
 *
 * Places are sorted by square, about two in each. A search proceeds outwards in rings of squares
 * and ends when the nearest unvisited square is farther than the k-th place found. All comparisons
 * are of (distance, number), so the lists are those of brute force, ties included.
 */
#include "grid.h"

#include "topk_heap.h"

#include <math.h>

/* ---- building ---- */

static uint64_t squares_at_most(int64_t n)
{
    return (uint64_t)n + 8;
}

uint64_t sp_grid_bytes(int64_t n)
{
    return sizeof(sp_grid) + sizeof(int32_t) * (squares_at_most(n) + 1) +
           (sizeof(int32_t) + 2 * sizeof(float)) * (uint64_t)n + 4 * 64;
}

static fth_status bounds(const float *xy, int64_t n, double lo[2], double hi[2], fth_err *err)
{
    for (int d = 0; d < 2; d++) lo[d] = hi[d] = n ? (double)xy[d] : 0;
    for (int64_t i = 0; i < 2 * n; i++) {
        const double v = (double)xy[i];
        if (!isfinite(v))
            return FTH_FAIL(err, FTH_E_NUMERIC, "coordinate %d of place %lld is %g: not a position",
                            (int)(i & 1), (long long)(i / 2), v);
        if (v < lo[i & 1]) lo[i & 1] = v;
        if (v > hi[i & 1]) hi[i & 1] = v;
    }
    return FTH_OK;
}

/* Squares of one size, about n / 2 of them, also when all places lie on a line or on a point. */
static void shape(sp_grid *g, const double lo[2], const double hi[2])
{
    const double w = hi[0] - lo[0], h = hi[1] - lo[1], long_side = w > h ? w : h;
    const double n = g->n > 2 ? (double)g->n : 2;
    const double flat = 2 * long_side / n, even = sqrt(w * h * 2 / n);
    g->squares.x0 = lo[0];
    g->squares.y0 = lo[1];
    g->squares.edge = even > flat ? even : flat;
    if (!(g->squares.edge > 0)) g->squares.edge = 1;
    g->squares.inv = 1 / g->squares.edge;
    if (!isfinite(g->squares.inv)) { /* extents near the largest finite number */
        g->squares.edge = 1;
        g->squares.inv = 1;
    }
    g->squares.nx = (int64_t)(w * g->squares.inv) + 1;
    g->squares.ny = (int64_t)(h * g->squares.inv) + 1;
}

static int64_t square_of(const sp_grid *g, const float *xy)
{
    return sp_grid_index((double)xy[1], g->squares.y0, g->squares.inv, g->squares.ny) *
               g->squares.nx +
           sp_grid_index((double)xy[0], g->squares.x0, g->squares.inv, g->squares.nx);
}

/* Counting: a place's number stays in order within its square. */
static void fill(sp_grid *g, const float *xy)
{
    const int64_t squares = g->squares.nx * g->squares.ny;
    for (int64_t s = 0; s <= squares; s++) g->start[s] = 0;
    for (int64_t i = 0; i < g->n; i++) g->start[square_of(g, xy + 2 * i) + 1]++;
    for (int64_t s = 0; s < squares; s++) g->start[s + 1] += g->start[s];
    for (int64_t i = g->n - 1; i >= 0; i--) {
        const int64_t s = square_of(g, xy + 2 * i);
        const int32_t to = --g->start[s + 1];
        g->id[to] = (int32_t)i;
        g->at[to][0] = xy[2 * i];
        g->at[to][1] = xy[2 * i + 1];
    }
    /* Each end has become the start of its square: shift by one. */
    for (int64_t s = 0; s < squares; s++) g->start[s] = g->start[s + 1];
    g->start[squares] = (int32_t)g->n;
}

fth_status sp_grid_create(sp_grid **out, fth_mem *mem, const float *xy, int64_t n, fth_err *err)
{
    *out = NULL;
    if (n >= INT32_MAX)
        return FTH_FAIL(err, FTH_E_SIZE_OVERFLOW,
                        "%lld places: lists of neighbours hold numbers below 2^31", (long long)n);
    double lo[2], hi[2];
    FTH_TRY(bounds(xy, n, lo, hi, err));
    sp_grid *g = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof *g, "grid", (void **)&g, err));
    *g = (sp_grid){.mem = mem, .n = n};
    shape(g, lo, hi);
    const uint64_t squares = (uint64_t)(g->squares.nx * g->squares.ny);
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *g->start * (squares + 1),
                                "squares of the grid", (void **)&g->start, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *g->id * (uint64_t)n, "places of the grid",
                         (void **)&g->id, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *g->at * (uint64_t)n, "positions of the grid",
                         (void **)&g->at, err);
    if (s != FTH_OK) {
        sp_grid_destroy(g);
        return s;
    }
    fill(g, xy);
    *out = g;
    return FTH_OK;
}

void sp_grid_destroy(sp_grid *g)
{
    if (!g) return;
    fth_mem_release(g->mem, g->start, NULL);
    fth_mem_release(g->mem, g->id, NULL);
    fth_mem_release(g->mem, g->at, NULL);
    fth_mem_release(g->mem, g, NULL);
}

/* ---- searching ---- */

size_t sp_grid_room(int64_t k)
{
    return sizeof(sp_near) * (size_t)(k > 0 ? k : 1);
}

/* Squares [from, to] of a row; their places lie one after the other. */
static void look(const sp_grid *g, int64_t row, int64_t from, int64_t to, const double q[2],
                 int32_t except, sp_topk *f)
{
    if (from < 0) from = 0;
    if (to >= g->squares.nx) to = g->squares.nx - 1;
    if (row < 0 || row >= g->squares.ny || from > to) return;
    const int32_t end = g->start[row * g->squares.nx + to + 1];
    for (int32_t i = g->start[row * g->squares.nx + from]; i < end; i++) {
        const double dx = (double)g->at[i][0] - q[0], dy = (double)g->at[i][1] - q[1];
        const double d2 = dx * dx + dy * dy;
        if (f->n == f->k && d2 > f->v[0].d2) continue;
        if (g->id[i] != except) sp_topk_offer(f, d2, g->id[i]);
    }
}

void sp_grid_nearest(const sp_grid *g, const float xy[2], int64_t k, int64_t except, int32_t *out,
                     double *d2, void *room)
{
    sp_topk f = {.v = room, .k = k};
    const double q[2] = {(double)xy[0], (double)xy[1]};
    const int64_t cx = sp_grid_index(q[0], g->squares.x0, g->squares.inv, g->squares.nx);
    const int64_t cy = sp_grid_index(q[1], g->squares.y0, g->squares.inv, g->squares.ny);
    const int32_t not_this = except >= 0 ? (int32_t)except : -1;
    for (int64_t i = 0; i < k; i++) out[i] = -1;
    for (int64_t i = 0; d2 && i < k; i++) d2[i] = HUGE_VAL;
    if (k <= 0 || g->n == 0) return;
    for (int64_t r = 0;; r++) {
        look(g, cy - r, cx - r, cx + r, q, not_this, &f);
        const int64_t top = cy - r + 1 > 0 ? cy - r + 1 : 0,
                      end = cy + r < g->squares.ny ? cy + r : g->squares.ny;
        for (int64_t y = top; r && y < end; y++) {
            look(g, y, cx - r, cx - r, q, not_this, &f);
            look(g, y, cx + r, cx + r, q, not_this, &f);
        }
        if (r) look(g, cy + r, cx - r, cx + r, q, not_this, &f);
        const double x = sp_grid_beyond(q[0], g->squares.x0, g->squares.edge, cx, r, g->squares.nx);
        const double y = sp_grid_beyond(q[1], g->squares.y0, g->squares.edge, cy, r, g->squares.ny);
        const double least = x < y ? x : y;
        if (isinf(least) || (f.n == k && least * least > f.v[0].d2)) break;
    }
    sp_topk_take(&f, out, d2);
}
