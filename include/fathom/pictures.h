/* fathom/pictures.h - one picture as a file: PNG, JPEG, TIFF, PGM or WebP.
 *
 *   const fth_picture picture = {.dtype = FTH_U8, .height = h, .width = w, .channels = 1,
 *                                .pixels = px, .um_per_px = 3.2347};
 *   fth_picture_format format;
 *   FTH_TRY(fth_picture_format_parse("jpg:90", &format, err));
 *   FTH_TRY(fth_picture_save(mem, path, &picture, &format, err));
 *
 * Equal pixels give equal bytes. Stacks of pictures are in fathom/tiff.h and fathom/images.h.
 *
 * Ownership: pixels are borrowed; what encode and load return is given back by the caller.
 * Threads:   any number at once.
 * Failure:   a file appears whole or not at all; on failure nothing is held.
 */
#ifndef FATHOM_PICTURES_H
#define FATHOM_PICTURES_H

#include <fathom/io.h>

FTH_BEGIN_DECLS

typedef enum fth_picture_kind {
    FTH_PICTURE_PNG,
    FTH_PICTURE_PNG16,
    FTH_PICTURE_JPG,
    FTH_PICTURE_TIF,
    FTH_PICTURE_TIF16,
    FTH_PICTURE_TIF32,
    FTH_PICTURE_PGM,
    FTH_PICTURE_WEBP,
    FTH_PICTURE_KINDS
} fth_picture_kind;

typedef struct fth_picture_kind_info {
    const char *name;   /* "png16" */
    const char *ending; /* ".png" */
    fth_dtype dtype;    /* of its pixels; PGM takes u16 as well */
    const char *doc;
} fth_picture_kind_info;
FTH_API const fth_picture_kind_info *fth_picture_kind_get_info(fth_picture_kind kind);

typedef struct fth_picture_format {
    fth_picture_kind kind;
    int quality;  /* JPEG: 1 to 100; 0: 75 */
    bool deflate; /* TIFF: packed, after taking differences of neighbours */
} fth_picture_format;
/* "png16", "jpg:90", "tif:deflate"; FTH_E_USAGE lists the kinds there are. */
FTH_API FTH_MUST_USE fth_status fth_picture_format_parse(const char *text, fth_picture_format *out,
                                                         fth_err *err);
/* By the ending of a name: png, jpg, jpeg, tif, tiff, pgm, ppm, webp. The kind is the one of 8
 * bits. */
FTH_API FTH_MUST_USE fth_status fth_picture_format_of_path(const char *path,
                                                           fth_picture_format *out, fth_err *err);

typedef struct fth_picture {
    fth_dtype dtype; /* u8, u16 or f32 */
    int64_t height, width;
    int channels;       /* 1: grey; 3: red, green, blue side by side (not as TIFF of floats); 4: and
                         * alpha (written as WebP alone) */
    const void *pixels; /* row after row */
    double um_per_px;   /* 0: not known */
} fth_picture;

/* The most bytes that such a file has, and what encoding takes from `mem` beside them. */
FTH_API uint64_t fth_picture_bound(const fth_picture *picture, const fth_picture_format *format);
FTH_API uint64_t fth_picture_work_bytes(const fth_picture *picture,
                                        const fth_picture_format *format);
/* The file in memory: a block of fth_picture_bound bytes, of which *bytes are the file. Give *data
 * back with fth_mem_release. */
FTH_API FTH_MUST_USE fth_status fth_picture_encode(fth_mem *mem, const fth_picture *picture,
                                                   const fth_picture_format *format, void **data,
                                                   uint64_t *bytes, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_picture_save(fth_mem *mem, const char *path,
                                                 const fth_picture *picture,
                                                 const fth_picture_format *format, fth_err *err);

/* A file that holds one picture, of any format of fathom/images.h. End it with fth_picture_free. */
FTH_API FTH_MUST_USE fth_status fth_picture_load(fth_mem *mem, const char *path, fth_picture *out,
                                                 fth_err *err);
/* The same with its alpha where the file has it, as the last of 2 or 4 channels. Also files of 2 or
 * 4 channels without alpha: *alpha says which. */
FTH_API FTH_MUST_USE fth_status fth_picture_load_alpha(fth_mem *mem, const char *path,
                                                       fth_picture *out, bool *alpha, fth_err *err);
/* Of a file in memory, PNG, JPEG, PGM, BMP or WebP; `label` names it in messages. */
FTH_API FTH_MUST_USE fth_status fth_picture_decode(fth_mem *mem, const char *label,
                                                   const void *data, uint64_t bytes,
                                                   fth_picture *out, bool *alpha, fth_err *err);
FTH_API void fth_picture_free(fth_mem *mem, fth_picture *picture); /* clears it */

FTH_END_DECLS
#endif /* FATHOM_PICTURES_H */
