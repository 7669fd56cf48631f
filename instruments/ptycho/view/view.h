/* view.h - `fathom ptycho view`: figures of a scan or of a reconstruction. */
#ifndef PTYCHO_VIEW_VIEW_H
#define PTYCHO_VIEW_VIEW_H

#include <fathom/fathom.h>

extern const fth_verb pt_verb_view;

#endif
