/* poisson_genes.cu - poisson_genes.c on a device.
 *
 * Counts are ordered by cells, sums by genes, and a sum must not depend on the order of threads. So
 * one thread block owns the sums of a block of cells, or several partition the genes by `gene %
 * classes`: it reads all counts of the cells in order, keeps those of its genes, computes their
 * quotients with all threads, and each warp adds, in order, the counts of the genes that it owns.
 * That is the order of the CPU, so the bits are the same.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "poisson.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int EACH = 8;              /* genes a thread reads at once: enough loads in flight */
constexpr int READ = THREADS * EACH; /* counts that are scanned at a time */
constexpr int64_t AT_ONCE = 64;      /* blocks of cells whose sums are in memory together */
/* Bytes of sums and of quotients in shared memory: three thread blocks to a multiprocessor. */
constexpr int64_t MOST_SUMS = 48 << 10, MOST_QUOTIENTS = 16 << 10;
constexpr int64_t WANTED =
    528; /* thread blocks: four per multiprocessor of an H200, which has 132 */

template <typename T> struct work {
    sp_batch<T> b;
    int64_t block, from; /* cells of a block; the first cell of the blocks at hand */
    int classes, batch;  /* counts whose quotients are made at a time, at most THREADS */
    bool update;
    T *part; /* [block][gene][factor] */
};

/* Shared memory of a thread block, in this order. */
template <typename T> struct workspace {
    T *sum;         /* [gene of the class][factor] */
    T *quotient;    /* [count][draw] */
    int32_t *gene;  /* of the class, [count] */
    int32_t *cell;  /* [count] */
    int32_t *found; /* [warp]: counts it has found */
    uint16_t *at;   /* [READ]: those that were found, as places in what was read */
};

int64_t own_genes(int64_t genes, int classes)
{
    return (genes + classes - 1) / classes;
}

template <typename T>
__host__ __device__ int64_t workspace_bytes(int64_t genes, int factors, int draws, int batch)
{
    return (int64_t)sizeof(T) * (genes * factors + (int64_t)batch * draws) +
           (int64_t)sizeof(int32_t) * (2 * THREADS + WARPS) + (int64_t)sizeof(uint16_t) * READ;
}

template <typename T> __device__ workspace<T> workspace_of(const work<T> &k, unsigned char *room)
{
    workspace<T> d;
    const int64_t genes = (k.b.genes + k.classes - 1) / k.classes;
    d.sum = (T *)room;
    d.quotient = d.sum + genes * k.b.factors;
    d.gene = (int32_t *)(d.quotient + (int64_t)k.batch * k.b.draws);
    d.cell = d.gene + THREADS;
    d.found = d.cell + THREADS;
    d.at = (uint16_t *)(d.found + WARPS);
    return d;
}

/* The cell among `n` whose counts hold entry i. */
__device__ inline int64_t cell_of(const int64_t *row_ptr, int64_t n, int64_t i)
{
    int64_t lo = 0, hi = n;
    while (hi - lo > 1) {
        const int64_t mid = (lo + hi) / 2;
        if (row_ptr[mid] <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Counts [from, from + n) that are of this class, in order: their places, and how many. */
template <typename T>
__device__ int find(const work<T> &k, const workspace<T> &d, int mine, int64_t from, int n)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int first = warp * 32 * EACH + lane;
    unsigned hits[EACH];
    int count = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int at = first + 32 * j;
        const bool hit = at < n && (k.b.gene[from + at] & (k.classes - 1)) == mine;
        hits[j] = __ballot_sync(~0u, hit);
        count += __popc(hits[j]);
    }
    if (lane == 0) d.found[warp] = count;
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += d.found[w];
        all += d.found[w];
    }
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        if (hits[j] >> lane & 1u)
            d.at[before + __popc(hits[j] & ((1u << lane) - 1))] = (uint16_t)(first + 32 * j);
        before += __popc(hits[j]);
    }
    __syncthreads();
    return all;
}

/* Quotients of count i in every draw, and where it belongs. */
template <typename T>
__device__ void weigh(const work<T> &k, const workspace<T> &d, int64_t first, int64_t cells,
                      int64_t i, int slot)
{
    const sp_batch<T> &b = k.b;
    const int64_t cell = first + cell_of(b.row_ptr + first, cells, i);
    const int32_t gene = b.gene[i];
    const T y = (T)b.value[i], *w = b.W + gene * b.w_step, *phi = b.phi + cell * b.phi_cell;
    for (int e = 0; e < b.draws; e++) {
        const T rho = sp_rate(b, w, phi + e * b.phi_draw);
        const T smooth = y > 0 ? y / (rho + sp_floor_rate<T>) : (T)0;
        d.quotient[slot * b.draws + e] = k.update ? smooth : sp_quotient(y, rho);
    }
    d.gene[slot] = gene / k.classes;
    d.cell[slot] = (int32_t)(cell - first);
}

/* Adds `n` quotients; each warp those of its genes, in order. */
template <typename T>
__device__ void add(const work<T> &k, const workspace<T> &d, int64_t first, int n)
{
    const sp_batch<T> &b = k.b;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int from = 0; from < n; from += 32) {
        const bool own = from + lane < n && d.gene[from + lane] % WARPS == warp;
        unsigned left = __ballot_sync(~0u, own);
        for (; left; left &= left - 1) {
            const int slot = from + __ffs((int)left) - 1;
            const T *q = d.quotient + slot * b.draws,
                    *phi = b.phi + (first + d.cell[slot]) * b.phi_cell;
            T *sum = d.sum + (int64_t)d.gene[slot] * b.factors;
            for (int l = lane; l < b.factors; l += 32) {
                T more = 0;
                for (int e = 0; e < b.draws; e++)
                    more += phi[e * b.phi_draw + l * b.phi_factor] * q[e];
                sum[l] = more + sum[l];
            }
        }
    }
}

template <typename T> __global__ void __launch_bounds__(THREADS) by_genes(const work<T> k)
{
    FTH_SHARED(unsigned char, room);
    const workspace<T> d = workspace_of(k, room);
    const sp_batch<T> &b = k.b;
    const int t = (int)threadIdx.x, mine = (int)blockIdx.x % k.classes;
    const int64_t block = blockIdx.x / k.classes, first = k.from + block * k.block,
                  cells = b.cells - first < k.block ? b.cells - first : k.block,
                  end = b.row_ptr[first + cells];
    const int64_t sums = (b.genes + k.classes - 1) / k.classes * b.factors;
    for (int64_t i = t; i < sums; i += THREADS) d.sum[i] = 0;
    for (int64_t from = b.row_ptr[first]; from < end; from += READ) {
        const int n = find(k, d, mine, from, (int)(end - from < READ ? end - from : READ));
        for (int q = 0; q < n; q += k.batch) {
            const int some = n - q < k.batch ? n - q : k.batch;
            if (t < some) weigh(k, d, first, cells, from + d.at[q + t], t);
            __syncthreads();
            add(k, d, first, some);
            __syncthreads();
        }
    }
    __syncthreads();
    T *part = k.part + block * b.genes * b.factors;
    for (int64_t i = t; i < sums; i += THREADS) {
        const int64_t gene = i / b.factors * k.classes + mine;
        if (gene < b.genes) part[gene * b.factors + i % b.factors] = d.sum[i];
    }
}

/* Sums of blocks, in order, into the result. */
template <typename T>
__global__ void add_parts(const T *part, int64_t blocks, int64_t genes, int factors, double *out,
                          int64_t by_gene, int64_t by_factor, bool first)
{
    const int64_t n = genes * factors, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        double *to = out + i / factors * by_gene + i % factors * by_factor;
        double sum = first ? 0.0 : *to;
        for (int64_t j = 0; j < blocks; j++) sum += (double)part[j * n + i];
        *to = sum;
    }
}

int64_t blocks_of(const fth_call *call)
{
    const fth_desc *d = &call->node->in[SP_IN_PHI];
    const int64_t block = sp_poisson_block(d->size[d->n_axes - 1]);
    return (call->in[SP_IN_PHI].extent[d->n_axes - 1] + block - 1) / block;
}

uint64_t scratch(const fth_call *call)
{
    const fth_desc *W = &call->node->in[SP_IN_W];
    const int64_t blocks = blocks_of(call), most = blocks < AT_ONCE ? blocks : AT_ONCE;
    return (uint64_t)(most * W->size[0] * W->size[1] * fth_dtype_size(W->dtype));
}

/* A power of two: sums that fit, and work for all multiprocessors. */
template <typename T> int classes_of(const sp_batch<T> &b, int64_t blocks)
{
    int classes = 1;
    while (own_genes(b.genes, classes) > 1 &&
           (own_genes(b.genes, classes) * b.factors * (int64_t)sizeof(T) > MOST_SUMS ||
            (classes < 32 && blocks * classes < WANTED)))
        classes *= 2;
    return classes;
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    const fth_desc *d = &call->node->in[SP_IN_PHI];
    const int64_t blocks = blocks_of(call);
    work<T> k = {};
    k.b = sp_batch_of<T>(call);
    k.block = sp_poisson_block(d->size[d->n_axes - 1]);
    k.update = ((const sp_poisson_attr *)call->node->attr)->update != 0;
    k.part = (T *)call->scratch;
    const int64_t fit = MOST_QUOTIENTS / (k.b.draws * (int64_t)sizeof(T));
    k.batch = (int)(fit < 1 ? 1 : fit < THREADS ? fit : THREADS);
    if (k.b.genes * k.b.factors == 0) return FTH_OK;
    for (int64_t from = 0; from < blocks || from == 0; from += AT_ONCE) {
        const int64_t some = blocks - from < AT_ONCE ? blocks - from : AT_ONCE;
        k.from = from * k.block;
        k.classes = classes_of(k.b, some);
        const int64_t bytes =
            workspace_bytes<T>(own_genes(k.b.genes, k.classes), k.b.factors, k.b.draws, k.batch);
        if (some > 0)
            FTH_LAUNCH_SHARED((by_genes<T>), (unsigned)(some * k.classes), THREADS, bytes,
                              fth_cuda_stream(call), k);
        FTH_LAUNCH((add_parts<T>), fth_cuda_blocks(k.b.genes * k.b.factors, THREADS), THREADS,
                   fth_cuda_stream(call), k.part, some, k.b.genes, k.b.factors, (double *)out->data,
                   out->stride[0], out->stride[1], call->first && from == 0);
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    return call->node->in[SP_IN_W].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(poisson_genes) = {.op = "poisson_genes", .scratch = scratch, .run = run};
