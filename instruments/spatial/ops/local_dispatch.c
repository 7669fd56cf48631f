/* local_dispatch.c - which loops this processor runs. */
#include "local.h"

const sp_local_loops *sp_local_loops_at(int level)
{
#ifdef FTH_HAVE_ISA_V3
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
    if (level == 3 && v3) return &sp_local_v3;
#ifdef FTH_HAVE_ISA_V4
    if (level == 4 && v3 && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
        return &sp_local_v4;
#endif
#endif
    if (level == 0) return &sp_local_plain;
    return level == 1 ? &sp_local_base : NULL;
}

const sp_local_loops *sp_local_best(void)
{
    const sp_local_loops *best = NULL;
    for (int level = 4; !best; level--) best = sp_local_loops_at(level);
    return best;
}
