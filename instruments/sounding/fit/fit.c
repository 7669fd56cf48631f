/* fit.c - Adam through the engine: one graph and one plan serve every step.
 *
 * The soundings are streamed from their file at every step, in pieces that fit the budget. A
 * checkpoint holds all that is needed to go on, and what it was fitted with; so a fit that was
 * killed goes on where it was, and ends with the bytes of one that was not.
 */
#include "../misfit/misfit.h"
#include "../model/model.h"
#include "../sounding.h"
#include "../survey/survey.h"

#include <math.h>

enum { OUTPUTS = 4 }; /* the loss, and three assigns */

typedef struct fit {
    const fth_stage_call *call;
    fth_mem *mem;
    char path[FTH_PATH]; /* of the model */
    fth_ties ties;
    fth_arrays data;
    so_model model;
    fth_graph *g;
    fth_plan *plan;
    double rate; /* this and the step are read at every run */
    int64_t step;
    float loss;
} fit;

static fth_status make_plan(fit *f, fth_err *err)
{
    const so_model *m = &f->model;
    const fth_source *data = f->data.source;
    const so_misfit attr = {(float)(fth_config_real(f->call->config, "fit.outlier") / m->scale)};
    fth_graph *g = f->g = fth_graph_create(f->call->context);
    fth_axis(g, "cell", f->data.rows);
    fth_axis(g, "dim", 2);
    const fth_val place = fth_input(g, "soundings", FTH_F32, "cell dim", data[SO_PLACES]);
    const fth_val depth = fth_input(g, "depths", FTH_F32, "cell", data[SO_DEPTHS]);
    const fth_val rate = fth_input(g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &f->rate));
    const fth_val step = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &f->step));
    const fth_val wanted = fth_mul(fth_sub(fth_const(g, FTH_F32, m->offset), depth),
                                   fth_const(g, FTH_F32, 1.0 / m->scale));
    const so_terms terms = so_model_terms(m, g, true);
    const fth_val u = so_model_unit(m, place, 0), v = so_model_unit(m, place, 1);
    const fth_val beside = fth_sub(so_model_sum(&terms, u, v), wanted);
    const fth_val cost = fth_custom(g, &so_misfit_op, 1, &beside, &attr, sizeof attr);
    fth_val grad, out[OUTPUTS] = {fth_mean(cost, "cell")};
    fth_grad(out[0], 1, &terms.column[SO_W], &grad);
    const fth_val m1 = fth_param(g, so_tensor[SO_M1], "term", m->tensor[SO_M1]);
    const fth_val m2 = fth_param(g, so_tensor[SO_M2], "term", m->tensor[SO_M2]);
    fth_adam_step(&FTH_ADAM_DEFAULT, terms.column[SO_W], grad, m1, m2, rate, step, &out[1]);
    f->plan = fth_plan_make(g, out, OUTPUTS, NULL, err);
    return f->plan ? FTH_OK : err->status;
}

static void clear(fit *f)
{
    fth_plan_destroy(f->plan);
    fth_graph_destroy(f->g);
    so_model_clear(&f->model);
    fth_arrays_close(&f->data);
}

/* What the fit depends on: any difference, and a checkpoint is of no use. */
static void find_ties(fit *f)
{
    static const char *const key[] = {"model.basis", "model.order",  "fit.iterations", "fit.rate",
                                      "fit.outlier", "survey.depth", "survey.relief"};
    fth_ties_init(&f->ties, f->call, key, sizeof key / sizeof key[0]);
    fth_ties_add(&f->ties, "soundings", fth_safetensors_meta(f->data.file, "xxh64.soundings"));
    fth_ties_add(&f->ties, "depths", fth_safetensors_meta(f->data.file, "xxh64.depths"));
}

/* From the checkpoint where it is one of this fit, else from the beginning. */
static fth_status start(fit *f, fth_err *err)
{
    fth_err why = {0};
    if (!fth_stage_may_resume(f->call) || !fth_path_exists(f->path))
        return so_model_create(&f->model, f->mem, f->call->config, err);
    const fth_status s = so_model_read(&f->model, f->mem, f->path, &f->ties, &why);
    if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) return err ? (*err = why, s) : s;
    if (s == FTH_OK)
        fth_stage_say(f->call, "resuming after iteration %lld of %lld", (long long)f->model.step,
                      (long long)f->model.iterations);
    else
        fth_stage_say(f->call, "starting over: the checkpoint is %s: %s",
                      s == FTH_E_STATE ? "of another fit" : "damaged", why.text);
    return s == FTH_OK ? s : so_model_create(&f->model, f->mem, f->call->config, err);
}

static fth_status take_step(fit *f, fth_err *err)
{
    so_model *m = &f->model;
    const double rate = fth_config_real(f->call->config, "fit.rate");
    const fth_schedule falling = {
        .kind = FTH_SCHEDULE_COSINE, .rate = rate, .steps = m->iterations};
    const fth_sink sinks[OUTPUTS] = {fth_scalar_sink(FTH_F32, &f->loss)};
    fth_run_report report;
    f->rate = fth_schedule_rate(&falling, m->step);
    f->step = m->step + 1;
    FTH_TRY(fth_run(f->plan, sinks, NULL, &report, err));
    fth_stage_account(f->call, &report);
    ((double *)fth_tensor_data(m->tensor[SO_LOSS]))[m->step++] = (double)f->loss;
    if (isfinite(f->loss)) return FTH_OK;
    FTH_FAIL(err, FTH_E_NUMERIC, "the loss is not finite after iteration %lld", (long long)f->step);
    fth_err_hint(err, "lower fit.rate, which is %g", rate);
    return FTH_E_NUMERIC;
}

static fth_status take_steps(fit *f, fth_err *err)
{
    so_model *m = &f->model;
    const int64_t every = fth_config_int(f->call->config, "fit.checkpoint");
    while (m->step < m->iterations) {
        if (m->step == m->iterations / 2) FTH_TRY(fth_stage_drill(f->call, err));
        FTH_TRY(take_step(f, err));
        const fth_stage_progress p = {.done = m->step,
                                      .total = m->iterations,
                                      .what = "iteration",
                                      .number = {{"loss", (double)f->loss}, {"rate", f->rate}}};
        if (m->step == m->iterations) return (void)fth_stage_report(f->call, &p), FTH_OK;
        const fth_status s = fth_stage_step(f->call, &p, err);
        if (s != FTH_OK || m->step % every == 0)
            FTH_TRY(so_model_write(m, f->mem, f->path, &f->ties, err));
        if (s != FTH_OK) return fth_err_hint(err, "start it again: it resumes from there"), s;
    }
    return FTH_OK;
}

fth_status so_fit_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show, fth_err *err)
{
    fit f = {.call = call, .mem = fth_context_mem(call->context)};
    FTH_TRY(so_soundings_open(&f.data, call, fth_source_planned, err));
    fth_stage_plan_axis(out, "cell", f.data.rows, fth_config_has(call->config, "survey.file"));
    fth_status s = so_model_create(&f.model, f.mem, call->config, err);
    if (s == FTH_OK) s = make_plan(&f, err);
    if (s == FTH_OK)
        s = fth_stage_plan_add(call, out, f.plan, (double)f.model.iterations, show, err);
    fth_stage_plan_axis(out, "term", f.model.terms, false);
    clear(&f);
    return s;
}

fth_status so_fit_run(const fth_stage_call *call, fth_err *err)
{
    fit f = {.call = call, .mem = fth_context_mem(call->context)};
    FTH_TRY(fth_path_join(f.path, call->model_dir, SO_MODEL, err));
    FTH_TRY(so_soundings_open(&f.data, call, NULL, err));
    find_ties(&f);
    fth_status s = start(&f, err);
    if (s == FTH_OK) s = make_plan(&f, err);
    if (s == FTH_OK) s = take_steps(&f, err);
    fth_stage_point(call, "before_outputs");
    if (s == FTH_OK) s = so_model_write(&f.model, f.mem, f.path, &f.ties, err);
    clear(&f);
    return s;
}
