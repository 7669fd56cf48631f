/* random.h - rows of random numbers: what random_kernels.c exports once per instruction set. */
#ifndef FTH_CPU_RANDOM_H
#define FTH_CPU_RANDOM_H

#include "ops/philox.h"

#include <fathom/isa.h>
#include <fathom/ops.h>

/* n neighbours whose counters are first, first + step... */
typedef void fth__random_row(int64_t n, void *out, const fth__random_key *key, uint64_t first,
                             uint64_t step);
typedef fth__random_row *fth__random_rows[FTH_RANDOM_NORMAL + 1][2]; /* [kind][f64] */
FTH_ISA_DECLARE(const fth__random_rows, fth__random_rows);

#endif
