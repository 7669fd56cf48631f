/* test_splat_device.c - densification of rows that lie on a device alone, against that of the host:
 * with a device made of threads, whose kernels are the plain loops, and where FATHOM_TEST_DEVICE
 * names a backend with its kernels.
 *
 * labels: gpu
 * seconds: 5
 */
#include "instruments/splat/strategy/parts.h"
#include "instruments/splat/strategy/row_ops.h"
#include "testing/engine/op_device.h"
#include "testing/engine/op_harness.h"
#include "testing/splat/splat_device.h"

#include <math.h>
#include <stdlib.h>

static const uint64_t MiB = 1 << 20;

/* The same rows on the device of a context. */
static void send(gs_rows *to, fth_context *ctx, const gs_rows *from)
{
    gs_rows_memory m;
    OK(gs_rows_open(from, &m, NULL));
    OK(gs_rows_create(to, ctx, from->n, from->most, from->degree, from->flags | GS_ROWS_DEVICE,
                      NULL));
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            if (to->tensor[p][a])
                OK(fth_tensor_put_rows(to->tensor[p][a], 0, to->n, m.at[p][a], NULL));
    if (to->densify) OK(fth_tensor_put_rows(to->densify, 0, to->n, m.densify, NULL));
}

/* Bits where nothing is computed; places of children and halved opacities to 1e-6, and sizes of
 * families to `size`. */
static void compare(const gs_rows *here, const gs_rows *there, double size)
{
    gs_rows_memory m;
    EQ_I64(there->n, here->n);
    OK(gs_rows_open(here, &m, NULL));
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            const int64_t columns = gs_columns((gs_attribute)a, here->degree);
            if (!here->tensor[p][a] || columns == 0) continue;
            float *v = malloc((size_t)(here->n * columns + 1) * sizeof *v);
            OK(fth_tensor_get_rows(there->tensor[p][a], 0, here->n, v, NULL));
            const bool near = a == GS_MEANS || a == GS_OPACITY;
            const double most = p != GS_VALUE ? 0 : near ? 1e-6 : a == GS_SCALING ? size : 0;
            for (int64_t i = 0; i < here->n * columns; i++)
                NEAR(v[i], m.at[p][a][i], most * (1 + fabs((double)v[i])));
            free(v);
        }
    IS_TRUE(!here->densify == !there->densify);
    if (!there->densify) return;
    float *v = malloc((size_t)(there->n + 1) * 2 * sizeof *v);
    OK(fth_tensor_get_rows(there->densify, 0, there->n, v, NULL));
    for (int64_t i = 0; i < 2 * there->n; i++) EQ_F64(v[i], 0);
    free(v);
}

static void refine_there(int64_t n, int degree, unsigned flags, const gs_adc_rules *rules,
                         int64_t iteration, fth_context *device)
{
    fth_context *host = t_rows_context(2, 256 * MiB);
    gs_rows here, there;
    gs_adc_counts a, b;
    fth_err err = {0};
    t_rows_make(&here, host, n, 2 * n + 1, degree, flags, (uint64_t)n);
    send(&there, device, &here);
    fth_mem_mark(there.mem);
    OKE(gs_adc_refine(&there, rules, iteration, &b, &err), &err);
    if (n > 0) EQ_U64(there.held, there.planned);
    gs_adc_rules same = *rules; /* where the device has less room, so has the host */
    if (b.cap > 0) same.max_cap = b.cap;
    IS_TRUE(n < 50000 || b.cap > 0);
    OKE(gs_adc_refine(&here, &same, iteration, &a, &err), &err);
    EQ_I64(b.dup, a.dup);
    EQ_I64(b.split, a.split);
    EQ_I64(b.pruned, a.pruned);
    EQ_I64(b.n, a.n);
    EQ_I64(b.wanted, a.wanted);
    compare(&here, &there, 0);
    gs_rows_free(&here);
    gs_rows_free(&there);
    OK(fth_context_destroy(host, NULL));
}

static void refine_both(int64_t n, int degree, unsigned flags, const gs_adc_rules *rules,
                        int64_t iteration, uint64_t budget)
{
    for (int threads = 0; threads < 2; threads++) {
        if (!threads && !t_device()) continue;
        fth_context *device = t_rows_device(budget, threads);
        if (!device) continue;
        refine_there(n, degree, flags, rules, iteration, device);
        OK(fth_context_destroy(device, NULL));
    }
}

static gs_adc_rules plain_rules(void)
{
    gs_adc_rules rules = gs_adc_default();
    rules.scene_scale = 20;
    rules.seed = 77;
    return rules;
}

TEST(a_device_refines_as_the_host_does)
{
    static const int64_t sizes[] = {0, 1, 33, 1024, 2500};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int degree = 0; degree < 4; degree++) {
            gs_adc_rules rules = plain_rules();
            rules.revised_opacity = degree % 2;
            rules.last = degree > 1;
            refine_both(sizes[k], degree,
                        GS_ROWS_DENSIFY | (degree == 1 ? 0u : (unsigned)GS_ROWS_ADAM), &rules,
                        degree < 2 ? 600 : 3100, 256 * MiB);
        }
}

TEST(all_none_and_a_cap)
{
    for (int k = 0; k < 4; k++) {
        gs_adc_rules rules = plain_rules();
        if (k < 2) rules.grad_threshold = k ? -1 : 1e6;
        if (k < 2) rules.prune_opacity = k ? 0 : 0.4999;
        if (k == 2) rules.max_cap = 1600;
        if (k == 3) rules.max_cap = 1; /* no more */
        refine_both(1500, 1, GS_ROWS_DENSIFY | GS_ROWS_ADAM, &rules, 600, 256 * MiB);
    }
}

TEST(the_room_of_the_device_lowers_the_cap)
{
    const gs_adc_rules rules = plain_rules();
    refine_both(300000, 1, GS_ROWS_DENSIFY | GS_ROWS_ADAM, &rules, 600, 128 * MiB);
}

/* ---- MCMC, resets, long ranges ---- */

static void live(gs_rows *rows)
{
    gs_mcmc_rules rules = gs_mcmc_default();
    int64_t dead = 0, added = 0;
    fth_err err = {0};
    rules.min_opacity = 0.1;
    rules.seed = 3;
    for (int round = 0; round < 3; round++) { /* some lie at the limit after the first */
        OKE(gs_mcmc_relocate(rows, &rules, 500 + round, &dead, &err), &err);
        OKE(gs_mcmc_add(rows, &rules, 500 + round, &added, NULL, &err), &err);
        if (rows->n > 1000) IS_TRUE((round > 0 || dead > 100) && added > 40);
        rules.keep_dead_moments = true;
        if (round > 0) rules.min_opacity = 0.2;
    }
    OKE(gs_opacity_reset(rows, 0.3, &err), &err);
}

TEST(a_device_moves_and_adds_as_the_host_does)
{
    static const int64_t sizes[] = {0, 1, 40, 3000};
    for (int threads = 0; threads < 2; threads++)
        for (size_t k = 0; k < 4; k++) {
            if (!threads && !t_device()) continue;
            fth_context *device = t_rows_device(256 * MiB, threads);
            if (!device) continue;
            fth_context *host = t_rows_context(2, 256 * MiB);
            gs_rows here, there;
            t_rows_make(&here, host, sizes[k], 2 * sizes[k] + 1, (int)k, GS_ROWS_ADAM, k);
            send(&there, device, &here);
            live(&here);
            live(&there);
            compare(&here, &there, 1e-6);
            gs_rows_free(&here);
            gs_rows_free(&there);
            OK(fth_context_destroy(host, NULL));
            OK(fth_context_destroy(device, NULL));
        }
}

/* Pages come in pieces where a range grows by much, and go from the end of a piece. */
TEST(long_ranges_keep_their_rows)
{
    enum { ROW = 1 << 18 }; /* numbers: 1 MiB */
    for (int threads = 0; threads < 2; threads++) {
        if (!threads && !t_device()) continue;
        fth_context *ctx = t_rows_device(512 * MiB, threads);
        if (!ctx) continue;
        fth_mem *mem = fth_context_device_mem(ctx);
        static const int64_t steps[] = {300, 130, 131, 290, 5, 120, 121, 119, 0, 128};
        fth_tensor *t = NULL;
        fth_mem_stats stats;
        static float row[ROW];
        int64_t least = 0;
        OK(fth_tensor_reserve(&t, mem, "long", FTH_F32, 2, ((int64_t[]){0, ROW}), 400, NULL));
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
            const int64_t was = fth_tensor_size(t, 0), n = steps[k];
            OK(fth_tensor_set_rows(t, n, NULL));
            fth_mem_get_stats(mem, &stats);
            EQ_U64(stats.used_bytes, (uint64_t)(n + n % 2) * MiB);
            if (n < least) least = n;
            for (int64_t i = 0; i < n; i += i + 4 < n ? 4 : 1) {
                const double want = i < was && i < least ? (double)(i + 1) : 0;
                OK(fth_tensor_get_rows(t, i, 1, row, NULL));
                EQ_F64(row[0], want);
                EQ_F64(row[ROW - 1], want);
            }
            for (int64_t i = 0; i < n; i++) { /* each row has its number */
                for (int64_t j = 0; j < ROW; j++) row[j] = (float)(i + 1);
                OK(fth_tensor_put_rows(t, i, 1, row, NULL));
            }
            least = n;
        }
        fth_tensor_release(t);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* ---- kernels alone, over arrays that do not grow ---- */

/* Rows with n1 places, the first of which are those of `from`. */
static void make_fixed(gs_rows *rows, fth_context *ctx, const gs_rows *from, int64_t n1)
{
    fth_mem *mem = fth_context_mem(ctx);
    gs_rows_memory m;
    OK(gs_rows_open(from, &m, NULL));
    *rows = (gs_rows){.context = ctx, .mem = mem, .n = n1, .degree = from->degree};
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            const int64_t columns = gs_columns((gs_attribute)a, from->degree),
                          size[3] = {n1, a == GS_SH_N ? columns / 3 : columns, 3};
            fth_tensor **t = &rows->tensor[p][a];
            if (!m.at[p][a]) continue;
            OK(fth_tensor_create(t, mem, "fixed", FTH_F32,
                                 a == GS_SH_N      ? 3
                                 : a == GS_OPACITY ? 1
                                                   : 2,
                                 size, NULL));
            memset(fth_tensor_data(*t), 0, fth_tensor_bytes(*t));
            memcpy(fth_tensor_data(*t), m.at[p][a], (size_t)(from->n * columns) * sizeof(float));
        }
    OK(fth_tensor_create(&rows->densify, mem, "seen", FTH_F32, 2, ((int64_t[]){n1, 2}), NULL));
    memset(fth_tensor_data(rows->densify), 0, fth_tensor_bytes(rows->densify));
    memcpy(fth_tensor_data(rows->densify), m.densify, (size_t)from->n * 2 * sizeof(float));
}

/* What gs_adc_refine does on a device, where rows have their places already. */
static void kernels_refine(int64_t n, int degree, const gs_adc_rules *rules)
{
    fth_context *host = t_rows_context(2, 256 * MiB), *ctx = NULL;
    fth_options opt;
    gs_rows here, there;
    gs_adc_counts counts;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.device = "cuda";
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    t_rows_make(&here, host, n, 2 * n, degree, GS_ROWS_ADAM | GS_ROWS_DENSIFY, 5);
    gs_refinement r = {.rules = rules,
                       .rows = &there,
                       .iteration = 600,
                       .n = n,
                       .high = (float)rules->grad_threshold,
                       .small = (float)log(rules->grow_scale3d * rules->scene_scale),
                       .faint = (float)log(rules->prune_opacity / (1 - rules->prune_opacity)),
                       .huge = INFINITY};
    make_fixed(&there, ctx, &here, n);
    OK(gs_marks_create(&r.dup, there.mem, n, "dup", NULL));
    OK(gs_marks_create(&r.split, there.mem, n, "split", NULL));
    OKE(gs_device_classify(&r, &err), &err);
    gs_marks_count(&r.dup);
    gs_marks_count(&r.split);
    const int64_t n1 = n + r.dup.count + r.split.count;
    gs_rows_free(&there);
    make_fixed(&there, ctx, &here, n1);
    OKE(gs_device_grow(&r, &err), &err);
    OK(gs_marks_create(&r.gone, there.mem, n1, "gone", NULL));
    OKE(gs_device_judge(&r, &err), &err);
    gs_marks_count(&r.gone);
    if (r.gone.count > 0) OKE(gs_device_close(&there, &r.gone, &err), &err);
    OKE(gs_adc_refine(&here, rules, 600, &counts, &err), &err);
    EQ_I64(r.dup.count, counts.dup);
    EQ_I64(r.split.count, counts.split);
    EQ_I64(r.gone.count, counts.pruned);
    there.n -= r.gone.count;
    gs_rows_end_densify(&there);
    gs_rows_end_densify(&here);
    compare(&here, &there, 0);
    gs_marks_free(&r.dup);
    gs_marks_free(&r.split);
    gs_marks_free(&r.gone);
    gs_rows_free(&here);
    gs_rows_free(&there);
    OK(fth_context_destroy(host, NULL));
    OK(fth_context_destroy(ctx, NULL));
}

/* Relocation alone. */
static void kernels_move(int64_t n, int degree)
{
    fth_context *host = t_rows_context(2, 256 * MiB), *ctx = NULL;
    fth_options opt;
    gs_rows here, there;
    gs_marks dead;
    int64_t count = 0;
    fth_err err = {0};
    const gs_mcmc_rules rules = {.min_opacity = 0.1, .seed = 4};
    fth_options_default(&opt);
    opt.device = "cuda";
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    t_rows_make(&here, host, n, n, degree, GS_ROWS_ADAM | GS_ROWS_DENSIFY, 8);
    make_fixed(&there, ctx, &here, n);
    OK(gs_marks_create(&dead, there.mem, n, "dead", NULL));
    OKE(gs_device_find_dead(&there, &dead, (float)log(0.1 / 0.9), &err), &err);
    gs_marks_count(&dead);
    const gs_device_draws how = {n, dead.count, 9, 4}; /* stream of relocation */
    OKE(gs_device_move(&there, &how, &dead, &rules, &err), &err);
    OKE(gs_mcmc_relocate(&here, &rules, 9, &count, &err), &err);
    EQ_I64(count, dead.count);
    IS_TRUE(count > n / 10);
    OKE(gs_opacity_reset(&here, 0.2, &err), &err);
    OKE(gs_device_reset(&there, (float)log(0.4 / 0.6), &err), &err);
    gs_rows_end_densify(&there);
    gs_rows_end_densify(&here);
    compare(&here, &there, 1e-6);
    gs_marks_free(&dead);
    gs_rows_free(&here);
    gs_rows_free(&there);
    OK(fth_context_destroy(host, NULL));
    OK(fth_context_destroy(ctx, NULL));
}

/* Blocks of a part of a warp, of several warps, and several for each thread. */
TEST(marks_are_counted_block_by_block)
{
    static const int sizes[] = {1, 3, 40, 2100};
    enum { WORDS = GS_BLOCK / GS_WORD };
    t_random r = t_random_make(9);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        char axes[60];
        snprintf(axes, sizeof axes, "word=%d block=%d", sizes[k] * WORDS, sizes[k]);
        fth_graph *g = t_graph(axes);
        const fth_val words = t_noise(g, "words", FTH_I32, "word", &r),
                      counted = fth_custom(g, &gs_count_op, 1, &words, NULL, 0);
        uint32_t *word = t_data(words);
        for (int i = 0; i < sizes[k] * WORDS; i++)
            word[i] = (uint32_t)t_random_i64(&r, 0, UINT32_MAX) >> t_random_i64(&r, 0, 31);
        int64_t *before = malloc((size_t)sizes[k] * sizeof *before), all = -1, sum = 0;
        MADE(counted);
        t_eval(counted, before);
        t_eval(fth_out(counted, 1), &all);
        for (int i = 0; i < sizes[k] * WORDS; i++) {
            if (i % WORDS == 0) EQ_I64(before[i / WORDS], sum);
            sum += __builtin_popcount(word[i]);
        }
        EQ_I64(all, sum);
        free(before);
        t_graph_free(g);
    }
}

TEST(kernels_move_rows_as_the_loops_do)
{
    if (!t_device()) SKIP("no device was asked for");
    kernels_move(50, 0);
    kernels_move(3000, 3);
}

TEST(kernels_give_the_rows_of_the_loops)
{
    static const int64_t sizes[] = {1, 31, 1025, 4200};
    if (!t_device()) SKIP("no device was asked for");
    for (size_t k = 0; k < 4; k++)
        for (int how = 0; how < 4; how++) {
            gs_adc_rules rules = plain_rules();
            rules.revised_opacity = how % 2;
            if (how == 2) rules.grad_threshold = -1, rules.prune_opacity = 1e-9;
            if (how == 3) rules.grow_scale3d = 1e3, rules.prune_opacity = 0.3;
            kernels_refine(sizes[k], how, &rules);
        }
}

TEST_MAIN()
