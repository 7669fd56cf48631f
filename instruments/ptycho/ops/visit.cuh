/* visit.cuh - a pattern from its patch to the change of its exit wave in one block of threads.
 *
 * The field stays in registers and shared memory: probe times patch, spectrum, projection, back.
 * `visit` does so for the patterns of a batch. `walk` goes through a piece pattern by pattern, and
 * updates object and probe itself: for ePIE, rPIE and PIE with one pattern a batch, where each
 * pattern waits for the one before, this is one kernel instead of one chain of kernels a pattern.
 */
#ifndef PT_OPS_VISIT_CUH
#define PT_OPS_VISIT_CUH

#include "sweep.cuh"

namespace
{
constexpr int TELL = 3, HALF = POINTS / 2;

/* Shared memory of a block. */
template <typename T, int N> struct desk {
    pair<T> *image, *roots, *ramps; /* ramps: of rows, then of columns */
    double (*sums)[TELL];           /* of each warp */
    T (*tops)[2];                   /* largest |O|^2 and |P|^2 of each warp */
};
template <typename T, int N>
constexpr int64_t desk_bytes = image_bytes<T, N> + 2 * N *(int64_t)sizeof(pair<T>);

/* Square roots and quotients of the projection: to the last digit or two in f32. */
__device__ inline float quick_root(float v)
{
#ifdef FTH_EMULATED
    return sqrtf(v);
#else
    float r;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
#endif
}
__device__ inline double quick_root(double v)
{
    return sqrt(v);
}
__device__ inline float quick_quotient(float a, float b)
{
    return __fdividef(a, b);
}
__device__ inline double quick_quotient(double a, double b)
{
    return a / b;
}

/* In loops over the points of a thread: what follows is not read ahead of it. Reading all at once
 * would take as many registers again as the field has. */
__device__ inline void settle(int m)
{
#ifndef FTH_EMULATED
    if (m % 4 == 3) asm volatile("" ::: "memory");
#endif
    (void)m;
}

/* ---- patterns ---- */

/* Measured amplitudes of half of the elements of a column, as `seen` tells them. */
template <typename T, int N>
__device__ __forceinline__ void seen_half(const frames &f, int64_t frame, const line<N, true> &l,
                                          int half, T (&out)[HALF])
{
    const int h = f.centred ? N / 2 : 0, col = (l.number + h) % N;
    const int64_t first = frame * (N * N);
    auto read = [&](auto *data) {
#pragma unroll
        for (int k = 0; k < HALF; k++)
            out[k] = (T)data[first + (l.row(half * HALF + k) + h) % N * N + col];
    };
    switch (f.dtype) {
    case FTH_U8: read((const uint8_t *)f.data); break;
    case FTH_U16: read((const uint16_t *)f.data); break;
    case FTH_I32: read((const int32_t *)f.data); break;
    case FTH_I64: read((const int64_t *)f.data); break;
    case FTH_F32: read((const float *)f.data); break;
    default: read((const double *)f.data); break;
    }
    if (f.counts)
#pragma unroll
        for (int k = 0; k < HALF; k++) out[k] = quick_root(out[k]);
    if (f.mask)
#pragma unroll
        for (int k = 0; k < HALF; k++)
            if (!f.mask[frame * f.mask_step + (l.row(half * HALF + k) + h) % N * N + col])
                out[k] = -1;
}

/* ---- sums of a block ---- */

/* Each warp leaves its largest numbers; whoever asks after the next barrier finds those of all. */
template <typename T, int N>
__device__ __forceinline__ void leave_tops(const desk<T, N> &d, T object, T probe)
{
    object = most_of_warp(object);
    probe = most_of_warp(probe);
    if (threadIdx.x % 32 == 0) {
        d.tops[threadIdx.x / 32][0] = object;
        d.tops[threadIdx.x / 32][1] = probe;
    }
}
template <typename T, int N> __device__ __forceinline__ T top_of(const desk<T, N> &d, int which)
{
    constexpr int ALL = threads_of<N> / 32;
    const int at = (int)threadIdx.x % 32;
    return most_of_warp(at < ALL ? d.tops[at][which] : (T)0);
}

/* ---- the steps of a pattern ---- */

template <typename T, int N>
__device__ __forceinline__ void fill_ramps(const work<T> &w, int64_t i, const desk<T, N> &d)
{
    const double *v = visit_of(w, i);
    for (int k = (int)threadIdx.x; k < 2 * N; k += (int)blockDim.x) {
        const double turn = -2.0 * PI * cycles(N, k % N) * v[k < N ? PT_VISIT_DROW : PT_VISIT_DCOL];
        d.ramps[k] = {(T)cos(turn), (T)sin(turn)};
    }
    __syncthreads();
}

/* A spectrum moved by the fraction of the position, or back. */
template <typename T, int N, bool BACK>
__device__ __forceinline__ void move_field(pair<T> (&v)[POINTS], const desk<T, N> &d)
{
    const line<N, true> col;
    const pair<T> across = d.ramps[N + col.number];
#pragma unroll
    for (int m = 0; m < POINTS; m++) {
        const pair<T> by = times(d.ramps[col.row(m)], across),
                      to = BACK ? times_c(by, v[m]) : times(by, v[m]);
        v[m] = {to.re * (T)(1.0 / (N * N)), to.im * (T)(1.0 / (N * N))};
    }
}

/* Column of the spectrum to column of its change; each warp leaves its sums. */
template <typename T, int N>
__device__ __forceinline__ void project_columns(const work<T> &w, int64_t i, pair<T> (&v)[POINTS],
                                                const desk<T, N> &d)
{
    const line<N, true> col;
    const int64_t frame = (int64_t)visit_of(w, i)[PT_VISIT_FRAME];
    const T eps = (T)w.rule.epsilon;
    T misfit = 0, counts = 0, model = 0;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        T seen[HALF];
        seen_half<T, N>(w.seen, frame, col, half, seen);
#pragma unroll
        for (int k = 0; k < HALF; k++) {
            pair<T> &x = v[half * HALF + k];
            const T s = seen[k], a = quick_root(mad(x.re, x.re, x.im * x.im)) * (T)(1.0 / N);
            const bool good = s >= 0;
            const T away = good ? a - s : 0, here = good ? s : 0, there = good ? a : 0;
            misfit = mad(away, away, misfit);
            counts = mad(here, here, counts);
            model = mad(there, there, model);
            const T by = good ? (quick_quotient(s, a + eps) - 1) * (T)(1.0 / (N * N)) : 0;
            x = {x.re * by, x.im * by};
        }
    }
    const double sums[TELL] = {sum_of_warp((double)misfit), sum_of_warp((double)counts),
                               sum_of_warp((double)model)};
    if (threadIdx.x % 32 == 0)
        for (int k = 0; k < TELL; k++) d.sums[threadIdx.x / 32][k] = sums[k];
}

/* After a barrier: what is told of the pattern, by one thread. */
template <typename T, int N>
__device__ __forceinline__ void tell_sums(const work<T> &w, int64_t i, const desk<T, N> &d)
{
    double sum[TELL] = {0, 0, 0};
    for (int k = 0; k < TELL; k++)
        for (int warp = 0; warp < threads_of<N> / 32; warp++) sum[k] += d.sums[warp][k];
    double *told = w.told + (w.first + i) * PT_TOLD;
    told[PT_TOLD_MISFIT] = sum[0];
    told[PT_TOLD_COUNTS] = sum[1];
    told[PT_TOLD_MODEL] = sum[2];
    told[PT_TOLD_ALPHA] = visit_of(w, i)[PT_VISIT_ALPHA];
}

/* The probe as pattern i sees it, in `lit` and in v; its spectrum is made here, or was before. */
template <typename T, int N, bool OWN>
__device__ __forceinline__ void see_probe(const work<T> &w, int64_t i, T *lit, pair<T> (&v)[POINTS],
                                          const desk<T, N> &d)
{
    const line<N, false> row;
    const line<N, true> col;
    fill_ramps<T, N>(w, i, d);
    const T *from = OWN ? w.probe : w.spectrum;
#pragma unroll
    for (int m = 0; m < POINTS; m++)
        v[m] = get(from, N * N, OWN ? row.row(m) * N + row.col(m) : col.row(m) * N + col.col(m));
    if (OWN) forward<T, N>(v, d.image, d.roots);
    move_field<T, N, false>(v, d);
    backward<T, N>(v, d.image, d.roots);
#pragma unroll
    for (int m = 0; m < POINTS; m++) put(lit, N * N, row.row(m) * N + row.col(m), v[m]);
}

/* The change of the exit wave, in rows; nothing of the kind where the rule is only to look. */
template <typename T, int N, bool SHIFT, bool OWN>
__device__ __forceinline__ void change_of(const work<T> &w, int64_t i, T *lit, pair<T> (&v)[POINTS],
                                          const desk<T, N> &d)
{
    const line<N, false> row;
    const int cols = (int)w.cols;
    const T *patch = w.object + corner_of(w, i);
    if (SHIFT)
        see_probe<T, N, OWN>(w, i, lit, v, d);
    else
#pragma unroll
        for (int m = 0; m < POINTS; m++) v[m] = get(w.probe, N * N, row.row(m) * N + row.col(m));
    T object = 0, probe = 0;
#pragma unroll
    for (int m = 0; m < POINTS; m++) {
        const pair<T> o = get(patch, w.cells, row.row(m) * cols + row.col(m));
        const T light = power(v[m]), thick = power(o);
        probe = light > probe ? light : probe;
        object = thick > object ? thick : object;
        v[m] = times(v[m], o);
        settle(m);
    }
    leave_tops<T, N>(d, object, probe);
    forward<T, N>(v, d.image, d.roots);
    project_columns<T, N>(w, i, v, d);
    if (w.rule.rule == PT_LOOK)
        __syncthreads();
    else
        backward<T, N>(v, d.image, d.roots);
    if (threadIdx.x == 0) tell_sums<T, N>(w, i, d);
}

#define PT_DESK(d)                                                                                 \
    FTH_SHARED(pair<T>, shared);                                                                   \
    __shared__ double sums_of_warps[WARPS][TELL];                                                  \
    __shared__ T tops_of_warps[WARPS][2];                                                          \
    const desk<T, N> d = {shared, shared + N * N, shared + N * N + N, sums_of_warps, tops_of_warps}

/* What pattern i wants of the probe, from the change of its exit wave: in rows, or with fractions
 * of positions its spectrum, moved back, in columns. */
template <typename T, int N, bool SHIFT>
__device__ __forceinline__ void make_wish(const work<T> &w, int64_t i, T object,
                                          pair<T> (&v)[POINTS], const desk<T, N> &d)
{
    const line<N, false> row;
    const int cols = (int)w.cols;
    const T *patch = w.object + corner_of(w, i);
#pragma unroll
    for (int m = 0; m < POINTS; m++) {
        const pair<T> o = get(patch, w.cells, row.row(m) * cols + row.col(m)), u = times_c(o, v[m]);
        const T by = object_weight(w, object, o);
        v[m] = {u.re * by, u.im * by};
        settle(m);
    }
    if (!SHIFT) return;
    forward<T, N>(v, d.image, d.roots);
    move_field<T, N, true>(v, d);
}

/* Pattern from + b of the batch for block b, which adds its wish to those of the launches before.
 */
template <typename T, int N, bool SHIFT>
__global__ __launch_bounds__(threads_of<N>, (resident<T, N>)) void visit(const work<T> w,
                                                                         const int64_t from)
{
    PT_DESK(d);
    const int64_t i = from + blockIdx.x;
    if (i >= size_of(w)) return;
    fill_roots<T, N>(d.roots, w.table);
    pair<T> v[POINTS];
    change_of<T, N, SHIFT, false>(w, i, SHIFT ? w.lit + i * 2 * (N * N) : nullptr, v, d);
    if (w.rule.rule == PT_LOOK) return;
    const line<N, false> row;
    T *chi = w.chi + i * 2 * (N * N);
#pragma unroll
    for (int m = 0; m < POINTS; m++) put(chi, N * N, row.row(m) * N + row.col(m), v[m]);
    const T object = top_of(d, 0), probe = top_of(d, 1);
    if (w.rule.rule != PT_LSQML && threadIdx.x < w.tiles) {
        const int64_t of_probe = w.rule.batch + i;
        w.most[i * w.tiles + threadIdx.x] = (double)object;
        if (SHIFT || i == 0) w.most[of_probe * w.tiles + threadIdx.x] = (double)probe;
    }
    if (w.slabs == 0 || w.switches[PT_SWITCH_PROBE] == 0) return;
    make_wish<T, N, SHIFT>(w, i, object, v, d);
    const line<N, SHIFT> l;
    T *slab = w.slab + (int64_t)blockIdx.x * 2 * (N * N);
    if (from > 0)
#pragma unroll
        for (int m = 0; m < POINTS; m++) {
            v[m] = plus(get(slab, N * N, l.row(m) * N + l.col(m)), v[m]);
            settle(m);
        }
#pragma unroll
    for (int m = 0; m < POINTS; m++) put(slab, N * N, l.row(m) * N + l.col(m), v[m]);
}

/* All patterns of a piece, one after the other. */
template <typename T, int N, bool SHIFT>
__global__ __launch_bounds__(threads_of<N>, 1) void walk(const work<T> w)
{
    PT_DESK(d);
    const int64_t count = (int64_t)w.switches[PT_SWITCH_COUNT];
    const bool probe_on = w.switches[PT_SWITCH_PROBE] != 0;
    const T alpha = (T)w.rule.object_alpha;
    fill_roots<T, N>(d.roots, w.table);
    for (int64_t i = 0; i < count; i++) {
        pair<T> v[POINTS];
        change_of<T, N, SHIFT, true>(w, i, w.lit, v, d);
        const T object = top_of(d, 0), probe = top_of(d, 1);
        const line<N, false> row;
        const int cols = (int)w.cols;
        T *patch = w.object + corner_of(w, i);
        const T *lit = SHIFT ? w.lit : w.probe;
        const T flat = probe > 0 ? alpha / probe : 0;
#pragma unroll
        for (int m = 0; m < POINTS; m++) {
            const int at = row.row(m) * cols + row.col(m);
            const int k = row.row(m) * N + row.col(m);
            const pair<T> o = get(patch, w.cells, at), p = get(lit, N * N, k), x = v[m],
                          u = times_c(o, x), want = times_c(p, x);
            const T by =
                w.rule.rule == PT_EPIE ? flat : pie_weight(w.rule.rule, alpha, probe, power(p));
            put(patch, w.cells, at, pair<T>{o.re + want.re * by, o.im + want.im * by});
            const T weight = object_weight(w, object, o);
            v[m] = {u.re * weight, u.im * weight};
            settle(m);
        }
        if (SHIFT && probe_on) {
            forward<T, N>(v, d.image, d.roots);
            move_field<T, N, true>(v, d);
            backward<T, N>(v, d.image, d.roots);
        }
        if (probe_on)
#pragma unroll
            for (int m = 0; m < POINTS; m++) {
                const int k = row.row(m) * N + row.col(m);
                put(w.probe, N * N, k, plus(get(w.probe, N * N, k), v[m]));
                settle(m);
            }
        __syncthreads(); /* the next patch may be of others, and so are sums and ramps */
    }
}

/* ---- which patterns go this way ---- */

/* One field a pattern, and nothing that the batch must agree on before the projection. */
template <typename T> bool visits_whole(const work<T> &w)
{
    return is_whole<T>(w.n) && w.modes == 1 && !w.rule.poisson && !w.rule.opr;
}
/* Blocks of a launch of `visit`, each with a sum of its own: enough to fill the 132 multiprocessors
 * of an H100 or H200; a fixed number, so that results do not depend on the card. */
template <typename T> int64_t most_blocks(const work<T> &w)
{
#ifdef FTH_EMULATED
    return 3; /* so that small batches take several launches */
#else
    return w.n == 128 ? 128 : 512;
#endif
}
/* Sums that they leave; 0: none, where the new object has a say. */
template <typename T> int64_t slabs_of(const work<T> &w)
{
    const bool late = w.rule.ptypy && w.rule.rule != PT_LSQML;
    if (!visits_whole(w) || late || w.rule.rule == PT_LOOK) return 0;
    return w.rule.batch < most_blocks(w) ? w.rule.batch : most_blocks(w);
}
template <typename T> bool walks(const work<T> &w)
{
    return visits_whole(w) && w.rule.batch == 1 && !w.rule.ptypy && !w.rule.positions &&
           w.rule.rule != PT_LSQML && w.rule.rule != PT_LOOK;
}

/* `...`: the kernel's arguments. */
#define PT_QUEUE_AS(kernel, N, SHIFT, blocks, ...)                                                 \
    FTH_LAUNCH_SHARED((kernel<T, N, SHIFT>), blocks, threads_of<N>, (desk_bytes<T, N>), stream,    \
                      __VA_ARGS__)
#define PT_QUEUE(kernel, N, blocks, ...)                                                           \
    do {                                                                                           \
        if (w.rule.shift)                                                                          \
            PT_QUEUE_AS(kernel, N, true, blocks, __VA_ARGS__);                                     \
        else                                                                                       \
            PT_QUEUE_AS(kernel, N, false, blocks, __VA_ARGS__);                                    \
    } while (0)
template <typename T> void queue_visits(const work<T> &w, cudaStream_t stream)
{
    const int64_t most = most_blocks(w);
    for (int64_t from = 0; from < w.rule.batch; from += most) {
        const int64_t left = w.rule.batch - from;
        const unsigned blocks = (unsigned)(left < most ? left : most);
        if constexpr (sizeof(T) == 4)
            if (w.n == 128) {
                PT_QUEUE(visit, 128, blocks, w, from);
                continue;
            }
        PT_QUEUE(visit, 64, blocks, w, from);
    }
}
template <typename T> void queue_walk(const work<T> &w, cudaStream_t stream)
{
    if constexpr (sizeof(T) == 4)
        if (w.n == 128) {
            PT_QUEUE(walk, 128, 1, w);
            return;
        }
    PT_QUEUE(walk, 64, 1, w);
}
#undef PT_QUEUE
#undef PT_QUEUE_AS
} // namespace

#endif
