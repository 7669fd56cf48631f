/* op_harness.c - evaluates nodes by their kernels, and tries to catch kernels that cheat.
 *
 * The promises are those of src/trial, which users have as fth_op_check: one harness for both.
 */
#include "testing/engine/op_harness.h"

#include "cpu/backend.h"
#include "graph/graph.h"
#include "graph/program.h"
#include "mem/heap.h"
#include "ops/ops.h"
#include "testing/engine/op_device.h"
#include "testing/full.h"
#include "trial/check.h"

#include <math.h>

enum { GUARD = 0xA5, MARGIN = 3 };

static int n_cuts = 8;

void t_cuts(int n)
{
    n_cuts = n;
}

static bool same_nans;

void t_same_nans(bool same)
{
    same_nans = same;
}

static bool all_exact;

void t_exact(bool exact)
{
    all_exact = exact;
}

/* ---- graphs and inputs ---------------------------------------------------------------------- */

fth_graph *t_graph(const char *axes)
{
    fth_mem_options opt;
    fth_mem *mem = NULL;
    fth_mem_options_default(&opt);
    OK(fth_mem_create(&mem, &opt, NULL));
    fth_context *ctx = fth__heap_alloc(mem, sizeof *ctx);
    ctx->mem = mem;
    ctx->threads = 1;
    fth_graph *g = fth_graph_create(ctx);
    char name[64];
    long long size;
    for (int n = 0; sscanf(axes, " %63[^= ]=%lld%n", name, &size, &n) == 2; axes += n)
        IS_TRUE(fth_axis(g, name, size));
    return g;
}

static bool is_noise(const fth_source *s)
{
    return strcmp(s->kind, "noise") == 0;
}

void t_graph_free(fth_graph *g)
{
    fth_context *ctx = g->ctx;
    fth_mem *mem = ctx->mem;
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (is_noise(&g->input[i].source)) free(g->input[i].source.data);
    fth_graph_destroy(g);
    fth__heap_free(mem, ctx);
    fth_err err = {0};
    const fth_status s = fth_mem_destroy(mem, &err);
    t_status(s, FTH_OK, "fth_mem_destroy", &err, T_AT);
}

static fth_val input(fth_graph *g, const char *kind, const char *name, fth_dtype dtype,
                     const char *axes, void *data)
{
    fth_source s = {.kind = kind, .dtype = dtype, .data = data};
    fth_axis_id id[FTH_MAX_AXES];
    OK(fth_axes_parse(g, axes, &s.n_axes, id, NULL));
    for (int i = 0; i < s.n_axes; i++) s.size[i] = g->axis[id[i]]->size;
    return fth_input(g, name, dtype, axes, s);
}

fth_val t_input(fth_graph *g, const char *name, fth_dtype dtype, const char *axes, const void *data)
{
    union {
        const void *in;
        void *out;
    } cast = {data};
    return input(g, "memory", name, dtype, axes, cast.out);
}

fth_val t_noise(fth_graph *g, const char *name, fth_dtype dtype, const char *axes, t_random *r)
{
    fth_axis_id id[FTH_MAX_AXES];
    int n;
    int64_t count = 1;
    OK(fth_axes_parse(g, axes, &n, id, NULL));
    for (int i = 0; i < n; i++) count *= g->axis[id[i]]->size;
    void *data = malloc((size_t)(count * fth_dtype_size(dtype)) + 1);
    for (int64_t i = 0; i < count; i++) {
        if (fth_dtype_is_int(dtype))
            t_put(dtype, data, i, (double)t_random_i64(r, t_lowest(dtype) < 0 ? -20 : 0, 20), 0.0);
        else if (dtype == FTH_BOOL)
            t_put(dtype, data, i, (double)t_random_i64(r, 0, 1), 0.0);
        else
            t_put(dtype, data, i, t_random_normal(r), t_random_normal(r));
    }
    return input(g, "noise", name, dtype, axes, data);
}

fth_val t_fused(const fth_val in[2], const char *over)
{
    const uint8_t t = (uint8_t)fth_val_dtype(in[0]);
    const fth_desc *d = fth__val_desc(in[0]);
    fth__program p;
    memset(&p, 0, sizeof p);
    p.n_axes = d->n_axes;
    memcpy(p.axis, d->axis, sizeof p.axis);
    memcpy(p.size, d->size, sizeof p.size);
    p.n_in = p.n_instr = 2;
    p.n_reg = 4;
    for (int i = 0; i < 4; i++) p.reg_dtype[i] = t;
    p.instr[0] = (fth__instr){FTH_EW_ADD, t, t, 2, {0, 1, -1}};
    p.instr[1] = (fth__instr){FTH_EW_MUL, t, t, 3, {2, 0, -1}};
    p.n_out = 1;
    p.out_reg[0] = 3;
    p.tail_dim = over ? fth_desc_find(d, fth_axis_find(in[0].graph, over)) : -1;
    p.tail_red = FTH_RED_SUM;
    return fth_custom(in[0].graph, &fth__op_fused, 2, in, &p, sizeof p);
}

void *t_data(fth_val v)
{
    const fth__input_attr *attr = fth__val_node(v)->attr;
    return v.graph->input[attr->index].source.data;
}

int64_t t_count(fth_val v)
{
    return fth_desc_count(fth__val_desc(v));
}

/* ---- whole graphs ------------------------------------------------------------------------------
 */

typedef struct eval {
    fth_graph *g;
    char **data; /* per value; NULL: not computed */
    bool check;
    fth_err *err;
} eval;

static size_t bytes_of(const fth_desc *d)
{
    return (size_t)(fth_desc_count(d) * fth_dtype_size(d->dtype));
}

/* How many cuttings: fewer where each takes long. */
static int cuttings(const fth__trial *t)
{
    const int most = !t->elsewhere || !t_slowed() ? n_cuts : t_full() ? 3 : 2;
    return n_cuts < most ? n_cuts : most;
}

/* Element i has a NaN part there whose bits are others here. */
static bool other_nan(fth_dtype t, const char *want, const char *got, int64_t i)
{
    if (!same_nans || (!fth_dtype_is_real(t) && !fth_dtype_is_complex(t))) return false;
    const size_t size = (size_t)fth_dtype_size(t), parts = fth_dtype_is_complex(t) ? 2 : 1,
                 part = size / parts;
    const fth_c128 v = {t_get(t, want, i), t_get_im(t, want, i)};
    const char *a = want + (size_t)i * size, *b = got + (size_t)i * size;
    return (isnan(v.re) && memcmp(a, b, part) != 0) ||
           (parts == 2 && isnan(v.im) && memcmp(a + part, b + part, part) != 0);
}

/* Near the reference in the scale of its numbers; integers, and what is said to be exact, equal. */
static void check_near(const fth_node *node, char **want, char **got, bool exact, const char *what)
{
    static const double tol[FTH_DTYPE_COUNT] = {
        [FTH_F16] = 2e-3,  [FTH_BF16] = 2e-2, [FTH_F32] = 1e-5,
        [FTH_F64] = 1e-12, [FTH_C64] = 1e-5,  [FTH_C128] = 1e-12};
    for (int k = 0; k < node->n_out; k++) {
        const fth_dtype t = node->out[k].dtype;
        double scale = 1.0;
        for (int64_t i = 0; i < fth_desc_count(&node->out[k]); i++)
            if (isfinite(t_get(t, want[k], i))) scale = fmax(scale, fabs(t_get(t, want[k], i)));
        const double most = exact ? 0.0 : tol[t] * scale;
        for (int64_t i = 0; i < fth_desc_count(&node->out[k]); i++) {
            const fth_c128 a = {t_get(t, want[k], i), t_get_im(t, want[k], i)},
                           b = {t_get(t, got[k], i), t_get_im(t, got[k], i)};
            const bool same =
                (a.re == b.re || (isnan(a.re) && isnan(b.re))) && (a.im == b.im || isnan(a.im));
            if (other_nan(t, want[k], got[k], i))
                FAIL("%s %s: element %lld of output %d (%s) is another NaN than the reference's",
                     what, node->op->name, (long long)i, k, fth_dtype_name(t));
            if (!same && !(fabs(a.re - b.re) <= most && fabs(a.im - b.im) <= most))
                FAIL("%s %s: element %lld of output %d (%s) is %.17g, the reference gives %.17g",
                     what, node->op->name, (long long)i, k, fth_dtype_name(t), b.re, a.re);
        }
    }
}

static fth_status on_device(void *self, fth_call *call, const t_span *in, const t_span *out,
                            const t_span *state)
{
    call->threads = 1;
    return t_device_run(self, call, in, out, state);
}

/* Every promise of one kernel, whose whole result is in t->out: `cuts` ways to cut it. */
static void check_kernel(fth__trial *t, const char *what, int cuts)
{
    fth_err err = {0};
    int64_t joins = 0;
    if (fth__check_pieces(t, cuts, &err) != FTH_OK || fth__check_joins(t, &joins, &err) != FTH_OK)
        FAIL("%s %s: %s", what, t->node->op->name, err.text);
}

/* Another kernel than the reference, whose trial `t` is, here or on the device. */
static void check_variant(fth__trial t, const char *what)
{
    const fth_node *node = t.node;
    fth_err err = {0};
    char *out[FTH_MAX_OUT], **want = t.out;
    t.out = out;
    for (int k = 0; k < node->n_out; k++) {
        out[k] = malloc(bytes_of(&node->out[k]) + 1);
        memset(out[k], GUARD, bytes_of(&node->out[k]));
    }
    OKE(fth__check_whole(&t, &err), &err);
    check_near(node, want, out, t.elsewhere && (all_exact || t_device_exact(node)), what);
    check_kernel(&t, what, cuttings(&t));
    for (int k = 0; k < node->n_out; k++) free(out[k]);
}

static void check_cpu(fth__trial t)
{
    const fth_kernel *kernel = fth__cpu_backend.find(t.node);
    if (!kernel) return;
    t.run = kernel->run;
    t.scratch = kernel->scratch;
    check_variant(t, "fast");
}

static bool take_device(fth__trial *t)
{
    union {
        const fth_kernel *kernel;
        void *self;
    } found = {t_device_find(t->node)};
    if (!found.kernel) return false;
    t->elsewhere = on_device;
    t->self = found.self;
    return true;
}

/* The reference has failed with this: the device must say the same. */
static void check_failure(fth__trial t, fth_status status, const fth_err *want)
{
    fth_err err = {0};
    if (!take_device(&t)) return;
    t_status(fth__trial_run(&t, &err), status, "the call on the device", &err, T_AT);
    EQ_STR(err.text, want->text);
}

static fth_status compute(eval *e, uint32_t id);

static fth_status compute_node(eval *e, const fth_node *node)
{
    char *in[FTH_MAX_IN], *out[FTH_MAX_OUT];
    for (int i = 0; i < node->n_in; i++) {
        FTH_TRY(compute(e, node->in_val[i].id));
        in[i] = e->data[node->in_val[i].id];
    }
    for (int k = 0; k < node->n_out; k++) {
        out[k] = malloc(bytes_of(&node->out[k]) + 1);
        memset(out[k], GUARD, bytes_of(&node->out[k]));
        e->data[node->out_val[k].id] = out[k];
    }
    t_random r = t_random_make(0);
    fth__trial t = {.node = node,
                    .mem = e->g->mem,
                    .run = node->op->run,
                    .scratch = node->op->scratch,
                    .in = in,
                    .out = out,
                    .views = true,
                    .garbage = GUARD,
                    .most = MARGIN,
                    .seed = r.state};
    for (int k = 0; k < node->n_out; k++) t.want[k] = true;
    fth__trial_whole(&t);
    const fth_status s = fth__trial_run(&t, e->err);
    if (s != FTH_OK) check_failure(t, s, e->err);
    if (s != FTH_OK || !e->check) return s;
    if (node->n_in > 0 && !t_device_only()) {
        fth_err err = {0};
        OKE(fth__check_said(node, t.mem, &err), &err);
        OKE(fth__check_whole(&t, &err), &err);
        check_kernel(&t, "reference", cuttings(&t));
        check_cpu(t);
    }
    if (take_device(&t)) check_variant(t, "device");
    return FTH_OK;
}

static fth_status compute(eval *e, uint32_t id)
{
    const fth_node *node = fth__val_node(fth__val_at(e->g, id));
    if (node->op == &fth__op_input) {
        e->data[id] = t_data(fth__val_at(e->g, id));
        return FTH_OK;
    }
    return e->data[id] ? FTH_OK : compute_node(e, node);
}

static fth_status evaluate(fth_val v, void *out, bool check, fth_err *err)
{
    eval e = {.g = v.graph, .check = check, .err = err};
    e.data = calloc((size_t)v.graph->n_values, sizeof *e.data);
    const fth_status s = compute(&e, v.id);
    if (s == FTH_OK) memcpy(out, e.data[v.id], bytes_of(fth__val_desc(v)));
    for (int64_t i = 1; i < v.graph->n_values; i++)
        if (fth__val_node(fth__val_at(e.g, (uint32_t)i))->op != &fth__op_input) free(e.data[i]);
    free(e.data);
    return s;
}

void t_eval(fth_val v, void *out)
{
    fth_err err = {0};
    MADE(v);
    OKE(evaluate(v, out, true, &err), &err);
}

fth_status t_try(fth_val v, void *out, fth_err *err)
{
    MADE(v);
    return evaluate(v, out, false, err);
}

void t_eval_f64(fth_val v, double *out)
{
    MADE(v);
    void *data = malloc(bytes_of(fth__val_desc(v)) + 1);
    t_eval(v, data);
    for (int64_t i = 0; i < t_count(v); i++) out[i] = t_get(fth_val_dtype(v), data, i);
    free(data);
}

/* ---- checks ------------------------------------------------------------------------------------
 */

void t_refused_(fth_graph *g, fth_status status, const char *part, t_place at)
{
    fth_err err = {0};
    t_status(fth_graph_check(g, &err), status, "fth_graph_check", &err, at);
    char text[4096];
    fth_err_format(&err, text, sizeof text);
    t_has(text, part, "the error", at);
    t_true(err.origin.file != NULL && err.origin.line > 0, "the error names a line", at);
}

void t_made_(fth_val v, t_place at)
{
    fth_err err = {0};
    if (fth_val_ok(v)) return;
    t_status(v.graph ? fth_graph_check(v.graph, &err) : FTH_E_GRAPH_VALUE, FTH_OK, "the builder",
             &err, at);
    t_fail(at, "the value is poisoned, but the graph has no error");
}

void t_shape_(fth_val v, const char *text, t_place at)
{
    char shape[384], got[512];
    t_made_(v, at);
    snprintf(got, sizeof got, "%s %s", fth_dtype_name(fth_val_dtype(v)),
             fth__desc_format(v.graph, fth__val_desc(v), shape, sizeof shape));
    t_eq_str(got, text, "shape", at);
}

static double loss_at(fth_val loss, double *x, double value)
{
    const double keep = *x;
    double out;
    fth_err err = {0};
    *x = value;
    const fth_status s = t_try(loss, &out, &err);
    *x = keep;
    OKE(s, &err);
    return out;
}

void t_grad_(fth_val loss, fth_val wrt, double tol, t_place at)
{
    fth_val grad;
    t_made_(loss, at);
    const fth_status s = fth_grad(loss, 1, &wrt, &grad);
    fth_err err = {0};
    (void)fth_graph_check(loss.graph, &err);
    t_status(s, FTH_OK, "fth_grad", &err, at);
    const int64_t per = fth_val_dtype(wrt) == FTH_C128 ? 2 : 1, n = t_count(wrt) * per;
    double *got = malloc((size_t)n * sizeof *got + 1), *x = t_data(wrt);
    t_eval(grad, got);
    for (int64_t i = 0; i < n && !t_device_only(); i++) {
        const double h = 1e-4;
        const double d1 =
            (loss_at(loss, x + i, x[i] + h) - loss_at(loss, x + i, x[i] - h)) / (2 * h);
        const double d2 =
            (loss_at(loss, x + i, x[i] + 2 * h) - loss_at(loss, x + i, x[i] - 2 * h)) / (4 * h);
        const double want = (4 * d1 - d2) / 3;
        if (!(fabs(got[i] - want) <= tol * (1 + fabs(want))))
            t_fail(at, "gradient %lld is %.12g, differences give %.12g", (long long)i, got[i],
                   want);
    }
    free(got);
}
