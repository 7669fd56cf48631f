/* record_view.c - what a run record says of a task, in the row of that task. */
#include "job/stage/record.h"

static fth_status take_files(fth_view *view, int64_t i, const fth__job_record *record, fth_err *err)
{
    fth__view_drop_files(view, i);
    for (int64_t k = 0; k < record->n_files; k++)
        FTH_TRY(fth__view_add_file(view, i, &record->file[k], err));
    return FTH_OK;
}

fth_status fth__record_to_view(const fth__job_record *record, fth_view *view, int64_t i,
                               fth_err *err)
{
    fth_task *task = &view->task[i];
    const fth_stage_result *from = &record->result;
    task->started = record->started;
    task->seconds = from->seconds;
    task->planned_bytes = from->plan.host_bytes;
    task->device_planned_bytes = from->plan.device_bytes;
    task->planned_seconds = from->plan.seconds;
    task->ledger_bytes = from->ledger_bytes;
    task->peak_bytes = from->growth_bytes;
    task->read_bytes = from->read_bytes;
    task->written_bytes = from->written_bytes;
    task->io_seconds = from->io_seconds;
    task->compute_seconds = from->compute_seconds;
    task->device_seconds = from->device_seconds;
    task->config_hash = record->config_hash;
    task->input_hash = record->input_hash;
    FTH_TRY(fth__view_set(view, &task->device, from->device, err));
    FTH_TRY(fth__view_set(view, &task->bound_by, from->bound_by, err));
    FTH_TRY(fth__view_set(view, &task->attempt, record->attempt, err));
    return take_files(view, i, record, err);
}
