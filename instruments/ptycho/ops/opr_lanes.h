/* opr_lanes.h - orthogonal probe relaxation in a batch of lsqml: eigenprobes, and their shares in
 * each pattern. Part of sweep_lanes.h. Whole pixels: fractions of positions are left out here.
 */

/* What a pattern wants of the first mode: conj(O) chi. */
static void opr_rest(void *arg, int64_t i, int worker)
{
    sweep *s = arg;
    (void)worker;
    const patch o = patch_of(s, i);
    const real *chi = field_of(s, s->chi, i, 0);
    real *rest = s->rest + i * 2 * s->nn;
    for (int64_t r = 0; r < s->n; r++)
        for (int64_t c = 0; c < s->n; c += LANES) {
            const int k = lanes_left(s->n, c);
            const int64_t p = r * s->n + c, q = r * o.step + c;
            stc(rest + p, rest + s->nn + p,
                cv_mulc(ldc(o.re + q, o.im + q, k), ldc(chi + p, chi + s->nn + p, k)), k);
        }
}

/* The mean over the batch of what is left over, each times its share: rows of `trend`. */
static void opr_trend(void *arg, int64_t tile, int worker)
{
    const sweep *s = arg;
    (void)worker;
    const int64_t all = 2 * s->nn, from = tile * TILE * s->n,
                  end = from + TILE * s->n < all ? from + TILE * s->n : all;
    const vr per = v_set(1 / (real)s->size);
    for (int64_t p = from; p < end; p += LANES) {
        const int k = lanes_left(end, p);
        vr sum = v_set(0);
        for (int64_t i = 0; i < s->size; i++)
            sum = v_fma(v_set((real)s->one[i].share), ld(s->rest + i * all + p, k), sum);
        st(s->trend + p, sum * per, k);
    }
}

static void opr_subtract(void *arg, int64_t i, int worker)
{
    const sweep *s = arg;
    (void)worker;
    const int64_t all = 2 * s->nn;
    real *rest = s->rest + i * all;
    for (int64_t p = 0; p < all; p += LANES) {
        const int k = lanes_left(all, p);
        st(rest + p, ld(rest + p, k) - ld(s->trend + p, k), k);
    }
}

/* share = mean Re(conj(rest) E). */
static void opr_overlap(void *arg, int64_t i, int worker)
{
    const sweep *s = arg;
    (void)worker;
    const int64_t all = 2 * s->nn;
    const real *rest = s->rest + i * all, *e = s->eigen + s->q * all;
    double sum = 0;
    for (int64_t row = 0; row < all; row += s->n) {
        vr part = v_set(0);
        for (int64_t c = 0; c < s->n; c += LANES) {
            const int k = lanes_left(s->n, c);
            part = v_fma(ld(rest + row + c, k), ld(e + row + c, k), part);
        }
        sum += lanes_sum(part);
    }
    s->one[i].share = sum / (double)s->nn;
}

/* share = mean Re(chi conj(O f)), size = mean |O f|^2. */
static void along(const sweep *s, int64_t i, const real *f)
{
    const patch o = patch_of(s, i);
    const real *chi = field_of(s, s->chi, i, 0);
    double above = 0, below = 0;
    for (int64_t r = 0; r < s->n; r++) {
        vr up = v_set(0), down = v_set(0);
        for (int64_t c = 0; c < s->n; c += LANES) {
            const int k = lanes_left(s->n, c);
            const int64_t p = r * s->n + c, q = r * o.step + c;
            const cv u = cv_mul(ldc(o.re + q, o.im + q, k), ldc(f + p, f + s->nn + p, k));
            up = up + cv_mulc(u, ldc(chi + p, chi + s->nn + p, k)).re;
            down = down + cv_abs2(u);
        }
        above += lanes_sum(up);
        below += lanes_sum(down);
    }
    s->one[i].share = above / (double)s->nn;
    s->one[i].size = below / (double)s->nn;
}
static void opr_along(void *arg, int64_t i, int worker)
{
    const sweep *s = arg;
    (void)worker;
    along(s, i, s->eigen + s->q * 2 * s->nn);
}

/* What is left over, without what the eigenprobe takes up; its mean square is 1. */
static void opr_project(void *arg, int64_t i, int worker)
{
    const sweep *s = arg;
    (void)worker;
    const int64_t nn = s->nn;
    real *rest = s->rest + i * 2 * nn;
    const real *e = s->eigen + s->q * 2 * nn;
    double re = 0, im = 0;
    for (int64_t row = 0; row < nn; row += s->n) {
        cv part = {v_set(0), v_set(0)};
        for (int64_t c = 0; c < s->n; c += LANES) {
            const int k = lanes_left(s->n, c);
            const int64_t p = row + c;
            part =
                cv_add(part, cv_mulc(ldc(e + p, e + nn + p, k), ldc(rest + p, rest + nn + p, k)));
        }
        re += lanes_sum(part.re);
        im += lanes_sum(part.im);
    }
    const cv by = {v_set((real)(re / (double)nn)), v_set((real)(im / (double)nn))};
    for (int64_t p = 0; p < nn; p += LANES) {
        const int k = lanes_left(nn, p);
        const cv was = ldc(rest + p, rest + nn + p, k);
        stc(rest + p, rest + nn + p, cv_sub(was, cv_mul(by, ldc(e + p, e + nn + p, k))), k);
    }
}

static double rms(const real *v, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    return sqrt(2 * sum / (double)n); /* of n/2 complex numbers */
}

/* One eigenprobe follows the trend, and its shares follow the patterns. */
static void opr_follow(sweep *s, int64_t trend_tiles)
{
    const int64_t all = 2 * s->nn, columns = s->rule->opr + 1;
    double *shares = s->w->shares + s->first * columns + s->q + 1, norm = 0, mean = 0;
    real *e = s->eigen + s->q * all;
    fth_team *team = s->w->team;
    for (int64_t i = 0; i < s->size; i++) norm += shares[i * columns] * shares[i * columns];
    if (!(norm > 0)) return;
    fth_team_run(team, s->size, opr_overlap, s);
    for (int64_t i = 0; i < s->size; i++)
        s->one[i].share = (s->one[i].share + shares[i * columns]) / norm;
    fth_team_run(team, trend_tiles, opr_trend, s);
    const double long_ = rms(s->trend, all);
    /* a damped least squares step, since patterns of other batches share the eigenprobe */
    const double part = 0.01 * (double)s->size;
    const real step = (real)(0.1 < part * long_ ? 0.1 / long_ : part);
    for (int64_t p = 0; long_ > 0 && p < all; p++) e[p] += step * s->trend[p];
    const double now = rms(e, all);
    for (int64_t p = 0; now > 0 && p < all; p++) e[p] = (real)((double)e[p] / now);
    fth_team_run(team, s->size, opr_along, s);
    for (int64_t i = 0; i < s->size; i++) mean += s->one[i].size / (double)s->size;
    for (int64_t i = 0; i < s->size; i++) {
        const double size = s->one[i].size + 0.1 * mean;
        if (size > 0) shares[i * columns] += s->one[i].share / size;
    }
    fth_team_run(team, s->size, opr_project, s);
}

static void opr_batch(sweep *s)
{
    const int64_t tiles = (2 * s->n + TILE - 1) / TILE, columns = s->rule->opr + 1;
    fth_team *team = s->w->team;
    fth_team_run(team, s->size, opr_rest, s);
    for (int64_t i = 0; i < s->size; i++) s->one[i].share = 1;
    fth_team_run(team, tiles, opr_trend, s);
    fth_team_run(team, s->size, opr_subtract, s);
    for (s->q = 0; s->q < s->rule->opr; s->q++) opr_follow(s, tiles);
    for (int64_t i = 0; i < s->size; i++) { /* brightness of each pattern */
        along(s, i, s->probe);
        if (s->one[i].size > 0)
            s->w->shares[(s->first + i) * columns] += 0.1 * s->one[i].share / s->one[i].size;
    }
}
