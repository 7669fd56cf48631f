/* ledger_read.c - read a ledger into the rows of a view; never writes.
 *
 * The file is not trusted: a field of the wrong type reads as absent, an unknown state is an error.
 */
#include "base/assert.h"
#include "base/str.h"
#include "job/ledger/ledger_db.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The newest of the history that are read: ten changes for each of two thousand tasks. */
enum { MAX_CHANGES = 20000 };

#define FIELD(type, task, column) (*(type *)((char *)(task) + (column)->offset))

typedef struct reader {
    fth__db db;
    fth_view *view;
    int64_t first; /* task of this ledger */
    fth_err *err;
} reader;

static const char *text_of(sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);
    return text ? text : "";
}

static uint64_t hash_of(sqlite3_stmt *st, int i)
{
    return strtoull(text_of(st, i), NULL, 16);
}

/* Paths inside the output directory are kept without it. */
static const char *path_of(reader *r, sqlite3_stmt *st, int i, char *buffer, size_t bytes)
{
    const char *text = text_of(st, i);
    if (!*text || *text == '/') return text;
    fth__text t;
    fth__text_init(&t, buffer, bytes);
    fth__text_add(&t, "%s/%s", r->db.dir, text);
    return buffer;
}

static bool state_of(const char *name, fth_state *out)
{
    for (int i = 0; i < FTH_STATE_COUNT; i++)
        if (strcmp(name, fth_state_name((fth_state)i)) == 0) {
            *out = (fth_state)i;
            return true;
        }
    return false;
}

static fth_status bad_row(const reader *r, const char *what, const char *value, fth_err *err)
{
    FTH_FAIL(err, FTH_E_LEDGER, "the ledger %s has a row with %s '%.40s'", r->db.path, what, value);
    fth_err_hint(err, "move it away; results and logs stay, only their history is lost");
    return FTH_E_LEDGER;
}

static fth_status read_column(reader *r, sqlite3_stmt *st, int i, fth_task *task)
{
    char path[2 * FTH_PATH];
    const fth__column *c = &fth__task_column[i];
    const char *text = NULL;
    switch (c->kind) {
    case FTH__COLUMN_TEXT: text = text_of(st, i); break;
    case FTH__COLUMN_PATH: text = path_of(r, st, i, path, sizeof path); break;
    case FTH__COLUMN_INT: FIELD(int, task, c) = sqlite3_column_int(st, i); break;
    case FTH__COLUMN_I64: FIELD(int64_t, task, c) = sqlite3_column_int64(st, i); break;
    case FTH__COLUMN_U64: FIELD(uint64_t, task, c) = (uint64_t)sqlite3_column_int64(st, i); break;
    case FTH__COLUMN_REAL: FIELD(double, task, c) = sqlite3_column_double(st, i); break;
    case FTH__COLUMN_FIGURE:
        FIELD(double, task, c) =
            sqlite3_column_type(st, i) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(st, i);
        break;
    case FTH__COLUMN_HASH: FIELD(uint64_t, task, c) = hash_of(st, i); break;
    case FTH__COLUMN_BOOL: FIELD(bool, task, c) = sqlite3_column_int(st, i) != 0; break;
    case FTH__COLUMN_STATE:
        if (!state_of(text_of(st, i), &FIELD(fth_state, task, c)))
            return bad_row(r, "the state", text_of(st, i), r->err);
        break;
    }
    return text ? fth__view_set(r->view, &FIELD(const char *, task, c), text, r->err) : FTH_OK;
}

/* Calls `row` for each row. */
static fth_status each_row(reader *r, const char *sql,
                           fth_status (*row)(reader *r, sqlite3_stmt *st))
{
    sqlite3_stmt *st = NULL;
    FTH_TRY(fth__db_prepare(&r->db, sql, &st, r->err));
    fth_status s = FTH_OK;
    int code = SQLITE_DONE;
    while (s == FTH_OK && (code = sqlite3_step(st)) == SQLITE_ROW) s = row(r, st);
    if (s == FTH_OK && code != SQLITE_DONE) s = fth__db_fail(&r->db, "read", r->err);
    sqlite3_finalize(st);
    return s;
}

/* The newest run of all ledgers is that of the view; in several, it ends with the last. */
static fth_status run_row(reader *r, sqlite3_stmt *st)
{
    fth_view *view = r->view;
    const double started = sqlite3_column_double(st, 0), ended = sqlite3_column_double(st, 1);
    if (started < view->started) return FTH_OK;
    if (started == view->started) {
        view->ended = ended == 0 || view->ended == 0 ? 0 : fmax(ended, view->ended);
        return FTH_OK;
    }
    view->started = started;
    view->ended = ended;
    view->budget_bytes = (uint64_t)sqlite3_column_int64(st, 5);
    FTH_TRY(fth__view_set(view, &view->host, text_of(st, 2), r->err));
    FTH_TRY(fth__view_set(view, &view->command, text_of(st, 3), r->err));
    return fth__view_set(view, &view->version, text_of(st, 4), r->err);
}

static fth_status task_row(reader *r, sqlite3_stmt *st)
{
    fth_task *task = NULL;
    FTH_ASSERT(r->first <= r->view->n_tasks);
    FTH_TRY(fth__view_add_task(r->view, &task, r->err));
    FTH_TRY(fth__view_set(r->view, &task->output_dir, r->db.dir, r->err));
    for (int i = 0; i < FTH__TASK_COLUMNS; i++) FTH_TRY(read_column(r, st, i, task));
    return FTH_OK;
}

/* Number of the task with that id; -1: none. */
static int64_t find_task(const reader *r, const char *id)
{
    for (int64_t i = r->first; i < r->view->n_tasks; i++)
        if (strcmp(r->view->task[i].id, id) == 0) return i;
    return -1;
}

static fth_status file_row(reader *r, sqlite3_stmt *st)
{
    static const char *const kinds[] = {"input", "output", "figure"};
    char path[2 * FTH_PATH];
    const int64_t task = find_task(r, text_of(st, 0));
    fth_task_file f = {.kind = FTH_FILE_KIND_COUNT};
    for (int i = 0; i < FTH_FILE_KIND_COUNT; i++)
        if (strcmp(text_of(st, 1), kinds[i]) == 0) f.kind = (fth_file_kind)i;
    if (f.kind == FTH_FILE_KIND_COUNT) return bad_row(r, "the kind", text_of(st, 1), r->err);
    if (task < 0) return FTH_OK;
    f.path = path_of(r, st, 2, path, sizeof path);
    f.title = text_of(st, 3);
    f.bytes = (uint64_t)sqlite3_column_int64(st, 4);
    f.hash = hash_of(st, 5);
    f.mtime_ns = sqlite3_column_int64(st, 6);
    return fth__view_add_file(r->view, task, &f, r->err);
}

static fth_status change_row(reader *r, sqlite3_stmt *st)
{
    fth_change change = {.task = find_task(r, text_of(st, 0)),
                         .at = sqlite3_column_double(st, 1),
                         .note = text_of(st, 4)};
    if (!state_of(text_of(st, 2), &change.from))
        return bad_row(r, "the state", text_of(st, 2), r->err);
    if (!state_of(text_of(st, 3), &change.to))
        return bad_row(r, "the state", text_of(st, 3), r->err);
    return change.task < 0 ? FTH_OK : fth__view_add_change(r->view, &change, r->err);
}

static fth_status read_rows(reader *r)
{
    static const char tasks[] = "SELECT "
#define FTH_COLUMN(field, kind, sql) #field ","
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
                                "run FROM tasks ORDER BY rowid";
    char changes[200];
    snprintf(changes, sizeof changes,
             "SELECT task, at, from_state, to_state, note FROM changes "
             "WHERE number > (SELECT max(number) FROM changes) - %d ORDER BY number",
             (int)MAX_CHANGES);
    FTH_TRY(fth__db_do(&r->db, "BEGIN", r->err)); /* all of one moment */
    FTH_TRY(each_row(r,
                     "SELECT started, ended, host, command, version, budget_bytes FROM runs "
                     "ORDER BY number DESC LIMIT 1",
                     run_row));
    FTH_TRY(each_row(r, tasks, task_row));
    FTH_TRY(each_row(
        r, "SELECT task, kind, path, title, bytes, hash, mtime_ns FROM files ORDER BY number",
        file_row));
    return each_row(r, changes, change_row);
}

fth_status fth__ledger_read(fth_view *view, const char *output_dir, fth_err *err)
{
    const fth_view before = *view;
    enum { ATTEMPTS = 5 }; /* each takes milliseconds, and a runner writes a few times a second */
    for (int turn = 0; turn < ATTEMPTS; turn++) {
        reader r = {.view = view, .first = view->n_tasks, .err = err};
        fth_status s = fth__db_open(&r.db, output_dir, FTH__DB_READ, err);
        if (s == FTH_OK && !r.db.db) return FTH_OK;
        if (s == FTH_OK) s = read_rows(&r);
        const bool moved = fth__db_has_moved(&r.db);
        fth__db_close(&r.db, false);
        if (s == FTH_OK && !moved) return FTH_OK;
        view->n_tasks = before.n_tasks; /* texts stay in the store: a few hundred bytes */
        view->n_files = before.n_files;
        view->n_changes = before.n_changes;
        view->started = before.started;
        view->ended = before.ended;
        if (!moved) return s;
        fth_err_clear(err);
    }
    return FTH_FAIL(err, FTH_E_LEDGER, "the ledger in %s changes too fast to be read", output_dir);
}
