/* fathom/zarr.h - Zarr arrays, versions 2 and 3.
 *
 * An array is a folder of chunks. Opening reads its metadata alone; rectangles are read chunk by
 * chunk, those that are missing as the fill value. What is accepted and refused is in
 * docs/formats.md.
 *
 *   fth_zarr *zarr;
 *   FTH_TRY(fth_zarr_open(&zarr, mem, path, err));
 *   s = fth_zarr_source(zarr, &source, err);
 *   fth_zarr_close(zarr);
 *
 * Ownership: sources live on after their array is closed.
 * Threads:   sources may be read by several threads at once: each chunk that is
 *            being unpacked has a room of its own, which is taken when the source is
 *            made. There are as many as fit in a sixteenth of the memory budget, 1 to 8;
 *            further threads wait.
 * Failure:   the file of the chunk, what was expected, what was found.
 */
#ifndef FATHOM_ZARR_H
#define FATHOM_ZARR_H

#include <fathom/io.h>
#include <fathom/json.h>

FTH_BEGIN_DECLS

/* ---- reading ---- */

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

FTH_END_DECLS
#endif /* FATHOM_ZARR_H */
