/* shuffle.h - vectors of interleaved numbers to vectors of each kind, and squares of rows to
 * columns.
 *
 * No guard: included by lanes_loops.h, after fathom/vector.h.
 */
#if LANES > 1 && (defined(__clang__) || __GNUC__ >= 12)
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#if LANES == 16
#define EVEN(a, b) MIX(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b) MIX(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define LOW(a, b) MIX(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) MIX(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif LANES == 8
#define EVEN(a, b) MIX(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) MIX(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define LOW(a, b) MIX(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) MIX(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif LANES == 4
#define EVEN(a, b) MIX(a, b, 0, 2, 4, 6)
#define ODD(a, b) MIX(a, b, 1, 3, 5, 7)
#define LOW(a, b) MIX(a, b, 0, 4, 1, 5)
#define HIGH(a, b) MIX(a, b, 2, 6, 3, 7)
#else
#define EVEN(a, b) MIX(a, b, 0, 2)
#define ODD(a, b) MIX(a, b, 1, 3)
#define LOW(a, b) MIX(a, b, 0, 2)
#define HIGH(a, b) MIX(a, b, 1, 3)
#endif
LANE vr v_even(vr a, vr b)
{
    return EVEN(a, b);
}
LANE vr v_odd(vr a, vr b)
{
    return ODD(a, b);
}
LANE vr v_low(vr a, vr b)
{
    return LOW(a, b);
}
LANE vr v_high(vr a, vr b)
{
    return HIGH(a, b);
}
#else
LANE vr v_part(vr a, vr b, int from, int step)
{
    real both[2 * LANES], to[LANES];
    v_store(both, a);
    v_store(both + LANES, b);
    for (int i = 0; i < LANES; i++) to[i] = both[from + i * step];
    return v_load(to);
}
LANE vr v_even(vr a, vr b)
{
    return v_part(a, b, 0, 2);
}
LANE vr v_odd(vr a, vr b)
{
    return v_part(a, b, 1, 2);
}
LANE vr v_mixed(vr a, vr b, int from)
{
    real one[LANES], other[LANES], to[LANES];
    v_store(one, a);
    v_store(other, b);
    for (int i = 0; i < LANES; i++) to[i] = (i % 2 ? other : one)[from + i / 2];
    return v_load(to);
}
LANE vr v_low(vr a, vr b)
{
    return v_mixed(a, b, 0);
}
LANE vr v_high(vr a, vr b)
{
    return v_mixed(a, b, LANES / 2);
}
#endif

/* r[i] lane k <-> r[k] lane i. Vectors of 64 bytes first by pairs, and pairs of pairs, inside
 * quarters, which is what their shuffles are fastest at; then the quarters. */
#if LANES * FTH_VECTOR_REAL == 512 && (defined(__clang__) || __GNUC__ >= 12)
#if LANES == 16
#define PAIR(a, b, i)                                                                              \
    MIX(a, b, i, 16 + i, 1 + i, 17 + i, 4 + i, 20 + i, 5 + i, 21 + i, 8 + i, 24 + i, 9 + i,        \
        25 + i, 12 + i, 28 + i, 13 + i, 29 + i)
#define PAIR_OF_PAIRS(a, b, i)                                                                     \
    MIX(a, b, i, 1 + i, 16 + i, 17 + i, 4 + i, 5 + i, 20 + i, 21 + i, 8 + i, 9 + i, 24 + i,        \
        25 + i, 12 + i, 13 + i, 28 + i, 29 + i)
#define QUARTERS(a, b, i)                                                                          \
    MIX(a, b, i, 1 + i, 2 + i, 3 + i, 8 + i, 9 + i, 10 + i, 11 + i, 16 + i, 17 + i, 18 + i,        \
        19 + i, 24 + i, 25 + i, 26 + i, 27 + i)
#else
#define PAIR(a, b, i) MIX(a, b, i, 8 + i, 2 + i, 10 + i, 4 + i, 12 + i, 6 + i, 14 + i)
#define QUARTERS(a, b, i) MIX(a, b, i, 1 + i, 4 + i, 5 + i, 8 + i, 9 + i, 12 + i, 13 + i)
#endif
LANE void transpose(vr r[LANES])
{
    enum { PART = LANES / 4 }; /* numbers of a quarter */
    vr t[LANES];
    for (int i = 0; i < LANES; i += 2) {
        t[i] = PAIR(r[i], r[i + 1], 0);
        t[i + 1] = PAIR(r[i], r[i + 1], PART / 2);
    }
#if LANES == 16
    vr u[LANES];
    for (int i = 0; i < LANES; i += 4)
        for (int k = 0; k < 2; k++) {
            u[i + 2 * k] = PAIR_OF_PAIRS(t[i + k], t[i + 2 + k], 0);
            u[i + 2 * k + 1] = PAIR_OF_PAIRS(t[i + k], t[i + 2 + k], 2);
        }
    for (int i = 0; i < LANES; i++) t[i] = u[i];
#endif
    for (int k = 0; k < PART; k++) {
        const vr a = QUARTERS(t[k], t[k + PART], 0), b = QUARTERS(t[k], t[k + PART], PART),
                 c = QUARTERS(t[k + 2 * PART], t[k + 3 * PART], 0),
                 d = QUARTERS(t[k + 2 * PART], t[k + 3 * PART], PART);
        r[k] = QUARTERS(a, c, 0);
        r[k + PART] = QUARTERS(b, d, 0);
        r[k + 2 * PART] = QUARTERS(a, c, PART);
        r[k + 3 * PART] = QUARTERS(b, d, PART);
    }
}
#else
/* As many perfect shuffles as the number of lanes has bits. */
LANE void transpose(vr r[LANES])
{
    for (int done = 1; done < LANES; done *= 2) {
        vr t[LANES];
        for (int i = 0; i < LANES / 2; i++) {
            t[2 * i] = v_low(r[i], r[i + LANES / 2]);
            t[2 * i + 1] = v_high(r[i], r[i + LANES / 2]);
        }
        for (int i = 0; i < LANES; i++) r[i] = t[i];
    }
}
#endif
