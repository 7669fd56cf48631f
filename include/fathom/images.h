/* fathom/images.h - image files of microscopes, whatever their format: named axes and metadata.
 *
 * A file is a block of pictures over up to six axes, always in this order: t time points,
 * p positions of the stage, z planes, c channels, y rows, x columns. An axis that a file lacks has
 * size 1. Opening reads headers alone; pixels are read through the source.
 *
 *   fth_images *images;
 *   FTH_TRY(fth_images_open(&images, mem, path, NULL, err));
 *   const fth_images_info *info = fth_images_get_info(images);
 *   FTH_TRY(fth_images_source(images, &source, err));        six axes: t p z c y x
 *
 * Ownership: texts live as long as the images. The source lives on after the images are closed.
 * Threads:   after opening, any number of threads may query the images; the source is concurrent.
 * Failure:   the error names file, byte or chunk, what was expected and what was found; *out is
 * NULL.
 */
#ifndef FATHOM_IMAGES_H
#define FATHOM_IMAGES_H

#include <fathom/io.h>

FTH_BEGIN_DECLS

typedef enum fth_images_axis {
    FTH_IMAGES_T,
    FTH_IMAGES_P,
    FTH_IMAGES_Z,
    FTH_IMAGES_C,
    FTH_IMAGES_Y,
    FTH_IMAGES_X,
    FTH_IMAGES_AXES
} fth_images_axis;

typedef struct fth_images_info {
    const char *format; /* "nd2", "tiff", "imagej", "ome-tiff", "zarr", "ome-ngff", "png", ... */
    const char *axes;   /* those that the file has, outermost first: "tpzcyx" */
    int64_t size[FTH_IMAGES_AXES];
    fth_dtype dtype;      /* u8 u16 u32 i8 i16 i32 or f32; of pictures u8, u16 or f32 */
    int significant_bits; /* of the camera; those of the dtype where the file does not say */
    bool rgb;             /* the channels are red, green and blue of one picture */
    bool alpha;           /* and the last of them says how opaque a pixel is */
    /* 0 where the file does not say: */
    double um_per_px;        /* along x; pixels are taken as square */
    double z_step_um;        /* between planes */
    double period_ms;        /* between time points, as planned */
    double unix_seconds;     /* when the acquisition began */
    double magnification;    /* of the objective */
    const char *objective;   /* "" where the file does not say */
    const char *description; /* free text of the file, "" for none */
    int64_t frames_expected; /* t * p * z */
    int64_t frames_present;
    int64_t frames_repaired; /* present, and found only by repairing the file's index */
    const char *damage;      /* what is wrong with the file and was worked around; "" for nothing */
} fth_images_info;

typedef struct fth_images_position {
    const char *name;        /* "" where it has none */
    double x_um, y_um, z_um; /* of the stage; NaN where not known */
} fth_images_position;

/* One picture with all its channels. */
typedef struct fth_images_frame {
    bool present; /* false: pixels read as zero, and never win a fusion */
    bool repaired;
    double time_ms; /* since the acquisition began; by its period where no time is recorded,
                     * NaN where neither is known */
    double x_um, y_um, z_um; /* of the stage, as recorded; NaN where not known */
} fth_images_frame;

/* How pixels get from a file into memory; all give the same. */
typedef enum fth_read_mode {
    FTH_READ_PREAD,
    FTH_READ_MMAP,  /* through mapped pages, a window at a time */
    FTH_READ_DIRECT /* past the page cache; not every file system lets us */
} fth_read_mode;
typedef struct fth_images_options {
    /* ND2: bytes around the place where the index should be that are searched for it before the
     * whole file is scanned; 0: 64 KiB. */
    uint64_t search_bytes;
    bool rgb_is_bgr;         /* ND2: colour pictures hold blue, green, red */
    fth_read_mode read_mode; /* ND2 */
    bool alpha;              /* pictures: how opaque a pixel is is a channel of its own, the last */
    bool common;             /* pixels of other dtypes than u8, u16 and f32 are refused */
} fth_images_options;

typedef struct fth_images fth_images;
/* Open a file, or a folder that is one (Zarr), by what is in it, not by its name. FTH_E_FILE_FORMAT
 * lists the formats that are known. `options` may be NULL. */
FTH_API FTH_MUST_USE fth_status fth_images_open(fth_images **out, fth_mem *mem, const char *path,
                                                const fth_images_options *options, fth_err *err);
FTH_API void fth_images_close(fth_images *images); /* NULL is allowed */
FTH_API const fth_images_info *fth_images_get_info(const fth_images *images);
/* Name of a channel, "" where it has none; NULL past the last. */
FTH_API const char *fth_images_channel(const fth_images *images, int64_t c);
/* All unknown past the last. */
FTH_API fth_images_position fth_images_get_position(const fth_images *images, int64_t p);
FTH_API fth_images_frame fth_images_get_frame(const fth_images *images, int64_t t, int64_t p,
                                              int64_t z);
/* All pixels, over the six axes. Missing pictures read as zeros. */
FTH_API FTH_MUST_USE fth_status fth_images_source(fth_images *images, fth_source *out,
                                                  fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_IMAGES_H */
