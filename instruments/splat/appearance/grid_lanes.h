/* grid_lanes.h - the loops of loops.h in one precision. Rows of an image are independent forward;
 * backward a strip of rows between two rows of cells is one worker's, and cells add strips in their
 * order. */
#include "loops.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define GS_BOTH
#include "cells.h"

enum { CORNERS = 4 };

typedef struct bench {
    const gs_slice_work *w;
    axis i, j;
    int luma, strips;
    int64_t cell;   /* reals of all levels of a cell */
    real *table;    /* of each worker: cells between two rows, [column luma affine] */
    int64_t tables; /* reals of one */
    real *part;     /* sums of strips, [piece-row strip piece corner luma affine] */
} bench;

static uint64_t up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static bench bench_of(const gs_slice_work *w)
{
    bench b = {.w = w, .i = axis_of(w->height, w->rows), .j = axis_of(w->width, w->columns)};
    b.luma = (int)w->luma;
    b.strips = strips_of(&b.i);
    b.cell = w->luma * GS_AFFINE;
    b.tables = (int64_t)(up((uint64_t)(w->columns * b.cell) * sizeof(real)) / sizeof(real));
    b.table = w->scratch;
    b.part = b.table + b.tables * (w->threads > 1 ? w->threads : 1);
    return b;
}

static int64_t strip_reals(const bench *b)
{
    return (b->w->columns - 1) * CORNERS * b->cell;
}

static uint64_t slice_scratch(const gs_slice_work *w, bool back)
{
    const bench b = bench_of(w);
    const int64_t parts = back ? (w->rows - 1) * b.strips * strip_reals(&b) : 0;
    return (uint64_t)(b.tables * (w->threads > 1 ? w->threads : 1) + parts) * sizeof(real);
}

static const real *number(const gs_strided *a, int64_t i, int64_t j)
{
    return (const real *)a->data + i * a->stride[0] + j * a->stride[1];
}

/* The cells beside a row of the image, joined. */
static real *join_rows(const bench *b, int piece, int64_t i, int worker)
{
    const gs_strided *g = &b->w->grid;
    const real down = within(&b->i, piece, (int)i), *cells = g->data;
    real *table = b->table + worker * b->tables;
    for (int64_t k = 0; k < GS_AFFINE; k++)
        for (int64_t l = 0; l < b->w->luma; l++) {
            const real *at = cells + k * g->stride[0] + l * g->stride[1] + piece * g->stride[2];
            for (int64_t x = 0; x < b->w->columns; x++, at += g->stride[3])
                table[x * b->cell + l * GS_AFFINE + k] = FMA(down, at[g->stride[2]] - at[0], at[0]);
        }
    return table;
}

static int piece_of(const axis *a, int64_t p)
{
    const int piece = (int)((real)p * a->by);
    return piece < a->cells - 2 ? piece : a->cells - 2;
}

static void slice_row(void *arg, int64_t i, int worker)
{
    const bench *b = arg;
    const gs_slice_work *w = b->w;
    const real *table = join_rows(b, piece_of(&b->i, i), i, worker);
    real map[GS_AFFINE], slope[GS_AFFINE];
    for (int x = 0; x + 1 < b->j.cells; x++) {
        const int end = first_of(&b->j, x + 1);
        for (int j = first_of(&b->j, x); j < end; j++) {
            pixel p;
            pixel_of(number(&w->image, i, j), b->luma, &p);
            map_of(table + x * b->cell, table + (x + 1) * b->cell, within(&b->j, x, j), &p, map,
                   slope);
            real *to = (real *)w->out.data + i * w->out.stride[0] + j * w->out.stride[1];
            for (int o = 0; o < 3; o++) to[o] = mapped(map + 4 * o, &p);
        }
    }
}

static void slice_run(const gs_slice_work *w)
{
    bench b = bench_of(w);
    fth_team_run(w->team, w->height, slice_row, &b);
}

/* ---- backward ---- */

/* A pixel's share of the four columns of cells around it. */
static void add_cells(const bench *b, real *sums, const pixel *p, const real bar[3], real across,
                      real down)
{
    const real corner[CORNERS] = {(1 - across) * (1 - down), across * (1 - down),
                                  (1 - across) * down, across * down};
    real product[GS_AFFINE];
    for (int k = 0; k < GS_AFFINE; k++) product[k] = bar[k / 4] * p->v[k % 4];
    for (int c = 0; c < CORNERS; c++) {
        real *low = sums + c * b->cell + p->low * GS_AFFINE,
             *high = sums + c * b->cell + p->high * GS_AFFINE;
        const real to_low = corner[c] * (1 - p->up), to_high = corner[c] * p->up;
        for (int k = 0; k < GS_AFFINE; k++) low[k] = FMA(to_low, product[k], low[k]);
        for (int k = 0; k < GS_AFFINE; k++) high[k] = FMA(to_high, product[k], high[k]);
    }
}

static void back_row(const bench *b, int piece, int64_t i, real *sums, int worker)
{
    const gs_slice_work *w = b->w;
    const real *table = w->out.data ? join_rows(b, piece, i, worker) : NULL,
               down = within(&b->i, piece, (int)i);
    real map[GS_AFFINE], slope[GS_AFFINE];
    for (int x = 0; x + 1 < b->j.cells; x++) {
        const int end = first_of(&b->j, x + 1);
        for (int j = first_of(&b->j, x); j < end; j++) {
            const real *bar = number(&w->bar, i, j), across = within(&b->j, x, j);
            pixel p;
            pixel_of(number(&w->image, i, j), b->luma, &p);
            add_cells(b, sums + x * CORNERS * b->cell, &p, bar, across, down);
            if (!table) continue;
            map_of(table + x * b->cell, table + (x + 1) * b->cell, across, &p, map, slope);
            colour_back(map, slope, &p, bar, b->luma,
                        (real *)w->out.data + i * w->out.stride[0] + j * w->out.stride[1]);
        }
    }
}

static void back_strip(void *arg, int64_t task, int worker)
{
    const bench *b = arg;
    const int piece = (int)(task / b->strips), strip = (int)(task % b->strips),
              first = first_of(&b->i, piece) + strip * GS_STRIP, end = first_of(&b->i, piece + 1);
    real *sums = b->part + task * strip_reals(b);
    memset(sums, 0, (size_t)strip_reals(b) * sizeof *sums);
    for (int i = first; i < first + GS_STRIP && i < end; i++) back_row(b, piece, i, sums, worker);
}

/* The cells of a row: pieces above and below, their strips, pieces to the left and to the right. */
static void add_strips(void *arg, int64_t y, int worker)
{
    const bench *b = arg;
    const gs_slice_work *w = b->w;
    const gs_strided *to = &w->grid_bar;
    (void)worker;
    for (int64_t x = 0; x < w->columns; x++)
        for (int64_t n = 0; n < b->cell; n++) {
            double sum = 0;
            for (int64_t py = y > 0 ? y - 1 : 0; py <= y && py < w->rows - 1; py++)
                for (int64_t s = 0; s < b->strips; s++)
                    for (int64_t px = x > 0 ? x - 1 : 0; px <= x && px < w->columns - 1; px++) {
                        const int64_t corner = 2 * (y - py) + x - px;
                        sum += (double)b->part[(py * b->strips + s) * strip_reals(b) +
                                               (px * CORNERS + corner) * b->cell + n];
                    }
            ((real *)to->data)[n % GS_AFFINE * to->stride[0] + n / GS_AFFINE * to->stride[1] +
                               y * to->stride[2] + x * to->stride[3]] = (real)sum;
        }
}

static void back_run(const gs_slice_work *w)
{
    bench b = bench_of(w);
    fth_team_run(w->team, (w->rows - 1) * b.strips, back_strip, &b);
    if (w->grid_bar.data) fth_team_run(w->team, w->rows, add_strips, &b);
}

/* ---- variation of all grids ---- */

typedef struct slopes {
    gs_slope_work *w;
    double by[3];
} slopes;

static void slope_grid(void *arg, int64_t n, int worker)
{
    const slopes *s = arg;
    const gs_slope_work *w = s->w;
    const int64_t size[3] = {w->luma, w->rows, w->columns}, *step = w->grids.stride + 2;
    double loss = 0;
    (void)worker;
    for (int64_t m = 0; m < GS_AFFINE * w->luma * w->rows * w->columns; m++) {
        const int64_t at[3] = {m / (size[2] * size[1]) % size[0], m / size[2] % size[1],
                               m % size[2]},
                      k = m / (size[2] * size[1] * size[0]);
        const real *here = (const real *)w->grids.data + n * w->grids.stride[0] +
                           k * w->grids.stride[1] + at[0] * step[0] + at[1] * step[1] +
                           at[2] * step[2];
        real sum = 0;
        for (int d = 0; d < 3; d++) {
            const real before = at[d] > 0 ? here[0] - here[-step[d]] : 0,
                       after = at[d] + 1 < size[d] ? here[step[d]] - here[0] : 0;
            sum = FMA((real)(2 * s->by[d]), before - after, sum);
            loss += s->by[d] * (double)after * (double)after;
        }
        const int64_t *bar = w->bar.stride, *to = w->gradient.stride;
        if (n == w->at)
            sum += ((const real *)
                        w->bar.data)[k * bar[0] + at[0] * bar[1] + at[1] * bar[2] + at[2] * bar[3]];
        if (w->gradient.data)
            ((real *)w->gradient
                 .data)[n * to[0] + k * to[1] + at[0] * to[2] + at[1] * to[3] + at[2] * to[4]] =
                sum;
    }
    w->scratch[n] = loss;
}

static void slope_run(gs_slope_work *w)
{
    slopes s = {.w = w};
    gs_slope_weights(w, s.by);
    fth_team_run(w->team, w->images, slope_grid, &s);
    w->loss = 0;
    for (int64_t n = 0; n < w->images; n++) w->loss += w->scratch[n];
}
