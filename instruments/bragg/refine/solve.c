/* solve.c - the normal equations, by their eigenvectors.
 *
 * They are small and solved a few dozen times, so diagnosis matters more than speed: a direction
 * with eigenvalue 0 is a set of parameters that the image cannot distinguish, and the error names
 * them.
 */
#include "fit.h"

#include <math.h>
#include <string.h>

static const double SINGULAR = 1e-11; /* of values that sum up to the number of variables */

fth_status br_solver_open(br_solver *s, fth_context *ctx, int n, fth_err *err)
{
    const int64_t size[2] = {n, n};
    fth_mem *mem = fth_context_mem(ctx);
    *s = (br_solver){0};
    FTH_TRY(fth_tensor_create(&s->matrix, mem, "matrix", FTH_F64, 2, size, err));
    FTH_TRY(fth_tensor_create(&s->value, mem, "value", FTH_F64, 1, size, err));
    FTH_TRY(fth_tensor_create(&s->vector, mem, "vector", FTH_F64, 2, size, err));
    s->g = fth_graph_create(ctx);
    fth_axis(s->g, "row", n);
    fth_axis_like(s->g, "col", "row");
    const fth_val a = fth_input(s->g, "matrix", FTH_F64, "row col", fth_tensor_source(s->matrix));
    const fth_val value = fth_eigh(a, "row", "col");
    s->sink[0] = fth_tensor_sink(s->value), s->sink[1] = fth_tensor_sink(s->vector);
    s->plan = fth_plan_make(s->g, ((fth_val[]){value, fth_out(value, 1)}), 2,
                            &(fth_limits){.sinks = s->sink}, err);
    return s->plan ? FTH_OK : err->status;
}

void br_solver_close(br_solver *s)
{
    fth_plan_destroy(s->plan);
    fth_graph_destroy(s->g);
    fth_tensor_release(s->matrix);
    fth_tensor_release(s->value);
    fth_tensor_release(s->vector);
    *s = (br_solver){0};
}

/* From parameters to scaled variables. */
static void gather(const br_fit_point *p, const br_variables *v, br_normal *q, double *a)
{
    double full[BR_PARAMS][BR_PARAMS] = {{0}};
    *q = (br_normal){.n = v->n};
    for (int i = 0; i < BR_PARAMS; i++) {
        if (v->of[i] < 0) continue;
        q->gradient[v->of[i]] += p->gradient[i];
        for (int j = 0; j < BR_PARAMS; j++)
            if (v->of[j] >= 0) full[v->of[i]][v->of[j]] += p->normal[i][j];
    }
    for (int k = 0; k < v->n; k++) {
        q->scale[k] = full[k][k] > 0 ? 1 / sqrt(full[k][k]) : 0;
        q->gradient[k] *= q->scale[k];
    }
    for (int i = 0; i < v->n; i++)
        for (int j = 0; j < v->n; j++) a[i * v->n + j] = full[i][j] * q->scale[i] * q->scale[j];
}

static fth_status no_effect(const br_variables *v, int k, fth_err *err)
{
    const char *name = br_params[v->head[k]].name;
    FTH_FAIL(err, FTH_E_NUMERIC, "the image of this model does not depend on %s (%s)", name,
             br_params[v->head[k]].doc);
    fth_err_hint(err, "add --fix %s", name);
    return FTH_E_NUMERIC;
}

/* Names the parameters of the flattest direction. */
static fth_status flat(const br_variables *v, const br_normal *q, fth_err *err)
{
    char list[160] = "";
    int most = 0;
    for (int k = 0; k < v->n; k++) {
        const double part = fabs(q->vector[0][k]);
        if (part > fabs(q->vector[0][most])) most = k;
        if (part < 0.1) continue;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                 br_params[v->head[k]].name);
    }
    FTH_FAIL(err, FTH_E_NUMERIC, "the image does not distinguish these parameters: %s", list);
    fth_err_hint(err, "fix one of them, for example with --fix %s, or tie what is equal with --tie",
                 br_params[v->head[most]].name);
    return FTH_E_NUMERIC;
}

fth_status br_solver_at(br_solver *s, const br_fit_point *p, const br_variables *v, br_normal *out,
                        fth_err *err)
{
    gather(p, v, out, fth_tensor_data(s->matrix));
    for (int k = 0; k < v->n; k++)
        if (!(out->scale[k] > 0)) return no_effect(v, k, err);
    FTH_TRY(fth_run(s->plan, s->sink, NULL, NULL, err));
    const double *value = fth_tensor_data(s->value), *vector = fth_tensor_data(s->vector);
    for (int i = 0; i < v->n; i++) {
        out->value[i] = value[i];
        for (int k = 0; k < v->n; k++) out->vector[i][k] = vector[i * v->n + k];
    }
    return out->value[0] > SINGULAR ? FTH_OK : flat(v, out, err);
}

void br_normal_step(const br_normal *q, double damping, double *step)
{
    for (int k = 0; k < q->n; k++) step[k] = 0;
    for (int i = 0; i < q->n; i++) {
        double along = 0;
        for (int k = 0; k < q->n; k++) along += q->vector[i][k] * q->gradient[k];
        along /= q->value[i] + damping;
        for (int k = 0; k < q->n; k++) step[k] += along * q->vector[i][k] * q->scale[k];
    }
}

void br_normal_covariance(const br_normal *q, double cov[BR_PARAMS][BR_PARAMS])
{
    for (int a = 0; a < q->n; a++)
        for (int b = 0; b < q->n; b++) {
            double sum = 0;
            for (int i = 0; i < q->n; i++) sum += q->vector[i][a] * q->vector[i][b] / q->value[i];
            cov[a][b] = sum * q->scale[a] * q->scale[b];
        }
}
