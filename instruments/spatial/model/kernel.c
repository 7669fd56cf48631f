/* kernel.c - covariance functions, as single numbers and as values of a graph (model 4.1).
 *
 * All of them are one formula: v = root r / lengthscale * sqrt(nu), a polynomial in v times e^-v
 * (or e^(-v^2/2)), times nu^power. Without groups nu is 1. Both forms follow the same order of
 * operations, so that the host version is the reference of the graph.
 */
#include "kernel.h"

#include <math.h>
#include <stdio.h>

#define FLOOR 1e-12    /* under the root of a squared distance: keeps slopes finite */
#define EQUAL 1.000002 /* squared distance of any two groups, when none are given */

const sp_kernel_info sp_kernels[SP_KERNEL_COUNT] = {
#define SP_KERNEL(id, name, root, power) {name, root, power},
#include "../kernels.def"
#undef SP_KERNEL
};
_Static_assert(SP_KERNEL_COUNT == 3,
               "a new kernel: give it a case in shape_of, shape_val and slope_val");

sp_cov sp_cov_of(const sp_model *m)
{
    return (sp_cov){.kernel = (sp_kernel)m->set.kernel,
                    .sigma = m->set.sigma,
                    .lengthscale = m->set.lengthscale,
                    .groups = m->set.groups,
                    .alpha = m->set.group_diff_param,
                    .distance = m->distance ? fth_tensor_data(m->distance) : NULL,
                    .table = m->distance,
                    .gap = m->set.section_gap,
                    .n_groups = m->set.n_groups};
}

/* ---- single numbers ---- */

static double nu_of(const sp_cov *c, double d2)
{
    return 1.0 / (fabs(c->alpha) * d2 + 1.0);
}

double sp_cov_nu(const sp_cov *c, int64_t g, int64_t h)
{
    if (!c->groups || g == h) return 1.0;
    return nu_of(c, c->distance ? c->distance[g * c->n_groups + h] : EQUAL);
}

static double shape_of(sp_kernel k, double v)
{
    if (k == SP_RBF) return exp(-0.5 * v * v);
    return (1.0 + v + (k == SP_MATERN52 ? v * v / 3.0 : 0.0)) * exp(-v);
}

double sp_cov_at(const sp_cov *c, const float a[2], int64_t g, const float b[2], int64_t h)
{
    const sp_kernel_info *info = &sp_kernels[c->kernel];
    const double x = (double)b[0] - (double)a[0], y = (double)b[1] - (double)a[1];
    if (c->gap > 0.0 && x * x + y * y >= c->gap * c->gap) return 0.0;
    const double r = sqrt(x * x + y * y + (c->kernel == SP_RBF ? 0.0 : FLOOR));
    const double nu = sp_cov_nu(c, g, h);
    const double v = info->root / fabs(c->lengthscale) * r * sqrt(nu);
    return c->sigma * c->sigma * shape_of(c->kernel, v) * pow(nu, info->power);
}

/* ---- values ---- */

static fth_val shape_val(fth_graph *g, sp_kernel k, fth_dtype real, fth_val v)
{
    const fth_val one = fth_const(g, real, 1.0);
    if (k == SP_RBF) return fth_exp(fth_mul(fth_const(g, real, -0.5), fth_sqr(v)));
    fth_val sum = fth_add(one, v);
    if (k == SP_MATERN52) sum = fth_add(sum, fth_mul(fth_sqr(v), fth_const(g, real, 1.0 / 3.0)));
    return fth_mul(sum, fth_exp(fth_neg(v)));
}

/* -dS/dv v, with S the shape: its slope in ln lengthscale (model 19.2a). */
static fth_val slope_val(fth_graph *g, sp_kernel k, fth_dtype real, fth_val v)
{
    const fth_val v2 = fth_sqr(v);
    if (k == SP_RBF) return fth_mul(v2, fth_exp(fth_mul(fth_const(g, real, -0.5), v2)));
    const fth_val decay = fth_mul(v2, fth_exp(fth_neg(v)));
    if (k == SP_MATERN32) return decay;
    const fth_val third = fth_const(g, real, 1.0 / 3.0);
    return fth_mul(decay, fth_mul(fth_add(fth_const(g, real, 1.0), v), third));
}

/* Pairs of places, [rows cols]. */
typedef struct pairs {
    fth_val v;      /* root r / lengthscale, before groups; [factor rows cols] where each factor has
                       a lengthscale */
    fth_val beyond; /* bool: they are of different sections; only where there is a gap */
} pairs;

static pairs scaled(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, const char *rows,
                    fth_val b)
{
    const fth_val d = fth_sub(fth_expand(fth_cast(b, real), rows), fth_cast(a, real));
    fth_val r2 = fth_sum(fth_sqr(d), "dim");
    pairs p = {.v = r2};
    if (c->gap > 0.0) p.beyond = fth_ge(r2, fth_const(g, real, c->gap * c->gap));
    if (c->kernel != SP_RBF) r2 = fth_add(r2, fth_const(g, real, FLOOR));
    if (c->log_ell.graph) {
        const fth_val r = fth_mul(fth_sqrt(r2), fth_const(g, real, sp_kernels[c->kernel].root));
        p.v = fth_mul(fth_expand(r, c->factor), fth_cast(fth_exp(fth_neg(c->log_ell)), real));
        return p;
    }
    const double scale = sp_kernels[c->kernel].root / fabs(c->lengthscale);
    p.v = fth_mul(fth_sqrt(r2), fth_const(g, real, scale));
    return p;
}

/* A function of such pairs, from its value at nu = 1 and sigma = 1: nothing between sections. */
static fth_val weigh(fth_graph *g, const sp_cov *c, fth_dtype real, const pairs *p, fth_val shape,
                     fth_val value)
{
    const fth_val k = fth_mul(fth_mul(shape, fth_const(g, real, c->sigma * c->sigma)), value);
    return c->gap > 0.0 ? fth_select(p->beyond, fth_const(g, real, 0.0), k) : k;
}

/* The covariance of such pairs; `near` is sqrt(nu) and `value` nu^power. `slope`, unless NULL, gets
 * its slope in ln lengthscale. */
static fth_val finish(fth_graph *g, const sp_cov *c, fth_dtype real, pairs p, fth_val near,
                      fth_val value, fth_val *slope)
{
    const fth_val v = fth_mul(p.v, near);
    if (slope) *slope = weigh(g, c, real, &p, slope_val(g, c->kernel, real, v), value);
    return weigh(g, c, real, &p, shape_val(g, c->kernel, real, v), value);
}

/* sqrt(nu) and nu^power of every pair of groups, real [group group2]; `name` of the input. */
static void tables(fth_graph *g, const sp_cov *c, fth_dtype real, const char *name, fth_val *near,
                   fth_val *value)
{
    const fth_val one = fth_const(g, FTH_F64, 1.0);
    const fth_val d2 = fth_input(g, name, FTH_F64, "group group2", fth_tensor_source(c->table));
    const fth_val nu = fth_recip(fth_add(fth_mul(d2, fth_const(g, FTH_F64, fabs(c->alpha))), one));
    const double power = sp_kernels[c->kernel].power;
    *near = fth_cast(fth_sqrt(nu), real);
    *value = fth_cast(fth_pow(nu, fth_const(g, FTH_F64, power)), real);
}

static void pick(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val same, fth_val *near,
                 fth_val *value)
{
    const double nu = nu_of(c, EQUAL);
    const fth_val one = fth_const(g, real, 1.0);
    *near = fth_select(same, one, fth_const(g, real, sqrt(nu)));
    *value = fth_select(same, one, fth_const(g, real, pow(nu, sp_kernels[c->kernel].power)));
}

static fth_val block_nu(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, const char *rows,
                        fth_val b, double nu, fth_val *slope)
{
    const pairs v = scaled(g, c, real, a, rows, b);
    const fth_val near = fth_const(g, real, sqrt(nu));
    return finish(g, c, real, v, near, fth_const(g, real, pow(nu, sp_kernels[c->kernel].power)),
                  slope);
}

static fth_val block(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, fth_val ga,
                     const char *rows, fth_val b, fth_val gb, const char *cols, fth_val *slope)
{
    if (!c->groups) return block_nu(g, c, real, a, rows, b, 1.0, slope);
    const pairs v = scaled(g, c, real, a, rows, b);
    fth_val near, value;
    if (!c->table) {
        pick(g, c, real, fth_eq(fth_expand(gb, rows), ga), &near, &value);
        return finish(g, c, real, v, near, value, slope);
    }
    char name[80];
    snprintf(name, sizeof name, "group_distance.%s.%s", rows, cols);
    tables(g, c, real, name, &near, &value);
    near = fth_gather(fth_gather(near, "group2", gb), "group", ga);
    value = fth_gather(fth_gather(value, "group2", gb), "group", ga);
    return finish(g, c, real, v, near, value, slope);
}

fth_val sp_cov_block(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, fth_val ga,
                     const char *rows, fth_val b, fth_val gb, const char *cols)
{
    return block(g, c, real, a, ga, rows, b, gb, cols, NULL);
}

fth_val sp_cov_block_slope(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, fth_val ga,
                           const char *rows, fth_val b, fth_val gb, const char *cols,
                           fth_val *slope)
{
    return block(g, c, real, a, ga, rows, b, gb, cols, slope);
}

fth_val sp_cov_block_nu(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a, const char *rows,
                        fth_val b, double nu)
{
    return block_nu(g, c, real, a, rows, b, nu, NULL);
}

fth_val sp_cov_block_groups(fth_graph *g, const sp_cov *c, fth_dtype real, fth_val a,
                            const char *rows, fth_val b, fth_val gb, const char *cols)
{
    pairs v = scaled(g, c, real, a, rows, b);
    char name[80];
    fth_val near, value;
    snprintf(name, sizeof name, "group_distance.all.%s.%s", rows, cols);
    if (c->table) {
        tables(g, c, real, name, &near, &value);
        near = fth_gather(near, "group2", gb);
        value = fth_gather(value, "group2", gb);
    } else {
        const fth_val group = fth_cast(fth_index(g, "group"), FTH_I32);
        pick(g, c, real, fth_eq(fth_expand(gb, "group"), group), &near, &value);
    }
    v.v = fth_expand(v.v, "group");
    if (c->gap > 0.0) v.beyond = fth_expand(v.beyond, "group");
    return finish(g, c, real, v, near, value, NULL);
}
