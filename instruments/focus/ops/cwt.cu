/* cwt.cu - the wavelet transform of planes on a device: a thread for each place of the bands.
 *
 * A thread filters the 6 x 6 samples around its place down and across by itself. pick filters only
 * the planes that won at its place.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "cwt.h"
#include "cwt_taps.h"
#include "device.cuh"

enum { TAPS = 6 };

/* A name of a plane, u8 or u16, and no plane among them. */
__device__ uint32_t name_at(const fo_walk &w, const char *row, int64_t x)
{
    const char *at = row + x * w.step[FO_X];
    return w.dtype == FTH_U8 ? *(const uint8_t *)at : *(const uint16_t *)at;
}
__device__ void name_put(const fo_walk &w, char *row, int64_t x, uint32_t name)
{
    char *at = row + x * w.step[FO_X];
    if (w.dtype == FTH_U8)
        *(uint8_t *)at = (uint8_t)name;
    else
        *(uint16_t *)at = (uint16_t)name;
}

struct job {
    fo_walk in, kept, floor, out, state;
    fo_places places;
    int64_t count, rows, cols, pad, height, width;
    int corner, bands;
    bool first, plane;
};

/* Rows and columns that a place needs, as bytes from the first sample of a plane. */
struct window {
    int64_t row[TAPS], column[TAPS];
};

__device__ int64_t ring(int64_t i, int64_t n)
{
    i %= n;
    return i < 0 ? i + n : i;
}

__device__ window window_of(const job &j, int64_t y, int64_t x)
{
    window w;
    for (int k = 0; k < TAPS; k++) {
        const int64_t r = ring(2 * y + k - 3, j.rows), c = ring(2 * x + k - 3, j.cols);
        w.row[k] = fo_border_at(r - j.pad, j.height, FO_BORDER_MIRROR) * j.in.step[FO_Y];
        w.column[k] = fo_border_at(c - j.pad, j.width, FO_BORDER_MIRROR) * j.in.step[FO_X];
    }
    return w;
}

template <bool HIGH> __device__ fo_pair filter_real(const float v[TAPS])
{
    return HIGH ? fo_cwt_high_real(v[0], v[1], v[2], v[3], v[4], v[5])
                : fo_cwt_low_real(v[0], v[1], v[2], v[3], v[4], v[5]);
}
template <bool HIGH> __device__ fo_pair filter(const fo_pair v[TAPS])
{
    float re[TAPS], im[TAPS];
    for (int k = 0; k < TAPS; k++) re[k] = v[k].re, im[k] = v[k].im;
    return fo_cwt_join(filter_real<HIGH>(re), filter_real<HIGH>(im));
}

/* The window filtered down, column by column. */
template <typename T, bool LOW, bool HIGH>
__device__ void down(const job &j, const window &w, const char *plane, fo_pair low[TAPS],
                     fo_pair high[TAPS])
{
    for (int c = 0; c < TAPS; c++) {
        float re[TAPS], im[TAPS];
        for (int k = 0; k < TAPS; k++) {
            const char *at = plane + w.row[k];
            re[k] = fo_sample<T>(at, w.column[c]);
            im[k] = j.plane ? 0.0f : fo_sample<T>(at + j.in.step[FO_P], w.column[c]);
        }
        if (LOW)
            low[c] = j.plane ? filter_real<false>(re)
                             : fo_cwt_join(filter_real<false>(re), filter_real<false>(im));
        if (HIGH)
            high[c] = j.plane ? filter_real<true>(re)
                              : fo_cwt_join(filter_real<true>(re), filter_real<true>(im));
    }
}

__device__ const char *plane_of(const job &j, int64_t s, int64_t z)
{
    return fo_walk_row(&j.in, s, z, 0, 0, 0);
}

/* Details of plane z, or the sample itself. */
template <typename T>
__device__ void bands_of(const job &j, const window &w, int64_t s, int64_t z, int64_t y, int64_t x,
                         fo_pair out[FO_CWT_BANDS])
{
    const char *plane = plane_of(j, s, z);
    if (j.corner) {
        const char *at = plane + y * j.in.step[FO_Y];
        out[0].re = fo_sample<T>(at, x * j.in.step[FO_X]);
        out[0].im = j.plane ? 0.0f : fo_sample<T>(at + j.in.step[FO_P], x * j.in.step[FO_X]);
        return;
    }
    fo_pair low[TAPS], high[TAPS];
    down<T, true, true>(j, w, plane, low, high);
    out[0] = filter<true>(low);
    out[1] = filter<true>(high);
    out[2] = filter<false>(high);
}

template <typename T> __global__ void low(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[0], z = j.out.lo[FO_Z] + at[1];
        const int64_t y = j.out.lo[FO_Y] + at[2], x = at[3];
        const window w = window_of(j, y, x);
        fo_pair lows[TAPS];
        down<T, true, false>(j, w, plane_of(j, s, z), lows, nullptr);
        const fo_pair c = filter<false>(lows);
        fo_put<float>(fo_walk_row(&j.out, s, z, 0, 0, y), x * j.out.step[FO_X]) = c.re;
        fo_put<float>(fo_walk_row(&j.out, s, z, 0, 1, y), x * j.out.step[FO_X]) = c.im;
    }
}

template <typename T> __global__ void select(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[1], y = j.out.lo[FO_Y] + at[2], x = at[3];
        const window w = window_of(j, y, x);
        const float floor = *(const float *)fo_walk_row(&j.floor, s, 0, 0, 0, 0);
        float energy[FO_CWT_BANDS] = {0, 0, 0};
        uint32_t plane[FO_CWT_BANDS] = {FO_CWT_NONE, FO_CWT_NONE, FO_CWT_NONE}; /* of u8 too */
        for (int b = 0; !j.first && b < j.bands; b++) {
            energy[b] =
                fo_sample<float>(fo_walk_row(&j.state, s, 0, b, 0, y), x * j.state.step[FO_X]);
            plane[b] = name_at(j.out, fo_walk_row(&j.out, s, 0, b, 0, y), x);
        }
        for (int64_t z = j.kept.lo[FO_Z]; z < j.kept.lo[FO_Z] + j.kept.n[FO_Z]; z++) {
            if (!*fo_walk_row(&j.kept, s, z, 0, 0, 0)) continue;
            fo_pair c[FO_CWT_BANDS];
            bands_of<T>(j, w, s, z, y, x, c);
            for (int b = 0; b < FO_CWT_BANDS; b++) {
                if (b >= j.bands) break;
                const float e = fo_cwt_energy(c[b], floor);
                if (e > energy[b]) energy[b] = e, plane[b] = (uint32_t)z;
            }
        }
        for (int b = 0; b < j.bands; b++) {
            fo_put<float>(fo_walk_row(&j.state, s, 0, b, 0, y), x * j.state.step[FO_X]) = energy[b];
            name_put(j.out, fo_walk_row(&j.out, s, 0, b, 0, y), x, plane[b]);
        }
    }
}

/* j.state are the chosen planes. */
template <typename T> __global__ void pick(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[1], y = j.out.lo[FO_Y] + at[2], x = at[3];
        const window w = window_of(j, y, x);
        int64_t chosen[FO_CWT_BANDS] = {-1, -1, -1};
        for (int b = 0; b < j.bands; b++)
            chosen[b] = name_at(j.state, fo_walk_row(&j.state, s, 0, b, 0, y), x);
        for (int b = 0; b < j.bands; b++) {
            const int64_t z = chosen[b];
            const bool here = z >= j.in.lo[FO_Z] && z < j.in.lo[FO_Z] + j.in.n[FO_Z];
            bool before = false;
            for (int k = 0; k < b; k++) before = before || chosen[k] == z;
            if (before || (!here && !j.first)) continue;
            fo_pair c[FO_CWT_BANDS] = {{0, 0}, {0, 0}, {0, 0}};
            if (here) bands_of<T>(j, w, s, z, y, x, c);
            for (int k = b; k < j.bands; k++) {
                if (chosen[k] != z) continue;
                const int64_t column = x * j.out.step[FO_X];
                fo_put<float>(fo_walk_row(&j.out, s, 0, k, 0, y), column) = c[k].re;
                fo_put<float>(fo_walk_row(&j.out, s, 0, k, 1, y), column) = c[k].im;
            }
        }
    }
}

__global__ void clear(fo_walk out)
{
    for (int64_t s = 0; s < out.n[FO_S]; s++)
        *(float *)fo_walk_row(&out, out.lo[FO_S] + s, 0, 0, 0, 0) = 0;
}

/* No energy is negative, so the bits of the largest are the largest bits. */
template <typename T> __global__ void peak(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[1];
        const window w = window_of(j, at[2], at[3]);
        fo_pair c[FO_CWT_BANDS];
        float most = 0;
        bands_of<T>(j, w, s, 0, at[2], at[3], c);
        for (int b = 0; b < FO_CWT_BANDS; b++) {
            if (b >= j.bands) break;
            const float e = c[b].re * c[b].re + c[b].im * c[b].im;
            if (e > most) most = e;
        }
        int bits;
        memcpy(&bits, &most, sizeof bits);
        if (most > 0) atomicMax((int *)fo_walk_row(&j.out, s, 0, 0, 0, 0), bits);
    }
}

job job_of(const fth_call *call, const char *out)
{
    const fth_node *node = call->node;
    const fo_cwt_attr *a = (const fo_cwt_attr *)node->attr;
    const fth_desc *d = &node->in[0];
    job j = {};
    j.plane = d->n_axes == 4;
    j.in = fo_walk_of(d, &call->in[0], j.plane ? "szyx" : "szpyx");
    j.out = fo_walk_of(&node->out[0], &call->out[0], out);
    j.rows = a->rows;
    j.cols = a->cols;
    j.pad = j.plane ? a->pad : 0;
    j.height = d->size[d->n_axes - 2];
    j.width = d->size[d->n_axes - 1];
    j.corner = a->corner;
    j.bands = a->corner ? 1 : FO_CWT_BANDS;
    j.first = call->first;
    return j;
}

void one_place_each(job *j, int64_t rows, int64_t cols)
{
    j->places = fo_places_of(1, j->out.n[FO_S], rows, cols);
    j->count = fo_places_count(j->places);
}

fth_status run_low(const fth_call *call)
{
    job j = job_of(call, "szpyx");
    j.places = fo_places_of(j.out.n[FO_S], j.out.n[FO_Z], j.out.n[FO_Y], j.out.n[FO_X]);
    j.count = fo_places_count(j.places);
    if (j.count == 0) return FTH_OK;
    FO_LAUNCH_FOR(call->node->in[0].dtype, low, j.count, call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_select(const fth_call *call)
{
    const fth_node *node = call->node;
    job j = job_of(call, "sbyx");
    j.kept = fo_walk_of(&node->in[1], &call->in[1], "sz");
    j.floor = fo_walk_of(&node->in[2], &call->in[2], "s");
    j.state = fo_walk_sized(&node->out[0], &call->state[0], "sbyx", (int64_t)sizeof(float));
    one_place_each(&j, j.out.n[FO_Y], j.out.n[FO_X]);
    if (j.count == 0) return FTH_OK;
    FO_LAUNCH_FOR(node->in[0].dtype, select, j.count, call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_pick(const fth_call *call)
{
    job j = job_of(call, "sbpyx");
    j.state = fo_walk_of(&call->node->in[1], &call->in[1], "sbyx");
    one_place_each(&j, j.out.n[FO_Y], j.out.n[FO_X]);
    if (j.count == 0) return FTH_OK;
    FO_LAUNCH_FOR(call->node->in[0].dtype, pick, j.count, call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_peak(const fth_call *call)
{
    job j = job_of(call, "s");
    const int64_t per = j.corner ? 1 : 2;
    one_place_each(&j, j.rows / per, j.cols / per);
    if (j.count == 0) return FTH_OK;
    FTH_LAUNCH(clear, 1, 1, fth_cuda_stream(call), j.out);
    FTH_CUDA_LAUNCHED(call);
    FO_LAUNCH_FOR(call->node->in[0].dtype, peak, j.count, call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_cwt_low) = {.op = "focus_cwt_low", .run = run_low};
FTH_CUDA_KERNEL(focus_cwt_select) = {.op = "focus_cwt_select", .run = run_select};
FTH_CUDA_KERNEL(focus_cwt_pick) = {.op = "focus_cwt_pick", .run = run_pick};
FTH_CUDA_KERNEL(focus_cwt_peak) = {.op = "focus_cwt_peak", .run = run_peak};
