/* counts.h - exact percentiles of stacks by counting every value.
 *
 * Integers have a count for each value. A float is two halves of 16 bits of a key that sorts as
 * floats do: a first count of upper halves says in which of them the wanted ranks lie, a second one
 * of lower halves inside those says which floats they are.
 */
#ifndef FOCUS_OPS_COUNTS_H
#define FOCUS_OPS_COUNTS_H

#include "border.h"
#include "stack.h"

enum {
    FO_RANKS = 4,    /* values that the two percentiles lie between: k, k+1 of each */
    FO_BINS = 65536, /* of 16 bits, and of halves of a float */
    FO_BINS_U8 = 256
};

/* What is counted: all planes of `present` of each stack, or of all stacks together, and then only
 * every step-th value of all (1: each). */
typedef struct fo_counts_attr {
    int64_t step;
    int32_t together; /* all stacks as one */
    int32_t bin;      /* axis id of the bins */
} fo_counts_attr;
/* i64 [stack bin], or [bin] when together. `upper` i64 [stack fo_rank] (f32 alone): counts of the
 * lower halves of the floats whose upper half is each of these, [stack bin] with 4 * 65536 bins;
 * poison otherwise. `bin` names the axis of bins. */
fth_val fo_counts_(fth_site site, fth_val stacks, fth_val present, fth_val upper, const char *bin,
                   int64_t step, bool together);
#define fo_counts(stacks, present, upper, bin, step, together)                                     \
    fo_counts_(FTH_HERE, (stacks), (present), (upper), (bin), (step), (together))

/* i64 [stack fo_rank]: upper halves of the floats of the ranks around the percentiles. */
fth_val fo_upper_halves_(fth_site site, fth_val counts, const char *rank, double low, double high);
#define fo_upper_halves(counts, rank, low, high)                                                   \
    fo_upper_halves_(FTH_HERE, (counts), (rank), (low), (high))

/* f64 [stack] (or without axes, of counts of all stacks together): the percentiles low and high,
 * the share of values >= `top` (integers), 1 where all values are equal, and the largest value
 * (of floats, the upper percentile). With no value at all: 0, 0, 0, 1, 0. */
enum { FO_RANGE_LO, FO_RANGE_HI, FO_RANGE_SATURATED, FO_RANGE_CONSTANT, FO_RANGE_MAX, FO_RANGES };
typedef struct fo_range_attr {
    double low, high;
    int64_t top;
} fo_range_attr;
fth_val fo_range_(fth_site site, fth_val counts, fth_val upper, fth_val lower, double low,
                  double high, int64_t top);
#define fo_range(counts, upper, lower, low, high, top)                                             \
    fo_range_(FTH_HERE, (counts), (upper), (lower), (low), (high), (top))

/* Bits of a float in the order of floats; -0 is 0. */
FO_BOTH uint32_t fo_float_key(uint32_t bits)
{
    if (bits == 0x80000000u) bits = 0;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

#endif
