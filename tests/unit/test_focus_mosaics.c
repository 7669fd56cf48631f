/* test_focus_mosaics.c - `fathom focus run` of a plate of tiles: places, images, tables, resume and
 * refusals.
 *
 * seconds: 6 */
#include "instruments/focus/stitch/mosaic.h"
#include "instruments/focus/toy/scene.h"
#include "testing/focus_plate.h"

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
        double y, x, score;
        int64_t true_y, true_x, least = INT64_MAX;
        EQ_I64(sscanf(at, "%c01,%d,%d,%lf,%lf,%lf,%19s", &well, &t, &tile, &y, &x, &score, word),
               7);
        for (int k = 0; k < 3; k++) {
            fo_toy_offset(&of, well - 'A', k, &true_y, &true_x);
            least = true_y < least ? true_y : least;
        }
        fo_toy_offset(&of, well - 'A', tile, &true_y, &true_x);
        NEAR(y, (double)(true_y - least), 0.5);
        NEAR(x, (double)true_x, 0.5);
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

TEST_MAIN()
