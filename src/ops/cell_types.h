/* cell_types.h - cell_map.h for each type that cells are computed in: map_b, map_u8, .. map_c128.
 *
 * Included once by each interpreter of instructions, which may define FTH__CELL_FN before: the
 * qualifiers of the functions.
 */
#ifndef FTH_OPS_CELL_TYPES_H
#define FTH_OPS_CELL_TYPES_H

#include "ops/elementwise.h"
#include "ops/vecmath.h"

#ifndef FTH__CELL_FN
#define FTH__CELL_FN static
#endif

#define X_SAME FTH_T
#define X_BOOL FTH_T
#define X_REAL FTH_T
#define X_COMPLEX FTH_T
#define X_PICK uint8_t
#define XM_SAME MEMBER
#define XM_BOOL MEMBER
#define XM_REAL MEMBER
#define XM_COMPLEX MEMBER
#define XM_PICK b
#define OUT_SAME MEMBER = CAST
#define OUT_PICK MEMBER = CAST
#define OUT_BOOL b = (uint8_t)
#define OUT_REAL REAL_MEMBER = REAL_CAST
#define OUT_COMPLEX COMPLEX_MEMBER =

#define REAL_CAST CAST
#define FTH__EW_COLUMN BOOL
#define FTH_T uint8_t
#define MEMBER b
#define CAST (uint8_t)
#include "ops/cell_map.h"

/* Small integers are computed in 32 bits and cut back to their width. */
#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__##f##_i32
#define MEMBER u8
#define REAL_MEMBER u8
#define CAST (uint8_t)
#include "ops/cell_map.h"

#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__##f##_i32
#define MEMBER u16
#define REAL_MEMBER u16
#define CAST (uint16_t)
#include "ops/cell_map.h"

#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__##f##_i32
#define MEMBER i32
#define REAL_MEMBER i32
#define CAST (int32_t)
#include "ops/cell_map.h"

#define FTH__EW_COLUMN INT
#define FTH_T int64_t
#define FTH_U(v) ((uint64_t)(v))
#define FTH_FN(f) fth__##f##_i64
#define MEMBER i64
#define REAL_MEMBER i64
#define CAST (int64_t)
#include "ops/cell_map.h"

#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__##f##_i32
#define MEMBER i8
#define REAL_MEMBER i8
#define CAST (int8_t)
#include "ops/cell_map.h"

#define FTH__EW_COLUMN INT
#define FTH_T int32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__##f##_i32
#define MEMBER i16
#define REAL_MEMBER i16
#define CAST (int16_t)
#include "ops/cell_map.h"

#define FTH__EW_COLUMN INT
#define FTH_T uint32_t
#define FTH_U(v) ((uint32_t)(v))
#define FTH_FN(f) fth__##f##_u32
#define MEMBER u32
#define REAL_MEMBER u32
#define CAST (uint32_t)
#include "ops/cell_map.h"

#define FTH__EW_COLUMN REAL
#define FTH_T float
#define FTH_FN(f) fth__##f##_f32
#define MEMBER f32
#define REAL_MEMBER f32
#define COMPLEX_MEMBER c64
#define CAST (float)
#include "ops/cell_map.h"

#define FTH__EW_COLUMN REAL
#define FTH_T double
#define FTH_FN(f) fth__##f##_f64
#define MEMBER f64
#define REAL_MEMBER f64
#define COMPLEX_MEMBER c128
#define CAST (double)
#include "ops/cell_map.h"
#undef REAL_CAST

#define REAL_CAST
#define FTH__EW_COLUMN COMPLEX
#define FTH_T fth_c64
#define FTH_FN(f) fth__##f##_c64
#define MEMBER c64
#define REAL_MEMBER f32
#define CAST
#include "ops/cell_map.h"

#define FTH__EW_COLUMN COMPLEX
#define FTH_T fth_c128
#define FTH_FN(f) fth__##f##_c128
#define MEMBER c128
#define REAL_MEMBER f64
#define CAST
#include "ops/cell_map.h"
#undef REAL_CAST

#endif
