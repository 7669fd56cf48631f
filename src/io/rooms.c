/* rooms.c - rooms of one size for readers that unpack; see rooms.h. */
#include "io/rooms.h"

#include "base/assert.h"
#include "base/checked.h"

enum {
    SHARE = 16, /* rooms after the first fit in 1/16 of the budget: most is for the data */
    ALIGN = 64  /* a cache line: rooms of two threads share none */
};

fth_status fth__rooms_open(fth__rooms *r, fth_mem *mem, const char *label, uint64_t each,
                           fth_err *err)
{
    fth_mem_stats now;
    *r = (fth__rooms){.mem = mem};
    if (!fth__round_up_u64(fth__max_u64(each, 1), ALIGN, &r->each) ||
        r->each > UINT64_MAX / FTH__ROOMS)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: more bytes than can be counted", label);
    fth_mem_get_stats(mem, &now);
    const uint64_t fit = now.budget_bytes / SHARE / r->each;
    r->n = (int)fth__max_u64(1, fth__min_u64(fit, FTH__ROOMS));
    r->bytes = r->each * (uint64_t)r->n;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, r->bytes, label, &r->block, err));
    for (int i = 0; i < r->n; i++) r->free[i] = (char *)r->block + (uint64_t)i * r->each;
    r->n_free = r->n;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->freed, NULL);
    return FTH_OK;
}

void fth__rooms_close(fth__rooms *r)
{
    if (!r->block) return;
    (void)fth_mem_release(r->mem, r->block, NULL);
    pthread_cond_destroy(&r->freed);
    pthread_mutex_destroy(&r->lock);
    *r = (fth__rooms){0};
}

void *fth__rooms_take(fth__rooms *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->n_free == 0) pthread_cond_wait(&r->freed, &r->lock);
    FTH_ASSERT(r->n_free <= r->n);
    void *room = r->free[--r->n_free];
    pthread_mutex_unlock(&r->lock);
    return room;
}

void fth__rooms_give(fth__rooms *r, void *room)
{
    pthread_mutex_lock(&r->lock);
    FTH_ASSERT(r->n_free < r->n); /* none is given back twice */
    FTH_ASSERT((uint64_t)((char *)room - (char *)r->block) % r->each == 0);
    r->free[r->n_free++] = room;
    pthread_cond_signal(&r->freed);
    pthread_mutex_unlock(&r->lock);
}
