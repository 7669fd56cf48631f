/* sheet_verb.h - the command that draws the contact sheet of an experiment. */
#ifndef FOCUS_FIGURES_SHEET_VERB_H
#define FOCUS_FIGURES_SHEET_VERB_H

#include <fathom/fathom.h>

extern const fth_verb fo_verb_sheet;

#endif
