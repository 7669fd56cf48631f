/* lister.h - which batch cells contribute to which training cell, listed for the next batch by a
 * thread while a step runs: a device would otherwise wait for the host.
 */
#ifndef SPATIAL_LISTER_H
#define SPATIAL_LISTER_H

#include <fathom/fathom.h>

typedef struct sp_lister sp_lister;

/* Sizes and neighbour lists. */
typedef struct sp_lists_of {
    const int32_t *nbr; /* [cells][k] */
    int64_t cells, k, batch;
} sp_lists_of;

fth_status sp_lister_create(sp_lister **out, fth_mem *mem, const sp_lists_of *of, fth_err *err);
void sp_lister_destroy(sp_lister *l); /* NULL is allowed */
/* Start the lists of these cells, which are copied; ptr and items (local.h) belong to the thread
 * until they are taken. */
void sp_lister_ask(sp_lister *l, const int64_t *cell, int32_t *ptr, int32_t *items);
/* Wait for the lists requested last. */
fth_status sp_lister_take(sp_lister *l, fth_err *err);

#endif
