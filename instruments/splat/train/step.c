/* step.c - see step.h. */
#include "step.h"

#include "../loss/compare.h"
#include "../loss/loss.h"
#include "../pose/back.h"
#include "../render/frame.h"

#include <string.h>

enum { FIRST_ROOM = 1024 }; /* of a row of tiles; the first run finds what is needed */

/* ---- memory ---- */

fth_status gs_step_create(gs_step *s, fth_context *ctx, const gs_rows *rows,
                          const gs_step_rules *rules, fth_err *err)
{
    *s = (gs_step){.ctx = ctx, .rows = rows, .rules = *rules, .n = -1};
    FTH_TRY(fth_tensor_create(&s->view, fth_context_mem(ctx), "view", FTH_F32, 1,
                              &(int64_t){GS_VIEW}, err));
    if (rules->poses)
        FTH_TRY(fth_tensor_create(&s->view_bar, fth_context_mem(ctx), "gradient of the view",
                                  FTH_F32, 1, &(int64_t){GS_VIEW}, err));
    return fth_tensor_create(&s->rates, fth_context_mem(ctx), "rates", FTH_F32, 1,
                             &(int64_t){GS_RATES}, err);
}

static void forget_size(gs_step_size *z)
{
    if (z->plan) (void)fth_plan_destroy(z->plan);
    if (z->graph) (void)fth_graph_destroy(z->graph);
    z->plan = NULL;
    z->graph = NULL;
}

void gs_step_forget(gs_step *s)
{
    for (int i = 0; i < GS_STEP_SIZES; i++) forget_size(&s->size[i]);
    s->awake = NULL;
    s->n = -1;
}

void gs_step_free(gs_step *s)
{
    gs_step_forget(s);
    (void)fth_tensor_release(s->view);
    (void)fth_tensor_release(s->rates);
    (void)fth_tensor_release(s->view_bar);
    *s = (gs_step){0};
}

/* ---- the graph of the loss ---- */

static void declare_rows(fth_graph *g, const gs_step *s)
{
    const int64_t k = gs_coefficients(s->rows->degree);
    fth_axis(g, "g", s->rows->n);
    fth_axis(g, "xyz", 3);
    fth_axis(g, "wxyz", 4);
    fth_axis(g, "c", 3);
    if (k > 0) fth_axis(g, "k", k);
}

static void add(gs_step_size *z, fth_val v, fth_sink sink)
{
    z->out[z->outputs] = v;
    z->sink[z->outputs++] = sink;
}

/* Number i of a row of splats, or of its cotangents, over g. */
static fth_val column(fth_val rows, int i)
{
    return fth_sum(fth_slice(rows, "p", i, "one"), "one");
}

/* The loss of the image, and of sizes and opacities where they weigh anything. */
static fth_val total_of(const gs_step *s, fth_graph *g, const gs_values *model, fth_val aim,
                        fth_val loss)
{
    fth_val total = loss;
    if (s->rules.scale_reg > 0)
        total = fth_add(
            total, fth_mul(fth_cast(fth_mean(fth_exp(model->at[GS_SCALING]), "g xyz"), FTH_F64),
                           fth_const(g, FTH_F64, s->rules.scale_reg)));
    if (s->rules.opacity_reg > 0)
        total = fth_add(
            total, fth_mul(fth_cast(fth_mean(fth_sigmoid(model->at[GS_OPACITY]), "g"), FTH_F64),
                           fth_const(g, FTH_F64, s->rules.opacity_reg)));
    if (s->aim) {
        const fth_val away = fth_sub(fth_sigmoid(model->at[GS_OPACITY]), aim);
        total = fth_add(total, fth_mul(fth_cast(fth_sum(fth_sqr(away), "g"), FTH_F64),
                                       fth_const(g, FTH_F64, 0.5 * s->rho)));
    }
    return total;
}

static bool has(const gs_step *s, int attribute)
{
    return attribute != GS_SH_N || s->rows->degree > 0;
}

static gs_values params(const gs_step *s, fth_graph *g, gs_part part)
{
    static const char *const names[GS_PARTS] = {"", "first ", "second "};
    gs_values v = {0};
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        char name[48];
        snprintf(name, sizeof name, "%s%s", names[part], gs_attribute_names[a]);
        if (has(s, a)) v.at[a] = fth_param(g, name, gs_attribute_axes[a], s->rows->tensor[part][a]);
    }
    return v;
}

/* Numbers of gradients that are not finite; that of the view comes out where it is asked for. */
static fth_val count_bad(gs_step *s, gs_step_size *z, fth_graph *g, const gs_values *model,
                         fth_val view, fth_val splats, fth_val bar)
{
    const fth_val bad = fth_count(fth_not(fth_isfinite(bar)), "g p");
    if (!s->view_bar) return bad;
    const fth_val to_view = gs_view_back(g, &z->rule, model, view, splats, bar);
    add(z, to_view, fth_tensor_sink(s->view_bar));
    return fth_add(bad, fth_count(fth_not(fth_isfinite(to_view)), "view"));
}

/* The step of the grids, and whether their variation is finite. */
static void add_grids(gs_step *s, gs_step_size *z, fth_graph *g, const gs_grid_values *grids,
                      fth_val bar, fth_val *good)
{
    fth_val gradient, assigns[GS_GRID_STEPS];
    const fth_val variation = gs_grids_learn(g, grids, s->rules.grid_weight, bar, &gradient);
    *good = fth_and(*good, fth_isfinite(variation));
    add(z, variation, fth_scalar_sink(FTH_F64, &s->variation));
    if (gs_grids_step(g, grids, gradient, *good, assigns) != FTH_OK) return; /* it is known */
    for (int k = 0; k < GS_GRID_STEPS; k++) add(z, assigns[k], (fth_sink){0});
}

/* The update at the end of the plan; with numbers that are not finite nothing moves. */
static void add_update(gs_step *s, gs_step_size *z, fth_graph *g, const gs_values *model,
                       fth_val view, fth_val loss, fth_val total, fth_val splats,
                       const gs_grid_values *grids)
{
    const fth_val wrt[2] = {splats, grids->grid};
    fth_val bars[2], assigns[GS_UPDATE_ASSIGNS];
    if (fth_grad(loss, s->rules.grids ? 2 : 1, wrt, bars) != FTH_OK) return; /* it is known */
    const fth_val bar = bars[0];
    const fth_val seed = fth_const_i64(g, FTH_I64, s->rules.seed),
                  iteration = fth_input(g, "iteration", FTH_I64, "",
                                        fth_scalar_source(FTH_I64, &s->iteration));
    const gs_update_rows rows = {
        .normals = s->rules.noise && !s->aim ? gs_normals(seed, iteration) : (fth_val){0},
        .aim = z->aim,
        .value = *model,
        .first = params(s, g, GS_FIRST),
        .second = params(s, g, GS_SECOND),
        .densify = s->densify ? fth_param(g, "densify", "g sum", s->rows->densify) : (fth_val){0}};
    const fth_val bad = count_bad(s, z, g, model, view, splats, bar);
    fth_val good = fth_and(fth_isfinite(total), fth_eq(bad, fth_const_i64(g, FTH_I64, 0)));
    if (s->rules.grids) add_grids(s, z, g, grids, bars[1], &good);
    const fth_val rates = fth_input(g, "rates", FTH_F32, "rate", fth_tensor_source(s->rates)),
                  used = fth_select(good, rates, fth_const(g, FTH_F32, 0));
    add(z, bad, fth_scalar_sink(FTH_I64, &s->bad));
    const int n = gs_update(g, &z->rule, &rows, view, splats, bar, used, assigns);
    for (int i = 0; i < n; i++) add(z, assigns[i], (fth_sink){0});
}

/* What a view is compared with, as sources of inputs. */
enum { TARGET, MASK, ALPHA, COMPARED };
static const char *const compared_names[COMPARED] = {"target", "mask", "alpha"};

static bool has_gallery(const gs_step *s)
{
    return s->gallery && s->gallery->pixels;
}

static bool is_compared(const gs_step *s, int k)
{
    return k == TARGET ? !has_gallery(s) : k == MASK ? s->rules.masked : s->rules.alpha;
}

/* The image of the view: brought, or the one of the gallery from a row on. */
static fth_val target_of(const gs_step *s, fth_graph *g, fth_source source)
{
    if (!has_gallery(s)) return fth_input(g, "target", FTH_F32, "i j c", source);
    fth_axis(g, "row", s->gallery->views * s->gallery->height);
    const fth_val all = fth_param(g, "images", "row j c", s->gallery->pixels),
                  first = fth_input(g, "row", FTH_I64, "", fth_scalar_source(FTH_I64, &s->row)),
                  one = fth_gather(all, "row", fth_add(fth_index(g, "i"), first));
    return fth_div(fth_cast(one, FTH_F32), fth_const(g, FTH_F32, 255));
}

/* The loss of the image, whose colours are `shown`; `photo` has its parts. */
static fth_val image_loss(const gs_step *s, fth_graph *g, fth_val image, fth_val shown,
                          fth_val view, const fth_source source[COMPARED], fth_val *photo)
{
    gs_compare with = {.lambda = s->rules.lambda,
                       .lambda_alpha = s->rules.lambda_alpha,
                       .target = target_of(s, g, source[TARGET])};
    if (s->rules.masked) with.mask = fth_input(g, "mask", FTH_U8, "i j", source[MASK]);
    if (s->rules.alpha) {
        with.alpha = fth_input(g, "alpha", FTH_U8, "i j", source[ALPHA]);
        with.ground = fth_slice(view, "view", GS_VIEW_GROUND, "c");
    }
    return gs_compare_of(g, &with, image, shown, photo);
}

static void build(gs_step *s, gs_step_size *z, fth_graph *g, const fth_source source[COMPARED])
{
    fth_val photo;
    z->rule.need = &z->need;
    declare_rows(g, s);
    fth_axis(g, "p", gs_splat_numbers(&z->rule));
    fth_axis(g, "view", GS_VIEW);
    fth_axis(g, "i", z->height);
    fth_axis(g, "j", z->width);
    fth_axis(g, "one", 1);
    fth_axis(g, "rate", GS_RATES);
    if (s->densify) fth_axis(g, "sum", GS_UPDATE_SUM);
    const gs_values model = params(s, g, GS_VALUE);
    z->aim = s->aim ? fth_param(g, "aim", "g", s->aim) : (fth_val){0};
    const gs_grid_values grids =
        s->rules.grids ? gs_grids_open(g, s->rules.grids, &s->turn) : (gs_grid_values){0};
    const fth_val view = fth_input(g, "view", FTH_F32, "view", fth_tensor_source(s->view)),
                  splats = gs_project(g, &z->rule, &model, view),
                  order = gs_order(g, &z->rule, splats),
                  image = gs_blend(g, &z->rule, splats, order, view),
                  shown = s->rules.grids ? gs_slice(g, image, grids.grid) : image,
                  loss = image_loss(s, g, image, shown, view, source, &photo),
                  total = total_of(s, g, &model, z->aim, loss),
                  seen = fth_gt(column(splats, GS_TILES), fth_const(g, FTH_F32, 0));
    add(z, total, fth_scalar_sink(FTH_F64, &s->loss[0]));
    for (int k = 0; k < 3; k++)
        add(z, k ? fth_out(photo, k) : photo, fth_scalar_sink(FTH_F64, &s->loss[1 + k]));
    add(z, fth_count(seen, "g"), fth_scalar_sink(FTH_I64, &s->seen));
    add_update(s, z, g, &model, view, loss, total, splats, &grids);
}

/* ---- plans ---- */

/* The one for images of a size: that, or the one that was not used for the longest time. */
static gs_step_size *size_of(gs_step *s, int64_t width, int64_t height)
{
    gs_step_size *oldest = &s->size[0];
    for (int i = 0; i < GS_STEP_SIZES; i++) {
        gs_step_size *z = &s->size[i];
        if (z->width == width && z->height == height) return z;
        if (z->used < oldest->used) oldest = z;
    }
    forget_size(oldest);
    *oldest = (gs_step_size){.width = width,
                             .height = height,
                             .rule = {.width = width,
                                      .height = height,
                                      .tile = 16,
                                      .room = FIRST_ROOM,
                                      .most_alpha = s->rules.most_alpha,
                                      .antialias = s->rules.antialias,
                                      .rays = s->rules.gut}};
    return oldest;
}

static fth_status plan_once(gs_step *s, gs_step_size *z, const fth_source source[COMPARED],
                            fth_err *err)
{
    forget_size(z);
    z->outputs = 0;
    z->graph = fth_graph_create(s->ctx);
    build(s, z, z->graph, source);
    FTH_TRY(fth_graph_check(z->graph, err));
    fth_mem *mem = fth_context_mem(s->ctx);
    void *beside = NULL;
    if (s->beside > 0)
        FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, s->beside, "images read ahead", &beside, err));
    z->plan = fth_plan_make(z->graph, z->out, z->outputs,
                            &(fth_limits){.sinks = z->sink, .keep = true}, err);
    if (beside) (void)fth_mem_release(mem, beside, NULL);
    return z->plan ? FTH_OK : err ? err->status : FTH_E_NO_FIT;
}

/* On a device lists of tiles are made once; where all of them do not fit, in rows of tiles. */
static fth_status make_plan(gs_step *s, gs_step_size *z, const fth_source source[COMPARED],
                            fth_err *err)
{
    if (s->n != s->rows->n || s->densify != (s->rows->densify != NULL)) gs_step_forget(s);
    s->n = s->rows->n;
    s->densify = s->rows->densify != NULL;
    z->rule.listed = fth_context_device_mem(s->ctx) != NULL;
    if (z->rule.listed) {
        fth_err local = {0};
        const fth_status st = plan_once(s, z, source, &local);
        if (st == FTH_OK) return FTH_OK;
        if (st != FTH_E_NO_FIT && st != FTH_E_BUDGET) {
            if (err) *err = local;
            return st;
        }
        z->rule.listed = 0;
    }
    return plan_once(s, z, source, err);
}

static fth_source source_of(const gs_step_size *z, int k, const void *data)
{
    return (fth_source){.kind = "memory",
                        .dtype = k == TARGET ? FTH_F32 : FTH_U8,
                        .n_axes = k == TARGET ? 3 : 2,
                        .size = {z->height, z->width, k == TARGET ? 3 : 0},
                        .data = (void *)(uintptr_t)data};
}

/* Gaussians of a row of tiles: all in each tile where these are few, else eight tiles for each. */
static int64_t room_for(const gs_step *s, const gs_step_size *z)
{
    enum { FEW = 1 << 14, TILES_EACH = 8 };
    const int64_t tile = z->rule.tile, rows = (z->height + tile - 1) / tile,
                  all = s->rows->n * ((z->width + tile - 1) / tile),
                  likely = TILES_EACH * s->rows->n / rows, some = likely > FEW ? likely : FEW;
    return all < some ? all : some;
}

fth_status gs_step_plan(gs_step *s, int64_t width, int64_t height, const float *target,
                        const fth_plan **out, fth_err *err)
{
    gs_step_size *z = size_of(s, width, height);
    const int64_t size[3] = {height, width, 3}, room = z->rule.room, likely = room_for(s, z);
    const fth_source bytes = fth_source_planned(FTH_U8, 2, size);
    fth_source source[COMPARED] = {fth_source_planned(FTH_F32, 3, size), bytes, bytes};
    const uint8_t *planes = target ? (const uint8_t *)(target + 3 * width * height) : NULL;
    if (target) {
        source[TARGET] = source_of(z, TARGET, target);
        source[MASK] = source_of(z, MASK, planes);
        source[ALPHA] = source_of(z, ALPHA, planes + (s->rules.masked ? width * height : 0));
    }
    if (!fth_context_device_mem(s->ctx) && likely > room) z->rule.room = likely;
    const fth_status st = make_plan(s, z, source, err);
    z->rule.room = room;
    *out = z->plan;
    return st;
}

/* ---- running ---- */

static bool go_on(void *call, const fth_progress *progress)
{
    (void)progress;
    return !fth_stage_is_cancelled(call);
}

static bool never_stop(void *user, const fth_progress *progress)
{
    (void)user, (void)progress;
    return true;
}

static fth_status run_plan(gs_step *s, const fth_stage_call *call, fth_plan *plan,
                           const fth_sink *sinks, bool may_stop, fth_err *err)
{
    fth_run_report report;
    const fth_run_options often = {.progress = may_stop ? go_on : never_stop,
                                   .user = (void *)(uintptr_t)call};
    /* without a stage the context knows whether the user wants it to end */
    FTH_TRY(fth_run(plan, sinks, call || !may_stop ? &often : NULL, &report, err));
    if (call) fth_stage_account(call, &report);
    s->planned_bytes = report.planned_bytes;
    s->ledger_bytes = report.ledger_bytes;
    return FTH_OK;
}

static fth_status set_sources(const gs_step *s, const gs_step_size *z,
                              const fth_source source[COMPARED], fth_err *err)
{
    for (int k = 0; k < COMPARED; k++)
        if (is_compared(s, k)) FTH_TRY(fth_input_set(z->graph, compared_names[k], source[k], err));
    return FTH_OK;
}

static void put_rates(const gs_step *s)
{
    gs_rates r = {.noise = s->noise,
                  .rho = s->aim ? s->rho : 0,
                  .scale_reg = s->rules.scale_reg,
                  .opacity_reg = s->rules.opacity_reg,
                  .n = s->rows->n};
    memcpy(r.rate, s->rate, sizeof r.rate);
    memcpy(r.step, s->count, sizeof r.step);
    memcpy(r.on, s->go, sizeof r.on);
    gs_rates_put(&r, fth_tensor_data(s->rates));
}

fth_status gs_step_run(gs_step *s, const fth_stage_call *call, const gs_step_view *view, bool whole,
                       fth_err *err)
{
    gs_step_size *z = size_of(s, view->view->width, view->view->height);
    const fth_source source[COMPARED] = {source_of(z, TARGET, view->target),
                                         source_of(z, MASK, view->mask),
                                         source_of(z, ALPHA, view->alpha)};
    if (s->awake && s->awake != z) fth_plan_rest(s->awake->plan); /* one keeps memory of a device */
    s->awake = z;
    z->used = ++s->runs;
    if (has_gallery(s)) s->row = gs_gallery_row(s->gallery, view->number);
    gs_view_pack(view->view, view->ground, view->degree, fth_tensor_data(s->view));
    put_rates(s);
    for (;;) {
        fth_err local = {0};
        z->need = 0;
        if (!z->plan || s->n != s->rows->n || s->densify != (s->rows->densify != NULL))
            FTH_TRY(make_plan(s, z, source, err));
        else
            FTH_TRY(set_sources(s, z, source, err));
        const fth_status st = run_plan(s, call, z->plan, z->sink, !whole, &local);
        if (st == FTH_E_STATE && z->need > z->rule.room) {
            z->rule.room = z->need + z->need / 4;
            forget_size(z);
            continue;
        }
        if (st != FTH_OK && err) *err = local;
        s->loss[0] += s->variation; /* 0 without grids */
        return st;
    }
}

void gs_step_rest(gs_step *s)
{
    if (s->awake) fth_plan_rest(s->awake->plan);
}

/* ---- noise alone ---- */

fth_status gs_step_shake(gs_step *s, double rate, int64_t iteration, fth_err *err)
{
    if (s->rows->n == 0) return FTH_OK;
    s->noise = rate;
    s->iteration = iteration;
    put_rates(s);
    fth_graph *g = fth_graph_create(s->ctx);
    declare_rows(g, s);
    fth_axis(g, "rate", GS_RATES);
    const gs_values model = params(s, g, GS_VALUE);
    const fth_val seed = fth_const_i64(g, FTH_I64, s->rules.seed),
                  now = fth_input(g, "iteration", FTH_I64, "",
                                  fth_scalar_source(FTH_I64, &s->iteration)),
                  rates = fth_input(g, "rates", FTH_F32, "rate", fth_tensor_source(s->rates)),
                  moved = gs_noise(g, &model, gs_normals(seed, now), rates);
    fth_plan *plan = fth_plan_make(g, &moved, 1, &(fth_limits){0}, err);
    fth_status st = plan ? FTH_OK : err ? err->status : FTH_E_NO_FIT;
    const fth_run_options whole = {.progress = never_stop};
    if (plan) st = fth_run(plan, &(fth_sink){0}, &whole, NULL, err);
    if (plan) (void)fth_plan_destroy(plan);
    (void)fth_graph_destroy(g);
    return st;
}
