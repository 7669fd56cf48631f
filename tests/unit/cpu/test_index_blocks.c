/* test_index_blocks.c - gather and scatter_add a block of indices at a time: the bits, and the
 * words of errors, of the loops of their operations.
 *
 * seconds: 5
 */
#include "cpu/backend.h"
#include "cpu/places.h"
#include "testing/engine/op_cut.h"
#include "testing/engine/planned.h"

#include <math.h>

static const fth_dtype indices[] = {FTH_I64, FTH_I32, FTH_U32};

static void put_index(fth_dtype t, void *p, int64_t i, int64_t k)
{
    memcpy((char *)p + i * fth_dtype_size(t), &k, (size_t)fth_dtype_size(t));
}

/* Shapes of both operands; `scatter`: the axes that are summed into "row". */
typedef struct shape {
    const char *axes, *v, *index, *scatter;
} shape;

/* Numbers of all kinds: sums depend on their order, and some are no numbers. */
static void fill(const fth_desc *d, char *data, t_random *r)
{
    oc_fill(r, d, data);
    const int64_t n = fth_desc_count(d), size = fth_dtype_size(d->dtype);
    for (int64_t i = 0; i < n; i += 97) {
        const double odd = t_random_i64(r, 0, 1) ? HUGE_VAL : -HUGE_VAL;
        const float odd32 = t_random_i64(r, 0, 1) ? -NAN : HUGE_VALF;
        if (d->dtype == FTH_F64 || d->dtype == FTH_C128) memcpy(data + i * size, &odd, sizeof odd);
        if (d->dtype == FTH_F32 || d->dtype == FTH_C64)
            memcpy(data + i * size, &odd32, sizeof odd32);
    }
}

/* A node of the shape with its operands, the indices with both ends of the axis among them. */
typedef struct trial {
    oc_bench b;
    oc_case c;
    int64_t limit, n_index;
    fth_dtype index;
} trial;

static void trial_open(trial *t, const shape *s, fth_dtype dtype, fth_dtype index, t_random *r)
{
    *t = (trial){.index = index};
    oc_open(&t->b);
    char axes[128], *next = axes;
    snprintf(axes, sizeof axes, "%s", s->axes);
    for (char *one = strsep(&next, " "); one; one = strsep(&next, " ")) {
        char *size = strchr(one, '=');
        *size++ = '\0';
        fth_axis(t->b.g, one, atoll(size));
    }
    const fth_val v = oc_in(&t->b, "v", dtype, s->v), n = oc_in(&t->b, "n", index, s->index);
    t->c.node = oc_node(&t->b, s->scatter ? fth_scatter_add(v, s->scatter, n, "row")
                                          : fth_gather(v, "row", n));
    t->limit = fth_axis_size(t->b.g, "row");
    t->n_index = fth_desc_count(&t->c.node->in[1]);
    for (int i = 0; i < 2; i++) t->c.in[i] = malloc((size_t)oc_bytes(&t->c.node->in[i]) + 1);
    t->c.out[0] = malloc((size_t)oc_bytes(&t->c.node->out[0]) + 1);
    fill(&t->c.node->in[0], t->c.in[0], r);
    for (int64_t i = 0; i < t->n_index; i++)
        put_index(index, t->c.in[1], i,
                  i % 7 == 0   ? t->limit - 1
                  : i % 7 == 1 ? 0
                               : t_random_i64(r, 0, t->limit - 1));
    const fth_kernel *kernels[] = {&fth__cpu_gather, &fth__cpu_scatter_add};
    t->c.kernel = kernels[s->scatter != NULL];
}

static void trial_close(trial *t)
{
    for (int i = 0; i < 2; i++) free(t->c.in[i]);
    free(t->c.out[0]);
    oc_close(&t->b);
}

static void same_bits(const shape *s, fth_dtype dtype, fth_dtype index, t_random *r)
{
    trial t;
    trial_open(&t, s, dtype, index, r);
    const int64_t bytes = oc_bytes(&t.c.node->out[0]);
    oc_case reference = t.c;
    reference.kernel = NULL;
    reference.out[0] = malloc((size_t)bytes + 1);
    OKE(oc_run(&reference), &reference.err);
    OKE(oc_run(&t.c), &t.c.err);
    SAME_BYTES(t.c.out[0], reference.out[0], bytes);
    memset(t.c.out[0], 0x5a, (size_t)bytes);
    OKE(oc_run_cut(&t.c, r), &t.c.err);
    SAME_BYTES(t.c.out[0], reference.out[0], bytes);
    free(reference.out[0]);
    trial_close(&t);
}

TEST(the_bits_of_the_operations)
{
    static const shape shapes[] = {
        {"row=9 i=1", "row", "i", NULL},
        {"row=300 i=255", "row", "i", NULL},
        {"row=1 i=256", "row", "i", NULL},
        {"row=300 i=257", "row", "i", NULL},
        {"row=300 i=513 c=3", "row c", "i", NULL},
        {"row=30 i=513 c=11", "row c", "i", NULL},
        {"row=30 i=40 j=13 c=2 d=2", "row c d", "j i", NULL},
        {"row=30 i=300 a=5", "a row", "i", NULL},
        {"row=30 i=300 a=5", "a row", "a i", NULL},
        {"row=30 i=7 a=300", "a row", "i a", NULL},
        {"row=30 i=7 a=40 c=3", "a row c", "i a", NULL},
        {"row=30 a=300", "a row", "a", NULL},
        {"row=30 a=300 c=5", "row a c", "a", NULL},
        {"row=30 a=3 c=4", "row a c", "", NULL},
        {"row=1100000 i=700", "row", "i", NULL}, /* beyond a core's cache */
        {"row=9 i=1", "i", "i", "i"},
        {"row=300 i=255", "i", "i", "i"},
        {"row=5 i=513", "i", "i", "i"},
        {"row=300 i=513 c=3", "i c", "i", "i"},
        {"row=7 i=40 c=300", "i c", "i", "i"},
        {"row=7 i=300 c=3", "c i", "i", "i"},
        {"row=7 i=300 c=3", "c i", "c i", "i"},
        {"row=7 i=300 c=3", "i c", "c i", "i"},
        {"row=7 i=20 j=30", "i j", "i j", "i j"},
        {"row=7 i=20 j=30 c=3", "i j c", "i j", "i j"},
        {"row=7 i=20 j=30", "i j", "i j", "j i"},
        {"row=7 i=20 j=30 c=2", "i c j", "j i", "j i"},
        {"row=7 i=20 a=30 c=3", "i a c", "i a", "i"},
        {"row=7 i=20 a=300 c=3", "i a c", "a i", "i"},
        {"row=7 i=20 a=1 c=1", "a i c", "a i", "i"},
        {"row=7 i=1 c=300", "i c", "c i", "i"},
        {"row=7 i=40 c=0", "i c", "i", "i"},
        {"row=7 i=0 c=3", "i c", "i", "i"},
    };
    t_random r = t_random_make(1);
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int t = 0; t < FTH_DTYPE_COUNT; t++)
            same_bits(&shapes[k], (fth_dtype)t, indices[(k + (size_t)t) % 3], &r);
    for (int t = 0; t < 3; t++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
            same_bits(&shapes[k], FTH_F64, indices[t], &r);
}

/* Tables beyond the caches: rows that lie apart, indices that do, and each of its own column. */
TEST(far_tables_with_other_steps)
{
    static const shape shapes[] = {
        {"row=300000 i=300 c=4", "row c", "i", NULL}, /* cut along c */
        {"row=1100000 i=300 a=2", "a row", "i a", NULL},
        {"row=5000 i=300", "row i", "i", NULL},
        {"row=2200000 i=300", "row", "i", NULL},
        {"row=130000 i=290 c=9", "row c", "i", NULL}, /* rows fetched ahead: the last 2 of 32 */
        {"row=130000 i=31 c=9", "row c", "i", NULL},
        {"row=4000 i=288 c=301", "row c", "i", NULL},
        {"row=1200000 i=3 c=1", "row c", "i", NULL},
    };
    t_random r = t_random_make(3);
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int t = 0; t < 3; t++) same_bits(&shapes[k], FTH_F32, indices[t], &r);
}

/* Rows of one side lie in one piece, and those of the other do not. */
static void apart_on_one_side(bool out)
{
    enum { ROWS = 30, N = 40, C = 3, D = 2, GAP = 3 };
    static const shape s = {"row=30 i=40 c=3 d=2", "row c d", "i", NULL};
    static float padded[N * C * (D + GAP)];
    fth_call call = {.threads = 1, .first = true, .last = true};
    t_random r = t_random_make(4);
    trial t;
    trial_open(&t, &s, FTH_F32, FTH_I64, &r);
    OKE(oc_run(&t.c), &t.c.err);
    float *want = malloc(sizeof(float) * N * C * D);
    memcpy(want, t.c.out[0], sizeof(float) * N * C * D);
    call.node = t.c.node;
    call.in[0] = (fth_tile){.data = t.c.in[0], .extent = {ROWS, C, D}, .stride = {C * D, D, 1}};
    call.in[1] = (fth_tile){.data = t.c.in[1], .extent = {N}, .stride = {1}};
    call.out[0] = (fth_tile){.data = t.c.out[0], .extent = {N, C, D}, .stride = {C * D, D, 1}};
    fth_tile *wide = out ? &call.out[0] : &call.in[0];
    for (int64_t i = 0; !out && i < ROWS * C; i++)
        memcpy(padded + i * (D + GAP), (float *)t.c.in[0] + i * D, sizeof(float) * D);
    *wide = (fth_tile){
        .data = padded, .extent = {out ? N : ROWS, C, D}, .stride = {C * (D + GAP), D + GAP, 1}};
    OKE(oc_invoke(&t.c, &call), &t.c.err);
    for (int64_t i = 0; i < N * C; i++)
        SAME_BYTES(out ? padded + i * (D + GAP) : (float *)t.c.out[0] + i * D, want + i * D,
                   sizeof(float) * D);
    free(want);
    trial_close(&t);
}

TEST(rows_in_one_piece_on_one_side_alone)
{
    apart_on_one_side(false);
    apart_on_one_side(true);
}

/* Of two indices outside the first is told, wherever in a block it is. */
static void first_outside(const shape *s, fth_dtype index)
{
    static const int64_t places[] = {0, 1, 254, 255, 256, 257, 511, 512, 698, 699};
    t_random r = t_random_make(2);
    trial t;
    trial_open(&t, s, FTH_F32, index, &r);
    const int64_t beyond[] = {t.limit, -1, INT32_MAX, index == FTH_I64 ? INT64_MIN : INT32_MIN,
                              index == FTH_I64 ? INT64_MAX : INT32_MAX};
    for (int k = 0; k < 10; k++) {
        const int64_t found = index == FTH_U32 && beyond[k % 5] < 0 ? t.limit : beyond[k % 5];
        put_index(index, t.c.in[1], places[k], found);
        put_index(index, t.c.in[1], 699, k == 9 ? found : -1);
        char where[32], what[48];
        snprintf(where, sizeof where, "[i=%lld]", (long long)places[k]);
        snprintf(what, sizeof what, "is %lld,", (long long)found);
        fth_err_clear(&t.c.err);
        IS(oc_run(&t.c), FTH_E_INDEX_RANGE);
        HAS(t.c.err.text, where);
        HAS(t.c.err.text, what);
        oc_case reference = t.c;
        reference.kernel = NULL;
        fth_err_clear(&reference.err);
        IS(oc_run(&reference), FTH_E_INDEX_RANGE);
        EQ_STR(t.c.err.text, reference.err.text);
        put_index(index, t.c.in[1], places[k], 0);
    }
    trial_close(&t);
}

TEST(the_first_index_outside_is_told_of_a_block)
{
    static const shape shapes[] = {
        {"row=300 i=700", "row", "i", NULL},     {"row=300 i=700 c=3", "row c", "i", NULL},
        {"row=2200000 i=700", "row", "i", NULL}, {"row=300 i=700", "i", "i", "i"},
        {"row=300 i=700 c=3", "i c", "i", "i"},
    };
    for (int t = 0; t < 3; t++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
            first_outside(&shapes[k], indices[t]);
}

/* The same read inside a program, which goes on past an index outside, or alone. */
static void in_a_program(int64_t rows, fth_dtype index, bool alone)
{
    enum { N = 1500 };
    fth_err err = {0};
    fth_context *ctx = t_planned_open();
    fth_tensor *t[3] = {NULL};
    const int64_t n = N, sizes[] = {rows, n, n}, outside[] = {-1, 0, 255, 600, 1023, 1024, 1499};
    const fth_dtype dtypes[] = {FTH_F32, index, FTH_F32};
    for (int i = 0; i < 3; i++)
        OK(fth_tensor_create(&t[i], fth_context_mem(ctx), "t", dtypes[i], 1, &sizes[i], &err));
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", rows);
    fth_axis(g, "i", n);
    const fth_val v = fth_input(g, "v", FTH_F32, "row", fth_tensor_source(t[0])),
                  k = fth_input(g, "k", index, "i", fth_tensor_source(t[1])),
                  taken = fth_gather(v, "row", k),
                  made = alone ? taken : fth_mul(taken, fth_const(g, FTH_F32, 2.0));
    fth_plan *p = fth_plan_make(g, &made, 1, NULL, &err);
    IS_TRUE(p);
    float *x = fth_tensor_data(t[0]), *y = fth_tensor_data(t[2]);
    for (int64_t i = 0; i < rows; i++) x[i] = (float)(i % 9973);
    const fth_sink sink = fth_tensor_sink(t[2]);
    for (int which = 0; which < 7; which++) {
        for (int64_t i = 0; i < n; i++)
            put_index(index, fth_tensor_data(t[1]), i, (i * 7919 + 1) % rows);
        put_index(index, fth_tensor_data(t[1]), n - 2, rows - 1);
        if (outside[which] < 0) {
            OK(fth_run(p, &sink, NULL, NULL, &err));
            for (int64_t i = 0; i < n; i++)
                EQ_F64(y[i],
                       (alone ? 1.0F : 2.0F) * x[i == n - 2 ? rows - 1 : (i * 7919 + 1) % rows]);
            continue;
        }
        char where[32];
        snprintf(where, sizeof where, "[i=%lld]", (long long)outside[which]);
        put_index(index, fth_tensor_data(t[1]), n - 1, rows + 1);
        put_index(index, fth_tensor_data(t[1]), outside[which], rows);
        fth_err_clear(&err);
        IS(fth_run(p, &sink, NULL, NULL, &err), FTH_E_INDEX_RANGE);
        HAS(err.text, where);
        fth_err_clear(&err);
    }
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    for (int i = 0; i < 3; i++) fth_tensor_release(t[i]);
    t_planned_close(ctx);
}

TEST(rows_inside_a_program)
{
    for (int t = 0; t < 3; t++) {
        in_a_program(1000, indices[t], false);
        in_a_program(2200000, indices[t], false);
    }
}

TEST(rows_taken_alone)
{
    for (int t = 0; t < 3; t++) {
        in_a_program(1000, indices[t], true);
        in_a_program(2200000, indices[t], true);
    }
}

/* Where the value has the axis of the index too, element i is taken from its own column. */
TEST(one_row_per_column_inside_a_program)
{
    enum { ROWS = 5, N = 600 };
    static double x[ROWS * N], got[N];
    static int64_t k[N];
    fth_err err = {0};
    fth_context *ctx = t_planned_open();
    fth_tensor *t[2] = {NULL};
    OK(fth_tensor_wrap(&t[0], fth_context_mem(ctx), "x", FTH_F64, 2, ((int64_t[]){ROWS, N}), x,
                       &err));
    OK(fth_tensor_wrap(&t[1], fth_context_mem(ctx), "k", FTH_I64, 1, ((int64_t[]){N}), k, &err));
    for (int i = 0; i < ROWS * N; i++) x[i] = i;
    for (int i = 0; i < N; i++) k[i] = (i * 3 + 1) % ROWS;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    fth_axis(g, "i", N);
    const fth_val v = fth_input(g, "x", FTH_F64, "row i", fth_tensor_source(t[0])),
                  index = fth_input(g, "k", FTH_I64, "i", fth_tensor_source(t[1]));
    t_planned(ctx, g, fth_mul(fth_gather(v, "row", index), fth_const(g, FTH_F64, 2.0)), got);
    for (int i = 0; i < N; i++) EQ_F64(got[i], 2.0 * (double)(k[i] * N + i));
    fth_graph_destroy(g);
    for (int i = 0; i < 2; i++) fth_tensor_release(t[i]);
    t_planned_close(ctx);
}

/* Rows from the last to the first, by indices that lie apart along the lines of the program. */
TEST(flipped_rows_by_indices_apart)
{
    enum { ROWS = 50, I = 7, J = 600 };
    static double x[ROWS], z[I * J], got[I * J];
    static int64_t k[J * I];
    fth_err err = {0};
    fth_context *ctx = t_planned_open();
    fth_tensor *t[3] = {NULL};
    OK(fth_tensor_wrap(&t[0], fth_context_mem(ctx), "x", FTH_F64, 1, ((int64_t[]){ROWS}), x, &err));
    OK(fth_tensor_wrap(&t[1], fth_context_mem(ctx), "k", FTH_I64, 2, ((int64_t[]){J, I}), k, &err));
    OK(fth_tensor_wrap(&t[2], fth_context_mem(ctx), "z", FTH_F64, 2, ((int64_t[]){I, J}), z, &err));
    for (int i = 0; i < ROWS; i++) x[i] = i;
    for (int i = 0; i < I * J; i++) z[i] = 1000.0 * i, k[i] = (i * 3 + 1) % ROWS;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    fth_axis(g, "i", I);
    fth_axis(g, "j", J);
    const fth_val v = fth_input(g, "x", FTH_F64, "row", fth_tensor_source(t[0])),
                  index = fth_input(g, "k", FTH_I64, "j i", fth_tensor_source(t[1])),
                  beside = fth_input(g, "z", FTH_F64, "i j", fth_tensor_source(t[2]));
    t_planned(ctx, g, fth_add(beside, fth_gather(fth_flip(v, "row"), "row", index)), got);
    for (int i = 0; i < I; i++)
        for (int j = 0; j < J; j++)
            EQ_F64(got[i * J + j], z[i * J + j] + (double)(ROWS - 1 - k[j * I + i]));
    fth_graph_destroy(g);
    for (int i = 0; i < 3; i++) fth_tensor_release(t[i]);
    t_planned_close(ctx);
}
