/* predict.c - how near the predicted seconds of plans are: fathom-bench --predict.
 *
 * Every program that a case plans by bench_plan is run a few times instead of being held against a
 * peer, and so are the programs below, each on one worker and on two: one kind of kernel each, in
 * a cache and in memory. The goal is a factor of 1.3 either way. Programs of predict_held.c are
 * counted by themselves. With --rates FOLDER every case is planned twice, by the built-in rates and
 * by those that `fathom doctor --calibrate` left there.
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

/* Cases of the benches and held-out ones, each by built-in and by measured rates. */
typedef struct tally {
    int cases, near;
    double worst, off[MOST]; /* |log ratio| */
    char worst_name[80];
} tally;

static struct {
    const bench *b; /* NULL: not asked */
    char name[64];
    bool measured; /* rates */
    int lines;
    tally tally[2][2]; /* held out, measured rates */
} told;

void bench_predict_on(const bench *b)
{
    told.b = b;
}

void bench_predict_by(bool measured)
{
    told.measured = measured;
}

const char *bench_predict_rates(void)
{
    return told.b && told.measured ? told.b->rates : NULL;
}

bool bench_predicting(void)
{
    return told.b != NULL;
}

void bench_predict_name(const char *name)
{
    snprintf(told.name, sizeof told.name, "%s", name);
}

/* Runs of it until a fifth of a second is over, at least three; the fastest counts. */
static double fastest(bench_program *p)
{
    /* processors' time is that of all workers */
    const int workers = told.b->cpu_clock ? fth_context_threads(p->ctx) : 1;
    double best = 1e30, all = 0.0;
    for (int i = 0; p->status == FTH_OK && i < 200 && (i < 3 || all < 0.2); i++) {
        const double start = bench_now(told.b, workers);
        /* without a report, which asks the system how much memory there was: 50 us */
        p->status = fth_run(p->plan, p->sink, NULL, NULL, &p->err);
        const double took = bench_now(told.b, workers) - start;
        all += took * workers;
        if (took < best) best = took;
    }
    return best;
}

static void count(double ratio, int threads)
{
    tally *t = &told.tally[strncmp(told.name, "held_", 5) == 0][told.measured];
    const double off = fabs(log(ratio));
    if (t->cases >= MOST) return;
    t->off[t->cases++] = off;
    t->near += off <= log(1.3);
    if (off <= t->worst) return;
    t->worst = off;
    snprintf(t->worst_name, sizeof t->worst_name, "%s on %d", told.name, threads);
}

void bench_predicted(bench_program *p, double first)
{
    if (!told.b || p->status != FTH_OK) return;
    const double seconds = fastest(p);
    bench_go(p); /* with a report: it knows which pages a run like those before it touches again */
    const double predicted = p->report.predicted_seconds, ratio = predicted / seconds;
    const int threads = fth_context_threads(p->ctx);
    char where[24];
    if (told.b->device)
        snprintf(where, sizeof where, "%s", told.b->device);
    else
        snprintf(where, sizeof where, "cpu:%d", threads);
    if (told.lines++ == 0)
        printf("%-36s %-6s %-8s %6s %12s %12s %7s %12s %12s\n", "case", "device", "rates", "chunks",
               "predicted", "measured", "ratio", "first pred.", "first");
    printf("%-36s %-6s %-8s %6lld %12.6f %12.6f %7.2f %12.6f %12.6f%s\n", told.name, where,
           told.measured ? "measured" : "built-in", (long long)p->info.chunks, predicted, seconds,
           ratio, p->info.seconds + p->info.touch_seconds, first,
           fabs(log(ratio)) <= log(1.3) ? "" : "  OFF");
    fflush(stdout);
    count(ratio, threads);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_predict_end(void)
{
    for (int held = 0; told.b && held < 2; held++)
        for (int measured = 0; measured < 2; measured++) {
            tally *t = &told.tally[held][measured];
            if (t->cases == 0) continue;
            qsort(t->off, (size_t)t->cases, sizeof *t->off, by_size);
            printf("%s, %s rates: %d of %d within 30 %%, median %.2f times off, the worst %s: %.2f "
                   "times off\n",
                   held ? "held out" : "cases", measured ? "measured" : "built-in", t->near,
                   t->cases, exp(t->off[t->cases / 2]), t->worst_name, exp(t->worst));
        }
}

/* ---- programs of one kind each ---- */

typedef fth_val make_fn(fth_graph *g, fth_val x, fth_val w);

static fth_val number(fth_val like, double v)
{
    return fth_const(like.graph, fth_val_dtype(like), v);
}
static fth_val make_light(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    return fth_add(fth_mul(x, x), number(x, 0.5));
}
static fth_val make_exp(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    return fth_exp(fth_mul(fth_sqr(x), number(x, -0.5)));
}
static fth_val make_functions(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    return fth_add(fth_tanh(x), fth_sqrt(fth_add(fth_log(fth_add(x, number(x, 2.0))), x)));
}
static fth_val make_sum_rows(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    return fth_sum(x, "j");
}
static fth_val make_sum_columns(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    return fth_sum(x, "i");
}
static fth_val make_standard(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    const fth_val d = fth_sub(x, fth_expand(fth_mean(x, "j"), "j"));
    const fth_val scale = fth_sqrt(fth_add(fth_mean(fth_sqr(d), "j"), number(x, 1e-3)));
    return fth_div(d, fth_expand(scale, "j"));
}
static fth_val make_softmax(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    const fth_val e = fth_exp(fth_sub(x, fth_expand(fth_rmax(x, "j"), "j")));
    return fth_div(e, fth_expand(fth_sum(e, "j"), "j"));
}
static fth_val make_turn(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    return fth_layout(x, "j i");
}
static fth_val make_product(fth_graph *g, fth_val x, fth_val w)
{
    (void)g;
    return fth_dot(x, w, "j");
}
static fth_val make_layer(fth_graph *g, fth_val x, fth_val w)
{
    (void)g;
    return fth_tanh(fth_dot(x, w, "j"));
}
static fth_val make_random(fth_graph *g, fth_val x, fth_val w)
{
    (void)w;
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    return fth_add(x, fth_uniform(fth_val_dtype(x), "i j", zero, zero, 1));
}
static fth_val make_sort(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    return fth_sort(x, "j", false);
}
static fth_val make_rolls(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    fth_val sum = x;
    for (int i = 1; i < 5; i++) sum = fth_add(sum, fth_roll(x, "j", i));
    return sum;
}
static fth_val make_fft(fth_graph *g, fth_val x, fth_val w)
{
    (void)g, (void)w;
    return fth_fft(fth_complex(x, x), "j", "j2");
}

typedef struct kind {
    const char *name;
    make_fn *make;
    bool large; /* tried in memory too */
} kind;
static const kind kinds[] = {
    {"light", make_light, true},
    {"exp", make_exp, true},
    {"functions", make_functions, true},
    {"sum_rows", make_sum_rows, true},
    {"sum_columns", make_sum_columns, true},
    {"standardise", make_standard, true},
    {"softmax", make_softmax, true},
    {"turn", make_turn, true},
    {"product", make_product, true},
    {"layer", make_layer, true},
    {"random", make_random, true},
    {"sort", make_sort, false},
    {"rolls", make_rolls, true},
    {"fft", make_fft, true},
};

enum { COLUMNS = 512, OUT = 256 };

static void one(bench *b, const kind *k, int64_t rows, fth_dtype dtype, int threads)
{
    char name[64];
    snprintf(name, sizeof name, "predict_%s_%s_%s", k->name, fth_dtype_name(dtype),
             rows > 4096 ? "large" : "small");
    if (!bench_wants(b, name)) return;
    const uint64_t item = (uint64_t)fth_dtype_size(dtype), n = (uint64_t)rows * COLUMNS;
    void *x = bench_array(n * item), *w = bench_array((uint64_t)COLUMNS * OUT * item),
         *y = bench_array(n * 2 * item);
    if (dtype == FTH_F64) {
        bench_fill_f64(x, (int64_t)n, 1, 0, 1);
        bench_fill_f64(w, COLUMNS * OUT, 2, -1, 1);
    } else {
        bench_fill_f32(x, (int64_t)n, 1, 0, 1);
        bench_fill_f32(w, COLUMNS * OUT, 2, -1, 1);
    }
    bench_program p;
    bench_open(&p, threads);
    fth_axis(p.g, "i", rows);
    fth_axis(p.g, "j", COLUMNS);
    fth_axis_like(p.g, "j2", "j");
    fth_axis(p.g, "k", OUT);
    const fth_val X = bench_input(&p, "x", dtype, "i j", x),
                  W = bench_input(&p, "w", dtype, "j k", w);
    bench_output(&p, k->make(p.g, X, W), y);
    bench_plan(&p, 0, true);
    bench_close(&p);
    free(x);
    free(w);
    free(y);
}

void bench_predict(bench *b)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int threads = 1; threads <= 2; threads++) {
            one(b, &kinds[i], 1024, FTH_F32, threads);
            one(b, &kinds[i], 1024, FTH_F64, threads);
            if (kinds[i].large) one(b, &kinds[i], 1 << 16, FTH_F32, threads);
        }
}
