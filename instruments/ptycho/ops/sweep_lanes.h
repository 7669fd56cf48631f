/* sweep_lanes.h - the loops of a sweep in one precision; see sweep.h for what they do.
 *
 * A batch goes through phases with a barrier between them: its patterns are projected (a worker
 * takes a pattern), then rows of the probe and of the object are updated (a worker takes a tile of
 * rows and adds the patterns in their order). So nothing depends on the number of workers. Included
 * by one file per precision, compiled once per instruction set.
 */
#include "sweep.h"

#include "shift_lanes.h"

#include <stdlib.h>

enum { TILE = 16 }; /* rows that a worker takes at a time */

/* Of a pattern in its batch. */
typedef struct one {
    int64_t row, col;
    real object_max, probe_max; /* of |.|^2 */
    double alpha;               /* of the Poisson model */
    double a11, a22, a12_re, a12_im, b1, b2;
    double share, size; /* opr: sums over the pattern */
} one;

typedef struct sweep {
    const pt_sweep_work *w;
    const pt_sweep *rule;
    int64_t n, nn, modes, cells; /* cells of the canvas */
    real *object, *probe, *eigen;
    real *rest, *trend; /* opr: [pattern 2 nn] what the shared probe leaves over; [2 nn] */
    int64_t q;          /* the eigenprobe in work */
    fft table;          /* without room */
    int64_t first, size;
    one *one;
    double *steps;   /* of each pattern, sorted */
    real *chi;       /* [pattern mode 2 nn]: spectra, then what the projection changes */
    real *lit;       /* shift: probes as each pattern sees them */
    real *back;      /* shift: spectra of the probe's updates, moved back */
    real *spectrum;  /* shift: of the probe [mode 2 nn] */
    real *amplitude; /* Poisson: [pattern nn] */
    real *next;      /* [mode 2 nn]: the next probe; lsqml: its direction */
    real *direction; /* lsqml: of the object [2 cells] */
    int64_t box[4];  /* rows and columns of the canvas that the batch touches */
    double mean_alpha, object_step, probe_step;
    char *worker;
    uint64_t worker_bytes;
} sweep;

/* What a worker has for itself. */
typedef struct bench {
    fft table;
    real *amplitude;    /* nn */
    real *spare, *more; /* 2 nn each */
    real *even_more;    /* 2 nn: positions */
    real *ramps;        /* 4 n */
} bench;

/* ---- scratch ---- */

static bench bench_of(const sweep *s, room *r)
{
    bench b = {.table = s->table};
    b.table.room = take(r, 4 * s->n, sizeof(vr));
    b.amplitude = take_reals(r, s->nn);
    b.spare = take_reals(r, 2 * s->nn);
    b.more = take_reals(r, 2 * s->nn);
    b.even_more = take_reals(r, 2 * s->nn);
    b.ramps = take_reals(r, 4 * s->n);
    return b;
}

static bench bench_at(const sweep *s, int worker)
{
    room r = {s->worker + (uint64_t)worker * s->worker_bytes, 0};
    return bench_of(s, &r);
}

/* The places of everything behind w->scratch; returns their bytes. */
static uint64_t arrange(sweep *s, const pt_sweep_work *w)
{
    const pt_sweep *rule = w->rule;
    *s = (sweep){.w = w, .rule = rule, .n = w->n, .nn = w->n * w->n, .modes = w->modes};
    s->cells = w->rows * w->cols;
    s->object = w->object;
    s->probe = w->probe;
    const int64_t fields = 2 * s->nn * s->modes, batch = rule->batch * fields;
    room r = {w->scratch, 0}, one_bench = {NULL, 0};
    real *table = take_reals(&r, FFT_TABLE_REALS(s->n));
    s->one = take(&r, rule->batch, sizeof(one));
    s->steps = take(&r, rule->batch, sizeof(double));
    s->chi = take_reals(&r, batch);
    s->next = take_reals(&r, fields);
    if (rule->shift || rule->opr) s->lit = take_reals(&r, batch);
    if (rule->opr) {
        s->eigen = w->eigen;
        s->rest = take_reals(&r, rule->batch * 2 * s->nn);
        s->trend = take_reals(&r, 2 * s->nn);
    }
    if (rule->shift) {
        s->back = take_reals(&r, batch);
        s->spectrum = take_reals(&r, fields);
    }
    if (rule->poisson) s->amplitude = take_reals(&r, rule->batch * s->nn);
    if (rule->rule == PT_LSQML) s->direction = take_reals(&r, 2 * s->cells);
    bench_of(s, &one_bench);
    s->worker_bytes = one_bench.bytes;
    s->worker = take(&r, w->threads > 1 ? w->threads : 1, s->worker_bytes);
    if (w->scratch) fft_make(&s->table, (int)s->n, table);
    return r.bytes;
}

static uint64_t sweep_scratch(const pt_sweep_work *w)
{
    sweep s;
    pt_sweep_work plain = *w;
    plain.scratch = NULL;
    return arrange(&s, &plain);
}

/* ---- views ---- */

static real *field_of(const sweep *s, real *all, int64_t i, int64_t mode)
{
    return all + (i * s->modes + mode) * 2 * s->nn;
}
static const real *probe_of(const sweep *s, int64_t i, int64_t mode)
{
    const bool own = s->rule->shift || (s->rule->opr && mode == 0);
    return own ? field_of(s, s->lit, i, mode) : s->probe + mode * 2 * s->nn;
}
static patch patch_of(const sweep *s, int64_t i)
{
    const int64_t at = s->one[i].row * s->w->cols + s->one[i].col;
    return (patch){s->object + at, s->object + s->cells + at, s->w->cols};
}

/* ---- projecting a pattern ---- */

static void put_ramps(const sweep *s, int64_t i, const bench *b)
{
    const double *visit = s->w->visits + (s->first + i) * PT_VISITS;
    ramp(s->n, visit[PT_VISIT_DROW], b->ramps);
    ramp(s->n, visit[PT_VISIT_DCOL], b->ramps + 2 * s->n);
}

/* The largest sum of |P|^2 over modes. */
static real probe_power_max(const sweep *s, int64_t i)
{
    vr most = v_set(0);
    for (int64_t p = 0; p < s->nn; p += LANES) {
        const int k = lanes_left(s->nn, p);
        vr sum = v_set(0);
        for (int64_t m = 0; m < s->modes; m++) {
            const real *f = probe_of(s, i, m);
            sum = sum + cv_abs2(ldc(f + p, f + s->nn + p, k));
        }
        most = v_max(sum, most);
    }
    return lanes_max(most);
}

/* The first mode as a pattern sees it: its shares of the probe and of the eigenprobes. */
static void mix_probe(const sweep *s, int64_t i)
{
    const double *share = s->w->shares + (s->first + i) * (s->rule->opr + 1);
    const int64_t all = 2 * s->nn;
    real *lit = field_of(s, s->lit, i, 0);
    for (int64_t p = 0; p < all; p += LANES) {
        const int k = lanes_left(all, p);
        vr sum = v_set((real)share[0]) * ld(s->probe + p, k);
        for (int64_t q = 0; q < s->rule->opr; q++)
            sum = v_fma(v_set((real)share[q + 1]), ld(s->eigen + q * all + p, k), sum);
        st(lit + p, sum, k);
    }
}

/* Spectra of the exit waves, and the measured amplitudes. */
static const real *propagate(sweep *s, int64_t i, const bench *b)
{
    const pt_sweep_work *w = s->w;
    const int64_t nn = s->nn, j = s->first + i;
    one *o = &s->one[i];
    o->row = (int64_t)w->visits[j * PT_VISITS + PT_VISIT_ROW];
    o->col = (int64_t)w->visits[j * PT_VISITS + PT_VISIT_COL];
    o->alpha = w->visits[j * PT_VISITS + PT_VISIT_ALPHA];
    if (s->rule->shift) put_ramps(s, i, b);
    if (s->rule->opr) mix_probe(s, i);
    for (int64_t m = 0; m < s->modes; m++) {
        if (s->rule->shift) {
            real *lit = field_of(s, s->lit, i, m);
            const bool own = m == 0 && s->rule->opr;
            if (own) fft_image(&b->table, lit, lit + nn, b->spare, b->spare + nn);
            shift_spectrum(s->n, own ? lit : s->spectrum + m * 2 * nn, b->ramps,
                           b->ramps + 2 * s->n, false, 1 / (real)nn, lit);
            fft_image_inverse(&b->table, lit, lit + nn, b->spare, b->spare + nn);
        }
        real *psi = field_of(s, s->chi, i, m);
        o->object_max = illuminate(s->n, patch_of(s, i), probe_of(s, i, m), psi);
        fft_image(&b->table, psi, psi + nn, b->spare, b->spare + nn);
    }
    if (s->rule->shift) o->probe_max = probe_power_max(s, i);
    real *a = s->rule->poisson ? s->amplitude + i * nn : b->amplitude;
    const int64_t frame = (int64_t)w->visits[j * PT_VISITS + PT_VISIT_FRAME];
    amplitudes(s->n, w->patterns, w->dtype, frame, s->rule->counts, s->rule->centred,
               w->mask ? w->mask + frame * w->mask_step : NULL, a);
    return a;
}

LANE vr model_power(const sweep *s, const real *psi, int64_t p, int k)
{
    vr sum = v_set(0);
    for (int64_t m = 0; m < s->modes; m++) {
        const real *f = psi + m * 2 * s->nn;
        sum = sum + cv_abs2(ldc(f + p, f + s->nn + p, k));
    }
    return sum;
}

/* The spectra become what the projection changes of them, ready for an inverse transform; tells
 * how far model and data are apart. */
static void project(const sweep *s, int64_t i, const real *amplitude)
{
    const int64_t nn = s->nn, n = s->n;
    const vr per_n = v_set(1 / (real)n), per_nn = v_set(1 / (real)nn),
             eps = v_set((real)s->rule->epsilon), zero = v_set(0),
             alpha = v_set((real)s->one[i].alpha), tiny = v_set(R(1e-6));
    const bool poisson = s->rule->poisson;
    real *psi = field_of(s, s->chi, i, 0);
    double misfit = 0, counts = 0, model = 0;
    for (int64_t row = 0; row < nn; row += n) {
        vr sum_d = zero, sum_c = zero, sum_m = zero;
        for (int64_t c = 0; c < n; c += LANES) {
            const int k = lanes_left(n, c);
            const int64_t p = row + c;
            const vr seen = ld(amplitude + p, k), a = v_sqrt(model_power(s, psi, p, k)) * per_n;
            const vm good = v_le(zero, seen);
            const vr measured = v_pick(good, seen, zero), d = v_pick(good, a - seen, zero),
                     modelled = v_pick(good, a, zero);
            sum_d = v_fma(d, d, sum_d);
            sum_c = v_fma(measured, measured, sum_c);
            sum_m = v_fma(modelled, modelled, sum_m);
            const vr by =
                poisson ? alpha * (seen * seen / (a * a + tiny) - 1) : seen / (a + eps) - 1;
            const vr change = v_pick(good, by * per_nn, zero);
            for (int64_t m = 0; m < s->modes; m++) {
                real *f = psi + m * 2 * nn + p;
                stc(f, f + nn, cv_scale(ldc(f, f + nn, k), change), k);
            }
        }
        misfit += lanes_sum(sum_d);
        counts += lanes_sum(sum_c);
        model += lanes_sum(sum_m);
    }
    double *told = s->w->told + (s->first + i) * PT_TOLD;
    told[PT_TOLD_MISFIT] = misfit;
    told[PT_TOLD_COUNTS] = counts;
    told[PT_TOLD_MODEL] = model;
    told[PT_TOLD_ALPHA] = s->one[i].alpha;
    told[PT_TOLD_DROW] = told[PT_TOLD_DCOL] = 0;
}

/* One iteration towards the step of the Poisson model, from the mean of the batch. */
static void poisson_step(void *arg, int64_t i, int worker)
{
    sweep *s = arg;
    (void)worker;
    const int64_t nn = s->nn, n = s->n;
    const vr per_n = v_set(1 / (real)n), zero = v_set(0), tiny = v_set(R(1e-6)),
             mean = v_set((real)s->mean_alpha);
    const real *psi = field_of(s, s->chi, i, 0), *amplitude = s->amplitude + i * nn;
    double above = 0, below = 0;
    for (int64_t row = 0; row < nn; row += n) {
        vr up = zero, down = zero;
        for (int64_t c = 0; c < n; c += LANES) {
            const int k = lanes_left(n, c);
            const vr seen = ld(amplitude + row + c, k), counts = seen * seen,
                     a = v_sqrt(model_power(s, psi, row + c, k)) * per_n, a2 = a * a;
            const vr xi = v_pick(v_le(zero, seen), 1 - counts / (a2 + tiny), zero);
            up = up + xi * (a2 - counts / (1 - mean * xi));
            down = v_fma(xi * xi, a2, down);
        }
        above += lanes_sum(up);
        below += lanes_sum(down);
    }
    const double step = below > 0 ? above / below : s->mean_alpha;
    const double alpha = 0.5 * s->mean_alpha + 0.5 * step;
    s->one[i].alpha = !(alpha > 0) ? 0 : alpha > 1 ? 1 : alpha;
}

/* What the pattern says about its position: the change of the exit wave along each derivative of
 * the patch, as the first mode sees it. */
static void tell_position(const sweep *s, int64_t i, const bench *b)
{
    const int64_t nn = s->nn, n = s->n;
    const patch o = patch_of(s, i);
    const real *chi = field_of(s, s->chi, i, 0), *probe = probe_of(s, i, 0);
    real *spectrum = b->more, *slope = b->even_more;
    double *told = s->w->told + (s->first + i) * PT_TOLD;
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < n; c++) {
            spectrum[r * n + c] = o.re[r * o.step + c];
            spectrum[nn + r * n + c] = o.im[r * o.step + c];
        }
    fft_image(&b->table, spectrum, spectrum + nn, b->spare, b->spare + nn);
    for (int axis = 0; axis < 2; axis++) {
        differentiate(n, spectrum, axis, 1 / (real)nn, slope);
        fft_image_inverse(&b->table, slope, slope + nn, b->spare, b->spare + nn);
        double above = 0, below = 0;
        for (int64_t row = 0; row < nn; row += n) {
            vr up = v_set(0), down = v_set(0);
            for (int64_t c = 0; c < n; c += LANES) {
                const int k = lanes_left(n, c);
                const int64_t p = row + c;
                const cv u =
                    cv_mul(ldc(probe + p, probe + nn + p, k), ldc(slope + p, slope + nn + p, k));
                up = up + cv_mulc(u, ldc(chi + p, chi + nn + p, k)).re;
                down = down + cv_abs2(u);
            }
            above += lanes_sum(up);
            below += lanes_sum(down);
        }
        told[PT_TOLD_DROW + axis] = below > 0 ? above / below : 0;
    }
}

/* How an update is weighed where the other field has this power, and nowhere more than `most`: epie
 * by the brightest point, pie and rpie pixel by pixel, pie the dim ones less. */
LANE vr pie_weight(int rule, real alpha, real most, vr power)
{
    const vr zero = v_set(0);
    if (rule == PT_EPIE) return v_set(most > 0 ? alpha / most : 0);
    if (rule == PT_PIE) {
        const vr den = (power + alpha * most) * v_sqrt(v_set(most));
        return v_pick(v_lt(zero, den), v_sqrt(power) / den, zero);
    }
    const vr den = v_fma(v_set(1 - alpha), power, v_set(alpha * most));
    return v_pick(v_lt(zero, den), 1 / den, zero);
}

/* The same of the probe's update by a pattern; lsqml's is not weighed. */
LANE vr object_weight(const sweep *s, const one *o, cv a)
{
    if (s->rule->rule == PT_LSQML) return v_set(1);
    return pie_weight(s->rule->rule, (real)s->rule->probe_alpha, o->object_max, cv_abs2(a));
}

/* Spectra of the updates that this pattern wants of the probe, moved to where the probe is. */
static void move_back(const sweep *s, int64_t i, const bench *b)
{
    const int64_t nn = s->nn, n = s->n;
    const patch o = patch_of(s, i);
    for (int64_t m = 0; m < s->modes; m++) {
        real *to = field_of(s, s->back, i, m);
        const real *chi = field_of(s, s->chi, i, m);
        for (int64_t r = 0; r < n; r++)
            for (int64_t c = 0; c < n; c += LANES) {
                const int k = lanes_left(n, c);
                const int64_t p = r * n + c, q = r * o.step + c;
                const cv a = ldc(o.re + q, o.im + q, k);
                const cv u = cv_mulc(a, ldc(chi + p, chi + nn + p, k));
                stc(to + p, to + nn + p, cv_scale(u, object_weight(s, &s->one[i], a)), k);
            }
        fft_image(&b->table, to, to + nn, b->spare, b->spare + nn);
        shift_spectrum(n, to, b->ramps, b->ramps + 2 * n, true, 1 / (real)nn, to);
    }
}

/* ptypy's probe sees the new object: what it wants is moved back when that is known. */
static bool moves_late(const sweep *s)
{
    return s->rule->ptypy && s->rule->rule != PT_LSQML;
}
static void move_now(void *arg, int64_t i, int worker)
{
    const sweep *s = arg;
    const bench b = bench_at(s, worker);
    put_ramps(s, i, &b);
    move_back(s, i, &b);
}

static void return_home(sweep *s, int64_t i, const bench *b)
{
    for (int64_t m = 0; m < s->modes; m++) {
        real *f = field_of(s, s->chi, i, m);
        fft_image_inverse(&b->table, f, f + s->nn, b->spare, b->spare + s->nn);
    }
    if (s->w->positions_on) tell_position(s, i, b);
    if (s->rule->shift && !moves_late(s)) {
        put_ramps(s, i, b);
        move_back(s, i, b);
    }
}

static void visit_pattern(void *arg, int64_t i, int worker)
{
    sweep *s = arg;
    const bench b = bench_at(s, worker);
    const real *amplitude = propagate(s, i, &b);
    if (s->rule->poisson) return; /* steps first */
    project(s, i, amplitude);
    if (s->rule->rule != PT_LOOK) return_home(s, i, &b);
}
static void finish_pattern(void *arg, int64_t i, int worker)
{
    sweep *s = arg;
    const bench b = bench_at(s, worker);
    project(s, i, s->amplitude + i * s->nn);
    return_home(s, i, &b);
}
static void transform_mode(void *arg, int64_t m, int worker)
{
    sweep *s = arg;
    const bench b = bench_at(s, worker);
    real *to = s->spectrum + m * 2 * s->nn;
    memcpy(to, s->probe + m * 2 * s->nn, (size_t)(2 * s->nn) * sizeof(real));
    fft_image(&b.table, to, to + s->nn, b.spare, b.spare + s->nn);
}

static void mean_alpha(sweep *s)
{
    double sum = 0;
    for (int64_t i = 0; i < s->size; i++) sum += s->one[i].alpha;
    s->mean_alpha = sum / (double)s->size;
}

static void project_batch(sweep *s)
{
    fth_team *team = s->w->team;
    if (s->rule->shift) fth_team_run(team, s->modes, transform_mode, s);
    fth_team_run(team, s->size, visit_pattern, s);
    if (s->rule->poisson) {
        for (int k = 0; k < 2; k++) {
            mean_alpha(s);
            fth_team_run(team, s->size, poisson_step, s);
        }
        fth_team_run(team, s->size, finish_pattern, s);
    }
}

/* ---- the probe ---- */

static int64_t probe_tiles(const sweep *s)
{
    return s->modes * ((s->n + TILE - 1) / TILE);
}

/* Rows of the mean of what the patterns want of a mode: in `next`. */
static void gather_probe(void *arg, int64_t tile, int worker)
{
    const sweep *s = arg;
    (void)worker;
    const int64_t n = s->n, nn = s->nn, per = (n + TILE - 1) / TILE, m = tile / per,
                  r0 = tile % per * TILE, r1 = r0 + TILE < n ? r0 + TILE : n;
    const vr share = v_set(1 / (real)s->size);
    real *to = s->next + m * 2 * nn;
    for (int64_t r = r0; r < r1; r++)
        for (int64_t c = 0; c < n; c += LANES) {
            const int k = lanes_left(n, c);
            const int64_t p = r * n + c;
            cv sum = {v_set(0), v_set(0)};
            for (int64_t i = 0; i < s->size; i++) {
                if (s->rule->shift) {
                    const real *f = field_of(s, s->back, i, m);
                    sum = cv_add(sum, ldc(f + p, f + nn + p, k));
                    continue;
                }
                const patch o = patch_of(s, i);
                const int64_t q = r * o.step + c;
                const real *chi = field_of(s, s->chi, i, m);
                const cv a = ldc(o.re + q, o.im + q, k);
                const cv u = cv_mulc(a, ldc(chi + p, chi + nn + p, k));
                sum = cv_add(sum, s->rule->rule == PT_LSQML
                                      ? u
                                      : cv_scale(u, object_weight(s, &s->one[i], a)));
            }
            stc(to + p, to + nn + p, cv_scale(sum, share), k);
        }
}
static void inverse_mode(void *arg, int64_t m, int worker)
{
    sweep *s = arg;
    const bench b = bench_at(s, worker);
    real *to = s->next + m * 2 * s->nn;
    fft_image_inverse(&b.table, to, to + s->nn, b.spare, b.spare + s->nn);
}
static void probe_direction(sweep *s)
{
    fth_team_run(s->w->team, probe_tiles(s), gather_probe, s);
    if (s->rule->shift) fth_team_run(s->w->team, s->modes, inverse_mode, s);
}

static void add_to_probe(sweep *s, double step)
{
    const int64_t all = 2 * s->nn * s->modes;
    const vr by = v_set((real)step);
    for (int64_t p = 0; p < all; p += LANES) {
        const int k = lanes_left(all, p);
        st(s->probe + p, v_fma(by, ld(s->next + p, k), ld(s->probe + p, k)), k);
    }
}

/* ---- the object ---- */

static void find_box(sweep *s)
{
    int64_t *b = s->box;
    b[0] = s->w->rows, b[1] = 0, b[2] = s->w->cols, b[3] = 0;
    for (int64_t i = 0; i < s->size; i++) {
        const one *o = &s->one[i];
        if (o->row < b[0]) b[0] = o->row;
        if (o->row + s->n > b[1]) b[1] = o->row + s->n;
        if (o->col < b[2]) b[2] = o->col;
        if (o->col + s->n > b[3]) b[3] = o->col + s->n;
    }
}
static int64_t box_tiles(const sweep *s)
{
    return (s->box[1] - s->box[0] + TILE - 1) / TILE;
}

/* Add a row of what a pattern wants of the object: the sum over modes of conj(P) chi, weighed. */
static void add_row(const sweep *s, int64_t i, int64_t r, real *to_re, real *to_im)
{
    const int64_t n = s->n, nn = s->nn;
    const one *o = &s->one[i];
    const int rule = s->rule->rule;
    const real alpha = (real)s->rule->object_alpha, most = o->probe_max;
    const vr flat = v_set(rule == PT_LSQML ? 1 : most > 0 ? alpha / most : 0);
    for (int64_t c = 0; c < n; c += LANES) {
        const int k = lanes_left(n, c);
        const int64_t p = r * n + c;
        cv sum = {v_set(0), v_set(0)};
        vr power = v_set(0);
        for (int64_t m = 0; m < s->modes; m++) {
            const real *f = probe_of(s, i, m), *chi = field_of(s, s->chi, i, m);
            const cv a = ldc(f + p, f + nn + p, k);
            sum = cv_add(sum, cv_mulc(a, ldc(chi + p, chi + nn + p, k)));
            power = power + cv_abs2(a);
        }
        const vr by =
            rule == PT_RPIE || rule == PT_PIE ? pie_weight(rule, alpha, most, power) : flat;
        const cv was = ldc(to_re + c, to_im + c, k);
        stc(to_re + c, to_im + c, cv_add(was, rule == PT_LSQML ? sum : cv_scale(sum, by)), k);
    }
}

/* Rows of a canvas: the patterns of the batch in their order. */
static void place_rows(const sweep *s, int64_t tile, real *canvas)
{
    const int64_t r0 = s->box[0] + tile * TILE, r1 = r0 + TILE < s->box[1] ? r0 + TILE : s->box[1];
    for (int64_t i = 0; i < s->size; i++) {
        const one *o = &s->one[i];
        const int64_t a = r0 > o->row ? r0 : o->row, b = r1 < o->row + s->n ? r1 : o->row + s->n;
        for (int64_t r = a; r < b; r++) {
            real *to = canvas + r * s->w->cols + o->col;
            add_row(s, i, r - o->row, to, to + s->cells);
        }
    }
}
static void update_rows(void *arg, int64_t tile, int worker)
{
    const sweep *s = arg;
    (void)worker;
    place_rows(s, tile, s->object);
}

/* ---- PIE ---- */

static void pie_batch(sweep *s)
{
    fth_team *team = s->w->team;
    if (!s->rule->shift) {
        const real most = probe_power_max(s, 0);
        for (int64_t i = 0; i < s->size; i++) s->one[i].probe_max = most;
    }
    find_box(s);
    /* the object's update needs the old probe, the probe's the old object, unless ptypy is meant */
    if (s->w->probe_on && !s->rule->ptypy) probe_direction(s);
    fth_team_run(team, box_tiles(s), update_rows, s);
    if (!s->w->probe_on) return;
    if (s->rule->ptypy) {
        for (int64_t i = 0; i < s->size; i++) {
            const patch o = patch_of(s, i);
            vr most = v_set(0);
            for (int64_t r = 0; r < s->n; r++)
                for (int64_t c = 0; c < s->n; c += LANES) {
                    const int64_t q = r * o.step + c;
                    most = v_max(cv_abs2(ldc(o.re + q, o.im + q, lanes_left(s->n, c))), most);
                }
            s->one[i].object_max = lanes_max(most);
        }
        if (s->rule->shift) fth_team_run(team, s->size, move_now, s);
        probe_direction(s);
    }
    add_to_probe(s, 1);
}

/* ---- LSQ-ML ---- */

static void clear_and_place(void *arg, int64_t tile, int worker)
{
    const sweep *s = arg;
    (void)worker;
    const int64_t cols = s->w->cols, r0 = s->box[0] + tile * TILE,
                  r1 = r0 + TILE < s->box[1] ? r0 + TILE : s->box[1], width = s->box[3] - s->box[2];
    for (int64_t r = r0; r < r1; r++)
        for (int part = 0; part < 2; part++)
            memset(s->direction + part * s->cells + r * cols + s->box[2], 0,
                   (size_t)width * sizeof(real));
    place_rows(s, tile, s->direction);
    const real *weight = s->w->weight;
    for (int64_t r = r0; r < r1; r++)
        for (int64_t c = 0; c < width; c += LANES) {
            const int k = lanes_left(width, c);
            real *to = s->direction + r * cols + s->box[2] + c;
            const vr by = ld(weight + r * cols + s->box[2] + c, k);
            stc(to, to + s->cells, cv_scale(ldc(to, to + s->cells, k), by), k);
        }
}

/* Sums over the pixels of a pattern: how the directions change its exit wave. */
static void step_sums(void *arg, int64_t i, int worker)
{
    sweep *s = arg;
    (void)worker;
    one *o = &s->one[i];
    const int64_t n = s->n, nn = s->nn;
    const patch obj = patch_of(s, i);
    const real *dir = s->direction + o->row * s->w->cols + o->col, *probe = probe_of(s, i, 0),
               *chi = field_of(s, s->chi, i, 0), *dp = s->next;
    double sum[6] = {0};
    for (int64_t r = 0; r < n; r++) {
        vr row[6];
        for (int q = 0; q < 6; q++) row[q] = v_set(0);
        for (int64_t c = 0; c < n; c += LANES) {
            const int k = lanes_left(n, c);
            const int64_t p = r * n + c, q = r * obj.step + c;
            const cv x = ldc(chi + p, chi + nn + p, k);
            const cv u =
                cv_mul(ldc(dir + q, dir + s->cells + q, k), ldc(probe + p, probe + nn + p, k));
            row[0] = row[0] + cv_abs2(u);
            row[4] = row[4] + cv_mulc(u, x).re;
            if (!s->w->probe_on) continue;
            const cv v = cv_mul(ldc(dp + p, dp + nn + p, k), ldc(obj.re + q, obj.im + q, k));
            const cv uv = cv_mulc(v, u);
            row[1] = row[1] + cv_abs2(v);
            row[2] = row[2] + uv.re;
            row[3] = row[3] + uv.im;
            row[5] = row[5] + cv_mulc(v, x).re;
        }
        for (int q = 0; q < 6; q++) sum[q] += lanes_sum(row[q]);
    }
    const double floor = 1.2e-7; /* of all pixels together */
    o->a11 = sum[0] + floor;
    o->a22 = sum[1] + floor;
    o->a12_re = sum[2];
    o->a12_im = sum[3];
    o->b1 = sum[4];
    o->b2 = sum[5];
}

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Steps along both directions: each pattern has its best pair, the object takes the mean without
 * the outermost tenths, the probe the plain mean. */
static void find_steps(sweep *s)
{
    const int64_t size = s->size;
    double mean11 = 0, mean22 = 0, probe_sum = 0;
    for (int64_t i = 0; i < size; i++) {
        mean11 += s->one[i].a11 / (double)size;
        mean22 += s->one[i].a22 / (double)size;
    }
    double *steps = s->steps;
    for (int64_t i = 0; i < size; i++) {
        const one *o = &s->one[i];
        double object = 0.5 * o->b1 / o->a11, probe = 0;
        if (s->w->probe_on) {
            const double a11 = o->a11 + 0.1 * mean11, a22 = o->a22 + 0.1 * mean22;
            const double det = a11 * a22 - o->a12_re * o->a12_re - o->a12_im * o->a12_im;
            object = det > 0 ? 0.9 * (a22 * o->b1 - o->a12_re * o->b2) / det : 0;
            probe = det > 0 ? 0.9 * (a11 * o->b2 - o->a12_re * o->b1) / det : 0;
        }
        steps[i] = object > 0 ? object / (double)s->modes : 0;
        probe_sum += probe > 0 ? probe : 0;
    }
    qsort(steps, (size_t)size, sizeof *steps, compare_reals);
    const int64_t cut = size / 10;
    double sum = 0;
    for (int64_t i = cut; i < size - cut; i++) sum += steps[i];
    s->object_step = sum / (double)(size - 2 * cut);
    s->probe_step = s->w->probe_share * probe_sum / (double)size;
    s->w->told[s->first * PT_TOLD + PT_TOLD_STEP] = s->object_step;
}

static void step_object(void *arg, int64_t tile, int worker)
{
    const sweep *s = arg;
    (void)worker;
    const int64_t cols = s->w->cols, r0 = s->box[0] + tile * TILE,
                  r1 = r0 + TILE < s->box[1] ? r0 + TILE : s->box[1], width = s->box[3] - s->box[2];
    const bool hold = s->rule->hold;
    const vr by = v_set(hold ? 1 : (real)s->object_step);
    real *to = hold ? s->w->change : s->object;
    for (int64_t r = r0; r < r1; r++)
        for (int part = 0; part < 2; part++)
            for (int64_t c = 0; c < width; c += LANES) {
                const int k = lanes_left(width, c);
                const int64_t at = part * s->cells + r * cols + s->box[2] + c;
                st(to + at, v_fma(by, ld(s->direction + at, k), ld(to + at, k)), k);
            }
}

#include "opr_lanes.h"

static void lsqml_batch(sweep *s)
{
    fth_team *team = s->w->team;
    find_box(s);
    if (s->rule->opr && s->w->probe_on) opr_batch(s);
    if (s->w->probe_on) probe_direction(s);
    fth_team_run(team, box_tiles(s), clear_and_place, s);
    fth_team_run(team, s->size, step_sums, s);
    find_steps(s);
    fth_team_run(team, box_tiles(s), step_object, s);
    if (s->w->probe_on) add_to_probe(s, s->probe_step);
}

/* ---- all batches ---- */

static void sweep_run(const pt_sweep_work *w)
{
    sweep s;
    arrange(&s, w);
    for (s.first = 0; s.first < w->count; s.first += w->rule->batch) {
        const int64_t left = w->count - s.first;
        s.size = left < w->rule->batch ? left : w->rule->batch;
        fth_team_until(w->team, (double)(s.first + s.size) / (double)w->count);
        project_batch(&s);
        if (fth_team_cancelled(w->team)) return;
        if (w->rule->rule == PT_LSQML)
            lsqml_batch(&s);
        else if (w->rule->rule != PT_LOOK)
            pie_batch(&s);
        if (fth_team_cancelled(w->team)) return;
    }
}

/* ---- light ---- */

static void cover_rows(void *arg, int64_t tile, int worker)
{
    const pt_cover_work *w = arg;
    (void)worker;
    const int64_t n = w->n, r0 = tile * TILE, r1 = r0 + TILE < w->rows ? r0 + TILE : w->rows;
    const real *probe = w->probe;
    real *out = w->out;
    memset(out + r0 * w->cols, 0, (size_t)((r1 - r0) * w->cols) * sizeof(real));
    for (int64_t j = 0; j < w->count; j++) {
        const int64_t row = (int64_t)w->visits[j * PT_VISITS + PT_VISIT_ROW],
                      col = (int64_t)w->visits[j * PT_VISITS + PT_VISIT_COL],
                      from = r0 > row ? r0 : row, end = r1 < row + n ? r1 : row + n;
        for (int64_t r = from; r < end; r++)
            for (int64_t c = 0; c < n; c += LANES) {
                const int k = lanes_left(n, c);
                const real *p = probe + (r - row) * n + c;
                real *to = out + r * w->cols + col + c;
                st(to, ld(to, k) + cv_abs2(ldc(p, p + n * n, k)), k);
            }
    }
}
static void cover_run(const pt_cover_work *w)
{
    pt_cover_work work = *w;
    fth_team_run(w->team, (w->rows + TILE - 1) / TILE, cover_rows, &work);
}
