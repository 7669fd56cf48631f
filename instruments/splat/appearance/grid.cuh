/* grid.cuh - the kernels of grid.h in one precision (`real`, FMA, inside a namespace).
 *
 * A block has a strip of rows between two rows and two columns of cells. It joins the rows of its
 * cells in shared memory first. Backward, a thread then has four numbers of one level in the four
 * columns around the strip, in registers, and passes through pixels, which lie in shared memory
 * with their weights; groups of threads share the pixels, and are added in their order.
 */
#include "cells.h"

enum {
    CORNERS = 4,
    SLICERS = 256,
    LEVELS = 8,                 /* that a group of threads has at once */
    PAIRS = LEVELS * GS_AFFINE, /* numbers of them */
    GROUP = LEVELS * 3,         /* threads, each with a row of a map */
    GROUPS = 16,
    BACKERS = GROUP * GROUPS, /* threads, and pixels at once */
    SLOPERS = SLOPE_THREADS,
    ADDERS = 1024
};

struct __align__(16) quad
{
    real e[4];
};

struct slice {
    const real *image, *grid, *bar;
    real *out, *grid_bar;
    int64_t image_i, image_j, bar_i, bar_j, out_i, out_j, grid_step[4], to_step[4];
    axis i, j;
    int luma, strips;
    real *part; /* [piece-row strip piece corner luma affine] */
};

/* The pixels of a block. */
struct strip {
    int y, x; /* pieces */
    int first_i, end_i, first_j, end_j;
};

__device__ inline strip strip_of(const slice &s)
{
    strip b;
    const int across = s.j.cells - 1, row = (int)blockIdx.x / across;
    b.x = (int)blockIdx.x % across;
    b.y = row / s.strips;
    b.first_i = first_of(&s.i, b.y) + row % s.strips * GS_STRIP;
    b.end_i = first_of(&s.i, b.y + 1);
    if (b.end_i > b.first_i + GS_STRIP) b.end_i = b.first_i + GS_STRIP;
    b.first_j = first_of(&s.j, b.x);
    b.end_j = first_of(&s.j, b.x + 1);
    return b;
}

/* Cells beside each row of the strip: [row column luma affine], two columns. */
__device__ inline void join_rows(const slice &s, const strip &b, real *table)
{
    const int cell = s.luma * GS_AFFINE, rows = b.end_i - b.first_i;
    for (int n = (int)threadIdx.x; n < rows * 2 * cell; n += (int)blockDim.x) {
        const int row = n / (2 * cell), x = n / cell % 2, l = n % cell / GS_AFFINE,
                  k = n % GS_AFFINE;
        const real *at = s.grid + k * s.grid_step[0] + l * s.grid_step[1] + b.y * s.grid_step[2] +
                         (b.x + x) * s.grid_step[3];
        table[n] = FMA(within(&s.i, b.y, b.first_i + row), at[s.grid_step[2]] - at[0], at[0]);
    }
}

__global__ void __launch_bounds__(SLICERS) slice_strips(const slice __grid_constant__ s)
{
    FTH_SHARED(real, table);
    const strip b = strip_of(s);
    const int cell = s.luma * GS_AFFINE, across = b.end_j - b.first_j,
              n = (b.end_i - b.first_i) * across;
    join_rows(s, b, table);
    __syncthreads();
    for (int q = (int)threadIdx.x; q < n; q += SLICERS) {
        const int row = q / across, i = b.first_i + row, j = b.first_j + q % across;
        const real *left = table + row * 2 * cell, *rgb = s.image + i * s.image_i + j * s.image_j,
                   colour[3] = {rgb[0], rgb[1], rgb[2]};
        real map[GS_AFFINE], slope[GS_AFFINE];
        pixel p;
        pixel_of(colour, s.luma, &p);
        map_of(left, left + cell, within(&s.j, b.x, j), &p, map, slope);
        real *to = s.out + i * s.out_i + j * s.out_j;
        for (int o = 0; o < 3; o++) to[o] = mapped(map + 4 * o, &p);
    }
}

/* ---- backward ---- */

/* Pixels as the groups read them. */
struct staged {
    quad product[BACKERS][3], corner[BACKERS];
    real up[BACKERS];
    int low[BACKERS], high[BACKERS];
};

__device__ inline void stage(const slice &s, const strip &b, int q, bool colours, const real *table,
                             staged *to)
{
    const int cell = s.luma * GS_AFFINE, width = b.end_j - b.first_j, t = (int)threadIdx.x,
              row = q / width, i = b.first_i + row, j = b.first_j + q % width;
    const real *rgb = s.image + i * s.image_i + j * s.image_j,
               *bar = s.bar + i * s.bar_i + j * s.bar_j, colour[3] = {rgb[0], rgb[1], rgb[2]},
               g[3] = {bar[0], bar[1], bar[2]}, across = within(&s.j, b.x, j),
               down = within(&s.i, b.y, i);
    pixel p;
    pixel_of(colour, s.luma, &p);
    for (int o = 0; o < 3; o++) {
        const quad product = {{g[o] * p.v[0], g[o] * p.v[1], g[o] * p.v[2], g[o]}};
        to->product[t][o] = product;
    }
    const quad corner = {
        {(1 - across) * (1 - down), across * (1 - down), (1 - across) * down, across * down}};
    to->corner[t] = corner;
    to->up[t] = p.up;
    to->low[t] = p.low;
    to->high[t] = p.high;
    if (!colours) return;
    const real *left = table + row * 2 * cell;
    real map[GS_AFFINE], slope[GS_AFFINE], out[3];
    map_of(left, left + cell, across, &p, map, slope);
    colour_back(map, slope, &p, g, s.luma, out);
    real *at = s.out + i * s.out_i + j * s.out_j;
    for (int c = 0; c < 3; c++) at[c] = out[c];
}

/* The sums of all groups, [group corner number], as those of the strip: a thread for each. */
__device__ inline void add_groups(const slice &s, const real *groups, int first)
{
    const int pair = (int)threadIdx.x % PAIRS, corner = (int)threadIdx.x / PAIRS,
              level = first + pair / GS_AFFINE;
    real all = 0;
    for (int h = 0; h < GROUPS; h++) all += groups[(h * CORNERS + corner) * PAIRS + pair];
    if (level < s.luma)
        s.part[(((int64_t)blockIdx.x * CORNERS + corner) * s.luma + level) * GS_AFFINE +
               pair % GS_AFFINE] = all;
}

__global__ void __launch_bounds__(BACKERS) back_strips(const slice __grid_constant__ s)
{
    FTH_SHARED(staged, shared);
    static_assert(sizeof(staged) >= GROUPS * CORNERS * PAIRS * sizeof(real), "sums lie there too");
    static_assert(CORNERS * PAIRS == BACKERS, "a thread for each sum");
    real *table = (real *)(shared + 1), *groups = (real *)shared;
    const strip b = strip_of(s);
    const int n = (b.end_i - b.first_i) * (b.end_j - b.first_j), group = (int)threadIdx.x / GROUP,
              o = (int)threadIdx.x % 3;
    if (s.out) join_rows(s, b, table);
    for (int first = 0; first < s.luma; first += LEVELS) {
        const int level = first + (int)threadIdx.x % GROUP / 3;
        real sum[CORNERS][4] = {};
        for (int from = 0; from < n; from += BACKERS) {
            const int here = n - from < BACKERS ? n - from : BACKERS;
            __syncthreads();
            if ((int)threadIdx.x < here)
                stage(s, b, from + (int)threadIdx.x, s.out && first == 0, table, shared);
            __syncthreads();
            for (int q = group; q < here; q += GROUPS) {
                const quad product = shared->product[q][o], corner = shared->corner[q];
                const real up = shared->up[q], weight = (level == shared->low[q] ? 1 - up : 0) +
                                                        (level == shared->high[q] ? up : 0);
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const real v = weight * product.e[k];
#pragma unroll
                    for (int c = 0; c < CORNERS; c++) sum[c][k] = FMA(v, corner.e[c], sum[c][k]);
                }
            }
        }
        __syncthreads();
        for (int c = 0; c < CORNERS; c++)
            for (int k = 0; k < 4; k++)
                groups[(group * CORNERS + c) * PAIRS + (level - first) * GS_AFFINE + 4 * o + k] =
                    sum[c][k];
        __syncthreads();
        add_groups(s, groups, first);
    }
}

/* A thread for each number of a cell: pieces above and below, their strips, pieces to the left and
 * to the right. */
__global__ void __launch_bounds__(SLOPERS) add_strips(const slice __grid_constant__ s)
{
    const int cell = s.luma * GS_AFFINE, columns = s.j.cells, rows = s.i.cells,
              n = (int)(blockIdx.x * SLOPERS + threadIdx.x), m = n % cell, x = n / cell % columns,
              y = n / cell / columns;
    if (y >= rows) return;
    double sum = 0;
    for (int py = y > 0 ? y - 1 : 0; py <= y && py < rows - 1; py++)
        for (int t = 0; t < s.strips; t++)
            for (int px = x > 0 ? x - 1 : 0; px <= x && px < columns - 1; px++) {
                const int64_t block = ((int64_t)py * s.strips + t) * (columns - 1) + px;
                sum += (double)s.part[(block * CORNERS + 2 * (y - py) + x - px) * cell + m];
            }
    s.grid_bar[m % GS_AFFINE * s.to_step[0] + m / GS_AFFINE * s.to_step[1] + y * s.to_step[2] +
               x * s.to_step[3]] = (real)sum;
}

/* ---- variation of all grids ---- */

struct slopes {
    const real *grids, *bar;
    const int64_t *at;
    real *gradient;
    int64_t grids_step[5], bar_step[4], to_step[5];
    int size[3], pieces; /* luma, rows, columns; blocks for each map of a grid */
    double by[3];
    double *sum; /* of blocks */
};

__global__ void __launch_bounds__(SLOPERS) slope_cells(const slopes __grid_constant__ s)
{
    __shared__ double warps[SLOPERS / 32];
    const int64_t plane = blockIdx.x / s.pieces, grid = plane / GS_AFFINE, k = plane % GS_AFFINE;
    const int m = (int)(blockIdx.x % s.pieces * SLOPERS + threadIdx.x),
              at[3] = {m / (s.size[2] * s.size[1]), m / s.size[2] % s.size[1], m % s.size[2]};
    double loss = 0;
    if (at[0] < s.size[0]) {
        const int64_t *step = s.grids_step + 2;
        const real *here = s.grids + grid * s.grids_step[0] + k * s.grids_step[1] +
                           at[0] * step[0] + at[1] * step[1] + at[2] * step[2];
        real sum = 0;
        for (int d = 0; d < 3; d++) {
            const real before = at[d] > 0 ? here[0] - here[-step[d]] : 0,
                       after = at[d] + 1 < s.size[d] ? here[step[d]] - here[0] : 0;
            sum = FMA((real)(2 * s.by[d]), before - after, sum);
            loss += s.by[d] * (double)after * (double)after;
        }
        if (grid == *s.at)
            sum += s.bar[k * s.bar_step[0] + at[0] * s.bar_step[1] + at[1] * s.bar_step[2] +
                         at[2] * s.bar_step[3]];
        if (s.gradient)
            s.gradient[grid * s.to_step[0] + k * s.to_step[1] + at[0] * s.to_step[2] +
                       at[1] * s.to_step[3] + at[2] * s.to_step[4]] = sum;
    }
    const double all = total_of(loss, warps);
    if (threadIdx.x == 0) s.sum[blockIdx.x] = all;
}

/* ---- calls ---- */

int64_t strips_in(const gs_slice_work &w)
{
    const axis rows = axis_of(w.height, w.rows);
    return (w.rows - 1) * strips_of(&rows) * (w.columns - 1);
}

uint64_t back_scratch(const fth_call *call)
{
    const gs_slice_work w = gs_slice_work_of(call);
    return (uint64_t)(strips_in(w) * CORNERS * w.luma * GS_AFFINE) * sizeof(real);
}

uint64_t shared_bytes(const fth_node *node, bool back)
{
    const uint64_t luma = (uint64_t)node->in[GS_SLICE_GRID].size[1];
    return GS_STRIP * 2 * luma * GS_AFFINE * sizeof(real) + (back ? sizeof(staged) : 0);
}

slice slice_of(const gs_slice_work &w)
{
    slice s = {};
    s.image = (const real *)w.image.data;
    s.image_i = w.image.stride[0];
    s.image_j = w.image.stride[1];
    s.bar = (const real *)w.bar.data;
    s.bar_i = w.bar.stride[0];
    s.bar_j = w.bar.stride[1];
    s.out = (real *)w.out.data;
    s.out_i = w.out.stride[0];
    s.out_j = w.out.stride[1];
    s.grid = (const real *)w.grid.data;
    s.grid_bar = (real *)w.grid_bar.data;
    for (int k = 0; k < 4; k++) {
        s.grid_step[k] = w.grid.stride[k];
        s.to_step[k] = w.grid_bar.stride[k];
    }
    s.i = axis_of(w.height, w.rows);
    s.j = axis_of(w.width, w.columns);
    s.luma = (int)w.luma;
    s.strips = strips_of(&s.i);
    s.part = (real *)w.scratch;
    return s;
}

void run_slice(const fth_call *call)
{
    const gs_slice_work w = gs_slice_work_of(call);
    const bool back = call->node->n_in == GS_SLICE_INPUTS;
    const unsigned blocks = (unsigned)strips_in(w);
    const slice s = slice_of(w);
    const cudaStream_t stream = fth_cuda_stream(call);
    const uint64_t bytes = shared_bytes(call->node, back);
    if (blocks == 0) return;
    if (!back) {
        FTH_LAUNCH_SHARED(slice_strips, blocks, SLICERS, bytes, stream, s);
        return;
    }
    FTH_LAUNCH_SHARED(back_strips, blocks, BACKERS, bytes, stream, s);
    const int64_t cells = w.rows * w.columns * w.luma * GS_AFFINE;
    if (s.grid_bar)
        FTH_LAUNCH(add_strips, (unsigned)((cells + SLOPERS - 1) / SLOPERS), SLOPERS, stream, s);
}

void run_slope(const fth_call *call)
{
    const gs_slope_work w = gs_slope_work_of(call);
    const int64_t plane = w.luma * w.rows * w.columns;
    const cudaStream_t stream = fth_cuda_stream(call);
    slopes s = {};
    s.grids = (const real *)w.grids.data;
    s.bar = (const real *)w.bar.data;
    s.at = (const int64_t *)call->in[GS_SLOPE_AT].data;
    s.gradient = (real *)w.gradient.data;
    for (int k = 0; k < 5; k++) {
        s.grids_step[k] = w.grids.stride[k];
        s.to_step[k] = w.gradient.stride[k];
        if (k < 4) s.bar_step[k] = w.bar.stride[k];
    }
    s.size[0] = (int)w.luma;
    s.size[1] = (int)w.rows;
    s.size[2] = (int)w.columns;
    s.pieces = (int)((plane + SLOPERS - 1) / SLOPERS);
    s.sum = w.scratch;
    gs_slope_weights(&w, s.by);
    const int64_t blocks = slope_blocks(call->node);
    if (blocks) FTH_LAUNCH(slope_cells, (unsigned)blocks, SLOPERS, stream, s);
    FTH_LAUNCH(add_slopes, 1, ADDERS, stream, (const double *)s.sum, blocks,
               (double *)call->out[GS_SLOPE_LOSS].data);
}
