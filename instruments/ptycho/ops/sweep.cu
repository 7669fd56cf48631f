/* sweep.cu - sweep.c on a device: the phases of a batch as kernels, batch after batch.
 *
 * How many patterns there are and what is updated stands in the device's memory, so every batch of
 * the piece is queued, and kernels of those behind the last pattern return at once. Updates of
 * probe and object are gathers: a thread owns a pixel and adds the patterns in their order.
 */
#include "opr.cuh"
#include "visit.cuh"

namespace
{
/* ---- projecting ---- */

template <typename T> __device__ inline T model_of(const work<T> &w, int64_t i, int64_t p)
{
    T sum = 0;
    for (int64_t m = 0; m < w.modes; m++)
        sum += power(get(w.chi + (i * w.modes + m) * 2 * w.nn, w.nn, p));
    return sum;
}
template <typename T> __device__ inline double *part_of(const work<T> &w, int64_t i, int64_t tile)
{
    return w.part + (i * w.tiles + tile) * SUMS;
}

template <typename T> __global__ void project(const work<T> w)
{
    const int64_t i = blockIdx.y, tile = blockIdx.x, n = w.n;
    if (i >= size_of(w)) return;
    const int64_t from = tile * TILE * n,
                  end = (tile + 1) * TILE * n < w.nn ? (tile + 1) * TILE * n : w.nn;
    const T alpha = w.rule.poisson ? (T)w.alpha[i] : 0, eps = (T)w.rule.epsilon;
    double sum[3] = {0, 0, 0};
    for (int64_t p = from + threadIdx.x; p < end; p += blockDim.x) {
        const T s = seen<T>(w.seen, n, (int64_t)visit_of(w, i)[PT_VISIT_FRAME], p / n, p % n),
                a = sqrt(model_of(w, i, p)) / (T)n;
        T by = 0;
        if (s >= 0) {
            const double d = (double)(a - s);
            sum[0] += d * d;
            sum[1] += (double)s * (double)s;
            sum[2] += (double)a * (double)a;
            by = w.rule.poisson ? alpha * (s * s / (a * a + (T)1e-6) - 1) : s / (a + eps) - 1;
        }
        by /= (T)w.nn;
        for (int64_t m = 0; m < w.modes; m++) {
            T *f = w.chi + (i * w.modes + m) * 2 * w.nn;
            f[p] *= by;
            f[w.nn + p] *= by;
        }
    }
    sum_block(sum);
    if (threadIdx.x == 0)
        for (int k = 0; k < 3; k++) part_of(w, i, tile)[k] = sum[k];
}

template <typename T> __global__ void tell(const work<T> w)
{
    const int64_t size = size_of(w);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < size;
         i += (int64_t)gridDim.x * blockDim.x) {
        double sum[3] = {0, 0, 0};
        for (int64_t t = 0; t < w.tiles; t++)
            for (int k = 0; k < 3; k++) sum[k] += part_of(w, i, t)[k];
        double *told = w.told + (w.first + i) * PT_TOLD;
        told[PT_TOLD_MISFIT] = sum[0];
        told[PT_TOLD_COUNTS] = sum[1];
        told[PT_TOLD_MODEL] = sum[2];
        told[PT_TOLD_ALPHA] = w.rule.poisson ? w.alpha[i] : visit_of(w, i)[PT_VISIT_ALPHA];
    }
}

/* ---- the Poisson model ---- */

template <typename T> __global__ void alpha_begin(const work<T> w)
{
    const int64_t size = size_of(w);
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x)
        w.alpha[i] = visit_of(w, i)[PT_VISIT_ALPHA];
    __syncthreads();
    if (threadIdx.x != 0 || size == 0) return;
    double sum = 0;
    for (int64_t i = 0; i < size; i++) sum += w.alpha[i];
    w.found[0] = sum / (double)size;
}
template <typename T> __global__ void alpha_sums(const work<T> w)
{
    const int64_t i = blockIdx.y, tile = blockIdx.x, n = w.n;
    if (i >= size_of(w)) return;
    const int64_t from = tile * TILE * n,
                  end = (tile + 1) * TILE * n < w.nn ? (tile + 1) * TILE * n : w.nn;
    const T mean = (T)w.found[0];
    double sum[2] = {0, 0};
    for (int64_t p = from + threadIdx.x; p < end; p += blockDim.x) {
        const T s = seen<T>(w.seen, n, (int64_t)visit_of(w, i)[PT_VISIT_FRAME], p / n, p % n);
        if (s < 0) continue;
        const T a = sqrt(model_of(w, i, p)) / (T)n, a2 = a * a, k = s * s,
                xi = 1 - k / (a2 + (T)1e-6);
        sum[0] += (double)(xi * (a2 - k / (1 - mean * xi)));
        sum[1] += (double)(xi * xi * a2);
    }
    sum_block(sum);
    if (threadIdx.x == 0)
        for (int k = 0; k < 2; k++) part_of(w, i, tile)[k] = sum[k];
}
template <typename T> __global__ void alpha_step(const work<T> w)
{
    const int64_t size = size_of(w);
    const double mean = w.found[0];
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        double above = 0, below = 0;
        for (int64_t t = 0; t < w.tiles; t++) {
            above += part_of(w, i, t)[0];
            below += part_of(w, i, t)[1];
        }
        const double a = 0.5 * mean + 0.5 * (below > 0 ? above / below : mean);
        w.alpha[i] = !(a > 0) ? 0 : a > 1 ? 1 : a;
    }
    __syncthreads();
    if (threadIdx.x != 0 || size == 0) return;
    double sum = 0;
    for (int64_t i = 0; i < size; i++) sum += w.alpha[i];
    w.found[0] = sum / (double)size;
}

/* ---- maxima ---- */

/* Row i of `most`: |patch|^2 of pattern i; rows behind the batch: |P|^2, as each pattern sees it.
 */
template <typename T> __global__ void maxima(const work<T> w)
{
    const int64_t row = blockIdx.y, tile = blockIdx.x, n = w.n;
    const bool of_probe = row >= w.rule.batch;
    const int64_t i = of_probe ? row - w.rule.batch : row;
    if (i >= size_of(w)) return;
    const int64_t from = tile * TILE * n,
                  end = (tile + 1) * TILE * n < w.nn ? (tile + 1) * TILE * n : w.nn,
                  at = corner_of(w, i);
    double most = 0;
    for (int64_t p = from + threadIdx.x; p < end; p += blockDim.x) {
        T v = 0;
        if (of_probe)
            for (int64_t m = 0; m < w.modes; m++) v += power(get(probe_of(w, i, m), w.nn, p));
        else
            v = power(object_at(w, at, p / n, p % n));
        most = fmax(most, (double)v);
    }
    most = max_block(most);
    if (threadIdx.x == 0) w.most[row * w.tiles + tile] = most;
}

/* ---- the probe ---- */

/* What is summed for the probe: sums that blocks left, or patterns of the batch. */
template <typename T> __device__ inline int64_t wishes_of(const work<T> &w)
{
    const int64_t size = size_of(w);
    return w.slabs > 0 && w.slabs < size ? w.slabs : size;
}
template <typename T>
__device__ inline pair<T> wish_of(const work<T> &w, int64_t i, int64_t m, int64_t p, int r, int c)
{
    const int64_t image = i * w.modes + m;
    if (w.slabs > 0) return get(w.slab + i * 2 * w.nn, w.nn, p);
    if (w.rule.shift) return get(w.back + image * 2 * w.nn, w.nn, p);
    const pair<T> a = object_at(w, corner_of(w, i), r, c),
                  u = times_c(a, get(w.chi + image * 2 * w.nn, w.nn, p));
    if (w.rule.rule == PT_LSQML) return u;
    const T by = object_weight(w, (T)max_of(w, i), a);
    return {u.re * by, u.im * by};
}

/* Sums over a chunk (blockIdx.y) of them; one chunk is the mean already. */
template <typename T> __global__ void gather_probe(const work<T> w)
{
    const int64_t size = size_of(w), wishes = wishes_of(w), all = w.modes * w.nn,
                  step = (int64_t)gridDim.x * blockDim.x, from = (int64_t)blockIdx.y * CHUNK,
                  end = from + CHUNK < wishes ? from + CHUNK : wishes;
    if (from >= wishes || w.switches[PT_SWITCH_PROBE] == 0) return;
    const bool alone = gridDim.y == 1;
    T *to = alone ? w.next : w.parts + (int64_t)blockIdx.y * 2 * all;
    const T share = alone ? 1 / (T)size : 1;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += step) {
        const int64_t m = w.modes == 1 ? 0 : k / w.nn, p = k - m * w.nn;
        const int r = (int)p / (int)w.n, c = (int)p - r * (int)w.n;
        pair<T> sum = {0, 0};
#pragma unroll 4
        for (int64_t i = from; i < end; i++) {
            const pair<T> u = wish_of(w, i, m, p, r, c);
            sum = {sum.re + u.re, sum.im + u.im};
        }
        put(to + m * 2 * w.nn, w.nn, p, pair<T>{sum.re * share, sum.im * share});
    }
}
/* The mean over the batch, chunks in their order. */
template <typename T> __global__ void join_probe(const work<T> w)
{
    const int64_t size = size_of(w), all = 2 * w.modes * w.nn, chunks = (size + CHUNK - 1) / CHUNK,
                  step = (int64_t)gridDim.x * blockDim.x;
    if (size == 0 || w.switches[PT_SWITCH_PROBE] == 0) return;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += step) {
        T sum = 0;
#pragma unroll 8
        for (int64_t i = 0; i < chunks; i++) sum += w.parts[i * all + k];
        w.next[k] = sum * (1 / (T)size);
    }
}
/* ---- the object ---- */

/* What a pattern wants of a pixel of its patch. */
template <typename T> __device__ inline pair<T> want(const work<T> &w, int64_t i, int64_t p)
{
    pair<T> sum = {0, 0};
    T light = 0;
    for (int64_t m = 0; m < w.modes; m++) {
        const pair<T> a = get(probe_of(w, i, m), w.nn, p),
                      v = times_c(a, get(w.chi + (i * w.modes + m) * 2 * w.nn, w.nn, p));
        sum = {sum.re + v.re, sum.im + v.im};
        light += power(a);
    }
    if (w.rule.rule == PT_LSQML) return sum;
    const T by = pie_weight(w.rule.rule, (T)w.rule.object_alpha, (T)probe_max(w, i), light);
    return {sum.re * by, sum.im * by};
}

/* A tile of the canvas: the patterns that touch it, in their order. */
template <typename T> __global__ void place(const work<T> w)
{
    __shared__ touching list;
    const int64_t size = size_of(w), n = w.n;
    const tile_pixel pixel(w.rows, w.cols);
    const int64_t at = (int64_t)pixel.row * w.cols + pixel.col;
    const bool inside = pixel.inside, lsqml = w.rule.rule == PT_LSQML;
    if (size == 0) return;
    pair<T> sum = {0, 0};
    if (inside && !lsqml) sum = get(w.object, w.cells, at);
    bool any = false;
    for (int64_t base = 0; base < size; base += THREADS) {
        find_touching(&list, visit_of(w, 0), PT_VISITS, PT_VISIT_ROW, base, size, n);
#pragma unroll 4
        for (int k = 0; k < list.count; k++) {
            const int64_t p = pixel.in(list, k, n);
            const pair<T> u = want(w, list.which[k], p < 0 ? 0 : p);
            if (p < 0) continue;
            sum = {sum.re + u.re, sum.im + u.im};
            any = true;
        }
    }
    if (!inside) return;
    if (lsqml) {
        const T by = any ? w.weight[at] : 0;
        put(w.direction, w.cells, at, pair<T>{sum.re * by, sum.im * by});
    } else if (any) {
        put(w.object, w.cells, at, sum);
    }
}

/* ---- the steps of lsqml ---- */

template <typename T> __global__ void step_sums(const work<T> w)
{
    const int64_t i = blockIdx.y;
    if (i >= size_of(w)) return;
    const int64_t at = corner_of(w, i);
    const int n = (int)w.n, nn = n * n, cols = (int)w.cols, tile = (int)blockIdx.x * TILE * n,
              end = tile + TILE * n < nn ? tile + TILE * n : nn;
    const bool probe_on = w.switches[PT_SWITCH_PROBE] != 0;
    const T *probe = probe_of(w, i, 0), *chi = w.chi + i * w.modes * 2 * w.nn;
    T few[SUMS] = {0, 0, 0, 0, 0, 0};
#pragma unroll 4
    for (int p = tile + (int)threadIdx.x; p < end; p += THREADS) {
        const int r = p / n;
        const int64_t q = at + r * cols + (p - r * n);
        const pair<T> x = get(chi, nn, p),
                      u = times(get(w.direction, w.cells, q), get(probe, nn, p));
        few[0] += power(u);
        few[4] += times_c(u, x).re;
        if (!probe_on) continue;
        const pair<T> v = times(get(w.next, nn, p), get(w.object, w.cells, q)), uv = times_c(v, u);
        few[1] += power(v);
        few[2] += uv.re;
        few[3] += uv.im;
        few[5] += times_c(v, x).re;
    }
    double sum[SUMS];
    for (int k = 0; k < SUMS; k++) sum[k] = (double)few[k];
    sum_block(sum);
    if (threadIdx.x == 0)
        for (int k = 0; k < SUMS; k++) part_of(w, i, blockIdx.x)[k] = sum[k];
}

/* By swaps at fixed distances; `n` is a power of two. */
__device__ inline void sort_steps(double *v, int64_t n)
{
    for (int64_t run = 2; run <= n; run *= 2)
        for (int64_t apart = run / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
                const int64_t k = i ^ apart;
                if (k < i) continue;
                const double a = v[i], b = v[k];
                if ((a > b) == ((i & run) == 0)) {
                    v[i] = b;
                    v[k] = a;
                }
            }
        }
    __syncthreads();
}

/* One block: each pattern's best pair of steps, the mean without the outermost tenths, the mean. */
template <typename T> __global__ void find_steps(const work<T> w)
{
    __shared__ double here[SORTED];
    const int64_t size = size_of(w);
    if (size == 0) return;
    const bool probe_on = w.switches[PT_SWITCH_PROBE] != 0;
    double *sorted = w.sorted <= SORTED ? here : w.steps, mean[2] = {0, 0}, probe[1] = {0};
    int64_t room = 2;
    while (room < size) room *= 2;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        double o[SUMS] = {1.2e-7, 1.2e-7, 0, 0, 0, 0};
        for (int64_t t = 0; t < w.tiles; t++)
            for (int k = 0; k < SUMS; k++) o[k] += part_of(w, i, t)[k];
        for (int k = 0; k < SUMS; k++) w.one[i * SUMS + k] = o[k];
        mean[0] += o[0];
        mean[1] += o[1];
    }
    sum_block(mean);
    for (int64_t i = threadIdx.x; i < room; i += blockDim.x) {
        if (i >= size) {
            sorted[i] = HUGE_VAL;
            continue;
        }
        const double *o = w.one + i * SUMS;
        double so = 0.5 * o[4] / o[0], sp = 0;
        if (probe_on) {
            const double a11 = o[0] + 0.1 * mean[0] / (double)size,
                         a22 = o[1] + 0.1 * mean[1] / (double)size,
                         det = a11 * a22 - o[2] * o[2] - o[3] * o[3];
            so = det > 0 ? 0.9 * (a22 * o[4] - o[2] * o[5]) / det : 0;
            sp = det > 0 ? 0.9 * (a11 * o[5] - o[2] * o[4]) / det : 0;
        }
        sorted[i] = so > 0 ? so / (double)w.modes : 0;
        probe[0] += sp > 0 ? sp : 0;
    }
    sort_steps(sorted, room);
    const int64_t cut = size / 10;
    double both[2] = {0, probe[0]};
    for (int64_t i = cut + threadIdx.x; i < size - cut; i += blockDim.x) both[0] += sorted[i];
    sum_block(both);
    if (threadIdx.x > 0) return;
    w.found[1] = both[0] / (double)(size - 2 * cut);
    w.found[2] = w.switches[PT_SWITCH_SHARE] * both[1] / (double)size;
    w.told[w.first * PT_TOLD + PT_TOLD_STEP] = w.found[1];
}
/* Object (of lsqml) and probe take their steps. */
template <typename T> __global__ void take_steps(const work<T> w)
{
    const bool lsqml = w.rule.rule == PT_LSQML;
    const int64_t probe = w.switches[PT_SWITCH_PROBE] != 0 ? 2 * w.modes * w.nn : 0,
                  all = probe + (lsqml ? 2 * w.cells : 0), step = (int64_t)gridDim.x * blockDim.x;
    if (size_of(w) == 0) return;
    const T by_object = lsqml ? (T)w.found[1] : 0, by_probe = lsqml ? (T)w.found[2] : 1;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += step)
        if (k < probe)
            w.probe[k] += by_probe * w.next[k];
        else
            (w.rule.hold ? w.change : w.object)[k - probe] +=
                (w.rule.hold ? 1 : by_object) * w.direction[k - probe];
}

/* ---- positions ---- */

template <typename T> __global__ void tell_position(const work<T> w, int axis)
{
    const int64_t i = blockIdx.x;
    if (i >= size_of(w)) return;
    const T *probe = probe_of(w, i, 0), *chi = w.chi + i * w.modes * 2 * w.nn,
            *slope = w.slope + i * 2 * w.nn;
    double sum[2] = {0, 0};
    for (int64_t p = threadIdx.x; p < w.nn; p += blockDim.x) {
        const pair<T> u = times(get(probe, w.nn, p), get(slope, w.nn, p));
        sum[0] += (double)times_c(u, get(chi, w.nn, p)).re;
        sum[1] += (double)power(u);
    }
    sum_block(sum);
    if (threadIdx.x == 0 && w.switches[PT_SWITCH_POSITIONS] != 0)
        w.told[(w.first + i) * PT_TOLD + PT_TOLD_DROW + axis] = sum[1] > 0 ? sum[0] / sum[1] : 0;
}

/* ---- the order of things ---- */

template <typename T> int64_t chunks_of(const work<T> &w)
{
    return ((w.slabs ? w.slabs : w.rule.batch) + CHUNK - 1) / CHUNK;
}

template <typename T> uint64_t arrange(work<T> *w, char *base)
{
    uint64_t bytes = 0;
    auto take = [&](int64_t n, size_t size) -> char * {
        char *p = base ? base + bytes : nullptr;
        bytes += ((uint64_t)n * size + 255) / 256 * 256;
        return p;
    };
    const pt_sweep &r = w->rule;
    const int64_t fields = 2 * w->nn * w->modes, batch = r.batch * fields;
    w->table = (T *)take(2 * w->n, sizeof(T));
    w->chi = (T *)take(batch, sizeof(T));
    if (!is_whole<T>(w->n)) w->turned = (T *)take(batch, sizeof(T));
    w->next = (T *)take(fields, sizeof(T));
    w->slabs = slabs_of(*w);
    if (w->slabs) w->slab = (T *)take(w->slabs * fields, sizeof(T));
    if (chunks_of(*w) > 1) w->parts = (T *)take(chunks_of(*w) * fields, sizeof(T));
    if (r.shift || r.opr) w->lit = (T *)take(batch, sizeof(T));
    if (r.opr) {
        w->rest = (T *)take(r.batch * 2 * w->nn, sizeof(T));
        w->trend = (T *)take(2 * w->nn, sizeof(T));
    }
    if (r.shift) {
        w->spectrum = (T *)take(fields, sizeof(T));
    }
    if ((r.shift && !w->slabs) || r.positions) w->back = (T *)take(batch, sizeof(T));
    if (r.positions) w->slope = (T *)take(r.batch * 2 * w->nn, sizeof(T));
    if (r.rule == PT_LSQML) w->direction = (T *)take(2 * w->cells, sizeof(T));
    w->part = (double *)take(r.batch * w->tiles * SUMS, sizeof(double));
    w->alpha = (double *)take(r.batch, sizeof(double));
    w->one = (double *)take(r.batch * SUMS, sizeof(double));
    for (w->sorted = 2; w->sorted < r.batch;) w->sorted *= 2;
    if (w->sorted > SORTED) w->steps = (double *)take(w->sorted, sizeof(double));
    w->found = (double *)take(4, sizeof(double));
    w->most = (double *)take(2 * (int64_t)r.batch * w->tiles, sizeof(double));
    return bytes;
}

template <typename T> work<T> work_of(const fth_call *call)
{
    const fth_node *node = call->node;
    work<T> w = {};
    w.rule = *(const pt_sweep *)node->attr;
    w.n = node->in[PT_SWEEP_PATTERNS].size[1];
    w.nn = w.n * w.n;
    w.modes = node->in[PT_SWEEP_PROBE].size[0];
    w.rows = node->in[PT_SWEEP_OBJECT].size[1];
    w.cols = node->in[PT_SWEEP_OBJECT].size[2];
    w.cells = w.rows * w.cols;
    w.tiles = (w.n + TILE - 1) / TILE;
    return w;
}

template <typename T>
void queue_projection(const work<T> &w, const transform<T> &f, cudaStream_t stream)
{
    const pt_sweep &r = w.rule;
    const int64_t images = r.batch * w.modes;
    const dim3 tiles((unsigned)w.tiles, (unsigned)r.batch);
    const store_planes<T> to_chi = {w.chi, w.n};
    const load_planes<T> chi = {{w, w.modes}, w.chi};
    if (r.shift) {
        /* images of the probe itself are wanted as long as there is a pattern */
        const load_planes<T> probe = {{w, w.modes}, w.probe};
        queue_transform<T, false>(w, f, w.modes, w.modes, stream, probe,
                                  store_planes<T>{w.spectrum, w.n});
    }
    if (visits_whole(w)) {
        queue_visits(w, stream);
        return;
    }
    if (r.opr)
        FTH_LAUNCH(mix_probe<T>, dim3(fth_cuda_blocks(2 * w.nn, THREADS), (unsigned)r.batch),
                   THREADS, stream, w);
    if (r.shift) {
        if (r.opr)
            queue_transform<T, false>(w, f, r.batch, 1, stream, load_first<T>{{w, 1}, w.lit},
                                      store_first<T>{w.lit, w.n, w.modes});
        queue_transform<T, true>(w, f, images, w.modes, stream, load_shifted<T>{{w, w.modes}},
                                 store_planes<T>{w.lit, w.n});
    }
    queue_transform<T, false>(w, f, images, w.modes, stream, load_exit<T>{{w, w.modes}}, to_chi);
    if (r.poisson) {
        FTH_LAUNCH(alpha_begin<T>, 1, THREADS, stream, w);
        for (int k = 0; k < 2; k++) {
            FTH_LAUNCH(alpha_sums<T>, tiles, THREADS, stream, w);
            FTH_LAUNCH(alpha_step<T>, 1, THREADS, stream, w);
        }
    }
    FTH_LAUNCH(project<T>, tiles, THREADS, stream, w);
    FTH_LAUNCH(tell<T>, (unsigned)((r.batch + THREADS - 1) / THREADS), THREADS, stream, w);
    if (r.rule == PT_LOOK) return;
    queue_transform<T, true>(w, f, images, w.modes, stream, chi, to_chi);
}

template <typename T>
void queue_positions(const work<T> &w, const transform<T> &f, cudaStream_t stream)
{
    const int64_t batch = w.rule.batch;
    queue_transform<T, false>(w, f, batch, 1, stream, load_patch<T>{{w, 1}},
                              store_planes<T>{w.back, w.n});
    for (int axis = 0; axis < 2; axis++) {
        queue_transform<T, true>(w, f, batch, 1, stream, load_slope<T>{{w, 1}, axis},
                                 store_planes<T>{w.slope, w.n});
        FTH_LAUNCH(tell_position<T>, (unsigned)batch, THREADS, stream, w, axis);
    }
}

template <typename T>
void queue_updates(const work<T> &w, const transform<T> &f, cudaStream_t stream)
{
    const pt_sweep &r = w.rule;
    const bool lsqml = r.rule == PT_LSQML, visited = visits_whole(w);
    const dim3 tiles((unsigned)w.tiles, (unsigned)r.batch),
        canvas = tiles_of(w.rows, w.cols),
        pairs_of((unsigned)w.tiles, (unsigned)(r.batch + (r.shift ? r.batch : 1)));
    const unsigned pixels = fth_cuda_blocks(w.modes * w.nn, THREADS),
                   chunks = (unsigned)chunks_of(w);
    auto probe_direction = [&] {
        if (r.shift && !w.slabs)
            queue_transform<T, false>(w, f, r.batch * w.modes, w.modes, stream,
                                      load_wanted<T>{{w, w.modes}}, store_home<T>{w});
        FTH_LAUNCH(gather_probe<T>, dim3(pixels, chunks), THREADS, stream, w);
        if (chunks > 1) FTH_LAUNCH(join_probe<T>, 2 * pixels, THREADS, stream, w);
        if (!r.shift) return;
        const load_planes<T> next = {{w, w.modes}, w.next};
        queue_transform<T, true>(w, f, w.modes, w.modes, stream, next,
                                 store_planes<T>{w.next, w.n});
    };
    if (!lsqml && !visited) FTH_LAUNCH(maxima<T>, pairs_of, THREADS, stream, w);
    if (r.opr) queue_opr(w, stream);
    if (!r.ptypy || lsqml) probe_direction();
    FTH_LAUNCH(place<T>, canvas, THREADS, stream, w);
    if (lsqml) {
        FTH_LAUNCH(step_sums<T>, tiles, THREADS, stream, w);
        FTH_LAUNCH(find_steps<T>, 1, 32 * WARPS, stream, w);
    } else if (r.ptypy) {
        FTH_LAUNCH(maxima<T>, tiles, THREADS, stream, w);
        probe_direction();
    }
    const int64_t all = 2 * w.modes * w.nn + (lsqml ? 2 * w.cells : 0);
    FTH_LAUNCH(take_steps<T>, fth_cuda_blocks(all, THREADS), THREADS, stream, w);
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const cudaStream_t stream = fth_cuda_stream(call);
    work<T> w = work_of<T>(call);
    arrange(&w, (char *)call->scratch);
    const bool look = w.rule.rule == PT_LOOK, lsqml = w.rule.rule == PT_LSQML;
    const int mask = lsqml ? PT_SWEEP_MASK : PT_SWEEP_WEIGHT;
    w.object = (T *)(look ? call->in[PT_SWEEP_OBJECT].data : call->out[0].data);
    w.probe = (T *)(look ? call->in[PT_SWEEP_PROBE].data : call->out[1].data);
    w.told = (double *)call->out[2].data;
    w.visits = (const double *)call->in[PT_SWEEP_VISITS].data;
    w.switches = (const double *)call->in[PT_SWEEP_SWITCHES].data;
    if (lsqml) w.weight = (const T *)call->in[PT_SWEEP_WEIGHT].data;
    w.seen = {call->in[PT_SWEEP_PATTERNS].data,  nullptr,       0,
              node->in[PT_SWEEP_PATTERNS].dtype, w.rule.counts, w.rule.centred};
    if (w.rule.masked) {
        w.seen.mask = (const uint8_t *)call->in[mask].data;
        w.seen.mask_step = node->in[mask].n_axes == 3 ? w.nn : 0;
    }
    const int from[2] = {w.rule.hold ? node->n_in - 1 : PT_SWEEP_OBJECT, PT_SWEEP_PROBE};
    if (w.rule.hold) {
        w.object = (T *)call->in[PT_SWEEP_OBJECT].data;
        w.change = (T *)call->out[0].data;
    }
    for (int i = 0; i < 2; i++)
        if (call->out[i].data)
            FTH_CUDA_TRY(cudaMemcpyAsync(call->out[i].data, call->in[from[i]].data,
                                         (size_t)fth_desc_count(&node->in[from[i]]) * sizeof(T),
                                         cudaMemcpyDeviceToDevice, stream),
                         "copying object and probe", call->err);
    if (w.rule.opr) {
        const int eigen = mask + (w.rule.masked ? 1 : 0);
        for (int i = 0; i < 2; i++)
            if (call->out[3 + i].data)
                FTH_CUDA_TRY(cudaMemcpyAsync(call->out[3 + i].data, call->in[eigen + i].data,
                                             (size_t)(fth_desc_count(&node->out[3 + i]) *
                                                      fth_dtype_size(node->out[3 + i].dtype)),
                                             cudaMemcpyDeviceToDevice, stream),
                             "copying eigenprobes", call->err);
        w.eigen = (T *)(call->out[3].data ? call->out[3].data : call->in[eigen].data);
        w.shares = (double *)(call->out[4].data ? call->out[4].data : call->in[eigen + 1].data);
    }
    const int64_t room = node->out[2].size[0];
    FTH_CUDA_TRY(cudaMemsetAsync(w.told, 0, (size_t)(room * PT_TOLD) * sizeof(double), stream),
                 "clearing the statistics of patterns", call->err);
    FTH_LAUNCH(fill_table<T>, 1, THREADS, stream, w.table, (int)w.n);
    const transform<T> f = transform_of<T>(w.n, w.table);
    if (walks(w)) {
        queue_walk(w, stream);
        FTH_CUDA_LAUNCHED(call);
        return FTH_OK;
    }
    for (w.first = 0; w.first < room; w.first += w.rule.batch) {
        queue_projection(w, f, stream);
        if (w.rule.positions && !look) queue_positions(w, f, stream);
        if (!look) queue_updates(w, f, stream);
        FTH_CUDA_LAUNCHED(call);
    }
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
    const pt_sweep *r = (const pt_sweep *)node->attr;
    const int64_t n = node->in[PT_SWEEP_PATTERNS].size[1],
                  images = r->batch * node->in[PT_SWEEP_PROBE].size[0];
    return images < 65536 &&
           (node->in[0].dtype == FTH_F32 ? width_of<float>(n) : width_of<double>(n)) > 0;
}

fth_status run(const fth_call *call)
{
    return call->node->in[0].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(ptycho_sweep) = {
    .op = "ptycho_sweep", .supports = supports, .scratch = scratch, .run = run};
