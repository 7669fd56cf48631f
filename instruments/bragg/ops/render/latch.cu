/* latch.cu - the first sample of each row that cannot be interpolated, on a device.
 *
 * Pixels search in parallel; the smallest index wins. A pixel whose samples all come after the best
 * so far is skipped.
 */
#include "device.h"

namespace
{
#define dot plain_dot
#include "render_plain.c"
#undef dot
#include "../../geometry/rotate.c"

enum { THREADS = 128 };

__global__ void start(int64_t *to, int64_t n, int64_t stride)
{
    const int64_t i = THREAD_INDEX;
    if (i < n) to[i * stride] = INT64_MAX;
}

__global__ void check(device_view *top, int *inside)
{
    *inside = br_always_inside(&top->view);
}

__global__ void __launch_bounds__(THREADS)
    look(const device_view *top, const int *inside, window w, long long *to, int64_t stride)
{
    const br_view *v = &top->view;
    const br_scene *s = v->scene;
    const int64_t n = w.rows * w.cols, each = s->layers * s->oversample * s->oversample *
                                              s->sources * s->phis * s->mosaics;
    if (*inside) return;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t y = i / w.cols, x = i % w.cols;
        const br_row row = {.slow = w.slow + y, .fast = w.fast + x, .n = 1};
        long long *first = to + y * stride;
        if (!is_rendered(s, w, y, x)) continue;
        if (*(volatile long long *)first <= (row.slow * s->fast + row.fast) * each) continue;
        const int64_t found = latch_of_pixel(v, &row, 0);
        if (found != INT64_MAX) atomicMin(first, (long long)found);
    }
}

const br_scene *scene_of(const fth_call *call)
{
    return &((const br_op_attr *)call->node->attr)->scene;
}

uint64_t scratch(const fth_call *call)
{
    return scratch_map_of(scene_of(call), false).end + sizeof(int);
}

fth_status run(const fth_call *call)
{
    const br_scene *s = scene_of(call);
    const br_device_inputs in = {BR_IN_PARAM, BR_IN_TABLE, BR_IN_SOURCE, BR_IN_MOSAIC, BR_IN_LATCH};
    const fth_tile *out = &call->out[0];
    const cudaStream_t stream = fth_cuda_stream(call);
    fth_tile image = *out; /* whole rows */
    image.origin[1] = 0;
    image.extent[1] = s->fast;
    const window w = window_of(&image, s->masked ? &call->in[BR_IN_MASK] : NULL);
    device_view *top = (device_view *)call->scratch;
    int *inside = (int *)((char *)call->scratch + scratch_map_of(s, false).end);
    if (w.rows == 0) return FTH_OK;
    FTH_TRY(fth__bragg_view(call, s, &in, false));
    FTH_LAUNCH(start, blocks_for(w.rows, 64), 64, stream, (int64_t *)out->data, w.rows,
               out->stride[0]);
    FTH_CUDA_LAUNCHED(call);
    FTH_LAUNCH(check, 1, 1, stream, top, inside);
    FTH_CUDA_LAUNCHED(call);
    FTH_LAUNCH(look, blocks_for(w.rows * w.cols, THREADS), THREADS, stream, top, inside, w,
               (long long *)out->data, out->stride[0]);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(bragg_latch) = {.op = "bragg_latch", .scratch = scratch, .run = run};
