/* scatter_add.cu - rows of a value summed into an axis, each where an index array says.
 *
 * Every sum adds in the order of the CPU's loop, and no two threads add to one. Whole numbers may
 * be added in any order: there each element adds itself. Where results that no index decides about
 * (the batches and free axes) are many, a thread has one of them and walks through all rows.
 * Otherwise the rows of each batch are sorted by target, stably, some at a time; the thread at the
 * head of a target's run adds the run.
 */
#include "cuda/ops/scatter.cuh"
#include "cuda/sort/radix.cuh"

/* AHEAD: rows of a run loaded before the first is added, in order; one at a time, 10 M rows into
 * 1000 took 12.4 ms (H200). */
enum { THREADS = 128, AHEAD = 8 };
static constexpr int64_t MANY = 1 << 14; /* results that occupy the device with a thread each */
static constexpr int64_t FEW = 64;       /* rows that one thread adds faster than they are sorted */
static constexpr int64_t ROUND = 1 << 21; /* rows sorted at once: some 33 MiB of scratch */

/* ---- whole numbers: every element by itself ---- */

static __global__ void add_each(const fth__scatter_args a)
{
    const int64_t n = a.rows.count * a.both.count;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t row = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.both.count);
        const int64_t other = k - row * a.both.count;
        const fth__place r = fth__walk_at(a.rows, row), o = fth__walk_at(a.both, other);
        const int64_t t = fth__scatter_target(a, r.at[1] + o.at[1], row, a.both_digits, other);
        int64_t x;
        if (t < 0) continue;
        fth__wide_load(a.dtype, a.v + r.at[0] + o.at[0], &x);
        atomicAdd((unsigned long long *)(a.sum + o.at[2] + t * a.into_step), (unsigned long long)x);
    }
}

/* ---- many results: a thread has one ---- */

template <typename W> static __global__ void add_lines(const fth__scatter_args a)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < a.both.count;
         k += (int64_t)gridDim.x * THREADS) {
        const fth__place o = fth__walk_at(a.both, k);
        for (int64_t row = 0; row < a.rows.count; row++) {
            const fth__place r = fth__walk_at(a.rows, row);
            const int64_t t = fth__scatter_target(a, r.at[1] + o.at[1], row, a.both_digits, k);
            W x;
            if (t < 0) continue;
            fth__wide_load(a.dtype, a.v + r.at[0] + o.at[0], &x);
            fth__wide_add((W *)(a.sum + o.at[2] + t * a.into_step), x);
        }
    }
}

/* ---- few results: rows sorted by target ---- */

static __global__ void make_keys(const fth__scatter_args a)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < a.batches * a.n;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t batch = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.n);
        const int64_t row = a.row_lo + k - batch * a.n;
        const int64_t at =
            fth__walk_at(a.rows, row).at[1] + fth__walk_at(a.batch, a.batch_lo + batch).at[1];
        const int64_t t = fth__scatter_target(a, at, row, a.batch_digits, a.batch_lo + batch);
        a.key[k] = (uint32_t)(t < 0 ? a.limit : t);
    }
}

template <typename W>
static __global__ void add_runs(const fth__scatter_args a, const uint32_t *keys)
{
    const int64_t n = a.batches * a.n * a.rest.count;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t at = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.rest.count);
        const int64_t batch = (int64_t)fth__walk_div((uint64_t)at, (uint64_t)a.n);
        const uint32_t key = keys[at];
        const int64_t first = batch * a.n, end = first + a.n;
        if (key >= a.limit || (at > first && keys[at - 1] == key)) continue;
        const fth__place b = fth__walk_at(a.batch, a.batch_lo + batch);
        const fth__place c = fth__walk_at(a.rest, k - at * a.rest.count);
        const char *v = a.v + b.at[0] + c.at[0];
        W *sum = (W *)(a.sum + b.at[2] + c.at[2] + key * a.into_step), s = *sum;
        for (int64_t i = at, m = AHEAD; m == AHEAD; i += AHEAD) { /* loads do not wait for adds */
            bool mine[AHEAD];
            uint32_t from[AHEAD];
            W x[AHEAD];
#pragma unroll
            for (int j = 0; j < AHEAD; j++) {
                const int64_t near = i + j < end ? i + j : at;
                mine[j] = i + j < end && keys[near] == key;
                from[j] = a.from[near];
            }
#pragma unroll
            for (int j = 0; j < AHEAD; j++)
                if (mine[j])
                    fth__wide_load(a.dtype, v + fth__walk_at(a.rows, a.row_lo + from[j]).at[0],
                                   &x[j]);
            m = 0;
#pragma unroll
            for (int j = 0; j < AHEAD; j++)
                if (mine[j]) {
                    fth__wide_add(&s, x[j]);
                    m++;
                }
        }
        *sum = s;
    }
}

/* ---- sums before and after ---- */

typedef struct sums {
    fth__walk all; /* of the sums and of the result; bytes */
    char *sum, *out;
    int wide, dtype;
    bool finish;
} sums;

static __global__ void each_sum(const sums s)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < s.all.count;
         k += (int64_t)gridDim.x * THREADS) {
        const fth__place p = fth__walk_at(s.all, k);
        uint64_t *sum = (uint64_t *)(s.sum + p.at[0]);
        if (!s.finish) {
            sum[0] = 0;
            if (s.wide == 16) sum[1] = 0;
        } else if (s.wide == 16) {
            fth__wide_store(s.dtype, s.out + p.at[1], *(const fth_c128 *)sum);
        } else {
            fth__wide_store(s.dtype, s.out + p.at[1], *(const double *)sum);
        }
    }
}

/* ---- the host's side ---- */

static uint64_t carried(const fth_node *node)
{
    const fth_dtype t = node->out[0].dtype;
    if (t == FTH_I64 || t == FTH_F64 || t == FTH_C128) return 0;
    return t == FTH_C64 ? sizeof(fth_c128) : sizeof(double);
}

static bool whole(const fth_node *node)
{
    return node->out[0].dtype == FTH_I64;
}

static bool sorts(const fth_node *node, fth__scatter_counts c)
{
    return !whole(node) && c.rows > FEW && c.batches * c.rest < MANY;
}

/* Batches at once (of all rows) and rows at once (of one batch). */
static void round_of(fth__scatter_counts c, int64_t *batches, int64_t *rows)
{
    const int64_t most = c.rows < ROUND ? ROUND / c.rows : 1;
    *rows = c.rows < ROUND ? c.rows : ROUND;
    *batches = c.batches < most ? c.batches : most;
}

static uint64_t scratch(const fth_call *call)
{
    const fth__scatter_counts c = fth__scatter_counts_of(call);
    int64_t batches, rows;
    if (!sorts(call->node, c) || c.batches == 0) return 0;
    round_of(c, &batches, &rows);
    return fth__radix_bytes(4, batches, rows);
}

template <typename W>
static void by_sort(const fth_call *call, fth__scatter_args a, fth__scatter_counts c)
{
    const cudaStream_t stream = fth_cuda_stream(call);
    int64_t batches, rows;
    int bits = 1;
    while (bits < 32 && a.limit >> bits) bits++;
    round_of(c, &batches, &rows);
    FTH_ASSERT(a.limit < UINT32_MAX && a.limit >> bits == 0); /* keys hold every index */
    for (a.batch_lo = 0; a.batch_lo < c.batches; a.batch_lo += batches)
        for (a.row_lo = 0; a.row_lo < c.rows; a.row_lo += rows) {
            a.batches = c.batches - a.batch_lo < batches ? c.batches - a.batch_lo : batches;
            a.n = c.rows - a.row_lo < rows ? c.rows - a.row_lo : rows;
            FTH_ASSERT(fth__radix_bytes(4, a.batches, a.n) <= scratch(call));
            const fth__radix r = fth__radix_in(call->scratch, 4, a.batches, a.n);
            a.key = (uint32_t *)r.key[0];
            FTH_LAUNCH(make_keys, fth_cuda_blocks(a.batches * a.n, THREADS), THREADS, stream, a);
            const int at = fth__radix_sort(&r, bits, stream);
            a.from = r.value[at];
            FTH_LAUNCH(add_runs<W>, fth_cuda_blocks(a.batches * a.n * c.rest, THREADS), THREADS,
                       stream, a, (const uint32_t *)r.key[at]);
        }
}

template <typename W>
static void add(const fth_call *call, const fth__scatter_args &a, fth__scatter_counts c)
{
    if (sorts(call->node, c))
        by_sort<W>(call, a, c);
    else
        FTH_LAUNCH(add_lines<W>, fth_cuda_blocks(a.both.count, THREADS), THREADS,
                   fth_cuda_stream(call), a);
}

static void launch_sums(const fth_call *call, const fth_tile *tile, int64_t wide, bool finish)
{
    const fth_desc *d = &call->node->out[0];
    const fth_tile *out = &call->out[0];
    sums s = {fth__walk_none(), (char *)tile->data, (char *)out->data,
              (int)wide,        (int)d->dtype,      finish};
    const int64_t size = fth_dtype_size(d->dtype);
    for (int i = 0; i < d->n_axes; i++)
        fth__walk_add(&s.all, out->extent[i], tile->stride[i] * wide, out->stride[i] * size, 0);
    if (s.all.count == 0) return;
    FTH_LAUNCH(each_sum, fth_cuda_blocks(s.all.count, THREADS), THREADS, fth_cuda_stream(call), s);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const uint64_t bytes = carried(node);
    const fth_tile *tile = bytes ? &call->state[0] : &call->out[0];
    const int64_t wide = bytes ? (int64_t)bytes : fth_dtype_size(node->out[0].dtype);
    const fth__scatter_counts c = fth__scatter_counts_of(call);
    const fth__scatter_args a = fth__scatter_args_of(call, tile, wide);
    if (call->first) launch_sums(call, tile, wide, false);
    if (c.rows * c.batches * c.rest > 0) {
        if (whole(node))
            FTH_LAUNCH(add_each, fth_cuda_blocks(c.rows * a.both.count, THREADS), THREADS,
                       fth_cuda_stream(call), a);
        else if (fth_dtype_is_complex(t))
            add<fth_c128>(call, a, c);
        else
            add<double>(call, a, c);
    }
    /* sums that lie in the output are stored again for the one NaN (array/nan.h) */
    if (call->last && (bytes || !whole(node))) launch_sums(call, tile, wide, true);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(scatter_add) = {.op = "scatter_add",
                                .supports = fth__scatter_supports,
                                .scratch = scratch,
                                .run = run,
                                .explain = fth__scatter_explain};
