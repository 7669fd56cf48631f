/* team.c - workers that share out the indices of one loop at a time.
 *
 * Workers sleep until a loop is posted, take indices from a shared counter until none is left, and
 * sleep again. A loop waits for the workers that joined it, not for those that had no time to wake
 * up: most loops are shorter than that. A second caller while a loop is going on runs its own loop
 * alone: which worker takes which index never changes a result.
 */
#include "run/team.h"

#include "base/assert.h"
#include "base/thread.h"
#include "mem/heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum {
    WAIT_NS = 20000000
}; /* between two questions while the others finish: below ASK_MS of progress.c */

typedef struct crew crew;

typedef struct worker {
    crew *crew;
    pthread_t thread;
    int index;
} worker;

struct crew {
    fth_mem *mem;
    int threads, started;
    worker *w;
    pthread_mutex_t busy, lock;
    pthread_cond_t post, done;
    uint64_t posted; /* loops so far */
    int working;     /* workers that have joined the current loop and not finished it */
    bool open;       /* workers may join it */
    bool stop;
    int64_t n;
    atomic_int_fast64_t next;
    fth_team *team; /* whose loop it is */
    void (*fn)(void *arg, int64_t i, int worker);
    void *arg;
};

struct fth_team {
    fth_mem *mem;
    crew *crew; /* NULL: none but the caller */
    bool own;   /* ended with the team */
    bool (*go_on)(void *user);
    void *user;
    atomic_bool off;
    const fth_team *leader; /* off when this one is; NULL: none */
    /* Of the kernel's work, for the running thread: what is done, and what will be when the part
     * that goes on, or comes next, ends. */
    double done, until;
    int64_t n, at;   /* indices of its loop, and those that are done of a loop without others */
    bool looping;    /* others see it inside a loop: theirs is part of an index */
    bool shared;     /* with others */
    pthread_t asker; /* who began it: others that begin loops inside of it ask nobody */
};

bool fth__team_off(const fth_team *t)
{
    if (!t) return false;
    return atomic_load_explicit(&t->off, memory_order_relaxed) || fth__team_off(t->leader);
}

bool fth__team_goes_on(fth_team *t)
{
    if (!t) return true;
    if (!fth__team_off(t) && t->go_on && !t->go_on(t->user)) atomic_store(&t->off, true);
    return !fth__team_off(t);
}

bool fth_team_cancelled(fth_team *t)
{
    return !fth__team_goes_on(t);
}

const fth_team *fth__team_around(const fth_team *t)
{
    const crew *c = t ? t->crew : NULL;
    for (int i = 1; c && i <= c->started; i++)
        if (pthread_equal(c->w[i].thread, pthread_self())) return c->team;
    return NULL;
}

void fth__team_begin(fth_team *t)
{
    if (!t) return;
    t->done = t->until = 0.0;
    t->looping = false;
}

void fth_team_until(fth_team *t, double share)
{
    if (!t || !t->go_on || t->looping) return;
    t->done = t->until;
    if (share > t->until) t->until = share < 1.0 ? share : 1.0;
}

/* False: it is not counted. */
static bool begin_loop(fth_team *t, int64_t n, bool shared)
{
    if (!t || !t->go_on || t->looping) return false; /* nobody asks, or a loop inside of one */
    if (t->until <= t->done) t->until = 1.0;         /* nothing was said */
    t->n = n;
    t->at = 0;
    t->shared = shared;
    t->asker = pthread_self();
    t->looping = true;
    return true;
}

static void end_loop(fth_team *t)
{
    t->looping = false;
    t->done = t->until;
}

double fth__team_share_done(const fth_team *t)
{
    if (!t) return 0.0;
    if (!t->looping || t->n < 1) return t->done;
    int64_t at = t->at;
    /* of those that were taken each worker has one in hand, once there is none left too */
    if (t->shared)
        at = (int64_t)atomic_load_explicit(&t->crew->next, memory_order_relaxed) - t->crew->threads;
    const double share = at <= 0 ? 0.0 : at < t->n ? (double)at / (double)t->n : 1.0;
    return t->done + (t->until - t->done) * share;
}

static void take_indices(crew *c, int index)
{
    fth_team *t = c->team;
    for (;;) {
        if (index == 0 ? !fth__team_goes_on(t) : fth__team_off(t)) return;
        const int64_t i = atomic_fetch_add(&c->next, 1);
        if (i >= c->n) return;
        c->fn(c->arg, i, index);
    }
}

static void *work(void *arg)
{
    worker *w = arg;
    crew *c = w->crew;
    uint64_t seen = 0;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->stop && (!c->open || c->posted == seen)) pthread_cond_wait(&c->post, &c->lock);
        if (c->stop) break;
        seen = c->posted;
        c->working++;
        FTH_ASSERT(c->working <= c->threads - 1 && w->index < c->threads);
        pthread_mutex_unlock(&c->lock);
        take_indices(c, w->index);
        pthread_mutex_lock(&c->lock);
        FTH_ASSERT(c->working > 0);
        if (--c->working == 0 && !c->open) pthread_cond_signal(&c->done);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static fth_status start(crew *c, fth_err *err)
{
    FTH_TRY(fth__heap_take(c->mem, c->threads, sizeof *c->w, (void **)&c->w, err));
    for (int i = 1; i < c->threads; i++) {
        c->w[i] = (worker){.crew = c, .index = i};
        if (fth__thread_start(&c->w[i].thread, work, &c->w[i]) != 0)
            return FTH_FAIL(err, FTH_E_THREAD, "worker %d of %d could not be started", i,
                            c->threads);
        c->started = i;
    }
    return FTH_OK;
}

static void end_crew(crew *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->post);
    pthread_mutex_unlock(&c->lock);
    for (int i = 1; i <= c->started; i++) pthread_join(c->w[i].thread, NULL);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->post);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->busy);
    fth__heap_free(c->mem, c->w);
    fth__heap_free(c->mem, c);
}

static fth_status make_crew(crew **out, fth_mem *mem, int threads, fth_err *err)
{
    crew *c = fth__heap_alloc(mem, sizeof *c);
    if (!c) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a team of %d workers", threads);
    c->mem = mem;
    c->threads = threads;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->busy, NULL);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->post, NULL);
    pthread_cond_init(&c->done, &clock);
    pthread_condattr_destroy(&clock);
    const fth_status s = start(c, err);
    if (s != FTH_OK)
        end_crew(c);
    else
        *out = c;
    return s;
}

fth_status fth_team_create(fth_team **out, fth_mem *mem, int threads, fth_err *err)
{
    *out = NULL;
    if (threads < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "a team of %d workers was asked for", threads);
    FTH_TRY(fth__team_share(out, mem, NULL, NULL, NULL, err));
    (*out)->own = true;
    const fth_status s = make_crew(&(*out)->crew, mem, threads, err);
    if (s == FTH_OK) return FTH_OK;
    fth_team_destroy(*out);
    *out = NULL;
    return s;
}

fth_status fth__team_share(fth_team **out, fth_mem *mem, fth_team *other, bool (*go_on)(void *user),
                           void *user, fth_err *err)
{
    *out = NULL;
    fth_team *t = fth__heap_alloc(mem, sizeof *t);
    if (!t) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a team");
    t->mem = mem;
    t->crew = other ? other->crew : NULL;
    t->go_on = go_on;
    t->user = user;
    atomic_init(&t->off, false);
    *out = t;
    return FTH_OK;
}

fth_status fth__team_follow(fth_team **out, fth_mem *mem, const fth_team *other, fth_err *err)
{
    FTH_TRY(fth__team_share(out, mem, NULL, NULL, NULL, err));
    (*out)->leader = other;
    return FTH_OK;
}

void fth_team_destroy(fth_team *t)
{
    if (!t) return;
    if (t->own && t->crew) end_crew(t->crew);
    fth__heap_free(t->mem, t);
}

/* Wait for the others, and go on asking meanwhile. */
static void wait_for_others(crew *c, fth_team *t)
{
    while (c->working > 0) {
        if (!t->go_on || fth__team_off(t)) {
            pthread_cond_wait(&c->done, &c->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += WAIT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&c->done, &c->lock, &until) == 0) continue;
        pthread_mutex_unlock(&c->lock);
        (void)fth__team_goes_on(t);
        pthread_mutex_lock(&c->lock);
    }
}

static void run_alone(fth_team *t, int64_t n, void (*fn)(void *arg, int64_t i, int worker),
                      void *arg)
{
    const bool counted = begin_loop(t, n, false),
               may_ask = counted || !t || !t->looping || pthread_equal(t->asker, pthread_self());
    for (int64_t i = 0; i < n; i++) {
        if (counted) t->at = i;
        if (may_ask ? !fth__team_goes_on(t) : fth__team_off(t)) break;
        fn(arg, i, 0);
    }
    if (counted) end_loop(t);
}

void fth_team_run(fth_team *t, int64_t n, void (*fn)(void *arg, int64_t i, int worker), void *arg)
{
    crew *c = t ? t->crew : NULL;
    if (!c || n < 2 || c->threads < 2 || pthread_mutex_trylock(&c->busy) != 0) {
        run_alone(t, n, fn, arg);
        return;
    }
    const bool counted = begin_loop(t, n, true);
    pthread_mutex_lock(&c->lock);
    c->n = n;
    c->team = t;
    c->fn = fn;
    c->arg = arg;
    atomic_store(&c->next, 0);
    c->open = true;
    c->posted++;
    pthread_mutex_unlock(&c->lock);
    if (n == 2)
        pthread_cond_signal(&c->post); /* one helper has all that is left */
    else
        pthread_cond_broadcast(&c->post);
    take_indices(c, 0);
    pthread_mutex_lock(&c->lock);
    c->open = false;
    wait_for_others(c, t);
    FTH_ASSERT(c->working == 0 && c->team == t);
    pthread_mutex_unlock(&c->lock);
    if (counted) end_loop(t);
    pthread_mutex_unlock(&c->busy);
}
