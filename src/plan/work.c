/* work.c - about how many seconds the kernel of a unit computes.
 *
 * A kernel belongs to a class, whose rate the machine's table has (rates.def); within a class what
 * an element or a flop costs differs by factors that hardly depend on the machine: they stand here.
 */
#include "ops/build.h"
#include "ops/dot_reduce.h"
#include "ops/fft.h"
#include "ops/ops.h"
#include "ops/random.h"
#include "ops/ranked.h"
#include "plan/plan.h"
#include "plan/rates.h"

#include <math.h>

/* ---- elementwise programs ---- */

/* Instructions that are more than an addition: in additions, or in exponentials. */
typedef struct heavy {
    int16_t op;
    bool in_exp;
    float f32, f64;
} heavy;
static const heavy heavies[] = {
    {FTH_EW_DIV, false, 2.3F, 4.7F},     {FTH_EW_RECIP, false, 2.3F, 4.7F},
    {FTH_EW_SQRT, false, 4.0F, 10.0F},   {FTH_EW_RSQRT, false, 6.0F, 14.0F},
    {FTH_EW_MIN, false, 3.0F, 4.0F},     {FTH_EW_MAX, false, 3.0F, 4.0F},
    {FTH_EW_EXP, true, 1.0F, 1.0F},      {FTH_EW_EXPM1, true, 1.5F, 1.3F},
    {FTH_EW_LOG, true, 1.35F, 1.0F},     {FTH_EW_LOG1P, true, 1.6F, 1.3F},
    {FTH_EW_SIN, true, 2.1F, 1.35F},     {FTH_EW_COS, true, 2.1F, 1.35F},
    {FTH_EW_TANH, true, 1.7F, 1.5F},     {FTH_EW_SIGMOID, true, 1.3F, 1.3F},
    {FTH_EW_SOFTPLUS, true, 2.5F, 2.2F}, {FTH_EW_ERF, true, 3.0F, 2.5F},
    {FTH_EW_ATAN2, true, 3.0F, 2.5F},    {FTH_EW_ARG, true, 3.0F, 2.5F},
    {FTH_EW_POW, true, 11.5F, 6.5F},     {FTH_EW_LGAMMA, true, 11.5F, 6.5F},
    {FTH_EW_DIGAMMA, true, 11.5F, 6.5F}, {FTH_EW_TRIGAMMA, true, 11.5F, 6.5F},
    {FTH_EW_MOD, true, 3.0F, 3.0F},      {FTH_EW_IDIV, true, 3.0F, 3.0F},
};

static double instr_seconds(const fth__rates *r, const fth__program *pr, const fth__instr *in)
{
    if (in->op == FTH__INSTR_MAKE)
        return pr->made[in->from].kind == FTH__MADE_INDEX
                   ? fth__rate_seconds(r, FTH__RATE_LIGHT_F64, 1.0)
                   : fth__rate_seconds(r, FTH__RATE_RANDOM, FTH__RANDOM_FLOPS);
    const bool wide = fth_dtype_size((fth_dtype)in->from) >= 8;
    const double times = fth_dtype_is_complex((fth_dtype)in->from) ? 3.0 : 1.0;
    double weight = 1.0;
    fth__rate_id id = wide ? FTH__RATE_LIGHT_F64 : FTH__RATE_LIGHT_F32;
    for (size_t i = 0; i < sizeof heavies / sizeof heavies[0]; i++) {
        if (heavies[i].op != in->op) continue;
        weight = (double)(wide ? heavies[i].f64 : heavies[i].f32);
        if (heavies[i].in_exp) id = wide ? FTH__RATE_EXP_F64 : FTH__RATE_EXP_F32;
    }
    return fth__rate_seconds(r, id, times * weight);
}

/* The last axis of more than one element; -1: none. */
static fth_axis_id inner_axis(const fth_desc *d)
{
    for (int k = d->n_axes - 1; k >= 0; k--)
        if (d->size[k] > 1) return d->axis[k];
    return -1;
}

/* An operand that does not lie as the program walks is read element by element; a few weights are
 * soon at hand. */
enum { FEW = 4096 };

static int far_operands(const fth_node *n, const fth__program *pr)
{
    fth_axis_id inner = -1;
    int far = 0;
    for (int k = 0; k < pr->n_axes; k++)
        if (pr->size[k] > 1) inner = pr->axis[k];
    for (int i = 0; inner >= 0 && i < n->n_in && i < pr->n_in; i++)
        far += fth_desc_count(&n->in[i]) > FEW && fth_desc_find(&n->in[i], inner) >= 0 &&
               inner_axis(&n->in[i]) != inner;
    return far;
}

/* A reduction adds along the line that it walks, or line by line. */
static double tail_seconds(const fth__rates *r, const fth__program *pr)
{
    const bool wide = fth_dtype_size((fth_dtype)pr->reg_dtype[pr->out_reg[0]]) >= 8;
    const bool extreme = pr->tail_red == FTH_RED_MIN || pr->tail_red == FTH_RED_MAX;
    if (extreme && pr->n_instr > 0) return fth__rate_seconds(r, FTH__RATE_REDUCE, 28.0);
    for (int k = pr->n_axes - 1; k >= 0; k--) {
        if (pr->size[k] < 2) continue;
        if (k != pr->tail_dim)
            return fth__rate_seconds(r, wide ? FTH__RATE_LIGHT_F64 : FTH__RATE_LIGHT_F32, 1.0);
        break;
    }
    return fth__rate_seconds(r, FTH__RATE_REDUCE, wide ? 0.5 : 1.0);
}

static double program_seconds(const fth__rates *r, const fth_node *n, const fth__program *pr,
                              double elements)
{
    double each = 0.0;
    for (int i = 0; i < pr->n_instr; i++) each += instr_seconds(r, pr, &pr->instr[i]);
    if (pr->tail_dim >= 0) each += tail_seconds(r, pr);
    each += fth__rate_seconds(r, FTH__RATE_MOVE, far_operands(n, pr));
    return each * elements;
}

/* Lines that a program with views walks: each finds anew where its operands are. */
static double lines(const fth_call *call, const fth__program *pr, double elements)
{
    const fth_desc *out = &call->node->out[0];
    for (int k = out->n_axes - 1; pr->n_views > 0 && k >= 0; k--)
        if (out->size[k] > 1)
            return call->out[0].extent[k] > 0 ? elements / (double)call->out[0].extent[k] : 0.0;
    return 0.0;
}

static double fused_seconds(const fth__rates *r, const fth_call *call)
{
    const fth__program *pr = call->node->attr;
    double ops = (double)(pr->n_instr + (pr->tail_dim >= 0)), elements = 1.0;
    for (int i = 0; i < pr->n_made; i++)
        if (pr->made[i].kind != FTH__MADE_INDEX) ops += FTH__RANDOM_FLOPS;
    if (ops > 0.0)
        elements = call->node->op->flops(call) / ops;
    else
        for (int k = 0; k < call->node->out[0].n_axes; k++)
            elements *= (double)call->out[0].extent[k];
    return program_seconds(r, call->node, pr, elements) +
           1e-9 * r->of[FTH__RATE_STRETCH] * lines(call, pr, elements);
}

/* ---- products ---- */

/* Of the rate of large products: edges of tiles, and the copies BLAS makes. */
static double product_share(double m, double n, double k)
{
    return 1.0 / (1.0 + 6.0 / m + 6.0 / n + 12.0 / k);
}

static bool is_wide(fth_dtype t)
{
    return t == FTH_F64 || t == FTH_C128 || t == FTH_I64;
}

static fth__rate_id product_rate(fth_dtype t)
{
    return is_wide(t) ? FTH__RATE_PRODUCT_F64 : FTH__RATE_PRODUCT_F32;
}

static double extent_of(const fth_tile *t, int dim)
{
    return dim < 0 || t->extent[dim] < 1 ? 1.0 : (double)t->extent[dim];
}

static double dot_seconds(const fth__rates *r, const fth_call *call)
{
    const fth_node *n = call->node;
    const bool reduces = n->op == &fth__op_dot_reduce;
    const fth__dot_reduce_attr *both = n->attr;
    const fth__dot_attr *attr = reduces ? &both->dot : n->attr;
    const double flops = n->op->flops(call);
    double share = 0.5, more = 0.0;
    if (!reduces) {
        fth__dot_shape s;
        fth__dot_shape_get(attr, &n->in[0], &n->in[1], &n->out[0], -1, &s);
        share = product_share(extent_of(&call->in[0], s.m.a), extent_of(&call->in[1], s.n.b),
                              extent_of(&call->in[0], s.k.a));
    } else {
        double k = 1.0;
        for (int i = 0; i < attr->n_summed; i++)
            k *= (double)n->in[0].size[fth_desc_find(&n->in[0], attr->summed[i])];
        share = product_share(256.0, 256.0, k);
        more = program_seconds(r, n, &both->program,
                               flops / (2.0 * k + (double)both->program.n_instr + 1.0));
    }
    return fth__rate_seconds(r, product_rate(n->in[0].dtype), flops / share) + more;
}

static double solve_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    const fth_desc *d = &call->node->in[0];
    const double n = d->n_axes > 0 ? (double)d->size[d->n_axes - 1] : 1.0;
    return fth__rate_seconds(r, product_rate(d->dtype), flops * (1.0 + 150.0 / n));
}

/* ---- the rest: a rate for each operation ---- */

/* Longer lines than this are sorted by digits: as much for each byte of an element whatever the
 * length, and a table of counts for each line. Lines along another axis than the last are brought
 * and taken back. */
static double sort_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    enum { SHORT = 256, OF_A_BYTE = 8, OF_A_TABLE = 3300 };
    const fth_desc *in = &call->node->in[0];
    const double elements = fth__flops_in0(call), bytes = (double)fth_dtype_size(in->dtype);
    const int dim = fth_desc_find(in, ((const fth__axis_attr *)call->node->attr)->axis);
    const double n = dim >= 0 ? (double)call->in[0].extent[dim] : 1.0;
    if (n > SHORT)
        flops = bytes * (OF_A_BYTE * elements + OF_A_TABLE * elements / n);
    else if (is_wide(in->dtype))
        flops *= 1.5;
    const double moves = dim >= 0 && dim < in->n_axes - 1 ? 2.0 * elements : 0.0;
    return fth__rate_seconds(r, FTH__RATE_SORT, flops) +
           fth__rate_seconds(r, FTH__RATE_MOVE, moves);
}

/* Lines of many vectors, and what each line costs beside them. */
static double argreduce_seconds(const fth__rates *r, const fth_call *call)
{
    enum { OF_A_LINE = 15, OF_A_WIDE_LINE = 8, VECTORS = 3 };
    const double elements = fth__flops_in0(call),
                 item = (double)fth_dtype_size(call->node->in[0].dtype);
    double lines = 1.0;
    for (int d = 0; d < call->node->out[0].n_axes; d++) lines *= (double)call->out[0].extent[d];
    return fth__rate_seconds(r, FTH__RATE_REDUCE, elements * item / (4.0 * VECTORS)) +
           fth__rate_seconds(r, FTH__RATE_LOOP, (item >= 8.0 ? OF_A_WIDE_LINE : OF_A_LINE) * lines);
}

/* Small images stay in the nearest cache, and are read as they lie. */
static bool is_small_image(const fth_node *n)
{
    enum { SMALL_IMAGE = 4096 };
    double points = 1.0;
    fth__fft_axis axis[FTH__FFT_AXES];
    const int axes = ((const fth__fft_attr *)n->attr)->n;
    fth__fft_axes(n, axis);
    for (int i = 0; i < axes; i++) points *= (double)axis[i].points;
    return axes > 1 && points <= SMALL_IMAGE;
}

static double fft_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    const fth_node *n = call->node;
    const bool real = fth_dtype_is_real(n->in[0].dtype) || fth_dtype_is_real(n->out[0].dtype);
    const double times = (is_small_image(n) ? 0.65 : 1.0) * (real ? 0.5 : 1.0);
    return fth__rate_seconds(r, is_wide(n->in[0].dtype) ? FTH__RATE_FFT_F64 : FTH__RATE_FFT_F32,
                             times * flops);
}

/* Along another axis than the last a line is walked in strides. */
static double scan_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    const fth_desc *in = &call->node->in[0];
    const int dim = fth_desc_find(in, ((const fth__scan_attr *)call->node->attr)->axis);
    return fth__rate_seconds(r, FTH__RATE_LOOP, flops * (dim < in->n_axes - 1 ? 10.0 : 1.3));
}

/* Longer lines are selected from by digits. */
static double ranked_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    enum { SHORT = 256 };
    const fth_desc *in = &call->node->in[0];
    const int dim = fth_desc_find(in, ((const fth__ranked_attr *)call->node->attr)->axis);
    const double each = dim >= 0 && call->in[0].extent[dim] > SHORT ? 0.5 : 0.95;
    const double moves = dim >= 0 && dim < in->n_axes - 1 ? 2.0 * flops : 0.0;
    return fth__rate_seconds(r, FTH__RATE_LOOP, each * flops) +
           fth__rate_seconds(r, FTH__RATE_MOVE, moves);
}

typedef struct class_of {
    const fth_op *op;
    fth__rate_id f32, f64;
    double factor; /* units per flop of the operation */
} class_of;
static const class_of classes[] = {
    {&fth__op_conv2d, FTH__RATE_CONV_F32, FTH__RATE_PRODUCT_F64, 1.0},
    {&fth__op_conv2d_grad_input, FTH__RATE_CONV_F32, FTH__RATE_PRODUCT_F64, 1.0},
    {&fth__op_conv2d_grad_weight, FTH__RATE_CONV_F32, FTH__RATE_PRODUCT_F64, 1.0},
    {&fth__op_random, FTH__RATE_RANDOM, FTH__RATE_RANDOM, 1.0},
    {&fth__op_poisson, FTH__RATE_RANDOM, FTH__RATE_RANDOM, 1.0},
    {&fth__op_gather, FTH__RATE_MOVE, FTH__RATE_MOVE, 1.0},
    {&fth__op_slice, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_concat, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_stack, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_pad, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_window, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_index, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_expand, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_spread, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_scatter, FTH__RATE_LOOP, FTH__RATE_LOOP, 7.0},
    {&fth__op_collect_extreme, FTH__RATE_LOOP, FTH__RATE_LOOP, 2.3},
    {&fth__op_reduce, FTH__RATE_REDUCE, FTH__RATE_REDUCE, 1.0},
};

/* Operations of the engine; others have kernels of their own and count their flops as they like. */
static const fth_op *const engine[] = {
#define FTH_OP(name, ...) &fth__op_##name,
#define FTH_OP_INNER(name, ...) &fth__op_##name,
#include <fathom/ops.def>
};

static bool is_of_engine(const fth_op *op)
{
    for (size_t i = 0; i < sizeof engine / sizeof engine[0]; i++)
        if (engine[i] == op) return true;
    return false;
}

static double class_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    const fth_node *n = call->node;
    const bool wide = is_wide(n->n_in > 0 ? n->in[0].dtype : n->out[0].dtype);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (classes[i].op == n->op)
            return fth__rate_seconds(r, wide ? classes[i].f64 : classes[i].f32,
                                     flops * classes[i].factor);
    return fth__rate_seconds(
        r, is_of_engine(n->op) || !n->op->flops ? FTH__RATE_LOOP : FTH__RATE_CUSTOM, flops);
}

bool fth__unit_strides(const fth__unit *u)
{
    const fth_node *n = u->node;
    const fth__program *pr = n->attr;
    if (n->op == &fth__op_fft) return ((const fth__fft_attr *)n->attr)->n > 1 && !is_small_image(n);
    if (n->op != &fth__op_fused) return false;
    if (far_operands(n, pr) > 0) return true;
    int inner = -1;
    for (int k = 0; k < pr->n_axes; k++)
        if (pr->size[k] > 1) inner = k;
    return pr->tail_dim >= 0 && inner >= 0 && pr->tail_dim != inner &&
           pr->tail_red != FTH_RED_MIN && pr->tail_red != FTH_RED_MAX;
}

double fth__unit_seconds(const fth_plan *p, const fth__unit *u, const fth_call *call)
{
    const fth__rates *r = p->ctx->rates;
    const fth_op *op = u->node->op;
    if (op == &fth__op_fused) return fused_seconds(r, call);
    if (op == &fth__op_dot || op == &fth__op_dot_reduce) return dot_seconds(r, call);
    const double flops = fth__unit_flops(u, call);
    if (op == &fth__op_cholesky || op == &fth__op_solve) return solve_seconds(r, call, flops);
    if (op == &fth__op_fft) return fft_seconds(r, call, flops);
    if (op == &fth__op_argreduce) return argreduce_seconds(r, call);
    if (op == &fth__op_scan) return scan_seconds(r, call, flops);
    if (op == &fth__op_ranked) return ranked_seconds(r, call, flops);
    if (op == &fth__op_sort) return sort_seconds(r, call, flops);
    return class_seconds(r, call, flops);
}
