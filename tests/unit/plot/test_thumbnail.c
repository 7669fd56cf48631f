/* test_thumbnail.c - PNG files of every kind read, damaged ones refused, small ones made.
 *
 * Files are made here from zlib alone; cairo, which reads with libpng, is the second opinion.
 * seconds: 3 */
#include "testing/io/files.h"

#include "io/png.h"
#include "plot/thumbnail.h"

#include <cairo.h>
#include <time.h>
#include <zlib.h>

/* ---- making PNG files ---- */

typedef struct buffer {
    uint8_t *data;
    size_t used, room;
} buffer;

static void add(buffer *b, const void *bytes, size_t n)
{
    if (b->used + n > b->room) b->data = realloc(b->data, b->room = (b->used + n) * 2);
    if (n) memcpy(b->data + b->used, bytes, n);
    b->used += n;
}

static void add_u32(buffer *b, uint32_t v)
{
    const uint8_t x[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    add(b, x, 4);
}

static void add_chunk(buffer *b, const char *type, const void *data, size_t n)
{
    add_u32(b, (uint32_t)n);
    const size_t from = b->used;
    add(b, type, 4);
    add(b, data, n);
    add_u32(b, (uint32_t)crc32(0, b->data + from, (uInt)(n + 4)));
}

static void add_head(buffer *b, uint32_t w, uint32_t h, int depth, int kind, int interlace)
{
    uint8_t head[13] = {(uint8_t)(w >> 24), (uint8_t)(w >> 16), (uint8_t)(w >> 8), (uint8_t)w,
                        (uint8_t)(h >> 24), (uint8_t)(h >> 16), (uint8_t)(h >> 8), (uint8_t)h};
    head[8] = (uint8_t)depth, head[9] = (uint8_t)kind, head[12] = (uint8_t)interlace;
    b->used = 0;
    add(b, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(b, "IHDR", head, 13);
}

/* Random rows, with any filter in front; `parts` chunks of data. */
static void make(buffer *b, uint32_t w, uint32_t h, int depth, int kind, uint64_t seed, int parts)
{
    static const int channels[7] = {1, 0, 3, 1, 2, 0, 4};
    t_random rnd = t_random_make(seed);
    const size_t row = ((size_t)w * (size_t)(channels[kind] * depth) + 7) / 8 + 1;
    uint8_t *raw = malloc(row * h);
    for (size_t i = 0; i < row * h; i++)
        raw[i] = (uint8_t)(i % row == 0 ? t_random_i64(&rnd, 0, 4) : t_random_i64(&rnd, 0, 255));
    uLongf packed = compressBound((uLong)(row * h));
    uint8_t *data = malloc(packed);
    EQ_I64(compress2(data, &packed, raw, (uLong)(row * h), 1), Z_OK);
    add_head(b, w, h, depth, kind, 0);
    if (kind == 3) {
        uint8_t colour[256 * 3], alpha[9];
        for (int i = 0; i < 768; i++) colour[i] = (uint8_t)t_random_i64(&rnd, 0, 255);
        for (int i = 0; i < 9; i++) alpha[i] = (uint8_t)(i % 2 ? 255 : 0);
        add_chunk(b, "PLTE", colour, 3u << depth);
        add_chunk(b, "tRNS", alpha, depth == 8 ? 9 : 2);
    }
    add_chunk(b, "tEXt", "a\0b", 3);
    for (int i = 0; i < parts; i++) {
        const size_t from = packed * (size_t)i / (size_t)parts,
                     to = packed * (size_t)(i + 1) / (size_t)parts;
        add_chunk(b, "IDAT", data + from, to - from);
    }
    add_chunk(b, "IEND", NULL, 0);
    free(raw);
    free(data);
}

static const char *save(const buffer *b)
{
    const char *path = t_temp_path("figure.png");
    t_file_write(path, b->used ? b->data : (const uint8_t *)"", b->used);
    return path;
}

/* ---- reading ---- */

/* All rows of our reader against what cairo sees, on white. */
static void compare(fth_mem *mem, const char *path, int tolerance)
{
    fth__png_reader *r = NULL;
    fth_err err = {0};
    OKE(fth__png_open(&r, mem, path, &err), &err);
    cairo_surface_t *s = cairo_image_surface_create_from_png(path);
    EQ_I64((int64_t)cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
    const int w = cairo_image_surface_get_width(s), h = cairo_image_surface_get_height(s);
    const bool alpha = cairo_image_surface_get_format(s) == CAIRO_FORMAT_ARGB32;
    EQ_I64(fth__png_get_head(r)->width, w);
    EQ_I64(fth__png_get_head(r)->height, h);
    for (int y = 0; y < h; y++) {
        const uint8_t *rgb = NULL;
        OKE(fth__png_read_row(r, &rgb, &err), &err);
        const uint8_t *row =
            cairo_image_surface_get_data(s) + (ptrdiff_t)y * cairo_image_surface_get_stride(s);
        for (int x = 0; x < w; x++) {
            uint32_t px;
            memcpy(&px, row + 4 * x, 4);
            const int a = alpha ? (int)(px >> 24) : 255;
            for (int k = 0; k < 3; k++) {
                const int seen = (int)(px >> (16 - 8 * k) & 255) + 255 - a;
                if (abs(seen - rgb[3 * x + k]) > tolerance)
                    FAIL("row %d pixel %d: %d is not %d", y, x, rgb[3 * x + k], seen);
            }
        }
    }
    cairo_surface_destroy(s);
    fth__png_close(r);
}

TEST(every_kind_of_png_is_read_as_libpng_reads_it)
{
    static const struct {
        int kind, depth;
    } kinds[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                 {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    fth_mem *mem = t_mem(1 << 20);
    buffer b = {0};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (uint32_t w = 1; w < 40; w += 19) {
            make(&b, w, 23, kinds[i].depth, kinds[i].kind, i, 1 + (int)w % 3);
            /* 16 bits: we take the upper 8, libpng rounds; alpha is rounded twice by cairo */
            compare(mem, save(&b), kinds[i].depth == 16 ? 2 : 1);
        }
    free(b.data);
    OK(fth_mem_destroy(mem, NULL));
}

static fth_status read_all(fth_mem *mem, const char *path, fth_err *err)
{
    fth__thumbs *t = NULL;
    fth__thumb out;
    OK(fth__thumbs_create(&t, mem, NULL));
    const fth_status s = fth__thumbs_make(t, path, 1 << 16, &out, err);
    fth__thumbs_destroy(t);
    return s;
}

static void refused(fth_mem *mem, const buffer *b, fth_status status, const char *part)
{
    fth_err err = {0};
    const char *path = save(b);
    IS(read_all(mem, path, &err), status);
    HAS(err.text, "figure.png");
    HAS(err.text, part);
}

TEST(hostile_files_are_refused)
{
    fth_mem *mem = t_mem(1 << 20);
    buffer b = {0};
    add_head(&b, 60000, 60000, 8, 6, 0); /* 14 GB of pixels in 100 bytes */
    add_chunk(&b, "IDAT", "x", 1);
    refused(mem, &b, FTH_E_FILE_FEATURE, "60000 x 60000");
    add_head(&b, 4000000000u, 1, 8, 6, 0);
    add_chunk(&b, "IDAT", "x", 1);
    refused(mem, &b, FTH_E_FILE_FEATURE, "4000000000 x 1");
    add_head(&b, 0, 7, 8, 2, 0);
    refused(mem, &b, FTH_E_FILE_FORMAT, "0 x 7");
    add_head(&b, 7, 7, 8, 5, 0);
    refused(mem, &b, FTH_E_FILE_FORMAT, "colour type");
    add_head(&b, 7, 7, 3, 2, 0);
    refused(mem, &b, FTH_E_FILE_FORMAT, "bit depth");
    add_head(&b, 7, 7, 8, 2, 1);
    refused(mem, &b, FTH_E_FILE_FEATURE, "interlaced");
    add_head(&b, 7, 7, 8, 2, 0);
    add_chunk(&b, "IEND", NULL, 0);
    refused(mem, &b, FTH_E_FILE_FORMAT, "no picture");
    add_head(&b, 7, 7, 8, 2, 0);
    add_chunk(&b, "IDAT", "not zlib at all", 15);
    refused(mem, &b, FTH_E_FILE_FORMAT, "damaged");
    add_head(&b, 7, 7, 8, 3, 0);
    uint8_t colours[900] = {0};
    add_chunk(&b, "PLTE", colours, 900);
    refused(mem, &b, FTH_E_FILE_FORMAT, "palette of 900");
    make(&b, 30, 30, 8, 2, 1, 1);
    b.data[18]++; /* another width than its checksum says */
    refused(mem, &b, FTH_E_FILE_FORMAT, "checksum");
    b.used = 0;
    refused(mem, &b, FTH_E_FILE_SHORT, "");
    add(&b, "<svg xmlns='http://www.w3.org/2000/svg'></svg>", 46);
    refused(mem, &b, FTH_E_FILE_FORMAT, "expected a PNG");
    fth_err err = {0};
    IS(read_all(mem, t_temp_path("no such figure.png"), &err), FTH_E_FILE_OPEN);
    IS(read_all(mem, t_temp_dir(), &err), FTH_E_FILE_OPEN); /* a folder */
    free(b.data);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_file_cut_or_changed_anywhere_does_no_harm)
{
    fth_mem *mem = t_mem(1 << 20);
    buffer b = {0}, copy = {0};
    make(&b, 13, 9, 4, 3, 5, 2);
    int64_t failed = 0;
    for (size_t i = 0; i < b.used; i++) {
        copy.used = 0;
        add(&copy, b.data, i);
        failed += read_all(mem, save(&copy), NULL) != FTH_OK;
        copy.used = 0;
        add(&copy, b.data, b.used);
        copy.data[i] ^= 0x55;
        (void)!read_all(mem, save(&copy), NULL);
    }
    IS_TRUE(failed > (int64_t)b.used - 40); /* only its end may be missing */
    free(b.data);
    free(copy.data);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- making ---- */

static cairo_status_t feed(void *closure, unsigned char *to, unsigned n)
{
    buffer *b = closure;
    if (n > b->room - b->used) return CAIRO_STATUS_READ_ERROR;
    memcpy(to, b->data + b->used, n);
    b->used += n;
    return CAIRO_STATUS_SUCCESS;
}

static cairo_surface_t *decode(const fth__thumb *t)
{
    buffer b = {.data = (uint8_t *)(uintptr_t)t->png, .room = t->bytes};
    cairo_surface_t *s = cairo_image_surface_create_from_png_stream(feed, &b);
    EQ_I64((int64_t)cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
    EQ_I64(cairo_image_surface_get_width(s), t->width);
    EQ_I64(cairo_image_surface_get_height(s), t->height);
    return s;
}

static uint32_t pixel(cairo_surface_t *s, int x, int y)
{
    uint32_t px;
    memcpy(&px, cairo_image_surface_get_data(s) + y * cairo_image_surface_get_stride(s) + 4 * x, 4);
    return px & 0xffffff;
}

static const char *draw(int w, int h, void (*paint)(cairo_t *cr, int w, int h))
{
    cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, w, h);
    cairo_t *cr = cairo_create(s);
    paint(cr, w, h);
    const char *path = t_temp_path("drawn.png");
    EQ_I64((int64_t)cairo_surface_write_to_png(s, path), CAIRO_STATUS_SUCCESS);
    cairo_destroy(cr);
    cairo_surface_destroy(s);
    return path;
}

static void halves(cairo_t *cr, int w, int h)
{
    cairo_set_source_rgb(cr, 1, 0, 0);
    cairo_rectangle(cr, 0, 0, w / 2.0, h);
    cairo_fill(cr);
    cairo_set_source_rgb(cr, 0, 0, 1);
    cairo_rectangle(cr, w / 2.0, 0, w / 2.0, h / 2.0); /* the last quarter is transparent */
    cairo_fill(cr);
}

TEST(a_thumbnail_is_the_mean_of_areas)
{
    fth_mem *mem = t_mem(1 << 21);
    fth__thumbs *t = NULL;
    fth__thumb out;
    OK(fth__thumbs_create(&t, mem, NULL));
    OK(fth__thumbs_make(t, draw(1000, 600, halves), 4096, &out, NULL));
    EQ_I64(out.width, 160);
    EQ_I64(out.height, 96);
    EQ_I64(out.full_width, 1000);
    cairo_surface_t *s = decode(&out);
    EQ_I64(pixel(s, 5, 5), 0xff0000);
    EQ_I64(pixel(s, 79, 90), 0xff0000);
    EQ_I64(pixel(s, 80, 5), 0x0000ff);
    EQ_I64(pixel(s, 159, 95), 0xffffff); /* transparent is white */
    cairo_surface_destroy(s);
    OK(fth__thumbs_make(t, draw(30, 20, halves), 4096, &out, NULL)); /* never enlarged */
    EQ_I64(out.width, 30);
    EQ_I64(out.height, 20);
    s = decode(&out);
    EQ_I64(pixel(s, 14, 3), 0xff0000);
    EQ_I64(pixel(s, 15, 3), 0x0000ff);
    cairo_surface_destroy(s);
    OK(fth__thumbs_make(t, draw(4, 9000, halves), 4096, &out, NULL));
    EQ_I64(out.width, 1);
    EQ_I64(out.height, 160);
    s = decode(&out);
    EQ_I64(pixel(s, 0, 10), 0x800080); /* two pixels of each */
    cairo_surface_destroy(s);
    fth__thumbs_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

static void cloud(cairo_t *cr, int w, int h)
{
    t_random rnd = t_random_make(3);
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    for (int i = 0; i < 3000; i++) {
        cairo_arc(cr, w * t_random_f64(&rnd), h * t_random_f64(&rnd), 4, 0, 6.3);
        cairo_set_source_rgb(cr, t_random_f64(&rnd), t_random_f64(&rnd), t_random_f64(&rnd));
        cairo_fill(cr);
    }
}

TEST(a_thumbnail_keeps_to_its_limit)
{
    fth_mem *mem = t_mem(1 << 21);
    fth__thumbs *t = NULL;
    fth__thumb out;
    fth_err err = {0};
    OK(fth__thumbs_create(&t, mem, NULL));
    const char *path = draw(1200, 900, cloud);
    for (uint64_t most = 300; most < 40000; most = most * 3 / 2) {
        OKE(fth__thumbs_make(t, path, most, &out, &err), &err);
        IS_TRUE(out.bytes <= most);
        cairo_surface_destroy(decode(&out));
    }
    EQ_I64(out.width, 160);
    IS(fth__thumbs_make(t, path, 60, &out, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "60 bytes");
    fth__thumbs_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

TEST(speed_is_shown)
{
    fth_mem *mem = t_mem(1 << 21);
    fth__thumbs *t = NULL;
    fth__thumb out;
    OK(fth__thumbs_create(&t, mem, NULL));
    const char *path = draw(1200, 900, cloud);
    int64_t least = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        const int64_t start = cpu_ns();
        OK(fth__thumbs_make(t, path, 4096, &out, NULL));
        const int64_t took = cpu_ns() - start;
        if (took < least) least = took;
    }
    printf("1200 x 900 pixels of 3000 discs: %.1f ms, %llu bytes, %lld x %lld\n",
           (double)least * 1e-6, (unsigned long long)out.bytes, (long long)out.width,
           (long long)out.height);
    fth__thumbs_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
