/* jacobian.cu - derivatives of an image on a device, and sums over them.
 *
 * A thread computes the derivatives of a pixel by the numbers of the placed scene with the loop of
 * jacobian_kernels.c, which here has one lane, and multiplies them on to the parameters. The normal
 * matrix and the gradient take rows in batches: derivatives of a batch are in the scratch, segments
 * of a row are summed and added row by row, so the result does not depend on chunks.
 */
#include "../render/device.h"

#define FTH_ISA_LEVEL 0 /* a vector is one number */
#define FTH_VECTOR_REAL 64
#include <fathom/vector.h>

namespace
{
#include "blocks.h"
#include "jacobian.h"

#define dot plain_dot
#define in_range plain_in_range
#define weights plain_weights
#include "../render/render_plain.c"
#undef dot
#undef in_range
#undef weights
#include "../../geometry/rotate.c"
#include "slope.c"
#define dot slope_dot
#define pixels slope_pixels
#define apply slope_apply
#define normal slope_normal
#include "jacobian_plain.c"
#undef dot
#undef pixels
#undef apply
#undef normal
#include "jacobian_kernels.c"

enum { THREADS = 64, SEGMENT = 128, PAIRS = BR_PARAMS * (BR_PARAMS + 1) / 2 + BR_PARAMS };
enum { BATCH = 1 << 16 }; /* pixels, about */

/* ---- pixels ---- */

/* Outputs for the pixels of a window: derivatives to `to`, values to `image`. */
struct target {
    window w;
    const double *weight; /* a pixel whose weight is 0 is skipped; NULL: none is */
    int64_t weight_stride[2];
    double *to; /* NULL: not wanted */
    int64_t stride[2], param_stride, first_param, params;
    double *image; /* NULL: not wanted */
    int64_t image_stride[2];
};

__global__ void make_lab(const device_view *top, const double *rotations,
                         const br_device_slopes *slopes, br_lab *lab)
{
    lab->view = top->view;
    lab->rotations = rotations;
    for (int i = 0; i < 6; i++) lab->metric[i] = slopes->metric[i];
    lab->fluence = slopes->fluence;
}

/* `running`: factors multiply the running sum, so the plain loop is used. */
template <bool running>
__global__ void __launch_bounds__(THREADS)
    slopes_of_pixels(const br_lab *lab, const br_device_slopes *slopes, target t)
{
    const int64_t n = t.w.rows * t.w.cols;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t y = i / t.w.cols, x = i % t.w.cols;
        double value = 0, omega = 0, adjoint[BR_ADJOINTS];
        br_row row = {.slow = t.w.slow + y, .fast = t.w.fast + x, .n = 1};
        row.value = &value;
        row.omega = &omega;
        for (int k = 0; k < BR_ADJOINTS; k++) adjoint[k] = 0;
        const bool on =
            is_rendered(lab->view.scene, t.w, y, x) &&
            !(t.weight && t.weight[y * t.weight_stride[0] + x * t.weight_stride[1]] == 0);
        if (running && on) slope_pixels(lab, &row, adjoint, 1);
        if (!running && on) pixels_of_row(lab, &row, adjoint, 1);
        if (t.image) t.image[y * t.image_stride[0] + x * t.image_stride[1]] = value;
        double *to = t.to + y * t.stride[0] + x * t.stride[1];
        for (int64_t p = 0; t.to && p < t.params; p++) {
            const double *m = slopes->slope[t.first_param + p];
            double sum = 0;
            for (int k = 0; k < BR_ADJOINTS; k++)
                if (m[k] != 0) sum = fma(adjoint[k], m[k], sum);
            to[p * t.param_stride] = sum;
        }
    }
}

/* ---- the scratch of a call ---- */

struct lab_map {
    uint64_t lab, slopes, batch, parts, end;
    int64_t rows; /* of a batch */
};

const br_scene *scene_of(const fth_call *call)
{
    return &((const br_op_attr *)call->node->attr)->scene;
}

int64_t segments_of(int64_t cols)
{
    return (cols + SEGMENT - 1) / SEGMENT;
}

/* `sums`: numbers that are summed; 0: no batches. */
lab_map lab_map_of(const fth_call *call, int64_t rows, int sums)
{
    const br_scene *s = scene_of(call);
    lab_map m = {};
    const int64_t cols = s->fast > 0 ? s->fast : 1, want = (BATCH + cols - 1) / cols;
    m.rows = want < rows ? want : rows;
    m.lab = scratch_map_of(s, true).end;
    m.slopes = m.lab + (sizeof(br_lab) + 127) / 128 * 128;
    m.batch = m.parts = m.end = m.slopes + (sizeof(br_device_slopes) + 127) / 128 * 128;
    if (sums == 0) return m;
    m.parts = m.batch + sizeof(double) * BR_PARAMS * (uint64_t)(m.rows * cols);
    m.end = m.parts + sizeof(double) * (uint64_t)(m.rows * segments_of(cols)) * (uint64_t)sums;
    return m;
}

bool is_running(const br_scene *s)
{
    return br_has(s, BR_QUIRK_RUNNING_SUM) &&
           (s->oversample_thick || s->oversample_polar || s->oversample_omega);
}

fth_status prepare_lab(const fth_call *call, const lab_map &m)
{
    const br_scene *s = scene_of(call);
    const br_device_inputs in = {BR_IN_PARAM, BR_IN_TABLE, BR_IN_SOURCE, BR_IN_MOSAIC, BR_IN_LATCH};
    char *at = (char *)call->scratch;
    br_device_slopes *slopes = (br_device_slopes *)(at + m.slopes);
    FTH_TRY(fth__bragg_view(call, s, &in, true));
    FTH_TRY(fth__bragg_slopes(call, s, BR_IN_PARAM, slopes));
    FTH_LAUNCH(make_lab, 1, 1, fth_cuda_stream(call), (const device_view *)at,
               (const double *)(at + scratch_map_of(s, true).rotations), slopes,
               (br_lab *)(at + m.lab));
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status make_slopes(const fth_call *call, const lab_map &m, const target &t)
{
    const char *at = (const char *)call->scratch;
    const br_lab *lab = (const br_lab *)(at + m.lab);
    const br_device_slopes *slopes = (const br_device_slopes *)(at + m.slopes);
    const unsigned blocks = blocks_for(t.w.rows * t.w.cols, THREADS);
    if (is_running(scene_of(call)))
        FTH_LAUNCH(slopes_of_pixels<true>, blocks, THREADS, fth_cuda_stream(call), lab, slopes, t);
    else
        FTH_LAUNCH(slopes_of_pixels<false>, blocks, THREADS, fth_cuda_stream(call), lab, slopes, t);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- all derivatives ---- */

uint64_t jacobian_scratch(const fth_call *call)
{
    return lab_map_of(call, 0, 0).end;
}

fth_status jacobian_run(const fth_call *call)
{
    const br_scene *s = scene_of(call);
    const fth_tile *out = &call->out[0], *image = &call->out[1];
    const lab_map m = lab_map_of(call, 0, 0);
    target t = {};
    t.w = window_of(out, s->masked ? &call->in[BR_IN_MASK] : NULL);
    t.to = (double *)out->data;
    t.param_stride = out->stride[2];
    t.first_param = out->origin[2];
    t.params = out->extent[2];
    t.image = (double *)image->data;
    for (int k = 0; k < 2; k++) {
        t.stride[k] = out->stride[k];
        t.image_stride[k] = image->stride[k];
    }
    if (t.w.rows == 0 || t.w.cols == 0) return FTH_OK;
    FTH_TRY(prepare_lab(call, m));
    return make_slopes(call, m, t);
}

/* ---- sums over them ---- */

/* A batch of rows: slopes [row col param], images beside it. */
struct batch {
    const double *slope;
    int64_t rows, cols, segments;
    const double *image[BR_BARS];
    int64_t stride[BR_BARS][2];
    double *part; /* [row segment sum] */
};

__device__ inline double image_at(const batch &b, int k, int64_t y, int64_t x)
{
    return b.image[k][y * b.stride[k][0] + x * b.stride[k][1]];
}

/* Sum number i of the normal equations: rows of the lower triangle, each with the gradient behind
 * it, as p and q; q > p is the gradient. */
__device__ inline void pair_of(int i, int *p, int *q)
{
    *p = 0;
    while (i >= *p + 2) i -= ++*p + 1;
    *q = i;
}

__global__ void segment_pairs(batch b)
{
    const int64_t n = b.rows * b.segments * PAIRS;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t place = i / PAIRS, y = place / b.segments,
                      first = place % b.segments * SEGMENT;
        int p, q;
        pair_of((int)(i % PAIRS), &p, &q);
        double sum = 0;
        for (int64_t x = first; x < first + SEGMENT && x < b.cols; x++) {
            const double *s = b.slope + (y * b.cols + x) * BR_PARAMS;
            sum = fma(image_at(b, 0, y, x) * s[p], q > p ? image_at(b, 1, y, x) : s[q], sum);
        }
        b.part[i] = sum;
    }
}

__global__ void segment_products(batch b)
{
    const int64_t n = b.rows * b.segments * BR_PARAMS;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t place = i / BR_PARAMS, y = place / b.segments, p = i % BR_PARAMS,
                      first = place % b.segments * SEGMENT;
        double sum = 0;
        for (int64_t x = first; x < first + SEGMENT && x < b.cols; x++)
            sum = fma(image_at(b, 0, y, x), b.slope[(y * b.cols + x) * BR_PARAMS + p], sum);
        b.part[i] = sum;
    }
}

/* Rows first, so that each thread has few. */
__global__ void row_totals(double *part, int64_t rows, int64_t segments, int sums)
{
    const int64_t n = rows * sums;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        double *from = part + i / sums * segments * sums + i % sums, sum = 0;
        for (int64_t k = 0; k < segments; k++) sum += from[k * sums];
        from[0] = sum;
    }
}

struct totals {
    double *normal, *gradient; /* NULL: not wanted */
    int64_t stride[2], gradient_stride;
};

__global__ void add_pairs(const double *part, int64_t rows, int64_t segments, totals t)
{
    const int i = (int)threadIdx.x;
    int p, q;
    pair_of(i, &p, &q);
    double *to = q > p ? t.gradient : t.normal;
    if (!to) return;
    to += q > p ? p * t.gradient_stride : p * t.stride[0] + q * t.stride[1];
    double sum = *to;
    for (int64_t y = 0; y < rows; y++) sum += part[y * segments * PAIRS + i];
    *to = sum;
    if (q < p) t.normal[q * t.stride[0] + p * t.stride[1]] = sum;
}

__global__ void add_products(const double *part, int64_t rows, int64_t segments, totals t)
{
    const int p = (int)threadIdx.x;
    double *to = t.gradient + p * t.gradient_stride, sum = *to;
    for (int64_t y = 0; y < rows; y++) sum += part[y * segments * BR_PARAMS + p];
    *to = sum;
}

/* ---- batches ---- */

int first_bar(const fth_node *node)
{
    return ((const br_op_attr *)node->attr)->scene.masked ? BR_IN_MASK + 1 : BR_IN_MASK;
}

uint64_t sums_scratch(const fth_call *call, int sums)
{
    return lab_map_of(call, call->in[first_bar(call->node)].extent[0], sums).end;
}

/* Derivatives of `rows` rows of the images from row y of the call on. */
fth_status make_batch(const fth_call *call, const lab_map &m, int64_t y, int64_t rows,
                      bool weighted, batch *b)
{
    const br_scene *s = scene_of(call);
    const int bar = first_bar(call->node);
    fth_tile tile = call->in[bar];
    tile.origin[0] += y;
    tile.extent[0] = rows;
    *b = batch{};
    b->rows = rows;
    b->cols = tile.extent[1];
    b->segments = segments_of(b->cols);
    b->part = (double *)((char *)call->scratch + m.parts);
    for (int k = 0; k < call->node->n_in - bar; k++) {
        const fth_tile *from = &call->in[bar + k];
        b->stride[k][0] = from->stride[0];
        b->stride[k][1] = from->stride[1];
        b->image[k] =
            (const double *)from->data + (tile.origin[0] - from->origin[0]) * from->stride[0];
    }
    target t = {};
    t.w = window_of(&tile, s->masked ? &call->in[BR_IN_MASK] : NULL);
    t.to = (double *)((char *)call->scratch + m.batch);
    b->slope = t.to;
    t.stride[0] = b->cols * BR_PARAMS;
    t.stride[1] = BR_PARAMS;
    t.param_stride = 1;
    t.params = BR_PARAMS;
    if (weighted) {
        t.weight = b->image[0];
        t.weight_stride[0] = b->stride[0][0];
        t.weight_stride[1] = b->stride[0][1];
    }
    return make_slopes(call, m, t);
}

__global__ void clear_sums(totals t)
{
    const int p = (int)threadIdx.x;
    for (int q = 0; t.normal && q < BR_PARAMS; q++) t.normal[p * t.stride[0] + q * t.stride[1]] = 0;
    if (t.gradient) t.gradient[p * t.gradient_stride] = 0;
}

fth_status sums_run(const fth_call *call, int sums, const totals &t)
{
    const fth_tile *bar = &call->in[first_bar(call->node)];
    const cudaStream_t stream = fth_cuda_stream(call);
    const lab_map m = lab_map_of(call, bar->extent[0], sums);
    const bool pairs = sums == PAIRS;
    if (call->first) {
        FTH_LAUNCH(clear_sums, 1, BR_PARAMS, stream, t);
        FTH_CUDA_LAUNCHED(call);
    }
    if (bar->extent[0] == 0 || bar->extent[1] == 0) return FTH_OK;
    FTH_TRY(prepare_lab(call, m));
    for (int64_t y = 0; y < bar->extent[0]; y += m.rows) {
        const int64_t left = bar->extent[0] - y, rows = left < m.rows ? left : m.rows;
        batch b;
        FTH_TRY(make_batch(call, m, y, rows, true, &b));
        const unsigned blocks = blocks_for(rows * b.segments * sums, 128);
        if (pairs)
            FTH_LAUNCH(segment_pairs, blocks, 128, stream, b);
        else
            FTH_LAUNCH(segment_products, blocks, 128, stream, b);
        FTH_CUDA_LAUNCHED(call);
        FTH_LAUNCH(row_totals, blocks_for(rows * sums, 128), 128, stream, b.part, rows, b.segments,
                   sums);
        FTH_CUDA_LAUNCHED(call);
        if (pairs)
            FTH_LAUNCH(add_pairs, 1, PAIRS, stream, b.part, rows, b.segments, t);
        else
            FTH_LAUNCH(add_products, 1, BR_PARAMS, stream, b.part, rows, b.segments, t);
        FTH_CUDA_LAUNCHED(call);
    }
    return FTH_OK;
}

uint64_t normal_scratch(const fth_call *call)
{
    return sums_scratch(call, PAIRS);
}

fth_status normal_run(const fth_call *call)
{
    totals t = {};
    t.normal = (double *)call->out[0].data;
    t.gradient = (double *)call->out[1].data;
    t.stride[0] = call->out[0].stride[0];
    t.stride[1] = call->out[0].stride[1];
    t.gradient_stride = call->out[1].stride[0];
    return sums_run(call, PAIRS, t);
}

uint64_t gradient_scratch(const fth_call *call)
{
    return sums_scratch(call, BR_PARAMS);
}

fth_status gradient_run(const fth_call *call)
{
    totals t = {};
    t.gradient = (double *)call->out[0].data;
    t.gradient_stride = call->out[0].stride[0];
    return sums_run(call, BR_PARAMS, t);
}
} // namespace

FTH_CUDA_KERNEL(bragg_jacobian) = {
    .op = "bragg_jacobian", .scratch = jacobian_scratch, .run = jacobian_run};
FTH_CUDA_KERNEL(bragg_normal) = {
    .op = "bragg_normal", .scratch = normal_scratch, .run = normal_run};
FTH_CUDA_KERNEL(bragg_param_gradient) = {
    .op = "bragg_param_gradient", .scratch = gradient_scratch, .run = gradient_run};
