/* fill.c - arrays of a file become parts of a scan; mismatches are refused with both sizes.
 */
#include "../resize/resize.h"
#include "parts.h"

#include <math.h>
#include <string.h>

/* ---- patterns ---- */

static fth_status find_axes(pt_draft *d, const fth_source *b, const char *name, int64_t count,
                            int axis[3], fth_err *err)
{
    char shape[120];
    int n = b->n_axes;
    pt_shape_text(b, shape, sizeof shape);
    if (n == 4 && b->size[3] == 1) n = 3; /* a channel of its own, as TensorFlow has it */
    if (n != 3)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: '%s' is %s; expected [scan row col], [scan row col 1], [row col "
                        "scan] or [scan row, scan col, row, col]",
                        d->scan->path, name, shape);
    const bool first = b->size[0] == count, last = b->size[2] == count;
    if (!first && !last) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "%s: '%s' is %s, and there are %lld positions: no axis at its front or end has "
                 "that length",
                 d->scan->path, name, shape, (long long)count);
        fth_err_hint(err, "there must be one pattern for each position");
        return FTH_E_FILE_SHAPE;
    }
    if (first && last && b->size[1] == b->size[2])
        FTH_TRY(pt_scan_warn(d->scan, err,
                             "'%s' is %s: both its first and its last axis match the number of "
                             "positions; using the first as the scan",
                             name, shape));
    axis[0] = first ? 0 : 2;
    axis[1] = first ? 1 : 0;
    axis[2] = first ? 2 : 1;
    if (!first) d->slow = true;
    return FTH_OK;
}

static fth_status check_frames(const pt_draft *d, const fth_source *s, const char *name,
                               fth_err *err)
{
    const long long rows = s->size[1], cols = s->size[2];
    if (rows == cols && rows % 2 == 0 && rows > 0) return FTH_OK;
    if (rows != cols)
        FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' has frames of %lld x %lld; expected square ones",
                 d->scan->path, name, rows, cols);
    else
        FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "%s: '%s' has frames of %lld x %lld; expected an even number of pixels",
                 d->scan->path, name, rows, cols);
    const long long side = (rows < cols ? rows : cols) / 2 * 2;
    fth_err_hint(err, "--crop %lld cuts squares out, about --centre_x and --centre_y",
                 side > 2 ? side : 2);
    return FTH_E_FILE_SHAPE;
}

fth_status pt_set_patterns(pt_draft *d, fth_source *base, const char *name, int64_t count,
                           fth_err *err)
{
    const fth_source s = *base;
    FTH_TRY(pt_scan_keep(d->scan, base, err));
    return pt_set_patterns_of(d, &s, name, count, err);
}

/* The largest value of a detector's dtype marks a dead or saturated pixel; sums of
 * several pixels reach it by themselves, unless it has 32 bits (u32 is read as i64). */
static double saturation_of(fth_dtype dtype, int64_t bin)
{
    if (dtype == FTH_I64) return UINT32_MAX;
    if (dtype == FTH_I32) return INT32_MAX;
    if (bin > 1) return (double)NAN;
    return dtype == FTH_U16 ? UINT16_MAX : dtype == FTH_U8 ? UINT8_MAX : (double)NAN;
}

fth_status pt_set_patterns_of(pt_draft *d, const fth_source *base, const char *name, int64_t count,
                              fth_err *err)
{
    pt_scan *scan = d->scan;
    int axis[3] = {0, 1, 2};
    fth_source s = *base;
    FTH_TRY(pt_wide_view(scan, base, &s, err));
    if (!pt_is_number(s.dtype)) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' is of %s; expected f32, f64 or whole numbers",
                 scan->path, name, fth_dtype_name(s.dtype));
        fth_err_hint(err, "convert it to f32, f64, u8, u16 or u32");
        return FTH_E_FILE_SHAPE;
    }
    if (s.n_axes == 4 && s.size[3] > 1 && s.size[0] * s.size[1] == count)
        FTH_TRY(pt_cube_view(scan, &s, &s, err));
    FTH_TRY(find_axes(d, &s, name, count, axis, err));
    if (s.n_axes != 3 || axis[0] != 0) FTH_TRY(pt_axes_view(scan, &s, axis, &s, err));
    if (s.size[0] == 0)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' has no patterns", scan->path, name);
    d->integral = fth_dtype_is_int(s.dtype);
    scan->saturated = saturation_of(s.dtype, d->opt->bin);
    d->rows = s.size[1];
    d->cols = s.size[2];
    if (pt_frames_are_cut(d)) {
        FTH_TRY(pt_frames_view(d, &s, &s, err));
        d->slow = true; /* cropping on every read would cost more than one copy */
    }
    FTH_TRY(check_frames(d, &s, name, err));
    snprintf(scan->array, sizeof scan->array, "%s", name);
    scan->patterns = s;
    scan->n = s.size[0];
    scan->N = s.size[1];
    return FTH_OK;
}

/* ---- the probe ---- */

static fth_status probe_shape(const pt_draft *d, const fth_source *b, const char *name,
                              int64_t *modes, int64_t *side, fth_err *err)
{
    char shape[120];
    int64_t size[FTH_MAX_AXES] = {1, 1, 1, 1};
    int n = b->n_axes;
    memcpy(size, b->size, sizeof size);
    if (n == 4 && size[0] == 1) { /* one component of orthogonal probe relaxation */
        memmove(size, size + 1, 3 * sizeof *size);
        n = 3;
    }
    if (n == 3 && size[2] == 1 && size[0] == size[1]) n = 2;
    *modes = n == 3 ? size[0] : 1;
    *side = n >= 2 ? size[n - 1] : 0;
    if ((n == 2 || n == 3) && (fth_dtype_is_complex(b->dtype) || pt_is_number(b->dtype)) &&
        size[n - 2] == *side && *side > 0 && *modes > 0)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: '%s' is %s of %s, and the patterns are %lld x %lld; expected complex "
                    "numbers [row col] or [mode row col] of that size",
                    d->scan->path, name, pt_shape_text(b, shape, sizeof shape),
                    fth_dtype_name(b->dtype), (long long)d->scan->N, (long long)d->scan->N);
}

static fth_status check_probe(const pt_draft *d, const char *name, fth_err *err)
{
    const pt_scan *scan = d->scan;
    const int64_t N = scan->N, count = scan->modes * N * N;
    bool lit = false;
    for (int64_t i = 0; i < count; i++) {
        const fth_c128 v = scan->probe[i];
        if (!isfinite(v.re) || !isfinite(v.im))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: '%s' is not finite at [%lld %lld %lld] (mode, row, col)",
                            scan->path, name, (long long)(i / N / N), (long long)(i / N % N),
                            (long long)(i % N));
        lit = lit || v.re != 0 || v.im != 0;
    }
    if (lit) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' is zero everywhere", scan->path, name);
    fth_err_hint(err, "--probe_guess estimate makes one from the patterns");
    return FTH_E_FILE_FORMAT;
}

/* Numbers of any dtype as c128, in a block of their own. */
static fth_status read_probe(const pt_scan *scan, const fth_source *b, const char *name,
                             int64_t count, fth_c128 **out, fth_err *err)
{
    fth_tensor *t = NULL;
    void *block = NULL;
    FTH_TRY(fth_source_load(b, scan->mem, name, &t, err));
    const fth_status s = fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)count * sizeof(fth_c128),
                                      "probe", &block, err);
    const void *from = s == FTH_OK ? fth_tensor_view(t) : NULL;
    fth_c128 *to = block;
    for (int64_t i = 0; from && i < count; i++) {
        if (b->dtype == FTH_C64) {
            const fth_c64 v = ((const fth_c64 *)from)[i];
            to[i] = (fth_c128){(double)v.re, (double)v.im};
        } else if (b->dtype == FTH_C128) {
            to[i] = ((const fth_c128 *)from)[i];
        } else {
            const char *at = (const char *)from + i * fth_dtype_size(b->dtype);
            to[i] = (fth_c128){0, 0};
            pt_to_f64(b->dtype, at, 1, &to[i].re);
        }
    }
    fth_tensor_release(t);
    *out = to;
    return s;
}

static fth_status fit_probe(pt_draft *d, const char *name, const char *shape, fth_c128 **read,
                            int64_t modes, int64_t side, fth_err *err)
{
    pt_scan *scan = d->scan;
    void *block = NULL;
    if (d->opt->probe_resize[0])
        FTH_TRY(pt_probe_resize(scan->ctx, d->opt->probe_resize, read, modes, &side, err));
    if (side != scan->N) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "%s: '%s' is %s%s, and the patterns are %lld x %lld: probe and patterns must have "
                 "one size",
                 scan->path, name, shape, d->opt->probe_resize[0] ? " before it is resized" : "",
                 (long long)scan->N, (long long)scan->N);
        fth_err_hint(err,
                     "--probe_resize '%s:%lld' brings it to that size, --probe_guess estimate "
                     "makes another",
                     d->opt->bin > 1                           ? side < scan->N ? "pad" : "crop"
                     : side < scan->N && !pt_frames_are_cut(d) ? "smooth:0.5|pad"
                                                               : "interp",
                     (long long)scan->N);
        return FTH_E_FILE_SHAPE;
    }
    const uint64_t bytes = (uint64_t)(modes * side * side) * sizeof(fth_c128);
    FTH_TRY(pt_scan_hold(scan, bytes, "probe", &block, err));
    memcpy(block, *read, bytes);
    scan->probe = block;
    scan->modes = modes;
    return check_probe(d, name, err);
}

static fth_status load_probe(pt_draft *d, const fth_source *b, const char *name, fth_err *err)
{
    int64_t modes = 0, side = 0;
    fth_c128 *read = NULL;
    char shape[120];
    FTH_TRY(probe_shape(d, b, name, &modes, &side, err));
    FTH_TRY(read_probe(d->scan, b, name, modes * side * side, &read, err));
    const fth_status s =
        fit_probe(d, name, pt_shape_text(b, shape, sizeof shape), &read, modes, side, err);
    fth_mem_release(d->scan->mem, read, NULL);
    return s;
}

fth_status pt_set_probe(pt_draft *d, fth_source *base, const char *name, fth_err *err)
{
    const fth_status s = load_probe(d, base, name, err);
    fth_source_close(base);
    if (s != FTH_OK) d->scan->modes = 0;
    return s;
}

/* ---- positions ---- */

fth_status pt_set_index(pt_draft *d, const double *v, int64_t n, const char *name, fth_err *err)
{
    pt_scan *scan = d->scan;
    void *block = NULL;
    if (n != scan->n)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' has %lld numbers for %lld positions",
                        scan->path, name, (long long)n, (long long)scan->n);
    FTH_TRY(pt_scan_hold(scan, (uint64_t)n * sizeof(int64_t), name, &block, err));
    scan->index = block;
    for (int64_t i = 0; i < n; i++) scan->index[i] = llrint(v[i]);
    return FTH_OK;
}

fth_status pt_check_positions(const pt_draft *d, const double *v, int64_t n, const char *name,
                              fth_err *err)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' is not finite at [%lld]",
                            d->scan->path, name, (long long)i);
    return FTH_OK;
}
