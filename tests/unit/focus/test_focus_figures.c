/* test_focus_figures.c - figures of a plate: what they read, that they are drawn, that bytes are as
 * planned. seconds: 2 */
#include "instruments/focus/figures/last_images.h"
#include "instruments/focus/figures/plate_figures.h"
#include "testing/io/files.h"

#include <fathom/files.h>
#include <fathom/pictures.h>

#include <math.h>

typedef struct bench {
    fth_mem *mem;
    fth_err err;
    fo_quality q;
} bench;

static fth_status read_text(bench *b, const char *text)
{
    const char *path = t_temp_path("metrics.csv");
    t_file_write(path, text, strlen(text));
    fo_quality_free(&b->q);
    fth_err_clear(&b->err);
    return fo_quality_read(&b->q, b->mem, path, &b->err);
}

static const char head[] = "name,well,t,c,n_total,n_sharp,n_stable,n_kept,peak_log,mean_log,best_z,"
                           "min_corr,median_corr,lo,hi,saturated\n";

/* A plate of some wells over 20 time points, whose focus drifts. */
static void make_plate(bench *b)
{
    fth_lines t;
    fth_lines_begin(&t, b->mem);
    fth_lines_add(&t, "%s", head);
    for (int w = 0; w < FO_WELLS; w += 5)
        for (int i = 0; i < 20; i++) {
            char name[FO_WELL_NAME];
            fth_lines_add(&t, "x,%s,%d,0,17,17,17,17,%d,100,%d,0.9,0.95,1,2,0\n",
                          fo_well_name(w, name), i, 1000 + 40 * w + i, 6 + i / 4 + w % 3);
        }
    OKE(fth_lines_save(&t, t_temp_path("plate.csv"), &b->err), &b->err);
    OKE(fo_quality_read(&b->q, b->mem, t_temp_path("plate.csv"), &b->err), &b->err);
}

TEST(metrics_are_read_by_their_columns)
{
    bench b = {.mem = t_mem(1 << 22)};
    char text[1000];
    snprintf(text, sizeof text, "%s%s", head,
             "a,A01,0,0,1,1,1,1,10.5,9,3,0.5,0.5,1,2,0\nb,p001,2,0,1,1,1,1,11,9,4,,0.5,1,2,0\nb,"
             "A01,1,1,1,1,1,1,12,9,4,1,1,1,2,0\n");
    OKE(read_text(&b, text), &b.err);
    EQ_I64(b.q.n, 2); /* the other channel does not count */
    EQ_I64(b.q.times, 3);
    EQ_I64(b.q.row[0].well, 0);
    EQ_F64(b.q.row[0].sharpness, 10.5);
    EQ_I64(b.q.row[1].well, -1);
    IS_TRUE(isnan(b.q.row[1].min_corr));
    IS(read_text(&b, "name,well,t,c,peak_log\nx,A01,0,0,1\n"), FTH_E_FILE_KEY);
    HAS(b.err.text, "no column \"best_z\"");
    snprintf(text, sizeof text, "%sa,A01,0,0,1,1,1,1,ten,9,3,0.5,0.5,1,2,0\n", head);
    IS(read_text(&b, text), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "row 2: peak_log is \"ten\"");
    fth_err_clear(&b.err);
    OKE(fth_mem_destroy(b.mem, &b.err), &b.err);
}

/* Planned bytes are enough, and just enough to matter: the file is drawn within them. */
static void check_drawn(bench *b, fth_status (*draw)(bench *b, const char *path, uint64_t *bytes),
                        const char *name)
{
    char path[FTH_PATH];
    uint64_t bytes = 0;
    fth_mem_stats before, after;
    snprintf(path, sizeof path, "%s", t_temp_path(name));
    OKE(draw(b, path, &bytes), &b->err);
    IS_TRUE(!t_file_exists(path));
    fth_mem_mark(b->mem);
    fth_mem_get_stats(b->mem, &before);
    OKE(draw(b, path, NULL), &b->err);
    fth_mem_get_stats(b->mem, &after);
    IS_TRUE(after.peak_bytes - before.used_bytes <= bytes);
    size_t n;
    unsigned char *file = t_file_read(path, &n);
    IS_TRUE(n > 1000);
    free(file);
}

static fth_status sharpness(bench *b, const char *path, uint64_t *bytes)
{
    return fo_draw_sharpness(&b->q, path, bytes, &b->err);
}

static fth_status focus(bench *b, const char *path, uint64_t *bytes)
{
    return fo_draw_focus(&b->q, path, bytes, &b->err);
}

static fth_status times(bench *b, const char *path, uint64_t *bytes)
{
    double seconds[20];
    for (int i = 0; i < 20; i++) seconds[i] = 1800.0 * i + (i > 12 ? 9000 : 0);
    return fo_draw_times(b->mem, seconds, 20, path, bytes, &b->err);
}

static fth_status sheet(bench *b, const char *path, uint64_t *bytes)
{
    const char *image[FO_WELLS] = {NULL};
    image[0] = image[13] = image[95] = "tests/golden/focus/synth_T2P3Z5.nd2";
    return fo_draw_sheet(b->mem, image, "20250912, last time point", path, bytes, &b->err);
}

TEST(figures_are_drawn_within_their_bytes)
{
    bench b = {.mem = t_mem(64 << 20)};
    make_plate(&b);
    check_drawn(&b, sharpness, "sharpness.png");
    check_drawn(&b, focus, "focus.png");
    check_drawn(&b, times, "times.svg");
    check_drawn(&b, sheet, "sheet.png");
    fo_quality_free(&b.q);
    OKE(fth_mem_destroy(b.mem, &b.err), &b.err);
}

TEST(a_plate_without_numbers_is_drawn_too)
{
    bench b = {.mem = t_mem(64 << 20)};
    OKE(read_text(&b, head), &b.err);
    EQ_I64(b.q.n, 0);
    check_drawn(&b, sharpness, "none.png");
    check_drawn(&b, focus, "none2.png");
    OKE(fo_draw_times(b.mem, NULL, 0, t_temp_path("none3.png"), NULL, &b.err), &b.err);
    fo_quality_free(&b.q);
    OKE(fth_mem_destroy(b.mem, &b.err), &b.err);
}

TEST(a_sheet_with_an_image_that_cannot_be_read_is_refused)
{
    bench b = {.mem = t_mem(64 << 20)};
    const char *image[FO_WELLS] = {NULL};
    image[3] = "tests/golden/focus/keyence_like_header.bin";
    const fth_status s = fo_draw_sheet(b.mem, image, "", t_temp_path("bad.png"), NULL, &b.err);
    EQ_I64(fth_status_get_info(s)->exit_code, 3);
    HAS(b.err.text, "keyence_like_header.bin");
    IS_TRUE(!t_file_exists(t_temp_path("bad.png")));
    OKE(fth_mem_destroy(b.mem, NULL), NULL);
}

TEST(the_last_image_of_each_well_is_found)
{
    const struct {
        const char *name;
        int well;
        int64_t t;
    } names[] = {{"A01_t0012_ch00_stitch.jpg", 0, 12},
                 {"H12_t0000_stitch.png", 95, 0},
                 {"B02_BF_t0003.tif", 13, 3},
                 {"A01_t0012_ch00_stitch.depth.tif", -1, 0},
                 {"A01_t0012_ch00_stitch.txt", -1, 0},
                 {"Z01_t0012.jpg", -1, 0},
                 {"A01_stitch.jpg", -1, 0},
                 {"A01.jpg", -1, 0}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int well = -1;
        int64_t t = 0;
        const bool is = fo_image_name_parse(names[i].name, &well, &t);
        if (is != (names[i].well >= 0)) FAIL("%s", names[i].name);
        if (is) EQ_I64(well, names[i].well);
        if (is) EQ_I64(t, names[i].t);
    }
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    const char *file[] = {"plate/A01_t0002_ch00_stitch.jpg", "plate/A01_t0010_ch00_stitch.jpg",
                          "plate/A01_t0010_ch01_stitch.jpg", "plate/B02/BF/B02_BF_t0003.tif",
                          "plate/.ff_complete"};
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        char parent[FTH_PATH];
        OK(fth_path_parent(parent, t_temp_path(file[i]), NULL));
        OK(fth_folder_make_all(mem, parent, NULL));
        t_file_write(t_temp_path(file[i]), "", 0);
    }
    fo_last_images last;
    OKE(fo_last_images_find(&last, mem, t_temp_path("plate"), &err), &err);
    EQ_I64(last.wells, 2);
    HAS(fth_texts_get(last.paths, last.path[0]), "A01_t0010_ch00_stitch.jpg");
    HAS(fth_texts_get(last.paths, last.path[13]), "B02/BF/B02_BF_t0003.tif");
    fo_last_images_free(&last);
    OK(fth_mem_destroy(mem, NULL));
}
/* ---- shades of the contact sheet ---- */

/* The box of all pixels of one shade of a drawn page, how many they are, and their mean place:
 * letters have some of every shade. */
typedef struct box {
    int64_t y0, y1, x0, x1, n;
    double y, x;
} box;

static box find_shade(const fth_picture *p, int shade)
{
    const uint8_t *v = p->pixels;
    box b = {p->height, -1, p->width, -1, 0, 0, 0};
    for (int64_t i = 0; i < p->height * p->width; i++) {
        const uint8_t *px = v + i * p->channels;
        if (px[0] != shade || px[p->channels - 1] != shade) continue;
        const int64_t y = i / p->width, x = i % p->width;
        if (y < b.y0) b.y0 = y;
        if (y > b.y1) b.y1 = y;
        if (x < b.x0) b.x0 = x;
        if (x > b.x1) b.x1 = x;
        b.y += (double)y;
        b.x += (double)x;
        b.n++;
    }
    b.y /= (double)b.n;
    b.x /= (double)b.n;
    return b;
}

/* Images of 8 and 16 bits have the shades of their means, in the place of their wells. */
TEST(images_lie_at_their_wells)
{
    enum { N = 320, EMPTY = 236 };
    static uint8_t eight[N * N];
    static uint16_t sixteen[N * N];
    bench b = {.mem = t_mem(1 << 27)};
    char path[3][FTH_PATH];
    const char *image[FO_WELLS] = {NULL};
    for (int i = 0; i < N * N; i++) {
        eight[i] = (uint8_t)(100 + (i / N + i) % 2); /* 100.5 becomes 101 */
        sixteen[i] = 51400;                          /* 200 of 255 */
    }
    for (int i = 0; i < 2; i++) {
        const fth_picture p = {i ? FTH_U16 : FTH_U8, N, N, 1, i ? (void *)sixteen : eight, 0};
        snprintf(path[i], FTH_PATH, "%s/shade%d.tif", t_temp_dir(), i);
        OK(fth_picture_save(b.mem, path[i], &p,
                            &(fth_picture_format){.kind = i ? FTH_PICTURE_TIF16 : FTH_PICTURE_TIF},
                            NULL));
    }
    image[2 * FO_COLUMNS + 4] = path[0]; /* C05 */
    image[7 * FO_COLUMNS + 11] = path[1];
    snprintf(path[2], FTH_PATH, "%s/shades.png", t_temp_dir());
    OKE(fo_draw_sheet(b.mem, image, "shades", path[2], NULL, &b.err), &b.err);
    fth_picture drawn;
    OK(fth_picture_load(b.mem, path[2], &drawn, NULL));
    const box all = find_shade(&drawn, EMPTY), c05 = find_shade(&drawn, 101),
              h12 = find_shade(&drawn, 200);
    const double cell_x = (double)(all.x1 - all.x0 + 1) / FO_COLUMNS,
                 cell_y = (double)(all.y1 - all.y0 + 1) / FO_ROWS;
    LE_F64(0.5 * cell_x * cell_y, c05.n);
    LE_F64(0.5 * cell_x * cell_y, h12.n);
    NEAR(c05.x, (double)all.x0 + 4.5 * cell_x, 0.2 * cell_x);
    NEAR(c05.y, (double)all.y0 + 2.5 * cell_y, 0.2 * cell_y);
    NEAR(h12.x, (double)all.x0 + 11.5 * cell_x, 0.2 * cell_x);
    NEAR(h12.y, (double)all.y0 + 7.5 * cell_y, 0.2 * cell_y);
    fth_picture_free(b.mem, &drawn);
    for (int i = 0; i < 3; i++) remove(path[i]);
    OK(fth_mem_destroy(b.mem, NULL));
}
