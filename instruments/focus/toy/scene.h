/* scene.h - a made-up specimen with known depth: texture that is sharp where a plane meets it.
 *
 * A dark textured body on a bright ground, in values of 12 bits. The surface is tilted and bulges;
 * a plane shows each pixel blurred by a Gaussian of 0.9 px for each plane between it and the
 * surface, with noise of 0.3 %. Numbers come from the linear congruential generator s = 1664525 s +
 * 1013904223 mod 2^32.
 */
#ifndef FOCUS_TOY_SCENE_H
#define FOCUS_TOY_SCENE_H

#include <fathom/fathom.h>

typedef struct fo_scene {
    fth_mem *mem;
    int64_t rows, columns, planes;
    uint32_t seed;
    float *depth; /* [y][x], in planes */
    float *blur;  /* [planes + 1][y][x]: the texture blurred by 0.9 i px */
    float *work;  /* one picture */
} fo_scene;

fth_status fo_scene_create(fo_scene *s, fth_mem *mem, int64_t rows, int64_t columns, int64_t planes,
                           fth_err *err);
void fo_scene_free(fo_scene *s); /* an empty one is allowed */
/* Another specimen; `age` from 0 to 1 lets it grow. */
void fo_scene_make(fo_scene *s, uint32_t seed, double age);
/* Plane z of it, and the truth: every pixel as sharp as it is where the surface is. */
void fo_scene_draw(const fo_scene *s, int64_t z, uint16_t *pixels);
void fo_scene_truth(const fo_scene *s, uint16_t *pixels);

#endif
