/* image.c - an image to fit, from any file that holds one.
 *
 * The first bytes identify the format; an unknown file is plain float32 and must have exactly the
 * bytes of the detector. Pixels stay in the file and are read when they are needed.
 */
#include "../read/read.h"
#include "refine.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef enum kind { FLOATS, SMV, NPY, HDF5 } kind;

static fth_status kind_of(fth_mem *mem, const char *path, kind *out, int64_t *bytes, fth_err *err)
{
    char head[16] = "";
    fth_file *f = NULL;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    const uint64_t all = fth_file_bytes(f), n = all < sizeof head ? all : sizeof head;
    const fth_status s = fth_file_read(f, 0, n, head, "its first bytes", err);
    fth_file_close(f);
    FTH_TRY(s);
    *bytes = (int64_t)all;
    *out = n >= 12 && memcmp(head, "{\nHEADER_BYT", 12) == 0     ? SMV
           : n >= 6 && memcmp(head, "\x93NUMPY", 6) == 0         ? NPY
           : n >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0 ? HDF5
                                                                 : FLOATS;
    return FTH_OK;
}

/* ---- one frame of a stack ---- */

static fth_status read_frame(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    const br_observed *o = self;
    const int64_t from[3] = {o->frame, lo[0], lo[1]}, count[3] = {1, n[0], n[1]};
    return o->base.read(o->base.self, from, count, dst, err);
}

static fth_status choose_frame(br_observed *o, const char *path, fth_err *err)
{
    const fth_source *b = &o->base;
    const int64_t frames = b->n_axes == 3 ? b->size[0] : 1;
    if (b->n_axes != 2 && b->n_axes != 3)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: an image [slow fast] or a stack [frame slow fast] is expected, this "
                        "has %d axes",
                        path, b->n_axes);
    if (o->frame < 0 || o->frame >= frames)
        return FTH_FAIL(err, FTH_E_COMMAND, "--frame %" PRId64 ": %s has %" PRId64 " of them",
                        o->frame, path, frames);
    o->pixels = *b;
    if (b->n_axes == 2) return FTH_OK;
    o->pixels.self = o;
    o->pixels.n_axes = 2;
    o->pixels.size[0] = b->size[1], o->pixels.size[1] = b->size[2];
    o->pixels.read = read_frame;
    o->pixels.read_rows = NULL;
    o->pixels.data = NULL;
    return FTH_OK;
}

/* ---- files ---- */

static fth_status open_floats(br_observed *o, fth_mem *mem, const char *path, int64_t bytes,
                              const br_scene *s, fth_err *err)
{
    const int64_t wanted = s->fast * s->slow * (int64_t)sizeof(float);
    const fth_raw_layout layout = {.dtype = FTH_F32, .n_axes = 2, .size = {s->slow, s->fast}};
    if (bytes != wanted) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "%s: a float image of %" PRId64 " x %" PRId64 " pixels has %" PRId64
                 " bytes, this has %" PRId64,
                 path, s->fast, s->slow, wanted, bytes);
        fth_err_hint(err, "give the size of the image with -detpixels_f and -detpixels_s");
        return FTH_E_FILE_SHAPE;
    }
    return fth_raw_open(&o->base, mem, path, &layout, err);
}

static fth_status open_smv(br_observed *o, fth_mem *mem, const char *path, fth_err *err)
{
    br_image_header h;
    FTH_TRY(br_image_header_read(&h, mem, path, false, err));
    o->full = 65535;
    if (!h.is_u32) return br_image_open(&o->base, mem, path, &h, err);
    const fth_raw_layout layout = {.dtype = FTH_I32,
                                   .n_axes = 2,
                                   .size = {h.slow, h.fast},
                                   .offset = (uint64_t)h.bytes,
                                   .big_endian = h.big_endian};
    o->full = 2147483647;
    return fth_raw_open(&o->base, mem, path, &layout, err);
}

static fth_status open_hdf5(br_observed *o, fth_mem *mem, const char *path, const char *dataset,
                            fth_err *err)
{
    static const char *const usual[] = {"/entry/data/data", "/entry/instrument/detector/data",
                                        "/entry/data/data_000001", "/image", "/data"};
    FTH_TRY(fth_h5_open(&o->h5, mem, path, err));
    for (size_t i = 0; !dataset && i < sizeof usual / sizeof usual[0]; i++)
        if (fth_h5_kind_of(o->h5, usual[i]) == FTH_H5_DATASET) dataset = usual[i];
    if (dataset) return fth_h5_source(o->h5, dataset, &o->base, err);
    FTH_FAIL(err, FTH_E_FILE_KEY, "%s: no image at %s or other usual places", path, usual[0]);
    fth_err_hint(err, "name its path with --dataset");
    return FTH_E_FILE_KEY;
}

static fth_status check(const br_observed *o, const char *path, const br_scene *s, fth_err *err)
{
    if (fth_dtype_is_complex(o->pixels.dtype) || o->pixels.dtype == FTH_BOOL ||
        o->pixels.dtype == FTH_F16 || o->pixels.dtype == FTH_BF16)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: pixels of dtype %s cannot be fitted", path,
                        fth_dtype_name(o->pixels.dtype));
    if (o->pixels.size[0] == s->slow && o->pixels.size[1] == s->fast) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHAPE,
             "%s: the image is %" PRId64 " x %" PRId64 " pixels (fast x slow), the detector of the "
             "flags %" PRId64 " x %" PRId64,
             path, o->pixels.size[1], o->pixels.size[0], s->fast, s->slow);
    fth_err_hint(err, "give the size of the image with -detpixels_f and -detpixels_s");
    return FTH_E_FILE_SHAPE;
}

fth_status br_observed_open(br_observed *out, fth_mem *mem, const char *path,
                            const br_experiment *e, const br_observed_options *opt, fth_err *err)
{
    kind k = FLOATS;
    int64_t bytes = 0;
    *out = (br_observed){.frame = opt->frame, .full = (double)INFINITY};
    FTH_TRY(kind_of(mem, path, &k, &bytes, err));
    out->adc = isnan(opt->adc) ? (k == SMV ? 40 : 0) : opt->adc;
    out->gain = isnan(opt->gain) ? 1 : opt->gain;
    fth_status s = FTH_OK;
    switch (k) {
    case FLOATS: s = open_floats(out, mem, path, bytes, &e->scene, err); break;
    case SMV: s = open_smv(out, mem, path, err); break;
    case NPY: s = fth_npy_open(&out->base, mem, path, err); break;
    case HDF5: s = open_hdf5(out, mem, path, opt->dataset, err); break;
    }
    if (s == FTH_OK) s = choose_frame(out, path, err);
    if (s == FTH_OK) s = check(out, path, &e->scene, err);
    if (s != FTH_OK) br_observed_close(out);
    return s;
}

void br_observed_close(br_observed *o)
{
    fth_source_close(&o->base);
    fth_h5_close(o->h5);
    o->h5 = NULL;
    o->pixels = (fth_source){0};
}
