/* render.cu - the image on a device: a thread per pixel, its samples one after the other.
 *
 * A sample of a parallelepiped is three dot products, six sines of reduced arguments and one
 * quotient; the loop over domains has nothing else. Integers are split off by adding a large
 * number, whose low bits are then the index of the reflection; the quotient starts from the
 * hardware's approximate reciprocal. Every other shape, and factors that multiply the running sum,
 * go through the plain loop as the CPU has it.
 *
 * Indices into the table are computed with the operations of the plain loop; where nothing is
 * looked up, multiply-adds are fused.
 */
#include "device.h"

#define FTH_ISA_LEVEL 0 /* a vector is one number */
#include <fathom/vector.h>

namespace
{
#define dot plain_dot
#include "render_plain.c"
#undef dot
#include "../../geometry/rotate.c"

enum lookup { NO_TABLE, NEAREST, TRICUBIC };
enum { THREADS = 128, SEGMENT = 32 };

/* Outputs. */
struct frame {
    window w;
    void *image;
    bool single;
    int64_t stride[2];
    unsigned long long *outside; /* of the first row; NULL: not wanted */
    int64_t outside_stride;
    const void *cells; /* scratch_map.wide */
};

/* ---- numbers ---- */

template <typename real> struct magic;
template <> struct magic<double> {
    static constexpr double whole = 6755399441055744.0;
};
template <> struct magic<float> {
    static constexpr float whole = 12582912.0f;
};

__device__ inline int low_bits(double x)
{
    return (int)(uint32_t)(uint64_t)__double_as_longlong(x);
}
__device__ inline int low_bits(float x)
{
    return __float_as_int(x) - 0x4b400000; /* the bits of the large number */
}

/* x + magic rounded up. */
__device__ inline double lifted(double x)
{
#ifdef __CUDA_ARCH__
    return __dadd_ru(x, magic<double>::whole);
#else
    return ceil(x) + magic<double>::whole;
#endif
}
__device__ inline float lifted(float x)
{
#ifdef __CUDA_ARCH__
    return __fadd_ru(x, magic<float>::whole);
#else
    return ceilf(x) + magic<float>::whole;
#endif
}

/* a / b for b between 1e-300 and 1e300: the hardware gives 20 bits of 1/b, one step all. */
__device__ inline double quotient(double a, double b)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(b));
#else
    const double y = 1 / b * (1 - 0x1p-20); /* as few digits */
#endif
    const double e = fma(-b, y, 1.0);
    return a * fma(y, fma(e, e, e), y);
}
__device__ inline float quotient(float a, float b)
{
    return __fdividef(a, b);
}

/* sin(pi x) / x by z = x^2, |x| <= 1/2 */
__device__ inline double sin_over(double z)
{
    return fth_f64v_sin_pi_over(z);
}
__device__ inline float sin_over(float z)
{
    return fth_f32v_sin_pi_over(z);
}
__device__ inline float fma_(float a, float b, float c)
{
    return fmaf(a, b, c);
}
__device__ inline double fma_(double a, double b, double c)
{
    return fma(a, b, c);
}

/* ---- a sample ---- */

/* Constants of all samples. */
template <typename real> struct crystal {
    real n[3];
    const double *table;
    int lo[3], span[3], step[3];
    double default_F;
    bool latched;
    int64_t latch;
};

template <typename real> __device__ void load_cell(const real *from, real *cell);
template <> __device__ inline void load_cell(const double *from, double *cell)
{
    const double2 *p = (const double2 *)from;
    for (int i = 0; i < 4; i++) {
        const double2 v = __ldg(p + i);
        cell[2 * i] = v.x;
        cell[2 * i + 1] = v.y;
    }
    cell[8] = __ldg(from + 8);
}
template <> __device__ inline void load_cell(const float *from, float *cell)
{
    const float4 *p = (const float4 *)from;
    for (int i = 0; i < 2; i++) {
        const float4 v = __ldg(p + i);
        cell[4 * i] = v.x;
        cell[4 * i + 1] = v.y;
        cell[4 * i + 2] = v.z;
        cell[4 * i + 3] = v.w;
    }
    cell[8] = __ldg(from + 8);
}

/* sin(pi N t) / sin(pi t) of the three axes, multiplied; up to its sign. */
template <typename real>
__device__ inline void gratings(const real *n, const real *t, real *above, real *below)
{
    real s[3], r[3], c[3];
    for (int k = 0; k < 3; k++) {
        const real whole = fma_(n[k], t[k], magic<real>::whole) - magic<real>::whole;
        r[k] = fma_(n[k], t[k], -whole);
        s[k] = sin_over(r[k] * r[k]);
        c[k] = sin_over(t[k] * t[k]);
    }
    *above = (r[0] * r[1]) * (r[2] * s[0]) * (s[1] * s[2]);
    *below = (t[0] * t[1]) * (t[2] * c[0]) * (c[1] * c[2]);
}

__device__ inline bool is_zero(double x)
{
    return ((uint64_t)__double_as_longlong(x) << 1) == 0; /* off the f64 pipeline */
}
__device__ inline bool is_zero(float x)
{
    return x == 0;
}

/* Where an index is an integer the quotient is N: a tiny offset avoids 0/0. */
template <typename real> __device__ inline real lattice_of(const real *n, const real *t)
{
    real above, below;
    gratings(n, t, &above, &below);
    if (is_zero(below)) {
        const real speck = sizeof(real) == 8 ? (real)0x1p-300 : (real)0x1p-40;
        real moved[3];
        for (int k = 0; k < 3; k++) moved[k] = t[k] == 0 ? speck : t[k];
        gratings(n, moved, &above, &below);
    }
    return quotient(above, below);
}

/* Outside the table F is the default. */
template <typename real> __device__ inline real entry_at(const crystal<real> &c, const int *index)
{
    const int h = index[0] - c.lo[0], k = index[1] - c.lo[1], l = index[2] - c.lo[2];
    const bool in = (unsigned)h <= (unsigned)c.span[0] && (unsigned)k <= (unsigned)c.span[1] &&
                    (unsigned)l <= (unsigned)c.span[2];
    return (real)(in ? __ldg(c.table + (h * c.step[0] + k * c.step[1] + l * c.step[2]))
                     : c.default_F);
}

template <typename real> __device__ inline void cubic_weights(real t, double *w)
{
    const double x = (double)t, left = x + 1, right = x - 1, far = x - 2;
    w[0] = x * right * far * (-1.0 / 6);
    w[1] = left * right * far * 0.5;
    w[2] = left * x * far * -0.5;
    w[3] = left * x * right * (1.0 / 6);
}

template <typename real> __device__ double cubic(const crystal<real> &c, const real *hkl)
{
    double w[3][4], sum = 0;
    int at = 0;
    for (int k = 0; k < 3; k++) {
        const real whole = floor(hkl[k]);
        cubic_weights(hkl[k] - whole, w[k]);
        at += ((int)whole - 1 - c.lo[k]) * c.step[k];
    }
    const double *from = c.table + at;
    for (int h = 0; h < 4; h++) {
        double plane = 0;
        for (int k = 0; k < 4; k++) {
            const double *f = from + h * c.step[0] + k * c.step[1];
            double line = w[2][0] * __ldg(f);
            for (int l = 1; l < 4; l++) line = fma(w[2][l], __ldg(f + l * c.step[2]), line);
            plane = fma(w[1][k], line, plane);
        }
        sum = fma(w[0][h], plane, sum);
    }
    return sum;
}

template <typename real> __device__ inline bool inside(const crystal<real> &c, const real *hkl)
{
    bool in = true;
    for (int k = 0; k < 3; k++)
        in = in && hkl[k] - (real)c.lo[k] + 3 <= (real)(c.span[k] + 1) &&
             hkl[k] - 2 >= (real)c.lo[k];
    return in;
}

/* F times the lattice factor of one sample. Without a table it is the lattice factor alone. */
template <typename real, lookup how>
__device__ inline real amplitude(const crystal<real> &c, const real *cell, const real *q, int64_t n,
                                 int64_t *outside)
{
    real hkl[3], t[3];
    int index[3];
    for (int k = 0; k < 3; k++) {
        const real *a = cell + 3 * k;
        if (how == NO_TABLE) {
            hkl[k] = fma_(a[2], q[2], fma_(a[1], q[1], a[0] * q[0]));
            t[k] = hkl[k] - ((hkl[k] + magic<real>::whole) - magic<real>::whole);
        } else {
            hkl[k] = a[0] * q[0] + a[1] * q[1] + a[2] * q[2];
            const real up = lifted(hkl[k] - (real)0.5);
            index[k] = low_bits(up);
            t[k] = hkl[k] - (up - magic<real>::whole);
        }
    }
    const real f = lattice_of(c.n, t);
    if (how == NO_TABLE) return f;
    if (how == NEAREST) return f * entry_at(c, index);
    const bool in = inside(c, hkl);
    if (!in && (!c.latched || n == c.latch)) ++*outside;
    return f * (in && (!c.latched || n < c.latch) ? (real)cubic(c, hkl) : entry_at(c, index));
}

/* ---- a pixel ---- */

/* Sum of the squares of all samples of one source. */
template <typename real, lookup how>
__device__ inline double one_beam(const crystal<real> &c, const br_scene *s, const real *cells,
                                  const double *d, const br_beam *beam, int64_t group,
                                  int64_t chain, int64_t *outside)
{
    const double lambda = beam->lambda, y = beam->inv_lambda;
    real q[3];
    for (int k = 0; k < 3; k++) { /* to the bit (d + to) / lambda */
        const double a = d[k] + beam->to[k], first = a * y;
        q[k] = (real)fma(fma(-first, lambda, a), y, first);
    }
    constexpr int each = sizeof(real) == 8 ? CELL_F64 : CELL_F32;
    const int phis = (int)s->phis, mosaics = (int)s->mosaics;
    double part = 0;
    int64_t n = group * phis * mosaics;
    for (int phi = 0; phi < phis; phi++) {
        const int64_t row = phi == 0 && group == chain ? phis : phi;
        const real *from = cells + row * mosaics * each;
#pragma unroll 2
        for (int m = 0; m < mosaics; m++, from += each, n++) {
            real cell[9];
            load_cell(from, cell);
            const real f = amplitude<real, how>(c, cell, q, n, outside);
            if (sizeof(real) == 8)
                part = fma((double)f, (double)f, part);
            else
                part += (double)(f * f);
        }
    }
    return part;
}

__device__ inline double along(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* cos(2 psi) without the angle. */
__device__ inline double polar_of(const br_scene *s, const br_beam *beam, const double *d)
{
    const double c = along(d, beam->to), c2 = c * c;
    double now = 1 + c2;
    if (s->kahn != 0) {
        const double b = along(d, beam->across), e = along(d, beam->along);
        const double bb = b * b, ee = e * e;
        const double twice = bb + ee == 0 ? 1 : (ee - bb) / (ee + bb);
        now = now - s->kahn * twice * (1 - c2);
    }
    return 0.5 * now;
}

__device__ inline double omega_of(const br_view *v, double r)
{
    const br_scene *s = v->scene;
    return s->point_pixel ? 1 / r / r : s->pixel * s->pixel / r / r * v->close / r;
}

template <typename real, lookup how>
__device__ double value_of(const br_view *v, const crystal<real> &c, const real *cells,
                           int64_t slow, int64_t fast, int64_t *outside)
{
    const br_scene *s = v->scene;
    const int64_t O = s->oversample;
    const bool last_layer = br_has(s, BR_QUIRK_LAST_LAYER);
    int64_t group = (slow * s->fast + fast) * s->layers * O * O * s->sources;
    double sum = s->water != 0 && br_has(s, BR_QUIRK_WATER_SCALE) ? v->water : 0;
    double polar = s->nopolar ? 1 : 0, omega = 0, capture = 0, captures = 0;
    const double square = how == NO_TABLE ? s->default_F * s->default_F : 1;
    const br_row row = {.slow = slow, .fast = fast};
    for (int64_t layer = 0; layer < s->layers; layer++) {
        capture = s->thickness == 0 ? 1 : 0;
        for (int64_t at = 0; at < O * O; at++) {
            const int64_t sub[3] = {layer, at / O, at % O};
            double p[3], d[3];
            br_position(v, &row, 0, sub, p);
            const double r = br_unit(p, d);
            if (omega == 0 || s->oversample_omega) omega = omega_of(v, r);
            if (capture == 0 || s->oversample_thick) capture = br_capture(v, layer, d);
            for (int64_t j = 0; j < s->sources; j++, group++) {
                const br_beam *beam = &v->beams[j];
                double q[3], stol;
                if (s->dmin > 0 && !br_scatter(v, j, d, q, &stol)) continue;
                if (polar == 0 || s->oversample_polar) polar = polar_of(s, beam, d);
                double factor = beam->weight * square;
                if (s->oversample_thick || !last_layer) factor *= capture;
                if (s->oversample_polar) factor *= polar;
                if (s->oversample_omega) factor *= omega;
                sum += factor * one_beam<real, how>(c, s, cells, d, beam, group, v->chain, outside);
            }
        }
        captures += capture;
    }
    double value = v->scale * sum / s->steps;
    if (!s->oversample_thick && last_layer) value *= capture;
    if (!s->oversample_polar) value *= polar;
    if (!s->oversample_omega) value *= omega;
    if (s->water != 0 && !br_has(s, BR_QUIRK_WATER_SCALE))
        value += v->water * polar * omega * captures;
    return value;
}

/* The reference adds a double to a pixel that is 0, a float. */
__device__ inline void put(const frame &f, int64_t y, int64_t x, double value)
{
    const int64_t to = y * f.stride[0] + x * f.stride[1];
    if (f.single)
        ((float *)f.image)[to] = (float)(0.0 + value);
    else
        ((double *)f.image)[to] = value;
}

template <typename real> __device__ crystal<real> crystal_of(const br_view *v)
{
    const br_scene *s = v->scene;
    crystal<real> c;
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    for (int k = 0; k < 3; k++) {
        c.n[k] = (real)s->cells[k];
        c.lo[k] = (int)lo[k];
        c.span[k] = (int)(hi[k] - lo[k]);
        c.step[k] = (int)v->table_step[k];
    }
    c.table = v->table;
    c.default_F = s->default_F;
    c.latched = v->latched;
    c.latch = v->latch;
    return c;
}

template <typename real, lookup how>
__global__ void __launch_bounds__(THREADS, 4) square(const device_view *top, frame f)
{
    const br_view *v = &top->view;
    const crystal<real> c = crystal_of<real>(v);
    const int64_t n = f.w.rows * f.w.cols, step = THREAD_COUNT;
    for (int64_t i = THREAD_INDEX; i < n; i += step) {
        const int64_t y = i / f.w.cols, x = i % f.w.cols;
        int64_t outside = 0;
        double value = 0;
        if (is_rendered(v->scene, f.w, y, x))
            value = value_of<real, how>(v, c, (const real *)f.cells, f.w.slow + y, f.w.fast + x,
                                        &outside);
        if (f.image) put(f, y, x, value);
        if (outside && f.outside)
            atomicAdd(f.outside + y * f.outside_stride, (unsigned long long)outside);
    }
}

/* All other scenes: the plain loop. */
__global__ void __launch_bounds__(THREADS) plain(const device_view *top, frame f)
{
    const br_view *v = &top->view;
    const int64_t n = f.w.rows * f.w.cols, step = THREAD_COUNT;
    for (int64_t i = THREAD_INDEX; i < n; i += step) {
        const int64_t y = i / f.w.cols, x = i % f.w.cols;
        double value = 0, omega = 0;
        br_pixel p = {};
        br_row row = {.slow = f.w.slow + y, .fast = f.w.fast + x, .n = 1};
        row.value = &value;
        row.omega = &omega;
        if (is_rendered(v->scene, f.w, y, x)) render(v, &row, 0, &p);
        if (f.image) put(f, y, x, value);
        if (row.outside && f.outside)
            atomicAdd(f.outside + y * f.outside_stride, (unsigned long long)row.outside);
    }
}

/* ---- solid angles of rows ---- */

/* Of all layers and subpixels of a pixel. */
__device__ double omegas_of(const br_view *v, int64_t slow, int64_t fast)
{
    const br_scene *s = v->scene;
    const int64_t O = s->oversample, n = s->layers * O * O;
    const br_row row = {.slow = slow, .fast = fast};
    double omega = 0, sum = 0;
    for (int64_t at = 0; at < n; at++) {
        if (omega == 0 || s->oversample_omega) {
            const int64_t sub[3] = {at / (O * O), at / O % O, at % O};
            double p[3], d[3];
            br_position(v, &row, 0, sub, p);
            omega = omega_of(v, br_unit(p, d));
        }
        sum += omega;
    }
    return sum;
}

__global__ void segment_sums(const device_view *top, frame f, int64_t segments, double *sums)
{
    const int64_t i = THREAD_INDEX;
    if (i >= f.w.rows * segments) return;
    const int64_t y = i / segments, first = i % segments * SEGMENT;
    double sum = 0;
    for (int64_t x = first; x < first + SEGMENT && x < f.w.cols; x++)
        if (is_rendered(top->view.scene, f.w, y, x))
            sum += omegas_of(&top->view, f.w.slow + y, f.w.fast + x);
    sums[i] = sum;
}

__global__ void row_sums(const double *sums, int64_t segments, int64_t rows, double *out,
                         int64_t stride)
{
    const int64_t y = THREAD_INDEX;
    if (y >= rows) return;
    double sum = 0;
    for (int64_t i = 0; i < segments; i++) sum += sums[y * segments + i];
    out[y * stride] = sum;
}

__global__ void clear(unsigned long long *to, int64_t n, int64_t stride)
{
    const int64_t i = THREAD_INDEX;
    if (i < n) to[i * stride] = 0;
}

/* ---- the operation ---- */

const br_scene *scene_of(const fth_call *call)
{
    return &((const br_op_attr *)call->node->attr)->scene;
}

int64_t segments_of(const fth_call *call)
{
    return (call->out[0].extent[1] + SEGMENT - 1) / SEGMENT;
}

uint64_t scratch(const fth_call *call)
{
    return scratch_map_of(scene_of(call), false).end +
           (uint64_t)(segments_of(call) * call->out[0].extent[0]) * sizeof(double);
}

frame frame_of(const fth_call *call)
{
    const br_scene *s = scene_of(call);
    const fth_tile *t = &call->out[0], *outside = &call->out[2];
    frame f = {};
    f.w = window_of(t, s->masked ? &call->in[BR_IN_MASK] : NULL);
    f.image = t->data;
    f.single = call->node->out[0].dtype == FTH_F32;
    f.stride[0] = t->stride[0];
    f.stride[1] = t->stride[1];
    f.outside = (unsigned long long *)outside->data;
    f.outside_stride = outside->stride[0];
    f.cells = (const char *)call->scratch + scratch_map_of(s, false).wide;
    return f;
}

/* The fast loops index the table, steps and domains with 32 bits. */
bool is_small(const fth_call *call)
{
    const br_scene *s = scene_of(call);
    const fth_tile *t = &call->in[BR_IN_TABLE];
    double last = 0;
    for (int k = 0; k < 3 && s->hkls > 0; k++) last += (double)t->extent[k] * (double)t->stride[k];
    return last < 2e9 && (double)s->phis < 2e9 && (double)s->mosaics < 2e9;
}

void launch(const fth_call *call, const frame &f, unsigned blocks)
{
    const br_scene *s = scene_of(call);
    const device_view *top = (const device_view *)call->scratch;
    const cudaStream_t stream = fth_cuda_stream(call);
    const bool running = s->quirks >> BR_QUIRK_RUNNING_SUM & 1 &&
                         (s->oversample_thick || s->oversample_polar || s->oversample_omega);
    const bool fast = s->shape == BR_SQUARE && !running && is_small(call),
               single = s->precision == BR_F32;
    const lookup how = s->hkls <= 0 ? NO_TABLE : s->interpolate ? TRICUBIC : NEAREST;
    if (!fast)
        FTH_LAUNCH(plain, blocks, THREADS, stream, top, f);
    else if (single && how == NO_TABLE)
        FTH_LAUNCH((square<float, NO_TABLE>), blocks, THREADS, stream, top, f);
    else if (single && how == NEAREST)
        FTH_LAUNCH((square<float, NEAREST>), blocks, THREADS, stream, top, f);
    else if (single)
        FTH_LAUNCH((square<float, TRICUBIC>), blocks, THREADS, stream, top, f);
    else if (how == NO_TABLE)
        FTH_LAUNCH((square<double, NO_TABLE>), blocks, THREADS, stream, top, f);
    else if (how == NEAREST)
        FTH_LAUNCH((square<double, NEAREST>), blocks, THREADS, stream, top, f);
    else
        FTH_LAUNCH((square<double, TRICUBIC>), blocks, THREADS, stream, top, f);
}

fth_status omegas(const fth_call *call, const frame &f)
{
    const device_view *top = (const device_view *)call->scratch;
    const int64_t segments = segments_of(call);
    double *sums = (double *)((char *)call->scratch + scratch_map_of(scene_of(call), false).end);
    const fth_tile *out = &call->out[1];
    FTH_LAUNCH(segment_sums, blocks_for(f.w.rows * segments, 64), 64, fth_cuda_stream(call), top, f,
               segments, sums);
    FTH_CUDA_LAUNCHED(call);
    FTH_LAUNCH(row_sums, blocks_for(f.w.rows, 64), 64, fth_cuda_stream(call), sums, segments,
               f.w.rows, (double *)out->data, out->stride[0]);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    const br_device_inputs in = {BR_IN_PARAM, BR_IN_TABLE, BR_IN_SOURCE, BR_IN_MOSAIC, BR_IN_LATCH};
    const frame f = frame_of(call);
    if (f.w.rows == 0 || f.w.cols == 0) return FTH_OK;
    FTH_TRY(fth__bragg_view(call, scene_of(call), &in, false));
    if (f.outside) {
        FTH_LAUNCH(clear, blocks_for(f.w.rows, 64), 64, fth_cuda_stream(call), f.outside, f.w.rows,
                   f.outside_stride);
        FTH_CUDA_LAUNCHED(call);
    }
    if (f.image || f.outside) {
        launch(call, f, blocks_for(f.w.rows * f.w.cols, THREADS));
        FTH_CUDA_LAUNCHED(call);
    }
    return call->out[1].data ? omegas(call, f) : FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(bragg_render) = {.op = "bragg_render", .scratch = scratch, .run = run};
