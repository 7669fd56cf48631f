/* testing/splat/splat_device.h - a device for rows of splat: made of threads, or
 * FATHOM_TEST_DEVICE's. */
#ifndef FATHOM_TESTING_SPLAT_DEVICE_H
#define FATHOM_TESTING_SPLAT_DEVICE_H

#include "testing/engine/host_device.h"
#include "testing/splat/splat_rows.h"

#include <stdlib.h>

/* NULL: this backend has no ranges of addresses, or there is none. */
static inline fth_context *t_rows_device(uint64_t budget, bool threads)
{
    const uint64_t page = 2 << 20;
    fth_context *ctx = NULL;
    fth_options opt;
    fth_err err = {0};
    fth_tensor *t = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 256 << 20;
    opt.device = "cuda";
    opt.device_memory_bytes = budget;
    if (threads)
        opt.backend = &t_host_backend;
    else
        opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    const fth_status s = fth_tensor_reserve(&t, fth_context_device_mem(ctx), "rows", FTH_F32, 1,
                                            ((int64_t[]){1}), (int64_t)page, NULL);
    fth_tensor_release(t);
    if (s == FTH_OK) return ctx;
    OK(fth_context_destroy(ctx, NULL));
    return NULL;
}

#endif
