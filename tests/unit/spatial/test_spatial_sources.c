/* test_spatial_sources.c - what an h5ad file says beside its counts: positions of more than two
 * columns, of categories, sparse ones; colours of groups, the unit of positions; counts that say
 * nothing or are too short; features of a 10x file that are no genes.
 * seconds: 3 */
#include "instruments/spatial/preprocess/display.h"
#include "instruments/spatial/read/info.h"
#include "testing/spatial/spatial_preprocess.h"

/* Four cells whose positions have three columns, x, z and y, as an array and as a frame. */
static void write_stack(fth_mem *mem, const char *path, const float *counts)
{
    static const char *const cells[4] = {"a", "b", "c", "d"}, *const genes[1] = {"g"},
                             *const axes[3] = {"x", "z", "y"};
    static const float xzy[12] = {0, 7, 0, 1, 7, 5, 2, 7, 1, 3, 7, 3};
    fth_h5_writer *w = NULL;
    fth_sink s;
    const int64_t zero[2] = {0, 0};
    const fth_h5_dataset x = {.name = "/X", .dtype = FTH_F32, .n_axes = 2, .size = {4, 1}},
                         at = {.name = "/obsm/spatial",
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {4, 3}};
    OK(fth_h5_create(&w, mem, path, NULL));
    OK(fth_h5_sink(w, &x, &s, NULL));
    OK(s.write(s.self, zero, x.size, counts, NULL));
    OK(s.commit(s.self, NULL));
    OK(fth_h5_sink(w, &at, &s, NULL));
    OK(s.write(s.self, zero, at.size, xzy, NULL));
    OK(s.commit(s.self, NULL));
    for (int k = 0; k < 3; k++) {
        char name[64];
        float column[4];
        for (int i = 0; i < 4; i++) column[i] = xzy[3 * i + k];
        snprintf(name, sizeof name, "/obsm/frame/%s", axes[k]);
        const fth_h5_dataset one = {.name = name, .dtype = FTH_F32, .n_axes = 1, .size = {4}};
        OK(fth_h5_sink(w, &one, &s, NULL));
        OK(s.write(s.self, zero, one.size, column, NULL));
        OK(s.commit(s.self, NULL));
    }
    OK(fth_h5_put_strings(w, "/obsm/frame/_index", cells, 4, NULL));
    OK(fth_h5_put_attr_text(w, "/obsm/frame", "_index", "_index", NULL));
    OK(fth_h5_put_attr_texts(w, "/obsm/frame", "column-order", axes, 3, NULL));
    OK(fth_h5_put_strings(w, "/obs/_index", cells, 4, NULL));
    OK(fth_h5_put_strings(w, "/var/_index", genes, 1, NULL));
    OK(fth_h5_commit(w, NULL));
}

TEST(of_three_columns_of_positions_two_are_named)
{
    static const char *const keys[2] = {"spatial", "frame"};
    static const float counts[4] = {1, 2, 3, 4};
    const char *path = t_temp_path("stack.h5ad");
    fth_mem *mem = t_mem(1 << 26);
    write_stack(mem, path, counts);
    for (int k = 0; k < 2; k++) {
        char config[6000], name[32];
        snprintf(config, sizeof config,
                 "dataset: merfish\npreprocessing:\n  path: %s\n  coord_key: %s\n"
                 "  rescale: false\n",
                 path, keys[k]);
        snprintf(name, sizeof name, "stack_%s", keys[k]);
        refused(name, config, FTH_E_FILE_SHAPE, "3 columns", keys[k], "preprocessing.coord_axes");
        strcat(config, "  coord_axes: [2, 0]\n");
        run(name, config);
        sp_data d = opened(mem);
        const float *xy = fth_tensor_data(d.xy);
        EQ_F64(xy[2], 5);
        EQ_F64(xy[3], 1);
        EQ_F64(xy[7], 3);
        sp_data_close(&d);
        char *two = strstr(config, "[2, 0]");
        memcpy(two, "[3, 0]", 6);
        snprintf(name, sizeof name, "beyond_%s", keys[k]);
        refused(name, config, FTH_E_FILE_SHAPE, "column 3", "of 3", "");
    }
    OK(fth_mem_destroy(mem, NULL));
}

static void put(fth_h5_writer *w, const char *name, fth_dtype dtype, int64_t rows, int64_t columns,
                const void *values)
{
    const int64_t zero[2] = {0, 0};
    const fth_h5_dataset one = {
        .name = name, .dtype = dtype, .n_axes = columns ? 2 : 1, .size = {rows, columns}};
    fth_sink s;
    OK(fth_h5_sink(w, &one, &s, NULL));
    OK(s.write(s.self, zero, one.size, values, NULL));
    OK(s.commit(s.self, NULL));
}

/* Four cells: at x = 2.5, y = 10; at x = 10, y = 2.5; at x = -1, y = 10; and one whose x is
 * missing: as categories, and as a sparse matrix; their counts as f16 too. */
static void write_odd(fth_mem *mem, const char *path)
{
    static const char *const cells[4] = {"a", "b", "c", "d"}, *const genes[1] = {"g"},
                             *const words[2] = {"3.5", "left"};
    static const float counts[4] = {1, 2, 3, 4};
    static const uint16_t half[4] = {0x3c00, 0x4000, 0x4200, 0x4400};
    static const double values[3] = {-1, 2.5, 10};
    static const int32_t x[4] = {1, 2, 0, -1}, y[4] = {2, 1, 2, 1}, word[4] = {0, 0, 1, 0},
                         indptr[5] = {0, 1, 1, 1, 1}, column[1] = {0};
    fth_h5_writer *w = NULL;
    OK(fth_h5_create(&w, mem, path, NULL));
    put(w, "/X", FTH_F32, 4, 1, counts);
    put(w, "/layers/half", FTH_F16, 4, 1, half);
    put(w, "/obs/x/codes", FTH_I32, 4, 0, x);
    put(w, "/obs/x/categories", FTH_F64, 3, 0, values);
    put(w, "/obs/y/codes", FTH_I32, 4, 0, y);
    put(w, "/obs/y/categories", FTH_F64, 3, 0, values);
    put(w, "/obs/word/codes", FTH_I32, 4, 0, word);
    OK(fth_h5_put_strings(w, "/obs/word/categories", words, 2, NULL));
    put(w, "/obsm/spatial/indptr", FTH_I32, 5, 0, indptr);
    put(w, "/obsm/spatial/indices", FTH_I32, 1, 0, column);
    put(w, "/obsm/spatial/data", FTH_F32, 1, 0, counts);
    OK(fth_h5_put_attr_text(w, "/obsm/spatial", "encoding-type", "csr_matrix", NULL));
    OK(fth_h5_put_strings(w, "/obs/_index", cells, 4, NULL));
    OK(fth_h5_put_strings(w, "/var/_index", genes, 1, NULL));
    OK(fth_h5_commit(w, NULL));
}

TEST(categories_that_are_numbers_are_positions)
{
    static const float want[6] = {2.5f, 10, 10, 2.5f, -1, 10};
    const char *path = t_temp_path("odd.h5ad");
    fth_mem *mem = t_mem(1 << 26);
    char config[6000];
    write_odd(mem, path);
    snprintf(config, sizeof config,
             "dataset: anndata\npreprocessing:\n  path: %s\n  coord_columns: [x, y]\n"
             "  rescale: false\n",
             path);
    run("categories", config);
    HAS(lines, "removed 1 cells without a position");
    sp_data d = opened(mem);
    EQ_I64(d.size.cells, 3);
    for (int i = 0; i < 6; i++) EQ_F64(((float *)fth_tensor_data(d.xy))[i], want[i]);
    sp_data_close(&d);
    snprintf(config, sizeof config,
             "dataset: anndata\npreprocessing:\n  path: %s\n  coord_columns: [x, word]\n", path);
    refused("words", config, FTH_E_FILE_FEATURE, "/obs/word", "'left' is one of its categories",
            "");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_is_not_read_is_named)
{
    const char *path = t_temp_path("odd.h5ad");
    fth_mem *mem = t_mem(1 << 26);
    char config[6000];
    write_odd(mem, path);
    snprintf(config, sizeof config, "dataset: anndata\npreprocessing:\n  path: %s\n", path);
    refused("sparse_places", config, FTH_E_FILE_FEATURE, "/obsm/spatial",
            "sparse positions are not read", "toarray");
    strcat(config, "  coord_columns: [x, y]\n  counts: half\n");
    refused("half", config, FTH_E_FILE_FEATURE, "/layers/half", "counts of f16 are not read",
            "float32");
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- a 10x file ---- */

/* Four spots; features 0 and 3 are no genes, and feature 0 has the name of the first gene. */
static void write_features(fth_mem *mem, const char *path, const char *table)
{
    static const char *const spots[4] = {"a-1", "b-1", "c-1", "d-1"},
                             *const names[4] = {"CD3", "CD3", "g1", "guide"},
                             *const types[4] = {"Antibody Capture", "Gene Expression",
                                                "Gene Expression", "CRISPR Guide Capture"};
    static const char text[] = "a-1,1,0,0,0,0\nb-1,1,0,0,1,5\nc-1,1,0,0,2,1\nd-1,1,0,0,3,3\n";
    static const int32_t data[8] = {90, 1, 2, 3, 80, 4, 70, 60},
                         features[8] = {0, 1, 1, 2, 0, 2, 3, 0};
    static const int64_t indptr[5] = {0, 2, 4, 6, 8};
    static const int32_t shape[2] = {4, 4};
    fth_h5_writer *w = NULL;
    OK(fth_h5_create(&w, mem, path, NULL));
    put(w, "/matrix/data", FTH_I32, 8, 0, data);
    put(w, "/matrix/indices", FTH_I32, 8, 0, features);
    put(w, "/matrix/indptr", FTH_I64, 5, 0, indptr);
    put(w, "/matrix/shape", FTH_I32, 2, 0, shape);
    OK(fth_h5_put_strings(w, "/matrix/barcodes", spots, 4, NULL));
    OK(fth_h5_put_strings(w, "/matrix/features/name", names, 4, NULL));
    OK(fth_h5_put_strings(w, "/matrix/features/feature_type", types, 4, NULL));
    OK(fth_h5_commit(w, NULL));
    t_file_write(table, text, sizeof text - 1);
}

static sp_data with_types(fth_mem *mem, const char *name, const char *path, const char *types)
{
    char config[6000];
    snprintf(config, sizeof config,
             "dataset: tenx\npreprocessing:\n  path: %s\n  rescale: false\n%s", path, types);
    run(name, config);
    return opened(mem);
}

TEST(antibodies_are_no_genes_unless_they_are_asked_for)
{
    char path[5000];
    fth_mem *mem = t_mem(1 << 26);
    snprintf(path, sizeof path, "%s", t_temp_path("features.h5"));
    write_features(mem, path, t_temp_path("tissue_positions_list.csv"));
    sp_data d = with_types(mem, "genes", path, "");
    HAS(lines, "note: left out 1 Antibody Capture, 1 CRISPR Guide Capture; "
               "preprocessing.feature_types says");
    HAS_NOT(lines, "the name of another");
    EQ_I64(d.size.genes, 2);
    EQ_STR(fth_texts_get(d.gene_names, 0), "CD3");
    EQ_STR(fth_texts_get(d.gene_names, 1), "g1");
    EQ_I64(d.size.entries, 4); /* 1 2 3 4 */
    sp_data_close(&d);
    d = with_types(mem, "all", path, "  feature_types: [all]\n");
    HAS_NOT(lines, "left out");
    EQ_I64(d.size.genes, 4);
    EQ_I64(d.size.entries, 8);
    sp_data_close(&d);
    d = with_types(mem, "two", path, "  feature_types: [Gene Expression, Antibody Capture]\n");
    HAS(lines, "note: left out 1 CRISPR Guide Capture;");
    EQ_I64(d.size.genes, 3);
    sp_data_close(&d);
    char config[6000];
    snprintf(config, sizeof config,
             "dataset: tenx\npreprocessing:\n  path: %s\n  feature_types: [Peaks]\n", path);
    refused("peaks", config, FTH_E_FILE_FORMAT, "features.h5",
            "it has 1 Antibody Capture, 2 Gene Expression, 1 CRISPR Guide Capture", "[all]");
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    OK(sp_info_h5ad(mem, path, &(sp_told){.out = out}, NULL));
    fclose(out);
    HAS(text, "types            1 Antibody Capture, 2 Gene Expression, 1 CRISPR Guide Capture\n");
    free(text);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(counts_that_are_all_zero_are_refused)
{
    static const float zero[4] = {0, 0, 0, 0};
    const char *path = t_temp_path("empty.h5ad");
    fth_mem *mem = t_mem(1 << 26);
    char config[6000];
    write_stack(mem, path, zero);
    snprintf(config, sizeof config,
             "dataset: merfish\npreprocessing:\n  path: %s\n  coord_axes: [0, 2]\n", path);
    refused("empty", config, FTH_E_FILE_FORMAT, "every count of the 4 cells and 1 genes", "is 0",
            "preprocessing.counts");
    float xy[8] = {0, 0, 1, 5, 2, 1, 3, 3}, none[8] = {0};
    const int64_t group[4] = {0, 1, 0, 1};
    const char *folder = t_temp_path("empty_folder");
    sp_data d;
    fth_err err = {0};
    t_spatial_write(folder, xy, none, group, 4, 2, 2);
    IS(sp_data_open(&d, mem, folder, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "every count of 4 cells and 2 genes is 0");
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- how cells are shown ---- */

TEST(colours_are_hexadecimal)
{
    fth_colour c = 0;
    IS_TRUE(sp_colour_parse("#1f77B4", &c));
    EQ_U64(c, fth_rgb(0x1f, 0x77, 0xb4));
    IS_TRUE(sp_colour_parse("#1f77b480", &c));
    EQ_U64(c, fth_rgb(0x1f, 0x77, 0xb4));
    IS_TRUE(sp_colour_parse("#0fa", &c));
    EQ_U64(c, fth_rgb(0, 255, 170));
    IS_TRUE(!sp_colour_parse("red", &c));
    IS_TRUE(!sp_colour_parse("#12345", &c));
    IS_TRUE(!sp_colour_parse("#12345g", &c));
    IS_TRUE(!sp_colour_parse("", &c));
}

/* Six cells of three types; the first type has one cell and goes. */
static void write_types(fth_mem *mem, const char *path, const char *const *colours, int64_t n,
                        bool visium)
{
    static const char *const cells[6] = {"a", "b", "c", "d", "e", "f"}, *const genes[1] = {"g"},
                             *const types[6] = {"y", "z", "x", "y", "z", "y"};
    static const float counts[6] = {1, 2, 3, 4, 5, 6},
                       xy[12] = {0, 0, 100, 50, 200, 10, 300, 30, 50, 90, 400, 100};
    const double per = 0.25;
    fth_h5_writer *w = NULL;
    fth_sink s;
    const int64_t zero[2] = {0, 0};
    const fth_h5_dataset x = {.name = "/X", .dtype = FTH_F32, .n_axes = 2, .size = {6, 1}},
                         at = {.name = "/obsm/spatial",
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {6, 2}},
                         scale = {.name = "/uns/spatial/lib/scalefactors/microns_per_pixel",
                                  .dtype = FTH_F64,
                                  .n_axes = 0};
    OK(fth_h5_create(&w, mem, path, NULL));
    OK(fth_h5_sink(w, &x, &s, NULL));
    OK(s.write(s.self, zero, x.size, counts, NULL));
    OK(s.commit(s.self, NULL));
    OK(fth_h5_sink(w, &at, &s, NULL));
    OK(s.write(s.self, zero, at.size, xy, NULL));
    OK(s.commit(s.self, NULL));
    if (visium) {
        OK(fth_h5_sink(w, &scale, &s, NULL));
        OK(s.write(s.self, zero, zero, &per, NULL));
        OK(s.commit(s.self, NULL));
    }
    OK(fth_h5_put_strings(w, "/obs/_index", cells, 6, NULL));
    OK(fth_h5_put_strings(w, "/obs/type", types, 6, NULL));
    OK(fth_h5_put_strings(w, "/var/_index", genes, 1, NULL));
    if (n > 0) OK(fth_h5_put_strings(w, "/uns/type_colors", colours, n, NULL));
    OK(fth_h5_commit(w, NULL));
}

TEST(colours_and_unit_go_into_the_folder)
{
    static const char *const colours[3] = {"#ff0000", "#00ff00", "#0000ff"}, *const names[3] = {
                                                                                 "#ff0000", "green",
                                                                                 "#0000ff"};
    const char *path = t_temp_path("types.h5ad");
    fth_mem *mem = t_mem(1 << 26);
    char config[6000];
    sp_shown shown;
    fth_colour c[2];
    fth_err err = {0};
    snprintf(config, sizeof config,
             "dataset: merfish\npreprocessing:\n  path: %s\n  group_column: type\n"
             "  min_group_size: 2\n",
             path);
    write_types(mem, path, colours, 3, true);
    run("types", config);
    OKE(sp_shown_read(&shown, c, 2, mem, dir, &err), &err);
    IS_TRUE(shown.coloured); /* x, which is gone, was the red one */
    EQ_U64(c[0], fth_rgb(0, 255, 0));
    EQ_U64(c[1], fth_rgb(0, 0, 255));
    EQ_STR(shown.unit, "px");
    EQ_F64(shown.microns, 0.25);
    sp_data d = opened(mem);
    const float *xy = fth_tensor_data(d.xy);
    NEAR(shown.length * (double)(xy[8] - xy[0]), 400, 1e-3); /* the last cell and the first */
    sp_data_close(&d);
    write_types(mem, path, names, 3, false);
    run("types_named", config);
    HAS(lines, "uns/type_colors is not used: 'green' is not a colour");
    OKE(sp_shown_read(&shown, c, 2, mem, dir, &err), &err);
    IS_TRUE(!shown.coloured);
    EQ_STR(shown.unit, "");
    write_types(mem, path, colours, 2, false);
    run("types_few", config);
    HAS(lines, "it has 2 colours for 3 groups");
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
