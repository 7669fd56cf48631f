/* mem/inject.h - failing on purpose, and what the process really uses.
 *
 * Inside the library only. src/io asks before each write to a file; tests count
 * the requests of a job and then run it again failing the first, the second...
 */
#ifndef FTH_MEM_INJECT_H
#define FTH_MEM_INJECT_H

#include <fathom/memory.h>

/* Start counting again from zero and fail the n-th request and the n-th write
 * from now on; 0 never. Each fails once. */
void fth__mem_inject(fth_mem *mem, int64_t fail_alloc, int64_t fail_write);
/* Requests for memory, writes, since creation or the last fth__mem_inject. */
int64_t fth__mem_alloc_count(const fth_mem *mem);
int64_t fth__mem_write_count(const fth_mem *mem);
/* Counts one write to a file; true when this one must fail (as ENOSPC would). NULL mem: false. */
bool fth__mem_write_fails(fth_mem *mem);

/* What a block of `bytes` costs in the ledger when taken as `how`, so that a
 * plan can be exact: the arena rounds up to 64, whole mappings to a page.
 * UINT64_MAX when it overflows. */
uint64_t fth__mem_cost(const fth_mem *mem, fth_how how, uint64_t bytes);

/* fth_mem_free_now with every path below `root` ("" for the real ones). */
uint64_t fth__mem_free_under(const char *root);
/* Resident bytes of this process, now and at most; 0 when the system does not say. */
uint64_t fth__mem_process_bytes(void);
uint64_t fth__mem_process_peak(void);
/* Make the peak start again at the present; false when the system does not allow it. */
bool fth__mem_process_peak_reset(void);

#endif
