/* view_json.c - all of a view as JSON: keys are the names of the fields in fathom/job.h. */
#include "job/view/show.h"
#include <fathom/json.h>

static const char *const kinds[FTH_FILE_KIND_COUNT] = {"input", "output", "figure"};

static void put_names(fth_json_writer *w, const fth_task *t)
{
    fth_json_text(w, "job", t->job);
    fth_json_text(w, "id", t->id);
    fth_json_text(w, "instrument", t->instrument);
    fth_json_text(w, "model", t->model);
    fth_json_text(w, "stage", t->stage);
    fth_json_text(w, "doing", t->doing);
    fth_json_text(w, "output_dir", t->output_dir);
    fth_json_text(w, "config_path", t->config_path);
    fth_json_text(w, "log_path", t->log_path);
    fth_json_text(w, "state", fth_state_name(t->state));
    fth_json_bool(w, "cached", t->cached);
    fth_json_text(w, "reason", t->reason);
    fth_json_text(w, "error", t->error);
    fth_json_text(w, "command", t->command);
    fth_json_text(w, "device", t->device);
    fth_json_text(w, "attempt", t->attempt);
}

static void put_times(fth_json_writer *w, const fth_task *t)
{
    fth_json_seconds(w, "queued", t->queued);
    fth_json_seconds(w, "started", t->started);
    fth_json_seconds(w, "ended", t->ended);
    fth_json_seconds(w, "seconds", t->seconds);
    fth_json_seconds(w, "planned_seconds", t->planned_seconds);
    fth_json_seconds(w, "remaining_s", fth__task_remaining(t));
    fth_json_seconds(w, "io_seconds", t->io_seconds);
    fth_json_seconds(w, "compute_seconds", t->compute_seconds);
    fth_json_seconds(w, "device_seconds", t->device_seconds);
    fth_json_text(w, "bound_by", t->bound_by);
}

static void put_task(fth_json_writer *w, const fth_task *t)
{
    fth_json_open(w, NULL, '{');
    put_names(w, t);
    fth_json_int(w, "exit_code", t->exit_code);
    fth_json_int(w, "signal", t->signal);
    fth_json_int(w, "threads", t->threads);
    fth_json_int(w, "pid", t->pid);
    put_times(w, t);
    fth_json_int(w, "done", t->done);
    fth_json_int(w, "total", t->total);
    fth_json_text(w, "what", t->what);
    fth_json_text(w, "figure", t->figure);
    fth_json_real(w, "value", t->value);
    fth_json_u64(w, "planned_bytes", t->planned_bytes);
    fth_json_u64(w, "device_planned_bytes", t->device_planned_bytes);
    fth_json_u64(w, "now_bytes", t->now_bytes);
    fth_json_u64(w, "peak_bytes", t->peak_bytes);
    fth_json_u64(w, "ledger_bytes", t->ledger_bytes);
    fth_json_u64(w, "read_bytes", t->read_bytes);
    fth_json_u64(w, "written_bytes", t->written_bytes);
    fth_json_u64(w, "log_from", t->log_from);
    fth_json_u64(w, "log_to", t->log_to);
    fth_json_hash(w, "config_hash", t->config_hash);
    fth_json_hash(w, "input_hash", t->input_hash);
    fth_json_close(w);
}

static void put_file(fth_json_writer *w, const fth_task_file *f)
{
    fth_json_open(w, NULL, '{');
    fth_json_int(w, "task", f->task);
    fth_json_text(w, "kind", (unsigned)f->kind < FTH_FILE_KIND_COUNT ? kinds[f->kind] : "unknown");
    fth_json_text(w, "path", f->path);
    fth_json_text(w, "title", f->title);
    fth_json_u64(w, "bytes", f->bytes);
    fth_json_hash(w, "hash", f->hash);
    fth_json_seconds(w, "mtime", (double)f->mtime_ns * 1e-9);
    fth_json_close(w);
}

static void put_change(fth_json_writer *w, const fth_change *c)
{
    fth_json_open(w, NULL, '{');
    fth_json_int(w, "task", c->task);
    fth_json_seconds(w, "at", c->at);
    fth_json_text(w, "from", fth_state_name(c->from));
    fth_json_text(w, "to", fth_state_name(c->to));
    fth_json_text(w, "note", c->note);
    fth_json_close(w);
}

fth_status fth_view_print_json(const fth_view *view, FILE *file, fth_err *err)
{
    fth_json_writer w;
    fth_json_begin_file(&w, file, "the list of jobs", true);
    fth_json_open(&w, NULL, '{');
    fth_json_text(&w, "root", view->root);
    fth_json_text(&w, "host", view->host);
    fth_json_text(&w, "command", view->command);
    fth_json_text(&w, "version", view->version);
    fth_json_text(&w, "note", view->note);
    fth_json_seconds(&w, "started", view->started);
    fth_json_seconds(&w, "ended", view->ended);
    fth_json_seconds(&w, "now", view->now);
    fth_json_int(&w, "runner_pid", view->runner_pid);
    fth_json_u64(&w, "budget_bytes", view->budget_bytes);
    fth_json_open(&w, "tasks", '[');
    for (int64_t i = 0; i < view->n_tasks; i++) put_task(&w, &view->task[i]);
    fth_json_close(&w);
    fth_json_open(&w, "files", '[');
    for (int64_t i = 0; i < view->n_files; i++) put_file(&w, &view->file[i]);
    fth_json_close(&w);
    fth_json_open(&w, "changes", '[');
    for (int64_t i = 0; i < view->n_changes; i++) put_change(&w, &view->change[i]);
    fth_json_close(&w);
    fth_json_close(&w);
    return fth_json_end(&w, err);
}
