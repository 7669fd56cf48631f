/* long_spatial_svgp.c - predictions at 73,655 cells with 3000 inducing points and 12 factors, run
 * whole inside 1 GiB.
 *
 * seconds: 600 */
#include "testing/spatial/spatial_founding.h"

#include <math.h>

/* Counts what arrives; keeps nothing. */
typedef struct tally {
    int64_t elements, wrong;
    double least, most;
} tally;

static fth_status count(void *self, const int64_t *lo, const int64_t *n, const void *src,
                        fth_err *err)
{
    (void)lo, (void)err;
    tally *t = self;
    for (int64_t i = 0; i < n[0] * n[1]; i++) {
        const double v = (double)((const float *)src)[i];
        t->wrong += !isfinite(v);
        t->least = fmin(t->least, v);
        t->most = fmax(t->most, v);
    }
    t->elements += n[0] * n[1];
    return FTH_OK;
}

TEST(founding_size_in_one_gib)
{
    enum { CELLS = 73655, POINTS = 3000, FACTORS = 12 };
    const uint64_t budget = (uint64_t)1 << 30;
    sf_case c;
    fth_err err = {0};
    fth_run_report report;
    sf_open(&c, sf_context(budget, NULL), CELLS, POINTS, FACTORS, 0);
    memset(fth_tensor_data(c.model.param[SP_P_LU]), 0, fth_tensor_bytes(c.model.param[SP_P_LU]));
    float *mu = fth_tensor_data(c.model.param[SP_P_MU]);
    for (int64_t i = 0; i < FACTORS * POINTS; i++) mu[i] = (float)(i % 7) - 3.0f;
    sf_predict(&c, false);
    tally f = {0}, s = {.least = 1.0};
    const fth_sink sink[2] = {{.kind = "tally",
                               .self = &f,
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {FACTORS, CELLS},
                               .write = count},
                              {.kind = "tally",
                               .self = &s,
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {FACTORS, CELLS},
                               .write = count}};
    fth_plan *p = fth_plan_make(c.net.g, c.out, 2, NULL, &err);
    OKE(p ? FTH_OK : err.status, &err);
    OKE(fth_run(p, sink, NULL, &report, &err), &err);
    EQ_U64(report.ledger_bytes, report.planned_bytes);
    LE_F64(report.planned_bytes + fth_tensor_bytes(c.model.param[SP_P_LU]), budget);
    IS_TRUE(report.kept || T_SANITIZED);
    EQ_I64(f.elements, (int64_t)FACTORS * CELLS);
    EQ_I64(s.elements, (int64_t)FACTORS * CELLS);
    EQ_I64(f.wrong + s.wrong, 0);
    LE_F64(f.most, 100.0);
    IS_TRUE(s.least > 0.0);
    LE_F64(s.most, 10.0);
    fth_plan_destroy(p);
    sf_close(&c);
}

TEST_MAIN()
