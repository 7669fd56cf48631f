/* compiler.h - whether the emulated device compiles kernels at run time. */
#ifndef FTH_EMULATE_COMPILER_H
#define FTH_EMULATE_COMPILER_H

bool fth_emulate_compiles(void);

#endif
