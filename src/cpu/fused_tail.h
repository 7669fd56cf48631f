/* fused_tail.h - the running values of a tail, shared by the serial walk and the one with workers.
 */
#ifndef FTH_CPU_FUSED_TAIL_H
#define FTH_CPU_FUSED_TAIL_H

#include "cpu/fused.h"

typedef struct fth__totals {
    char *partial, *super, *total; /* wide numbers of `n` results */
    int64_t n;
    char *out, *state;            /* memory of the first result */
    int64_t out_step, state_step; /* elements; bytes */
} fth__totals;

/* Wide numbers that joining anything to gives that thing. */
void fth__totals_clear(const fth__vm *vm, void *wide, int64_t n);
/* Results along `dim` from `spot`; -1: one. What earlier pieces left is taken up. */
void fth__totals_open(const fth__worker *w, fth__totals *t, const fth__spot *spot, int dim,
                      int64_t n);
void fth__totals_close(const fth__worker *w, const fth__totals *t);
/* Partials of results [from, from+n) are complete up to global index `end`: add them up. */
void fth__totals_add(const fth__vm *vm, const fth__totals *t, int64_t from, int64_t n,
                     const void *partial, int64_t end);
/* The operand that is all a program reduces across, dense along the columns: its rows are added up
 * where they lie. -1: a block is brought or computed. */
int fth__tail_operand(const fth__vm *vm);
/* The values of a block, as a block. */
const char *fth__tail_block(fth__worker *w, const fth__spot *spot, int64_t rows, int64_t cols);
/* Before and after the inner axis of n of them: w->inner is cleared, and becomes w->values. */
void fth__inner_open(const fth__worker *w, int64_t n);
const char *fth__inner_close(const fth__worker *w, int64_t n);
/* `by` elements along it. */
void fth__spot_inner(const fth__vm *vm, const fth__spot *from, int64_t by, fth__spot *to);
/* Order cannot matter, or elements are added one by one. */
static inline bool fth__tail_plain(const fth__tail *t)
{
    return t->exact || t->n <= FTH__TAIL_SHORT;
}

/* With workers: for few results of a long axis. Bytes of scratch beside the workers' own. */
uint64_t fth__team_scratch(const fth_call *call, const fth__tail *tail);
void fth__team_tail(const fth__vm *vm);

#endif
