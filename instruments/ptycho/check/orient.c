/* orient.c - see orient.h.
 *
 * Where the handedness of frames and positions differs, overlapping patterns contradict each other
 * and no object fits them. The sign is determined only by a probe that is not its own mirror image:
 * negated positions give the conjugate, mirrored object.
 */
#include "orient.h"

#include "../solve/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
enum { MOST = 48, SIDE = 64, EPOCHS = 24, FEWEST = 6 };

typedef struct work {
    pt_scan *scan;
    int64_t index[MOST], n, side;
    double x[MOST], y[MOST]; /* in pixels of the smaller frames, about their mean */
    fth_tensor *frames;      /* f32 [n side side], counts */
    fth_c128 *probe;         /* [modes side side] */
    fth_tensor *masks;       /* bool [n side side]; NULL: all pixels are good */
} work;

/* ---- patterns ---- */

typedef struct near {
    double distance;
    int64_t index;
} near;

static int by_distance(const void *a, const void *b)
{
    const near *p = a, *q = b;
    if (p->distance != q->distance) return p->distance < q->distance ? -1 : 1;
    return p->index < q->index ? -1 : p->index > q->index;
}

static int by_index(const void *a, const void *b)
{
    const int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
    return p < q ? -1 : p > q;
}

/* The patterns nearest to the middle, in the order of the file. */
static fth_status choose(work *w, fth_err *err)
{
    const pt_scan *scan = w->scan;
    const pt_extent e = pt_scan_extent(scan->x, scan->y, scan->n);
    const double cx = (e.min_x + e.max_x) / 2, cy = (e.min_y + e.max_y) / 2,
                 scale = (double)w->side / (double)scan->N;
    void *block = NULL;
    double mx = 0, my = 0;
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)scan->n * sizeof(near), "distances",
                         &block, err));
    near *all = block;
    for (int64_t i = 0; i < scan->n; i++)
        all[i] = (near){hypot(scan->x[i] - cx, scan->y[i] - cy), i};
    qsort(all, (size_t)scan->n, sizeof *all, by_distance);
    w->n = scan->n < MOST ? scan->n : MOST;
    for (int64_t i = 0; i < w->n; i++) w->index[i] = all[i].index;
    fth_mem_release(scan->mem, block, NULL);
    qsort(w->index, (size_t)w->n, sizeof *w->index, by_index);
    for (int64_t i = 0; i < w->n; i++) {
        w->x[i] = scan->x[w->index[i]] * scale;
        w->y[i] = scan->y[w->index[i]] * scale;
        mx += w->x[i] / (double)w->n;
        my += w->y[i] / (double)w->n;
    }
    for (int64_t i = 0; i < w->n; i++) {
        w->x[i] -= mx;
        w->y[i] -= my;
    }
    return FTH_OK;
}

static fth_status load_frames(work *w, fth_err *err)
{
    const int64_t size[3] = {w->n, w->side, w->side}, from = (w->scan->N - w->side) / 2;
    fth_source counts;
    FTH_TRY(fth_tensor_create(&w->frames, w->scan->mem, "frames", FTH_F32, 3, size, err));
    FTH_TRY(pt_scan_view(w->scan, PT_COUNTS, FTH_F32, &counts, err));
    float *to = fth_tensor_data(w->frames);
    for (int64_t i = 0; i < w->n; i++, to += w->side * w->side) {
        const int64_t lo[3] = {w->index[i], from, from}, n[3] = {1, w->side, w->side};
        FTH_TRY(counts.read(counts.self, lo, n, to, err));
    }
    return FTH_OK;
}

/* The mask of each pattern; counts of masked pixels become 0, since they may be anything. */
static fth_status load_masks(work *w, fth_err *err)
{
    const pt_scan *scan = w->scan;
    const int64_t side = w->side, from = (scan->N - side) / 2, size[3] = {w->n, side, side};
    if (!scan->mask && !scan->masks.n_axes) return FTH_OK;
    FTH_TRY(fth_tensor_create(&w->masks, scan->mem, "masks", FTH_BOOL, 3, size, err));
    uint8_t *good = fth_tensor_data(w->masks);
    float *counts = fth_tensor_data(w->frames);
    for (int64_t k = 0; k < w->n; k++, good += side * side, counts += side * side) {
        const int64_t lo[3] = {w->index[k], from, from}, n[3] = {1, side, side};
        if (scan->masks.n_axes)
            FTH_TRY(scan->masks.read(scan->masks.self, lo, n, good, err));
        else
            for (int64_t i = 0; i < side; i++)
                memcpy(good + i * side, scan->mask + (from + i) * scan->N + from, (size_t)side);
        for (int64_t i = 0; i < side * side; i++)
            if (!good[i]) counts[i] = 0;
    }
    return FTH_OK;
}

/* ---- the probe resampled to coarser pixels ---- */

/* Along one axis: the lowest `n` of N frequencies of a line, transformed back to n samples. */
static void coarsen_line(const fth_c128 *in, int64_t step, int64_t N, fth_c128 *out,
                         int64_t out_step, int64_t n)
{
    fth_c128 low[SIDE];
    for (int64_t k = 0; k < n; k++) {
        const double f = (double)(k - n / 2);
        low[k] = (fth_c128){0, 0};
        for (int64_t i = 0; i < N; i++) {
            const double a = -2 * PI * f * (double)(i - N / 2) / (double)N, c = cos(a), s = sin(a);
            low[k].re += in[i * step].re * c - in[i * step].im * s;
            low[k].im += in[i * step].re * s + in[i * step].im * c;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        fth_c128 sum = {0, 0};
        for (int64_t k = 0; k < n; k++) {
            const double a = 2 * PI * (double)(k - n / 2) * (double)(i - n / 2) / (double)n,
                         c = cos(a), s = sin(a);
            sum.re += low[k].re * c - low[k].im * s;
            sum.im += low[k].re * s + low[k].im * c;
        }
        out[i * out_step] = sum;
    }
}

static fth_status make_probe(work *w, fth_err *err)
{
    pt_scan *scan = w->scan;
    const int64_t N = scan->N, n = w->side;
    void *block = NULL, *half = NULL;
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(scan->modes * n * n) * sizeof(fth_c128),
                         "probe", &block, err));
    w->probe = block;
    if (n == N) {
        memcpy(block, scan->probe, (size_t)(scan->modes * n * n) * sizeof(fth_c128));
        return FTH_OK;
    }
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(N * n) * sizeof(fth_c128), "probe",
                         &half, err));
    fth_c128 *room = half; /* [n N] */
    for (int64_t m = 0; m < scan->modes; m++) {
        for (int64_t x = 0; x < N; x++)
            coarsen_line(scan->probe + m * N * N + x, N, N, room + x, N, n);
        for (int64_t y = 0; y < n; y++)
            coarsen_line(room + y * N, 1, N, w->probe + m * n * n + y * n, 1, n);
    }
    fth_mem_release(scan->mem, half, NULL);
    return FTH_OK;
}

/* ---- one orientation ---- */

static fth_status try_one(const work *w, pt_orientation *o, fth_err *err)
{
    const pt_scan *scan = w->scan;
    double x[MOST], y[MOST];
    const double unknown = (double)NAN;
    pt_solver *s = NULL;
    for (int64_t i = 0; i < w->n; i++) {
        const double a = o->flip_x ? -w->x[i] : w->x[i], b = o->flip_y ? -w->y[i] : w->y[i];
        x[i] = o->swap_xy ? b : a;
        y[i] = o->swap_xy ? a : b;
    }
    const pt_solve_options opt = {.algorithm = PT_SOLVE_LSQML,
                                  .iterations = EPOCHS,
                                  .batch = (w->n + 3) / 4,
                                  .modes = scan->modes,
                                  .object_alpha = 1,
                                  .probe_alpha = 1,
                                  .raar_beta = 0.75,
                                  .dm_alpha = 1,
                                  .subpixel = true,
                                  .compat_rng = true,
                                  .probe_start = 2 * EPOCHS / 3,
                                  .position_start = -1,
                                  .rescale_probe = true,
                                  .orthogonalise = true,
                                  .power_bound = unknown,
                                  .clip_low = unknown,
                                  .clip_high = unknown,
                                  .probe_power = unknown};
    const pt_solve_data data = {.patterns = w->n,
                                .n = w->side,
                                .source = fth_tensor_source(w->frames),
                                .counts = true,
                                .centred = true,
                                .x = x,
                                .y = y,
                                .probe = w->probe,
                                .modes = scan->modes,
                                .masks = w->masks ? fth_tensor_source(w->masks) : (fth_source){0}};
    fth_status got = pt_solver_create(&s, scan->ctx, NULL, &opt, &data, err);
    if (got == FTH_OK) got = pt_solver_begin(s, err);
    while (got == FTH_OK && s->epoch < EPOCHS) got = pt_solver_step(s, err);
    o->r = got == FTH_OK ? s->history[EPOCHS - 1] : unknown;
    pt_solver_destroy(s);
    return got;
}

static fth_status try_all(work *w, pt_orientation out[PT_ORIENTATIONS], fth_err *err)
{
    FTH_TRY(choose(w, err));
    FTH_TRY(load_frames(w, err));
    FTH_TRY(load_masks(w, err));
    FTH_TRY(make_probe(w, err));
    for (int k = 0; k < PT_ORIENTATIONS; k++) {
        fth_err local = {0};
        out[k] = (pt_orientation){(k & 1) != 0, (k & 2) != 0, (k & 4) != 0, 0};
        const fth_status s = try_one(w, &out[k], &local);
        if (s != FTH_OK && s != FTH_E_NUMERIC) {
            if (err) *err = local;
            return s;
        }
    }
    return FTH_OK;
}

fth_status pt_orient(pt_scan *scan, pt_orientation out[PT_ORIENTATIONS], int64_t *patterns,
                     fth_err *err)
{
    work w = {.scan = scan, .side = scan->N < SIDE ? scan->N : SIDE};
    *patterns = 0;
    if (scan->n < FEWEST) return FTH_OK;
    const fth_status s = try_all(&w, out, err);
    *patterns = w.n;
    fth_mem_release(scan->mem, w.probe, NULL);
    fth_tensor_release(w.masks);
    fth_tensor_release(w.frames);
    return s;
}
