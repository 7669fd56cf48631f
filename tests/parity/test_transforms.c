/* test_transforms.c - Fourier transforms on a device: lengths of every kind, along every axis, over
 * one to three axes, whole and cut, against those of the CPU; and their gradients.
 *
 * seconds: 60
 * labels: gpu
 */
#include "testing/engine/op_cut.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

extern const fth_kernel fth__cpu_fft;

enum { WHOLE, CUT, WAYS };

/* One operation over `axes` of x, y and z, into u, v and w. */
typedef struct shape {
    const char *in, *axes, *into;
    int64_t x, y, z, l;
} shape;

static void check_shape(const shape *s, fth_fft_kind kind, bool wide)
{
    oc_bench b;
    const int64_t x = s->x;
    oc_open(&b);
    const bool real = kind == FTH_FFT_REAL, back = kind == FTH_FFT_REAL_INVERSE;
    fth_axis(b.g, "x", back ? x / 2 + 1 : x);
    fth_axis(b.g, "u", real ? x / 2 + 1 : x);
    fth_axis(b.g, "y", s->y);
    fth_axis(b.g, "v", s->y);
    fth_axis(b.g, "z", s->z);
    fth_axis(b.g, "w", s->z);
    fth_axis(b.g, "l", s->l);
    fth_axis(b.g, "m", 3);
    const fth_dtype t = real ? (wide ? FTH_F64 : FTH_F32) : wide ? FTH_C128 : FTH_C64;
    const fth_node *node =
        oc_node(&b, fth_fft_(FTH_HERE, kind, oc_in(&b, "from", t, s->in), s->axes, s->into));
    t_random r = t_random_make((uint64_t)(x * 8 + s->l));
    const size_t bytes = (size_t)oc_bytes(&node->out[0]);
    oc_case c = {.node = node,
                 .in = {aligned_alloc(64, ((size_t)oc_bytes(&node->in[0]) / 64 + 1) * 64)}};
    oc_fill(&r, &node->in[0], c.in[0]);
    void *const cpu = aligned_alloc(64, (bytes / 64 + 1) * 64), *device[WAYS];
    c.kernel = &fth__cpu_fft;
    c.out[0] = cpu;
    OKE(oc_run(&c), &c.err);
    c.kernel = t_device_find(node);
    c.device = true;
    IS_TRUE(c.kernel != NULL);
    for (int i = 0; i < WAYS; i++) {
        c.out[0] = device[i] = aligned_alloc(64, (bytes / 64 + 1) * 64);
        OKE(i == CUT ? oc_run_cut(&c, &r) : oc_run(&c), &c.err);
    }
    SAME_BYTES(device[WHOLE], device[CUT], (int64_t)bytes);
    LE_F64(oc_error(&node->out[0], device[WHOLE], cpu), wide ? 1e-14 : 2e-6);
    for (int i = 0; i < WAYS; i++) free(device[i]);
    free(cpu);
    free(c.in[0]);
    oc_close(&b);
}

/* x (and y, before it) into u (and v); l is a batch. */
static void check(const char *in, bool two, int64_t y, int64_t x, int64_t l, fth_fft_kind kind,
                  bool wide)
{
    const shape s = {in, two ? "y x" : "x", two ? "v u" : "u", x, y, 1, l};
    check_shape(&s, kind, wide);
}

static void need_device(void)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
}

/* All kinds in both precisions; in a sample one kind after the other. */
static void check_kinds(const char *in, bool two, int64_t y, int64_t x, int64_t l)
{
    static int turn;
    const int few = t_one_in(1, 4);
    for (int k = turn++ % few; k < 8; k += few)
        check(in, two, y, x, l, (fth_fft_kind)(k & 3), k >> 2);
}

TEST(lengths)
{
    static const int64_t lengths[] = {1,  2,  3,  4,   5,   7,   8,   16,  17,   32,   49,
                                      60, 64, 97, 128, 210, 256, 512, 529, 1000, 1024, 1331};
    static const char *const in[] = {"l x", "x l", "l x m"};
    need_device();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int k = 0; k < 3; k++) check_kinds(in[k], false, 1, lengths[i], 5);
}

/* With prime factors that are not summed plainly, in shared memory and through scratch. */
TEST(large_primes)
{
    static const int64_t lengths[] = {127, 131, 262, 509, 1031, 2053, 2100};
    need_device();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int k = (int)i % t_one_in(1, 2); k < 2; k += t_one_in(1, 2))
            check_kinds(k ? "x l" : "l x", false, 1, lengths[i], 5);
    check("l x", false, 1, 4099, 3, FTH_FFT_FORWARD, false);
    check("l x", false, 1, 4099, 3, FTH_FFT_INVERSE, true);
    check_kinds("l y x", true, 131, 137, 2);
    check("l x", false, 1, 131, 20000, FTH_FFT_FORWARD, false); /* more lines than at once */
}

TEST(many_lines)
{
    static const int64_t lengths[] = {2, 8, 15, 64, 128};
    need_device();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int k = 0; k < 2; k++)
            check(k ? "x l" : "l x", false, 1, lengths[i], 777, FTH_FFT_FORWARD, false);
}

/* In shared memory up to some length, beyond it through scratch. */
TEST(long_lines)
{
    static const int64_t lengths[] = {2048, 4095, 4096, 4500, 8192, 9000, 10007, 65536};
    need_device();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (i % 2 == 0 || t_one_in(1, 2) == 1) {
            check("l x", false, 1, lengths[i], 2, FTH_FFT_FORWARD, false);
            check("x l", false, 1, lengths[i], 2, FTH_FFT_INVERSE, true);
        }
        if (i % 2 == 1 || t_one_in(1, 2) == 1) {
            check("l x", false, 1, lengths[i], 2, FTH_FFT_REAL, i % 4 < 2);
            check("l x", false, 1, lengths[i], 2, FTH_FFT_REAL_INVERSE, i % 4 > 1);
        }
    }
}

/* More lines than pass through scratch at once. */
TEST(long_lines_in_rounds)
{
    need_device();
    check("l x", false, 1, 70000, 61, FTH_FFT_FORWARD, false);
}

TEST(two_axes)
{
    static const char *const in[] = {"l y x", "x l y", "y x l", "y l x"};
    static const struct {
        int64_t y, x;
    } size[] = {{16, 16}, {32, 32}, {64, 64}, {16, 32}, {9, 16}, {64, 10}, {1, 8}, {5, 1}};
    need_device();
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int k = 0; k < 4; k++) check_kinds(in[k], true, size[i].y, size[i].x, 3);
}

/* Images of a volume at once and one axis after the other; through scratch; of no points. */
TEST(three_axes)
{
    static const shape shapes[] = {
        {"z y x", "z y x", "w v u", 16, 16, 5, 1},    {"l z y x", "z y x", "w v u", 6, 5, 8, 3},
        {"z l y x", "z y x", "w v u", 16, 16, 16, 2}, {"x z y", "z y x", "w v u", 32, 32, 3, 1},
        {"x y z l", "z y x", "w v u", 8, 3, 4, 3},    {"z x y", "z y x", "w v u", 131, 2, 3, 1},
        {"z y x", "z y x", "w v u", 3, 2, 131, 1},    {"z y x", "z y x", "w v u", 1, 1, 1, 1},
        {"z y x", "z y x", "w v u", 4, 3, 0, 1},      {"z y x", "z y x", "w v u", 0, 3, 4, 1},
        {"z y x", "z y x", "w v u", 128, 128, 3, 1},
    };
    need_device();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 8; k++)
            if (shapes[i].x < 100 || (k & 3) == (int)i % 4)
                check_shape(&shapes[i], (fth_fft_kind)(k & 3), k >> 2);
}

/* Rows and columns in turns, fewer images than lie between them and more. */
TEST(large_images)
{
    need_device();
    for (int k = 0; k < 4; k++) {
        check("l y x", true, 128, 128, 3, (fth_fft_kind)(k % 2), k / 2);
        check("l x y", true, 256, 256, 2, (fth_fft_kind)(k % 2), k / 2);
    }
    check("l y x", true, 128, 128, 140, FTH_FFT_FORWARD, false);
    check("y l x", true, 512, 512, 2, FTH_FFT_FORWARD, false);
    check("l y x", true, 512, 512, 2, FTH_FFT_INVERSE, true);
}

/* sum of |F(x w)|^2 or (G(x) w)^2: kernels of both directions, at every node on the device. */
TEST(gradients)
{
    static const char *const sizes[] = {"p=2 x=16 u=16 h=9 y=16 v=16 q=2",
                                        "p=2 x=6 u=6 h=4 y=3 v=3 q=2"};
    need_device();
    for (int i = 0; i < 2; i++) {
        t_random r = t_random_make(5);
        fth_graph *g = t_graph(sizes[i]);
        t_cuts(t_few() ? 1 : 2);
        const fth_val a = t_noise(g, "a", FTH_F64, "p x", &r),
                      c = t_noise(g, "c", FTH_C128, "y x", &r),
                      h = t_noise(g, "h", FTH_C128, "y h", &r),
                      w = t_noise(g, "w", FTH_F64, "p h", &r),
                      k = t_noise(g, "k", FTH_C128, "p y h", &r);
        GRAD(fth_sum(fth_mul(fth_abs(fth_rfft(a, "x", "h")), w), "p h"), a, 1e-6);
        GRAD(fth_sum(fth_sqr(fth_abs(fth_fft(c, "y x", "v u"))), "v u"), c, 1e-6);
        GRAD(fth_sum(fth_sqr(fth_abs(fth_ifft(c, "x", "u"))), "y u"), c, 1e-6);
        GRAD(fth_sum(fth_sqr(fth_irfft(h, "y h", "v x")), "v x"), h, 1e-6);
        GRAD(fth_sum(fth_sqr(fth_irfft(k, "p y h", "q v x")), "q v x"), k, 1e-6);
        t_cuts(8);
        t_graph_free(g);
    }
}

TEST_MAIN()
