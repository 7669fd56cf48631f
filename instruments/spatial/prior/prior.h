/* prior.h - the interface of the three families of priors: pnmf, svgp, lcgp; and of a hybrid, which
 * owns one of the latter two beside pnmf.
 *
 * A step of training is one graph: the prior gives mean f and deviation s of every factor at every
 * cell of the batch; the likelihood (likelihood.h) gives the slopes of the objective in f and s;
 * the prior turns these into gradients of its parameters, and adds those of its own divergence.
 * Values of size factor x cell x induce or factor x cell x nbr x nbr are never materialised: see
 * svgp.c, local.c.
 */
#ifndef SPATIAL_PRIOR_H
#define SPATIAL_PRIOR_H

#include "../model/model.h"

/* A graph under construction, and the parameters in it. Axes factor, cell, gene, dim and what the
 * model needs (induce, induce2, nbr, nbr2, rank, group) are declared by sp_model_graph_create;
 * cellb and geneb by the step. */
typedef struct sp_model_graph {
    fth_context *ctx;
    fth_graph *g;
    fth_dtype real;
    sp_model *model;
    fth_val
        param[SP_PARAMS]; /* parameters when training, else inputs; poison where there is none */
    fth_val Z;            /* f32 [induce dim] */
    fth_val groupsZ;      /* i32 [induce] */
    fth_val idx;          /* i64 [cellb]: the batch, places in the training cells; of steps */
    const char *sfactor;  /* axis of the factors of a spatial prior: "factor" unless a hybrid */
    const char *tfactor;  /* and of those without positions */
    bool on_device;       /* of a device with its own memory */
    bool streams;         /* on a device: constants are read from the host in each run */
} sp_model_graph;
/* `cells`: length of the axis cell; the training cells in a step, the query positions in a
 * prediction (the axis of the training cells of a local model is then "induce"). */
fth_status sp_model_graph_create(sp_model_graph *net, fth_context *ctx, sp_model *m, bool training,
                                 int64_t cells, fth_err *err);
void sp_model_graph_destroy(sp_model_graph *net);
/* A tensor that is constant during training: resident on a device, unless the graph streams. */
fth_val sp_model_graph_constant(const sp_model_graph *net, const char *name, const char *axes,
                                fth_tensor *t);
/* One that changes every step: on a device a parameter, uploaded before a run without
 * synchronising. */
fth_val sp_model_graph_batch(const sp_model_graph *net, const char *name, const char *axes,
                             fth_tensor *t);
/* Its value for the next run. */
fth_status sp_model_graph_next(const sp_model_graph *net, const char *name, fth_tensor *t,
                               fth_err *err);

/* ---- training ---- */

typedef struct sp_prior sp_prior;
typedef struct sp_prior_ops {
    const char *name;
    /* Computes once what does not change while training: projections of the cells, conditional
     * weights; in memory if the budget allows, else in the scratch file; the bits are the same.
     * When `planning`, memory is reserved and nothing is computed. */
    fth_status (*open)(sp_prior *p, fth_err *err);
    /* f and s [factor cellb] of the batch, in net->real. */
    fth_status (*marginals)(sp_prior *p, sp_model_graph *net, fth_val *f, fth_val *s, fth_err *err);
    /* From the slopes of the loss in f and s: its gradient in every parameter of the prior (those
     * of KL, weighted with b, included), and KL itself, f64 without axes. Called once, after
     * `marginals`, in the same graph. */
    fth_status (*gradients)(sp_prior *p, sp_model_graph *net, fth_val gf, fth_val gs, double b,
                            fth_val *kl, fth_val grad[SP_PARAMS], fth_err *err);
    /* Before each run: announces the batch after the one in use; may read ahead. */
    fth_status (*ask)(sp_prior *p, const int64_t *cell, int64_t n, fth_err *err);
    /* Sets the inputs of the graph to the batch announced last. */
    fth_status (*take)(sp_prior *p, sp_model_graph *net, fth_err *err);
    void (*close)(sp_prior *p);
} sp_prior_ops;
struct sp_prior {
    const sp_prior_ops *ops;
    fth_context *ctx;
    sp_model *model;
    const sp_data *data;        /* NULL when planning */
    const fth_stage_call *call; /* for progress and accounts; NULL in tests */
    bool planning;
    bool resident;          /* constants are resident on the device */
    bool fixed_lengthscale; /* a model that trains lengthscales, while none has moved: all factors
                               have the one of the settings (model 19.3) */
    uint64_t scratch_bytes; /* set by open: bytes in the scratch file instead of memory */
    fth_plan_needs once;    /* set by open: needs of the process while it computes */
    fth_val kl_cells; /* set by gradients: KL of the factors of a hybrid without positions, f64,
                         with the weight sp_weight_kl_cells; empty: there are none */
    void *self;
};
extern const sp_prior_ops sp_prior_pnmf, sp_prior_svgp, sp_prior_local, sp_prior_hybrid;
const sp_prior_ops *sp_prior_of(sp_kind kind); /* of its spatial factors, where it has any */
const sp_prior_ops *sp_prior_for(const sp_settings *s);

/* ln lengthscales after the optimiser's step, within bounds around the start (model 19.3b). */
fth_val sp_ell_settle(fth_val next, const sp_settings *s);
#define SP_ELL_RANGE 100.0 /* they stay between start/100 and 100 start */

/* ---- predictions ---- */

/* Places to predict at, axis cell. */
typedef struct sp_query {
    fth_val xy;    /* f32 [cell dim]; poison for pnmf, whose cells are its own */
    fth_val group; /* i32 [cell]; poison when the model has no groups */
    fth_val nbr;   /* i32 [cell nbr]: training cells to condition on; local models */
    bool trained;  /* the places are the training cells, in their order: factors without positions
                      of a hybrid are known there, and have their mean elsewhere */
} sp_query;
/* f and s [factor cell]; the graph can be chunked along cell, with the same bits. */
fth_status sp_predict(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s, fth_err *err);
fth_status sp_predict_pnmf(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                           fth_err *err);
fth_status sp_predict_svgp(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                           fth_err *err);
fth_status sp_predict_local(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                            fth_err *err);
/* From f and s of the spatial factors, [sfactor cell], those of all factors of a hybrid. */
fth_status sp_predict_hybrid(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                             fth_err *err);
/* The mean alone, as if every cell were of group g: f [group factor cell] for all groups. What does
 * not depend on the group is done once (model 6.6, 7.6). */
fth_status sp_predict_groups(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err);
fth_status sp_predict_groups_svgp(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err);
fth_status sp_predict_groups_local(sp_model_graph *net, const sp_query *q, fth_val *f,
                                   fth_err *err);
/* From those of the spatial factors, [group sfactor cell], all of a hybrid: the others do not
 * depend on groups. */
fth_status sp_hybrid_groups(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err);

#endif
