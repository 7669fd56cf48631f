/* test_gradients.c - every gradient against central differences, and the same bits when streamed.
 * seconds: 30
 *
 * Each row of gradient_cases.c builds one operation; the loss is a weighted sum of its result.
 * Differences are extrapolated (Richardson, three steps), which also gives their own error.
 * Complex inputs are moved along both parts: the gradient is dL/dRe + i dL/dIm.
 */
#include "ops/ops.h"
#include "testing/engine/gradient_cases.h"

#include <fathom/samples.h>
#include <math.h>

enum { SAMPLES = 5 };
static const double step = 1e-2;

/* ---- running --------------------------------------------------------------------------------- */

static void open_bench(gc_bench *b)
{
    fth_options opt;
    memset(b, 0, sizeof *b);
    b->r = t_random_make(7);
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    OK(fth_context_create(&b->ctx, &opt, NULL));
    b->g = fth_graph_create(b->ctx);
}

static void start(gc_bench *b)
{
    static const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"s", GC_LONG},
                {"a", 3},
                {"b", 3},
                {"m", 4},
                {"n", 4},
                {"c", 3},
                {"d", 3},
                {"k", 7},
                {"kept", 800},
                {"ab", 6},
                {"ks", GC_LONG + 7},
                {"third", GC_LONG / 3},
                {"half", 3},
                {"y", 5},
                {"x", 6},
                {"ky", 3},
                {"kx", 3},
                {"oy", 3},
                {"ox", 3}};
    open_bench(b);
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
        fth_axis(b->g, axes[i].name, axes[i].size);
}

static void finish(gc_bench *b)
{
    fth_err err = {0};
    fth_graph_destroy(b->g);
    const fth_status s = fth_context_destroy(b->ctx, &err);
    for (int i = 0; i < b->n; i++) free(b->in[i].data);
    for (int i = 0; i < b->n_more; i++) free(b->more[i]);
    OKE(s, &err);
}

/* Memory of doubles; outputs that no kernel computes (other names, inputs) come through write. */
typedef struct place {
    int n_axes;
    int64_t size[FTH_MAX_AXES], element;
    void *data;
} place;

static fth_status put(void *self, const int64_t *lo, const int64_t *n, const void *src,
                      fth_err *err)
{
    (void)err;
    const place *p = self;
    const char *in = src;
    int64_t at[FTH_MAX_AXES] = {0};
    for (;;) {
        int64_t to = 0;
        for (int i = 0; i < p->n_axes; i++) to = to * p->size[i] + lo[i] + at[i];
        memcpy((char *)p->data + to * p->element, in, (size_t)p->element);
        in += p->element;
        int i = p->n_axes - 1;
        while (i >= 0 && ++at[i] == n[i]) at[i--] = 0;
        if (i < 0) return FTH_OK;
    }
}

static fth_sink memory_sink(fth_val v, void *data, place *p)
{
    fth_sink s = {
        .kind = "memory", .dtype = fth_val_dtype(v), .n_axes = fth_val_axes(v), .data = data};
    for (int i = 0; i < s.n_axes; i++) s.size[i] = fth_val_size(v, i);
    *p = (place){.n_axes = s.n_axes, .element = fth_dtype_size(s.dtype), .data = data};
    memcpy(p->size, s.size, sizeof p->size);
    s.self = p;
    s.write = put;
    return s;
}

static double run_loss(fth_plan *p, double *value, const fth_sink *sink)
{
    fth_err err = {0};
    OKE(fth_run(p, sink, NULL, NULL, &err), &err);
    return *value;
}

/* Derivative with respect to one double of an input, and how wrong it may be. */
static double difference(fth_plan *p, double *value, const fth_sink *sink, double *x, double *error)
{
    const double x0 = *x;
    double d[3], size = 0.0;
    for (int i = 0; i < 3; i++) {
        const double h = step / (double)(1 << i);
        *x = x0 + h;
        const double high = run_loss(p, value, sink);
        *x = x0 - h;
        const double low = run_loss(p, value, sink);
        d[i] = (high - low) / (2.0 * h);
        if (fabs(high) > size) size = fabs(high);
    }
    *x = x0;
    const double r1 = (4.0 * d[1] - d[0]) / 3.0, r2 = (4.0 * d[2] - d[1]) / 3.0;
    const double best = (16.0 * r2 - r1) / 15.0;
    *error = fabs(best - r2) + 256.0 * 0x1p-52 * (size + 1.0) / step;
    return best;
}

static bool covered[256]; /* operations seen in the forward parts, by position in ops.def */
static const fth_op *const all_ops[] = {
#define FTH_OP(name, ...) &fth__op_##name,
#define FTH_OP_INNER(name, ...) &fth__op_##name,
#include <fathom/ops.def>
};
enum { N_OPS = (int)(sizeof all_ops / sizeof all_ops[0]) };

static void note_operations(const fth_graph *g)
{
    for (int64_t k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < N_OPS; i++) covered[i] |= g->node[k]->op == all_ops[i];
}

static void compare_differences(gc_bench *b, const char *name, fth_val loss, int n,
                                const int *which, double *const *grad)
{
    fth_err err = {0};
    double value = 0.0;
    place at;
    const fth_sink sink = memory_sink(loss, &value, &at);
    const fth_limits l = {.threads = 1, .sinks = &sink};
    fth_plan *p = fth_plan_make(b->g, &loss, 1, &l, &err);
    OKE(p ? FTH_OK : err.status, &err);
    for (int k = 0; k < n; k++) {
        gc_input *in = &b->in[which[k]];
        for (int s = 0; s < SAMPLES && s < in->count; s++) {
            const int64_t i = in->count <= SAMPLES ? s : t_random_i64(&b->r, 0, in->count - 1);
            double error;
            const double d = difference(p, &value, &sink, &in->data[i], &error), got = grad[k][i];
            if (!(error < 1e-4 * (1.0 + fabs(d))))
                FAIL("%s: the difference itself is uncertain: %g +- %g", name, d, error);
            if (!(fabs(got - d) <= 2.0 * error + 1e-9 * (1.0 + fabs(d))))
                FAIL("%s: gradient %.12g of element %lld of input %d, differences give %.12g +- "
                     "%.2g",
                     name, got, (long long)i, which[k], d, error);
        }
    }
    fth_plan_destroy(p);
}

/* The smallest budget with this streaming axis, from the refusal. */
static uint64_t smallest(fth_graph *g, const fth_val *v, int n, fth_limits l)
{
    fth_err err = {0};
    unsigned long long bytes = 0;
    l.memory_bytes = 1;
    fth_plan *p = fth_plan_make(g, v, n, &l, &err);
    fth_plan_destroy(p);
    if (p) return 1;
    IS(err.status, FTH_E_NO_FIT);
    EQ_I64(sscanf(err.hint, "would fit: memory_bytes = %llu", &bytes), 1);
    return bytes;
}

static void run_into(gc_bench *b, const fth_val *v, int n, const fth_limits *l, double *const *data)
{
    fth_err err = {0};
    fth_sink sinks[GC_INPUTS];
    place at[GC_INPUTS];
    fth_limits limits = *l;
    for (int i = 0; i < n; i++) sinks[i] = memory_sink(v[i], data[i], &at[i]);
    limits.sinks = sinks;
    fth_plan *p = fth_plan_make(b->g, v, n, &limits, &err);
    OKE(p ? FTH_OK : err.status, &err);
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
}

static void check_streamed(gc_bench *b, const char *name, const char *stream, const fth_val *grad,
                           int n, double *const *want, const gc_input *const *in)
{
    double *got[GC_INPUTS];
    for (int i = 0; i < n; i++) got[i] = calloc((size_t)in[i]->count + 1, sizeof(double));
    for (int threads = 1; threads <= 2; threads++) {
        fth_limits l = {.threads = threads, .stream = stream};
        fth_sink sinks[GC_INPUTS];
        place at[GC_INPUTS];
        for (int i = 0; i < n; i++) sinks[i] = memory_sink(grad[i], got[i], &at[i]);
        l.sinks = sinks;
        l.memory_bytes = smallest(b->g, grad, n, l);
        run_into(b, grad, n, &l, got);
        for (int i = 0; i < n; i++)
            if (memcmp(want[i], got[i], (size_t)in[i]->count * sizeof(double)) != 0)
                FAIL("%s: gradient %d streamed over '%s' with %d threads has other bits", name, i,
                     stream, threads);
    }
    for (int i = 0; i < n; i++) free(got[i]);
}

/* FTH_TEST_CASE=name runs only that row. */
static bool skipped(const char *name)
{
    const char *only = getenv("FTH_TEST_CASE");
    return only && strcmp(name, only) != 0;
}

/* The sample of ops.def, in a batch. */
static int sample_now;
static fth_val c_sample(gc_bench *b)
{
    const fth_val x = gc_real_in(b, "batches i j", -1, 1);
    return fth_sample_build(b->g, sample_now, x);
}

static void check_case(const char *name, fth_val (*build)(gc_bench *b), const char *stream)
{
    gc_bench b;
    if (skipped(name)) return;
    if (build == c_sample) {
        open_bench(&b);
        IS_TRUE(fth_axis(b.g, "batches", 3) && fth_samples_axes(b.g, 6));
    } else {
        start(&b);
    }
    const fth_val y = build(&b);
    const fth_val loss = gc_loss_of(&b, y);
    note_operations(b.g);
    fth_val wrt[GC_INPUTS], grad[GC_INPUTS];
    const gc_input *in[GC_INPUTS];
    double *data[GC_INPUTS];
    int n = 0, which[GC_INPUTS];
    for (int i = 0; i < b.n; i++)
        if (!b.in[i].fixed) {
            wrt[n] = b.in[i].v;
            in[n] = &b.in[i];
            data[n] = calloc((size_t)b.in[i].count + 1, sizeof(double));
            which[n++] = i;
        }
    fth_err err = {0};
    if (fth_grad(loss, n, wrt, grad) != FTH_OK || fth_graph_check(b.g, &err) != FTH_OK) {
        char text[2048];
        fth_graph_check(b.g, &err);
        fth_err_format(&err, text, sizeof text);
        FAIL("%s: %s", name, text);
    }
    run_into(&b, grad, n, &(fth_limits){.threads = 1}, data);
    compare_differences(&b, name, loss, n, which, data);
    check_streamed(&b, name, stream ? stream : "s", grad, n, data, in);
    for (int i = 0; i < n; i++) free(data[i]);
    finish(&b);
}

/* ---- cases ----------------------------------------------------------------------------------- */

typedef struct ew_row {
    const char *text;
    int arity;
    const char *real, *complex, *d[3];
} ew_row;
static const ew_row ew_rows[] = {
#define FTH_EW(name, text, arity, result, b, i, r, c, dx, dy, dz)                                  \
    {text, arity, #r, #c, {#dx, #dy, #dz}},
#include <fathom/elementwise.def>
#undef FTH_EW
};
static fth_ew ew_now;

static fth_val ew_first(gc_bench *b)
{
    switch ((int)ew_now) {
    case FTH_EW_ABS:
    case FTH_EW_SIGN: return gc_away_in(b, "s a");
    case FTH_EW_MOD: return gc_real_in(b, "s a", 1.8, 1.9);
    case FTH_EW_SQRT:
    case FTH_EW_RSQRT:
    case FTH_EW_RECIP:
    case FTH_EW_LOG:
    case FTH_EW_LOG1P:
    case FTH_EW_LGAMMA:
    case FTH_EW_DIGAMMA:
    case FTH_EW_POW: return gc_real_in(b, "s a", 0.7, 2.0);
    case FTH_EW_ATAN2: return gc_away_in(b, "s a");
    case FTH_EW_MIN:
    case FTH_EW_MAX: return gc_ranked_in(b, "s a");
    default: return gc_real_in(b, "s a", -1.0, 1.0);
    }
}

/* The second operand is smaller, so that its gradient is a sum over the long axis. */
static fth_val ew_second(gc_bench *b)
{
    switch ((int)ew_now) {
    case FTH_EW_DIV: return gc_real_in(b, "a", 0.8, 1.5);
    case FTH_EW_MOD: return gc_real_in(b, "a", 0.71, 0.78);
    case FTH_EW_MIN:
    case FTH_EW_MAX: { /* ranks lie 0.2 apart: between them */
        const fth_val v = gc_real_in(b, "a", 0.0, 0.0);
        for (int i = 0; i < 3; i++) b->in[b->n - 1].data[i] = 0.3 * i - 0.35;
        return v;
    }
    default: return gc_real_in(b, "a", 0.4, 1.4);
    }
}

static fth_val ew_real(gc_bench *b)
{
    if (ew_now == FTH_EW_SELECT) {
        const fth_val cond = gc_other_in(b, FTH_BOOL, "s", 2);
        return fth_select(cond, gc_real_in(b, "s a", -1, 1), gc_real_in(b, "s", -1, 1));
    }
    const fth_val x = ew_first(b);
    if (ew_rows[ew_now].arity == 1) return fth_map1(ew_now, x);
    if (ew_rows[ew_now].arity == 2) return fth_map2(ew_now, x, ew_second(b));
    return fth_map3(ew_now, x, ew_second(b), gc_real_in(b, "a s", -1.0, 1.0));
}

static fth_val ew_complex(gc_bench *b)
{
    if (ew_now == FTH_EW_SELECT)
        return fth_select(gc_other_in(b, FTH_BOOL, "s", 2), gc_complex_in(b, "s a"),
                          gc_complex_in(b, "s"));
    const fth_val x = gc_complex_in(b, "s a");
    if (ew_rows[ew_now].arity == 1) return fth_map1(ew_now, x);
    if (ew_rows[ew_now].arity == 2) return fth_map2(ew_now, x, gc_complex_in(b, "a"));
    return fth_map3(ew_now, x, gc_complex_in(b, "a"), gc_complex_in(b, "s a"));
}

static bool flows(const ew_row *r)
{
    bool any = false;
    for (int i = 0; i < 3; i++) any |= strcmp(r->d[i], "NO") != 0;
    return any;
}

TEST(elementwise)
{
    char name[64];
    int n = 0;
    for (int i = 0; i < FTH_EW_COUNT; i++) {
        const ew_row *r = &ew_rows[i];
        ew_now = (fth_ew)i;
        snprintf(name, sizeof name, "%s of reals", r->text);
        if (flows(r) && strcmp(r->real, "NO") != 0) check_case(name, ew_real, NULL), n++;
        snprintf(name, sizeof name, "%s of complex numbers", r->text);
        if (flows(r) && strcmp(r->complex, "NO") != 0) check_case(name, ew_complex, NULL), n++;
    }
    printf("%d elementwise gradients\n", n);
}

static void check_sample(int i)
{
    sample_now = i;
    check_case(fth_sample_at(i)->name, c_sample, "batches");
}

static const fth_op *op_of(const fth_sample *row)
{
    for (int i = 0; i < N_OPS; i++)
        if (strcmp(all_ops[i]->name, row->op) == 0) return all_ops[i];
    return NULL;
}

/* Rows of gradient_cases.c, and the samples of the operations that have no row there. */
TEST(operations)
{
    const int n = gc_n_rows;
    for (int i = 0; i < n; i++) check_case(gc_rows[i].name, gc_rows[i].build, gc_rows[i].stream);
    for (int i = 0; fth_sample_at(i); i++) {
        const fth_sample *row = fth_sample_at(i);
        for (int k = 0; k < N_OPS; k++)
            if (all_ops[k] == op_of(row) && all_ops[k]->vjp && !covered[k]) check_sample(i);
    }
    for (int i = 0; i < N_OPS && !getenv("FTH_TEST_CASE"); i++)
        if (all_ops[i]->vjp && !covered[i])
            FAIL("no row of the table has the operation %s", all_ops[i]->name);
}

/* The way of those that have no row, tried on some that have one. */
TEST(samples)
{
    static const char *const some[] = {"gather", "pad", "flip", "upsample", "dot", "window"};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++)
        for (int i = 0; fth_sample_at(i); i++)
            if (strcmp(fth_sample_at(i)->name, some[k]) == 0) check_sample(i);
}

/* An operation of a user who wrote no gradient. */
static fth_status copy_shape(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}
static fth_status copy_run(const fth_call *call)
{
    (void)call;
    return FTH_OK;
}
static const fth_op no_gradient = {.name = "opaque", .infer = copy_shape, .run = copy_run};

static void refused(fth_val (*build)(gc_bench *b), const char *part)
{
    gc_bench b;
    char text[2048], line[64];
    fth_err err = {0};
    start(&b);
    const fth_val y = build(&b);
    const fth_val loss = gc_loss_of(&b, y), wrt = b.in[0].v;
    fth_val grad;
    IS(fth_grad(loss, 1, &wrt, &grad), FTH_E_GRAPH_GRADIENT);
    IS(fth_graph_check(b.g, &err), FTH_E_GRAPH_GRADIENT);
    fth_err_format(&err, text, sizeof text);
    HAS(text, part);
    snprintf(line, sizeof line, "test_gradients.c:%d", fth__val_node(y)->site.line);
    HAS(text, line);
    IS_TRUE(!fth_val_ok(grad));
    finish(&b);
}

static fth_val n_custom(gc_bench *b)
{
    const fth_val x = gc_real_in(b, "s a", -1, 1);
    return fth_custom(b->g, &no_gradient, 1, &x, NULL, 0);
}
static fth_val n_scan(gc_bench *b)
{
    return fth_scan(FTH_RED_MAX, gc_real_in(b, "s a", -1, 1), "s", false, false);
}
static fth_val n_trigamma(gc_bench *b)
{
    return fth_trigamma(gc_real_in(b, "s a", 1, 2));
}

TEST(no_gradient_is_an_error_with_its_line)
{
    refused(n_custom, "opaque");
    refused(n_scan, "scan");
    refused(n_trigamma, "trigamma");
}

/* |x| bends and a direction turns: what the gradient of a gradient is made of. At zero neither has
 * a slope, and nothing but zeros comes back. */
TEST(a_direction_of_nothing_has_no_slope)
{
    gc_bench b;
    start(&b);
    const fth_val x = gc_complex_in(&b, "a");
    for (int i = 0; i < 2; i++) b.in[0].data[i] = 0.0;
    const fth_val loss = gc_loss_of(&b, fth_sign(x));
    fth_val grad;
    double got[8] = {1, 1, 1, 1, 1, 1, 1, 1}, *data = got;
    OK(fth_grad(loss, 1, &x, &grad));
    run_into(&b, &grad, 1, &(fth_limits){.threads = 1}, &data);
    EQ_F64(got[0], 0.0);
    EQ_F64(got[1], 0.0);
    IS_TRUE(got[2] != 0.0 && got[2] == got[2]);
    finish(&b);
}

TEST(steps_have_no_slope)
{
    static const fth_ew flat[] = {FTH_EW_FLOOR, FTH_EW_CEIL, FTH_EW_ROUND, FTH_EW_SIGN};
    for (int i = 0; i < 4; i++) {
        gc_bench b;
        start(&b);
        const fth_val x = gc_away_in(&b, "a");
        const fth_val loss = gc_loss_of(&b, fth_map1(flat[i], x));
        fth_val grad;
        double zero[4] = {1, 1, 1, 1}, *data = zero;
        OK(fth_grad(loss, 1, &x, &grad));
        run_into(&b, &grad, 1, &(fth_limits){.threads = 1}, &data);
        for (int k = 0; k < 3; k++) EQ_F64(zero[k], 0.0);
        finish(&b);
    }
}

TEST_MAIN()
