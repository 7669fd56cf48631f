/* map_fit.c - the grid of a plate on the stage: fitted, and compared with what was mapped. */
#include "../linear/solve.h"
#include "map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- fit ---- */

bool fo_map_fit(fo_stage_place place[FO_WELLS], const fo_stage_place known[FO_WELLS])
{
    double a[9] = {0}, b[6] = {0}; /* three terms, two coordinates */
    for (int w = 0; w < FO_WELLS; w++) {
        if (isnan(known[w].x_um) || isnan(known[w].y_um)) continue;
        const double term[3] = {1, w % FO_COLUMNS,
                                w / FO_COLUMNS}; /* neither the pitch nor its unit matters */
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) a[3 * i + j] += term[i] * term[j];
            b[2 * i] += term[i] * known[w].x_um;
            b[2 * i + 1] += term[i] * known[w].y_um;
        }
    }
    if (!fo_solve(a, b, 3, 2)) return false;
    for (int w = 0; w < FO_WELLS; w++) {
        const double column = w % FO_COLUMNS, row = w / FO_COLUMNS;
        place[w] =
            (fo_stage_place){b[0] + b[2] * column + b[4] * row, b[1] + b[3] * column + b[5] * row};
    }
    return true;
}

/* ---- cross-check ---- */

typedef struct mapped_place {
    double at; /* along one axis of the stage */
    int line;  /* row or column of the plate  */
} mapped_place;

static int by_place(const void *a, const void *b)
{
    const mapped_place *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Cuts sorted coordinates at the largest gaps into as many groups as there are lines: every group
 * must be one line, and lines must increase, or decrease, with the groups. */
static bool lines_agree(mapped_place *p, int64_t n, int lines, bool up)
{
    double gap[FO_WELLS];
    if (lines < 2) return true;
    qsort(p, (size_t)n, sizeof *p, by_place);
    for (int64_t i = 1; i < n; i++) gap[i - 1] = p[i].at - p[i - 1].at;
    qsort(gap, (size_t)(n - 1), sizeof *gap, descending);
    const double cut = gap[lines - 2];
    for (int64_t i = 1; i < n; i++) {
        const int step = p[i].line - p[i - 1].line;
        if (p[i].at - p[i - 1].at < cut ? step != 0 : up ? step <= 0 : step >= 0) return false;
    }
    return true;
}

bool fo_map_agrees(const fo_map *map, const fo_stage_place *position)
{
    mapped_place row[FO_WELLS], column[FO_WELLS];
    bool has_row[FO_ROWS] = {0}, has_column[FO_COLUMNS] = {0};
    int64_t n = 0;
    int rows = 0, columns = 0;
    for (int64_t i = 0; i < map->n && n < FO_WELLS; i++) {
        const int w = map->well[i];
        if (w < 0 || isnan(position[i].x_um) || isnan(position[i].y_um)) continue;
        row[n] = (mapped_place){position[i].y_um, w / FO_COLUMNS};
        column[n++] = (mapped_place){position[i].x_um, w % FO_COLUMNS};
        has_row[w / FO_COLUMNS] = has_column[w % FO_COLUMNS] = true;
    }
    for (int i = 0; i < FO_ROWS; i++) rows += has_row[i];
    for (int i = 0; i < FO_COLUMNS; i++) columns += has_column[i];
    return lines_agree(row, n, rows, true) && lines_agree(column, n, columns, false);
}
