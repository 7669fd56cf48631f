/* lines.c - a text of lines that grows, and becomes a file in one step. */
#include <fathom/lines.h>
#include <fathom/number.h>

#include "base/assert.h"
#include "base/str.h"
#include "mem/heap.h"

#include <string.h>

/* Room for n more characters and the terminator. */
static bool make_room(fth_lines *t, size_t n)
{
    if (t->status != FTH_OK) return false;
    const int64_t need = t->used + (int64_t)n + 1;
    t->status = fth__grow(t->mem, &t->data, &t->bytes, need < 1024 ? 1024 : need, NULL);
    return t->status == FTH_OK;
}

static void put(fth_lines *t, const char *s, size_t n)
{
    if (!make_room(t, n)) return;
    FTH_ASSERT(t->used + (int64_t)n < t->bytes);
    memcpy(t->data + t->used, s, n);
    t->used += (int64_t)n;
    t->data[t->used] = '\0';
}

void fth_lines_begin(fth_lines *t, fth_mem *mem)
{
    *t = (fth_lines){.mem = mem};
}

void fth_lines_add(fth_lines *t, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    if (n >= 0 && make_room(t, (size_t)n)) {
        FTH_ASSERT(t->used + n < t->bytes);
        vsnprintf(t->data + t->used, (size_t)n + 1, fmt, again);
        t->used += n;
    }
    va_end(again);
    va_end(args);
}

void fth_lines_real(fth_lines *t, double v)
{
    char number[FTH_NUMBER];
    fth_number_format(number, sizeof number, v, 0);
    put(t, number, strlen(number));
}

void fth_lines_field(fth_lines *t, const char *text)
{
    const size_t n = text ? strlen(text) : 0;
    if (n == 0 || strcspn(text, ",\"\r\n") == n) {
        if (n) put(t, text, n);
        return;
    }
    put(t, "\"", 1);
    for (size_t i = 0; i < n; i++)
        put(t, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
    put(t, "\"", 1);
}

void fth_lines_free(fth_lines *t)
{
    if (!t->mem) return;
    fth__heap_free(t->mem, t->data);
    t->data = NULL;
    t->used = t->bytes = 0;
}
