/* row_ops.h - densification as operations, for rows that lie on a device.
 *
 * Each takes whole arrays over g and is never cut. Those that change rows give the new values of
 * the arrays they read, and work where the arrays lie: rows are read before they are written, and
 * children and copies go to rows behind those that there were. Marks travel as words of 32 rows
 * with counts of marked rows before each block of 1024, as gs_marks has them.
 */
#ifndef SPLAT_STRATEGY_ROW_OPS_H
#define SPLAT_STRATEGY_ROW_OPS_H

#include <fathom/op.h>

/* densify [g seen], scaling [g xyz] -> rows to duplicate and to split, i32 [word]. */
typedef struct gs_candidates {
    float high, small; /* gradient, logarithm of the largest scale */
} gs_candidates;
extern const fth_op gs_candidates_op;

/* scaling, rotation, opacity -> rows to remove, i32 [word]. */
typedef struct gs_unwanted {
    float faint, huge; /* logit, logarithm of the largest scale */
} gs_unwanted;
extern const fth_op gs_unwanted_op;

/* Words -> how many rows are marked before each block, i64 [block], and in all, i64 []. */
extern const fth_op gs_count_op;

/* Words and counts of duplicates, then of splits: the inputs that both of the next have last. */
enum { GS_DUP_WORDS, GS_SPLIT_WORDS, GS_DUP_BEFORE, GS_SPLIT_BEFORE, GS_GROWTH_MARKS };
typedef struct gs_growth {
    int64_t n, dups, splits; /* rows there were; then copies and second children follow */
    int64_t seed, iteration;
    int32_t revised_opacity, moments; /* moments: of children they are 0, copies have none */
} gs_growth;
/* means, scaling, rotation, opacity and marks -> the four with children and copies. */
enum { GS_SPLIT_MEANS, GS_SPLIT_SCALING, GS_SPLIT_ROTATION, GS_SPLIT_OPACITY, GS_SPLIT_PARTS };
extern const fth_op gs_split_op;
/* Any other array and marks -> the array. */
extern const fth_op gs_copy_op;

/* An array, words and counts of rows to remove -> the array, closed up. */
typedef struct gs_closing {
    int64_t n, kept; /* rows, and those that stay */
} gs_closing;
extern const fth_op gs_close_op;
enum { GS_CLOSE_ARRAY, GS_CLOSE_WORDS, GS_CLOSE_BEFORE, GS_CLOSE_INPUTS };

#endif
