/* bundle.c - everything for a bug report in one tar file, written whole or not at all.
 *
 * Only what is listed here goes in: the findings of doctor, the versions, a fixed list of
 * environment variables, and files of /proc that name no person and no secret. The format is
 * ustar: a header of 512 bytes, the bytes, and zeros up to the next 512.
 */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>
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
    (void)!fth_json_end(&j, NULL); /* fclose reports the error */
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
    const fth_path_kind kind = fth_path_kind_of(path);
    if (kind != FTH_PATH_ABSENT && kind != FTH_PATH_FILE) /* a rename would take its place */
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "bundle %s: exists and is not a regular file", path);
    fth_mem *mem = NULL;
    fth_file_stream *tar = NULL;
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    fth_status s = fth_file_stream_create(&tar, mem, path, err);
    if (s == FTH_OK && !put_all(fth_file_stream_file(tar), p, r) &&
        !ferror(fth_file_stream_file(tar))) {
        s = FTH_FAIL(err, FTH_E_NOMEM, "bundle %s: no memory for its texts", path);
        fth_file_stream_abandon(tar);
    } else if (s == FTH_OK)
        s = fth_file_stream_commit(tar, err);
    if (s == FTH_E_FILE_WRITE) fth_err_hint(err, "choose a writable folder with free space");
    const fth_status end = fth_mem_destroy(mem, NULL);
    return s != FTH_OK ? s : end;
}
