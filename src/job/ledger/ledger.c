/* ledger.c - write to the ledger: each call is one transaction, durable when it returns. */
#include "job/ledger/ledger.h"

#include "base/assert.h"
#include "base/hash.h"
#include "job/ledger/ledger_db.h"
#include "mem/inject.h"

#include <string.h>

#define FIELD(type, task, column) (*(type const *)((const char *)(task) + (column)->offset))

static const char *const kind_names[FTH_FILE_KIND_COUNT] = {
    [FTH_FILE_INPUT] = "input", [FTH_FILE_OUTPUT] = "output", [FTH_FILE_FIGURE] = "figure"};

/* Bytes that were handed over live longer than the statement, so SQLite need not copy them. */
static void bind_text(sqlite3_stmt *st, int i, const char *text)
{
    sqlite3_bind_text(st, i, text ? text : "", -1, SQLITE_STATIC);
}

/* A path inside the output directory without it. */
static void bind_path(sqlite3_stmt *st, int i, const char *dir, const char *path)
{
    const size_t n = strlen(dir);
    const bool inside = path && strncmp(path, dir, n) == 0 && path[n] == '/' && path[n + 1];
    bind_text(st, i, inside ? path + n + 1 : path);
}

static void bind_hash(sqlite3_stmt *st, int i, uint64_t hash)
{
    char hex[17];
    fth__hash_hex(hash, hex);
    sqlite3_bind_text(st, i, hex, -1, SQLITE_TRANSIENT);
}

static void bind_column(sqlite3_stmt *st, int i, const fth__column *c, const fth_task *task,
                        const char *dir)
{
    switch (c->kind) {
    case FTH__COLUMN_TEXT: bind_text(st, i, FIELD(const char *, task, c)); return;
    case FTH__COLUMN_PATH: bind_path(st, i, dir, FIELD(const char *, task, c)); return;
    case FTH__COLUMN_INT: sqlite3_bind_int(st, i, FIELD(int, task, c)); return;
    case FTH__COLUMN_I64: sqlite3_bind_int64(st, i, FIELD(int64_t, task, c)); return;
    case FTH__COLUMN_U64: sqlite3_bind_int64(st, i, (int64_t)FIELD(uint64_t, task, c)); return;
    case FTH__COLUMN_REAL:
    case FTH__COLUMN_FIGURE: sqlite3_bind_double(st, i, FIELD(double, task, c)); return;
    case FTH__COLUMN_HASH: bind_hash(st, i, FIELD(uint64_t, task, c)); return;
    case FTH__COLUMN_STATE: bind_text(st, i, fth_state_name(FIELD(fth_state, task, c))); return;
    case FTH__COLUMN_BOOL: sqlite3_bind_int(st, i, FIELD(bool, task, c)); return;
    }
}

static fth_status write_task(fth__db *db, const fth_task *task, fth_err *err)
{
    static const char sql[] = "INSERT INTO tasks("
#define FTH_COLUMN(field, kind, type) #field ","
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
                              "run) VALUES("
#define FTH_COLUMN(field, kind, type) "?,"
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
                              "(SELECT max(number) FROM runs)) ON CONFLICT(id) DO UPDATE SET "
#define FTH_COLUMN(field, kind, type) #field "=excluded." #field ","
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
                              "run=excluded.run";
    sqlite3_stmt *st = NULL;
    FTH_TRY(fth__db_prepare(db, sql, &st, err));
    for (int i = 0; i < FTH__TASK_COLUMNS; i++)
        bind_column(st, i + 1, &fth__task_column[i], task, db->dir);
    const fth_status s = fth__db_run(db, st, err);
    sqlite3_finalize(st);
    return s;
}

static fth_status write_history(fth__db *db, const fth_task *task, const fth__ledger_change *change,
                                fth_err *err)
{
    FTH_ASSERT((unsigned)change->from < FTH_STATE_COUNT);
    FTH_ASSERT((unsigned)(change->passed ? change->to : task->state) < FTH_STATE_COUNT);
    sqlite3_stmt *st = NULL;
    FTH_TRY(fth__db_prepare(db,
                            "INSERT INTO changes(run, task, at, from_state, to_state, note) "
                            "VALUES((SELECT max(number) FROM runs), ?, ?, ?, ?, ?)",
                            &st, err));
    bind_text(st, 1, task->id);
    /* By the clock of the runner: that of the machine may be set while it runs. */
    sqlite3_bind_double(st, 2,
                        change->passed      ? change->at
                        : task->ended > 0   ? task->ended
                        : task->started > 0 ? task->started
                                            : fth__wall_seconds());
    bind_text(st, 3, fth_state_name(change->from));
    bind_text(st, 4, fth_state_name(change->passed ? change->to : task->state));
    bind_text(st, 5, change->note);
    const fth_status s = fth__db_run(db, st, err);
    sqlite3_finalize(st);
    return s;
}

static fth_status write_files(fth__db *db, const fth_view *view, int64_t task, fth_err *err)
{
    sqlite3_stmt *st = NULL;
    FTH_TRY(fth__db_prepare(db, "DELETE FROM files WHERE task=?", &st, err));
    bind_text(st, 1, view->task[task].id);
    fth_status s = fth__db_run(db, st, err);
    sqlite3_finalize(st);
    st = NULL;
    if (s == FTH_OK)
        s = fth__db_prepare(db,
                            "INSERT INTO files(task, kind, path, title, bytes, hash, mtime_ns) "
                            "VALUES(?, ?, ?, ?, ?, ?, ?)",
                            &st, err);
    for (int64_t i = 0; s == FTH_OK && i < view->n_files; i++) {
        const fth_task_file *f = &view->file[i];
        if (f->task != task || (unsigned)f->kind >= FTH_FILE_KIND_COUNT) continue;
        bind_text(st, 1, view->task[task].id);
        bind_text(st, 2, kind_names[f->kind]);
        bind_path(st, 3, db->dir, f->path);
        bind_text(st, 4, f->title);
        sqlite3_bind_int64(st, 5, (int64_t)f->bytes);
        bind_hash(st, 6, f->hash);
        sqlite3_bind_int64(st, 7, f->mtime_ns);
        s = fth__db_run(db, st, err);
    }
    sqlite3_finalize(st);
    return s;
}

/* ---- transactions ---- */

static fth_status write_run(fth__db *db, const fth_view *run, const char *attempt, fth_err *err)
{
    sqlite3_stmt *st = NULL;
    FTH_TRY(fth__db_prepare(db,
                            "INSERT INTO runs(token, started, ended, host, command, version, pid, "
                            "budget_bytes) VALUES(?, ?, 0, ?, ?, ?, ?, ?)",
                            &st, err));
    bind_text(st, 1, attempt);
    sqlite3_bind_double(st, 2, run->started);
    bind_text(st, 3, run->host);
    bind_text(st, 4, run->command);
    bind_text(st, 5, run->version);
    sqlite3_bind_int64(st, 6, run->runner_pid);
    sqlite3_bind_int64(st, 7, (int64_t)run->budget_bytes);
    const fth_status s = fth__db_run(db, st, err);
    sqlite3_finalize(st);
    return s;
}

static fth_status write_end(fth__db *db, const fth_view *run, fth_err *err)
{
    sqlite3_stmt *st = NULL;
    FTH_TRY(fth__db_prepare(
        db, "UPDATE runs SET ended=? WHERE number=(SELECT max(number) FROM runs)", &st, err));
    sqlite3_bind_double(st, 1, run->ended);
    const fth_status s = fth__db_run(db, st, err);
    sqlite3_finalize(st);
    return s;
}

static fth_status write_changes(fth__db *db, const fth_view *view, const fth__ledger_batch *b,
                                fth_err *err)
{
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < b->n; i++) {
        const fth__ledger_change *change = &b->change[i];
        FTH_ASSERT(change->task >= 0 && change->task < view->n_tasks);
        const fth_task *task = &view->task[change->task];
        FTH_ASSERT(strcmp(task->output_dir, db->dir) == 0);
        if (!change->passed) s = write_task(db, task, err);
        if (s == FTH_OK && (change->passed || change->from != task->state))
            s = write_history(db, task, change, err);
        if (s == FTH_OK && change->files) s = write_files(db, view, change->task, err);
    }
    return s;
}

/* A full disk, when a test asks for one. */
static fth_status commit(fth__db *db, fth_mem *mem, fth_err *err)
{
    if (fth__mem_write_fails(mem))
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "the ledger %s could not be written", db->path);
    return fth__db_do(db, "COMMIT", err);
}

fth_status fth__ledger_save(const fth_view *view, const char *output_dir,
                            const fth__ledger_batch *b, fth_err *err)
{
    fth__db db;
    const bool new = b->attempt &&fth__db_is_absent(output_dir);
    if (new)
        FTH_TRY(fth__db_make(&db, output_dir, err));
    else
        FTH_TRY(fth__db_open(&db, output_dir, b->attempt ? FTH__DB_CREATE : FTH__DB_WRITE, err));
    fth_status s = fth__db_do(&db, "BEGIN IMMEDIATE", err);
    if (s == FTH_OK && b->attempt) s = write_run(&db, view, b->attempt, err);
    if (s == FTH_OK) s = write_changes(&db, view, b, err);
    if (s == FTH_OK && b->end) s = write_end(&db, view, err);
    if (s == FTH_OK) s = commit(&db, view->mem, err);
    if (s == FTH_OK && new) s = fth__db_store(&db, view->mem, err);
    fth__db_close(&db, s == FTH_OK && b->end);
    return s;
}

fth_status fth__ledger_begin(const fth_view *run, const char *output_dir, const char *attempt,
                             fth_err *err)
{
    return fth__ledger_save(run, output_dir, &(fth__ledger_batch){.attempt = attempt}, err);
}

fth_status fth__ledger_write(const fth_view *view, const char *output_dir,
                             const fth__ledger_change *change, int64_t n, fth_err *err)
{
    return fth__ledger_save(view, output_dir, &(fth__ledger_batch){.change = change, .n = n}, err);
}

fth_status fth__ledger_end(const fth_view *run, const char *output_dir, fth_err *err)
{
    return fth__ledger_save(run, output_dir, &(fth__ledger_batch){.end = true}, err);
}
