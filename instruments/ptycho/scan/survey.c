/* survey.c - one pass over all patterns: what cannot be used is found before anything runs. */
#include "parts.h"

#include <math.h>
#include <string.h>

enum { PIECE = 4 << 20 };

typedef struct pass {
    pt_scan *scan;
    int64_t rows; /* patterns at a time */
    void *raw;
    double *value; /* one pattern */
    uint8_t *good; /* its own mask; NULL: none */
    pt_survey found;
    double sum;
    bool seen;    /* a pixel that is not masked */
    int64_t full; /* the first that is saturated */
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

static fth_status look(pass *p, int64_t i, const void *frame, fth_err *err)
{
    const pt_scan *scan = p->scan;
    const int64_t n = scan->N * scan->N;
    double power = 0;
    pt_to_f64(scan->patterns.dtype, frame, n, p->value);
    for (int64_t k = 0; k < n; k++) {
        const double v = p->value[k];
        if ((scan->mask && !scan->mask[k]) || (p->good && !p->good[k])) continue;
        p->seen = true;
        if (!(v >= 0 && v <= 1.7e308)) return refuse(p, i, k, v, err);
        power += scan->kind == PT_COUNTS ? v : v * v;
        if (v > p->found.max_value) p->found.max_value = v;
        if (v >= scan->saturated && p->found.saturated++ == 0) p->full = i * n + k;
        /* squares of rounded roots are nearly whole */
        if (scan->kind == PT_COUNTS && fabs(v - rint(v)) > 1e-5 * fmax(v, 1)) p->found.fractional++;
    }
    p->sum += power;
    if (power > p->found.max_power) p->found.max_power = power;
    if (power == 0) {
        if (p->found.zero++ == 0) p->found.first_zero = i;
    }
    return FTH_OK;
}

static fth_status walk(pass *p, fth_progress_fn *progress, void *user, fth_err *err)
{
    pt_scan *scan = p->scan;
    const fth_source *s = &scan->patterns;
    const int64_t frame = scan->N * scan->N * fth_dtype_size(s->dtype);
    for (int64_t at = 0; at < scan->n; at += p->rows) {
        const int64_t lo[3] = {at, 0, 0},
                      n[3] = {scan->n - at < p->rows ? scan->n - at : p->rows, scan->N, scan->N};
        FTH_TRY(s->read(s->self, lo, n, p->raw, err));
        for (int64_t i = 0; i < n[0]; i++) {
            const int64_t here[3] = {at + i, 0, 0}, one[3] = {1, scan->N, scan->N};
            if (p->good) FTH_TRY(scan->masks.read(scan->masks.self, here, one, p->good, err));
            FTH_TRY(look(p, at + i, (const char *)p->raw + i * frame, err));
        }
        if (progress &&
            !progress(user, &(fth_progress){.fraction = (double)(at + n[0]) / (double)scan->n}))
            return FTH_FAIL(err, FTH_E_CANCELLED, "the look at the patterns was cancelled");
    }
    return FTH_OK;
}

static fth_status conclude(pass *p, fth_err *err)
{
    pt_scan *scan = p->scan;
    p->found.mean_power = p->sum / (double)scan->n;
    if (!p->seen) {
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
                             "%lld pixels have %.0f, the most that their type holds: dead or "
                             "saturated? The first is [%lld %lld %lld]; mask them",
                             (long long)p->found.saturated, scan->saturated,
                             (long long)(p->full / N / N), (long long)(p->full / N % N),
                             (long long)(p->full % N)));
    }
    if (p->found.fractional > 0)
        FTH_TRY(pt_scan_warn(scan, err,
                             "%lld counts are no whole numbers: are these amplitudes, or scaled?",
                             (long long)p->found.fractional));
    return FTH_OK;
}

fth_status pt_scan_survey(pt_scan *scan, fth_progress_fn *progress, void *user, pt_survey *out,
                          fth_err *err)
{
    const int64_t n = scan->N * scan->N, frame = n * fth_dtype_size(scan->patterns.dtype);
    pass p = {.scan = scan, .rows = PIECE / frame, .found = {.first_zero = -1}};
    void *value = NULL, *good = NULL;
    if (p.rows < 1) p.rows = 1;
    if (p.rows > scan->n) p.rows = scan->n;
    FTH_TRY(
        fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(p.rows * frame), "patterns", &p.raw, err));
    fth_status s = fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(double), "a pattern",
                                &value, err);
    if (s == FTH_OK && scan->masks.n_axes)
        s = fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)n, "a mask", &good, err);
    p.value = value;
    p.good = good;
    if (s == FTH_OK) s = walk(&p, progress, user, err);
    if (s == FTH_OK) s = conclude(&p, err);
    fth_mem_release(scan->mem, good, NULL);
    fth_mem_release(scan->mem, value, NULL);
    fth_mem_release(scan->mem, p.raw, NULL);
    *out = p.found;
    return s;
}
