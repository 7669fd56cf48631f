/* patterns.c - from exit waves to counted photons, as one graph that streams.
 *
 * Exit waves are computed as the graph reads them, so a scan of any length takes the memory of one
 * chunk. Counts are drawn by (seed, place): the same for every budget and thread count.
 */
#include "simulate.h"

#include <math.h>
#include <string.h>

/* ---- exit waves ---- */

typedef struct waves {
    const pt_simulation *m;
} waves;

/* O(y + v - N/2, x + u - N/2), between pixels, zero outside. */
static fth_c128 sample(const pt_simulation *m, int64_t r, int64_t c, double fy, double fx)
{
    fth_c128 sum = {0, 0};
    for (int k = 0; k < 4; k++) {
        const int64_t row = r + k / 2, col = c + k % 2;
        const double w = (k / 2 ? fy : 1 - fy) * (k % 2 ? fx : 1 - fx);
        if (w == 0 || row < 0 || col < 0 || row >= m->rows || col >= m->cols) continue;
        sum.re += w * m->object[row * m->cols + col].re;
        sum.im += w * m->object[row * m->cols + col].im;
    }
    return sum;
}

/* P O of pattern j, rows [first, first + n) of it, all columns. */
static void wave_rows(const pt_simulation *m, int64_t j, int64_t mode, int64_t first, int64_t n,
                      bool turn, fth_c128 *out)
{
    const int64_t N = m->N;
    const double y = floor(m->y[j]), x = floor(m->x[j]), fy = m->y[j] - y, fx = m->x[j] - x;
    const fth_c128 *P = m->probe + mode * N * N;
    for (int64_t v = first; v < first + n; v++)
        for (int64_t u = 0; u < N; u++, out++) {
            const fth_c128 o = sample(m, (int64_t)y + v - N / 2, (int64_t)x + u - N / 2, fy, fx),
                           p = P[v * N + u];
            /* alternating signs centre the transform */
            const double sign = turn && (v + u) % 2 ? -1 : 1;
            *out =
                (fth_c128){sign * (p.re * o.re - p.im * o.im), sign * (p.re * o.im + p.im * o.re)};
        }
}

/* [scan mode row col]; the graph never cuts what a transform needs whole. */
static fth_status read_waves(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    const pt_simulation *m = ((const waves *)self)->m;
    fth_c128 *out = dst;
    if (n[3] != m->N) return FTH_FAIL(err, FTH_E_INTERNAL, "exit waves are read in whole rows");
    for (int64_t j = 0; j < n[0]; j++)
        for (int64_t k = 0; k < n[1]; k++, out += n[2] * n[3])
            wave_rows(m, lo[0] + j, lo[1] + k, lo[2], n[2], true, out);
    return FTH_OK;
}

/* ---- the scale ---- */

typedef struct powers {
    const pt_simulation *m;
    double *power;  /* [scan] */
    fth_c128 *room; /* a row for each worker */
} powers;

static void find_power(void *arg, int64_t j, int worker)
{
    const powers *p = arg;
    const int64_t N = p->m->N;
    fth_c128 *row = p->room + worker * N;
    double sum = 0;
    for (int64_t k = 0; k < p->m->modes; k++)
        for (int64_t v = 0; v < N; v++) {
            wave_rows(p->m, j, k, v, 1, false, row);
            for (int64_t u = 0; u < N; u++) sum += row[u].re * row[u].re + row[u].im * row[u].im;
        }
    p->power[j] = sum;
}

double pt_intensity_scale(fth_context *ctx, const pt_simulation *m, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    void *power = NULL, *room = NULL;
    double sum = 0;
    fth_status s =
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)m->n * sizeof(double), "powers", &power, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY,
                         (uint64_t)(fth_context_threads(ctx) * m->N) * sizeof(fth_c128), "rows",
                         &room, err);
    powers p = {m, power, room};
    if (s == FTH_OK) s = fth_context_loop(ctx, "power", m->n, find_power, &p, err);
    for (int64_t j = 0; s == FTH_OK && j < m->n; j++) sum += p.power[j];
    fth_mem_release(mem, room, NULL);
    fth_mem_release(mem, power, NULL);
    return s == FTH_OK && sum > 0 ? sqrt(m->nphotons / (sum / (double)m->n)) : 0;
}

/* ---- patterns ---- */

static fth_val build(fth_graph *g, const pt_simulation *m, double scale, fth_source psi)
{
    enum { STREAM = 0x70747963 }; /* of the noise */
    fth_axis(g, "scan", m->n);
    fth_axis(g, "mode", m->modes);
    fth_axis(g, "row", m->N);
    fth_axis(g, "col", m->N);
    fth_axis(g, "qrow", m->N);
    fth_axis(g, "qcol", m->N);
    const fth_val in = fth_input(g, "psi", FTH_C128, "scan mode row col", psi);
    const fth_val I = fth_sum(fth_abs2(fth_fft(in, "row col", "qrow qcol")), "mode");
    const double N = (double)m->N; /* orthonormal: the transform divided by N */
    fth_val k = fth_mul(I, fth_const(g, FTH_F64, scale * scale / (N * N)));
    if (m->noise)
        k = fth_cast(fth_poisson(k, fth_const_i64(g, FTH_I64, m->noise_seed),
                                 fth_const_i64(g, FTH_I64, 0), STREAM),
                     FTH_F64);
    const fth_val a = fth_sqrt(k);
    return fth_cast(m->counts ? a : fth_mul(a, fth_const(g, FTH_F64, 1 / scale)), FTH_F32);
}

/* More patterns at once only cost memory. */
static int64_t pieces_of(const pt_simulation *m)
{
    enum { AT_ONCE = 1 << 19 }; /* pixels: 32 patterns of 128 x 128 */
    const int64_t pieces = m->n * m->modes * m->N * m->N / AT_ONCE + 1;
    return pieces < m->n ? pieces : m->n;
}

fth_status pt_simulate(fth_context *ctx, const fth_stage_call *call, const pt_simulation *m,
                       const fth_sink *out, double *scale, fth_err *err)
{
    waves w = {m};
    fth_err local = {0};
    const fth_source psi = {.kind = "exit waves",
                            .self = &w,
                            .dtype = FTH_C128,
                            .n_axes = 4,
                            .size = {m->n, m->modes, m->N, m->N},
                            .read = read_waves,
                            .concurrent = true,
                            .part = {0, 0, m->N, m->N}};
    *scale = pt_intensity_scale(ctx, m, &local);
    if (local.status != FTH_OK) {
        if (err) *err = local;
        return local.status;
    }
    if (!(*scale > 0) || !isfinite(*scale))
        return FTH_FAIL(err, FTH_E_NUMERIC,
                        "no light falls on the object: probe times object is zero at every "
                        "position");
    fth_graph *g = fth_graph_create(ctx);
    const fth_val patterns = build(g, m, *scale, psi);
    const fth_limits limits = {.sinks = out, .min_pieces = pieces_of(m)};
    fth_plan *plan = fth_plan_make(g, &patterns, 1, &limits, &local);
    fth_status s = plan ? fth_stage_run(call, plan, out, NULL, err) : local.status;
    if (!plan && err) *err = local;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    return s;
}

fth_plan *pt_simulation_plan(fth_context *ctx, const pt_simulation *m, fth_graph **g, fth_err *err)
{
    const int64_t wave[4] = {m->n, m->modes, m->N, m->N}, size[3] = {m->n, m->N, m->N};
    const fth_sink sink = fth_sink_planned(FTH_F32, 3, size);
    const fth_limits limits = {.sinks = &sink, .min_pieces = pieces_of(m)};
    *g = fth_graph_create(ctx);
    const fth_val patterns = build(*g, m, 1, fth_source_planned(FTH_C128, 4, wave));
    return fth_plan_make(*g, &patterns, 1, &limits, err);
}
