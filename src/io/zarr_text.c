/* zarr_text.c - arrays of strings: of any length (vlen-utf8), or UTF-32 of a fixed length.
 *
 * How long a packed chunk of strings becomes is not known before, so the room for it grows until it
 * fits, up to what a packing can make of its bytes.
 */
#include "base/checked.h"
#include "io/zarr.h"

#include <inttypes.h>
#include <string.h>

enum {
    CHUNK = 1 << 30,  /* bytes of a file, and of what it unpacks to */
    RATIO = 1 << 12,  /* how much a packing is trusted to make of a byte: deflate makes 1032 */
    START = 64 << 10, /* room that a chunk is first given beside four times its bytes */
    GROW = 8
};

typedef struct chunk {
    fth_mem *mem;
    const char *path;
    const fth__zarr_meta *m;
    char *data;
    uint64_t bytes;
} chunk;

/* One step back; the chunk's bytes are replaced. */
static fth_status unpack(chunk *c, const fth__codec *codec, fth_err *err)
{
    const fth__codec_type *type = fth__codec_get(codec->kind);
    const uint64_t most = fth__min_u64(CHUNK, START + c->bytes * RATIO);
    fth_status s = FTH_E_FILE_FORMAT;
    fth_err why = {0};
    for (uint64_t cap = START + 4 * c->bytes; s == FTH_E_FILE_FORMAT; cap *= GROW) {
        const uint64_t room = fth__min_u64(cap, most);
        const uint64_t front = (room + 63) / 64 * 64, work = type->unpack_room(codec, room);
        void *block = NULL;
        FTH_TRY(fth_mem_take(c->mem, FTH_MEM_ANY, front + work, "strings", &block, err));
        fth__coding k = {.mem = c->mem,
                         .label = c->path,
                         .room = (char *)block + front,
                         .room_bytes = work,
                         .in = (const uint8_t *)c->data,
                         .n_in = c->bytes,
                         .out = block,
                         .cap = room};
        why = (fth_err){0};
        s = type->unpack(codec, &k, &why);
        if (s == FTH_OK) {
            (void)fth_mem_release(c->mem, c->data, NULL);
            c->data = block;
            c->bytes = k.n_out;
            return FTH_OK;
        }
        (void)fth_mem_release(c->mem, block, NULL);
        if (room == most) break;
    }
    if (err) *err = why;
    return s;
}

static uint32_t number(const char *at, bool swap)
{
    uint32_t v = 0;
    memcpy(&v, at, sizeof v);
    return swap ? __builtin_bswap32(v) : v;
}

static fth_status damaged(const chunk *c, const char *why, fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: a chunk of strings is damaged: %s", c->path, why);
    fth_err_hint(err, "copy the store again, or write it again from its source");
    return s;
}

/* A count, then each string after its length. */
static fth_status take_any_length(const chunk *c, int64_t n, fth_texts *t, fth_err *err)
{
    uint64_t at = 4;
    if (c->bytes < 4 || number(c->data, false) < (uint64_t)n)
        return damaged(c, "it has too few of them", err);
    for (int64_t i = 0; i < n; i++) {
        if (c->bytes - at < 4) return damaged(c, "it ends too early", err);
        const uint32_t bytes = number(c->data + at, false);
        at += 4;
        if (c->bytes - at < bytes) return damaged(c, "it ends too early", err);
        FTH_TRY(fth_texts_add(t, c->data + at, bytes, err));
        at += bytes;
    }
    return FTH_OK;
}

static size_t put_utf8(uint32_t v, char *to)
{
    if (v < 0x80) {
        to[0] = (char)v;
        return 1;
    }
    const int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
    to[0] = (char)(lead[more] | v >> 6 * more);
    for (int k = 1; k <= more; k++) to[k] = (char)(0x80 | (v >> 6 * (more - k) & 0x3F));
    return (size_t)more + 1;
}

/* Zeros fill the end. */
static fth_status take_fixed(const chunk *c, int64_t n, fth_texts *t, fth_err *err)
{
    const int64_t wide = c->m->characters;
    if (c->bytes / 4 / (uint64_t)wide < (uint64_t)n) return damaged(c, "it ends too early", err);
    void *text = NULL;
    FTH_TRY(fth_mem_take(c->mem, FTH_MEM_ANY, (uint64_t)wide * 4, "a string", &text, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        size_t used = 0;
        for (int64_t k = 0; k < wide; k++) {
            const uint32_t v = number(c->data + (i * wide + k) * 4, c->m->swap);
            if (v == 0) break;
            if (v > 0x10FFFF)
                s = damaged(c, "a character is none", err);
            else
                used += put_utf8(v, (char *)text + used);
        }
        if (s == FTH_OK) s = fth_texts_add(t, text, used, err);
    }
    (void)fth_mem_release(c->mem, text, NULL);
    return s;
}

/* The next n strings, from file `index`; a file that is not there has empty ones. */
static fth_status read_file(const fth__zarr_meta *m, fth_mem *mem, const char *folder,
                            int64_t index, int64_t n, fth_texts *t, fth_err *err)
{
    char path[FTH_PATH];
    fth_status s = FTH_OK;
    FTH_TRY(fth__zarr_file_path(m, folder, &index, path, err));
    if (fth_path_kind_of(path) == FTH_PATH_ABSENT) {
        for (int64_t i = 0; s == FTH_OK && i < n; i++) s = fth_texts_add(t, "", 0, err);
        return s;
    }
    chunk c = {.mem = mem, .path = path, .m = m};
    FTH_TRY(fth_file_load(mem, path, CHUNK, &c.data, &c.bytes, err));
    for (int i = m->codecs.n; s == FTH_OK && i-- > 0;) s = unpack(&c, &m->codecs.codec[i], err);
    if (s == FTH_OK) s = m->characters ? take_fixed(&c, n, t, err) : take_any_length(&c, n, t, err);
    (void)fth_mem_release(mem, c.data, NULL);
    return s;
}

static fth_status read_all(const fth__zarr_meta *m, fth_mem *mem, const char *folder, fth_texts *t,
                           fth_err *err)
{
    const int64_t n = m->n_axes ? m->size[0] : 1, per = m->n_axes ? m->file[0] : 1;
    for (int64_t at = 0; at < n; at += per)
        FTH_TRY(read_file(m, mem, folder, at / per, fth__min_i64(per, n - at), t, err));
    return FTH_OK;
}

fth_status fth_zarr_strings(fth_texts **out, fth_mem *mem, const char *path, fth_err *err)
{
    fth__zarr_meta m;
    fth_json *doc = NULL, *attributes = NULL;
    fth_texts *t = NULL;
    *out = NULL;
    FTH_TRY(fth__zarr_load_any(&m, mem, path, &doc, &attributes, err));
    fth_json_destroy(doc);
    fth_json_destroy(attributes);
    if (!m.text)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: text was wanted, it holds something else",
                        path);
    if (m.n_axes > 1 || m.sharded)
        return FTH_FAIL(err, m.sharded ? FTH_E_FILE_FEATURE : FTH_E_FILE_SHAPE,
                        "%s: a list of strings was wanted; it has %d axes%s", path, m.n_axes,
                        m.sharded ? " and is sharded" : "");
    FTH_TRY(fth_texts_create(&t, mem, err));
    const fth_status s = read_all(&m, mem, path, t, err);
    if (s == FTH_OK)
        *out = t;
    else
        fth_texts_free(t);
    return s;
}
