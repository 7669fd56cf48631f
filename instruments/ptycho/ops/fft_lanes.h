/* fft_lanes.h - two-dimensional Fourier transforms of square images in two planes, real and
 * imaginary, for kernels of one precision.
 *
 * A vector holds neighbouring columns, so that a transform along the rows of the image needs no
 * shuffles: the columns of one vector stay in the first cache through all stages, and are turned on
 * their way out. Two such passes are the whole transform. Sides of any length are factored;
 * radices 2, 3, 4 and 5 have butterflies of their own. Nothing is scaled. An inverse is the same
 * with the planes exchanged. The order of operations depends on the side alone.
 */
#ifndef PT_FFT_LANES_H
#define PT_FFT_LANES_H

#include <fathom/vector.h>

enum { FFT_STAGES = 24 };
typedef struct fft {
    int n, stages;
    int radix[FFT_STAGES];
    const real *cs, *sn; /* of -2 pi k / n */
    vr *room;            /* 4 n vectors */
} fft;

#define FFT_TABLE_REALS(n) (2 * (n))

/* ---- tables ---- */

static void fft_factor(fft *f)
{
    int rest = f->n;
    f->stages = 0;
    while (rest % 4 == 0 && rest > 0) f->radix[f->stages++] = 4, rest /= 4;
    for (int p = 2; rest > 1; p++)
        while (rest % p == 0) f->radix[f->stages++] = p, rest /= p;
}

/* `table`: FFT_TABLE_REALS(n). Made once, read by all workers. */
static void fft_make(fft *f, int n, real *table)
{
    f->n = n;
    fft_factor(f);
    for (int k = 0; k < n; k++) {
        const double turn = -2.0 * 3.14159265358979323846 * k / n;
        table[k] = (real)cos(turn);
        table[n + k] = (real)sin(turn);
    }
    f->cs = table;
    f->sn = table + n;
}

/* ---- stages: from x to y, length l at stride s; y[q + s(r p + j)] ---- */

typedef struct cv {
    vr re, im;
} cv;

LANE cv cv_turn(cv a, real c, real s) /* a (c + i s) */
{
    const vr vc = v_set(c), vs = v_set(s);
    return (cv){v_fnma(a.im, vs, a.re * vc), v_fma(a.im, vc, a.re * vs)};
}
LANE cv cv_add(cv a, cv b)
{
    return (cv){a.re + b.re, a.im + b.im};
}
LANE cv cv_sub(cv a, cv b)
{
    return (cv){a.re - b.re, a.im - b.im};
}

typedef struct planes {
    const vr *re, *im;
} planes;
typedef struct planes_out {
    vr *re, *im;
} planes_out;

LANE cv at(planes x, int i)
{
    return (cv){x.re[i], x.im[i]};
}
LANE void put(planes_out y, int i, cv a)
{
    y.re[i] = a.re;
    y.im[i] = a.im;
}

static void stage_2(const fft *f, int l, int s, planes x, planes_out y)
{
    const int m = l / 2;
    for (int p = 0; p < m; p++)
        for (int q = 0; q < s; q++) {
            const cv a = at(x, q + s * p), b = at(x, q + s * (p + m));
            put(y, q + s * 2 * p, cv_add(a, b));
            put(y, q + s * (2 * p + 1), cv_turn(cv_sub(a, b), f->cs[p * s], f->sn[p * s]));
        }
}

static void stage_4(const fft *f, int l, int s, planes x, planes_out y)
{
    const int m = l / 4;
    for (int p = 0; p < m; p++) {
        const real c1 = f->cs[p * s], s1 = f->sn[p * s], c2 = f->cs[2 * p * s],
                   s2 = f->sn[2 * p * s], c3 = f->cs[3 * p * s], s3 = f->sn[3 * p * s];
        for (int q = 0; q < s; q++) {
            const cv a = at(x, q + s * p), b = at(x, q + s * (p + m)),
                     c = at(x, q + s * (p + 2 * m)), d = at(x, q + s * (p + 3 * m));
            const cv ac = cv_add(a, c), a_c = cv_sub(a, c), bd = cv_add(b, d), b_d = cv_sub(b, d);
            const int to = q + s * 4 * p;
            put(y, to, cv_add(ac, bd));
            put(y, to + s, cv_turn((cv){a_c.re + b_d.im, a_c.im - b_d.re}, c1, s1));
            put(y, to + 2 * s, cv_turn(cv_sub(ac, bd), c2, s2));
            put(y, to + 3 * s, cv_turn((cv){a_c.re - b_d.im, a_c.im + b_d.re}, c3, s3));
        }
    }
}

static void stage_3(const fft *f, int l, int s, planes x, planes_out y)
{
    const int m = l / 3;
    const real half = R(0.5), root = R(0.86602540378443864676);
    for (int p = 0; p < m; p++)
        for (int q = 0; q < s; q++) {
            const cv a = at(x, q + s * p), b = at(x, q + s * (p + m)),
                     c = at(x, q + s * (p + 2 * m)), sum = cv_add(b, c), dif = cv_sub(b, c);
            const cv mid = {a.re - half * sum.re, a.im - half * sum.im};
            const cv side = {root * dif.im, -root * dif.re};
            const int to = q + s * 3 * p;
            put(y, to, cv_add(a, sum));
            put(y, to + s, cv_turn(cv_add(mid, side), f->cs[p * s], f->sn[p * s]));
            put(y, to + 2 * s, cv_turn(cv_sub(mid, side), f->cs[2 * p * s], f->sn[2 * p * s]));
        }
}

static void stage_5(const fft *f, int l, int s, planes x, planes_out y)
{
    const int m = l / 5;
    const real c1 = R(0.30901699437494742410), c2 = R(-0.80901699437494742410),
               s1 = R(0.95105651629515357212), s2 = R(0.58778525229247312917);
    for (int p = 0; p < m; p++)
        for (int q = 0; q < s; q++) {
            const cv a = at(x, q + s * p), b = at(x, q + s * (p + m)),
                     c = at(x, q + s * (p + 2 * m)), d = at(x, q + s * (p + 3 * m)),
                     e = at(x, q + s * (p + 4 * m));
            const cv be = cv_add(b, e), b_e = cv_sub(b, e), cd = cv_add(c, d), c_d = cv_sub(c, d);
            const cv u = {a.re + c1 * be.re + c2 * cd.re, a.im + c1 * be.im + c2 * cd.im},
                     v = {a.re + c2 * be.re + c1 * cd.re, a.im + c2 * be.im + c1 * cd.im},
                     g = {s1 * b_e.im + s2 * c_d.im, -s1 * b_e.re - s2 * c_d.re},
                     h = {s2 * b_e.im - s1 * c_d.im, -s2 * b_e.re + s1 * c_d.re};
            const int to = q + s * 5 * p, w = p * s;
            put(y, to, cv_add(a, cv_add(be, cd)));
            put(y, to + s, cv_turn(cv_add(u, g), f->cs[w], f->sn[w]));
            put(y, to + 2 * s, cv_turn(cv_add(v, h), f->cs[2 * w], f->sn[2 * w]));
            put(y, to + 3 * s, cv_turn(cv_sub(v, h), f->cs[3 * w], f->sn[3 * w]));
            put(y, to + 4 * s, cv_turn(cv_sub(u, g), f->cs[4 * w], f->sn[4 * w]));
        }
}

/* A prime: the sum as it is written. */
static void stage_prime(const fft *f, int r, int l, int s, planes x, planes_out y)
{
    const int m = l / r, step = f->n / r;
    for (int p = 0; p < m; p++)
        for (int q = 0; q < s; q++)
            for (int j = 0; j < r; j++) {
                cv sum = at(x, q + s * p);
                for (int k = 1; k < r; k++) {
                    const int w = (int)((int64_t)j * k % r) * step;
                    sum = cv_add(sum, cv_turn(at(x, q + s * (p + m * k)), f->cs[w], f->sn[w]));
                }
                put(y, q + s * (r * p + j), cv_turn(sum, f->cs[p * j * s], f->sn[p * j * s]));
            }
}

/* All stages over what lies in the first half of the room; returns where the result is. */
static planes_out fft_stages(const fft *f)
{
    const int n = f->n;
    planes_out from = {f->room, f->room + n}, to = {f->room + 2 * n, f->room + 3 * n};
    int l = n, s = 1;
    for (int i = 0; i < f->stages; i++) {
        const int r = f->radix[i];
        const planes x = {from.re, from.im};
        if (r == 4)
            stage_4(f, l, s, x, to);
        else if (r == 2)
            stage_2(f, l, s, x, to);
        else if (r == 3)
            stage_3(f, l, s, x, to);
        else if (r == 5)
            stage_5(f, l, s, x, to);
        else
            stage_prime(f, r, l, s, x, to);
        const planes_out was = from;
        from = to;
        to = was;
        l /= r;
        s *= r;
    }
    return from;
}

/* ---- turning ---- */

#if LANES == 16
#define FFT_LOW(a, b)                                                                              \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define FFT_HIGH(a, b)                                                                             \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif LANES == 8
#define FFT_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define FFT_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif LANES == 4
#define FFT_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define FFT_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#else
#define FFT_LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define FFT_HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

/* A square of LANES vectors becomes its transpose: each round interleaves the two halves. */
LANE void turn_square(vr v[LANES])
{
    vr w[LANES];
    for (int round = LANES; round > 1; round /= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            w[2 * i] = FFT_LOW(v[i], v[i + LANES / 2]);
            w[2 * i + 1] = FFT_HIGH(v[i], v[i + LANES / 2]);
        }
        for (int i = 0; i < LANES; i++) v[i] = w[i];
    }
}

/* n vectors of `width` columns become rows of `to`. */
static void store_turned(const vr *from, int n, int width, real *to)
{
    for (int r = 0; r < n; r += LANES) {
        vr v[LANES];
        const int k = n - r < LANES ? n - r : LANES;
        for (int i = 0; i < LANES; i++) v[i] = i < k ? from[r + i] : v_set(0);
        turn_square(v);
        for (int i = 0; i < LANES; i++) {
            if (i >= width) break;
            real *row = to + (int64_t)i * n + r;
            if (k == LANES)
                v_store(row, v[i]);
            else
                v_store_some(row, v[i], k);
        }
    }
}

/* to = transpose of the transforms of the columns of `re`, `im`. */
static void fft_pass(const fft *f, const real *re, const real *im, real *to_re, real *to_im)
{
    const int n = f->n;
    for (int c = 0; c < n; c += LANES) {
        const int width = n - c < LANES ? n - c : LANES;
        for (int r = 0; r < n; r++) {
            const int64_t from = (int64_t)r * n + c;
            f->room[r] = width == LANES ? v_load(re + from) : v_load_some(re + from, width);
            f->room[n + r] = width == LANES ? v_load(im + from) : v_load_some(im + from, width);
        }
        const planes_out done = fft_stages(f);
        store_turned(done.re, n, width, to_re + (int64_t)c * n);
        store_turned(done.im, n, width, to_im + (int64_t)c * n);
    }
}

/* The transform of an image, in place; `spare_` has room for another one. */
static void fft_image(const fft *f, real *re, real *im, real *spare_re, real *spare_im)
{
    fft_pass(f, re, im, spare_re, spare_im);
    fft_pass(f, spare_re, spare_im, re, im);
}
static void fft_image_inverse(const fft *f, real *re, real *im, real *spare_re, real *spare_im)
{
    fft_image(f, im, re, spare_im, spare_re);
}

#endif
