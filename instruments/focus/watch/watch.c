/* watch.c - see watch.h. */
#include "watch.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 64 }; /* rows of a timeline; more threads than that share the last */

struct fo_watch {
    fth_mem *mem;
    fo_watch_options opt;
    pthread_mutex_t lock, telling;
    pthread_cond_t ended;
    int busy[FO_PHASES], waiting[FO_PHASES];
    uint64_t taken[FO_PHASES]; /* slots, a bit each */
    fo_stack_times *stack;
};

static const char *const phase_names[FO_PHASES] = {"read", "encode", "write"};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

fth_status fo_watch_create(fo_watch **out, fth_mem *mem, const fo_watch_options *opt, fth_err *err)
{
    fo_watch *w = NULL;
    void *stacks = NULL;
    const uint64_t bytes = (uint64_t)(opt->n_stacks + 1) * sizeof *w->stack;
    *out = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, sizeof *w, "watch", (void **)&w, err));
    const fth_status s = fth_mem_take(mem, FTH_MEM_POOL, bytes, "times of stacks", &stacks, err);
    if (s != FTH_OK) {
        fth_mem_release(mem, w, NULL);
        return s;
    }
    *w = (fo_watch){.mem = mem, .opt = *opt, .stack = memset(stacks, 0, bytes)};
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->telling, NULL);
    pthread_cond_init(&w->ended, NULL);
    *out = w;
    return FTH_OK;
}

void fo_watch_destroy(fo_watch *w)
{
    if (!w) return;
    fth_mem *mem = w->mem;
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->telling);
    pthread_mutex_destroy(&w->lock);
    fth_mem_release(mem, w->stack, NULL);
    fth_mem_release(mem, w, NULL);
}

/* ---- turns ---- */

static int take_slot(fo_watch *w, fo_phase phase)
{
    int slot = 0;
    while (slot < SLOTS - 1 && (w->taken[phase] >> slot & 1)) slot++;
    w->taken[phase] |= UINT64_C(1) << slot;
    return slot;
}

/* Threads that do it or wait for their turn; under the lock. */
static void count_queue(const fo_watch *w, fo_phase phase)
{
    char name[32];
    if (!w->opt.trace) return;
    snprintf(name, sizeof name, "queue_depth %s", phase_names[phase]);
    fth_trace_add_counter(w->opt.trace, name, fth_trace_now(w->opt.trace),
                          w->busy[phase] + w->waiting[phase]);
}

fo_turn fo_watch_begin(fo_watch *w, fo_phase phase, int64_t stack)
{
    fo_turn turn = {.phase = phase, .stack = stack};
    if (!w) return turn;
    pthread_mutex_lock(&w->lock);
    w->waiting[phase]++;
    count_queue(w, phase);
    while (w->opt.most[phase] > 0 && w->busy[phase] >= w->opt.most[phase])
        pthread_cond_wait(&w->ended, &w->lock);
    w->waiting[phase]--;
    w->busy[phase]++;
    turn.slot = take_slot(w, phase);
    pthread_mutex_unlock(&w->lock);
    turn.start_ns = fth_trace_now(w->opt.trace);
    turn.start_s = now();
    return turn;
}

static void add_span(const fo_watch *w, const fo_turn *turn, uint64_t bytes, int64_t end_ns)
{
    char name[48], track[24], stack[32] = "";
    if (!w->opt.trace) return;
    if (w->opt.name) w->opt.name(w->opt.user, turn->stack, stack, sizeof stack);
    snprintf(name, sizeof name, "%s %s", phase_names[turn->phase], stack);
    snprintf(track, sizeof track, "%s %d", phase_names[turn->phase], turn->slot + 1);
    fth_trace_add_span(w->opt.trace,
                       &(fth_trace_span){.name = name,
                                         .category = "fathom_stage",
                                         .track = fth_trace_track(w->opt.trace, track),
                                         .start_ns = turn->start_ns,
                                         .end_ns = end_ns,
                                         .bytes = bytes});
}

void fo_watch_end(fo_watch *w, const fo_turn *turn, uint64_t bytes)
{
    if (!w) return;
    const double seconds = now() - turn->start_s;
    const int64_t end_ns = fth_trace_now(w->opt.trace);
    add_span(w, turn, bytes, end_ns);
    pthread_mutex_lock(&w->lock);
    fo_stack_times *t = &w->stack[turn->stack];
    const bool first = t->end_ns == 0;
    t->phase[turn->phase].seconds += seconds;
    t->phase[turn->phase].bytes += bytes;
    if (first || turn->start_ns < t->start_ns) t->start_ns = turn->start_ns;
    if (end_ns > t->end_ns) t->end_ns = end_ns;
    w->busy[turn->phase]--;
    count_queue(w, turn->phase);
    w->taken[turn->phase] &= ~(UINT64_C(1) << turn->slot);
    pthread_cond_broadcast(&w->ended);
    pthread_mutex_unlock(&w->lock);
}

/* ---- parts of a stack ---- */

void fo_watch_expect(fo_watch *w, int64_t stack, int64_t parts)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stack[stack] = (fo_stack_times){.parts = parts};
    pthread_mutex_unlock(&w->lock);
}

void fo_watch_arrive(fo_watch *w, int64_t stack, int64_t parts)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    const bool last = w->stack[stack].parts > 0 && (w->stack[stack].parts -= parts) <= 0;
    pthread_mutex_unlock(&w->lock);
    if (!last || !w->opt.whole) return;
    pthread_mutex_lock(&w->telling);
    w->opt.whole(w->opt.user, stack);
    pthread_mutex_unlock(&w->telling);
}

fo_stack_times fo_watch_times(const fo_watch *w, int64_t stack)
{
    return w->stack[stack];
}

/* ---- a source ---- */

static fth_status read_watched(void *self, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    const fo_watched *s = self;
    const int64_t element = fth_dtype_size(s->source.dtype);
    int64_t each = element, from[FTH_MAX_AXES], count[FTH_MAX_AXES];
    for (int a = 0; a < s->source.n_axes; a++) {
        from[a] = lo[a];
        count[a] = n[a];
        if (a > 0) each *= n[a];
    }
    count[0] = 1;
    for (int64_t i = 0; i < n[0]; i++) {
        from[0] = lo[0] + i;
        const fo_turn turn = fo_watch_begin(s->watch, FO_READ, s->chosen[from[0]]);
        const fth_status status =
            s->source.read(s->source.self, from, count, (char *)dst + i * each, err);
        fo_watch_end(s->watch, &turn, (uint64_t)each);
        if (status != FTH_OK) return status;
    }
    return FTH_OK;
}

fth_source fo_watch_source(fo_watch *w, const fth_source *source, const int64_t *chosen,
                           fo_watched *to)
{
    if (!w) return *source;
    *to = (fo_watched){w, *source, chosen};
    fth_source out = *source;
    out.self = to;
    out.read = read_watched;
    return out;
}
