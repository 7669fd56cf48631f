/* fused.c - the blocked interpreter of fused programs: the walk over the space, block by block. */
#include "cpu/fused_tail.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/processor.h"
#include "graph/grid.h"
#include "ops/view.h"

#include <string.h>

enum {
    BLOCK = 512, /* elements: 4 KiB of f64, so that several blocks stay in the first cache, and the
                    processor's own prefetching runs on into the next one */
    TAIL_BLOCK = FTH__REDUCE_BLOCK, /* at least one block of the grid */
    ALIGN = 64,                     /* the widest vector, and a line of cache */
    SKEW = 128,      /* between slots: they do not start at the same offset of a page */
    LINE = 64,       /* of cache */
    WIDEST = 16,     /* bytes of a running value */
    COPY_ROWS = 64,  /* rows of a copy between which the columns of a transposition stay cached */
    COPY_COLS = 4096 /* with 64 rows of four bytes 1 MiB: within the second cache; not measured */
};

/* ---- the space ------------------------------------------------------------------------ */

static bool joins(const fth__vm *vm, int outer, int inner)
{
    for (int u = 0; u < vm->n_used; u++) {
        const int64_t *stride = vm->stride[vm->used[u]];
        if (stride[outer] != stride[inner] * vm->extent[inner]) return false;
    }
    return true;
}

static void drop_dim(fth__vm *vm, int k)
{
    for (int i = k; i + 1 < vm->n_dims; i++) {
        vm->extent[i] = vm->extent[i + 1];
        for (int a = 0; a < FTH__VM_ARRAYS; a++) vm->stride[a][i] = vm->stride[a][i + 1];
    }
    vm->n_dims--;
    if (vm->tail_at > k) vm->tail_at--;
}

/* Fewer and longer axes: those of one element go, neighbours that every array steps through evenly
 * join. */
static void join_dims(fth__vm *vm)
{
    for (int k = vm->n_dims - 1; k >= 0; k--)
        if (vm->extent[k] == 1 && k != vm->tail_at) drop_dim(vm, k);
    for (int k = vm->n_dims - 2; k >= 0; k--) {
        if (k == vm->tail_at || k + 1 == vm->tail_at || !joins(vm, k, k + 1)) continue;
        vm->extent[k + 1] *= vm->extent[k];
        drop_dim(vm, k);
    }
}

static void add_unit_dim(fth__vm *vm)
{
    vm->extent[vm->n_dims] = 1;
    for (int a = 0; a < FTH__VM_ARRAYS; a++) vm->stride[a][vm->n_dims] = 0;
    vm->n_dims++;
}

/* An operand whose neighbours lie along another axis than the block's columns: rows along that
 * axis, so that every line of memory that is fetched is used whole. */
static bool shape_tile(fth__vm *vm)
{
    const int col = vm->n_dims - 1;
    for (int i = 0; i < vm->p->n_in; i++) {
        if (vm->stride[i][col] == 0 || vm->stride[i][col] == 1) continue;
        for (int k = 0; k < col; k++) {
            if (vm->stride[i][k] != 1 || vm->extent[k] < 2) continue;
            vm->row_dim = k;
            vm->rows =
                fth__min_i64(LINE / fth_dtype_size((fth_dtype)vm->p->reg_dtype[i]), vm->extent[k]);
            vm->cols = fth__min_i64(vm->block / vm->rows, vm->extent[col]);
            return vm->rows > 1;
        }
    }
    return false;
}

/* Rows and columns of a block. Narrow ones take several rows, so that loops stay long. */
static void shape_block(fth__vm *vm, bool along)
{
    if (vm->n_dims == 0 || (vm->tail_at == vm->n_dims - 1 && !along)) add_unit_dim(vm);
    vm->col_dim = vm->n_dims - 1;
    if (vm->tail_at < 0 && shape_tile(vm)) return;
    vm->row_dim = vm->tail_at >= 0 && !along ? vm->tail_at : vm->n_dims - 2;
    const int64_t extent = vm->extent[vm->col_dim], least = extent > 0 ? extent : 1;
    vm->cols = fth__min_i64(least, vm->block);
    vm->rows = 1;
    if (vm->row_dim >= 0 && least <= vm->block / 2 && !(vm->team && along)) {
        vm->rows = fth__min_i64(vm->block / least, vm->extent[vm->row_dim]);
        vm->rows = fth__max_i64(vm->rows, 1);
    }
    if (vm->rows == 1 && !(vm->tail_at >= 0 && !along)) vm->row_dim = -1;
    FTH_ASSERT(vm->rows >= 1 && vm->cols >= 1 && vm->rows * vm->cols <= vm->block);
}

static int64_t widest(const fth__program *p)
{
    int64_t most = 1;
    for (int i = 0; i < p->n_reg; i++)
        most = fth__max_i64(most, fth_dtype_size(fth__vec_dtype((fth_dtype)p->reg_dtype[i])));
    return most;
}

/* Blocks that can be alive at once: operands that do not lie dense, intermediates, outputs. */
static int count_slots(const fth__program *p)
{
    int last[FTH__VM_REGS], live = 0, most = 0;
    for (int r = 0; r < p->n_reg; r++) last[r] = -1;
    for (int i = 0; i < p->n_instr; i++)
        for (int k = 0; k < 3; k++)
            if (p->instr[i].src[k] >= 0) last[p->instr[i].src[k]] = i;
    for (int o = 0; o < p->n_out; o++) last[p->out_reg[o]] = p->n_instr;
    for (int i = 0; i < p->n_instr; i++) {
        most = live + 1 > most ? live + 1 : most;
        live++;
        for (int r = p->n_in + p->n_const; r < p->n_reg; r++) live -= last[r] == i;
    }
    /* a joined pair holds both operands of its first instruction a step longer, fills live for one,
     * and the last slot is spare, for conversions */
    return p->n_in + most + 4;
}

static void set_sizes(fth__vm *vm, const fth__program *p)
{
    const int64_t size = widest(p);
    vm->block = p->tail_dim < 0 ? BLOCK : TAIL_BLOCK;
    vm->slot_bytes =
        (uint64_t)(vm->block * size) + SKEW; /* not a multiple of a page: fewer false conflicts */
    vm->n_slots_given = count_slots(p);
    vm->worker_bytes = (uint64_t)vm->n_slots_given * vm->slot_bytes;
    if (p->tail_dim >= 0) vm->worker_bytes += 3 * ((uint64_t)vm->block * vm->tail.wide + ALIGN);
    if (p->inner_red > 0) vm->worker_bytes += 2 * ((uint64_t)vm->block * WIDEST + ALIGN);
    vm->worker_bytes = (vm->worker_bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Dense operands and outputs, and how far ahead of a block its successor lies. Processors of AMD
 * fetch those themselves, and are slowed down by being told (x * x + c of 256 MiB: 18.3 ms, 16.7
 * without, on a Zen 5; 10.0 and 8.7 of 128 MiB on a Zen 4), but for rows that are only added up and
 * for views, whose copies keep them waiting (a sum of four rolls: 25 ms, 32 without). */
static void find_streams(fth__vm *vm, bool along)
{
    if (fth__is_amd() && !along && vm->n_looks == 0) return;
    const bool by_row = vm->rows > 1 || (vm->tail_at >= 0 && !along);
    for (int r = 0; r < vm->n_regs; r++) {
        const fth__reg *reg = &vm->reg[r];
        if (reg->place != FTH__AT_INPUT && reg->place != FTH__AT_OUT) continue;
        const bool out = reg->place == FTH__AT_OUT;
        const int array = out ? FTH_PROGRAM_INPUTS + reg->index : r;
        const int64_t size = fth__reg_size(vm, r);
        const int64_t ahead = by_row ? vm->rows * vm->stride[array][vm->row_dim]
                                     : vm->cols * vm->stride[array][vm->col_dim];
        FTH_ASSERT(vm->n_streams < FTH_PROGRAM_INPUTS + FTH_PROGRAM_OUTS);
        if (ahead != 0)
            vm->stream[vm->n_streams++] = (fth__fused_stream){ahead * size, size, (int16_t)r, out};
    }
}

static bool use_team(const fth__vm *vm)
{
    if (vm->tail_at < 0 || !vm->call->team || vm->call->threads < 2) return false;
    return fth__tail_is_shared(vm->tail.n, vm->extent[vm->tail_at]);
}

static void find_used(fth__vm *vm)
{
    const int n_in = vm->p->n_in, n_out = vm->p->n_out;
    for (int i = 0; i < n_in; i++) vm->used[vm->n_used++] = i;
    for (int i = 0; i < n_out; i++) vm->used[vm->n_used++] = FTH_PROGRAM_INPUTS + i;
    if (vm->tail.state) vm->used[vm->n_used++] = FTH__VM_STATE;
    for (int i = 0; i < vm->n_looks; i++) vm->used[vm->n_used++] = FTH__VM_LOOKS + i;
    for (int i = 0; i < vm->p->n_made; i++) vm->used[vm->n_used++] = FTH__VM_MADE + i;
}

/* No walk goes along the axis that is reduced before the tail's. */
static void take_inner(fth__vm *vm)
{
    for (int a = 0; a < FTH__VM_ARRAYS && vm->tail.inner > 0; a++) {
        vm->inner[a] = vm->stride[a][vm->n_dims];
        vm->stride[a][vm->n_dims] = 0;
    }
}

static void move_last(int64_t *of, int dim, int last)
{
    const int64_t moved = of[dim];
    for (int k = dim; k < last; k++) of[k] = of[k + 1];
    of[last] = moved;
}

/* Windows are summed over their taps, which follow each other where the elements of an axis do:
 * then the axis is walked inside the taps, and loops are as long as it is. Where elements are added
 * one by one the order of the walk is free. */
static void turn_tail(fth__vm *vm)
{
    const int last = vm->n_dims - 1;
    if (vm->tail_at != last || vm->tail.lanes != 1) return;
    int dim = -1;
    for (int k = 0; k < last; k++)
        for (int i = 0; i < vm->p->n_in; i++)
            if (fth__is_viewed(vm->p, i) && vm->stride[i][k] == 1) dim = k;
    if (dim < 0 || vm->extent[dim] < vm->extent[last]) return;
    move_last(vm->extent, dim, last);
    for (int u = 0; u < vm->n_used; u++) move_last(vm->stride[vm->used[u]], dim, last);
    vm->tail_at = last - 1;
}

bool fth__vm_init(fth__vm *vm, const fth_call *call, const fth__program *p)
{
    const fth_node *node = call->node;
    int64_t origin[FTH_MAX_AXES];
    memset(vm, 0, offsetof(fth__vm, reg));
    vm->call = call;
    vm->p = p;
    vm->vec = fth__vec();
    fth__tail_init(&vm->tail, p);
    set_sizes(vm, p);
    vm->n_dims = p->n_axes;
    vm->tail_at = p->tail_dim;
    fth__fused_extent(p, call, vm->extent, origin);
    if (p->tail_dim >= 0) vm->tail_origin = origin[p->tail_dim];
    for (int i = 0; i < p->n_in; i++)
        vm->first[i] = fth__fused_in_strides(p, call, i, origin, vm->stride[i]);
    for (int i = 0; i < p->n_out; i++)
        if (call->out[i].data)
            fth__fused_strides(p, &node->out[i], &call->out[i], vm->stride[FTH_PROGRAM_INPUTS + i]);
    if (vm->tail.state)
        fth__fused_strides(p, &node->out[0], &call->state[0], vm->stride[FTH__VM_STATE]);
    fth__looks_init(vm, origin);
    fth__made_init(vm, origin);
    find_used(vm);
    take_inner(vm);
    turn_tail(vm);
    const bool along = vm->tail_at >= 0 && vm->tail_at == vm->n_dims - 1;
    vm->team = use_team(vm);
    join_dims(vm);
    shape_block(vm, along);
    FTH_ASSERT(vm->n_dims >= 1 && vm->n_dims <= FTH_MAX_AXES + 1 && vm->col_dim == vm->n_dims - 1);
    fth__vm_code(vm);
    find_streams(vm, along);
    return vm->n_slots < vm->n_slots_given;
}

uint64_t fth__vm_scratch(const fth_call *call, const fth__program *p)
{
    fth__vm vm;
    fth__tail_init(&vm.tail, p);
    set_sizes(&vm, p);
    const int threads = call->threads > 1 ? call->threads : 1;
    return vm.worker_bytes * (uint64_t)threads + ALIGN +
           (threads > 1 ? fth__team_scratch(call, &vm.tail) : 0);
}

/* ---- blocks --------------------------------------------------------------------------- */

static double elements_of(const fth__vm *vm)
{
    double n = 1.0;
    for (int d = 0; d < vm->n_dims; d++) n *= (double)vm->extent[d];
    return n;
}

void fth__worker_init(fth__worker *w, const fth__vm *vm, char *scratch)
{
    w->vm = vm;
    w->slots = scratch;
    w->ask = fth__asking_begin(vm->call, elements_of(vm), FTH__ASK_ELEMENTS);
    char *wide = scratch + (uint64_t)vm->n_slots_given * vm->slot_bytes;
    for (int i = 0; i < 3; i++)
        w->wide[i] = wide + (uint64_t)i * ((uint64_t)vm->block * vm->tail.wide + ALIGN);
    w->inner = wide + 3 * ((uint64_t)vm->block * vm->tail.wide + ALIGN);
    w->values = w->inner + (uint64_t)vm->block * WIDEST + ALIGN;
    for (int i = 0; i < vm->p->n_const; i++) w->cell[vm->p->n_in + i] = vm->constant[i];
    for (int r = 0; r < vm->n_regs; r++) {
        const fth__reg *reg = &vm->reg[r];
        const bool slot = reg->place == FTH__AT_SLOT && reg->index >= 0;
        w->at[r] = slot ? w->slots + (uint64_t)reg->index * vm->slot_bytes : (void *)&w->cell[r];
    }
}

char *fth__spare_slot(const fth__worker *w)
{
    return w->slots + (uint64_t)(w->vm->n_slots_given - 1) * w->vm->slot_bytes;
}

static char *at_output(const fth__vm *vm, const fth__spot *spot, int o)
{
    return (char *)vm->call->out[o].data +
           spot->at[FTH_PROGRAM_INPUTS + o] * fth_dtype_size(vm->call->node->out[o].dtype);
}

static char *slot_of(const fth__worker *w, int i)
{
    return w->slots + (uint64_t)w->vm->reg[i].slot * w->vm->slot_bytes;
}

static void widen(const fth__worker *w, fth_dtype t, int64_t n, void *to, const void *from)
{
    const void *src[3] = {from, NULL, NULL};
    (*w->vm->vec->half)[t == FTH_BF16].widen(n, to, src);
}

/* Bring a block that a view reads beyond the ends of an axis: one element where the block is one,
 * else all of it to the slot of the input. */
static void bring_beyond(fth__worker *w, int i, const fth__spot *spot, int64_t rows, int64_t cols)
{
    const fth__vm *vm = w->vm;
    const fth_dtype t = (fth_dtype)vm->p->reg_dtype[i];
    const bool half = t == FTH_F16 || t == FTH_BF16;
    const int place = vm->reg[i].place;
    if (place == FTH__AT_CELL || place == FTH__AT_SCALAR) {
        fth__cell memory;
        fth__bring_view(vm, i, spot, 1, 1, (char *)&memory);
        if (half)
            fth__cell_load(t, &memory, &w->cell[i]);
        else
            w->cell[i] = memory;
        w->at[i] = &w->cell[i];
        return;
    }
    char *to = half ? fth__spare_slot(w) : slot_of(w, i);
    fth__bring_view(vm, i, spot, rows, cols, to);
    w->at[i] = slot_of(w, i);
    if (half) widen(w, t, rows * cols, w->at[i], to);
}

/* Bring an operand that does not lie dense, or has 16 bits, into its slot. */
static void bring(fth__worker *w, int i, const char *from, int64_t rows, int64_t cols)
{
    const fth__vm *vm = w->vm;
    const fth_dtype t = (fth_dtype)vm->p->reg_dtype[i];
    const int64_t size = fth_dtype_size(t), row = vm->row_dim < 0 ? 0 : vm->stride[i][vm->row_dim];
    const int64_t col = vm->stride[i][vm->col_dim];
    if (t != FTH_F16 && t != FTH_BF16) {
        fth__copy_block(size, rows, cols, w->at[i], cols, 1, from, row, col);
        return;
    }
    const bool dense = col == 1 && (rows == 1 || row == cols);
    char *half = fth__spare_slot(w);
    if (!dense) fth__copy_block(size, rows, cols, half, cols, 1, from, row, col);
    widen(w, t, rows * cols, w->at[i], dense ? from : half);
}

/* While this block is computed the next one is on its way to the second cache, for the first one is
 * full of this one: a share of its lines before each step.
 * Always inlined: gcc takes a function that only prefetches for one without effect, and drops the
 * call. */
static inline __attribute__((always_inline)) void fetch_ahead(const fth__worker *w, int step,
                                                              int64_t n)
{
    const fth__vm *vm = w->vm;
    for (int k = 0; k < vm->n_streams; k++) {
        const fth__fused_stream *s = &vm->stream[k];
        const char *next = (const char *)w->at[s->reg] + s->ahead;
        const int64_t lines = n * s->size / LINE;
        const int64_t from = lines * step / vm->n_steps * LINE,
                      to = lines * (step + 1) / vm->n_steps * LINE;
        if (s->write)
            for (int64_t b = from; b < to; b += LINE) __builtin_prefetch(next + b, 1, 2);
        else
            for (int64_t b = from; b < to; b += LINE) __builtin_prefetch(next + b, 0, 2);
    }
}

void fth__block_eval(fth__worker *w, const fth__spot *spot, int64_t rows, int64_t cols)
{
    const fth__vm *vm = w->vm;
    const int64_t n = rows * cols;
    FTH_ASSERT(rows >= 1 && cols >= 1 && n <= vm->block);
    for (int i = 0; i < vm->p->n_in; i++) {
        const fth__reg *r = &vm->reg[i];
        if (r->slot >= 0 && fth__is_beyond(vm, i, spot, rows, cols)) {
            bring_beyond(w, i, spot, rows, cols);
            continue;
        }
        char *from = fth__at_input(vm, spot, i);
        if (r->place == FTH__AT_SCALAR || r->place == FTH__AT_INPUT)
            w->at[i] = from;
        else if (r->place == FTH__AT_CELL)
            fth__cell_load((fth_dtype)vm->p->reg_dtype[i], from, &w->cell[i]);
        else if (r->place == FTH__AT_SLOT)
            bring(w, i, from, rows, cols);
    }
    if (vm->tail.dim < 0)
        for (int o = 0; o < vm->p->n_out; o++) {
            const int r = vm->p->out_reg[o];
            if (vm->reg[r].place == FTH__AT_OUT && vm->reg[r].index == o)
                w->at[r] = at_output(vm, spot, o);
        }
    for (int i = 0; i < vm->n_steps; i++) {
        const fth__step *s = &vm->step[i];
        fetch_ahead(w, i, n);
        if (s->op == FTH__INSTR_MAKE) {
            fth__make_block(w, s, spot, rows, cols);
            continue;
        }
        const void *src[3] = {w->at[s->src[0]], s->src[1] < 0 ? NULL : w->at[s->src[1]],
                              s->src[2] < 0 ? NULL : w->at[s->src[2]]};
        void *dst = w->at[s->dst];
        if (s->run)
            s->run(s->once ? 1 : n, dst, src);
        else
            fth__copy_block(fth__reg_size(vm, s->dst), 1, n, dst, n, 1, src[0], 0, 0);
        if (s->round) {
            src[0] = dst;
            s->round(s->once ? 1 : n, dst, src);
        }
    }
}

/* Outputs that no step could write where they belong. A NaN that was computed is replaced: which
 * one it is depends on how the loops were compiled, and on which loop took the element. */
void fth__block_store(fth__worker *w, const fth__spot *spot, int64_t rows, int64_t cols)
{
    const fth__vm *vm = w->vm;
    for (int o = 0; o < vm->p->n_out; o++) {
        const int r = vm->p->out_reg[o];
        const fth__reg *reg = &vm->reg[r];
        if (!vm->call->out[o].data) continue;
        if (r >= vm->p->n_in + vm->p->n_const)
            fth__vec_one_nan(vm->vec, (fth_dtype)reg->dtype,
                             reg->place == FTH__AT_CELL ? 1 : rows * cols, w->at[r]);
        if (reg->place == FTH__AT_OUT && reg->index == o) continue;
        const fth_dtype t = vm->call->node->out[o].dtype;
        const int64_t size = fth_dtype_size(t),
                      row = vm->row_dim < 0 ? 0 : vm->stride[FTH_PROGRAM_INPUTS + o][vm->row_dim];
        const void *from = w->at[r];
        fth__cell one;
        char *to = at_output(vm, spot, o);
        int64_t from_row = cols, from_col = 1;
        if (reg->place == FTH__AT_CELL || reg->place == FTH__AT_SCALAR) {
            if (t == FTH_F16 || t == FTH_BF16)
                fth__cell_store(t, from, &one);
            else
                memcpy(&one, from, (size_t)size);
            from = &one;
            from_row = from_col = 0;
        } else if (t == FTH_F16 || t == FTH_BF16) {
            const void *src[3] = {from, NULL, NULL};
            char *narrow = fth__spare_slot(w);
            (*vm->vec->half)[t == FTH_BF16].narrow(rows * cols, narrow, src);
            from = narrow;
        }
        const int64_t col = vm->stride[FTH_PROGRAM_INPUTS + o][vm->col_dim];
        fth__copy_block(size, rows, cols, to, row, col, from, from_row, from_col);
    }
}

bool fth__spot_next(const fth__vm *vm, unsigned skip, int64_t *index, fth__spot *spot)
{
    for (int k = vm->n_dims - 1; k >= 0; k--) {
        if (skip & 1u << k) continue;
        const bool wrap = ++index[k] == vm->extent[k];
        const int64_t by = wrap ? 1 - vm->extent[k] : 1;
        for (int u = 0; u < vm->n_used; u++)
            spot->at[vm->used[u]] += by * vm->stride[vm->used[u]][k];
        if (!wrap) return true;
        index[k] = 0;
    }
    return false;
}

void fth__spot_move(const fth__vm *vm, const fth__spot *from, int dim, int64_t by, fth__spot *to)
{
    for (int u = 0; u < vm->n_used; u++) {
        const int a = vm->used[u];
        to->at[a] = from->at[a] + (dim < 0 ? 0 : by * vm->stride[a][dim]);
    }
}

static void run_map(const fth__vm *vm)
{
    fth__worker w;
    fth__worker_init(&w, vm, vm->call->scratch);
    unsigned skip = 1u << vm->col_dim;
    if (vm->row_dim >= 0) skip |= 1u << vm->row_dim;
    const int64_t n_rows = vm->row_dim < 0 ? 1 : vm->extent[vm->row_dim],
                  n_cols = vm->extent[vm->col_dim];
    int64_t index[FTH_MAX_AXES + 1] = {0};
    fth__spot outer = {{0}}, row, spot;
    do {
        for (int64_t r = 0; r < n_rows; r += vm->rows) {
            fth__spot_move(vm, &outer, vm->row_dim, r, &row);
            const int64_t rows = fth__min_i64(vm->rows, n_rows - r);
            for (int64_t c = 0; c < n_cols; c += vm->cols) {
                fth__spot_move(vm, &row, vm->col_dim, c, &spot);
                const int64_t cols = fth__min_i64(vm->cols, n_cols - c);
                fth__block_eval(&w, &spot, rows, cols);
                fth__block_store(&w, &spot, rows, cols);
            }
        }
    } while (fth__spot_next(vm, skip, index, &outer));
}

/* No instructions: every output is an operand in another order, or grown. No blocks in between. */
static void run_copy(const fth__vm *vm)
{
    const unsigned skip = 1u << vm->col_dim | (vm->row_dim >= 0 ? 1u << vm->row_dim : 0u);
    const int64_t n_rows = vm->row_dim < 0 ? 1 : vm->extent[vm->row_dim],
                  n_cols = vm->extent[vm->col_dim];
    int64_t index[FTH_MAX_AXES + 1] = {0};
    fth__spot outer = {{0}}, row, spot;
    do {
        for (int64_t r = 0; r < n_rows; r += COPY_ROWS)
            for (int64_t c = 0; c < n_cols; c += COPY_COLS) {
                fth__spot_move(vm, &outer, vm->row_dim, r, &row);
                fth__spot_move(vm, &row, vm->col_dim, c, &spot);
                for (int o = 0; o < vm->p->n_out; o++) {
                    const int i = vm->p->out_reg[o], to = FTH_PROGRAM_INPUTS + o, k = vm->row_dim;
                    if (!vm->call->out[o].data) continue;
                    fth__copy_block(fth_dtype_size((fth_dtype)vm->p->reg_dtype[i]),
                                    fth__min_i64(COPY_ROWS, n_rows - r),
                                    fth__min_i64(COPY_COLS, n_cols - c), at_output(vm, &spot, o),
                                    k < 0 ? 0 : vm->stride[to][k], vm->stride[to][vm->col_dim],
                                    fth__at_input(vm, &spot, i), k < 0 ? 0 : vm->stride[i][k],
                                    vm->stride[i][vm->col_dim]);
                }
            }
    } while (fth__spot_next(vm, skip, index, &outer));
}

static bool only_copies(const fth__program *p)
{
    for (int o = 0; o < p->n_out; o++)
        if (p->out_reg[o] >= p->n_in) return false;
    return p->n_instr == 0 && p->n_views == 0;
}

fth_status fth__vm_run(const fth_call *call, const fth__program *p)
{
    fth__vm vm;
    _Atomic(uintptr_t) fault = UINTPTR_MAX;
    if (!fth__vm_init(&vm, call, p))
        return FTH_FAIL(call->err, FTH_E_INTERNAL,
                        "fused: %d blocks are alive at once, %d were planned", vm.n_slots,
                        vm.n_slots_given);
    vm.fault = &fault;
    for (int k = 0; k < vm.n_dims; k++)
        if (vm.extent[k] == 0 && k != vm.tail_at) return FTH_OK;
    if (vm.tail_at >= 0)
        fth__vm_tail(&vm);
    else if (only_copies(p))
        run_copy(&vm);
    else
        run_map(&vm);
    return fth__row_status(&vm);
}

static uint64_t scratch(const fth_call *call)
{
    return fth__vm_scratch(call, call->node->attr);
}

static fth_status run(const fth_call *call)
{
    return fth__vm_run(call, call->node->attr);
}

const fth_kernel fth__cpu_fused = {
    .op = "fused", .scratch = scratch, .run = run, .flags = FTH_OP_TEAM};
