/* testing/io/fuzz_folder.h - a fuzz input as a named file of an output directory's .fathom folder.
 *
 * Readers that take a directory cannot be given a file without a disk: the folder is made once, in
 * memory where there is such a file system, and removed when the program ends.
 */
#ifndef FATHOM_TESTING_FUZZ_FOLDER_H
#define FATHOM_TESTING_FUZZ_FOLDER_H

#include "testing/io/fuzz_file.h"

#include <dirent.h>
#include <sys/stat.h>

typedef struct fuzz_folder {
    char dir[64], inner[80], path[400];
} fuzz_folder;

static fuzz_folder fuzz_folder_kept;

static inline void fuzz_folder_remove(void)
{
    char path[400];
    DIR *folder = opendir(fuzz_folder_kept.inner); /* readers may put a damaged file aside */
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (snprintf(path, sizeof path, "%s/%s", fuzz_folder_kept.inner, e->d_name) <
            (int)sizeof path)
            unlink(path);
    if (folder) closedir(folder);
    rmdir(fuzz_folder_kept.inner);
    rmdir(fuzz_folder_kept.dir);
}

static inline const fuzz_folder *fuzz_folder_put(const char *name, const uint8_t *data, size_t size)
{
    fuzz_folder *f = &fuzz_folder_kept;
    if (!f->dir[0]) {
        snprintf(f->dir, sizeof f->dir, "%s/fathom-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(f->dir)) abort();
        const int inner = snprintf(f->inner, sizeof f->inner, "%s/.fathom", f->dir),
                  path = snprintf(f->path, sizeof f->path, "%s/%s", f->inner, name);
        if (inner >= (int)sizeof f->inner || path >= (int)sizeof f->path) abort();
        if (mkdir(f->inner, 0777) != 0 || atexit(fuzz_folder_remove) != 0) abort();
    }
    FILE *out = fopen(f->path, "wb");
    if (!out || (size && fwrite(data, 1, size, out) != size) || fclose(out) != 0) abort();
    return f;
}

#endif /* FATHOM_TESTING_FUZZ_FOLDER_H */
