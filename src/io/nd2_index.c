/* nd2_index.c - where the metadata and every frame of an ND2 file are.
 *
 * Opening reads the map, never the heads of all frames: some are looked at, to know whether the map
 * can be believed. Where it cannot, or numbers of frames are left out, the file is scanned once,
 * and what that finds is taken where the map is wrong.
 */
#include "io/nd2.h"

#include "base/assert.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 16 }; /* frames whose heads are read to trust a map: a few seeks; not tuned */

/* ---- parts ---- */

/* Is the part where the map says? */
static fth_status has_part(fth__nd2 *nd2, fth__nd2_part part, bool *good, fth_err *err)
{
    fth__nd2_head head;
    const char *name = fth__nd2_part_name(part);
    *good = false;
    if (nd2->part[part].offset == 0) return FTH_OK;
    FTH_TRY(fth__nd2_head_read(nd2->file, nd2->part[part].offset, &head, good, err));
    *good = *good && strlen(head.name) == strlen(name) - 1 &&
            strncmp(head.name, name, strlen(head.name)) == 0;
    return FTH_OK;
}

/* Parts of a map, where there is none yet that stands in its place. *good: all that are listed do,
 * and the attributes are among them. */
static fth_status take_parts(fth__nd2 *nd2, const fth__nd2_map *map, bool *good, fth_err *err)
{
    bool there[FTH__ND2_PARTS];
    fth__nd2_entry e;
    for (int i = 0; i < FTH__ND2_PARTS; i++)
        FTH_TRY(has_part(nd2, (fth__nd2_part)i, &there[i], err));
    for (uint64_t at = 0; fth__nd2_map_next(map, &at, &e);)
        for (int i = 0; i < FTH__ND2_PARTS && fth__nd2_frame_number(&e) < 0; i++) {
            const char *name = fth__nd2_part_name((fth__nd2_part)i);
            if (!there[i] && strlen(name) == e.name_bytes &&
                memcmp(name, e.name, e.name_bytes) == 0)
                nd2->part[i] = e.chunk;
        }
    *good = true;
    for (int i = 0; i < FTH__ND2_PARTS; i++) {
        FTH_TRY(has_part(nd2, (fth__nd2_part)i, &there[i], err));
        if (!there[i] && (nd2->part[i].offset > 0 || i == FTH__ND2_ATTRIBUTES)) *good = false;
    }
    return FTH_OK;
}

/* ---- frames ---- */

/* Bytes that a frame's data must have. */
static uint64_t frame_needs(const fth__nd2_meta *m)
{
    const uint64_t last = (uint64_t)(m->width * m->components) * (uint64_t)(m->bits / 8);
    return FTH__ND2_PREFIX + (m->packed ? 1 : (uint64_t)(m->height - 1) * m->row_bytes + last);
}

/* Frames of a map, by number. Those that are cut, or behind the end of the file, are missing. */
typedef struct frames {
    fth__nd2_chunk *at;
    int64_t n;
    int64_t present, highest, cut, beyond; /* highest: number, -1 for none */
} frames;

static void take_frames(frames *f, const fth__nd2 *nd2, const fth__nd2_map *map)
{
    const uint64_t needs = frame_needs(&nd2->meta), size = nd2->file->bytes;
    const uint64_t head = FTH__ND2_HEAD + FTH__ND2_FRAME_NAME;
    memset(f->at, 0, (uint64_t)f->n * sizeof *f->at);
    f->highest = -1;
    fth__nd2_entry e;
    for (uint64_t at = 0; fth__nd2_map_next(map, &at, &e);) {
        const int64_t number = fth__nd2_frame_number(&e);
        if (number < 0) continue;
        f->beyond += number >= f->n;
        if (number >= f->n) continue;
        f->highest = fth__max_i64(f->highest, number);
        const uint64_t bytes = e.chunk.bytes == FTH__ND2_UNKNOWN ? needs : e.chunk.bytes;
        const bool whole = e.chunk.offset > 0 && e.chunk.offset < size && bytes >= needs &&
                           bytes < size && e.chunk.offset + head + bytes <= size;
        f->cut += !whole;
        if (whole) f->at[number] = (fth__nd2_chunk){e.chunk.offset, bytes};
    }
    for (int64_t i = 0; i < f->n; i++) f->present += f->at[i].offset > 0;
    FTH_ASSERT(f->present <= f->highest + 1 && f->highest < f->n);
}

static fth_status has_head(fth__nd2 *nd2, const frames *f, int64_t number, bool *good, fth_err *err)
{
    fth__nd2_head head;
    char name[40];
    FTH_ASSERT(number >= 0 && number < f->n && f->at[number].offset > 0);
    snprintf(name, sizeof name, "ImageDataSeq|%" PRId64, number);
    FTH_TRY(fth__nd2_head_read(nd2->file, f->at[number].offset, &head, good, err));
    *good = *good && strcmp(head.name, name) == 0 &&
            head.data + f->at[number].bytes <= nd2->file->bytes;
    return FTH_OK;
}

/* Are some frames where the map says? */
static fth_status probe(fth__nd2 *nd2, const frames *f, bool *good, fth_err *err)
{
    const int64_t every = fth__max_i64(f->n / PROBES, 1);
    *good = true;
    for (int64_t i = 0; i < f->n && *good;
         i = i < f->n - 1 ? fth__min_i64(i + every, f->n - 1) : f->n)
        if (f->at[i].offset > 0) FTH_TRY(has_head(nd2, f, i, good, err));
    return FTH_OK;
}

static fth_status make_frames(frames *f, fth__nd2 *nd2, fth_err *err)
{
    void *block = NULL;
    *f = (frames){.n = nd2->n_frames};
    uint64_t bytes = 0;
    if (!fth__mul_u64((uint64_t)f->n, sizeof *f->at, &bytes)) bytes = UINT64_MAX / 2;
    FTH_TRY(fth_mem_take(nd2->mem, FTH_MEM_ANY, bytes, "frames of an ND2 file", &block, err));
    f->at = block;
    return FTH_OK;
}

/* Take the frames that a scan found in the place of what the map says. */
static fth_status merge(fth__nd2 *nd2, frames *f, const fth__nd2_maps *m, fth_err *err)
{
    frames found;
    FTH_TRY(make_frames(&found, nd2, err));
    FTH_ASSERT(found.n == f->n);
    take_frames(&found, nd2, &m->found);
    fth_status s = FTH_OK;
    f->present = 0;
    f->cut = found.cut;
    f->beyond = found.beyond;
    for (int64_t i = 0; i < f->n && s == FTH_OK; i++) {
        if (found.at[i].offset > 0 && found.at[i].offset != f->at[i].offset) {
            f->at[i] = found.at[i];
            f->at[i].bytes |= FTH__ND2_REPAIRED;
        } else if (f->at[i].offset > 0 && found.at[i].offset == 0 && !m->trusted) {
            bool good;
            s = has_head(nd2, f, i, &good, err);
            if (!good) f->at[i].offset = 0;
        }
        f->present += f->at[i].offset > 0;
    }
    (void)fth_mem_release(nd2->mem, found.at, NULL);
    return s;
}

/* ---- both, with a scan where it is needed ---- */

static fth_status scan(fth__nd2 *nd2, fth__nd2_maps *m, const fth__nd2_known *known,
                       fth__text *damage, fth_err *err)
{
    FTH_TRY(fth__nd2_map_scan(&m->found, nd2->file, known, err));
    m->scanned = true;
    m->trusted = known != NULL;
    fth__text_add(damage, "the file was scanned for its chunks; ");
    return FTH_OK;
}

static int by_offset(const void *a, const void *b)
{
    const uint64_t x = ((const fth__nd2_chunk *)a)->offset, y = ((const fth__nd2_chunk *)b)->offset;
    return (x > y) - (x < y);
}

/* For frames that a map left out, where those that it has are where it says: only the rest of the
 * file is looked at, which in a file of many frames is a thousand times less. */
static fth_status scan_rest(fth__nd2 *nd2, fth__nd2_maps *m, const frames *f, fth__text *damage,
                            fth_err *err)
{
    frames copy;
    const uint64_t needs = frame_needs(&nd2->meta);
    FTH_TRY(make_frames(&copy, nd2, err));
    fth__nd2_known known = {copy.at, 0};
    for (int64_t i = 0; i < f->n; i++)
        if (f->at[i].offset > 0)
            known.frame[known.n++] =
                (fth__nd2_chunk){f->at[i].offset, nd2->meta.packed ? f->at[i].bytes : needs};
    if (known.n > 1) qsort(known.frame, (size_t)known.n, sizeof *known.frame, by_offset);
    const fth_status s = scan(nd2, m, &known, damage, err);
    (void)fth_mem_release(nd2->mem, copy.at, NULL);
    return s;
}

fth_status fth__nd2_find_parts(fth__nd2 *nd2, fth__nd2_maps *m, uint64_t search, fth__text *damage,
                               fth_err *err)
{
    bool good = false;
    FTH_TRY(fth__nd2_map_load(&m->said, nd2->file, search, &good, damage, err));
    if (good) FTH_TRY(take_parts(nd2, &m->said, &good, err));
    if (good) return FTH_OK;
    FTH_TRY(scan(nd2, m, NULL, damage, err));
    return take_parts(nd2, &m->found, &good, err);
}

/* The frames of the map, mended by a scan where numbers are left out or frames are elsewhere. */
fth_status fth__nd2_find_frames(fth__nd2 *nd2, fth__nd2_maps *m, fth__text *damage, fth_err *err)
{
    frames f;
    bool good = true;
    FTH_TRY(make_frames(&f, nd2, err));
    nd2->frame = f.at;
    take_frames(&f, nd2, &m->said);
    if (!m->scanned) FTH_TRY(probe(nd2, &f, &good, err));
    if (!good)
        FTH_TRY(scan(nd2, m, NULL, damage, err));
    else if (!m->scanned && f.present < f.highest + 1)
        FTH_TRY(scan_rest(nd2, m, &f, damage, err));
    if (m->scanned) FTH_TRY(merge(nd2, &f, m, err));
    fth_images_info *info = &nd2->images.info;
    FTH_ASSERT(f.present >= 0 && f.present <= f.n);
    info->frames_present = f.present;
    for (int64_t i = 0; i < f.n; i++)
        info->frames_repaired += f.at[i].offset > 0 && (f.at[i].bytes & FTH__ND2_REPAIRED);
    if (f.cut > 0) fth__text_add(damage, "%" PRId64 " frames are cut off; ", f.cut);
    if (f.beyond > 0)
        fth__text_add(damage, "%" PRId64 " frames have numbers outside the loops; ", f.beyond);
    if (f.present < f.n)
        fth__text_add(damage, "%" PRId64 " of %" PRId64 " frames are missing; ", f.n - f.present,
                      f.n);
    return FTH_OK;
}
