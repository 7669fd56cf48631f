/* start.c - the canvas, the first object and the first probe. */
#include "random.h"
#include "solver.h"

#include <math.h>
#include <string.h>

double pt_get(const void *data, fth_dtype real, int64_t i)
{
    return real == FTH_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

void pt_put(void *data, fth_dtype real, int64_t i, double v)
{
    if (real == FTH_F32)
        ((float *)data)[i] = (float)v;
    else
        ((double *)data)[i] = v;
}

/* ---- the canvas ---- */

/* Positions may wander so far when they are corrected. */
enum { WANDER = 8 };

static void range_of(const double *v, int64_t n, double *low, double *high)
{
    *low = *high = v[0];
    for (int64_t i = 1; i < n; i++) {
        *low = v[i] < *low ? v[i] : *low;
        *high = v[i] > *high ? v[i] : *high;
    }
}

fth_status pt_solver_canvas(pt_solver *s, fth_err *err)
{
    const int64_t margin = 2 * ((s->opt.position_start >= 0 ? WANDER : 0) + 1);
    double x0, x1, y0, y1;
    range_of(s->x, s->data.patterns, &x0, &x1);
    range_of(s->y, s->data.patterns, &y0, &y1);
    if (!(fabs(x0) < 1e12 && fabs(y0) < 1e12)) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "positions start at x %g, y %g: too far from 0 to resolve fractions of a pixel",
                 x0, y0);
        fth_err_hint(err, "subtract an origin; is their unit or scale right?");
        return FTH_E_FILE_FORMAT;
    }
    if (!(x1 - x0 < 1e6 && y1 - y0 < 1e6)) {
        FTH_FAIL(err, FTH_E_NO_FIT, "positions span %g x %g pixels: too large for a canvas",
                 x1 - x0, y1 - y0);
        fth_err_hint(err, "positions are in pixels of the object; is their unit or scale right?");
        return FTH_E_NO_FIT;
    }
    s->cols = (int64_t)ceil(x1 - x0) + s->n + margin;
    s->rows = (int64_t)ceil(y1 - y0) + s->n + margin;
    s->origin_x = (int64_t)floor(x0) - s->n / 2 - margin / 2;
    s->origin_y = (int64_t)floor(y0) - s->n / 2 - margin / 2;
    return FTH_OK;
}

static double corner(double position, int64_t origin, int64_t n, int64_t room, double *rest)
{
    const double whole = rint(position);
    double at = whole - (double)(n / 2) - (double)origin;
    if (rest) *rest = position - whole;
    return at < 0 ? 0 : at > (double)(room - n) ? (double)(room - n) : at;
}

void pt_solver_corner(const pt_solver *s, int64_t j, double *visit)
{
    double drow, dcol;
    visit[PT_VISIT_ROW] = corner(s->y[j], s->origin_y, s->n, s->rows, &drow);
    visit[PT_VISIT_COL] = corner(s->x[j], s->origin_x, s->n, s->cols, &dcol);
    visit[PT_VISIT_DROW] = s->opt.subpixel ? drow : 0;
    visit[PT_VISIT_DCOL] = s->opt.subpixel ? dcol : 0;
    visit[PT_VISIT_ALPHA] = s->alpha[j];
    visit[PT_VISIT_FRAME] = (double)j;
}

/* ---- the object ---- */

/* Blur a plane with a Gaussian of sigma 3, borders mirrored. */
static void blur_lines(double *v, int64_t lines, int64_t line_step, int64_t n, int64_t step,
                       double *line)
{
    enum { REACH = 12 }; /* 4 sigma, as SciPy cuts a Gaussian */
    double weight[REACH + 1], sum = 0;
    for (int k = 0; k <= REACH; k++) {
        weight[k] = exp(-0.5 * k * k / 9.0);
        sum += k ? 2 * weight[k] : weight[k];
    }
    for (int64_t l = 0; l < lines; l++) {
        double *row = v + l * line_step;
        for (int64_t i = 0; i < n; i++) {
            double t = 0;
            for (int64_t k = -REACH; k <= REACH; k++) {
                int64_t j = i + k;
                while (j < 0 || j >= n) j = j < 0 ? -1 - j : 2 * n - 1 - j;
                t += weight[k < 0 ? -k : k] * row[j * step];
            }
            line[i] = t / sum;
        }
        for (int64_t i = 0; i < n; i++) row[i * step] = line[i];
    }
}

static fth_status random_object(pt_solver *s, fth_err *err)
{
    const int64_t cells = s->rows * s->cols, longest = s->rows > s->cols ? s->rows : s->cols;
    void *object = fth_tensor_data(s->object), *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)(2 * cells + longest) * sizeof(double),
                         "first object", &block, err));
    double *a = block, *p = a + cells, *line = p + cells;
    for (int64_t i = 0; i < cells; i++) {
        const double v = 0.98 + 0.02 * pt_draw_normal(s->opt.seed, PT_DRAW_AMPLITUDE, i);
        a[i] = v > 1 ? 1 : v;
        p[i] = 0.02 * pt_draw_normal(s->opt.seed, PT_DRAW_PHASE, i);
    }
    for (int k = 0; k < 2; k++) {
        double *v = k ? p : a;
        blur_lines(v, s->rows, s->cols, s->cols, 1, line);
        blur_lines(v, s->cols, 1, s->rows, s->cols, line);
    }
    for (int64_t i = 0; i < cells; i++) {
        pt_put(object, s->real, i, a[i] * cos(p[i]));
        pt_put(object, s->real, cells + i, a[i] * sin(p[i]));
    }
    return fth_mem_release(s->mem, block, err);
}

/* The given object between its pixels; false: it does not reach there. */
static bool object_at(const pt_solve_data *d, double y, double x, fth_c128 *out)
{
    const double row = floor(y), col = floor(x), fy = y - row, fx = x - col;
    if (row < 0 || col < 0 || row + (fy > 0) >= (double)d->object_rows ||
        col + (fx > 0) >= (double)d->object_cols)
        return false;
    const fth_c128 *at = d->object + (int64_t)row * d->object_cols + (int64_t)col;
    *out = (fth_c128){0, 0};
    for (int k = 0; k < 4; k++) {
        const double w = (k / 2 ? fy : 1 - fy) * (k % 2 ? fx : 1 - fx);
        if (w == 0) continue; /* a whole position takes the pixel as it is */
        const fth_c128 v = at[k / 2 * d->object_cols + k % 2];
        out->re += w * v.re;
        out->im += w * v.im;
    }
    return true;
}

static fth_status start_object(pt_solver *s, fth_err *err)
{
    const int64_t cells = s->rows * s->cols;
    const pt_solve_data *d = &s->data;
    void *object = fth_tensor_data(s->object);
    if (s->opt.object_init == PT_OBJECT_RANDOM) return random_object(s, err);
    const bool given = s->opt.object_init == PT_OBJECT_FILE;
    for (int64_t i = 0; i < cells; i++) {
        pt_put(object, s->real, i, given && d->object_beyond > 0 ? d->object_beyond : 1);
        pt_put(object, s->real, cells + i, 0);
    }
    if (!given) return FTH_OK;
    if (!d->object) {
        FTH_FAIL(err, FTH_E_FILE_KEY, "object_init is file, but the scan has no object");
        fth_err_hint(err, "add objectGuess to the file, or leave object_init out");
        return FTH_E_FILE_KEY;
    }
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t c = 0; c < s->cols; c++) {
            fth_c128 v;
            if (!object_at(d, (double)(r + s->origin_y) - d->object_y,
                           (double)(c + s->origin_x) - d->object_x, &v))
                continue;
            pt_put(object, s->real, r * s->cols + c, v.re);
            pt_put(object, s->real, cells + r * s->cols + c, v.im);
        }
    return FTH_OK;
}

/* ---- the probe ---- */

/* Powers of x and y of extra mode m = 1, 2..: x, y, x^2, xy, y^2, x^3 .. */
static void powers_of(int64_t m, int *px, int *py)
{
    int degree;
    int64_t left = m - 1;
    for (degree = 1; left > degree; degree++) left -= degree + 1;
    *py = (int)left;
    *px = degree - (int)left;
}

/* Extra modes: the first one times powers of x and y, orthogonal to all before, with 0.02 of its
 * power each. */
static void add_modes(pt_solver *s, int64_t have, double *field)
{
    const int64_t nn = s->n * s->n;
    double first = 0;
    for (int64_t i = 0; i < 2 * nn; i++) first += field[i] * field[i];
    for (int64_t m = have; m < s->modes; m++) {
        double *f = field + m * 2 * nn, power = 0;
        int px, py;
        powers_of(m, &px, &py);
        for (int64_t i = 0; i < nn; i++) {
            const double y = 2 * (double)(i / s->n - s->n / 2) / (double)s->n,
                         x = 2 * (double)(i % s->n - s->n / 2) / (double)s->n;
            const double by = pow(x, px) * pow(y, py);
            f[i] = by * field[i];
            f[nn + i] = by * field[nn + i];
        }
        for (int64_t k = 0; k < m; k++) {
            const double *g = field + k * 2 * nn;
            double re = 0, im = 0, norm = 0;
            for (int64_t i = 0; i < nn; i++) {
                re += g[i] * f[i] + g[nn + i] * f[nn + i];
                im += g[i] * f[nn + i] - g[nn + i] * f[i];
                norm += g[i] * g[i] + g[nn + i] * g[nn + i];
            }
            if (!(norm > 0)) continue;
            for (int64_t i = 0; i < nn; i++) {
                const double a = g[i], b = g[nn + i];
                f[i] -= (re * a - im * b) / norm;
                f[nn + i] -= (re * b + im * a) / norm;
            }
        }
        for (int64_t i = 0; i < 2 * nn; i++) power += f[i] * f[i];
        const double by = power > 0 ? sqrt(0.02 * first / power) : 0;
        for (int64_t i = 0; i < 2 * nn; i++) f[i] *= by;
    }
}

static fth_status start_probe(pt_solver *s, fth_err *err)
{
    const int64_t nn = s->n * s->n, have = s->data.modes < s->modes ? s->data.modes : s->modes;
    void *probe = fth_tensor_data(s->probe), *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)(s->modes * 2 * nn) * sizeof(double),
                         "first probe", &block, err));
    double *field = block, power = 0;
    for (int64_t m = 0; m < have; m++)
        for (int64_t i = 0; i < nn; i++) {
            field[m * 2 * nn + i] = s->data.probe[m * nn + i].re;
            field[m * 2 * nn + nn + i] = s->data.probe[m * nn + i].im;
        }
    add_modes(s, have, field);
    for (int64_t i = 0; i < s->modes * 2 * nn; i++) {
        power += field[i] * field[i];
        pt_put(probe, s->real, i, field[i]);
    }
    FTH_TRY(fth_mem_release(s->mem, block, err));
    if (power > 0 && isfinite(power)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    power == 0 ? "the probe is zero everywhere" : "the probe is not finite");
}

fth_status pt_solver_start_fields(pt_solver *s, fth_err *err)
{
    FTH_TRY(start_object(s, err));
    return start_probe(s, err);
}
