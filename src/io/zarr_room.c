/* zarr_room.c - the rooms that chunks pass through: as many as a part of the budget allows. */
#include "base/assert.h"
#include "base/checked.h"
#include "io/zarr.h"

#include <string.h>

enum {
    SHARE = 16,        /* rooms after the first fit in 1/16 of the budget: most is for the data */
    ALIGN = 64,        /* a cache line: rooms of two threads share none */
    WINDOW = 256 << 10 /* bytes of a plain chunk that are read at once for short rows; not tuned */
};

static uint64_t up(uint64_t bytes)
{
    return bytes > UINT64_MAX - ALIGN ? UINT64_MAX : (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Reading chunks that are not packed needs a window, packing needs a chunk and a place. */
void fth__zarr_needs_add(fth__zarr_needs *all, const fth__zarr_meta *m, bool pack)
{
    const uint64_t bytes = fth__zarr_chunk_bytes(m);
    const bool plain = m->codecs.n == 0;
    fth__zarr_needs one = {.work = fth__codecs_room(&m->codecs, bytes, pack)};
    one.chunk = plain && !pack ? fth__min_u64(bytes, WINDOW) : bytes;
    /* bools are settled in a chunk of ours, whatever their layout */
    if (!fth__zarr_is_straight(m) || m->dtype == FTH_BOOL) one.chunk = bytes;
    one.packed = plain ? 0 : fth__codecs_most(&m->codecs, bytes);
    one.again = m->codecs.n > 1 ? one.packed : 0;
    one.index = m->sharded ? fth__zarr_index_bytes(m) : 0;
    all->chunk = fth__max_u64(all->chunk, one.chunk);
    all->packed = fth__max_u64(all->packed, one.packed);
    all->again = fth__max_u64(all->again, one.again);
    all->work = fth__max_u64(all->work, one.work);
    all->index = fth__max_u64(all->index, one.index);
    all->deflate = all->deflate || (!pack && fth__codecs_deflate(&m->codecs));
}

static void lay_out(fth__zarr_rooms *r, const fth__zarr_needs *needs)
{
    uint8_t *at = r->block;
    for (int i = 0; i < r->n; i++) {
        fth__zarr_room *room = &r->room[i];
        room->chunk = at, at += up(needs->chunk);
        room->one = at, at += up(needs->packed);
        room->two = at, at += up(needs->again);
        room->index = at, at += up(needs->index);
        room->work = at, at += up(needs->work);
        room->work_bytes = needs->work;
        room->chunk_bytes = needs->chunk;
        if (needs->deflate) room->unpacker = fth__unpacker_create();
    }
    FTH_ASSERT((uint64_t)(at - (uint8_t *)r->block) == r->bytes);
}

fth_status fth__zarr_rooms_open(fth__zarr_rooms *r, fth_mem *mem, const fth__zarr_needs *needs,
                                fth_err *err)
{
    fth_mem_stats now;
    *r = (fth__zarr_rooms){.mem = mem};
    fth_mem_get_stats(mem, &now);
    uint64_t each = add(up(needs->chunk), up(needs->index));
    each = add(each, add(up(needs->packed), up(needs->again)));
    each = add(each, up(needs->work));
    const uint64_t fit = each > 0 ? now.budget_bytes / SHARE / each : FTH__ZARR_ROOMS;
    r->n = (int)fth__max_u64(1, fth__min_u64(fit, FTH__ZARR_ROOMS));
    r->free = r->n;
    if (each > UINT64_MAX / FTH__ZARR_ROOMS)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "chunks have more bytes than can be counted");
    r->bytes = each * (uint64_t)r->n;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, r->bytes, "zarr chunks", &r->block, err));
    lay_out(r, needs);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->freed, NULL);
    return FTH_OK;
}

void fth__zarr_rooms_close(fth__zarr_rooms *r)
{
    if (!r->block) return;
    (void)fth_mem_release(r->mem, r->block, NULL);
    for (int i = 0; i < r->n; i++)
        if (r->room[i].unpacker) fth__unpacker_destroy(r->room[i].unpacker);
    pthread_cond_destroy(&r->freed);
    pthread_mutex_destroy(&r->lock);
    *r = (fth__zarr_rooms){0};
}

fth__zarr_room *fth__zarr_room_take(fth__zarr_rooms *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->free == 0) pthread_cond_wait(&r->freed, &r->lock);
    int i = 0;
    while (r->room[i].busy) i++;
    FTH_ASSERT(i < r->n);
    r->room[i].busy = true;
    r->free--;
    pthread_mutex_unlock(&r->lock);
    return &r->room[i];
}

void fth__zarr_room_give(fth__zarr_rooms *r, fth__zarr_room *room)
{
    pthread_mutex_lock(&r->lock);
    FTH_ASSERT(room->busy && r->free < r->n);
    room->busy = false;
    r->free++;
    pthread_cond_signal(&r->freed);
    pthread_mutex_unlock(&r->lock);
}
