/* nd2_lv.c - the trees of metadata of ND2 files ("lite variant").
 *
 * A tree is walked where it lies, nothing is taken apart: an item is its type, its name and where
 * its value is. Every length is checked against the level around it; an item that does not fit ends
 * that level, and the levels around go on.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/nd2.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST = 64 << 20 }; /* bytes of a tree; bounds what a damaged length can make us take */

/* ---- items ---- */

fth__lv fth__lv_root(const void *data, uint64_t bytes)
{
    const uint8_t *at = data;
    return (fth__lv){at, at + bytes, INT64_MAX};
}

/* Bytes of the values that have a fixed size. */
static const uint8_t fixed[FTH__LV_POINTER + 1] = {
    [FTH__LV_BOOL] = 1, [FTH__LV_I32] = 4, [FTH__LV_U32] = 4,    [FTH__LV_I64] = 8,
    [FTH__LV_U64] = 8,  [FTH__LV_F64] = 8, [FTH__LV_POINTER] = 8};

/* How far the item reaches, from the start of its value; 0: it does not fit, or is none. */
static uint64_t measure(const uint8_t *start, const uint8_t *end, fth__lv_item *out)
{
    const uint64_t left = (uint64_t)(end - out->value);
    uint64_t n = 0;
    if (out->type <= FTH__LV_POINTER) {
        out->bytes = fixed[out->type];
        return out->bytes <= left ? out->bytes : 0;
    }
    if (out->type == FTH__LV_TEXT) {
        while (n + 2 <= left && (out->value[n] || out->value[n + 1])) n += 2;
        out->bytes = n;
        return n + 2 <= left ? n + 2 : 0;
    }
    if (out->type == FTH__LV_BYTES) {
        if (left < 8) return 0;
        memcpy(&n, out->value, 8);
        out->value += 8;
        out->bytes = n;
        return n <= left - 8 ? n + 8 : 0;
    }
    if (out->type != FTH__LV_LEVEL || left < 12) return 0;
    uint32_t count;
    uint64_t length; /* from the type to the end of the last item; a table of offsets follows */
    memcpy(&count, out->value, 4);
    memcpy(&length, out->value + 4, 8);
    const uint64_t head = (uint64_t)(out->value - start) + 12;
    if (length < head || length > (uint64_t)(end - start)) return 0;
    out->value += 12;
    out->bytes = length - head;
    out->count = count;
    return fth__min_u64(12 + out->bytes + 8 * (uint64_t)count, left);
}

bool fth__lv_next(fth__lv *level, fth__lv_item *out)
{
    const uint8_t *start = level->at;
    FTH_ASSERT(start <= level->end);
    const uint64_t left = (uint64_t)(level->end - start);
    *out = (fth__lv_item){0};
    if (level->left <= 0 || left < 2 || 2 + 2 * (uint64_t)start[1] > left) return false;
    out->type = start[0];
    out->name = start + 2;
    out->units = start[1] > 0 ? start[1] - 1 : 0;
    out->value = start + 2 + 2 * start[1];
    const uint8_t *value = out->value;
    const uint64_t n = measure(start, level->end, out);
    if (n == 0) {
        level->left = 0;
        return false;
    }
    FTH_ASSERT(n <= (uint64_t)(level->end - value));
    level->at = value + n;
    level->left--;
    return true;
}

fth__lv fth__lv_inside(const fth__lv_item *item)
{
    if (item->type != FTH__LV_LEVEL) return (fth__lv){0};
    return (fth__lv){item->value, item->value + item->bytes, item->count};
}

bool fth__lv_is_named(const fth__lv_item *item, const char *name)
{
    int i = 0;
    for (; i < item->units && name[i]; i++)
        if (item->name[2 * i] != (uint8_t)name[i] || item->name[2 * i + 1]) return false;
    return i == item->units && !name[i];
}

bool fth__lv_find(fth__lv level, const char *path, fth__lv_item *out)
{
    char name[64];
    const char *slash = strchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : strlen(path);
    if (n >= sizeof name) return false;
    memcpy(name, path, n);
    name[n] = 0;
    while (fth__lv_next(&level, out))
        if (fth__lv_is_named(out, name))
            return slash ? fth__lv_find(fth__lv_inside(out), slash + 1, out) : true;
    return false;
}

/* ---- values ---- */

fth__lv fth__lv_level(fth__lv level, const char *path)
{
    fth__lv_item item;
    return fth__lv_find(level, path, &item) ? fth__lv_inside(&item) : (fth__lv){0};
}

static int64_t whole_of(const fth__lv_item *item, int64_t otherwise)
{
    uint64_t v = 0;
    if (item->type < FTH__LV_BOOL || item->type > FTH__LV_POINTER) return otherwise;
    FTH_ASSERT(item->bytes <= sizeof v);
    memcpy(&v, item->value, item->bytes);
    if (item->type == FTH__LV_BOOL) return v != 0;
    if (item->type == FTH__LV_I32) return (int32_t)(uint32_t)v;
    if (item->type == FTH__LV_F64) {
        double real;
        memcpy(&real, &v, sizeof real);
        return fabs(real) < 0x1p62 ? (int64_t)real : otherwise;
    }
    return v <= (uint64_t)INT64_MAX || item->type == FTH__LV_I64 ? (int64_t)v : otherwise;
}

double fth__lv_number(const fth__lv_item *item, double otherwise)
{
    if (item->type != FTH__LV_F64)
        return item->type >= FTH__LV_BOOL && item->type <= FTH__LV_POINTER
                   ? (double)whole_of(item, 0)
                   : otherwise;
    double v;
    memcpy(&v, item->value, sizeof v);
    return v;
}

double fth__lv_f64(fth__lv level, const char *path, double otherwise)
{
    fth__lv_item item;
    return fth__lv_find(level, path, &item) ? fth__lv_number(&item, otherwise) : otherwise;
}

int64_t fth__lv_i64(fth__lv level, const char *path, int64_t otherwise)
{
    fth__lv_item item;
    return fth__lv_find(level, path, &item) ? whole_of(&item, otherwise) : otherwise;
}

/* One character of UTF-16; *i moves on by the bytes it takes. */
static uint32_t take_character(const uint8_t *v, uint64_t bytes, uint64_t *i)
{
    FTH_ASSERT(*i + 2 <= bytes);
    uint32_t c = (uint32_t)v[*i] | (uint32_t)v[*i + 1] << 8;
    *i += 2;
    if (c < 0xd800 || c > 0xdfff) return c;
    if (c > 0xdbff || *i + 2 > bytes || (v[*i + 1] & 0xfc) != 0xdc) return '?';
    const uint32_t low = ((uint32_t)v[*i] | (uint32_t)v[*i + 1] << 8) & 0x3ff;
    *i += 2;
    return 0x10000 + ((c & 0x3ff) << 10 | low);
}

static char *put_utf8(char *to, uint32_t c)
{
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[4] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(lead[more] | c >> 6 * more);
    for (int k = more; k-- > 0;) *to++ = (char)(0x80 | (c >> 6 * k & 0x3f));
    return to;
}

char *fth__lv_text(fth__lv level, const char *path, fth_mem *mem)
{
    fth__lv_item item;
    const bool there = fth__lv_find(level, path, &item) && item.type == FTH__LV_TEXT;
    char *text = fth__heap_alloc(mem, there ? item.bytes / 2 * 3 + 1 : 1);
    if (!text || !there) return text;
    char *to = text;
    for (uint64_t i = 0; i + 2 <= item.bytes;)
        to = put_utf8(to, take_character(item.value, item.bytes, &i));
    FTH_ASSERT((uint64_t)(to - text) <= item.bytes / 2 * 3);
    *to = 0;
    fth__str_make_plain(text);
    return text;
}

/* ---- a chunk as a tree ---- */

/* A packed tree says nothing of its size: room doubles as it fills. */
static fth_status unpack(fth_mem *mem, const uint8_t *in, uint64_t n_in, uint8_t **out,
                         uint64_t *n_out, bool *good, fth_err *err)
{
    void *work = NULL;
    int64_t room = 0;
    *good = false;
    *out = NULL;
    *n_out = 0;
    FTH_TRY(fth__heap_take(mem, 1, fth__inflate_bytes(), &work, err));
    fth__inflate *z = fth__inflate_begin(work, FTH__WRAP_ZLIB);
    fth__inflated state = z ? FTH__INFLATE_MORE : FTH__INFLATE_DAMAGED;
    fth_status s = FTH_OK;
    uint8_t *grown = NULL;
    while (s == FTH_OK && state == FTH__INFLATE_MORE && *n_out < MOST) {
        s = fth__grow(mem, &grown, &room, (int64_t)*n_out + (64 << 10), err);
        if (s != FTH_OK) break;
        uint8_t *to = grown + *n_out;
        uint64_t left = (uint64_t)room - *n_out;
        const uint64_t had_in = n_in, had = left;
        state = fth__inflate_some(z, &in, &n_in, &to, &left);
        *n_out += had - left;
        FTH_ASSERT(*n_out <= (uint64_t)room);
        if (had == left && had_in == n_in) break; /* it is cut */
    }
    fth__inflate_end(z);
    fth__heap_free(mem, work);
    *good = s == FTH_OK && state == FTH__INFLATE_ENDED;
    if (*good)
        *out = grown;
    else
        fth__heap_free(mem, grown);
    return s;
}

fth_status fth__lv_read(fth__lv *out, void **block, fth_file *f, const fth__nd2_chunk *chunk,
                        const char *name, fth_err *err)
{
    enum { SKIP = 12 }; /* of a packed tree: type, name, and ten bytes that nobody needs */
    fth__nd2_head head;
    bool there = false;
    *out = (fth__lv){0};
    *block = NULL;
    FTH_TRY(fth__nd2_head_read(f, chunk->offset, &head, &there, err));
    there = there && strncmp(head.name, name, strlen(name) - 1) == 0;
    const uint64_t bytes = chunk->bytes == FTH__ND2_UNKNOWN ? head.bytes : chunk->bytes;
    if (!there)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->path, chunk->offset,
                              "chunk %s should begin here", name);
    if (bytes > MOST)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->path, chunk->offset,
                              "chunk %s has %" PRIu64 " bytes; metadata have at most %d", name,
                              bytes, (int)MOST);
    if (head.data > f->bytes || bytes > f->bytes - head.data)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, f->path, head.data,
                              "chunk %s should have %" PRIu64
                              " bytes here, but the file ends at byte %" PRIu64,
                              name, bytes, f->bytes);
    FTH_TRY(fth__heap_take(f->mem, 1, bytes, block, err));
    fth_status s = fth_file_read(f, head.data, bytes, *block, name, err);
    uint8_t *data = *block;
    uint64_t n = bytes;
    if (s == FTH_OK && bytes > SKIP && data[0] == FTH__LV_PACKED) {
        bool good;
        s = unpack(f->mem, (uint8_t *)*block + SKIP, bytes - SKIP, &data, &n, &good, err);
        if (s == FTH_OK && !good)
            s = FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->path, head.data,
                               "chunk %s is packed and cannot be unpacked", name);
        fth__heap_free(f->mem, *block);
        *block = data;
    }
    if (s == FTH_OK) {
        *out = fth__lv_root(data, n);
    } else {
        fth__heap_free(f->mem, *block);
        *block = NULL;
    }
    return s;
}
