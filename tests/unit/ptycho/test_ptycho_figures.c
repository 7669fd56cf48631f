/* test_ptycho_figures.c - pictures of a reconstruction: which files, equal bytes, what they count.
 * seconds: 4 */
#include "instruments/ptycho/figures/pictures.h"
#include "instruments/ptycho/figures/view.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include <math.h>

enum { H = 96, W = 120, N = 32, MODES = 2, PATTERNS = 30 };

typedef struct scene {
    fth_mem *mem;
    fth_c64 object[H * W];
    fth_c128 probe[MODES * N * N];
    double errors[20], xy[2 * PATTERNS];
    pt_pictures p;
} scene;

static scene *make(void)
{
    static scene s;
    s.mem = t_mem(256u << 20);
    for (int i = 0; i < H * W; i++) {
        const double y = i / W, x = i % W, a = 1 + 0.5 * sin(y / 7) * cos(x / 9), f = sin(x / 20);
        s.object[i] = (fth_c64){(float)(a * cos(f)), (float)(a * sin(f))};
    }
    for (int m = 0; m < MODES; m++)
        for (int i = 0; i < N * N; i++) {
            const double y = i / N - 15.5, x = i % N - 15.5, r2 = x * x + y * y;
            s.probe[m * N * N + i] =
                (fth_c128){exp(-r2 / 60) * (m ? x / 20 : 1), 0.3 * exp(-r2 / 90)};
        }
    for (int i = 0; i < 20; i++) s.errors[i] = 0.5 * exp(-i / 4.0) + 0.01;
    for (int i = 0; i < PATTERNS; i++) {
        s.xy[2 * i] = 100 + 20 + 15 * (i % 6);
        s.xy[2 * i + 1] = -50 + 18 + 14 * (double)(i / 6);
    }
    s.p = (pt_pictures){.mem = s.mem,
                        .object = s.object,
                        .object_dtype = FTH_C64,
                        .rows = H,
                        .cols = W,
                        .probe = s.probe,
                        .probe_dtype = FTH_C128,
                        .modes = MODES,
                        .side = N,
                        .errors = s.errors,
                        .n_errors = 20,
                        .x = s.xy,
                        .y = s.xy + 1,
                        .xy_stride = 2,
                        .n_patterns = PATTERNS,
                        .origin_x = 100,
                        .origin_y = -50,
                        .pixel_m = 2e-8};
    return &s;
}

static uint64_t hash_of(fth_mem *mem, const char *folder, const char *name)
{
    char path[FTH_PATH];
    uint64_t hash = 0;
    fth_err err = {0};
    OKE(fth_path_join(path, folder, name, &err), &err);
    OKE(fth_file_hash(mem, path, &hash, &err), &err);
    return hash;
}

TEST(files_of_what_is_there)
{
    static const char *const name[] = {PT_AMPLITUDE_PNG, PT_PHASE_PNG, PT_PROBE_PNG, PT_ERRORS_PNG,
                                       PT_OVERLAP_PNG};
    scene *s = make();
    fth_err err = {0};
    char folder[FTH_PATH], path[FTH_PATH];
    uint64_t bytes = 0, hash[5];
    snprintf(folder, sizeof folder, "%s", t_temp_path("pictures"));
    OKE(fth_folder_make_all(s->mem, folder, &err), &err);
    OKE(pt_figures_reconstruction(&s->p, folder, &bytes, &err), &err);
    IS_TRUE(bytes > 1000000);
    OKE(fth_path_join(path, folder, name[0], &err), &err);
    IS_TRUE(!fth_path_exists(path)); /* a plan draws nothing */
    fth_mem_mark(s->mem);
    fth_mem_stats before, after;
    fth_mem_get_stats(s->mem, &before);
    OKE(pt_figures_reconstruction(&s->p, folder, NULL, &err), &err);
    fth_mem_get_stats(s->mem, &after);
    LE_F64(after.peak_bytes - before.used_bytes, bytes + (600u << 10));
    for (int i = 0; i < 5; i++) hash[i] = hash_of(s->mem, folder, name[i]);
    OKE(pt_figures_reconstruction(&s->p, folder, NULL, &err), &err);
    for (int i = 0; i < 5; i++) EQ_U64(hash_of(s->mem, folder, name[i]), hash[i]);
    for (int i = 0; i < 5; i++) {
        OKE(fth_path_join(path, folder, name[i], &err), &err);
        OKE(fth_path_remove(s->mem, path, &err), &err);
    }
    s->p.errors = NULL;
    s->p.n_patterns = 0;
    OKE(pt_figures_reconstruction(&s->p, folder, NULL, &err), &err);
    OKE(fth_path_join(path, folder, PT_ERRORS_PNG, &err), &err);
    IS_TRUE(!fth_path_exists(path));
    OKE(fth_path_join(path, folder, PT_OVERLAP_PNG, &err), &err);
    IS_TRUE(!fth_path_exists(path));
    OKE(fth_mem_destroy(s->mem, &err), &err);
}

TEST(overlap_counts_patterns)
{
    scene *s = make();
    fth_err err = {0};
    static float map[H * (W + 1)];
    /* a flat disc has exactly its own area */
    static fth_c128 disc[N * N];
    for (int i = 0; i < N * N; i++) {
        const int y = i / N - 16, x = i % N - 16;
        disc[i] = (fth_c128){x * x + y * y <= 64 ? 1 : 0, 0};
    }
    s->p.probe = disc;
    s->p.modes = 1;
    s->p.n_patterns = 2;
    s->xy[0] = 100 + 40;
    s->xy[1] = -50 + 50;
    s->xy[2] = 100 + 46;
    s->xy[3] = -50 + 50;
    pt_overlap_fill(&s->p, map);
    EQ_F64(map[50 * (W + 1) + 43], 2); /* between the two */
    EQ_F64(map[50 * (W + 1) + 34], 1); /* left of the second */
    EQ_F64(map[50 * (W + 1) + 60], 0);
    EQ_F64(map[62 * (W + 1) + 43], 0);
    double sum = 0;
    for (int64_t i = 0; i < H * (W + 1); i++) sum += (double)map[i];
    NEAR(sum, 2 * 197, 8); /* 197 pixels lie within 8 of the middle */
    s->xy[0] = 90; /* outside the canvas: what is inside counts, nothing is written beyond */
    s->xy[1] = 1e9;
    pt_overlap_fill(&s->p, map);
    EQ_F64(map[50 * (W + 1) + 43], 1);
    OKE(fth_mem_destroy(s->mem, &err), &err);
}

TEST(views_and_scale_bars)
{
    fth_err err = {0};
    const fth_c64 v[4] = {{3, 4}, {0, -2}, {-1, 0}, {9, 0}};
    float out[4];
    pt_view view = {.data = v, .dtype = FTH_C64, .rows = 2, .cols = 2, .part = PT_VIEW_PHASE};
    const fth_source s = pt_view_source(&view);
    OKE(s.read(s.self, (int64_t[]){0, 0}, (int64_t[]){2, 2}, out, &err), &err);
    NEAR(out[0], atan2(4, 3), 1e-6);
    NEAR(out[1], -1.5707963267948966, 1e-6);
    view.part = PT_VIEW_AMPLITUDE;
    OKE(s.read(s.self, (int64_t[]){0, 0}, (int64_t[]){2, 1}, out, &err), &err);
    EQ_F64(out[0], 5);
    EQ_F64(out[1], 1);
    view.part = PT_VIEW_LOG;
    OKE(s.read(s.self, (int64_t[]){1, 1}, (int64_t[]){1, 1}, out, &err), &err);
    EQ_F64(out[0], 1);
    char label[32];
    NEAR(pt_scale_bar(500, 2e-8, label, sizeof label), 100, 1e-9);
    EQ_STR(label, "2 um");
    NEAR(pt_scale_bar(100, 1e-11, label, sizeof label), 20, 1e-9);
    EQ_STR(label, "200 pm");
    EQ_F64(pt_scale_bar(100, 0, label, sizeof label), 0);
}

TEST_MAIN()
