/* bench.h - `fathom focus bench`: seconds that a fusion takes, from memory, on each device. */
#ifndef FOCUS_BENCH_BENCH_H
#define FOCUS_BENCH_BENCH_H

#include <fathom/fathom.h>

extern const fth_verb fo_verb_bench;

#endif
