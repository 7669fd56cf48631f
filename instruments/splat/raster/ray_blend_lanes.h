/* ray_blend_lanes.h - a Gaussian at the rays of some pixels, forward and backward: the part of
 * blend_lanes.h that is different where lenses bend straight lines (ray_lanes.h). */

#define LEAST_ALPHA (R(1.0) / 255)

/* A Gaussian, its numbers as vectors, and the pixels of the tile in which it is looked for. */
typedef struct brush {
    vr M[9], m[3], g[3], o, most, colour[3]; /* g = M m */
    vr first, last;                          /* columns of the image */
    int i0, i1;                              /* rows of the tile */
    int j0, j1;                              /* its columns, of whole vectors */
} brush;

static brush brush_of(const lists *l, const pixels *p, const real *s)
{
    const gs_raster *a = l->w->rule;
    const box b = pixels_of(a, s);
    const int64_t x = (int64_t)p->x, y = (int64_t)p->y;
    brush k = {.o = v_set(s[GS_O]), .most = v_set((real)a->most_alpha)};
    for (int c = 0; c < 3; c++) {
        const real *row = s + GS_RAY_M + 3 * c;
        k.m[c] = v_set(s[GS_A + c]);
        k.g[c] = v_set(dot3(row, s + GS_A));
        for (int j = 0; j < 3; j++) k.M[3 * c + j] = v_set(row[j]);
        k.colour[c] = v_set(s[GS_RED + c] > 0 ? s[GS_RED + c] : 0);
    }
    k.first = v_set((real)b.x0);
    k.last = v_set((real)b.x1 - 1);
    k.i0 = (int)(b.y0 > y ? b.y0 - y : 0);
    k.i1 = (int)(b.y1 - y < p->height ? b.y1 - y : p->height);
    k.j0 = (int)(b.x0 > x ? (b.x0 - x) / LANES * LANES : 0);
    k.j1 = (int)(b.x1 - x < p->across ? b.x1 - x : p->across);
    return k;
}

/* Where rays come closest to a Gaussian: e, the way there from its middle, and p, the same where it
 * is a unit ball. A t that is a little wrong moves p along the ray alone, which sigma hardly feels.
 */
LANE void meet(const brush *k, const vr *d, vr *e, vr *p)
{
    vr x[3];
    for (int i = 0; i < 3; i++)
        x[i] = v_fma(k->M[3 * i], d[0], v_fma(k->M[3 * i + 1], d[1], k->M[3 * i + 2] * d[2]));
    const vr along = v_fma(x[0], k->g[0], v_fma(x[1], k->g[1], x[2] * k->g[2])),
             length = v_fma(x[0], x[0], v_fma(x[1], x[1], x[2] * x[2])), t = along / length;
    for (int j = 0; j < 3; j++) e[j] = v_fma(t, d[j], -k->m[j]);
    for (int i = 0; i < 3; i++)
        p[i] = v_fma(k->M[3 * i], e[0], v_fma(k->M[3 * i + 1], e[1], k->M[3 * i + 2] * e[2]));
}

/* Alpha of some pixels, and which of them it is blended into. */
LANE vr ray_alpha(const brush *k, vr column, const vr *p, vm *on)
{
    const vr sigma = v_set(R(0.5)) * v_fma(p[0], p[0], v_fma(p[1], p[1], p[2] * p[2]));
    const vr alpha = v_min(k->o * exp_of_less(v_max(-sigma, v_set(-87))), k->most);
    *on = m_and(m_and(v_le(k->first, column), v_le(column, k->last)),
                v_le(v_set(LEAST_ALPHA), alpha));
    return alpha;
}

LANE void load_rays(const pixels *p, int at, vr *d)
{
    for (int c = 0; c < 3; c++) d[c] = v_load(p->ray[c] + at);
}

static void blend_one(pixels *p, const brush *k, vr lane)
{
    const vr zero = v_set(0), one = v_set(1);
    for (int i = k->i0; i < k->i1; i++)
        for (int j = k->j0; j < k->j1; j += LANES) {
            const int at = i * WIDE + j;
            vr d[3], e[3], q[3];
            vm on;
            load_rays(p, at, d);
            meet(k, d, e, q);
            const vr column = v_set(p->x - R(0.5) + (real)j) + lane,
                     alpha = ray_alpha(k, column, q, &on), T = v_load(p->T + at),
                     left = T * (one - alpha);
            const vm keep = m_and(on, v_le(v_set(LEAST_LIGHT), left));
            const vr w = v_pick(keep, T * alpha, zero);
            for (int c = 0; c < 3; c++)
                v_store(p->C[c] + at, v_fma(w, k->colour[c], v_load(p->C[c] + at)));
            v_store(p->F + at, v_pick(keep, left, v_load(p->F + at)));
            v_store(p->T + at, v_pick(keep, left, v_pick(on, zero, T)));
        }
}

/* ---- backward ---- */

/* Sums over the pixels of a tile. h is -alpha dL/dalpha. */
typedef struct sums {
    vr h, p[3], turn[9], colour[3];
} sums;

static sums no_sums(void)
{
    const vr zero = v_set(0);
    sums s = {.h = zero};
    for (int c = 0; c < 3; c++) s.p[c] = s.colour[c] = zero;
    for (int k = 0; k < 9; k++) s.turn[k] = zero;
    return s;
}

LANE void add_way(sums *s, vr h, const vr *e, const vr *q)
{
    s->h = s->h + h;
    for (int c = 0; c < 3; c++) {
        const vr by = h * q[c];
        s->p[c] = s->p[c] + by;
        for (int k = 0; k < 3; k++) s->turn[3 * c + k] = v_fma(by, e[k], s->turn[3 * c + k]);
    }
}

static void back_one(pixels *p, const brush *k, vr lane, sums *s)
{
    const vr zero = v_set(0), one = v_set(1);
    for (int i = k->i0; i < k->i1; i++)
        for (int j = k->j0; j < k->j1; j += LANES) {
            const int at = i * WIDE + j;
            vr d[3], e[3], q[3], near = zero;
            vm on;
            load_rays(p, at, d);
            meet(k, d, e, q);
            const vr column = v_set(p->x - R(0.5) + (real)j) + lane,
                     alpha = ray_alpha(k, column, q, &on), T = v_load(p->T + at),
                     rest = one - alpha, left = T * rest;
            const vm keep = m_and(on, v_le(v_set(LEAST_LIGHT), left));
            const vr w = v_pick(keep, T * alpha, zero);
            for (int c = 0; c < 3; c++) {
                const vr g = v_load(p->g[c] + at);
                near = v_fma(g, k->colour[c], near);
                s->colour[c] = v_fma(w, g, s->colour[c]);
            }
            const vr behind = v_fma(w, near, v_load(p->q + at)),
                     slope = v_fma(T, near, behind / rest);
            v_store(p->q + at, behind);
            add_way(s, v_pick(keep, -alpha * slope, zero), e, q);
            v_store(p->T + at, v_pick(keep, left, v_pick(on, zero, T)));
        }
}

static void put_sums(const lists *l, const real *splat, const sums *s, real *to)
{
    const real *M = splat + GS_RAY_M;
    const real p[3] = {v_total(s->p[0]), v_total(s->p[1]), v_total(s->p[2])};
    real at[3];
    for (int k = 0; k < 3; k++) at[k] = -FMA(M[k], p[0], FMA(M[3 + k], p[1], M[6 + k] * p[2]));
    ray_back_place(l->w->view, splat, at, to);
    for (int k = 0; k < 3; k++) to[GS_A + k] = at[k];
    to[GS_O] = -v_total(s->h) / splat[GS_O];
    for (int c = 0; c < 3; c++) to[GS_RED + c] = splat[GS_RED + c] >= 0 ? v_total(s->colour[c]) : 0;
    for (int k = 0; k < 9; k++) to[GS_SUMS + k] = v_total(s->turn[k]);
}
