/* hkl.c - structure factors from a text list, and the binary dump that is faster to read.
 *
 * The list is read twice: for its ranges, then into the table. Nothing is allocated before the size
 * of the table is checked.
 */
#include "read.h"
#include "sha256.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of an index. A crystal with a cell of 0.1 mm would need more. */
#define MOST 1000000

typedef struct entry {
    double v[4];  /* h k l F */
    bool digits;  /* the indices were written without a point */
    int64_t line; /* where it stands */
} entry;

typedef fth_status next_fn(fth_reader *t, entry *e, bool *found, fth_err *err);

/* Four numbers, regardless of line ends. */
static fth_status next_four(fth_reader *t, entry *e, bool *found, fth_err *err)
{
    e->digits = true;
    for (int i = 0; i < 4; i++) {
        bool digits;
        FTH_TRY(fth_reader_scan(t, &e->v[i], found, &digits, err));
        if (!*found) return FTH_OK;
        if (i < 3) e->digits = e->digits && digits;
        e->line = t->line;
    }
    return FTH_OK;
}

static fth_status malformed(const fth_reader *t, int64_t line, const char *what, fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%" PRId64 ": expected \"h k l F\", found %s", t->path,
                 line, what);
    fth_err_hint(err, "one reflection per line; lines that start with # are comments");
    return s;
}

/* One reflection per line, comments and empty lines between them. */
static fth_status next_line(fth_reader *t, entry *e, bool *found, fth_err *err)
{
    *found = false;
    e->digits = true;
    for (;;) {
        fth_text_line next;
        FTH_TRY(fth_reader_next(t, &next, err));
        e->line = next.number;
        if (!next.text) return FTH_OK;
        if (!next.whole) return malformed(t, e->line, "a zero byte", err);
        const char *line = next.text + strspn(next.text, " \t\v\f\r");
        if (*line == 0 || *line == '#') continue;
        const char *at = line;
        for (int i = 0; i < 4; i++) {
            const char *end;
            e->v[i] = fth_strtod(at, &end);
            if (end == at || !(*end == 0 || isspace((unsigned char)*end) || *end == '#')) {
                char part[60];
                snprintf(part, sizeof part, "\"%.50s\"", line);
                return malformed(t, e->line, part, err);
            }
            at = end;
        }
        for (int i = 0; i < 3; i++)
            if (isfinite(e->v[i]) && e->v[i] != floor(e->v[i]))
                return malformed(t, e->line, "an index that is not whole", err);
        if (!isfinite(e->v[3])) return malformed(t, e->line, "an F that is not finite", err);
        *found = true;
        return FTH_OK;
    }
}

/* Ranges of the indices; their integer parts. */
static fth_status count(fth_reader *t, next_fn *next, br_reflections *r, fth_err *err)
{
    int64_t *const low[3] = {&r->h_min, &r->k_min, &r->l_min};
    int64_t *const high[3] = {&r->h_max, &r->k_max, &r->l_max};
    for (;;) {
        entry e = {.line = 0};
        bool found;
        FTH_TRY(next(t, &e, &found, err));
        if (!found) break;
        for (int i = 0; i < 3; i++) {
            if (!(fabs(e.v[i]) <= MOST)) {
                const fth_status s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                              "%s:%" PRId64 ": %c = %g; a table takes up to %d",
                                              t->path, e.line, "hkl"[i], e.v[i], MOST);
                fth_err_hint(err, "the table holds every index between the smallest and the "
                                  "largest; take the reflection out of the list");
                return s;
            }
            const int64_t v = (int64_t)e.v[i];
            if (r->hkls == 0 || v < *low[i]) *low[i] = v;
            if (r->hkls == 0 || v > *high[i]) *high[i] = v;
            r->fractional += e.v[i] != ceil(e.v[i] - 0.4);
        }
        r->hkls++;
    }
    if (r->hkls == 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s:%" PRId64 ": expected lines \"h k l F\", found no reflection", t->path,
                        t->line);
    return FTH_OK;
}

static void sizes(const br_reflections *r, int64_t *size)
{
    size[0] = r->h_max - r->h_min + 2;
    size[1] = r->k_max - r->k_min + 2;
    size[2] = r->l_max - r->l_min + 2;
}

static fth_status make_table(br_reflections *r, fth_mem *mem, const char *path, fth_err *err)
{
    int64_t size[3];
    sizes(r, size);
    FTH_TRY_CTX(fth_tensor_create(&r->table, mem, "structure factors", FTH_F64, 3, size, err), err,
                "%s: table of %" PRId64 " x %" PRId64 " x %" PRId64, path, size[0], size[1],
                size[2]);
    memset(fth_tensor_data(r->table), 0, fth_tensor_bytes(r->table));
    return FTH_OK;
}

/* The planes of zeros at the end of each axis stay. */
static void put_default(const br_reflections *r, double default_F)
{
    int64_t size[3];
    sizes(r, size);
    double *F = fth_tensor_data(r->table);
    for (int64_t h = 0; h < size[0] - 1; h++)
        for (int64_t k = 0; k < size[1] - 1; k++)
            for (int64_t l = 0; l < size[2] - 1; l++)
                F[(h * size[1] + k) * size[2] + l] = default_F;
}

/* The second reading accepts only digits: it ends at the first index with a decimal point (c
 * mode). */
static fth_status fill(fth_reader *t, next_fn *next, const br_reflections *r, fth_err *err)
{
    int64_t size[3];
    sizes(r, size);
    double *F = fth_tensor_data(r->table);
    for (;;) {
        entry e = {.line = 0};
        bool found;
        FTH_TRY(next(t, &e, &found, err));
        if (!found || !e.digits) return FTH_OK;
        const double h = e.v[0] - (double)r->h_min, k = e.v[1] - (double)r->k_min,
                     l = e.v[2] - (double)r->l_min;
        if (!(h >= 0 && h < (double)size[0] && k >= 0 && k < (double)size[1] && l >= 0 &&
              l < (double)size[2]))
            return FTH_FAIL(err, FTH_E_FILE_READ,
                            "%s:%" PRId64 ": the file changed while it was read", t->path, e.line);
        F[((int64_t)h * size[1] + (int64_t)k) * size[2] + (int64_t)l] = e.v[3];
    }
}

fth_status br_hkl_read(br_reflections *out, fth_mem *mem, const char *path, double default_F,
                       bool strict, fth_err *err)
{
    memset(out, 0, sizeof *out);
    next_fn *const next = strict ? next_line : next_four;
    fth_reader t;
    FTH_TRY(fth_reader_open(&t, mem, path, BR_AS_WRITTEN, err));
    fth_status s = count(&t, next, out, err);
    if (s == FTH_OK) s = make_table(out, mem, path, err);
    if (s == FTH_OK && default_F != 0) put_default(out, default_F);
    if (s == FTH_OK) s = fth_reader_rewind(&t, err);
    if (s == FTH_OK) s = fill(&t, next, out, err);
    fth_reader_close(&t);
    if (s != FTH_OK) br_reflections_clear(out);
    return s;
}

void br_reflections_clear(br_reflections *r)
{
    fth_tensor_release(r->table);
    memset(r, 0, sizeof *r);
}

/* ---- dump ---- */

enum { LONGEST = 200 }; /* bytes of its first line */

/* Six whole numbers between single blanks, then 0x0A 0x0C: where the elements start. */
static fth_status dump_header(fth_reader *t, br_reflections *r, uint64_t *offset, fth_err *err)
{
    int64_t *const v[6] = {&r->h_min, &r->h_max, &r->k_min, &r->k_max, &r->l_min, &r->l_max};
    FTH_TRY(fth_reader_fill(t, LONGEST, err));
    const char *p = t->buffer;
    for (int i = 0; i < 6; i++) {
        char *end;
        if (*p != '-' && !isdigit((unsigned char)*p)) break;
        const long long n = strtoll(p, &end, 10);
        if (end == p || *end != (i < 5 ? ' ' : '\n') || n < -MOST || n > MOST) break;
        *v[i] = n;
        p = end + 1;
        if (i < 5 || *p != '\f') continue;
        *offset = (uint64_t)(p + 1 - t->buffer);
        if (r->h_max >= r->h_min && r->k_max >= r->k_min && r->l_max >= r->l_min) return FTH_OK;
        break;
    }
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s: expected \"hmin hmax kmin kmax lmin lmax\" and the bytes 0A 0C, found "
                 "something else at byte %td",
                 t->path, p - t->buffer);
    fth_err_hint(err, "it is written again when -hkl is given");
    return s;
}

static fth_status dump_elements(br_reflections *r, fth_mem *mem, fth_reader *t, uint64_t offset,
                                fth_err *err)
{
    fth_raw_layout l = {.dtype = FTH_F64, .n_axes = 3, .offset = offset};
    sizes(r, l.size);
    fth_source source;
    FTH_TRY(fth_raw_open(&source, mem, t->path, &l, err)); /* long enough, and no overflow */
    const int64_t want = (int64_t)offset + 8 * l.size[0] * l.size[1] * l.size[2];
    fth_path_info info;
    fth_status s = fth_path_stat(t->path, &info, err);
    const int64_t bytes = (int64_t)info.bytes;
    if (s == FTH_OK && bytes != want)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: its first line asks for %" PRId64 " bytes, the file has %" PRId64,
                     t->path, want, bytes);
    if (s == FTH_OK) s = fth_source_load(&source, mem, "structure factors", &r->table, err);
    fth_source_close(&source);
    return s;
}

fth_status br_dump_read(br_reflections *out, fth_mem *mem, const char *path, fth_err *err)
{
    memset(out, 0, sizeof *out);
    fth_reader t;
    FTH_TRY(fth_reader_open(&t, mem, path, BR_AS_WRITTEN, err));
    uint64_t offset = 0;
    fth_status s = dump_header(&t, out, &offset, err);
    if (s == FTH_OK) s = dump_elements(out, mem, &t, offset, err);
    fth_reader_close(&t);
    if (s != FTH_OK) {
        br_reflections_clear(out);
        return s;
    }
    out->hkls = (out->h_max - out->h_min + 1) * (out->k_max - out->k_min + 1) *
                (out->l_max - out->l_min + 1);
    return FTH_OK;
}

/* /dev/null and other devices: renaming a file over one would replace it for everybody. */
static bool is_device(const char *path)
{
    return fth_path_kind_of(path) == FTH_PATH_DEVICE;
}

fth_status br_dump_write(const br_reflections *r, fth_mem *mem, const char *path, fth_err *err)
{
    if (is_device(path)) return FTH_OK;
    char header[LONGEST];
    const int n =
        snprintf(header, sizeof header,
                 "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n\f",
                 r->h_min, r->h_max, r->k_min, r->k_max, r->l_min, r->l_max);
    fth_raw_layout l = {.dtype = FTH_F64, .n_axes = 3, .offset = (uint64_t)n};
    sizes(r, l.size);
    fth_sink sink;
    FTH_TRY(fth_raw_create(&sink, mem, path, &l, header, err));
    const fth_status s = fth_sink_store(&sink, r->table, err);
    fth_sink_close(&sink);
    return s;
}

fth_status br_dump_note(const char *path, const char *list, fth_mem *mem, fth_err *err)
{
    char text[BR_SHA256_HEX + 5000], place[5000];
    if (is_device(path)) return FTH_OK;
    FTH_TRY(br_sha256_file(list, mem, text, err));
    const int n = snprintf(text + BR_SHA256_HEX - 1, sizeof text - BR_SHA256_HEX, "  %s\n", list);
    const int m = snprintf(place, sizeof place, "%s.sha256", path);
    if (n >= 5000 || m >= (int)sizeof place)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%.100s...: the name is too long", path);
    return fth_file_save(mem, place, text, (uint64_t)(BR_SHA256_HEX - 1 + n), err);
}
