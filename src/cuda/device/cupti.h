/* cupti.h - the entries of the device's table that CUPTI stands behind (fathom/backend.h). */
#ifndef FTH_CUDA_CUPTI_H
#define FTH_CUDA_CUPTI_H

#include "cuda/device/device.h"

fth_status fth__cuda_watch(fth_device *device, void *memory, uint64_t bytes, fth_err *err);
int64_t fth__cuda_watch_now(fth_device *device);
void fth__cuda_watch_read(fth_device *device, bool all, fth_event_fn *take, void *arg,
                          uint64_t *lost);
void fth__cuda_unwatch(fth_device *device);

#endif
