/* loss_f32_kernels.c - the loops of loss.h in single precision. */
typedef float real;
#define FMA(a, b, c) fmaf((a), (b), (c))
#include <fathom/op.h>

#include "loss_lanes.h"

extern const gs_loss_loops FTH_ISA_NAME(gs_loss_f32);
const gs_loss_loops FTH_ISA_NAME(gs_loss_f32) = {loss_scratch, loss_run};
