/* info.h - `fathom ptycho info SCAN`: show the contents of a file. */
#ifndef PTYCHO_INFO_H
#define PTYCHO_INFO_H

#include <fathom/fathom.h>

extern const fth_verb pt_verb_info;

#endif
