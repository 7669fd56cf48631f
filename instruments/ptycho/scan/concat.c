/* concat.c - sources one after the other as one, and one slice of a source as an image. */
#include "hdf5.h"

#include <string.h>

typedef struct concat {
    int64_t n;
    int64_t *first; /* [n + 1] */
    fth_source *part;
} concat;

static fth_status concat_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    const concat *c = self;
    const int64_t end = lo[0] + n[0];
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t a = lo[0] > c->first[i] ? lo[0] : c->first[i],
                      b = end < c->first[i + 1] ? end : c->first[i + 1];
        if (a >= b) continue;
        const int64_t at[3] = {a - c->first[i], lo[1], lo[2]}, some[3] = {b - a, n[1], n[2]};
        char *to = (char *)dst + (a - lo[0]) * n[1] * n[2] * fth_dtype_size(c->part[i].dtype);
        FTH_TRY(c->part[i].read(c->part[i].self, at, some, to, err));
    }
    return FTH_OK;
}

static fth_status check_parts(const pt_scan *scan, const fth_source *part, int64_t n, fth_err *err)
{
    char a[120], b[120];
    for (int64_t i = 0; i < n; i++) {
        if (part[i].n_axes != 3)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: chunk %lld is %s; expected [scan row col]",
                            scan->path, (long long)i, pt_shape_text(&part[i], a, sizeof a));
        if (part[i].dtype == part[0].dtype && part[i].size[1] == part[0].size[1] &&
            part[i].size[2] == part[0].size[2])
            continue;
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: chunk %lld is %s of %s and the first is %s of %s: frames of one size "
                        "were expected",
                        scan->path, (long long)i, pt_shape_text(&part[i], a, sizeof a),
                        fth_dtype_name(part[i].dtype), pt_shape_text(&part[0], b, sizeof b),
                        fth_dtype_name(part[0].dtype));
    }
    return FTH_OK;
}

fth_status pt_concat_view(pt_scan *scan, fth_source *part, int64_t n, fth_source *out, fth_err *err)
{
    void *block = NULL, *first = NULL, *copies = NULL;
    fth_status s = check_parts(scan, part, n, err);
    if (s == FTH_OK) s = pt_scan_hold(scan, sizeof(concat), "chunks", &block, err);
    if (s == FTH_OK)
        s = pt_scan_hold(scan, (uint64_t)(n + 1) * sizeof(int64_t), "chunks", &first, err);
    if (s == FTH_OK) s = pt_scan_hold(scan, (uint64_t)n * sizeof *part, "chunks", &copies, err);
    if (s == FTH_OK) {
        concat *c = block;
        *c = (concat){n, first, copies};
        memcpy(c->part, part, (size_t)n * sizeof *part);
        for (int64_t i = 0; i < n; i++) c->first[i + 1] = c->first[i] + part[i].size[0];
        *out = (fth_source){.kind = part[0].kind,
                            .self = c,
                            .dtype = part[0].dtype,
                            .n_axes = 3,
                            .size = {c->first[n], part[0].size[1], part[0].size[2]},
                            .read = concat_read,
                            .libraries = part[0].libraries,
                            .billed_bytes = part[0].billed_bytes};
    }
    for (int64_t i = 0; i < n; i++) {
        fth_err *told = s == FTH_OK ? err : NULL;
        const fth_status kept = pt_scan_keep(scan, &part[i], told);
        if (s == FTH_OK) s = kept;
    }
    return s;
}

/* ---- one slice ---- */

typedef struct slice {
    fth_source base;
} slice;

static fth_status slice_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    const slice *s = self;
    const int64_t at[3] = {0, lo[0], lo[1]}, some[3] = {1, n[0], n[1]};
    return s->base.read(s->base.self, at, some, dst, err);
}

fth_status pt_slice_view(pt_scan *scan, const fth_source *base, fth_source *out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(pt_scan_hold(scan, sizeof(slice), "slice", &block, err));
    slice *s = block;
    s->base = *base;
    *out = (fth_source){.kind = base->kind,
                        .self = s,
                        .dtype = base->dtype,
                        .n_axes = 2,
                        .size = {base->size[1], base->size[2]},
                        .read = slice_read,
                        .libraries = base->libraries,
                        .billed_bytes = base->billed_bytes};
    return FTH_OK;
}
