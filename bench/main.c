/* main.c - fathom-bench: how fast, against whom, and with how much memory.
 *
 * usage: fathom-bench [--filter TEXT] [--json] [--predict] [--rates FOLDER] [--pairs N]
 *                     [--clock wall|cpu] [--peers DIR] [--stacks N] [--device NAME]
 *                     [--trace FOLDER] [--cache FOLDER]
 *
 * One line per case: name, device, shape, seconds, rate, fraction of the measured limit, planned
 * and measured bytes, residual, then the peer and the ratio of its time to ours: median, lower
 * quartile, bar, verdict. Ours and the peer take turns, and the best of three turns counts for
 * each. Exit code 1 when a bar is missed. --stacks is the size of the plate of focus_run: 8 by
 * itself, 40 for the numbers in bench/results. With --device only the cases of that device run;
 * where it cannot be used they say why and are left out. Two more options let them be tried without
 * one: --backend FILE, and --divide N, which makes their sizes smaller. With --trace the cases of
 * spatial_device and ptycho_device write timelines of a few runs with every kernel there, and are
 * not timed. --cache keeps the kernels that ptycho's cases compile, as the program does.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static int usage(const char *wrong)
{
    if (wrong) fprintf(stderr, "fathom-bench: unknown or incomplete argument '%s'\n", wrong);
    fprintf(wrong ? stderr : stdout,
            "usage: fathom-bench [--filter TEXT] [--json] [--predict] [--rates FOLDER] [--pairs N] "
            "[--clock wall|cpu] [--peers DIR] [--stacks N] [--device NAME] [--trace FOLDER] "
            "[--cache FOLDER]\n");
    return wrong ? 2 : 0;
}

static void on_the_cpu(bench *b)
{
    bench_elementwise(b);
    bench_filter(b);
    bench_sharpest(b);
    bench_order(b);
    bench_places(b);
    bench_product(b);
    bench_matvec(b);
    bench_cholesky(b);
    bench_fft(b);
    bench_conv(b);
    bench_oneshot(b);
    bench_streaming(b);
    bench_reading(b);
    bench_splat_load(b);
    bench_splat_blend(b);
    bench_planning(b);
    bench_figures(b);
    bench_bragg(b);
    bench_spatial_likelihood(b);
    bench_spatial(b);
    bench_spatial_local(b);
    bench_spatial_places(b);
    bench_ptycho(b);
    bench_ptycho_net(b);
    bench_focus(b);
    bench_focus_run(b);
}

/* Those that plan by bench_plan. Built-in and measured rates take turns, so that both meet the same
 * machine. */
static void predicted(bench *b)
{
    static void (*const cases[])(bench *) = {bench_predict,     bench_predict_held,
                                             bench_elementwise, bench_filter,
                                             bench_order,       bench_places,
                                             bench_product,     bench_matvec,
                                             bench_cholesky,    bench_fft,
                                             bench_conv,        bench_streaming,
                                             bench_bragg,       bench_spatial_likelihood,
                                             bench_ptycho,      bench_focus};
    bench_predict_on(b);
    for (size_t i = 0; !b->device && i < sizeof cases / sizeof cases[0]; i++)
        for (int measured = 0; measured <= (b->rates != NULL); measured++) {
            bench_predict_by(measured);
            cases[i](b);
        }
    for (int measured = 0; b->device && measured <= (b->rates != NULL); measured++) {
        bench_predict_by(measured);
        bench_device(b);
    }
    bench_predict_end();
}

int main(int argc, char **argv)
{
    bench b = {.pairs = 7, .peers = "bench", .divide = 1, .stacks = 8};
    bool predict = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            b.json = true;
            continue;
        }
        if (strcmp(argv[i], "--predict") == 0) {
            predict = true;
            continue;
        }
        if (strcmp(argv[i], "--help") == 0) return usage(NULL);
        if (!value) return usage(argv[i]);
        if (strcmp(argv[i], "--filter") == 0)
            b.filter = value;
        else if (strcmp(argv[i], "--pairs") == 0 && atoi(value) >= 1)
            b.pairs = atoi(value) < 100 ? atoi(value) : 100;
        else if (strcmp(argv[i], "--clock") == 0 &&
                 (strcmp(value, "cpu") == 0 || strcmp(value, "wall") == 0))
            b.cpu_clock = value[0] == 'c';
        else if (strcmp(argv[i], "--peers") == 0)
            b.peers = value;
        else if (strcmp(argv[i], "--device") == 0)
            b.device = value;
        else if (strcmp(argv[i], "--backend") == 0)
            b.backend = value;
        else if (strcmp(argv[i], "--trace") == 0)
            b.trace = value;
        else if (strcmp(argv[i], "--cache") == 0)
            b.cache = value;
        else if (strcmp(argv[i], "--rates") == 0)
            b.rates = value;
        else if (strcmp(argv[i], "--stacks") == 0 && atoll(value) >= 1 && atoll(value) <= 96)
            b.stacks = atoll(value);
        else if (strcmp(argv[i], "--divide") == 0 && atoll(value) >= 1)
            b.divide = atoll(value);
        else
            return usage(argv[i]);
        i++;
    }
    if (predict) {
        predicted(&b);
        return 0;
    }
    if (b.device)
        bench_device(&b);
    else
        on_the_cpu(&b);
    if (b.json)
        printf("%s]\n", b.lines ? "\n" : "[");
    else
        printf("%d cases, %d below the bar\n", b.lines, b.failed);
    return b.failed > 0;
}
