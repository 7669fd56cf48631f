/* spots.c - the brightest spots of an image, in one pass over its rows.
 *
 * A spot is a square with more photons than any square near it, and significantly more than the
 * ring around it predicts. A band of rows is in memory at a time, with the rows that squares reach
 * into.
 */
#include "refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAND = 64 };
static const double CLEAR = 5.0; /* standard deviations above the ring */

typedef struct band {
    const br_observed *o;
    const br_experiment *e;
    int half, reach; /* half widths: of a square; of the square with its ring */
    int64_t fast, slow;
    int64_t lo, rows; /* in memory: [lo, lo + rows) */
    void *raw;
    uint16_t *mask;
    double *photons; /* [rows fast]; NaN: not used */
    double *sum;     /* [rows fast]: of the square; NaN: leaves the image, or is not used */
} band;

/* ---- reading ---- */

static double number_at(const fth_source *s, const void *raw, int64_t i)
{
    switch ((int)s->dtype) {
    case FTH_U8: return ((const uint8_t *)raw)[i];
    case FTH_U16: return ((const uint16_t *)raw)[i];
    case FTH_I32: return ((const int32_t *)raw)[i];
    case FTH_I64: return (double)((const int64_t *)raw)[i];
    case FTH_U32: return ((const uint32_t *)raw)[i];
    case FTH_I16: return ((const int16_t *)raw)[i];
    case FTH_I8: return ((const int8_t *)raw)[i];
    case FTH_F32: return (double)((const float *)raw)[i];
    default: return ((const double *)raw)[i];
    }
}

static bool is_used(const band *b, int64_t slow, int64_t fast, int64_t at)
{
    const int64_t *roi = b->e->scene.roi;
    return fast >= roi[0] && fast <= roi[1] && slow >= roi[2] && slow <= roi[3] &&
           (!b->mask || b->mask[at]);
}

static fth_status read_band(band *b, fth_err *err)
{
    const int64_t lo[2] = {b->lo, 0}, n[2] = {b->rows, b->fast};
    const fth_source *s = &b->o->pixels;
    FTH_TRY(s->read(s->self, lo, n, b->raw, err));
    if (b->mask) FTH_TRY(b->e->mask.read(b->e->mask.self, lo, n, b->mask, err));
    for (int64_t i = 0; i < b->rows * b->fast; i++) {
        const int64_t slow = b->lo + i / b->fast, fast = i % b->fast;
        const double v = number_at(s, b->raw, i);
        const bool full = isfinite(b->o->full) && v >= b->o->full,
                   used = is_used(b, slow, fast, i) && !full;
        if (used && !isfinite(v)) {
            FTH_FAIL(err, FTH_E_NUMERIC, "the image is not finite at pixel fast %lld, slow %lld",
                     (long long)fast, (long long)slow);
            fth_err_hint(err, "leave such pixels out with -mask or -roi");
            return FTH_E_NUMERIC;
        }
        b->photons[i] = used ? (v - b->o->adc) / b->o->gain : (double)NAN;
    }
    return FTH_OK;
}

/* ---- squares ---- */

static double square_sum(const band *b, int64_t row, int64_t fast, int half)
{
    double sum = 0;
    for (int64_t r = row - half; r <= row + half; r++)
        for (int64_t f = fast - half; f <= fast + half; f++) sum += b->photons[r * b->fast + f];
    return sum;
}

static void sum_squares(band *b)
{
    const int64_t width = b->fast;
    const int h = b->half;
    for (int64_t i = 0; i < b->rows * width; i++) b->sum[i] = (double)NAN;
    for (int64_t r = h; r < b->rows - h; r++)
        for (int64_t f = h; f < width - h; f++) b->sum[r * width + f] = square_sum(b, r, f, h);
}

/* Ties go to the first in order of rows: a flat top is one spot. */
static bool is_highest(const band *b, int64_t row, int64_t fast)
{
    const double here = b->sum[row * b->fast + fast];
    for (int64_t r = row - b->half - 1; r <= row + b->half + 1; r++)
        for (int64_t f = fast - b->half - 1; f <= fast + b->half + 1; f++) {
            const double there = b->sum[r * b->fast + f];
            const bool before = r < row || (r == row && f < fast);
            if (there > here || (there == here && before)) return false;
        }
    return true;
}

/* Whether the square is a spot; its centre, and its photons above the ring. */
static bool measure(const band *b, int64_t row, int64_t fast, br_spot *out)
{
    const int h = b->half, ring = h + 2;
    const double side = 2 * h + 1, in = side * side, here = b->sum[row * b->fast + fast];
    const double with = square_sum(b, row, fast, ring), inner = square_sum(b, row, fast, ring - 1);
    const double level = (with - inner) / (8.0 * ring);
    if (!isfinite(level)) return false;
    const double above = here - in * level, noise = here + in * fmax(level, 0) / (8.0 * ring) * in;
    if (!(above > CLEAR * sqrt(fmax(noise, 1.0)))) return false;
    double f1 = 0, s1 = 0;
    for (int64_t r = -h; r <= h; r++)
        for (int64_t f = -h; f <= h; f++) {
            const double v = b->photons[(row + r) * b->fast + fast + f] - level;
            f1 += v * (double)f, s1 += v * (double)r;
        }
    const double most = h;
    *out = (br_spot){.fast = (double)fast + 0.5 + fmin(fmax(f1 / above, -most), most),
                     .slow = (double)(b->lo + row) + 0.5 + fmin(fmax(s1 / above, -most), most),
                     .photons = above};
    return true;
}

/* ---- the brightest ---- */

/* A heap with the dimmest on top. */
static void sink_top(br_spot *heap, int64_t n)
{
    for (int64_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1].photons < heap[child].photons) child++;
        if (heap[i].photons <= heap[child].photons) return;
        const br_spot t = heap[i];
        heap[i] = heap[child], heap[child] = t;
    }
}

static void keep(br_spots *s, int64_t most, br_spot spot)
{
    if (s->n == most) {
        if (spot.photons <= s->spot[0].photons) return;
        s->spot[0] = spot;
        sink_top(s->spot, s->n);
        return;
    }
    int64_t i = s->n++;
    for (; i > 0 && s->spot[(i - 1) / 2].photons > spot.photons; i = (i - 1) / 2)
        s->spot[i] = s->spot[(i - 1) / 2];
    s->spot[i] = spot;
}

static int brighter_first(const void *a, const void *b)
{
    const br_spot *x = a, *y = b;
    if (x->photons != y->photons) return x->photons > y->photons ? -1 : 1;
    if (x->slow != y->slow) return x->slow < y->slow ? -1 : 1;
    return x->fast < y->fast ? -1 : x->fast > y->fast;
}

/* Rows [from, to) of the image: their photons, and the spots with a centre there. */
static void search_rows(const band *b, br_spots *s, int64_t most, int64_t from, int64_t to)
{
    for (int64_t slow = from; slow < to; slow++) {
        const int64_t row = slow - b->lo;
        const bool inside = row >= b->reach && row < b->rows - b->reach;
        for (int64_t fast = 0; fast < b->fast; fast++) {
            const double v = b->photons[row * b->fast + fast];
            if (isnan(v)) continue;
            s->photons += v;
            s->pixels++;
            br_spot spot;
            if (inside && fast >= b->reach && fast < b->fast - b->reach &&
                is_highest(b, row, fast) && measure(b, row, fast, &spot))
                keep(s, most, spot);
        }
    }
}

static fth_status search(band *b, br_spots *s, int64_t most, fth_err *err)
{
    for (int64_t from = 0; from < b->slow; from += BAND) {
        const int64_t to = from + BAND < b->slow ? from + BAND : b->slow,
                      end = to + b->reach < b->slow ? to + b->reach : b->slow;
        b->lo = from > b->reach ? from - b->reach : 0;
        b->rows = end - b->lo;
        FTH_TRY(read_band(b, err));
        sum_squares(b);
        search_rows(b, s, most, from, to);
    }
    qsort(s->spot, (size_t)s->n, sizeof *s->spot, brighter_first);
    if (s->photons > 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_NUMERIC, "the image has %g photons in %lld pixels: there is nothing to fit",
             s->photons, (long long)s->pixels);
    fth_err_hint(err, "pixels are read as (value - %g) / %g: give --adc and --gain of the image",
                 b->o->adc, b->o->gain);
    return FTH_E_NUMERIC;
}

/* ---- memory ---- */

static fth_status take(fth_mem *mem, int64_t n, size_t each, void **out, fth_err *err)
{
    return fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * each, "spots", out, err);
}

static fth_status find(band *b, br_spots *s, int64_t most, fth_err *err)
{
    const int64_t n = (BAND + 2 * b->reach) * b->fast;
    void *raw = NULL, *mask = NULL, *photons = NULL, *sum = NULL, *spot = NULL;
    fth_status st = take(s->mem, n, (size_t)fth_dtype_size(b->o->pixels.dtype), &raw, err);
    if (st == FTH_OK && b->e->scene.masked) st = take(s->mem, n, sizeof *b->mask, &mask, err);
    if (st == FTH_OK) st = take(s->mem, n, sizeof *b->photons, &photons, err);
    if (st == FTH_OK) st = take(s->mem, n, sizeof *b->sum, &sum, err);
    if (st == FTH_OK) st = take(s->mem, most, sizeof *s->spot, &spot, err);
    s->spot = spot;
    b->raw = raw, b->mask = mask, b->photons = photons, b->sum = sum;
    if (st == FTH_OK) st = search(b, s, most, err);
    fth_mem_release(s->mem, raw, NULL);
    fth_mem_release(s->mem, mask, NULL);
    fth_mem_release(s->mem, photons, NULL);
    fth_mem_release(s->mem, sum, NULL);
    return st;
}

fth_status br_spots_find(br_spots *out, const br_observed *o, const br_experiment *e, int half,
                         int64_t most, fth_err *err)
{
    *out = (br_spots){.mem = e->mem};
    band b = {.o = o,
              .e = e,
              .half = half,
              .reach = 2 * half + 2,
              .fast = e->scene.fast,
              .slow = e->scene.slow};
    const fth_status s = find(&b, out, most, err);
    if (s != FTH_OK) br_spots_clear(out);
    return s;
}

void br_spots_clear(br_spots *s)
{
    if (s->spot) fth_mem_release(s->mem, s->spot, NULL);
    *s = (br_spots){0};
}
