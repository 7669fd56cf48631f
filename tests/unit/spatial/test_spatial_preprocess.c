/* test_spatial_preprocess.c - the stage from files to a folder: every loader, what is refused,
 * folders that are there already.
 * seconds: 10 */
#include "testing/spatial/spatial_preprocess.h"

#include "instruments/spatial/data/data.h"
#include "instruments/spatial/data/metadata.h"
#include "instruments/spatial/preprocess/counts.h"

#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* Count of a cell and gene in the folder. */
static float count_at(const sp_data *d, int64_t cell, int64_t gene)
{
    float v = 0;
    const int64_t lo[2] = {cell, gene}, n[2] = {1, 1};
    fth_source s = fth_csr_source(d->counts);
    OK(s.read(s.self, lo, n, &v, NULL));
    return v;
}

static const char *name_of(const fth_texts *t, int64_t i)
{
    const char *text = fth_texts_get(t, i);
    return text ? text : "(none)";
}

/* ---- the golden sample ---- */

TEST(the_sample_becomes_the_golden_data)
{
    fth_mem *mem = t_mem(1 << 26);
    run("sample", "dataset: osmfish\n"
                  "preprocessing:\n"
                  "  path: " T_SPATIAL_GOLDEN "sample_v0_8.h5ad\n"
                  "  min_group_size: 1\n");
    sp_data d = opened(mem);
    fth_tensor *x = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "X"),
               *y = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "Y"),
               *c = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "C");
    EQ_I64(d.size.cells, 300);
    EQ_I64(d.size.genes, 24);
    EQ_I64(d.size.groups, 4);
    EQ_I64(d.size.entries, 5285);
    for (int64_t i = 0; i < 600; i++) /* see test_spatial_filter.c */
        NEAR(((float *)fth_tensor_data(d.xy))[i], ((float *)fth_tensor_data(x))[i], 3.5e-5);
    for (int64_t i = 0; i < 300; i++)
        EQ_I64(((int32_t *)fth_tensor_data(d.group))[i], ((int64_t *)fth_tensor_data(c))[i]);
    for (int64_t i = 0; i < 300 * 24; i++)
        EQ_F64(count_at(&d, i / 24, i % 24), ((float *)fth_tensor_data(y))[i]);
    EQ_I64(fth_texts_count(d.cell_names), 300);
    fth_tensor_release(x);
    fth_tensor_release(y);
    fth_tensor_release(c);
    sp_data_close(&d);
    HAS(lines, "300 cells, 24 genes, 4 groups, 5285 counts above 0");
    OK(fth_mem_destroy(mem, NULL));
}

/* Each cell knows its row of the file: the counts there are its counts. */
TEST(cells_know_their_rows)
{
    fth_mem *mem = t_mem(1 << 26);
    char path[5000];
    fth_source file;
    fth_tensor *rows = NULL;
    run("every_third", "dataset: anndata\n"
                       "preprocessing:\n"
                       "  path: " T_SPATIAL_GOLDEN "sample_v0_8.h5ad\n"
                       "  subsample: 3\n");
    sp_data d = opened(mem);
    fth_tensor *y = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "Y");
    EQ_I64(d.size.cells, 100);
    snprintf(path, sizeof path, "%s/" SP_ROWS, dir);
    OK(fth_npy_open(&file, mem, path, NULL));
    OK(fth_source_load(&file, mem, "rows", &rows, NULL));
    fth_source_close(&file);
    EQ_I64(fth_tensor_size(rows, 0), 100);
    for (int64_t i = 0; i < 100; i++) {
        const int64_t row = ((int64_t *)fth_tensor_data(rows))[i];
        EQ_I64(row, 3 * i);
        for (int64_t g = 0; g < 24; g++)
            EQ_F64(count_at(&d, i, g), ((float *)fth_tensor_data(y))[24 * row + g]);
    }
    fth_tensor_release(rows);
    fth_tensor_release(y);
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

/* The same counts in three layouts, at two budgets, give the same bytes. */
TEST(layouts_and_budgets_give_the_same_folder)
{
    static const struct {
        const char *name, *counts;
        uint64_t budget;
    } wanted[] = {{"rows", "rows", 1 << 28},   {"wide", "wide", 1 << 28},
                  {"dense", "dense", 1 << 28}, {"X", "X", 1 << 28},
                  {"X_small", "X", 60 << 20},  {"doubles", "doubles", 60 << 20}};
    static const char *const files[] = {"X.npy", "Y.npz", "C.npy"};
    size_t bytes[3] = {0};
    unsigned char *data[3] = {NULL};
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
        char text[500], path[5000];
        fth_err err = {0};
        snprintf(text, sizeof text,
                 "dataset: anndata\npreprocessing:\n  path: tests/golden/h5ad/csc.h5ad\n"
                 "  counts: %s\n  group_column: type\n  min_group_size: 2\n",
                 wanted[k].counts);
        OKE(run_in(wanted[k].name, text, NULL, wanted[k].budget, NULL, &err), &err);
        for (int i = 0; i < 3; i++) {
            size_t n;
            snprintf(path, sizeof path, "%s/%s", dir, files[i]);
            unsigned char *got = t_file_read(path, &n);
            if (k == 0) {
                data[i] = got;
                bytes[i] = n;
                continue;
            }
            EQ_U64(n, bytes[i]);
            SAME_BYTES(got, data[i], n);
            free(got);
        }
    }
    for (int i = 0; i < 3; i++) free(data[i]);
}

#define CSC "preprocessing:\n  path: tests/golden/h5ad/csc.h5ad\n"

TEST(groups_names_and_cells_of_the_folder)
{
    fth_mem *mem = t_mem(1 << 26);
    run("names", "dataset: anndata\n" CSC "  group_column: type\n  min_group_size: 4\n");
    sp_data d = opened(mem);
    /* b has 4 cells, a 4, c 3 and d none; cell 5 has no type */
    EQ_I64(d.size.cells, 8);
    EQ_I64(d.size.groups, 2);
    EQ_STR(name_of(d.group_names, 0), "b");
    EQ_STR(name_of(d.group_names, 1), "a");
    EQ_STR(name_of(d.cell_names, 2), "cell3");
    EQ_STR(name_of(d.gene_names, 2), "g0-2"); /* g0-1 is there already */
    EQ_STR(name_of(d.gene_names, 4), "g0-1");
    for (int64_t g = 0; g < 6; g++) {
        const int64_t v = (3 * 7 + g * 3) % 5;
        EQ_F64(count_at(&d, 2, g), v > 1 ? v : 0);
    }
    sp_data_close(&d);
    HAS(lines, "removed 1 cells without a group");
    HAS(lines, "removed 3 cells of small groups");
    HAS(lines, "removed 2 groups");
    HAS(lines, "1 genes had the name of another");
    char path[5000];
    snprintf(path, sizeof path, "%s/metadata.json", dir);
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, mem, path, NULL));
    const fth_json_value *v = fth_json_root(doc), *f = fth_json_get(v, "fathom");
    EQ_I64(fth_json_get_int(v, "n_spots", 0), 8);
    EQ_STR(fth_json_get_text(v, "dataset", ""), "anndata");
    EQ_I64(fth_json_get_int(fth_json_get(v, "preprocessing"), "min_group_size", 0), 4);
    IS_TRUE(!fth_json_get(v, "timestamp") && !fth_json_get(f, "source"));
    IS_TRUE(!fth_json_get(fth_json_get(f, "preprocessing"), "h5ad_path"));
    IS_TRUE(fth_json_get_hash(f, "source_xxh64", 0) != 0);
    EQ_I64(fth_json_get_int(fth_json_get(f, "removed_cells"), "small_group", 0), 3);
    EQ_I64(fth_json_get_int(f, "renamed_genes", 0), 1);
    EQ_F64(fth_json_get_real(fth_json_get(f, "preprocessing"), "spatial_scale", 0), 50);
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(without_groups_there_is_one)
{
    fth_mem *mem = t_mem(1 << 26);
    run("single", "dataset: anndata\n" CSC);
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 12);
    EQ_I64(d.size.groups, 1);
    EQ_STR(name_of(d.group_names, 0), "All");
    sp_data_close(&d);
    HAS(lines, "all cells are one group");
    OK(fth_mem_destroy(mem, NULL));
}

/* Cells in the order of a frame: k00 k05 k10 k03 k08 k01 ... sorted; every second one is kept. */
TEST(order_of_a_frame_labels_of_a_table_and_every_second_cell)
{
    fth_mem *mem = t_mem(1 << 26);
    const char *table = t_temp_path("labels.csv");
    char text[1024] = "id,other,cl46v1SubShort_ds\n", config[6000];
    for (int i = 0; i < 12; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,x,\"T,%d\"\n", i, i % 4);
    t_file_write(table, text, strlen(text));
    snprintf(config, sizeof config,
             "dataset: colon\npreprocessing:\n  h5ad_path: tests/golden/h5ad/csc.h5ad\n"
             "  coord_key: places\n  labels_path: %s\n  subsample: 2\n  min_group_size: 1\n",
             table);
    run("colon", config);
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 6);
    EQ_I64(d.size.groups, 4);
    EQ_STR(name_of(d.group_names, 2), "T,2");
    for (int64_t k = 0; k < 6; k++) { /* number 2k in order is the cell i with 5 i mod 12 = 2k */
        int64_t i = 0;
        while ((5 * i) % 12 != 2 * k) i++;
        char name[32];
        snprintf(name, sizeof name, "cell%" PRId64, i);
        EQ_STR(name_of(d.cell_names, k), name);
        EQ_I64(((int32_t *)fth_tensor_data(d.group))[k], (2 * k) % 4);
        for (int64_t g = 0; g < 6; g++) {
            const int64_t v = (i * 7 + g * 3) % 5;
            EQ_F64(count_at(&d, k, g), v > 1 ? v : 0);
        }
    }
    sp_data_close(&d);
    fth_err err = {0};
    text[strlen(text) - 3] = '9'; /* the last label */
    t_file_write(table, text, strlen(text));
    IS(run_in("colon", config, NULL, 1 << 28, NULL, &err), FTH_E_CONFIG);
    HAS(err.text, "source: ");
    OK(fth_mem_destroy(mem, NULL));
}

/* Cell 2 has a fifth of its counts in mitochondrial genes, which is too much. */
TEST(quality_control_by_hand)
{
    enum { N = 6, D = 4 };
    static const float counts[N][D] = {{60, 10, 30, 20}, {5, 1, 2, 3},   {80, 20, 0, 0},
                                       {0, 0, 0, 0},     {90, 0, 10, 1}, {200, 20, 1, 0}};
    fth_mem *mem = t_mem(1 << 26);
    const char *path = t_temp_path("qc.h5ad");
    static const char *const genes[D] = {"a", "MT-b", "c", "d"};
    static const char *const cells[N] = {"0", "1", "2", "3", "4", "5"};
    float xy[N][2];
    for (int i = 0; i < N; i++) xy[i][0] = (float)i, xy[i][1] = (float)(i * i);
    fth_h5_writer *w = NULL;
    fth_sink s;
    const fth_h5_dataset x = {.name = "/raw/X", .dtype = FTH_F32, .n_axes = 2, .size = {N, D}},
                         at = {.name = "/obsm/spatial",
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {N, 2}};
    const int64_t zero[2] = {0, 0};
    OK(fth_h5_create(&w, mem, path, NULL));
    OK(fth_h5_sink(w, &x, &s, NULL));
    OK(s.write(s.self, zero, x.size, counts, NULL));
    OK(s.commit(s.self, NULL));
    OK(fth_h5_sink(w, &at, &s, NULL));
    OK(s.write(s.self, zero, at.size, xy, NULL));
    OK(s.commit(s.self, NULL));
    OK(fth_h5_put_strings(w, "/obs/_index", cells, N, NULL));
    OK(fth_h5_put_strings(w, "/raw/var/_index", genes, D, NULL));
    OK(fth_h5_commit(w, NULL));
    char config[6000];
    snprintf(config, sizeof config,
             "dataset: slideseq\npreprocessing:\n  path: %s\n  min_cells: 2\n", path);
    run("qc", config);
    sp_data d = opened(mem);
    /* 1 has 11 counts, 2 has 20 %, 3 none; d is in 0 and 4, c in 0, 4, 5 */
    EQ_I64(d.size.cells, 3);
    EQ_I64(d.size.genes, 3);
    EQ_STR(name_of(d.cell_names, 1), "4");
    EQ_STR(name_of(d.gene_names, 1), "c");
    EQ_F64(count_at(&d, 2, 0), 200);
    EQ_F64(count_at(&d, 1, 2), 1);
    EQ_I64(d.size.entries, 8);
    sp_data_close(&d);
    HAS(lines, "removed 2 cells with 20 % mitochondrial counts or more");
    HAS(lines, "removed 1 cells with too few counts");
    snprintf(config, sizeof config,
             "dataset: slideseq\npreprocessing:\n  path: %s\n  min_cells: 3\n  filter_mt: false\n",
             path);
    run("qc_mt", config);
    d = opened(mem);
    EQ_I64(d.size.genes, 2); /* a and c; MT-b is in two of the three cells */
    sp_data_close(&d);
    /* the same rules by their keys, and one that the preset does not have: 4 has two genes */
    snprintf(config, sizeof config,
             "dataset: anndata\npreprocessing:\n  path: %s\n  counts: raw\n  min_counts: 100\n"
             "  max_mt_percent: 20\n  min_cells: 2\n  filter_mt: true\n",
             path);
    run("qc_keys", config);
    d = opened(mem);
    EQ_I64(d.size.cells, 3);
    EQ_I64(d.size.genes, 3);
    EQ_I64(d.size.entries, 8);
    sp_data_close(&d);
    snprintf(config, sizeof config,
             "dataset: anndata\npreprocessing:\n  path: %s\n  counts: raw\n  min_genes: 3\n", path);
    run("qc_least", config);
    d = opened(mem);
    EQ_I64(d.size.cells, 4); /* all but 2 and 3 */
    EQ_I64(d.size.genes, 4);
    sp_data_close(&d);
    HAS(lines, "removed 2 cells with too few genes");
    snprintf(config, sizeof config,
             "dataset: slideseq\npreprocessing:\n  path: %s\n  min_cells: 4\n", path);
    refused("qc_genes", config, FTH_E_FILE_FORMAT, "qc.h5ad", "none of the 4 genes", "min_cells");
    snprintf(config, sizeof config,
             "dataset: slideseq\npreprocessing:\n  path: %s\n  min_counts: 900\n", path);
    refused("qc_cells", config, FTH_E_FILE_FORMAT, "qc.h5ad", "no cell has 900", "min_counts");
    OK(fth_mem_destroy(mem, NULL));
}

/* Forty genes of 100 cells: g0 is constant, g20 differs between halves, g30 has one huge
 * count, which is cut. */
TEST(variable_genes_by_hand)
{
    enum { N = 100, D = 40 };
    static float counts[N][D];
    float xy[N][2];
    char names[2][N][8];
    const char *cells[N], *genes[D];
    uint32_t state = 7;
    for (int i = 0; i < N; i++) {
        xy[i][0] = (float)i, xy[i][1] = (float)(i * i);
        snprintf(names[0][i], 8, "c%d", i);
        cells[i] = names[0][i];
        for (int g = 0; g < D; g++) {
            snprintf(names[1][g], 8, "g%d", g);
            genes[g] = names[1][g];
            state = state * 1664525u + 1013904223u;
            counts[i][g] = (float)((state >> 24) % (unsigned)(2 + g % 13));
            if (g == 0) counts[i][g] = 3;
            if (g == 20) counts[i][g] = i < N / 2 ? 0 : 10;
            if (g == 30) counts[i][g] = i == 5 ? 400 : (float)(i % 2);
        }
    }
    fth_mem *mem = t_mem(1 << 26);
    const char *path = t_temp_path("variable.h5ad");
    fth_h5_writer *w = NULL;
    fth_sink s;
    const fth_h5_dataset x = {.name = "/X", .dtype = FTH_F32, .n_axes = 2, .size = {N, D}},
                         at = {.name = "/obsm/spatial",
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {N, 2}};
    const int64_t zero[2] = {0, 0};
    OK(fth_h5_create(&w, mem, path, NULL));
    OK(fth_h5_sink(w, &x, &s, NULL));
    OK(s.write(s.self, zero, x.size, counts, NULL));
    OK(s.commit(s.self, NULL));
    OK(fth_h5_sink(w, &at, &s, NULL));
    OK(s.write(s.self, zero, at.size, xy, NULL));
    OK(s.commit(s.self, NULL));
    OK(fth_h5_put_strings(w, "/obs/_index", cells, N, NULL));
    OK(fth_h5_put_strings(w, "/var/_index", genes, D, NULL));
    OK(fth_h5_commit(w, NULL));
    static const char *const flavors[] = {"seurat_v3", "seurat", "deviance"};
    for (int k = 0; k < 3; k++) {
        char config[6000], table[5000];
        size_t n;
        snprintf(config, sizeof config,
                 "dataset: anndata\npreprocessing:\n  path: %s\n  highly_variable: 2\n"
                 "  highly_variable_flavor: %s\n",
                 path, flavors[k]);
        run(flavors[k], config);
        sp_data d = opened(mem);
        EQ_I64(d.size.genes, 2);
        EQ_STR(name_of(d.gene_names, 0), "g20");
        EQ_STR(name_of(d.gene_names, 1), "g30");
        sp_data_close(&d);
        snprintf(table, sizeof table, "%s/" SP_GENE_SELECTION, dir);
        char *text = (char *)t_file_read(table, &n);
        text = realloc(text, n + 1);
        text[n] = '\0';
        HAS(text, k == 0 ? "variance_norm" : k == 1 ? "dispersion_norm" : "deviance");
        HAS(text, k == 1 ? "\ng0," : "\ng0,3,0,");
        /* cut to ten deviations, the one cell adds 100 / 99 to it, and not hundreds */
        const char *row = strstr(text, "\ng30,");
        double mean, variance, score;
        EQ_I64(sscanf(row, "\ng30,%lf,%lf,%lf,", &mean, &variance, &score), 3);
        if (k == 0) IS_TRUE(score < 10);
        if (k == 0) NEAR(mean, 4.49, 1e-9);
        free(text);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_10x_file_with_its_table_of_spots)
{
    fth_mem *mem = t_mem(1 << 26);
#define TENX "tests/golden/h5ad/tenx/"
    run("tenx", "dataset: tenx\npreprocessing:\n  path: " TENX "filtered_feature_bc_matrix.h5\n"
                "  rescale: false\n");
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 12);
    EQ_I64(d.size.genes, 6);
    EQ_STR(name_of(d.cell_names, 11), "cell11-1");
    EQ_STR(name_of(d.gene_names, 3), "MT-g3");
    for (int64_t i = 0; i < 12; i++) {
        EQ_F64(((float *)fth_tensor_data(d.xy))[2 * i], 10 * i);
        EQ_F64(((float *)fth_tensor_data(d.xy))[2 * i + 1], 3 * (i % 4));
        for (int64_t g = 0; g < 6; g++) {
            const int64_t v = (i * 7 + g * 3) % 5;
            EQ_F64(count_at(&d, i, g), v > 1 ? v : 0);
        }
    }
    sp_data_close(&d);
    const char *table = t_temp_path("tissue_positions.csv");
    static const char text[] = "barcode,in_tissue,array_row,array_col,pxl_row,pxl_col\n"
                               "cell0-1,1,0,0,1,2\n";
    char config[6000];
    t_file_write(table, text, sizeof text - 1);
    snprintf(config, sizeof config,
             "dataset: tenx\npreprocessing:\n  path: " TENX "filtered_feature_bc_matrix.h5\n"
             "  positions_path: %s\n",
             table);
    refused("tenx_less", config, FTH_E_FILE_FORMAT, "tissue_positions.csv", "no spot 'cell1-1'",
            "");
    /* A mark before the text is no part of the first name. */
    static const char marked[] = "\xef\xbb\xbf"
                                 "cell0-1,1,0,0,1,2\n";
    t_file_write(table, marked, sizeof marked - 1);
    refused("tenx_mark", config, FTH_E_FILE_FORMAT, "tissue_positions.csv", "no spot 'cell1-1'",
            "");
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- folders of arrays ---- */

TEST(a_folder_of_arrays_is_a_source)
{
    fth_mem *mem = t_mem(1 << 26);
    const char *source = t_temp_path("arrays");
    t_spatial_folder(source);
    char config[6000];
    snprintf(config, sizeof config,
             "dataset: toy\npreprocessing:\n  path: %s\n  rescale: false\n  min_group_size: 10\n",
             source);
    run("from_arrays", config);
    sp_data d = opened(mem), all;
    OK(sp_data_open(&all, mem, source, NULL));
    EQ_I64(d.size.cells, 295); /* group 3 has five cells */
    EQ_I64(d.size.groups, 3);
    SAME_BYTES(fth_tensor_data(d.xy), fth_tensor_data(all.xy), 40);
    EQ_STR(name_of(d.gene_names, 7), "gene7");
    IS_TRUE(d.cell_names == NULL);
    sp_data_close(&d);
    sp_data_close(&all);
    char path[5000];
    snprintf(path, sizeof path, "%s/metadata.json", source);
    remove(path);
    snprintf(path, sizeof path, "%s/C.npy", source);
    remove(path);
    run("bare_arrays", config);
    d = opened(mem);
    EQ_I64(d.size.cells, 300);
    EQ_I64(d.size.groups, 1);
    EQ_STR(name_of(d.gene_names, 23), "gene23");
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- a folder that is there ---- */

static time_t made_at(void)
{
    char path[5000];
    struct stat st;
    snprintf(path, sizeof path, "%s/Y.npz", dir);
    if (stat(path, &st) != 0) FAIL("no %s", path);
    return (time_t)st.st_ino;
}

TEST(a_folder_of_other_settings_is_not_used_silently)
{
    static const char first[] = "dataset: anndata\n" CSC "  group_column: type\n",
                      other[] = "dataset: anndata\n" CSC "  group_column: type\n"
                                "  min_group_size: 3\n  spatial_scale: 10\n";
    fth_err err = {0};
    run("stale", "dataset: anndata\n" CSC "  group_column: type\n  min_group_size: 1\n");
    refused("stale_source", "dataset: anndata\npreprocessing:\n  path: /nowhere.h5ad\n",
            FTH_E_FILE_OPEN, "/nowhere.h5ad", "", "");
    OKE(run_in("stale", "dataset: anndata\n" CSC "  group_column: type\n  min_group_size: 1\n",
               NULL, 1 << 28, NULL, &err),
        &err);
    HAS(lines, "it was made with the same settings");
    const time_t before = made_at();
    IS(run_in("stale", other, NULL, 1 << 28, NULL, &err), FTH_E_CONFIG);
    HAS(err.text, "preprocessing.min_group_size: 1 in the folder, 3 now");
    HAS(err.text, "preprocessing.spatial_scale: 50");
    HAS(err.hint, "--force");
    fth_err_clear(&err);
    OKE(run_in("stale", other, "keep", 1 << 28, NULL, &err), &err);
    EQ_I64(made_at(), before);
    OKE(run_in("stale", other, "force", 1 << 28, NULL, &err), &err);
    IS_TRUE(made_at() != before);
    OKE(run_in("stale", other, NULL, 1 << 28, NULL, &err), &err);
    IS(run_in("stale", first, NULL, 1 << 28, NULL, &err), FTH_E_CONFIG);
    HAS(err.text, "min_group_size: 3 in the folder, 10 now");
}

TEST(a_folder_of_another_program_is_kept_only_when_asked)
{
    fth_err err = {0};
    run("foreign", "dataset: anndata\n" CSC);
    char path[5000];
    snprintf(path, sizeof path, "%s", dir);
    t_spatial_folder(path);
    IS(run_in("foreign", "dataset: anndata\n" CSC, NULL, 1 << 28, NULL, &err), FTH_E_CONFIG);
    HAS(err.text, "not written by this program");
    fth_err_clear(&err);
    OKE(run_in("foreign", "dataset: anndata\n" CSC, "keep", 1 << 28, NULL, &err), &err);
}

/* ---- sizes for plans ---- */

static sp_sizes sizes_in(const char *name, const char *text)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_config *cfg = NULL;
    fth_err err = {0};
    char config[4096], out[4096];
    sp_sizes size;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 1 << 26;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    OK(fth_config_create(&cfg, fth_context_mem(ctx), NULL));
    snprintf(config, sizeof config, "name: test\n%s", text);
    OK(fth_config_parse(cfg, "c.yaml", config, strlen(config), NULL));
    OK(fth_config_check(cfg, &sp_schema, NULL, NULL));
    snprintf(out, sizeof out, "%s/%s", t_temp_dir(), name);
    const fth_stage_call call = {.config = cfg, .output_dir = out, .context = ctx};
    OKE(sp_data_sizes(&size, &call, &err), &err);
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_context_destroy(ctx, NULL));
    return size;
}

TEST(sizes_are_bounds_until_the_folder_is_there)
{
    static const char text[] = "dataset: anndata\n" CSC "  group_column: type\n"
                               "  min_group_size: 4\n";
    sp_sizes s = sizes_in("sizes", text);
    IS_TRUE(s.bound);
    EQ_I64(s.cells, 12);
    EQ_I64(s.genes, 6);
    EQ_I64(s.groups, 4);
    EQ_I64(s.entries, 43);
    EQ_I64(s.most_entries, 6); /* sparse columns do not say */
    s = sizes_in("sizes", "dataset: anndata\n" CSC "  counts: rows\n  subsample: 5\n");
    EQ_I64(s.cells, 3);
    EQ_I64(s.groups, 1);
    EQ_I64(s.most_entries, 4);
    run("sizes", text);
    s = sizes_in("sizes", text);
    IS_TRUE(!s.bound);
    EQ_I64(s.cells, 8);
    EQ_I64(s.groups, 2);
    fth_mem *mem = t_mem(1 << 26);
    sp_data d = opened(mem);
    EQ_I64(s.entries, d.size.entries);
    EQ_I64(s.most_entries, d.size.most_entries);
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- walks with little room ---- */

/* Cells backwards, with room for one row at a time, are the same as with room for all. */
TEST(cells_in_any_order_with_little_room)
{
    static const char *const counts[] = {"X", "rows", "dense"};
    for (int k = 0; k < 6; k++) {
        fth_mem *mem = t_mem(1 << 28);
        fth_config *cfg = NULL;
        fth_err err = {0};
        sp_source s;
        sp_count_walk w;
        char text[400];
        int64_t total = 0;
        OK(fth_config_create(&cfg, mem, NULL));
        const int n = snprintf(text, sizeof text,
                               "name: x\ndataset: anndata\n" CSC "  counts: %s\n", counts[k / 2]);
        OK(fth_config_parse(cfg, "c.yaml", text, (size_t)n, NULL));
        OK(fth_config_check(cfg, &sp_schema, NULL, NULL));
        OKE(sp_source_open(&s, mem, cfg, NULL, &err), &err);
        OKE(sp_source_load(&s, &err), &err);
        for (int64_t i = 0; i < 12; i++) s.row[i] = 11 - i;
        const sp_cells c = {.n = 10, .row = s.row, .xy = s.xy};
        OKE(sp_count_walk_start(&w, &s, &c, k % 2 ? 0 : 1 << 20, NULL, &err), &err);
        OKE(sp_count_walk_look(&w, &(sp_rules){.max_mt = -1}, &err), &err);
        OKE(sp_count_walk_size(&w, &c, &total, &err), &err);
        const char *path = t_temp_path("walk.npz");
        OKE(sp_count_walk_write(&w, &c, total, path, &err), &err);
        sp_matrix m;
        sp_block b;
        OKE(sp_matrix_open_npz(&m, mem, path, &err), &err);
        EQ_I64(m.rows, 10);
        EQ_I64(m.entries, total);
        OKE(sp_block_create(&b, &m, 10, total, &err), &err);
        OKE(sp_matrix_read(&m, 0, 10, &b, &err), &err);
        for (int64_t r = 0; r < 10; r++) {
            int64_t at = b.ptr[r];
            for (int64_t g = 0; g < 6; g++) {
                const int64_t v = ((11 - r) * 7 + g * 3) % 5;
                if (v < 2) continue;
                EQ_I64(b.col[at], g);
                EQ_F64(b.val[at++], v);
            }
            EQ_I64(at, b.ptr[r + 1]);
        }
        sp_block_free(&b);
        sp_matrix_close(&m);
        sp_count_walk_end(&w);
        sp_source_close(&s);
        OK(fth_config_destroy(cfg, NULL));
        OK(fth_mem_destroy(mem, NULL));
    }
}

/* ---- what is refused ---- */

TEST(sources_with_something_missing)
{
    refused("r2", "dataset: liver\n" CSC, FTH_E_FILE_KEY, "csc.h5ad", "'X_spatial'", "spatial");
    refused("r3", "dataset: liver\n" CSC "  coord_key: spatial\n", FTH_E_FILE_KEY, "csc.h5ad",
            "Cell_Type", "preprocessing.cell_type_column");
    refused("r4", "dataset: merfish\n" CSC "  group_column: Type\n", FTH_E_FILE_KEY, "csc.h5ad",
            "no column 'Type'", "word");
    refused("r5", "dataset: merfish\n" CSC "  sample_id: s1\n", FTH_E_FILE_KEY, "csc.h5ad",
            "'sample_id'", "columns of /obs");
    refused("r6", "dataset: anndata\n" CSC "  counts: spliced\n", FTH_E_FILE_KEY, "csc.h5ad",
            "spliced", "wide");
    refused("r7",
            "dataset: anndata\n" CSC "  coord_columns: [x, x]\n  group_column: type\n"
            "  min_group_size: 100\n",
            FTH_E_FILE_FORMAT, "no cell is left", "11 are of small groups", "min_group_size");
    refused("r8", "dataset: sdmbench\n" CSC, FTH_E_FILE_KEY, "csc.h5ad", "Region",
            "preprocessing.region_column");
    refused("r9", "dataset: tenx\n" CSC, FTH_E_FILE_KEY, "csc.h5ad", "/matrix", "dataset: anndata");
}

TEST(regions_that_are_missing_go_before_the_scale)
{
    fth_mem *mem = t_mem(1 << 26);
    run("regions", "dataset: sdmbench\n" CSC "  region_column: type\n  min_group_size: 1\n");
    HAS(lines, "removed 1 cells without a region");
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 11);
    double sum[2] = {0, 0};
    for (int64_t i = 0; i < 22; i++) sum[i % 2] += (double)((float *)fth_tensor_data(d.xy))[i];
    NEAR(sum[0], 0, 1e-3); /* the mean is of the cells that are left */
    NEAR(sum[1], 0, 1e-3);
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_sample_is_one_of_those_that_are_there)
{
    const char *path = t_temp_path("samples.h5ad");
    fth_mem *mem = t_mem(1 << 26);
    static const char *const ids[4] = {"s1", "s2", "s1", "s2"},
                             *const cells[4] = {"a", "b", "c", "d"}, *const genes[1] = {"g"};
    static const float counts[4] = {1, 2, 3, 4}, xy[8] = {0, 0, 1, 5, 2, 1, 3, 3};
    fth_h5_writer *w = NULL;
    fth_sink s;
    const fth_h5_dataset x = {.name = "/X", .dtype = FTH_F32, .n_axes = 2, .size = {4, 1}},
                         at = {.name = "/obsm/spatial",
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {4, 2}};
    const int64_t zero[2] = {0, 0};
    OK(fth_h5_create(&w, mem, path, NULL));
    OK(fth_h5_sink(w, &x, &s, NULL));
    OK(s.write(s.self, zero, x.size, counts, NULL));
    OK(s.commit(s.self, NULL));
    OK(fth_h5_sink(w, &at, &s, NULL));
    OK(s.write(s.self, zero, at.size, xy, NULL));
    OK(s.commit(s.self, NULL));
    OK(fth_h5_put_strings(w, "/obs/_index", cells, 4, NULL));
    OK(fth_h5_put_strings(w, "/obs/sample_id", ids, 4, NULL));
    OK(fth_h5_put_strings(w, "/var/_index", genes, 1, NULL));
    OK(fth_h5_commit(w, NULL));
    char config[6000];
    snprintf(config, sizeof config,
             "dataset: merfish\npreprocessing:\n  path: %s\n  sample_id: s2\n", path);
    run("samples", config);
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 2);
    EQ_STR(name_of(d.cell_names, 1), "d");
    EQ_F64(count_at(&d, 1, 0), 4);
    sp_data_close(&d);
    snprintf(config, sizeof config,
             "dataset: merfish\npreprocessing:\n  path: %s\n  sample_id: s3\n", path);
    refused("samples_3", config, FTH_E_FILE_KEY, "samples.h5ad", "'s3'", "s1, s2");
    OK(fth_mem_destroy(mem, NULL));
}

static void write_arrays(const char *source, float bad_count, float bad_place)
{
    float xy[8] = {0, 0, 1, 5, 2, 1, 3, 3}, counts[8] = {1, 2, 3, 0, 5, 6, 0, 8};
    const int64_t group[4] = {0, 1, 0, 1};
    counts[5] = bad_count;
    xy[3] = bad_place;
    t_spatial_write(source, xy, counts, group, 4, 2, 2);
}

TEST(counts_and_positions_that_are_none)
{
    const char *source = t_temp_path("bad");
    char config[6000];
    fth_mem *mem = t_mem(1 << 26);
    snprintf(config, sizeof config,
             "dataset: arrays\npreprocessing:\n  path: %s\n  min_group_size: 1\n", source);
    write_arrays(source, -1, 5);
    refused("negative", config, FTH_E_FILE_FORMAT, "Y.npz: cell 2 has the count -1 of gene 'gene1'",
            "not negative", "preprocessing.counts");
    write_arrays(source, INFINITY, 5);
    refused("infinite", config, FTH_E_FILE_FORMAT, "count inf", "gene1", "preprocessing.counts");
    write_arrays(source, 1, NAN);
    refused("nowhere", config, FTH_E_FILE_FORMAT, "X.npy", "cell 1", "preprocessing.rescale");
    write_arrays(source, 0.5f, 5);
    run("halves", config);
    HAS(lines, "not whole numbers, 0.5 of gene 'gene1' in cell 2");
    write_arrays(source, NAN, 5);
    run("gap", config);
    HAS(lines, "removed 1 cells with a missing count");
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 3);
    sp_data_close(&d);
    write_arrays(source, 1, NAN);
    strcat(config, "  rescale: false\n");
    run("dropped", config);
    HAS(lines, "removed 1 cells without a position");
    OK(fth_mem_destroy(mem, NULL));
}

/* Cut anywhere, the file is refused by name, or read as if it were whole. */
TEST(a_file_cut_short_is_refused)
{
    size_t bytes;
    unsigned char *data = t_file_read("tests/golden/h5ad/csc.h5ad", &bytes);
    const char *path = t_temp_path("cut.h5ad");
    char config[6000];
    snprintf(config, sizeof config, "dataset: anndata\npreprocessing:\n  path: %s\n", path);
    for (size_t cut = 0; cut < bytes; cut += bytes / 37) {
        fth_err err = {0};
        t_file_write(path, data, cut);
        const fth_status s = run_in("cut", config, "force", 1 << 28, NULL, &err);
        IS_TRUE(s != FTH_OK);
        HAS(err.text, "cut.h5ad");
        IS_TRUE(access(dir, F_OK) != 0);
    }
    free(data);
}

/* ---- public data ---- */

TEST(osmfish_has_4727_cells_of_28_groups)
{
    const char *path = t_data_path("spatial/osmfish.h5ad"); /* first: it may end the case */
    fth_mem *mem = t_mem(1 << 28);
    char config[6000];
    fth_stage_result result = {0};
    fth_err err = {0};
    snprintf(config, sizeof config,
             "dataset: osmfish\npreprocessing:\n  path: %s\n  min_group_fraction: 0.01\n", path);
    OKE(run_in("osmfish", config, NULL, 1 << 28, &result, &err), &err);
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 4727);
    EQ_I64(d.size.genes, 33);
    EQ_I64(d.size.groups, 28);
    for (int64_t g = 0; g < 28; g++) {
        HAS_NOT(name_of(d.group_names, g), "Inhibitory_Cnr1");
        HAS_NOT(name_of(d.group_names, g), "Pyramidal_Kcnip2");
        HAS_NOT(name_of(d.group_names, g), "Vascular_Smooth_Muscle");
    }
    sp_data_close(&d);
    HAS(lines, "removed 112 cells of small groups");
    HAS(lines, "removed 3 groups");
    HAS(lines, "not whole numbers");
    printf("planned %" PRIu64 ", grown by %" PRIu64 "\n", result.plan.host_bytes,
           result.growth_bytes);
    IS_TRUE(T_SANITIZED || result.growth_bytes <= result.plan.host_bytes);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(public_simulations)
{
    const char *path = t_data_path("spatial/nsf_S1.h5ad");
    fth_mem *mem = t_mem(1 << 28);
    char config[6000];
    snprintf(config, sizeof config,
             "dataset: anndata\npreprocessing:\n  path: %s\n  counts: counts\n", path);
    run("nsf", config);
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 1296);
    EQ_I64(d.size.genes, 200);
    EQ_I64(d.size.entries, 136409);
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
