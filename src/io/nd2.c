/* nd2.c - opening an ND2 file: signature, metadata, loops, and what is asked of it afterwards. */
#include "io/nd2.h"

#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { SEARCH = 64 << 10 }; /* bytes around a wrong place; options change it. Maps move by pages */

/* ---- what kind of file it is ---- */

static const uint8_t jpeg2000[8] = {0, 0, 0, 0x0c, 0x6a, 0x50, 0x20, 0x20};

static bool recognise(const fth__images_head *head)
{
    const uint32_t magic = FTH__ND2_MAGIC;
    return head->n >= 8 && (memcmp(head->bytes, &magic, 4) == 0 ||
                            memcmp(head->bytes, jpeg2000, sizeof jpeg2000) == 0);
}

static fth_status check_signature(fth__nd2 *nd2, fth__text *damage, fth_err *err)
{
    enum { NAME = sizeof FTH__ND2_SIGNATURE - 1, VERSION = 16 + NAME, ALL = VERSION + 6 };
    const char *path = nd2->file->path;
    char head[ALL] = {0};
    FTH_TRY(fth_file_read(nd2->file, 0, fth__min_u64(ALL, nd2->file->bytes), head, "the signature",
                          err));
    if (memcmp(head, jpeg2000, sizeof jpeg2000) == 0) {
        (void)FTH_FAIL(err, FTH_E_FILE_FEATURE,
                       "%s: this is JPEG 2000: an ND2 file of the first version, which is not read",
                       path);
        fth_err_hint(err, "save it again in NIS-Elements as ND2, or convert it to OME-TIFF with "
                          "bfconvert");
        return FTH_E_FILE_FEATURE;
    }
    const bool named = memcmp(head + 16, FTH__ND2_SIGNATURE, NAME) == 0;
    const bool versioned = memcmp(head + VERSION, "Ver", 3) == 0;
    if (!named || !versioned) {
        fth__text_add(damage, "the signature is damaged, and the version taken as 3; ");
        return FTH_OK;
    }
    if (head[VERSION + 3] == '3') return FTH_OK;
    (void)FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: this is ND2 version %c.%c; version 3 is read",
                   path, head[VERSION + 3], head[VERSION + 5]);
    fth_err_hint(err, "save it again in NIS-Elements, or convert it to OME-TIFF with bfconvert");
    return FTH_E_FILE_FEATURE;
}

/* ---- metadata ---- */

/* An optional tree; a damaged one is skipped and noted in `damage`. */
static fth_status read_part(fth__nd2 *nd2, fth__nd2_part part, fth__lv *out, void **block,
                            fth__text *damage, fth_err *err)
{
    *out = (fth__lv){0};
    *block = NULL;
    if (nd2->part[part].offset == 0) return FTH_OK;
    fth_err why = {0};
    const fth_status s =
        fth__lv_read(out, block, nd2->file, &nd2->part[part], fth__nd2_part_name(part), &why);
    if (s == FTH_OK) return FTH_OK;
    if (s != FTH_E_FILE_FORMAT && s != FTH_E_FILE_SHORT) {
        if (err) *err = why;
        return s;
    }
    fth__text_add(damage, "%s cannot be read; ", fth__nd2_part_name(part));
    return FTH_OK;
}

static fth_status read_attributes(fth__nd2 *nd2, fth_err *err)
{
    fth__lv root;
    void *block = NULL;
    const fth__nd2_chunk *chunk = &nd2->part[FTH__ND2_ATTRIBUTES];
    const char *name = fth__nd2_part_name(FTH__ND2_ATTRIBUTES);
    if (chunk->offset == 0) {
        (void)FTH_FAIL(err, FTH_E_FILE_SHORT,
                       "%s: there is no chunk %s in its %" PRIu64
                       " bytes, so the size of a picture is not known: the file was cut off",
                       nd2->file->path, name, nd2->file->bytes);
        fth_err_hint(err, "copy the file again from the microscope");
        return FTH_E_FILE_SHORT;
    }
    FTH_TRY(fth__lv_read(&root, &block, nd2->file, chunk, name, err));
    const fth_status s = fth__nd2_attributes_read(&nd2->meta, root, nd2->file->path, err);
    fth__heap_free(nd2->mem, block);
    return s;
}

/* Frames mean nothing without their loops: a file that has them must have them readable. */
static fth_status read_loops(fth__nd2 *nd2, fth_err *err)
{
    fth__lv tree = {0};
    void *block = NULL;
    if (nd2->part[FTH__ND2_EXPERIMENT].offset > 0)
        FTH_TRY(fth__lv_read(&tree, &block, nd2->file, &nd2->part[FTH__ND2_EXPERIMENT],
                             fth__nd2_part_name(FTH__ND2_EXPERIMENT), err));
    const fth_status s = fth__nd2_loops_read(
        &nd2->loops, nd2->mem, fth__lv_level(tree, "SLxExperiment"), nd2->file->path, err);
    fth__heap_free(nd2->mem, block);
    return s;
}

static fth_status read_metadata(fth__nd2 *nd2, fth__text *damage, fth_err *err)
{
    fth__lv picture, text;
    void *a = NULL, *b = NULL;
    FTH_TRY(read_attributes(nd2, err));
    FTH_TRY(read_loops(nd2, err));
    fth_status s = read_part(nd2, FTH__ND2_PICTURE, &picture, &a, damage, err);
    if (s == FTH_OK) s = read_part(nd2, FTH__ND2_TEXT, &text, &b, damage, err);
    if (s == FTH_OK)
        s = fth__nd2_picture_read(&nd2->meta, fth__lv_level(picture, "SLxPictureMetadata"),
                                  fth__lv_level(text, "SLxImageTextInfo"), err);
    fth__heap_free(nd2->mem, a);
    fth__heap_free(nd2->mem, b);
    return s;
}

/* Axes and how frames are numbered over them. Without loops, frames are time points. */
static fth_status set_axes(fth__nd2 *nd2, fth__text *damage, fth_err *err)
{
    fth__nd2_loops *l = &nd2->loops;
    fth_images_info *info = &nd2->images.info;
    int64_t product = 1;
    if (l->n == 0 && nd2->meta.sequences > 1)
        l->loop[l->n++] = (fth__nd2_loop){FTH_IMAGES_T, 0, nd2->meta.sequences};
    for (int i = l->n; i-- > 0;) {
        nd2->stride[l->loop[i].axis] = product;
        info->size[l->loop[i].axis] = l->loop[i].count;
        if (!fth__mul_i64(product, l->loop[i].count, &product))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: its loops have more than 2^63 frames",
                            nd2->file->path);
    }
    char *to = nd2->axes;
    for (int i = 0; i < l->n; i++)
        if (l->loop[i].count > 1) *to++ = "tpz"[l->loop[i].axis];
    if (nd2->meta.components > 1) *to++ = 'c';
    FTH_ASSERT(l->n <= 3 && to + 3 <= nd2->axes + sizeof nd2->axes);
    memcpy(to, "yx", 3);
    nd2->n_frames = product;
    if (nd2->meta.sequences > 0 && nd2->meta.sequences != product)
        fth__text_add(damage, "the loops have %" PRId64 " frames, the attributes say %" PRId64 "; ",
                      product, nd2->meta.sequences);
    return FTH_OK;
}

static void set_info(fth__nd2 *nd2)
{
    static const fth_dtype dtypes[] = {[8] = FTH_U8, [16] = FTH_U16, [32] = FTH_F32};
    const fth__nd2_meta *m = &nd2->meta;
    fth_images_info *info = &nd2->images.info;
    FTH_ASSERT(m->bits == 8 || m->bits == 16 || m->bits == 32); /* the attributes were checked */
    info->format = "nd2";
    info->axes = nd2->axes;
    info->size[FTH_IMAGES_C] = m->components;
    info->size[FTH_IMAGES_Y] = m->height;
    info->size[FTH_IMAGES_X] = m->width;
    info->dtype = dtypes[m->bits];
    info->significant_bits = m->significant;
    info->rgb = m->rgb;
    info->um_per_px = m->um_per_px;
    info->z_step_um = nd2->loops.z_step;
    info->period_ms = nd2->loops.period_ms;
    info->unix_seconds = m->julian_day > 0 ? (m->julian_day - 2440587.5) * 86400 : 0;
    info->magnification = m->magnification;
    info->objective = m->objective;
    info->description = m->description;
    info->frames_expected = nd2->n_frames;
    info->damage = nd2->damage;
}

/* ---- open ---- */

static fth_status fill_in(fth__nd2 *nd2, const fth_images_options *options, fth_err *err)
{
    fth__text damage;
    fth__nd2_maps m = {0};
    fth__text_init(&damage, nd2->damage, sizeof nd2->damage);
    FTH_TRY(check_signature(nd2, &damage, err));
    fth_status s = fth__nd2_find_parts(
        nd2, &m, options->search_bytes ? options->search_bytes : SEARCH, &damage, err);
    if (s == FTH_OK) s = read_metadata(nd2, &damage, err);
    if (s == FTH_OK) s = set_axes(nd2, &damage, err);
    if (s == FTH_OK) s = fth__nd2_find_frames(nd2, &m, &damage, err);
    fth__nd2_map_clear(&m.said);
    fth__nd2_map_clear(&m.found);
    FTH_TRY(s);
    set_info(nd2);
    fth__text_mark_cut(&damage);
    if (damage.used >= 2 && !fth__text_is_cut(&damage)) nd2->damage[damage.used - 2] = 0;
    return FTH_OK;
}

void fth__nd2_release(fth__nd2 *nd2)
{
    if (atomic_fetch_sub_explicit(&nd2->refs, 1, memory_order_acq_rel) != 1) return;
    if (nd2->frame) (void)fth_mem_release(nd2->mem, nd2->frame, NULL);
    fth__nd2_loops_clear(&nd2->loops);
    fth__nd2_meta_clear(&nd2->meta);
    fth_file_close(nd2->file);
    if (nd2->direct_fd >= 0) close(nd2->direct_fd);
    fth__heap_free(nd2->mem, nd2);
}

static void close_images(fth_images *images)
{
    fth__nd2_release((fth__nd2 *)images);
}

static fth_status open_images(fth_images **out, fth_mem *mem, const char *path,
                              const fth_images_options *options, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__nd2), &block, err));
    fth__nd2 *nd2 = block;
    atomic_init(&nd2->refs, 1);
    nd2->images.format = &fth__nd2_format;
    nd2->mem = nd2->meta.mem = nd2->loops.mem = mem;
    nd2->swap_rgb = options->rgb_is_bgr;
    nd2->read_mode = options->read_mode;
    nd2->direct_fd = -1;
    for (int a = 0; a < FTH_IMAGES_AXES; a++) nd2->images.info.size[a] = 1;
    fth_status s = fth_file_open(&nd2->file, mem, path, err);
    if (s == FTH_OK) s = fill_in(nd2, options, err);
    if (s == FTH_OK && options->read_mode == FTH_READ_DIRECT) s = fth__nd2_open_direct(nd2, err);
    if (s != FTH_OK) {
        fth__nd2_release(nd2);
        return s;
    }
    *out = &nd2->images;
    return FTH_OK;
}

/* ---- queries of an open file ---- */

static const char *get_channel(const fth_images *images, int64_t c)
{
    const fth__nd2_meta *m = &((const fth__nd2 *)images)->meta;
    FTH_ASSERT(c >= 0 && c < m->n_channels);
    return m->channel[c];
}

static fth_images_position get_position(const fth_images *images, int64_t p)
{
    const fth__nd2 *nd2 = (const fth__nd2 *)images;
    const fth__nd2_loops *l = &nd2->loops;
    if (p < l->n_points)
        return (fth_images_position){l->point[p].name, l->point[p].x, l->point[p].y,
                                     l->use_z ? l->point[p].z : nd2->meta.z};
    if (images->info.size[FTH_IMAGES_P] > 1)
        return (fth_images_position){"", (double)NAN, (double)NAN, (double)NAN};
    return (fth_images_position){"", nd2->meta.x, nd2->meta.y, nd2->meta.z};
}

/* Number i of a chunk that is a list of doubles, one for each frame; NaN where it has none. */
static double get_listed(const fth__nd2 *nd2, fth__nd2_part part, int64_t i)
{
    const fth__nd2_chunk *chunk = &nd2->part[part];
    fth__nd2_head head;
    bool there = false;
    double v = (double)NAN;
    if (chunk->offset == 0 ||
        fth__nd2_head_read(nd2->file, chunk->offset, &head, &there, NULL) != FTH_OK || !there)
        return (double)NAN;
    const uint64_t at = 8 * (uint64_t)i;
    if (at + 8 > head.bytes || head.data > nd2->file->bytes ||
        fth_file_read(nd2->file, head.data + at, 8, &v, "a list of numbers", NULL) != FTH_OK)
        return (double)NAN;
    return v;
}

static double get_time(const fth__nd2 *nd2, int64_t number)
{
    double v = get_listed(nd2, FTH__ND2_TIMES, number);
    const fth__nd2_chunk *chunk = &nd2->frame[number];
    fth__nd2_head head;
    bool there = false;
    if (isnan(v) && chunk->offset > 0 &&
        fth__nd2_head_read(nd2->file, chunk->offset, &head, &there, NULL) == FTH_OK && there &&
        fth_file_read(nd2->file, head.data, 8, &v, "the time of a frame", NULL) != FTH_OK)
        v = (double)NAN;
    return v;
}

static fth_images_frame get_frame(const fth_images *images, int64_t t, int64_t p, int64_t z)
{
    const fth__nd2 *nd2 = (const fth__nd2 *)images;
    const int64_t number = t * nd2->stride[0] + p * nd2->stride[1] + z * nd2->stride[2];
    FTH_ASSERT(number >= 0 && number < nd2->n_frames);
    const fth__nd2_chunk *chunk = &nd2->frame[number];
    const fth_images_position at = get_position(images, p);
    const bool stack = images->info.size[FTH_IMAGES_Z] > 1;
    const double low = stack ? (double)nd2->loops.z_home * nd2->loops.z_step : 0;
    const double x = get_listed(nd2, FTH__ND2_X, number), y = get_listed(nd2, FTH__ND2_Y, number);
    const double up = get_listed(nd2, FTH__ND2_Z, number);
    return (fth_images_frame){.present = chunk->offset > 0,
                              .repaired =
                                  chunk->offset > 0 && (chunk->bytes & FTH__ND2_REPAIRED) != 0,
                              .time_ms = get_time(nd2, number),
                              .x_um = isnan(x) ? at.x_um : x,
                              .y_um = isnan(y) ? at.y_um : y,
                              .z_um = isnan(up) ? at.z_um - low : up};
}

const fth__images_format fth__nd2_format = {.name = "ND2",
                                            .recognise = recognise,
                                            .open = open_images,
                                            .close = close_images,
                                            .channel = get_channel,
                                            .position = get_position,
                                            .frame = get_frame,
                                            .source = fth__nd2_source};
