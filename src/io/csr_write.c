/* csr_write.c - sparse rows into an NPZ file, from the first to the last.
 *
 * Row pointers go out through a piece of fixed size, so a file of any number of rows takes the same
 * memory. They are i32 as scipy writes them, and i64 when there are too many entries for that.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/npz.h"
#include "mem/heap.h"

#include <inttypes.h>

enum { PIECE = 16384 }; /* row pointers written at a time, as many as csr.c reads entries */

struct fth_csr_writer {
    fth_mem *mem;
    fth_npz_writer *npz;
    fth_sink data, indices, indptr;
    int64_t rows, cols, entries;
    int64_t row, entry; /* written so far */
    void *piece;
};

static fth_status open_sinks(fth_csr_writer *w, fth_err *err)
{
    FTH_TRY(fth_npz_sink(w->npz, "data", &w->data, err));
    FTH_TRY(fth_npz_sink(w->npz, "indices", &w->indices, err));
    FTH_TRY(fth_npz_sink(w->npz, "indptr", &w->indptr, err));
    fth_sink shape = {0};
    FTH_TRY(fth_npz_sink(w->npz, "shape", &shape, err));
    const int64_t sizes[2] = {w->rows, w->cols}, lo = 0, two = 2;
    FTH_TRY(shape.write(shape.self, &lo, &two, sizes, err));
    return shape.commit(shape.self, err);
}

/* row_ptr[0..n) less its first, plus what was written before, as elements of the file. */
static fth_status put_pointers(fth_csr_writer *w, int64_t at, int64_t n, const int64_t *row_ptr,
                               int64_t shift, fth_err *err)
{
    FTH_ASSERT(at >= 0 && at + n <= w->rows + 1);
    for (int64_t done = 0; done < n;) {
        const int64_t m = fth__min_i64(PIECE, n - done), lo = at + done;
        int32_t *narrow = w->piece;
        int64_t *wide = w->piece;
        for (int64_t i = 0; i < m; i++) {
            const int64_t v = row_ptr[done + i] + shift;
            FTH_ASSERT(v >= w->entry && v <= w->entries); /* so an i32 holds it */
            if (w->indptr.dtype == FTH_I32)
                narrow[i] = (int32_t)v;
            else
                wide[i] = v;
        }
        FTH_TRY(w->indptr.write(w->indptr.self, &lo, &m, w->piece, err));
        done += m;
    }
    return FTH_OK;
}

fth_status fth_csr_create_npz(fth_csr_writer **out, fth_mem *mem, const char *path, int64_t rows,
                              int64_t cols, int64_t entries, fth_dtype dtype, fth_err *err)
{
    *out = NULL;
    if (!mem || rows < 0 || rows == INT64_MAX || cols < 0 || cols > INT32_MAX || entries < 0)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "a sparse matrix of %" PRId64 " x %" PRId64 " with %" PRId64
                        " entries cannot be written",
                        rows, cols, entries);
    const fth_dtype pointer = entries > INT32_MAX ? FTH_I64 : FTH_I32;
    const fth_file_item items[] = {
        {.name = "indices", .dtype = FTH_I32, .n_axes = 1, .size = {entries}},
        {.name = "indptr", .dtype = pointer, .n_axes = 1, .size = {rows + 1}},
        {.name = "format"},
        {.name = "shape", .dtype = FTH_I64, .n_axes = 1, .size = {2}},
        {.name = "data", .dtype = dtype, .n_axes = 1, .size = {entries}}};
    enum { ITEMS = sizeof items / sizeof items[0] };
    static const char *const text[ITEMS] = {[2] = "csr"};
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_csr_writer), &block, err));
    fth_csr_writer *w = block;
    *w = (fth_csr_writer){.mem = mem, .rows = rows, .cols = cols, .entries = entries};
    const int64_t zero = 0;
    fth_status s = fth__heap_take(mem, PIECE, (uint64_t)fth_dtype_size(pointer), &w->piece, err);
    if (s == FTH_OK) s = fth__npz_create(&w->npz, mem, path, items, ITEMS, text, ITEMS, err);
    if (s == FTH_OK) s = open_sinks(w, err);
    if (s == FTH_OK) s = put_pointers(w, 0, 1, &zero, 0, err);
    if (s != FTH_OK)
        fth_csr_abandon(w);
    else
        *out = w;
    return s;
}

static fth_status check_append(const fth_csr_writer *w, int64_t n, const int64_t *row_ptr,
                               const int32_t *col, fth_err *err)
{
    if (n < 0 || n > w->rows - w->row)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "%" PRId64 " rows were appended to %" PRId64 " of %" PRId64, n, w->row,
                        w->rows);
    for (int64_t i = 0; i < n; i++)
        if (row_ptr[i + 1] < row_ptr[i] || row_ptr[i + 1] - row_ptr[0] > w->entries - w->entry)
            return FTH_FAIL(err, FTH_E_USAGE,
                            "row %" PRId64 " ends at entry %" PRId64 " of %" PRId64, w->row + i,
                            w->entry + row_ptr[i + 1] - row_ptr[0], w->entries);
    for (int64_t e = 0; e < row_ptr[n] - row_ptr[0]; e++)
        if (col[e] < 0 || col[e] >= w->cols)
            return FTH_FAIL(err, FTH_E_INDEX_RANGE,
                            "an entry is in column %" PRId32 "; columns are 0 to %" PRId64, col[e],
                            w->cols - 1);
    return FTH_OK;
}

fth_status fth_csr_append(fth_csr_writer *w, int64_t n, const int64_t *row_ptr, const int32_t *col,
                          const void *val, fth_err *err)
{
    if (n == 0) return FTH_OK;
    FTH_TRY(check_append(w, n, row_ptr, col, err));
    const int64_t m = row_ptr[n] - row_ptr[0], lo = w->entry;
    FTH_TRY(put_pointers(w, w->row + 1, n, row_ptr + 1, w->entry - row_ptr[0], err));
    if (m > 0) {
        FTH_TRY(w->indices.write(w->indices.self, &lo, &m, col, err));
        FTH_TRY(w->data.write(w->data.self, &lo, &m, val, err));
    }
    w->row += n;
    w->entry += m;
    FTH_ASSERT(w->row <= w->rows && w->entry <= w->entries);
    return FTH_OK;
}

static void end_writer(fth_csr_writer *w)
{
    fth__heap_free(w->mem, w->piece);
    fth__heap_free(w->mem, w);
}

fth_status fth_csr_commit(fth_csr_writer *w, fth_err *err)
{
    fth_status s = w->indptr.commit(w->indptr.self, err);
    if (s == FTH_OK) s = w->indices.commit(w->indices.self, err);
    if (s == FTH_OK) s = w->data.commit(w->data.self, err);
    if (s == FTH_OK)
        s = fth_npz_commit(w->npz, err);
    else
        fth_npz_abandon(w->npz);
    end_writer(w);
    return s;
}

void fth_csr_abandon(fth_csr_writer *w)
{
    if (!w) return;
    fth_npz_abandon(w->npz);
    end_writer(w);
}
