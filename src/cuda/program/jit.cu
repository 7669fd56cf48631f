/* jit.cu - programs become machine code: in memory, in the folder of kept code, or by NVRTC.
 *
 * What is compiled is found again by what it depends on: operations, dtypes and how operands lie.
 * What is worth it (cuda/program/worth.h) is compiled while a plan is prepared, by several threads
 * beside each other: none of them holds the lock meanwhile. Others are interpreted, with the same
 * bits, until so much was done that compiling would have paid; never while a run is recorded. Code
 * lies in the context's memory while it is needed.
 */
#include "cuda/program/jit.h"

#include "base/assert.h"
#include "cuda/program/nvrtc.h"
#include "cuda/program/worth.h"

extern "C" {
#include "base/hash.h"
#include "graph/graph.h"
}

#include <new>
#include <string.h>

struct fth__jit_code {
    cudaKernel_t kernel;
};

namespace
{

struct loaded {
    uint64_t key;
    int64_t done;             /* work that was interpreted for want of it */
    char *source;             /* while there is no code, */
    char file[FTH__CODE_KEY]; /* and what it is kept under */
    bool busy;                /* a thread compiles it */
    cudaLibrary_t library;
    fth__jit_code code;
    loaded *next;
};

struct jit {
    fth__nvrtc nvrtc;
    loaded *first;
    int64_t count; /* that have code */
};

enum { SOURCE_BYTES = 1 << 17 };

uint64_t key_of(const fth__program *p, const fth__ew_shape *shape, bool vec)
{
    const int32_t head[10] = {
        p->n_in,     p->n_const,  p->n_instr,           p->n_reg,
        p->n_out,    vec,         vec ? shape->vec : 1, vec ? shape->unroll : shape->unroll_any,
        shape->rows, shape->brief};
    const int32_t tail[9] = {p->tail_dim >= 0, p->tail_dim >= 0 ? p->tail_red : 0,
                             shape->lanes,     shape->block,
                             shape->inside,    shape->free,
                             shape->super,     shape->tiny,
                             p->inner_red};
    uint64_t h = fth__hash_bytes(head, sizeof head, 0);
    h = fth__hash_bytes(tail, sizeof tail, h);
    h = fth__hash_bytes(shape->where, sizeof shape->where, h);
    h = fth__hash_bytes(shape->look_in, (size_t)shape->looks, h);
    h = fth__hash_bytes(shape->look_rows, (size_t)shape->looks, h);
    for (int i = 0; i < p->n_made; i++)
        h = fth__hash_bytes(&p->made[i].kind, sizeof p->made[i].kind, h);
    h = fth__hash_bytes(p->reg_dtype, sizeof p->reg_dtype, h);
    h = fth__hash_bytes(p->instr, sizeof p->instr, h);
    return fth__hash_bytes(p->out_reg, sizeof p->out_reg, h);
}

void drop(void *thing)
{
    jit *j = (jit *)thing;
    while (j->first) {
        loaded *const m = j->first;
        j->first = m->next;
        if (m->library) (void)cudaLibraryUnload(m->library);
        delete[] m->source;
        delete m;
    }
    fth__nvrtc_close(&j->nvrtc);
    delete j;
}

/* The device's slot; its lock is held. */
jit *jit_of(fth_device *device)
{
    fth__cuda_slot *slot = &device->slot[FTH__CUDA_JIT];
    if (slot->thing) return (jit *)slot->thing;
    jit *const j = new (std::nothrow) jit();
    if (!j) return NULL;
    fth__nvrtc_open(&j->nvrtc);
    slot->thing = j;
    slot->drop = drop;
    return j;
}

/* What is to be compiled, and where it is kept. */
struct order {
    const fth__program *p;
    const fth__ew_shape *shape;
    bool vec;
    const char *dir;
    fth_mem *mem;
};

char *take(const order *o, uint64_t bytes, fth_err *err)
{
    void *block = NULL;
    const fth_status s = fth_mem_take(o->mem, FTH_MEM_META, bytes, "a kernel", &block, err);
    return s == FTH_OK ? (char *)block : NULL;
}

void give_back(const order *o, char *block)
{
    if (block) (void)fth_mem_release(o->mem, block, NULL);
}

/* What becomes of an entry. */
struct made {
    cudaLibrary_t library;
    cudaKernel_t kernel;
};

/* All of it or nothing; by any thread. */
fth_status load(const fth_device *device, const char *code, made *out, fth_err *err)
{
    made m = {};
    FTH_CUDA_TRY(cudaSetDevice(device->index), "a compiled kernel", err);
    FTH_CUDA_TRY(cudaLibraryLoadData(&m.library, code, NULL, NULL, 0, NULL, NULL, 0),
                 "a compiled kernel", err);
    const cudaError_t found = cudaLibraryGetKernel(&m.kernel, m.library, "fth_kernel");
    if (found != cudaSuccess) (void)cudaLibraryUnload(m.library);
    FTH_CUDA_TRY(found, "a compiled kernel", err);
    *out = m;
    return FTH_OK;
}

/* The lock is held. */
void adopt(jit *j, loaded *m, const made *of)
{
    FTH_ASSERT(!m->library && of->library && of->kernel);
    m->library = of->library;
    m->code.kernel = of->kernel;
    delete[] m->source;
    m->source = NULL;
    j->count++;
}

/* Kept code, if it is there and loads. */
bool load_kept(const fth_device *device, const order *o, const char *file, made *out)
{
    fth_err ignored = {};
    const size_t bytes = fth__code_find(o->dir, file);
    char *const code = bytes > 0 ? take(o, bytes, &ignored) : NULL;
    const bool good = code && fth__code_read(o->dir, file, code, bytes) &&
                      load(device, code, out, &ignored) == FTH_OK;
    give_back(o, code);
    return good;
}

/* The entry is this thread's while it is busy; the lock is not held. */
fth_status compile(const jit *j, const fth_device *device, const order *o, const loaded *m,
                   made *out, fth_err *err)
{
    void *program = NULL;
    size_t bytes = 0;
    fth_status s = fth__nvrtc_compile(&j->nvrtc, m->source, device->info.major, device->info.minor,
                                      &program, &bytes, err);
    char *const code = s == FTH_OK ? take(o, bytes + 1, err) : NULL;
    if (s == FTH_OK && !code) s = FTH_E_NOMEM;
    if (s == FTH_OK) s = fth__nvrtc_code(&j->nvrtc, program, code, err);
    if (s == FTH_OK) s = load(device, code, out, err);
    if (s == FTH_OK) (void)fth__code_write(o->dir, m->file, code, bytes);
    give_back(o, code);
    fth__nvrtc_release(&j->nvrtc, program);
    return s;
}

/* The entry of a program, if there is one. */
loaded *known_as(const jit *j, uint64_t key)
{
    loaded *m = j->first;
    while (m && m->key != key) m = m->next;
    return m;
}

/* Fills in kept code, or the text that it can be made from. */
fth_status fill_entry(jit *j, const fth_device *device, const order *o, loaded *m, fth_err *err)
{
    made kept;
    char *const text = take(o, SOURCE_BYTES, err);
    if (!text) return FTH_E_NOMEM;
    fth_status s = FTH_OK;
    const size_t bytes = fth__cuda_source(o->p, o->shape, o->vec, text, SOURCE_BYTES);
    fth__code_key(m->file, text, device->info.major, device->info.minor, &j->nvrtc,
                  device->info.driver);
    if (bytes > SOURCE_BYTES) {
        s = FTH_FAIL(err, FTH_E_INTERNAL, "the text of a kernel takes more than %d bytes",
                     (int)SOURCE_BYTES);
    } else if (load_kept(device, o, m->file, &kept)) {
        adopt(j, m, &kept);
    } else if ((m->source = new (std::nothrow) char[bytes])) {
        memcpy(m->source, text, bytes);
    } else {
        s = FTH_FAIL(err, FTH_E_NOMEM, "no memory for the text of a kernel");
    }
    give_back(o, text);
    return s;
}

fth_status add_entry(jit *j, const fth_device *device, const order *o, uint64_t key, loaded **out,
                     fth_err *err)
{
    loaded *const m = new (std::nothrow) loaded();
    if (!m) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a compiled kernel");
    m->key = key;
    const fth_status s = fill_entry(j, device, o, m, err);
    if (s != FTH_OK) {
        delete m;
        return s;
    }
    m->next = j->first;
    j->first = m;
    *out = m;
    return FTH_OK;
}

/* Loading code takes calls that a recording forbids. */
bool is_recording(cudaStream_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return stream && cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
           status == cudaStreamCaptureStatusActive;
}

/* *out is its entry, if it has code; or it is busy, and this thread is to compile it. NULL: it is
 * interpreted, also while another thread compiles it. */
fth_status find(fth_device *device, const order *o, int64_t work, cudaStream_t stream, loaded **out,
                fth_err *err)
{
    jit *const j = jit_of(device);
    if (!j) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for compiled kernels");
    if (!j->nvrtc.library) return FTH_OK;
    const uint64_t key = key_of(o->p, o->shape, o->vec);
    loaded *m = known_as(j, key);
    if (!m && is_recording(stream)) return FTH_OK;
    if (!m) FTH_TRY(add_entry(j, device, o, key, &m, err));
    if (!m->library) {
        const int64_t enough = FTH__WORTH_COMPILING;
        m->done = work < enough - m->done ? m->done + work : enough;
        if (m->done < enough || m->busy || is_recording(stream)) return FTH_OK;
        m->busy = true;
    }
    *out = m;
    return FTH_OK;
}

} // namespace

fth_status fth__jit_get(fth_device *device, const fth_node *node, const fth__program *p,
                        const fth__ew_shape *shape, bool vec, int64_t work, void *stream,
                        const fth__jit_code **out, fth_err *err)
{
    fth_context *const ctx = node->graph ? node->graph->ctx : NULL;
    loaded *m = NULL;
    made made = {};
    *out = NULL;
    if (!ctx) return FTH_OK;
    const order o = {p, shape, vec, fth_context_cache_dir(ctx), fth_context_mem(ctx)};
    pthread_mutex_lock(&device->lock);
    fth_status s = find(device, &o, work, (cudaStream_t)stream, &m, err);
    if (m && m->busy) {
        jit *const j = (jit *)device->slot[FTH__CUDA_JIT].thing;
        pthread_mutex_unlock(&device->lock);
        s = compile(j, device, &o, m, &made, err);
        pthread_mutex_lock(&device->lock);
        FTH_ASSERT(m->busy && !m->library); /* the entry is this thread's alone */
        m->busy = false;
        if (s == FTH_OK) adopt(j, m, &made);
    }
    if (s == FTH_OK && m) *out = &m->code;
    pthread_mutex_unlock(&device->lock);
    return s;
}

bool fth__jit_has(fth_device *device, const fth__program *p, const fth__ew_shape *shape, bool vec)
{
    if (!device) return false;
    pthread_mutex_lock(&device->lock);
    const jit *const j = (const jit *)device->slot[FTH__CUDA_JIT].thing;
    const loaded *const m = j && j->count > 0 ? known_as(j, key_of(p, shape, vec)) : NULL;
    pthread_mutex_unlock(&device->lock);
    return m && m->library;
}

fth_status fth__jit_launch(const fth_call *call, const fth__jit_code *code, dim3 blocks,
                           unsigned threads, unsigned shared, const fth__ew_args *args)
{
    FTH_ASSERT(code->kernel && blocks.x > 0 && blocks.y > 0 && blocks.y <= 65535);
    void *list[] = {const_cast<fth__ew_args *>(args)};
    FTH_CUDA_TRY(cudaLaunchKernel((const void *)code->kernel, blocks, dim3(threads), list, shared,
                                  fth_cuda_stream(call)),
                 call->node->op->name, call->err);
    return FTH_OK;
}
