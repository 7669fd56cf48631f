/* fathom/optim.h - optimisers as graphs: their steps are planned and run like everything else.
 *
 * The builders append nodes that read a parameter, its gradient and its moments, and return the
 * assigns to add to the outputs of a plan. Learning rate and step are 0-axis inputs, so one plan
 * serves every step.
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

/* Learning rates as functions of the step (from 0), for the host. */
typedef enum fth_schedule_kind {
    FTH_SCHEDULE_CONSTANT,
    FTH_SCHEDULE_EXPONENTIAL, /* from `rate` to `last` geometrically over `steps` */
    FTH_SCHEDULE_COSINE,      /* from `rate` to `last` along half a cosine */
    FTH_SCHEDULE_LINEAR,
    FTH_SCHEDULE_COUNT
} fth_schedule_kind;
typedef struct fth_schedule {
    fth_schedule_kind kind;
    double rate, last;
    int64_t steps;
    int64_t warmup; /* steps that rise linearly from 0 before the schedule starts */
} fth_schedule;
FTH_API double fth_schedule_rate(const fth_schedule *s, int64_t step);

FTH_END_DECLS
#endif /* FATHOM_OPTIM_H */
