/* densify.h - `fathom splat densify` and `fathom splat bench-densify`: one refinement of a model,
 * and of synthetic rows with its memory and time. */
#ifndef SPLAT_DENSIFY_DENSIFY_H
#define SPLAT_DENSIFY_DENSIFY_H

#include "../strategy/adc.h"
#include "../strategy/mcmc.h"

#include <fathom/instrument.h>

extern const fth_verb gs_verb_densify, gs_verb_bench_densify;

/* Rules of both strategies from --set key=value, by the keys of training. FTH_E_COMMAND names the
 * keys there are. */
typedef struct gs_refine_rules {
    gs_adc_rules adc;
    gs_mcmc_rules mcmc;
} gs_refine_rules;
fth_status gs_refine_rules_read(gs_refine_rules *rules,
                                const char *(*value)(void *user, const char *flag), void *user,
                                fth_err *err);

#endif
