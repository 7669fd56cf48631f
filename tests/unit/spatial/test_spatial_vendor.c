/* test_spatial_vendor.c - folders of MERSCOPE and CosMx: which they are, counts as a table read in
 * any order of blocks, names and controls. tests/python/test_spatial_vendor.py runs the stage on
 * them. seconds: 2 */
#include "instruments/spatial/read/vendor.h"
#include "testing/spatial/spatial_preprocess.h"

#define FOLDER "tests/golden/vendor/"

enum { N = 12, D = 6, FOVS = 3 };

/* tests/golden/vendor/make.py */
static float count_of(int64_t i, int64_t g)
{
    return (float)((i * (g + 1) + i) % 4 * (i % 5 == 1 ? 12 : 1));
}

/* Which cell a row of the counts has; -1: it is outside of cells. */
static int64_t cell_of(bool cosmx, int64_t row)
{
    if (!cosmx) return row;
    const int64_t fov = row / (1 + N / FOVS), k = row % (1 + N / FOVS);
    return k == 0 ? -1 : (k - 1) * FOVS + fov;
}

TEST(folders_are_known_by_their_files)
{
    fth_mem *mem = t_mem(1 << 20);
    sp_tenx_files f;
    static const char *const kinds[] = {"merscope", "cosmx"};
    for (int i = 0; i < 2; i++) {
        char dir_of[100];
        snprintf(dir_of, sizeof dir_of, FOLDER "%s", kinds[i]);
        OK(sp_vendor_files_guess(&f, mem, dir_of, NULL));
        EQ_STR(f.kind, kinds[i]);
        IS_TRUE(fth_path_exists(f.counts) && fth_path_exists(f.places));
        OK(sp_vendor_files_find(&f, mem, kinds[i], dir_of, "other.csv", NULL));
        EQ_STR(f.places, "other.csv");
        IS_TRUE(sp_vendor_is(kinds[i]));
        HAS(sp_vendor_title(kinds[i]), "an output folder of ");
    }
    IS_TRUE(!sp_vendor_is("xenium"));
    OK(sp_vendor_files_guess(&f, mem, "tests/golden/tenx/xenium", NULL));
    IS_TRUE(!f.kind);
    IS(sp_vendor_files_guess(&f, mem, "tests/golden/nothing", NULL), FTH_E_FILE_OPEN);
    IS_TRUE(!f.kind);
    OK(fth_mem_destroy(mem, NULL));
}

/* As archives of a Mac bring them along. */
TEST(hidden_files_are_none_of_a_folder)
{
    static const char *const name[] = {"S1_exprMat_file.csv", "S1_metadata_file.csv",
                                       "._S1_exprMat_file.csv", "._S1_metadata_file.csv"};
    fth_mem *mem = t_mem(1 << 20);
    char dir_of[FTH_PATH], path[FTH_PATH];
    sp_tenx_files f;
    snprintf(dir_of, sizeof dir_of, "%s", t_temp_path("hidden"));
    OK(fth_folder_make(mem, dir_of, NULL));
    for (int i = 0; i < 4; i++) {
        OK(fth_path_join(path, dir_of, name[i], NULL));
        t_file_write(path, "a,b\n", 4);
    }
    OK(sp_vendor_files_find(&f, mem, "cosmx", dir_of, "", NULL));
    EQ_STR(fth_path_name(f.counts), name[0]);
    EQ_STR(fth_path_name(f.places), name[1]);
    OK(fth_mem_destroy(mem, NULL));
}

static void check_block(sp_matrix *m, sp_block *b, bool cosmx, int64_t first, int64_t n)
{
    OK(sp_matrix_read(m, first, n, b, NULL));
    for (int64_t r = 0; r < n; r++) {
        int64_t at = b->ptr[r];
        const int64_t i = cell_of(cosmx, first + r);
        for (int64_t g = 0; g < D; g++) {
            const float v = i < 0 ? 9 : count_of(i, g);
            if (v == 0) continue;
            EQ_I64(b->col[at], g);
            EQ_F64(b->val[at++], v);
        }
        EQ_I64(at, b->ptr[r + 1]);
    }
}

TEST(blocks_in_any_order)
{
    for (int k = 0; k < 2; k++) {
        fth_mem *mem = t_mem(1 << 24);
        sp_matrix m;
        sp_block b;
        const char *path =
            k ? FOLDER "cosmx/Slide1_exprMat_file.csv.gz" : FOLDER "merscope/cell_by_gene.csv";
        OK(sp_matrix_open_table(&m, mem, path, k == 1, NULL));
        EQ_I64(m.rows, k ? N + FOVS : N);
        EQ_I64(m.cols, D);
        OK(sp_matrix_prepare(&m, NULL));
        EQ_I64(sp_matrix_entries(&m, 2, 5), 3 * D);
        EQ_I64(sp_matrix_fit(&m, 0, 4 * D + 1), 4);
        OK(sp_block_create(&b, &m, m.rows, m.rows * D, NULL));
        check_block(&m, &b, k == 1, 0, m.rows);
        check_block(&m, &b, k == 1, 0, 3); /* again, from its front */
        check_block(&m, &b, k == 1, 3, 2); /* goes on */
        check_block(&m, &b, k == 1, 9, 3); /* skips */
        check_block(&m, &b, k == 1, 4, 1);
        sp_block_free(&b);
        sp_matrix_close(&m);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(names_and_types)
{
    fth_mem *mem = t_mem(1 << 24);
    sp_matrix m;
    fth_texts *genes = NULL, *cells = NULL, *types = NULL;
    bool background[N + FOVS];
    OK(sp_matrix_open_table(&m, mem, FOLDER "cosmx/Slide1_exprMat_file.csv.gz", true, NULL));
    OK(sp_table_genes(&m, &genes, NULL));
    EQ_I64(fth_texts_count(genes), D);
    EQ_STR(fth_texts_get(genes, 0), "Gene0");
    EQ_STR(fth_texts_get(genes, 4), "NegPrb3");
    OK(sp_vendor_types(mem, "cosmx", genes, &types, NULL));
    EQ_STR(fth_texts_get(types, 3), "Gene Expression");
    EQ_STR(fth_texts_get(types, 4), "Negative");
    EQ_STR(fth_texts_get(types, 5), "SystemControl");
    fth_texts_free(types);
    OK(sp_table_cells(&m, &cells, background, NULL));
    for (int64_t i = 0; i < N + FOVS; i++) IS(background[i], cell_of(true, i) < 0);
    EQ_STR(fth_texts_get(cells, 0), "0_1");
    EQ_STR(fth_texts_get(cells, 2), "2_1");
    EQ_STR(fth_texts_get(cells, 6), "1_2");
    fth_texts_free(cells);
    fth_texts_free(genes);
    sp_matrix_close(&m);
    OK(sp_matrix_open_table(&m, mem, FOLDER "merscope/cell_by_gene.csv", false, NULL));
    OK(sp_table_genes(&m, &genes, NULL));
    OK(sp_vendor_types(mem, "merscope", genes, &types, NULL));
    EQ_STR(fth_texts_get(types, 0), "Gene Expression");
    EQ_STR(fth_texts_get(types, 5), "Blank");
    OK(sp_table_cells(&m, &cells, background, NULL));
    EQ_STR(fth_texts_get(cells, 11), "100000000000000077");
    fth_texts_free(types);
    fth_texts_free(cells);
    fth_texts_free(genes);
    sp_matrix_close(&m);
    OK(fth_mem_destroy(mem, NULL));
}

/* Names with commas, columns of cells that no count is in, empty lines. */
TEST(columns_that_are_quoted_or_not_read)
{
    static const char *const text[] = {"any,\"a,b\",c\n7,1,12\n\n8,0,3\n",
                                       "\"\",cell,fov,\"a,b\",cell_ID,cell_id,c\n"
                                       "5,x,2,1,7,9,12\n6,y,2,0,8,9,3\n"};
    for (int k = 0; k < 2; k++) {
        fth_mem *mem = t_mem(1 << 24);
        const char *path = t_temp_path("columns.csv");
        sp_matrix m;
        sp_block b;
        fth_texts *genes = NULL, *cells = NULL;
        bool background[2];
        t_file_write(path, text[k], strlen(text[k]));
        OK(sp_matrix_open_table(&m, mem, path, k == 1, NULL));
        EQ_I64(m.rows, 2);
        EQ_I64(m.cols, 2);
        OK(sp_table_genes(&m, &genes, NULL));
        EQ_STR(fth_texts_get(genes, 0), "a,b");
        EQ_STR(fth_texts_get(genes, 1), "c");
        OK(sp_table_cells(&m, &cells, background, NULL));
        EQ_STR(fth_texts_get(cells, 1), k ? "8_2" : "8");
        OK(sp_block_create(&b, &m, 2, 4, NULL));
        OK(sp_matrix_read(&m, 0, 2, &b, NULL));
        static const int32_t col[] = {0, 1, 1};
        static const float val[] = {1, 12, 3};
        EQ_I64(b.ptr[2], 3);
        SAME_BYTES(b.col, col, sizeof col);
        SAME_BYTES(b.val, val, sizeof val);
        sp_block_free(&b);
        fth_texts_free(cells);
        fth_texts_free(genes);
        sp_matrix_close(&m);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(controls_of_every_name)
{
    static const struct {
        const char *kind, *name, *type;
    } of[] = {{"cosmx", "Negative1", "Negative"},
              {"cosmx", "NegPrb1", "Negative"},
              {"cosmx", "SystemControl1", "SystemControl"},
              {"cosmx", "FalseCode1", "SystemControl"},
              {"cosmx", "Blank-1", "Gene Expression"},
              {"merscope", "Blank-1", "Blank"},
              {"merscope", "blank1", "Blank"},
              {"merscope", "NegPrb1", "Gene Expression"}};
    fth_mem *mem = t_mem(1 << 20);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        fth_texts *names = NULL, *types = NULL;
        OK(fth_texts_create(&names, mem, NULL));
        OK(fth_texts_add(names, of[i].name, strlen(of[i].name), NULL));
        OK(sp_vendor_types(mem, of[i].kind, names, &types, NULL));
        EQ_STR(fth_texts_get(types, 0), of[i].type);
        fth_texts_free(names);
        fth_texts_free(types);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(folders_are_preprocessed)
{
    fth_mem *mem = t_mem(1 << 26);
    for (int k = 0; k < 2; k++) {
        char config[300];
        snprintf(config, sizeof config,
                 "dataset: %s\npreprocessing:\n  path: " FOLDER "%s\n  rescale: false\n"
                 "  group_column: type\n  min_group_size: 1\n",
                 k ? "cosmx" : "merscope", k ? "cosmx" : "merscope");
        run(k ? "from_cosmx" : "from_merscope", config);
        sp_data d = opened(mem);
        EQ_I64(d.size.cells, 9); /* every fourth has no type */
        EQ_I64(d.size.genes, 4);
        EQ_I64(d.size.groups, 2);
        EQ_STR(fth_texts_get(d.group_names, 0), "Glia");
        const float *xy = fth_tensor_data(d.xy);
        EQ_F64(xy[2], k ? 30.5 : 10.5); /* cell 3 of the first field of view, cell 1 */
        EQ_F64(xy[3], k ? 21 : 7);
        sp_data_close(&d);
        HAS(lines, k ? "left out 3 rows of counts outside of cells" : "left out 2 Blank");
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* A file that shrinks between two passes is an error, not a crash. */
TEST(a_table_that_changes_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("changing.csv");
    static const char full[] = "cell,a,b\n1,2,3\n2,0,1\n", cut[] = "cell,a,b\n1,2,3\n";
    sp_matrix m;
    sp_block b;
    fth_err err = {0};
    t_file_write(path, full, sizeof full - 1);
    OK(sp_matrix_open_table(&m, mem, path, false, NULL));
    OK(sp_block_create(&b, &m, 2, 4, NULL));
    t_file_write(path, cut, sizeof cut - 1);
    IS(sp_matrix_read(&m, 0, 2, &b, &err), FTH_E_FILE_READ);
    HAS(err.text, "changed while it was read");
    sp_block_free(&b);
    sp_matrix_close(&m);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
