/* test_spatial_anndata.c - h5ad files of all versions: counts, labels, positions, names.
 * seconds: 4 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_data.h"

#include "instruments/spatial/read/anndata.h"

#include <inttypes.h>
#include <math.h>

#define FILES "tests/golden/h5ad/"
enum { CELLS = 12, GENES = 6 };

/* The formula of tests/golden/h5ad/make.py. */
static float count_of(int64_t cell, int64_t gene)
{
    const int64_t v = (cell * 7 + gene * 3) % 5;
    return v > 1 ? (float)v : 0;
}

static sp_anndata open_file(fth_mem *mem, const char *path)
{
    sp_anndata a;
    fth_err err = {0};
    OKE(sp_anndata_open(&a, mem, path, &err), &err);
    return a;
}

/* Every way of cutting the rows gives the same; entries ascend, zeros are not there. */
static void check_rows(sp_matrix *m, float (*want)(int64_t, int64_t), int64_t step)
{
    fth_err err = {0};
    sp_block b;
    OKE(sp_matrix_prepare(m, &err), &err);
    const int64_t room = step * m->cols;
    OKE(sp_block_create(&b, m, step, room, &err), &err);
    for (int64_t first = 0; first < m->rows; first += step) {
        const int64_t n = m->rows - first < step ? m->rows - first : step;
        OKE(sp_matrix_read(m, first, n, &b, &err), &err);
        for (int64_t r = 0; r < n; r++) {
            int64_t at = b.ptr[r];
            for (int64_t g = 0; g < m->cols; g++) {
                const float v = want(first + r, g);
                if (v == 0) continue;
                IS_TRUE(at < b.ptr[r + 1]);
                EQ_I64(b.col[at], g);
                EQ_F64(b.val[at], v);
                at++;
            }
            EQ_I64(at, b.ptr[r + 1]);
        }
    }
    sp_block_free(&b);
}

static float raw_count_of(int64_t cell, int64_t gene)
{
    return count_of(cell, gene % GENES);
}

TEST(counts_in_every_layout)
{
    static const struct {
        const char *file, *what;
        sp_layout layout;
        int64_t cols;
    } wanted[] = {{FILES "csc.h5ad", "X", SP_LAYOUT_COLUMNS, GENES},
                  {FILES "csc.h5ad", "wide", SP_LAYOUT_COLUMNS, GENES},
                  {FILES "csc.h5ad", "rows", SP_LAYOUT_ROWS, GENES},
                  {FILES "csc.h5ad", "dense", SP_LAYOUT_DENSE, GENES},
                  {FILES "csc.h5ad", "doubles", SP_LAYOUT_DENSE, GENES},
                  {FILES "csc.h5ad", "raw", SP_LAYOUT_ROWS, GENES + 2},
                  {FILES "old.h5ad", "X", SP_LAYOUT_DENSE, GENES},
                  {FILES "old.h5ad", "raw", SP_LAYOUT_ROWS, GENES},
                  {FILES "middle.h5ad", "X", SP_LAYOUT_ROWS, GENES}};
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++)
        for (int64_t step = 1; step <= 13; step += 4) {
            fth_mem *mem = t_mem(1 << 26);
            sp_anndata a = open_file(mem, wanted[k].file);
            char object[FTH_PATH];
            const char *var = NULL;
            sp_matrix m;
            fth_texts *names = NULL;
            fth_err err = {0};
            OKE(sp_anndata_counts(&a, wanted[k].what, object, &var, &err), &err);
            OKE(sp_matrix_open(&m, mem, a.h5, a.path, object, &err), &err);
            EQ_I64(m.layout, wanted[k].layout);
            EQ_I64(m.rows, CELLS);
            EQ_I64(m.cols, wanted[k].cols);
            check_rows(&m, raw_count_of, step);
            OKE(sp_anndata_names(&a, var, m.cols, &names, &err), &err);
            EQ_STR(fth_texts_get(names, 0), m.cols == GENES ? "g0" : "r0");
            fth_texts_free(names);
            sp_matrix_close(&m);
            sp_anndata_close(&a);
            OK(fth_mem_destroy(mem, NULL));
        }
}

TEST(rows_that_fit_and_blocks_too_small)
{
    fth_mem *mem = t_mem(1 << 26);
    sp_anndata a = open_file(mem, FILES "csc.h5ad");
    static const char *const object[3] = {"/X", "/layers/rows", "/layers/dense"};
    for (int k = 0; k < 3; k++) {
        sp_matrix m;
        sp_block b;
        fth_err err = {0};
        OKE(sp_matrix_open(&m, mem, a.h5, a.path, object[k], &err), &err);
        OKE(sp_matrix_prepare(&m, &err), &err);
        EQ_I64(sp_matrix_fit(&m, 0, 1 << 20), CELLS);
        EQ_I64(sp_matrix_fit(&m, 3, 0), 1); /* one row always goes */
        const int64_t fit = sp_matrix_fit(&m, 2, 14);
        IS_TRUE(sp_matrix_entries(&m, 2, 2 + fit) <= 14);
        IS_TRUE(sp_matrix_entries(&m, 2, 3 + fit) > 14);
        OKE(sp_block_create(&b, &m, 2, 2, &err), &err);
        IS(sp_matrix_read(&m, 0, 2, &b, &err), FTH_E_USAGE);
        sp_block_free(&b);
        sp_matrix_close(&m);
    }
    sp_anndata_close(&a);
    OK(fth_mem_destroy(mem, NULL));
}

/* Unsorted columns, a place twice, a zero that is stored. */
TEST(rows_are_put_in_order)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("mess.npz");
    const int64_t ptr[3] = {0, 5, 7};
    const int32_t col[7] = {5, 1, 3, 1, 0, 2, 2};
    const float val[7] = {7, 2, 0, 3, 1, 4, -4};
    fth_csr_writer *w = NULL;
    sp_matrix m;
    sp_block b;
    fth_err err = {0};
    OKE(fth_csr_create_npz(&w, mem, path, 2, 6, 7, FTH_F32, &err), &err);
    OKE(fth_csr_append(w, 2, ptr, col, val, &err), &err);
    OKE(fth_csr_commit(w, &err), &err);
    OKE(sp_matrix_open_npz(&m, mem, path, &err), &err);
    OKE(sp_block_create(&b, &m, 2, 7, &err), &err);
    OKE(sp_matrix_read(&m, 0, 2, &b, &err), &err);
    EQ_I64(b.ptr[1], 3);
    EQ_I64(b.ptr[2], 3);
    EQ_I64(b.col[0], 0);
    EQ_F64(b.val[1], 5);
    EQ_I64(b.col[2], 5);
    sp_block_free(&b);
    sp_matrix_close(&m);
    OK(fth_mem_destroy(mem, NULL));
}

static void check_labels(const char *file, const char *column, const char *names, const int *code)
{
    fth_mem *mem = t_mem(1 << 24);
    sp_anndata a = open_file(mem, file);
    sp_labels l;
    fth_err err = {0};
    char text[200] = "";
    OKE(sp_anndata_labels(&a, "/obs", column, CELLS, &l, &err), &err);
    for (int64_t i = 0; i < fth_texts_count(l.names); i++) {
        strcat(text, i ? " " : "");
        strcat(text, fth_texts_get(l.names, i));
    }
    EQ_STR(text, names);
    for (int i = 0; i < CELLS; i++) EQ_I64(l.code[i], code[i]);
    sp_labels_free(&l);
    sp_anndata_close(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(labels_of_every_kind)
{
    static const char *const files[3] = {FILES "csc.h5ad", FILES "middle.h5ad", FILES "old.h5ad"};
    const int type[CELLS] = {0, 1, 2, 0, 1, -1, 0, 1, 2, 0, 1, 2};
    for (int k = 0; k < 3; k++) check_labels(files[k], "type", "b a c d", type);
    const int word[CELLS] = {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
    check_labels(files[0], "word", "zoe \xc3\xa4rger", word);
    const int number[CELLS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0};
    check_labels(files[0], "number", "0 1 2 3 4 5 6 7 8 9 10", number);
    check_labels(files[0], "truth", "False True", word);
    const int real[CELLS] = {0, 1, 2, -1, 1, 2, 0, 1, 2, 0, 1, 2};
    check_labels(files[0], "real", "0.0 0.5 1.0", real);
    const int maybe[CELLS] = {0, 1, 0, 1, 0, 1, 0, -1, 0, 1, 0, 1};
    check_labels(files[0], "maybe", "0 1", maybe);
    const int size[CELLS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    check_labels(files[2], "size", "0.0 0.5 1.0 1.5 2.0 2.5 3.0 3.5 4.0 4.5 5.0 5.5", size);
}

TEST(positions_of_arrays_columns_frames_and_records)
{
    static const struct {
        const char *file, *key;
        bool frame;
    } wanted[] = {{FILES "csc.h5ad", "spatial", false},
                  {FILES "csc.h5ad", "places", true},
                  {FILES "middle.h5ad", "spatial", false},
                  {FILES "old.h5ad", "spatial", false},
                  {FILES "csc.h5ad", NULL, false}};
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
        fth_mem *mem = t_mem(1 << 24);
        sp_anndata a = open_file(mem, wanted[k].file);
        float xy[2 * CELLS];
        bool frame = false;
        fth_err err = {0};
        if (wanted[k].key)
            OKE(sp_anndata_places(&a, wanted[k].key, CELLS, NULL, xy, &frame, &err), &err);
        else
            OKE(sp_anndata_places_of(&a, "x", "y", CELLS, xy, &err), &err);
        EQ_I64(frame, wanted[k].frame);
        for (int64_t i = 0; i < CELLS; i++) {
            EQ_F64(xy[2 * i], 10 * i);
            EQ_F64(xy[2 * i + 1], 3 * (i % 4));
        }
        sp_anndata_close(&a);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(what_is_not_there_is_named_and_what_is_listed)
{
    fth_mem *mem = t_mem(1 << 24);
    sp_anndata a = open_file(mem, FILES "csc.h5ad");
    float xy[2 * CELLS];
    bool frame;
    char object[FTH_PATH];
    const char *var;
    sp_labels l;
    fth_texts *names = NULL;
    fth_err err = {0};
    IS(sp_anndata_places(&a, "X_umap", CELLS, NULL, xy, &frame, &err), FTH_E_FILE_KEY);
    HAS(err.text, "csc.h5ad");
    HAS(err.text, "'X_umap'");
    HAS(err.hint, "spatial");
    HAS(err.hint, "preprocessing.coord_key");
    fth_err_clear(&err);
    IS(sp_anndata_places(&a, "flat", CELLS, NULL, xy, &frame, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "[cell 2]");
    fth_err_clear(&err);
    IS(sp_anndata_counts(&a, "spliced", object, &var, &err), FTH_E_FILE_KEY);
    HAS(err.text, "no layer 'spliced'");
    HAS(err.hint, "dense, doubles, rows, wide");
    fth_err_clear(&err);
    IS(sp_anndata_labels(&a, "/obs", "Type", CELLS, &l, &err), FTH_E_FILE_KEY);
    HAS(err.text, "no column 'Type'");
    HAS(err.hint, "type");
    fth_err_clear(&err);
    IS(sp_anndata_labels(&a, "/obs", "type", CELLS + 1, &l, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "12 rows");
    fth_err_clear(&err);
    IS(sp_anndata_names(&a, "/var", GENES + 1, &names, &err), FTH_E_FILE_FORMAT);
    fth_err_clear(&err);
    IS(sp_anndata_places_of(&a, "x", "type", CELLS, xy, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "/obs/type");
    sp_anndata_close(&a);
    fth_err_clear(&err);
    a = open_file(mem, FILES "middle.h5ad");
    IS(sp_anndata_counts(&a, "raw", object, &var, &err), FTH_E_FILE_KEY);
    HAS(err.hint, "preprocessing.counts");
    sp_anndata_close(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(names_are_made_unique_as_anndata_does)
{
    static const char *const in[] = {"a", "b", "a", "a-1", "a", "b", "a-1", "", "a-2", "a"};
    static const char *const out[] = {"a",   "b",     "a-3", "a-1", "a-4",
                                      "b-1", "a-1-1", "",    "a-2", "a-5"};
    fth_mem *mem = t_mem(1 << 24);
    fth_texts *t = NULL;
    int64_t changed = 0;
    fth_err err = {0};
    OK(fth_texts_create(&t, mem, NULL));
    for (int i = 0; i < 10; i++) OK(fth_texts_add(t, in[i], strlen(in[i]), NULL));
    OKE(sp_names_unique(&t, mem, &changed, &err), &err);
    EQ_I64(changed, 5);
    for (int i = 0; i < 10; i++) EQ_STR(fth_texts_get(t, i), out[i]);
    fth_texts_free(t);
    OK(fth_mem_destroy(mem, NULL));
}

/* As anndata packs a file with Zstandard: strings, codes, truth values and counts. */
TEST(a_file_of_zstandard)
{
    fth_mem *mem = t_mem(1 << 26);
    const sp_anndata a = open_file(mem, FILES "zstd.h5ad");
    static const char *const objects[] = {"/X", "/layers/dense"};
    for (int i = 0; i < 2; i++) {
        sp_matrix m;
        fth_err err = {0};
        OKE(sp_matrix_open(&m, mem, a.h5, a.path, objects[i], &err), &err);
        check_rows(&m, count_of, 5);
        sp_matrix_close(&m);
    }
    sp_labels l;
    fth_err err = {0};
    OKE(sp_anndata_labels(&a, "/obs", "type", CELLS, &l, &err), &err);
    EQ_I64(fth_texts_count(l.names), 4);
    for (int64_t i = 0; i < CELLS; i++) EQ_I64(l.code[i], i == 5 ? -1 : i % 3);
    sp_labels_free(&l);
    OKE(sp_anndata_labels(&a, "/obs", "good", CELLS, &l, &err), &err);
    for (int64_t i = 0; i < CELLS; i++) EQ_I64(l.code[i], i % 3 == 0);
    sp_labels_free(&l);
    fth_texts *names = NULL;
    OKE(sp_anndata_names(&a, "/obs", CELLS, &names, &err), &err);
    EQ_STR(fth_texts_get(names, 11), "cell11");
    fth_texts_free(names);
    sp_anndata copy = a;
    sp_anndata_close(&copy);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- the golden sample, and the public files ---- */

static fth_tensor *golden_y;
static float golden_count(int64_t cell, int64_t gene)
{
    double v[2];
    t_element(fth_tensor_dtype(golden_y), fth_tensor_data(golden_y), cell * 24 + gene, v);
    return (float)v[0];
}

TEST(the_sample_is_the_golden_data)
{
    fth_mem *mem = t_mem(1 << 26);
    sp_anndata a = open_file(mem, T_SPATIAL_GOLDEN "sample_v0_8.h5ad");
    static const char *const what[3] = {"X", "raw", "dense"};
    fth_err err = {0};
    golden_y = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "Y");
    for (int k = 0; k < 3; k++) {
        char object[FTH_PATH];
        const char *var;
        sp_matrix m;
        OKE(sp_anndata_counts(&a, what[k], object, &var, &err), &err);
        OKE(sp_matrix_open(&m, mem, a.h5, a.path, object, &err), &err);
        EQ_I64(m.rows, 300);
        check_rows(&m, golden_count, 77);
        sp_matrix_close(&m);
    }
    fth_tensor_release(golden_y);
    fth_tensor *x = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "raw_xy"),
               *c = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "C");
    float xy[600];
    bool frame;
    sp_labels l;
    OKE(sp_anndata_places(&a, "spatial", 300, NULL, xy, &frame, &err), &err);
    SAME_BYTES(xy, fth_tensor_data(x), sizeof xy);
    OKE(sp_anndata_labels(&a, "/obs", "ClusterName", 300, &l, &err), &err);
    for (int64_t i = 0; i < 300; i++) EQ_I64(l.code[i], ((int64_t *)fth_tensor_data(c))[i]);
    sp_labels_free(&l);
    fth_tensor_release(x);
    fth_tensor_release(c);
    sp_anndata_close(&a);
    OK(fth_mem_destroy(mem, NULL));
}

/* Values beside were read with h5py. */
static void check_public(const char *file, const char *what, int64_t rows, int64_t cols,
                         int64_t entries, double sum, const char *first_cell, const char *last_gene)
{
    const char *path = t_data_path(file); /* first: it may end the case */
    fth_mem *mem = t_mem(1 << 28);
    sp_anndata a = open_file(mem, path);
    char object[FTH_PATH];
    const char *var;
    sp_matrix m;
    sp_block b;
    fth_texts *names = NULL;
    fth_err err = {0};
    OKE(sp_anndata_counts(&a, what, object, &var, &err), &err);
    OKE(sp_matrix_open(&m, mem, a.h5, a.path, object, &err), &err);
    EQ_I64(m.rows, rows);
    EQ_I64(m.cols, cols);
    OKE(sp_matrix_prepare(&m, &err), &err);
    OKE(sp_block_create(&b, &m, rows, rows * cols, &err), &err);
    OKE(sp_matrix_read(&m, 0, rows, &b, &err), &err);
    double total = 0;
    for (int64_t i = 0; i < b.ptr[rows]; i++) total += (double)b.val[i];
    EQ_I64(b.ptr[rows], entries);
    NEAR(total, sum, fabs(sum) * 1e-7);
    OKE(sp_anndata_names(&a, var, cols, &names, &err), &err);
    EQ_STR(fth_texts_get(names, cols - 1), last_gene);
    fth_texts_free(names);
    OKE(sp_anndata_names(&a, "/obs", rows, &names, &err), &err);
    EQ_STR(fth_texts_get(names, 0), first_cell);
    fth_texts_free(names);
    sp_block_free(&b);
    sp_matrix_close(&m);
    sp_anndata_close(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(public_files_of_every_version)
{
    check_public("spatial/anndata/v0.7.0.h5ad", "X", 30, 20, 228, 285, "cell0", "gene19");
    check_public("spatial/anndata/v0.7.0.h5ad", "raw", 30, 40, 480, 627, "cell0", "gene39");
    check_public("spatial/anndata/v0.7.0.h5ad", "array", 30, 20, 600, 302.83045121571445, "cell0",
                 "gene19");
    check_public("spatial/anndata/v0.7.0.h5ad", "sparse", 30, 20, 6, 3.466002232823232, "cell0",
                 "gene19");
    check_public("spatial/anndata/v0.7.8.h5ad", "X", 30, 20, 239, 302, "cell0", "gene19");
    check_public("spatial/anndata/v0.7.8.h5ad", "raw", 30, 40, 453, 568, "cell0", "gene39");
    check_public("spatial/anndata/v0.5.0.h5ad", "raw", 700, 765, 174400, 319044.23824107647,
                 "AAAGCCTGGCTAAC-1", "MT-ND3");
    check_public("spatial/osmfish.h5ad", "X", 4839, 33, 110647, 25782191.996279836, "cell_778",
                 "Acta2");
    check_public("spatial/nsf_S1.h5ad", "counts", 1296, 200, 136409, 2246231, "529", "199");
    check_public("spatial/nsf_S6.h5ad", "counts", 1296, 200, 82082, 921548, "1240", "199");
}

TEST(labels_and_positions_of_public_files)
{
    /* first: each may end the case */
    const char *old = t_data_path("spatial/anndata/v0.5.0.h5ad"),
               *middle = t_data_path("spatial/anndata/v0.7.8.h5ad"),
               *late = t_data_path("spatial/anndata/v0.11.4.h5ad");
    fth_mem *mem = t_mem(1 << 26);
    sp_labels l;
    fth_err err = {0};
    bool frame;
    float xy[1400];
    sp_anndata a = open_file(mem, old);
    OKE(sp_anndata_labels(&a, "/obs", "bulk_labels", 700, &l, &err), &err);
    static const int want[5] = {5, 9, 8, 0, 9};
    for (int i = 0; i < 5; i++) EQ_I64(l.code[i], want[i]);
    EQ_STR(fth_texts_get(l.names, 0), "CD4+/CD25 T Reg");
    sp_labels_free(&l);
    OKE(sp_anndata_places(&a, "X_umap", 700, NULL, xy, &frame, &err), &err);
    NEAR(xy[2], -3.24869194, 1e-6);
    NEAR(xy[3], 7.99994913, 1e-6);
    sp_anndata_close(&a);
    a = open_file(mem, middle);
    OKE(sp_anndata_labels(&a, "/obs", "obs_cat", 30, &l, &err), &err);
    EQ_I64(fth_texts_count(l.names), 21);
    EQ_I64(l.code[0], 13);
    EQ_STR(fth_texts_get(l.names, 2), "E");
    sp_labels_free(&l);
    OKE(sp_anndata_places(&a, "array", 30, (int64_t[2]){0, 1}, xy, &frame, &err), &err);
    NEAR(xy[5], 0.48652946, 1e-7);
    sp_anndata_close(&a);
    a = open_file(mem, late);
    char object[FTH_PATH];
    const char *var;
    IS(sp_anndata_counts(&a, "X", object, &var, &err), FTH_E_FILE_KEY); /* it has no X */
    HAS(err.text, "v0.11.4.h5ad");
    fth_texts *names = NULL;
    fth_err_clear(&err);
    OKE(sp_anndata_names(&a, "/obs", 10, &names, &err), &err);
    EQ_STR(fth_texts_get(names, 1), "1");
    fth_texts_free(names);
    sp_anndata_close(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
