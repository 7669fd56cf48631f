/* backend.c - finds the fast CPU kernel of a node; operations without one run their own loop. */
#include "cpu/backend.h"

#include <string.h>

static const fth_kernel *const kernels[] = {
#define FTH_KERNEL(name) &fth__cpu_##name,
#include "cpu/kernels.def"
#undef FTH_KERNEL
    NULL};

static const fth_kernel *find(const fth_node *node)
{
    for (int i = 0; kernels[i]; i++)
        if (strcmp(kernels[i]->op, node->op->name) == 0)
            return !kernels[i]->supports || kernels[i]->supports(node) ? kernels[i] : NULL;
    return NULL;
}

static const fth_kernel *kernel(int i)
{
    return i >= 0 && i < (int)(sizeof kernels / sizeof *kernels) ? kernels[i] : NULL;
}

const fth_backend fth__cpu_backend = {
    .abi = FTH_BACKEND_ABI, .name = "cpu", .find = find, .kernel = kernel};
