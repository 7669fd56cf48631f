/* zarr_read.c - a rectangle of an array, file by file and chunk by chunk.
 *
 * A packed chunk that is wanted whole, and whose elements will lie as they do in the file, is
 * unpacked straight to its place. Chunks that are not packed are read without a detour wherever
 * rows are long, and through a window where they are short. An index of a shard is read once for
 * each call and never kept: files may change between calls.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/dense.h"
#include "io/zarr.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { LONG_ROW = 4096 }; /* bytes: from a page on, rows are read one by one; not tuned */

typedef struct reading {
    const fth__zarr_meta *m;
    const char *folder;
    fth__zarr_room *room;
    fth_mem *mem;
    uint64_t item;
    const int64_t *lo, *n, *step; /* what is wanted, and steps of where it goes */
    char *dst;
    int64_t chunk_step[FTH_MAX_AXES];
    fth_file *file; /* NULL: there is none, and the fill value stands for it */
    char path[FTH_PATH];
} reading;

/* The part of the rectangle that lies in a box: its corner inside the box, and where it goes. */
typedef struct part {
    int64_t at[FTH_MAX_AXES], n[FTH_MAX_AXES];
    char *dst;
} part;

static part cut(const reading *r, const int64_t *corner, const int64_t *extent)
{
    part p = {.dst = r->dst};
    for (int a = 0; a < r->m->n_axes; a++) {
        const int64_t first = fth__max_i64(r->lo[a], corner[a]);
        const int64_t end = fth__min_i64(r->lo[a] + r->n[a], corner[a] + extent[a]);
        p.at[a] = first - corner[a];
        p.n[a] = end - first;
        FTH_ASSERT(p.at[a] >= 0 && p.n[a] > 0 && p.at[a] + p.n[a] <= extent[a]);
        p.dst += (first - r->lo[a]) * r->step[a];
    }
    return p;
}

static void put_fill(const reading *r, const part *p)
{
    static const int64_t still[FTH_MAX_AXES];
    fth__zarr_move(r->m->n_axes, p->n, r->item, p->dst, r->step, r->m->fill, still);
}

/* ---- chunks that are not packed ---- */

static uint64_t offset_of(const reading *r, const part *p)
{
    int64_t bytes = 0;
    for (int a = 0; a < r->m->n_axes; a++) bytes += p->at[a] * r->chunk_step[a];
    return (uint64_t)bytes;
}

/* From the first byte of the part to one past its last. */
static uint64_t span_of(const reading *r, const part *p)
{
    int64_t bytes = (int64_t)r->item;
    for (int a = 0; a < r->m->n_axes; a++) bytes += (p->n[a] - 1) * r->chunk_step[a];
    return (uint64_t)bytes;
}

/* Elements of it that lie side by side both in the file and where they go. */
static int64_t row_of(const reading *r, const part *p, int *outer)
{
    const int last = r->m->n_axes - 1;
    int a = last;
    int64_t row = 1;
    const int64_t item = (int64_t)r->item;
    while (a >= 0 && (p->n[a] == 1 || (r->step[a] == item * row && r->chunk_step[a] == item * row)))
        row *= p->n[a--];
    *outer = a + 1;
    return row;
}

static fth_status read_straight(const reading *r, const part *p, uint64_t at, fth_err *err)
{
    int outer = 0;
    const uint64_t row = (uint64_t)row_of(r, p, &outer) * r->item, span = span_of(r, p);
    if (outer == 0)
        return fth_file_read(r->file, at + offset_of(r, p), row, p->dst, "a chunk", err);
    if (row < LONG_ROW && span <= r->room->chunk_bytes) {
        FTH_TRY(fth_file_read(r->file, at + offset_of(r, p), span, r->room->chunk, "a chunk", err));
        fth__zarr_move(r->m->n_axes, p->n, r->item, p->dst, r->step, r->room->chunk, r->chunk_step);
        return FTH_OK;
    }
    int axis = 0; /* in halves along the outermost axis there is */
    while (p->n[axis] == 1) axis++;
    FTH_ASSERT(axis < r->m->n_axes); /* a part of one element is one row */
    part half = *p;
    half.n[axis] = p->n[axis] / 2;
    FTH_TRY(read_straight(r, &half, at, err));
    half.at[axis] += half.n[axis];
    half.dst += half.n[axis] * r->step[axis];
    half.n[axis] = p->n[axis] - half.n[axis];
    return read_straight(r, &half, at, err);
}

/* ---- chunks that are packed, turned or of the other byte order ---- */

static bool goes_straight(const reading *r, const part *p)
{
    bool same = r->m->dtype != FTH_BOOL;
    for (int a = 0; a < r->m->n_axes; a++)
        same = same && p->n[a] == r->m->chunk[a] && r->m->order[a] == a &&
               (p->n[a] == 1 || r->step[a] == r->chunk_step[a]);
    return same;
}

static fth_status unpack(const reading *r, uint64_t at, uint64_t bytes, uint8_t *to, fth_err *err)
{
    const fth__codecs *c = &r->m->codecs;
    const uint64_t chunk = fth__zarr_chunk_bytes(r->m);
    if (c->n == 0) return fth_file_read(r->file, at, chunk, to, "a chunk", err);
    if (bytes > fth__codecs_most(c, chunk))
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, r->path, at,
                              "a chunk of %" PRIu64 " bytes is packed into %" PRIu64
                              ", which is more than its codec can make",
                              chunk, bytes);
    FTH_TRY(fth_file_read(r->file, at, bytes, r->room->one, "a packed chunk", err));
    fth__coding k = {.mem = r->mem,
                     .label = r->path,
                     .room = r->room->work,
                     .room_bytes = r->room->work_bytes,
                     .unpacker = r->room->unpacker,
                     .n_in = bytes,
                     .out = to};
    return fth__codecs_unpack(c, &k, r->room->one, r->room->two, chunk, err);
}

static fth_status read_packed(const reading *r, const part *p, uint64_t at, uint64_t bytes,
                              fth_err *err)
{
    const int64_t elements = fth__zarr_chunk_elements(r->m);
    const bool straight = goes_straight(r, p);
    uint8_t *to = straight ? (uint8_t *)p->dst : r->room->chunk;
    FTH_ASSERT(straight || fth__zarr_chunk_bytes(r->m) <= r->room->chunk_bytes);
    FTH_TRY(unpack(r, at, bytes, to, err));
    if (r->m->swap) fth__swap_elements(r->m->dtype, elements, to);
    if (straight) return FTH_OK;
    fth__bools_settle(r->m->dtype, elements, to);
    const uint8_t *from = to;
    for (int a = 0; a < r->m->n_axes; a++) from += p->at[a] * r->chunk_step[a];
    fth__zarr_move(r->m->n_axes, p->n, r->item, p->dst, r->step, from, r->chunk_step);
    return FTH_OK;
}

static fth_status read_chunk(const reading *r, const part *p, uint64_t at, uint64_t bytes,
                             fth_err *err)
{
    const uint64_t chunk = fth__zarr_chunk_bytes(r->m);
    if (r->m->codecs.n == 0 && bytes != chunk)
        return FTH__FILE_FAIL(err, bytes < chunk ? FTH_E_FILE_SHORT : FTH_E_FILE_FORMAT, r->path,
                              at, "a chunk has %" PRIu64 " bytes, its shape asks for %" PRIu64,
                              bytes, chunk);
    const bool bools = r->m->dtype == FTH_BOOL; /* any byte may stand for one */
    if (fth__zarr_is_straight(r->m) && !bools) return read_straight(r, p, at, err);
    return read_packed(r, p, at, bytes, err);
}

/* ---- files ---- */

static fth_status open_file(reading *r, const int64_t *index, fth_err *err)
{
    fth_err why = {0};
    struct stat st;
    FTH_TRY(fth__zarr_file_path(r->m, r->folder, index, r->path, err));
    r->file = NULL;
    const fth_status s = fth_file_open(&r->file, r->mem, r->path, &why);
    if (s == FTH_OK) return FTH_OK;
    if (s == FTH_E_FILE_OPEN && stat(r->path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return FTH_OK;
    if (err && err->status == FTH_OK) *err = why;
    return s;
}

static fth_status read_index(const reading *r, fth_err *err)
{
    const uint64_t bytes = fth__zarr_index_bytes(r->m), all = fth_file_bytes(r->file);
    if (all < bytes)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, r->path, 0,
                              "the index of a shard has %" PRIu64 " bytes, the file %" PRIu64,
                              bytes, all);
    FTH_TRY(fth_file_read(r->file, r->m->index_first ? 0 : all - bytes, bytes, r->room->index,
                          "the index of a shard", err));
    return fth__zarr_index_check(r->m, r->room->index, all, r->path, err);
}

/* Chunk `inner` of the open file, whose corner in the array is given. */
static fth_status read_inner(const reading *r, int64_t inner, const int64_t *corner, fth_err *err)
{
    FTH_ASSERT(inner >= 0 && inner < fth__zarr_per_file(r->m));
    const part p = cut(r, corner, r->m->chunk);
    uint64_t at = 0, bytes = fth_file_bytes(r->file);
    if (r->m->sharded) {
        fth__zarr_index_get(r->room->index, inner, &at, &bytes);
        if (at == UINT64_MAX && bytes == UINT64_MAX) {
            put_fill(r, &p);
            return FTH_OK;
        }
    }
    FTH_TRY_CTX(read_chunk(r, &p, at, bytes, err), err, "reading chunk %" PRId64 " of %s", inner,
                r->path);
    return FTH_OK;
}

static fth_status read_file(const reading *r, const int64_t *index, fth_err *err)
{
    const fth__zarr_meta *m = r->m;
    int64_t corner[FTH_MAX_AXES], first[FTH_MAX_AXES], last[FTH_MAX_AXES], at[FTH_MAX_AXES];
    for (int a = 0; a < m->n_axes; a++) corner[a] = index[a] * m->file[a];
    const part whole = cut(r, corner, m->file);
    if (!r->file) {
        put_fill(r, &whole);
        return FTH_OK;
    }
    if (m->sharded) FTH_TRY(read_index(r, err));
    for (int a = 0; a < m->n_axes; a++) {
        first[a] = at[a] = whole.at[a] / m->chunk[a];
        last[a] = (whole.at[a] + whole.n[a] - 1) / m->chunk[a];
    }
    do {
        int64_t inner = 0, place[FTH_MAX_AXES];
        for (int a = 0; a < m->n_axes; a++) {
            inner = inner * (m->file[a] / m->chunk[a]) + at[a];
            place[a] = corner[a] + at[a] * m->chunk[a];
        }
        FTH_TRY(read_inner(r, inner, place, err));
    } while (fth__zarr_next(m->n_axes, first, last, at));
    return FTH_OK;
}

fth_status fth__zarr_read(const fth__zarr_meta *m, const char *folder, fth__zarr_rooms *rooms,
                          const int64_t *lo, const int64_t *n, void *dst, const int64_t *step,
                          fth_err *err)
{
    int64_t first[FTH_MAX_AXES], last[FTH_MAX_AXES], at[FTH_MAX_AXES];
    reading r = {.m = m,
                 .folder = folder,
                 .mem = rooms->mem,
                 .item = (uint64_t)fth_dtype_size(m->dtype),
                 .lo = lo,
                 .n = n,
                 .step = step,
                 .dst = dst};
    if (fth__rect_count(m->n_axes, n) == 0) return FTH_OK;
    fth__zarr_chunk_steps(m, r.chunk_step);
    for (int a = 0; a < m->n_axes; a++) {
        first[a] = at[a] = lo[a] / m->file[a];
        last[a] = (lo[a] + n[a] - 1) / m->file[a];
    }
    r.room = fth__zarr_room_take(rooms);
    fth_status s = FTH_OK;
    do {
        s = open_file(&r, at, err);
        if (s == FTH_OK) s = read_file(&r, at, err);
        fth_file_close(r.file);
        r.file = NULL;
    } while (s == FTH_OK && fth__zarr_next(m->n_axes, first, last, at));
    fth__zarr_room_give(rooms, r.room);
    return s;
}
