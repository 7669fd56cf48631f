/* canvas.h - where the patches of groups lie on one canvas, and how large that is. */
#ifndef PTYCHO_STITCH_CANVAS_H
#define PTYCHO_STITCH_CANVAS_H

#include <fathom/fathom.h>

typedef struct pt_canvas {
    fth_mem *mem;
    int64_t crop;       /* side of the middle of a patch that is used */
    int64_t rows, cols; /* of the canvas */
    double origin[2];   /* x, y of its pixel (0, 0) */
    float *shift;       /* [patch xy] from the middle of the canvas */
} pt_canvas;

/* place [patch xy]: where the middles of patches of n pixels lie. Of these the middle `stitch_crop`
 * is used: even and from 2 to n, else FTH_E_COMMAND. The canvas reaches as far on either side, and
 * is a square unless `stitch.canvas` says otherwise. */
fth_status pt_canvas_make(pt_canvas *c, fth_mem *mem, const double *place, int64_t patches,
                          int64_t n, const fth_config *cfg, fth_err *err);
void pt_canvas_clear(pt_canvas *c); /* a cleared one is allowed */
/* patches [patch row col], shift [patch xy] of their real dtype: the canvas [orow ocol]. Pixels of
 * a patch count alike, or as much as `probe` [mode row col] lights them. Declares srow scol orow
 * ocol. */
#define PT_ALIKE ((fth_val){NULL, 0})
fth_val pt_canvas_build(const pt_canvas *c, fth_val patches, fth_val shift, fth_val probe);

#endif
