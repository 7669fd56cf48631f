/* fftw.c - FFTW behind a narrow interface. No other file includes its header. */
#include "cpu/fftw.h"

#include "base/assert.h"
#include "base/bits.h"

#include <fftw3.h>
#include <pthread.h>

static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

static void *make_f32(fth_fft_kind kind, int n, void *from, void *to)
{
    if (kind == FTH_FFT_REAL) return fftwf_plan_dft_r2c_1d(n, from, to, FFTW_ESTIMATE);
    if (kind == FTH_FFT_REAL_INVERSE)
        return fftwf_plan_dft_c2r_1d(n, from, to, FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    return fftwf_plan_dft_1d(n, from, to, kind == FTH_FFT_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD,
                             FFTW_ESTIMATE);
}

static void *make_f64(fth_fft_kind kind, int n, void *from, void *to)
{
    if (kind == FTH_FFT_REAL) return fftw_plan_dft_r2c_1d(n, from, to, FFTW_ESTIMATE);
    if (kind == FTH_FFT_REAL_INVERSE)
        return fftw_plan_dft_c2r_1d(n, from, to, FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    return fftw_plan_dft_1d(n, from, to, kind == FTH_FFT_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD,
                            FFTW_ESTIMATE);
}

fth_status fth__fftw_make(fth__fftw_plan *plan, fth_fft_kind kind, fth_dtype real, int64_t n,
                          void *from, void *to, fth_err *err)
{
    FTH_ASSERT(n <= INT32_MAX && (real == FTH_F32 || real == FTH_F64));
    *plan = (fth__fftw_plan){.wide = real == FTH_F64, .kind = kind};
    pthread_mutex_lock(&planner);
    plan->handle = plan->wide ? make_f64(kind, (int)n, from, to) : make_f32(kind, (int)n, from, to);
    pthread_mutex_unlock(&planner);
    if (plan->handle) return FTH_OK;
    return FTH_FAIL(err, FTH_E_LIBRARY, "fft: FFTW made no plan for %lld points", (long long)n);
}

void fth__fftw_run(const fth__fftw_plan *plan, void *from, void *to)
{
    /* the plan was made for this alignment: another would choose other code, and other bits */
    FTH_ASSERT(fth__is_aligned(from, 16) && fth__is_aligned(to, 16));
    if (plan->wide && plan->kind == FTH_FFT_REAL)
        fftw_execute_dft_r2c(plan->handle, from, to);
    else if (plan->wide && plan->kind == FTH_FFT_REAL_INVERSE)
        fftw_execute_dft_c2r(plan->handle, from, to);
    else if (plan->wide)
        fftw_execute_dft(plan->handle, from, to);
    else if (plan->kind == FTH_FFT_REAL)
        fftwf_execute_dft_r2c(plan->handle, from, to);
    else if (plan->kind == FTH_FFT_REAL_INVERSE)
        fftwf_execute_dft_c2r(plan->handle, from, to);
    else
        fftwf_execute_dft(plan->handle, from, to);
}

void fth__fftw_drop(fth__fftw_plan *plan)
{
    if (!plan->handle) return;
    pthread_mutex_lock(&planner);
    if (plan->wide)
        fftw_destroy_plan(plan->handle);
    else
        fftwf_destroy_plan(plan->handle);
    pthread_mutex_unlock(&planner);
    plan->handle = NULL;
}
