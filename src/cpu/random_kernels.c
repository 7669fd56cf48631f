/* random_kernels.c - rows of random numbers, compiled once per instruction set. */
#include "cpu/random.h"
#include "cpu/vec_loop.h"
#include "ops/philox.h"

#define ROW(name, T, expr)                                                                         \
    static void name(int64_t n, void *out_, const fth__random_key *key_, uint64_t first,           \
                     uint64_t step)                                                                \
    {                                                                                              \
        T *out = out_;                                                                             \
        const fth__random_key key = *key_;                                                         \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const fth__philox p = fth__random_bits(&key, first + (uint64_t)i * step);              \
            out[i] = expr;                                                                         \
        }                                                                                          \
    }
ROW(bits, int64_t, (int64_t)((uint64_t)p.v[1] << 32 | p.v[0]))
ROW(uniform_f32, float, fth__uniform_f32(p.v[0]))
ROW(uniform_f64, double, fth__uniform_f64(p.v[0], p.v[1]))
ROW(normal_f32, float, fth__normal_f32(&p))
ROW(normal_f64, double, fth__normal_f64(&p))

const fth__random_rows FTH_ISA_NAME(fth__random_rows) = {
    [FTH_RANDOM_BITS] = {bits, bits},
    [FTH_RANDOM_UNIFORM] = {uniform_f32, uniform_f64},
    [FTH_RANDOM_NORMAL] = {normal_f32, normal_f64},
};
