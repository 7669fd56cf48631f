/* vec_kernels.c - the loops of one instruction set as one table. */
#include "cpu/vec.h"

const fth__vec_table FTH_ISA_NAME(fth__vec_table) = {
    &FTH_ISA_NAME(fth__map_loops),  &FTH_ISA_NAME(fth__cast_loops), &FTH_ISA_NAME(fth__half_loops),
    &FTH_ISA_NAME(fth__pair_loops), &FTH_ISA_NAME(fth__tail_loops), &FTH_ISA_NAME(fth__nan_loops)};
