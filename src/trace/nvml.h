/* trace/nvml.h - the driver's management library, opened for as long as somebody asks.
 *
 * Every function of it is optional. Only nvml.c knows its names and structs.
 */
#ifndef FTH_TRACE_NVML_H
#define FTH_TRACE_NVML_H

#include <fathom/monitor.h>

typedef struct fth__nvml fth__nvml;

/* NULL: `why` (at least 200 characters) says what is missing. */
fth__nvml *fth__nvml_open(fth_mem *mem, char *why, size_t bytes);
void fth__nvml_close(fth__nvml *n); /* NULL is allowed */
int fth__nvml_count(const fth__nvml *n);

/* The columns of `nvidia-smi dmon`, in its order. */
typedef enum fth__gpu_value {
#define FTH__GPU_VALUE(id, group, name, unit) FTH__GPU_##id,
#include "trace/dmon.def"
#undef FTH__GPU_VALUE
    FTH__GPU_VALUES
} fth__gpu_value;
/* Card i now; -1 where it does not tell. Shares of time are since the sample before. */
void fth__nvml_sample(fth__nvml *n, int i, int64_t value[FTH__GPU_VALUES]);

#endif
