/* report.c - three numbers to hold against the plan, measured round a run.
 *
 * The growth of the process is its largest resident size during the run less that before it. Pages
 * of the caller's own memory (inputs and results in place, the ring of a trace) that became
 * resident meanwhile are taken out: they are foreign, counted against the budget elsewhere.
 */
#include "base/checked.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/huge.h"
#include "mem/inject.h"
#include "run/device.h"
#include "run/run.h"
#include "run/stage.h"
#include "trace/record.h"

#include <string.h>

static uint64_t touched(const fth_desc *d, const void *data)
{
    return fth_mem_touched(data, (uint64_t)fth_desc_count(d) * (uint64_t)fth_dtype_size(d->dtype));
}

/* Two inputs over the same memory count once. */
static bool seen_before(const fth_graph *g, int64_t input)
{
    for (int64_t i = 0; i < input; i++)
        if (g->input[i].source.data == g->input[input].source.data) return true;
    return false;
}

static uint64_t foreign_pages(const fth__runner *r)
{
    const fth_plan *p = r->p;
    const fth_graph *g = p->graph;
    uint64_t bytes = fth__trace_touched(p->ctx->trace);
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (g->input[i].source.data && !seen_before(g, i))
            bytes += touched(&g->input[i].desc, g->input[i].source.data);
    for (int i = 0; r->sinks && i < p->n_outs; i++)
        if (r->sinks[i].data && !fth__plan_is_assign(p, i))
            bytes += touched(fth__val_desc(fth__val_at(g, p->out_value[i])), r->sinks[i].data);
    return bytes;
}

/* What others could take, as the driver counts, and what we keep for later. */
uint64_t fth__report_free(const fth_plan *p)
{
    fth_mem_system system;
    fth_mem_stats stats;
    p->ctx->backend->device->get_memory(p->ctx->gpu, &system);
    fth_mem_get_stats(p->pool, &stats);
    const uint64_t bytes = system.free_now(system.self);
    return bytes > 0 ? bytes + stats.cached_bytes : 0;
}

/* Which of the three took the time that the other two could not hide. */
static const char *bound_by(const fth__runner *r, const fth_run_report *out)
{
    if (out->device_seconds >= 0.5 * out->seconds && out->device_seconds >= out->io_seconds)
        return "kernels";
    return r->io_wait >= 0.5 * (out->seconds - out->device_seconds) ? "reading and copying"
                                                                    : "launching";
}

/* Drivers give memory in steps. */
static bool is_kept(const fth_run_report *out)
{
    const uint64_t slack = (uint64_t)4 << 20; /* a page of 2 MiB at each end */
    return out->ledger_bytes == out->planned_bytes &&
           out->growth_bytes <= out->planned_bytes + slack;
}

static void report_device(fth__runner *r, fth_run_report *out)
{
    out->on_device = true;
    out->device_seconds = out->kernel_seconds = fth__device_seconds(r);
    if (r->stage) out->copy_seconds = fth__stage_seconds(r->stage);
    out->bound_by = bound_by(r, out);
    out->growth_bytes = r->grown;
    out->kept = is_kept(out);
}

/* The pages of the arena that are not in the ledger's cache are touched first by this run. */
static double predicted(const fth__runner *r)
{
    const fth_plan *p = r->p;
    if (p->peak <= r->cached0) return p->seconds;
    return p->seconds + p->touch_seconds * ((double)(p->peak - r->cached0) / (double)p->peak);
}

void fth__report_begin(fth__runner *r)
{
    fth_mem_stats stats;
    fth_mem_get_stats(r->p->pool, &stats);
    r->cached0 = stats.cached_bytes;
    if (r->p->device_memory) return;
    r->foreign0 = foreign_pages(r);
    r->growth_known = fth__mem_process_peak_reset();
    r->resident0 = fth__mem_process_bytes();
}

void fth__report_end(fth__runner *r, fth_run_report *out)
{
    const fth_plan *p = r->p;
    const double seconds = fth__clock_seconds() - r->t_start; /* asking for pages takes time too */
    fth_mem_stats stats;
    fth_mem_get_stats(p->pool, &stats);
    const fth__io_times io = fth__io_get_times(r->io);
    *out = (fth_run_report){
        .planned_bytes = p->peak,
        .ledger_bytes = stats.peak_bytes - r->used0,
        .touched_bytes =
            r->arena != r->nothing && !p->device_memory ? fth_mem_touched(r->arena, p->peak) : 0,
        .seconds = seconds,
        .io_seconds = io.busy,
        .read_seconds = io.read,
        .write_seconds = io.write,
        .kernel_seconds = r->kernels,
        .io_threads = io.threads,
        .read_bytes = r->read_bytes,
        .written_bytes = r->written_bytes,
        .growth_known = r->growth_known,
        .predicted_seconds = predicted(r),
    };
    out->compute_seconds = seconds - r->io_wait;
    if (p->device_memory) {
        report_device(r, out);
        return;
    }
    const fth__allowance allow = fth__plan_allowance(p, r->sinks);
    out->allowance_bytes = allow.bytes + allow.billed;
    const uint64_t peak = fth__mem_process_peak(), foreign = foreign_pages(r),
                   theirs = r->resident0 + (foreign > r->foreign0 ? foreign - r->foreign0 : 0);
    if (r->growth_known && peak > theirs) out->growth_bytes = peak - theirs;
    out->kept = out->ledger_bytes == out->planned_bytes &&
                out->touched_bytes <= fth__huge_up(out->planned_bytes) &&
                out->growth_bytes <= fth__huge_up(out->planned_bytes) + out->allowance_bytes;
}

static void format_device(const fth_run_report *r, fth__text *t)
{
    char a[24], b[24];
    if (!r->growth_known)
        fth__text_add(t, "growth  unknown: the driver does not tell\n");
    else
        fth__text_add(t, "growth  %s on the device, as its driver counts%s\n",
                      fth_mem_format_size(r->growth_bytes, a, sizeof a),
                      r->kept ? "" : ": NOT AS PLANNED");
    fth__text_add(t, "device  %.3f s of kernels in %.3f s (%.0f %%), bound by %s\n",
                  r->device_seconds, r->seconds,
                  r->seconds > 0.0 ? 100.0 * r->device_seconds / r->seconds : 0.0, r->bound_by);
    fth__text_add(
        t, "time    %.3f s, predicted %.3f s; %.3f s waiting for data; read %s, written %s\n",
        r->seconds, r->predicted_seconds, r->seconds - r->compute_seconds,
        fth_mem_format_size(r->read_bytes, a, sizeof a),
        fth_mem_format_size(r->written_bytes, b, sizeof b));
}

size_t fth_run_report_format(const fth_run_report *r, char *text, size_t bytes)
{
    char a[24], b[24], c[24];
    fth__text t;
    fth__text_init(&t, text, bytes);
    const uint64_t pages = fth__huge_up(r->planned_bytes);
    fth__text_add(&t, "ledger  %llu bytes, planned %llu%s\n", (unsigned long long)r->ledger_bytes,
                  (unsigned long long)r->planned_bytes,
                  r->ledger_bytes == r->planned_bytes ? "" : ": NOT AS PLANNED");
    if (r->on_device) {
        format_device(r, &t);
        return t.wanted;
    }
    fth__text_add(&t, "pages   %s touched of at most %s%s\n",
                  fth_mem_format_size(r->touched_bytes, a, sizeof a),
                  fth_mem_format_size(pages, b, sizeof b),
                  r->touched_bytes <= pages ? "" : ": TOO MANY");
    if (!r->growth_known)
        fth__text_add(&t, "growth  unknown: the system does not tell\n");
    else
        fth__text_add(&t, "growth  %s of at most %s, %s of it for libraries%s\n",
                      fth_mem_format_size(r->growth_bytes, a, sizeof a),
                      fth_mem_format_size(pages + r->allowance_bytes, b, sizeof b),
                      fth_mem_format_size(r->allowance_bytes, c, sizeof c),
                      r->growth_bytes <= pages + r->allowance_bytes ? "" : ": TOO MUCH");
    fth__text_add(
        &t, "time    %.3f s, predicted %.3f s; %.3f s waiting for data; read %s, written %s\n",
        r->seconds, r->predicted_seconds, r->seconds - r->compute_seconds,
        fth_mem_format_size(r->read_bytes, a, sizeof a),
        fth_mem_format_size(r->written_bytes, b, sizeof b));
    return t.wanted;
}
