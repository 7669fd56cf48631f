/* testing/spatial/spatial_store.h - a SpatialData store with an image that is turned by a quarter.
 */
#ifndef TESTING_SPATIAL_STORE_H
#define TESTING_SPATIAL_STORE_H

#include "testing/io/files.h"

#include <stdlib.h>

/* All pixels are the fill value: no chunk is there. */
static inline void t_image_store(const char *store, int height, int width)
{
    char text[3000], path[4200];
    snprintf(
        text, sizeof text,
        "cp -r tests/golden/h5ad/store.zarr '%.1400s' && cd '%.1400s' && rm -r tables/other && "
        "mkdir -p images/he/s0 shapes/left shapes/right",
        store, store);
    if (system(text) != 0) FAIL("cannot make a store");
    static const char group[] = "{\"zarr_format\": 3, \"node_type\": \"group\"}";
    static const char *const plain[] = {"images", "shapes", "shapes/left", "shapes/right"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%.4000s/%s/zarr.json", store, plain[i]);
        t_file_write(path, group, sizeof group - 1);
    }
    static const char image[] =
        "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {\"ome\": "
        "{\"multiscales\": "
        "[{\"axes\": [{\"name\": \"c\"}, {\"name\": \"y\"}, {\"name\": \"x\"}], \"datasets\": "
        "[{\"path\": \"s0\"}], \"coordinateTransformations\": [{\"type\": \"affine\", \"affine\": "
        "[[1, 0, 0, 0], [0, 0, 0.1, -9], [0, -0.1, 0, 150]], \"input\": {\"axes\": [\"c\", \"y\", "
        "\"x\"]}, \"output\": {\"name\": \"global\", \"axes\": [\"c\", \"y\", \"x\"]}}]}]}}}";
    snprintf(path, sizeof path, "%.4000s/images/he/zarr.json", store);
    t_file_write(path, image, sizeof image - 1);
    const int n = snprintf(
        text, sizeof text,
        "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [3, %d, %d], \"data_type\": "
        "\"uint8\", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": "
        "[3, 128, 128]}}, \"chunk_key_encoding\": {\"name\": \"default\", \"configuration\": "
        "{\"separator\": \"/\"}}, \"fill_value\": 90, \"codecs\": [{\"name\": \"bytes\"}]}",
        height, width);
    snprintf(path, sizeof path, "%.4000s/images/he/s0/zarr.json", store);
    t_file_write(path, text, (size_t)n);
}

#endif
