/* check.h - `fathom ptycho check SCAN`: find problems of a scan before it is reconstructed.
 */
#ifndef PTYCHO_CHECK_H
#define PTYCHO_CHECK_H

#include <fathom/fathom.h>

extern const fth_verb pt_verb_check;

#endif
