/* store.c - memory that is only given back all at once; see store.h. */
#include "config/store.h"

#include "base/assert.h"
#include "mem/heap.h"

#include <string.h>

enum {
    BLOCK = 4096, /* bytes asked for at a time: most configs take a few */
    UNIT = 16     /* the alignment that malloc promises */
};

typedef struct fth__store_block {
    struct fth__store_block *older;
    uint64_t used, bytes; /* of data */
    _Alignas(UNIT) char data[];
} store_block;

void *fth__store_take(fth__store *s, uint64_t bytes)
{
    if (bytes > UINT32_MAX) return NULL; /* nothing here is that large; sums below cannot wrap */
    bytes = (bytes + UNIT - 1) / UNIT * UNIT;
    if (!s->last || s->last->bytes - s->last->used < bytes) {
        const uint64_t usual = s->block ? s->block : BLOCK;
        const uint64_t room = bytes > usual ? bytes : usual;
        store_block *b = fth__heap_alloc(s->mem, sizeof *b + room);
        if (!b) return NULL;
        b->bytes = room;
        b->older = s->last;
        s->last = b;
    }
    FTH_ASSERT(s->last->used + bytes <= s->last->bytes && s->last->used % UNIT == 0);
    void *out = s->last->data + s->last->used;
    s->last->used += bytes;
    return out;
}

char *fth__store_text(fth__store *s, const char *text, size_t n)
{
    char *copy = fth__store_take(s, (uint64_t)n + 1);
    if (copy && n > 0) memcpy(copy, text, n); /* the terminator is there: blocks are zeroed */
    return copy;
}

char *fth__store_printv(fth__store *s, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    char *out = n < 0 ? NULL : fth__store_take(s, (uint64_t)n + 1);
    if (out) vsnprintf(out, (size_t)n + 1, fmt, again);
    va_end(again);
    return out;
}

char *fth__store_print(fth__store *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *out = fth__store_printv(s, fmt, args);
    va_end(args);
    return out;
}

void fth__store_clear(fth__store *s)
{
    while (s->last) {
        store_block *b = s->last;
        s->last = b->older;
        fth__heap_free(s->mem, b);
    }
}
