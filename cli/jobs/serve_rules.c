/* serve_rules.c - access control: tokens, hosts, ranges, and only files that the ledger lists. */
#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

bool serve_same(const char *given, const char *secret)
{
    const size_t n = strlen(given), m = strlen(secret);
    unsigned different = n != m;
    for (size_t i = 0; i < m; i++)
        different |= (unsigned)(unsigned char)(i < n ? given[i] : 0) ^ (unsigned char)secret[i];
    return different == 0;
}

bool serve_host_is_local(const char *host)
{
    char name[INET_ADDRSTRLEN + 8];
    struct in_addr address;
    if (!host) return false;
    const size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (n >= sizeof name || n > strlen(host) || (host[n] != '\0' && host[n] != ':')) return false;
    const char *port = host + n + (host[n] == ':');
    if (port[strspn(port, "0123456789")] != '\0') return false; /* "localhost:@elsewhere" */
    memcpy(name, host, n);
    name[n] = '\0';
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0) return true;
    return inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* Digits only: strtoull would take signs and blanks. */
static bool read_digits(const char **at, uint64_t *out)
{
    if (**at < '0' || **at > '9') return false;
    errno = 0;
    char *end = NULL;
    *out = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0;
}

int serve_range(const char *header, uint64_t size, uint64_t *from, uint64_t *n)
{
    uint64_t first = 0, last = 0;
    if (!header || strncmp(header, "bytes=", 6) != 0) return 0;
    const char *at = header + 6;
    const bool has_first = read_digits(&at, &first);
    if (*at++ != '-') return 0;
    const bool has_last = read_digits(&at, &last);
    if (*at != '\0' || (!has_first && !has_last)) return 0;
    if (!has_first) { /* the last bytes */
        if (last == 0 || size == 0) return 416;
        *n = last < size ? last : size;
        *from = size - *n;
        return 206;
    }
    if (has_last && last < first) return 0;
    if (first >= size) return 416;
    *from = first;
    *n = (has_last && last < size ? last + 1 : size) - first;
    return 206;
}

/* ---- packed, and known already ---- */

bool serve_takes_gzip(const char *header)
{
    for (const char *s = header; s && *s; s += *s == ',') {
        s += strspn(s, " \t");
        const size_t n = strcspn(s, ",;\t ");
        const char *const rest = s + n;
        s = rest + strcspn(rest, ",");
        if (n != 4 || strncasecmp(rest - n, "gzip", 4) != 0) continue;
        const char *q = strstr(rest, "q=");
        return !(q && q < s && strtod(q + 2, NULL) <= 0);
    }
    return false;
}

bool serve_has_tag(const char *header, const char *tag)
{
    if (!header) return false;
    return strcmp(header, "*") == 0 || strstr(header, tag) != NULL;
}

/* ---- files ---- */

static bool is_below(const char *root, const char *path)
{
    const size_t n = strlen(root);
    if (n == 1 && root[0] == '/') return path[0] == '/';
    return strncmp(path, root, n) == 0 && path[n] == '/';
}

static bool is_listed(const fth_view *view, const char *path, bool log)
{
    for (int64_t i = 0; log && i < view->n_tasks; i++)
        if (strcmp(view->task[i].log_path, path) == 0) return true;
    for (int64_t i = 0; !log && i < view->n_files; i++)
        if (view->file[i].kind == FTH_FILE_FIGURE && strcmp(view->file[i].path, path) == 0)
            return true;
    return false;
}

int serve_open(const fth_view *view, const char *path, bool log, uint64_t *size)
{
    char root[4096], link[64], real[4096];
    if (!path || !is_listed(view, path, log) || !realpath(view->root, root)) return -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return -1;
    /* Asked of the open file: whatever links were on the way, or are changed now, this is it. */
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, real, sizeof real - 1);
    struct stat s;
    const bool good = n > 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
    if (n > 0) real[n] = '\0';
    if (!good || !is_below(root, real)) {
        close(fd);
        return -1;
    }
    *size = (uint64_t)s.st_size;
    return fd;
}

const char *serve_type(const char *path)
{
    static const char *const types[][2] = {
        {".png", "image/png"},       {".svg", "image/svg+xml"},
        {".jpg", "image/jpeg"},      {".jpeg", "image/jpeg"},
        {".gif", "image/gif"},       {".webp", "image/webp"},
        {".pdf", "application/pdf"}, {".log", "text/plain; charset=utf-8"},
    };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(dot, types[i][0]) == 0) return types[i][1];
    return "application/octet-stream";
}
