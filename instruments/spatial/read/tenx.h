/* tenx.h - output folders of 10x Genomics: which files are there, counts as text, positions.
 *
 * Space Ranger (Visium, Visium HD) and the Xenium Analyzer write a folder each: counts as an .h5
 * file or a folder of texts, and a table of positions, as Parquet or CSV, packed or not.
 */
#ifndef SPATIAL_TENX_H
#define SPATIAL_TENX_H

#include "matrix.h"

/* ---- folders ---- */

typedef struct sp_tenx_files {
    const char *kind;      /* visium, visium_hd, xenium; NULL: another dataset */
    char counts[FTH_PATH]; /* an .h5 file, or the folder of matrix.mtx */
    bool text;             /* the latter */
    char places[FTH_PATH]; /* the table of positions */
    char scale[FTH_PATH];  /* scalefactors_json.json; "": none */
} sp_tenx_files;

/* The files of a folder, as the dataset `kind` has them; `table` replaces its own unless "". */
fth_status sp_tenx_files_find(sp_tenx_files *f, const char *kind, const char *dir,
                              const char *table, fth_err *err);
/* Whether a folder is of one of these datasets, and which. */
bool sp_tenx_files_guess(sp_tenx_files *f, const char *dir);
/* "an output folder of Space Ranger, Visium HD". */
const char *sp_tenx_files_title(const char *kind);
/* Micrometres of a pixel, from scalefactors_json.json; 0: it does not say. */
double sp_tenx_microns(fth_mem *mem, const sp_tenx_files *f);

/* The picture of the tissue, and its numbers in scalefactors_json.json. */
typedef struct sp_tenx_image {
    char path[FTH_PATH]; /* "": there is none */
    double scale;        /* its pixels in one unit of positions; 0: not said */
    double spot;         /* diameter of a spot in positions; 0: not said */
} sp_tenx_image;
/* A scale that cannot be read is not said; fails for want of memory. */
fth_status sp_tenx_image_find(sp_tenx_image *out, fth_mem *mem, const sp_tenx_files *f,
                              const char *dir, fth_err *err);

/* ---- counts as text ---- */

/* `name` or `name`.gz in a folder; false: neither is there. */
bool sp_mtx_file(const char *dir, const char *name, char path[FTH_PATH]);
/* The matrix of a folder: entries of [feature cell] by ascending cell, which are rows of cells. */
fth_status sp_matrix_open_mtx(sp_matrix *m, fth_mem *mem, const char *dir, fth_err *err);
/* A column of a table with tabs and without a header; *out is NULL where `optional` and it has
 * fewer columns. */
fth_status sp_mtx_names(fth_mem *mem, const char *path, int column, bool optional, fth_texts **out,
                        fth_err *err);

/* ---- positions ---- */

/* Columns of labels that a table may have. */
enum { SP_PLACE_GROUP, SP_PLACE_SECTION, SP_PLACE_LABELS };
/* A row of a table of positions. */
typedef struct sp_place {
    const char *name; /* not terminated */
    size_t bytes;
    double x, y;
    bool inside; /* under tissue; true where the table does not say */
    /* of the columns that were asked for; not terminated */
    struct sp_place_label {
        const char *text;
        size_t bytes;
    } label[SP_PLACE_LABELS];
} sp_place;
typedef struct sp_places_how {
    const char *kind;                   /* dataset, which says how columns are called */
    const char *label[SP_PLACE_LABELS]; /* columns of labels; NULL: none */
} sp_places_how;
typedef fth_status sp_place_fn(void *user, const sp_place *p, int64_t row, fth_err *err);

/* Every row of a table, in order. Parquet by its name's end, else CSV, which may be packed by gzip.
 */
fth_status sp_places_read(fth_mem *mem, const char *path, const sp_places_how *how, sp_place_fn *fn,
                          void *user, fth_err *err);

#endif
