/* library.cu - opening what the machine has by name, and asking NVML what a card is used for. */
#include "cuda/library.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *fth__cuda_library(const char *name, char *why, size_t bytes)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/"};
    static const int versions[] = {13, 12};
    for (const char *folder : folders)
        for (const int version : versions) {
            char file[128];
            snprintf(file, sizeof file, "%slib%s.so.%d", folder, name, version);
            void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
            if (library) return library;
        }
    snprintf(why, bytes, "lib%s.so.13 or .12 is not there", name);
    return NULL;
}

/* A function of a library, or NULL. */
template <typename F> static F *find(void *library, const char *name)
{
    return (F *)dlsym(library, name);
}

void fth__cuda_describe_compiler(char *text, size_t bytes)
{
    void *library = fth__cuda_library("nvrtc", text, bytes);
    if (!library) return;
    int major = 0, minor = 0;
    auto *version = find<int(int *, int *)>(library, "nvrtcVersion");
    if (version && version(&major, &minor) == 0)
        snprintf(text, bytes, "NVRTC %d.%d", major, minor);
    else
        snprintf(text, bytes, "libnvrtc does not tell its version");
    dlclose(library);
}

void fth__cuda_describe_products(char *text, size_t bytes)
{
    void *library = fth__cuda_library("cublasLt", text, bytes);
    if (!library) return;
    auto *version = find<size_t(void)>(library, "cublasLtGetVersion");
    const size_t v = version ? version() : 0; /* 130002 is 13.0.2 */
    if (v > 0)
        snprintf(text, bytes, "cuBLASLt %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    else
        snprintf(text, bytes, "libcublasLt does not tell its version");
    dlclose(library);
}

/* ---- NVML ---- */

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;
typedef struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance;
} nvml_process;

/* The library and the card in it; whoever got true calls nvml_end. */
typedef struct nvml {
    void *library, *card;
} nvml;

static void nvml_end(nvml *n)
{
    auto *end = find<int(void)>(n->library, "nvmlShutdown");
    if (end) (void)end();
    dlclose(n->library);
}

static bool nvml_begin(nvml *n, int index)
{
    char bus[32] = "";
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library) return false;
    auto *begin = find<int(void)>(n->library, "nvmlInit_v2");
    if (!begin || begin() != 0) {
        dlclose(n->library);
        return false;
    }
    auto *get = find<int(const char *, void **)>(n->library, "nvmlDeviceGetHandleByPciBusId_v2");
    if (get && cudaDeviceGetPCIBusId(bus, sizeof bus, index) == cudaSuccess &&
        get(bus, &n->card) == 0)
        return true;
    (void)cudaGetLastError();
    nvml_end(n);
    return false;
}

bool fth__cuda_used_by_all(int index, uint64_t *bytes)
{
    nvml n = {};
    nvml_memory m = {};
    if (!nvml_begin(&n, index)) return false;
    auto *get = find<int(void *, nvml_memory *)>(n.library, "nvmlDeviceGetMemoryInfo");
    const bool ok = get && get(n.card, &m) == 0;
    nvml_end(&n);
    if (ok) *bytes = m.used;
    return ok;
}

bool fth__cuda_used_by_us(int index, uint64_t *bytes)
{
    enum { MOST = 256 };
    nvml n = {};
    unsigned count = MOST;
    nvml_process list[MOST];
    if (!nvml_begin(&n, index)) return false;
    auto *get = find<int(void *, unsigned *, nvml_process *)>(
        n.library, "nvmlDeviceGetComputeRunningProcesses_v3");
    const bool ok = get && get(n.card, &count, list) == 0 && count <= MOST;
    nvml_end(&n);
    for (unsigned i = 0; ok && i < count; i++)
        if (list[i].pid == (unsigned)getpid() && list[i].bytes != ~0ull) {
            *bytes = list[i].bytes;
            return true;
        }
    return false;
}
