/* rows_64.h - rows of 64 complex numbers that follow each other, from memory to memory within the
 * registers.
 *
 * Eight vectors have the points of a row (of two rows, where there are 16 lanes) as they lie in
 * memory: vector q points 8 q + j, one j in each lane. So the first pass of radix 8 needs no
 * shuffle, squares of 8 by 8 are turned, and the second pass leaves frequencies as they are to be
 * written. Roots and order of all operations are those of the plan, hence the bits. Which lane has
 * which j is left to what splits and joins pairs of numbers with one shuffle.
 *
 * No guard: included by lanes_loops.h, after butterfly.h and shuffle.h.
 */
#if defined(MIX) && LANES >= 8
/* AHEAD: numbers of eight rows, which is where the next ones but some are. */
enum { ROWS = LANES / 8 /* at a time */, AHEAD = 8 * 128 };

#if LANES == 16
static const int lane_point[8] = {0, 1, 2, 3, 4, 5, 6, 7}; /* of lanes 0-3 and 8-11 */
#define SPLIT_RE(a, b) MIX(a, b, 0, 2, 4, 6, 16, 18, 20, 22, 8, 10, 12, 14, 24, 26, 28, 30)
#define SPLIT_IM(a, b) MIX(a, b, 1, 3, 5, 7, 17, 19, 21, 23, 9, 11, 13, 15, 25, 27, 29, 31)
#define JOIN_LOW(a, b) MIX(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27)
#define JOIN_HIGH(a, b) MIX(a, b, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31)
#define ONES_LOW(a, b) MIX(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define ONES_HIGH(a, b) MIX(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define TWOS_LOW(a, b) MIX(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define TWOS_HIGH(a, b) MIX(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define FOURS_LOW(a, b) MIX(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define FOURS_HIGH(a, b) MIX(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#elif FTH_VECTOR_REAL == 32
static const int lane_point[8] = {0, 1, 4, 5, 2, 3, 6, 7};
#define SPLIT_RE(a, b) MIX(a, b, 0, 2, 8, 10, 4, 6, 12, 14)
#define SPLIT_IM(a, b) MIX(a, b, 1, 3, 9, 11, 5, 7, 13, 15)
#define JOIN_LOW(a, b) MIX(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define JOIN_HIGH(a, b) MIX(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define ONES_LOW(a, b) MIX(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define ONES_HIGH(a, b) MIX(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define TWOS_LOW(a, b) MIX(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define TWOS_HIGH(a, b) MIX(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define FOURS_LOW(a, b) MIX(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define FOURS_HIGH(a, b) MIX(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#else
static const int lane_point[8] = {0, 4, 1, 5, 2, 6, 3, 7};
#define SPLIT_RE(a, b) MIX(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define SPLIT_IM(a, b) MIX(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define JOIN_LOW(a, b) MIX(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define JOIN_HIGH(a, b) MIX(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#endif

/* r[i] lane k <-> r[k] lane i, with lanes counted as points are in lane_point of 16 lanes. */
#if FTH_VECTOR_REAL == 32
LANE void turn_square(vr r[8])
{
    vr t[8], u[8];
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        t[i] = ONES_LOW(r[i], r[i + 1]);
        t[i + 1] = ONES_HIGH(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4) UNROLL for (int k = 0; k < 2; k++)
    {
        u[i + 2 * k] = TWOS_LOW(t[i + k], t[i + k + 2]);
        u[i + 2 * k + 1] = TWOS_HIGH(t[i + k], t[i + k + 2]);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        r[i] = FOURS_LOW(u[i], u[i + 4]);
        r[i + 4] = FOURS_HIGH(u[i], u[i + 4]);
    }
}
#else
/* Pairs of lanes first, then 4 by 4 of them. */
LANE void turn_square(vr r[8])
{
    vr t[8];
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        t[i] = SPLIT_RE(r[i], r[i + 1]);
        t[i + 1] = SPLIT_IM(r[i], r[i + 1]);
    }
    UNROLL for (int k = 0; k < 2; k++)
    {
        const vr a = MIX(t[k], t[k + 2], 0, 1, 2, 3, 8, 9, 10, 11),
                 b = MIX(t[k], t[k + 2], 4, 5, 6, 7, 12, 13, 14, 15),
                 c = MIX(t[k + 4], t[k + 6], 0, 1, 2, 3, 8, 9, 10, 11),
                 d = MIX(t[k + 4], t[k + 6], 4, 5, 6, 7, 12, 13, 14, 15);
        r[k] = MIX(a, c, 0, 1, 4, 5, 8, 9, 12, 13);
        r[k + 2] = MIX(a, c, 2, 3, 6, 7, 10, 11, 14, 15);
        r[k + 4] = MIX(b, d, 0, 1, 4, 5, 8, 9, 12, 13);
        r[k + 6] = MIX(b, d, 2, 3, 6, 7, 10, 11, 14, 15);
    }
}
#endif

LANE void turn_points(cx a[8])
{
    vr re[8], im[8];
    UNROLL for (int l = 0; l < 8; l++)
    {
        re[l] = a[lane_point[l]].re;
        im[l] = a[lane_point[l]].im;
    }
    turn_square(re);
    turn_square(im);
    UNROLL for (int l = 0; l < 8; l++) a[lane_point[l]] = (cx){re[l], im[l]};
}

/* Roots of the first pass: for each q the vector of real parts, then that of imaginary parts. */
static void row_turns(const fth__fft_plan *plan, void *to)
{
    const real *from = plan->pass[0].turns;
    real *w = to;
    for (int q = 1; q < 8; q++)
        for (int l = 0; l < LANES; l++) {
            const int j = lane_point[LANES == 16 ? l % 4 + l / 8 * 4 : l];
            w[(q - 1) * POINT + l] = from[2 * (j * 7 + q - 1)];
            w[(q - 1) * POINT + LANES + l] = from[2 * (j * 7 + q - 1) + 1];
        }
}

/* What is read and written some rows later: without it half of the time goes by waiting for
 * memory. Into the second cache: with a first one of 32 KiB it takes 0.70 of the time that it took
 * when this went there. Vectors of less than a line of cache are two halves of one. */
LANE void prefetch(const real *one, const real *other)
{
    __builtin_prefetch(one + AHEAD, 0, 2);
    if (LANES * sizeof(real) >= 64) __builtin_prefetch(other + AHEAD, 0, 2);
}

/* Vectors of 16 real numbers of a row, or of each of two. */
LANE void rows_some(const real *from, const real *next_from, real *to, real *next_to, const real *w,
                    bool swap_in, bool swap_out, vr scale)
{
    cx a[8];
    UNROLL for (int q = 0; q < 8; q++)
    {
        const real *one = from + 16 * q, *other = LANES == 16 ? next_from + 16 * q : one + LANES;
        prefetch(one, other);
        const vr x = v_load(one), y = v_load(other);
        const vr re = SPLIT_RE(x, y), im = SPLIT_IM(x, y);
        a[q] = swap_in ? (cx){im, re} : (cx){re, im};
    }
    butterfly_8(a);
    UNROLL for (int q = 1; q < 8; q++) a[q] = c_mul(a[q], c_load(w + (q - 1) * POINT));
    turn_points(a);
    butterfly_8(a);
    UNROLL for (int k = 0; k < 8; k++)
    {
        const vr re = a[k].re * scale, im = a[k].im * scale, first = swap_out ? im : re,
                 second = swap_out ? re : im;
        real *one = to + 16 * k, *other = LANES == 16 ? next_to + 16 * k : one + LANES;
        prefetch(one, other);
        v_store(one, JOIN_LOW(first, second));
        v_store(other, JOIN_HIGH(first, second));
    }
}

static void rows(const void *turns, const fth__fft_rows *from, const fth__fft_rows *to,
                 double scale)
{
    const vr by = v_set((real)scale);
    const real *in = from->data;
    real *out = to->data;
    real unwanted[128];
    for (int64_t r = 0; r < from->rows; r += ROWS) {
        const bool both = r + 1 < from->rows;
        const real *a = in + r * 2 * from->row, *b = both ? a + 2 * from->row : a;
        real *c = out + r * 2 * to->row, *d = both ? c + 2 * to->row : unwanted;
        if (from->swapped)
            rows_some(a, b, c, d, turns, true, true, by);
        else
            rows_some(a, b, c, d, turns, false, false, by);
    }
}
#define ROWS_64 row_turns, rows
#else
#define ROWS_64 NULL, NULL
#endif
