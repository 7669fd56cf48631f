/* local_weights.cu - local_weights.c on a device: a thread block for each cell.
 *
 * Covariances of a tile are computed by the thread that holds it, and factored where they are
 * (local.cuh); the groups are solved one after the other.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "local.cuh"
#include "local_weights.h"

constexpr int TABLE_THREADS = 128;

enum kernel_id {
#define SP_KERNEL(id, name, root, power) KERNEL_##id,
#include "../../kernels.def"
#undef SP_KERNEL
    KERNELS
};

struct table_work {
    double *pair; /* 2 (l G G + g G + h): what distances are multiplied by, and the covariance */
    sp_view<const double> distance; /* NULL: all equally far */
    int64_t groups;
    const double *log_ell; /* of the factors, count of them; NULL: one lengthscale */
    int64_t factors, step;
    double alpha, root, lengthscale, power, sigma2;
};

__global__ void fill_table(const table_work w)
{
    const int64_t each = w.groups * w.groups, n = w.factors * each,
                  step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const int64_t g = i % each / w.groups, h = i % w.groups;
        const double ell = w.log_ell ? exp(w.log_ell[i / each * w.step]) : fabs(w.lengthscale);
        const double d2 = w.distance.data ? *w.distance.at(g, h) : g == h ? 0 : 1.000002;
        const double nu = 1 / (fabs(w.alpha) * d2 + 1);
        w.pair[2 * i] = w.root / ell * sqrt(nu);
        w.pair[2 * i + 1] = w.sigma2 * pow(nu, w.power);
    }
}

template <typename T> struct work {
    sp_tiled_matrix m;
    sp_view<const int32_t> nbr, group, groupsZ; /* group NULL: each in turn; groupsZ NULL: none */
    sp_view<const float> at, Z;
    sp_view<T> a, var; /* a [group factor cell nbr], var [factor cell] */
    sp_view<T> da;     /* [factor cell nbr] */
    const double *pair;
    int64_t first, cells, first_factor, count, all, groups;
    int kernel;
    bool every, slopes;
    double sigma2, jitter, lo;
    fth_fault *fault;
};

/* Shared memory: places and groups of the rows. */
struct workspace {
    sp_shared shared;
    double *x, *y;  /* [SIDE * rows] */
    int32_t *group; /* the same */
    double *a;      /* [SIDE * rows], where there are slopes: weights */
};

int64_t workspace_bytes(const sp_tiled_matrix &m, bool slopes)
{
    static_assert(SIDE * sizeof(int32_t) % sizeof(double) == 0, "doubles lie behind groups");
    return (int64_t)sizeof(double) * (sp_shared_doubles(m) + (slopes ? 3 : 2) * SIDE * m.rows) +
           (int64_t)sizeof(int32_t) * SIDE * m.rows;
}

__device__ workspace workspace_of(const sp_tiled_matrix &m, double *room)
{
    workspace d;
    d.shared = sp_shared_at(m, room);
    d.x = room + sp_shared_doubles(m);
    d.y = d.x + SIDE * m.rows;
    d.group = (int32_t *)(d.y + SIDE * m.rows);
    d.a = (double *)(d.group + SIDE * m.rows);
    return d;
}

/* In the order of the CPU's checks: neighbours with their groups, the group, the matrix. */
template <typename T>
__device__ void complain(const work<T> &w, int64_t cell, int what, int at, int64_t found)
{
    const int place = what == WRONG_GROUP    ? 2 * w.m.k
                      : what == NOT_DEFINITE ? 2 * w.m.k + 1
                                             : 2 * at;
    fth_cuda_complain(w.fault,
                      (uint64_t)cell * (uint64_t)(2 * w.m.k + 2) +
                          (uint64_t)(place + (what == WRONG_GROUP_OF_NEIGHBOUR ? 1 : 0)),
                      found, (uint32_t)what);
}

/* Row i: a neighbour, or the cell as one of the kinds it is asked about. false: a wrong index. */
template <typename T>
__device__ bool bring_row(const work<T> &w, const workspace &d, int64_t cell, int i)
{
    const bool near = i < w.m.k;
    const int64_t n = near ? (int64_t)*w.nbr.at(cell, i) : cell;
    if (near && (n < 0 || n >= w.all)) {
        complain(w, cell, WRONG_NEIGHBOUR, i, n);
        return false;
    }
    d.x[i] = (double)(near ? *w.Z.at(n, 0) : *w.at.at(n, 0));
    d.y[i] = (double)(near ? *w.Z.at(n, 1) : *w.at.at(n, 1));
    d.group[i] = 0;
    if (!w.groupsZ.data || i >= w.m.k + w.m.more) return true;
    const int32_t g = near ? *w.groupsZ.at(n) : w.every ? i - w.m.k : *w.group.at(cell);
    d.group[i] = g;
    if (g >= 0 && g < w.groups) return true;
    complain(w, cell, near ? WRONG_GROUP_OF_NEIGHBOUR : WRONG_GROUP, i, g);
    return false;
}

template <typename T> __device__ bool bring_rows(const work<T> &w, const workspace &d, int64_t cell)
{
    bool ok = true;
    for (int i = (int)threadIdx.x; i < SIDE * w.m.rows; i += (int)blockDim.x)
        ok &= bring_row(w, d, cell, i);
    return ok;
}

template <typename T>
__device__ inline double covariance(const work<T> &w, const workspace &d, const double *table,
                                    int i, int j)
{
    const double *pair = table + 2 * (w.groups * d.group[j] + d.group[i]);
    const double dx = d.x[i] - d.x[j], dy = d.y[i] - d.y[j], d2 = fma(dx, dx, dy * dy);
    if (w.kernel == KERNEL_RBF) return pair[1] * exp(-0.5 * d2 * pair[0] * pair[0]);
    const double v = sqrt(d2 + 1e-12) * pair[0];
    return pair[1] * (w.kernel == KERNEL_MATERN32 ? 1 + v : 1 + v + v * v * (1 / 3.0)) * exp(-v);
}

/* Its slope in ln lengthscale (model 19.2a). */
template <typename T>
__device__ inline double slope(const work<T> &w, const workspace &d, const double *table, int i,
                               int j)
{
    const double *pair = table + 2 * (w.groups * d.group[j] + d.group[i]);
    const double dx = d.x[i] - d.x[j], dy = d.y[i] - d.y[j], d2 = fma(dx, dx, dy * dy);
    if (w.kernel == KERNEL_RBF) {
        const double v2 = d2 * pair[0] * pair[0];
        return pair[1] * v2 * exp(-0.5 * v2);
    }
    const double v = sqrt(d2 + 1e-12) * pair[0];
    return pair[1] * v * v * (w.kernel == KERNEL_MATERN32 ? 1 : (1 + v) * (1 / 3.0)) * exp(-v);
}

template <typename T>
__device__ void make_tile(const work<T> &w, const workspace &d, const double *table, int i0, int j0,
                          double (&v)[SIDE][SIDE])
{
#pragma unroll
    for (int r = 0; r < SIDE; r++)
#pragma unroll
        for (int c = 0; c < SIDE; c++) {
            const int i = SIDE * i0 + r, j = SIDE * j0 + c;
            v[r][c] = i == j ? w.sigma2 + w.jitter : i > j ? covariance(w, d, table, i, j) : 0.0;
        }
}

/* The conditional variance: sigma^2 minus the squares of the solved right-hand side. */
template <typename T>
__device__ void store_variance(const work<T> &w, const workspace &d, int64_t l, int64_t cell)
{
    double sum = 0;
    for (int i = (int)threadIdx.x; i < w.m.k; i += 32) sum = fma(d.shared.x[i], d.shared.x[i], sum);
    const double var = w.sigma2 - sp_warp_sum(sum);
    if (threadIdx.x == 0) *w.var.at(l, cell) = (T)fmin(fmax(var, w.lo), 100.0);
}

template <typename T>
__device__ void store_weights(const work<T> &w, const workspace &d, int q, int64_t l, int64_t cell)
{
    for (int i = (int)threadIdx.x; w.a.data && i < w.m.k; i += (int)blockDim.x)
        *w.a.at(q, l, cell, i) = (T)d.shared.x[i];
}

/* From the weights in x, their slopes: a second right-hand side, dk - dK a. */
template <typename T, int TILES>
__device__ void store_slopes(const work<T> &w, const workspace &d, const double *table,
                           const sp_tiles<TILES> &t, int64_t l, int64_t cell)
{
    for (int i = (int)threadIdx.x; i < w.m.k; i += (int)blockDim.x) d.a[i] = d.shared.x[i];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < w.m.k; i += (int)blockDim.x) {
        double r = slope(w, d, table, w.m.k, i);
        for (int j = 0; j < w.m.k; j++)
            if (i != j) r = fma(-slope(w, d, table, i, j), d.a[j], r);
        d.shared.x[i] = r;
    }
    __syncthreads();
    sp_forward(w.m, d.shared, t);
    sp_second_half(w.m, d.shared, t);
    for (int i = (int)threadIdx.x; i < w.m.k; i += (int)blockDim.x)
        *w.da.at(l, cell, i) = (T)d.shared.x[i];
}

template <typename T, typename SIZE>
__global__ void __launch_bounds__(SIZE::THREADS, SIZE::BLOCKS) weights(const work<T> w)
{
    FTH_SHARED(double, room);
    const workspace d = workspace_of(w.m, room);
    sp_tiles<SIZE::TILES> t;
    sp_tiles_place(w.m, &t);
    for (int64_t n = blockIdx.x; n < w.count; n += gridDim.x) {
        const int64_t l = w.first_factor + n / w.cells, cell = w.first + n % w.cells;
        const double *table = w.pair + n / w.cells * 2 * w.groups * w.groups;
        if (!__syncthreads_and(bring_rows(w, d, cell))) continue;
        sp_each_tile<SIZE::TILES>([&](int k) {
            if (t.j[k] >= 0) make_tile(w, d, table, t.i[k], t.j[k], t.v[k]);
        });
        const bool ok = __syncthreads_and(sp_factor(w.m, d.shared, &t));
        if (!ok && threadIdx.x == 0) complain(w, cell, NOT_DEFINITE, 0, 0);
        for (int q = 0; ok && q < w.m.more; q++) {
            sp_first_half(w.m, d.shared, t, q);
            if (w.var.data) {
                if (threadIdx.x < 32) store_variance(w, d, l, cell);
                __syncthreads();
            }
            if (!w.a.data && !w.da.data) continue;
            sp_second_half(w.m, d.shared, t);
            store_weights(w, d, q, l, cell);
            __syncthreads();
            if (!w.da.data) continue;
            store_slopes(w, d, table, t, l, cell);
            __syncthreads();
        }
    }
}

template <typename T, typename SIZE> void launch(const work<T> &w, cudaStream_t stream)
{
    const int64_t most = INT32_MAX;
    FTH_LAUNCH_SHARED((weights<T, SIZE>), (unsigned)(w.count < most ? w.count : most),
                      sp_matrix_threads(w.m, SIZE::THREADS), workspace_bytes(w.m, w.slopes),
                      stream, w);
}

int64_t factors_of(const fth_call *call)
{
    const attr *a = (const attr *)call->node->attr;
    return a->ell >= 0 ? call->in[a->ell].extent[0] : 1;
}

uint64_t scratch(const fth_call *call)
{
    const attr *a = (const attr *)call->node->attr;
    const uint64_t g = a->cov.groups > 0 ? (uint64_t)a->cov.groups : 1;
    return 2 * g * g * sizeof(double) * (uint64_t)factors_of(call);
}

void make_table(const fth_call *call)
{
    static const double root[] = {
#define SP_KERNEL(id, name, root, power) root,
#include "../../kernels.def"
#undef SP_KERNEL
    };
    static const double power[] = {
#define SP_KERNEL(id, name, root, power) power,
#include "../../kernels.def"
#undef SP_KERNEL
    };
    const attr *a = (const attr *)call->node->attr;
    table_work w = {};
    w.pair = (double *)call->scratch;
    if (a->distance >= 0) w.distance = sp_view_in<double>(call, a->distance);
    w.groups = a->cov.groups > 0 ? a->cov.groups : 1;
    w.alpha = a->cov.alpha;
    w.root = root[a->cov.kernel];
    w.lengthscale = a->cov.lengthscale;
    w.power = power[a->cov.kernel];
    w.sigma2 = a->cov.sigma * a->cov.sigma;
    w.factors = factors_of(call);
    if (a->ell >= 0) {
        w.log_ell = (const double *)call->in[a->ell].data;
        w.step = call->in[a->ell].stride[0];
    }
    FTH_LAUNCH(fill_table, fth_cuda_blocks(w.factors * w.groups * w.groups, TABLE_THREADS),
               TABLE_THREADS, fth_cuda_stream(call), w);
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const attr *a = (const attr *)node->attr;
    work<T> w = {};
    w.m = sp_tiled_matrix_of(node->in[NBR].size[1], asked(a));
    w.nbr = sp_view_in<int32_t>(call, NBR);
    w.at = sp_view_in<float>(call, AT);
    w.Z = sp_view_in<float>(call, Z);
    if (a->cov.groups > 0) w.groupsZ = sp_view_in<int32_t>(call, GROUPS_Z);
    if (a->group >= 0) w.group = sp_view_in<int32_t>(call, a->group);
    const bool each = a->ell >= 0;
    w.a = sp_view_shared(sp_view_out<T>(call, WEIGHTS), 0, !a->every);
    w.a = sp_view_shared(w.a, 1, !each);
    if (!a->every) w.var = sp_view_shared(sp_view_out<T>(call, VARIANCE), 0, !each);
    w.slopes = has_slopes(a);
    if (w.slopes) w.da = sp_view_out<T>(call, SLOPE);
    if (each) w.first_factor = call->in[a->ell].origin[0];
    w.pair = (const double *)call->scratch;
    w.first = call->in[NBR].origin[0];
    w.cells = call->in[NBR].extent[0];
    w.count = w.cells * factors_of(call);
    w.all = node->in[Z].size[0];
    w.groups = a->cov.groups > 0 ? a->cov.groups : 1;
    w.kernel = a->cov.kernel;
    w.every = a->every != 0;
    w.sigma2 = a->cov.sigma * a->cov.sigma;
    w.jitter = a->cov.jitter;
    w.lo = a->lo;
    w.fault = call->fault;
    if (w.count == 0) return FTH_OK;
    make_table(call);
    const cudaStream_t stream = fth_cuda_stream(call);
    if (w.m.tiles <= sp_small::THREADS)
        launch<T, sp_small>(w, stream);
    else if (w.m.tiles <= sp_middle::THREADS)
        launch<T, sp_middle>(w, stream);
    else
        launch<T, sp_large>(w, stream);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

bool supports(const fth_node *node)
{
    const attr *a = (const attr *)node->attr;
    const int64_t k = node->in[NBR].size[1], more = asked(a);
    return sp_matrix_fits(k, more) &&
           workspace_bytes(sp_tiled_matrix_of(k, more), has_slopes(a)) <= fth_cuda_most_shared();
}

fth_status run(const fth_call *call)
{
    const attr *a = (const attr *)call->node->attr;
    return a->real == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}

fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const uint64_t each = (uint64_t)(2 * node->in[NBR].size[1] + 2);
    return wrong_cell(node, (int)fault->code, (int64_t)(fault->where / each), fault->value, err);
}
} // namespace

FTH_CUDA_KERNEL(spatial_local_weights) = {.op = "spatial_local_weights",
                                          .supports = supports,
                                          .scratch = scratch,
                                          .run = run,
                                          .explain = explain};
