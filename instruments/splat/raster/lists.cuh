/* lists.cuh - on a device: for every tile the Gaussians that touch it, by depth.
 *
 * Gaussians write their tiles in the order of their depth, each from the sum of those before it on,
 * and a stable sort by tile keeps that order. The place before the sort is the slot of a Gaussian
 * in a tile, so the slots of one lie side by side. How many there are only the device knows; where
 * there are more than there is room for, that is said, and all lists are empty. Part of
 * raster_*.cu.
 */
#ifndef SPLAT_RASTER_LISTS_CUH
#define SPLAT_RASTER_LISTS_CUH

#include "cells.cuh"
#include "device.cuh"

#include <fathom/cuda_sort.h>

namespace
{

enum { LIST_THREADS = 256 };
constexpr uint32_t NO_RANK = ~0u;

struct counts {
    uint64_t seen;   /* rows of the order that are */
    uint64_t needed; /* slots */
    uint64_t slots;  /* the same, or 0 where there is no room */
};

struct tile_lists {
    gs_raster rule;
    const real *splats, *view;
    const int32_t *order;
    int64_t splats_step, n;
    int gw, row, rows; /* tiles along a row; rows of tiles, all of them or some */
    int64_t tiles, room;
    counts *count;
    uint32_t *first;      /* [n]: the first slot of a Gaussian, by depth */
    uint32_t *start;      /* [tiles + 1] */
    uint32_t *owner;      /* [room]: the row of a slot */
    uint32_t *rank;       /* [n]: of a row by depth, NO_RANK where it is not seen; NULL: none */
    real *sum;            /* [room SUMS]: backward */
    const uint32_t *item; /* [room]: slots by tile and depth */
    void *sums_of_scan;
    fth_fault *fault;
};

__device__ inline const real *splat_at(const tile_lists &l, int64_t rank)
{
    return l.splats + (int64_t)l.order[rank] * l.splats_step;
}

/* Those that are seen come first: how many? One block; each thread looks at one of as many places.
 */
__global__ void find_seen(const tile_lists l)
{
    __shared__ int64_t low, high;
    if (threadIdx.x == 0) low = 0, high = l.n; /* all before low are, none from high on */
    __syncthreads();
    while (high > low) {
        const int64_t from = low, step = (high - low + LIST_THREADS - 1) / LIST_THREADS,
                      at = from + threadIdx.x * step, end = high;
        const bool yes = at < end && splat_at(l, at)[GS_TILES] > 0;
        const int64_t n =
            __syncthreads_count(yes); /* the first n of the places that were looked at */
        if (threadIdx.x == 0) {
            low = n ? from + (n - 1) * step + 1 : from;
            high = n ? (from + n * step < end ? from + n * step : end) : from;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) l.count->seen = (uint64_t)low;
}

/* The part of a box that lies in our rows of tiles. */
__device__ inline cells cells_here(const tile_lists &l, const real *s)
{
    box b = box_of(&l.rule, s);
    if (b.y0 < l.row) b.y0 = l.row;
    if (b.y1 > l.row + l.rows) b.y1 = l.row + l.rows;
    return cells_of(b);
}

/* Rows of an image that has more: how many tiles there does each Gaussian touch? */
__global__ void count_here(const tile_lists l, bool whole)
{
    const int64_t i = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x;
    if (i >= l.n || (uint64_t)i >= l.count->seen) return;
    const real *s = splat_at(l, i);
    uint32_t n = 0;
    if (whole) {
        n = (uint32_t)s[GS_TILES];
    } else {
        const cells c = cells_here(l, s);
        for (int at = 0; at < c.n; at++) n += cell_touches(l.rule, s, c, at);
    }
    l.first[i] = n;
}

/* Is there room? */
__global__ void judge(const tile_lists l)
{
    const uint64_t needed = l.count->needed;
    const bool enough = needed <= (uint64_t)l.room;
    l.count->slots = enough ? needed : 0;
    if (enough) return;
    const uint64_t each = (needed + (uint64_t)l.rows - 1) / (uint64_t)l.rows;
    fth_cuda_complain(l.fault, UINT64_MAX - 1 - each, (int64_t)each, 0); /* the largest is told */
}

/* By itself, because places anywhere are quick in an array that the cache holds: with the traffic
 * of fill beside them they took 0.3 ms of 10 M rows on an H200. */
__global__ void put_ranks(const tile_lists l)
{
    const int64_t i = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x;
    if ((uint64_t)i < l.count->seen && l.count->slots > 0)
        l.rank[__ldcs(l.order + i)] = (uint32_t)i;
}

/* What the tests of tiles need of the rows of a warp, by lanes that bring four rows at a time: a
 * lane for each row would ask for a line of memory with each number. */
__device__ inline void bring_boxes(const tile_lists &l, int32_t mine, bool there, real s[GS_SPLAT])
{
    enum { NUMBERS = 8, AT_ONCE = 32 / NUMBERS };
    __shared__ real staged[LIST_THREADS * (NUMBERS + 1)];
    const int lane = (int)threadIdx.x & 31, c = lane % NUMBERS,
              column = c <= GS_C ? c : GS_EX + c - (GS_C + 1);
    real *const raw = staged + (threadIdx.x - (unsigned)lane) * (NUMBERS + 1), got[NUMBERS];
    const unsigned wanted = __ballot_sync(~0u, there);
#pragma unroll
    for (int k = 0; k < NUMBERS; k++) {
        const int r = k * AT_ONCE + lane / NUMBERS;
        const int64_t row = __shfl_sync(~0u, mine, r);
        if (wanted >> r & 1) got[k] = l.splats[row * l.splats_step + column];
    }
#pragma unroll
    for (int k = 0; k < NUMBERS; k++) {
        const int r = k * AT_ONCE + lane / NUMBERS;
        if (wanted >> r & 1) raw[r * (NUMBERS + 1) + c] = got[k];
    }
    __syncwarp();
    for (int k = 0; k < NUMBERS && there; k++)
        s[k <= GS_C ? k : GS_EX + k - (GS_C + 1)] = raw[lane * (NUMBERS + 1) + k];
}

template <typename K> __global__ void fill(const tile_lists l, K *key)
{
    const int64_t i = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x;
    const unsigned lane = threadIdx.x & 31;
    const bool there = (uint64_t)i < l.count->seen && l.count->slots > 0;
    const int32_t mine = there ? l.order[i] : 0;
    uint32_t slot = there ? l.first[i] : 0;
    cells c = {0, 0, 0, 0};
    real s[GS_SPLAT];
    if (!__any_sync(~0u, there)) return;
    bring_boxes(l, mine, there, s);
    if (there) c = cells_here(l, s);
    if (c.n <= FEW_TILES)
        for (int at = 0; at < c.n; at++)
            if (cell_touches(l.rule, s, c, at)) {
                const int y = at / c.wide;
                key[slot] = (K)((c.y0 + y - l.row) * l.gw + c.x0 + at - y * c.wide);
                l.owner[slot++] = (uint32_t)mine;
            }
    for (unsigned many = __ballot_sync(~0u, c.n > FEW_TILES); many; many &= many - 1) {
        const int from = __ffs((int)many) - 1;
        const int32_t row = __shfl_sync(~0u, mine, from);
        uint32_t to = __shfl_sync(~0u, slot, from);
        const real *of = l.splats + row * l.splats_step;
        const cells b = cells_here(l, of);
        for (int first = 0; first < b.n; first += 32) {
            const int at = first + (int)lane;
            const bool yes = at < b.n && cell_touches(l.rule, of, b, at);
            const unsigned all = __ballot_sync(~0u, yes);
            const uint32_t place = to + (uint32_t)__popc(all & ((1u << lane) - 1));
            if (yes) {
                const int y = at / b.wide;
                key[place] = (K)((b.y0 + y - l.row) * l.gw + b.x0 + at - y * b.wide);
                l.owner[place] = (uint32_t)row;
            }
            to += (uint32_t)__popc(all);
        }
    }
}

/* Where each tile begins in the sorted keys. */
template <typename K> __global__ void find_starts(const tile_lists l, const K *key)
{
    const int64_t n = (int64_t)l.count->slots, step = (int64_t)gridDim.x * LIST_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x; i <= n; i += step) {
        const int64_t from = i ? (int64_t)key[i - 1] + 1 : 0,
                      to = i < n ? (int64_t)key[i] : l.tiles;
        for (int64_t t = from; t <= to; t++) l.start[t] = (uint32_t)i;
    }
}

/* ---- calls ---- */

bool narrow(int64_t tiles)
{
    return tiles <= 65536;
}

uint64_t sort_bytes(int64_t tiles, int64_t room)
{
    return narrow(tiles) ? fth_cuda_radix_bytes<uint16_t>(1, room)
                         : fth_cuda_radix_bytes<uint32_t>(1, room);
}

int64_t tile_rows(const gs_raster *a, int64_t pixels)
{
    return (pixels + a->tile - 1) / a->tile;
}

/* Slots of so many rows of tiles; they are numbers of 32 bits. */
int64_t room_of(const gs_raster *a, int64_t rows)
{
    return a->room > INT32_MAX / (rows ? rows : 1) ? INT32_MAX : a->room * rows;
}

uint64_t listed_bytes(const fth_call *call, bool back);

uint64_t lists_bytes(const fth_call *call, int64_t pixels, bool back)
{
    if (gs_is_listed(call->node)) return listed_bytes(call, back);
    const gs_raster *a = (const gs_raster *)call->node->attr;
    const int64_t rows = tile_rows(a, pixels), tiles = (a->width + a->tile - 1) / a->tile * rows,
                  room = room_of(a, rows), n = call->node->in[GS_BLEND_SPLATS].size[0];
    return 64 + (back ? 2 : 1) * fth_cuda_sort_room(n, 4) + fth_cuda_scan_bytes(n) +
           fth_cuda_sort_room(tiles + 1, 4) + fth_cuda_sort_room(room, 4) +
           sort_bytes(tiles, room) + (back ? fth_cuda_sort_room(room * SUMS, sizeof(real)) : 0);
}

/* `item` NULL: the sorted slots are where the sort leaves them. */
template <typename K>
void make_lists_of(tile_lists *l, char *scratch, bool whole, uint32_t *item, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)((l->n + LIST_THREADS - 1) / LIST_THREADS);
    fth_cuda_radix<K> r = fth_cuda_radix_in<K>(scratch, 1, l->room);
    int bits = 0;
    while (bits < 31 && (int64_t)1 << bits < l->tiles) bits++;
    r.count = &l->count->slots;
    if (item) r.value[(bits > 0 ? (bits + 7) / 8 : 1) % 2] = item;
    FTH_LAUNCH(find_seen, 1, LIST_THREADS, stream, *l);
    if (blocks) FTH_LAUNCH(count_here, blocks, LIST_THREADS, stream, *l, whole);
    fth_cuda_scan(l->first, l->first, l->n, (const uint64_t *)&l->count->seen, &l->count->needed,
                  l->sums_of_scan, stream);
    FTH_LAUNCH(judge, 1, 1, stream, *l);
    if (blocks && l->rank) {
        (void)cudaMemsetAsync(l->rank, 0xff, (size_t)l->n * sizeof *l->rank, stream);
        FTH_LAUNCH(put_ranks, blocks, LIST_THREADS, stream, *l);
    }
    if (blocks) FTH_LAUNCH(fill<K>, blocks, LIST_THREADS, stream, *l, r.key[0]);
    const int end = fth_cuda_radix_sort(&r, 0, bits, stream);
    FTH_LAUNCH(find_starts<K>, fth_cuda_blocks(l->room + 1, LIST_THREADS), LIST_THREADS, stream, *l,
               (const K *)r.key[end]);
    l->item = r.value[end];
}

void make_lists_in(tile_lists *l, char *scratch, uint32_t *item, cudaStream_t stream)
{
    const bool whole = l->row == 0 && l->rows == tile_rows(&l->rule, l->rule.height);
    if (narrow(l->tiles))
        make_lists_of<uint16_t>(l, scratch, whole, item, stream);
    else
        make_lists_of<uint32_t>(l, scratch, whole, item, stream);
}

/* Lists of the tiles of some rows of pixels, without memory. */
tile_lists lists_of(const fth_call *call, int64_t first, int64_t pixels)
{
    const gs_raster *a = (const gs_raster *)call->node->attr;
    tile_lists l = {};
    l.rule = *a;
    l.splats = (const real *)call->in[GS_BLEND_SPLATS].data;
    l.splats_step = call->in[GS_BLEND_SPLATS].stride[0];
    l.order = (const int32_t *)call->in[GS_BLEND_ORDER].data;
    l.n = call->node->in[GS_BLEND_SPLATS].size[0];
    l.gw = (int)((a->width + a->tile - 1) / a->tile);
    l.row = (int)(first / a->tile);
    l.rows = (int)tile_rows(a, pixels);
    l.tiles = (int64_t)l.gw * l.rows;
    l.room = room_of(a, l.rows);
    l.fault = call->fault;
    return l;
}

/* Queues all that makes the lists of the tiles of some rows of pixels. */
tile_lists make_lists(const fth_call *call, const fth_tile *image, bool back)
{
    tile_lists l = lists_of(call, image->origin[0], image->extent[0]);
    char *at = (char *)call->scratch;
    l.view = (const real *)call->in[GS_BLEND_VIEW].data;
    l.count = (counts *)at;
    at += 64;
    l.first = (uint32_t *)at;
    at += fth_cuda_sort_room(l.n, 4);
    if (back) {
        l.rank = (uint32_t *)at;
        at += fth_cuda_sort_room(l.n, 4);
    }
    l.sums_of_scan = at;
    at += fth_cuda_scan_bytes(l.n);
    l.start = (uint32_t *)at;
    at += fth_cuda_sort_room(l.tiles + 1, 4);
    l.owner = (uint32_t *)at;
    at += fth_cuda_sort_room(l.room, 4);
    if (back) l.sum = (real *)(at + sort_bytes(l.tiles, l.room));
    make_lists_in(&l, at, NULL, fth_cuda_stream(call));
    return l;
}

/* ---- lists of the whole image as a value ---- */

void place_lists(tile_lists *l, const gs_list_layout &of, void *value)
{
    uint32_t *const at = (uint32_t *)value;
    l->count = (counts *)at;
    l->first = at + of.first;
    l->start = at + of.start;
    l->owner = at + of.owner;
    l->item = at + of.item;
    l->rank = at + of.rank;
}

uint64_t lists_scratch(const fth_call *call)
{
    const int64_t n = call->node->in[GS_BLEND_SPLATS].size[0];
    const gs_list_layout of = gs_list_layout_of((const gs_raster *)call->node->attr, n);
    return fth_cuda_scan_bytes(n) + sort_bytes(of.tiles, of.room);
}

fth_status lists(const fth_call *call)
{
    tile_lists l = lists_of(call, 0, ((const gs_raster *)call->node->attr)->height);
    const gs_list_layout of = gs_list_layout_of(&l.rule, l.n);
    uint32_t *const at = (uint32_t *)call->out[0].data;
    place_lists(&l, of, at);
    l.sums_of_scan = call->scratch;
    make_lists_in(&l, (char *)call->scratch + fth_cuda_scan_bytes(l.n), at + of.item,
                  fth_cuda_stream(call));
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* The lists of some rows of pixels, which are there; with cotangents slots are those of the whole
 * image, 0 in other rows. */
tile_lists open_lists(const fth_call *call, const fth_tile *image, bool back)
{
    tile_lists l = lists_of(call, image->origin[0], image->extent[0]);
    const gs_list_layout of = gs_list_layout_of(&l.rule, l.n);
    place_lists(&l, of, call->in[call->node->n_in - 1].data);
    l.view = (const real *)call->in[GS_BLEND_VIEW].data;
    l.start += (int64_t)l.row * l.gw;
    if (!back) return l;
    l.sum = (real *)call->scratch;
    if (l.tiles < of.tiles)
        (void)cudaMemsetAsync(l.sum, 0, (size_t)of.room * SUMS * sizeof(real),
                              fth_cuda_stream(call));
    return l;
}

uint64_t listed_bytes(const fth_call *call, bool back)
{
    const gs_list_layout of = gs_list_layout_of((const gs_raster *)call->node->attr,
                                                call->node->in[GS_BLEND_SPLATS].size[0]);
    return back ? fth_cuda_sort_room(of.room * SUMS, sizeof(real)) : 0;
}

} // namespace

#endif
