/* fused_tail.c - reductions at the tail of a fused program, block by block.
 *
 * Two walks. Along: the reduced axis is innermost, a block is rows of it. Across: a block is rows
 * of the reduced axis and columns of results. Both join in the order that ops/fused.h defines.
 */
#include "cpu/fused_tail.h"
#include "cpu/windows.h"

#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

void fth__totals_clear(const fth__vm *vm, void *wide, int64_t n)
{
    const fth__wide start = fth__identity((int)vm->tail.red, vm->tail.to);
    fth__copy_block((int64_t)vm->tail.wide, 1, n, wide, n, 1, &start, 0, 0);
}

void fth__totals_open(const fth__worker *w, fth__totals *t, const fth__spot *spot, int dim,
                      int64_t n)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t size = fth_dtype_size(tail->to), wide = (int64_t)tail->wide,
                  kept = (int64_t)tail->state;
    FTH_ASSERT(n >= 0 && n <= vm->block); /* numbers that w->wide has room for */
    FTH_ASSERT(vm->call->first || tail->total_in_out || kept > 0);
    *t = (fth__totals){.partial = w->wide[0], .super = w->wide[1], .total = w->wide[2], .n = n};
    t->out = (char *)vm->call->out[0].data + spot->at[FTH_PROGRAM_INPUTS] * size;
    t->out_step = dim < 0 ? 0 : vm->stride[FTH_PROGRAM_INPUTS][dim];
    t->state_step = dim < 0 ? 0 : vm->stride[FTH__VM_STATE][dim] * kept;
    if (kept) t->state = (char *)vm->call->state.data + spot->at[FTH__VM_STATE] * kept;
    fth__totals_clear(vm, t->partial, n);
    fth__totals_clear(vm, t->super, n);
    fth__totals_clear(vm, t->total, n);
    if (vm->call->first) return;
    for (int64_t i = 0; i < n; i++) {
        const char *state = t->state ? t->state + i * t->state_step : NULL;
        if (tail->total_in_out) {
            const fth__wide v = fth__load(tail->to, t->out + i * t->out_step * size);
            memcpy(t->total + i * wide, &v, tail->wide);
        } else if (state) {
            memcpy(t->total + i * wide, state, tail->wide);
        }
        if (tail->has_super && state)
            memcpy(t->super + i * wide, state + (tail->total_in_out ? 0 : wide), tail->wide);
    }
}

static const fth_dtype wide_dtype[] = {
    [FTH__KIND_INT] = FTH_I64, [FTH__KIND_REAL] = FTH_F64, [FTH__KIND_COMPLEX] = FTH_C128};

static void store_totals(const fth__worker *w, const fth__totals *t)
{
    const fth__tail *tail = &w->vm->tail;
    const int64_t size = fth_dtype_size(tail->to), wide = (int64_t)tail->wide;
    const fth_dtype from = wide_dtype[tail->kind];
    const void *src[3] = {t->total, NULL, NULL};
    fth__vec_one_nan(w->vm->vec, from, t->n, t->total);
    if (tail->to == from) {
        fth__copy_block(size, 1, t->n, t->out, 0, t->out_step, t->total, 0, 1);
    } else if (tail->to == FTH_F32 || tail->to == FTH_C64) {
        const bool dense = t->out_step == 1;
        char *narrow = dense ? t->out : fth__spare_slot(w);
        (*w->vm->vec->cast)[from][tail->to](t->n, narrow, src);
        if (!dense) fth__copy_block(size, 1, t->n, t->out, 0, t->out_step, narrow, 0, 1);
    } else {
        for (int64_t i = 0; i < t->n; i++) {
            fth__wide v = {0};
            memcpy(&v, t->total + i * wide, tail->wide);
            fth__store(tail->to, t->out + i * t->out_step * size, v);
        }
    }
}

void fth__totals_close(const fth__worker *w, const fth__totals *t)
{
    const fth__tail *tail = &w->vm->tail;
    const int64_t wide = (int64_t)tail->wide;
    if (w->vm->call->last || tail->total_in_out) store_totals(w, t);
    if (w->vm->call->last || !t->state) return;
    for (int64_t i = 0; i < t->n; i++) {
        char *state = t->state + i * t->state_step;
        if (!tail->total_in_out) memcpy(state, t->total + i * wide, tail->wide);
        if (tail->has_super)
            memcpy(state + (tail->total_in_out ? 0 : wide), t->super + i * wide, tail->wide);
    }
}

void fth__totals_add(const fth__vm *vm, const fth__totals *t, int64_t from, int64_t n,
                     const void *partial, int64_t end)
{
    const fth__tail *tail = &vm->tail;
    const int64_t at = from * (int64_t)tail->wide;
    FTH_ASSERT(from >= 0 && from + n <= t->n && end <= tail->n);
    fth__join_fn *join = vm->vec->tail->join[tail->red][tail->kind];
    if (!tail->has_super) {
        join(n, t->total + at, partial);
        return;
    }
    join(n, t->super + at, partial);
    if (end % tail->super != 0 && end != tail->n) return;
    join(n, t->total + at, t->super + at);
    fth__totals_clear(vm, t->super + at, n);
}

const char *fth__tail_values(const fth__worker *w, int64_t n)
{
    const fth__vm *vm = w->vm;
    const int r = vm->p->out_reg[0];
    const int place = vm->reg[r].place;
    if (place != FTH__AT_CELL && place != FTH__AT_SCALAR) return w->at[r];
    char *block = fth__spare_slot(w);
    fth__copy_block(fth__reg_size(vm, r), 1, n, block, n, 1, w->at[r], 0, 0);
    return block;
}

/* ---- along ---------------------------------------------------------------------------- */

/* Elements [at, at+n) of one result, `at` on the grid: partials of all blocks, then in order. */
static void row_done(const fth__vm *vm, const fth__totals *t, int64_t result, const char *v,
                     int64_t at, int64_t n)
{
    const fth__tail *tail = &vm->tail;
    const int64_t blocks = fth__ceil_div_i64(n, tail->block), wide = (int64_t)tail->wide;
    fth__join_fn *fold = vm->vec->tail->fold[tail->red][tail->kind];
    FTH_ASSERT(at % tail->block == 0 && blocks <= vm->block); /* on the grid; room for partials */
    vm->vec->tail->blocks[tail->red][tail->from](n, tail->block, v, t->partial);
    if (!tail->has_super) {
        fold(blocks, t->total + result * wide, t->partial);
        return;
    }
    for (int64_t b = 0; b < blocks; b++)
        fth__totals_add(vm, t, result, 1, t->partial + b * wide,
                        at + fth__min_i64((b + 1) * tail->block, n));
}

/* A long reduction by one thread checks for cancellation every 64 blocks: at most 65,536 elements,
 * beside which the check costs nothing. */
static bool is_cancelled(const fth__vm *vm, int64_t *blocks)
{
    return (++*blocks & 63) == 0 && fth_team_cancelled(vm->call->team);
}

static void along_rows(fth__worker *w, const fth__spot *spot, int64_t rows)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t n = vm->extent[vm->col_dim], size = fth_dtype_size(fth__vec_dtype(tail->from));
    fth__totals t;
    fth__totals_open(w, &t, spot, vm->row_dim, rows);
    fth__spot place;
    int64_t blocks = 0;
    for (int64_t c = 0; c < n && !is_cancelled(vm, &blocks); c += vm->cols) {
        const int64_t cols = fth__min_i64(vm->cols, n - c);
        fth__spot_move(vm, spot, vm->col_dim, c, &place);
        fth__block_eval(w, &place, rows, cols);
        const char *v = fth__tail_values(w, rows * cols);
        if (fth__tail_plain(tail))
            vm->vec->tail->column[tail->red][tail->from](cols, rows, 1, cols, v, t.total);
        else
            for (int64_t r = 0; r < rows; r++)
                row_done(vm, &t, r, v + r * cols * size, vm->tail_origin + c, cols);
    }
    fth__totals_close(w, &t);
}

static void along(fth__worker *w)
{
    const fth__vm *vm = w->vm;
    unsigned skip = 1u << vm->col_dim;
    if (vm->row_dim >= 0) skip |= 1u << vm->row_dim;
    const int64_t n_rows = vm->row_dim < 0 ? 1 : vm->extent[vm->row_dim];
    int64_t index[FTH_MAX_AXES + 1] = {0};
    fth__spot outer = {{0}}, spot;
    do {
        for (int64_t r = 0; r < n_rows; r += vm->rows) {
            fth__spot_move(vm, &outer, vm->row_dim, r, &spot);
            along_rows(w, &spot, fth__min_i64(vm->rows, n_rows - r));
        }
    } while (fth__spot_next(vm, skip, index, &outer));
}

/* ---- across --------------------------------------------------------------------------- */

/* Rows [at, at+rows) of the reduced axis, of which whole blocks are added up. */
static void rows_done(const fth__worker *w, const fth__totals *t, const char *v, int64_t at,
                      int64_t rows)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t size = fth_dtype_size(fth__vec_dtype(tail->from));
    fth__column_fn *column = vm->vec->tail->column[tail->red][tail->from];
    if (fth__tail_plain(tail)) {
        column(rows, t->n, t->n, 1, v, t->total);
        return;
    }
    for (int64_t r = 0; r < rows;) {
        const int64_t some = fth__min_i64(rows - r, tail->block - (at + r) % tail->block);
        column(some, t->n, t->n, 1, v + r * t->n * size, t->partial);
        r += some;
        if ((at + r) % tail->block != 0 && at + r != tail->n) continue;
        fth__totals_add(vm, t, 0, t->n, t->partial, at + r);
        fth__totals_clear(vm, t->partial, t->n);
    }
}

static void across(fth__worker *w)
{
    const fth__vm *vm = w->vm;
    const unsigned skip = 1u << vm->col_dim | 1u << vm->row_dim;
    const int64_t n = vm->extent[vm->row_dim], n_cols = vm->extent[vm->col_dim];
    int64_t index[FTH_MAX_AXES + 1] = {0}, blocks = 0;
    fth__spot outer = {{0}}, column, spot;
    do {
        for (int64_t c = 0; c < n_cols; c += vm->cols) {
            const int64_t cols = fth__min_i64(vm->cols, n_cols - c);
            fth__totals t;
            fth__spot_move(vm, &outer, vm->col_dim, c, &column);
            fth__totals_open(w, &t, &column, vm->col_dim, cols);
            for (int64_t r = 0; r < n && !is_cancelled(vm, &blocks); r += vm->rows) {
                const int64_t rows = fth__min_i64(vm->rows, n - r);
                fth__spot_move(vm, &column, vm->row_dim, r, &spot);
                fth__block_eval(w, &spot, rows, cols);
                rows_done(w, &t, fth__tail_values(w, rows * cols), vm->tail_origin + r, rows);
            }
            fth__totals_close(w, &t);
        }
    } while (fth__spot_next(vm, skip, index, &outer));
}

void fth__vm_tail(const fth__vm *vm)
{
    FTH_ASSERT(vm->tail.exact || vm->extent[vm->tail_at] == 0 ||
               vm->tail_origin % vm->tail.block == 0); /* on the grid */
    if (vm->team) {
        fth__team_tail(vm);
        return;
    }
    if (fth__window_run(vm)) return;
    fth__worker w;
    fth__worker_init(&w, vm, vm->call->scratch);
    if (vm->col_dim == vm->tail_at)
        along(&w);
    else
        across(&w);
}
