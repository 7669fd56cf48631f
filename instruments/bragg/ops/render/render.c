/* render.c - the render as one operation of the engine.
 *
 * The axes slow and fast come from the scene alone, so an image can be computed in chunks of any
 * number of rows: a call places the scene, rotates the cell, and renders its rows one by one. A row
 * is never cut, because two outputs are sums over it. Nothing is carried from row to row: what
 * depends on the order of samples (the start of the spindle chain, the end of interpolation) is an
 * index into the whole run.
 */
#include "op.h"

#include <string.h>

int64_t br_op_grid(const fth_node *node, int in, int dim)
{
    (void)in;
    if (dim != 1) return 1;
    int64_t g = 1;
    while (g < node->out[0].size[1]) g *= 2;
    return g;
}

void br_op_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == BR_IN_MASK) *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

/* One input: dtype and axes by name, sizes as the scene has them. */
static fth_status check_input(const fth_node *node, int in, fth_dtype dtype, int n,
                              const char *const *axis, const int64_t *size, fth_err *err)
{
    char text[256];
    const fth_desc *d = &node->in[in];
    if (d->dtype != dtype)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: input %d must be %s, but is %s", node->op->name,
                        in, fth_dtype_name(dtype), fth_in_format(node, in, text, sizeof text));
    bool same = d->n_axes == n;
    for (int k = 0; same && k < n; k++)
        same =
            d->size[k] == size[k] && strcmp(fth_axis_name(node->graph, d->axis[k]), axis[k]) == 0;
    if (same) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: input %d is %s", node->op->name,
                                  in, fth_in_format(node, in, text, sizeof text));
    fth_err_hint(err, "its axes and sizes are those of ops/render.h for the scene");
    return s;
}

fth_status br_op_check(const fth_node *node, fth_err *err)
{
    const br_scene *s = &((const br_op_attr *)node->attr)->scene;
    const bool table = s->hkls > 0;
    FTH_TRY(check_input(node, BR_IN_PARAM, FTH_F64, 1, (const char *const[]){"param"},
                        (int64_t[]){BR_PARAMS}, err));
    if (table)
        FTH_TRY(check_input(
            node, BR_IN_TABLE, FTH_F64, 3, (const char *const[]){"h", "k", "l"},
            (int64_t[]){s->h_max - s->h_min + 2, s->k_max - s->k_min + 2, s->l_max - s->l_min + 2},
            err));
    FTH_TRY(check_input(node, BR_IN_SOURCE, FTH_F64, 2,
                        (const char *const[]){"source", "source_column"},
                        (int64_t[]){s->sources, BR_SRC_COLUMNS}, err));
    FTH_TRY(check_input(node, BR_IN_MOSAIC, FTH_F64, 2, (const char *const[]){"mosaic", "nine"},
                        (int64_t[]){s->mosaics, 9}, err));
    FTH_TRY(check_input(node, BR_IN_LATCH, FTH_I64, 0, NULL, NULL, err));
    if (s->masked)
        FTH_TRY(check_input(node, BR_IN_MASK, FTH_U16, 2, (const char *const[]){"slow", "fast"},
                            (int64_t[]){s->slow, s->fast}, err));
    return FTH_OK;
}

fth_desc br_op_image(const fth_node *node, fth_dtype dtype)
{
    const br_op_attr *a = node->attr;
    return (fth_desc){.dtype = dtype,
                      .n_axes = 2,
                      .axis = {a->slow, a->fast},
                      .size = {a->scene.slow, a->scene.fast}};
}

fth_desc br_op_rows(const fth_node *node, fth_dtype dtype)
{
    fth_desc d = br_op_image(node, dtype);
    fth_desc_drop(&d, 1);
    return d;
}

double br_op_samples(const fth_call *call)
{
    const br_op_attr *a = call->node->attr;
    const br_scene *s = &a->scene;
    return (double)call->out[0].extent[0] * (double)s->fast * (double)s->layers *
           (double)(s->oversample * s->oversample) * (double)s->sources * (double)s->phis *
           (double)s->mosaics;
}

double *br_op_view(const fth_call *call, br_view *v)
{
    const br_scene *s = &((const br_op_attr *)call->node->attr)->scene;
    br_arrays a = {.param = call->in[BR_IN_PARAM].data,
                   .table = call->in[BR_IN_TABLE].data,
                   .source = call->in[BR_IN_SOURCE].data,
                   .mosaic_rotation = call->in[BR_IN_MOSAIC].data,
                   .latch = *(const int64_t *)call->in[BR_IN_LATCH].data};
    for (int k = 0; k < 3; k++) a.table_step[k] = call->in[BR_IN_TABLE].stride[k];
    br_view_make(v, s, &a, call->scratch);
    return (double *)call->scratch + br_view_bytes(s) / sizeof(double);
}

void br_op_mask(const fth_call *call, br_row *row)
{
    if (!((const br_op_attr *)call->node->attr)->scene.masked) return;
    const fth_tile *t = &call->in[BR_IN_MASK];
    row->mask = (const uint16_t *)t->data + (row->slow - t->origin[0]) * t->stride[0];
    row->mask_step = t->stride[1];
}

/* Enough rows at a time to make scheduling negligible. */
enum { SAMPLES_AT_ONCE = 4096 };

typedef struct batch {
    void (*row)(void *arg, int64_t r, int worker);
    void *arg;
    int64_t rows, at_once;
} batch;

static void some_rows(void *arg, int64_t i, int worker)
{
    const batch *b = arg;
    const int64_t from = i * b->at_once, to = from + b->at_once;
    for (int64_t r = from; r < to && r < b->rows; r++) b->row(b->arg, r, worker);
}

void br_op_rows_run(const fth_call *call, void (*row)(void *arg, int64_t r, int worker), void *arg)
{
    batch b = {.row = row, .arg = arg, .rows = call->out[0].extent[0]};
    if (b.rows == 0) return;
    b.at_once = 1 + (int64_t)(SAMPLES_AT_ONCE * (double)b.rows / br_op_samples(call));
    fth_team_run(call->team, (b.rows + b.at_once - 1) / b.at_once, some_rows, &b);
}

/* ---- the image ---- */

static fth_status infer(fth_node *node, fth_err *err)
{
    const br_op_attr *a = node->attr;
    if (a->dtype != FTH_F32 && a->dtype != FTH_F64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "bragg_render: an image is f32 or f64, not %s",
                        fth_dtype_name((fth_dtype)a->dtype));
    FTH_TRY(br_op_check(node, err));
    node->n_out = 3;
    node->out[0] = br_op_image(node, (fth_dtype)a->dtype);
    node->out[1] = br_op_rows(node, FTH_F64);
    node->out[2] = br_op_rows(node, FTH_I64);
    return FTH_OK;
}

/* Two numbers per pixel of a row, in lines of memory that no other worker writes. */
static int64_t row_work(const br_scene *s)
{
    return (2 * s->fast + 7) / 8 * 8;
}

static uint64_t scratch(const fth_call *call)
{
    const br_scene *s = &((const br_op_attr *)call->node->attr)->scene;
    return br_view_bytes(s) + sizeof(double) * (uint64_t)row_work(s) *
                                  (uint64_t)(call->threads > 0 ? call->threads : 1);
}

/* Of a step, as long as it takes against the other operations: a table, subpixels and wavelengths
 * cost more than one domain after the other, and floats go in half the vectors. */
static double step_flops(const br_scene *s)
{
    double n = 90.0;
    if (s->sources > 1) n += 35.0;
    if (s->oversample > 1) n += 180.0;
    if (s->hkls > 0) n += s->interpolate ? 240.0 : 15.0;
    return s->precision == BR_F32 ? 0.45 * n : n;
}

static double flops(const fth_call *call)
{
    return step_flops(&((const br_op_attr *)call->node->attr)->scene) * br_op_samples(call);
}

/* The reference adds a double to a pixel that is 0, a float. */
static void store(const fth_tile *t, bool single, int64_t r, const double *value)
{
    for (int64_t i = 0; i < t->extent[1]; i++) {
        const int64_t to = r * t->stride[0] + i * t->stride[1];
        if (single)
            ((float *)t->data)[to] = (float)(0.0 + value[i]);
        else
            ((double *)t->data)[to] = value[i];
    }
}

typedef struct render_job {
    const fth_call *call;
    br_view view;
    br_row_fn *loop;
    double *work;
} render_job;

static void render_row(void *arg, int64_t r, int worker)
{
    const render_job *job = arg;
    const fth_call *call = job->call;
    const br_op_attr *a = call->node->attr;
    const fth_tile *image = &call->out[0], *omega = &call->out[1], *outside = &call->out[2];
    double *work = job->work + worker * row_work(&a->scene);
    br_row row = {.slow = image->origin[0] + r,
                  .fast = image->origin[1],
                  .n = image->extent[1],
                  .value = work,
                  .omega = work + image->extent[1]};
    br_op_mask(call, &row);
    job->loop(&job->view, &row);
    if (image->data) store(image, a->dtype == FTH_F32, r, row.value);
    double sum = 0;
    for (int64_t i = 0; i < row.n; i++) sum += row.omega[i];
    if (omega->data) ((double *)omega->data)[r * omega->stride[0]] = sum;
    if (outside->data) ((int64_t *)outside->data)[r * outside->stride[0]] = row.outside;
}

/* Rows are scheduled one by one: a region of interest may cover only part of the image. */
static fth_status run(const fth_call *call)
{
    render_job job = {.call = call};
    job.work = br_op_view(call, &job.view);
    job.loop = br_render_loop(&job.view);
    br_op_rows_run(call, render_row, &job);
    return FTH_OK;
}

/* ---- gradients ---- */

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const br_scene *s = &((const br_op_attr *)node->attr)->scene;
    const fth_val *v = node->in_val;
    if (fth_val_ok(out_bar[1]))
        return FTH_FAIL(err, FTH_E_GRAPH_GRADIENT,
                        "bragg_render: the sum of solid angles has no gradient");
    br_inputs in = {.param = v[BR_IN_PARAM],
                    .table = v[BR_IN_TABLE],
                    .source = v[BR_IN_SOURCE],
                    .mosaic_rotation = v[BR_IN_MOSAIC],
                    .latch = v[BR_IN_LATCH]};
    if (s->masked) in.mask = v[BR_IN_MASK];
    const fth_val bar =
        node->out[0].dtype == FTH_F64 ? out_bar[0] : fth_cast_(node->site, out_bar[0], FTH_F64);
    in_bar[BR_IN_PARAM] = br_param_gradient_(node->site, s, &in, bar);
    in_bar[BR_IN_TABLE] = br_table_gradient_(node->site, s, &in, bar);
    return FTH_OK;
}

static const fth_op render = {.name = "bragg_render",
                              .brief = "diffraction image of a small crystal",
                              .flags = FTH_OP_FREE_AXES | FTH_OP_TEAM | FTH_OP_NO_SPLIT,
                              .infer = infer,
                              .relation = br_op_relation,
                              .grid = br_op_grid,
                              .scratch = scratch,
                              .flops = flops,
                              .vjp = vjp,
                              .run = run};

fth_val br_op_add(fth_site site, const fth_op *op, const br_scene *scene, const br_inputs *in,
                  fth_dtype dtype)
{
    return br_op_add_with(site, op, scene, in, dtype, 0, NULL);
}

fth_val br_op_add_with(fth_site site, const fth_op *op, const br_scene *scene, const br_inputs *in,
                       fth_dtype dtype, int n_more, const fth_val *more)
{
    fth_graph *g = in->param.graph;
    br_op_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.scene = *scene;
    attr.slow = fth_axis_find(g, "slow");
    attr.fast = fth_axis_find(g, "fast");
    attr.dtype = (int32_t)dtype;
    if (attr.slow < 0 || attr.fast < 0)
        return fth_poison_(g, site, FTH_E_AXIS_MISSING, "%s: the axes slow and fast are missing",
                           op->name);
    fth_val all[8] = {in->param, in->table, in->source, in->mosaic_rotation, in->latch};
    int n = BR_IN_MASK;
    if (scene->masked) all[n++] = in->mask;
    for (int i = 0; i < n_more; i++) all[n++] = more[i];
    return fth_node_add_(g, site, op, n, all, &attr, sizeof attr);
}

fth_val br_render_(fth_site site, const br_scene *scene, const br_inputs *in, fth_dtype dtype)
{
    return br_op_add(site, &render, scene, in, dtype);
}
