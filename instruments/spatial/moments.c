/* moments.c - see moments.h. */
#include "moments.h"

#include "slots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- rectangles of a file ---- */

static fth_status move_bytes(const sp_moment_file *f, void *data, uint64_t bytes, uint64_t at,
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
static fth_status move_rect(const sp_moment_file *f, const int64_t *lo, const int64_t *n,
                            void *data, bool write, fth_err *err)
{
    int last = f->n_axes - 1; /* axes behind it are whole, and move together with it */
    int64_t run = f->item, count = 1;
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

static fth_status make_file(sp_moment_file *f, const char *dir, uint64_t bytes, fth_err *err)
{
    FTH_TRY(sp_path(f->path, dir, "fathom-moments-XXXXXX", err));
    f->fd = mkstemp(f->path);
    if (f->fd < 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: a file was to be made there: %s", f->path,
                        strerror(errno));
    unlink(f->path); /* gone with the process, however that ends */
    if (ftruncate(f->fd, (off_t)bytes) == 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: %s", f->path, strerror(errno));
}

static fth_status check_room(const sp_moments *s, const char *dir, fth_err *err)
{
    struct statvfs disk;
    if (statvfs(dir, &disk) != 0) return FTH_OK; /* making the files will say what is wrong */
    const uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (free_bytes >= s->bytes) return FTH_OK;
    char need[24], have[24];
    FTH_FAIL(err, FTH_E_NO_FIT, "the moments of the optimiser take %s of %s, where %s are free",
             fth_mem_format_size(s->bytes, need, sizeof need), dir,
             fth_mem_format_size(free_bytes, have, sizeof have));
    fth_err_hint(err, "give another folder with --scratch, or set training.moments: memory");
    return FTH_E_NO_FIT;
}

static fth_status add(sp_moments *s, int which, int p, const char *dir, fth_err *err)
{
    sp_model *m = s->model;
    fth_tensor *like = m->param[p];
    sp_moment_file *f = &s->file[which][p];
    f->n_axes = fth_tensor_axes(like);
    f->item = fth_dtype_size(m->real);
    for (int a = 0; a < f->n_axes; a++) f->size[a] = fth_tensor_size(like, a);
    if (!s->planning) FTH_TRY(make_file(f, dir, fth_tensor_bytes(like), err));
    fth_source *from = which ? &m->second_at[p] : &m->first_at[p];
    fth_sink *to = which ? &s->second_to[p] : &s->first_to[p];
    *from = (fth_source){
        .kind = "moments", .self = f, .dtype = m->real, .n_axes = f->n_axes, .read = read_rect};
    *to = (fth_sink){
        .kind = "moments", .self = f, .dtype = m->real, .n_axes = f->n_axes, .write = write_rect};
    for (int a = 0; a < f->n_axes; a++) from->size[a] = to->size[a] = f->size[a];
    return FTH_OK;
}

static bool moves(const sp_model *m, int p)
{
    return m->param[p] && (p != SP_P_W || m->set.trainable_W);
}

fth_status sp_moments_open(sp_moments *s, sp_model *m, const char *dir, bool planning, fth_err *err)
{
    *s = (sp_moments){.model = m, .open = true, .planning = planning};
    const int carries = fth_optim_carries((fth_optim_kind)m->set.optimizer);
    for (int i = 0; i < 2 * SP_PARAMS; i++) s->file[i / SP_PARAMS][i % SP_PARAMS].fd = -1;
    for (int i = 0; i < 2 * SP_PARAMS; i++)
        if (moves(m, i % SP_PARAMS) && (carries >> (i / SP_PARAMS) & 1))
            s->bytes += fth_tensor_bytes(m->param[i % SP_PARAMS]);
    fth_status st = check_room(s, dir, err);
    for (int i = 0; st == FTH_OK && i < 2 * SP_PARAMS; i++)
        if (moves(m, i % SP_PARAMS) && (carries >> (i / SP_PARAMS) & 1))
            st = add(s, i / SP_PARAMS, i % SP_PARAMS, dir, err);
    if (st != FTH_OK) sp_moments_close(s);
    return st;
}

fth_status sp_moments_load(sp_moments *s, const char *path, fth_err *err)
{
    fth_safetensors *f = NULL;
    FTH_TRY(fth_safetensors_open(&f, s->model->mem, path, err));
    fth_status st = FTH_OK;
    for (int i = 0; st == FTH_OK && i < 2 * SP_PARAMS; i++) {
        const int p = i % SP_PARAMS;
        const fth_sink *to = i / SP_PARAMS ? &s->second_to[p] : &s->first_to[p];
        if (!to->write) continue;
        char name[32];
        fth_source from = {0};
        snprintf(name, sizeof name, "adam_%c.%.16s", i / SP_PARAMS ? 'v' : 'm',
                 sp_param_name((sp_param)p));
        st = fth_safetensors_source(f, name, &from, err);
        bool same = st == FTH_OK && from.n_axes == to->n_axes && from.dtype == to->dtype;
        for (int a = 0; same && a < to->n_axes; a++) same = from.size[a] == to->size[a];
        if (st == FTH_OK && !same)
            st = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %s has not the shape of %s", path, name,
                          sp_param_name((sp_param)p));
        if (st == FTH_OK) st = sp_copy(s->model->mem, &from, to, err);
        fth_source_close(&from);
    }
    fth_safetensors_close(f);
    return st;
}

void sp_moments_close(sp_moments *s)
{
    if (!s->open) return;
    for (int i = 0; i < 2 * SP_PARAMS; i++)
        if (s->file[i / SP_PARAMS][i % SP_PARAMS].fd >= 0)
            close(s->file[i / SP_PARAMS][i % SP_PARAMS].fd);
    for (int p = 0; p < SP_PARAMS; p++)
        s->model->first_at[p] = s->model->second_at[p] = (fth_source){0};
    *s = (sp_moments){0};
}
