/* shift_node.h - the attributes and index arithmetic of translation, for C and CUDA alike. */
#ifndef PTYCHO_OPS_SHIFT_NODE_H
#define PTYCHO_OPS_SHIFT_NODE_H

/* Attributes of ptycho_translate and ptycho_translate_slope. The output frame lies `before` pixels
 * outside of the image's on the upper and left side; negative: inside, so that it is a trim. */
typedef struct pt_shift_attr {
    fth_axis_id row, col, out_row, out_col;
    int32_t lead;      /* axes of the output before row and col; the offsets have them all */
    uint32_t repeated; /* bit d: axis d of these is one that the images have not */
    int32_t before_row, before_col;
    int32_t nearest; /* PT_NEAREST or its adjoint: pixels are copied, not mixed; 0: bilinear */
} pt_shift_attr;
enum { PT_NEAREST = 1, PT_NEAREST_BACK = 2 };

/* Along one axis: output pixel i is (1 - part) in[i + first] + part in[i + first + 1]. */
typedef struct pt_shift_axis {
    int64_t first;
    double part;
} pt_shift_axis;

#ifdef __CUDACC__
#define PT_SHIFT_FN __host__ __device__ static inline
#else
#define PT_SHIFT_FN static inline
#endif

/* Beyond this many pixels nothing of any image is left: keeps the sum below inside an integer. */
#define PT_SHIFT_FAR 1e9

PT_SHIFT_FN pt_shift_axis pt_shift_of(double t, int64_t before)
{
    const double s = t > PT_SHIFT_FAR ? -PT_SHIFT_FAR : t < -PT_SHIFT_FAR ? PT_SHIFT_FAR : -t;
    pt_shift_axis a;
    if (!(s == s)) { /* NaN: the fraction carries it to every pixel */
        a.first = -before;
        a.part = s;
        return a;
    }
    int64_t whole = (int64_t)s;
    if ((double)whole > s) whole--;
    a.first = whole - before;
    a.part = s - (double)whole;
    return a;
}

/* Nearest: the pixel of a line of n that place i, moved back by t, is rounded to, halves to the
 * even one; -1 where it lies outside of the line. */
PT_SHIFT_FN int64_t pt_nearest_of(double t, int64_t i, int64_t n)
{
    const double s = (double)i - t;
    if (!(s >= 0 && s <= (double)(n - 1))) return -1;
    const int64_t whole = (int64_t)s;
    const double part = s - (double)whole;
    return whole + (part > 0.5 || (part == 0.5 && whole % 2 != 0));
}

/* Pixels of a line of n_in that place `place` of the output, one of n_out, takes: one there, back
 * up to two, those that the pixel was copied to. -1: none. `before` is that of the node. */
enum { PT_NEAREST_PLACES = 2 };
PT_SHIFT_FN void pt_nearest_line(int back, double t, int64_t before, int64_t place, int64_t n_in,
                                 int64_t n_out, int64_t from[PT_NEAREST_PLACES])
{
    const double low = (double)place + t - 0.5;
    from[0] = back ? -1 : pt_nearest_of(t, place - before, n_in);
    from[1] = -1;
    if (!back || !(low > -PT_SHIFT_FAR && low < PT_SHIFT_FAR)) return;
    const int64_t whole = (int64_t)low, first = whole + ((double)whole < low);
    for (int64_t k = 0; k < PT_NEAREST_PLACES; k++) {
        const int64_t at = first + k - before;
        if (pt_nearest_of(t, first + k, n_out) == place && at >= 0 && at < n_in) from[k] = at;
    }
}

#endif
