/* stol_at.c - looking up a table of amplitudes. */
#include "stol.h"

/* The first row that is followed by a larger x, of those that have a row below and two above. */
static BR_BOTH int64_t find(const double *table, int64_t rows, double x)
{
    int64_t low = 1, high = rows + 2 * BR_STOL_GUARD - 2; /* reach of low <= x < reach of high */
    while (high - low > 1) {
        const int64_t mid = (low + high) / 2;
        if (table[BR_STOL_COLUMNS * mid + BR_STOL_REACH] <= x)
            low = mid;
        else
            high = mid;
    }
    return low;
}

BR_BOTH double br_stol_at(const double *table, int64_t rows, double x)
{
    const double *row = table + BR_STOL_COLUMNS * (find(table, rows, x) - 1);
    double at[4], F = 0;
    for (int a = 0; a < 4; a++) at[a] = row[BR_STOL_COLUMNS * a + BR_STOL_X];
    for (int a = 0; a < 4; a++) {
        double term = row[BR_STOL_COLUMNS * a + BR_STOL_F];
        for (int b = 0; b < 4; b++)
            if (b != a) term *= (x - at[b]) / (at[a] - at[b]);
        F += term;
    }
    return F;
}

BR_BOTH int64_t br_stol_nearest(const double *table, int64_t rows, double x)
{
    const int64_t at = find(table, rows, x);
    const double *row = table + BR_STOL_COLUMNS * at;
    const double below = x - row[BR_STOL_X], above = row[BR_STOL_COLUMNS + BR_STOL_X] - x;
    const int64_t found = (above < below ? at + 1 : at) - BR_STOL_GUARD;
    return found < 0 ? 0 : found >= rows ? rows - 1 : found;
}
