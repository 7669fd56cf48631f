/* view.cu - the scene of a call, placed, in the scratch of a device.
 *
 * Parameters are in the device's memory, so the device does the placement: one thread for the
 * common part, then a thread for each cell and each beam.
 */
#include "device.h"

namespace
{
#include "../../geometry/crystal.c"
#include "../../geometry/detector.c"
#include "../../geometry/rotate.c"
#define dot plain_dot
#include "render_plain.c"
#undef dot
#include "view.c"

typedef struct places {
    device_view *top;
    double *angle, *cells, *rotations;
    void *wide;
    br_beam *beams;
} places;

__global__ void begin(br_scene scene, br_arrays a, const int64_t *latch, places p)
{
    p.top->scene = scene;
    if (latch) a.latch = *latch;
    br_view v;
    br_view_begin(&v, &p.top->scene, &a, p.top->abc, p.angle);
    v.cells = p.cells;
    v.beams = p.beams;
    p.top->view = v;
}

/* The rotation of a cell: its columns are rotated unit vectors. */
__device__ void rotation_of(const br_scene *s, double angle, const double *u, double *out)
{
    for (int c = 0; c < 3; c++) {
        double axis[3] = {0, 0, 0}, spun[3];
        axis[c] = 1;
        br_rotate_axis(axis, s->spindle, angle, spun);
        for (int i = 0; i < 3; i++)
            out[3 * i + c] = s->mosaic_given ? u[3 * i] * spun[0] + u[3 * i + 1] * spun[1] +
                                                   u[3 * i + 2] * spun[2]
                                             : spun[i];
    }
}

__device__ void one_cell(const places &p, const double *mosaic_rotation, int64_t i)
{
    const br_scene *s = &p.top->scene;
    const int64_t phi = i / s->mosaics, domain = i % s->mosaics;
    const double angle = phi < s->phis ? p.angle[phi] : 0;
    double spun[3][3], cell[9];
    br_view_spindle(s, p.top->abc, angle, spun);
    br_view_mosaic(s, spun, mosaic_rotation, domain, cell);
    for (int k = 0; k < 9; k++) {
        p.cells[9 * i + k] = cell[k];
        if (s->precision == BR_F32)
            ((float *)p.wide)[CELL_F32 * i + k] = (float)cell[k];
        else
            ((double *)p.wide)[CELL_F64 * i + k] = cell[k];
    }
    if (p.rotations) rotation_of(s, angle, mosaic_rotation + 9 * domain, p.rotations + 9 * i);
}

__global__ void fill(places p, const double *mosaic_rotation, int64_t cells, int64_t sources)
{
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x,
                  step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = first; i < cells; i += step) one_cell(p, mosaic_rotation, i);
    for (int64_t j = first; j < sources; j += step) br_view_beam(&p.top->view, j, &p.beams[j]);
}
} // namespace

extern "C" fth_status fth__bragg_view(const fth_call *call, const void *scene,
                                      const br_device_inputs *in, bool rotations)
{
    const br_scene *s = (const br_scene *)scene;
    const scratch_map m = scratch_map_of(s, rotations);
    char *at = (char *)call->scratch;
    const places p = {.top = (device_view *)at,
                      .angle = (double *)(at + m.angle),
                      .cells = (double *)(at + m.cells),
                      .rotations = rotations ? (double *)(at + m.rotations) : NULL,
                      .wide = at + m.wide,
                      .beams = (br_beam *)(at + m.beams)};
    br_arrays a = {};
    a.param = (const double *)call->in[in->param].data;
    a.source = (const double *)call->in[in->source].data;
    if (in->mosaic_rotation >= 0)
        a.mosaic_rotation = (const double *)call->in[in->mosaic_rotation].data;
    if (in->table >= 0) a.table = (const double *)call->in[in->table].data;
    for (int k = 0; in->table >= 0 && k < 3; k++) a.table_step[k] = call->in[in->table].stride[k];
    const int64_t cells = (s->phis + 1) * s->mosaics,
                  most = cells > s->sources ? cells : s->sources;
    FTH_LAUNCH(begin, 1, 1, fth_cuda_stream(call), *s, a,
               in->latch >= 0 ? (const int64_t *)call->in[in->latch].data : NULL, p);
    FTH_CUDA_LAUNCHED(call);
    FTH_LAUNCH(fill, fth_cuda_blocks(most, 64), 64, fth_cuda_stream(call), p, a.mosaic_rotation,
               cells, s->sources);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
