/* samples.c - a small program for every builder: rows of elementwise.def and ops.def.
 *
 * A sample that is too long for its row of ops.def is a function here.
 */
#include <fathom/ops.h>
#include <fathom/samples.h>

/* ---- what rows of ops.def call ---- */

static fth_val zero(fth_graph *g)
{
    return fth_const_i64(g, FTH_I64, 0);
}

/* A mask over i. */
static fth_val first_half(fth_graph *g)
{
    return fth_lt(fth_index(g, "i"), fth_const_i64(g, FTH_I64, fth_axis_size(g, "half")));
}

static fth_val twice(fth_val x)
{
    return fth_concat(2, ((fth_val[]){x, x}), ((const char *const[]){"i", "i"}), "double");
}

static fth_val thrice(fth_val x)
{
    return fth_stack(3, ((fth_val[]){x, x, x}), "tap");
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

/* ---- the table ---- */

typedef fth_val sample_fn(fth_graph *g, fth_val x, fth_dtype t);

#define SAMPLE(name, sample)                                                                       \
    static fth_val sample_##name(fth_graph *g, fth_val x, fth_dtype t)                             \
    {                                                                                              \
        (void)g, (void)x, (void)t;                                                                 \
        return sample;                                                                             \
    }
#define FTH_OP(name, kernels, exact, python, words, sample) SAMPLE(name, sample)
#define FTH_OP_BUILDER(name, op, python, words, sample) SAMPLE(name, sample)
#include <fathom/ops.def>

static const struct {
    fth_sample row;
    sample_fn *build;
    int arity;  /* elementwise: */
    bool picks; /* the first operand is bool */
} rows[] = {
#define PICK 1
#define SAME 0
#define BOOL 0
#define REAL 0
#define COMPLEX 0
#define FTH_EW(NAME, text, arity, RESULT, b, i, r, c, dx, dy, dz)                                  \
    {{text, "map", NULL}, NULL, arity, RESULT},
#include <fathom/elementwise.def>
#undef FTH_EW
#undef PICK
#undef SAME
#undef BOOL
#undef REAL
#undef COMPLEX
#define FTH_OP(name, kernels, exact, python, words, sample)                                        \
    {{#name, #name, #sample}, sample_##name, 0, false},
#define FTH_OP_BUILDER(name, op, python, words, sample)                                            \
    {{#name, #op, #sample}, sample_##name, 0, false},
#include <fathom/ops.def>
};
enum { ROWS = sizeof rows / sizeof rows[0] };

const fth_sample *fth_sample_at(int i)
{
    return i >= 0 && i < ROWS ? &rows[i].row : NULL;
}

bool fth_samples_axes(fth_graph *g, int64_t n)
{
    const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"i", n},        {"j", n},   {"k", n},          {"all", n * n}, {"bin", n / 2 + 1},
                {"half", n / 2}, {"tap", 3}, {"double", 2 * n}, {"batch", 1},   {"chan", 1},
                {"out", 1},      {"ky", 3},  {"kx", 3}};
    /* entries of rows: some rows have none */
    static const int64_t row_ptr[FTH_SAMPLES_MOST + 1] = {0,  1,  3,  3,  5,  6,  6,  9, 11,
                                                          11, 12, 14, 17, 17, 18, 20, 21};
    if (n < 4 || n > FTH_SAMPLES_MOST || n % 2 != 0) return false;
    bool all = true;
    for (size_t a = 0; a < sizeof axes / sizeof axes[0]; a++)
        all &= fth_axis(g, axes[a].name, axes[a].size);
    return fth_axis_ragged(g, "entry", "i", row_ptr) && all;
}

fth_val fth_sample_build(fth_graph *g, int i, fth_val x)
{
    const fth_val none = {0};
    fth_val first = x;
    if (i < 0 || i >= ROWS) return none;
    if (rows[i].build) return rows[i].build(g, x, fth_val_dtype(x));
    if (rows[i].picks)
        first = fth_lt(fth_expand(fth_index(g, "i"), "j"), fth_expand(fth_index(g, "j"), "i"));
    return fth_map_(FTH_HERE, (fth_ew)i, first, rows[i].arity > 1 ? x : none,
                    rows[i].arity > 2 ? x : none);
}
