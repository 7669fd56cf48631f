/* npz_write.c - writing NPZ: stored members whose place is known from the start.
 *
 * Each member's size follows from its shape, so every array can be written in
 * any order. Local headers carry a checksum and are written last, with the
 * directory. Padding in the extra field puts elements on multiples of 64, so
 * that they can be read straight into aligned memory. Dates are fixed: equal
 * arrays give equal files.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/zip.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <inttypes.h>
#include <string.h>

enum {
    ALIGN = 64,       /* a cache line, and the widest vector */
    ZIP64_LOCAL = 20, /* the zip64 field of a local header */
    ZIP64_CENTRAL = 28,
    PAD_FIELD = 0xd935,  /* "alignment" in the list of known fields */
    LONGEST_NAME = 1000, /* npz.c looks members up by names of up to 1023 bytes */
    UTF8 = 0x800,
};

typedef struct slot {
    uint64_t header, data,
        bytes;      /* offsets of the local header and of the NPY header; bytes from there */
    uint64_t extra; /* of the local header */
} slot;

struct fth_npz_writer {
    fth__members members;
    slot *slot; /* one per member */
    uint64_t directory;
};

static bool is_big(const slot *s)
{
    return s->bytes >= FTH__ZIP_MAX32;
}

static uint64_t name_bytes(const fth__member *m)
{
    return strlen(m->name) + 4; /* ".npy" */
}

/* ---- strings ---- */

/* A string that takes the place of an array: its bytes in the file. */
typedef struct string {
    const char *data; /* NULL: this is an array */
    uint64_t bytes;
    bool wide;
    void *block; /* to be freed; NULL: none */
} string;

/* UTF-8 as UTF-32; what is no UTF-8 becomes U+FFFD. NumPy has no string without a character. */
static fth_status widen(fth_mem *mem, const char *text, string *out, fth_err *err)
{
    const size_t n = strlen(text);
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, (int64_t)n + 1, 4, &block, err));
    uint32_t *wide = block;
    int64_t k = 0;
    for (size_t at = 0; at < n; k++) {
        const size_t length = fth__utf8_length(text + at, n - at);
        uint32_t c = (unsigned char)text[at];
        if (length == 0) c = 0xfffd;
        if (length > 1) {
            c &= 0xffu >> (length + 1);
            for (size_t i = 1; i < length; i++) c = c << 6 | ((unsigned char)text[at + i] & 0x3fu);
        }
        wide[k] = c;
        at += length ? length : 1;
    }
    FTH_ASSERT(k <= (int64_t)n);
    if (k == 0) wide[k++] = 0;
    *out = (string){block, 4 * (uint64_t)k, true, block};
    return FTH_OK;
}

static fth_status string_of(fth_mem *mem, const char *text, bool wide, string *out, fth_err *err)
{
    *out = (string){0};
    if (text && wide) return widen(mem, text, out, err);
    if (text) *out = (string){.data = text, .bytes = strlen(text)};
    return FTH_OK;
}

/* ---- members ---- */

/* The header of a member, and its place with the checksum so far; the place is moved later. */
static fth_status start_member(fth_npz_writer *w, const fth_file_item *item, const string *text,
                               fth__dense_place *place, char head[FTH__NPY_HEAD],
                               uint64_t *head_bytes, fth_err *err)
{
    const int64_t length = (int64_t)text->bytes;
    const bool is_text = text->data != NULL;
    if (is_text)
        *head_bytes = text->wide ? fth__npy_make_unicode((size_t)length / 4, head)
                                 : fth__npy_make_text((size_t)length, head);
    else
        FTH_TRY(fth__npy_make(item->dtype, item->n_axes, item->size, head, head_bytes, err));
    const uint32_t crc = fth__crc32(0, head, *head_bytes);
    /* init checks offsets; the real one is known when the size of the extra field is */
    return fth__place_init(place, &w->members.writer, is_text ? FTH_U8 : item->dtype,
                           is_text ? 1 : item->n_axes, is_text ? &length : item->size,
                           w->directory + 2 * LONGEST_NAME, FTH__SUM_CRC32, crc, err);
}

/* `directory` grows from member to member. */
static fth_status lay_out_one(fth_npz_writer *w, int64_t i, const fth_file_item *item,
                              const string *text, fth_err *err)
{
    fth__members *m = &w->members;
    fth__member *member = &m->member[i];
    slot *s = &w->slot[i];
    char head[FTH__NPY_HEAD];
    uint64_t head_bytes = 0;
    FTH_TRY(start_member(w, item, text, &member->place, head, &head_bytes, err));
    const uint64_t at = w->directory;
    *s = (slot){.header = at, .bytes = head_bytes + member->place.bytes};
    s->extra = is_big(s) ? ZIP64_LOCAL : 0;
    const uint64_t over = (at + FTH__ZIP_LOCAL + name_bytes(member) + s->extra) % ALIGN;
    uint64_t pad = over ? ALIGN - over : 0;
    if (pad > 0 && pad < 4) pad += ALIGN; /* a field has at least an id and a length */
    s->extra += pad;
    s->data = at + FTH__ZIP_LOCAL + name_bytes(member) + s->extra;
    member->place.offset = s->data + head_bytes;
    FTH_ASSERT(member->place.offset % ALIGN == 0);
    FTH_ASSERT(member->place.offset <= at + 2 * LONGEST_NAME); /* the end that init checked */
    FTH_TRY(fth__writer_write(&m->writer, s->data, head_bytes, head, err));
    w->directory = s->data + s->bytes;
    if (!text->data) return FTH_OK;
    const int64_t lo = 0;
    FTH_TRY(fth__place_write(&member->place, &lo, member->place.size, text->data, err));
    FTH_TRY(fth__place_finish(&member->place, err));
    member->done = true;
    return FTH_OK;
}

static fth_status lay_out(fth_npz_writer *w, const fth_file_item *items, const char *const *text,
                          int64_t wide, fth_err *err)
{
    fth__members *m = &w->members;
    for (int64_t i = 0; i < m->n; i++) {
        string one;
        if (strlen(m->member[i].name) > LONGEST_NAME)
            return FTH_FAIL(err, FTH_E_USAGE, "%s: a name of an array has more than %d bytes",
                            m->writer.path, (int)LONGEST_NAME);
        FTH_TRY(string_of(m->mem, text ? text[i] : NULL, i >= wide, &one, err));
        const fth_status s = lay_out_one(w, i, &items[i], &one, err);
        fth__heap_free(m->mem, one.block);
        FTH_TRY(s);
    }
    return FTH_OK;
}

static void end_writer(fth_npz_writer *w)
{
    fth_mem *mem = w->members.mem;
    fth__members_close(&w->members);
    fth__heap_free(mem, w->slot);
    fth__heap_free(mem, w);
}

fth_status fth_npz_create(fth_npz_writer **out, fth_mem *mem, const char *path,
                          const fth_file_item *items, int64_t n_items, fth_err *err)
{
    return fth__npz_create(out, mem, path, items, n_items, NULL, 0, err);
}

fth_status fth_npz_create_with_texts(fth_npz_writer **out, fth_mem *mem, const char *path,
                                     const fth_file_item *items, int64_t n_items,
                                     const fth_file_meta *texts, int64_t n_texts, fth_err *err)
{
    void *block = NULL, *list = NULL;
    *out = NULL;
    if (!mem || n_items < 0 || n_texts < 0)
        return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory and a list of arrays");
    FTH_TRY(fth__heap_take(mem, n_items + n_texts, sizeof(fth_file_item), &block, err));
    fth_status s = fth__heap_take(mem, n_items + n_texts, sizeof(char *), &list, err);
    if (s == FTH_OK) {
        fth_file_item *all = block;
        const char **text = list;
        if (n_items > 0) memcpy(all, items, (size_t)n_items * sizeof *all);
        for (int64_t i = 0; i < n_texts; i++) {
            all[n_items + i] = (fth_file_item){.name = texts[i].key};
            text[n_items + i] = texts[i].value ? texts[i].value : "";
        }
        s = fth__npz_create(out, mem, path, all, n_items + n_texts, text, n_items, err);
    }
    fth__heap_free(mem, list);
    fth__heap_free(mem, block);
    return s;
}

fth_status fth__npz_create(fth_npz_writer **out, fth_mem *mem, const char *path,
                           const fth_file_item *items, int64_t n_items, const char *const *text,
                           int64_t wide, fth_err *err)
{
    *out = NULL;
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory to be created");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_npz_writer), &block, err));
    fth_npz_writer *w = block;
    fth_status s = fth__members_open(&w->members, mem, path, items, n_items, err);
    if (s == FTH_OK) s = fth__heap_take(mem, n_items, sizeof(slot), &block, err);
    if (s == FTH_OK) {
        w->slot = block;
        s = lay_out(w, items, text, wide, err);
    }
    if (s != FTH_OK) {
        end_writer(w);
        return s;
    }
    *out = w;
    return FTH_OK;
}

fth_status fth_npz_sink(fth_npz_writer *w, const char *name, fth_sink *out, fth_err *err)
{
    return fth__members_sink(&w->members, "npz", name, out, err);
}

/* ---- headers ---- */

static int flags_of(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name >= 128) return UTF8;
    return 0;
}

static uint64_t at_most_32(uint64_t v)
{
    return v < FTH__ZIP_MAX32 ? v : FTH__ZIP_MAX32;
}

static unsigned char *put_facts(unsigned char *p, const fth__member *m, const slot *s, bool zip64)
{
    const uint64_t bytes = zip64 && is_big(s) ? FTH__ZIP_MAX32 : s->bytes;
    return fth__zip_put_facts(p, &(fth__zip_facts){.method = FTH__ZIP_STORED,
                                                   .flags = flags_of(m->name),
                                                   .zip64 = zip64,
                                                   .crc = m->place.crc,
                                                   .packed = bytes,
                                                   .bytes = bytes});
}

static unsigned char *put_name(unsigned char *p, const fth__member *m)
{
    const size_t n = strlen(m->name);
    memcpy(p, m->name, n);
    memcpy(p + n, ".npy", 4);
    return p + n + 4;
}

static fth_status write_local(fth_npz_writer *w, int64_t i, fth_err *err)
{
    const fth__member *m = &w->members.member[i];
    const slot *s = &w->slot[i];
    unsigned char head[FTH__ZIP_LOCAL + LONGEST_NAME + 4 + ZIP64_LOCAL + 2 * ALIGN] = {0},
                                                                             *p = head;
    p = fth__zip_put(p, 4, FTH__ZIP_SIG_LOCAL);
    p = put_facts(p, m, s, is_big(s));
    p = fth__zip_put(p, 2, name_bytes(m));
    p = fth__zip_put(p, 2, s->extra);
    p = put_name(p, m);
    uint64_t pad = s->extra;
    if (is_big(s)) {
        p = fth__zip_put(p, 2, 1);
        p = fth__zip_put(p, 2, 16);
        p = fth__zip_put(p, 8, s->bytes);
        p = fth__zip_put(p, 8, s->bytes);
        pad -= ZIP64_LOCAL;
    }
    if (pad > 0) {
        p = fth__zip_put(p, 2, PAD_FIELD);
        p = fth__zip_put(p, 2, pad - 4);
        p += pad - 4;
    }
    FTH_ASSERT((uint64_t)(p - head) == s->data - s->header && (size_t)(p - head) <= sizeof head);
    return fth__writer_write(&w->members.writer, s->header, (uint64_t)(p - head), head, err);
}

static unsigned char *put_central(unsigned char *p, const fth__member *m, const slot *s)
{
    const bool far = s->header >= FTH__ZIP_MAX32, zip64 = far || is_big(s);
    const uint64_t extra = zip64 ? 4 + (is_big(s) ? 16u : 0u) + (far ? 8u : 0u) : 0;
    p = fth__zip_put(p, 4, FTH__ZIP_SIG_CENTRAL);
    p = fth__zip_put(p, 2, zip64 ? 45 : 20);
    p = put_facts(p, m, s, zip64);
    p = fth__zip_put(p, 2, name_bytes(m));
    p = fth__zip_put(p, 2, extra);
    p = fth__zip_put(p, 2, 0); /* comment */
    p = fth__zip_put(p, 2, 0); /* disk */
    p = fth__zip_put(p, 2, 0);
    p = fth__zip_put(p, 4, 0);
    p = fth__zip_put(p, 4, at_most_32(s->header));
    p = put_name(p, m);
    if (!zip64) return p;
    p = fth__zip_put(p, 2, 1);
    p = fth__zip_put(p, 2, extra - 4);
    if (is_big(s)) {
        p = fth__zip_put(p, 8, s->bytes);
        p = fth__zip_put(p, 8, s->bytes);
    }
    return far ? fth__zip_put(p, 8, s->header) : p;
}

static fth_status write_directory(fth_npz_writer *w, fth_err *err)
{
    fth__members *m = &w->members;
    uint64_t most = FTH__ZIP_END64 + FTH__ZIP_LOCATOR64 + FTH__ZIP_END;
    for (int64_t i = 0; i < m->n; i++) {
        FTH_TRY(write_local(w, i, err));
        most += FTH__ZIP_CENTRAL + name_bytes(&m->member[i]) + ZIP64_CENTRAL;
    }
    void *block = NULL;
    FTH_TRY(fth__heap_take(m->mem, 1, most, &block, err));
    unsigned char *start = block, *p = start;
    for (int64_t i = 0; i < m->n; i++) p = put_central(p, &m->member[i], &w->slot[i]);
    p = fth__zip_put_end(p, (uint64_t)m->n, w->directory, (uint64_t)(p - start));
    FTH_ASSERT((uint64_t)(p - start) <= most);
    const fth_status s =
        fth__writer_write(&m->writer, w->directory, (uint64_t)(p - start), start, err);
    fth__heap_free(m->mem, block);
    return s;
}

fth_status fth_npz_commit(fth_npz_writer *w, fth_err *err)
{
    fth_status s = fth__members_check(&w->members, err);
    if (s == FTH_OK) s = write_directory(w, err);
    if (s == FTH_OK) s = fth__writer_commit(&w->members.writer, NULL, err);
    end_writer(w);
    return s;
}

void fth_npz_abandon(fth_npz_writer *w)
{
    if (w) end_writer(w);
}
