/* shift_node.h - the attributes and index arithmetic of translation, for C and CUDA alike. */
#ifndef PTYCHO_OPS_SHIFT_NODE_H
#define PTYCHO_OPS_SHIFT_NODE_H

/* Attributes of ptycho_translate and ptycho_translate_slope. The output frame lies `before` pixels
 * outside of the image's on the upper and left side; negative: inside, so that it is a trim. */
typedef struct pt_shift {
    fth_axis_id row, col, out_row, out_col;
    int32_t lead;      /* axes of the output before row and col; the offsets have them all */
    uint32_t repeated; /* bit d: axis d of these is one that the images have not */
    int32_t before_row, before_col;
} pt_shift;

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

#endif
