/* io/rooms.h - rooms of one size for readers that unpack: as many as a part of the budget allows.
 *
 * They are taken from the ledger when a source is made, so a run knows of them beforehand; a reader
 * that finds none free waits for one.
 */
#ifndef FTH_IO_ROOMS_H
#define FTH_IO_ROOMS_H

#include <fathom/memory.h>

#include <pthread.h>

enum { FTH__ROOMS = 8 }; /* at most, one per thread that unpacks; bounds the memory, not tuned */

typedef struct fth__rooms {
    fth_mem *mem;
    void *block;
    uint64_t each, bytes; /* of a room; of all */
    int n, n_free;
    void *free[FTH__ROOMS];
    pthread_mutex_t lock;
    pthread_cond_t freed;
} fth__rooms;

fth_status fth__rooms_open(fth__rooms *r, fth_mem *mem, const char *label, uint64_t each,
                           fth_err *err);
void fth__rooms_close(fth__rooms *r); /* zeroed is allowed */
void *fth__rooms_take(fth__rooms *r);
void fth__rooms_give(fth__rooms *r, void *room);

#endif
