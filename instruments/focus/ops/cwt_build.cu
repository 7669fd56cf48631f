/* cwt_build.cu - votes, and levels from those below, on a device: a thread for each place. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "cwt.h"
#include "cwt_taps.h"
#include "device.cuh"

/* ---- votes ---- */

struct poll {
    fo_walk in, first, out;
    fo_places places;
    int64_t count, rows, consistency;
    uint32_t none;
};

__device__ uint32_t name_at(const fo_walk &w, const char *row, int64_t x)
{
    const char *at = row + x * w.step[FO_X];
    return w.dtype == FTH_U8 ? *(const uint8_t *)at : *(const uint16_t *)at;
}

/* What band b says at a place near (y, x), after the bands have spoken to each other. */
__device__ uint32_t voice(const poll &p, int64_t s, int64_t b, int64_t y, int64_t x)
{
    y = fo_border_at(y, p.rows, FO_BORDER_REPLICATE);
    x = fo_border_at(x, p.in.n[FO_X], FO_BORDER_REPLICATE);
    uint32_t v[FO_CWT_BANDS];
    const int64_t bands = p.consistency >= 1 ? p.in.n[FO_B] : 1;
    for (int64_t k = 0; k < bands; k++)
        v[k] = name_at(p.in, fo_walk_row(&p.in, s, 0, (b + k) % p.in.n[FO_B], 0, y), x);
    return bands == FO_CWT_BANDS && v[1] == v[2] && v[1] != p.none ? v[1] : v[0];
}

__device__ uint32_t majority(const poll &p, int64_t s, int64_t b, int64_t y, int64_t x)
{
    uint32_t v[9], most = 0;
    for (int k = 0; k < 9; k++) v[k] = voice(p, s, b, y + k / 3 - 1, x + k % 3 - 1);
    for (int k = 0; k < 9; k++) {
        uint32_t votes = 0;
        for (int m = 0; m < 9; m++) votes += v[m] == v[k];
        const uint32_t key = fo_cwt_vote_of(votes, v[k], p.none);
        most = key > most ? key : most;
    }
    return most ? p.none - (most & 0xffff) : p.none;
}

__global__ void vote(poll p)
{
    FO_EACH_PLACE(i, p.count)
    {
        int64_t at[4];
        fo_place_at(p.places, i, at);
        const int64_t s = p.out.lo[FO_S] + at[0], b = at[1], y = p.out.lo[FO_Y] + at[2];
        uint32_t plane =
            p.consistency >= 2 ? majority(p, s, b, y, at[3]) : voice(p, s, b, y, at[3]);
        if (plane == p.none)
            plane = (uint32_t) * (const int64_t *)fo_walk_row(&p.first, s, 0, 0, 0, 0);
        char *to = fo_walk_row(&p.out, s, 0, b, 0, y) + at[3] * p.out.step[FO_X];
        if (p.out.dtype == FTH_U8)
            *(uint8_t *)to = (uint8_t)plane;
        else
            *(uint16_t *)to = (uint16_t)plane;
    }
}

fth_status run_vote(const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    poll p = {};
    p.in = fo_walk_of(d, &call->in[0], "sbyx");
    p.first = fo_walk_of(&call->node->in[1], &call->in[1], "s");
    p.out = fo_walk_of(d, &call->out[0], "sbyx");
    p.rows = d->size[2];
    p.none = d->dtype == FTH_U8 ? FO_CWT_NONE8 : FO_CWT_NONE;
    p.consistency = ((const fo_cwt_vote_attr *)call->node->attr)->consistency;
    p.places = fo_places_of(p.out.n[FO_S], p.out.n[FO_B], p.out.n[FO_Y], p.out.n[FO_X]);
    p.count = fo_places_count(p.places);
    if (p.count == 0) return FTH_OK;
    FTH_LAUNCH(vote, fth_cuda_blocks(p.count, FO_THREADS), FO_THREADS, fth_cuda_stream(call), p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- levels ---- */

struct job {
    fo_walk corner, details, out;
    fo_places places;
    int64_t count, half_rows, half_cols, pad;
    int parts;
};

__device__ int64_t ring(int64_t i, int64_t n)
{
    return i < 0 ? i + n : i % n;
}

__device__ fo_pair sample(const fo_walk &w, int64_t s, int64_t b, int64_t y, int64_t x)
{
    fo_pair c;
    c.re = fo_sample<float>(fo_walk_row(&w, s, 0, b, 0, y), x * w.step[FO_X]);
    c.im = fo_sample<float>(fo_walk_row(&w, s, 0, b, 1, y), x * w.step[FO_X]);
    return c;
}

__device__ fo_pair join(bool odd, const fo_pair a[3], const fo_pair d[3])
{
    return odd ? fo_cwt_odd(a[0], a[1], a[2], d[0], d[1], d[2])
               : fo_cwt_even(a[0], a[1], a[2], d[0], d[1], d[2]);
}

/* Column c of row y of the low or the high half in y. */
__device__ fo_pair across(const job &j, int64_t s, bool high, int64_t y, int64_t c)
{
    fo_pair a[3], d[3];
    for (int k = 0; k < 3; k++) {
        const int64_t x = ring(c / 2 + (c % 2 ? 2 : 1) - k, j.half_cols);
        a[k] = high ? sample(j.details, s, 2, y, x) : sample(j.corner, s, 0, y, x);
        d[k] = sample(j.details, s, high ? 1 : 0, y, x);
    }
    return join(c % 2, a, d);
}

__global__ void build(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[1], y = j.out.lo[FO_Y] + at[2], x = at[3];
        const int64_t r = y + j.pad, c = x + j.pad;
        fo_pair a[3], d[3];
        for (int k = 0; k < 3; k++) {
            const int64_t row = ring(r / 2 + (r % 2 ? 2 : 1) - k, j.half_rows);
            a[k] = across(j, s, false, row, c);
            d[k] = across(j, s, true, row, c);
        }
        const fo_pair v = join(r % 2, a, d);
        fo_put<float>(fo_walk_row(&j.out, s, 0, 0, 0, y), x * j.out.step[FO_X]) = v.re;
        if (j.parts == 2)
            fo_put<float>(fo_walk_row(&j.out, s, 0, 0, 1, y), x * j.out.step[FO_X]) = v.im;
    }
}

fth_status run_build(const fth_call *call)
{
    const fth_node *node = call->node;
    const fo_cwt_attr *a = (const fo_cwt_attr *)node->attr;
    job j = {};
    j.corner = fo_walk_of(&node->in[0], &call->in[0], node->in[0].n_axes == 5 ? "sbpyx" : "spyx");
    j.details = fo_walk_of(&node->in[1], &call->in[1], "sbpyx");
    j.out = fo_walk_of(&node->out[0], &call->out[0], a->last ? "syx" : "spyx");
    j.half_rows = a->rows / 2;
    j.half_cols = a->cols / 2;
    j.pad = a->last ? a->pad : 0;
    j.parts = a->last ? 1 : 2;
    j.places = fo_places_of(1, j.out.n[FO_S], j.out.n[FO_Y], j.out.n[FO_X]);
    j.count = fo_places_count(j.places);
    if (j.count == 0) return FTH_OK;
    FTH_LAUNCH(build, fth_cuda_blocks(j.count, FO_THREADS), FO_THREADS, fth_cuda_stream(call), j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_cwt_vote) = {.op = "focus_cwt_vote", .run = run_vote};
FTH_CUDA_KERNEL(focus_cwt_build) = {.op = "focus_cwt_build", .run = run_build};
