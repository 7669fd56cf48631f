/* scene.h - a made-up specimen with known depth: texture that is sharp where a plane meets it.
 *
 * A dark textured body on a bright ground, in values of 12 bits. The surface is tilted and bulges;
 * a plane shows each pixel blurred by a Gaussian of 0.9 px for each plane between it and the
 * surface, with noise of 0.3 %. The blurred textures are made once per specimen; a plane is then
 * drawn from two of them, in integers. Numbers at random depend on the seed and the pixel's place
 * alone, so the workers that share a specimen make the bytes that one would make.
 *
 * Threads: a scene is made by one thread at a time and drawn by any number.
 */
#ifndef FOCUS_TOY_SCENE_H
#define FOCUS_TOY_SCENE_H

#include <fathom/fathom.h>

typedef struct fo_scene {
    fth_mem *mem;
    int64_t rows, columns, planes;
    uint32_t seed;
    int32_t tilt_y, half; /* 1/65536 planes per row; depth in the middle row */
    int32_t *across;      /* [x]: what the column adds to the depth, in 1/65536 planes */
    float *texture;       /* [y][x] */
    uint16_t *bank;       /* [planes + 1][y][x]: the texture blurred by 0.9 i px, in 1/32 */
} fo_scene;

fth_status fo_scene_create(fo_scene *s, fth_mem *mem, int64_t rows, int64_t columns, int64_t planes,
                           fth_err *err);
void fo_scene_free(fo_scene *s); /* an empty one is allowed */
/* What it takes from `mem`. */
uint64_t fo_scene_bytes(int64_t rows, int64_t columns, int64_t planes);
/* Another specimen; `age` from 0 to 1 lets it grow. With the workers of `ctx`; NULL: alone. */
fth_status fo_scene_make_on(fo_scene *s, fth_context *ctx, uint32_t seed, double age, fth_err *err);
/* Plane z of it. */
fth_status fo_scene_draw_on(const fo_scene *s, fth_context *ctx, int64_t z, uint16_t *pixels,
                            fth_err *err);
/* Both on the thread that asks. */
void fo_scene_make(fo_scene *s, uint32_t seed, double age);
void fo_scene_draw(const fo_scene *s, int64_t z, uint16_t *pixels);
/* The truth: every pixel as sharp as it is where the surface is. */
void fo_scene_truth(const fo_scene *s, uint16_t *pixels);

#endif
