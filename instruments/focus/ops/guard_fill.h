/* guard_fill.h - pixels of the halo guard, for the CPU and a GPU: averages down, fillings up.
 *
 * A level halves the one below, rounding up. Weights say how much of a cell is known: down, a cell
 * has the weighted mean of its four, and their weights' sum, at most 1; up, a cell that is not
 * known at all takes the four nearest of the coarser level, 9 : 3 : 3 : 1, of those that are known.
 */
#ifndef FOCUS_OPS_GUARD_FILL_H
#define FOCUS_OPS_GUARD_FILL_H

#include "depth.h"

/* One level: depths (rows `step` apart) and weights of height x width cells. */
typedef struct fo_guard_level {
    float *depth, *weight;
    int64_t height, width, step;
} fo_guard_level;

/* Cells of all levels above the image. */
FO_BOTH int64_t fo_guard_cells(int64_t height, int64_t width)
{
    int64_t cells = 0;
    for (int i = 0; i < FO_GUARD_LEVELS; i++) {
        height = (height + 1) / 2, width = (width + 1) / 2;
        cells += height * width;
    }
    return cells;
}

FO_BOTH void fo_guard_down(const fo_guard_level *fine, const fo_guard_level *coarse, int64_t y,
                           int64_t x)
{
    float sum = 0, weight = 0;
    for (int64_t i = 2 * y; i < 2 * y + 2 && i < fine->height; i++)
        for (int64_t k = 2 * x; k < 2 * x + 2 && k < fine->width; k++) {
            const float w = fine->weight[i * fine->width + k];
            sum += w * fine->depth[i * fine->step + k];
            weight += w;
        }
    coarse->depth[y * coarse->step + x] = weight > 0 ? sum / weight : 0;
    coarse->weight[y * coarse->width + x] = weight < 1 ? weight : 1;
}

FO_BOTH void fo_guard_up(const fo_guard_level *coarse, const fo_guard_level *fine, int64_t y,
                         int64_t x)
{
    const int64_t at = y * fine->width + x;
    float sum = 0, weight = 0;
    if (fine->weight[at] > 0) return;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            const int64_t cy = y / 2 + (i ? (y % 2 ? 1 : -1) : 0),
                          cx = x / 2 + (k ? (x % 2 ? 1 : -1) : 0);
            if (cy < 0 || cx < 0 || cy >= coarse->height || cx >= coarse->width) continue;
            if (!(coarse->weight[cy * coarse->width + cx] > 0)) continue;
            const float w = (i ? 1.0f : 3.0f) * (k ? 1.0f : 3.0f);
            sum += w * coarse->depth[cy * coarse->step + cx];
            weight += w;
        }
    if (weight > 0) fine->depth[y * fine->step + x] = sum / weight, fine->weight[at] = 1;
}

#endif
