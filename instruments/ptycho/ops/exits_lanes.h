/* exits_lanes.h - the loops of exits.h in one precision.
 *
 * The Fourier step treats patterns one by one: a worker takes a pattern. Sums of the overlap are
 * made by rows: a worker takes a tile of rows and adds the patterns in their order.
 */
#include "exits.h"

#include "field_lanes.h"

enum { TILE = 16 };

/* ---- the Fourier step ---- */

typedef struct bench {
    fft table;
    real *amplitude, *spare; /* nn, 2 nn */
    real *lit, *wave;        /* [mode 2 nn]: probe times object; what is projected */
} bench;
typedef struct exits {
    const pt_exits_work *w;
    int64_t n, nn, modes;
    fft table;
    char *worker;
    uint64_t worker_bytes;
} exits;

static bench bench_of(const exits *s, room *r)
{
    bench b = {.table = s->table};
    b.table.room = take(r, 4 * s->n, sizeof(vr));
    b.amplitude = take_reals(r, s->nn);
    b.spare = take_reals(r, 2 * s->nn);
    b.lit = take_reals(r, 2 * s->nn * s->modes);
    b.wave = take_reals(r, 2 * s->nn * s->modes);
    return b;
}

static uint64_t arrange(exits *s, const pt_exits_work *w)
{
    *s = (exits){.w = w, .n = w->n, .nn = w->n * w->n, .modes = w->modes};
    room r = {w->scratch, 0}, one = {NULL, 0};
    real *table = take_reals(&r, FFT_TABLE_REALS(s->n));
    bench_of(s, &one);
    s->worker_bytes = one.bytes;
    s->worker = take(&r, w->threads > 1 ? w->threads : 1, one.bytes);
    if (w->scratch) fft_make(&s->table, (int)s->n, table);
    return r.bytes;
}
static uint64_t exits_scratch(const pt_exits_work *w)
{
    exits s;
    pt_exits_work plain = *w;
    plain.scratch = NULL;
    return arrange(&s, &plain);
}

/* Sums over the spectra of all modes against the measured amplitudes. */
typedef struct compared {
    double misfit, counts, model, good;
} compared;

static compared compare(const exits *s, const real *spectra, const real *amplitude)
{
    const int64_t n = s->n, nn = s->nn;
    const vr per_n = v_set(1 / (real)n), zero = v_set(0);
    real ones[LANES]; /* lanes behind the end of a row count nothing */
    v_store(ones, v_set(1));
    compared all = {0};
    for (int64_t row = 0; row < nn; row += n) {
        vr d2 = zero, c2 = zero, m2 = zero, number = zero;
        for (int64_t c = 0; c < n; c += LANES) {
            const int k = lanes_left(n, c);
            vr power = zero;
            for (int64_t m = 0; m < s->modes; m++) {
                const real *f = spectra + m * 2 * nn + row + c;
                power = power + cv_abs2(ldc(f, f + nn, k));
            }
            const vr seen = ld(amplitude + row + c, k), a = v_sqrt(power) * per_n;
            const vm good = v_le(zero, seen);
            const vr d = v_pick(good, a - seen, zero), x = v_pick(good, seen, zero),
                     y = v_pick(good, a, zero);
            d2 = v_fma(d, d, d2);
            c2 = v_fma(x, x, c2);
            m2 = v_fma(y, y, m2);
            number = number + v_pick(good, ld(ones, k), zero);
        }
        all.misfit += lanes_sum(d2);
        all.counts += lanes_sum(c2);
        all.model += lanes_sum(m2);
        all.good += lanes_sum(number);
    }
    return all;
}

/* Amplitudes are replaced by the measured ones, or by a share `keep` of the way there. */
static void project(const exits *s, real *spectra, const real *amplitude, real keep)
{
    const int64_t nn = s->nn;
    const vr per_n = v_set(1 / (real)s->n), per_nn = v_set(1 / (real)nn), zero = v_set(0),
             eps = v_set((real)s->w->rule->epsilon), rest = v_set(keep);
    for (int64_t p = 0; p < nn; p += LANES) {
        const int k = lanes_left(nn, p);
        vr power = zero;
        for (int64_t m = 0; m < s->modes; m++) {
            const real *f = spectra + m * 2 * nn + p;
            power = power + cv_abs2(ldc(f, f + nn, k));
        }
        const vr seen = ld(amplitude + p, k), a = v_sqrt(power) * per_n,
                 by = v_fma(rest, a - seen, seen) / (a + eps);
        const vr change = v_pick(v_le(zero, seen), by * per_nn, per_nn);
        for (int64_t m = 0; m < s->modes; m++) {
            real *f = spectra + m * 2 * nn + p;
            stc(f, f + nn, cv_scale(ldc(f, f + nn, k), change), k);
        }
    }
}

/* to = x psi + y lit + z wave, for every mode. */
static void combine(const exits *s, const real *psi, double x, const real *lit, double y,
                    const real *wave, double z, real *to)
{
    const int64_t all = 2 * s->nn * s->modes;
    const vr vx = v_set((real)x), vy = v_set((real)y), vz = v_set((real)z);
    for (int64_t p = 0; p < all; p += LANES) {
        const int k = lanes_left(all, p);
        vr sum = v_fma(vy, ld(lit + p, k), vx * ld(psi + p, k));
        if (wave) sum = v_fma(vz, ld(wave + p, k), sum);
        st(to + p, sum, k);
    }
}

static void transform(const exits *s, const bench *b, real *fields, bool inverse)
{
    for (int64_t m = 0; m < s->modes; m++) {
        real *f = fields + m * 2 * s->nn;
        if (inverse)
            fft_image_inverse(&b->table, f, f + s->nn, b->spare, b->spare + s->nn);
        else
            fft_image(&b->table, f, f + s->nn, b->spare, b->spare + s->nn);
    }
}

static void tell(const exits *s, int64_t j, const compared *c)
{
    double *told = s->w->told + j * PT_TOLD;
    for (int q = 0; q < PT_TOLD; q++) told[q] = 0;
    told[PT_TOLD_MISFIT] = c->misfit;
    told[PT_TOLD_COUNTS] = c->counts;
    told[PT_TOLD_MODEL] = c->model;
}

static void step_pattern(void *arg, int64_t j, int worker)
{
    const exits *s = arg;
    const pt_exits_work *w = s->w;
    const pt_exits *rule = w->rule;
    room place = {s->worker + (uint64_t)worker * s->worker_bytes, 0};
    const bench b = bench_of(s, &place);
    const int64_t fields = 2 * s->nn * s->modes,
                  at = (int64_t)w->visits[j * PT_VISITS + PT_VISIT_ROW] * w->cols +
                       (int64_t)w->visits[j * PT_VISITS + PT_VISIT_COL];
    const real *object = (const real *)w->object + at;
    const patch o = {object, object + w->rows * w->cols, w->cols};
    for (int64_t m = 0; m < s->modes; m++)
        illuminate(s->n, o, (const real *)w->probe + m * 2 * s->nn, b.lit + m * 2 * s->nn);
    amplitudes(s->n, w->patterns, w->dtype, j, rule->counts, rule->centred,
               w->mask ? w->mask + j * w->mask_step : NULL, b.amplitude);
    const real *psi = rule->first ? b.lit : (const real *)w->from + j * fields;
    real *to = w->to ? (real *)w->to + j * fields : NULL;
    memcpy(b.wave, b.lit, (size_t)fields * sizeof(real));
    transform(s, &b, b.wave, false);
    const compared model = compare(s, b.wave, b.amplitude);
    tell(s, j, &model);
    if (rule->first) {
        if (to) memcpy(to, b.lit, (size_t)fields * sizeof(real));
        return;
    }
    combine(s, psi, 1 - rule->c, b.lit, rule->c, NULL, 0, b.wave);
    transform(s, &b, b.wave, false);
    const compared c = compare(s, b.wave, b.amplitude);
    const double mean = c.good > 0 ? c.misfit / c.good : 0, a = rule->a, by = rule->b;
    if (rule->bound >= 0 && mean <= rule->bound) {
        const double step = a + by * rule->c;
        combine(s, psi, 1 - step, b.lit, step, NULL, 0, to);
        return;
    }
    project(s, b.wave, b.amplitude, rule->bound >= 0 ? (real)sqrt(rule->bound / mean) : 0);
    transform(s, &b, b.wave, true);
    combine(s, psi, 1 - a - by, b.lit, a, b.wave, by, to);
}

static void exits_run(const pt_exits_work *w)
{
    exits s;
    arrange(&s, w);
    fth_team_run(w->team, w->count, step_pattern, &s);
}

/* ---- the overlap ---- */

static void object_rows(void *arg, int64_t tile, int worker)
{
    const pt_overlap_work *w = arg;
    (void)worker;
    const int64_t n = w->n, nn = n * n, cells = w->rows * w->cols, r0 = tile * TILE,
                  r1 = r0 + TILE < w->rows ? r0 + TILE : w->rows;
    for (int64_t j = 0; j < w->count; j++) {
        const int64_t row = (int64_t)w->visits[j * PT_VISITS + PT_VISIT_ROW],
                      col = (int64_t)w->visits[j * PT_VISITS + PT_VISIT_COL],
                      from = r0 > row ? r0 : row, end = r1 < row + n ? r1 : row + n;
        for (int64_t r = from; r < end; r++)
            for (int64_t c = 0; c < n; c += LANES) {
                const int k = lanes_left(n, c);
                const int64_t p = (r - row) * n + c;
                real *above = (real *)w->above + r * w->cols + col + c,
                     *below = (real *)w->below + r * w->cols + col + c;
                cv sum = ldc(above, above + cells, k);
                vr power = ld(below, k);
                for (int64_t m = 0; m < w->modes; m++) {
                    const real *f = (const real *)w->other + m * 2 * nn + p,
                               *psi = (const real *)w->waves + (j * w->modes + m) * 2 * nn + p;
                    const cv a = ldc(f, f + nn, k);
                    sum = cv_add(sum, cv_mulc(a, ldc(psi, psi + nn, k)));
                    power = power + cv_abs2(a);
                }
                stc(above, above + cells, sum, k);
                st(below, power, k);
            }
    }
}

static void probe_rows(void *arg, int64_t tile, int worker)
{
    const pt_overlap_work *w = arg;
    (void)worker;
    const int64_t n = w->n, nn = n * n, cells = w->rows * w->cols, r0 = tile * TILE,
                  r1 = r0 + TILE < n ? r0 + TILE : n;
    for (int64_t j = 0; j < w->count; j++) {
        const real *o = (const real *)w->other +
                        (int64_t)w->visits[j * PT_VISITS + PT_VISIT_ROW] * w->cols +
                        (int64_t)w->visits[j * PT_VISITS + PT_VISIT_COL];
        for (int64_t r = r0; r < r1; r++)
            for (int64_t c = 0; c < n; c += LANES) {
                const int k = lanes_left(n, c);
                const int64_t p = r * n + c, q = r * w->cols + c;
                const cv a = ldc(o + q, o + cells + q, k);
                real *below = (real *)w->below + p;
                st(below, ld(below, k) + cv_abs2(a), k);
                for (int64_t m = 0; m < w->modes; m++) {
                    real *above = (real *)w->above + m * 2 * nn + p;
                    const real *psi = (const real *)w->waves + (j * w->modes + m) * 2 * nn + p;
                    const cv more = cv_mulc(a, ldc(psi, psi + nn, k));
                    stc(above, above + nn, cv_add(ldc(above, above + nn, k), more), k);
                }
            }
    }
}

static void overlap_run(const pt_overlap_work *w)
{
    pt_overlap_work work = *w;
    const int64_t rows = w->probe ? w->n : w->rows;
    fth_team_run(w->team, (rows + TILE - 1) / TILE, w->probe ? probe_rows : object_rows, &work);
}
