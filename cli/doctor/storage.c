/* storage.c - measure the read speed of a path, and find what limits it.
 *
 * Nothing is written: of a folder its largest file is read. Each measurement ends after half a
 * second.
 */
#include "doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 20, ALIGNED = 4096, OPENED = 1000 };
static const double longest = 0.5; /* seconds */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bytes per second from the start of a file; 0: it cannot be read in this way. */
static double read_rate(const char *path, bool direct)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
    void *piece = NULL;
    if (fd < 0) return 0;
    if (posix_memalign(&piece, ALIGNED, PIECE) != 0) piece = NULL;
    if (!direct) (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* what the cache holds */
    const double start = now();
    int64_t got = 0;
    for (ssize_t n = 1; piece && n > 0 && now() - start < longest;) {
        n = read(fd, piece, PIECE);
        if (n > 0) got += n;
    }
    const double seconds = now() - start;
    free(piece);
    close(fd);
    return (double)got / (seconds + 1e-9);
}

/* Seconds to open and look at a regular file; 0: it is none, or may not be read. Nobody looked at
 * it before, since that is what takes its time; and what is not a file must not be waited for. */
static double open_seconds(const char *path, off_t *size)
{
    struct stat st;
    const double start = now();
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    const bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    const double seconds = now() - start;
    close(fd);
    *size = good ? st.st_size : 0;
    return good ? seconds : 0;
}

/* The largest regular file of a folder, and how long its files take to open, in the mean. */
static bool look_folder(const char *folder, char *largest, size_t bytes, double *open_s)
{
    DIR *d = opendir(folder);
    off_t most = 0, size = 0;
    int n_opened = 0;
    double sum = 0;
    const double start = now();
    largest[0] = '\0';
    while (d && n_opened < OPENED && now() - start < longest) {
        const struct dirent *e = readdir(d);
        if (!e) break;
        if (e->d_type != DT_REG && e->d_type != DT_UNKNOWN) continue;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        const double seconds = open_seconds(path, &size);
        sum += seconds;
        n_opened += seconds > 0;
        if (seconds > 0 && size > most) {
            most = size;
            snprintf(largest, bytes, "%s", path);
        }
    }
    if (d) closedir(d);
    *open_s = n_opened ? sum / n_opened : 0;
    return largest[0] != '\0';
}

bool doctor_look_storage(void *user, const char *path, doctor_storage *out)
{
    (void)user;
    struct stat st;
    off_t size;
    if (stat(path, &st) != 0) {
        snprintf(out->why, sizeof out->why, "%s", strerror(errno));
        return false;
    }
    if (S_ISDIR(st.st_mode)) {
        if (!look_folder(path, out->file, sizeof out->file, &out->open_s))
            snprintf(out->why, sizeof out->why, "it contains no readable file");
    } else if (S_ISREG(st.st_mode)) {
        snprintf(out->file, sizeof out->file, "%s", path);
        out->open_s = open_seconds(path, &size);
        if (out->open_s <= 0) {
            snprintf(out->why, sizeof out->why, "%s", strerror(errno));
            return false;
        }
    } else {
        snprintf(out->why, sizeof out->why, "it is neither a file nor a folder");
        return false;
    }
    if (!out->file[0]) return true;
    out->direct_rate = read_rate(out->file, true); /* first: it leaves nothing in the cache */
    out->read_rate = read_rate(out->file, false);
    return true;
}

void doctor_judge_storage(doctor_report *r)
{
    const doctor_storage *s = &r->storage;
    char a[32];
    if (!s->path) return;
    if (!s->there) {
        doctor_add(r, "storage", "check the path and its permissions", "%.200s: %s.", s->path,
                   s->why);
        r->fault[r->n_faults - 1].stops = true;
        return;
    }
    if (doctor_is_remote(s->system))
        doctor_add(r, "storage", "copy what is read often to a local disk first",
                   "%.200s is on a network file system (%s).", s->path, s->system);
    const double best = s->read_rate > s->direct_rate ? s->read_rate : s->direct_rate;
    if (best > 0 && best < 100e6)
        doctor_add(r, "storage", "copy the data to a faster disk: runs will wait for this one",
                   "Reading at %.200s is slow: %.3g MB/s.", s->path, best / 1e6);
    if (s->open_s > 5e-3)
        doctor_add(r, "storage", "keep data in few large files rather than in many small ones",
                   "Opening a file at %.200s takes %.3g ms.", s->path, 1e3 * s->open_s);
    if (s->space_known && s->free_bytes < UINT64_C(1) << 30)
        doctor_add(r, "storage", "free some space before results are written there",
                   "%.200s has only %s left.", s->path,
                   fth_mem_format_size(s->free_bytes, a, sizeof a));
}

void doctor_show_storage(FILE *out, const doctor_storage *s)
{
    char a[32];
    if (!s->there) return;
    fprintf(out, "  %-12s %s\n", "path", s->path);
    fprintf(out, "  %-12s %s%s%s\n", "files on", s->system[0] ? s->system : "unknown",
            s->space_known ? ", free " : "",
            s->space_known ? fth_mem_format_size(s->free_bytes, a, sizeof a) : "");
    if (!s->file[0]) {
        fprintf(out, "  %-12s not measured: %s\n", "reading", s->why);
        return;
    }
    fprintf(out, "  %-12s %.3g MB/s, of %.100s\n", "reading", s->read_rate / 1e6, s->file);
    if (s->direct_rate > 0)
        fprintf(out, "  %-12s %.3g MB/s (O_DIRECT)\n", "past cache", s->direct_rate / 1e6);
    else
        fprintf(out, "  %-12s not possible here (O_DIRECT)\n", "past cache");
    fprintf(out, "  %-12s %.3g ms\n", "opening", 1e3 * s->open_s);
}

void doctor_show_storage_json(fth_json_writer *j, const doctor_storage *s)
{
    fth_json_open(j, "storage", '{');
    fth_json_text(j, "path", s->path);
    fth_json_bool(j, "there", s->there);
    fth_json_text(j, "file_system", s->system[0] ? s->system : NULL);
    fth_json_u64(j, "free_bytes", s->free_bytes);
    fth_json_text(j, "file", s->file[0] ? s->file : NULL);
    fth_json_real(j, "read_bytes_per_s", s->read_rate);
    fth_json_real(j, "direct_bytes_per_s", s->direct_rate);
    fth_json_real(j, "open_s", s->open_s);
    fth_json_close(j);
}
