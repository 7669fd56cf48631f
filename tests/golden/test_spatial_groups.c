/* test_spatial_groups.c - gene enrichment, order of genes, loadings of groups, against the golden
 * set.
 *
 * The golden loadings of groups were iterated in f32, where rounding ends the iteration: they are
 * those of iterations 549, 567, 127 and 353 to about 3e-5. So they are compared after as many, and
 * the rule that ends it is checked by itself.
 * seconds: 1 */
#include "testing/spatial/spatial_arrays.h"

#include "instruments/spatial/statistics/enrichment.h"
#include "instruments/spatial/statistics/group_loadings.h"
#include "instruments/spatial/statistics/order.h"

#include <fathom/json.h>
#include <math.h>

enum { N = 300, D = 24, L = 3, G = 4 };
#define ANALYSIS SPATIAL_GOLDEN("analysis.npz")

TEST(order_and_q_are_those_of_the_textbook)
{
    const double v[] = {2, (double)NAN, 5, 2, -1, 5};
    int64_t order[6];
    sp_order(order, v, 6, true);
    const int64_t down[] = {2, 5, 0, 3, 4, 1};
    for (int i = 0; i < 6; i++) EQ_I64(order[i], down[i]);
    sp_order(order, v, 6, false);
    const int64_t up[] = {4, 0, 3, 2, 5, 1};
    for (int i = 0; i < 6; i++) EQ_I64(order[i], up[i]);
    /* R: p.adjust(c(0.01, 0.04, NA, 0.03, 0.005, 1), "BH") */
    const double p[] = {0.01, 0.04, (double)NAN, 0.03, 0.005, 1};
    const double want[] = {0.025, 0.05, (double)NAN, 0.05, 0.025, 1};
    double q[6];
    sp_benjamini_hochberg(q, p, 6, order);
    for (int i = 0; i < 6; i++)
        if (i != 2) NEAR(q[i], want[i], 1e-15);
    IS_TRUE(isnan(q[2]));
}

static double *lfc_of(int g, const float *W, bool floor)
{
    char name[16];
    snprintf(name, sizeof name, "Wg%d", g);
    float *Wg = t_npz_f32(ANALYSIS, name, NULL);
    double *lfc = malloc((size_t)(D * L) * sizeof *lfc);
    if (floor) { /* the published formula, which adds 1e-10 to the shares */
        double own[D * L], all[D * L];
        sp_shares(own, Wg, D, L, 0);
        sp_shares(all, W, D, L, 0);
        for (int i = 0; i < D * L; i++) lfc[i] = log2((own[i] + 1e-10) / (all[i] + 1e-10));
    } else {
        sp_lfc(lfc, Wg, W, D, L, 0);
    }
    free(Wg);
    return lfc;
}

static void check_list(const fth_json_value *list, const sp_enriched *e, bool top)
{
    EQ_I64(fth_json_count(list), 10);
    const int n = top ? e->n_top : e->n_bottom;
    for (int i = n; i < 10; i++) /* what ours leaves out: no change, or one the other way */
        IS_TRUE((top ? -1 : 1) * fth_json_get_real(fth_json_at(list, i), "lfc", 0) >= 0);
    for (int i = 0; i < n; i++) {
        const fth_json_value *row = fth_json_at(list, i);
        char gene[8];
        snprintf(gene, sizeof gene, "g%02d", (int)(top ? e->top[i].gene : e->bottom[i].gene));
        const double want = fth_json_get_real(row, "lfc", (double)NAN);
        EQ_STR(gene, fth_json_get_text(row, "gene", ""));
        NEAR(top ? e->top[i].lfc : e->bottom[i].lfc, want, 1e-6 * fmax(1, fabs(want)));
    }
}

TEST(enriched_genes_are_the_golden_ones)
{
    float *W = t_npz_f32(ANALYSIS, "W", NULL);
    double *golden = t_npz_f64(ANALYSIS, "lfc", NULL), value[D];
    int64_t order[D];
    fth_mem *mem = t_mem(16 << 20);
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, mem, SPATIAL_GOLDEN("gene_enrichment.json"), NULL));
    const fth_json_value *factors = fth_json_get(fth_json_root(doc), "factors");
    for (int g = 0; g < G; g++) {
        double *plain = lfc_of(g, W, false), *lfc = lfc_of(g, W, true);
        for (int i = 0; i < D * L; i++)
            NEAR(plain[i], golden[i * G + g], 1e-6 * fmax(1, fabs(golden[i * G + g])));
        free(plain);
        for (int l = 0; l < L; l++) {
            char factor[32], group[2] = {(char)('A' + g), 0};
            snprintf(factor, sizeof factor, "factor_%d", l);
            const fth_json_value *of =
                fth_json_get(fth_json_get(fth_json_get(factors, factor), "groups"), group);
            sp_enriched e;
            sp_enriched_find(&e, lfc, D, L, l, value, order);
            NEAR(e.mean, fth_json_get_real(of, "mean_lfc", (double)NAN), 1e-6);
            NEAR(e.std, fth_json_get_real(of, "std_lfc", (double)NAN), 1e-6 * 7);
            check_list(fth_json_get(of, "top_enriched"), &e, true);
            check_list(fth_json_get(of, "top_depleted"), &e, false);
        }
        free(lfc);
    }
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
    free(golden);
    free(W);
}

/* A loading that an update drove to zero is no thirty-fold change, a gene that is hardly there
 * none at all; and what has fewer counts than the mean is no enriched gene. */
TEST(changes_are_of_the_size_of_the_data)
{
    const float W[] = {10, 10, 10, 1e-8f, 1e-6f, 1e-6f, 20, 20},
                Wg[] = {20, 0, 10, 3, 2e-6f, 1e-30f, 5, 15};
    double lfc[8], value[4];
    int64_t order[4];
    sp_enriched e;
    const double pseudo = sp_lfc_pseudo(W, 4, 2);
    NEAR(pseudo, 0.1 * 70 / 8, 1e-6);
    sp_lfc(lfc, Wg, W, 4, 2, pseudo);
    NEAR(lfc[0], log2((20 + pseudo) / (20 + 2 * pseudo) / 0.5), 1e-6);
    NEAR(lfc[1], log2(pseudo / (20 + 2 * pseudo) / 0.5), 1e-6);
    LE_F64(fabs(lfc[1]), 4); /* 32 with a floor of 1e-10 */
    LE_F64(lfc[3], 4);       /* 28 */
    LE_F64(fabs(lfc[4]), 1e-3);
    LE_F64(fabs(lfc[5]), 1e-3);
    sp_enriched_find(&e, lfc, 4, 2, 1, value, order);
    EQ_I64(e.n_top, 2); /* gene 1 and 3; 2 is below zero, 0 far below */
    EQ_I64(e.top[0].gene, 1);
    EQ_I64(e.n_bottom, 2);
    EQ_I64(e.bottom[0].gene, 0);
    for (int i = 0; i < e.n_top; i++) IS_TRUE(e.top[i].lfc > 0);
    for (int i = 0; i < e.n_bottom; i++) IS_TRUE(e.bottom[i].lfc < 0);
}

TEST(few_genes_are_all_listed)
{
    const double lfc[] = {1, 7, -2, 7, 1, 7};
    double value[3];
    int64_t order[3];
    sp_enriched e;
    sp_enriched_find(&e, lfc, 3, 2, 0, value, order);
    EQ_I64(e.n_top, 2);
    EQ_I64(e.n_bottom, 1);
    EQ_I64(e.top[0].gene, 0); /* a tie: the lower gene first */
    EQ_I64(e.top[1].gene, 2);
    EQ_I64(e.bottom[0].gene, 1);
    NEAR(e.mean, 0, 1e-15);
    NEAR(e.std, sqrt(2), 1e-15);
}

/* Rows of the golden scores have a sign of their own; ours makes the largest positive. They are of
 * an SVD in f32: one in f64 (NumPy) is off by up to 5e-5, where the largest score is 28. */
TEST(scores_of_the_first_component_are_the_golden_ones)
{
    float *W = t_npz_f32(ANALYSIS, "W", NULL);
    double *golden = t_npz_f64(ANALYSIS, "pc1_scores", NULL), *lfc[G];
    for (int g = 0; g < G; g++) lfc[g] = lfc_of(g, W, false);
    for (int l = 0; l < L; l++) {
        double x[D * G], score[D], room[2 * G * G];
        for (int d = 0; d < D; d++)
            for (int g = 0; g < G; g++) x[d * G + g] = lfc[g][d * L + l];
        EQ_I64(sp_pca_room(G), 2 * G * G);
        sp_pca_first(score, x, D, G, room);
        int most = 0;
        for (int d = 0; d < D; d++)
            if (fabs(golden[l * D + d]) > fabs(golden[l * D + most])) most = d;
        const double sign = golden[l * D + most] < 0 ? -1 : 1;
        for (int d = 0; d < D; d++)
            NEAR(score[d], sign * golden[l * D + d], 2e-6 * fabs(golden[l * D + most]));
        IS_TRUE(score[most] > 0);
    }
    for (int g = 0; g < G; g++) free(lfc[g]);
    free(golden);
    free(W);
}

/* ---- loadings of groups ---- */

typedef struct cells {
    float *W;
    double *F, *Y, *C;
    double YF[G * D * L], FF[G * L * L], sum[G * L], yy[G];
    int64_t n[G];
    sp_group_problem problem;
} cells;

static fth_status fit(void *user, const double *A, const double *B, double *a, double *b,
                      fth_err *err)
{
    const cells *c = user;
    (void)err;
    for (int g = 0; g < G; g++) a[g] = b[g] = 0;
    for (int n = 0; n < N; n++)
        for (int d = 0, g = (int)c->C[n]; d < D; d++) {
            double one = 0, two = 0;
            for (int l = 0; l < L; l++) {
                one += c->F[n * L + l] * A[(g * D + d) * L + l];
                two += c->F[n * L + l] * B[(g * D + d) * L + l];
            }
            a[g] += c->Y[n * D + d] * log(fmax(one, 1e-8));
            b[g] += c->Y[n * D + d] * log(fmax(two, 1e-8));
        }
    return FTH_OK;
}

static fth_status ratio(void *user, const double *A, double *QF, double *a, fth_err *err)
{
    const cells *c = user;
    double unused[G];
    OK(fit(user, A, A, a, unused, err));
    for (int i = 0; i < G * D * L; i++) QF[i] = 0;
    for (int n = 0; n < N; n++)
        for (int d = 0, g = (int)c->C[n]; d < D; d++) {
            double rate = 0;
            for (int l = 0; l < L; l++) rate += c->F[n * L + l] * A[(g * D + d) * L + l];
            for (int l = 0; l < L; l++)
                QF[(g * D + d) * L + l] += c->Y[n * D + d] / rate * c->F[n * L + l];
        }
    return FTH_OK;
}

static cells *load(void)
{
    cells *c = calloc(1, sizeof *c);
    c->W = t_npz_f32(ANALYSIS, "W", NULL);
    c->F = t_npz_f64(ANALYSIS, "F", NULL);
    c->Y = t_npz_f64(SPATIAL_GOLDEN("data.npz"), "Y", NULL);
    c->C = t_npz_f64(SPATIAL_GOLDEN("data.npz"), "C", NULL);
    for (int n = 0; n < N; n++) {
        const int g = (int)c->C[n];
        c->n[g]++;
        for (int l = 0; l < L; l++) {
            c->sum[g * L + l] += c->F[n * L + l];
            for (int k = 0; k < L; k++)
                c->FF[(g * L + l) * L + k] += c->F[n * L + l] * c->F[n * L + k];
            for (int d = 0; d < D; d++)
                c->YF[(g * D + d) * L + l] += c->Y[n * D + d] * c->F[n * L + l];
        }
        for (int d = 0; d < D; d++) c->yy[g] += c->Y[n * D + d] * c->Y[n * D + d];
    }
    c->problem = (sp_group_problem){.groups = G,
                                    .genes = D,
                                    .factors = L,
                                    .cells = c->n,
                                    .YF = c->YF,
                                    .FF = c->FF,
                                    .F = c->sum,
                                    .yy = c->yy,
                                    .W = c->W,
                                    .start = 0.05,
                                    .fit = fit,
                                    .ratio = ratio,
                                    .user = c};
    return c;
}

static void drop(cells *c)
{
    free(c->W);
    free(c->F);
    free(c->Y);
    free(c->C);
    free(c);
}

static void solve(sp_group_result *r, fth_mem *mem, const sp_group_problem *p)
{
    OK(sp_group_reserve(r, mem, G, D, L, 1, NULL));
    OK(sp_group_solve(r, p, NULL));
}

TEST(loadings_of_groups_pass_through_the_golden_ones)
{
    static const int64_t iterations[G] = {549, 567, 127, 353};
    cells *c = load();
    fth_mem *mem = t_mem(1 << 20);
    double *errors = t_npz_f64(ANALYSIS, "group_recon", NULL);
    for (int g = 0; g < G; g++) {
        char name[16];
        snprintf(name, sizeof name, "Wg%d", g);
        double *golden = t_npz_f64(ANALYSIS, name, NULL);
        sp_group_result r;
        c->problem.iterations = iterations[g];
        solve(&r, mem, &c->problem);
        EQ_I64(r.steps[g], iterations[g]);
        for (int i = 0; i < D * L; i++) NEAR(r.W[g * D * L + i], golden[i], 3e-5);
        NEAR(r.error[g], errors[g], 1e-6);
        sp_group_clear(&r);
        free(golden);
    }
    free(errors);
    OK(fth_mem_destroy(mem, NULL));
    drop(c);
}

/* Steps of an independent run of the rule in f64 (NumPy): the change is below 1e-4 for the first
 * time after 640, 757, 975 and 361 iterations. */
TEST(the_end_is_found_with_few_looks_where_all_looks_find_it)
{
    static const int64_t steps[G] = {640, 757, 975, 361};
    cells *c = load();
    fth_mem *mem = t_mem(1 << 20);
    sp_group_result few, all;
    solve(&few, mem, &c->problem);
    c->problem.every = true;
    solve(&all, mem, &c->problem);
    for (int g = 0; g < G; g++) {
        EQ_I64(few.steps[g], steps[g]);
        EQ_I64(all.steps[g], steps[g]);
        EQ_F64(few.error[g], all.error[g]);
    }
    SAME_BYTES(few.W, all.W, G * D * L * sizeof(double));
    IS_TRUE(few.passes <= 32 && all.passes > 900);
    sp_group_clear(&few);
    sp_group_clear(&all);
    OK(fth_mem_destroy(mem, NULL));
    drop(c);
}

TEST(a_group_with_fewer_cells_than_factors_has_the_global_loadings)
{
    cells *c = load();
    fth_mem *mem = t_mem(1 << 20);
    sp_group_result r;
    c->n[3] = L - 1;
    c->problem.start = 0;
    c->problem.seed = 7;
    c->problem.iterations = 1;
    solve(&r, mem, &c->problem);
    for (int i = 0; i < D * L; i++) EQ_F64(r.W[3 * D * L + i], c->W[i]);
    IS_TRUE(isnan(r.error[3]) && !isnan(r.error[2]));
    EQ_I64(r.steps[3], 0);
    EQ_I64(r.steps[0], 1);
    /* One step from 0.1 u, by hand. */
    double below = 1e-8, u[L];
    for (int l = 0; l < L; l++)
        u[l] = 0.1 * fth_random_uniform_at(7, 1, SP_STREAM_TRANSFORM, 5 * L + l);
    for (int l = 0; l < L; l++) below += u[l] * c->FF[L * L + 1 * L + l];
    NEAR(r.W[(D + 5) * L + 1], u[1] * c->YF[(D + 5) * L + 1] / below, 1e-14);
    sp_group_clear(&r);
    OK(fth_mem_destroy(mem, NULL));
    drop(c);
}

/* Its own likelihood falls with every step of the Poisson rule, and ends below that of least
 * squares. */
TEST(the_poisson_rule_fits_better)
{
    cells *c = load();
    fth_mem *mem = t_mem(1 << 20);
    sp_group_result squares, poisson;
    solve(&squares, mem, &c->problem);
    c->problem.poisson = true;
    solve(&poisson, mem, &c->problem);
    double a[G], b[G];
    OK(fit(c, squares.W, poisson.W, a, b, NULL));
    for (int g = 0; g < G; g++) {
        double one = 0, two = 0;
        for (int i = 0; i < D * L; i++) {
            one += squares.W[g * D * L + i] * c->sum[g * L + i % L];
            two += poisson.W[g * D * L + i] * c->sum[g * L + i % L];
        }
        IS_TRUE(two - b[g] < one - a[g]);
        IS_TRUE(poisson.steps[g] > 2 && poisson.error[g] < 1);
        /* At the end the rates add up to the counts, as in any fit of a Poisson mean. */
        double counts = 0;
        for (int n = 0; n < N; n++)
            for (int d = 0; d < D && (int)c->C[n] == g; d++) counts += c->Y[n * D + d];
        NEAR(two, counts, 1e-9 * counts);
    }
    sp_group_clear(&squares);
    sp_group_clear(&poisson);
    OK(fth_mem_destroy(mem, NULL));
    drop(c);
}

TEST_MAIN()
