/* test_nd2_many.c - ND2 files of many frames, and many threads that read one.
 * seconds: 2 */
#include "testing/io/nd2_made.h"

#include "base/clock.h"
#include "io/nd2.h"

#include <pthread.h>

/* A file of the size of an experiment: its frames are holes, and only some have heads. */
static void check_opening(int64_t t, int64_t p, int64_t z, double most_seconds)
{
    const fth_nd2_options o = {.size = {t, p, z, 1, 2189, 1152}, .dtype = FTH_U16, .period_ms = 10};
    const int64_t n = t * p * z;
    const char *path = t_temp_path("many.nd2");
    fth_mem *mem = t_mem(1 << 28);
    fth_err err = {0};
    fth_images *images = NULL;
    OKE(fth__nd2_write(mem, path, &o, NULL, NULL, n / 16, &err), &err);
    double best = 1e9;
    for (int rep = 0; rep < 3; rep++) {
        fth_images_close(images);
        const int64_t from = fth__clock_ns();
        OKE(fth_images_open(&images, mem, path, NULL, &err), &err);
        const double took = (double)(fth__clock_ns() - from) * 1e-9;
        best = took < best ? took : best;
    }
    const fth_images_info *info = fth_images_get_info(images);
    EQ_STR(info->damage, "");
    EQ_I64(info->frames_present, n);
    EQ_F64(fth_images_get_frame(images, t - 1, p - 1, z - 1).time_ms, (double)(t - 1) * 10);
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    IS_TRUE(stats.asked_bytes <= (uint64_t)n * 24);
    if (!T_SANITIZED) LE_F64(best, most_seconds);
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(an_experiment_opens_in_100_ms)
{
    check_opening(57, 92, 17, 0.1);
}

TEST(a_quarter_of_a_million_frames_open_in_100_ms)
{
    check_opening(2640, 96, 1, 0.1);
}

static fth_status draw_but_one(void *user, int64_t t, int64_t p, int64_t z, void *pixels,
                               bool *present, fth_err *err)
{
    int64_t *number = user;
    (void)t, (void)p, (void)z, (void)pixels, (void)err;
    *present = (*number)++ != 1000;
    return FTH_OK;
}

/* A frame that the map leaves out is looked for between the others alone: they are not even there
 * to be looked at. */
TEST(a_frame_left_out_of_many_costs_no_look_at_all)
{
    const fth_nd2_options o = {.size = {57, 92, 17, 1, 2, 4}, .dtype = FTH_U16};
    const int64_t n = 57 * 92 * 17;
    const char *path = t_temp_path("gap.nd2");
    fth_mem *mem = t_mem(1 << 28);
    fth_images *images = NULL;
    fth_err err = {0};
    int64_t number = 0;
    OKE(fth__nd2_write(mem, path, &o, draw_but_one, &number, n / 16, &err), &err);
    const int64_t from = fth__clock_ns();
    OKE(fth_images_open(&images, mem, path, NULL, &err), &err);
    const double took = (double)(fth__clock_ns() - from) * 1e-9;
    EQ_I64(fth_images_get_info(images)->frames_present, n - 1);
    EQ_I64(fth_images_get_info(images)->frames_repaired, 0);
    HAS(fth_images_get_info(images)->damage, "1 of 89148 frames are missing");
    IS_TRUE(!fth_images_get_frame(images, 0, 58, 14).present); /* number 1000 */
    if (!T_SANITIZED) LE_F64(took, 1);
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- threads ---- */

enum { THREADS = 4, READS = 100 };

typedef struct share {
    const fth_source *source;
    const uint16_t *whole;
    uint64_t stream;
    int64_t wrong;
} share;

static void *read_rectangles(void *user)
{
    share *w = user;
    t_random rnd = {w->stream};
    const int64_t *size = w->source->size;
    const int64_t count = size[0] * size[1] * size[2] * size[3] * size[4] * size[5];
    uint16_t *got = malloc((size_t)count * 2);
    for (int i = 0; i < READS; i++) {
        int64_t lo[6], n[6];
        for (int a = 0; a < 6; a++) {
            lo[a] = t_random_i64(&rnd, 0, size[a] - 1);
            n[a] = t_random_i64(&rnd, 1, size[a] - lo[a]);
        }
        if (w->source->read(w->source->self, lo, n, got, NULL) != FTH_OK) w->wrong++;
        int64_t k = 0, at[6];
        for (at[0] = 0; at[0] < n[0]; at[0]++)
            for (at[1] = 0; at[1] < n[1]; at[1]++)
                for (at[2] = 0; at[2] < n[2]; at[2]++)
                    for (at[3] = 0; at[3] < n[3]; at[3]++)
                        for (at[4] = 0; at[4] < n[4]; at[4]++)
                            for (at[5] = 0; at[5] < n[5]; at[5]++, k++) {
                                int64_t from = 0;
                                for (int a = 0; a < 6; a++) from = from * size[a] + lo[a] + at[a];
                                w->wrong += got[k] != w->whole[from];
                            }
    }
    free(got);
    return NULL;
}

static void check_threads(int64_t channels, int64_t width, bool packed, uint64_t budget)
{
    const fth_nd2_options o = {
        .size = {2, 2, 2, channels, 48, width}, .dtype = FTH_U16, .packed = packed};
    const t_nd2_scene scene = {.o = &o};
    const char *path = t_temp_path("threads.nd2");
    fth_mem *mem = t_mem(budget);
    fth_images *images = NULL;
    fth_source source;
    pthread_t thread[THREADS];
    share work[THREADS];
    OK(fth_nd2_write(mem, path, &o, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    OK(fth_images_open(&images, mem, path, NULL, NULL));
    OK(fth_images_source(images, &source, NULL));
    fth_images_close(images);
    void *whole = t_nd2_whole(&scene);
    for (int i = 0; i < THREADS; i++) {
        work[i] = (share){&source, whole, (uint64_t)i + t_seed(), 0};
        IS_TRUE(pthread_create(&thread[i], NULL, read_rectangles, &work[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        EQ_I64(work[i].wrong, 0);
    }
    free(whole);
    fth_source_close(&source);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(threads_read_one_source_at_once)
{
    check_threads(1, 64, false, 1 << 24);
    check_threads(2, 61, false, 1 << 24);
    check_threads(1, 64, true, 1 << 24);
    check_threads(2, 61, true, 1 << 24);
}

/* One slot is all that fits: threads take turns. */
TEST(threads_wait_for_a_slot_where_memory_is_tight)
{
    check_threads(2, 61, false, 1 << 19);
}

TEST_MAIN()
