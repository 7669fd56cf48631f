/* tone.c - brightness of neighbours made equal: see mosaic.h. */
#include "mosaic.h"

#include "../linear/solve.h"

#include <math.h>
#include <string.h>

double fo_tone_of(const fo_tone *tone, double v, double white)
{
    if (tone->gamma != 1) v = white * pow(v / white, tone->gamma);
    return tone->gain * v + tone->offset;
}

/* What two tiles share, with corners at whole pixels. */
typedef struct overlap {
    int64_t y0, y1, x0, x1; /* in the mosaic */
    int64_t ay, ax, by, bx; /* corners of the tiles there */
} overlap;

static bool overlap_of(const fo_tiles *t, const fo_tile_place *a, const fo_tile_place *b,
                       overlap *o)
{
    *o = (overlap){
        .ay = (int64_t)a->y, .ax = (int64_t)a->x, .by = (int64_t)b->y, .bx = (int64_t)b->x};
    o->y0 = o->ay > o->by ? o->ay : o->by;
    o->y1 = (o->ay < o->by ? o->ay : o->by) + t->y;
    o->x0 = o->ax > o->bx ? o->ax : o->bx;
    o->x1 = (o->ax < o->bx ? o->ax : o->bx) + t->x;
    return o->y1 > o->y0 && o->x1 > o->x0;
}

/* ---- gain and offset ---- */

typedef struct sums {
    double n, a, b, aa, ab, bb;
} sums;

static sums sums_of(const fo_tiles *t, const float *a, const float *b, const overlap *o)
{
    sums s = {.n = (double)((o->y1 - o->y0) * (o->x1 - o->x0))};
    for (int64_t y = o->y0; y < o->y1; y++) {
        const float *p = a + (y - o->ay) * t->x + o->x0 - o->ax;
        const float *q = b + (y - o->by) * t->x + o->x0 - o->bx;
        for (int64_t k = 0; k < o->x1 - o->x0; k++) {
            const double u = (double)p[k], v = (double)q[k];
            s.a += u;
            s.b += v;
            s.aa += u * u;
            s.ab += u * v;
            s.bb += v * v;
        }
    }
    return s;
}

/* Add to the normal equations of sum (g_i a + o_i - g_j b - o_j)^2 over an overlap. */
static void add_pair(double *m, int64_t n2, int64_t i, int64_t j, const sums *s)
{
    const int64_t k[4] = {2 * i, 2 * i + 1, 2 * j, 2 * j + 1};
    const double term[4][4] = {{s->aa, s->a, -s->ab, -s->a},
                               {s->a, s->n, -s->b, -s->n},
                               {-s->ab, -s->b, s->bb, s->b},
                               {-s->a, -s->n, s->b, s->n}};
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) m[k[r] * n2 + k[c]] += term[r][c];
}

void fo_tones_match(fo_tone *tone, const fo_tiles *t, const fo_tile_place *place, double *work)
{
    const int n = fo_tiles_count(t);
    const int64_t n2 = 2 * (int64_t)n;
    double *m = work, *b = work + n2 * n2, shared = 0, squares = 0;
    memset(work, 0, (size_t)(n2 * n2 + n2) * sizeof *work);
    for (int i = 0; i < n; i++) {
        tone[i] = (fo_tone){1, 0, 1};
        for (int j = i + 1; j < n; j++) {
            overlap o;
            if (!t->tile[i] || !t->tile[j] || !overlap_of(t, &place[i], &place[j], &o)) continue;
            const sums s = sums_of(t, t->tile[i], t->tile[j], &o);
            add_pair(m, n2, i, j, &s);
            shared += s.n;
            squares += s.aa + s.bb;
        }
    }
    if (!(squares > 0)) return;
    /* Brightness of all tiles together is free: a belief in 1 and 0, a thousandth of what the
     * overlaps weigh, settles it and keeps gains of flat overlaps near 1. */
    for (int64_t i = 0; i < n; i++) {
        m[2 * i * n2 + 2 * i] += 1e-3 * squares / n;
        b[2 * i] += 1e-3 * squares / n;
        m[(2 * i + 1) * n2 + 2 * i + 1] += 1e-3 * shared / n;
    }
    if (!fo_solve(m, b, n2, 1)) return;
    for (int i = 0; i < n; i++) tone[i] = (fo_tone){b[2 * i], b[2 * i + 1], 1};
}

/* ---- gamma ---- */

static double mean_of(const fo_tiles *t, const float *a, int64_t ay, int64_t ax, const overlap *o,
                      const fo_tone *tone, double white)
{
    double sum = 0;
    for (int64_t y = o->y0; y < o->y1; y++)
        for (int64_t x = o->x0; x < o->x1; x++)
            sum += fo_tone_of(tone, (double)a[(y - ay) * t->x + x - ax], white);
    return sum / (double)((o->y1 - o->y0) * (o->x1 - o->x0));
}

#define GAMMA_STEP 0.02
#define GAMMA_MOST 5.0
#define CLOSE_LOW 0.98
#define CLOSE_HIGH 1.02

static double find_gamma(const fo_tiles *t, const float *tile, const overlap *o, double wanted,
                         double white)
{
    const fo_tone plain = {1, 0, 1};
    const double before = mean_of(t, tile, o->ay, o->ax, o, &plain, white);
    const int up = before > wanted ? 1 : -1; /* a gamma above 1 darkens */
    double best = 1, best_gap = (double)INFINITY;
    for (int k = 0;; k++) {
        const fo_tone tone = {1, 0, 1 + up * GAMMA_STEP * k};
        if (tone.gamma <= 0 || tone.gamma >= GAMMA_MOST) return best;
        const double ratio = mean_of(t, tile, o->ay, o->ax, o, &tone, white) / wanted;
        if (ratio > CLOSE_LOW && ratio < CLOSE_HIGH) return tone.gamma;
        if (fabs(ratio - 1) < best_gap) {
            best_gap = fabs(ratio - 1);
            best = tone.gamma;
        }
    }
}

/* A treated neighbour in the grid; -1: none. */
static int treated_neighbour(const fo_tiles *t, const bool *treated, int i)
{
    const int row = i / t->columns, column = i % t->columns;
    static const int step[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    for (int k = 0; k < 4; k++) {
        const int r = row + step[k][0], c = column + step[k][1];
        if (r >= 0 && r < t->rows && c >= 0 && c < t->columns && treated[r * t->columns + c])
            return r * t->columns + c;
    }
    return -1;
}

void fo_tones_gamma(fo_tone *tone, const fo_tiles *t, const fo_tile_place *place, double white)
{
    const int n = fo_tiles_count(t);
    bool treated[FO_MAX_TILES] = {0};
    for (int i = 0; i < n; i++) tone[i] = (fo_tone){1, 0, 1};
    treated[n / 2] = true;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < n; i++) {
            const int j = treated[i] ? -1 : treated_neighbour(t, treated, i);
            overlap o;
            if (j < 0) continue;
            treated[i] = more = true;
            if (!t->tile[i] || !t->tile[j] || !overlap_of(t, &place[i], &place[j], &o)) continue;
            const double wanted = mean_of(t, t->tile[j], o.by, o.bx, &o, &tone[j], white);
            if (wanted > 0) tone[i].gamma = find_gamma(t, t->tile[i], &o, wanted, white);
        }
    }
}
