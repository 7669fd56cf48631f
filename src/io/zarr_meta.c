/* zarr_meta.c - what .zarray and zarr.json say, checked, as one description.
 *
 * Nothing is guessed: what is not known is refused by its name, because a codec that is left out
 * gives numbers that look like an image.
 */
#include "array/half.h"
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "io/zarr.h"
#include "ops/identity.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct scan {
    fth__zarr_meta *m;
    const char *label;
    fth_err *err;
} scan;

#define BAD(s, status, ...) fth_err_set((s)->err, FTH_HERE, (status), __VA_ARGS__)

static const struct {
    const char *v2, *v3; /* "" where there is none */
    fth_dtype dtype;
} names[] = {
    {"b1", "bool", FTH_BOOL},     {"u1", "uint8", FTH_U8},         {"u2", "uint16", FTH_U16},
    {"i4", "int32", FTH_I32},     {"i8", "int64", FTH_I64},        {"f2", "float16", FTH_F16},
    {"", "bfloat16", FTH_BF16},   {"f4", "float32", FTH_F32},      {"f8", "float64", FTH_F64},
    {"c8", "complex64", FTH_C64}, {"c16", "complex128", FTH_C128}, {"u4", "uint32", FTH_U32},
    {"i2", "int16", FTH_I16},     {"i1", "int8", FTH_I8}};
enum { NAMES = sizeof names / sizeof names[0] };
enum { LONGEST_TEXT = 1 << 16 };   /* characters of strings of a fixed length */
#define LONGEST (INT64_C(1) << 56) /* so that a corner and an extent can be added */
_Static_assert((int)FTH_DTYPE_COUNT == (int)NAMES, "every dtype has a row above");

const char *fth__zarr_dtype_name(fth_dtype dtype, int format)
{
    for (int k = 0; k < NAMES; k++)
        if (names[k].dtype == dtype) return format == 2 ? names[k].v2 : names[k].v3;
    return "";
}

/* ---- numbers ---- */

/* A list of at most 8 sizes; `least` is 0 for shapes and 1 for chunks. */
static fth_status take_sizes(const scan *s, const fth_json_value *list, const char *what,
                             int64_t least, int64_t *to, int *n)
{
    const int64_t count = fth_json_count(list);
    if (!list || fth_json_is_object(list) || fth_json_get_text(list, NULL, NULL))
        return BAD(s, FTH_E_FILE_FORMAT, "%s: it has no list '%s'", s->label, what);
    if (count > FTH_MAX_AXES)
        return BAD(s, FTH_E_FILE_FEATURE, "%s: '%s' has %" PRId64 " axes, at most %d are read",
                   s->label, what, count, (int)FTH_MAX_AXES);
    for (int64_t i = 0; i < count; i++) {
        to[i] = fth_json_get_int(fth_json_at(list, i), NULL, -1);
        if (to[i] < least)
            return BAD(s, FTH_E_FILE_FORMAT, "%s: '%s' should be whole numbers from %" PRId64,
                       s->label, what, least);
    }
    *n = (int)count;
    return FTH_OK;
}

static fth_status take_chunk(const scan *s, const fth_json_value *list, const char *what,
                             int64_t *to)
{
    int n = 0;
    FTH_TRY(take_sizes(s, list, what, 1, to, &n));
    if (n != s->m->n_axes)
        return BAD(s, FTH_E_FILE_FORMAT, "%s: '%s' has %d axes, the shape has %d", s->label, what,
                   n, s->m->n_axes);
    return FTH_OK;
}

/* "NaN", "Infinity", "-Infinity", or the bits as "0x7fc00000". */
static bool take_special(const char *text, int bits, double *out, bool *as_bits, uint64_t *raw)
{
    static const struct {
        const char *text;
        double value;
    } special[] = {
        {"NaN", (double)NAN}, {"Infinity", (double)INFINITY}, {"-Infinity", -(double)INFINITY}};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, special[i].text) == 0) {
            *out = special[i].value;
            return true;
        }
    const size_t n = strlen(text);
    if (strncmp(text, "0x", 2) != 0 || n != 2 + (size_t)bits / 4) return false;
    *raw = 0;
    for (const char *p = text + 2; *p; p++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, *p | 0x20);
        if (!at) return false;
        *raw = *raw << 4 | (uint64_t)(at - digits);
    }
    *as_bits = true;
    return true;
}

static bool take_real(const fth_json_value *v, fth_dtype dtype, uint8_t *to)
{
    double value = fth_json_get_real(v, NULL, (double)NAN);
    const char *text = fth_json_get_text(v, NULL, NULL);
    const size_t item = (size_t)fth_dtype_size(dtype);
    uint64_t raw = 0;
    bool as_bits = false;
    if (text && !take_special(text, (int)item * 8, &value, &as_bits, &raw)) return false;
    if (!text && isnan(value)) value = 0; /* null, and Python's NaN, which reads as null */
    FTH_ASSERT(item == 2 || item == 4 || item == 8);
    const float f = (float)value;
    const uint16_t half = dtype == FTH_F16 ? fth__f32_to_f16(f) : fth__f32_to_bf16(f);
    const void *from = as_bits            ? (const void *)&raw
                       : item == 2        ? (const void *)&half
                       : dtype == FTH_F32 ? (const void *)&f
                                          : (const void *)&value;
    memcpy(to, from, item);
    return true;
}

static bool take_fill(const fth_json_value *v, const fth__zarr_meta *m, uint8_t *to)
{
    const fth_dtype dtype = m->dtype;
    const fth_dtype part = fth_dtype_real_of(dtype);
    const size_t item = (size_t)fth_dtype_size(dtype);
    FTH_ASSERT(item <= FTH__ZARR_FILL);
    memset(to, 0, FTH__ZARR_FILL);
    if (!v) return true;
    if (fth_dtype_is_complex(dtype)) {
        const size_t half = item / 2;
        return (fth_json_count(v) == 2 && take_real(fth_json_at(v, 0), part, to) &&
                take_real(fth_json_at(v, 1), part, to + half)) ||
               take_real(v, part, to);
    }
    if (fth_dtype_is_real(dtype)) return take_real(v, dtype, to);
    if (dtype == FTH_BOOL) {
        to[0] = fth_json_get_bool(v, NULL, false) || fth_json_get_int(v, NULL, 0) != 0;
        return true;
    }
    const int64_t value = fth_json_get_int(v, NULL, 0);
    if (fth_json_get_text(v, NULL, NULL)) return m->text;
    if (!m->text && (value < fth__first_int((int)dtype) || value > fth__last_int((int)dtype)))
        return false;
    memcpy(to, &value, item); /* little-endian */
    return true;
}

/* ---- codecs ---- */

static fth_status add_codec(const scan *s, const char *name)
{
    fth__codecs *c = &s->m->codecs;
    const fth__codec_kind kind = fth__codec_find(name);
    if (kind == FTH__CODEC_COUNT) {
        const fth_status status = BAD(s, FTH_E_FILE_FEATURE,
                                      "%s: chunks are packed by '%s', "
                                      "which is not read",
                                      s->label, name);
        fth_err_hint(s->err, "write the array again with zstd, gzip, zlib, blosc or none");
        return status;
    }
    if (c->n == FTH__CODECS)
        return BAD(s, FTH_E_FILE_FEATURE, "%s: more than %d codecs in a row", s->label,
                   (int)FTH__CODECS);
    c->codec[c->n++] = (fth__codec){.kind = kind};
    return FTH_OK;
}

/* ---- version 2 ---- */

/* "|O" with the filter vlen-utf8, or "<U12". */
static bool take_text2(const scan *s, const char *text, const fth_json_value *filters)
{
    fth__zarr_meta *m = s->m;
    m->dtype = FTH_U8;
    if (text && strcmp(text, "|O") == 0 && fth_json_count(filters) == 1 &&
        strcmp(fth_json_get_text(fth_json_at(filters, 0), "id", ""), "vlen-utf8") == 0)
        return m->text = true;
    if (!text || (strncmp(text, "<U", 2) != 0 && strncmp(text, ">U", 2) != 0)) return false;
    const long n = strtol(text + 2, NULL, 10);
    if (n < 1 || n > LONGEST_TEXT) return false;
    m->characters = (int)n;
    m->swap = text[0] == '>';
    return m->text = true;
}

static fth_status take_dtype2(const scan *s, const char *text)
{
    if (!text || !text[0] || !strchr("<>|", text[0]))
        return BAD(s, FTH_E_FILE_FEATURE, "%s: the elements are no plain numbers: dtype '%s'",
                   s->label, text ? text : "(a record)");
    for (int k = 0; k < NAMES; k++)
        if (names[k].v2[0] && strcmp(text + 1, names[k].v2) == 0) {
            s->m->dtype = names[k].dtype;
            s->m->swap = text[0] == '>' && fth_dtype_size(names[k].dtype) > 1;
            return FTH_OK;
        }
    if (strcmp(text + 1, "u8") == 0) {
        s->m->dtype = FTH_I64;
        s->m->is_u64 = true;
        s->m->swap = text[0] == '>';
        return FTH_OK;
    }
    return BAD(s, FTH_E_FILE_FEATURE,
               "%s: the elements are '%s', which is not read; "
               "b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16 are",
               s->label, text);
}

static fth_status take_order2(const scan *s, const char *order)
{
    fth__zarr_meta *m = s->m;
    if (strcmp(order, "C") != 0 && strcmp(order, "F") != 0)
        return BAD(s, FTH_E_FILE_FORMAT, "%s: 'order' is '%s', should be C or F", s->label, order);
    for (int a = 0; a < m->n_axes; a++) m->order[a] = order[0] == 'F' ? m->n_axes - 1 - a : a;
    return FTH_OK;
}

static fth_status take_separator(const scan *s, const char *text)
{
    if (strcmp(text, ".") != 0 && strcmp(text, "/") != 0)
        return BAD(s, FTH_E_FILE_FORMAT,
                   "%s: names of chunks are separated by '%s', should be '.' or '/'", s->label,
                   text);
    s->m->separator = text[0];
    return FTH_OK;
}

static fth_status take_v2(const scan *s, const fth_json_value *doc)
{
    fth__zarr_meta *m = s->m;
    FTH_TRY(take_sizes(s, fth_json_get(doc, "shape"), "shape", 0, m->size, &m->n_axes));
    FTH_TRY(take_chunk(s, fth_json_get(doc, "chunks"), "chunks", m->chunk));
    memcpy(m->file, m->chunk, sizeof m->file);
    const fth_json_value *filters = fth_json_get(doc, "filters");
    const char *dtype = fth_json_get_text(doc, "dtype", NULL);
    if (!take_text2(s, dtype, filters)) FTH_TRY(take_dtype2(s, dtype));
    FTH_TRY(take_order2(s, fth_json_get_text(doc, "order", "C")));
    FTH_TRY(take_separator(s, fth_json_get_text(doc, "dimension_separator", ".")));
    if (fth_json_count(filters) > (m->text && !m->characters))
        return BAD(s, FTH_E_FILE_FEATURE,
                   "%s: elements pass through the filter '%s', which is not read", s->label,
                   fth_json_get_text(fth_json_at(filters, 0), "id", "(without a name)"));
    const fth_json_value *packer = fth_json_get(doc, "compressor");
    if (fth_json_is_object(packer))
        FTH_TRY(add_codec(s, fth_json_get_text(packer, "id", "(without a name)")));
    if (!take_fill(fth_json_get(doc, "fill_value"), m, m->fill))
        return BAD(s, FTH_E_FILE_FORMAT, "%s: 'fill_value' is no %s", s->label,
                   fth_dtype_name(m->dtype));
    return FTH_OK;
}

/* ---- version 3 ---- */

/* Something that is a name alone, or an object with one. */
static const char *name_of(const fth_json_value *v)
{
    return fth_json_get_text(v, fth_json_is_object(v) ? "name" : NULL, "");
}

static fth_status take_endian(const scan *s, const fth_json_value *config)
{
    const char *endian = fth_json_get_text(config, "endian", "little");
    const bool big = strcmp(endian, "big") == 0;
    if (!big && strcmp(endian, "little") != 0)
        return BAD(s, FTH_E_FILE_FORMAT, "%s: 'endian' is '%s', should be little or big", s->label,
                   endian);
    s->m->swap = big && (fth_dtype_size(s->m->dtype) > 1 || s->m->characters);
    return FTH_OK;
}

/* Apply a transposition to the order so far. */
static fth_status take_transpose(const scan *s, const fth_json_value *config)
{
    fth__zarr_meta *m = s->m;
    const fth_json_value *order = fth_json_get(config, "order");
    const char *text = fth_json_get_text(order, NULL, NULL);
    int before[FTH_MAX_AXES];
    bool seen[FTH_MAX_AXES] = {false};
    memcpy(before, m->order, sizeof before);
    if (!text && fth_json_count(order) != m->n_axes)
        return BAD(s, FTH_E_FILE_FORMAT,
                   "%s: the order of 'transpose' has %" PRId64 " axes, the array has %d", s->label,
                   fth_json_count(order), m->n_axes);
    for (int a = 0; a < m->n_axes; a++) {
        int64_t from = text && strcmp(text, "F") == 0 ? m->n_axes - 1 - a
                       : text                         ? a
                              : fth_json_get_int(fth_json_at(order, a), NULL, -1);
        if (from < 0 || from >= m->n_axes || seen[from])
            return BAD(s, FTH_E_FILE_FORMAT,
                       "%s: the order of 'transpose' names no axis, or one "
                       "twice",
                       s->label);
        seen[from] = true;
        m->order[a] = before[from];
    }
    return FTH_OK;
}

static fth_status take_codecs(const scan *s, const fth_json_value *list, bool inner);

static fth_status take_index_codecs(const scan *s, const fth_json_value *list)
{
    for (int64_t i = 0; i < fth_json_count(list); i++) {
        const fth_json_value *c = fth_json_at(list, i);
        const char *name = name_of(c);
        const char *endian =
            fth_json_get_text(fth_json_get(c, "configuration"), "endian", "little");
        if (strcmp(name, "crc32c") == 0 && i == 1)
            s->m->index_sum = true;
        else if (strcmp(name, "bytes") != 0 || i > 0 || strcmp(endian, "little") != 0)
            return BAD(s, FTH_E_FILE_FEATURE,
                       "%s: the index of a shard is stored by '%s' (%s), which is not read",
                       s->label, name, endian);
    }
    return FTH_OK;
}

static fth_status take_shards(const scan *s, const fth_json_value *config)
{
    fth__zarr_meta *m = s->m;
    const char *location = fth_json_get_text(config, "index_location", "end");
    m->sharded = true;
    m->index_first = strcmp(location, "start") == 0;
    if (!m->index_first && strcmp(location, "end") != 0)
        return BAD(s, FTH_E_FILE_FORMAT, "%s: 'index_location' is '%s', should be start or end",
                   s->label, location);
    FTH_TRY(take_chunk(s, fth_json_get(config, "chunk_shape"), "chunk_shape of sharding_indexed",
                       m->chunk));
    for (int a = 0; a < m->n_axes; a++)
        if (m->file[a] % m->chunk[a] != 0)
            return BAD(s, FTH_E_FILE_FORMAT,
                       "%s: shards of %" PRId64 " along axis %d cannot be cut into chunks of "
                       "%" PRId64,
                       s->label, m->file[a], a, m->chunk[a]);
    FTH_TRY(take_index_codecs(s, fth_json_get(config, "index_codecs")));
    return take_codecs(s, fth_json_get(config, "codecs"), true);
}

/* "numcodecs.zstd" is what "zstd" is. */
static const char *plain_name(const char *name)
{
    static const char prefix[] = "numcodecs.";
    const bool has = strncmp(name, prefix, sizeof prefix - 1) == 0;
    return has && strcmp(name, "numcodecs.crc32c") != 0 ? name + sizeof prefix - 1 : name;
}

/* Transpositions, then one that makes bytes, then packings. */
static fth_status take_codecs(const scan *s, const fth_json_value *list, bool inner)
{
    bool is_bytes = false;
    for (int64_t i = 0; i < fth_json_count(list); i++) {
        const fth_json_value *c = fth_json_at(list, i), *config = fth_json_get(c, "configuration");
        const char *name = name_of(c);
        if (strcmp(name, "sharding_indexed") == 0) {
            if (inner || i > 0 || fth_json_count(list) > 1)
                return BAD(s, FTH_E_FILE_FEATURE,
                           "%s: shards inside shards, or shards that are packed or transposed as "
                           "a whole, are not read",
                           s->label);
            return take_shards(s, config);
        }
        if (strcmp(name, "transpose") == 0 && !is_bytes) {
            FTH_TRY(take_transpose(s, config));
        } else if ((strcmp(name, "bytes") == 0 || strcmp(name, "endian") == 0) && !is_bytes) {
            FTH_TRY(take_endian(s, config));
            is_bytes = true;
        } else if (strcmp(name, "vlen-utf8") == 0 && s->m->text && !s->m->characters && !is_bytes) {
            is_bytes = true;
        } else if (!is_bytes) {
            return BAD(s, FTH_E_FILE_FEATURE,
                       "%s: elements pass through the codec '%s', which is not read", s->label,
                       name);
        } else {
            FTH_TRY(add_codec(s, plain_name(name)));
        }
    }
    if (is_bytes) return FTH_OK;
    return BAD(s, FTH_E_FILE_FORMAT, "%s: no codec says how elements become bytes", s->label);
}

static fth_status take_keys(const scan *s, const fth_json_value *encoding)
{
    const char *name = name_of(encoding);
    s->m->prefix = strcmp(name, "default") == 0;
    if (!s->m->prefix && strcmp(name, "v2") != 0)
        return BAD(s, FTH_E_FILE_FEATURE, "%s: names of chunks follow '%s', which is not known",
                   s->label, name);
    return take_separator(s, fth_json_get_text(fth_json_get(encoding, "configuration"), "separator",
                                               s->m->prefix ? "/" : "."));
}

static fth_status take_dtype3(const scan *s, const fth_json_value *type)
{
    const char *text = fth_json_get_text(type, NULL, fth_json_get_text(type, "name", "(none)"));
    for (int k = 0; k < NAMES; k++)
        if (strcmp(text, names[k].v3) == 0) {
            s->m->dtype = names[k].dtype;
            return FTH_OK;
        }
    if (strcmp(text, "uint64") == 0) {
        s->m->dtype = FTH_I64;
        s->m->is_u64 = true;
        return FTH_OK;
    }
    s->m->dtype = FTH_U8;
    if (strcmp(text, "string") == 0 || strcmp(text, "variable_length_utf8") == 0) {
        s->m->text = true;
        return FTH_OK;
    }
    const int64_t bytes = fth_json_get_int(fth_json_get(type, "configuration"), "length_bytes", 0);
    if (strcmp(text, "fixed_length_utf32") == 0 && bytes > 0 && bytes <= 4 * LONGEST_TEXT) {
        s->m->text = true;
        s->m->characters = (int)(bytes / 4);
        return FTH_OK;
    }
    return BAD(s, FTH_E_FILE_FEATURE,
               "%s: the elements are '%s', which is not read; bool int8 uint8 int16 uint16 int32 "
               "uint32 int64 uint64 "
               "float16 bfloat16 float32 float64 complex64 complex128 are",
               s->label, text);
}

static fth_status take_v3(const scan *s, const fth_json_value *doc)
{
    fth__zarr_meta *m = s->m;
    const char *node = fth_json_get_text(doc, "node_type", "");
    if (strcmp(node, "array") != 0)
        return BAD(s, FTH_E_FILE_FORMAT, "%s: it is a %s, an array is wanted", s->label,
                   node[0] ? node : "node without a type");
    FTH_TRY(take_sizes(s, fth_json_get(doc, "shape"), "shape", 0, m->size, &m->n_axes));
    FTH_TRY(take_dtype3(s, fth_json_get(doc, "data_type")));
    const fth_json_value *grid = fth_json_get(doc, "chunk_grid");
    if (strcmp(name_of(grid), "regular") != 0)
        return BAD(s, FTH_E_FILE_FEATURE, "%s: the chunk grid is '%s', only 'regular' is read",
                   s->label, name_of(grid));
    FTH_TRY(take_chunk(s, fth_json_get(fth_json_get(grid, "configuration"), "chunk_shape"),
                       "chunk_shape", m->file));
    memcpy(m->chunk, m->file, sizeof m->chunk);
    FTH_TRY(take_keys(s, fth_json_get(doc, "chunk_key_encoding")));
    if (fth_json_count(fth_json_get(doc, "storage_transformers")) > 0)
        return BAD(s, FTH_E_FILE_FEATURE, "%s: storage transformers are not known", s->label);
    for (int a = 0; a < m->n_axes; a++) m->order[a] = a;
    FTH_TRY(take_codecs(s, fth_json_get(doc, "codecs"), false));
    if (!take_fill(fth_json_get(doc, "fill_value"), m, m->fill))
        return BAD(s, FTH_E_FILE_FORMAT, "%s: 'fill_value' is no %s", s->label,
                   fth_dtype_name(m->dtype));
    const fth_json_value *axes = fth_json_get(doc, "dimension_names");
    for (int a = 0; a < m->n_axes; a++)
        fth__str_copy(m->axis[a], sizeof m->axis[a],
                      fth_json_get_text(fth_json_at(axes, a), NULL, ""));
    return FTH_OK;
}

/* ---- both ---- */

/* Sizes are multiplied from here on: none may overflow. */
static fth_status check_sizes(const scan *s)
{
    const fth__zarr_meta *m = s->m;
    const struct {
        const char *what;
        const int64_t *size;
    } boxes[] = {{"array", m->size}, {"chunk", m->chunk}, {"shard", m->file}};
    for (int i = 0; i < 3; i++) {
        char text[200];
        if (fth__shape_check(m->dtype, m->n_axes, boxes[i].size, NULL, NULL, NULL) == FTH_OK)
            continue;
        return BAD(s, FTH_E_FILE_FORMAT, "%s: its %s, %s, has more bytes than 63 bits can count",
                   s->label, boxes[i].what,
                   fth__shape_text(m->dtype, m->n_axes, boxes[i].size, text, sizeof text));
    }
    bool small = fth__zarr_per_file(m) <= INT32_MAX;
    for (int a = 0; a < m->n_axes; a++)
        small = small && m->size[a] <= LONGEST && m->file[a] <= LONGEST;
    if (!small)
        return BAD(s, FTH_E_FILE_FORMAT,
                   "%s: an axis has over 2^56 elements, or a shard over 2^31 chunks", s->label);
    return FTH_OK;
}

fth_status fth__zarr_meta_take(fth__zarr_meta *m, const fth_json_value *doc, const char *label,
                               fth_err *err)
{
    const int64_t version = fth_json_get_int(doc, "zarr_format", 0);
    const scan s = {m, label, err};
    *m = (fth__zarr_meta){.format = (int)version};
    if (version == 2)
        FTH_TRY(take_v2(&s, doc));
    else if (version == 3)
        FTH_TRY(take_v3(&s, doc));
    else
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: 'zarr_format' is %" PRId64 ", 2 and 3 are read", label, version);
    return check_sizes(&s);
}
