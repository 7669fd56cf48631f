/* lanes_one.h - lanes.h for one pixel: what a thread of a device is.
 *
 * Included in place of lanes.h: vectors are numbers, conditions are truths, and files written for
 * vectors of pixels become loops of one.
 */
#ifndef BRAGG_OPS_LANES_H
#define BRAGG_OPS_LANES_H

#define LANE static inline BR_BOTH

typedef double real;
#define R(x) x
#define LANES 1
typedef double vr;
typedef bool vm;

LANE vr v_set(real x)
{
    return x;
}
LANE vr v_fma(vr a, vr b, vr c)
{
    return fma(a, b, c);
}
LANE vr v_sqrt(vr a)
{
    return sqrt(a);
}
LANE vr v_rint(vr a)
{
    return rint(a);
}
LANE vr v_rest(vr a)
{
    return a - rint(a);
}
LANE vr v_ceil(vr a)
{
    return ceil(a);
}
LANE vr v_floor(vr a)
{
    return floor(a);
}
LANE vm v_lt(vr a, vr b)
{
    return a < b;
}
LANE vm v_le(vr a, vr b)
{
    return a <= b;
}
LANE vm v_eq(vr a, vr b)
{
    return a == b;
}
LANE vr v_pick(vm m, vr a, vr b)
{
    return m ? a : b;
}
LANE vm m_and(vm a, vm b)
{
    return a && b;
}
LANE vm m_not(vm a)
{
    return !a;
}
LANE uint32_t m_bits(vm a)
{
    return a;
}
LANE vm m_of(uint32_t bits)
{
    return bits & 1;
}
LANE uint32_t m_all(void)
{
    return 1;
}

typedef double va;
LANE va v_wide(vr a)
{
    return a;
}
LANE vr v_load(const real *from)
{
    return *from;
}
LANE void v_store(real *to, vr a)
{
    *to = a;
}

/* a / b to the bit, from y = 1 / b. */
LANE vr v_over(vr a, vr b, vr y)
{
    const vr q = a * y;
    return fma(fma(-q, b, a), y, q);
}

typedef struct four {
    double v[4];
} four;
LANE void four_fma(double a, const four *b, four *sum)
{
    for (int i = 0; i < 4; i++) sum->v[i] = fma(a, b->v[i], sum->v[i]);
}
LANE double four_at(const four *a, int i)
{
    return a->v[i];
}

/* The polynomials of lanes.h. */
LANE vr v_sin_pi_over(vr z)
{
    vr r = -0x1.62626402085bcp-16;
    r = fma(r, z, 0x1.e89ce9fe9c96cp-12);
    r = fma(r, z, -0x1.e30623c3280a5p-8);
    r = fma(r, z, 0x1.50783249cf289p-4);
    r = fma(r, z, -0x1.32d2cce17d329p-1);
    r = fma(r, z, 0x1.466bc67751058p+1);
    r = fma(r, z, -0x1.4abbce625bd5ep+2);
    return fma(r, z, 0x1.921fb54442d18p+1);
}
LANE vr v_cos_pi(vr z)
{
    vr r = 0x1.1679714ca87f5p-18;
    r = fma(r, z, -0x1.b69582d9584dap-14);
    r = fma(r, z, 0x1.f9d2548909183p-10);
    r = fma(r, z, -0x1.a6d1efc968f75p-6);
    r = fma(r, z, 0x1.e1f506813c9e8p-3);
    r = fma(r, z, -0x1.55d3c7e3bfc44p+0);
    r = fma(r, z, 0x1.03c1f081b5993p+2);
    r = fma(r, z, -0x1.3bd3cc9be45dbp+2);
    return fma(r, z, 1.0);
}
LANE vr v_exp(vr x)
{
    return exp(x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x);
}

#endif
