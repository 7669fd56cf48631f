/* test_spatial_local_weights.c - conditional weights: vectors against plain loops, and the
 * operation. seconds: 2 labels: gpu
 */
#include "instruments/spatial/ops/local/local.h"
#include "testing/engine/op_harness.h"

#include <math.h>

enum { CELLS = 90, GROUPS = 4, MOST = 70 };

typedef struct setup {
    float xy[2 * CELLS];
    int32_t group[CELLS], nbr[MOST];
    double table[2 * GROUPS * GROUPS];
    sp_local_table t;
    sp_local_cell c;
} setup;

static void set_length(setup *s, int kernel, bool groups, double lengthscale)
{
    const sp_local_cov cov = {.sigma = 1.3,
                              .lengthscale = lengthscale,
                              .alpha = 0.7,
                              .jitter = 1e-4,
                              .kernel = kernel,
                              .groups = groups ? GROUPS : 0};
    sp_local_table_fill(&s->t, s->table, &cov, groups ? GROUPS : 1, NULL);
}

static void make(setup *s, t_random *r, int kernel, bool groups, int64_t k, int64_t asked)
{
    static const int32_t each[GROUPS] = {0, 1, 2, 3};
    for (int64_t i = 0; i < CELLS; i++) {
        for (int d = 0; d < 2; d++) s->xy[2 * i + d] = (float)(30 * t_random_f64(r));
        s->group[i] = (int32_t)t_random_i64(r, 0, GROUPS - 1);
    }
    for (int d = 0; d < 2; d++) s->xy[2 + d] = s->xy[d]; /* two cells at one place */
    for (int64_t i = 0; i < k; i++) s->nbr[i] = (int32_t)i;
    set_length(s, kernel, groups, 8);
    s->c = (sp_local_cell){.table = &s->t,
                           .k = k,
                           .asked = asked,
                           .at = s->xy + 2 * (CELLS - 1),
                           .group = groups ? each : NULL,
                           .nbr = s->nbr,
                           .Z = s->xy,
                           .Z_step = 2,
                           .groupsZ = s->group};
}

static void compare(int level, const setup *s, double *room)
{
    static double want[GROUPS * MOST], got[GROUPS * MOST];
    double want_var[GROUPS], got_var[GROUPS], most = 0;
    IS_TRUE(sp_local_plain.weights(&s->c, room, want, want_var));
    IS_TRUE(sp_local_loops_at(level)->weights(&s->c, room, got, got_var));
    for (int64_t i = 0; i < s->c.k * s->c.asked; i++) most = fmax(most, fabs(want[i]));
    for (int64_t i = 0; i < s->c.k * s->c.asked; i++) NEAR(got[i], want[i], 1e-9 * most);
    for (int64_t q = 0; q < s->c.asked; q++) NEAR(got_var[q], want_var[q], 1e-12);
}

TEST(vectors_do_what_the_plain_loops_do)
{
    static const int64_t some[] = {1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 50, MOST};
    static double room[(MOST + 16) * (MOST + 16) + 8 * (MOST + 16)];
    t_random r = t_random_make(1);
    int levels = 0;
    for (int level = 1; level <= 4; level++) {
        if (!sp_local_loops_at(level)) continue;
        levels++;
        for (int kernel = 0; kernel < SP_KERNEL_COUNT; kernel++)
            for (int i = 0; i < (int)(sizeof some / sizeof *some); i++)
                for (int how = 0; how < 3; how++) {
                    setup s;
                    make(&s, &r, kernel, how > 0, some[i], how == 2 ? GROUPS : 1);
                    IS_TRUE(sp_local_room(s.c.k, s.c.asked, 0) <=
                            (int64_t)(sizeof room / sizeof *room));
                    compare(level, &s, room);
                }
    }
    IS_TRUE(levels >= 1);
}

static double most_of(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* Slopes of the plain loop are those of central differences, those of vectors are the same. */
static void compare_slopes(setup *s, int kernel, bool groups, double *room)
{
    static double a[MOST], da[MOST], at[2][MOST], vectors[2][MOST];
    double var, var_at[2], other;
    const int64_t k = s->c.k;
    const double h = 1e-5;
    IS_TRUE(sp_local_plain.tangent(&s->c, room, a, &var, da));
    for (int side = 0; side < 2; side++) {
        set_length(s, kernel, groups, 8 * exp(side ? h : -h));
        IS_TRUE(sp_local_plain.weights(&s->c, room, at[side], &var_at[side]));
    }
    set_length(s, kernel, groups, 8);
    const double most = most_of(da, k), size = most_of(a, k);
    for (int64_t i = 0; i < k; i++)
        NEAR(da[i], (at[1][i] - at[0][i]) / (2 * h), 1e-6 * (1 + most + size));
    for (int level = 1; level <= 4; level++) {
        if (!sp_local_loops_at(level)) continue;
        IS_TRUE(sp_local_loops_at(level)->tangent(&s->c, room, vectors[0], &other, vectors[1]));
        for (int64_t i = 0; i < k; i++) {
            NEAR(vectors[0][i], a[i], 1e-9 * size);
            NEAR(vectors[1][i], da[i], 1e-8 * (most + size));
        }
        NEAR(other, var, 1e-12);
    }
}

TEST(slopes_are_those_of_differences)
{
    static const int64_t some[] = {1, 2, 7, 8, 9, 16, 17, 50, MOST};
    static double room[2 * (MOST + 16) * (MOST + 16) + 8 * (MOST + 16)];
    t_random r = t_random_make(8);
    for (int kernel = 0; kernel < SP_KERNEL_COUNT; kernel++)
        for (int i = 0; i < (int)(sizeof some / sizeof *some); i++)
            for (int groups = 0; groups < 2; groups++) {
                setup s;
                make(&s, &r, kernel, groups, some[i], 1);
                IS_TRUE(sp_local_tangent_room(s.c.k) <= (int64_t)(sizeof room / sizeof *room));
                compare_slopes(&s, kernel, groups, room);
            }
}

/* One neighbour: a = k(z, x) / (sigma^2 + jitter), written out. */
TEST(one_neighbour_by_hand)
{
    static double room[1024];
    double a, var;
    setup s;
    t_random r = t_random_make(2);
    make(&s, &r, SP_MATERN32, false, 1, 1);
    const double dx = (double)s.c.at[0] - (double)s.xy[0], dy = (double)s.c.at[1] - (double)s.xy[1];
    const double v = sqrt(3) * sqrt(dx * dx + dy * dy + 1e-12) / 8, k = 1.69 * (1 + v) * exp(-v);
    for (int level = 0; level <= 4; level++) {
        if (!sp_local_loops_at(level)) continue;
        IS_TRUE(sp_local_loops_at(level)->weights(&s.c, room, &a, &var));
        NEAR(a, k / (1.69 + 1e-4), 1e-14);
        NEAR(var, 1.69 - k * k / (1.69 + 1e-4), 1e-14);
    }
}

TEST(what_is_not_definite_is_told)
{
    static double room[1024];
    double a[3], var;
    setup s;
    t_random r = t_random_make(3);
    make(&s, &r, SP_RBF, false, 3, 1);
    s.t.jitter = -1e-3; /* and there are two cells at one place */
    for (int level = 0; level <= 4; level++)
        if (sp_local_loops_at(level))
            IS_TRUE(!sp_local_loops_at(level)->weights(&s.c, room, a, &var));
}

/* ---- the operation ---- */

typedef struct graph {
    fth_graph *g;
    sp_local_places p;
    sp_local_cov cov;
} graph;

static void open(graph *x, t_random *r, bool groups, bool distances)
{
    x->g = t_graph("cell=13 nbr=5 induce=20 dim=2 group=3 group2=3");
    x->p.at = t_noise(x->g, "at", FTH_F32, "cell dim", r);
    x->p.Z = t_noise(x->g, "Z", FTH_F32, "induce dim", r);
    x->p.nbr = t_noise(x->g, "nbr", FTH_I32, "cell nbr", r);
    x->p.group = t_noise(x->g, "group", FTH_I32, "cell", r);
    x->p.groupsZ = t_noise(x->g, "groupsZ", FTH_I32, "induce", r);
    x->p.distance = x->p.log_ell = (fth_val){0};
    int32_t *nbr = t_data(x->p.nbr), *g = t_data(x->p.group), *gz = t_data(x->p.groupsZ);
    for (int i = 0; i < 13; i++) {
        g[i] = (int32_t)t_random_i64(r, 0, 2);
        for (int k = 0; k < 5; k++) nbr[5 * i + k] = (int32_t)((i + 3 * k) % 20);
    }
    for (int i = 0; i < 20; i++) gz[i] = (int32_t)t_random_i64(r, 0, 2);
    if (distances) {
        x->p.distance = t_noise(x->g, "distance", FTH_F64, "group group2", r);
        double *d = t_data(x->p.distance);
        for (int i = 0; i < 9; i++) d[i] = i % 4 == 0 ? 0 : 1.000002;
    }
    x->cov = (sp_local_cov){.sigma = 1,
                            .lengthscale = 1.5,
                            .alpha = 1,
                            .jitter = 1e-3,
                            .kernel = SP_MATERN32,
                            .groups = groups ? 3 : 0};
}

TEST(pieces_do_not_matter)
{
    double a[3 * 13 * 5], c[13];
    t_random r = t_random_make(4);
    for (int how = 0; how < 4; how++) {
        graph x;
        open(&x, &r, how & 1, how == 3);
        const fth_val w = sp_local_weights(&x.cov, &x.p, how & 2 ? FTH_F64 : FTH_F32, 0.3);
        MADE(w);
        t_eval_f64(w, a);
        t_eval_f64(fth_out(w, 1), c);
        for (int i = 0; i < 13; i++) IS_TRUE(c[i] >= 0.29999 && c[i] <= 1);
        t_graph_free(x.g);
    }
}

/* Each factor has the weights of a covariance with its lengthscale. */
TEST(lengthscales_of_factors)
{
    static double all[2 * 13 * 5], one[13 * 5], every[3 * 2 * 13 * 5], each[3 * 13 * 5], v[26];
    t_random r = t_random_make(9);
    for (int far = 0; far < 2; far++) {
        graph x;
        open(&x, &r, true, far);
        fth_axis(x.g, "factor", 2);
        sp_local_places p = x.p;
        p.log_ell = t_noise(x.g, "log_ell", FTH_F64, "factor", &r);
        double *ell = t_data(p.log_ell);
        ell[0] = log(0.7);
        ell[1] = log(2.5);
        const fth_val w = sp_local_weights(&x.cov, &p, FTH_F64, 0.3);
        t_eval_f64(w, all);
        t_eval_f64(fth_out(w, 1), v);
        t_eval_f64(sp_local_weights_groups(&x.cov, &p, FTH_F64), every);
        for (int l = 0; l < 2; l++) {
            double var[13];
            x.cov.lengthscale = exp(ell[l]);
            const fth_val alone = sp_local_weights(&x.cov, &x.p, FTH_F64, 0.3);
            t_eval_f64(alone, one);
            t_eval_f64(fth_out(alone, 1), var);
            t_eval_f64(sp_local_weights_groups(&x.cov, &x.p, FTH_F64), each);
            for (int i = 0; i < 65; i++) NEAR(all[65 * l + i], one[i], 1e-12);
            for (int i = 0; i < 13; i++) NEAR(v[13 * l + i], var[i], 1e-12);
            for (int g = 0; g < 3; g++)
                for (int i = 0; i < 65; i++)
                    NEAR(every[(2 * g + l) * 65 + i], each[65 * g + i], 1e-12);
        }
        t_graph_free(x.g);
    }
}

/* The weights for the group a cell has are those of the plain operation. */
TEST(every_group_at_once)
{
    static double every[3 * 13 * 5], one[13 * 5];
    t_random r = t_random_make(5);
    for (int far = 0; far < 2; far++) {
        graph x;
        open(&x, &r, true, far);
        t_eval_f64(sp_local_weights_groups(&x.cov, &x.p, FTH_F64), every);
        t_eval_f64(sp_local_weights(&x.cov, &x.p, FTH_F64, 0), one);
        const int32_t *g = t_data(x.p.group);
        for (int i = 0; i < 13; i++)
            for (int k = 0; k < 5; k++) NEAR(every[(g[i] * 13 + i) * 5 + k], one[5 * i + k], 1e-12);
        t_graph_free(x.g);
    }
}

TEST(refusals)
{
    double a[65];
    fth_err err = {0};
    t_random r = t_random_make(6);
    graph x;
    open(&x, &r, true, false);
    const fth_val w = sp_local_weights(&x.cov, &x.p, FTH_F64, 0);
    ((int32_t *)t_data(x.p.nbr))[7] = 20;
    IS(t_try(w, a, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "a neighbour of cell 1 is 20");
    ((int32_t *)t_data(x.p.nbr))[7] = 0;
    ((int32_t *)t_data(x.p.groupsZ))[0] = -1;
    err = (fth_err){0};
    IS(t_try(w, a, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "the group of a neighbour");
    ((int32_t *)t_data(x.p.groupsZ))[0] = 0;
    ((int32_t *)t_data(x.p.group))[2] = 3;
    err = (fth_err){0};
    IS(t_try(w, a, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "the group of cell 2 is 3");
    sp_local_places wrong = x.p;
    wrong.at = x.p.Z;
    sp_local_weights(&x.cov, &wrong, FTH_F64, 0);
    REFUSED(x.g, FTH_E_AXIS_MISMATCH, "axis 'induce'");
    t_graph_free(x.g);
}

TEST(a_matrix_that_is_not_definite_names_its_cell)
{
    double a[65];
    fth_err err = {0};
    t_random r = t_random_make(7);
    graph x;
    open(&x, &r, false, false);
    x.cov.jitter = -1e-3;
    x.cov.kernel = SP_RBF;
    const fth_val w = sp_local_weights(&x.cov, &x.p, FTH_F64, 0);
    int32_t *nbr = t_data(x.p.nbr);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 5; k++) nbr[5 * i + k] = 4 * k;
    nbr[5 * 6 + 1] = nbr[5 * 6]; /* the same place twice */
    IS(t_try(w, a, &err), FTH_E_NUMERIC);
    HAS(err.text, "cell 6 is not positive definite");
    HAS(err.hint, "jitter");
    t_graph_free(x.g);
}

TEST_MAIN()
