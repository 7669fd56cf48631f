/* scratch.c - see scratch.h. */
#include "scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- rectangles of a file ---- */

static fth_status move_bytes(const sp_scratch *f, void *data, uint64_t bytes, uint64_t at,
                             bool write, fth_err *err)
{
    char *p = data;
    while (bytes > 0) {
        const ssize_t n = write ? pwrite(f->fd, p, (size_t)bytes, (off_t)at)
                                : pread(f->fd, p, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return FTH_FAIL(err, write ? FTH_E_FILE_WRITE : FTH_E_FILE_READ,
                            "%s, which stands in for memory: %s", f->path,
                            n < 0 ? strerror(errno) : "it ends too early");
        p += n, at += (uint64_t)n, bytes -= (uint64_t)n;
    }
    return FTH_OK;
}

/* Rows of the last axis, or more where the rectangle has them whole. */
static fth_status move_rect(const sp_scratch *f, const int64_t *lo, const int64_t *n, void *data,
                            bool write, fth_err *err)
{
    int last = f->n_axes - 1; /* axes behind it are whole, and move together with it */
    int64_t run = fth_dtype_size(f->dtype), count = 1;
    while (last > 0 && n[last] == f->size[last]) run *= f->size[last--];
    for (int a = 0; a < f->n_axes; a++) count *= n[a];
    if (count == 0) return FTH_OK;
    const int64_t piece = run * n[last];
    int64_t at[FTH_MAX_AXES] = {0};
    for (char *p = data;; p += piece) {
        uint64_t offset = 0;
        for (int a = 0; a <= last; a++)
            offset = offset * (uint64_t)f->size[a] + (uint64_t)(lo[a] + at[a]);
        FTH_TRY(move_bytes(f, p, (uint64_t)piece, offset * (uint64_t)run, write, err));
        int a = last - 1;
        while (a >= 0 && ++at[a] == n[a]) at[a--] = 0;
        if (a < 0) return FTH_OK;
    }
}

static fth_status read_rect(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    return move_rect(self, lo, n, dst, false, err);
}

static fth_status write_rect(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    return move_rect(self, lo, n, (void *)(uintptr_t)src, true, err);
}

/* ---- files ---- */

fth_status sp_scratch_file(int *fd, char path[SP_PATH], const char *dir, const char *what,
                           fth_err *err)
{
    char name[SP_NAME];
    snprintf(name, sizeof name, "fathom-%.32s-XXXXXX", what);
    FTH_TRY(sp_path(path, dir, name, err));
    *fd = mkstemp(path);
    if (*fd < 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: a file was to be made there: %s", path,
                        strerror(errno));
    unlink(path);
    return FTH_OK;
}

fth_status sp_scratch_open(sp_scratch *a, const char *dir, const char *what, fth_dtype dtype,
                           int n_axes, const int64_t *size, bool planning, fth_err *err)
{
    *a = (sp_scratch){.fd = -1, .dtype = dtype, .n_axes = n_axes};
    uint64_t bytes = (uint64_t)fth_dtype_size(dtype);
    for (int k = 0; k < n_axes; k++) bytes *= (uint64_t)(a->size[k] = size[k]);
    if (planning) return FTH_OK;
    FTH_TRY(sp_scratch_file(&a->fd, a->path, dir, what, err));
    if (ftruncate(a->fd, (off_t)bytes) == 0) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: %s", a->path, strerror(errno));
    sp_scratch_close(a);
    return s;
}

void sp_scratch_close(sp_scratch *a)
{
    if (a->fd >= 0) close(a->fd);
    a->fd = -1;
}

fth_source sp_scratch_source(sp_scratch *a)
{
    fth_source s = {
        .kind = "scratch", .self = a, .dtype = a->dtype, .n_axes = a->n_axes, .read = read_rect};
    memcpy(s.size, a->size, sizeof s.size);
    return s;
}

fth_sink sp_scratch_sink(sp_scratch *a)
{
    fth_sink s = {
        .kind = "scratch", .self = a, .dtype = a->dtype, .n_axes = a->n_axes, .write = write_rect};
    memcpy(s.size, a->size, sizeof s.size);
    return s;
}
