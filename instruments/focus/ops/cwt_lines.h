/* cwt_lines.h - rows of detail bands of one level of one plane, as they are asked for.
 *
 * Six rows of the level make one row of the bands. They lie in a ring, each dealt into even and odd
 * samples with a margin on both sides, so that filtering down and across are the same loop over
 * lines. Rows and columns of the level are rings; at level 0 padding mirrors the plane.
 */
#ifndef FOCUS_OPS_CWT_LINES_H
#define FOCUS_OPS_CWT_LINES_H

#include "cwt.h"

enum { FO_CWT_MARGIN = 16, FO_CWT_BLOCK = 32 }; /* rows of bands that planes are compared for */

typedef struct fo_cwt_lines {
    const fo_cwt_loops *loops;
    fo_walk in;
    int64_t rows, cols, pad;
    int64_t height, width;           /* of what is read: smaller than the level at level 0 */
    int64_t half, len;               /* columns of the bands; floats of a line */
    int parts;                       /* 1: real */
    int64_t s, z, next;              /* next row of the level to be read */
    float *line, *ring, *down[2][2]; /* down[high][im] */
} fo_cwt_lines;

/* Floats of workspace for a level with so many columns. */
int64_t fo_cwt_lines_floats(int64_t cols);
/* The level that call->in[0] is of. */
void fo_cwt_lines_init(fo_cwt_lines *l, const fth_call *call, float *work);
/* Rows of plane z of stack s follow, from row i of the bands on. */
void fo_cwt_lines_start(fo_cwt_lines *l, int64_t s, int64_t z, int64_t i);
/* Filter down to row i, with rows in order. */
void fo_cwt_lines_down(fo_cwt_lines *l, int64_t i, bool low, bool high);
/* Filter row i across: `half` coefficients. */
void fo_cwt_lines_across(const fo_cwt_lines *l, bool high_y, bool high_x, float *re, float *im);
/* Row i of band b, all bands of a row in order; `corner`: of the level itself, band 0. */
void fo_cwt_lines_band(fo_cwt_lines *l, bool corner, int64_t b, int64_t i, float *re, float *im);

/* A row of floats, u16 or what the stack holds, as floats whatever its stride. */
void fo_cwt_read(const fo_cwt_loops *loops, float *out, const char *row, int64_t step,
                 fth_dtype dtype, int64_t n);
/* A tile's row if its columns lie side by side, else `room`, filled from it. */
float *fo_cwt_open_f32(char *row, int64_t step, float *room, int64_t n);
void *fo_cwt_open_planes(char *row, int64_t step, int64_t size, void *room, int64_t n);
/* What was opened goes back where it came from. */
void fo_cwt_close_f32(char *row, int64_t step, const float *opened, int64_t n);
void fo_cwt_close_planes(char *row, int64_t step, int64_t size, const void *opened, int64_t n);

/* Loops over planes that are named by this dtype; false of fo_cwt_names: not u8 or u16. */
const fo_cwt_planes *fo_cwt_planes_of(const fo_cwt_loops *loops, fth_dtype dtype);
bool fo_cwt_names(fth_dtype dtype);

/* Shapes and messages that the operations share. */
FTH_MUST_USE fth_status fo_cwt_check_level(const fth_node *node, fth_err *err);
bool fo_cwt_is_plane(const fth_node *node); /* level 0 */
/* out[0] along y and x is made in pieces of rows and whole columns, bands and parts. */
int64_t fo_cwt_grid(const fth_node *node, int in, int dim);

#endif
