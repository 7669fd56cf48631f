/* csr.c - compressed sparse rows over three arrays of any file.
 *
 * Row pointers are small and tell how many entries any rows have, so they are
 * read, checked and kept when the matrix is opened. Columns and values are
 * read on demand through a fixed piece, whatever the size of the rectangle.
 */
#include "array/rect.h"
#include "array/rows.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/dense.h"
#include "io/h5_info.h"
#include "io/npz.h"
#include "mem/heap.h"
#include "ops/scalar.h"

#include <inttypes.h>
#include <string.h>

/* Entries read at a time: 64 KiB of columns, long enough for a disk and small beside any matrix
 * that is worth being sparse; not tuned. */
enum { PIECE = 16384 };

struct fth_csr {
    fth__opened opened; /* a source of it may be closed: nothing happens */
    fth_mem *mem;
    char *label; /* "file, group" */
    fth_source data, indices;
    int64_t rows, cols;
    int64_t *ptr;   /* rows + 1 */
    int32_t *piece; /* columns */
    char *values;   /* elements */
    int64_t *wide;  /* columns before they are narrowed; NULL when the file has i32 */
};

/* ---- reading entries ---- */

static fth_status bad_column(const fth_csr *c, int64_t entry, int64_t col, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s: entry %" PRId64 " (row %" PRId64 ") is in column %" PRId64
                    "; columns are 0 to %" PRId64,
                    c->label, entry, fth__row_of(c->ptr, c->rows, entry), col, c->cols - 1);
}

static bool is_index(const fth_source *s)
{
    return s->n_axes == 1 && fth_dtype_is_int(s->dtype);
}

/* Elements [lo, lo + n) of a list of whole numbers, as i64. */
static fth_status read_index(const fth_source *s, int64_t lo, int64_t n, int64_t *out, fth_err *err)
{
    const int64_t size = fth_dtype_size(s->dtype);
    const char *narrow = (const char *)out;
    FTH_TRY(s->read(s->self, &lo, &n, out, err));
    for (int64_t i = n; size < 8 && i-- > 0;) /* from the back: both share the memory */
        out[i] = fth__load(s->dtype, narrow + i * size).i;
    return FTH_OK;
}

/* Columns of entries [p, p+m), m at most PIECE, checked. */
static fth_status read_piece(fth_csr *c, int64_t p, int64_t m, int32_t *col, fth_err *err)
{
    FTH_ASSERT(m > 0 && m <= PIECE && p >= 0 && p + m <= c->ptr[c->rows]);
    if (c->wide)
        FTH_TRY(read_index(&c->indices, p, m, c->wide, err));
    else
        FTH_TRY(c->indices.read(c->indices.self, &p, &m, col, err));
    for (int64_t i = 0; i < m; i++) {
        const int64_t v = c->wide ? c->wide[i] : col[i];
        if (v < 0 || v >= c->cols) return bad_column(c, p + i, v, err);
        col[i] = (int32_t)v;
    }
    return FTH_OK;
}

static fth_status read_columns(fth_csr *c, int64_t p, int64_t m, int32_t *col, fth_err *err)
{
    for (int64_t at = 0; at < m; at += PIECE)
        FTH_TRY(read_piece(c, p + at, fth__min_i64(PIECE, m - at), col + at, err));
    return FTH_OK;
}

static fth_status read_entries(fth_csr *c, int64_t p, int64_t m, int32_t *col, void *val,
                               fth_err *err)
{
    FTH_ASSERT(m >= 0 && p >= 0 && p + m <= c->data.size[0]);
    FTH_TRY(read_columns(c, p, m, col, err));
    return m > 0 ? c->data.read(c->data.self, &p, &m, val, err) : FTH_OK;
}

static fth_status check_rows(const fth_csr *c, int64_t first, int64_t n, fth_err *err)
{
    const int64_t lo[1] = {first}, extent[1] = {n}, size[1] = {c->rows};
    return fth__rect_check(c->label, 1, size, lo, extent, err);
}

fth_status fth_csr_read(fth_csr *c, int64_t first, int64_t n, int64_t *row_ptr, int32_t *col,
                        void *val, fth_err *err)
{
    FTH_TRY(check_rows(c, first, n, err));
    for (int64_t i = 0; i <= n; i++) row_ptr[i] = c->ptr[first + i] - c->ptr[first];
    return read_entries(c, c->ptr[first], row_ptr[n], col, val, err);
}

fth_status fth_csr_read_rows(fth_csr *c, const int64_t *index, int64_t n, int64_t room,
                             int64_t *row_ptr, int32_t *col, void *val, fth_err *err)
{
    if (n < 0 || (n > 0 && !index))
        return FTH_FAIL(err, FTH_E_USAGE, "%s: no list of rows given", c->label);
    row_ptr[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t r = index[i];
        if (r < 0 || r >= c->rows)
            return FTH_FAIL(err, FTH_E_INDEX_RANGE,
                            "%s: row %" PRId64 " was asked for; rows are 0 to %" PRId64, c->label,
                            r, c->rows - 1);
        if (!fth__add_i64(row_ptr[i], c->ptr[r + 1] - c->ptr[r], &row_ptr[i + 1]))
            return FTH_FAIL(err, FTH_E_SIZE_OVERFLOW,
                            "%s: the rows asked for have more than 2^63 entries", c->label);
    }
    if (row_ptr[n] > room)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "%s: the rows asked for have %" PRId64
                        " entries, there is room for %" PRId64,
                        c->label, row_ptr[n], room);
    char *to = val;
    const int64_t item = fth_dtype_size(c->data.dtype);
    for (int64_t i = 0; i < n;) {
        int64_t m = 1;
        while (i + m < n && index[i + m] == index[i] + m) m++;
        FTH_ASSERT(row_ptr[i + m] - row_ptr[i] == c->ptr[index[i] + m] - c->ptr[index[i]]);
        FTH_ASSERT(row_ptr[i] <= row_ptr[i + m] && row_ptr[i + m] <= room);
        FTH_TRY(read_entries(c, c->ptr[index[i]], row_ptr[i + m] - row_ptr[i], col + row_ptr[i],
                             to + row_ptr[i] * item, err));
        i += m;
    }
    return FTH_OK;
}

/* ---- the dense matrix ---- */

/* False when a sum of integers does not fit. */
static bool add_to(fth_dtype t, char *to, const char *from)
{
#define ADD_INT(type)                                                                              \
    do {                                                                                           \
        type a, b;                                                                                 \
        memcpy(&a, to, sizeof a);                                                                  \
        memcpy(&b, from, sizeof b);                                                                \
        if (__builtin_add_overflow(a, b, &a)) return false;                                        \
        memcpy(to, &a, sizeof a);                                                                  \
    } while (0)
#define ADD_REAL(type, parts)                                                                      \
    do {                                                                                           \
        type a[parts], b[parts];                                                                   \
        memcpy(a, to, sizeof a);                                                                   \
        memcpy(b, from, sizeof b);                                                                 \
        for (int k = 0; k < (parts); k++) a[k] += b[k];                                            \
        memcpy(to, a, sizeof a);                                                                   \
    } while (0)
    switch (t) {
    case FTH_BOOL: *to = (char)(*to | *from); break;
    case FTH_U8: ADD_INT(uint8_t); break;
    case FTH_U16: ADD_INT(uint16_t); break;
    case FTH_I32: ADD_INT(int32_t); break;
    case FTH_I64: ADD_INT(int64_t); break;
    case FTH_U32: ADD_INT(uint32_t); break;
    case FTH_I16: ADD_INT(int16_t); break;
    case FTH_I8: ADD_INT(int8_t); break;
    case FTH_F32: ADD_REAL(float, 1); break;
    case FTH_F64: ADD_REAL(double, 1); break;
    case FTH_C64: ADD_REAL(float, 2); break;
    case FTH_C128: ADD_REAL(double, 2); break;
    case FTH_F16:
    case FTH_BF16:
    case FTH_DTYPE_COUNT: return false; /* refused when opened */
    }
    return true;
#undef ADD_INT
#undef ADD_REAL
}

static fth_status dense_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    fth_csr *c = self;
    const int64_t size[2] = {c->rows, c->cols}, item = fth_dtype_size(c->data.dtype);
    FTH_TRY(fth__rect_check(c->label, 2, size, lo, n, err));
    if (fth__rect_count(2, n) == 0) return FTH_OK;
    memset(dst, 0, (size_t)(n[0] * n[1] * item));
    const int64_t end = c->ptr[lo[0] + n[0]];
    int64_t row = lo[0];
    for (int64_t p = c->ptr[row]; p < end;) {
        const int64_t m = fth__min_i64(PIECE, end - p);
        FTH_TRY(read_piece(c, p, m, c->piece, err));
        FTH_TRY(c->data.read(c->data.self, &p, &m, c->values, err));
        for (int64_t i = 0; i < m; i++) {
            while (c->ptr[row + 1] <= p + i) row++;
            FTH_ASSERT(row < lo[0] + n[0] && c->ptr[row] <= p + i);
            const int64_t col = c->piece[i] - lo[1];
            if (col < 0 || col >= n[1]) continue;
            char *to = (char *)dst + ((row - lo[0]) * n[1] + col) * item;
            if (!add_to(c->data.dtype, to, c->values + i * item))
                return FTH_FAIL(err, FTH_E_CAST_RANGE,
                                "%s: entries of row %" PRId64 ", column %" PRId32 " add up past %s",
                                c->label, row, c->piece[i], fth_dtype_name(c->data.dtype));
        }
        p += m;
    }
    return FTH_OK;
}

static fth_status dense_read_rows(void *self, const int64_t *index, int64_t n, void *dst,
                                  fth_err *err)
{
    fth_csr *c = self;
    const int64_t size[2] = {c->rows, c->cols};
    return fth__rows_by_read(c->label, dense_read, self, c->data.dtype, 2, size, index, n, dst,
                             err);
}

fth_source fth_csr_source(fth_csr *c)
{
    return (fth_source){.kind = "csr",
                        .self = c,
                        .dtype = c->data.dtype,
                        .n_axes = 2,
                        .size = {c->rows, c->cols},
                        .read = dense_read,
                        .read_rows = dense_read_rows,
                        .libraries = c->data.libraries | c->indices.libraries,
                        .billed_bytes = c->data.billed_bytes + c->indices.billed_bytes};
}

/* ---- the entries, as they are ---- */

static fth_status columns_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    fth_csr *c = self;
    FTH_TRY(fth__rect_check(c->label, 1, &c->ptr[c->rows], lo, n, err));
    return read_columns(c, lo[0], n[0], dst, err);
}

static fth_status values_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    fth_csr *c = self;
    FTH_TRY(fth__rect_check(c->label, 1, &c->ptr[c->rows], lo, n, err));
    return n[0] > 0 ? c->data.read(c->data.self, lo, n, dst, err) : FTH_OK;
}

fth_source fth_csr_columns(fth_csr *c)
{
    return (fth_source){.kind = "csr columns",
                        .self = c,
                        .dtype = FTH_I32,
                        .n_axes = 1,
                        .size = {c->ptr[c->rows]},
                        .read = columns_read};
}

fth_source fth_csr_values(fth_csr *c)
{
    return (fth_source){.kind = "csr values",
                        .self = c,
                        .dtype = c->data.dtype,
                        .n_axes = 1,
                        .size = {c->ptr[c->rows]},
                        .read = values_read};
}

const int64_t *fth_csr_row_ptr(const fth_csr *c)
{
    return c->ptr;
}

/* ---- opening ---- */

static void close_nothing(void *self)
{
    (void)self;
}

static fth_status take_pointers(fth_csr *c, const fth_source *indptr, fth_err *err)
{
    char a[120], b[120];
    if (!is_index(indptr) || !is_index(&c->indices) || c->data.n_axes != 1)
        return FTH_FAIL(
            err, FTH_E_FILE_SHAPE,
            "%s: a sparse matrix has lists of whole numbers as indptr and indices; these are %s "
            "and "
            "%s",
            c->label, fth__shape_text(indptr->dtype, indptr->n_axes, indptr->size, a, sizeof a),
            fth__shape_text(c->indices.dtype, c->indices.n_axes, c->indices.size, b, sizeof b));
    if (c->data.dtype == FTH_F16 || c->data.dtype == FTH_BF16)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: sparse %s is not read; keep it as f32",
                        c->label, fth_dtype_name(c->data.dtype));
    if (c->rows < 0 || c->cols < 0 || c->rows != indptr->size[0] - 1)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: the shape is [%" PRId64 " %" PRId64 "], but indptr has %" PRId64
                        " elements",
                        c->label, c->rows, c->cols, indptr->size[0]);
    if (c->cols > INT32_MAX)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: %" PRId64 " columns; at most 2^31-1 are read",
                        c->label, c->cols);
    if (c->data.size[0] != c->indices.size[0])
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: %" PRId64 " values and %" PRId64 " indices",
                        c->label, c->data.size[0], c->indices.size[0]);
    void *block = NULL;
    FTH_TRY(fth_mem_take(c->mem, FTH_MEM_ANY, (uint64_t)indptr->size[0] * 8, "csr row pointers",
                         &block, err));
    c->ptr = block;
    FTH_TRY(read_index(indptr, 0, indptr->size[0], c->ptr, err));
    for (int64_t r = 0; r <= c->rows; r++) {
        const int64_t before = r ? c->ptr[r - 1] : 0;
        if ((r == 0 && c->ptr[0] != 0) || c->ptr[r] < before || c->ptr[r] > c->data.size[0])
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: indptr[%" PRId64 "] is %" PRId64 "; it should be %s%" PRId64
                            " and at most %" PRId64,
                            c->label, r, c->ptr[r], r ? "at least " : "", before, c->data.size[0]);
    }
    return FTH_OK;
}

static fth_status take_pieces(fth_csr *c, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth__heap_take(c->mem, PIECE, sizeof(int32_t), &block, err));
    c->piece = block;
    FTH_TRY(fth__heap_take(c->mem, PIECE, (uint64_t)fth_dtype_size(c->data.dtype), &block, err));
    c->values = block;
    if (c->indices.dtype == FTH_I32) return FTH_OK;
    FTH_TRY(fth__heap_take(c->mem, PIECE, sizeof(int64_t), &block, err));
    c->wide = block;
    return FTH_OK;
}

static fth_status make(fth_csr **out, fth_mem *mem, const char *path, const char *group,
                       fth_err *err)
{
    *out = NULL;
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_csr), &block, err));
    fth_csr *c = block;
    c->opened.close = close_nothing;
    c->mem = mem;
    const size_t bytes = strlen(path) + strlen(group) + 3;
    c->label = fth__heap_alloc(mem, bytes);
    if (!c->label) {
        fth__heap_free(mem, c);
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory to open %s", path);
    }
    snprintf(c->label, bytes, group[0] ? "%s, %s" : "%s%s", path, group);
    *out = c;
    return FTH_OK;
}

void fth_csr_close(fth_csr *c)
{
    if (!c) return;
    fth_source_close(&c->data);
    fth_source_close(&c->indices);
    (void)fth_mem_release(c->mem, c->ptr, NULL);
    fth__heap_free(c->mem, c->piece);
    fth__heap_free(c->mem, c->values);
    fth__heap_free(c->mem, c->wide);
    fth__heap_free(c->mem, c->label);
    fth__heap_free(c->mem, c);
}

static fth_status check_format(const fth_csr *c, const char *found, fth_err *err)
{
    if (strcmp(found, "csr") == 0 || strcmp(found, "csr_matrix") == 0) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FEATURE,
                 "%s: a matrix of sparse rows (csr) was wanted, this is '%s'", c->label, found);
    fth_err_hint(err, "convert it once with scipy: X.tocsr()");
    return s;
}

/* anndata wrote other names before version 0.7. */
static fth_status take_h5_shape(fth_csr *c, fth_h5 *h5, const char *group, fth_err *err)
{
    const bool old = !fth_h5_attr_exists(h5, group, "encoding-type") &&
                     fth_h5_attr_exists(h5, group, "h5sparse_format");
    fth_texts *format = NULL;
    FTH_TRY(fth_h5_attr_text(h5, group, old ? "h5sparse_format" : "encoding-type", &format, err));
    const char *text = fth_texts_get(format, 0);
    const fth_status s = check_format(c, text ? text : "", err);
    fth_texts_free(format);
    FTH_TRY(s);
    int64_t shape[2] = {0, 0}, n = 0;
    FTH_TRY(fth_h5_attr_i64(h5, group, old ? "h5sparse_shape" : "shape", shape, 2, &n, err));
    if (n != 2)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: a matrix has 2 sizes, this has %" PRId64,
                        c->label, n);
    c->rows = shape[0];
    c->cols = shape[1];
    return FTH_OK;
}

static fth_status h5_part(fth_h5 *h5, const char *group, const char *part, fth_source *out,
                          fth_err *err)
{
    char name[1024];
    const int n = snprintf(name, sizeof name, "%s/%s", group, part);
    if (n < 0 || (size_t)n >= sizeof name)
        return FTH_FAIL(err, FTH_E_USAGE, "the name of the group is too long");
    return fth_h5_source(h5, name, out, err);
}

fth_status fth_csr_open_h5(fth_csr **out, fth_h5 *h5, const char *group, fth_err *err)
{
    *out = NULL;
    if (!group) return FTH_FAIL(err, FTH_E_USAGE, "no group was named");
    fth_csr *c = NULL;
    FTH_TRY(make(&c, fth__h5_mem(h5), fth__h5_path(h5), group, err));
    fth_source indptr = {0};
    fth_status s = take_h5_shape(c, h5, group, err);
    if (s == FTH_OK) s = h5_part(h5, group, "data", &c->data, err);
    if (s == FTH_OK) s = h5_part(h5, group, "indices", &c->indices, err);
    if (s == FTH_OK) s = h5_part(h5, group, "indptr", &indptr, err);
    if (s == FTH_OK) s = take_pointers(c, &indptr, err);
    if (s == FTH_OK) s = take_pieces(c, err);
    fth_source_close(&indptr);
    if (s != FTH_OK)
        fth_csr_close(c);
    else
        *out = c;
    return s;
}

static fth_status take_npz_shape(fth_csr *c, fth_npz *npz, fth_err *err)
{
    char format[16];
    FTH_TRY(fth__npz_text(npz, "format", format, sizeof format, err));
    FTH_TRY(check_format(c, format, err));
    fth_source shape = {0};
    int64_t sizes[2] = {0, 0};
    FTH_TRY(fth_npz_source(npz, "shape", &shape, err));
    const fth_status s = is_index(&shape) && shape.size[0] == 2
                             ? read_index(&shape, 0, 2, sizes, err)
                             : FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                        "%s: the shape should be two whole numbers", c->label);
    fth_source_close(&shape);
    c->rows = sizes[0];
    c->cols = sizes[1];
    return s;
}

fth_status fth_csr_open_npz(fth_csr **out, fth_npz *npz, fth_err *err)
{
    *out = NULL;
    fth_csr *c = NULL;
    FTH_TRY(make(&c, fth__npz_mem(npz), fth__npz_path(npz), "", err));
    fth_source indptr = {0};
    fth_status s = take_npz_shape(c, npz, err);
    if (s == FTH_OK) s = fth_npz_source(npz, "data", &c->data, err);
    if (s == FTH_OK) s = fth_npz_source(npz, "indices", &c->indices, err);
    if (s == FTH_OK) s = fth_npz_source(npz, "indptr", &indptr, err);
    if (s == FTH_OK) s = take_pointers(c, &indptr, err);
    if (s == FTH_OK) s = take_pieces(c, err);
    fth_source_close(&indptr);
    if (s != FTH_OK)
        fth_csr_close(c);
    else
        *out = c;
    return s;
}

fth_status fth_csr_open_parts(fth_csr **out, fth_mem *mem, const char *label, fth_csr_parts *parts,
                              fth_err *err)
{
    *out = NULL;
    fth_csr *c = NULL;
    fth_status s = make(&c, mem, label, "", err);
    if (s == FTH_OK) {
        c->data = parts->data;
        c->indices = parts->indices;
        c->rows = parts->rows;
        c->cols = parts->cols;
        parts->data = parts->indices = (fth_source){0};
        s = take_pointers(c, &parts->indptr, err);
    }
    if (s == FTH_OK) s = take_pieces(c, err);
    fth_source_close(&parts->data);
    fth_source_close(&parts->indices);
    fth_source_close(&parts->indptr);
    if (s != FTH_OK)
        fth_csr_close(c);
    else
        *out = c;
    return s;
}

int64_t fth_csr_rows(const fth_csr *c)
{
    return c->rows;
}

int64_t fth_csr_cols(const fth_csr *c)
{
    return c->cols;
}

fth_dtype fth_csr_dtype(const fth_csr *c)
{
    return c->data.dtype;
}

int64_t fth_csr_entries(const fth_csr *c, int64_t first, int64_t end)
{
    const int64_t a = fth__max_i64(0, fth__min_i64(first, c->rows)),
                  b = fth__max_i64(a, fth__min_i64(end, c->rows));
    FTH_ASSERT(c->ptr[a] <= c->ptr[b]); /* row pointers never fall */
    return c->ptr[b] - c->ptr[a];
}
