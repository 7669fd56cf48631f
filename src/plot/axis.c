/* axis.c - from numbers to places on an axis, and the numbers written along it. */
#include "base/assert.h"
#include "plot/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double fth__scale_apply(fth_scale scale, double linear, double v)
{
    switch (scale) {
    case FTH_SCALE_LINEAR: return v;
    case FTH_SCALE_LOG: return v > 0 ? log10(v) : (double)NAN;
    case FTH_SCALE_SYMLOG: break;
    }
    const double m = fabs(v) / linear;
    return copysign(m <= 1 ? m : 1 + log10(m), v);
}

double fth__scale_invert(fth_scale scale, double linear, double t)
{
    switch (scale) {
    case FTH_SCALE_LINEAR: return t;
    case FTH_SCALE_LOG: return pow(10, t);
    case FTH_SCALE_SYMLOG: break;
    }
    const double m = fabs(t);
    return copysign(linear * (m <= 1 ? m : pow(10, m - 1)), t);
}

double fth__axis_map(const fth__plot_axis *a, double v)
{
    const double low = fth__scale_apply(a->scale, a->linear, a->low);
    const double high = fth__scale_apply(a->scale, a->linear, a->high);
    const double t = (fth__scale_apply(a->scale, a->linear, v) - low) / (high - low);
    return a->reverse ? 1 - t : t;
}

double fth__axis_unmap(const fth__plot_axis *a, double t)
{
    const double low = fth__scale_apply(a->scale, a->linear, a->low);
    const double high = fth__scale_apply(a->scale, a->linear, a->high);
    if (a->reverse) t = 1 - t;
    return fth__scale_invert(a->scale, a->linear, low + t * (high - low));
}

void fth__axis_settle(fth__plot_axis *a, double low, double high, double pad)
{
    const bool log_scale = a->scale == FTH_SCALE_LOG;
    if (!(low <= high) || (log_scale && !(high > 0))) { /* nothing to show */
        low = log_scale ? 1 : 0;
        high = log_scale ? 10 : 1;
        pad = 0;
    }
    if (log_scale && !(low > 0)) low = high / 1e6;
    double from = fth__scale_apply(a->scale, a->linear, low);
    double to = fth__scale_apply(a->scale, a->linear, high);
    const double size = fmax(fabs(from), fabs(to));
    if (!(to - from > fmax(1e-12 * size, 1e-290))) { /* all equal: show it in the middle */
        const double half = log_scale || size < 1e-280 ? 0.5 : size * 0.1;
        from -= half, to += half;
        pad = 0;
    }
    const double free = (to - from) * pad;
    a->low = fth__scale_invert(a->scale, a->linear, from - free);
    a->high = fth__scale_invert(a->scale, a->linear, to + free);
    /* Numbers near the largest and the smallest there are have no room around them. */
    if (!isfinite(a->low) || !isfinite(a->high) || !isfinite(a->high - a->low))
        a->low = fmax(low, -8e307), a->high = fmin(high, 8e307);
    if (!(a->low < a->high)) a->low = log_scale ? 1e-300 : -8e307, a->high = 8e307;
    if (log_scale && a->low < 1e-300) a->low = 1e-300, a->high = fmax(a->high, 1e-299);
    FTH_ASSERT(a->low < a->high && isfinite(a->low) && isfinite(a->high));
}

/* ---- ticks ---- */

static void superscript(char *to, size_t bytes, int e)
{
    static const char *const digit[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char plain[12];
    snprintf(plain, sizeof plain, "%d", e);
    to[0] = '\0';
    for (const char *s = plain; *s; s++) {
        const char *add = *s == '-' ? "⁻" : digit[*s - '0'];
        if (strlen(to) + strlen(add) < bytes) strcat(to, add);
    }
}

/* A number with a true minus sign. */
static void number(char *to, size_t bytes, double v, int decimals)
{
    char plain[FTH__TICK_TEXT];
    snprintf(plain, sizeof plain, "%.*f", decimals, fabs(v));
    const bool zero = strspn(plain, "0.") == strlen(plain);
    snprintf(to, bytes, "%s%.18s", v < 0 && !zero ? "−" : "", plain);
}

/* 1, 2, 2.5, 5 or 10 times a power of ten, not below v. */
static double nice_step(double v)
{
    static const double steps[] = {1, 2, 2.5, 5};
    const double unit = pow(10, floor(log10(v)));
    for (int i = 0; i < 4; i++)
        if (v <= steps[i] * unit * (1 + 1e-9)) return steps[i] * unit;
    return 10 * unit;
}

static int decimals_of(double step)
{
    int d = 0;
    for (double s = step; d < 12 && fabs(s - round(s)) > 1e-6 * fmax(s, 1e-3); s *= 10) d++;
    return d;
}

static void add_linear(fth__ticks *t, const fth__plot_axis *a, int target)
{
    const double step = nice_step((a->high - a->low) / target);
    const double largest = fmax(fabs(a->low), fabs(a->high));
    const int e = (int)floor(log10(largest));
    const bool factored = e >= 5 || e <= -4;
    const double unit = factored ? pow(10, e) : 1;
    const int decimals = decimals_of(step / unit);
    const double first = ceil(a->low / step - 1e-6), last = floor(a->high / step + 1e-6);
    for (double k = first; k <= last && t->n < FTH__TICKS; k++) {
        t->at[t->n] = k * step;
        number(t->text[t->n++], FTH__TICK_TEXT, k * step / unit, decimals);
    }
    if (!factored) return;
    char power[16];
    superscript(power, sizeof power, e);
    snprintf(t->factor, sizeof t->factor, "×10%.15s", power);
}

static void add_power(fth__ticks *t, double sign, int e)
{
    if (t->n == FTH__TICKS) return;
    char power[16];
    superscript(power, sizeof power, e);
    t->at[t->n] = sign * pow(10, e);
    snprintf(t->text[t->n++], FTH__TICK_TEXT, "%s10%.15s", sign < 0 ? "−" : "", power);
}

static void add_minor(fth__ticks *t, const fth__plot_axis *a, double v)
{
    if (t->n_minor < FTH__MINORS && v >= a->low && v <= a->high) t->minor[t->n_minor++] = v;
}

/* Powers of ten from e0 to e1 of one sign, in the order of numbers, every `stride`-th written. */
static void add_powers(fth__ticks *t, const fth__plot_axis *a, double sign, int e0, int e1,
                       int stride)
{
    for (int k = e0 - 1; k <= e1; k++) {
        const int e = sign > 0 ? k : e1 + e0 - 1 - k;
        const double v = sign * pow(10, e), slack = 1e-9 * fabs(v);
        if (e >= e0 && e % stride == 0 && v >= a->low - slack && v <= a->high + slack)
            add_power(t, sign, e);
        else if (e >= e0)
            add_minor(t, a, v);
        for (int m = 2; m <= 9 && stride == 1; m++) add_minor(t, a, m * v);
    }
}

/* One or two decades: 1, 2 and 5 are written too. */
static void add_125(fth__ticks *t, const fth__plot_axis *a, int e0, int e1)
{
    for (int e = e0 - 1; e <= e1; e++)
        for (int k = 1; k <= 9; k++) {
            const double v = k * pow(10, e);
            if (v < a->low * (1 - 1e-9) || v > a->high * (1 + 1e-9)) continue;
            if ((k == 1 || k == 2 || k == 5) && t->n < FTH__TICKS && e >= -4 && e < 5) {
                t->at[t->n] = v;
                number(t->text[t->n++], FTH__TICK_TEXT, v, e < 0 ? -e : 0);
            } else {
                add_minor(t, a, v);
            }
        }
}

static void add_log(fth__ticks *t, const fth__plot_axis *a, int target)
{
    const int e0 = (int)ceil(log10(a->low) - 1e-9), e1 = (int)floor(log10(a->high) + 1e-9);
    const int n = e1 - e0 + 1;
    if (n >= 2)
        add_powers(t, a, 1, e0, e1, (n + target - 1) / target);
    else
        add_125(t, a, e0, e1);
}

/* Exponents of the powers of ten that an interval 0 <= low < high of one sign shows; none: e0 > e1.
 */
static void shown(double low, double high, int least, int *e0, int *e1)
{
    *e0 = low > 0 ? (int)ceil(log10(low) - 1e-9) : least;
    if (*e0 < least) *e0 = least;
    *e1 = high > 0 ? (int)floor(log10(high) + 1e-9) : least - 1;
}

static void add_symlog(fth__ticks *t, const fth__plot_axis *a, int target)
{
    const int least = (int)ceil(log10(a->linear) - 1e-9);
    int up0, up1, down0, down1;
    shown(fmax(a->low, 0), fmax(a->high, 0), least, &up0, &up1);
    shown(fmax(-a->high, 0), fmax(-a->low, 0), least, &down0, &down1);
    const bool zero = a->low <= 0 && a->high >= 0;
    const int n_up = up1 >= up0 ? up1 - up0 + 1 : 0,
              n_down = down1 >= down0 ? down1 - down0 + 1 : 0;
    const int n = n_up + n_down + zero, stride = n > target ? (n + target - 1) / target : 1;
    if (n_down) add_powers(t, a, -1, down0, down1, stride);
    if (zero) {
        FTH_ASSERT(t->n < FTH__TICKS);
        t->at[t->n] = 0;
        snprintf(t->text[t->n++], FTH__TICK_TEXT, "0");
    }
    if (n_up) add_powers(t, a, 1, up0, up1, stride);
}

static void make(fth__ticks *t, const fth__plot_axis *a, int target)
{
    t->n = t->n_minor = 0;
    t->factor[0] = '\0';
    if (a->scale == FTH_SCALE_LOG) add_log(t, a, target);
    if (a->scale == FTH_SCALE_SYMLOG) add_symlog(t, a, target);
    if (t->n < 2) { /* too short for powers */
        t->n = 0;
        add_linear(t, a, target);
    }
}

/* Has the number at i room beside the one at k? */
static bool apart(const fth__ticks *t, const fth__plot_axis *a, int i, int k, double length,
                  double size, bool side)
{
    const double space = fabs(fth__axis_map(a, t->at[i]) - fth__axis_map(a, t->at[k])) * length;
    const double words =
        (fth__text_width(t->text[i], size) + fth__text_width(t->text[k], size)) / 2;
    return space >= (side ? fmax(words + 1.3 * size, 2.4 * size) : 2 * size);
}

/* Where even the fewest do not fit, leave out what is too near to the one before. */
static void thin(fth__ticks *t, const fth__plot_axis *a, double length, double size, bool side)
{
    int kept = 0;
    for (int i = 0; i < t->n; i++) {
        if (kept > 0 && !apart(t, a, i, kept - 1, length, size, side)) {
            add_minor(t, a, t->at[i]);
            continue;
        }
        t->at[kept] = t->at[i];
        memmove(t->text[kept++], t->text[i], FTH__TICK_TEXT);
    }
    t->n = kept;
}

void fth__ticks_make(fth__ticks *t, const fth__plot_axis *a, double length, double size, bool side)
{
    t->n = t->n_minor = 0;
    t->factor[0] = '\0';
    if (a->names) return;
    FTH_ASSERT(a->low < a->high);
    bool fit = false;
    for (int target = 8; !fit && target > 1; target--) {
        make(t, a, target);
        fit = true;
        for (int i = 1; i < t->n; i++) fit &= apart(t, a, i, i - 1, length, size, side);
    }
    if (!fit) thin(t, a, length, size, side);
    FTH_ASSERT(t->n >= 0 && t->n <= FTH__TICKS && t->n_minor <= FTH__MINORS);
}
