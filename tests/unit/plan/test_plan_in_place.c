/* seconds: 5
 * test_plan_in_place.c - operations that say which inputs their outputs are the new values of.
 *
 * Assigned to parameters they write into them, at the end of a plan: no second block, the bytes of
 * the same update in plain operations, nothing changed when a run fails. Also operations with very
 * many operands, and lengths that only the data know.
 */
#include "testing/engine/host_device.h"
#include "testing/full.h"
#include "testing/job/plan_stage.h"

enum { PARAMS = 3, BYTES = ROWS * COLS * 4, GRAD = PARAMS };

typedef struct model {
    fth_val v[PARAMS], x;
    fth_tensor *t[PARAMS], *x_t;
} model;

static void fill(fth_tensor *t, int64_t by)
{
    float *f = fth_tensor_data(t);
    for (int64_t i = 0; i < ROWS * COLS; i++) f[i] = (float)(i * by % 1009) / 1009.0f;
}

static void open_model(stage *s, model *m)
{
    fth_err err = {0};
    fth_mem *mem = fth_context_mem(s->ctx);
    const int64_t size[2] = {ROWS, COLS};
    for (int i = 0; i < PARAMS; i++) {
        const char name[2] = {"pmv"[i], 0};
        OKE(fth_tensor_create(&m->t[i], mem, name, FTH_F32, 2, size, &err), &err);
        fill(m->t[i], 7919 + i);
        m->v[i] = fth_param(s->g, name, "row col", m->t[i]);
    }
    OKE(fth_tensor_create(&m->x_t, mem, "x", FTH_F32, 2, size, &err), &err);
    fill(m->x_t, 104729);
    m->x = fth_param(s->g, "x", "row col", m->x_t);
}

static void close_model(model *m)
{
    for (int i = 0; i < PARAMS; i++) fth_tensor_release(m->t[i]);
    fth_tensor_release(m->x_t);
}

static void open_on(stage *s, bool device, int threads)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.device_memory_bytes = 64 << 20;
    if (device) {
        opt.backend = &t_host_backend;
        opt.device = "cuda";
    }
    *s = (stage){0};
    OKE(fth_context_create(&s->ctx, &opt, &err), &err);
    s->g = fth_graph_create(s->ctx);
    fth_axis(s->g, "row", ROWS);
    fth_axis(s->g, "col", COLS);
}

/* ---- an update as one operation ---- */

/* `rows`: columns of a row belong together. `twice`: p once more, whole, as the last input. */
typedef struct step_attr {
    int32_t rows, twice;
} step_attr;

static fth_status step_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = PARAMS;
    for (int o = 0; o < PARAMS; o++) node->out[o] = node->in[o];
    return FTH_OK;
}

static void step_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const step_attr *a = node->attr;
    const bool whole = in > GRAD || (a->rows && dim == 1);
    *out = whole ? (fth_relation){.along = FTH_WHOLE, .out_dim = -1}
                 : (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static int step_update_of(const fth_node *node, int out)
{
    (void)node;
    return out;
}

static float *element(const fth_tile *t, int64_t row, int64_t col)
{
    return (float *)t->data + (row - t->origin[0]) * t->stride[0] +
           (col - t->origin[1]) * t->stride[1];
}

/* What the first column adds to the gradient of a row, of p before it changes. */
static float of_row(const fth_call *call, int64_t row)
{
    const step_attr *a = call->node->attr;
    float first = a->rows ? *element(&call->in[0], row, 0) : 0.0f;
    if (a->twice) first += *element(&call->in[GRAD + 1], ROWS - 1 - row, 0);
    return first;
}

static fth_status step_run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    for (int64_t i = 0; i < out->extent[0]; i++) {
        const int64_t row = out->origin[0] + i;
        const float first = of_row(call, row);
        for (int64_t j = 0; j < out->extent[1]; j++) {
            const int64_t col = out->origin[1] + j;
            float old[GRAD + 1];
            for (int k = 0; k <= GRAD; k++) old[k] = *element(&call->in[k], row, col);
            const float g = old[GRAD] + first, m = old[1] + g, v = old[2] + g * g;
            const float now[PARAMS] = {old[0] - m * v, m, v};
            for (int o = 0; o < PARAMS; o++)
                if (call->out[o].data) *element(&call->out[o], row, col) = now[o];
        }
    }
    return FTH_OK;
}

static const fth_op step_op = {.name = "step",
                               .brief = "new p, m and v from their gradient",
                               .infer = step_infer,
                               .relation = step_relation,
                               .update_of = step_update_of,
                               .run = step_run};

static void add_step(const model *m, fth_val g, step_attr attr, fth_val outs[PARAMS])
{
    fth_graph *graph = m->x.graph;
    fth_val in[GRAD + 2] = {m->v[0], m->v[1], m->v[2], g};
    if (attr.twice) {
        fth_axis_like(graph, "other", "row");
        in[GRAD + 1] = fth_rename(m->v[0], "row", "other");
    }
    const fth_val v = fth_custom(graph, &step_op, GRAD + 1 + attr.twice, in, &attr, sizeof attr);
    for (int o = 0; o < PARAMS; o++) outs[o] = fth_assign(m->v[o], o ? fth_out(v, o) : v);
}

/* The same in plain operations. */
static void add_plain(const model *m, fth_val g, step_attr attr, fth_val outs[PARAMS])
{
    fth_graph *graph = m->x.graph;
    fth_axis(graph, "one", 1);
    fth_val first = fth_sum(fth_slice(m->v[0], "col", 0, "one"), "one");
    if (attr.twice) first = fth_add(first, fth_flip(first, "row"));
    if (attr.rows) g = fth_add(g, first);
    const fth_val m2 = fth_add(m->v[1], g), v2 = fth_add(m->v[2], fth_sqr(g));
    outs[0] = fth_assign(m->v[0], fth_sub(m->v[0], fth_mul(m2, v2)));
    outs[1] = fth_assign(m->v[1], m2);
    outs[2] = fth_assign(m->v[2], v2);
}

typedef void add_fn(const model *m, fth_val g, step_attr attr, fth_val outs[PARAMS]);

/* Of a call on the device that pretends, which has more than the loops want. */
static uint64_t workspace(bool device, int inputs)
{
    return device ? 8 * (uint64_t)((ROWS + COLS) * inputs) : 0;
}

typedef struct how {
    bool device;
    int threads;
    step_attr attr;
    bool sums;     /* the gradient is a running sum, else x itself */
    uint64_t more; /* bytes beside the parameters; 0: as many as it wants */
} how;

static void copy_params(model *m, float *all)
{
    for (int i = 0; i < PARAMS; i++) {
        OK(fth_tensor_sync(m->t[i], NULL));
        memcpy((char *)all + (size_t)i * BYTES, fth_tensor_view(m->t[i]), BYTES);
    }
}

/* What two runs leave in the parameters; the memory belongs to the caller. NULL: no room. */
static float *after_two_runs(const how *h, add_fn *add, fth_plan_info *info)
{
    stage s;
    model m;
    fth_err err = {0};
    fth_val outs[PARAMS];
    open_on(&s, h->device, h->threads);
    open_model(&s, &m);
    add(&m, h->sums ? fth_cumsum(fth_mul(m.x, m.v[1]), "col") : m.x, h->attr, outs);
    const uint64_t bytes = h->more ? 4 * (uint64_t)BYTES + (64 << 10) + h->more : 0;
    const fth_limits limits =
        h->device ? (fth_limits){.device_bytes = bytes} : (fth_limits){.memory_bytes = bytes};
    fth_plan *plan = fth_plan_make(s.g, outs, PARAMS, &limits, &err);
    if (!plan && err.status != FTH_E_NO_FIT) OKE(err.status, &err);
    if (plan) fth_plan_get_info(plan, info);
    for (int i = 0; plan && i < 2; i++) {
        fth_run_report report;
        OKE(fth_run(plan, (const fth_sink[PARAMS]){{0}}, NULL, &report, &err), &err);
        EQ_U64(report.ledger_bytes, report.planned_bytes);
    }
    float *all = plan ? malloc(PARAMS * (size_t)BYTES) : NULL;
    if (plan) copy_params(&m, all);
    fth_plan_destroy(plan);
    close_model(&m);
    close_stage(&s);
    return all;
}

TEST(an_operation_updates_parameters_where_they_lie)
{
    for (int device = 0; device < 2; device++)
        for (int threads = 1; threads <= 3; threads++)
            for (int rows = 0; rows < 2; rows++) {
                const how h = {.device = device, .threads = threads, .attr = {rows, 0}};
                fth_plan_info plain, info;
                float *want = after_two_runs(&h, add_plain, &plain),
                      *got = after_two_runs(&h, add_step, &info);
                SAME_BYTES(want, got, PARAMS * (size_t)BYTES);
                LE_F64(info.peak_bytes, workspace(device, GRAD + 1) + 1024);
                free(want);
                free(got);
            }
}

TEST(pieces_of_gradients_are_updated_with_them)
{
    for (int device = 0; device < 2; device++)
        for (int rows = 0; rows < 2; rows++) {
            how h = {.device = device, .threads = 2, .attr = {rows, 0}, .sums = true};
            fth_plan_info info;
            float *want = after_two_runs(&h, add_plain, &info);
            int cut = 0;
            for (h.more = 3 * (uint64_t)BYTES; h.more > 1000;
                 h.more = h.more / 3 * (t_few() ? 1 : 2)) {
                float *got = after_two_runs(&h, add_step, &info);
                if (!got) continue;
                SAME_BYTES(want, got, PARAMS * (size_t)BYTES);
                cut += info.passes > 0;
                free(got);
            }
            IS_TRUE(cut > 0);
            free(want);
        }
}

TEST(what_reads_the_old_value_elsewhere_still_finds_it)
{
    for (int device = 0; device < 2; device++) {
        const how h = {.device = device, .threads = 2, .attr = {1, 1}};
        fth_plan_info plain, info;
        float *want = after_two_runs(&h, add_plain, &plain),
              *got = after_two_runs(&h, add_step, &info);
        SAME_BYTES(want, got, PARAMS * (size_t)BYTES);
        const uint64_t least =
            workspace(device, GRAD + 2) + BYTES; /* the new p waits, m and v do not */
        IS_TRUE(info.peak_bytes >= least && info.peak_bytes < least + 1024);
        free(want);
        free(got);
    }
}

TEST(outputs_that_nobody_wants_are_left_out)
{
    stage s;
    model m;
    fth_err err = {0};
    fth_val outs[PARAMS];
    fth_run_report report;
    for (int device = 0; device < 2; device++) {
        open_on(&s, device, 2);
        open_model(&s, &m);
        add_step(&m, m.x, (step_attr){0}, outs);
        fth_plan *plan = fth_plan_make(s.g, &outs[1], 1, NULL, &err);
        IS_TRUE(plan != NULL);
        OKE(fth_run(plan, (const fth_sink[1]){{0}}, NULL, &report, &err), &err);
        EQ_U64(report.ledger_bytes, report.planned_bytes);
        LE_F64(report.planned_bytes, workspace(device, GRAD + 1) + 1024);
        const float *p = fth_tensor_view(m.t[0]), *one = fth_tensor_view(m.t[1]);
        for (int64_t i = 0; i < ROWS * COLS; i++) {
            EQ_F64((double)p[i], (double)((float)(i * 7919 % 1009) / 1009.0f));
            EQ_F64((double)one[i], (double)((float)(i * 7920 % 1009) / 1009.0f +
                                            (float)(i * 104729 % 1009) / 1009.0f));
        }
        fth_plan_destroy(plan);
        close_model(&m);
        close_stage(&s);
    }
}

static void is_as_it_was(const float *all)
{
    for (int64_t i = 0; i < PARAMS * ROWS * COLS; i++) {
        const int64_t at = i % (ROWS * COLS), by = 7919 + i / (ROWS * COLS);
        EQ_F64((double)all[i], (double)((float)(at * by % 1009) / 1009.0f));
    }
}

static fth_status stumbling_run(const fth_call *call)
{
    (void)step_run(call);
    if (call->out[0].origin[0] + call->out[0].extent[0] < ROWS) return FTH_OK;
    return FTH_FAIL(call->err, FTH_E_INDEX_RANGE, "the last row");
}

TEST(an_update_that_fails_has_changed_nothing)
{
    float *all = malloc(PARAMS * (size_t)BYTES);
    for (int device = 0; device < 2; device++) {
        stage s;
        model m;
        fth_err err = {0};
        const step_attr attr = {0};
        fth_val outs[PARAMS];
        fth_op op = step_op;
        op.flags = FTH_OP_MAY_FAIL;
        op.run = stumbling_run;
        open_on(&s, device, 2);
        open_model(&s, &m);
        const fth_val in[GRAD + 1] = {m.v[0], m.v[1], m.v[2], m.x};
        const fth_val v = fth_custom(s.g, &op, GRAD + 1, in, &attr, sizeof attr);
        for (int o = 0; o < PARAMS; o++) outs[o] = fth_assign(m.v[o], o ? fth_out(v, o) : v);
        fth_plan *plan = fth_plan_make(s.g, outs, PARAMS, NULL, &err);
        IS_TRUE(plan != NULL);
        IS(fth_run(plan, (const fth_sink[PARAMS]){{0}}, NULL, NULL, &err), FTH_E_INDEX_RANGE);
        copy_params(&m, all);
        is_as_it_was(all);
        fth_plan_destroy(plan);
        close_model(&m);
        close_stage(&s);
    }
    free(all);
}

/* ---- lengths that only the data know ---- */

/* The rows of x that are above 0.5, in front of others that are 0; at most `room` of them. */
static fth_status above_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static fth_status above_run(const fth_call *call)
{
    const int64_t room = *(const int64_t *)call->node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    int64_t n = 0;
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++) *element(out, i, j) = 0.0f;
    for (int64_t i = 0; i < ROWS; i++) {
        if (!(*element(in, i, 0) > 0.5f)) continue;
        for (int64_t j = 0; n < room && j < COLS; j++) *element(out, n, j) = *element(in, i, j);
        n++;
    }
    if (n <= room) return FTH_OK;
    return fth_err_capacity(call->err, FTH_HERE, n, "above: room for %lld rows, %lld are above",
                            (long long)room, (long long)n);
}

static const fth_op above_op = {.name = "above",
                                .brief = "rows above one half",
                                .flags = FTH_OP_MAY_FAIL,
                                .infer = above_infer,
                                .run = above_run};

/* The status of a run with so much room; what it leaves in the parameters goes to `all`. */
static fth_status run_above(bool device, int64_t room, float *all, fth_err *err)
{
    stage s;
    model m;
    fth_val outs[PARAMS];
    open_on(&s, device, 2);
    open_model(&s, &m);
    add_step(&m, fth_custom(s.g, &above_op, 1, &m.x, &room, sizeof room), (step_attr){0}, outs);
    fth_plan *plan = fth_plan_make(s.g, outs, PARAMS, NULL, err);
    IS_TRUE(plan != NULL);
    const fth_status status = fth_run(plan, (const fth_sink[PARAMS]){{0}}, NULL, NULL, err);
    copy_params(&m, all);
    fth_plan_destroy(plan);
    close_model(&m);
    close_stage(&s);
    return status;
}

TEST(too_little_room_says_how_much_and_changes_nothing)
{
    float *first = malloc(PARAMS * (size_t)BYTES), *all = malloc(PARAMS * (size_t)BYTES);
    for (int device = 0; device < 2; device++) {
        fth_err err = {0};
        IS(run_above(device, 17, all, &err), FTH_E_CAPACITY);
        HAS(err.text, "above");
        const int64_t need = err.need;
        IS_TRUE(need > 17 && need < ROWS);
        is_as_it_was(all);
        fth_err_clear(&err);
        EQ_I64(err.need, 0);
        OKE(run_above(device, need, first, &err), &err);
        OKE(run_above(device, need + need / 4, all, &err), &err);
        SAME_BYTES(first, all, PARAMS * (size_t)BYTES);
        IS(run_above(device, need - 1, all, &err), FTH_E_CAPACITY);
        EQ_I64(err.need, need);
    }
    free(first);
    free(all);
}

/* ---- very many operands ---- */

static fth_status many_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = FTH_MAX_OUT;
    for (int o = 0; o < FTH_MAX_OUT; o++) node->out[o] = node->in[o];
    return FTH_OK;
}

static fth_status many_run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    for (int64_t i = 0; i < out->extent[0]; i++)
        for (int64_t j = 0; j < out->extent[1]; j++) {
            const int64_t row = out->origin[0] + i, col = out->origin[1] + j;
            float sum = 0.0f;
            for (int k = 0; k < FTH_MAX_IN; k++) sum += (float)k * *element(&call->in[k], row, col);
            for (int o = 0; o < FTH_MAX_OUT; o++)
                if (call->out[o].data) *element(&call->out[o], row, col) = sum + (float)o;
        }
    return FTH_OK;
}

static const fth_op many_op = {.name = "many",
                               .brief = "as many operands as there may be",
                               .infer = many_infer,
                               .relation = fth_relation_same,
                               .run = many_run};

TEST(as_many_operands_as_there_may_be)
{
    IS_TRUE(FTH_MAX_IN >= 40 && FTH_MAX_OUT >= 20);
    for (int device = 0; device < 2; device++) {
        stage s;
        fth_err err = {0};
        fth_val in[FTH_MAX_IN + 1];
        open_on(&s, device, 2);
        const fth_val x = waves(&s, "x");
        for (int k = 0; k <= FTH_MAX_IN; k++)
            in[k] = fth_add(x, fth_const(s.g, FTH_F32, (double)k));
        const fth_val v = fth_custom(s.g, &many_op, FTH_MAX_IN, in, NULL, 0);
        taken t = {.n_axes = 2, .size = {ROWS, COLS}, .data = malloc(BYTES)};
        const fth_sink sink = {.kind = "taken",
                               .self = &t,
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {ROWS, COLS},
                               .write = take};
        const fth_val last = fth_out(v, FTH_MAX_OUT - 1);
        for (int64_t budget = 64; budget >= 4; budget /= 4) {
            const fth_limits limits = device ? (fth_limits){.device_bytes = (uint64_t)budget << 20}
                                             : (fth_limits){.memory_bytes = (uint64_t)budget << 20};
            fth_plan *plan = fth_plan_make(s.g, &last, 1, &limits, &err);
            if (!plan) OKE(err.status, &err);
            fth_run_report report;
            OKE(fth_run(plan, &sink, NULL, &report, &err), &err);
            EQ_U64(report.ledger_bytes, report.planned_bytes);
            fth_plan_destroy(plan);
            float row[COLS];
            const int64_t lo[2] = {ROWS - 1, 0}, n[2] = {1, COLS};
            OK(read_waves(&s, lo, n, row, NULL));
            for (int j = 0; j < COLS; j++) {
                float sum = 0.0f;
                for (int k = 0; k < FTH_MAX_IN; k++) sum += (float)k * (row[j] + (float)k);
                EQ_F64((double)t.data[(ROWS - 1) * COLS + j],
                       (double)(sum + (float)(FTH_MAX_OUT - 1)));
            }
        }
        IS_TRUE(!fth_val_ok(fth_custom(s.g, &many_op, FTH_MAX_IN + 1, in, NULL, 0)));
        IS_TRUE(fth_graph_errors(s.g, 0, &err) == 1);
        IS(err.status, FTH_E_GRAPH_VALUE);
        free(t.data);
        close_stage(&s);
    }
}

/* ---- operations that are not well formed ---- */

static int third_of_all(const fth_node *node, int out)
{
    (void)node, (void)out;
    return 2;
}

static int beyond(const fth_node *node, int out)
{
    return node->n_in + out;
}

static int gradient_is_new(const fth_node *node, int out)
{
    (void)node;
    return out == 0 ? GRAD : -1;
}

static void halo_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_HALO, .out_dim = dim, .mul = 1, .div = 1, .lo = 1};
}

/* Columns of p are whole, and those of the gradient are followed: they may be cut. */
static void mixed_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = in == 0 && dim == 1 ? (fth_relation){.along = FTH_WHOLE, .out_dim = -1}
                               : (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

TEST(what_update_of_says_is_checked)
{
    static const struct {
        int (*update_of)(const fth_node *, int);
        void (*relation)(const fth_node *, int, int, fth_relation *);
        const char *text;
    } bad[] = {
        {third_of_all, step_relation, "both the new value of operand 2"},
        {beyond, step_relation, "of operand 4 of 4"},
        {gradient_is_new, fth_relation_same, "differ in dtype or axes"},
        {step_update_of, halo_relation, "is HALO along axis 'row'"},
        {step_update_of, mixed_relation, "is WHOLE along axis 'col'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        stage s;
        model m;
        fth_err err = {0};
        const step_attr attr = {0};
        open_on(&s, false, 1);
        open_model(&s, &m);
        fth_op op = step_op;
        op.update_of = bad[i].update_of;
        op.relation = bad[i].relation;
        fth_val in[GRAD + 1] = {m.v[0], m.v[1], m.v[2], i == 2 ? fth_layout(m.x, "col row") : m.x};
        IS_TRUE(!fth_val_ok(fth_custom(s.g, &op, GRAD + 1, in, &attr, sizeof attr)));
        IS_TRUE(fth_graph_errors(s.g, 0, &err) == 1);
        IS(err.status, FTH_E_GRAPH_OP);
        HAS(err.text, bad[i].text);
        close_model(&m);
        close_stage(&s);
    }
}

TEST_MAIN()
