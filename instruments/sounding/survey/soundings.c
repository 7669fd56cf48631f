/* soundings.c - see soundings.h. */
#include "soundings.h"

#include "../sounding.h"
#include "table.h"

so_data so_data_planned(const fth_config *cfg)
{
    const int64_t size[2] = {fth_config_int(cfg, "survey.cells"), 2};
    return (so_data){.bound = so_table_path(cfg) != NULL,
                     .soundings = fth_source_zeros(FTH_F32, 2, size),
                     .depths = fth_source_zeros(FTH_F32, 1, size),
                     .truth = fth_source_zeros(FTH_F32, 1, size)};
}

fth_status so_data_open(so_data *d, const fth_stage_call *call, fth_err *err)
{
    *d = (so_data){0};
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, call->output_dir, SO_SOUNDINGS, err));
    fth_status s = fth_safetensors_open(&d->file, fth_context_mem(call->context), path, err);
    if (s == FTH_OK) s = fth_safetensors_source(d->file, "soundings", &d->soundings, err);
    if (s == FTH_OK) s = fth_safetensors_source(d->file, "depths", &d->depths, err);
    if (s == FTH_OK) s = fth_safetensors_source(d->file, "truth", &d->truth, err);
    if (s == FTH_OK && (d->soundings.n_axes != 2 || d->soundings.size[1] != 2 ||
                        d->depths.n_axes != 1 || d->depths.size[0] != d->soundings.size[0] ||
                        d->truth.n_axes != 1 || d->truth.size[0] != d->soundings.size[0]))
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: soundings [cell 2], depths [cell] and truth "
                     "[cell] are expected, with one number of cells",
                     path);
    if (s != FTH_OK) so_data_close(d);
    return s;
}

void so_data_close(so_data *d)
{
    fth_source_close(&d->soundings);
    fth_source_close(&d->depths);
    fth_source_close(&d->truth);
    fth_safetensors_close(d->file);
    *d = (so_data){0};
}
