/* test_spatial_poisson.c - the operations of the likelihood by themselves, cut wherever their grid
 * allows, with tiles in larger boxes, on a device too. seconds: 5 labels: gpu
 */
#include "instruments/spatial/ops/poisson/poisson.h"
#include "testing/engine/op_device.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>

/* Random counts of a batch, and the graph that has them. */
typedef struct batch {
    fth_graph *g;
    sp_poisson_in in;
    fth_val eps;
    int64_t *row_ptr;
    int32_t *gene;
    float *value;
} batch;

typedef struct shape {
    int cells, genes, factors, draws;
    double stored;
} shape;

static void *room(size_t n, size_t size)
{
    void *p = calloc(n + 4, size);
    if (!p) FAIL("no memory");
    return p;
}

/* Every ninth cell is empty; some counts are 0, as files may have them. */
static int64_t draw_counts(batch *b, const shape *s, t_random *r)
{
    int64_t n = 0;
    b->row_ptr = room((size_t)s->cells + 1, sizeof *b->row_ptr);
    b->gene = room((size_t)(s->cells * s->genes), sizeof *b->gene);
    b->value = room((size_t)(s->cells * s->genes), sizeof *b->value);
    for (int i = 0; i < s->cells; i++) {
        for (int32_t d = 0; d < s->genes && i % 9 != 4; d++)
            if (t_random_f64(r) < s->stored) {
                b->gene[n] = d;
                b->value[n++] = (float)t_random_i64(r, 0, 9);
            }
        b->row_ptr[i + 1] = n;
    }
    return n;
}

static fth_val drawn(batch *b, const char *name, fth_dtype real, const char *axes, t_random *r,
                     double (*of)(double))
{
    const fth_val v = t_noise(b->g, name, real, axes, r);
    for (int64_t i = 0; i < t_count(v); i++)
        t_put(real, t_data(v), i, of(t_get(real, t_data(v), i)), 0);
    return v;
}

/* Loadings, one in twenty of which is 0: rates at their floor. */
static double loading(double x)
{
    return fabs(x) < 0.06 ? 0 : fabs(x);
}

static double as_is(double x)
{
    return x;
}

/* Entries are an axis with some room behind the last, or (`owned`) belong to the cells. */
static batch make(const shape *s, fth_dtype real, sp_poisson_path path, bool owned, t_random *r)
{
    batch b = {0};
    char axes[200];
    const int64_t n = draw_counts(&b, s, r);
    snprintf(axes, sizeof axes, "draw=%d factor=%d cellb=%d geneb=%d cellb1=%d", s->draws,
             s->factors, s->cells, s->genes, s->cells + 1);
    b.g = t_graph(axes);
    if (owned)
        fth_axis_ragged(b.g, "entry", "cellb", b.row_ptr);
    else
        fth_axis(b.g, "entry", n + 3);
    const char *draws = s->draws == 1 ? "factor cellb" : "draw factor cellb";
    b.in = (sp_poisson_in){.phi = drawn(&b, "phi", real, draws, r, exp),
                           .W = drawn(&b, "W", real, "geneb factor", r, loading),
                           .row_ptr = t_input(b.g, "row_ptr", FTH_I64, "cellb1", b.row_ptr),
                           .gene = t_input(b.g, "gene", FTH_I32, "entry", b.gene),
                           .value = t_input(b.g, "value", FTH_F32, "entry", b.value),
                           .path = path};
    b.eps = drawn(&b, "eps", real, draws, r, as_is);
    return b;
}

static void unmake(batch *b)
{
    t_graph_free(b->g);
    free(b->row_ptr);
    free(b->gene);
    free(b->value);
}

static void look(fth_val v)
{
    double *out = room((size_t)t_count(v), sizeof *out);
    t_eval_f64(v, out);
    free(out);
}

/* More factors and draws than kernels hold at a time; one of each; more genes than threads; blocks
 * of cells of which the last is short. */
static const shape shapes[] = {{700, 9, 3, 2, 0.2},  {530, 40, 10, 3, 0.1}, {70, 300, 5, 1, 0.5},
                               {40, 13, 35, 3, 0.4}, {300, 6, 1, 9, 0.3},   {1, 3, 2, 1, 1.0},
                               {9, 700, 17, 5, 0.9}};

TEST(operations_may_be_cut_on_their_grid)
{
    t_random r = t_random_make(12);
    t_cuts(3);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = (int)i % t_one_in(1, 3); k < 4; k += t_one_in(1, 3)) {
            batch b = make(&shapes[i], k & 1 ? FTH_F64 : FTH_F32,
                           k & 2 ? SP_PATH_DENSE : SP_PATH_SPARSE, false, &r);
            look(sp_poisson_genes_(FTH_HERE, &b.in, false));
            look(sp_poisson_genes_(FTH_HERE, &b.in, true));
            look(sp_poisson_cells_(FTH_HERE, &b.in, b.eps));
            look(sp_poisson_cells_(FTH_HERE, &b.in, (fth_val){b.g, 0}));
            unmake(&b);
        }
}

/* Counts that belong to cells come with them: a piece of the cells sees its own alone. */
TEST(counts_of_a_ragged_axis)
{
    t_random r = t_random_make(14);
    t_cuts(5);
    for (int k = 0; k < 4; k++) {
        batch b = make(&shapes[k], FTH_F64, k % 2 ? SP_PATH_AUTO : SP_PATH_SPARSE, true, &r);
        look(sp_poisson_cells_(FTH_HERE, &b.in, b.eps));
        look(sp_poisson_genes_(FTH_HERE, &b.in, false));
        unmake(&b);
    }
}

/* The device has the bits of the loops over stored counts: no function of a library is in them. */
TEST(a_device_gives_the_same_bits)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    t_random r = t_random_make(13);
    t_exact(true);
    t_cuts(1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 2; k++) {
            batch b = make(&shapes[i], k ? FTH_F64 : FTH_F32, SP_PATH_SPARSE, false, &r);
            look(sp_poisson_genes_(FTH_HERE, &b.in, k));
            if (shapes[i].draws < 3) look(sp_poisson_cells_(FTH_HERE, &b.in, b.eps));
            unmake(&b);
        }
    t_exact(false);
}

TEST_MAIN()
