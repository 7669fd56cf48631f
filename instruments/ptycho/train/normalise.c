/* normalise.c - see normalise.h. */
#include "normalise.h"

#include "../simulate/simulate.h"

#include <math.h>

/* The probe as the model lights patches with it, within its disc. */
static void lit_probe(const pt_model *m, int64_t n, fth_c128 *out)
{
    for (int64_t i = 0; i < n; i++) {
        const double by = pt_model_disc(m, i);
        out[i] = (fth_c128){by * pt_model_at(m->probe_re, i), by * pt_model_at(m->probe_im, i)};
    }
}

static fth_status mean_energy(const pt_model *m, fth_context *ctx, const pt_dataset *d,
                              fth_tensor *object, double *out, fth_err *err)
{
    const int64_t N = d->scan.N, n = m->opt.modes * N * N;
    fth_c128 *probe = NULL;
    fth_err why = {0};
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, sizeof *probe * (uint64_t)n, "probe", (void **)&probe,
                         err));
    lit_probe(m, n, probe);
    const pt_simulation as = {.rows = fth_tensor_size(object, 0),
                              .cols = fth_tensor_size(object, 1),
                              .object = fth_tensor_data(object),
                              .N = N,
                              .modes = m->opt.modes,
                              .probe = probe,
                              .n = d->n,
                              .x = d->x,
                              .y = d->y,
                              .nphotons = 1};
    const double scale = pt_intensity_scale(ctx, &as, &why);
    fth_mem_release(d->mem, probe, NULL);
    if (why.status != FTH_OK) {
        if (err) *err = why;
        return why.status;
    }
    *out = 1 / (scale * scale);
    if (scale > 0 && isfinite(*out)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s: objectGuess is zero or not finite where the probe is", d->scan.path);
}

fth_status pt_normalise_by_object(pt_model *m, fth_context *ctx, pt_dataset *d, fth_err *err)
{
    fth_tensor *object = NULL;
    double energy = 0;
    FTH_TRY(pt_scan_load_object(&d->scan, &object, err));
    if (!object) {
        FTH_FAIL(err, FTH_E_FILE_KEY,
                 "normalisation dataset needs the true object, but %s has none", d->scan.path);
        fth_err_hint(err, "add objectGuess to the file, or set normalisation amplitude");
        return FTH_E_FILE_KEY;
    }
    pt_model_start(m, 0, d->scan.probe);
    const fth_status s = mean_energy(m, ctx, d, object, &energy, err);
    fth_tensor_release(object);
    if (s == FTH_OK) pt_model_set_energy(m, energy);
    return s;
}
