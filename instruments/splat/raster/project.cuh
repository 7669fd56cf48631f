/* project.cuh - gs_project and its vjp on a device: a thread has a Gaussian.
 *
 * Coefficients of a row lie 180 bytes apart, so a warp brings those of the rows that are seen
 * together, and takes the cotangents of all of its rows away together, through shared memory.
 * A Gaussian in many tiles is tested by all lanes of its warp. Part of raster_*.cu.
 */
#include "cells.cuh"
#include "device.cuh"
#if GS_RAYS
#include "ray_lanes.h"
#endif

namespace
{

enum {
    PROJECT_THREADS = 128,
    REST = 3 * GS_COEFFICIENTS,
    PROJECT_RESIDENT = sizeof(real) == 4 && !GS_RAYS ? 7 : 1 /* blocks of a multiprocessor */
};

struct projection {
    gs_raster rule;
    const real *view, *in[GS_IN_PARTS], *rest, *splats, *bar;
    int64_t step[GS_IN_PARTS], rest_step, rest_k, splats_step, bar_step;
    int degree, coefficients; /* of the model */
    bool fours, fours_out;    /* coefficients, and splats, are read and written by four numbers */
    int64_t n;
    real *out[GS_IN_PARTS], *out_rest;
    int64_t out_step[GS_IN_PARTS], out_rest_step, out_rest_k;
};

__device__ inline int degree_of(const projection &p)
{
    const int wanted = (int)p.view[GS_VIEW_DEGREE];
    return wanted < p.degree ? wanted : p.degree;
}

/* How many tiles the row of each lane touches; all lanes come here, also those without one. */
__device__ inline int count_tiles(const gs_raster &rule, const real row[GS_SPLAT], bool there)
{
    const unsigned lane = threadIdx.x & 31;
    cells mine = {0, 0, 0, 0};
    int n = 0;
    if (there) mine = cells_of(box_of(&rule, row));
    if (mine.n <= FEW_TILES)
        for (int at = 0; at < mine.n; at++) n += cell_touches(rule, row, mine, at);
    for (unsigned many = __ballot_sync(~0u, mine.n > FEW_TILES); many; many &= many - 1) {
        const int from = __ffs((int)many) - 1;
        const int needed[] = {GS_U, GS_V, GS_A, GS_B, GS_C, GS_LIMIT};
        real s[GS_SPLAT];
        for (int k : needed) s[k] = __shfl_sync(~0u, row[k], from);
        const cells c = {__shfl_sync(~0u, mine.x0, from), __shfl_sync(~0u, mine.y0, from),
                         __shfl_sync(~0u, mine.wide, from), __shfl_sync(~0u, mine.n, from)};
        int sum = 0;
        for (int at = 0; at < c.n; at += 32) {
            const bool yes = at + (int)lane < c.n && cell_touches(rule, s, c, at + (int)lane);
            sum += __popc(__ballot_sync(~0u, yes));
        }
        if ((int)lane == from) n = sum;
    }
    return n;
}

/* Coefficients of a whole warp of rows that lie one behind the other: fours in which there are any
 * of a row that is wanted. */
__device__ inline void bring_fours(const projection &p, int64_t first, unsigned rows, real *to)
{
    enum { FOURS = 32 * REST / 4, TURNS = (FOURS + 31) / 32, TOGETHER = 6 };
    const float4 *from = (const float4 *)(p.rest + first * REST);
    const int lane = (int)threadIdx.x & 31;
#pragma unroll
    for (int begin = 0; begin < TURNS; begin += TOGETHER) {
        float4 got[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            const int e = lane + 32 * (begin + k);
            if (e < FOURS && (rows >> 4 * e / REST | rows >> (4 * e + 3) / REST) & 1)
                got[k] = __ldcs(from + e);
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            const int e = lane + 32 * (begin + k);
            if (e < FOURS && (rows >> 4 * e / REST | rows >> (4 * e + 3) / REST) & 1)
                ((float4 *)to)[e] = got[k];
        }
    }
    __syncwarp();
}

/* Coefficients of the rows of a warp that are wanted, to its part of shared memory; some rows at a
 * time, so that their loads are on their way together. */
__device__ inline void bring_rest(const projection &p, int64_t first, bool wanted, int n, real *to)
{
    enum { TOGETHER = 8, TWICE = (REST + 31) / 32 };
    const int lane = (int)threadIdx.x & 31;
    unsigned rows = __ballot_sync(~0u, wanted);
    if (p.fours && n == REST && first + 32 <= p.n) return bring_fours(p, first, rows, to);
    while (rows) {
        int row[TOGETHER];
        real got[TOGETHER][TWICE];
#pragma unroll
        for (int r = 0; r < TOGETHER; r++, rows &= rows - 1) row[r] = __ffs((int)rows) - 1;
#pragma unroll
        for (int r = 0; r < TOGETHER; r++)
#pragma unroll
            for (int e = 0; e < TWICE; e++) {
                const int k = lane + 32 * e;
                if (row[r] >= 0 && k < n)
                    got[r][e] = p.rest[(first + row[r]) * p.rest_step + k / 3 * p.rest_k + k % 3];
            }
#pragma unroll
        for (int r = 0; r < TOGETHER; r++)
#pragma unroll
            for (int e = 0; e < TWICE; e++)
                if (row[r] >= 0 && lane + 32 * e < n) to[row[r] * REST + lane + 32 * e] = got[r][e];
    }
    __syncwarp();
}

template <int DEGREE>
__device__ inline void colour_at(const projection &p, int64_t i, const real d[3], const real *rest,
                                 real *out)
{
    real basis[16];
    sh_basis(DEGREE, d[0], d[1], d[2], basis);
    colour_of(p.in[GS_IN_SH0] + i * p.step[GS_IN_SH0], rest, 3, basis, (DEGREE + 1) * (DEGREE + 1),
              out);
}

/* What a projection reads of a row. */
struct row_numbers {
    real mean[3], scaling[3], q[4], opacity;
};

__device__ inline void read_row(const projection &p, int64_t i, row_numbers *to)
{
    for (int k = 0; k < 3; k++) to->mean[k] = p.in[GS_IN_MEANS][i * p.step[GS_IN_MEANS] + k];
    for (int k = 0; k < 3; k++) to->scaling[k] = p.in[GS_IN_SCALING][i * p.step[GS_IN_SCALING] + k];
    for (int k = 0; k < 4; k++) to->q[k] = p.in[GS_IN_ROTATION][i * p.step[GS_IN_ROTATION] + k];
    to->opacity = p.in[GS_IN_OPACITY][i * p.step[GS_IN_OPACITY]];
}

/* One row as it is seen, but for its tiles and its colour. */
__device__ inline bool row_at(const projection &p, const row_numbers &of, real row[NUMBERS])
{
#if GS_RAYS
    ray_seen g;
    return ray_look(p.view, of.mean, of.scaling, of.q, of.opacity, &g) &&
           ray_row(&p.rule, p.view, &g, row);
#else
    seen g;
    if (!look(&p.rule, p.view, of.mean, of.scaling, of.q, of.opacity, &g)) return false;
    row_of(p.view, &g, row);
    return true;
#endif
}

__global__ void __launch_bounds__(PROJECT_THREADS, PROJECT_RESIDENT)
    project_rows(const projection __grid_constant__ p)
{
    __shared__ __align__(16) real coefficients[PROJECT_THREADS * REST];
    real *const staged = coefficients + threadIdx.x / 32 * (32 * REST);
    const int64_t i = (int64_t)blockIdx.x * PROJECT_THREADS + threadIdx.x,
                  first = i - (threadIdx.x & 31);
    const int degree = degree_of(p);
    real row[NUMBERS];
    row_numbers of = {};
    bool there = false;
    for (int k = 0; k < NUMBERS; k++) row[k] = 0;
    if (i < p.n) {
        read_row(p, i, &of);
        there = row_at(p, of, row);
    }
    const int tiles = count_tiles(p.rule, row, there);
    there = tiles > 0;
    row[GS_TILES] = (real)tiles;
    if (degree > 0) bring_rest(p, first, there, 3 * ((degree + 1) * (degree + 1) - 1), staged);
    if (there) {
        const real *rest = staged + (threadIdx.x & 31) * REST;
        real d[3];
        direction(p.view, of.mean, d);
        switch (degree) {
        case 0: colour_at<0>(p, i, d, rest, row + GS_RED); break;
        case 1: colour_at<1>(p, i, d, rest, row + GS_RED); break;
        case 2: colour_at<2>(p, i, d, rest, row + GS_RED); break;
        default: colour_at<3>(p, i, d, rest, row + GS_RED); break;
        }
    }
    __syncwarp();
    for (int k = 0; k < NUMBERS; k++) staged[(threadIdx.x & 31) * NUMBERS + k] = there ? row[k] : 0;
    __syncwarp();
    const int64_t rows = p.n - first < 32 ? p.n - first : 32;
    if (p.fours_out && rows == 32) {
        float4 *to = (float4 *)(p.out[0] + first * NUMBERS);
        for (int k = (int)threadIdx.x & 31; k < 32 * NUMBERS / 4; k += 32)
            to[k] = ((const float4 *)staged)[k];
        return;
    }
    for (int k = (int)threadIdx.x & 31; k < rows * NUMBERS; k += 32)
        p.out[0][(first + k / NUMBERS) * p.out_step[0] + k % NUMBERS] = staged[k];
}

/* ---- backward ---- */

/* Cotangents of coefficients are left where the coefficients were: each is read before. */
template <int DEGREE>
__device__ inline void colour_back(const projection &p, const real mean[3], const real *col,
                                   real *rest, real *to_mean, real *to_sh0)
{
    back_colour(DEGREE, p.view, mean, rest, 3, col, to_mean, to_sh0, rest, 3);
}

/* Cotangents of coefficients of a warp's rows; those from `n` on, and of rows that are not seen,
 * are 0. */
__device__ inline void take_rest(const projection &p, int64_t first, unsigned seen_rows, int n,
                                 const real *from)
{
    const unsigned lane = threadIdx.x & 31;
    __syncwarp();
    for (int row = 0; row < 32 && first + row < p.n; row++) {
        real *to = p.out_rest + (first + row) * p.out_rest_step;
        const bool is_seen = seen_rows >> row & 1;
        for (int k = (int)lane; k < p.coefficients; k += 32)
            to[k / 3 * p.out_rest_k + k % 3] = is_seen && k < n ? from[row * REST + k] : 0;
    }
}

__device__ inline void put_part(const projection &p, int part, int64_t i, const real *from, int n)
{
    if (!p.out[part]) return;
    for (int k = 0; k < n; k++) p.out[part][i * p.out_step[part] + k] = from[k];
}

/* Cotangents of a row that touches a tile; false: it is not seen. */
__device__ inline bool back_at(const projection &p, int64_t i, const row_numbers &of,
                               const real bar[NUMBERS], bars *to, real *logit)
{
#if GS_RAYS
    ray_seen g;
    if (!ray_look(p.view, of.mean, of.scaling, of.q, of.opacity, &g)) return false;
    ray_back_shape(p.view, of.q, &g, bar, to);
    *logit = ray_back_opacity(&g, p.splats[i * p.splats_step + GS_O], bar);
#else
    seen g;
    (void)i;
    if (!look(&p.rule, p.view, of.mean, of.scaling, of.q, of.opacity, &g)) return false;
    back_shape(p.view, of.q, &g, bar, to);
    *logit = back_opacity(&g, bar);
#endif
    return true;
}

__global__ void __launch_bounds__(PROJECT_THREADS)
    project_rows_back(const projection __grid_constant__ p)
{
    __shared__ __align__(16) real coefficients[PROJECT_THREADS * REST];
    real *const staged = coefficients + threadIdx.x / 32 * (32 * REST);
    const int64_t i = (int64_t)blockIdx.x * PROJECT_THREADS + threadIdx.x,
                  first = i - (threadIdx.x & 31);
    const int degree = degree_of(p), n = 3 * ((degree + 1) * (degree + 1) - 1);
    real sh0[3] = {0, 0, 0}, logit = 0;
    bars to = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0, 0}};
    bool there = i < p.n && p.splats[i * p.splats_step + GS_TILES] > 0;
    if (degree > 0) bring_rest(p, first, there, n, staged);
    if (there) {
        real bar[NUMBERS], *rest = staged + (threadIdx.x & 31) * REST;
        row_numbers of;
        for (int k = 0; k < (GS_RAYS ? (int)NUMBERS : GS_RED + 3); k++)
            bar[k] = p.bar[i * p.bar_step + k];
        read_row(p, i, &of);
        there = back_at(p, i, of, bar, &to, &logit);
        if (there) {
            switch (degree) {
            case 0: colour_back<0>(p, of.mean, bar + GS_RED, rest, to.mean, sh0); break;
            case 1: colour_back<1>(p, of.mean, bar + GS_RED, rest, to.mean, sh0); break;
            case 2: colour_back<2>(p, of.mean, bar + GS_RED, rest, to.mean, sh0); break;
            default: colour_back<3>(p, of.mean, bar + GS_RED, rest, to.mean, sh0); break;
            }
        }
    }
    const unsigned seen_rows = __ballot_sync(~0u, there);
    if (p.out_rest) take_rest(p, first, seen_rows, n, staged);
    if (i >= p.n) return;
    put_part(p, GS_IN_MEANS, i, to.mean, 3);
    put_part(p, GS_IN_SH0, i, sh0, 3);
    put_part(p, GS_IN_SCALING, i, to.scaling, 3);
    put_part(p, GS_IN_ROTATION, i, to.q, 4);
    put_part(p, GS_IN_OPACITY, i, &logit, 1);
}

/* ---- calls ---- */

/* First element of an input's tile that belongs to the first of out's along the first axis. */
const real *from_tile(const fth_tile *in, const fth_tile *out)
{
    return (const real *)in->data + (out->origin[0] - in->origin[0]) * in->stride[0];
}

/* Single numbers that begin at 16 bytes. */
bool has_fours(const real *at)
{
    return sizeof(real) == sizeof(float) && (uintptr_t)at % sizeof(float4) == 0;
}

projection projection_of(const fth_call *call, int inputs)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    projection p = {};
    p.rule = *(const gs_raster *)node->attr;
    p.view = (const real *)call->in[GS_PROJECT_VIEW].data;
    p.n = out->extent[0];
    for (int k = 0; k < GS_IN_PARTS; k++) {
        p.in[k] = from_tile(&call->in[k], out);
        p.step[k] = call->in[k].stride[0];
    }
    if (node->n_in <= inputs) return p;
    const fth_tile *rest = &call->in[inputs];
    p.rest = from_tile(rest, out);
    p.rest_step = rest->stride[0];
    p.rest_k = rest->stride[1];
    p.coefficients = (int)(3 * node->in[inputs].size[1]);
    p.fours = has_fours(p.rest) && p.rest_step == REST && p.rest_k == 3;
    while (p.degree < GS_DEGREES - 1 && 3 * gs_coefficients(p.degree) < p.coefficients) p.degree++;
    return p;
}

fth_status project(const fth_call *call)
{
    projection p = projection_of(call, GS_PROJECT_INPUTS);
    p.out[0] = (real *)call->out[0].data;
    p.out_step[0] = call->out[0].stride[0];
    p.fours_out = has_fours(p.out[0]) && p.out_step[0] == NUMBERS;
    if (p.n == 0) return FTH_OK;
    FTH_LAUNCH(project_rows, (unsigned)((p.n + PROJECT_THREADS - 1) / PROJECT_THREADS),
               PROJECT_THREADS, fth_cuda_stream(call), p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status project_back(const fth_call *call)
{
    projection p = projection_of(call, GS_BACK_INPUTS);
    p.splats = from_tile(&call->in[GS_BACK_SPLATS], &call->out[0]);
    p.splats_step = call->in[GS_BACK_SPLATS].stride[0];
    p.bar = from_tile(&call->in[GS_BACK_BAR], &call->out[0]);
    p.bar_step = call->in[GS_BACK_BAR].stride[0];
    for (int k = 0; k < GS_IN_PARTS; k++) {
        p.out[k] = (real *)call->out[k].data;
        p.out_step[k] = call->out[k].stride[0];
    }
    if (call->node->n_out > GS_IN_PARTS) {
        p.out_rest = (real *)call->out[GS_IN_PARTS].data;
        p.out_rest_step = call->out[GS_IN_PARTS].stride[0];
        p.out_rest_k = call->out[GS_IN_PARTS].stride[1];
    }
    if (p.n == 0) return FTH_OK;
    FTH_LAUNCH(project_rows_back, (unsigned)((p.n + PROJECT_THREADS - 1) / PROJECT_THREADS),
               PROJECT_THREADS, fth_cuda_stream(call), p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace
