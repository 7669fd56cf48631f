/* libraries.cpp - libraries that the emulated device lacks: products are made by the kernels' own
 * loops, and programs are interpreted. */
#include "cuda/blas.h"
#include "cuda/jit.h"

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

fth_status fth__jit_get(fth_device *, const fth_node *, const fth__program *, const fth__ew_shape *,
                        bool, int64_t, void *, const fth__jit_code **out, fth_err *)
{
    *out = NULL;
    return FTH_OK;
}

fth_status fth__jit_launch(const fth_call *call, const fth__jit_code *, dim3, unsigned, unsigned,
                           const fth__ew_args *)
{
    return FTH_FAIL(call->err, FTH_E_INTERNAL, "nothing is compiled here");
}
