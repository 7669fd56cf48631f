/* sog.h - what the reader and the writer of SOG share: its members, in a zip or in a folder. */
#ifndef SPLAT_MODEL_SOG_H
#define SPLAT_MODEL_SOG_H

#include "formats.h"

#define GS_SOG_META "meta.json"
enum { GS_SOG_VERSION = 2, GS_SOG_LARGEST = 252, GS_SOG_ACROSS = 64 };

typedef enum gs_sog_texture {
    GS_SOG_MEANS_LOW,
    GS_SOG_MEANS_HIGH,
    GS_SOG_SCALES,
    GS_SOG_QUATS,
    GS_SOG_SH0,
    GS_SOG_CENTROIDS,
    GS_SOG_LABELS,
    GS_SOG_TEXTURES
} gs_sog_texture;
/* In which object of the meta data it is named, as which of its files, and how it is called when it
 * is written. */
typedef struct gs_sog_place {
    const char *object;
    int file;
    const char *name;
} gs_sog_place;
extern const gs_sog_place gs_sog_places[GS_SOG_TEXTURES];

/* The coefficients of a row other than the largest, which is not kept. */
extern const int gs_sog_others[4][3];

/* With so many rounds of k-means. */
fth_status gs_sog_save(const gs_model *m, const char *path, int rounds, fth_err *err);

#endif
