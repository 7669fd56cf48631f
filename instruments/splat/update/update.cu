/* update.cu - gs_update on a device: a block of threads has some rows, each thread the gradient of
 * one.
 *
 * Gradients are left in shared memory in the order of the arrays, so that Adam then goes through
 * values and moments side by side, four numbers at a time, whatever a row has of them. Coefficients
 * of rows that are seen are brought together for the part of the gradient that needs them, and
 * their gradients take their place.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

#define FTH_ISA_LEVEL 0 /* a vector is one number */
#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>

#include "../raster/scalars.h"

#include "../raster/ray_lanes.h"

#define GS_BOTH __host__ __device__
extern "C" {
#include "loops.h"
}

namespace
{

enum {
    ROWS = 128,
    AT_ONCE = 3, /* numbers, or four, that a thread has under way */
    REST = 3 * GS_COEFFICIENTS,
    SMALL = 14,
    RESIDENT = 6 /* blocks of a multiprocessor: 10 M rows took 4.5 ms on an H200, with four 5.0 */
};

/* Where the gradients of a part begin in shared memory: those of all rows of the block, in order.
 */
__device__ constexpr int gradient_at[GS_UPDATE_PARTS] = {
    REST * ROWS, (REST + 3) * ROWS, (REST + 6) * ROWS, (REST + 9) * ROWS, (REST + 13) * ROWS, 0};
__device__ constexpr int width_of[GS_IN_PARTS] = {3, 3, 3, 4, 1};
__device__ constexpr int attribute_of[GS_UPDATE_PARTS] = {GS_MEANS,    GS_SH_0,    GS_SCALING,
                                                          GS_ROTATION, GS_OPACITY, GS_SH_N};

/* Numbers of a row go in threes: coefficients lie `k` apart, and parts without any as if they did.
 */
struct arrays {
    const float *in[GS_UPDATE_KINDS];
    float *out[GS_UPDATE_KINDS];
    int64_t in_step[GS_UPDATE_KINDS], out_step[GS_UPDATE_KINDS];
    int64_t in_k[GS_UPDATE_KINDS], out_k[GS_UPDATE_KINDS];
};

struct update {
    gs_raster rule;
    const float *view, *splats, *bar, *rates;
    int64_t splats_step, bar_step, n;
    int degree, coefficients;
    arrays part[GS_UPDATE_PARTS];
    const float *sums_in;
    float *sums_out;
    int64_t sums_in_step, sums_out_step;
    const double *normals;
    int64_t normals_step;
    const float *aim;
    int64_t aim_step;
    bool dense; /* rows lie one behind the other, and begin at 16 bytes */
};

__device__ inline int64_t place(int64_t row, int c, int64_t step, int64_t k)
{
    return row * step + c / 3 * k + c % 3;
}

/* ---- the gradient of a row ---- */

/* Coefficients of the block's rows that are seen, up to the degree in use; all others become 0. */
__device__ inline void bring_rest(const update &u, int64_t first, int rows, int n,
                                  const bool *is_seen, float *rest)
{
    const arrays &a = u.part[GS_UPDATE_REST];
    for (int e = (int)threadIdx.x; e < rows * u.coefficients; e += ROWS) {
        const int row = e / u.coefficients, k = e - row * u.coefficients;
        rest[e] =
            is_seen[row] && k < n ? a.in[0][place(first + row, k, a.in_step[0], a.in_k[0])] : 0.0f;
    }
}

/* The same of a whole block of dense rows: a thread has all it reads under way at once. */
template <int COEFFICIENTS>
__device__ inline void bring_rest_at_once(const update &u, int64_t first, int n,
                                          const bool *is_seen, float *rest)
{
    enum { ALL = COEFFICIENTS * ROWS / 4, TURNS = (ALL + ROWS - 1) / ROWS };
    const float4 *from = (const float4 *)(u.part[GS_UPDATE_REST].in[0] + first * COEFFICIENTS);
    float4 x[TURNS];
#pragma unroll
    for (int j = 0; j < TURNS; j++) {
        const int e = j * ROWS + (int)threadIdx.x;
        if (e < ALL) x[j] = from[e];
    }
#pragma unroll
    for (int j = 0; j < TURNS; j++) {
        const int e = j * ROWS + (int)threadIdx.x;
        if (e >= ALL) continue;
        float v[4] = {x[j].x, x[j].y, x[j].z, x[j].w};
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int row = (4 * e + c) / COEFFICIENTS, k = (4 * e + c) - row * COEFFICIENTS;
            if (!is_seen[row] || k >= n) v[c] = 0.0f;
        }
        ((float4 *)rest)[e] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

__device__ inline void bring(const update &u, int64_t first, int rows, int n, const bool *is_seen,
                             float *rest)
{
    const bool at_once = u.dense && rows == ROWS;
    if (at_once && u.coefficients == REST)
        bring_rest_at_once<REST>(u, first, n, is_seen, rest);
    else if (at_once && u.coefficients == 24)
        bring_rest_at_once<24>(u, first, n, is_seen, rest);
    else
        bring_rest(u, first, rows, n, is_seen, rest);
}

/* Numbers of a row. */
__device__ inline void read_row(const arrays &a, int64_t i, int n, float *to)
{
    for (int k = 0; k < n; k++) to[k] = a.in[0][i * a.in_step[0] + k];
}

template <int DEGREE>
__device__ inline void colour_back(const update &u, const float mean[3], const float *col,
                                   float *rest, float *to_mean, float *to_sh0)
{
    back_colour(DEGREE, u.view, mean, rest, 3, col, to_mean, to_sh0, rest, 3);
}

struct row_gradient {
    bars to;
    float sh0[3], logit;
};

/* How Gaussians come to the image: one kernel for each, so that none pays for another. */
enum sight { PLAIN, ANTIALIASED, RAYS };

/* From the cotangents of its shape and opacity; false: it is not seen. */
template <sight SIGHT>
__device__ inline bool shape_back(const update &u, int64_t i, const float *mean,
                                  const float *scaling, const float *q, float opacity,
                                  const float *bar, row_gradient &g)
{
    if constexpr (SIGHT == RAYS) {
        ray_seen at;
        if (!ray_look(u.view, mean, scaling, q, opacity, &at)) return false;
        ray_back_shape(u.view, q, &at, bar, &g.to);
        g.logit = ray_back_opacity(&at, u.splats[i * u.splats_step + GS_O], bar);
    } else {
        seen at;
        gs_raster rule = u.rule;
        rule.antialias = SIGHT == ANTIALIASED;
        if (!look(&rule, u.view, mean, scaling, q, opacity, &at)) return false;
        back_shape(u.view, q, &at, bar, &g.to);
        g.logit = back_opacity(&at, bar);
    }
    return true;
}

/* From the cotangents of a row that is seen; its gradients of coefficients go to `rest`. */
template <sight SIGHT>
__device__ inline bool row_back(const update &u, int degree, int64_t i, const float *scaling,
                                float opacity, float *rest, row_gradient &g)
{
    constexpr int WIDE = SIGHT == RAYS ? (int)GS_RAY_SPLAT : GS_RED + 3;
    float bar[WIDE], mean[3], q[4];
    read_row(u.part[GS_IN_MEANS], i, 3, mean);
    read_row(u.part[GS_IN_ROTATION], i, 4, q);
    for (int k = 0; k < WIDE; k++) bar[k] = u.bar[i * u.bar_step + k];
    if (!shape_back<SIGHT>(u, i, mean, scaling, q, opacity, bar, g)) return false;
    switch (degree) {
    case 0: colour_back<0>(u, mean, bar + GS_RED, rest, g.to.mean, g.sh0); break;
    case 1: colour_back<1>(u, mean, bar + GS_RED, rest, g.to.mean, g.sh0); break;
    case 2: colour_back<2>(u, mean, bar + GS_RED, rest, g.to.mean, g.sh0); break;
    default: colour_back<3>(u, mean, bar + GS_RED, rest, g.to.mean, g.sh0); break;
    }
    return true;
}

__device__ inline void add_regularisers(const update &u, int64_t i, const float *scaling,
                                        float opacity, row_gradient &g)
{
    const float by_scale = u.rates[GS_RATE_SCALING], by_opacity = u.rates[GS_RATE_OPACITY];
    if (by_scale > 0)
        for (int k = 0; k < 3; k++) g.to.scaling[k] += by_scale * EXP(scaling[k]);
    if (by_opacity > 0) {
        const float o = 1 / (1 + EXP(-opacity));
        g.logit += by_opacity * (o * (1 - o));
    }
    if (u.aim) {
        const float o = 1 / (1 + EXP(-opacity)), aim = u.aim[i * u.aim_step];
        g.logit += u.rates[GS_RATE_SPARSITY] * (o - aim) * (o * (1 - o));
    }
}

__device__ inline void put_gradient(float *shared, int row, const row_gradient &g)
{
    for (int k = 0; k < 3; k++) {
        shared[gradient_at[GS_IN_MEANS] + 3 * row + k] = g.to.mean[k];
        shared[gradient_at[GS_IN_SH0] + 3 * row + k] = g.sh0[k];
        shared[gradient_at[GS_IN_SCALING] + 3 * row + k] = g.to.scaling[k];
    }
    for (int k = 0; k < 4; k++) shared[gradient_at[GS_IN_ROTATION] + 4 * row + k] = g.to.q[k];
    shared[gradient_at[GS_IN_OPACITY] + row] = g.logit;
}

__device__ inline void add_sums(const update &u, int64_t i, bool is_seen)
{
    if (!u.sums_out) return;
    const float x = u.bar[i * u.bar_step + GS_U] * ((float)u.rule.width / 2),
                y = u.bar[i * u.bar_step + GS_V] * ((float)u.rule.height / 2);
    const float *old = u.sums_in + i * u.sums_in_step;
    float *now = u.sums_out + i * u.sums_out_step;
    if (!is_seen && old == now) return;
    const float count = old[0], sum = old[1];
    now[0] = is_seen ? count + 1 : count;
    now[1] = is_seen ? sum + sqrtf(fmaf(x, x, y * y)) : sum;
}

/* The mean of a row after noise, by the row as it was. */
__device__ inline void shake(const update &u, int64_t i, const float *scaling, float opacity,
                             float *moved)
{
    float q[4];
    double by[3] = {0, 0, 0}, e[3];
    read_row(u.part[GS_IN_MEANS], i, 3, moved);
    read_row(u.part[GS_IN_ROTATION], i, 4, q);
    for (int k = 0; k < 3; k++) e[k] = u.normals[i * u.normals_step + k];
    if (!gs_noise_of(scaling, q, opacity, (double)u.rates[GS_RATE_NOISE], e, by)) return;
    for (int k = 0; k < 3; k++) moved[k] = (float)((double)moved[k] + by[k]);
}

/* ---- Adam ---- */

struct numbers {
    float step, root;
};

__device__ inline void adam(const numbers &r, float g, float &p, float &m, float &v)
{
    const float b1 = (float)GS_BETA1, c1 = (float)(1.0 - GS_BETA1), b2 = (float)GS_BETA2,
                c2 = (float)(1.0 - GS_BETA2), eps = (float)GS_EPSILON;
    m = b1 * m + c1 * g;
    v = b2 * v + c2 * (g * g);
    p -= m * r.step / (sqrtf(v) * r.root + eps);
}

__device__ inline void adam(const numbers &r, const float4 &g, float4 &p, float4 &m, float4 &v)
{
    adam(r, g.x, p.x, m.x, v.x);
    adam(r, g.y, p.y, m.y, v.y);
    adam(r, g.z, p.z, m.z, v.z);
    adam(r, g.w, p.w, m.w, v.w);
}

/* `n` vectors of a part from `first` on; several are under way at once. */
template <typename vector>
__device__ inline void step_span(const arrays &a, const numbers &r, int64_t first, int n,
                                 const float *gradient)
{
    const vector *g = (const vector *)gradient;
    for (int from = 0; from < n; from += AT_ONCE * ROWS) {
        vector x[GS_UPDATE_KINDS][AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int e = from + j * ROWS + (int)threadIdx.x;
            if (e < n)
#pragma unroll
                for (int k = 0; k < GS_UPDATE_KINDS; k++)
                    x[k][j] = __ldcs((const vector *)a.in[k] + first + e);
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int e = from + j * ROWS + (int)threadIdx.x;
            if (e >= n) continue;
            adam(r, g[e], x[0][j], x[1][j], x[2][j]);
#pragma unroll
            for (int k = 0; k < GS_UPDATE_KINDS; k++)
                if (a.out[k]) __stcs((vector *)a.out[k] + first + e, x[k][j]);
        }
    }
}

/* Rows that lie anywhere, or stay as they are; `value`, if there is one, instead of theirs. */
__device__ inline void step_rows(const arrays &a, const numbers &r, bool on, int64_t first,
                                 int rows, int width, const float *value, const float *gradient)
{
    for (int e = (int)threadIdx.x; e < rows * width; e += ROWS) {
        const int row = e / width, c = e - row * width;
        float x[GS_UPDATE_KINDS];
        for (int k = 0; k < GS_UPDATE_KINDS; k++)
            x[k] = a.in[k][place(first + row, c, a.in_step[k], a.in_k[k])];
        if (value) x[0] = value[e];
        if (on) adam(r, gradient[e], x[0], x[1], x[2]);
        for (int k = 0; k < GS_UPDATE_KINDS; k++)
            if (a.out[k]) a.out[k][place(first + row, c, a.out_step[k], a.out_k[k])] = x[k];
    }
}

__device__ inline bool is_in_place(const arrays &a)
{
    bool same = true;
    for (int k = 0; k < GS_UPDATE_KINDS; k++) same = same && (!a.out[k] || a.out[k] == a.in[k]);
    return same;
}

__device__ inline void step_part(const update &u, int part, int width, int64_t first, int rows,
                                 const float *value, const float *shared)
{
    const int a = attribute_of[part], n = rows * width;
    const numbers r = {u.rates[GS_RATE_STEP + a], u.rates[GS_RATE_ROOT + a]};
    const bool on = u.rates[GS_RATE_ON + a] > 0;
    const float *gradient = shared + gradient_at[part];
    if (!on && !value && is_in_place(u.part[part])) return;
    if (on && !value && u.dense && n % 4 == 0)
        step_span<float4>(u.part[part], r, first * width / 4, n / 4, gradient);
    else
        step_rows(u.part[part], r, on, first, rows, width, value, gradient);
}

/* ---- all parts but shN, of a whole block of dense rows ---- */

/* Which part a vector of four belongs to, when those of all parts are counted in order. */
struct piece {
    int part, at; /* number in the part; part GS_IN_PARTS: there is none */
};

__device__ inline piece piece_of(int e)
{
    const int threes = 3 * ROWS / 4;
    if (e < 3 * threes) {
        const int which = e / threes;
        const int part = which == 0   ? (int)GS_IN_MEANS
                         : which == 1 ? (int)GS_IN_SH0
                                      : (int)GS_IN_SCALING;
        return {part, e - which * threes};
    }
    e -= 3 * threes;
    if (e < ROWS) return {GS_IN_ROTATION, e};
    e -= ROWS;
    return {e < ROWS / 4 ? (int)GS_IN_OPACITY : (int)GS_IN_PARTS, e};
}

/* Parts that are on and not replaced; the others were done before. */
__device__ inline void step_small(const update &u, int64_t first, unsigned parts,
                                  const float *shared)
{
    enum { TURNS = (SMALL * ROWS / 4 + ROWS - 1) / ROWS };
    float4 x[GS_UPDATE_KINDS][TURNS];
    piece at[TURNS];
#pragma unroll
    for (int j = 0; j < TURNS; j++) {
        at[j] = piece_of(j * ROWS + (int)threadIdx.x);
        if (at[j].part == GS_IN_PARTS || !(parts >> at[j].part & 1)) {
            at[j].part = GS_IN_PARTS;
            continue;
        }
        const arrays &a = u.part[at[j].part];
        const int64_t e = first * width_of[at[j].part] / 4 + at[j].at;
#pragma unroll
        for (int k = 0; k < GS_UPDATE_KINDS; k++) x[k][j] = __ldcs((const float4 *)a.in[k] + e);
    }
#pragma unroll
    for (int j = 0; j < TURNS; j++) {
        const int part = at[j].part;
        if (part == GS_IN_PARTS) continue;
        const arrays &a = u.part[part];
        const int of = attribute_of[part];
        const numbers r = {u.rates[GS_RATE_STEP + of], u.rates[GS_RATE_ROOT + of]};
        const int64_t e = first * width_of[part] / 4 + at[j].at;
        adam(r, ((const float4 *)(shared + gradient_at[part]))[at[j].at], x[0][j], x[1][j],
             x[2][j]);
#pragma unroll
        for (int k = 0; k < GS_UPDATE_KINDS; k++)
            if (a.out[k]) __stcs((float4 *)a.out[k] + e, x[k][j]);
    }
}

/* All parts but shN. */
__device__ inline void step_parts(const update &u, int64_t first, int rows, const float *moved,
                                  const float *shared)
{
    unsigned at_once = 0;
    for (int p = 0; p < GS_IN_PARTS; p++) {
        const float *value = p == GS_IN_MEANS ? moved : NULL;
        if (u.dense && rows == ROWS && !value && u.rates[GS_RATE_ON + attribute_of[p]] > 0)
            at_once |= 1u << p;
        else
            step_part(u, p, width_of[p], first, rows, value, shared);
    }
    if (at_once) step_small(u, first, at_once, shared);
}

template <sight SIGHT>
__global__ void __launch_bounds__(ROWS, RESIDENT) update_rows(const update __grid_constant__ u)
{
    __shared__ __align__(16) float shared[(REST + SMALL) * ROWS], moved[3 * ROWS];
    __shared__ bool is_seen[ROWS];
    const int64_t first = (int64_t)blockIdx.x * ROWS, i = first + threadIdx.x;
    const int rows = u.n - first < ROWS ? (int)(u.n - first) : ROWS, row = (int)threadIdx.x;
    const int wanted = (int)u.view[GS_VIEW_DEGREE], degree = wanted < u.degree ? wanted : u.degree,
              n = 3 * ((degree + 1) * (degree + 1) - 1);
    const bool shakes = u.normals && u.rates[GS_RATE_NOISE] > 0;
    const bool mine = row < rows && u.splats[i * u.splats_step + GS_TILES] > 0;
    is_seen[row] = mine;
    __syncthreads();
    if (u.degree > 0) bring(u, first, rows, n, is_seen, shared);
    __syncthreads();
    if (row < rows) {
        row_gradient g = {};
        float scaling[3], *rest = shared + row * u.coefficients;
        float opacity;
        read_row(u.part[GS_IN_OPACITY], i, 1, &opacity);
        read_row(u.part[GS_IN_SCALING], i, 3, scaling);
        if (mine && !row_back<SIGHT>(u, degree, i, scaling, opacity, rest, g)) {
            g = row_gradient{};
            for (int k = 0; k < u.coefficients; k++) rest[k] = 0.0f;
        }
        add_regularisers(u, i, scaling, opacity, g);
        put_gradient(shared, row, g);
        add_sums(u, i, mine);
        if (shakes) shake(u, i, scaling, opacity, moved + 3 * row);
    }
    __syncthreads();
    if (u.degree > 0) step_part(u, GS_UPDATE_REST, u.coefficients, first, rows, NULL, shared);
    step_parts(u, first, rows, shakes ? moved : NULL, shared);
}

/* ---- calls ---- */

bool is_wide(const void *at)
{
    return (uintptr_t)at % sizeof(float4) == 0;
}

void take_part(const gs_update_work &w, int part, int width, update *u)
{
    const bool rest = part == GS_UPDATE_REST;
    for (int k = 0; k < GS_UPDATE_KINDS; k++) {
        const gs_update_array &a = w.array[k][part];
        arrays &to = u->part[part];
        to.in[k] = (const float *)a.in;
        to.out[k] = (float *)a.out;
        to.in_step[k] = a.in_step;
        to.out_step[k] = a.out_step;
        to.in_k[k] = rest ? a.in_k : 3;
        to.out_k[k] = rest ? a.out_k : 3;
        u->dense = u->dense && a.in_step == width && to.in_k[k] == 3 && is_wide(a.in) &&
                   (!a.out || (a.out_step == width && to.out_k[k] == 3 && is_wide(a.out)));
    }
}

fth_status run(const fth_call *call)
{
    gs_update_work w;
    gs_update_work_of(call, &w);
    update u = {};
    u.rule = *w.rule;
    u.view = (const float *)w.view;
    u.rates = (const float *)w.rates;
    u.splats = (const float *)w.splats;
    u.splats_step = w.splats_step;
    u.bar = (const float *)w.bar;
    u.bar_step = w.bar_step;
    u.n = w.n;
    u.degree = w.degree;
    u.coefficients = (int)(3 * gs_coefficients(w.degree));
    u.dense = true;
    for (int p = 0; p < GS_IN_PARTS; p++) take_part(w, p, gs_update_width[p], &u);
    if (w.degree > 0) take_part(w, GS_UPDATE_REST, u.coefficients, &u);
    u.sums_in = (const float *)w.densify.in;
    u.sums_out = (float *)w.densify.out;
    u.sums_in_step = w.densify.in_step;
    u.sums_out_step = w.densify.out_step;
    u.normals = w.normals;
    u.normals_step = w.normals_step;
    u.aim = (const float *)w.aim;
    u.aim_step = w.aim_step;
    if (u.n == 0) return FTH_OK;
    const unsigned blocks = (unsigned)((u.n + ROWS - 1) / ROWS);
    if (u.rule.rays)
        FTH_LAUNCH(update_rows<RAYS>, blocks, ROWS, fth_cuda_stream(call), u);
    else if (u.rule.antialias)
        FTH_LAUNCH(update_rows<ANTIALIASED>, blocks, ROWS, fth_cuda_stream(call), u);
    else
        FTH_LAUNCH(update_rows<PLAIN>, blocks, ROWS, fth_cuda_stream(call), u);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

bool supports(const fth_node *node)
{
    return node->in[0].dtype == FTH_F32;
}

} // namespace

FTH_CUDA_KERNEL(splat_update) = {.op = "splat_update", .supports = supports, .run = run};
