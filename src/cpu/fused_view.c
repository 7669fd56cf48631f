/* fused_view.c - inputs that a fused program reads beyond the ends of their axes.
 *
 * Most blocks lie inside, where a view is nothing but strides. The others are brought into a slot
 * row by row: what lies inside as one piece, the rest element by element.
 */
#include "cpu/fused.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/view.h"

#include <string.h>

void fth__looks_init(fth__vm *vm, const int64_t *origin)
{
    const fth__program *p = vm->p;
    vm->n_looks = 0;
    for (int i = 0; i < p->n_views; i++) {
        const fth__view_axis *v = &p->view[i];
        if (!fth__view_looks(v)) continue;
        const fth_tile *t = &vm->call->in[v->in];
        const fth_dtype dtype = (fth_dtype)p->reg_dtype[v->in];
        fth__look *look = &vm->look[vm->n_looks];
        const int array = FTH__VM_LOOKS + vm->n_looks++;
        *look = (fth__look){.view = v,
                            .size = vm->call->node->in[v->in].size[v->dim],
                            .origin = t->origin[v->dim],
                            .stride = t->stride[v->dim]};
        fth__store(dtype, &look->fill, fth__wide_of(dtype, v->fill));
        if (v->along >= 0) vm->stride[array][v->along] += v->mul;
        if (v->tap >= 0) vm->stride[array][v->tap] += v->tap_mul;
        vm->first[array] = fth__view_raw(v, origin);
    }
}

bool fth__is_looked_after(const fth__vm *vm, int i)
{
    for (int l = 0; l < vm->n_looks; l++)
        if (vm->look[l].view->in == i) return true;
    return false;
}

static int64_t raw_at(const fth__vm *vm, int l, const fth__spot *spot)
{
    return vm->first[FTH__VM_LOOKS + l] + spot->at[FTH__VM_LOOKS + l];
}

static int64_t by_row(const fth__vm *vm, int array)
{
    return vm->row_dim < 0 ? 0 : vm->stride[array][vm->row_dim];
}

bool fth__is_beyond(const fth__vm *vm, int i, const fth__spot *spot, int64_t rows, int64_t cols)
{
    for (int l = 0; l < vm->n_looks; l++) {
        const fth__look *look = &vm->look[l];
        if (look->view->in != i) continue;
        const int64_t raw = raw_at(vm, l, spot), r = by_row(vm, FTH__VM_LOOKS + l) * (rows - 1),
                      c = vm->stride[FTH__VM_LOOKS + l][vm->col_dim] * (cols - 1);
        const int64_t least = raw + fth__min_i64(r, 0) + fth__min_i64(c, 0),
                      most = raw + fth__max_i64(r, 0) + fth__max_i64(c, 0);
        if (look->view->div != 1 || least < 0 || most >= look->size) return true;
    }
    return false;
}

/* One row of a block. */
typedef struct row {
    const fth__vm *vm;
    int i;
    int64_t size;                   /* of an element */
    int64_t raw[FTH_PROGRAM_VIEWS]; /* of the row's first element, per look */
    int64_t at;                     /* its offset in elements, as if nothing lay beyond an end */
    int64_t cols, col;              /* elements; offset from one to the next */
} row;

/* Offset of element c, with what is read instead of elements beyond the ends; NULL in *fill, or the
 * number that takes its place. */
static int64_t element(const row *r, int64_t c, const void **fill)
{
    const fth__vm *vm = r->vm;
    int64_t at = r->at + c * r->col;
    *fill = NULL;
    for (int l = 0; l < vm->n_looks; l++) {
        const fth__look *look = &vm->look[l];
        if (look->view->in != r->i) continue;
        const int64_t raw = r->raw[l] + c * vm->stride[FTH__VM_LOOKS + l][vm->col_dim],
                      index = fth__view_at(look->view, look->size, raw);
        if (index < 0) {
            *fill = &look->fill;
            return 0;
        }
        /* what a view divides is not in the strides */
        at += (look->view->div == 1 ? index - raw : index - look->origin) * look->stride;
    }
    return at;
}

static void bring_elements(const row *r, const char *from, char *to, int64_t c, int64_t end)
{
    for (; c < end; c++) {
        const void *fill;
        const int64_t at = element(r, c, &fill);
        memcpy(to + c * r->size, fill ? fill : from + at * r->size, (size_t)r->size);
    }
}

/* Columns [*lo, *hi) of a row lie inside along look l. */
static void clip_inside(const row *r, int l, int64_t *lo, int64_t *hi)
{
    const fth__look *look = &r->vm->look[l];
    const int64_t step = r->vm->stride[FTH__VM_LOOKS + l][r->vm->col_dim], raw = r->raw[l],
                  last = look->size - 1;
    if (look->view->div != 1 || (step == 0 && (raw < 0 || raw > last))) {
        *hi = *lo;
    } else if (step > 0) {
        *lo = fth__max_i64(*lo, raw < 0 ? fth__ceil_div_i64(-raw, step) : 0);
        *hi = fth__min_i64(*hi, raw > last ? 0 : (last - raw) / step + 1);
    } else if (step < 0) {
        *lo = fth__max_i64(*lo, raw > last ? fth__ceil_div_i64(raw - last, -step) : 0);
        *hi = fth__min_i64(*hi, raw < 0 ? 0 : raw / -step + 1);
    }
}

/* A row beyond an end along another axis is one piece as well: the row that is read instead, or
 * the number that is returned. */
static const void *settle_row(row *r)
{
    const fth__vm *vm = r->vm;
    for (int l = 0; l < vm->n_looks; l++) {
        const fth__look *look = &vm->look[l];
        if (look->view->in != r->i || vm->stride[FTH__VM_LOOKS + l][vm->col_dim] != 0) continue;
        const int64_t index = fth__view_at(look->view, look->size, r->raw[l]);
        if (index < 0) return &look->fill;
        if (look->view->div != 1) continue;
        r->at += (index - r->raw[l]) * look->stride;
        r->raw[l] = index;
    }
    return NULL;
}

static void bring_row(row *r, const char *from, char *to)
{
    const void *fill = settle_row(r);
    int64_t lo = 0, hi = r->cols;
    if (fill) {
        fth__copy_block(r->size, 1, r->cols, to, r->cols, 1, fill, 0, 0);
        return;
    }
    for (int l = 0; l < r->vm->n_looks; l++)
        if (r->vm->look[l].view->in == r->i) clip_inside(r, l, &lo, &hi);
    if (hi <= lo) lo = hi = 0;
    bring_elements(r, from, to, 0, lo);
    if (lo < hi)
        fth__copy_block(r->size, 1, hi - lo, to + lo * r->size, hi - lo, 1,
                        from + (r->at + lo * r->col) * r->size, 0, r->col);
    bring_elements(r, from, to, hi, r->cols);
}

void fth__bring_view(const fth__vm *vm, int i, const fth__spot *spot, int64_t rows, int64_t cols,
                     char *to)
{
    const char *from = vm->call->in[i].data;
    const int64_t size = fth_dtype_size((fth_dtype)vm->p->reg_dtype[i]);
    for (int64_t k = 0; k < rows; k++) {
        row r = {.vm = vm, .i = i, .size = size, .cols = cols, .col = vm->stride[i][vm->col_dim]};
        r.at = vm->first[i] + spot->at[i] + k * by_row(vm, i);
        for (int l = 0; l < vm->n_looks; l++)
            r.raw[l] = raw_at(vm, l, spot) + k * by_row(vm, FTH__VM_LOOKS + l);
        bring_row(&r, from, to + k * cols * size);
    }
}
