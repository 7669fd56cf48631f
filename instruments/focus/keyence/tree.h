/* tree.h - the folders of a Keyence experiment: every image by well, time, tile, plane and channel.
 *
 *   XY01a/ T0001/ name_XY01a_00002_Z003_CH1.tif     multi-point: the tile is in the name
 *   W001/ P00001/ T0001/ name_Z003_CH1.tif          cytometer: the tile is the folder P
 *
 * A well folder holds an entry such as _A01, whose last three characters are the well.
 */
#ifndef FOCUS_KEYENCE_TREE_H
#define FOCUS_KEYENCE_TREE_H

#include "../input/problems.h"

typedef struct fo_keyence_image {
    int series;      /* of the well folder among those that are there, from 0 */
    int64_t folder;  /* the number in its name: 3 of XY03 */
    int well;        /* as fo_well_parse */
    int64_t t, tile; /* tiles from 1 in the multi-point layout, from 0 by folder */
    int64_t plane;   /* from 1 */
    int64_t channel; /* the number after CH */
    int64_t path;    /* number in `paths` */
} fo_keyence_image;

typedef struct fo_keyence_tree {
    fth_mem *mem;
    fth_texts *paths;
    fo_keyence_image *image; /* by series, t, tile, channel, plane */
    int64_t n, capacity;
    bool cytometer;
} fo_keyence_tree;

/* FTH_E_FILE_KEY when there are no wells or no images; FTH_E_FILE_FORMAT names a file or folder
 * with an unusable name, and two images of one place, or two folders of one well. With `problems`
 * each of these goes there and the rest is read; NULL: the first is the error. */
fth_status fo_keyence_tree_read(fo_keyence_tree *tree, fth_mem *mem, const char *folder,
                                fo_problems *problems, fth_err *err);
void fo_keyence_tree_free(fo_keyence_tree *tree); /* an empty one is allowed */

/* Parts of names, for the reader and its tests; -1: the name has none. */
int64_t fo_keyence_plane(const char *name);
int64_t fo_keyence_tile(const char *name, const char *well_folder);
int64_t fo_keyence_channel(const char *name);

#endif
