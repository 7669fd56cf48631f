/* adjoint.c - derivatives of the frame, gathered from its duals. */
#include "adjoint.h"

/* Adds a row; `phi` is the slope by the angle of the spindle, which moves with phi0. */
static void row(br_slopes *out, const br_frame *frame, int number, const double *d, double phi)
{
    for (int p = 0; p < BR_PARAMS; p++) {
        const double v = d[p] + phi * frame->phi0.d[p];
        if (v != 0) out->slope[out->n++] = (br_slope){.number = number, .param = p, .value = v};
    }
}

static void rows(br_slopes *out, const br_frame *frame, int number, const br_dual *v)
{
    for (int i = 0; i < 3; i++) row(out, frame, number + i, v[i].d, 0);
}

void br_slopes_make(const br_scene *scene, const br_frame *f, br_slopes *out)
{
    static const int pair[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
    const double *u = scene->spindle;
    out->n = 0;
    for (int x = 0; x < 3; x++)
        for (int i = 0; i < 3; i++) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;
            row(out, f, BR_AD_CELL + 3 * x + i, f->abc[x][i].d,
                u[j] * f->abc[x][k].v - u[k] * f->abc[x][j].v);
        }
    for (int i = 0; i < 6; i++) {
        const br_dual *a = f->star[pair[i][0]], *b = f->star[pair[i][1]];
        double d[BR_PARAMS];
        for (int p = 0; p < BR_PARAMS; p++) {
            d[p] = 0;
            for (int k = 0; k < 3; k++) d[p] += a[k].v * b[k].d[p] + a[k].d[p] * b[k].v;
        }
        row(out, f, BR_AD_METRIC + i, d, 0);
    }
    rows(out, f, BR_AD_PIX0, f->pix0);
    rows(out, f, BR_AD_FDET, f->fdet);
    rows(out, f, BR_AD_SDET, f->sdet);
    rows(out, f, BR_AD_ODET, f->odet);
    row(out, f, BR_AD_CLOSE, f->close.d, 0);
    row(out, f, BR_AD_DISTANCE, f->distance.d, 0);
    row(out, f, BR_AD_LAMBDA, f->lambda.d, 0);
    row(out, f, BR_AD_FLUENCE, f->fluence.d, 0);
}
