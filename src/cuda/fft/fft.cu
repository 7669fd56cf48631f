/* fft.cu - Fourier transforms: which passes an operation takes, over which lines.
 *
 * Each axis is a pass, in place from the second on, but for square images of a power of two, whose
 * two axes are transformed at once. Reals are read and written as they are: a real line is a
 * complex one without imaginary parts, and half a spectrum is completed while it is read. Nothing
 * but the half spectra of a real inverse over several axes is copied.
 */
#include "cuda/device/device.h"
#include "cuda/fft/fft.h"

extern "C" {
#include "ops/fft.h"
#include <fathom/ops.h>
}

static const fth__fft_attr *attr_of(const fth_node *node)
{
    return (const fth__fft_attr *)node->attr;
}

static bool is_wide(const fth_node *node)
{
    return fth_dtype_real_of(node->out[0].dtype) == FTH_F64;
}

static bool is_inverse(int kind)
{
    return kind == FTH_FFT_INVERSE || kind == FTH_FFT_REAL_INVERSE;
}

/* What results of all passes together are multiplied by. */
static double scale_of(const fth__fft_attr *attr, const fth__fft_axis *axis)
{
    double n = 1.0;
    for (int i = 0; i < attr->n; i++) n *= (double)axis[i].points;
    return is_inverse(attr->kind) ? 1.0 / n : 1.0;
}

/* ---- scratch ---- */

/* Are the last two axes transformed at once? By the whole operation, not by a piece. */
static bool is_images(const fth_node *node, const fth__fft_axis *axis)
{
    const fth__fft_attr *attr = attr_of(node);
    const int last = node->in[0].n_axes - 1;
    if (attr->n < 2 || (attr->kind != FTH_FFT_FORWARD && attr->kind != FTH_FFT_INVERSE))
        return false;
    const fth__fft_axis *y = &axis[attr->n - 2], *x = &axis[attr->n - 1];
    return (y->dim == last || x->dim == last) && fth__fft_images_fit(y->points, x->points);
}

static int64_t images_in(const fth_call *call, const fth__fft_axis *axis)
{
    const int axes = attr_of(call->node)->n;
    int64_t n = 1;
    for (int i = 0; i < call->node->in[0].n_axes; i++)
        if (i != axis[axes - 2].dim && i != axis[axes - 1].dim) n *= call->out[0].extent[i];
    return n;
}

/* Lines along `dim` of a tile; one at least, so that what they need is never nothing. */
static int64_t lines_in(const fth_desc *d, const fth_tile *t, int dim)
{
    int64_t n = 1;
    for (int i = 0; i < d->n_axes; i++)
        if (i != dim) n *= t->extent[i] > 0 ? t->extent[i] : 1;
    return n;
}

/* Half spectra that were transformed along all but the last axis: the real result has no room for
 * them. */
static uint64_t half_bytes(const fth_call *call)
{
    const fth_node *node = call->node;
    if (attr_of(node)->n == 1 || attr_of(node)->kind != FTH_FFT_REAL_INVERSE) return 0;
    const uint64_t bytes = (uint64_t)fth_cuda_count(&node->in[0], &call->in[0]) *
                           (uint64_t)fth_dtype_size(node->in[0].dtype);
    return (bytes + 255) & ~(uint64_t)255;
}

static uint64_t scratch(const fth_call *call)
{
    const fth_node *node = call->node;
    fth__fft_axis axis[FTH__FFT_AXES];
    fth__fft_axes(node, axis);
    const bool images = is_images(node, axis);
    const int alone = attr_of(node)->n - (images ? 2 : 0); /* axes that are passes of their own */
    uint64_t most = images ? fth__fft_images_bytes(axis[alone].points, images_in(call, axis)) : 0;
    for (int i = 0; i < alone; i++) {
        if (axis[i].points == 0 || fth__fft_lines_fit(axis[i].points)) continue;
        const int64_t in = lines_in(&node->in[0], &call->in[0], axis[i].dim),
                      out = lines_in(&node->out[0], &call->out[0], axis[i].dim);
        const uint64_t bytes =
            fth__fft_any_bytes(axis[i].points, is_wide(node), in > out ? in : out);
        if (bytes > most) most = bytes;
    }
    return most + half_bytes(call);
}

/* ---- passes ---- */

static fth__fft_pass pass_of(const fth_call *call, int kind, const fth__fft_axis *axis,
                             const fth_tile *from, const fth_tile *to, double scale)
{
    fth__fft_pass p = {};
    p.line = fth__walk_none();
    p.from = from->data;
    p.to = to->data;
    p.s_in = from->stride[axis->dim];
    p.s_out = to->stride[axis->dim];
    p.n = axis->points;
    p.n_out = axis->out;
    p.in = kind == FTH_FFT_REAL           ? FTH__FFT_REAL
           : kind == FTH_FFT_REAL_INVERSE ? FTH__FFT_HALF
                                          : FTH__FFT_COMPLEX;
    p.out = kind == FTH_FFT_REAL           ? FTH__FFT_HALF
            : kind == FTH_FFT_REAL_INVERSE ? FTH__FFT_REAL
                                           : FTH__FFT_COMPLEX;
    p.wide = is_wide(call->node);
    p.inverse = is_inverse(kind);
    p.near = axis->dim == call->node->in[0].n_axes - 1;
    p.scale = scale;
    for (int i = 0; i < call->node->in[0].n_axes; i++)
        if (i != axis->dim)
            fth__walk_add(&p.line, to->extent[i], from->stride[i], to->stride[i], 0);
    return p;
}

static void run_pass(const fth_call *call, const fth__fft_pass *p, void *room)
{
    if (p->n == 0)
        fth__fft_clear(p, fth_cuda_stream(call));
    else if (fth__fft_lines_fit(p->n))
        fth__fft_lines(p, fth_cuda_stream(call));
    else
        fth__fft_any(p, room, fth_cuda_stream(call));
}

/* The operand's tile as it lies in scratch, without gaps. */
static fth_tile dense(const fth_call *call, void *data)
{
    fth_tile t = call->in[0];
    int64_t stride = 1;
    for (int i = call->node->in[0].n_axes - 1; i >= 0; i--) {
        t.stride[i] = stride;
        stride *= t.extent[i];
    }
    t.data = data;
    return t;
}

/* Complex along all axes but the last, by way of scratch. */
static void run_real_inverse(const fth_call *call, const fth__fft_axis *axis, double scale)
{
    const int last = attr_of(call->node)->n - 1;
    const fth_tile half = dense(call, call->scratch), *from = &call->in[0];
    void *room = (char *)call->scratch + half_bytes(call);
    for (int i = 0; i < last; i++, from = &half) {
        const fth__fft_pass p = pass_of(call, FTH_FFT_INVERSE, &axis[i], from, &half, 1.0);
        run_pass(call, &p, room);
    }
    const fth__fft_pass x =
        pass_of(call, FTH_FFT_REAL_INVERSE, &axis[last], &half, &call->out[0], scale);
    run_pass(call, &x, room);
}

/* Axes `from` to 0, in place where others came before them. */
static void run_axes(const fth_call *call, const fth__fft_axis *axis, int from, double scale)
{
    const int last = attr_of(call->node)->n - 1;
    for (int i = from; i >= 0; i--) {
        const int kind = attr_of(call->node)->kind;
        const fth__fft_pass p =
            pass_of(call, i < last && kind == FTH_FFT_REAL ? FTH_FFT_FORWARD : kind, &axis[i],
                    i == last ? &call->in[0] : &call->out[0], &call->out[0], i == 0 ? scale : 1.0);
        run_pass(call, &p, call->scratch);
    }
}

static fth_status run_images(const fth_call *call, const fth__fft_axis *axis, double scale)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const bool turned = axis[0].dim > axis[1].dim; /* both orders are one transform */
    const int row = axis[turned ? 1 : 0].dim, col = axis[turned ? 0 : 1].dim;
    fth__fft_images p = {};
    p.image = fth__walk_none();
    p.from = in->data;
    p.to = out->data;
    p.row_in = in->stride[row], p.row_out = out->stride[row];
    p.col_in = in->stride[col], p.col_out = out->stride[col];
    p.n = axis[0].points;
    p.wide = is_wide(call->node);
    p.inverse = is_inverse(attr_of(call->node)->kind);
    p.scale = scale;
    for (int i = 0; i < call->node->in[0].n_axes; i++)
        if (i != row && i != col)
            fth__walk_add(&p.image, out->extent[i], in->stride[i], out->stride[i], 0);
    return fth__fft_images_run(&p, call->scratch, fth_cuda_stream(call), call->err);
}

static fth_status run(const fth_call *call)
{
    const fth__fft_attr *attr = attr_of(call->node);
    fth__fft_axis axis[FTH__FFT_AXES];
    fth__fft_axes(call->node, axis);
    const double scale = scale_of(attr, axis);
    if (is_images(call->node, axis)) {
        FTH_TRY(run_images(call, &axis[attr->n - 2], attr->n == 2 ? scale : 1.0));
        run_axes(call, axis, attr->n - 3, scale);
    } else if (attr->n > 1 && attr->kind == FTH_FFT_REAL_INVERSE)
        run_real_inverse(call, axis, scale);
    else
        run_axes(call, axis, attr->n - 1, scale);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

static bool supports(const fth_node *node)
{
    fth__fft_axis axis[FTH__FFT_AXES];
    fth__fft_axes(node, axis);
    for (int i = 0; i < attr_of(node)->n; i++)
        if (axis[i].points > INT32_MAX) return false;
    return true;
}

FTH_CUDA_KERNEL(fft) = {.op = "fft", .supports = supports, .scratch = scratch, .run = run};
