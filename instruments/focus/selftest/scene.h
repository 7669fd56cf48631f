/* scene.h - a small stack whose every bit is known: drawn with integers alone, so that it is the
 * same on every machine. tools/make_selftest draws it in NumPy.
 */
#ifndef FOCUS_SELFTEST_SCENE_H
#define FOCUS_SELFTEST_SCENE_H

#include <stdint.h>

enum {
    FO_SCENE_Z = 5,
    FO_SCENE_Y = 40,
    FO_SCENE_X = 36,
    FO_SCENE_AREA = FO_SCENE_Y * FO_SCENE_X,
    FO_SCENE_PIXELS = FO_SCENE_Z * FO_SCENE_AREA
};

/* Texture of the generator s = 1664525 s + 1013904223 on steps of known depth: a plane shows it
 * blurred once more for each plane between them, with a little noise. */
typedef struct fo_test_scene {
    int32_t level[FO_SCENE_Z + 1][FO_SCENE_AREA]; /* more and more blurred */
    int32_t work[FO_SCENE_AREA];
    uint16_t pixels[FO_SCENE_PIXELS];
} fo_test_scene;
void fo_test_scene_draw(fo_test_scene *s);

#endif
