/* check.h - `fathom ptycho check SCAN`: everything that can be wrong with a scan, before it is run.
 */
#ifndef PTYCHO_CHECK_H
#define PTYCHO_CHECK_H

#include <fathom/fathom.h>

extern const fth_verb pt_verb_check;

#endif
