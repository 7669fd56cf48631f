/* list.h - the instruments that are in the program. */
#ifndef FATHOM_INSTRUMENTS_LIST_H
#define FATHOM_INSTRUMENTS_LIST_H

#include <fathom/instrument.h>

FTH_API extern const fth_instrument *const fth_instruments[]; /* then NULL */
FTH_API extern const int fth_n_instruments;

#endif
