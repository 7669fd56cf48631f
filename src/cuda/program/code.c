/* code.c - machine code in a folder, from one run of a program to the next.
 *
 * A file is: 8 bytes that say what it is, the whole key, the number of bytes, their hash, the
 * bytes. Whoever writes does so under another name and renames, so readers see all of it or
 * nothing; a file that is not what it should be is as good as none and is replaced.
 */
#include "base/hash.h"
#include "cuda/program/nvrtc.h"
#include "cuda/program/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct head {
    char magic[8];
    char key[FTH__CODE_KEY];
    uint64_t bytes, hash;
} head;
static const char magic[8] = {'f', 't', 'h', 'c', 'o', 'd', 'e', '1'};
enum { PATH_BYTES = 1024 };

void fth__code_key(char key[FTH__CODE_KEY], const char *source, int major, int minor,
                   const fth__nvrtc *n, int driver)
{
    uint64_t h = fth__hash_str(source, 1);
    const uint64_t h2 = fth__hash_str(source, 2);
    for (int i = 0; i < fth__cuda_n_headers; i++) h = fth__hash_str(fth__cuda_headers[i].text, h);
    memset(key, 0, FTH__CODE_KEY);
    snprintf(key, FTH__CODE_KEY, "%016llx%016llx sm_%d%d nvrtc %d.%d driver %d",
             (unsigned long long)h, (unsigned long long)h2, major, minor, n->major, n->minor,
             driver);
}

static bool path_of(const char *dir, const char *key, char *path)
{
    char name[17];
    fth__hash_hex(fth__hash_str(key, 0), name);
    const int n = snprintf(path, PATH_BYTES, "%s/%s.cubin", dir, name);
    return n > 0 && n < PATH_BYTES;
}

static FILE *open_kept(const char *dir, const char *key, head *h)
{
    char path[PATH_BYTES];
    if (!dir || !path_of(dir, key, path)) return NULL;
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    if (fread(h, sizeof *h, 1, f) == 1 && memcmp(h->magic, magic, sizeof magic) == 0 &&
        memcmp(h->key, key, FTH__CODE_KEY) == 0)
        return f;
    (void)fclose(f);
    return NULL;
}

size_t fth__code_find(const char *dir, const char *key)
{
    head h;
    struct stat st;
    FILE *f = open_kept(dir, key, &h);
    if (!f) return 0;
    const bool whole =
        fstat(fileno(f), &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size == sizeof h + h.bytes;
    (void)fclose(f);
    return whole ? (size_t)h.bytes : 0;
}

bool fth__code_read(const char *dir, const char *key, char *code, size_t bytes)
{
    head h;
    FILE *f = open_kept(dir, key, &h);
    if (!f) return false;
    const bool whole = h.bytes == bytes && fread(code, 1, bytes, f) == bytes &&
                       fth__hash_bytes(code, bytes, 0) == h.hash;
    (void)fclose(f);
    return whole;
}

/* The folder and those above it. */
static void make_folders(const char *dir)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path) return;
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        (void)mkdir(path, 0777);
        *p = '/';
    }
    (void)mkdir(path, 0777);
}

bool fth__code_write(const char *dir, const char *key, const char *code, size_t bytes)
{
    char path[PATH_BYTES], other[PATH_BYTES + 8];
    head h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.key, key, FTH__CODE_KEY);
    h.bytes = bytes;
    h.hash = fth__hash_bytes(code, bytes, 0);
    if (!dir || !path_of(dir, key, path)) return false;
    make_folders(dir);
    snprintf(other, sizeof other, "%s.XXXXXX", path);
    const int fd = mkstemp(other);
    if (fd < 0) return false;
    FILE *f = fdopen(fd, "wb");
    if (!f) {
        (void)close(fd);
        (void)unlink(other);
        return false;
    }
    bool good = fwrite(&h, sizeof h, 1, f) == 1 && fwrite(code, 1, bytes, f) == bytes;
    good &= fclose(f) == 0;
    good = good && rename(other, path) == 0;
    if (!good) (void)unlink(other);
    return good;
}
