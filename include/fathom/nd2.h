/* fathom/nd2.h - writing Nikon's ND2 files, as data to try programs with and to hand on.
 *
 * Files are of version 3, with one chunk per frame, a chunk map, loops over time, positions and z,
 * and the metadata that readers ask for. fathom/images.h reads them.
 *
 *   const fth_nd2_options opt = {.size = {2, 96, 15, 1, 2189, 1152}, .dtype = FTH_U16,
 *                                .um_per_px = 3.2347, .z_step_um = 50, .period_ms = 1.9e6};
 *   FTH_TRY(fth_nd2_write(mem, "plate.nd2", &opt, draw, scene, err));
 *
 * Ownership: everything given stays the caller's.
 * Threads:   one call is one thread; several may write different files.
 * Failure:   the file appears whole or not at all; an older one of that name stays until then.
 */
#ifndef FATHOM_ND2_H
#define FATHOM_ND2_H

#include <fathom/images.h>

FTH_BEGIN_DECLS

typedef struct fth_nd2_options {
    int64_t size[FTH_IMAGES_AXES]; /* t p z c y x, each at least 1 */
    fth_dtype dtype;               /* u8, u16 or f32 */
    const char *order;             /* of the loops, outermost first; NULL: "tpz" */
    bool packed;                   /* frames as zlib streams */
    bool rgb;                      /* the three channels are one colour picture */
    /* 0 and NULL: not said. */
    int significant_bits; /* those of the dtype */
    int row_multiple;     /* rows have a multiple of so many bytes: 4 */
    double um_per_px, z_step_um, period_ms, unix_seconds, magnification;
    const char *objective, *description;
    const char *const *channel;          /* size[c] names: "channel 1" */
    const fth_images_position *position; /* size[p] of them */
    const double *time_ms;               /* of each frame, over t p z: t periods */
} fth_nd2_options;

/* Fill in the dense picture [c y x] of one frame, which is asked for once. With *present set to
 * false (it is true before) the frame is left out, as in a file of which parts were lost. A status
 * other than FTH_OK ends the writing with it. */
typedef fth_status fth_nd2_draw(void *user, int64_t t, int64_t p, int64_t z, void *pixels,
                                bool *present, fth_err *err);
/* With NULL for `draw` all pixels are zero and take no room on the disk. Takes the memory of two
 * pictures, and of the chunk map: 40 bytes for each frame. */
FTH_API FTH_MUST_USE fth_status fth_nd2_write(fth_mem *mem, const char *path,
                                              const fth_nd2_options *options, fth_nd2_draw *draw,
                                              void *user, fth_err *err);
/* All frames from a source over t p z c y x; its sizes and dtype count, not those of the options.
 */
FTH_API FTH_MUST_USE fth_status fth_nd2_write_source(fth_mem *mem, const char *path,
                                                     const fth_nd2_options *options,
                                                     const fth_source *source, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_ND2_H */
