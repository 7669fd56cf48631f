/* bundle.c - everything for a bug report in one tar file, written whole or not at all.
 *
 * Only what is listed here goes in: the findings of doctor, the versions, a fixed list of
 * environment variables, and files of /proc that name no person and no secret. The format is
 * ustar: a header of 512 bytes, the bytes, and zeros up to the next 512.
 */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 512, MOST = 256 << 10 };

/* Fields of a header: where, and how long. */
typedef struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
} header;
_Static_assert(sizeof(header) == BLOCK, "a header is one block");

static bool put_file(FILE *tar, const char *name, const char *text, size_t bytes)
{
    static const char zeros[BLOCK];
    header h;
    memset(&h, 0, sizeof h);
    snprintf(h.name, sizeof h.name, "fathom-doctor/%s", name);
    snprintf(h.mode, sizeof h.mode, "%07o", 0644u);
    snprintf(h.uid, sizeof h.uid, "%07o", 0u);
    snprintf(h.gid, sizeof h.gid, "%07o", 0u);
    snprintf(h.size, sizeof h.size, "%011llo", (unsigned long long)bytes);
    snprintf(h.mtime, sizeof h.mtime, "%011llo", (unsigned long long)time(NULL));
    h.type = '0';
    memcpy(h.magic, "ustar", 6);
    memcpy(h.version, "00", 2);
    memset(h.checksum, ' ', sizeof h.checksum); /* counts as blanks */
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof h; i++) sum += ((const unsigned char *)&h)[i];
    snprintf(h.checksum, sizeof h.checksum, "%06o", sum & 0777777);
    const size_t pad = (BLOCK - bytes % BLOCK) % BLOCK;
    return fwrite(&h, 1, sizeof h, tar) == sizeof h && fwrite(text, 1, bytes, tar) == bytes &&
           fwrite(zeros, 1, pad, tar) == pad;
}

/* A text that is made by a function, as a file. */
typedef void write_text(FILE *out, const doctor_report *r);

static bool put_text(FILE *tar, const char *name, write_text *write, const doctor_report *r)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return false;
    write(f, r);
    const bool ok = fclose(f) == 0 && put_file(tar, name, text, bytes);
    free(text);
    return ok;
}

static void write_json(FILE *out, const doctor_report *r)
{
    fth_json_writer j;
    cli_json_begin(&j, out);
    fth_json_open(&j, NULL, '{');
    doctor_show_json(&j, r);
    fth_json_close(&j);
    (void)!fth_json_end(&j, NULL); /* fclose says what went wrong */
}

static void write_shown(FILE *out, const doctor_report *r)
{
    doctor_show(out, r, false);
}

static void write_version(FILE *out, const doctor_report *r)
{
    (void)r;
    cli_call call = {.out = out};
    char program[] = "fathom", command[] = "version", flag[] = "--verbose";
    char *argv[] = {program, command, flag, NULL};
    if (cli_parse(&call, 3, argv, NULL) == FTH_OK) (void)call.command->run(&call, NULL);
}

static void write_environment(FILE *out, const doctor_report *r)
{
    for (int i = 0; i < doctor_n_variables; i++)
        if (r->variable_set[i]) fprintf(out, "%s=%s\n", doctor_variables[i], r->variable[i]);
}

/* What is not there is left out. */
static bool put_facts(FILE *tar, const cli_probes *p)
{
    static const char *const paths[] = {
        "/etc/os-release",   "/proc/cpuinfo",     "/proc/driver/nvidia/version",
        "/proc/loadavg",     "/proc/meminfo",     "/proc/self/cgroup",
        "/proc/self/limits", "/proc/self/status", "/proc/version",
    };
    char *text = malloc(MOST);
    bool ok = text != NULL;
    for (size_t i = 0; ok && i < sizeof paths / sizeof paths[0]; i++)
        if (p->read(p->user, paths[i], text, MOST))
            ok = put_file(tar, paths[i] + 1, text, strlen(text));
    free(text);
    return ok;
}

static bool put_all(FILE *tar, const cli_probes *p, const doctor_report *r)
{
    static const char zeros[2 * BLOCK];
    return put_text(tar, "doctor.json", write_json, r) &&
           put_text(tar, "doctor.txt", write_shown, r) &&
           put_text(tar, "version.txt", write_version, r) &&
           put_text(tar, "environment.txt", write_environment, r) && put_facts(tar, p) &&
           fwrite(zeros, 1, sizeof zeros, tar) == sizeof zeros;
}

fth_status doctor_bundle(const cli_probes *p, const doctor_report *r, const char *path,
                         fth_err *err)
{
    char temp[4096];
    const int n = snprintf(temp, sizeof temp, "%s.%ld.tmp", path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof temp)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path of the bundle has %zu characters",
                        strlen(path));
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a rename would take its place */
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "bundle %s: something is there that is no file",
                        path);
    const int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FILE *tar = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!tar) {
        const int why = errno;
        if (fd >= 0) close(fd);
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "bundle %s: could not make %s: %s", path, temp,
                        strerror(why));
    }
    errno = 0;
    bool ok = put_all(tar, p, r) && fflush(tar) == 0 && fsync(fd) == 0;
    int why = errno;
    if (fclose(tar) != 0 && ok) ok = false, why = errno;
    if (ok && rename(temp, path) != 0) ok = false, why = errno;
    if (ok) return FTH_OK;
    (void)unlink(temp);
    FTH_FAIL(err, FTH_E_FILE_WRITE, "bundle %s: %s", path, strerror(why ? why : ENOMEM));
    fth_err_hint(err, "choose a folder with space that may be written");
    return FTH_E_FILE_WRITE;
}
