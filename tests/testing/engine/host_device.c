/* host_device.c - lanes as threads with a queue each, marks as counters. */
#include "testing/engine/host_device.h"

#include "base/lanes.h"

#include <fathom/op.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct fth_mark {
    int64_t asked, reached;
    double when;
};

typedef enum kind { COPY, FILL, GATHER, SET, WAIT, CALL, STOP } kind;
typedef struct work {
    kind kind;
    void *to;
    const void *from;
    uint64_t bytes;
    int byte;
    fth_mark *mark;
    int64_t number;
    const int64_t *index;
    fth_call call;
    fth_lane lane; /* of work that is recorded */
} work;

enum { QUEUE = 256, RECORDED = 4096 };
enum { TOGETHER = 16 }; /* work that a lane is woken for, before anybody waits for it */
typedef struct lane {
    fth_device *device;
    pthread_t thread;
    pthread_cond_t work;
    work queue[QUEUE];
    int64_t put, done;
} lane;

struct fth_recording {
    fth_mark begun;
    int64_t n;
    work work[RECORDED];
};

struct fth_device {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting; /* threads that do, for a change */
    lane lane[FTH_LANE_COUNT];
    fth_recording *recording; /* being made; NULL */
    struct seen_event *event; /* of the profiler; NULL: nobody watches */
    int64_t n_events, room;
    uint64_t lost;
};

typedef struct seen_event {
    char name[32];
    const char *category;
    int64_t start, end;
    uint64_t bytes;
    uint32_t stream;
} seen_event;

/* What tests set and ask; read by any thread. */
static atomic_int_fast64_t seen_kernels, seen_copies, seen_recordings, seen_replays, calls_left;
static atomic_int_fast64_t seen_calls, seen_marks, seen_blocks, seen_pins, seen_questions,
    seen_waits, seen_beside, seen_patient;
static atomic_uint_fast64_t mapped, most_mapped;
static atomic_int delay_us, replay_us;
static const char *lacking, *watch_refusal;
static int64_t watch_room;
static const uint64_t total_bytes = (uint64_t)64 << 30;

t_host_seen t_host_device_seen(void)
{
    return (t_host_seen){seen_kernels,   seen_copies, seen_recordings, seen_replays, mapped,
                         most_mapped,    seen_calls,  seen_marks,      seen_blocks,  seen_pins,
                         seen_questions, seen_waits,  seen_beside,     seen_patient};
}

void t_host_device_delay(int microseconds)
{
    delay_us = microseconds;
}
void t_host_device_slow_replay(int microseconds)
{
    replay_us = microseconds;
}

void t_host_device_lacks(const char *op)
{
    lacking = op;
}

void t_host_device_fail(int64_t n)
{
    calls_left = n;
}

void t_host_device_watch(int64_t room, const char *refusal)
{
    watch_room = room;
    watch_refusal = refusal;
}

/* One more of a kind, and of all. */
static void seen(atomic_int_fast64_t *these)
{
    atomic_fetch_add(&seen_calls, 1);
    if (these) atomic_fetch_add(these, 1);
}

static bool fails(void)
{
    if (calls_left == 0) return false;
    return atomic_fetch_sub(&calls_left, 1) == 1;
}

#define MAY_FAIL(err)                                                                              \
    do {                                                                                           \
        if (fails()) return FTH_FAIL((err), FTH_E_DEVICE, "the device failed on purpose");         \
    } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the profiler ---- */

/* A clock that began elsewhere and goes a little fast. */
static int64_t watch_now(fth_device *d)
{
    (void)d;
    return (int64_t)(1.0002e9 * now()) + 123456789012345;
}

static fth_status watch(fth_device *d, void *memory, uint64_t bytes, fth_err *err)
{
    MAY_FAIL(err);
    if (watch_refusal) {
        (void)FTH_FAIL(err, FTH_E_DEVICE, "%s", watch_refusal);
        fth_err_hint(err, "ask somebody else");
        return FTH_E_DEVICE;
    }
    const int64_t most = (int64_t)(bytes / sizeof(seen_event));
    pthread_mutex_lock(&d->lock);
    d->event = memory;
    d->room = watch_room > 0 && watch_room < most ? watch_room : most;
    d->n_events = 0;
    d->lost = 0;
    pthread_mutex_unlock(&d->lock);
    return FTH_OK;
}

static void unwatch(fth_device *d)
{
    pthread_mutex_lock(&d->lock);
    d->event = NULL;
    pthread_mutex_unlock(&d->lock);
}

static void watch_read(fth_device *d, bool all, fth_event_fn *take, void *arg, uint64_t *lost)
{
    (void)all;
    pthread_mutex_lock(&d->lock);
    for (int64_t i = 0; i < d->n_events; i++) {
        const seen_event *s = &d->event[i];
        fth_event e = {.name = s->name,
                       .category = s->category,
                       .start_ns = s->start,
                       .end_ns = s->end,
                       .bytes = s->bytes};
        e.launch.stream = s->stream;
        if (s->category[0] == 'k')
            e.launch = (fth_trace_launch){{7, 5, 3}, {256, 1, 1}, 40, 1024, s->stream};
        take(arg, &e);
    }
    *lost += d->lost;
    d->n_events = 0;
    d->lost = 0;
    pthread_mutex_unlock(&d->lock);
}

static void see(fth_device *d, uint32_t stream, const work *w, int64_t start)
{
    const bool is_call = w->kind == CALL;
    if (!is_call && w->kind != COPY && w->kind != FILL) return;
    const int64_t end = watch_now(d);
    pthread_mutex_lock(&d->lock);
    if (d->event && d->n_events < d->room) {
        seen_event *s = &d->event[d->n_events++];
        *s = (seen_event){.category = is_call           ? "kernel"
                                      : w->kind == COPY ? "copy"
                                                        : "fill",
                          .start = start,
                          .end = end,
                          .bytes = is_call ? 0 : w->bytes,
                          .stream = stream};
        snprintf(s->name, sizeof s->name, "%s", is_call ? w->call.node->op->name : s->category);
    } else if (d->event) {
        d->lost++;
    }
    pthread_mutex_unlock(&d->lock);
}

/* ---- lanes ---- */

/* Until something has changed. Lanes begin when there is enough to do, or when somebody waits: a
 * turn of threads takes longer than most work. The caller holds the lock. */
static void wait_change(fth_device *d)
{
    for (int i = 0; i < FTH_LANE_COUNT; i++)
        if (d->lane[i].done < d->lane[i].put) pthread_cond_signal(&d->lane[i].work);
    d->waiting++;
    pthread_cond_wait(&d->changed, &d->lock);
    d->waiting--;
}

static void run_call(const fth_call *call)
{
    fth_err err = {0};
    fth_call c = *call;
    c.err = &err;
    const fth_status s = c.node->op->run(&c);
    atomic_fetch_add(&seen_kernels, 1);
    if (s == FTH_OK || !c.fault || c.fault->where == 0) return;
    if (s == FTH_E_CAPACITY) { /* as fth_cuda_need: the largest need wins */
        const uint64_t where = (uint64_t)(INT64_MAX - err.need);
        if (where < c.fault->where)
            *c.fault = (fth_fault){where, err.need, FTH_FAULT_NEED, c.fault->lock};
        return;
    }
    c.fault->where = 0;
    c.fault->code = (uint32_t)s;
}

static void do_work(fth_device *d, const work *w)
{
    static atomic_uint turn; /* some of it only: a sleep takes longer than most work */
    if (delay_us > 0 && atomic_fetch_add(&turn, 1) % 32 == 0) usleep((useconds_t)delay_us);
    switch (w->kind) {
    case COPY:
        memmove(w->to, w->from, w->bytes);
        atomic_fetch_add(&seen_copies, 1);
        break;
    case FILL: memset(w->to, w->byte, w->bytes); break;
    case GATHER:
        for (int64_t i = 0; i < w->number; i++)
            memcpy((char *)w->to + (uint64_t)i * w->bytes,
                   (const char *)w->from + (uint64_t)w->index[i] * w->bytes, w->bytes);
        break;
    case CALL: run_call(&w->call); break;
    case SET:
        pthread_mutex_lock(&d->lock);
        if (w->mark->reached < w->number) w->mark->reached = w->number;
        w->mark->when = now();
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
        break;
    case WAIT:
        pthread_mutex_lock(&d->lock);
        while (w->mark->reached < w->number) wait_change(d);
        pthread_mutex_unlock(&d->lock);
        break;
    case STOP: break;
    }
}

static void *serve(void *arg)
{
    lane *l = arg;
    fth_device *d = l->device;
    for (;;) {
        pthread_mutex_lock(&d->lock);
        while (l->done == l->put) pthread_cond_wait(&l->work, &d->lock);
        const work w = l->queue[l->done % QUEUE];
        pthread_mutex_unlock(&d->lock);
        const int64_t start = watch_now(d);
        do_work(d, &w);
        if (w.kind == CALL && l - d->lane >= FTH_LANE_BESIDE) atomic_fetch_add(&seen_beside, 1);
        if (w.kind == CALL && l - d->lane >= FTH_LANE_COUNT - FTH__PATIENT_LANES)
            atomic_fetch_add(&seen_patient, 1);
        see(d, (uint32_t)(l - d->lane), &w, start);
        pthread_mutex_lock(&d->lock);
        l->done++;
        if (l->done == l->put || l->put - l->done == QUEUE - 1) pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
        if (w.kind == STOP) return NULL;
    }
}

static void put_now(fth_device *d, fth_lane at, const work *w)
{
    lane *l = &d->lane[at];
    pthread_mutex_lock(&d->lock);
    while (l->put - l->done >= QUEUE) wait_change(d);
    l->queue[l->put++ % QUEUE] = *w;
    if (l->put - l->done >= TOGETHER || d->waiting > 0 || w->kind == STOP)
        pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&d->lock);
}

static void put(fth_device *d, fth_lane at, const work *w)
{
    const bool recorded = at == FTH_LANE_COMPUTE || at >= FTH_LANE_BESIDE;
    if (!recorded || !d->recording) {
        put_now(d, at, w);
        return;
    }
    if (d->recording->n < RECORDED) {
        d->recording->work[d->recording->n] = *w;
        d->recording->work[d->recording->n].lane = at;
    }
    d->recording->n++;
}

/* ---- the table ---- */

static int count(fth_err *err)
{
    (void)err;
    return 1;
}

static fth_status open_device(fth_device **out, int index, fth_err *err)
{
    *out = NULL;
    if (index != 0) return FTH_FAIL(err, FTH_E_DEVICE, "there is no device %d", index);
    MAY_FAIL(err);
    fth_device *d = calloc(1, sizeof *d);
    if (!d) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a device");
    seen_kernels = seen_copies = seen_recordings = seen_replays = 0;
    seen_calls = seen_marks = seen_blocks = seen_pins = seen_questions = seen_waits = seen_beside =
        seen_patient = 0;
    mapped = most_mapped = 0;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    for (int i = 0; i < FTH_LANE_COUNT; i++) {
        d->lane[i].device = d;
        pthread_cond_init(&d->lane[i].work, NULL);
        if (pthread_create(&d->lane[i].thread, NULL, serve, &d->lane[i]) != 0) abort();
    }
    *out = d;
    return FTH_OK;
}

static void close_device(fth_device *d)
{
    for (int i = 0; i < FTH_LANE_COUNT; i++) put_now(d, (fth_lane)i, &(work){.kind = STOP});
    for (int i = 0; i < FTH_LANE_COUNT; i++) pthread_join(d->lane[i].thread, NULL);
    for (int i = 0; i < FTH_LANE_COUNT; i++) pthread_cond_destroy(&d->lane[i].work);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void get_info(fth_device *d, fth_device_info *out)
{
    (void)d;
    *out = (fth_device_info){.name = "a device made of the host",
                             .major = 9,
                             .multiprocessors = 1,
                             .total_bytes = total_bytes,
                             .free_bytes = total_bytes - mapped};
}

static fth_status pin(fth_device *d, void *block, uint64_t bytes, fth_err *err)
{
    (void)d, (void)block, (void)bytes;
    seen(&seen_pins);
    MAY_FAIL(err);
    return FTH_OK;
}

static void unpin(fth_device *d, void *block)
{
    (void)d, (void)block;
}

static fth_status copy(fth_device *d, fth_lane at, void *to, const void *from, uint64_t bytes,
                       fth_err *err)
{
    seen(NULL);
    MAY_FAIL(err);
    put(d, at, &(work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
    return FTH_OK;
}

static fth_status fill(fth_device *d, fth_lane at, void *to, int byte, uint64_t bytes, fth_err *err)
{
    seen(NULL);
    MAY_FAIL(err);
    put(d, at, &(work){.kind = FILL, .to = to, .byte = byte, .bytes = bytes});
    return FTH_OK;
}

static fth_status gather_rows(fth_device *d, fth_lane at, void *to, const void *from,
                              const int64_t *index, int64_t n, uint64_t bytes, fth_err *err)
{
    seen(NULL);
    MAY_FAIL(err);
    put(d, at,
        &(work){
            .kind = GATHER, .to = to, .from = from, .index = index, .number = n, .bytes = bytes});
    return FTH_OK;
}

static fth_status mark_create(fth_device *d, fth_mark **out, fth_err *err)
{
    (void)d;
    *out = NULL;
    seen(&seen_marks);
    MAY_FAIL(err);
    *out = calloc(1, sizeof **out);
    return *out ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory for a mark");
}

static void mark_destroy(fth_device *d, fth_mark *mark)
{
    (void)d;
    free(mark);
}

static int64_t asked(fth_device *d, fth_mark *mark, int more)
{
    pthread_mutex_lock(&d->lock);
    const int64_t n = mark->asked += more;
    pthread_mutex_unlock(&d->lock);
    return n;
}

static fth_status mark_set(fth_device *d, fth_lane at, fth_mark *mark, fth_err *err)
{
    seen(NULL);
    MAY_FAIL(err);
    put(d, at, &(work){.kind = SET, .mark = mark, .number = asked(d, mark, 1)});
    return FTH_OK;
}

static fth_status lane_wait(fth_device *d, fth_lane at, fth_mark *mark, fth_err *err)
{
    seen(NULL);
    MAY_FAIL(err);
    put(d, at, &(work){.kind = WAIT, .mark = mark, .number = asked(d, mark, 0)});
    return FTH_OK;
}

static fth_status host_wait(fth_device *d, fth_mark *mark, fth_err *err)
{
    seen(&seen_waits);
    MAY_FAIL(err);
    pthread_mutex_lock(&d->lock);
    const int64_t number = mark->asked;
    while (mark->reached < number) wait_change(d);
    pthread_mutex_unlock(&d->lock);
    return FTH_OK;
}

static fth_status drain(fth_device *d, fth_lane at, fth_err *err)
{
    const bool bad = fails();
    lane *l = &d->lane[at];
    seen(&seen_waits);
    pthread_mutex_lock(&d->lock);
    while (l->done < l->put) wait_change(d);
    pthread_mutex_unlock(&d->lock);
    return bad ? FTH_FAIL(err, FTH_E_DEVICE, "the device failed on purpose") : FTH_OK;
}

static double seconds(fth_device *d, fth_mark *from, fth_mark *to)
{
    seen(NULL);
    pthread_mutex_lock(&d->lock);
    const double s = to->when - from->when;
    pthread_mutex_unlock(&d->lock);
    return s;
}

static void *stream(fth_device *d, fth_lane at)
{
    return &d->lane[at];
}

static fth_status record(fth_device *d, fth_err *err)
{
    seen(NULL);
    MAY_FAIL(err);
    d->recording = calloc(1, sizeof *d->recording);
    return d->recording ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory for a recording");
}

static fth_status recorded(fth_device *d, fth_recording **out, fth_err *err)
{
    *out = d->recording;
    d->recording = NULL;
    if ((*out)->n <= RECORDED && !fails()) {
        atomic_fetch_add(&seen_recordings, 1);
        return FTH_OK;
    }
    free(*out);
    *out = NULL;
    return FTH_FAIL(err, FTH_E_DEVICE, "the recording failed");
}

static fth_status replay(fth_device *d, fth_recording *r, fth_mark **begun, fth_err *err)
{
    *begun = &r->begun;
    seen(NULL);
    usleep((useconds_t)replay_us);
    MAY_FAIL(err);
    put_now(d, FTH_LANE_COMPUTE,
            &(work){.kind = SET, .mark = &r->begun, .number = asked(d, &r->begun, 1)});
    for (int64_t i = 0; i < r->n; i++) {
        work w = r->work[i];
        if (w.kind == SET || w.kind == WAIT) w.number = asked(d, w.mark, w.kind == SET);
        put_now(d, w.lane, &w);
    }
    atomic_fetch_add(&seen_replays, 1);
    return FTH_OK;
}

static void forget(fth_device *d, fth_recording *r)
{
    (void)d;
    free(r);
}

/* ---- memory ---- */

static void count_pages(int64_t bytes)
{
    const uint64_t before = atomic_fetch_add(&mapped, (uint64_t)bytes);
    if (bytes > 0 && before + (uint64_t)bytes > most_mapped) most_mapped = before + (uint64_t)bytes;
}

static char *reserve(void *self, uint64_t *bytes)
{
    (void)self;
    char *p = mmap(NULL, *bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void unreserve(void *self, char *base, uint64_t bytes)
{
    (void)self;
    (void)munmap(base, bytes);
}

static bool commit(void *self, char *base, uint64_t bytes)
{
    (void)self;
    seen(&seen_blocks);
    if (fails() || mprotect(base, bytes, PROT_READ | PROT_WRITE) != 0) return false;
    count_pages((int64_t)bytes);
    return true;
}

static bool decommit(void *self, char *base, uint64_t bytes)
{
    (void)self;
    seen(&seen_blocks);
    if (madvise(base, bytes, MADV_DONTNEED) != 0 || mprotect(base, bytes, PROT_NONE) != 0)
        return false;
    count_pages(-(int64_t)bytes);
    return true;
}

static void *map(void *self, fth_how how, uint64_t bytes)
{
    (void)self, (void)how;
    seen(&seen_blocks);
    if (fails()) return NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    count_pages((int64_t)bytes);
    return p;
}

static bool unmap(void *self, fth_how how, void *block, uint64_t bytes)
{
    (void)self, (void)how;
    seen(&seen_blocks);
    if (munmap(block, bytes) != 0) return false;
    count_pages(-(int64_t)bytes);
    return true;
}

static uint64_t trim(void *self)
{
    (void)self;
    return 0;
}

static uint64_t free_now(void *self)
{
    (void)self;
    seen(&seen_questions);
    return total_bytes - mapped;
}

static void get_memory(fth_device *d, fth_mem_system *out)
{
    *out = (fth_mem_system){.self = d,
                            .device = 1,
                            .page = 2 << 20,
                            .reserve = reserve,
                            .unreserve = unreserve,
                            .commit = commit,
                            .decommit = decommit,
                            .map = map,
                            .unmap = unmap,
                            .trim = trim,
                            .free_now = free_now};
}

/* ---- kernels ---- */

/* More than the loops want: kernels of a GPU have workspace that follows the extents, so a plan
 * must have looked at the largest of each. */
static uint64_t scratch(const fth_call *call)
{
    const fth_node *node = call->node;
    uint64_t bytes = node->op->scratch ? node->op->scratch(call) : 0;
    for (int i = 0; i < node->n_in; i++)
        for (int d = 0; d < node->in[i].n_axes; d++) bytes += 8 * (uint64_t)call->in[i].extent[d];
    return bytes;
}

static fth_status run(const fth_call *call)
{
    seen(NULL);
    MAY_FAIL(call->err);
    const lane *l = call->stream;
    put(call->device, (fth_lane)(l - call->device->lane), &(work){.kind = CALL, .call = *call});
    return FTH_OK;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    return FTH_FAIL(err, (fth_status)fault->code, "%s failed on the device", node->op->name);
}

static const fth_kernel reference = {
    .op = "any", .scratch = scratch, .run = run, .explain = explain};

static const fth_kernel *find(const fth_node *node)
{
    return !node->op->run || (lacking && strcmp(lacking, node->op->name) == 0) ? NULL : &reference;
}

static const fth_kernel *kernel(int i)
{
    return i == 0 ? &reference : NULL;
}

static const fth_device_table table = {
    .count = count,
    .open = open_device,
    .close = close_device,
    .get_info = get_info,
    .get_memory = get_memory,
    .pin = pin,
    .unpin = unpin,
    .copy = copy,
    .fill = fill,
    .gather_rows = gather_rows,
    .mark_create = mark_create,
    .mark_destroy = mark_destroy,
    .mark_set = mark_set,
    .lane_wait = lane_wait,
    .host_wait = host_wait,
    .drain = drain,
    .seconds = seconds,
    .stream = stream,
    .record = record,
    .recorded = recorded,
    .replay = replay,
    .forget = forget,
    .watch = watch,
    .watch_now = watch_now,
    .watch_read = watch_read,
    .unwatch = unwatch,
};

const fth_backend t_host_backend = {.abi = FTH_BACKEND_ABI,
                                    .name = "host",
                                    .version = FTH_VERSION_TEXT,
                                    .find = find,
                                    .kernel = kernel,
                                    .device = &table};
