/* windows.h - sums, minima and maxima over the taps of a window, in strips of neighbouring results.
 */
#ifndef FTH_CPU_WINDOWS_H
#define FTH_CPU_WINDOWS_H

#include <fathom/isa.h>
#include <fathom/ops.h>

/* acc[c] with v[r * row_step + c] for r = 0, 1, .., as a tail adds one element after the other; in
 * `scaled` each is multiplied by w[r * w_step] first, rounded to its dtype. */
typedef void fth__strip_fn(int64_t rows, int64_t cols, int64_t row_step, const void *v,
                           int64_t w_step, const void *w, void *acc);
typedef struct fth__window_loops {
    fth__strip_fn *scaled[FTH_DTYPE_COUNT]; /* sums */
    /* sums, scaled or not, that are rounded to the dtype before acc takes them as one element */
    fth__strip_fn *rounded[2][FTH_DTYPE_COUNT];
    fth__strip_fn *plain[FTH_RED_LOGSUMEXP][FTH_DTYPE_COUNT];
} fth__window_loops;
FTH_ISA_DECLARE(const fth__window_loops, fth__window_loops);

/* fused_window.c: a program that is such a reduction, and nothing else; false: it is another. */
struct fth__vm;
bool fth__window_run(const struct fth__vm *vm);

#endif
