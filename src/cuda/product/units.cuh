/* units.cuh - the words of a card of capability 9.0 for its matrix units (wgmma): barriers of
 * shared memory, copies that arrive at them, and products of matrices that lie there.
 *
 * A file that includes this is compiled for sm_90a and its kernels run on such cards alone. Where
 * kernels are compiled for the CPU the same words are plain loops, so that whole kernels run there:
 * a copy and a product are done when they are asked for, and who waits lets others go on.
 */
#ifndef FTH_CUDA_UNITS_CUH
#define FTH_CUDA_UNITS_CUH

#include <cuda_runtime.h>

#ifdef __CUDACC__

/* A group of four warps makes 64 by 128 elements, 64 of them a thread: element i is at row
 * i / 2 % 2 * 8 and column i / 4 * 8 + i % 2 from the first of its lane. */
static constexpr int FTH__UNITS_ROWS = 64, FTH__UNITS_COLUMNS = 128, FTH__UNITS_EACH = 64,
                     FTH__UNITS_GROUP = 128, FTH__UNITS_K = 16;
static __device__ inline int fth__units_row(int thread)
{
    return thread % 128 / 32 * 16 + thread % 32 / 4;
}
static __device__ inline int fth__units_column(int thread)
{
    return thread % 4 * 2;
}

#ifdef FTH_EMULATED

/* Who arrives, who still has to, and the parity of the phase. */
struct fth__units_barrier {
    int count, left;
    unsigned parity;
};
static inline void fth__units_end_phase(fth__units_barrier *b)
{
    if (--b->left > 0) return;
    b->left = b->count;
    b->parity ^= 1u;
}
static inline void fth__units_make(fth__units_barrier *b, int count)
{
    *b = {count, count, 0};
}
static inline void fth__units_made(void)
{
}
static inline void fth__units_arrive(fth__units_barrier *b)
{
    fth__units_end_phase(b);
}
static inline void fth__units_expect(fth__units_barrier *b, int)
{
    fth__units_end_phase(b); /* nobody else runs before the copies are made */
}
static inline void fth__units_wait(fth__units_barrier *b, unsigned parity)
{
    while (b->parity == parity) emulate::turn();
}
static inline void fth__units_copy(void *to, const void *from, int bytes, fth__units_barrier *)
{
    memcpy(to, from, (size_t)bytes);
}
static inline void fth__units_announce(const void *, const void *)
{
}
static inline void fth__units_written(void)
{
}

/* A matrix of 8-line by 16-byte squares, each 128 bytes in a row. */
struct fth__units_matrix {
    const char *at;
    int along_k, along_lines;
};
static inline fth__units_matrix fth__units_describe(const char *at, int along_k, int along_lines)
{
    return {at, along_k, along_lines};
}
/* What a thread multiplies: sixteen numbers of each of its lines, and its sums. */
struct fth__units_lines {
    static constexpr int N = FTH__UNITS_EACH / 2, K = FTH__UNITS_K;
    alignas(16) uint16_t a[2][K], b[N][K];
    float sum[2][N];
    void get(uint16_t (&out)[K], const fth__units_matrix &m, int line)
    {
        const char *at = m.at + line / 8 * m.along_lines + line % 8 * 16;
        for (int k = 0; k < K; k += 4)
            *(uint64_t *)(out + k) = *(const uint64_t *)(at + k / 8 * m.along_k + k % 8 * 2);
    }
    /* Where it was read from has been looked at: most of the time of a product would go into a
     * sanitizer's looks at these arrays. */
    __attribute__((no_sanitize("address"))) void multiply()
    {
        float of_a[2][K], of_b[K][N];
        for (int k = 0; k < K; k++) {
            for (int i = 0; i < 2; i++)
                of_a[i][k] = __builtin_bit_cast(float, (uint32_t)a[i][k] << 16);
            for (int j = 0; j < N; j++)
                of_b[k][j] = __builtin_bit_cast(float, (uint32_t)b[j][k] << 16);
        }
        for (int k = 0; k < K; k++)
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < N; j++) sum[i][j] = fmaf(of_a[i][k], of_b[k][j], sum[i][j]);
    }
};
static inline void fth__units_multiply(float (&d)[FTH__UNITS_EACH], const fth__units_matrix &a,
                                       const fth__units_matrix &b, int add)
{
    const int row = fth__units_row((int)threadIdx.x), column = fth__units_column((int)threadIdx.x);
    fth__units_lines of;
    for (int i = 0; i < 2; i++) of.get(of.a[i], a, row + i * 8);
    for (int j = 0; j < of.N; j++) of.get(of.b[j], b, column + j / 2 * 8 + j % 2);
    for (int i = 0; i < FTH__UNITS_EACH; i++) of.sum[i / 2 % 2][i / 4 * 2 + i % 2] = add ? d[i] : 0;
    of.multiply();
    for (int i = 0; i < FTH__UNITS_EACH; i++) d[i] = of.sum[i / 2 % 2][i / 4 * 2 + i % 2];
}
static inline float fth__units_turned(const fth__units_matrix &m, int line, int k)
{
    uint16_t v;
    memcpy(&v, m.at + k / 8 * m.along_k + line / 8 * m.along_lines + k % 8 * 16 + line % 8 * 2,
           sizeof v);
    return __int_as_float((int)((uint32_t)v << 16));
}
static inline void fth__units_multiply_turned(float (&d)[FTH__UNITS_EACH / 2],
                                              const fth__units_matrix &a,
                                              const fth__units_matrix &b, int add)
{
    const int row = fth__units_row((int)threadIdx.x), column = fth__units_column((int)threadIdx.x);
    for (int i = 0; i < FTH__UNITS_EACH / 2; i++) {
        float sum = add ? d[i] : 0;
        for (int k = 0; k < FTH__UNITS_K; k++)
            sum = fmaf(fth__units_turned(a, row + i / 2 % 2 * 8, k),
                       fth__units_turned(b, column + i / 4 * 8 + i % 2, k), sum);
        d[i] = sum;
    }
}
static inline void fth__units_begin(void)
{
}
static inline void fth__units_commit(void)
{
}
template <int LEFT> static inline void fth__units_finish(void)
{
}
template <int REGISTERS> static inline void fth__units_give(void)
{
}
template <int REGISTERS> static inline void fth__units_take(void)
{
}
template <int N> static inline void fth__units_settle(float (&)[N])
{
}

#else

typedef uint64_t fth__units_barrier;

static __device__ inline unsigned fth__units_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}
static __device__ inline void fth__units_make(fth__units_barrier *b, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(fth__units_address(b)), "r"(count)
                 : "memory");
}
/* After the last barrier was made, by who made them. */
static __device__ inline void fth__units_made(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ inline void fth__units_arrive(fth__units_barrier *b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(fth__units_address(b))
                 : "memory");
}
static __device__ inline void fth__units_expect(fth__units_barrier *b, int bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(fth__units_address(b)),
        "r"(bytes)
        : "memory");
}
/* Until the phase of this parity is over. */
static __device__ inline void fth__units_wait(fth__units_barrier *b, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n .reg .pred p;\n"
                     " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     " selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(fth__units_address(b)), "r"(parity)
                     : "memory");
}
/* Multiples of 16 bytes; they count for the barrier as they arrive. */
static __device__ inline void fth__units_copy(void *to, const void *from, int bytes,
                                              fth__units_barrier *arrives)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(fth__units_address(to)),
                 "l"(from), "r"(bytes), "r"(fth__units_address(arrives))
                 : "memory");
}
/* Bytes that are read soon: whole sixteens of them come into the cache. */
static __device__ inline void fth__units_announce(const void *from, const void *to)
{
    const uintptr_t begin = (uintptr_t)from / 16 * 16;
    const unsigned bytes = (unsigned)(((uintptr_t)to - begin) / 16 * 16);
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(begin), "r"(bytes));
}
/* What this thread has written to shared memory is the units' to read, once others know. */
static __device__ inline void fth__units_written(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* A matrix of 8-line by 16-byte squares, each 128 bytes in a row: so many bytes from square to
 * square along k, and along the lines. */
typedef uint64_t fth__units_matrix;
static __device__ inline fth__units_matrix fth__units_describe(const char *at, int along_k,
                                                               int along_lines)
{
    return (uint64_t)((fth__units_address(at) & 0x3ffffu) >> 4) | (uint64_t)(along_k >> 4) << 16 |
           (uint64_t)(along_lines >> 4) << 32;
}

/* d = a b over 16 of k, or d += a b. */
static __device__ inline void fth__units_multiply(float (&d)[FTH__UNITS_EACH], fth__units_matrix a,
                                                  fth__units_matrix b, int add)
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
/* The same of 64 by 64 elements, where both matrices lie with lines next to each other: squares of
 * 8 of k, each of 16 bytes of lines. */
static __device__ inline void fth__units_multiply_turned(float (&d)[FTH__UNITS_EACH / 2],
                                                         fth__units_matrix a, fth__units_matrix b,
                                                         int add)
{
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %34, 0;\n"
                 " wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31"
                 "}, %32, %33, p, 1, 1, 1, 1;\n}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31])
                 : "l"(a), "l"(b), "r"(add));
}
/* Around products: what they name is the units' between these. */
static __device__ inline void fth__units_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ inline void fth__units_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Until so many groups of products that were committed are left, the last ones. */
template <int LEFT> static __device__ inline void fth__units_finish(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
/* A group of four warps keeps so many registers a thread, or has so many from now on. */
template <int REGISTERS> static __device__ inline void fth__units_give(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> static __device__ inline void fth__units_take(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
/* The compiler does not know that the units still write what an instruction names. */
template <int N> static __device__ inline void fth__units_settle(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#endif

/* Rooms in turn: which one is next, and the parity of its phase. */
struct fth__units_turn {
    int at = 0;
    unsigned parity = 0;
    __device__ void next(int rooms)
    {
        at = at + 1 == rooms ? 0 : at + 1;
        parity ^= at == 0;
    }
};

#endif
#endif
