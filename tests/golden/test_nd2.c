/* test_nd2.c - ND2 files against what another reader of the format says of them.
 *
 * nd2_expected.json holds sizes, calibration, times, stage and the checksum of each frame (bytes as
 * c y x). cluster.nd2 comes from a microscope; the others were made for these tests.
 * seconds: 2 */
#include "testing/io/files.h"

#include "text/deflate.h"

#include <fathom/images.h>
#include <fathom/json.h>

#include <math.h>

#define FOCUS(name) "tests/golden/focus/" name

typedef struct opened {
    fth_mem *mem;
    fth_images *images;
    const fth_images_info *info;
    fth_source source;
    fth_json *doc;
    const fth_json_value *expected;
} opened;

static opened open_file(const char *path, const char *name)
{
    opened o = {.mem = t_mem(1 << 24)};
    fth_err err = {0};
    OKE(fth_images_open(&o.images, o.mem, path, NULL, &err), &err);
    o.info = fth_images_get_info(o.images);
    OKE(fth_images_source(o.images, &o.source, &err), &err);
    OKE(fth_json_load(&o.doc, o.mem, FOCUS("nd2_expected.json"), &err), &err);
    o.expected = fth_json_get(fth_json_root(o.doc), name);
    IS_TRUE(o.expected != NULL);
    return o;
}

static void close_file(opened *o)
{
    fth_json_destroy(o->doc);
    fth_images_close(o->images);
    fth_source_close(&o->source); /* it lives on after its images */
    OK(fth_mem_destroy(o->mem, NULL));
}

static int64_t axis_size(const fth_json_value *sizes, char axis)
{
    const char key[2] = {(char)(axis - 'a' + 'A'), 0};
    return fth_json_get_int(sizes, key, 1);
}

static void check_shape(const opened *o)
{
    const fth_json_value *sizes = fth_json_get(o->expected, "sizes");
    for (int a = 0; a < FTH_IMAGES_AXES; a++) {
        EQ_I64(o->info->size[a], axis_size(sizes, "tpzcyx"[a]));
        EQ_I64(o->source.size[a], o->info->size[a]);
    }
    EQ_I64((int64_t)strlen(o->info->axes), fth_json_count(sizes));
    const fth_json_value *voxel = fth_json_get(o->expected, "voxel");
    if (!voxel) return;
    EQ_F64(o->info->um_per_px, fth_json_get_real(fth_json_at(voxel, 0), NULL, 0));
    EQ_F64(o->info->z_step_um, fth_json_get_real(fth_json_at(voxel, 2), NULL, 0));
}

/* Number `i` of a list of the file's own order, which is t p z here. */
static void check_frames(const opened *o)
{
    const int64_t *size = o->info->size;
    const fth_json_value *crcs = fth_json_get(o->expected, "frame_crc32");
    const uint64_t bytes = (uint64_t)(size[3] * size[4] * size[5] * fth_dtype_size(o->info->dtype));
    EQ_I64(fth_json_count(crcs), size[0] * size[1] * size[2]);
    void *frame = malloc(bytes);
    int64_t i = 0;
    for (int64_t t = 0; t < size[0]; t++)
        for (int64_t p = 0; p < size[1]; p++)
            for (int64_t z = 0; z < size[2]; z++, i++) {
                const int64_t lo[6] = {t, p, z}, n[6] = {1, 1, 1, size[3], size[4], size[5]};
                OK(o->source.read(o->source.self, lo, n, frame, NULL));
                EQ_U64(fth__crc32(0, frame, bytes),
                       fth_json_get_u64(fth_json_at(crcs, i), NULL, 0));
            }
    free(frame);
}

static void check_rectangles(const opened *o, uint64_t stream)
{
    fth_tensor *whole = NULL;
    OK(fth_source_load(&o->source, o->mem, "whole", &whole, NULL));
    t_source_check(&o->source, fth_tensor_data(whole), stream, 60);
    fth_tensor_release(whole);
}

static void check_synth(const char *path, const char *name, int64_t missing)
{
    opened o = open_file(path, name);
    check_shape(&o);
    EQ_STR(o.info->format, "nd2");
    EQ_STR(o.info->axes, "tpzyx");
    EQ_I64(o.info->dtype, FTH_U16);
    EQ_F64(o.info->period_ms, 600000);
    EQ_F64(o.info->unix_seconds, (2460000.5 - 2440587.5) * 86400);
    EQ_F64(o.info->magnification, 4);
    EQ_STR(o.info->objective, fth_json_get_text(o.expected, "objective", ""));
    EQ_STR(o.info->description, "synthetic test file");
    EQ_STR(fth_images_channel(o.images, 0), fth_json_get_text(o.expected, "channel", ""));
    EQ_PTR(fth_images_channel(o.images, 1), NULL);
    EQ_I64(o.info->frames_expected, 30);
    EQ_I64(o.info->frames_present, 30 - missing);
    const fth_images_frame f = fth_images_get_frame(o.images, 0, 1, 2); /* number 7 */
    const fth_json_value *stage = fth_json_get(o.expected, "stage_frame7");
    EQ_F64(f.time_ms, fth_json_get_real(o.expected, "time_frame7_ms", 0));
    EQ_F64(f.x_um, fth_json_get_real(fth_json_at(stage, 0), NULL, 0));
    EQ_F64(f.y_um, fth_json_get_real(fth_json_at(stage, 1), NULL, 0));
    EQ_F64(f.z_um, fth_json_get_real(fth_json_at(stage, 2), NULL, 0));
    EQ_STR(fth_images_get_position(o.images, 1).name,
           fth_json_get_text(o.expected, "pos_name7", ""));
    check_frames(&o);
    check_rectangles(&o, 1);
    close_file(&o);
}

TEST(uncompressed_with_padded_rows)
{
    check_synth(FOCUS("synth_T2P3Z5.nd2"), "synth_T2P3Z5.nd2", 0);
}

TEST(packed)
{
    check_synth(FOCUS("synth_T2P3Z5_zlib.nd2"), "synth_T2P3Z5_zlib.nd2", 0);
}

TEST(frames_left_out_read_as_zeros)
{
    check_synth(FOCUS("synth_T2P3Z5_missing.nd2"), "synth_T2P3Z5_missing.nd2", 2);
}

TEST(two_channels_are_taken_apart)
{
    opened o = open_file(FOCUS("synth_Z5C2.nd2"), "synth_Z5C2.nd2");
    check_shape(&o);
    EQ_STR(o.info->axes, "zcyx");
    EQ_STR(fth_images_channel(o.images, 0), "EYES - GFP");
    EQ_STR(fth_images_channel(o.images, 1), "BF");
    check_rectangles(&o, 2);
    close_file(&o);
}

/* Where the attributes stand behind the frames, they go with the end of the file. */
TEST(a_file_without_its_end_has_no_size)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("cut.nd2");
    fth_images *images = NULL;
    fth_err err = {0};
    size_t bytes = 0;
    unsigned char *file = t_file_read(FOCUS("synth_Z5C2.nd2"), &bytes);
    t_file_write(path, file, 50000);
    free(file);
    IS(fth_images_open(&images, mem, path, NULL, &err), FTH_E_FILE_SHORT);
    HAS(err.text, path);
    HAS(err.text, "ImageAttributesLV!");
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_file_of_a_microscope)
{
    opened o = open_file(t_data_path("focus/cluster.nd2"), "cluster.nd2");
    check_shape(&o);
    EQ_STR(o.info->axes, "tzcyx");
    EQ_STR(o.info->damage, "");
    EQ_I64(o.info->significant_bits, fth_json_get_int(o.expected, "bits_significant", 0));
    EQ_STR(o.info->objective, fth_json_get_text(o.expected, "objective", ""));
    EQ_F64(o.info->magnification, 60);
    EQ_I64(o.info->frames_present, 30);
    EQ_I64(o.info->frames_repaired, 0);
    const fth_json_value *names = fth_json_get(o.expected, "channels");
    const fth_json_value *times = fth_json_get(o.expected, "time_ms");
    for (int64_t c = 0; c < 2; c++)
        EQ_STR(fth_images_channel(o.images, c), fth_json_get_text(fth_json_at(names, c), NULL, ""));
    for (int64_t i = 0; i < 30; i++) {
        const fth_images_frame f = fth_images_get_frame(o.images, i / 10, 0, i % 10);
        EQ_F64(f.time_ms, fth_json_get_real(fth_json_at(times, i), NULL, 0));
        NEAR(f.x_um, -26056.95, 0.01); /* as recorded */
        NEAR(f.z_um, 3916.76, 5);
    }
    check_frames(&o);
    check_rectangles(&o, 3);
    close_file(&o);
}

TEST_MAIN()
