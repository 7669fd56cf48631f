/* lock.c - one runner per output directory, without an open file descriptor.
 *
 * The lock is a small file that names its holder. It appears atomically: it is written under
 * another name and then linked, which fails when a lock exists. Whether a stale lock may be taken
 * over is decided under a flock on the folder, so of two runners that find a dead holder only one
 * replaces it. On a file system without flock a new lock is still exclusive, and a stale one is
 * left to the user.
 *
 * A holder on another machine is judged by the time of the file, which it updates every ten
 * seconds.
 */
#include "job/lock/lock.h"

#include "base/assert.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* WHO_BYTES: a lock has at most 300. WAIT_MS: for the flock, which others hold for milliseconds. */
enum { WHO_BYTES = 512, WAIT_MS = 10000 };

/* ---- the folder ---- */

bool fth__fathom_path(char *path, const char *output_dir, const char *name)
{
    const int n = snprintf(path, FTH_PATH, "%s/.fathom%s%s", output_dir, *name ? "/" : "", name);
    return n > 0 && n < FTH_PATH;
}

static fth_status too_long(const char *output_dir, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_WRITE, "the path %.80s... has too many characters", output_dir);
    fth_err_hint(err, "choose a shorter output_dir");
    return FTH_E_FILE_WRITE;
}

fth_status fth__fathom_make(const char *output_dir, fth_err *err)
{
    char path[FTH_PATH];
    if (!fth__fathom_path(path, output_dir, "")) return too_long(output_dir, err);
    return fth_folder_make_all(NULL, path, err);
}

/* ---- deciding ---- */

typedef struct guard {
    int fd; /* -1: this file system has no flock */
} guard;

static bool flock_works(int fd, int *why)
{
    for (int waited = 0;; waited++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        *why = errno;
        if (errno != EINTR && errno != EWOULDBLOCK) return false;
        if (waited >= WAIT_MS) return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* Exclude other processes while the lock is examined. */
static fth_status guard_take(guard *g, const char *output_dir, fth_err *err)
{
    char path[FTH_PATH];
    int why = 0;
    g->fd = -1;
    if (!fth__fathom_path(path, output_dir, "")) return too_long(output_dir, err);
    g->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->fd < 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the folder %s could not be opened: %s", path,
                        strerror(errno));
    if (flock_works(g->fd, &why)) return FTH_OK;
    close(g->fd);
    g->fd = -1;
    if (why != EWOULDBLOCK) return FTH_OK;
    FTH_FAIL(err, FTH_E_LOCKED, "another process has held the folder %s for 10 s", path);
    fth_err_hint(err, "a stopped process may hold it: 'fuser %s' names it", path);
    return FTH_E_LOCKED;
}

static void guard_drop(guard *g)
{
    if (g->fd >= 0) close(g->fd); /* which ends the flock */
    g->fd = -1;
}

typedef enum found { NOBODY, SOMEBODY, GARBAGE } found;

static double seconds_of(const struct timespec *t)
{
    return (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;
}

static found read_lock(const char *output_dir, fth__who *out)
{
    char path[FTH_PATH], text[WHO_BYTES];
    if (!fth__fathom_path(path, output_dir, "lock")) return NOBODY;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT || errno == ENOTDIR ? NOBODY : GARBAGE;
    ssize_t n = 0;
    struct stat info = {0};
    do n = read(fd, text, sizeof text - 1);
    while (n < 0 && errno == EINTR);
    const bool known = fstat(fd, &info) == 0;
    close(fd);
    if (n < 0) return GARBAGE;
    text[n] = '\0';
    if (!fth__who_parse(text, out)) return GARBAGE;
    if (known) out->age = fth__wall_seconds() - seconds_of(&info.st_mtim);
    return SOMEBODY;
}

bool fth__lock_read(const char *output_dir, fth__who *out)
{
    return read_lock(output_dir, out) == SOMEBODY;
}

/* The command line of a process, or "". */
static void read_command(int64_t pid, char *text, size_t bytes)
{
    char path[40];
    text[0] = '\0';
    snprintf(path, sizeof path, "/proc/%" PRId64 "/cmdline", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = read(fd, text, bytes - 1);
    close(fd);
    ssize_t end = n > 0 ? n : 0;
    while (end > 0 && text[end - 1] == '\0') end--;
    for (ssize_t i = 0; i < end; i++)
        if ((unsigned char)text[i] < 0x20) text[i] = ' ';
    text[end] = '\0';
}

static fth_status locked(const char *output_dir, const fth__who *by, fth_err *err)
{
    fth__who me;
    char since[40] = "an unknown time", command[160] = "";
    const time_t at = (time_t)by->since;
    struct tm local;
    if (localtime_r(&at, &local)) strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", &local);
    const bool here = fth__who_am_i(&me, NULL) == FTH_OK && strcmp(me.host, by->host) == 0 &&
                      me.space == by->space;
    if (here) {
        read_command(by->pid, command, sizeof command);
        FTH_FAIL(err, FTH_E_LOCKED,
                 "%s belongs to process %" PRId64 " on this machine (%s) since %s%s%s", output_dir,
                 by->pid, by->host, since, *command ? ": " : "", command);
        fth_err_hint(
            err, "wait until it ends, end it with 'kill %" PRId64 "', or choose another output_dir",
            by->pid);
        return FTH_E_LOCKED;
    }
    if (by->beats) {
        const double age = by->age > 0 ? by->age : 0;
        FTH_FAIL(err, FTH_E_LOCKED,
                 "%s belongs to process %" PRId64
                 " on machine %s since %s; its last sign of life was %.0f s ago",
                 output_dir, by->pid, by->host, since, age);
        fth_err_hint(err,
                     "wait until it ends, or choose another output_dir; if it was killed, its "
                     "lock may be taken over after %d s",
                     (int)(FTH__DEAD_S - age) + 1);
        return FTH_E_LOCKED;
    }
    FTH_FAIL(err, FTH_E_LOCKED,
             "%s belongs to process %" PRId64
             " on machine %s since %s; this machine cannot tell whether it is alive",
             output_dir, by->pid, by->host, since);
    fth_err_hint(
        err, "look on %s whether process %" PRId64 " still runs; if not, remove %s/.fathom/lock",
        by->host, by->pid, output_dir);
    return FTH_E_LOCKED;
}

/* Remove the lock of a dead holder. `fresh` is a file that was just written beside it: the file
 * server stamps both, so their times can be compared; NULL: use the clock of this machine. */
static fth_status remove_dead(const char *output_dir, const char *fresh, const guard *g,
                              fth_err *err)
{
    char path[FTH_PATH];
    struct stat lock, info;
    fth__who other;
    const found now = read_lock(output_dir, &other);
    if (now == NOBODY || !fth__fathom_path(path, output_dir, "lock")) return FTH_OK;
    if (now == SOMEBODY && fresh && stat(path, &lock) == 0 && stat(fresh, &info) == 0)
        other.age = seconds_of(&info.st_mtim) - seconds_of(&lock.st_mtim);
    if (now == SOMEBODY && fth__who_lives(&other)) return locked(output_dir, &other, err);
    if (g->fd < 0) {
        FTH_FAIL(err, FTH_E_LOCKED,
                 "%s is the lock of a run that has ended, but this file system has no "
                 "flock, so it cannot be taken over safely",
                 path);
        fth_err_hint(err, "remove %s", path);
        return FTH_E_LOCKED;
    }
    if (unlink(path) == 0 || errno == ENOENT) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "the old lock %s could not be removed: %s", path,
                    strerror(errno));
}

/* ---- taking and giving back ---- */

static fth_status write_temp(const char *path, const fth__who *me, fth_err *err)
{
    char text[WHO_BYTES];
    const size_t n = fth__who_format(me, text, sizeof text);
    FTH_ASSERT(n < sizeof text); /* every field is bounded */
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    bool written = fd >= 0 && n < sizeof text && write(fd, text, n) == (ssize_t)n;
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && written) { /* a network file system may report errors here */
        why = errno;
        written = false;
    }
    if (written) return FTH_OK;
    if (fd >= 0) unlink(path);
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_WRITE, "the lock %s could not be written: %s",
                                  path, strerror(why));
    if (why == EROFS || why == EACCES)
        fth_err_hint(err, "choose an output_dir that may be written to");
    return s;
}

/* The file under `temp` becomes the lock, unless there is one. */
static fth_status publish(const char *temp, const char *output_dir, const guard *g, fth_err *err)
{
    char path[FTH_PATH];
    fth__who other;
    if (!fth__fathom_path(path, output_dir, "lock")) return too_long(output_dir, err);
    if (link(temp, path) == 0) return FTH_OK;
    if (errno == EEXIST) {
        if (read_lock(output_dir, &other) == SOMEBODY) return locked(output_dir, &other, err);
        return FTH_FAIL(err, FTH_E_LOCKED, "%s appeared while it was being made", path);
    }
    /* A file system without links: the guard excludes other processes. */
    if (g->fd >= 0 && rename(temp, path) == 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "the lock %s could not be made: %s", path,
                    strerror(errno));
}

fth_status fth__lock_take(const char *output_dir, const fth__who *me, fth_err *err)
{
    char temp[FTH_PATH], name[80];
    guard g;
    snprintf(name, sizeof name, "lock.%.48s.tmp", me->run);
    if (!fth__fathom_path(temp, output_dir, name)) return too_long(output_dir, err);
    FTH_TRY(fth__fathom_make(output_dir, err));
    FTH_TRY(guard_take(&g, output_dir, err));
    fth_status s = write_temp(temp, me, err);
    if (s == FTH_OK) {
        s = remove_dead(output_dir, temp, &g, err);
        if (s == FTH_OK) s = publish(temp, output_dir, &g, err);
        unlink(temp); /* gone when it was renamed */
    }
    guard_drop(&g);
    return s;
}

static bool is_mine(const fth__who *holder, const fth__who *me)
{
    return holder->pid == me->pid && holder->start == me->start &&
           strcmp(holder->run, me->run) == 0 && strcmp(holder->host, me->host) == 0;
}

bool fth__lock_beat(const char *output_dir, const fth__who *me)
{
    char path[FTH_PATH];
    fth__who holder;
    /* A lock that was removed, or a disk that does not answer, does not mean another holder. */
    if (read_lock(output_dir, &holder) != SOMEBODY) return true;
    if (!is_mine(&holder, me)) return false;
    if (fth__fathom_path(path, output_dir, "lock")) (void)utimensat(AT_FDCWD, path, NULL, 0);
    return true;
}

void fth__lock_release(const char *output_dir, const fth__who *me)
{
    char path[FTH_PATH];
    fth__who holder;
    guard g;
    if (guard_take(&g, output_dir, NULL) != FTH_OK) return;
    if (read_lock(output_dir, &holder) == SOMEBODY && is_mine(&holder, me) &&
        fth__fathom_path(path, output_dir, "lock"))
        unlink(path);
    guard_drop(&g);
}

fth_status fth__lock_check(const char *output_dir, fth_err *err)
{
    fth__who other;
    const bool held = read_lock(output_dir, &other) == SOMEBODY && fth__who_lives(&other);
    return held ? locked(output_dir, &other, err) : FTH_OK;
}

fth_status fth__lock_clear(const char *output_dir, fth_err *err)
{
    guard g;
    fth__who other;
    if (read_lock(output_dir, &other) == NOBODY) return FTH_OK;
    FTH_TRY(guard_take(&g, output_dir, err));
    const fth_status s = remove_dead(output_dir, NULL, &g, err);
    guard_drop(&g);
    return s;
}

/* ---- jobs of a cluster ---- */

bool fth__lock_has_cluster(const char *output_dir)
{
    char path[FTH_PATH];
    return fth__fathom_path(path, output_dir, "slurm") && access(path, F_OK) == 0;
}

fth_status fth__lock_fail_cluster(const char *output_dir, fth_err *err)
{
    FTH_FAIL(err, FTH_E_LOCKED, "%s: jobs of Slurm that an earlier run submitted may run there",
             output_dir);
    fth_err_hint(err,
                 "follow them with the same 'fathom run' and '--executor slurm'; if 'squeue' lists "
                 "none of them, remove %s/.fathom/slurm",
                 output_dir);
    return FTH_E_LOCKED;
}
