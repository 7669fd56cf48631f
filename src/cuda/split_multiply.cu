/* split_multiply.cu - the product of packed parts by the matrix units of capability 9.0 (wgmma).
 *
 * A block of threads makes 128 by 128 elements. One thread has packed blocks of both operands
 * copied into four rooms of shared memory, in bulk, as rooms become free. Two groups of four warps
 * multiply 64 rows each: the six products of parts of a chunk by twelve instructions, small ones
 * first, then the chunk is added to the sums while the units work for the other group.
 *
 * This file alone is compiled for sm_90a; nothing but its host function is called from elsewhere,
 * and only on cards of capability 9.0. Where kernels are compiled for the CPU, threads make the
 * same sums from the packed blocks by plain loops.
 */
#include "cuda/split.h"

static constexpr int LINES = FTH__SPLIT_LINES, CHUNK = FTH__SPLIT_CHUNK, PART = FTH__SPLIT_PART,
                     BLOCK = FTH__SPLIT_BLOCK;
static constexpr int ROOMS = 4, THREADS = 2 * 128, EACH = 64; /* elements of a thread */
static constexpr int TOGETHER = 16; /* rows of tiles that run side by side share b in the cache */
static constexpr int PRODUCTS = 6, CHAIN = FTH__SPLIT_CHAIN;
/* Part of a, and of b, in the order they are multiplied: small products first. */
static __device__ constexpr int part_a(int q)
{
    return q == 0 || q == 3 || q == 5 ? 0 : q == 2 ? 2 : 1;
}
static __device__ constexpr int part_b(int q)
{
    return q == 0 ? 2 : q == 1 || q == 3 ? 1 : 0;
}

/* The tile of a block of threads, and the elements of a thread in it: element i is at row
 * (i / 2 % 2) * 8 and column i / 4 * 8 + i % 2 from the first. */
struct place {
    int m0, n0, row, col;
};

static __device__ inline place place_of(const fth__split_job &p)
{
    const int down = (p.m + LINES - 1) / LINES, across = (p.n + LINES - 1) / LINES;
    const int i = (int)blockIdx.x, stripe = i / (TOGETHER * across) * TOGETHER,
              rows = down - stripe < TOGETHER ? down - stripe : TOGETHER, in = i - stripe * across;
    const int t = (int)threadIdx.x, lane = t % 32;
    place o;
    o.m0 = (stripe + in % rows) * LINES, o.n0 = in / rows * LINES;
    o.row = t / 32 * 16 + lane / 4, o.col = lane % 4 * 2;
    return o;
}
static __device__ inline int row_of(const place &at, int i)
{
    return at.row + i / 2 % 2 * 8;
}
static __device__ inline int col_of(const place &at, int i)
{
    return at.col + i / 4 * 8 + i % 2;
}

static __device__ inline float power_of_two(int e)
{
    return __int_as_float((127 + e) << 23);
}

/* The chunk of one element whose row or column is not finite. */
static __device__ float plain_sum(const fth__split_job &p, int m, int n, int chunk)
{
    const int end = chunk + CHUNK < p.k ? chunk + CHUNK : p.k;
    float sum = 0;
    for (int k = chunk; k < end && m < p.m && n < p.n; k++)
        sum = fmaf(p.from_a[m * p.am + k * p.ak], p.from_b[k * p.bk + n * p.bn], sum);
    return sum;
}

/* Add a chunk of which some lines were scaled or left out. The scale is taken back in two steps,
 * because both together can be less than any float. */
static __device__ void add_scaled(const fth__split_job &p, const place &at, int chunk,
                                  const signed char *of_a, const signed char *of_b,
                                  const float (&sum)[EACH], float (&total)[EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int row = row_of(at, i), col = col_of(at, i), a = of_a[row], b = of_b[col];
        if (a == FTH__SPLIT_PLAIN || b == FTH__SPLIT_PLAIN) {
            total[i] += plain_sum(p, at.m0 + row, at.n0 + col, chunk);
            continue;
        }
        const int by = -(a + b), half = by / 2;
        total[i] += sum[i] * power_of_two(half) * power_of_two(by - half);
    }
}

/* Add the sums of a chain to what is there, or write them, and begin the next chain. */
static __device__ void put(const fth__split_job &p, const place &at, bool add, float (&total)[EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int m = at.m0 + row_of(at, i), n = at.n0 + col_of(at, i);
        if (m < p.m && n < p.n) {
            float *c = p.c + m * p.cm + n * p.cn;
            *c = add ? *c + total[i] : total[i];
        }
        total[i] = 0;
    }
}

/* Does a chain end with this chunk? */
static __device__ inline bool is_last(int c, int chunks)
{
    return (c + 1) % CHAIN == 0 || c + 1 == chunks;
}

#ifdef FTH_EMULATED

static float number(const char *block, int part, int line, int k)
{
    uint16_t v;
    memcpy(&v, block + part * PART + ((k / 8 * LINES + line) * 8 + k % 8) * 2, sizeof v);
    return __int_as_float((int)((uint32_t)v << 16));
}

static void multiply(const fth__split_job p)
{
    const place at = place_of(p);
    const int chunks = (p.k + CHUNK - 1) / CHUNK;
    float total[EACH] = {}, sum[EACH];
    for (int c = 0; c < chunks; c++) {
        const char *a = p.a + ((int64_t)at.m0 / LINES * chunks + c) * BLOCK,
                   *b = p.b + ((int64_t)at.n0 / LINES * chunks + c) * BLOCK;
        for (int i = 0; i < EACH; i++) {
            sum[i] = 0;
            for (int q = 0; q < PRODUCTS; q++)
                for (int k = 0; k < CHUNK; k++)
                    sum[i] = fmaf(number(a, part_a(q), row_of(at, i), k),
                                  number(b, part_b(q), col_of(at, i), k), sum[i]);
        }
        add_scaled(p, at, c * CHUNK, (const signed char *)a + FTH__SPLIT_PARTS * PART,
                   (const signed char *)b + FTH__SPLIT_PARTS * PART, sum, total);
        if (is_last(c, chunks)) put(p, at, p.add || c >= CHAIN, total);
    }
}

#else

/* ---- barriers of shared memory, and copies that arrive at them ---- */

static __device__ inline unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}
static __device__ inline void barrier_make(uint64_t *b, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count)
                 : "memory");
}
static __device__ inline void barrier_arrive(uint64_t *b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
static __device__ inline void barrier_expect(uint64_t *b, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)),
                 "r"(bytes)
                 : "memory");
}
/* Until the phase of this parity is over. */
static __device__ inline void barrier_wait(uint64_t *b, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n .reg .pred p;\n"
                     " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     " selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(shared_address(b)), "r"(parity)
                     : "memory");
}
static __device__ inline void copy_block(void *to, const void *from, uint64_t *arrives)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(BLOCK), "r"(shared_address(arrives))
                 : "memory");
}

/* ---- the units ---- */

/* A matrix of 8-line by 16-byte squares, each 128 bytes in a row: next to each other along the
 * lines, 2048 bytes apart along k. */
static __device__ inline uint64_t describe(const char *at)
{
    constexpr uint64_t along_k = LINES * 16 / 16, along_lines = 128 / 16;
    return (uint64_t)((shared_address(at) & 0x3ffffu) >> 4) | along_k << 16 | along_lines << 32;
}

/* d (64 by 128, as place says) = a b over 16 of k, or d += a b. */
static __device__ inline void units(float (&d)[EACH], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %66, 0;\n"
                 " wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63"
                 "}, %64, %65, p, 1, 1, 0, 0;\n}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b), "r"(add));
}

/* The compiler does not know that the units still write what an instruction names. */
static __device__ inline void settle(float (&d)[EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i++) asm volatile("" : "+f"(d[i])::"memory");
}

/* Ask the units for a chunk; what is in sum is theirs until they are waited for. */
static __device__ inline void ask(const char *a, const char *b, float (&sum)[EACH])
{
    constexpr int SIXTEEN = 2 * LINES * 16; /* bytes from one 16 of k to the next */
    settle(sum);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int q = 0; q < PRODUCTS; q++)
#pragma unroll
        for (int k = 0; k < CHUNK / 16; k++)
            units(sum, describe(a + part_a(q) * PART + k * SIXTEEN),
                  describe(b + part_b(q) * PART + k * SIXTEEN), q + k > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
static __device__ inline void await(float (&sum)[EACH])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    settle(sum);
}

/* ---- a tile ---- */

struct room {
    char a[BLOCK], b[BLOCK];
};

struct tile {
    const fth__split_job &p;
    place at;
    room *rooms;
    uint64_t *full, *empty;
    int chunks;

    /* One thread: chunk c to its room, when everybody is done with what was there. The phase before
     * the first counts as over. */
    __device__ void fetch(int c) const
    {
        const int r = c % ROOMS;
        if (c >= chunks) return;
        barrier_wait(&empty[r], (unsigned)(c / ROOMS + 1) & 1u);
        barrier_expect(&full[r], 2 * BLOCK);
        copy_block(rooms[r].a, p.a + ((int64_t)(at.m0 / LINES) * chunks + c) * BLOCK, &full[r]);
        copy_block(rooms[r].b, p.b + ((int64_t)(at.n0 / LINES) * chunks + c) * BLOCK, &full[r]);
    }

    __device__ void run() const
    {
        const int lane = (int)threadIdx.x % 32, group = (int)threadIdx.x / 128;
        float total[EACH] = {}, sum[EACH] = {};
        for (int c = 0; c < ROOMS - 1 && threadIdx.x == 0; c++) fetch(c);
        for (int c = 0; c < chunks; c++) {
            const room &here = rooms[c % ROOMS];
            const signed char *of_a = (const signed char *)here.a + FTH__SPLIT_PARTS * PART,
                              *of_b = (const signed char *)here.b + FTH__SPLIT_PARTS * PART;
            barrier_wait(&full[c % ROOMS], (unsigned)(c / ROOMS) & 1u);
            ask(here.a + group * 64 * 16, here.b, sum);
            if (threadIdx.x == 0) fetch(c + ROOMS - 1);
            __syncwarp();
            const bool scaled =
                __any_sync(~0u, ((const int *)of_a)[lane] != 0 || ((const int *)of_b)[lane] != 0);
            await(sum);
            if (scaled) {
                add_scaled(p, at, c * CHUNK, of_a, of_b, sum, total);
            } else {
#pragma unroll
                for (int i = 0; i < EACH; i++) total[i] += sum[i];
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(&empty[c % ROOMS]);
            if (is_last(c, chunks)) put(p, at, p.add || c >= CHAIN, total);
        }
    }
};

static __global__ void __launch_bounds__(THREADS, 1)
    multiply(const __grid_constant__ fth__split_job p)
{
    __shared__ uint64_t full[ROOMS], empty[ROOMS];
    FTH_SHARED(room, rooms);
    if (threadIdx.x == 0) {
        for (int r = 0; r < ROOMS; r++) {
            barrier_make(&full[r], 1);
            barrier_make(&empty[r], THREADS / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const tile t = {p, place_of(p), rooms, full, empty, (p.k + CHUNK - 1) / CHUNK};
    t.run();
}

#endif

void fth__cuda_split_multiply(cudaStream_t stream, const fth__split_job *job)
{
    const int64_t tiles = (int64_t)((job->m + LINES - 1) / LINES) * ((job->n + LINES - 1) / LINES);
    FTH_LAUNCH_SHARED(multiply, (unsigned)tiles, THREADS, ROOMS * 2 * BLOCK, stream, *job);
}
