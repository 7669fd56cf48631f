/* trace.c - recording events into a ring; see fathom/trace.h. */
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"
#include "trace/record.h"

#include <string.h>
#include <time.h>

static const uint64_t default_bytes = 64 << 20; /* of the file: some 250,000 events */
static const uint64_t least_bytes = 128 << 10;  /* the frame of the file and all names fit */
static const uint64_t event_bytes = 256;        /* of JSON, on average; decides the ring's size */

fth_status fth_trace_create(fth_trace **out, fth_mem *mem, uint64_t max_bytes, fth_err *err)
{
    if (!out || !mem)
        return FTH_FAIL(err, FTH_E_USAGE, "a trace needs a memory and a place for it");
    *out = NULL;
    if (max_bytes == 0) max_bytes = default_bytes;
    if (max_bytes < least_bytes)
        return FTH_FAIL(err, FTH_E_USAGE, "a trace of at most %llu bytes; at least %llu are needed",
                        (unsigned long long)max_bytes, (unsigned long long)least_bytes);
    void *block;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_trace), &block, err));
    fth_trace *t = block;
    t->capacity = max_bytes / event_bytes;
    fth_status status = fth__heap_take(mem, (int64_t)t->capacity, sizeof *t->ring, &block, err);
    if (status == FTH_OK) {
        t->ring = block;
        if (pthread_mutex_init(&t->mutex, NULL) != 0)
            status = FTH_FAIL(err, FTH_E_LIBRARY, "a mutex could not be created");
    }
    if (status != FTH_OK) {
        fth__heap_free(mem, t->ring);
        fth__heap_free(mem, t);
        return status;
    }
    t->lock = &t->mutex;
    t->mem = mem;
    t->max_bytes = max_bytes;
    t->t0_ns = fth__clock_ns();
    struct timespec day;
    if (clock_gettime(CLOCK_REALTIME, &day) == 0)
        t->base_ns = (int64_t)day.tv_sec * 1000000000 + day.tv_nsec;
    *out = t;
    return FTH_OK;
}

void fth_trace_destroy(fth_trace *trace)
{
    if (!trace) return;
    pthread_mutex_destroy(&trace->mutex);
    fth__heap_free(trace->mem, trace->ring);
    fth__heap_free(trace->mem, trace);
}

int64_t fth_trace_now(const fth_trace *trace)
{
    return trace ? fth__clock_ns() - trace->t0_ns : 0;
}

int fth_trace_track(fth_trace *trace, const char *name)
{
    if (!trace) return 0;
    char copy[FTH__TRACE_NAME];
    fth__str_copy(copy, sizeof copy, name);
    pthread_mutex_lock(trace->lock);
    int i = 0;
    while (i < trace->n_tracks && strcmp(trace->track[i], copy) != 0) i++;
    if (i == trace->n_tracks) {
        if (i < FTH_TRACE_TRACKS)
            memcpy(trace->track[trace->n_tracks++], copy, sizeof copy);
        else
            i = FTH_TRACE_TRACKS - 1;
    }
    FTH_ASSERT(i < trace->n_tracks && trace->n_tracks <= FTH_TRACE_TRACKS);
    pthread_mutex_unlock(trace->lock);
    return i;
}

/* Readers of JSON take integers of 63 bits. */
static uint64_t readable(uint64_t v)
{
    return fth__min_u64(v, INT64_MAX);
}

/* Copy a finished record into the ring, over the oldest when it is full. */
static void push(fth_trace *trace, const fth__trace_record *r)
{
    pthread_mutex_lock(trace->lock);
    trace->ring[trace->recorded++ % trace->capacity] = *r;
    pthread_mutex_unlock(trace->lock);
}

void fth_trace_add_span(fth_trace *trace, const fth_trace_span *span)
{
    if (!trace || !span) return;
    fth__trace_record r = {
        .kind = FTH__SPAN,
        .start_ns = span->start_ns,
        .end_ns = fth__max_i64(span->start_ns, span->end_ns),
        .chunk = span->chunk,
        .n_chunks = span->n_chunks,
        .bytes = readable(span->bytes),
        .value = span->flops,
        .peak_bytes_per_s = span->peak_bytes_per_s,
        .track = span->track,
        .line = span->site.line,
        .has_launch = span->launch != NULL,
    };
    if (span->launch) r.launch = *span->launch;
    fth__str_copy(r.name, sizeof r.name, span->name);
    fth__str_copy(r.category, sizeof r.category, span->category);
    fth__str_copy_tail(r.file, sizeof r.file, span->site.file);
    push(trace, &r);
}

void fth_trace_add_memory(fth_trace *trace, const char *device, int64_t at_ns,
                          uint64_t planned_bytes, uint64_t actual_bytes)
{
    if (!trace) return;
    fth__trace_record r = {.kind = FTH__MEMORY,
                           .start_ns = at_ns,
                           .bytes = readable(planned_bytes),
                           .actual_bytes = readable(actual_bytes)};
    fth__str_copy(r.name, sizeof r.name, device);
    push(trace, &r);
}

void fth_trace_add_counter(fth_trace *trace, const char *name, int64_t at_ns, double value)
{
    if (!trace) return;
    fth__trace_record r = {.kind = FTH__COUNTER, .start_ns = at_ns, .value = value};
    fth__str_copy(r.name, sizeof r.name, name);
    push(trace, &r);
}

void fth_trace_add_instant(fth_trace *trace, int track, const char *name, int64_t at_ns)
{
    if (!trace) return;
    fth__trace_record r = {.kind = FTH__INSTANT, .start_ns = at_ns, .track = track};
    fth__str_copy(r.name, sizeof r.name, name);
    push(trace, &r);
}

void fth__trace_note(fth_trace *trace, const char *name)
{
    if (!trace) return;
    pthread_mutex_lock(trace->lock);
    trace->note_ns = fth__clock_ns() - trace->t0_ns;
    fth__str_copy(trace->note, sizeof trace->note, name);
    pthread_mutex_unlock(trace->lock);
}

uint64_t fth__trace_touched(const fth_trace *trace)
{
    return trace ? fth_mem_touched(trace->ring, trace->capacity * sizeof *trace->ring) : 0;
}

void fth_trace_get_stats(const fth_trace *trace, fth_trace_stats *out)
{
    *out = (fth_trace_stats){0};
    if (!trace) return;
    pthread_mutex_lock(trace->lock);
    out->recorded = trace->recorded;
    out->capacity = trace->capacity;
    out->dropped = trace->recorded > trace->capacity ? trace->recorded - trace->capacity : 0;
    pthread_mutex_unlock(trace->lock);
}
