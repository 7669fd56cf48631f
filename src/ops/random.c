/* random.c - uniform and normal numbers and raw bits, as a function of where an element stands.
 *
 * Counting follows the order in which axes were declared, never the layout: a transposed value
 * holds the same numbers. seed and iteration are operands, so one plan serves every step of a
 * training.
 */
#include "ops/random.h"

#include "base/assert.h"
#include "ops/build.h"
#include "ops/loop.h"

fth__random_key fth__random_call_key(const fth_tile *seed, const fth_tile *iteration,
                                     int64_t stream)
{
    return fth__random_key_make(*(const int64_t *)seed->data, *(const int64_t *)iteration->data,
                                stream);
}

fth_status fth__random_check(const fth_node *node, int seed, int iteration, fth_err *err)
{
    char a[FTH__SHAPE_TEXT];
    const int both[2] = {seed, iteration};
    for (int i = 0; i < 2; i++) {
        const fth_desc *d = &node->in[both[i]];
        if (d->n_axes == 0 && d->dtype == FTH_I64) continue;
        const fth_status s =
            FTH_FAIL(err, d->n_axes ? FTH_E_AXIS_MISMATCH : FTH_E_DTYPE_OP,
                     "%s: the %s must be one i64 without axes, but is %s", node->op->name,
                     i ? "iteration" : "seed", fth_in_format(node, both[i], a, sizeof a));
        fth_err_hint(err, "write fth_const_i64(g, FTH_I64, ..) or an input with axes \"\"");
        return s;
    }
    return FTH_OK;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__random_attr *attr = node->attr;
    const bool bits = attr->kind == FTH_RANDOM_BITS;
    FTH_ASSERT(attr->n >= 0 && attr->n <= FTH_MAX_AXES);
    if (attr->kind < 0 || attr->kind > FTH_RANDOM_NORMAL)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "random: %d is not one of fth_random_kind",
                        attr->kind);
    if (attr->dtype != FTH_I64 && bits)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "random: bits are i64, not %s",
                        fth_dtype_name((fth_dtype)attr->dtype));
    if (attr->dtype != FTH_F32 && attr->dtype != FTH_F64 && !bits) {
        const fth_status s = FTH_FAIL(err, FTH_E_DTYPE_OP,
                                      "random: uniform and normal numbers are f32 or f64, not %s",
                                      fth_dtype_name((fth_dtype)attr->dtype));
        fth_err_hint(err, "draw f32 and cast");
        return s;
    }
    FTH_TRY(fth__random_check(node, 0, 1, err));
    fth_desc d = {.dtype = (fth_dtype)attr->dtype, .n_axes = attr->n};
    for (int k = 0; k < attr->n; k++) {
        d.axis[k] = attr->axis[k];
        d.size[k] = fth__size_of(node->graph, attr->axis[k]);
    }
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

void fth__random_draw(int kind, fth_dtype dtype, const fth__random_key *key, uint64_t index,
                      char *out)
{
    const fth__philox p = fth__random_bits(key, index);
    const bool single = dtype == FTH_F32;
    if (kind == FTH_RANDOM_BITS)
        *(int64_t *)(void *)out = (int64_t)((uint64_t)p.v[1] << 32 | p.v[0]);
    else if (kind == FTH_RANDOM_UNIFORM && single)
        *(float *)(void *)out = fth__uniform_f32(p.v[0]);
    else if (kind == FTH_RANDOM_UNIFORM)
        *(double *)(void *)out = fth__uniform_f64(p.v[0], p.v[1]);
    else if (single)
        *(float *)(void *)out = fth__normal_f32(&p);
    else
        *(double *)(void *)out = fth__normal_f64(&p);
}

static fth_status run(const fth_call *call)
{
    const fth__random_attr *attr = call->node->attr;
    const fth_desc *d = &call->node->out[0];
    const fth_tile *t = &call->out[0];
    const int64_t size = fth_dtype_size(d->dtype);
    uint64_t step[FTH_MAX_AXES];
    fth__random_steps(d, step);
    const uint64_t first = fth__random_first(d, t, step);
    const fth__random_key key = fth__random_call_key(&call->in[0], &call->in[1], attr->stream);
    fth__loop l = {0};
    for (int k = 0; k < d->n_axes; k++)
        fth__loop_add(&l, t->extent[k], t->stride[k] * size, (int64_t)step[k], 0, 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l))
        fth__random_draw(attr->kind, (fth_dtype)attr->dtype, &key, first + (uint64_t)l.at[1],
                         (char *)t->data + l.at[0]);
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    double n = FTH__RANDOM_FLOPS;
    for (int k = 0; k < call->node->out[0].n_axes; k++) n *= (double)call->out[0].extent[k];
    return n;
}

/* Both operands are integers: no cotangent flows into either. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)node, (void)out_bar, (void)in_bar, (void)err;
    return FTH_OK;
}

const fth_op fth__op_random = {.name = "random",
                               .brief = "uniform, normal or raw random numbers",
                               .flags = FTH_OP_FREE_AXES | FTH_OP_CHEAP,
                               .infer = infer,
                               .flops = flops,
                               .vjp = vjp,
                               .run = run};

fth_val fth_random_(fth_site site, fth_random_kind kind, fth_dtype dtype, const char *axes,
                    fth_val seed, fth_val iteration, int64_t stream)
{
    fth__random_attr attr = {.kind = (int32_t)kind, .dtype = (int32_t)dtype, .stream = stream};
    const fth_val in[2] = {seed, iteration};
    if (!fth__build_axes(seed, site, axes, &attr.n, attr.axis)) return fth__poison(seed);
    return fth_node_add_(seed.graph, site, &fth__op_random, 2, in, &attr, sizeof attr);
}
