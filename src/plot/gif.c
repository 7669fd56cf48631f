/* gif.c - figures one after the other, as a GIF file that is written frame by frame.
 *
 * Pixels become entries of one palette: 200 of a colour map, 55 greys for text and frames, and one
 * that means "as before", which every pixel gets that did not change; most of a frame is then one
 * long run. LZW codes go out as they are found, so a frame is never whole: all that stays between
 * frames is the entry of each pixel.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/file.h"
#include "mem/heap.h"
#include "plot/figure.h"

#include <string.h>

enum {
    MAPPED = 200, /* entries of the colour map; the 55 others are greys, enough for smooth text */
    SAME = 255,   /* the entry of unchanged pixels; not a colour */
    CLEAR = 256,
    END = 257,
    CODES = 4096,
    SLOTS = 8192, /* of the hash table: twice the codes */
    BITS = 6,     /* of a channel, for the table of nearest entries */
    SHADES = 1 << (3 * BITS),
    SUB_BLOCK = 255
};
_Static_assert(SLOTS == 1 << 13, "find takes 13 bits of the hash");

/* Everything of a fixed size. */
typedef struct tables {
    uint8_t rgb[256][3];
    uint8_t nearest[SHADES]; /* SAME: not looked for yet */
    uint32_t key[SLOTS];     /* prefix << 8 | entry, and one */
    uint16_t code[SLOTS];
    uint8_t stream[FTH__STREAM_BUFFER];
} tables;

struct fth_animation {
    fth_mem *mem;
    fth__writer writer;
    fth__plot_stream out;
    tables *t;
    int delay_ms, loops;
    int64_t width, height; /* 0 before the first frame */
    uint8_t *before;       /* [height][width] */
    uint8_t *at;           /* in it, of the row that comes next */
    bool first, broken;
    /* LZW */
    uint32_t prefix, next, width_bits; /* prefix CLEAR: none yet */
    uint32_t bits;
    int n_bits;
    uint8_t block[SUB_BLOCK + 1];
};

/* ---- colours ---- */

static void fill_palette(tables *t, fth_colour_map map)
{
    for (int i = 0; i < SAME; i++) {
        const int grey = i - MAPPED;
        const fth_colour c =
            i < MAPPED ? fth_colour_map_get(map, (i * 255 + (MAPPED - 1) / 2) / (MAPPED - 1))
                       : fth_rgb((uint8_t)(grey * 255 / 54), (uint8_t)(grey * 255 / 54),
                                 (uint8_t)(grey * 255 / 54));
        for (int k = 0; k < 3; k++) t->rgb[i][k] = (uint8_t)(c >> (16 - 8 * k));
    }
    memset(t->nearest, SAME, sizeof t->nearest);
}

static uint8_t nearest(tables *t, const uint8_t rgb[3])
{
    const int low = 8 - BITS;
    const int shade = rgb[0] >> low << (2 * BITS) | rgb[1] >> low << BITS | rgb[2] >> low;
    if (t->nearest[shade] != SAME) return t->nearest[shade];
    int best = 0, least = INT32_MAX;
    for (int i = 0; i < SAME; i++) {
        int far = 0;
        for (int k = 0; k < 3; k++) {
            /* the middle of the shade, so that the entry does not depend on who asked first */
            const int d = (rgb[k] >> low << low) + (1 << low) / 2 - t->rgb[i][k];
            far += d * d;
        }
        if (far < least) least = far, best = i;
    }
    return t->nearest[shade] = (uint8_t)best;
}

/* ---- LZW ---- */

static void put(fth_animation *a, const void *bytes, uint64_t n)
{
    fth__stream_put(&a->out, bytes, n);
}

static void put_byte(fth_animation *a, uint8_t byte)
{
    a->block[++a->block[0]] = byte;
    if (a->block[0] < SUB_BLOCK) return;
    put(a, a->block, SUB_BLOCK + 1);
    a->block[0] = 0;
}

static void put_code(fth_animation *a, uint32_t code)
{
    FTH_ASSERT(a->width_bits <= 12 && code < 1u << a->width_bits && a->n_bits < 8);
    a->bits |= code << a->n_bits;
    for (a->n_bits += (int)a->width_bits; a->n_bits >= 8; a->n_bits -= 8, a->bits >>= 8)
        put_byte(a, (uint8_t)a->bits);
}

static void forget(fth_animation *a)
{
    memset(a->t->key, 0, sizeof a->t->key);
    a->next = END + 1;
    a->width_bits = 9;
}

/* The slot of a string, or the free one where it belongs. */
static uint32_t find(const tables *t, uint32_t key)
{
    uint32_t i = key * 2654435761u >> 19;
    while (t->key[i] != 0 && t->key[i] != key) i = (i + 1) % SLOTS;
    return i;
}

static void add_entry(fth_animation *a, uint8_t entry)
{
    tables *t = a->t;
    if (a->prefix == CLEAR) {
        a->prefix = entry;
        return;
    }
    const uint32_t key = (a->prefix << 8 | entry) + 1, slot = find(t, key);
    if (t->key[slot] == key) {
        a->prefix = t->code[slot];
        return;
    }
    put_code(a, a->prefix);
    a->prefix = entry;
    if (a->next == CODES) {
        put_code(a, CLEAR);
        forget(a);
        return;
    }
    FTH_ASSERT(a->next < CODES && t->key[slot] == 0);
    t->key[slot] = key;
    t->code[slot] = (uint16_t)a->next;
    /* a reader is one string behind: it widens when this code, not the next, would not fit */
    if (a->next++ == 1u << a->width_bits) a->width_bits++;
}

static void begin_frame(fth_animation *a)
{
    const uint8_t control[8] = {0x21,
                                0xf9,
                                4,
                                (uint8_t)(1 << 2 | (a->first ? 0 : 1)), /* stays; SAME is clear */
                                (uint8_t)(a->delay_ms / 10),
                                (uint8_t)(a->delay_ms / 10 >> 8),
                                SAME,
                                0};
    const uint8_t place[11] = {0x2c,
                               0,
                               0,
                               0,
                               0,
                               (uint8_t)a->width,
                               (uint8_t)(a->width >> 8),
                               (uint8_t)a->height,
                               (uint8_t)(a->height >> 8),
                               0,
                               8 /* bits of an entry */};
    put(a, control, sizeof control);
    put(a, place, sizeof place);
    a->at = a->before;
    a->bits = 0, a->n_bits = 0, a->block[0] = 0;
    forget(a);
    put_code(a, CLEAR);
    a->prefix = CLEAR;
}

static void end_frame(fth_animation *a)
{
    FTH_ASSERT(a->at == a->before + a->width * a->height); /* every row has come */
    put_code(a, a->prefix);
    if (a->next == 1u << a->width_bits && a->next < CODES) a->width_bits++;
    put_code(a, END);
    if (a->n_bits > 0) put_byte(a, (uint8_t)a->bits);
    if (a->block[0] > 0) put(a, a->block, (uint64_t)a->block[0] + 1);
    put(a, "", 1);
    a->first = false;
}

static void add_row(void *user, const uint32_t *px)
{
    fth_animation *a = user;
    uint8_t rgb[3];
    FTH_ASSERT(a->at + a->width <= a->before + a->width * a->height);
    for (int64_t i = 0; i < a->width; i++) {
        fth__plain_colour(px[i], rgb);
        const uint8_t entry = nearest(a->t, rgb);
        add_entry(a, !a->first && entry == *a->at ? SAME : entry);
        *a->at++ = entry;
    }
}

/* ---- the file ---- */

static void begin_file(fth_animation *a)
{
    const uint8_t size[7] = {(uint8_t)a->width,
                             (uint8_t)(a->width >> 8),
                             (uint8_t)a->height,
                             (uint8_t)(a->height >> 8),
                             0xf7, /* one palette of 256 */
                             0,
                             0};
    const uint8_t loop[5] = {3, 1, (uint8_t)a->loops, (uint8_t)(a->loops >> 8), 0};
    put(a, "GIF89a", 6);
    put(a, size, sizeof size);
    put(a, a->t->rgb, sizeof a->t->rgb);
    put(a, "\x21\xff\x0bNETSCAPE2.0", 14);
    put(a, loop, sizeof loop);
}

static fth_status open_file(fth_animation *a, const char *path, fth_colour_map map, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, sizeof *a->t, "animation", &block, err));
    a->t = block;
    fill_palette(a->t, map);
    memset(a->t->rgb[SAME], 0, 3);
    FTH_TRY(fth__writer_open(&a->writer, a->mem, path, err));
    a->out = (fth__plot_stream){.writer = &a->writer, .buffer = a->t->stream};
    return FTH_OK;
}

fth_status fth_animation_create(fth_animation **out, fth_mem *mem, const char *path,
                                const fth_animation_options *opt, fth_err *err)
{
    const fth_animation_options o = opt ? *opt : (fth_animation_options){0};
    if (out) *out = NULL;
    if (!out || !mem || !path)
        return FTH_FAIL(err, FTH_E_USAGE, "an animation needs memory, a path and a place");
    if ((unsigned)o.map >= FTH_MAP_COUNT || o.delay_ms < 0 || o.delay_ms > 655350 || o.loops < 0 ||
        o.loops > 65535)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "an animation needs a colour map, a delay up to 655350 ms and up to 65535 "
                        "loops");
    fth_animation *a = fth__heap_alloc(mem, sizeof *a);
    if (!a) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for an animation");
    a->mem = mem;
    a->delay_ms = o.delay_ms > 0 ? o.delay_ms : 100;
    a->loops = o.loops;
    a->first = true;
    const fth_status s = open_file(a, path, o.map, err);
    if (s != FTH_OK) {
        fth_animation_abandon(a);
        return s;
    }
    *out = a;
    return FTH_OK;
}

/* The first frame decides the size. */
static fth_status settle_size(fth_animation *a, fth_figure *fig, fth_err *err)
{
    fth__pixels p = {0};
    FTH_TRY(fth__figure_measure(fig, &p, err));
    if (a->before) {
        if (p.width == a->width && p.height == a->height) return FTH_OK;
        return FTH_FAIL(
            err, FTH_E_USAGE, "frames of an animation have one size: %lld x %lld, not %lld x %lld",
            (long long)a->width, (long long)a->height, (long long)p.width, (long long)p.height);
    }
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)(p.width * p.height), "last frame", &block,
                         err));
    a->before = block;
    a->width = p.width, a->height = p.height;
    begin_file(a);
    return FTH_OK;
}

fth_status fth_animation_add(fth_animation *a, fth_figure *fig, fth_err *err)
{
    if (!a || a->broken) return FTH_FAIL(err, FTH_E_STATE, "the animation can take no more frames");
    a->out.err = err;
    fth_status s = settle_size(a, fig, err);
    if (s == FTH_OK) {
        begin_frame(a);
        s = fth__figure_rows(fig, add_row, a, err);
        if (s == FTH_OK) end_frame(a);
    }
    if (s == FTH_OK) s = a->out.status;
    a->out.err = NULL;
    a->broken = s != FTH_OK;
    return s;
}

static void destroy(fth_animation *a)
{
    fth_mem *mem = a->mem;
    (void)fth_mem_release(mem, a->before, NULL);
    (void)fth_mem_release(mem, a->t, NULL);
    fth__heap_free(mem, a);
}

fth_status fth_animation_commit(fth_animation *a, fth_err *err)
{
    if (!a || a->broken || a->first) {
        fth_animation_abandon(a);
        return FTH_FAIL(err, FTH_E_STATE, "an animation ended without a frame, or after a failure");
    }
    a->out.err = err;
    put(a, "\x3b", 1);
    fth__stream_flush(&a->out);
    fth_status s = a->out.status;
    if (s == FTH_OK)
        s = fth__writer_commit(&a->writer, NULL, err);
    else
        fth__writer_abandon(&a->writer);
    destroy(a);
    return s;
}

void fth_animation_abandon(fth_animation *a)
{
    if (!a) return;
    fth__writer_abandon(&a->writer);
    destroy(a);
}

fth_status fth_animation_plan(fth_figure *fig, uint64_t *bytes, fth_err *err)
{
    fth__pixels p = {0};
    FTH_TRY(fth__figure_measure(fig, &p, err));
    if (bytes) *bytes = p.bytes + (uint64_t)(p.width * p.height) + sizeof(tables);
    return FTH_OK;
}
