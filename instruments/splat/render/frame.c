/* frame.c - see frame.h. */
#include "frame.h"

#include "../loss/compare.h"

#include <string.h>

enum { FIRST_ROOM = 1024 }; /* of a row of tiles; the first run finds what is needed */

static fth_status make(const gs_frame *f, fth_tensor **out, const char *label, int n,
                       const int64_t *size, fth_err *err)
{
    return fth_tensor_create(out, fth_context_mem(f->ctx), label, FTH_F32, n, size, err);
}

static fth_status make_plane(const gs_frame *f, fth_tensor **out, const char *label, fth_err *err)
{
    const int64_t size[2] = {f->how.height, f->how.width};
    return fth_tensor_create(out, fth_context_mem(f->ctx), label, FTH_U8, 2, size, err);
}

static fth_status make_depth(gs_frame *f, fth_err *err)
{
    const int64_t image[3] = {f->how.height, f->how.width, 3}, view[1] = {GS_VIEW};
    FTH_TRY(make(f, &f->depth, "depth", 3, image, err));
    return make(f, &f->dark, "view before black", 1, view, err);
}

static fth_status make_tensors(gs_frame *f, fth_err *err)
{
    const int64_t image[3] = {f->how.height, f->how.width, 3}, view[1] = {GS_VIEW},
                  splats[2] = {f->model->n, gs_splat_numbers(&f->rule)};
    FTH_TRY(make(f, &f->view, "view", 1, view, err));
    FTH_TRY(make(f, &f->image, "image", 3, image, err));
    FTH_TRY(make(f, &f->alpha, "alpha", 2, image, err));
    if (f->how.depth) FTH_TRY(make_depth(f, err));
    if (!f->how.gradients) return FTH_OK;
    FTH_TRY(make(f, &f->target, "target", 3, image, err));
    if (f->how.masked) FTH_TRY(make_plane(f, &f->mask, "mask", err));
    if (f->how.cover) FTH_TRY(make_plane(f, &f->cover, "alpha of the target", err));
    FTH_TRY(make(f, &f->place, "gradient on the image", 2, splats, err));
    FTH_TRY(make(f, &f->splats, "splats", 2, splats, err));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        fth_tensor *like = f->model->tensor[a];
        int64_t size[3];
        for (int d = 0; d < fth_tensor_axes(like); d++) size[d] = fth_tensor_size(like, d);
        FTH_TRY(make(f, &f->gradient[a], "gradient", fth_tensor_axes(like), size, err));
    }
    return FTH_OK;
}

fth_status gs_frame_create(gs_frame *f, fth_context *ctx, const gs_model *model,
                           const gs_frame_options *how, fth_err *err)
{
    *f = (gs_frame){.ctx = ctx, .model = model, .how = *how};
    f->rule.width = how->width;
    f->rule.height = how->height;
    f->rule.tile = how->tile ? how->tile : 16;
    f->rule.room = FIRST_ROOM;
    f->rule.most_alpha = how->most_alpha;
    f->rule.antialias = how->antialias;
    f->rule.rays = how->gut;
    const fth_status s = make_tensors(f, err);
    if (s != FTH_OK) gs_frame_free(f);
    return s;
}

static void forget_plan(gs_frame *f)
{
    if (f->plan) (void)fth_plan_destroy(f->plan);
    if (f->graph) (void)fth_graph_destroy(f->graph);
    f->plan = NULL;
    f->graph = NULL;
}

void gs_frame_free(gs_frame *f)
{
    forget_plan(f);
    fth_tensor *const all[] = {f->view,   f->image, f->alpha, f->target, f->place,
                               f->splats, f->depth, f->dark,  f->mask,   f->cover};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) (void)fth_tensor_release(all[i]);
    for (int a = 0; a < GS_ATTRIBUTES; a++) (void)fth_tensor_release(f->gradient[a]);
    *f = (gs_frame){0};
}

/* ---- the graph ---- */

static void declare_axes(fth_graph *g, const gs_frame *f)
{
    const int64_t k = gs_coefficients(f->model->degree);
    fth_axis(g, "g", f->model->n);
    fth_axis(g, "xyz", 3);
    fth_axis(g, "wxyz", 4);
    fth_axis(g, "c", 3);
    if (k > 0) fth_axis(g, "k", k);
    fth_axis(g, "p", gs_splat_numbers(&f->rule));
    fth_axis(g, "view", GS_VIEW);
    fth_axis(g, "i", f->how.height);
    fth_axis(g, "j", f->how.width);
}

static void add(gs_frame *f, fth_val v, fth_sink sink)
{
    f->out[f->outputs] = v;
    f->sink[f->outputs++] = sink;
}

/* The same image of splats whose colours are their depths: the sum of weight times depth. */
static void build_depth(gs_frame *f, fth_graph *g, fth_val splats, fth_val order)
{
    const fth_val dark = fth_input(g, "dark", FTH_F32, "view", fth_tensor_source(f->dark)),
                  p = fth_index(g, "p"), none = fth_const(g, FTH_F32, 0),
                  is_depth = fth_eq(p, fth_const_i64(g, FTH_I64, GS_Z)),
                  is_colour = fth_and(fth_ge(p, fth_const_i64(g, FTH_I64, GS_RED)),
                                      fth_le(p, fth_const_i64(g, FTH_I64, GS_BLUE))),
                  depth = fth_sum(fth_select(is_depth, splats, none), "p"),
                  grey = fth_select(is_colour, depth, splats);
    add(f, gs_blend(g, &f->rule, grey, order, dark), fth_tensor_sink(f->depth));
}

/* Rows on a device alone are used where they lie. */
static fth_val attribute(const gs_frame *f, fth_graph *g, int a)
{
    fth_tensor *t = f->model->tensor[a];
    const char *name = gs_attribute_names[a], *axes = gs_attribute_axes[a];
    return f->model->at[a] ? fth_input(g, name, FTH_F32, axes, fth_tensor_source(t))
                           : fth_param(g, name, axes, t);
}

/* The loss of training; `photo` has its parts. */
static fth_val build_loss(const gs_frame *f, fth_graph *g, fth_val image, fth_val view,
                          fth_val *photo)
{
    gs_compare with = {.lambda = f->how.lambda, .lambda_alpha = f->how.lambda_alpha};
    with.target = fth_input(g, "target", FTH_F32, "i j c", fth_tensor_source(f->target));
    if (f->how.masked) with.mask = fth_input(g, "mask", FTH_U8, "i j", fth_tensor_source(f->mask));
    if (f->how.cover) {
        with.alpha = fth_input(g, "alpha", FTH_U8, "i j", fth_tensor_source(f->cover));
        with.ground = fth_slice(view, "view", GS_VIEW_GROUND, "c");
    }
    return gs_compare_of(g, &with, image, image, photo);
}

static void build(gs_frame *f, fth_graph *g)
{
    gs_values model;
    f->rule.need = &f->need;
    declare_axes(g, f);
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        model.at[a] = a == GS_SH_N && f->model->degree == 0 ? (fth_val){0} : attribute(f, g, a);
    const fth_val view = fth_input(g, "view", FTH_F32, "view", fth_tensor_source(f->view)),
                  splats = gs_project(g, &f->rule, &model, view),
                  order = gs_order(g, &f->rule, splats),
                  image = gs_blend(g, &f->rule, splats, order, view);
    add(f, image, fth_tensor_sink(f->image));
    add(f, fth_out(image, 1), fth_tensor_sink(f->alpha));
    if (f->how.depth) build_depth(f, g, splats, order);
    if (!f->how.gradients) return;
    fth_val photo;
    const fth_val loss = build_loss(f, g, image, view, &photo);
    fth_val wrt[GS_ATTRIBUTES + 1], grad[GS_ATTRIBUTES + 1];
    fth_tensor *to[GS_ATTRIBUTES + 1];
    int n = 0;
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        if (fth_val_ok(model.at[a])) {
            wrt[n] = model.at[a];
            to[n++] = f->gradient[a];
        }
    wrt[n] = splats;
    to[n++] = f->place;
    if (fth_grad(loss, n, wrt, grad) != FTH_OK) return; /* the graph knows */
    for (int i = 0; i < n; i++) add(f, grad[i], fth_tensor_sink(to[i]));
    add(f, splats, fth_tensor_sink(f->splats));
    for (int k = 0; k < 3; k++)
        add(f, k ? fth_out(photo, k) : loss, fth_scalar_sink(FTH_F64, &f->loss[k]));
}

fth_status gs_frame_plan(gs_frame *f, fth_err *err)
{
    forget_plan(f);
    f->graph = fth_graph_create(f->ctx);
    f->outputs = 0;
    build(f, f->graph);
    FTH_TRY(fth_graph_check(f->graph, err));
    f->plan = fth_plan_make(f->graph, f->out, f->outputs, &(fth_limits){.sinks = f->sink}, err);
    return f->plan ? FTH_OK : err ? err->status : FTH_E_NO_FIT;
}

/* ---- running ---- */

void gs_view_pack(const gs_view *view, const double ground[3], int degree, float v[GS_VIEW])
{
    memset(v, 0, GS_VIEW * sizeof *v);
    memcpy(v + GS_VIEW_POSE, view->w2c, 12 * sizeof *v);
    v[GS_VIEW_FX] = (float)view->fx;
    v[GS_VIEW_FY] = (float)view->fy;
    v[GS_VIEW_CX] = (float)view->cx;
    v[GS_VIEW_CY] = (float)view->cy;
    for (int k = 0; k < 3; k++) {
        v[GS_VIEW_CENTRE + k] = (float)view->centre[k];
        v[GS_VIEW_GROUND + k] = (float)ground[k];
    }
    v[GS_VIEW_DEGREE] = (float)degree;
    v[GS_VIEW_LENS] = !view->distorted ? 0.0f : view->lens == GS_LENS_FISHEYE ? 2.0f : 1.0f;
    v[GS_VIEW_REACH] = (float)view->reach;
    for (int k = 0; k < GS_BENDS; k++) v[GS_VIEW_BEND + k] = (float)view->bend[k];
}

static void set_view(const gs_frame *f, const gs_view *view, const double ground[3], int degree)
{
    float *v = fth_tensor_data(f->view);
    gs_view_pack(view, ground, degree, v);
    if (!f->dark) return;
    float *dark = fth_tensor_data(f->dark);
    memcpy(dark, v, GS_VIEW * sizeof *v);
    memset(dark + GS_VIEW_GROUND, 0, 3 * sizeof *v);
}

fth_status gs_frame_run(gs_frame *f, const gs_view *view, const double ground[3], int degree,
                        fth_err *err)
{
    set_view(f, view, ground, degree);
    for (;;) {
        fth_err local = {0};
        f->need = 0;
        if (!f->plan) FTH_TRY(gs_frame_plan(f, err));
        const fth_status s = fth_run(f->plan, f->sink, NULL, NULL, &local);
        if (s == FTH_E_STATE && f->need > f->rule.room) {
            f->rule.room = f->need + f->need / 4;
            forget_plan(f);
            continue;
        }
        if (s != FTH_OK && err && err->status == FTH_OK) *err = local;
        return s;
    }
}
