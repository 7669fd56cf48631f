/* seconds: 5
 * test_plan_updates.c - updates of parameters in pieces, beside what makes their gradients.
 *
 * Where a whole gradient does not fit, gradient and update go through the parameter together, in
 * place, after everything that can fail. The bytes must be those of a plan with all the memory it
 * wants, on the CPU and on a device.
 */
#include "testing/host_device.h"
#include "testing/plan_stage.h"

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
    const fth_val near = fth_window(m->v[0], "row", 1, "tap", true);
    return fth_mul(m->x, fth_mean(near, "tap"));
}

static fth_val by_all(const model *m)
{
    return fth_mul(m->x, fth_sub(m->v[0], fth_mean(m->v[0], "row")));
}

TEST(pieces_do_not_see_what_was_updated)
{
    fth_val (*const of[])(const model *) = {by_others, by_all};
    for (int device = 0; device < 2; device++)
        for (int i = 0; i < 2; i++) {
            fth_plan_info whole, info;
            float *want = after_two_runs(device, of[i], 8 * (uint64_t)BYTES, &whole);
            int cut = 0;
            for (int64_t more = 16; more >= 0; more--) {
                float *got = after_two_runs(device, of[i], (uint64_t)more * BYTES / 4, &info);
                if (!got) continue;
                SAME_BYTES(want, got, PARAMS * (size_t)BYTES);
                cut += info.passes > 0;
                free(got);
            }
            IS_TRUE(cut > 0);
            free(want);
        }
}

/* Something else in the plan fails: nothing was changed yet. */
TEST(a_run_that_fails_has_updated_nothing)
{
    for (int device = 0; device < 2; device++) {
        stage s;
        model m;
        fth_err err = {0};
        fth_val outs[PARAMS + 1];
        int64_t index[2] = {3, ROWS}, size = 2;
        float picked[2 * COLS];
        fth_tensor *at;
        open_on(&s, device);
        open_model(&s, &m);
        OKE(fth_tensor_wrap(&at, fth_context_mem(s.ctx), "at", FTH_I64, 1, &size, index, &err),
            &err);
        fth_axis(s.g, "two", 2);
        const fth_val two = fth_input(s.g, "at", FTH_I64, "two", fth_tensor_source(at));
        outs[PARAMS] = fth_gather(m.x, "row", two);
        update(&m, gradient(by_itself(&m)), outs);
        taken into = {.data = picked, .n_axes = 2, .size = {2, COLS}};
        fth_sink sinks[PARAMS + 1] = {{0}};
        sinks[PARAMS] = (fth_sink){.kind = "taken",
                                   .self = &into,
                                   .dtype = FTH_F32,
                                   .n_axes = 2,
                                   .size = {2, COLS},
                                   .write = take};
        const fth_limits limits = limits_of(&s, 3 * BYTES / 4);
        fth_plan *plan = fth_plan_make(s.g, outs, PARAMS + 1, &limits, &err);
        if (!plan) OKE(err.status, &err);
        fth_plan_info info;
        fth_plan_get_info(plan, &info);
        IS_TRUE(info.passes == 1 && info.chunks > 1);
        IS(fth_run(plan, sinks, NULL, NULL, &err), FTH_E_INDEX_RANGE);
        fth_tensor *fresh;
        const int64_t shape[2] = {ROWS, COLS};
        OK(fth_tensor_create(&fresh, fth_context_mem(s.ctx), "fresh", FTH_F32, 2, shape, NULL));
        for (int i = 0; i < PARAMS; i++) {
            fill(fresh, 7919 + i);
            SAME_BYTES(fth_tensor_data(fresh), fth_tensor_data(m.t[i]), BYTES);
        }
        fth_tensor_release(fresh);
        fth_tensor_release(at);
        fth_plan_destroy(plan);
        close_model(&m);
        close_stage(&s);
    }
}

TEST_MAIN()
