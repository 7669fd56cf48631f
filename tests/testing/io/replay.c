/* replay.c - run a fuzz target over its kept inputs, without the fuzzer.
 *
 *   replay NAME FOLDER
 *
 * Runs the empty input, then every file of the folder in name order: whole,
 * and cut at each of its first bytes, where readers look at headers. An empty
 * folder is a failure: it would test nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 256 };

/* The build renames the function of each target, so that one program links them all. */
typedef int fuzz_one_fn(const uint8_t *data, size_t size);
#define FUZZ_TARGET(name) fuzz_one_fn fuzz_one_##name;
#include "fuzz_targets.def"
#undef FUZZ_TARGET
static const struct {
    const char *name;
    fuzz_one_fn *one;
} targets[] = {
#define FUZZ_TARGET(name) {#name, fuzz_one_##name},
#include "fuzz_targets.def"
#undef FUZZ_TARGET
};

static fuzz_one_fn *target_of(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, name) == 0) return targets[i].one;
    return NULL;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* An exact copy per run: reading past the end must be seen by the sanitizer. */
static int run_copy(fuzz_one_fn *one, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 1;
    if (size) memcpy(copy, data, size);
    one(copy, size);
    free(copy);
    return 0;
}

static int run_file(fuzz_one_fn *one, const char *path)
{
    int failed = 1;
    uint8_t *data = NULL;
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) goto done;
    const long size = ftell(f);
    if (size < 0) goto done;
    rewind(f);
    data = malloc((size_t)size + 1);
    if (!data || fread(data, 1, (size_t)size, f) != (size_t)size) goto done;
    failed = run_copy(one, data, (size_t)size);
    for (size_t cut = 1; cut < CUTS && cut < (size_t)size && !failed; cut++)
        failed = run_copy(one, data, cut);
done:
    free(data);
    if (f) fclose(f);
    if (failed) fprintf(stderr, "cannot replay %s\n", path);
    return failed;
}

int main(int argc, char **argv)
{
    struct dirent **names = NULL;
    fuzz_one_fn *one = argc == 3 ? target_of(argv[1]) : NULL;
    const int n = one ? scandir(argv[2], &names, is_visible, alphasort) : -1;
    if (n <= 0) {
        fprintf(stderr, "no such target, or no inputs; usage: replay NAME FOLDER\n");
        return EXIT_FAILURE;
    }
    int failed = run_copy(one, (const uint8_t *)"", 0);
    for (int i = 0; i < n; i++) {
        char path[4096];
        const int length = snprintf(path, sizeof path, "%s/%s", argv[2], names[i]->d_name);
        failed |= length >= (int)sizeof path || run_file(one, path);
        free(names[i]);
    }
    free(names);
    printf("%d inputs replayed\n", n);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
