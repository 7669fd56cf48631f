/* library.cu - opening what the machine has by name, and asking NVML what a card is used for. */
#include "cuda/device/library.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *fth__cuda_library(const char *name, char *why, size_t bytes)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/extras/CUPTI/lib64/"};
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

void fth__cuda_describe_factors(char *text, size_t bytes)
{
    void *library = fth__cuda_library("cusolver", text, bytes);
    if (!library) return;
    int v = 0; /* 12004 is 12.0.4 */
    auto *version = find<int(int *)>(library, "cusolverGetVersion");
    if (version && version(&v) == 0 && v > 0)
        snprintf(text, bytes, "cuSOLVER %d.%d.%d", v / 1000, v / 100 % 10, v % 100);
    else
        snprintf(text, bytes, "libcusolver does not tell its version");
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

void fth__cuda_counter_end(fth__cuda_counter *c)
{
    auto *end = find<int(void)>(c->library, "nvmlShutdown");
    if (end) (void)end();
    dlclose(c->library);
    *c = fth__cuda_counter{};
}

bool fth__cuda_counter_begin(fth__cuda_counter *c, int index)
{
    char bus[32] = "";
    *c = fth__cuda_counter{};
    c->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!c->library) return false;
    auto *begin = find<int(void)>(c->library, "nvmlInit_v2");
    if (!begin || begin() != 0) {
        dlclose(c->library);
        return false;
    }
    auto *get = find<int(const char *, void **)>(c->library, "nvmlDeviceGetHandleByPciBusId_v2");
    if (get && cudaDeviceGetPCIBusId(bus, sizeof bus, index) == cudaSuccess &&
        get(bus, &c->card) == 0)
        return true;
    (void)cudaGetLastError();
    fth__cuda_counter_end(c);
    return false;
}

uint64_t fth__cuda_used_by_all(const fth__cuda_counter *c)
{
    nvml_memory m = {};
    auto *get = find<int(void *, nvml_memory *)>(c->library, "nvmlDeviceGetMemoryInfo");
    return get && get(c->card, &m) == 0 ? m.used : 0;
}

uint64_t fth__cuda_used_by_us(const fth__cuda_counter *c)
{
    enum { MOST = 256 };
    unsigned count = MOST;
    nvml_process list[MOST];
    auto *get = find<int(void *, unsigned *, nvml_process *)>(
        c->library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!get || get(c->card, &count, list) != 0 || count > MOST) return 0;
    for (unsigned i = 0; i < count; i++)
        if (list[i].pid == (unsigned)getpid() && list[i].bytes != ~0ull) return list[i].bytes;
    return 0;
}
