/* test_spatial_counts.c - counts as a matrix: their places, cut anywhere, on a device too.
 * seconds: 2 labels: gpu
 */
#include "instruments/spatial/ops/counts/counts.h"
#include "testing/engine/op_device.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

enum { CELLS = 37, GENES = 23, ROOM = CELLS * GENES + 3 };

/* Every ninth cell is empty; behind the last entry nothing may be read. */
static fth_val make(fth_graph **g, fth_dtype real, t_random *r, float *dense, int64_t *row_ptr,
                    int32_t *gene, float *value)
{
    int64_t n = 0;
    memset(dense, 0, sizeof *dense * CELLS * GENES);
    for (int i = 0; i < CELLS; i++) {
        row_ptr[i] = n;
        for (int32_t d = GENES - 1; d >= 0 && i % 9 != 4; d--)
            if (t_random_f64(r) < 0.4) {
                gene[n] = d;
                value[n] = (float)t_random_i64(r, 1, 9);
                dense[d * CELLS + i] = value[n++];
            }
    }
    row_ptr[CELLS] = n;
    for (; n < ROOM; n++) gene[n] = INT32_MAX, value[n] = -1;
    *g = t_graph("geneb=23 cellb=37 cellb1=38 entry=854");
    return sp_counts_matrix_(FTH_HERE, t_input(*g, "row_ptr", FTH_I64, "cellb1", row_ptr),
                             t_input(*g, "gene", FTH_I32, "entry", gene),
                             t_input(*g, "value", FTH_F32, "entry", value), real, GENES, CELLS);
}

static void compare(fth_dtype real, int seed)
{
    t_random r = t_random_make((uint64_t)seed);
    static float dense[CELLS * GENES], value[ROOM];
    static int64_t row_ptr[CELLS + 1];
    static int32_t gene[ROOM];
    static double out[CELLS * GENES];
    fth_graph *g = NULL;
    const fth_val v = make(&g, real, &r, dense, row_ptr, gene, value);
    t_eval_f64(v, out);
    for (int i = 0; i < CELLS * GENES; i++) EQ_F64(out[i], (double)dense[i]);
    t_graph_free(g);
}

TEST(counts_are_in_their_places_however_it_is_cut)
{
    t_cuts(4);
    compare(FTH_F32, 1);
    compare(FTH_F64, 2);
}

TEST(a_device_gives_the_same)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    t_exact(true);
    t_cuts(1);
    compare(FTH_F32, 3);
    compare(FTH_F64, 4);
    t_exact(false);
}

TEST(wrong_operands_are_refused)
{
    fth_err err = {0};
    fth_graph *g = t_graph("geneb=2 cellb=3 cellb1=4 entry=5");
    int64_t row_ptr[4] = {0};
    int32_t gene[5] = {0};
    float value[5] = {0};
    const fth_val rows = t_input(g, "row_ptr", FTH_I64, "cellb1", row_ptr),
                  at = t_input(g, "gene", FTH_I32, "entry", gene),
                  y = t_input(g, "value", FTH_F32, "entry", value);
    sp_counts_matrix_(FTH_HERE, rows, at, y, FTH_F32, 2, 4); /* one cell too many */
    EQ_I64(fth_graph_check(g, &err), FTH_E_AXIS_MISMATCH);
    t_graph_free(g);
}

TEST_MAIN()
