/* recon.h - a reconstruction, or an object to compare with, read from a file of any format.
 *
 * Read are: reconstruction.npz of ours and of the wrappers of Tike and pty-chi, the objectGuess of
 * an NPZ scan, a product HDF5 file, a .npy of one image. FILE:NAME takes the array NAME of a file.
 */
#ifndef PTYCHO_RECON_RECON_H
#define PTYCHO_RECON_RECON_H

#include "../metrics/image.h"

#include <fathom/files.h>

typedef struct pt_recon {
    fth_mem *mem;
    char path[FTH_PATH];   /* without :NAME */
    char name[64];         /* of the array of the object in the file; "" in a .npy */
    pt_image object;       /* the first slice, where there are several */
    fth_tensor *probe;     /* c64 [mode row col]; NULL: none */
    int64_t modes, side;   /* of the probe */
    fth_tensor *positions; /* f64 [n 2], x then y, in pixels; NULL: none */
    int64_t n_positions;
    double origin_x, origin_y; /* of pixel (0, 0), in the frame of the positions */
    bool has_origin;           /* the file says so */
    bool is_scan;       /* the object is objectGuess of a scan: its pixel (0, 0) is x = y = 0 */
    fth_tensor *errors; /* f64 [epoch]; NULL: none */
    int64_t n_errors;
    double pixel_m; /* 0: not known */
} pt_recon;

/* FTH_E_FILE_KEY lists the arrays of a file that has no object. On failure it is closed. */
fth_status pt_recon_open(pt_recon *out, fth_mem *mem, const char *path, fth_err *err);
void pt_recon_close(pt_recon *r); /* an empty one is allowed */
/* Whether a file may be a scan: an NPZ with patterns, or HDF5 other than a plain object. */
bool pt_has_patterns(fth_mem *mem, const char *path);
/* What an open reconstruction holds. */
uint64_t pt_recon_bytes(const pt_recon *r);

/* Rectangles of two objects that show the same part of the sample: by their origins where both are
 * known, else about their middles. `margin` is how far beyond the positions they reach. */
typedef struct pt_overlay {
    int64_t rows, cols;
    int64_t first_row, first_col, second_row, second_col;
} pt_overlay;
fth_status pt_recon_overlay(const pt_recon *first, const pt_recon *second, int64_t margin,
                            pt_overlay *out, fth_err *err);

#endif
