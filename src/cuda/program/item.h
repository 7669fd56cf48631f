/* item.h - items of a fused program: neighbours that are read and written at once.
 *
 * Before it stand N_IN, N_OUT and HAS_TAIL. An item of neighbours whose bytes are a power of two is
 * one load or store of up to 16 bytes, or several of 16.
 */
#ifndef FTH_CUDA_ITEM_H
#define FTH_CUDA_ITEM_H

#include "cuda/program/fused_args.h"
#include "cuda/program/number.h"
#include "ops/border.h"

/* Inputs and looks, outputs, and with a tail what is kept between pieces. */
enum { N_OPS = N_IN + N_OUT + (HAS_TAIL ? 1 : 0) };
struct place {
    int64_t off[N_OPS]; /* elements */
};

/* What a look adds to the offset of its input where the raw index is `raw`; false: nothing is read,
 * the border's number takes the place of the element. */
FTH__MATH bool fth__look_at(const fth__ew_look &look, int64_t raw, int64_t &off)
{
    const int64_t i = fth__border_divided(look.border, look.size, raw, look.div);
    /* what is divided is in no stride */
    off += (look.div == 1 ? i - raw : i - look.origin) * look.stride;
    return i >= 0;
}

/* Look l has an index beyond its axis: the first place of an index counts, as fth_cuda_complain has
 * it. */
FTH__MATH void fth__complain(fth__ew_fault *fault, int64_t where, int64_t value, uint32_t l)
{
    volatile fth__ew_fault *const f = fault;
    if ((uint64_t)where >= f->where) return;
    bool done = false;
    while (!done) {
        if (atomicCAS(&fault->lock, ~0u, 0u) != ~0u) continue;
        if ((uint64_t)where < f->where) {
            f->where = (uint64_t)where;
            f->value = value;
            f->code = l;
        }
        __threadfence();
        atomicExch(&fault->lock, ~0u);
        done = true;
    }
}

/* The same of rows: the element of their index lies `at` from its operand's first, and in all of
 * the index at `place`. */
FTH__MATH bool fth__row_at(const fth__ew_args &a, uint32_t l, int64_t at, int64_t place,
                           int64_t &off)
{
    const fth__ew_look &look = a.look[l];
    const char *const index = a.operand[look.rows].data;
    const int64_t row = look.wide ? ((const int64_t *)index)[at] : ((const int32_t *)index)[at];
    if (row < 0 || row >= look.limit) {
        fth__complain(a.fault, place - FTH__EW_RAW, row, l);
        return false;
    }
    const int64_t i = fth__border_index(look.border, look.size, look.mul * row + look.add);
    off += i * look.stride;
    return i >= 0;
}

template <int BYTES> struct fth__word {
    typedef uint4 type;
};
template <> struct fth__word<1> {
    typedef unsigned char type;
};
template <> struct fth__word<2> {
    typedef unsigned short type;
};
template <> struct fth__word<4> {
    typedef unsigned int type;
};
template <> struct fth__word<8> {
    typedef uint2 type;
};

template <class T, int W> FTH__MATH void fth__read(T (&to)[W], const T *from)
{
    typedef typename fth__word<sizeof(T) * W>::type word;
    word w[sizeof(T) * W / sizeof(word)];
#pragma unroll
    for (int i = 0; i < (int)(sizeof w / sizeof(word)); i++) w[i] = ((const word *)from)[i];
    memcpy(to, w, sizeof w);
}
template <class T, int W> FTH__MATH void fth__write(T *to, const T (&from)[W])
{
    typedef typename fth__word<sizeof(T) * W>::type word;
    word w[sizeof(T) * W / sizeof(word)];
    memcpy(w, from, sizeof w);
#pragma unroll
    for (int i = 0; i < (int)(sizeof w / sizeof(word)); i++) ((word *)to)[i] = w[i];
}

/* The same to shared memory: the compiler would write one number at a time. */
template <class T, int W> FTH__MATH void fth__lay(T *to, const T (&from)[W])
{
#ifdef __CUDA_ARCH__
    enum { BYTES = (int)sizeof(T) * W };
    if (BYTES % 8 == 0) {
        unsigned w[BYTES / 4 + 1];
        memcpy(w, from, BYTES);
        const unsigned at = (unsigned)__cvta_generic_to_shared(to);
#pragma unroll
        for (int i = 0; i + 16 <= BYTES; i += 16)
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at + i), "r"(w[i / 4]),
                         "r"(w[i / 4 + 1]), "r"(w[i / 4 + 2]), "r"(w[i / 4 + 3])
                         : "memory");
        if (BYTES % 16 != 0)
            asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at), "r"(w[0]), "r"(w[1])
                         : "memory");
        return;
    }
#endif
    fth__write<T, W>(to, from);
}

template <class W> FTH__MATH W fth__widen(fth_c64 v)
{
    return fth__to_c128(v);
}
template <class W> FTH__MATH W fth__widen(fth_c128 v)
{
    return v;
}
template <class W, class T> FTH__MATH W fth__widen(T v)
{
    return (W)v;
}

#endif
