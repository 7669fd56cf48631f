/* nd2_chunks.c - the chunks of an ND2 file: the map at its end, and what to do without it.
 *
 * The last 40 bytes say where the map is. Where they do not, or no map stands there, it is searched
 * around that place and around the end. Where it is in neither, all chunks are found by going from
 * one to the next; where the next is no chunk, the length before it is not believed, and the next
 * page that starts with the magic number goes on. The map made so has the layout of a map in a
 * file.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/nd2.h"

#include <inttypes.h>
#include <string.h>

enum {
    LOOK = 80,             /* bytes that tell what a chunk is: its head and 64 of its name */
    BLOCK = 256 << 10,     /* read at once when pages are searched: 64 pages; not tuned */
    LONGEST_NAME = 1 << 16 /* bytes of the field, which is mostly padding: microscopes write 4072 */
};

static uint64_t get_u64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t get_u32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- one chunk ---- */

/* From `n` bytes of its beginning. */
static bool parse_head(const char *bytes, uint64_t n, uint64_t offset, fth__nd2_head *out)
{
    if (n < FTH__ND2_HEAD || get_u32(bytes) != FTH__ND2_MAGIC) return false;
    const uint64_t name_bytes = get_u32(bytes + 4);
    if (name_bytes > LONGEST_NAME) return false;
    out->data = offset + FTH__ND2_HEAD + name_bytes;
    out->bytes = get_u64(bytes + 8);
    const uint64_t seen =
        fth__min_u64(fth__min_u64(name_bytes, n - FTH__ND2_HEAD), sizeof out->name - 1);
    memcpy(out->name, bytes + FTH__ND2_HEAD, seen);
    out->name[seen] = 0;
    char *end = strchr(out->name, '!');
    if (end) *end = 0;
    return end != NULL;
}

fth_status fth__nd2_head_read(fth_file *f, uint64_t offset, fth__nd2_head *out, bool *there,
                              fth_err *err)
{
    char bytes[LOOK];
    *there = false;
    if (offset >= f->bytes) return FTH_OK;
    const uint64_t n = fth__min_u64(LOOK, f->bytes - offset);
    FTH_TRY(fth_file_read(f, offset, n, bytes, "the head of a chunk", err));
    *there = parse_head(bytes, n, offset, out);
    return FTH_OK;
}

/* ---- the text of a map ---- */

void fth__nd2_map_clear(fth__nd2_map *m)
{
    if (m->text) (void)fth_mem_release(m->mem, m->text, NULL);
    *m = (fth__nd2_map){.mem = m->mem};
}

static fth_status map_make(fth__nd2_map *m, uint64_t room, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, room, "map of an ND2 file", &block, err));
    m->text = block;
    m->room = room;
    return FTH_OK;
}

fth_status fth__nd2_map_add(fth__nd2_map *m, const char *name, fth__nd2_chunk chunk, fth_err *err)
{
    const uint64_t n = strlen(name), need = m->bytes + n + 1 + 16;
    if (need > m->room) {
        fth__nd2_map more = {.mem = m->mem};
        FTH_TRY(map_make(&more, fth__max_u64(2 * m->room, 64 << 10), err));
        if (m->text) memcpy(more.text, m->text, m->bytes);
        more.bytes = m->bytes;
        fth__nd2_map_clear(m);
        *m = more;
    }
    FTH_ASSERT(need <= m->room); /* names have less than 64 bytes, a map at least 64 KiB */
    char *to = m->text + m->bytes;
    memcpy(to, name, n);
    to[n] = '!';
    memcpy(to + n + 1, &chunk.offset, 8);
    memcpy(to + n + 9, &chunk.bytes, 8);
    m->bytes = need;
    return FTH_OK;
}

bool fth__nd2_map_next(const fth__nd2_map *m, uint64_t *at, fth__nd2_entry *out)
{
    if (*at >= m->bytes) return false;
    const char *name = m->text + *at;
    const uint64_t left = m->bytes - *at;
    const char *end = memchr(name, '!', left);
    if (!end) return false;
    const uint64_t n = (uint64_t)(end - name) + 1;
    if (left - n < 16 ||
        (n == sizeof FTH__ND2_MAP_END - 1 && memcmp(name, FTH__ND2_MAP_END, n) == 0))
        return false;
    *out = (fth__nd2_entry){name, n, {get_u64(name + n), get_u64(name + n + 8)}};
    if (out->chunk.bytes == out->chunk.offset) out->chunk.bytes = FTH__ND2_UNKNOWN;
    *at += n + 16;
    FTH_ASSERT(*at <= m->bytes);
    return true;
}

int64_t fth__nd2_frame_number(const fth__nd2_entry *e)
{
    static const char prefix[] = "ImageDataSeq|";
    enum { PREFIX = sizeof prefix - 1, DIGITS = 18 };
    if (e->name_bytes < PREFIX + 2 || e->name_bytes > PREFIX + 1 + DIGITS ||
        memcmp(e->name, prefix, PREFIX) != 0)
        return -1;
    int64_t v = 0;
    for (uint64_t i = PREFIX; i + 1 < e->name_bytes; i++) {
        if (e->name[i] < '0' || e->name[i] > '9') return -1;
        v = 10 * v + (e->name[i] - '0');
    }
    return v;
}

/* ---- the map of the file ---- */

/* Is there a map at `offset` whose entries come to their end? Then it is read. */
static fth_status try_map(fth__nd2_map *m, fth_file *f, uint64_t offset, bool *found, fth_err *err)
{
    fth__nd2_head head;
    FTH_TRY(fth__nd2_head_read(f, offset, &head, found, err));
    if (!*found) return FTH_OK;
    *found = strcmp(head.name, "ND2 FILEMAP SIGNATURE NAME 0001") == 0 && head.data <= f->bytes;
    if (!*found) return FTH_OK;
    FTH_TRY(map_make(m, fth__min_u64(head.bytes, f->bytes - head.data), err));
    m->bytes = m->room;
    fth_status s = fth_file_read(f, head.data, m->bytes, m->text, "the chunk map", err);
    if (s == FTH_OK) {
        fth__nd2_entry e;
        uint64_t at = 0;
        while (fth__nd2_map_next(m, &at, &e)) {
        }
        enum { END = sizeof FTH__ND2_MAP_END - 1 };
        *found = m->bytes - at >= END && memcmp(m->text + at, FTH__ND2_MAP_END, END) == 0;
        m->bytes = at;
    }
    if (s != FTH_OK || !*found) fth__nd2_map_clear(m);
    return s;
}

/* The last map within [from, to) that is whole. */
static fth_status search_map(fth__nd2_map *m, fth_file *f, uint64_t from, uint64_t to, bool *found,
                             uint64_t *where, fth_err *err)
{
    enum { NAME = sizeof FTH__ND2_MAP_NAME - 1 };
    void *block = NULL;
    *found = false;
    FTH_ASSERT(from <= to && to <= f->bytes);
    if (to - from < NAME) return FTH_OK;
    FTH_TRY(fth_mem_take(f->mem, FTH_MEM_ANY, to - from, "search for the map of an ND2 file",
                         &block, err));
    const char *text = block;
    fth_status s = fth_file_read(f, from, to - from, block, "bytes near the chunk map", err);
    for (uint64_t i = to - from - NAME + 1; s == FTH_OK && !*found && i-- > 0;) {
        if (text[i] != 'N' || memcmp(text + i, FTH__ND2_MAP_NAME, NAME) != 0) continue;
        if (from + i < FTH__ND2_HEAD) continue;
        *where = from + i - FTH__ND2_HEAD;
        s = try_map(m, f, *where, found, err);
    }
    (void)fth_mem_release(f->mem, block, NULL);
    return s;
}

fth_status fth__nd2_map_load(fth__nd2_map *m, fth_file *f, uint64_t search, bool *found,
                             fth__text *damage, fth_err *err)
{
    char trailer[FTH__ND2_TRAILER] = {0};
    const uint64_t size = f->bytes;
    *m = (fth__nd2_map){.mem = f->mem};
    *found = false;
    if (size < FTH__ND2_TRAILER) return FTH_OK;
    FTH_TRY(fth_file_read(f, size - sizeof trailer, sizeof trailer, trailer, "the trailer", err));
    const bool signed_ = memcmp(trailer, FTH__ND2_MAP_END, sizeof trailer - 8) == 0;
    const uint64_t place = signed_ ? get_u64(trailer + sizeof trailer - 8) : size;
    if (signed_) FTH_TRY(try_map(m, f, place, found, err));
    if (*found) return FTH_OK;
    if (signed_)
        fth__text_add(damage, "no chunk map at byte %" PRIu64 ", where the end of the file says; ",
                      place);
    else
        fth__text_add(damage, "the file does not end as an ND2 file does; ");
    uint64_t where = 0;
    const uint64_t places[2] = {place, size};
    for (int i = place < size ? 0 : 1; i < 2 && !*found; i++) {
        const uint64_t from = places[i] - fth__min_u64(places[i], search);
        const uint64_t to = places[i] + fth__min_u64(size - places[i], search);
        FTH_TRY(search_map(m, f, from, to, found, &where, err));
    }
    if (*found) fth__text_add(damage, "the map was found at byte %" PRIu64 "; ", where);
    return FTH_OK;
}

/* ---- without a map ---- */

/* The first page from `at` on that starts with the magic number; the end of the file if none. */
static fth_status next_magic(fth_file *f, char *block, uint64_t *at, fth_err *err)
{
    FTH_ASSERT(*at % FTH__ND2_PAGE == 0);
    while (*at < f->bytes) {
        const uint64_t n = fth__min_u64(BLOCK, f->bytes - *at);
        FTH_TRY(fth_file_read(f, *at, n, block, "pages without a map", err));
        for (uint64_t i = 0; i + 4 <= n; i += FTH__ND2_PAGE)
            if (get_u32(block + i) == FTH__ND2_MAGIC) {
                *at += i;
                return FTH_OK;
            }
        *at += n;
    }
    *at = f->bytes;
    return FTH_OK;
}

/* Bytes to the end of the frame that is known to begin here; 0: none is. */
static uint64_t known_frame(const fth__nd2_known *known, uint64_t at)
{
    int64_t low = 0, high = known ? known->n : 0;
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        if (known->frame[mid].offset == at)
            return FTH__ND2_HEAD + FTH__ND2_FRAME_NAME + known->frame[mid].bytes;
        if (known->frame[mid].offset < at)
            low = mid + 1;
        else
            high = mid;
    }
    return 0;
}

/* Where the chunk after this one starts, if its length can be believed; else the next page. */
static fth_status step(fth_file *f, uint64_t at, const fth__nd2_head *head,
                       const fth__nd2_known *known, uint64_t *next, fth_err *err)
{
    uint64_t end = 0, page = 0;
    fth__nd2_head after;
    *next = at + FTH__ND2_PAGE;
    if (!fth__add_u64(head->data, head->bytes, &end) || end > f->bytes ||
        !fth__round_up_u64(end, FTH__ND2_PAGE, &page))
        return FTH_OK;
    bool there = page >= f->bytes || known_frame(known, page) > 0;
    if (!there) FTH_TRY(fth__nd2_head_read(f, page, &after, &there, err));
    if (there) *next = page;
    return FTH_OK;
}

/* One chunk, or the way to the next where none begins. */
static fth_status scan_at(fth__nd2_map *m, fth_file *f, const fth__nd2_known *known, char *block,
                          uint64_t at, uint64_t *next, fth_err *err)
{
    fth__nd2_head head;
    bool there = false;
    const uint64_t known_bytes = known_frame(known, at);
    *next = at + FTH__ND2_PAGE;
    if (known_bytes > 0)
        return fth__round_up_u64(at + known_bytes, FTH__ND2_PAGE, next)
                   ? FTH_OK
                   : FTH_FAIL(err, FTH_E_INTERNAL, "a frame that was not checked");
    FTH_TRY(fth__nd2_head_read(f, at, &head, &there, err));
    if (!there) return next_magic(f, block, next, err);
    if (at > 0) FTH_TRY(fth__nd2_map_add(m, head.name, (fth__nd2_chunk){at, head.bytes}, err));
    return step(f, at, &head, known, next, err);
}

fth_status fth__nd2_map_scan(fth__nd2_map *m, fth_file *f, const fth__nd2_known *known,
                             fth_err *err)
{
    *m = (fth__nd2_map){.mem = f->mem};
    void *block = NULL;
    FTH_TRY(fth_mem_take(f->mem, FTH_MEM_ANY, BLOCK, "scan of an ND2 file", &block, err));
    fth_status s = FTH_OK;
    for (uint64_t at = 0; s == FTH_OK && at < f->bytes;) {
        const uint64_t here = at;
        s = scan_at(m, f, known, block, here, &at, err);
        FTH_ASSERT(s != FTH_OK || at > here); /* or it would never end */
    }
    (void)fth_mem_release(f->mem, block, NULL);
    if (s != FTH_OK) fth__nd2_map_clear(m);
    return s;
}
