/* scene_kernels.c - see scene_loops.h. Of a blur four vectors of sums stay in registers while the
 * taps go by. */
#include "scene_loops.h"

#define FTH_VECTOR_REAL 32
#include <fathom/vector_wide.h>

typedef uint16_t vh __attribute__((vector_size(32)));

enum { SUMS = FO_BLUR_BLOCK / LANES };

static void down(const float *const *row, const float *g, int radius, float *out, int64_t n)
{
    for (int64_t x = 0; x < n; x += FO_BLUR_BLOCK) {
        vr sum[SUMS];
        for (int j = 0; j < SUMS; j++) sum[j] = v_load(row[0] + x + j * LANES) * g[0];
        for (int k = 1; k <= radius; k++) {
            const float *above = row[-k] + x, *below = row[k] + x;
            for (int j = 0; j < SUMS; j++)
                sum[j] += (v_load(above + j * LANES) + v_load(below + j * LANES)) * g[k];
        }
        for (int j = 0; j < SUMS; j++) v_store(out + x + j * LANES, &sum[j]);
    }
}

static void along(const float *in, const float *g, int radius, uint16_t *out, int64_t n)
{
    for (int64_t x = 0; x < n; x += FO_BLUR_BLOCK) {
        uint16_t block[FO_BLUR_BLOCK];
        vr sum[SUMS];
        for (int j = 0; j < SUMS; j++) sum[j] = v_load(in + x + j * LANES) * g[0];
        for (int k = 1; k <= radius; k++)
            for (int j = 0; j < SUMS; j++)
                sum[j] += (v_load(in + x + j * LANES - k) + v_load(in + x + j * LANES + k)) * g[k];
        for (int j = 0; j < SUMS; j++) {
            const vh v =
                __builtin_convertvector(__builtin_convertvector(sum[j] * 32 + 0.5f, vi), vh);
            memcpy(block + j * LANES, &v, sizeof v);
        }
        memcpy(out + x, block, (size_t)(n - x < FO_BLUR_BLOCK ? n - x : FO_BLUR_BLOCK) * 2);
    }
}

static void between(const uint16_t *near, const uint16_t *far, const uint16_t *away, uint32_t noise,
                    uint16_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t part = away[i] & 255;
        const int32_t v = (near[i] * (256 - part) + far[i] * part) >> 8; /* in 1/32 */
        const int32_t r = (int32_t)(fo_scene_mix(noise + (uint32_t)i) >> 20) - 2048;
        out[i] = (uint16_t)((v + ((((v * r) >> 12) * 98) >> 14) + 16) >> 5); /* 98/16384: 0.6 % */
    }
}

extern const fo_scene_loops FTH_ISA_NAME(fo_scene_loops);
const fo_scene_loops FTH_ISA_NAME(fo_scene_loops) = {down, along, between};
