/* ptycho_solve.c - see ptycho_solve.h. */
#include "testing/ptycho/ptycho_solve.h"

#include <math.h>

void ps_context(ps_case *c, const char *memory, int threads, bool device)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.scratch_dir = ".";
    opt.device = device ? "cuda" : "cpu";
    opt.backend_path = device ? getenv("FATHOM_TEST_DEVICE") : NULL;
    if (memory) OK(fth_mem_parse_size(memory, 0, &opt.mem.budget_bytes, NULL));
    *c = (ps_case){0};
    OK(fth_context_create(&c->ctx, &opt, NULL));
    c->mem = fth_context_mem(c->ctx);
}

fth_tensor *ps_member(fth_mem *mem, const char *path, const char *name)
{
    fth_npz *npz = NULL;
    fth_source source;
    fth_tensor *t = NULL;
    OK(fth_npz_open(&npz, mem, path, NULL));
    OK(fth_npz_source(npz, name, &source, NULL));
    OK(fth_source_load(&source, mem, name, &t, NULL));
    fth_source_close(&source);
    fth_npz_close(npz);
    return t;
}

static double complex at(fth_tensor *t, int64_t i)
{
    if (fth_tensor_dtype(t) == FTH_C64) {
        const fth_c64 v = ((const fth_c64 *)fth_tensor_view(t))[i];
        return (double)v.re + PS_I * (double)v.im;
    }
    const fth_c128 v = ((const fth_c128 *)fth_tensor_view(t))[i];
    return v.re + PS_I * v.im;
}

/* Corners [pattern row col] to positions. */
static void read_places(ps_case *c, const char *path, int64_t n)
{
    fth_tensor *t = ps_member(c->mem, path, "rowcol");
    const int64_t m = fth_tensor_size(t, 0), *v = fth_tensor_view(t);
    c->x = malloc((size_t)m * sizeof(double));
    c->y = malloc((size_t)m * sizeof(double));
    for (int64_t j = 0; j < m; j++) {
        c->y[j] = (double)(v[2 * j] + n / 2);
        c->x[j] = (double)(v[2 * j + 1] + n / 2);
    }
    c->data.patterns = m;
    c->data.x = c->x;
    c->data.y = c->y;
    c->data.n = n;
    fth_tensor_release(t);
}

void ps_open_g9(ps_case *c, const char *memory, int threads, bool device)
{
    static const char path[] = PS_GOLDEN "g9_ptypy_engines.npz";
    enum { N = 32 };
    ps_context(c, memory, threads, device);
    read_places(c, path, N);
    c->patterns = ps_member(c->mem, path, "diff");
    c->masks = ps_member(c->mem, path, "mask");
    c->data.source = fth_tensor_source(c->patterns);
    c->data.masks = fth_tensor_source(c->masks);
    c->data.counts = c->data.centred = true;
    fth_tensor *pre = ps_member(c->mem, path, "pre"), *probe = ps_member(c->mem, path, "probe0"),
               *object = ps_member(c->mem, path, "obj0");
    c->factor = malloc(N * N * sizeof *c->factor);
    c->probe = malloc(N * N * sizeof *c->probe);
    for (int64_t i = 0; i < N * N; i++) {
        c->factor[i] = at(pre, i) * ((i / N + i % N) % 2 ? -1 : 1);
        const double complex v = at(probe, i) * c->factor[i];
        c->probe[i] = (fth_c128){creal(v), cimag(v)};
    }
    c->data.probe = c->probe;
    c->data.modes = 1;
    c->data.object_rows = fth_tensor_size(object, 1);
    c->data.object_cols = fth_tensor_size(object, 2);
    const int64_t cells = c->data.object_rows * c->data.object_cols;
    c->object = malloc((size_t)cells * sizeof *c->object);
    for (int64_t i = 0; i < cells; i++)
        c->object[i] = (fth_c128){creal(at(object, i)), cimag(at(object, i))};
    c->data.object = c->object;
    fth_tensor_release(pre);
    fth_tensor_release(probe);
    fth_tensor_release(object);
}

/* ---- g10 ---- */

/* |F(p o)|^2 added to `out`, by sums along rows and then columns. */
static void add_pattern(int64_t n, const double complex *wave, double *out)
{
    double complex *half = malloc((size_t)(n * n) * sizeof *half);
    double complex *turn = malloc((size_t)n * sizeof *turn);
    for (int64_t k = 0; k < n; k++) turn[k] = cexp(-2 * M_PI * PS_I * (double)k / (double)n);
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = 0; k < n; k++) {
            double complex sum = 0;
            for (int64_t x = 0; x < n; x++) sum += wave[r * n + x] * turn[x * k % n];
            half[r * n + k] = sum;
        }
    for (int64_t q = 0; q < n; q++)
        for (int64_t k = 0; k < n; k++) {
            double complex sum = 0;
            for (int64_t y = 0; y < n; y++) sum += half[y * n + k] * turn[y * q % n];
            sum /= (double)n;
            out[q * n + k] += creal(sum) * creal(sum) + cimag(sum) * cimag(sum);
        }
    free(half);
    free(turn);
}

/* A Poisson number: by products of uniform numbers, or from a normal one where it is large. */
static double poisson(t_random *r, double mean)
{
    if (mean < 30) {
        const double end = exp(-mean);
        double product = t_random_f64(r), n = 0;
        for (; product > end; n++) product *= t_random_f64(r);
        return n;
    }
    const double n = rint(mean + sqrt(mean) * t_random_normal(r));
    return n > 0 ? n : 0;
}

static void make_counts(ps_case *c, fth_tensor *object, fth_tensor *probe, double photons, bool two)
{
    const int64_t n = c->data.n, nn = n * n, m = c->data.patterns,
                  cols = fth_tensor_size(object, 1);
    double complex *wave = malloc((size_t)nn * sizeof *wave);
    OK(fth_tensor_create(&c->patterns, c->mem, "counts", FTH_F64, 3, ((int64_t[]){m, n, n}), NULL));
    double *counts = fth_tensor_data(c->patterns), mean = 0;
    memset(counts, 0, (size_t)(m * nn) * sizeof *counts);
    for (int64_t j = 0; j < m; j++)
        for (int mode = 0; mode < (two ? 2 : 1); mode++) {
            for (int64_t i = 0; i < nn; i++) {
                const int64_t y = (int64_t)c->y[j] - n / 2 + i / n,
                              x = (int64_t)c->x[j] - n / 2 + i % n;
                const double by = mode ? 0.5 * (double)(i % n - n / 2) / 20 : 1;
                wave[i] = at(probe, i) * at(object, y * cols + x) * by;
            }
            add_pattern(n, wave, counts + j * nn);
        }
    for (int64_t i = 0; i < m * nn; i++) mean += counts[i] / (double)m;
    t_random r = {11};
    for (int64_t i = 0; i < m * nn; i++) counts[i] = poisson(&r, counts[i] * photons / mean);
    free(wave);
}

void ps_open_g10(ps_case *c, const char *memory, int threads, double photons, bool two)
{
    static const char path[] = PS_GOLDEN "g10_solver_case.npz";
    enum { N = 64 };
    ps_context(c, memory, threads, false);
    read_places(c, path, N);
    fth_tensor *object = ps_member(c->mem, path, "obj"), *probe = ps_member(c->mem, path, "probe");
    if (photons > 0)
        make_counts(c, object, probe, photons, two);
    else
        c->patterns = ps_member(c->mem, path, "counts_1e5");
    c->data.source = fth_tensor_source(c->patterns);
    c->data.counts = true;
    c->probe = malloc(N * N * sizeof *c->probe);
    for (int64_t i = 0; i < N * N; i++) {
        const double y = (double)(i / N - N / 2), x = (double)(i % N - N / 2);
        const double complex v = at(probe, i) * cexp(0.003 * PS_I * (x * x + y * y));
        c->probe[i] = (fth_c128){creal(v), cimag(v)};
    }
    c->data.probe = c->probe;
    c->data.modes = 1;
    fth_tensor_release(object);
    fth_tensor_release(probe);
}

void ps_close(ps_case *c)
{
    fth_tensor_release(c->patterns);
    fth_tensor_release(c->masks);
    free(c->x);
    free(c->y);
    free(c->probe);
    free(c->object);
    free(c->factor);
    OK(fth_context_destroy(c->ctx, NULL));
}

/* ---- runs ---- */

pt_solve_options ps_options(pt_algorithm algorithm, int64_t iterations)
{
    const bool waves = algorithm == PT_SOLVE_DM || algorithm == PT_SOLVE_RAAR;
    return (pt_solve_options){.algorithm = algorithm,
                              .iterations = iterations,
                              .batch = algorithm == PT_SOLVE_LSQML ? 12 : 1,
                              .modes = 1,
                              .object_alpha = algorithm == PT_SOLVE_RPIE ? 0.05 : 1,
                              .probe_alpha = algorithm == PT_SOLVE_RPIE ? 0.5 : 1,
                              .raar_beta = 0.75,
                              .dm_alpha = 1,
                              .subpixel = true,
                              .probe_start = waves ? 2 : 0,
                              .position_start = -1,
                              .position_step = 1,
                              .position_limit = 0.1,
                              .rescale_probe = true,
                              .orthogonalise = true,
                              .scale_every = 10,
                              .object_inertia = 1e-4,
                              .probe_inertia = 1e-9,
                              .overlap_iterations = 10,
                              .power_bound = -1,
                              .clip_low = (double)NAN,
                              .clip_high = (double)NAN,
                              .probe_power = (double)NAN,
                              .wide = true,
                              .compat_rng = true,
                              .seed = 0};
}

pt_solver *ps_solve(ps_case *c, const pt_solve_options *opt)
{
    pt_solver *s = NULL;
    fth_err err = {0};
    OKE(pt_solver_create(&s, c->ctx, NULL, opt, &c->data, &err), &err);
    OKE(pt_solver_begin(s, &err), &err);
    while (s->epoch < opt->iterations) OKE(pt_solver_step(s, &err), &err);
    OKE(pt_solver_finish(s, &err), &err);
    return s;
}

double complex ps_object(const pt_solver *s, int64_t y, int64_t x)
{
    const void *v = fth_tensor_view(s->object);
    const int64_t i = (y - s->origin_y) * s->cols + x - s->origin_x;
    return pt_get(v, s->real, i) + PS_I * pt_get(v, s->real, s->rows * s->cols + i);
}

double complex ps_probe(const pt_solver *s, int64_t mode, int64_t i)
{
    const void *v = fth_tensor_view(s->probe);
    const int64_t nn = s->n * s->n, at_mode = mode * 2 * nn;
    return pt_get(v, s->real, at_mode + i) + PS_I * pt_get(v, s->real, at_mode + nn + i);
}

/* ---- the error of g10 ---- */

/* sum over the region of conj(truth) found exp(-i(a y + b x)). */
static double complex overlap(const double complex *product, const bool *roi, int64_t rows,
                              int64_t cols, double a, double b)
{
    double complex sum = 0;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < cols; x++)
            if (roi[y * cols + x])
                sum += product[y * cols + x] * cexp(-PS_I * (a * (double)y + b * (double)x));
    return sum;
}

double ps_g10_error(ps_case *c, const pt_solver *s)
{
    static const char path[] = PS_GOLDEN "g10_solver_case.npz";
    fth_tensor *object = ps_member(c->mem, path, "obj"), *region = ps_member(c->mem, path, "roi");
    const int64_t rows = fth_tensor_size(object, 0), cols = fth_tensor_size(object, 1);
    const bool *roi = fth_tensor_view(region);
    double complex *product = calloc((size_t)(rows * cols), sizeof *product);
    for (int64_t i = 0; i < rows * cols; i++)
        if (roi[i]) product[i] = conj(at(object, i)) * ps_object(s, i / cols, i % cols);
    /* the ramp that makes both agree best: a search that narrows down */
    double a = 0, b = 0;
    for (double step = 0.02; step > 1e-7; step *= 0.6) {
        double best = -1, at_a = a, at_b = b;
        for (int i = -1; i <= 1; i++)
            for (int j = -1; j <= 1; j++) {
                const double v =
                    cabs(overlap(product, roi, rows, cols, a + i * step, b + j * step));
                if (v > best) best = v, at_a = a + i * step, at_b = b + j * step;
            }
        a = at_a, b = at_b;
    }
    double complex above = 0;
    double below = 0, error = 0, all = 0;
    for (int64_t i = 0; i < rows * cols; i++) {
        if (!roi[i]) continue;
        const double complex v = ps_object(s, i / cols, i % cols) *
                                 cexp(-PS_I * (a * (double)(i / cols) + b * (double)(i % cols)));
        above += conj(v) * at(object, i);
        below += creal(v * conj(v));
    }
    for (int64_t i = 0; i < rows * cols; i++) {
        if (!roi[i]) continue;
        const double complex v = ps_object(s, i / cols, i % cols) *
                                 cexp(-PS_I * (a * (double)(i / cols) + b * (double)(i % cols)));
        const double complex d = above / below * v - at(object, i);
        error += creal(d * conj(d));
        all += creal(at(object, i) * conj(at(object, i)));
    }
    free(product);
    fth_tensor_release(object);
    fth_tensor_release(region);
    return sqrt(error / all);
}
