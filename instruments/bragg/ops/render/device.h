/* device.h - the plain C code of the instrument, compiled for a device.
 *
 * Included by the .cu files. Functions marked BR_BOTH are compiled a second time, for the device,
 * from the same files as for the CPU: a view, a position or a lattice factor is written once. A
 * file that wants derivatives of the placed scene sets BR_SLOPES to BR_PARAMS before; the others
 * carry values only.
 *
 * Everything is in a namespace of the including file; files exchange only plain bytes.
 */
#ifndef BRAGG_OPS_DEVICE_H
#define BRAGG_OPS_DEVICE_H

#include <fathom/cuda.h>
#include <fathom/fathom.h>

#include <float.h>
#include <math.h>
#include <string.h>

#define BR_ON_DEVICE 1
#define BR_APART __noinline__
#ifndef BR_BOTH
#define BR_BOTH __attribute__((unused)) __host__ __device__

#endif
#ifndef BR_SLOPES
#define BR_SLOPES 0

#endif

namespace
{
#include "op.h"

/* The scene of a call, at the start of its scratch. `view` points into the rest. */
typedef struct device_view {
    br_scene scene;
    br_view view;
    double abc[3][3]; /* before rotations */
} device_view;

/* Cells of the fast loops are aligned for reads of sixteen bytes. */
enum { CELL_F64 = 10, CELL_F32 = 12 };

/* Where things are in the scratch, in bytes. */
typedef struct scratch_map {
    uint64_t angle, cells, wide, beams, rotations, end;
} scratch_map;

static inline scratch_map scratch_map_of(const br_scene *s, bool rotations)
{
    const uint64_t cells = (uint64_t)((s->phis + 1) * s->mosaics), line = 128;
    const uint64_t wide =
        s->precision == BR_F32 ? CELL_F32 * sizeof(float) : CELL_F64 * sizeof(double);
    scratch_map m = {};
    const uint64_t size[] = {sizeof(device_view),
                             (uint64_t)s->phis * sizeof(double),
                             cells * 9 * sizeof(double),
                             cells * wide,
                             (uint64_t)s->sources * sizeof(br_beam),
                             rotations ? cells * 9 * sizeof(double) : 0};
    uint64_t *const at[] = {&m.angle, &m.cells, &m.wide, &m.beams, &m.rotations, &m.end};
    uint64_t to = 0;
    for (int i = 0; i < 6; i++) *at[i] = to += (size[i] + line - 1) / line * line;
    return m;
}

/* Pixels of a tile [slow fast], and which of them are masked. */
typedef struct window {
    int64_t rows, cols, slow, fast;
    const uint16_t *mask; /* of the first pixel; NULL: none */
    int64_t mask_stride[2];
} window;

static inline window window_of(const fth_tile *tile, const fth_tile *mask)
{
    window w = {};
    w.rows = tile->extent[0];
    w.cols = tile->extent[1];
    w.slow = tile->origin[0];
    w.fast = tile->origin[1];
    if (!mask) return w;
    w.mask_stride[0] = mask->stride[0];
    w.mask_stride[1] = mask->stride[1];
    w.mask = (const uint16_t *)mask->data + (w.slow - mask->origin[0]) * mask->stride[0] +
             (w.fast - mask->origin[1]) * mask->stride[1];
    return w;
}

BR_BOTH inline bool is_rendered(const br_scene *s, const window &w, int64_t y, int64_t x)
{
    return br_inside(s, w.slow + y, w.fast + x) &&
           !(w.mask && !w.mask[y * w.mask_stride[0] + x * w.mask_stride[1]]);
}

/* Blocks with a thread for each of n. */
static inline unsigned blocks_for(int64_t n, int threads)
{
    const int64_t want = (n + threads - 1) / threads, most = 1 << 30;
    return (unsigned)(want < 1 ? 1 : want < most ? want : most);
}
#define THREAD_INDEX ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define THREAD_COUNT ((int64_t)gridDim.x * blockDim.x)
} // namespace

/* view.cu: puts a device_view and what it points to into call->scratch; `scene` is a br_scene, the
 * inputs are in the order of op.h; absent ones are -1. */
typedef struct br_device_inputs {
    int param, table, source, mosaic_rotation, latch;
} br_device_inputs;
extern "C" fth_status fth__bragg_view(const fth_call *call, const void *scene,
                                      const br_device_inputs *in, bool rotations);

/* lab.cu: the derivatives of the numbers of adjoint.h by the parameters, and what else derivatives
 * need. */
typedef struct br_device_slopes {
    double slope[19][31]; /* by parameter and number */
    double metric[6], fluence;
} br_device_slopes;
extern "C" fth_status fth__bragg_slopes(const fth_call *call, const void *scene, int param,
                                        br_device_slopes *out);

#endif
