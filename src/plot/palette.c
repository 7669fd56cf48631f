/* palette.c - a small picture as a PNG with few colours.
 *
 * Median cut: pixels are counted in 4096 bins of colour, and the box of bins that spreads most is
 * cut at its median until there are enough boxes. A bin keeps the sum of its colours, so a palette
 * holds means and not corners of bins. No dithering: flat areas of figures stay flat, and small.
 */
#include "base/assert.h"
#include "plot/pen.h"
#include "plot/thumbnail.h"

#include <string.h>

enum {
    BINS = 4096, /* four bits of each channel: the eye tells no finer ones apart in a thumbnail */
    MOST = 256   /* of a PNG */
};

typedef struct bin {
    uint32_t count, sum[3];
    uint8_t level[3];
} bin;

typedef struct box {
    int from, to; /* of the used bins */
} box;

struct fth__palette {
    bin bin[BINS];
    uint16_t used[BINS]; /* bins with pixels, those of a box side by side */
    uint8_t index[BINS]; /* number of the colour of a bin */
    box box[MOST];
    uint8_t colour[MOST][3];
    int n_boxes;
    uint8_t row[FTH__THUMB_SIDE + 1];
    struct {
        uint8_t *to;
        uint64_t used, most; /* used > most: it did not fit */
    } out;
    uint8_t pack[]; /* fth__deflate_bytes */
};

uint64_t fth__palette_bytes(void)
{
    return sizeof(fth__palette) + 64 + fth__deflate_bytes();
}

static int bin_of(const uint8_t *px)
{
    return (px[0] >> 4) << 8 | (px[1] >> 4) << 4 | px[2] >> 4;
}

static int count_bins(fth__palette *p, const uint8_t *rgb, int64_t n)
{
    int used = 0;
    memset(p->bin, 0, sizeof p->bin);
    for (int64_t i = 0; i < n; i++, rgb += 3) {
        const int b = bin_of(rgb);
        bin *at = &p->bin[b];
        if (at->count++ == 0) p->used[used++] = (uint16_t)b;
        for (int k = 0; k < 3; k++) {
            at->sum[k] += rgb[k];
            at->level[k] = (uint8_t)(rgb[k] >> 4);
        }
    }
    return used;
}

/* How much a box would gain by being cut, and along which channel. */
static uint64_t spread(const fth__palette *p, box b, int *channel)
{
    uint8_t low[3] = {255, 255, 255}, high[3] = {0, 0, 0};
    uint64_t count = 0;
    for (int i = b.from; i < b.to; i++) {
        const bin *at = &p->bin[p->used[i]];
        count += at->count;
        for (int k = 0; k < 3; k++) {
            if (at->level[k] < low[k]) low[k] = at->level[k];
            if (at->level[k] > high[k]) high[k] = at->level[k];
        }
    }
    uint64_t widest = 0;
    for (int k = 0; k < 3; k++)
        if ((uint64_t)(high[k] - low[k]) > widest) widest = high[k] - low[k], *channel = k;
    /* Few pixels far apart matter as well: a thin red line is what the figure is about. */
    uint64_t root = 1;
    while (root * root < count) root++;
    return widest * widest * root;
}

/* Put the bins at or below the median level of a channel first; the place where the others start.
 */
static int cut(fth__palette *p, box b, int channel)
{
    uint64_t at[16] = {0}, total = 0, below = 0;
    int top = 0, level = 0, to = b.from;
    for (int i = b.from; i < b.to; i++) {
        const bin *x = &p->bin[p->used[i]];
        at[x->level[channel]] += x->count;
        total += x->count;
        if (x->level[channel] > top) top = x->level[channel];
    }
    for (; level < top - 1; level++)
        if ((below += at[level]) * 2 >= total) break;
    for (int i = b.from; i < b.to; i++)
        if (p->bin[p->used[i]].level[channel] <= level) {
            const uint16_t swap = p->used[i];
            p->used[i] = p->used[to], p->used[to++] = swap;
        }
    FTH_ASSERT(to > b.from && to < b.to); /* both sides have bins */
    return to;
}

static void find_colours(fth__palette *p, int used, int colours)
{
    p->box[0] = (box){0, used};
    p->n_boxes = 1;
    FTH_ASSERT(used >= 1 && used <= BINS && colours >= 2 && colours <= MOST);
    while (p->n_boxes < colours) {
        int best = -1, channel = 0;
        uint64_t most = 0;
        for (int i = 0; i < p->n_boxes; i++) {
            int k = 0;
            const uint64_t gain = spread(p, p->box[i], &k);
            if (gain > most) most = gain, best = i, channel = k;
        }
        if (best < 0) return; /* a bin each */
        const int middle = cut(p, p->box[best], channel);
        p->box[p->n_boxes++] = (box){middle, p->box[best].to};
        p->box[best].to = middle;
    }
}

static void name_colours(fth__palette *p)
{
    for (int i = 0; i < p->n_boxes; i++) {
        uint64_t sum[3] = {0}, count = 0;
        for (int k = p->box[i].from; k < p->box[i].to; k++) {
            const bin *b = &p->bin[p->used[k]];
            p->index[p->used[k]] = (uint8_t)i;
            count += b->count;
            for (int c = 0; c < 3; c++) sum[c] += b->sum[c];
        }
        bool white = true;
        for (int c = 0; c < 3; c++) {
            p->colour[i][c] = (uint8_t)(count ? (sum[c] + count / 2) / count : 0);
            white = white && p->colour[i][c] >= 250;
        }
        if (white) memset(p->colour[i], 255, 3); /* paper, not nearly paper */
    }
}

static void put(void *to, const void *bytes, uint64_t n)
{
    fth__palette *p = to;
    if (n <= p->out.most && p->out.used <= p->out.most - n) {
        if (n) memcpy(p->out.to + p->out.used, bytes, n);
        p->out.used += n;
    } else
        p->out.used = p->out.most + 1;
}

static void put_data(void *to, const void *bytes, uint64_t n)
{
    fth__png_chunk(put, to, "IDAT", bytes, (uint32_t)n);
}

static void put_head(fth__palette *p, int64_t w, int64_t h, int depth)
{
    uint8_t head[13] = {0};
    head[2] = (uint8_t)(w >> 8), head[3] = (uint8_t)w;
    head[6] = (uint8_t)(h >> 8), head[7] = (uint8_t)h;
    head[8] = (uint8_t)depth;
    head[9] = 3;
    put(p, "\x89PNG\r\n\x1a\n", 8);
    fth__png_chunk(put, p, "IHDR", head, 13);
    fth__png_chunk(put, p, "PLTE", p->colour, (uint32_t)(3 * p->n_boxes));
}

uint64_t fth__palette_png(void *block, const uint8_t *rgb, int64_t w, int64_t h, int colours,
                          uint8_t *to, uint64_t most)
{
    fth__palette *p = block;
    FTH_ASSERT(w > 0 && w <= FTH__THUMB_SIDE && h > 0 && h <= FTH__THUMB_SIDE);
    find_colours(p, count_bins(p, rgb, w * h), colours);
    name_colours(p);
    p->out.to = to;
    p->out.used = 0;
    p->out.most = most;
    const int depth = p->n_boxes <= 2 ? 1 : p->n_boxes <= 4 ? 2 : p->n_boxes <= 16 ? 4 : 8;
    put_head(p, w, h, depth);
    uint8_t *shelf = p->pack + (64 - (uintptr_t)p->pack % 64) % 64;
    fth__deflate *pack = fth__deflate_begin(shelf, FTH__WRAP_ZLIB, put_data, p);
    for (int64_t y = 0; y < h; y++) {
        memset(p->row, 0, sizeof p->row); /* its first byte says that the row has no filter */
        for (int64_t x = 0; x < w; x++, rgb += 3) {
            const int64_t bit = x * depth;
            const int shift = 8 - depth - (int)(bit % 8);
            p->row[1 + bit / 8] = (uint8_t)(p->row[1 + bit / 8] | p->index[bin_of(rgb)] << shift);
        }
        fth__deflate_add(pack, p->row, (uint64_t)((w * depth + 7) / 8 + 1));
    }
    const bool ok = fth__deflate_end(pack);
    fth__png_chunk(put, p, "IEND", NULL, 0);
    return ok && p->out.used <= most ? p->out.used : 0;
}
