/* who.c - identify a process uniquely, also against a later one with its pid.
 *
 * Pids are reused, so a process is identified by its pid and its start time in ticks, within one
 * boot of one machine. From other machines only its heartbeat is visible.
 */
#include "job/lock/lock.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double fth__wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The beginning of a small file, terminated; false when it cannot be read. */
static bool read_small(const char *path, char *text, size_t bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = 0;
    do n = read(fd, text, bytes - 1);
    while (n < 0 && errno == EINTR);
    close(fd);
    if (n < 0) return false;
    text[n] = '\0';
    return true;
}

uint64_t fth__process_start(int64_t pid)
{
    char path[40], text[1024];
    if (pid <= 0) return 0;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    if (!read_small(path, text, sizeof text)) return 0;
    /* "pid (name) state ..." where the name may hold anything, brackets too; the rest does not. */
    const char *s = strrchr(text, ')');
    if (!s || s[1] != ' ' || s[2] == 'Z' || s[2] == 'X') return 0;
    s += 2; /* at field 3 */
    for (int field = 3; field < 22; field++) {
        s = strchr(s, ' ');
        if (!s) return 0;
        s++;
    }
    return strtoull(s, NULL, 10);
}

fth_status fth__who_am_i(fth__who *out, fth_err *err)
{
    *out = (fth__who){.pid = getpid()};
    out->start = fth__process_start(out->pid);
    if (out->start == 0)
        return FTH_FAIL(err, FTH_E_LIBRARY, "/proc/self/stat does not say when this process began");
    if (gethostname(out->host, sizeof out->host - 1) != 0 || !out->host[0])
        fth__str_copy(out->host, sizeof out->host, "localhost");
    out->host[strcspn(out->host, "\n")] = '\0';
    if (!read_small("/proc/sys/kernel/random/boot_id", out->boot, sizeof out->boot))
        fth__str_copy(out->boot, sizeof out->boot, "unknown");
    out->boot[strcspn(out->boot, "\n")] = '\0';
    struct stat space;
    if (stat("/proc/self/ns/pid", &space) == 0) out->space = (uint64_t)space.st_ino;

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->since = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    struct tm utc;
    gmtime_r(&now.tv_sec, &utc);
    char day[20];
    strftime(day, sizeof day, "%Y%m%d-%H%M%S", &utc);
    const struct {
        int64_t ns, pid;
        uint64_t start, boot;
    } mix = {now.tv_nsec, out->pid, out->start, fth__hash_str(out->boot, 0)};
    snprintf(out->run, sizeof out->run, "%s-%" PRId64 "-%04x", day, out->pid,
             (unsigned)(fth__hash_bytes(&mix, sizeof mix, 0) & 0xffff));
    return FTH_OK;
}

bool fth__who_lives(const fth__who *who)
{
    fth__who me;
    if (fth__who_am_i(&me, NULL) != FTH_OK) return true;
    const bool host = strcmp(who->host, me.host) == 0, boot = strcmp(who->boot, me.boot) == 0;
    if (host && boot && who->space == me.space) return fth__process_start(who->pid) == who->start;
    if (who->beats) return who->age < FTH__DEAD_S;
    return !host || boot; /* else the machine was started again since */
}

size_t fth__who_format(const fth__who *who, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth__text_add(&t,
                  "fathom lock 1\nhost %s\nboot %s\npid %" PRId64 "\nstart %" PRIu64
                  "\nspace %" PRIu64 "\nrun %s\n%ssince_ms %" PRId64 "\n",
                  who->host, who->boot, who->pid, who->start, who->space, who->run,
                  who->beats ? "beats yes\n" : "", (int64_t)(who->since * 1e3));
    FTH_ASSERT(!strchr(who->host, '\n') && !strchr(who->run, '\n')); /* a field is a line */
    return t.wanted;
}

/* The value of a line "key value"; false when there is none or it is too long. */
static bool find_line(const char *text, const char *key, char *value, size_t bytes)
{
    const size_t n = strlen(key);
    for (const char *s = text; s && *s; s = strchr(s, '\n')) {
        if (*s == '\n') s++;
        if (strncmp(s, key, n) != 0 || s[n] != ' ') continue;
        const size_t length = strcspn(s + n + 1, "\n");
        if (length >= bytes || s[n + 1 + length] != '\n') return false;
        memcpy(value, s + n + 1, length);
        value[length] = '\0';
        return true;
    }
    return false;
}

/* A line with digits only. */
static bool find_number(const char *text, const char *key, uint64_t *out)
{
    char value[24];
    if (!find_line(text, key, value, sizeof value)) return false;
    const size_t n = strlen(value);
    if (n == 0 || n > 19 || strspn(value, "0123456789") != n) return false;
    *out = strtoull(value, NULL, 10);
    return true;
}

bool fth__who_parse(const char *text, fth__who *out)
{
    uint64_t pid = 0, since = 0;
    char beats[8];
    *out = (fth__who){0};
    if (strncmp(text, "fathom lock ", 12) != 0) return false;
    if (!find_line(text, "host", out->host, sizeof out->host) ||
        !find_line(text, "boot", out->boot, sizeof out->boot) ||
        !find_line(text, "run", out->run, sizeof out->run) || !find_number(text, "pid", &pid) ||
        !find_number(text, "start", &out->start) || !find_number(text, "space", &out->space) ||
        !find_number(text, "since_ms", &since))
        return false;
    out->pid = (int64_t)pid;
    out->since = (double)since / 1e3;
    out->beats = find_line(text, "beats", beats, sizeof beats) && strcmp(beats, "yes") == 0;
    return pid > 0 && pid <= INT32_MAX;
}
