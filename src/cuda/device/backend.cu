/* backend.cu - the CUDA backend as others see it: every kernel record of this library, and the
 * table of the device. */
#include "cuda/device/device.h"

#include <string.h>

extern const fth_device_table fth__cuda_table;

/* The linker gathers the entries of all files and marks both ends. */
extern "C" {
extern const fth_kernel *const __start_fth_kernels[] __attribute__((visibility("hidden")));
extern const fth_kernel *const __stop_fth_kernels[] __attribute__((visibility("hidden")));
}

static const fth_kernel *kernel(int i)
{
    return i >= 0 && i < __stop_fth_kernels - __start_fth_kernels ? __start_fth_kernels[i] : NULL;
}

static const fth_kernel *find(const fth_node *node)
{
    for (int i = 0; kernel(i); i++)
        if (strcmp(kernel(i)->op, node->op->name) == 0)
            return !kernel(i)->supports || kernel(i)->supports(node) ? kernel(i) : NULL;
    return NULL;
}

static const fth_backend backend = {
    .abi = FTH_BACKEND_ABI,
    .name = "cuda",
    .version = FTH_VERSION_TEXT,
    .find = find,
    .kernel = kernel,
    .device = &fth__cuda_table,
};

extern "C" FTH_API const fth_backend *fth_backend_get(void)
{
    return &backend;
}
