/* zip_member.c - one member as bytes: read in place when stored, inflated from
 * the front when deflated.
 *
 * Going back in a deflated member starts it again; going forward inflates and
 * throws away. Memory is one input buffer and zlib's window, whatever the size.
 * A stored one may be read by several threads: stretches that were read are
 * summed apart, and joined where they touch.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/zip.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    INPUT = 64 << 10,     /* packed bytes read at once: inflating them takes longer than the call */
    SKIP = 32 << 10,      /* bytes inflated and thrown away at once; zlib's window, not tuned */
    BEST_RATIO = 1032,    /* deflate makes at most 258 bytes of 2 bits */
    STRETCHES = 64,       /* kept: some threads, each in order; others count as not read */
    SHORT_READ = 64 << 10 /* up to here summing takes less time than joining two checksums */
};

/* Bytes [from, to) were read, and have this checksum. */
typedef struct stretch {
    uint64_t from, to;
    uint32_t crc;
} stretch;

typedef struct member {
    fth_mem *mem;
    fth_file *file;
    const char *label;
    uint64_t start, packed, bytes; /* `start` in the file */
    uint32_t wanted_crc;
    atomic_bool verified;
    pthread_mutex_t lock; /* of the stretches, which are in order and do not touch */
    stretch stretch[STRETCHES];
    int stretches;
    /* deflated only */
    fth__inflate *z;      /* NULL: it is not known where it stands */
    uint64_t taken, made; /* packed bytes that were read, bytes made of them */
    const uint8_t *next;  /* `waiting` bytes of the input that were not unpacked yet */
    uint64_t waiting;
    unsigned char *input, *skip, *room;
} member;

/* The first part of [*from, *to) that no stretch has; false: there is none. */
static bool find_gap(const member *m, uint64_t *from, uint64_t *to)
{
    for (int i = 0; i < m->stretches && m->stretch[i].from < *to; i++) {
        const stretch *s = &m->stretch[i];
        if (s->from > *from)
            *to = s->from;
        else if (s->to > *from)
            *from = s->to;
    }
    return *from < *to;
}

/* Merge s with the stretches it touches, or insert it between them. */
static void keep(member *m, stretch s)
{
    int i = 0, gone = 0;
    while (i < m->stretches && m->stretch[i].to < s.from) i++;
    if (i < m->stretches && m->stretch[i].to == s.from) {
        const stretch *before = &m->stretch[i];
        s = (stretch){before->from, s.to, fth__crc32_join(before->crc, s.crc, s.to - s.from)};
        gone++;
    }
    if (i + gone < m->stretches && m->stretch[i + gone].from == s.to) {
        const stretch *behind = &m->stretch[i + gone++];
        s.crc = fth__crc32_join(s.crc, behind->crc, behind->to - behind->from);
        s.to = behind->to;
    }
    if (gone == 0 && m->stretches == STRETCHES) return;
    memmove(&m->stretch[i + 1], &m->stretch[i + gone],
            (size_t)(m->stretches - i - gone) * sizeof s);
    m->stretch[i] = s;
    m->stretches += 1 - gone;
    FTH_ASSERT(m->stretches >= 1 && m->stretches <= STRETCHES && s.to <= m->bytes);
    FTH_ASSERT(i == 0 || m->stretch[i - 1].to < s.from);
    FTH_ASSERT(i + 1 == m->stretches || s.to < m->stretch[i + 1].from);
}

/* A short one that continues a stretch is summed with it. */
static bool continue_one(member *m, uint64_t from, uint64_t to, const unsigned char *data)
{
    if (to - from > SHORT_READ) return false;
    for (int i = 0; i < m->stretches; i++) {
        stretch *s = &m->stretch[i];
        const bool free = i + 1 == m->stretches || m->stretch[i + 1].from > to;
        if (s->to != from || !free) continue;
        s->crc = fth__crc32(s->crc, data, to - from);
        s->to = to;
        return true;
    }
    return false;
}

static fth_status compare(member *m, fth_err *err)
{
    if (m->stretches != 1 || m->stretch[0].from > 0 || m->stretch[0].to < m->bytes) return FTH_OK;
    m->verified = m->stretch[0].crc == m->wanted_crc;
    if (m->verified) return FTH_OK;
    m->stretches = 0; /* a second reading says the same again */
    return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, m->label, 0,
                          "its data are damaged: the checksum does not match");
}

/* Bytes [offset, offset+bytes) have passed; when all have, the checksum must be the right one. */
static fth_status sum(member *m, uint64_t offset, uint64_t bytes, const unsigned char *data,
                      fth_err *err)
{
    if (m->verified || bytes == 0) return FTH_OK;
    uint64_t from = offset, to = offset + bytes;
    fth_status s = FTH_OK;
    pthread_mutex_lock(&m->lock);
    bool wanted = find_gap(m, &from, &to);
    if (wanted && continue_one(m, from, to, data + (from - offset))) {
        s = compare(m, err);
        wanted = false;
    }
    pthread_mutex_unlock(&m->lock);
    if (!wanted) return s;
    const stretch own = {from, to, fth__crc32(0, data + (from - offset), to - from)};
    pthread_mutex_lock(&m->lock);
    if (find_gap(m, &from, &to) && from == own.from && to == own.to) { /* nobody else read it */
        keep(m, own);
        s = compare(m, err);
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

static fth_status check_range(const member *m, uint64_t offset, uint64_t bytes, fth_err *err)
{
    if (offset <= m->bytes && bytes <= m->bytes - offset) return FTH_OK;
    return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, m->label, offset,
                          "%" PRIu64 " bytes should be here, but the member ends at %" PRIu64,
                          bytes, m->bytes);
}

static fth_status read_stored(void *self, uint64_t offset, uint64_t bytes, void *dst, fth_err *err)
{
    member *m = self;
    FTH_TRY(check_range(m, offset, bytes, err));
    FTH_TRY(fth_file_read(m->file, m->start + offset, bytes, dst, m->label, err));
    return sum(m, offset, bytes, dst, err);
}

/* Inflate exactly `bytes` more. */
static fth_status inflate_more(member *m, uint64_t bytes, unsigned char *dst, fth_err *err)
{
    const uint64_t from = m->made;
    unsigned char *to = dst;
    for (uint64_t left = bytes; left > 0;) {
        if (m->waiting == 0 && m->taken < m->packed) {
            const uint64_t n = fth__min_u64(INPUT, m->packed - m->taken);
            FTH_TRY(fth_file_read(m->file, m->start + m->taken, n, m->input, m->label, err));
            m->taken += n;
            m->next = m->input;
            m->waiting = n;
        }
        const uint64_t before = left;
        const fth__inflated got = fth__inflate_some(m->z, &m->next, &m->waiting, &to, &left);
        m->made += before - left;
        FTH_ASSERT(m->made <= m->bytes && m->taken <= m->packed && m->waiting <= INPUT);
        if (left == 0) break;
        const bool dry = left == before && m->waiting == 0 && m->taken == m->packed;
        const char *why = fth__inflate_why(m->z);
        if (got != FTH__INFLATE_MORE || dry)
            return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, m->label, m->made,
                                  "its deflated data %s: %s",
                                  got == FTH__INFLATE_ENDED ? "end too early" : "are damaged",
                                  why ? why : "no more input");
    }
    return sum(m, from, bytes, dst, err);
}

static fth_status start_again(member *m, fth_err *err)
{
    fth__inflate_end(m->z);
    m->z = NULL;
    m->taken = m->made = m->waiting = 0;
    if (!m->room) m->room = fth__heap_alloc(m->mem, fth__inflate_bytes());
    if (m->room) m->z = fth__inflate_begin(m->room, FTH__WRAP_NONE);
    return m->z ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory to inflate %s", m->label);
}

static fth_status inflate_at(member *m, uint64_t offset, uint64_t bytes, void *dst, fth_err *err)
{
    if (!m->z || offset < m->made) FTH_TRY(start_again(m, err));
    while (m->made < offset)
        FTH_TRY(inflate_more(m, fth__min_u64(SKIP, offset - m->made), m->skip, err));
    FTH_ASSERT(m->made == offset);
    return inflate_more(m, bytes, dst, err);
}

static fth_status read_deflated(void *self, uint64_t offset, uint64_t bytes, void *dst,
                                fth_err *err)
{
    member *m = self;
    FTH_TRY(check_range(m, offset, bytes, err));
    if (bytes == 0) return FTH_OK;
    const fth_status s = inflate_at(m, offset, bytes, dst, err);
    if (s != FTH_OK) {
        fth__inflate_end(m->z);
        m->z = NULL;
    }
    return s;
}

static void close_member(void *self)
{
    member *m = self;
    fth__inflate_end(m->z);
    fth__heap_free(m->mem, m->room);
    fth__heap_free(m->mem, m->input);
    fth__heap_free(m->mem, m->skip);
    fth_file_close(m->file);
    pthread_mutex_destroy(&m->lock);
    fth__heap_free(m->mem, m);
}

/* Where the data start, from the local header, whose lengths may differ from the directory's. */
static fth_status find_start(const fth__zip *z, const fth__zip_entry *e, const char *label,
                             uint64_t *start, fth_err *err)
{
    unsigned char p[FTH__ZIP_LOCAL];
    FTH_ASSERT(e->header <= z->directory);
    if (z->directory - e->header < sizeof p)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, e->header,
                              "no room for the header of '%s'", e->name);
    FTH_TRY(fth_file_read(z->file, e->header, sizeof p, p, label, err));
    *start = e->header + sizeof p + fth__zip_get(p + 26, 2) + fth__zip_get(p + 28, 2);
    if (fth__zip_get(p, 4) != FTH__ZIP_SIG_LOCAL || *start > z->directory ||
        e->packed > z->directory - *start)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, e->header,
                              "the header of '%s' should be here, and %" PRIu64 " bytes behind it",
                              e->name, e->packed);
    return FTH_OK;
}

static fth_status check_entry(const fth__zip *z, const fth__zip_entry *e, fth_err *err)
{
    if (e->flags & 1)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, z->file->path, e->header,
                              "'%s' is encrypted", e->name);
    if (e->method != FTH__ZIP_STORED && e->method != FTH__ZIP_DEFLATED)
        return FTH__FILE_FAIL(
            err, FTH_E_FILE_FEATURE, z->file->path, e->header,
            "'%s' is packed with zip method %d; stored (0) and deflated (8) are read", e->name,
            e->method);
    /* Deflate makes at most 1032 bytes of one: a larger claim is a lie, and would be planned for.
     */
    if (e->method == FTH__ZIP_STORED ? e->packed != e->bytes : e->bytes / BEST_RATIO > e->packed)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, e->header,
                              "'%s' cannot have %" PRIu64 " bytes, packed as %" PRIu64, e->name,
                              e->bytes, e->packed);
    return FTH_OK;
}

fth_status fth__zip_member(const fth__zip *z, const fth__zip_entry *e, const char *label,
                           fth__bytes *out, fth_err *err)
{
    *out = (fth__bytes){0};
    FTH_TRY(check_entry(z, e, err));
    uint64_t start = 0;
    FTH_TRY(find_start(z, e, label, &start, err));
    void *block = NULL;
    FTH_TRY(fth__heap_take(z->mem, 1, sizeof(member), &block, err));
    member *m = block;
    *m = (member){.mem = z->mem,
                  .file = fth__file_retain(z->file),
                  .label = label,
                  .start = start,
                  .packed = e->packed,
                  .bytes = e->bytes,
                  .wanted_crc = e->crc};
    pthread_mutex_init(&m->lock, NULL);
    if (e->method == FTH__ZIP_DEFLATED) {
        m->input = fth__heap_alloc(z->mem, INPUT);
        m->skip = fth__heap_alloc(z->mem, SKIP);
        if (!m->input || !m->skip) {
            close_member(m);
            return FTH_FAIL(err, FTH_E_NOMEM, "no memory to open %s", label);
        }
    }
    *out = (fth__bytes){.self = m,
                        .read = e->method == FTH__ZIP_STORED ? read_stored : read_deflated,
                        .close = close_member,
                        .concurrent = e->method == FTH__ZIP_STORED};
    return FTH_OK;
}
