/* test_spatial_tenx.c - output folders of 10x: which they are, their files, counts as text read in
 * any order of blocks, tables of positions. tests/python/test_spatial_tenx.py runs the stage on
 * them. seconds: 2 */
#include "instruments/spatial/read/info.h"
#include "instruments/spatial/read/tenx.h"
#include "mem/inject.h"
#include "testing/spatial/spatial_preprocess.h"

#define FOLDER "tests/golden/tenx/"

enum { N = 12 };

static float count_of(int64_t i, int64_t g)
{
    return (float)((i * (g + 1) + i) % 4);
}

/* ---- folders ---- */

TEST(folders_are_known_by_their_files)
{
    static const char *const kinds[] = {"visium", "visium_hd", "xenium"};
    sp_tenx_files f;
    fth_mem *mem = t_mem(1 << 20);
    for (int i = 0; i < 3; i++) {
        char dir_of[100];
        snprintf(dir_of, sizeof dir_of, FOLDER "%s", kinds[i]);
        IS_TRUE(sp_tenx_files_guess(&f, dir_of));
        EQ_STR(f.kind, kinds[i]);
        EQ_I64(f.text, i == 2);
        OK(sp_tenx_files_find(&f, kinds[i], dir_of, "", NULL));
        IS_TRUE(fth_path_exists(f.places));
        EQ_F64(sp_tenx_microns(mem, &f), i == 1 ? 0.25 : 0);
        OK(sp_tenx_files_find(&f, kinds[i], dir_of, "other.csv", NULL));
        EQ_STR(f.places, "other.csv");
    }
    IS_TRUE(!sp_tenx_files_guess(&f, "tests/golden/h5ad"));
    IS_TRUE(!sp_tenx_files_guess(&f, "tests/golden/nothing"));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_scale_that_cannot_be_read_is_none)
{
    fth_mem *mem = t_mem(1 << 20);
    sp_tenx_files f = {.kind = "visium_hd"};
    const char *path = t_temp_path("scale.json");
    snprintf(f.scale, sizeof f.scale, "%s", path);
    static const char *const texts[] = {"{", "[]", "{\"microns_per_pixel\": -1}",
                                        "{\"microns_per_pixel\": \"x\"}", "{}"};
    for (int i = 0; i < 5; i++) {
        t_file_write(path, texts[i], strlen(texts[i]));
        EQ_F64(sp_tenx_microns(mem, &f), 0);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- counts as text ---- */

static void check_block(sp_matrix *m, sp_block *b, int64_t first, int64_t n)
{
    OK(sp_matrix_read(m, first, n, b, NULL));
    int64_t at = 0;
    for (int64_t r = 0; r < n; r++) {
        EQ_I64(b->ptr[r], at);
        for (int64_t g = 0; g < m->cols; g++) {
            if (count_of(first + r, g) == 0) continue;
            EQ_I64(b->col[at], g);
            EQ_F64(b->val[at++], count_of(first + r, g));
        }
        EQ_I64(b->ptr[r + 1], at);
    }
}

TEST(counts_as_text_are_read_in_any_blocks)
{
    fth_mem *mem = t_mem(1 << 20);
    sp_matrix m;
    sp_block b;
    OK(sp_matrix_open_mtx(&m, mem, FOLDER "xenium/cell_feature_matrix", NULL));
    EQ_I64(m.rows, N);
    EQ_I64(m.cols, 8);
    OK(sp_matrix_prepare(&m, NULL));
    OK(sp_block_create(&b, &m, N, m.entries, NULL));
    check_block(&m, &b, 0, N);
    check_block(&m, &b, 0, N); /* from the front again */
    for (int64_t step = 1; step < N; step++)
        for (int64_t first = 0; first < N; first += step)
            check_block(&m, &b, first, N - first < step ? N - first : step);
    for (int64_t first = N; first-- > 0;) check_block(&m, &b, first, 1);
    check_block(&m, &b, 5, 0);
    sp_block_free(&b);
    sp_matrix_close(&m);
    OK(fth_mem_destroy(mem, NULL));
}

static fth_status open_text(fth_mem *mem, const char *text, sp_matrix *m, fth_err *err)
{
    char path[4300];
    snprintf(path, sizeof path, "%s", t_temp_path("matrix.mtx"));
    t_file_write(path, text, strlen(text));
    return sp_matrix_open_mtx(m, mem, t_temp_dir(), err);
}

TEST(empty_and_long_rows_of_text)
{
    static const char head[] = "%%MatrixMarket matrix coordinate integer general\n";
    fth_mem *mem = t_mem(1 << 20);
    sp_matrix m;
    sp_block b;
    fth_err err = {0};
    char text[400];
    snprintf(text, sizeof text, "%s%%\n\n2 4 3\n2 2 5\r\n1 2 7\n1 4 0\n", head);
    OK(open_text(mem, text, &m, NULL));
    OK(sp_matrix_prepare(&m, NULL));
    OK(sp_block_create(&b, &m, 4, 4, NULL));
    OK(sp_matrix_read(&m, 0, 4, &b, NULL));
    EQ_I64(b.ptr[1], 0);
    EQ_I64(b.ptr[2], 2);
    EQ_I64(b.ptr[4], 2); /* a zero is no entry */
    EQ_F64(b.val[0], 7);
    EQ_F64(b.val[1], 5);
    sp_block_free(&b);
    sp_matrix_close(&m);
    snprintf(text, sizeof text, "%s1 1 0\n", head);
    OK(open_text(mem, text, &m, NULL));
    OK(sp_matrix_prepare(&m, NULL));
    EQ_I64(sp_matrix_entries(&m, 0, 1), 0);
    sp_matrix_close(&m);
    snprintf(text, sizeof text, "%s1 1 2\n1 1 3\n1 1 4\n", head);
    OK(open_text(mem, text, &m, NULL));
    IS(sp_matrix_prepare(&m, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "cell 1 has more entries than there are features");
    sp_matrix_close(&m);
    err = (fth_err){0};
    snprintf(text, sizeof text, "%s1 1\n", head);
    IS(open_text(mem, text, &m, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, ":2: expected numbers of features, cells and entries, found fewer numbers");
    err = (fth_err){0};
    IS(open_text(mem, head, &m, &err), FTH_E_FILE_SHORT);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- positions ---- */

typedef struct seen {
    int64_t n, inside;
    double x, y;
    char name[32];
} seen;

static fth_status see(void *user, const sp_place *p, int64_t row, fth_err *err)
{
    seen *s = user;
    s->n++;
    s->inside += p->inside;
    s->x = p->x;
    s->y = p->y;
    snprintf(s->name, sizeof s->name, "%.*s", (int)p->bytes, p->name);
    EQ_I64(row, s->n);
    return s->n < 100 ? FTH_OK : FTH_FAIL(err, FTH_E_CANCELLED, "enough");
}

TEST(tables_of_positions)
{
    static const struct {
        const char *path, *kind, *name;
        int64_t inside;
    } table[] = {{FOLDER "visium_hd/spatial/tissue_positions.parquet", "visium_hd",
                  "s_008um_00000_00000-1", 10},
                 {FOLDER "visium/spatial/tissue_positions_list.csv", "visium", "ACGT0000-1", 10},
                 {FOLDER "xenium/cells.parquet", "xenium", "aaaabbb0-1", N + 1}};
    fth_mem *mem = t_mem(1 << 20);
    for (int i = 0; i < 3; i++) {
        seen s = {0};
        OK(sp_places_read(mem, table[i].path, &(sp_places_how){.kind = table[i].kind}, see, &s,
                          NULL));
        EQ_I64(s.n, N + 1);
        EQ_I64(s.inside, table[i].inside);
        EQ_F64(s.x, 0.5);
        EQ_F64(s.y, 0);
        EQ_STR(s.name, table[i].name);
    }
    for (int64_t n = 1;; n++) {
        seen s = {0};
        fth__mem_inject(mem, n, 0);
        const fth_status status = sp_places_read(
            mem, table[0].path, &(sp_places_how){.kind = table[0].kind}, see, &s, NULL);
        fth__mem_inject(mem, 0, 0);
        if (status == FTH_OK) break;
        ONE_OF(status, FTH_E_NOMEM, FTH_E_BUDGET);
        IS_TRUE(n < 100);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* Cells were numbered before they had names; of other columns numbers are expected. */
TEST(types_of_columns)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    seen s = {0};
    const char *path = t_temp_path("cells.csv");
    static const char text[] = "\"x_centroid\",cell_id,y_centroid\n1.5,\"7\",2\n\n2.5,8,nan\n";
    t_file_write(path, text, sizeof text - 1);
    OK(sp_places_read(mem, path, &(sp_places_how){.kind = "xenium"}, see, &s, NULL));
    EQ_I64(s.n, 2);
    EQ_STR(s.name, "8");
    EQ_F64(s.x, 2.5);
    IS_TRUE(s.y != s.y);
    t_file_write(path, text, 39); /* two columns */
    IS(sp_places_read(mem, path, &(sp_places_how){.kind = "xenium"}, see, &(seen){0}, &err),
       FTH_E_FILE_FORMAT);
    HAS(err.text, ":2: expected at least 3 columns, found fewer");
    err = (fth_err){0};
    t_file_write(path, "", 0);
    IS(sp_places_read(mem, path, &(sp_places_how){.kind = "xenium"}, see, &(seen){0}, &err),
       FTH_E_FILE_FORMAT);
    HAS(err.text, "found an empty file");
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- the stage ---- */

TEST(a_folder_is_preprocessed)
{
    fth_mem *mem = t_mem(1 << 26);
    run("hd",
        "dataset: visium_hd\npreprocessing:\n  path: " FOLDER "visium_hd\n  rescale: false\n");
    HAS(lines, "note: left out 2 spots that are not under tissue; preprocessing.in_tissue: false");
    sp_data d = opened(mem);
    const float *xy = fth_tensor_data(d.xy);
    EQ_I64(d.size.cells, N - 2);
    EQ_I64(d.size.genes, 6);
    EQ_STR(fth_texts_get(d.cell_names, 3), "s_008um_00004_00001-1");
    EQ_F64(xy[6], 40.5);
    EQ_F64(xy[7], 28);
    sp_data_close(&d);
    run("xe", "dataset: xenium\npreprocessing:\n  path: " FOLDER "xenium\n  rescale: false\n");
    HAS(lines, "note: left out 1 Negative Control Probe, 1 Unassigned Codeword");
    d = opened(mem);
    EQ_I64(d.size.cells, N);
    EQ_I64(d.size.genes, 6);
    sp_data_close(&d);
    refused("sample", "dataset: xenium\npreprocessing:\n  path: " FOLDER "xenium\n  sample_id: a\n",
            FTH_E_CONFIG, "preprocessing.sample_id needs an h5ad file", "is none", "");
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
