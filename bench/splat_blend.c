/* splat_blend.c - blending on the processors, forward and back, beside plain loops over the pixels
 * of a tile that the compiler makes vectors of. Both walk the same lists of Gaussians; a fragment
 * is a Gaussian at a pixel of a tile it touches. The lists are part of our time, not of the peer's.
 */
#include "bench.h"

#include "instruments/splat/raster/loops.h"
#include "instruments/splat/raster/raster.h"

#include "splat_scene.h"

#include <stdlib.h>

#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>
#define FLOOR floorf
#define CEIL ceilf
#include "instruments/splat/raster/tile_lanes.h"

enum { WIDTH = 640, HEIGHT = 360, SIDE = 16, PIXELS = SIDE * SIDE, ROWS = 40000, LIGHT = 16 };

/* ---- the peer ---- */

/* Pixels of a tile; T is the light that is left, 0 where it ended. */
typedef struct canvas {
    float x[PIXELS], y[PIXELS], T[PIXELS], F[PIXELS], C[3][PIXELS], g[3][PIXELS], q[PIXELS];
} canvas;

/* exp of a number that is not positive, to 2e-7 of it: powers of two by their bits, the rest by a
 * polynomial. Sums in any order, which vectors need, change nothing here. */
FTH_LANE float fading(float x)
{
    const float t = fmaxf(x * 1.44269504f, -126);
    const int32_t whole = (int32_t)(t - 0.5f);
    const float f = (t - (float)whole) * 0.693147181f;
    const int32_t bits = (int32_t)((uint32_t)(whole + 127) << 23);
    float power;
    memcpy(&power, &bits, sizeof power);
    return power *
           (1 + f * (1 + f * (0.5f + f * (1.0f / 6 +
                                          f * (1.0f / 24 + f * (1.0f / 120 + f * (1.0f / 720)))))));
}

#define FRAGMENT                                                                                   \
    const float dx = s[GS_U] - v->x[i], dy = s[GS_V] - v->y[i], T = v->T[i];                       \
    const float sigma = 0.5f * (s[GS_A] * dx * dx + s[GS_C] * dy * dy) + s[GS_B] * dx * dy;        \
    const float made = s[GS_O] * fading(-sigma), alpha = made < most ? made : most;                \
    const float left = T * (1 - alpha);                                                            \
    /* 1 or 0: is it blended where there is light, and is there enough */                          \
    const float on = (float)(sigma >= 0) * (float)(alpha >= 1.0f / 255),                           \
                keep = on * (float)(left >= 1e-4f), w = keep * T * alpha

#define DEFINE(isa, attributes)                                                                    \
    attributes static void front_##isa(canvas *restrict v, const float *restrict s, float most)    \
    {                                                                                              \
        const float red = s[GS_RED] > 0 ? s[GS_RED] : 0,                                           \
                    green = s[GS_GREEN] > 0 ? s[GS_GREEN] : 0,                                     \
                    blue = s[GS_BLUE] > 0 ? s[GS_BLUE] : 0;                                        \
        for (int i = 0; i < PIXELS; i++) {                                                         \
            FRAGMENT;                                                                              \
            v->C[0][i] += w * red;                                                                 \
            v->C[1][i] += w * green;                                                               \
            v->C[2][i] += w * blue;                                                                \
            const float was = v->F[i];                                                             \
            v->F[i] = keep * left + (1 - keep) * was;                                              \
            v->T[i] = keep * left + (1 - on) * T;                                                  \
        }                                                                                          \
    }                                                                                              \
    attributes static void back_##isa(canvas *restrict v, const float *restrict s, float most,     \
                                      float *restrict out)                                         \
    {                                                                                              \
        const float red = s[GS_RED] > 0 ? s[GS_RED] : 0,                                           \
                    green = s[GS_GREEN] > 0 ? s[GS_GREEN] : 0,                                     \
                    blue = s[GS_BLUE] > 0 ? s[GS_BLUE] : 0;                                        \
        float h0 = 0, hx = 0, hy = 0, hxx = 0, hxy = 0, hyy = 0, r = 0, g = 0, b = 0;              \
        float weight[PIXELS], slope[PIXELS];                                                       \
        for (int i = 0; i < PIXELS; i++) {                                                         \
            FRAGMENT;                                                                              \
            const float near = v->g[0][i] * red + v->g[1][i] * green + v->g[2][i] * blue;          \
            const float behind = v->q[i] + w * near;                                               \
            v->q[i] = behind;                                                                      \
            weight[i] = w;                                                                         \
            slope[i] = -keep * alpha * (T * near + behind / (1 - alpha));                          \
            v->T[i] = keep * left + (1 - on) * T;                                                  \
        }                                                                                          \
        for (int i = 0; i < PIXELS; i++) {                                                         \
            const float dx = s[GS_U] - v->x[i], dy = s[GS_V] - v->y[i], h = slope[i];              \
            r += weight[i] * v->g[0][i];                                                           \
            g += weight[i] * v->g[1][i];                                                           \
            b += weight[i] * v->g[2][i];                                                           \
            h0 += h;                                                                               \
            hx += h * dx;                                                                          \
            hy += h * dy;                                                                          \
            hxx += h * dx * dx;                                                                    \
            hxy += h * dx * dy;                                                                    \
            hyy += h * dy * dy;                                                                    \
        }                                                                                          \
        const float all[GS_SUMS] = {s[GS_A] * hx + s[GS_B] * hy,                                   \
                                    s[GS_B] * hx + s[GS_C] * hy,                                   \
                                    0.5f * hxx,                                                    \
                                    hxy,                                                           \
                                    0.5f * hyy,                                                    \
                                    -h0 / s[GS_O],                                                 \
                                    s[GS_RED] >= 0 ? r : 0,                                        \
                                    s[GS_GREEN] >= 0 ? g : 0,                                      \
                                    s[GS_BLUE] >= 0 ? b : 0};                                      \
        for (int k = 0; k < GS_SUMS; k++) out[k] += all[k];                                        \
    }
/* Sums in any order, and no paths of their own for what is 0: vectors need both. */
#ifdef __clang__
#define LOOSE
#else
#define LOOSE __attribute__((optimize("fast-math", "no-thread-jumps")))
#endif
DEFINE(base, LOOSE)
#ifdef FTH_HAVE_ISA_V3
DEFINE(v3, LOOSE __attribute__((target("arch=x86-64-v3"))))
#endif
#ifdef FTH_HAVE_ISA_V4
#ifdef __clang__
DEFINE(v4, LOOSE __attribute__((target("arch=x86-64-v4"))))
#else
DEFINE(v4, LOOSE __attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))))
#endif
#endif

typedef struct work {
    bench_program p, back;
    int64_t gw, gh, instances, *start;
    int32_t *item, *order;
    float *splats, *image, *alpha, *bar, *cotangent;
    float *peer_image, *peer_bar;
    bool backward;
} work;

static void begin_tile(const work *w, int64_t tile, canvas *v)
{
    for (int i = 0; i < PIXELS; i++) {
        const int64_t x = tile % w->gw * SIDE + i % SIDE, y = tile / w->gw * SIDE + i / SIDE;
        const bool inside = x < WIDTH && y < HEIGHT;
        v->x[i] = (float)x + 0.5f;
        v->y[i] = (float)y + 0.5f;
        v->T[i] = v->F[i] = inside ? 1 : 0;
        v->q[i] = 0;
        for (int c = 0; c < 3; c++) {
            v->C[c][i] = 0;
            v->g[c][i] = inside && w->backward ? w->cotangent[(y * WIDTH + x) * 3 + c] : 0;
            if (inside) v->q[i] -= v->g[c][i] * w->image[(y * WIDTH + x) * 3 + c];
        }
    }
}

static bool is_dark(const canvas *v)
{
    float most = 0;
    for (int i = 0; i < PIXELS; i++) most = v->T[i] > most ? v->T[i] : most;
    return !(most > 0);
}

static double plain(void *arg)
{
    work *w = arg;
    static canvas v;
    memset(w->peer_bar, 0, (size_t)ROWS * GS_SPLAT * sizeof(float));
    for (int64_t tile = 0; tile < w->gw * w->gh; tile++) {
        begin_tile(w, tile, &v);
        for (int64_t at = w->start[tile]; at < w->start[tile + 1]; at++) {
            const float *s = w->splats + (int64_t)w->item[at] * GS_SPLAT;
            if ((at - w->start[tile]) % LIGHT == LIGHT - 1 && is_dark(&v)) break;
            if (w->backward)
                FTH_ISA_BEST(back)(&v, s, 0.999f, w->peer_bar + (int64_t)w->item[at] * GS_SPLAT);
            else
                FTH_ISA_BEST(front)(&v, s, 0.999f);
        }
        for (int i = 0; i < PIXELS && !w->backward; i++) {
            const int64_t x = tile % w->gw * SIDE + i % SIDE, y = tile / w->gw * SIDE + i / SIDE;
            if (x < WIDTH && y < HEIGHT)
                for (int c = 0; c < 3; c++) w->peer_image[(y * WIDTH + x) * 3 + c] = v.C[c][i];
        }
    }
    return -1;
}

/* ---- ours ---- */

static void ours(void *arg)
{
    work *w = arg;
    bench_go(w->backward ? &w->back : &w->p);
}

/* The mean difference, relative to the largest number: where alpha is 1/255 rounding decides
 * whether a fragment is blended. */
static double residual(void *arg)
{
    const work *w = arg;
    const float *mine = w->backward ? w->bar : w->image,
                *other = w->backward ? w->peer_bar : w->peer_image;
    const int64_t n = w->backward ? (int64_t)ROWS * GS_SPLAT : (int64_t)WIDTH * HEIGHT * 3;
    double sum = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += fabs((double)mine[i] - (double)other[i]);
        most = fmax(most, fabs((double)other[i]));
    }
    return most > 0 ? sum / (double)n / most : 1;
}

static const gs_raster *rule_of(int64_t room)
{
    static gs_raster rule;
    rule = (gs_raster){
        .width = WIDTH, .height = HEIGHT, .tile = SIDE, .room = room, .most_alpha = 0.999};
    return &rule;
}

static void axes_of(fth_graph *g)
{
    static const char *const name[] = {"g", "xyz", "wxyz", "c", "k", "p", "view", "i", "j"};
    const int64_t size[] = {ROWS, 3, 4, 3, 15, GS_SPLAT, GS_VIEW, HEIGHT, WIDTH};
    for (int a = 0; a < 9; a++) fth_axis(g, name[a], size[a]);
}

/* Gaussians as they look in the view, and their order, made once. */
static bool look(work *w, float *view)
{
    bench_program p;
    gs_values model;
    float *at[GS_ATTRIBUTES];
    bench_open(&p, 2);
    axes_of(p.g);
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        at[a] = bench_array((uint64_t)(ROWS * gs_columns((gs_attribute)a, 3)) * sizeof(float));
        model.at[a] = bench_input(&p, gs_attribute_names[a], FTH_F32, gs_attribute_axes[a], at[a]);
    }
    make_scene(at, ROWS);
    make_view(view);
    for (int k = 0; k < 4; k++) view[GS_VIEW_FX + k] /= (float)(SCENE_WIDTH / WIDTH);
    const fth_val eye = bench_input(&p, "view", FTH_F32, "view", view),
                  splats = gs_project(p.g, rule_of(0), &model, eye);
    bench_output(&p, splats, w->splats);
    bench_output(&p, gs_order(p.g, rule_of(0), splats), w->order);
    bench_plan(&p, 0, false);
    for (int a = 0; a < GS_ATTRIBUTES; a++) free(at[a]);
    return bench_close(&p);
}

/* For every tile those that touch it, by depth. */
static void make_lists(work *w)
{
    const gs_raster *rule = rule_of(0);
    w->gw = (WIDTH + SIDE - 1) / SIDE;
    w->gh = (HEIGHT + SIDE - 1) / SIDE;
    w->start = calloc((size_t)(w->gw * w->gh + 2), sizeof *w->start);
    if (!w->start) abort();
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t r = 0; r < ROWS; r++) {
            const float *s = w->splats + (int64_t)w->order[r] * GS_SPLAT;
            const box b = box_of(rule, s);
            for (int64_t y = b.y0; y < b.y1 && s[GS_TILES] > 0; y++)
                for (int64_t x = b.x0; x < b.x1; x++) {
                    if (!touches(rule, s, x, y)) continue;
                    int64_t *to = &w->start[y * w->gw + x + 1];
                    if (pass) w->item[*to] = w->order[r];
                    ++*(pass ? to : to + 1);
                }
        }
        if (pass) break;
        for (int64_t t = 0; t <= w->gw * w->gh; t++) w->start[t + 1] += w->start[t];
        w->instances = w->start[w->gw * w->gh + 1];
        w->item = bench_array((uint64_t)w->instances * sizeof *w->item);
    }
}

static bool open_work(work *w, int threads, float *view)
{
    const gs_raster *rule = rule_of(w->instances / w->gh + w->gh);
    for (int k = 0; k < 2; k++) {
        bench_program *p = k ? &w->back : &w->p;
        bench_open(p, threads);
        axes_of(p->g);
        fth_val in[GS_BLEND_ALPHA] = {
            bench_input(p, "splats", FTH_F32, "g p", w->splats),
            bench_input(p, "order", FTH_I32, "g", w->order),
            bench_input(p, "view", FTH_F32, "view", view),
        };
        if (k == 0) {
            const fth_val made = gs_blend(p->g, rule, in[0], in[1], in[2]);
            bench_output(p, made, w->image);
            bench_output(p, fth_out(made, 1), w->alpha);
        } else {
            in[GS_BLEND_MADE_IMAGE] = bench_input(p, "image", FTH_F32, "i j c", w->image);
            in[GS_BLEND_MADE_ALPHA] = bench_input(p, "alpha", FTH_F32, "i j", w->alpha);
            in[GS_BLEND_IMAGE] = bench_input(p, "cotangent", FTH_F32, "i j c", w->cotangent);
            bench_output(
                p, fth_custom(p->g, &gs_blend_back_op, GS_BLEND_ALPHA, in, rule, sizeof *rule),
                w->bar);
        }
        bench_plan(p, 0, false);
        if (p->status != FTH_OK) return false;
    }
    bench_fill_f32(w->cotangent, (int64_t)WIDTH * HEIGHT * 3, 3, -0.5f, 0.5f);
    return true;
}

static double seconds_of(bench *b, work *w, int threads)
{
    double best = 1e30;
    for (int i = 0; i < 7; i++) {
        const double start = bench_now(b, threads);
        ours(w);
        const double took = bench_now(b, threads) - start;
        if (took < best) best = took;
    }
    return best;
}

static void compare(bench *b, work *w, const char *name)
{
    char shape[60];
    snprintf(shape, sizeof shape, "%d rows, %.3g M fragments", ROWS,
             1e-6 * PIXELS * (double)w->instances);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .peer_name = "plain tile loop",
                             .threads = 1,
                             .amount = 1e-9 * PIXELS * (double)w->instances,
                             .unit = "Gfragment/s",
                             .bar = 0.4,
                             .ours = ours,
                             .peer = plain,
                             .residual = residual,
                             .arg = w};
    (void)bench_pairs(b, &pair);
}

void bench_splat_blend(bench *b)
{
    static const char *const names[] = {"splat_blend", "splat_blend_back"};
    double one[2] = {0};
    float view[GS_VIEW];
    if (!bench_wants(b, names[0]) && !bench_wants(b, names[1])) return;
    work w = {.splats = bench_array((uint64_t)ROWS * GS_SPLAT * sizeof(float)),
              .bar = bench_array((uint64_t)ROWS * GS_SPLAT * sizeof(float)),
              .peer_bar = bench_array((uint64_t)ROWS * GS_SPLAT * sizeof(float)),
              .order = bench_array(ROWS * sizeof(int32_t)),
              .image = bench_array((uint64_t)WIDTH * HEIGHT * 3 * sizeof(float)),
              .peer_image = bench_array((uint64_t)WIDTH * HEIGHT * 3 * sizeof(float)),
              .cotangent = bench_array((uint64_t)WIDTH * HEIGHT * 3 * sizeof(float)),
              .alpha = bench_array((uint64_t)WIDTH * HEIGHT * sizeof(float))};
    bool good = look(&w, view);
    if (good) make_lists(&w);
    for (int threads = 1; threads <= 2 && good; threads++) {
        good = open_work(&w, threads, view);
        for (int k = 0; k < 2 && good; k++) {
            w.backward = k;
            if (threads == 1) compare(b, &w, names[k]);
            const double took = seconds_of(b, &w, threads);
            if (threads == 1)
                one[k] = took;
            else
                bench_note(b, "%s: two threads are %.2f times as fast as one", names[k],
                           one[k] / took);
        }
        b->failed += !bench_close(&w.p) || !bench_close(&w.back);
    }
    b->failed += !good;
    void *const all[] = {w.splats,     w.bar,       w.peer_bar, w.order, w.image,
                         w.peer_image, w.cotangent, w.alpha,    w.start, w.item};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}
