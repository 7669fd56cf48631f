/* model_graph.c - the graph of a step or of a prediction: its axes, and the parameters in it. */
#include "prior.h"

/* Training cells of a local model are the axis `cell` in a step; in a prediction `cell` is the axis
 * of the query positions, and the training cells are the axis `induce`. Those of the factors
 * without positions of a hybrid are then the axis `trained`. */
static const char *axes_of(const sp_settings *s, sp_param p, bool training)
{
    const bool hybrid = sp_is_hybrid(s);
    if (training) return sp_param_axes(s, p);
    if (s->local && p == SP_P_MU) return hybrid ? "sfactor induce" : "factor induce";
    if (s->local && p == SP_P_LAM) return hybrid ? "sfactor induce rank" : "factor induce rank";
    if (hybrid && (p == SP_P_MEAN || p == SP_P_RAW)) return "tfactor trained";
    return sp_param_axes(s, p);
}

/* Lengths are taken from tensors where one exists. */
static void declare_axes(fth_graph *g, const sp_model *m, bool training, int64_t cells)
{
    const sp_settings *s = &m->set;
    fth_axis(g, "factor", sp_factors(s));
    if (sp_is_hybrid(s)) {
        fth_axis(g, "sfactor", s->n_components);
        fth_axis(g, "tfactor", s->nonspatial_components);
        if (!training) fth_axis(g, "trained", fth_tensor_size(m->param[SP_P_MEAN], 1));
    }
    fth_axis(g, "cell", cells);
    fth_axis(g, "gene", s->genes);
    fth_axis(g, "dim", 2);
    if (!s->spatial) return;
    fth_axis(g, "induce", fth_tensor_size(m->Z, 0));
    fth_axis_like(g, "induce2", "induce");
    if (s->local) {
        fth_axis(g, "nbr", m->nbr_inf ? fth_tensor_size(m->nbr_inf, 1) : s->K);
        fth_axis_like(g, "nbr2", "nbr");
        fth_axis(g, "rank", fth_tensor_size(m->param[SP_P_LAM], 2));
    }
    if (s->groups) {
        fth_axis(g, "group", s->n_groups);
        fth_axis_like(g, "group2", "group");
    }
}

static void add_values(sp_model_graph *net, bool training)
{
    sp_model *m = net->model;
    const bool local_step = m->set.local && training;
    for (int i = 0; i < SP_PARAMS; i++) {
        if (!m->param[i]) continue;
        const char *axes = axes_of(&m->set, (sp_param)i, training);
        net->param[i] = training ? fth_param(net->g, sp_param_name((sp_param)i), axes, m->param[i])
                                 : fth_input(net->g, sp_param_name((sp_param)i), m->real, axes,
                                             fth_tensor_source(m->param[i]));
    }
    if (!m->set.spatial) return;
    net->Z = fth_input(net->g, "Z", FTH_F32, local_step ? "cell dim" : "induce dim",
                       fth_tensor_source(m->Z));
    if (m->set.groups)
        net->groupsZ = fth_input(net->g, "groupsZ", FTH_I32, local_step ? "cell" : "induce",
                                 fth_tensor_source(m->groupsZ));
}

fth_val sp_model_graph_constant(const sp_model_graph *net, const char *name, const char *axes,
                                fth_tensor *t)
{
    return net->on_device && !net->streams
               ? fth_param(net->g, name, axes, t)
               : fth_input(net->g, name, fth_tensor_dtype(t), axes, fth_tensor_source(t));
}

fth_val sp_model_graph_batch(const sp_model_graph *net, const char *name, const char *axes,
                             fth_tensor *t)
{
    return net->on_device
               ? fth_param(net->g, name, axes, t)
               : fth_input(net->g, name, fth_tensor_dtype(t), axes, fth_tensor_source(t));
}

fth_status sp_model_graph_next(const sp_model_graph *net, const char *name, fth_tensor *t,
                               fth_err *err)
{
    return net->on_device ? fth_param_set(net->g, name, t, err)
                          : fth_input_set(net->g, name, fth_tensor_source(t), err);
}

fth_status sp_model_graph_create(sp_model_graph *net, fth_context *ctx, sp_model *m, bool training,
                                 int64_t cells, fth_err *err)
{
    *net = (sp_model_graph){.ctx = ctx,
                            .real = m->real,
                            .model = m,
                            .sfactor = sp_is_hybrid(&m->set) ? "sfactor" : "factor",
                            .tfactor = sp_is_hybrid(&m->set) ? "tfactor" : "factor",
                            .on_device = fth_context_device_mem(ctx) != NULL};
    net->g = fth_graph_create(ctx);
    if (!net->g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the graph of a model");
    declare_axes(net->g, m, training, cells);
    add_values(net, training);
    const fth_status s = fth_graph_check(net->g, err);
    if (s != FTH_OK) sp_model_graph_destroy(net);
    return s;
}

void sp_model_graph_destroy(sp_model_graph *net)
{
    fth_graph_destroy(net->g);
    *net = (sp_model_graph){0};
}
