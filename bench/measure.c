/* measure.c - pairs of runs, quartiles of their ratios, and the line that is printed. */
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A residual above this is a wrong answer: f32 sums of a few thousand terms stay far below. */
static const double WRONG = 1e-5;

bool bench_wants(const bench *b, const char *name)
{
    const bool wanted = !b->filter || strstr(name, b->filter);
    if (wanted) bench_predict_name(name);
    return wanted;
}

double bench_now(const bench *b, int threads)
{
    struct timespec t;
    clock_gettime(b->cpu_clock ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / (b->cpu_clock ? threads : 1);
}

void bench_note(const bench *b, const char *fmt, ...)
{
    if (bench_predicting() && !b->device) return; /* of peers, which are not asked */
    va_list args;
    va_start(args, fmt);
    FILE *f = b->json ? stderr : stdout;
    fputs("# ", f);
    vfprintf(f, fmt, args);
    fputc('\n', f);
    fflush(f);
    va_end(args);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between neighbours, as most tools do it. */
static double quantile(const double *sorted, int n, double q)
{
    const double at = q * (n - 1);
    const int i = (int)at;
    return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

typedef struct line {
    const char *name, *shape, *unit, *peer, *device;
    int threads;
    double seconds, rate, fraction, residual, median, lower, bar;
    double self; /* `lower` of the peer against itself: what this machine can tell apart now */
    double kernels, kernel_ratio; /* of a device: median seconds, and peer / ours; 0: not known */
    uint64_t planned, measured;
    bool pass;
} line;

static const char *place(const line *l, char *text, size_t bytes)
{
    if (l->device)
        snprintf(text, bytes, "%s", l->device);
    else
        snprintf(text, bytes, "cpu:%d", l->threads);
    return text;
}

static void print_json(bench *b, const line *l)
{
    char where[24];
    printf(
        "%s\n{\"case\":\"%s\",\"device\":\"%s\",\"shape\":\"%s\",\"seconds\":%.6g,\"rate\":%."
        "6g,"
        "\"unit\":\"%s\",\"fraction_of_limit\":%.4g,\"peak_planned\":%llu,\"peak_measured\":%llu,"
        "\"residual\":%.3g,\"peer\":\"%s\",\"ratio_median\":%.4g,\"ratio_lower_quartile\":%.4g,"
        "\"self_lower_quartile\":%.4g,\"kernel_seconds\":%.6g,\"kernel_ratio_median\":%.4g,"
        "\"bar\":%.4g,\"clock\":\"%s\",\"pass\":%s}",
        b->lines ? "," : "[", l->name, place(l, where, sizeof where), l->shape, l->seconds, l->rate,
        l->unit, l->fraction, (unsigned long long)l->planned, (unsigned long long)l->measured,
        l->residual, l->peer, l->median, l->lower, l->self, l->kernels, l->kernel_ratio, l->bar,
        b->cpu_clock ? "cpu" : "wall", l->pass ? "true" : "false");
}

static void print_text(bench *b, const line *l)
{
    char planned[24], measured[24], rate[48], where[24];
    if (b->lines == 0)
        printf("%-22s %-6s %-22s %10s %15s %9s %11s %11s %9s  %-24s %7s %7s %7s %10s %7s %6s\n",
               "case", "device", "shape", "seconds", "rate", "of limit", "planned", "measured",
               "residual", "peer", "median", "lower", "self", "kernels", "ratio", "bar");
    snprintf(rate, sizeof rate, "%.4g %s", l->rate, l->unit);
    char kernels[32] = "-", kernel_ratio[16] = "-";
    if (l->kernels > 0) snprintf(kernels, sizeof kernels, "%.6f", l->kernels);
    if (l->kernel_ratio > 0) snprintf(kernel_ratio, sizeof kernel_ratio, "%.3f", l->kernel_ratio);
    printf("%-22s %-6s %-22s %10.6f %15s %8.1f%% %11s %11s %9.2g  %-24s %7.3f %7.3f %7.3f %10s %7s "
           "%6.3f %s\n",
           l->name, place(l, where, sizeof where), l->shape, l->seconds, rate, 100 * l->fraction,
           fth_mem_format_size(l->planned, planned, sizeof planned),
           fth_mem_format_size(l->measured, measured, sizeof measured), l->residual, l->peer,
           l->median, l->lower, l->self, kernels, kernel_ratio, l->bar,
           !l->pass     ? "FAIL"
           : l->bar > 0 ? "PASS"
                        : "-");
}

static void print_line(bench *b, const line *l)
{
    (b->json ? print_json : print_text)(b, l);
    fflush(stdout);
    b->lines++;
    b->failed += !l->pass;
}

/* Both sides take turns; the best turn of each counts. Other programs on the machine only ever
 * make a turn slower, so the best of three is nearer to what the code takes than any one of them.
 * A device that two processes share takes about 0.15 ms to change from one to the other, which is
 * the work of neither: there each side runs once untimed before the run that counts.
 */
enum { TURNS = 3 };

typedef struct turn {
    double mine, other;                 /* seconds of the host */
    double mine_kernels, other_kernels; /* of a device; 0: not known */
} turn;

static turn best_turns(bench *b, const bench_pair *p)
{
    turn best = {.mine = 1e30, .other = 1e30};
    for (int t = 0; t < (p->turns ? p->turns : TURNS); t++) {
        if (p->device) p->ours(p->arg);
        double start = bench_now(b, p->threads);
        p->ours(p->arg);
        const double ours = bench_now(b, p->threads) - start;
        if (ours < best.mine) {
            best.mine = ours;
            best.mine_kernels = p->ours_kernels ? p->ours_kernels(p->arg) : 0;
        }
        if (p->device) (void)p->peer(p->arg);
        start = bench_now(b, p->threads);
        double peer = p->peer(p->arg);
        if (peer < 0) peer = bench_now(b, p->threads) - start;
        if (peer < best.other) {
            best.other = peer;
            best.other_kernels = p->peer_kernels ? p->peer_kernels(p->arg) : 0;
        }
    }
    return best;
}

double bench_pairs(bench *b, const bench_pair *p)
{
    const int pairs = p->pairs ? p->pairs : b->pairs;
    if (bench_predicting()) return 1.0;
    double ours[100], ratio[100], self[100], peer[100], kernels[100], apart[100], last = 0.0;
    for (int i = -1; i < pairs; i++) { /* -1: warm both sides up */
        const turn t = best_turns(b, p);
        if (i >= 0) {
            ours[i] = t.mine;
            ratio[i] = t.other / t.mine;
            self[i] = last > 0 ? t.other / last : 0;
            peer[i] = t.other;
            kernels[i] = t.mine_kernels;
            apart[i] = t.mine_kernels > 0 ? t.other_kernels / t.mine_kernels : 0;
        }
        last = t.other;
    }
    qsort(kernels, (size_t)pairs, sizeof *kernels, by_size);
    qsort(apart, (size_t)pairs, sizeof *apart, by_size);
    qsort(ours, (size_t)pairs, sizeof *ours, by_size);
    qsort(ratio, (size_t)pairs, sizeof *ratio, by_size);
    qsort(self, (size_t)pairs, sizeof *self, by_size);
    qsort(peer, (size_t)pairs, sizeof *peer, by_size);
    line l = {.name = p->name,
              .shape = p->shape,
              .unit = p->unit,
              .peer = p->peer_name,
              .device = p->device,
              .threads = p->threads};
    l.seconds = quantile(ours, pairs, 0.5);
    l.rate = p->amount / l.seconds;
    l.fraction = p->limit > 0 ? l.rate / p->limit : 0;
    l.residual = p->residual ? p->residual(p->arg) : 0;
    l.median = quantile(ratio, pairs, 0.5);
    l.lower = quantile(ratio, pairs, 0.25);
    l.self = quantile(self, pairs, 0.25);
    l.kernels = quantile(kernels, pairs, 0.5);
    l.kernel_ratio = quantile(apart, pairs, 0.5);
    l.bar = p->bar;
    l.planned = p->planned;
    l.measured = p->measured;
    l.pass = l.lower >= p->bar && l.residual <= WRONG; /* fast and wrong is no pass */
    print_line(b, &l);
    return p->device ? quantile(peer, pairs, 0.5) : peer[0];
}

void bench_single(bench *b, const char *name, const char *shape, const double *seconds, int n,
                  double bound, const char *what)
{
    if (bench_predicting()) return;
    double sorted[100];
    memcpy(sorted, seconds, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    line l = {.name = name,
              .shape = shape,
              .unit = "/s",
              .peer = what,
              .device = b->device,
              .threads = 1,
              .bar = 1.0};
    l.seconds = quantile(sorted, n, 0.5);
    l.rate = 1 / l.seconds;
    l.median = bound / l.seconds;
    l.lower = bound / quantile(sorted, n, 0.75); /* the slow side */
    l.pass = l.lower >= 1.0;
    print_line(b, &l);
}
