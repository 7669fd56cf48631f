/* context.c - making the context: memory, workers, device; resolved once, then only read. */
#include "graph/context.h"

#include "base/str.h"
#include "cpu/amx.h"
#include "cpu/backend.h"
#include "cpu/blas.h"
#include "dist/comm.h"
#include "mem/disk.h"
#include "mem/heap.h"
#include "mem/system.h"
#include "plan/cache.h"
#include "plan/rates.h"
#include "run/backend.h"
#include "run/io.h"
#include "run/stage.h"
#include "run/team.h"
#include "run/watch.h"
#include "trace/record.h"

#include <fathom/isa.h>
#include <fathom/products.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fth_options_default(fth_options *opt)
{
    memset(opt, 0, sizeof *opt);
    fth_mem_options_default(&opt->mem);
}

static int usable_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    const int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

/* "cuda" or "cuda:N": the number of the device; -1: neither. */
static int cuda_index(const char *want)
{
    if (strncmp(want, "cuda", 4) != 0) return -1;
    const char *number = want + 4;
    if (!*number) return 0;
    if (*number++ != ':' || !*number || strlen(number) > 3 ||
        strspn(number, "0123456789") != strlen(number))
        return -1;
    return (int)strtol(number, NULL, 10);
}

static void use_cpu(fth_context *ctx)
{
    fth__str_copy(ctx->device, sizeof ctx->device, "cpu");
    ctx->backend = &fth__cpu_backend;
}

static void close_gpu(fth_context *ctx)
{
    fth__watch_end(ctx);
    fth__stage_destroy(ctx->stage);
    (void)fth_mem_destroy(ctx->gpu_mem, NULL);
    if (ctx->gpu) ctx->backend->device->close(ctx->gpu);
    if (ctx->library) dlclose(ctx->library);
    ctx->stage = NULL;
    ctx->gpu_mem = NULL;
    ctx->gpu = NULL;
    ctx->library = NULL;
}

/* Whether there is a driver at all: asking costs nothing, and loading the backend in vain does. */
static fth_status find_driver(fth_err *err)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver) return FTH_FAIL(err, FTH_E_DEVICE, "there is no NVIDIA driver");
    dlclose(driver);
    return FTH_OK;
}

static fth_status open_gpu(fth_context *ctx, const fth_options *opt, int index, fth_err *err)
{
    ctx->backend = opt->backend;
    if (!ctx->backend)
        FTH_TRY(fth__backend_load(opt->backend_path, &ctx->backend, &ctx->library, err));
    FTH_TRY(ctx->backend->device->open(&ctx->gpu, index, err));
    fth_mem_system system;
    ctx->backend->device->get_memory(ctx->gpu, &system);
    fth_mem_options mo = opt->mem;
    mo.budget_bytes = opt->device_memory_bytes;
    mo.direct_above = UINT64_MAX; /* cached: arenas come again, and drivers wait for everything */
    mo.fail_alloc = mo.fail_write = 0; /* on purpose in the host's memory alone */
    mo.log = &ctx->log;
    FTH_TRY(fth_mem_create_on(&ctx->gpu_mem, &mo, &system, err));
    fth__mem_bind(ctx->gpu_mem);
    fth__mem_set_owner(ctx->gpu_mem, &(fth__mem_owner){ctx->backend->device, ctx->gpu, ctx->mem});
    snprintf(ctx->device, sizeof ctx->device, "%s:%d", ctx->backend->name, index);
    return FTH_OK;
}

/* Once, and never something else than what was asked for. */
static fth_status resolve_device(fth_context *ctx, const fth_options *opt, fth_err *err)
{
    const char *want = opt->device ? opt->device : "cpu";
    const bool any = strcmp(want, "auto") == 0;
    const int index = any ? 0 : cuda_index(want);
    fth_err why = {0};
    if (strcmp(want, "cpu") == 0) {
        use_cpu(ctx);
        fth__str_copy(ctx->reason, sizeof ctx->reason, "asked for");
        return FTH_OK;
    }
    if (index < 0) {
        const fth_status s = FTH_FAIL(err, FTH_E_DEVICE, "'%s' is not a device", want);
        fth_err_hint(err, "devices are auto, cpu, cuda and cuda:N");
        return s;
    }
    fth_status s = FTH_OK;
    if (any && opt->no_gpu)
        s = FTH_FAIL(&why, FTH_E_DEVICE, "%s", opt->no_gpu);
    else if (any && !opt->backend && !opt->backend_path)
        s = find_driver(&why);
    if (s == FTH_OK) s = open_gpu(ctx, opt, index, &why);
    if (s == FTH_OK) {
        fth_device_info info;
        ctx->backend->device->get_info(ctx->gpu, &info);
        snprintf(ctx->reason, sizeof ctx->reason, "%s: %.90s", any ? "auto" : "asked for",
                 info.name);
        return FTH_OK;
    }
    close_gpu(ctx);
    if (any) {
        use_cpu(ctx);
        snprintf(ctx->reason, sizeof ctx->reason, "auto: %.110s", why.text);
        return FTH_OK;
    }
    (void)FTH_FAIL(err, FTH_E_DEVICE, "device '%s' was asked for: %s", want, why.text);
    fth_err_hint(err, "ask for cpu, or for auto to take what there is; 'fathom doctor' tells more");
    return FTH_E_DEVICE;
}

/* Who looks for kernels in the timeline finds this. */
static void note_device(const fth_context *ctx)
{
    if (strcmp(ctx->device, "cpu") == 0)
        fth__trace_note(ctx->trace, "no device activity: run on cpu");
}

/* What the bits of results depend on beside the program and its data. */
static fth_status check_ranks(const fth_context *ctx, fth_err *err)
{
    if (fth_ranks_count(ctx->ranks) < 2) return FTH_OK;
    char same[192];
    snprintf(same, sizeof same, "Fathom %s on %s, instruction set level %d, OpenBLAS for %s%s",
             fth_version(), ctx->gpu ? "a GPU" : "the CPU", fth_isa_level(), fth__cpu_blas_name(),
             fth__amx_there() ? ", AMX" : "");
    return fth__comm_check_same(fth__comm_of(ctx->ranks), same, err);
}

/* ---- ranks ---- */

fth_status fth_context_meet(fth_context *ctx, fth_err *err)
{
    int64_t here = 0;
    return fth_ranks_agree(ctx->ranks, &here, err);
}

/* Files are also committed inside runs and by workers, where other ranks are not at this place. */
static fth_status settle(void *user, fth_status s, fth_err *err)
{
    const fth_context *ctx = user;
    return fth__context_may_meet(ctx) ? fth__comm_settle(fth__comm_of(ctx->ranks), s, err) : s;
}

static fth_status agree_least(fth_ranks *ranks, int64_t *value, fth_err *err)
{
    *value = -*value;
    const fth_status s = fth_ranks_agree(ranks, value, err);
    *value = -*value;
    return s;
}

/* Plans depend on the budget and on the number of workers: both are the same on all ranks. */
static fth_status agree_budget(fth_mem_options *mo, fth_ranks *ranks, fth_err *err)
{
    if (!ranks) return FTH_OK;
    if (mo->budget_bytes == 0) /* as of one process, shared by those of this node */
        mo->budget_bytes = fth_mem_free_now() / 10 * 9 / (uint64_t)fth_ranks_local(ranks);
    int64_t bytes = mo->budget_bytes > INT64_MAX ? INT64_MAX : (int64_t)mo->budget_bytes;
    FTH_TRY(agree_least(ranks, &bytes, err));
    mo->budget_bytes = (uint64_t)bytes;
    return FTH_OK;
}

static fth_status join_ranks(fth_context *ctx, const fth_options *opt, fth_err *err)
{
    ctx->thread = pthread_self();
    if (!opt->ranks) return FTH_OK;
    const int share = opt->threads > 0 ? 1 : fth_ranks_core_share(opt->ranks);
    int64_t threads = ctx->threads / share > 0 ? ctx->threads / share : 1;
    FTH_TRY(agree_least(opt->ranks, &threads, err));
    ctx->threads = (int)threads;
    /* Of rank 0, in the names of files that rank 0 writes and all read. */
    int64_t owner = fth_ranks_rank(opt->ranks) == 0 ? (int64_t)getpid() : 0;
    FTH_TRY(fth_ranks_agree(opt->ranks, &owner, err));
    fth__disk_set_role(ctx->mem, &(fth__disk_role){.reader = fth_ranks_rank(opt->ranks) > 0,
                                                   .owner = owner,
                                                   .settle = settle,
                                                   .user = ctx});
    return FTH_OK;
}

static fth_status fill(fth_context *ctx, const fth_options *opt, fth_err *err)
{
    ctx->log = opt->log;
    ctx->front = opt->front;
    ctx->plain_products = opt->plain_products;
    ctx->trace = opt->trace;
    ctx->ranks = opt->ranks;
    ctx->plan_ranks = opt->plan_ranks;
    ctx->ranks_strict = opt->ranks_strict;
    ctx->progress = opt->progress;
    ctx->progress_user = opt->progress_user;
    FTH_TRY(fth__threads_check(opt->threads, err));
    ctx->threads = opt->threads > 0 ? opt->threads : usable_cores();
    FTH_TRY(join_ranks(ctx, opt, err));
    /* A part of a path is another folder. */
    if (opt->scratch_dir && strlen(opt->scratch_dir) >= sizeof ctx->scratch_dir)
        return FTH_FAIL(err, FTH_E_SCRATCH,
                        "the path of the scratch directory has %zu bytes, at most %zu fit",
                        strlen(opt->scratch_dir), sizeof ctx->scratch_dir - 1);
    fth__str_copy(ctx->scratch_dir, sizeof ctx->scratch_dir, opt->scratch_dir);
    fth__str_copy(ctx->cache_dir, sizeof ctx->cache_dir, opt->cache_dir);
    FTH_TRY(resolve_device(ctx, opt, err));
    FTH_TRY(fth__cpu_blas_init(err));
    fth_log_line(&ctx->log, FTH_LOG_INFO, "device %s (%s), %d worker%s, OpenBLAS for %s%s",
                 ctx->device, ctx->reason, ctx->threads, ctx->threads == 1 ? "" : "s",
                 fth__cpu_blas_name(), fth__amx_there() ? ", AMX" : "");
    note_device(ctx);
    FTH_TRY(check_ranks(ctx, err));
    if (ctx->gpu && ctx->trace && opt->trace_kernels) fth__watch_begin(ctx);
    FTH_TRY(fth__rates_create(&ctx->rates, ctx, err));
    FTH_TRY(fth__plan_cache_create(&ctx->plans, ctx->mem, err));
    return fth_team_create(&ctx->team, ctx->mem, ctx->threads, err);
}

/* ---- contexts that are gone: a second release has nowhere else to look ---- */

enum { PAST = 16 }; /* contexts; a program has one or two */
static struct {
    pthread_mutex_t lock;
    uint64_t n;
    struct {
        const fth_context *address;
        fth_site made, ended;
    } ctx[PAST];
} past = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The address belongs to a new context. */
static void forget_past(const fth_context *ctx)
{
    pthread_mutex_lock(&past.lock);
    for (int i = 0; i < PAST; i++)
        if (past.ctx[i].address == ctx) past.ctx[i].address = NULL;
    pthread_mutex_unlock(&past.lock);
}

static void remember(const fth_context *ctx)
{
    pthread_mutex_lock(&past.lock);
    const uint64_t i = past.n++ % PAST;
    past.ctx[i].address = ctx;
    past.ctx[i].made = ctx->object.made;
    past.ctx[i].ended = ctx->object.ended;
    pthread_mutex_unlock(&past.lock);
}

static fth_status released_twice(fth_site made, fth_site ended, fth_site site, fth_err *err)
{
    const fth_status s =
        fth_err_set(err, site, FTH_E_ORDER,
                    "a context is released twice\nmade at %s:%d\nreleased at %s:%d\nand again at "
                    "%s:%d",
                    made.file, made.line, ended.file, ended.line, site.file, site.line);
    fth_err_origin(err, site);
    return s;
}

static fth_status check_past(const fth_context *ctx, fth_site site, fth_err *err)
{
    fth_status s = FTH_OK;
    pthread_mutex_lock(&past.lock);
    for (int i = 0; s == FTH_OK && i < PAST; i++)
        if (past.ctx[i].address == ctx)
            s = released_twice(past.ctx[i].made, past.ctx[i].ended, site, err);
    pthread_mutex_unlock(&past.lock);
    return s;
}

/* ---- making and ending ---- */

fth_status fth_context_create_(fth_context **out, fth_site site, const fth_options *opt,
                               fth_err *err)
{
    *out = NULL;
    fth_options defaults;
    fth_options_default(&defaults);
    if (!opt) opt = &defaults;
    fth_mem *mem;
    fth_mem_options mo = opt->mem;
    if (!mo.log) mo.log = &opt->log;
    FTH_TRY(agree_budget(&mo, opt->ranks, err));
    FTH_TRY(fth_mem_create(&mem, &mo, err));
    fth_context *ctx = fth__heap_alloc(mem, sizeof *ctx);
    fth_status s = ctx ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory for a context");
    if (ctx) {
        ctx->object.what = "context";
        ctx->object.made = site;
        ctx->object.mem = ctx->mem = mem;
        fth__mem_bind(mem);
        s = fill(ctx, opt, err);
        if (s != FTH_OK) {
            fth__plan_cache_destroy(ctx->plans);
            fth__heap_free(mem, ctx->rates);
            close_gpu(ctx);
            fth__heap_free(mem, ctx);
        }
    }
    if (s != FTH_OK) {
        fth_mem_destroy(mem, NULL);
    } else {
        forget_past(ctx);
        *out = ctx;
    }
    return s;
}

static fth_status end(fth_context *ctx, fth_err *err)
{
    fth_mem *mem = ctx->mem, *gpu_mem = ctx->gpu_mem;
    fth__mem_when_empty(mem, NULL, NULL); /* it is, and this is its end */
    remember(ctx);
    fth__io_destroy(ctx->io);
    fth_team_destroy(ctx->team);
    fth__plan_cache_destroy(ctx->plans);
    fth__heap_free(mem, ctx->rates);
    ctx->gpu_mem = NULL;
    fth_status held = fth_mem_destroy(gpu_mem, err); /* while its device is still open */
    close_gpu(ctx);
    fth__heap_free(mem, ctx);
    const fth_status s = fth__mem_end(mem, held == FTH_OK ? err : NULL);
    return held == FTH_OK ? s : held;
}

/* The last that stood on a context released before. What is wrong beside the order was told there,
 * or is told to the log now: nobody is there to be told. */
static void end_late(void *user)
{
    fth_context *ctx = user;
    const fth_log log = ctx->log;
    fth_err err = {0};
    const fth_status s = end(ctx, &err);
    if (s != FTH_OK && s != FTH_E_ORDER)
        fth_log_line(&log, FTH_LOG_ERROR, "%s: %s", fth_status_get_info(s)->code, err.text);
}

fth_status fth_context_destroy_(fth_context *ctx, fth_site site, fth_err *err)
{
    if (!ctx) return FTH_OK;
    FTH_TRY(check_past(ctx, site, err));
    FTH_TRY(fth__mem_check_process(ctx->mem, err));
    if (__atomic_exchange_n(&ctx->object.over, true, __ATOMIC_SEQ_CST))
        return released_twice(ctx->object.made, ctx->object.ended, site, err);
    ctx->object.ended = site;
    fth__object user = {0};
    if (fth__mem_objects(ctx->mem, &user) == 0) return end(ctx, err);
    fth__mem_when_empty(ctx->mem, end_late, ctx);
    return fth__object_early(&ctx->object, &user, err);
}

fth_mem *fth_context_mem(fth_context *ctx)
{
    return ctx->mem;
}

fth_mem *fth_context_device_mem(fth_context *ctx)
{
    return ctx->gpu_mem;
}

const char *fth_context_device(const fth_context *ctx)
{
    return ctx->device;
}

const char *fth_context_device_reason(const fth_context *ctx)
{
    return ctx->reason;
}

int fth_context_threads(const fth_context *ctx)
{
    return ctx->threads;
}

fth_ranks *fth_context_ranks(const fth_context *ctx)
{
    return ctx->ranks;
}

void fth_context_set_split_products(fth_context *ctx, bool on)
{
    ctx->plain_products = !on;
}
bool fth_context_split_products(const fth_context *ctx)
{
    return !ctx->plain_products;
}

const char *fth_context_cache_dir(const fth_context *ctx)
{
    return ctx->cache_dir[0] ? ctx->cache_dir : NULL;
}

const fth_log *fth_context_log(const fth_context *ctx)
{
    return &ctx->log;
}

fth_trace *fth_context_trace(const fth_context *ctx)
{
    return ctx->trace;
}

void fth_context_set_trace(fth_context *ctx, fth_trace *trace)
{
    ctx->trace = trace;
    note_device(ctx);
}

const char *fth_context_scratch_dir(const fth_context *ctx)
{
    return ctx->scratch_dir[0] ? ctx->scratch_dir : NULL;
}
