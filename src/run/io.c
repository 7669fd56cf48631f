/* io.c - a queue of reads and writes and the threads that serve it.
 *
 * Sources and sinks that are not concurrent are used by the first thread alone, in the order of the
 * queue, so formats whose libraries are not thread-safe need no care. Of what fails, the earliest
 * job counts, and in it the first part: what comes before a failure is always done and what comes
 * after it may be, so what is reported does not depend on timing.
 */
#include "run/io.h"

#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "mem/heap.h"
#include "run/pieces.h"
#include "run/stage.h"

#include <pthread.h>
#include <time.h>

enum {
    MOMENT_NS = 20000000,   /* between two questions while waiting: below ASK_MS of progress.c */
    ALONE_BYTES = 64 << 10, /* below this a job is not worth waking another thread */
    PART_BYTES = 256 << 10, /* least that a part should have, so that calls do not dominate, */
    LARGE_PART = 4 << 20,   /* and most: a run that stops waits for the parts in hand */
    PARTS_EACH = 4          /* parts of a job for each thread: the last to finish is not late */
};

/* How long something went on, whoever did it. */
typedef struct stopwatch {
    int running;
    double since, seconds;
} stopwatch;

typedef struct slot {
    fth__io_job job;
    fth__pieces pieces;
    bool shared;                /* by all threads; otherwise one part, for the first */
    int64_t parts, taken, left; /* `left` are not finished */
} slot;

typedef struct hand {
    fth__io *io;
    pthread_t thread;
    int index, track;
    /* parts of one job in a row are one span of the timeline */
    int64_t spun; /* ticket of that job; 0: none */
    fth_trace_span span;
    char name[FTH__NAME];
} hand;

struct fth__io {
    fth_mem *mem;
    struct fth__stage *stage; /* NULL: jobs are about memory of the host */
    pthread_mutex_t lock;
    pthread_cond_t posted, done;
    hand *hand;
    int cap;             /* hands that there is room for */
    int threads, called; /* of this run: at most, and those that had something to do */
    int started;         /* by this run or one before; those that are not called sleep */
    slot *ring;
    int64_t n_posted, n_done; /* all before n_done are */
    int64_t wanted;           /* somebody sleeps until so many are done */
    int64_t open;             /* the first that has parts to take is here or later */
    bool stop;
    bool (*go_on)(void *user); /* asked while waiting; NULL: nobody is */
    void *user;
    fth_trace *trace; /* may be NULL */
    stopwatch busy, reading, writing;
    int64_t failed, failed_part; /* what `status` and `err` are about; INT64_MAX: nothing failed */
    fth_status status;
    fth_err err;
};

typedef struct task {
    slot *slot;
    int64_t ticket, part;
} task;

/* ---- clocks ---- */

static void start_watch(stopwatch *w)
{
    if (w->running++ == 0) w->since = fth__clock_seconds();
}

static void stop_watch(stopwatch *w)
{
    FTH_ASSERT(w->running > 0);
    if (--w->running == 0) w->seconds += fth__clock_seconds() - w->since;
}

static void watch_from(fth__io *io, stopwatch *w)
{
    pthread_mutex_lock(&io->lock);
    start_watch(w);
    pthread_mutex_unlock(&io->lock);
}

static void watch_to(fth__io *io, stopwatch *w)
{
    pthread_mutex_lock(&io->lock);
    stop_watch(w);
    pthread_mutex_unlock(&io->lock);
}

fth__io_times fth__io_get_times(fth__io *io)
{
    if (!io) return (fth__io_times){0};
    pthread_mutex_lock(&io->lock);
    const fth__io_times t = {io->busy.seconds, io->reading.seconds, io->writing.seconds,
                             io->called};
    pthread_mutex_unlock(&io->lock);
    return t;
}

/* ---- errors ---- */

static void add_rectangle(const fth__io_job *j, fth__text *t)
{
    if (!j->desc) return;
    fth__text_add(t, " [");
    for (int d = 0; d < j->desc->n_axes; d++)
        fth__text_add(t, "%s%s %lld:%lld", d ? ", " : "", fth_axis_name(j->graph, j->desc->axis[d]),
                      (long long)j->lo[d], (long long)(j->lo[d] + j->n[d]));
    fth__text_add(t, "]");
}

fth_status fth__io_blame(const fth__io_job *j, fth_status s, fth_err *err)
{
    const bool known = s > FTH_OK && s < FTH_STATUS_COUNT;
    const char *kind = j->source ? j->source->kind : j->sink->kind;
    if (!known || err->status == FTH_OK) { /* without a message, or with an unknown status */
        const fth_status given = s;
        s = known ? s : j->source ? FTH_E_FILE_READ : FTH_E_FILE_WRITE;
        *err = (fth_err){0};
        (void)FTH_FAIL(err, s, "the %s %s failed with status %d%s", kind ? kind : "unnamed",
                       j->source ? "source" : "sink", (int)given,
                       known ? " and no message" : ", which does not exist");
    }
    if (!j->graph) return s;
    char was[FTH_ERR_TEXT];
    fth__str_copy(was, sizeof was, err->text);
    fth__text t;
    fth__text_init(&t, err->text, sizeof err->text);
    fth__text_add(&t, "%s '%s'", j->source ? "input" : "output", j->name);
    add_rectangle(j, &t);
    fth__text_add(&t, ": %s", was);
    if (!err->origin.file) fth_err_origin(err, j->site);
    return s;
}

/* A job before this one failed, or a part of it that comes first: this cannot matter. */
static bool is_late(const fth__io *io, const task *t)
{
    return io->failed < t->ticket || (io->failed == t->ticket && io->failed_part < t->part);
}

static void note_failure(fth__io *io, const task *t, fth_status s, const fth_err *err)
{
    if (s == FTH_OK || is_late(io, t)) return;
    io->failed = t->ticket;
    io->failed_part = t->part;
    io->status = s;
    io->err = *err;
}

/* ---- the timeline ---- */

static void end_span(hand *h)
{
    if (!h->spun) return;
    h->spun = 0;
    h->span.end_ns = fth_trace_now(h->io->trace);
    fth_trace_add_span(h->io->trace, &h->span);
}

static void begin_span(hand *h, const task *t)
{
    const fth__io_job *j = &t->slot->job;
    if (!h->io->trace || h->spun == t->ticket) return;
    end_span(h);
    const char *kind = j->source ? j->source->kind : j->sink->kind;
    fth__str_copy(h->name, sizeof h->name, j->name[0] ? j->name : kind ? kind : "");
    h->span = (fth_trace_span){.name = h->name,
                               .category = j->source ? "read" : "write",
                               .track = h->track,
                               .start_ns = fth_trace_now(h->io->trace)};
    h->spun = t->ticket;
}

/* ---- the threads ---- */

fth_status fth__io_read(fth__io *io, const fth__io_job *j, const fth__piece *part, void *dst,
                        fth_err *err)
{
    watch_from(io, &io->reading);
    const fth_status s = fth__source_read(j->source, part->lo, part->n, dst, err);
    watch_to(io, &io->reading);
    return s;
}

fth_status fth__io_write(fth__io *io, const fth__io_job *j, const fth__piece *part, const void *src,
                         fth_err *err)
{
    watch_from(io, &io->writing);
    const fth_status s = fth__sink_write(j->sink, part->lo, part->n, src, err);
    watch_to(io, &io->writing);
    return s;
}

static fth_status serve(hand *h, const task *t, fth_err *err)
{
    fth__io *io = h->io;
    const fth__io_job *j = &t->slot->job;
    const fth__piece part = fth__job_piece(&t->slot->pieces, j, t->part);
    begin_span(h, t);
    h->span.bytes += part.bytes;
    if (io->stage)
        return t->slot->shared ? fth__stage_serve(io->stage, io, h->index, j, &part, err)
                               : fth__stage_serve_whole(io->stage, io, j, err);
    char *data = (char *)j->data + part.offset;
    return j->source ? fth__io_read(io, j, &part, data, err)
                     : fth__io_write(io, j, &part, data, err);
}

/* The next part for this thread: of the earliest job, but the first thread begins with what only
 * it may do when there are others for the rest. */
static bool take_part(const hand *h, task *out)
{
    fth__io *io = h->io;
    if (h->index >= io->called) return false;
    while (io->open < io->n_posted) {
        const slot *s = &io->ring[io->open % FTH__IO_SLOTS];
        if (s->taken < s->parts) break;
        io->open++;
    }
    const bool first = h->index == 0;
    for (int pass = first && io->called > 1 ? 0 : 1; pass < 2; pass++)
        for (int64_t i = io->open; i < io->n_posted; i++) {
            slot *s = &io->ring[i % FTH__IO_SLOTS];
            FTH_ASSERT(s->taken <= s->parts && s->left <= s->parts);
            if (s->taken == s->parts || (!s->shared && !first) || (s->shared && pass == 0))
                continue;
            *out = (task){s, i + 1, s->taken++};
            return true;
        }
    return false;
}

/* What was read into memory of a device is there when its copies are over. */
static fth_status settle(hand *h, const task *t, fth_err *err)
{
    fth__io *io = h->io;
    const bool last = t->slot->left == 1;
    if (!last || !io->stage || !t->slot->job.source) return FTH_OK;
    pthread_mutex_unlock(&io->lock);
    const fth_status s = fth__stage_settle(io->stage, h->index, err);
    pthread_mutex_lock(&io->lock);
    return s;
}

static void finish(fth__io *io, const task *t)
{
    FTH_ASSERT(t->slot->left > 0 && t->slot->left >= t->slot->parts - t->slot->taken);
    t->slot->left--;
    stop_watch(&io->busy);
    const int64_t before = io->n_done;
    while (io->n_done < io->n_posted && io->ring[io->n_done % FTH__IO_SLOTS].left == 0)
        io->n_done++;
    FTH_ASSERT(io->n_done <= io->n_posted && io->n_posted - io->n_done <= FTH__IO_SLOTS);
    if (io->n_done == before || io->n_done < io->wanted) return;
    io->wanted = INT64_MAX;
    pthread_cond_broadcast(&io->done);
}

static void *work(void *arg)
{
    hand *h = arg;
    fth__io *io = h->io;
    task t;
    pthread_mutex_lock(&io->lock);
    for (;;) {
        while (!io->stop && !take_part(h, &t)) {
            end_span(h);
            pthread_cond_wait(&io->posted, &io->lock);
        }
        if (io->stop) break;
        const bool late = is_late(io, &t);
        start_watch(&io->busy);
        pthread_mutex_unlock(&io->lock);
        fth_err err = {0};
        fth_status s = late ? FTH_OK : serve(h, &t, &err);
        if (s != FTH_OK) s = fth__io_blame(&t.slot->job, s, &err);
        pthread_mutex_lock(&io->lock);
        note_failure(io, &t, s, &err);
        err = (fth_err){0};
        s = settle(h, &t, &err);
        note_failure(io, &t, s, &err);
        finish(io, &t);
    }
    end_span(h);
    pthread_mutex_unlock(&io->lock);
    return NULL;
}

static bool start_hand(fth__io *io)
{
    FTH_ASSERT(io->started < io->cap);
    hand *h = &io->hand[io->started];
    char name[32] = "files";
    if (io->started > 0) snprintf(name, sizeof name, "files %d", io->started + 1);
    *h = (hand){.io = io, .index = io->started, .track = fth_trace_track(io->trace, name)};
    if (fth__thread_start(&h->thread, work, h) != 0) return false;
    io->started++;
    return true;
}

/* Threads for all parts that wait. Where the system has no more of them, those that are there do.
 */
static void start_hands(fth__io *io)
{
    int64_t waiting = 0;
    for (int64_t i = io->open; i < io->n_posted; i++) waiting += io->ring[i % FTH__IO_SLOTS].left;
    while (io->called < io->threads && io->called < waiting)
        if (io->called < io->started || start_hand(io))
            io->called++;
        else
            io->threads = io->called;
}

/* Nothing is queued and nothing went wrong yet. */
static void reset(fth__io *io, struct fth__stage *stage, int threads)
{
    FTH_ASSERT(threads >= 1 && threads <= io->cap);
    io->stage = stage;
    io->threads = threads;
    io->called = 1;
    io->n_posted = io->n_done = io->open = 0;
    io->wanted = INT64_MAX;
    io->failed = INT64_MAX;
    io->stop = false;
    io->go_on = NULL;
    io->busy = io->reading = io->writing = (stopwatch){0};
}

static fth_status begin(fth__io *io, struct fth__stage *stage, int threads, fth_err *err)
{
    pthread_mutex_lock(&io->lock);
    reset(io, stage, threads);
    const bool started = io->started > 0 || start_hand(io);
    pthread_mutex_unlock(&io->lock);
    if (started) return FTH_OK;
    return FTH_FAIL(err, FTH_E_THREAD, "the I/O thread could not be started");
}

fth_status fth__io_create(fth__io **out, fth_mem *mem, struct fth__stage *stage, fth_trace *trace,
                          int threads, fth_err *err)
{
    *out = NULL;
    fth__io *io = fth__heap_alloc(mem, sizeof *io);
    if (!io) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the I/O queue");
    io->mem = mem;
    io->trace = trace;
    io->cap = threads;
    pthread_mutex_init(&io->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&io->posted, NULL);
    pthread_cond_init(&io->done, &clock);
    pthread_condattr_destroy(&clock);
    fth_status s = fth__heap_take(mem, FTH__IO_SLOTS, sizeof *io->ring, (void **)&io->ring, err);
    if (s == FTH_OK) s = fth__heap_take(mem, threads, sizeof *io->hand, (void **)&io->hand, err);
    if (s == FTH_OK) s = begin(io, stage, threads, err);
    if (s != FTH_OK)
        fth__io_destroy(io);
    else
        *out = io;
    return s;
}

fth_status fth__io_begin(fth__io **out, fth_context *ctx, struct fth__stage *stage, int threads,
                         fth_err *err)
{
    *out = NULL;
    fth__io *left = __atomic_exchange_n(&ctx->io, NULL, __ATOMIC_ACQ_REL);
    if (left && left->cap >= threads && left->trace == ctx->trace) {
        *out = left; /* also when it fails: the run ends it */
        return begin(left, stage, threads, err);
    }
    fth__io_destroy(left);
    return fth__io_create(out, ctx->mem, stage, ctx->trace, threads, err);
}

/* With a timeline the threads are joined: their last spans are in it when the run is over. */
void fth__io_end(fth_context *ctx, fth__io *io)
{
    if (!io) return;
    if (io->trace) fth__io_stop(io);
    fth__io_destroy(__atomic_exchange_n(&ctx->io, io, __ATOMIC_ACQ_REL)); /* another run's */
}

void fth__io_stop(fth__io *io)
{
    if (!io) return;
    pthread_mutex_lock(&io->lock);
    io->stop = true;
    pthread_cond_broadcast(&io->posted);
    pthread_mutex_unlock(&io->lock);
    for (int i = 0; i < io->started; i++) pthread_join(io->hand[i].thread, NULL);
    io->threads = io->called = io->started = 0;
}

void fth__io_destroy(fth__io *io)
{
    if (!io) return;
    fth__io_stop(io);
    pthread_cond_destroy(&io->done);
    pthread_cond_destroy(&io->posted);
    pthread_mutex_destroy(&io->lock);
    fth__heap_free(io->mem, io->ring);
    fth__heap_free(io->mem, io->hand);
    fth__heap_free(io->mem, io);
}

/* ---- asking and waiting ---- */

void fth__io_ask(fth__io *io, bool (*go_on)(void *user), void *user)
{
    io->go_on = go_on;
    io->user = user;
}

/* Wait until so many jobs are done, or for a moment; false: wait no longer. */
static bool wait_a_moment(fth__io *io, int64_t jobs)
{
    if (jobs < io->wanted) io->wanted = jobs;
    if (!io->go_on) {
        pthread_cond_wait(&io->done, &io->lock);
        return true;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += MOMENT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&io->done, &io->lock, &until) == 0) return true;
    pthread_mutex_unlock(&io->lock);
    const bool go_on = io->go_on(io->user);
    pthread_mutex_lock(&io->lock);
    return go_on;
}

static void fill_slot(const fth__io *io, slot *s, const fth__io_job *job)
{
    const uint64_t bytes = fth__job_bytes(job), each = bytes / (uint64_t)(PARTS_EACH * io->threads),
                   aim = fth__min_u64(fth__max_u64(each, PART_BYTES), LARGE_PART);
    *s = (slot){.job = *job, .pieces = {.cut = -1, .count = 1, .inner = bytes}};
    s->shared = io->threads > 1 && bytes >= ALONE_BYTES && fth__job_is_shared(job);
    if (s->shared) s->pieces = fth__job_cut(job, aim, fth__stage_part_bytes(io->stage));
    s->parts = s->left = s->pieces.count;
    FTH_ASSERT(s->parts >= 1);
}

int64_t fth__io_post(fth__io *io, const fth__io_job *job)
{
    pthread_mutex_lock(&io->lock);
    bool go_on = true;
    while (go_on && io->n_posted - io->n_done >= FTH__IO_SLOTS)
        go_on = wait_a_moment(io, io->n_posted - FTH__IO_SLOTS + 1);
    int64_t ticket = io->n_posted;
    if (go_on) { /* otherwise nobody will ask for it */
        fill_slot(io, &io->ring[io->n_posted % FTH__IO_SLOTS], job);
        ticket = ++io->n_posted;
        start_hands(io);
    }
    pthread_mutex_unlock(&io->lock);
    pthread_cond_broadcast(&io->posted); /* what it wakes does not meet the lock */
    return ticket;
}

fth_status fth__io_wait(fth__io *io, int64_t ticket, fth_err *err)
{
    pthread_mutex_lock(&io->lock);
    bool go_on = true;
    FTH_ASSERT(ticket <= io->n_posted);
    while (go_on && io->n_done < ticket) go_on = wait_a_moment(io, ticket);
    fth_status s = io->failed <= ticket ? io->status : FTH_OK;
    if (s != FTH_OK && err && err->status == FTH_OK) *err = io->err;
    pthread_mutex_unlock(&io->lock);
    if (s == FTH_OK && !go_on)
        s = FTH_FAIL(err, FTH_E_CANCELLED, "the run was cancelled while it waited for data");
    return s;
}
