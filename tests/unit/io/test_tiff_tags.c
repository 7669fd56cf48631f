/* test_tiff_tags.c - TIFF files made tag by tag: what others leave out, samples beside the colours,
 * tiles, pages of several kinds, and which plane of an OME or ImageJ file is which page.
 * seconds: 1 */
#include "io/tiff.h"
#include "testing/io/files.h"

#include <fathom/images.h>
#include <fathom/tiff.h>

#include <math.h>
#include <stdarg.h>

/* ---- a file, page by page ---- */

enum { MOST_TAGS = 24, MOST_VALUES = 16, ROOM = 4 << 20 };
enum { ASCII = 2, SHORT = 3, LONG = 4, RATIONAL = 5 };

typedef struct tag {
    int tag, type, n;
    uint32_t v[MOST_VALUES]; /* of a rational both parts; of a text nothing */
    const char *text;
} tag;

typedef struct page {
    tag tag[MOST_TAGS];
    int n;
} page;

typedef struct made {
    unsigned char *data;
    size_t bytes, link; /* where the place of the next page goes */
} made;

static void put(made *m, size_t at, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) m->data[at + (size_t)i] = (unsigned char)(v >> 8 * i);
}

static made begin(void)
{
    made m = {.data = calloc(1, ROOM), .bytes = 8, .link = 4};
    memcpy(m.data, "II*\0", 4);
    return m;
}

static size_t add_data(made *m, const void *data, size_t bytes)
{
    const size_t at = (m->bytes + 1) / 2 * 2;
    memcpy(m->data + at, data, bytes);
    m->bytes = at + bytes;
    return at;
}

static void set(page *p, int number, int type, int n, ...)
{
    va_list args;
    tag *t = &p->tag[p->n++];
    *t = (tag){number, type, n, {0}, NULL};
    va_start(args, n);
    for (int i = 0; i < n * (type == RATIONAL ? 2 : 1); i++) t->v[i] = va_arg(args, uint32_t);
    va_end(args);
}

static void set_text(page *p, const char *text)
{
    p->tag[p->n++] = (tag){FTH__TIFF_DESCRIPTION, ASCII, (int)strlen(text) + 1, {0}, text};
}

static int by_tag(const void *a, const void *b)
{
    return ((const tag *)a)->tag - ((const tag *)b)->tag;
}

/* Returns where it begins. */
static size_t add_page(made *m, page *p)
{
    static const int size[] = {0, 1, 1, 2, 4, 8};
    qsort(p->tag, (size_t)p->n, sizeof p->tag[0], by_tag);
    const size_t at = (m->bytes + 1) / 2 * 2;
    m->bytes = at + 2 + 12 * (size_t)p->n + 4;
    put(m, m->link, (uint32_t)at, 4);
    put(m, at, (uint32_t)p->n, 2);
    for (int i = 0; i < p->n; i++) {
        const tag *t = &p->tag[i];
        const size_t entry = at + 2 + 12 * (size_t)i, bytes = (size_t)(size[t->type] * t->n);
        put(m, entry, (uint32_t)t->tag, 2);
        put(m, entry + 2, (uint32_t)t->type, 2);
        put(m, entry + 4, (uint32_t)t->n, 4);
        size_t to = entry + 8;
        if (bytes > 4) {
            to = (m->bytes + 1) / 2 * 2;
            put(m, entry + 8, (uint32_t)to, 4);
            m->bytes = to + bytes;
        }
        if (t->text) memcpy(m->data + to, t->text, bytes);
        const int each = t->type == RATIONAL ? 4 : size[t->type];
        for (int k = 0; !t->text && k < t->n * (t->type == RATIONAL ? 2 : 1); k++)
            put(m, to + (size_t)(k * each), t->v[k], each);
    }
    m->link = at + 2 + 12 * (size_t)p->n;
    return at;
}

/* Grey pixels of 8 or 16 bits in one strip, without the tags that may be left out. */
static page grey(made *m, uint32_t width, uint32_t height, uint32_t bits, const void *pixels)
{
    page p = {0};
    const size_t bytes = (size_t)width * height * bits / 8;
    set(&p, FTH__TIFF_WIDTH, LONG, 1, width);
    set(&p, FTH__TIFF_HEIGHT, LONG, 1, height);
    set(&p, FTH__TIFF_BITS, SHORT, 1, bits);
    set(&p, FTH__TIFF_COMPRESSION, SHORT, 1, 1u);
    set(&p, FTH__TIFF_PHOTOMETRIC, SHORT, 1, 1u);
    set(&p, FTH__TIFF_STRIP_OFFSETS, LONG, 1, (uint32_t)add_data(m, pixels, bytes));
    set(&p, FTH__TIFF_STRIP_BYTES, LONG, 1, (uint32_t)bytes);
    return p;
}

/* Pages of 4 x 4 bytes, each full of its number, the first with a description. */
static void flat_pages(made *m, int n, const char *text)
{
    for (int i = 0; i < n; i++) {
        unsigned char pixels[16];
        memset(pixels, i + 1, sizeof pixels);
        page p = grey(m, 4, 4, 8, pixels);
        if (i == 0 && text) set_text(&p, text);
        add_page(m, &p);
    }
}

/* ---- opened ---- */

typedef struct opened {
    fth_mem *mem;
    const char *path;
    fth_images *images;
    const fth_images_info *info;
    fth_source source;
} opened;

static opened open_within(made *m, const char *name, uint64_t budget)
{
    opened o = {.mem = t_mem(budget), .path = t_temp_path(name)};
    fth_err err = {0};
    t_file_write(o.path, m->data, m->bytes);
    OKE(fth_images_open(&o.images, o.mem, o.path, NULL, &err), &err);
    OKE(fth_images_source(o.images, &o.source, &err), &err);
    o.info = fth_images_get_info(o.images);
    free(m->data);
    return o;
}

static opened open_made(made *m, const char *name)
{
    return open_within(m, name, 16 << 20);
}

static void end(opened *o)
{
    fth_source_close(&o->source);
    fth_images_close(o->images);
    remove(o->path);
    OK(fth_mem_destroy(o->mem, NULL));
}

static void refused(made *m, const char *name, fth_status status, const char *part)
{
    fth_mem *mem = t_mem(16 << 20);
    const char *path = t_temp_path(name);
    fth_images *images = NULL;
    fth_err err = {0};
    t_file_write(path, m->data, m->bytes);
    IS(fth_images_open(&images, mem, path, NULL, &err), status);
    HAS(err.text, part);
    free(m->data);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* The byte that fills a plane. */
static int shade(const opened *o, int64_t t, int64_t p, int64_t z, int64_t c)
{
    uint8_t v[16];
    OK(o->source.read(o->source.self, ((int64_t[]){t, p, z, c, 0, 0}),
                      ((int64_t[]){1, 1, 1, 1, 4, 4}), v, NULL));
    return v[7];
}

/* ---- tags that are not there ---- */

TEST(one_strip_unless_it_says_otherwise)
{
    uint8_t pixels[35];
    for (int i = 0; i < 35; i++) pixels[i] = (uint8_t)(3 * i);
    made m = begin();
    page p = grey(&m, 7, 5, 8, pixels);
    add_page(&m, &p);
    opened o = open_made(&m, "rows.tif");
    t_source_check(&o.source, pixels, 1, 40);
    end(&o);
}

TEST(density_is_per_inch_unless_it_says_otherwise)
{
    static const struct {
        uint32_t unit; /* 0: not said */
        double um;
    } cases[] = {{0, 1}, {2, 1}, {3, 10000.0 / 25400}, {1, 0}};
    const uint8_t pixels[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++) {
        made m = begin();
        page p = grey(&m, 2, 2, 8, pixels);
        set(&p, FTH__TIFF_X_RESOLUTION, RATIONAL, 1, 50800u, 2u);
        if (cases[i].unit) set(&p, FTH__TIFF_RESOLUTION_UNIT, SHORT, 1, cases[i].unit);
        add_page(&m, &p);
        opened o = open_made(&m, "unit.tif");
        NEAR(o.info->um_per_px, cases[i].um, 1e-9);
        end(&o);
    }
}

/* ---- samples ---- */

static page samples(made *m, const void *pixels, uint32_t n, uint32_t last_bits)
{
    page p = grey(m, 4, 2 * n, 8, pixels); /* as many bytes */
    p.tag[1].v[0] = 2;
    p.tag[2] = (tag){FTH__TIFF_BITS, SHORT, (int)n, {8, 8, 8, 8}, NULL};
    p.tag[2].v[n - 1] = last_bits;
    set(&p, FTH__TIFF_SAMPLES, SHORT, 1, n);
    return p;
}

TEST(samples_of_two_kinds_are_refused)
{
    const uint8_t pixels[24] = {0};
    made m = begin();
    page p = samples(&m, pixels, 3, 16);
    p.tag[4].v[0] = 2; /* red, green, blue */
    add_page(&m, &p);
    refused(&m, "kinds.tif", FTH_E_FILE_FEATURE, "samples of different kinds");
}

/* The last sample is left out where it is alpha, and there alone. */
TEST(alpha_is_no_channel)
{
    static const struct {
        int n;
        uint32_t extra[2];
        int n_extra, channels;
    } cases[] = {{2, {2, 0}, 1, 1}, {2, {0, 0}, 1, 2}, {3, {0, 1}, 2, 2}, {3, {2, 0}, 2, 3}};
    uint8_t pixels[24];
    for (int i = 0; i < 24; i++) pixels[i] = (uint8_t)(10 * i);
    for (int i = 0; i < 4; i++) {
        const int n = cases[i].n, c = cases[i].channels;
        made m = begin();
        page p = samples(&m, pixels, (uint32_t)n, 8);
        if (cases[i].n_extra == 1)
            set(&p, FTH__TIFF_EXTRA_SAMPLES, SHORT, 1, cases[i].extra[0]);
        else
            set(&p, FTH__TIFF_EXTRA_SAMPLES, SHORT, 2, cases[i].extra[0], cases[i].extra[1]);
        add_page(&m, &p);
        opened o = open_made(&m, "alpha.tif");
        EQ_I64(o.info->size[FTH_IMAGES_C], c);
        uint8_t wanted[24];
        for (int k = 0; k < 8 * c; k++) wanted[k] = pixels[k % 8 * n + k / 8];
        t_source_check(&o.source, wanted, 2, 40);
        end(&o);
    }
}

/* ---- chains of pages ---- */

TEST(a_circle_behind_the_first_page)
{
    made m = begin();
    size_t at[4];
    for (int i = 0; i < 4; i++) {
        const uint8_t pixels[4] = {0};
        page p = grey(&m, 2, 2, 8, pixels);
        at[i] = add_page(&m, &p);
    }
    put(&m, m.link, (uint32_t)at[2], 4);
    refused(&m, "ring.tif", FTH_E_FILE_FORMAT, "circle");
}

TEST(masks_are_no_planes)
{
    made m = begin();
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t pixels[16];
        memset(pixels, (int)i + 1, sizeof pixels);
        page p = grey(&m, 4, 4, 8, pixels);
        set(&p, FTH__TIFF_SUBFILE, LONG, 1, i % 2 ? 4u : 2u);
        add_page(&m, &p);
    }
    opened o = open_made(&m, "masks.tif");
    EQ_I64(o.info->size[FTH_IMAGES_Z], 2);
    EQ_I64(shade(&o, 0, 0, 0, 0), 1);
    EQ_I64(shade(&o, 0, 0, 1, 0), 3);
    end(&o);
}

TEST(a_pixel_short)
{
    made m = begin();
    uint8_t pixels[16] = {0};
    page p = grey(&m, 4, 4, 8, pixels);
    add_page(&m, &p);
    for (int i = 0; i < p.n; i++) /* the strip is behind everything, less its last byte */
        if (p.tag[i].tag == FTH__TIFF_STRIP_OFFSETS)
            put(&m, m.link - 12 * (size_t)(p.n - i) + 8, (uint32_t)m.bytes, 4);
    m.bytes += 15;
    refused(&m, "short.tif", FTH_E_FILE_SHORT, "should have 16 bytes");
}

/* ---- rows of several windows, tiles ---- */

enum { WIDE = 500, HIGH = 600 };

static uint16_t *noise(void)
{
    uint16_t *v = malloc(WIDE * HIGH * sizeof *v);
    for (uint32_t i = 0; i < WIDE * HIGH; i++) v[i] = (uint16_t)(i * 7919 + i / 977);
    return v;
}

TEST(columns_of_many_rows)
{
    uint16_t *v = noise(), *got = malloc(WIDE * HIGH * sizeof *got);
    made m = begin();
    page p = grey(&m, WIDE, HIGH, 16, v);
    add_page(&m, &p);
    opened o = open_made(&m, "columns.tif");
    OK(o.source.read(o.source.self, ((int64_t[]){0, 0, 0, 0, 3, 100}),
                     ((int64_t[]){1, 1, 1, 1, HIGH - 5, 9}), got, NULL));
    for (int y = 0; y < HIGH - 5; y++) SAME_BYTES(got + 9 * y, v + (y + 3) * WIDE + 100, 18);
    end(&o);
    free(v);
    free(got);
}

/* Tiles of 64 x 64, the last ones beyond the edges. */
static page tiled(made *m, const uint16_t *v, uint32_t width, uint32_t height)
{
    enum { N = 64 };
    page p = {0};
    tag offsets = {FTH__TIFF_TILE_OFFSETS, LONG, 0, {0}, NULL},
        lengths = {FTH__TIFF_TILE_BYTES, LONG, 0, {0}, NULL};
    for (uint32_t y = 0; y < height; y += N)
        for (uint32_t x = 0; x < width; x += N) {
            uint16_t tile[N * N] = {0};
            for (uint32_t i = 0; i < N * N; i++)
                if (y + i / N < height && x + i % N < width)
                    tile[i] = v[(y + i / N) * width + x + i % N];
            offsets.v[offsets.n++] = (uint32_t)add_data(m, tile, sizeof tile);
            lengths.v[lengths.n++] = sizeof tile;
        }
    set(&p, FTH__TIFF_WIDTH, LONG, 1, width);
    set(&p, FTH__TIFF_HEIGHT, LONG, 1, height);
    set(&p, FTH__TIFF_BITS, SHORT, 1, 16u);
    set(&p, FTH__TIFF_COMPRESSION, SHORT, 1, 1u);
    set(&p, FTH__TIFF_PHOTOMETRIC, SHORT, 1, 1u);
    set(&p, FTH__TIFF_SAMPLES, SHORT, 1, 1u);
    set(&p, FTH__TIFF_TILE_WIDTH, LONG, 1, (uint32_t)N);
    set(&p, FTH__TIFF_TILE_HEIGHT, LONG, 1, (uint32_t)N);
    p.tag[p.n++] = offsets;
    p.tag[p.n++] = lengths;
    return p;
}

TEST(tiles_in_rows_and_columns)
{
    uint16_t *v = noise();
    made m = begin();
    page p = tiled(&m, v, 150, 200);
    add_page(&m, &p);
    opened o = open_made(&m, "tiles.tif");
    t_source_check(&o.source, v, 4, 60);
    end(&o);
    free(v);
}

/* Pages may be stored in several ways: there is room for the one that needs most. */
TEST(room_for_every_page)
{
    uint16_t *v = noise();
    made m = begin();
    page p = grey(&m, WIDE, HIGH, 16, v);
    for (int i = 0; i < p.n; i++)
        if (p.tag[i].tag == FTH__TIFF_STRIP_OFFSETS) p.tag[i].v[0] = 8;
    /* one tile of the whole picture: libtiff hands it over at once */
    page large = p, plain = p;
    large.tag[5].tag = FTH__TIFF_TILE_OFFSETS;
    large.tag[6].tag = FTH__TIFF_TILE_BYTES;
    set(&large, FTH__TIFF_TILE_WIDTH, LONG, 1, 512u);
    set(&large, FTH__TIFF_TILE_HEIGHT, LONG, 1, 608u);
    add_page(&m, &large);
    add_page(&m, &plain);
    opened o = open_within(&m, "rooms.tif", 4 << 20); /* one room */
    LE_F64(512 * 608 * 2, o.source.billed_bytes);
    end(&o);
    free(v);
}

/* ---- OME ---- */

#define OME(images) "<?xml version=\"1.0\"?><OME xmlns=\"x\">" images "</OME>"
#define IMAGE(name, sizes, inside)                                                                 \
    "<Image Name=\"" name "\"><Pixels DimensionOrder=\"XYZCT\" Type=\"uint8\" SizeX=\"4\" "        \
    "SizeY=\"4\" " sizes ">" inside "</Pixels></Image>"

TEST(images_without_places_take_the_pages_in_turn)
{
    made m = begin();
    flat_pages(&m, 6,
               OME(IMAGE("a", "SizeZ=\"2\" SizeC=\"1\" SizeT=\"1\"", "")
                       IMAGE("b", "SizeZ=\"2\" SizeC=\"1\" SizeT=\"1\"", "")
                           IMAGE("c", "SizeZ=\"2\" SizeC=\"1\" SizeT=\"1\"", "")));
    opened o = open_made(&m, "turn.ome.tif");
    EQ_I64(o.info->size[FTH_IMAGES_P], 3);
    for (int p = 0; p < 3; p++)
        for (int z = 0; z < 2; z++) EQ_I64(shade(&o, 0, p, z, 0), 2 * p + z + 1);
    end(&o);
}

/* Lists without a page go on where the one before them ended. */
TEST(lists_without_a_page_go_on)
{
    made m = begin();
    flat_pages(&m, 4,
               OME(IMAGE("a", "SizeZ=\"2\" SizeC=\"2\" SizeT=\"1\"",
                         "<TiffData FirstC=\"1\" PlaneCount=\"2\"/><TiffData PlaneCount=\"2\"/>")));
    opened o = open_made(&m, "lists.ome.tif");
    for (int z = 0; z < 2; z++) {
        EQ_I64(shade(&o, 0, 0, z, 1), 1 + z);
        EQ_I64(shade(&o, 0, 0, z, 0), 3 + z);
    }
    end(&o);
}

/* A list that is longer than what is left of the planes does not begin again. */
TEST(a_list_too_long)
{
    made m = begin();
    flat_pages(&m, 4,
               OME(IMAGE("a", "SizeZ=\"2\" SizeC=\"2\" SizeT=\"1\"",
                         "<TiffData IFD=\"0\" FirstZ=\"1\" PlaneCount=\"9\"/>")));
    opened o = open_made(&m, "long.ome.tif");
    EQ_I64(shade(&o, 0, 0, 0, 0), 0); /* nobody has it */
    EQ_I64(shade(&o, 0, 0, 1, 0), 1);
    EQ_I64(shade(&o, 0, 0, 0, 1), 2);
    EQ_I64(shade(&o, 0, 0, 1, 1), 3);
    IS_TRUE(!fth_images_get_frame(o.images, 0, 0, 0).present); /* one channel is missing */
    IS_TRUE(fth_images_get_frame(o.images, 0, 0, 1).present);
    EQ_I64(o.info->frames_present, 1);
    end(&o);
}

/* Places of each position are those of its own planes. */
TEST(every_position_has_its_place)
{
#define PLANE(z, x) "<Plane TheZ=\"" z "\" TheC=\"0\" TheT=\"0\" PositionX=\"" x "\"/>"
    made m = begin();
    flat_pages(
        &m, 4,
        OME(IMAGE("a", "SizeZ=\"2\" SizeC=\"1\" SizeT=\"1\"", PLANE("0", "10") PLANE("1", "11"))
                IMAGE("b", "SizeZ=\"2\" SizeC=\"1\" SizeT=\"1\"",
                      PLANE("0", "20") PLANE("1", "21"))));
    opened o = open_made(&m, "places.ome.tif");
    for (int64_t p = 0; p < 2; p++) {
        EQ_F64(fth_images_get_position(o.images, p).x_um, 10 + 10 * p);
        EQ_F64(fth_images_get_frame(o.images, 0, p, 1).x_um, 11 + 10 * p);
    }
    end(&o);
}

/* Pages of three samples are three channels, also where the file does not say how many it has. */
TEST(colours_without_a_word)
{
    uint8_t pixels[24], wanted[24];
    for (int i = 0; i < 24; i++) pixels[i] = (uint8_t)(10 * i);
    for (int i = 0; i < 24; i++) wanted[i] = pixels[i % 8 * 3 + i / 8];
    made m = begin();
    page p = samples(&m, pixels, 3, 8);
    p.tag[4].v[0] = 2;
    set_text(&p,
             "<OME><Image><Pixels DimensionOrder=\"XYZCT\" Type=\"uint8\" SizeX=\"4\" "
             "SizeY=\"2\" SizeZ=\"1\" SizeC=\"3\" SizeT=\"1\"><Channel/></Pixels></Image></OME>");
    add_page(&m, &p);
    opened o = open_made(&m, "colours.ome.tif");
    EQ_I64(o.info->size[FTH_IMAGES_C], 3);
    t_source_check(&o.source, wanted, 5, 40);
    end(&o);
}

/* ---- ImageJ ---- */

TEST(keys_of_imagej)
{
    made m = begin();
    flat_pages(&m, 4, "ImageJ=1.53t\nslicesorder=9\nimages=4\nslices=2\nframes=2\n");
    opened o = open_made(&m, "keys.tif");
    EQ_STR(o.info->axes, "tzyx");
    EQ_I64(o.info->size[FTH_IMAGES_T], 2);
    EQ_I64(shade(&o, 1, 0, 0, 0), 3);
    end(&o);
    m = begin(); /* three of four: nobody knows which */
    flat_pages(&m, 4, "ImageJ=1.53t\nimages=4\nslices=3\n");
    o = open_made(&m, "three.tif");
    EQ_I64(o.info->size[FTH_IMAGES_Z], 4);
    EQ_I64(shade(&o, 0, 0, 3, 0), 4);
    end(&o);
}

/* ---- what we write ---- */

static uint32_t get(const unsigned char *d, size_t at, int bytes)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint32_t)d[at + (size_t)i] << 8 * i;
    return v;
}

static void check_written(fth_mem *mem, const char *name)
{
    const char *path = t_temp_path("written.tif");
    const fth_tiff_stack stack = {.flavour = FTH_TIFF_OME,
                                  .dtype = FTH_U16,
                                  .axes = "zyx",
                                  .size = {3, 300, 300},
                                  .name = name};
    fth_sink sink;
    OK(fth_tiff_create(&sink, mem, path, &stack, NULL));
    uint16_t *v = calloc(3 * 300 * 300, sizeof *v);
    OK(sink.write(sink.self, (int64_t[3]){0}, sink.size, v, NULL));
    OK(sink.commit(sink.self, NULL));
    fth_sink_close(&sink);
    size_t bytes = 0;
    int pages = 0;
    unsigned char *d = t_file_read(path, &bytes);
    for (size_t at = get(d, 4, 4); at; pages++) {
        const uint32_t n = get(d, at, 2);
        uint64_t sum = 0;
        EQ_I64((int64_t)at % 2, 0);
        for (uint32_t i = 0; i < n; i++) {
            const size_t e = at + 2 + 12 * i;
            const uint32_t count = get(d, e + 4, 4);
            if (get(d, e, 2) != FTH__TIFF_STRIP_BYTES) continue;
            EQ_I64(get(d, e + 8, 4) % 2, 0);
            for (uint32_t k = 0; k < count; k++) sum += get(d, get(d, e + 8, 4) + 4 * k, 4);
            IS_TRUE(count > 1);
        }
        EQ_U64(sum, 300 * 300 * 2);
        at = get(d, at + 2 + 12 * n, 4);
    }
    EQ_I64(pages, 3);
    free(d);
    free(v);
    remove(path);
}

/* Lengths of strips add up to a page; pages and values begin at even bytes, whatever stands before.
 */
TEST(strips_that_are_written)
{
    fth_mem *mem = t_mem(16 << 20);
    check_written(mem, "a");
    check_written(mem, "ab");
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
