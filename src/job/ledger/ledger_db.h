/* job/ledger/ledger_db.h - SQLite as the ledger uses it: opened for a moment, one way to fail.
 *
 * Only ledger*.c include this.
 */
#ifndef FTH_JOB_LEDGER_DB_H
#define FTH_JOB_LEDGER_DB_H

#include "job/ledger/ledger.h"

#include <sqlite3.h>

enum { FTH__LEDGER_FORMAT = 1 };

typedef enum fth__db_mode {
    FTH__DB_CREATE, /* make what is missing, check what is there */
    FTH__DB_WRITE,  /* there must be one                         */
    FTH__DB_READ    /* nothing is made or changed                */
} fth__db_mode;

typedef struct fth__db {
    sqlite3 *db;
    const char *dir; /* output directory */
    fth__db_mode mode;
    bool still; /* read without locks, since no writer was detected */
    int64_t changed_ns, bytes;
    char path[FTH_PATH];
} fth__db;

/* FTH__DB_READ: without a ledger db->db is NULL, and the status FTH_OK. */
fth_status fth__db_open(fth__db *db, const char *output_dir, fth__db_mode mode, fth_err *err);
/* A new ledger costs SQLite half a dozen syncs; one that is made in memory and stored as a file,
 * one. Whether there is no ledger yet; make one in memory; the file, whole or not at all. */
bool fth__db_is_absent(const char *output_dir);
fth_status fth__db_make(fth__db *db, const char *output_dir, fth_err *err);
fth_status fth__db_store(const fth__db *db, fth_mem *mem, fth_err *err);
/* Whether what was read without locks may be a mixture of two states: read it again. */
bool fth__db_has_moved(const fth__db *db);
/* With `tidy`, the write-ahead log goes into the ledger and away. */
void fth__db_close(fth__db *db, bool tidy);
/* FTH_E_LEDGER, FTH_E_FILE_WRITE or FTH_E_NOMEM from the last error of SQLite. `doing` says what
 * could not be done: "written". */
fth_status fth__db_fail(const fth__db *db, const char *doing, fth_err *err);
/* Statements without results. */
fth_status fth__db_do(fth__db *db, const char *sql, fth_err *err);
fth_status fth__db_prepare(fth__db *db, const char *sql, sqlite3_stmt **out, fth_err *err);
/* Run a statement to its end and make it ready for the next values. */
fth_status fth__db_run(fth__db *db, sqlite3_stmt *st, fth_err *err);

/* Whether files there are on a disk of this machine, from f_type of statfs: SQLite's write-ahead
 * log needs memory that all who use it share. */
bool fth__db_is_local(uint64_t magic);

/* ---- columns of a task ---- */

typedef enum fth__column_kind {
    FTH__COLUMN_TEXT,
    FTH__COLUMN_PATH,
    FTH__COLUMN_INT,
    FTH__COLUMN_I64,
    FTH__COLUMN_U64,
    FTH__COLUMN_REAL,
    FTH__COLUMN_FIGURE,
    FTH__COLUMN_HASH,
    FTH__COLUMN_STATE,
    FTH__COLUMN_BOOL
} fth__column_kind;
typedef struct fth__column {
    const char *name;
    fth__column_kind kind;
    size_t offset; /* in fth_task */
} fth__column;
enum {
#define FTH_COLUMN(field, kind, sql) FTH__TASK_COLUMN_##field,
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
    FTH__TASK_COLUMNS
};
extern const fth__column fth__task_column[FTH__TASK_COLUMNS];

#endif
