/* devices.c - see devices.h. */
#include "devices.h"

#include <fathom/backend.h>

#include <string.h>

static bool add(fo_devices *out, const char *name, size_t n)
{
    if (out->n == FO_MOST_DEVICES || n == 0 || n >= FO_DEVICE_NAME) return false;
    memcpy(out->name[out->n], name, n);
    out->name[out->n++][n] = '\0';
    return true;
}

/* None without a backend, driver or device: then only the CPU is used. */
static void add_gpus(fo_devices *out)
{
    fth_backend_found found;
    fth_err why = {0};
    if (fth_backend_probe(NULL, &found, &why) != FTH_OK) {
        snprintf(out->no_gpu, sizeof out->no_gpu, "%.199s", why.text);
        return;
    }
    const int n = found.backend->device ? found.backend->device->count(&why) : 0;
    if (n < 1)
        snprintf(out->no_gpu, sizeof out->no_gpu, "%.199s", why.text[0] ? why.text : "no GPU");
    for (int i = 0; i < n; i++) {
        char name[FO_DEVICE_NAME];
        const int length = snprintf(name, sizeof name, "%.8s:%d", found.backend->name, i);
        if (!add(out, name, (size_t)length)) break;
    }
    fth_backend_forget(&found);
}

fth_status fo_devices_list(fo_devices *out, const char *list, fth_err *err)
{
    *out = (fo_devices){0};
    if (!list) {
        (void)add(out, "cpu", 3);
        add_gpus(out);
        return FTH_OK;
    }
    for (const char *at = list;; at++) {
        const size_t n = strcspn(at, ",");
        if (!add(out, at, n))
            return FTH_FAIL(
                err, FTH_E_COMMAND,
                "--devices: expected names such as cpu,cuda:0, at most %d, found '%.60s'",
                (int)FO_MOST_DEVICES, list);
        at += n;
        if (*at == '\0') return FTH_OK;
    }
}

static void nothing(void *arg, int64_t i, int worker)
{
    (void)arg, (void)i, (void)worker;
}

/* Cancellation is known only to the other context. */
static bool ask(void *user, const fth_progress *progress)
{
    (void)progress;
    return fth_context_loop(user, "going on", 1, nothing, NULL, NULL) == FTH_OK;
}

fth_status fo_device_open(fth_context **out, fth_context *ctx, const char *device, fth_err *err)
{
    fth_mem_stats host;
    fth_mem_get_stats(fth_context_mem(ctx), &host);
    const uint64_t left = host.budget_bytes - host.used_bytes; /* both stay within the one budget */
    return fo_device_open_with(out, ctx, device, left, err);
}

fth_status fo_device_open_with(fth_context **out, fth_context *ctx, const char *device,
                               uint64_t budget, fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.mem.budget_bytes = budget;
    if (fth_context_device_mem(ctx)) {
        fth_mem_stats device_mem;
        fth_mem_get_stats(fth_context_device_mem(ctx), &device_mem);
        opt.device_memory_bytes = device_mem.budget_bytes;
    }
    opt.threads = fth_context_threads(ctx);
    opt.device = device;
    opt.cache_dir = fth_context_cache_dir(ctx);
    opt.progress = ask;
    opt.progress_user = ctx;
    opt.front = FTH_FRONT_CLI;
    return fth_context_create(out, &opt, err);
}
