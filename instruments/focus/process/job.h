/* job.h - one experiment of a plate, ready to be fused: files found, checked, mapped to wells.
 *
 * All problems are found before a pixel is read, and reported at once.
 */
#ifndef FOCUS_PROCESS_JOB_H
#define FOCUS_PROCESS_JOB_H

#include "../experiment/experiment.h"
#include "../input/input.h"
#include "../keyence/plate.h"
#include "../output/format.h"
#include "../plate/map.h"
#include "../plate/metadata.h"
#include "../plate/times.h"

typedef struct fo_job {
    fth_mem *mem;
    const fth_config *cfg;
    fo_experiment place; /* where everything is */
    fo_selection selection;
    char positions[4096]; /* those that are used, as numbers: "0,1,5" */
    fo_input in;
    fo_plate plate;
    fo_map map;
    fo_format format;
    double *seconds; /* [n_times]: when each time point was taken; ND2: of the file */
    int64_t n_times;
    bool vertical;               /* tiles of a well lie in a column */
    int grid_rows, grid_columns; /* of tiles; 0: they lie in a line */
    fo_keyence_plate keyence;    /* its stacks are those of `in`; empty for an ND2 file */
    fo_grid_files files;         /* of a Keyence: all images */
    fo_times_report clock;
    fth_texts *notes; /* what the user should know, a line each */
    /* Where a key's value came from, "flag"; NULL: default. Set after opening, for the record;
     * NULL: keys are those of a config. */
    const char *(*source)(void *user, const char *key);
    void *source_user;
} fo_job;

/* `cfg` has input.data_root, input.exp and input.microscope. FTH_E_FILE_FORMAT or FTH_E_COMMAND
 * list all problems. */
fth_status fo_job_open(fo_job *e, fth_mem *mem, const fth_config *cfg, fth_err *err);
void fo_job_close(fo_job *e); /* an empty one is allowed */

/* Of a Keyence: stacks are tiles, and images are put together from them. */
bool fo_job_is_tiled(const fo_job *e);
/* Tiles of the mosaics of a series, with holes. */
int fo_job_tiles(const fo_job *e, int64_t series);
/* Whether A01 is in "A01,B03"; all are in "". */
bool fo_job_wants(const char *list, int well);
/* Every well of --wells is one of `well`, where -1 is none. */
void fo_job_check_wells(const char *list, const int *well, int64_t n, fo_problems *problems);
/* keyence.c: find, check and list the images of the experiment. */
fth_status fo_job_look_at_tiles(fo_job *e, fo_problems *problems, fth_err *err);
/* Number of the well that a stack shows, and when it was taken. */
int fo_job_well(const fo_job *e, int64_t stack);
double fo_job_time(const fo_job *e, int64_t stack);
/* "A01_t0003_ch00_stitch", or of the new layout "A01_BF_t0003". */
void fo_job_stem(const fo_job *e, int64_t stack, char *stem, size_t bytes);
void fo_job_stem_of(const fo_job *e, const fo_stack *s, char *stem, size_t bytes); /* no tile */
fth_status fo_job_path(const fo_job *e, int64_t stack, fo_port port, char path[FTH_PATH],
                       fth_err *err);
/* The same of a position, time and channel that need not be chosen. */
fth_status fo_job_path_of(const fo_job *e, const fo_stack *s, fo_port port, char path[FTH_PATH],
                          fth_err *err);
/* Whether only some wells or times of an ND2 file are chosen. */
bool fo_job_is_part(const fo_job *e);
/* Whether images that were not chosen are there from earlier; and whether all of the experiment
 * are, once those that were chosen are made. */
bool fo_job_has_others(const fo_job *e);
bool fo_job_is_whole(const fo_job *e);
/* Of a tiled experiment: the image of the well and time of a stack, and "A01_t0003". */
fth_status fo_job_mosaic_path(const fo_job *e, int64_t stack, char path[FTH_PATH], fth_err *err);
fth_status fo_job_zstack_path(const fo_job *e, int64_t stack, char path[FTH_PATH], fth_err *err);
void fo_job_mosaic_name(const fo_job *e, int64_t stack, char *text, size_t bytes);
/* EXP_metadata.csv, and series_well_mapping.csv and mapping_provenance.json of the run folder; or
 * only whether they can be made: FTH_E_FILE_KEY lists wells without a row in the plate's table. */
fth_status fo_job_tables(const fo_job *e, bool save, fth_err *err);
int64_t fo_job_rows(const fo_job *e);
/* Whether a stack is the first of its well and time: rows of tables, and images, are of those. */
bool fo_job_has_row(const fo_job *e, int64_t stack);
/* Otherwise each image is there once for every channel of the file. */
bool fo_job_is_of_one_channel(const fo_job *e);
/* "BF": a channel of a stack as names of the new layout have it. */
void fo_job_channel(const fo_job *e, const fo_stack *s, fo_port port, char *word, size_t bytes);
/* The tables of the new layout: scope_metadata.csv, and plate_metadata.csv and
 * series_number_map.csv beside it. */
fth_status fo_job_save_scope(const fo_job *e, const fo_metadata_row *row, int64_t n, fth_err *err);

#endif
