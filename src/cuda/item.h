/* item.h - items of a fused program: neighbours that are read and written at once.
 *
 * Before it stand N_IN, N_OUT and HAS_TAIL. An item of neighbours whose bytes are a power of two is
 * one load or store of up to 16 bytes, or several of 16.
 */
#ifndef FTH_CUDA_ITEM_H
#define FTH_CUDA_ITEM_H

#include "cuda/fused_args.h"
#include "cuda/number.h"

/* Inputs, outputs, and with a tail what is kept between pieces. */
enum { N_OPS = N_IN + N_OUT + (HAS_TAIL ? 1 : 0) };
struct place {
    int64_t off[N_OPS]; /* elements */
};

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
