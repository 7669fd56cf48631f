/* info.h - `fathom focus info`: what a file of images holds. */
#ifndef FOCUS_INFO_INFO_H
#define FOCUS_INFO_INFO_H

#include <fathom/instrument.h>

extern const fth_verb fo_verb_info;

#endif
