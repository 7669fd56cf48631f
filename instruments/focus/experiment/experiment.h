/* experiment.h - the folders of an experiment: where its files are, and where its results go.
 *
 *   <root>/raw_image_data/<microscope>/<exp>/                 one .nd2, or the folders of a Keyence
 *   <root>/metadata/{well,plate}_metadata/<exp>_well_metadata.xlsx
 *   <root>/metadata/built_metadata_files/<exp>_metadata.csv   out
 *   <root>/built_image_data/stitched_FF_images/<exp>/         out; v2: <exp>/stitched_ff_images/...
 *   <root>/built_image_data/focus_runs/<exp>/                 out: run.json and tables
 */
#ifndef FOCUS_EXPERIMENT_H
#define FOCUS_EXPERIMENT_H

#include "../input/problems.h"
#include "../plate/table.h"

typedef enum fo_microscope { FO_YX1, FO_KEYENCE, FO_MICROSCOPES } fo_microscope;
extern const char *const fo_microscope_names[FO_MICROSCOPES];

typedef struct fo_experiment {
    fo_microscope microscope;
    fo_layout layout;
    char name[200];
    char root[FTH_PATH];
    char raw[FTH_PATH];      /* the .nd2 file, or the folder with the wells */
    char plate[FTH_PATH];    /* workbook or CSV of the plate */
    char images[FTH_PATH];   /* folder of the images */
    char tiles[FTH_PATH];    /* Keyence: folder of the fused tiles */
    char zstacks[FTH_PATH];  /* Keyence: folder of stitched z-stacks */
    char metadata[FTH_PATH]; /* table of the images */
    char run[FTH_PATH];      /* folder of run.json, tables, traces */
} fo_experiment;

typedef struct fo_experiment_options {
    const char *root, *name, *microscope; /* the microscope in any case of letters */
    fo_layout layout;
    const char *run_dir; /* NULL or "": as above */
} fo_experiment_options;

/* Find the inputs and name the outputs. Missing and ambiguous inputs go to `problems`, with all
 * candidates; notices go to `notes`. */
fth_status fo_experiment_find(fo_experiment *e, fth_mem *mem, const fo_experiment_options *opt,
                              fo_problems *problems, fth_texts *notes, fth_err *err);

/* Only names the results, of an experiment that was run: `microscope` is ignored. FTH_E_COMMAND for
 * an invalid name, FTH_E_FILE_OPEN for a missing root. */
fth_status fo_experiment_results(fo_experiment *e, const fo_experiment_options *opt, fth_err *err);

/* The image of a well, in its folder: "A01_t0012_ch00_stitch.jpg"; v2: "A01/BF/A01_BF_t0012.tif".
 */
typedef struct fo_image_name {
    int well;
    int64_t t, c;
    const char *channel; /* v2: its normalised name */
    const char *ending;  /* ".jpg" */
} fo_image_name;
fth_status fo_experiment_image(const fo_experiment *e, const fo_image_name *name,
                               char path[FTH_PATH], fth_err *err);
/* A fused tile: "ff_A01_t0012/im_p0001.jpg". */
fth_status fo_experiment_tile(const fo_experiment *e, int well, int64_t t, int64_t tile,
                              const char *ending, char path[FTH_PATH], fth_err *err);

/* Names of experiments begin with a date; tiles are in a column before 2024, in a row since. 0: the
 * name has no year. */
int fo_experiment_year(const char *name);

#endif
