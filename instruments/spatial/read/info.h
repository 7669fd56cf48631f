/* info.h - what a file or folder is, in a few lines for people. */
#ifndef SPATIAL_INFO_H
#define SPATIAL_INFO_H

#include "../spatial.h"
#include "tenx.h"

/* Where a description goes: lines for people, and the same facts as members of an object. */
typedef struct sp_told {
    FILE *out;
    fth_json_writer *w; /* NULL: nobody reads them */
} sp_told;

/* An h5ad file: its parts, and a config that would read it. */
fth_status sp_info_h5ad(fth_mem *mem, const char *path, const sp_told *t, fth_err *err);
/* An output folder of 10x, and a config that would read it. */
fth_status sp_info_folder(fth_mem *mem, const sp_tenx_files *f, const char *dir, const sp_told *t,
                          fth_err *err);
/* A folder of X.npy, Y.npz, C.npy and metadata.json. */
fth_status sp_info_preprocessed(fth_mem *mem, const char *dir, const sp_told *t, fth_err *err);
/* A model's file. */
fth_status sp_info_model(fth_mem *mem, const char *path, const sp_told *t, fth_err *err);
/* The folder of one model; one with folders of models in it. */
fth_status sp_info_results(fth_mem *mem, const char *dir, const sp_told *t, fth_err *err);
/* Time of the last training in a model folder, from its record; false: unknown. */
bool sp_info_training(fth_mem *mem, const char *model_dir, fth_stage_result *out);

#endif
