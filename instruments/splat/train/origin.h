/* origin.h - what a checkpoint was made with: settings and capture, and how they differ from ours.
 *
 * Differences are reported by name, with both values, never as hashes.
 */
#ifndef SPLAT_TRAIN_ORIGIN_H
#define SPLAT_TRAIN_ORIGIN_H

#include "../config/settings.h"
#include "facts.h"

/* Of a capture: what can differ, each by itself. */
typedef enum gs_print_part {
    GS_PRINT_NAMES,
    GS_PRINT_CAMERAS,
    GS_PRINT_IMAGES, /* bytes of their files */
    GS_PRINT_MASKS,
    GS_PRINT_POINTS,
    GS_PRINT_START, /* the model to start from */
    GS_PRINTS
} gs_print_part;

typedef struct gs_origin {
    const fth_config *cfg;
    uint64_t data;             /* hash of all of the capture */
    uint64_t print[GS_PRINTS]; /* of its parts */
    int64_t views, points;
} gs_origin;

void gs_origin_put(gs_facts *f, const gs_origin *from);

/* "iterations was 20, is 30; ..." and "it has 8 views, had 12; ...": "" where nothing differs. */
typedef struct gs_differences {
    char settings[900], capture[400];
} gs_differences;
fth_status gs_origin_compare(const fth_safetensors *file, const gs_origin *from, fth_mem *mem,
                             gs_differences *out, fth_err *err);

#endif
