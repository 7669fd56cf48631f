/* view_read.c - a view of all that is known below a folder, and names as people type them.
 *
 * Folders with a ledger are looked for first and then read in the order of their names. A place
 * that cannot be read is no reason to say nothing about the others: it is noted.
 */
#include "base/str.h"
#include "config/schema.h"
#include "config/store.h"
#include "job/ledger.h"
#include "mem/heap.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 12, MAX_FOLDERS = 200000, NOTE_BYTES = 2000 };

/* ---- finding ledgers ---- */

typedef struct search {
    fth_mem *mem;
    fth__store texts;
    char **dir; /* with a ledger */
    int64_t n_dirs, cap_dirs, n_folders;
    fth__text note;
    fth_err *err;
    char note_text[NOTE_BYTES];
    char path[FTH__PATH];
} search;

static void note(search *s, const char *line)
{
    fth__text_add(&s->note, "%s%s", s->note.used ? "\n" : "", line);
}

static fth_status keep_dir(search *s)
{
    FTH_TRY(fth__grow(s->mem, &s->dir, &s->cap_dirs, s->n_dirs + 1, s->err));
    char *copy = fth__store_text(&s->texts, s->path, strlen(s->path));
    if (!copy) return FTH_FAIL(s->err, FTH_E_NOMEM, "no memory for the list of folders");
    s->dir[s->n_dirs++] = copy;
    return FTH_OK;
}

/* Links are not followed: they could lead in circles. */
static bool is_folder(const search *s, const struct dirent *e)
{
    struct stat info;
    if (e->d_type != DT_UNKNOWN) return e->d_type == DT_DIR;
    return lstat(s->path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Looks into s->path, which is as it was afterwards. */
static fth_status look_into(search *s, int depth)
{
    char ledger[FTH__PATH], line[FTH__PATH + 80];
    const size_t end = strlen(s->path);
    struct stat info;
    if (fth__fathom_path(ledger, s->path, "ledger.sqlite") && stat(ledger, &info) == 0)
        FTH_TRY(keep_dir(s));
    if (depth == MAX_DEPTH || s->n_folders >= MAX_FOLDERS) return FTH_OK;
    DIR *d = opendir(s->path);
    if (!d) {
        snprintf(line, sizeof line, "the folder %s was skipped: %s", s->path, strerror(errno));
        note(s, line);
        return FTH_OK;
    }
    fth_status status = FTH_OK;
    const struct dirent *e;
    while (status == FTH_OK && (e = readdir(d))) {
        if (e->d_name[0] == '.') continue;
        const int n =
            snprintf(s->path + end, sizeof s->path - end, "%s%s", end > 1 ? "/" : "", e->d_name);
        if (n > 0 && (size_t)n < sizeof s->path - end && is_folder(s, e)) {
            if (++s->n_folders == MAX_FOLDERS)
                note(s, "there are more than 200000 folders: the rest was not looked into");
            status = look_into(s, depth + 1);
        }
        s->path[end] = '\0';
    }
    closedir(d);
    return status;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- the view ---- */

/* What a runner that was killed left as running is not running any more. */
static fth_status settle(fth_view *view, const char *dir, int64_t first, fth_err *err)
{
    fth__who who;
    const bool lives = fth__lock_read(dir, &who) && fth__who_lives(&who);
    if (lives) {
        if (view->runner_pid == 0) view->runner_pid = who.pid;
        fth__live_read(view, dir, first);
    }
    for (int64_t i = first; i < view->n_tasks; i++) {
        fth_task *t = &view->task[i];
        if (t->state != FTH_STATE_RUNNING) continue;
        if (lives) {
            t->seconds = t->started > 0 && view->now > t->started ? view->now - t->started : 0;
            continue;
        }
        t->state = FTH_STATE_INTERRUPTED;
        FTH_TRY(
            fth__view_set(view, &t->reason, "the run ended without a word: was it killed?", err));
    }
    return FTH_OK;
}

/* Changes come ledger by ledger; their place breaks ties, since qsort would not. */
static int by_time(const void *a, const void *b)
{
    const fth_change *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->task != y->task ? (x->task < y->task ? -1 : 1) : (int)x->to - (int)y->to;
}

static fth_status read_all(search *s, fth_view *view)
{
    fth_err first = {0};
    int64_t good = 0;
    if (s->n_dirs > 1) qsort(s->dir, (size_t)s->n_dirs, sizeof *s->dir, by_path);
    for (int64_t i = 0; i < s->n_dirs; i++) {
        fth_err why = {0};
        const int64_t at = view->n_tasks;
        const fth_status got = fth__ledger_read(view, s->dir[i], &why);
        if (got == FTH_E_NOMEM) return FTH_FAIL(s->err, got, "%s", why.text);
        if (got != FTH_OK) {
            note(s, why.text);
            if (first.status == FTH_OK) first = why;
            continue;
        }
        good++;
        FTH_TRY(settle(view, s->dir[i], at, s->err));
    }
    if (good == 0 && first.status != FTH_OK) {
        if (s->err) *s->err = first;
        return first.status;
    }
    if (s->n_dirs > 1 && view->n_changes > 1)
        qsort(view->change, (size_t)view->n_changes, sizeof *view->change, by_time);
    return fth__view_set(view, &view->note, s->note_text, s->err);
}

fth_status fth_view_read(fth_view **out, fth_mem *mem, const char *dir, fth_err *err)
{
    *out = NULL;
    if (!mem || !dir) return FTH_FAIL(err, FTH_E_USAGE, "a view needs memory and a folder");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(search), &block, err));
    search *s = block;
    s->mem = s->texts.mem = mem;
    s->err = err;
    fth__text_init(&s->note, s->note_text, sizeof s->note_text);
    fth_view *view = NULL;
    fth_status status = FTH_OK;
    struct stat info;
    if (!realpath(dir, s->path) || stat(s->path, &info) != 0)
        status = FTH_FAIL(err, FTH_E_FILE_OPEN, "the folder %s cannot be read: %s", dir,
                          strerror(errno));
    else if (!S_ISDIR(info.st_mode))
        status = FTH_FAIL(err, FTH_E_FILE_OPEN, "%s is a file, not a folder", dir);
    if (status == FTH_OK) status = fth__view_create(&view, mem, s->path, err);
    if (status == FTH_OK) {
        view->now = fth__wall_seconds();
        status = look_into(s, 0);
    }
    if (status == FTH_OK) status = read_all(s, view);
    if (status == FTH_OK)
        *out = view;
    else
        fth_view_destroy(view);
    fth__heap_free(mem, s->dir);
    fth__store_clear(&s->texts);
    fth__heap_free(mem, s);
    return status;
}
