/* checked_cast.cu - reals and wider integers to integers; a value that does not fit is left as a
 * complaint. The dtypes are looked at by every thread: one kernel does all pairs. */
#include "cuda/walk/lines.cuh"
#include "cuda/walk/space.cuh"

extern "C" {
#include "ops/identity.h"
#include "ops/misfit.h"
}

/* Integer targets: the first and last value that fit. */
typedef struct range {
    int64_t first, last;
} range;

static range range_of(fth_dtype t)
{
    return range{fth__first_int((int)t), fth__last_int((int)t)};
}

static __device__ __forceinline__ double get_real(fth_dtype t, const char *p)
{
    switch (t) {
    case FTH_F16: return FTH__GET_F16(*(const uint16_t *)p);
    case FTH_BF16: return FTH__GET_BF16(*(const uint16_t *)p);
    case FTH_F32: return (double)*(const float *)p;
    default: return *(const double *)p;
    }
}

enum { EACH = 4 }; /* loads in flight per thread: with one, 48 % of the speed of a copy (H200) */

/* Places in the operand and in the result, in bytes, and in the whole value. Each thread takes
 * several, and reads all of them before it writes the first. */
template <bool REAL>
static __global__ void convert(const fth__places<3> __grid_constant__ w, char *out, const char *in,
                               fth_dtype to, fth_dtype from, range fit, uint64_t place,
                               fth_fault *fault)
{
    const uint32_t first = blockIdx.x * (FTH__SPACE_THREADS * (uint32_t)EACH) + threadIdx.x;
    int64_t at[EACH][3], whole[EACH];
    double real[EACH];
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        if (first + u * FTH__SPACE_THREADS >= w.count) continue;
        fth__place_at(w, first + u * FTH__SPACE_THREADS, at[u]);
        if constexpr (REAL)
            real[u] = get_real(from, in + at[u][0]);
        else
            fth__wide_load(from, in + at[u][0], &whole[u]);
    }
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        if (first + u * FTH__SPACE_THREADS >= w.count) continue;
        bool fits = true;
        if constexpr (REAL) { /* both ends are powers of two in double */
            fits = (real[u] > (double)fit.first - 1.0 || real[u] == (double)fit.first) &&
                   real[u] < (double)fit.last + 1.0;
            whole[u] = fits ? (int64_t)real[u] : 0;
        } else {
            real[u] = (double)whole[u];
        }
        fits = fits && whole[u] >= fit.first && whole[u] <= fit.last;
        if (!fits)
            fth_cuda_complain(fault, place + (uint64_t)at[u][2], __double_as_longlong(real[u]), 0);
        fth__wide_store(to, out + at[u][1], fits ? whole[u] : 0);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const fth_dtype from = d->dtype, to = call->node->out[0].dtype;
    const int64_t from_size = fth_dtype_size(from), to_size = fth_dtype_size(to);
    int64_t place[FTH_MAX_AXES];
    fth__misfit_steps(d, place);
    fth__space<3> s;
    for (int k = 0; k < d->n_axes; k++) {
        s.add(out->extent[k], in->stride[k] * from_size, out->stride[k] * to_size, place[k]);
        s.base[2] += in->origin[k] * place[k];
    }
    fth__space_each(s, [&](const fth__places<3> &w, const int64_t *base) {
        FTH_LAUNCH((fth_dtype_is_real(from) ? convert<true> : convert<false>),
                   fth__place_blocks(w.count, EACH), FTH__SPACE_THREADS, fth_cuda_stream(call), w,
                   (char *)out->data + base[1], (const char *)in->data + base[0], to, from,
                   range_of(to), (uint64_t)base[2], call->fault);
    });
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    double value;
    memcpy(&value, &fault->value, sizeof value);
    return fth__misfit_cast(node, fault->where, value, err);
}

FTH_CUDA_KERNEL(checked_cast) = {.op = "checked_cast", .run = run, .explain = explain};
