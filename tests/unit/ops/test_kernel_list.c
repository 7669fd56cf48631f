/* test_kernel_list.c - the CUDA backend has the kernels of ops.def and parity/kernels.def, no
 * others.
 *
 * The list can be read where there is no card; which dtypes each takes is asked by parity/device.
 * seconds: 2
 */
#include "graph/graph.h"
#include "ops/ops.h"
#include "testing/test.h"

#include <fathom/backend.h>

static const struct {
    const char *name;
    bool wanted;
} list[] = {
#define FTH_OP(name, kernels, ...) {#name, sizeof(kernels) > 1},
#define FTH_OP_INNER(name, kernels, ...) {#name, sizeof(kernels) > 1},
#include <fathom/ops.def>
#define FTH_MORE(name) {#name, true},
#include "parity/kernels.def"
#undef FTH_MORE
};
enum { LIST = sizeof list / sizeof *list };

/* Operations that only look at a value in another way need no kernel. */
static bool is_alias(const char *name)
{
#define FTH_OP(op, ...)                                                                            \
    if (strcmp(name, #op) == 0) return fth__op_##op.flags & FTH_OP_ALIAS;
#define FTH_OP_INNER FTH_OP
#include <fathom/ops.def>
    return false;
}

static bool has(const fth_backend *b, const char *name)
{
    for (int i = 0; b->kernel(i); i++)
        if (strcmp(b->kernel(i)->op, name) == 0) return true;
    return false;
}

static bool is_listed(const char *name)
{
    for (int i = 0; i < LIST; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].wanted;
    return false;
}

TEST(every_kernel_of_the_list_and_no_other)
{
    fth_backend_found found = {0};
    fth_err err = {0};
    const char *device = getenv("FATHOM_TEST_DEVICE");
    if (fth_backend_probe(device && device[0] ? device : NULL, &found, &err) != FTH_OK)
        SKIP("no backend was built: %.200s", err.text);
    for (int i = 0; i < LIST; i++)
        if (list[i].wanted && !is_alias(list[i].name) && !has(found.backend, list[i].name))
            FAIL("%s has no kernel for %s", found.file, list[i].name);
    for (int i = 0; found.backend->kernel(i); i++)
        if (!is_listed(found.backend->kernel(i)->op))
            FAIL("neither ops.def nor parity/kernels.def lists %s", found.backend->kernel(i)->op);
    fth_backend_forget(&found);
}

TEST_MAIN()
