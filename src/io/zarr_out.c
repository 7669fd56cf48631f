/* zarr_out.c - chunks on their way into a folder, from several threads and in any order.
 *
 * A chunk that comes whole is packed at once; parts of one wait in a file of its own, NAME.part,
 * and the thread that brings the last part packs it. Packed chunks of a shard are put down as they
 * come; the one that completes it puts them in order, so that the bytes of a shard do not depend
 * on who was first. Nothing is synced here: that is done once, for the whole folder.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/zarr.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

#define PART ".part"

typedef struct chunk {
    uint64_t offset, bytes; /* in the file of its shard */
    int64_t elements;       /* that have come */
} chunk;

typedef struct shard {
    int64_t done; /* chunks that are in its file */
    uint64_t end;
} shard;

struct fth__zarr_out {
    fth_mem *mem;
    fth__zarr_meta m;
    fth__zarr_rooms *rooms;
    int64_t per_file, n_files, left; /* `left`: chunks that are not complete */
    chunk *chunk;                    /* per_file for each file */
    shard *shard;
    pthread_mutex_t lock;
    char folder[]; /* its path */
};

/* ---- open ---- */

static fth_status count(fth__zarr_out *o, fth_err *err)
{
    const fth__zarr_meta *m = &o->m;
    int64_t n = 1, total = 0;
    o->left = 1;
    for (int a = 0; a < m->n_axes; a++) {
        n *= fth__zarr_files(m, a);
        o->left *= fth__ceil_div_i64(m->size[a], m->chunk[a]);
    }
    o->n_files = n;
    o->per_file = fth__zarr_per_file(m);
    if (fth__mul_i64(n, o->per_file, &total) && total <= INT32_MAX) return FTH_OK;
    return FTH_FAIL(err, FTH_E_USAGE, "%s would have more than %d chunks; make them larger",
                    o->folder, INT32_MAX);
}

fth_status fth__zarr_out_open(fth__zarr_out **out, fth_mem *mem, const char *folder,
                              const fth__zarr_meta *m, fth__zarr_rooms *rooms, fth_err *err)
{
    const char *place = folder ? folder : "a planned array";
    const size_t length = strlen(place) + 1;
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__zarr_out) + length, &block, err));
    fth__zarr_out *o = block;
    *o = (fth__zarr_out){.mem = mem, .m = *m, .rooms = rooms};
    memcpy(o->folder, place, length);
    pthread_mutex_init(&o->lock, NULL);
    fth_status s = count(o, err);
    if (s == FTH_OK)
        s = fth__heap_take(mem, o->n_files * o->per_file, sizeof(chunk), (void **)&block, err);
    if (s == FTH_OK) {
        o->chunk = block;
        s = fth__heap_take(mem, o->n_files, sizeof(shard), (void **)&block, err);
    }
    if (s == FTH_OK) {
        o->shard = block;
        if (folder) s = fth_folder_make_all(mem, folder, err);
    }
    if (s == FTH_OK && folder) s = fth__zarr_meta_save(m, mem, folder, err);
    if (s != FTH_OK) {
        fth__zarr_out_close(o);
        return s;
    }
    *out = o;
    return FTH_OK;
}

void fth__zarr_out_close(fth__zarr_out *o)
{
    if (!o) return;
    pthread_mutex_destroy(&o->lock);
    fth__heap_free(o->mem, o->chunk);
    fth__heap_free(o->mem, o->shard);
    fth__heap_free(o->mem, o);
}

fth_status fth__zarr_out_check(const fth__zarr_out *o, fth_err *err)
{
    if (o->left == 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_STATE, "%s: %" PRId64 " chunks were not written completely",
                    o->folder, o->left);
}

/* ---- one chunk ---- */

/* A chunk of the grid, and the part of it that is written now. */
typedef struct piece {
    int64_t file[FTH_MAX_AXES];   /* index of its file */
    int64_t at[FTH_MAX_AXES];     /* first element of the part, inside the chunk */
    int64_t n[FTH_MAX_AXES];      /* elements of the part */
    int64_t total;                /* elements of the chunk that lie in the array */
    int64_t shard, inner, number; /* number of its file, its number there, its number in all */
    const char *src;
    int64_t step[FTH_MAX_AXES]; /* of src */
} piece;

static piece cut(const fth__zarr_out *o, const int64_t *index, const int64_t *lo, const int64_t *n,
                 const char *src, const int64_t *step)
{
    const fth__zarr_meta *m = &o->m;
    piece p = {.total = 1, .src = src};
    for (int a = 0; a < m->n_axes; a++) {
        const int64_t corner = index[a] * m->chunk[a], per = m->file[a] / m->chunk[a];
        const int64_t first = fth__max_i64(lo[a], corner);
        const int64_t end = fth__min_i64(lo[a] + n[a], corner + m->chunk[a]);
        p.at[a] = first - corner;
        p.n[a] = end - first;
        FTH_ASSERT(p.at[a] >= 0 && p.n[a] > 0 && p.at[a] + p.n[a] <= m->chunk[a]);
        p.total *= fth__min_i64(m->chunk[a], m->size[a] - corner);
        p.file[a] = index[a] / per;
        p.shard = p.shard * fth__zarr_files(m, a) + p.file[a];
        p.inner = p.inner * per + index[a] % per;
        p.step[a] = step[a];
        p.src += (first - lo[a]) * step[a];
    }
    FTH_ASSERT(p.shard >= 0 && p.shard < o->n_files && p.inner >= 0 && p.inner < o->per_file);
    p.number = p.shard * o->per_file + p.inner;
    return p;
}

/* "FOLDER/c/0/1.2.part" with the number of the chunk in a shard, or without it and the end. */
static fth_status name(const fth__zarr_out *o, const piece *p, bool part, bool inner,
                       char path[FTH_PATH], fth_err *err)
{
    FTH_TRY(fth__zarr_file_path(&o->m, o->folder, p->file, path, err));
    const size_t used = strlen(path);
    char ending[48] = PART;
    if (inner) snprintf(ending, sizeof ending, ".%" PRId64 PART, p->inner);
    if (!part) return FTH_OK;
    if (used + strlen(ending) >= FTH_PATH)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", path);
    memcpy(path + used, ending, strlen(ending) + 1);
    return FTH_OK;
}

static fth_status open_out(const fth__zarr_out *o, const char *path, fth_file **out, fth_err *err)
{
    char parent[FTH_PATH];
    FTH_TRY(fth_path_parent(parent, path, err));
    FTH_TRY(fth_folder_make_all(o->mem, parent, err));
    return fth_file_open_update(out, o->mem, path, err);
}

static fth_status save(const fth__zarr_out *o, const char *path, uint64_t offset, const void *data,
                       uint64_t bytes, fth_err *err)
{
    fth_file *f = NULL;
    FTH_TRY(open_out(o, path, &f, err));
    const fth_status s = fth_file_write(f, offset, bytes, data, "a chunk", err);
    fth_file_close(f);
    return s;
}

/* ---- shards ---- */

/* Chunks of a shard that lie in the array. */
static int64_t expected(const fth__zarr_out *o, const piece *p)
{
    const fth__zarr_meta *m = &o->m;
    int64_t n = 1;
    for (int a = 0; a < m->n_axes; a++) {
        const int64_t left = m->size[a] - p->file[a] * m->file[a];
        n *= fth__ceil_div_i64(fth__min_i64(left, m->file[a]), m->chunk[a]);
    }
    return n;
}

static bool is_ordered(const fth__zarr_out *o, int64_t number)
{
    uint64_t end = 0;
    for (int64_t i = 0; i < o->per_file; i++) {
        const chunk *c = &o->chunk[number * o->per_file + i];
        if (c->elements > 0 && c->offset != end) return false;
        end += c->elements > 0 ? c->bytes : 0;
    }
    return true;
}

/* Copy the chunks to another file, in their order. */
static fth_status put_in_order(fth__zarr_out *o, int64_t number, const char *part, const char *path,
                               fth__zarr_room *room, fth_err *err)
{
    fth_file *from = NULL, *to = NULL;
    uint64_t end = 0;
    uint8_t *buffer = o->m.codecs.n > 0 ? room->one : room->chunk;
    fth_status s = fth_file_open(&from, o->mem, part, err);
    if (s == FTH_OK) s = fth_file_open_update(&to, o->mem, path, err);
    for (int64_t i = 0; s == FTH_OK && i < o->per_file; i++) {
        chunk *c = &o->chunk[number * o->per_file + i];
        if (c->elements == 0) continue;
        s = fth_file_read(from, c->offset, c->bytes, buffer, "a packed chunk", err);
        if (s == FTH_OK) s = fth_file_write(to, end, c->bytes, buffer, "a packed chunk", err);
        c->offset = end;
        end += c->bytes;
    }
    fth_file_close(from);
    fth_file_close(to);
    if (s == FTH_OK) s = fth_path_remove(o->mem, part, err);
    return s;
}

static void make_index(const fth__zarr_out *o, int64_t number, uint8_t *index)
{
    uint8_t *at = index;
    for (int64_t i = 0; i < o->per_file; i++, at += 16) {
        const chunk *c = &o->chunk[number * o->per_file + i];
        const uint64_t entry[2] = {c->elements > 0 ? c->offset : UINT64_MAX,
                                   c->elements > 0 ? c->bytes : UINT64_MAX};
        memcpy(at, entry, sizeof entry);
    }
    const uint32_t sum = fth__crc32c(0, index, (uint64_t)(at - index));
    memcpy(at, &sum, sizeof sum);
}

/* All chunks of a shard are there: order, index, name. */
static fth_status finish_shard(fth__zarr_out *o, const piece *p, const char *part,
                               fth__zarr_room *room, fth_err *err)
{
    char path[FTH_PATH];
    const uint64_t end = o->shard[p->shard].end;
    FTH_TRY(name(o, p, false, false, path, err));
    if (!is_ordered(o, p->shard)) {
        FTH_TRY(put_in_order(o, p->shard, part, path, room, err));
    } else {
        const int why = fth__disk_rename(o->mem, part, path);
        if (why)
            return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: giving it its name: %s", path,
                            strerror(why));
    }
    make_index(o, p->shard, room->index);
    return save(o, path, end, room->index, fth__zarr_index_bytes(&o->m), err);
}

static fth_status put_into_shard(fth__zarr_out *o, const piece *p, const void *data, uint64_t bytes,
                                 fth__zarr_room *room, fth_err *err)
{
    char part[FTH_PATH];
    shard *s = &o->shard[p->shard];
    FTH_TRY(name(o, p, true, false, part, err));
    pthread_mutex_lock(&o->lock);
    const uint64_t offset = s->end;
    s->end += bytes;
    pthread_mutex_unlock(&o->lock);
    chunk *c = &o->chunk[p->number];
    c->offset = offset;
    c->bytes = bytes;
    FTH_TRY(save(o, part, offset, data, bytes, err));
    pthread_mutex_lock(&o->lock);
    const bool last = ++s->done == expected(o, p);
    pthread_mutex_unlock(&o->lock);
    return last ? finish_shard(o, p, part, room, err) : FTH_OK;
}

/* ---- packing ---- */

/* A whole chunk, its elements as they are stored, to its place. */
static fth_status put_chunk(fth__zarr_out *o, const piece *p, const void *data,
                            fth__zarr_room *room, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(name(o, p, false, false, path, err));
    fth__coding k = {.mem = o->mem,
                     .label = path,
                     .room = room->work,
                     .room_bytes = room->work_bytes,
                     .in = data,
                     .n_in = fth__zarr_chunk_bytes(&o->m)};
    FTH_TRY(fth__codecs_pack(&o->m.codecs, &k, room->one, room->two, err));
    fth_status s = FTH_OK;
    if (o->m.sharded)
        s = put_into_shard(o, p, k.in, k.n_in, room, err);
    else
        s = save(o, path, 0, k.in, k.n_in, err);
    if (s != FTH_OK) return s;
    pthread_mutex_lock(&o->lock);
    o->left--;
    pthread_mutex_unlock(&o->lock);
    return FTH_OK;
}

/* It came whole: gathered, with zeros behind the edge of the array, unless it lies as it should. */
static fth_status put_whole(fth__zarr_out *o, const piece *p, fth__zarr_room *room, fth_err *err)
{
    const uint64_t item = (uint64_t)fth_dtype_size(o->m.dtype);
    int64_t step[FTH_MAX_AXES];
    fth__zarr_chunk_steps(&o->m, step);
    bool straight = p->total == fth__zarr_chunk_elements(&o->m);
    for (int a = 0; a < o->m.n_axes; a++)
        straight = straight && (p->n[a] == 1 || p->step[a] == step[a]);
    o->chunk[p->number].elements = p->total;
    if (straight) return put_chunk(o, p, p->src, room, err);
    FTH_ASSERT(fth__zarr_chunk_bytes(&o->m) <= room->chunk_bytes);
    memset(room->chunk, 0, fth__zarr_chunk_bytes(&o->m));
    fth__zarr_move(o->m.n_axes, p->n, item, room->chunk, step, p->src, p->step);
    return put_chunk(o, p, room->chunk, room, err);
}

/* ---- parts of chunks ---- */

static fth_status save_part(const fth__zarr_out *o, const piece *p, const char *path,
                            fth__zarr_room *room, fth_err *err)
{
    const uint64_t item = (uint64_t)fth_dtype_size(o->m.dtype);
    const int last = o->m.n_axes - 1;
    int64_t dense[FTH_MAX_AXES];
    fth_file *f = NULL;
    fth__zarr_steps(o->m.n_axes, p->n, item, dense);
    fth__zarr_move(o->m.n_axes, p->n, item, room->chunk, dense, p->src, p->step);
    FTH_TRY(open_out(o, path, &f, err));
    fth_status s = FTH_OK;
    const uint8_t *from = room->chunk;
    fth__runs r;
    fth__runs_start(&r, last + 1, o->m.chunk, p->at, p->n);
    while (s == FTH_OK && fth__runs_next(&r)) {
        const uint64_t bytes = (uint64_t)r.length * item;
        s = fth_file_write(f, (uint64_t)r.start * item, bytes, from, "a part of a chunk", err);
        from += bytes;
    }
    FTH_ASSERT((uint64_t)(from - room->chunk) <= room->chunk_bytes);
    fth_file_close(f);
    return s;
}

/* The last part is there: the chunk is read back and packed; bytes never written are zero. */
static fth_status put_parts(fth__zarr_out *o, const piece *p, const char *path,
                            fth__zarr_room *room, fth_err *err)
{
    const uint64_t bytes = fth__zarr_chunk_bytes(&o->m);
    FTH_ASSERT(bytes <= room->chunk_bytes);
    fth_file *f = NULL;
    FTH_TRY(fth_file_open(&f, o->mem, path, err));
    const uint64_t there = fth__min_u64(bytes, fth_file_bytes(f));
    memset(room->chunk + there, 0, bytes - there);
    const fth_status s = fth_file_read(f, 0, there, room->chunk, "a chunk made of parts", err);
    fth_file_close(f);
    FTH_TRY(s);
    FTH_TRY(fth_path_remove(o->mem, path, err));
    return put_chunk(o, p, room->chunk, room, err);
}

static fth_status put_part(fth__zarr_out *o, const piece *p, fth__zarr_room *room, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(name(o, p, true, true, path, err));
    FTH_TRY(save_part(o, p, path, room, err));
    chunk *c = &o->chunk[p->number];
    pthread_mutex_lock(&o->lock);
    c->elements += fth__rect_count(o->m.n_axes, p->n);
    const bool whole = c->elements == p->total;
    pthread_mutex_unlock(&o->lock);
    return whole ? put_parts(o, p, path, room, err) : FTH_OK;
}

/* ---- rectangles ---- */

fth_status fth__zarr_out_write(fth__zarr_out *o, const int64_t *lo, const int64_t *n,
                               const void *src, fth_err *err)
{
    const fth__zarr_meta *m = &o->m;
    int64_t first[FTH_MAX_AXES], last[FTH_MAX_AXES], at[FTH_MAX_AXES], step[FTH_MAX_AXES];
    FTH_TRY(fth__rect_check("zarr", m->n_axes, m->size, lo, n, err));
    if (fth__rect_count(m->n_axes, n) == 0) return FTH_OK;
    fth__zarr_steps(m->n_axes, n, (uint64_t)fth_dtype_size(m->dtype), step);
    for (int a = 0; a < m->n_axes; a++) {
        first[a] = at[a] = lo[a] / m->chunk[a];
        last[a] = (lo[a] + n[a] - 1) / m->chunk[a];
    }
    fth__zarr_room *room = fth__zarr_room_take(o->rooms);
    fth_status s = FTH_OK;
    do {
        const piece p = cut(o, at, lo, n, src, step);
        s = fth__rect_count(m->n_axes, p.n) == p.total ? put_whole(o, &p, room, err)
                                                       : put_part(o, &p, room, err);
    } while (s == FTH_OK && fth__zarr_next(m->n_axes, first, last, at));
    fth__zarr_room_give(o->rooms, room);
    return s;
}
