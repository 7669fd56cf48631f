/* json.c - a trace as Chrome trace events.
 *
 * Times are microseconds with three decimals, so nanoseconds survive. Two
 * sweeps: the first measures events from the newest back to find the oldest
 * one that still fits into the size allowed, the second writes forward.
 */
#include "base/assert.h"
#include "trace/record.h"

#include <fathom/json.h>

#include "base/str.h"

#include <string.h>
#include <unistd.h>

enum {
    EVENT_BYTES = 2048
}; /* the longest event: three names of up to 47 characters, each escaped to six, and numbers */

/* An event in a buffer. Viewers of timelines take only numbers for counters. */
static void begin_event(fth_json_writer *w, char *buffer, const char *name)
{
    fth_json_begin_fixed(w, buffer, EVENT_BYTES);
    w->nan = FTH_JSON_NAN_ZERO;
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "name", name);
}

static void put_time(fth_json_writer *w, const char *key, int64_t ns)
{
    fth_json_scaled(w, key, ns, 3);
}

static void put_rate(fth_json_writer *w, const char *key, double v)
{
    w->digits = 6;
    fth_json_real(w, key, v);
    w->digits = 17;
}

static void put_three(fth_json_writer *w, const char *key, const uint32_t *v)
{
    fth_json_open(w, key, '[');
    for (int i = 0; i < 3; i++) fth_json_int(w, NULL, v[i]);
    fth_json_close(w);
}

static void put_launch(fth_json_writer *w, const fth_trace_launch *l)
{
    if (l->block[0] > 0) {
        put_three(w, "grid", l->grid);
        put_three(w, "block", l->block);
        fth_json_int(w, "registers", l->registers);
        fth_json_int(w, "shared bytes", l->shared_bytes);
    }
    fth_json_int(w, "stream", l->stream);
}

static void put_span(fth_json_writer *w, const fth__trace_record *r)
{
    const int64_t took_ns = r->end_ns - r->start_ns;
    const double ns = took_ns > 0 ? (double)took_ns : 1.0;
    fth_json_text(w, "ph", "X");
    put_time(w, "dur", took_ns);
    fth_json_open(w, "args", '{');
    if (r->n_chunks > 0 || r->chunk > 0) {
        fth_json_int(w, "chunk", r->chunk);
        fth_json_int(w, "chunks", r->n_chunks);
    }
    if (r->bytes) {
        const double rate = (double)r->bytes / ns; /* bytes per ns are GB per second */
        fth_json_u64(w, "bytes", r->bytes);
        put_rate(w, "GB/s", rate);
        if (r->peak_bytes_per_s > 0)
            put_rate(w, "% of bandwidth", 1e11 * rate / r->peak_bytes_per_s);
    }
    if (r->value > 0) { /* not for zero, and not for NaN */
        fth_json_real(w, "flops", r->value);
        put_rate(w, "GFLOP/s", r->value / ns);
    }
    if (r->has_launch) put_launch(w, &r->launch);
    if (r->file[0]) {
        char site[FTH__TRACE_NAME + 16];
        fth__text s;
        fth__text_init(&s, site, sizeof site);
        fth__text_add(&s, "%s:%d", r->file, (int)r->line);
        fth_json_text(w, "at", site);
    }
    fth_json_close(w);
}

/* ---- processes: the program, and each device ---- */

/* Number of the device whose track it is, "cuda:0 stream 7"; -1: of the host. */
static int device_of(const char *track)
{
    const char *at = strchr(track, ':');
    if (strncmp(track, "cuda:", 5) != 0 || at[1] < '0' || at[1] > '9') return -1;
    int n = 0;
    for (at++; *at >= '0' && *at <= '9' && n < 1000; at++) n = 10 * n + (*at - '0');
    return *at == '\0' || *at == ' ' ? n : -1;
}

/* As profilers of GPUs have it: a device is the process of its number. */
static int64_t process_of(const fth_trace *trace, int track)
{
    const int device = track >= 0 && track < trace->n_tracks ? device_of(trace->track[track]) : -1;
    return device >= 0 ? device : (int64_t)getpid();
}

/* The event into the buffer; its length. */
static size_t put_event(const fth_trace *trace, char *buffer, const fth__trace_record *r)
{
    fth_json_writer w;
    begin_event(&w, buffer, r->name);
    w.digits = 17;
    fth_json_text(&w, "cat", r->category[0] ? r->category : "fathom");
    const bool on_track = r->kind == FTH__SPAN || r->kind == FTH__INSTANT;
    fth_json_int(&w, "pid", on_track ? process_of(trace, r->track) : (int64_t)getpid());
    fth_json_int(&w, "tid", on_track ? r->track + 1 : 0);
    put_time(&w, "ts", r->start_ns);
    switch (r->kind) {
    case FTH__SPAN: put_span(&w, r); break;
    case FTH__MEMORY:
        fth_json_text(&w, "ph", "C");
        fth_json_open(&w, "args", '{');
        fth_json_u64(&w, "planned", r->bytes);
        fth_json_u64(&w, "actual", r->actual_bytes);
        fth_json_close(&w);
        break;
    case FTH__COUNTER:
        fth_json_text(&w, "ph", "C");
        fth_json_open(&w, "args", '{');
        fth_json_real(&w, "value", r->value);
        fth_json_close(&w);
        break;
    case FTH__INSTANT:
        fth_json_text(&w, "ph", "i");
        fth_json_text(&w, "s", "t");
        break;
    }
    fth_json_close(&w);
    FTH_ASSERT(w.status == FTH_OK && w.depth == 0); /* EVENT_BYTES are enough */
    return (size_t)w.used;
}

/* A mark over all tracks. */
static size_t put_mark(char *buffer, const char *name, int64_t ns)
{
    fth_json_writer w;
    begin_event(&w, buffer, name);
    fth_json_text(&w, "ph", "i");
    fth_json_text(&w, "s", "g");
    fth_json_int(&w, "pid", (int64_t)getpid());
    fth_json_int(&w, "tid", 0);
    put_time(&w, "ts", ns);
    fth_json_close(&w);
    FTH_ASSERT(w.status == FTH_OK && w.depth == 0);
    return (size_t)w.used;
}

/* How a process (tid 0) or a track is called: process_name, process_labels or thread_name. */
static size_t put_name(char *buffer, const char *what, int64_t pid, int tid, const char *name)
{
    fth_json_writer w;
    begin_event(&w, buffer, what);
    fth_json_text(&w, "ph", "M");
    fth_json_int(&w, "pid", pid);
    fth_json_int(&w, "tid", tid);
    fth_json_open(&w, "args", '{');
    fth_json_text(&w, strcmp(what, "process_labels") == 0 ? "labels" : "name", name);
    fth_json_close(&w);
    fth_json_close(&w);
    FTH_ASSERT(w.status == FTH_OK && w.depth == 0);
    return (size_t)w.used;
}

static const fth__trace_record *event(const fth_trace *trace, uint64_t i)
{
    FTH_ASSERT(i < trace->recorded && trace->recorded - i <= trace->capacity);
    return &trace->ring[i % trace->capacity];
}

/* Spans last; all others are moments. */
static bool is_inside(const fth__trace_record *r, fth__trace_window w)
{
    const int64_t end = r->kind == FTH__SPAN ? r->end_ns : r->start_ns;
    return r->start_ns <= w.end_ns && end >= w.start_ns;
}

/* The first event of the file: as far back as the ring and the size allow. */
static uint64_t first_that_fits(const fth_trace *trace, fth__trace_window window)
{
    enum { FRAME = 1280, PER_TRACK = 6 * FTH__TRACE_NAME + 96, PER_DEVICE = 260 };
    char buffer[EVENT_BYTES];
    const uint64_t oldest =
        trace->recorded > trace->capacity ? trace->recorded - trace->capacity : 0;
    FTH_ASSERT(trace->max_bytes > FRAME);
    uint64_t room = trace->max_bytes - FRAME;
    for (int k = 0; k < trace->n_tracks; k++) {
        const uint64_t names = PER_TRACK + (device_of(trace->track[k]) >= 0 ? PER_DEVICE : 0);
        room -= room < names ? room : names;
    }
    uint64_t i = trace->recorded;
    while (i > oldest) {
        if (!is_inside(event(trace, i - 1), window)) {
            i--;
            continue;
        }
        const size_t n = put_event(trace, buffer, event(trace, i - 1));
        if (n + 2 > room) break; /* ",\n" */
        room -= n + 2;
        i--;
    }
    return i;
}

static bool send(fth__trace_sink sink, const char *between, const char *event, size_t n)
{
    return sink.put(sink.user, between, strlen(between)) && sink.put(sink.user, event, n);
}

/* What comes before the events: only its numbers change, so that it needs no escapes. */
static bool send_head(const fth_trace *trace, uint64_t dropped, fth__trace_sink sink)
{
    char buffer[EVENT_BYTES];
    fth__text t;
    fth__text_init(&t, buffer, sizeof buffer);
    fth__text_add(&t,
                  "{\"schemaVersion\":1,\"deviceProperties\":[],\"displayTimeUnit\":\"ms\","
                  "\"baseTimeNanoseconds\":%lld,\"traceName\":\"fathom\","
                  "\"otherData\":{\"version\":\"%s\",\"dropped\":%llu},\n\"traceEvents\":[\n",
                  (long long)trace->base_ns, fth_version(), (unsigned long long)dropped);
    FTH_ASSERT(!fth__text_is_cut(&t));
    return sink.put(sink.user, t.data, t.used);
}

/* The program first; then devices, each where the first of its tracks is. */
static bool send_processes(const fth_trace *trace, fth__trace_sink sink)
{
    char buffer[EVENT_BYTES];
    const int64_t own = (int64_t)getpid();
    bool ok = send(sink, "", buffer, put_name(buffer, "process_name", own, 0, "fathom")) &&
              send(sink, ",\n", buffer, put_name(buffer, "process_labels", own, 0, "CPU"));
    for (int k = 0; ok && k < trace->n_tracks; k++) {
        const int device = device_of(trace->track[k]);
        char name[24];
        bool first = device >= 0;
        for (int i = 0; i < k; i++) first = first && device_of(trace->track[i]) != device;
        if (!first) continue;
        snprintf(name, sizeof name, "cuda:%d", device);
        ok = send(sink, ",\n", buffer, put_name(buffer, "process_name", device, 0, name));
        snprintf(name, sizeof name, "GPU %d", device);
        if (ok) ok = send(sink, ",\n", buffer, put_name(buffer, "process_labels", device, 0, name));
    }
    return ok;
}

bool fth__trace_to_json(const fth_trace *trace, fth__trace_window window, fth__trace_sink sink)
{
    char buffer[EVENT_BYTES];
    const uint64_t first = first_that_fits(trace, window);
    bool ok = send_head(trace, first, sink) && send_processes(trace, sink);
    if (ok && trace->note[0])
        ok = send(sink, ",\n", buffer, put_mark(buffer, trace->note, trace->note_ns));
    if (ok && first > 0 && first < trace->recorded) {
        /* Also where the reader looks: a mark at the left end of the timeline. */
        char name[64];
        snprintf(name, sizeof name, "%llu older events were dropped", (unsigned long long)first);
        ok = send(sink, ",\n", buffer, put_mark(buffer, name, event(trace, first)->start_ns));
    }
    for (int k = 0; ok && k < trace->n_tracks; k++)
        ok = send(sink, ",\n", buffer,
                  put_name(buffer, "thread_name", process_of(trace, k), k + 1, trace->track[k]));
    for (uint64_t i = first; ok && i < trace->recorded; i++)
        if (is_inside(event(trace, i), window))
            ok = send(sink, ",\n", buffer, put_event(trace, buffer, event(trace, i)));
    return ok && sink.put(sink.user, "\n]}\n", 4);
}
