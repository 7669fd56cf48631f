/* backend.h - the CPU as a table of kernels. */
#ifndef FTH_CPU_BACKEND_H
#define FTH_CPU_BACKEND_H

#include "graph/context.h"

#define FTH_KERNEL(name) extern const fth_kernel fth__cpu_##name;
#include "cpu/kernels.def"
#undef FTH_KERNEL

extern const fth_backend fth__cpu_backend;

#endif
