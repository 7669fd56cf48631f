/* resize.c - see resize.h. */
#include "resize.h"

#include "../object/blur.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
enum { MOST_SIDE = 65536 };

typedef struct image {
    fth_context *ctx;
    int64_t n, to; /* side, and that of the result */
    const fth_c128 *in;
    fth_c128 *out;
    double number;
} image;

static fth_status take(fth_context *ctx, int64_t count, size_t item, void **out, fth_err *err)
{
    return fth_mem_take(fth_context_mem(ctx), FTH_MEM_ANY, (uint64_t)count * item, "probe", out,
                        err);
}

/* ---- steps on one mode ---- */

static fth_status smooth(const image *m, fth_err *err)
{
    void *block = NULL;
    const int64_t count = m->n * m->n;
    FTH_TRY(take(m->ctx, count, sizeof(double), &block, err));
    double *part = block;
    fth_status s = FTH_OK;
    for (int k = 0; s == FTH_OK && k < 2; k++) {
        for (int64_t i = 0; i < count; i++) part[i] = k ? m->in[i].im : m->in[i].re;
        s = pt_blur(m->ctx, part, m->n, m->n, m->number, err);
        for (int64_t i = 0; s == FTH_OK && i < count; i++)
            *(k ? &m->out[i].im : &m->out[i].re) = part[i];
    }
    fth_mem_release(fth_context_mem(m->ctx), block, NULL);
    return s;
}

static fth_status pad(const image *m, fth_err *err)
{
    const int64_t before = (m->to - m->n) / 2;
    (void)err;
    memset(m->out, 0, (size_t)(m->to * m->to) * sizeof *m->out);
    for (int64_t i = 0; i < m->n; i++)
        memcpy(m->out + (before + i) * m->to + before, m->in + i * m->n,
               (size_t)m->n * sizeof *m->out);
    return FTH_OK;
}

static fth_status crop(const image *m, fth_err *err)
{
    const int64_t before = (m->n - m->to) / 2;
    (void)err;
    for (int64_t i = 0; i < m->to; i++)
        memcpy(m->out + i * m->to, m->in + (before + i) * m->n + before,
               (size_t)m->to * sizeof *m->out);
    return FTH_OK;
}

/* Second derivatives of the natural cubic spline through v[0], v[step], ..., v[(n - 1) step]. */
static void spline(const double *v, int64_t step, int64_t n, double *second, double *room)
{
    second[0] = room[0] = 0;
    for (int64_t i = 1; i + 1 < n; i++) {
        const double p = 0.5 * second[i - 1] + 2;
        second[i] = -0.5 / p;
        const double bend = v[(i + 1) * step] - 2 * v[i * step] + v[(i - 1) * step];
        room[i] = (3 * bend - 0.5 * room[i - 1]) / p;
    }
    second[n - 1] = 0;
    for (int64_t i = n - 1; i-- > 0;) second[i] = second[i] * second[i + 1] + room[i];
}

static double spline_at(const double *v, int64_t step, const double *second, int64_t n, double x)
{
    int64_t k = (int64_t)x;
    if (k > n - 2) k = n - 2;
    const double b = x - (double)k, a = 1 - b;
    return a * v[k * step] + b * v[(k + 1) * step] +
           ((a * a * a - a) * second[k] + (b * b * b - b) * second[k + 1]) / 6;
}

/* One part along one axis: lines of n samples become lines of `to`. */
static void stretch(const double *in, int64_t lines, int64_t in_line, int64_t in_step, int64_t n,
                    double *out, int64_t out_line, int64_t out_step, int64_t to, double *second,
                    double *room)
{
    const double f = (double)(n - 1) / (double)(to - 1);
    for (int64_t k = 0; k < lines; k++) {
        spline(in + k * in_line, in_step, n, second, room);
        for (int64_t i = 0; i < to; i++)
            out[k * out_line + i * out_step] =
                spline_at(in + k * in_line, in_step, second, n, (double)i * f);
    }
}

static fth_status interp(const image *m, fth_err *err)
{
    const int64_t n = m->n, to = m->to;
    void *block = NULL;
    FTH_TRY(take(m->ctx, n * n + n * to + to * to + 2 * n, sizeof(double), &block, err));
    double *part = block, *half = part + n * n, *all = half + n * to, *second = all + to * to,
           *room = second + n;
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < n * n; i++) part[i] = k ? m->in[i].im : m->in[i].re;
        stretch(part, n, n, 1, n, half, to, 1, to, second, room);
        stretch(half, to, 1, to, n, all, 1, to, to, second, room);
        for (int64_t i = 0; i < to * to; i++) *(k ? &m->out[i].im : &m->out[i].re) = all[i];
    }
    fth_mem_release(fth_context_mem(m->ctx), block, NULL);
    return FTH_OK;
}

/* Unwrap the phases of a line: steps beyond half a turn are undone. */
static void unwrap(double *v, int64_t step, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const double d = v[i * step] - v[(i - 1) * step];
        v[i * step] -= 2 * PI * rint(d / (2 * PI));
    }
}

/* phase = a r^2 + b by least squares, weighted by the intensity. */
static fth_status fit_phase(const image *m, double *a, double *b, fth_err *err)
{
    const int64_t n = m->n;
    void *block = NULL;
    double s = 0, sr = 0, srr = 0, sp = 0, srp = 0;
    FTH_TRY(take(m->ctx, n * n, sizeof(double), &block, err));
    double *phase = block;
    for (int64_t i = 0; i < n * n; i++) phase[i] = atan2(m->in[i].im, m->in[i].re);
    unwrap(phase + n / 2, n, n); /* the middle column, then every row from it */
    for (int64_t i = 0; i < n; i++) {
        unwrap(phase + i * n + n / 2, 1, n - n / 2);
        unwrap(phase + i * n + n / 2, -1, n / 2 + 1);
    }
    for (int64_t i = 0; i < n * n; i++) {
        const double y = (double)(i / n - n / 2), x = (double)(i % n - n / 2), r = x * x + y * y,
                     w = m->in[i].re * m->in[i].re + m->in[i].im * m->in[i].im;
        s += w;
        sr += w * r;
        srr += w * r * r;
        sp += w * phase[i];
        srp += w * r * phase[i];
    }
    const double det = s * srr - sr * sr;
    *a = det > 0 ? (s * srp - sr * sp) / det : 0;
    *b = s > 0 ? (sp - *a * sr) / s : 0;
    fth_mem_release(fth_context_mem(m->ctx), block, NULL);
    return FTH_OK;
}

static int64_t clamp(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static fth_status extrapolate(const image *m, fth_err *err)
{
    const int64_t before = (m->to - m->n) / 2;
    double a = 0, b = 0;
    FTH_TRY(fit_phase(m, &a, &b, err));
    for (int64_t i = 0; i < m->to * m->to; i++) {
        const int64_t row = clamp(i / m->to - before, m->n), col = clamp(i % m->to - before, m->n);
        const fth_c128 v = m->in[row * m->n + col];
        const double y = (double)(i / m->to - m->to / 2), x = (double)(i % m->to - m->to / 2),
                     amplitude = hypot(v.re, v.im), phase = a * (x * x + y * y) + b;
        m->out[i] = (fth_c128){amplitude * cos(phase), amplitude * sin(phase)};
    }
    return FTH_OK;
}

/* ---- a row of steps ---- */

static const struct step {
    const char *name;
    bool is_side; /* its number is the new side */
    int change;   /* 1: at least the old side, -1: at most */
    fth_status (*run)(const image *m, fth_err *err);
} steps[] = {{"smooth", false, 0, smooth},
             {"pad", true, 1, pad},
             {"crop", true, -1, crop},
             {"interp", true, 0, interp},
             {"pad_extrapolate", true, 1, extrapolate}};
enum { STEPS = sizeof steps / sizeof steps[0] };

static fth_status parse(const char *text, size_t length, int64_t n, const struct step **step,
                        double *number, fth_err *err)
{
    char word[80], *colon;
    snprintf(word, sizeof word, "%.*s", (int)(length < 79 ? length : 79), text);
    colon = strchr(word, ':');
    const size_t name = colon ? (size_t)(colon - word) : strlen(word);
    for (int k = 0; k < STEPS; k++) {
        if (strlen(steps[k].name) != name || strncmp(steps[k].name, word, name) != 0) continue;
        *step = &steps[k];
        if (!colon || !fth_real_parse(colon + 1, number)) break;
        const double least = steps[k].change > 0 ? (double)n : 2,
                     most = steps[k].change < 0 ? (double)n : MOST_SIDE;
        const bool whole = *number >= least && *number <= most && fmod(*number, 2) == 0;
        if (steps[k].is_side ? whole : *number >= 0 && *number <= 1e4) return FTH_OK;
        break;
    }
    FTH_FAIL(err, FTH_E_COMMAND,
             "'%s' is not a step for a probe of %lld x %lld; expected smooth:SIGMA, pad:N, crop:N, "
             "interp:N "
             "or pad_extrapolate:N with an even N",
             word, (long long)n, (long long)n);
    fth_err_hint(err, "write steps as in smooth:0.5|pad:128");
    return FTH_E_COMMAND;
}

static fth_status run_step(fth_context *ctx, const struct step *step, double number,
                           fth_c128 **probe, int64_t modes, int64_t *n, fth_err *err)
{
    const int64_t to = step->is_side ? (int64_t)number : *n;
    void *block = NULL;
    FTH_TRY(take(ctx, modes * to * to, sizeof(fth_c128), &block, err));
    fth_c128 *made = block;
    fth_status s = FTH_OK;
    for (int64_t k = 0; s == FTH_OK && k < modes; k++) {
        const image m = {ctx, *n, to, *probe + k * *n * *n, made + k * to * to, number};
        s = step->run(&m, err);
    }
    if (s != FTH_OK) {
        fth_mem_release(fth_context_mem(ctx), block, NULL);
        return s;
    }
    fth_mem_release(fth_context_mem(ctx), *probe, NULL);
    *probe = made;
    *n = to;
    return FTH_OK;
}

fth_status pt_probe_resize(fth_context *ctx, const char *text, fth_c128 **probe, int64_t modes,
                           int64_t *n, fth_err *err)
{
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, "|");
        const struct step *step = NULL;
        double number = 0;
        FTH_TRY(parse(at, length, *n, &step, &number, err));
        FTH_TRY(run_step(ctx, step, number, probe, modes, n, err));
        at += length + (at[length] == '|');
    }
    return FTH_OK;
}
