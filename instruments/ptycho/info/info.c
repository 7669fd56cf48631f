/* info.c - what a scan holds, from its headers and a few patterns. */
#include "info.h"

#include "../scan/scan.h"
#include "../settings/verb.h"

#include <math.h>
#include <string.h>

enum { LOOKED_AT = 64, BATCH = 32 }; /* patterns that the dose is estimated from; per read */

typedef struct summary {
    pt_extent extent;
    double mean_power; /* of the patterns that were read */
    int64_t looked;
    double step;    /* median distance to the nearest neighbour, px */
    double overlap; /* share of a disc of the probe's width that its nearest neighbour covers */
    double width; /* of the probe: diameter of the disc with its second moment, px; NAN: no probe */
} summary;

/* ---- measurements ---- */

static double median(double *v, int64_t n)
{
    for (int64_t gap = n / 2; gap > 0; gap /= 2) /* Shell sort: n is a few hundred */
        for (int64_t i = gap; i < n; i++)
            for (int64_t j = i; j >= gap && v[j - gap] > v[j]; j -= gap) {
                const double t = v[j];
                v[j] = v[j - gap];
                v[j - gap] = t;
            }
    return n > 0 ? v[n / 2] : (double)NAN;
}

/* The median over at most 512 positions of the distance to the nearest other one. */
static double find_step(const pt_scan *scan)
{
    enum { MOST = 512 };
    double near[MOST];
    const int64_t stride = scan->n / MOST + 1;
    int64_t n = 0;
    for (int64_t i = 0; i < scan->n && n < MOST; i += stride) {
        double best = (double)INFINITY;
        for (int64_t j = 0; j < scan->n; j++) {
            const double dx = scan->x[i] - scan->x[j], dy = scan->y[i] - scan->y[j];
            if (j != i && dx * dx + dy * dy < best) best = dx * dx + dy * dy;
        }
        near[n++] = sqrt(best);
    }
    return median(near, n);
}

/* A uniform disc of diameter w has a second moment of w^2/8 about its centre. */
static double find_width(const pt_scan *scan)
{
    const int64_t N = scan->N;
    double all = 0, mx = 0, my = 0, m2 = 0;
    if (!scan->modes) return (double)NAN;
    for (int64_t i = 0; i < scan->modes * N * N; i++) {
        const double p =
            scan->probe[i].re * scan->probe[i].re + scan->probe[i].im * scan->probe[i].im;
        const double y = (double)(i / N % N), x = (double)(i % N);
        all += p;
        mx += p * x;
        my += p * y;
        m2 += p * (x * x + y * y);
    }
    const double spread = m2 / all - mx / all * (mx / all) - my / all * (my / all);
    return sqrt(8 * fmax(spread, 0));
}

static double disc_overlap(double d, double width)
{
    const double r = width / 2, pi = 3.14159265358979323846;
    if (!(d < 2 * r)) return 0;
    return (2 * r * r * acos(d / (2 * r)) - d / 2 * sqrt(4 * r * r - d * d)) / (pi * r * r);
}

static fth_status find_dose(pt_scan *scan, summary *s, fth_err *err)
{
    fth_source counts;
    void *room = NULL;
    const int64_t n = scan->N * scan->N, stride = (scan->n + LOOKED_AT - 1) / LOOKED_AT;
    FTH_TRY(pt_scan_view(scan, PT_COUNTS, FTH_F64, &counts, err));
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(double), "a pattern", &room,
                         err));
    fth_status status = FTH_OK;
    double sum = 0;
    for (int64_t i = 0; status == FTH_OK && i < scan->n; i += stride) {
        const int64_t lo[3] = {i, 0, 0}, one[3] = {1, scan->N, scan->N};
        status = counts.read(counts.self, lo, one, room, err);
        for (int64_t k = 0; status == FTH_OK && k < n; k++)
            if (!scan->mask || scan->mask[k]) sum += ((const double *)room)[k];
        s->looked++;
    }
    fth_mem_release(scan->mem, room, NULL);
    s->mean_power = pt_count_factor(scan) * sum / (double)s->looked;
    return status;
}

static fth_status summarise(pt_scan *scan, summary *s, fth_err *err)
{
    *s = (summary){.extent = pt_scan_extent(scan->x, scan->y, scan->n),
                   .step = find_step(scan),
                   .width = find_width(scan)};
    s->overlap = isnan(s->width) ? (double)NAN : disc_overlap(s->step, s->width);
    return find_dose(scan, s, err);
}

static void canvas_of(const pt_scan *scan, const pt_extent *e, int64_t *rows, int64_t *cols)
{
    *rows = (int64_t)ceil(e->max_y - e->min_y) + scan->N + 2;
    *cols = (int64_t)ceil(e->max_x - e->min_x) + scan->N + 2;
}

/* Object, its direction and its weight; probes; and for each pattern of a batch its counts, waves
 * and directions. */
static uint64_t solve_bytes(const pt_scan *scan, const pt_extent *e)
{
    int64_t rows, cols;
    canvas_of(scan, e, &rows, &cols);
    const int64_t n = scan->N * scan->N, modes = scan->modes ? scan->modes : 1;
    return (uint64_t)(rows * cols * 20 + 2 * modes * n * 8 + BATCH * n * (4 + 8 * (2 * modes + 4)));
}

/* ---- human-readable ---- */

static void print_size(FILE *out, const pt_scan *scan)
{
    char bytes[24];
    const uint64_t all =
        (uint64_t)(scan->n * scan->N * scan->N * fth_dtype_size(scan->patterns.dtype));
    fprintf(out, "format      %s\n", pt_format_names[scan->format]);
    fprintf(out, "patterns    %lld of %lld x %lld, %s of %s, %s\n", (long long)scan->n,
            (long long)scan->N, (long long)scan->N, pt_kind_names[scan->kind],
            fth_dtype_name(scan->patterns.dtype), fth_mem_format_size(all, bytes, sizeof bytes));
    fprintf(out, "kind        %s%s\n", pt_kind_names[scan->kind],
            scan->kind_is_declared ? ", as declared"
                                   : ", from the dtype; --data.kind overrides it");
}

static void print_metres(FILE *out, const char *name, double v, const char *unit)
{
    if (!isnan(v)) fprintf(out, "%-11s %.6g %s\n", name, v, unit);
}

static void print_all(FILE *out, const pt_scan *scan, const summary *s)
{
    const pt_extent *e = &s->extent;
    int64_t H, W;
    char bytes[24];
    canvas_of(scan, e, &H, &W);
    print_size(out, scan);
    fprintf(out, "positions   x %.2f to %.2f, y %.2f to %.2f px, sign %+d\n", e->min_x, e->max_x,
            e->min_y, e->max_y, scan->sign);
    fprintf(out, "step        %.2f px between neighbours\n", s->step);
    if (scan->modes)
        fprintf(out, "probe       %lld mode%s, %.1f px wide, overlap %.0f %%\n",
                (long long)scan->modes, scan->modes == 1 ? "" : "s", s->width, 100 * s->overlap);
    else
        fprintf(out, "probe       none\n");
    if (scan->object.n_axes)
        fprintf(out, "object      %lld x %lld\n", (long long)scan->object.size[0],
                (long long)scan->object.size[1]);
    if (scan->mask || scan->masks.n_axes)
        fprintf(out, "mask        %s\n", scan->mask ? "one for all patterns" : "one per pattern");
    fprintf(out, "dose        %.4g counts per pattern, the mean of %lld patterns\n", s->mean_power,
            (long long)s->looked);
    print_metres(out, "nphotons", scan->meta.nphotons, "");
    print_metres(out, "energy", scan->meta.energy_eV, "eV");
    print_metres(out, "distance", scan->meta.distance_m, "m");
    print_metres(out, "detector", scan->meta.detector_pixel_m, "m per pixel");
    print_metres(out, "pixel", scan->meta.pixel_m, "m, of the object");
    fprintf(out, "canvas      %lld x %lld\n", (long long)H, (long long)W);
    fprintf(out,
            "memory      %s of arrays to solve it by LSQ-ML, %d patterns at a time; the "
            "least --memory is a few MiB more\n",
            fth_mem_format_size(solve_bytes(scan, e), bytes, sizeof bytes), (int)BATCH);
    for (int64_t i = 0; i < fth_texts_count(scan->notes); i++)
        fprintf(out, "warning     %s\n", fth_texts_get(scan->notes, i));
}

/* ---- JSON ---- */

static void write_all(fth_json_writer *w, const pt_scan *scan, const summary *s)
{
    const pt_extent *e = &s->extent;
    fth_json_text(w, "format", pt_format_names[scan->format]);
    fth_json_int(w, "patterns", scan->n);
    fth_json_int(w, "size", scan->N);
    fth_json_text(w, "kind", pt_kind_names[scan->kind]);
    fth_json_bool(w, "kind_is_declared", scan->kind_is_declared);
    fth_json_text(w, "dtype", fth_dtype_name(scan->patterns.dtype));
    fth_json_open_row(w, "x", '[');
    fth_json_real(w, NULL, e->min_x);
    fth_json_real(w, NULL, e->max_x);
    fth_json_close(w);
    fth_json_open_row(w, "y", '[');
    fth_json_real(w, NULL, e->min_y);
    fth_json_real(w, NULL, e->max_y);
    fth_json_close(w);
    fth_json_int(w, "positions_sign", scan->sign);
    fth_json_real(w, "step", s->step);
    fth_json_real(w, "overlap", s->overlap);
    fth_json_real(w, "probe_width", s->width);
    fth_json_int(w, "modes", scan->modes);
    fth_json_open_row(w, "object", '[');
    for (int a = 0; a < scan->object.n_axes; a++) fth_json_int(w, NULL, scan->object.size[a]);
    fth_json_close(w);
    fth_json_bool(w, "mask", scan->mask || scan->masks.n_axes);
    fth_json_real(w, "mean_counts", s->mean_power);
    fth_json_int(w, "patterns_looked_at", s->looked);
    fth_json_real(w, "nphotons", scan->meta.nphotons);
    fth_json_real(w, "energy_eV", scan->meta.energy_eV);
    fth_json_real(w, "distance_m", scan->meta.distance_m);
    fth_json_real(w, "detector_pixel_m", scan->meta.detector_pixel_m);
    fth_json_real(w, "pixel_m", scan->meta.pixel_m);
    int64_t rows, cols;
    canvas_of(scan, e, &rows, &cols);
    fth_json_open_row(w, "canvas", '[');
    fth_json_int(w, NULL, rows);
    fth_json_int(w, NULL, cols);
    fth_json_close(w);
    fth_json_u64(w, "solve_bytes", solve_bytes(scan, e));
    fth_json_int(w, "bytes", scan->n * scan->N * scan->N * fth_dtype_size(scan->patterns.dtype));
    fth_json_open(w, "warnings", '[');
    for (int64_t i = 0; i < fth_texts_count(scan->notes); i++)
        fth_json_text(w, NULL, fth_texts_get(scan->notes, i));
    fth_json_close(w);
}

static fth_status describe(const pt_call *call, fth_err *err)
{
    const char *path = call->arg[0];
    fth_answer *a = call->answer;
    pt_scan scan;
    pt_scan_options opt;
    summary sum;
    pt_scan_options_read(call->cfg, &opt);
    FTH_TRY(pt_scan_open(&scan, call->ctx, path, &opt, err));
    fth_answer_file(a, FTH_FILE_INPUT, path, -1, "scan");
    const fth_status s = summarise(&scan, &sum, err);
    if (s == FTH_OK) {
        print_all(a->out, &scan, &sum);
        if (a->json) write_all(fth_answer_facts(a), &scan, &sum);
    }
    pt_scan_close(&scan);
    return s;
}

PT_RUN(1, "one scan is", "fathom ptycho info SCAN", describe)

static const fth_flag flags[] = {
#define DATA(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {0}};

const fth_verb pt_verb_info = {
    .name = "info",
    .args = "SCAN",
    .brief = "show the contents of a scan: patterns, positions, probe, dose, pixel size",
    .doc = "Reads the headers of an NPZ, CXI, ptyd or HDF5 file, its positions and probe, and at "
           "most 64 patterns spread over the scan.\n"
           "\n"
           "With --json: patterns, size, kind, dtype, x, y, step, overlap, modes, object, "
           "mean_counts, energies and sizes, warnings; unknown values are null.",
    .max_args = 1,
    .flag = flags,
    .heeds = "json", /* nothing to plan: it only reads and prints */
    .run = run};
