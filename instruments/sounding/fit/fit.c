/* fit.c - Adam through the engine: one graph and one plan serve every step.
 *
 * The soundings are streamed from their file at every step, in pieces that fit the budget. A
 * checkpoint holds all that is needed to go on, and what it was fitted with; so a fit that was
 * killed goes on where it was, and ends with the bytes of one that was not.
 */
#include "../model/model.h"
#include "../sounding.h"
#include "../survey/survey.h"

#include <math.h>

enum { OUTPUTS = 4 }; /* the loss, and three assigns */

typedef struct fit {
    const fth_stage_call *call;
    so_model model;
    fth_graph *g;
    fth_plan *plan;
    double rate; /* this and the step are read at every run */
    int64_t step;
    float loss;
} fit;

static fth_status make_plan(fit *f, const so_data *data, fth_err *err)
{
    const so_model *m = &f->model;
    fth_graph *g = f->g = fth_graph_create(f->call->context);
    fth_axis(g, "cell", data->soundings.size[0]);
    fth_axis(g, "dim", 2);
    const fth_val place = fth_input(g, "soundings", FTH_F32, "cell dim", data->soundings);
    const fth_val depth = fth_input(g, "depths", FTH_F32, "cell", data->depths);
    const fth_val rate = fth_input(g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &f->rate));
    const fth_val step = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &f->step));
    const fth_val wanted = fth_mul(fth_sub(fth_const(g, FTH_F32, m->offset), depth),
                                   fth_const(g, FTH_F32, 1.0 / m->scale));
    fth_val weights, grad;
    const fth_val found =
        so_model_sum(m, so_model_unit(m, place, 0), so_model_unit(m, place, 1), &weights);
    fth_val out[OUTPUTS] = {fth_mean(fth_sqr(fth_sub(found, wanted)), "cell")};
    fth_grad(out[0], 1, &weights, &grad);
    const fth_val m1 = fth_param(g, so_column[SO_M1], "term", m->column[SO_M1]);
    const fth_val m2 = fth_param(g, so_column[SO_M2], "term", m->column[SO_M2]);
    fth_adam_step(&FTH_ADAM_DEFAULT, weights, grad, m1, m2, rate, step, &out[1]);
    f->plan = fth_plan_make(g, out, OUTPUTS, NULL, err);
    return f->plan ? FTH_OK : err->status;
}

static void clear(fit *f)
{
    fth_plan_destroy(f->plan);
    fth_graph_destroy(f->g);
    so_model_clear(&f->model);
}

/* ---- checkpoints ---- */

static void add_tie(so_ties *t, const char *key, const char *value)
{
    char *copy = t->value[t->n];
    snprintf(copy, FTH_NUMBER, "%s", value ? value : "");
    t->meta[t->n++] = (fth_file_meta){key, copy};
}

static void add_number(so_ties *t, const char *key, double v)
{
    char text[FTH_NUMBER];
    add_tie(t, key, fth_number_format(text, sizeof text, v, 17));
}

/* Any difference, and a checkpoint is of no use. */
static void find_ties(so_ties *t, const fth_stage_call *call, const so_data *data)
{
    const fth_config *cfg = call->config;
    *t = (so_ties){.n = 0};
    add_number(t, "algorithm", call->stage->algorithm);
    add_tie(t, "model.basis", fth_config_text(cfg, "model.basis"));
    add_number(t, "model.order", (double)fth_config_int(cfg, "model.order"));
    add_number(t, "fit.iterations", (double)fth_config_int(cfg, "fit.iterations"));
    add_number(t, "fit.rate", fth_config_real(cfg, "fit.rate"));
    add_number(t, "survey.depth", fth_config_real(cfg, "survey.depth"));
    add_number(t, "survey.relief", fth_config_real(cfg, "survey.relief"));
    add_tie(t, "soundings", fth_safetensors_meta(data->file, "xxh64.soundings"));
    add_tie(t, "depths", fth_safetensors_meta(data->file, "xxh64.depths"));
}

/* From the checkpoint where it is one of this fit, else from the beginning. */
static fth_status start(fit *f, const char *path, const so_ties *t, fth_err *err)
{
    fth_mem *mem = fth_context_mem(f->call->context);
    if (fth_stage_may_resume(f->call) && fth_path_exists(path)) {
        fth_err why = {0};
        const fth_status s = so_model_read(&f->model, mem, path, t, &why);
        if (s == FTH_OK) {
            fth_stage_say(f->call, "going on after iteration %lld of %lld",
                          (long long)f->model.step, (long long)f->model.iterations);
            return FTH_OK;
        }
        if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) return err ? (*err = why, s) : s;
        fth_stage_say(f->call, "starting over, the checkpoint is %s: %s",
                      s == FTH_E_STATE ? "of another fit" : "damaged", why.text);
    }
    return so_model_create(&f->model, mem, f->call->config, err);
}

/* ---- steps ---- */

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
    if (!isfinite(f->loss)) {
        FTH_FAIL(err, FTH_E_NUMERIC, "the loss is no number after iteration %lld",
                 (long long)f->step);
        fth_err_hint(err, "lower fit.rate, which is %g", rate);
        return FTH_E_NUMERIC;
    }
    ((double *)fth_tensor_data(m->loss))[m->step++] = (double)f->loss;
    return FTH_OK;
}

static fth_status take_steps(fit *f, const char *path, const so_ties *t, fth_err *err)
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
        const bool go_on = fth_stage_report(f->call, &p);
        const bool last = m->step == m->iterations;
        if (last) fth_stage_point(f->call, "before_outputs");
        if (last || !go_on || m->step % every == 0) FTH_TRY(so_model_write(m, path, t, err));
        if (!go_on && !last) {
            FTH_FAIL(err, FTH_E_CANCELLED, "the fit was stopped after iteration %lld of %lld",
                     (long long)m->step, (long long)m->iterations);
            fth_err_hint(err, "start it again: it goes on from there");
            return FTH_E_CANCELLED;
        }
    }
    return FTH_OK;
}

fth_status so_fit_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show, fth_err *err)
{
    fit f = {.call = call};
    const so_data data = so_data_planned(call->config);
    fth_status s = so_model_create(&f.model, fth_context_mem(call->context), call->config, err);
    if (s == FTH_OK) s = make_plan(&f, &data, err);
    if (s == FTH_OK)
        s = fth_stage_plan_add(call, out, f.plan, (double)f.model.iterations, show, err);
    out->bound = data.bound;
    snprintf(out->text, sizeof out->text, "cell%s%lld, term=%lld", data.bound ? "<=" : "=",
             (long long)data.soundings.size[0], (long long)f.model.terms);
    clear(&f);
    return s;
}

fth_status so_fit_run(const fth_stage_call *call, fth_err *err)
{
    fit f = {.call = call};
    char path[FTH_PATH];
    so_data data;
    so_ties t;
    FTH_TRY(fth_path_join(path, call->model_dir, SO_MODEL, err));
    FTH_TRY(so_data_open(&data, call, err));
    find_ties(&t, call, &data);
    fth_status s = start(&f, path, &t, err);
    if (s == FTH_OK) s = make_plan(&f, &data, err);
    if (s == FTH_OK) s = take_steps(&f, path, &t, err);
    clear(&f);
    so_data_close(&data);
    return s;
}
