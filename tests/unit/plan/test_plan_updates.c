/* seconds: 5
 * test_plan_updates.c - updates of parameters in pieces, beside what makes their gradients.
 *
 * Where a whole gradient does not fit, gradient and update go through the parameter together, in
 * place, after everything that can fail. The bytes must be those of a plan with all the memory it
 * wants, on the CPU and on a device.
 */
#include "testing/engine/host_device.h"
#include "testing/full.h"
#include "testing/job/plan_stage.h"

enum { PARAMS = 3, BYTES = ROWS * COLS * 4 };

/* Parameters p, m and v [row col], and x that moves them. */
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

/* The gradient, running sums that no update can be fused with; what it is made of is given. */
static fth_val gradient(fth_val of)
{
    return fth_label(fth_cumsum(of, "col"), "gradient");
}

static void update(const model *m, fth_val g, fth_val outs[PARAMS])
{
    const fth_val m2 = fth_add(m->v[1], g), v2 = fth_add(m->v[2], fth_sqr(g));
    outs[0] = fth_assign(m->v[0], fth_sub(m->v[0], fth_mul(m2, v2)));
    outs[1] = fth_assign(m->v[1], m2);
    outs[2] = fth_assign(m->v[2], v2);
}

static void open_on(stage *s, bool device)
{
    open_stage(s, NULL);
    if (!device) return;
    fth_err err = {0};
    close_stage(s);
    fth_options opt;
    fth_options_default(&opt);
    opt.backend = &t_host_backend;
    opt.device = "cuda";
    opt.device_memory_bytes = 64 << 20;
    OKE(fth_context_create(&s->ctx, &opt, &err), &err);
    s->g = fth_graph_create(s->ctx);
    fth_axis(s->g, "row", ROWS);
    fth_axis(s->g, "col", COLS);
}

/* Room for the blocks of the parameters, and for `more` bytes. */
static fth_limits limits_of(const stage *s, uint64_t more)
{
    const uint64_t bytes = 4 * (uint64_t)BYTES + (64 << 10) + more;
    return fth_context_device_mem(s->ctx) ? (fth_limits){.device_bytes = bytes}
                                          : (fth_limits){.memory_bytes = bytes};
}

/* What two runs leave in the parameters, [PARAMS] blocks; the memory belongs to the caller. NULL:
 * it does not fit. */
static float *after_two_runs(bool device, fth_val (*of)(const model *m), uint64_t more,
                             fth_plan_info *info)
{
    stage s;
    model m;
    fth_err err = {0};
    fth_val outs[PARAMS];
    open_on(&s, device);
    open_model(&s, &m);
    update(&m, gradient(of(&m)), outs);
    const fth_limits limits = limits_of(&s, more);
    fth_plan *plan = fth_plan_make(s.g, outs, PARAMS, &limits, &err);
    if (!plan) IS(err.status, FTH_E_NO_FIT);
    if (plan) fth_plan_get_info(plan, info);
    for (int i = 0; plan && i < 2; i++) {
        fth_run_report report;
        OKE(fth_run(plan, (const fth_sink[PARAMS]){{0}}, NULL, &report, &err), &err);
        EQ_U64(report.ledger_bytes, report.planned_bytes);
    }
    float *all = plan ? malloc(PARAMS * (size_t)BYTES) : NULL;
    for (int i = 0; plan && i < PARAMS; i++) {
        OKE(fth_tensor_sync(m.t[i], &err), &err);
        memcpy((char *)all + (size_t)i * BYTES, fth_tensor_view(m.t[i]), BYTES);
    }
    fth_plan_destroy(plan);
    close_model(&m);
    close_stage(&s);
    return all;
}

static fth_val by_itself(const model *m)
{
    return fth_mul(m->x, m->v[0]);
}

TEST(a_gradient_is_made_beside_its_update)
{
    for (int device = 0; device < 2; device++) {
        fth_plan_info whole, info;
        float *want = after_two_runs(device, by_itself, 4 * (uint64_t)BYTES, &whole),
              *got = after_two_runs(device, by_itself, BYTES / 4, &info);
        IS_TRUE(want && got);
        EQ_I64(whole.passes, 0);
        EQ_I64(info.passes, 1);
        IS_TRUE(info.chunks > 1 && info.peak_bytes <= BYTES / 4 + (64 << 10));
        SAME_BYTES(want, got, PARAMS * (size_t)BYTES);
        free(want);
        free(got);
    }
}

/* Rows of the parameter beside those of the piece: earlier pieces must not have changed them. */
static fth_val by_others(const model *m)
{
    fth_axis(m->x.graph, "tap", 3);
    const fth_val near = fth_window(m->v[0], "row", 1, "tap", FTH_BORDER_CLAMP);
    return fth_mul(m->x, fth_mean(near, "tap"));
}

static fth_val by_all(const model *m)
{
    return fth_mul(m->x, fth_sub(m->v[0], fth_mean(m->v[0], "row")));
}

static fth_status same_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void same_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static void mirror_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == 0) same_relation(node, in, dim, out);
}

/* Rows of the first times those of the second, from its end. */
static fth_status mirror_run(const fth_call *call)
{
    const fth_tile *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
    for (int64_t i = 0; i < out->extent[0]; i++)
        for (int64_t j = 0; j < out->extent[1]; j++) {
            const int64_t row = out->origin[0] + i, col = out->origin[1] + j;
            const float *x = (const float *)a->data + (row - a->origin[0]) * a->stride[0] +
                             (col - a->origin[1]) * a->stride[1];
            const float *y = (const float *)b->data +
                             (ROWS - 1 - row - b->origin[0]) * b->stride[0] +
                             (col - b->origin[1]) * b->stride[1];
            ((float *)out->data)[i * out->stride[0] + j * out->stride[1]] = *x * *y;
        }
    return FTH_OK;
}

static const fth_op mirror = {.name = "mirror",
                              .brief = "a product with rows from the end",
                              .infer = same_infer,
                              .relation = mirror_relation,
                              .run = mirror_run};

/* All of the parameter, under another name. */
static fth_val by_its_end(const model *m)
{
    fth_axis_like(m->x.graph, "other", "row");
    const fth_val in[2] = {m->x, fth_rename(m->v[0], "row", "other")};
    return fth_custom(m->x.graph, &mirror, 2, in, NULL, 0);
}

TEST(pieces_do_not_see_what_was_updated)
{
    fth_val (*const of[])(const model *) = {by_others, by_all, by_its_end};
    for (int device = 0; device < 2; device++)
        for (int i = 0; i < 3; i++) {
            fth_plan_info whole, info;
            float *want = after_two_runs(device, of[i], 8 * (uint64_t)BYTES, &whole);
            int cut = 0;
            for (int64_t more = 16; more >= 0; more -= t_one_in(1, 4)) {
                float *got = after_two_runs(device, of[i], (uint64_t)more * BYTES / 4, &info);
                if (!got) continue;
                SAME_BYTES(want, got, PARAMS * (size_t)BYTES);
                cut += info.passes > 0;
                free(got);
            }
            /* the window takes no room: of a device the update itself, which is not cut, has most
             */
            IS_TRUE(cut > 0 || (device && of[i] == by_others));
            free(want);
        }
}

/* A copy that fails at the last row. */
static fth_status failing_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    for (int64_t i = 0; i < out->extent[0]; i++)
        for (int64_t j = 0; j < out->extent[1]; j++)
            ((float *)out->data)[i * out->stride[0] + j * out->stride[1]] =
                ((const float *)in->data)[(out->origin[0] + i - in->origin[0]) * in->stride[0] +
                                          (out->origin[1] + j - in->origin[1]) * in->stride[1]];
    if (out->origin[0] + out->extent[0] < ROWS) return FTH_OK;
    return FTH_FAIL(call->err, FTH_E_INDEX_RANGE, "the last row");
}

static const fth_op failing = {.name = "failing",
                               .brief = "a copy that fails",
                               .flags = FTH_OP_MAY_FAIL,
                               .infer = same_infer,
                               .relation = same_relation,
                               .run = failing_run};

/* Whether it fits; then it runs, fails, and must not have changed anything. */
static bool changes_nothing(bool device, bool in_gradient, uint64_t more, fth_plan_info *info)
{
    stage s;
    model m;
    fth_err err = {0};
    fth_val outs[PARAMS + 1];
    fth_tensor *fresh;
    double sum;
    const int64_t shape[2] = {ROWS, COLS};
    open_on(&s, device);
    open_model(&s, &m);
    const fth_val copy = fth_custom(s.g, &failing, 1, &m.x, NULL, 0);
    update(&m, gradient(in_gradient ? fth_mul(copy, m.v[0]) : by_itself(&m)), outs);
    outs[PARAMS] = fth_sum(fth_cast(in_gradient ? m.x : copy, FTH_F64), "row col");
    fth_sink sinks[PARAMS + 1] = {{0}};
    sinks[PARAMS] = fth_scalar_sink(FTH_F64, &sum);
    const fth_limits limits = limits_of(&s, more);
    fth_plan *plan = fth_plan_make(s.g, outs, PARAMS + 1, &limits, &err);
    if (!plan) IS(err.status, FTH_E_NO_FIT);
    if (plan) {
        fth_plan_get_info(plan, info);
        fth_err_clear(&err);
        IS(fth_run(plan, sinks, NULL, NULL, &err), FTH_E_INDEX_RANGE);
        OK(fth_tensor_create(&fresh, fth_context_mem(s.ctx), "fresh", FTH_F32, 2, shape, NULL));
        for (int i = 0; i < PARAMS; i++) {
            fill(fresh, 7919 + i);
            SAME_BYTES(fth_tensor_data(fresh), fth_tensor_data(m.t[i]), BYTES);
        }
        fth_tensor_release(fresh);
    }
    fth_plan_destroy(plan);
    close_model(&m);
    close_stage(&s);
    return plan != NULL;
}

TEST(a_run_that_fails_has_updated_nothing)
{
    for (int device = 0; device < 2; device++)
        for (int in_gradient = 0; in_gradient < 2; in_gradient++) {
            int cut = 0;
            for (int64_t more = 16; more >= 1; more -= t_one_in(1, 3)) {
                fth_plan_info info;
                if (changes_nothing(device, in_gradient, (uint64_t)more * BYTES / 4, &info))
                    cut += info.passes > 0;
            }
            IS_TRUE(cut > 0 || in_gradient);
        }
}

TEST_MAIN()
