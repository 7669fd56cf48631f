/* parquet.c - the footer of a Parquet file: columns, row groups, where their pages are.
 *
 * A file ends with the footer, its length and "PAR1". What the footer says about places is compared
 * with the size of the file once, here; pages are compared with their chunk when they are read.
 */
#include "io/parquet.h"

#include "base/assert.h"
#include "base/checked.h"
#include "io/parquet_thrift.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

enum {
    TAIL = 8, /* the footer's length, "PAR1" */
    MOST_DEPTH = 32,
    PATH = 1000 /* bytes of a column's name with its groups */
};

typedef struct reader {
    fth_parquet *p;
    fth__thrift t;
    const uint8_t *start;
    fth_err *err;
    int64_t expected; /* schema elements */
    /* groups that are open: how many children are still to come, and where the name ends */
    int64_t children[MOST_DEPTH];
    int64_t name_end[MOST_DEPTH];
    int depth;
    char name[PATH];
    bool seen_schema, seen_rows, seen_groups;
} reader;

/* ---- errors ---- */

static uint64_t place(const reader *r)
{
    return r->p->end + (uint64_t)(r->t.at - r->start);
}

static fth_status damaged(const reader *r, uint64_t at)
{
    return FTH__FILE_FAIL(r->err, FTH_E_FILE_FORMAT, r->p->file->path, at,
                          r->t.bad == FTH__THRIFT_SHORT ? "the footer ends inside its metadata"
                                                        : "the metadata of the footer are damaged");
}

/* ---- columns ---- */

typedef struct element {
    int64_t type, width, repetition, children;
    bool has_type, has_name, is_unsigned, decimal;
    const char *name;
    uint64_t name_bytes;
} element;

/* A union of which one field is there; INTEGER says whether it has a sign. */
static void take_logical(fth__thrift *t, element *e)
{
    enum { DECIMAL = 5, INTEGER = 10, SIGNED = 2 };
    for (fth__thrift_field f = {0}; fth__thrift_next(t, &f);) {
        if (f.id == DECIMAL) e->decimal = true;
        if (f.id != INTEGER || !fth__thrift_struct(t, &f)) {
            fth__thrift_skip(t, &f);
            continue;
        }
        for (fth__thrift_field g = {0}; fth__thrift_next(t, &g);)
            if (g.id == SIGNED)
                e->is_unsigned = !fth__thrift_bool(t, &g);
            else
                fth__thrift_skip(t, &g);
    }
}

static void take_converted(element *e, int64_t converted)
{
    enum { DECIMAL = 5, UINT_8 = 11, UINT_64 = 14 };
    if (converted == DECIMAL) e->decimal = true;
    if (converted >= UINT_8 && converted <= UINT_64) e->is_unsigned = true;
}

static element take_element(fth__thrift *t)
{
    enum { TYPE = 1, LENGTH, REPETITION, NAME, CHILDREN, CONVERTED, LOGICAL = 10 };
    element e = {.name = ""};
    for (fth__thrift_field f = {0}; fth__thrift_next(t, &f);) switch (f.id) {
        case TYPE:
            e.type = fth__thrift_int(t, &f);
            e.has_type = true;
            break;
        case LENGTH: e.width = fth__thrift_int(t, &f); break;
        case REPETITION: e.repetition = fth__thrift_int(t, &f); break;
        case NAME:
            e.name = fth__thrift_bytes(t, &f, &e.name_bytes);
            e.has_name = true;
            break;
        case CHILDREN: e.children = fth__thrift_int(t, &f); break;
        case CONVERTED: take_converted(&e, fth__thrift_int(t, &f)); break;
        case LOGICAL:
            if (fth__thrift_struct(t, &f)) take_logical(t, &e);
            break;
        default: fth__thrift_skip(t, &f);
        }
    return e;
}

static fth_status add_leaf(reader *r, const element *e, bool repeated)
{
    fth_parquet *p = r->p;
    FTH_TRY(fth__grow(p->mem, &p->leaf, &p->leaf_cap, p->n_leaves + 1, r->err));
    fth__parquet_leaf *leaf = &p->leaf[p->n_leaves];
    *leaf = (fth__parquet_leaf){.physical = (fth__parquet_physical)e->type,
                                .width = (int32_t)e->width,
                                .optional = e->repetition == 1,
                                .nested = r->depth > 1 || repeated,
                                .is_unsigned = e->is_unsigned,
                                .decimal = e->decimal};
    leaf->name = fth__heap_strdup(p->mem, r->name);
    if (!leaf->name) return FTH_FAIL(r->err, FTH_E_NOMEM, "no memory for the name of a column");
    p->n_leaves++;
    return FTH_OK;
}

/* An element below the root: a column, or a group of them. */
static fth_status place_element(reader *r, const element *e, uint64_t at)
{
    const char *const path = r->p->file->path;
    const int64_t begin = r->depth > 1 ? r->name_end[r->depth - 1] : 0;
    if (r->depth == 0)
        return FTH__FILE_FAIL(r->err, FTH_E_FILE_FORMAT, path, at,
                              "the schema has more elements than its groups have children");
    if (e->name_bytes + (uint64_t)begin + 2 > PATH || memchr(e->name, 0, e->name_bytes))
        return FTH__FILE_FAIL(r->err, FTH_E_FILE_FEATURE, path, at,
                              "a column's name of at most %d bytes was expected, without zeros",
                              (int)PATH - 2);
    if (begin > 0) r->name[begin] = '.';
    const int64_t from = begin + (begin > 0), end = from + (int64_t)e->name_bytes;
    memcpy(r->name + from, e->name, e->name_bytes);
    r->name[end] = '\0';
    r->children[r->depth - 1]--;
    if (e->children > 0) {
        if (r->depth == MOST_DEPTH)
            return FTH__FILE_FAIL(r->err, FTH_E_FILE_FEATURE, path, at,
                                  "groups in groups, more than %d deep", (int)MOST_DEPTH);
        r->name_end[r->depth] = end;
        r->children[r->depth++] = e->children;
        return FTH_OK;
    }
    if (!e->has_type || e->type < 0 || e->type >= FTH__PARQUET_PHYSICALS || e->children < 0 ||
        e->repetition < 0 || e->repetition > 2 || e->width < 0 || e->width > INT32_MAX)
        return FTH__FILE_FAIL(r->err, FTH_E_FILE_FORMAT, path, at,
                              "column '%.80s': type %" PRId64 ", repetition %" PRId64
                              ", width %" PRId64 " do not make a column",
                              r->name, e->has_type ? e->type : -1, e->repetition, e->width);
    FTH_TRY(add_leaf(r, e, e->repetition == 2));
    while (r->depth > 0 && r->children[r->depth - 1] == 0) r->depth--;
    return FTH_OK;
}

static fth_status take_schema(reader *r, const fth__thrift_field *f)
{
    const int64_t n = fth__thrift_list(&r->t, f, FTH__THRIFT_STRUCT);
    if (r->seen_schema) r->t.bad = FTH__THRIFT_WRONG;
    r->seen_schema = true;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t at = place(r);
        const element e = take_element(&r->t);
        if (r->t.bad) return damaged(r, at);
        if (i > 0) {
            FTH_TRY(place_element(r, &e, at));
            continue;
        }
        if (e.children < 0) return damaged(r, at);
        r->children[0] = e.children;
        r->depth = e.children > 0;
    }
    if (r->t.bad) return damaged(r, place(r));
    if (r->depth == 0 && n > 0) return FTH_OK;
    return FTH__FILE_FAIL(r->err, FTH_E_FILE_FORMAT, r->p->file->path, place(r),
                          "the schema has %" PRId64 " elements, its groups ask for more", n);
}

/* ---- row groups ---- */

typedef struct chunk_head {
    int64_t type, codec, values, bytes, data, dictionary;
    bool has_meta, other_file, encrypted;
} chunk_head;

static void take_chunk_meta(fth__thrift *t, chunk_head *h)
{
    enum { TYPE = 1, CODEC = 4, VALUES = 5, BYTES = 7, DATA = 9, DICTIONARY = 11 };
    h->has_meta = true;
    for (fth__thrift_field f = {0}; fth__thrift_next(t, &f);) switch (f.id) {
        case TYPE: h->type = fth__thrift_int(t, &f); break;
        case CODEC: h->codec = fth__thrift_int(t, &f); break;
        case VALUES: h->values = fth__thrift_int(t, &f); break;
        case BYTES: h->bytes = fth__thrift_int(t, &f); break;
        case DATA: h->data = fth__thrift_int(t, &f); break;
        case DICTIONARY: h->dictionary = fth__thrift_int(t, &f); break;
        default: fth__thrift_skip(t, &f);
        }
}

static chunk_head take_chunk(fth__thrift *t)
{
    enum { FILE_PATH = 1, META = 3, CRYPTO = 8, ENCRYPTED = 9 };
    chunk_head h = {.type = -1, .codec = -1, .values = -1, .bytes = -1, .data = -1};
    for (fth__thrift_field f = {0}; fth__thrift_next(t, &f);) {
        if (f.id == FILE_PATH) h.other_file = true;
        if (f.id == CRYPTO || f.id == ENCRYPTED) h.encrypted = true;
        if (f.id == META && fth__thrift_struct(t, &f))
            take_chunk_meta(t, &h);
        else
            fth__thrift_skip(t, &f);
    }
    return h;
}

static fth_status check_chunk(const reader *r, const chunk_head *h, int64_t group, int64_t k,
                              fth__parquet_chunk *out)
{
    const fth_parquet *p = r->p;
    const fth__parquet_leaf *leaf = &p->leaf[k];
    const char *const path = p->file->path;
    const int64_t start = h->dictionary > 0 && h->dictionary < h->data ? h->dictionary : h->data;
    if (h->encrypted || h->other_file)
        return FTH__FILE_FAIL(r->err, FTH_E_FILE_FEATURE, path, place(r),
                              "column '%.80s', row group %" PRId64 ": it is %s, which is not read",
                              leaf->name, group, h->encrypted ? "encrypted" : "in another file");
    if (!h->has_meta || h->type != (int64_t)leaf->physical)
        return FTH__FILE_FAIL(r->err, FTH_E_FILE_FORMAT, path, place(r),
                              "column '%.80s', row group %" PRId64 ": expected type %d as in the "
                              "schema, found %" PRId64,
                              leaf->name, group, (int)leaf->physical, h->type);
    if (h->values == 0) { /* writers differ in what they say about no pages */
        *out = (fth__parquet_chunk){0};
        return FTH_OK;
    }
    if (start < 4 || h->bytes < 0 || (uint64_t)start > p->end ||
        (uint64_t)h->bytes > p->end - (uint64_t)start)
        return FTH__FILE_FAIL(r->err, FTH_E_FILE_FORMAT, path, place(r),
                              "column '%.80s', row group %" PRId64 ": expected its pages between "
                              "bytes 4 and %" PRIu64 ", found %" PRId64 " bytes from byte %" PRId64,
                              leaf->name, group, p->end, h->bytes, start);
    *out = (fth__parquet_chunk){.offset = (uint64_t)start,
                                .bytes = (uint64_t)h->bytes,
                                .values = h->values,
                                .codec = h->codec >= 0 && h->codec < 100 ? (int32_t)h->codec : 100};
    return FTH_OK;
}

static fth_status take_columns(reader *r, const fth__thrift_field *f)
{
    fth_parquet *p = r->p;
    const int64_t n = fth__thrift_list(&r->t, f, FTH__THRIFT_STRUCT);
    if (r->t.bad) return damaged(r, place(r));
    if (n != p->n_leaves)
        return FTH__FILE_FAIL(r->err, FTH_E_FILE_FORMAT, p->file->path, place(r),
                              "row group %" PRId64 ": expected %" PRId64
                              " columns as in the schema, found %" PRId64,
                              p->n_groups, p->n_leaves, n);
    int64_t before = 0, all = 0;
    if (!fth__mul_i64(p->n_groups, n, &before) || !fth__add_i64(before, n, &all))
        return damaged(r, place(r));
    FTH_TRY(fth__grow(p->mem, &p->chunk, &p->chunk_cap, all + 1, r->err));
    for (int64_t k = 0; k < n; k++) {
        const chunk_head h = take_chunk(&r->t);
        if (r->t.bad) return damaged(r, place(r));
        FTH_TRY(check_chunk(r, &h, p->n_groups, k, &p->chunk[before + k]));
    }
    return FTH_OK;
}

/* Values of a flat column are rows; of others nobody asks. */
static fth_status check_rows(const reader *r, int64_t rows)
{
    const fth_parquet *p = r->p;
    for (int64_t k = 0; k < p->n_leaves; k++) {
        const int64_t values = p->chunk[p->n_groups * p->n_leaves + k].values;
        if (p->leaf[k].nested || values == rows) continue;
        return FTH__FILE_FAIL(r->err, FTH_E_FILE_FORMAT, p->file->path, place(r),
                              "column '%.80s', row group %" PRId64 ": expected %" PRId64
                              " values, found %" PRId64,
                              p->leaf[k].name, p->n_groups, rows, values);
    }
    return FTH_OK;
}

static fth_status take_group(reader *r)
{
    enum { COLUMNS = 1, ROWS = 3 };
    fth_parquet *p = r->p;
    bool seen = false;
    int64_t rows = -1;
    for (fth__thrift_field f = {0}; fth__thrift_next(&r->t, &f);) {
        if (f.id == COLUMNS) {
            FTH_TRY(take_columns(r, &f));
            seen = true;
        } else if (f.id == ROWS)
            rows = fth__thrift_int(&r->t, &f);
        else
            fth__thrift_skip(&r->t, &f);
    }
    if (r->t.bad || rows < 0 || (!seen && p->n_leaves > 0)) return damaged(r, place(r));
    FTH_TRY(check_rows(r, rows));
    FTH_TRY(fth__grow(p->mem, &p->group_rows, &p->group_cap, p->n_groups + 1, r->err));
    p->group_rows[p->n_groups++] = rows;
    return FTH_OK;
}

static fth_status take_groups(reader *r, const fth__thrift_field *f)
{
    const int64_t n = fth__thrift_list(&r->t, f, FTH__THRIFT_STRUCT);
    if (r->seen_groups || !r->seen_schema) r->t.bad = FTH__THRIFT_WRONG;
    if (r->t.bad) return damaged(r, place(r));
    r->seen_groups = true;
    for (int64_t i = 0; i < n; i++) FTH_TRY(take_group(r));
    return FTH_OK;
}

static fth_status take_footer(reader *r)
{
    enum { SCHEMA = 2, ROWS = 3, GROUPS = 4, ENCRYPTION = 8 };
    fth_parquet *p = r->p;
    for (fth__thrift_field f = {0}; fth__thrift_next(&r->t, &f);) switch (f.id) {
        case SCHEMA: FTH_TRY(take_schema(r, &f)); break;
        case ROWS:
            p->rows = fth__thrift_int(&r->t, &f);
            r->seen_rows = true;
            break;
        case GROUPS: FTH_TRY(take_groups(r, &f)); break;
        case ENCRYPTION:
            return FTH_FAIL(r->err, FTH_E_FILE_FEATURE, "%s: its columns are encrypted",
                            p->file->path);
        default: fth__thrift_skip(&r->t, &f);
        }
    if (r->t.bad || !r->seen_schema || !r->seen_rows || !r->seen_groups)
        return damaged(r, place(r));
    int64_t sum = 0;
    for (int64_t g = 0; g < p->n_groups; g++)
        if (!fth__add_i64(sum, p->group_rows[g], &sum)) sum = -1;
    if (sum == p->rows) return FTH_OK;
    return FTH_FAIL(r->err, FTH_E_FILE_FORMAT,
                    "%s: expected %" PRId64 " rows, found %" PRId64 " in its %" PRId64
                    " row groups",
                    p->file->path, p->rows, sum, p->n_groups);
}

/* ---- opening ---- */

static fth_status find_footer(fth_parquet *p, uint64_t *bytes, fth_err *err)
{
    uint8_t head[4], tail[TAIL];
    const uint64_t all = fth_file_bytes(p->file);
    const char *const path = p->file->path;
    if (all < 4 + TAIL)
        return FTH_FAIL(err, FTH_E_FILE_SHORT,
                        "%s: a Parquet file has at least %d bytes, this has %" PRIu64, path,
                        4 + TAIL, all);
    FTH_TRY(fth_file_read(p->file, 0, 4, head, "the mark of Parquet", err));
    FTH_TRY(fth_file_read(p->file, all - TAIL, TAIL, tail, "the end of a Parquet file", err));
    if (memcmp(tail + 4, "PARE", 4) == 0)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: its footer is encrypted", path);
    if (memcmp(head, "PAR1", 4) != 0 || memcmp(tail + 4, "PAR1", 4) != 0) {
        const bool at_end = memcmp(head, "PAR1", 4) == 0;
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, path, at_end ? all - 4 : 0,
                              "expected the mark PAR1 of Parquet%s",
                              at_end ? "; the file was cut off" : "");
    }
    *bytes = (uint64_t)tail[0] | (uint64_t)tail[1] << 8 | (uint64_t)tail[2] << 16 |
             (uint64_t)tail[3] << 24;
    if (*bytes > all - TAIL - 4)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, path, all - TAIL,
                              "expected a footer of at most %" PRIu64 " bytes, found %" PRIu64,
                              all - TAIL - 4, *bytes);
    p->end = all - TAIL - *bytes;
    return FTH_OK;
}

static fth_status read_footer(fth_parquet *p, fth_err *err)
{
    uint64_t bytes = 0;
    void *block = NULL;
    FTH_TRY(find_footer(p, &bytes, err));
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, bytes + 1, "footer of Parquet", &block, err));
    fth_status s = fth_file_read(p->file, p->end, bytes, block, "the footer of Parquet", err);
    if (s == FTH_OK) {
        reader r = {.p = p, .start = block, .err = err};
        r.t = (fth__thrift){.at = r.start, .end = r.start + bytes};
        s = take_footer(&r);
    }
    (void)fth_mem_release(p->mem, block, NULL);
    return s;
}

fth_status fth_parquet_open(fth_parquet **out, fth_mem *mem, const char *path, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_parquet), &block, err));
    fth_parquet *p = block;
    p->mem = mem;
    fth_status s = fth_file_open(&p->file, mem, path, err);
    if (s == FTH_OK) s = read_footer(p, err);
    if (s != FTH_OK) {
        fth_parquet_close(p);
        return s;
    }
    *out = p;
    return FTH_OK;
}

void fth_parquet_close(fth_parquet *p)
{
    if (!p) return;
    fth_file_close(p->file);
    for (int64_t k = 0; k < p->n_leaves; k++) fth__heap_free(p->mem, p->leaf[k].name);
    fth__heap_free(p->mem, p->leaf);
    fth__heap_free(p->mem, p->group_rows);
    fth__heap_free(p->mem, p->chunk);
    fth__heap_free(p->mem, p);
}

int64_t fth_parquet_rows(const fth_parquet *p)
{
    return p->rows;
}

int64_t fth_parquet_columns(const fth_parquet *p)
{
    return p->n_leaves;
}

const char *fth_parquet_name(const fth_parquet *p, int64_t column)
{
    return column >= 0 && column < p->n_leaves ? p->leaf[column].name : NULL;
}

int64_t fth_parquet_find(const fth_parquet *p, const char *name)
{
    for (int64_t k = 0; k < p->n_leaves; k++)
        if (strcmp(p->leaf[k].name, name) == 0) return k;
    return -1;
}

fth_parquet_type fth_parquet_type_of(const fth_parquet *p, int64_t column)
{
    static const fth_parquet_type types[FTH__PARQUET_PHYSICALS] = {
        [FTH__PARQUET_BOOLEAN] = FTH_PARQUET_BOOL,    [FTH__PARQUET_INT32] = FTH_PARQUET_I32,
        [FTH__PARQUET_INT64] = FTH_PARQUET_I64,       [FTH__PARQUET_INT96] = FTH_PARQUET_OTHER,
        [FTH__PARQUET_FLOAT] = FTH_PARQUET_F32,       [FTH__PARQUET_DOUBLE] = FTH_PARQUET_F64,
        [FTH__PARQUET_BYTE_ARRAY] = FTH_PARQUET_TEXT, [FTH__PARQUET_FIXED] = FTH_PARQUET_OTHER};
    if (column < 0 || column >= p->n_leaves) return FTH_PARQUET_OTHER;
    const fth__parquet_leaf *leaf = &p->leaf[column];
    if (leaf->nested || leaf->decimal) return FTH_PARQUET_OTHER;
    if (leaf->physical == FTH__PARQUET_INT32 && leaf->is_unsigned) return FTH_PARQUET_I64;
    return types[leaf->physical];
}
