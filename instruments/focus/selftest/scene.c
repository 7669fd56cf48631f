/* scene.c - see scene.h. */
#include "scene.h"

#include <stdlib.h>
#include <string.h>

enum { SEED = 12345, DARK = 600, RANGE = 2600, NOISE = 9 };

static int32_t draw(uint32_t *state)
{
    *state = 1664525u * *state + 1013904223u;
    return (int32_t)(*state >> 8);
}

/* (1 2 1) / 4 along lines of n numbers `step` apart, edges repeated. */
static void soften(const int32_t *in, int32_t *out, int lines, int between, int n, int step)
{
    for (int l = 0; l < lines; l++)
        for (int i = 0; i < n; i++) {
            const int32_t *at = in + l * between;
            const int32_t before = at[(i > 0 ? i - 1 : 0) * step],
                          after = at[(i < n - 1 ? i + 1 : i) * step];
            out[l * between + i * step] = (before + 2 * at[i * step] + after + 2) / 4;
        }
}

static void blur(fo_test_scene *s, const int32_t *in, int32_t *out)
{
    soften(in, s->work, FO_SCENE_X, 1, FO_SCENE_Y, FO_SCENE_X);
    soften(s->work, out, FO_SCENE_Y, FO_SCENE_X, FO_SCENE_X, 1);
    soften(out, s->work, FO_SCENE_X, 1, FO_SCENE_Y, FO_SCENE_X);
    soften(s->work, out, FO_SCENE_Y, FO_SCENE_X, FO_SCENE_X, 1);
}

static int depth_of(int i)
{
    const int d = i / FO_SCENE_X * FO_SCENE_Z / FO_SCENE_Y + i % FO_SCENE_X / 12 % 2;
    return d < FO_SCENE_Z ? d : FO_SCENE_Z - 1;
}

void fo_test_scene_draw(fo_test_scene *s)
{
    uint32_t state = SEED;
    for (int i = 0; i < FO_SCENE_AREA; i++) s->level[0][i] = DARK + draw(&state) % RANGE;
    for (int l = 0; l < FO_SCENE_Z; l++) blur(s, s->level[l], s->level[l + 1]);
    for (int z = 0; z < FO_SCENE_Z; z++)
        for (int i = 0; i < FO_SCENE_AREA; i++)
            s->pixels[z * FO_SCENE_AREA + i] =
                (uint16_t)(s->level[abs(z - depth_of(i))][i] + draw(&state) % NOISE);
}
