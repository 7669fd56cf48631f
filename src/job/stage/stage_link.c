/* stage_link.c - the output of a running stage: progress, numbers, text.
 *
 * Progress leaves as lines of JSON, at most ten a second; the last one is kept and always sent.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "graph/context.h"
#include "job/ledger/view.h"
#include "job/lock/lock.h"
#include "job/stage/stage.h"
#include "mem/inject.h"
#include <fathom/json.h>

#include <math.h>
#include <string.h>

enum { LINE = 4096 };              /* as long as the runner's buffer for one (FTH__LINE_BYTES) */
static const double apart_s = 0.1; /* between two lines of progress: faster than anybody reads */

static fth__stage_link *link_of(const fth_stage_call *call)
{
    return call ? call->link : NULL;
}

/* ---- lines of JSON ---- */

static void begin_line(fth_json_writer *w, char *line, const fth__stage_link *link,
                       const char *event)
{
    fth_json_begin_fixed(w, line, LINE);
    fth_json_open(w, NULL, '{');
    fth_json_seconds(w, "t", fth__wall_seconds());
    if (event) fth_json_text(w, "event", event);
    fth_json_text(w, "job", link->call.job);
    fth_json_text(w, "stage", link->opt->stage->name);
}

/* A truncated line would be invalid JSON: drop it. */
static void send_line(fth_json_writer *w, const fth__stage_link *link)
{
    fth_json_close(w);
    if (link->opt->progress && fth_json_end(w, NULL) == FTH_OK)
        link->opt->progress(link->opt->user, w->data);
}

/* Names that the line has already. */
static bool is_taken(const char *name)
{
    static const char *const taken[] = {"t",    "job",   "stage", "iter",  "total",
                                        "what", "eta_s", "bytes", "event", "status"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(name, taken[i]) == 0) return true;
    return false;
}

static double remaining(const fth__stage_link *link, const fth_stage_progress *p)
{
    if (p->remaining_s > 0) return p->remaining_s;
    if (p->done <= 0 || p->total <= p->done) return 0;
    const double elapsed = fth__clock_seconds() - link->clock0;
    return elapsed * (double)(p->total - p->done) / (double)p->done;
}

static void send_progress(fth__stage_link *link)
{
    char line[LINE];
    fth_json_writer w;
    const fth_stage_progress *p = &link->last;
    FTH_ASSERT(link->waiting);
    begin_line(&w, line, link, NULL);
    fth_json_int(&w, "iter", p->done);
    fth_json_int(&w, "total", p->total);
    if (link->what[0]) fth_json_text(&w, "what", link->what);
    for (int i = 0; i < FTH_STAGE_NUMBERS && p->number[i].name; i++)
        if (!is_taken(p->number[i].name) && isfinite(p->number[i].value))
            fth_json_real(&w, p->number[i].name, p->number[i].value);
    fth_json_seconds(&w, "eta_s", remaining(link, p));
    fth_json_u64(&w, "bytes", fth__mem_process_bytes());
    send_line(&w, link);
    link->waiting = false;
}

void fth__stage_send_last(fth__stage_link *link)
{
    pthread_mutex_lock(&link->lock);
    if (link->waiting) send_progress(link);
    pthread_mutex_unlock(&link->lock);
}

void fth__stage_send_plan(fth__stage_link *link)
{
    char line[LINE];
    fth_json_writer w;
    const fth_stage_plan *p = &link->result.plan;
    begin_line(&w, line, link, "plan");
    fth_json_u64(&w, "bytes", p->host_bytes);
    fth_json_u64(&w, "device_bytes", p->device_bytes);
    fth_json_real(&w, "seconds", p->seconds);
    fth_json_text(&w, "device", link->result.device);
    fth_json_text(&w, "text", p->text);
    fth_json_u64(&w, "base_bytes", link->resident0);
    send_line(&w, link);
}

void fth__stage_send_end(fth__stage_link *link, fth_status status)
{
    char line[LINE];
    fth_json_writer w;
    const fth_stage_result *r = &link->result;
    begin_line(&w, line, link, "end");
    fth_json_text(&w, "status", fth_status_get_info(status)->code);
    fth_json_real(&w, "seconds", r->seconds);
    fth_json_u64(&w, "ledger_bytes", r->ledger_bytes);
    fth_json_u64(&w, "growth_bytes", r->growth_bytes);
    fth_json_u64(&w, "read_bytes", r->read_bytes);
    fth_json_u64(&w, "written_bytes", r->written_bytes);
    fth_json_real(&w, "io_seconds", r->io_seconds);
    fth_json_real(&w, "compute_seconds", r->compute_seconds);
    fth_json_real(&w, "device_seconds", r->device_seconds);
    fth_json_text(&w, "bound_by", r->bound_by);
    send_line(&w, link);
}

/* ---- what stages call ---- */

/* Names are copied: the line may go out when they are gone. */
static void keep(fth__stage_link *link, const fth_stage_progress *p)
{
    link->last = *p;
    fth__str_copy(link->what, sizeof link->what, p->what);
    for (int i = 0; i < FTH_STAGE_NUMBERS && p->number[i].name; i++) {
        fth__str_copy(link->name[i], FTH__STAGE_NAME, p->number[i].name);
        link->last.number[i].name = link->name[i];
    }
    link->waiting = true;
}

bool fth_stage_report(const fth_stage_call *call, const fth_stage_progress *progress)
{
    fth__stage_link *link = link_of(call);
    if (!link) return true;
    if (progress) {
        pthread_mutex_lock(&link->lock);
        keep(link, progress);
        const double now = fth__clock_seconds();
        if (now - link->sent_at >= apart_s) {
            link->sent_at = now;
            send_progress(link);
        }
        pthread_mutex_unlock(&link->lock);
    }
    fth__stage_point(link, "mid_run");
    return !fth_stage_is_cancelled(call);
}

bool fth_stage_run_progress(void *call, const fth_progress *progress)
{
    fth_stage_progress p = {.done = (int64_t)(1000.0 * progress->fraction),
                            .total = 1000,
                            .remaining_s = progress->remaining_s,
                            .what = progress->what};
    return fth_stage_report(call, &p);
}

bool fth_stage_is_cancelled(const fth_stage_call *call)
{
    const fth__stage_link *link = link_of(call);
    if (!link || !link->opt->stop) return false;
    int64_t asked = link->opt->stop(link->opt->user);
    /* All ranks stop at the same place; those inside a run agree at its end. */
    if (call->context && fth__context_may_meet(call->context) &&
        fth_ranks_agree(fth_context_ranks(call->context), &asked, NULL) != FTH_OK)
        return true;
    return asked != 0;
}

static void take_most(uint64_t *most, uint64_t v)
{
    if (v > *most) *most = v;
}

void fth_stage_account(const fth_stage_call *call, const fth_run_report *r)
{
    fth__stage_link *link = link_of(call);
    if (!link || !r) return;
    pthread_mutex_lock(&link->lock);
    fth_run_report *m = &link->most;
    /* Where a ledger was not as planned, that run is the one to show. */
    if (link->runs == 0 ||
        (m->ledger_bytes == m->planned_bytes &&
         (r->ledger_bytes != r->planned_bytes || r->planned_bytes > m->planned_bytes))) {
        m->planned_bytes = r->planned_bytes;
        m->ledger_bytes = r->ledger_bytes;
    }
    take_most(&m->touched_bytes, r->touched_bytes);
    take_most(&m->growth_bytes, r->growth_bytes);
    take_most(&m->allowance_bytes, r->allowance_bytes);
    m->growth_known = r->growth_known && (link->runs == 0 || m->growth_known);
    m->kept = r->kept && (link->runs == 0 || m->kept);
    m->seconds += r->seconds;
    m->io_seconds += r->io_seconds;
    m->compute_seconds += r->compute_seconds;
    m->device_seconds += r->device_seconds;
    m->read_seconds += r->read_seconds;
    m->write_seconds += r->write_seconds;
    m->copy_seconds += r->copy_seconds;
    m->kernel_seconds += r->kernel_seconds;
    if (r->io_threads > m->io_threads) m->io_threads = r->io_threads;
    m->on_device |= r->on_device;
    if (r->bound_by) m->bound_by = r->bound_by;
    m->read_bytes += r->read_bytes;
    m->written_bytes += r->written_bytes;
    link->runs++;
    take_most(&link->process_peak, fth__mem_process_peak()); /* the next run starts it again */
    pthread_mutex_unlock(&link->lock);
}

double fth_stage_guess(const fth_stage_call *call, const fth_plan *plan, double runs)
{
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    (void)call;
    return runs * info.seconds;
}

fth_status fth_stage_wrote(const fth_stage_call *call, fth_file_kind kind, const char *path,
                           const char *title, fth_err *err)
{
    fth__stage_link *link = link_of(call);
    if (!link) return FTH_OK;
    if (kind == FTH_FILE_INPUT)
        return FTH_FAIL(err, FTH_E_USAGE, "%s was written: it is no input", path);
    pthread_mutex_lock(&link->lock);
    const fth_status s = fth_file_list_add(&link->list, kind, path, title, err);
    pthread_mutex_unlock(&link->lock);
    return s;
}

void fth_stage_say(const fth_stage_call *call, const char *fmt, ...)
{
    fth__stage_link *link = link_of(call);
    if (!link) return;
    char text[1024], line[LINE];
    fth__text t;
    fth_json_writer w;
    va_list args;
    va_start(args, fmt);
    fth__text_init(&t, text, sizeof text);
    fth__text_addv(&t, fmt, args);
    fth__text_mark_cut(&t);
    va_end(args);
    pthread_mutex_lock(&link->lock);
    if (link->opt->say) link->opt->say(link->opt->user, text);
    begin_line(&w, line, link, "say");
    fth_json_text(&w, "text", text);
    send_line(&w, link);
    pthread_mutex_unlock(&link->lock);
}

void fth__stage_point(const fth__stage_link *link, const char *name)
{
    if (link->opt->point) link->opt->point(link->opt->user, name);
}

void fth_stage_point(const fth_stage_call *call, const char *name)
{
    const fth__stage_link *link = link_of(call);
    if (link) fth__stage_point(link, name);
}

const char *fth_stage_flag_value(const fth_stage_call *call, const char *name)
{
    const size_t n = strlen(name);
    for (const char *const *f = call->flags; f && *f; f++)
        if (strncmp(*f, name, n) == 0 && ((*f)[n] == '\0' || (*f)[n] == '='))
            return *f + n + ((*f)[n] == '=');
    return NULL;
}

bool fth_stage_flag(const fth_stage_call *call, const char *name)
{
    return fth_stage_flag_value(call, name) != NULL;
}

bool fth_stage_may_resume(const fth_stage_call *call)
{
    const fth__stage_link *link = link_of(call);
    return call->stage->keeps && !fth_stage_flag(call, "force") && !(link && link->fresh);
}

/* ---- the end ---- */

/* "compute 93 %, storage 7 %", the largest first; parts under half a percent are left out. */
static void format_bound(const fth__stage_link *link, char *text, size_t bytes)
{
    const fth_run_report *m = &link->most;
    const double total = link->result.seconds > m->seconds ? link->result.seconds : m->seconds;
    const double busy = m->on_device ? m->device_seconds : m->compute_seconds;
    struct {
        const char *name;
        double seconds;
    } part[3] = {{m->on_device ? "kernels" : "compute", busy},
                 {m->on_device ? "copies and storage" : "storage", m->seconds - busy},
                 {"outside the engine", total - m->seconds}};
    fth__text t;
    fth__text_init(&t, text, bytes);
    for (int done = 0; done < 3 && total > 0; done++) {
        int best = 0;
        for (int i = 1; i < 3; i++)
            if (part[i].seconds > part[best].seconds) best = i;
        const double percent = 100.0 * part[best].seconds / total;
        if (percent < 0.5) break;
        fth__text_add(&t, "%s%s %.0f %%", done > 0 ? ", " : "", part[best].name, percent);
        part[best].seconds = -1;
    }
}

void fth__stage_measure(fth__stage_link *link)
{
    fth_stage_result *r = &link->result;
    r->seconds = fth__clock_seconds() - link->clock0;
    take_most(&link->process_peak, fth__mem_process_peak());
    if (link->process_peak > link->resident0)
        r->growth_bytes = link->process_peak - link->resident0;
    fth_mem_stats held;
    fth_mem_get_stats(link->list.mem, &held);
    r->held_bytes = held.peak_bytes;
    r->ledger_bytes = link->most.ledger_bytes;
    r->read_bytes = link->most.read_bytes;
    r->written_bytes = link->most.written_bytes;
    r->io_seconds = link->most.io_seconds;
    r->compute_seconds = link->most.compute_seconds;
    r->device_seconds = link->most.device_seconds;
    format_bound(link, r->bound_by, sizeof r->bound_by);
}

void fth__stage_say_end(fth__stage_link *link)
{
    const fth_stage_result *r = &link->result;
    char text[1024], a[24], b[24];
    fth_stage_say(&link->call, "device  %s (%s): %lld run%s, %.3f s computing of %.3f s; %s",
                  r->device, fth_context_device_reason(link->call.context), (long long)link->runs,
                  link->runs == 1 ? "" : "s", r->compute_seconds, r->seconds,
                  r->bound_by[0] ? r->bound_by : "nothing to do");
    if (link->runs > 0) {
        fth_run_report_format(&link->most, text, sizeof text);
        for (char *line = text, *end; *line; line = end) {
            end = line + strcspn(line, "\n");
            if (*end) *end++ = '\0';
            fth_stage_say(&link->call, "%s", line);
        }
    }
    fth_stage_say(&link->call, "process %s grown, %s planned",
                  fth_mem_format_size(r->growth_bytes, a, sizeof a),
                  fth_mem_format_size(r->plan.host_bytes, b, sizeof b));
}
