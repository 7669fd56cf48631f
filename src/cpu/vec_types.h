/* vec_types.h - vec_map.h for each type that blocks are held in. No guard: included per use. */
#define REAL_CAST CAST
#define HAS_TWIN 0

#define FTH__EW_COLUMN BOOL
#define FTH_T uint8_t
#define TAG bool
#define DTYPE FTH_BOOL
#define STORE uint8_t
#define CAST (uint8_t)
#include "cpu/vec_map.h"
#undef DTYPE

/* Small integers are computed in 32 bits and cut back to their width; functions of integers are
 * those of cpu/divide.h. */
#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__vec_##f##_small
#define TAG u8
#define DTYPE FTH_U8
#define STORE uint8_t
#define REAL_STORE uint8_t
#define CAST (uint8_t)
#include "cpu/vec_map.h"
#undef DTYPE

#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__vec_##f##_small
#define TAG u16
#define DTYPE FTH_U16
#define STORE uint16_t
#define REAL_STORE uint16_t
#define CAST (uint16_t)
#include "cpu/vec_map.h"
#undef DTYPE

#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__vec_##f##_i32
#define TAG i32
#define DTYPE FTH_I32
#define STORE int32_t
#define REAL_STORE int32_t
#define CAST (int32_t)
#include "cpu/vec_map.h"
#undef DTYPE

#define FTH__EW_COLUMN INT
#define FTH_T int64_t
#define FTH_U(v) ((uint64_t)(v))
#define FTH_FN(f) fth__vec_##f##_i64
#define TAG i64
#define DTYPE FTH_I64
#define STORE int64_t
#define REAL_STORE int64_t
#define CAST (int64_t)
#include "cpu/vec_map.h"
#undef DTYPE

#undef HAS_TWIN
#define HAS_TWIN 1
/* Where the sign makes no difference they have the loops of the other sign (fth__vec_twin). */
#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__vec_##f##_small
#define TAG i8
#define DTYPE FTH_I8
#define STORE int8_t
#define REAL_STORE int8_t
#define CAST (int8_t)
#include "cpu/vec_map.h"
#undef DTYPE

#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__vec_##f##_small
#define TAG i16
#define DTYPE FTH_I16
#define STORE int16_t
#define REAL_STORE int16_t
#define CAST (int16_t)
#include "cpu/vec_map.h"
#undef DTYPE

#define FTH__EW_COLUMN INT
#define FTH_T uint32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__vec_##f##_u32
#define TAG u32
#define DTYPE FTH_U32
#define STORE uint32_t
#define REAL_STORE uint32_t
#define CAST (uint32_t)
#include "cpu/vec_map.h"
#undef DTYPE

#undef HAS_TWIN
#define HAS_TWIN 0
#define FTH__EW_COLUMN REAL
#define FTH_T float
#define FTH_FN(f) fth__##f##_f32
#define TAG f32
#define DTYPE FTH_F32
#define STORE float
#define REAL_STORE float
#define COMPLEX_STORE fth_c64
#define CAST (float)
#include "cpu/vec_map.h"
#undef DTYPE

#define FTH__EW_COLUMN REAL
#define FTH_T double
#define FTH_FN(f) fth__##f##_f64
#define TAG f64
#define DTYPE FTH_F64
#define STORE double
#define REAL_STORE double
#define COMPLEX_STORE fth_c128
#define CAST (double)
#include "cpu/vec_map.h"
#undef DTYPE
#undef REAL_CAST

#define REAL_CAST
#define FTH__EW_COLUMN COMPLEX
#define FTH_T fth_c64
#define FTH_FN(f) fth__##f##_c64
#define TAG c64
#define DTYPE FTH_C64
#define STORE fth_c64
#define REAL_STORE float
#define CAST
#include "cpu/vec_map.h"
#undef DTYPE

#define FTH__EW_COLUMN COMPLEX
#define FTH_T fth_c128
#define FTH_FN(f) fth__##f##_c128
#define TAG c128
#define DTYPE FTH_C128
#define STORE fth_c128
#define REAL_STORE double
#define CAST
#include "cpu/vec_map.h"
#undef DTYPE
#undef REAL_CAST
#undef HAS_TWIN
