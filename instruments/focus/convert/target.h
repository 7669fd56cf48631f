/* target.h - where a series goes: an OME-NGFF image or plate, or OME-TIFF files, one for each well.
 *
 * The sink takes planes [plane y x] in the order of the series. Everything appears at its commit,
 * whole, or not at all.
 */
#ifndef FOCUS_CONVERT_TARGET_H
#define FOCUS_CONVERT_TARGET_H

#include "../output/room.h"
#include "series.h"

#include <fathom/tiff.h>
#include <fathom/zarr.h>

typedef enum fo_target_kind {
    FO_TO_ZARR,  /* OUT.zarr */
    FO_TO_TIFF,  /* OUT.ome.tif */
    FO_TO_FOLDER /* OUT/WELL.ome.tif */
} fo_target_kind;

typedef struct fo_target_options {
    const char *path;
    fo_target_kind kind;
    int version; /* of NGFF: 4 or 5 */
    fth_zarr_packing packing;
    int64_t tile; /* 0: whole planes */
    int levels;
    const char *name; /* of the plate or image */
    bool only_plan;   /* for planning: takes its memory, and is never written to */
} fo_target_options;

/* By the ending of the name: .zarr, .ome.tif, .ome.tiff; a slash, or a folder that is there, and is
 * no Zarr: a folder of files. FTH_E_COMMAND for any other. */
fth_status fo_target_kind_of(const char *path, fo_target_kind *out, fth_err *err);

/* Bytes of all that will be written. */
fo_amount fo_target_amount(const fo_series *series, const fo_target_options *opt);

typedef struct fo_target fo_target;
fth_status fo_target_create(fo_target **out, const fo_series *series, const fo_target_options *opt,
                            fth_err *err);
/* Valid until the target is destroyed. */
fth_sink fo_target_sink(fo_target *t);
void fo_target_destroy(fo_target *t); /* NULL is allowed; what was not committed is gone */
/* The file of a well. */
fth_status fo_target_path(const fo_series *s, const fo_target_options *opt, int64_t well,
                          char path[FTH_PATH], fth_err *err);

#endif
