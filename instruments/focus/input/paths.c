/* paths.c - see paths.h. */
#include "paths.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares the runs of digits at *a and *b, and moves behind them. */
static int compare_numbers(const char **a, const char **b)
{
    const char *x = *a, *y = *b;
    while (*x == '0') x++;
    while (*y == '0') y++;
    const size_t n = strspn(x, "0123456789"), m = strspn(y, "0123456789");
    *a = x + n;
    *b = y + m;
    if (n != m) return n < m ? -1 : 1;
    return strncmp(x, y, n);
}

int fo_natural_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;
    while (*x && *y) {
        if (is_digit(*x) && is_digit(*y)) {
            const int c = compare_numbers(&x, &y);
            if (c) return c;
            continue;
        }
        if (*x != *y) return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        x++;
        y++;
    }
    if (*x || *y) return *x ? 1 : -1;
    return strcmp(a, b);
}

void fo_path_stem(const char *path, char *stem, size_t bytes)
{
    static const char *const doubles[] = {".ome.tif", ".ome.tiff", ".ome.zarr", ".ome.btf"};
    char name[FTH_PATH];
    snprintf(name, sizeof name, "%s", path);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/';) name[--n] = '\0';
    const char *last = fth_path_name(name);
    size_t n = strlen(last);
    const char *dot = strrchr(last, '.');
    if (dot && dot > last) n = (size_t)(dot - last);
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        const size_t m = strlen(doubles[i]), all = strlen(last);
        if (all > m && strcasecmp(last + all - m, doubles[i]) == 0) n = all - m;
    }
    snprintf(stem, bytes, "%.*s", (int)n, last);
}

static int by_nature(const void *a, const void *b)
{
    return fo_natural_compare(*(const char *const *)a, *(const char *const *)b);
}

/* The names of `dir` that match, in natural order. */
static fth_status add_matches(fth_texts *list, fth_mem *mem, const char *dir, const char *pattern,
                              int64_t *found, fth_err *err)
{
    fth_texts *all = NULL;
    const char **match = NULL;
    char path[FTH_PATH];
    FTH_TRY(fth_folder_list(&all, mem, dir, err));
    const int64_t n = fth_texts_count(all);
    fth_status s =
        fth_mem_take(mem, FTH_MEM_POOL, (uint64_t)n * sizeof *match, "names", (void **)&match, err);
    for (int64_t i = 0; s == FTH_OK && i < n; i++)
        if (fnmatch(pattern, fth_texts_get(all, i), FNM_PERIOD) == 0)
            match[(*found)++] = fth_texts_get(all, i);
    if (s == FTH_OK) qsort(match, (size_t)*found, sizeof *match, by_nature);
    for (int64_t i = 0; s == FTH_OK && i < *found; i++) {
        if (strcmp(dir, ".") == 0)
            snprintf(path, sizeof path, "%s", match[i]);
        else
            s = fth_path_join(path, dir, match[i], err);
        if (s == FTH_OK) s = fth_texts_add(list, path, strlen(path), err);
    }
    fth_mem_release(mem, match, NULL);
    fth_texts_free(all);
    return s;
}

fth_status fo_paths_add(fth_texts *list, fth_mem *mem, const char *path, fth_err *err)
{
    const char *name = fth_path_name(path);
    if (fth_path_exists(path) || !strpbrk(name, "*?["))
        return fth_texts_add(list, path, strlen(path), err);
    char dir[FTH_PATH];
    int64_t found = 0;
    FTH_TRY(fth_path_parent(dir, path, err));
    if (fth_path_kind_of(dir) == FTH_PATH_FOLDER)
        FTH_TRY(add_matches(list, mem, dir, name, &found, err));
    if (found > 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: no file matches this pattern", path);
}
