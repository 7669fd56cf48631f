/* data.h - the capture of a job: the one that its config names, or a synthetic one. */
#ifndef SPLAT_DATA_DATA_H
#define SPLAT_DATA_DATA_H

#include <fathom/fathom.h>

/* The folder: data_path, or output_dir/toy. */
fth_status gs_data_path(const fth_stage_call *call, char path[FTH_PATH], fth_err *err);
/* Whether it exists yet. */
bool gs_data_is_there(const fth_stage_call *call);
/* Files of a capture that a config names, as inputs of a stage. */
fth_status gs_data_inputs(const fth_stage_call *call, fth_file_list *list, fth_err *err);

FTH_STAGE_FUNCTIONS(gs_data_stage);
fth_status gs_data_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

#endif
