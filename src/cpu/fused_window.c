/* fused_window.c - programs that only reduce a window over its taps, weighted or not.
 *
 * What correlations, blurs, erosions and dilations are made of. The walk is the one across a tail
 * (fused_tail.c), but all taps of a strip are taken in one loop; taps that lie beyond an end are
 * brought, and so are the columns near the ends of an axis, which are strips of their own.
 */
#include "cpu/fused_tail.h"
#include "cpu/windows.h"

#include "base/checked.h"
#include "ops/view.h"

typedef struct windows {
    const fth__vm *vm;
    fth__worker worker;
    fth__strip_fn *strip, *rounded; /* rounded: all taps of the inner axis at once; may be NULL */
    int v, w;                       /* registers: what the window is of, the weights; w -1: none */
    bool merged;                    /* taps of both axes meet one total: it is one of them */
    int64_t lo, hi;                 /* columns between them are inside for every tap */
} windows;

/* A register that is one number in a row: an input that is not looked after, or a constant. */
static bool is_weight(const fth__vm *vm, int r)
{
    if (r >= vm->p->n_in) return r < vm->p->n_in + vm->p->n_const;
    return vm->stride[r][vm->col_dim] == 0 && !fth__is_looked_after(vm, r);
}

static bool find_operands(windows *s)
{
    const fth__vm *vm = s->vm;
    const fth__program *p = vm->p;
    const fth_dtype t = (fth_dtype)p->reg_dtype[p->out_reg[0]];
    const fth_red red = vm->tail.inner > 0 ? vm->tail.inner_red : vm->tail.red;
    const fth__window_loops *loops = FTH_ISA_BEST(fth__window_loops);
    s->v = p->out_reg[0];
    s->w = -1;
    if (p->n_instr == 0) {
        s->strip = loops->plain[red][t];
    } else {
        const fth__instr *in = &p->instr[0];
        if (p->n_instr != 1 || in->op != FTH_EW_MUL || red != FTH_RED_SUM) return false;
        const bool second = is_weight(vm, in->src[1]);
        s->v = in->src[second ? 0 : 1];
        s->w = in->src[second ? 1 : 0];
        s->strip = loops->scaled[t];
        if (!is_weight(vm, s->w)) return false;
    }
    if (vm->tail.inner > 0 && red == FTH_RED_SUM && vm->tail.red == FTH_RED_SUM)
        s->rounded = loops->rounded[p->n_instr][t];
    s->merged = vm->tail.inner > 0 && red == vm->tail.red && red >= FTH_RED_MIN;
    return s->strip && s->v < p->n_in && fth__is_looked_after(vm, s->v) &&
           vm->stride[s->v][vm->col_dim] == 1 && vm->reg[s->v].slot >= 0;
}

/* Columns where an axis is left neither by the first tap nor by the last. */
static void find_inside(windows *s)
{
    const fth__vm *vm = s->vm;
    s->lo = 0;
    s->hi = vm->extent[vm->col_dim];
    for (int l = 0; l < vm->n_looks; l++) {
        const int array = FTH__VM_LOOKS + l;
        if (vm->look[l].view->in != s->v || vm->stride[array][vm->col_dim] != 1) continue;
        const int64_t far = vm->stride[array][vm->row_dim] * (vm->extent[vm->row_dim] - 1),
                      in = vm->tail.inner > 0 ? vm->inner[array] * (vm->tail.inner - 1) : 0;
        const int64_t least = vm->first[array] + fth__min_i64(far, 0) + fth__min_i64(in, 0),
                      most = vm->first[array] + fth__max_i64(far, 0) + fth__max_i64(in, 0);
        s->lo = fth__max_i64(s->lo, -least);
        s->hi = fth__min_i64(s->hi, vm->look[l].size - most);
    }
    s->hi = fth__max_i64(s->hi, 0);
    s->lo = fth__min_i64(s->lo, s->hi);
}

static const void *weight_at(const windows *s, const fth__spot *spot)
{
    const fth__vm *vm = s->vm;
    if (s->w >= vm->p->n_in) return &vm->constant[s->w - vm->p->n_in];
    return fth__at_input(vm, spot, s->w);
}

static int64_t step_of(const fth__vm *vm, int array, bool inner)
{
    return inner ? vm->inner[array] : vm->stride[array][vm->row_dim];
}

static void move(const fth__vm *vm, const fth__spot *from, int64_t by, bool inner, fth__spot *to)
{
    if (inner)
        fth__spot_inner(vm, from, by, to);
    else
        fth__spot_move(vm, from, vm->row_dim, by, to);
}

static bool are_inside(const windows *s, const fth__spot *first, int64_t cols)
{
    fth__spot last;
    fth__spot_inner(s->vm, first, s->vm->tail.inner - 1, &last);
    return !fth__is_beyond(s->vm, s->v, first, 1, cols) &&
           !fth__is_beyond(s->vm, s->v, &last, 1, cols);
}

/* `n` taps of columns [0, cols) from `spot` on, so far apart in an array; they all lie inside, or
 * are one that does not. */
static void add_run(windows *s, const fth__spot *spot, int64_t n, int64_t cols, bool beyond,
                    bool inner, fth__strip_fn *strip, void *acc)
{
    const fth__vm *vm = s->vm;
    const char *v;
    if (beyond) {
        char *slot = s->worker.slots + (uint64_t)vm->reg[s->v].slot * vm->slot_bytes;
        fth__bring_view(vm, s->v, spot, 1, cols, slot);
        v = slot;
    } else {
        v = fth__at_input(vm, spot, s->v);
    }
    const bool weights = s->w >= 0 && s->w < vm->p->n_in;
    const int64_t w_step = !weights ? 0 : step_of(vm, s->w, inner);
    strip(n, cols, beyond ? 0 : step_of(vm, s->v, inner), v, w_step,
          s->w < 0 ? NULL : weight_at(s, spot), acc);
}

/* All taps of the axis that is walked, or of the one before it. */
static void add_taps(windows *s, const fth__spot *first, int64_t taps, int64_t cols, bool inner,
                     void *acc)
{
    const fth__vm *vm = s->vm;
    fth__spot spot, next;
    for (int64_t r = 0; r < taps;) {
        move(vm, first, r, inner, &spot);
        const bool beyond = fth__is_beyond(vm, s->v, &spot, 1, cols);
        int64_t end = r + 1;
        for (; !beyond && end < taps; end++) {
            move(vm, first, end, inner, &next);
            if (fth__is_beyond(vm, s->v, &next, 1, cols)) break;
        }
        add_run(s, &spot, end - r, cols, beyond, inner, s->strip, acc);
        r = end;
    }
}

static void add_columns(windows *s, const fth__spot *outer, int64_t c, int64_t cols)
{
    const fth__vm *vm = s->vm;
    const fth__tail *tail = &vm->tail;
    const int64_t taps = vm->extent[vm->row_dim];
    fth__spot column, spot;
    fth__totals t;
    fth__spot_move(vm, outer, vm->col_dim, c, &column);
    fth__totals_open(&s->worker, &t, &column, vm->col_dim, cols);
    if (tail->inner == 0) add_taps(s, &column, taps, cols, false, t.total);
    for (int64_t r = 0; r < taps && tail->inner > 0; r++) {
        fth__spot_move(vm, &column, vm->row_dim, r, &spot);
        if (s->merged) {
            add_taps(s, &spot, tail->inner, cols, true, t.total);
            continue;
        }
        if (s->rounded && are_inside(s, &spot, cols)) {
            add_run(s, &spot, tail->inner, cols, false, true, s->rounded, t.total);
            continue;
        }
        fth__inner_open(&s->worker, cols);
        add_taps(s, &spot, tail->inner, cols, true, s->worker.inner);
        vm->vec->tail->column[tail->red][tail->from](1, cols, cols, 1,
                                                     fth__inner_close(&s->worker, cols), t.total);
    }
    fth__totals_close(&s->worker, &t);
}

bool fth__window_run(const fth__vm *vm)
{
    windows s = {.vm = vm};
    if (vm->tail_at != vm->row_dim || vm->tail_at < 0 || !fth__tail_plain(&vm->tail)) return false;
    if (!find_operands(&s)) return false;
    find_inside(&s);
    fth__worker_init(&s.worker, vm, vm->call->scratch);
    const unsigned skip = 1u << vm->col_dim | 1u << vm->row_dim;
    const int64_t n_cols = vm->extent[vm->col_dim], end[3] = {s.lo, s.hi, n_cols};
    int64_t index[FTH_MAX_AXES + 1] = {0};
    fth__spot outer = {{0}};
    do {
        for (int64_t part = 0, c = 0; part < 3; part++)
            for (int64_t cols; c < end[part] && !s.worker.ask.off; c += cols) {
                cols = fth__min_i64(vm->block, end[part] - c);
                if (fth__asking_on(&s.worker.ask, (double)(cols * vm->extent[vm->row_dim])))
                    add_columns(&s, &outer, c, cols);
            }
    } while (!s.worker.ask.off && fth__spot_next(vm, skip, index, &outer));
    return true;
}
