/* split.cu - f32 operands as three bf16 each, packed as the matrix units read them, and the order
 * of launches. The product itself is split_multiply.cu. */
#include "cuda/split.h"

#include "cuda/device.h"

extern "C" {
#include "graph/context.h"
#include "graph/graph.h"
}

static constexpr int LINES = FTH__SPLIT_LINES, CHUNK = FTH__SPLIT_CHUNK, EIGHT = 8;
/* Numbers that are packed as they are: nothing of their parts is below the normal numbers, and sums
 * of a chunk stay finite. */
static constexpr float LEAST = 0x1p-100f, MOST = 0x1p40f;
static constexpr int TARGET = 40, MOST_SCALE = 126; /* exponents of the largest after scaling */

typedef struct packing {
    const float *from;
    char *to;
    int64_t line, deep; /* strides */
    int32_t lines, k;
} packing;

/* How a line is scaled: 0, an exponent, or FTH__SPLIT_PLAIN. */
static __device__ inline int scale_of(const float *line)
{
    float most = 0, least = MOST;
    bool finite = true;
    for (int i = 0; i < CHUNK; i++) {
        const float v = fabsf(line[i]);
        finite = finite && v < __int_as_float(0x7f800000);
        most = v > most ? v : most;
        least = v > 0 && v < least ? v : least;
    }
    if (!finite) return FTH__SPLIT_PLAIN;
    if (most == 0 || (most < MOST && least >= LEAST)) return 0;
    int exponent;
    (void)frexpf(most, &exponent);
    const int by = TARGET - exponent;
    return by < MOST_SCALE ? by : MOST_SCALE;
}

static __device__ inline float power_of_two(int e)
{
    return __int_as_float((127 + e) << 23);
}

/* The nearest bf16, as a float; to even in the middle. Nearest, not cut off: what is left is half
 * as large and of either sign, and so are the products that are not made. */
static __device__ inline uint32_t nearest(float x)
{
    const uint32_t u = (uint32_t)__float_as_int(x);
    return (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
}

/* Two parts of the same kind, one in each half; what they leave stays. */
static __device__ inline uint32_t take_pair(float &x, float &y)
{
    const uint32_t u = nearest(x), v = nearest(y);
    x -= __int_as_float((int)u);
    y -= __int_as_float((int)v);
    return u >> 16 | v;
}

/* Eight numbers of a line: 16 bytes of each part. */
static __device__ inline void pack_eight(char *to, const float *line, float by)
{
    float v[EIGHT];
    for (int i = 0; i < EIGHT; i++) v[i] = line[i] * by;
    for (int p = 0; p < FTH__SPLIT_PARTS; p++) {
        uint4 w;
        w.x = take_pair(v[0], v[1]), w.y = take_pair(v[2], v[3]);
        w.z = take_pair(v[4], v[5]), w.w = take_pair(v[6], v[7]);
        *(uint4 *)(to + p * FTH__SPLIT_PART) = w;
    }
}

/* A block of threads packs 128 lines of one chunk: fetched along what lies close together, then a
 * line a thread. Lines and numbers beyond the end are zeros. */
static __global__ void __launch_bounds__(LINES) pack(const __grid_constant__ packing p)
{
    __shared__ float tile[LINES][CHUNK + 1];
    const int chunks = (p.k + CHUNK - 1) / CHUNK;
    const int first = (int)(blockIdx.x / (unsigned)chunks) * LINES,
              k0 = (int)(blockIdx.x % (unsigned)chunks) * CHUNK, t = (int)threadIdx.x;
    const bool along_k = p.deep <= p.line;
    for (int i = t; i < LINES * CHUNK; i += LINES) {
        const int line = along_k ? i / CHUNK : i % LINES, k = along_k ? i % CHUNK : i / LINES;
        const bool in = first + line < p.lines && k0 + k < p.k;
        tile[line][k] = in ? p.from[(first + line) * p.line + (k0 + k) * p.deep] : 0.0f;
    }
    __syncthreads();
    char *to = p.to + (int64_t)blockIdx.x * FTH__SPLIT_BLOCK;
    const int scale = scale_of(tile[t]);
    const float by = scale == FTH__SPLIT_PLAIN ? 0.0f : power_of_two(scale);
    if (scale == FTH__SPLIT_PLAIN) /* such a line has no parts */
        for (int i = 0; i < CHUNK; i++) tile[t][i] = 0.0f;
    for (int e = 0; e < CHUNK / EIGHT; e++)
        pack_eight(to + (e * LINES + t) * EIGHT * 2, &tile[t][e * EIGHT], by);
    ((signed char *)(to + FTH__SPLIT_PARTS * FTH__SPLIT_PART))[t] = (signed char)scale;
}

/* ---- what takes this way ---- */

static int64_t blocks_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* Matrices large enough to fill a card by themselves: elsewhere cuBLASLt is as fast. */
#ifdef FTH_EMULATED
static constexpr int64_t LEAST_TILES = 1, LEAST_K = 64, LEAST_SIDE = 40;
#else
static constexpr int64_t LEAST_TILES = 256, LEAST_K = 512, LEAST_SIDE = 512;
#endif

/* The matrix units are asked for in the words of capability 9.0. Where kernels are emulated, calls
 * of tests that have no device in their context go this way too. */
static bool is_wanted(const fth_node *node)
{
    const fth_context *ctx = node->graph ? node->graph->ctx : NULL;
#ifdef FTH_EMULATED
    return !ctx || !ctx->gpu || ctx->split_products;
#else
    return ctx && ctx->gpu && ctx->split_products && ctx->gpu->info.major == 9 &&
           ctx->gpu->info.minor == 0;
#endif
}

bool fth__cuda_split_takes(const fth_node *node, const fth__dot_shape *s)
{
    const int64_t tiles = blocks_of(s->m.size, LINES) * blocks_of(s->n.size, LINES);
    return is_wanted(node) && s->dtype == FTH_F32 && s->side == FTH__DOT_FULL &&
           s->side_a == FTH__DOT_FULL && s->side_b == FTH__DOT_FULL && s->n_sum == 0 &&
           s->m.a >= 0 && s->n.b >= 0 && s->k.a >= 0 && s->m.size >= LEAST_SIDE &&
           s->n.size >= LEAST_SIDE && s->k.size >= LEAST_K && tiles >= LEAST_TILES;
}

static uint64_t bytes_of(int64_t lines, int64_t k)
{
    return (uint64_t)(blocks_of(lines, LINES) * blocks_of(k, CHUNK)) * FTH__SPLIT_BLOCK;
}

uint64_t fth__cuda_split_scratch(int64_t m, int64_t n, int64_t k)
{
    const int64_t deep = k < FTH__SPLIT_K ? k : FTH__SPLIT_K;
    return bytes_of(m, deep) + bytes_of(n, deep);
}

static void queue_pack(cudaStream_t stream, packing p)
{
    const int64_t blocks = blocks_of(p.lines, LINES) * blocks_of(p.k, CHUNK);
    FTH_LAUNCH(pack, (unsigned)blocks, LINES, stream, p);
}

/* Elements of k that fit the packed room, of one matrix. */
static fth_status run_part(const fth_call *call, const fth__split_job &j)
{
    cudaStream_t stream = fth_cuda_stream(call);
    queue_pack(stream, {j.from_a, (char *)j.a, j.am, j.ak, j.m, j.k});
    FTH_CUDA_LAUNCHED(call);
    queue_pack(stream, {j.from_b, (char *)j.b, j.bn, j.bk, j.n, j.k});
    FTH_CUDA_LAUNCHED(call);
    fth__cuda_split_multiply(stream, &j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status fth__cuda_split_run(const fth_call *call, const fth__cuda_product *p)
{
    fth__split_job j = {};
    j.am = p->am, j.ak = p->ak, j.bk = p->bk, j.bn = p->bn, j.cm = p->cm, j.cn = p->cn;
    j.m = (int32_t)p->m, j.n = (int32_t)p->n;
    if (p->m == 0 || p->n == 0) return FTH_OK;
    for (int64_t z = 0; z < p->batch; z++)
        for (int64_t k0 = 0; k0 < p->k; k0 += FTH__SPLIT_K) {
            j.k = (int32_t)(p->k - k0 < FTH__SPLIT_K ? p->k - k0 : FTH__SPLIT_K);
            j.a = p->scratch, j.b = p->scratch + bytes_of(j.m, j.k);
            j.from_a = (const float *)p->a + z * p->step_a + k0 * p->ak;
            j.from_b = (const float *)p->b + z * p->step_b + k0 * p->bk;
            j.c = (float *)p->c + z * p->step_c;
            j.add = p->add || k0 > 0;
            FTH_TRY(run_part(call, j));
        }
    return FTH_OK;
}
