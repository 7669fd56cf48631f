/* blur.h - the two halves of a Gaussian blur, once per instruction set with the same bits on all.
 */
#ifndef FOCUS_TOY_SCENE_LOOPS_H
#define FOCUS_TOY_SCENE_LOOPS_H

#include <fathom/isa.h>

#include <stdint.h>

enum {
    FO_BLUR_BLOCK = 64, /* elements are made by so many: that many more may be read and written */
    FO_BLUR_RADIUS = 200
};

/* A number at random for each place: the last steps of MurmurHash3. */
static inline uint32_t fo_scene_mix(uint32_t v)
{
    v = (v ^ (v >> 16)) * 0x85ebca6bu;
    v = (v ^ (v >> 13)) * 0xc2b2ae35u;
    return v ^ (v >> 16);
}

typedef struct fo_scene_loops {
    /* out[i] = sum over k of g[|k|] row[k][i], k from -radius to radius, for i in [0, n). */
    void (*down)(const float *const *row, const float *g, int radius, float *out, int64_t n);
    /* out[i] = 32 sum over k of g[|k|] in[i + k], rounded; in[-radius] to in[n + radius - 1]. */
    void (*along)(const float *in, const float *g, int radius, uint16_t *out, int64_t n);
    /* Between two textures as `away` says (its last 8 bits), with 0.3 % of noise: place i has the
     * random number of noise + i. */
    void (*between)(const uint16_t *near, const uint16_t *far, const uint16_t *away, uint32_t noise,
                    uint16_t *out, int64_t n);
} fo_scene_loops;
FTH_ISA_DECLARE(const fo_scene_loops, fo_scene_loops);

#endif
