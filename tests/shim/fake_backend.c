/* fake_backend.c - a backend that says what a test wants: libfathom_cuda.so beside a libfathom.so.
 *
 * FAKE_CUDA tells it, as it tells the driver of fake_cuda.c: "abi=N" and "release=TEXT" make it one
 * of another version, "open=1" lets its only device be opened. It has two kernels, and finds none.
 */
#include <fathom/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *word(const char *key)
{
    const char *all = getenv("FAKE_CUDA");
    const size_t n = strlen(key);
    for (const char *at = all; at && *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, key, n) == 0 && at[n] == '=') return at + n + 1;
    }
    return NULL;
}

static int count(fth_err *err)
{
    (void)err;
    return 1;
}

static fth_status open_device(fth_device **out, int index, fth_err *err)
{
    static char device;
    *out = NULL;
    if (!word("open") || index != 0)
        return FTH_FAIL(err, FTH_E_DEVICE, "the fake card %d is locked", index);
    *out = (fth_device *)(void *)&device;
    return FTH_OK;
}

static void close_device(fth_device *device)
{
    (void)device;
}

static void get_info(fth_device *device, fth_device_info *out)
{
    (void)device;
    *out = (fth_device_info){.name = "Fake Card",
                             .major = 9,
                             .total_bytes = (uint64_t)80 << 30,
                             .free_bytes = (uint64_t)79 << 30,
                             .context_bytes = 321 << 20,
                             .address_ranges = true};
}

static void get_libraries(fth_device *device, fth_device_info *out)
{
    (void)device;
    snprintf(out->compiler, sizeof out->compiler, "NVRTC 13.0");
    snprintf(out->products, sizeof out->products, "libcublasLt.so.13 or .12 is not there");
    snprintf(out->factors, sizeof out->factors, "cuSOLVER 12.0.4");
}

static void *map(void *self, fth_how how, uint64_t bytes)
{
    (void)self, (void)how, (void)bytes;
    return NULL;
}

static bool unmap(void *self, fth_how how, void *block, uint64_t bytes)
{
    (void)self, (void)how, (void)block, (void)bytes;
    return true;
}

static uint64_t free_now(void *self)
{
    (void)self;
    return (uint64_t)79 << 30;
}

static void get_memory(fth_device *device, fth_mem_system *out)
{
    *out = (fth_mem_system){.self = device,
                            .device = 1,
                            .page = 2 << 20,
                            .map = map,
                            .unmap = unmap,
                            .free_now = free_now};
}

static const fth_kernel *find(const fth_node *node)
{
    (void)node;
    return NULL;
}

static const fth_kernel *kernel(int i)
{
    static const fth_kernel kernels[] = {{.op = "map"}, {.op = "gather"}};
    return i >= 0 && i < 2 ? &kernels[i] : NULL;
}

static const fth_device_table table = {
    .driver_needed = 13000,
    .capability_needed = 90,
    .count = count,
    .open = open_device,
    .close = close_device,
    .get_info = get_info,
    .get_memory = get_memory,
    .get_libraries = get_libraries,
};

FTH_API const fth_backend *fth_backend_get(void);

const fth_backend *fth_backend_get(void)
{
    static char release[32];
    static fth_backend backend;
    const char *abi = word("abi"), *text = word("release");
    snprintf(release, sizeof release, "%.*s", text ? (int)strcspn(text, " ") : 31,
             text ? text : FTH_VERSION_TEXT);
    backend = (fth_backend){.abi = abi ? (uint32_t)strtol(abi, NULL, 10) : FTH_BACKEND_ABI,
                            .name = "cuda",
                            .version = release,
                            .find = find,
                            .kernel = kernel,
                            .device = &table};
    return &backend;
}
