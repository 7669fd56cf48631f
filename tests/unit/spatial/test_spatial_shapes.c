/* test_spatial_shapes.c - centroids of shapes in WKB, and a SpatialData store whose positions are
 * in its shapes alone. seconds: 2 */
#include "instruments/spatial/read/info.h"
#include "instruments/spatial/read/shapes.h"
#include "testing/spatial/spatial_preprocess.h"

#include <fathom/parquet.h>

#define SHAPES "tests/golden/vendor/shapes/"

/* Every geometry of a file, whole and cut at every byte; how many there are. */
static int64_t check_file(fth_mem *mem, const char *path, const int *cells)
{
    fth_parquet *file = NULL;
    fth_parquet_column *c = NULL;
    fth_parquet_block b;
    int64_t n = 0;
    OK(fth_parquet_open(&file, mem, path, NULL));
    OK(fth_parquet_column_open(&c, file, fth_parquet_find(file, "geometry"), NULL));
    for (;;) {
        OK(fth_parquet_next(c, &b, NULL));
        if (b.n == 0) break;
        for (int64_t i = 0; i < b.n; i++, n++) {
            double xy[2];
            IS_TRUE(sp_wkb_centroid(b.text[i].chars, b.text[i].bytes, xy));
            NEAR(xy[0], 10 * cells[n], 1e-12);
            NEAR(xy[1], 3 * (cells[n] % 4), 1e-12);
            for (int64_t k = 0; k < b.text[i].bytes; k++)
                IS_TRUE(!sp_wkb_centroid(b.text[i].chars, k, xy));
        }
    }
    fth_parquet_column_close(c);
    fth_parquet_close(file);
    return n;
}

TEST(centroids)
{
    static const int left[] = {3, 0, 5, 1, 4, 2}, right[] = {11, 9, 7, 77, 10, 8, 6, 78};
    fth_mem *mem = t_mem(1 << 24);
    EQ_I64(check_file(mem, SHAPES "left/shapes.parquet", left), 6);
    EQ_I64(check_file(mem, SHAPES "right/shapes.parquet", right), 8);
    OK(fth_mem_destroy(mem, NULL));
}

static int64_t put(char *to, const void *bytes, int64_t n, bool big)
{
    for (int64_t i = 0; i < n; i++) to[i] = ((const char *)bytes)[big ? n - 1 - i : i];
    return n;
}

/* Heights and measures of corners are passed over, as ISO and EWKB announce them. */
TEST(corners_with_more_than_two_numbers)
{
    static const struct {
        uint32_t type;
        int extra;
    } kind[] = {{3, 0},           {1003, 1},        {2003, 1},       {3003, 2},
                {0x80000003u, 1}, {0x40000003u, 1}, {0xc0000003u, 2}};
    static const double corner[5][2] = {{1, 4}, {3, 4}, {3, 8}, {1, 8}, {1, 4}}, far = 1e9;
    const uint32_t rings = 1, corners = 5;
    for (int k = 0; k < 14; k++) {
        const bool big = k % 2;
        char text[300] = {(char)!big};
        int64_t n = 1;
        n += put(text + n, &kind[k / 2].type, 4, big);
        n += put(text + n, &rings, 4, big);
        n += put(text + n, &corners, 4, big);
        for (int i = 0; i < 5; i++) {
            for (int a = 0; a < 2; a++) n += put(text + n, &corner[i][a], 8, big);
            for (int a = 0; a < kind[k / 2].extra; a++) n += put(text + n, &far, 8, big);
        }
        double xy[2];
        IS_TRUE(sp_wkb_centroid(text, n, xy));
        NEAR(xy[0], 2, 1e-12);
        NEAR(xy[1], 6, 1e-12);
        IS_TRUE(!sp_wkb_centroid(text, n - 1, xy));
    }
}

/* Two parts that are lines: the mean of the corners of both. */
TEST(outlines_without_an_area)
{
    const uint32_t several = 6, parts = 2, polygon = 3, rings = 1, corners = 3;
    char text[300] = {1};
    int64_t n = 1;
    n += put(text + n, &several, 4, false);
    n += put(text + n, &parts, 4, false);
    for (int part = 0; part < 2; part++) {
        text[n++] = 1;
        n += put(text + n, &polygon, 4, false);
        n += put(text + n, &rings, 4, false);
        n += put(text + n, &corners, 4, false);
        for (int i = 0; i < 3; i++) {
            const double at[2] = {10 * part + (i == 1 ? 2 : 0), 7};
            for (int a = 0; a < 2; a++) n += put(text + n, &at[a], 8, false);
        }
    }
    double xy[2];
    IS_TRUE(sp_wkb_centroid(text, n, xy));
    NEAR(xy[0], 6, 1e-12);
    NEAR(xy[1], 7, 1e-12);
}

TEST(other_geometries_are_refused)
{
    double xy[2];
    static const char line[] = "\1\2\0\0\0\0\0\0\0", empty[] = "\1\3\0\0\0\0\0\0\0",
                      order[] = "\7\1\0\0\0";
    IS_TRUE(!sp_wkb_centroid(line, 9, xy));
    IS_TRUE(!sp_wkb_centroid(empty, 9, xy));
    IS_TRUE(!sp_wkb_centroid(order, 5, xy));
    IS_TRUE(!sp_wkb_centroid("", 0, xy));
}

TEST(the_store_of_a_table)
{
    char root[FTH_PATH];
    IS_TRUE(sp_shapes_root("/a/b.zarr/tables/t", root));
    EQ_STR(root, "/a/b.zarr");
    IS_TRUE(sp_shapes_root("b.zarr/table/t/", root));
    EQ_STR(root, "b.zarr");
    IS_TRUE(!sp_shapes_root("/a/b.zarr", root));
    IS_TRUE(!sp_shapes_root("b.zarr", root));
}

static void make_store(char store[4096], const char *name)
{
    char command[17000];
    snprintf(store, 4096, "%.3000s/%s.zarr", t_temp_dir(), name);
    snprintf(command, sizeof command,
             "cp -r tests/golden/h5ad/store.zarr '%s' && rm -r '%s'/tables/counts/obsm/spatial && "
             "cp -r tests/golden/vendor/shapes '%s'",
             store, store, store);
    if (system(command) != 0) FAIL("cannot copy");
}

TEST(positions_of_shapes)
{
    fth_mem *mem = t_mem(1 << 26);
    char store[4096], config[5000], path[9000];
    make_store(store, "both");
    for (int k = 0; k < 2; k++) {
        snprintf(config, sizeof config,
                 "dataset: spatialdata\npreprocessing:\n  path: %s\n  table: counts\n"
                 "  rescale: false\n%s",
                 store, k ? "  region: right\n" : "");
        run(k ? "right" : "both", config);
        sp_data d = opened(mem);
        EQ_I64(d.size.cells, k ? 6 : 12);
        const float *xy = fth_tensor_data(d.xy);
        for (int64_t i = 0; i < d.size.cells; i++) {
            const int64_t cell = k ? i + 6 : i;
            EQ_F64(xy[2 * i], 10 * cell);
            EQ_F64(xy[2 * i + 1], 3 * (cell % 4));
        }
        sp_data_close(&d);
        HAS(lines, "positions of 12 cells from the centroids of shapes");
    }
    /* info says where positions are */
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    OK(sp_info_h5ad(mem, store, &(sp_told){.out = out}, NULL));
    fclose(out);
    HAS(text, "dataset: spatialdata");
    HAS(text, "    table: counts\n    # positions are the centroids of shapes\n");
    free(text);
    /* other shapes make another folder, however many there are */
    fth_err err = {0};
    snprintf(path, sizeof path,
             "for i in $(seq 10 49); do mkdir '%s'/shapes/more$i && echo $i > "
             "'%s'/shapes/more$i/shapes.parquet; done",
             store, store);
    if (system(path) != 0) FAIL("cannot add shapes");
    run("many", config);
    run("many", config);
    HAS(lines, "kept ");
    snprintf(path, sizeof path, "echo x > '%s/shapes/more49/shapes.parquet'", store);
    if (system(path) != 0) FAIL("cannot write");
    IS(run_in("many", config, NULL, 1 << 28, NULL, &err), FTH_E_CONFIG);
    HAS(err.text, "source: ");
    snprintf(path, sizeof path, "cp '%s/shapes/left/shapes.parquet' '%s/shapes/right'", store,
             store);
    if (system(path) != 0) FAIL("cannot copy");
    IS(run_in("right", config, NULL, 1 << 28, NULL, &err), FTH_E_CONFIG);
    HAS(err.text, "source: ");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(without_shapes_it_is_refused)
{
    char store[4096], config[5000], command[8200];
    make_store(store, "none");
    snprintf(command, sizeof command, "rm -r '%s/shapes'", store);
    if (system(command) != 0) FAIL("cannot remove");
    snprintf(config, sizeof config,
             "dataset: spatialdata\npreprocessing:\n  path: %s\n  table: counts\n", store);
    refused("no_shapes", config, FTH_E_FILE_KEY, "there is no obsm 'spatial'",
            "shapes/left/shapes.parquet", "table.obsm[\"spatial\"]");
}

TEST_MAIN()
