/* test_bragg_writers.c - int, PGM and noise pixels from golden float images, byte for byte.
 *
 * Given the float image of the reference program, every file that it wrote of it comes out of the
 * writers: all 44 cases whose float image is kept, by the hashes of their files. Headers are taken
 * from the kept files here where there are some; test_bragg_cases.c makes them from flags.
 * seconds: 5 */
#include "instruments/bragg/image/image.h"
#include "testing/bragg/bragg_golden.h"

#include <math.h>

typedef struct setting {
    br_scene scene;
    double adc, int_scale, pgm_scale;
    br_ran1 random;
    int threads;
    uint64_t memory;
} setting;

/* What the writers need of a command line. */
static setting setting_of(const bg_case *c)
{
    setting s = {.adc = 40, .threads = 2, .memory = 64 << 20};
    char text[1000], *word[BG_WORDS];
    const int n = bg_words(c->args, text, sizeof text, word);
    memset(&s.scene, 0, sizeof s.scene);
    s.scene.quirks = BR_QUIRKS_C;
    s.scene.fast = s.scene.slow = 64;
    br_ran1_clear(&s.random);
    for (int i = 0; i + 1 < n; i++) {
        const double x = atof(word[i + 1]);
        if (!strcmp(word[i], "-detpixels")) s.scene.fast = s.scene.slow = (int64_t)x;
        if (!strcmp(word[i], "-detpixels_f")) s.scene.fast = (int64_t)x;
        if (!strcmp(word[i], "-detpixels_s")) s.scene.slow = (int64_t)x;
        if (!strcmp(word[i], "-img")) s.scene.fast = 48;
        if (!strcmp(word[i], "-adc")) s.adc = x;
        if (!strcmp(word[i], "-scale")) s.int_scale = x;
        if (!strcmp(word[i], "-pgmscale")) s.pgm_scale = x;
        if (!strcmp(word[i], "-seed")) s.random.seed = -(int64_t)x;
    }
    EQ_I64(s.scene.fast * s.scene.slow, c->pixels);
    s.scene.roi[1] = s.scene.fast - 1;
    s.scene.roi[3] = s.scene.slow - 1;
    for (int i = 0; i + 4 < n; i++)
        for (int k = 0; !strcmp(word[i], "-roi") && k < 4; k++)
            s.scene.roi[k] = atoi(word[i + 1 + k]);
    return s;
}

/* 15.1, in the order of the reference. Masked pixels are 0 in all cases and do not count: their
 * number is only needed for the average, which the case knows. */
static void set_scales(setting *s, const bg_case *c, const float *image, int64_t masked)
{
    const br_scene *r = &s->scene;
    double spread = 0, n = 0, max = 0;
    const double area = (double)((r->roi[1] - r->roi[0] + 1) * (r->roi[3] - r->roi[2] + 1));
    const double average = c->sum / (area - (double)masked);
    for (int64_t i = 0; i < c->pixels; i++) {
        const int64_t f = i % r->fast, sl = i / r->fast;
        if (f < r->roi[0] || f > r->roi[1] || sl < r->roi[2] || sl > r->roi[3]) continue;
        const double x = (double)image[i];
        spread += (x - average) * (x - average);
        n++;
        if (x > max) max = x;
    }
    const double rmsd = sqrt(spread / (n - 1));
    EQ_F64(max, c->max);
    if (s->int_scale <= 0) s->int_scale = 55000 / max;
    if (s->pgm_scale <= 0) s->pgm_scale = 250 / (5 * rmsd);
}

typedef struct stored {
    uint16_t *ints, *noise;
    uint8_t *pgm;
    double photons;
    int64_t overloads, chunks;
} stored;

static fth_sink memory_sink(fth_mem *mem, fth_tensor **t, fth_dtype dtype, const br_scene *s,
                            void *to)
{
    OK(fth_tensor_wrap(t, mem, "out", dtype, 2, ((int64_t[]){s->slow, s->fast}), to, NULL));
    return fth_tensor_sink(*t);
}

/* A source that can only be read, so that the pass has to go through it in pieces. */
static fth_status read_image(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    const fth_source *from = self;
    return from->read(from->self, lo, n, dst, err);
}

static stored store(const setting *st, float *image)
{
    const br_scene *s = &st->scene;
    const size_t n = (size_t)(s->fast * s->slow);
    stored out = {.ints = malloc(2 * n), .noise = malloc(2 * n), .pgm = malloc(n)};
    fth_options opt;
    fth_err err = {0};
    fth_context *ctx = NULL;
    fth_tensor *t[4];
    fth_options_default(&opt);
    opt.threads = st->threads;
    opt.mem.budget_bytes = 256 << 20;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_mem *mem = fth_context_mem(ctx);
    (void)memory_sink(mem, &t[3], FTH_F32, s, image);
    fth_source whole = fth_tensor_source(t[3]), streamed = whole;
    streamed.data = NULL;
    streamed.self = &whole;
    streamed.read = read_image;
    streamed.read_rows = NULL;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "slow", s->slow);
    fth_axis(g, "fast", s->fast);
    const fth_val in = fth_input(g, "image", FTH_F32, "slow fast", streamed);
    const br_noise noise =
        br_noise_pixels(s, in, &st->random, (int64_t)(0 - (uint64_t)st->random.seed), st->adc);
    const fth_val outs[5] = {br_int_pixels(s, in, fth_const(g, FTH_F64, st->int_scale), st->adc),
                             br_pgm_pixels(in, fth_const(g, FTH_F64, st->pgm_scale)), noise.pixels,
                             noise.photons, noise.overloads};
    const fth_sink sinks[5] = {
        memory_sink(mem, &t[0], FTH_U16, s, out.ints), memory_sink(mem, &t[1], FTH_U8, s, out.pgm),
        memory_sink(mem, &t[2], FTH_U16, s, out.noise), fth_scalar_sink(FTH_F64, &out.photons),
        fth_scalar_sink(FTH_I64, &out.overloads)};
    fth_plan *p = fth_plan_make(g, outs, 5, &(fth_limits){.memory_bytes = st->memory}, &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    out.chunks = info.chunks;
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    for (int i = 0; i < 4; i++) fth_tensor_release(t[i]);
    OKE(fth_context_destroy(ctx, &err), &err);
    return out;
}

static void drop(stored *s)
{
    free(s->ints);
    free(s->noise);
    free(s->pgm);
}

/* Whether header and pixels together have the hash of the reference's file. */
static void same_file(const bg_case *c, const char *kind, const void *header, size_t header_bytes,
                      const void *pixels, size_t bytes, const char *sha)
{
    unsigned char *file = malloc(header_bytes + bytes);
    char text[65];
    memcpy(file, header, header_bytes);
    memcpy(file + header_bytes, pixels, bytes);
    if (strcmp(bg_sha256(file, header_bytes + bytes, text), sha))
        FAIL("%s: the %s file is another one", c->name, kind);
    free(file);
}

static int64_t masked_of(const bg_case *c)
{
    if (!strstr(c->args, "-mask")) return 0;
    size_t bytes = 0;
    unsigned char *file = t_file_read(BG_INPUTS "mask64.img", &bytes);
    int64_t n = 0;
    for (size_t i = 0; i < 64 * 64; i++) {
        const size_t f = i % 64, s = i / 64;
        if (f < 5 || f > 50 || s < 8 || s > 55) continue;
        n += file[512 + 2 * i] == 0 && file[512 + 2 * i + 1] == 0;
    }
    free(file);
    return n;
}

static void check(const bg_case *c, setting *st, const stored *got)
{
    const size_t n = (size_t)c->pixels;
    char pgm[128];
    const size_t pgm_bytes =
        br_pgm_header(pgm, sizeof pgm, st->scene.fast, st->scene.slow, st->pgm_scale);
    same_file(c, "pgm", pgm, pgm_bytes, got->pgm, n, c->sha_pgm);
    size_t bytes = 0;
    unsigned char *golden = bg_file(c, ".int.img", &bytes);
    if (golden) {
        EQ_U64(bytes, 512 + 2 * n);
        same_file(c, "int", golden, 512, got->ints, 2 * n, c->sha_int);
        same_file(c, "noise", golden, 512, got->noise, 2 * n, c->sha_noise);
    }
    free(golden);
    golden = bg_file(c, ".noise.img", &bytes);
    if (golden) SAME_BYTES(got->noise, golden + 512, 2 * n);
    free(golden);
}

TEST(golden_floats_give_golden_files)
{
    bg_manifest m = bg_open();
    int cases = 0, photons = 0;
    for (int i = 0; i < BG_CASES; i++) {
        const bg_case *c = &m.at[i];
        size_t bytes = 0;
        float *image = (float *)bg_file(c, ".float.bin", &bytes);
        if (!image) continue; /* p44 */
        EQ_U64(bytes, (uint64_t)c->pixels * 4);
        setting st = setting_of(c);
        set_scales(&st, c, image, masked_of(c));
        stored got = store(&st, image);
        check(c, &st, &got);
        unsigned char *log = bg_file(c, ".stdout.txt", &bytes);
        char line[100];
        snprintf(line, sizeof line, "\n%.0f photons on noise image (%lld overloads)\n", got.photons,
                 (long long)got.overloads);
        if (log) {
            log[bytes] = '\0';
            HAS((char *)log, line);
            photons++;
        }
        free(log);
        drop(&got);
        free(image);
        cases++;
    }
    EQ_I64(cases, 44);
    EQ_I64(photons, 25);
    bg_close(&m);
}

/* Same bytes however the rows are cut, in both modes. */
TEST(pieces_and_workers_change_no_byte)
{
    bg_manifest m = bg_open();
    const bg_case *c = &m.at[40]; /* 256 x 192 */
    size_t bytes = 0;
    float *image = (float *)bg_file(c, ".float.bin", &bytes);
    for (int spec = 0; spec < 2; spec++) {
        setting st = setting_of(c);
        set_scales(&st, c, image, 0);
        if (spec) st.scene.quirks = 0;
        stored want = store(&st, image);
        for (int k = 0; k < 4; k++) {
            st.threads = 1 + k % 2;
            st.memory = k < 2 ? 400 << 10 : 1500 << 10;
            stored got = store(&st, image);
            IS_TRUE(got.chunks > want.chunks);
            SAME_BYTES(got.ints, want.ints, 2 * c->pixels);
            SAME_BYTES(got.noise, want.noise, 2 * c->pixels);
            SAME_BYTES(got.pgm, want.pgm, c->pixels);
            EQ_F64(got.photons, want.photons);
            drop(&got);
        }
        drop(&want);
    }
    free(image);
    bg_close(&m);
}

/* Spec mode: the noise of a pixel is its own, whatever the ROI. */
TEST(noise_does_not_depend_on_the_roi)
{
    bg_manifest m = bg_open();
    const bg_case *c = &m.at[36];
    size_t bytes = 0;
    float *image = (float *)bg_file(c, ".float.bin", &bytes);
    setting st = setting_of(c);
    st.int_scale = st.pgm_scale = 1;
    st.scene.quirks = 0;
    stored all = store(&st, image);
    NEAR(all.photons, c->sum, 5 * sqrt(c->sum));
    const int64_t roi[4] = {5, 50, 8, 55};
    memcpy(st.scene.roi, roi, sizeof roi);
    stored part = store(&st, image);
    int inside = 0;
    for (int64_t i = 0; i < c->pixels; i++) {
        const int64_t f = i % 64, s = i / 64;
        const bool in = f >= 5 && f <= 50 && s >= 8 && s <= 55;
        EQ_I64(part.noise[i], in ? all.noise[i] : 0);
        EQ_I64(part.ints[i], in ? all.ints[i] : 0);
        inside += in;
    }
    EQ_I64(inside, 46 * 48);
    drop(&all);
    drop(&part);
    free(image);
    bg_close(&m);
}

/* What a processor makes of numbers that do not fit, as the reference stores them. */
TEST(numbers_that_do_not_fit)
{
    float image[8] = {-3, NAN, INFINITY, -INFINITY, 70000, 0, 1e30f, 0.5f};
    setting st = {.adc = -10, .int_scale = 1, .pgm_scale = 1, .threads = 1, .memory = 1 << 20};
    memset(&st.scene, 0, sizeof st.scene);
    st.scene.quirks = BR_QUIRKS_C;
    st.scene.fast = 8;
    st.scene.slow = 1;
    st.scene.roi[1] = 7;
    br_ran1_clear(&st.random);
    st.random.seed = -1;
    stored got = store(&st, image);
    const uint16_t ints[8] = {0, 0, 65535, 0, 65535, 0, 65535, 0};
    const uint8_t pgm[8] = {253, 0, 255, 0, 255, 0, 255, 0};
    for (int i = 0; i < 8; i++) {
        EQ_I64(got.ints[i], ints[i]);
        EQ_I64(got.pgm[i], pgm[i]);
    }
    EQ_I64(got.noise[5], 65526); /* 0 counts, 10 below */
    EQ_I64(got.noise[6], 65535);
    EQ_I64(got.overloads, 3);
    drop(&got);
    st.scene.quirks = 0;
    got = store(&st, image);
    EQ_I64(got.noise[5], 0);
    EQ_I64(got.noise[6], 65535);
    drop(&got);
}

TEST_MAIN()
