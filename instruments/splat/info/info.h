/* info.h - `fathom splat info`: what a capture or a model holds. */
#ifndef SPLAT_INFO_INFO_H
#define SPLAT_INFO_INFO_H

#include <fathom/instrument.h>

extern const fth_verb gs_verb_info;

#endif
