/* order.cuh - gs_order on a device: rows that are seen come first, sorted by the bits of Z, and the
 * others follow in their order. How many are seen only the device knows. Part of raster_*.cu. */
#include "device.cuh"

#include <fathom/cuda_sort.h>

namespace
{

enum { ORDER_THREADS = 256 };
template <typename T> struct depth_key;
template <> struct depth_key<float> {
    typedef uint32_t type;
};
template <> struct depth_key<double> {
    typedef uint64_t type;
};
typedef depth_key<real>::type depth_bits;

struct ordering {
    const real *splats;
    int64_t splats_step, n, out_step;
    int32_t *out;
    uint32_t *place; /* first 1 where a row is seen, then how many before it are */
    uint64_t *seen;
    depth_bits *depth; /* of rows that are seen: side by side, as splats are not */
    depth_bits *key;
    uint32_t *row;
};

__device__ inline depth_bits bits_of(float z)
{
    return (depth_bits)__float_as_uint(z);
}
__device__ inline depth_bits bits_of(double z)
{
    return (depth_bits)__double_as_longlong(z);
}

__global__ void mark_seen(const ordering o)
{
    const int64_t i = (int64_t)blockIdx.x * ORDER_THREADS + threadIdx.x;
    if (i >= o.n) return;
    const real *s = o.splats + i * o.splats_step;
    const bool seen = s[GS_TILES] > 0;
    o.place[i] = seen;
    if (seen) o.depth[i] = bits_of(s[GS_Z]);
}

__global__ void part_rows(const ordering o)
{
    const int64_t i = (int64_t)blockIdx.x * ORDER_THREADS + threadIdx.x;
    if (i >= o.n) return;
    const int64_t at = o.place[i], next = i + 1 < o.n ? o.place[i + 1] : (int64_t)*o.seen;
    if (next > at) {
        o.key[at] = o.depth[i];
        o.row[at] = (uint32_t)i;
    } else {
        o.out[((int64_t)*o.seen + i - at) * o.out_step] = (int32_t)i;
    }
}

__global__ void put_seen(const ordering o, const uint32_t *row)
{
    const int64_t i = (int64_t)blockIdx.x * ORDER_THREADS + threadIdx.x;
    if (i < o.n && (uint64_t)i < *o.seen) o.out[i * o.out_step] = (int32_t)row[i];
}

uint64_t order_scratch(const fth_call *call)
{
    const int64_t n = call->node->in[0].size[0];
    return 64 + fth_cuda_scan_bytes(n) + fth_cuda_radix_bytes<depth_bits>(1, n);
}

fth_status order(const fth_call *call)
{
    const int64_t n = call->out[0].extent[0];
    const unsigned blocks = (unsigned)((n + ORDER_THREADS - 1) / ORDER_THREADS);
    const cudaStream_t stream = fth_cuda_stream(call);
    char *const at = (char *)call->scratch;
    if (n == 0) return FTH_OK;
    fth_cuda_radix<depth_bits> r =
        fth_cuda_radix_in<depth_bits>(at + 64 + fth_cuda_scan_bytes(n), 1, n);
    r.count = (uint64_t *)at;
    r.positions = false;
    ordering o = {};
    o.splats = (const real *)call->in[0].data;
    o.splats_step = call->in[0].stride[0];
    o.n = n;
    o.out = (int32_t *)call->out[0].data;
    o.out_step = call->out[0].stride[0];
    o.place = r.value[1]; /* which the sort needs only later */
    o.seen = (uint64_t *)at;
    o.depth = r.key[1]; /* too */
    o.key = r.key[0];
    o.row = r.value[0];
    FTH_LAUNCH(mark_seen, blocks, ORDER_THREADS, stream, o);
    fth_cuda_scan(o.place, o.place, n, (const uint64_t *)NULL, o.seen, at + 64, stream);
    FTH_LAUNCH(part_rows, blocks, ORDER_THREADS, stream, o);
    const int end = fth_cuda_radix_sort(&r, 0, 8 * (int)sizeof(depth_bits), stream);
    FTH_LAUNCH(put_seen, blocks, ORDER_THREADS, stream, o, (const uint32_t *)r.value[end]);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace
