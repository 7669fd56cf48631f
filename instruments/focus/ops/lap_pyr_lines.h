/* lap_pyr_lines.h - details of one level of one plane and their energy, row by row. */
#ifndef FOCUS_OPS_LAP_PYR_LINES_H
#define FOCUS_OPS_LAP_PYR_LINES_H

#include "lap_pyr.h"

enum { FO_LAP_MARGIN = 32, FO_LAP_MAX_WINDOW = 31, FO_LAP_BLOCK = 64 };

typedef struct fo_lap_lines {
    const fo_lap_loops *loops;
    fo_walk fine, coarse;
    int64_t height, width; /* of the fine level */
    int64_t half, window, len;
    int64_t s, z, next; /* next row of details to be made, which may lie outside */
    float *row, *across, *up, *square, *wide, *ring, *energy;
} fo_lap_lines;

int64_t fo_lap_lines_floats(int64_t width, int64_t window);
/* Of call->in[0] and call->in[1]; planes without a z have in[0] as details and no energy. */
void fo_lap_lines_init(fo_lap_lines *l, const fth_call *call, int64_t window, float *work);
/* Plane z of stack s, whose energy is asked for from row y on, in order. */
void fo_lap_lines_start(fo_lap_lines *l, int64_t s, int64_t z, int64_t y);
/* The energy of row y, and its details. */
const float *fo_lap_lines_energy(fo_lap_lines *l, int64_t y, const float **detail);
/* Row y of up(coarse). */
const float *fo_lap_lines_up(fo_lap_lines *l, int64_t y);

/* A row as floats, in place where it is f32 and dense, else in `room`. */
const float *fo_lap_read(const fo_lap_loops *loops, const fo_walk *w, const char *row, float *room,
                         int64_t n);
/* A row of floats for writing: the tile's, or `room` filled from it; and back. */
float *fo_lap_open(char *row, int64_t step, float *room, int64_t n);
void fo_lap_close(char *row, int64_t step, const float *opened, int64_t n);

bool fo_lap_is_stack(const fth_desc *d); /* u8, u16 or f32 over four axes */

#endif
