/* stack.h - `fathom focus stack IN... -o OUT`: any z-stacks to sharp images. */
#ifndef FOCUS_STACK_STACK_H
#define FOCUS_STACK_STACK_H

#include <fathom/instrument.h>

extern const fth_verb fo_verb_stack;

/* Where the plan of a stage goes. */
typedef struct fo_stage_show {
    const fth_stage_call *call;
    fth_stage_plan *out;
    FILE *show;
} fo_stage_show;
/* The same for a stage: files to images in `folder`, which ends with a slash, and tables beside
 * them. With `plan` it is only planned. */
fth_status fo_stack_stage(const fth_stage_call *call, const char *const *path, int n,
                          const char *folder, fo_stage_show *plan, fth_err *err);

#endif
