/* info.h - `fathom ptycho info SCAN`: what a file holds. */
#ifndef PTYCHO_INFO_H
#define PTYCHO_INFO_H

#include <fathom/fathom.h>

extern const fth_verb pt_verb_info;

#endif
