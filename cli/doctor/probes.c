/* probes.c - the real probes: how doctor looks at the machine it runs on. All are small and quick.
 */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *environment(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

static bool read_start(void *user, const char *path, char *text, size_t bytes)
{
    (void)user;
    FILE *f = fopen(path, "r");
    if (!f) return false;
    text[fread(text, 1, bytes - 1, f)] = '\0';
    fclose(f);
    return true;
}

static bool exists(void *user, const char *path)
{
    (void)user;
    return access(path, F_OK) == 0;
}

static int cores(void *user, int *online)
{
    (void)user;
    cpu_set_t set;
    CPU_ZERO(&set);
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    *online = n > 0 ? (int)n : 1;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : *online;
}

static uint64_t free_memory(void *user)
{
    (void)user;
    return fth_mem_free_now();
}

static bool free_space(void *user, const char *folder, uint64_t *bytes)
{
    (void)user;
    fth_path_disk_info disk;
    if (!fth_path_exists(folder) || fth_path_disk(folder, &disk, NULL) != FTH_OK) return false;
    *bytes = disk.free_bytes;
    return true;
}

static bool file_system(void *user, const char *folder, char *name, size_t bytes)
{
    (void)user;
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {
        {0xef53, "ext4"},       {0x58465342, "xfs"},     {0x9123683e, "btrfs"},
        {0x2fc12fc1, "zfs"},    {0x794c7630, "overlay"}, {0x01021994, "tmpfs"},
        {0x858458f6, "ramfs"},  {0x6969, "nfs"},         {0xff534d42, "cifs"},
        {0xfe534d42, "smb"},    {0x517b, "smb"},         {0x5346414f, "afs"},
        {0x01021997, "9p"},     {0x65735546, "fuse"},    {0x00c36400, "ceph"},
        {0x0bd00bd0, "lustre"}, {0x47504653, "gpfs"},
    };
    struct statfs f;
    if (statfs(folder, &f) != 0) return false;
    const unsigned long magic = (unsigned long)f.f_type & 0xffffffff;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].magic != magic) continue;
        snprintf(name, bytes, "%s", known[i].name);
        return true;
    }
    return false;
}

static uint64_t limit(void *user, doctor_limit which)
{
    (void)user;
    struct rlimit r;
    const int failed = which == DOCTOR_FILES    ? getrlimit(RLIMIT_NOFILE, &r)
                       : which == DOCTOR_LOCKED ? getrlimit(RLIMIT_MEMLOCK, &r)
                                                : getrlimit(RLIMIT_AS, &r);
    return failed || r.rlim_cur == RLIM_INFINITY ? DOCTOR_NO_LIMIT : (uint64_t)r.rlim_cur;
}

static int64_t own_pid(void *user)
{
    (void)user;
    return getpid();
}

static void system_names(void *user, char *kernel, size_t kernel_bytes, char *libc,
                         size_t libc_bytes)
{
    (void)user;
    struct utsname u;
    kernel[0] = '\0';
    if (uname(&u) == 0) snprintf(kernel, kernel_bytes, "%s %s %s", u.sysname, u.release, u.machine);
    snprintf(libc, libc_bytes, "glibc %s", gnu_get_libc_version());
}

static bool gpus(void *user, fth_gpus *out)
{
    (void)user;
    return fth_gpus_read(out);
}

/* The best of four copies: the first one meets fresh pages. */
static double copy_rate(void *user, uint64_t bytes)
{
    (void)user;
    unsigned char *a = malloc(bytes), *b = malloc(bytes);
    double best = 0;
    unsigned sum = 0;
    if (a && b) memset(a, 1, bytes);
    for (int i = 0; a && b && i < 4; i++) {
        const double start = now();
        memcpy(b, a, bytes);
        sum += b[bytes / 2]; /* the copy is used */
        const double rate = (double)bytes / (now() - start + 1e-9);
        if (rate > best) best = rate;
    }
    free(a);
    free(b);
    return sum ? best : 0;
}

enum { PIECE = 1 << 20, PIECES = 16 };

/* Written and on the disk, then read again with the cache dropped; stops when half a second is
 * over. The file has no name, so that nothing can be left behind. */
static bool disk_rates(void *user, const char *folder, double *write_rate, double *read_rate)
{
    (void)user;
    *write_rate = *read_rate = 0;
    char path[600];
    snprintf(path, sizeof path, "%s/fathom-doctor-XXXXXX", folder);
    const int fd = mkstemp(path);
    if (fd < 0) return false;
    unlink(path);
    unsigned char *piece = malloc(PIECE);
    if (piece) memset(piece, 0x5a, PIECE);
    bool ok = piece != NULL;
    double start = now(), taken = 0;
    int n = 0;
    while (ok && n < PIECES && now() - start < 0.5) {
        ok = write(fd, piece, PIECE) == PIECE;
        n += ok;
    }
    ok = ok && fdatasync(fd) == 0;
    taken = now() - start;
    if (ok) *write_rate = (double)n * PIECE / (taken + 1e-9);
    const int why = errno;
    if (ok && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 && lseek(fd, 0, SEEK_SET) == 0) {
        int64_t got = 0;
        start = now();
        for (ssize_t k; now() - start < 0.5 && (k = read(fd, piece, PIECE)) > 0;) got += k;
        *read_rate = (double)got / (now() - start + 1e-9);
    }
    free(piece);
    close(fd);
    errno = why;
    return ok;
}

static bool find_library(void *user, const cli_library *lib, char *version, size_t bytes)
{
    (void)user;
    char file[512];
    return cli_library_find(lib, version, bytes, file, sizeof file);
}

static fth_status context(void *user, fth_context **out, const fth_options *opt, fth_err *err)
{
    (void)user;
    return fth_context_create(out, opt, err);
}

const cli_probes cli_machine = {
    .environment = environment,
    .read = read_start,
    .exists = exists,
    .cores = cores,
    .free_memory = free_memory,
    .free_space = free_space,
    .copy_rate = copy_rate,
    .disk_rates = disk_rates,
    .file_system = file_system,
    .storage = doctor_look_storage,
    .slurm = doctor_look_slurm,
    .limit = limit,
    .own_pid = own_pid,
    .system = system_names,
    .cuda = doctor_look_cuda,
    .gpus = gpus,
    .backend = doctor_look_backend,
    .find_library = find_library,
    .context = context,
    .selftest = doctor_selftest,
};
