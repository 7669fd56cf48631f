/* cell.c - edges and angles of a cell, back from its vectors: what the console shows. */
#include "cell.h"

#include <math.h>

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

void br_cell_of(const double v[3][3], double *edge, double *angle)
{
    for (int i = 0; i < 3; i++) edge[i] = sqrt(dot(v[i], v[i]));
    for (int i = 0; i < 3; i++) {
        const double *a = v[(i + 1) % 3], *b = v[(i + 2) % 3];
        double cross[3];
        for (int x = 0; x < 3; x++) {
            const int y = (x + 1) % 3, z = (x + 2) % 3;
            cross[x] = a[y] * b[z] - a[z] * b[y];
        }
        const double over = edge[(i + 1) % 3] * edge[(i + 2) % 3];
        const double s = sqrt(dot(cross, cross)) / over, c = dot(a, b) / over;
        angle[i] = atan2(s > 1 ? 1 : s, c > 1 ? 1 : c < -1 ? -1 : c);
    }
}

/* The sine of a reciprocal angle uses the volume of the given cell, which with cstar-z differs from
 * that of the vectors: the console of the reference prints these angles. */
void br_placed_cells(const br_placed *f, double *edge, double *angle, double *edge_star,
                     double *angle_star)
{
    double v[3][3];
    for (int i = 0; i < 9; i++) v[i / 3][i % 3] = f->star[i / 3][i % 3].v;
    br_cell_of((const double(*)[3])v, edge_star, angle_star);
    double cosine[3];
    for (int i = 0; i < 3; i++)
        cosine[i] =
            dot(v[(i + 1) % 3], v[(i + 2) % 3]) / (edge_star[(i + 1) % 3] * edge_star[(i + 2) % 3]);
    for (int i = 0; i < 9; i++) v[i / 3][i % 3] = f->abc[i / 3][i % 3].v * 1e10;
    br_cell_of((const double(*)[3])v, edge, angle);
    for (int i = 0; f->volume < 0 && i < 3; i++) angle[i] = -angle[i]; /* a left-handed matrix */
    for (int i = 0; i < 3; i++) {
        const double s = edge[i] / f->volume / (edge_star[(i + 1) % 3] * edge_star[(i + 2) % 3]);
        const double c = cosine[i];
        angle_star[i] = atan2(s > 1 ? 1 : s < -1 ? -1 : s, c > 1 ? 1 : c < -1 ? -1 : c);
    }
}
