/* series.h - images of wells over time, from a file of a microscope or from a folder of fused
 * images.
 *
 * All pixels are one source [plane y x]. Planes are ordered by well, t, z, c, so that neighbours in
 * a file are read together and a well is complete as early as possible.
 *
 * Ownership: fo_series_close ends everything, the source too. Threads: as fth_source.
 */
#ifndef FOCUS_CONVERT_SERIES_H
#define FOCUS_CONVERT_SERIES_H

#include "../settings/settings.h"

/* What is selected. Texts live as long as the series. */
typedef struct fo_series_options {
    const char *wells;    /* "A01,B03", or positions by number; "": all */
    const char *channels; /* "BF,GFP", or channels by number; "": all */
    fo_range times;       /* time points, counted from 0 */
    double um_per_px;     /* 0: as the files say */
    double z_step_um;     /* 0: as the file says */
    const char *table;    /* of times and pixels of fused images; NULL: none is known */
    /* Wells of the positions of a file, "" for one that is left out; NULL: as the file names them.
     */
    const fth_texts *positions;
    fth_images_options images;
} fo_series_options;

typedef struct fo_series {
    fth_mem *mem;
    char path[FTH_PATH]; /* of the file or the folder */
    int64_t wells, t, z, c, y, x;
    int64_t fields; /* of a well that follow each other in `wells`: tiles; 0: 1 */
    bool has_z;     /* stacks: else z is 1, and no axis */
    bool is_plate;  /* every well has the name of one, and no two the same but fields of it */
    fth_dtype dtype;
    double um_per_px, z_step_um, period_s; /* 0: not known */
    fth_texts *well;                       /* "A01", "p003" */
    fth_texts *channel;                    /* names, "" where there is none */
    double *time_s;                        /* [well][t], NaN where not known */
    int64_t missing;                       /* pictures that do not exist: they are black */
    int64_t files;                         /* that are read */
    fth_source source;
    void *self; /* of whoever reads */
    void (*end)(void *self);
} fo_series;

/* A file, or a folder that is one, as fathom/images.h opens it. */
fth_status fo_series_open_file(fo_series *s, fth_mem *mem, const char *path,
                               const fo_series_options *opt, fth_err *err);
/* A folder of fused images with the names of `run`, of either layout. */
fth_status fo_series_open_folder(fo_series *s, fth_mem *mem, const char *folder,
                                 const fo_series_options *opt, fth_err *err);
/* The raw stacks of an experiment, whose positions are mapped to wells as for `run`.
 * `opt->positions` is ignored. */
fth_status fo_series_open_stacks(fo_series *s, fth_mem *mem, const fth_config *cfg,
                                 const fo_series_options *opt, fth_err *err);
/* tiles.c: the same of a Keyence. */
fth_status fo_series_open_tiles(fo_series *s, fth_mem *mem, const fth_config *cfg,
                                const fo_series_options *opt, fth_err *err);
void fo_series_close(fo_series *s); /* one that is all zero is allowed */

/* Where a plane of the source stands. */
typedef struct fo_place {
    int64_t well, t, z, c;
} fo_place;
fo_place fo_series_place(const fo_series *s, int64_t plane);

/* ---- for the files that open one ---- */

/* The texts and the times, of the sizes that `s` has; all times are NaN. */
fth_status fo_series_prepare(fo_series *s, fth_err *err);
/* period_s of the times, is_plate of the names. */
void fo_series_finish(fo_series *s);
/* Number of `name`, or of the number `i`, in a list between commas; -1: it is not in it. */
int64_t fo_list_find(const char *list, const char *name, int64_t i);
/* Field number k of the list; false: there is none. */
bool fo_list_get(const char *list, int64_t k, char *field, size_t bytes);

#endif
