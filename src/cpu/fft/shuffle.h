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

/* r[i] lane k <-> r[k] lane i: as many perfect shuffles as the number of lanes has bits. */
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
