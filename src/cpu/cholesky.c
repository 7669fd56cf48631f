/* cholesky.c - LAPACK for small matrices, recursive halving for large ones.
 *
 * A large matrix is halved: the first half is factored, the rows below it are solved, the rest
 * takes their update and is factored in turn. So nearly all work is in solves and products of half
 * the size, at which BLAS is fastest. Both are cut into tasks for the team; each task is one BLAS
 * call of a shape that depends on n alone, so the bits depend neither on the schedule nor on
 * whether there is a team.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/blas.h"
#include "ops/asking.h"
#include "ops/matrix.h"

#include <string.h>

/* LAPACK takes matrices of up to WHOLE rows. STRIP: rows of a task. Few tasks, because each copies
 * the triangle it solves with, and an even number of them, for two workers. With both at
 * 768, n = 3000 ran 0.99 to 1.07 times as fast as LAPACK alone on one thread, block columns of 256
 * 0.89 to 0.95 times (OpenBLAS 0.3.21). STEP: strips start at multiples of a line of cache. */
enum { WHOLE = 768, STRIP = 768, STEP = 64 };

/* Products that take as long as the copy of an element, roughly. */
static const double COPY = 16;

typedef struct work {
    fth_dtype t;
    int64_t size, n;
    fth__matrix_out a;
    int64_t left, mid, end; /* columns [left, mid) are done; rows [mid, end) follow from them */
    int64_t strip, strips;  /* of those rows */
    fth__asking ask;        /* of all matrices, in products */
} work;

static char *at(const work *w, int64_t i, int64_t j)
{
    return (char *)w->a.data + (w->a.cols ? j * w->a.ld + i : i * w->a.ld + j) * w->size;
}

static int64_t round_up(int64_t n, int64_t step)
{
    return fth__ceil_div_i64(n, step) * step;
}

static void cut_rows(work *w)
{
    const int64_t rows = w->end - w->mid;
    const int64_t wanted = 2 * fth__ceil_div_i64(rows, 2 * STRIP);
    w->strip = round_up(fth__ceil_div_i64(rows, wanted), STEP);
    w->strips = fth__ceil_div_i64(rows, w->strip);
    FTH_ASSERT(w->strips * w->strip >= rows && (w->strips - 1) * w->strip < rows);
}

static int64_t strip_at(const work *w, int64_t s)
{
    return w->mid + s * w->strip;
}
static int64_t strip_rows(const work *w, int64_t s)
{
    return fth__min_i64(w->strip, w->end - strip_at(w, s));
}

/* Rows of one strip, divided by the triangle above them. */
static void divide(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    fth__blas_solve_right(w->t, strip_rows(w, task), w->mid - w->left,
                          (fth__matrix){at(w, w->left, w->left), w->a.ld, w->a.cols},
                          (fth__matrix_out){at(w, strip_at(w, task), w->left), w->a.ld, w->a.cols});
}

/* One tile of the rest takes its update: tiles below the diagonal first, they are the large ones;
 * task i(i-1)/2 + j is tile (i, j). */
static void update(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const int64_t below = w->strips * (w->strips - 1) / 2, k = w->mid - w->left;
    int64_t i = 1, j = task;
    while (task < below && j >= i) j -= i++;
    if (task >= below) i = j = task - below;
    FTH_ASSERT(j >= 0 && j <= i && i < w->strips);
    const int64_t row = strip_at(w, i), col = strip_at(w, j);
    const fth__matrix left = {at(w, row, w->left), w->a.ld, w->a.cols};
    const fth__matrix_out c = {at(w, row, col), w->a.ld, w->a.cols};
    if (i == j)
        fth__blas_rank_k(w->t, strip_rows(w, i), k, left, c);
    else
        fth__blas_gemm(w->t, strip_rows(w, i), strip_rows(w, j), k, -1.0, left,
                       (fth__matrix){at(w, col, w->left), w->a.ld, !w->a.cols}, true, 1.0, c);
}

/* LAPACK lets NaN pass: a factor must have a positive diagonal. */
static int64_t bad_diagonal(const work *w, int64_t from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fth__elem_get(w->t, at(w, from + i, from + i), 0).re > 0.0)) return i + 1;
    return 0;
}

static int64_t factor_block(const work *w, int64_t j, int64_t n)
{
    const int64_t order =
        fth__blas_cholesky(w->t, n, (fth__matrix_out){at(w, j, j), w->a.ld, w->a.cols});
    return order > 0 ? order : bad_diagonal(w, j, n);
}

/* Rows and columns [from, from+n). 0, or the order of the minor that is not positive definite. */
static int64_t factor(work *w, int64_t from, int64_t n, fth_team *team)
{
    const double size = (double)n;
    if (n <= WHOLE) {
        if (!fth__asking_on(&w->ask, size * size * size / 6)) return 0;
        const int64_t order = factor_block(w, from, n);
        return order > 0 ? from + order : 0;
    }
    const int64_t half = round_up(n / 2, STEP);
    FTH_ASSERT(half > 0 && half < n);
    const int64_t order = factor(w, from, half, team);
    if (order > 0) return order;
    w->left = from;
    w->mid = from + half;
    w->end = from + n;
    cut_rows(w);
    const double above = (double)half, below = size - above;
    fth__asking_loop(&w->ask, below * above * above / 2);
    fth_team_run(team, w->strips, divide, w);
    fth__asking_loop(&w->ask, below * below * above / 2);
    fth_team_run(team, w->strips * (w->strips + 1) / 2, update, w);
    return factor(w, from + half, n - half, team);
}

/* Lower triangle of dst = that of src; above it zero. */
static void copy_lower(const work *w, char *dst, int64_t d_row, int64_t d_col, const char *src,
                       int64_t s_row, int64_t s_col)
{
    const size_t size = (size_t)w->size;
    for (int64_t i = 0; i < w->n; i++)
        for (int64_t j = 0; j < w->n; j++) {
            char *to = dst + (i * d_row + j * d_col) * w->size;
            if (j > i)
                memset(to, 0, size);
            else if (dst != src)
                memcpy(to, src + (i * s_row + j * s_col) * w->size, size);
        }
}

/* The same along rows that are contiguous on both sides, some rows per task. */
typedef struct copy {
    const work *w;
    char *dst;
    const char *src;
    int64_t d_ld, s_ld;
    bool upper;
} copy;

static void copy_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const copy *c = arg;
    const int64_t size = c->w->size, n = c->w->n;
    for (int64_t i = task * STEP; i < fth__min_i64((task + 1) * STEP, n); i++) {
        const int64_t keep = c->upper ? n - i : i + 1, from = c->upper ? i : 0,
                      clear = c->upper ? 0 : i + 1;
        char *to = c->dst + i * c->d_ld * size;
        if (c->dst != c->src)
            memmove(to + from * size, c->src + (i * c->s_ld + from) * size, (size_t)(keep * size));
        memset(to + clear * size, 0, (size_t)((n - keep) * size));
    }
}

static void copy_rows(work *w, fth_team *team, char *dst, int64_t d_ld, const char *src,
                      int64_t s_ld, bool upper)
{
    copy c = {w, dst, src, d_ld, s_ld, upper};
    const double products = COPY * (double)w->n * (double)w->n;
    if (w->n > WHOLE)
        fth__asking_loop(&w->ask, products);
    else
        w->ask.done += products;
    fth_team_run(w->n > WHOLE ? team : NULL, fth__ceil_div_i64(w->n, STEP), copy_some, &c);
}

static bool is_packed(const fth_desc *d)
{
    return d->row != d->n_axes - 1 && d->col != d->n_axes - 1;
}

static uint64_t scratch(const fth_call *call)
{
    const fth_desc *d = &call->node->out[0];
    const int64_t n = d->size[d->row];
    return is_packed(d) ? (uint64_t)(n * n * fth_dtype_size(d->dtype)) : 0;
}

static int64_t factor_one(const fth_call *call, const fth__batch *b, work *w, const char *in,
                          char *out)
{
    const fth_desc *d = &call->node->out[0];
    const int64_t o_row = call->out[0].stride[b->row], o_col = call->out[0].stride[b->col];
    if (is_packed(d)) {
        w->a = (fth__matrix_out){call->scratch, w->n, false};
        copy_lower(w, call->scratch, w->n, 1, in, b->s_row, b->s_col);
    } else if (b->col == d->n_axes - 1) {
        w->a = (fth__matrix_out){out, o_row, false};
        copy_rows(w, call->team, out, o_row, in, b->s_row, false);
    } else {
        w->a = (fth__matrix_out){out, o_col, true};
        copy_rows(w, call->team, out, o_col, in, b->s_col, true);
    }
    const int64_t order = factor(w, 0, w->n, call->team);
    if (is_packed(d)) copy_lower(w, out, o_row, o_col, call->scratch, w->n, 1);
    return order;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__matrix_attr *attr = node->attr;
    fth__batch b;
    fth__batch_init(&b, &node->in[0], &call->in[0], attr->row, attr->col);
    fth__batch_follow(&b, 1, &node->in[0], &node->out[0], &call->out[0]);
    FTH_ASSERT(b.n_row == b.n_col && b.n_row == node->in[0].size[b.row]); /* whole matrices */
    work w = {.t = node->in[0].dtype, .size = fth_dtype_size(node->in[0].dtype), .n = b.n_row};
    const double size = (double)w.n;
    double all = size * size * size / 6 + COPY * size * size;
    for (int i = 0; i < b.loop.n; i++) all *= (double)b.loop.extent[i];
    w.ask = fth__asking_begin(call, all, FTH__ASK_PRODUCTS);
    for (bool go = fth__loop_start(&b.loop); go && !w.ask.off; go = fth__loop_next(&b.loop)) {
        const int64_t order =
            factor_one(call, &b, &w, (const char *)call->in[0].data + b.loop.at[0] * w.size,
                       (char *)call->out[0].data + b.loop.at[1] * w.size);
        if (order > 0) return fth__cholesky_fail(call, &b, order);
    }
    return FTH_OK;
}

static bool supports(const fth_node *node)
{
    return fth__blas_fits(&node->out[0], node->out[0].row) &&
           fth__blas_fits(&node->out[0], node->out[0].col);
}

static uint32_t libraries(const fth_node *node, uint64_t *more)
{
    (void)node, (void)more;
    return 1u << FTH_LIB_OPENBLAS;
}

const fth_kernel fth__cpu_cholesky = {.op = "cholesky",
                                      .supports = supports,
                                      .scratch = scratch,
                                      .run = run,
                                      .flags = FTH_OP_TEAM,
                                      .libraries = libraries};
