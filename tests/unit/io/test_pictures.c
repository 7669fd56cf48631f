/* test_pictures.c - single pictures: what is written is read back, and what others wrote.
 * seconds: 3 */
#include "testing/io/files.h"

#include "mem/inject.h"
#include "text/deflate.h"

#include <fathom/images.h>
#include <fathom/pictures.h>

#include <pthread.h>

#define JPEG(name) "tests/golden/focus/" name

enum { H = 83, W = 61 };

/* A picture of any dtype whose values follow from their places. */
static void *make(fth_picture *p, fth_dtype dtype, int channels, bool noise)
{
    t_random rnd = t_random_make(7);
    const int64_t n = (int64_t)H * W * channels;
    void *px = malloc((size_t)(n * fth_dtype_size(dtype)));
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = i / channels % W, y = i / channels / W;
        int64_t v = x * x * 3 + y * 7 * x + y * y * 5 + 40 * (i % channels);
        if (noise) v = t_random_i64(&rnd, 0, 1 << 20);
        if (dtype == FTH_U8) ((uint8_t *)px)[i] = (uint8_t)(v >> 4);
        if (dtype == FTH_U16) ((uint16_t *)px)[i] = (uint16_t)v;
        if (dtype == FTH_F32) ((float *)px)[i] = (float)v / 3 - 1000;
    }
    *p = (fth_picture){dtype, H, W, channels, px, 3.2347};
    return px;
}

TEST(formats_by_name_and_by_ending)
{
    fth_picture_format f;
    fth_err err = {0};
    OK(fth_picture_format_parse("jpg:90", &f, NULL));
    EQ_I64(f.kind, FTH_PICTURE_JPG);
    EQ_I64(f.quality, 90);
    OK(fth_picture_format_parse("jpg", &f, NULL));
    EQ_I64(f.quality, 75);
    OK(fth_picture_format_parse("tif16:deflate", &f, NULL));
    IS_TRUE(f.kind == FTH_PICTURE_TIF16 && f.deflate);
    OK(fth_picture_format_parse("tif", &f, NULL));
    IS_TRUE(f.kind == FTH_PICTURE_TIF && !f.deflate);
    static const char *const wrong[] = {"jpg:0",   "jpg:101", "jpg:", "jpg:9.5", "png:9",
                                        "tif:lzw", "",        "jp",   "png161"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        IS(fth_picture_format_parse(wrong[i], &f, NULL), FTH_E_USAGE);
    IS(fth_picture_format_parse("gif", &f, &err), FTH_E_USAGE);
    HAS(err.text, "png png16 jpg tif tif16 tif32 pgm");
    OK(fth_picture_format_of_path("a.b/c.JPEG", &f, NULL));
    EQ_I64(f.kind, FTH_PICTURE_JPG);
    OK(fth_picture_format_of_path("x.tiff", &f, NULL));
    EQ_I64(f.kind, FTH_PICTURE_TIF);
    IS(fth_picture_format_of_path("a.png/c", &f, &err), FTH_E_USAGE);
    IS(fth_picture_format_of_path("c.bmp", &f, &err), FTH_E_USAGE);
    EQ_STR(fth_picture_kind_get_info(FTH_PICTURE_TIF32)->name, "tif32");
    IS_TRUE(fth_picture_kind_get_info(FTH_PICTURE_KINDS) == NULL);
}

static void round_trip(const char *kind, fth_dtype dtype, int channels, bool noise, int tolerance)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    fth_picture p, back;
    fth_picture_format f;
    void *px = make(&p, dtype, channels, noise), *data = NULL;
    uint64_t bytes = 0;
    const char *path = t_temp_path("p.bin");
    OKE(fth_picture_format_parse(kind, &f, &err), &err);
    OKE(fth_picture_save(mem, path, &p, &f, &err), &err);
    OKE(fth_picture_encode(mem, &p, &f, &data, &bytes, &err), &err);
    IS_TRUE(bytes <= fth_picture_bound(&p, &f));
    size_t n = 0;
    unsigned char *file = t_file_read(path, &n);
    EQ_U64(n, bytes);
    SAME_BYTES(file, data, n);
    OKE(fth_picture_load(mem, path, &back, &err), &err);
    EQ_I64(back.dtype, dtype);
    EQ_I64(back.height, H);
    EQ_I64(back.width, W);
    EQ_I64(back.channels, channels);
    if (f.kind != FTH_PICTURE_PGM) NEAR(back.um_per_px, 3.2347, 1e-3);
    if (tolerance == 0) SAME_BYTES(back.pixels, px, H * W * channels * fth_dtype_size(dtype));
    for (int64_t i = 0; tolerance > 0 && i < (int64_t)H * W * channels; i++)
        NEAR(((const uint8_t *)back.pixels)[i], ((uint8_t *)px)[i], tolerance);
    fth_picture_free(mem, &back);
    OK(fth_mem_release(mem, data, NULL));
    OK(fth_mem_destroy(mem, NULL));
    free(file);
    free(px);
    remove(path);
}

TEST(every_kind_is_read_back)
{
    round_trip("png", FTH_U8, 1, false, 0);
    round_trip("png", FTH_U8, 3, true, 0);
    round_trip("png16", FTH_U16, 1, true, 0);
    round_trip("png16", FTH_U16, 3, false, 0);
    round_trip("pgm", FTH_U8, 1, true, 0);
    round_trip("pgm", FTH_U16, 1, true, 0);
    round_trip("pgm", FTH_U8, 3, true, 0);
    round_trip("tif", FTH_U8, 1, false, 0);
    round_trip("tif", FTH_U8, 3, true, 0);
    round_trip("tif16", FTH_U16, 1, true, 0);
    round_trip("tif32", FTH_F32, 1, false, 0);
    round_trip("tif:deflate", FTH_U8, 1, false, 0);
    round_trip("tif:deflate", FTH_U8, 3, true, 0);
    round_trip("tif16:deflate", FTH_U16, 1, true, 0);
    round_trip("tif16:deflate", FTH_U16, 3, false, 0);
    round_trip("tif32:deflate", FTH_F32, 1, true, 0);
    round_trip("jpg:100", FTH_U8, 1, false, 4);
    round_trip("jpg:100", FTH_U8, 1, true, 4);
}

/* ---- JPEG ---- */

/* Tables and coded data are those of Pillow, as of everybody with libjpeg. */
TEST(jpeg_is_what_pillow_writes)
{
    static const int quality[] = {75, 90};
    fth_mem *mem = t_mem(1 << 24);
    for (int i = 0; i < 2; i++) {
        fth_picture p;
        void *px = make(&p, FTH_U8, 1, false), *data = NULL;
        const fth_picture_format f = {.kind = FTH_PICTURE_JPG, .quality = quality[i]};
        uint64_t bytes = 0;
        size_t n = 0;
        p.um_per_px = 0;
        OK(fth_picture_encode(mem, &p, &f, &data, &bytes, NULL));
        unsigned char *golden =
            t_file_read(i ? JPEG("pillow_q90.jpg") : JPEG("pillow_q75.jpg"), &n);
        EQ_U64(bytes, n);
        SAME_BYTES(data, golden, n);
        OK(fth_mem_release(mem, data, NULL));
        free(golden);
        free(px);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(jpeg_says_how_large_a_pixel_is)
{
    static const struct {
        double um;
        unsigned char unit, high, low;
    } cases[] = {{3.2347, 2, 0x0c, 0x13}, {0, 0, 0, 1}, {0.1, 0, 0, 1}, {1e6, 0, 0, 1}};
    fth_mem *mem = t_mem(1 << 24);
    for (int i = 0; i < 4; i++) {
        fth_picture p;
        void *px = make(&p, FTH_U8, 1, false), *data = NULL;
        uint64_t bytes = 0;
        p.um_per_px = cases[i].um;
        OK(fth_picture_encode(mem, &p, &(fth_picture_format){.kind = FTH_PICTURE_JPG}, &data,
                              &bytes, NULL));
        const unsigned char *d = data;
        SAME_BYTES(d + 6, "JFIF\0", 5);
        EQ_I64(d[13], cases[i].unit);
        EQ_I64(d[14], cases[i].high);
        EQ_I64(d[15], cases[i].low);
        OK(fth_mem_release(mem, data, NULL));
        free(px);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(progressive_colours_of_pillow)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_picture p;
    OK(fth_picture_load(mem, JPEG("pillow_rgb.jpg"), &p, NULL));
    EQ_I64(p.channels, 3);
    EQ_U64(fth__crc32(0, p.pixels, H * W * 3), 0x44eb22a0);
    fth_picture_free(mem, &p);
    OK(fth_picture_load(mem, JPEG("pillow_q75.jpg"), &p, NULL));
    EQ_U64(fth__crc32(0, p.pixels, H * W), 0x45f15cea);
    EQ_F64(p.um_per_px, 0);
    fth_picture_free(mem, &p);
    OK(fth_mem_destroy(mem, NULL));
}

/* Pixels that libjpeg would guess are an error. */
TEST(damaged_jpeg_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    fth_picture p;
    size_t n = 0;
    unsigned char *d = t_file_read(JPEG("pillow_q75.jpg"), &n);
    const char *path = t_temp_path("end.jpg");
    memcpy(d + 2000, "\xff\xd9", 2); /* it says that it ends here */
    t_file_write(path, d, n);
    IS(fth_picture_load(mem, path, &p, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "the JPEG is damaged");
    OK(fth_mem_destroy(mem, NULL));
    free(d);
    remove(path);
}

/* Segments that are longer than what is read at once are passed over to the byte. */
TEST(jpeg_behind_long_comments)
{
    enum { LONG = 60000, COMMENTS = 4 };
    fth_mem *mem = t_mem(1 << 24);
    fth_picture p;
    size_t n = 0;
    unsigned char *d = t_file_read(JPEG("pillow_q75.jpg"), &n);
    const size_t jfif = 2 + 2 + (size_t)(d[4] << 8 | d[5]); /* behind its own segment */
    unsigned char *more = calloc(1, n + COMMENTS * (LONG + 2));
    memcpy(more, d, jfif);
    more[13] = 1; /* pixels of an inch: 2540 */
    more[14] = more[16] = 2540 >> 8;
    more[15] = more[17] = 2540 & 255;
    for (size_t i = 0; i < COMMENTS; i++) {
        unsigned char *at = more + jfif + i * (LONG + 2);
        for (size_t k = 0; k < LONG + 2; k += 2)
            memcpy(at + k, "\xff\xd9", 2); /* an end, if read */
        memcpy(at, "\xff\xfe", 2);
        at[2] = LONG >> 8;
        at[3] = LONG & 255;
    }
    memcpy(more + jfif + COMMENTS * (LONG + 2), d + jfif, n - jfif);
    const char *path = t_temp_path("comments.jpg");
    t_file_write(path, more, n + COMMENTS * (LONG + 2));
    OK(fth_picture_load(mem, path, &p, NULL));
    EQ_U64(fth__crc32(0, p.pixels, H * W), 0x45f15cea);
    NEAR(p.um_per_px, 10, 1e-9);
    fth_picture_free(mem, &p);
    OK(fth_mem_destroy(mem, NULL));
    free(d);
    free(more);
    remove(path);
}

/* ---- PNG by hand ---- */

typedef struct png {
    unsigned char data[4096];
    size_t n;
} png;

static void png_chunk(png *f, const char *name, const void *data, size_t bytes)
{
    unsigned char *at = f->data + f->n;
    const unsigned char length[4] = {0, 0, (unsigned char)(bytes >> 8), (unsigned char)bytes};
    memcpy(at, length, 4);
    memcpy(at + 4, name, 4);
    if (bytes > 0) memcpy(at + 8, data, bytes);
    const uint32_t sum = fth__crc32(0, at + 4, 4 + bytes);
    for (int i = 0; i < 4; i++) at[8 + bytes + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
    f->n += 12 + bytes;
}

typedef struct packed {
    unsigned char data[1024];
    size_t n;
} packed;

static void pack_more(void *to, const void *bytes, uint64_t n)
{
    packed *p = to;
    memcpy(p->data + p->n, bytes, n);
    p->n += n;
}

/* Rows of 3 x 2 pixels without a filter, their stream in pieces with an empty one between. */
static const char *png_make(int depth, int kind, int samples, const unsigned char *px,
                            const unsigned char density[9])
{
    png f = {.n = 8};
    packed z = {.n = 0};
    memcpy(f.data, "\x89PNG\r\n\x1a\n", 8);
    const unsigned char head[13] = {
        0, 0, 0, 3, 0, 0, 0, 2, (unsigned char)depth, (unsigned char)kind, 0, 0, 0};
    png_chunk(&f, "IHDR", head, 13);
    if (density) png_chunk(&f, "pHYs", density, 9);
    void *room = malloc(fth__deflate_bytes());
    fth__deflate *d = fth__deflate_begin(room, FTH__WRAP_ZLIB, pack_more, &z);
    const size_t row = (size_t)(3 * samples * depth / 8);
    for (size_t y = 0; y < 2; y++) {
        fth__deflate_add(d, "", 1);
        fth__deflate_add(d, px + y * row, row);
    }
    IS_TRUE(fth__deflate_end(d));
    free(room);
    png_chunk(&f, "IDAT", z.data, 3);
    png_chunk(&f, "IDAT", NULL, 0);
    png_chunk(&f, "IDAT", z.data + 3, z.n - 3);
    png_chunk(&f, "IEND", NULL, 0);
    const char *path = t_temp_path("hand.png");
    t_file_write(path, f.data, f.n);
    return path;
}

/* What is transparent keeps its colours; alpha is left out. */
TEST(png_with_alpha)
{
    static const struct {
        int depth, kind, samples, channels;
    } cases[] = {{8, 6, 4, 3}, {8, 4, 2, 1}, {16, 6, 4, 3}, {16, 4, 2, 1}, {8, 2, 3, 3}};
    unsigned char px[48];
    for (int i = 0; i < 48; i++) px[i] = (unsigned char)(5 * i + 1);
    fth_mem *mem = t_mem(1 << 24);
    for (int i = 0; i < 5; i++) {
        const int n = cases[i].samples, c = cases[i].channels;
        fth_picture p;
        OK(fth_picture_load(mem, png_make(cases[i].depth, cases[i].kind, n, px, NULL), &p, NULL));
        EQ_I64(p.channels, c);
        EQ_I64(p.dtype, cases[i].depth == 16 ? FTH_U16 : FTH_U8);
        for (int k = 0; k < 6 * c; k++) {
            const int at = k / c * n + k % c;
            if (cases[i].depth == 8)
                EQ_I64(((const uint8_t *)p.pixels)[k], px[at]);
            else
                EQ_I64(((const uint16_t *)p.pixels)[k], px[2 * at] << 8 | px[2 * at + 1]);
        }
        fth_picture_free(mem, &p);
    }
    remove(t_temp_path("hand.png"));
    OK(fth_mem_destroy(mem, NULL));
}

/* Pixels of a metre are a size; a ratio, and what screens and printers have, are none. */
TEST(png_says_how_large_a_pixel_is)
{
    static const struct {
        unsigned char density[9];
        double um;
    } cases[] = {{{0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0, 1}, 10}, /* 100000 */
                 {{0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0, 0}, 0},
                 {{0, 0, 0x0b, 0x13, 0, 0, 0x0b, 0x13, 1}, 0}}; /* 72 of an inch */
    const unsigned char px[6] = {1, 2, 3, 4, 5, 6};
    fth_mem *mem = t_mem(1 << 24);
    for (int i = 0; i < 3; i++) {
        fth_picture p;
        OK(fth_picture_load(mem, png_make(8, 0, 1, px, cases[i].density), &p, NULL));
        NEAR(p.um_per_px, cases[i].um, 1e-9);
        SAME_BYTES(p.pixels, px, 6);
        fth_picture_free(mem, &p);
    }
    remove(t_temp_path("hand.png"));
    OK(fth_mem_destroy(mem, NULL));
}

/* Rectangles of some channels. */
TEST(channels_of_a_picture)
{
    unsigned char px[18], wanted[18];
    for (int i = 0; i < 18; i++) px[i] = (unsigned char)(9 * i);
    for (int i = 0; i < 18; i++) wanted[i] = px[i % 6 * 3 + i / 6];
    fth_mem *mem = t_mem(1 << 24);
    fth_images *images = NULL;
    fth_source source;
    OK(fth_images_open(&images, mem, png_make(8, 2, 3, px, NULL), NULL, NULL));
    OK(fth_images_source(images, &source, NULL));
    t_source_check(&source, wanted, 9, 60);
    fth_source_close(&source);
    fth_images_close(images);
    remove(t_temp_path("hand.png"));
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- PGM by hand ---- */

static void pgm(const char *text, size_t n, fth_status wanted, const char *found, int bits)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    fth_images *images = NULL;
    const char *path = t_temp_path("p.pgm");
    t_file_write(path, text, n);
    fth_status s = fth_images_open(&images, mem, path, NULL, &err);
    if (s == FTH_OK) {
        const fth_images_info *info = fth_images_get_info(images);
        EQ_I64(info->significant_bits, bits);
        fth_images_close(images);
        fth_picture p = {0};
        s = fth_picture_load(mem, path, &p, &err);
        if (s == FTH_OK) SAME_BYTES(p.pixels, found, (p.dtype == FTH_U16 ? 2 : 1) * 6);
        fth_picture_free(mem, &p);
    }
    IS(s, wanted);
    if (s != FTH_OK) HAS(err.text, found);
    OK(fth_mem_destroy(mem, NULL));
    remove(path);
}
#define PGM(text, wanted, found, bits) pgm(text, sizeof text - 1, wanted, found, bits)

TEST(pgm_in_all_its_ways)
{
    PGM("P5\n3 2\n255\nabcdef", FTH_OK, "abcdef", 8);
    PGM("P5 # a comment\n3 # another\n2 63 abcdef", FTH_OK, "abcdef", 6);
    PGM("P5\n3 2\n4095\n\1\2\3\4\5\6\7\10\11\12\13\14", FTH_OK, "\2\1\4\3\6\5\10\7\12\11\14\13",
        12);
    PGM("P2\n3 2\n255\n1 2 3\n4 5 6", FTH_OK, "\1\2\3\4\5\6", 8);
    PGM("P2 3 2 300 1 2 300 4 5 # six\n6\n", FTH_OK, "\1\0\2\0\54\1\4\0\5\0\6\0", 9);
    PGM("P6\n1 2\n255\nabcdef", FTH_OK, "abcdef", 8);
    PGM("P3\n2 1 9 1 2 3 4 5 6", FTH_OK, "\1\2\3\4\5\6", 4);
    PGM("P5\n3 2\n255\nabcde", FTH_E_FILE_SHORT, "6 bytes of pixels are expected, 5", 8);
    PGM("P2\n3 2\n255\n1 2 3 4 5 600", FTH_E_FILE_FORMAT, "at most 255", 8);
    PGM("P2\n3 2\n255\n1 2 3 4 5 x6", FTH_E_FILE_FORMAT, "found no number", 8);
    PGM("P5\n0 2\n255\nabcdef", FTH_E_FILE_FORMAT, "a PGM of 2 x 0", 8);
    PGM("P5\n3 2\n70000\nabcdef", FTH_E_FILE_FORMAT, "at most 65535", 8);
    PGM("P5\n99999999999 2\n255\nabcdef", FTH_E_FILE_FORMAT, "the width", 8);
    PGM("P4\n3 2\nabcdef", FTH_E_FILE_FORMAT, "no format of images", 8);
}

/* ---- failures ---- */

TEST(what_a_kind_cannot_hold_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    fth_picture p;
    void *px = make(&p, FTH_U8, 1, false), *data = NULL;
    uint64_t bytes = 0;
    fth_picture_format f = {.kind = FTH_PICTURE_PNG16};
    IS(fth_picture_encode(mem, &p, &f, &data, &bytes, &err), FTH_E_USAGE);
    HAS(err.text, "png16 holds u16 pixels, not u8");
    EQ_U64(fth_picture_bound(&p, &f), 0);
    f.kind = FTH_PICTURE_JPG;
    p.channels = 2;
    IS(fth_picture_encode(mem, &p, &f, &data, &bytes, &err), FTH_E_USAGE);
    p.channels = 1;
    p.width = 65501;
    err = (fth_err){0};
    IS(fth_picture_encode(mem, &p, &f, &data, &bytes, &err), FTH_E_USAGE);
    HAS(err.text, "1 to 65500 on a side");
    p.width = 0;
    IS(fth_picture_encode(mem, &p, &f, &data, &bytes, &err), FTH_E_USAGE);
    IS_TRUE(data == NULL);
    OK(fth_mem_destroy(mem, NULL));
    free(px);
}

static const char *const kinds[] = {"png", "jpg", "pgm", "tif", "tif:deflate"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

TEST(cut_at_every_byte)
{
    for (int k = 0; k < KINDS; k++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_picture p, back;
        fth_picture_format f;
        void *px = make(&p, FTH_U8, 1, false), *data = NULL;
        uint64_t bytes = 0;
        const char *path = t_temp_path("cut");
        p.height = 9;
        OK(fth_picture_format_parse(kinds[k], &f, NULL));
        OK(fth_picture_encode(mem, &p, &f, &data, &bytes, NULL));
        for (uint64_t n = 0; n < bytes; n++) {
            fth_err err = {0};
            remove(path); /* a file that is cut and written again goes to the disk at once */
            t_file_write(path, data, n);
            const fth_status s = fth_picture_load(mem, path, &back, &err);
            if (s == FTH_OK && n + 24 < bytes) FAIL("%s cut to %d is read", kinds[k], (int)n);
            if (s != FTH_OK) HAS(err.text, path);
            fth_picture_free(mem, &back);
        }
        OK(fth_mem_release(mem, data, NULL));
        OK(fth_mem_destroy(mem, NULL));
        free(px);
        remove(path);
    }
}

TEST(no_memory_at_any_request)
{
    fth_picture p;
    void *px = make(&p, FTH_U8, 1, false);
    const char *path = t_temp_path("p");
    for (int k = 0; k < KINDS; k++) {
        fth_status s = FTH_E_NOMEM;
        fth_picture_format f;
        OK(fth_picture_format_parse(kinds[k], &f, NULL));
        for (int64_t n = 1; s != FTH_OK; n++) {
            fth_mem *mem = t_mem(1 << 24);
            fth_picture back = {0};
            fth__mem_inject(mem, n, 0);
            s = fth_picture_save(mem, path, &p, &f, NULL);
            if (s == FTH_OK) s = fth_picture_load(mem, path, &back, NULL);
            if (s != FTH_OK) IS(s, FTH_E_NOMEM);
            fth_picture_free(mem, &back);
            OK(fth_mem_destroy(mem, NULL));
        }
        remove(path);
        EQ_I64(t_file_count(), 0);
    }
    free(px);
}

TEST(no_write_is_lost)
{
    fth_picture p;
    void *px = make(&p, FTH_U8, 1, false);
    const char *path = t_temp_path("p.png");
    fth_status s = FTH_E_FILE_WRITE;
    for (int64_t n = 1; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 24);
        fth__mem_inject(mem, 0, n);
        s = fth_picture_save(mem, path, &p, &(fth_picture_format){0}, NULL);
        if (s != FTH_OK) IS(s, FTH_E_FILE_WRITE);
        EQ_I64(t_file_count(), s == FTH_OK ? 1 : 0);
        OK(fth_mem_destroy(mem, NULL));
    }
    free(px);
    remove(path);
}

/* ---- threads ---- */

typedef struct job {
    fth_mem *mem;
    fth_picture *p;
    fth_source *source;
    uint32_t crc[KINDS + 1];
} job;

static void *work(void *user)
{
    job *j = user;
    for (int k = 0; k < KINDS; k++) {
        fth_picture_format f;
        void *data = NULL;
        uint64_t bytes = 0;
        if (fth_picture_format_parse(kinds[k], &f, NULL) != FTH_OK ||
            fth_picture_encode(j->mem, j->p, &f, &data, &bytes, NULL) != FTH_OK)
            return NULL;
        j->crc[k] = fth__crc32(0, data, bytes);
        (void)fth_mem_release(j->mem, data, NULL);
    }
    const int64_t lo[6] = {0, 0, 0, 0, 3, 5}, n[6] = {1, 1, 1, 1, 40, 50};
    uint8_t part[40 * 50];
    if (j->source->read(j->source->self, lo, n, part, NULL) == FTH_OK)
        j->crc[KINDS] = fth__crc32(0, part, sizeof part);
    return NULL;
}

TEST(several_threads_at_once)
{
    enum { THREADS = 4 };
    fth_mem *mem = t_mem(1 << 26);
    fth_picture p;
    fth_images *images = NULL;
    fth_source source;
    void *px = make(&p, FTH_U8, 1, false);
    OK(fth_images_open(&images, mem, JPEG("pillow_q75.jpg"), NULL, NULL));
    EQ_STR(fth_images_get_info(images)->format, "jpeg");
    EQ_STR(fth_images_get_info(images)->axes, "yx");
    OK(fth_images_source(images, &source, NULL));
    IS_TRUE(source.concurrent);
    fth_images_close(images); /* the source lives on */
    job jobs[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){.mem = mem, .p = &p, .source = &source};
        EQ_I64(pthread_create(&thread[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) EQ_I64(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k <= KINDS; k++) {
            IS_TRUE(jobs[i].crc[k] != 0);
            EQ_U64(jobs[i].crc[k], jobs[0].crc[k]);
        }
    fth_tensor *whole = NULL;
    OK(fth_source_load(&source, mem, "p", &whole, NULL));
    t_source_check(&source, fth_tensor_data(whole), 5, 20);
    fth_tensor_release(whole);
    fth_source_close(&source);
    OK(fth_mem_destroy(mem, NULL));
    free(px);
}
