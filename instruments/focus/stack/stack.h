/* stack.h - `fathom focus stack IN... -o OUT`: any z-stacks to sharp images. */
#ifndef FOCUS_STACK_STACK_H
#define FOCUS_STACK_STACK_H

#include <fathom/instrument.h>

extern const fth_verb fo_verb_stack;

#endif
