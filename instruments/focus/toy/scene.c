/* scene.c - see scene.h. */
#include "scene.h"

#include <math.h>
#include <string.h>

enum { MOST_RADIUS = 200 };

static float draw(uint32_t *s) /* 0 to 1 */
{
    *s = 1664525u * *s + 1013904223u;
    return (float)(*s >> 8) / (float)(1 << 24);
}

static fth_status take(fth_mem *mem, int64_t n, const char *label, float **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * sizeof(float), label, &block, err));
    *out = block;
    return FTH_OK;
}

fth_status fo_scene_create(fo_scene *s, fth_mem *mem, int64_t rows, int64_t columns, int64_t planes,
                           fth_err *err)
{
    const int64_t n = rows * columns;
    *s = (fo_scene){.mem = mem, .rows = rows, .columns = columns, .planes = planes};
    fth_status status = take(mem, n, "depth", &s->depth, err);
    if (status == FTH_OK) status = take(mem, n * (planes + 1), "blurred", &s->blur, err);
    if (status == FTH_OK) status = take(mem, n, "work", &s->work, err);
    if (status != FTH_OK) fo_scene_free(s);
    return status;
}

void fo_scene_free(fo_scene *s)
{
    if (!s->mem) return;
    fth_mem_release(s->mem, s->work, NULL);
    fth_mem_release(s->mem, s->blur, NULL);
    fth_mem_release(s->mem, s->depth, NULL);
    *s = (fo_scene){0};
}

static int64_t mirror(int64_t i, int64_t n)
{
    while (i < 0 || i >= n) i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
}

/* Along one axis: n elements `step` apart. */
static void blur_line(const float *in, float *out, int64_t n, int64_t step, const float *g,
                      int radius)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int k = -radius; k <= radius; k++)
            sum += g[k < 0 ? -k : k] * in[mirror(i + k, n) * step];
        out[i * step] = sum;
    }
}

static void blur(const fo_scene *s, const float *in, double sigma, float *out)
{
    float g[MOST_RADIUS + 1];
    const double wanted = ceil(4 * sigma);
    const int radius = wanted < MOST_RADIUS ? (int)wanted : MOST_RADIUS;
    double sum = 0;
    for (int k = 0; k <= radius; k++) sum += (k ? 2 : 1) * exp(-0.5 * k * k / (sigma * sigma));
    for (int k = 0; k <= radius; k++) g[k] = (float)(exp(-0.5 * k * k / (sigma * sigma)) / sum);
    for (int64_t x = 0; x < s->columns; x++)
        blur_line(in + x, s->work + x, s->rows, s->columns, g, radius);
    for (int64_t y = 0; y < s->rows; y++)
        blur_line(s->work + y * s->columns, out + y * s->columns, s->columns, 1, g, radius);
}

/* A body across the middle: dark, with grains; the ground has faint ones. */
static void make_texture(fo_scene *s, uint32_t *state, double age, float *out)
{
    const double long_axis = 0.30 + 0.08 * age, short_axis = 0.16 + 0.05 * age,
                 turn = 6.2831853 * (double)draw(state);
    for (int64_t y = 0; y < s->rows; y++)
        for (int64_t x = 0; x < s->columns; x++) {
            const double u = (double)(2 * y - s->rows) / (double)(2 * s->rows),
                         v = (double)(2 * x - s->columns) / (double)(2 * s->columns);
            const double a = (u * cos(turn) + v * sin(turn)) / long_axis,
                         b = (v * cos(turn) - u * sin(turn)) / short_axis;
            const double r = a * a + b * b, inside = r < 1 ? 1 : 0;
            const double grain = (double)draw(state) - 0.5;
            out[y * s->columns + x] =
                (float)(1100 - inside * (400 - 220 * r) + grain * (inside > 0 ? 440 : 90));
        }
}

void fo_scene_make(fo_scene *s, uint32_t seed, double age)
{
    uint32_t state = seed * 2654435761u; /* near seeds lie far apart */
    for (int i = 0; i < 8; i++) draw(&state);
    s->seed = state;
    make_texture(s, &state, age, s->blur);
    const double last = (double)(s->planes - 1), tilt = 0.3 * ((double)draw(&state) - 0.5);
    for (int64_t y = 0; y < s->rows; y++)
        for (int64_t x = 0; x < s->columns; x++) {
            const double u = (double)y / (double)s->rows - 0.5,
                         v = (double)x / (double)s->columns - 0.5;
            const double d = last * (0.5 + tilt * v + 0.5 * u + 0.15 * cos(6 * v));
            s->depth[y * s->columns + x] = (float)(d < 0 ? 0 : d > last ? last : d);
        }
    for (int64_t i = 1; i <= s->planes; i++)
        blur(s, s->blur, 0.9 * (double)i, s->blur + i * s->rows * s->columns);
}

static uint16_t clip(float v)
{
    return (uint16_t)(v < 0 ? 0 : v > 65535 ? 65535 : lrintf(v));
}

void fo_scene_draw(const fo_scene *s, int64_t z, uint16_t *pixels)
{
    const int64_t n = s->rows * s->columns;
    uint32_t state = s->seed + 7919u * (uint32_t)(z + 1);
    for (int64_t i = 0; i < n; i++) {
        const float away = fabsf((float)z - s->depth[i]);
        const int64_t near = (int64_t)away;
        const float part = away - (float)near;
        const float v = s->blur[near * n + i] * (1 - part) + s->blur[(near + 1) * n + i] * part;
        pixels[i] = clip(v * (1 + 0.006f * (draw(&state) - 0.5f)));
    }
}

void fo_scene_truth(const fo_scene *s, uint16_t *pixels)
{
    for (int64_t i = 0; i < s->rows * s->columns; i++) pixels[i] = clip(s->blur[i]);
}
