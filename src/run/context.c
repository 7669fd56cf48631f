/* context.c - making the context: memory, workers, device; resolved once, then only read. */
#include "graph/context.h"

#include "base/str.h"
#include "cpu/backend.h"
#include "cpu/blas.h"
#include "mem/heap.h"
#include "plan/cache.h"
#include "run/team.h"
#include "trace/record.h"

#include <sched.h>
#include <string.h>

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

static const char no_cuda[] = "this build has no CUDA backend";

/* "cuda" or "cuda:N". */
static bool names_cuda(const char *want)
{
    if (strncmp(want, "cuda", 4) != 0) return false;
    const char *number = want + 4;
    if (!*number) return true;
    return *number++ == ':' && *number && strlen(number) < 4 &&
           strspn(number, "0123456789") == strlen(number);
}

/* Once, and never something else than what was asked for. */
static fth_status resolve_device(fth_context *ctx, const char *asked, fth_err *err)
{
    const char *want = asked ? asked : "auto";
    const bool any = strcmp(want, "auto") == 0;
    if (any || strcmp(want, "cpu") == 0) {
        snprintf(ctx->reason, sizeof ctx->reason, "%s%s", any ? "auto: " : "",
                 any ? no_cuda : "asked for");
        fth__str_copy(ctx->device, sizeof ctx->device, "cpu");
        ctx->backend = &fth__cpu_backend;
        return FTH_OK;
    }
    const bool cuda = names_cuda(want);
    const fth_status s =
        cuda ? FTH_FAIL(err, FTH_E_DEVICE, "device '%s' was asked for: %s", want, no_cuda)
             : FTH_FAIL(err, FTH_E_DEVICE, "'%s' is not a device", want);
    fth_err_hint(err, cuda ? "ask for cpu, or for auto to take what there is"
                           : "devices are auto, cpu, cuda and cuda:N");
    return s;
}

static fth_status fill(fth_context *ctx, const fth_options *opt, fth_err *err)
{
    ctx->log = opt->log;
    ctx->trace = opt->trace;
    if (opt->threads < 0 || opt->threads > 4096)
        return FTH_FAIL(err, FTH_E_USAGE, "threads must be 0 to 4096, not %d", opt->threads);
    ctx->threads = opt->threads > 0 ? opt->threads : usable_cores();
    fth__str_copy(ctx->scratch_dir, sizeof ctx->scratch_dir, opt->scratch_dir);
    FTH_TRY(resolve_device(ctx, opt->device, err));
    FTH_TRY(fth__cpu_blas_init(err));
    fth_log_line(&ctx->log, FTH_LOG_INFO, "device %s (%s), %d worker%s, OpenBLAS for %s",
                 ctx->device, ctx->reason, ctx->threads, ctx->threads == 1 ? "" : "s",
                 fth__cpu_blas_name());
    if (strcmp(ctx->device, "cpu") == 0) /* who looks for kernels in the timeline finds this */
        fth__trace_note(ctx->trace, "no device activity: run on cpu");
    FTH_TRY(fth__plan_cache_create(&ctx->plans, ctx->mem, err));
    return fth__team_create(&ctx->team, ctx->mem, ctx->threads, err);
}

fth_status fth_context_create(fth_context **out, const fth_options *opt, fth_err *err)
{
    *out = NULL;
    fth_options defaults;
    fth_options_default(&defaults);
    if (!opt) opt = &defaults;
    fth_mem *mem;
    fth_mem_options mo = opt->mem;
    if (!mo.log) mo.log = &opt->log;
    FTH_TRY(fth_mem_create(&mem, &mo, err));
    fth_context *ctx = fth__heap_alloc(mem, sizeof *ctx);
    fth_status s = ctx ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory for a context");
    if (ctx) {
        ctx->mem = mem;
        s = fill(ctx, opt, err);
        if (s != FTH_OK) {
            fth__plan_cache_destroy(ctx->plans);
            fth__heap_free(mem, ctx);
        }
    }
    if (s != FTH_OK)
        fth_mem_destroy(mem, NULL);
    else
        *out = ctx;
    return s;
}

fth_status fth_context_destroy(fth_context *ctx, fth_err *err)
{
    if (!ctx) return FTH_OK;
    fth_mem *mem = ctx->mem;
    fth__team_destroy(ctx->team);
    fth__plan_cache_destroy(ctx->plans);
    fth__heap_free(mem, ctx);
    return fth_mem_destroy(mem, err);
}

fth_mem *fth_context_mem(fth_context *ctx)
{
    return ctx->mem;
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

const char *fth_context_scratch_dir(const fth_context *ctx)
{
    return ctx->scratch_dir[0] ? ctx->scratch_dir : NULL;
}
