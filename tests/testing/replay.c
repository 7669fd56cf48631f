/* replay.c - run a fuzz target over its kept inputs, without the fuzzer.
 *
 *   replay_<name> FOLDER
 *
 * Runs the empty input, then every file of the folder in name order: whole,
 * and cut at each of its first bytes, where readers look at headers. An empty
 * folder is a failure: it would test nothing.
 */
#include "testing/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 256 };

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* An exact copy per run: reading past the end must be seen by the sanitizer. */
static int run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 1;
    if (size) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 0;
}

static int run_file(const char *path)
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
    failed = run_copy(data, (size_t)size);
    for (size_t cut = 1; cut < CUTS && cut < (size_t)size && !failed; cut++)
        failed = run_copy(data, cut);
done:
    free(data);
    if (f) fclose(f);
    if (failed) fprintf(stderr, "cannot replay %s\n", path);
    return failed;
}

int main(int argc, char **argv)
{
    struct dirent **names = NULL;
    const int n = argc == 2 ? scandir(argv[1], &names, is_visible, alphasort) : -1;
    if (n <= 0) {
        fprintf(stderr, "no inputs; usage: replay_<name> FOLDER\n");
        return EXIT_FAILURE;
    }
    int failed = run_copy((const uint8_t *)"", 0);
    for (int i = 0; i < n; i++) {
        char path[4096];
        const int length = snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
        failed |= length >= (int)sizeof path || run_file(path);
        free(names[i]);
    }
    free(names);
    printf("%d inputs replayed\n", n);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
