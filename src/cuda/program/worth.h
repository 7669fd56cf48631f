/* worth.h - when compiling a program pays.
 *
 * NVRTC takes about 250 ms for a program, the interpreter nothing, and both give the same bits. So
 * work is counted in what the interpreter does one after the other: loads, instructions and stores
 * of an element. An H200 interprets at least 2e10 of them in a second (all programs of a bragg
 * image of 4096^2 are 1.6e9, and ran with all that is not interpreted in 80 ms). 250 ms are 5e9
 * then: whoever has less to do is done before the compiler would be, and who stops at that number
 * and compiles has lost no more than the time that compiling takes.
 *
 * A plan that ran often is taken to run as often again. So before its second, third, fifth, ninth
 * run, and so on, programs are asked again, and what all of a plan's nodes have interpreted of one
 * program counts together. No training waits longer for the compiler than it has interpreted.
 */
#ifndef FTH_CUDA_WORTH_H
#define FTH_CUDA_WORTH_H

#include "graph/program.h"

/* Work that takes the interpreter as long as the compiler needs. */
static const int64_t FTH__WORTH_COMPILING = 5000000000;
/* Elements of a value for which nothing is compiled before the first run: they take less than a
 * millisecond. Larger ones always are before the second. */
enum { FTH__WORTH_NOTHING = 4 << 20 };
enum {
    FTH__WORTH_ALONE = 20000, /* steps of all threads while one thread makes one: about 1 us */
    FTH__WORTH_ROW = 64,      /* most elements of a sum that one thread takes: a block of them */
    FTH__WORTH_KEPT = 64,     /* runs to expect of a cached program for each one seen */
};

/* What one element takes. */
static inline int64_t fth__worth_steps(const fth__program *p)
{
    const int64_t inner = p->inner_red > 0 ? p->size[p->n_axes] : 1;
    return inner * (p->n_in + p->n_instr + (p->tail_dim >= 0 ? 1 : p->n_out));
}

/* The work of a program over so many elements. */
static inline int64_t fth__worth_of(const fth__program *p, int64_t elements)
{
    return elements * fth__worth_steps(p);
}

/* The work that counts before a run of a plan that ran `runs` times; `kept`: code is, and will
 * serve other programs too. However few elements there are, nothing is done before one thread has
 * done its own. */
static inline int64_t fth__worth_before(const fth__program *p, int64_t elements, int64_t runs,
                                        bool kept)
{
    const int64_t work = fth__worth_of(p, elements), most = FTH__WORTH_COMPILING;
    if (runs == 0 || elements >= FTH__WORTH_NOTHING)
        return elements >= FTH__WORTH_NOTHING && (runs > 0 || work >= most) ? most : 0;
    int64_t row = p->tail_dim >= 0 ? p->size[p->tail_dim] : 1;
    if (row > FTH__WORTH_ROW) row = FTH__WORTH_ROW;
    const int64_t alone = row * fth__worth_steps(p) * FTH__WORTH_ALONE,
                  longer = (work > alone ? work : alone) * (kept ? FTH__WORTH_KEPT : 1);
    return longer < most / runs ? longer * runs : most;
}

#endif
