/* fathom/optim.h - optimisers as graphs: their steps are planned and run like any other graph.
 *
 * The builders append nodes that read a parameter, its gradient and its moments, and return the
 * assigns to add to the outputs of a plan. Learning rate and step are scalar inputs, so one plan
 * serves every step.
 *
 * Threads: one thread at a time per graph. Failure: poison, with the error recorded in the graph.
 */
#ifndef FATHOM_OPTIM_H
#define FATHOM_OPTIM_H

#include <fathom/ops.h>

FTH_BEGIN_DECLS

typedef struct fth_adam {
    double beta1, beta2; /* decay of the moments */
    double eps;          /* added to the root of the second moment */
    double decay;        /* decoupled weight decay (AdamW); 0: none */
} fth_adam;
#define FTH_ADAM_DEFAULT ((fth_adam){0.9, 0.999, 1e-8, 0.0})

/* One Adam step. `param`, `m` and `v` are parameters of one shape and real dtype, `grad` the
 * gradient, `rate` a 0-axis f64 and `step` a 0-axis i64 that counts from 1. out[0..3) are assigns
 * of param, m, v. */
FTH_API fth_status fth_adam_(fth_site site, const fth_adam *opt, fth_val param, fth_val grad,
                             fth_val m, fth_val v, fth_val rate, fth_val step, fth_val out[3]);
#define fth_adam_step(opt, param, grad, m, v, rate, step, out)                                     \
    fth_adam_(FTH_HERE, (opt), (param), (grad), (m), (v), (rate), (step), (out))

/* The optimisers, by one call. What a kind carries from step to step is `first` and `second`, of
 * the shape of the parameter and zero before the first step; see fth_optim_carries. */
typedef enum fth_optim_kind {
    FTH_OPTIM_ADAM,    /* first, second: averages of the gradient and of its square */
    FTH_OPTIM_ADAMW,   /* the same with decoupled decay                             */
    FTH_OPTIM_NADAM,   /* Adam with Nesterov's momentum (Dozat 2016)                */
    FTH_OPTIM_SGD,     /* first: momentum                                           */
    FTH_OPTIM_RMSPROP, /* second: average of the squared gradient; first: momentum, and without
                          `first` there is none */
    FTH_OPTIM_COUNT
} fth_optim_kind;
typedef struct fth_optim {
    fth_optim_kind kind;
    double beta2; /* Adam, AdamW, NAdam: 0.999; RMSprop: alpha, 0.99 */
    double eps;   /* 1e-8 */
    double decay; /* AdamW: 0.01 */
    /* NAdam alone: the product of its momenta up to this step, a 0-axis f64 that the host keeps
     * with fth_nadam_product. After some sixty steps it is too small to matter. */
    fth_val product;
    /* A 0-axis bool: a step where it is false changes nothing. Zero: there is none. */
    fth_val go;
} fth_optim;
FTH_API fth_optim fth_optim_default(fth_optim_kind kind);
FTH_API const char *fth_optim_name(fth_optim_kind kind); /* "adam" */
/* Bit 0: it carries `first`; bit 1: `second`. */
FTH_API int fth_optim_carries(fth_optim_kind kind);
/* The product of NAdam's momenta with that of `step` (from 1) in it; before step 1 it is 1. */
FTH_API double fth_nadam_product(double before, double beta1, int64_t step);
/* New values of the parameter and of what is carried: out[0..3) (poison where nothing is carried),
 * to be given to fth_assign, or to sinks where the moments live in a file. `rate` and `beta1` are
 * 0-axis f64 (beta1 is the momentum of SGD and RMSprop), `step` a 0-axis i64 that counts from 1:
 * they may change from run to run. Bias corrections use the beta1 of the step. */
FTH_API fth_status fth_optim_(fth_site site, const fth_optim *opt, fth_val param, fth_val grad,
                              fth_val first, fth_val second, fth_val rate, fth_val beta1,
                              fth_val step, fth_val out[3]);
#define fth_optim_step(opt, param, grad, first, second, rate, beta1, step, out)                    \
    fth_optim_(FTH_HERE, (opt), (param), (grad), (first), (second), (rate), (beta1), (step), (out))

/* Learning rates as functions of the step (from 0), for the host. After the last step they stay as
 * they end; a negative step counts as step 0. */
typedef enum fth_schedule_kind {
    FTH_SCHEDULE_CONSTANT,
    FTH_SCHEDULE_EXPONENTIAL, /* from `rate` to `last` geometrically over `steps` */
    FTH_SCHEDULE_COSINE,      /* from `rate` to `last` along half a cosine */
    FTH_SCHEDULE_LINEAR,
    FTH_SCHEDULE_ONE_CYCLE, /* up to `rate` from rate/25 over `rise` of the steps, down to
                               rate/250000, both along half cosines; see fth_schedule_momentum */
    FTH_SCHEDULE_COUNT
} fth_schedule_kind;
typedef struct fth_schedule {
    fth_schedule_kind kind;
    double rate, last;
    int64_t steps;
    int64_t warmup; /* steps that rise linearly from 0 before the schedule starts */
    double rise;    /* ONE_CYCLE: fraction of the steps that rise; 0: 0.3 */
} fth_schedule;
FTH_API double fth_schedule_rate(const fth_schedule *s, int64_t step);
/* ONE_CYCLE moves the momentum (beta1) against the rate: 0.95 to 0.85 and back. Others: `usual`. */
FTH_API double fth_schedule_momentum(const fth_schedule *s, int64_t step, double usual);

/* A rate that is lowered when a number that should grow does not: its average (weight 0.05 for the
 * newest) must beat the best by `threshold` of its size within `patience` steps. */
typedef struct fth_plateau {
    double factor, threshold, min_rate; /* 0.8, 1e-4, 1e-5 */
    int64_t patience;                   /* 200 */
    double rate, average, best;         /* state; a new one is all zero but for `rate` */
    int64_t waited, seen;
} fth_plateau;
FTH_API fth_plateau fth_plateau_default(double rate);
/* The rate for the next step, after a step that gave `value`. */
FTH_API double fth_plateau_step(fth_plateau *p, double value);

FTH_END_DECLS
#endif /* FATHOM_OPTIM_H */
