/* test_nd2_read.c - pixels of ND2 files that take the long way: through slots, over the edges of a
 * window, from frames that end with the file, from files that change.
 * seconds: 2 */
#include "testing/io/nd2_made.h"

#include "io/nd2.h"

#include <math.h>

enum { PAGE = 4096 };

typedef struct opened {
    fth_mem *mem;
    fth_images *images;
    fth_source source;
    const char *path;
} opened;

static void open_path(opened *o, const fth_images_options *options)
{
    fth_err err = {0};
    OKE(fth_images_open(&o->images, o->mem, o->path, options, &err), &err);
    OKE(fth_images_source(o->images, &o->source, &err), &err);
}

static opened make(const char *name, const t_nd2_scene *scene, uint64_t budget)
{
    opened o = {.mem = t_mem(budget), .path = t_temp_path(name)};
    fth_err err = {0};
    OKE(fth_nd2_write(o.mem, o.path, scene->o, t_nd2_draw, (void *)(uintptr_t)scene, &err), &err);
    return o;
}

static void close_path(opened *o)
{
    fth_source_close(&o->source);
    fth_images_close(o->images);
}

static void end(opened *o)
{
    close_path(o);
    remove(o->path);
    OK(fth_mem_destroy(o->mem, NULL));
}

/* Where the chunk of a frame begins. */
static size_t frame_at(const unsigned char *data, size_t bytes, int number)
{
    char name[32];
    const int n = snprintf(name, sizeof name, "ImageDataSeq|%d!", number);
    for (size_t at = 0; at + 100 < bytes; at += PAGE)
        if (memcmp(data + at + 16, name, (size_t)n) == 0) return at;
    FAIL("no frame %d", number);
}

/* ---- slots ---- */

/* Rows of packed frames, at the full width too: only these are written. */
TEST(some_rows_of_packed_frames)
{
    for (int64_t x = 8; x < 10; x++) { /* rows without padding, and with */
        const fth_nd2_options o = {.size = {1, 1, 3, 1, 9, x}, .dtype = FTH_U16, .packed = true};
        const t_nd2_scene scene = {.o = &o};
        opened f = make("rows.nd2", &scene, 1 << 24);
        open_path(&f, NULL);
        void *whole = t_nd2_whole(&scene);
        uint16_t got[3 * 9 * 9 + 1];
        for (int64_t lo = 0; lo < 9; lo++)
            for (int64_t n = 1; lo + n <= 9; n++) {
                memset(got, 0xee, sizeof got);
                OK(f.source.read(f.source.self, ((int64_t[]){0, 0, 1, 0, lo, 0}),
                                 ((int64_t[]){1, 1, 1, 1, n, x}), got, NULL));
                SAME_BYTES(got, (uint16_t *)whole + (9 + lo) * x, 2 * n * x);
                EQ_I64(got[n * x], 0xeeee);
            }
        t_source_check(&f.source, whole, 3, 100);
        free(whole);
        end(&f);
    }
}

/* Frames pack to very different lengths; the room is that of the longest, wherever it stands. */
static fth_status draw_uneven(void *user, int64_t t, int64_t p, int64_t z, void *pixels,
                              bool *present, fth_err *err)
{
    uint8_t *v = pixels;
    t_random r = t_random_make(7);
    (void)user, (void)t, (void)p, (void)present, (void)err;
    for (int i = 0; i < 1 << 20; i++)
        v[i] = z == 0 ? (uint8_t)t_random_i64(&r, 0, 255) : (uint8_t)z;
    return FTH_OK;
}

TEST(the_longest_packed_frame_has_room)
{
    const fth_nd2_options o = {.size = {1, 1, 3, 1, 1024, 1024}, .dtype = FTH_U8, .packed = true};
    opened f = {.mem = t_mem(8 << 20), .path = t_temp_path("uneven.nd2")}; /* one slot */
    OK(fth_nd2_write(f.mem, f.path, &o, draw_uneven, NULL, NULL));
    open_path(&f, NULL);
    EQ_U64(((fth__nd2 *)f.images)->frame[1].bytes < 10000, true);
    uint8_t *got = malloc(1 << 20), *wanted = malloc(1 << 20);
    OK(f.source.read(f.source.self, ((int64_t[]){0, 0, 0, 0, 0, 0}),
                     ((int64_t[]){1, 1, 1, 1, 1024, 1024}), got, NULL));
    OK(draw_uneven(NULL, 0, 0, 0, wanted, NULL, NULL));
    SAME_BYTES(got, wanted, 1 << 20);
    fth_mem_stats stats;
    fth_mem_get_stats(f.mem, &stats);
    LE_F64(2 << 20, stats.used_bytes); /* a frame, and one as packed as it ever is */
    free(got);
    free(wanted);
    end(&f);
}

/* What a slot holds is forgotten before something else is unpacked into it. */
TEST(a_frame_behind_a_damaged_one)
{
    const fth_nd2_options o = {
        .size = {1, 1, 3, 1, 100, 101}, .dtype = FTH_U16, .packed = true}; /* padded: by slots */
    const t_nd2_scene scene = {.o = &o};
    opened f = make("behind.nd2", &scene, 1 << 20);
    size_t bytes;
    unsigned char *data = t_file_read(f.path, &bytes);
    const size_t at = frame_at(data, bytes, 1) + PAGE;
    for (size_t i = 12000; i < 12100; i++) data[at + i] ^= 0x5a; /* after half of its rows */
    t_file_write(f.path, data, bytes);
    free(data);
    open_path(&f, NULL);
    uint16_t row[101];
    const int64_t n[6] = {1, 1, 1, 1, 1, 101};
    for (int64_t z = 0; z < 3; z++) {
        for (int k = 0; k < 20; k++) { /* all slots, if there are several */
            const int64_t which = k % 2 ? 1 : z, y = k;
            const fth_status s =
                f.source.read(f.source.self, ((int64_t[]){0, 0, which, 0, y, 0}), n, row, NULL);
            IS(s, which == 1 ? FTH_E_FILE_FORMAT : FTH_OK);
            for (int64_t x = 0; which != 1 && x < 101; x++)
                EQ_F64(row[x], t_nd2_value(&o, ((int64_t[]){0, 0, which, 0, y, x})));
        }
    }
    end(&f);
}

/* A window of 256 KiB has fewer rows than these frames: the next window goes on below. */
TEST(rows_of_several_windows)
{
    const fth_nd2_options o = {.size = {1, 1, 2, 2, 500, 301}, .dtype = FTH_U16};
    const t_nd2_scene scene = {.o = &o};
    opened f = make("windows.nd2", &scene, 1 << 24);
    open_path(&f, NULL);
    uint16_t *whole = t_nd2_whole(&scene), *got = malloc(2 * 500 * 301 * 2);
    const int64_t frame = 2 * 500 * 301;
    OK(f.source.read(f.source.self, ((int64_t[]){0, 0, 1, 0, 0, 0}),
                     ((int64_t[]){1, 1, 1, 2, 500, 301}), got, NULL));
    SAME_BYTES(got, whole + frame, 2 * frame);
    OK(f.source.read(f.source.self, ((int64_t[]){0, 0, 1, 1, 30, 100}),
                     ((int64_t[]){1, 1, 1, 1, 460, 1}), got, NULL));
    for (int64_t y = 0; y < 460; y++) EQ_I64(got[y], whole[frame + (500 + 30 + y) * 301 + 100]);
    free(whole);
    free(got);
    end(&f);
}

/* ---- what is not there ---- */

TEST(missing_frames_are_zero_in_every_channel)
{
    const int64_t missing[] = {1};
    const fth_nd2_options o = {.size = {1, 1, 3, 3, 4, 5}, .dtype = FTH_U16};
    const t_nd2_scene scene = {&o, missing, 1};
    opened f = make("holes.nd2", &scene, 1 << 24);
    open_path(&f, NULL);
    EQ_STR(fth_images_get_info(f.images)->damage,
           "the file was scanned for its chunks; 1 of 3 frames are missing");
    uint16_t got[3 * 3 * 20];
    void *whole = t_nd2_whole(&scene);
    memset(got, 0xff, sizeof got);
    OK(f.source.read(f.source.self, (int64_t[6]){0}, f.source.size, got, NULL));
    SAME_BYTES(got, whole, sizeof got);
    free(whole);
    end(&f);
}

/* Three channels that are no colours stay in their order. */
TEST(only_colours_are_turned_round)
{
    const fth_nd2_options o = {.size = {1, 1, 1, 3, 4, 5}, .dtype = FTH_U8};
    const t_nd2_scene scene = {.o = &o};
    opened f = make("three.nd2", &scene, 1 << 24);
    open_path(&f, &(fth_images_options){.rgb_is_bgr = true});
    uint8_t got[60];
    void *whole = t_nd2_whole(&scene);
    OK(f.source.read(f.source.self, (int64_t[6]){0}, f.source.size, got, NULL));
    SAME_BYTES(got, whole, sizeof got);
    free(whole);
    end(&f);
}

/* Without heights of all points, they have that of the first picture. */
TEST(points_without_a_height)
{
    const fth_images_position at[2] = {{"a", 1, 2, 50}, {"b", 3, 4, (double)NAN}};
    const fth_nd2_options o = {.size = {1, 2, 1, 1, 4, 4}, .dtype = FTH_U16, .position = at};
    const t_nd2_scene scene = {.o = &o};
    opened f = make("height.nd2", &scene, 1 << 24);
    open_path(&f, NULL);
    for (int64_t p = 0; p < 2; p++) EQ_F64(fth_images_get_position(f.images, p).z_um, 50);
    end(&f);
}

/* ---- the end of the file ---- */

/* The last row of a frame may lack its padding, but no pixel. */
TEST(a_frame_that_ends_with_its_last_pixel)
{
    const fth_nd2_options o = {.size = {1, 1, 4, 1, 5, 7}, .dtype = FTH_U8, .row_multiple = 64};
    const t_nd2_scene scene = {.o = &o};
    opened f = make("end.nd2", &scene, 1 << 24);
    size_t bytes;
    unsigned char *data = t_file_read(f.path, &bytes);
    void *whole = t_nd2_whole(&scene);
    const size_t at = frame_at(data, bytes, 3);
    for (size_t cut = 0; cut < 2; cut++) {
        const uint64_t own = 8 + 4 * 64 + 7 - cut;
        memcpy(data + at + 8, &own, 8);
        t_file_write(f.path, data, at + PAGE - 8 + own);
        open_path(&f, NULL);
        EQ_I64(fth_images_get_info(f.images)->frames_present, 4 - (int64_t)cut);
        uint8_t got[4 * 35];
        OK(f.source.read(f.source.self, (int64_t[6]){0}, f.source.size, got, NULL));
        SAME_BYTES(got, whole, (4 - cut) * 35);
        close_path(&f);
    }
    free(data);
    free(whole);
    open_path(&f, NULL);
    end(&f);
}

/* A scan looks at 256 KiB at once: a chunk that begins where such a block ends is found. */
TEST(a_chunk_behind_a_block_without_any)
{
    enum { BLOCK = 256 << 10 };
    const fth_nd2_options o = {.size = {1, 1, 8, 1, 6, 8}, .dtype = FTH_U16};
    const t_nd2_scene scene = {.o = &o};
    opened f = make("block.nd2", &scene, 1 << 24);
    size_t bytes;
    unsigned char *data = t_file_read(f.path, &bytes);
    const size_t at = frame_at(data, bytes, 5), end_at = frame_at(data, bytes, 7) + 2 * PAGE;
    for (size_t more = BLOCK - PAGE; more <= BLOCK + PAGE; more += PAGE) {
        unsigned char *longer = calloc(1, end_at + more);
        memcpy(longer, data, at);
        memcpy(longer + at + more, data + at, end_at - at); /* neither times nor a map behind */
        t_file_write(f.path, longer, end_at + more);
        free(longer);
        open_path(&f, NULL);
        EQ_I64(fth_images_get_info(f.images)->frames_present, 8);
        close_path(&f);
    }
    free(data);
    open_path(&f, NULL);
    end(&f);
}

/* ---- maps that are wrong ---- */

/* The last frame is looked at, whatever the others are like. */
TEST(the_last_frame_is_probed)
{
    const fth_nd2_options o = {.size = {1, 1, 40, 1, 6, 8}, .dtype = FTH_U16};
    const t_nd2_scene scene = {.o = &o};
    opened f = make("probe.nd2", &scene, 1 << 24);
    size_t bytes;
    unsigned char *data = t_file_read(f.path, &bytes);
    const uint64_t wrong = frame_at(data, bytes, 38);
    const size_t map = (size_t)bytes - PAGE * 2;
    for (size_t at = map; at + 40 < bytes; at++)
        if (memcmp(data + at, "ImageDataSeq|39!", 16) == 0) memcpy(data + at + 16, &wrong, 8);
    t_file_write(f.path, data, bytes);
    free(data);
    open_path(&f, NULL);
    EQ_I64(fth_images_get_info(f.images)->frames_repaired, 1);
    uint16_t got[48];
    OK(f.source.read(f.source.self, ((int64_t[]){0, 0, 39, 0, 0, 0}),
                     ((int64_t[]){1, 1, 1, 1, 6, 8}), got, NULL));
    EQ_F64(got[0], t_nd2_value(&o, ((int64_t[]){0, 0, 39, 0, 0, 0})));
    end(&f);
}

/* A frame under the number of another, after the file was opened. */
TEST(a_frame_of_another_number_is_refused)
{
    const fth_nd2_options o = {.size = {1, 1, 4, 1, 6, 8}, .dtype = FTH_U16};
    const t_nd2_scene scene = {.o = &o};
    opened f = make("other.nd2", &scene, 1 << 24);
    size_t bytes;
    fth_err err = {0};
    uint16_t got[48];
    open_path(&f, NULL);
    unsigned char *data = t_file_read(f.path, &bytes);
    memcpy(data + frame_at(data, bytes, 2) + 16, "ImageDataSeq|3!", 15);
    FILE *file = fopen(f.path, "r+b");
    IS_TRUE(fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0);
    free(data);
    IS(f.source.read(f.source.self, ((int64_t[]){0, 0, 2, 0, 0, 0}),
                     ((int64_t[]){1, 1, 1, 1, 6, 8}), got, &err),
       FTH_E_FILE_FORMAT);
    HAS(err.text, "chunk ImageDataSeq|2! should begin here, found ImageDataSeq|3");
    end(&f);
}

/* Times of the list count before those of the frames, of the last frame too. */
TEST(times_of_the_list_come_first)
{
    const double times[3] = {10, 20, 30}, other = 31;
    const fth_nd2_options o = {.size = {3, 1, 1, 1, 4, 4}, .dtype = FTH_U16, .time_ms = times};
    const t_nd2_scene scene = {.o = &o};
    opened f = make("times.nd2", &scene, 1 << 24);
    size_t bytes;
    unsigned char *data = t_file_read(f.path, &bytes);
    memcpy(data + frame_at(data, bytes, 2) + PAGE - 8, &other, 8);
    t_file_write(f.path, data, bytes);
    free(data);
    open_path(&f, NULL);
    EQ_F64(fth_images_get_frame(f.images, 2, 0, 0).time_ms, 30);
    end(&f);
}

TEST_MAIN()
