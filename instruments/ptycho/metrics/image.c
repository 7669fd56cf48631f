/* image.c - see image.h. */
#include "image.h"

#include <string.h>

fth_status pt_image_make(pt_image *out, fth_mem *mem, const char *label, int64_t rows, int64_t cols,
                         fth_err *err)
{
    fth_tensor *tensor = NULL;
    const int64_t size[2] = {rows, cols};
    *out = (pt_image){0};
    FTH_TRY(fth_tensor_create(&tensor, mem, label, FTH_C64, 2, size, err));
    *out = (pt_image){tensor, fth_tensor_data(tensor), rows, cols};
    return FTH_OK;
}

void pt_image_free(pt_image *image)
{
    (void)fth_tensor_release(image->tensor);
    *image = (pt_image){0};
}

fth_status pt_image_crop(pt_image *out, fth_mem *mem, const pt_image *from, int64_t row,
                         int64_t col, int64_t rows, int64_t cols, fth_err *err)
{
    FTH_TRY(pt_image_make(out, mem, "cropped image", rows, cols, err));
    for (int64_t r = 0; r < rows; r++)
        memcpy(out->at + r * cols, from->at + (row + r) * from->cols + col,
               (size_t)cols * sizeof(fth_c64));
    return FTH_OK;
}

static void convert_row(fth_c64 *to, const void *row, fth_dtype dtype, int64_t n)
{
    const float *f = row;
    const double *d = row;
    const bool pairs = fth_dtype_is_complex(dtype), wide = dtype == FTH_F64 || dtype == FTH_C128;
    const int64_t step = pairs ? 2 : 1;
    for (int64_t i = 0; i < n; i++) {
        to[i].re = wide ? (float)d[i * step] : f[i * step];
        to[i].im = !pairs ? 0 : wide ? (float)d[i * step + 1] : f[i * step + 1];
    }
}

static fth_status check_source(const fth_source *from, const char *what, fth_err *err)
{
    const int n = from->n_axes;
    if (n < 2)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s has %d axes; an image of two axes, row and col, is expected", what, n);
    if (from->dtype != FTH_C64 && from->dtype != FTH_C128 && from->dtype != FTH_F32 &&
        from->dtype != FTH_F64)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s is %s; c64, c128, f32 or f64 is expected", what,
                        fth_dtype_name(from->dtype));
    if (from->size[n - 2] < 1 || from->size[n - 1] < 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s is empty: %lld x %lld", what,
                        (long long)from->size[n - 2], (long long)from->size[n - 1]);
    return FTH_OK;
}

fth_status pt_image_load(pt_image *out, fth_mem *mem, const fth_source *from, int64_t plane,
                         const char *what, fth_err *err)
{
    void *row = NULL;
    int64_t lo[FTH_MAX_AXES] = {0}, n[FTH_MAX_AXES];
    const int y = from->n_axes - 2;
    *out = (pt_image){0};
    FTH_TRY(check_source(from, what, err));
    for (int d = y - 1; d >= 0; plane /= from->size[d--]) lo[d] = plane % from->size[d];
    for (int d = 0; d <= y; d++) n[d] = 1;
    n[y + 1] = from->size[y + 1];
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(n[y + 1] * fth_dtype_size(from->dtype)),
                         "a row of an image", &row, err));
    fth_status s = pt_image_make(out, mem, what, from->size[y], n[y + 1], err);
    for (lo[y] = 0; s == FTH_OK && lo[y] < from->size[y]; lo[y]++) {
        s = from->read(from->self, lo, n, row, err);
        if (s == FTH_OK) convert_row(out->at + lo[y] * out->cols, row, from->dtype, out->cols);
    }
    (void)fth_mem_release(mem, row, NULL);
    if (s != FTH_OK) pt_image_free(out);
    return s;
}
