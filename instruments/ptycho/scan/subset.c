/* subset.c - every second pattern of a scan: two halves of the data, to reconstruct separately.
 *
 * Pattern i of the half is pattern 2 i + first of the file; nothing is copied.
 */
#include "parts.h"

typedef struct half {
    fth_source base;
    int64_t first;
    int64_t bytes; /* of a frame */
} half;

static fth_status read_half(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const half *h = self;
    const int64_t part = n[1] * n[2] * fth_dtype_size(h->base.dtype);
    for (int64_t k = 0; k < n[0]; k++) {
        const int64_t at[3] = {2 * (lo[0] + k) + h->first, lo[1], lo[2]}, one[3] = {1, n[1], n[2]};
        FTH_TRY(h->base.read(h->base.self, at, one, (char *)dst + k * part, err));
    }
    return FTH_OK;
}

static fth_status read_rows(void *self, const int64_t *index, int64_t n, void *dst, fth_err *err)
{
    const half *h = self;
    const int64_t count = (h->base.size[0] - h->first + 1) / 2;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at[3] = {2 * index[k] + h->first, 0, 0},
                      one[3] = {1, h->base.size[1], h->base.size[2]};
        if (index[k] < 0 || index[k] >= count)
            return FTH_FAIL(err, FTH_E_INDEX_RANGE, "pattern %lld of %lld was requested",
                            (long long)index[k], (long long)count);
        FTH_TRY(h->base.read(h->base.self, at, one, (char *)dst + k * h->bytes, err));
    }
    return FTH_OK;
}

static fth_status halve(pt_scan *scan, fth_source *source, int64_t first, int64_t n, fth_err *err)
{
    void *block = NULL;
    if (source->n_axes != 3) return FTH_OK;
    FTH_TRY(pt_scan_hold(scan, sizeof(half), "half of the patterns", &block, err));
    half *h = block;
    *h = (half){*source, first, source->size[1] * source->size[2] * fth_dtype_size(source->dtype)};
    *source = (fth_source){.kind = source->kind,
                           .self = h,
                           .dtype = source->dtype,
                           .n_axes = 3,
                           .size = {n, source->size[1], source->size[2]},
                           .read = read_half,
                           .read_rows = read_rows,
                           .libraries = source->libraries,
                           .billed_bytes = source->billed_bytes};
    return FTH_OK;
}

fth_status pt_take_subset(pt_draft *d, fth_err *err)
{
    pt_scan *scan = d->scan;
    if (d->opt->subset == PT_SUBSET_ALL) return FTH_OK;
    const int64_t first = d->opt->subset == PT_SUBSET_ODD ? 1 : 0, n = (scan->n - first + 1) / 2;
    if (n < 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s has %lld patterns: there is no %s half",
                        scan->path, (long long)scan->n, first ? "odd" : "even");
    FTH_TRY(halve(scan, &scan->patterns, first, n, err));
    FTH_TRY(halve(scan, &scan->masks, first, n, err));
    const bool apart = scan->start_x != scan->x;
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = 2 * i + first;
        scan->x[i] = scan->x[from];
        scan->y[i] = scan->y[from];
        if (scan->index) scan->index[i] = scan->index[from];
        if (!apart) continue;
        scan->start_x[i] = scan->start_x[from];
        scan->start_y[i] = scan->start_y[from];
    }
    scan->n = n;
    return FTH_OK;
}
