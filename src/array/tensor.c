/* tensor.c - blocks with a shape and counted references, and the sources and
 * sinks that serve memory in place.
 *
 * The struct is bookkeeping, the data a block of the pool or the caller's own.
 * The last release gives both back; a wrapped block is only forgotten.
 */
#include "array/tensor.h"

#include "array/rect.h"
#include "base/assert.h"
#include "mem/heap.h"
#include "mem/inject.h"
#include "mem/object.h"
#include "mem/system.h"

#include <stdatomic.h>
#include <string.h>

typedef enum newer { HOST_NEWER, SAME, DEVICE_NEWER } newer;

enum {
    PIN_AFTER = 2,        /* copies after which memory is pinned: the host writes it ever again */
    PIN_LEAST = 64 << 10, /* below this a driver has a buffer of its own, and nobody waits */
};

struct fth_tensor {
    fth__object object; /* outlives the data while a graph has it for an input */
    fth_mem *mem;
    atomic_int refs;
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    uint64_t bytes, used; /* used: what goes to a device */
    int64_t most;         /* rows it may grow to; 0: it cannot */
    void *data;
    bool has_record; /* `data` is known to `mem` */
    bool own;        /* `data` are pages of `mem` that nobody else has a part of */
    void (*drop)(void *user);
    void *user;
    fth__mirror_place place; /* of the mirror */
    void *mirror;            /* NULL: there is none */
    bool device_only;        /* it is all there is: `data` is NULL */
    bool clearing;           /* rows of 0 are queued there on COMPUTE */
    int brought;             /* copies made there, no further than to PIN_AFTER */
    bool pinned;
    _Atomic(newer) newer; /* threads of a run read and write the memory at once */
};

/* A tensor without data yet. */
static fth_status make(fth_tensor **out, fth_mem *mem, fth_dtype dtype, int n_axes,
                       const int64_t *size, fth_err *err)
{
    *out = NULL;
    uint64_t bytes = 0;
    FTH_TRY(fth__shape_check(dtype, n_axes, size, NULL, &bytes, err));
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_tensor), &block, err));
    fth_tensor *t = block;
    t->mem = mem;
    atomic_init(&t->refs, 1);
    t->dtype = dtype;
    t->n_axes = n_axes;
    for (int a = 0; a < n_axes; a++) t->size[a] = size[a];
    t->bytes = t->used = bytes;
    *out = t;
    return FTH_OK;
}

fth_status fth_tensor_create_(fth_tensor **out, fth_mem *mem, fth_site site, const char *label,
                              fth_dtype dtype, int n_axes, const int64_t *size, fth_err *err)
{
    if (!out || !mem) return FTH_FAIL(err, FTH_E_USAGE, "a tensor needs memory and a place to go");
    *out = NULL;
    fth_tensor *t = NULL;
    FTH_TRY(make(&t, mem, dtype, n_axes, size, err));
    const fth_status s = fth_mem_take_(mem, site, FTH_MEM_POOL, t->bytes, label, &t->data, err);
    if (s != FTH_OK) {
        fth__heap_free(mem, t);
        return s;
    }
    t->has_record = t->own = true;
    fth__object_begin(&t->object, mem, "tensor", site, fth__object_bury);
    fth__object_use(&t->object); /* by those who hold references */
    *out = t;
    return FTH_OK;
}

fth_status fth_tensor_wrap_(fth_tensor **out, fth_mem *mem, fth_site site, const char *label,
                            fth_dtype dtype, int n_axes, const int64_t *size, void *data,
                            void (*drop)(void *user), void *user, fth_err *err)
{
    if (!out || !mem) return FTH_FAIL(err, FTH_E_USAGE, "a tensor needs memory and a place to go");
    *out = NULL;
    fth_tensor *t = NULL;
    FTH_TRY(make(&t, mem, dtype, n_axes, size, err));
    fth_status s = FTH_OK;
    if (t->bytes > 0 && !data)
        s = FTH_FAIL(err, FTH_E_USAGE, "'%s' was to wrap NULL", label ? label : "");
    else if (t->bytes > 0) /* an empty array has no bytes to count, and often no address */
        s = fth_mem_adopt_(mem, site, data, t->bytes, label, err);
    if (s != FTH_OK) {
        fth__heap_free(mem, t);
        return s;
    }
    t->data = data;
    t->has_record = t->bytes > 0;
    t->drop = drop;
    t->user = user;
    fth__object_begin(&t->object, mem, "tensor", site, fth__object_bury);
    fth__object_use(&t->object); /* by those who hold references */
    *out = t;
    return FTH_OK;
}

/* ---- rows that grow ---- */

static uint64_t row_bytes(const fth_tensor *t)
{
    uint64_t bytes = (uint64_t)fth_dtype_size(t->dtype);
    for (int a = 1; a < t->n_axes; a++) bytes *= (uint64_t)t->size[a];
    return bytes;
}

/* What was queued is done, also after a failure: the memory may go, or be written, at any time. */
static fth_status settle(const fth__mirror_place *at, fth_lane lane, fth_status s, fth_err *err)
{
    const fth_status done = at->table->drain(at->device, lane, s == FTH_OK ? err : NULL);
    if (done != FTH_OK) (void)at->table->drain(at->device, lane, NULL);
    return s == FTH_OK ? done : s;
}

/* Rows that are new on the device are 0 there too. This is queued, so that tensors which grow
 * together do not wait for each other: whoever reads on another lane, or gives back memory, settles
 * it first. */
static fth_status clear_mirror(fth_tensor *t, uint64_t from, uint64_t to, fth_err *err)
{
    const fth__mirror_place *at = &t->place;
    if (to <= from) return FTH_OK;
    FTH_ASSERT(t->mirror && at->table);
    t->clearing = true;
    return at->table->fill(at->device, FTH_LANE_COMPUTE, (char *)t->mirror + from, 0, to - from,
                           err);
}

static fth_status settle_mirror(fth_tensor *t, fth_status s, fth_err *err)
{
    if (!t->clearing) return s;
    t->clearing = false;
    return settle(&t->place, FTH_LANE_COMPUTE, s, err);
}

/* The range behind a tensor, with its first rows: in the host's memory, or in a device's alone. */
static fth_status reserve_rows(fth_tensor *t, fth_mem *mem, fth_site site, const char *label,
                               uint64_t all, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_reserve_(mem, site, all, label, &block, err));
    if (t->device_only)
        t->mirror = block;
    else
        t->data = block;
    fth_status s = fth_mem_resize_(mem, site, block, t->bytes, err);
    if (s == FTH_OK && t->device_only) s = settle_mirror(t, clear_mirror(t, 0, t->bytes, err), err);
    if (s != FTH_OK) (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status fth_tensor_reserve_(fth_tensor **out, fth_mem *mem, fth_site site, const char *label,
                               fth_dtype dtype, int n_axes, const int64_t *size, int64_t most,
                               fth_err *err)
{
    if (!out || !mem) return FTH_FAIL(err, FTH_E_USAGE, "a tensor needs memory and a place to go");
    *out = NULL;
    if (n_axes < 1 || !size || most < 1 || size[0] > most || size[0] < 0)
        return FTH_FAIL(err, FTH_E_USAGE, "'%s' was to have %lld rows and to grow to %lld",
                        label ? label : "", (long long)(n_axes > 0 && size ? size[0] : 0),
                        (long long)most);
    fth__mem_owner owner;
    const bool device_only = fth__mem_get_owner(mem, &owner);
    if (device_only && !owner.table)
        return FTH_FAIL(err, FTH_E_USAGE, "'%s': nobody said which device this memory is of",
                        label ? label : "");
    fth_mem *host = device_only ? owner.host : mem; /* of the bookkeeping */
    int64_t whole[FTH_MAX_AXES] = {most};
    for (int a = 1; a < n_axes && a < FTH_MAX_AXES; a++) whole[a] = size[a];
    fth_tensor *t = NULL;
    FTH_TRY(make(&t, host, dtype, n_axes, whole, err)); /* so that all of it can be counted */
    const uint64_t all = t->bytes;
    t->most = most;
    t->size[0] = size[0];
    t->bytes = t->used = row_bytes(t) * (uint64_t)size[0];
    t->device_only = device_only;
    t->place = (fth__mirror_place){owner.table, owner.device, device_only ? mem : NULL};
    t->newer = device_only ? DEVICE_NEWER : HOST_NEWER;
    const fth_status s = reserve_rows(t, mem, site, label, all, err);
    if (s != FTH_OK) {
        fth__heap_free(host, t);
        return s;
    }
    t->has_record = !device_only; /* not `own`: pinned memory could not be taken away again */
    fth__object_begin(&t->object, host, "tensor", site, fth__object_bury);
    fth__object_use(&t->object); /* by those who hold references */
    *out = t;
    return FTH_OK;
}

static fth_status grow(fth_tensor *t, uint64_t bytes, fth_err *err)
{
    fth_status s = FTH_OK;
    if (t->mirror) s = fth_mem_resize(t->place.mem, t->mirror, bytes, err);
    if (s == FTH_OK && t->mirror) s = clear_mirror(t, t->bytes, bytes, err);
    if (s == FTH_OK && t->data) s = fth_mem_resize(t->mem, t->data, bytes, err);
    if ((s == FTH_OK && t->device_only) || !t->mirror) return s;
    s = settle_mirror(t, s, err);
    if (s == FTH_OK) return s;
    /* pages that do not go back stay in the device's ledger */
    const fth_status shrunk = fth_mem_resize(t->place.mem, t->mirror, t->bytes, NULL);
    (void)shrunk;
    return s;
}

/* Less never fails: pages that a system does not take back stay, and count. */
static fth_status shrink(fth_tensor *t, uint64_t bytes, fth_err *err)
{
    const fth_status cleared = settle_mirror(t, FTH_OK, NULL); /* what is read next says so */
    (void)cleared;
    if (t->mirror) FTH_TRY(fth_mem_resize(t->place.mem, t->mirror, bytes, err));
    return t->data ? fth_mem_resize(t->mem, t->data, bytes, err) : FTH_OK;
}

fth_status fth_tensor_set_rows(fth_tensor *t, int64_t rows, fth_err *err)
{
    if (!t) return FTH_FAIL(err, FTH_E_USAGE, "there is no tensor to grow");
    FTH_TRY(fth__object_check(&t->object, "this uses", err));
    if (t->most == 0)
        return FTH_FAIL(err, FTH_E_USAGE, "only a tensor of fth_tensor_reserve has rows that grow");
    if (rows < 0 || rows > t->most)
        return FTH_FAIL(err, FTH_E_USAGE, "a tensor reserved for %lld rows was to have %lld",
                        (long long)t->most, (long long)rows);
    const uint64_t bytes = row_bytes(t) * (uint64_t)rows;
    if (bytes > t->bytes)
        FTH_TRY(grow(t, bytes, err));
    else
        FTH_TRY(shrink(t, bytes, err));
    t->size[0] = rows;
    t->bytes = t->used = bytes;
    FTH_ASSERT(t->device_only ||
               !t->clearing); /* only memory of a device alone is still being cleared */
    return FTH_OK;
}

/* ---- rows that are kept ---- */

/* Numbers of rows ascend, and a tensor has as many: once for all tensors, the list is long. */
static fth_status check_list(const int64_t *from, int64_t n, int64_t rows, fth_err *err)
{
    for (int64_t i = 0, least = 0; i < n; i++, least = from[i - 1] + 1)
        if (from[i] < least || from[i] >= rows)
            return FTH_FAIL(err, FTH_E_USAGE,
                            "row %lld is to be row %lld of %lld; rows to keep "
                            "ascend",
                            (long long)i, (long long)from[i], (long long)rows);
    return FTH_OK;
}

static fth_status check_kept(fth_tensor *const *t, int tensors, const int64_t *from, int64_t n,
                             fth_err *err)
{
    for (int i = 0; i < tensors; i++) {
        if (!t[i] || (n > 0 && !from))
            return FTH_FAIL(err, FTH_E_USAGE, "there are no rows to keep");
        FTH_TRY(fth__object_check(&t[i]->object, "this uses", err));
        if (t[i]->most == 0)
            return FTH_FAIL(err, FTH_E_USAGE,
                            "only a tensor of fth_tensor_reserve has rows that grow");
        if (t[i]->size[0] != t[0]->size[0])
            return FTH_FAIL(err, FTH_E_USAGE,
                            "tensors of %lld and %lld rows do not belong together",
                            (long long)t[0]->size[0], (long long)t[i]->size[0]);
    }
    return tensors > 0 ? check_list(from, n, t[0]->size[0], err) : FTH_OK;
}

static void keep_here(fth_tensor *t, const int64_t *from, int64_t n)
{
    const uint64_t row = row_bytes(t);
    char *data = t->data;
    for (int64_t i = 0, run; i < n; i += run) { /* rows that stay together move together */
        for (run = 1; i + run < n && from[i + run] == from[i] + run;) run++;
        FTH_ASSERT(from[i] >= i && from[i] + run <= t->size[0]);
        if (from[i] != i)
            memmove(data + (uint64_t)i * row, data + (uint64_t)from[i] * row, (uint64_t)run * row);
    }
    t->newer = HOST_NEWER;
}

/* On a device rows go through a buffer: a piece is gathered, then put where it belongs, which is
 * never beyond what later pieces read. */
enum { KEPT_AT_ONCE = 1 << 18, KEPT_BYTES = 24 << 20 }; /* 26 MiB with the numbers of the rows */
typedef struct keeper {
    const fth__mirror_place *at;
    void *buffer, *index;
} keeper;

static fth_status open_keeper(keeper *k, const fth__mirror_place *at, fth_err *err)
{
    *k = (keeper){.at = at};
    FTH_TRY(fth_mem_take(at->mem, FTH_MEM_ANY, KEPT_BYTES, "rows to keep", &k->buffer, err));
    return fth_mem_take(at->mem, FTH_MEM_ANY, KEPT_AT_ONCE * sizeof(int64_t), "their numbers",
                        &k->index, err);
}

static void close_keeper(keeper *k)
{
    if (k->index) (void)fth_mem_release(k->at->mem, k->index, NULL);
    if (k->buffer) (void)fth_mem_release(k->at->mem, k->buffer, NULL);
}

/* Rows [lo, lo + n) of those to keep, whose numbers are on the device. */
static fth_status keep_piece(const keeper *k, const fth_tensor *t, int64_t lo, int64_t n,
                             fth_err *err)
{
    const fth__mirror_place *at = k->at;
    const uint64_t row = row_bytes(t);
    const int64_t most = row > KEPT_BYTES ? 1 : (int64_t)(KEPT_BYTES / row);
    if (row > KEPT_BYTES)
        return FTH_FAIL(err, FTH_E_USAGE, "rows of %llu bytes cannot be kept on a device",
                        (unsigned long long)row);
    for (int64_t i = 0; row > 0 && i < n; i += most) {
        const int64_t some = n - i < most ? n - i : most;
        const uint64_t bytes = (uint64_t)some * row;
        FTH_TRY(at->table->gather_rows(at->device, FTH_LANE_COMPUTE, k->buffer, t->mirror,
                                       (const int64_t *)k->index + i, some, row, err));
        FTH_TRY(at->table->copy(at->device, FTH_LANE_COMPUTE,
                                (char *)t->mirror + (uint64_t)(lo + i) * row, k->buffer, bytes,
                                err));
    }
    return FTH_OK;
}

/* Of all tensors that are on this device alone. */
static fth_status keep_apart(const keeper *k, fth_tensor *const *t, int tensors,
                             const int64_t *from, int64_t n, fth_err *err)
{
    const fth__mirror_place *at = k->at;
    for (int64_t lo = 0; lo < n; lo += KEPT_AT_ONCE) {
        const int64_t some = n - lo < KEPT_AT_ONCE ? n - lo : KEPT_AT_ONCE;
        if (from[lo + some - 1] == lo + some - 1) continue; /* all of them lie there */
        FTH_TRY(at->table->copy(at->device, FTH_LANE_COMPUTE, k->index, from + lo,
                                (uint64_t)some * sizeof *from, err));
        for (int i = 0; i < tensors; i++)
            if (t[i]->device_only && t[i]->place.mem == at->mem)
                FTH_TRY(keep_piece(k, t[i], lo, some, err));
    }
    return FTH_OK;
}

fth_status fth_tensors_keep_rows(fth_tensor *const *t, int tensors, const int64_t *from, int64_t n,
                                 fth_err *err)
{
    const fth_tensor *first = NULL; /* that is on a device alone: the others are on the same one */
    FTH_TRY(check_kept(t, tensors, from, n, err));
    for (int i = 0; i < tensors; i++) {
        FTH_TRY(fth_tensor_sync(t[i], err));
        if (t[i]->device_only && !first) first = t[i];
        if (t[i]->device_only &&
            (t[i]->place.mem != first->place.mem || !t[i]->place.table->gather_rows))
            return FTH_FAIL(err, FTH_E_USAGE,
                            "rows of several devices, or of one that cannot move "
                            "rows, were to be kept");
    }
    if (first) {
        keeper k;
        fth_status s = open_keeper(&k, &first->place, err);
        if (s == FTH_OK)
            s = settle(k.at, FTH_LANE_COMPUTE, keep_apart(&k, t, tensors, from, n, err), err);
        close_keeper(&k);
        FTH_TRY(s);
    }
    for (int i = 0; i < tensors; i++) {
        if (!t[i]->device_only) keep_here(t[i], from, n);
        FTH_TRY(fth_tensor_set_rows(t[i], n, err)); /* fewer: it cannot fail */
    }
    return FTH_OK;
}

fth_status fth_tensor_keep_rows(fth_tensor *t, const int64_t *from, int64_t n, fth_err *err)
{
    return fth_tensors_keep_rows(&t, 1, from, n, err);
}

/* ---- rows, wherever they are ---- */

static fth_status check_piece(const fth_tensor *t, int64_t from, int64_t n, const void *memory,
                              fth_err *err)
{
    if (!t || t->n_axes < 1 || (n > 0 && !memory))
        return FTH_FAIL(err, FTH_E_USAGE, "there are no rows, or nowhere to put them");
    FTH_TRY(fth__object_check(&t->object, "this uses", err));
    if (from >= 0 && n >= 0 && n <= t->size[0] - from) return FTH_OK;
    return FTH_FAIL(err, FTH_E_INDEX_RANGE, "rows %lld to %lld of a tensor that has %lld",
                    (long long)from, (long long)(from + n - 1), (long long)t->size[0]);
}

fth_status fth_tensor_get_rows(fth_tensor *t, int64_t from, int64_t n, void *dst, fth_err *err)
{
    FTH_TRY(check_piece(t, from, n, dst, err));
    const uint64_t row = row_bytes(t), bytes = (uint64_t)n * row, at = (uint64_t)from * row;
    if (bytes == 0) return FTH_OK;
    if (!t->mirror || t->newer != DEVICE_NEWER) {
        FTH_ASSERT(t->data && at + bytes <= t->bytes);
        memcpy(dst, (const char *)t->data + at, bytes);
        return FTH_OK;
    }
    const fth__mirror_place *place = &t->place;
    FTH_TRY(settle_mirror(t, FTH_OK, err));
    const fth_status s = place->table->copy(place->device, FTH_LANE_OUT, dst,
                                            (const char *)t->mirror + at, bytes, err);
    return settle(place, FTH_LANE_OUT, s, err);
}

fth_status fth_tensor_put_rows(fth_tensor *t, int64_t from, int64_t n, const void *src,
                               fth_err *err)
{
    FTH_TRY(check_piece(t, from, n, src, err));
    const uint64_t row = row_bytes(t), bytes = (uint64_t)n * row, at = (uint64_t)from * row;
    if (bytes == 0) return FTH_OK;
    if (!t->device_only) {
        FTH_TRY(fth_tensor_sync(t, err));
        memcpy((char *)t->data + at, src, bytes);
        t->newer = HOST_NEWER;
        return FTH_OK;
    }
    const fth__mirror_place *place = &t->place;
    const fth_status s = place->table->copy(place->device, FTH_LANE_COMPUTE, (char *)t->mirror + at,
                                            src, bytes, err);
    return settle(place, FTH_LANE_COMPUTE, s, err);
}

fth_status fth__tensor_check_rows(const fth_tensor *t, const char *what, int64_t rows, fth_err *err)
{
    if (!t || t->most == 0 || t->size[0] == rows) return FTH_OK;
    return FTH_FAIL(err, FTH_E_PLAN_STALE,
                    "%s had %lld rows when its graph was made and has %lld "
                    "now",
                    what, (long long)rows, (long long)t->size[0]);
}

/* ---- references ---- */

fth_tensor *fth_tensor_retain(fth_tensor *t)
{
    if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

/* One reference less; false: there was none. */
static bool drop_reference(fth_tensor *t, bool *last)
{
    int refs = atomic_load_explicit(&t->refs, memory_order_relaxed);
    while (refs > 0)
        if (atomic_compare_exchange_weak_explicit(&t->refs, &refs, refs - 1, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
            *last = refs == 1;
            return true;
        }
    return false;
}

fth_status fth_tensor_release_(fth_tensor *t, fth_site site)
{
    bool last = false;
    if (!t) return FTH_OK;
    FTH_TRY(fth__mem_check_process(t->object.mem, NULL));
    if (drop_reference(t, &last) && !last) return FTH_OK;
    FTH_TRY(fth__object_end(&t->object, site, NULL)); /* fails when there was no reference */
    (void)settle_mirror(t, FTH_OK, NULL);
    FTH_ASSERT(!t->pinned || t->data);
    if (t->mirror) (void)fth_mem_release(t->place.mem, t->mirror, NULL);
    if (t->pinned) t->place.table->unpin(t->place.device, t->data);
    if (t->has_record) (void)fth_mem_release(t->mem, t->data, NULL);
    if (t->drop) t->drop(t->user);
    fth__object_unuse(&t->object);
    return FTH_OK;
}

/* ---- graphs that read it ---- */

void fth__tensor_watch(fth_tensor *t)
{
    if (t) fth__object_use(&t->object);
}

void fth__tensor_unwatch(fth_tensor *t)
{
    if (t) fth__object_unuse(&t->object);
}

fth_status fth__tensor_check(const fth_tensor *t, const char *doing, fth_err *err)
{
    return t ? fth__object_check(&t->object, doing, err) : FTH_OK;
}

/* ---- the copy on a device ---- */

void *fth__tensor_mirror(const fth_tensor *t)
{
    return t ? t->mirror : NULL;
}

static fth_status reserve_mirror(fth_tensor *t, fth_mem *mem, const char *label, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_reserve(mem, row_bytes(t) * (uint64_t)t->most, label, &block, err));
    const fth_status s = fth_mem_resize(mem, block, t->bytes, err);
    if (s == FTH_OK)
        t->mirror = block;
    else
        (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status fth__tensor_place(fth_tensor *t, const fth__mirror_place *place, const char *label,
                             fth_err *err)
{
    if (t->mirror && t->place.mem == place->mem) return FTH_OK;
    if (t->device_only)
        return FTH_FAIL(err, FTH_E_USAGE, "parameter '%s' is on another device alone", label);
    FTH_TRY(fth_tensor_sync(t, err));
    if (t->mirror) FTH_TRY(fth_mem_release(t->place.mem, t->mirror, err));
    if (t->pinned) t->place.table->unpin(t->place.device, t->data);
    t->pinned = false;
    t->brought = 0;
    t->mirror = NULL;
    t->newer = HOST_NEWER;
    if (t->most > 0)
        FTH_TRY(reserve_mirror(t, place->mem, label, err));
    else
        FTH_TRY(fth_mem_take(place->mem, FTH_MEM_ANY, t->bytes, label, &t->mirror, err));
    t->place = *place;
    return FTH_OK;
}

fth_status fth__tensor_check_place(const fth_tensor *t, const fth_mem *device, const char *name,
                                   fth_err *err)
{
    if (!t->device_only || t->place.mem == device) return FTH_OK;
    return FTH_FAIL(err, FTH_E_USAGE, "parameter '%s' is on a device alone, and its graph runs %s",
                    name, device ? "on another" : "on the CPU");
}

uint64_t fth__tensor_mirror_cost(const fth_tensor *t, const fth_mem *mem)
{
    if (t->most > 0) return fth_mem_range_cost(mem, row_bytes(t) * (uint64_t)t->most, t->bytes);
    return t->bytes > 0 ? fth__mem_cost(mem, FTH_MEM_ANY, t->bytes) : 0;
}

/* A help that can be done without: copies from memory that is not pinned take longer. */
static void pin_what_changes(fth_tensor *t)
{
    if (!t->own || t->bytes < PIN_LEAST || t->brought > PIN_AFTER) return;
    if (t->brought++ < PIN_AFTER) return;
    t->pinned = t->place.table->pin(t->place.device, t->data, t->bytes, NULL) == FTH_OK;
}

fth_status fth__tensor_bring(fth_tensor *t, fth_err *err)
{
    FTH_TRY(settle_mirror(t, FTH_OK, err));
    if (t->newer != HOST_NEWER) return FTH_OK;
    pin_what_changes(t);
    const fth__mirror_place *at = &t->place;
    FTH_ASSERT(t->mirror && !t->device_only && t->used <= t->bytes);
    FTH_TRY(at->table->copy(at->device, FTH_LANE_COMPUTE, t->mirror, t->data, t->used, err));
    t->newer = SAME;
    return FTH_OK;
}

void fth_tensor_set_used(fth_tensor *t, uint64_t bytes)
{
    t->used = bytes < t->bytes ? bytes : t->bytes;
}

fth_status fth__tensor_hand_over(fth_tensor *from, fth_tensor *to, fth_err *err)
{
    if (!from->mirror || from == to) return FTH_OK;
    if (from->most > 0 || to->most > 0)
        return FTH_FAIL(err, FTH_E_USAGE, "a parameter whose rows grow keeps its storage");
    FTH_TRY(fth_tensor_sync(from, err));
    if (to->mirror) {
        FTH_TRY(fth_tensor_sync(to, err));
        FTH_TRY(fth_mem_release(to->place.mem, to->mirror, err));
    }
    if (to->pinned && to->place.device != from->place.device) {
        to->place.table->unpin(to->place.device, to->data);
        to->pinned = false;
    }
    FTH_ASSERT(from->bytes == to->bytes);
    to->place = from->place;
    to->mirror = from->mirror;
    to->newer = HOST_NEWER;
    from->mirror = NULL;
    return FTH_OK;
}

void fth__tensor_changed(fth_tensor *t)
{
    if (t->mirror) t->newer = DEVICE_NEWER;
}

fth_status fth_tensor_sync(fth_tensor *t, fth_err *err)
{
    FTH_TRY(fth__object_check(&t->object, "this uses", err));
    if (t->device_only || !t->mirror || t->newer != DEVICE_NEWER) return FTH_OK;
    const fth__mirror_place *at = &t->place;
    FTH_TRY(at->table->copy(at->device, FTH_LANE_OUT, t->data, t->mirror, t->bytes, err));
    FTH_TRY(at->table->drain(at->device, FTH_LANE_OUT, err));
    t->newer = SAME;
    return FTH_OK;
}

void *fth_tensor_data(fth_tensor *t)
{
    if (t->device_only || fth_tensor_sync(t, NULL) != FTH_OK) return NULL;
    t->newer = HOST_NEWER; /* it may be changed */
    return t->data;
}

const void *fth_tensor_view(fth_tensor *t)
{
    return fth_tensor_sync(t, NULL) == FTH_OK ? t->data : NULL;
}

fth_mem *fth__tensor_apart(const fth_tensor *t)
{
    return t->device_only ? t->mem : NULL;
}

fth_dtype fth_tensor_dtype(const fth_tensor *t)
{
    return t->dtype;
}

int fth_tensor_axes(const fth_tensor *t)
{
    return t->n_axes;
}

int64_t fth_tensor_size(const fth_tensor *t, int axis)
{
    return axis >= 0 && axis < t->n_axes ? t->size[axis] : 0;
}

uint64_t fth_tensor_bytes(const fth_tensor *t)
{
    return t->bytes;
}

/* ---- memory as a source and as a sink ---- */

/* A rectangle of whole rows is all that is asked of a device at once. */
static fth_status check_whole_rows(const fth_tensor *t, const int64_t *n, fth_err *err)
{
    for (int a = 1; a < t->n_axes; a++)
        if (n[a] != t->size[a])
            return FTH_FAIL(
                err, FTH_E_USAGE,
                "%lld of %lld elements of each row of a tensor on a device alone; whole "
                "rows are possible",
                (long long)n[a], (long long)t->size[a]);
    return FTH_OK;
}

static fth_status tensor_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    fth_tensor *t = self;
    FTH_TRY(fth__rect_check("memory", t->n_axes, t->size, lo, n, err));
    if (t->device_only) {
        FTH_TRY(check_whole_rows(t, n, err));
        return fth_tensor_get_rows(t, lo[0], n[0], dst, err);
    }
    FTH_TRY(fth_tensor_sync(t, err));
    fth__rect_get(dst, t->data, fth_dtype_size(t->dtype), t->n_axes, t->size, lo, n);
    return FTH_OK;
}

static fth_status tensor_read_rows(void *self, const int64_t *index, int64_t n, void *dst,
                                   fth_err *err)
{
    const fth_tensor *t = self;
    return fth__rows_by_read("memory", tensor_read, self, t->dtype, t->n_axes, t->size, index, n,
                             dst, err);
}

static fth_status tensor_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                               fth_err *err)
{
    fth_tensor *t = self;
    FTH_TRY(fth__rect_check("memory", t->n_axes, t->size, lo, n, err));
    if (t->device_only) {
        FTH_TRY(check_whole_rows(t, n, err));
        return fth_tensor_put_rows(t, lo[0], n[0], src, err);
    }
    FTH_TRY(fth_tensor_sync(t, err)); /* what is not written stays */
    t->newer = HOST_NEWER;
    fth__rect_put(t->data, src, fth_dtype_size(t->dtype), t->n_axes, t->size, lo, n);
    return FTH_OK;
}

fth_tensor *fth__source_tensor(const fth_source *s)
{
    return s->read == tensor_read ? s->self : NULL;
}

fth_tensor *fth__sink_tensor(const fth_sink *s)
{
    return s->write == tensor_write ? s->self : NULL;
}

fth_source fth_tensor_source(fth_tensor *t)
{
    (void)fth_tensor_sync(t, NULL); /* who uses the memory in place finds it up to date */
    fth_source s = {.kind = "memory",
                    .self = t,
                    .dtype = t->dtype,
                    .n_axes = t->n_axes,
                    .read = tensor_read,
                    .read_rows = tensor_read_rows,
                    .data = t->data,
                    .concurrent = !t->device_only};
    memcpy(s.size, t->size, sizeof s.size);
    return s;
}

fth_sink fth_tensor_sink(fth_tensor *t)
{
    fth_sink s = {.kind = "memory",
                  .self = t,
                  .dtype = t->dtype,
                  .n_axes = t->n_axes,
                  .write = tensor_write,
                  .data = t->data,
                  .concurrent = !t->device_only};
    memcpy(s.size, t->size, sizeof s.size);
    return s;
}

/* A scalar has no room for its dtype beside the pointer, so its size is in the function. */
#define DEFINE_SCALAR(bytes)                                                                       \
    static fth_status scalar_read_##bytes(void *self, const int64_t *lo, const int64_t *n,         \
                                          void *dst, fth_err *err)                                 \
    {                                                                                              \
        (void)lo, (void)n, (void)err;                                                              \
        memcpy(dst, self, bytes);                                                                  \
        return FTH_OK;                                                                             \
    }                                                                                              \
    static fth_status scalar_write_##bytes(void *self, const int64_t *lo, const int64_t *n,        \
                                           const void *src, fth_err *err)                          \
    {                                                                                              \
        (void)lo, (void)n, (void)err;                                                              \
        memcpy(self, src, bytes);                                                                  \
        return FTH_OK;                                                                             \
    }
DEFINE_SCALAR(1)
DEFINE_SCALAR(2)
DEFINE_SCALAR(4)
DEFINE_SCALAR(8)
DEFINE_SCALAR(16)

typedef struct scalar_functions {
    fth_status (*read)(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err);
    fth_status (*write)(void *self, const int64_t *lo, const int64_t *n, const void *src,
                        fth_err *err);
} scalar_functions;
static const scalar_functions scalars[17] = {
    [1] = {scalar_read_1, scalar_write_1},    [2] = {scalar_read_2, scalar_write_2},
    [4] = {scalar_read_4, scalar_write_4},    [8] = {scalar_read_8, scalar_write_8},
    [16] = {scalar_read_16, scalar_write_16},
};

fth_source fth_scalar_source(fth_dtype dtype, const void *value)
{
    void *self = (void *)(uintptr_t)value; /* a source never writes through it */
    return (fth_source){.kind = "scalar",
                        .self = self,
                        .dtype = dtype,
                        .read = scalars[fth_dtype_size(dtype)].read,
                        .data = self};
}

fth_sink fth_scalar_sink(fth_dtype dtype, void *value)
{
    return (fth_sink){.kind = "scalar",
                      .self = value,
                      .dtype = dtype,
                      .write = scalars[fth_dtype_size(dtype)].write,
                      .data = value};
}
