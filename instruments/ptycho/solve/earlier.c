/* earlier.c - see earlier.h. */
#include "earlier.h"

#include "../recon/recon.h"

#include <math.h>

static fth_status widen(fth_mem *mem, const fth_c64 *from, int64_t n, const char *label,
                        const char *path, fth_c128 **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * sizeof(fth_c128), label, &block, err));
    *out = block;
    for (int64_t i = 0; i < n; i++) {
        (*out)[i] = (fth_c128){(double)from[i].re, (double)from[i].im};
        if (!isfinite((*out)[i].re) || !isfinite((*out)[i].im))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: element %lld of the %s is not finite",
                            path, (long long)i, label);
    }
    return FTH_OK;
}

/* Patches of the network do not cover every corner of its canvas: zeros there are unknown values.
 * Returns the mean amplitude of the known ones. */
static double fill_gaps(fth_c128 *v, int64_t n)
{
    double sum = 0;
    int64_t known = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = hypot(v[i].re, v[i].im);
        sum += a;
        known += a > 0;
    }
    const double mean = known > 0 ? sum / (double)known : 1;
    for (int64_t i = 0; i < n; i++)
        if (v[i].re == 0 && v[i].im == 0) v[i].re = mean;
    return mean;
}

static fth_status check(const pt_recon *r, const pt_solve_data *data, fth_err *err)
{
    fth_status s = FTH_OK;
    if (!r->has_origin)
        s = FTH_FAIL(
            err, FTH_E_FILE_KEY,
            "start_from: %s has no canvas_origin, so the position of its object is unknown",
            r->path);
    else if (r->probe && r->side != data->n)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "start_from: the probe of %s has %lld x %lld pixels, the patterns have %lld x "
                     "%lld",
                     r->path, (long long)r->side, (long long)r->side, (long long)data->n,
                     (long long)data->n);
    if (s != FTH_OK) fth_err_hint(err, "give a reconstruction.npz of 'solve' or 'infer'");
    return s;
}

fth_status pt_earlier_read(pt_earlier *out, fth_mem *mem, const char *path, pt_solve_data *data,
                           fth_err *err)
{
    pt_recon r;
    *out = (pt_earlier){.mem = mem};
    FTH_TRY(pt_recon_open(&r, mem, path, err));
    const int64_t cells = r.object.rows * r.object.cols;
    fth_status s = check(&r, data, err);
    if (s == FTH_OK) s = widen(mem, r.object.at, cells, "object", r.path, &out->object, err);
    if (s == FTH_OK && r.probe)
        s = widen(mem, fth_tensor_data(r.probe), r.modes * r.side * r.side, "probe", r.path,
                  &out->probe, err);
    if (s == FTH_OK) {
        data->object = out->object;
        data->object_rows = r.object.rows;
        data->object_cols = r.object.cols;
        data->object_x = r.origin_x;
        data->object_y = r.origin_y;
        data->object_beyond = fill_gaps(out->object, cells);
    }
    if (s == FTH_OK && out->probe) {
        data->probe = out->probe;
        data->modes = r.modes;
    }
    pt_recon_close(&r);
    if (s != FTH_OK) pt_earlier_clear(out);
    return s;
}

void pt_earlier_clear(pt_earlier *e)
{
    if (e->object) fth_mem_release(e->mem, e->object, NULL);
    if (e->probe) fth_mem_release(e->mem, e->probe, NULL);
    *e = (pt_earlier){0};
}
