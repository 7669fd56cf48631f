/* io/ngff_out.h - OME-NGFF on its way to the disk: one image, alone or a field of a plate.
 *
 * A spec is what all images of a folder share; the work is the memory in which smaller copies are
 * made, one at a time.
 */
#ifndef FTH_IO_NGFF_OUT_H
#define FTH_IO_NGFF_OUT_H

#include "io/zarr.h"

enum { FTH__NGFF_LEVELS = 8 }; /* at most: the last has 1/128 of the first one's side */

typedef struct fth__ngff_spec {
    fth_mem *mem;
    int version; /* 4 or 5 */
    bool planned;
    char axes[8];
    int levels;
    fth__zarr_meta level[FTH__NGFF_LEVELS];
    double scale[3];     /* ms, um of z, um of a pixel; 0 where not known */
    char *name;          /* "" for none */
    fth_texts *channels; /* empty: none */
    fth__zarr_rooms rooms;
    pthread_mutex_t lock; /* of the work */
    uint8_t *from, *to;   /* rows of a level, and of the next */
    uint64_t work_bytes;
} fth__ngff_spec;
/* Checks the image; FTH_E_USAGE names what makes no sense. Takes the rooms and the work. */
fth_status fth__ngff_spec_open(fth__ngff_spec *s, fth_mem *mem, const fth_ngff_image *image,
                               fth_err *err);
void fth__ngff_spec_close(fth__ngff_spec *s); /* zeroed is allowed */
/* A sink of this spec but for its functions. */
fth_sink fth__ngff_spec_sink(const fth__ngff_spec *s);

/* An image below a folder that is there. */
typedef struct fth__ngff_out fth__ngff_out;
fth_status fth__ngff_out_open(fth__ngff_out **out, fth__ngff_spec *s, const char *folder,
                              fth_err *err);
fth_status fth__ngff_out_write(fth__ngff_out *o, const int64_t *lo, const int64_t *n,
                               const void *src, fth_err *err);
fth_status fth__ngff_out_check(const fth__ngff_out *o, fth_err *err); /* as fth__zarr_out_check */
void fth__ngff_out_close(fth__ngff_out *o);                           /* NULL is allowed */

/* Half the size: means of 2 x 2, of the pixels there are at an odd edge, rounded half up. */
void fth__ngff_halve(fth_dtype dtype, const void *from, int64_t rows, int64_t columns, void *to);

/* ---- metadata ---- */

/* A group whose attributes of NGFF the caller puts between the two. */
void fth__ngff_group_begin(fth_json_writer *w, fth_mem *mem, int version);
fth_status fth__ngff_group_save(fth_json_writer *w, fth_mem *mem, int version, const char *folder,
                                fth_err *err);
/* A group without attributes. */
fth_status fth__ngff_group_plain(fth_mem *mem, int version, const char *folder, fth_err *err);
fth_status fth__ngff_image_save(const fth__ngff_spec *s, const char *folder, fth_err *err);

#endif
