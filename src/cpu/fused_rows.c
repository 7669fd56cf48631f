/* fused_rows.c - what a fused program reads by an index, or makes itself: rows of an operand,
 * indices and random numbers.
 *
 * The index of rows is read in the loop. One that is beyond its axis reads nothing, and is reported
 * when the walk is over: of several the first in memory, whatever worker found it.
 */
#include "cpu/fused.h"
#include "cpu/random.h"

#include "base/assert.h"
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

/* Elements of one size, by an index of one type. */
#define ROWS(name, index_t, bytes)                                                                 \
    static void name(const fth__vm *vm, int l, int64_t n, const char *index_, int64_t step,        \
                     const char *from, int64_t col, char *to)                                      \
    {                                                                                              \
        const fth__look *look = &vm->look[l];                                                      \
        const fth__view_axis *v = look->view;                                                      \
        const index_t *index = (const void *)index_;                                               \
        const int64_t row = look->stride * (bytes), first = v->add * row, by = v->mul * row;       \
        for (int64_t c = 0; c < n; c++) {                                                          \
            const int64_t k = index[c * step];                                                     \
            if ((uint64_t)k < (uint64_t)v->limit) {                                                \
                memcpy(to + c * (bytes), from + first + k * by + c * col * (bytes), bytes);        \
                continue;                                                                          \
            }                                                                                      \
            memset(to + c * (bytes), 0, bytes);                                                    \
            complain(vm, (const char *)(index + c * step));                                        \
        }                                                                                          \
    }
ROWS(rows_1, int64_t, 1)
ROWS(rows_2, int64_t, 2)
ROWS(rows_4, int64_t, 4)
ROWS(rows_8, int64_t, 8)
ROWS(rows_16, int64_t, 16)
ROWS(rows_1_i32, int32_t, 1)
ROWS(rows_2_i32, int32_t, 2)
ROWS(rows_4_i32, int32_t, 4)
ROWS(rows_8_i32, int32_t, 8)
ROWS(rows_16_i32, int32_t, 16)
ROWS(rows_1_u32, uint32_t, 1)
ROWS(rows_2_u32, uint32_t, 2)
ROWS(rows_4_u32, uint32_t, 4)
ROWS(rows_8_u32, uint32_t, 8)
ROWS(rows_16_u32, uint32_t, 16)

typedef void rows_fn(const fth__vm *vm, int l, int64_t n, const char *index, int64_t step,
                     const char *from, int64_t col, char *to);
static rows_fn *const loops[FTH_DTYPE_COUNT][5] = {
    [FTH_I32] = {rows_1_i32, rows_2_i32, rows_4_i32, rows_8_i32, rows_16_i32},
    [FTH_U32] = {rows_1_u32, rows_2_u32, rows_4_u32, rows_8_u32, rows_16_u32},
    [FTH_I64] = {rows_1, rows_2, rows_4, rows_8, rows_16}};

void fth__bring_rows(const fth__vm *vm, int l, int64_t n, const char *index, int64_t step,
                     const char *from, int64_t col, char *to)
{
    const fth__view_axis *v = vm->look[l].view;
    const int64_t size = fth_dtype_size((fth_dtype)vm->p->reg_dtype[v->in]);
    int k = 0;
    while (((int64_t)1 << k) < size) k++;
    FTH_ASSERT(k < 5 && (int64_t)1 << k == size && v->border == FTH__BORDER_NONE);
    loops[dtype_of(vm, v)][k](vm, l, n, index, step, from, col, to);
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
