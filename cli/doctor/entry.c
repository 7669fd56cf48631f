/* entry.c - DEVICE DIAGNOSTICS: which devices exist, which one a run uses, and why.
 *
 * The same probes and reasons as those of doctor, in the same order, as lines of the log.
 */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool cli_is_yes(const char *text)
{
    static const char *const words[] = {"1", "true", "yes", "on"};
    for (int i = 0; text && i < 4; i++)
        if (strcasecmp(text, words[i]) == 0) return true;
    return false;
}

bool cli_is_debug(const cli_call *call)
{
    const char *level = cli_get(call, "log");
    const fth_instrument *instrument = call->command ? call->command->instrument : NULL;
    if (level) return *level == 'd';
    if (cli_is_yes(getenv("FATHOM_DEBUG"))) return true;
    return instrument && strcmp(instrument->name, "focus") == 0 &&
           cli_is_yes(getenv("MSEQ_YX1_DEBUG"));
}

/* ---- lines ---- */

static void line(const char *fmt, ...) FTH_PRINTF(1, 2);
static void line(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

static void show_cuda(const doctor_report *r, bool usable)
{
    const char *visible = doctor_variable(r, "CUDA_VISIBLE_DEVICES");
    char driver[100] = "", needs[40] = "";
    if (r->api.version)
        snprintf(driver, sizeof driver, " (driver %s supports CUDA %d.%d", r->cuda_driver,
                 r->api.version / 1000, r->api.version / 10 % 100);
    if (driver[0] && r->backend.driver_needed)
        snprintf(needs, sizeof needs, "; %d.%d is needed", r->backend.driver_needed / 1000,
                 r->backend.driver_needed / 10 % 100);
    line("CUDA available: %s%s%s%s", usable ? "yes" : "no", driver, needs, driver[0] ? ")" : "");
    for (int i = 0; !usable && i < r->n_faults; i++)
        if (strcmp(r->fault[i].about, "cuda") == 0)
            line("  %s To do: %s.", r->fault[i].text, r->fault[i].remedy);
    line("CUDA device count: %d   CUDA_VISIBLE_DEVICES: %s", r->api.n,
         visible ? (*visible ? visible : "empty") : "unset");
}

static void show_card(const doctor_report *r, int i)
{
    char total[32], more[300] = "", units[24] = "";
    const fth_gpu *g = doctor_gpu(r, i);
    if (r->api.card[i].units > 0) snprintf(units, sizeof units, " %d SM,", r->api.card[i].units);
    if (g) {
        char left[32], bus[32] = "";
        if (g->pcie_generation)
            snprintf(bus, sizeof bus, ", PCIe gen%d x%d", g->pcie_generation, g->pcie_lanes);
        snprintf(more, sizeof more, ", %s free%s, UUID %s",
                 fth_mem_format_size(g->free_bytes, left, sizeof left), bus, g->uuid);
    }
    line("GPU %d: %s, cc %d.%d,%s %s total%s", i, r->api.card[i].name,
         r->api.card[i].capability / 10, r->api.card[i].capability % 10, units,
         fth_mem_format_size(r->api.card[i].total_bytes, total, sizeof total), more);
}

static void show_context(fth_context *ctx)
{
    char host[32], device[32] = "-";
    fth_mem_stats stats;
    line("Selected device: %s  (reason: %s)", fth_context_device(ctx),
         fth_context_device_reason(ctx));
    fth_mem_get_stats(fth_context_mem(ctx), &stats);
    fth_mem_format_size(stats.budget_bytes, host, sizeof host);
    if (fth_context_device_mem(ctx)) {
        fth_mem_get_stats(fth_context_device_mem(ctx), &stats);
        fth_mem_format_size(stats.budget_bytes, device, sizeof device);
    }
    line("workers: %d compute", fth_context_threads(ctx));
    line("budget: host %s, device %s", host, device);
}

void cli_entry(const cli_call *call, fth_context *ctx)
{
    static doctor_report report;
    static const char rule[] = "============================================================";
    if (!cli_is_debug(call)) return;
    const cli_probes *probes = call->probes ? call->probes : &cli_machine;
    const bool gpu = ctx && strcmp(fth_context_device(ctx), "cpu") != 0;
    doctor_report *r = &report;
    memset(r, 0, sizeof *r);
    r->asked = cli_get(call, "device");
    doctor_look_cards(probes, r, !gpu); /* a card that is in use was opened already */
    const bool usable = gpu || r->backend.opened;
    if (!usable) doctor_judge_cuda(r, r->backend.table ? r->backend.refusal : r->backend.why);
    line("%s", rule);
    line("DEVICE DIAGNOSTICS - %s", call->command->instrument->name);
    show_cuda(r, usable);
    if (ctx) show_context(ctx);
    for (int i = 0; i < r->api.n; i++) show_card(r, i);
    line("%s", rule);
}
