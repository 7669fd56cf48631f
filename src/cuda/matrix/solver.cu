/* solver.cu - cuSOLVER behind dlopen: one handle for each device, workspaces as it asked for them.
 *
 * The workspace of a size is asked for once in a process, for both triangles, and remembered. Sizes
 * that find no place in the table are asked for each time: which way a factor is made must not
 * depend on what was planned before. Where the library wants more of the host than there is here,
 * it is not used for that size.
 */
#include "cuda/matrix/solver.h"

#include "cuda/device/device.h"
#include "cuda/device/library.h"

#include <cusolverDn.h>
#include <dlfcn.h>
#include <new>
#include <stdio.h>

/* Sizes whose workspace is remembered (others are asked for again), and bytes of cuSOLVER's
 * workspace on the host. */
enum { SIZES = 256, HOST = 64 << 10 };

/* The functions that are used, by the types of the header. */
#define FUNCTIONS(F)                                                                               \
    F(cusolverDnCreate)                                                                            \
    F(cusolverDnDestroy)                                                                           \
    F(cusolverDnSetStream)                                                                         \
    F(cusolverDnCreateParams)                                                                      \
    F(cusolverDnDestroyParams)                                                                     \
    F(cusolverDnXpotrf_bufferSize)                                                                 \
    F(cusolverDnXpotrf)

struct solver {
#define DECLARE(name) decltype(&name) p_##name;
    FUNCTIONS(DECLARE)
#undef DECLARE
    void *library;
    cusolverDnHandle_t handle; /* NULL: there is no library */
    cusolverDnParams_t params;
    char host[HOST];
};

/* ---- opening ---- */

static void drop(void *thing)
{
    solver *s = static_cast<solver *>(thing);
    if (s->params) (void)s->p_cusolverDnDestroyParams(s->params);
    if (s->handle) (void)s->p_cusolverDnDestroy(s->handle);
    if (s->library) dlclose(s->library);
    delete s;
}

static bool load(solver *s)
{
    char why[128];
    s->library = fth__cuda_library("cusolver", why, sizeof why);
    if (!s->library) return false;
#define FIND(symbol)                                                                               \
    s->p_##symbol = reinterpret_cast<decltype(s->p_##symbol)>(dlsym(s->library, #symbol));         \
    if (!s->p_##symbol) return false;
    FUNCTIONS(FIND)
#undef FIND
    if (s->p_cusolverDnCreate(&s->handle) != CUSOLVER_STATUS_SUCCESS) s->handle = NULL;
    if (!s->handle) return false;
    if (s->p_cusolverDnCreateParams(&s->params) == CUSOLVER_STATUS_SUCCESS) return true;
    s->params = NULL;
    (void)s->p_cusolverDnDestroy(s->handle);
    s->handle = NULL;
    return false;
}

/* The device's lock is held. NULL: no memory. */
static solver *opened(fth_device *device)
{
    fth__cuda_slot *slot = &device->slot[FTH__CUDA_SOLVER];
    if (!slot->thing) {
        solver *s = new (std::nothrow) solver();
        if (!s) return NULL;
        int before = device->index; /* of this thread; the handle is of the device that is set */
        (void)cudaGetDevice(&before);
        (void)cudaSetDevice(device->index);
        (void)load(s);
        (void)cudaSetDevice(before);
        slot->thing = s;
        slot->drop = drop;
    }
    return static_cast<solver *>(slot->thing);
}

static cudaDataType_t type_of(fth_dtype t)
{
    return t == FTH_F32   ? CUDA_R_32F
           : t == FTH_F64 ? CUDA_R_64F
           : t == FTH_C64 ? CUDA_C_32F
                          : CUDA_C_64F;
}

/* ---- workspaces ---- */

typedef struct known {
    fth_dtype dtype;
    int64_t n;
    uint64_t bytes;
} known;

static pthread_mutex_t sizes_lock = PTHREAD_MUTEX_INITIALIZER;
static known sizes[SIZES];
static int n_sizes;

/* 0: the library does not do it here. */
static uint64_t ask(fth_device *device, fth_dtype dtype, int64_t n)
{
    uint64_t most = 0;
    pthread_mutex_lock(&device->lock);
    const solver *s = opened(device);
    for (int i = 0; i < 2 && s && s->handle; i++) {
        size_t bytes = 0, host = 0;
        if (s->p_cusolverDnXpotrf_bufferSize(
                s->handle, s->params, i == 0 ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER, n,
                type_of(dtype), NULL, n, type_of(dtype), &bytes,
                &host) != CUSOLVER_STATUS_SUCCESS ||
            host > HOST) {
            most = 0;
            break;
        }
        if (bytes < 16) bytes = 16; /* so that it differs from no library */
        if (bytes > most) most = bytes;
    }
    pthread_mutex_unlock(&device->lock);
    return most;
}

uint64_t fth__cuda_solver_bytes(fth_dtype dtype, int64_t n)
{
    pthread_mutex_lock(&sizes_lock);
    int i = 0;
    while (i < n_sizes && (sizes[i].dtype != dtype || sizes[i].n != n)) i++;
    fth_device *device = fth__cuda_newest();
    uint64_t bytes = 0;
    if (i < n_sizes)
        bytes = sizes[i].bytes;
    else if (device) {
        bytes = ask(device, dtype, n);
        if (n_sizes < SIZES) sizes[n_sizes++] = {dtype, n, bytes};
    }
    pthread_mutex_unlock(&sizes_lock);
    return bytes;
}

/* ---- factors ---- */

fth_status fth__cuda_solver_factor(fth_device *device, cudaStream_t stream,
                                   const fth__cuda_factor *f, fth_err *err)
{
    if (device->recording)
        return FTH_FAIL(err, FTH_E_DEVICE,
                        "cuSOLVER cannot be recorded; the run is queued plainly");
    const uint64_t bytes = fth__cuda_solver_bytes(f->dtype, f->n);
    cusolverStatus_t status = CUSOLVER_STATUS_NOT_INITIALIZED;
    pthread_mutex_lock(&device->lock);
    solver *s = opened(device);
    if (s && s->handle) status = s->p_cusolverDnSetStream(s->handle, stream);
    if (status == CUSOLVER_STATUS_SUCCESS)
        status = s->p_cusolverDnXpotrf(s->handle, s->params,
                                       f->upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER,
                                       f->n, type_of(f->dtype), f->a, f->ld, type_of(f->dtype),
                                       f->work, bytes, s->host, HOST, f->info);
    pthread_mutex_unlock(&device->lock);
    if (status == CUSOLVER_STATUS_SUCCESS) return FTH_OK;
    return FTH_FAIL(err, FTH_E_DEVICE, "cuSOLVER refuses the factor of %lld rows (status %d)",
                    (long long)f->n, (int)status);
}
