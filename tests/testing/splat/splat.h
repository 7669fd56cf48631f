/* testing/splat/splat.h - small helpers of the tests of splat: golden arrays, a folder of a
 * capture. */
#ifndef FATHOM_TESTING_SPLAT_H
#define FATHOM_TESTING_SPLAT_H

#include "testing/io/files.h"

#include <fathom/files.h>
#include <string.h>

#define SPLAT(name) "tests/golden/splat/" name

static inline void t_splat_copy(const char *from, const char *to)
{
    size_t n = 0;
    unsigned char *data = t_file_read(from, &n);
    FILE *f = fopen(to, "wb");
    IS_TRUE(f && fwrite(data, 1, n, f) == n);
    fclose(f);
    free(data);
}

/* A folder DIR/sparse/0 or DIR/sparse with the three files of COLMAP, and the images beside it. */
static inline const char *t_splat_capture(fth_mem *mem, const char *name, bool binary)
{
    static char dir[FTH_PATH];
    char path[FTH_PATH], from[FTH_PATH];
    const char *const file[3] = {"cameras", "images", "points3D"};
    snprintf(dir, sizeof dir, "%s", t_temp_path(name));
    snprintf(path, sizeof path, "%.3000s/%s", dir, binary ? "sparse/0" : "sparse");
    OK(fth_folder_make_all(mem, path, NULL));
    for (int i = 0; i < 3; i++) {
        snprintf(from, sizeof from, SPLAT("tiny/%s/%s.%s"), binary ? "sparse/0" : "text", file[i],
                 binary ? "bin" : "txt");
        snprintf(path, sizeof path, "%.3000s/%s/%s.%s", dir, binary ? "sparse/0" : "sparse",
                 file[i], binary ? "bin" : "txt");
        t_splat_copy(from, path);
    }
    snprintf(path, sizeof path, "%.3000s/images", dir);
    OK(fth_folder_make_all(mem, path, NULL));
    for (int i = 0; i < 4; i++) {
        snprintf(from, sizeof from, SPLAT("tiny/images/view_%02d.png"), i);
        snprintf(path, sizeof path, "%.3000s/images/view_%02d.png", dir, i);
        t_splat_copy(from, path);
    }
    return dir;
}

#endif
