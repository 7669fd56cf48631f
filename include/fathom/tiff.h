/* fathom/tiff.h - stacks of pictures as TIFF files: plain, for ImageJ, or OME-TIFF.
 *
 *   const fth_tiff_stack stack = {.flavour = FTH_TIFF_OME, .dtype = FTH_U8, .axes = "tcyx",
 *                                 .size = {57, 1, 2189, 1152}, .um_per_px = 3.2347};
 *   fth_sink sink;
 *   FTH_TRY(fth_tiff_create(&sink, mem, "A01.ome.tif", &stack, err));
 *
 * Pixels are not packed and lie one after the other behind all heads, so rectangles may come in any
 * order and nothing is kept in memory. A file over 4 GiB - 1 MiB is a BigTIFF; one for ImageJ then
 * has a single head, which is how ImageJ keeps large stacks. Reading is in fathom/images.h.
 *
 * Ownership: the texts and lists are copied. The sink is ended by fth_sink_close.
 * Threads:   one at a time for a sink.
 * Failure:   the file appears whole, when the sink is committed, or not at all.
 */
#ifndef FATHOM_TIFF_H
#define FATHOM_TIFF_H

#include <fathom/io.h>

FTH_BEGIN_DECLS

typedef enum fth_tiff_flavour { FTH_TIFF_PLAIN, FTH_TIFF_IMAGEJ, FTH_TIFF_OME } fth_tiff_flavour;

typedef struct fth_tiff_stack {
    fth_tiff_flavour flavour;
    fth_dtype dtype;  /* u8, u16 or f32; but for ImageJ u32, i8, i16 and i32 too */
    const char *axes; /* some of "tzc" in this order, then "yx" */
    int64_t size[FTH_MAX_AXES];
    /* What is not known is 0 or NULL: */
    double um_per_px, z_step_um;
    double period_s;             /* between time points */
    const double *time_s;        /* of each time point */
    const char *const *channels; /* names, one for each of axis c */
    const char *name;            /* of the image */
} fth_tiff_stack;

FTH_API FTH_MUST_USE fth_status fth_tiff_create(fth_sink *out, fth_mem *mem, const char *path,
                                                const fth_tiff_stack *stack, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_TIFF_H */
