/* init.c - see init.h. */
#include "init.h"

#include "near.h"

#include <math.h>
#include <string.h>

enum {
    STREAM_INIT = 0,
    DRAWS = 8
}; /* random numbers per point: 3 for its position, 3 for its colour */

/* The length that a Gaussian starts with. */
static double size_of(const gs_init *how, const double *square, int count, int64_t n)
{
    double sum = 0, d = 0.01;
    const bool classic = how->profile == GS_CLASSIC;
    for (int k = 0; k < count; k++) sum += classic ? square[k] : sqrt(square[k]);
    if (n > 1 && count > 0) d = classic ? sqrt(sum / count) : sum / count;
    if (d < 1e-7) d = 1e-7;
    /* LichtFeld takes the square root of the length, so its sizes depend on the unit of the scene
     */
    return (classic ? d : sqrt(d)) * how->scaling;
}

static void fill(const float (*point)[3], const uint8_t (*colour)[3], int64_t n, const gs_init *how,
                 int degree, const double (*square)[GS_NEAR], const uint8_t *count,
                 float *const at[GS_ATTRIBUTES])
{
    const float opacity = (float)log(how->opacity / (1 - how->opacity));
    if (degree > 0)
        memset(at[GS_SH_N], 0, (size_t)(n * gs_columns(GS_SH_N, degree)) * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        const float size = (float)log(size_of(how, square[i], count[i], n));
        for (int k = 0; k < 3; k++) {
            at[GS_MEANS][3 * i + k] = point[i][k];
            at[GS_SH_0][3 * i + k] = (float)(((double)colour[i][k] / 255 - 0.5) / GS_SH0);
            at[GS_SCALING][3 * i + k] = size;
        }
        memcpy(at[GS_ROTATION] + 4 * i, (const float[4]){1, 0, 0, 0}, 4 * sizeof(float));
        at[GS_OPACITY][i] = opacity;
    }
}

fth_status gs_init_rows(fth_context *ctx, const float (*point)[3], const uint8_t (*colour)[3],
                        int64_t n, const gs_init *how, int degree, float *const at[GS_ATTRIBUTES],
                        fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const uint64_t each = sizeof(double[GS_NEAR]) + 1;
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * each + 1, "neighbours", &block, err));
    double(*square)[GS_NEAR] = block;
    uint8_t *count = (uint8_t *)(square + n);
    const fth_status s = gs_near_find(ctx, point, n, square, count, err);
    if (s == FTH_OK)
        fill(point, colour, n, how, degree, (const double(*)[GS_NEAR])square, count, at);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status gs_init_random(gs_scene *s, gs_profile profile, int64_t n, double extent, int64_t seed,
                          double *scale, fth_err *err)
{
    void *point = NULL, *colour = NULL;
    FTH_TRY(
        fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n * sizeof *s->point, "points", &point, err));
    const fth_status st = fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n * sizeof *s->colour,
                                       "colours of points", &colour, err);
    if (st != FTH_OK) {
        (void)fth_mem_release(s->mem, point, NULL);
        return st;
    }
    (void)fth_mem_release(s->mem, s->point, NULL);
    (void)fth_mem_release(s->mem, s->colour, NULL);
    s->point = point;
    s->colour = colour;
    s->points = n;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            const double u = fth_random_uniform_at(seed, 0, STREAM_INIT, DRAWS * i + k),
                         c = fth_random_uniform_at(seed, 0, STREAM_INIT, DRAWS * i + 3 + k);
            s->point[i][k] = (float)((2 * u - 1) * extent);
            s->colour[i][k] = (uint8_t)(256 * c);
        }
    FTH_TRY(gs_scene_scale(s, profile, scale, err));
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) s->point[i][k] = (float)((double)s->point[i][k] * *scale);
    return FTH_OK;
}
