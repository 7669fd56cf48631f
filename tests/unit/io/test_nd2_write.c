/* test_nd2_write.c - ND2 files written and read back: layouts, dtypes, loops, metadata, holes.
 * seconds: 2 */
#include "testing/io/nd2_made.h"

#include <math.h>

/* Write, open, compare every pixel; the open images are the caller's. */
static fth_images *round_trip(fth_mem *mem, const char *path, const t_nd2_scene *scene,
                              const fth_images_options *options)
{
    fth_err err = {0};
    fth_images *images = NULL;
    fth_source source;
    OKE(fth_nd2_write(mem, path, scene->o, t_nd2_draw, (void *)(uintptr_t)scene, &err), &err);
    OKE(fth_images_open(&images, mem, path, options, &err), &err);
    OKE(fth_images_source(images, &source, &err), &err);
    IS_TRUE(source.concurrent);
    EQ_I64(source.dtype, scene->o->dtype);
    fth_tensor *got = NULL;
    OKE(fth_source_load(&source, mem, "got", &got, &err), &err);
    for (int a = 0; a < FTH_IMAGES_AXES; a++) EQ_I64(source.size[a], scene->o->size[a]);
    void *wanted = t_nd2_whole(scene);
    SAME_BYTES(fth_tensor_data(got), wanted, fth_tensor_bytes(got));
    t_source_check(&source, wanted, 5, 40);
    free(wanted);
    fth_tensor_release(got);
    fth_source_close(&source);
    return images;
}

/* Every dtype, one to three channels, padding, packed or not. */
TEST(all_layouts_come_back)
{
    static const fth_dtype dtypes[] = {FTH_U8, FTH_U16, FTH_F32};
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("made.nd2");
    for (int k = 0; k < 3; k++)
        for (int64_t c = 1; c <= 3; c++)
            for (int packed = 0; packed < 2; packed++)
                for (int64_t x = 8; x < 10; x++) {
                    const fth_nd2_options o = {
                        .size = {2, 2, 3, c, 5, x}, .dtype = dtypes[k], .packed = packed};
                    const t_nd2_scene scene = {.o = &o};
                    fth_images *images = round_trip(mem, path, &scene, NULL);
                    const fth_images_info *info = fth_images_get_info(images);
                    EQ_STR(info->damage, "");
                    EQ_STR(info->axes, c > 1 ? "tpzcyx" : "tpzyx");
                    EQ_I64(info->frames_present, 12);
                    EQ_I64(info->significant_bits, 8 * fth_dtype_size(dtypes[k]));
                    fth_images_close(images);
                }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(rows_may_be_padded_by_any_amount)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("padded.nd2");
    static const int multiples[] = {1, 2, 64, 4096};
    for (int i = 0; i < 4; i++) {
        const fth_nd2_options o = {
            .size = {1, 1, 3, 1, 4, 7}, .dtype = FTH_U8, .row_multiple = multiples[i]};
        const t_nd2_scene scene = {.o = &o};
        fth_images_close(round_trip(mem, path, &scene, NULL));
    }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Whatever the order in the file, the axes are t p z; "axes" tells the file's own. */
TEST(loops_nest_in_any_order)
{
    static const char *const orders[] = {"tpz", "tzp", "ptz", "pzt", "ztp", "zpt"};
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("order.nd2");
    for (int i = 0; i < 6; i++) {
        char axes[8];
        const fth_nd2_options o = {
            .size = {2, 3, 4, 1, 3, 4}, .dtype = FTH_U16, .order = orders[i], .period_ms = 100};
        const t_nd2_scene scene = {.o = &o};
        fth_images *images = round_trip(mem, path, &scene, NULL);
        snprintf(axes, sizeof axes, "%syx", orders[i]);
        EQ_STR(fth_images_get_info(images)->axes, axes);
        EQ_F64(fth_images_get_frame(images, 1, 2, 3).time_ms, 100);
        EQ_F64(fth_images_get_frame(images, 0, 2, 3).time_ms, 0);
        fth_images_close(images);
    }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(axes_of_one_are_left_out)
{
    static const struct {
        int64_t t, p, z;
        const char *axes;
    } cases[] = {{1, 1, 1, "yx"},  {3, 1, 1, "tyx"},  {1, 3, 1, "pyx"},
                 {1, 1, 3, "zyx"}, {3, 1, 2, "tzyx"}, {1, 2, 3, "pzyx"}};
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("one.nd2");
    for (int i = 0; i < 6; i++) {
        const fth_nd2_options o = {.size = {cases[i].t, cases[i].p, cases[i].z, 1, 4, 4},
                                   .dtype = FTH_U16};
        const t_nd2_scene scene = {.o = &o};
        fth_images *images = round_trip(mem, path, &scene, NULL);
        EQ_STR(fth_images_get_info(images)->axes, cases[i].axes);
        EQ_STR(fth_images_get_info(images)->damage, "");
        fth_images_close(images);
    }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(metadata_come_back)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("meta.nd2");
    const fth_images_position at[2] = {{"A01", -52000.5, 31000, 1990}, {"Säule 2 😀", 1, 2, 3}};
    const char *const channels[2] = {"EYES - Dia", "5-FAM/pH 9.0"};
    double times[12];
    for (int i = 0; i < 12; i++) times[i] = 10.5 * i + 0.25;
    const fth_nd2_options o = {.size = {2, 2, 3, 2, 4, 4},
                               .dtype = FTH_U16,
                               .significant_bits = 12,
                               .um_per_px = 3.2347,
                               .z_step_um = 25,
                               .period_ms = 1.9e6,
                               .unix_seconds = 1760000000,
                               .objective = "Plan Apo λ 4x",
                               .description = "line one\nline two",
                               .channel = channels,
                               .position = at,
                               .time_ms = times};
    const t_nd2_scene scene = {.o = &o};
    fth_images *images = round_trip(mem, path, &scene, NULL);
    const fth_images_info *info = fth_images_get_info(images);
    EQ_I64(info->significant_bits, 12);
    EQ_F64(info->um_per_px, 3.2347);
    EQ_F64(info->z_step_um, 25);
    EQ_F64(info->period_ms, 1.9e6);
    NEAR(info->unix_seconds, 1760000000, 1e-4);
    EQ_F64(info->magnification, 4); /* from the name */
    EQ_STR(info->objective, "Plan Apo λ 4x");
    EQ_STR(info->description, "line one\nline two");
    for (int64_t c = 0; c < 2; c++) EQ_STR(fth_images_channel(images, c), channels[c]);
    for (int64_t p = 0; p < 2; p++) {
        const fth_images_position got = fth_images_get_position(images, p);
        EQ_STR(got.name, at[p].name);
        EQ_F64(got.x_um, at[p].x_um);
        EQ_F64(got.y_um, at[p].y_um);
        EQ_F64(got.z_um, at[p].z_um);
    }
    for (int64_t i = 0; i < 12; i++) {
        const fth_images_frame f = fth_images_get_frame(images, i / 6, i / 3 % 2, i % 3);
        EQ_F64(f.time_ms, times[i]);
        EQ_F64(f.x_um, at[i / 3 % 2].x_um);
        EQ_F64(f.z_um, at[i / 3 % 2].z_um - 25); /* home is the plane in the middle */
        IS_TRUE(f.present && !f.repaired);
    }
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Home is plane 1 of four, as far from the lowest as the writer says. */
TEST(the_stage_of_a_stack_is_that_of_its_lowest_plane)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("home.nd2");
    const fth_images_position at = {"A01", 1, 2, 100};
    const fth_nd2_options o = {
        .size = {1, 1, 4, 1, 4, 4}, .dtype = FTH_U16, .z_step_um = 5, .position = &at};
    const t_nd2_scene scene = {.o = &o};
    fth_images *images = round_trip(mem, path, &scene, NULL);
    EQ_F64(fth_images_get_frame(images, 0, 0, 0).z_um, 95);
    EQ_F64(fth_images_get_frame(images, 0, 0, 3).z_um, 95);
    EQ_F64(fth_images_get_position(images, 0).z_um, 100);
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(colour_pictures_say_so_and_can_be_turned_round)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("rgb.nd2");
    const fth_nd2_options o = {.size = {1, 1, 2, 3, 4, 5}, .dtype = FTH_U8, .rgb = true};
    const t_nd2_scene scene = {.o = &o};
    fth_images *images = round_trip(mem, path, &scene, NULL);
    IS_TRUE(fth_images_get_info(images)->rgb);
    EQ_STR(fth_images_channel(images, 0), "red");
    EQ_STR(fth_images_channel(images, 2), "blue");
    fth_images_close(images);

    const fth_images_options turned = {.rgb_is_bgr = true};
    fth_source source;
    uint8_t red[20];
    OK(fth_images_open(&images, mem, path, &turned, NULL));
    OK(fth_images_source(images, &source, NULL));
    OK(source.read(source.self, ((int64_t[]){0, 0, 1, 0, 0, 0}), ((int64_t[]){1, 1, 1, 1, 4, 5}),
                   red, NULL));
    for (int64_t i = 0; i < 20; i++)
        EQ_F64(red[i], t_nd2_value(&o, ((int64_t[]){0, 0, 1, 2, i / 5, i % 5})));
    fth_source_close(&source);
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(frames_left_out_are_missing)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("holes.nd2");
    const fth_nd2_options o = {.size = {2, 2, 3, 1, 4, 5}, .dtype = FTH_U16};
    const int64_t missing[] = {0, 7, 11};
    const t_nd2_scene scene = {&o, missing, 3};
    fth_images *images = round_trip(mem, path, &scene, NULL);
    EQ_I64(fth_images_get_info(images)->frames_present, 9);
    EQ_I64(fth_images_get_info(images)->frames_repaired, 0);
    HAS(fth_images_get_info(images)->damage, "3 of 12 frames are missing");
    IS_TRUE(!fth_images_get_frame(images, 0, 0, 0).present);
    IS_TRUE(!fth_images_get_frame(images, 1, 0, 1).present);
    IS_TRUE(fth_images_get_frame(images, 1, 0, 2).present);
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_source_is_copied)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("first.nd2"), *copy = t_temp_path("copy.nd2");
    const fth_nd2_options o = {.size = {2, 1, 3, 2, 4, 5}, .dtype = FTH_U16};
    const t_nd2_scene scene = {.o = &o};
    fth_images *images = round_trip(mem, path, &scene, NULL), *again = NULL;
    fth_source source, second;
    OK(fth_images_source(images, &source, NULL));
    OK(fth_nd2_write_source(mem, copy, &(fth_nd2_options){.packed = true}, &source, NULL));
    OK(fth_images_open(&again, mem, copy, NULL, NULL));
    OK(fth_images_source(again, &second, NULL));
    void *whole = t_nd2_whole(&scene);
    t_source_check(&second, whole, 6, 10);
    free(whole);
    fth_source_close(&source);
    fth_source_close(&second);
    fth_images_close(images);
    fth_images_close(again);
    remove(path);
    remove(copy);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_makes_no_sense_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("bad.nd2");
    const fth_nd2_options good = {.size = {1, 1, 1, 1, 4, 4}, .dtype = FTH_U16};
    fth_nd2_options o = good;
    fth_err err = {0};
    o.dtype = FTH_F64;
    IS(fth_nd2_write(mem, path, &o, NULL, NULL, &err), FTH_E_DTYPE_OP);
    HAS(err.text, "u8, u16 and f32, not f64");
    o = good;
    o.size[2] = 0;
    IS(fth_nd2_write(mem, path, &o, NULL, NULL, &err), FTH_E_USAGE);
    o = good;
    o.order = "tpp";
    IS(fth_nd2_write(mem, path, &o, NULL, NULL, &err), FTH_E_USAGE);
    o.order = "tpzz";
    IS(fth_nd2_write(mem, path, &o, NULL, NULL, &err), FTH_E_USAGE);
    o = good;
    o.rgb = true;
    IS(fth_nd2_write(mem, path, &o, NULL, NULL, &err), FTH_E_USAGE);
    o = good;
    o.size[0] = o.size[1] = 1 << 23;
    IS(fth_nd2_write(mem, path, &o, NULL, NULL, &err), FTH_E_USAGE);
    IS(fth_nd2_write(mem, path, NULL, NULL, NULL, &err), FTH_E_USAGE);
    IS(fth_nd2_write_source(mem, path, &good, NULL, &err), FTH_E_USAGE);
    IS_TRUE(!t_file_exists(path));
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
