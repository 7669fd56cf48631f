/* natural.c - see natural.h. Everything is elementwise: it joins the passes of a step. */
#include "natural.h"

/* In the denominator of s^2; where s and the variance end. */
static const double nudge = 1e-6, least_variance = 1e-6, most_variance = 100.0;

static fth_val num(fth_val like, double x)
{
    return fth_const(like.graph, fth_val_dtype(like), x);
}

void sp_natural_moments(fth_val theta1, fth_val theta2, fth_val *f, fth_val *s)
{
    const fth_val twice = fth_add(fth_mul(theta2, num(theta2, 2.0)), num(theta2, nudge));
    const fth_val variance = fth_neg(fth_recip(twice));
    *s = fth_sqrt(fth_max(variance, num(variance, least_variance)));
    *f = fth_mul(variance, theta1);
}

void sp_natural_slopes(fth_val f, fth_val s, fth_val df, fth_val ds, fth_val out[2])
{
    out[1] = fth_div(ds, fth_add(fth_mul(s, num(s, 2.0)), num(s, 1e-8)));
    out[0] = fth_sub(df, fth_mul(fth_mul(f, num(f, 2.0)), out[1]));
}

void sp_natural_step(const fth_val theta[2], const fth_val slope[2], fth_val rate, fth_val go,
                     fth_val next[2])
{
    const fth_val size =
        fth_cast(fth_mul(rate, num(rate, SP_NATURAL_RATE)), fth_val_dtype(theta[0]));
    const fth_val move[2] = {fth_mul(size, slope[0]), fth_mul(size, slope[1])};
    /* theta2 < 0 rises to its half at most, and not beyond that of the largest variance: otherwise
     * both take the share of their step that leads there */
    const double top = -(1.0 / most_variance + nudge) / 2.0;
    const fth_val most = fth_min(fth_mul(theta[1], num(theta[1], 0.5)), num(theta[1], top));
    const fth_val whole = fth_sub(theta[1], move[1]), beyond = fth_gt(whole, most);
    const fth_val share =
        fth_select(beyond, fth_div(fth_sub(theta[1], most), move[1]), num(most, 1.0));
    const fth_val to[2] = {fth_sub(theta[0], fth_mul(share, move[0])),
                           fth_select(beyond, most, whole)};
    for (int i = 0; i < 2; i++) next[i] = fth_select(go, to[i], theta[i]);
}

double sp_natural_start1(double mean)
{
    return mean / SP_NATURAL_START;
}

double sp_natural_start2(void)
{
    return -1.0 / (2.0 * SP_NATURAL_START);
}
