/* serial_noise.cu - counting and reading out with the reference's generators on a device: one
 * thread, pixel after pixel, because the stream is serial.
 *
 * The other threads of its block load pixels and generate numbers ahead (staged.h); but with
 * calibration noise two seeds alternate in one table, and the serial thread draws one by one.
 */
#include "../render/device.h"

namespace
{
#include "serial.h"
#include "staged.h"

enum { PIXELS = STAGED_THREADS };

union words {
    stream s;
    int64_t word[WORDS];
};

/* Member by member: padding bytes stay zero. */
__device__ void set_words(words &u, const br_ran1 &r, int64_t seed, int64_t calib_seed)
{
    for (int i = 0; i < WORDS; i++) u.word[i] = 0;
    u.s.random.y = r.y;
    for (int i = 0; i < TABLE_ENTRIES; i++) u.s.random.table[i] = r.table[i];
    u.s.random.seed = r.seed;
    u.s.random.spare = r.spare;
    u.s.random.has_spare = r.has_spare;
    u.s.random.mean = r.mean;
    u.s.random.root = r.root;
    u.s.random.log_mean = r.log_mean;
    u.s.random.g = r.g;
    u.s.seed = seed;
    u.s.calib_seed = calib_seed;
}

struct counting {
    br_counting c;
    const float *from;
    float *to;      /* NULL: not wanted */
    int64_t *after; /* the same */
    int64_t rows, cols, slow, f0, f1, t0, t1, a0, a1;
    stream *state;
    bool first;
    fth_fault *fault;
};

/* Pixels of a row in shared memory. */
struct tile {
    double photons[PIXELS];
    float g[PIXELS], count[PIXELS];
    int64_t seed, calib_seed;
    int n, next; /* how many, and the next one of the serial thread */
    int bad;     /* the first that is not finite; PIXELS: none */
};

__device__ void bring(const counting &k, tile &p, int64_t y, int64_t x0)
{
    const int t = (int)threadIdx.x;
    const int64_t x = x0 + t;
    if (t == 0) {
        p.n = (int)(k.cols - x0 < PIXELS ? k.cols - x0 : PIXELS);
        p.next = 0;
        p.bad = PIXELS;
    }
    if (x < k.cols) {
        p.photons[t] = (double)k.from[y * k.f0 + x * k.f1] * k.c.scale;
        const float mean = (float)p.photons[t];
        p.g[t] = mean < 12 ? (float)exp(-(double)mean) : 0;
    }
    __syncthreads();
}

/* From the tile's next pixel until the staged numbers are used up; at least one pixel. */
__device__ void count_on(const counting &k, staged &s, tile &p)
{
    int i = p.next, at = s.at;
    do {
        double photons = p.photons[i];
        if (!isfinite(photons)) {
            p.bad = i;
            break;
        }
        float g = p.g[i];
        s.at = at;
        if (k.c.flicker > 0) photons *= 1 + k.c.flicker * (double)br_gauss(&s.r, &p.seed);
        if (k.c.calibration > 0)
            photons *= 1 + k.c.calibration * (double)br_gauss(&s.r, &p.calib_seed);
        at = s.at;
        if (k.c.flicker > 0 || k.c.calibration > 0) g = (float)exp(-(double)(float)photons);
        p.count[i] = staged_poisson(s, (float)photons, g, at);
        i++;
    } while (i < p.n && at < s.n);
    s.at = at;
    p.next = p.bad < PIXELS ? p.n : i;
}

__device__ bool count_row(const counting &k, int64_t y, staged &s, tile &p)
{
    const int t = (int)threadIdx.x;
    const bool ahead = !(k.c.calibration > 0);
    for (int64_t x0 = 0; x0 < k.cols; x0 += PIXELS) {
        bring(k, p, y, x0);
        while (p.next < p.n) {
            const bool used_up = s.at >= s.n;
            __syncthreads(); /* all threads have read it */
            if (ahead && used_up) staged_fill(s);
            if (t == 0) count_on(k, s, p);
            __syncthreads();
        }
        if (p.bad < PIXELS) {
            if (t == 0)
                fth_cuda_complain(k.fault, (uint64_t)((k.slow + y) * k.cols + x0 + p.bad),
                                  __double_as_longlong(p.photons[p.bad]), 0);
            return false;
        }
        if (t < p.n && k.to) k.to[y * k.t0 + (x0 + t) * k.t1] = p.count[t];
        __syncthreads();
    }
    return true;
}

__global__ void __launch_bounds__(STAGED_THREADS) count(counting k)
{
    __shared__ staged s;
    __shared__ tile p;
    __shared__ words u;
    const int t = (int)threadIdx.x;
    if (t == 0) {
        s.r = k.first ? k.c.start : k.state->random;
        p.seed = k.first ? k.c.seed : k.state->seed;
        p.calib_seed = k.first ? k.c.calib_seed : k.state->calib_seed;
    }
    __syncthreads();
    staged_start(s, &p.seed);
    for (int64_t y = 0; y < k.rows; y++) {
        if (!count_row(k, y, s, p)) return;
        if (!k.after) continue;
        staged_settle(s);
        if (t == 0) set_words(u, s.r, p.seed, p.calib_seed);
        __syncthreads();
        if (t < WORDS) k.after[y * k.a0 + t * k.a1] = u.word[t];
        __syncthreads();
    }
    staged_settle(s);
    if (t == 0) *k.state = {s.r, p.seed, p.calib_seed};
}

fth_status count_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0], *after = &call->out[1];
    const counting k = {.c = *(const br_counting *)call->node->attr,
                        .from = (const float *)in->data,
                        .to = (float *)out->data,
                        .after = (int64_t *)after->data,
                        .rows = out->extent[0],
                        .cols = out->extent[1],
                        .slow = out->origin[0],
                        .f0 = in->stride[0],
                        .f1 = in->stride[1],
                        .t0 = out->stride[0],
                        .t1 = out->stride[1],
                        .a0 = after->stride[0],
                        .a1 = after->stride[1],
                        .state = (stream *)call->state[0].data,
                        .first = call->first,
                        .fault = call->fault};
    FTH_LAUNCH(count, 1, STAGED_THREADS, fth_cuda_stream(call), k);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status count_explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const uint64_t cols = (uint64_t)node->out[0].size[1];
    double photons;
    memcpy(&photons, &fault->value, sizeof photons);
    return FTH_FAIL(err, FTH_E_NUMERIC, "pixel (%lld, %lld) of the image is %g",
                    (long long)(fault->where % cols), (long long)(fault->where / cols), photons);
}

/* ---- read-out ---- */

struct reading {
    double sigma;
    const double *from;
    double *to;
    int64_t rows, cols, f0, f1, t0, t1;
    const stream *after;
    stream *state;
};

/* Deviates for the pixels of a row from `next` on, until the staged numbers are used up. */
__device__ void read_on(staged &s, int64_t *seed, float *deviate, int n, int *next)
{
    int i = *next;
    do deviate[i++] = br_gauss(&s.r, seed);
    while (i < n && s.at < s.n);
    *next = i;
}

__global__ void __launch_bounds__(STAGED_THREADS) read_out(reading k)
{
    __shared__ staged s;
    __shared__ float deviate[PIXELS];
    __shared__ int64_t seed, calib_seed;
    __shared__ int next;
    const int t = (int)threadIdx.x;
    if (t == 0) {
        const stream *const from = k.after ? k.after : k.state;
        s.r = from->random;
        seed = from->seed;
        calib_seed = from->calib_seed;
    }
    __syncthreads();
    staged_start(s, &seed);
    for (int64_t y = 0; y < k.rows; y++)
        for (int64_t x0 = 0; x0 < k.cols; x0 += PIXELS) {
            const int n = (int)(k.cols - x0 < PIXELS ? k.cols - x0 : PIXELS);
            if (t == 0) next = 0;
            __syncthreads();
            while (next < n) {
                const bool used_up = s.at >= s.n;
                __syncthreads(); /* all threads have read it */
                if (used_up) staged_fill(s);
                if (t == 0) read_on(s, &seed, deviate, n, &next);
                __syncthreads();
            }
            const int64_t x = x0 + t;
            if (t < n)
                k.to[y * k.t0 + x * k.t1] =
                    k.from[y * k.f0 + x * k.f1] + k.sigma * (double)deviate[t];
            __syncthreads();
        }
    staged_settle(s);
    if (t == 0) *k.state = {s.r, seed, calib_seed};
}

fth_status read_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const reading k = {.sigma = *(const double *)call->node->attr,
                       .from = (const double *)in->data,
                       .to = (double *)out->data,
                       .rows = out->extent[0],
                       .cols = out->extent[1],
                       .f0 = in->stride[0],
                       .f1 = in->stride[1],
                       .t0 = out->stride[0],
                       .t1 = out->stride[1],
                       .after = call->first ? (const stream *)call->in[1].data : NULL,
                       .state = (stream *)call->state[0].data};
    FTH_LAUNCH(read_out, 1, STAGED_THREADS, fth_cuda_stream(call), k);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(bragg_count) = {.op = "bragg_count", .run = count_run, .explain = count_explain};
FTH_CUDA_KERNEL(bragg_read_out) = {.op = "bragg_read_out", .run = read_run};
