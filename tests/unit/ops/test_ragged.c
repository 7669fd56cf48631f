/* test_ragged.c - axes of entries: spread, collect, and programs on sparse counts in any budget.
 * seconds: 10 labels: gpu
 *
 * The program is the one sparse data are for: the Poisson log-likelihood of counts under a factor
 * model and its gradients, where nothing of the size of the dense matrix ever exists. It is
 * compared with the same formula written down densely.
 */
#include "testing/engine/op_harness.h"

#include <fathom/fathom.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the two operations alone ---- */

static const int64_t uneven[8] = {0, 3, 3, 4, 9, 9, 9, 12}; /* rows of 3 0 1 5 0 0 3 */

static fth_graph *small_graph(void)
{
    fth_graph *g = t_graph("row=7 k=5 z=2");
    IS_TRUE(fth_axis_ragged(g, "entry", "row", uneven));
    EQ_I64(fth_axis_size(g, "entry"), 12);
    return g;
}

TEST(entries_take_the_value_of_their_row)
{
    const int owner[12] = {0, 0, 0, 2, 3, 3, 3, 3, 3, 6, 6, 6};
    const char *layouts[3] = {"row k", "k row", "z row k"};
    t_random r = t_random_make(1);
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
        fth_graph *g = small_graph();
        const fth_val x = t_noise(g, "x", (fth_dtype)t, "k row", &r);
        const fth_val y = fth_spread(x, "entry");
        MADE(y);
        double got[60], from[35];
        t_eval_f64(y, got);
        for (int i = 0; i < 35; i++) from[i] = t_get((fth_dtype)t, t_data(x), i);
        for (int k = 0; k < 5; k++)
            for (int e = 0; e < 12; e++) EQ_F64(got[k * 12 + e], from[k * 7 + owner[e]]);
        t_graph_free(g);
    }
    for (int i = 0; i < 3; i++) { /* every layout, cut every way */
        fth_graph *g = small_graph();
        const fth_val y = fth_spread(t_noise(g, "x", FTH_F32, layouts[i], &r), "entry");
        double got[120];
        t_eval_f64(y, got);
        t_graph_free(g);
    }
}

TEST(rows_get_the_sum_of_their_entries)
{
    t_random r = t_random_make(2);
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
        fth_graph *g = small_graph();
        const fth_val x = t_noise(g, "x", (fth_dtype)t, "entry k", &r);
        const fth_val y = fth_collect(x, "entry");
        MADE(y);
        IS_TRUE(fth_val_dtype(y) ==
                (fth_dtype_is_int((fth_dtype)t) || t == FTH_BOOL ? FTH_I64 : (fth_dtype)t));
        double got[35];
        t_eval_f64(y, got);
        for (int row = 0; row < 7; row++)
            for (int k = 0; k < 5; k++) {
                double sum = 0.0;
                for (int64_t e = uneven[row]; e < uneven[row + 1]; e++)
                    sum += t_get((fth_dtype)t, t_data(x), e * 5 + k);
                const double unit = t == FTH_BF16 ? 0.05 : t == FTH_F16 ? 0.01 : 1e-6;
                LE_F64(fabs(got[row * 5 + k] - sum), unit * (1.0 + fabs(sum)));
            }
        t_graph_free(g);
    }
    fth_graph *g = small_graph();
    double got[70];
    t_eval_f64(fth_collect(t_noise(g, "x", FTH_F32, "k entry", &r), "entry"), got);
    t_eval_f64(fth_collect(t_noise(g, "y", FTH_C64, "z entry k", &r), "entry"), got);
    t_graph_free(g);
}

TEST(gradients_lead_back_to_rows_and_entries)
{
    t_random r = t_random_make(3);
    fth_graph *g = small_graph();
    const fth_val x = t_noise(g, "x", FTH_F64, "row k", &r);
    const fth_val v = t_noise(g, "v", FTH_F64, "entry", &r);
    const fth_val e = fth_mul(fth_exp(fth_spread(x, "entry")), v);
    GRAD(fth_sum(fth_sqr(e), "entry k"), x, 1e-6);
    GRAD(fth_sum(fth_sqr(fth_collect(e, "entry")), "row k"), v, 1e-6);
    t_graph_free(g);
}

TEST(rows_without_entries_and_no_rows_at_all)
{
    t_random r = t_random_make(4);
    static const int64_t none[4] = {0, 0, 0, 0}, zero[1] = {0};
    fth_graph *g = t_graph("row=3 void=0");
    IS_TRUE(fth_axis_ragged(g, "entry", "row", none));
    IS_TRUE(fth_axis_ragged(g, "of_void", "void", zero));
    double got[3] = {7, 7, 7};
    t_eval_f64(fth_collect(t_noise(g, "x", FTH_F32, "entry", &r), "entry"), got);
    for (int i = 0; i < 3; i++) EQ_F64(got[i], 0.0);
    t_eval_f64(fth_spread(t_noise(g, "y", FTH_F32, "row", &r), "entry"), got);
    t_eval_f64(fth_collect(t_noise(g, "z", FTH_F32, "of_void", &r), "of_void"), got);
    t_graph_free(g);
}

TEST(wrong_rows_are_refused_with_both_lines)
{
    static const int64_t falls[4] = {0, 3, 2, 5}, late[4] = {1, 2, 3, 5}, good[4] = {0, 1, 2, 5},
                         other[4] = {0, 2, 2, 5};
    fth_graph *g = t_graph("row=3 col=4 flat=5");
    IS_TRUE(!fth_axis_ragged(g, "a", "rows", good));
    REFUSED(g, FTH_E_AXIS_NAME, "'rows', which is not declared");
    t_graph_free(g);
    g = t_graph("row=3 col=4 flat=5");
    IS_TRUE(!fth_axis_ragged(g, "a", "row", falls));
    REFUSED(g, FTH_E_AXIS_SIZE, "row pointer 2 of 4 is 2; it should be at least 3");
    t_graph_free(g);
    g = t_graph("row=3 col=4 flat=5");
    IS_TRUE(!fth_axis_ragged(g, "a", "row", late));
    REFUSED(g, FTH_E_AXIS_SIZE, "row pointer 0 of 4 is 1; it should be 0");
    t_graph_free(g);
    g = t_graph("row=3 col=4 flat=5");
    IS_TRUE(fth_axis_ragged(g, "a", "row", good));
    IS_TRUE(fth_axis_ragged(g, "a", "row", good));
    IS_TRUE(!fth_axis_ragged(g, "a", "row", other));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "without these rows of 'row'");
    t_graph_free(g);
    g = t_graph("row=3 col=4 flat=5");
    IS_TRUE(!fth_axis_ragged(g, "flat", "row", good));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "'flat' was declared at");
    t_graph_free(g);
    t_random r = t_random_make(5);
    g = t_graph("row=3 col=4 flat=5");
    IS_TRUE(!fth_val_ok(fth_spread(t_noise(g, "x", FTH_F32, "row", &r), "flat")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "axis 'flat' has no rows");
    t_graph_free(g);
    g = t_graph("row=3 col=4 flat=5");
    IS_TRUE(fth_axis_ragged(g, "a", "row", good));
    IS_TRUE(!fth_val_ok(fth_spread(t_noise(g, "x", FTH_F32, "col", &r), "a")));
    REFUSED(g, FTH_E_AXIS_MISSING, "has no axis 'row'");
    t_graph_free(g);
}

/* ---- a program on sparse counts ---- */

enum { CELLS = 3000, GENES = 40, FACTORS = 6 };

typedef struct counts {
    int64_t ptr[CELLS + 1];
    int32_t *gene;
    float *count;
} counts;

/* A few cells have very many entries, many have none: chunks differ in size. */
static void make_counts(counts *c, t_random *r)
{
    c->ptr[0] = 0;
    for (int64_t i = 0; i < CELLS; i++) {
        const int64_t kind = t_random_i64(r, 0, 19);
        c->ptr[i + 1] = c->ptr[i] + (kind == 0 ? GENES : kind < 6 ? 0 : t_random_i64(r, 1, 8));
    }
    c->gene = malloc(sizeof *c->gene * (size_t)c->ptr[CELLS]);
    c->count = malloc(sizeof *c->count * (size_t)c->ptr[CELLS]);
    IS_TRUE(c->gene && c->count);
    for (int64_t i = 0; i < CELLS; i++)
        for (int64_t e = c->ptr[i]; e < c->ptr[i + 1]; e++) {
            c->gene[e] = (int32_t)((e - c->ptr[i]) * GENES / (c->ptr[i + 1] - c->ptr[i]));
            c->count[e] = (float)t_random_i64(r, 1, 9);
        }
}

static fth_status read_genes(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    (void)err;
    memcpy(dst, ((counts *)self)->gene + lo[0], sizeof(int32_t) * (size_t)n[0]);
    return FTH_OK;
}

static fth_status read_counts(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    (void)err;
    memcpy(dst, ((counts *)self)->count + lo[0], sizeof(float) * (size_t)n[0]);
    return FTH_OK;
}

static fth_status read_factors(void *self, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    (void)self, (void)err;
    float *out = dst;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t k = 0; k < n[1]; k++)
            *out++ = 0.1f + (float)(((lo[0] + i) * 31 + (lo[1] + k) * 17) % 101) / 101.0f;
    return FTH_OK;
}

typedef struct program {
    fth_context *ctx;
    fth_graph *g;
    fth_val
        out[4]; /* log-likelihood, its gradients by factors and loadings, a value of each cell */
    float weight[GENES][FACTORS];
} program;

static void build(program *p, counts *c, int threads)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    OKE(fth_context_create(&p->ctx, &opt, &err), &err);
    fth_graph *g = p->g = fth_graph_create(p->ctx);
    fth_axis(g, "cell", CELLS);
    fth_axis(g, "gene", GENES);
    fth_axis(g, "factor", FACTORS);
    fth_axis_ragged(g, "entry", "cell", c->ptr);
    const int64_t n = c->ptr[CELLS];
    const fth_source gene = {.kind = "genes",
                             .self = c,
                             .dtype = FTH_I32,
                             .n_axes = 1,
                             .size = {n},
                             .read = read_genes},
                     count = {.kind = "counts",
                              .self = c,
                              .dtype = FTH_F32,
                              .n_axes = 1,
                              .size = {n},
                              .read = read_counts},
                     factor = {.kind = "factors",
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {CELLS, FACTORS},
                               .read = read_factors},
                     weight = {.kind = "memory",
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {GENES, FACTORS},
                               .data = p->weight};
    for (int i = 0; i < GENES; i++)
        for (int k = 0; k < FACTORS; k++) p->weight[i][k] = 0.05f + (float)((i * 7 + k * 3) % 11);
    const fth_val col = fth_input(g, "gene", FTH_I32, "entry", gene);
    const fth_val y = fth_input(g, "count", FTH_F32, "entry", count);
    const fth_val F = fth_input(g, "F", FTH_F32, "cell factor", factor);
    const fth_val W = fth_input(g, "W", FTH_F32, "gene factor", weight);
    const fth_val rate =
        fth_sum(fth_mul(fth_spread(F, "entry"), fth_gather(W, "gene", col)), "factor");
    const fth_val fit = fth_collect(fth_mul(y, fth_log(rate)), "entry");
    const fth_val total = fth_sum(fth_mul(F, fth_sum(W, "gene")), "factor");
    const fth_val each = fth_sub(fit, total);
    const fth_val loss = fth_sum(each, "cell");
    const fth_val by[2] = {F, W};
    OK(fth_grad(loss, 2, by, &p->out[1]));
    p->out[0] = loss;
    p->out[3] = each;
    OKE(fth_graph_check(g, &err), &err);
}

typedef struct results {
    float loss, by_factor[CELLS][FACTORS], by_weight[GENES][FACTORS], each[CELLS];
} results;

/* A dense array of up to two axes, filled by rectangles. */
typedef struct place {
    float *data;
    int64_t width;
} place;

static fth_status put(void *self, const int64_t *lo, const int64_t *n, const void *src,
                      fth_err *err)
{
    (void)err;
    const place *t = self;
    const float *v = src;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t k = 0; k < (t->width > 1 ? n[1] : 1); k++)
            t->data[(lo[0] + i) * t->width + (t->width > 1 ? lo[1] : 0) + k] = *v++;
    return FTH_OK;
}

static void run(program *p, uint64_t budget, results *out, fth_plan_info *info)
{
    fth_err err = {0};
    fth_limits limits = {.memory_bytes = budget};
    fth_plan *plan = fth_plan_make(p->g, p->out, 4, &limits, &err);
    if (!plan) OKE(err.status, &err);
    fth_plan_get_info(plan, info);
    place at[4] = {
        {0}, {&out->by_factor[0][0], FACTORS}, {&out->by_weight[0][0], FACTORS}, {out->each, 1}};
    fth_sink sinks[4] = {fth_scalar_sink(FTH_F32, &out->loss)};
    for (int i = 1; i < 4; i++) {
        sinks[i] = (fth_sink){.kind = "place",
                              .self = &at[i],
                              .dtype = FTH_F32,
                              .n_axes = fth_val_axes(p->out[i]),
                              .write = put};
        for (int d = 0; d < sinks[i].n_axes; d++) sinks[i].size[d] = fth_val_size(p->out[i], d);
    }
    fth_run_report report;
    OKE(fth_run(plan, sinks, NULL, &report, &err), &err);
    EQ_U64(report.ledger_bytes, info->peak_bytes);
    fth_plan_destroy(plan);
}

/* The same formulas over the dense matrix, in doubles. */
static void compare(const counts *c, const program *p, const results *got)
{
    double *y = calloc((size_t)CELLS * GENES, sizeof *y), loss = 0.0,
           by_weight[GENES][FACTORS] = {{0}};
    IS_TRUE(y != NULL);
    for (int64_t i = 0; i < CELLS; i++)
        for (int64_t e = c->ptr[i]; e < c->ptr[i + 1]; e++)
            y[i * GENES + c->gene[e]] += (double)c->count[e];
    for (int64_t i = 0; i < CELLS; i++) {
        double each = 0.0, by_factor[FACTORS] = {0};
        float F[FACTORS];
        OK(read_factors(NULL, (int64_t[]){i, 0}, (int64_t[]){1, FACTORS}, F, NULL));
        for (int64_t j = 0; j < GENES; j++) {
            double rate = 0.0;
            const double count = y[i * GENES + j];
            for (int k = 0; k < FACTORS; k++) rate += (double)F[k] * (double)p->weight[j][k];
            each += (count > 0.0 ? count * log(rate) : 0.0) - rate;
            for (int k = 0; k < FACTORS; k++) {
                by_factor[k] += (count / rate - 1.0) * (double)p->weight[j][k];
                by_weight[j][k] += (count / rate - 1.0) * (double)F[k];
            }
        }
        loss += each;
        LE_F64(fabs((double)got->each[i] - each), 1e-4 * (1.0 + fabs(each)));
        for (int k = 0; k < FACTORS; k++)
            LE_F64(fabs((double)got->by_factor[i][k] - by_factor[k]),
                   1e-3 + 1e-4 * fabs(by_factor[k]));
    }
    LE_F64(fabs((double)got->loss - loss), 1e-5 * fabs(loss));
    for (int j = 0; j < GENES; j++)
        for (int k = 0; k < FACTORS; k++)
            LE_F64(fabs((double)got->by_weight[j][k] - by_weight[j][k]),
                   1e-4 * (1.0 + fabs(by_weight[j][k])));
    free(y);
}

TEST(counts_stay_sparse_at_every_budget)
{
    t_random r = t_random_make(6);
    counts *c = calloc(1, sizeof *c);
    program *p = calloc(1, sizeof *p);
    results *whole = calloc(1, sizeof *whole), *other = calloc(1, sizeof *other);
    IS_TRUE(c && p && whole && other);
    make_counts(c, &r);
    for (int threads = 1; threads <= 2; threads++) {
        build(p, c, threads);
        fth_plan_info info, less;
        run(p, 0, threads == 1 ? whole : other, &info);
        if (threads == 1) compare(c, p, whole);
        if (threads == 2) SAME_BYTES(whole, other, sizeof *whole);
        unsigned long long smallest = 0;
        fth_err err = {0};
        fth_limits none = {.memory_bytes = info.foreign_bytes + 1};
        IS_TRUE(fth_plan_make(p->g, p->out, 4, &none, &err) == NULL);
        IS(err.status, FTH_E_NO_FIT);
        EQ_I64(sscanf(err.hint, "would fit: memory_bytes = %llu", &smallest), 1);
        const uint64_t top = info.peak_bytes + info.foreign_bytes;
        const uint64_t budgets[4] = {top / 2, top / 4, top / 16, smallest};
        for (int i = 0; i < 4; i++) {
            if (budgets[i] < smallest) continue;
            memset(other, 0xff, sizeof *other);
            run(p, budgets[i], other, &less);
            SAME_BYTES(whole, other, sizeof *whole);
            LE_F64((double)(less.peak_bytes + less.foreign_bytes), (double)budgets[i]);
            IS_TRUE(less.chunks > 1);
        }
        LE_F64((double)smallest, 0.1 * (double)top); /* entries are cut, too */
        fth_graph_destroy(p->g);
        OK(fth_context_destroy(p->ctx, NULL));
    }
    free(c->gene);
    free(c->count);
    free(c);
    free(p);
    free(whole);
    free(other);
}

/* Other sums over entries keep their blocks, which rows do not end on: they wait for the whole. */
TEST(sums_in_blocks_do_not_follow_the_rows)
{
    t_random r = t_random_make(7);
    counts *c = calloc(1, sizeof *c);
    IS_TRUE(c != NULL);
    make_counts(c, &r);
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 1;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "cell", CELLS);
    fth_axis(g, "factor", FACTORS);
    fth_axis_ragged(g, "entry", "cell", c->ptr);
    const fth_source count = {.kind = "counts",
                              .self = c,
                              .dtype = FTH_F32,
                              .n_axes = 1,
                              .size = {c->ptr[CELLS]},
                              .read = read_counts};
    const fth_source factor = {.kind = "factors",
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {CELLS, FACTORS},
                               .read = read_factors};
    const fth_val y = fth_input(g, "y", FTH_F32, "entry", count);
    const fth_val f = fth_sum(fth_exp(fth_input(g, "F", FTH_F32, "cell factor", factor)), "factor");
    const fth_val wide = fth_cast(fth_mul(fth_spread(f, "entry"), y), FTH_F64);
    const fth_val v = fth_variance(fth_sin(wide), "entry"); /* f64: every order shows */
    double want = 0.0, got = 0.0;
    for (int k = 0; k < 2; k++) {
        const fth_limits limits = {.memory_bytes = k == 0 ? 0 : 256 << 10,
                                   .stream = k == 0 ? NULL : "cell"};
        const fth_sink sink = fth_scalar_sink(FTH_F64, k == 0 ? &want : &got);
        fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
        if (!p) OKE(err.status, &err);
        OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
        fth_plan_destroy(p);
    }
    SAME_BYTES(&want, &got, sizeof want);
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &err), &err);
    free(c->gene);
    free(c->count);
    free(c);
}

/* Two graphs that differ in their row pointers alone: what was decided for the first, whose chunks
 * are light, does not fit the second. */
TEST(other_rows_are_planned_anew)
{
    enum { N = 4096, MOST = 64 * N };
    static int64_t even[N + 1], heavy[N + 1];
    static float value[MOST];
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    for (int64_t i = 0; i < N; i++) {
        even[i + 1] = even[i] + 64;
        heavy[i + 1] = heavy[i] + (i < N / 16 ? 1024 : 0);
    }
    fth_options_default(&opt);
    opt.threads = 1;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    counts c = {.count = value};
    for (int k = 0; k < 2; k++) {
        fth_graph *g = fth_graph_create(ctx);
        fth_axis(g, "cell", N);
        fth_axis_ragged(g, "entry", "cell", k == 0 ? even : heavy);
        const fth_source src = {.kind = "counts",
                                .self = &c,
                                .dtype = FTH_F32,
                                .n_axes = 1,
                                .size = {MOST},
                                .read = read_counts};
        const fth_val x = fth_input(g, "x", FTH_F32, "entry", src);
        const fth_val v = fth_sum(fth_collect(fth_exp(x), "entry"), "cell");
        fth_plan *p = fth_plan_make(g, &v, 1, &(fth_limits){.memory_bytes = 1 << 20}, &err);
        if (!p) OKE(err.status, &err);
        float sum = 0.0f;
        fth_run_report report;
        const fth_sink sink = fth_scalar_sink(FTH_F32, &sum);
        OKE(fth_run(p, &sink, NULL, &report, &err), &err);
        EQ_U64(report.ledger_bytes, report.planned_bytes);
        LE_F64((double)report.ledger_bytes, 1 << 20);
        EQ_F64(sum, (double)MOST);
        fth_plan_destroy(p);
        fth_graph_destroy(g);
    }
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST_MAIN()
