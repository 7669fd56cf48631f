/* view.c - patterns as amplitudes or counts of f32 or f64, whatever the file keeps. */
#include "parts.h"

#include <math.h>
#include <string.h>

typedef struct view {
    fth_source base;
    bool root, square; /* counts become amplitudes, or amplitudes counts */
    bool narrow;       /* to f32 */
    void *room;        /* one frame of the base */
} view;

/* Values of a frame, from `src` to dst; both may not overlap. */
#define LOOP(type, out_type)                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                              \
        double v = (double)((const type *)src)[i];                                                 \
        if (w->root) v = sqrt(v);                                                                  \
        if (w->square) v *= v;                                                                     \
        ((out_type *)dst)[i] = (out_type)v;                                                        \
    }
#define BOTH(type)                                                                                 \
    {                                                                                              \
        if (w->narrow) LOOP(type, float)                                                           \
        if (!w->narrow) LOOP(type, double)                                                         \
    }

static void convert(const view *w, const void *src, int64_t n, void *dst)
{
    const fth_dtype t = w->base.dtype;
    if (t == FTH_U8) BOTH(uint8_t)
    if (t == FTH_U16) BOTH(uint16_t)
    if (t == FTH_I32) BOTH(int32_t)
    if (t == FTH_I64) BOTH(int64_t)
    if (t == FTH_F32) BOTH(float)
    if (t == FTH_F64) BOTH(double)
}
#undef BOTH
#undef LOOP

static int64_t out_item(const view *w)
{
    return w->narrow ? 4 : 8;
}

static fth_status view_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const view *w = self;
    const int64_t frame = n[1] * n[2];
    for (int64_t k = 0; k < n[0]; k++) {
        const int64_t at[3] = {lo[0] + k, lo[1], lo[2]}, one[3] = {1, n[1], n[2]};
        FTH_TRY(w->base.read(w->base.self, at, one, w->room, err));
        convert(w, w->room, frame, (char *)dst + k * frame * out_item(w));
    }
    return FTH_OK;
}

static fth_status view_read_rows(void *self, const int64_t *index, int64_t n, void *dst,
                                 fth_err *err)
{
    const view *w = self;
    const int64_t rows = w->base.size[1], cols = w->base.size[2];
    for (int64_t k = 0; k < n; k++) {
        const int64_t at[3] = {index[k], 0, 0}, one[3] = {1, rows, cols};
        if (index[k] < 0 || index[k] >= w->base.size[0])
            return FTH_FAIL(err, FTH_E_INDEX_RANGE, "pattern %lld of %lld was requested",
                            (long long)index[k], (long long)w->base.size[0]);
        FTH_TRY(w->base.read(w->base.self, at, one, w->room, err));
        convert(w, w->room, rows * cols, (char *)dst + k * rows * cols * out_item(w));
    }
    return FTH_OK;
}

fth_status pt_scan_view(pt_scan *scan, pt_kind kind, fth_dtype dtype, fth_source *out, fth_err *err)
{
    const fth_source *base = &scan->patterns;
    void *block = NULL, *room = NULL;
    *out = (fth_source){0};
    if (dtype != FTH_F32 && dtype != FTH_F64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "patterns are read as f32 or f64, not as %s",
                        fth_dtype_name(dtype));
    if (base->dtype == dtype && scan->kind == kind) { /* as they are */
        *out = *base;
        return FTH_OK;
    }
    const int64_t frame = scan->N * scan->N * fth_dtype_size(base->dtype);
    FTH_TRY(pt_scan_hold(scan, sizeof(view), "view of patterns", &block, err));
    FTH_TRY(pt_scan_hold(scan, (uint64_t)frame, "one pattern", &room, err));
    view *w = block;
    *w = (view){.base = *base,
                .root = kind == PT_AMPLITUDE && scan->kind == PT_COUNTS,
                .square = kind == PT_COUNTS && scan->kind == PT_AMPLITUDE,
                .narrow = dtype == FTH_F32,
                .room = room};
    *out = (fth_source){.kind = base->kind,
                        .self = w,
                        .dtype = dtype,
                        .n_axes = 3,
                        .size = {scan->n, scan->N, scan->N},
                        .read = view_read,
                        .read_rows = view_read_rows,
                        .libraries = base->libraries,
                        .billed_bytes = base->billed_bytes};
    return FTH_OK;
}

const char *pt_scan_choices(const pt_scan *scan, char *text, size_t size)
{
    snprintf(
        text, size, "%s: %lld patterns of %lld x %lld, %s %s, positions with sign %+d", scan->path,
        (long long)scan->n, (long long)scan->N, (long long)scan->N, pt_kind_names[scan->kind],
        scan->kind_is_declared ? "as declared" : "unless --data.kind says otherwise", scan->sign);
    return text;
}
