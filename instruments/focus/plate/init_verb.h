/* init_verb.h - the command that writes an empty workbook. */
#ifndef FOCUS_PLATE_INIT_VERB_H
#define FOCUS_PLATE_INIT_VERB_H

#include <fathom/fathom.h>

extern const fth_verb fo_verb_init_plate;

#endif
