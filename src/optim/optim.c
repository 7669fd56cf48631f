/* optim.c - the optimisers as graphs, all of one mould.
 *
 * Numbers that depend on the step alone (bias corrections, the rate) are 0-axis f64 values, cast
 * once they are finished: in f32 1 - beta2^t loses half its digits for the first thousand steps.
 * Each parameter has its own in the graph; a plan makes those that are equal once
 * (plan/distinct.c). What touches whole parameters is elementwise, so a plan does it in place when
 * the results are assigned.
 */
#include "graph/graph.h"

#include <fathom/optim.h>

#include <math.h>

/* A step under construction: what the makers below read. */
typedef struct making {
    fth_site site;
    const fth_optim *opt;
    fth_val param, grad, first, second; /* of the parameter's shape */
    fth_val rate, beta1, step;          /* f64 without axes; `step` too, cast */
} making;
typedef void maker(const making *m, fth_val out[3]);

static fth_val map1(const making *m, fth_ew op, fth_val a)
{
    return fth_map_(m->site, op, a, (fth_val){0}, (fth_val){0});
}

static fth_val map2(const making *m, fth_ew op, fth_val a, fth_val b)
{
    return fth_map_(m->site, op, a, b, (fth_val){0});
}

static fth_val num(const making *m, fth_val like, double x)
{
    return fth_const_(like.graph, m->site, fth_val_dtype(like), x, 0.0);
}

static fth_val real(const making *m, fth_val scalar)
{
    return fth_cast_(m->site, scalar, fth_val_dtype(m->param));
}

static fth_val from_one(const making *m, fth_val x)
{
    return map2(m, FTH_EW_SUB, num(m, x, 1.0), x);
}

/* beta * old + (1 - beta) * x, beta an f64 without axes */
static fth_val average(const making *m, fth_val old, fth_val x, fth_val beta)
{
    return map2(m, FTH_EW_ADD, map2(m, FTH_EW_MUL, real(m, beta), old),
                map2(m, FTH_EW_MUL, real(m, from_one(m, beta)), x));
}

/* 1 / (1 - beta^step), in f64 */
static fth_val correction(const making *m, fth_val beta)
{
    return map2(m, FTH_EW_DIV, num(m, beta, 1.0), from_one(m, map2(m, FTH_EW_POW, beta, m->step)));
}

static fth_val squares(const making *m, fth_val beta)
{
    return average(m, m->second, map2(m, FTH_EW_MUL, m->grad, m->grad), beta);
}

/* sqrt(v) / sqrt(1 - beta2^step) + eps */
static fth_val denominator(const making *m, fth_val v, fth_val beta2)
{
    const fth_val root = real(m, map1(m, FTH_EW_SQRT, correction(m, beta2)));
    return map2(m, FTH_EW_ADD, map2(m, FTH_EW_MUL, map1(m, FTH_EW_SQRT, v), root),
                num(m, v, m->opt->eps));
}

static fth_val minus(const making *m, fth_val from, fth_val x, fth_val scale)
{
    return map2(m, FTH_EW_SUB, from, map2(m, FTH_EW_MUL, x, real(m, scale)));
}

/* `next`, unless the step is told to change nothing. Moments are kept before they are used, so that
 * the parameter reads the value that is assigned; its own move has a rate of 0 then. */
static fth_val keep(const making *m, fth_val next, fth_val old)
{
    if (!fth_val_ok(m->opt->go)) return next;
    return fth_map_(m->site, FTH_EW_SELECT, m->opt->go, next, old);
}

/* Adam (Kingma & Ba 2015); with decoupled decay (Loshchilov & Hutter 2019) where decay is not 0. */
static void make_adam(const making *m, fth_val out[3])
{
    const fth_val beta2 = num(m, m->rate, m->opt->beta2);
    out[1] = keep(m, average(m, m->first, m->grad, m->beta1), m->first);
    out[2] = keep(m, squares(m, beta2), m->second);
    const fth_val scale = real(m, map2(m, FTH_EW_MUL, m->rate, correction(m, m->beta1)));
    const fth_val move =
        map2(m, FTH_EW_DIV, map2(m, FTH_EW_MUL, out[1], scale), denominator(m, out[2], beta2));
    out[0] = map2(m, FTH_EW_SUB, m->param, move);
    if (m->opt->decay != 0.0)
        out[0] = minus(m, out[0], m->param,
                       map2(m, FTH_EW_MUL, m->rate, num(m, m->rate, m->opt->decay)));
}

/* mu of NAdam at a step: beta1 (1 - 0.96^(step psi) / 2); psi as in fth_nadam_product */
static const double nadam_base = 0.96, nadam_psi = 4e-3;

static fth_val nadam_mu(const making *m, fth_val step)
{
    const fth_val power = map2(m, FTH_EW_POW, num(m, step, nadam_base),
                               map2(m, FTH_EW_MUL, step, num(m, step, nadam_psi)));
    return map2(m, FTH_EW_MUL, m->beta1,
                from_one(m, map2(m, FTH_EW_MUL, num(m, step, 0.5), power)));
}

double fth_nadam_product(double before, double beta1, int64_t step)
{
    return before * beta1 * (1.0 - 0.5 * pow(nadam_base, (double)step * nadam_psi));
}

/* NAdam: the momentum of the step to come is applied now. */
static void make_nadam(const making *m, fth_val out[3])
{
    const fth_val beta2 = num(m, m->rate, m->opt->beta2), product = m->opt->product;
    const fth_val mu = nadam_mu(m, m->step);
    const fth_val next = nadam_mu(m, map2(m, FTH_EW_ADD, m->step, num(m, m->step, 1.0)));
    out[1] = keep(m, average(m, m->first, m->grad, m->beta1), m->first);
    out[2] = keep(m, squares(m, beta2), m->second);
    const fth_val bottom = denominator(m, out[2], beta2);
    const fth_val now =
        map2(m, FTH_EW_MUL, m->rate, map2(m, FTH_EW_DIV, from_one(m, mu), from_one(m, product)));
    const fth_val then =
        map2(m, FTH_EW_MUL, m->rate,
             map2(m, FTH_EW_DIV, next, from_one(m, map2(m, FTH_EW_MUL, product, next))));
    const fth_val top = map2(m, FTH_EW_ADD, map2(m, FTH_EW_MUL, m->grad, real(m, now)),
                             map2(m, FTH_EW_MUL, out[1], real(m, then)));
    out[0] = map2(m, FTH_EW_SUB, m->param, map2(m, FTH_EW_DIV, top, bottom));
}

/* Heavy ball without damping: velocity <- momentum * velocity + gradient. */
static void make_sgd(const making *m, fth_val out[3])
{
    out[1] = map2(m, FTH_EW_ADD, map2(m, FTH_EW_MUL, real(m, m->beta1), m->first), m->grad);
    out[1] = keep(m, out[1], m->first);
    out[0] = minus(m, m->param, out[1], m->rate);
}

/* With the momentum that torch's one_cycle turns on: first <- momentum first + gradient / root. */
static void make_rmsprop(const making *m, fth_val out[3])
{
    out[2] = keep(m, squares(m, num(m, m->rate, m->opt->beta2)), m->second);
    const fth_val bottom =
        map2(m, FTH_EW_ADD, map1(m, FTH_EW_SQRT, out[2]), num(m, out[2], m->opt->eps));
    const fth_val move = map2(m, FTH_EW_DIV, m->grad, bottom);
    if (!fth_val_ok(m->first)) { /* a caller who carries none */
        out[0] = minus(m, m->param, move, m->rate);
        return;
    }
    out[1] = map2(m, FTH_EW_ADD, map2(m, FTH_EW_MUL, real(m, m->beta1), m->first), move);
    out[1] = keep(m, out[1], m->first);
    out[0] = minus(m, m->param, out[1], m->rate);
}

enum { CARRIES_FIRST = 1, CARRIES_SECOND = 2 };

static const struct {
    const char *name;
    int carries;
    double beta2, decay;
    maker *make;
} kinds[FTH_OPTIM_COUNT] = {
    [FTH_OPTIM_ADAM] = {"adam", CARRIES_FIRST | CARRIES_SECOND, 0.999, 0.0, make_adam},
    [FTH_OPTIM_ADAMW] = {"adamw", CARRIES_FIRST | CARRIES_SECOND, 0.999, 0.01, make_adam},
    [FTH_OPTIM_NADAM] = {"nadam", CARRIES_FIRST | CARRIES_SECOND, 0.999, 0.0, make_nadam},
    [FTH_OPTIM_SGD] = {"sgd", CARRIES_FIRST, 0.0, 0.0, make_sgd},
    [FTH_OPTIM_RMSPROP] = {"rmsprop", CARRIES_FIRST | CARRIES_SECOND, 0.99, 0.0, make_rmsprop},
};

fth_optim fth_optim_default(fth_optim_kind kind)
{
    return (fth_optim){
        .kind = kind, .beta2 = kinds[kind].beta2, .eps = 1e-8, .decay = kinds[kind].decay};
}

const char *fth_optim_name(fth_optim_kind kind)
{
    return kinds[kind].name;
}

int fth_optim_carries(fth_optim_kind kind)
{
    return kinds[kind].carries;
}

/* What the makers take for granted. FTH_OK, or the mistake, recorded. */
static fth_status check(const making *m)
{
    fth_graph *g = m->param.graph;
    const char *name = kinds[m->opt->kind].name;
    const fth_dtype t = fth_val_dtype(m->param);
    const fth_val scalar[] = {m->rate, m->beta1, m->opt->product};
    if (!fth_dtype_is_real(t)) {
        fth_poison_(g, m->site, FTH_E_DTYPE_OP, "%s: the parameter is %s and must be real", name,
                    fth_dtype_name(t));
        return FTH_E_DTYPE_OP;
    }
    const int scalars = m->opt->kind == FTH_OPTIM_NADAM ? 3 : 2;
    /* a poisoned one has its own error, of another cause */
    FTH_TRY(fth_graph_check(g, NULL));
    for (int i = 0; i < scalars; i++)
        if (!fth_val_ok(scalar[i]) || fth_val_dtype(scalar[i]) != FTH_F64 ||
            fth_val_axes(scalar[i]) != 0) {
            fth_poison_(g, m->site, FTH_E_DTYPE_OP, "%s: %s must be a value of f64 without axes",
                        name, ((const char *[]){"the rate", "beta1", "opt->product"})[i]);
            return FTH_E_DTYPE_OP;
        }
    return FTH_OK;
}

fth_status fth_optim_(fth_site site, const fth_optim *opt, fth_val param, fth_val grad,
                      fth_val first, fth_val second, fth_val rate, fth_val beta1, fth_val step,
                      fth_val out[3])
{
    fth_graph *g = param.graph;
    for (int i = 0; i < 3; i++) out[i] = (fth_val){g, 0};
    if (!fth_val_ok(param) || !fth_val_ok(grad)) return fth_graph_check(g, NULL);
    making m = {.site = site,
                .opt = opt,
                .param = param,
                .grad = grad,
                .first = first,
                .second = second,
                .rate = rate,
                .beta1 = beta1};
    m.step = fth_cast_(site, step, FTH_F64);
    FTH_TRY(check(&m));
    if (fth_val_ok(opt->go)) { /* a gradient that may be NaN is not looked at */
        m.rate = keep(&m, rate, num(&m, rate, 0.0));
        m.grad = keep(&m, grad, num(&m, grad, 0.0));
    }
    kinds[opt->kind].make(&m, out);
    return fth_graph_check(g, NULL);
}

fth_status fth_adam_(fth_site site, const fth_adam *opt, fth_val param, fth_val grad, fth_val m,
                     fth_val v, fth_val rate, fth_val step, fth_val out[3])
{
    const fth_optim same = {.kind = opt->decay != 0.0 ? FTH_OPTIM_ADAMW : FTH_OPTIM_ADAM,
                            .beta2 = opt->beta2,
                            .eps = opt->eps,
                            .decay = opt->decay};
    const fth_val beta1 = fth_const_(param.graph, site, FTH_F64, opt->beta1, 0.0);
    FTH_TRY(fth_optim_(site, &same, param, grad, m, v, rate, beta1, step, out));
    const fth_val old[3] = {param, m, v};
    for (int i = 0; i < 3; i++) out[i] = fth_assign_(site, old[i], out[i]);
    return fth_graph_check(param.graph, NULL);
}
