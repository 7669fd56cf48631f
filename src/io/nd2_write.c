/* nd2_write.c - writing an ND2 file: signature, metadata, frames, times, map.
 *
 * The attributes come before the frames, where microscopes write them behind: a file that is cut
 * off is then still known by its size, and the frames it has can be read. Padding and pixels that
 * are zero are never written, only stepped over.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/nd2.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SPARE = 20 }; /* bytes behind a name that readers count on */

typedef struct writer {
    fth_mem *mem;
    const fth_nd2_options *o;
    fth__writer file;
    fth__nd2_map map;
    uint64_t at; /* where the next chunk begins */
    int64_t stride[3];
    uint64_t row_bytes, dense_bytes; /* of a row; of a picture in memory */
    uint8_t *pixels, *rows;          /* rows: NULL where pixels can be written as they are */
    void *work;                      /* of zlib */
    uint64_t packed_at;
    fth_status status; /* of a write while packing */
    fth_err *err;
} writer;

/* ---- options ---- */

static fth_status check_order(const char *order, fth_err *err)
{
    const bool good =
        strlen(order) == 3 && strchr(order, 't') && strchr(order, 'p') && strchr(order, 'z');
    return good ? FTH_OK
                : FTH_FAIL(err, FTH_E_USAGE,
                           "loops are in the order '%s'; it must have t, p and z once", order);
}

static fth_status check(const fth_nd2_options *o, fth_err *err)
{
    enum { LONGEST = 1 << 24 }; /* what nd2_meta.c reads */
    uint64_t bytes = 0;
    int64_t frames = 1;
    FTH_TRY(fth__shape_check(o->dtype, FTH_IMAGES_AXES, o->size, NULL, &bytes, err));
    if (o->dtype != FTH_U8 && o->dtype != FTH_U16 && o->dtype != FTH_F32)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "ND2 holds u8, u16 and f32, not %s",
                        fth_dtype_name(o->dtype));
    for (int a = 0; a < FTH_IMAGES_AXES; a++) {
        if (o->size[a] < 1 || o->size[a] > (a == FTH_IMAGES_C ? 1000 : LONGEST))
            return FTH_FAIL(err, FTH_E_USAGE, "an ND2 file with %" PRId64 " along %c", o->size[a],
                            "tpzcyx"[a]);
        if (a < FTH_IMAGES_C) frames *= o->size[a]; /* the product of all was checked above */
    }
    if (frames >= LONGEST)
        return FTH_FAIL(err, FTH_E_USAGE, "an ND2 file of %" PRId64 " frames; %d is the most",
                        frames, LONGEST - 1);
    if (o->rgb && o->size[FTH_IMAGES_C] != 3)
        return FTH_FAIL(err, FTH_E_USAGE, "a colour picture has 3 channels, not %" PRId64,
                        o->size[FTH_IMAGES_C]);
    if (o->row_multiple < 0 || o->row_multiple > FTH__ND2_PAGE)
        return FTH_FAIL(err, FTH_E_USAGE, "rows of a multiple of %d bytes", o->row_multiple);
    return check_order(o->order ? o->order : "tpz", err);
}

static void set_strides(writer *w)
{
    const char *order = w->o->order ? w->o->order : "tpz";
    int64_t product = 1;
    for (int i = 3; i-- > 0;) {
        const int axis = order[i] == 't'   ? FTH_IMAGES_T
                         : order[i] == 'p' ? FTH_IMAGES_P
                                           : FTH_IMAGES_Z;
        w->stride[axis] = product;
        product *= w->o->size[axis];
    }
}

/* ---- chunks ---- */

/* The head of a chunk whose name has a field of `name_bytes`. */
static fth_status put_head(writer *w, const char *name, uint64_t name_bytes, uint64_t bytes,
                           fth_err *err)
{
    char head[FTH__ND2_HEAD + 80];
    const uint32_t magic = FTH__ND2_MAGIC, n = (uint32_t)name_bytes;
    memcpy(head, &magic, 4);
    memcpy(head + 4, &n, 4);
    memcpy(head + 8, &bytes, 8);
    const int used = snprintf(head + FTH__ND2_HEAD, 80, "%s!", name);
    FTH_ASSERT(used > 0 && used < 80 && (uint64_t)used <= name_bytes);
    FTH_ASSERT(w->at % FTH__ND2_PAGE == 0);
    return fth__writer_write(&w->file, w->at, FTH__ND2_HEAD + (uint64_t)used, head, err);
}

/* The name's field is so long that the data end with a page. */
static uint64_t name_field(const char *name, uint64_t bytes)
{
    const uint64_t least = strlen(name) + 1 + SPARE;
    const uint64_t over = (FTH__ND2_HEAD + least + bytes) % FTH__ND2_PAGE;
    return least + (over ? FTH__ND2_PAGE - over : 0);
}

/* The chunk that was written from w->at on, with data of so many bytes, is complete. */
static fth_status finish_chunk(writer *w, const char *name, uint64_t name_bytes, uint64_t bytes,
                               fth_err *err)
{
    FTH_TRY(fth__nd2_map_add(&w->map, name, (fth__nd2_chunk){w->at, bytes}, err));
    w->at += FTH__ND2_HEAD + name_bytes + bytes;
    w->at += (FTH__ND2_PAGE - w->at % FTH__ND2_PAGE) % FTH__ND2_PAGE;
    FTH_ASSERT(w->at % FTH__ND2_PAGE == 0);
    return FTH_OK;
}

static fth_status put_tree(writer *w, fth__nd2_part part, fth_err *err)
{
    char name[40];
    fth__lv_writer tree = {.mem = w->mem, .err = err};
    fth__str_copy(name, sizeof name, fth__nd2_part_name(part));
    name[strlen(name) - 1] = 0;
    fth__nd2_put_part(&tree, part, w->o);
    fth_status s = tree.status;
    const uint64_t bytes = (uint64_t)tree.bytes, field = name_field(name, bytes);
    if (s == FTH_OK && bytes > 0) { /* no loops, no experiment */
        s = put_head(w, name, field, bytes, err);
        if (s == FTH_OK)
            s = fth__writer_write(&w->file, w->at + FTH__ND2_HEAD + field, bytes, tree.data, err);
        if (s == FTH_OK) s = finish_chunk(w, name, field, bytes, err);
    }
    fth__lv_writer_clear(&tree);
    return s;
}

static fth_status put_signature(writer *w, fth_err *err)
{
    char data[64] = "Ver3.0";
    FTH_TRY(put_head(w, "ND2 FILE SIGNATURE CHUNK NAME01", 32, sizeof data, err));
    FTH_TRY(fth__writer_write(&w->file, FTH__ND2_HEAD + 32, sizeof data, data, err));
    w->at = FTH__ND2_PAGE;
    return FTH_OK;
}

/* ---- frames ---- */

static double time_of(const writer *w, int64_t t, int64_t p, int64_t z)
{
    const int64_t *size = w->o->size;
    if (!w->o->time_ms) return (double)t * w->o->period_ms;
    return w->o->time_ms[(t * size[FTH_IMAGES_P] + p) * size[FTH_IMAGES_Z] + z];
}

/* c y x to rows of pixels whose components lie side by side. */
static void weave(const writer *w)
{
    const int64_t c = w->o->size[FTH_IMAGES_C], ny = w->o->size[FTH_IMAGES_Y];
    const int64_t nx = w->o->size[FTH_IMAGES_X], e = fth_dtype_size(w->o->dtype);
    const uint8_t *from = w->pixels;
    for (int64_t k = 0; k < c; k++)
        for (int64_t y = 0; y < ny; y++) {
            uint8_t *to = w->rows + (uint64_t)y * w->row_bytes + k * e;
            for (int64_t x = 0; x < nx; x++, to += c * e, from += e) memcpy(to, from, (size_t)e);
        }
    FTH_ASSERT(from == w->pixels + w->dense_bytes);
}

static bool is_zero(const uint8_t *v, uint64_t n)
{
    return n == 0 || (v[0] == 0 && memcmp(v, v + 1, n - 1) == 0);
}

static void put_packed(void *to, const void *bytes, uint64_t n)
{
    writer *w = to;
    if (w->status == FTH_OK)
        w->status = fth__writer_write(&w->file, w->packed_at, n, bytes, w->err);
    w->packed_at += n;
}

/* The pixels of a frame from `at` on; how many bytes they take. */
static fth_status put_pixels(writer *w, bool drawn, uint64_t at, uint64_t *bytes, fth_err *err)
{
    *bytes = w->row_bytes * (uint64_t)w->o->size[FTH_IMAGES_Y];
    const uint8_t *rows = w->rows ? w->rows : w->pixels;
    if (drawn && w->rows) weave(w);
    if (!w->o->packed)
        return drawn && !is_zero(rows, *bytes) ? fth__writer_write(&w->file, at, *bytes, rows, err)
                                               : FTH_OK;
    w->packed_at = at;
    w->err = err;
    fth__deflate *z = fth__deflate_begin(w->work, FTH__WRAP_ZLIB, put_packed, w);
    if (z) fth__deflate_add(z, rows, *bytes);
    const bool good = z && fth__deflate_end(z);
    *bytes = w->packed_at - at;
    FTH_TRY(w->status);
    return good ? FTH_OK : FTH_FAIL(err, FTH_E_LIBRARY, "zlib could not compress a frame");
}

static fth_status put_frame(writer *w, int64_t number, double time_ms, bool drawn, bool headed,
                            fth_err *err)
{
    char name[40];
    uint64_t bytes;
    const uint64_t data = w->at + FTH__ND2_HEAD + FTH__ND2_FRAME_NAME;
    snprintf(name, sizeof name, "ImageDataSeq|%" PRId64, number);
    FTH_TRY(put_pixels(w, drawn, data + FTH__ND2_PREFIX, &bytes, err));
    bytes += FTH__ND2_PREFIX;
    if (headed) FTH_TRY(put_head(w, name, FTH__ND2_FRAME_NAME, bytes, err));
    if (headed && !is_zero((const uint8_t *)&time_ms, sizeof time_ms))
        FTH_TRY(fth__writer_write(&w->file, data, sizeof time_ms, &time_ms, err));
    return finish_chunk(w, name, FTH__ND2_FRAME_NAME, bytes, err);
}

/* Where frame `number` is on its axis. */
static int64_t index_of(const writer *w, int64_t number, int axis)
{
    FTH_ASSERT(w->stride[axis] > 0);
    return number / w->stride[axis] % w->o->size[axis];
}

static fth_status put_frames(writer *w, fth_nd2_draw *draw, void *user, int64_t heads, fth_err *err)
{
    const int64_t *size = w->o->size, n = size[0] * size[1] * size[2];
    for (int64_t i = 0; i < n; i++) {
        const int64_t t = index_of(w, i, 0), p = index_of(w, i, 1), z = index_of(w, i, 2);
        bool present = true;
        if (draw) FTH_TRY(draw(user, t, p, z, w->pixels, &present, err));
        if (present)
            FTH_TRY(put_frame(w, i, time_of(w, t, p, z), draw != NULL, i % heads == 0 || i == n - 1,
                              err));
    }
    return FTH_OK;
}

/* ---- the end ---- */

static fth_status put_times(writer *w, fth_err *err)
{
    static const char name[] = "CustomData|AcqTimesCache";
    const int64_t *size = w->o->size, n = size[0] * size[1] * size[2];
    const uint64_t bytes = 8 * (uint64_t)n, field = name_field(name, bytes);
    double piece[512];
    FTH_TRY(put_head(w, name, field, bytes, err));
    for (int64_t i = 0; i < n;) {
        const int64_t from = i;
        for (; i < n && i - from < 512; i++)
            piece[i - from] = time_of(w, index_of(w, i, 0), index_of(w, i, 1), index_of(w, i, 2));
        FTH_TRY(fth__writer_write(&w->file, w->at + FTH__ND2_HEAD + field + 8 * (uint64_t)from,
                                  8 * (uint64_t)(i - from), piece, err));
    }
    return finish_chunk(w, name, field, bytes, err);
}

/* Entries, an end, zeros, and the trailer as the last bytes of a page. */
static fth_status put_map(writer *w, fth_err *err)
{
    enum { NAME = 32 };
    char end[FTH__ND2_TRAILER];
    memcpy(end, FTH__ND2_MAP_END, NAME);
    memcpy(end + NAME, &w->at, 8);
    const uint64_t data = w->at + FTH__ND2_HEAD + NAME;
    uint64_t size = data + w->map.bytes + 2 * sizeof end + 8;
    size += (FTH__ND2_PAGE - size % FTH__ND2_PAGE) % FTH__ND2_PAGE;
    FTH_ASSERT(data + w->map.bytes + 2 * sizeof end <= size);
    FTH_TRY(put_head(w, "ND2 FILEMAP SIGNATURE NAME 0001", NAME, size - data, err));
    FTH_TRY(fth__writer_write(&w->file, data, w->map.bytes, w->map.text, err));
    FTH_TRY(fth__writer_write(&w->file, data + w->map.bytes, sizeof end, end, err));
    return fth__writer_write(&w->file, size - sizeof end, sizeof end, end, err);
}

static fth_status put_all(writer *w, fth_nd2_draw *draw, void *user, int64_t heads, fth_err *err)
{
    FTH_TRY(put_signature(w, err));
    FTH_TRY(put_tree(w, FTH__ND2_ATTRIBUTES, err));
    FTH_TRY(put_tree(w, FTH__ND2_EXPERIMENT, err));
    FTH_TRY(put_tree(w, FTH__ND2_PICTURE, err));
    FTH_TRY(put_frames(w, draw, user, heads, err));
    FTH_TRY(put_tree(w, FTH__ND2_TEXT, err));
    FTH_TRY(put_times(w, err));
    return put_map(w, err);
}

/* Pictures without a drawer are needed only to be packed. */
static fth_status take_memory(writer *w, bool drawn, fth_err *err)
{
    const fth_nd2_options *o = w->o;
    const uint64_t rows = w->row_bytes * (uint64_t)o->size[FTH_IMAGES_Y];
    void *block = NULL;
    if (drawn || o->packed) {
        FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, w->dense_bytes, "an ND2 picture", &block, err));
        w->pixels = block;
        memset(block, 0, w->dense_bytes);
    }
    if ((drawn || o->packed) && (o->size[FTH_IMAGES_C] > 1 || rows != w->dense_bytes)) {
        FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, rows, "rows of an ND2 picture", &block, err));
        w->rows = block;
        memset(block, 0, rows);
    }
    if (o->packed) FTH_TRY(fth__heap_take(w->mem, 1, fth__deflate_bytes(), &w->work, err));
    return FTH_OK;
}

fth_status fth__nd2_write(fth_mem *mem, const char *path, const fth_nd2_options *options,
                          fth_nd2_draw *draw, void *user, int64_t heads, fth_err *err)
{
    FTH_TRY(check(options, err));
    const int64_t *size = options->size;
    writer w = {.mem = mem, .o = options, .map = {.mem = mem}};
    w.row_bytes = fth__nd2_row_bytes(options);
    w.dense_bytes = (uint64_t)(size[FTH_IMAGES_C] * size[FTH_IMAGES_Y] * size[FTH_IMAGES_X] *
                               fth_dtype_size(options->dtype));
    set_strides(&w);
    fth_status s = take_memory(&w, draw != NULL, err);
    if (s == FTH_OK) s = fth__writer_open(&w.file, mem, path, err);
    if (s == FTH_OK) {
        s = put_all(&w, draw, user, heads, err);
        if (s == FTH_OK)
            s = fth__writer_commit(&w.file, NULL, err);
        else
            fth__writer_abandon(&w.file);
    }
    fth__nd2_map_clear(&w.map);
    if (w.pixels) (void)fth_mem_release(mem, w.pixels, NULL);
    if (w.rows) (void)fth_mem_release(mem, w.rows, NULL);
    fth__heap_free(mem, w.work);
    return s;
}

fth_status fth_nd2_write(fth_mem *mem, const char *path, const fth_nd2_options *options,
                         fth_nd2_draw *draw, void *user, fth_err *err)
{
    if (!mem || !path || !options)
        return FTH_FAIL(err, FTH_E_USAGE, "an ND2 file needs memory, a path and options");
    return fth__nd2_write(mem, path, options, draw, user, 1, err);
}

/* ---- from a source ---- */

static fth_status read_source(void *user, int64_t t, int64_t p, int64_t z, void *pixels,
                              bool *present, fth_err *err)
{
    const fth_source *s = user;
    const int64_t lo[FTH_IMAGES_AXES] = {t, p, z};
    const int64_t n[FTH_IMAGES_AXES] = {
        1, 1, 1, s->size[FTH_IMAGES_C], s->size[FTH_IMAGES_Y], s->size[FTH_IMAGES_X]};
    (void)present;
    return fth__source_read(s, lo, n, pixels, err);
}

fth_status fth_nd2_write_source(fth_mem *mem, const char *path, const fth_nd2_options *options,
                                const fth_source *source, fth_err *err)
{
    if (!source || source->n_axes != FTH_IMAGES_AXES || !options)
        return FTH_FAIL(err, FTH_E_USAGE, "an ND2 file needs a source over t p z c y x");
    fth_source from = *source;
    fth_nd2_options o = *options;
    memcpy(o.size, source->size, sizeof o.size);
    o.dtype = source->dtype;
    return fth_nd2_write(mem, path, &o, read_source, &from, err);
}
