/* ply_packed.h - the packed PLY of PlayCanvas and SuperSplat (.compressed.ply), which is only read.
 *
 * Element "chunk" has the bounds of 256 Gaussians: positions, log scales and, in newer files,
 * colours. A row of "vertex" is four words of 32 bits: position and scale, 11 10 11 bits between
 * the bounds, x first; a unit quaternion, 2 bits for the component that is left out and 10 for each
 * of the others; colour and opacity, a byte each. Element "sh" has f_rest_ as bytes.
 */
#ifndef SPLAT_MODEL_PLY_PACKED_H
#define SPLAT_MODEL_PLY_PACKED_H

#include "../file/ply.h"
#include "model.h"

/* Of an opened file, at its vertices. */
bool gs_ply_is_packed(const gs_ply *p);
/* FTH_E_FILE_FORMAT or FTH_E_FILE_KEY: something is missing. */
fth_status gs_ply_packed_degree(gs_ply *p, int *degree, fth_err *err);
fth_status gs_ply_packed_load(gs_model *m, fth_mem *mem, gs_ply *p, fth_err *err);

#endif
