/* support.c - which operation takes which dtype: not a list, but the engine's own answer.
 *
 * Every row builds the operation on a small value of the dtype and plans it. Inference refuses
 * what is not defined, planning what the device has no kernel for. A backend without a card to
 * plan for can only tell which operations it has kernels of.
 */
#include "doctor.h"

#include <string.h>

static const struct {
    const char *name;
    int arity;
    bool picks; /* the first operand is bool */
} elementwise[] = {
#define PICK 1
#define SAME 0
#define BOOL 0
#define REAL 0
#define COMPLEX 0
#define FTH_EW(NAME, text, arity, RESULT, b, i, r, c, dx, dy, dz) {text, arity, RESULT},
#include <fathom/elementwise.def>
#undef FTH_EW
#undef PICK
#undef SAME
#undef BOOL
#undef REAL
#undef COMPLEX
};
enum { ELEMENTWISE = sizeof elementwise / sizeof elementwise[0] };

/* x is [i j], both of four elements, and t its dtype. */
#define ROWS(X)                                                                                    \
    X("cast", "cast", fth_cast(x, FTH_F32))                                                        \
    X("expand", "expand", fth_expand(x, "k"))                                                      \
    X("rename", "rename", fth_rename(x, "i", "k"))                                                 \
    X("layout", "layout", fth_layout(x, "j i"))                                                    \
    X("merge", "merge", fth_merge(x, "i j", "all"))                                                \
    X("split", "split", fth_split(fth_merge(x, "i j", "all"), "all", NULL))                        \
    X("mark", "mark", fth_mark(x, FTH_LOWER, "i", "j"))                                            \
    X("sum", "reduce", fth_sum(x, "j"))                                                            \
    X("prod", "reduce", fth_prod(x, "j"))                                                          \
    X("rmin", "reduce", fth_rmin(x, "j"))                                                          \
    X("rmax", "reduce", fth_rmax(x, "j"))                                                          \
    X("any", "reduce", fth_any(x, "j"))                                                            \
    X("all", "reduce", fth_all(x, "j"))                                                            \
    X("logsumexp", "reduce", fth_logsumexp(x, "j"))                                                \
    X("mean", "reduce", fth_mean(x, "j"))                                                          \
    X("count", "reduce", fth_count(x, "j"))                                                        \
    X("variance", "variance", fth_variance(x, "j"))                                                \
    X("argmax", "argreduce", fth_argmax(x, "j"))                                                   \
    X("histogram", "histogram", fth_histogram(x, "j", "bin", 0, 1))                                \
    X("cumsum", "scan", fth_cumsum(x, "j"))                                                        \
    X("gather", "gather", fth_gather(x, "i", fth_index(g, "k")))                                   \
    X("scatter_add", "scatter_add", fth_scatter_add(x, "i", fth_index(g, "i"), "k"))               \
    X("compact", "compact", fth_compact(x, "i", mask(g), "half"))                                  \
    X("spread", "spread", fth_spread(x, "entry"))                                                  \
    X("collect", "collect", fth_collect(fth_spread(x, "entry"), "entry"))                          \
    X("concat", "concat", twice(x))                                                                \
    X("slice", "slice", fth_slice(x, "i", 1, "half"))                                              \
    X("pad", "pad", fth_pad(x, "i", 2, "double", 0))                                               \
    X("window", "window", fth_window(x, "j", 1, "tap", false))                                     \
    X("flip", "flip", fth_flip(x, "i"))                                                            \
    X("sort", "sort", fth_sort(x, "j", false))                                                     \
    X("topk", "topk", fth_topk(x, "j", "half", true))                                              \
    X("pool_mean", "pool", fth_pool_mean(x, "j", 2, "half"))                                       \
    X("pool_max", "pool", fth_pool_max(x, "j", 2, "half"))                                         \
    X("upsample", "upsample", fth_upsample(x, "j", 2, "double"))                                   \
    X("dot", "dot", fth_dot(x, x, "j"))                                                            \
    X("cholesky", "cholesky", fth_cholesky(x, "i", "j"))                                           \
    X("solve", "solve", fth_solve(fth_mark(x, FTH_LOWER, "i", "j"), fth_sum(x, "j"), "i", "j"))    \
    X("eigh", "eigh", fth_eigh(x, "i", "j"))                                                       \
    X("inverse", "inverse", fth_inverse(x, "i", "j"))                                              \
    X("fft", "fft", fth_fft(x, "j", "k"))                                                          \
    X("rfft", "fft", fth_rfft(x, "j", "bin"))                                                      \
    X("conv2d", "conv2d", convolve(x))                                                             \
    X("uniform", "random", fth_uniform(t, "i", zero(g), zero(g), 0))                               \
    X("normal", "random", fth_normal(t, "i", zero(g), zero(g), 0))                                 \
    X("poisson", "poisson", fth_poisson(x, zero(g), zero(g), 0))

static const struct {
    const char *name, *op;
} others[] = {
#define X(name, op, value) {name, op},
    ROWS(X)
#undef X
};
enum { OTHERS = sizeof others / sizeof others[0] };

static fth_val zero(fth_graph *g)
{
    return fth_const_i64(g, FTH_I64, 0);
}

static fth_val mask(fth_graph *g)
{
    return fth_lt(fth_index(g, "i"), fth_const_i64(g, FTH_I64, 2));
}

static fth_val twice(fth_val x)
{
    return fth_concat(2, ((fth_val[]){x, x}), ((const char *const[]){"i", "i"}), "double");
}

static fth_val convolve(fth_val x)
{
    const fth_val w = fth_rename(fth_slice(fth_slice(x, "i", 0, "tap"), "j", 0, "kx"), "tap", "ky");
    const fth_conv c = {.y = "i",
                        .x = "j",
                        .out_y = "i",
                        .out_x = "j",
                        .chan = "chan",
                        .ky = "ky",
                        .kx = "kx",
                        .stride = 1,
                        .dilation = 1,
                        .pad_y = 1,
                        .pad_x = 1};
    return fth_conv2d(fth_expand(x, "batch chan"), fth_expand(w, "out chan"), &c);
}

bool doctor_support(int i, const char **name, const char **op)
{
    if (i < 0 || i >= ELEMENTWISE + OTHERS) return false;
    *name = i < ELEMENTWISE ? elementwise[i].name : others[i - ELEMENTWISE].name;
    *op = i < ELEMENTWISE ? NULL : others[i - ELEMENTWISE].op;
    return true;
}

static fth_val build_other(fth_graph *g, int i, fth_val x, fth_dtype t)
{
    int row = 0;
#define X(name, op, value)                                                                         \
    if (i == row++) return value;
    ROWS(X)
#undef X
    return (fth_val){0};
}

static fth_val build(fth_graph *g, int i, fth_val x, fth_dtype t)
{
    if (i >= ELEMENTWISE) return build_other(g, i - ELEMENTWISE, x, t);
    const fth_val none = {0};
    fth_val first = x;
    if (elementwise[i].picks)
        first = fth_lt(fth_expand(fth_index(g, "i"), "j"), fth_expand(fth_index(g, "j"), "i"));
    return fth_map_(FTH_HERE, (fth_ew)i, first, elementwise[i].arity > 1 ? x : none,
                    elementwise[i].arity > 2 ? x : none);
}

static fth_status read_nothing(void *self, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)dst;
    return FTH_FAIL(err, FTH_E_INTERNAL, "the support table plans, it never runs");
}

bool doctor_supports(fth_context *ctx, int i, fth_dtype dtype)
{
    static const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"i", 4},    {"j", 4},   {"k", 4},      {"all", 16},  {"bin", 3},
                {"half", 2}, {"tap", 3}, {"double", 8}, {"batch", 1}, {"chan", 1},
                {"out", 1},  {"ky", 3},  {"kx", 3}};
    static const int64_t row_ptr[] = {0, 1, 3, 3, 5};
    fth_graph *g = fth_graph_create(ctx);
    for (size_t a = 0; a < sizeof axes / sizeof axes[0]; a++)
        fth_axis(g, axes[a].name, axes[a].size);
    fth_axis_ragged(g, "entry", "i", row_ptr);
    const fth_source source = {
        .kind = "none", .dtype = dtype, .n_axes = 2, .size = {4, 4}, .read = read_nothing};
    const fth_val v = build(g, i, fth_input(g, "x", dtype, "i j", source), dtype);
    fth_plan *p = fth_val_ok(v) ? fth_plan_make(g, &v, 1, NULL, NULL) : NULL;
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return p != NULL;
}

/* Whether a backend has a kernel of that operation at all; elementwise ones are maps. */
static bool has_kernel(const fth_backend *b, const char *op)
{
    const fth_kernel *k;
    for (int i = 0; (k = b->kernel(i)) != NULL; i++)
        if (strcmp(k->op, op ? op : "map") == 0) return true;
    return false;
}

static void show_table(FILE *out, fth_context *ctx)
{
    const char *name, *op;
    fprintf(out, "\noperations on %s\n%-12s", fth_context_device(ctx), "");
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) fprintf(out, " %-5s", fth_dtype_name((fth_dtype)t));
    fputc('\n', out);
    for (int i = 0; doctor_support(i, &name, &op); i++) {
        fprintf(out, "%-12s", name);
        for (int t = 0; t < FTH_DTYPE_COUNT; t++)
            fprintf(out, t + 1 < FTH_DTYPE_COUNT ? " %-5s" : " %s",
                    doctor_supports(ctx, i, (fth_dtype)t) ? "yes" : "-");
        fputc('\n', out);
    }
}

/* Without a card: operations with a kernel, and those without one. */
static void show_kernels(FILE *out, const fth_backend *b)
{
    static const char *const titles[] = {"no kernels for", "kernels for"};
    const char *name, *op;
    fprintf(out, "\noperations on %s, as far as can be told without a card\n", b->name);
    for (int has = 1; has >= 0; has--) {
        int column = fprintf(out, "  %-14s", titles[has]);
        for (int i = 0; doctor_support(i, &name, &op); i++) {
            if (has_kernel(b, op) != (has == 1)) continue;
            if (column + (int)strlen(name) + 1 > 98) column = fprintf(out, "\n%16s", "") - 1;
            column += fprintf(out, " %s", name);
        }
        fputc('\n', out);
    }
}

void doctor_show_support(FILE *out, fth_context *cpu, fth_context *cuda, const fth_backend *backend)
{
    show_table(out, cpu);
    if (cuda)
        show_table(out, cuda);
    else if (backend)
        show_kernels(out, backend);
}

static void json_dtypes(cli_json *j, const char *key, fth_context *ctx, int i)
{
    cli_json_open(j, key, '[');
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        if (doctor_supports(ctx, i, (fth_dtype)t))
            cli_json_text(j, NULL, fth_dtype_name((fth_dtype)t));
    cli_json_close(j, ']');
}

void doctor_show_support_json(cli_json *j, fth_context *cpu, fth_context *cuda,
                              const fth_backend *backend)
{
    const char *name, *op;
    cli_json_open(j, "operations", '[');
    for (int i = 0; doctor_support(i, &name, &op); i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "name", name);
        json_dtypes(j, "dtypes", cpu, i);
        if (cuda)
            json_dtypes(j, "cuda_dtypes", cuda, i);
        else if (backend)
            cli_json_bool(j, "cuda_kernel", has_kernel(backend, op));
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}
