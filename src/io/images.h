/* io/images.h - what a format of fathom/images.h fills in.
 *
 * A format is one constant: how its files are recognised, and what is asked of an open one. Its own
 * object begins with struct fth_images, whose `info` it fills in. A new format is a file with its
 * constant and a row in the list of images.c.
 */
#ifndef FTH_IO_IMAGES_H
#define FTH_IO_IMAGES_H

#include <fathom/images.h>

enum { FTH__IMAGES_HEAD = 64 }; /* bytes: signatures have at most 18, those of BMP */

/* What is looked at to recognise a format. */
typedef struct fth__images_head {
    const char *path;
    bool folder;
    uint8_t bytes[FTH__IMAGES_HEAD]; /* zeros behind the end of the file */
    uint64_t n;                      /* of `bytes`; 0 for a folder */
} fth__images_head;

typedef struct fth__images_format {
    const char *name; /* for people: "ND2" */
    bool (*recognise)(const fth__images_head *head);
    /* *out has `format` set, and everything in `info`. */
    fth_status (*open)(fth_images **out, fth_mem *mem, const char *path,
                       const fth_images_options *options, fth_err *err);
    void (*close)(fth_images *images);
    /* Indices are within their axes. NULL: nothing is known. */
    const char *(*channel)(const fth_images *images, int64_t c);
    fth_images_position (*position)(const fth_images *images, int64_t p);
    fth_images_frame (*frame)(const fth_images *images, int64_t t, int64_t p, int64_t z);
    fth_status (*source)(fth_images *images, fth_source *out, fth_err *err);
    const struct fth__picture_rows *rows; /* of formats of single pictures; NULL: it is none */
} fth__images_format;
/* The format of a head; NULL: none that is known. */
const fth__images_format *fth__images_recognise(const fth__images_head *head);

/* Pixels that images may have, and those that every program of ours computes with. */
static inline bool fth__images_common(fth_dtype t)
{
    return t == FTH_U8 || t == FTH_U16 || t == FTH_F32;
}
static inline bool fth__images_dtype(fth_dtype t)
{
    return fth__images_common(t) || t == FTH_U32 || t == FTH_I8 || t == FTH_I16 || t == FTH_I32;
}
static inline bool fth__images_signed(fth_dtype t)
{
    return t == FTH_I8 || t == FTH_I16 || t == FTH_I32;
}

struct fth_images {
    const fth__images_format *format;
    fth_images_info info;
};

#endif
