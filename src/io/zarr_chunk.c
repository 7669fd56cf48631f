/* zarr_chunk.c - where chunks are, and how their elements lie. */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "io/zarr.h"

#include <fathom/files.h>

#include <inttypes.h>
#include <string.h>

enum { ENTRY = 16, SUM = 4 };
#define ABSENT UINT64_MAX

int64_t fth__zarr_chunk_elements(const fth__zarr_meta *m)
{
    return fth__rect_count(m->n_axes, m->chunk);
}

uint64_t fth__zarr_chunk_bytes(const fth__zarr_meta *m)
{
    return (uint64_t)(fth__zarr_chunk_elements(m) * fth_dtype_size(m->dtype));
}

int64_t fth__zarr_per_file(const fth__zarr_meta *m)
{
    int64_t n = 1;
    for (int a = 0; a < m->n_axes; a++) {
        FTH_ASSERT(m->chunk[a] > 0 && m->file[a] % m->chunk[a] == 0);
        n *= m->file[a] / m->chunk[a];
    }
    return n;
}

int64_t fth__zarr_files(const fth__zarr_meta *m, int axis)
{
    return fth__ceil_div_i64(m->size[axis], m->file[axis]);
}

bool fth__zarr_is_straight(const fth__zarr_meta *m)
{
    bool straight = m->codecs.n == 0 && !m->swap;
    for (int a = 0; a < m->n_axes; a++) straight = straight && m->order[a] == a;
    return straight;
}

/* An array without axes has one file: "c", or "0" in version 2. */
fth_status fth__zarr_file_path(const fth__zarr_meta *m, const char *folder, const int64_t *index,
                               char path[FTH_PATH], fth_err *err)
{
    fth__text t;
    fth__text_init(&t, path, FTH_PATH);
    fth__text_add(&t, "%s/", folder);
    if (m->prefix) fth__text_add(&t, "c");
    if (m->n_axes == 0 && !m->prefix) fth__text_add(&t, "0");
    for (int a = 0; a < m->n_axes; a++) {
        if (a > 0 || m->prefix) fth__text_add(&t, "%c", m->separator);
        fth__text_add(&t, "%" PRId64, index[a]);
    }
    if (!fth__text_is_cut(&t)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: names of chunks in it are too long", folder);
}

bool fth__zarr_next(int n_axes, const int64_t *first, const int64_t *last, int64_t *at)
{
    for (int a = n_axes; a-- > 0;) {
        if (++at[a] <= last[a]) return true;
        at[a] = first[a];
    }
    return false;
}

/* ---- elements ---- */

void fth__zarr_steps(int n_axes, const int64_t *n, uint64_t item, int64_t *step)
{
    int64_t bytes = (int64_t)item;
    for (int a = n_axes; a-- > 0;) {
        step[a] = bytes;
        bytes *= n[a];
    }
}

void fth__zarr_chunk_steps(const fth__zarr_meta *m, int64_t *step)
{
    int64_t bytes = fth_dtype_size(m->dtype);
    for (int i = m->n_axes; i-- > 0;) {
        FTH_ASSERT(m->order[i] >= 0 && m->order[i] < m->n_axes);
        step[m->order[i]] = bytes;
        bytes *= m->chunk[m->order[i]];
    }
}

#define MOVE_ROW(type)                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                              \
        type v;                                                                                    \
        memcpy(&v, from + i * from_step, sizeof v);                                                \
        memcpy(to + i * to_step, &v, sizeof v);                                                    \
    }

static void move_row(int64_t n, uint64_t item, char *to, int64_t to_step, const char *from,
                     int64_t from_step)
{
    if (to_step == (int64_t)item && from_step == (int64_t)item) {
        memcpy(to, from, (size_t)n * item);
    } else if (item == 1) {
        MOVE_ROW(uint8_t)
    } else if (item == 2) {
        MOVE_ROW(uint16_t)
    } else if (item == 4) {
        MOVE_ROW(uint32_t)
    } else {
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, item);
    }
}

void fth__zarr_move(int n_axes, const int64_t *n, uint64_t item, void *to, const int64_t *to_step,
                    const void *from, const int64_t *from_step)
{
    int64_t at[FTH_MAX_AXES] = {0};
    char *put = to;
    const char *get = from;
    if (fth__rect_count(n_axes, n) == 0) return;
    if (n_axes == 0) {
        memcpy(to, from, item);
        return;
    }
    /* axes that lie dense on both sides are one row */
    int last = n_axes - 1;
    int64_t row = n[last];
    while (last > 0 && to_step[last - 1] == to_step[n_axes - 1] * row &&
           from_step[last - 1] == from_step[n_axes - 1] * row) {
        last--;
        row *= n[last];
    }
    for (;;) {
        move_row(row, item, put, to_step[n_axes - 1], get, from_step[n_axes - 1]);
        int a = last - 1;
        for (; a >= 0; a--) {
            put += to_step[a], get += from_step[a];
            if (++at[a] < n[a]) break;
            put -= to_step[a] * n[a], get -= from_step[a] * n[a];
            at[a] = 0;
        }
        if (a < 0) return;
    }
}

/* ---- the index of a shard ---- */

uint64_t fth__zarr_index_bytes(const fth__zarr_meta *m)
{
    return (uint64_t)fth__zarr_per_file(m) * ENTRY + (m->index_sum ? SUM : 0);
}

static uint64_t get64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

void fth__zarr_index_get(const uint8_t *index, int64_t i, uint64_t *offset, uint64_t *bytes)
{
    *offset = get64(index + i * ENTRY);
    *bytes = get64(index + i * ENTRY + 8);
}

fth_status fth__zarr_index_check(const fth__zarr_meta *m, const uint8_t *index, uint64_t file_bytes,
                                 const char *label, fth_err *err)
{
    const int64_t n = fth__zarr_per_file(m);
    FTH_ASSERT(file_bytes >= fth__zarr_index_bytes(m));
    const uint64_t at = m->index_first ? 0 : file_bytes - fth__zarr_index_bytes(m);
    if (m->index_sum) {
        uint32_t wanted;
        memcpy(&wanted, index + n * ENTRY, SUM);
        const uint32_t found = fth__crc32c(0, index, (uint64_t)n * ENTRY);
        if (found != wanted)
            return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, label, at,
                                  "the index of the shard is damaged: its crc32c is %08" PRIx32
                                  ", should be %08" PRIx32,
                                  found, wanted);
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t offset, bytes;
        fth__zarr_index_get(index, i, &offset, &bytes);
        if (offset == ABSENT && bytes == ABSENT) continue;
        if (offset > file_bytes || bytes > file_bytes - offset)
            return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, label, at + (uint64_t)i * ENTRY,
                                  "chunk %" PRId64 " of the shard should have %" PRIu64
                                  " bytes at %" PRIu64 ", but the file has %" PRIu64,
                                  i, bytes, offset, file_bytes);
    }
    return FTH_OK;
}
