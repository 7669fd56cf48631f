/* parquet_values.c - values of a page of Parquet: plain, by dictionary, as differences, split.
 *
 * Every decoder goes on where it stopped, so that a page comes out in pieces, and stops at the end
 * of its bytes: what a page claims beyond them is an error.
 */
#include "io/parquet.h"

#include "base/assert.h"
#include "io/dense.h"
#include "io/parquet_thrift.h"

#include <string.h>

enum {
    PLAIN = 0,
    PLAIN_DICTIONARY = 2,
    RLE = 3,
    DELTA_BINARY_PACKED = 5,
    DELTA_LENGTH_BYTE_ARRAY = 6,
    RLE_DICTIONARY = 8,
    BYTE_STREAM_SPLIT = 9
};

static const char *encoding_name(int32_t encoding)
{
    static const char *const names[] = {
        "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
        "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
        "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};
    return encoding >= 0 && encoding < 10 ? names[encoding] : "of an unknown number";
}

static uint64_t number(const uint8_t *in, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint64_t)in[i] << (8 * i);
    return v;
}

/* Number i of packed numbers of `width` bits, at most 64, the lowest bit first. */
static uint64_t packed_at(const uint8_t *bits, uint64_t i, int width)
{
    const uint64_t from = i * (uint64_t)width;
    const uint8_t *at = bits + from / 8;
    uint64_t v = 0;
    int have = 0;
    for (int skip = (int)(from % 8); have < width; skip = 0) {
        v |= (uint64_t)(*at++ >> skip) << have;
        have += 8 - skip;
    }
    return width < 64 ? v & ((UINT64_C(1) << width) - 1) : v;
}

/* ---- runs ---- */

static bool next_run(fth__parquet_runs *r)
{
    fth__thrift t = {.at = r->at, .end = r->end};
    const uint64_t head = fth__thrift_varint(&t);
    const uint64_t n = head >> 1;
    if (t.bad || n == 0 || n > UINT32_MAX) return false;
    r->packed = head & 1;
    const uint64_t bytes = r->packed ? n * (uint64_t)r->width : (uint64_t)(r->width + 7) / 8;
    if (bytes > (uint64_t)(t.end - t.at)) return false;
    r->left = r->packed ? n * 8 : n;
    r->bits = t.at;
    r->taken = 0;
    r->value = r->packed ? 0 : (uint32_t)number(t.at, (int)bytes);
    r->at = t.at + bytes;
    return r->packed || r->width == 32 || r->value >> r->width == 0;
}

bool fth__parquet_runs_take(fth__parquet_runs *r, int64_t n, uint32_t *out)
{
    FTH_ASSERT(r->width >= 0 && r->width <= 32);
    for (int64_t i = 0; i < n;) {
        if (r->left == 0 && !next_run(r)) return false;
        const uint64_t want = (uint64_t)(n - i), k = r->left < want ? r->left : want;
        for (uint64_t j = 0; j < k; j++)
            out[i + (int64_t)j] =
                r->packed ? (uint32_t)packed_at(r->bits, r->taken + j, r->width) : r->value;
        r->taken += k;
        r->left -= k;
        i += (int64_t)k;
    }
    return true;
}

/* ---- differences ---- */

bool fth__parquet_delta_begin(fth__parquet_delta *d, const uint8_t *at, const uint8_t *end)
{
    fth__thrift t = {.at = at, .end = end};
    const uint64_t block = fth__thrift_varint(&t), minis = fth__thrift_varint(&t),
                   total = fth__thrift_varint(&t), first = (uint64_t)fth__thrift_zigzag(&t);
    *d = (fth__parquet_delta){.end = end, .total = total, .minis = minis, .last = first};
    /* the format wants multiples of 128 and 32; 8 keeps every miniblock on whole bytes */
    if (t.bad || minis == 0 || block == 0 || block > 1 << 20 || block % minis != 0 ||
        block / minis % 8 != 0)
        return false;
    d->at = t.at;
    d->per_mini = block / minis;
    d->mini = minis;
    return true;
}

static bool next_mini(fth__parquet_delta *d)
{
    if (d->mini == d->minis) { /* a block: its least difference, the widths of its miniblocks */
        fth__thrift t = {.at = d->at, .end = d->end};
        d->least = (uint64_t)fth__thrift_zigzag(&t);
        if (t.bad || d->minis > (uint64_t)(t.end - t.at)) return false;
        d->widths = t.at;
        d->at = t.at + d->minis;
        d->mini = 0;
    }
    d->width = d->widths[d->mini++];
    const uint64_t bytes = d->per_mini / 8 * (uint64_t)d->width;
    if (d->width > 64 || bytes > (uint64_t)(d->end - d->at)) return false;
    d->bits = d->at;
    d->at += bytes;
    d->left = d->per_mini;
    d->taken = 0;
    return true;
}

bool fth__parquet_delta_take(fth__parquet_delta *d, int64_t n, int64_t *out)
{
    if ((uint64_t)n > d->total - d->given) return false;
    for (int64_t i = 0; i < n; i++, d->given++) {
        if (d->given > 0) {
            if (d->left == 0 && !next_mini(d)) return false;
            d->last += d->least + packed_at(d->bits, d->taken++, d->width);
            d->left--;
        }
        if (out) out[i] = (int64_t)d->last;
    }
    return true;
}

/* ---- a page begins ---- */

static fth_status damaged(const fth_parquet_column *c, const char *what, fth_err *err)
{
    return FTH__PARQUET_FAIL(
        c, err, FTH_E_FILE_FORMAT, c->page.offset, "%s values in encoding %s were expected: %s",
        c->leaf->optional ? "optional" : "required", encoding_name(c->page.encoding), what);
}

static bool is_text(const fth_parquet_column *c)
{
    return c->type == FTH_PARQUET_TEXT;
}

static bool is_whole(const fth_parquet_column *c)
{
    return c->leaf->physical == FTH__PARQUET_INT32 || c->leaf->physical == FTH__PARQUET_INT64;
}

static fth_status begin_indices(fth_parquet_column *c, fth_err *err)
{
    fth__parquet_page *p = &c->page;
    if (!c->has_dictionary) return damaged(c, "there is no dictionary before them", err);
    p->runs = (fth__parquet_runs){.at = p->at, .end = p->end};
    if (p->at == p->end) return FTH_OK; /* nothing but nulls */
    p->runs.width = *p->runs.at++;
    return p->runs.width <= 32 ? FTH_OK : damaged(c, "indices have more than 32 bits", err);
}

/* Lengths first, then the texts: all lengths are passed once to find where texts begin. */
static fth_status begin_lengths(fth_parquet_column *c, fth_err *err)
{
    fth__parquet_page *p = &c->page;
    if (p->at == p->end) return FTH_OK;
    if (!fth__parquet_delta_begin(&p->delta, p->at, p->end))
        return damaged(c, "the head of their lengths is damaged", err);
    fth__parquet_delta walk = p->delta;
    if (walk.total > (uint64_t)p->left ||
        !fth__parquet_delta_take(&walk, (int64_t)walk.total, NULL))
        return damaged(c, "their lengths end too early", err);
    p->at = walk.at;
    return FTH_OK;
}

fth_status fth__parquet_values_begin(fth_parquet_column *c, fth_err *err)
{
    fth__parquet_page *p = &c->page;
    const bool is_bool = c->type == FTH_PARQUET_BOOL;
    switch (p->encoding) {
    case PLAIN: return FTH_OK;
    case PLAIN_DICTIONARY:
    case RLE_DICTIONARY: return begin_indices(c, err);
    case RLE: /* behind their length */
        if (!is_bool) break;
        if (p->at == p->end) return FTH_OK;
        if (p->end - p->at < 4 || number(p->at, 4) > (uint64_t)(p->end - p->at - 4))
            return damaged(c, "their length goes beyond the page", err);
        p->runs =
            (fth__parquet_runs){.at = p->at + 4, .end = p->at + 4 + number(p->at, 4), .width = 1};
        return FTH_OK;
    case DELTA_BINARY_PACKED:
        if (!is_whole(c)) break;
        if (p->at == p->end || fth__parquet_delta_begin(&p->delta, p->at, p->end)) return FTH_OK;
        return damaged(c, "the head of their differences is damaged", err);
    case DELTA_LENGTH_BYTE_ARRAY:
        if (!is_text(c)) break;
        return begin_lengths(c, err);
    case BYTE_STREAM_SPLIT:
        if (is_text(c) || is_bool) break;
        if ((p->end - p->at) % c->item != 0) return damaged(c, "bytes are left over", err);
        return FTH_OK;
    default: break;
    }
    return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FEATURE, p->offset,
                             "values in encoding %s (%d), which is not read for this type",
                             encoding_name(p->encoding), (int)p->encoding);
}

/* ---- dictionaries ---- */

/* Texts of a dictionary: where each is, found once. */
static fth_status find_words(fth_parquet_column *c, int64_t n, uint64_t bytes, uint64_t offset,
                             fth_err *err)
{
    FTH_TRY(fth__parquet_room_take(c, &c->words, (uint64_t)n * sizeof(fth_parquet_text),
                                   "words of a dictionary of Parquet", err));
    fth_parquet_text *word = (fth_parquet_text *)(void *)c->words.data;
    const uint8_t *at = c->dictionary.data, *const end = at + bytes;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t length = end - at < 4 ? UINT64_MAX : number(at, 4);
        if (end - at < 4 || length > (uint64_t)(end - at - 4))
            return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, offset,
                                     "expected a dictionary of %" PRId64 " texts, found %" PRId64
                                     " in its %" PRIu64 " bytes",
                                     n, i, bytes);
        word[i] = (fth_parquet_text){.chars = (const char *)at + 4, .bytes = (int64_t)length};
        at += 4 + length;
    }
    return FTH_OK;
}

fth_status fth__parquet_dictionary(fth_parquet_column *c, int64_t n, uint64_t bytes,
                                   uint64_t offset, fth_err *err)
{
    const uint64_t least = is_text(c) ? 4 : (uint64_t)c->item;
    if (c->type == FTH_PARQUET_BOOL || (uint64_t)n > bytes / least)
        return FTH__PARQUET_FAIL(
            c, err, FTH_E_FILE_FORMAT, offset,
            "expected a dictionary of %" PRId64 " values, found %" PRIu64 " bytes", n, bytes);
    c->n_words = n;
    return is_text(c) ? find_words(c, n, bytes, offset, err) : FTH_OK;
}

/* ---- values ---- */

/* Element i of plain values at `from` as value k of the block; false: it does not fit. */
static bool put(fth_parquet_column *c, const uint8_t *from, int64_t k)
{
    const uint64_t raw = number(from, (int)c->item);
    const uint32_t low = (uint32_t)raw;
    switch (c->type) {
    case FTH_PARQUET_I32: c->v.i32[k] = (int32_t)low; return true;
    case FTH_PARQUET_I64:
        if (c->item == 8 && c->leaf->is_unsigned && raw > INT64_MAX) return false;
        c->v.i64[k] = (int64_t)raw; /* of 4 bytes: unsigned, and so as it is */
        return true;
    case FTH_PARQUET_F32: memcpy(&c->v.f32[k], &low, 4); return true;
    case FTH_PARQUET_F64: memcpy(&c->v.f64[k], &raw, 8); return true;
    case FTH_PARQUET_BOOL:
    case FTH_PARQUET_TEXT:
    case FTH_PARQUET_OTHER: break;
    }
    return false;
}

static fth_status too_large(const fth_parquet_column *c, const uint8_t *from, fth_err *err)
{
    const fth_status s = FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FEATURE, c->page.offset,
                                           FTH__U64_TEXT, number(from, (int)c->item));
    fth_err_hint(err, FTH__U64_HINT);
    return s;
}

static fth_status take_texts(fth_parquet_column *c, int64_t n, fth_err *err)
{
    fth__parquet_page *p = &c->page;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t left = (uint64_t)(p->end - p->at);
        const uint64_t length = left < 4 ? UINT64_MAX : number(p->at, 4);
        if (left < 4 || length > left - 4) return damaged(c, "the page ends too early", err);
        c->v.text[i] =
            (fth_parquet_text){.chars = (const char *)p->at + 4, .bytes = (int64_t)length};
        p->at += 4 + length;
    }
    return FTH_OK;
}

static fth_status take_plain(fth_parquet_column *c, int64_t n, fth_err *err)
{
    fth__parquet_page *p = &c->page;
    const uint64_t left = (uint64_t)(p->end - p->at);
    if (is_text(c)) return take_texts(c, n, err);
    if (c->type == FTH_PARQUET_BOOL) {
        if (p->given + (uint64_t)n > left * 8) return damaged(c, "the page ends too early", err);
        for (int64_t i = 0; i < n; i++, p->given++)
            c->v.bools[i] = p->at[p->given / 8] >> (p->given % 8) & 1;
        return FTH_OK;
    }
    if ((uint64_t)n > left / (uint64_t)c->item) return damaged(c, "the page ends too early", err);
    for (int64_t i = 0; i < n; i++, p->at += c->item)
        if (!put(c, p->at, i)) return too_large(c, p->at, err);
    return FTH_OK;
}

static fth_status take_words(fth_parquet_column *c, int64_t n, fth_err *err)
{
    if (!fth__parquet_runs_take(&c->page.runs, n, c->number))
        return damaged(c, "their indices end too early", err);
    for (int64_t i = 0; i < n; i++)
        if (c->number[i] >= c->n_words)
            return FTH__PARQUET_FAIL(c, err, FTH_E_FILE_FORMAT, c->page.offset,
                                     "expected an index below %" PRId64
                                     " into the dictionary, found %" PRIu32,
                                     c->n_words, c->number[i]);
    if (is_text(c)) {
        const fth_parquet_text *word = (const fth_parquet_text *)(const void *)c->words.data;
        for (int64_t i = 0; i < n; i++) c->v.text[i] = word[c->number[i]];
        return FTH_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from = c->dictionary.data + (int64_t)c->number[i] * c->item;
        if (!put(c, from, i)) return too_large(c, from, err);
    }
    return FTH_OK;
}

static fth_status take_differences(fth_parquet_column *c, int64_t n, fth_err *err)
{
    if (!fth__parquet_delta_take(&c->page.delta, n, c->wide))
        return damaged(c, "their differences end too early", err);
    for (int64_t i = 0; i < n; i++) {
        uint8_t raw[8]; /* of 4 bytes: differences are modulo 2^32 */
        for (int b = 0; b < 8; b++) raw[b] = (uint8_t)((uint64_t)c->wide[i] >> (8 * b));
        if (!put(c, raw, i)) return too_large(c, raw, err);
    }
    return FTH_OK;
}

static fth_status take_lengths(fth_parquet_column *c, int64_t n, fth_err *err)
{
    fth__parquet_page *p = &c->page;
    if (!fth__parquet_delta_take(&p->delta, n, c->wide))
        return damaged(c, "their lengths end too early", err);
    for (int64_t i = 0; i < n; i++) {
        if (c->wide[i] < 0 || c->wide[i] > p->end - p->at)
            return damaged(c, "a length goes beyond the page", err);
        c->v.text[i] = (fth_parquet_text){.chars = (const char *)p->at, .bytes = c->wide[i]};
        p->at += c->wide[i];
    }
    return FTH_OK;
}

/* All first bytes of the values, then all second ones. */
static fth_status take_split(fth_parquet_column *c, int64_t n, fth_err *err)
{
    fth__parquet_page *p = &c->page;
    const uint64_t all = (uint64_t)(p->end - p->at) / (uint64_t)c->item;
    if ((uint64_t)n > all - p->given) return damaged(c, "the page ends too early", err);
    for (int64_t i = 0; i < n; i++, p->given++) {
        uint8_t raw[8] = {0};
        for (int64_t b = 0; b < c->item; b++) raw[b] = p->at[(uint64_t)b * all + p->given];
        if (!put(c, raw, i)) return too_large(c, raw, err);
    }
    return FTH_OK;
}

fth_status fth__parquet_values_take(fth_parquet_column *c, int64_t n, fth_err *err)
{
    FTH_ASSERT(n >= 0 && n <= FTH__PARQUET_PIECE);
    if (n == 0) return FTH_OK;
    switch (c->page.encoding) {
    case PLAIN: return take_plain(c, n, err);
    case PLAIN_DICTIONARY:
    case RLE_DICTIONARY: return take_words(c, n, err);
    case RLE:
        if (!fth__parquet_runs_take(&c->page.runs, n, c->number))
            return damaged(c, "their runs end too early", err);
        for (int64_t i = 0; i < n; i++) c->v.bools[i] = (uint8_t)c->number[i];
        return FTH_OK;
    case DELTA_BINARY_PACKED: return take_differences(c, n, err);
    case DELTA_LENGTH_BYTE_ARRAY: return take_lengths(c, n, err);
    default: return take_split(c, n, err);
    }
}
