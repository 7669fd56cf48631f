/* ngff_out.c - one image and its smaller copies.
 *
 * Copies of a time point are made by the thread that completes it, from what was just written: so
 * rectangles may come in any order, and no plane need be in memory. Sums are whole numbers, or of
 * fixed order: the same bits whoever makes them.
 */
#include "io/ngff_out.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "io/images.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

enum { LEVELS = 3 }; /* of a pyramid when the caller does not say: a 2048 camera ends at 512 */

/* ---- half the size ---- */

#define HALVE(name, type, wide, mean)                                                              \
    static void name(const type *from, int64_t rows, int64_t columns, type *to)                    \
    {                                                                                              \
        for (int64_t y = 0; y < rows; y += 2) {                                                    \
            const type *a = from + y * columns, *b = y + 1 < rows ? a + columns : a;               \
            for (int64_t x = 0; x + 1 < columns; x += 2)                                           \
                *to++ = mean((wide)a[x] + (wide)a[x + 1] + ((wide)b[x] + (wide)b[x + 1]));         \
            if (columns % 2) {                                                                     \
                const wide edge = (wide)a[columns - 1] + (wide)b[columns - 1];                     \
                *to++ = mean(edge + edge);                                                         \
            }                                                                                      \
        }                                                                                          \
    }
/* At an odd edge pixels count twice, which gives the mean of those there are. */
#define MEAN_U32(sum) (uint32_t)(((sum) + 2) / 4)
/* Rounded half up below 0 too: what is divided is shifted above it first. */
#define MEAN_I8(sum) (int8_t)(((sum) + 2 + (4 << 8)) / 4 - (1 << 8))
#define MEAN_I16(sum) (int16_t)(((sum) + 2 + (4 << 16)) / 4 - (1 << 16))
#define MEAN_I32(sum) (int32_t)(((sum) + 2 + ((int64_t)4 << 32)) / 4 - ((int64_t)1 << 32))
#define MEAN_U8(sum) (uint8_t)(((sum) + 2) / 4)
#define MEAN_U16(sum) (uint16_t)(((sum) + 2) / 4)
#define MEAN_F32(sum) ((sum)*0.25f)
HALVE(halve_u8, uint8_t, uint32_t, MEAN_U8)
HALVE(halve_u16, uint16_t, uint32_t, MEAN_U16)
HALVE(halve_u32, uint32_t, uint64_t, MEAN_U32)
HALVE(halve_i8, int8_t, int32_t, MEAN_I8)
HALVE(halve_i16, int16_t, int32_t, MEAN_I16)
HALVE(halve_i32, int32_t, int64_t, MEAN_I32)
HALVE(halve_f32, float, float, MEAN_F32)

void fth__ngff_halve(fth_dtype dtype, const void *from, int64_t rows, int64_t columns, void *to)
{
    FTH_ASSERT(fth__images_dtype(dtype));
    if (dtype == FTH_U8) halve_u8(from, rows, columns, to);
    if (dtype == FTH_U16) halve_u16(from, rows, columns, to);
    if (dtype == FTH_U32) halve_u32(from, rows, columns, to);
    if (dtype == FTH_I8) halve_i8(from, rows, columns, to);
    if (dtype == FTH_I16) halve_i16(from, rows, columns, to);
    if (dtype == FTH_I32) halve_i32(from, rows, columns, to);
    if (dtype == FTH_F32) halve_f32(from, rows, columns, to);
}

/* ---- the spec ---- */

static fth_status check(const fth_ngff_image *i, fth_err *err)
{
    if (i->version != 0 && i->version != 4 && i->version != 5)
        return FTH_FAIL(err, FTH_E_USAGE, "NGFF version 0.%d; 0.4 and 0.5 are written", i->version);
    if (!fth__images_dtype(i->dtype))
        return FTH_FAIL(err, FTH_E_DTYPE_OP,
                        "images are integers of 8, 16 or 32 bits, or f32, not %s",
                        fth_dtype_name(i->dtype));
    if (i->t < 1 || i->c < 1 || i->z < 0 || i->y < 1 || i->x < 1 || i->tile < 0 || i->levels < 0 ||
        i->levels > FTH__NGFF_LEVELS)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "an image of t %" PRId64 " c %" PRId64 " z %" PRId64 " y %" PRId64
                        " x %" PRId64 " with tiles of %" PRId64 " and %d levels makes no sense",
                        i->t, i->c, i->z, i->y, i->x, i->tile, i->levels);
    return FTH_OK;
}

/* The array of one level, whose planes have these sizes. */
static fth_status make_level(fth__ngff_spec *s, const fth_ngff_image *i, int64_t y, int64_t x,
                             fth_err *err)
{
    static const char *const names[] = {"t", "c", "z", "y", "x"};
    fth_zarr_array a = {
        .format = s->version == 4 ? 2 : 3, .dtype = i->dtype, .packing = i->packing};
    FTH_ASSERT(s->levels < FTH__NGFF_LEVELS);
    const int64_t size[] = {i->t, i->c, i->z, y, x}, chunk[] = {1, 1, 1, i->tile, i->tile};
    for (int k = 0; k < 5; k++) {
        if (k == 2 && i->z == 0) continue;
        const int at = a.n_axes++;
        a.size[at] = size[k];
        a.chunk[at] = chunk[k];
        const int64_t cut = chunk[k] ? chunk[k] : size[k];
        a.per_shard[at] = k == 0 || s->version == 4 ? 1 : fth__ceil_div_i64(size[k], cut);
        a.axis[at] = names[k];
        s->axes[at] = names[k][0];
    }
    return fth__zarr_meta_make(&s->level[s->levels++], &a, err);
}

/* Rows that are read at once so that the next level has rows of whole chunks. */
static int64_t strip(const fth__zarr_meta *next)
{
    return next->chunk[next->n_axes - 2];
}

static fth_status take_work(fth__ngff_spec *s, fth_err *err)
{
    const uint64_t item = (uint64_t)fth_dtype_size(s->level[0].dtype);
    const int x = s->level[0].n_axes - 1;
    uint64_t from = 0, to = 0;
    void *block = NULL;
    for (int l = 1; l < s->levels; l++) {
        const uint64_t rows = (uint64_t)strip(&s->level[l]);
        from = fth__max_u64(from, 2 * rows * (uint64_t)s->level[l - 1].size[x] * item);
        to = fth__max_u64(to, rows * (uint64_t)s->level[l].size[x] * item);
    }
    s->work_bytes = from + to;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, s->work_bytes, "smaller images", &block, err));
    s->from = block;
    s->to = s->from + from;
    return FTH_OK;
}

static fth_status open_spec(fth__ngff_spec *s, const fth_ngff_image *i, fth_err *err)
{
    fth__zarr_needs needs = {0};
    const int wanted = i->levels ? i->levels : LEVELS;
    int64_t y = i->y, x = i->x;
    FTH_TRY(make_level(s, i, y, x, err));
    while (s->levels < wanted && y >= 2 && x >= 2) {
        y = (y + 1) / 2, x = (x + 1) / 2;
        FTH_TRY(make_level(s, i, y, x, err));
    }
    s->scale[0] = i->period_ms;
    s->scale[1] = i->z_step_um;
    s->scale[2] = i->um_per_px;
    s->name = fth__heap_strdup(s->mem, i->name ? i->name : "");
    if (!s->name) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the name of an image");
    FTH_TRY(fth_texts_create(&s->channels, s->mem, err));
    for (int64_t c = 0; i->channel && c < i->c; c++)
        FTH_TRY(fth_texts_add(s->channels, i->channel[c], strlen(i->channel[c]), err));
    for (int l = 0; l < s->levels; l++) {
        fth__zarr_needs_add(&needs, &s->level[l], true);
        fth__zarr_needs_add(&needs, &s->level[l], false);
    }
    FTH_TRY(fth__zarr_rooms_open(&s->rooms, s->mem, &needs, err));
    return take_work(s, err);
}

fth_status fth__ngff_spec_open(fth__ngff_spec *s, fth_mem *mem, const fth_ngff_image *image,
                               fth_err *err)
{
    *s = (fth__ngff_spec){0};
    if (!mem || !image) return FTH_FAIL(err, FTH_E_USAGE, "an image needs memory and a shape");
    FTH_TRY(check(image, err));
    s->mem = mem;
    s->version = image->version ? image->version : 5;
    s->planned = image->planned;
    pthread_mutex_init(&s->lock, NULL);
    const fth_status got = open_spec(s, image, err);
    if (got != FTH_OK) fth__ngff_spec_close(s);
    return got;
}

void fth__ngff_spec_close(fth__ngff_spec *s)
{
    if (!s->mem) return;
    fth__zarr_rooms_close(&s->rooms);
    if (s->from) (void)fth_mem_release(s->mem, s->from, NULL);
    fth_texts_free(s->channels);
    fth__heap_free(s->mem, s->name);
    pthread_mutex_destroy(&s->lock);
    *s = (fth__ngff_spec){0};
}

fth_sink fth__ngff_spec_sink(const fth__ngff_spec *s)
{
    const fth__zarr_meta *m = &s->level[0];
    fth_sink sink = {.kind = "ome-ngff",
                     .dtype = m->dtype,
                     .n_axes = m->n_axes,
                     .libraries = fth__codecs_libraries(&m->codecs),
                     .billed_bytes = s->rooms.bytes + s->work_bytes,
                     .concurrent = true};
    memcpy(sink.size, m->size, sizeof sink.size);
    memcpy(sink.part, m->file, sizeof sink.part);
    return sink;
}

/* ---- an image ---- */

struct fth__ngff_out {
    fth__ngff_spec *s;
    fth__zarr_out *level[FTH__NGFF_LEVELS];
    pthread_mutex_t lock;
    int64_t *left; /* elements of each time point that have not come */
    char folder[FTH_PATH];
};

fth_status fth__ngff_out_open(fth__ngff_out **out, fth__ngff_spec *s, const char *folder,
                              fth_err *err)
{
    const fth__zarr_meta *m = &s->level[0];
    void *block = NULL, *left = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(s->mem, 1, sizeof(fth__ngff_out), &block, err));
    fth__ngff_out *o = block;
    o->s = s;
    pthread_mutex_init(&o->lock, NULL);
    fth_status got = fth__heap_take(s->mem, m->size[0], sizeof(int64_t), &left, err);
    o->left = left;
    for (int64_t t = 0; got == FTH_OK && t < m->size[0]; t++) {
        o->left[t] = 1;
        for (int a = 1; a < m->n_axes; a++) o->left[t] *= m->size[a];
    }
    fth__str_copy(o->folder, sizeof o->folder, folder);
    if (got == FTH_OK && !s->planned) got = fth_folder_make_all(s->mem, folder, err);
    if (got == FTH_OK && !s->planned) got = fth__ngff_image_save(s, folder, err);
    for (int l = 0; got == FTH_OK && l < s->levels; l++) {
        char path[FTH_PATH], name[12];
        snprintf(name, sizeof name, "%d", l);
        got = fth_path_join(path, folder, name, err);
        if (got == FTH_OK)
            got = fth__zarr_out_open(&o->level[l], s->mem, s->planned ? NULL : path, &s->level[l],
                                     &s->rooms, err);
    }
    if (got != FTH_OK) {
        fth__ngff_out_close(o);
        return got;
    }
    *out = o;
    return FTH_OK;
}

void fth__ngff_out_close(fth__ngff_out *o)
{
    if (!o) return;
    for (int l = 0; l < o->s->levels; l++) fth__zarr_out_close(o->level[l]);
    pthread_mutex_destroy(&o->lock);
    fth__heap_free(o->s->mem, o->left);
    fth__heap_free(o->s->mem, o);
}

fth_status fth__ngff_out_check(const fth__ngff_out *o, fth_err *err)
{
    for (int l = 0; l < o->s->levels; l++) FTH_TRY(fth__zarr_out_check(o->level[l], err));
    return FTH_OK;
}

/* One plane of a level from the one before; lo and n have the place of the plane. */
static fth_status make_plane(fth__ngff_out *o, int l, int64_t *lo, int64_t *n, fth_err *err)
{
    fth__ngff_spec *s = o->s;
    const fth__zarr_meta *from = &s->level[l - 1], *to = &s->level[l];
    const int y = from->n_axes - 2, x = y + 1;
    char path[FTH_PATH], name[12];
    snprintf(name, sizeof name, "%d", l - 1);
    FTH_TRY(fth_path_join(path, o->folder, name, err));
    for (int64_t row = 0; row < to->size[y]; row += strip(to)) {
        const int64_t rows = fth__min_i64(strip(to), to->size[y] - row);
        int64_t step[FTH_MAX_AXES];
        lo[y] = 2 * row, lo[x] = 0;
        n[y] = fth__min_i64(2 * rows, from->size[y] - lo[y]), n[x] = from->size[x];
        FTH_ASSERT(rows > 0 && n[y] > 0);
        FTH_ASSERT(n[y] * n[x] * fth_dtype_size(from->dtype) <= s->to - s->from);
        fth__zarr_steps(from->n_axes, n, (uint64_t)fth_dtype_size(from->dtype), step);
        FTH_TRY(fth__zarr_read(from, path, &s->rooms, lo, n, s->from, step, err));
        fth__ngff_halve(from->dtype, s->from, n[y], n[x], s->to);
        lo[y] = row, n[y] = rows, n[x] = to->size[x];
        FTH_TRY(fth__zarr_out_write(o->level[l], lo, n, s->to, err));
    }
    return FTH_OK;
}

/* Smaller copies of a time point whose level 0 is complete. */
static fth_status make_levels(fth__ngff_out *o, int64_t t, fth_err *err)
{
    const int outer = o->s->level[0].n_axes - 2;
    int64_t first[FTH_MAX_AXES] = {t}, last[FTH_MAX_AXES] = {t};
    for (int a = 1; a < outer; a++) last[a] = o->s->level[0].size[a] - 1;
    for (int l = 1; l < o->s->levels; l++) {
        int64_t at[FTH_MAX_AXES];
        memcpy(at, first, sizeof at);
        do {
            int64_t lo[FTH_MAX_AXES], n[FTH_MAX_AXES];
            for (int a = 0; a < outer; a++) lo[a] = at[a], n[a] = 1;
            FTH_TRY(make_plane(o, l, lo, n, err));
        } while (fth__zarr_next(outer, first, last, at));
    }
    return FTH_OK;
}

fth_status fth__ngff_out_write(fth__ngff_out *o, const int64_t *lo, const int64_t *n,
                               const void *src, fth_err *err)
{
    if (o->s->planned)
        return FTH_FAIL(err, FTH_E_STATE, "an image that is only planned was written");
    FTH_TRY(fth__zarr_out_write(o->level[0], lo, n, src, err));
    int64_t each = 1;
    for (int a = 1; a < o->s->level[0].n_axes; a++) each *= n[a];
    for (int64_t t = lo[0]; each > 0 && t < lo[0] + n[0]; t++) {
        pthread_mutex_lock(&o->lock);
        const bool complete = (o->left[t] -= each) == 0;
        pthread_mutex_unlock(&o->lock);
        if (!complete) continue;
        pthread_mutex_lock(&o->s->lock);
        const fth_status s = make_levels(o, t, err);
        pthread_mutex_unlock(&o->s->lock);
        FTH_TRY(s);
    }
    return FTH_OK;
}
