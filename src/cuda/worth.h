/* worth.h - when compiling a program pays.
 *
 * NVRTC takes about 250 ms for a program, the interpreter nothing, and both give the same bits. So
 * work is counted in what the interpreter does one after the other: loads, instructions and stores
 * of an element. An H200 interprets at least 2e10 of them in a second (all programs of a bragg
 * image of 4096^2 are 1.6e9, and ran with all that is not interpreted in 80 ms). 250 ms are 5e9
 * then: whoever has less to do is done before the compiler would be, and who stops at that number
 * and compiles has lost no more than the time that compiling takes.
 *
 * A plan that runs again will run many times, and its recording cannot change any more: there even
 * a small program pays after some hundred runs.
 */
#ifndef FTH_CUDA_WORTH_H
#define FTH_CUDA_WORTH_H

#include "graph/program.h"

/* Work that takes the interpreter as long as the compiler needs. */
static const int64_t FTH__WORTH_COMPILING = 5000000000;
/* Elements of a value for which nothing is ever compiled: they take less than a millisecond. */
enum { FTH__WORTH_NOTHING = 4 << 20 };

/* The work of a program over so many elements. */
static inline int64_t fth__worth_of(const fth__program *p, int64_t elements)
{
    return elements * (p->n_in + p->n_instr + (p->tail_dim >= 0 ? 1 : p->n_out));
}

/* Before a run of a plan that ran `runs` times: is a program with this work compiled now? */
static inline bool fth__worth_at_once(int64_t work, int64_t elements, int64_t runs)
{
    return elements >= FTH__WORTH_NOTHING && (runs > 0 || work >= FTH__WORTH_COMPILING);
}

#endif
