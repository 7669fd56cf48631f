/* watch.c - from the events of a device to spans in the timeline.
 *
 * A device counts time by a clock of its own. Both clocks are read together when watching begins
 * and at each reading; the straight line through the first and the last pair takes one to the
 * other.
 */
#include "run/watch.h"

#include "base/assert.h"
#include "base/str.h"
#include "mem/heap.h"
#include "trace/record.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum {
    ROOM = 8 << 20, /* bytes of events that were not read yet: 40,000 kernels or so */
    STREAMS = 16,   /* rows of a timeline; others share the last */
    TRIES = 5       /* of reading both clocks close together */
};

struct fth__watch {
    pthread_mutex_t lock; /* runs in several threads end when they end */
    void *memory;
    fth__watch_pair first, last;
    int n_streams;
    uint32_t stream[STREAMS];
    int track[STREAMS];
    uint64_t reported, lost; /* events without room, of which so many were reported */
    const fth_context *ctx;
};

/* The try between whose two looks at the host's clock the least time passed. */
static fth__watch_pair read_clocks(const fth_context *ctx)
{
    const fth_device_table *table = ctx->backend->device;
    int64_t least = INT64_MAX;
    fth__watch_pair best = {0, 0};
    for (int i = 0; i < TRIES; i++) {
        const int64_t before = fth_trace_now(ctx->trace), there = table->watch_now(ctx->gpu),
                      after = fth_trace_now(ctx->trace);
        if (after - before >= least) continue;
        least = after - before;
        best = (fth__watch_pair){before + (after - before) / 2, there};
    }
    return best;
}

/* Both clocks count nanoseconds; a line that says otherwise by more than a thousandth was drawn
 * through pairs too close to each other. */
int64_t fth__watch_time(fth__watch_pair first, fth__watch_pair last, int64_t device)
{
    const double there = (double)(last.device - first.device),
                 here = (double)(last.host - first.host);
    const double rate = there > 0 ? here / there : 0.0;
    if (rate < 0.999 || rate > 1.001) return last.host + (device - last.device);
    return first.host + llround(rate * (double)(device - first.device));
}

static int64_t host_time(const fth__watch *w, int64_t device)
{
    return fth__watch_time(w->first, w->last, device);
}

static int track_of(fth__watch *w, uint32_t stream)
{
    char name[64];
    for (int i = 0; i < w->n_streams; i++)
        if (w->stream[i] == stream) return w->track[i];
    FTH_ASSERT(w->n_streams <= STREAMS);
    if (w->n_streams == STREAMS) return w->track[STREAMS - 1];
    snprintf(name, sizeof name, "%s stream %u", w->ctx->device, stream);
    w->stream[w->n_streams] = stream;
    w->track[w->n_streams] = fth_trace_track(w->ctx->trace, name);
    return w->track[w->n_streams++];
}

static void take(void *arg, const fth_event *e)
{
    fth__watch *w = arg;
    char name[FTH__TRACE_NAME];
    fth__watch_name(e->name, name, sizeof name);
    fth_trace_add_span(w->ctx->trace, &(fth_trace_span){.name = name,
                                                        .category = e->category,
                                                        .track = track_of(w, e->launch.stream),
                                                        .start_ns = host_time(w, e->start_ns),
                                                        .end_ns = host_time(w, e->end_ns),
                                                        .bytes = e->bytes,
                                                        .launch = &e->launch});
}

/* What a reader of the timeline would miss without knowing. */
static void report_lost(fth__watch *w)
{
    char text[64];
    if (w->lost == w->reported) return;
    snprintf(text, sizeof text, "%llu kernels and copies are not shown",
             (unsigned long long)(w->lost - w->reported));
    fth_trace_add_instant(w->ctx->trace, fth_trace_track(w->ctx->trace, w->ctx->device), text,
                          w->last.host);
    fth_log_line(&w->ctx->log, FTH_LOG_WARN,
                 "notice: %s: there was no room for what the profiler of %s saw between two "
                 "readings (%d MiB)",
                 text, w->ctx->device, ROOM >> 20);
    w->reported = w->lost;
}

void fth__watch_read(const fth_context *ctx, bool all)
{
    fth__watch *w = ctx->watch;
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->last = read_clocks(ctx);
    ctx->backend->device->watch_read(ctx->gpu, all, take, w, &w->lost);
    if (all) report_lost(w);
    pthread_mutex_unlock(&w->lock);
}

static fth_status start(fth_context *ctx, fth_err *err)
{
    const fth_device_table *table = ctx->backend->device;
    if (!table->watch)
        return FTH_FAIL(err, FTH_E_DEVICE, "%s does not tell kernels one by one", ctx->device);
    void *block;
    FTH_TRY(fth__heap_take(ctx->mem, 1, sizeof(fth__watch), &block, err));
    fth__watch *w = block;
    w->ctx = ctx;
    fth_status s =
        fth_mem_take(ctx->mem, FTH_MEM_ANY, ROOM, "events of a profiler", &w->memory, err);
    if (s == FTH_OK && pthread_mutex_init(&w->lock, NULL) != 0)
        s = FTH_FAIL(err, FTH_E_LIBRARY, "a mutex could not be created");
    else if (s == FTH_OK && (s = table->watch(ctx->gpu, w->memory, ROOM, err)) != FTH_OK)
        pthread_mutex_destroy(&w->lock);
    if (s != FTH_OK) {
        if (w->memory) fth_mem_release(ctx->mem, w->memory, NULL);
        fth__heap_free(ctx->mem, w);
        return s;
    }
    w->first = w->last = read_clocks(ctx);
    ctx->watch = w;
    return FTH_OK;
}

void fth__watch_begin(fth_context *ctx)
{
    fth_err err = {0};
    if (start(ctx, &err) == FTH_OK) return;
    fth__trace_note(ctx->trace, "kernels are not shown one by one: see the log");
    fth_log_line(&ctx->log, FTH_LOG_WARN, "notice: kernels are not shown one by one: %s%s%s",
                 err.text, err.hint[0] ? "; to do: " : "", err.hint);
}

void fth__watch_end(fth_context *ctx)
{
    fth__watch *w = ctx->watch;
    if (!w) return;
    fth__watch_read(ctx, true);
    ctx->backend->device->unwatch(ctx->gpu);
    ctx->watch = NULL;
    pthread_mutex_destroy(&w->lock);
    fth_mem_release(ctx->mem, w->memory, NULL);
    fth__heap_free(ctx->mem, w);
}

/* ---- names ---- */

/* A length and so many characters; NULL: there is no such thing here, or it is cut. */
static const char *identifier(const char *s, const char *end, size_t *length)
{
    size_t n = 0;
    const char *p = s;
    while (p < end && *p >= '0' && *p <= '9' && n < 10000) n = 10 * n + (size_t)(*p++ - '0');
    if (p == s || n == 0 || n > (size_t)(end - p)) return NULL;
    *length = n;
    return p;
}

void fth__watch_name(const char *symbol, char *name, size_t bytes)
{
    size_t used = 0, n = 0;
    const char *p = symbol ? symbol : "", *const end = p + strlen(p);
    fth__str_copy(name, bytes, p);
    if (strncmp(p, "_Z", 2) != 0) return;
    p += 2;
    const bool nested = p < end && *p == 'N';
    p += nested;
    if (!nested && p < end && *p == 'L') p++; /* a static function */
    for (const char *word; (word = identifier(p, end, &n)); p = word + n) {
        const bool nameless = n >= 8 && strncmp(word, "_GLOBAL_", 8) == 0;
        if (nameless) continue;
        const int put =
            snprintf(name + used, bytes - used, "%s%.*s", used > 0 ? "::" : "", (int)n, word);
        used += put > 0 ? (size_t)put : 0;
        if (used >= bytes || !nested) return;
    }
}
