/* test_splat_strategy.c - densification against a plain statement of its rules, and what holds of
 * it whatever the rows: the cap, threads, budgets, families, draws, users who want to stop.
 *
 * seconds: 10
 */
#include "instruments/splat/strategy/adc.h"
#include "instruments/splat/strategy/draw.h"
#include "instruments/splat/strategy/mcmc.h"
#include "testing/splat/splat_rows.h"

#include <fathom/ops.h>
#include <math.h>
#include <stdlib.h>

static const uint64_t MiB = 1 << 20;
static const double scale = 20;

/* ---- ADC, said plainly ---- */

/* A row of the result: where it comes from, and whether it is a child and which. */
typedef struct origin {
    int64_t row;
    int child; /* -1: the row itself, or a copy */
    bool fresh;
} origin;

typedef struct candidate {
    int64_t row;
    float grad;
} candidate;

static int by_gradient(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->grad != y->grad) return x->grad > y->grad ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double largest(const float *scaling)
{
    return exp(fmax(fmax((double)scaling[0], (double)scaling[1]), (double)scaling[2]));
}

/* 0 stays, 1 is duplicated, 2 is split: the `room` largest gradients, the first of equal ones. */
static void choose(int *kind, const gs_rows_memory *m, const gs_adc_rules *rules, int64_t n,
                   int64_t room)
{
    candidate *c = malloc((size_t)(n + 1) * sizeof *c);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        const float seen = m->densify[2 * i];
        const float grad = m->densify[2 * i + 1] / (seen > 1 ? seen : 1);
        kind[i] = 0;
        if (grad > (float)rules->grad_threshold) c[count++] = (candidate){i, grad};
    }
    qsort(c, (size_t)count, sizeof *c, by_gradient);
    for (int64_t j = 0; j < count && j < room; j++)
        kind[c[j].row] = largest(m->at[GS_VALUE][GS_SCALING] + 3 * c[j].row) <=
                                 rules->grow_scale3d * rules->scene_scale
                             ? 1
                             : 2;
    free(c);
}

/* Every row in the order of rows in place: those there were, copies, second children. */
static int64_t list_origins(origin *list, const int *kind, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        list[count++] = (origin){i, kind[i] == 2 ? 0 : -1, kind[i] == 2};
    for (int k = 1; k <= 2; k++)
        for (int64_t i = 0; i < n; i++)
            if (kind[i] == k) list[count++] = (origin){i, k == 2 ? 1 : -1, true};
    return count;
}

static void place_plainly(const gs_rows_memory *m, origin o, int64_t iteration, int64_t seed,
                          double mean[3])
{
    const float *q = m->at[GS_VALUE][GS_ROTATION] + 4 * o.row;
    double length = 0, u[4], e[3];
    for (int k = 0; k < 4; k++) length += (double)q[k] * (double)q[k];
    for (int k = 0; k < 4; k++) u[k] = (double)q[k] / sqrt(length);
    for (int k = 0; k < 3; k++)
        e[k] = exp((double)m->at[GS_VALUE][GS_SCALING][3 * o.row + k]) *
               fth_random_normal_at(seed, iteration, 2, (2 * o.row + o.child) * 3 + k);
    /* u e u*, as a product of quaternions */
    const double a[4] = {
        -u[1] * e[0] - u[2] * e[1] - u[3] * e[2], u[0] * e[0] + u[2] * e[2] - u[3] * e[1],
        u[0] * e[1] + u[3] * e[0] - u[1] * e[2], u[0] * e[2] + u[1] * e[1] - u[2] * e[0]};
    const double turned[3] = {-a[0] * u[1] + a[1] * u[0] - a[2] * u[3] + a[3] * u[2],
                              -a[0] * u[2] + a[2] * u[0] - a[3] * u[1] + a[1] * u[3],
                              -a[0] * u[3] + a[3] * u[0] - a[1] * u[2] + a[2] * u[1]};
    for (int k = 0; k < 3; k++)
        mean[k] = (double)m->at[GS_VALUE][GS_MEANS][3 * o.row + k] + turned[k];
}

/* Whether a row of the result is pruned. */
static bool pruned(const gs_rows_memory *m, origin o, const gs_adc_rules *rules, int64_t iteration)
{
    const float *q = m->at[GS_VALUE][GS_ROTATION] + 4 * o.row;
    double opacity = sigmoid((double)m->at[GS_VALUE][GS_OPACITY][o.row]), length = 0;
    double size = largest(m->at[GS_VALUE][GS_SCALING] + 3 * o.row);
    for (int k = 0; k < 4; k++) length += (double)q[k] * (double)q[k];
    if (o.child >= 0) size /= 1.6;
    if (o.child >= 0 && rules->revised_opacity) opacity = 1 - sqrt(1 - opacity);
    return opacity < rules->prune_opacity || length < 1e-8 ||
           (iteration > rules->reset_every && size > rules->prune_scale3d * rules->scene_scale);
}

static void check_row(const gs_rows *rows, const gs_rows_memory *was, const gs_rows_memory *is,
                      int64_t at, origin o, const gs_adc_rules *rules, int64_t iteration)
{
    double mean[3];
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t columns = gs_columns((gs_attribute)a, rows->degree);
        const float *from = was->at[GS_VALUE][a] + o.row * columns,
                    *to = is->at[GS_VALUE][a] + at * columns;
        if (o.child >= 0 && a == GS_MEANS) {
            place_plainly(was, o, iteration, rules->seed, mean);
            for (int k = 0; k < 3; k++) NEAR(to[k], mean[k], 1e-6 * (1 + fabs(mean[k])));
        } else if (o.child >= 0 && a == GS_SCALING) {
            for (int k = 0; k < 3; k++)
                NEAR(exp((double)to[k]) * 1.6 / exp((double)from[k]), 1, 1e-6);
        } else if (o.child >= 0 && a == GS_OPACITY && rules->revised_opacity) {
            const double half = 1 - sigmoid((double)to[0]);
            NEAR(half * half, 1 - sigmoid((double)from[0]), 1e-6);
        } else if (columns > 0) {
            IS_TRUE(memcmp(to, from, (size_t)columns * sizeof(float)) == 0);
        }
        for (int p = GS_FIRST; p < GS_PARTS && is->at[p][a]; p++)
            for (int64_t k = 0; k < columns; k++)
                EQ_F64(is->at[p][a][at * columns + k],
                       o.fresh ? 0 : was->at[p][a][o.row * columns + k]);
    }
}

static void compare_adc(int64_t n, int degree, gs_adc_rules rules, int64_t iteration, uint64_t seed)
{
    fth_context *ctx = t_rows_context(2, 256 * MiB);
    const unsigned flags = GS_ROWS_ADAM | GS_ROWS_DENSIFY;
    gs_rows before, rows;
    gs_rows_memory was, is;
    gs_adc_counts counts;
    fth_err err = {0};
    t_rows_make(&before, ctx, n, n + 1, degree, flags, seed);
    t_rows_make(&rows, ctx, n, 2 * n + 1, degree, flags, seed);
    OK(gs_rows_open(&before, &was, NULL));
    OKE(gs_adc_refine(&rows, &rules, iteration, &counts, &err), &err);
    OK(gs_rows_open(&rows, &is, NULL));
    int *kind = malloc((size_t)(n + 1) * sizeof *kind);
    origin *list = malloc((size_t)(2 * n + 1) * sizeof *list);
    choose(kind, &was, &rules, n, rules.max_cap > 0 ? rules.max_cap - n : n);
    const int64_t all = list_origins(list, kind, n);
    int64_t at = 0, want[3] = {0};
    for (int64_t i = 0; i < n; i++) want[kind[i]]++;
    for (int64_t i = 0; i < all; i++) {
        if (pruned(&was, list[i], &rules, iteration)) continue;
        IS_TRUE(at < rows.n);
        check_row(&rows, &was, &is, at++, list[i], &rules, iteration);
    }
    EQ_I64(rows.n, at);
    EQ_I64(counts.n, at);
    EQ_I64(counts.dup, want[1]);
    EQ_I64(counts.split, want[2]);
    EQ_I64(counts.pruned, all - at);
    IS_TRUE(rules.last ? !rows.densify : fth_tensor_size(rows.densify, 0) == rows.n);
    for (int64_t i = 0; rows.densify && i < 2 * rows.n; i++) EQ_F64(is.densify[i], 0);
    free(kind);
    free(list);
    gs_rows_free(&before);
    gs_rows_free(&rows);
    OK(fth_context_destroy(ctx, NULL));
}

static gs_adc_rules plain_rules(void)
{
    gs_adc_rules rules = gs_adc_default();
    rules.scene_scale = scale;
    rules.seed = 11;
    return rules;
}

TEST(a_refinement_is_what_its_rules_say)
{
    static const int64_t sizes[] = {0, 1, 2, 97, 1024, 2500};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int degree = 0; degree < 4; degree++) {
            gs_adc_rules rules = plain_rules();
            rules.revised_opacity = degree % 2;
            rules.last = degree == 2;
            compare_adc(sizes[k], degree, rules, degree < 2 ? 600 : 3100, k);
        }
}

TEST(the_cap_keeps_the_largest_gradients)
{
    static const int64_t more[] = {0, 1, 7, 300, 600, 1100};
    for (size_t k = 0; k < sizeof more / sizeof more[0]; k++) {
        gs_adc_rules rules = plain_rules();
        rules.max_cap = 1200 + more[k];
        compare_adc(1200, 1, rules, 600, 3);
    }
}

TEST(masks_of_nothing_and_of_everything)
{
    for (int all = 0; all < 2; all++) {
        gs_adc_rules rules = plain_rules();
        rules.grad_threshold = all ? -1 : 1e6;
        rules.prune_opacity = all ? 0 : 0.4999;
        compare_adc(1500, 1, rules, 600, 4);
    }
}

/* ---- what must not matter ---- */

static bool stop(void *user, const fth_progress *p)
{
    (void)user, (void)p;
    return false;
}

/* Everything once; the hash of what is left. */
static uint64_t live(fth_context *ctx)
{
    gs_rows rows;
    gs_adc_rules rules = plain_rules();
    gs_mcmc_rules mcmc = gs_mcmc_default();
    gs_adc_counts counts;
    int64_t dead, added;
    t_rows_make(&rows, ctx, 20000, 60000, 1, GS_ROWS_ADAM | GS_ROWS_DENSIFY, 9);
    OK(gs_adc_refine(&rows, &rules, 600, &counts, NULL));
    IS_TRUE(counts.dup > 1000 && counts.split > 1000 && counts.pruned > 100);
    OK(gs_opacity_reset(&rows, 0.3, NULL));
    OK(gs_mcmc_noise(&rows, 0.5, 3, 601, NULL));
    mcmc.min_opacity = 0.05;
    OK(gs_mcmc_relocate(&rows, &mcmc, 700, &dead, NULL));
    OK(gs_mcmc_add(&rows, &mcmc, 700, &added, NULL, NULL));
    IS_TRUE(dead > 1000 && added > 1000);
    const uint64_t hash = t_rows_hash(&rows);
    gs_rows_free(&rows);
    return hash;
}

TEST(threads_and_users_who_want_to_stop_change_no_bit)
{
    uint64_t first = 0;
    for (int threads = 1; threads <= 5; threads++) {
        fth_options opt;
        fth_context *ctx = NULL;
        fth_options_default(&opt);
        opt.threads = threads;
        opt.mem.budget_bytes = 256 * MiB;
        if (threads > 3) opt.progress = stop; /* a refinement is never left half done */
        OK(fth_context_create(&ctx, &opt, NULL));
        const uint64_t hash = live(ctx);
        if (threads == 1) first = hash;
        EQ_U64(hash, first);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* ---- memory ---- */

static void count_line(void *user, fth_log_level level, const char *line)
{
    if (level == FTH_LOG_WARN && strstr(line, "the cap is")) ++*(int *)user;
}

TEST(memory_lowers_the_cap_before_anything_changes)
{
    for (int mcmc = 0; mcmc < 2; mcmc++) {
        fth_context *ctx = NULL;
        fth_options opt;
        gs_rows rows;
        gs_adc_counts counts = {0};
        gs_adc_rules rules = plain_rules();
        gs_mcmc_rules more = gs_mcmc_default();
        fth_mem_stats stats;
        fth_err err = {0};
        int lines = 0;
        int64_t added = 0, cap = 0;
        fth_options_default(&opt);
        opt.threads = 1;
        opt.mem.budget_bytes = 40 * MiB;
        opt.log = (fth_log){count_line, &lines, FTH_LOG_WARN};
        OK(fth_context_create(&ctx, &opt, NULL));
        t_rows_make(&rows, ctx, 57000, 200000, 3, GS_ROWS_ADAM | GS_ROWS_DENSIFY, 6);
        if (mcmc)
            OKE(gs_mcmc_add(&rows, &more, 600, &added, &cap, &err), &err);
        else
            OKE(gs_adc_refine(&rows, &rules, 600, &counts, &err), &err);
        cap = mcmc ? cap : counts.cap;
        added = mcmc ? added : counts.dup + counts.split;
        EQ_I64(lines, 1);
        IS_TRUE(added > 0);
        EQ_I64(cap, 57000 + added);
        fth_mem_get_stats(rows.mem, &stats);
        IS_TRUE(stats.peak_bytes <= 40 * MiB);
        gs_rows_free(&rows);
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST_REPEAT(the_ledger_holds_what_was_planned)
{
    for (int last = 0; last < 2; last++) {
        fth_context *ctx = t_rows_context(2, 400 * MiB);
        fth_mem *mem = fth_context_mem(ctx);
        const unsigned flags = GS_ROWS_ADAM | GS_ROWS_DENSIFY;
        gs_adc_rules rules = plain_rules();
        gs_adc_counts counts;
        gs_rows rows;
        fth_mem_stats stats;
        rules.last = last;
        t_rows_make(&rows, ctx, 100000, 200000, 3, flags, 8);
        fth_mem_mark(mem);
        OK(gs_adc_refine(&rows, &rules, 600, &counts, NULL));
        fth_mem_get_stats(mem, &stats);
        EQ_U64(stats.peak_bytes,
               gs_adc_bytes(mem, 200000, 3, flags, 100000, counts.dup + counts.split, &rules));
        gs_rows_free(&rows);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* ---- MCMC ---- */

/* The row of a draw, by sums over all rows before it. */
static int64_t draw_plainly(const float *opacity, const gs_marks *skip, int64_t n, double u)
{
    double total = 0, before = 0;
    for (int64_t b = 0; b < n; b += 1024) {
        double sum = 0;
        for (int64_t i = b; i < n && i < b + 1024; i++)
            sum += gs_marks_has(skip, i) ? 0 : sigmoid((double)opacity[i]);
        total += sum;
    }
    for (int64_t b = 0; b < n; b += 1024) {
        double sum = 0;
        for (int64_t i = b; i < n && i < b + 1024; i++) {
            sum += gs_marks_has(skip, i) ? 0 : sigmoid((double)opacity[i]);
            if (before + sum > u * total) return i;
        }
        before += sum;
    }
    return -1;
}

TEST(draws_follow_the_sums_of_opacities)
{
    static const int64_t sizes[] = {2, 1024, 1025, 5000};
    fth_context *ctx = t_rows_context(2, 64 * MiB);
    for (size_t k = 0; k < 4; k++) {
        gs_rows rows;
        gs_rows_memory m;
        gs_marks skip;
        gs_urn urn;
        const int64_t n = sizes[k], draws = 700;
        t_rows_make(&rows, ctx, n, n, 0, 0, k);
        OK(gs_rows_open(&rows, &m, NULL));
        OK(gs_marks_create(&skip, rows.mem, n, "skip", NULL));
        for (int64_t i = 0; i < n; i += 3) gs_marks_set(&skip, i);
        OK(gs_urn_create(&urn, &rows, &skip, draws, 5, 12, 4, NULL));
        int64_t times = 0;
        for (int64_t j = 0; j < draws; j++) {
            const double u = fth_random_uniform_at(5, 12, 4, j);
            EQ_I64(urn.drawn[j], draw_plainly(m.at[GS_VALUE][GS_OPACITY], &skip, n, u));
        }
        for (int64_t i = 0; i < n; i++) times += urn.times[i];
        IS_TRUE(n == 2 ? urn.times[1] == 255 : times == draws);
        gs_urn_free(&urn);
        gs_marks_free(&skip);
        gs_rows_free(&rows);
    }
    OK(fth_context_destroy(ctx, NULL));
}

/* Rows of `child` and `parent` are the same. */
static void same_rows(const gs_rows *rows, const gs_rows_memory *m, int64_t child, int64_t parent)
{
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t columns = gs_columns((gs_attribute)a, rows->degree);
        IS_TRUE(columns == 0 ||
                memcmp(m->at[GS_VALUE][a] + child * columns, m->at[GS_VALUE][a] + parent * columns,
                       (size_t)columns * sizeof(float)) == 0);
    }
}

/* Every row of a family has the opacity and scale of its size. */
TEST(families_share_what_one_row_was)
{
    enum { N = 3000 };
    for (int add = 0; add < 2; add++) {
        fth_context *ctx = t_rows_context(2, 64 * MiB);
        gs_rows rows, before;
        gs_rows_memory m, was;
        gs_mcmc_rules rules = gs_mcmc_default();
        int64_t count = 0, size[N] = {0}, parent[2 * N];
        rules.seed = 21;
        rules.min_opacity = add ? 1e-6 : 0.2;
        t_rows_make(&rows, ctx, N, 2 * N, 1, GS_ROWS_ADAM, 13);
        t_rows_make(&before, ctx, N, 2 * N, 1, GS_ROWS_ADAM, 13);
        if (add)
            OK(gs_mcmc_add(&rows, &rules, 900, &count, NULL, NULL));
        else
            OK(gs_mcmc_relocate(&rows, &rules, 900, &count, NULL));
        OK(gs_rows_open(&rows, &m, NULL));
        OK(gs_rows_open(&before, &was, NULL));
        EQ_I64(rows.n, add ? 3149 : N);
        if (add) EQ_I64(count, 149); /* 1.05f is below 1.05 */
        IS_TRUE(add || (count > 300 && count < N));
        /* Means are as different as random numbers are: they tell who is whose copy. */
        for (int64_t i = 0; i < rows.n; i++) {
            parent[i] = -1;
            for (int64_t j = 0; j < N && parent[i] < 0; j++)
                if (memcmp(m.at[GS_VALUE][GS_MEANS] + 3 * i, was.at[GS_VALUE][GS_MEANS] + 3 * j,
                           3 * sizeof(float)) == 0)
                    parent[i] = j;
            IS_TRUE(parent[i] >= 0);
            if (parent[i] != i) size[parent[i]]++;
        }
        int64_t copies = 0;
        for (int64_t i = 0; i < rows.n; i++) {
            const int64_t p = parent[i];
            if (p != i) copies++, same_rows(&rows, &m, i, p);
            if (size[p] == 0) continue;
            double opacity, factor;
            gs_family(sigmoid((double)was.at[GS_VALUE][GS_OPACITY][p]), (int)(1 + size[p]),
                      &opacity, &factor);
            opacity = fmax(opacity, rules.min_opacity);
            NEAR(sigmoid((double)m.at[GS_VALUE][GS_OPACITY][i]), opacity, 1e-6);
            for (int k = 0; k < 3; k++)
                NEAR(m.at[GS_VALUE][GS_SCALING][3 * i + k],
                     (double)was.at[GS_VALUE][GS_SCALING][3 * p + k] + log(factor), 1e-6);
            for (int q = GS_FIRST; q < GS_PARTS; q++) EQ_F64(m.at[q][GS_SH_N][9 * i], 0);
        }
        EQ_I64(copies, count);
        gs_rows_free(&rows);
        gs_rows_free(&before);
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST(where_all_are_dead_nothing_moves)
{
    fth_context *ctx = t_rows_context(1, 16 * MiB);
    gs_mcmc_rules rules = gs_mcmc_default();
    gs_rows rows;
    int64_t dead = 7, added = 7;
    t_rows_make(&rows, ctx, 300, 600, 1, GS_ROWS_ADAM, 1);
    const uint64_t hash = t_rows_hash(&rows);
    rules.min_opacity = 0.9999;
    OK(gs_mcmc_relocate(&rows, &rules, 1, &dead, NULL));
    EQ_I64(dead, 300);
    EQ_U64(t_rows_hash(&rows), hash);
    rules.max_cap = 300;
    OK(gs_mcmc_add(&rows, &rules, 1, &added, NULL, NULL));
    EQ_I64(added, 0);
    EQ_U64(t_rows_hash(&rows), hash);
    gs_rows_free(&rows);
    OK(fth_context_destroy(ctx, NULL));
}

/* The covariance as a matrix, times normals. */
TEST(noise_has_the_shape_of_each_row)
{
    enum { N = 400 };
    fth_context *ctx = t_rows_context(2, 16 * MiB);
    gs_rows rows, before;
    gs_rows_memory m, was;
    t_rows_make(&rows, ctx, N, N, 0, 0, 2);
    t_rows_make(&before, ctx, N, N, 0, 0, 2);
    OK(gs_rows_open(&before, &was, NULL));
    OK(gs_mcmc_noise(&rows, 3000, 17, 5, NULL));
    OK(gs_rows_open(&rows, &m, NULL));
    int moved = 0;
    for (int64_t i = 0; i < N; i++) {
        const double o = sigmoid((double)was.at[GS_VALUE][GS_OPACITY][i]);
        double cov[3][3] = {{0}}, length = 0;
        for (int k = 0; k < 4; k++)
            length += pow((double)was.at[GS_VALUE][GS_ROTATION][4 * i + k], 2);
        for (int axis = 0; axis < 3 && length > 1e-8; axis++) { /* s^2 times r r^T of each axis */
            gs_rows_memory unit = was;
            float flat[3] = {-200, -200, -200}, zero[3] = {0}, q[4];
            double r[3];
            memcpy(q, was.at[GS_VALUE][GS_ROTATION] + 4 * i, sizeof q);
            unit.at[GS_VALUE][GS_SCALING] = flat;
            unit.at[GS_VALUE][GS_ROTATION] = q;
            unit.at[GS_VALUE][GS_MEANS] = zero;
            /* A child along one axis alone lies on it, as far as its normal says. */
            flat[axis] = 0;
            place_plainly(&unit, (origin){0, 0, true}, 1, 1, r);
            const double n = fth_random_normal_at(1, 1, 2, axis);
            const double s = exp((double)was.at[GS_VALUE][GS_SCALING][3 * i + axis]);
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++) cov[a][b] += s * s * r[a] * r[b] / (n * n);
        }
        for (int a = 0; a < 3; a++) {
            double want = (double)was.at[GS_VALUE][GS_MEANS][3 * i + a];
            for (int b = 0; b < 3; b++)
                want += 3000 / (1 + exp(100 * o - 0.5)) * cov[a][b] *
                        fth_random_normal_at(17, 5, 3, 3 * i + b);
            NEAR(m.at[GS_VALUE][GS_MEANS][3 * i + a], want, 1e-5 * (1 + fabs(want)));
            moved += m.at[GS_VALUE][GS_MEANS][3 * i + a] != was.at[GS_VALUE][GS_MEANS][3 * i + a];
        }
    }
    IS_TRUE(moved > 30 && moved < 3 * N);
    gs_rows_free(&rows);
    gs_rows_free(&before);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_reset_lowers_opacities_and_clears_their_moments)
{
    fth_context *ctx = t_rows_context(2, 16 * MiB);
    gs_rows rows, before;
    gs_rows_memory m, was;
    t_rows_make(&rows, ctx, 500, 500, 1, GS_ROWS_ADAM, 2);
    t_rows_make(&before, ctx, 500, 500, 1, GS_ROWS_ADAM, 2);
    OK(gs_rows_open(&before, &was, NULL));
    OK(gs_opacity_reset(&rows, 0.005, NULL));
    OK(gs_rows_open(&rows, &m, NULL));
    const float most = (float)log(0.01 / 0.99);
    for (int64_t i = 0; i < 500; i++) {
        const float o = was.at[GS_VALUE][GS_OPACITY][i];
        EQ_F64(m.at[GS_VALUE][GS_OPACITY][i], o < most ? o : most);
        EQ_F64(m.at[GS_FIRST][GS_OPACITY][i], 0);
        EQ_F64(m.at[GS_SECOND][GS_OPACITY][i], 0);
        EQ_F64(m.at[GS_FIRST][GS_MEANS][i], was.at[GS_FIRST][GS_MEANS][i]);
    }
    gs_rows_free(&rows);
    gs_rows_free(&before);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
