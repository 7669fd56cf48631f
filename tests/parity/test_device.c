/* test_device.c - every operation of the engine, in every dtype it has, on a device: against the
 * reference, with its axis innermost, outermost and between others, whole and cut.
 *
 * The cases are the rows of ops.def: a function make_NAME here, or else the sample of the row. Each
 * prints its row of the table: ok, "none" where the device has no kernel, "-" where the operation
 * is not defined. FATHOM_TEST_DEVICE names the backend (testing/engine/op_device.h).
 *
 * seconds: 60
 * labels: gpu
 */
#include "graph/graph.h"
#include "ops/dot_reduce.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/ranked.h"
#include "testing/engine/op_device.h"
#include "testing/engine/op_harness.h"

#include <fathom/samples.h>

enum { LAYOUTS = 4 };
static const char *const axes_of[LAYOUTS] = {"p q x", "x p q", "p x q", "x"};
/* The same with another axis in the place of x. */
static const char *const long_of[LAYOUTS] = {"p q long", "long p q", "p long q", "long"};
static const char *const matrix_of[LAYOUTS] = {"p row col", "col p row", "row p col", "row col"};

/* What a builder works with. */
typedef struct bench {
    fth_graph *g;
    fth_dtype t;
    int layout;
    t_random r;
    int n; /* inputs so far */
} bench;

static fth_val noise_of(bench *b, fth_dtype t, const char *axes)
{
    char name[16];
    snprintf(name, sizeof name, "in%d", b->n++);
    return t_noise(b->g, name, t, axes, &b->r);
}
static fth_val noise(bench *b, const char *axes)
{
    return noise_of(b, b->t, axes);
}
static fth_val x(bench *b)
{
    return noise(b, axes_of[b->layout]);
}
static fth_val long_x(bench *b)
{
    return noise(b, long_of[b->layout]);
}

/* Integers below `most` along an axis. */
static fth_val places(bench *b, fth_dtype t, const char *axis, int64_t most)
{
    const fth_val v = noise_of(b, t, axis);
    for (int64_t i = 0; i < t_count(v); i++)
        t_put(t, t_data(v), i, (double)t_random_i64(&b->r, 0, most - 1), 0.0);
    return v;
}

/* Small numbers and a large diagonal: positive definite where only one side is read. */
static fth_val dominant(bench *b, const char *axes, const char *row_axis, const char *col_axis,
                        double diagonal)
{
    const double large = b->t == FTH_BOOL ? 1.0 : diagonal;
    const fth_val v = noise(b, axes);
    const fth_desc *d = fth__val_desc(v);
    const int row = fth_desc_find(d, fth_axis_find(b->g, row_axis)),
              col = fth_desc_find(d, fth_axis_find(b->g, col_axis));
    for (int64_t i = 0; i < t_count(v); i++) {
        int64_t at[FTH_MAX_AXES], rest = i;
        for (int k = d->n_axes - 1; k >= 0; k--) {
            at[k] = rest % d->size[k];
            rest /= d->size[k];
        }
        const bool on = at[row] == at[col];
        t_put(b->t, t_data(v), i, on ? large : 0.2 * t_get(b->t, t_data(v), i),
              on ? 0.0 : 0.2 * t_get_im(b->t, t_data(v), i));
    }
    return v;
}
static fth_val matrix(bench *b)
{
    return dominant(b, matrix_of[b->layout], "row", "col", 4.0);
}

/* ---- elementwise ---- */

static fth_val make_map(bench *b)
{
    return fth_add(x(b), noise(b, b->layout == 3 ? "" : "q"));
}
static fth_val make_cast(bench *b)
{
    return fth_cast(x(b), fth_dtype_is_complex(b->t) ? FTH_C128 : FTH_F64);
}
static fth_val make_checked_cast(bench *b)
{
    static const fth_dtype to[FTH_DTYPE_COUNT] = {
        [FTH_U8] = FTH_I8,   [FTH_U16] = FTH_U8,  [FTH_U32] = FTH_I32, [FTH_I16] = FTH_I8,
        [FTH_I32] = FTH_I16, [FTH_I64] = FTH_I32, [FTH_F16] = FTH_I32};
    return fth_cast(x(b), to[b->t] ? to[b->t] : FTH_I64);
}
static fth_val make_index(bench *b)
{
    return b->t == FTH_I64 ? fth_index(b->g, "long") : (fth_val){0};
}
static fth_val make_random(bench *b)
{
    const fth_val seed = fth_const_i64(b->g, FTH_I64, 17);
    const fth_random_kind kind = b->t == FTH_I64      ? FTH_RANDOM_BITS
                                 : b->layout % 2 == 0 ? FTH_RANDOM_UNIFORM
                                                      : FTH_RANDOM_NORMAL;
    return fth_random_(FTH_HERE, kind, b->t, long_of[b->layout], seed, seed, 3);
}
static fth_val make_poisson(bench *b)
{
    const fth_val seed = fth_const_i64(b->g, FTH_I64, 17);
    return fth_poisson(fth_exp(fth_mul(x(b), fth_const(b->g, b->t, 1.5))), seed, seed, 5);
}

/* (in0 + in1) * in0, and its sum over the axis where the layout is not 3. */
static fth_val make_fused(bench *b)
{
    const fth_val in[2] = {long_x(b), noise(b, b->layout == 3 ? "" : "q")};
    if (b->t == FTH_BOOL || !fth_val_ok(in[0])) return (fth_val){0};
    return t_fused(in, b->layout == 3 ? NULL : "long");
}

/* ---- axes ---- */

static fth_val make_expand(bench *b)
{
    return fth_expand(x(b), b->layout == 3 ? "p" : "extra");
}
static fth_val make_rename(bench *b)
{
    return fth_rename(x(b), "x", "other");
}
static fth_val make_layout(bench *b)
{
    static const char *const to[LAYOUTS] = {"x q p", "p q x", "x p q", "x"};
    return fth_layout(x(b), to[b->layout]);
}
static fth_val make_merge(bench *b)
{
    return fth_merge(noise(b, "x p q"), "p q", "pq");
}
static fth_val make_split(bench *b)
{
    return fth_split(make_merge(b), "pq", NULL);
}
static fth_val make_mark(bench *b)
{
    return fth_mark(matrix(b), FTH_LOWER, "row", "col");
}

/* ---- reductions ---- */

static fth_val make_reduce(bench *b)
{
    const fth_red red = b->t == FTH_BOOL ? FTH_RED_ANY
                        : b->layout == 3 ? FTH_RED_PROD
                        : b->layout == 1 ? FTH_RED_MAX
                                         : FTH_RED_SUM;
    const bool small = b->layout == 3;
    return fth_reduce_(FTH_HERE, fth_dtype_is_complex(b->t) ? FTH_RED_SUM : red,
                       small ? x(b) : long_x(b), small ? "x" : "long");
}
static fth_val make_variance(bench *b)
{
    return fth_variance(long_x(b), "long");
}
static fth_val make_argreduce(bench *b)
{
    return b->layout % 2 ? fth_argmin(long_x(b), "long") : fth_argmax(long_x(b), "long");
}
static fth_val make_ranked(bench *b)
{
    const int64_t rank[3] = {0, 17, 30}; /* of more elements than that along the axis */
    return fth__ranked(FTH_HERE, long_x(b), "long", b->layout % 3 + 1, rank);
}
static fth_val make_histogram(bench *b)
{
    return fth_histogram(long_x(b), "long", "bin", -2.0, 3.0);
}
static fth_val make_scan(bench *b)
{
    const fth_red red = b->layout == 1 && !fth_dtype_is_complex(b->t) ? FTH_RED_MAX : FTH_RED_SUM;
    return fth_scan(red, long_x(b), "long", b->layout == 2, b->layout == 0);
}

/* ---- moving data ---- */

static fth_val make_gather(bench *b)
{
    return fth_gather(x(b), "x", places(b, b->layout % 2 ? FTH_I32 : FTH_I64, "long", 37));
}
static fth_val make_scatter_add(bench *b)
{
    return fth_scatter_add(long_x(b), "long", places(b, FTH_I64, "long", 37), "x");
}
static fth_val make_scatter(bench *b)
{
    const fth_scatter_how how =
        fth_dtype_is_complex(b->t) ? FTH_SCATTER_SET : (fth_scatter_how)(b->layout % 3);
    return fth_scatter(how, long_x(b), "long", places(b, FTH_I64, "long", 37), "x", 1.0);
}
static fth_val make_searchsorted(bench *b)
{
    return fth_searchsorted(fth_sort(long_x(b), "long", false), "long", long_x(b), b->layout % 2);
}
static fth_val make_compact(bench *b)
{
    static uint8_t mask[37]; /* 16 of them */
    for (int i = 0; i < 37; i++) mask[i] = i % 7 < 3 && i < 36;
    return fth_compact(x(b), "x", t_input(b->g, "mask", FTH_BOOL, "x", mask), "kept");
}
static const int64_t row_ptr[8] = {0, 3, 3, 4, 9, 9, 9, 12};
static fth_val make_spread(bench *b)
{
    static const char *const axes[LAYOUTS] = {"p q owner", "owner p q", "p owner q", "owner"};
    if (!fth_axis_ragged(b->g, "entry", "owner", row_ptr)) return (fth_val){0};
    return fth_spread(noise(b, axes[b->layout]), "entry");
}
static fth_val make_collect(bench *b)
{
    static const char *const axes[LAYOUTS] = {"p q entry", "entry p q", "p entry q", "entry"};
    if (!fth_axis_ragged(b->g, "entry", "owner", row_ptr)) return (fth_val){0};
    return fth_collect(noise(b, axes[b->layout]), "entry");
}
static fth_val make_collect_extreme(bench *b)
{
    static const char *const axes[LAYOUTS] = {"p q entry", "entry p q", "p entry q", "entry"};
    if (!fth_axis_ragged(b->g, "entry", "owner", row_ptr)) return (fth_val){0};
    return fth_collect_extreme_(FTH_HERE, b->layout % 2, noise(b, axes[b->layout]), "entry");
}
static fth_val make_concat(bench *b)
{
    const fth_val v[3] = {x(b), long_x(b), x(b)};
    const char *const axis[3] = {"x", "long", "x"};
    return fth_concat(3, v, axis, "sum");
}
static fth_val make_slice(bench *b)
{
    return fth_slice(long_x(b), "long", 11, "x");
}
static fth_val make_pad(bench *b)
{
    return fth_pad(x(b), "x", 5, "long", b->t == FTH_BOOL ? 1.0 : 3.0);
}
static fth_val make_window(bench *b)
{
    return fth_window(x(b), "x", 1, "tap", b->layout % 2 ? FTH_BORDER_CLAMP : FTH_BORDER_ZERO);
}
/* What a window's gradient is made of. */
static fth_val gradient(bench *b, fth_val v, fth_val wrt)
{
    fth_val out = {0};
    char axes[FTH_MAX_AXES * FTH__NAME];
    if (!fth_val_ok(v) || !fth_dtype_is_real(b->t)) return out;
    const fth_val loss =
        fth_sum(fth_sqr(v), fth__desc_axes(b->g, fth__val_desc(v), axes, sizeof axes));
    return fth_grad(loss, 1, &wrt, &out) == FTH_OK ? out : (fth_val){0};
}
static fth_val make_fold(bench *b)
{
    const fth_val v = x(b);
    return gradient(
        b, fth_window(v, "x", 1, "tap", b->layout % 2 ? FTH_BORDER_CLAMP : FTH_BORDER_ZERO), v);
}
static fth_val make_flip(bench *b)
{
    return fth_flip(x(b), "x");
}
static fth_val make_sort(bench *b)
{
    return fth_sort(long_x(b), "long", b->layout % 2);
}
static fth_val make_topk(bench *b)
{
    return fth_topk(long_x(b), "long", "kept", b->layout % 2);
}
static fth_val make_pool(bench *b)
{
    return b->layout % 2 ? fth_pool_max(long_x(b), "long", 4, "quarter")
                         : fth_pool_mean(long_x(b), "long", 4, "quarter");
}
static fth_val make_upsample(bench *b)
{
    static const char *const axes[LAYOUTS] = {"p q quarter", "quarter p q", "p quarter q",
                                              "quarter"};
    return fth_upsample(noise(b, axes[b->layout]), "quarter", 4, "long");
}

/* ---- products, solvers, transforms ---- */

static fth_val make_dot(bench *b)
{
    static const char *const a[LAYOUTS] = {"p q x", "p x q", "x q", "x p q"}, *const c[LAYOUTS] = {
                                                                                  "x long",
                                                                                  "long x p", "x",
                                                                                  "x long p"};
    return fth_dot(noise(b, a[b->layout]), noise(b, c[b->layout]), "x");
}
static fth_val make_cholesky(bench *b)
{
    return fth_cholesky(matrix(b), "row", "col");
}
static fth_val make_solve(bench *b)
{
    const fth_val a = make_mark(b);
    return b->layout % 2 ? fth_solve_t(a, noise(b, "col q"), "row", "col")
                         : fth_solve(a, noise(b, "q row"), "row", "col");
}
static fth_val make_dot_reduce(bench *b)
{
    static const char *const a[LAYOUTS] = {"p x", "x p", "p x", "x p"}, *const c[LAYOUTS] = {
                                                                            "x long", "long x",
                                                                            "q x long", "x q long"};
    const fth_val in[2] = {noise(b, a[b->layout]), noise(b, c[b->layout])},
                  dot = fth_dot(in[0], in[1], "x");
    const uint8_t t = (uint8_t)b->t;
    if (!fth_val_ok(dot)) return dot;
    const fth_desc *d = fth__val_desc(dot);
    fth__program p;
    memset(&p, 0, sizeof p);
    p.n_axes = d->n_axes;
    memcpy(p.axis, d->axis, sizeof p.axis);
    memcpy(p.size, d->size, sizeof p.size);
    p.n_in = p.n_instr = p.n_out = 1;
    p.n_reg = 2;
    p.reg_dtype[0] = p.reg_dtype[1] = t;
    p.instr[0] = (fth__instr){FTH_EW_SQR, t, t, 1, {0, -1, -1}};
    p.out_reg[0] = 1;
    p.tail_dim = fth_desc_find(d, fth_axis_find(b->g, b->layout % 2 ? "p" : "long"));
    p.tail_red = FTH_RED_SUM;
    fth__dot_reduce_attr attr;
    fth__program_node node;
    if (!fth__dot_reduce_make(fth__val_node(dot), &p, NULL, 0, &attr, &node)) return (fth_val){0};
    return fth_custom(b->g, &fth__op_dot_reduce, 2, in, &attr, sizeof attr);
}
static fth_val make_fft(bench *b)
{
    return fth_dtype_is_complex(b->t) ? fth_fft(long_x(b), "long", "freq")
                                      : fth_rfft(long_x(b), "long", "half");
}
static fth_val make_inverse(bench *b)
{
    return fth_inverse(matrix(b), "row", "col");
}
static fth_val make_eigh(bench *b)
{
    return fth_eigh(matrix(b), "row", "col");
}
static fth_val image(bench *b)
{
    return noise(b, b->layout % 2 ? "y z p row" : "p row y z");
}
static fth_val weights(bench *b)
{
    return noise(b, "col row ky kx");
}
static const fth_conv conv = {"y", "z", "y", "z", "row", "ky", "kx", 1, 1, 1, 1};
static fth_val make_conv2d(bench *b)
{
    return fth_conv2d(image(b), weights(b), &conv);
}
static fth_val make_conv2d_grad_input(bench *b)
{
    const fth_val v = image(b);
    return gradient(b, fth_conv2d(v, weights(b), &conv), v);
}
static fth_val make_conv2d_grad_weight(bench *b)
{
    const fth_val w = weights(b);
    return gradient(b, fth_conv2d(image(b), w, &conv), w);
}

/* ---- the table ---- */

typedef fth_val make_fn(bench *b);

/* A case that is not written here: the sample of ops.def, plain, turned and in a batch. */
static const char *sampled;
static fth_val make_sample(bench *b)
{
    static const char *const axes[LAYOUTS] = {"i j", "j i", "p i j", "i p j"};
    fth_val v = dominant(b, axes[b->layout], "i", "j", 12.0); /* for solvers */
    if (strcmp(sampled, "poisson") == 0 && fth_dtype_is_real(b->t)) v = fth_sqr(v);
    for (int i = 0; fth_sample_at(i); i++)
        if (strcmp(fth_sample_at(i)->name, sampled) == 0) return fth_sample_build(b->g, i, v);
    return (fth_val){0};
}

/* "" not defined, "none" no kernel, "ok". */
static const char *check(const char *op, make_fn *make, fth_dtype t, int layout)
{
    bench b = {.t = t, .layout = layout, .r = t_random_make((uint64_t)t * 16 + (uint64_t)layout)};
    const char *found = "";
    b.g = t_graph(
        make == make_sample
            ? "p=3"
            : "p=3 q=5 x=37 long=148 extra=2 other=37 pq=15 owner=7 bin=9 kept=16 sum=222 tap=3 "
              "quarter=37 row=6 col=6 freq=148 half=75 y=9 z=11 ky=3 kx=3");
    const bool ready = make != make_sample || fth_samples_axes(b.g, 12);
    const fth_val v = ready ? make(&b) : (fth_val){0};
    if (fth_val_ok(v)) {
        for (int64_t i = 0; i < b.g->n_nodes; i++)
            if (strcmp(b.g->node[i]->op->name, op) == 0)
                found = b.g->node[i]->op->flags & FTH_OP_ALIAS ? "ok"
                        : t_device_has(b.g->node[i])           ? "ok"
                                                               : "none";
        void *out = malloc((size_t)(t_count(v) * fth_dtype_size(fth_val_dtype(v))) + 1);
        if (found[0]) t_eval(v, out);
        free(out);
    }
    t_graph_free(b.g);
    return found;
}

/* Where one sample is not enough: more kinds, sizes or inputs. */
static const struct {
    const char *op;
    make_fn *make;
} written[] = {
#define CASE(name)                                                                                 \
    {                                                                                              \
#name, make_##name                                                                         \
    }
    CASE(map),
    CASE(cast),
    CASE(checked_cast),
    CASE(index),
    CASE(random),
    CASE(poisson),
    CASE(fused),
    CASE(expand),
    CASE(rename),
    CASE(layout),
    CASE(merge),
    CASE(split),
    CASE(mark),
    CASE(reduce),
    CASE(variance),
    CASE(argreduce),
    CASE(ranked),
    CASE(histogram),
    CASE(scan),
    CASE(gather),
    CASE(scatter_add),
    CASE(scatter),
    CASE(compact),
    CASE(spread),
    CASE(collect),
    CASE(collect_extreme),
    CASE(concat),
    CASE(slice),
    CASE(pad),
    CASE(window),
    CASE(fold),
    CASE(flip),
    CASE(sort),
    CASE(topk),
    CASE(searchsorted),
    CASE(pool),
    CASE(upsample),
    CASE(dot),
    CASE(cholesky),
    CASE(solve),
    CASE(dot_reduce),
    CASE(fft),
    CASE(inverse),
    CASE(eigh),
    CASE(conv2d),
    CASE(conv2d_grad_input),
    CASE(conv2d_grad_weight),
};

static make_fn *case_of(const char *op)
{
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (strcmp(written[i].op, op) == 0) return written[i].make;
    sampled = op;
    return make_sample;
}

/* As ops.def names them. */
static const fth_dtype table_order[FTH_DTYPE_COUNT] = {
    FTH_BOOL, FTH_U8,  FTH_U16,  FTH_U32, FTH_I8,  FTH_I16, FTH_I32,
    FTH_I64,  FTH_F16, FTH_BF16, FTH_F32, FTH_F64, FTH_C64, FTH_C128};

static void check_row(const char *op, make_fn *make, const char *kernels)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    bool any = false;
    char have[128] = "";
    printf("%-20s", op);
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = table_order[k];
        const char *all = "-";
        for (int layout = 0; layout < LAYOUTS; layout++) {
            const char *one = check(op, make, t, layout);
            if (one[0] && strcmp(all, "none") != 0) all = one;
        }
        any |= strcmp(all, "-") != 0;
        if (strcmp(all, "ok") == 0) {
            strcat(have, fth_dtype_name(t));
            strcat(have, " ");
        }
        printf(" %s %-5s", fth_dtype_name(t), all);
        fflush(stdout);
    }
    printf("\n");
    IS_TRUE(any);          /* the function above makes the operation in some dtype */
    EQ_STR(have, kernels); /* a kernel vanished, or a new one has no word in ops.def */
}

#define FTH_OP(name, kernels, ...)                                                                 \
    TEST(name)                                                                                     \
    {                                                                                              \
        check_row(#name, case_of(#name), kernels);                                                 \
    }
#define FTH_OP_INNER FTH_OP
#include <fathom/ops.def>

/* The cases that rows without one written here get. */
TEST(each_sample)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    t_cuts(2);
    for (int i = 0; fth_sample_at(i); i++) {
        const fth_sample *row = fth_sample_at(i);
        int built = 0;
        sampled = row->name;
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int t = FTH_BOOL; t < FTH_DTYPE_COUNT; t++)
                if (layout == 0 || t == FTH_F32)
                    built += check(row->op, make_sample, (fth_dtype)t, layout)[0] != '\0';
        if (!built) FAIL("the sample of %s does not have the operation %s", row->name, row->op);
    }
    t_cuts(8);
}

/* Every row of elementwise.def. */
static fth_ew now;
static fth_val make_ew(bench *b)
{
    const fth__ew_row *row = fth__ew_info(now);
    if (fth__ew_dtype(now, b->t) == FTH_DTYPE_COUNT) return (fth_val){0};
    if (now == FTH_EW_SELECT)
        return fth_select(noise_of(b, FTH_BOOL, axes_of[b->layout]), x(b), noise(b, "x"));
    const fth_val a = x(b), c = row->arity > 1 ? noise(b, "x") : (fth_val){0};
    return fth_map_(FTH_HERE, now, a, c, row->arity > 2 ? x(b) : (fth_val){0});
}
TEST(each_elementwise_operation)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    t_cuts(3);
    for (int op = 0; op < FTH_EW_COUNT; op++) {
        now = (fth_ew)op;
        printf("%-20s", fth__ew_info(now)->name);
        for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
            const char *one = check("map", make_ew, (fth_dtype)t, op % 3);
            printf(" %s %-5s", fth_dtype_name((fth_dtype)t), one[0] ? one : "-");
            fflush(stdout);
            IS_TRUE(strcmp(one, "none") != 0); /* the dtypes of the CPU */
        }
        printf("\n");
    }
    t_cuts(8);
}

TEST_MAIN()
