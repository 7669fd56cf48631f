/* scalars.h - functions of one number in the precision that FTH_VECTOR_REAL says, for the loops and
 * kernels of splat. */
#ifndef SPLAT_RASTER_SCALARS_H
#define SPLAT_RASTER_SCALARS_H

#if FTH_VECTOR_REAL == 32
#define FMA(a, b, c) fmaf((a), (b), (c))
#define EXP expf
#define LOG logf
#define SQRT sqrtf
#define FLOOR floorf
#define CEIL ceilf
#define SIN sinf
#define COS cosf
#define ATAN2 atan2f
#else
#define FMA(a, b, c) fma((a), (b), (c))
#define EXP exp
#define LOG log
#define SQRT sqrt
#define FLOOR floor
#define CEIL ceil
#define SIN sin
#define COS cos
#define ATAN2 atan2
#endif

#endif
