/* test_focus_keyence.c - folders and headers of a Keyence microscope.
 * seconds: 1 */
#include "instruments/focus/keyence/header.h"
#include "instruments/focus/keyence/plate.h"
#include "instruments/focus/keyence/tree.h"
#include "mem/inject.h"
#include "testing/io/files.h"

#include <math.h>
#include <sys/stat.h>

static const char golden[] = "tests/golden/focus/keyence_like_header.bin";

static void check_header(const fo_keyence_header *h)
{
    NEAR(h->time_s, 63800000000.0, 0);
    EQ_STR(h->objective, "PlanApo 4x");
    EQ_STR(h->channel, "Brightfield");
    EQ_I64(h->width_px, 640);
    EQ_I64(h->height_px, 480);
    NEAR(h->width_um, 2412.8, 0);
    NEAR(h->height_um, 1809.6, 0);
}

TEST(the_text_of_the_microscope_is_read)
{
    fth_mem *mem = t_mem(1 << 20);
    fo_keyence_header h;
    fth_err err = {0};
    OKE(fo_keyence_header_read(&h, mem, golden, &err), &err);
    check_header(&h);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_text_is_found_wherever_it_is)
{
    fth_mem *mem = t_mem(1 << 20);
    size_t n;
    unsigned char *text = t_file_read(golden, &n);
    const char *path = t_temp_path("large.tif");
    enum { FILE_BYTES = 3 << 20, PIECE = 256 << 10 };
    char *bytes = calloc(1, FILE_BYTES);
    /* at the front, across every boundary of what is read at once, at the end */
    const size_t at[] = {0, PIECE - 70, PIECE - 66, 2 * PIECE - 69, 5 * PIECE - 3, FILE_BYTES - n};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        memset(bytes, 0, FILE_BYTES);
        memcpy(bytes + at[i], text, n);
        t_file_write(path, bytes, FILE_BYTES);
        fo_keyence_header h;
        fth_err err = {0};
        OKE(fo_keyence_header_read(&h, mem, path, &err), &err);
        check_header(&h);
    }
    free(bytes);
    free(text);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_text_cut_at_any_byte_is_refused)
{
    size_t n;
    char *text = (char *)t_file_read(golden, &n);
    for (size_t cut = 0; cut < n; cut++) {
        fo_keyence_header h;
        fth_err err = {0};
        IS(fo_keyence_header_parse(&h, text, cut, "cut.tif", &err), FTH_E_FILE_KEY);
        HAS(err.text, "cut.tif");
    }
    free(text);
}

TEST(values_that_make_no_sense_are_refused)
{
    const struct {
        const char *text;
        fth_status status;
        const char *error;
    } bad[] = {
        {"<Data></Data>", FTH_E_FILE_KEY, "no time"},
        {"<Data><ShootingDateTime Type=\"x\">soon</S></Data>", FTH_E_FILE_FORMAT,
         "time in the Keyence text is \"soon\""},
        {"<Data><ShootingDateTime>0</S></Data>", FTH_E_FILE_FORMAT, "above 0"},
        {"<Data><ShootingDateTime>10000000</S></Data>", FTH_E_FILE_KEY, "no objective"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fo_keyence_header h;
        fth_err err = {0};
        IS(fo_keyence_header_parse(&h, bad[i].text, strlen(bad[i].text), "a.tif", &err),
           bad[i].status);
        HAS(err.text, bad[i].error);
    }
}

/* ---- folders ---- */

TEST(names_say_plane_tile_and_channel)
{
    EQ_I64(fo_keyence_plane("exp_XY01_00002_Z003_CH1.tif"), 3);
    EQ_I64(fo_keyence_tile("exp_XY01_00002_Z003_CH1.tif", "XY01"), 2);
    EQ_I64(fo_keyence_tile("exp_XY01a_00012_Z003_CH1.tif", "XY01a"), 12);
    EQ_I64(fo_keyence_channel("exp_XY01_00002_Z003_CH4.tif"), 4);
    EQ_I64(fo_keyence_plane("CH1.tif"), -1);
    EQ_I64(fo_keyence_plane("_CH1.tif"), -1);
    EQ_I64(fo_keyence_plane("Z_CH1.tif"), -1);
    EQ_I64(fo_keyence_plane("Z7_CH1.tif"), 7);
    EQ_I64(fo_keyence_tile("exp_00002_Z003_CH1.tif", "XY01"), -1);
    EQ_I64(fo_keyence_tile("exp_XY01", "XY01"), -1);
    EQ_I64(fo_keyence_channel("overlay.tif"), -1);
}

typedef struct bench {
    fth_mem *mem;
    fth_err err;
    fo_keyence_tree tree;
    char root[FTH_PATH];
} bench;

static bench start(const char *name)
{
    bench b = {.mem = t_mem(1 << 22)};
    snprintf(b.root, sizeof b.root, "%s", t_temp_path(name));
    OK(fth_folder_make_all(b.mem, b.root, NULL));
    return b;
}

/* An empty file, with the folders above it. */
static void put(bench *b, const char *name)
{
    char path[FTH_PATH], parent[FTH_PATH];
    OK(fth_path_join(path, b->root, name, NULL));
    OK(fth_path_parent(parent, path, NULL));
    OK(fth_folder_make_all(b->mem, parent, NULL));
    t_file_write(path, "", 0);
}

static fth_status read_tree(bench *b)
{
    fo_keyence_tree_free(&b->tree);
    fth_err_clear(&b->err);
    return fo_keyence_tree_read(&b->tree, b->mem, b->root, NULL, &b->err);
}

static void end(bench *b)
{
    fo_keyence_tree_free(&b->tree);
    OKE(fth_mem_destroy(b->mem, &b->err), &b->err);
}

static void check_image(const bench *b, int64_t i, int well, int64_t t, int64_t tile, int64_t plane)
{
    const fo_keyence_image *m = &b->tree.image[i];
    EQ_I64(m->well, well);
    EQ_I64(m->t, t);
    EQ_I64(m->tile, tile);
    EQ_I64(m->plane, plane);
}

TEST(a_multi_point_tree_is_read)
{
    bench b = start("points");
    put(&b, "XY02/_B07/x");
    put(&b, "XY02/T0002/e_XY02_00001_Z002_CH1.tif");
    put(&b, "XY02/T0002/e_XY02_00001_Z001_CH1.tif");
    put(&b, "XY02/T0001/e_XY02_00002_Z001_CH1.tif");
    put(&b, "XY02/T0001/e_XY02_00001_Z001_CH1.tif");
    put(&b, "XY02/T0001/e_XY02_00001_Z001_Overlay.tif");
    put(&b, "XY01/_A01");
    put(&b, "XY01/e_XY01_00001_Z010_CH1.tif");
    put(&b, "XY01/e_XY01_00001_Z009_CH2.tif");
    put(&b, "notes.txt");
    OKE(read_tree(&b), &b.err);
    EQ_I64(b.tree.n, 6);
    EQ_I64(b.tree.cytometer, 0);
    check_image(&b, 0, 0, 0, 1, 10);
    check_image(&b, 1, 0, 0, 1, 9); /* another channel */
    EQ_I64(b.tree.image[1].channel, 2);
    check_image(&b, 2, 18, 1, 1, 1);
    check_image(&b, 3, 18, 1, 2, 1);
    check_image(&b, 4, 18, 2, 1, 1);
    check_image(&b, 5, 18, 2, 1, 2);
    HAS(fth_texts_get(b.tree.paths, b.tree.image[5].path),
        "points/XY02/T0002/e_XY02_00001_Z002_CH1.tif");
    end(&b);
}

TEST(a_cytometer_tree_is_read)
{
    bench b = start("cytometer");
    put(&b, "W001/_C12");
    put(&b, "W001/P00002/T0003/e_Z001_CH1.tif");
    put(&b, "W001/P00001/T0003/e_Z004_CH1.tif");
    put(&b, "W002/_D01");
    put(&b, "W002/e_Z001_CH1.tif");
    OKE(read_tree(&b), &b.err);
    EQ_I64(b.tree.cytometer, 1);
    EQ_I64(b.tree.n, 3);
    check_image(&b, 0, 35, 3, 0, 4);
    check_image(&b, 1, 35, 3, 1, 1);
    check_image(&b, 2, 36, 0, 0, 1);
    end(&b);
}

TEST(trees_that_say_nothing_are_refused)
{
    const struct {
        const char *file[4];
        fth_status status;
        const char *error;
    } bad[] = {
        {{"readme.txt"}, FTH_E_FILE_KEY, "no well folder; expected folders XY* or W0*"},
        {{"XY01/_A01"}, FTH_E_FILE_KEY, "no images; expected files with CH"},
        {{"XY01/e_XY01_00001_Z001_CH1.tif"}, FTH_E_FILE_FORMAT, "names the well"},
        {{"XY01/_Q77", "XY01/e_XY01_00001_Z001_CH1.tif"},
         FTH_E_FILE_FORMAT,
         "XY01/_Q77: the last three characters"},
        {{"XY01/_A01", "XY01/e_XY01_00001_CH1.tif"}, FTH_E_FILE_FORMAT, "no plane number"},
        {{"XY01/_A01", "XY01/e_Z001_CH1.tif"}, FTH_E_FILE_FORMAT, "no tile number"},
        {{"XY01/_A01", "XY01/Tx/e_XY01_00001_Z001_CH1.tif"},
         FTH_E_FILE_FORMAT,
         "no number after the T"},
        {{"XY01/_A01", "XY01/e_XY01_00001_Z001_CH1.tif", "XY01/f_XY01_00001_Z001_CH1.tif"},
         FTH_E_FILE_FORMAT,
         "have the same well, time, tile and plane"},
        {{"XY01/_A01", "XY01/e_XY01_00001_Z001_CH1.tif", "XY02/_A01",
          "XY02/e_XY02_00001_Z001_CH1.tif"},
         FTH_E_FILE_FORMAT,
         "are folders of the same well"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char name[20];
        snprintf(name, sizeof name, "bad%zu", i);
        bench b = start(name);
        for (int k = 0; k < 4 && bad[i].file[k]; k++) put(&b, bad[i].file[k]);
        /* the third character of a plane that is none: "00001" is taken as one, its letter is a 0
         */
        const fth_status s = read_tree(&b);
        if (s != bad[i].status) FAIL("%s: %s", bad[i].error, b.err.text);
        HAS(b.err.text, bad[i].error);
        end(&b);
    }
}

TEST(every_allocation_may_fail)
{
    bench b = start("faults");
    put(&b, "XY01/_A01");
    put(&b, "XY01/T0001/e_XY01_00001_Z001_CH1.tif");
    int64_t n = 1;
    for (;; n++) {
        fth__mem_inject(b.mem, n, 0);
        const fth_status s = read_tree(&b);
        fth__mem_inject(b.mem, 0, 0);
        if (s == FTH_OK) break;
        IS(s, FTH_E_NOMEM);
    }
    IS_TRUE(n > 5);
    end(&b);
}

/* ---- tiles as stacks ---- */

/* Tiles 3 and 4 at five times, of two planes; the second tile lacks one at the first time. */
TEST(tiles_of_chosen_times_are_stacks)
{
    enum { TIMES = 5 };
    fth_mem *mem = t_mem(1 << 20);
    fo_keyence_image image[TIMES * 4];
    fo_keyence_tree tree = {.mem = mem, .image = image};
    OK(fth_texts_create(&tree.paths, mem, NULL));
    OK(fth_texts_add(tree.paths, golden, sizeof golden - 1, NULL));
    for (int t = 0; t < TIMES; t++)
        for (int tile = 3; tile < 5; tile++)
            for (int plane = 1; plane < 3; plane++)
                if (t > 0 || tile == 3 || plane == 1)
                    image[tree.n++] = (fo_keyence_image){
                        .series = 2, .well = 7, .t = t, .tile = tile, .plane = plane, .channel = 1};
    bool well[FO_WELLS] = {false};
    well[7] = true;
    const fo_keyence_choice choice = {.channel = "", .times = {0, 4, 2}, .well = well};
    fo_keyence_plate p;
    fo_problems problems = {0};
    OK(fo_keyence_plate_make(&p, mem, &tree, &choice, &problems, NULL));
    EQ_I64(problems.n, 0);
    EQ_I64(p.n, 4); /* two tiles at times 0 and 2 */
    EQ_I64(p.planes, 2);
    EQ_I64(p.tiles[2], 2);
    for (int i = 0; i < 4; i++) {
        EQ_I64(p.stack[i].b, i % 2);
        EQ_I64(p.stack[i].t, i / 2 * 2);
        EQ_I64(p.stack[i].p, 2);
        EQ_I64(p.stack[i].planes, 2); /* as deep as its neighbour */
        EQ_I64(p.plane[2 * i], 0);
        EQ_I64(p.plane[2 * i + 1], i == 1 ? -1 : 0);
        NEAR(p.seconds[i], 63800000000.0, 0);
    }
    fo_keyence_plate_free(&p);
    fth_texts_free(tree.paths);
    OK(fth_mem_destroy(mem, NULL));
}
