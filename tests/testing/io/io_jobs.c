/* io_jobs.c - see io_jobs.h. */
#include "testing/io/io_jobs.h"

#include "testing/io/files.h"

#include <fathom/nd2.h>
#include <fathom/pictures.h>
#include <fathom/tiff.h>

#define FIRST(call)                                                                                \
    do {                                                                                           \
        s = (call);                                                                                \
        if (s != FTH_OK) goto done;                                                                \
    } while (0)

static const int64_t zero[2] = {0, 0};
static const int64_t shape[2] = {6, 5};
static const float numbers[30] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

fth_status io_write_npy(fth_mem *mem, const char *path, fth_err *err)
{
    fth_sink k = {0};
    fth_status s;
    FIRST(fth_npy_create(&k, mem, path, FTH_F32, 2, shape, err));
    FIRST(k.write(k.self, zero, ((int64_t[]){6, 3}), numbers, err));
    FIRST(k.write(k.self, ((int64_t[]){0, 3}), ((int64_t[]){6, 2}), numbers, err));
    FIRST(k.commit(k.self, err));
done:
    fth_sink_close(&k);
    return s;
}

static const fth_raw_layout raw_layout = {
    .dtype = FTH_F32, .n_axes = 2, .size = {6, 5}, .offset = 4, .big_endian = true};

fth_status io_write_raw(fth_mem *mem, const char *path, fth_err *err)
{
    fth_sink k = {0};
    fth_status s;
    FIRST(fth_raw_create(&k, mem, path, &raw_layout, "head", err));
    FIRST(k.write(k.self, zero, shape, numbers, err));
    FIRST(k.commit(k.self, err));
done:
    fth_sink_close(&k);
    return s;
}

static const fth_file_item items[2] = {
    {.name = "a", .dtype = FTH_F32, .n_axes = 2, .size = {6, 5}, .axes = "row col"},
    {.name = "b", .dtype = FTH_F32, .n_axes = 1, .size = {3}}};

static fth_status fill(fth_sink *a, fth_sink *b, fth_err *err)
{
    FTH_TRY(a->write(a->self, ((int64_t[]){3, 0}), ((int64_t[]){3, 5}), numbers,
                     err)); /* out of order */
    FTH_TRY(a->write(a->self, zero, ((int64_t[]){3, 5}), numbers, err));
    FTH_TRY(b->write(b->self, zero, ((int64_t[]){3}), numbers, err));
    FTH_TRY(a->commit(a->self, err));
    return b->commit(b->self, err);
}

fth_status io_write_npz(fth_mem *mem, const char *path, fth_err *err)
{
    fth_npz_writer *w = NULL;
    fth_sink a, b;
    fth_status s;
    FIRST(fth_npz_create(&w, mem, path, items, 2, err));
    FIRST(fth_npz_sink(w, "a", &a, err));
    FIRST(fth_npz_sink(w, "b", &b, err));
    FIRST(fill(&a, &b, err));
    s = fth_npz_commit(w, err);
    w = NULL;
done:
    fth_npz_abandon(w);
    return s;
}

fth_status io_write_safetensors(fth_mem *mem, const char *path, fth_err *err)
{
    const fth_safetensors_options opt = {.meta = &(fth_file_meta){"k", "v"}, .n_meta = 1};
    fth_safetensors_writer *w = NULL;
    fth_sink a, b;
    fth_status s;
    FIRST(fth_safetensors_create(&w, mem, path, items, 2, &opt, err));
    FIRST(fth_safetensors_sink(w, "a", &a, err));
    FIRST(fth_safetensors_sink(w, "b", &b, err));
    FIRST(fill(&a, &b, err));
    s = fth_safetensors_commit(w, err);
    w = NULL;
done:
    fth_safetensors_abandon(w);
    return s;
}

fth_status io_write_h5(fth_mem *mem, const char *path, fth_err *err)
{
    const fth_h5_dataset a_want = {.name = "/g/a",
                                   .dtype = FTH_F32,
                                   .n_axes = 2,
                                   .size = {6, 5},
                                   .gzip = 1},
                         b_want = {.name = "/g/b", .dtype = FTH_F32, .n_axes = 1, .size = {3}};
    const char *const text[2] = {"x", "yy"};
    fth_h5_writer *w = NULL;
    fth_sink a, b;
    fth_status s;
    FIRST(fth_h5_create(&w, mem, path, err));
    FIRST(fth_h5_sink(w, &a_want, &a, err));
    FIRST(fth_h5_sink(w, &b_want, &b, err));
    FIRST(fill(&a, &b, err));
    FIRST(fth_h5_put_strings(w, "/g/names", text, 2, err));
    FIRST(fth_h5_put_attr_text(w, "/g", "encoding-type", "dict", err));
    FIRST(fth_h5_put_attr_i64(w, "/g", "shape", shape, 2, err));
    FIRST(fth_h5_put_text(w, "/g/kind", text[1], err));
    FIRST(fth_h5_put_attr_f64(w, "/g/kind", "half", &(double){0.5}, 1, err));
    FIRST(fth_h5_put_attr_texts(w, "/g", "axes", text, 2, err));
    s = fth_h5_commit(w, err);
    w = NULL;
done:
    fth_h5_abandon(w);
    return s;
}

static fth_status load(const fth_source *s, fth_mem *mem, fth_err *err)
{
    fth_tensor *t = NULL;
    const fth_status status = fth_source_load(s, mem, "t", &t, err);
    fth_tensor_release(t);
    return status;
}

fth_status io_read_npy(fth_mem *mem, const char *path, fth_err *err)
{
    (void)path;
    fth_source a = {0};
    fth_status s;
    FIRST(fth_npy_open(&a, mem, GOLDEN("fortran_f4.npy"), err));
    FIRST(load(&a, mem, err));
done:
    fth_source_close(&a);
    return s;
}

fth_status io_read_raw(fth_mem *mem, const char *path, fth_err *err)
{
    fth_source a = {0};
    fth_status s;
    FIRST(fth_raw_open(&a, mem, path, &raw_layout, err));
    FIRST(load(&a, mem, err));
done:
    fth_source_close(&a);
    return s;
}

fth_status io_read_npz(fth_mem *mem, const char *path, fth_err *err)
{
    (void)path;
    fth_npz *npz = NULL;
    fth_csr *csr = NULL;
    fth_source a = {0};
    fth_status s;
    FIRST(fth_npz_open(&npz, mem, GOLDEN("csr_i64.npz"), err));
    FIRST(fth_npz_source(npz, "data", &a, err));
    FIRST(load(&a, mem, err));
    FIRST(fth_csr_open_npz(&csr, npz, err));
    const fth_source dense = fth_csr_source(csr);
    FIRST(load(&dense, mem, err));
done:
    fth_csr_close(csr);
    fth_source_close(&a);
    fth_npz_close(npz);
    return s;
}

fth_status io_read_safetensors(fth_mem *mem, const char *path, fth_err *err)
{
    fth_safetensors *f = NULL;
    fth_source a = {0};
    fth_status s;
    FIRST(fth_safetensors_open(&f, mem, path, err));
    FIRST(fth_safetensors_verify(f, NULL, err));
    FIRST(fth_safetensors_source(f, "a", &a, err));
    FIRST(load(&a, mem, err));
done:
    fth_source_close(&a);
    fth_safetensors_close(f);
    return s;
}

fth_status io_read_h5(fth_mem *mem, const char *path, fth_err *err)
{
    fth_h5 *h5 = NULL;
    fth_source a = {0};
    fth_texts *t = NULL;
    fth_status s;
    int64_t v[2], n;
    FIRST(fth_h5_open(&h5, mem, path, err));
    FIRST(fth_h5_source(h5, "/g/a", &a, err));
    FIRST(load(&a, mem, err));
    FIRST(fth_h5_strings(h5, "/g/names", &t, err));
    fth_texts_free(t);
    t = NULL;
    FIRST(fth_h5_list(h5, "/g", &t, err));
    fth_texts_free(t);
    t = NULL;
    FIRST(fth_h5_attr_text(h5, "/g", "encoding-type", &t, err));
    FIRST(fth_h5_attr_i64(h5, "/g", "shape", v, 2, &n, err));
done:
    fth_texts_free(t);
    fth_source_close(&a);
    fth_h5_close(h5);
    return s;
}

/* ---- ND2 ---- */

static fth_status draw(void *user, int64_t t, int64_t p, int64_t z, void *pixels, bool *present,
                       fth_err *err)
{
    (void)user, (void)err;
    memset(pixels, (int)(1 + t + z), 2 * 3 * 5 * sizeof(uint16_t));
    *present = p == 0;
    return FTH_OK;
}

fth_status io_write_nd2(fth_mem *mem, const char *path, fth_err *err)
{
    const fth_images_position at[2] = {{"A01", 1, 2, 3}, {"A02", 4, 5, 6}};
    const fth_nd2_options o = {
        .size = {1, 2, 2, 2, 3, 5}, .dtype = FTH_U16, .position = at, .packed = true};
    return fth_nd2_write(mem, path, &o, draw, NULL, err);
}

/* All pixels of each file. */
static fth_status read_images(fth_mem *mem, const char *const *files, int n, fth_err *err)
{
    fth_status s = FTH_OK;
    for (int i = 0; i < n && s == FTH_OK; i++) {
        fth_images *images = NULL;
        fth_source a = {0};
        FIRST(fth_images_open(&images, mem, files[i], NULL, err));
        FIRST(fth_images_source(images, &a, err));
        FIRST(load(&a, mem, err));
    done:
        fth_source_close(&a);
        fth_images_close(images);
    }
    return s;
}

/* Packed, with padded rows; and one with frames left out, which is scanned. */
fth_status io_read_nd2(fth_mem *mem, const char *path, fth_err *err)
{
    static const char *const files[2] = {"tests/golden/focus/synth_T2P3Z5_zlib.nd2",
                                         "tests/golden/focus/synth_T2P3Z5_missing.nd2"};
    (void)path;
    return read_images(mem, files, 2, err);
}

fth_status io_read_pictures(fth_mem *mem, const char *path, fth_err *err)
{
    static const char *const files[] = {
        "tests/golden/focus/tiff/lzw.tif",       "tests/golden/focus/tiff/jpeg_rgb.tif",
        "tests/golden/focus/tiff/zstd.tif",      "tests/golden/focus/tiff/deflate.tif",
        "tests/golden/focus/tiff/set_0.ome.tif", "tests/golden/focus/pillow_rgb.jpg"};
    (void)path;
    return read_images(mem, files, 6, err);
}

fth_status io_write_jpeg(fth_mem *mem, const char *path, fth_err *err)
{
    static const uint8_t px[40 * 30] = {1, 200, 3};
    const fth_picture p = {FTH_U8, 40, 30, 1, px, 0};
    return fth_picture_save(mem, path, &p, &(fth_picture_format){.kind = FTH_PICTURE_JPG}, err);
}

fth_status io_write_tiff(fth_mem *mem, const char *path, fth_err *err)
{
    const fth_tiff_stack stack = {
        .flavour = FTH_TIFF_OME, .dtype = FTH_F32, .axes = "yx", .size = {6, 5}};
    fth_sink k = {0};
    fth_status s;
    FIRST(fth_tiff_create(&k, mem, path, &stack, err));
    FIRST(fth_sink_put(&k, numbers, err));
done:
    fth_sink_close(&k);
    return s;
}
