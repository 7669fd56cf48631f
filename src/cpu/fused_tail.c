/* fused_tail.c - reductions at the tail of a fused program, block by block.
 *
 * Two walks. Along: the reduced axis is innermost, a block is rows of it. Across: a block is rows
 * of the reduced axis and columns of results. Both join in the order that ops/fused.h defines.
 */
#include "cpu/fused_tail.h"
#include "cpu/windows.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/extreme.h"

#include <string.h>

/* Rows of a loop over columns between checks for cancellation, and columns: lines of memory long
 * enough to be fetched ahead. */
enum { EXTREME_ROWS = 256, EXTREME_COLS = 1 << 14 };

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
    if (kept) t->state = (char *)vm->call->state[0].data + spot->at[FTH__VM_STATE] * kept;
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
    const int64_t size = fth_dtype_size(tail->to);
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
        fth__store_run(tail->to, t->out, t->out_step * size, t->n, t->total);
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

/* The values of the block just computed, as a block. */
static const char *tail_values(const fth__worker *w, int64_t n)
{
    const fth__vm *vm = w->vm;
    const int r = vm->p->out_reg[0];
    const int place = vm->reg[r].place;
    if (place != FTH__AT_CELL && place != FTH__AT_SCALAR) return w->at[r];
    char *block = fth__spare_slot(w);
    fth__copy_block(fth__reg_size(vm, r), 1, n, block, n, 1, w->at[r], 0, 0);
    return block;
}

void fth__inner_open(const fth__worker *w, int64_t n)
{
    const fth__tail *tail = &w->vm->tail;
    const fth__wide start = fth__identity((int)tail->inner_red, tail->from);
    const int64_t wide = fth_dtype_size(wide_dtype[tail->inner_kind]);
    fth__copy_block(wide, 1, n, w->inner, n, 1, &start, 0, 0);
}

/* As store_totals rounds, and with 16 bits widened again as an operand is. */
const char *fth__inner_close(const fth__worker *w, int64_t n)
{
    const fth__tail *tail = &w->vm->tail;
    const fth_dtype from = wide_dtype[tail->inner_kind], to = tail->from;
    const void *src[3] = {w->inner, NULL, NULL};
    fth__vec_one_nan(w->vm->vec, from, n, w->inner);
    if (to == from) return w->inner;
    if (to == FTH_F32 || to == FTH_C64) {
        (*w->vm->vec->cast)[from][to](n, w->values, src);
        return w->values;
    }
    if (tail->inner_kind == FTH__KIND_INT) {
        fth__store_run(to, w->values, fth_dtype_size(to), n, w->inner);
        return w->values;
    }
    const int64_t wide = fth_dtype_size(from), size = fth_dtype_size(fth__vec_dtype(to));
    for (int64_t i = 0; i < n; i++) {
        fth__wide v = {0};
        fth__cell memory = {0}, cell;
        memcpy(&v, w->inner + i * wide, (size_t)wide);
        fth__store(to, &memory, v);
        fth__cell_load(to, &memory, &cell);
        memcpy(w->values + i * size, &cell, (size_t)size);
    }
    return w->values;
}

void fth__spot_inner(const fth__vm *vm, const fth__spot *from, int64_t by, fth__spot *to)
{
    for (int u = 0; u < vm->n_used; u++) {
        const int a = vm->used[u];
        to->at[a] = from->at[a] + by * vm->inner[a];
    }
}

const char *fth__tail_block(fth__worker *w, const fth__spot *spot, int64_t rows, int64_t cols)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t n = rows * cols;
    fth__spot at;
    if (tail->inner == 0) {
        fth__block_eval(w, spot, rows, cols);
        return tail_values(w, n);
    }
    fth__inner_open(w, n);
    for (int64_t i = 0; i < tail->inner; i++) {
        fth__spot_inner(vm, spot, i, &at);
        fth__block_eval(w, &at, rows, cols);
        vm->vec->tail->column[tail->inner_red][tail->inner_from](1, n, n, 1, tail_values(w, n),
                                                                 w->inner);
    }
    return fth__inner_close(w, n);
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

/* A reduction by one thread checks for cancellation wherever it is in its loops; once it is
 * cancelled it leaves all of them. */
static bool is_cancelled(fth__worker *w, int64_t elements)
{
    return !fth__asking_on(&w->ask, (double)elements);
}

static void along_rows(fth__worker *w, const fth__spot *spot, int64_t rows)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t n = vm->extent[vm->col_dim], size = fth_dtype_size(fth__vec_dtype(tail->from));
    fth__totals t;
    fth__totals_open(w, &t, spot, vm->row_dim, rows);
    fth__spot place;
    for (int64_t c = 0; c < n && !is_cancelled(w, rows * vm->cols); c += vm->cols) {
        const int64_t cols = fth__min_i64(vm->cols, n - c);
        fth__spot_move(vm, spot, vm->col_dim, c, &place);
        const char *v = fth__tail_block(w, &place, rows, cols);
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
        for (int64_t r = 0; r < n_rows && !w->ask.off; r += vm->rows) {
            fth__spot_move(vm, &outer, vm->row_dim, r, &spot);
            along_rows(w, &spot, fth__min_i64(vm->rows, n_rows - r));
        }
    } while (!w->ask.off && fth__spot_next(vm, skip, index, &outer));
}

/* ---- across --------------------------------------------------------------------------- */

/* Rows [at, at+rows) of the reduced axis, `step` elements apart, of which whole blocks are added
 * up. */
static void rows_done(const fth__worker *w, const fth__totals *t, const char *v, int64_t step,
                      int64_t at, int64_t rows)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t size = fth_dtype_size(fth__vec_dtype(tail->from));
    fth__column_fn *column = vm->vec->tail->column[tail->red][tail->from];
    if (fth__tail_plain(tail)) {
        column(rows, t->n, step, 1, v, t->total);
        return;
    }
    for (int64_t r = 0; r < rows;) {
        const int64_t some = fth__min_i64(rows - r, tail->block - (at + r) % tail->block);
        column(some, t->n, step, 1, v + r * step * size, t->partial);
        r += some;
        if ((at + r) % tail->block != 0 && at + r != tail->n) continue;
        fth__totals_add(vm, t, 0, t->n, t->partial, at + r);
        fth__totals_clear(vm, t->partial, t->n);
    }
}

int fth__tail_operand(const fth__vm *vm)
{
    const int i = vm->p->out_reg[0];
    const bool alone = vm->tail.inner == 0 && vm->p->n_instr == 0 && i < vm->p->n_in &&
                       fth__vec_dtype(vm->tail.from) == vm->tail.from;
    return alone && vm->stride[i][vm->col_dim] == 1 && !fth__is_looked_after(vm, i) ? i : -1;
}

static void across(fth__worker *w)
{
    enum { AT_ONCE = 1 << 15 }; /* elements of an operand */
    const fth__vm *vm = w->vm;
    const unsigned skip = 1u << vm->col_dim | 1u << vm->row_dim;
    const int64_t n = vm->extent[vm->row_dim], n_cols = vm->extent[vm->col_dim];
    const int i = fth__tail_operand(vm);
    const int64_t most = i < 0 ? vm->rows : fth__max_i64(vm->rows, AT_ONCE / vm->cols);
    int64_t index[FTH_MAX_AXES + 1] = {0};
    fth__spot outer = {{0}}, column, spot;
    do {
        for (int64_t c = 0; c < n_cols && !w->ask.off; c += vm->cols) {
            const int64_t cols = fth__min_i64(vm->cols, n_cols - c);
            fth__totals t;
            fth__spot_move(vm, &outer, vm->col_dim, c, &column);
            fth__totals_open(w, &t, &column, vm->col_dim, cols);
            for (int64_t r = 0; r < n && !is_cancelled(w, most * cols); r += most) {
                const int64_t rows = fth__min_i64(most, n - r);
                fth__spot_move(vm, &column, vm->row_dim, r, &spot);
                const char *v =
                    i < 0 ? fth__tail_block(w, &spot, rows, cols) : fth__at_input(vm, &spot, i);
                rows_done(w, &t, v, i < 0 ? cols : vm->stride[i][vm->row_dim], vm->tail_origin + r,
                          rows);
            }
            fth__totals_close(w, &t);
        }
    } while (!w->ask.off && fth__spot_next(vm, skip, index, &outer));
}

/* ---- extremes of an operand --------------------------------------------------------------- */

/* The operand whose largest or smallest elements are all that the program finds, dense along the
 * columns: no block of it is brought anywhere. -1: there is none. */
static int extreme_of(const fth__vm *vm)
{
    const fth__tail *tail = &vm->tail;
    const int i = vm->p->out_reg[0];
    if (tail->inner > 0 || vm->p->n_instr > 0 || i >= vm->p->n_in ||
        vm->stride[i][vm->col_dim] != 1)
        return -1;
    if (tail->red != FTH_RED_MIN && tail->red != FTH_RED_MAX) return -1;
    if (fth__is_looked_after(vm, i)) return -1; /* some of it lies beyond an end */
    if (vm->col_dim != vm->tail_at &&
        (vm->extent[vm->row_dim] == 0 || vm->stride[FTH_PROGRAM_INPUTS][vm->col_dim] != 1))
        return -1; /* an empty piece; results that do not lie side by side */
    if (tail->exact && vm->col_dim == vm->tail_at && tail->n < FTH__TAIL_SHORT)
        return -1; /* short rows of integers go side by side */
    return FTH_ISA_BEST(fth__extreme_loops)->row[0][vm->p->reg_dtype[i]] ? i : -1;
}

static void extremes_along(fth__worker *w, const fth__spot *spot, int64_t rows, int i)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t n = vm->extent[vm->col_dim], size = fth_dtype_size(tail->from),
                  row = vm->row_dim < 0 ? 0 : vm->stride[i][vm->row_dim];
    const char *v = fth__at_input(vm, spot, i);
    fth__extreme_fn *find =
        FTH_ISA_BEST(fth__extreme_loops)->row[tail->red == FTH_RED_MAX][tail->from];
    fth__join_fn *join = vm->vec->tail->join[tail->red][tail->kind];
    fth__totals t;
    fth__totals_open(w, &t, spot, vm->row_dim, rows);
    for (int64_t r = 0; r < rows && n > 0; r++, v += row * size) {
        double found;
        if (find(n, v, &found)) {
            join(1, t.total + r * (int64_t)sizeof found, &found);
            continue;
        }
        for (int64_t c = 0; c < n; c += vm->cols) /* zeros: as the walk in blocks joins them */
            if (fth__tail_plain(tail))
                vm->vec->tail->column[tail->red][tail->from](fth__min_i64(vm->cols, n - c), 1, 1, n,
                                                             v + c * size,
                                                             t.total + r * (int64_t)sizeof found);
            else
                row_done(vm, &t, r, v + c * size, vm->tail_origin + c,
                         fth__min_i64(vm->cols, n - c));
    }
    fth__totals_close(w, &t);
}

/* In the output itself: what is found is an element, and the output holds what earlier pieces left.
 */
static void extremes_across(fth__worker *w, const fth__spot *spot, int64_t cols, int i)
{
    const fth__vm *vm = w->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t n = vm->extent[vm->row_dim], size = fth_dtype_size(tail->from),
                  row = vm->stride[i][vm->row_dim];
    const char *v = fth__at_input(vm, spot, i);
    char *out = (char *)vm->call->out[0].data + spot->at[FTH_PROGRAM_INPUTS] * size;
    fth__extremes_fn *column =
        FTH_ISA_BEST(fth__extreme_loops)->column[tail->red == FTH_RED_MAX][tail->from];
    int64_t r = 0;
    if (vm->call->first) { /* nothing is there yet, and infer refuses an axis without elements */
        memcpy(out, v, (size_t)(cols * size));
        r = 1;
    }
    for (; r < n && !is_cancelled(w, EXTREME_ROWS * cols); r += EXTREME_ROWS)
        column(fth__min_i64(EXTREME_ROWS, n - r), cols, row, v + r * row * size, out);
    fth__vec_one_nan(vm->vec, tail->to, cols, out);
}

static void extremes(fth__worker *w, int i)
{
    const fth__vm *vm = w->vm;
    const bool along = vm->col_dim == vm->tail_at;
    const int dim = along ? vm->row_dim : vm->col_dim;
    const int64_t all = dim < 0 ? 1 : vm->extent[dim], most = along ? vm->rows : EXTREME_COLS;
    unsigned skip = 1u << vm->tail_at;
    if (dim >= 0) skip |= 1u << dim;
    const int64_t line = along ? most * vm->extent[vm->tail_at] : 0; /* the other asks itself */
    int64_t index[FTH_MAX_AXES + 1] = {0};
    fth__spot outer = {{0}}, spot;
    do {
        for (int64_t k = 0; k < all && !is_cancelled(w, line); k += most) {
            fth__spot_move(vm, &outer, dim, k, &spot);
            if (along)
                extremes_along(w, &spot, fth__min_i64(most, all - k), i);
            else
                extremes_across(w, &spot, fth__min_i64(most, all - k), i);
        }
    } while (!w->ask.off && fth__spot_next(vm, skip, index, &outer));
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
    const int operand = extreme_of(vm);
    if (operand >= 0)
        extremes(&w, operand);
    else if (vm->col_dim == vm->tail_at)
        along(&w);
    else
        across(&w);
}
