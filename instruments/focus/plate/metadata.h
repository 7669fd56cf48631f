/* metadata.h - the table that goes with the images: <experiment>_metadata.csv, a row per well and
 * time. */
#ifndef FOCUS_PLATE_METADATA_H
#define FOCUS_PLATE_METADATA_H

#include "table.h"

typedef struct fo_metadata_row {
    int well;
    int64_t series; /* from 1; YX1 */
    int64_t t;
    double time_s;
} fo_metadata_row;

typedef struct fo_metadata {
    const char *experiment;
    bool keyence;
    int64_t height_px, width_px;
    double height_um, width_um;
    int64_t channel;          /* index of the brightfield channel; YX1 */
    const char *channel_name; /* Keyence */
    const char *objective;
    const fo_plate *plate;
    const fo_metadata_row *row; /* by well in the order of series, then by t */
    int64_t n;
} fo_metadata;

/* FTH_E_FILE_KEY lists the wells that have images and no row in the plate's table. */
fth_status fo_metadata_check(const fo_metadata *m, fth_err *err);
fth_status fo_metadata_save(const fo_metadata *m, fth_mem *mem, const char *path, fth_err *err);

#endif
