/* mem/huge.h - what pages of 2 MiB add to the bytes that were asked for.
 *
 * The kernel may back a large block with huge pages, so the process grows by whole ones. A promise
 * about the process counts that rounding as far as the budget goes: where the budget is tight, the
 * exact bytes are all that can be promised within it.
 */
#ifndef FTH_MEM_HUGE_H
#define FTH_MEM_HUGE_H

#include <fathom/memory.h>

/* Whole pages of 2 MiB. */
uint64_t fth__huge_up(uint64_t bytes);
/* What the process holds when a block of `data` bytes and `beside` bytes of others come to the
 * ledger as it is now. *rounding (may be NULL): the part of it that pages of 2 MiB add. */
uint64_t fth__mem_with(const fth_mem *mem, uint64_t data, uint64_t beside, uint64_t *rounding);

#endif
