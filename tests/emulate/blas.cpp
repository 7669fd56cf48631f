/* blas.cpp - there is no library of products on the emulated device: the kernels' own loops run. */
#include "cuda/blas.h"

bool fth__cuda_blas_knows(fth_device *, const fth__cuda_kind *)
{
    return false;
}

fth_status fth__cuda_blas_run(fth_device *, cudaStream_t, const fth__cuda_kind *,
                              const fth__cuda_gemm *, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_DEVICE, "there is no library of products here");
}

const char *fth__cuda_blas_name(fth_device *)
{
    return "none on the emulated device";
}
