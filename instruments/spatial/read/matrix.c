/* matrix.c - opening counts in any layout, and reading blocks of rows. */
#include "matrix.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18, DENSE_BYTES = 16 << 20 }; /* entries of columns at once; a dense piece */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- opening ---- */

/* "csr" or "csc": the word of an attribute whose name and form changed with the versions. */
static fth_status read_format(const sp_matrix *m, const sp_store *store, const char *object,
                              bool *columns, int64_t shape[2], fth_err *err)
{
    const bool old = !sp_store_attr_exists(store, object, "encoding-type") &&
                     sp_store_attr_exists(store, object, "h5sparse_format");
    fth_texts *t = NULL;
    FTH_TRY(sp_store_attr_text(store, object, old ? "h5sparse_format" : "encoding-type", &t, err));
    const char *word = fth_texts_count(t) > 0 ? fth_texts_get(t, 0) : "";
    fth_status s = FTH_OK;
    *columns = strncmp(word, "csc", 3) == 0;
    if (!*columns && strncmp(word, "csr", 3) != 0)
        s = FTH_FAIL(
            err, FTH_E_FILE_FEATURE,
            "%s: a matrix was expected, dense or as csr_matrix or csc_matrix; this is '%s'",
            m->label, word);
    fth_texts_free(t);
    int64_t n = 0;
    if (s == FTH_OK)
        s = sp_store_attr_i64(store, object, old ? "h5sparse_shape" : "shape", shape, 2, &n, err);
    if (s == FTH_OK && n != 2)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: a matrix has 2 sizes, this has %" PRId64,
                     m->label, n);
    return s;
}

static fth_status open_part(const sp_store *store, const char *group, const char *part,
                            fth_source *out, fth_err *err)
{
    char name[FTH_PATH];
    if (snprintf(name, sizeof name, "%s/%s", group, part) >= (int)sizeof name)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "the name %.60s... is too long", group);
    return sp_store_source(store, name, NULL, out, err);
}

/* data, indices and indptr of a group, as rows [rows cols]. */
static fth_status open_parts(sp_matrix *m, const sp_store *store, const char *group, int64_t rows,
                             int64_t cols, fth_err *err)
{
    fth_csr_parts parts = {.rows = rows, .cols = cols};
    fth_status s = open_part(store, group, "data", &parts.data, err);
    if (s == FTH_OK) s = open_part(store, group, "indices", &parts.indices, err);
    if (s == FTH_OK) s = open_part(store, group, "indptr", &parts.indptr, err);
    m->libraries = parts.data.libraries | parts.indices.libraries;
    if (s == FTH_OK) return fth_csr_open_parts(&m->csr, m->mem, m->label, &parts, err);
    fth_source_close(&parts.data);
    fth_source_close(&parts.indices);
    return s;
}

/* What rows and columns of entries have in common. */
static fth_status finish_sparse(sp_matrix *m, fth_status s, fth_err *err)
{
    if (s == FTH_OK) {
        m->dtype = fth_csr_dtype(m->csr);
        m->entries = fth_csr_entries(m->csr, 0, fth_csr_rows(m->csr));
        if (fth_dtype_is_complex(m->dtype))
            s = FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: counts are real, these are %s", m->label,
                         fth_dtype_name(m->dtype));
    }
    if (s != FTH_OK) sp_matrix_close(m);
    return s;
}

static fth_status open_dense(sp_matrix *m, const sp_store *store, const char *object, fth_err *err)
{
    m->layout = SP_LAYOUT_DENSE;
    FTH_TRY(sp_store_source(store, object, NULL, &m->dense, err));
    m->dtype = m->dense.dtype;
    m->libraries = m->dense.libraries;
    m->rows = m->dense.size[0];
    m->cols = m->dense.size[1];
    if (m->dtype == FTH_F16 || m->dtype == FTH_BF16) {
        const fth_status s = FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: counts of %s are not read",
                                      m->label, fth_dtype_name(m->dtype));
        fth_err_hint(err, "convert them to f32: adata.X = adata.X.astype('float32')");
        return s;
    }
    if (m->dense.n_axes != 2 || fth_dtype_is_complex(m->dtype))
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: counts are numbers [cell gene]; this is %s with %d axes", m->label,
                        fth_dtype_name(m->dtype), m->dense.n_axes);
    if (m->cols > INT32_MAX || (m->cols > 0 && m->rows > INT64_MAX / m->cols))
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: %" PRId64 " x %" PRId64 " is too large",
                        m->label, m->rows, m->cols);
    m->entries = m->rows * m->cols;
    return FTH_OK;
}

static void start(sp_matrix *m, fth_mem *mem, const char *path, const char *object)
{
    *m = (sp_matrix){.mem = mem};
    snprintf(m->label, sizeof m->label, object[0] ? "%.4090s, %.60s" : "%.4090s%s", path, object);
}

fth_status sp_matrix_open(sp_matrix *m, fth_mem *mem, fth_h5 *h5, const char *path,
                          const char *object, fth_err *err)
{
    const sp_store store = {.mem = mem, .h5 = h5};
    return sp_matrix_open_store(m, &store, path, object, err);
}

fth_status sp_matrix_open_store(sp_matrix *m, const sp_store *store, const char *path,
                                const char *object, fth_err *err)
{
    start(m, store->mem, path, object);
    if (sp_store_kind(store, object) != FTH_H5_GROUP) {
        const fth_status s = open_dense(m, store, object, err);
        if (s != FTH_OK) sp_matrix_close(m);
        return s;
    }
    int64_t shape[2] = {0, 0};
    bool columns = false;
    fth_status s = read_format(m, store, object, &columns, shape, err);
    m->layout = columns ? SP_LAYOUT_COLUMNS : SP_LAYOUT_ROWS;
    m->rows = shape[0];
    m->cols = shape[1];
    if (s == FTH_OK) s = open_parts(m, store, object, shape[columns], shape[!columns], err);
    return finish_sparse(m, s, err);
}

fth_status sp_matrix_open_npz(sp_matrix *m, fth_mem *mem, const char *path, fth_err *err)
{
    start(m, mem, path, "");
    fth_npz *npz = NULL;
    FTH_TRY(fth_npz_open(&npz, mem, path, err));
    const fth_status s = fth_csr_open_npz(&m->csr, npz, err);
    fth_npz_close(npz);
    if (s == FTH_OK) {
        m->rows = fth_csr_rows(m->csr);
        m->cols = fth_csr_cols(m->csr);
    }
    return finish_sparse(m, s, err);
}

fth_status sp_matrix_open_tenx(sp_matrix *m, fth_mem *mem, fth_h5 *h5, const char *path,
                               const char *group, fth_err *err)
{
    const sp_store store = {.mem = mem, .h5 = h5};
    start(m, mem, path, group);
    fth_source s = {0};
    fth_tensor *t = NULL;
    fth_status status = open_part(&store, group, "shape", &s, err);
    if (status == FTH_OK && (s.n_axes != 1 || s.size[0] != 2 || !fth_dtype_is_int(s.dtype)))
        status =
            FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: its shape should be two whole numbers", m->label);
    if (status == FTH_OK) status = fth_source_load(&s, mem, "shape", &t, err);
    if (status == FTH_OK) {
        m->cols = (int64_t)sp_number_at(s.dtype, fth_tensor_data(t), 0);
        m->rows = (int64_t)sp_number_at(s.dtype, fth_tensor_data(t), 1);
        status = open_parts(m, &store, group, m->rows, m->cols, err);
    }
    fth_tensor_release(t);
    fth_source_close(&s);
    return finish_sparse(m, status, err);
}

void sp_matrix_close(sp_matrix *m)
{
    fth_csr_close(m->csr);
    sp_mtx_close(m);
    sp_table_close(m);
    sp_joined_close(m);
    fth_source_close(&m->dense);
    if (m->mem) (void)fth_mem_release(m->mem, m->row_ptr, NULL);
    *m = (sp_matrix){0};
}

/* ---- how many entries ---- */

static fth_status count_rows(const sp_matrix *m, int64_t *ptr, int32_t *piece, fth_err *err)
{
    const fth_source s = fth_csr_columns(m->csr);
    memset(ptr, 0, (size_t)(m->rows + 1) * 8);
    for (int64_t at = 0; at < m->entries;) {
        const int64_t left = m->entries - at, n = left < PIECE ? left : PIECE;
        FTH_TRY(s.read(s.self, &at, &n, piece, err));
        for (int64_t i = 0; i < n; i++) ptr[piece[i] + 1]++;
        at += n;
    }
    for (int64_t r = 0; r < m->rows; r++) ptr[r + 1] += ptr[r];
    return FTH_OK;
}

fth_status sp_matrix_prepare(sp_matrix *m, fth_err *err)
{
    const bool text = m->layout == SP_LAYOUT_TEXT;
    if (m->layout == SP_LAYOUT_JOINED) return sp_joined_prepare(m, err);
    if ((m->layout != SP_LAYOUT_COLUMNS && !text) || m->row_ptr) return FTH_OK;
    void *ptr = NULL, *piece = NULL;
    FTH_TRY(
        fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)(m->rows + 1) * 8, "row pointers", &ptr, err));
    m->row_ptr = ptr;
    if (text) return sp_mtx_count(m, err);
    fth_status s = fth_mem_take(m->mem, FTH_MEM_ANY, PIECE * 4, "rows of entries", &piece, err);
    if (s == FTH_OK) s = count_rows(m, ptr, piece, err);
    (void)fth_mem_release(m->mem, piece, NULL);
    return s;
}

int64_t sp_matrix_entries(const sp_matrix *m, int64_t first, int64_t end)
{
    if (m->layout == SP_LAYOUT_ROWS) return fth_csr_entries(m->csr, first, end);
    if (m->layout == SP_LAYOUT_DENSE || m->layout == SP_LAYOUT_TABLE)
        return (end - first) * m->cols;
    if (m->layout == SP_LAYOUT_JOINED) return sp_joined_entries(m, first, end);
    return m->row_ptr[end] - m->row_ptr[first];
}

int64_t sp_matrix_fullest(const sp_matrix *m)
{
    if (m->layout == SP_LAYOUT_JOINED) return sp_joined_fullest(m);
    if (m->layout != SP_LAYOUT_ROWS) return m->cols;
    int64_t most = 0;
    for (int64_t r = 0; r < m->rows; r++) most = larger(most, sp_matrix_entries(m, r, r + 1));
    return most;
}

int64_t sp_matrix_fit(const sp_matrix *m, int64_t first, int64_t room)
{
    if (m->layout == SP_LAYOUT_JOINED) return sp_joined_fit(m, first, room);
    int64_t low = 1, high = m->rows - first; /* low rows always go */
    while (low < high) {
        const int64_t mid = low + (high - low + 1) / 2;
        if (sp_matrix_entries(m, first, first + mid) <= room)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* ---- blocks ---- */

/* Rows of a dense piece, or columns and their entries read at once. */
static int64_t part_entries(const sp_matrix *m)
{
    if (m->layout == SP_LAYOUT_ROWS || m->layout == SP_LAYOUT_TEXT ||
        m->layout == SP_LAYOUT_TABLE || m->layout == SP_LAYOUT_JOINED)
        return 0;
    if (m->layout == SP_LAYOUT_DENSE)
        return larger(1, DENSE_BYTES / fth_dtype_size(m->dtype) / larger(1, m->cols)) * m->cols;
    int64_t most = PIECE;
    for (int64_t c = 0; c < m->cols; c++) most = larger(most, fth_csr_entries(m->csr, c, c + 1));
    return most;
}

/* Values as they are in the file; none when a block of rows is f32 already. */
static int64_t raw_entries(const sp_matrix *m, int64_t room)
{
    if (m->layout != SP_LAYOUT_ROWS) return part_entries(m);
    return m->dtype == FTH_F32 ? 0 : room;
}

uint64_t sp_block_bytes(const sp_matrix *m, int64_t rows, int64_t room)
{
    const int64_t columns = m->layout == SP_LAYOUT_COLUMNS;
    const uint64_t inner = m->layout == SP_LAYOUT_JOINED ? sp_joined_block_bytes(m, rows, room) : 0;
    return inner + (uint64_t)(rows + 1) * 8 + (uint64_t)room * 8 +
           (uint64_t)(raw_entries(m, room) * fth_dtype_size(m->dtype)) +
           (uint64_t)columns * ((uint64_t)part_entries(m) * 4 + (uint64_t)(m->cols + 1) * 8) +
           6 * 4096; /* each is rounded up */
}

fth_status sp_block_create(sp_block *b, const sp_matrix *m, int64_t rows, int64_t room,
                           fth_err *err)
{
    *b = (sp_block){.mem = m->mem, .rows = rows, .room = room, .part = part_entries(m)};
    const uint64_t raw = (uint64_t)(raw_entries(m, room) * fth_dtype_size(m->dtype));
    const bool columns = m->layout == SP_LAYOUT_COLUMNS;
    const struct {
        void **to;
        uint64_t bytes;
        const char *label;
    } need[] = {{(void **)&b->ptr, (uint64_t)(rows + 1) * 8, "block: rows"},
                {(void **)&b->col, (uint64_t)room * 4, "block: genes"},
                {(void **)&b->val, (uint64_t)room * 4, "block: counts"},
                {&b->raw, raw, "block: file"},
                {(void **)&b->part_ptr, columns ? (uint64_t)(m->cols + 1) * 8 : 0, "block: cols"},
                {(void **)&b->part_col, columns ? (uint64_t)b->part * 4 : 0, "block: cells"}};
    for (size_t i = 0; i < sizeof need / sizeof need[0]; i++) {
        if (need[i].bytes == 0) continue;
        const fth_status s =
            fth_mem_take(m->mem, FTH_MEM_ANY, need[i].bytes, need[i].label, need[i].to, err);
        if (s == FTH_OK) continue;
        sp_block_free(b);
        return s;
    }
    return FTH_OK;
}

void sp_block_free(sp_block *b)
{
    if (!b->mem) return;
    if (b->inner) sp_block_free(b->inner);
    void *all[] = {b->ptr, b->col, b->val, b->raw, b->part_ptr, b->part_col, b->inner};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        (void)fth_mem_release(b->mem, all[i], NULL);
    *b = (sp_block){0};
}

/* ---- reading ---- */

double sp_number_at(fth_dtype t, const void *raw, int64_t i)
{
    switch (t) {
    case FTH_BOOL:
    case FTH_U8: return ((const uint8_t *)raw)[i];
    case FTH_U16: return ((const uint16_t *)raw)[i];
    case FTH_I32: return ((const int32_t *)raw)[i];
    case FTH_I64: return (double)((const int64_t *)raw)[i];
    case FTH_U32: return ((const uint32_t *)raw)[i];
    case FTH_I16: return ((const int16_t *)raw)[i];
    case FTH_I8: return ((const int8_t *)raw)[i];
    case FTH_F32: return (double)((const float *)raw)[i];
    case FTH_F64: return ((const double *)raw)[i];
    case FTH_F16:
    case FTH_BF16:
    case FTH_C64:
    case FTH_C128:
    case FTH_DTYPE_COUNT: break;
    }
    return (double)NAN; /* refused when opened */
}

/* Shell sort: rows are short, and mostly in order already. */
static void sort_row(int32_t *col, float *val, int64_t n)
{
    for (int64_t gap = n / 2; gap > 0; gap /= 2)
        for (int64_t i = gap; i < n; i++) {
            const int32_t c = col[i];
            const float v = val[i];
            int64_t k = i;
            for (; k >= gap && col[k - gap] > c; k -= gap) {
                col[k] = col[k - gap];
                val[k] = val[k - gap];
            }
            col[k] = c;
            val[k] = v;
        }
}

/* Columns ascend, entries of one place are added up, zeros go; rows move together. */
static void tidy(sp_block *b, int64_t n)
{
    int64_t to = 0;
    for (int64_t r = 0, from = 0; r < n; r++) {
        const int64_t begin = from, end = b->ptr[r + 1];
        bool sorted = true;
        for (int64_t i = begin + 1; i < end; i++) sorted = sorted && b->col[i - 1] < b->col[i];
        if (!sorted) sort_row(b->col + begin, b->val + begin, end - begin);
        for (from = begin; from < end;) {
            const int32_t c = b->col[from];
            float sum = b->val[from++];
            while (from < end && b->col[from] == c) sum += b->val[from++];
            if (sum == 0) continue;
            b->col[to] = c;
            b->val[to++] = sum;
        }
        b->ptr[r + 1] = to;
    }
}

static fth_status read_rows(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err)
{
    void *to = m->dtype == FTH_F32 ? (void *)b->val : b->raw;
    FTH_TRY(fth_csr_read(m->csr, first, n, b->ptr, b->col, to, err));
    if (m->dtype != FTH_F32)
        for (int64_t i = 0; i < b->ptr[n]; i++)
            b->val[i] = (float)sp_number_at(m->dtype, b->raw, i);
    tidy(b, n);
    return FTH_OK;
}

static fth_status read_dense(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err)
{
    const int64_t step = m->cols > 0 ? b->part / m->cols : n;
    int64_t to = 0;
    b->ptr[0] = 0;
    for (int64_t at = 0; at < n;) {
        const int64_t rows = n - at < step ? n - at : step;
        const int64_t lo[2] = {first + at, 0}, extent[2] = {rows, m->cols};
        FTH_TRY(m->dense.read(m->dense.self, lo, extent, b->raw, err));
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = 0; c < m->cols; c++) {
                const float v = (float)sp_number_at(m->dtype, b->raw, r * m->cols + c);
                if (v == 0) continue;
                b->col[to] = (int32_t)c;
                b->val[to++] = v;
            }
            b->ptr[at + r + 1] = to;
        }
        at += rows;
    }
    return FTH_OK;
}

/* Entries of columns [c, c + n) that are in rows [first, first + rows), to the end of their row. */
static void scatter(const sp_matrix *m, int64_t first, int64_t rows, int64_t c, int64_t n,
                    sp_block *b)
{
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = b->part_ptr[k]; i < b->part_ptr[k + 1]; i++) {
            const int64_t r = b->part_col[i] - first;
            if (r < 0 || r >= rows) continue;
            const int64_t at = b->ptr[r + 1]++;
            b->col[at] = (int32_t)(c + k);
            b->val[at] = (float)sp_number_at(m->dtype, b->raw, i);
        }
}

/* ptr[r + 1] is where row r goes on, until it is full; then it is the end of row r. */
static fth_status read_columns(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err)
{
    b->ptr[0] = 0;
    for (int64_t r = 0; r < n; r++) b->ptr[r + 1] = m->row_ptr[first + r] - m->row_ptr[first];
    for (int64_t c = 0; c < m->cols;) {
        int64_t k = 1;
        while (c + k < m->cols && fth_csr_entries(m->csr, c, c + k + 1) <= b->part) k++;
        FTH_TRY(fth_csr_read(m->csr, c, k, b->part_ptr, b->part_col, b->raw, err));
        scatter(m, first, n, c, k, b);
        c += k;
    }
    tidy(b, n);
    return FTH_OK;
}

fth_status sp_matrix_read(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err)
{
    if (first < 0 || n < 0 || n > b->rows || n > m->rows - first ||
        sp_matrix_entries(m, first, first + n) > b->room)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "%s: %" PRId64 " rows from %" PRId64
                        " on do not fit into a block of %" PRId64 " rows and %" PRId64 " entries",
                        m->label, n, first, b->rows, b->room);
    switch (m->layout) {
    case SP_LAYOUT_ROWS: return read_rows(m, first, n, b, err);
    case SP_LAYOUT_COLUMNS: return read_columns(m, first, n, b, err);
    case SP_LAYOUT_DENSE: return read_dense(m, first, n, b, err);
    case SP_LAYOUT_TABLE: return sp_table_read(m, first, n, b, err);
    case SP_LAYOUT_TEXT:
        FTH_TRY(sp_mtx_read(m, first, n, b, err));
        tidy(b, n);
        return FTH_OK;
    case SP_LAYOUT_JOINED:
        FTH_TRY(sp_joined_read(m, first, n, b, err));
        tidy(b, n);
        return FTH_OK;
    }
    return FTH_FAIL(err, FTH_E_INTERNAL, "%s: no such layout", m->label);
}
