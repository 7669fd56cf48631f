/* orbit.c - see orbit.h. */
#include "orbit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct circle {
    double middle[3], up[3], side[3], ahead[3]; /* three directions at right angles */
    double radius, height;
} circle;

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *out)
{
    for (int k = 0; k < 3; k++)
        out[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

/* To length 1; what has none becomes the axis. */
static void normalise(double *v, int axis)
{
    const double n = sqrt(dot(v, v));
    for (int k = 0; k < 3; k++) v[k] = n > 1e-12 ? v[k] / n : k == axis;
}

static bool solve(double m[3][4])
{
    for (int i = 0; i < 3; i++) {
        int best = i;
        for (int r = i + 1; r < 3; r++)
            if (fabs(m[r][i]) > fabs(m[best][i])) best = r;
        if (!(fabs(m[best][i]) > 1e-9)) return false;
        for (int c = 0; c < 4; c++) {
            const double swap = m[i][c];
            m[i][c] = m[best][c];
            m[best][c] = swap;
        }
        for (int r = 0; r < 3; r++) {
            const double part = m[r][i] / m[i][i];
            for (int c = i; r != i && c < 4; c++) m[r][c] -= part * m[i][c];
        }
    }
    for (int i = 0; i < 3; i++) m[i][3] /= m[i][i];
    return true;
}

/* The point with the least squared distances from the axes of all cameras; where they are
 * parallel, ahead of the mean camera. */
static void find_middle(const gs_scene *s, double middle[3])
{
    double m[3][4] = {{0}}, mean[3] = {0}, ahead[3] = {0};
    for (int64_t v = 0; v < s->views; v++) {
        const float *z = s->view[v].w2c[2];
        for (int i = 0; i < 3; i++) {
            mean[i] += s->view[v].centre[i] / (double)s->views;
            ahead[i] += (double)z[i];
            for (int j = 0; j < 3; j++) {
                const double part = (i == j) - (double)z[i] * (double)z[j];
                m[i][j] += part;
                m[i][3] += part * s->view[v].centre[j];
            }
        }
    }
    normalise(ahead, 2);
    const bool found = s->views > 1 && solve(m);
    for (int k = 0; k < 3; k++) middle[k] = found ? m[k][3] : mean[k] + ahead[k];
}

static void find_circle(const gs_scene *s, circle *c)
{
    *c = (circle){0};
    find_middle(s, c->middle);
    for (int64_t v = 0; v < s->views; v++)
        for (int k = 0; k < 3; k++) c->up[k] -= (double)s->view[v].w2c[1][k];
    normalise(c->up, 1);
    for (int64_t v = 0; v < s->views; v++) {
        double off[3], square = 0;
        for (int k = 0; k < 3; k++) off[k] = s->view[v].centre[k] - c->middle[k];
        const double high = dot(off, c->up);
        square = dot(off, off) - high * high;
        c->height += high / (double)s->views;
        c->radius += (square > 0 ? sqrt(square) : 0) / (double)s->views;
    }
    /* the first camera is where the tour begins */
    for (int k = 0; k < 3; k++) c->ahead[k] = s->view[0].centre[k] - c->middle[k];
    const double high = dot(c->ahead, c->up);
    for (int k = 0; k < 3; k++) c->ahead[k] -= high * c->up[k];
    if (!(dot(c->ahead, c->ahead) > 1e-18)) {
        const double any[3] = {fabs(c->up[0]) < 0.9, fabs(c->up[0]) >= 0.9, 0};
        cross(c->up, any, c->ahead);
    }
    normalise(c->ahead, 0);
    cross(c->up, c->ahead, c->side);
    if (!(c->radius > 1e-9)) c->radius = 1;
}

void gs_orbit_view(const gs_scene *s, int64_t at, int64_t n, gs_view *out)
{
    circle c;
    find_circle(s, &c);
    const double angle = 2 * 3.14159265358979323846 * (double)at / (double)n;
    double x[3], y[3], z[3];
    *out = s->view[0];
    for (int k = 0; k < 3; k++) {
        const double off =
            c.radius * (cos(angle) * c.ahead[k] + sin(angle) * c.side[k]) + c.height * c.up[k];
        out->centre[k] = c.middle[k] + off;
        z[k] = -off;
    }
    normalise(z, 2);
    cross(z, c.up, x);
    normalise(x, 0);
    cross(z, x, y);
    const double *const axes[3] = {x, y, z};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) out->w2c[i][k] = (float)axes[i][k];
        out->w2c[i][3] = (float)-dot(axes[i], out->centre);
    }
    out->distorted = false;
    out->lens = GS_LENS_RADIAL;
    memset(out->bend, 0, sizeof out->bend);
}

fth_status gs_scene_orbit(gs_scene *s, int64_t n, fth_err *err)
{
    void *block = NULL;
    fth_texts *names = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(gs_view), "views", &block, err));
    gs_view *view = block;
    fth_status st = fth_texts_create(&names, s->mem, err);
    for (int64_t i = 0; st == FTH_OK && i < n; i++) {
        char name[40];
        snprintf(name, sizeof name, "orbit_%04" PRId64, i);
        gs_orbit_view(s, i, n, &view[i]);
        st = fth_texts_add(names, name, strlen(name), err);
    }
    if (st != FTH_OK) {
        fth_texts_free(names);
        (void)fth_mem_release(s->mem, block, NULL);
        return st;
    }
    (void)fth_mem_release(s->mem, s->view, NULL);
    fth_texts_free(s->name);
    s->view = view;
    s->views = n;
    s->name = names;
    return FTH_OK;
}
