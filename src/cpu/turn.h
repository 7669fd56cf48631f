/* cpu/turn.h - transposition of matrices of floats. */
#ifndef FTH_CPU_TURN_H
#define FTH_CPU_TURN_H

#include <fathom/isa.h>
#include <stdint.h>

typedef struct fth__turn_loops {
    /* dst[i * d_step + k] = src[k * s_step + i] for i < n, k < m. */
    void (*turn)(float *dst, int64_t d_step, const float *src, int64_t s_step, int64_t n,
                 int64_t m);
} fth__turn_loops;
FTH_ISA_DECLARE(const fth__turn_loops, fth__turn_loops);

#endif
