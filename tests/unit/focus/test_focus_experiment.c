/* test_focus_experiment.c - the tree of an experiment: what is found, what is missing, names of
 * results. seconds: 1 */
#include "instruments/focus/experiment/experiment.h"
#include "mem/inject.h"
#include "testing/io/files.h"

typedef struct bench {
    fth_mem *mem;
    fth_err err;
    fo_experiment e;
    fo_problems problems;
    fth_texts *notes;
    char root[FTH_PATH];
    fo_experiment_options opt;
} bench;

static void start(bench *b, const char *name)
{
    *b = (bench){.mem = t_mem(1 << 22)};
    snprintf(b->root, sizeof b->root, "%s", t_temp_path(name));
    OK(fth_folder_make_all(b->mem, b->root, NULL));
    b->opt = (fo_experiment_options){.root = b->root, .name = "20250912", .microscope = "YX1"};
    OK(fth_texts_create(&b->notes, b->mem, NULL));
}

static void put(bench *b, const char *name)
{
    char path[FTH_PATH], parent[FTH_PATH];
    OK(fth_path_join(path, b->root, name, NULL));
    OK(fth_path_parent(parent, path, NULL));
    OK(fth_folder_make_all(b->mem, parent, NULL));
    t_file_write(path, "x", 1);
}

static void find(bench *b)
{
    b->problems = (fo_problems){0};
    OKE(fo_experiment_find(&b->e, b->mem, &b->opt, &b->problems, b->notes, &b->err), &b->err);
}

static void end(bench *b)
{
    fth_texts_free(b->notes);
    OKE(fth_mem_destroy(b->mem, &b->err), &b->err);
}

TEST(a_yx1_experiment_is_found)
{
    bench b;
    start(&b, "yx1");
    put(&b, "raw_image_data/YX1/20250912/anything.nd2");
    put(&b, "raw_image_data/YX1/20250912/notes.txt");
    put(&b, "metadata/plate_metadata/20250912_well_metadata.xlsx");
    b.opt.microscope = "yx1";
    find(&b);
    EQ_I64(b.problems.n, 0);
    HAS(b.e.raw, "/raw_image_data/YX1/20250912/anything.nd2");
    HAS(b.e.plate, "/metadata/plate_metadata/20250912_well_metadata.xlsx");
    HAS(b.e.images, "/built_image_data/stitched_FF_images/20250912");
    HAS(b.e.metadata, "/metadata/built_metadata_files/20250912_metadata.csv");
    HAS(b.e.run, "/built_image_data/focus_runs/20250912");
    put(&b, "metadata/well_metadata/20250912_well_metadata.xlsx"); /* preferred */
    b.opt.run_dir = "elsewhere";
    find(&b);
    HAS(b.e.plate, "/metadata/well_metadata/20250912_well_metadata.xlsx");
    EQ_STR(b.e.run, "elsewhere");
    EQ_I64(fth_texts_count(b.notes), 0);
    char path[FTH_PATH];
    const fo_image_name name = {.well = 13, .t = 7, .c = 2, .channel = "BF", .ending = ".jpg"};
    OK(fo_experiment_image(&b.e, &name, path, NULL));
    HAS(path, "/stitched_FF_images/20250912/B02_t0007_ch02_stitch.jpg");
    b.opt.layout = FO_LAYOUT_V2;
    find(&b);
    OK(fo_experiment_image(&b.e, &name, path, NULL));
    HAS(path, "/built_image_data/20250912/stitched_ff_images/B02/BF/B02_BF_t0007.jpg");
    end(&b);
}

/* What the system of a laptop leaves beside a file is no file; a workbook comes before a table. */
TEST(which_of_several_files_is_taken)
{
    bench b;
    start(&b, "several");
    put(&b, "raw_image_data/YX1/20250912/a.nd2");
    put(&b, "raw_image_data/YX1/20250912/._a.nd2");
    put(&b, "metadata/well_metadata/20250912_well_metadata.csv");
    put(&b, "metadata/well_metadata/20250912_well_metadata.xlsx");
    find(&b);
    EQ_I64(b.problems.n, 0);
    HAS(b.e.raw, "/20250912/a.nd2");
    HAS(b.e.plate, "20250912_well_metadata.xlsx");
    end(&b);
    start(&b, "similar"); /* only workbooks may have other names */
    put(&b, "raw_image_data/YX1/20250912/a.nd2");
    put(&b, "metadata/well_metadata/20250912_well_metadata_new.csv");
    put(&b, "metadata/well_metadata/20250912_well_metadata_new.xlsx");
    find(&b);
    EQ_I64(b.problems.n, 0);
    HAS(b.e.plate, "20250912_well_metadata_new.xlsx");
    EQ_I64(fth_texts_count(b.notes), 1);
    end(&b);
}

TEST(a_keyence_experiment_is_a_folder)
{
    bench b;
    char path[FTH_PATH];
    start(&b, "keyence");
    put(&b, "raw_image_data/Keyence/20250912/XY01/_A01");
    put(&b, "metadata/well_metadata/20250912_well_metadata.csv");
    b.opt.microscope = "Keyence";
    find(&b);
    EQ_I64(b.problems.n, 0);
    HAS(b.e.raw, "/raw_image_data/Keyence/20250912");
    const fo_image_name name = {.well = 0, .t = 7, .ending = ".jpg"};
    OK(fo_experiment_image(&b.e, &name, path, NULL));
    HAS(path, "/stitched_FF_images/20250912/A01_t0007_stitch.jpg");
    OK(fo_experiment_tile(&b.e, 0, 7, 2, ".jpg", path, NULL));
    HAS(path, "/built_image_data/Keyence/FF_images/20250912/ff_A01_t0007/im_p0002.jpg");
    end(&b);
}

TEST(everything_that_is_missing_is_said_at_once)
{
    bench b;
    start(&b, "missing");
    find(&b);
    EQ_I64(b.problems.n, 2);
    IS_TRUE(b.problems.data);
    HAS(b.problems.text, "raw_image_data/YX1/20250912: no such folder");
    HAS(b.problems.text, "metadata/well_metadata/20250912_well_metadata.xlsx or ");
    put(&b, "raw_image_data/YX1/20250912/readme");
    find(&b);
    HAS(b.problems.text, "no .nd2 file; expected exactly one");
    put(&b, "raw_image_data/YX1/20250912/a.nd2");
    put(&b, "raw_image_data/YX1/20250912/b.ND2");
    put(&b, "metadata/well_metadata/20250912_well_metadata_v1.xlsx");
    find(&b);
    EQ_I64(b.problems.n, 1);
    HAS(b.problems.text, "2 .nd2 files; expected exactly one: a.nd2, b.ND2");
    EQ_I64(fth_texts_count(b.notes), 1);
    HAS(fth_texts_get(b.notes, 0), "20250912_well_metadata_v1.xlsx, found by the beginning");
    put(&b, "metadata/plate_metadata/20250912_well_metadata (1).xlsx");
    find(&b);
    HAS(b.problems.text, "2 plate workbooks for 20250912");
    HAS(b.problems.text, "20250912_well_metadata (1).xlsx");
    b.opt.microscope = "Nikon";
    b.opt.name = "../x";
    find(&b);
    EQ_I64(b.problems.n, 2);
    IS_TRUE(!b.problems.data);
    HAS(b.problems.text, "unknown microscope \"Nikon\"; expected YX1 or Keyence");
    HAS(b.problems.text, "\"../x\" cannot be the name of an experiment");
    b.opt = (fo_experiment_options){.root = "/no/such/root", .name = "x", .microscope = "YX1"};
    find(&b);
    HAS(b.problems.text, "/no/such/root: no such folder");
    end(&b);
}

TEST(years_decide_how_tiles_lie)
{
    EQ_I64(fo_experiment_year("20230115"), 2023);
    EQ_I64(fo_experiment_year("20250912_wt"), 2025);
    EQ_I64(fo_experiment_year("2025"), 0);
    EQ_I64(fo_experiment_year("exp_20250912"), 0);
    EQ_I64(fo_experiment_year("99999999"), 0);
}

TEST(every_allocation_of_a_search_may_fail)
{
    bench b;
    start(&b, "faults");
    put(&b, "raw_image_data/YX1/20250912/a.nd2");
    put(&b, "metadata/well_metadata/20250912_well_metadata_v1.xlsx");
    int64_t n = 1;
    for (;; n++) {
        b.problems = (fo_problems){0};
        fth_err_clear(&b.err);
        fth__mem_inject(b.mem, n, 0);
        const fth_status s = fo_experiment_find(&b.e, b.mem, &b.opt, &b.problems, b.notes, &b.err);
        fth__mem_inject(b.mem, 0, 0);
        if (s == FTH_OK) break;
        IS(s, FTH_E_NOMEM);
    }
    IS_TRUE(n > 3);
    end(&b);
}
