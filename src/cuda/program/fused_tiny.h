/* fused_tiny.h - the kernel of a fused program that reduces rows of two to four elements which
 * follow each other in memory.
 *
 * A thread has as many rows as an item has elements: so many items as a row has elements, which it
 * reads at once, and all results beside each other. Nothing is shared. Before it stands
 * fused_body.h, and TAIL_TINY, the elements of a row.
 */
#ifndef FTH_CUDA_FUSED_TINY_H
#define FTH_CUDA_FUSED_TINY_H

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fth_kernel(const fth__ew_args __grid_constant__ a)
{
    const fth__ew_tail &t = a.tail;
    const uint32_t id = blockIdx.x * (uint32_t)THREADS + threadIdx.x;
    if (id >= a.count / VEC) return;
    const fth__ew_operand &out = a.operand[N_IN], &state = a.operand[N_IN + 1];
    place p;
    batch held, b[TAIL_TINY];
    fth__locate(a, id * VEC, p);
    fth__hold(a, held);
#pragma unroll
    for (int u = 0; u < TAIL_TINY; u++) {
        b[u].held(held);
        fth__fetch(a, p, u * VEC, b[u]);
    }
    result r[VEC];
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        fth__total<wide> total;
        char *const at = out.data + (p.off[N_IN] + i * out.stride[0]) * OUT_BYTES;
        char *const kept = state.data + (p.off[N_IN + 1] + i * state.stride[0]) * t.state;
        total.begin(TAIL_RED, t, at, kept);
#pragma unroll
        for (int k = 0; k < TAIL_TINY; k++) {
            const int e = i * TAIL_TINY + k;
            total.total = fth__join_single(total.total,
                                           fth__widen<wide>(fth__reduced(a, b[e / VEC], e % VEC)));
        }
        if (a.flat)
            fth__store_as(TAIL_TO, (char *)&r[i], total.total);
        else
            total.end(t, at, kept);
    }
    if (a.flat) fth__write<result, VEC>((result *)out.data + p.off[N_IN], r);
}

#endif
