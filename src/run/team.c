/* team.c - workers that share out the indices of one loop at a time.
 *
 * Workers sleep until a loop is posted, take indices from a shared counter until none is left, and
 * sleep again. A second caller while a loop is going on runs its own loop alone: which worker takes
 * which index never changes a result.
 */
#include "run/team.h"

#include "mem/heap.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct worker {
    fth_team *team;
    pthread_t thread;
    int index;
} worker;

struct fth_team {
    fth_mem *mem;
    int threads, started;
    worker *w;
    pthread_mutex_t busy, lock;
    pthread_cond_t post, done;
    uint64_t turn; /* number of loops posted */
    int working;   /* workers that have not finished the current loop */
    bool stop;
    int64_t n;
    atomic_int_fast64_t next;
    void (*fn)(void *arg, int64_t i, int worker);
    void *arg;
};

static void take_indices(fth_team *t, int index)
{
    for (;;) {
        const int64_t i = atomic_fetch_add(&t->next, 1);
        if (i >= t->n) return;
        t->fn(t->arg, i, index);
    }
}

static void *work(void *arg)
{
    worker *w = arg;
    fth_team *t = w->team;
    uint64_t seen = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!t->stop && t->turn == seen) pthread_cond_wait(&t->post, &t->lock);
        if (t->stop) break;
        seen = t->turn;
        pthread_mutex_unlock(&t->lock);
        take_indices(t, w->index);
        pthread_mutex_lock(&t->lock);
        if (--t->working == 0) pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static fth_status start(fth_team *t, fth_err *err)
{
    FTH_TRY(fth__heap_take(t->mem, t->threads, sizeof *t->w, (void **)&t->w, err));
    for (int i = 1; i < t->threads; i++) {
        t->w[i] = (worker){.team = t, .index = i};
        if (pthread_create(&t->w[i].thread, NULL, work, &t->w[i]) != 0)
            return FTH_FAIL(err, FTH_E_THREAD, "worker %d of %d could not be started", i,
                            t->threads);
        t->started = i;
    }
    return FTH_OK;
}

fth_status fth__team_create(fth_team **out, fth_mem *mem, int threads, fth_err *err)
{
    *out = NULL;
    fth_team *t = fth__heap_alloc(mem, sizeof *t);
    if (!t) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a team of %d workers", threads);
    t->mem = mem;
    t->threads = threads;
    pthread_mutex_init(&t->busy, NULL);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->post, NULL);
    pthread_cond_init(&t->done, NULL);
    const fth_status s = start(t, err);
    if (s != FTH_OK)
        fth__team_destroy(t);
    else
        *out = t;
    return s;
}

void fth__team_destroy(fth_team *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->post);
    pthread_mutex_unlock(&t->lock);
    for (int i = 1; i <= t->started; i++) pthread_join(t->w[i].thread, NULL);
    pthread_cond_destroy(&t->done);
    pthread_cond_destroy(&t->post);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->busy);
    fth__heap_free(t->mem, t->w);
    fth__heap_free(t->mem, t);
}

void fth_team_run(fth_team *t, int64_t n, void (*fn)(void *arg, int64_t i, int worker), void *arg)
{
    if (!t || n < 2 || t->threads < 2 || pthread_mutex_trylock(&t->busy) != 0) {
        for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->n = n;
    t->fn = fn;
    t->arg = arg;
    atomic_store(&t->next, 0);
    t->working = t->threads - 1;
    t->turn++;
    pthread_cond_broadcast(&t->post);
    pthread_mutex_unlock(&t->lock);
    take_indices(t, 0);
    pthread_mutex_lock(&t->lock);
    while (t->working > 0) pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
    pthread_mutex_unlock(&t->busy);
}
