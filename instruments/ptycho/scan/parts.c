/* parts.c - see parts.h. */
#include "parts.h"

#include <math.h>
#include <string.h>

const char *const pt_kind_names[] = {"amplitude", "counts", NULL};
const char *const pt_format_names[] = {"npz",         "product", "cxi", "ptyd",
                                       "velociprobe", "hdf5",    NULL};

/* ---- resources that close with the scan ---- */

typedef struct part {
    struct part *next;
    fth_source source; /* kind NULL: none */
    fth_scratch *scratch;
    void *block;
} part;

static fth_status add_part(pt_scan *scan, part **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_META, sizeof(part), "part of a scan", &block, err));
    *out = block;
    **out = (part){.next = scan->parts};
    scan->parts = *out;
    return FTH_OK;
}

fth_status pt_scan_hold(pt_scan *scan, uint64_t bytes, const char *label, void **out, fth_err *err)
{
    part *p = NULL;
    *out = NULL;
    FTH_TRY(add_part(scan, &p, err));
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, bytes, label, &p->block, err));
    memset(p->block, 0, bytes);
    *out = p->block;
    return FTH_OK;
}

fth_status pt_scan_keep(pt_scan *scan, fth_source *source, fth_err *err)
{
    part *p = NULL;
    const fth_status s = add_part(scan, &p, err);
    if (s == FTH_OK)
        p->source = *source;
    else
        fth_source_close(source);
    return s;
}

fth_status pt_scan_keep_scratch(pt_scan *scan, fth_scratch *scratch, fth_err *err)
{
    part *p = NULL;
    const fth_status s = add_part(scan, &p, err);
    if (s == FTH_OK)
        p->scratch = scratch;
    else
        fth_scratch_destroy(scratch);
    return s;
}

void pt_scan_release_parts(pt_scan *scan)
{
    for (part *p = scan->parts; p;) {
        part *next = p->next;
        if (p->source.kind) fth_source_close(&p->source);
        fth_scratch_destroy(p->scratch);
        fth_mem_release(scan->mem, p->block, NULL);
        fth_mem_release(scan->mem, p, NULL);
        p = next;
    }
    scan->parts = NULL;
}

fth_status pt_scan_warn(pt_scan *scan, fth_err *err, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (scan->strict) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: %s", scan->path, text);
        fth_err_hint(err, "this is only a warning without --strict true");
        return FTH_E_FILE_FORMAT;
    }
    return fth_texts_add(scan->notes, text, strlen(text), err);
}

/* ---- numbers ---- */

const char *pt_shape_text(const fth_source *s, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int a = 0; a < s->n_axes && used + 24 < bytes; a++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", a ? " " : "[",
                                 (long long)s->size[a]);
    snprintf(text + used, bytes - used, s->n_axes ? "]" : "[]");
    return text;
}

bool pt_is_number(fth_dtype t)
{
    return fth_dtype_is_int(t) || t == FTH_F32 || t == FTH_F64;
}

#define CONVERT(type)                                                                              \
    for (int64_t i = 0; i < count; i++) dst[i] = (double)((const type *)src)[i]

void pt_to_f64(fth_dtype from, const void *src, int64_t count, double *dst)
{
    if (from == FTH_U8 || from == FTH_BOOL) CONVERT(uint8_t);
    if (from == FTH_U16) CONVERT(uint16_t);
    if (from == FTH_I32) CONVERT(int32_t);
    if (from == FTH_I64) CONVERT(int64_t);
    if (from == FTH_U32) CONVERT(uint32_t);
    if (from == FTH_I16) CONVERT(int16_t);
    if (from == FTH_I8) CONVERT(int8_t);
    if (from == FTH_F32) CONVERT(float);
    if (from == FTH_F64) memmove(dst, src, (size_t)count * sizeof *dst);
}
#undef CONVERT

static fth_status load(pt_scan *scan, const fth_source *source, const char *label, double **out,
                       int64_t *n, fth_err *err)
{
    char shape[120];
    int wide = 0; /* axes that are not of size 1 */
    int64_t count = 1;
    for (int a = 0; a < source->n_axes; a++) {
        wide += source->size[a] != 1;
        count *= source->size[a];
    }
    if (wide > 1 || !pt_is_number(source->dtype))
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: '%s' is %s of %s; expected a list of real numbers", scan->path, label,
                        pt_shape_text(source, shape, sizeof shape), fth_dtype_name(source->dtype));
    void *block = NULL;
    fth_tensor *t = NULL;
    FTH_TRY(fth_source_load(source, scan->mem, label, &t, err));
    const fth_status s = pt_scan_hold(scan, (uint64_t)count * sizeof(double), label, &block, err);
    if (s == FTH_OK) pt_to_f64(source->dtype, fth_tensor_view(t), count, block);
    fth_tensor_release(t);
    *out = block;
    *n = count;
    return s;
}

fth_status pt_load_reals(pt_scan *scan, fth_source *source, const char *label, double **out,
                         int64_t *n, fth_err *err)
{
    *out = NULL;
    *n = 0;
    const fth_status s = load(scan, source, label, out, n, err);
    fth_source_close(source);
    return s;
}

pt_extent pt_scan_extent(const double *x, const double *y, int64_t n)
{
    pt_extent e = {0};
    for (int64_t i = 0; i < n; i++) {
        if (i == 0) e = (pt_extent){x[0], x[0], y[0], y[0]};
        e.min_x = fmin(e.min_x, x[i]);
        e.max_x = fmax(e.max_x, x[i]);
        e.min_y = fmin(e.min_y, y[i]);
        e.max_y = fmax(e.max_y, y[i]);
    }
    return e;
}

double pt_count_factor(const pt_scan *scan)
{
    const double s = scan->meta.intensity_scale;
    return scan->kind == PT_AMPLITUDE && s > 0 ? s * s : 1;
}

double pt_wavelength(double energy_eV, bool electrons)
{
    const double hc = 1.23984193e-6; /* eV m */
    const double rest = 510998.95;   /* of an electron, eV */
    return electrons ? hc / sqrt(energy_eV * (energy_eV + 2 * rest)) : hc / energy_eV;
}
