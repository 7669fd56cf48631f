/* marks.h - a bit for each of n rows, and how many are set before a row.
 *
 * Bits stand in words of 32 rows, and rows in blocks of 1024 with the count of the blocks before,
 * so that the rank of a row needs no list: 1.3 bits a row in all. Threads that set bits of whole
 * blocks share no word.
 */
#ifndef SPLAT_STRATEGY_MARKS_H
#define SPLAT_STRATEGY_MARKS_H

#include <fathom/memory.h>

enum { GS_WORD = 32, GS_BLOCK = 1024 }; /* rows */

typedef struct gs_marks {
    fth_mem *mem;
    void *block;
    int64_t n, count;
    int64_t *before; /* of each block of rows */
    uint32_t *word;
    bool apart; /* both are on a device, with the rows; here is the count alone */
} gs_marks;

/* No row is marked. */
fth_status gs_marks_create(gs_marks *m, fth_mem *mem, int64_t n, const char *label, fth_err *err);
void gs_marks_free(gs_marks *m); /* a cleared one is allowed */
/* What the ledger counts for marks of n rows. */
uint64_t gs_marks_bytes(const fth_mem *mem, int64_t n);

static inline bool gs_marks_has(const gs_marks *m, int64_t row)
{
    return m->word[row / GS_WORD] >> row % GS_WORD & 1;
}
static inline void gs_marks_set(gs_marks *m, int64_t row)
{
    m->word[row / GS_WORD] |= (uint32_t)1 << row % GS_WORD;
}
static inline void gs_marks_unset(gs_marks *m, int64_t row)
{
    m->word[row / GS_WORD] &= ~((uint32_t)1 << row % GS_WORD);
}
/* Fill `before` and `count`, after bits were set. */
void gs_marks_count(gs_marks *m);
/* The same in parts: how many each of some blocks has, then the sums. */
void gs_marks_count_blocks(gs_marks *m, int64_t from, int64_t to);
void gs_marks_add_blocks(gs_marks *m);
/* Marked rows before this one, of counted marks. */
int64_t gs_marks_rank(const gs_marks *m, int64_t row);

#endif
