/* splat_atomic.cu - what it costs to add cotangents in one order: our kernel that blends back with
 * the sum of its slots, beside the same kernel with float atomics, by patches and by tiles.
 *
 * A program of its own, because the library has no float atomics (the target splat_atomic):
 *   splat_atomic [MILLIONS ..]     kernels' milliseconds, best of 20, on the scene of splat_scene.h
 * The atomic sums are checked against ours, to what rounding in another order may change.
 */
#include "instruments/splat/raster/raster_f32.cu"

#include "splat_scene.h"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

namespace
{

enum how { BY_PATCH, BY_TILE };

__device__ inline real *row_of_slot(const tile_lists &l, real *bar, int64_t step, uint32_t slot)
{
    return bar + (int64_t)l.owner[slot] * step;
}

/* walk_hits of blend_back.cuh; the sums of a patch go to the Gaussian at once. */
template <int TILE>
__device__ inline void walk_hits_atomic(back_shared<TILE> &s, const tile_lists &l, int group,
                                        int hits, light *v, const gaze &look_at, real left,
                                        real top, real *bar, int64_t step)
{
    const real most = (real)l.rule.most_alpha;
    constexpr int EACH = PATCH * BATCH / 32;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31, mine = lane % BATCH;
    for (int first = 0; first < hits; first += BATCH) {
        const int n = hits - first < BATCH ? hits - first : (int)BATCH;
        for (int k = 0; k < n; k++)
            step_back(v, s.staged[group + s.hit[warp][first + k]], most, look_at,
                      &s.weight[warp][k][lane], &s.slope[warp][k][lane]);
        __syncwarp();
        real out[GS_SUMS] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
        const int which = mine < n ? s.hit[warp][first + mine] : 0;
        if (mine < n)
            add_pixels<EACH>(l, s.staged[group + which], s.weight[warp][mine], s.slope[warp][mine],
                             s.bar[warp], s.from[warp], left, top, lane / BATCH * EACH, out);
        for (int other = BATCH; other < 32; other *= 2)
            for (int c = 0; c < GS_SUMS; c++) out[c] += __shfl_xor_sync(~0u, out[c], other);
        if (lane < n) {
            real *const to = row_of_slot(l, bar, step, s.slot[group + which]);
            for (int c = 0; c < GS_SUMS; c++) atomicAdd(to + c, out[c]);
        }
        __syncwarp();
    }
}

/* add_patches of blend_back.cuh; the sums of a tile go to the Gaussian at once. */
template <int TILE>
__device__ inline void add_patches_atomic(const tile_lists &l, const back_shared<TILE> &s,
                                          int group, int n, real *bar, int64_t step)
{
    for (int k = (int)threadIdx.x; k < n * GS_SUMS; k += tile_shape<TILE>::threads) {
        const int which = k / GS_SUMS, c = k - which * GS_SUMS;
        real sum = 0;
        bool any = false;
#pragma unroll
        for (int w = 0; w < tile_shape<TILE>::warps; w++)
            if (s.seen[w][which / 32] >> which % 32 & 1) {
                sum += s.sum[w][which][c];
                any = true;
            }
        if (any) atomicAdd(row_of_slot(l, bar, step, s.slot[group + which]) + c, sum);
    }
}

template <int TILE, how HOW>
__global__ void __launch_bounds__(tile_shape<TILE>::threads, 4)
    blend_tiles_atomic(const tile_lists __grid_constant__ l, const cotangents __grid_constant__ of,
                       real *bar, int64_t step)
{
    constexpr int CHUNK = back_shared<TILE>::chunk;
    FTH_SHARED(back_shared<TILE>, shared);
    back_shared<TILE> &s = *shared;
    const int tile = (int)blockIdx.x, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
    const pixel p = pixel_of<TILE>(l, tile);
    const real left = (real)(p.x - lane % PATCH_WIDE), top = (real)(p.y - lane / PATCH_WIDE);
    const uint32_t begin = l.start[tile], end = l.start[tile + 1];
    light v = light_of(of, p);
    gaze look_at;
    gaze_of(l, p, &look_at);
    if (begin == end) return;
    for (int c = 0; c < 3; c++) s.bar[warp][lane].at[c] = v.g[c];
    for (uint32_t at = begin; at < end; at += CHUNK) {
        if (__syncthreads_and(!(v.T > 0))) break;
        const int n = (int)(end - at < CHUNK ? end - at : CHUNK);
        stage_chunk(l, at, n, s.staged, s.slot);
        __syncthreads();
        for (int group = 0; group < n; group += GROUP) {
            const bool lit = __any_sync(~0u, v.T > 0);
            if (HOW == BY_TILE) __syncthreads();
            const int hits = find_hits<TILE>(s, group, n, lit, left, top);
            if (HOW == BY_PATCH) {
                walk_hits_atomic<TILE>(s, l, group, hits, &v, look_at, left, top, bar, step);
                continue;
            }
            walk_hits<TILE>(l, s, s.staged + group, hits, &v, look_at, left, top);
            __syncthreads();
            add_patches_atomic<TILE>(l, s, group, n - group < GROUP ? n - group : (int)GROUP, bar,
                                     step);
        }
    }
}

/* ---- calls without a graph ---- */

enum { TILE = 16, TRIES = 20 };

void must(cudaError_t code, const char *what)
{
    if (code == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
    exit(1);
}

template <typename T> T *on_card(int64_t n, const T *from = nullptr)
{
    T *p = nullptr;
    must(cudaMalloc(&p, (size_t)(n > 0 ? n : 1) * sizeof(T)), "memory of the card");
    if (from)
        must(cudaMemcpy(p, from, (size_t)n * sizeof(T), cudaMemcpyHostToDevice), "copy");
    else
        must(cudaMemset(p, 0, (size_t)n * sizeof(T)), "fill");
    return p;
}

const fth_op nameless = {.name = "splat_atomic"};

void must(fth_status s, const char *what)
{
    if (s == FTH_OK) return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

/* A node and its call, as a plan would make them. */
struct asked {
    fth_node node = {};
    fth_desc in[FTH_MAX_IN] = {}, out[FTH_MAX_OUT] = {};
    fth_call call = {};
    asked(const gs_raster *rule, fth_fault *fault)
    {
        node.op = &nameless;
        node.attr = rule;
        node.in = in;
        node.out = out;
        call.node = &node;
        call.first = call.last = true;
        call.fault = fault;
    }
    void put(fth_desc *d, fth_tile *t, void *data, std::vector<int64_t> size)
    {
        int64_t stride = 1;
        d->dtype = FTH_F32;
        d->n_axes = (int)size.size();
        t->data = data;
        for (int k = d->n_axes - 1; k >= 0; k--) {
            d->size[k] = t->extent[k] = size[(size_t)k];
            t->stride[k] = stride;
            stride *= size[(size_t)k];
        }
    }
    void input(void *data, std::vector<int64_t> size)
    {
        put(&in[node.n_in], &call.in[node.n_in], data, size);
        node.n_in++;
    }
    void output(void *data, std::vector<int64_t> size)
    {
        put(&out[node.n_out], &call.out[node.n_out], data, size);
        node.n_out++;
    }
};

template <typename F> double best_of(F work)
{
    cudaEvent_t from, to;
    float best = 1e30f;
    must(cudaEventCreate(&from), "event");
    must(cudaEventCreate(&to), "event");
    for (int i = 0; i < TRIES; i++) {
        float ms = 0;
        must(cudaEventRecord(from), "event");
        work();
        must(cudaEventRecord(to), "event");
        must(cudaEventSynchronize(to), "run");
        must(cudaEventElapsedTime(&ms, from, to), "event");
        best = std::min(best, ms);
    }
    must(cudaEventDestroy(from), "event");
    must(cudaEventDestroy(to), "event");
    return (double)best;
}

struct card_scene {
    int64_t n;
    gs_raster rule;
    fth_fault *fault;
    float *at[GS_ATTRIBUTES], *view, *splats, *image, *alpha, *cotangent, *bar, *other;
    int32_t *order;
    char *scratch;
};

void make_on_card(card_scene *s)
{
    static const int columns[GS_ATTRIBUTES] = {3, 3, 45, 3, 4, 1};
    std::vector<float> host[GS_ATTRIBUTES];
    float *at[GS_ATTRIBUTES], view[GS_VIEW];
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        host[a].resize((size_t)(s->n * columns[a]));
        at[a] = host[a].data();
    }
    make_scene(at, s->n);
    make_view(view);
    const fth_fault well = {UINT64_MAX, 0, 0, ~0u};
    for (int a = 0; a < GS_ATTRIBUTES; a++) s->at[a] = on_card<float>(s->n * columns[a], at[a]);
    s->view = on_card<float>(GS_VIEW, view);
    s->fault = on_card<fth_fault>(1, &well);
    s->splats = on_card<float>(s->n * GS_SPLAT);
    s->order = on_card<int32_t>(s->n);
    s->bar = on_card<float>(s->n * GS_SPLAT);
    s->other = on_card<float>(s->n * GS_SPLAT);
    std::vector<float> cotangent((size_t)SCENE_WIDTH * SCENE_HEIGHT * 3);
    for (size_t i = 0; i < cotangent.size(); i++)
        cotangent[i] = (float)uniform((int64_t)i, 77) - 0.5f;
    s->cotangent = on_card<float>((int64_t)cotangent.size(), cotangent.data());
    s->image = on_card<float>((int64_t)cotangent.size());
    s->alpha = on_card<float>((int64_t)SCENE_WIDTH * SCENE_HEIGHT);
}

void project_and_order(card_scene *s)
{
    asked p(&s->rule, s->fault), o(&s->rule, s->fault);
    p.input(s->at[GS_MEANS], {s->n, 3});
    p.input(s->at[GS_SH_0], {s->n, 3});
    p.input(s->at[GS_SCALING], {s->n, 3});
    p.input(s->at[GS_ROTATION], {s->n, 4});
    p.input(s->at[GS_OPACITY], {s->n});
    p.input(s->view, {GS_VIEW});
    p.input(s->at[GS_SH_N], {s->n, 15, 3});
    p.output(s->splats, {s->n, GS_SPLAT});
    must(project(&p.call), "projection");
    o.input(s->splats, {s->n, GS_SPLAT});
    o.output(s->order, {s->n});
    char *scratch = on_card<char>((int64_t)order_scratch(&o.call));
    o.call.scratch = scratch;
    must(order(&o.call), "order");
    must(cudaDeviceSynchronize(), "projection and order");
    must(cudaFree(scratch), "free");
}

/* How far apart two sets of sums are, by column, relative to the largest entry. */
double apart(const card_scene *s)
{
    std::vector<float> a((size_t)(s->n * GS_SPLAT)), b(a.size());
    double worst = 0;
    must(cudaMemcpy(a.data(), s->bar, a.size() * 4, cudaMemcpyDeviceToHost), "copy");
    must(cudaMemcpy(b.data(), s->other, b.size() * 4, cudaMemcpyDeviceToHost), "copy");
    for (size_t c = 0; c < GS_SUMS; c++) {
        double most = 0, off = 0;
        for (size_t i = c; i < a.size(); i += GS_SPLAT) {
            most = std::max(most, fabs((double)a[i]));
            off = std::max(off, fabs((double)a[i] - (double)b[i]));
        }
        worst = std::max(worst, most > 0 ? off / most : 1.0);
    }
    return worst;
}

template <how HOW> double time_atomic(card_scene *s, const tile_lists &l, const cotangents &of)
{
    return best_of([&] {
        must(cudaMemsetAsync(s->other, 0, (size_t)s->n * GS_SPLAT * 4), "fill");
        FTH_LAUNCH_SHARED((blend_tiles_atomic<TILE, HOW>), (unsigned)l.tiles,
                          tile_shape<TILE>::threads, sizeof(back_shared<TILE>), (cudaStream_t)0, l,
                          of, s->other, (int64_t)GS_SPLAT);
    });
}

int run(int64_t n)
{
    card_scene s = {};
    s.n = n;
    s.rule.width = SCENE_WIDTH;
    s.rule.height = SCENE_HEIGHT;
    s.rule.tile = TILE;
    s.rule.room = n / 8 + 100000;
    s.rule.most_alpha = 0.999;
    make_on_card(&s);
    project_and_order(&s);
    asked f(&s.rule, s.fault), b(&s.rule, s.fault);
    for (asked *q : {&f, &b}) {
        q->input(s.splats, {n, GS_SPLAT});
        q->input(s.order, {n});
        q->input(s.view, {GS_VIEW});
    }
    f.output(s.image, {SCENE_HEIGHT, SCENE_WIDTH, 3});
    f.output(s.alpha, {SCENE_HEIGHT, SCENE_WIDTH});
    b.input(s.image, {SCENE_HEIGHT, SCENE_WIDTH, 3});
    b.input(s.alpha, {SCENE_HEIGHT, SCENE_WIDTH});
    b.input(s.cotangent, {SCENE_HEIGHT, SCENE_WIDTH, 3});
    b.output(s.bar, {n, GS_SPLAT});
    s.scratch =
        on_card<char>((int64_t)std::max(blend_scratch(&f.call), blend_back_scratch(&b.call)));
    f.call.scratch = b.call.scratch = s.scratch;
    must(blend(&f.call), "blend");
    const tile_lists l = make_lists(&b.call, &b.call.in[GS_BLEND_IMAGE], true);
    const cotangents of = cotangents_of(&b.call);
    const unsigned blocks = (unsigned)((n + LIST_THREADS - 1) / LIST_THREADS);
    const double ours = best_of([&] {
        back_with<TILE>(l, of, (cudaStream_t)0);
        FTH_LAUNCH(add_slots<true>, blocks, LIST_THREADS, (cudaStream_t)0, l, s.bar,
                   (int64_t)GS_SPLAT);
    });
    const double patch = time_atomic<BY_PATCH>(&s, l, of), patch_off = apart(&s),
                 tile = time_atomic<BY_TILE>(&s, l, of), tile_off = apart(&s),
                 lists =
                     best_of([&] { (void)make_lists(&b.call, &b.call.in[GS_BLEND_IMAGE], true); }),
                 best = std::min(patch, tile);
    counts many;
    must(cudaMemcpy(&many, l.count, sizeof many, cudaMemcpyDeviceToHost), "copy");
    printf("%.3g M Gaussians, %.2f M in tiles: ours %.3f ms; atomics by patch %.3f ms (apart by "
           "%.1e), by tile %.3f ms "
           "(%.1e); ours / best %.3f; lists %.3f ms\n",
           1e-6 * (double)n, 1e-6 * (double)many.needed, ours, patch, patch_off, tile, tile_off,
           ours / best, lists);
    for (void *p : {(void *)s.view, (void *)s.fault, (void *)s.splats, (void *)s.order,
                    (void *)s.bar, (void *)s.other, (void *)s.cotangent, (void *)s.image,
                    (void *)s.alpha, (void *)s.scratch})
        must(cudaFree(p), "free");
    for (float *p : s.at) must(cudaFree(p), "free");
    return many.slots > 0 && patch_off < 1e-4 && tile_off < 1e-4 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++) bad |= run((int64_t)(1e6 * atof(argv[i])));
    if (argc == 1)
        for (int64_t millions : {1, 5, 10}) bad |= run(millions * 1000000);
    return bad;
}
