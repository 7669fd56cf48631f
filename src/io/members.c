/* members.c - sinks that share one file: all of them finish, or there is no file. */
#include "base/assert.h"
#include "io/dense.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <stdlib.h>
#include <string.h>

static void nothing(void *self)
{
    (void)self; /* a member ends with its writer */
}

static fth_status member_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                               fth_err *err)
{
    fth__member *m = self;
    const fth_status s = fth__place_write(&m->place, lo, n, src, err);
    return s == FTH_OK ? s : fth_err_note(err, FTH_HERE, s, "writing '%s'", m->name);
}

static fth_status member_commit(void *self, fth_err *err)
{
    fth__member *m = self;
    const fth_status s = fth__place_finish(&m->place, err);
    m->done = s == FTH_OK;
    return s == FTH_OK ? s : fth_err_note(err, FTH_HERE, s, "finishing '%s'", m->name);
}

static void member_abandon(void *self)
{
    ((fth__member *)self)->owner->abandoned = true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(fth__member *const *)a)->name, (*(fth__member *const *)b)->name);
}

static fth_status copy_names(fth__members *m, const fth_file_item *items, fth_err *err)
{
    for (int64_t i = 0; i < m->n; i++) {
        fth__member *at = &m->member[i];
        at->opened.close = nothing;
        at->owner = m;
        if (!items[i].name || !items[i].name[0])
            return FTH_FAIL(err, FTH_E_USAGE, "%s: array %lld has no name", m->writer.path,
                            (long long)i);
        at->name = fth__heap_strdup(m->mem, items[i].name);
        if (!at->name)
            return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the names in %s", m->writer.path);
        m->sorted[i] = at;
    }
    qsort(m->sorted, (size_t)m->n, sizeof(fth__member *), by_name);
    for (int64_t i = 1; i < m->n; i++)
        if (by_name(&m->sorted[i - 1], &m->sorted[i]) == 0)
            return FTH_FAIL(err, FTH_E_USAGE, "%s: two arrays are named '%s'", m->writer.path,
                            m->sorted[i]->name);
    return FTH_OK;
}

fth_status fth__members_open(fth__members *m, fth_mem *mem, const char *path,
                             const fth_file_item *items, int64_t n_items, fth_err *err)
{
    *m = (fth__members){.mem = mem};
    if (n_items < 0 || (n_items > 0 && !items))
        return FTH_FAIL(err, FTH_E_USAGE, "no list of arrays was given");
    FTH_TRY(fth__writer_open(&m->writer, mem, path, err));
    void *block = NULL;
    m->path = fth__heap_strdup(mem, path);
    fth_status s = m->path ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory to create %s", path);
    if (s == FTH_OK) s = fth__heap_take(mem, n_items, sizeof(fth__member), &block, err);
    m->member = block;
    if (s == FTH_OK) s = fth__heap_take(mem, n_items, sizeof(fth__member *), &block, err);
    if (s == FTH_OK) {
        m->sorted = block;
        m->n = n_items;
        s = copy_names(m, items, err);
    }
    if (s != FTH_OK) fth__members_close(m);
    return s;
}

fth_status fth__members_sink(fth__members *m, const char *kind, const char *name, fth_sink *out,
                             fth_err *err)
{
    *out = (fth_sink){0};
    int64_t lo = 0, hi = name ? m->n : 0;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        fth__member *at = m->sorted[mid];
        const int order = strcmp(at->name, name);
        if (order == 0) {
            *out = (fth_sink){.kind = kind,
                              .self = at,
                              .dtype = at->place.dtype,
                              .n_axes = at->place.n_axes,
                              .write = member_write,
                              .commit = member_commit,
                              .abandon = member_abandon,
                              .path = m->path,
                              .writer = m};
            memcpy(out->size, at->place.size, sizeof out->size);
            return FTH_OK;
        }
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: no array '%s' was declared when the file was created",
                    m->writer.path ? m->writer.path : "?", name ? name : "");
}

fth_status fth__members_check(const fth__members *m, fth_err *err)
{
    if (fth__disk_is_reader(m->mem)) return FTH_OK; /* runs write on rank 0 alone */
    for (int64_t i = 0; i < m->n; i++) {
        if (!m->member[i].done)
            return FTH_FAIL(err, FTH_E_STATE,
                            "%s: '%s' was not committed (%lld of %lld elements were written)",
                            m->writer.path, m->member[i].name,
                            (long long)atomic_load(&m->member[i].place.written),
                            (long long)m->member[i].place.count);
        FTH_ASSERT(atomic_load(&m->member[i].place.written) == m->member[i].place.count);
    }
    if (m->abandoned)
        return FTH_FAIL(err, FTH_E_STATE, "%s: a sink of this file was abandoned", m->writer.path);
    return FTH_OK;
}

void fth__members_close(fth__members *m)
{
    fth__writer_abandon(&m->writer);
    for (int64_t i = 0; i < m->n; i++) fth__heap_free(m->mem, m->member[i].name);
    if (m->mem) {
        fth__heap_free(m->mem, m->sorted);
        fth__heap_free(m->mem, m->member);
        fth__heap_free(m->mem, m->path);
    }
    m->path = NULL;
    m->sorted = NULL;
    m->member = NULL;
    m->n = 0;
}
