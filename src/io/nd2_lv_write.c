/* nd2_lv_write.c - trees of metadata for ND2 files.
 *
 * A level ends with a table of where its items are, in the order of their names. It is made by
 * walking the level that was just written, with the reader.
 */
#include "base/assert.h"
#include "base/str.h"
#include "io/nd2.h"
#include "mem/heap.h"

#include <string.h>

static uint8_t *add(fth__lv_writer *w, int64_t n)
{
    if (w->status == FTH_OK)
        w->status = fth__grow(w->mem, &w->data, &w->room, w->bytes + n, w->err);
    if (w->status != FTH_OK) return NULL;
    uint8_t *at = w->data + w->bytes;
    w->bytes += n;
    return at;
}

static void add_bytes(fth__lv_writer *w, const void *bytes, int64_t n)
{
    uint8_t *at = add(w, n);
    if (at) memcpy(at, bytes, (size_t)n);
}

static void add_unit(fth__lv_writer *w, uint32_t unit)
{
    const uint8_t bytes[2] = {(uint8_t)unit, (uint8_t)(unit >> 8)};
    add_bytes(w, bytes, 2);
}

/* The code of a UTF-8 character of n bytes. */
static uint32_t code_of(const char *s, size_t n)
{
    static const uint8_t lead[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (uint8_t)s[0] & lead[n];
    for (size_t i = 1; i < n; i++) c = c << 6 | ((uint8_t)s[i] & 0x3f);
    return c;
}

static void add_text(fth__lv_writer *w, const char *utf8)
{
    size_t left = strlen(utf8);
    while (left > 0) {
        const size_t n = fth__utf8_length(utf8, left);
        const uint32_t c = n ? code_of(utf8, n) : '?';
        if (c < 0x10000)
            add_unit(w, c);
        else {
            add_unit(w, 0xd800 | (c - 0x10000) >> 10);
            add_unit(w, 0xdc00 | ((c - 0x10000) & 0x3ff));
        }
        utf8 += n ? n : 1;
        left -= n ? n : 1;
    }
    add_unit(w, 0);
}

static void begin(fth__lv_writer *w, fth__lv_type type, const char *name)
{
    FTH_ASSERT(strlen(name) < 255); /* names are ours, and ASCII */
    const uint8_t head[2] = {(uint8_t)type, (uint8_t)(strlen(name) + 1)};
    add_bytes(w, head, 2);
    add_text(w, name);
}

/* ---- values ---- */

void fth__lv_put_bool(fth__lv_writer *w, const char *name, bool v)
{
    begin(w, FTH__LV_BOOL, name);
    add_bytes(w, &(uint8_t){v}, 1);
}

void fth__lv_put_i32(fth__lv_writer *w, const char *name, int64_t v)
{
    begin(w, FTH__LV_I32, name);
    add_bytes(w, &(int32_t){(int32_t)v}, 4);
}

void fth__lv_put_u32(fth__lv_writer *w, const char *name, int64_t v)
{
    begin(w, FTH__LV_U32, name);
    add_bytes(w, &(uint32_t){(uint32_t)v}, 4);
}

void fth__lv_put_f64(fth__lv_writer *w, const char *name, double v)
{
    begin(w, FTH__LV_F64, name);
    add_bytes(w, &v, 8);
}

void fth__lv_put_text(fth__lv_writer *w, const char *name, const char *utf8)
{
    begin(w, FTH__LV_TEXT, name);
    add_text(w, utf8 ? utf8 : "");
}

void fth__lv_put_ones(fth__lv_writer *w, const char *name, int64_t n)
{
    begin(w, FTH__LV_BYTES, name);
    add_bytes(w, &n, 8);
    uint8_t *at = add(w, n);
    if (at) memset(at, 1, (size_t)n);
}

/* ---- levels ---- */

void fth__lv_open(fth__lv_writer *w, const char *name)
{
    FTH_ASSERT((size_t)w->depth < sizeof w->start / sizeof w->start[0]);
    w->start[w->depth++] = w->bytes;
    begin(w, FTH__LV_LEVEL, name);
    add_bytes(w, (uint8_t[12]){0}, 12); /* filled in by close */
}

static int compare_names(const uint8_t *a, const uint8_t *b)
{
    const int n = a[1] < b[1] ? a[1] : b[1];
    for (int i = 0; i < 2 * n; i += 2) {
        const int x = a[2 + i] | a[3 + i] << 8, y = b[2 + i] | b[3 + i] << 8;
        if (x != y) return x - y;
    }
    return a[1] - b[1];
}

/* By insertion: named levels are short, and elements of lists are in order. */
static void sort_table(uint8_t *table, int64_t n, const uint8_t *start)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0; k--) {
            uint64_t pair[2];
            memcpy(pair, table + 8 * (k - 1), 16);
            if (compare_names(start + pair[0], start + pair[1]) <= 0) break;
            const uint64_t turned[2] = {pair[1], pair[0]};
            memcpy(table + 8 * (k - 1), turned, 16);
        }
}

void fth__lv_close(fth__lv_writer *w)
{
    FTH_ASSERT(w->depth > 0);
    const int64_t start = w->start[--w->depth], end = w->bytes;
    if (w->status != FTH_OK) return;
    const int64_t head = start + 2 + 2 * w->data[start + 1];
    const uint64_t length = (uint64_t)(end - start);
    uint32_t count = 0;
    fth__lv_item item;
    fth__lv level = {w->data + head + 12, w->data + end, INT64_MAX};
    while (fth__lv_next(&level, &item)) count++;
    FTH_ASSERT(level.at == level.end); /* the reader sees all that was written */
    memcpy(w->data + head, &count, 4);
    memcpy(w->data + head + 4, &length, 8);
    uint8_t *table = add(w, 8 * (int64_t)count);
    if (!table) return;
    level = (fth__lv){w->data + head + 12, w->data + end, INT64_MAX};
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t offset = (uint64_t)(level.at - (w->data + start));
        (void)fth__lv_next(&level, &item);
        memcpy(table + 8 * i, &offset, 8);
    }
    sort_table(table, count, w->data + start);
}

void fth__lv_writer_clear(fth__lv_writer *w)
{
    fth__heap_free(w->mem, w->data);
    *w = (fth__lv_writer){.mem = w->mem};
}
