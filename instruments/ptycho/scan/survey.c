/* survey.c - one pass over all patterns: finds invalid data before anything runs.
 *
 * Workers look at the patterns of a piece; what they find is put together in the order of the
 * patterns, so it is the same for any number of them.
 */
#include "each.h"
#include "parts.h"

#include <math.h>
#include <string.h>

enum { PIECE = 4 << 20, MOST_ROWS = 4096, STRIP = 512 };

/* What there is in one pattern. */
typedef struct seen {
    double power, most;
    int64_t saturated, full; /* pixels that are, and the first of them */
    int64_t fractional;
    double middle, corners; /* light of the middle quarter, and of the four corners of that size */
    bool any;               /* a pixel that is not masked */
} seen;

typedef struct pass {
    pt_scan *scan;
    int64_t rows;    /* patterns at a time */
    int64_t at;      /* the first of the piece */
    char *raw;       /* patterns of the piece */
    uint8_t *good;   /* their own masks; NULL: none */
    seen *seen;      /* of each */
    bool read_apart; /* each worker reads the pattern that it looks at */
    pt_survey found;
    double sum;
    bool any;
    int64_t full; /* the first that is saturated */
    int64_t brightest;
    double middle, corners;
} pass;

static fth_status refuse(const pass *p, int64_t i, int64_t k, double v, fth_err *err)
{
    const int64_t N = p->scan->N;
    const char *what = isnan(v) ? "NaN" : isinf(v) ? "infinite" : "negative";
    FTH_FAIL(err, FTH_E_FILE_FORMAT,
             "%s: '%s' is %s at [%lld %lld %lld] (scan, row, col): %g; expected %s of 0 "
             "or more",
             p->scan->path, p->scan->array, what, (long long)i, (long long)(k / N),
             (long long)(k % N), v, pt_kind_names[p->scan->kind]);
    fth_err_hint(err, "mask bad pixels with an array 'mask' (true is good), or set them to 0");
    return FTH_E_FILE_FORMAT;
}

/* The outer half of an axis of N, which the middle is within. */
static bool is_outer(int64_t i, int64_t N)
{
    return i < N / 4 || i >= N - N / 4;
}

/* Where the light lies: half of the pixels belong to neither. */
static void weigh(int64_t from, int64_t n, int64_t N, const double *v, bool counts, seen *s)
{
    for (int64_t k = 0; k < n; k++) {
        const bool y = is_outer((from + k) / N, N), x = is_outer((from + k) % N, N);
        const double power = counts ? v[k] : v[k] * v[k];
        if (y && x) s->corners += power;
        if (!y && !x) s->middle += power;
    }
}

/* Pixels [from, from + n) of pattern i. */
static fth_status look_strip(const pass *p, int64_t i, int64_t from, int64_t n, double *v, seen *s,
                             fth_err *err)
{
    const pt_scan *scan = p->scan;
    const int64_t pixels = scan->N * scan->N;
    const uint8_t *const masks[] = {scan->mask, p->good ? p->good + (i - p->at) * pixels : NULL};
    const bool counts = scan->kind == PT_COUNTS;
    bool bad = false, any = !masks[0] && !masks[1];
    for (int64_t k = 0; !any && k < n; k++)
        any = (!masks[0] || masks[0][from + k]) && (!masks[1] || masks[1][from + k]);
    s->any |= any;
    for (int m = 0; m < 2; m++)
        for (int64_t k = 0; masks[m] && k < n; k++)
            if (!masks[m][from + k]) v[k] = 0;
    double most = s->most, power = s->power;
    for (int64_t k = 0; k < n; k++) {
        bad |= !(v[k] >= 0 && v[k] <= 1.7e308);
        most = v[k] > most ? v[k] : most;
        power += counts ? v[k] : v[k] * v[k];
    }
    for (int64_t k = 0; bad && k < n; k++)
        if (!(v[k] >= 0 && v[k] <= 1.7e308)) return refuse(p, i, from + k, v[k], err);
    s->most = most;
    s->power = power;
    weigh(from, n, scan->N, v, counts, s);
    for (int64_t k = 0; most >= scan->saturated && k < n; k++)
        if (v[k] >= scan->saturated && s->saturated++ == 0) s->full = from + k;
    /* squares of rounded roots are nearly whole */
    for (int64_t k = 0; fth_dtype_is_real(scan->patterns.dtype) && k < n; k++)
        s->fractional += fabs(v[k] - rint(v[k])) > 1e-5 * (v[k] > 1 ? v[k] : 1);
    return FTH_OK;
}

static fth_status look(const pass *p, int64_t i, seen *s, fth_err *err)
{
    const pt_scan *scan = p->scan;
    const fth_source *from = &scan->patterns;
    const int64_t n = scan->N * scan->N, bytes = fth_dtype_size(from->dtype);
    char *frame = p->raw + (i - p->at) * n * bytes;
    double value[STRIP];
    *s = (seen){0};
    if (p->read_apart) {
        const int64_t lo[3] = {i, 0, 0}, one[3] = {1, scan->N, scan->N};
        FTH_TRY(from->read(from->self, lo, one, frame, err));
    }
    for (int64_t k = 0; k < n; k += STRIP) {
        const int64_t some = n - k < STRIP ? n - k : STRIP;
        pt_to_f64(from->dtype, frame + k * bytes, some, value);
        FTH_TRY(look_strip(p, i, k, some, value, s, err));
    }
    return FTH_OK;
}

static fth_status look_beside(void *arg, int64_t i, fth_err *err)
{
    const pass *p = arg;
    return look(p, p->at + i, &p->seen[i], err);
}

static void add(pass *p, int64_t i)
{
    const seen *s = &p->seen[i - p->at];
    const int64_t n = p->scan->N * p->scan->N;
    p->any |= s->any;
    p->sum += s->power;
    if (s->power > p->found.max_power) p->found.max_power = s->power, p->brightest = i;
    p->middle += s->middle;
    p->corners += s->corners;
    if (s->most > p->found.max_value) p->found.max_value = s->most;
    if (s->saturated > 0 && p->found.saturated == 0) p->full = i * n + s->full;
    p->found.saturated += s->saturated;
    p->found.fractional += s->fractional;
    if (s->power == 0 && p->found.zero++ == 0) p->found.first_zero = i;
}

static fth_status walk(pass *p, fth_progress_fn *progress, void *user, fth_err *err)
{
    pt_scan *scan = p->scan;
    for (p->at = 0; p->at < scan->n; p->at += p->rows) {
        const int64_t lo[3] = {p->at, 0, 0}, left = scan->n - p->at,
                      n[3] = {left < p->rows ? left : p->rows, scan->N, scan->N};
        if (!p->read_apart) FTH_TRY(scan->patterns.read(scan->patterns.self, lo, n, p->raw, err));
        if (p->good) FTH_TRY(scan->masks.read(scan->masks.self, lo, n, p->good, err));
        FTH_TRY(pt_each(scan->ctx, "survey", n[0], look_beside, p, err));
        for (int64_t i = 0; i < n[0]; i++) add(p, p->at + i);
        if (progress &&
            !progress(user, &(fth_progress){.fraction = (double)(p->at + n[0]) / (double)scan->n}))
            return FTH_FAIL(err, FTH_E_CANCELLED, "checking the patterns was cancelled");
    }
    return FTH_OK;
}

/* ---- warnings: readable, but probably not intended ---- */

/* Intensity in the corners where the middle is expected to be bright: a missing fftshift. */
static const double CORNERS = 4; /* times the middle; a flat pattern has 1 */

static fth_status doubt_patterns(const pass *p, fth_err *err)
{
    enum { BRIGHT = 1000 }; /* times the mean of the others: a hot pixel, not the sample */
    pt_scan *scan = p->scan;
    const double rest = (p->sum - p->found.max_power) / (double)(scan->n > 1 ? scan->n - 1 : 1);
    if (scan->kind == PT_AMPLITUDE && !scan->kind_is_declared &&
        fth_dtype_is_real(scan->patterns.dtype) && p->found.fractional == 0 &&
        p->found.max_value > 1)
        FTH_TRY(pt_scan_warn(scan, err,
                             "every amplitude of '%s' is an integer, up to %.0f: if they are "
                             "counts, give --data.kind counts",
                             scan->array, p->found.max_value));
    if (p->corners > CORNERS * p->middle)
        FTH_TRY(pt_scan_warn(
            scan, err,
            "%.0f %% of the intensity is in the corners of the patterns and %.0f %% in the middle, "
            "where it is expected: shift them by half their side (numpy.fft.fftshift)",
            100 * p->corners / p->sum, 100 * p->middle / p->sum));
    if (rest > 0 && p->found.max_power > BRIGHT * rest)
        FTH_TRY(pt_scan_warn(scan, err,
                             "pattern %lld has %.3g times the light of the others: a pixel that is "
                             "always on? mask it",
                             (long long)p->brightest, p->found.max_power / rest));
    return FTH_OK;
}

static fth_status doubt_probe(pt_scan *scan, fth_err *err)
{
    double middle = 0, corners = 0;
    for (int64_t k = 0; k < scan->modes * scan->N * scan->N; k++) {
        const fth_c128 c = scan->probe[k];
        const bool y = is_outer(k / scan->N % scan->N, scan->N), x = is_outer(k % scan->N, scan->N);
        const double power = c.re * c.re + c.im * c.im;
        if (y && x) corners += power;
        if (!y && !x) middle += power;
    }
    if (corners <= CORNERS * middle) return FTH_OK;
    return pt_scan_warn(scan, err,
                        "the probe's light is in the corners of its frame: shift it by half of "
                        "its side (numpy.fft.fftshift)");
}

static double width_of(const double *v, int64_t n)
{
    double least = (double)INFINITY, most = -(double)INFINITY;
    for (int64_t i = 0; i < n; i++) {
        least = fmin(least, v[i]);
        most = fmax(most, v[i]);
    }
    return n > 0 ? most - least : 0;
}

double pt_scan_spacing(const pt_scan *scan)
{
    const double x = width_of(scan->x, scan->n), y = width_of(scan->y, scan->n),
                 n = (double)(scan->n > 1 ? scan->n : 1);
    return fmax(sqrt(x * y / n), fmax(x, y) / n);
}

static fth_status doubt_positions(pt_scan *scan, fth_err *err)
{
    const double apart = pt_scan_spacing(scan),
                 reach = fmax(width_of(scan->x, scan->n), width_of(scan->y, scan->n));
    if (scan->n > 1 && reach < 1)
        return pt_scan_warn(scan, err,
                            "all positions lie within %.3g pixels: are they in another unit? "
                            "--coord_scale turns them into pixels",
                            reach);
    if (apart > (double)scan->N)
        return pt_scan_warn(scan, err,
                            "positions are about %.3g pixels apart and patterns %lld wide: they "
                            "do not overlap, so nothing connects the patches; are positions in "
                            "another unit? --coord_scale turns them into "
                            "pixels",
                            apart, (long long)scan->N);
    return FTH_OK;
}

static fth_status conclude(pass *p, fth_err *err)
{
    pt_scan *scan = p->scan;
    p->found.mean_power = p->sum / (double)scan->n;
    if (!p->any) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: the masks leave no good pixel of '%s'", scan->path,
                 scan->array);
        fth_err_hint(err, "--mask.convention says what their values mean");
        return FTH_E_FILE_FORMAT;
    }
    if (p->found.zero == scan->n)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: all %lld patterns of '%s' are zero everywhere: there is nothing "
                        "to reconstruct",
                        scan->path, (long long)scan->n, scan->array);
    if (p->found.zero > 0)
        FTH_TRY(pt_scan_warn(
            scan, err, "%lld of %lld patterns are zero everywhere, the first is %lld",
            (long long)p->found.zero, (long long)scan->n, (long long)p->found.first_zero));
    if (p->found.saturated > 0) {
        const int64_t N = scan->N;
        FTH_TRY(pt_scan_warn(scan, err,
                             "%lld pixels have %.0f, the maximum of their dtype: dead or "
                             "saturated? The first is [%lld %lld %lld]; mask them",
                             (long long)p->found.saturated, scan->saturated,
                             (long long)(p->full / N / N), (long long)(p->full / N % N),
                             (long long)(p->full % N)));
    }
    if (scan->kind == PT_COUNTS && p->found.fractional > 0)
        FTH_TRY(pt_scan_warn(scan, err,
                             "%lld counts are not integers: are these amplitudes, or scaled?",
                             (long long)p->found.fractional));
    FTH_TRY(doubt_patterns(p, err));
    FTH_TRY(doubt_probe(scan, err));
    return doubt_positions(scan, err);
}

fth_status pt_scan_survey(pt_scan *scan, fth_progress_fn *progress, void *user, pt_survey *out,
                          fth_err *err)
{
    const int64_t n = scan->N * scan->N, frame = n * fth_dtype_size(scan->patterns.dtype),
                  masks = scan->masks.n_axes ? n : 0;
    pass p = {.scan = scan,
              .rows = PIECE / (frame + masks),
              .read_apart = scan->patterns.concurrent,
              .found = {.first_zero = -1}};
    if (p.rows > MOST_ROWS) p.rows = MOST_ROWS;
    if (p.rows > scan->n) p.rows = scan->n;
    if (p.rows < 1) p.rows = 1;
    const uint64_t bytes[] = {(uint64_t)(p.rows * frame), (uint64_t)p.rows * sizeof *p.seen,
                              (uint64_t)(p.rows * masks)};
    void *block[] = {NULL, NULL, NULL};
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < 3; i++)
        if (bytes[i]) s = fth_mem_take(scan->mem, FTH_MEM_ANY, bytes[i], "survey", &block[i], err);
    p.raw = block[0];
    p.seen = block[1];
    p.good = block[2];
    if (s == FTH_OK) s = walk(&p, progress, user, err);
    if (s == FTH_OK) s = conclude(&p, err);
    for (int i = 0; i < 3; i++) fth_mem_release(scan->mem, block[i], NULL);
    *out = p.found;
    return s;
}
