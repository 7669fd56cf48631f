/* refine.c - what happens to object and probe between epochs: modes made orthogonal, the scale that
 * the data leave open, the middle of probe and positions. */
#include "constraints.h"

#include <math.h>
#include <string.h>

enum { MOST_MODES = 64 };

/* ---- modes ---- */

typedef struct matrix {
    double re[MOST_MODES][MOST_MODES], im[MOST_MODES][MOST_MODES];
} matrix;

/* One rotation in the plane of p and q that makes a[p][q] zero; v collects the rotations. */
static void rotate(matrix *a, matrix *v, int n, int p, int q)
{
    const double re = a->re[p][q], im = a->im[p][q], size = hypot(re, im);
    if (size == 0) return;
    const double tau = (a->re[q][q] - a->re[p][p]) / (2 * size);
    const double t = (tau >= 0 ? 1 : -1) / (fabs(tau) + sqrt(1 + tau * tau));
    const double c = 1 / sqrt(1 + t * t), sn = t * c, ur = re / size, ui = im / size;
    for (int k = 0; k < n; k++) { /* columns: A J, V J */
        for (int which = 0; which < 2; which++) {
            matrix *m = which ? v : a;
            const double pr = m->re[k][p], pi = m->im[k][p], qr = m->re[k][q], qi = m->im[k][q];
            /* conj(u) q */
            const double xr = ur * qr + ui * qi, xi = ur * qi - ui * qr;
            m->re[k][p] = c * pr - sn * xr;
            m->im[k][p] = c * pi - sn * xi;
            m->re[k][q] = sn * pr + c * xr;
            m->im[k][q] = sn * pi + c * xi;
        }
    }
    for (int k = 0; k < n; k++) { /* rows: J^H A */
        const double pr = a->re[p][k], pi = a->im[p][k], qr = a->re[q][k], qi = a->im[q][k];
        const double xr = ur * qr - ui * qi, xi = ur * qi + ui * qr; /* u q */
        a->re[p][k] = c * pr - sn * xr;
        a->im[p][k] = c * pi - sn * xi;
        a->re[q][k] = sn * pr + c * xr;
        a->im[q][k] = sn * pi + c * xi;
    }
}

/* Eigenvectors of a Hermitian matrix, by Jacobi's rotations; eigenvalues stay on the diagonal. */
static void diagonalise(matrix *a, matrix *v, int n)
{
    memset(v, 0, sizeof *v);
    for (int i = 0; i < n; i++) v->re[i][i] = 1;
    for (int round = 0; round < 60; round++) {
        double off = 0, on = 0;
        for (int p = 0; p < n; p++)
            for (int q = 0; q < n; q++)
                *(p == q ? &on : &off) += a->re[p][q] * a->re[p][q] + a->im[p][q] * a->im[p][q];
        if (off <= 1e-30 * on) return;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) rotate(a, v, n, p, q);
    }
}

static fth_status orthogonalise(pt_solver *s, fth_err *err)
{
    const int n = (int)s->modes;
    const int64_t nn = s->n * s->n;
    void *probe = fth_tensor_data(s->probe), *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, 2 * sizeof(matrix), "modes", &block, err));
    matrix *a = block, *v = a + 1;
    int rank[MOST_MODES];
    for (int p = 0; p < n; p++)
        for (int q = 0; q < n; q++) {
            double re = 0, im = 0;
            for (int64_t i = 0; i < nn; i++) {
                const double pr = pt_get(probe, s->real, p * 2 * nn + i),
                             pi = pt_get(probe, s->real, p * 2 * nn + nn + i),
                             qr = pt_get(probe, s->real, q * 2 * nn + i),
                             qi = pt_get(probe, s->real, q * 2 * nn + nn + i);
                re += pr * qr + pi * qi;
                im += pi * qr - pr * qi;
            }
            a->re[p][q] = re;
            a->im[p][q] = im;
        }
    diagonalise(a, v, n);
    for (int p = 0; p < n; p++) { /* strongest first; equal ones as they were */
        rank[p] = 0;
        for (int q = 0; q < n; q++)
            if (a->re[q][q] > a->re[p][p] || (a->re[q][q] == a->re[p][p] && q < p)) rank[p]++;
    }
    for (int64_t i = 0; i < nn; i++) {
        double re[MOST_MODES] = {0}, im[MOST_MODES] = {0};
        for (int p = 0; p < n; p++)
            for (int k = 0; k < n; k++) { /* X conj(V) */
                const double xr = pt_get(probe, s->real, k * 2 * nn + i),
                             xi = pt_get(probe, s->real, k * 2 * nn + nn + i);
                re[rank[p]] += xr * v->re[k][p] + xi * v->im[k][p];
                im[rank[p]] += xi * v->re[k][p] - xr * v->im[k][p];
            }
        for (int p = 0; p < n; p++) {
            pt_put(probe, s->real, p * 2 * nn + i, re[p]);
            pt_put(probe, s->real, p * 2 * nn + nn + i, im[p]);
        }
    }
    return fth_mem_release(s->mem, block, err);
}

/* ---- scales ---- */

static void scale_all(fth_tensor *t, fth_dtype real, double by)
{
    void *data = fth_tensor_data(t);
    const int64_t n = (int64_t)fth_tensor_bytes(t) / fth_dtype_size(real);
    for (int64_t i = 0; i < n; i++) pt_put(data, real, i, by * pt_get(data, real, i));
}

static void fix_power(pt_solver *s)
{
    const void *probe = fth_tensor_view(s->probe);
    const int64_t n = (int64_t)fth_tensor_bytes(s->probe) / fth_dtype_size(s->real);
    double power = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = pt_get(probe, s->real, i);
        power += v * v;
    }
    if (!(power > 0)) return;
    const double by = sqrt(s->opt.probe_power / power);
    scale_all(s->probe, s->real, by);
    if (s->opt.opr) pt_opr_scale(s, by);
}

/* Corrected positions may drift together, and the object with them. */
static void hold_mean_position(pt_solver *s)
{
    const int64_t m = s->data.patterns;
    double dx = 0, dy = 0;
    for (int64_t j = 0; j < m; j++) {
        dx += s->x[j] - s->data.x[j];
        dy += s->y[j] - s->data.y[j];
    }
    for (int64_t j = 0; j < m; j++) {
        s->x[j] -= dx / (double)m;
        s->y[j] -= dy / (double)m;
    }
}

/* ---- the middle of the probe ---- */

/* A plane moved by whole pixels; what falls off comes in at the other side, or repeats the edge. */
static void move_plane(void *plane, fth_dtype real, int64_t rows, int64_t cols, int64_t dy,
                       int64_t dx, bool around, double *room)
{
    for (int64_t i = 0; i < rows * cols; i++) room[i] = pt_get(plane, real, i);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            int64_t y = r - dy, x = c - dx;
            if (around) {
                y = (y % rows + rows) % rows;
                x = (x % cols + cols) % cols;
            } else {
                y = y < 0 ? 0 : y >= rows ? rows - 1 : y;
                x = x < 0 ? 0 : x >= cols ? cols - 1 : x;
            }
            pt_put(plane, real, r * cols + c, room[y * cols + x]);
        }
}

/* Moves the centre of the probe's light to the middle, by whole pixels, and the eigenprobes and the
 * object with it. */
static fth_status centre_probe(pt_solver *s, fth_err *err)
{
    const int64_t nn = s->n * s->n, cells = s->rows * s->cols;
    void *probe = fth_tensor_data(s->probe), *object = fth_tensor_data(s->object), *room = NULL;
    double sum = 0, y = 0, x = 0;
    for (int64_t m = 0; m < s->modes; m++)
        for (int64_t i = 0; i < nn; i++) {
            const double re = pt_get(probe, s->real, m * 2 * nn + i),
                         im = pt_get(probe, s->real, m * 2 * nn + nn + i), p = re * re + im * im;
            sum += p;
            y += p * (double)(i / s->n - s->n / 2);
            x += p * (double)(i % s->n - s->n / 2);
        }
    const int64_t dy = sum > 0 ? -(int64_t)rint(y / sum) : 0,
                  dx = sum > 0 ? -(int64_t)rint(x / sum) : 0;
    if (dy == 0 && dx == 0) return FTH_OK;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)(cells > nn ? cells : nn) * sizeof(double),
                         "a plane", &room, err));
    const int64_t size = fth_dtype_size(s->real);
    for (int64_t k = 0; k < 2 * s->modes; k++)
        move_plane((char *)probe + k * nn * size, s->real, s->n, s->n, dy, dx, true, room);
    for (int64_t k = 0; k < 2 * s->opt.opr; k++)
        move_plane((char *)fth_tensor_data(s->eigen) + k * nn * size, s->real, s->n, s->n, dy, dx,
                   true, room);
    for (int64_t k = 0; k < 2; k++)
        move_plane((char *)object + k * cells * size, s->real, s->rows, s->cols, dy, dx, false,
                   room);
    return fth_mem_release(s->mem, room, err);
}

/* Other modes and another middle of the same light. */
static fth_status settle(pt_solver *s, fth_err *err)
{
    if (s->modes > 1 && s->opt.orthogonalise) FTH_TRY(orthogonalise(s, err));
    return s->opt.centre_probe ? centre_probe(s, err) : FTH_OK;
}

fth_status pt_solver_refine(pt_solver *s, fth_err *err)
{
    const pt_solve_options *o = &s->opt;
    const bool probe_on = s->epoch >= o->probe_start;
    /* exit waves that are kept belong to the modes and places as they are: they wait for the end */
    if (probe_on && !s->waves) FTH_TRY(settle(s, err));
    if (probe_on) FTH_TRY(pt_constrain_probe(s, err));
    if (!isnan(o->probe_power)) fix_power(s);
    FTH_TRY(pt_constrain_object(s, err));
    if (o->keep_mean_position && o->position_start >= 0) hold_mean_position(s);
    if (o->scale_every > 0 && (s->epoch + 1) % o->scale_every == 0)
        FTH_TRY(pt_solver_share_scale(s, err));
    return FTH_OK;
}

fth_status pt_solver_finish(pt_solver *s, fth_err *err)
{
    return s->waves && s->epoch > s->opt.probe_start ? settle(s, err) : FTH_OK;
}
