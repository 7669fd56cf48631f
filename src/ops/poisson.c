/* poisson.c - one Poisson draw per element, as a function of where the element stands.
 *
 * Rates below 10 by inversion of one uniform number, larger ones by transformed rejection (Hormann
 * 1993, PTRS). Attempt a of an element takes its bits from the element's counter with a in the
 * upper bits, where no index reaches, so draws do not depend on how many attempts their neighbours
 * needed.
 */
#include "ops/build.h"
#include "ops/loop.h"
#include "ops/random.h"

typedef struct poisson_attr {
    int64_t stream;
} poisson_attr;

enum { ATTEMPT_SHIFT = 48, MOST_ATTEMPTS = 1 << 15 };

static fth_status infer(fth_node *node, fth_err *err)
{
    if (node->in[0].dtype != FTH_F32 && node->in[0].dtype != FTH_F64)
        return fth__fail_dtype(node, 0, "f32 and f64", err);
    FTH_TRY(fth__random_check(node, 1, 2, err));
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].dtype = FTH_I64;
    fth__unmark(&node->out[0]);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    fth__rel_same(out, dim);
}

/* Add up the probabilities until they pass u. */
static int64_t invert(double rate, double u)
{
    double p = fth__exp_f64(-rate), sum = p;
    int64_t k = 0;
    while (u >= sum && k < 200) {
        k++;
        p *= rate / (double)k;
        sum += p;
    }
    return k;
}

/* PTRS: a point under a hat, squeezed, then tested against the logarithm of the probability. */
static int64_t reject(double rate, const fth__random_key *key, uint64_t index)
{
    const double log_rate = fth__log_f64(rate), root = fth__sqrt_f64(rate);
    const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double alpha = 1.1239 + 1.1328 / (b - 3.4), reach = 0.9277 - 3.6224 / (b - 2.0);
    for (uint64_t attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        const fth__philox p = fth__random_bits(key, index | attempt << ATTEMPT_SHIFT);
        const double u = fth__uniform_f64(p.v[0], p.v[1]) - 0.5,
                     v = fth__uniform_f64(p.v[2], p.v[3]);
        const double us = 0.5 - fth__fabs_f64(u);
        const double k = fth__floor_f64((2.0 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= reach) return (int64_t)k;
        if (k < 0.0 || (us < 0.013 && v > us)) continue;
        const double left = fth__log_f64(v) + fth__log_f64(alpha) - fth__log_f64(a / (us * us) + b);
        if (left <= k * log_rate - rate - fth__lgamma_f64(k + 1.0)) return (int64_t)k;
    }
    return (int64_t)rate; /* each attempt succeeds nine times in ten: never in practice */
}

static fth_status fail_rate(const fth_call *call, double rate, const fth__loop *l)
{
    const fth_desc *d = &call->node->in[0];
    char a[FTH__SHAPE_TEXT];
    const int last = d->n_axes - 1;
    const long long at = last < 0 ? 0 : (long long)(call->in[0].origin[last] + l->index[last]);
    const fth_status s =
        FTH_FAIL(call->err, FTH_E_NUMERIC, "poisson: a rate of %g in %s, at index %lld of '%s'",
                 rate, fth_in_format(call->node, 0, a, sizeof a), at,
                 last < 0 ? "" : fth__name_of(call->node, d->axis[last]));
    fth_err_hint(call->err, "rates are numbers from 0 to 1e15");
    return s;
}

static fth_status run(const fth_call *call)
{
    const poisson_attr *attr = call->node->attr;
    const fth_desc *d = &call->node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    uint64_t step[FTH_MAX_AXES];
    fth__random_steps(d, step);
    const uint64_t first = fth__random_first(d, out, step);
    const fth__random_key key = fth__random_call_key(&call->in[1], &call->in[2], attr->stream);
    fth__loop l = {0};
    for (int k = 0; k < d->n_axes; k++)
        fth__loop_add(&l, out->extent[k], in->stride[k], out->stride[k], (int64_t)step[k], 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const double rate = d->dtype == FTH_F32 ? (double)((const float *)in->data)[l.at[0]]
                                                : ((const double *)in->data)[l.at[0]];
        const uint64_t index = first + (uint64_t)l.at[2];
        int64_t *to = (int64_t *)out->data + l.at[1];
        if (!(rate >= 0.0 && rate <= 1e15)) return fail_rate(call, rate, &l);
        if (rate >= 10.0) {
            *to = reject(rate, &key, index);
            continue;
        }
        const fth__philox p = fth__random_bits(&key, index);
        *to = invert(rate, fth__uniform_f64(p.v[0], p.v[1]));
    }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    double n = 200.0;
    for (int k = 0; k < call->node->out[0].n_axes; k++) n *= (double)call->out[0].extent[k];
    return n;
}

/* The result is whole numbers: nothing flows back to the rate. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)node, (void)out_bar, (void)in_bar, (void)err;
    return FTH_OK;
}

const fth_op fth__op_poisson = {.name = "poisson",
                                .brief = "one Poisson draw per rate",
                                .flags = FTH_OP_MAY_FAIL,
                                .infer = infer,
                                .relation = relation,
                                .flops = flops,
                                .vjp = vjp,
                                .run = run};

fth_val fth_poisson_(fth_site site, fth_val rate, fth_val seed, fth_val iteration, int64_t stream)
{
    const poisson_attr attr = {stream};
    const fth_val in[3] = {rate, seed, iteration};
    return fth_node_add_(rate.graph, site, &fth__op_poisson, 3, in, &attr, sizeof attr);
}
