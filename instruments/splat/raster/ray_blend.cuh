/* ray_blend.cuh - a Gaussian at the ray of a pixel, on a device: the part of blend.cuh that is
 * different where lenses bend straight lines (ray_lanes.h). Part of ray_*.cu. */

#define LEAST_ALPHA (R(1.0) / 255)

/* Numbers of a splat that pixels need: all, as they lie. */
enum { BRUSH_NUMBERS = GS_RAY_SPLAT, BRUSH_LOADS = 8, RESIDENT = 3, RESIDENT_BACK = 2 };

/* What pixels need of a Gaussian, in shared memory; x0 to y1 are the pixels in which it is looked
 * for. */
struct __align__(16) brush
{
    real M[9], m[3], g[3]; /* g = M m */
    real o, colour[3];     /* -0 where a colour is negative, which is black */
    real x0, x1, y0, y1;
    real z;
};

/* Where a pixel is and where it looks. */
struct gaze {
    int x, y;
    real d[3];
};

/* False: no light comes from there. */
__device__ inline bool gaze_of(const tile_lists &l, const pixel &p, gaze *to)
{
    to->x = p.x;
    to->y = p.y;
    return ray_or_axis(l.view, (real)p.x + R(0.5), (real)p.y + R(0.5), to->d);
}

__device__ inline int column_of(int c)
{
    return c;
}

__device__ inline brush brush_of(const tile_lists &l, const real raw[BRUSH_NUMBERS])
{
    const box b = pixels_of(&l.rule, raw);
    brush k;
    for (int c = 0; c < 9; c++) k.M[c] = raw[GS_RAY_M + c];
    for (int c = 0; c < 3; c++) {
        k.m[c] = raw[GS_A + c];
        k.g[c] = dot3(raw + GS_RAY_M + 3 * c, raw + GS_A);
        k.colour[c] = raw[GS_RED + c] >= 0 ? raw[GS_RED + c] + 0 : -R(0.0);
    }
    k.o = raw[GS_O];
    k.x0 = (real)b.x0;
    k.x1 = (real)b.x1;
    k.y0 = (real)b.y0;
    k.y1 = (real)b.y1;
    k.z = raw[GS_Z];
    return k;
}

/* Is a pixel of the warp's patch, which begins at (left, top), in the box? */
__device__ inline bool may_see(const brush &k, real left, real top)
{
    return k.x0 < left + (real)PATCH_WIDE && k.x1 > left && k.y0 < top + (real)PATCH_HIGH &&
           k.y1 > top;
}

/* Where a ray comes closest to a Gaussian, as meet of ray_blend_lanes.h. */
__device__ inline void meet(const brush &k, const real d[3], real e[3], real p[3])
{
    real x[3];
    for (int i = 0; i < 3; i++)
        x[i] = FMA(k.M[3 * i], d[0], FMA(k.M[3 * i + 1], d[1], k.M[3 * i + 2] * d[2]));
    const real t = dot3(x, k.g) / dot3(x, x);
    for (int j = 0; j < 3; j++) e[j] = FMA(t, d[j], -k.m[j]);
    for (int i = 0; i < 3; i++)
        p[i] = FMA(k.M[3 * i], e[0], FMA(k.M[3 * i + 1], e[1], k.M[3 * i + 2] * e[2]));
}

/* A Gaussian at a pixel: alpha, and whether it is blended where there is light. */
__device__ inline real alpha_at(const brush &k, real most, const gaze &at, bool *on)
{
    real e[3], p[3];
    meet(k, at.d, e, p);
    const real less = -R(0.5) * dot3(p, p);
    const real made = k.o * exp_of_less(less < -87 ? -87 : less), alpha = made < most ? made : most,
               x = (real)at.x, y = (real)at.y;
    *on = alpha >= LEAST_ALPHA && x >= k.x0 && x < k.x1 && y >= k.y0 && y < k.y1;
    return alpha;
}
