/* vec.c - which instruction set this processor has. */
#include "cpu/vec.h"

#define DECLARE(isa)                                                                               \
    extern fth__map_loops fth__map_loops_##isa;                                                    \
    extern fth__cast_loops fth__cast_loops_##isa;                                                  \
    extern const fth__half_table fth__half_loops_##isa;                                            \
    extern const fth__pair_list fth__pair_loops_##isa;                                             \
    extern const fth__tail_loops fth__tail_loops_##isa;                                            \
    extern const fth__nan_loops fth__nan_loops_##isa;                                              \
    static const fth__vec_table table_##isa = {#isa,                                               \
                                               &fth__map_loops_##isa,                              \
                                               &fth__cast_loops_##isa,                             \
                                               &fth__half_loops_##isa,                             \
                                               &fth__pair_loops_##isa,                             \
                                               &fth__tail_loops_##isa,                             \
                                               &fth__nan_loops_##isa};
DECLARE(base)
#ifdef FTH_HAVE_ISA_V3
DECLARE(v3)
#endif
#ifdef FTH_HAVE_ISA_V4
DECLARE(v4)
#endif

const fth__vec_table *fth__vec(void)
{
#ifdef FTH_HAVE_ISA_V3
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
#ifdef FTH_HAVE_ISA_V4
    if (v3 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        return &table_v4;
#endif
    if (v3) return &table_v3;
#endif
    return &table_base;
}
