/* constraints.c - constraints of the object: smoothness, total variation, peaks of a raster scan,
 * bounds of amplitude and phase; and the memory of all constraints. */
#include "constraints.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 20 }; /* of total variation in an epoch */
static const double step =
    0.25; /* of its dual field: the largest known to converge in 2D in practice (Chambolle 2004) */

static bool bounds(const pt_solve_options *o)
{
    return !isnan(o->clip_low) || !isnan(o->clip_high) || o->clip_phase;
}

static bool removes_peaks(const pt_solve_options *o)
{
    return o->raster[0] > 0 || o->raster[1] > 0;
}

/* ---- smoothness ---- */

typedef struct image {
    const fth_c128 *from;
    fth_c128 *to;
    fth_c128 *dual[2];
    int64_t rows, cols;
    double weight;
} image;

/* (1 - 8 a) of a pixel and a of each of its eight neighbours; borders are repeated. */
static void smooth_row(void *arg, int64_t r, int worker)
{
    const image *m = arg;
    (void)worker;
    for (int64_t c = 0; c < m->cols; c++) {
        fth_c128 sum = {0, 0};
        for (int64_t i = r - 1; i <= r + 1; i++)
            for (int64_t j = c - 1; j <= c + 1; j++) {
                const int64_t y = i < 0          ? 0
                                  : i >= m->rows ? m->rows - 1
                                                 : i,
                              x = j < 0          ? 0
                                  : j >= m->cols ? m->cols - 1
                                                 : j;
                const double by = i == r && j == c ? 1 - 8 * m->weight : m->weight;
                sum.re += by * m->from[y * m->cols + x].re;
                sum.im += by * m->from[y * m->cols + x].im;
            }
        m->to[r * m->cols + c] = sum;
    }
}

/* ---- total variation: Chambolle's projection, real and imaginary part as one vector ---- */

/* to = div dual - from / weight */
static void divergence_row(void *arg, int64_t r, int worker)
{
    const image *m = arg;
    (void)worker;
    for (int64_t c = 0; c < m->cols; c++) {
        const int64_t i = r * m->cols + c;
        fth_c128 v = {-m->from[i].re / m->weight, -m->from[i].im / m->weight};
        v.re += m->dual[0][i].re - (r > 0 ? m->dual[0][i - m->cols].re : 0);
        v.im += m->dual[0][i].im - (r > 0 ? m->dual[0][i - m->cols].im : 0);
        v.re += m->dual[1][i].re - (c > 0 ? m->dual[1][i - 1].re : 0);
        v.im += m->dual[1][i].im - (c > 0 ? m->dual[1][i - 1].im : 0);
        m->to[i] = v;
    }
}

/* dual = (dual + step g) / (1 + step |g|) with the gradient g of what divergence_row left. */
static void dual_row(void *arg, int64_t r, int worker)
{
    const image *m = arg;
    (void)worker;
    for (int64_t c = 0; c < m->cols; c++) {
        const int64_t i = r * m->cols + c;
        fth_c128 g[2] = {{0, 0}, {0, 0}};
        const fth_c128 here = m->to[i];
        if (r + 1 < m->rows)
            g[0] = (fth_c128){m->to[i + m->cols].re - here.re, m->to[i + m->cols].im - here.im};
        if (c + 1 < m->cols)
            g[1] = (fth_c128){m->to[i + 1].re - here.re, m->to[i + 1].im - here.im};
        const double length = sqrt(g[0].re * g[0].re + g[0].im * g[0].im + g[1].re * g[1].re +
                                   g[1].im * g[1].im),
                     by = 1 / (1 + step * length);
        for (int k = 0; k < 2; k++) {
            m->dual[k][i].re = by * (m->dual[k][i].re + step * g[k].re);
            m->dual[k][i].im = by * (m->dual[k][i].im + step * g[k].im);
        }
    }
}

static fth_status lower_variation(pt_solver *s, fth_c128 *field, fth_err *err)
{
    pt_constraints *k = s->constraints;
    const int64_t cells = s->rows * s->cols;
    image m = {field, k->room, {k->dual[0], k->dual[1]}, s->rows, s->cols, s->opt.tv};
    for (int i = 0; i < 2; i++) memset(k->dual[i], 0, (size_t)cells * sizeof(fth_c128));
    for (int i = 0; i < ROUNDS; i++) {
        FTH_TRY(fth_context_loop(s->ctx, "variation", s->rows, divergence_row, &m, err));
        FTH_TRY(fth_context_loop(s->ctx, "variation", s->rows, dual_row, &m, err));
    }
    FTH_TRY(fth_context_loop(s->ctx, "variation", s->rows, divergence_row, &m, err));
    for (int64_t i = 0; i < cells; i++) /* field - weight div */
        field[i] = (fth_c128){-s->opt.tv * k->room[i].re, -s->opt.tv * k->room[i].im};
    return FTH_OK;
}

/* ---- peaks of a raster ---- */

enum { PEAK = 1, AROUND = 3 }; /* bins from its middle: of the peak, of what is taken beside it */

static fth_c128 *bin(fth_c128 *spectrum, int64_t rows, int64_t cols, int64_t y, int64_t x)
{
    return &spectrum[(y % rows + rows) % rows * cols + (x % cols + cols) % cols];
}

/* Lower a peak at a bin to the mean modulus around it. */
static void lower_peak(fth_c128 *spectrum, int64_t rows, int64_t cols, int64_t y, int64_t x)
{
    double sum = 0;
    int n = 0;
    for (int64_t i = -AROUND; i <= AROUND; i++)
        for (int64_t j = -AROUND; j <= AROUND; j++) {
            if (i >= -PEAK && i <= PEAK && j >= -PEAK && j <= PEAK) continue;
            const fth_c128 v = *bin(spectrum, rows, cols, y + i, x + j);
            sum += hypot(v.re, v.im);
            n++;
        }
    for (int64_t i = -PEAK; i <= PEAK; i++)
        for (int64_t j = -PEAK; j <= PEAK; j++) {
            fth_c128 *v = bin(spectrum, rows, cols, y + i, x + j);
            const double size = hypot(v->re, v->im), by = sum / n / size;
            if (size * n <= sum) continue;
            v->re *= by;
            v->im *= by;
        }
}

/* Peaks lie at multiples of 1 / period of both axes; all but the one at zero. */
static void lower_peaks(const pt_solver *s, fth_c128 *spectrum)
{
    const double *period = s->opt.raster;
    const int64_t most_x = period[0] > 0 ? (int64_t)(period[0] / 2) : 0,
                  most_y = period[1] > 0 ? (int64_t)(period[1] / 2) : 0;
    for (int64_t i = -most_y; i <= most_y; i++)
        for (int64_t j = -most_x; j <= most_x; j++) {
            const double y = i ? (double)(i * s->rows) / period[1] : 0,
                         x = j ? (double)(j * s->cols) / period[0] : 0;
            if (fabs(y) <= AROUND && fabs(x) <= AROUND)
                continue; /* skip the mean and its neighbourhood */
            lower_peak(spectrum, s->rows, s->cols, llrint(y), llrint(x));
        }
}

static fth_status remove_peaks(pt_solver *s, fth_err *err)
{
    const pt_constraints *k = s->constraints;
    const fth_sink there = fth_tensor_sink(k->spectrum), back = fth_tensor_sink(k->field);
    FTH_TRY(fth_stage_run(s->call, k->plan[0], &there, NULL, err));
    lower_peaks(s, fth_tensor_data(k->spectrum));
    return fth_stage_run(s->call, k->plan[1], &back, NULL, err);
}

/* ---- bounds ---- */

static double between(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v; /* a NaN bound is no bound */
}

static void bound(const pt_solve_options *o, fth_c128 *v)
{
    const double a = hypot(v->re, v->im), to = between(a, o->clip_low, o->clip_high);
    if (to != a) *v = a > 0 ? (fth_c128){v->re / a * to, v->im / a * to} : (fth_c128){to, 0};
    if (!o->clip_phase) return;
    const double phase = atan2(v->im, v->re), turned = between(phase, o->phase_low, o->phase_high);
    if (turned != phase) *v = (fth_c128){to * cos(turned), to * sin(turned)};
}

/* ---- all of them ---- */

fth_status pt_constrain_object(pt_solver *s, fth_err *err)
{
    const pt_solve_options *o = &s->opt;
    pt_constraints *k = s->constraints;
    const int64_t cells = s->rows * s->cols;
    if (!k || !k->field) return FTH_OK;
    void *object = fth_tensor_data(s->object);
    fth_c128 *field = fth_tensor_data(k->field);
    for (int64_t i = 0; i < cells; i++)
        field[i] = (fth_c128){pt_get(object, s->real, i), pt_get(object, s->real, cells + i)};
    if (o->smooth > 0) {
        image m = {k->room, field, {NULL, NULL}, s->rows, s->cols, o->smooth};
        memcpy(k->room, field, (size_t)cells * sizeof *field);
        FTH_TRY(fth_context_loop(s->ctx, "smooth", s->rows, smooth_row, &m, err));
    }
    if (o->tv > 0) FTH_TRY(lower_variation(s, field, err));
    if (removes_peaks(o)) FTH_TRY(remove_peaks(s, err));
    field = fth_tensor_data(k->field);
    for (int64_t i = 0; bounds(o) && i < cells; i++) bound(o, &field[i]);
    object = fth_tensor_data(s->object);
    for (int64_t i = 0; i < cells; i++) {
        pt_put(object, s->real, i, field[i].re);
        pt_put(object, s->real, cells + i, field[i].im);
    }
    return FTH_OK;
}

/* ---- memory ---- */

static fth_status take_plane(pt_solver *s, const char *label, fth_c128 **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)(s->rows * s->cols) * sizeof(fth_c128),
                         label, &block, err));
    *out = block;
    return FTH_OK;
}

/* Object to spectrum (0) and back (1). */
static fth_status plan_transform(pt_solver *s, int which, fth_err *err)
{
    pt_constraints *k = s->constraints;
    fth_graph *g = k->graph[which] = fth_graph_create(s->ctx);
    fth_axis(g, "orow", s->rows);
    fth_axis(g, "ocol", s->cols);
    fth_axis_like(g, "krow", "orow");
    fth_axis_like(g, "kcol", "ocol");
    fth_tensor *from = which ? k->spectrum : k->field, *to = which ? k->field : k->spectrum;
    const fth_val in =
        fth_input(g, "in", FTH_C128, which ? "krow kcol" : "orow ocol", fth_tensor_source(from));
    const fth_val out =
        which ? fth_ifft(in, "krow kcol", "orow ocol") : fth_fft(in, "orow ocol", "krow kcol");
    const fth_sink sink = fth_tensor_sink(to);
    k->plan[which] = fth_plan_make(g, &out, 1, &(fth_limits){.sinks = &sink}, err);
    return k->plan[which] ? FTH_OK : err->status;
}

static fth_status create_object(pt_solver *s, fth_err *err)
{
    const pt_solve_options *o = &s->opt;
    pt_constraints *k = s->constraints;
    const int64_t size[2] = {s->rows, s->cols};
    if (!bounds(o) && !(o->smooth > 0) && !(o->tv > 0) && !removes_peaks(o)) return FTH_OK;
    FTH_TRY(fth_tensor_create(&k->field, s->mem, "object to constrain", FTH_C128, 2, size, err));
    if (o->smooth > 0 || o->tv > 0) FTH_TRY(take_plane(s, "copy of the object", &k->room, err));
    for (int i = 0; o->tv > 0 && i < 2; i++)
        FTH_TRY(take_plane(s, "total variation", &k->dual[i], err));
    if (!removes_peaks(o)) return FTH_OK;
    FTH_TRY(fth_tensor_create(&k->spectrum, s->mem, "spectrum", FTH_C128, 2, size, err));
    FTH_TRY(plan_transform(s, 0, err));
    return plan_transform(s, 1, err);
}

fth_status pt_constraints_create(pt_solver *s, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, sizeof(pt_constraints), "constraints", &block, err));
    s->constraints = block;
    *s->constraints = (pt_constraints){0};
    FTH_TRY(create_object(s, err));
    return pt_support_create(s, err);
}

void pt_constraints_destroy(pt_solver *s)
{
    pt_constraints *k = s->constraints;
    if (!k) return;
    for (int i = 0; i < 3; i++) {
        fth_plan_destroy(k->plan[i]);
        fth_graph_destroy(k->graph[i]);
    }
    fth_tensor *const tensors[] = {k->field, k->spectrum, k->mask,
                                   k->waves, k->filtered, k->aperture};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) fth_tensor_release(tensors[i]);
    fth_c128 *const blocks[] = {k->room, k->dual[0], k->dual[1]};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        fth_mem_release(s->mem, blocks[i], NULL);
    fth_mem_release(s->mem, k, NULL);
    s->constraints = NULL;
}
