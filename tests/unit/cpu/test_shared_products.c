/* test_shared_products.c - products that workers share: how, and the same bits for any number of
 * them.
 * seconds: 10
 */
#include "testing/test.h"

#include "plan/plan.h"

#include <fathom/fathom.h>
#include <stdlib.h>

typedef struct product {
    const char *a, *b; /* axes of the operands; k is summed */
    int64_t m, n, k, l;
} product;

/* How the only step is spread over workers. */
typedef enum spread { ALONE, BY_PIECES, BY_STRIPS } spread;

static spread spread_of(const fth_plan *p)
{
    for (int64_t i = 0; i < p->n_items; i++) {
        if (p->item[i].kind != FTH__STEP) continue;
        return p->item[i].team ? BY_STRIPS : p->item[i].split_dim >= 0 ? BY_PIECES : ALONE;
    }
    return ALONE;
}

static int64_t size_of(const product *s, char axis)
{
    return axis == 'm' ? s->m : axis == 'n' ? s->n : axis == 'k' ? s->k : s->l;
}

static fth_tensor *operand(fth_context *ctx, const product *s, const char *axes, fth_dtype t,
                           bool fill)
{
    fth_err err = {0};
    fth_tensor *x = NULL;
    int64_t size[FTH_MAX_AXES], count = 1;
    int n = 0;
    for (; *axes; axes++)
        if (*axes != ' ') count *= size[n++] = size_of(s, *axes);
    OKE(fth_tensor_create(&x, fth_context_mem(ctx), "x", t, n, size, &err), &err);
    t_random r = t_random_make((uint64_t)count);
    if (fill && t == FTH_F32) t_random_fill_f32(&r, fth_tensor_data(x), count);
    for (int64_t i = 0; fill && t == FTH_F64 && i < count; i++)
        ((double *)fth_tensor_data(x))[i] = t_random_f64(&r) - 0.5;
    return x;
}

/* The product by so many workers, into `out` (freed by the caller); NULL: it is only planned. */
static spread multiply(const product *s, fth_dtype t, int threads, void **out, int64_t *bytes)
{
    fth_err err = {0};
    fth_options opt;
    fth_context *ctx;
    fth_options_default(&opt);
    opt.threads = threads;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "m", s->m);
    fth_axis(g, "n", s->n);
    fth_axis(g, "k", s->k);
    fth_axis(g, "l", s->l);
    fth_tensor *a = operand(ctx, s, s->a, t, out), *b = operand(ctx, s, s->b, t, out), *c = NULL;
    const fth_val v = fth_dot(fth_input(g, "a", t, s->a, fth_tensor_source(a)),
                              fth_input(g, "b", t, s->b, fth_tensor_source(b)), "k");
    fth_sink sink = {0};
    fth_limits limits = {.stream = ""};
    if (out) {
        const fth_desc *d = fth__val_desc(v);
        *bytes = fth_desc_count(d) * fth_dtype_size(t);
        *out = malloc((size_t)*bytes);
        OKE(fth_tensor_wrap(&c, fth_context_mem(ctx), "c", t, d->n_axes, d->size, *out, &err),
            &err);
        sink = fth_tensor_sink(c);
        limits.sinks = &sink;
    }
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    const spread found = spread_of(p);
    if (out) OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(a);
    fth_tensor_release(b);
    if (c) fth_tensor_release(c);
    OKE(fth_context_destroy(ctx, &err), &err);
    return found;
}

static spread planned(product s, int threads)
{
    return multiply(&s, FTH_F32, threads, NULL, NULL);
}

TEST(one_tile_is_shared_by_strips_and_several_as_they_are)
{
    EQ_I64(planned((product){"m k", "k n", 1024, 256, 512, 1}, 2), BY_STRIPS);
    EQ_I64(planned((product){"m k", "k n", 1024, 256, 512, 1}, 1), ALONE);
    EQ_I64(planned((product){"k m", "n k", 256, 1024, 512, 1}, 2), BY_STRIPS);
    EQ_I64(planned((product){"m k", "k n", 64, 64, 64, 1}, 2), ALONE);
    EQ_I64(planned((product){"m k", "k n", 4096, 256, 512, 1}, 2), BY_PIECES);
    EQ_I64(planned((product){"l m k", "l k n", 512, 64, 512, 3}, 2), BY_STRIPS); /* 3 in turn */
    EQ_I64(planned((product){"l m k", "l k n", 512, 64, 512, 4}, 2), BY_PIECES);
}

/* A matrix times a vector is shared by elements of the result, once it is large enough. */
TEST(few_rows_times_a_vector_are_shared)
{
    EQ_I64(planned((product){"m k", "k", 256, 1, 65536, 1}, 2), BY_STRIPS);
    EQ_I64(planned((product){"k m", "k", 256, 1, 65536, 1}, 2), BY_STRIPS);
    EQ_I64(planned((product){"m k", "k", 256, 1, 512, 1}, 2), ALONE);
    EQ_I64(planned((product){"m k", "k", 8192, 1, 512, 1}, 2), BY_PIECES);
}

/* Two tiles are for two of four workers. */
TEST(fewer_pieces_than_workers_are_shared_by_some)
{
    EQ_I64(planned((product){"m k", "k n", 2048, 2048, 256, 1}, 4), BY_PIECES);
    EQ_I64(planned((product){"m k", "k n", 2048, 64, 256, 1}, 4), BY_PIECES);
}

TEST(any_number_of_workers_makes_the_same_bits)
{
    static const product cases[] = {
        {"m k", "k n", 1024, 256, 512, 1},   {"k m", "n k", 251, 300, 512, 1},
        {"k m", "k n", 800, 700, 1030, 1},   {"m k", "k n", 1024, 1024, 513, 1},
        {"l m k", "l k n", 512, 64, 300, 3}, {"k m", "k n", 256, 65, 17000, 1}, /* superblocks */
        {"m k l", "k n", 400, 200, 300, 2},                                     /* packed */
        {"m k", "k n", 2100, 60, 100, 1},    {"m k", "k", 300, 1, 5000, 1},
        {"k m", "k", 300, 1, 5001, 1}, /* vectors */
        {"k", "k n", 1, 1037, 999, 1},       {"k", "n k", 1, 1023, 1030, 1},
        {"l m k", "l k", 201, 1, 3001, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int wide = 0; wide < 2; wide++) {
            void *first = NULL, *other = NULL;
            int64_t bytes = 0;
            (void)multiply(&cases[i], wide ? FTH_F64 : FTH_F32, 1, &first, &bytes);
            for (int threads = 2; threads <= 5; threads++) {
                (void)multiply(&cases[i], wide ? FTH_F64 : FTH_F32, threads, &other, &bytes);
                SAME_BYTES(first, other, bytes);
                free(other);
            }
            free(first);
        }
}

TEST_MAIN()
