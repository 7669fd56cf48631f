/* fathom/zarr.h - Zarr arrays, versions 2 and 3, and OME-NGFF images and plates made of them.
 *
 * An array is a folder of chunks. Opening reads its metadata alone; rectangles are read chunk by
 * chunk, those that are missing as the fill value. Images of OME-NGFF are read through
 * fathom/images.h, like every other image. What is accepted and refused is in docs/formats.md.
 *
 *   fth_zarr *zarr;                                    fth_sink sink;
 *   FTH_TRY(fth_zarr_open(&zarr, mem, path, err));     FTH_TRY(fth_zarr_create(&sink, mem, path,
 *   s = fth_zarr_source(zarr, &source, err);                                   &array, err));
 *   fth_zarr_close(zarr);                              s = fth_sink_put(&sink, data, err);
 *
 * Ownership: sources live on after their array is closed. Sinks of a plate end with it.
 * Threads:   sources may be read, and sinks written, by several threads at once: each chunk that is
 *            being packed or unpacked has a room of its own, which is taken when the source or sink
 *            is made. There are as many as fit in a sixteenth of the memory budget, 1 to 8;
 *            further threads wait.
 * Failure:   the file of the chunk, what was expected, what was found. A folder appears whole or
 *            not at all.
 */
#ifndef FATHOM_ZARR_H
#define FATHOM_ZARR_H

#include <fathom/io.h>
#include <fathom/json.h>

FTH_BEGIN_DECLS

/* ---- reading ---- */

typedef enum fth_zarr_kind { FTH_ZARR_NONE, FTH_ZARR_ARRAY, FTH_ZARR_GROUP } fth_zarr_kind;
/* What a folder is. */
FTH_API fth_zarr_kind fth_zarr_kind_of(const char *path);
/* Attributes of an array or group, in *out, which the caller destroys; both NULL: it has none. */
FTH_API FTH_MUST_USE fth_status fth_zarr_attributes_of(fth_json **out,
                                                       const fth_json_value **attributes,
                                                       fth_mem *mem, const char *path,
                                                       fth_err *err);
/* All strings of an array with at most one axis. FTH_E_FILE_SHAPE: it holds something else. */
FTH_API FTH_MUST_USE fth_status fth_zarr_strings(fth_texts **out, fth_mem *mem, const char *path,
                                                 fth_err *err);

typedef struct fth_zarr_info {
    int format; /* 2 or 3 */
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    int64_t chunk[FTH_MAX_AXES];    /* what is unpacked at once */
    int64_t shard[FTH_MAX_AXES];    /* what one file holds; the same as `chunk` without shards */
    const char *axis[FTH_MAX_AXES]; /* names of dimensions; "" where there is none */
    const char *packing;            /* "zstd", "blosc crc32c", "" for none */
} fth_zarr_info;

typedef struct fth_zarr fth_zarr;
/* The folder of an array. FTH_E_FILE_FORMAT when it is a group: the message says so. */
FTH_API FTH_MUST_USE fth_status fth_zarr_open(fth_zarr **out, fth_mem *mem, const char *path,
                                              fth_err *err);
FTH_API void fth_zarr_close(fth_zarr *zarr); /* NULL is allowed */
FTH_API const fth_zarr_info *fth_zarr_get_info(const fth_zarr *zarr);
/* Attributes of the array; NULL: it has none. They live as long as it is open. */
FTH_API const fth_json_value *fth_zarr_attributes(const fth_zarr *zarr);
FTH_API FTH_MUST_USE fth_status fth_zarr_source(fth_zarr *zarr, fth_source *out, fth_err *err);

/* ---- writing ---- */

typedef enum fth_zarr_packing {
    FTH_ZARR_ZSTD,  /* level 3 */
    FTH_ZARR_GZIP,  /* level 6 */
    FTH_ZARR_BLOSC, /* lz4, level 5, bytes shuffled */
    FTH_ZARR_PLAIN
} fth_zarr_packing;

typedef struct fth_zarr_array {
    int format; /* 2 or 3; 0: 3 */
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    int64_t chunk[FTH_MAX_AXES]; /* cut to the size; 0: the whole axis */
    /* Chunks along each axis that share a file (version 3); 0: 1; all 0 or 1: no shards. Where it
     * reaches beyond the last chunk it is cut. */
    int64_t per_shard[FTH_MAX_AXES];
    fth_zarr_packing packing;
    const char *axis[FTH_MAX_AXES]; /* names of dimensions (version 3); NULL: none */
} fth_zarr_array;

/* A sink that takes rectangles in any order. Chunks that come whole are packed at once; parts of
 * chunks wait in files of the folder until the chunk is complete. Equal data give equal files,
 * whatever the order and the number of threads. A folder of that name is replaced by the commit if
 * it is a Zarr folder, else refused. */
FTH_API FTH_MUST_USE fth_status fth_zarr_create(fth_sink *out, fth_mem *mem, const char *path,
                                                const fth_zarr_array *array, fth_err *err);

/* ---- OME-NGFF, written ---- */

/* An image with smaller copies of itself, each of half the size: means of 2 x 2 pixels, rounded
 * half up, made time point by time point as these become complete. */
typedef struct fth_ngff_image {
    int version; /* 4: NGFF 0.4 on Zarr 2; 5: 0.5 on Zarr 3, a shard for each time point; 0: 5 */
    fth_dtype dtype;       /* u8 u16 u32 i8 i16 i32 or f32 */
    int64_t t, c, z, y, x; /* z 0: there is no axis z */
    int64_t tile;          /* chunks of tile x tile pixels; 0: of whole planes */
    int levels;            /* with the first; 0: 3; fewer where a side would have no two pixels */
    fth_zarr_packing packing;
    /* 0 where not known: */
    double um_per_px, z_step_um, period_ms;
    const char *name;           /* NULL: none */
    const char *const *channel; /* names of c channels; NULL: none */
    /* For plans: sinks have the shape, and the memory is taken, but nothing is written. */
    bool planned;
} fth_ngff_image;

/* A sink over t c y x, or t c z y x. */
FTH_API FTH_MUST_USE fth_status fth_ngff_create(fth_sink *out, fth_mem *mem, const char *path,
                                                const fth_ngff_image *image, fth_err *err);

/* A plate of wells "A01", each with so many fields that are such images. */
typedef struct fth_ngff_plate fth_ngff_plate;
FTH_API FTH_MUST_USE fth_status fth_ngff_plate_create(fth_ngff_plate **out, fth_mem *mem,
                                                      const char *path, const fth_ngff_image *image,
                                                      const char *const *wells, int64_t n_wells,
                                                      int64_t fields, fth_err *err);
/* Valid until the plate ends. Wells may be written in any order, several at once. Its commit says
 * that the field is complete; its abandon, that the plate never will be. */
FTH_API FTH_MUST_USE fth_status fth_ngff_plate_sink(fth_ngff_plate *plate, int64_t well,
                                                    int64_t field, fth_sink *out, fth_err *err);
/* Refused unless every field was committed. Ends the plate either way. */
FTH_API FTH_MUST_USE fth_status fth_ngff_plate_commit(fth_ngff_plate *plate, fth_err *err);
FTH_API void fth_ngff_plate_abandon(fth_ngff_plate *plate); /* NULL is allowed */

FTH_END_DECLS
#endif /* FATHOM_ZARR_H */
