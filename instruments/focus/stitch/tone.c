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

/* A belief in the middle of all tiles, a millionth of what the overlaps weigh, settles what they
 * leave open. */
#define BELIEF 1e-6
/* Overlaps that agree less say nothing about contrast. */
#define LEAST_AGREEMENT 0.3

/* Add to the normal equations of weight * (v_i - v_j - step)^2. */
static void add_step(double *m, double *b, int64_t n, int64_t i, int64_t j, double weight,
                     double step)
{
    m[i * n + i] += weight;
    m[j * n + j] += weight;
    m[i * n + j] -= weight;
    m[j * n + i] -= weight;
    b[i] += weight * step;
    b[j] -= weight * step;
}

/* Solve for v that is near `middle` where nothing else is said; it stays as it was where there is
 * no solution. */
static bool solve_steps(double *m, double *b, int64_t n, double weight, const double *middle)
{
    for (int64_t i = 0; i < n; i++) {
        m[i * n + i] += BELIEF * weight;
        b[i] += BELIEF * weight * middle[i];
    }
    return fo_solve(m, b, n, 1);
}

/* Each pair of tiles that overlap, in turn: `add` takes what it says into the equations. */
typedef struct matching {
    const fo_tiles *t;
    const fo_tile_place *place;
    fo_tone *tone;
    double *m, *b, weight, sum, count; /* sum and count of all values in overlaps */
} matching;

static void add_contrast(matching *k, int i, int j, const sums *s)
{
    const double va = s->aa - s->a * s->a / s->n, vb = s->bb - s->b * s->b / s->n;
    const double shared = s->ab - s->a * s->b / s->n;
    k->sum += s->a + s->b;
    k->count += 2 * s->n;
    if (!(va > 0 && vb > 0) || shared < LEAST_AGREEMENT * sqrt(va * vb)) return;
    const double weight = s->n * shared * shared / (va * vb);
    add_step(k->m, k->b, fo_tiles_count(k->t), i, j, weight, 0.5 * log(vb / va));
    k->weight += weight;
}

static void add_brightness(matching *k, int i, int j, const sums *s)
{
    const double step = (k->tone[j].gain * s->b - k->tone[i].gain * s->a) / s->n;
    add_step(k->m, k->b, fo_tiles_count(k->t), i, j, s->n, step);
    k->weight += s->n;
}

static void each_pair(matching *k, void (*add)(matching *k, int i, int j, const sums *s))
{
    const fo_tiles *t = k->t;
    const int n = fo_tiles_count(t);
    memset(k->m, 0, (size_t)(n * n + n) * sizeof *k->m);
    k->weight = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            overlap o;
            if (!t->tile[i] || !t->tile[j] || !overlap_of(t, &k->place[i], &k->place[j], &o))
                continue;
            const sums s = sums_of(t, t->tile[i], t->tile[j], &o);
            add(k, i, j, &s);
        }
}

void fo_tones_match(fo_tone *tone, const fo_tiles *t, const fo_tile_place *place, double *work)
{
    const int64_t n = fo_tiles_count(t);
    double *middle = work + n * n + n;
    matching k = {.t = t, .place = place, .tone = tone, .m = work, .b = work + n * n};
    for (int64_t i = 0; i < n; i++) tone[i] = (fo_tone){1, 0, 1}, middle[i] = 0;
    /* contrast first, and then brightness: fitted together, noise would shrink all contrast */
    each_pair(&k, add_contrast);
    if (k.weight > 0 && solve_steps(k.m, k.b, n, k.weight, middle))
        for (int64_t i = 0; i < n; i++) tone[i].gain = exp(k.b[i]);
    const double mean = k.count > 0 ? k.sum / k.count : 0;
    for (int64_t i = 0; i < n; i++) middle[i] = (1 - tone[i].gain) * mean;
    each_pair(&k, add_brightness);
    if (k.weight > 0 && solve_steps(k.m, k.b, n, k.weight, middle))
        for (int64_t i = 0; i < n; i++) tone[i].offset = k.b[i];
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
