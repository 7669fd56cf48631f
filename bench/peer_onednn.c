/* peer_onednn.c - a convolution by oneDNN, opened at run time: plain arrays in, plain arrays out.
 *
 * The library chooses its own blocked layouts; bringing the image in and the result out is part of
 * the job and timed, the weights are brought into place once.
 */
#include "bench.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <stdlib.h>

/* clang-format off */
#define FUNCTIONS(X) \
    X(dnnl_engine_create) X(dnnl_stream_create) X(dnnl_stream_wait) \
    X(dnnl_stream_destroy) X(dnnl_engine_destroy) X(dnnl_memory_desc_init_by_tag) \
    X(dnnl_convolution_forward_desc_init) X(dnnl_primitive_desc_create) X(dnnl_primitive_desc_query_md) \
    X(dnnl_primitive_create) X(dnnl_primitive_desc_destroy) X(dnnl_primitive_destroy) \
    X(dnnl_primitive_execute) X(dnnl_memory_create) X(dnnl_memory_destroy) \
    X(dnnl_reorder_primitive_desc_create)
/* clang-format on */

/* dlsym gives a pointer to data; a union is the way to a function that warnings accept. */
#define MEMBER(f)                                                                                  \
    union {                                                                                        \
        void *data;                                                                                \
        __typeof__(&f) call;                                                                       \
    } f;

struct peer_conv_plan {
    void *library;
    int threads;
    void (*set_threads)(int);
    FUNCTIONS(MEMBER)
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_t plain[3], own[3]; /* source, weights, result */
    dnnl_primitive_t conv, in, weights, back;
};

static bool find(peer_conv_plan *p)
{
#define FIND(f)                                                                                    \
    p->f.data = dlsym(p->library, #f);                                                             \
    if (!p->f.data) return false;
    FUNCTIONS(FIND)
    union {
        void *data;
        void (*call)(int);
    } set = {dlsym(p->library, "omp_set_num_threads")};
    p->set_threads = set.call;
    return true;
}

static dnnl_primitive_t reorder(peer_conv_plan *p, const dnnl_memory_desc_t *from,
                                const dnnl_memory_desc_t *to)
{
    dnnl_primitive_desc_t d = NULL;
    dnnl_primitive_t r = NULL;
    if (p->dnnl_reorder_primitive_desc_create.call(&d, from, p->engine, to, p->engine, NULL) !=
        dnnl_success)
        return NULL;
    p->dnnl_primitive_create.call(&r, d);
    p->dnnl_primitive_desc_destroy.call(d);
    return r;
}

static void move(peer_conv_plan *p, dnnl_primitive_t r, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    p->dnnl_primitive_execute.call(r, p->stream, 2, args);
}

static bool build(peer_conv_plan *p, const peer_conv *c)
{
    const dnnl_dims_t dims[3] = {
        {c->batch, c->in, c->y, c->x}, {c->out, c->in, c->k, c->k}, {c->batch, c->out, c->y, c->x}};
    float *const data[3] = {c->src, c->weight, c->dst};
    const dnnl_dims_t one = {1, 1}, pad = {c->pad, c->pad};
    dnnl_memory_desc_t plain[3], any[3];
    dnnl_convolution_desc_t conv;
    dnnl_primitive_desc_t d = NULL;
    static const dnnl_query_t query[3] = {dnnl_query_src_md, dnnl_query_weights_md,
                                          dnnl_query_dst_md};
    bool ok = p->dnnl_engine_create.call(&p->engine, dnnl_cpu, 0) == dnnl_success &&
              p->dnnl_stream_create.call(&p->stream, p->engine, dnnl_stream_default_flags) ==
                  dnnl_success;
    for (int i = 0; ok && i < 3; i++) {
        p->dnnl_memory_desc_init_by_tag.call(&plain[i], 4, dims[i], dnnl_f32, dnnl_abcd);
        p->dnnl_memory_desc_init_by_tag.call(&any[i], 4, dims[i], dnnl_f32, dnnl_format_tag_any);
        ok =
            p->dnnl_memory_create.call(&p->plain[i], &plain[i], p->engine, data[i]) == dnnl_success;
    }
    ok = ok &&
         p->dnnl_convolution_forward_desc_init.call(&conv, dnnl_forward_inference,
                                                    dnnl_convolution_auto, &any[0], &any[1], NULL,
                                                    &any[2], one, pad, pad) == dnnl_success &&
         p->dnnl_primitive_desc_create.call(&d, &conv, NULL, p->engine, NULL) == dnnl_success &&
         p->dnnl_primitive_create.call(&p->conv, d) == dnnl_success;
    const dnnl_memory_desc_t *own[3] = {NULL, NULL, NULL};
    for (int i = 0; ok && i < 3; i++) {
        own[i] = p->dnnl_primitive_desc_query_md.call(d, query[i], 0);
        ok = p->dnnl_memory_create.call(&p->own[i], own[i], p->engine, DNNL_MEMORY_ALLOCATE) ==
             dnnl_success;
    }
    if (ok) {
        p->in = reorder(p, &plain[0], own[0]);
        p->weights = reorder(p, &plain[1], own[1]);
        p->back = reorder(p, own[2], &plain[2]);
        ok = p->in && p->weights && p->back;
    }
    if (ok) move(p, p->weights, p->plain[1], p->own[1]);
    if (d) p->dnnl_primitive_desc_destroy.call(d);
    return ok;
}

peer_conv_plan *peer_conv_make(const peer_conv *c, int threads, const char **why)
{
    peer_conv_plan *p = calloc(1, sizeof *p);
    *why = "no memory";
    if (!p) return NULL;
    p->threads = threads;
    p->library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    *why = "libdnnl.so.2 cannot be opened";
    if (p->library) {
        *why = "oneDNN could not plan the convolution";
        if (find(p)) {
            if (p->set_threads) p->set_threads(threads);
            if (build(p, c)) return p;
        }
    }
    free(p);
    return NULL;
}

void peer_conv_run(peer_conv_plan *p)
{
    if (p->set_threads) p->set_threads(p->threads);
    move(p, p->in, p->plain[0], p->own[0]);
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, p->own[0]}, {DNNL_ARG_WEIGHTS, p->own[1]}, {DNNL_ARG_DST, p->own[2]}};
    p->dnnl_primitive_execute.call(p->conv, p->stream, 3, args);
    move(p, p->back, p->own[2], p->plain[2]);
    p->dnnl_stream_wait.call(p->stream);
}

void peer_conv_drop(peer_conv_plan *p)
{
    if (!p) return;
    for (int i = 0; i < 3; i++) {
        p->dnnl_memory_destroy.call(p->plain[i]);
        p->dnnl_memory_destroy.call(p->own[i]);
    }
    p->dnnl_primitive_destroy.call(p->conv);
    p->dnnl_primitive_destroy.call(p->in);
    p->dnnl_primitive_destroy.call(p->weights);
    p->dnnl_primitive_destroy.call(p->back);
    p->dnnl_stream_destroy.call(p->stream);
    p->dnnl_engine_destroy.call(p->engine);
    free(p); /* the library stays open: its threads may still be winding down */
}
