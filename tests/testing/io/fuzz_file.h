/* testing/io/fuzz_file.h - a fuzz input as a file without a disk, and a small memory for its
 * reader.
 */
#ifndef FATHOM_TESTING_FUZZ_FILE_H
#define FATHOM_TESTING_FUZZ_FILE_H

#include "testing/io/fuzz.h"

#include <fathom/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct fuzz_file {
    int fd;
    char path[64];
    fth_mem *mem; /* of 1 MiB: a reader that believes a length runs into it */
} fuzz_file;

static inline fuzz_file fuzz_file_open(const uint8_t *data, size_t size)
{
    fuzz_file f = {.fd = memfd_create("fuzz", 0)};
    for (size_t at = 0; f.fd >= 0 && at < size;) {
        const ssize_t n = write(f.fd, data + at, size - at);
        if (n <= 0) abort();
        at += (size_t)n;
    }
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 20;
    if (f.fd < 0 || fth_mem_create(&f.mem, &opt, NULL) != FTH_OK) abort();
    return f;
}

/* A reader that leaves anything behind is a finding. */
static inline void fuzz_file_close(fuzz_file *f)
{
    fth_err err = {0};
    if (fth_mem_destroy(f->mem, &err) != FTH_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    close(f->fd);
}

/* Read what fits, whole and by its last row; errors are fine. */
static inline void fuzz_source(fth_source *s, fth_mem *mem)
{
    fth_tensor *t = NULL;
    if (fth_source_load(s, mem, "fuzz", &t, NULL) == FTH_OK && s->read_rows && s->size[0] > 0) {
        const int64_t last = s->size[0] - 1;
        if (s->read_rows(s->self, &last, 1, fth_tensor_data(t), NULL) == FTH_E_USAGE) abort();
    }
    fth_tensor_release(t);
}

#endif /* FATHOM_TESTING_FUZZ_FILE_H */
