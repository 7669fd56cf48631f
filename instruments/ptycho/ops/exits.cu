/* exits.cu - exits.c on a device: the Fourier step of exit waves, and the sums of the overlap. */
#include "fields.cuh"

namespace
{
#include "exits.h"

constexpr int SUMS = 4;

template <typename T> struct work {
    pt_exits rule;
    int64_t n, nn, modes, rows, cols, cells, tiles, room;
    const T *object, *probe, *from;
    T *to;
    frames seen;
    const double *visits, *count;
    double *told;
    T *table, *wave, *turned;
    double *part, *keep; /* keep: share of the misfit that stays; below 0: no Fourier step */
};

template <typename T> __device__ inline int64_t corner_of(const work<T> &w, int64_t j)
{
    const double *v = w.visits + j * PT_VISITS;
    return (int64_t)v[PT_VISIT_ROW] * w.cols + (int64_t)v[PT_VISIT_COL];
}
/* P O of pixel p of mode m of pattern j. */
template <typename T>
__device__ inline pair<T> lit_of(const work<T> &w, int64_t j, int64_t m, int64_t p)
{
    return times(get(w.probe + m * 2 * w.nn, w.nn, p),
                 get(w.object, w.cells, corner_of(w, j) + p / w.n * w.cols + p % w.n));
}

template <typename T> struct load_base {
    work<T> w;
    __device__ bool wanted(int image) const
    {
        return image / w.modes < (int64_t)*w.count;
    }
};
template <typename T> struct load_lit : load_base<T> {
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        const work<T> &w = this->w;
        return lit_of(w, image / w.modes, image % w.modes, (int64_t)r * w.n + c);
    }
};
template <typename T> struct load_mixed : load_base<T> {
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        const work<T> &w = this->w;
        const int64_t p = (int64_t)r * w.n + c;
        const pair<T> lit = lit_of(w, image / w.modes, image % w.modes, p),
                      psi = get(w.from + (int64_t)image * 2 * w.nn, w.nn, p);
        const T x = (T)(1 - w.rule.c), y = (T)w.rule.c;
        return {x * psi.re + y * lit.re, x * psi.im + y * lit.im};
    }
};
template <typename T> struct load_planes : load_base<T> {
    const T *from;
    __device__ pair<T> operator()(int image, int r, int c) const
    {
        return get(from + (int64_t)image * 2 * this->w.nn, this->w.nn, (int64_t)r * this->w.n + c);
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

template <typename T> __device__ inline T model_of(const work<T> &w, int64_t j, int64_t p)
{
    T sum = 0;
    for (int64_t m = 0; m < w.modes; m++)
        sum += power(get(w.wave + (j * w.modes + m) * 2 * w.nn, w.nn, p));
    return sqrt(sum) / (T)w.n;
}

template <typename T> __global__ void compare(const work<T> w)
{
    const int64_t j = blockIdx.y, tile = blockIdx.x, n = w.n;
    if (j >= (int64_t)*w.count) return;
    const int64_t from = tile * TILE * n,
                  end = (tile + 1) * TILE * n < w.nn ? (tile + 1) * TILE * n : w.nn;
    double sum[SUMS] = {0, 0, 0, 0};
    for (int64_t p = from + threadIdx.x; p < end; p += blockDim.x) {
        const T s = seen<T>(w.seen, n, j, p / n, p % n);
        if (s < 0) continue;
        const T a = model_of(w, j, p);
        const double d = (double)(a - s);
        sum[0] += d * d;
        sum[1] += (double)s * (double)s;
        sum[2] += (double)a * (double)a;
        sum[3] += 1;
    }
    sum_block(sum);
    if (threadIdx.x == 0)
        for (int k = 0; k < SUMS; k++) w.part[(j * w.tiles + tile) * SUMS + k] = sum[k];
}

/* Sums over the tiles: statistics of the model, or the decision of the Fourier step. */
template <typename T> __global__ void conclude(const work<T> w, bool decide)
{
    const int64_t count = (int64_t)*w.count;
    for (int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; j < count;
         j += (int64_t)gridDim.x * blockDim.x) {
        double sum[SUMS] = {0, 0, 0, 0};
        for (int64_t t = 0; t < w.tiles; t++)
            for (int k = 0; k < SUMS; k++) sum[k] += w.part[(j * w.tiles + t) * SUMS + k];
        if (decide) {
            const double mean = sum[3] > 0 ? sum[0] / sum[3] : 0, bound = w.rule.bound;
            w.keep[j] = bound < 0 ? 0 : mean <= bound ? -1 : sqrt(bound / mean);
            continue;
        }
        double *told = w.told + j * PT_TOLD;
        told[PT_TOLD_MISFIT] = sum[0];
        told[PT_TOLD_COUNTS] = sum[1];
        told[PT_TOLD_MODEL] = sum[2];
    }
}

template <typename T> __global__ void project(const work<T> w)
{
    const int64_t all = (int64_t)*w.count * w.nn, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += step) {
        const int64_t j = k / w.nn, p = k % w.nn;
        if (w.keep[j] < 0) continue;
        const T s = seen<T>(w.seen, w.n, j, p / w.n, p % w.n), a = model_of(w, j, p),
                per = 1 / (T)w.nn;
        T by = per;
        if (s >= 0) by = ((T)w.keep[j] * (a - s) + s) / (a + (T)w.rule.epsilon) * per;
        for (int64_t m = 0; m < w.modes; m++) {
            T *f = w.wave + (j * w.modes + m) * 2 * w.nn;
            f[p] *= by;
            f[w.nn + p] *= by;
        }
    }
}

/* The new exit waves; zeros behind the last pattern. */
template <typename T> __global__ void finish(const work<T> w)
{
    const int64_t all = w.room * w.modes * w.nn, step = (int64_t)gridDim.x * blockDim.x,
                  count = (int64_t)*w.count;
    const double a = w.rule.a, b = w.rule.b, whole = a + b * w.rule.c;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += step) {
        const int64_t image = k / w.nn, j = image / w.modes, p = k % w.nn;
        pair<T> v = {0, 0};
        if (j < count) {
            const pair<T> lit = lit_of(w, j, image % w.modes, p);
            if (w.rule.first) {
                v = lit;
            } else {
                const pair<T> psi = get(w.from + image * 2 * w.nn, w.nn, p);
                const bool still = w.keep[j] < 0;
                const pair<T> y = still ? pair<T>{0, 0} : get(w.wave + image * 2 * w.nn, w.nn, p);
                const T x = (T)(still ? 1 - whole : 1 - a - b), z = (T)(still ? whole : a),
                        u = (T)(still ? 0 : b);
                v = {x * psi.re + z * lit.re + u * y.re, x * psi.im + z * lit.im + u * y.im};
            }
        }
        put(w.to + image * 2 * w.nn, w.nn, p, v);
    }
}

template <typename T> uint64_t arrange(work<T> *w, char *base)
{
    uint64_t bytes = 0;
    auto take = [&](int64_t n, size_t size) -> char * {
        char *p = base ? base + bytes : nullptr;
        bytes += ((uint64_t)n * size + 255) / 256 * 256;
        return p;
    };
    const int64_t fields = w->room * w->modes * 2 * w->nn;
    w->table = (T *)take(2 * w->n, sizeof(T));
    w->wave = (T *)take(fields, sizeof(T));
    w->turned = (T *)take(fields, sizeof(T));
    w->part = (double *)take(w->room * w->tiles * SUMS, sizeof(double));
    w->keep = (double *)take(w->room, sizeof(double));
    return bytes;
}

template <typename T> work<T> work_of(const fth_call *call)
{
    const fth_node *node = call->node;
    work<T> w = {};
    w.rule = *(const pt_exits *)node->attr;
    w.room = node->in[PT_EXITS_PATTERNS].size[0];
    w.n = node->in[PT_EXITS_PATTERNS].size[1];
    w.nn = w.n * w.n;
    w.modes = node->in[PT_EXITS_PROBE].size[0];
    w.rows = node->in[PT_EXITS_OBJECT].size[1];
    w.cols = node->in[PT_EXITS_OBJECT].size[2];
    w.cells = w.rows * w.cols;
    w.tiles = (w.n + TILE - 1) / TILE;
    return w;
}

template <typename T, bool INVERSE, class LOAD>
void queue_transform(const work<T> &w, const transform<T> &f, cudaStream_t stream, const LOAD &load)
{
    queue_pass<T, INVERSE>(f, w.room * w.modes, stream, load, store_planes<T>{w.turned, w.n});
    load_planes<T> turned = {{w}, w.turned};
    queue_pass<T, INVERSE>(f, w.room * w.modes, stream, turned, store_planes<T>{w.wave, w.n});
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const cudaStream_t stream = fth_cuda_stream(call);
    work<T> w = work_of<T>(call);
    arrange(&w, (char *)call->scratch);
    w.object = (const T *)call->in[PT_EXITS_OBJECT].data;
    w.probe = (const T *)call->in[PT_EXITS_PROBE].data;
    w.visits = (const double *)call->in[PT_EXITS_VISITS].data;
    w.count = (const double *)call->in[PT_EXITS_COUNT].data;
    w.from = (const T *)call->in[PT_EXITS_WAVES].data;
    w.to = (T *)call->out[0].data;
    w.told = (double *)call->out[1].data;
    w.seen = {call->in[PT_EXITS_PATTERNS].data,  nullptr,       0,
              node->in[PT_EXITS_PATTERNS].dtype, w.rule.counts, w.rule.centred};
    if (w.rule.masked) {
        w.seen.mask = (const uint8_t *)call->in[PT_EXITS_MASK].data;
        w.seen.mask_step = node->in[PT_EXITS_MASK].n_axes == 3 ? w.nn : 0;
    }
    const dim3 tiles((unsigned)w.tiles, (unsigned)w.room);
    const unsigned some = (unsigned)((w.room + THREADS - 1) / THREADS),
                   all = fth_cuda_blocks(w.room * w.modes * w.nn, THREADS);
    const transform<T> f = transform_of<T>(w.n, w.table);
    FTH_LAUNCH(fill_table<T>, 1, THREADS, stream, w.table, (int)w.n);
    if (w.told) {
        FTH_CUDA_TRY(
            cudaMemsetAsync(w.told, 0, (size_t)(w.room * PT_TOLD) * sizeof(double), stream),
            "clearing the statistics of patterns", call->err);
        queue_transform<T, false>(w, f, stream, load_lit<T>{{w}});
        FTH_LAUNCH(compare<T>, tiles, THREADS, stream, w);
        FTH_LAUNCH(conclude<T>, some, THREADS, stream, w, false);
    }
    if (w.to && !w.rule.first) {
        queue_transform<T, false>(w, f, stream, load_mixed<T>{{w}});
        FTH_LAUNCH(compare<T>, tiles, THREADS, stream, w);
        FTH_LAUNCH(conclude<T>, some, THREADS, stream, w, true);
        FTH_LAUNCH(project<T>, all, THREADS, stream, w);
        load_planes<T> wave = {{w}, w.wave};
        queue_transform<T, true>(w, f, stream, wave);
    }
    if (w.to) FTH_LAUNCH(finish<T>, all, THREADS, stream, w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

uint64_t scratch(const fth_call *call)
{
    if (call->node->in[0].dtype == FTH_F32) {
        work<float> w = work_of<float>(call);
        return arrange(&w, nullptr);
    }
    work<double> w = work_of<double>(call);
    return arrange(&w, nullptr);
}

bool supports(const fth_node *node)
{
    const int64_t n = node->in[PT_EXITS_PATTERNS].size[1],
                  images = node->in[PT_EXITS_WAVES].size[0] * node->in[PT_EXITS_WAVES].size[1];
    return images < 65536 &&
           (node->in[0].dtype == FTH_F32 ? width_of<float>(n) : width_of<double>(n)) > 0;
}

fth_status run(const fth_call *call)
{
    return call->node->in[0].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}

/* ---- the overlap ---- */

template <typename T> struct sums {
    int64_t n, nn, modes, rows, cols, cells;
    const T *other, *waves;
    const double *visits, *count;
    T *above, *below;
};

template <typename T> __global__ void object_sums(const sums<T> w)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x, count = (int64_t)*w.count;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < w.cells; k += step) {
        const int64_t r = k / w.cols, c = k % w.cols;
        pair<T> above = get(w.above, w.cells, k);
        T below = w.below[k];
        for (int64_t j = 0; j < count; j++) {
            const int64_t y = r - (int64_t)w.visits[j * PT_VISITS + PT_VISIT_ROW],
                          x = c - (int64_t)w.visits[j * PT_VISITS + PT_VISIT_COL], p = y * w.n + x;
            if (y < 0 || x < 0 || y >= w.n || x >= w.n) continue;
            for (int64_t m = 0; m < w.modes; m++) {
                const pair<T> a = get(w.other + m * 2 * w.nn, w.nn, p),
                              v = times_c(a, get(w.waves + (j * w.modes + m) * 2 * w.nn, w.nn, p));
                above = {above.re + v.re, above.im + v.im};
                below += power(a);
            }
        }
        put(w.above, w.cells, k, above);
        w.below[k] = below;
    }
}

template <typename T> __global__ void probe_sums(const sums<T> w)
{
    const int64_t all = w.modes * w.nn, step = (int64_t)gridDim.x * blockDim.x,
                  count = (int64_t)*w.count;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += step) {
        const int64_t m = k / w.nn, p = k % w.nn;
        pair<T> above = get(w.above + m * 2 * w.nn, w.nn, p);
        T below = w.below[p];
        for (int64_t j = 0; j < count; j++) {
            const double *v = w.visits + j * PT_VISITS;
            const int64_t at =
                ((int64_t)v[PT_VISIT_ROW] + p / w.n) * w.cols + (int64_t)v[PT_VISIT_COL] + p % w.n;
            const pair<T> a = get(w.other, w.cells, at),
                          u = times_c(a, get(w.waves + (j * w.modes + m) * 2 * w.nn, w.nn, p));
            above = {above.re + u.re, above.im + u.im};
            below += power(a);
        }
        put(w.above + m * 2 * w.nn, w.nn, p, above);
        if (m == w.modes - 1) w.below[p] = below;
    }
}

template <typename T> fth_status overlap_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const cudaStream_t stream = fth_cuda_stream(call);
    const bool probe = ((const pt_overlap *)node->attr)->probe;
    const fth_desc *waves = &node->in[PT_OVERLAP_WAVES],
                   *object = &node->in[probe ? PT_OVERLAP_OTHER : PT_OVERLAP_ABOVE];
    sums<T> w = {};
    w.n = waves->size[3];
    w.nn = w.n * w.n;
    w.modes = waves->size[1];
    w.rows = object->size[1];
    w.cols = object->size[2];
    w.cells = w.rows * w.cols;
    w.other = (const T *)call->in[PT_OVERLAP_OTHER].data;
    w.waves = (const T *)call->in[PT_OVERLAP_WAVES].data;
    w.visits = (const double *)call->in[PT_OVERLAP_VISITS].data;
    w.count = (const double *)call->in[PT_OVERLAP_COUNT].data;
    w.above = (T *)call->out[0].data;
    w.below = (T *)call->out[1].data;
    for (int i = 0; i < 2; i++)
        FTH_CUDA_TRY(cudaMemcpyAsync(call->out[i].data, call->in[PT_OVERLAP_ABOVE + i].data,
                                     (size_t)fth_desc_count(&node->out[i]) * sizeof(T),
                                     cudaMemcpyDeviceToDevice, stream),
                     "copying the sums", call->err);
    if (probe)
        FTH_LAUNCH(probe_sums<T>, fth_cuda_blocks(w.modes * w.nn, THREADS), THREADS, stream, w);
    else
        FTH_LAUNCH(object_sums<T>, fth_cuda_blocks(w.cells, THREADS), THREADS, stream, w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status overlap(const fth_call *call)
{
    return call->node->in[PT_OVERLAP_WAVES].dtype == FTH_F32 ? overlap_as<float>(call)
                                                             : overlap_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(ptycho_exits) = {
    .op = "ptycho_exits", .supports = supports, .scratch = scratch, .run = run};
FTH_CUDA_KERNEL(ptycho_overlap) = {.op = "ptycho_overlap", .run = overlap};
