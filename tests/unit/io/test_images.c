/* test_images.c - image files of any format: how they are recognised, and what is past their ends.
 * seconds: 1 */
#include "testing/io/nd2_made.h"

#include <math.h>

TEST(what_is_no_image_is_refused_with_all_formats)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_images *images = (fth_images *)mem;
    fth_err err = {0};
    const char *path = t_temp_path("text.nd2");
    t_file_write(path, "it has the right name", 21);
    IS(fth_images_open(&images, mem, path, NULL, &err), FTH_E_FILE_FORMAT);
    EQ_PTR(images, NULL);
    HAS(err.text, path);
    HAS(err.text, "ND2");
    t_file_write(path, "", 0);
    IS(fth_images_open(&images, mem, path, NULL, &err), FTH_E_FILE_FORMAT);
    remove(path);
    IS(fth_images_open(&images, mem, path, NULL, &err), FTH_E_FILE_OPEN);
    IS(fth_images_open(&images, mem, t_temp_dir(), NULL, &err), FTH_E_FILE_FORMAT);
    fth_images_close(NULL);
    OK(fth_mem_destroy(mem, NULL));
}

/* By its content, whatever its name. */
TEST(past_the_last_nothing_is_known)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("picture.txt");
    const fth_nd2_options o = {.size = {2, 1, 3, 1, 4, 4}, .dtype = FTH_U16};
    const t_nd2_scene scene = {.o = &o};
    fth_images *images = NULL;
    OK(fth_nd2_write(mem, path, &o, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    OK(fth_images_open(&images, mem, path, NULL, NULL));
    EQ_STR(fth_images_get_info(images)->format, "nd2");
    EQ_STR(fth_images_channel(images, 0), "channel 1");
    EQ_PTR(fth_images_channel(images, 1), NULL);
    EQ_PTR(fth_images_channel(images, -1), NULL);
    const fth_images_position far = fth_images_get_position(images, 1);
    EQ_STR(far.name, "");
    IS_TRUE(isnan(far.x_um) && isnan(far.y_um) && isnan(far.z_um));
    static const int64_t outside[][3] = {{2, 0, 0}, {0, 1, 0}, {0, 0, 3}, {-1, 0, 0}, {0, 0, -1}};
    for (int i = 0; i < 5; i++) {
        const fth_images_frame f =
            fth_images_get_frame(images, outside[i][0], outside[i][1], outside[i][2]);
        IS_TRUE(!f.present && !f.repaired && isnan(f.time_ms) && isnan(f.z_um));
    }
    IS_TRUE(fth_images_get_frame(images, 1, 0, 2).present);
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
