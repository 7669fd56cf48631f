/* conv2d.cu - a convolution, and its way back to the image, on the device.
 *
 * Rows of the product are output channels, columns pixels of the output, and the sum goes over
 * (ky, kx, channel). The weights are packed as the product reads them first: sums by rows, in whole
 * tiles with zeros behind the end. The rest is conv2d.cuh; conv2d_units.h where units are faster.
 */
#include "base/assert.h"
#include "cuda/conv2d/conv2d_units.h"

static constexpr int64_t MOST_PIXELS = 1 << 30; /* of one launch */

/* ---- weights ---- */

typedef struct weights {
    const char *from;
    char *to;
    int64_t m_step, chan_step, ky_step, kx_step; /* in the array they come from */
    int32_t m, k, m_room;
    int64_t count; /* elements to write */
    fth__div channels, kx;
} weights;

template <typename T> static __global__ void pack(const weights p)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step) {
        const int32_t m = (int32_t)(i % p.m_room), k = (int32_t)(i / p.m_room);
        const uint32_t window = fth__div_by((uint32_t)k, p.channels),
                       c = (uint32_t)k - window * p.channels.d, ky = fth__div_by(window, p.kx),
                       kx = window - ky * p.kx.d;
        const int64_t at = m * p.m_step + c * p.chan_step + ky * p.ky_step + kx * p.kx_step;
        ((T *)p.to)[i] = m < p.m && k < p.k ? ((const T *)p.from)[at] : T(0);
    }
}

/* ---- one call ---- */

typedef struct job {
    fth__conv_view from, w, to;
    bool back;
    int64_t m, k;           /* rows of the product, elements of a sum */
    int64_t m_room, k_room; /* in whole tiles */
    int rows;               /* of a tile */
} job;

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* False: there is nothing to write. */
static bool make_job(const fth_call *call, bool back, job *j)
{
    const fth_node *node = call->node;
    const fth__conv_attr *attr = (const fth__conv_attr *)node->attr;
    const fth__conv_what from = back ? FTH__CONV_RESULT : FTH__CONV_IMAGE,
                         to = back ? FTH__CONV_IMAGE : FTH__CONV_RESULT;
    const bool single = node->in[0].dtype == FTH_F32;
    *j = job{};
    j->from = fth__conv_view_of(attr, from, &node->in[0], &call->in[0]);
    j->w = fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->in[1], &call->in[1]);
    j->to = fth__conv_view_of(attr, to, &node->out[0], &call->out[0]);
    j->back = back;
    j->m = j->to.n[1];
    j->k = j->from.n[1] * j->w.n[2] * j->w.n[3];
    j->rows = single && j->m > 32 ? 64 : 32;
    j->m_room = up(j->m, j->rows);
    j->k_room = up(j->k, single ? fth__conv_slice<float> : fth__conv_slice<double>);
    return j->to.n[0] > 0 && j->to.n[1] > 0 && j->to.n[2] > 0 && j->to.n[3] > 0;
}

template <typename T> static fth_status pack_weights(const fth_call *call, const job *j)
{
    if (j->k == 0) return FTH_OK; /* sums over nothing read no weights */
    weights p = {};
    FTH_ASSERT(j->m_room >= j->m && j->k_room >= j->k && j->m_room * j->k_room <= INT32_MAX);
    p.from = j->w.data, p.to = (char *)call->scratch;
    p.m_step = j->w.s[j->back ? 1 : 0], p.chan_step = j->w.s[j->back ? 0 : 1];
    p.ky_step = j->w.s[2], p.kx_step = j->w.s[3];
    p.m = (int32_t)j->m, p.k = (int32_t)j->k, p.m_room = (int32_t)j->m_room;
    p.count = j->m_room * j->k_room;
    p.channels = fth__div_make(j->from.n[1]), p.kx = fth__div_make(j->w.n[3]);
    FTH_LAUNCH(pack<T>, fth_cuda_blocks(p.count, 256), 256, fth_cuda_stream(call), p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* Four neighbours along a row of the output in one store. */
static bool is_wide(const fth__conv_view *v)
{
    const int64_t steps = v->s[0] | v->s[1] | v->s[2] | v->n[3];
    return v->s[3] == 1 && steps % 4 == 0 && ((uintptr_t)v->data & 15u) == 0;
}

template <typename T, int MT, bool ALONG_K, bool DIVIDED, bool EVEN>
static void launch(const fth_call *call, const fth__conv_tiles &p)
{
    FTH_LAUNCH((fth__conv_multiply<T, MT, false, ALONG_K, DIVIDED, EVEN>),
               (unsigned)fth__conv_blocks(&p, 8 * MT), FTH__CONV_THREADS, fth_cuda_stream(call), p);
}

template <typename T, int MT> static void queue(const fth_call *call, const fth__conv_tiles &p)
{
    const bool along_k = fth__conv_by_channel(&p.from), divided = p.from.div > 1;
    const auto way =
        along_k   ? divided ? launch<T, MT, true, true, false> : launch<T, MT, true, false, false>
          : divided ? launch<T, MT, false, true, false>
        : fth__conv_even(&p.from, fth__conv_slice<T>) ? launch<T, MT, false, false, true>
                                                      : launch<T, MT, false, false, false>;
    way(call, p);
}

/* Images [b0, b0 + images) of the output. */
template <typename T>
static fth_status run_images(const fth_call *call, const job *j, int64_t b0, int64_t images)
{
    const int64_t size = sizeof(T);
    fth__conv_view from = j->from, to = j->to;
    from.data += b0 * from.s[0] * size;
    to.data += b0 * to.s[0] * size;
    fth__conv_tiles p = {};
    p.from = fth__conv_gather_of(call->node, &from, j->back, to.origin[2]);
    p.pixels = fth__conv_pixels_of(&to);
    p.left = (const char *)call->scratch, p.left_m = j->m_room;
    p.out = to.data;
    p.m = (int32_t)j->m, p.k = (int32_t)j->k;
    p.n = (int32_t)(images * to.n[2] * to.n[3]);
    FTH_ASSERT(images * to.n[2] * to.n[3] <= MOST_PIXELS);
    p.wide = is_wide(&to);
    if (sizeof(T) == 4 && j->rows == 64)
        queue<T, fth__conv_most_m<T>>(call, p);
    else
        queue<T, 4>(call, p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

template <typename T> static fth_status run_as(const fth_call *call, const job *j)
{
    const int64_t most = MOST_PIXELS / (j->to.n[2] * j->to.n[3]);
    FTH_TRY(pack_weights<T>(call, j));
    FTH_ASSERT(most > 0); /* supports() refuses larger images */
    for (int64_t b = 0; b < j->to.n[0]; b += most) {
        const int64_t left = j->to.n[0] - b;
        FTH_TRY(run_images<T>(call, j, b, left < most ? left : most));
    }
    return FTH_OK;
}

static fth_status run_job(const fth_call *call, bool back)
{
    job j;
    if (!make_job(call, back, &j)) return FTH_OK;
    if (fth__conv_units_takes(call->node, back))
        return fth__conv_units_run(call, &j.from, &j.w, &j.to, back);
    return call->node->in[0].dtype == FTH_F32 ? run_as<float>(call, &j) : run_as<double>(call, &j);
}

static uint64_t scratch_of(const fth_call *call, bool back)
{
    job j;
    if (!make_job(call, back, &j)) return 0;
    if (fth__conv_units_takes(call->node, back))
        return fth__conv_units_scratch(call->node, &j.from, &j.w, &j.to, back);
    return (uint64_t)(j.m_room * j.k_room * fth_dtype_size(call->node->in[0].dtype));
}

static fth_status run_forward(const fth_call *call)
{
    return run_job(call, false);
}
static fth_status run_input(const fth_call *call)
{
    return run_job(call, true);
}
static uint64_t scratch_forward(const fth_call *call)
{
    return scratch_of(call, false);
}
static uint64_t scratch_input(const fth_call *call)
{
    return scratch_of(call, true);
}

FTH_CUDA_KERNEL(conv2d) = {.op = "conv2d",
                           .supports = fth__conv_countable,
                           .scratch = scratch_forward,
                           .run = run_forward};
FTH_CUDA_KERNEL(conv2d_grad_input) = {.op = "conv2d_grad_input",
                                      .supports = fth__conv_countable,
                                      .scratch = scratch_input,
                                      .run = run_input};
