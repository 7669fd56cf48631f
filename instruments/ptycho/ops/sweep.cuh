/* sweep.cuh - what the kernels of a sweep share: its arrays, views of them, what transforms read
 * and write, and the choice of the transform.
 */
#ifndef PT_OPS_SWEEP_CUH
#define PT_OPS_SWEEP_CUH

#include "image.cuh"
#include "tiles.cuh"

namespace
{
#include "sweep.h"

constexpr int SUMS = 6;
constexpr int CHUNK = 16;    /* patterns whose wishes for the probe are summed by one thread */
constexpr int SORTED = 4096; /* steps that are sorted in shared memory */

template <typename T> struct work {
    pt_sweep rule;
    int64_t n, nn, modes, rows, cols, cells, tiles;
    T *object, *probe, *eigen;
    T *change;      /* hold: sum of the object's directions */
    double *shares; /* opr: [pattern share] */
    const T *weight;
    frames seen;
    const double *visits, *switches;
    double *told;
    int64_t first; /* pattern of this batch */
    /* scratch */
    T *table, *chi, *turned, *next, *parts, *lit, *back, *spectrum, *slope, *direction;
    T *rest, *trend; /* opr: [pattern 2 nn] what is left over, and [2 nn] */
    double *part, *alpha, *one, *steps, *found; /* found: mean alpha, steps of object and probe */
    /* [slabs 2 nn]: sums of what patterns want of the probe, where one kernel visits them */
    T *slab;
    int64_t slabs;
    int64_t sorted; /* room for steps: a power of two */
    double *most;   /* [batch + 1 tiles]: of |O|^2, last row of |P|^2 */
};

template <typename T> __device__ inline int64_t size_of(const work<T> &w)
{
    const int64_t left = (int64_t)w.switches[PT_SWITCH_COUNT] - w.first;
    return left < w.rule.batch ? (left < 0 ? 0 : left) : w.rule.batch;
}
template <typename T> __device__ inline const double *visit_of(const work<T> &w, int64_t i)
{
    return w.visits + (w.first + i) * PT_VISITS;
}
template <typename T> __device__ inline int64_t corner_of(const work<T> &w, int64_t i)
{
    const double *v = visit_of(w, i);
    return (int64_t)v[PT_VISIT_ROW] * w.cols + (int64_t)v[PT_VISIT_COL];
}
template <typename T>
__device__ inline pair<T> object_at(const work<T> &w, int64_t at, int64_t r, int64_t c)
{
    return get(w.object, w.cells, at + r * w.cols + c);
}
template <typename T> __device__ inline const T *probe_of(const work<T> &w, int64_t i, int64_t m)
{
    const bool own = w.rule.shift || (w.rule.opr && m == 0);
    return own ? w.lit + (i * w.modes + m) * 2 * w.nn : w.probe + m * 2 * w.nn;
}
/* exp(-2 pi i (f_row d_row + f_col d_col)) */
template <typename T>
__device__ inline pair<T> ramp_of(const work<T> &w, int64_t i, int64_t r, int64_t c)
{
    const double *v = visit_of(w, i);
    const double turn =
        -2.0 * (cycles(w.n, r) * v[PT_VISIT_DROW] + cycles(w.n, c) * v[PT_VISIT_DCOL]);
    return {(T)cos(PI * turn), (T)sin(PI * turn)};
}
template <typename T> __device__ inline double max_of(const work<T> &w, int64_t row)
{
    double m = 0;
    for (int64_t k = 0; k < w.tiles; k++) m = fmax(m, w.most[row * w.tiles + k]);
    return m;
}
template <typename T> __device__ inline double probe_max(const work<T> &w, int64_t i)
{
    return max_of(w, w.rule.batch + (w.rule.shift ? i : 0));
}
/* How an update is weighed by the power of the other field; as on the CPU. */
template <typename T> __device__ inline T pie_weight(int rule, T alpha, T most, T light)
{
    if (rule == PT_EPIE) return most > 0 ? alpha / most : 0;
    if (rule == PT_PIE) {
        const T den = (light + alpha * most) * sqrt(most);
        return den > 0 ? sqrt(light) / den : 0;
    }
    const T den = (1 - alpha) * light + alpha * most;
    return den > 0 ? 1 / den : 0;
}
template <typename T> __device__ inline T object_weight(const work<T> &w, T most, pair<T> a)
{
    if (w.rule.rule == PT_LSQML) return 1;
    return pie_weight(w.rule.rule, (T)w.rule.probe_alpha, most, power(a));
}

/* ---- what passes read and write ---- */

template <typename T> struct load_base {
    work<T> w;
    int64_t per; /* images of a pattern */
    __device__ bool wanted(int image) const
    {
        return image / per < size_of(w);
    }
};
template <typename T> struct load_planes : load_base<T> {
    const T *from;
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        return get(from + (int64_t)image * 2 * this->w.nn, this->w.nn, (int64_t)r * this->w.n + c);
    }
};
/* The first mode of each pattern. */
template <typename T> struct load_first : load_base<T> {
    const T *from;
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        const work<T> &w = this->w;
        return get(from + image * w.modes * 2 * w.nn, w.nn, (int64_t)r * w.n + c);
    }
};
template <typename T> struct load_exit : load_base<T> {
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        const work<T> &w = this->w;
        const int64_t i = image / w.modes, m = image % w.modes;
        return times(get(probe_of(w, i, m), w.nn, (int64_t)r * w.n + c),
                     object_at(w, corner_of(w, i), r, c));
    }
};
template <typename T> struct load_shifted : load_base<T> {
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        const work<T> &w = this->w;
        const int64_t i = image / w.modes, m = image % w.modes;
        const T *spectrum =
            w.rule.opr && m == 0 ? w.lit + (int64_t)image * 2 * w.nn : w.spectrum + m * 2 * w.nn;
        const pair<T> v = times(get(spectrum, w.nn, (int64_t)r * w.n + c), ramp_of(w, i, r, c));
        const T by = 1 / (T)w.nn;
        return {v.re * by, v.im * by};
    }
};
template <typename T> struct load_wanted : load_base<T> {
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        const work<T> &w = this->w;
        const int64_t i = image / w.modes;
        const pair<T> a = object_at(w, corner_of(w, i), r, c),
                      u = times_c(
                          a, get(w.chi + (int64_t)image * 2 * w.nn, w.nn, (int64_t)r * w.n + c));
        const T by = object_weight(w, w.rule.rule == PT_LSQML ? (T)0 : (T)max_of(w, i), a);
        return {u.re * by, u.im * by};
    }
};
template <typename T> struct load_patch : load_base<T> {
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        return object_at(this->w, corner_of(this->w, image), r, c);
    }
};
template <typename T> struct load_slope : load_base<T> {
    int axis;
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        const work<T> &w = this->w;
        const pair<T> a = get(w.back + (int64_t)image * 2 * w.nn, w.nn, (int64_t)r * w.n + c);
        const T k = (T)(2.0 * PI * cycles(w.n, axis ? c : r)) / (T)w.nn;
        return {-k * a.im, k * a.re};
    }
};
template <typename T> struct store_planes {
    T *to;
    int64_t n;
    __device__ void operator()(int image, int row, int col, pair<T> v) const
    {
        put(to + (int64_t)image * 2 * n * n, n * n, (int64_t)row * n + col, v);
    }
};
template <typename T> struct store_first {
    T *to;
    int64_t n, modes;
    __device__ void operator()(int image, int row, int col, pair<T> v) const
    {
        put(to + image * modes * 2 * n * n, n * n, (int64_t)row * n + col, v);
    }
};
template <typename T> struct store_home { /* moved back to where the probe is */
    work<T> w;
    __device__ void operator()(int image, int row, int col, pair<T> v) const
    {
        const int64_t i = image / w.modes;
        const pair<T> u = times_c(ramp_of(w, i, row, col), v);
        const T by = 1 / (T)w.nn;
        put(w.back + (int64_t)image * 2 * w.nn, w.nn, (int64_t)row * w.n + col,
            pair<T>{u.re * by, u.im * by});
    }
};

/* A transform from a functor to another; `per` images of a pattern. */
template <typename T, bool INVERSE, class LOAD, class STORE>
void queue_transform(const work<T> &w, const transform<T> &f, int64_t images, int64_t per,
                     cudaStream_t stream, const LOAD &load, const STORE &store)
{
    if (is_whole<T>(f.n)) {
        queue_whole<T, INVERSE>(f, images, stream, load, store);
        return;
    }
    queue_pass<T, INVERSE>(f, images, stream, load, store_planes<T>{w.turned, w.n});
    load_planes<T> turned = {{w, per}, w.turned};
    queue_pass<T, INVERSE>(f, images, stream, turned, store);
}
} // namespace

#endif
