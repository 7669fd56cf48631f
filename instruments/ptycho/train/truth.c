/* truth.c - see truth.h. */
#include "truth.h"

#include <math.h>

/* The object between its pixels; 0 outside. */
static fth_c128 sample(const pt_truth *t, double y, double x)
{
    const int64_t rows = fth_tensor_size(t->object, 0), cols = fth_tensor_size(t->object, 1);
    const double y0 = floor(y), x0 = floor(x), fy = y - y0, fx = x - x0;
    const fth_c128 *from = fth_tensor_view(t->object);
    fth_c128 sum = {0, 0};
    for (int k = 0; k < 4; k++) {
        const double r = y0 + k / 2, c = x0 + k % 2,
                     w = (k / 2 ? fy : 1 - fy) * (k % 2 ? fx : 1 - fx);
        if (w == 0 || r < 0 || c < 0 || r >= (double)rows || c >= (double)cols) continue;
        const fth_c128 v = from[(int64_t)r * cols + (int64_t)c];
        sum.re += w * v.re;
        sum.im += w * v.im;
    }
    return sum;
}

void pt_truth_patches(const pt_truth *t, const pt_dataset *d, const int64_t *order, int64_t from,
                      int64_t n, fth_c64 *out)
{
    const int64_t side = d->scan.N;
    for (int64_t i = 0; i < n; i++) {
        const double *at = d->groups.off + 2 * (order ? order[from + i] : from + i);
        for (int64_t k = 0; k < side * side; k++) {
            const fth_c128 v = sample(t, at[1] + (double)(k / side - side / 2),
                                      at[0] + (double)(k % side - side / 2));
            out[i * side * side + k] =
                (fth_c64){(float)(t->scale * v.re), (float)(t->scale * v.im)};
        }
    }
}

/* Mean energy of the lit patches, over some hundred groups: it is a mean of them all. */
static fth_status energy_of(const pt_truth *t, pt_dataset *d, const pt_model *m, double *out,
                            fth_err *err)
{
    enum { LOOKED_AT = 512 };
    const int64_t pixels = d->scan.N * d->scan.N, all = d->groups.n,
                  n = all < LOOKED_AT ? all : LOOKED_AT;
    fth_c64 *patch = NULL;
    double sum = 0;
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, sizeof *patch * (uint64_t)pixels, "true patch",
                         (void **)&patch, err));
    for (int64_t i = 0; i < n; i++) {
        pt_truth_patches(t, d, NULL, i * all / n, 1, patch);
        for (int64_t k = 0; k < m->opt.modes * pixels; k++) {
            const double o = hypot((double)patch[k % pixels].re, (double)patch[k % pixels].im),
                         p = hypot(pt_model_at(m->probe_re, k), pt_model_at(m->probe_im, k)) *
                             pt_model_disc(m, k);
            sum += o * o * p * p;
        }
    }
    *out = sum / (double)n;
    return fth_mem_release(d->mem, patch, err);
}

fth_status pt_truth_open(pt_truth *t, pt_dataset *d, const pt_model *m, fth_err *err)
{
    double energy = 0;
    *t = (pt_truth){.scale = 1};
    FTH_TRY(pt_scan_load_object(&d->scan, &t->object, err));
    if (!t->object) {
        FTH_FAIL(err, FTH_E_FILE_KEY, "realspace_mae_weight needs the true object, but %s has none",
                 d->scan.path);
        fth_err_hint(err, "add objectGuess to the file, or set realspace_mae_weight 0");
        return FTH_E_FILE_KEY;
    }
    fth_status s = energy_of(t, d, m, &energy, err);
    if (s == FTH_OK && !(isfinite(energy) && energy > 0))
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: objectGuess is zero or not finite where the probe is", d->scan.path);
    if (s != FTH_OK)
        pt_truth_close(t);
    else
        t->scale = pt_model_factor(&m->opt, energy);
    return s;
}

void pt_truth_close(pt_truth *t)
{
    fth_tensor_release(t->object);
    *t = (pt_truth){0};
}
