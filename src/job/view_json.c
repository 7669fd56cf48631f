/* view_json.c - all of a view as JSON: keys are the names of the fields in fathom/job.h. */
#include "job/json.h"
#include "job/show.h"

static const char *const kinds[FTH_FILE_KIND_COUNT] = {"input", "output", "figure"};

static void put_names(fth__json_writer *w, const fth_task *t)
{
    fth__json_text(w, "job", t->job);
    fth__json_text(w, "id", t->id);
    fth__json_text(w, "instrument", t->instrument);
    fth__json_text(w, "model", t->model);
    fth__json_text(w, "stage", t->stage);
    fth__json_text(w, "doing", t->doing);
    fth__json_text(w, "output_dir", t->output_dir);
    fth__json_text(w, "config_path", t->config_path);
    fth__json_text(w, "log_path", t->log_path);
    fth__json_text(w, "state", fth_state_name(t->state));
    fth__json_bool(w, "cached", t->cached);
    fth__json_text(w, "reason", t->reason);
    fth__json_text(w, "error", t->error);
    fth__json_text(w, "command", t->command);
    fth__json_text(w, "device", t->device);
    fth__json_text(w, "attempt", t->attempt);
}

static void put_times(fth__json_writer *w, const fth_task *t)
{
    fth__json_seconds(w, "queued", t->queued);
    fth__json_seconds(w, "started", t->started);
    fth__json_seconds(w, "ended", t->ended);
    fth__json_seconds(w, "seconds", t->seconds);
    fth__json_seconds(w, "planned_seconds", t->planned_seconds);
    fth__json_seconds(w, "remaining_s", fth__task_remaining(t));
    fth__json_seconds(w, "io_seconds", t->io_seconds);
    fth__json_seconds(w, "compute_seconds", t->compute_seconds);
    fth__json_seconds(w, "device_seconds", t->device_seconds);
    fth__json_text(w, "bound_by", t->bound_by);
}

static void put_task(fth__json_writer *w, const fth_task *t)
{
    fth__json_open(w, NULL, '{');
    put_names(w, t);
    fth__json_int(w, "exit_code", t->exit_code);
    fth__json_int(w, "signal", t->signal);
    fth__json_int(w, "threads", t->threads);
    fth__json_int(w, "pid", t->pid);
    put_times(w, t);
    fth__json_int(w, "done", t->done);
    fth__json_int(w, "total", t->total);
    fth__json_text(w, "what", t->what);
    fth__json_text(w, "figure", t->figure);
    fth__json_real(w, "value", t->value);
    fth__json_u64(w, "planned_bytes", t->planned_bytes);
    fth__json_u64(w, "device_planned_bytes", t->device_planned_bytes);
    fth__json_u64(w, "now_bytes", t->now_bytes);
    fth__json_u64(w, "peak_bytes", t->peak_bytes);
    fth__json_u64(w, "ledger_bytes", t->ledger_bytes);
    fth__json_u64(w, "read_bytes", t->read_bytes);
    fth__json_u64(w, "written_bytes", t->written_bytes);
    fth__json_u64(w, "log_from", t->log_from);
    fth__json_u64(w, "log_to", t->log_to);
    fth__json_hash(w, "config_hash", t->config_hash);
    fth__json_hash(w, "input_hash", t->input_hash);
    fth__json_close(w);
}

static void put_file(fth__json_writer *w, const fth_task_file *f)
{
    fth__json_open(w, NULL, '{');
    fth__json_int(w, "task", f->task);
    fth__json_text(w, "kind", (unsigned)f->kind < FTH_FILE_KIND_COUNT ? kinds[f->kind] : "unknown");
    fth__json_text(w, "path", f->path);
    fth__json_text(w, "title", f->title);
    fth__json_u64(w, "bytes", f->bytes);
    fth__json_hash(w, "hash", f->hash);
    fth__json_seconds(w, "mtime", (double)f->mtime_ns * 1e-9);
    fth__json_close(w);
}

static void put_change(fth__json_writer *w, const fth_change *c)
{
    fth__json_open(w, NULL, '{');
    fth__json_int(w, "task", c->task);
    fth__json_seconds(w, "at", c->at);
    fth__json_text(w, "from", fth_state_name(c->from));
    fth__json_text(w, "to", fth_state_name(c->to));
    fth__json_text(w, "note", c->note);
    fth__json_close(w);
}

fth_status fth_view_print_json(const fth_view *view, FILE *file, fth_err *err)
{
    fth__json_writer w;
    fth__json_begin_file(&w, file, "the list of jobs", true);
    fth__json_open(&w, NULL, '{');
    fth__json_text(&w, "root", view->root);
    fth__json_text(&w, "host", view->host);
    fth__json_text(&w, "command", view->command);
    fth__json_text(&w, "version", view->version);
    fth__json_text(&w, "note", view->note);
    fth__json_seconds(&w, "started", view->started);
    fth__json_seconds(&w, "ended", view->ended);
    fth__json_seconds(&w, "now", view->now);
    fth__json_int(&w, "runner_pid", view->runner_pid);
    fth__json_u64(&w, "budget_bytes", view->budget_bytes);
    fth__json_open(&w, "tasks", '[');
    for (int64_t i = 0; i < view->n_tasks; i++) put_task(&w, &view->task[i]);
    fth__json_close(&w);
    fth__json_open(&w, "files", '[');
    for (int64_t i = 0; i < view->n_files; i++) put_file(&w, &view->file[i]);
    fth__json_close(&w);
    fth__json_open(&w, "changes", '[');
    for (int64_t i = 0; i < view->n_changes; i++) put_change(&w, &view->change[i]);
    fth__json_close(&w);
    fth__json_close(&w);
    return fth__json_end(&w, err);
}
