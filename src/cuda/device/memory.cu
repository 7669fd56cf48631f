/* memory.cu - where a device's ledger gets its memory from.
 *
 * Small blocks lie in a range of addresses that is reserved once; pages of 2 MiB are put behind it
 * one by one, so that each can be taken away again. What grows by more gets pieces of many pages,
 * and a piece that is to lose some becomes a shorter one. Middle-sized blocks come from a
 * stream-ordered pool of our own where that wastes nothing, and large ones from plain allocations.
 * What the driver does not offer is done with plain allocations. Functions of the driver are asked
 * for by name: libcuda is never linked.
 *
 * Seen on an H200 (driver 580): 50 pages of the range take 2.2 ms and go in 1.6, 7 GB of them 133
 * and 112 ms, and 3 and 4 ms in pieces of 128 MiB; a block of 101 MiB
 * takes 57 us plainly, to the next 2 MiB, and 168 us from the pool, to the next 32 MiB.
 *
 * Taking memory away waits until the lanes are done with it: pages that are gone while a kernel
 * uses them are a fault of the whole context.
 */
#include "base/assert.h"
#include "cuda/device/device.h"

#include <cuda.h>
#include <new>

typedef struct driver {
    decltype(&cuMemAddressReserve) reserve;
    decltype(&cuMemAddressFree) unreserve;
    decltype(&cuMemCreate) create;
    decltype(&cuMemRelease) release;
    decltype(&cuMemRetainAllocationHandle) retain;
    decltype(&cuMemMap) map;
    decltype(&cuMemUnmap) unmap;
    decltype(&cuMemSetAccess) set_access;
    decltype(&cuMemGetAllocationGranularity) granularity;
} driver;

/* Pages of one allocation handle, which are mapped and unmapped together. */
typedef struct piece {
    CUdeviceptr at;
    uint64_t bytes;
    struct piece *next;
} piece;

typedef struct memory {
    fth_device *device;
    driver api;
    uint64_t page;
    piece *pieces; /* of more than one page */
    CUmemAllocationProp property;
    cudaMemPool_t pool;  /* NULL: there are none */
    cudaStream_t stream; /* takes and gives back of the pool are ordered here */
    cudaEvent_t done[FTH_LANE_COUNT];
} memory;

static const uint64_t usual_page = 2 << 20;   /* the driver's granularity */
static const uint64_t least_range = 64 << 20; /* below it a range is not worth halving again */

/* ---- the reserved range ---- */

static char *reserve(void *self, uint64_t *bytes)
{
    const memory *m = (const memory *)self;
    (void)cudaSetDevice(m->device->index);
    for (;;) {
        CUdeviceptr base = 0;
        if (m->api.reserve(&base, *bytes, m->page, 0, 0) == CUDA_SUCCESS) return (char *)base;
        if (*bytes / 2 < least_range) return NULL;
        *bytes = *bytes / 2 / m->page * m->page;
    }
}

static void unreserve(void *self, char *base, uint64_t bytes)
{
    const memory *m = (const memory *)self;
    (void)cudaSetDevice(m->device->index);
    (void)m->api.unreserve((CUdeviceptr)base, bytes);
}

/* Ranges that grow by at least many_pages get pieces, of at most piece_bytes. One handle costs the
 * same for any size (18 us, and 30 us for the access, on an H200), so 7 GB in 14 pieces instead of
 * 3500 pages take 3 ms instead of 133. */
static const uint64_t many_pages = 16 << 20, piece_bytes = 512 << 20;

static bool allow(const memory *m, CUdeviceptr at, uint64_t bytes)
{
    CUmemAccessDesc access = {};
    access.location = m->property.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return m->api.set_access(at, bytes, &access, 1) == CUDA_SUCCESS;
}

/* Commit memory at addresses. The mapping keeps it alive, so the handle is released at once. */
static bool back(const memory *m, CUdeviceptr at, uint64_t bytes)
{
    CUmemGenericAllocationHandle handle = 0;
    if (m->api.create(&handle, bytes, &m->property, 0) != CUDA_SUCCESS) return false;
    const bool ok = m->api.map(at, bytes, 0, handle, 0) == CUDA_SUCCESS;
    (void)m->api.release(handle);
    return ok;
}

static bool back_piece(memory *m, CUdeviceptr at, uint64_t bytes)
{
    piece *p = new (std::nothrow) piece{at, bytes, m->pieces};
    if (!p || !back(m, at, bytes)) {
        delete p;
        return false;
    }
    m->pieces = p;
    return true;
}

/* Drop the records of pieces within [from, end). */
static void forget_pieces(memory *m, CUdeviceptr from, CUdeviceptr end)
{
    for (piece **p = &m->pieces; *p;) {
        piece *one = *p;
        if (one->at < from || one->at >= end) {
            p = &one->next;
            continue;
        }
        *p = one->next;
        delete one;
    }
}

/* Commit in pieces of at most `most` bytes; single pages have no record. */
static bool back_all(memory *m, CUdeviceptr from, uint64_t bytes, uint64_t most)
{
    FTH_ASSERT(from % m->page == 0 && bytes % m->page == 0 && most % m->page == 0);
    const bool many = most > m->page;
    (void)cudaSetDevice(m->device->index);
    uint64_t done = 0;
    while (done < bytes) {
        const uint64_t next = bytes - done < most ? bytes - done : most;
        if (!(many ? back_piece(m, from + done, next) : back(m, from + done, next))) break;
        done += next;
    }
    if (done == bytes && allow(m, from, bytes)) return true;
    if (done > 0) (void)m->api.unmap(from, done);
    if (many) forget_pieces(m, from, from + bytes);
    return false;
}

static bool commit(void *self, char *base, uint64_t bytes)
{
    memory *m = (memory *)self;
    return back_all(m, (CUdeviceptr)base, bytes, m->page);
}

static bool extend(void *self, char *base, uint64_t bytes)
{
    memory *m = (memory *)self;
    return back_all(m, (CUdeviceptr)base, bytes, bytes < many_pages ? m->page : piece_bytes);
}

static void wait_for_lanes(const memory *m)
{
    for (int i = 0; i < FTH_LANE_COUNT; i++) (void)cudaStreamSynchronize(m->device->lane[i]);
}

/* Copy the first bytes of a piece into another handle, mapped temporarily elsewhere. */
static bool copy_front(const memory *m, const piece *p, CUmemGenericAllocationHandle to,
                       uint64_t bytes)
{
    CUdeviceptr copy = 0;
    if (m->api.reserve(&copy, bytes, m->page, 0, 0) != CUDA_SUCCESS) return false;
    const bool mapped = m->api.map(copy, bytes, 0, to, 0) == CUDA_SUCCESS;
    const bool ok = mapped && allow(m, copy, bytes) &&
                    cudaMemcpy((void *)copy, (const void *)p->at, bytes,
                               cudaMemcpyDeviceToDevice) == cudaSuccess &&
                    cudaStreamSynchronize(cudaStreamLegacy) == cudaSuccess;
    if (mapped) (void)m->api.unmap(copy, bytes);
    (void)m->api.unreserve(copy, bytes);
    return ok;
}

/* Replace a piece by a shorter copy of its front, at the same address; on failure it stays as it
 * was. */
static bool shorten(const memory *m, piece *p, uint64_t bytes)
{
    FTH_ASSERT(bytes > 0 && bytes < p->bytes && bytes % m->page == 0);
    CUmemGenericAllocationHandle now = 0, old = 0;
    if (m->api.create(&now, bytes, &m->property, 0) != CUDA_SUCCESS) return false;
    bool ok = copy_front(m, p, now, bytes) && m->api.retain(&old, (void *)p->at) == CUDA_SUCCESS;
    if (ok && m->api.unmap(p->at, p->bytes) == CUDA_SUCCESS) {
        ok = m->api.map(p->at, bytes, 0, now, 0) == CUDA_SUCCESS;
        if (!ok) (void)m->api.map(p->at, p->bytes, 0, old, 0);
        (void)allow(m, p->at, ok ? bytes : p->bytes);
    } else {
        ok = false;
    }
    if (old) (void)m->api.release(old);
    (void)m->api.release(now);
    if (ok) p->bytes = bytes;
    return ok;
}

static bool decommit(void *self, char *base, uint64_t bytes)
{
    memory *m = (memory *)self;
    FTH_ASSERT((CUdeviceptr)base % m->page == 0 && bytes % m->page == 0);
    const CUdeviceptr end = (CUdeviceptr)base + bytes;
    CUdeviceptr from = (CUdeviceptr)base;
    (void)cudaSetDevice(m->device->index);
    wait_for_lanes(m);
    for (piece *p = m->pieces; p; p = p->next) {
        const CUdeviceptr stop = p->at + p->bytes;
        if (p->at < end && stop > end) return false; /* nobody gives back the front of a piece */
        if (p->at >= from || stop <= from) continue;
        if (!shorten(m, p, from - p->at)) return false;
        from = stop;
        break;
    }
    if (from < end && m->api.unmap(from, end - from) != CUDA_SUCCESS) return false;
    forget_pieces(m, from, end);
    return true;
}

/* ---- blocks of their own ---- */

/* The pool grows in steps of 32 MiB: what does not fill them would be held beside the ledger. */
static bool is_pooled(const memory *m, fth_how how, uint64_t bytes)
{
    const uint64_t step = 32 << 20, rest = bytes % step, large = 1 << 30;
    return how == FTH_MEM_POOL && m->pool && bytes < large &&
           (rest == 0 || step - rest <= usual_page);
}

static void *map(void *self, fth_how how, uint64_t bytes)
{
    const memory *m = (const memory *)self;
    void *block = NULL;
    (void)cudaSetDevice(m->device->index);
    const bool pooled = is_pooled(m, how, bytes);
    const cudaError_t code = pooled ? cudaMallocFromPoolAsync(&block, bytes, m->pool, m->stream)
                                    : cudaMalloc(&block, bytes);
    if (code == cudaSuccess) {
        /* Every lane may use it at once: none of them has to wait for this stream. */
        if (pooled) (void)cudaStreamSynchronize(m->stream);
        return block;
    }
    (void)cudaGetLastError(); /* it is told by the NULL */
    return NULL;
}

static bool unmap(void *self, fth_how how, void *block, uint64_t bytes)
{
    const memory *m = (const memory *)self;
    (void)cudaSetDevice(m->device->index);
    if (!is_pooled(m, how, bytes)) return cudaFree(block) == cudaSuccess; /* waits itself */
    for (int i = 0; i < FTH_LANE_COUNT; i++)
        if (cudaEventRecord(m->done[i], m->device->lane[i]) != cudaSuccess ||
            cudaStreamWaitEvent(m->stream, m->done[i], 0) != cudaSuccess) {
            (void)cudaGetLastError();
            wait_for_lanes(m);
        }
    return cudaFreeAsync(block, m->stream) == cudaSuccess;
}

static uint64_t kept_in_pool(const memory *m)
{
    uint64_t reserved = 0, used = 0;
    (void)cudaMemPoolGetAttribute(m->pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
    (void)cudaMemPoolGetAttribute(m->pool, cudaMemPoolAttrUsedMemCurrent, &used);
    return reserved > used ? reserved - used : 0;
}

static uint64_t trim(void *self)
{
    const memory *m = (const memory *)self;
    if (!m->pool) return 0;
    (void)cudaSetDevice(m->device->index);
    (void)cudaStreamSynchronize(m->stream); /* what was given back really is */
    const uint64_t before = kept_in_pool(m);
    (void)cudaMemPoolTrimTo(m->pool, 0);
    const uint64_t after = kept_in_pool(m);
    return before > after ? before - after : 0;
}

static uint64_t free_now(void *self)
{
    const memory *m = (const memory *)self;
    size_t free_bytes = 0, total = 0;
    (void)cudaSetDevice(m->device->index);
    return cudaMemGetInfo(&free_bytes, &total) == cudaSuccess ? free_bytes : 0;
}

/* ---- what the driver offers ---- */

/* A function of the driver as it has been since that version of CUDA; false: it is not there. */
static bool find(const char *name, unsigned version, void *function)
{
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t code = cudaGetDriverEntryPointByVersion(name, (void **)function, version,
                                                              cudaEnableDefault, &found);
    if (code != cudaSuccess) (void)cudaGetLastError();
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess && *(void **)function;
}

static bool find_ranges(memory *m)
{
    driver *d = &m->api;
    const unsigned since = 10020; /* CUDA 10.2 */
    decltype(&cuDeviceGetAttribute) attribute = NULL;
    int there = 0;
    if (!find("cuDeviceGetAttribute", 2000, &attribute) ||
        attribute(&there, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                  m->device->index) != CUDA_SUCCESS ||
        !there)
        return false;
    if (!find("cuMemAddressReserve", since, &d->reserve) ||
        !find("cuMemAddressFree", since, &d->unreserve) ||
        !find("cuMemCreate", since, &d->create) || !find("cuMemRelease", since, &d->release) ||
        !find("cuMemRetainAllocationHandle", 11000, &d->retain) ||
        !find("cuMemMap", since, &d->map) || !find("cuMemUnmap", since, &d->unmap) ||
        !find("cuMemSetAccess", since, &d->set_access) ||
        !find("cuMemGetAllocationGranularity", since, &d->granularity))
        return false;
    m->property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    m->property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    m->property.location.id = m->device->index;
    size_t unit = 0;
    if (d->granularity(&unit, &m->property, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        unit == 0)
        return false;
    m->page = (usual_page + unit - 1) / unit * unit;
    return true;
}

/* A pool of our own: what others in this process put into the default one is not trimmed by us.
 * It keeps nothing: the ledger caches blocks itself, within the budget. */
static bool make_pool(memory *m)
{
    int there = 0;
    uint64_t keep = 0;
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = m->device->index;
    bool ok = cudaDeviceGetAttribute(&there, cudaDevAttrMemoryPoolsSupported, m->device->index) ==
                  cudaSuccess &&
              there && cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking) == cudaSuccess;
    for (int i = 0; ok && i < FTH_LANE_COUNT; i++)
        ok = cudaEventCreateWithFlags(&m->done[i], cudaEventDisableTiming) == cudaSuccess;
    ok = ok && cudaMemPoolCreate(&m->pool, &props) == cudaSuccess &&
         cudaMemPoolSetAttribute(m->pool, cudaMemPoolAttrReleaseThreshold, &keep) == cudaSuccess;
    (void)cudaGetLastError();
    return ok;
}

static void drop_pool(memory *m)
{
    if (m->stream) (void)cudaStreamSynchronize(m->stream);
    if (m->pool) (void)cudaMemPoolDestroy(m->pool);
    for (int i = 0; i < FTH_LANE_COUNT; i++)
        if (m->done[i]) (void)cudaEventDestroy(m->done[i]);
    if (m->stream) (void)cudaStreamDestroy(m->stream);
    m->pool = NULL;
    m->stream = NULL;
    for (int i = 0; i < FTH_LANE_COUNT; i++) m->done[i] = NULL;
}

void fth__cuda_get_memory(fth_device *device, fth_mem_system *out)
{
    const memory *m = (const memory *)device->memory;
    *out = fth_mem_system{};
    out->self = device->memory;
    out->device = device->index + 1;
    out->page = m->page;
    if (device->info.address_ranges) {
        out->reserve = reserve;
        out->unreserve = unreserve;
        out->commit = commit;
        out->decommit = decommit;
        out->extend = extend;
    }
    out->map = map;
    out->unmap = unmap;
    out->trim = trim;
    out->free_now = free_now;
}

fth_status fth__cuda_memory_open(fth_device *device, fth_err *err)
{
    memory *m = new (std::nothrow) memory();
    if (!m) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the books of a device");
    m->device = device;
    m->page = usual_page;
    device->memory = m;
    device->info.address_ranges = find_ranges(m);
    device->info.stream_pool = make_pool(m);
    if (!device->info.stream_pool) drop_pool(m);
    return FTH_OK;
}

void fth__cuda_memory_close(fth_device *device)
{
    memory *m = (memory *)device->memory;
    if (!m) return;
    drop_pool(m);
    forget_pieces(m, 0, ~(CUdeviceptr)0);
    delete m;
    device->memory = NULL;
}
