/* view.c - see view.h. */
#include "view.h"

#include <math.h>

static fth_c128 element(const pt_view *v, int64_t i)
{
    const float *f = v->data;
    const double *d = v->data;
    const bool wide = v->dtype == FTH_F64 || v->dtype == FTH_C128;
    if (!fth_dtype_is_complex(v->dtype)) return (fth_c128){wide ? d[i] : (double)f[i], 0};
    return wide ? (fth_c128){d[2 * i], d[2 * i + 1]}
                : (fth_c128){(double)f[2 * i], (double)f[2 * i + 1]};
}

static float shown(pt_view_part part, fth_c128 v)
{
    switch (part) {
    case PT_VIEW_PHASE: return (float)atan2(v.im, v.re);
    case PT_VIEW_LOG: return (float)log10(hypot(v.re, v.im) + 1);
    case PT_VIEW_AMPLITUDE: break;
    }
    return (float)hypot(v.re, v.im);
}

static fth_status read(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    const pt_view *v = self;
    const int64_t stride = v->stride ? v->stride : v->cols;
    float *to = dst;
    (void)err;
    for (int64_t r = lo[0]; r < lo[0] + n[0]; r++)
        for (int64_t c = lo[1]; c < lo[1] + n[1]; c++)
            *to++ = shown(v->part, element(v, r * stride + c));
    return FTH_OK;
}

fth_source pt_view_source(pt_view *view)
{
    return (fth_source){.kind = "view",
                        .self = view,
                        .dtype = FTH_F32,
                        .n_axes = 2,
                        .size = {view->rows, view->cols},
                        .read = read};
}

fth_status pt_view_limits(pt_view *view, fth_mem *mem, double low_percent, double high_percent,
                          double *low, double *high, fth_err *err)
{
    const fth_source source = pt_view_source(view);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)view->rows * sizeof(fth_column),
                         "rows of a view", &block, err));
    fth_column *row = block;
    for (int64_t r = 0; r < view->rows; r++) row[r] = fth_column_row(&source, r);
    fth_status s = fth_column_percentile(mem, row, view->rows, low_percent, low, err);
    if (s == FTH_OK) s = fth_column_percentile(mem, row, view->rows, high_percent, high, err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}
