/* io.c - a queue of reads and writes and the one thread that serves it, in order.
 *
 * All sources and sinks of a run are used from this thread alone, so formats whose libraries are
 * not thread-safe need no care. After an error nothing more is done; whoever waits for that job or
 * a later one is told, and nobody else, so what is reported does not depend on timing.
 */
#include "run/io.h"

#include "array/rect.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"
#include "run/stage.h"

#include <pthread.h>
#include <time.h>

enum { MOMENT_NS = 20000000 };

struct fth__io {
    fth_mem *mem;
    struct fth__stage *stage; /* NULL: jobs are about memory of the host */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t posted, done;
    fth__io_job *job; /* ring */
    int64_t n_posted, n_done;
    bool stop, started;
    bool (*go_on)(void *user); /* asked while waiting; NULL: nobody is */
    void *user;
    fth_trace *trace; /* may be NULL */
    int track;
    double busy_s;
    int64_t failed; /* ticket of the job that `status` and `err` are about */
    fth_status status;
    fth_err err;
};

static fth_status serve(const fth__io *io, const fth__io_job *j, fth_err *err)
{
    if (io->stage) return fth__stage_serve(io->stage, j, err);
    if (j->source) return fth__source_read(j->source, j->lo, j->n, j->data, err);
    return fth__sink_write(j->sink, j->lo, j->n, j->data, err);
}

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
    if (!known || err->status == FTH_OK) { /* it failed without a word, or with a wrong one */
        const fth_status given = s;
        s = known ? s : j->source ? FTH_E_FILE_READ : FTH_E_FILE_WRITE;
        *err = (fth_err){0};
        (void)FTH_FAIL(err, s, "the %s %s gave the status %d%s", kind ? kind : "unnamed",
                       j->source ? "source" : "sink", (int)given,
                       known ? " and no words" : ", which does not exist");
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

static void trace_job(const fth__io *io, const fth__io_job *j, int64_t t0)
{
    if (!io->trace) return;
    const int n_axes = j->source ? j->source->n_axes : j->sink->n_axes;
    const char *kind = j->source ? j->source->kind : j->sink->kind;
    uint64_t bytes = (uint64_t)fth_dtype_size(j->source ? j->source->dtype : j->sink->dtype);
    for (int d = 0; d < n_axes; d++) bytes *= (uint64_t)j->n[d];
    const fth_trace_span span = {.name = j->name[0] ? j->name : kind,
                                 .category = j->source ? "read" : "write",
                                 .track = io->track,
                                 .start_ns = t0,
                                 .end_ns = fth_trace_now(io->trace),
                                 .bytes = bytes};
    fth_trace_add_span(io->trace, &span);
}

static void *work(void *arg)
{
    fth__io *io = arg;
    pthread_mutex_lock(&io->lock);
    for (;;) {
        while (!io->stop && io->n_done == io->n_posted) pthread_cond_wait(&io->posted, &io->lock);
        if (io->stop) break;
        const fth__io_job j = io->job[io->n_done % FTH__IO_SLOTS];
        const bool dead = io->status != FTH_OK;
        pthread_mutex_unlock(&io->lock);
        fth_err err = {0};
        const int64_t began = fth_trace_now(io->trace);
        const double t0 = fth__clock_seconds();
        fth_status s = dead ? FTH_OK : serve(io, &j, &err);
        if (s != FTH_OK) s = fth__io_blame(&j, s, &err);
        const double t1 = fth__clock_seconds();
        if (!dead) trace_job(io, &j, began);
        pthread_mutex_lock(&io->lock);
        io->busy_s += t1 - t0;
        if (s != FTH_OK && io->status == FTH_OK) {
            io->status = s;
            io->err = err;
            io->failed = io->n_done + 1;
        }
        io->n_done++;
        pthread_cond_broadcast(&io->done);
    }
    pthread_mutex_unlock(&io->lock);
    return NULL;
}

fth_status fth__io_create(fth__io **out, fth_mem *mem, struct fth__stage *stage, fth_trace *trace,
                          fth_err *err)
{
    *out = NULL;
    fth__io *io = fth__heap_alloc(mem, sizeof *io);
    if (!io) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the I/O queue");
    io->mem = mem;
    io->stage = stage;
    io->trace = trace;
    io->track = fth_trace_track(trace, "files");
    pthread_mutex_init(&io->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&io->posted, NULL);
    pthread_cond_init(&io->done, &clock);
    pthread_condattr_destroy(&clock);
    fth_status s = fth__heap_take(mem, FTH__IO_SLOTS, sizeof *io->job, (void **)&io->job, err);
    if (s == FTH_OK && pthread_create(&io->thread, NULL, work, io) != 0)
        s = FTH_FAIL(err, FTH_E_THREAD, "the I/O thread could not be started");
    io->started = s == FTH_OK;
    if (s != FTH_OK)
        fth__io_destroy(io);
    else
        *out = io;
    return s;
}

void fth__io_stop(fth__io *io)
{
    if (!io || !io->started) return;
    pthread_mutex_lock(&io->lock);
    io->stop = true;
    pthread_cond_broadcast(&io->posted);
    pthread_mutex_unlock(&io->lock);
    pthread_join(io->thread, NULL);
    io->started = false;
}

void fth__io_destroy(fth__io *io)
{
    if (!io) return;
    fth__io_stop(io);
    pthread_cond_destroy(&io->done);
    pthread_cond_destroy(&io->posted);
    pthread_mutex_destroy(&io->lock);
    fth__heap_free(io->mem, io->job);
    fth__heap_free(io->mem, io);
}

void fth__io_ask(fth__io *io, bool (*go_on)(void *user), void *user)
{
    io->go_on = go_on;
    io->user = user;
}

/* Wait until a job is done, or for a moment; false: wait no longer. */
static bool wait_a_moment(fth__io *io)
{
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

int64_t fth__io_post(fth__io *io, const fth__io_job *job)
{
    pthread_mutex_lock(&io->lock);
    bool go_on = true;
    while (go_on && io->n_posted - io->n_done >= FTH__IO_SLOTS) go_on = wait_a_moment(io);
    int64_t ticket = io->n_posted;
    if (go_on) { /* otherwise nobody will ask for it */
        io->job[io->n_posted % FTH__IO_SLOTS] = *job;
        ticket = ++io->n_posted;
        pthread_cond_signal(&io->posted);
    }
    pthread_mutex_unlock(&io->lock);
    return ticket;
}

fth_status fth__io_wait(fth__io *io, int64_t ticket, fth_err *err)
{
    pthread_mutex_lock(&io->lock);
    bool go_on = true;
    while (go_on && io->n_done < ticket) go_on = wait_a_moment(io);
    fth_status s = io->failed <= ticket ? io->status : FTH_OK;
    if (s != FTH_OK && err && err->status == FTH_OK) *err = io->err;
    pthread_mutex_unlock(&io->lock);
    if (s == FTH_OK && !go_on)
        s = FTH_FAIL(err, FTH_E_CANCELLED, "the run was cancelled while it waited for data");
    return s;
}

double fth__io_busy(const fth__io *io)
{
    return io->busy_s;
}
