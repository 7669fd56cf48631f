/* test_gif.c - animations: a reader written from the standard sees what was drawn.
 *
 * seconds: 3 */
#include "testing/io/pictures.h"

#include "plot/figure.h"

/* ---- a reader ---- */

typedef struct reader {
    const unsigned char *file;
    size_t bytes, at;
    unsigned char rgb[256][3];
    int64_t w, h;
    unsigned char *px;              /* entries of the palette */
    int frames, delay, transparent; /* transparent: -1 for none */
    int loops;                      /* -1: not said */
} reader;

static unsigned next_byte(reader *r)
{
    if (r->at >= r->bytes) FAIL("the file ends in the middle");
    return r->file[r->at++];
}

static unsigned next_u16(reader *r)
{
    const unsigned low = next_byte(r);
    return low | next_byte(r) << 8;
}

/* The bytes of sub-blocks, put together. */
static unsigned char *sub_blocks(reader *r, size_t *n)
{
    unsigned char *data = malloc(r->bytes);
    *n = 0;
    for (unsigned size = next_byte(r); size > 0; size = next_byte(r))
        for (unsigned i = 0; i < size; i++) data[(*n)++] = (unsigned char)next_byte(r);
    return data;
}

/* LZW as readers do it: every code is looked up, and strings grow one behind. */
static void unpack(const unsigned char *data, size_t n, unsigned char *out, int64_t count)
{
    static int prefix[4096];
    static unsigned char last[4096], first[4096], text[4096];
    int next = 258, width = 9, before = -1;
    int64_t done = 0;
    uint32_t bits = 0;
    int have = 0;
    size_t at = 0;
    for (int i = 0; i < 256; i++) prefix[i] = -1, last[i] = first[i] = (unsigned char)i;
    for (;;) {
        while (have < width) {
            if (at == n) FAIL("the codes end without saying so");
            bits |= (uint32_t)data[at++] << have;
            have += 8;
        }
        const int code = (int)(bits & ((1u << width) - 1));
        bits >>= width, have -= width;
        if (code == 257) break;
        if (code == 256) {
            next = 258, width = 9, before = -1;
            continue;
        }
        if (code > next || (code == next && before < 0)) FAIL("code %d of %d", code, next);
        if (before >= 0 && next < 4096) {
            prefix[next] = before;
            first[next] = first[before];
            last[next] = code == next ? first[before] : first[code];
            next++;
            if (next == 1 << width && width < 12) width++;
        }
        int length = 0;
        for (int c = code; c >= 0; c = prefix[c]) text[length++] = last[c];
        if (done + length > count) FAIL("more pixels than a frame has");
        while (length > 0) {
            length--;
            out[done] = text[length];
            done++;
        }
        before = code;
    }
    EQ_I64(done, count);
    EQ_U64(at, n);
}

static void read_extension(reader *r)
{
    const unsigned kind = next_byte(r);
    size_t n = 0;
    unsigned char *data = sub_blocks(r, &n);
    if (kind == 0xf9) {
        EQ_U64(n, 4);
        r->transparent = data[0] & 1 ? data[3] : -1;
        r->delay = data[1] | data[2] << 8;
    } else if (kind == 0xff && n == 14 && memcmp(data, "NETSCAPE2.0\x01", 12) == 0) {
        r->loops = data[12] | data[13] << 8;
    } else {
        FAIL("an extension %02x of %zu bytes", kind, n);
    }
    free(data);
}

static void read_frame(reader *r)
{
    EQ_I64(next_u16(r), 0);
    EQ_I64(next_u16(r), 0);
    EQ_I64(next_u16(r), r->w);
    EQ_I64(next_u16(r), r->h);
    EQ_I64(next_byte(r), 0);
    EQ_I64(next_byte(r), 8);
    size_t n = 0;
    unsigned char *data = sub_blocks(r, &n), *px = malloc((size_t)(r->w * r->h));
    unpack(data, n, px, r->w * r->h);
    for (int64_t i = 0; i < r->w * r->h; i++)
        if (px[i] != r->transparent) r->px[i] = px[i];
    r->frames++;
    free(data);
    free(px);
}

/* Up to the end of frame number `frames`, or of the file. */
static reader gif_read(const char *path, int frames)
{
    reader r = {.transparent = -1, .loops = -1};
    unsigned char *file = t_file_read(path, &r.bytes);
    r.file = file;
    SAME_BYTES(file, "GIF89a", 6);
    r.at = 6;
    r.w = next_u16(&r), r.h = next_u16(&r);
    EQ_U64(next_byte(&r), 0xf7);
    r.at += 2;
    memcpy(r.rgb, file + r.at, sizeof r.rgb);
    r.at += sizeof r.rgb;
    r.px = calloc(1, (size_t)(r.w * r.h));
    for (unsigned kind = next_byte(&r); kind != 0x3b; kind = next_byte(&r)) {
        if (kind == 0x21)
            read_extension(&r);
        else if (kind == 0x2c)
            read_frame(&r);
        else
            FAIL("a block of kind %02x", kind);
        if (frames > 0 && r.frames == frames) break;
    }
    if (frames == 0) EQ_U64(r.at, r.bytes);
    free(file);
    r.file = NULL;
    return r;
}

/* ---- frames ---- */

enum { SIDE = 40 };

/* Squares of numbers, one for each pixel or so: no two frames are alike. */
static fth_figure *noise(fth_mem *mem, float *v, uint64_t stream)
{
    fth_figure *fig = NULL;
    t_random rng = t_random_make(stream);
    for (int i = 0; i < SIDE * SIDE; i++) v[i] = (float)t_random_f64(&rng);
    OK(fth_figure_create(&fig, mem, &(fth_figure_options){.width = 3, .height = 2}, NULL));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "Noise"});
    fth_panel_image(p, fth_grid_of(FTH_F32, v, SIDE, SIDE),
                    &(fth_image){.colours = {.map = FTH_MAP_TURBO, .low = 0, .high = 1}});
    return fig;
}

static void write_frames(fth_mem *mem, const char *path, int frames)
{
    float v[SIDE * SIDE];
    fth_err err = {0};
    fth_animation *a = NULL;
    OKE(fth_animation_create(&a, mem, path, &(fth_animation_options){.map = FTH_MAP_TURBO}, &err),
        &err);
    for (int f = 0; f < frames; f++) {
        fth_figure *fig = noise(mem, v, (uint64_t)f);
        OKE(fth_animation_add(a, fig, &err), &err);
        fth_figure_destroy(fig);
    }
    OKE(fth_animation_commit(a, &err), &err);
}

static int distance(const unsigned char *a, const unsigned char *b)
{
    int most = 0;
    for (int k = 0; k < 3; k++) most = abs(a[k] - b[k]) > most ? abs(a[k] - b[k]) : most;
    return most;
}

TEST(every_frame_is_its_figure)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("noise.gif");
    write_frames(mem, path, 3);
    for (int f = 1; f <= 3; f++) {
        float v[SIDE * SIDE];
        fth_figure *fig = noise(mem, v, (uint64_t)f - 1);
        const char *png = t_temp_path("noise.png");
        OK(fth_figure_save(fig, png, NULL));
        const t_picture pic = t_png_read(png);
        reader r = gif_read(path, f);
        EQ_I64(r.w, pic.w);
        EQ_I64(r.h, pic.h);
        EQ_I64(r.delay, 10);
        EQ_I64(r.loops, 0);
        for (int64_t i = 0; i < r.w * r.h; i++)
            LE_F64(distance(r.rgb[r.px[i]], pic.px + 3 * i), 30);
        const int64_t white = 0, mid = (r.h / 2) * r.w + r.w / 2; /* the page; a number */
        EQ_I64(r.rgb[r.px[white]][0], 255);
        LE_F64(distance(r.rgb[r.px[mid]], pic.px + 3 * mid), 6);
        free(r.px);
        free(pic.px);
        fth_figure_destroy(fig);
    }
    reader all = gif_read(path, 0);
    EQ_I64(all.frames, 3);
    free(all.px);
    OK(fth_mem_destroy(mem, NULL));
}

/* Boxes have a least size: ten rows of them are higher than an inch, and are cut at its edge. */
TEST(rows_past_the_edge_of_a_low_figure_are_cut)
{
    fth_mem *mem = t_mem(1 << 25);
    float v[SIDE * SIDE] = {0};
    fth_figure *fig = NULL;
    fth_animation *a = NULL;
    const char *path = t_temp_path("low.gif"), *png = t_temp_path("low.png");
    OK(fth_figure_create(&fig, mem,
                         &(fth_figure_options){.panels = 20, .columns = 2, .width = 2, .height = 1},
                         NULL));
    for (int64_t i = 0; i < 20; i++)
        fth_panel_image(fth_figure_panel(fig, i), fth_grid_of(FTH_F32, v, SIDE, SIDE), NULL);
    OK(fth_figure_save(fig, png, NULL));
    OK(fth_animation_create(&a, mem, path, NULL, NULL));
    OK(fth_animation_add(a, fig, NULL));
    OK(fth_animation_commit(a, NULL));
    const t_picture pic = t_png_read(png);
    reader r = gif_read(path, 1);
    EQ_I64(pic.h, 150);
    EQ_I64(r.h, 150);
    EQ_I64(r.w, pic.w);
    free(r.px);
    free(pic.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_same_frames_give_the_same_bytes)
{
    fth_mem *mem = t_mem(1 << 24);
    size_t a = 0, b = 0;
    const char *path = t_temp_path("again.gif");
    write_frames(mem, path, 2);
    unsigned char *one = t_file_read(path, &a);
    write_frames(mem, path, 2);
    unsigned char *two = t_file_read(path, &b);
    EQ_U64(a, b);
    SAME_BYTES(one, two, a);
    free(one);
    free(two);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_frame_that_does_not_change_costs_little)
{
    fth_mem *mem = t_mem(1 << 24);
    float v[SIDE * SIDE];
    const char *path = t_temp_path("still.gif");
    fth_figure *fig = noise(mem, v, 1);
    size_t bytes[2];
    for (int twice = 0; twice < 2; twice++) {
        fth_animation *a = NULL;
        OK(fth_animation_create(&a, mem, path, NULL, NULL));
        for (int f = 0; f <= 10 * twice; f++) OK(fth_animation_add(a, fig, NULL));
        OK(fth_animation_commit(a, NULL));
        free(t_file_read(path, &bytes[twice]));
    }
    LE_F64(bytes[1] - bytes[0], 10 * 1500);
    reader r = gif_read(path, 0);
    EQ_I64(r.frames, 11);
    free(r.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(memory_is_as_planned)
{
    fth_mem *mem = t_mem(1 << 26);
    float v[SIDE * SIDE];
    fth_figure *fig = noise(mem, v, 1);
    fth_animation *a = NULL;
    uint64_t planned = 0;
    OK(fth_animation_plan(fig, &planned, NULL));
    fth_mem_mark(mem);
    OK(fth_animation_create(&a, mem, t_temp_path("plan.gif"), NULL, NULL));
    OK(fth_animation_add(a, fig, NULL));
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    LE_F64(stats.peak_bytes, planned + 3 * 4096);
    LE_F64(planned, stats.peak_bytes);
    OK(fth_animation_commit(a, NULL));
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(misuse_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    float v[SIDE * SIDE];
    fth_err err = {0};
    fth_animation *a = NULL;
    const char *path = t_temp_path("misuse.gif");
    IS(fth_animation_create(&a, mem, path, &(fth_animation_options){.delay_ms = -1}, NULL),
       FTH_E_USAGE);
    IS(fth_animation_create(&a, mem, NULL, NULL, NULL), FTH_E_USAGE);
    OK(fth_animation_create(&a, mem, path, NULL, NULL));
    IS(fth_animation_commit(a, NULL), FTH_E_STATE); /* no frame */
    OK(fth_animation_create(&a, mem, path, NULL, NULL));
    fth_figure *fig = noise(mem, v, 1), *small = NULL;
    OK(fth_figure_create(&small, mem, &(fth_figure_options){.width = 1, .height = 1}, NULL));
    OK(fth_animation_add(a, fig, NULL));
    IS(fth_animation_add(a, small, &err), FTH_E_USAGE);
    HAS(err.text, "450 x 300, not 150 x 150");
    IS(fth_animation_add(a, fig, NULL), FTH_E_STATE);
    IS(fth_animation_commit(a, NULL), FTH_E_STATE);
    IS_TRUE(access(path, F_OK) != 0);
    fth_animation_abandon(NULL);
    fth_figure_destroy(fig);
    fth_figure_destroy(small);
    OK(fth_mem_destroy(mem, NULL));
}

/* Fail each request for memory, then each write: a status, nothing left, no file. */
TEST(faults_are_survived)
{
    for (int kind = 0; kind < 2; kind++) {
        fth_status s = FTH_E_NOMEM;
        for (int64_t n = 1; s != FTH_OK; n++) {
            float v[SIDE * SIDE];
            fth_mem_options opt;
            fth_mem_options_default(&opt);
            opt.budget_bytes = 1 << 24;
            fth_mem *plain = t_mem(1 << 24), *mem = NULL;
            fth_figure *fig = noise(plain, v, 1);
            opt.fail_alloc = kind == 0 ? n : 0;
            opt.fail_write = kind == 1 ? n : 0;
            const char *path = t_temp_path("fault.gif");
            fth_animation *a = NULL;
            s = fth_mem_create(&mem, &opt, NULL);
            if (s == FTH_OK) s = fth_animation_create(&a, mem, path, NULL, NULL);
            if (s == FTH_OK) {
                s = fth_animation_add(a, fig, NULL);
                if (s == FTH_OK)
                    s = fth_animation_commit(a, NULL);
                else
                    fth_animation_abandon(a);
            }
            if (s != FTH_OK) {
                IS_TRUE(s == FTH_E_NOMEM || s == FTH_E_FILE_WRITE);
                IS_TRUE(access(path, F_OK) != 0);
            }
            remove(path);
            fth_figure_destroy(fig);
            OK(fth_mem_destroy(mem, NULL));
            OK(fth_mem_destroy(plain, NULL));
        }
    }
}

TEST_MAIN()
