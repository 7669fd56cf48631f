/* live.c - publish the progress of running tasks in a file, a few times a second.
 *
 * It is useless once the runner has ended, so it is neither synced nor kept in the ledger; readers
 * trust it only while the holder of the lock is alive.
 */
#include "job/ledger/ledger.h"
#include <fathom/json.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static void put_task(fth_json_writer *w, const fth_task *t)
{
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "id", t->id);
    fth_json_int(w, "pid", t->pid);
    fth_json_text(w, "device", t->device);
    fth_json_real(w, "started", t->started);
    fth_json_real(w, "seconds", t->seconds);
    fth_json_int(w, "done", t->done);
    fth_json_int(w, "total", t->total);
    fth_json_text(w, "what", t->what);
    fth_json_text(w, "figure", t->figure);
    fth_json_real(w, "value", t->value);
    fth_json_real(w, "remaining_s", t->remaining_s);
    fth_json_u64(w, "now_bytes", t->now_bytes);
    fth_json_u64(w, "peak_bytes", t->peak_bytes);
    fth_json_close(w);
}

/* Under another name, then renamed: readers see the old or the new one. */
static void put_file(const char *path, const char *temp, const char *text, size_t bytes)
{
    const int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return;
    const bool written = write(fd, text, bytes) == (ssize_t)bytes;
    if (close(fd) != 0 || !written || rename(temp, path) != 0) unlink(temp);
}

void fth__live_write(const fth_view *view, const char *output_dir)
{
    char path[FTH_PATH], temp[FTH_PATH];
    int64_t running = 0;
    if (!fth__fathom_path(path, output_dir, "live.json")) return;
    if (!fth__fathom_path(temp, output_dir, "live.json.tmp")) return;
    fth_json_writer w;
    fth_json_begin(&w, view->mem, false);
    fth_json_open(&w, NULL, '{');
    fth_json_int(&w, "pid", view->runner_pid);
    fth_json_real(&w, "at", view->now > 0 ? view->now : fth__wall_seconds());
    fth_json_open(&w, "tasks", '[');
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *t = &view->task[i];
        if (t->state != FTH_STATE_RUNNING || strcmp(t->output_dir, output_dir) != 0) continue;
        put_task(&w, t);
        running++;
    }
    fth_json_close(&w);
    fth_json_close(&w);
    if (running == 0) {
        unlink(path);
        unlink(temp); /* of a runner killed while it wrote */
    } else if (fth_json_end(&w, NULL) == FTH_OK)
        put_file(path, temp, w.data, (size_t)w.used);
    fth_json_free(&w);
}

static void take_task(fth_view *view, fth_task *t, const fth_json_value *v)
{
    t->pid = fth_json_get_int(v, "pid", t->pid);
    t->started = fth_json_get_real(v, "started", t->started);
    t->seconds = fth_json_get_real(v, "seconds", t->seconds);
    t->done = fth_json_get_int(v, "done", t->done);
    t->total = fth_json_get_int(v, "total", t->total);
    t->value = fth_json_get_real(v, "value", (double)NAN);
    t->remaining_s = fth_json_get_real(v, "remaining_s", 0);
    t->now_bytes = fth_json_get_u64(v, "now_bytes", 0);
    t->peak_bytes = fth_json_get_u64(v, "peak_bytes", t->peak_bytes);
    /* Without memory for a word the old one stays. */
    if (fth__view_set(view, &t->what, fth_json_get_text(v, "what", t->what), NULL) != FTH_OK ||
        fth__view_set(view, &t->device, fth_json_get_text(v, "device", t->device), NULL) !=
            FTH_OK ||
        fth__view_set(view, &t->figure, fth_json_get_text(v, "figure", t->figure), NULL) != FTH_OK)
        return;
}

void fth__live_read(fth_view *view, const char *output_dir, int64_t first_task)
{
    char path[FTH_PATH];
    fth__who who;
    fth_json *doc = NULL;
    if (!fth__lock_read(output_dir, &who) || !fth__who_lives(&who)) return;
    if (!fth__fathom_path(path, output_dir, "live.json")) return;
    if (access(path, F_OK) != 0 || fth_json_load(&doc, view->mem, path, NULL) != FTH_OK) return;
    const fth_json_value *root = fth_json_root(doc), *tasks = fth_json_get(root, "tasks");
    const bool same = fth_json_get_int(root, "pid", 0) == who.pid &&
                      fth_json_get_real(root, "at", 0) >= who.since; /* not of an earlier run */
    for (int64_t i = 0; same && i < fth_json_count(tasks); i++) {
        const fth_json_value *v = fth_json_at(tasks, i);
        const char *id = fth_json_get_text(v, "id", "");
        for (int64_t k = first_task; k < view->n_tasks; k++) {
            fth_task *t = &view->task[k];
            if (t->state == FTH_STATE_RUNNING && strcmp(t->id, id) == 0 &&
                strcmp(t->output_dir, output_dir) == 0)
                take_task(view, t, v);
        }
    }
    fth_json_destroy(doc);
}
