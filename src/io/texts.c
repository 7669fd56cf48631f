/* texts.c - a list of strings: one run of characters, and where each starts. */
#include <fathom/io.h>

#include "base/assert.h"
#include "mem/heap.h"

#include <string.h>

struct fth_texts {
    fth_mem *mem;
    char *chars;
    int64_t *start;
    int64_t n, n_chars, cap_start, cap_chars;
    uint64_t most; /* names are bookkeeping, but not without limit: a file may repeat one forever */
};

fth_status fth_texts_create(fth_texts **out, fth_mem *mem, fth_err *err)
{
    *out = NULL;
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_texts), &block, err));
    fth_texts *t = block;
    t->mem = mem;
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    t->most = stats.budget_bytes;
    *out = t;
    return FTH_OK;
}

fth_status fth_texts_add(fth_texts *t, const char *chars, uint64_t n, fth_err *err)
{
    if (n >= t->most || (uint64_t)t->n_chars + n >= t->most)
        return FTH_FAIL(err, FTH_E_BUDGET,
                        "a list of strings would pass the memory budget of %llu bytes",
                        (unsigned long long)t->most);
    FTH_TRY(fth__grow(t->mem, &t->start, &t->cap_start, t->n + 1, err));
    FTH_TRY(fth__grow(t->mem, &t->chars, &t->cap_chars, t->n_chars + (int64_t)n + 1, err));
    t->start[t->n++] = t->n_chars;
    if (n > 0) memcpy(t->chars + t->n_chars, chars, n);
    t->chars[t->n_chars + (int64_t)n] = '\0';
    t->n_chars += (int64_t)n + 1;
    FTH_ASSERT(t->n <= t->cap_start && t->n_chars <= t->cap_chars);
    return FTH_OK;
}

int64_t fth_texts_count(const fth_texts *t)
{
    return t->n;
}

const char *fth_texts_get(const fth_texts *t, int64_t i)
{
    return i >= 0 && i < t->n ? t->chars + t->start[i] : NULL;
}

void fth_texts_free(fth_texts *t)
{
    if (!t) return;
    fth__heap_free(t->mem, t->chars);
    fth__heap_free(t->mem, t->start);
    fth__heap_free(t->mem, t);
}
