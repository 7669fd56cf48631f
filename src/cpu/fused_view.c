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
        if (v->rows >= 0) continue;
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

/* Of rows the place of their index. */
static int array_of(const fth__vm *vm, int l)
{
    const int rows = vm->look[l].view->rows;
    return rows >= 0 ? rows : FTH__VM_LOOKS + l;
}

static int64_t raw_at(const fth__vm *vm, int l, const fth__spot *spot)
{
    const int array = array_of(vm, l);
    return vm->first[array] + spot->at[array];
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
        if (look->view->rows >= 0) return true;
        const int64_t raw = raw_at(vm, l, spot), r = by_row(vm, FTH__VM_LOOKS + l) * (rows - 1),
                      c = vm->stride[FTH__VM_LOOKS + l][vm->col_dim] * (cols - 1);
        const int64_t least = raw + fth__min_i64(r, 0) + fth__min_i64(c, 0),
                      most = raw + fth__max_i64(r, 0) + fth__max_i64(c, 0);
        if (look->view->div != 1 || least < 0 || most >= look->size) return true;
    }
    return false;
}

#define BEYOND INT64_MIN

/* One row of a block. */
typedef struct row {
    const fth__vm *vm;
    int i;
    int64_t size;                   /* of an element */
    int64_t raw[FTH_PROGRAM_VIEWS]; /* of the row's first element, per look; of rows where their
                                       index lies */
    int64_t at;                     /* its offset in elements, as if nothing lay beyond an end */
    int64_t cols, col;              /* elements; offset from one to the next */
    unsigned settled;               /* looks that are the same all along it, in `at` already */
} row;

/* The element of the index of look l that stands `at` from its first. */
static const char *index_at(const fth__vm *vm, int l, int64_t at)
{
    const int rows = vm->look[l].view->rows;
    return (const char *)vm->call->in[rows].data +
           at * fth_dtype_size((fth_dtype)vm->p->reg_dtype[rows]);
}

/* How far look l moves what is read at a raw index (or at an element of an index, for rows) from
 * where strides alone would have it; BEYOND: its number is read instead. */
static int64_t moved(const row *r, int l, int64_t raw)
{
    const fth__look *look = &r->vm->look[l];
    const bool rows = look->view->rows >= 0;
    const int64_t index = rows ? fth__row_at(r->vm, l, index_at(r->vm, l, raw))
                               : fth__view_at(look->view, look->size, raw);
    if (index < 0) return BEYOND;
    /* what a view divides is not in the strides, and of rows there is the first */
    const int64_t from = rows ? 0 : look->view->div == 1 ? raw : look->origin;
    return (index - from) * look->stride;
}

/* Offset of element c, with what is read instead of elements beyond the ends; NULL in *fill, or the
 * number that takes its place. */
static int64_t element(const row *r, int64_t c, const void **fill)
{
    const fth__vm *vm = r->vm;
    int64_t at = r->at + c * r->col;
    *fill = NULL;
    for (int l = 0; l < vm->n_looks; l++) {
        const fth__look *look = &vm->look[l];
        if (look->view->in != r->i || (r->settled & 1u << l)) continue;
        const int64_t from = moved(r, l, r->raw[l] + c * vm->stride[array_of(vm, l)][vm->col_dim]);
        if (from == BEYOND) {
            *fill = &look->fill;
            return 0;
        }
        at += from;
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
    if (look->view->rows >= 0 || look->view->div != 1 || (step == 0 && (raw < 0 || raw > last))) {
        *hi = *lo;
    } else if (step > 0) {
        *lo = fth__max_i64(*lo, raw < 0 ? fth__ceil_div_i64(-raw, step) : 0);
        *hi = fth__min_i64(*hi, raw > last ? 0 : (last - raw) / step + 1);
    } else if (step < 0) {
        *lo = fth__max_i64(*lo, raw > last ? fth__ceil_div_i64(raw - last, -step) : 0);
        *hi = fth__min_i64(*hi, raw < 0 ? 0 : raw / -step + 1);
    }
}

/* Elements from c on that lie as one: up to where look l comes to an end of its axis. */
static int64_t run_of(const row *r, int l, int64_t c)
{
    const fth__look *look = &r->vm->look[l];
    const int64_t step = r->vm->stride[FTH__VM_LOOKS + l][r->vm->col_dim],
                  raw = r->raw[l] + c * step, at = fth__view_at(look->view, look->size, raw);
    FTH_ASSERT(look->view->border == FTH__BORDER_WRAP && step != 0 && at >= 0);
    return step > 0 ? fth__ceil_div_i64(look->size - at, step) : at / -step + 1;
}

/* Everything that moves along the row goes around its axis: it is a few pieces. */
static bool only_around(const row *r)
{
    bool around = false;
    for (int l = 0; l < r->vm->n_looks; l++) {
        const fth__view_axis *v = r->vm->look[l].view;
        if (v->in != r->i || (r->settled & 1u << l)) continue;
        if (v->border != FTH__BORDER_WRAP || v->rows >= 0 || v->div != 1) return false;
        around = true;
    }
    return around;
}

static void bring_around(const row *r, const char *from, char *to)
{
    const void *fill;
    for (int64_t c = 0, n = 0; c < r->cols; c += n) {
        n = r->cols - c;
        for (int l = 0; l < r->vm->n_looks; l++)
            if (r->vm->look[l].view->in == r->i && !(r->settled & 1u << l))
                n = fth__min_i64(n, run_of(r, l, c));
        const int64_t at = element(r, c, &fill);
        fth__copy_block(r->size, 1, n, to + c * r->size, n, 1, from + at * r->size, 0, r->col);
    }
}

/* A row beyond an end along another axis is one piece as well: the row that is read instead, or
 * the number that is returned. */
static const void *settle_row(row *r)
{
    const fth__vm *vm = r->vm;
    for (int l = 0; l < vm->n_looks; l++) {
        const fth__look *look = &vm->look[l];
        if (look->view->in != r->i || vm->stride[array_of(vm, l)][vm->col_dim] != 0) continue;
        const int64_t from = moved(r, l, r->raw[l]);
        if (from == BEYOND) return &look->fill;
        r->at += from;
        r->settled |= 1u << l;
    }
    return NULL;
}

/* The one look of the row that moves along it, if it is one of rows and has no border; -1. */
static int only_rows(const row *r)
{
    int found = -1;
    for (int l = 0; l < r->vm->n_looks; l++) {
        const fth__view_axis *v = r->vm->look[l].view;
        if (v->in != r->i || r->vm->stride[array_of(r->vm, l)][r->vm->col_dim] == 0) continue;
        if (found >= 0 || v->rows < 0 || v->border != FTH__BORDER_NONE) return -1;
        found = l;
    }
    return found;
}

static void bring_row(row *r, const char *from, char *to)
{
    const void *fill = settle_row(r);
    int64_t lo = 0, hi = r->cols;
    if (fill) {
        fth__copy_block(r->size, 1, r->cols, to, r->cols, 1, fill, 0, 0);
        return;
    }
    if (only_around(r)) {
        bring_around(r, from, to);
        return;
    }
    for (int l = 0; l < r->vm->n_looks; l++)
        if (r->vm->look[l].view->in == r->i && !(r->settled & 1u << l)) clip_inside(r, l, &lo, &hi);
    if (hi <= lo) lo = hi = 0;
    const int l = only_rows(r);
    if (l >= 0) {
        fth__bring_rows(r->vm, l, r->cols, index_at(r->vm, l, r->raw[l]),
                        r->vm->stride[array_of(r->vm, l)][r->vm->col_dim], from + r->at * r->size,
                        r->col, to);
        return;
    }
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
            r.raw[l] = raw_at(vm, l, spot) + k * by_row(vm, array_of(vm, l));
        bring_row(&r, from, to + k * cols * size);
    }
}
