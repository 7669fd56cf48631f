/* support.c - support constraints of the probe, in real space and on the detector.
 *
 * A disc with a soft edge (probe_mask), what stands out of the blurred probe (probe_threshold), and
 * a disc about the zero frequency of its transform (probe_aperture).
 */
#include "../object/blur.h"
#include "../probe/probe.h"
#include "constraints.h"

#include <math.h>

static const double blur = 3; /* pixels, before the probe is compared with the threshold */

/* Every mode times a factor of each pixel. */
static void multiply(pt_solver *s, const double *factor)
{
    const int64_t nn = s->n * s->n;
    void *probe = fth_tensor_data(s->probe);
    for (int64_t i = 0; i < 2 * s->modes * nn; i++)
        pt_put(probe, s->real, i, factor[i % nn] * pt_get(probe, s->real, i));
}

/* 1 where the blurred amplitude of all modes is a share of its maximum, else 0. */
static fth_status cut_dim(pt_solver *s, fth_err *err)
{
    const int64_t nn = s->n * s->n;
    const void *probe = fth_tensor_view(s->probe);
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)nn * sizeof(double), "amplitude", &block, err));
    double *image = block, most = 0;
    for (int64_t i = 0; i < nn; i++) {
        double power = 0;
        for (int64_t k = 0; k < 2 * s->modes; k++) {
            const double v = pt_get(probe, s->real, k * nn + i);
            power += v * v;
        }
        image[i] = sqrt(power);
    }
    fth_status st = pt_blur(s->ctx, image, s->n, s->n, blur, err);
    if (st == FTH_OK) {
        for (int64_t i = 0; i < nn; i++) most = fmax(most, image[i]);
        for (int64_t i = 0; i < nn; i++) image[i] = image[i] >= s->opt.probe_threshold * most;
        multiply(s, image);
    }
    fth_mem_release(s->mem, block, NULL);
    return st;
}

static fth_status through_aperture(pt_solver *s, fth_err *err)
{
    const pt_constraints *k = s->constraints;
    const int64_t nn = s->n * s->n;
    const fth_sink sink = fth_tensor_sink(k->filtered);
    void *probe = fth_tensor_data(s->probe);
    fth_c128 *wave = fth_tensor_data(k->waves);
    for (int64_t m = 0; m < s->modes; m++)
        for (int64_t i = 0; i < nn; i++)
            wave[m * nn + i] = (fth_c128){pt_get(probe, s->real, 2 * m * nn + i),
                                          pt_get(probe, s->real, (2 * m + 1) * nn + i)};
    FTH_TRY(fth_stage_run(s->call, k->plan[2], &sink, NULL, err));
    wave = fth_tensor_data(k->filtered);
    for (int64_t m = 0; m < s->modes; m++)
        for (int64_t i = 0; i < nn; i++) {
            pt_put(probe, s->real, 2 * m * nn + i, wave[m * nn + i].re);
            pt_put(probe, s->real, (2 * m + 1) * nn + i, wave[m * nn + i].im);
        }
    return FTH_OK;
}

fth_status pt_constrain_probe(pt_solver *s, fth_err *err)
{
    const pt_constraints *k = s->constraints;
    if (s->opt.probe_aperture > 0) FTH_TRY(through_aperture(s, err));
    if (s->opt.probe_threshold > 0) FTH_TRY(cut_dim(s, err));
    if (k->mask) multiply(s, fth_tensor_view(k->mask));
    return FTH_OK;
}

/* ---- memory ---- */

static fth_status create_aperture(pt_solver *s, fth_err *err)
{
    pt_constraints *k = s->constraints;
    const int64_t n = s->n, size[3] = {s->modes, n, n};
    const double most = s->opt.probe_aperture / 2;
    FTH_TRY(fth_tensor_create(&k->waves, s->mem, "probe to constrain", FTH_C128, 3, size, err));
    FTH_TRY(fth_tensor_create(&k->filtered, s->mem, "filtered probe", FTH_C128, 3, size, err));
    FTH_TRY(fth_tensor_create(&k->aperture, s->mem, "aperture", FTH_C128, 2, size + 1, err));
    fth_c128 *a = fth_tensor_data(k->aperture);
    for (int64_t i = 0; i < n * n; i++) {
        const int64_t y = i / n, x = i % n;
        const double r = hypot((double)(y < n / 2 ? y : y - n), (double)(x < n / 2 ? x : x - n));
        a[i] = (fth_c128){r <= most, 0};
    }
    fth_graph *g = k->graph[2] = fth_graph_create(s->ctx);
    fth_axis(g, "mode", s->modes);
    fth_axis(g, "row", n);
    fth_axis(g, "col", n);
    fth_axis_like(g, "krow", "row");
    fth_axis_like(g, "kcol", "col");
    const fth_val wave =
        fth_input(g, "waves", FTH_C128, "mode row col", fth_tensor_source(k->waves));
    const fth_val by =
        fth_input(g, "aperture", FTH_C128, "krow kcol", fth_tensor_source(k->aperture));
    const fth_val out =
        fth_ifft(fth_mul(fth_fft(wave, "row col", "krow kcol"), by), "krow kcol", "row col");
    const fth_sink sink = fth_tensor_sink(k->filtered);
    k->plan[2] = fth_plan_make(g, &out, 1, &(fth_limits){.sinks = &sink}, err);
    return k->plan[2] ? FTH_OK : err->status;
}

fth_status pt_support_create(pt_solver *s, fth_err *err)
{
    pt_constraints *k = s->constraints;
    if (s->opt.probe_aperture > 0) FTH_TRY(create_aperture(s, err));
    if (!s->opt.probe_mask) return FTH_OK;
    const int64_t size[2] = {s->n, s->n};
    FTH_TRY(fth_tensor_create(&k->mask, s->mem, "mask of the probe", FTH_F64, 2, size, err));
    return pt_probe_mask_soft(s->ctx, s->n, s->opt.mask_diameter, s->opt.mask_sigma,
                              fth_tensor_data(k->mask), err);
}
