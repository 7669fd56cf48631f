/* json.c - a trace as Chrome trace events.
 *
 * Times are microseconds with three decimals, so nanoseconds survive. Two
 * sweeps: the first measures events from the newest back to find the oldest
 * one that still fits into the size allowed, the second writes forward.
 */
#include "base/json.h"
#include "trace/record.h"

#include <string.h>

enum {
    EVENT_BYTES = 2048
}; /* the longest event: 127 characters, each escaped to six, and numbers */

static void add_number(fth__text *t, const char *key, double v, int digits)
{
    fth__text_add(t, "\"%s\":", key);
    fth__json_number(t, v, digits);
}

static void add_time(fth__text *t, const char *key, int64_t ns)
{
    const bool negative = ns < 0;
    const uint64_t v = negative ? 0 - (uint64_t)ns : (uint64_t)ns;
    fth__text_add(t, ",\"%s\":%s%llu.%03llu", key, negative ? "-" : "",
                  (unsigned long long)(v / 1000), (unsigned long long)(v % 1000));
}

static void add_launch(fth__text *t, const fth_trace_launch *l)
{
    const uint32_t *g = l->grid, *b = l->block;
    if (b[0] > 0)
        fth__text_add(t,
                      "\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"registers\":%u,"
                      "\"shared bytes\":%u,",
                      g[0], g[1], g[2], b[0], b[1], b[2], l->registers, l->shared_bytes);
    fth__text_add(t, "\"stream\":%u", l->stream);
}

static void add_span(fth__text *t, const fth__trace_record *r)
{
    const int64_t took_ns = r->end_ns - r->start_ns;
    const double ns = took_ns > 0 ? (double)took_ns : 1.0;
    fth__text_add(t, ",\"ph\":\"X\"");
    add_time(t, "dur", took_ns);
    fth__text_add(t, ",\"args\":{");
    const char *comma = "";
    if (r->n_chunks > 0 || r->chunk > 0) {
        fth__text_add(t, "\"chunk\":%lld,\"chunks\":%lld", (long long)r->chunk,
                      (long long)r->n_chunks);
        comma = ",";
    }
    if (r->bytes) {
        const double rate = (double)r->bytes / ns; /* bytes per ns are GB per second */
        fth__text_add(t, "%s\"bytes\":%llu,", comma, (unsigned long long)r->bytes);
        add_number(t, "GB/s", rate, 6);
        if (r->peak_bytes_per_s > 0) {
            fth__text_add(t, ",");
            add_number(t, "% of bandwidth", 1e11 * rate / r->peak_bytes_per_s, 6);
        }
        comma = ",";
    }
    if (r->value > 0) { /* not for zero, and not for NaN */
        fth__text_add(t, "%s", comma);
        add_number(t, "flops", r->value, 17);
        fth__text_add(t, ",");
        add_number(t, "GFLOP/s", r->value / ns, 6);
        comma = ",";
    }
    if (r->has_launch) {
        fth__text_add(t, "%s", comma);
        add_launch(t, &r->launch);
        comma = ",";
    }
    if (r->file[0]) {
        char site[FTH__TRACE_NAME + 16];
        fth__text s;
        fth__text_init(&s, site, sizeof site);
        fth__text_add(&s, "%s:%d", r->file, (int)r->line);
        fth__text_add(t, "%s\"at\":", comma);
        fth__json_string(t, site);
    }
    fth__text_add(t, "}");
}

static void add_event(fth__text *t, const fth__trace_record *r)
{
    fth__text_add(t, "{\"name\":");
    fth__json_string(t, r->name);
    fth__text_add(t, ",\"cat\":");
    fth__json_string(t, r->category[0] ? r->category : "fathom");
    const bool on_track = r->kind == FTH__SPAN || r->kind == FTH__INSTANT;
    fth__text_add(t, ",\"pid\":1,\"tid\":%d", on_track ? (int)r->track + 1 : 0);
    add_time(t, "ts", r->start_ns);
    switch (r->kind) {
    case FTH__SPAN: add_span(t, r); break;
    case FTH__MEMORY:
        fth__text_add(t, ",\"ph\":\"C\",\"args\":{\"planned\":%llu,\"actual\":%llu}",
                      (unsigned long long)r->bytes, (unsigned long long)r->actual_bytes);
        break;
    case FTH__COUNTER:
        fth__text_add(t, ",\"ph\":\"C\",\"args\":{");
        add_number(t, "value", r->value, 17);
        fth__text_add(t, "}");
        break;
    case FTH__INSTANT: fth__text_add(t, ",\"ph\":\"i\",\"s\":\"t\""); break;
    }
    fth__text_add(t, "}");
}

/* Write the text and empty it. */
static bool flush(fth__text *t, fth__trace_sink sink)
{
    const bool ok = sink.put(sink.user, t->data, t->used);
    fth__text_init(t, t->data, t->bytes);
    return ok;
}

static const fth__trace_record *event(const fth_trace *trace, uint64_t i)
{
    return &trace->ring[i % trace->capacity];
}

/* The first event of the file: as far back as the ring and the size allow. */
static uint64_t first_that_fits(const fth_trace *trace)
{
    enum { FRAME = 1024, PER_TRACK = 6 * FTH__TRACE_NAME + 96 };
    char buffer[EVENT_BYTES];
    const uint64_t oldest =
        trace->recorded > trace->capacity ? trace->recorded - trace->capacity : 0;
    uint64_t room = trace->max_bytes - FRAME;
    for (int k = 0; k < trace->n_tracks; k++) room -= room < PER_TRACK ? room : PER_TRACK;
    uint64_t i = trace->recorded;
    while (i > oldest) {
        fth__text t;
        fth__text_init(&t, buffer, sizeof buffer);
        add_event(&t, event(trace, i - 1));
        if (t.used + 2 > room) break; /* ",\n" */
        room -= t.used + 2;
        i--;
    }
    return i;
}

bool fth__trace_to_json(const fth_trace *trace, fth__trace_sink sink)
{
    char buffer[EVENT_BYTES];
    fth__text t;
    fth__text_init(&t, buffer, sizeof buffer);
    const uint64_t first = first_that_fits(trace);
    const unsigned long long dropped = (unsigned long long)first;
    fth__text_add(&t,
                  "{\"schemaVersion\":1,\"deviceProperties\":[],\"displayTimeUnit\":\"ms\","
                  "\"baseTimeNanoseconds\":%lld,\"traceName\":\"fathom\","
                  "\"otherData\":{\"version\":\"%s\",\"dropped\":%llu},\n",
                  (long long)trace->base_ns, fth_version(), dropped);
    fth__text_add(&t,
                  "\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,"
                  "\"args\":{\"name\":\"fathom\"}}");
    if (trace->note[0]) {
        fth__text_add(&t, ",\n{\"name\":");
        fth__json_string(&t, trace->note);
        fth__text_add(&t, ",\"ph\":\"i\",\"s\":\"g\",\"pid\":1,\"tid\":0");
        add_time(&t, "ts", trace->note_ns);
        fth__text_add(&t, "}");
    }
    if (first > 0 && first < trace->recorded) {
        /* Also where the reader looks: a mark at the left end of the timeline. */
        fth__text_add(&t,
                      ",\n{\"name\":\"%llu older events were dropped\",\"ph\":\"i\",\"s\":\"g\","
                      "\"pid\":1,\"tid\":0",
                      dropped);
        add_time(&t, "ts", event(trace, first)->start_ns);
        fth__text_add(&t, "}");
    }
    bool ok = flush(&t, sink);
    for (int k = 0; ok && k < trace->n_tracks; k++) {
        fth__text_add(
            &t,
            ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":",
            k + 1);
        fth__json_string(&t, trace->track[k]);
        fth__text_add(&t, "}}");
        ok = flush(&t, sink);
    }
    for (uint64_t i = first; ok && i < trace->recorded; i++) {
        fth__text_add(&t, ",\n");
        add_event(&t, event(trace, i));
        ok = flush(&t, sink);
    }
    fth__text_add(&t, "\n]}\n");
    return ok && flush(&t, sink);
}
