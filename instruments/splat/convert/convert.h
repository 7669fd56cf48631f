/* convert.h - `fathom splat convert`: a model in another format, cut or moved on the way. */
#ifndef SPLAT_CONVERT_CONVERT_H
#define SPLAT_CONVERT_CONVERT_H

#include <fathom/instrument.h>

extern const fth_verb gs_verb_convert;

#endif
