/* command.h - `fathom focus run` and `fathom focus plan`: one experiment of a plate. */
#ifndef FOCUS_PROCESS_COMMAND_H
#define FOCUS_PROCESS_COMMAND_H

#include <fathom/instrument.h>

extern const fth_verb fo_verb_run, fo_verb_plan;

#endif
