/* mem/system.h - a ledger over memory that is not the host's.
 *
 * The same records, classes, budget, errors and statistics as fth_mem_create gives; what differs is
 * where memory comes from. Pages of the reserved range are the system's own size and are backed
 * exactly when a block lies in them, and a cached block of the pool serves only requests of its own
 * size, because it cannot be cut. Blocks say the system's device. Without a reserved range small
 * blocks are mapped one by one, as DIRECT. There are no PINNED and no MAPPED blocks.
 */
#ifndef FTH_MEM_SYSTEM_H
#define FTH_MEM_SYSTEM_H

#include <fathom/backend.h>

/* `system` is copied; what its `self` points to must outlive the ledger. A budget of 0 is 90 % of
 * what the system says is free. */
FTH_MUST_USE fth_status fth_mem_create_on(fth_mem **out, const fth_mem_options *opt,
                                          const fth_mem_system *system, fth_err *err);

/* Whose memory a ledger counts, for those who copy to and from it; the ledger itself has no use for
 * it. `host` is the ledger of the host's memory beside it. */
typedef struct fth__mem_owner {
    const fth_device_table *table; /* NULL: nobody said */
    fth_device *device;
    fth_mem *host;
} fth__mem_owner;
void fth__mem_set_owner(fth_mem *mem, const fth__mem_owner *owner);
/* false: the memory is the host's. */
bool fth__mem_get_owner(const fth_mem *mem, fth__mem_owner *owner);

#endif
