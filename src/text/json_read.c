/* json_read.c - the reader, on jansson, whose memory is not ours and so is bounded beforehand.
 *
 * A quick look over the text counts values and depth: jansson then needs at most about 100 bytes
 * for each value and a few kilobytes of stack, whatever the text holds.
 */
#include <fathom/json.h>

#include "base/assert.h"
#include "base/str.h"
#include "mem/heap.h"
#include "text/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 2000000 }; /* 200 MB of jansson's, at 100 bytes each */

struct fth_json {
    fth_mem *mem;
    json_t *root;
};

/* ---- parsing ---- */

/* What is too much in the text; NULL when nothing is. */
static const char *find_excess(const char *text, size_t bytes)
{
    if (bytes > FTH__JSON_BYTES) return "it has more than 64 MiB";
    int64_t values = 0, depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        const char c = text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == ',' || c == ':'))
            values++;
        else if (!quoted && (c == '[' || c == '{')) {
            values++;
            if (++depth > FTH_JSON_DEPTH) return "more than 64 brackets are open at once";
        } else if (!quoted && (c == ']' || c == '}'))
            depth--;
    }
    return values > MAX_VALUES ? "it has more than two million values" : NULL;
}

/* NaN, Infinity and -Infinity, which others write, become null in a copy. *copy stays NULL when
 * there are none. Letters outside quotes are only ever true, false, null, e and E in JSON. */
static fth_status replace_words(fth_mem *mem, const char *text, size_t bytes, char **copy,
                                size_t *copied, fth_err *err)
{
    static const struct {
        const char *word;
        size_t n;
    } words[] = {{"NaN", 3}, {"-Infinity", 9}, {"Infinity", 8}};
    size_t n = 0;
    bool quoted = false;
    *copy = NULL;
    for (size_t i = 0; i < bytes; i++) {
        const char c = text[i];
        size_t skip = 0;
        for (size_t k = 0; k < 3 && !quoted && (c == 'N' || c == 'I' || c == '-') && !skip; k++)
            if (words[k].n <= bytes - i && memcmp(text + i, words[k].word, words[k].n) == 0)
                skip = words[k].n;
        if (skip && !*copy) {
            void *block = NULL;
            FTH_TRY(fth__heap_take(mem, (int64_t)(bytes + bytes / 3 + 4), 1, &block, err));
            *copy = block;
            memcpy(*copy, text, i);
            n = i;
        }
        if (skip) {
            memcpy(*copy + n, "null", 4);
            n += 4;
            i += skip - 1;
            continue;
        }
        if (c == '"') quoted = !quoted;
        const size_t take = quoted && c == '\\' && i + 1 < bytes ? 2 : 1;
        if (*copy) memcpy(*copy + n, text + i, take);
        n += take;
        i += take - 1;
    }
    FTH_ASSERT(!*copy || n <= bytes + bytes / 3); /* "NaN" grows by one character */
    *copied = n;
    return FTH_OK;
}

fth_status fth_json_parse(fth_json **out, fth_mem *mem, const char *name, const char *text,
                          size_t bytes, fth_err *err)
{
    *out = NULL;
    const size_t bom = fth__utf8_bom(text, bytes);
    text += bom;
    bytes -= bom;
    const char *excess = find_excess(text, bytes);
    if (excess) return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: too much JSON: %s", name, excess);
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_json), &block, err));
    fth_json *doc = block;
    doc->mem = mem;
    json_error_t why;
    char *copy = NULL;
    size_t copied = 0;
    const fth_status s = replace_words(mem, text, bytes, &copy, &copied, err);
    if (s != FTH_OK) {
        fth__heap_free(mem, doc);
        return s;
    }
    doc->root = json_loadb(copy ? copy : text, copy ? copied : bytes,
                           JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    fth__heap_free(mem, copy);
    if (doc->root) {
        *out = doc;
        return FTH_OK;
    }
    fth__heap_free(mem, doc);
    if (json_error_code(&why) == json_error_out_of_memory)
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory to read %s", name);
    if (json_error_code(&why) == json_error_numeric_overflow) {
        (void)FTH_FAIL(err, FTH_E_FILE_FORMAT,
                       "%s:%d:%d: a number that neither i64 nor f64 holds: %s", name, why.line,
                       why.column, why.text);
        fth_err_hint(err, "whole numbers are read from -2^63 to 2^63-1; there is no u64");
        return FTH_E_FILE_FORMAT;
    }
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%d:%d: this is not JSON: %s", name, why.line,
                    why.column, why.text);
}

void fth_json_destroy(fth_json *doc)
{
    if (!doc) return;
    json_decref(doc->root);
    fth__heap_free(doc->mem, doc);
}

/* ---- values: the opaque pointers are jansson's ---- */

static const fth_json_value *wrap(const json_t *v)
{
    return (const fth_json_value *)v;
}

static const json_t *unwrap(const fth_json_value *v)
{
    return (const json_t *)v;
}

const fth_json_value *fth_json_root(const fth_json *doc)
{
    return doc ? wrap(doc->root) : NULL;
}

const fth_json_value *fth_json_get(const fth_json_value *object, const char *key)
{
    return object ? wrap(json_object_get(unwrap(object), key)) : NULL;
}

const fth_json_value *fth_json_at(const fth_json_value *list, int64_t i)
{
    return list && i >= 0 ? wrap(json_array_get(unwrap(list), (size_t)i)) : NULL;
}

int64_t fth_json_count(const fth_json_value *v)
{
    if (!v) return 0;
    return (int64_t)(json_is_object(unwrap(v)) ? json_object_size(unwrap(v))
                                               : json_array_size(unwrap(v)));
}

bool fth_json_is_object(const fth_json_value *v)
{
    return v && json_is_object(unwrap(v));
}

/* jansson's iterators are not const, but only move. */
static json_t *moving(const fth_json_value *v)
{
    union {
        const fth_json_value *in;
        json_t *out;
    } same = {.in = v};
    return same.out;
}

bool fth_json_next(const fth_json_value *object, const void **at, const char **key,
                   const fth_json_value **value)
{
    if (!object) return false;
    union {
        const void *in;
        void *out;
    } place = {.in = *at};
    void *next =
        *at ? json_object_iter_next(moving(object), place.out) : json_object_iter(moving(object));
    *at = next;
    if (!next) return false;
    *key = json_object_iter_key(next);
    *value = wrap(json_object_iter_value(next));
    return true;
}

static const json_t *pick(const fth_json_value *v, const char *key)
{
    return unwrap(key ? fth_json_get(v, key) : v);
}

const char *fth_json_get_text(const fth_json_value *v, const char *key, const char *otherwise)
{
    const char *text = json_string_value(pick(v, key));
    return text ? text : otherwise;
}

int64_t fth_json_get_int(const fth_json_value *v, const char *key, int64_t otherwise)
{
    const json_t *n = pick(v, key);
    if (json_is_integer(n)) return json_integer_value(n);
    const double real = json_real_value(n); /* 0 when it is none */
    const bool whole = json_is_real(n) && real == floor(real) && fabs(real) <= 9007199254740992.0;
    return whole ? (int64_t)real : otherwise;
}

/* A text of digits in the base, nothing else. */
static bool read_digits(const char *text, int base, uint64_t *out)
{
    const char *digits = base == 16 ? "0123456789abcdef" : "0123456789";
    const size_t n = text ? strlen(text) : 0;
    if (n == 0 || n > 20 || strspn(text, digits) != n) return false;
    const uint64_t step = (uint64_t)base;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t digit = (uint64_t)(strchr(digits, text[i]) - digits);
        if (v > (UINT64_MAX - digit) / step) return false;
        v = v * step + digit;
    }
    *out = v;
    return true;
}

uint64_t fth_json_get_u64(const fth_json_value *v, const char *key, uint64_t otherwise)
{
    uint64_t value = 0;
    if (read_digits(json_string_value(pick(v, key)), 10, &value)) return value;
    const int64_t n = fth_json_get_int(v, key, -1);
    return n >= 0 ? (uint64_t)n : otherwise;
}

uint64_t fth_json_get_hash(const fth_json_value *v, const char *key, uint64_t otherwise)
{
    uint64_t value = 0;
    return read_digits(json_string_value(pick(v, key)), 16, &value) ? value : otherwise;
}

double fth_json_get_real(const fth_json_value *v, const char *key, double otherwise)
{
    const json_t *n = pick(v, key);
    return json_is_number(n) ? json_number_value(n) : otherwise;
}

bool fth_json_get_bool(const fth_json_value *v, const char *key, bool otherwise)
{
    const json_t *b = pick(v, key);
    return json_is_boolean(b) ? json_is_true(b) : otherwise;
}

void fth_json_copy(fth_json_writer *w, const char *key, const fth_json_value *v)
{
    const json_t *value = unwrap(v);
    if (json_is_object(value)) {
        const void *at = NULL;
        const char *name = NULL;
        const fth_json_value *member = NULL;
        fth_json_open(w, key, '{');
        while (fth_json_next(v, &at, &name, &member)) fth_json_copy(w, name, member);
        fth_json_close(w);
    } else if (json_is_array(value)) {
        fth_json_open(w, key, '[');
        for (int64_t i = 0; i < fth_json_count(v); i++) fth_json_copy(w, NULL, fth_json_at(v, i));
        fth_json_close(w);
    } else if (json_is_string(value))
        fth_json_text(w, key, json_string_value(value));
    else if (json_is_integer(value))
        fth_json_int(w, key, json_integer_value(value));
    else if (json_is_real(value))
        fth_json_real(w, key, json_real_value(value));
    else if (json_is_boolean(value))
        fth_json_bool(w, key, json_is_true(value));
    else
        fth_json_null(w, key);
}
