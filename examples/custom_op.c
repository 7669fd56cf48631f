/* custom_op.c - an operation of your own: planned, cut and differentiated like the rest.
 *
 * seconds: 2
 * The second difference along one axis, zero outside: out[x] = v[x-1] - 2 v[x] + v[x+1]. The engine
 * is told what it must know (shapes, which inputs an output piece needs, the gradient) and decides
 * the rest. The program runs it whole and in a small budget, compares the bytes, and checks the
 * gradient against differences. docs/engine.md walks through this file.
 */
#include <fathom/fathom.h>

#include <math.h>
#include <string.h>

typedef struct second_attr {
    fth_axis_id axis; /* attributes are plain bytes: they are hashed into the plan's identity */
} second_attr;

/* 1. Shapes: say no here, with what was found, and never be wrong about shapes later. */
static fth_status second_infer(fth_node *node, fth_err *err)
{
    const second_attr *a = node->attr;
    char text[256];
    if (node->in[0].dtype != FTH_F32)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "second_difference: %s is not f32",
                        fth_in_format(node, 0, text, sizeof text));
    if (fth_desc_find(&node->in[0], a->axis) < 0)
        return FTH_FAIL(err, FTH_E_AXIS_MISSING, "second_difference: %s has no axis '%s'",
                        fth_in_format(node, 0, text, sizeof text),
                        fth_axis_name(node->graph, a->axis));
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].triangle = FTH_FULL; /* differences of a triangle are none */
    return FTH_OK;
}

/* 2. Relation: which piece of the input a piece of the output needs. One element more on either
 * side along our axis, the same piece along the others. Without this function every axis would be
 * WHOLE: correct, and never cut. */
static void second_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const second_attr *a = node->attr;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (node->in[in].axis[dim] == a->axis)
        *out =
            (fth_relation){.along = FTH_HALO, .out_dim = dim, .mul = 1, .div = 1, .lo = 1, .hi = 1};
}

/* 3. Run: tiles have places (origin), sizes and strides of their own; write every element of out.
 * Nothing is allocated here. Each element is computed alone, so any cut gives the same bits. */
static fth_status second_run(const fth_call *call)
{
    const fth_node *node = call->node;
    const second_attr *a = node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int n_axes = node->out[0].n_axes, along = fth_desc_find(&node->out[0], a->axis);
    const int64_t size = node->out[0].size[along], step = in->stride[along];
    int64_t count = 1, at[FTH_MAX_AXES] = {0};
    for (int d = 0; d < n_axes; d++) count *= out->extent[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t from = 0, to = 0;
        for (int d = 0; d < n_axes; d++) {
            from += (out->origin[d] + at[d] - in->origin[d]) * in->stride[d];
            to += at[d] * out->stride[d];
        }
        const float *v = (const float *)in->data + from;
        const int64_t x = out->origin[along] + at[along]; /* global */
        const float left = x > 0 ? v[-step] : 0.0f, right = x + 1 < size ? v[step] : 0.0f;
        ((float *)out->data)[to] = left - 2.0f * v[0] + right;
        for (int d = n_axes - 1; d >= 0 && ++at[d] == out->extent[d]; d--) at[d] = 0;
    }
    return FTH_OK;
}

/* 4. Gradient: append nodes. The matrix of this operation is symmetric: it is its own adjoint. */
static fth_status second_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                             fth_err *err)
{
    (void)err;
    in_bar[0] = fth_custom(node->graph, node->op, 1, &out_bar[0], node->attr, node->attr_bytes);
    return FTH_OK;
}

static const fth_op second_record = {
    .name = "second_difference",
    .brief = "v[x-1] - 2 v[x] + v[x+1], zero outside",
    .infer = second_infer,
    .relation = second_relation,
    .vjp = second_vjp,
    .run = second_run,
};

/* 5. A builder, so that callers read well and mistakes carry their line. */
#define second(v, axis)                                                                            \
    fth_custom((v).graph, &second_record, 1, &(v),                                                 \
               &((second_attr){fth_axis_find((v).graph, (axis))}), sizeof(second_attr))

/* For programs that open this as a shared object: docs/engine.md, "From Python". */
FTH_OP_EXPORT(second_difference, &second_record);

/* 6. Try it in every way that a plan may use it: five lines, for any operation. */
static fth_status promises(fth_context *ctx, fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "y", 23), fth_axis(g, "x", 37);
    const fth_source none = {.dtype = FTH_F32, .n_axes = 2, .size = {23, 37}};
    const fth_val v = fth_input(g, "v", FTH_F32, "y x", none);
    fth_op_check_report tried;
    const fth_status s = fth_op_check(second(v, "y"), NULL, &tried, err);
    if (s == FTH_OK)
        printf("%lld calls, %d axes cut: the same bytes; gradient off by %.1g\n",
               (long long)tried.calls, tried.axes, tried.gradient_error);
    fth_graph_destroy(g);
    return s;
}

enum { Y = 4000, X = 300 };

/* energy = sum (second(v))^2, and its gradient; v is made when asked for */
static fth_status read_v(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)err;
    const double *bump = self; /* added to element (Y/2, X/2) */
    float *out = dst;
    for (int64_t y = lo[0]; y < lo[0] + n[0]; y++)
        for (int64_t x = lo[1]; x < lo[1] + n[1]; x++)
            *out++ = (float)(sin(1.3 * (double)y) * cos(0.07 * (double)x) +
                             (y == Y / 2 && x == X / 2 ? *bump : 0.0));
    return FTH_OK;
}

typedef struct answer {
    double energy;
    float grad[Y][X];
} answer;

static fth_status solve(fth_context *ctx, uint64_t budget, double bump, answer *out, uint64_t *peak,
                        fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "y", Y);
    fth_axis(g, "x", X);
    const fth_val v = fth_input(g, "v", FTH_F32, "y x",
                                ((fth_source){.kind = "made",
                                              .self = &bump,
                                              .dtype = FTH_F32,
                                              .n_axes = 2,
                                              .size = {Y, X},
                                              .read = read_v}));
    const fth_val bend = fth_label(second(v, "y"), "bend");
    const fth_val energy = fth_sum(fth_sqr(fth_cast(bend, FTH_F64)), "y x");
    fth_val grad;
    fth_grad(energy, 1, &v, &grad);

    fth_tensor *t = NULL;
    const int64_t size[2] = {Y, X};
    fth_status s =
        fth_tensor_wrap(&t, fth_context_mem(ctx), "grad", FTH_F32, 2, size, out->grad, err);
    fth_plan *p = NULL;
    if (s == FTH_OK) {
        const fth_sink sinks[2] = {fth_scalar_sink(FTH_F64, &out->energy), fth_tensor_sink(t)};
        const fth_limits limits = {.memory_bytes = budget, .sinks = sinks};
        p = fth_plan_make(g, ((fth_val[]){energy, grad}), 2, &limits, err);
        s = p ? fth_run(p, sinks, NULL, NULL, err) : err->status;
    }
    if (s == FTH_OK) {
        fth_plan_info info;
        fth_plan_get_info(p, &info);
        printf("budget %8.1f KiB: %8.1f KiB + %.1f KiB of ours, energy %.9g\n",
               (double)budget / 1024, (double)info.peak_bytes / 1024,
               (double)info.foreign_bytes / 1024, out->energy);
        *peak = info.peak_bytes;
    }
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(t);
    return s;
}

static fth_status check(fth_context *ctx, fth_err *err)
{
    static answer whole, small, up, down; /* 4.8 MB each: not for the stack */
    uint64_t most, least, peak;
    const double h = 0.05;
    FTH_TRY(solve(ctx, 64u << 20, 0.0, &whole, &most, err));
    FTH_TRY(solve(ctx, sizeof small.grad + (600u << 10), 0.0, &small, &least, err));
    if (least * 8 > most) return FTH_FAIL(err, FTH_E_STATE, "it was meant to be cut into pieces");
    if (memcmp(&whole, &small, sizeof whole) != 0)
        return FTH_FAIL(err, FTH_E_NUMERIC, "the budget changed the result");
    FTH_TRY(solve(ctx, 64u << 20, h, &up, &peak, err));
    FTH_TRY(solve(ctx, 64u << 20, -h, &down, &peak, err));
    const double slope = (up.energy - down.energy) / (2 * h);
    const double grad = (double)whole.grad[Y / 2][X / 2];
    printf("gradient %.6f, by differences %.6f\n", grad, slope);
    if (!(fabs(slope - grad) < 1e-4 * fabs(grad)))
        return FTH_FAIL(err, FTH_E_NUMERIC, "gradient %g, differences %g", grad, slope);
    return FTH_OK;
}

int main(void)
{
    fth_err err = {0};
    fth_context *ctx = NULL;
    fth_status s = fth_context_create(&ctx, NULL, &err);
    if (s == FTH_OK) s = promises(ctx, &err);
    if (s == FTH_OK) s = check(ctx, &err);
    const fth_status closed = fth_context_destroy(ctx, &err);
    if (s == FTH_OK) s = closed;
    if (s != FTH_OK) {
        char text[4096];
        fth_err_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return s != FTH_OK;
}
