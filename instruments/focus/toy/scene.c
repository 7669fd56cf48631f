/* scene.c - see scene.h. */
#include "scene.h"

#include "scene_loops.h"

#include <math.h>
#include <string.h>

enum {
    BAND = 32,      /* rows that a worker takes at a time */
    TILE = 2048,    /* columns that are blurred at a time */
    PLANE = 1 << 16 /* depth of a plane in fixed point */
};

static double fraction(uint32_t seed, uint32_t place) /* 0 to 1 */
{
    return (double)fo_scene_mix(seed + place * 0x9e3779b9u) / 4294967296.0;
}

uint64_t fo_scene_bytes(int64_t rows, int64_t columns, int64_t planes)
{
    const uint64_t n = (uint64_t)(rows * columns);
    return n * (sizeof(float) + sizeof(uint16_t) * (uint64_t)(planes + 1)) +
           (uint64_t)columns * sizeof(int32_t) + FO_BLUR_BLOCK * sizeof(float);
}

fth_status fo_scene_create(fo_scene *s, fth_mem *mem, int64_t rows, int64_t columns, int64_t planes,
                           fth_err *err)
{
    const uint64_t n = (uint64_t)(rows * columns);
    void *block[3] = {NULL};
    *s = (fo_scene){.mem = mem, .rows = rows, .columns = columns, .planes = planes};
    fth_status status = fth_mem_take(mem, FTH_MEM_ANY, (n + FO_BLUR_BLOCK) * sizeof *s->texture,
                                     "texture", &block[0], err);
    if (status == FTH_OK)
        status = fth_mem_take(mem, FTH_MEM_ANY, n * (uint64_t)(planes + 1) * sizeof *s->bank,
                              "blurred textures", &block[1], err);
    if (status == FTH_OK)
        status = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)columns * sizeof *s->across, "depth",
                              &block[2], err);
    s->texture = block[0];
    s->bank = block[1];
    s->across = block[2];
    if (status != FTH_OK) {
        fo_scene_free(s);
        return status;
    }
    memset(s->texture + n, 0, FO_BLUR_BLOCK * sizeof *s->texture); /* read, and not used */
    return FTH_OK;
}

void fo_scene_free(fo_scene *s)
{
    if (!s->mem) return;
    fth_mem_release(s->mem, s->across, NULL);
    fth_mem_release(s->mem, s->bank, NULL);
    fth_mem_release(s->mem, s->texture, NULL);
    *s = (fo_scene){0};
}

/* ---- sharing ---- */

static fth_status each(fth_context *ctx, const char *name, int64_t n,
                       void (*fn)(void *arg, int64_t i, int worker), void *arg, fth_err *err)
{
    if (ctx) return fth_context_loop(ctx, name, n, fn, arg, err);
    for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
    return FTH_OK;
}

static int64_t bands(const fo_scene *s)
{
    return (s->rows + BAND - 1) / BAND;
}

static int64_t band_end(const fo_scene *s, int64_t band)
{
    return (band + 1) * BAND < s->rows ? (band + 1) * BAND : s->rows;
}

/* ---- texture ---- */

typedef struct body {
    fo_scene *s;
    double cos_turn, sin_turn, long_axis, short_axis;
} body;

/* A body across the middle: dark, with grains; the ground has faint ones. */
static void texture_band(void *arg, int64_t band, int worker)
{
    const body *b = arg;
    const fo_scene *s = b->s;
    (void)worker;
    for (int64_t y = band * BAND; y < band_end(s, band); y++)
        for (int64_t x = 0; x < s->columns; x++) {
            const int64_t i = y * s->columns + x;
            const double u = (double)(2 * y - s->rows) / (double)(2 * s->rows),
                         v = (double)(2 * x - s->columns) / (double)(2 * s->columns);
            const double along = (u * b->cos_turn + v * b->sin_turn) / b->long_axis,
                         over = (v * b->cos_turn - u * b->sin_turn) / b->short_axis;
            const double r = along * along + over * over,
                         grain = fraction(s->seed, (uint32_t)i) - 0.5;
            s->texture[i] = (float)(r < 1 ? 700 + 220 * r + 440 * grain : 1100 + 90 * grain);
        }
}

static int64_t mirror(int64_t i, int64_t n)
{
    while (i < 0 || i >= n) i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
}

/* ---- the bank ---- */

/* Weights of a Gaussian, from the middle outwards; the radius. */
static int gaussian(double sigma, float g[FO_BLUR_RADIUS + 1])
{
    const double wanted = ceil(3 * sigma);
    const int radius = wanted < FO_BLUR_RADIUS ? (int)wanted : FO_BLUR_RADIUS;
    double sum = 0;
    for (int k = 0; k <= radius; k++) sum += (k ? 2 : 1) * exp(-0.5 * k * k / (sigma * sigma));
    for (int k = 0; k <= radius; k++) g[k] = (float)(exp(-0.5 * k * k / (sigma * sigma)) / sum);
    return radius;
}

/* Columns [x, x + n) of a row: down into a line with margins, then along it. */
static void blur_part(const fo_scene *s, const float *const *row, const float *g, int radius,
                      int64_t x, int64_t n, uint16_t *out)
{
    const fo_scene_loops *loops = FTH_ISA_BEST(fo_scene_loops);
    float line[TILE + 2 * FO_BLUR_RADIUS + 2 * FO_BLUR_BLOCK];
    const float *from[2 * FO_BLUR_RADIUS + 1];
    const int64_t first = x - radius, end = x + n + radius; /* columns of the line */
    const int64_t lo = first < 0 ? 0 : first, hi = end < s->columns ? end : s->columns;
    for (int k = -radius; k <= radius; k++) from[radius + k] = row[k] + lo;
    loops->down(from + radius, g, radius, line + (lo - first), hi - lo);
    for (int64_t i = first; i < lo; i++) line[i - first] = line[mirror(i, s->columns) - first];
    for (int64_t i = hi; i < end; i++) line[i - first] = line[mirror(i, s->columns) - first];
    loops->along(line + radius, g, radius, out, n);
}

/* Piece i: a band of one level; the levels of a band follow each other. */
static void blur_band(void *arg, int64_t i, int worker)
{
    const fo_scene *s = arg;
    const int64_t band = i / s->planes, level = 1 + i % s->planes, n = s->rows * s->columns;
    float g[FO_BLUR_RADIUS + 1];
    const float *row[2 * FO_BLUR_RADIUS + 1];
    const int radius = gaussian(0.9 * (double)level, g);
    (void)worker;
    for (int64_t y = band * BAND; y < band_end(s, band); y++) {
        for (int k = -radius; k <= radius; k++)
            row[radius + k] = s->texture + mirror(y + k, s->rows) * s->columns;
        for (int64_t x = 0; x < s->columns; x += TILE)
            blur_part(s, row + radius, g, radius, x, s->columns - x < TILE ? s->columns - x : TILE,
                      s->bank + level * n + y * s->columns + x);
    }
}

static void set_depth(fo_scene *s)
{
    const double last = (double)(s->planes - 1), tilt = 0.3 * (fraction(s->seed, 1u << 31) - 0.5);
    s->tilt_y = (int32_t)lrint(0.5 * last * PLANE / (double)s->rows);
    s->half = (int32_t)lrint(0.25 * last * PLANE);
    for (int64_t x = 0; x < s->columns; x++) {
        const double v = (double)x / (double)s->columns - 0.5;
        s->across[x] = (int32_t)lrint(last * PLANE * (tilt * v + 0.15 * cos(6 * v)));
    }
}

fth_status fo_scene_make_on(fo_scene *s, fth_context *ctx, uint32_t seed, double age, fth_err *err)
{
    s->seed = fo_scene_mix(seed + 1);
    const double turn = 6.2831853 * fraction(s->seed, 3u << 30);
    body b = {s, cos(turn), sin(turn), 0.30 + 0.08 * age, 0.16 + 0.05 * age};
    set_depth(s);
    FTH_TRY(each(ctx, "texture", bands(s), texture_band, &b, err));
    for (int64_t i = 0; i < s->rows * s->columns; i++)
        s->bank[i] = (uint16_t)(s->texture[i] * 32 + 0.5f);
    return each(ctx, "blur", bands(s) * s->planes, blur_band, s, err);
}

void fo_scene_make(fo_scene *s, uint32_t seed, double age)
{
    (void)fo_scene_make_on(s, NULL, seed, age, NULL); /* alone it does not fail */
}

/* ---- planes ---- */

typedef struct plane {
    const fo_scene *s;
    int32_t z;
    uint16_t *pixels;
} plane;

static void draw_part(const plane *p, uint32_t noise, int64_t y, int64_t x, int64_t n)
{
    const fo_scene_loops *loops = FTH_ISA_BEST(fo_scene_loops);
    const fo_scene *s = p->s;
    const int32_t base = s->half + (int32_t)y * s->tilt_y, last = (int32_t)(s->planes - 1) * PLANE;
    const int64_t at = y * s->columns + x;
    uint16_t away[TILE];
    for (int64_t i = 0; i < n; i++) {
        const int32_t d = base + s->across[x + i], depth = d < 0 ? 0 : d > last ? last : d;
        const int32_t off = p->z * PLANE - depth;
        away[i] = (uint16_t)((off < 0 ? -off : off) >> 8);
    }
    for (int64_t i = 0, end; i < n; i = end) {
        const int level = away[i] >> 8;
        for (end = i + 1; end < n && away[end] >> 8 == level; end++) {
        }
        const uint16_t *near = s->bank + level * s->rows * s->columns + at + i;
        loops->between(near, near + s->rows * s->columns, away + i, noise + (uint32_t)(at + i),
                       p->pixels + at + i, end - i);
    }
}

static void draw_band(void *arg, int64_t band, int worker)
{
    const plane *p = arg;
    const fo_scene *s = p->s;
    const uint32_t noise = fo_scene_mix(s->seed + 7919u * (uint32_t)(p->z + 1));
    (void)worker;
    for (int64_t y = band * BAND; y < band_end(s, band); y++)
        for (int64_t x = 0; x < s->columns; x += TILE)
            draw_part(p, noise, y, x, s->columns - x < TILE ? s->columns - x : TILE);
}

fth_status fo_scene_draw_on(const fo_scene *s, fth_context *ctx, int64_t z, uint16_t *pixels,
                            fth_err *err)
{
    return each(ctx, "plane", bands(s), draw_band, &(plane){s, (int32_t)z, pixels}, err);
}

void fo_scene_draw(const fo_scene *s, int64_t z, uint16_t *pixels)
{
    (void)fo_scene_draw_on(s, NULL, z, pixels, NULL); /* alone it does not fail */
}

void fo_scene_truth(const fo_scene *s, uint16_t *pixels)
{
    for (int64_t i = 0; i < s->rows * s->columns; i++)
        pixels[i] = (uint16_t)((s->bank[i] + 16) >> 5);
}
