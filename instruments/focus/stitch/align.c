/* align.c - see align.h.
 *
 * The phases are weighted by a band of frequencies, the difference of Gaussians of 1 and 3 pixels:
 * below it lies the illumination, above it the noise. A peak of a circular correlation stands for
 * four shifts; the pixels decide between them.
 */
#include "align.h"

#include <math.h>
#include <string.h>

enum { PEAKS = 16, LEAST_STRIP = 16, STEPS = 8, TAPER = 4 };
#define LEAST_AREA 0.25 /* of the expected overlap: how far it may be off */
#define MOST_CROSS 0.25 /* shift across, of the tile's size: more is a mistaken match */
static const double pi = 3.14159265358979323846;

struct fo_aligner {
    fth_context *ctx;
    fth_graph *graph;
    fth_plan *plan;
    fth_tensor *a, *b, *weight, *corr;
    int64_t y, x;             /* of a tile  */
    int64_t strip_y, strip_x; /* of a strip */
    bool vertical;
    double overlap;
};

/* ---- correlation of pixels ---- */

/* Sums of every LANES-th column: additions that need not wait for each other. */
enum { LANES = 8 };
typedef struct lanes {
    double a[LANES], b[LANES], aa[LANES], bb[LANES], ab[LANES];
} lanes;

static void add_row(lanes *s, const float *p, const float *q, int64_t n, double za, double zb)
{
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int k = 0; k < LANES; k++) {
            const double a = (double)p[j + k] - za, b = (double)q[j + k] - zb;
            s->a[k] += a;
            s->b[k] += b;
            s->aa[k] += a * a;
            s->bb[k] += b * b;
            s->ab[k] += a * b;
        }
    for (int k = 0; j < n; j++, k++) {
        const double a = (double)p[j] - za, b = (double)q[j] - zb;
        s->a[k] += a;
        s->b[k] += b;
        s->aa[k] += a * a;
        s->bb[k] += b * b;
        s->ab[k] += a * b;
    }
}

double fo_overlap_score(const float *first, const float *second, int64_t size_y, int64_t size_x,
                        int64_t y, int64_t x, int64_t *area)
{
    const int64_t y0 = y > 0 ? y : 0, y1 = y > 0 ? size_y : size_y + y;
    const int64_t x0 = x > 0 ? x : 0, x1 = x > 0 ? size_x : size_x + x;
    *area = y1 > y0 && x1 > x0 ? (y1 - y0) * (x1 - x0) : 0;
    if (*area == 0) return 0;
    /* about the first pixel, so that squares keep their digits */
    const double za = (double)first[y0 * size_x + x0],
                 zb = (double)second[(y0 - y) * size_x + x0 - x];
    lanes sum = {0};
    for (int64_t i = y0; i < y1; i++)
        add_row(&sum, first + i * size_x + x0, second + (i - y) * size_x + x0 - x, x1 - x0, za, zb);
    double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (int k = 0; k < LANES; k++) {
        sa += sum.a[k];
        sb += sum.b[k];
        saa += sum.aa[k];
        sbb += sum.bb[k];
        sab += sum.ab[k];
    }
    const double n = (double)*area;
    const double va = saa - sa * sa / n, vb = sbb - sb * sb / n;
    return va > 0 && vb > 0 ? (sab - sa * sb / n) / sqrt(va * vb) : 0;
}

/* The score of a shift, or -1 where the overlap is too small or the tiles are shifted too far
 * across. */
static double score_of(const fo_aligner *a, const float *first, const float *second, int64_t y,
                       int64_t x)
{
    const double expected = a->overlap * (double)(a->y * a->x);
    const double across =
        a->vertical ? fabs((double)x) / (double)a->x : fabs((double)y) / (double)a->y;
    int64_t area;
    if (across > MOST_CROSS) return -1;
    const double r = fo_overlap_score(first, second, a->y, a->x, y, x, &area);
    return (double)area >= LEAST_AREA * expected ? r : -1;
}

/* ---- phase correlation ---- */

/* How much of a frequency passes: k of n, whichever side of the middle. */
static double passes(double ky, double kx)
{
    const double f2 = ky * ky + kx * kx, s = 2 * pi * pi;
    return exp(-s * f2) - exp(-s * 9 * f2);
}

static void fill_weight(const fo_aligner *a)
{
    float *w = fth_tensor_data(a->weight);
    const int64_t half = a->strip_x / 2 + 1;
    for (int64_t i = 0; i < a->strip_y; i++)
        for (int64_t j = 0; j < half; j++) {
            const double ky =
                (double)(i <= a->strip_y / 2 ? i : i - a->strip_y) / (double)a->strip_y;
            w[i * half + j] = (float)passes(ky, (double)j / (double)a->strip_x);
        }
}

static fth_status build(fo_aligner *a, fth_err *err)
{
    fth_graph *g = a->graph = fth_graph_create(a->ctx);
    fth_axis(g, "y", a->strip_y);
    fth_axis(g, "x", a->strip_x);
    fth_axis_like(g, "ky", "y");
    fth_axis(g, "kx", a->strip_x / 2 + 1);
    const fth_val first = fth_input(g, "first", FTH_F32, "y x", fth_tensor_source(a->a));
    const fth_val second = fth_input(g, "second", FTH_F32, "y x", fth_tensor_source(a->b));
    const fth_val weight = fth_input(g, "weight", FTH_F32, "ky kx", fth_tensor_source(a->weight));
    const fth_val cross =
        fth_mul(fth_rfft(first, "y x", "ky kx"), fth_conj(fth_rfft(second, "y x", "ky kx")));
    const fth_val phase = fth_mul(fth_sign(cross), fth_complex(weight, fth_sub(weight, weight)));
    const fth_val corr = fth_irfft(phase, "ky kx", "y x");
    const fth_sink sink = fth_tensor_sink(a->corr);
    a->plan = fth_plan_make(g, &corr, 1, &(fth_limits){.sinks = &sink}, err);
    return a->plan ? FTH_OK : err ? err->status : FTH_E_NO_FIT;
}

static fth_status take(fo_aligner *a, fth_err *err)
{
    fth_mem *mem = fth_context_mem(a->ctx);
    const int64_t strip[2] = {a->strip_y, a->strip_x}, half[2] = {a->strip_y, a->strip_x / 2 + 1};
    FTH_TRY(fth_tensor_create(&a->a, mem, "first strip", FTH_F32, 2, strip, err));
    FTH_TRY(fth_tensor_create(&a->b, mem, "second strip", FTH_F32, 2, strip, err));
    FTH_TRY(fth_tensor_create(&a->corr, mem, "phase correlation", FTH_F32, 2, strip, err));
    FTH_TRY(fth_tensor_create(&a->weight, mem, "band of frequencies", FTH_F32, 2, half, err));
    fill_weight(a);
    return build(a, err);
}

static int64_t strip_of(int64_t size, double overlap)
{
    int64_t n = (int64_t)lround(2 * overlap * (double)size);
    if (n < LEAST_STRIP) n = LEAST_STRIP;
    return n < size ? n : size;
}

fth_status fo_aligner_create(fo_aligner **out, fth_context *ctx, int64_t y, int64_t x,
                             bool vertical, double overlap, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth_mem_take(fth_context_mem(ctx), FTH_MEM_META, sizeof(fo_aligner), "aligner", &block,
                         err));
    fo_aligner *a = block;
    *a = (fo_aligner){.ctx = ctx,
                      .y = y,
                      .x = x,
                      .strip_y = vertical ? strip_of(y, overlap) : y,
                      .strip_x = vertical ? x : strip_of(x, overlap),
                      .vertical = vertical,
                      .overlap = overlap};
    const fth_status s = take(a, err);
    if (s == FTH_OK)
        *out = a;
    else
        fo_aligner_destroy(a);
    return s;
}

void fo_aligner_destroy(fo_aligner *a)
{
    if (!a) return;
    if (a->plan) fth_plan_destroy(a->plan);
    if (a->graph) fth_graph_destroy(a->graph);
    fth_tensor_release(a->a);
    fth_tensor_release(a->b);
    fth_tensor_release(a->corr);
    fth_tensor_release(a->weight);
    fth_mem_release(fth_context_mem(a->ctx), a, NULL);
}

uint64_t fo_aligner_bytes(const fo_aligner *a)
{
    fth_plan_needs needs;
    fth_plan_get_needs(a->plan, &needs);
    return needs.host_bytes - needs.held_bytes;
}

/* ---- from peaks to an edge ---- */

/* A window that is 1 except at its edges: the overlap of two strips may be a few rows at their
 * edge.
 */
static double window(int64_t i, int64_t n)
{
    const int64_t from_edge = i < n - 1 - i ? i : n - 1 - i;
    return from_edge < TAPER ? sin(pi / 2 * ((double)from_edge + 0.5) / TAPER) : 1;
}

/* Copy a strip under the window, without its mean. */
static void copy_strip(const fo_aligner *a, const float *tile, bool last, fth_tensor *to)
{
    const int64_t oy = last ? a->y - a->strip_y : 0, ox = last ? a->x - a->strip_x : 0;
    float *dst = fth_tensor_data(to);
    double sum = 0;
    for (int64_t i = 0; i < a->strip_y; i++)
        for (int64_t j = 0; j < a->strip_x; j++) sum += (double)tile[(oy + i) * a->x + ox + j];
    const double mean = sum / (double)(a->strip_y * a->strip_x);
    for (int64_t i = 0; i < a->strip_y; i++)
        for (int64_t j = 0; j < a->strip_x; j++) {
            const double v = (double)tile[(oy + i) * a->x + ox + j] - mean;
            dst[i * a->strip_x + j] = (float)(v * window(i, a->strip_y) * window(j, a->strip_x));
        }
}

typedef struct peak {
    int64_t y, x;
    float height;
} peak;

static bool is_peak(const float *c, int64_t ny, int64_t nx, int64_t i, int64_t j)
{
    const float v = c[i * nx + j];
    for (int64_t di = -1; di <= 1; di++)
        for (int64_t dj = -1; dj <= 1; dj++) {
            const int64_t y = (i + di + ny) % ny, x = (j + dj + nx) % nx;
            if ((di || dj) && c[y * nx + x] > v) return false;
        }
    return true;
}

/* The highest maxima, highest first; ties in the order of rows. */
static int find_peaks(const fo_aligner *a, peak *p)
{
    const float *c = fth_tensor_data(a->corr);
    int n = 0;
    for (int64_t i = 0; i < a->strip_y; i++)
        for (int64_t j = 0; j < a->strip_x; j++) {
            const float v = c[i * a->strip_x + j];
            if (n == PEAKS && v <= p[n - 1].height) continue;
            if (!is_peak(c, a->strip_y, a->strip_x, i, j)) continue;
            int at = n < PEAKS ? n++ : PEAKS - 1;
            for (; at > 0 && p[at - 1].height < v; at--) p[at] = p[at - 1];
            p[at] = (peak){i, j, v};
        }
    return n;
}

/* Climb to the best shift nearby: a peak of phases may be one pixel beside that of the pixels. */
static double climb(const fo_aligner *a, const float *first, const float *second, int64_t *y,
                    int64_t *x, double score)
{
    static const int step[4][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    for (int n = 0; n < STEPS; n++) {
        int best = -1;
        for (int k = 0; k < 4; k++) {
            const double r = score_of(a, first, second, *y + step[k][0], *x + step[k][1]);
            if (r <= score) continue;
            score = r;
            best = k;
        }
        if (best < 0) break;
        *y += step[best][0];
        *x += step[best][1];
    }
    return score;
}

/* Where a parabola through three scores has its top, from the middle one. */
static double top_of(double before, double middle, double after)
{
    const double bend = before - 2 * middle + after;
    const double d = bend < 0 ? 0.5 * (before - after) / bend : 0;
    return before < -0.5 || after < -0.5 ? 0 : fmin(0.5, fmax(-0.5, d));
}

static void refine(const fo_aligner *a, const float *first, const float *second, int64_t y,
                   int64_t x, double score, fo_edge *edge)
{
    edge->y = (double)y + top_of(score_of(a, first, second, y - 1, x), score,
                                 score_of(a, first, second, y + 1, x));
    edge->x = (double)x + top_of(score_of(a, first, second, y, x - 1), score,
                                 score_of(a, first, second, y, x + 1));
    edge->score = score;
    edge->used = score >= FO_ALIGN_SCORE;
}

fth_status fo_aligner_run(fo_aligner *a, const float *first, const float *second, fo_edge *edge,
                          fth_err *err)
{
    peak p[PEAKS];
    copy_strip(a, first, true, a->a);
    copy_strip(a, second, false, a->b);
    const fth_sink sink = fth_tensor_sink(a->corr);
    FTH_TRY(fth_run(a->plan, &sink, NULL, NULL, err));
    const int n = find_peaks(a, p);
    const int64_t oy = a->y - a->strip_y,
                  ox = a->x - a->strip_x; /* of the first strip in its tile */
    int64_t best_y = oy, best_x = ox;
    double best = -1;
    for (int i = 0; i < n; i++)
        for (int wrap = 0; wrap < 4; wrap++) {
            const int64_t y = oy + p[i].y - (wrap & 1 ? a->strip_y : 0);
            const int64_t x = ox + p[i].x - (wrap & 2 ? a->strip_x : 0);
            const double r = score_of(a, first, second, y, x);
            if (r <= best) continue;
            best = r;
            best_y = y;
            best_x = x;
        }
    best = climb(a, first, second, &best_y, &best_x, best);
    refine(a, first, second, best_y, best_x, best, edge);
    return FTH_OK;
}
