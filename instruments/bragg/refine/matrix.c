/* matrix.c - a model given by a matrix, as cell and misset.
 *
 * The cell comes from the placed vectors; the misset is the rotation that brings the same cell,
 * placed without one, onto them. From then on cell and orientation are parameters like those of a
 * typed cell.
 */
#include "../geometry/cell.h"
#include "refine.h"

#include <math.h>
#include <string.h>

/* Angles of a rotation about x, then y, then z (model 8.3). */
static void angles_of(double r[3][3], double *angle)
{
    if (r[2][0] * r[2][0] < 1) {
        angle[0] = atan2(r[2][1], r[2][2]);
        angle[1] = atan2(-r[2][0], sqrt(r[2][1] * r[2][1] + r[2][2] * r[2][2]));
        angle[2] = atan2(r[1][0], r[0][0]);
        return;
    }
    /* y is +-90 degrees: x and z rotate about one axis, and x is merged into z. */
    angle[0] = 0;
    angle[1] = r[2][0] < 0 ? asin(1.0) : -asin(1.0);
    angle[2] = atan2(-r[0][1], r[1][1]);
}

static double determinant(double m[3][3])
{
    double d = 0;
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        d += m[0][i] * (m[1][j] * m[2][k] - m[1][k] * m[2][j]);
    }
    return d;
}

fth_status br_matrix_to_cell(br_experiment *e, fth_err *err)
{
    br_scene *s = &e->scene;
    br_placed plain;
    double v[3][3], edge[3], angle[3], turn[3][3] = {{0}};
    br_place(s, e->param, &e->placed);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) v[i][k] = e->placed.abc[i][k].v * 1e10;
    if (!(determinant(v) > 0)) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "the matrix is of a left-handed cell (volume %g A^3)",
                 determinant(v));
        fth_err_hint(err, "change the sign of one axis of the matrix");
        return FTH_E_FILE_FORMAT;
    }
    br_cell_of((const double(*)[3])v, edge, angle);
    for (int i = 0; i < 3; i++) e->param[BR_A + i] = edge[i], e->param[BR_AL + i] = angle[i];
    s->cell_given = 1, s->mat_given = 0, s->misset_given = 1;
    memset(s->mat, 0, sizeof s->mat);
    s->quirks &= ~(1u << BR_QUIRK_CSTAR_Z); /* a matrix is used as it is */
    for (int i = 0; i < 3; i++) e->param[BR_MX + i] = 0;
    br_place(s, e->param, &plain);
    for (int i = 0; i < 3; i++) /* sum of (v_i rotated) x (v_i*): the rotation itself */
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++) turn[r][c] += v[i][r] * plain.star[i][c].v;
    angles_of(turn, &e->param[BR_MX]);
    br_place(s, e->param, &e->placed);
    return FTH_OK;
}
