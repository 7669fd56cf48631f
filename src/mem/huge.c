/* huge.c - see huge.h. */
#include "mem/huge.h"

#include "mem/state.h"

enum {
    LARGE = FTH__HUGE / 2, /* blocks below this share pages with others */
    BLOCKS = 64            /* the largest ones; those after them are small in any program of ours */
};

uint64_t fth__huge_up(uint64_t bytes)
{
    const uint64_t huge = FTH__HUGE;
    return (bytes + huge - 1) / huge * huge;
}

static uint64_t rounding_of_blocks(const fth_mem *mem)
{
    fth_mem_block block[BLOCKS];
    uint64_t more = 0;
    int64_t n = fth_mem_list(mem, block, BLOCKS);
    if (n > BLOCKS) n = BLOCKS;
    for (int64_t i = 0; i < n && block[i].got_bytes >= LARGE; i++)
        more += fth__huge_up(block[i].got_bytes) - block[i].got_bytes;
    return more;
}

uint64_t fth__mem_with(const fth_mem *mem, uint64_t data, uint64_t beside, uint64_t *rounding)
{
    fth_mem_stats now;
    fth_mem_get_stats(mem, &now);
    const uint64_t exact = now.used_bytes + data + beside,
                   more = rounding_of_blocks(mem) + fth__huge_up(data) - data,
                   within = exact + more <= now.budget_bytes ? more : 0;
    if (rounding) *rounding = within;
    return exact + within;
}
