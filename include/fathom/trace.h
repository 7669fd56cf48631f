/* fathom/trace.h - a timeline of a run, for Perfetto and chrome://tracing.
 *
 * Events go into a ring of fixed size made when the trace is created: recording
 * takes a lock and copies a record, and never allocates. When the ring or the
 * file is full the oldest events are dropped, and the file says how many.
 *
 * Ownership: the trace belongs to whoever created it. Names are copied (47
 *            characters; of a path its end).
 * Threads:   every function may be called from any thread on one trace.
 * Failure:   recording cannot fail. A NULL trace records nothing, so callers
 *            need not ask whether tracing is on.
 */
#ifndef FATHOM_TRACE_H
#define FATHOM_TRACE_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

typedef struct fth_trace fth_trace;

enum { FTH_TRACE_TRACKS = 256 }; /* named rows: worker threads, I/O, device streams */

/* A trace whose file never passes `max_bytes`; 0 means 64 MiB. The ring is
 * bookkeeping: outside the budget, and resident only as far as it was used. */
FTH_API FTH_MUST_USE fth_status fth_trace_create(fth_trace **out, fth_mem *mem, uint64_t max_bytes,
                                                 fth_err *err);
FTH_API void fth_trace_destroy(fth_trace *trace); /* NULL is allowed */

/* Nanoseconds since the trace was created; 0 for NULL. */
FTH_API int64_t fth_trace_now(const fth_trace *trace);

/* Make a row and name it; the same name gives the same row. Beyond
 * FTH_TRACE_TRACKS rows the last one is shared. */
FTH_API int fth_trace_track(fth_trace *trace, const char *name);

/* How a kernel was started on a device. */
typedef struct fth_trace_launch {
    uint32_t grid[3], block[3]; /* blocks, and threads of each; zero: it is no kernel */
    uint32_t registers;         /* of a thread */
    uint32_t shared_bytes;      /* of a block */
    uint32_t stream;
} fth_trace_launch;

/* An interval of time. Fields left zero are not shown. */
typedef struct fth_trace_span {
    const char *name;     /* "dot W Lu" */
    const char *category; /* "step", "read", "write", "copy"; 15 characters */
    int track;
    int64_t start_ns, end_ns; /* from fth_trace_now */
    int64_t chunk;            /* 1 is the first */
    int64_t n_chunks;
    uint64_t bytes;                 /* moved; shown also as GB/s */
    double flops;                   /* done; shown also as GFLOP/s */
    double peak_bytes_per_s;        /* measured limit of the device: gives "% of bandwidth" */
    fth_site site;                  /* line of the operation */
    const fth_trace_launch *launch; /* of a kernel; NULL: none */
} fth_trace_span;
FTH_API void fth_trace_add_span(fth_trace *trace, const fth_trace_span *span);

/* Memory of one device at a moment, as two curves of one chart. */
FTH_API void fth_trace_add_memory(fth_trace *trace, const char *device, int64_t at_ns,
                                  uint64_t planned_bytes, uint64_t actual_bytes);
/* Any other number over time. */
FTH_API void fth_trace_add_counter(fth_trace *trace, const char *name, int64_t at_ns, double value);
/* A single moment. */
FTH_API void fth_trace_add_instant(fth_trace *trace, int track, const char *name, int64_t at_ns);

typedef struct fth_trace_stats {
    uint64_t recorded; /* events ever given                               */
    uint64_t dropped;  /* of them overwritten in the ring                 */
    uint64_t capacity; /* events the ring holds                           */
} fth_trace_stats;
FTH_API void fth_trace_get_stats(const fth_trace *trace, fth_trace_stats *out);

/* Write the trace as JSON, whole or not at all: a temporary file beside `path`
 * is written, synchronised and renamed. An older file stays until then. A name
 * that ends in ".gz" gives a packed file, which Perfetto opens as it is. */
FTH_API FTH_MUST_USE fth_status fth_trace_write(fth_trace *trace, const char *path, fth_err *err);
/* The same for events that overlap [start_ns, end_ns] (in the time of fth_trace_now). */
FTH_API FTH_MUST_USE fth_status fth_trace_write_part(fth_trace *trace, const char *path,
                                                     int64_t start_ns, int64_t end_ns,
                                                     fth_err *err);
/* The same JSON into memory; returns the length it needs, like snprintf. */
FTH_API size_t fth_trace_format(fth_trace *trace, char *text, size_t bytes);

FTH_END_DECLS
#endif /* FATHOM_TRACE_H */
