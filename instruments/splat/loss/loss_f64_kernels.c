/* loss_f64_kernels.c - the loops of loss.h in double precision. */
typedef double real;
#define FMA(a, b, c) fma((a), (b), (c))
#include <fathom/op.h>

#include "loss_lanes.h"

extern const gs_loss_loops FTH_ISA_NAME(gs_loss_f64);
const gs_loss_loops FTH_ISA_NAME(gs_loss_f64) = {loss_scratch, loss_run};
