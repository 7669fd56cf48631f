/* sounding.h - what the rooms share, and what they offer to instrument.c. */
#ifndef SOUNDING_H
#define SOUNDING_H

#include <fathom/fathom.h>

/* Names of files, so that no two stages disagree. */
#define SO_SOUNDINGS "soundings.safetensors" /* of the survey, in the output directory */
#define SO_MODEL "model.safetensors"         /* these in the folder of the model */
#define SO_RESIDUALS "residuals.npy"
#define SO_MAP "map.npy"

FTH_STAGE_FUNCTIONS(so_survey);
FTH_STAGE_FUNCTIONS(so_fit);
FTH_STAGE_FUNCTIONS(so_analyze);
FTH_STAGE_FUNCTIONS(so_figures);
FTH_VERB_FUNCTION(so_depth_run);
extern const fth_stage_file so_analyze_files[],
    so_figure_files[]; /* a row without a name ends them */

#endif
