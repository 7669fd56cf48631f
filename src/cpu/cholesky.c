/* cholesky.c - LAPACK for small matrices, blocks of our own for large ones.
 *
 * A large factorisation goes left to right by block columns: every block first takes all updates
 * from the left in one long product, then the column is factored. The blocks of a column are tasks
 * for the team; each is one BLAS call of a shape that depends on n alone, so the bits do not depend
 * on who did what, nor on whether there is a team.
 */
#include "ops/cholesky.h"

#include "base/checked.h"
#include "cpu/blas.h"

#include <string.h>

/* Columns of a block column, and rows of one task: tall tasks repack the short operand less often.
 */
enum { WHOLE_BELOW = 512, BLOCK = 256, TALL = 512 };

typedef struct work {
    fth_dtype t;
    int64_t size, n;
    fth__matrix_out a;
    int64_t j; /* first column of the current block column */
} work;

static char *at(const work *w, int64_t i, int64_t j)
{
    return (char *)w->a.data + (w->a.cols ? j * w->a.ld + i : i * w->a.ld + j) * w->size;
}

/* Task 0 is the diagonal block; the others are the rows below it, TALL at a time. */
static int64_t tasks_below(const work *w)
{
    return fth__ceil_div_i64(fth__max_i64(w->n - w->j - BLOCK, 0), TALL);
}

/* Rows of the current block column take the updates from everything to their left. */
static void update(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const int64_t j = w->j, nb = fth__min_i64(BLOCK, w->n - j);
    const int64_t i = task == 0 ? j : j + BLOCK + (task - 1) * TALL;
    const fth__matrix left = {at(w, i, 0), w->a.ld, w->a.cols};
    const fth__matrix_out c = {at(w, i, j), w->a.ld, w->a.cols};
    if (task == 0)
        fth__blas_rank_k(w->t, nb, j, left, c);
    else
        fth__blas_gemm(w->t, fth__min_i64(TALL, w->n - i), nb, j, -1.0, left,
                       (fth__matrix){at(w, j, 0), w->a.ld, !w->a.cols}, true, 1.0, c);
}

static void divide(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const int64_t i = w->j + BLOCK + task * TALL, j = w->j;
    fth__blas_solve_right(w->t, fth__min_i64(TALL, w->n - i), BLOCK,
                          (fth__matrix){at(w, j, j), w->a.ld, w->a.cols},
                          (fth__matrix_out){at(w, i, j), w->a.ld, w->a.cols});
}

/* LAPACK lets NaN pass; a factor has a positive diagonal or it is none. */
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

static int64_t factor(work *w, fth_team *team)
{
    if (w->n < WHOLE_BELOW) return factor_block(w, 0, w->n);
    for (w->j = 0; w->j < w->n; w->j += BLOCK) {
        if (w->j > 0) fth_team_run(team, 1 + tasks_below(w), update, w);
        const int64_t order = factor_block(w, w->j, fth__min_i64(BLOCK, w->n - w->j));
        if (order > 0) return w->j + order;
        fth_team_run(team, tasks_below(w), divide, w);
    }
    return 0;
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

/* The same along rows that are contiguous on both sides. */
static void copy_rows(const work *w, char *dst, int64_t d_ld, const char *src, int64_t s_ld,
                      bool upper)
{
    const int64_t size = w->size;
    for (int64_t i = 0; i < w->n; i++) {
        const int64_t keep = upper ? w->n - i : i + 1, from = upper ? i : 0,
                      clear = upper ? 0 : i + 1;
        char *to = dst + i * d_ld * size;
        if (dst != src)
            memmove(to + from * size, src + (i * s_ld + from) * size, (size_t)(keep * size));
        memset(to + clear * size, 0, (size_t)((w->n - keep) * size));
    }
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
        copy_rows(w, out, o_row, in, b->s_row, false);
    } else {
        w->a = (fth__matrix_out){out, o_col, true};
        copy_rows(w, out, o_col, in, b->s_col, true);
    }
    const int64_t order = factor(w, call->team);
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
    work w = {.t = node->in[0].dtype, .size = fth_dtype_size(node->in[0].dtype), .n = b.n_row};
    for (bool go = fth__loop_start(&b.loop); go; go = fth__loop_next(&b.loop)) {
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

const fth_kernel fth__cpu_cholesky = {
    .op = "cholesky", .supports = supports, .scratch = scratch, .run = run, .flags = FTH_OP_TEAM};
