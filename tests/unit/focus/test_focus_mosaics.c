/* test_focus_mosaics.c - `fathom focus run` of a plate of tiles: places, images, tables, resume and
 * refusals.
 *
 * seconds: 6 */
#include "instruments/focus/stitch/mosaic.h"
#include "instruments/focus/toy/scene.h"
#include "testing/focus/focus_plate.h"

#include <fathom/images.h>
#include <fathom/pictures.h>

#include <math.h>

#define EXP "20250101_toy"
#define IMAGES "built_image_data/stitched_FF_images/" EXP
#define TILES "built_image_data/Keyence/FF_images/" EXP
#define RUNS "built_image_data/focus_runs/" EXP
#define RAW "raw_image_data/Keyence/" EXP
#define TABLE "metadata/well_metadata/" EXP "_well_metadata.csv"

static const fo_toy usual = {
    .wells = 2, .times = 2, .planes = 4, .rows = 72, .columns = 96, .seed = 3, .keyence = true};
static tp_plate plate = {.exp = EXP, .microscope = "Keyence"};

static void make(const fo_toy *toy)
{
    plate = (tp_plate){.exp = EXP, .microscope = "Keyence"};
    tp_make(&plate, "tiles", toy);
}
#define RUN(extra, err) tp_call(&plate, &fo_verb_run, (extra), (err))

/* ---- where tiles lie ---- */

/* Rows of stitch.csv against where the toy put them; how many there are. */
static int check_places(const fo_toy *toy, const char *source)
{
    char *text = tp_text(&plate, RUNS "/stitch.csv"), *at = strchr(text, '\n') + 1;
    fo_toy of = *toy;
    int n = 0;
    of.exp = EXP;
    IS_TRUE(strncmp(text, "well,t,tile,y,x,score,source\n", 29) == 0);
    for (; *at; n++) {
        char well, word[20];
        int t, tile;
        double y, x, score = 1;
        int64_t true_y, true_x, least = INT64_MAX, left = INT64_MAX;
        if (toy->tiles == 1)
            EQ_I64(sscanf(at, "%c01,%d,%d,%lf,%lf,,%19s", &well, &t, &tile, &y, &x, word), 6);
        else
            EQ_I64(
                sscanf(at, "%c01,%d,%d,%lf,%lf,%lf,%19s", &well, &t, &tile, &y, &x, &score, word),
                7);
        for (int k = 0; k < (toy->tiles ? toy->tiles : 3); k++) {
            fo_toy_offset(&of, well - 'A', k, &true_y, &true_x);
            least = true_y < least ? true_y : least;
            left = true_x < left ? true_x : left;
        }
        fo_toy_offset(&of, well - 'A', tile, &true_y, &true_x);
        NEAR(y, (double)(true_y - least), 0.5);
        NEAR(x, (double)(true_x - left), 0.5);
        IS_TRUE(score > 0.9);
        EQ_STR(word, source);
        at = strchr(at, '\n') + 1;
    }
    free(text);
    return n;
}

TEST(a_plate_of_tiles_becomes_images_and_tables)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("", &err), &err);
    IS_TRUE(tp_there(&plate, TILES "/ff_A01_t0001/im_p0000.jpg") &&
            tp_there(&plate, TILES "/ff_B01_t0002/im_p0002.jpg") &&
            tp_there(&plate, IMAGES "/A01_t0001_stitch.jpg") &&
            tp_there(&plate, IMAGES "/B01_t0002_stitch.jpg"));
    EQ_I64(check_places(&usual, "aligned"), 12);
    char *text = tp_text(&plate, IMAGES "/.ff_complete");
    EQ_STR(text, "rows=4\n");
    free(text);
    text = tp_text(&plate, TILES "/master_params.json");
    HAS(text, "\"shape\": [1,3]");
    HAS(text, "\"tile_shape\": [72,96]");
    HAS(text, "\"2\": \"im_p0002.jpg\"");
    free(text);
    text = tp_text(&plate, RUNS "/run.json");
    HAS(text, "\"images\": {\"total\":4,\"done\":4,\"skipped\":0,\"failed\":0}");
    HAS(text, "\"tiles\": {\"total\":12,\"done\":12,\"skipped\":0,\"failed\":0}");
    HAS(text, "\"files\":48,");
    HAS(text, "\"bound\": \"");
    free(text);
    text = tp_text(&plate, RUNS "/metrics.csv");
    HAS(text, "\nff_B01_t0002/im_p0001,B01,2,0,4,");
    free(text);
    text = tp_text(&plate, RUNS "/series_well_mapping.csv");
    EQ_STR(text, "series_number,well_index,mapping_method\n1,A01,marker\n2,B01,marker\n");
    free(text);
    HAS(plate.said, "bound: ");
}

TEST(the_table_of_metadata)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("--metadata-only", &err), &err);
    IS_TRUE(!tp_there(&plate, IMAGES "/A01_t0001_stitch.jpg") &&
            !tp_there(&plate, IMAGES "/.ff_complete") && !tp_there(&plate, RUNS "/stitch.csv"));
    char *text = tp_text(&plate, "metadata/built_metadata_files/" EXP "_metadata.csv");
    EQ_STR(text,
           "well_id,Time (s),Objective,Channel,Width (px),Height (px),Width (um),Height (um),well,"
           "time_string,time_int,experiment_date,medium,genotype,chem_perturbation,start_age_hpf,"
           "embryos_per_well,temperature,pair,Time Rel (s)\n"
           "20250101_toy_A01,63871286400.0,PlanApo "
           "4x,Brightfield,96,72,361.92,271.44,A01,T0001,1,20250101_toy,E3,wt,none,20,1.0,28.5,1,"
           "0.0\n"
           "20250101_toy_A01,63871288300.0,PlanApo "
           "4x,Brightfield,96,72,361.92,271.44,A01,T0002,2,20250101_toy,E3,wt,none,20,1.0,28.5,1,"
           "1900.0\n"
           "20250101_toy_B01,63871286407.0,PlanApo "
           "4x,Brightfield,96,72,361.92,271.44,B01,T0001,1,20250101_toy,E3,tbx5a,none,21,1.0,28.5,"
           "1,7.0\n"
           "20250101_toy_B01,63871288307.0,PlanApo "
           "4x,Brightfield,96,72,361.92,271.44,B01,T0002,2,20250101_toy,E3,tbx5a,none,21,1.0,28.5,"
           "1,1907.0\n");
    free(text);
}

/* ---- pixels ---- */

typedef struct picture {
    fth_mem *mem;
    fth_picture p;
} picture;

static picture load(const char *name)
{
    picture out = {.mem = t_mem(1 << 24)};
    fth_err err = {0};
    OKE(fth_picture_load(out.mem, tp_path(&plate, name), &out.p, &err), &err);
    return out;
}

static void drop(picture *p)
{
    fth_picture_free(p->mem, &p->p);
    OK(fth_mem_destroy(p->mem, NULL));
}

/* What a well shows: all pixels sharp, or with `plane` its only plane; freed by the caller. */
static uint16_t *scene_of(const fo_toy *toy, int well, double age, bool plane, int64_t *rows,
                          int64_t *columns)
{
    fth_mem *mem = t_mem(1 << 26);
    fo_scene scene = {0};
    fo_toy_scene_size(toy, rows, columns);
    OK(fo_scene_create(&scene, mem, *rows, *columns, toy->planes, NULL));
    fo_scene_make(&scene, (uint32_t)(toy->seed * 1000 + well), age);
    uint16_t *out = malloc((size_t)(*rows * *columns) * sizeof *out);
    if (plane)
        fo_scene_draw(&scene, 0, out);
    else
        fo_scene_truth(&scene, out);
    fo_scene_free(&scene);
    OK(fth_mem_destroy(mem, NULL));
    return out;
}

/* Mean square of an image of the last time against its scene, moved by some columns. */
static double against(const fo_toy *toy, int well, bool plane, int64_t moved, const char *name)
{
    fo_toy of = *toy;
    of.exp = EXP;
    int64_t rows, columns, corner = INT64_MAX, end_y = 0, end_x = 0, oy, ox;
    uint16_t *truth = scene_of(&of, well, toy->times > 1, plane, &rows, &columns);
    for (int k = 0; k < 3; k++) {
        fo_toy_offset(&of, well, k, &oy, &ox);
        corner = oy < corner ? oy : corner;
        end_y = oy + toy->rows > end_y ? oy + toy->rows : end_y;
        end_x = ox + toy->columns > end_x ? ox + toy->columns : end_x;
    }
    picture seen = load(name);
    /* tiles in a row become a column: rows of the image are columns of the scene */
    const int64_t h = seen.p.height, w = seen.p.width;
    const int64_t from_x = fo_canvas_from(end_x, h), from_y = fo_canvas_from(end_y - corner, w);
    double sum = 0, n = 0;
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++) {
            const int64_t y = corner + from_y + j, x = from_x + i;
            if (x < 2 || x >= end_x - 2 || from_y + j < 1 || y >= end_y - 1) continue;
            const double d = (double)((const uint8_t *)seen.p.pixels)[i * w + j] -
                             (double)fo_toy_level(truth[y * columns + x + moved]);
            sum += d * d;
            n++;
        }
    IS_TRUE(n > 0.9 * (double)(h * w));
    drop(&seen);
    free(truth);
    return sum / n;
}

#define PLAIN "--scale=fixed:0,255 --polarity=keep --image-format=png"

TEST(an_image_of_sharp_tiles_is_the_scene_itself)
{
    fth_err err = {0};
    fo_toy flat = usual;
    flat.planes = 1; /* nothing to choose: every pixel is as it was */
    make(&flat);
    OKE(RUN(PLAIN " --blend=none", &err), &err);
    EQ_F64(against(&flat, 0, true, 0, IMAGES "/A01_t0002_stitch.png"), 0);
    EQ_F64(against(&flat, 1, true, 0, IMAGES "/B01_t0002_stitch.png"), 0);
    OKE(RUN(PLAIN " --overwrite-stitch", &err), &err);
    HAS(plate.said, "4 images made");
    EQ_F64(against(&flat, 1, true, 0, IMAGES "/B01_t0002_stitch.png"), 0);
    IS_TRUE(against(&flat, 1, true, 1, IMAGES "/B01_t0002_stitch.png") > 20);
}

TEST(an_image_is_the_truth_where_it_is_sharp)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN(PLAIN, &err), &err);
    const double blended = against(&usual, 1, false, 0, IMAGES "/B01_t0002_stitch.png");
    OKE(RUN(PLAIN " --blend=none --overwrite-stitch", &err), &err);
    const double over = against(&usual, 1, false, 0, IMAGES "/B01_t0002_stitch.png");
    const double beside = against(&usual, 1, false, 1, IMAGES "/B01_t0002_stitch.png");
    /* grains between two planes are sharp in none; a pixel beside its place is far worse */
    if (!(blended < 130 && over < 130 && beside > 1.5 * over))
        FAIL("%g and %g, moved %g", blended, over, beside);
    /* and inverted is inverted */
    picture a = load(IMAGES "/B01_t0002_stitch.png");
    OKE(RUN("--scale=fixed:0,255 --image-format=png --blend=none --overwrite-stitch", &err), &err);
    picture b = load(IMAGES "/B01_t0002_stitch.png");
    for (int64_t i = 0; i < a.p.height * a.p.width; i++)
        EQ_I64(((const uint8_t *)a.p.pixels)[i] + ((const uint8_t *)b.p.pixels)[i], 255);
    drop(&a);
    drop(&b);
}

/* ---- going on ---- */

TEST(it_goes_on_where_it_was_ended)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("", &err), &err);
    const uint64_t whole = tp_hash(&plate);
    /* ended while images were made: tiles and the usual places are there */
    tp_shell(&plate, "printf x > " TILES "/ff_B01_t0001/.im_p0000.jpg.77-5f3a.tmp");
    tp_shell(&plate, "rm " IMAGES "/B01* " IMAGES "/.ff_complete && : > " IMAGES
                     "/A01_t0001_stitch.jpg && sed -i '/^B01/d' " RUNS "/stitch.csv");
    OKE(RUN("", &err), &err);
    HAS(plate.said, "3 images made, 1 existed");
    EQ_U64(tp_hash(&plate), whole);
    /* ended while tiles were made */
    tp_shell(&plate,
             "rm -r " IMAGES " " TILES "/ff_B01_t0001 " TILES "/ff_A01_t0002/im_p0001.jpg " TILES
             "/master_params.json " RUNS "/stitch.csv " RUNS "/planes.csv");
    OKE(RUN("", &err), &err);
    HAS(plate.said, "4 images made, 0 existed");
    EQ_U64(tp_hash(&plate), whole);
    /* ended before places were written */
    tp_shell(&plate, "rm " RUNS "/stitch.csv " TILES "/master_params.json");
    OKE(RUN("", &err), &err);
    HAS(plate.said, "0 images made, 4 existed");
    EQ_U64(tp_hash(&plate), whole);
    tp_shell(&plate, "printf 'well,t,tile,y,x,score,source\\nA01,1,0,-5,x,,aligned\\n' > " RUNS
                     "/stitch.csv"); /* what makes no sense is found again */
    OKE(RUN("", &err), &err);
    EQ_U64(tp_hash(&plate), whole);
    OKE(RUN("", &err), &err);
    HAS(plate.said, "0 images made, 4 existed");
    OKE(RUN("--overwrite", &err), &err);
    HAS(plate.said, "4 images made, 0 existed");
    EQ_U64(tp_hash(&plate), whole);
}

/* A plane that was taken again, under its old name and with its old size and time. */
TEST(files_that_were_replaced_are_noticed)
{
    static const char plane[] = RAW "/XY01/T0001/toy_XY01_00002_Z002_CH1.tif";
    static const char other[] = RAW "/XY01/T0002/toy_XY01_00002_Z002_CH1.tif";
    static const char plan[] = "--plan";
    fth_err err = {0};
    make(&usual);
    OKE(RUN("", &err), &err);
    const uint64_t whole = tp_hash(&plate);
    tp_shell(&plate, "cp %s copy.tif && touch copy.tif && mv copy.tif %s", plane, plane);
    OKE(RUN(plan, &err), &err); /* a copy is the same file */
    tp_shell(&plate, "cp -p %s kept.tif && cp %s %s && touch -r kept.tif %s", plane, other, plane,
             plane);
    IS(RUN(plan, &err), FTH_E_CONFIG);
    HAS(err.text, "1 existing tiles were made from other files");
    HAS(err.text, "\n  ff_A01_t0001/im_p0001");
    HAS(err.hint, "--overwrite");
    OKE(RUN("--force-config", &err), &err);
    EQ_U64(tp_hash(&plate), whole);
    IS(RUN(plan, &err), FTH_E_CONFIG); /* of several files: that stays known */
    tp_shell(&plate, "rm -r built_image_data");
    OKE(RUN("", &err), &err);
    IS_TRUE(tp_hash(&plate) != whole);
    tp_shell(&plate,
             "cp -p kept.tif %s && rm " TILES "/ff_A01_t0001/im_p0001.jpg " IMAGES
             "/A01_t0001_stitch.jpg",
             plane);
    OKE(RUN("", &err), &err); /* what is not there may be made of other files */
    OKE(RUN(plan, &err), &err);
}

TEST(wells_that_were_others_are_made_again)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("", &err), &err);
    tp_shell(&plate, "mkdir was && cp " IMAGES "/* was && mv " RAW "/XY01/_A01 x && mv " RAW
                     "/XY02/_B01 " RAW "/XY02/_A01 && mv x " RAW "/XY01/_B01");
    OKE(RUN("", &err), &err);
    HAS(plate.said, "A01 was series 1 and is series 2");
    HAS(plate.said, "4 images made, 0 existed");
    tp_shell(&plate, "cmp was/B01_t0002_stitch.jpg " IMAGES "/A01_t0002_stitch.jpg && cmp "
                     "was/A01_t0001_stitch.jpg " IMAGES "/B01_t0001_stitch.jpg");
    OKE(RUN("", &err), &err);
    HAS(plate.said, "0 images made, 4 existed");
}

TEST(every_write_may_fail)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("--stitch-z", &err), &err);
    const uint64_t whole = tp_hash(&plate);
    for (int64_t n = 1; n < 1000; n += 13) {
        tp_shell(&plate, "rm -rf built_image_data metadata/built_metadata_files");
        plate.threads = 2;
        plate.fail_write = n;
        const fth_status s = RUN("--stitch-z", &err);
        plate.fail_write = 0;
        plate.threads = 0;
        if (s == FTH_OK) return;
        EQ_I64(fth_status_get_info(s)->exit_code, 3);
        IS_TRUE(!tp_there(&plate, IMAGES "/.ff_complete"));
        OKE(RUN("--stitch-z", &err), &err);
        EQ_U64(tp_hash(&plate), whole);
    }
    FAIL("it never succeeds");
}

TEST(any_budget_and_any_threads_give_the_same_bytes)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("--stitch-z", &err), &err);
    const uint64_t whole = tp_hash(&plate);
    const struct {
        int threads;
        uint64_t memory;
    } way[] = {{3, 1 << 27}, {1, 24 << 20}, {4, 24 << 20}};
    for (size_t i = 0; i < sizeof way / sizeof way[0]; i++) {
        tp_shell(&plate, "rm -rf built_image_data");
        plate.threads = way[i].threads;
        plate.memory = way[i].memory;
        OKE(RUN("--stitch-z", &err), &err);
        EQ_U64(tp_hash(&plate), whole);
        IS_TRUE(!strstr(plate.said, "NOT AS PLANNED"));
        char *text = tp_text(&plate, RUNS "/run.json"), *at = strstr(text, "\"planned_bytes\": ");
        unsigned long long planned = 0, peak = 0;
        EQ_I64(sscanf(at, "\"planned_bytes\": %llu,\n  \"peak_bytes\": %llu", &planned, &peak), 2);
        EQ_U64(peak, planned);
        IS_TRUE(planned <= way[i].memory);
        free(text);
    }
    tp_shell(&plate, "rm -rf built_image_data");
    plate.memory = 3 << 20;
    const fth_status s = RUN("", &err);
    EQ_I64(fth_status_get_info(s)->exit_code, 4);
    HAS(err.hint, "--memory");
    tp_shell(&plate, "test ! -e built_image_data");
}

TEST(other_settings_are_refused_and_listed)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("", &err), &err);
    const uint64_t whole = tp_hash(&plate);
    IS(RUN("--overlap=0.3 --blend=none", &err), FTH_E_CONFIG);
    HAS(err.text, "focus.overlap: ");
    HAS(err.text, "focus.blend: ");
    IS(RUN("--overlap=0.3 --method=log --overwrite-stitch", &err), FTH_E_CONFIG);
    HAS(err.text, "focus.method: "); /* that is about tiles */
    IS_TRUE(!strstr(err.text, "focus.overlap: "));
    EQ_U64(tp_hash(&plate), whole);
    OKE(RUN("--blend=none --overwrite-stitch", &err), &err);
    IS_TRUE(tp_hash(&plate) != whole);
    OKE(RUN("--overwrite-stitch", &err), &err);
    EQ_U64(tp_hash(&plate), whole);
}

/* ---- tiles that cannot be aligned, more and fewer of them ---- */

/* A picture of one value in the place of every plane of a tile: its header stays. */
static void blank(const char *folder, int tile)
{
    tp_shell(&plate,
             "for f in " RAW "/%s/toy_*_%05d_Z*.tif; do python3 -c \"import sys;p=sys.argv[1];"
             "b=bytearray(open(p,'rb').read());n=72*96;k=b.find(b'<Data>');b[k-n:k]=bytes([100])*n;"
             "open(p,'wb').write(b)\" $f; done",
             folder, tile);
}

TEST(tiles_without_texture_lie_where_they_usually_do)
{
    fth_err err = {0};
    fo_toy toy = usual;
    toy.times = 4;
    make(&toy);
    blank("XY01/T0002", 2);
    OKE(RUN("", &err), &err);
    char *text = tp_text(&plate, RUNS "/stitch.csv"), *at = strstr(text, "\nA01,2,0,") + 1;
    char *master = tp_text(&plate, TILES "/master_params.json");
    for (int k = 0; k < 3; k++) {
        char word[20];
        double y, x, usual_y, usual_x;
        EQ_I64(sscanf(at, "A01,2,%*d,%lf,%lf,,%19s", &y, &x, word), 3);
        EQ_STR(word, "master");
        char key[20];
        snprintf(key, sizeof key, "\"%d\": [", k);
        EQ_I64(sscanf(strstr(master, key) + strlen(key), "%lf,%lf", &usual_y, &usual_x), 2);
        EQ_F64(y, usual_y);
        EQ_F64(x, usual_x);
        at = strchr(at, '\n') + 1;
    }
    free(master);
    free(text);
}

TEST(one_two_and_five_tiles)
{
    static const struct {
        int tiles;
        int64_t height, width; /* of tiles of 96 px in a row */
    } cases[] = {{1, 72, 96}, {2, 120, 94}, {5, 384, 72}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fth_err err = {0};
        fo_toy toy = usual;
        toy.tiles = cases[i].tiles;
        toy.planes = 2;
        make(&toy);
        OKE(RUN("--image-format=png", &err), &err);
        picture p = load(IMAGES "/B01_t0002_stitch.png");
        EQ_I64(p.p.height, cases[i].height);
        EQ_I64(p.p.width, cases[i].width);
        drop(&p);
        EQ_I64(check_places(&toy, "aligned"), 4 * cases[i].tiles);
        EQ_I64(tp_there(&plate, TILES "/master_params.json"), cases[i].tiles > 1);
    }
}

/* Tiles in rows and columns, each a little off: all are found, and the picture is the scene. */
TEST(tiles_in_a_grid)
{
    static const struct {
        int tiles, columns;
        const char *grid, *shape;
        int64_t height, width; /* of tiles of 72 x 96 px */
    } cases[] = {{4, 2, "2x2", "[2,2]", 126, 168}, {6, 3, "2x3", "[2,3]", 126, 240}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[60];
        fth_err err = {0};
        fo_toy toy = usual;
        toy.tiles = cases[i].tiles;
        toy.grid_columns = cases[i].columns;
        toy.planes = 2;
        make(&toy);
        snprintf(words, sizeof words, "--image-format=png --grid=%s", cases[i].grid);
        OKE(RUN(words, &err), &err);
        picture p = load(IMAGES "/B01_t0002_stitch.png");
        EQ_I64(p.p.height, cases[i].height);
        EQ_I64(p.p.width, cases[i].width);
        drop(&p);
        EQ_I64(check_places(&toy, "aligned"), 4 * cases[i].tiles);
        char *text = tp_text(&plate, TILES "/master_params.json");
        HAS(text, cases[i].shape);
        free(text);
        const uint64_t whole = tp_hash(&plate);
        plate.threads = 2;
        OKE(RUN(words, &err), &err);
        snprintf(words, sizeof words, "--image-format=png --grid=%s --overwrite", cases[i].grid);
        OKE(RUN(words, &err), &err);
        plate.threads = 0;
        EQ_U64(tp_hash(&plate), whole);
    }
}

/* The last row of a grid may be short, and a tile may be missing in the middle. */
TEST(a_grid_with_holes)
{
    fth_err err = {0};
    fo_toy toy = usual;
    toy.tiles = 8;
    toy.grid_columns = 3;
    toy.planes = 1;
    make(&toy);
    tp_shell(&plate, "rm " RAW "/XY02/T0001/toy_XY02_00005_*");
    OKE(RUN("--grid=3x3", &err), &err);
    EQ_I64(check_places(&toy, "aligned"), 4 * 8 - 1);
}

TEST(a_grid_that_does_not_fit_is_refused)
{
    static const char *const wrong[] = {"--grid=2", "--grid=0x3", "--grid=2x", "--grid=33x1",
                                        "--grid=axb"};
    fth_err err = {0};
    make(&usual);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        IS(RUN(wrong[i], &err), FTH_E_COMMAND);
        HAS(err.text, "ROWSxCOLUMNS");
    }
    IS(RUN("--grid=1x2 --orientation=vertical", &err), FTH_E_COMMAND);
    HAS(err.text, "has 3 tiles, and the grid 2");
    HAS(err.text, "--grid gives the arrangement of tiles");
    IS(RUN("--grid=1x3 --compat=morphseq", &err), FTH_E_COMMAND);
    HAS(err.text, "only in a line");
}

TEST(a_tile_that_one_time_lacks_is_a_hole)
{
    fth_err err = {0};
    make(&usual);
    tp_shell(&plate, "rm " RAW "/XY02/T0001/toy_XY02_00002_* " RAW
                     "/XY01/T0001/toy_XY01_00001_Z002_CH1.tif");
    OKE(RUN("", &err), &err);
    IS_TRUE(tp_there(&plate, IMAGES "/B01_t0001_stitch.jpg") &&
            !tp_there(&plate, TILES "/ff_B01_t0001/im_p0001.jpg"));
    char *text = tp_text(&plate, RUNS "/stitch.csv");
    IS_TRUE(strstr(text, "\nB01,1,0,") && !strstr(text, "\nB01,1,1,") &&
            strstr(text, "\nB01,1,2,"));
    free(text);
    text = tp_text(&plate, RUNS "/run.json"); /* a plane that is missing is told, and never wins */
    HAS(text, "{\"well\":\"A01\",\"t\":1,\"tile\":0,\"z\":1}");
    free(text);
    text = tp_text(&plate, RUNS "/metrics.csv");
    HAS(text, "\nff_A01_t0001/im_p0000,A01,1,0,3,");
    free(text);
}

TEST(tiles_in_a_column_before_2024)
{
    fth_err err = {0};
    plate = (tp_plate){.exp = "20231207_old", .microscope = "Keyence"};
    tp_make(&plate, "old", &usual);
    OKE(RUN("--image-format=png", &err), &err);
    picture p = load("built_image_data/stitched_FF_images/20231207_old/A01_t0001_stitch.png");
    EQ_I64(p.p.height, 171); /* 1140 and 630 of 640 px */
    EQ_I64(p.p.width, 94);
    drop(&p);
    char *text =
        tp_text(&plate, "built_image_data/Keyence/FF_images/20231207_old/master_params.json");
    HAS(text, "\"shape\": [3,1]");
    free(text);
    plate = (tp_plate){.exp = "someday", .microscope = "Keyence"};
    tp_make(&plate, "someday", &usual);
    IS(RUN("", &err), FTH_E_COMMAND);
    HAS(err.text, "has no year");
    HAS(err.hint, "--orientation vertical");
    OKE(RUN("--orientation=horizontal", &err), &err);
}

TEST(the_new_layout)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("--layout=v2", &err), &err);
    IS_TRUE(
        tp_there(&plate, "built_image_data/" EXP "/stitched_ff_images/A01/BF/A01_BF_t0001.tif"));
    char *text = tp_text(&plate, "experiment_metadata/" EXP "/scope_metadata.csv");
    HAS(text, "\n20250101_toy,20250101_toy_B01,B01,20250101_toy_B01_BF_f0002,2,3.77,72,171,4,1900,"
              "2025-01-01T00:00:00Z,1907,Keyence,BF,,2\n");
    free(text);
}

/* ---- other kinds of files and folders ---- */

/* Hash of the images alone. */
static uint64_t hash_images(void)
{
    char command[3000], text[100] = "";
    snprintf(command, sizeof command, "cd '%s/" IMAGES "' && cat *_stitch.* | cksum", plate.root);
    FILE *f = popen(command, "r");
    IS_TRUE(f && fgets(text, sizeof text, f) != NULL);
    IS_TRUE(pclose(f) == 0);
    return fth_hash_bytes(text, strlen(text), 0);
}

/* A raw file again, as RGB or as 16 bits; its text stays behind it. */
static void rewrite(const char *name, bool rgb)
{
    picture p = load(name);
    size_t n;
    const int64_t count = p.p.height * p.p.width;
    unsigned char *old = t_file_read(tp_path(&plate, name), &n);
    const char *text = memmem(old, n, "<Data>", 6);
    uint8_t *colours = malloc((size_t)(3 * count));
    uint16_t *wide = malloc((size_t)count * sizeof *wide);
    for (int64_t i = 0; i < count; i++) {
        const uint8_t v = ((const uint8_t *)p.p.pixels)[i];
        for (int c = 0; c < 3; c++) colours[3 * i + c] = v;
        wide[i] = (uint16_t)(v * 257);
    }
    fth_picture q = p.p;
    q.pixels = rgb ? (const void *)colours : (const void *)wide;
    q.channels = rgb ? 3 : 1;
    q.dtype = rgb ? FTH_U8 : FTH_U16;
    void *data = NULL;
    uint64_t bytes = 0;
    const fth_picture_format format = {.kind = rgb ? FTH_PICTURE_TIF : FTH_PICTURE_TIF16};
    OK(fth_picture_encode(p.mem, &q, &format, &data, &bytes, NULL));
    FILE *f = fopen(tp_path(&plate, name), "wb");
    const size_t rest = n - (size_t)(text - (const char *)old);
    IS_TRUE(fwrite(data, 1, bytes, f) == bytes && fwrite(text, 1, rest, f) == rest);
    fclose(f);
    fth_mem_release(p.mem, data, NULL);
    free(wide);
    free(colours);
    free(old);
    drop(&p);
}

static void rewrite_all(const fo_toy *toy, bool rgb)
{
    for (int t = 1; t <= toy->times; t++)
        for (int tile = 1; tile <= 3; tile++)
            for (int z = 1; z <= toy->planes; z++) {
                char name[200];
                snprintf(name, sizeof name, RAW "/XY01/T%04d/toy_XY01_%05d_Z%03d_CH1.tif", t, tile,
                         z);
                rewrite(name, rgb);
            }
}

TEST(colours_become_grey_and_16_bits_are_read)
{
    fth_err err = {0};
    fo_toy toy = usual;
    toy.wells = 1;
    toy.planes = 2;
    make(&toy);
    OKE(RUN("--scale=dtype", &err), &err);
    const uint64_t grey = hash_images();
    rewrite_all(&toy, true);
    plate.threads = 2;
    OKE(RUN("--scale=dtype --overwrite", &err), &err);
    EQ_U64(hash_images(), grey);
    make(&toy);
    rewrite_all(&toy, false);
    OKE(RUN("--scale=dtype", &err), &err); /* 257 v of 65535 is v of 255 */
    EQ_U64(hash_images(), grey);
    rewrite(RAW "/XY01/T0001/toy_XY01_00002_Z002_CH1.tif", true);
    IS(RUN("--overwrite", &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "toy_XY01_00002_Z002_CH1.tif: expected y=72 x=96 u16 as in ");
    HAS(err.text, "found y=72 x=96 u8 RGB");
}

TEST(folders_of_a_cytometer)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("", &err), &err);
    const uint64_t images = hash_images();
    tp_shell(&plate,
             "rm -r built_image_data && cd " RAW
             " && for w in 1 2; do for t in 1 2; do for m in 1 2 3; do "
             "d=W00$w/P0000$m/T000$t; mkdir -p $d; for f in "
             "XY0$w/T000$t/*_0000${m}_*; do b=${f##*_0000${m}_}; mv $f $d/e_$b; done; done; "
             "done; mv XY0$w/_* W00$w/; rm -r XY0$w; done");
    OKE(RUN("", &err), &err);
    EQ_U64(hash_images(), images);
}

/* ---- planes put together ---- */

TEST(planes_are_put_together_as_they_are)
{
    fth_err err = {0};
    fo_toy toy = usual;
    toy.tiles = 1;
    make(&toy);
    OKE(RUN("--stitch-z", &err), &err);
    fth_mem *mem = t_mem(1 << 24);
    fth_source stack;
    fth_images *raw = NULL, *images = NULL;
    OKE(fth_images_open(
            &images, mem,
            tp_path(&plate, "built_image_data/Keyence_stitched_z/" EXP "/B01_t0002_stack.tif"),
            NULL, &err),
        &err);
    OK(fth_images_source(images, &stack, NULL));
    const int64_t lo[6] = {0, 0, 2}, n[6] = {1, 1, 1, 1, 72, 96};
    EQ_I64(stack.size[2], 4);
    EQ_I64(stack.dtype, FTH_U8);
    uint8_t a[72 * 96], b[72 * 96];
    OK(stack.read(stack.self, lo, n, a, NULL));
    fth_source_close(&stack);
    fth_images_close(images);
    OK(fth_images_open(&raw, mem, tp_path(&plate, RAW "/XY02/T0002/toy_XY02_00001_Z003_CH1.tif"),
                       NULL, NULL));
    OK(fth_images_source(raw, &stack, NULL));
    const int64_t first[6] = {0};
    OK(stack.read(stack.self, first, n, b, NULL));
    fth_source_close(&stack);
    fth_images_close(raw);
    SAME_BYTES(a, b, sizeof a);
    OK(fth_mem_destroy(mem, NULL));
    /* later, the images stay */
    tp_shell(&plate, "rm -r built_image_data/Keyence_stitched_z");
    OKE(RUN("", &err), &err);
    HAS(plate.said, "0 images made");
    OKE(RUN("--stitch-z", &err), &err);
    IS_TRUE(tp_there(&plate, "built_image_data/Keyence_stitched_z/" EXP "/A01_t0001_stack.tif"));
}

/* ---- refusals ---- */

static void refused(const char *spoil, const char *extra, fth_status status, const char *const *has)
{
    fth_err err = {0};
    make(&usual);
    tp_shell(&plate, "%s", spoil);
    const fth_status s = RUN(extra, &err);
    if (s != status) FAIL("%s: status %d, %s", spoil, (int)s, err.text);
    for (; *has; has++) HAS(err.text, *has);
    tp_shell(&plate, "test ! -e built_image_data && test ! -e metadata/built_metadata_files");
}
#define REFUSED(spoil, extra, status, ...)                                                         \
    refused(spoil, extra, status, (const char *const[]){__VA_ARGS__, NULL})

TEST(all_problems_are_told_and_nothing_is_written)
{
    REFUSED("rm -r " RAW "/*", "", FTH_E_FILE_FORMAT,
            "no well folder; expected folders XY* or W0*");
    REFUSED("rm " RAW "/XY01/_A01 && rm " RAW "/XY02/T*/*", "", FTH_E_FILE_FORMAT,
            "XY01: no entry that begins with \"_\"", "XY02: no images", "2 problems");
    REFUSED("mv " RAW "/XY02/_B01 " RAW "/XY02/_A01", "", FTH_E_FILE_FORMAT,
            "are folders of the same well");
    REFUSED("cd " RAW "/XY01/T0001 && mv toy_XY01_00001_Z001_CH1.tif toy_XY01_00001_CH1.tif && "
            "head -c 500 toy_XY01_00002_Z001_CH1.tif > toy_XY01_00003_Z001_CH1.tif",
            "", FTH_E_FILE_FORMAT, "no plane number", "toy_XY01_00003_Z001_CH1.tif");
    /* a text that is gone, a file of another size and a well without a row, all at once */
    REFUSED("for f in " RAW "/XY01/T0001/*_00001_*; do sed -i 's/LensName/LensGone/g' $f; done && "
            "cp tests_nothing /dev/null 2>&1; cp \"$OLDPWD/tests/golden/focus/tiff/plain.tif\" " RAW
            "/XY02/T0001/toy_XY02_00003_Z004_CH1.tif && sed -i '/^B01/d' " TABLE,
            "", FTH_E_FILE_FORMAT, "no objective", "toy_XY02_00003_Z004_CH1.tif: expected ", "B01");
    REFUSED("rm " TABLE, "", FTH_E_FILE_FORMAT, "no plate workbook");
    REFUSED("true", "--wells=H12,Q9 --times=0:9", FTH_E_COMMAND, "no position shows well 'H12'",
            "there is no well 'Q9'", "--times: 0 to 9, but");
    REFUSED("true", "--channel=4 --map=xy --channels=each --scale=none", FTH_E_COMMAND,
            "no channel '4'; the channels are 1 'Brightfield'",
            "--map: ", "--channels: ", "--scale none: ");
    REFUSED("true", "--overlap=1.5 --blend=soft", FTH_E_COMMAND, "--overlap: ", "--blend: ");
}

TEST(some_wells_and_times)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("--wells=B01 --times=2:3 --channel=CH1", &err), &err);
    IS_TRUE(!tp_there(&plate, IMAGES "/.ff_complete")); /* other wells are not there */
    IS_TRUE(tp_there(&plate, IMAGES "/B01_t0002_stitch.jpg") &&
            !tp_there(&plate, IMAGES "/B01_t0001_stitch.jpg") &&
            !tp_there(&plate, IMAGES "/A01_t0002_stitch.jpg"));
}

TEST(a_tile_that_cannot_be_read_is_told_and_the_others_are_made)
{
    fth_err err = {0};
    make(&usual);
    OKE(RUN("", &err), &err);
    tp_shell(&plate, "rm " IMAGES "/* " RUNS "/stitch.csv && printf 'no picture' > " TILES
                     "/ff_A01_t0002/im_p0001.jpg");
    IS(RUN("", &err), FTH_E_JOB_FAILED);
    HAS(plate.said, "failed  A01_t0002: ");
    HAS(plate.said, "3 images made, 0 existed, 1 failed");
    IS_TRUE(!tp_there(&plate, IMAGES "/.ff_complete") &&
            tp_there(&plate, IMAGES "/A01_t0001_stitch.jpg"));
}

TEST(a_plan_writes_nothing)
{
    fth_err err = {0};
    make(&usual);
    OKE(tp_call(&plate, &fo_verb_plan, "", &err), &err);
    HAS(plate.said, "wells   2 mapped by marker");
    HAS(plate.said, "todo    4 images, 0 done");
    tp_shell(&plate, "test ! -e built_image_data");
}

TEST_MAIN()
