/* formats.c - the scene through every format that is written, and back; see checks.h. */
#include "checks.h"

#include <fathom/images.h>
#include <fathom/nd2.h>
#include <fathom/pictures.h>
#include <fathom/tiff.h>
#include <fathom/zarr.h>

#include <string.h>

/* How the scene is written, and where: z planes of it. */
typedef struct format {
    const char *name, *file;
    fth_status (*write)(const struct format *f, fth_mem *mem, const char *path,
                        const uint16_t *pixels, fth_err *err);
    int choice; /* of the writer */
    int64_t planes;
} format;

static fth_status put(fth_sink *sink, fth_status made, const uint16_t *pixels, fth_err *err)
{
    if (made != FTH_OK) return made;
    const fth_status s = fth_sink_put(sink, pixels, err);
    fth_sink_close(sink);
    return s;
}

static fth_status write_tiff(const format *f, fth_mem *mem, const char *path,
                             const uint16_t *pixels, fth_err *err)
{
    const fth_tiff_stack stack = {.flavour = (fth_tiff_flavour)f->choice,
                                  .dtype = FTH_U16,
                                  .axes = "zyx",
                                  .size = {FO_SCENE_Z, FO_SCENE_Y, FO_SCENE_X}};
    fth_sink sink;
    return put(&sink, fth_tiff_create(&sink, mem, path, &stack, err), pixels, err);
}

static fth_status write_zarr(const format *f, fth_mem *mem, const char *path,
                             const uint16_t *pixels, fth_err *err)
{
    const fth_zarr_array array = {.format = f->choice < FTH_ZARR_PLAIN + 1 ? 3 : 2,
                                  .dtype = FTH_U16,
                                  .n_axes = 3,
                                  .size = {FO_SCENE_Z, FO_SCENE_Y, FO_SCENE_X},
                                  .chunk = {1, 16, 16},
                                  .per_shard = {1, f->choice % 2 ? 1 : 2, 1},
                                  .packing = (fth_zarr_packing)(f->choice % (FTH_ZARR_PLAIN + 1))};
    fth_sink sink;
    return put(&sink, fth_zarr_create(&sink, mem, path, &array, err), pixels, err);
}

static fth_status write_ngff(const format *f, fth_mem *mem, const char *path,
                             const uint16_t *pixels, fth_err *err)
{
    const fth_ngff_image image = {.version = f->choice,
                                  .dtype = FTH_U16,
                                  .t = 1,
                                  .c = 1,
                                  .z = FO_SCENE_Z,
                                  .y = FO_SCENE_Y,
                                  .x = FO_SCENE_X};
    fth_sink sink;
    return put(&sink, fth_ngff_create(&sink, mem, path, &image, err), pixels, err);
}

static fth_status draw(void *user, int64_t t, int64_t p, int64_t z, void *pixels, bool *present,
                       fth_err *err)
{
    (void)t, (void)p, (void)present, (void)err;
    memcpy(pixels, (const uint16_t *)user + z * FO_SCENE_AREA, FO_SCENE_AREA * 2);
    return FTH_OK;
}

static fth_status write_nd2(const format *f, fth_mem *mem, const char *path, const uint16_t *pixels,
                            fth_err *err)
{
    const fth_nd2_options opt = {.size = {1, 1, FO_SCENE_Z, 1, FO_SCENE_Y, FO_SCENE_X},
                                 .dtype = FTH_U16,
                                 .packed = f->choice == 1};
    return fth_nd2_write(mem, path, &opt, draw, (void *)(uintptr_t)pixels, err);
}

static fth_status write_picture(const format *f, fth_mem *mem, const char *path,
                                const uint16_t *pixels, fth_err *err)
{
    const fth_picture picture = {.dtype = FTH_U16,
                                 .height = FO_SCENE_Y,
                                 .width = FO_SCENE_X,
                                 .channels = 1,
                                 .pixels = pixels};
    return fth_picture_save(mem, path, &picture,
                            &(fth_picture_format){.kind = (fth_picture_kind)f->choice}, err);
}

enum { ZARR2 = FTH_ZARR_PLAIN + 1 }; /* the same packings in version 2 */
static const format formats[] = {
    {"TIFF", "a.tif", write_tiff, FTH_TIFF_PLAIN, FO_SCENE_Z},
    {"ImageJ", "b.tif", write_tiff, FTH_TIFF_IMAGEJ, FO_SCENE_Z},
    {"OME-TIFF", "c.ome.tif", write_tiff, FTH_TIFF_OME, FO_SCENE_Z},
    {"Zarr 3, zstd, shards", "d.zarr", write_zarr, FTH_ZARR_ZSTD, FO_SCENE_Z},
    {"Zarr 3, gzip", "e.zarr", write_zarr, FTH_ZARR_GZIP, FO_SCENE_Z},
    {"Zarr 3, blosc, shards", "f.zarr", write_zarr, FTH_ZARR_BLOSC, FO_SCENE_Z},
    {"Zarr 3", "g.zarr", write_zarr, FTH_ZARR_PLAIN, FO_SCENE_Z},
    {"Zarr 2, gzip", "h.zarr", write_zarr, ZARR2 + FTH_ZARR_GZIP, FO_SCENE_Z},
    {"Zarr 2", "i.zarr", write_zarr, ZARR2 + FTH_ZARR_PLAIN, FO_SCENE_Z},
    {"OME-NGFF 0.4", "j.zarr", write_ngff, 4, FO_SCENE_Z},
    {"OME-NGFF 0.5", "k.zarr", write_ngff, 5, FO_SCENE_Z},
    {"ND2", "l.nd2", write_nd2, 0, FO_SCENE_Z},
    {"ND2, packed", "m.nd2", write_nd2, 1, FO_SCENE_Z},
    {"PNG", "n.png", write_picture, FTH_PICTURE_PNG16, 1},
    {"TIFF of one picture", "o.tif", write_picture, FTH_PICTURE_TIF16, 1},
    {"PGM", "p.pgm", write_picture, FTH_PICTURE_PGM, 1},
};

/* All pixels of a file, which must have as many planes. */
static fth_status read_back(fth_mem *mem, const char *path, int64_t planes, uint16_t *pixels,
                            fth_err *err)
{
    fth_images *images = NULL;
    fth_source source;
    FTH_TRY(fth_images_open(&images, mem, path, NULL, err));
    fth_status s = fth_images_source(images, &source, err);
    fth_images_close(images);
    FTH_TRY(s);
    const int64_t zero[FTH_IMAGES_AXES] = {0};
    const int64_t want[FTH_IMAGES_AXES] = {1, 1, planes, 1, FO_SCENE_Y, FO_SCENE_X};
    if (source.dtype != FTH_U16 || memcmp(source.size, want, sizeof want) != 0)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "shape or dtype differ from what was written");
    if (s == FTH_OK) s = source.read(source.self, zero, want, pixels, err);
    fth_source_close(&source);
    return s;
}

static fth_status check_one(fo_checks *c, fth_mem *mem, const format *f, const uint16_t *pixels,
                            const char *folder, uint16_t *room)
{
    char path[FTH_PATH];
    fth_err err = {0};
    fth_status s = fth_path_join(path, folder, f->file, &err);
    if (s == FTH_OK) s = f->write(f, mem, path, pixels, &err);
    if (s == FTH_OK) s = read_back(mem, path, f->planes, room, &err);
    if (s != FTH_OK) return fo_check_failed(c, f->name, &err);
    const size_t bytes = (size_t)f->planes * FO_SCENE_AREA * sizeof *pixels;
    fo_check(c, f->name, memcmp(room, pixels, bytes) == 0, "values differ from what was written");
    return FTH_OK;
}

fth_status fo_check_formats(fo_checks *c, fth_mem *mem, const fo_test_scene *scene,
                            const char *folder, fth_err *err)
{
    void *room = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof scene->pixels, "pixels of a format", &room, err));
    fth_status s = FTH_OK;
    for (size_t i = 0; s == FTH_OK && i < sizeof formats / sizeof formats[0]; i++)
        s = check_one(c, mem, &formats[i], scene->pixels, folder, room);
    fth_mem_release(mem, room, NULL);
    return s;
}
