/* free.c - what the system could still give us, and what the process uses.
 *
 * A container or a Slurm job is killed by its cgroup long before the machine is
 * full, so every limit from our own group up to the root counts. File pages the
 * kernel can drop at once (inactive_file) are not held against us.
 */
#include "base/checked.h"
#include "base/str.h"
#include "mem/inject.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, TEXT_BYTES = 8192 }; /* memory.stat and meminfo have 1 to 2 KiB */

/* Read the start of a small file; false when it is not there or is empty. */
static bool read_text(const char *path, char *text, size_t bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t n = 0;
    while (n < bytes - 1) {
        const ssize_t got = read(fd, text + n, bytes - 1 - n);
        if (got <= 0) break;
        n += (size_t)got;
    }
    close(fd);
    text[n] = '\0';
    return n > 0;
}

/* A file that holds one number. "max" and unreadable files give false. */
static bool read_number(const char *root, const char *dir, const char *file, uint64_t *out)
{
    char path[PATH_BYTES], text[64];
    fth__text t;
    fth__text_init(&t, path, sizeof path);
    fth__text_add(&t, "%s%s/%s", root, dir, file);
    if (fth__text_is_cut(&t) || !read_text(path, text, sizeof text)) return false;
    if (text[0] < '0' || text[0] > '9') return false;
    *out = strtoull(text, NULL, 10);
    return true;
}

/* The number after a key at the start of a line. */
static bool find_number(const char *text, const char *key, uint64_t *out)
{
    const size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, n) != 0) continue;
        *out = strtoull(line + n, NULL, 10);
        return true;
    }
    return false;
}

typedef struct names {
    const char *limit, *usage, *inactive;
} names;
static const names v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
static const names v2 = {"memory.max", "memory.current", "inactive_file "};

static uint64_t free_in_group(const char *root, const char *dir, const names *n)
{
    uint64_t limit, usage = 0, inactive = 0;
    if (!read_number(root, dir, n->limit, &limit) || !read_number(root, dir, n->usage, &usage))
        return UINT64_MAX;
    char path[PATH_BYTES], text[TEXT_BYTES];
    fth__text t;
    fth__text_init(&t, path, sizeof path);
    fth__text_add(&t, "%s%s/memory.stat", root, dir);
    if (!fth__text_is_cut(&t) && read_text(path, text, sizeof text))
        (void)find_number(text, n->inactive, &inactive);
    const uint64_t held = usage - fth__min_u64(inactive, usage);
    return limit > held ? limit - held : 0;
}

/* The least of a group and all above it, up to and with `mount`. Groups that are
 * not visible from here (a container sees only its own part) are passed over. */
static uint64_t free_in_groups(const char *root, const char *mount, const char *group,
                               const names *n)
{
    char dir[PATH_BYTES];
    fth__text t;
    fth__text_init(&t, dir, sizeof dir);
    fth__text_add(&t, "%s%s", mount, strcmp(group, "/") == 0 ? "" : group);
    if (fth__text_is_cut(&t)) return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    for (;;) {
        least = fth__min_u64(least, free_in_group(root, dir, n));
        if (strlen(dir) <= strlen(mount)) return least;
        *strrchr(dir, '/') = '\0';
    }
}

/* True when the comma-separated list of controllers [list, end) holds "memory". */
static bool lists_memory(const char *list, const char *end)
{
    while (list < end) {
        const char *stop = memchr(list, ',', (size_t)(end - list));
        if (!stop) stop = end;
        if (stop - list == 6 && memcmp(list, "memory", 6) == 0) return true;
        list = stop + 1;
    }
    return false;
}

static uint64_t free_by_cgroups(const char *root)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    fth__text t;
    fth__text_init(&t, path, sizeof path);
    fth__text_add(&t, "%s/proc/self/cgroup", root);
    if (fth__text_is_cut(&t) || !read_text(path, text, sizeof text)) return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *list = strchr(line, ':');
        const char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group || group[1] != '/') continue;
        list++;
        if (list == group) { /* "0::/path": version 2, alone or beside version 1 */
            const uint64_t alone = free_in_groups(root, "/sys/fs/cgroup", group + 1, &v2);
            const uint64_t beside = free_in_groups(root, "/sys/fs/cgroup/unified", group + 1, &v2);
            least = fth__min_u64(least, fth__min_u64(alone, beside));
        } else if (lists_memory(list, group)) {
            least =
                fth__min_u64(least, free_in_groups(root, "/sys/fs/cgroup/memory", group + 1, &v1));
        }
    }
    return least;
}

uint64_t fth__mem_free_under(const char *root)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    fth__text t;
    fth__text_init(&t, path, sizeof path);
    fth__text_add(&t, "%s/proc/meminfo", root);
    uint64_t kib = 0;
    if (fth__text_is_cut(&t) || !read_text(path, text, sizeof text)) text[0] = '\0';
    if (!find_number(text, "MemAvailable:", &kib)) {
        uint64_t cached = 0; /* kernels before 3.14 */
        (void)find_number(text, "MemFree:", &kib);
        (void)find_number(text, "Cached:", &cached);
        kib += cached;
    }
    return fth__min_u64(kib * 1024, free_by_cgroups(root));
}

uint64_t fth_mem_free_now(void)
{
    return fth__mem_free_under("");
}

uint64_t fth__mem_process_bytes(void)
{
    char text[256];
    if (!read_text("/proc/self/statm", text, sizeof text)) return 0;
    char *resident = strchr(text, ' ');
    const long page = sysconf(_SC_PAGESIZE);
    return resident && page > 0 ? strtoull(resident, NULL, 10) * (uint64_t)page : 0;
}

uint64_t fth__mem_process_peak(void)
{
    char text[TEXT_BYTES];
    uint64_t kib = 0;
    if (!read_text("/proc/self/status", text, sizeof text)) return 0;
    return find_number(text, "VmHWM:", &kib) ? kib * 1024 : 0;
}

bool fth__mem_process_peak_reset(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool ok = write(fd, "5", 1) == 1;
    close(fd);
    return ok;
}
