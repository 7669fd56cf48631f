/* ledger_db.c - open and close the ledger, its tables, and SQLite's errors.
 *
 * During a run, changes stay in the write-ahead log, one sync each; the end of the run merges them
 * into the ledger and removes the log. An inactive ledger is one file, which is read as it is,
 * without the files that SQLite would create beside it.
 */
#include "job/ledger/ledger_db.h"

#include "base/assert.h"
#include "base/str.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
    APPLICATION = 0x46544844, /* "FTHD" in the header of the file */
    WAIT_MS = 10000,          /* a reader waits for a writer: transactions take milliseconds */
    WRITE_WAIT_MS = 100,      /* the runner has other directories to write, and retries this one */
    HEAP_BYTES = 8 << 20 /* SQLite gives memory back above this; its page cache takes 256 KiB */
};

const fth__column fth__task_column[FTH__TASK_COLUMNS] = {
#define FTH_COLUMN(field, kind, sql) {#field, FTH__COLUMN_##kind, offsetof(fth_task, field)},
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
};

static const char tables[] =
    "CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value TEXT);"
    "CREATE TABLE runs(number INTEGER PRIMARY KEY, token TEXT, started REAL, ended REAL,"
    " host TEXT, command TEXT, version TEXT, pid INTEGER, budget_bytes INTEGER);"
    "CREATE TABLE tasks("
#define FTH_COLUMN(field, kind, sql) #field " " sql ","
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
    "run INTEGER);"
    "CREATE TABLE changes(number INTEGER PRIMARY KEY, run INTEGER, task TEXT, at REAL,"
    " from_state TEXT, to_state TEXT, note TEXT);"
    "CREATE TABLE files(number INTEGER PRIMARY KEY, task TEXT, kind TEXT, path TEXT, title TEXT,"
    " bytes INTEGER, hash TEXT, mtime_ns INTEGER);"
    "CREATE INDEX files_of_task ON files(task);"
    "INSERT INTO meta VALUES('made_by', 'fathom " FTH_VERSION_TEXT "');";

bool fth__db_is_local(uint64_t magic)
{
    static const uint32_t far[] = {
        0x6969,     /* NFS     */
        0x517b,     /* SMB     */
        0xff534d42, /* CIFS    */
        0xfe534d42, /* SMB 2   */
        0x564c,     /* NCP     */
        0x00c36400, /* Ceph    */
        0x0bd00bd0, /* Lustre  */
        0x47504653, /* GPFS    */
        0x19830326, /* BeeGFS  */
        0xaad7aaea, /* PanFS   */
        0x20030528, /* OrangeFS */
        0x5346414f, /* AFS     */
        0x6b414653, /* kAFS    */
        0x73757245, /* Coda    */
        0x01021997, /* 9P      */
        0x65735546, /* FUSE: sshfs and many others */
        0x01161970, /* GFS 2   */
        0x7461636f, /* OCFS 2  */
        0x786f4256, /* folders of VirtualBox */
    };
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++)
        if ((uint32_t)magic == far[i]) return false;
    return true;
}

static bool is_local(const char *dir)
{
    struct statfs fs;
    return statfs(dir, &fs) == 0 && fth__db_is_local((uint64_t)fs.f_type);
}

/* ---- errors ---- */

static void hint_move(const fth__db *db, fth_err *err)
{
    fth_err_hint(err,
                 "move %s away (and %s-wal, if there is one); results and logs stay, only the "
                 "history is lost, and what is finished is found again by its records",
                 db->path, "ledger.sqlite");
}

static fth_status fail_access(const fth__db *db, const char *doing, const char *why, fth_err *err)
{
    if (db->mode == FTH__DB_READ)
        return FTH_FAIL(err, FTH_E_FILE_READ, "the ledger %s could not be %s: %s", db->path, doing,
                        why);
    if (access(db->path, F_OK) != 0) {
        FTH_FAIL(err, FTH_E_LEDGER, "the ledger %s is gone", db->path);
        fth_err_hint(err, "something removed it while a run was going on; start again");
        return FTH_E_LEDGER;
    }
    FTH_FAIL(err, FTH_E_FILE_WRITE, "the ledger %s could not be %s: %s", db->path, doing, why);
    fth_err_hint(err, "check free space, and whether files may be made in the folder; what the "
                      "ledger held before is still there");
    return FTH_E_FILE_WRITE;
}

fth_status fth__db_fail(const fth__db *db, const char *doing, fth_err *err)
{
    const int code = db->db ? sqlite3_errcode(db->db) : SQLITE_NOMEM;
    const int why = db->db ? sqlite3_system_errno(db->db) : 0;
    const char *text = db->db ? sqlite3_errmsg(db->db) : "";
    switch (code) {
    case SQLITE_NOMEM: return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the ledger %s", db->path);
    case SQLITE_FULL: return fail_access(db, doing, "the disk is full", err);
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN: return fail_access(db, doing, why ? strerror(why) : text, err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        FTH_FAIL(err, FTH_E_LEDGER, "the ledger %s is held by another program", db->path);
        fth_err_hint(err, "close the program that has it open; 'fuser %s' names it", db->path);
        return FTH_E_LEDGER;
    default: break;
    }
    FTH_FAIL(err, FTH_E_LEDGER, "the ledger %s could not be %s: %s", db->path, doing,
             code == SQLITE_NOTADB    ? "it is no database"
             : code == SQLITE_CORRUPT ? "it is damaged"
                                      : text);
    hint_move(db, err);
    return FTH_E_LEDGER;
}

fth_status fth__db_do(fth__db *db, const char *sql, fth_err *err)
{
    FTH_ASSERT(db->db);
    return sqlite3_exec(db->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? FTH_OK
               : fth__db_fail(db, "written", err);
}

fth_status fth__db_prepare(fth__db *db, const char *sql, sqlite3_stmt **out, fth_err *err)
{
    FTH_ASSERT(db->db && !*out);
    return sqlite3_prepare_v2(db->db, sql, -1, out, NULL) == SQLITE_OK
               ? FTH_OK
               : fth__db_fail(db, "used", err);
}

fth_status fth__db_run(fth__db *db, sqlite3_stmt *st, fth_err *err)
{
    int code = 0;
    do code = sqlite3_step(st);
    while (code == SQLITE_ROW);
    const fth_status s = code == SQLITE_DONE ? FTH_OK : fth__db_fail(db, "written", err);
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return s;
}

/* ---- opening ---- */

/* One number from a pragma. */
static fth_status ask(fth__db *db, const char *sql, int64_t *out, fth_err *err)
{
    sqlite3_stmt *st = NULL;
    FTH_TRY(fth__db_prepare(db, sql, &st, err));
    fth_status s = FTH_OK;
    if (sqlite3_step(st) == SQLITE_ROW)
        *out = sqlite3_column_int64(st, 0);
    else
        s = fth__db_fail(db, "read", err);
    sqlite3_finalize(st);
    return s;
}

/* Refuse databases of other programs and of newer formats. */
static fth_status check_format(fth__db *db, int64_t *format, fth_err *err)
{
    int64_t application = 0;
    FTH_TRY(ask(db, "PRAGMA user_version", format, err));
    FTH_TRY(ask(db, "PRAGMA application_id", &application, err));
    if (application != APPLICATION && (application != 0 || *format != 0)) {
        FTH_FAIL(err, FTH_E_LEDGER, "%s is a database of another program", db->path);
        fth_err_hint(err, "move it away; this name belongs to Fathom's ledger");
        return FTH_E_LEDGER;
    }
    if (*format <= FTH__LEDGER_FORMAT) return FTH_OK;
    FTH_FAIL(err, FTH_E_LEDGER,
             "the ledger %s has format %lld, which a newer Fathom wrote; this one (%s) knows "
             "formats up to %d",
             db->path, (long long)*format, FTH_VERSION_TEXT, (int)FTH__LEDGER_FORMAT);
    fth_err_hint(err, "use the newer Fathom for this directory, or another output_dir");
    return FTH_E_LEDGER;
}

/* Damage anywhere in the file is better found before a run than in its middle. */
static fth_status check_whole(fth__db *db, fth_err *err)
{
    sqlite3_stmt *st = NULL;
    FTH_TRY(fth__db_prepare(db, "PRAGMA quick_check(1)", &st, err));
    fth_status s = FTH_OK;
    const char *found =
        sqlite3_step(st) == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (!found)
        s = fth__db_fail(db, "checked", err);
    else if (strcmp(found, "ok") != 0) {
        s = FTH_FAIL(err, FTH_E_LEDGER, "the ledger %s is damaged: %s", db->path, found);
        hint_move(db, err);
    }
    sqlite3_finalize(st);
    return s;
}

static fth_status add_tables(fth__db *db, fth_err *err)
{
    char sql[100];
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d;", (int)APPLICATION,
             (int)FTH__LEDGER_FORMAT);
    FTH_TRY(fth__db_do(db, tables, err));
    return fth__db_do(db, sql, err);
}

static fth_status make_tables(fth__db *db, fth_err *err)
{
    int64_t format = 0;
    FTH_TRY(check_format(db, &format, err));
    if (format > 0) return check_whole(db, err);
    FTH_TRY(fth__db_do(db, "BEGIN IMMEDIATE", err));
    FTH_TRY(add_tables(db, err));
    return fth__db_do(db, "COMMIT", err);
}

/* Little memory, no trust in the contents of the file, and a sync for each transaction. */
static fth_status set_up(fth__db *db, fth__db_mode mode, fth_err *err)
{
    if (sqlite3_soft_heap_limit64(-1) == 0) sqlite3_soft_heap_limit64(HEAP_BYTES);
    sqlite3_busy_timeout(db->db, mode == FTH__DB_READ ? WAIT_MS : WRITE_WAIT_MS);
    sqlite3_extended_result_codes(db->db, 0);
    sqlite3_db_config(db->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    FTH_TRY(fth__db_do(db,
                       "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
                       "PRAGMA cache_size=-256; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY;"
                       "PRAGMA synchronous=FULL;",
                       err));
    if (mode == FTH__DB_READ) return FTH_OK;
    sqlite3_db_config(db->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    FTH_TRY(fth__db_do(
        db, is_local(db->dir) ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE", err));
    return mode == FTH__DB_CREATE ? make_tables(db, err) : FTH_OK;
}

/* "file:PATH?immutable=1" with what has a meaning there escaped; false when it is too long. */
static bool make_uri(const char *path, char *uri, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, uri, bytes);
    fth__text_add(&t, "file:");
    for (const char *s = path; *s; s++)
        if (strchr("?#%", *s))
            fth__text_add(&t, "%%%02x", (unsigned)*s);
        else
            fth__text_add_chars(&t, s, 1);
    fth__text_add(&t, "?immutable=1");
    return !fth__text_is_cut(&t);
}

static bool has_beside(const fth__db *db, const char *suffix)
{
    char path[FTH_PATH + 16];
    struct stat info;
    snprintf(path, sizeof path, "%s%s", db->path, suffix);
    return stat(path, &info) == 0 && info.st_size > 0;
}

static int open_as(fth__db *db, const char *name, int flags)
{
    return sqlite3_open_v2(name, &db->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
}

/* Times of files move in steps of up to 10 ms: a file older than two steps shows every change. Ten
 * rounds: readers of a file that never rests detect it with fth__db_has_moved, and retry. */
enum { SETTLED_NS = 20000000, ROUNDS = 10 };

/* Note size and time of the file; false when there is none. One that changed just now could change
 * again without its time showing it, so this waits until it is old enough. */
static bool take_look(fth__db *db)
{
    struct stat info;
    struct timespec now;
    for (int turn = 0;; turn++) {
        if (stat(db->path, &info) != 0) return false;
        db->changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
        db->bytes = info.st_size;
        clock_gettime(CLOCK_REALTIME, &now);
        const int64_t age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - db->changed_ns;
        if (age < 0 || age > SETTLED_NS || turn == ROUNDS) return true;
        nanosleep(&(struct timespec){.tv_nsec = SETTLED_NS - age}, NULL);
    }
}

bool fth__db_has_moved(const fth__db *db)
{
    fth__db now = *db;
    return db->still &&
           (!take_look(&now) || now.changed_ns != db->changed_ns || now.bytes != db->bytes);
}

/* Open and read the first page: SQLite reports only then whether it can read the file. */
static int try_to_read(fth__db *db, const char *name, int flags)
{
    sqlite3_close(db->db); /* of an earlier attempt */
    const int code = open_as(db, name, flags);
    if (code != SQLITE_OK) return code;
    if (set_up(db, FTH__DB_READ, NULL) != FTH_OK) return sqlite3_errcode(db->db);
    return sqlite3_exec(db->db, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL);
}

/* An inactive ledger, or one where no files can be made, without SQLite's locks; else with them. */
static fth_status open_to_read(fth__db *db, fth_err *err)
{
    char uri[3 * FTH_PATH];
    int code = SQLITE_CANTOPEN;
    if (!db->still) {
        code = try_to_read(db, db->path, SQLITE_OPEN_READONLY);
        if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN) /* a journal to roll back? */
            code = try_to_read(db, db->path, SQLITE_OPEN_READWRITE);
    }
    if ((code == SQLITE_CANTOPEN || code == SQLITE_READONLY) && make_uri(db->path, uri, sizeof uri))
        code = try_to_read(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    return code == SQLITE_OK ? FTH_OK : fth__db_fail(db, "read", err);
}

/* SQLite takes shorter paths than the system, with room for "-journal" behind them. It would say so
 * only when the ledger is made, after the first stage has started. */
static fth_status refuse_long(const fth__db *db, fth_err *err)
{
    const sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    const size_t most = vfs && vfs->mxPathname > 8 ? (size_t)vfs->mxPathname - 8 : 504;
    const size_t n = strlen(db->path), beside = n - strlen(db->dir);
    if (n <= most) return FTH_OK;
    FTH_FAIL(err, FTH_E_LEDGER, "the path of the ledger has %zu bytes, SQLite takes %zu: %.200s...",
             n, most, db->path);
    fth_err_hint(err, "choose an output_dir of at most %zu bytes; this one has %zu", most - beside,
                 strlen(db->dir));
    return FTH_E_LEDGER;
}

/* SQLite would wait for ever for the other end of a pipe. */
static fth_status refuse_special(const fth__db *db, fth_err *err)
{
    static const char *const suffix[] = {"", "-wal", "-shm", "-journal"};
    char path[FTH_PATH + 16];
    struct stat info;
    for (size_t i = 0; i < sizeof suffix / sizeof suffix[0]; i++) {
        snprintf(path, sizeof path, "%s%s", db->path, suffix[i]);
        if (stat(path, &info) != 0 || S_ISREG(info.st_mode)) continue;
        FTH_FAIL(err, FTH_E_LEDGER, "%s should be a file, and is a %s", path,
                 S_ISDIR(info.st_mode)    ? "folder"
                 : S_ISFIFO(info.st_mode) ? "pipe"
                                          : "device or socket");
        fth_err_hint(err, "move it away; this name belongs to Fathom's ledger");
        return FTH_E_LEDGER;
    }
    return FTH_OK;
}

fth_status fth__ledger_check_path(const char *output_dir, fth_err *err)
{
    fth__db db = {.dir = output_dir};
    if (!fth__fathom_path(db.path, output_dir, "ledger.sqlite"))
        return FTH_FAIL(err, FTH_E_LEDGER, "the path of the ledger in %.80s... is too long",
                        output_dir);
    return refuse_long(&db, err);
}

static fth_status find_path(fth__db *db, fth_err *err)
{
    if (!fth__fathom_path(db->path, db->dir, "ledger.sqlite"))
        return FTH_FAIL(err, FTH_E_LEDGER, "the path of the ledger in %.80s... is too long",
                        db->dir);
    FTH_TRY(refuse_long(db, err));
    return refuse_special(db, err);
}

fth_status fth__db_open(fth__db *db, const char *output_dir, fth__db_mode mode, fth_err *err)
{
    *db = (fth__db){.dir = output_dir, .mode = mode};
    FTH_TRY(find_path(db, err));
    fth_status s = FTH_OK;
    if (mode == FTH__DB_READ) {
        if (access(db->path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return FTH_OK;
        db->still = is_local(output_dir) && !has_beside(db, "-wal") &&
                    !has_beside(db, "-journal") && take_look(db);
        s = open_to_read(db, err);
        int64_t format = 0;
        if (s == FTH_OK) s = check_format(db, &format, err);
        if (s == FTH_OK && format == 0) { /* made, but never filled: killed in its first moment */
            fth__db_close(db, false);
            return FTH_OK;
        }
    } else {
        if (mode == FTH__DB_CREATE) FTH_TRY(fth__fathom_make(output_dir, err));
        const int flags = SQLITE_OPEN_READWRITE | (mode == FTH__DB_CREATE ? SQLITE_OPEN_CREATE : 0);
        s = open_as(db, db->path, flags) == SQLITE_OK ? set_up(db, mode, err)
                                                      : fth__db_fail(db, "opened", err);
    }
    if (s != FTH_OK) fth__db_close(db, false);
    return s;
}

void fth__db_close(fth__db *db, bool tidy)
{
    if (tidy && db->db) sqlite3_db_config(db->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    sqlite3_close(db->db); /* rolls back what was not committed; NULL is fine */
    db->db = NULL;
}

/* ---- a new ledger ---- */

bool fth__db_is_absent(const char *output_dir)
{
    char path[FTH_PATH];
    return fth__fathom_path(path, output_dir, "ledger.sqlite") && access(path, F_OK) != 0 &&
           (errno == ENOENT || errno == ENOTDIR);
}

fth_status fth__db_make(fth__db *db, const char *output_dir, fth_err *err)
{
    *db = (fth__db){.dir = output_dir, .mode = FTH__DB_CREATE};
    FTH_TRY(find_path(db, err));
    FTH_TRY(fth__fathom_make(output_dir, err));
    fth_status s = open_as(db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) == SQLITE_OK
                       ? add_tables(db, err)
                       : fth__db_fail(db, "made", err);
    if (s != FTH_OK) fth__db_close(db, false);
    return s;
}

fth_status fth__db_store(const fth__db *db, fth_mem *mem, fth_err *err)
{
    /* Format versions for writing and reading, in the header of every SQLite file: 1 for rollback
     * journals, 2 for write-ahead logs. Set here, the first change needs no conversion. */
    enum { VERSIONS = 18, WITH_LOG = 2 };
    sqlite3_int64 n = 0;
    unsigned char *bytes = sqlite3_serialize(db->db, "main", &n, 0);
    if (!bytes) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the ledger %s", db->path);
    FTH_ASSERT(n > VERSIONS + 2);
    if (is_local(db->dir)) bytes[VERSIONS] = bytes[VERSIONS + 1] = WITH_LOG;
    const fth_status s = fth_file_save(mem, db->path, bytes, (uint64_t)n, err);
    sqlite3_free(bytes);
    if (s == FTH_E_FILE_WRITE && err && !err->hint[0])
        fth_err_hint(err, "check free space, and whether files may be made in the folder");
    return s;
}
