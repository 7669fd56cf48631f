/* cpu/fftw.h - the one door to FFTW: transforms of one row after another.
 *
 * A plan is for rows of n elements that lie next to each other, from one place to another, and
 * holds for all pointers aligned to 16 bytes. It is made by estimate, so it is the same in every
 * run.
 *
 * Threads: any. Making and dropping plans takes a lock, because FFTW's planner is one for all.
 */
#ifndef FTH_CPU_FFTW_H
#define FTH_CPU_FFTW_H

#include <fathom/ops.h>

typedef struct fth__fftw_plan {
    void *handle;
    bool wide; /* f64 */
    fth_fft_kind kind;
} fth__fftw_plan;

/* `from` and `to` are aligned to 64 and are not touched. `real` is f32 or f64. */
fth_status fth__fftw_make(fth__fftw_plan *plan, fth_fft_kind kind, fth_dtype real, int64_t n,
                          void *from, void *to, fth_err *err);
/* REAL_INVERSE destroys what is at `from`. Nothing is divided by n. */
void fth__fftw_run(const fth__fftw_plan *plan, void *from, void *to);
void fth__fftw_drop(fth__fftw_plan *plan);

#endif
