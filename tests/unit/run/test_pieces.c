/* test_pieces.c - reductions of axes that begin, end or vanish inside what is streamed.
 * seconds: 5 labels: gpu
 *
 * A streamed input has far more elements than a chunk, and what is reduced is some part of it: most
 * pieces of the reduced axis are empty, often the first, or hold one element. No value equals what
 * a reduction starts from, so a start that is taken for a result shows.
 */
#include "ops/ops.h"
#include "ops/scalar.h"
#include "testing/engine/op_device.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <fathom/fathom.h>
#include <inttypes.h>

enum { N = 65536, OUTS = 16, BUDGETS = 4 };

/* What the dtype of a result can hold is what a reduction starts from. */
TEST(every_start_survives_its_own_dtype)
{
    for (int red = FTH_RED_SUM; red < FTH_RED_LOGSUMEXP; red++)
        for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
            const fth_dtype to = fth__reduce_dtype((fth_red)red, (fth_dtype)t);
            if (to == FTH_DTYPE_COUNT) continue;
            const fth__wide start = fth__identity(red, to);
            fth__wide memory = {0};
            fth__store(to, &memory, start);
            const fth__wide back = fth__load(to, &memory);
            if (fth__kind_of(to) == FTH__KIND_INT) EQ_I64(back.i, start.i);
            if (fth__kind_of(to) == FTH__KIND_REAL) EQ_F64(back.f, start.f);
            if (fth__kind_of(to) == FTH__KIND_COMPLEX) EQ_F64(back.c.re, start.c.re);
        }
}

/* ---- a graph, unlimited and streamed --------------------------------------------------------- */

typedef struct data {
    fth_dtype dtype;
    char *at; /* [k n] */
    int64_t k, n;
} data;

static fth_status read_part(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const data *d = self;
    const int64_t size = fth_dtype_size(d->dtype);
    (void)err;
    for (int64_t i = 0; i < n[0]; i++)
        memcpy((char *)dst + i * n[1] * size, d->at + ((lo[0] + i) * d->n + lo[1]) * size,
               (size_t)(n[1] * size));
    return FTH_OK;
}

static fth_source source_of(data *d)
{
    return (fth_source){.kind = "made",
                        .self = d,
                        .dtype = d->dtype,
                        .n_axes = 2,
                        .size = {d->k, d->n},
                        .read = read_part};
}

/* Integers from 5 to 99 and below -5 where there is a sign; nothing is 0 or 1, nothing an end of
 * its dtype. Bool: both. */
static void fill(data *d, bool negative)
{
    const bool sign = t_lowest(d->dtype) < 0;
    for (int64_t i = 0; i < d->k * d->n; i++) {
        const double v = 5.0 + (double)((i * 37 + i / 91) % 95);
        t_put(d->dtype, d->at, i,
              d->dtype == FTH_BOOL ? (double)(i % 2)
              : negative && sign   ? -v
                                   : v,
              0.0);
    }
}

/* `x` [k n] as something with the axis "m". */
typedef fth_val view_fn(fth_graph *g, fth_val x);

static fth_val slice_at(fth_graph *g, fth_val x, int64_t from, int64_t m)
{
    fth_axis(g, "m", m);
    return fth_slice(x, "n", from, "m");
}
static fth_val slice_100(fth_graph *g, fth_val x)
{
    return slice_at(g, x, 30000, 100);
}
static fth_val slice_10(fth_graph *g, fth_val x)
{
    return slice_at(g, x, 30000, 10);
}
static fth_val slice_60(fth_graph *g, fth_val x)
{
    return slice_at(g, x, 32740, 60);
}
static fth_val slice_11933(fth_graph *g, fth_val x)
{
    return slice_at(g, x, 30000, 11933);
}
static fth_val slice_35922(fth_graph *g, fth_val x)
{
    return slice_at(g, x, 29000, 35922);
}
static fth_val slice_one(fth_graph *g, fth_val x)
{
    return slice_at(g, x, N - 1, 1);
}
static fth_val flipped(fth_graph *g, fth_val x)
{
    return slice_at(g, fth_flip(x, "n"), 65000, 300);
}
static fth_val padded(fth_graph *g, fth_val x)
{
    fth_axis(g, "p", 3 * (int64_t)N);
    fth_axis(g, "m", 200);
    return fth_slice(fth_pad(x, "n", 2 * (int64_t)N, "p", 1.0), "p", 2 * (int64_t)N + 50000, "m");
}
static fth_val joined(fth_graph *g, fth_val x)
{
    fth_axis(g, "i", 10);
    fth_axis(g, "j", 700);
    fth_axis(g, "m", 710);
    const fth_val part[2] = {fth_slice(x, "n", 60000, "i"), fth_slice(x, "n", 31000, "j")};
    const char *const axis[2] = {"i", "j"};
    return fth_concat(2, part, axis, "m");
}
static fth_val windows(fth_graph *g, fth_val x)
{
    fth_axis(g, "tap", 3);
    const fth_val w = fth_window(x, "n", 1, "tap", FTH_BORDER_ZERO);
    return fth_rmax(fth_layout(slice_at(g, w, 40001, 77), "k m tap"), "tap");
}
static fth_val compacted(fth_graph *g, fth_val x)
{
    fth_axis(g, "m", 3);
    const fth_val i = fth_index(g, "n");
    const fth_val keep =
        fth_eq(fth_mod(i, fth_const_i64(g, FTH_I64, 20000)), fth_const_i64(g, FTH_I64, 19999));
    return fth_compact(x, "n", keep, "m");
}

static int reductions(fth_val v, fth_val *out)
{
    const fth_dtype t = fth_val_dtype(v);
    int n = 0;
    for (int red = FTH_RED_SUM; red <= FTH_RED_LOGSUMEXP; red++)
        if (fth__reduce_dtype((fth_red)red, t) != FTH_DTYPE_COUNT)
            out[n++] = fth_reduce_(FTH_HERE, (fth_red)red, v, "m");
    out[n++] = fth_count(v, "m");
    if (t == FTH_BOOL) return n;
    if (fth_dtype_is_real(t)) out[n++] = fth_variance(v, "m");
    if (fth_dtype_is_complex(t)) return n;
    out[n++] = fth_argmin(v, "m");
    out[n++] = fth_argmax(v, "m");
    fth_axis(v.graph, "bin", 7);
    out[n++] = fth_histogram(v, "m", "bin", -100.0, 100.0);
    out[n++] = fth_scan(FTH_RED_MIN, v, "m", false, false);
    out[n++] = fth_scan(FTH_RED_MAX, v, "m", false, false);
    out[n++] = fth_scan(FTH_RED_SUM, v, "m", true, false);
    return n;
}

/* A sink in memory. */
typedef struct taker {
    char *at;
    int64_t size, n_axes, extent[FTH_MAX_AXES];
} taker;

static fth_status take(void *self, const int64_t *lo, const int64_t *n, const void *src,
                       fth_err *err)
{
    const taker *k = self;
    int64_t rows = 1, width = 1;
    (void)err;
    for (int64_t i = 0; i + 1 < k->n_axes; i++) rows *= n[i];
    if (k->n_axes > 0) width = n[k->n_axes - 1];
    IS_TRUE(k->n_axes <= 2 && (k->n_axes < 2 || lo[0] + rows <= k->extent[0]));
    for (int64_t r = 0; r < rows; r++) {
        const int64_t to = k->n_axes == 2   ? (lo[0] + r) * k->extent[1] + lo[1]
                           : k->n_axes == 1 ? lo[0]
                                            : 0;
        memcpy(k->at + to * k->size, (const char *)src + r * width * k->size,
               (size_t)(width * k->size));
    }
    return FTH_OK;
}

static fth_status run_with(fth_graph *g, const fth_val *out, int n, uint64_t memory,
                           const char *stream, int threads, char **into, fth_err *err)
{
    fth_sink sink[OUTS];
    taker k[OUTS];
    for (int i = 0; i < n; i++) {
        k[i] = (taker){.at = into[i],
                       .size = fth_dtype_size(fth_val_dtype(out[i])),
                       .n_axes = fth_val_axes(out[i])};
        sink[i] = (fth_sink){.kind = "taker",
                             .self = &k[i],
                             .dtype = fth_val_dtype(out[i]),
                             .n_axes = fth_val_axes(out[i]),
                             .write = take};
        for (int d = 0; d < sink[i].n_axes; d++)
            k[i].extent[d] = sink[i].size[d] = fth_val_size(out[i], d);
    }
    const fth_limits l = {
        .memory_bytes = memory, .device_bytes = memory, .threads = threads, .stream = stream};
    fth_plan *p = fth_plan_make(g, out, n, &l, err);
    if (!p) return err->status;
    const fth_status s = fth_run(p, sink, NULL, NULL, err);
    fth_plan_destroy(p);
    return s;
}

static int64_t bytes_of(fth_val v)
{
    int64_t n = fth_dtype_size(fth_val_dtype(v));
    for (int i = 0; i < fth_val_axes(v); i++) n *= fth_val_size(v, i);
    return n;
}

/* Every reduction of a view, one output at a time and all of them together. */
static int try_view(fth_context *ctx, view_fn *view, fth_dtype t, bool negative, const char *name)
{
    static const uint64_t memory[BUDGETS] = {1u << 30, 200000, 100000, 60000};
    data d = {.dtype = t, .k = 1, .n = N};
    d.at = malloc((size_t)(d.k * d.n * fth_dtype_size(t)));
    fill(&d, negative);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "k", d.k);
    fth_axis(g, "n", d.n);
    fth_val out[OUTS];
    const fth_val v = view(g, fth_input(g, "x", t, "k n", source_of(&d)));
    const int n = reductions(v, out);
    char *want[OUTS], *got[OUTS];
    int wrong = 0;
    fth_err err = {0};
    for (int i = 0; i < n; i++) {
        want[i] = malloc((size_t)bytes_of(out[i]));
        got[i] = malloc((size_t)bytes_of(out[i]));
    }
    OKE(run_with(g, out, n, memory[0], NULL, 1, want, &err), &err);
    for (int b = 1; b < BUDGETS; b++)
        for (int i = 0; i < n; i++) {
            err = (fth_err){0};
            const fth_status s = run_with(g, &out[i], 1, memory[b], NULL, 1 + b % 2, &got[i], &err);
            if (s == FTH_E_NO_FIT) continue;
            OKE(s, &err);
            if (memcmp(want[i], got[i], (size_t)bytes_of(out[i])) == 0) continue;
            printf("%s of %s, output %d, memory %" PRIu64 ": %g, was %g\n", name, fth_dtype_name(t),
                   i, memory[b], t_get(fth_val_dtype(out[i]), got[i], 0),
                   t_get(fth_val_dtype(out[i]), want[i], 0));
            wrong++;
        }
    for (int i = 0; i < n; i++) free(want[i]), free(got[i]);
    fth_graph_destroy(g);
    free(d.at);
    return wrong;
}

static fth_context *context(void)
{
    fth_context *ctx;
    (void)t_device(); /* skips the case when the one asked for is not there */
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 2;
    opt.scratch_dir = t_temp_dir();
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    opt.device = opt.backend_path ? "cuda" : "cpu";
    opt.mem.budget_bytes = opt.device_memory_bytes = (uint64_t)2 << 30;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

TEST(parts_of_a_streamed_axis_are_reduced_as_when_they_are_whole)
{
    static const struct {
        view_fn *view;
        const char *name;
    } views[] = {{slice_10, "slice of 10"},
                 {slice_60, "slice of 60"},
                 {slice_100, "slice of 100"},
                 {slice_11933, "slice of 11933"},
                 {slice_35922, "slice of 35922"},
                 {slice_one, "slice of one"},
                 {flipped, "flip"},
                 {padded, "pad"},
                 {joined, "concat"},
                 {windows, "window"},
                 {compacted, "compact"}};
    fth_context *ctx = context();
    int wrong = 0;
    for (size_t k = 0; k < sizeof views / sizeof views[0]; k++)
        for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
            const bool complex = fth_dtype_is_complex((fth_dtype)t);
            if (t_slowed() &&
                (k % 4 != 2 || (t != FTH_I32 && t != FTH_U16 && t != FTH_F32 && t != FTH_U32)))
                continue;
            if (views[k].view == windows && (complex || t == FTH_BOOL)) continue;
            for (int way = ((int)k + t) % t_one_in(1, 4); way < 2; way += t_one_in(1, 4))
                wrong += try_view(ctx, views[k].view, (fth_dtype)t, way, views[k].name);
        }
    fth_err err = {0};
    OKE(fth_context_destroy(ctx, &err), &err);
    EQ_I64(wrong, 0);
}

/* The smallest budget in which one output can be made along an axis. */
static uint64_t smallest(fth_graph *g, const fth_val *out, const char *stream)
{
    uint64_t no = 0, yes = 1u << 30;
    while (yes - no > 1) {
        const uint64_t bytes = no + (yes - no) / 2;
        const fth_limits l = {.memory_bytes = bytes, .device_bytes = bytes, .stream = stream};
        fth_err err = {0};
        fth_plan *p = fth_plan_make(g, out, 1, &l, &err);
        *(p ? &yes : &no) = bytes;
        fth_plan_destroy(p);
    }
    return yes;
}

/* What a window of a slice passes back is read far from the chunk that is being made, and most of
 * all in a chunk that is neither an end nor the middle. Blocks were once sized by those alone. */
TEST(gradients_of_far_parts_stay_in_their_blocks)
{
    static const struct {
        int64_t n, from, m;
    } row[] = {{61153, 17038, 6325}, {61153, 40000, 500}, {30000, 21000, 8000}, {9000, 3000, 10}};
    fth_context *ctx = context();
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        data d = {.dtype = FTH_F32, .k = 1, .n = row[k].n};
        d.at = malloc((size_t)d.n * sizeof(float));
        fill(&d, false);
        fth_graph *g = fth_graph_create(ctx);
        fth_axis(g, "k", 1);
        fth_axis(g, "n", d.n);
        fth_axis(g, "m", row[k].m);
        fth_axis(g, "tap", 3);
        const fth_val x = fth_input(g, "x", FTH_F32, "k n", source_of(&d));
        const fth_val w =
            fth_window(fth_slice(x, "n", row[k].from, "m"), "m", 0, "tap", FTH_BORDER_CLAMP);
        fth_val grad;
        fth_err err = {0};
        OK(fth_grad(fth_mean(fth_sqr(w), "k m tap"), 1, &x, &grad));
        char *want = malloc((size_t)d.n * sizeof(float)),
             *got = malloc((size_t)d.n * sizeof(float));
        OKE(run_with(g, &grad, 1, 1u << 30, NULL, 1, &want, &err), &err);
        const uint64_t least = smallest(g, &grad, "n");
        for (uint64_t memory = least; memory < 2 * least; memory += least / (t_few() ? 2 : 4)) {
            err = (fth_err){0};
            OKE(run_with(g, &grad, 1, memory, "n", 1, &got, &err), &err);
            SAME_BYTES(got, want, (size_t)d.n * sizeof(float));
        }
        fth_graph_destroy(g);
        free(d.at);
        free(want);
        free(got);
    }
    fth_err err = {0};
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* A step along the part works in few chunks, and with two workers takes twice the workspace there;
 * it was once asked about the others only. */
TEST(workspace_is_there_where_a_part_lies)
{
    enum { LONG = 21426, B = 6 };
    data d = {.dtype = FTH_F32, .k = LONG, .n = B};
    d.at = malloc(LONG * B * sizeof(float));
    fill(&d, false);
    fth_context *ctx = context();
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "n", LONG);
    fth_axis(g, "b", B);
    fth_axis(g, "m", 4308);
    const fth_val x = fth_input(g, "x", FTH_F32, "n b", source_of(&d));
    const fth_val v = fth_slice(x, "n", 15366, "m");
    fth_val grad;
    fth_err err = {0};
    OK(fth_grad(fth_mean(fth_sqr(v), "m b"), 1, &x, &grad));
    char *want = malloc(LONG * B * sizeof(float)), *got = malloc(LONG * B * sizeof(float));
    OKE(run_with(g, &grad, 1, 1u << 30, NULL, 1, &want, &err), &err);
    for (uint64_t memory = 100000; memory < 500000; memory += 10000) {
        err = (fth_err){0};
        const fth_status s = run_with(g, &grad, 1, memory, "n", 2, &got, &err);
        if (s == FTH_E_NO_FIT) continue;
        OKE(s, &err);
        SAME_BYTES(got, want, LONG * B * sizeof(float));
    }
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &err), &err);
    free(d.at);
    free(want);
    free(got);
}

TEST_MAIN()
