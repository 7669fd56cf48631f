/* test_predict.c - predicted seconds: what they grow with, and the rates they stand on.
 * seconds: 5
 *
 * How near they are is measured by fathom-bench --predict; here, what must hold on any machine.
 */
#include "testing/engine/host_device.h"
#include "testing/engine/op_harness.h"

#include "base/clock.h"
#include "plan/plan.h"
#include "plan/rates.h"

#include <fathom/rates.h>
#include <stdlib.h>
#include <unistd.h>

static fth_context *context(int threads, const char *cache)
{
    fth_options opt;
    fth_context *ctx;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = threads;
    opt.cache_dir = cache;
    opt.mem.budget_bytes = (uint64_t)8 << 30;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static void context_free(fth_context *ctx)
{
    fth_err err = {0};
    OKE(fth_context_destroy(ctx, &err), &err);
}

static fth_status no_read(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)dst;
    return FTH_FAIL(err, FTH_E_FILE_READ, "nothing here is run");
}

/* x of these sizes, whose data nothing reads. */
static fth_val unread(fth_graph *g, int64_t i, int64_t j)
{
    const fth_source s = {
        .kind = "unread", .dtype = FTH_F32, .n_axes = 2, .size = {i, j}, .read = no_read};
    fth_axis(g, "i", i);
    fth_axis(g, "j", j);
    return fth_input(g, "x", FTH_F32, "i j", s);
}

typedef fth_val make_fn(fth_val x);
static fth_val add(fth_val x)
{
    return fth_add(x, fth_const(x.graph, FTH_F32, 1.0));
}
static fth_val functions(fth_val x)
{
    return fth_exp(fth_tanh(fth_log(x)));
}
static fth_val product(fth_val x)
{
    fth_axis_like(x.graph, "j2", "j");
    return fth_dot(x, fth_expand(fth_sum(fth_rename(x, "j", "j2"), "i"), "j"), "j");
}

static fth_plan_info predicted(fth_context *ctx, make_fn *make, int64_t i, int64_t j,
                               const fth_limits *limits)
{
    fth_err err = {0};
    fth_plan_info info;
    fth_graph *g = fth_graph_create(ctx);
    const fth_val v = make(unread(g, i, j));
    fth_plan *p = fth_plan_make(g, &v, 1, limits, &err);
    if (!p) OKE(err.status, &err);
    fth_plan_get_info(p, &info);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return info;
}

TEST(seconds_grow_with_the_work)
{
    make_fn *const make[] = {add, functions, product};
    fth_context *ctx = context(1, NULL);
    for (int k = 0; k < 3; k++) {
        const double small = predicted(ctx, make[k], 512, 512, NULL).seconds,
                     large = predicted(ctx, make[k], 8192, 512, NULL).seconds;
        IS_TRUE(small > 0.0 && large > 8.0 * small && large < 64.0 * small);
    }
    const fth_plan_info light = predicted(ctx, add, 2048, 512, NULL),
                        heavy = predicted(ctx, functions, 2048, 512, NULL);
    IS_TRUE(heavy.seconds > light.seconds);
    IS_TRUE(light.touch_seconds > 0.0);
    EQ_I64((int64_t)predicted(ctx, add, 0, 512, NULL).touch_seconds, 0);
    context_free(ctx);
}

TEST(more_workers_take_less_time_and_pieces_cost)
{
    fth_context *one = context(1, NULL), *two = context(2, NULL);
    const double s1 = predicted(one, functions, 4096, 512, NULL).seconds,
                 s2 = predicted(two, functions, 4096, 512, NULL).seconds;
    IS_TRUE(s2 < 0.95 * s1 && s2 > 0.4 * s1);
    const fth_limits many = {.min_pieces = 512, .stream = "i"}, few = {.min_pieces = 2};
    const fth_plan_info cut = predicted(one, add, 512, 16, &many);
    EQ_I64(cut.chunks, 512);
    IS_TRUE(cut.seconds > predicted(one, add, 512, 16, &few).seconds);
    context_free(one);
    context_free(two);
}

static fth_val sorted(fth_val x)
{
    return fth_sort(x, "j", false);
}
static fth_val ordered(fth_val x)
{
    return fth_out(fth_sort(x, "j", false), 1);
}
static fth_val gathered(fth_val x)
{
    fth_axis(x.graph, "k", fth_axis_size(x.graph, "i"));
    const fth_val index = fth_cast(fth_index(x.graph, "k"), FTH_I64);
    return fth_sort(fth_gather(x, "i", index), "j", false); /* no program reads the rows */
}
static fth_val summed(fth_val x)
{
    return fth_sum(x, "j");
}
static fth_val summed_taps(fth_val x)
{
    fth_axis(x.graph, "tap", 2);
    return fth_sum(fth_window(x, "j", 0, "tap", FTH_BORDER_CLAMP), "tap");
}
static fth_val times_vector(fth_val x)
{
    return fth_dot(x, fth_sum(fth_mul(x, x), "i"), "j");
}
static fth_val normal(fth_val x)
{
    const fth_val zero = fth_const_i64(x.graph, FTH_I64, 0);
    return fth_mul(x, fth_normal(FTH_F32, "i j", zero, zero, 1));
}
static fth_val uniform(fth_val x)
{
    const fth_val zero = fth_const_i64(x.graph, FTH_I64, 0);
    return fth_mul(x, fth_uniform(FTH_F32, "i j", zero, zero, 1));
}

static fth_val quotient(fth_val x)
{
    return fth_div(x, fth_add(x, fth_const(x.graph, FTH_F32, 1.0)));
}
static fth_val sine(fth_val x)
{
    return fth_sin(x);
}
static fth_val sine_of_doubles(fth_val x)
{
    return fth_sin(fth_cast(x, FTH_F64));
}
static fth_val log_gamma(fth_val x)
{
    return fth_lgamma(x);
}
static fth_val power(fth_val x)
{
    return fth_pow(x, fth_add(x, fth_const(x.graph, FTH_F32, 1.0)));
}

/* n neighbours along rows of memory, which bring the same bytes. */
static fth_val neighbours(fth_val x, int n)
{
    fth_axis(x.graph, "k", fth_axis_size(x.graph, "i") - 8);
    fth_val sum = fth_slice(x, "i", 0, "k");
    for (int d = 1; d < n; d++) sum = fth_add(sum, fth_slice(x, "i", d, "k"));
    return sum;
}
static fth_val two_neighbours(fth_val x)
{
    return neighbours(x, 2);
}
static fth_val five_neighbours(fth_val x)
{
    return neighbours(x, 5);
}
static fth_val variance(fth_val x)
{
    return fth_variance(x, "j");
}
static fth_val log_sum(fth_val x)
{
    return fth_logsumexp(x, "j");
}
static fth_val half_of_the_best(fth_val x)
{
    fth_axis(x.graph, "k", fth_axis_size(x.graph, "j") / 2);
    return fth_topk(x, "j", "k", true);
}
static fth_val some_of_the_best(fth_val x)
{
    fth_axis(x.graph, "k", 100);
    return fth_topk(x, "j", "k", true);
}
static fth_val transformed(fth_val x)
{
    fth_axis_like(x.graph, "j2", "j");
    return fth_fft(fth_complex(x, x), "j", "j2");
}

/* What each kernel does for an element, in any machine's time. */
TEST(kernels_along_lines_are_told_apart)
{
    char folder[] = "/tmp/fathom-rates-XXXXXX", command[64];
    double value[FTH__RATE_COUNT];
    fth_err err = {0};
    IS_TRUE(mkdtemp(folder) != NULL);
    fth_context *ctx = context(1, folder);
    fth__rates_built_in(value);
    value[FTH__RATE_FILE] = 1e6; /* what is read and written takes no time */
    OKE(fth__rates_save(ctx, value, 1, &err), &err);
    context_free(ctx);
    ctx = context(1, folder);
#define SECONDS(make, i, j) predicted(ctx, make, i, j, NULL).seconds
    /* positions cost more than values, long lines more than short ones, but no leap between */
    IS_TRUE(SECONDS(ordered, 4096, 64) > 1.5 * SECONDS(sorted, 4096, 64));
    IS_TRUE(SECONDS(sorted, 512, 512) < 1.5 * SECONDS(sorted, 1024, 256));
    IS_TRUE(SECONDS(sorted, 64, 4096) > SECONDS(sorted, 1024, 256));
    /* rows of one element cost four times as much for an element as rows of 16 (0.128 and 0.034 ms
     * were measured); that they are predicted at twice is asked for */
    IS_TRUE(SECONDS(gathered, 1 << 18, 1) - SECONDS(sorted, 1 << 18, 1) >
            2.0 * (SECONDS(gathered, 1 << 14, 16) - SECONDS(sorted, 1 << 14, 16)));
    /* two taps are twice the additions, and every strip of results is begun and stored */
    IS_TRUE(SECONDS(summed_taps, 512, 512) > 2.5 * SECONDS(summed, 512, 512));
    /* short rows of a matrix cost their beginning */
    IS_TRUE(SECONDS(times_vector, 1 << 16, 16) > 2.0 * SECONDS(times_vector, 1 << 10, 1 << 10));
    IS_TRUE(SECONDS(normal, 512, 512) > 1.7 * SECONDS(uniform, 512, 512));
    /* functions have rates of their own */
    IS_TRUE(SECONDS(quotient, 512, 512) > 1.2 * SECONDS(add, 512, 512));
    IS_TRUE(SECONDS(sine, 512, 512) > 2.0 * SECONDS(quotient, 512, 512));
    IS_TRUE(SECONDS(sine_of_doubles, 512, 512) > 1.7 * SECONDS(sine, 512, 512));
    IS_TRUE(SECONDS(log_gamma, 512, 512) > 3.0 * SECONDS(sine, 512, 512));
    IS_TRUE(SECONDS(power, 512, 512) > 3.0 * SECONDS(sine, 512, 512));
    IS_TRUE(SECONDS(five_neighbours, 1 << 16, 512) < 1.5 * SECONDS(two_neighbours, 1 << 16, 512));
    /* lines twice; exponentials of f64 */
    IS_TRUE(SECONDS(variance, 512, 512) < 10.0 * SECONDS(summed, 512, 512));
    IS_TRUE(SECONDS(log_sum, 512, 512) > 10.0 * SECONDS(summed, 512, 512));
    IS_TRUE(SECONDS(half_of_the_best, 4, 1 << 18) > 10.0 * SECONDS(some_of_the_best, 4, 1 << 18));
    /* each of few long lines is the more, by roots that are made for all */
    IS_TRUE(SECONDS(transformed, 2, 1 << 16) >
            1.5 * (SECONDS(transformed, 4, 1 << 16) - SECONDS(transformed, 2, 1 << 16)));
    /* 509 is a prime number: its transform is a convolution of 1024 */
    IS_TRUE(SECONDS(transformed, 1024, 509) > 2.5 * SECONDS(transformed, 1024, 512));
    context_free(ctx);
    snprintf(command, sizeof command, "rm -r %s", folder);
    EQ_I64(system(command), 0);
}

/* ---- the file of measured rates ---- */

static void read_rates(const char *folder, char *text, size_t bytes)
{
    char path[600];
    snprintf(path, sizeof path, "%s/rates.json", folder);
    FILE *f = fopen(path, "r");
    IS_TRUE(f != NULL);
    text[fread(text, 1, bytes - 1, f)] = '\0';
    fclose(f);
}

static void write_rates(const char *folder, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/rates.json", folder);
    FILE *f = fopen(path, "w");
    IS_TRUE(f != NULL);
    fputs(text, f);
    fclose(f);
}

static double rate_named(const fth_context *ctx, const char *name)
{
    fth_rate r;
    for (int i = 0; fth_context_get_rate(ctx, i, &r); i++)
        if (strcmp(r.name, name) == 0) return r.value;
    return -1.0;
}

TEST(measured_rates_are_found_again_and_only_on_their_cpu)
{
    char folder[] = "/tmp/fathom-rates-XXXXXX", path[600];
    IS_TRUE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/deep/down", folder);
    fth_err err = {0};
    fth_context *ctx = context(1, path);
    HAS(fth_context_rates(ctx), "built in");
    const double before = predicted(ctx, functions, 2048, 512, NULL).seconds;
    double value[FTH__RATE_COUNT];
    fth_rate r;
    for (int i = 0; fth_context_get_rate(ctx, i, &r); i++) value[i] = r.value;
    EQ_I64(fth_context_get_rate(ctx, FTH__RATE_COUNT, &r), false);
    EQ_I64(fth_context_get_rate(ctx, -1, &r), false);
    static const fth__rate_id slower[] = {FTH__RATE_EXP_F32, FTH__RATE_LOG_F32, FTH__RATE_TANH_F32};
    for (int i = 0; i < 3; i++) value[slower[i]] /= 64.0;
    OKE(fth__rates_save(ctx, value, 1, &err), &err);
    context_free(ctx);
    ctx = context(1, path);
    HAS(fth_context_rates(ctx), "measured on this CPU");
    IS_TRUE(rate_named(ctx, "exp_f32") == value[FTH__RATE_EXP_F32]);
    IS_TRUE(predicted(ctx, functions, 2048, 512, NULL).seconds > 8.0 * before);
    context_free(ctx);
    /* nothing of these is taken, and planning goes on: the third has the name of another rate */
    static char whole[1 << 14];
    read_rates(path, whole, sizeof whole);
    char *const name = strstr(whole, "\"exp_f32\"");
    IS_TRUE(name != NULL);
    name[1] = 'E';
    const char *const bad[] = {"{\"cpu\": \"Another\", \"rates\": {\"exp_f32\": 1}}", "{", whole,
                               "", "[1]"};
    for (int i = 0; i < 5; i++) {
        write_rates(path, bad[i]);
        ctx = context(1, path);
        HAS(fth_context_rates(ctx), "built in, because");
        IS_TRUE(rate_named(ctx, "exp_f32") == value[FTH__RATE_EXP_F32] * 64.0);
        context_free(ctx);
    }
    snprintf(path, sizeof path, "rm -r %s", folder);
    EQ_I64(system(path), 0);
}

enum { SMALL = 8 << 20 }; /* matrices of 256 rows: measured in a second or so */

static fth_context *context_on_device(const char *cache, uint64_t device_bytes)
{
    fth_options opt;
    fth_context *ctx;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.cache_dir = cache;
    opt.mem.budget_bytes = (uint64_t)8 << 30;
    opt.device_memory_bytes = device_bytes;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

TEST(rates_of_a_device_are_measured_beside_those_of_the_processors)
{
    static const char *const rows[] = {"gpu_memory",      "gpu_ops",          "gpu_product",
                                       "gpu_product_f64", "gpu_product_half", "gpu_copy",
                                       "gpu_run",         "gpu_step"};
    char folder[] = "/tmp/fathom-rates-XXXXXX", command[64], text[4096];
    double built_in[8];
    fth_err err = {0};
    IS_TRUE(mkdtemp(folder) != NULL);
    fth_context *ctx = context(1, folder);
    double value[FTH__RATE_COUNT];
    fth__rates_built_in(value);
    value[FTH__RATE_EXP_F32] = 3.0;
    OKE(fth__rates_save(ctx, value, 1, &err), &err);
    for (int i = 0; i < 8; i++) built_in[i] = rate_named(ctx, rows[i]);
    context_free(ctx);

    ctx = context_on_device(folder, SMALL);
    OKE(fth_rates_measure(ctx, &err), &err);
    context_free(ctx);
    ctx = context_on_device(folder, SMALL);
    HAS(fth_context_rates(ctx), "and on ");
    IS_TRUE(rate_named(ctx, "exp_f32") == 3.0);
    int changed = 0; /* small differences of times may be lost */
    for (int i = 0; i < 8; i++) changed += rate_named(ctx, rows[i]) != built_in[i];
    IS_TRUE(changed >= 4);
    IS_TRUE(rate_named(ctx, "gpu_run") != built_in[6]);
    context_free(ctx);

    /* measured on another device: those rows are the built-in ones */
    read_rates(folder, text, sizeof text);
    char *name = strstr(text, "\"device\": \"");
    IS_TRUE(name != NULL);
    name[strlen("\"device\": \"")] ^= 1;
    write_rates(folder, text);
    ctx = context_on_device(folder, SMALL);
    for (int i = 0; i < 8; i++) IS_TRUE(rate_named(ctx, rows[i]) == built_in[i]);
    IS_TRUE(rate_named(ctx, "exp_f32") == 3.0);
    context_free(ctx);
    snprintf(command, sizeof command, "rm -r %s", folder);
    EQ_I64(system(command), 0);
}

static fth_val image_transformed(fth_val x)
{
    fth_axis_like(x.graph, "i2", "i");
    fth_axis_like(x.graph, "j2", "j");
    return fth_fft(fth_complex(x, x), "i j", "i2 j2");
}
static fth_val factored(fth_val x)
{
    fth_axis_like(x.graph, "j2", "j");
    return fth_cholesky(fth_dot(x, fth_rename(x, "j", "j2"), "i"), "j", "j2");
}

/* By built-in rates, what was measured of an H200; copies to the device and back take longer. */
TEST(a_device_has_models_of_its_own)
{
    fth_context *ctx = context_on_device(NULL, (uint64_t)8 << 30);
    /* both axes of a large image go through memory */
    IS_TRUE(SECONDS(image_transformed, 8192, 8192) - SECONDS(transformed, 8192, 8192) > 1e-4);
    /* columns of a factor wait for each other, where a product has none */
    IS_TRUE(SECONDS(factored, 64, 3000) > 0.9e-3 && SECONDS(factored, 64, 3000) < 3e-3);
    context_free(ctx);
}

TEST(a_cache_directory_that_cannot_be_is_said_before_measuring)
{
    fth_err err = {0};
    fth_context *ctx = context(1, "/dev/null/here");
    const double start = fth__clock_seconds();
    IS(fth_rates_measure(ctx, &err), FTH_E_FILE_WRITE);
    IS_TRUE(fth__clock_seconds() - start < 0.5);
    HAS(err.text, "/dev/null/here");
    context_free(ctx);
}

TEST(without_a_cache_directory_nothing_is_written)
{
    fth_err err = {0};
    fth_context *ctx = context(1, NULL);
    double value[FTH__RATE_COUNT] = {0};
    IS(fth__rates_save(ctx, value, 1, &err), FTH_E_USAGE);
    HAS(err.hint, "cache_dir");
    context_free(ctx);
}

TEST(a_plan_says_its_seconds)
{
    char text[8192];
    fth_err err = {0};
    fth_context *ctx = context(1, NULL);
    fth_graph *g = fth_graph_create(ctx);
    const fth_val v = functions(unread(g, 64, 64));
    fth_plan *p = fth_plan_make(g, &v, 1, NULL, &err);
    if (!p) OKE(err.status, &err);
    for (int json = 0; json < 2; json++) {
        FILE *f = tmpfile();
        OK(json ? fth_plan_print_json(p, f) : fth_plan_print(p, f));
        rewind(f);
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
        HAS(text, json ? "\"touch_seconds\"" : "predicted");
        HAS(text, "built in");
    }
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    context_free(ctx);
}

TEST_MAIN()
