/* test_splat_scene.c - captures: COLMAP and transforms.json against what a correct loader returns,
 * images of another size, files cut at every byte, and what errors say.
 * seconds: 3 */
#include "instruments/splat/images/masks.h"
#include "instruments/splat/scene/cameras.h"
#include "testing/splat/splat.h"

#include <fathom/json.h>
#include <fathom/pictures.h>
#include <math.h>

static const gs_scene_options plain;

static double number(const fth_json_value *v, int64_t i, int64_t j)
{
    return fth_json_get_real(fth_json_at(fth_json_at(v, i), j), NULL, (double)NAN);
}

static void same_poses(const gs_scene *s, const fth_json_value *want)
{
    for (int64_t v = 0; v < s->views; v++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++)
                NEAR((double)s->view[v].w2c[i][j], number(fth_json_at(want, v), i, j), 5e-6);
}

/* The matrices of the golden capture fit its quaternions to 5.3e-6 only. */
static void same_capture(const gs_scene *s, const fth_json_value *want)
{
    const fth_json_value *images = fth_json_get(want, "images"),
                         *camera = fth_json_at(fth_json_get(want, "cameras"), 0),
                         *first = fth_json_get(fth_json_get(want, "points"), "first");
    EQ_I64(s->views, fth_json_count(images));
    for (int64_t v = 0; v < s->views; v++) {
        const fth_json_value *one = fth_json_at(images, v);
        EQ_STR(fth_texts_get(s->name, v), fth_json_get_text(one, "name", ""));
        for (int k = 0; k < 3; k++) {
            NEAR(s->view[v].centre[k],
                 fth_json_get_real(fth_json_at(fth_json_get(one, "centre"), k), NULL, 9e9), 5e-6);
            for (int j = 0; j < 4; j++)
                NEAR((double)s->view[v].w2c[k][j], number(fth_json_get(one, "w2c"), k, j), 6e-6);
        }
        EQ_I64(s->view[v].width, fth_json_get_int(camera, "width", 0));
        EQ_I64(s->view[v].height, fth_json_get_int(camera, "height", 0));
        const double seen[4] = {s->view[v].fx, s->view[v].fy, s->view[v].cx, s->view[v].cy};
        for (int k = 0; k < 4; k++)
            EQ_F64(seen[k],
                   fth_json_get_real(fth_json_at(fth_json_get(camera, "params"), k), NULL, 0));
    }
    EQ_I64(s->points, fth_json_get_int(fth_json_get(want, "points"), "count", 0));
    for (int k = 0; k < 3; k++) {
        EQ_F64((double)s->point[0][k], number(first, 0, k));
        EQ_I64(s->colour[0][k], (int64_t)number(first, 1, k));
        NEAR(s->centre[k],
             fth_json_get_real(fth_json_at(fth_json_get(want, "scene_center"), k), NULL, 9e9),
             5e-6);
    }
    double scale = 0;
    OK(gs_scene_scale(s, GS_LICHTFELD, &scale, NULL));
    NEAR(scale, fth_json_get_real(want, "scene_scale_lower_median", 0), 5e-6);
    OK(gs_scene_scale(s, GS_CLASSIC, &scale, NULL));
    double most = 0; /* the mean of the cameras is the scene centre here */
    for (int64_t v = 0; v < s->views; v++) {
        double d = 0;
        for (int k = 0; k < 3; k++) d += pow(s->view[v].centre[k] - s->centre[k], 2);
        if (sqrt(d) > most) most = sqrt(d);
    }
    NEAR(scale, 1.1 * most, 1e-9);
}

TEST(colmap_binary_and_text_are_what_a_correct_loader_returns)
{
    fth_mem *mem = t_mem(8 << 20);
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, mem, SPLAT("tiny/expected.json"), NULL));
    for (int binary = 0; binary < 2; binary++) {
        const char *dir = t_splat_capture(mem, binary ? "binary" : "text", binary != 0);
        gs_scene s;
        fth_err err = {0};
        OKE(gs_scene_open(&s, mem, dir, &plain, &err), &err);
        EQ_STR(s.format, binary ? "colmap binary" : "colmap text");
        OKE(gs_scene_match(&s, &err), &err);
        EQ_I64(fth_texts_count(s.notes), 0);
        same_capture(&s, fth_json_root(doc));
        gs_scene_close(&s);
    }
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(transforms_are_inverted_and_turned_only_when_asked)
{
    fth_mem *mem = t_mem(8 << 20);
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, mem, SPLAT("tiny/expected.json"), NULL));
    for (int turn = 0; turn < 2; turn++) {
        gs_scene s;
        fth_err err = {0};
        const gs_scene_options opt = {.legacy_yturn = turn != 0};
        OKE(gs_scene_open(&s, mem, SPLAT("tiny"), &opt, &err), &err);
        EQ_STR(s.format, "transforms");
        OKE(gs_scene_match(&s, &err), &err);
        EQ_I64(s.points, 10000);
        for (int64_t i = 0; i < s.points; i++)
            for (int k = 0; k < 3; k++) IS_TRUE(fabsf(s.point[i][k]) <= 1);
        same_poses(&s, fth_json_get(fth_json_root(doc),
                                    turn ? "transforms_w2c_upstream" : "transforms_w2c_plain"));
        gs_scene_close(&s);
    }
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

/* A capture of COLMAP in a folder of its own, one file of which is replaced. */
static fth_status open_with(fth_mem *mem, const char *dir, const char *file, const void *data,
                            size_t n, fth_err *err)
{
    char path[FTH_PATH];
    gs_scene s;
    snprintf(path, sizeof path, "%.3000s/%s", dir, file);
    FILE *f = fopen(path, "wb");
    IS_TRUE(f && fwrite(data, 1, n, f) == n);
    fclose(f);
    const fth_status st = gs_scene_open(&s, mem, dir, &plain, err);
    if (st == FTH_OK) gs_scene_close(&s);
    return st;
}

TEST(binary_files_cut_at_every_byte_are_refused_with_their_place)
{
    static const char *const file[3] = {"cameras", "images", "points3D"};
    fth_mem *mem = t_mem(8 << 20);
    char dir[FTH_PATH], path[FTH_PATH], name[80];
    snprintf(dir, sizeof dir, "%s", t_splat_capture(mem, "cut", true));
    for (int k = 0; k < 3; k++) {
        size_t n = 0;
        snprintf(name, sizeof name, "sparse/0/%s.bin", file[k]);
        snprintf(path, sizeof path, SPLAT("tiny/%s"), name);
        unsigned char *data = t_file_read(path, &n);
        for (size_t cut = 0; cut < n; cut += cut < 600 ? 1 : 97) {
            fth_err err = {0};
            const fth_status st = open_with(mem, dir, name, data, cut, &err);
            IS_TRUE(st == FTH_E_FILE_SHORT || st == FTH_E_FILE_FORMAT);
            HAS(err.text, file[k]);
            HAS(err.text, "byte");
            HAS(err.text, "expected");
        }
        unsigned char *longer = malloc(n + 1);
        memcpy(longer, data, n);
        longer[n] = 0;
        fth_err err = {0};
        IS(open_with(mem, dir, name, longer, n + 1, &err), FTH_E_FILE_FORMAT);
        HAS(err.text, "1 more bytes");
        memset(longer, 0xff, 8); /* a count that no file could hold */
        IS(open_with(mem, dir, name, longer, n, &err), FTH_E_FILE_FORMAT);
        OK(open_with(mem, dir, name, data, n, NULL));
        free(longer);
        free(data);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* Where a PNG was cut, without decoding it; what lies behind its last chunk does no harm. */
TEST(a_png_cut_short_is_refused_before_it_is_decoded)
{
    fth_mem *mem = t_mem(8 << 20);
    char dir[FTH_PATH], path[FTH_PATH];
    gs_scene s;
    size_t n = 0;
    snprintf(dir, sizeof dir, "%s", t_splat_capture(mem, "cut_png", true));
    OK(gs_scene_open(&s, mem, dir, &plain, NULL));
    OK(gs_scene_image(&s, 1, path, NULL));
    unsigned char *data = t_file_read(path, &n), *longer = calloc(n + 40, 1);
    memcpy(longer, data, n);
    for (size_t cut = 33; cut <= n + 40; cut++) { /* behind the header, which is read anyway */
        fth_err err = {0};
        t_file_write(path, longer, cut);
        const fth_status st = gs_scene_match(&s, &err);
        if (cut >= n) {
            OKE(st, &err);
            continue;
        }
        IS(st, FTH_E_FILE_SHORT);
        HAS(err.text, path);
        HAS(err.text, ": expected chunks of a PNG up to IEND, found the end of the file at byte ");
    }
    free(longer);
    free(data);
    gs_scene_close(&s);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(texts_say_the_line_and_take_names_with_blanks)
{
    static const struct row {
        const char *file, *text, *part;
    } bad[] = {
        {"sparse/cameras.txt", "1 PINHOLE 50 42 46.5 45.25 24.3\n", "cameras.txt:1"},
        {"sparse/cameras.txt", "# c\n1 ROUND 50 42 46.5\n", "cameras.txt:2:3"},
        {"sparse/cameras.txt", "1 EUCM 50 42 46 46 25 21 0.6 1.1\n", "camera 1 has model EUCM"},
        {"sparse/cameras.txt", "1 EQUIRECTANGULAR 50 42 50 42\n", "model EQUIRECTANGULAR"},
        {"sparse/cameras.txt", "1 FOV 50 42 46 46 25 21 0.1\n", "image_undistorter"},
        {"sparse/cameras.txt", "1 PINHOLE 50 0 46 46 25 21\n", "50 x 0"},
        {"sparse/images.txt", "10 1 0 0 0 0 0 4 9 a.png\n\n", "camera 9"},
        {"sparse/images.txt", "10 0 0 0 0 0 0 4 1 a.png\n\n", "quaternion"},
        {"sparse/images.txt", "10 1 0 0 x 0 0 4 1 a.png\n\n", "images.txt:1:10"},
        {"sparse/images.txt", "10 1 0 0 0 0 0 4 1\n\n", "name"},
        {"sparse/points3D.txt", "1 0 0 0 1 2 256 0.5\n", "points3D.txt:1:13"},
    };
    fth_mem *mem = t_mem(8 << 20);
    char dir[FTH_PATH];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fth_err err = {0};
        char text[2000];
        snprintf(dir, sizeof dir, "%s", t_splat_capture(mem, "lines", false));
        const fth_status st =
            open_with(mem, dir, bad[i].file, bad[i].text, strlen(bad[i].text), &err);
        IS_TRUE(st == FTH_E_FILE_FORMAT || st == FTH_E_FILE_FEATURE);
        fth_err_format(&err, text, sizeof text);
        HAS(text, bad[i].part);
    }
    snprintf(dir, sizeof dir, "%s", t_splat_capture(mem, "lines", false));
    static const char named[] = "# x\n10  1 0 0 0 0 0 4 1 my image 1.png \r\n"; /* no second line */
    OK(open_with(mem, dir, "sparse/images.txt", named, sizeof named - 1, NULL));
    gs_scene s;
    OK(gs_scene_open(&s, mem, dir, &plain, NULL));
    EQ_STR(fth_texts_get(s.name, 0), "my image 1.png");
    fth_err err = {0};
    IS(gs_scene_match(&s, &err), FTH_E_FILE_OPEN);
    HAS(err.text, "1 are missing: my image 1.png");
    gs_scene_close(&s);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_camera_of_another_size_follows_its_image)
{
    fth_mem *mem = t_mem(8 << 20);
    char dir[FTH_PATH];
    snprintf(dir, sizeof dir, "%s", t_splat_capture(mem, "size", false));
    static const char cameras[] = "1 PINHOLE 100 126 93 90 48 66\n";
    OK(open_with(mem, dir, "sparse/cameras.txt", cameras, sizeof cameras - 1, NULL));
    gs_scene s;
    OK(gs_scene_open(&s, mem, dir, &plain, NULL));
    OK(gs_scene_match(&s, NULL));
    EQ_I64(s.view[0].width, 50);
    EQ_I64(s.view[0].height, 42);
    NEAR(s.view[0].fx, 46.5, 1e-12);
    NEAR(s.view[0].fy, 30, 1e-12);
    NEAR(s.view[0].cx, 24, 1e-12);
    NEAR(s.view[0].cy, 22, 1e-12);
    EQ_I64(fth_texts_count(s.notes), 1);
    HAS(fth_texts_get(s.notes, 0), "4 images are 50 x 42 px, not 100 x 126");
    gs_scene_close(&s);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(distortion_is_refused_ignored_or_looked_at)
{
    fth_mem *mem = t_mem(8 << 20);
    char dir[FTH_PATH];
    snprintf(dir, sizeof dir, "%s", t_splat_capture(mem, "bent", false));
    static const char cameras[] = "1 SIMPLE_RADIAL 50 42 46.5 25 21 -0.1\n";
    fth_err err = {0};
    IS(open_with(mem, dir, "sparse/cameras.txt", cameras, sizeof cameras - 1, &err),
       FTH_E_FILE_FEATURE);
    HAS(err.text, "4 of 4 views");
    HAS(err.hint, "--ignore-distortion");
    gs_scene s;
    OK(gs_scene_open(&s, mem, dir, &(gs_scene_options){.ignore_distortion = true}, NULL));
    EQ_I64(s.distorted, 0);
    EQ_I64(fth_texts_count(s.notes), 1);
    gs_scene_close(&s);
    OK(gs_scene_open(&s, mem, dir, &(gs_scene_options){.allow_distortion = true}, NULL));
    EQ_I64(s.distorted, 4);
    EQ_F64(s.view[3].bend[GS_BEND_N1], -0.1);
    /* r (1 - 0.1 r^2) grows up to sqrt(10 / 3) */
    IS_TRUE(s.view[0].reach < sqrt(10 / 3.0) && s.view[0].reach > 1.8);
    gs_scene_close(&s);
    IS(gs_scene_open(&s, mem, t_temp_path("nowhere"), &plain, &err), FTH_E_FILE_OPEN);
    OK(fth_mem_destroy(mem, NULL));
}

/* Cameras that are written have their lenses. */
static void same_by_file(const gs_scene *s)
{
    const char *path = t_temp_path("cameras.json");
    gs_scene again;
    OK(gs_scene_write_cameras(s, s->view, path, NULL));
    OK(gs_scene_open(&again, s->mem, path,
                     &(gs_scene_options){.allow_distortion = true, .no_points = true}, NULL));
    for (int64_t v = 0; v < s->views; v++) {
        IS_TRUE(again.view[v].lens == s->view[v].lens && again.view[v].distorted);
        SAME_BYTES(again.view[v].bend, s->view[v].bend, sizeof s->view[v].bend);
        EQ_F64(again.view[v].reach, s->view[v].reach);
    }
    gs_scene_close(&again);
    gs_scene copy;
    OK(gs_scene_open(&copy, s->mem, path,
                     &(gs_scene_options){.allow_distortion = true, .no_points = true}, NULL));
    OK(gs_scene_take_cameras(&copy, path, NULL));
    gs_scene_close(&copy);
}

/* Parameters of COLMAP's models in the order of their files. */
TEST(lenses_have_the_coefficients_of_their_model)
{
    static const struct row {
        const char *text;
        gs_lens lens;
        double bend[GS_BENDS]; /* n1 to n4, d1 to d3, p1, p2 */
    } rows[] = {
        {"RADIAL 50 42 46.5 25 21 0.1 0.2", GS_LENS_RADIAL, {0.1, 0.2}},
        {"OPENCV 50 42 46 47 25 21 0.1 0.2 0.3 0.4",
         GS_LENS_RADIAL,
         {0.1, 0.2, 0, 0, 0, 0, 0, 0.3, 0.4}},
        {"FULL_OPENCV 50 42 46 47 25 21 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8",
         GS_LENS_RADIAL,
         {0.1, 0.2, 0.5, 0, 0.6, 0.7, 0.8, 0.3, 0.4}},
        {"OPENCV_FISHEYE 50 42 46 47 25 21 0.1 0.2 0.3 0.4", GS_LENS_FISHEYE, {0.1, 0.2, 0.3, 0.4}},
        {"RADIAL_FISHEYE 50 42 46 25 21 0.1 0.2", GS_LENS_FISHEYE, {0.1, 0.2}},
        {"SIMPLE_RADIAL_FISHEYE 50 42 46 25 21 0", GS_LENS_FISHEYE, {0}},
        {"SIMPLE_FISHEYE 50 42 46 25 21", GS_LENS_FISHEYE, {0}},
        {"FISHEYE 50 42 46 47 25 21", GS_LENS_FISHEYE, {0}},
    };
    fth_mem *mem = t_mem(8 << 20);
    char dir[FTH_PATH], path[FTH_PATH + 30], text[200];
    snprintf(dir, sizeof dir, "%s", t_splat_capture(mem, "lenses", false));
    snprintf(path, sizeof path, "%s/sparse/cameras.txt", dir);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        gs_scene s;
        snprintf(text, sizeof text, "1 %s\n", rows[k].text);
        OK(fth_file_save(mem, path, text, strlen(text), NULL));
        OK(gs_scene_open(&s, mem, dir, &(gs_scene_options){.allow_distortion = true}, NULL));
        const gs_view *v = &s.view[1];
        IS_TRUE(v->distorted && v->lens == rows[k].lens && v->reach > 0.5);
        SAME_BYTES(v->bend, rows[k].bend, sizeof v->bend);
        same_by_file(&s);
        gs_scene_close(&s);
        OK(gs_scene_open(&s, mem, dir, &(gs_scene_options){.ignore_distortion = true}, NULL));
        IS_TRUE(!s.view[1].distorted && s.view[1].lens == GS_LENS_RADIAL);
        for (int b = 0; b < GS_BENDS; b++) EQ_F64(s.view[1].bend[b], 0);
        gs_scene_close(&s);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* cameras.bin of one camera, with parameters that every model would take. */
static size_t put_camera(unsigned char *to, int32_t model, int parameters)
{
    const struct head {
        uint64_t count;
        uint32_t id;
        int32_t model;
        uint64_t size[2];
    } head = {1, 1, model, {50, 42}};
    const double of[16] = {46, 47, 25, 21, 0.5, 0.5};
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, of, (size_t)parameters * sizeof *of);
    return sizeof head + (size_t)parameters * sizeof *of;
}

TEST(newer_models_of_colmap_are_read_or_refused_by_their_names)
{
    static const struct row {
        int32_t model;
        int parameters;
        const char *part; /* NULL: it is a fisheye */
    } rows[] = {{7, 5, "camera 1 has model FOV"},
                {10, 12, "camera 1 has model THIN_PRISM_FISHEYE"},
                {11, 16, "camera 1 has model RAD_TAN_THIN_PRISM_FISHEYE"},
                {12, 4, "camera 1 has model SIMPLE_DIVISION"},
                {13, 5, "camera 1 has model DIVISION"},
                {14, 3, NULL},
                {15, 4, NULL},
                {16, 6, "camera 1 has model EUCM"},
                {17, 2, "camera 1 has model EQUIRECTANGULAR"},
                {18, 4, "a camera model from 0 to 17, found 18"},
                {-1, 4, "a camera model from 0 to 17, found -1"}};
    fth_mem *mem = t_mem(8 << 20);
    char dir[FTH_PATH], path[FTH_PATH + 30];
    snprintf(dir, sizeof dir, "%s", t_splat_capture(mem, "newer", true));
    for (int i = 0; i < 2; i++) { /* beside the others since 3.12; poses are in images.bin still */
        snprintf(path, sizeof path, "%s/sparse/0/%s", dir, i ? "rigs.bin" : "frames.bin");
        OK(fth_file_save(mem, path, "?", 1, NULL));
    }
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        unsigned char data[200];
        fth_err err = {0};
        gs_scene s;
        const size_t n = put_camera(data, rows[k].model, rows[k].parameters);
        IS(open_with(mem, dir, "sparse/0/cameras.bin", data, n, &err), FTH_E_FILE_FEATURE);
        HAS(err.hint, "image_undistorter");
        if (rows[k].part) {
            HAS(err.text, "cameras.bin, byte 8");
            HAS(err.text, rows[k].part);
            continue;
        }
        OK(gs_scene_open(&s, mem, dir, &(gs_scene_options){.allow_distortion = true}, NULL));
        IS_TRUE(s.view[0].lens == GS_LENS_FISHEYE && s.view[0].distorted);
        EQ_F64(s.view[0].fy, rows[k].model == 14 ? 46 : 47);
        EQ_F64(s.view[0].cx, rows[k].model == 14 ? 47 : 25);
        gs_scene_close(&s);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(transforms_have_comments_frames_of_their_own_and_points)
{
    static const struct row {
        const char *text, *part;
    } bad[] = {
        {"{\"w\": 4, \"h\": 2, \"fl_x\": 3}", "frames"},
        {"{\"w\": 4, \"h\": 2, \"fl_x\": 3, \"frames\": [{\"file_path\": \"a\"}]}", "fl_y"},
        {"{\"w\": 4, \"h\": 4, \"fl_x\": 3, \"frames\": [{\"file_path\": \"a\"}]}",
         "frames[0].transform_matrix"},
        {"{\"w\": 0, \"h\": 4, \"fl_x\": 3, \"frames\": [{\"file_path\": \"a\"}]}", "frames[0].w"},
        {"{\"w\": 4, \"h\": 4, \"fl_x\": 3, \"frames\": [{}]}", "file_path"},
        {"{\"w\": 4,", "2"},
    };
    fth_mem *mem = t_mem(8 << 20);
    const char *path = t_temp_path("t.json");
    gs_scene s;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fth_err err = {0};
        OK(fth_file_save(mem, path, bad[i].text, strlen(bad[i].text), NULL));
        IS(gs_scene_open(&s, mem, path, &plain, &err), FTH_E_FILE_FORMAT);
        if (i < 5) HAS(err.text, bad[i].part);
    }
    static const char good[] =
        "{ // a comment with \"quotes\"\n"
        "\"w\": 4, \"h\": 4, /* two\nlines */ \"camera_angle_x\": 1.5707963267948966,\n"
        "\"frames\": [{\"file_path\": \"./a//b\", \"fl_y\": 7, \"cx\": 1, \"transform_matrix\":\n"
        "[[1,0,0,1],[0,1,0,2],[0,0,1,3],[0,0,0,1]]}]}";
    OK(fth_file_save(mem, path, good, sizeof good - 1, NULL));
    OK(gs_scene_open(&s, mem, path, &plain, NULL));
    EQ_STR(fth_texts_get(s.name, 0), "a//b");
    NEAR(s.view[0].fx, 2, 1e-12);
    EQ_F64(s.view[0].fy, 7);
    EQ_F64(s.view[0].cx, 1);
    EQ_F64(s.view[0].cy, 2);
    for (int k = 0; k < 3; k++) NEAR(s.view[0].centre[k], k + 1, 1e-6);
    gs_scene_close(&s);
    OK(fth_mem_destroy(mem, NULL));
}

static void save_mask(fth_mem *mem, const char *path)
{
    static const uint8_t white[1] = {255};
    const fth_picture p = {
        .dtype = FTH_U8, .height = 1, .width = 1, .channels = 1, .pixels = white};
    OK(fth_picture_save(mem, path, &p, &(fth_picture_format){.kind = FTH_PICTURE_PNG}, NULL));
}

/* Frame 0 has no mask and depth, frames 1 and 2 name masks; as nerfstudio writes them. */
TEST(transforms_name_their_masks)
{
    static const char head[] = "{\"w\": 4, \"h\": 4, \"fl_x\": 3, \"applied_transform\": "
                               "[[0,1,0,0],[1,0,0,0],[0,0,-1,0]], \"frames\": [",
                      pose[] = "\"transform_matrix\": [[1,0,0,1],[0,1,0,2],[0,0,1,3],[0,0,0,1]]";
    static const char *const frame[] = {
        "{\"file_path\": \"images/c.png\", \"depth_file_path\": \"d.png\", ",
        "{\"file_path\": \"images/b.png\", \"mask_path\": \"held/of b.png\", ",
        "{\"file_path\": \"images/a.png\", \"mask_path\": \"held/a.png\", "};
    fth_mem *mem = t_mem(8 << 20);
    char text[900], path[FTH_PATH];
    gs_masks masks;
    gs_scene s;
    fth_err err = {0};
    snprintf(text, sizeof text, "%s%s%s},%s%s},%s%s}]}", head, frame[0], pose, frame[1], pose,
             frame[2], pose);
    OK(fth_folder_make_all(mem, t_temp_path("cover/held"), NULL));
    OK(fth_folder_make_all(mem, t_temp_path("cover/masks"), NULL));
    OK(fth_file_save(mem, t_temp_path("cover/transforms.json"), text, strlen(text), NULL));
    save_mask(mem, t_temp_path("cover/held/of b.png"));
    save_mask(mem, t_temp_path("cover/masks/c.png"));
    for (int sorted = 0; sorted < 2; sorted++) {
        const gs_scene_options how = {.by_name = sorted != 0, .no_points = true};
        OKE(gs_scene_open(&s, mem, t_temp_path("cover"), &how, &err), &err);
        EQ_I64(fth_texts_count(s.notes), 1);
        HAS(fth_texts_get(s.notes, 0), "depth_file_path of 1 frames");
        for (int k = 0; k < 3; k++) NEAR(s.view[0].centre[k], k + 1, 1e-6); /* as they stand */
        if (!sorted) {
            IS(gs_masks_open(&masks, &s, NULL, &err), FTH_E_FILE_OPEN);
            HAS(err.text, "held/a.png: expected the mask of 'images/a.png'");
            save_mask(mem, t_temp_path("cover/held/a.png"));
        }
        OK(gs_masks_open(&masks, &s, NULL, NULL));
        EQ_I64(masks.views, 3);
        for (int64_t v = 0; v < 3; v++) {
            const char *name = fth_texts_get(s.name, v);
            IS_TRUE(gs_masks_find(&masks, &s, v, path));
            HAS(path, strcmp(name, "images/a.png") == 0   ? "cover/held/a.png"
                      : strcmp(name, "images/b.png") == 0 ? "cover/held/of b.png"
                                                          : "cover/masks/c.png");
        }
        OK(gs_masks_open(&masks, &s, "masks", NULL)); /* a folder stands for all of them */
        EQ_I64(masks.views, 1);
        OK(gs_masks_open(&masks, &s, "none", NULL));
        EQ_I64(masks.views, 0);
        IS_TRUE(!gs_masks_find(&masks, &s, 1, path));
        gs_scene_close(&s);
    }
    snprintf(text, sizeof text, "%s{\"mask_path\": 3, \"file_path\": \"a\", %s}]}", head, pose);
    OK(fth_file_save(mem, t_temp_path("cover/transforms.json"), text, strlen(text), NULL));
    err = (fth_err){0};
    IS(gs_scene_open(&s, mem, t_temp_path("cover"), &plain, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "frames[0].mask_path: expected the path of an image, found no text");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(transforms_name_their_camera_model)
{
    static const char head[] =
        "{\"w\": 4, \"h\": 4, \"fl_x\": 3, \"k1\": 0.1, \"k4\": 0.4, \"p2\": 0.2, ",
                      tail[] = "\"frames\": [{\"file_path\": \"a\", \"transform_matrix\": "
                               "[[1,0,0,1],[0,1,0,2],[0,0,1,3],[0,0,0,1]]}]}";
    static const struct row {
        const char *model;
        gs_lens lens;
    } rows[] = {{"", GS_LENS_RADIAL},
                {"\"camera_model\": \"OPENCV\", ", GS_LENS_RADIAL},
                {"\"camera_model\": \"OPENCV_FISHEYE\", ", GS_LENS_FISHEYE},
                {"\"is_fisheye\": true, ", GS_LENS_FISHEYE},
                {"\"is_fisheye\": false, ", GS_LENS_RADIAL},
                {"\"camera_model\": \"EQUIRECTANGULAR\", ", GS_LENS_UNKNOWN}};
    fth_mem *mem = t_mem(8 << 20);
    const char *path = t_temp_path("models.json");
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        char text[500];
        fth_err err = {0};
        gs_scene s;
        snprintf(text, sizeof text, "%s%s%s", head, rows[k].model, tail);
        OK(fth_file_save(mem, path, text, strlen(text), NULL));
        const fth_status st =
            gs_scene_open(&s, mem, path, &(gs_scene_options){.allow_distortion = true}, &err);
        if (rows[k].lens == GS_LENS_UNKNOWN) {
            IS(st, FTH_E_FILE_FEATURE);
            HAS(err.text, "found 'EQUIRECTANGULAR'");
            continue;
        }
        OKE(st, &err);
        const gs_view *v = &s.view[0];
        IS_TRUE(v->distorted && v->lens == rows[k].lens);
        EQ_F64(v->bend[GS_BEND_N1], 0.1);
        EQ_F64(v->bend[GS_BEND_N4], 0.4);
        EQ_F64(v->bend[GS_BEND_P2], v->lens == GS_LENS_FISHEYE ? 0 : 0.2);
        gs_scene_close(&s);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
