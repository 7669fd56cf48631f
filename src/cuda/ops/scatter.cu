/* scatter.cu - rows of a value set into an axis where an index array says, or the smallest or
 * largest of them.
 *
 * No order of threads can change the result. Each element of the output has a key of 64 bits, and
 * the largest that a row brings stays. To set, it is the row's number: who finds its own number
 * afterwards was last and writes. For a minimum or maximum it is the element itself, which compares
 * like an unsigned number.
 */
#include "cuda/ops/scatter.cuh"

enum { THREADS = 256 };

typedef struct put_args {
    fth__scatter_args s;     /* its `sum` is the keys */
    fth__walk out, both_out; /* every element: of the output, of the keys; both: of the output */
    char *to;
    int64_t to_step; /* of the target, in the output; bytes */
    uint64_t *key;
    fth__wide fill;
    int dtype, size, how;
    bool first;
} put_args;

static __device__ inline bool is_real(int t)
{
    return t >= FTH_F16 && t <= FTH_F64;
}

/* A number as a key; the largest is preferred. NaN is above all, -0 below +0. */
static __device__ inline uint64_t key_of(const put_args &a, fth__wide w)
{
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t key = (uint64_t)w.i ^ sign;
    if (is_real(a.dtype)) {
        if (w.f != w.f) return ~(uint64_t)0;
        const uint64_t bits = (uint64_t)__double_as_longlong(w.f);
        key = bits & sign ? ~bits : bits | sign;
    }
    return a.how == FTH_SCATTER_MAX ? key : ~key;
}

static __device__ inline fth__wide number_of(const put_args &a, uint64_t key)
{
    const uint64_t sign = (uint64_t)1 << 63;
    fth__wide w;
    if (is_real(a.dtype) && key == ~(uint64_t)0) {
        w.f = fth__one_nan(__longlong_as_double(0x7ff8000000000000ll));
        return w;
    }
    if (a.how != FTH_SCATTER_MAX) key = ~key;
    if (is_real(a.dtype))
        w.f = __longlong_as_double((long long)(key & sign ? key ^ sign : ~key));
    else
        w.i = (int64_t)(key ^ sign);
    return w;
}

static __device__ inline fth__wide load(const put_args &a, const char *p)
{
    fth__wide w;
    if (is_real(a.dtype))
        fth__wide_load(a.dtype, p, &w.f);
    else
        fth__wide_load(a.dtype, p, &w.i);
    return w;
}

static __device__ inline void store(const put_args &a, char *p, fth__wide w)
{
    if (is_real(a.dtype))
        fth__wide_store(a.dtype, p, w.f);
    else if (a.dtype == FTH_C64 || a.dtype == FTH_C128)
        fth__wide_store(a.dtype, p, w.c);
    else
        fth__wide_store(a.dtype, p, w.i);
}

static __global__ void begin(const put_args a)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < a.out.count;
         k += (int64_t)gridDim.x * THREADS) {
        const fth__place p = fth__walk_at(a.out, k);
        char *to = a.to + p.at[0];
        uint64_t *key = (uint64_t *)((char *)a.key + p.at[1]);
        if (a.how != FTH_SCATTER_SET) {
            *key = key_of(a, a.first ? a.fill : load(a, to));
            continue;
        }
        *key = 0;
        if (a.first) store(a, to, a.fill);
    }
}

/* Row k / both of all, element k % both of what no row differs in; its target, -1: outside. */
static __device__ inline int64_t locate(const put_args &a, int64_t k, int64_t *row, int64_t *other,
                                        fth__place *r, fth__place *o)
{
    *row = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.s.both.count);
    *other = k - *row * a.s.both.count;
    *r = fth__walk_at(a.s.rows, *row);
    *o = fth__walk_at(a.s.both, *other);
    return fth__scatter_target(a.s, r->at[1] + o->at[1], *row, a.s.both_digits, *other);
}

static __global__ void choose(const put_args a)
{
    const int64_t n = a.s.rows.count * a.s.both.count;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        int64_t row, other;
        fth__place r, o;
        const int64_t t = locate(a, k, &row, &other, &r, &o);
        if (t < 0) continue;
        const uint64_t mine = a.how == FTH_SCATTER_SET
                                  ? (uint64_t)row + 1
                                  : key_of(a, load(a, a.s.v + r.at[0] + o.at[0]));
        atomicMax((unsigned long long *)(a.s.sum + o.at[2] + t * a.s.into_step),
                  (unsigned long long)mine);
    }
}

static __global__ void set_last(const put_args a)
{
    const int64_t n = a.s.rows.count * a.s.both.count;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        int64_t row, other;
        fth__place r, o;
        const int64_t t = locate(a, k, &row, &other, &r, &o);
        if (t < 0) continue;
        if (*(const uint64_t *)(a.s.sum + o.at[2] + t * a.s.into_step) != (uint64_t)row + 1)
            continue;
        const char *from = a.s.v + r.at[0] + o.at[0];
        char *to = a.to + fth__walk_at(a.both_out, other).at[0] + t * a.to_step;
        switch (a.size) {
        case 1: *to = *from; break;
        case 2: *(uint16_t *)to = *(const uint16_t *)from; break;
        case 4: *(uint32_t *)to = *(const uint32_t *)from; break;
        case 8: *(uint64_t *)to = *(const uint64_t *)from; break;
        default:
            ((uint64_t *)to)[0] = ((const uint64_t *)from)[0];
            ((uint64_t *)to)[1] = ((const uint64_t *)from)[1];
            break;
        }
    }
}

static __global__ void finish(const put_args a)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < a.out.count;
         k += (int64_t)gridDim.x * THREADS) {
        const fth__place p = fth__walk_at(a.out, k);
        store(a, a.to + p.at[0], number_of(a, *(const uint64_t *)((char *)a.key + p.at[1])));
    }
}

static uint64_t scratch(const fth_call *call)
{
    return (uint64_t)fth_cuda_count(&call->node->out[0], &call->out[0]) * sizeof(uint64_t);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__scatter_put_attr *attr = (const fth__scatter_put_attr *)node->attr;
    const fth_desc *d = &node->out[0];
    const fth_tile *out = &call->out[0];
    const cudaStream_t stream = fth_cuda_stream(call);
    put_args a = {};
    fth__scatter s;
    if (fth_cuda_count(d, out) == 0) return FTH_OK;
    fth__scatter_get(node, &s);
    fth_tile keys = *out; /* dense */
    keys.data = call->scratch;
    int64_t step = 1;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        keys.stride[i] = step;
        step *= out->extent[i];
    }
    a.s = fth__scatter_args_of(call, &keys, sizeof(uint64_t));
    a.dtype = (int)d->dtype;
    a.size = (int)fth_dtype_size(d->dtype);
    a.to = (char *)out->data;
    a.to_step = out->stride[s.at] * a.size;
    a.key = (uint64_t *)call->scratch;
    a.how = attr->how;
    a.first = call->first;
    a.fill = fth__scatter_fill(d->dtype, attr->fill);
    a.out = a.both_out = fth__walk_none();
    for (int i = 0; i < d->n_axes; i++)
        fth__walk_add(&a.out, out->extent[i], out->stride[i] * a.size,
                      keys.stride[i] * (int64_t)sizeof(uint64_t), 0);
    for (int i = 0; i < node->in[0].n_axes; i++)
        if (s.v_to[i] >= 0)
            fth__walk_add(&a.both_out, out->extent[s.v_to[i]], out->stride[s.v_to[i]] * a.size, 0,
                          0);
    const int64_t n = a.s.rows.count * a.s.both.count;
    const unsigned all = fth_cuda_blocks(a.out.count, THREADS), each = fth_cuda_blocks(n, THREADS);
    FTH_LAUNCH(begin, all, THREADS, stream, a);
    if (n > 0) FTH_LAUNCH(choose, each, THREADS, stream, a);
    if (a.how != FTH_SCATTER_SET)
        FTH_LAUNCH(finish, all, THREADS, stream, a);
    else if (n > 0)
        FTH_LAUNCH(set_last, each, THREADS, stream, a);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(scatter) = {.op = "scatter",
                            .supports = fth__scatter_supports,
                            .scratch = scratch,
                            .run = run,
                            .explain = fth__scatter_explain};
