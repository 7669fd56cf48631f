/* op_device.c - opens the device that the environment names, and runs kernels on it call by call.
 */
#include "testing/engine/op_device.h"

#include <dlfcn.h>

enum { GUARD = 0xA5, TAIL = 64, MISSING = 128, KEPT = 64 };

typedef struct missing {
    char name[96];
    int64_t count;
} missing;

/* A block of the device; each takes a driver a tenth of a millisecond to make, so they are used
 * again. Where a checker watches (FTH_TEST_SLOWED) each is new and as long as what is in it. */
typedef struct kept {
    char *block;
    size_t bytes;
} kept;

static struct {
    bool tried;
    const fth_backend *backend;
    fth_device *device;
    fth_mem_system memory;
    char why[512]; /* there is no device because of this */
    int64_t nodes, calls, without;
    int n_missing, n_kept;
    missing missing[MISSING];
    kept kept[KEPT];
} dev;

/* ---- opening -------------------------------------------------------------------------------- */

static void unmap(kept k)
{
    IS_TRUE(dev.memory.unmap(dev.memory.self, FTH_MEM_DIRECT, k.block, k.bytes));
}

/* Not at exit: libraries that the device opened have ended then, and would free once more. */
static void say_what_ran(void)
{
    while (dev.n_kept > 0) unmap(dev.kept[--dev.n_kept]);
    printf("device %s: %lld nodes in %lld calls, %lld nodes without a kernel\n", dev.backend->name,
           (long long)dev.nodes, (long long)dev.calls, (long long)dev.without);
    for (int i = 0; i < dev.n_missing; i++)
        printf("%s%s%s", i ? ", " : "no device kernel: ", dev.missing[i].name,
               i + 1 < dev.n_missing ? "" : "\n");
    dev.backend->device->close(dev.device);
}

static void open_device(const char *path)
{
    fth_err err = {0};
    union {
        void *object;
        fth_backend_get_fn *function;
    } get;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) FAIL("FATHOM_TEST_DEVICE: %s", dlerror());
    get.object = dlsym(library, FTH_BACKEND_SYMBOL);
    if (!get.object) FAIL("FATHOM_TEST_DEVICE: %s has no " FTH_BACKEND_SYMBOL, path);
    const fth_backend *b = get.function();
    EQ_U64(b->abi, FTH_BACKEND_ABI);
    EQ_STR(b->version, FTH_VERSION_TEXT);
    IS_TRUE(b->device != NULL);
    dev.tried = true;
    if (b->device->count(&err) < 1) {
        snprintf(dev.why, sizeof dev.why, "%.60s has no device: %.400s", b->name, err.text);
        return;
    }
    OKE(b->device->open(&dev.device, 0, &err), &err);
    dev.backend = b;
    b->device->get_memory(dev.device, &dev.memory);
    t_at_end = say_what_ran;
}

bool t_device(void)
{
    const char *path = getenv("FATHOM_TEST_DEVICE");
    if (!path || !path[0]) return false;
    if (!dev.tried) open_device(path);
    if (!dev.device) SKIP("%s", dev.why);
    return true;
}

bool t_device_only(void)
{
    return getenv("FTH_TEST_DEVICE_ONLY") && t_device();
}

static void count_missing(const fth_node *node)
{
    const fth_desc *d = node->n_in ? &node->in[0] : &node->out[0];
    char name[sizeof dev.missing[0].name];
    snprintf(name, sizeof name, "%s %s", node->op->name, fth_dtype_name(d->dtype));
    dev.without++;
    int i = 0;
    while (i < dev.n_missing && strcmp(dev.missing[i].name, name) != 0) i++;
    if (i == MISSING) return;
    if (i == dev.n_missing) memcpy(dev.missing[dev.n_missing++].name, name, sizeof name);
    dev.missing[i].count++;
}

const fth_kernel *t_device_find(const fth_node *node)
{
    if (!t_device() || (node->op->flags & FTH_OP_ALIAS)) return NULL;
    const fth_kernel *kernel = dev.backend->find(node);
    if (!kernel) {
        count_missing(node);
        return NULL;
    }
    fth_err err = {0};
    if (kernel->prepare) OKE(kernel->prepare(node, dev.device, 0, &err), &err);
    dev.nodes++;
    return kernel;
}

void t_whole_tile(const fth_desc *d, fth_tile *t)
{
    int64_t stride = 1;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        t->extent[i] = d->size[i];
        t->stride[i] = stride;
        stride *= d->size[i];
    }
}

const fth_backend *t_device_backend(fth_device **device)
{
    *device = t_device() ? dev.device : NULL;
    return dev.backend;
}

bool t_device_has(const fth_node *node)
{
    return t_device() && dev.backend->find(node) != NULL;
}

bool t_device_exact(const fth_node *node)
{
    enum { ROUNDS, EXACT };
    static const struct {
        const char *name;
        bool exact;
    } ops[] = {
        {"const", EXACT},
#define FTH_OP(name, kernels, exact, ...) {#name, exact},
#define FTH_OP_INNER(name, kernels, exact) {#name, exact},
#include <fathom/ops.def>
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op->name, ops[i].name) == 0) return ops[i].exact;
    return strncmp(node->op->name, "focus_", 6) == 0; /* images are the same bytes everywhere */
}

/* ---- one call ------------------------------------------------------------------------------- */

static void copy(void *to, const void *from, size_t bytes)
{
    fth_err err = {0};
    if (bytes)
        OKE(dev.backend->device->copy(dev.device, FTH_LANE_COMPUTE, to, from, bytes, &err), &err);
}

static void drain(void)
{
    fth_err err = {0};
    OKE(dev.backend->device->drain(dev.device, FTH_LANE_COMPUTE, &err), &err);
}

/* Lengths of blocks that are used again: powers of two. */
static size_t room_of(size_t bytes)
{
    size_t room = 4096;
    if (t_slowed()) return bytes ? bytes : 1;
    while (room < bytes) room *= 2;
    return room;
}

static char *take(size_t bytes)
{
    for (int i = dev.n_kept - 1; i >= 0; i--)
        if (dev.kept[i].bytes == bytes) {
            char *block = dev.kept[i].block;
            dev.kept[i] = dev.kept[--dev.n_kept];
            return block;
        }
    return dev.memory.map(dev.memory.self, FTH_MEM_DIRECT, bytes);
}

static char *to_device(t_span s)
{
    char *block = take(room_of(s.bytes));
    if (!block) FAIL("the device gives no %zu bytes", s.bytes);
    copy(block, s.base, s.bytes);
    return block;
}

static void forget(char *block, size_t bytes)
{
    const kept k = {block, room_of(bytes)};
    if (t_slowed() || dev.n_kept == KEPT)
        unmap(k);
    else
        dev.kept[dev.n_kept++] = k;
}

/* The same place of the block's copy. */
static void *moved(const fth_tile *t, t_span s, char *block)
{
    return t->data ? block + ((char *)t->data - (char *)s.base) : NULL;
}

/* Workspace from extents alone, as a planner asks for it. */
static uint64_t scratch_of(const fth_kernel *kernel, const fth_call *call)
{
    fth_call probe = *call;
    for (int i = 0; i < FTH_MAX_IN; i++) probe.in[i].data = NULL;
    for (int k = 0; k < FTH_MAX_OUT; k++) probe.out[k].data = probe.state[k].data = NULL;
    probe.scratch = NULL;
    return kernel->scratch ? kernel->scratch(&probe) : 0;
}

static void check_input(const fth_node *node, t_span s, const char *block)
{
    void *now = malloc(s.bytes + 1);
    copy(now, block, s.bytes);
    drain();
    const bool same = s.bytes == 0 || memcmp(now, s.base, s.bytes) == 0;
    free(now);
    if (!same) FAIL("%s changed its input on the device", node->op->name);
}

static fth_status explain(const fth_kernel *kernel, const fth_call *call, const fth_fault *fault)
{
    if (fault->where == UINT64_MAX) return FTH_OK;
    if (!kernel->explain) FAIL("%s complains and cannot explain it", kernel->op);
    const fth_status s = kernel->explain(call->node, fault, call->err);
    if (s == FTH_OK) FAIL("%s explains a complaint as no error", kernel->op);
    return s;
}

/* The call itself: everything is on the device, and is there when this returns. */
static fth_status queue(const fth_kernel *kernel, fth_call *call)
{
    fth_fault fault;
    memset(&fault, 0xff, sizeof fault); /* as a run does: no complaint, the lock free */
    const uint64_t bytes = scratch_of(kernel, call);
    t_span room = {.base = malloc(bytes + TAIL), .bytes = bytes + TAIL};
    memset(room.base, GUARD, room.bytes);
    char *scratch = to_device(room);
    char *complaint = to_device((t_span){&fault, sizeof fault});
    call->device = dev.device;
    call->stream = dev.backend->device->stream(dev.device, FTH_LANE_COMPUTE);
    call->scratch = bytes ? scratch : NULL;
    call->fault = (void *)complaint;
    fth_status s = kernel->run(call);
    copy(room.base, scratch, room.bytes);
    copy(&fault, complaint, sizeof fault);
    drain();
    dev.calls++;
    for (uint64_t i = 0; i < TAIL; i++)
        if (((const uint8_t *)room.base)[bytes + i] != GUARD)
            FAIL("%s wrote outside its scratch on the device", kernel->op);
    if (s == FTH_OK) s = explain(kernel, call, &fault);
    forget(scratch, room.bytes);
    forget(complaint, sizeof fault);
    free(room.base);
    return s;
}

fth_status t_device_run(const fth_kernel *kernel, const fth_call *call, const t_span *in,
                        const t_span *out, const t_span *state)
{
    const fth_node *node = call->node;
    char *ins[FTH_MAX_IN], *outs[FTH_MAX_OUT], *states[FTH_MAX_OUT];
    fth_call there = *call;
    for (int i = 0; i < node->n_in; i++) {
        ins[i] = to_device(in[i]);
        there.in[i].data = moved(&call->in[i], in[i], ins[i]);
    }
    for (int k = 0; k < node->n_out; k++) {
        outs[k] = to_device(out[k]);
        there.out[k].data = moved(&call->out[k], out[k], outs[k]);
        states[k] = to_device(state[k]);
        there.state[k].data = moved(&call->state[k], state[k], states[k]);
    }
    drain(); /* memory of the host may be read until then */
    const fth_status s = queue(kernel, &there);
    for (int i = 0; i < node->n_in; i++) {
        check_input(node, in[i], ins[i]);
        forget(ins[i], in[i].bytes);
    }
    for (int k = 0; k < node->n_out; k++) {
        copy(out[k].base, outs[k], out[k].bytes);
        copy(state[k].base, states[k], state[k].bytes);
    }
    drain();
    for (int k = 0; k < node->n_out; k++) {
        forget(outs[k], out[k].bytes);
        forget(states[k], state[k].bytes);
    }
    return s;
}
