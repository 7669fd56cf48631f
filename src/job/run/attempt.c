/* attempt.c - clean up processes and files of crashed runners.
 *
 * Pids are reused, so a pid alone identifies nothing. A process is ours when its command line holds
 * the token of the attempt, which is unique.
 */
#include "base/clock.h"
#include "base/str.h"
#include "job/ledger/ledger.h"
#include "job/run/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 8 }; /* folders below an output directory: stages make three at most */

/* Beginning of /proc/PID/NAME; its length, 0 when there is none. */
static size_t read_proc(int64_t pid, const char *name, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/%s", pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t used = 0;
    ssize_t got;
    while (used + 1 < bytes && (got = read(fd, text + used, bytes - 1 - used)) > 0)
        used += (size_t)got;
    close(fd);
    text[used] = '\0';
    return used;
}

bool fth__attempt_lives(int64_t pid, const char *attempt)
{
    char line[65536];
    if (pid <= 0 || !attempt[0]) return false;
    const size_t n = read_proc(pid, "cmdline", line, sizeof line); /* empty for a zombie */
    return memmem(line, n, attempt, strlen(attempt) + 1) != NULL;
}

bool fth__attempt_kill(int64_t pid, const char *attempt, double seconds)
{
    const double until = fth__clock_seconds() + seconds;
    while (fth__attempt_lives(pid, attempt)) {
        if (fth__clock_seconds() > until) return false;
        kill((pid_t)-pid, SIGKILL);
        kill((pid_t)pid, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* a killed process ends in less */
    }
    return true;
}

uint64_t fth__process_bytes(int64_t pid)
{
    char text[128];
    uint64_t pages = 0;
    if (pid <= 0 || !read_proc(pid, "statm", text, sizeof text)) return 0;
    const char *s = strchr(text, ' ');
    for (s = s ? s + 1 : ""; *s >= '0' && *s <= '9'; s++) pages = pages * 10 + (uint64_t)(*s - '0');
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- temporary files ---- */

/* The pid in ".name.PID-stamp.tmp"; 0: another kind of file. */
static int64_t owner_of(const char *name)
{
    const size_t n = strlen(name);
    if (n < 5 || strcmp(name + n - 4, ".tmp") != 0) return 0;
    const char *dash = name + n - 4;
    while (dash > name && *dash != '-') dash--;
    const char *dot = dash;
    while (dot > name && *dot != '.') dot--;
    char *end = NULL;
    const long long pid = strtoll(dot + 1, &end, 10);
    return end == dash && dot < dash && pid > 0 ? (int64_t)pid : 0;
}

static int64_t sweep(int at, const char *name, int64_t pid, int depth)
{
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0) close(fd);
        return 0;
    }
    int64_t n = 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        struct stat st;
        const int64_t owner = owner_of(e->d_name);
        if (owner && (pid ? owner == pid : !fth__process_start(owner))) {
            if (unlinkat(fd, e->d_name, 0) == 0) n++;
        } else if (depth > 0 && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                   (e->d_type == DT_DIR ||
                    (e->d_type == DT_UNKNOWN &&
                     fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))))
            n += sweep(fd, e->d_name, pid, depth - 1);
    }
    closedir(dir);
    return n;
}

int64_t fth__leftover_sweep(const char *dir, int64_t pid)
{
    return sweep(AT_FDCWD, dir, pid, DEPTH);
}

int64_t fth__leftover_sweep_beside(const char *path)
{
    char folder[FTH_PATH];
    fth__str_copy(folder, sizeof folder, path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    return sweep(AT_FDCWD, slash ? folder : ".", 0, 0);
}
