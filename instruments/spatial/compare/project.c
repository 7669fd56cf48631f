/* project.c - the verb project: factors of new cells by a trained model.
 *
 * Spatial models predict at the new positions, in chunks that fit the budget, and need no counts.
 * pnmf is fitted to the counts: project_counts.c.
 */
#include "project.h"

#include "../neighbours/neighbours.h"

#include <inttypes.h>
#include <string.h>

/* ---- groups of the new data, by name ---- */

static fth_status unknown_group(const sp_model *m, const sp_data *d, int64_t g, fth_err *err)
{
    char known[400] = "";
    for (int64_t i = 0; i < fth_texts_count(m->group_names) && strlen(known) < 300; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%.60s", i ? ", " : "",
                 fth_texts_get(m->group_names, i));
    FTH_FAIL(err, FTH_E_FILE_KEY, "%s: cells of group \"%.80s\", which the model does not know",
             d->dir, fth_texts_get(d->group_names, g));
    fth_err_hint(err, "groups of the model are %s", known);
    return FTH_E_FILE_KEY;
}

/* The codes of the model for the groups of the data: i32 [cell]. */
static fth_status translate(const sp_model *m, const sp_data *d, fth_tensor **out, fth_err *err)
{
    const int32_t *from = fth_tensor_data(d->group);
    FTH_TRY(fth_tensor_create(out, m->mem, "groups", FTH_I32, 1, &d->size.cells, err));
    int32_t *to = fth_tensor_data(*out);
    for (int64_t i = 0; i < d->size.cells; i++) {
        const char *name = fth_texts_get(d->group_names, from[i]);
        int64_t g = 0;
        while (g < m->set.n_groups && strcmp(fth_texts_get(m->group_names, g), name) != 0) g++;
        if (g == m->set.n_groups) return unknown_group(m, d, from[i], err);
        to[i] = (int32_t)g;
    }
    return FTH_OK;
}

static fth_status find_neighbours(const sp_project *p, fth_tensor **out, fth_err *err)
{
    const sp_model *m = p->model;
    const int64_t size[2] = {p->data->size.cells, m->set.K};
    FTH_TRY(fth_tensor_create(out, m->mem, "neighbours", FTH_I32, 2, size, err));
    if (p->answer) return FTH_OK; /* only its size matters */
    return sp_neighbours_of(fth_tensor_data(*out), p->ctx, m->mem, fth_tensor_data(m->Z),
                            fth_tensor_size(m->Z, 0), fth_tensor_data(p->data->xy), size[0],
                            size[1], err);
}

/* ---- at places ---- */

/* Values [cell factor]; with the places `by`, in another order of the factors. */
static fth_val ordered(fth_val v, const fth_val *by)
{
    return by ? fth_layout(fth_gather(v, "factor", *by), "cell place")
              : fth_layout(v, "cell factor");
}

static fth_status run_net(sp_model_graph *net, const sp_query *q, fth_tensor *order,
                          const fth_sink *sink, fth_answer *answer, fth_err *err)
{
    fth_val f, s, by, out[2];
    const int n = answer || sink[1].write ? 2 : 1;
    fth_err own = {0};
    if (!err) err = &own; /* fth_plan_make reports failures through it */
    FTH_TRY(sp_predict(net, q, &f, &s, err));
    if (!net->model->set.spatial) s = fth_max(s, fth_const(net->g, net->real, 1e-8));
    if (order) {
        fth_axis_like(net->g, "place", "factor");
        by = fth_input(net->g, "order", FTH_I64, "place", fth_tensor_source(order));
    }
    out[0] = ordered(fth_cast(fth_exp(f), FTH_F32), order ? &by : NULL);
    out[1] = ordered(fth_cast(s, FTH_F32), order ? &by : NULL);
    FTH_TRY(fth_graph_check(net->g, err));
    const fth_limits limits = {.sinks = answer ? NULL : sink};
    fth_plan *plan = fth_plan_make(net->g, out, n, &limits, err);
    const fth_status st = !plan    ? err->status
                          : answer ? fth_answer_plan(answer, "factors", plan, err)
                                   : fth_run(plan, sink, NULL, NULL, err);
    fth_plan_destroy(plan);
    return st;
}

fth_status sp_project_predict(fth_context *ctx, sp_model *m, const sp_places_asked *at,
                              fth_tensor *order, const fth_sink sink[2], fth_err *err)
{
    sp_model_graph net;
    sp_query q = {.trained = at->trained};
    FTH_TRY(sp_model_graph_create(&net, ctx, m, false, fth_tensor_size(at->xy, 0), err));
    if (m->set.spatial)
        q.xy = fth_input(net.g, "xy", FTH_F32, "cell dim", fth_tensor_source(at->xy));
    if (m->set.groups)
        q.group = fth_input(net.g, "group of cell", FTH_I32, "cell", fth_tensor_source(at->group));
    if (m->set.local)
        q.nbr = fth_input(net.g, "nbr of cell", FTH_I32, "cell nbr", fth_tensor_source(at->nbr));
    const fth_status s = run_net(&net, &q, order, sink, at->answer, err);
    sp_model_graph_destroy(&net);
    return s;
}

static fth_status project_places(sp_project *p, fth_err *err)
{
    sp_places_asked at = {.xy = p->data->xy, .answer = p->answer};
    fth_status s = FTH_OK;
    if (p->model->set.groups) s = translate(p->model, p->data, &at.group, err);
    if (s == FTH_OK && p->model->set.local) s = find_neighbours(p, &at.nbr, err);
    const fth_sink sink[2] = {p->factors, p->scales};
    if (s == FTH_OK) s = sp_project_predict(p->ctx, p->model, &at, p->order, sink, err);
    fth_tensor_release(at.group);
    fth_tensor_release(at.nbr);
    return s;
}

/* ---- the verb ---- */

static fth_status project(sp_project *p, bool least_squares, fth_err *err)
{
    return p->model->set.spatial ? project_places(p, err)
                                 : sp_project_counts(p, least_squares, err);
}

static fth_status write_to(sp_project *p, const char *dir, bool least_squares, fth_err *err)
{
    char path[FTH_PATH];
    const int64_t size[2] = {p->data->size.cells, sp_factors(&p->model->set)};
    FTH_TRY(fth_folder_make(p->model->mem, dir, err));
    FTH_TRY(fth_path_join(path, dir, SP_FACTORS, err));
    fth_status s = fth_npy_create(&p->factors, p->model->mem, path, FTH_F32, 2, size, err);
    if (s == FTH_OK && !least_squares) {
        s = fth_path_join(path, dir, SP_SCALES, err);
        if (s == FTH_OK) s = fth_npy_create(&p->scales, p->model->mem, path, FTH_F32, 2, size, err);
    }
    if (s == FTH_OK) s = project(p, least_squares, err);
    fth_sink_close(&p->factors);
    fth_sink_close(&p->scales);
    return s;
}

/* The folder itself, or the preprocessed one in it. */
static fth_status open_data(sp_data *d, fth_mem *mem, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, SP_PREPROCESSED "/" SP_X, err));
    const bool inside = fth_path_exists(path);
    FTH_TRY(fth_path_join(path, dir, SP_PREPROCESSED, err));
    return sp_data_open(d, mem, inside ? path : dir, err);
}

/* "DIR/projected" of the model's own folder. */
static fth_status default_dir(char path[FTH_PATH], const char *model, fth_err *err)
{
    const char *slash = strrchr(model, '/');
    char dir[FTH_PATH];
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - model) : 1, slash ? model : ".");
    return fth_path_join(path, dir, "projected", err);
}

static fth_status check_genes(const sp_model *m, const sp_data *d, fth_err *err)
{
    if (m->set.spatial || (m->set.genes == d->size.genes && m->genes_hash == d->genes_hash))
        return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHAPE,
             "%s has %" PRId64 " genes that are not the %" PRId64 " of the model, or in another "
             "order",
             d->dir, d->size.genes, m->set.genes);
    fth_err_hint(err, "pnmf is fitted to counts: give it the genes it was trained on");
    return FTH_E_FILE_SHAPE;
}

static fth_status tell_files(fth_answer *a, const sp_project *p, const char *model, const char *to,
                             bool least_squares, fth_err *err)
{
    const int64_t size[2] = {p->data->size.cells, sp_factors(&p->model->set)};
    const fth_file_kind out = FTH_FILE_OUTPUT;
    fth_answer_file(a, FTH_FILE_INPUT, model, -1, "%s", sp_kinds[p->model->set.kind].name);
    FTH_TRY(sp_answer_data(a, p->data, err));
    FTH_TRY(sp_answer_array(a, out, to, SP_FACTORS, FTH_F32, 2, size, err));
    return least_squares ? FTH_OK : sp_answer_array(a, out, to, SP_SCALES, FTH_F32, 2, size, err);
}

/* Plans do not need the real order of the factors. */
static fth_status no_order(fth_tensor **out, const sp_model *m, fth_err *err)
{
    const int64_t n = sp_factors(&m->set);
    FTH_TRY(fth_tensor_create(out, m->mem, "order", FTH_I64, 1, &n, err));
    for (int64_t i = 0; i < n; i++) ((int64_t *)fth_tensor_data(*out))[i] = i;
    return FTH_OK;
}

static fth_status answer(fth_answer *a, sp_project *p, const char *model, const char *to,
                         bool least_squares, fth_err *err)
{
    p->answer = a->plan ? a : NULL;
    FTH_TRY(a->plan ? no_order(&p->order, p->model, err)
                    : sp_project_order(&p->order, p->ctx, p->model, model, err));
    if (!a->plan) FTH_TRY(write_to(p, to, least_squares, err));
    FTH_TRY(tell_files(a, p, model, to, least_squares, err));
    if (a->plan) {
        FTH_TRY(project(p, least_squares, err));
        fth_answer_memory(a, p->held_bytes,
                          p->held_bytes ? "estimated: the model and a block of cells"
                                        : "planned, with the model and the cells");
    }
    if (a->json) {
        fth_json_writer *w = fth_answer_facts(a);
        fth_json_text(w, "folder", to);
        fth_json_text(w, "model", sp_kinds[p->model->set.kind].name);
        fth_json_int(w, "cells", p->data->size.cells);
        fth_json_int(w, "factors", sp_factors(&p->model->set));
        if (sp_is_hybrid(&p->model->set))
            fth_json_int(w, "nonspatial_factors", p->model->set.nonspatial_components);
    }
    if (!a->plan)
        fprintf(a->notes, "%" PRId64 " cells, %" PRId64 " factors: %s\n", p->data->size.cells,
                sp_factors(&p->model->set), to);
    if (p->unknown > 0)
        fprintf(a->notes,
                "note: %" PRId64 " cells are of no section of the model, or far outside of theirs: "
                "they have the prior, exp(f) = 1 and s = %g\n",
                p->unknown, p->model->set.sigma);
    if (sp_is_hybrid(&p->model->set))
        fprintf(a->notes,
                "note: positions say nothing of the last %" PRId64 " factors: at new cells they "
                "have the means of the training cells\n",
                p->model->set.nonspatial_components);
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    (void)n_args, (void)arg;
    fth_mem *mem = fth_context_mem(ctx);
    const char *model = value(user, "model"), *dir = value(user, "data"),
               *to = value(user, "output");
    char path[FTH_PATH];
    sp_model m = {0};
    sp_data d = {0};
    if (!model || !dir) {
        FTH_FAIL(err, FTH_E_COMMAND, "a model and a folder of data are expected");
        fth_err_hint(err, "write 'fathom spatial project -m MODEL --data DIR'");
        return FTH_E_COMMAND;
    }
    if (!to) FTH_TRY(default_dir(path, model, err));
    FTH_TRY(open_data(&d, mem, dir, err));
    fth_status s = sp_model_read(&m, mem, model, &d, true, false, err);
    const bool least_squares = value(user, "least-squares") != NULL;
    if (s == FTH_OK && least_squares && m.set.spatial)
        s = FTH_FAIL(err, FTH_E_COMMAND, "--least-squares is for pnmf; %s predicts at positions",
                     sp_kinds[m.set.kind].name);
    if (s == FTH_OK) s = check_genes(&m, &d, err);
    sp_project p = {.ctx = ctx, .model = &m, .data = &d};
    const sp_rescaling rescaling = {&m.frame, &m.sections, m.set.lengthscale, model};
    if (s == FTH_OK && m.set.spatial && m.data_hash != d.hash)
        s = sp_data_rescale(&d, &rescaling, &p.unknown, err);
    fth_answer a;
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK)
        s = fth_answer_end(&a, answer(&a, &p, model, to ? to : path, least_squares, err), err);
    fth_tensor_release(p.order);
    sp_model_clear(&m);
    sp_data_close(&d);
    return s;
}

static const fth_flag flags[] = {
    {.name = "model", .value = FTH_FLAG_FILE, .letter = 'm', .doc = "model.safetensors"},
    {.name = "data",
     .value = FTH_FLAG_DIR,
     .doc = "preprocessed folder of the new cells, or the folder it is in"},
    {.name = "output",
     .value = FTH_FLAG_PATH,
     .letter = 'o',
     .doc = "folder of the results; not given: projected, beside the model"},
    {.name = "least-squares",
     .doc = "pnmf: 100 multiplicative updates in place of the variational fit"},
    {0}};

const fth_verb sp_verb_project = {
    .name = "project",
    .args = "",
    .brief = "factors of new cells by a trained model",
    .doc = "Models with positions predict at those of the new cells, and of their groups, by name. "
           "pnmf is fitted to the counts of the new cells with its loadings fixed. Factors of a "
           "hybrid "
           "without positions have their means over the training cells at new ones. Positions "
           "are brought to the scale of the training cells first: a part of the same tissue, "
           "preprocessed by itself, keeps its place.\n\n"
           "factors.npy holds exp(f), scales.npy the standard deviation of f: f32, a row per cell, "
           "factors in the order of analyze.",
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
