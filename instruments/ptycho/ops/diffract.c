/* diffract.c - the far field of lit objects, and how far it is from a measurement.
 *
 * The detector's zero frequency lies at N/2: for an even N that is the transform of the field times
 * (-1)^(row + col), which goes into the probe together with the 1/N of the orthonormal transform.
 */
#include "physics.h"

#include <math.h>

/* (-1)^(row + col) / sqrt(rows * cols), [row col]. */
static fth_val centring(fth_graph *g, fth_dtype real)
{
    const double n = (double)fth_axis_size(g, "row") * (double)fth_axis_size(g, "col");
    const fth_val rows = fth_layout(fth_expand(fth_index(g, "row"), "col"), "row col");
    const fth_val odd = fth_mod(fth_add(rows, fth_index(g, "col")), fth_const_i64(g, FTH_I64, 2));
    const double scale = n > 0 ? 1 / sqrt(n) : 1;
    return fth_select(fth_eq(odd, fth_const_i64(g, FTH_I64, 0)), fth_const(g, real, scale),
                      fth_const(g, real, -scale));
}

/* The axes of v in a row of words, and `more` before the last two. */
static void axes_of(fth_val v, const char *more, char *text, size_t bytes)
{
    size_t n = 0;
    const int count = fth_val_axes(v);
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        if (i == count - 2 && *more) n += (size_t)snprintf(text + n, bytes - n, "%s ", more);
        n += (size_t)snprintf(text + n, bytes - n, "%s%s", fth_val_axis(v, i),
                              i + 1 < count ? " " : "");
    }
}

/* Neighbours along an axis, the one before (-1) or after (1) each element; beyond an edge the one
 * on its other side. */
static fth_val neighbour(fth_val v, const char *axis, int step)
{
    fth_graph *g = v.graph;
    char axes[FTH_MAX_AXES * 40], place[16];
    const int64_t n = fth_axis_size(g, axis);
    snprintf(place, sizeof place, "at_%s", axis);
    if (fth_axis_size(g, place) < 0) fth_axis(g, place, n);
    const fth_val i = fth_index(g, place), last = fth_const_i64(g, FTH_I64, n - 1),
                  moved = fth_add(i, fth_const_i64(g, FTH_I64, step)),
                  from = step < 0 ? fth_abs(moved) : fth_sub(last, fth_abs(fth_sub(last, moved)));
    axes_of(v, "", axes, sizeof axes);
    return fth_layout(fth_rename(fth_gather(v, axis, from), place, axis), axes);
}

static fth_val blurred(fth_val v, double sigma)
{
    static const char *const axis[2] = {"row", "col"};
    const double side = exp(-0.5 / (sigma * sigma)), sum = 1 + 2 * side;
    for (int d = 0; d < 2; d++) {
        const fth_val both = fth_add(neighbour(v, axis[d], -1), neighbour(v, axis[d], 1)),
                      none = fth_const_like(v, 0);
        v = fth_add(fth_mul(v, fth_complex(fth_const_like(v, 1 / sum), none)),
                    fth_mul(both, fth_complex(fth_const_like(v, side / sum), none)));
    }
    return v;
}

fth_val pt_diffract_(fth_site site, fth_val objects, fth_val probe, double sigma)
{
    fth_graph *g = objects.graph;
    char axes[FTH_MAX_AXES * 40], text[256], other[256];
    if (!fth_val_ok(objects) || !fth_val_ok(probe)) return (fth_val){g, 0};
    if (fth_axis_size(g, "row") % 2 || fth_axis_size(g, "col") % 2 || !fth_val_has(probe, "mode"))
        return fth_poison_(g, site, FTH_E_AXIS_MISMATCH,
                           "diffract: frames of an even size and a probe with axis 'mode' are "
                           "expected\n  objects  %s\n  probe    %s",
                           fth_val_format(objects, text, sizeof text),
                           fth_val_format(probe, other, sizeof other));
    const fth_dtype real = fth_dtype_real_of(fth_val_dtype(objects));
    const fth_val shift = centring(g, real);
    const fth_val centre = fth_complex(shift, fth_const_like(shift, 0)),
                  lit = sigma > 0 ? probe : fth_mul(probe, centre);
    axes_of(objects, "mode", axes, sizeof axes);
    const fth_val fields = fth_layout_(site, fth_expand_(site, objects, "mode"), axes);
    fth_val exits = fth_mul(fields, lit);
    if (sigma > 0) exits = fth_mul(blurred(exits, sigma), centre);
    const fth_val far = fth_fft_(site, FTH_FFT_FORWARD, exits, "row col", "row col");
    /* Below 1e-18 the slope of the root is cut off: the derivative of the amplitude is 0 there. */
    const fth_val intensity = fth_sum(fth_abs2(far), "mode");
    return fth_label(fth_sqrt(fth_max(intensity, fth_const_like(intensity, 1e-36))), "amplitude");
}

/* ---- losses ---- */

static bool same_shape(fth_val a, fth_val b)
{
    if (fth_val_axes(a) != fth_val_axes(b)) return false;
    for (int i = 0; i < fth_val_axes(a); i++)
        if (!fth_val_has(b, fth_val_axis(a, i))) return false;
    return true;
}

static fth_val refuse(fth_site site, const char *name, fth_val a, fth_val b)
{
    char left[256], right[256];
    return fth_poison_(a.graph, site, FTH_E_AXIS_MISMATCH,
                       "%s: amplitudes of different shapes\n  predicted %s\n  observed  %s", name,
                       fth_val_format(a, left, sizeof left),
                       fth_val_format(b, right, sizeof right));
}

static fth_val mean_of_all(fth_site site, fth_val v, fth_val weight)
{
    char axes[FTH_MAX_AXES * 40];
    if (weight.graph) v = fth_mul(v, weight);
    axes_of(v, "", axes, sizeof axes);
    return fth_mean_(site, v, axes);
}

fth_val pt_loss_mae_(fth_site site, fth_val predicted, fth_val observed, fth_val weight)
{
    if (!fth_val_ok(predicted) || !fth_val_ok(observed)) return (fth_val){predicted.graph, 0};
    if (!same_shape(predicted, observed)) return refuse(site, "mae", predicted, observed);
    return mean_of_all(site, fth_abs(fth_sub(predicted, observed)), weight);
}

fth_val pt_loss_nll_(fth_site site, fth_val predicted, fth_val observed, fth_val weight)
{
    if (!fth_val_ok(predicted) || !fth_val_ok(observed)) return (fth_val){predicted.graph, 0};
    if (!same_shape(predicted, observed)) return refuse(site, "nll", predicted, observed);
    const fth_val rate = fth_sqr(predicted), least = fth_const_like(rate, 1e-12);
    return mean_of_all(
        site, fth_sub(rate, fth_mul(fth_sqr(observed), fth_log(fth_max(rate, least)))), weight);
}
