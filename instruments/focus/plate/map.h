/* map.h - which well each position of the stage shows.
 *
 * By position: the nearest well of a table of well coordinates, or of a grid fitted to the wells
 * that the workbook names. By the workbook: its sheet of series numbers. Implicit: position i is
 * well i. The mapping is written beside the results.
 */
#ifndef FOCUS_PLATE_MAP_H
#define FOCUS_PLATE_MAP_H

#include "well.h"

typedef enum fo_map_method {
    FO_MAP_AUTO, /* by place with a table of wells, else by the sheet, else implicit where allowed
                  */
    FO_MAP_XY,
    FO_MAP_SHEET,
    FO_MAP_IMPLICIT,
    FO_MAP_MARKER, /* the raw data name the wells */
    FO_MAP_METHODS
} fo_map_method;

typedef struct fo_stage_place {
    double x_um, y_um; /* NaN: not known */
} fo_stage_place;

typedef struct fo_map_input {
    fo_map_method method;
    int64_t n;                       /* positions */
    const fo_stage_place *position;  /* [n] */
    const fo_stage_place *reference; /* [FO_WELLS], NaN where there is none; NULL: no table */
    const double *sheet;   /* [FO_WELLS] series numbers, from 1; NaN: empty; NULL: no sheet */
    bool allow_duplicates; /* of two positions that show one well, the nearer one is taken */
    bool allow_implicit;   /* AUTO may take it */
} fo_map_input;

typedef struct fo_map {
    fth_mem *mem;
    fo_map_method method; /* never AUTO */
    bool fitted;          /* the table of wells was fitted to the sheet */
    int64_t n;
    int *well;           /* [n]; -1: none */
    double *distance_um; /* [n], by place only; NaN otherwise */
    int64_t mapped, rejected, out_of_range, duplicates;
    fth_texts *notes; /* notices for the user, a line each */
} fo_map;

/* FTH_E_FILE_KEY when no position could be mapped or what the method needs is missing;
 * FTH_E_FILE_FORMAT when two positions show one well. */
fth_status fo_map_make(fo_map *map, fth_mem *mem, const fo_map_input *in, fth_err *err);
/* Wells that the raw data name: well[i] of series i. */
fth_status fo_map_take(fo_map *map, fth_mem *mem, const int *well, int64_t n, fth_err *err);
void fo_map_free(fo_map *map); /* an empty one is allowed */

/* "xy", "series_number_map", "implicit". */
const char *fo_map_method_name(fo_map_method method);

/* A table of wells: CSV with the columns well, x_um, y_um. */
fth_status fo_map_read_reference(fo_stage_place place[FO_WELLS], fth_mem *mem, const char *path,
                                 fth_err *err);

/* series_well_mapping.csv and mapping_provenance.json. */
fth_status fo_map_save(const fo_map *map, const char *csv, const char *json, fth_err *err);

/* Fit the places of all wells to those that are known: an affine map of the grid, by least squares.
 * false: fewer than three wells, or all in one line. */
bool fo_map_fit(fo_stage_place place[FO_WELLS], const fo_stage_place known[FO_WELLS]);
/* Whether rows go up with y and columns down with x, as on the stages this is made for. */
bool fo_map_agrees(const fo_map *map, const fo_stage_place *position);

#endif
