/* random_transforms.c - Fourier transforms in random graphs. */
#include "testing/engine/random_graph.h"

#include <stdio.h>
#include <string.h>

/* `n` different axes of a value, in any order; false: they were not found. */
static bool some_axes(rg *g, fth_val v, int n, const char *axis[])
{
    for (int i = 0, tries = 0; i < n; tries++) {
        axis[i] = rg_axis_of(g, v);
        if (!axis[i] || tries == 24) return false;
        bool again = false;
        for (int k = 0; k < i; k++) again |= strcmp(axis[i], axis[k]) == 0;
        i += !again;
    }
    return true;
}

/* Over one to three axes, in any order; real ones there and back. */
static bool transform_of(rg *g, int x, int n)
{
    const char *axis[3];
    if ((x = rg_tame(g, x, 3.0)) < 0) return false;
    const fth_val v = rg_val(g, x);
    const fth_dtype t = fth_val_dtype(v);
    if (t == FTH_F16 || t == FTH_BF16 || !some_axes(g, v, n, axis) || g->n_axes + 9 > RG_AXES)
        return false;
    double points = 1.0;
    for (int i = 0; i < n; i++) points *= (double)rg_size(g, axis[i]);
    if (points == 0.0 || (double)rg_count(rg_val(g, x)) * points > RG_FFT_WORK ||
        !rg_room(g, 4.0 * (double)rg_count(rg_val(g, x))))
        return false;
    const bool real = rg_class(t) == RG_REAL;
    char axes[64] = "", into[64] = "", back[64] = "";
    for (int i = 0; i < n; i++) {
        const int64_t size = rg_size(g, axis[i]);
        const char *f = rg_axis(g, real && i == n - 1 ? size / 2 + 1 : size),
                   *b = real ? rg_axis(g, size) : f;
        const char *space = i == 0 ? "" : " ";
        snprintf(axes + strlen(axes), sizeof axes - strlen(axes), "%s%s", space, axis[i]);
        snprintf(into + strlen(into), sizeof into - strlen(into), "%s%s", space, f);
        snprintf(back + strlen(back), sizeof back - strlen(back), "%s%s", space, b);
    }
    const fth_fft_kind kind = real               ? FTH_FFT_REAL
                              : rg_chance(g, 50) ? FTH_FFT_INVERSE
                                                 : FTH_FFT_FORWARD;
    if (!rg_add(g, fth_fft_(FTH_HERE, kind, v, axes, into), false, 3.0 * points, 1, &x, "fft %d %s",
                (int)kind, axes))
        return false;
    if (!real || rg_chance(g, 50)) return true;
    x = g->n_values - 1;
    return rg_add(g, fth_irfft(rg_val(g, x), into, back), false, 3.0, 1, &x, "irfft %s", back);
}

static bool transform(rg *g, int n)
{
    const char *axis;
    const int x = rg_with_axis(g, RG_FLOAT, false, &axis);
    return x >= 0 && transform_of(g, x, n);
}

bool rg_fft(rg *g)
{
    return transform(g, 1);
}
bool rg_fft2(rg *g)
{
    return transform(g, 2);
}
/* Values of the graph mostly have too many elements, or too few axes. */
bool rg_fft3(rg *g)
{
    if (rg_chance(g, 50) && transform(g, 3)) return true;
    const fth_dtype types[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128};
    const fth_dtype t = types[rg_int(g, 0, 3)];
    const int x = rg_input(g, t, rg_chance(g, 50) ? "t b a" : "a t b", RG_FILL_ANY);
    return x >= 0 && transform_of(g, x, 3);
}
