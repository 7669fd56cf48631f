/* onednn.c - oneDNN behind a narrow interface. No other file includes its header.
 *
 * Functions are looked up by name, so that commands without convolutions do not load the library
 * with its run-time compiler. Debian builds it on OpenMP, which is set to one thread while a
 * convolution is open.
 */
#include "cpu/onednn.h"

#include "base/assert.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <pthread.h>
#include <string.h>

#define FUNCTIONS(X)                                                                               \
    X(dnnl_engine_create)                                                                          \
    X(dnnl_engine_destroy)                                                                         \
    X(dnnl_stream_create)                                                                          \
    X(dnnl_stream_wait)                                                                            \
    X(dnnl_stream_destroy)                                                                         \
    X(dnnl_memory_desc_init_by_tag)                                                                \
    X(dnnl_memory_desc_get_size)                                                                   \
    X(dnnl_memory_create)                                                                          \
    X(dnnl_memory_set_data_handle)                                                                 \
    X(dnnl_memory_destroy)                                                                         \
    X(dnnl_dilated_convolution_forward_desc_init)                                                  \
    X(dnnl_primitive_attr_create)                                                                  \
    X(dnnl_primitive_attr_set_scratchpad_mode)                                                     \
    X(dnnl_primitive_attr_destroy)                                                                 \
    X(dnnl_primitive_desc_create)                                                                  \
    X(dnnl_primitive_desc_query)                                                                   \
    X(dnnl_primitive_desc_query_md)                                                                \
    X(dnnl_primitive_desc_destroy)                                                                 \
    X(dnnl_reorder_primitive_desc_create)                                                          \
    X(dnnl_primitive_create)                                                                       \
    X(dnnl_primitive_execute)                                                                      \
    X(dnnl_primitive_destroy)

typedef enum answer { YES, NO, BROKEN } answer;

/* Filled by the first caller, and only read afterwards. */
static struct {
    pthread_mutex_t lock; /* of `ready` and `absent` */
    bool ready, absent;
    int (*get_threads)(void);
    void (*set_threads)(int);
#define DECLARE(name) __typeof__(&(name)) name;
    FUNCTIONS(DECLARE)
#undef DECLARE
} lib = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void load(void)
{
    void *so = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        const char *why = dlerror();
        lib.absent = why && strstr(why, "No such file");
        return;
    }
    bool all = true;
#define FIND(name) all &= (*(void **)&lib.name = dlsym(so, #name)) != NULL;
    FUNCTIONS(FIND)
#undef FIND
    *(void **)&lib.get_threads = dlsym(so, "omp_get_max_threads");
    *(void **)&lib.set_threads = dlsym(so, "omp_set_num_threads");
    lib.ready = all;
    lib.absent = !all; /* another version */
}

static answer find_library(void)
{
    pthread_mutex_lock(&lib.lock);
    if (!lib.ready && !lib.absent) load();
    const answer a = lib.ready ? YES : lib.absent ? NO : BROKEN;
    pthread_mutex_unlock(&lib.lock);
    return a;
}

enum { SRC, WEIGHTS, DST, CONV_PAD, PLAIN, PACK_PAD };

static bool describe(const fth__onednn_shape *s, dnnl_convolution_desc_t *conv)
{
    const dnnl_dims_t src = {1, s->chan, s->rows_in, s->width_in},
                      dst = {1, s->out_chan, s->rows, s->width};
    const dnnl_dims_t weights = {s->out_chan, s->chan, s->ky, s->kx};
    const dnnl_dims_t stride = {s->stride, s->stride},
                      dilation = {s->dilation - 1, s->dilation - 1};
    const dnnl_dims_t before = {0, s->pad_left}, after = {0, s->pad_right};
    dnnl_memory_desc_t m_src, m_weights, m_dst;
    return lib.dnnl_memory_desc_init_by_tag(&m_src, 4, src, dnnl_f32, dnnl_nhwc) == dnnl_success &&
           lib.dnnl_memory_desc_init_by_tag(&m_dst, 4, dst, dnnl_f32, dnnl_nhwc) == dnnl_success &&
           lib.dnnl_memory_desc_init_by_tag(&m_weights, 4, weights, dnnl_f32,
                                            dnnl_format_tag_any) == dnnl_success &&
           lib.dnnl_dilated_convolution_forward_desc_init(
               conv, dnnl_forward_inference, dnnl_convolution_direct, &m_src, &m_weights, NULL,
               &m_dst, stride, dilation, before, after) == dnnl_success;
}

static const dnnl_memory_desc_t *md(const void *desc, dnnl_query_t what)
{
    return lib.dnnl_primitive_desc_query_md(desc, what, 0);
}

/* Memory objects without memory: pointers are put in for each run. */
static bool make_memory(fth__onednn_conv *c)
{
    const dnnl_memory_desc_t *desc[6] = {
        [SRC] = md(c->conv_desc, dnnl_query_src_md),
        [WEIGHTS] = md(c->conv_desc, dnnl_query_weights_md),
        [DST] = md(c->conv_desc, dnnl_query_dst_md),
        [CONV_PAD] = md(c->conv_desc, dnnl_query_scratchpad_md),
        [PLAIN] = md(c->pack_desc, dnnl_query_src_md),
        [PACK_PAD] = md(c->pack_desc, dnnl_query_scratchpad_md),
    };
    for (int i = 0; i < 6; i++)
        if (lib.dnnl_memory_create((dnnl_memory_t *)&c->memory[i], desc[i], c->engine,
                                   DNNL_MEMORY_NONE) != dnnl_success)
            return false;
    const uint64_t conv = lib.dnnl_memory_desc_get_size(desc[CONV_PAD]),
                   pack = lib.dnnl_memory_desc_get_size(desc[PACK_PAD]);
    c->workspace_bytes = conv > pack ? conv : pack;
    c->weights_bytes = lib.dnnl_memory_desc_get_size(desc[WEIGHTS]);
    return true;
}

static answer choose(fth__onednn_conv *c, const fth__onednn_shape *s, dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t conv;
    const char *name = "";
    if (lib.dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) !=
            dnnl_success ||
        !describe(s, &conv))
        return BROKEN;
    const dnnl_status_t made = lib.dnnl_primitive_desc_create(
        (dnnl_primitive_desc_t *)&c->conv_desc, &conv, attr, c->engine, NULL);
    if (made == dnnl_out_of_memory || made == dnnl_runtime_error) return BROKEN;
    if (made != dnnl_success) return NO; /* not for this shape, today or ever */
    /* its plain loops are slower than products by BLAS */
    if (lib.dnnl_primitive_desc_query(c->conv_desc, dnnl_query_impl_info_str, 0, (void *)&name) !=
        dnnl_success)
        return BROKEN;
    return strstr(name, "ref") || strstr(name, "gemm") ? NO : YES;
}

static answer make(fth__onednn_conv *c, const fth__onednn_shape *s, dnnl_primitive_attr_t attr)
{
    const dnnl_dims_t dims = {s->out_chan, s->chan, s->ky, s->kx};
    dnnl_memory_desc_t plain;
    const answer a = choose(c, s, attr);
    if (a != YES) return a;
    const bool ok =
        lib.dnnl_primitive_create((dnnl_primitive_t *)&c->conv, c->conv_desc) == dnnl_success &&
        lib.dnnl_memory_desc_init_by_tag(&plain, 4, dims, dnnl_f32, dnnl_oihw) == dnnl_success &&
        lib.dnnl_reorder_primitive_desc_create((dnnl_primitive_desc_t *)&c->pack_desc, &plain,
                                               c->engine, md(c->conv_desc, dnnl_query_weights_md),
                                               c->engine, attr) == dnnl_success &&
        lib.dnnl_primitive_create((dnnl_primitive_t *)&c->pack, c->pack_desc) == dnnl_success &&
        make_memory(c);
    return ok ? YES : BROKEN;
}

fth_status fth__onednn_open(fth__onednn_conv *c, const fth__onednn_shape *shape, bool *can,
                            fth_err *err)
{
    memset(c, 0, sizeof *c);
    answer a = find_library();
    if (a == YES) {
        if (lib.get_threads) c->threads = lib.get_threads();
        if (lib.set_threads) lib.set_threads(1);
        dnnl_primitive_attr_t attr = NULL;
        const bool ok =
            lib.dnnl_engine_create((dnnl_engine_t *)&c->engine, dnnl_cpu, 0) == dnnl_success &&
            lib.dnnl_stream_create((dnnl_stream_t *)&c->stream, c->engine,
                                   dnnl_stream_default_flags) == dnnl_success &&
            lib.dnnl_primitive_attr_create(&attr) == dnnl_success;
        a = ok ? make(c, shape, attr) : BROKEN;
        if (attr) lib.dnnl_primitive_attr_destroy(attr);
        if (a != YES) fth__onednn_close(c);
    }
    *can = a == YES;
    return a != BROKEN ? FTH_OK
                       : FTH_FAIL(err, FTH_E_LIBRARY, "conv2d: oneDNN could not be set up");
}

void fth__onednn_close(fth__onednn_conv *c)
{
    for (int i = 0; i < 6; i++)
        if (c->memory[i]) lib.dnnl_memory_destroy(c->memory[i]);
    if (c->pack) lib.dnnl_primitive_destroy(c->pack);
    if (c->pack_desc) lib.dnnl_primitive_desc_destroy(c->pack_desc);
    if (c->conv) lib.dnnl_primitive_destroy(c->conv);
    if (c->conv_desc) lib.dnnl_primitive_desc_destroy(c->conv_desc);
    if (c->stream) lib.dnnl_stream_destroy(c->stream);
    if (c->engine) lib.dnnl_engine_destroy(c->engine);
    if (lib.set_threads && c->threads > 0) lib.set_threads(c->threads);
    memset(c, 0, sizeof *c);
}

static fth_status set(fth__onednn_conv *c, int which, void *data, fth_err *err)
{
    FTH_ASSERT(c->memory[which]); /* the convolution is open */
    if (lib.dnnl_memory_set_data_handle(c->memory[which], data) == dnnl_success) return FTH_OK;
    return FTH_FAIL(err, FTH_E_LIBRARY, "conv2d: oneDNN did not take a pointer");
}

static fth_status execute(fth__onednn_conv *c, void *primitive, int n, const dnnl_exec_arg_t *args,
                          fth_err *err)
{
    if (lib.dnnl_primitive_execute(primitive, c->stream, n, args) == dnnl_success &&
        lib.dnnl_stream_wait(c->stream) == dnnl_success)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_LIBRARY,
                    "conv2d: oneDNN could not run a convolution it had accepted");
}

fth_status fth__onednn_pack(fth__onednn_conv *c, void *plain, void *packed, void *workspace,
                            fth_err *err)
{
    FTH_TRY(set(c, PLAIN, plain, err));
    FTH_TRY(set(c, WEIGHTS, packed, err));
    FTH_TRY(set(c, PACK_PAD, workspace, err));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, c->memory[PLAIN]},
                                    {DNNL_ARG_TO, c->memory[WEIGHTS]},
                                    {DNNL_ARG_SCRATCHPAD, c->memory[PACK_PAD]}};
    return execute(c, c->pack, 3, args, err);
}

fth_status fth__onednn_run(fth__onednn_conv *c, void *in, void *packed, void *out, void *workspace,
                           fth_err *err)
{
    FTH_TRY(set(c, SRC, in, err));
    FTH_TRY(set(c, WEIGHTS, packed, err));
    FTH_TRY(set(c, DST, out, err));
    FTH_TRY(set(c, CONV_PAD, workspace, err));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, c->memory[SRC]},
                                    {DNNL_ARG_WEIGHTS, c->memory[WEIGHTS]},
                                    {DNNL_ARG_DST, c->memory[DST]},
                                    {DNNL_ARG_SCRATCHPAD, c->memory[CONV_PAD]}};
    return execute(c, c->conv, 4, args, err);
}
