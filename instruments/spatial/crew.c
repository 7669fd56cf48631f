/* crew.c - see crew.h. Helpers sleep between runs; a run is over when none of them is in it. */
#include "crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct sp_crew {
    fth_mem *mem;
    int helpers;
    pthread_mutex_t lock;
    pthread_cond_t begun, done;
    bool stop;
    int64_t run; /* its number */
    int inside;  /* helpers that are in it */
    int64_t n;
    atomic_int_fast64_t next;
    void (*fn)(void *arg, int64_t i);
    void *arg;
    pthread_t thread[]; /* of the helpers */
};

static void take_part(sp_crew *c)
{
    int64_t i;
    while ((i = atomic_fetch_add(&c->next, 1)) < c->n) c->fn(c->arg, i);
}

static void *help(void *arg)
{
    sp_crew *c = arg;
    int64_t seen = 0;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->stop && c->run == seen) pthread_cond_wait(&c->begun, &c->lock);
        if (c->stop) break;
        seen = c->run;
        c->inside++;
        pthread_mutex_unlock(&c->lock);
        take_part(c);
        pthread_mutex_lock(&c->lock);
        if (--c->inside == 0) pthread_cond_signal(&c->done);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

fth_status sp_crew_create(sp_crew **out, fth_mem *mem, int threads, fth_err *err)
{
    void *block = NULL;
    const int most = threads > 1 ? threads - 1 : 0;
    const uint64_t bytes = sizeof(sp_crew) + (uint64_t)most * sizeof(pthread_t);
    *out = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, bytes, "threads that gather", &block, err));
    memset(block, 0, bytes);
    sp_crew *c = block;
    c->mem = mem;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->begun, NULL);
    pthread_cond_init(&c->done, NULL);
    while (c->helpers < most && pthread_create(&c->thread[c->helpers], NULL, help, c) == 0)
        c->helpers++;
    *out = c;
    return FTH_OK;
}

void sp_crew_destroy(sp_crew *c)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->begun);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->helpers; i++) pthread_join(c->thread[i], NULL);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->begun);
    pthread_mutex_destroy(&c->lock);
    fth_mem_release(c->mem, c, NULL);
}

void sp_crew_run(sp_crew *c, int64_t n, void (*fn)(void *arg, int64_t i), void *arg)
{
    if (!c || c->helpers == 0) {
        for (int64_t i = 0; i < n; i++) fn(arg, i);
        return;
    }
    pthread_mutex_lock(&c->lock);
    /* a helper that slept through the last run may still be on its way out of it */
    while (c->inside > 0) pthread_cond_wait(&c->done, &c->lock);
    c->n = n;
    c->fn = fn;
    c->arg = arg;
    atomic_store(&c->next, 0);
    c->run++;
    pthread_cond_broadcast(&c->begun);
    pthread_mutex_unlock(&c->lock);
    take_part(c);
    pthread_mutex_lock(&c->lock);
    while (c->inside > 0) pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
}
