/* view_json.c - all of a view as JSON: keys are the names of the fields in fathom/job.h. */
#include "job/emit.h"
#include "job/show.h"

static const char *const kinds[FTH_FILE_KIND_COUNT] = {"input", "output", "figure"};

static void emit_names(fth__emit *e, const fth_task *t)
{
    fth__emit_text(e, "job", t->job);
    fth__emit_text(e, "id", t->id);
    fth__emit_text(e, "instrument", t->instrument);
    fth__emit_text(e, "model", t->model);
    fth__emit_text(e, "stage", t->stage);
    fth__emit_text(e, "doing", t->doing);
    fth__emit_text(e, "output_dir", t->output_dir);
    fth__emit_text(e, "config_path", t->config_path);
    fth__emit_text(e, "log_path", t->log_path);
    fth__emit_text(e, "state", fth_state_name(t->state));
    fth__emit_bool(e, "cached", t->cached);
    fth__emit_text(e, "reason", t->reason);
    fth__emit_text(e, "error", t->error);
    fth__emit_text(e, "command", t->command);
    fth__emit_text(e, "device", t->device);
    fth__emit_text(e, "attempt", t->attempt);
}

static void emit_times(fth__emit *e, const fth_task *t)
{
    fth__emit_seconds(e, "queued", t->queued);
    fth__emit_seconds(e, "started", t->started);
    fth__emit_seconds(e, "ended", t->ended);
    fth__emit_seconds(e, "seconds", t->seconds);
    fth__emit_seconds(e, "planned_seconds", t->planned_seconds);
    fth__emit_seconds(e, "remaining_s", fth__task_remaining(t));
    fth__emit_seconds(e, "io_seconds", t->io_seconds);
    fth__emit_seconds(e, "compute_seconds", t->compute_seconds);
    fth__emit_seconds(e, "device_seconds", t->device_seconds);
    fth__emit_text(e, "bound_by", t->bound_by);
}

static void emit_task(fth__emit *e, const fth_task *t)
{
    fth__emit_open(e, NULL, '{');
    emit_names(e, t);
    fth__emit_int(e, "exit_code", t->exit_code);
    fth__emit_int(e, "signal", t->signal);
    fth__emit_int(e, "threads", t->threads);
    fth__emit_int(e, "pid", t->pid);
    emit_times(e, t);
    fth__emit_int(e, "done", t->done);
    fth__emit_int(e, "total", t->total);
    fth__emit_text(e, "what", t->what);
    fth__emit_text(e, "figure", t->figure);
    fth__emit_real(e, "value", t->value);
    fth__emit_size(e, "planned_bytes", t->planned_bytes);
    fth__emit_size(e, "device_planned_bytes", t->device_planned_bytes);
    fth__emit_size(e, "now_bytes", t->now_bytes);
    fth__emit_size(e, "peak_bytes", t->peak_bytes);
    fth__emit_size(e, "ledger_bytes", t->ledger_bytes);
    fth__emit_size(e, "read_bytes", t->read_bytes);
    fth__emit_size(e, "written_bytes", t->written_bytes);
    fth__emit_size(e, "log_from", t->log_from);
    fth__emit_size(e, "log_to", t->log_to);
    fth__emit_hex(e, "config_hash", t->config_hash);
    fth__emit_hex(e, "input_hash", t->input_hash);
    fth__emit_close(e, '}');
}

static void emit_file(fth__emit *e, const fth_task_file *f)
{
    fth__emit_open(e, NULL, '{');
    fth__emit_int(e, "task", f->task);
    fth__emit_text(e, "kind", (unsigned)f->kind < FTH_FILE_KIND_COUNT ? kinds[f->kind] : "unknown");
    fth__emit_text(e, "path", f->path);
    fth__emit_text(e, "title", f->title);
    fth__emit_size(e, "bytes", f->bytes);
    fth__emit_hex(e, "hash", f->hash);
    fth__emit_seconds(e, "mtime", (double)f->mtime_ns * 1e-9);
    fth__emit_close(e, '}');
}

static void emit_change(fth__emit *e, const fth_change *c)
{
    fth__emit_open(e, NULL, '{');
    fth__emit_int(e, "task", c->task);
    fth__emit_seconds(e, "at", c->at);
    fth__emit_text(e, "from", fth_state_name(c->from));
    fth__emit_text(e, "to", fth_state_name(c->to));
    fth__emit_text(e, "note", c->note);
    fth__emit_close(e, '}');
}

fth_status fth_view_print_json(const fth_view *view, FILE *file, fth_err *err)
{
    fth__emit e = {.file = file};
    fth__emit_open(&e, NULL, '{');
    fth__emit_text(&e, "root", view->root);
    fth__emit_text(&e, "host", view->host);
    fth__emit_text(&e, "command", view->command);
    fth__emit_text(&e, "version", view->version);
    fth__emit_text(&e, "note", view->note);
    fth__emit_seconds(&e, "started", view->started);
    fth__emit_seconds(&e, "ended", view->ended);
    fth__emit_seconds(&e, "now", view->now);
    fth__emit_int(&e, "runner_pid", view->runner_pid);
    fth__emit_size(&e, "budget_bytes", view->budget_bytes);
    fth__emit_open(&e, "tasks", '[');
    for (int64_t i = 0; i < view->n_tasks; i++) emit_task(&e, &view->task[i]);
    fth__emit_close(&e, ']');
    fth__emit_open(&e, "files", '[');
    for (int64_t i = 0; i < view->n_files; i++) emit_file(&e, &view->file[i]);
    fth__emit_close(&e, ']');
    fth__emit_open(&e, "changes", '[');
    for (int64_t i = 0; i < view->n_changes; i++) emit_change(&e, &view->change[i]);
    fth__emit_close(&e, ']');
    fth__emit_close(&e, '}');
    putc('\n', file);
    return fth__emit_end(file, "the list of jobs", err);
}
