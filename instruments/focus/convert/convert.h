/* convert.h - `fathom focus convert`: fused plates and raw stacks as OME-NGFF or OME-TIFF. */
#ifndef FOCUS_CONVERT_CONVERT_H
#define FOCUS_CONVERT_CONVERT_H

#include <fathom/fathom.h>

extern const fth_verb fo_verb_convert;

#endif
