/* test_spatial_local.c - random small local models: gradients against differences of the KL written
 * out, active clamps, doubles of positions, one neighbour, one column, more columns than
 * neighbours; vectors against plain loops; the operations in pieces. seconds: 5 labels: gpu
 */
#include "instruments/spatial/prior/local.h"
#include "testing/engine/op_harness.h"

#include <math.h>

enum { MOST_K = 20, MOST_R = 40, MOST_N = 24, FACTORS = 2 };

typedef struct world {
    int64_t n, k, r, nb;
    double mu[FACTORS * MOST_N], lam[FACTORS * MOST_N * MOST_R];
    float xy[2 * MOST_N];
    int32_t nbr[MOST_N * MOST_K];
    double a[MOST_N * MOST_K], cp[MOST_N];
    int64_t idx[MOST_N];
    double jitter;
} world;

static void nearest(world *w)
{
    for (int64_t i = 0; i < w->n; i++) {
        bool used[MOST_N] = {false};
        used[i] = true;
        for (int64_t k = 0; k < w->k; k++) {
            double best = (double)INFINITY;
            int64_t at = -1;
            for (int64_t j = 0; j < w->n; j++) {
                const double dx = (double)w->xy[2 * i] - (double)w->xy[2 * j],
                             dy = (double)w->xy[2 * i + 1] - (double)w->xy[2 * j + 1];
                if (!used[j] && dx * dx + dy * dy < best) best = dx * dx + dy * dy, at = j;
            }
            used[at] = true;
            w->nbr[i * w->k + k] = (int32_t)at;
        }
    }
}

/* `size`: of the elements of Lam. */
static void make(world *w, t_random *r, int64_t n, int64_t k, int64_t rank, double size)
{
    *w = (world){.n = n, .k = k, .r = rank, .nb = (n + 1) / 2, .jitter = 1e-3};
    for (int64_t i = 0; i < 2 * n; i++) w->xy[i] = (float)(12 * t_random_f64(r));
    for (int d = 0; d < 2; d++) w->xy[2 + d] = w->xy[d];
    for (int64_t i = 0; i < FACTORS * n; i++) w->mu[i] = t_random_normal(r);
    for (int64_t i = 0; i < FACTORS * n * rank; i++) w->lam[i] = size * t_random_normal(r);
    for (int64_t i = 0; i < w->nb; i++) w->idx[i] = 2 * i;
    nearest(w);
    double table[2];
    static double room[(MOST_K + 9) * (MOST_K + 9) + 6 * (MOST_K + 9)];
    sp_local_table t;
    sp_local_table_fill(
        &t, table, &(sp_local_cov){.sigma = 1, .lengthscale = 8, .jitter = w->jitter}, 1, NULL);
    for (int64_t i = 0; i < n; i++) {
        IS_TRUE(sp_local_plain.weights(&(sp_local_cell){.table = &t,
                                                        .k = k,
                                                        .asked = 1,
                                                        .at = w->xy + 2 * i,
                                                        .nbr = w->nbr + i * k,
                                                        .Z = w->xy,
                                                        .Z_step = 2},
                                       room, w->a + i * k, &w->cp[i]));
        w->cp[i] = fmin(fmax(w->cp[i], 1e-6), 100);
    }
}

/* x of m x = x by elimination: nothing in common with the code under test. */
static void eliminate(double *m, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            const double f = m[j * n + i] / m[i * n + i];
            for (int64_t k = i; k < n; k++) m[j * n + k] -= f * m[i * n + k];
            x[j] -= f * x[i];
        }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) x[i] -= m[i * n + k] * x[k];
        x[i] /= m[i * n + i];
    }
}

/* Number of clamps of cq that were active, so that a case can say it met some. */
static int clamped_q;

/* KL of cell j and factor l from covariances: cq = s_jj - s^T S^-1 s. */
static double kl_of(const world *w, int64_t l, int64_t j)
{
    static double S[MOST_K * MOST_K], s[MOST_K], x[MOST_K];
    const double *lam = w->lam + l * w->n * w->r, *mu = w->mu + l * w->n, *a = w->a + j * w->k;
    const int32_t *nbr = w->nbr + j * w->k;
    double cq = 0, d = mu[j], trace = 0;
    for (int64_t i = 0; i < w->k; i++) {
        s[i] = 0;
        for (int64_t c = 0; c < w->r; c++) s[i] += lam[nbr[i] * w->r + c] * lam[j * w->r + c];
        x[i] = s[i];
        for (int64_t k = 0; k < w->k; k++) {
            S[i * w->k + k] = i == k ? w->jitter : 0;
            for (int64_t c = 0; c < w->r; c++)
                S[i * w->k + k] += lam[nbr[i] * w->r + c] * lam[nbr[k] * w->r + c];
        }
        d -= a[i] * mu[nbr[i]];
        trace += w->jitter * a[i] * a[i];
    }
    eliminate(S, w->k, x);
    for (int64_t c = 0; c < w->r; c++) {
        double ep = lam[j * w->r + c];
        cq += ep * ep;
        for (int64_t i = 0; i < w->k; i++) ep -= a[i] * lam[nbr[i] * w->r + c];
        trace += ep * ep;
    }
    for (int64_t i = 0; i < w->k; i++) cq -= s[i] * x[i];
    clamped_q += cq < 1e-6 || cq > 100;
    cq = fmin(fmax(cq, 1e-6), 100);
    return 0.5 * (log(w->cp[j]) - log(cq) - 1 + (d * d + trace) / w->cp[j]);
}

static double deviation(const world *w, int64_t l, int64_t j)
{
    double v = 0;
    for (int64_t c = 0; c < w->r; c++) {
        const double x = w->lam[(l * w->n + j) * w->r + c];
        v += x * x;
    }
    return sqrt(fmin(fmax(v, 1e-3), 100));
}

static double gf_of(int64_t l, int64_t t)
{
    return cos(1.3 * (double)l + 0.7 * (double)t);
}

static double gs_of(int64_t l, int64_t t)
{
    return sin(0.9 * (double)l + 0.4 * (double)t);
}

/* weight KL + gf.f + gs.s over the batch. */
static double loss_of(const world *w, double weight)
{
    double sum = 0;
    for (int64_t l = 0; l < FACTORS; l++)
        for (int64_t t = 0; t < w->nb; t++) {
            const int64_t j = w->idx[t];
            sum += weight * kl_of(w, l, j) + gf_of(l, t) * w->mu[l * w->n + j] +
                   gs_of(l, t) * deviation(w, l, j);
        }
    return sum;
}

/* ---- by the operations ---- */

typedef struct engine {
    fth_graph *g;
    sp_local_batch b;
    fth_val terms, slope, marginals;
} engine;

static fth_val input(fth_graph *g, const char *name, fth_dtype t, const char *axes,
                     const double *from)
{
    t_random r = t_random_make(1);
    const fth_val v = t_noise(g, name, t, axes, &r);
    for (int64_t i = 0; i < t_count(v); i++) t_put(t, t_data(v), i, from[i], 0);
    return v;
}

static void build(engine *e, const world *w, fth_dtype real, double weight)
{
    static double a[MOST_N * MOST_K], cp[MOST_N], gf[FACTORS * MOST_N], gs[FACTORS * MOST_N],
        nbr[MOST_N * MOST_K], idx[MOST_N], ptr[MOST_N + 1], items[MOST_N * (MOST_K + 1)];
    static int32_t ptr_i[MOST_N + 1], items_i[MOST_N * (MOST_K + 1)];
    char axes[200];
    for (int64_t t = 0; t < w->nb; t++) {
        const int64_t j = w->idx[t];
        idx[t] = (double)j;
        cp[t] = w->cp[j];
        for (int64_t k = 0; k < w->k; k++) {
            a[t * w->k + k] = w->a[j * w->k + k];
            nbr[t * w->k + k] = w->nbr[j * w->k + k];
        }
        for (int64_t l = 0; l < FACTORS; l++) {
            gf[l * w->nb + t] = gf_of(l, t);
            gs[l * w->nb + t] = gs_of(l, t);
        }
    }
    sp_local_touch_lists(ptr_i, items_i, w->n, w->idx, w->nb, w->nbr, w->k);
    EQ_I64(ptr_i[0], 0);
    EQ_I64(ptr_i[w->n], w->nb * (w->k + 1));
    for (int64_t i = 0; i <= w->n; i++) ptr[i] = ptr_i[i];
    for (int64_t i = 0; i < w->nb * (w->k + 1); i++) items[i] = items_i[i];
    snprintf(axes, sizeof axes, "factor=%d cell=%d cell1=%d cellb=%d nbr=%d rank=%d touch=%d",
             FACTORS, (int)w->n, (int)w->n + 1, (int)w->nb, (int)w->k, (int)w->r,
             (int)(w->nb * (w->k + 1)));
    e->g = t_graph(axes);
    e->b = (sp_local_batch){.idx = input(e->g, "idx", FTH_I64, "cellb", idx),
                            .nbr = input(e->g, "nbr", FTH_I32, "cellb nbr", nbr),
                            .a = input(e->g, "a", real, "cellb nbr", a),
                            .cp = input(e->g, "cp", real, "cellb", cp),
                            .mu = input(e->g, "mu", real, "factor cell", w->mu),
                            .Lam = input(e->g, "Lam", real, "factor cell rank", w->lam),
                            .jitter = w->jitter};
    const sp_local_touched t = {.ptr = input(e->g, "ptr", FTH_I32, "cell1", ptr),
                                .items = input(e->g, "items", FTH_I32, "touch", items)};
    e->terms = sp_local_terms(&e->b);
    e->marginals = sp_local_marginals(&e->b);
    e->slope = sp_local_scatter(&e->b, e->terms, &t, input(e->g, "gf", real, "factor cellb", gf),
                                input(e->g, "gs", real, "factor cellb", gs), weight);
    MADE(e->slope);
}

/* Every element of both gradients, of a batch with a weight. */
static void check_gradients(world *w, double tol)
{
    static double got_lam[FACTORS * MOST_N * MOST_R], got_mu[FACTORS * MOST_N],
        kl[FACTORS * MOST_N];
    const double weight = 1.7, step = 1e-5;
    engine e;
    build(&e, w, FTH_F64, weight);
    t_eval_f64(e.slope, got_lam);
    t_eval_f64(fth_out(e.slope, 1), got_mu);
    t_eval_f64(fth_out(e.terms, SP_TERM_KL), kl);
    t_graph_free(e.g);
    for (int64_t l = 0; l < FACTORS; l++)
        for (int64_t t = 0; t < w->nb; t++) {
            const double want = kl_of(w, l, w->idx[t]);
            NEAR(kl[l * w->nb + t], want, 1e-8 * (1 + fabs(want)));
        }
    double most = 1;
    for (int64_t i = 0; i < FACTORS * w->n * w->r; i++) most = fmax(most, fabs(got_lam[i]));
    for (int64_t i = 0; i < FACTORS * w->n * w->r; i++) {
        const double at = w->lam[i];
        w->lam[i] = at + step;
        const double up = loss_of(w, weight);
        w->lam[i] = at - step;
        const double down = loss_of(w, weight);
        w->lam[i] = at;
        NEAR(got_lam[i], (up - down) / (2 * step), tol * most);
    }
    for (int64_t i = 0; i < FACTORS * w->n; i++) most = fmax(most, fabs(got_mu[i]));
    for (int64_t i = 0; i < FACTORS * w->n; i++) {
        const double at = w->mu[i];
        w->mu[i] = at + step;
        const double up = loss_of(w, weight);
        w->mu[i] = at - step;
        const double down = loss_of(w, weight);
        w->mu[i] = at;
        NEAR(got_mu[i], (up - down) / (2 * step), tol * most);
    }
}

TEST(gradients_are_those_of_the_divergence)
{
    static const int64_t shape[][3] = {{7, 3, 4}, {2, 1, 1}, {2, 1, 5},  {9, 1, 3},
                                       {9, 4, 1}, {6, 5, 9}, {12, 8, 8}, {20, 17, 5}};
    t_random r = t_random_make(1);
    t_cuts(2);
    for (int i = 0; i < (int)(sizeof shape / sizeof *shape); i++) {
        world w;
        make(&w, &r, shape[i][0], shape[i][1], shape[i][2], 0.6);
        check_gradients(&w, 1e-6);
    }
}

/* Elements so small that cq falls below 1e-6 and s^2 below 1e-3: nothing flows through either. */
TEST(clamps_below)
{
    t_random r = t_random_make(2);
    t_cuts(2);
    world w;
    make(&w, &r, 8, 3, 4, 1e-4);
    clamped_q = 0;
    check_gradients(&w, 1e-6);
    IS_TRUE(clamped_q > 0);
    IS_TRUE(deviation(&w, 0, 0) == sqrt(1e-3));
}

TEST(clamps_above)
{
    t_random r = t_random_make(3);
    t_cuts(2);
    world w;
    make(&w, &r, 8, 2, 12, 9.0);
    clamped_q = 0;
    check_gradients(&w, 1e-6);
    IS_TRUE(clamped_q > 0);
    IS_TRUE(deviation(&w, 0, 0) == 10);
}

/* A variance below its floor is the floor: here positions are all but equal. */
TEST(floor_of_the_conditional_variance)
{
    t_random r = t_random_make(4);
    t_cuts(2);
    world w;
    make(&w, &r, 8, 3, 4, 0.5);
    for (int i = 0; i < 8; i++) w.cp[i] = 1e-6;
    check_gradients(&w, 1e-6);
}

/* ---- pieces, precision, vectors ---- */

TEST(single_precision_is_near)
{
    static double wide[FACTORS * MOST_N * MOST_R], narrow[FACTORS * MOST_N * MOST_R];
    t_random r = t_random_make(5);
    world w;
    make(&w, &r, 20, 11, 13, 0.6);
    for (int64_t i = 0; i < FACTORS * w.n * w.r; i++) w.lam[i] = (double)(float)w.lam[i];
    for (int64_t i = 0; i < FACTORS * w.n; i++) w.mu[i] = (double)(float)w.mu[i];
    for (int64_t i = 0; i < w.n * w.k; i++) w.a[i] = (double)(float)w.a[i];
    for (int64_t i = 0; i < w.n; i++) w.cp[i] = (double)(float)w.cp[i];
    engine d, f;
    build(&d, &w, FTH_F64, 2);
    build(&f, &w, FTH_F32, 2);
    for (int o = SP_TERM_EQ; o <= SP_TERM_KL; o++) {
        double most = 0;
        t_eval_f64(fth_out(d.terms, o), wide);
        t_eval_f64(fth_out(f.terms, o), narrow);
        const int64_t n = t_count(fth_out(d.terms, o));
        for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(wide[i]));
        for (int64_t i = 0; i < n; i++) NEAR(narrow[i], wide[i], 1e-6 * most);
    }
    t_eval_f64(d.slope, wide);
    t_eval_f64(f.slope, narrow);
    double most = 0;
    for (int64_t i = 0; i < FACTORS * w.n * w.r; i++) most = fmax(most, fabs(wide[i]));
    for (int64_t i = 0; i < FACTORS * w.n * w.r; i++) NEAR(narrow[i], wide[i], 2e-6 * most);
    for (int o = 0; o < 2; o++) {
        t_eval_f64(fth_out(f.marginals, o), narrow);
        for (int64_t l = 0; l < FACTORS; l++)
            for (int64_t t = 0; t < w.nb; t++)
                NEAR(narrow[l * w.nb + t],
                     o ? deviation(&w, l, w.idx[t]) : w.mu[l * w.n + w.idx[t]], 1e-6);
    }
    t_graph_free(d.g);
    t_graph_free(f.g);
}

static void compare_term(int level, const world *w, int64_t j, bool single)
{
    static float lam[FACTORS * MOST_N * MOST_R], mu[FACTORS * MOST_N], a[MOST_K];
    static double room[8192], out[2][3][MOST_R];
    static float outf[2][3][MOST_R];
    sp_local_term m[2];
    for (int64_t i = 0; i < w->n * w->r; i++) lam[i] = (float)w->lam[i];
    for (int64_t i = 0; i < w->n; i++) mu[i] = (float)w->mu[i];
    for (int64_t i = 0; i < w->k; i++) a[i] = (float)w->a[j * w->k + i];
    IS_TRUE(sp_local_room(w->k, 1, w->r) <= 8192);
    for (int v = 0; v < 2; v++) {
        m[v] = (sp_local_term){.k = w->k,
                               .r = w->r,
                               .jitter = w->jitter,
                               .cp = w->cp[j],
                               .single = single,
                               .nbr = w->nbr + j * w->k,
                               .cell = j,
                               .mu = single ? (const void *)mu : w->mu,
                               .lam = single ? (const void *)lam : w->lam,
                               .lam_step = w->r,
                               .a = single ? (const void *)a : w->a + j * w->k,
                               .eq = single ? (void *)outf[v][0] : out[v][0],
                               .ep = single ? (void *)outf[v][1] : out[v][1],
                               .h = single ? (void *)outf[v][2] : out[v][2]};
        const sp_local_loops *loop = sp_local_loops_at(v ? level : 0);
        loop->terms(&m[v], room);
        loop->predict(&m[v], room);
    }
    NEAR(m[1].kl, m[0].kl, 1e-9 * (1 + fabs(m[0].kl)));
    NEAR(m[1].d, m[0].d, 1e-11 * (1 + fabs(m[0].d)));
    NEAR(m[1].f, m[0].f, 1e-12 * (1 + fabs(m[0].f)));
    NEAR(m[1].s, m[0].s, 1e-12 * (1 + fabs(m[0].s)));
    for (int o = 0; o < 3; o++) {
        double most = 0;
        const int64_t n = o < 2 ? w->r : w->k;
        for (int64_t i = 0; i < n; i++)
            most = fmax(most, fabs(single ? (double)outf[0][o][i] : out[0][o][i]));
        for (int64_t i = 0; i < n && single; i++) NEAR(outf[1][o][i], outf[0][o][i], 1e-6 * most);
        for (int64_t i = 0; i < n && !single; i++) NEAR(out[1][o][i], out[0][o][i], 1e-9 * most);
    }
}

TEST(vectors_do_what_the_plain_loops_do)
{
    static const int64_t shape[][3] = {{2, 1, 1},   {9, 7, 8},    {9, 8, 7},    {12, 9, 33},
                                       {24, 15, 9}, {24, 16, 16}, {24, 17, 25}, {24, 20, 40}};
    t_random r = t_random_make(6);
    for (int level = 1; level <= 4; level++)
        for (int i = 0; sp_local_loops_at(level) && i < (int)(sizeof shape / sizeof *shape); i++) {
            world w;
            make(&w, &r, shape[i][0], shape[i][1], shape[i][2], 0.4);
            for (int64_t j = 0; j < w.n; j++)
                for (int single = 0; single < 2; single++) compare_term(level, &w, j, single);
        }
}

/* A cell that nobody touches has no gradient; one that is touched twice has the sum. */
TEST(lists_of_who_touches_a_cell)
{
    const int32_t nbr[4 * 2] = {1, 2, 0, 2, 0, 1, 0, 1};
    const int64_t idx[2] = {0, 3};
    int32_t ptr[5], items[6];
    sp_local_touch_lists(ptr, items, 4, idx, 2, nbr, 2);
    const int32_t want_ptr[5] = {0, 2, 4, 5, 6}, want[6] = {2, 3, 0, 4, 1, 5};
    SAME_BYTES(ptr, want_ptr, sizeof ptr);
    SAME_BYTES(items, want, sizeof items);
}

TEST(wrong_indices_are_refused)
{
    static double out[FACTORS * MOST_N * MOST_R];
    t_random r = t_random_make(7);
    world w;
    make(&w, &r, 9, 3, 2, 0.4);
    fth_err err = {0};
    engine e;
    build(&e, &w, FTH_F64, 1);
    ((int32_t *)t_data(e.b.nbr))[4] = 9;
    IS(t_try(e.terms, out, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "a neighbour of cell 1 is 9");
    ((int32_t *)t_data(e.b.nbr))[4] = 0;
    ((int64_t *)t_data(e.b.idx))[2] = -1;
    err = (fth_err){0};
    IS(t_try(e.marginals, out, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "the place of cell 2 is -1");
    sp_local_batch wrong = e.b;
    wrong.mu = e.b.Lam;
    sp_local_terms(&wrong);
    REFUSED(e.g, FTH_E_AXIS_MISMATCH, "Lam");
    t_graph_free(e.g);
}

TEST_MAIN()
