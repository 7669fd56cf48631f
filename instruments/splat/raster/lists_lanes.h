/* lists_lanes.h - for every tile the Gaussians that touch it, by depth.
 *
 * Gaussians are taken in blocks of their order. Each block counts what it has for every tile, the
 * counts become places, and the blocks fill in: no order of threads is seen. The slot of a Gaussian
 * in a tile is its number before the tiles were sorted, so that its slots lie side by side.
 */
#include "tile_lanes.h"

#include <string.h>

typedef struct lists {
    gs_blend_work *w;
    int64_t gw, tiles, seen;
    int64_t *start; /* [tiles + 1] */
    int64_t *place; /* [GS_BLOCKS tiles]: counts, then where the next one goes */
    int64_t *slots; /* [GS_BLOCKS + 1]: the first slot of each block */
    int32_t *item;  /* [room]: forward rows of splats, backward slots, by tile and depth */
    int32_t *owner; /* [room]: backward, the row of a slot */
    real *sum;      /* [room SUMS]: backward */
    bool back;
} lists;

static inline uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static uint64_t lists_bytes(const gs_raster *a, int64_t rows, bool back)
{
    const uint64_t tiles = (uint64_t)((a->width + a->tile - 1) / a->tile * rows),
                   room = (uint64_t)(a->room * rows);
    uint64_t bytes = aligned(8 * (tiles + 1)) + aligned(8 * GS_BLOCKS * tiles) +
                     aligned(8 * (GS_BLOCKS + 1)) + aligned(4 * room);
    if (back) bytes += aligned(4 * room) + aligned(SUMS * sizeof(real) * room);
    return bytes;
}

static void *take(char **at, uint64_t bytes)
{
    void *block = *at;
    *at += aligned(bytes);
    return block;
}

static const real *splat_of(const gs_blend_work *w, int64_t rank)
{
    return (const real *)w->splats + (int64_t)w->order[rank] * w->splats_step;
}

static void lists_begin(lists *l, gs_blend_work *w, bool back)
{
    const gs_raster *a = w->rule;
    char *at = w->scratch;
    *l = (lists){.w = w, .gw = (a->width + a->tile - 1) / a->tile, .back = back};
    l->tiles = l->gw * w->rows;
    const uint64_t room = (uint64_t)(a->room * w->rows);
    l->start = take(&at, 8 * ((uint64_t)l->tiles + 1));
    l->place = take(&at, 8 * GS_BLOCKS * (uint64_t)l->tiles);
    l->slots = take(&at, 8 * (GS_BLOCKS + 1));
    l->item = take(&at, 4 * room);
    if (back) {
        l->owner = take(&at, 4 * room);
        l->sum = take(&at, SUMS * sizeof(real) * room);
    }
    int64_t low = 0, high = w->n; /* those that are seen come first */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (splat_of(w, middle)[GS_TILES] > 0)
            low = middle + 1;
        else
            high = middle;
    }
    l->seen = low;
}

/* The part of a box that lies in our rows of tiles. */
static box box_here(const lists *l, const real *s)
{
    box b = box_of(l->w->rule, s);
    if (b.y0 < l->w->row) b.y0 = l->w->row;
    if (b.y1 > l->w->row + l->w->rows) b.y1 = l->w->row + l->w->rows;
    return b;
}

static void count_block(void *arg, int64_t block, int worker)
{
    lists *l = arg;
    int64_t *count = l->place + block * l->tiles, total = 0;
    (void)worker;
    memset(count, 0, (size_t)l->tiles * sizeof *count);
    for (int64_t r = block * l->seen / GS_BLOCKS; r < (block + 1) * l->seen / GS_BLOCKS; r++) {
        const real *s = splat_of(l->w, r);
        const box b = box_here(l, s);
        for (int64_t y = b.y0; y < b.y1; y++)
            for (int64_t x = b.x0; x < b.x1; x++) {
                if (!touches(l->w->rule, s, x, y)) continue;
                count[(y - l->w->row) * l->gw + x]++;
                total++;
            }
    }
    l->slots[block + 1] = total;
}

/* Counts to places; false: there are more than there is room for. */
static bool place_all(lists *l)
{
    int64_t at = 0;
    l->slots[0] = 0;
    for (int b = 0; b < GS_BLOCKS; b++) l->slots[b + 1] += l->slots[b];
    for (int64_t t = 0; t < l->tiles; t++) {
        l->start[t] = at;
        for (int64_t b = 0; b < GS_BLOCKS; b++) {
            const int64_t n = l->place[b * l->tiles + t];
            l->place[b * l->tiles + t] = at;
            at += n;
        }
    }
    l->start[l->tiles] = at;
    l->w->need = (at + l->w->rows - 1) / l->w->rows;
    return l->w->need <= l->w->rule->room && at <= INT32_MAX;
}

static void fill_block(void *arg, int64_t block, int worker)
{
    lists *l = arg;
    int64_t *place = l->place + block * l->tiles, slot = l->slots[block];
    (void)worker;
    for (int64_t r = block * l->seen / GS_BLOCKS; r < (block + 1) * l->seen / GS_BLOCKS; r++) {
        const real *s = splat_of(l->w, r);
        const box b = box_here(l, s);
        for (int64_t y = b.y0; y < b.y1; y++)
            for (int64_t x = b.x0; x < b.x1; x++) {
                if (!touches(l->w->rule, s, x, y)) continue;
                const int64_t at = place[(y - l->w->row) * l->gw + x]++;
                l->item[at] = l->back ? (int32_t)slot : l->w->order[r];
                if (l->back) l->owner[slot] = l->w->order[r];
                slot++;
            }
    }
}

/* False: too little room. When the run was cancelled, lists are empty. */
static bool lists_make(lists *l, gs_blend_work *w, bool back)
{
    lists_begin(l, w, back);
    fth_team_run(w->team, GS_BLOCKS, count_block, l);
    if (fth_team_cancelled(w->team)) {
        l->tiles = 0;
        memset(l->slots, 0, 8 * (GS_BLOCKS + 1));
        return true;
    }
    if (!place_all(l)) return false;
    fth_team_run(w->team, GS_BLOCKS, fill_block, l);
    if (fth_team_cancelled(w->team)) {
        l->tiles = 0;
        memset(l->slots, 0, 8 * (GS_BLOCKS + 1));
    }
    return true;
}
