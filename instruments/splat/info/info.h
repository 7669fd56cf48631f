/* info.h - `fathom splat info`: show the contents of a capture or a model. */
#ifndef SPLAT_INFO_INFO_H
#define SPLAT_INFO_INFO_H

#include <fathom/instrument.h>

extern const fth_verb gs_verb_info;

#endif
