/* test_spatial_svgp.c - predictions that asked for 9.88 and 16.08 GiB at once fit into one, maps as
 * if of each group too, and so does a step of training; by the plan alone.
 *
 * seconds: 2 */
#include "testing/spatial/spatial_founding.h"

#include <inttypes.h>

#define GIB ((uint64_t)1 << 30)

static void check_plan(sf_case *c, const char *what, uint64_t budget)
{
    fth_err err = {0};
    fth_plan_info info;
    fth_plan *p = fth_plan_make(c->net.g, c->out, c->n_out, NULL, &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_get_info(p, &info);
    printf("%s, %" PRId64 " cells: arena %" PRIu64 ", parameters %" PRIu64 ", %" PRId64 " chunks\n",
           what, c->cells, info.peak_bytes, info.foreign_bytes, info.chunks);
    LE_F64(info.peak_bytes + info.foreign_bytes + info.allowance_bytes, budget);
    IS_TRUE(info.chunks > 1); /* cells are streamed */
    EQ_U64(info.scratch_bytes, 0);
    fth_plan_destroy(p);
}

TEST(predictions_in_one_gib)
{
    static const int64_t cells[] = {73655, 119906, 309594};
    for (int i = 0; i < 3; i++) {
        sf_case c;
        sf_open(&c, sf_context(GIB, NULL), cells[i], 3000, 12, 0);
        sf_predict(&c, false);
        check_plan(&c, "f and s", GIB);
        sf_close(&c);
    }
}

/* 16 groups: the means alone would be 55 MB, a kernel block for each group 14 GB. */
TEST(maps_as_if_of_each_group_in_one_gib)
{
    sf_case c;
    sf_open(&c, sf_context(GIB, NULL), 73655, 3000, 12, 16);
    sf_predict(&c, true);
    check_plan(&c, "f of each group", GIB);
    sf_close(&c);
}

/* Groups at distances of their own have no short form; their blocks are streamed. */
TEST(maps_of_groups_at_distances_of_their_own)
{
    sf_case c;
    fth_err err = {0};
    sf_open(&c, sf_context(GIB, NULL), 73655, 3000, 12, 16);
    fth_tensor_release(c.model.distance);
    OKE(fth_tensor_create(&c.model.distance, fth_context_mem(c.ctx), "d2", FTH_F64, 2,
                          ((int64_t[]){16, 16}), &err),
        &err);
    sf_predict(&c, true);
    check_plan(&c, "f of each group, by a table", GIB);
    sf_close(&c);
}

/* What a step sets apart and plans, at any budget: projections go to a file in the small one. */
static fth_plan_info plan_step(uint64_t budget, uint64_t *scratch)
{
    sf_case c;
    fth_err err = {0};
    fth_val f, s, kl, grad[SP_PARAMS] = {{0}};
    fth_plan_info info;
    sf_open(&c, sf_context(budget, "/tmp"), 41786, 1000, 10, 0);
    sp_prior p = {.ops = sp_prior_of(SP_SVGP), .ctx = c.ctx, .model = &c.model, .planning = true};
    OKE(p.ops->open(&p, &err), &err);
    OKE(sp_model_graph_create(&c.net, c.ctx, &c.model, true, c.cells, &err), &err);
    fth_axis(c.net.g, "cellb", 7000);
    fth_tensor *idx = NULL;
    OKE(fth_tensor_create(&idx, fth_context_mem(c.ctx), "idx", FTH_I64, 1, ((int64_t[]){7000}),
                          &err),
        &err);
    c.net.idx = fth_input(c.net.g, "idx", FTH_I64, "cellb", fth_tensor_source(idx));
    OKE(p.ops->marginals(&p, &c.net, &f, &s, &err), &err);
    const fth_val slope = fth_mul(f, fth_expand(fth_sum(s, "factor"), "factor"));
    OKE(p.ops->gradients(&p, &c.net, slope, fth_mul(s, slope), 41.786, &kl, grad, &err), &err);
    const fth_val out[3] = {kl, grad[SP_P_MU], grad[SP_P_LU]};
    fth_plan *plan = fth_plan_make(c.net.g, out, 3, NULL, &err);
    OKE(plan ? FTH_OK : err.status, &err);
    fth_plan_get_info(plan, &info);
    *scratch = p.scratch_bytes;
    fth_plan_destroy(plan);
    sp_model_graph_destroy(&c.net);
    p.ops->close(&p);
    fth_tensor_release(idx);
    sf_close(&c);
    return info;
}

TEST(steps_stream_where_memory_is_short)
{
    uint64_t scratch[2];
    const fth_plan_info large = plan_step(8 * GIB, &scratch[0]);
    const fth_plan_info small = plan_step(GIB / 4, &scratch[1]);
    printf("a step takes %" PRIu64 " bytes in 8 GiB and %" PRIu64 " in 256 MiB\n", large.peak_bytes,
           small.peak_bytes);
    EQ_U64(scratch[0], 0);
    EQ_U64(scratch[1], (uint64_t)41786 * 1000 * 4);
    EQ_I64(large.passes, 0);
    IS_TRUE(small.passes > 0);
    LE_F64(small.peak_bytes, (double)large.peak_bytes / 2.0);
    LE_F64(small.flops, 1.01 * large.flops); /* nothing dear is made twice */
}

TEST_MAIN()
