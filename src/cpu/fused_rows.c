/* fused_rows.c - what a fused program reads by an index, or makes itself: rows of an operand,
 * indices and random numbers.
 *
 * The index of rows is read in the loop. One that is beyond its axis reads nothing, and is reported
 * when the walk is over: of several the first in memory, whatever worker found it.
 */
#include "cpu/fused.h"
#include "cpu/places.h"
#include "cpu/random.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/indexing.h"
#include "ops/view.h"

#include <string.h>

static void complain(const fth__vm *vm, const char *index)
{
    uintptr_t least = atomic_load_explicit(vm->fault, memory_order_relaxed);
    while ((uintptr_t)index < least &&
           !atomic_compare_exchange_weak(vm->fault, &least, (uintptr_t)index)) {
    }
}

static fth_dtype dtype_of(const fth__vm *vm, const fth__view_axis *v)
{
    return (fth_dtype)vm->p->reg_dtype[v->rows];
}

int64_t fth__row_at(const fth__vm *vm, int l, const char *index)
{
    const fth__look *look = &vm->look[l];
    const fth__view_axis *v = look->view;
    const int64_t row = fth__index_get(dtype_of(vm, v), index);
    if (row >= 0 && row < v->limit) return fth__view_at(v, look->size, v->mul * row + v->add);
    complain(vm, index);
    return -1;
}

/* A block of places of which one at least is outside: those read nothing. */
static void bring_some(const fth__vm *vm, const fth__view_axis *v, int64_t n, const char *index,
                       int64_t step, const fth__take *take, const char *from, char *to)
{
    const fth_dtype t = dtype_of(vm, v);
    for (int64_t c = 0; c < n; c++, index += step) {
        const int64_t k = fth__index_get(t, index);
        const bool inside = k >= 0 && k < v->limit;
        if (inside)
            memcpy(to + c * take->size, from + k * take->by + c * take->from_step,
                   (size_t)take->size);
        else {
            memset(to + c * take->size, 0, (size_t)take->size);
            complain(vm, index);
        }
    }
}

void fth__bring_rows(const fth__vm *vm, int l, int64_t n, const char *index, int64_t step,
                     const char *from, int64_t col, char *to)
{
    const fth__look *look = &vm->look[l];
    const fth__view_axis *v = look->view;
    const fth_dtype t = dtype_of(vm, v);
    const int64_t size = fth_dtype_size((fth_dtype)vm->p->reg_dtype[v->in]),
                  row = look->stride * size, bytes = step * fth_dtype_size(t);
    const fth__take take = {.size = size,
                            .by = v->mul * row,
                            .from_step = col * size,
                            .to_step = size,
                            .limit = v->limit};
    int64_t room[FTH__PLACES];
    FTH_ASSERT(v->border == FTH__BORDER_NONE);
    from += v->add * row;
    fth__take_dense_fn *dense = fth__take_dense(&take, t, bytes);
    if (dense && dense(&take, n, index, from, to)) return;
    for (int64_t c = 0; c < n; c += FTH__PLACES) {
        const int64_t more = fth__min_i64(FTH__PLACES, n - c);
        const char *at = index + c * bytes, *first = from + c * take.from_step;
        const int64_t *place = fth__places(t, more, at, bytes, v->limit, room);
        if (place)
            fth__take_places(&take, more, place, first, to + c * size);
        else
            bring_some(vm, v, more, at, bytes, &take, first, to + c * size);
    }
}

/* Whose index the element is. */
static const fth__view_axis *find_rows(const fth__vm *vm, const char *at)
{
    for (int l = 0; l < vm->n_looks; l++) {
        const fth__view_axis *v = vm->look[l].view;
        if (v->rows < 0) continue;
        const fth_desc *d = &vm->call->node->in[v->rows];
        const fth_tile *t = &vm->call->in[v->rows];
        int64_t last = 0;
        for (int k = 0; k < d->n_axes; k++) last += (t->extent[k] - 1) * t->stride[k];
        const char *data = t->data;
        if (at < data || at > data + last * fth_dtype_size(d->dtype)) continue;
        const int64_t row = fth__index_get(d->dtype, at);
        if (row < 0 || row >= v->limit) return v;
    }
    return NULL;
}

fth_status fth__row_status(const fth__vm *vm)
{
    const uintptr_t at = atomic_load(vm->fault);
    if (at == UINTPTR_MAX) return FTH_OK;
    const char *const element = (const char *)at;
    const fth__view_axis *v = find_rows(vm, element);
    if (!v) return FTH_FAIL(vm->call->err, FTH_E_INTERNAL, "fused: an index that is nobody's");
    const fth_node *gather = fth__gather_of(vm->call->node, v);
    return fth__index_fail_tile(gather, 1, &vm->call->in[v->rows], element,
                                gather->in[0].axis[v->gather_dim], v->limit, vm->call->err);
}

/* ---- made ----------------------------------------------------------------------------- */

void fth__made_init(fth__vm *vm, const int64_t *origin)
{
    const fth__program *p = vm->p;
    for (int i = 0; i < p->n_made; i++) {
        const fth__made *made = &p->made[i];
        vm->first[FTH__VM_MADE + i] = made->add;
        for (int k = 0; k < p->n_axes + (p->inner_red > 0); k++) {
            vm->stride[FTH__VM_MADE + i][k] = made->step[k];
            vm->first[FTH__VM_MADE + i] += made->step[k] * origin[k];
        }
    }
}

static void count(int64_t n, int64_t *to, int64_t first, int64_t step)
{
    for (int64_t i = 0; i < n; i++) to[i] = first + i * step;
}

void fth__make_block(const fth__worker *w, const fth__step *s, const fth__spot *spot, int64_t rows,
                     int64_t cols)
{
    const fth__vm *vm = w->vm;
    const fth__made *made = &vm->p->made[s->made];
    const int array = FTH__VM_MADE + s->made;
    const int64_t col = vm->stride[array][vm->col_dim],
                  row = vm->row_dim < 0 ? 0 : vm->stride[array][vm->row_dim],
                  first = vm->first[array] + spot->at[array], size = fth__reg_size(vm, s->dst);
    fth__random_key key = {0};
    fth__random_row *draw = NULL;
    if (s->once) rows = cols = 1;
    if (made->kind != FTH__MADE_INDEX) {
        key = fth__random_key_make(*(const int64_t *)w->at[s->src[0]],
                                   *(const int64_t *)w->at[s->src[1]], made->stream);
        draw = (*FTH_ISA_BEST(fth__random_rows))[made->kind][vm->reg[s->dst].dtype == FTH_F64];
    }
    for (int64_t r = 0; r < rows; r++) {
        char *to = (char *)w->at[s->dst] + r * cols * size;
        if (draw)
            draw(cols, to, &key, (uint64_t)(first + r * row), (uint64_t)col);
        else
            count(cols, (int64_t *)(void *)to, first + r * row, col);
    }
}
