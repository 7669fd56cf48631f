/* parquet_thrift.c - see parquet_thrift.h. */
#include "io/parquet_thrift.h"

#include <stddef.h>

enum { DEEPEST = 32 }; /* structs in structs; Parquet's own have seven */

static void fail(fth__thrift *t, fth__thrift_fault why)
{
    if (t->bad == FTH__THRIFT_GOOD) t->bad = why;
    t->at = t->end;
}

static uint8_t byte(fth__thrift *t)
{
    if (t->at < t->end) return *t->at++;
    fail(t, FTH__THRIFT_SHORT);
    return 0;
}

uint64_t fth__thrift_varint(fth__thrift *t)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        const uint8_t c = byte(t);
        if (shift == 63 && c > 1) break;
        v |= (uint64_t)(c & 127) << shift;
        if (c < 128) return t->bad ? 0 : v;
    }
    fail(t, FTH__THRIFT_WRONG);
    return 0;
}

int64_t fth__thrift_zigzag(fth__thrift *t)
{
    const uint64_t v = fth__thrift_varint(t);
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

bool fth__thrift_next(fth__thrift *t, fth__thrift_field *f)
{
    const uint8_t head = byte(t);
    if (head == 0 || t->bad) return false;
    const int64_t id = head >> 4 ? f->id + (head >> 4) : fth__thrift_zigzag(t);
    if (id < 0 || id > INT16_MAX) fail(t, FTH__THRIFT_WRONG);
    f->id = (int32_t)id;
    f->type = head & 15;
    return !t->bad;
}

int64_t fth__thrift_int(fth__thrift *t, const fth__thrift_field *f)
{
    if (f->type == FTH__THRIFT_I8) return (int8_t)byte(t);
    if (f->type >= FTH__THRIFT_I16 && f->type <= FTH__THRIFT_I64) return fth__thrift_zigzag(t);
    fail(t, FTH__THRIFT_WRONG);
    return 0;
}

bool fth__thrift_bool(fth__thrift *t, const fth__thrift_field *f)
{
    if (f->type != FTH__THRIFT_TRUE && f->type != FTH__THRIFT_FALSE) fail(t, FTH__THRIFT_WRONG);
    return f->type == FTH__THRIFT_TRUE;
}

const char *fth__thrift_bytes(fth__thrift *t, const fth__thrift_field *f, uint64_t *n)
{
    *n = 0;
    if (f->type != FTH__THRIFT_BYTES) fail(t, FTH__THRIFT_WRONG);
    const uint64_t bytes = fth__thrift_varint(t);
    if (bytes > (uint64_t)(t->end - t->at)) fail(t, FTH__THRIFT_SHORT);
    if (t->bad) return "";
    const char *at = (const char *)t->at;
    t->at += bytes;
    *n = bytes;
    return at;
}

/* Type and length of a list; an element has at least a byte, so a length is at most what is left.
 */
static int64_t list_head(fth__thrift *t, int *type)
{
    const uint8_t head = byte(t);
    const uint64_t n = head >> 4 == 15 ? fth__thrift_varint(t) : head >> 4;
    *type = head & 15;
    if (n > (uint64_t)(t->end - t->at)) fail(t, FTH__THRIFT_SHORT);
    return t->bad ? 0 : (int64_t)n;
}

int64_t fth__thrift_list(fth__thrift *t, const fth__thrift_field *f, int type)
{
    int found = 0;
    if (f->type != FTH__THRIFT_LIST) fail(t, FTH__THRIFT_WRONG);
    const int64_t n = list_head(t, &found);
    if (n > 0 && found != type) fail(t, FTH__THRIFT_WRONG);
    return t->bad ? 0 : n;
}

bool fth__thrift_struct(fth__thrift *t, const fth__thrift_field *f)
{
    if (f->type != FTH__THRIFT_STRUCT) fail(t, FTH__THRIFT_WRONG);
    return !t->bad;
}

static void skip(fth__thrift *t, int type, bool element, int depth);

static void skip_struct(fth__thrift *t, int depth)
{
    fth__thrift_field f = {0};
    while (fth__thrift_next(t, &f)) skip(t, f.type, false, depth);
}

static void skip_map(fth__thrift *t, int depth)
{
    const uint64_t n = fth__thrift_varint(t);
    if (n > (uint64_t)(t->end - t->at)) fail(t, FTH__THRIFT_SHORT);
    if (n == 0 || t->bad) return;
    const uint8_t types = byte(t);
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        skip(t, types >> 4, true, depth);
        skip(t, types & 15, true, depth);
    }
}

/* A bool is in the type of its field, and a byte as an element. */
static void skip(fth__thrift *t, int type, bool element, int depth)
{
    fth__thrift_field f = {.type = type};
    uint64_t n = 0;
    int inner = 0;
    if (depth >= DEEPEST) {
        fail(t, FTH__THRIFT_WRONG);
        return;
    }
    switch (type) {
    case FTH__THRIFT_TRUE:
    case FTH__THRIFT_FALSE:
        if (element) (void)byte(t);
        return;
    case FTH__THRIFT_I8: (void)byte(t); return;
    case FTH__THRIFT_I16:
    case FTH__THRIFT_I32:
    case FTH__THRIFT_I64: (void)fth__thrift_varint(t); return;
    case FTH__THRIFT_F64:
        for (int i = 0; i < 8; i++) (void)byte(t);
        return;
    case FTH__THRIFT_BYTES: (void)fth__thrift_bytes(t, &f, &n); return;
    case FTH__THRIFT_LIST:
    case FTH__THRIFT_SET:
        for (int64_t left = list_head(t, &inner); left > 0 && !t->bad; left--)
            skip(t, inner, true, depth + 1);
        return;
    case FTH__THRIFT_MAP: skip_map(t, depth + 1); return;
    case FTH__THRIFT_STRUCT: skip_struct(t, depth + 1); return;
    default: fail(t, FTH__THRIFT_WRONG);
    }
}

void fth__thrift_skip(fth__thrift *t, const fth__thrift_field *f)
{
    skip(t, f->type, false, 0);
}
