/* parquet_pages.c - a column of a Parquet file: its pages one after the other, unpacked.
 *
 * A chunk is a row of pages, each behind a header of its own: the dictionary first, where there is
 * one, then pages of values. Memory follows from the largest page, never from the chunk.
 */
#include "io/parquet.h"

#include "base/assert.h"
#include "base/str.h"
#include "io/codecs.h"
#include "io/lz4.h"
#include "io/parquet_thrift.h"
#include "io/snappy.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum {
    HEAD = 4096,          /* bytes read for a header at first; most have 30 */
    MOST_HEAD = 16 << 20, /* statistics may hold long texts; arbitrary, it bounds our memory */
    LABEL = 300
};

enum { DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3 };

/* ---- errors and memory ---- */

static void label_of(const fth_parquet_column *c, char *text, size_t bytes)
{
    const int n = snprintf(text, bytes, "%s, column '%.80s', row group %" PRId64,
                           c->file->file->path, c->leaf->name, c->group);
    if (n < 0) text[0] = '\0';
}

fth_status fth__parquet_fail_(const fth_parquet_column *c, fth_err *err, fth_site site,
                              fth_status status, uint64_t offset, const char *fmt, ...)
{
    char text[600], label[FTH_PATH + LABEL];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    va_list args;
    va_start(args, fmt);
    fth__text_addv(&t, fmt, args);
    va_end(args);
    fth__text_mark_cut(&t);
    label_of(c, label, sizeof label);
    return fth_err_set(err, site, status, "%s, byte %" PRIu64 ": %s", label, offset, text);
}

fth_status fth__parquet_room_take(fth_parquet_column *c, fth__parquet_room *room, uint64_t bytes,
                                  const char *what, fth_err *err)
{
    void *block = NULL;
    if (room->data && room->bytes >= bytes) return FTH_OK;
    (void)fth_mem_release(c->file->mem, room->data, NULL);
    *room = (fth__parquet_room){0};
    FTH_TRY(fth_mem_take(c->file->mem, FTH_MEM_ANY, bytes ? bytes : 1, what, &block, err));
    *room = (fth__parquet_room){.data = block, .bytes = bytes};
    return FTH_OK;
}

/* ---- codecs ---- */

const char *fth__parquet_codec_name(int32_t codec)
{
    static const char *const names[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                        "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
    return codec >= 0 && codec < 8 ? names[codec] : NULL;
}

static bool is_read(int32_t codec)
{
    return codec == FTH__PARQUET_PLAIN || codec == FTH__PARQUET_SNAPPY ||
           codec == FTH__PARQUET_GZIP || codec == FTH__PARQUET_ZSTD ||
           codec == FTH__PARQUET_LZ4_RAW;
}

/* By a library, which works in a room of ours. */
static fth_status unpack_stream(fth_parquet_column *c, fth__codec_kind kind, const uint8_t *in,
                                uint64_t n_in, uint8_t *out, uint64_t want, fth_err *err)
{
    char label[FTH_PATH + LABEL];
    const fth__codec codec = {.kind = kind};
    const fth__codec_type *type = fth__codec_get(kind);
    const uint64_t room = type->unpack_room(&codec, want);
    FTH_TRY(fth__parquet_room_take(c, &c->work, room, "unpacking a page of Parquet", err));
    label_of(c, label, sizeof label);
    fth__coding k = {.mem = c->file->mem,
                     .label = label,
                     .room = c->work.data,
                     .room_bytes = room,
                     .in = in,
                     .n_in = n_in,
                     .out = out,
                     .cap = want,
                     .exact = true};
    FTH_TRY(type->unpack(&codec, &k, err));
    if (k.n_out == want) return FTH_OK;
    return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, c->page.offset,
                             "expected a page of %" PRIu64 " bytes, found %" PRIu64, want, k.n_out);
}

static fth_status unpack(fth_parquet_column *c, int32_t codec, const uint8_t *in, uint64_t n_in,
                         uint8_t *out, uint64_t want, fth_err *err)
{
    if (codec == FTH__PARQUET_GZIP)
        return unpack_stream(c, FTH__CODEC_GZIP, in, n_in, out, want, err);
    if (codec == FTH__PARQUET_ZSTD)
        return unpack_stream(c, FTH__CODEC_ZSTD, in, n_in, out, want, err);
    const bool good = codec == FTH__PARQUET_SNAPPY
                          ? fth__snappy_block(in, n_in, out, want)
                          : fth__lz4_block(in, n_in, out, want) == want && (want > 0 || n_in <= 1);
    if (good) return FTH_OK;
    return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, c->page.offset,
                             "%" PRIu64 " bytes packed by %s do not unpack to %" PRIu64, n_in,
                             fth__parquet_codec_name(codec), want);
}

/* ---- headers ---- */

typedef struct page_head {
    int64_t type, unpacked, packed;
    int64_t values, encoding, level_encoding;
    int64_t nulls, level_bytes, repetition_bytes; /* version 2 */
    bool has_crc, is_packed;
    uint32_t crc;
    uint64_t at, data; /* where the header and what follows it begin */
} page_head;

static void take_values_head(fth__thrift *t, page_head *h)
{
    enum { VALUES = 1, ENCODING, LEVELS };
    for (fth__thrift_field f = {0}; fth__thrift_next(t, &f);) switch (f.id) {
        case VALUES: h->values = fth__thrift_int(t, &f); break;
        case ENCODING: h->encoding = fth__thrift_int(t, &f); break;
        case LEVELS:
            if (h->type == DATA_PAGE) {
                h->level_encoding = fth__thrift_int(t, &f);
                break;
            } /* fall through */
        default: fth__thrift_skip(t, &f);
        }
}

static void take_v2_head(fth__thrift *t, page_head *h)
{
    enum { VALUES = 1, NULLS, ENCODING = 4, LEVEL_BYTES, REPETITION_BYTES, IS_PACKED };
    for (fth__thrift_field f = {0}; fth__thrift_next(t, &f);) switch (f.id) {
        case VALUES: h->values = fth__thrift_int(t, &f); break;
        case NULLS: h->nulls = fth__thrift_int(t, &f); break;
        case ENCODING: h->encoding = fth__thrift_int(t, &f); break;
        case LEVEL_BYTES: h->level_bytes = fth__thrift_int(t, &f); break;
        case REPETITION_BYTES: h->repetition_bytes = fth__thrift_int(t, &f); break;
        case IS_PACKED: h->is_packed = fth__thrift_bool(t, &f); break;
        default: fth__thrift_skip(t, &f);
        }
}

static page_head take_head(fth__thrift *t)
{
    enum { TYPE = 1, UNPACKED, PACKED, CRC, VALUES, DICTIONARY = 7, VALUES_V2 };
    page_head h = {.type = -1,
                   .unpacked = -1,
                   .packed = -1,
                   .values = -1,
                   .encoding = -1,
                   .level_encoding = RLE,
                   .is_packed = true};
    for (fth__thrift_field f = {0}; fth__thrift_next(t, &f);) {
        const bool fits = (f.id == VALUES && h.type == DATA_PAGE) ||
                          (f.id == DICTIONARY && h.type == DICTIONARY_PAGE);
        if (f.id == TYPE)
            h.type = fth__thrift_int(t, &f);
        else if (f.id == UNPACKED)
            h.unpacked = fth__thrift_int(t, &f);
        else if (f.id == PACKED)
            h.packed = fth__thrift_int(t, &f);
        else if (f.id == CRC) {
            h.crc = (uint32_t)fth__thrift_int(t, &f);
            h.has_crc = true;
        } else if (fits && fth__thrift_struct(t, &f))
            take_values_head(t, &h);
        else if (f.id == VALUES_V2 && h.type == DATA_PAGE_V2 && fth__thrift_struct(t, &f))
            take_v2_head(t, &h);
        else
            fth__thrift_skip(t, &f);
    }
    return h;
}

static fth_status check_head(const fth_parquet_column *c, const page_head *h, fth_err *err)
{
    if (h->type < DATA_PAGE || h->type > DATA_PAGE_V2 || h->unpacked < 0 || h->packed < 0 ||
        h->unpacked > INT32_MAX)
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, h->at,
                                 "type %" PRId64 " with %" PRId64 " bytes packed into %" PRId64
                                 " is no page",
                                 h->type, h->unpacked, h->packed);
    if ((uint64_t)h->packed > c->end - h->data)
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, h->at,
                                 "expected a page of at most %" PRIu64 " bytes, found %" PRId64,
                                 c->end - h->data, h->packed);
    if (h->type == INDEX_PAGE) return FTH_OK;
    const int64_t most = h->type == DICTIONARY_PAGE ? INT32_MAX : c->left;
    if (h->values < 0 || h->values > most)
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, h->at,
                                 "expected a page of at most %" PRId64 " values, found %" PRId64,
                                 most, h->values);
    return FTH_OK;
}

/* The header at c->at, through a buffer that grows while the header goes beyond it. */
static fth_status read_head(fth_parquet_column *c, page_head *h, fth_err *err)
{
    for (uint64_t want = HEAD;; want *= 4) {
        const uint64_t left = c->end - c->at, n = left < want ? left : want;
        FTH_TRY(fth__parquet_room_take(c, &c->head, n, "header of a page of Parquet", err));
        FTH_TRY(fth_file_read(c->file->file, c->at, n, c->head.data, "a page of Parquet", err));
        fth__thrift t = {.at = c->head.data, .end = c->head.data + n};
        *h = take_head(&t);
        if (t.bad == FTH__THRIFT_SHORT && n < left && want < MOST_HEAD) continue;
        if (t.bad)
            return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, c->at,
                                     t.bad == FTH__THRIFT_SHORT
                                         ? "expected a page, the column ends in its header"
                                         : "the header of a page is damaged");
        h->at = c->at;
        h->data = c->at + (uint64_t)(t.at - c->head.data);
        return check_head(c, h, err);
    }
}

/* ---- pages ---- */

/* The bytes of a page into `to`, of which the first `plain` are never packed. */
static fth_status read_page(fth_parquet_column *c, const page_head *h, uint64_t plain,
                            fth__parquet_room *to, fth_err *err)
{
    fth_file *const file = c->file->file;
    const int32_t codec = c->file->chunk[c->group * c->file->n_leaves + c->index].codec;
    const uint64_t n = (uint64_t)h->packed, want = (uint64_t)h->unpacked;
    const bool packed = codec != FTH__PARQUET_PLAIN && h->is_packed;
    if (plain > n || plain > want || (!packed && n != want))
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, h->at,
                                 "expected a page of %" PRIu64 " bytes, found %" PRIu64
                                 " with %" PRIu64 " of levels",
                                 want, n, plain);
    FTH_TRY(fth__parquet_room_take(c, to, want, "a page of Parquet", err));
    if (packed) FTH_TRY(fth__parquet_room_take(c, &c->packed, n, "a packed page of Parquet", err));
    uint8_t *const in = packed ? c->packed.data : to->data;
    FTH_TRY(fth_file_read(file, h->data, n, in, "a page of Parquet", err));
    if (h->has_crc && fth__crc32(0, in, n) != h->crc)
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, h->at,
                                 "expected the checksum %08" PRIx32 ", found %08" PRIx32, h->crc,
                                 fth__crc32(0, in, n));
    if (!packed) return FTH_OK;
    memcpy(to->data, in, plain);
    if (want == plain && n == plain) return FTH_OK; /* nothing but nulls: nothing was packed */
    return unpack(c, codec, in + plain, n - plain, to->data + plain, want - plain, err);
}

static fth_status read_dictionary(fth_parquet_column *c, const page_head *h, fth_err *err)
{
    if (h->encoding != PLAIN && h->encoding != PLAIN_DICTIONARY)
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FEATURE, h->at,
                                 "a dictionary in encoding %" PRId64 ", which is not read",
                                 h->encoding);
    if (c->has_dictionary)
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, h->at,
                                 "expected one dictionary, found another");
    FTH_TRY(read_page(c, h, 0, &c->dictionary, err));
    FTH_TRY(fth__parquet_dictionary(c, h->values, (uint64_t)h->unpacked, h->at, err));
    c->has_dictionary = true;
    return FTH_OK;
}

/* Levels of a page of version 1 stand behind their length, and are packed with the values. */
static fth_status find_levels(fth_parquet_column *c, const page_head *h, uint64_t *bytes,
                              fth_err *err)
{
    fth__parquet_page *p = &c->page;
    const uint64_t all = (uint64_t)(p->end - p->at);
    *bytes = 0;
    if (h->type == DATA_PAGE_V2) {
        *bytes = (uint64_t)h->level_bytes;
        return FTH_OK;
    }
    if (!p->has_levels) return FTH_OK;
    if (h->level_encoding != RLE)
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FEATURE, h->at,
                                 "levels in encoding %" PRId64 ", which is not read",
                                 h->level_encoding);
    if (all >= 4)
        *bytes = (uint64_t)p->at[0] | (uint64_t)p->at[1] << 8 | (uint64_t)p->at[2] << 16 |
                 (uint64_t)p->at[3] << 24;
    if (all < 4 || *bytes > all - 4)
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, h->at,
                                 "expected levels in a page of %" PRIu64 " bytes, found %" PRIu64
                                 " bytes of them",
                                 all, *bytes);
    p->at += 4;
    return FTH_OK;
}

static fth_status read_values(fth_parquet_column *c, const page_head *h, fth_err *err)
{
    uint64_t levels = 0;
    if (h->repetition_bytes != 0 || h->level_bytes < 0 || (h->level_bytes && !c->leaf->optional))
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, h->at,
                                 "a flat column has no levels of %" PRId64 " and %" PRId64 " bytes",
                                 h->repetition_bytes, h->level_bytes);
    c->page =
        (fth__parquet_page){.left = h->values, .offset = h->at, .has_levels = c->leaf->optional};
    c->page.encoding = h->encoding >= 0 && h->encoding < 100 ? (int32_t)h->encoding : 100;
    FTH_TRY(read_page(c, h, (uint64_t)h->level_bytes, &c->data, err));
    c->page.at = c->data.data;
    c->page.end = c->data.data + h->unpacked;
    FTH_TRY(find_levels(c, h, &levels, err));
    c->page.levels = (fth__parquet_runs){.at = c->page.at, .end = c->page.at + levels, .width = 1};
    c->page.at += levels;
    FTH_ASSERT(c->page.at <= c->page.end);
    c->left -= h->values;
    return fth__parquet_values_begin(c, err);
}

static void begin_chunk(fth_parquet_column *c)
{
    const fth_parquet *p = c->file;
    const fth__parquet_chunk *chunk = &p->chunk[c->group * p->n_leaves + c->index];
    c->at = chunk->offset;
    c->end = chunk->offset + chunk->bytes;
    c->left = chunk->values;
    c->has_dictionary = false;
    c->n_words = 0;
}

fth_status fth__parquet_page_next(fth_parquet_column *c, fth_err *err)
{
    page_head h;
    while (c->page.left == 0) {
        FTH_TRY(read_head(c, &h, err));
        c->page.offset = h.at;
        c->at = h.data + (uint64_t)h.packed;
        if (h.type == DICTIONARY_PAGE)
            FTH_TRY(read_dictionary(c, &h, err));
        else if (h.type != INDEX_PAGE)
            FTH_TRY(read_values(c, &h, err));
    }
    return FTH_OK;
}

/* ---- a column ---- */

static const char *type_name(const fth__parquet_leaf *leaf, char text[80])
{
    static const char *const names[FTH__PARQUET_PHYSICALS] = {
        "BOOLEAN", "INT32",  "INT64",      "INT96",
        "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
    const char *name = names[leaf->physical];
    if (leaf->physical == FTH__PARQUET_FIXED)
        snprintf(text, 80, "%s(%d)", name, (int)leaf->width);
    else
        snprintf(text, 80, "%s", name);
    return text;
}

static fth_status check_column(const fth_parquet *p, int64_t column, fth_err *err)
{
    char text[80];
    const char *const path = p->file->path;
    if (column < 0 || column >= p->n_leaves)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no column %" PRId64 ", it has %" PRId64,
                        path, column, p->n_leaves);
    const fth__parquet_leaf *leaf = &p->leaf[column];
    if (fth_parquet_type_of(p, column) == FTH_PARQUET_OTHER)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: column '%.80s' is %s%s, which is not read",
                        path, leaf->name,
                        leaf->nested    ? "a list or inside a group, of "
                        : leaf->decimal ? "a decimal number in "
                                        : "",
                        type_name(leaf, text));
    for (int64_t g = 0; g < p->n_groups; g++) {
        const int32_t codec = p->chunk[g * p->n_leaves + column].codec;
        if (is_read(codec)) continue;
        const char *name = fth__parquet_codec_name(codec);
        const fth_status s =
            FTH_FAIL(err, FTH_E_FILE_FEATURE,
                     "%s: column '%.80s', row group %" PRId64 " is packed by %s, which is not read",
                     path, leaf->name, g, name ? name : "an unknown codec");
        fth_err_hint(err, "write the file anew with compression snappy, gzip, zstd or none");
        return s;
    }
    return FTH_OK;
}

fth_status fth_parquet_column_open(fth_parquet_column **out, fth_parquet *file, int64_t column,
                                   fth_err *err)
{
    static const int64_t items[FTH__PARQUET_PHYSICALS] = {
        [FTH__PARQUET_INT32] = 4,
        [FTH__PARQUET_INT64] = 8,
        [FTH__PARQUET_FLOAT] = 4,
        [FTH__PARQUET_DOUBLE] = 8,
    };
    void *block = NULL;
    *out = NULL;
    FTH_TRY(check_column(file, column, err));
    FTH_TRY(fth_mem_take(file->mem, FTH_MEM_ANY, sizeof(fth_parquet_column), "a column of Parquet",
                         &block, err));
    fth_parquet_column *c = block;
    memset(c, 0, sizeof *c);
    c->file = file;
    c->index = column;
    c->leaf = &file->leaf[column];
    c->type = fth_parquet_type_of(file, column);
    c->item = items[c->leaf->physical];
    c->group = -1;
    *out = c;
    return FTH_OK;
}

void fth_parquet_column_close(fth_parquet_column *c)
{
    if (!c) return;
    fth_mem *mem = c->file->mem;
    fth__parquet_room *const rooms[] = {&c->head,       &c->packed, &c->data,
                                        &c->dictionary, &c->words,  &c->work};
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
        (void)fth_mem_release(mem, rooms[i]->data, NULL);
    (void)fth_mem_release(mem, c, NULL);
}

/* Which of the next n rows have a value; how many do. */
static fth_status take_levels(fth_parquet_column *c, int64_t n, int64_t *there, fth_err *err)
{
    *there = n;
    if (!c->page.has_levels) return FTH_OK;
    if (!fth__parquet_runs_take(&c->page.levels, n, c->number))
        return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, c->page.offset,
                                 "the levels of a page end too early");
    *there = 0;
    for (int64_t i = 0; i < n; i++) *there += c->present[i] = (uint8_t)c->number[i];
    return FTH_OK;
}

/* Values that follow each other to the rows that have one, from the last on; nulls become zero. */
static void spread(fth_parquet_column *c, int64_t n, int64_t there)
{
#define SPREAD(array, zero)                                                                        \
    for (int64_t i = n; i-- > 0;) array[i] = c->present[i] ? array[--there] : (zero)
    switch (c->type) {
    case FTH_PARQUET_BOOL: SPREAD(c->v.bools, 0); break;
    case FTH_PARQUET_I32: SPREAD(c->v.i32, 0); break;
    case FTH_PARQUET_I64: SPREAD(c->v.i64, 0); break;
    case FTH_PARQUET_F32: SPREAD(c->v.f32, 0); break;
    case FTH_PARQUET_F64: SPREAD(c->v.f64, 0); break;
    case FTH_PARQUET_TEXT: SPREAD(c->v.text, ((fth_parquet_text){"", 0})); break;
    case FTH_PARQUET_OTHER: break;
    }
#undef SPREAD
    FTH_ASSERT(there == 0);
}

fth_status fth_parquet_next(fth_parquet_column *c, fth_parquet_block *out, fth_err *err)
{
    *out = (fth_parquet_block){.first = c->row};
    while (c->page.left == 0 && c->left == 0) {
        if (c->group + 1 >= c->file->n_groups) return FTH_OK;
        c->group++;
        begin_chunk(c);
    }
    FTH_TRY(fth__parquet_page_next(c, err));
    const int64_t n = c->page.left < FTH__PARQUET_PIECE ? c->page.left : FTH__PARQUET_PIECE;
    int64_t there = 0;
    FTH_TRY(take_levels(c, n, &there, err));
    FTH_TRY(fth__parquet_values_take(c, there, err));
    if (there < n) spread(c, n, there);
    c->page.left -= n;
    c->row += n;
    out->n = n;
    out->bools = c->type == FTH_PARQUET_BOOL ? c->v.bools : NULL;
    out->i32 = c->type == FTH_PARQUET_I32 ? c->v.i32 : NULL;
    out->i64 = c->type == FTH_PARQUET_I64 ? c->v.i64 : NULL;
    out->f32 = c->type == FTH_PARQUET_F32 ? c->v.f32 : NULL;
    out->f64 = c->type == FTH_PARQUET_F64 ? c->v.f64 : NULL;
    out->text = c->type == FTH_PARQUET_TEXT ? c->v.text : NULL;
    out->present = there < n ? c->present : NULL;
    return FTH_OK;
}
