/* engine_program.c - see engine_program.h. */
#include "testing/engine/engine_program.h"

#include "mem/inject.h"
#include "testing/io/files.h"

enum { ROWS = 4000, COLS = 3 };

static fth_status read_rows(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)err;
    float *out = dst;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            *out++ = (float)(((lo[0] + i) * 31 + (lo[1] + j) * 17) % 101) / 101.0f;
    return FTH_OK;
}

static const fth_source rows = {
    .kind = "rows", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, COLS}, .read = read_rows};
static const int64_t row_size[1] = {ROWS};

typedef struct world {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *w, *m, *v;
    fth_plan *plan;
    double rate;
    int64_t step;
} world;

static fth_status open_world(world *p, ep_faults at, fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.scratch_dir = t_temp_dir();
    opt.mem.budget_bytes = 64u << 20;
    opt.mem.fail_alloc = at.alloc;
    opt.mem.fail_write = at.write;
    FTH_TRY(fth_context_create(&p->ctx, &opt, err));
    p->g = fth_graph_create(p->ctx);
    fth_axis(p->g, "row", ROWS);
    fth_axis(p->g, "col", COLS);
    return FTH_OK;
}

static void close_world(world *p, ep_seen *seen)
{
    fth_plan_destroy(p->plan);
    fth_graph_destroy(p->g);
    fth_tensor_release(p->w);
    fth_tensor_release(p->m);
    fth_tensor_release(p->v);
    if (p->ctx) {
        seen->allocs = fth__mem_alloc_count(fth_context_mem(p->ctx));
        seen->writes = fth__mem_write_count(fth_context_mem(p->ctx));
    } else {
        seen->allocs = INT64_MAX; /* it failed so early that nobody counted */
    }
    seen->leak = fth_context_destroy(p->ctx, NULL);
}

/* ---- train ---- */

static fth_status make_tensors(world *p, fth_err *err)
{
    const int64_t size[1] = {COLS};
    fth_mem *mem = fth_context_mem(p->ctx);
    FTH_TRY(fth_tensor_create(&p->w, mem, "w", FTH_F32, 1, size, err));
    for (int i = 0; i < COLS; i++) ((float *)fth_tensor_data(p->w))[i] = 0.25f;
    FTH_TRY(fth_tensor_create(&p->m, mem, "m", FTH_F32, 1, size, err));
    FTH_TRY(fth_tensor_create(&p->v, mem, "v", FTH_F32, 1, size, err));
    memset(fth_tensor_data(p->m), 0, COLS * sizeof(float));
    memset(fth_tensor_data(p->v), 0, COLS * sizeof(float));
    return FTH_OK;
}

static fth_status plan_training(world *p, fth_err *err)
{
    fth_graph *g = p->g;
    const fth_val X = fth_input(g, "X", FTH_F32, "row col", rows),
                  w = fth_param(g, "w", "col", p->w);
    const fth_val m = fth_param(g, "m", "col", p->m), v = fth_param(g, "v", "col", p->v);
    const fth_val rate = fth_input(g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &p->rate));
    const fth_val step = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &p->step));
    const fth_val y = fth_exp(fth_dot(w, X, "col"));
    const fth_val centred = fth_sub(y, fth_mean(y, "row"));
    const fth_val loss = fth_mean(fth_sqr(centred), "row");
    fth_val grad, outs[5];
    FTH_TRY(fth_grad(loss, 1, &w, &grad));
    const fth_adam adam = FTH_ADAM_DEFAULT;
    FTH_TRY(fth_adam_step(&adam, w, grad, m, v, rate, step, outs + 2));
    outs[0] = loss;
    outs[1] = centred;
    p->plan = fth_plan_make(g, outs, 5, &(fth_limits){.memory_bytes = 160 << 10}, err);
    return p->plan ? FTH_OK : err->status;
}

/* With a new file for the value `column` among the outputs; the others go to `sinks` as they are.
 */
static fth_status run_to_file(world *p, const char *path, fth_sink *sinks, int column,
                              ep_seen *seen, fth_err *err)
{
    FTH_TRY(
        fth_npy_create(&sinks[column], fth_context_mem(p->ctx), path, FTH_F32, 1, row_size, err));
    const fth_status s = fth_run(p->plan, sinks, NULL, NULL, err);
    fth_sink_close(&sinks[column]);
    seen->runs += s == FTH_OK;
    return s;
}

fth_status ep_train(ep_faults at, const char *path, ep_seen *seen, fth_err *err)
{
    world p = {.rate = 0.01, .step = 1};
    *seen = (ep_seen){0};
    fth_status s = open_world(&p, at, err);
    if (s == FTH_OK) s = make_tensors(&p, err);
    if (s == FTH_OK) s = plan_training(&p, err);
    for (; s == FTH_OK && p.step <= 2; p.step++) {
        float loss;
        fth_sink sinks[5] = {fth_scalar_sink(FTH_F32, &loss)};
        s = run_to_file(&p, path, sinks, 1, seen, err);
    }
    if (p.w) seen->moved = ((float *)fth_tensor_data(p.w))[0] != 0.25f;
    close_world(&p, seen);
    return s;
}

/* ---- spill ---- */

/* One axis, and every step needs all of it: only giving blocks up can help. */
static fth_val sorted_thrice(world *p)
{
    const fth_val x = fth_sum(fth_input(p->g, "x", FTH_F32, "row col", rows), "col");
    const fth_val a = fth_sort(x, "row", false), b = fth_sort(fth_neg(a), "row", true);
    const fth_val c = fth_sort(fth_sqr(b), "row", false);
    return fth_add(fth_flip(c, "row"), fth_add(fth_flip(a, "row"), fth_flip(b, "row")));
}

/* The smallest budget of the program in whole KiB; its plan must spill. */
static uint64_t spilling_budget(void)
{
    static uint64_t budget;
    if (budget) return budget;
    world p = {0};
    ep_seen seen;
    fth_err err = {0};
    OKE(open_world(&p, (ep_faults){0}, &err), &err);
    const fth_val v = sorted_thrice(&p);
    int64_t spilled = 0;
    for (uint64_t bytes = 1 << 20;; bytes -= 1 << 10) {
        p.plan = fth_plan_make(p.g, &v, 1, &(fth_limits){.memory_bytes = bytes}, &err);
        if (!p.plan) break;
        fth_plan_info info;
        fth_plan_get_info(p.plan, &info);
        spilled = info.spilled;
        fth_plan_destroy(p.plan);
        budget = bytes;
    }
    close_world(&p, &seen);
    IS_TRUE(spilled > 0);
    return budget;
}

fth_status ep_spill(ep_faults at, const char *path, ep_seen *seen, fth_err *err)
{
    const fth_limits limits = {.memory_bytes = spilling_budget()};
    world p = {0};
    *seen = (ep_seen){0};
    fth_status s = open_world(&p, at, err);
    if (s == FTH_OK) {
        const fth_val v = sorted_thrice(&p);
        p.plan = fth_plan_make(p.g, &v, 1, &limits, err);
        s = p.plan ? FTH_OK : err->status;
    }
    fth_sink sink;
    if (s == FTH_OK) s = run_to_file(&p, path, &sink, 0, seen, err);
    seen->moved = seen->runs > 0; /* it has no parameter */
    close_world(&p, seen);
    return s;
}

/* ---- one failure after the other ---- */

static const char old[] = "the old file";

static void check_seen(const ep_seen *seen, const char *path)
{
    IS(seen->leak, FTH_OK);
    EQ_I64(seen->moved, seen->runs > 0);
    EQ_I64(t_file_count(), 1);
    size_t bytes = 0;
    unsigned char *now = t_file_read(path, &bytes);
    if (seen->runs == 0) {
        EQ_U64(bytes, sizeof old);
        SAME_BYTES(now, old, bytes);
    } else {
        EQ_U64(bytes, 128 + ROWS * sizeof(float));
    }
    free(now);
}

/* Once, over an old file. True: the failure came; *failed counts those that ended the program. */
static bool fail_once(ep_program *program, ep_faults at, fth_status *status, int64_t *failed)
{
    const char *path = t_temp_path("rows.npy");
    fth_err err = {0};
    ep_seen seen;
    t_file_write(path, old, sizeof old);
    *status = program(at, path, &seen, &err);
    check_seen(&seen, path);
    remove(path);
    *failed += *status != FTH_OK;
    const bool came = at.alloc ? seen.allocs >= at.alloc : seen.writes >= at.write;
    if (!came) OKE(*status, &err);
    return came;
}

int64_t ep_fail_requests(ep_program *program)
{
    int64_t failed = 0;
    fth_status s;
    for (int64_t n = 1; fail_once(program, (ep_faults){.alloc = n}, &s, &failed); n++)
        ONE_OF(s, FTH_E_NOMEM, FTH_OK); /* what only saves time may do without */
    return failed;
}

int64_t ep_fail_writes(ep_program *program)
{
    int64_t failed = 0;
    fth_status s;
    for (int64_t n = 1; fail_once(program, (ep_faults){.write = n}, &s, &failed); n++)
        ONE_OF(s, FTH_E_FILE_WRITE, FTH_E_SCRATCH);
    return failed;
}
