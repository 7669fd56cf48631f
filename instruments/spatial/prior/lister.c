/* lister.c - see lister.h. Indices are checked before they are used to write. */
#include "lister.h"

#include "../ops/local/local.h"

#include <pthread.h>
#include <string.h>

struct sp_lister {
    fth_mem *mem;
    sp_lists_of of;
    int64_t *cell;
    int32_t *ptr, *items;
    pthread_t thread;
    bool started;
    /* between the caller and the thread, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool busy, stop;
    fth_status status;
    fth_err err;
};

static fth_status check(const sp_lister *l, fth_err *err)
{
    const int64_t cells = l->of.cells, k = l->of.k;
    for (int64_t t = 0; t < l->of.batch; t++) {
        const int64_t at = l->cell[t];
        if (at < 0 || at >= cells)
            return FTH_FAIL(err, FTH_E_INDEX_RANGE, "cell %lld of a batch, of %lld cells",
                            (long long)at, (long long)cells);
        for (int64_t j = 0; j < k; j++) {
            const int32_t nbr = l->of.nbr[at * k + j];
            if (nbr < 0 || nbr >= cells)
                return FTH_FAIL(err, FTH_E_INDEX_RANGE,
                                "neighbour %lld of cell %lld is %d, of %lld cells", (long long)j,
                                (long long)at, nbr, (long long)cells);
        }
    }
    return FTH_OK;
}

static fth_status list(sp_lister *l, fth_err *err)
{
    FTH_TRY(check(l, err));
    sp_local_touch_lists(l->ptr, l->items, l->of.cells, l->cell, l->of.batch, l->of.nbr, l->of.k);
    return FTH_OK;
}

static void *work(void *arg)
{
    sp_lister *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->busy && !l->stop) pthread_cond_wait(&l->changed, &l->lock);
        if (l->stop) break;
        pthread_mutex_unlock(&l->lock);
        fth_err_clear(&l->err);
        const fth_status s = list(l, &l->err);
        pthread_mutex_lock(&l->lock);
        l->status = s;
        l->busy = false;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static fth_status start(sp_lister *l, fth_err *err)
{
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    l->started = pthread_create(&l->thread, NULL, work, l) == 0;
    if (l->started) return FTH_OK;
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    return FTH_FAIL(err, FTH_E_THREAD, "no thread could be started to list neighbours ahead");
}

fth_status sp_lister_create(sp_lister **out, fth_mem *mem, const sp_lists_of *of, fth_err *err)
{
    *out = NULL;
    void *block = NULL, *cell = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(sp_lister), "lister", &block, err));
    sp_lister *l = block;
    *l = (sp_lister){.mem = mem, .of = *of};
    const uint64_t bytes = (uint64_t)of->batch * sizeof *l->cell;
    fth_status s = fth_mem_take(mem, FTH_MEM_META, bytes, "cells of the batch", &cell, err);
    l->cell = cell;
    if (s == FTH_OK) s = start(l, err);
    if (s != FTH_OK)
        sp_lister_destroy(l);
    else
        *out = l;
    return s;
}

void sp_lister_destroy(sp_lister *l)
{
    if (!l) return;
    if (l->started) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_broadcast(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
        pthread_cond_destroy(&l->changed);
        pthread_mutex_destroy(&l->lock);
    }
    fth_mem_release(l->mem, l->cell, NULL);
    fth_mem_release(l->mem, l, NULL);
}

/* Until the thread is not busy; the lock is held. */
static void rest(sp_lister *l)
{
    while (l->busy) pthread_cond_wait(&l->changed, &l->lock);
}

void sp_lister_ask(sp_lister *l, const int64_t *cell, int32_t *ptr, int32_t *items)
{
    pthread_mutex_lock(&l->lock);
    rest(l); /* lists that were requested and not taken are rebuilt */
    memcpy(l->cell, cell, (size_t)l->of.batch * sizeof *cell);
    l->ptr = ptr;
    l->items = items;
    l->busy = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

fth_status sp_lister_take(sp_lister *l, fth_err *err)
{
    pthread_mutex_lock(&l->lock);
    rest(l);
    const fth_status s = l->status;
    if (s != FTH_OK && err) *err = l->err;
    pthread_mutex_unlock(&l->lock);
    return s;
}
