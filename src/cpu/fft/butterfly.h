/* butterfly.h - transforms of a few points in registers; every lane is a row.
 *
 * No guard: included by lanes_loops.h, after fathom/vector.h.
 */
typedef struct cx {
    vr re, im;
} cx;

LANE cx c_add(cx a, cx b)
{
    return (cx){a.re + b.re, a.im + b.im};
}
LANE cx c_sub(cx a, cx b)
{
    return (cx){a.re - b.re, a.im - b.im};
}
/* a - i b and a + i b */
LANE cx c_add_minus_i(cx a, cx b)
{
    return (cx){a.re + b.im, a.im - b.re};
}
LANE cx c_add_i(cx a, cx b)
{
    return (cx){a.re - b.im, a.im + b.re};
}
LANE cx c_mul(cx a, cx w)
{
    return (cx){v_fnma(a.im, w.im, a.re * w.re), v_fma(a.im, w.re, a.re * w.im)};
}
LANE cx c_turn(cx a, const real *w)
{
    return c_mul(a, (cx){v_set(w[0]), v_set(w[1])});
}

LANE void butterfly_2(cx *a)
{
    const cx t = a[0];
    a[0] = c_add(t, a[1]);
    a[1] = c_sub(t, a[1]);
}

LANE void butterfly_4(cx *a)
{
    const cx s = c_add(a[0], a[2]), d = c_sub(a[0], a[2]), t = c_add(a[1], a[3]),
             u = c_sub(a[1], a[3]);
    a[0] = c_add(s, t);
    a[1] = c_add_minus_i(d, u);
    a[2] = c_sub(s, t);
    a[3] = c_add_i(d, u);
}

/* Even points, then odd ones; the odd frequencies are turned by multiples of an eighth. */
LANE void butterfly_8(cx *a)
{
    const vr h = v_set(R(0.70710678118654752440));
    cx e[4] = {a[0], a[2], a[4], a[6]}, o[4] = {a[1], a[3], a[5], a[7]};
    butterfly_4(e);
    butterfly_4(o);
    const cx p = {o[1].re + o[1].im, o[1].im - o[1].re}, q = {o[3].im - o[3].re, o[3].re + o[3].im};
    a[0] = c_add(e[0], o[0]);
    a[4] = c_sub(e[0], o[0]);
    a[2] = c_add_minus_i(e[2], o[2]);
    a[6] = c_add_i(e[2], o[2]);
    a[1] = (cx){v_fma(p.re, h, e[1].re), v_fma(p.im, h, e[1].im)};
    a[5] = (cx){v_fnma(p.re, h, e[1].re), v_fnma(p.im, h, e[1].im)};
    a[3] = (cx){v_fma(q.re, h, e[3].re), v_fnma(q.im, h, e[3].im)};
    a[7] = (cx){v_fnma(q.re, h, e[3].re), v_fma(q.im, h, e[3].im)};
}

/* An odd number of points: sums and differences of points q and n - q, weighted by the cosines and
 * sines of their angles. table[k - 1][q - 1] are those of 2 pi k q / n. */
LANE void butterfly_odd(cx *a, int n, const real *cosine, const real *sine)
{
    cx s[FTH__FFT_RADIX / 2], d[FTH__FFT_RADIX / 2];
    const int half = n / 2;
    const cx first = a[0];
    cx sum = first;
    for (int q = 0; q < half; q++) {
        s[q] = c_add(a[1 + q], a[n - 1 - q]);
        d[q] = c_sub(a[1 + q], a[n - 1 - q]);
        sum = c_add(sum, s[q]);
    }
    a[0] = sum;
    for (int k = 0; k < half; k++) {
        cx even = first, odd;
        const vr c = v_set(cosine[k * half]), w = v_set(sine[k * half]);
        even = (cx){v_fma(s[0].re, c, even.re), v_fma(s[0].im, c, even.im)};
        odd = (cx){d[0].re * w, d[0].im * w};
        for (int q = 1; q < half; q++) {
            const vr cq = v_set(cosine[k * half + q]), wq = v_set(sine[k * half + q]);
            even = (cx){v_fma(s[q].re, cq, even.re), v_fma(s[q].im, cq, even.im)};
            odd = (cx){v_fma(d[q].re, wq, odd.re), v_fma(d[q].im, wq, odd.im)};
        }
        a[1 + k] = c_add_minus_i(even, odd);
        a[n - 1 - k] = c_add_i(even, odd);
    }
}

#define C1_3 R(-0.5)
#define S1_3 R(0.86602540378443864676)
#define C1_5 R(0.30901699437494742410)
#define C2_5 R(-0.80901699437494742410)
#define S1_5 R(0.95105651629515357212)
#define S2_5 R(0.58778525229247312917)
#define C1_7 R(0.62348980185873353053)
#define C2_7 R(-0.22252093395631440429)
#define C3_7 R(-0.90096886790241912624)
#define S1_7 R(0.78183148246802980871)
#define S2_7 R(0.97492791218182360702)
#define S3_7 R(0.43388373911755812048)
static const real cosine_3[] = {C1_3}, sine_3[] = {S1_3};
static const real cosine_5[] = {C1_5, C2_5, C2_5, C1_5}, sine_5[] = {S1_5, S2_5, S2_5, -S1_5};
static const real cosine_7[] = {C1_7, C2_7, C3_7, C2_7, C3_7, C1_7, C3_7, C1_7, C2_7},
                  sine_7[] = {S1_7, S2_7, S3_7, S2_7, -S3_7, -S1_7, S3_7, -S1_7, S2_7};

LANE void butterfly(cx *a, int radix, const real *table)
{
    const int half = radix / 2;
    switch (radix) {
    case 2: butterfly_2(a); break;
    case 3: butterfly_odd(a, 3, cosine_3, sine_3); break;
    case 4: butterfly_4(a); break;
    case 5: butterfly_odd(a, 5, cosine_5, sine_5); break;
    case 7: butterfly_odd(a, 7, cosine_7, sine_7); break;
    case 8: butterfly_8(a); break;
    default: butterfly_odd(a, radix, table, table + half * half);
    }
}
