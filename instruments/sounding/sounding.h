/* sounding.h - what the rooms share, and what they offer to instrument.c. */
#ifndef SOUNDING_H
#define SOUNDING_H

#include <fathom/fathom.h>

/* Names of files, so that no two stages disagree. */
#define SO_SOUNDINGS "soundings.safetensors" /* of the survey, in the output directory */
#define SO_MODEL "model.safetensors"         /* these in the folder of the model */
#define SO_RESIDUALS "residuals.npy"
#define SO_MAP "map.npy"
#define SO_GAPS "gaps.npy"
#define SO_TABLE "table.csv"

FTH_STAGE_FUNCTIONS(so_survey);
fth_status so_survey_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);
FTH_STAGE_FUNCTIONS(so_fit);
FTH_STAGE_FUNCTIONS(so_analyze);
FTH_STAGE_FUNCTIONS(so_figures);
extern const fth_stage_file so_figure_files[]; /* ends with a row that has no name */
fth_status so_depth_run(fth_context *ctx, int n_args, char *const *arg,
                        const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                        fth_err *err);

#endif
