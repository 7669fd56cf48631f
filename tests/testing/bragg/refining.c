/* refining.c - see refining.h. */
#include "testing/bragg/refining.h"

#include <math.h>

/* ---- the truth ---- */

static void tensor(fth_tensor **out, tr_study *s, const char *name, int n_axes, const int64_t *size,
                   const double *from)
{
    fth_err err = {0};
    OKE(fth_tensor_create(out, fth_context_mem(s->ctx), name, FTH_F64, n_axes, size, &err), &err);
    memcpy(fth_tensor_data(*out), from, (size_t)fth_tensor_bytes(*out));
}

void tr_crystal(tb_case *c, int64_t pixels)
{
    const double cell[6] = {40, 45, 50, 85, 95, 100}, misset[3] = {17, -28, 51};
    t_random r = {.state = 1};
    tb_make(c);
    tb_detector(c, pixels, 102.4 / (double)pixels, 100);
    for (int k = 0; k < 6; k++) c->param[BR_A + k] = k < 3 ? cell[k] : br_radians(cell[k]);
    for (int k = 0; k < 3; k++) c->param[BR_MX + k] = br_radians(misset[k]), c->s.cells[k] = 8;
    tb_table_random(c, &r, 26);
    c->s.default_F = 0;
    c->s.quirks = 0;
    tb_ready(c);
}

static void make_experiment(tr_study *s)
{
    const br_scene *scene = &s->truth.s;
    s->e.mem = fth_context_mem(s->ctx);
    s->e.scene = *scene;
    memcpy(s->e.param, s->truth.param, sizeof s->e.param);
    tensor(&s->e.source, s, "source", 2, (int64_t[]){scene->sources, BR_SRC_COLUMNS},
           s->truth.source);
    tensor(&s->e.mosaic_rotation, s, "mosaic_rotation", 2, (int64_t[]){scene->mosaics, 9},
           s->truth.mosaic_rotation);
    if (scene->hkls)
        tensor(&s->e.table, s, "table", 3,
               (int64_t[]){scene->h_max - scene->h_min + 2, scene->k_max - scene->k_min + 2,
                           scene->l_max - scene->l_min + 2},
               s->truth.table);
}

/* The image of the truth, drawn with noise in place. */
static void draw(tr_study *s, double *image, int64_t seed)
{
    fth_err err = {0};
    const int64_t size[2] = {s->truth.s.slow, s->truth.s.fast};
    fth_tensor *rate = NULL;
    OKE(fth_tensor_wrap(&rate, s->e.mem, "rate", FTH_F64, 2, size, image, &err), &err);
    OKE(fth_tensor_create(&s->image, s->e.mem, "image", FTH_F64, 2, size, &err), &err);
    fth_graph *g = fth_graph_create(s->ctx);
    fth_axis(g, "slow", size[0]);
    fth_axis(g, "fast", size[1]);
    const fth_val mean = fth_input(g, "rate", FTH_F64, "slow fast", fth_tensor_source(rate));
    const fth_val drawn = fth_cast(
        fth_poisson(mean, fth_const_i64(g, FTH_I64, seed), fth_const_i64(g, FTH_I64, 0), 1),
        FTH_F64);
    const fth_sink sink = fth_tensor_sink(s->image);
    fth_plan *p = fth_plan_make(g, &drawn, 1, &(fth_limits){.sinks = &sink}, &err);
    if (!p) OKE(err.status, &err);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(rate);
}

/* ---- the start ---- */

static void turn_misset(double *angle, const double *axis, double by)
{
    double r[3][3];
    for (int k = 0; k < 3; k++) {
        double v[3] = {k == 0, k == 1, k == 2};
        br_rotate(v, angle[0], angle[1], angle[2], v);
        br_rotate_axis(v, axis, by, v);
        for (int i = 0; i < 3; i++) r[i][k] = v[i];
    }
    angle[0] = atan2(r[2][1], r[2][2]);
    angle[1] = atan2(-r[2][0], hypot(r[2][1], r[2][2]));
    angle[2] = atan2(r[1][0], r[0][0]);
}

static double sign(t_random *r)
{
    return t_random_f64(r) < 0.5 ? -1 : 1;
}

static void go_off(tr_study *s, const tr_off *off, t_random *r)
{
    double axis[3], length = 0;
    double *p = s->e.param;
    for (int k = 0; k < 3; k++) {
        axis[k] = t_random_normal(r);
        length += axis[k] * axis[k];
    }
    for (int k = 0; k < 3; k++) axis[k] /= sqrt(length);
    turn_misset(&p[BR_MX], axis, br_radians(off->rotation));
    for (int k = BR_A; k <= BR_C; k++) p[k] *= 1 + off->cell * sign(r);
    for (int k = BR_XB; k <= BR_YB; k++) p[k] += off->beam * s->e.scene.pixel * sign(r);
    p[BR_FLU] *= 1 + off->fluence * sign(r);
}

void tr_make(tr_study *s, tb_case *truth, double photons, const tr_off *off, uint64_t seed)
{
    fth_err err = {0};
    fth_options opt;
    t_random r = t_random_make(seed);
    *s = (tr_study){.truth = *truth, .o = {.gain = 1, .full = (double)INFINITY}};
    const int64_t n = s->truth.s.slow * s->truth.s.fast;
    double *image = malloc((size_t)n * sizeof *image), sum = 0;
    if (!image) FAIL("no memory");
    tb_run run = {.dtype = FTH_F64, .image = image, .threads = 2};
    tb_render(&s->truth, &run);
    for (int64_t i = 0; i < n; i++) sum += image[i];
    for (int64_t i = 0; i < n; i++) image[i] *= photons / sum;
    s->truth.param[BR_FLU] *= photons / sum;
    fth_options_default(&opt);
    opt.threads = 2;
    OKE(fth_context_create(&s->ctx, &opt, &err), &err);
    make_experiment(s);
    draw(s, image, (int64_t)(seed + t_seed()));
    free(image);
    s->o.pixels = fth_tensor_source(s->image);
    go_off(s, off, &r);
}

void tr_free(tr_study *s)
{
    fth_err err = {0};
    br_experiment_clear(&s->e);
    fth_tensor_release(s->image);
    OKE(fth_context_destroy(s->ctx, &err), &err);
    tb_free(&s->truth);
}

/* ---- the answer ---- */

double tr_worst(const tr_study *s, const br_refined *r, const br_variables *v)
{
    double worst = 0;
    for (int p = 0; p < BR_PARAMS; p++)
        if (v->of[p] >= 0) worst = fmax(worst, fabs(r->param[p] - s->truth.param[p]) / r->error[p]);
    return worst;
}

void tr_errors(const tr_study *s, const br_refined *r, double *degrees, double *edges,
               double *pixels)
{
    *degrees = *edges = *pixels = 0;
    for (int p = BR_AL; p <= BR_MZ; p++) *degrees = fmax(*degrees, r->error[p] / BR_DEGREE);
    for (int p = BR_A; p <= BR_C; p++) *edges = fmax(*edges, r->error[p] / r->param[p]);
    for (int p = BR_XB; p <= BR_YB; p++) *pixels = fmax(*pixels, r->error[p] / s->e.scene.pixel);
}
