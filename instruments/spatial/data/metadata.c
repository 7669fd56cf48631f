/* metadata.c - metadata.json, whose lists of names may be the largest thing in the folder.
 *
 * A JSON tree of a million names would take a hundred times their bytes. So the text is read once,
 * its top members are found by their brackets, and lists of names go straight into lists of
 * strings; the few small members are parsed as JSON.
 */
#include "metadata.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the text ---- */

typedef struct span {
    const char *at, *end;
} span;
typedef struct document {
    fth_mem *mem;
    const char *path;
    char *text;
    span all;
} document;

static fth_status read_text(document *d, fth_err *err)
{
    fth_reader r;
    int64_t bytes = 0;
    fth_status s =
        fth_reader_open(&r, d->mem, d->path, &(fth_reader_options){.keep_bom = true}, err);
    if (s == FTH_E_FILE_OPEN)
        fth_err_hint(err,
                     "a preprocessed folder has %s, %s, %s and %s; run `fathom spatial "
                     "preprocess`",
                     SP_X, SP_Y, SP_C, SP_METADATA);
    if (s == FTH_OK) s = fth_reader_rest(&r, "metadata", &d->text, &bytes, err);
    fth_reader_close(&r);
    if (s == FTH_OK) d->all = (span){d->text, d->text + bytes};
    return s;
}

static fth_status not_json(const document *d, const char *at, const char *what, fth_err *err)
{
    int64_t line = 1;
    for (const char *p = d->text; p < at; p++) line += *p == '\n';
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%" PRId64 ": this is not JSON: %s", d->path, line,
                    what);
}

static void skip_blank(span *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at)) s->at++;
}

static bool take_char(span *s, char c)
{
    skip_blank(s);
    if (s->at >= s->end || *s->at != c) return false;
    s->at++;
    return true;
}

/* Past the string that starts here; false: it does not end. */
static bool skip_string(span *s)
{
    for (s->at++; s->at < s->end; s->at++) {
        if (*s->at == '\\')
            s->at++;
        else if (*s->at == '"') {
            s->at++;
            return true;
        }
    }
    return false;
}

/* Past the value that starts here, judged by its brackets alone. */
static bool skip_value(span *s)
{
    int depth = 0;
    skip_blank(s);
    const char *start = s->at;
    while (s->at < s->end) {
        const char c = *s->at;
        if (c == '"') {
            if (!skip_string(s)) return false;
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        s->at++;
    }
    return depth == 0 && s->at > start;
}

/* The value of a top key; an empty span when there is none. */
static fth_status find_member(const document *d, const char *key, span *out, fth_err *err)
{
    span s = d->all;
    const size_t n = strlen(key);
    *out = (span){NULL, NULL};
    if (!take_char(&s, '{')) return not_json(d, s.at, "an object was expected", err);
    if (take_char(&s, '}')) return FTH_OK;
    do {
        skip_blank(&s);
        const char *name = s.at;
        if (s.at >= s.end || *s.at != '"' || !skip_string(&s))
            return not_json(d, name, "a key in quotes was expected", err);
        const bool mine = (size_t)(s.at - name) == n + 2 && strncmp(name + 1, key, n) == 0;
        if (!take_char(&s, ':')) return not_json(d, s.at, "':' was expected", err);
        skip_blank(&s);
        const char *value = s.at;
        if (!skip_value(&s)) return not_json(d, value, "a value does not end", err);
        if (mine) *out = (span){value, s.at};
    } while (take_char(&s, ','));
    return take_char(&s, '}') ? FTH_OK : not_json(d, s.at, "',' or '}' was expected", err);
}

/* ---- lists of names ---- */

static int hex4(const char *p, const char *end, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        if (p + i >= end || !isxdigit((unsigned char)p[i])) return 0;
        const char c = p[i];
        *out = *out * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return 4;
}

static size_t put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[4] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[more] | c >> (6 * more));
    for (int i = 1; i <= more; i++) to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return (size_t)more + 1;
}

/* "\uXXXX" at p, of which the backslash is already read; a pair of surrogates is one character. */
static size_t put_escaped(const char **p, const char *end, char *to)
{
    unsigned c = 0, low = 0;
    if (!hex4(*p, end, &c)) return 0;
    *p += 4;
    if (c >= 0xd800 && c < 0xdc00 && *p + 6 <= end && (*p)[0] == '\\' && (*p)[1] == 'u' &&
        hex4(*p + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
        *p += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return c == 0 || (c >= 0xd800 && c < 0xe000) ? 0 : put_utf8(to, c);
}

/* A string is never longer without its escapes: it is unpacked in place. */
static bool unescape(char *from, char *end, size_t *bytes)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    char *to = from;
    for (const char *p = from; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        p++;
        const char *which = p < end && *p ? strchr(names, *p) : NULL;
        if (which) {
            *to++ = means[which - names];
            p++;
        } else {
            if (p >= end || *p++ != 'u') return false;
            const size_t n = put_escaped(&p, end, to);
            if (n == 0) return false;
            to += n;
        }
    }
    *bytes = (size_t)(to - from);
    return true;
}

static fth_status read_names(const document *d, const char *key, span s, fth_texts *t, fth_err *err)
{
    if (!take_char(&s, '['))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' should be a list of names", d->path, key);
    if (take_char(&s, ']')) return FTH_OK;
    do {
        skip_blank(&s);
        const char *start = s.at;
        size_t bytes = 0;
        char *at = d->text + (start - d->text);
        if (s.at >= s.end || *s.at != '"' || !skip_string(&s))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: name %" PRId64 " of '%s' is not a text in quotes", d->path,
                            fth_texts_count(t), key);
        if (!unescape(at + 1, d->text + (s.at - d->text) - 1, &bytes))
            return not_json(d, start, "a text has an invalid escape", err);
        FTH_TRY(fth_texts_add(t, at + 1, bytes, err));
    } while (take_char(&s, ','));
    return take_char(&s, ']') ? FTH_OK : not_json(d, s.at, "',' or ']' was expected", err);
}

static bool is_null(span s)
{
    return s.end - s.at >= 4 && strncmp(s.at, "null", 4) == 0;
}

static fth_status no_key(const document *d, const char *key, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no '%s'", d->path, key);
}

/* Names and how many there should be. */
static fth_status take_names(const document *d, const char *key, span s, int64_t count,
                             fth_texts **out, fth_err *err)
{
    fth_texts *t = NULL;
    FTH_TRY(fth_texts_create(&t, d->mem, err));
    fth_status status = read_names(d, key, s, t, err);
    if (status == FTH_OK && fth_texts_count(t) != count)
        status = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                          "%s: '%s' has %" PRId64 " names where the counts say %" PRId64, d->path,
                          key, fth_texts_count(t), count);
    if (status == FTH_OK)
        *out = t;
    else
        fth_texts_free(t);
    return status;
}

static fth_status take_count(const document *d, const char *key, int64_t *out, fth_err *err)
{
    span s;
    FTH_TRY(find_member(d, key, &s, err));
    if (!s.at) return no_key(d, key, err);
    char *end = NULL;
    errno = 0;
    const long long n = strtoll(s.at, &end, 10);
    while (end < s.end && isspace((unsigned char)*end)) end++;
    if (end != s.end || errno != 0 || n < 1)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' should be a whole number above 0",
                        d->path, key);
    *out = n;
    return FTH_OK;
}

static fth_status take_counts(sp_metadata *m, const document *d, fth_err *err)
{
    FTH_TRY(take_count(d, "n_spots", &m->cells, err));
    FTH_TRY(take_count(d, "n_genes", &m->genes, err));
    return take_count(d, "n_groups", &m->groups, err);
}

static bool take_number(span *s, double *out)
{
    const char *end = NULL;
    skip_blank(s);
    *out = fth_strtod(s->at, &end); /* the text ends with a zero */
    const bool ok = end > s->at && end <= s->end && isfinite(*out);
    s->at = end;
    return ok;
}

/* How positions were rescaled; folders of other programs need not say it. Of sections there is the
 * scale alone: each has an offset of its own. */
static fth_status take_frame(const document *d, bool sections, sp_frame *out, fth_err *err)
{
    span offset, scale;
    sp_frame f = {.known = true};
    *out = (sp_frame){.known = false};
    FTH_TRY(find_member(d, "offset", &offset, err));
    FTH_TRY(find_member(d, "scale", &scale, err));
    if (!offset.at && !scale.at) return FTH_OK;
    const bool placed =
        sections ||
        (offset.at && take_char(&offset, '[') && take_number(&offset, &f.offset[0]) &&
         take_char(&offset, ',') && take_number(&offset, &f.offset[1]) && take_char(&offset, ']'));
    const bool ok = placed && scale.at && take_number(&scale, &f.scale) && f.scale > 0;
    if (!ok)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: 'offset' should be two numbers and 'scale' one above 0", d->path);
    *out = f;
    return FTH_OK;
}

static fth_status parse_span(const document *d, span s, fth_json **out, fth_err *err)
{
    return fth_json_parse(out, d->mem, d->path, s.at, (size_t)(s.end - s.at), err);
}

/* Each section has an offset of its own (model 21.1); the scale is one. */
static fth_status take_sections(sp_metadata *m, const document *d, fth_err *err)
{
    span list, rest;
    fth_json *names = NULL, *places = NULL;
    FTH_TRY(find_member(d, SP_SECTION_NAMES, &list, err));
    FTH_TRY(find_member(d, SP_SECTIONS, &rest, err));
    if (!list.at) return FTH_OK;
    fth_status s = parse_span(d, list, &names, err);
    if (s == FTH_OK && rest.at) s = parse_span(d, rest, &places, err);
    if (s == FTH_OK)
        s = sp_sections_parse(&m->sections, d->mem, fth_json_root(names),
                              rest.at ? fth_json_root(places) : NULL, d->path, err);
    fth_json_destroy(names);
    fth_json_destroy(places);
    return s;
}

/* Locate all values first: lists are unpacked in place, after which the text is no longer JSON. */
static fth_status take_all(sp_metadata *m, const document *d, fth_err *err)
{
    span genes, cells, groups;
    FTH_TRY(take_counts(m, d, err));
    FTH_TRY(take_sections(m, d, err));
    FTH_TRY(take_frame(d, m->sections.gap > 0, &m->frame, err));
    FTH_TRY(find_member(d, "gene_names", &genes, err));
    FTH_TRY(find_member(d, "spot_names", &cells, err));
    FTH_TRY(find_member(d, "group_names", &groups, err));
    if (!genes.at) return no_key(d, "gene_names", err);
    if (!groups.at) return no_key(d, "group_names", err);
    FTH_TRY(take_names(d, "gene_names", genes, m->genes, &m->gene_names, err));
    FTH_TRY(take_names(d, "group_names", groups, m->groups, &m->group_names, err));
    if (!cells.at || is_null(cells)) return FTH_OK;
    return take_names(d, "spot_names", cells, m->cells, &m->cell_names, err);
}

void sp_metadata_clear(sp_metadata *m)
{
    fth_texts_free(m->gene_names);
    fth_texts_free(m->cell_names);
    fth_texts_free(m->group_names);
    sp_sections_clear(&m->sections);
    *m = (sp_metadata){0};
}

fth_status sp_metadata_read(sp_metadata *m, fth_mem *mem, const char *path, fth_err *err)
{
    *m = (sp_metadata){0};
    document d = {.mem = mem, .path = path};
    fth_status s = read_text(&d, err);
    if (s == FTH_OK) s = take_all(m, &d, err);
    (void)fth_mem_release(mem, d.text, NULL);
    if (s != FTH_OK) sp_metadata_clear(m);
    return s;
}

fth_status sp_metadata_counts(sp_metadata *m, fth_mem *mem, const char *path, fth_err *err)
{
    *m = (sp_metadata){0};
    document d = {.mem = mem, .path = path};
    fth_status s = read_text(&d, err);
    if (s == FTH_OK) s = take_counts(m, &d, err);
    if (s == FTH_OK) s = take_sections(m, &d, err);
    (void)fth_mem_release(mem, d.text, NULL);
    return s;
}

fth_status sp_metadata_member(fth_json **out, fth_mem *mem, const char *path, const char *key,
                              fth_err *err)
{
    *out = NULL;
    document d = {.mem = mem, .path = path};
    span member = {NULL, NULL};
    fth_status s = read_text(&d, err);
    if (s == FTH_OK) s = find_member(&d, key, &member, err);
    if (s == FTH_OK && member.at)
        s = fth_json_parse(out, mem, path, member.at, (size_t)(member.end - member.at), err);
    (void)fth_mem_release(mem, d.text, NULL);
    return s;
}
