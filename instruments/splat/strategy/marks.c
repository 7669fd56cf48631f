/* marks.c - see marks.h. */
#include "marks.h"

#include <string.h>

static int64_t blocks_of(int64_t n)
{
    return (n + GS_BLOCK - 1) / GS_BLOCK;
}

/* Whole blocks of words, so that a rank looks at nothing beyond them. */
static uint64_t size_of(int64_t n)
{
    return (uint64_t)blocks_of(n) * (sizeof(int64_t) + GS_BLOCK / 8);
}

/* A range of its own, because what one counts is known beforehand. */
uint64_t gs_marks_bytes(const fth_mem *mem, int64_t n)
{
    return fth_mem_range_cost(mem, size_of(n), size_of(n));
}

fth_status gs_marks_create(gs_marks *m, fth_mem *mem, int64_t n, const char *label, fth_err *err)
{
    *m = (gs_marks){.mem = mem, .n = n};
    FTH_TRY(fth_mem_reserve(mem, size_of(n), label, &m->block, err));
    const fth_status s = fth_mem_resize(mem, m->block, size_of(n), err); /* of 0 */
    if (s != FTH_OK) {
        gs_marks_free(m);
        return s;
    }
    m->before = m->block;
    m->word = (uint32_t *)(void *)(m->before + blocks_of(n));
    return FTH_OK;
}

void gs_marks_free(gs_marks *m)
{
    if (m->block) (void)fth_mem_release(m->mem, m->block, NULL);
    *m = (gs_marks){0};
}

/* Without the processor's own instruction, which not all have, the compiler calls a function. */
static int64_t count_bits(uint32_t v)
{
    if (v == 0 || v == UINT32_MAX) return v ? GS_WORD : 0; /* as most words are */
    v -= v >> 1 & 0x55555555u;
    v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
    return ((v + (v >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

void gs_marks_count_blocks(gs_marks *m, int64_t from, int64_t to)
{
    const int64_t words = GS_BLOCK / GS_WORD;
    for (int64_t b = from; b < to; b++) {
        int64_t count = 0;
        for (int64_t w = b * words; w < (b + 1) * words; w++) count += count_bits(m->word[w]);
        m->before[b] = count;
    }
}

void gs_marks_add_blocks(gs_marks *m)
{
    m->count = 0;
    for (int64_t b = 0; b < blocks_of(m->n); b++) {
        const int64_t here = m->before[b];
        m->before[b] = m->count;
        m->count += here;
    }
}

void gs_marks_count(gs_marks *m)
{
    gs_marks_count_blocks(m, 0, blocks_of(m->n));
    gs_marks_add_blocks(m);
}

int64_t gs_marks_rank(const gs_marks *m, int64_t row)
{
    int64_t rank = m->before[row / GS_BLOCK];
    for (int64_t w = row / GS_BLOCK * (GS_BLOCK / GS_WORD); w < row / GS_WORD; w++)
        rank += count_bits(m->word[w]);
    return rank + count_bits(m->word[row / GS_WORD] & (((uint32_t)1 << row % GS_WORD) - 1));
}
