/* adjoint.c - derivatives of the placed scene, gathered from its duals. */
#include "adjoint.h"

typedef double matrix[BR_ADJOINTS][BR_SLOPES];

static BR_BOTH void rows(matrix m, int number, const br_dual *v, int n)
{
    for (int i = 0; i < n; i++)
        for (int p = 0; p < BR_SLOPES; p++) m[number + i][p] = v[i].d[p];
}

/* The cell also rotates about the spindle as phi0 changes. */
static BR_BOTH void cell(matrix m, const br_scene *scene, const br_placed *f)
{
    const double *u = scene->spindle;
    for (int x = 0; x < 3; x++)
        for (int i = 0; i < 3; i++) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;
            const double turn = u[j] * f->abc[x][k].v - u[k] * f->abc[x][j].v;
            for (int p = 0; p < BR_SLOPES; p++)
                m[BR_AD_CELL + 3 * x + i][p] = f->abc[x][i].d[p] + turn * f->phi0.d[p];
        }
}

static BR_BOTH void metric(matrix m, const br_placed *f)
{
    static const int pair[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
    for (int i = 0; i < 6; i++) {
        const br_dual *a = f->star[pair[i][0]], *b = f->star[pair[i][1]];
        for (int p = 0; p < BR_SLOPES; p++)
            for (int k = 0; k < 3; k++)
                m[BR_AD_METRIC + i][p] += a[k].v * b[k].d[p] + a[k].d[p] * b[k].v;
    }
}

BR_BOTH void br_slopes_matrix(const br_scene *scene, const br_placed *f,
                              double m[BR_ADJOINTS][BR_SLOPES])
{
    for (int i = 0; i < BR_ADJOINTS; i++)
        for (int p = 0; p < BR_SLOPES; p++) m[i][p] = 0;
    cell(m, scene, f);
    if (scene->shape == BR_GAUSS) metric(m, f);
    rows(m, BR_AD_PIX0, f->pix0, 3);
    rows(m, BR_AD_FDET, f->fdet, 3);
    rows(m, BR_AD_SDET, f->sdet, 3);
    rows(m, BR_AD_ODET, f->odet, 3);
    rows(m, BR_AD_CLOSE, &f->close, 1);
    if (scene->curved) rows(m, BR_AD_DISTANCE, &f->distance, 1);
    rows(m, BR_AD_LAMBDA, &f->lambda, 1);
    rows(m, BR_AD_FLUENCE, &f->fluence, 1);
}

BR_BOTH void br_slopes_make(const br_scene *scene, const br_placed *f, br_slopes *out)
{
    matrix m;
    br_slopes_matrix(scene, f, m);
    out->n = 0;
    for (int p = 0; p < BR_SLOPES; p++)
        for (int i = 0; i < BR_ADJOINTS; i++)
            if (m[i][p] != 0)
                out->slope[out->n++] = (br_slope){.number = i, .param = p, .value = m[i][p]};
}
