/* trace/record.h - the ring inside a trace; for src/trace, and its weight for src/run. */
#ifndef FTH_TRACE_RECORD_H
#define FTH_TRACE_RECORD_H

#include <fathom/trace.h>

#include <pthread.h>

typedef enum fth__trace_kind { FTH__SPAN, FTH__MEMORY, FTH__COUNTER, FTH__INSTANT } fth__trace_kind;

enum { FTH__TRACE_NAME = 48, FTH__TRACE_CATEGORY = 16 };

/* One event. Flat, and with copies of the names, so that nothing it was made of need live on. */
typedef struct fth__trace_record {
    int64_t start_ns, end_ns;
    int64_t chunk, n_chunks;
    uint64_t bytes, actual_bytes; /* MEMORY: planned, actual */
    double value;                 /* SPAN: flops; COUNTER: the value */
    double peak_bytes_per_s;
    int32_t track, line;
    fth__trace_kind kind;
    bool has_launch;
    fth_trace_launch launch;
    char name[FTH__TRACE_NAME];
    char category[FTH__TRACE_CATEGORY];
    char file[FTH__TRACE_NAME];
} fth__trace_record;

struct fth_trace {
    pthread_mutex_t mutex;
    pthread_mutex_t *lock; /* &mutex: lets functions on a const trace lock it */
    fth_mem *mem;
    uint64_t max_bytes;
    int64_t t0_ns;
    int64_t base_ns; /* time of day then, since 1970 */
    int64_t note_ns;
    char note[FTH__TRACE_NAME]; /* an instant outside the ring; "": none */
    fth__trace_record *ring;
    uint64_t capacity, recorded; /* event i sits at i % capacity */
    int n_tracks;
    char track[FTH_TRACE_TRACKS][FTH__TRACE_NAME];
};

/* Where JSON goes: memory or a file. False ends the writing. */
typedef struct fth__trace_sink {
    bool (*put)(void *user, const char *chars, size_t n);
    void *user;
} fth__trace_sink;

/* What of a trace is told: events that touch this time. */
typedef struct fth__trace_window {
    int64_t start_ns, end_ns;
} fth__trace_window;
#define FTH__TRACE_ALL ((fth__trace_window){INT64_MIN, INT64_MAX})

/* The file into a sink; the lock is held. False when the sink said no. */
bool fth__trace_to_json(const fth_trace *trace, fth__trace_window window, fth__trace_sink sink);

/* An instant that is never dropped, now; a second one takes its place. */
void fth__trace_note(fth_trace *trace, const char *name);

/* Resident bytes of the ring; 0 for NULL. */
uint64_t fth__trace_touched(const fth_trace *trace);

#endif
