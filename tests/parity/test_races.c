/* test_races.c - a few calls of every kernel whose threads share memory, for racecheck.
 * seconds: 10 labels: gpu
 *
 * compute-sanitizer's racecheck watches every access to shared memory, so thousands of calls take
 * it minutes. Here each such kernel runs on shapes just large enough for all of its branches: lines
 * of one block and of many, next to each other and apart, elements of every width. Results are held
 * against the reference as everywhere.
 */
#include "testing/engine/op_device.h"
#include "testing/engine/op_harness.h"

static t_random rng;

static fth_graph *begin(const char *axes)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    t_cuts(2);
    rng = t_random_make(7);
    return t_graph(axes);
}

static fth_val noise(fth_graph *g, fth_dtype t, const char *axes)
{
    static int n;
    char name[16];
    snprintf(name, sizeof name, "in%d", n++);
    return t_noise(g, name, t, axes, &rng);
}

static void look(fth_val v)
{
    MADE(v);
    void *out = malloc((size_t)(t_count(v) * fth_dtype_size(fth_val_dtype(v))) + 1);
    t_eval(v, out);
    free(out);
}

static void end(fth_graph *g)
{
    t_cuts(8);
    t_graph_free(g);
}

/* One of each width. */
static const fth_dtype widths[] = {FTH_U8, FTH_F16, FTH_F32, FTH_F64, FTH_C128};
enum { WIDTHS = 5 };

TEST(reductions)
{
    static const fth_dtype t[] = {FTH_F32, FTH_F64, FTH_I64, FTH_C64, FTH_U8};
    fth_graph *g = begin("row=3 row2=5 few=40 long=5000 line=70000");
    for (int i = 0; i < 5; i++) {
        look(fth_sum(noise(g, t[i], "row long"), "long"));
        look(fth_sum(noise(g, t[i], "long row"), "long"));
        look(fth_sum(noise(g, t[i], "row few row2"), "few"));
    }
    look(fth_sum(noise(g, FTH_F32, "line"), "line"));
    look(fth_sum(noise(g, FTH_F64, "line row"), "line"));
    look(fth_rmax(noise(g, FTH_F32, "row long"), "long"));
    look(fth_rmin(noise(g, FTH_I64, "line"), "line"));
    look(fth_any(noise(g, FTH_BOOL, "row long"), "long"));
    look(fth_logsumexp(noise(g, FTH_F32, "row long"), "long"));
    look(fth_argmax(noise(g, FTH_F32, "row long"), "long"));
    end(g);
}

TEST(variances)
{
    fth_graph *g = begin("row=3 long=5000 line=140000");
    look(fth_variance(noise(g, FTH_F32, "row long"), "long"));
    look(fth_variance(noise(g, FTH_F64, "long row"), "long"));
    look(fth_variance(noise(g, FTH_F64, "line"), "line"));
    end(g);
}

TEST(scans)
{
    static const fth_dtype t[] = {FTH_F32, FTH_I64, FTH_C128};
    fth_graph *g = begin("row=3 long=5000 line=140000");
    for (int i = 0; i < 3; i++) {
        look(fth_scan(FTH_RED_SUM, noise(g, t[i], "row long"), "long", false, i == 1));
        look(fth_scan(FTH_RED_SUM, noise(g, t[i], "long row"), "long", i == 1, false));
        look(fth_scan(FTH_RED_SUM, noise(g, t[i], "line"), "line", i == 2, false));
    }
    end(g);
}

TEST(histograms_and_masks)
{
    fth_graph *g = begin("row=2 long=20000 bin=50 kept=7000 col=3");
    look(fth_histogram(noise(g, FTH_F32, "row long"), "long", "bin", -3.0, 3.0));
    static uint8_t mask[20000];
    for (int i = 0; i < 20000; i++) mask[i] = i % 20 < 7;
    const fth_val is = t_input(g, "mask", FTH_BOOL, "long", mask);
    for (int i = 0; i < WIDTHS; i++)
        look(fth_compact(noise(g, widths[i], "long col"), "long", is, "kept"));
    end(g);
}

TEST(moves)
{
    fth_graph *g = begin("a=70 b=90 x=64 y=96 c=3 many=900 both=160 padded=97");
    for (int i = 0; i < WIDTHS; i++) {
        look(fth_layout(noise(g, widths[i], "a b"), "b a"));
        look(fth_layout(noise(g, widths[i], "x y"), "y x"));
        look(fth_layout(noise(g, widths[i], "many c"), "c many"));
        look(fth_layout(noise(g, widths[i], "c many"), "many c"));
        const fth_val v[2] = {noise(g, widths[i], "c a"), noise(g, widths[i], "c b")};
        const fth_val w[2] = {noise(g, widths[i], "a c"), noise(g, widths[i], "b c")};
        const char *const axis[2] = {"a", "b"};
        look(fth_concat(2, v, axis, "both"));
        look(fth_concat(2, w, axis, "both"));
    }
    look(fth_pad(noise(g, FTH_F32, "c b"), "b", 3, "padded", 1.0));
    end(g);
}

TEST(orders)
{
    fth_graph *g = begin("row=2 short=100 longer=1500 long=9000 kept=20 most=3000");
    static const fth_dtype t[] = {FTH_F32, FTH_F64, FTH_U8};
    for (int i = 0; i < 3; i++) {
        look(fth_sort(noise(g, t[i], "row short"), "short", i == 1));
        look(fth_sort(noise(g, t[i], "row longer"), "longer", false));
        look(fth_sort(noise(g, t[i], "row long"), "long", i == 1));
        look(fth_topk(noise(g, t[i], "row short"), "short", "kept", true));
        look(fth_topk(noise(g, t[i], "row long"), "long", "kept", i == 1));
        look(fth_topk(noise(g, t[i], "row long"), "long", "most", true));
    }
    end(g);
}

TEST(scattered_sums)
{
    fth_graph *g = begin("long=20000 into=60 col=2");
    static int64_t place[20000];
    for (int i = 0; i < 20000; i++) place[i] = i * 7919 % 60;
    const fth_val at = t_input(g, "place", FTH_I64, "long", place);
    look(fth_scatter_add(noise(g, FTH_F32, "long col"), "long", at, "into"));
    look(fth_scatter_add(noise(g, FTH_F64, "long"), "long", at, "into"));
    look(fth_scatter_add(noise(g, FTH_I64, "long"), "long", at, "into"));
    end(g);
}

/* Axes that do not lie next to themselves, and thin products, are made by our own loops. */
TEST(products)
{
    static const fth_dtype t[] = {FTH_F32, FTH_F64, FTH_C64, FTH_F16, FTH_C128};
    fth_graph *g = begin("m=70 n=65 k=90 p=2 q=3");
    for (int i = 0; i < 5; i++) {
        look(fth_dot(noise(g, t[i], "m k p"), noise(g, t[i], "k n"), "k"));
        look(fth_dot(noise(g, t[i], "m k"), noise(g, t[i], "k q"), "k"));
    }
    end(g);
}

TEST(transforms)
{
    static const fth_dtype t[] = {FTH_C64, FTH_C128};
    fth_graph *g = begin("row=3 a=16 b=16 c=16 d=16 x=128 u=128 m=60 n=60");
    for (int i = 0; i < 2; i++) {
        look(fth_fft(noise(g, t[i], "row x"), "x", "u"));
        look(fth_ifft(noise(g, t[i], "x row"), "x", "u"));
        look(fth_fft(noise(g, t[i], "row m"), "m", "n"));
        look(fth_fft(noise(g, t[i], "row a b"), "a b", "c d"));
    }
    end(g);
}

/* Positive definite, whatever the noise. */
static fth_val definite(fth_graph *g, fth_dtype dtype, const char *axes)
{
    const fth_val v = noise(g, dtype, axes);
    const fth_val on = fth_eq(fth_expand(fth_index(g, "j"), "i"), fth_index(g, "i"));
    return fth_select(on, fth_const(g, dtype, 60.0), v);
}

/* One size of matrices of one type; how many there are. */
static fth_graph *begin_matrices(int64_t n, int64_t count)
{
    char axes[80];
    snprintf(axes, sizeof axes, "l=%lld i=%lld j=%lld m=40 few=3", (long long)count, (long long)n,
             (long long)n);
    fth_graph *g = begin(axes);
    if (count == 1) t_cuts(1); /* there is nothing to cut */
    return g;
}

static void factor_them(fth_dtype t, int64_t n, int64_t count)
{
    fth_graph *g = begin_matrices(n, count);
    look(fth_cholesky(definite(g, t, "l i j"), "i", "j"));
    end(g);
}

static void solve_them(fth_dtype t, int64_t n, int64_t count)
{
    fth_graph *g = begin_matrices(n, count);
    const fth_val l = fth_mark(definite(g, t, "l i j"), FTH_LOWER, "i", "j");
    look(fth_solve(l, noise(g, t, "l i m"), "i", "j"));
    look(fth_solve_t(l, noise(g, t, "l j few"), "i", "j"));
    end(g);
}

/* A warp each, of one row a lane and of two. */
TEST(factors_of_a_warp)
{
    factor_them(FTH_F32, 20, 5);
    factor_them(FTH_F32, 50, 5);
    factor_them(FTH_C128, 20, 5);
    factor_them(FTH_C128, 50, 5);
}
TEST(solutions_of_a_warp)
{
    solve_them(FTH_F32, 20, 5);
    solve_them(FTH_F32, 50, 5);
    solve_them(FTH_C128, 20, 5);
    solve_them(FTH_C128, 50, 5);
}

TEST(factors_by_halves)
{
    factor_them(FTH_F32, 130, 2);
    factor_them(FTH_C128, 70, 2);
}
TEST(solutions_by_halves)
{
    solve_them(FTH_F32, 130, 2);
    solve_them(FTH_C128, 70, 2);
}

/* Blocks are ours for reals alone; the last of five is of eight rows. */
TEST(factors_by_blocks)
{
    factor_them(FTH_F32, 520, 1);
}
TEST(solutions_by_blocks)
{
    solve_them(FTH_F32, 520, 1);
}

static void invert_them(fth_dtype t, int64_t n)
{
    fth_graph *g = begin_matrices(n, 3);
    look(fth_inverse(definite(g, t, "l i j"), "i", "j"));
    end(g);
}
TEST(inverses)
{
    invert_them(FTH_F32, 20);
    invert_them(FTH_F32, 50);
    invert_them(FTH_C128, 20);
    invert_them(FTH_C128, 50);
}

static void diagonalize_them(fth_dtype t, int64_t n)
{
    fth_graph *g = begin_matrices(n, 2);
    look(fth_eigh(definite(g, t, "l i j"), "i", "j"));
    end(g);
}
TEST(eigenvectors_of_few_rows)
{
    diagonalize_them(FTH_F32, 20);
    diagonalize_them(FTH_C128, 20);
}
TEST(eigenvectors_of_more_rows)
{
    diagonalize_them(FTH_F32, 50);
}
TEST(eigenvectors_of_more_complex_rows)
{
    diagonalize_them(FTH_C128, 40);
}

/* Channels outermost and innermost, more than one tile and slice of each side. */
TEST(convolutions)
{
    const fth_conv conv = {"y", "x", "y", "x", "c", "ky", "kx", 1, 1, 1, 1};
    fth_graph *g = begin("b=2 c=37 o=67 y=6 x=12 ky=3 kx=3");
    for (int i = 0; i < 2; i++) {
        const fth_val v = noise(g, FTH_F32, i ? "b y x c" : "b c y x"),
                      w = noise(g, FTH_F32, "o c ky kx"), r = fth_conv2d(v, w, &conv);
        const fth_val wrt[2] = {v, w};
        fth_val bar[2];
        look(r);
        OK(fth_grad(fth_sum(fth_sqr(r), "b o y x"), 2, wrt, bar));
        for (int k = 0; k < 2; k++) look(bar[k]);
    }
    end(g);
}

/* (x + y) * x and its sum, as one program. */
static fth_val fused(fth_graph *g, fth_dtype dtype, const char *axes, const char *over)
{
    const fth_val in[2] = {noise(g, dtype, axes), noise(g, dtype, axes)};
    return t_fused(in, over);
}

TEST(programs_that_end_with_a_sum)
{
    static const fth_dtype t[] = {FTH_F32, FTH_F64, FTH_I64, FTH_C64};
    fth_graph *g = begin("row=5 row2=30 long=3000 few=12 line=70000");
    for (int i = 0; i < 4; i++) {
        look(fused(g, t[i], "row long", "long"));
        look(fused(g, t[i], "long row", "long"));
        look(fused(g, t[i], "row few row2", "few"));
    }
    look(fused(g, FTH_F32, "line", "line"));
    end(g);
}

TEST_MAIN()
