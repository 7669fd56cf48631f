/* log.cuh - values of a plane with their border and its LoG of size 3, for kernels of a device.
 *
 * Included inside the unnamed namespace of a .cu file, after fathom/cuda.h, energy.h and stack.h.
 * The order of sums is that of the loops of the CPU, so that floats have the same bits.
 */
#ifndef FOCUS_OPS_LOG_CUH
#define FOCUS_OPS_LOG_CUH

/* A tile of a stack, in elements; y counts rows of the image. */
struct stack_tile {
    const void *data;
    int64_t stack, plane, row; /* steps */
    int64_t first, rows;       /* of the image, that are there */
    int64_t height, width;     /* of the image */
    int64_t planes, z0;        /* of the tile */
};

stack_tile stack_of(const fth_call *call)
{
    const fth_tile *t = &call->in[0];
    const fth_desc *d = &call->node->in[0];
    return stack_tile{t->data,         t->stride[0],    t->stride[1],  t->stride[2],
                      t->origin[FO_Y], t->extent[FO_Y], d->size[FO_Y], d->size[FO_X],
                      t->extent[FO_Z], t->origin[FO_Z]};
}

template <typename T>
__device__ inline float value_at(const stack_tile &in, int64_t s, int64_t z, int64_t y, int64_t x)
{
    return (float)((const T *)in.data)[s * in.stack + z * in.plane + (y - in.first) * in.row + x];
}

/* A value with its border: 0 outside of an image whose border is zero. */
template <typename T> struct plane_values {
    const T *data; /* of row `first` */
    int64_t row, first, height, width;
    fo_border border;
    __device__ inline float at(int64_t y, int64_t x) const /* inside */
    {
        return (float)data[(y - first) * row + x];
    }
    __device__ inline float extended(int64_t y, int64_t x) const
    {
        y = fo_border_at(y, height, border);
        x = fo_border_at(x, width, border);
        return y < 0 || x < 0 ? 0.0f : at(y, x);
    }
};

template <typename T>
__device__ plane_values<T> plane_of(const stack_tile &in, int64_t s, int64_t z, fo_border border)
{
    return plane_values<T>{(const T *)in.data + s * in.stack + z * in.plane,
                           in.row,
                           in.first,
                           in.height,
                           in.width,
                           border};
}

/* ---- the LoG of size 3 ---- */

/* The blurred image (16 times), each step with its own border. */
template <typename T>
__noinline__ __device__ float blurred(const plane_values<T> &v, int64_t y, int64_t x)
{
    y = fo_border_at(y, v.height, v.border);
    x = fo_border_at(x, v.width, v.border);
    if (y < 0 || x < 0) return 0;
    float h[3];
    for (int i = 0; i < 3; i++) {
        h[i] = 0;
        const int64_t row = fo_border_at(y + i - 1, v.height, v.border);
        if (row < 0) continue;
        h[i] = v.extended(row, x - 1) + v.extended(row, x + 1) + 2 * v.at(row, x);
    }
    return h[0] + h[2] + 2 * h[1];
}

__device__ inline float log_of(float above, float below, float middle)
{
    return fabsf(2 * (above + below) - 8 * middle) * 0.0625f;
}

/* Anywhere. Few pixels need it: it is not copied to every place that does. */
template <typename T>
__noinline__ __device__ float log_at(const plane_values<T> &v, int64_t y, int64_t x)
{
    return log_of(blurred(v, y - 1, x - 1) + blurred(v, y - 1, x + 1),
                  blurred(v, y + 1, x - 1) + blurred(v, y + 1, x + 1), blurred(v, y, x));
}

/* Sums along x of one row, at three columns. */
struct across3 {
    float left, middle, right;
};

template <typename T> __device__ inline across3 across_at(const T *row)
{
    const float a = (float)row[-2], b = (float)row[-1], c = (float)row[0], d = (float)row[1],
                e = (float)row[2];
    return across3{a + c + 2 * b, b + d + 2 * c, c + e + 2 * d};
}

/* The same away from all borders: two pixels on each side are there. */
template <typename T>
__device__ inline float log_inside(const plane_values<T> &v, int64_t y, int64_t x)
{
    const T *row = v.data + (y - 2 - v.first) * v.row + x;
    across3 h[5];
    for (int i = 0; i < 5; i++) h[i] = across_at(row + i * v.row);
    const float above = (h[0].left + h[2].left + 2 * h[1].left) +
                        (h[0].right + h[2].right + 2 * h[1].right),
                below = (h[2].left + h[4].left + 2 * h[3].left) +
                        (h[2].right + h[4].right + 2 * h[3].right);
    return log_of(above, below, h[1].middle + h[3].middle + 2 * h[2].middle);
}

/* Whichever of the two it is. */
template <typename T>
__device__ inline float log_energy(const plane_values<T> &v, int64_t y, int64_t x)
{
    const bool inside = x >= 2 && x + 2 < v.width && y >= 2 && y + 2 < v.height;
    return inside ? log_inside(v, y, x) : log_at(v, y, x);
}

#endif
