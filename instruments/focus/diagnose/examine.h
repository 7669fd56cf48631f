/* examine.h - an experiment as `fathom doctor --data-root D --exp E` inspects it: is everything
 * present, how long would a run take, and what limits it? Reads headers and a little of the raw
 * file, and writes nothing. */
#ifndef FOCUS_DIAGNOSE_EXAMINE_H
#define FOCUS_DIAGNOSE_EXAMINE_H

#include <fathom/instrument.h>

/* fth_instrument.examine. The status is that of opening the experiment, as `run` would. */
fth_status fo_examine(const fth_examination *x, fth_err *err);

#endif
