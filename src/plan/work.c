/* work.c - about how many seconds the kernel of a unit computes; of those along lines work_lines.c.
 *
 * A kernel belongs to a class, whose rate the machine's table has (rates.def); within a class what
 * an element or a flop costs differs by factors that hardly depend on the machine: they stand here.
 */
#include "plan/work.h"
#include "cpu/fft/plan.h"
#include "cpu/fft/rows.h"
#include "cpu/winograd.h"
#include "graph/grid.h"
#include "ops/build.h"
#include "ops/conv2d.h"
#include "ops/dot_reduce.h"
#include "ops/fft.h"
#include "ops/fused.h"
#include "ops/ops.h"
#include "ops/random.h"
#include "plan/plan.h"
#include "plan/rates.h"

#include <math.h>

/* ---- elementwise programs ---- */

/* Instructions that are more than an addition: which rate they have, and how many of what that rate
 * counts they are. */
typedef struct heavy {
    int16_t op;
    fth__rate_id f32_rate, f64_rate;
    float f32, f64;
} heavy;
#define OF(name) FTH__RATE_##name##_F32, FTH__RATE_##name##_F64
static const heavy heavies[] = {
    {FTH_EW_DIV, OF(DIV), 1.0F, 1.0F},        {FTH_EW_RECIP, OF(DIV), 1.0F, 1.0F},
    {FTH_EW_SQRT, OF(SQRT), 1.0F, 1.0F},      {FTH_EW_RSQRT, OF(SQRT), 1.5F, 1.4F},
    {FTH_EW_MIN, OF(LIGHT), 3.0F, 4.0F},      {FTH_EW_MAX, OF(LIGHT), 3.0F, 4.0F},
    {FTH_EW_EXP, OF(EXP), 1.0F, 1.0F},        {FTH_EW_EXPM1, OF(EXP), 1.5F, 1.3F},
    {FTH_EW_LOG, OF(LOG), 1.0F, 1.0F},        {FTH_EW_LOG1P, OF(LOG), 1.2F, 1.3F},
    {FTH_EW_SIN, OF(SIN), 1.0F, 1.0F},        {FTH_EW_COS, OF(SIN), 1.0F, 1.0F},
    {FTH_EW_TANH, OF(TANH), 1.0F, 1.0F},      {FTH_EW_SIGMOID, OF(EXP), 1.3F, 1.3F},
    {FTH_EW_SOFTPLUS, OF(EXP), 2.5F, 2.2F},   {FTH_EW_ERF, OF(EXP), 3.0F, 2.5F},
    {FTH_EW_ATAN2, OF(SIN), 1.4F, 1.9F},      {FTH_EW_ARG, OF(SIN), 1.4F, 1.9F},
    {FTH_EW_POW, OF(POW), 1.0F, 1.0F},        {FTH_EW_LGAMMA, OF(LGAMMA), 1.0F, 1.0F},
    {FTH_EW_DIGAMMA, OF(LGAMMA), 1.0F, 1.0F}, {FTH_EW_TRIGAMMA, OF(LGAMMA), 1.0F, 1.0F},
    {FTH_EW_MOD, OF(EXP), 3.0F, 3.0F},        {FTH_EW_IDIV, OF(EXP), 3.0F, 3.0F},
};
#undef OF

/* One number: of a normal one also a logarithm, a root and a cosine. */
static double random_seconds(const fth__rates *r, int kind, fth_dtype t)
{
    const double times = kind != FTH_RANDOM_NORMAL ? 1.0 : fth__is_wide(t) ? 2.4 : 2.0;
    return fth__rate_seconds(r, FTH__RATE_RANDOM, times * FTH__RANDOM_FLOPS);
}

static double instr_seconds(const fth__rates *r, const fth__program *pr, const fth__instr *in)
{
    if (in->op == FTH__INSTR_MAKE)
        return pr->made[in->from].kind == FTH__MADE_INDEX
                   ? fth__rate_seconds(r, FTH__RATE_LIGHT_F64, 1.0)
                   : random_seconds(r, pr->made[in->from].kind, (fth_dtype)in->to);
    const bool wide = fth_dtype_size((fth_dtype)in->from) >= 8;
    const double times = fth_dtype_is_complex((fth_dtype)in->from) ? 3.0 : 1.0;
    double weight = 1.0;
    fth__rate_id id = wide ? FTH__RATE_LIGHT_F64 : FTH__RATE_LIGHT_F32;
    for (size_t i = 0; i < sizeof heavies / sizeof heavies[0]; i++) {
        if (heavies[i].op != in->op) continue;
        weight = (double)(wide ? heavies[i].f64 : heavies[i].f32);
        id = wide ? heavies[i].f64_rate : heavies[i].f32_rate;
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

/* More than a copy. */
static bool is_computed(const fth__program *pr)
{
    return pr->n_instr > 0 || pr->tail_dim >= 0;
}

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

/* Elements of a reduction by vectors, in additions of f32: those are widened to f64, two vectors
 * for one. */
static double reduced_units(const fth__program *pr, bool taps)
{
    const fth_dtype t = (fth_dtype)pr->reg_dtype[pr->out_reg[0]];
    const double bytes = (double)fth_dtype_size(t);
    if (pr->tail_red == FTH_RED_MIN || pr->tail_red == FTH_RED_MAX)
        return bytes == 1.0 ? 0.12 : taps ? 0.7 : 0.38;
    /* a sum of reals joins the lanes of each block of the grid */
    const double block = pr->tail_dim >= 0 ? (double)fth__grid_reduce(pr->size[pr->tail_dim]) : 1.0;
    const double joined = block > 1.0 ? 1.0 / block : 0.0;
    if (taps && fth_dtype_is_real(t)) return 1.35; /* strips of results, one tap after the other */
    if (t == FTH_F32) return 0.8 + 6.5 * joined;
    if (fth_dtype_is_real(t)) return 0.25 + 5.0 * joined;
    return bytes >= 8.0 ? 0.75 : bytes >= 2.0 ? 0.6 : 0.43;
}

/* Extremes of a program that computes first: the lanes of each block of the grid are joined one by
 * one, which takes longer than its elements. */
static double extreme_ops(int64_t n)
{
    const double block = (double)fth__grid_reduce(n);
    return 20.0 / (double)n + 0.55 + (block > 1.0 ? 17.0 / block : 0.0);
}

/* It reduces the taps of a window (taps_seconds). */
static bool has_taps(const fth__program *pr)
{
    bool taps = false;
    for (int i = 0; i < pr->n_views; i++) taps |= pr->view[i].tap >= 0;
    return taps;
}

/* Sums of reals by columns: what a superblock holds is added to what the ones before it do. */
static double superblocks_joined(const fth__program *pr, fth_dtype t)
{
    static const double once = 0.25;
    const double n = (double)pr->size[pr->tail_dim];
    return fth_dtype_is_real(t) && n > FTH__TAIL_SHORT ? once * fmin(FTH__SUPERBLOCKS, n) / n : 0.0;
}

/* A reduction adds along the line that it walks, or line by line. */
static double tail_seconds(const fth__rates *r, const fth__program *pr)
{
    enum { OF_A_LINE = 10, OF_AN_EXTREME = 75 }; /* of a line, in additions */
    const bool taps = has_taps(pr);
    const fth_dtype t = (fth_dtype)pr->reg_dtype[pr->out_reg[0]];
    const bool extreme = pr->tail_red == FTH_RED_MIN || pr->tail_red == FTH_RED_MAX;
    for (int k = pr->n_axes - 1; k >= 0; k--) {
        if (pr->size[k] < 2) continue;
        if (k == pr->tail_dim && extreme && pr->n_instr > 0 && !taps)
            return fth__rate_seconds(r, FTH__RATE_LOOP, extreme_ops(pr->size[k]));
        if (k == pr->tail_dim) {
            const double line = taps ? 0.0 : extreme ? OF_AN_EXTREME : OF_A_LINE;
            return fth__rate_seconds(r, extreme && !taps ? FTH__RATE_EXTREME : FTH__RATE_REDUCE,
                                     reduced_units(pr, taps) + line / (double)pr->size[k]);
        }
        /* A row of columns is added to another: short ones cost more to begin than to add. Narrow
         * numbers are widened to be added; the larger of two is found by whole vectors of them. */
        const double bytes = (double)fth_dtype_size(t),
                     ops = extreme                          ? pr->n_instr > 0 ? 6.0 : bytes / 4.0
                           : pr->n_instr > 0 || bytes < 4.0 ? 2.0
                           : bytes < 8.0                    ? 1.5
                                                            : 1.0;
        const double begun = taps ? 0.0 : (extreme ? 0.6 : 2.0) / (double)pr->size[k],
                     joined = taps || extreme ? 0.0 : superblocks_joined(pr, t);
        return fth__rate_seconds(r, FTH__RATE_LIGHT_F32, fth__is_wide(t) ? 1.5 * ops : ops) +
               fth__rate_seconds(r, FTH__RATE_LOOP, begun + joined);
    }
    return fth__rate_seconds(r, FTH__RATE_REDUCE, reduced_units(pr, taps));
}

/* Operands that are read every so many elements along the line that is walked. */
static int stepping_operands(const fth__program *pr)
{
    int inner = -1, n = 0;
    for (int k = 0; k < pr->n_axes; k++)
        if (pr->size[k] > 1) inner = k;
    for (int i = 0; i < pr->n_views; i++)
        n += pr->view[i].rows < 0 && pr->view[i].along == inner && inner >= 0 &&
             pr->view[i].mul != 1;
    return n;
}

static double program_seconds(const fth__rates *r, const fth_node *n, const fth__program *pr,
                              double elements)
{
    double each = 0.0;
    for (int i = 0; i < pr->n_instr; i++) each += instr_seconds(r, pr, &pr->instr[i]);
    if (pr->tail_dim >= 0) each += tail_seconds(r, pr);
    const double far = (is_computed(pr) ? 2.0 : 1.0) * far_operands(n, pr);
    each += fth__rate_seconds(r, FTH__RATE_MOVE, far + 0.8 * stepping_operands(pr));
    return each * elements;
}

/* A sum over the taps of a window is begun, rounded and stored for each strip of results. */
static double taps_seconds(const fth__rates *r, const fth_call *call, const fth__program *pr)
{
    const bool taps = pr->tail_dim >= 0 && has_taps(pr);
    const double results = fth__tile_elements(&call->node->out[0], &call->out[0]);
    return taps ? fth__rate_seconds(r, FTH__RATE_LOOP, 0.25 * results) : 0.0;
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

/* Operands that go around the end of the line that is walked are copied, in two pieces or more. */
static double around_seconds(const fth__rates *r, const fth_call *call, const fth__program *pr,
                             double elements)
{
    enum { OF_A_LINE = 15 };
    int inner = -1;
    double each = 0.0, n = 0.0;
    for (int k = 0; k < pr->n_axes; k++)
        if (pr->size[k] > 1) inner = k;
    for (int i = 0; i < pr->n_views; i++)
        if (pr->view[i].border == FTH_BORDER_WRAP && pr->view[i].along == inner) {
            each += 1.25 * (double)fth_dtype_size((fth_dtype)pr->reg_dtype[pr->view[i].in]);
            n += 1.0;
        }
    return fth__rate_seconds(r, FTH__RATE_LIGHT_F32, each * elements) +
           fth__rate_seconds(r, FTH__RATE_LOOP, OF_A_LINE * n * lines(call, pr, elements));
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
    return program_seconds(r, call->node, pr, elements) + taps_seconds(r, call, pr) +
           around_seconds(r, call, pr, elements) +
           1.2e-9 * r->of[FTH__RATE_STRETCH] * lines(call, pr, elements);
}

/* ---- products ---- */

/* Of the rate of large products: edges of tiles, and the copies BLAS makes. */
static double product_share(const fth__rates *r, double m, double n, double k)
{
    return 1.0 / (1.0 + (6.0 / m + 6.0 / n + 9.0 / k) / r->of[FTH__RATE_EDGE]);
}

static fth__rate_id product_rate(fth_dtype t)
{
    return fth__is_wide(t) ? FTH__RATE_PRODUCT_F64 : FTH__RATE_PRODUCT_F32;
}

static double extent_of(const fth_tile *t, int dim)
{
    return dim < 0 || t->extent[dim] < 1 ? 1.0 : (double)t->extent[dim];
}

/* A matrix and a vector (matvec.c): rows are summed by themselves, columns are added up. */
static double vector_seconds(const fth__rates *r, const fth_call *call, const fth__dot_shape *s)
{
    enum { OF_A_ROW = 4 };
    const bool rows = s->n.size == 1 ? s->a == FTH__DOT_ROWS : s->b == FTH__DOT_COLS;
    const double flops = call->node->op->flops(call),
                 k = fmax(1.0, extent_of(&call->in[0], s->k.a)),
                 pieces = ceil(k / (double)s->tile_k);
    return fth__rate_seconds(r, fth__is_wide(s->acc) ? FTH__RATE_LIGHT_F64 : FTH__RATE_LIGHT_F32,
                             0.5 * flops) +
           (rows ? fth__rate_seconds(r, FTH__RATE_LOOP, OF_A_ROW * pieces * flops / (2.0 * k))
                 : 0.0);
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
        if (s.m.size == 1 || s.n.size == 1) return vector_seconds(r, call, &s);
        double rows = extent_of(&call->in[0], s.m.a), columns = extent_of(&call->in[1], s.n.b);
        const double strip = (double)fth__dot_strip(&s);
        if (strip > 0.0) *(s.out == FTH__DOT_COLS ? &columns : &rows) = strip;
        share = product_share(r, rows, columns, extent_of(&call->in[0], s.k.a));
    } else {
        double k = 1.0;
        for (int i = 0; i < attr->n_summed; i++)
            k *= (double)n->in[0].size[fth_desc_find(&n->in[0], attr->summed[i])];
        share = product_share(r, 256.0, 256.0, k);
        more = program_seconds(r, n, &both->program,
                               flops / (2.0 * k + (double)both->program.n_instr + 1.0));
    }
    return fth__rate_seconds(r, product_rate(n->in[0].dtype), flops / share) + more;
}

/* Kernels take output channels by vectors of 16. Of f64, and of single pixels, they are products of
 * matrices, with windows written out as columns first. */
static double conv_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    enum { LANES = 16 };
    const fth_node *n = call->node;
    const fth__conv_attr *attr = n->attr;
    if (fth__is_wide(n->in[0].dtype))
        return fth__rate_seconds(r, FTH__RATE_PRODUCT_F64, 1.45 * flops);
    if (fth__conv_size(n, attr->ky) * fth__conv_size(n, attr->kx) == 1)
        return fth__rate_seconds(r, FTH__RATE_PRODUCT_F32, 1.25 * flops);
    const double out = (double)fth__conv_size(n, attr->out_chan),
                 full = out > 0.0 ? ceil(out / LANES) * LANES / out : 1.0;
    const bool tiles =
        attr->tiled && fth__winograd_pays(fth__conv_size(n, attr->chan), (int64_t)out);
    return fth__rate_seconds(r, tiles ? FTH__RATE_WINOGRAD : FTH__RATE_CONV_F32, full * flops);
}

static double solve_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    const fth_desc *d = &call->node->in[0];
    const double n = d->n_axes > 0 ? (double)d->size[d->n_axes - 1] : 1.0;
    return fth__rate_seconds(r,
                             fth__is_wide(d->dtype) ? FTH__RATE_FACTOR_F64 : FTH__RATE_FACTOR_F32,
                             flops * (1.0 + 150.0 / n));
}

/* ---- the rest: a rate for each operation ---- */

/* Of a transform of several axes; 0: of one. */
static double image_bytes(const fth_node *n)
{
    double bytes = fth__is_wide(n->in[0].dtype) ? 16.0 : 8.0;
    fth__fft_axis axis[FTH__FFT_AXES];
    const int axes = ((const fth__fft_attr *)n->attr)->n;
    fth__fft_axes(n, axis);
    for (int i = 0; i < axes; i++) bytes *= (double)axis[i].points;
    return axes > 1 ? bytes : 0.0;
}

/* Small images stay in the nearest cache, and are read as they lie. */
static bool is_small_image(const fth_node *n)
{
    enum { SMALL_IMAGE = 4096 };
    const double points = image_bytes(n) / (fth__is_wide(n->in[0].dtype) ? 16.0 : 8.0);
    return points > 0.0 && points <= SMALL_IMAGE;
}

/* Some axis has another length than a power of two. */
static bool is_odd(const fth_node *n)
{
    fth__fft_axis axis[FTH__FFT_AXES];
    bool odd = false;
    fth__fft_axes(n, axis);
    for (int i = 0; i < ((const fth__fft_attr *)n->attr)->n; i++)
        odd |= (axis[i].points & (axis[i].points - 1)) != 0;
    return odd;
}

/* Of what lines of 512 take. A line that the first cache does not hold goes through the second one
 * in every pass over it. Numbers of as many lines as a vector of f32 has lanes push each other out
 * of the first cache where lines are a page or more apart; lines of 64 have a kernel of their own.
 * Other lengths were measured with 360 points, of which that cache holds as many lines. */
static double line_share(const fth__rates *r, const fth_node *n)
{
    enum { FIRST_CACHE = 48 << 10, PAGE = 4096, OWN = 64, BESIDE = 128 };
    const bool wide = fth__is_wide(n->in[0].dtype);
    const int axes = ((const fth__fft_attr *)n->attr)->n, number = wide ? 16 : 8;
    fth__fft_axis axis[FTH__FFT_AXES];
    double longest = 0.0;
    fth__fft_axes(n, axis);
    for (int i = 0; i < axes; i++) longest = fmax(longest, (double)(axis[i].points * number));
    const bool within = 2.0 * longest < r->of[FTH__RATE_CORE_CACHE] * 1048576.0;
    if (longest > FIRST_CACHE) return within ? (wide ? 2.2 : 1.4) : wide ? 4.5 : 2.2;
    if (axes > 1) return 1.0;
    if (is_odd(n))
        return fth__fft_is_smooth(axis[0].points) && axis[0].points * BESIDE > FIRST_CACHE ? 1.2
                                                                                           : 1.0;
    return (axis[0].points == OWN ? 0.65 : 1.0) *
           (!wide && axis[0].points * number < PAGE ? 0.7 : 1.0);
}

/* Of the flops counted, where a prime factor beyond the radices makes a line a convolution: two
 * transforms of at least twice its length, and three products. */
static double chirp_share(const fth_node *n)
{
    const double more = fth__is_wide(n->in[0].dtype) ? 1.7 : 1.2;
    fth__fft_axis axis[FTH__FFT_AXES];
    double counted = 0.0, done = 0.0;
    fth__fft_axes(n, axis);
    for (int i = 0; i < ((const fth__fft_attr *)n->attr)->n; i++) {
        const double points = (double)axis[i].points, once = points * log2(fmax(2.0, points)),
                     longer = (double)fth__fft_steps_of(axis[i].points);
        counted += once;
        done += fth__fft_is_smooth(axis[i].points)
                    ? once
                    : more * (2.0 * longer * log2(longer) + 6.0 * longer);
    }
    return done / counted;
}

static fth__rate_id fft_rate(const fth_node *n, bool real)
{
    const bool wide = fth__is_wide(n->in[0].dtype);
    if (is_odd(n) && chirp_share(n) == 1.0)
        return wide ? FTH__RATE_FFT_ODD_F64 : FTH__RATE_FFT_ODD_F32;
    if (is_small_image(n))
        return wide ? FTH__RATE_IMAGE_F64 : real ? FTH__RATE_IMAGE_REAL : FTH__RATE_IMAGE_F32;
    return wide ? FTH__RATE_FFT_F64 : FTH__RATE_FFT_F32;
}

/* Columns of images whose rows lie apart by few places of the first cache push each other out; the
 * rate of f32 was taken from lines that do. */
static double column_share(const fth_node *n)
{
    enum { APART = 128 };
    fth__fft_axis axis[FTH__FFT_AXES];
    const int axes = ((const fth__fft_attr *)n->attr)->n;
    fth__fft_axes(n, axis);
    const bool meet = axes > 1 && axis[axes - 1].points % APART == 0;
    return meet && (fth__is_wide(n->in[0].dtype) || is_odd(n)) ? 1.4 : 1.0;
}

/* Roots of long lines, which every call makes anew: of f64 each is computed. */
static double roots_made(const fth_node *n)
{
    enum { OF_F32 = 4, OF_F64 = 12 };
    fth__fft_axis axis[FTH__FFT_AXES];
    double points = 0.0;
    fth__fft_axes(n, axis);
    for (int i = 0; i < ((const fth__fft_attr *)n->attr)->n; i++)
        if (axis[i].points > FTH__FFT_LANES) points += (double)fth__fft_steps_of(axis[i].points);
    return points * (fth__is_wide(n->in[0].dtype) ? OF_F64 : OF_F32);
}

static double fft_seconds(const fth__rates *r, const fth_call *call, double flops)
{
    const fth_node *n = call->node;
    const bool real = fth_dtype_is_real(n->in[0].dtype) || fth_dtype_is_real(n->out[0].dtype);
    const double times = (real ? 0.5 : 1.0) * line_share(r, n) * column_share(n) * chirp_share(n);
    return fth__rate_seconds(r, fft_rate(n, real), times * flops) +
           fth__rate_seconds(r, FTH__RATE_LOOP, roots_made(n));
}

typedef struct class_of {
    const fth_op *op;
    fth__rate_id f32, f64;
    double factor; /* units per flop of the operation */
} class_of;
static const class_of classes[] = {
    {&fth__op_poisson, FTH__RATE_RANDOM, FTH__RATE_RANDOM, 1.0},
    /* rows are copied: what that takes is the way of their bytes */
    {&fth__op_slice, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 0.1},
    {&fth__op_concat, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 0.1},
    {&fth__op_stack, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 0.1},
    {&fth__op_pad, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 0.1},
    {&fth__op_window, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 0.1},
    {&fth__op_index, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_expand, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
    {&fth__op_spread, FTH__RATE_LIGHT_F32, FTH__RATE_LIGHT_F32, 1.0},
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
    const bool wide = fth__is_wide(n->n_in > 0 ? n->in[0].dtype : n->out[0].dtype);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (classes[i].op == n->op)
            return fth__rate_seconds(r, wide ? classes[i].f64 : classes[i].f32,
                                     flops * classes[i].factor);
    if (is_of_engine(n->op) || !n->op->flops) return fth__rate_seconds(r, FTH__RATE_LOOP, flops);
    return fth__rate_seconds(r, FTH__RATE_CUSTOM,
                             n->op->flop_cost > 0.0 ? flops * n->op->flop_cost : flops);
}

/* Rows of a matrix times a vector are summed in pieces, row after row, where they are copied or
 * their sums are in superblocks. */
static bool in_pieces(const fth_node *n)
{
    fth__dot_shape s;
    fth__dot_shape_get(n->attr, &n->in[0], &n->in[1], &n->out[0], -1, &s);
    return (s.m.size == 1 || s.n.size == 1) && s.k.size > s.tile_k && !fth__dot_is_vector(&s);
}

/* How much slower memory is that is read across its lines: element by element, or some lines at a
 * time. */
static double across(const fth__rates *r)
{
    return r->of[FTH__RATE_READ] / r->of[FTH__RATE_ACROSS];
}
static double by_strips(const fth__rates *r)
{
    return r->of[FTH__RATE_READ] / r->of[FTH__RATE_STRIPS];
}

/* Elements that lie across memory, each on a line of its own: with so many the line is gone before
 * its next element is wanted. A copy alone is made by squares. */
enum { LINE = 64 };
static bool is_long_way(const fth__rates *r, int64_t elements)
{
    return 2.0 * LINE * (double)elements > r->of[FTH__RATE_CORE_CACHE] * 1048576.0;
}
static double by_lines(const fth_node *n)
{
    return LINE / (double)fth_dtype_size(n->in[0].dtype);
}

/* Columns are walked by strips, of reals twice where the larger is sought, for a NaN. */
static double program_strides(const fth__rates *r, const fth_node *n)
{
    enum { WHOLE = 1024 }; /* columns that are summed at a time */
    static const double of_extremes = 1.35;
    const fth__program *pr = n->attr;
    int inner = -1;
    for (int k = 0; k < pr->n_axes; k++)
        if (pr->size[k] > 1) inner = k;
    if (far_operands(n, pr) > 0)
        return is_computed(pr) && is_long_way(r, pr->size[inner]) ? by_lines(n) : across(r);
    if (pr->tail_dim < 0 || inner < 0 || pr->tail_dim == inner) return 1.0;
    const bool extreme = pr->tail_red == FTH_RED_MIN || pr->tail_red == FTH_RED_MAX;
    if (!extreme)
        return r->of[FTH__RATE_READ] /
               r->of[pr->size[inner] > WHOLE ? FTH__RATE_PARTS : FTH__RATE_COLUMNS];
    return fth_dtype_is_real((fth_dtype)pr->reg_dtype[pr->out_reg[0]]) ? of_extremes : 1.0;
}

/* Images are walked by blocks, volumes that the cache does not hold once more for each axis beyond
 * two. */
static double image_strides(const fth__rates *r, const fth_node *n)
{
    static const double by_blocks = 1.3;
    const int axes = ((const fth__fft_attr *)n->attr)->n;
    if (axes == 1 || is_small_image(n)) return 1.0;
    return by_blocks + (image_bytes(n) > r->of[FTH__RATE_CACHE] * 1048576.0 ? axes - 2.0 : 0.0);
}

double fth__unit_strides(const fth__rates *r, const fth__unit *u)
{
    const fth_node *n = u->node;
    if (n->op == &fth__op_fft) return image_strides(r, n);
    if (n->op == &fth__op_dot) return in_pieces(n) ? by_strips(r) : 1.0;
    if (n->op == &fth__op_argreduce)
        return fth_desc_find(&n->in[0], ((const fth__axis_attr *)n->attr)->axis) <
                       n->in[0].n_axes - 1
                   ? by_strips(r)
                   : 1.0;
    return n->op == &fth__op_fused ? program_strides(r, n) : 1.0;
}

double fth__unit_waits(const fth_plan *p, const fth__unit *u)
{
    const fth_op *op = u->node->op;
    const fth__rates *r = p->ctx->rates;
    /* operands are brought into lanes, packed, or copied beyond their ends before the work begins
     */
    if (op == &fth__op_sort || op == &fth__op_topk || op == &fth__op_ranked || op == &fth__op_dot)
        return 1.0;
    if (op == &fth__op_fused && has_taps(u->node->attr)) return 1.0;
    if (op == &fth__op_scan && !fth__has_scan_kernel(u->node->attr)) return 1.0;
    if (op != &fth__op_fft) return 1.0 / (1.0 + r->of[FTH__RATE_HIDDEN]);
    /* every axis but the last brings an image again that the cache does not hold */
    const double waits = 1.0 / (1.0 + r->of[FTH__RATE_HIDDEN_FFT]);
    return image_bytes(u->node) > r->of[FTH__RATE_CACHE] * 1048576.0 ? fmax(0.5, waits) : waits;
}

double fth__unit_seconds(const fth_plan *p, const fth__unit *u, const fth_call *call,
                         uint32_t wanted)
{
    const fth__rates *r = p->ctx->rates;
    const fth_node *n = u->node;
    const fth_op *op = n->op;
    double seconds;
    if (op == &fth__op_fused) return fused_seconds(r, call);
    if (op == &fth__op_dot || op == &fth__op_dot_reduce) return dot_seconds(r, call);
    const double flops = fth__unit_flops(u, call);
    if (op == &fth__op_cholesky || op == &fth__op_solve) return solve_seconds(r, call, flops);
    if (op == &fth__op_fft) return fft_seconds(r, call, flops);
    if (op == &fth__op_conv2d || op == &fth__op_conv2d_grad_input ||
        op == &fth__op_conv2d_grad_weight)
        return conv_seconds(r, call, flops);
    if (op == &fth__op_random)
        return flops / FTH__RANDOM_FLOPS *
               random_seconds(r, ((const fth__random_attr *)n->attr)->kind, n->out[0].dtype);
    const fth__plan_work w = {r, call, flops, wanted};
    if (fth__lines_seconds(&w, &seconds)) return seconds;
    return class_seconds(r, call, flops);
}
