/* make.c - the simulation that a config describes. */
#include "simulate.h"

#include "../object/object.h"
#include "../probe/probe.h"
#include "../resize/resize.h"
#include "../settings/settings.h"

#include <fathom/pictures.h>
#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

static fth_status take(fth_mem *mem, int64_t n, size_t item, const char *label, void **out,
                       fth_err *err)
{
    return fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * item, label, out, err);
}

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcmp(path + n - k, ending) == 0;
}

/* ---- arrays of files ---- */

/* Numbers of any dtype as c128; the tensor is released. */
static fth_status widen(fth_mem *mem, fth_tensor *t, const char *path, fth_c128 **out, fth_err *err)
{
    const fth_dtype dtype = fth_tensor_dtype(t);
    int64_t count = 1;
    void *block = NULL;
    for (int a = 0; a < fth_tensor_axes(t); a++) count *= fth_tensor_size(t, a);
    fth_status s = take(mem, count, sizeof(fth_c128), "object", &block, err);
    const void *from = s == FTH_OK ? fth_tensor_view(t) : NULL;
    fth_c128 *to = block;
    for (int64_t i = 0; s == FTH_OK && i < count; i++) {
        if (dtype == FTH_C128)
            to[i] = ((const fth_c128 *)from)[i];
        else if (dtype == FTH_C64)
            to[i] = (fth_c128){(double)((const fth_c64 *)from)[i].re,
                               (double)((const fth_c64 *)from)[i].im};
        else if (dtype == FTH_F32)
            to[i] = (fth_c128){(double)((const float *)from)[i], 0};
        else if (dtype == FTH_F64)
            to[i] = (fth_c128){((const double *)from)[i], 0};
        else
            s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                         "%s: the array is of %s; expected f32, f64, c64 or "
                         "c128",
                         path, fth_dtype_name(dtype));
        if (s == FTH_OK && !(isfinite(to[i].re) && isfinite(to[i].im)))
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: element %lld is not finite", path,
                         (long long)i);
    }
    if (s != FTH_OK) {
        fth_mem_release(mem, block, NULL);
        to = NULL;
    }
    *out = to;
    return s;
}

/* An array [.. rows cols] of a .npy, or of a member of an .npz. */
static fth_status load_array(fth_mem *mem, const char *path, const char *member, int most_axes,
                             int64_t size[3], fth_c128 **out, fth_err *err)
{
    fth_tensor *t = NULL;
    fth_npz *npz = NULL;
    fth_source s;
    *out = NULL;
    if (ends_with(path, ".npz")) {
        FTH_TRY(fth_npz_open(&npz, mem, path, err));
        fth_status got = fth_npz_source(npz, member, &s, err);
        if (got == FTH_OK) {
            got = fth_source_load(&s, mem, member, &t, err);
            fth_source_close(&s);
        }
        fth_npz_close(npz);
        FTH_TRY(got);
    } else {
        FTH_TRY(fth_npy_load(mem, path, "array", &t, err));
    }
    const int n = fth_tensor_axes(t);
    fth_status got = FTH_OK;
    if (n < 2 || n > most_axes)
        got = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: the array has %d axes; expected %s", path, n,
                       most_axes == 3 ? "[row col] or [mode row col]" : "[row col]");
    size[0] = n == 3 ? fth_tensor_size(t, 0) : 1;
    for (int a = 0; got == FTH_OK && a < 2; a++) size[1 + a] = fth_tensor_size(t, n - 2 + a);
    if (got == FTH_OK) got = widen(mem, t, path, out, err);
    fth_tensor_release(t);
    return got;
}

static fth_status load_picture(fth_mem *mem, const char *path, int64_t size[3], fth_c128 **out,
                               fth_err *err)
{
    fth_picture p;
    void *block = NULL;
    FTH_TRY(fth_picture_load(mem, path, &p, err));
    size[1] = p.height;
    size[2] = p.width;
    const double most = p.dtype == FTH_U8 ? 255 : p.dtype == FTH_U16 ? 65535 : 1;
    const fth_status s = take(mem, p.height * p.width, sizeof(fth_c128), "object", &block, err);
    fth_c128 *to = block;
    for (int64_t i = 0; s == FTH_OK && i < p.height * p.width; i++) {
        double v = 0; /* colours: their mean */
        for (int c = 0; c < p.channels; c++) {
            const int64_t k = i * p.channels + c;
            v += p.dtype == FTH_U8    ? ((const uint8_t *)p.pixels)[k]
                 : p.dtype == FTH_U16 ? ((const uint16_t *)p.pixels)[k]
                                      : (double)((const float *)p.pixels)[k];
        }
        to[i] = (fth_c128){v / p.channels / most, 0};
    }
    fth_picture_free(mem, &p);
    *out = to;
    return s;
}

/* ---- object ---- */

/* Amplitudes become complex numbers: scaled, and with a phase where one is wanted. */
static void set_phase(fth_c128 *o, int64_t count, int scale, int phase)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, o[i].re);
        sum += o[i].re;
    }
    const double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        const double a = o[i].re, y = scale == 1 && most > 0 ? a / most + 0.5 : a;
        double phi = 0;
        if (phase == 1 && most > 0) phi = a / most;
        if (phase == 2 && mean > 0) phi = PI * tanh((a - most / 2) / (3 * mean));
        o[i] = (fth_c128){y * cos(phi), y * sin(phi)};
    }
}

static fth_status make_object(pt_simulation *m, fth_context *ctx, const fth_config *cfg, bool test,
                              fth_err *err)
{
    const bool other = test && fth_config_has(cfg, "test_object_seed");
    fth_mem *mem = fth_context_mem(ctx);
    const pt_object_kind kind = (pt_object_kind)fth_config_choice(cfg, "object");
    int64_t size[3] = {1, 0, 0};
    bool is_complex = false;
    if (kind == PT_OBJECT_IMAGE) {
        if (!fth_config_has(cfg, "object_file")) {
            FTH_FAIL(err, FTH_E_COMMAND, "an object of kind image needs --object_file");
            return FTH_E_COMMAND;
        }
        const char *path = fth_config_text(cfg, "object_file");
        const bool array = ends_with(path, ".npy") || ends_with(path, ".npz");
        FTH_TRY(array ? load_array(mem, path, "objectGuess", 2, size, &m->object, err)
                      : load_picture(mem, path, size, &m->object, err));
        for (int64_t i = 0; array && !is_complex && i < size[1] * size[2]; i++)
            is_complex = m->object[i].im != 0 || m->object[i].re < 0;
    } else {
        void *block = NULL;
        const int64_t n = fth_config_int(cfg, "size");
        size[1] = size[2] = n;
        FTH_TRY(take(mem, n * n, sizeof(fth_c128), "object", &block, err));
        m->object = block;
        double *image = block;
        FTH_TRY(pt_object_make(
            ctx, kind, n, fth_config_int(cfg, "lines"),
            (uint32_t)fth_config_int(cfg, other ? "test_object_seed" : "object_seed"), image, err));
        for (int64_t i = n * n; i-- > 0;) m->object[i] = (fth_c128){image[i], 0};
    }
    m->rows = size[1];
    m->cols = size[2];
    if (m->rows < 1 || m->cols < 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "the object has no pixels");
    if (!is_complex)
        set_phase(m->object, m->rows * m->cols, fth_config_choice(cfg, "object_scale"),
                  fth_config_choice(cfg, "phase"));
    return FTH_OK;
}

/* ---- probe and positions ---- */

/* A defocused beam: light at the distance r from the middle reaches pixel `curvature` r of the
 * pattern, which is a shadow image with fringes. */
static void curve(pt_simulation *m, double curvature)
{
    const double n = (double)m->N;
    for (int64_t i = 0; curvature != 0 && i < m->N * m->N; i++) {
        const double y = (double)(i / m->N) - n / 2, x = (double)(i % m->N) - n / 2,
                     phi = PI * curvature * (x * x + y * y) / n, a = m->probe[i].re;
        m->probe[i] = (fth_c128){a * cos(phi), a * sin(phi)};
    }
}

static fth_status make_probe(pt_simulation *m, fth_context *ctx, const fth_config *cfg,
                             fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    int64_t size[3];
    void *block = NULL;
    if (fth_config_has(cfg, "probe_file")) {
        const char *path = fth_config_text(cfg, "probe_file");
        FTH_TRY(load_array(mem, path, "probeGuess", 3, size, &m->probe, err));
        m->modes = size[0];
        m->N = size[1];
        if (size[1] == size[2] && fth_config_has(cfg, "probe_resize")) {
            FTH_TRY(pt_probe_resize(ctx, fth_config_text(cfg, "probe_resize"), &m->probe, m->modes,
                                    &m->N, err));
            size[1] = size[2] = m->N;
        }
        if (size[1] == size[2] && size[1] % 2 == 0 && m->modes > 0 && m->N > 0) return FTH_OK;
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: the probe is %lld x %lld; expected a square of an even side", path,
                        (long long)size[1], (long long)size[2]);
    }
    m->N = fth_config_int(cfg, "N");
    m->modes = 1;
    FTH_TRY(take(mem, m->N * m->N, sizeof(fth_c128), "probe", &block, err));
    m->probe = block;
    double *image = block;
    FTH_TRY(pt_probe_default(ctx, m->N, fth_config_real(cfg, "default_probe_scale"), image, err));
    for (int64_t i = m->N * m->N; i-- > 0;) m->probe[i] = (fth_c128){image[i], 0};
    curve(m, fth_config_real(cfg, "probe_curvature"));
    return FTH_OK;
}

static fth_status make_positions(pt_simulation *m, fth_mem *mem, const fth_config *cfg, bool test,
                                 fth_err *err)
{
    void *x = NULL, *y = NULL;
    const pt_scan_kind kind = (pt_scan_kind)fth_config_choice(cfg, "scan");
    const double side = (double)(m->rows < m->cols ? m->rows : m->cols),
                 own = kind == PT_SCAN_RANDOM ? 0.35 * side : (double)m->N / 2;
    const double buffer = fmin(pt_real_of(cfg, "buffer", own), side / 2 - 1);
    m->n = fth_config_int(cfg, test ? "n_test_images" : "n_images");
    FTH_TRY(take(mem, m->n, sizeof(double), "x", &x, err));
    m->x = x;
    FTH_TRY(take(mem, m->n, sizeof(double), "y", &y, err));
    m->y = y;
    pt_positions_make(kind, (uint32_t)(fth_config_int(cfg, "seed") + test), fmax(buffer, 0),
                      fth_config_real(cfg, "jitter"), m->rows, m->cols, m->n, m->x, m->y);
    return FTH_OK;
}

fth_status pt_simulation_make(pt_simulation *m, fth_context *ctx, const fth_config *cfg, bool test,
                              fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    *m = (pt_simulation){.nphotons = fth_config_real(cfg, "nphotons"),
                         .noise = fth_config_bool(cfg, "noise"),
                         .noise_seed =
                             2 * pt_int_of(cfg, "noise_seed", fth_config_int(cfg, "seed")) + test,
                         .counts = fth_config_choice(cfg, "units") == 1};
    fth_status s = make_object(m, ctx, cfg, test, err);
    if (s == FTH_OK) s = make_probe(m, ctx, cfg, err);
    if (s == FTH_OK) s = make_positions(m, mem, cfg, test, err);
    if (s != FTH_OK) pt_simulation_free(m, mem);
    return s;
}

void pt_simulation_free(pt_simulation *m, fth_mem *mem)
{
    fth_mem_release(mem, m->y, NULL);
    fth_mem_release(mem, m->x, NULL);
    fth_mem_release(mem, m->probe, NULL);
    fth_mem_release(mem, m->object, NULL);
    *m = (pt_simulation){0};
}
