/* jit.h - compiled programs of one device: made once, kept as long as it is open. */
#ifndef FTH_CUDA_JIT_H
#define FTH_CUDA_JIT_H

#include "cuda/device/device.h"
#include "cuda/program/fused_args.h"
#include "cuda/program/source.h"

/* The kernel of a program, for items of neighbours or for single elements at any distance. */
typedef struct fth__jit_code fth__jit_code;

/* Loads it, if it is kept or worth being compiled: `work` is to be done (cuda/program/worth.h), and
 * what was done without it counts too; not on a stream that is being recorded. *out is NULL
 * otherwise, and where there is no compiler or no context whose memory it could take: then
 * cuda/program/interpreter.cu does the work. */
fth_status fth__jit_get(fth_device *device, const fth_node *node, const fth__program *p,
                        const fth__ew_shape *shape, bool vec, int64_t work, void *stream,
                        const fth__jit_code **out, fth_err *err);
/* Is it loaded? */
bool fth__jit_has(fth_device *device, const fth__program *p, const fth__ew_shape *shape, bool vec);
/* Queues it. */
fth_status fth__jit_launch(const fth_call *call, const fth__jit_code *code, dim3 blocks,
                           unsigned threads, unsigned shared, const fth__ew_args *args);

#endif
