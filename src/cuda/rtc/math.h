/* math.h - what the device code takes from it, for a compiler without headers of the system. */
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_fmaf fmaf
#define __builtin_fma fma
#define __builtin_fmodf fmodf
#define __builtin_fmod fmod
