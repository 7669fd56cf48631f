/* logs.c - `fathom logs`: what the last run of a stage wrote, and what it writes now.
 *
 * A log may have gigabytes: only the bytes that are shown are read, the last lines from the end.
 */
#include "ledgers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 64 << 10 };

typedef struct follower {
    const cli_call *call;
    fth_mem *mem;
    const char *dir; /* of the command line */
    char name[400], id[200], output_dir[4096], path[4200];
    fth_state state;
    bool runs;         /* a runner lives in the directory */
    uint64_t from, to; /* of the section; to 0: it is not closed yet */
    int fd;
    char piece[PIECE];
} follower;

/* ---- where the task is ---- */

static void take_task(follower *f, const fth_view *view, const fth_task *t)
{
    f->state = t->state;
    f->runs = view->runner_pid != 0;
    f->from = t->log_from;
    f->to = t->log_to;
    snprintf(f->id, sizeof f->id, "%s", t->id);
    snprintf(f->output_dir, sizeof f->output_dir, "%s", t->output_dir);
    snprintf(f->path, sizeof f->path, "%s", t->log_path);
    if (t->state == FTH_STATE_RUNNING && f->to <= f->from) f->to = 0;
}

static fth_status find_first(follower *f, fth_err *err)
{
    fth_view *view = NULL;
    FTH_TRY(fth_view_read(&view, f->mem, f->dir, err));
    const fth_task *t = fth_view_find(view, f->name, err);
    fth_status s = t ? FTH_OK : FTH_E_NO_JOB;
    if (t) {
        take_task(f, view, t);
        if (!t->log_path[0] || (t->log_from == t->log_to && t->state != FTH_STATE_RUNNING &&
                                !cli_get(f->call, "follow") && !cli_get(f->call, "all"))) {
            s = FTH_FAIL(err, FTH_E_NO_JOB, "%s/%s has no log: it is %s%s%.300s%s", t->job,
                         t->stage, fth_state_name(t->state), *t->reason ? " (" : "", t->reason,
                         *t->reason ? ")" : "");
            fth_err_hint(err, "--all shows what earlier runs wrote into %s",
                         *t->log_path ? t->log_path : "the log");
        }
    }
    fth_view_destroy(view);
    return s;
}

/* The same task again; nothing changes when the ledger cannot be read for once. */
static void find_again(follower *f)
{
    fth_view *view = NULL;
    if (fth_view_read(&view, f->mem, f->output_dir, NULL) != FTH_OK) return;
    for (int64_t i = 0; i < view->n_tasks; i++)
        if (strcmp(view->task[i].id, f->id) == 0 &&
            strcmp(view->task[i].output_dir, f->output_dir) == 0) {
            take_task(f, view, &view->task[i]);
            break;
        }
    fth_view_destroy(view);
}

/* ---- bytes of the log ---- */

static fth_status open_log(follower *f, fth_err *err)
{
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    const bool known = f->fd >= 0 && fstat(f->fd, &info) == 0;
    if (known && S_ISREG(info.st_mode)) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_OPEN, "the log %s cannot be opened: %s", f->path,
             known ? "it is not a file" : strerror(errno));
    fth_err_hint(err, "the folder may have been moved or cleaned; 'fathom status' shows the job");
    return FTH_E_FILE_OPEN;
}

static uint64_t log_bytes(const follower *f)
{
    struct stat info;
    return fstat(f->fd, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* As many as there are from `at`; 0 at the end. */
static size_t read_piece(follower *f, uint64_t at, uint64_t most)
{
    const size_t wanted = most < PIECE ? (size_t)most : PIECE;
    ssize_t n = 0;
    do n = pread(f->fd, f->piece, wanted, (off_t)at);
    while (n < 0 && errno == EINTR && !cli_end_asked());
    return n > 0 ? (size_t)n : 0;
}

/* Show bytes up to `end`; returns how far it came. */
static uint64_t show(follower *f, uint64_t at, uint64_t end)
{
    while (at < end && !cli_end_asked()) {
        const size_t n = read_piece(f, at, end - at);
        if (n == 0 || fwrite(f->piece, 1, n, f->call->out) != n) break;
        at += n;
    }
    fflush(f->call->out);
    return at;
}

/* Where the last `lines` lines before `end` start, not before `from`. */
static uint64_t find_lines(follower *f, uint64_t from, uint64_t end, int64_t lines)
{
    int64_t breaks = -1; /* the last line's own does not count */
    for (uint64_t at = end; at > from;) {
        const uint64_t low = at - from > PIECE ? at - PIECE : from;
        const size_t n = read_piece(f, low, at - low);
        if (n != at - low) return from;
        if (at == end && n > 0 && f->piece[n - 1] != '\n') breaks = 0;
        for (size_t i = n; i-- > 0;)
            if (f->piece[i] == '\n' && ++breaks == lines) return low + i + 1;
        at = low;
    }
    return from;
}

/* ---- showing ---- */

static bool is_over(const follower *f)
{
    if (f->state == FTH_STATE_RUNNING) return false;
    return !(f->state == FTH_STATE_PENDING && f->runs);
}

/* Until the task has ended and all it wrote was shown. */
static void follow(follower *f, uint64_t at)
{
    while (!cli_end_asked()) {
        const bool over = is_over(f);
        const uint64_t size = log_bytes(f), section = f->from;
        const uint64_t end = over && f->to > f->from && f->to < size ? f->to : size;
        at = show(f, at > size ? 0 : at, end); /* a log that shrank was made again */
        if (over || ferror(f->call->out)) return;
        cli_nap(0.25);
        find_again(f);
        if (f->from > section && f->from > at) at = f->from; /* it was started again */
    }
}

static fth_status show_log(follower *f, int64_t lines, fth_err *err)
{
    const bool all = cli_get(f->call, "all") != NULL;
    const uint64_t size = log_bytes(f);
    uint64_t from = all ? 0 : f->from, end = !all && f->to > f->from ? f->to : size;
    if (from > size) {
        FTH_FAIL(err, FTH_E_FILE_SHORT,
                 "the log %s has %" PRIu64 " bytes, but this run's part starts at %" PRIu64,
                 f->path, size, from);
        fth_err_hint(err, "it was truncated; --all shows the rest");
        return FTH_E_FILE_SHORT;
    }
    if (end > size) end = size;
    if (lines >= 0) from = find_lines(f, from, end, lines);
    const uint64_t at = show(f, from, end);
    if (cli_get(f->call, "follow")) follow(f, at);
    return FTH_OK;
}

/* When the log is not there yet, as long as its task may still start. */
static fth_status wait_for_log(follower *f, fth_err *err)
{
    while (cli_get(f->call, "follow") && access(f->path, F_OK) != 0 && !is_over(f) &&
           !cli_end_asked()) {
        cli_nap(0.25);
        find_again(f);
    }
    return cli_end_asked() ? FTH_OK : open_log(f, err);
}

static fth_status read_lines_flag(const cli_call *call, int64_t *lines, fth_err *err)
{
    const char *text = cli_get(call, "lines");
    *lines = -1;
    if (!text) return FTH_OK;
    char *end = NULL;
    errno = 0;
    *lines = strtoll(text, &end, 10);
    if (errno == 0 && *text && *end == '\0' && *lines >= 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--lines takes a number of lines, not '%s'", text);
}

fth_status cli_run_logs(const cli_call *call, fth_err *err)
{
    int64_t lines = -1;
    const char *stage = cli_get(call, "stage"), *dir = cli_get(call, "dir");
    if (call->n_args == 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "logs needs the name of a job");
        fth_err_hint(err, "'fathom status' lists them");
        return FTH_E_COMMAND;
    }
    FTH_TRY(read_lines_flag(call, &lines, err));
    follower *f = calloc(1, sizeof *f);
    if (!f) return FTH_FAIL(err, FTH_E_NOMEM, "no memory to read a log");
    f->call = call;
    f->dir = dir ? dir : ".";
    f->fd = -1;
    snprintf(f->name, sizeof f->name, stage ? "%s/%s" : "%s", call->arg[0], stage);
    fth_status s = cli_small_mem(&f->mem, err);
    if (s == FTH_OK) s = find_first(f, err);
    if (s == FTH_OK && cli_get(call, "follow")) cli_catch_end();
    if (s == FTH_OK) s = wait_for_log(f, err);
    if (s == FTH_OK && f->fd >= 0) s = show_log(f, lines, err);
    if (f->fd >= 0) close(f->fd);
    const fth_status end = fth_mem_destroy(f->mem, s == FTH_OK ? err : NULL);
    free(f);
    return s == FTH_OK ? end : s;
}
