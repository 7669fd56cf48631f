/* test_bragg_refine_faults.c - a refinement that runs out of memory anywhere says so and holds
 * nothing.
 *
 * seconds: 10
 */
#include "testing/bragg/refining.h"

#include <math.h>

/* The whole way with the n-th request refused. */
static fth_status refine(tr_study *s, const double *start, int64_t n)
{
    fth_err err = {0};
    fth_options opt;
    fth_context *ctx = NULL;
    br_refined r;
    br_refine_options o = {.iterations = 20};
    OKE(br_variables_parse(&o.variables, "mx,my,mz,flu", NULL, NULL, &err), &err);
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.fail_alloc = n;
    fth_status status = fth_context_create(&ctx, &opt, &err);
    if (status != FTH_OK) return status;
    s->e.mem = fth_context_mem(ctx);
    memcpy(s->e.param, start, sizeof s->e.param);
    status = br_refine(&r, ctx, &s->e, &s->o, &o, &err);
    if (status == FTH_OK) {
        status = br_refined_save(&r, &o.variables, s->e.mem, t_temp_path("r.json"), NULL, "", &err);
        if (status == FTH_OK)
            status = br_refined_draw(&r, &o.variables, s->e.mem, t_temp_path("r.png"), &err);
    }
    br_refined_clear(&r);
    fth_err leak = {0};
    OKE(fth_context_destroy(ctx, &leak), &leak);
    return status;
}

TEST(every_refused_request_is_survived)
{
    tb_case c;
    tr_study s;
    double start[BR_PARAMS];
    tr_crystal(&c, 32);
    tr_make(&s, &c, 1e6, &(tr_off){.rotation = 0.1}, 1);
    memcpy(start, s.e.param, sizeof start);
    fth_mem *mem = s.e.mem;
    fth_status status = FTH_E_NOMEM;
    int64_t n = 0;
    while (status != FTH_OK) {
        status = refine(&s, start, ++n);
        ONE_OF(status, FTH_OK, FTH_E_NOMEM);
    }
    printf("%d requests\n", (int)n - 1);
    LE_F64(50, n);
    s.e.mem = mem;
    tr_free(&s);
}

TEST_MAIN()
