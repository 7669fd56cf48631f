/* list.c - list.def as an array. */
#include "list.h"

#define FTH_INSTRUMENT(name) extern const fth_instrument fth_instrument_##name;
#include "list.def"
#undef FTH_INSTRUMENT

const fth_instrument *const fth_instruments[] = {
#define FTH_INSTRUMENT(name) &fth_instrument_##name,
#include "list.def"
#undef FTH_INSTRUMENT
    NULL};
const int fth_n_instruments = sizeof fth_instruments / sizeof fth_instruments[0] - 1;
