/* test_spatial_preprocess.c - preprocess without memory and without room on the disk.
 * seconds: 30 */
#include "testing/io/files.h"
#include "testing/job/stage_faults.h"
#include "testing/spatial/spatial_data.h"
#include "testing/spatial/spatial_store.h"

#include <fathom/pictures.h>

extern const fth_instrument fth_instrument_spatial;

/* Sparse columns, a frame whose index gives the order, duplicate names. */
static const char columns[] = "name: faults\n"
                              "dataset: colon\n"
                              "preprocessing:\n"
                              "  h5ad_path: tests/golden/h5ad/csc.h5ad\n"
                              "  coord_key: places\n"
                              "  group_column: word\n"
                              "  min_group_size: 2\n";
/* Records, quality control that leaves genes out. */
static const char records[] = "name: faults\n"
                              "dataset: slideseq\n"
                              "preprocessing:\n"
                              "  path: tests/golden/h5ad/old.h5ad\n"
                              "  group_column: type\n"
                              "  min_counts: 3\n"
                              "  min_cells: 2\n"
                              "  min_group_size: 1\n";
static const char tenx[] = "name: faults\n"
                           "dataset: tenx\n"
                           "preprocessing:\n"
                           "  path: tests/golden/h5ad/tenx/filtered_feature_bc_matrix.h5\n";

static const char visium_hd[] = "name: faults\n"
                                "dataset: visium_hd\n"
                                "preprocessing:\n"
                                "  path: tests/golden/tenx/visium_hd\n";

static const char xenium[] = "name: faults\n"
                             "dataset: xenium\n"
                             "preprocessing:\n"
                             "  path: tests/golden/tenx/xenium\n";

static const char merscope[] = "name: faults\n"
                               "dataset: merscope\n"
                               "preprocessing:\n"
                               "  path: tests/golden/vendor/merscope\n"
                               "  group_column: type\n"
                               "  min_group_size: 1\n";

static const char cosmx[] = "name: faults\n"
                            "dataset: cosmx\n"
                            "preprocessing:\n"
                            "  path: tests/golden/vendor/cosmx\n"
                            "  group_column: type\n"
                            "  min_group_size: 1\n";

static const char packed[] = "name: faults\n"
                             "dataset: anndata\n"
                             "preprocessing:\n"
                             "  path: tests/golden/h5ad/zstd.h5ad\n"
                             "  group_column: type\n"
                             "  min_group_size: 1\n";

static const char zarr[] = "name: faults\n"
                           "dataset: spatialdata\n"
                           "preprocessing:\n"
                           "  path: tests/golden/h5ad/store.zarr\n"
                           "  table: counts\n"
                           "  region: left\n"
                           "  group_column: type\n"
                           "  min_group_size: 1\n";

/* Rules of their own, genes by name, the variable ones of them. */
static const char variable[] = "name: faults\n"
                               "dataset: anndata\n"
                               "preprocessing:\n"
                               "  path: tests/golden/h5ad/csc.h5ad\n"
                               "  genes: [g0, g0-1, g5, mt-g1]\n"
                               "  min_genes: 1\n"
                               "  min_cells: 1\n"
                               "  highly_variable: 2\n";

/* Two folders, a section each; the second is a copy, as the same one twice is refused. */
static const char several[] = "name: faults\n"
                              "dataset: xenium\n"
                              "preprocessing:\n"
                              "  paths: [tests/golden/tenx/xenium, %s/other]\n"
                              "  sections: [a, b]\n";

static void fail_all(const char *config, int64_t requests)
{
    const t_stage_faults of = {.instrument = &fth_instrument_spatial,
                               .model = "svgp",
                               .config = config,
                               .budget = 1 << 27,
                               .request_step = 60,
                               .write_step = 60};
    t_stage_fail(&of, 0, requests, 10);
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'/good '%s'/preprocess", t_temp_dir(),
             t_temp_dir());
    if (system(command) != 0) FAIL("cannot tidy up");
}

TEST(sparse_columns_in_another_order)
{
    fail_all(columns, 60);
}

TEST(records_and_quality_control)
{
    fail_all(records, 50);
}

TEST(variable_genes)
{
    fail_all(variable, 50);
}

TEST(several_folders)
{
    char command[4200], config[4600];
    snprintf(command, sizeof command, "cp -r tests/golden/tenx/xenium '%s'/other", t_temp_dir());
    if (system(command) != 0) FAIL("cannot copy a folder");
    snprintf(config, sizeof config, several, t_temp_dir());
    fail_all(config, 60);
}

TEST(a_10x_file)
{
    fail_all(tenx, 40);
}

TEST(a_folder_with_parquet)
{
    fail_all(visium_hd, 40);
}

/* A tissue image that is reduced, from PNG in bands. */
TEST(a_folder_with_an_image)
{
    static char config[FTH_PATH + 200], command[2 * FTH_PATH + 100], path[FTH_PATH];
    static const char scale[] = "{\"tissue_hires_scalef\": 10, \"spot_diameter_fullres\": 3}";
    fth_mem *mem = t_mem(1 << 26);
    uint8_t *px = calloc(2100 * 40, 3);
    snprintf(command, sizeof command,
             "cp -r tests/golden/tenx/visium '%s/folder' && chmod -R u+w '%s/folder'", t_temp_dir(),
             t_temp_dir());
    if (system(command) != 0) FAIL("cannot copy a folder");
    snprintf(path, sizeof path, "%s/folder/spatial/tissue_hires_image.png", t_temp_dir());
    OK(fth_picture_save(mem, path, &(fth_picture){FTH_U8, 40, 2100, 3, px, 0},
                        &(fth_picture_format){.kind = FTH_PICTURE_PNG}, NULL));
    snprintf(path, sizeof path, "%s/folder/spatial/scalefactors_json.json", t_temp_dir());
    t_file_write(path, scale, sizeof scale - 1);
    free(px);
    OK(fth_mem_destroy(mem, NULL));
    snprintf(config, sizeof config,
             "name: faults\ndataset: visium\npreprocessing:\n  path: '%s/folder'\n", t_temp_dir());
    fail_all(config, 40);
}

TEST(a_store_with_an_image)
{
    static char config[FTH_PATH + 200], store[2000];
    snprintf(store, sizeof store, "%.1900s/image.zarr", t_temp_dir());
    t_image_store(store, 30, 50);
    snprintf(config, sizeof config,
             "name: faults\ndataset: spatialdata\npreprocessing:\n  path: '%s'\n", store);
    fail_all(config, 40);
}

TEST(a_folder_with_counts_as_text)
{
    fail_all(xenium, 40);
}

TEST(a_table_of_counts)
{
    fail_all(merscope, 40);
}

TEST(a_packed_table_of_counts)
{
    fail_all(cosmx, 40);
}

TEST(a_file_of_zstandard)
{
    fail_all(packed, 40);
}

TEST(a_store_of_spatialdata)
{
    fail_all(zarr, 40);
}

/* Positions are in the shapes alone. */
TEST(shapes_of_a_store)
{
    char command[17000], config[6000], from[4096];
    snprintf(from, sizeof from, "%s/shapes.zarr", t_temp_dir());
    snprintf(command, sizeof command,
             "cp -r tests/golden/h5ad/store.zarr '%s' && rm -r '%s'/tables/counts/obsm/spatial && "
             "cp -r tests/golden/vendor/shapes '%s'",
             from, from, from);
    if (system(command) != 0) FAIL("cannot copy");
    snprintf(config, sizeof config,
             "name: faults\ndataset: spatialdata\npreprocessing:\n  path: %s\n  table: counts\n",
             from);
    fail_all(config, 40);
}

TEST(the_record_goes_first)
{
    const t_stage_faults of = {.instrument = &fth_instrument_spatial,
                               .model = "svgp",
                               .config = columns,
                               .budget = 1 << 27,
                               .request_step = 60,
                               .write_step = 60};
    t_stage_fail_record(&of);
}

TEST_MAIN()
