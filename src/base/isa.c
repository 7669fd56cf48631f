/* isa.c - which instruction set this processor has.
 *
 * The only file that asks it. The compiler's runtime has asked the processor, and whether the
 * system saves its registers, before the program starts; a call only reads what it found.
 */
#include "base/processor.h"

#include <fathom/isa.h>

int fth_isa_level(void)
{
#if defined(__x86_64__)
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512cd");
    return v4 ? 4 : v3 ? 3 : 1;
#else
    return 1;
#endif
}

bool fth__is_amd(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}
