/* io/safetensors.h - what reading and writing safetensors share. */
#ifndef FTH_IO_SAFETENSORS_H
#define FTH_IO_SAFETENSORS_H

#include "io/dense.h"

#define FTH__ST_AXES "axes."
#define FTH__ST_HASH "xxh64."
#define FTH__ST_META "__metadata__"
#define FTH__ST_PARTS "ri"                    /* last axis of a c128, kept as f64 */
enum { FTH__ST_LONGEST = 100 * 1000 * 1000 }; /* bytes of the header: the limit of the format */

/* "F32", or NULL: c128 has none and is kept as F64. */
const char *fth__st_dtype_name(fth_dtype t);

#endif
