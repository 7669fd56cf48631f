/* ray_back.cuh - sums over pixels of a Gaussian that rays see, on a device: the part of
 * blend_back.cuh that is different where lenses bend straight lines. Part of ray_*.cu. */

enum { GROUP = 32, BATCH = 8 };

/* What the sums of a patch need of its pixels. */
struct __align__(16) seen_by
{
    real d[3], none;
};

__device__ inline seen_by seen_from(const gaze &at)
{
    seen_by s;
    for (int c = 0; c < 3; c++) s.d[c] = at.d[c];
    s.none = 0;
    return s;
}

/* The sums of one Gaussian over N pixels of a patch from `from` on. */
template <int N>
__device__ inline void add_pixels(const tile_lists &l, const brush &k, const real *weight,
                                  const real *slope, const shade *bar, const seen_by *from_there,
                                  real left, real top, int from, real out[SUMS])
{
    real h = 0, by[3] = {0, 0, 0}, turn[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0}, colour[3] = {0, 0, 0};
    (void)left, (void)top;
#pragma unroll 2
    for (int r = from; r < from + N; r++) {
        const shade g = bar[r];
        const seen_by at = from_there[r];
        const real w = weight[r], s = slope[r];
        real e[3], p[3];
        for (int c = 0; c < 3; c++) colour[c] = FMA(w, g.at[c], colour[c]);
        if (!(s != 0)) continue;
        meet(k, at.d, e, p);
        h += s;
        for (int i = 0; i < 3; i++) {
            const real q = s * p[i];
            by[i] += q;
            for (int j = 0; j < 3; j++) turn[3 * i + j] = FMA(q, e[j], turn[3 * i + j]);
        }
    }
    real at[3], row[GS_SPLAT];
    for (int j = 0; j < 3; j++)
        at[j] = -FMA(k.M[j], by[0], FMA(k.M[3 + j], by[1], k.M[6 + j] * by[2]));
    row[GS_Z] = k.z;
    ray_back_place(l.view, row, at, out);
    for (int j = 0; j < 3; j++) out[GS_A + j] = at[j];
    out[GS_O] = -h / k.o;
    for (int c = 0; c < 3; c++) out[GS_RED + c] = is_negative(k.colour[c]) ? 0 : colour[c];
    for (int j = 0; j < 9; j++) out[GS_SUMS + j] = turn[j];
}
