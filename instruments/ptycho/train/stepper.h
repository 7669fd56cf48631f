/* stepper.h - one plan that takes a batch of so many groups: a step of training, or a loss. */
#ifndef PTYCHO_TRAIN_STEPPER_H
#define PTYCHO_TRAIN_STEPPER_H

#include "../net/model.h"

/* What is bounded of the gradients: the norm of all of them; each element; of the weights of each
 * output of a layer the norm, as a share of that of the weights (adaptive). */
typedef enum pt_clip { PT_CLIP_NORM, PT_CLIP_VALUE, PT_CLIP_ADAPTIVE } pt_clip;

/* How parameters are moved. */
typedef struct pt_descent {
    fth_optim_kind kind;
    double eps;
    double clip; /* 0: gradients are not clipped */
    pt_clip clip_by;
} pt_descent;

/* What is trained, with the averages that the optimiser keeps. */
typedef struct pt_trained {
    pt_model model;
    fth_tensor *first[PT_MODEL_MOST], *second[PT_MODEL_MOST]; /* NULL where nothing is trained */
    double rate;
    int64_t step;
    float factor;
    fth_tensor *batch; /* f32 [flat row col] with room for any batch, of steps on a device, which
                          are given the next by pt_stepper_give; NULL: x is the host's memory */
} pt_trained;
fth_status pt_trained_create(pt_trained *t, fth_mem *mem, const pt_model_options *opt,
                             fth_err *err);
void pt_trained_clear(pt_trained *t);

typedef struct pt_stepper {
    fth_graph *g;
    fth_plan *plan;
    int64_t groups;
    fth_tensor *rel;   /* f32 [group chan xy], filled by the caller before a run */
    fth_tensor *truth; /* c64 [group row col], likewise; NULL: the loss has no use for it */
    bool given;        /* patterns come by pt_stepper_give */
    fth_sink sinks[3 * PT_MODEL_MOST + 2];
    float loss;
    uint8_t good;    /* loss and gradients are numbers; else nothing was changed */
    double momentum; /* of the optimiser */
} pt_stepper;

/* x: memory of groups * chan patterns, f32 [flat row col], that later runs replace; t->batch is
 * taken instead where there is one. `descent` NULL: only the loss is computed. The stepper stays
 * where it is: plans point into it. */
fth_status pt_stepper_create(pt_stepper *s, fth_context *ctx, pt_trained *t, int64_t groups,
                             fth_source x, const pt_descent *descent, fth_err *err);
void pt_stepper_clear(pt_stepper *s); /* a cleared one is allowed */
/* The next runs of n steppers, which share the room of a batch on a device, take this one. */
fth_status pt_stepper_give(pt_stepper *s, int n, fth_tensor *batch, fth_err *err);
/* One run; t->step counts from 1. x: as above, unless a batch was given. */
fth_status pt_stepper_run(pt_stepper *s, const fth_stage_call *call, fth_source x, fth_err *err);

#endif
