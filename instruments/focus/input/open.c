/* open.c - one file of images, a .npy array or plain bytes, as seven named axes. */
#include "input.h"

#include "paths.h"

#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* ---- what was opened ---- */

static void set_axis(fo_file *f, fo_axis axis, int of)
{
    f->axis_of[axis] = of;
    f->size[axis] = of >= 0 ? f->source.size[of] : 1;
}

static fth_status describe_array(fo_file *f, fth_err *err)
{
    static const int axes[5][FO_AXES] = {/* b, t, p, z, c, y, x */
                                         [2] = {-1, -1, -1, -1, -1, 0, 1},
                                         [3] = {-1, -1, -1, 0, -1, 1, 2},
                                         [4] = {0, -1, -1, 1, -1, 2, 3}};
    const int n = f->source.n_axes;
    if (n < 2 || n > 4) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: expected axes y x, z y x or b z y x, found %d axes",
                 f->path, n);
        fth_err_hint(err, "save the array with two, three or four axes");
        return FTH_E_FILE_SHAPE;
    }
    for (int a = 0; a < FO_AXES; a++) set_axis(f, (fo_axis)a, axes[n][a]);
    f->dtype = f->source.dtype;
    f->significant_bits = (int)fth_dtype_size(f->dtype) * 8;
    return FTH_OK;
}

static fth_status describe_images(fo_file *f)
{
    const fth_images_info *info = fth_images_get_info(f->images);
    static const fo_axis order[FTH_IMAGES_AXES] = {FO_T, FO_P, FO_Z, FO_C, FO_Y, FO_X};
    f->axis_of[FO_B] = -1;
    f->size[FO_B] = 1;
    for (int a = 0; a < FTH_IMAGES_AXES; a++) set_axis(f, order[a], a);
    f->is_images = true;
    f->dtype = info->dtype;
    f->significant_bits =
        info->significant_bits ? info->significant_bits : (int)fth_dtype_size(f->dtype) * 8;
    f->rgb = info->rgb && info->size[FTH_IMAGES_C] >= 3;
    f->um_per_px = info->um_per_px;
    f->z_step_um = info->z_step_um;
    return FTH_OK;
}

static fth_status check_pixels(const fo_file *f, fth_err *err)
{
    if (f->dtype != FTH_U8 && f->dtype != FTH_U16 && f->dtype != FTH_F32) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: expected pixels of u8, u16 or f32, found %s", f->path,
                 fth_dtype_name(f->dtype));
        fth_err_hint(err, "convert the array first, as with .astype('float32')");
        return FTH_E_FILE_SHAPE;
    }
    for (int a = 0; a < FO_AXES; a++)
        if (f->size[a] < 1)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: axis %c is empty", f->path, "btpzcyx"[a]);
    return FTH_OK;
}

/* ---- opening ---- */

/* Types that no array of ours has, as i16, become one that images have. */
static fth_status open_npy(fo_file *f, fth_mem *mem, fth_err *err)
{
    const fth_status s = fth_npy_open(&f->source, mem, f->path, err);
    if (s == FTH_E_FILE_FEATURE)
        fth_err_hint(err, "pixels are u8, u16 or f32: convert the array first, as with "
                          ".astype('float32')");
    return s;
}

static fth_status open_source(fo_file *f, fth_mem *mem, const fo_selection *selection, fth_err *err)
{
    if (selection->is_raw) return fth_raw_open(&f->source, mem, f->path, &selection->raw, err);
    if (ends_with(f->path, ".npy")) return open_npy(f, mem, err);
    FTH_TRY(fth_images_open(&f->images, mem, f->path, &selection->images, err));
    return fth_images_source(f->images, &f->source, err);
}

fth_status fo_file_open(fo_file *f, fth_mem *mem, const char *path, const fo_selection *selection,
                        fth_err *err)
{
    *f = (fo_file){.path = path};
    fth_status s = FTH_OK;
    if (fth_path_kind_of(path) == FTH_PATH_ABSENT)
        s = FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: no such file", path);
    if (s == FTH_OK) s = open_source(f, mem, selection, err);
    if (s == FTH_OK) s = f->images ? describe_images(f) : describe_array(f, err);
    if (s == FTH_OK) s = check_pixels(f, err);
    if (selection->um_per_px > 0) f->um_per_px = selection->um_per_px;
    if (selection->z_step_um > 0) f->z_step_um = selection->z_step_um;
    if (s != FTH_OK) fo_file_close(f);
    return s;
}

static fth_status read_memory(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    const fth_source *s = &((const fo_file *)self)->source;
    const int64_t bytes = fth_dtype_size(s->dtype);
    int64_t extent[4] = {1, 1, 1, 1}, from[4] = {0}, size[4] = {1, 1, 1, 1};
    (void)err;
    for (int a = 0; a < s->n_axes; a++) {
        extent[4 - s->n_axes + a] = n[a];
        from[4 - s->n_axes + a] = lo[a];
        size[4 - s->n_axes + a] = s->size[a];
    }
    char *to = dst;
    for (int64_t i = 0; i < extent[0] * extent[1] * extent[2]; i++, to += extent[3] * bytes) {
        const int64_t b = from[0] + i / (extent[1] * extent[2]),
                      z = from[1] + i / extent[2] % extent[1], y = from[2] + i % extent[2];
        const int64_t at = ((b * size[1] + z) * size[2] + y) * size[3] + from[3];
        memcpy(to, (const char *)s->data + at * bytes, (size_t)(extent[3] * bytes));
    }
    return FTH_OK;
}

fth_status fo_file_wrap(fo_file *f, fth_dtype dtype, int n_axes, const int64_t *size,
                        const void *data, const fo_selection *selection, fth_err *err)
{
    *f = (fo_file){.path = "array", .is_memory = true};
    f->source = (fth_source){.kind = "memory",
                             .self = f,
                             .dtype = dtype,
                             .n_axes = n_axes,
                             .read = read_memory,
                             .data = (void *)(uintptr_t)data,
                             .concurrent = true};
    for (int a = 0; a < n_axes; a++) f->source.size[a] = size[a];
    FTH_TRY(describe_array(f, err));
    f->um_per_px = selection->um_per_px;
    f->z_step_um = selection->z_step_um;
    return check_pixels(f, err);
}

void fo_file_close(fo_file *f)
{
    if (!f->is_memory) fth_source_close(&f->source);
    fth_images_close(f->images);
    f->images = NULL;
}

fth_status fo_file_reopen(const fo_file *f, fth_mem *mem, const fo_selection *selection,
                          fth_source *out, fth_err *err)
{
    fo_file again = {.path = f->path};
    fth_status s = open_source(&again, mem, selection, err);
    if (s == FTH_OK && (again.source.dtype != f->dtype ||
                        memcmp(again.source.size, f->source.size,
                               (size_t)again.source.n_axes * sizeof *f->source.size) != 0))
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: the file has changed since it was opened",
                     f->path);
    fth_images_close(again.images);
    if (s == FTH_OK)
        *out = again.source;
    else
        fth_source_close(&again.source);
    return s;
}
