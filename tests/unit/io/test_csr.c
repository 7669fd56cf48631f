/* test_csr.c - sparse rows: raw and dense, any rectangle, bad pointers and columns refused.
 * seconds: 3 */
#include "testing/io/files.h"

#include <inttypes.h>

static const float golden[4][4] = {{0, 2, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 3}, {0, 0, 4, 0}};

TEST(a_file_of_scipys_layout)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *paths[2] = {GOLDEN("csr_i32.npz"), GOLDEN("csr_i64.npz")};
    for (int k = 0; k < 2; k++) {
        fth_npz *npz = NULL;
        fth_csr *csr = NULL;
        fth_err err = {0};
        OK(fth_npz_open(&npz, mem, paths[k], NULL));
        OKE(fth_csr_open_npz(&csr, npz, &err), &err);
        fth_npz_close(npz);
        EQ_I64(fth_csr_rows(csr), 4);
        EQ_I64(fth_csr_cols(csr), 4);
        EQ_I64(fth_csr_dtype(csr), FTH_F32);
        EQ_I64(fth_csr_entries(csr, 0, 4), 4);
        EQ_I64(fth_csr_entries(csr, 1, 2), 0);
        EQ_I64(fth_csr_entries(csr, 2, 100), 3);
        EQ_I64(fth_csr_entries(csr, 3, 2), 0);
        fth_source s = fth_csr_source(csr);
        t_source_check(&s, golden, 1, 60);
        fth_source_close(&s); /* allowed, does nothing */

        int64_t ptr[5];
        int32_t col[4];
        float val[4];
        OK(fth_csr_read(csr, 1, 3, ptr, col, val, NULL));
        const int64_t want_ptr[4] = {0, 0, 2, 3};
        SAME_BYTES(ptr, want_ptr, sizeof want_ptr);
        EQ_I64(col[0], 0);
        EQ_I64(col[1], 3);
        EQ_I64(col[2], 2);
        EQ_F64(val[1], 3);
        OK(fth_csr_read(csr, 4, 0, ptr, col, val, NULL));
        EQ_I64(ptr[0], 0);
        IS(fth_csr_read(csr, 3, 2, ptr, col, val, NULL), FTH_E_USAGE);

        OK(fth_csr_read_rows(csr, ((int64_t[]){3, 0, 1}), 3, 4, ptr, col, val, NULL));
        EQ_I64(ptr[1], 1);
        EQ_I64(ptr[3], 2);
        EQ_I64(col[0], 2);
        EQ_F64(val[0], 4);
        EQ_I64(col[1], 1);
        EQ_F64(val[1], 2);
        OK(fth_csr_read_rows(csr, ((int64_t[]){0, 3}), 2, 4, ptr, col, val, NULL)); /* a gap */
        EQ_I64(col[1], 2);
        EQ_F64(val[1], 4);
        IS(fth_csr_read_rows(csr, ((int64_t[]){2, 2, 2}), 3, 4, ptr, col, val, NULL), FTH_E_USAGE);
        EQ_I64(ptr[3], 6); /* what it would take */
        IS(fth_csr_read_rows(csr, ((int64_t[]){4}), 1, 4, ptr, col, val, NULL), FTH_E_INDEX_RANGE);
        fth_csr_close(csr);
    }
    fth_csr_close(NULL);
    OK(fth_mem_destroy(mem, NULL));
}

/* A group as h5ad has it. `shape` NULL: no such attribute. */
static void write_group(fth_mem *mem, const char *path, const char *format, const int64_t *shape,
                        fth_dtype dtype, int64_t n, const void *data, const int64_t *indices,
                        int64_t n_ptr, const int64_t *indptr)
{
    const fth_h5_dataset d[3] = {
        {.name = "X/data", .dtype = dtype, .n_axes = 1, .size = {n}, .chunk = {16}},
        {.name = "X/indices", .dtype = FTH_I64, .n_axes = 1, .size = {n}, .gzip = 1},
        {.name = "X/indptr", .dtype = FTH_I64, .n_axes = 1, .size = {n_ptr}}};
    const void *v[3] = {data, indices, indptr};
    fth_h5_writer *w = NULL;
    OK(fth_h5_create(&w, mem, path, NULL));
    const int64_t zero = 0;
    for (int k = 0; k < 3; k++) {
        fth_sink s;
        OK(fth_h5_sink(w, &d[k], &s, NULL));
        OK(s.write(s.self, &zero, &d[k].size[0], v[k], NULL));
        OK(s.commit(s.self, NULL));
    }
    if (format) OK(fth_h5_put_attr_text(w, "X", "encoding-type", format, NULL));
    if (shape) OK(fth_h5_put_attr_i64(w, "X", "shape", shape, 2, NULL));
    OK(fth_h5_commit(w, NULL));
}

static fth_status open_group(fth_mem *mem, const char *path, fth_csr **csr, fth_err *err)
{
    fth_h5 *h5 = NULL;
    OK(fth_h5_open(&h5, mem, path, NULL));
    const fth_status s = fth_csr_open_h5(csr, h5, "X", err);
    fth_h5_close(h5);
    return s;
}

TEST(random_matrices_of_an_hdf5_group)
{
    fth_mem *mem = t_mem(1 << 26);
    const char *path = t_temp_path("x.h5");
    t_random r = t_random_make(5);
    for (int rep = 0; rep < 4; rep++) {
        const int64_t rows = t_random_i64(&r, 1, 300), cols = t_random_i64(&r, 1, 200);
        int32_t *dense = calloc((size_t)(rows * cols), sizeof *dense),
                *data = calloc((size_t)(rows * cols) + 1, sizeof *data);
        int64_t *indices = calloc((size_t)(rows * cols) + 1, sizeof *indices),
                *indptr = calloc((size_t)rows + 1, sizeof *indptr);
        int64_t n = 0;
        for (int64_t i = 0; i < rows; i++) {
            const int64_t entries = t_random_i64(&r, 0, cols);
            for (int64_t e = 0; e < entries; e++) { /* unordered, and often twice in one place */
                indices[n] = t_random_i64(&r, 0, cols - 1);
                data[n] = (int32_t)t_random_i64(&r, -5, 5);
                dense[i * cols + indices[n]] += data[n];
                n++;
            }
            indptr[i + 1] = n;
        }
        write_group(mem, path, "csr_matrix", ((int64_t[]){rows, cols}), FTH_I32, n, data, indices,
                    rows + 1, indptr);
        fth_csr *csr = NULL;
        fth_err err = {0};
        OKE(open_group(mem, path, &csr, &err), &err);
        EQ_I64(fth_csr_entries(csr, 0, rows), n);
        const fth_source s = fth_csr_source(csr);
        t_source_check(&s, dense, 11, 8);
        int64_t *ptr = calloc((size_t)rows + 1, sizeof *ptr);
        int32_t *col = calloc((size_t)n + 1, sizeof *col),
                *val = calloc((size_t)n + 1, sizeof *val);
        OK(fth_csr_read(csr, 0, rows, ptr, col, val, NULL));
        SAME_BYTES(ptr, indptr, (size_t)(rows + 1) * 8);
        SAME_BYTES(val, data, (size_t)n * 4);
        for (int64_t i = 0; i < n; i++) EQ_I64(col[i], indices[i]);
        SAME_BYTES(fth_csr_row_ptr(csr), indptr, (size_t)(rows + 1) * 8);
        const fth_source values = fth_csr_values(csr), columns = fth_csr_columns(csr);
        t_source_check(&values, data, 12, 8);
        t_source_check(&columns, col, 13, 8);
        fth_csr_close(csr);
        free(dense);
        free(data);
        free(indices);
        free(indptr);
        free(ptr);
        free(col);
        free(val);
    }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(matrices_that_lie)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("bad.h5");
    const float data[3] = {1, 2, 3};
    const int64_t cols[3] = {0, 2, 1};
    const struct {
        const char *format;
        int64_t shape[2], ptr[3];
        fth_status status;
        const char *says;
    } c[] = {
        {"csr_matrix", {2, 3}, {0, 1, 3}, FTH_OK, ""},
        {"csr_matrix",
         {2, 3},
         {0, 1, 2},
         FTH_OK,
         ""}, /* spare entries at the end are never looked at */
        {"csc_matrix", {2, 3}, {0, 1, 3}, FTH_E_FILE_FEATURE, "'csc_matrix'"},
        {"csr_matrix", {3, 3}, {0, 1, 3}, FTH_E_FILE_FORMAT, "indptr has 3 elements"},
        {"csr_matrix", {2, -3}, {0, 1, 3}, FTH_E_FILE_FORMAT, "shape"},
        {"csr_matrix", {2, INT64_C(1) << 31}, {0, 1, 3}, FTH_E_FILE_FEATURE, "columns"},
        {"csr_matrix", {2, 3}, {1, 1, 3}, FTH_E_FILE_FORMAT, "indptr[0] is 1"},
        {"csr_matrix", {2, 3}, {0, 2, 1}, FTH_E_FILE_FORMAT, "indptr[2] is 1"},
        {"csr_matrix", {2, 3}, {0, 1, 4}, FTH_E_FILE_FORMAT, "at most 3"},
        {"csr_matrix", {2, 3}, {0, -1, 3}, FTH_E_FILE_FORMAT, "indptr[1] is -1"},
        {NULL, {2, 3}, {0, 1, 3}, FTH_E_FILE_KEY, "encoding-type"},
    };
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        write_group(mem, path, c[i].format, c[i].shape, FTH_F32, 3, data, cols, 3, c[i].ptr);
        fth_csr *csr = NULL;
        fth_err err = {0};
        const fth_status s = open_group(mem, path, &csr, &err);
        if (s != c[i].status)
            FAIL("case %zu gave %s: %s", i, fth_status_get_info(s)->name, err.text);
        HAS(err.text, c[i].says);
        if (s != FTH_OK) HAS(err.text, "bad.h5");
        fth_csr_close(csr);
    }
    /* A column outside is found when its row is read, and named. */
    write_group(mem, path, "csr_matrix", ((int64_t[]){2, 2}), FTH_F32, 3, data, cols, 3,
                ((int64_t[]){0, 1, 3}));
    fth_csr *csr = NULL;
    fth_err err = {0};
    float v[4];
    OK(open_group(mem, path, &csr, NULL));
    const fth_source s = fth_csr_source(csr);
    OK(s.read(s.self, ((int64_t[]){0, 0}), ((int64_t[]){1, 2}), v, NULL));
    EQ_F64(v[0], 1);
    IS(s.read(s.self, ((int64_t[]){0, 0}), ((int64_t[]){2, 2}), v, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "entry 1 (row 1) is in column 2; columns are 0 to 1");
    fth_csr_close(csr);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(sums_that_do_not_fit_are_errors)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("sum.h5");
    const uint8_t data[2] = {200, 100};
    const int64_t cols[2] = {0, 0}, ptr[2] = {0, 2};
    write_group(mem, path, "csr_matrix", ((int64_t[]){1, 1}), FTH_U8, 2, data, cols, 2, ptr);
    fth_csr *csr = NULL;
    fth_err err = {0};
    uint8_t v;
    OK(open_group(mem, path, &csr, NULL));
    const fth_source s = fth_csr_source(csr);
    IS(s.read(s.self, ((int64_t[]){0, 0}), ((int64_t[]){1, 1}), &v, &err), FTH_E_CAST_RANGE);
    HAS(err.text, "row 0, column 0");
    fth_csr_close(csr);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

static void check_public(const char *path, const char *group)
{
    fth_mem *mem = t_mem(UINT64_C(1) << 31);
    fth_h5 *h5 = NULL;
    fth_csr *csr = NULL;
    fth_err err = {0};
    OK(fth_h5_open(&h5, mem, path, NULL));
    OKE(fth_csr_open_h5(&csr, h5, group, &err), &err);
    const int64_t rows = fth_csr_rows(csr), cols = fth_csr_cols(csr),
                  n = fth_csr_entries(csr, 0, rows);
    IS_TRUE(rows > 0 && cols > 0 && n > 0);
    int64_t *ptr = malloc((size_t)(rows + 1) * 8);
    int32_t *col = malloc((size_t)n * 4);
    void *val = malloc((size_t)(n * fth_dtype_size(fth_csr_dtype(csr))));
    OKE(fth_csr_read(csr, 0, rows, ptr, col, val, &err), &err);
    EQ_I64(ptr[rows], n);
    double *sum = calloc((size_t)cols, sizeof *sum), v[2];
    for (int64_t i = 0; i < n; i++) {
        t_element(fth_csr_dtype(csr), val, i, v);
        sum[col[i]] += v[0];
    }
    /* Dense rows give the same column sums. */
    const fth_source s = fth_csr_source(csr);
    const int64_t step = 200;
    char *tile = malloc((size_t)(step * cols * 8));
    for (int64_t r = 0; r < rows; r += step) {
        const int64_t lo[2] = {r, 0}, m[2] = {r + step < rows ? step : rows - r, cols};
        OKE(s.read(s.self, lo, m, tile, &err), &err);
        for (int64_t i = 0; i < m[0] * cols; i++) {
            t_element(s.dtype, tile, i, v);
            sum[i % cols] -= v[0];
        }
    }
    for (int64_t c = 0; c < cols; c++) NEAR(sum[c], 0, 1e-6);
    printf("%s: %" PRId64 " x %" PRId64 ", %" PRId64 " entries of %s\n", path, rows, cols, n,
           fth_dtype_name(s.dtype));
    free(tile);
    free(sum);
    free(val);
    free(col);
    free(ptr);
    fth_csr_close(csr);
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(rows_written_in_parts_are_read_back)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("written.npz");
    const int64_t ptr[5] = {7, 8, 8, 10, 11}; /* any start */
    const int32_t col[4] = {1, 0, 3, 2};
    const float val[4] = {2, 1, 3, 4};
    fth_err err = {0};
    fth_csr_writer *w = NULL;
    OKE(fth_csr_create_npz(&w, mem, path, 4, 4, 4, FTH_F32, &err), &err);
    OKE(fth_csr_append(w, 3, ptr, col, val, &err), &err);
    OK(fth_csr_append(w, 0, ptr, col, val, NULL));
    OKE(fth_csr_append(w, 1, ptr + 3, col + 3, val + 3, &err), &err);
    IS(fth_csr_append(w, 1, ptr + 3, col + 3, val + 3, NULL), FTH_E_USAGE); /* a fifth row */
    OKE(fth_csr_commit(w, &err), &err);
    fth_npz *npz = NULL;
    fth_csr *csr = NULL;
    OKE(fth_npz_open(&npz, mem, path, &err), &err);
    OKE(fth_csr_open_npz(&csr, npz, &err), &err);
    fth_npz_close(npz);
    fth_source s = fth_csr_source(csr);
    t_source_check(&s, golden, 1, 60);
    fth_csr_close(csr);

    OKE(fth_csr_create_npz(&w, mem, path, 2, 4, 3, FTH_F32, &err), &err);
    IS(fth_csr_append(w, 1, (int64_t[]){0, 1}, (int32_t[]){4}, val, NULL), FTH_E_INDEX_RANGE);
    IS(fth_csr_append(w, 1, (int64_t[]){0, 4}, col, val, NULL), FTH_E_USAGE);
    OK(fth_csr_append(w, 2, (int64_t[]){0, 1, 2}, col, val, NULL));
    IS(fth_csr_commit(w, NULL), FTH_E_STATE); /* an entry is missing */
    IS(fth_csr_create_npz(&w, mem, path, 2, -1, 3, FTH_F32, NULL), FTH_E_USAGE);
    fth_csr_abandon(NULL);
    EQ_I64(t_file_count(), 1);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(public_files_of_three_versions_of_anndata)
{
    check_public(t_data_path("spatial/anndata/v0.7.8.h5ad"), "X");
    check_public(t_data_path("spatial/anndata/v0.7.0.h5ad"), "X");
    check_public(t_data_path("spatial/anndata/v0.5.0.h5ad"), "raw.X");
}

TEST_MAIN()
