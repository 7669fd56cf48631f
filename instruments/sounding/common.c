/* common.c - plans and soundings that the stages have in common. */
#include "sounding.h"

#include <string.h>

/* Zeros, so that figures can be planned with it as well. */
static fth_status read_line(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)lo, (void)err;
    memset(dst, 0, (size_t)n[0] * sizeof(float));
    return FTH_OK;
}

static fth_status read_plane(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    (void)self, (void)lo, (void)err;
    memset(dst, 0, (size_t)(n[0] * n[1]) * sizeof(float));
    return FTH_OK;
}

fth_source so_planned_source(int n_axes, const int64_t *size)
{
    fth_source s = {.kind = "planned",
                    .dtype = FTH_F32,
                    .n_axes = n_axes,
                    .read = n_axes == 1 ? read_line : read_plane};
    for (int i = 0; i < n_axes; i++) s.size[i] = size[i];
    return s;
}

fth_status so_count_plan(fth_stage_plan *out, const fth_stage_call *call, const fth_plan *plan,
                         double runs, FILE *show, fth_err *err)
{
    if (!plan) return err ? err->status : FTH_E_NO_FIT;
    fth_plan_info info;
    fth_mem_stats stats;
    fth_mem_get_stats(fth_context_mem(call->context), &stats);
    const uint64_t budget = stats.budget_bytes;
    fth_plan_get_info(plan, &info);
    /* The kernel may back the arena with pages of 2 MiB, as far as the budget goes. */
    const uint64_t huge = 2u << 20, exact = info.peak_bytes,
                   beside = info.foreign_bytes + info.allowance_bytes,
                   rounded = (exact + huge - 1) / huge * huge + beside;
    const uint64_t bytes = info.on_device      ? FTH_STAGING_BYTES
                           : rounded <= budget ? rounded
                                               : exact + beside,
                   device = info.on_device ? exact + info.foreign_bytes : 0;
    if (bytes > out->host_bytes) out->host_bytes = bytes;
    if (device > out->device_bytes) out->device_bytes = device;
    out->seconds += fth_stage_guess(call, plan, runs);
    if (info.scratch_bytes > out->scratch_bytes) out->scratch_bytes = info.scratch_bytes;
    return show ? fth_plan_print(plan, show) : FTH_OK;
}

so_data so_data_planned(const fth_config *cfg)
{
    const int64_t size[2] = {fth_config_int(cfg, "survey.cells"), 2};
    return (so_data){.soundings = so_planned_source(2, size),
                     .depths = so_planned_source(1, size),
                     .truth = so_planned_source(1, size)};
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
