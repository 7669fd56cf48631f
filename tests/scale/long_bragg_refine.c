/* long_bragg_refine.c - refinement at full size: 20 seeds of noise and of where it starts.
 *
 * 512 x 512 pixels, N = 8, 1e7 photons, distance and wavelength known; off by half a degree, half a
 * percent of every edge, a pixel of both centres.
 * seconds: 15
 */
#include "testing/bragg/refining.h"

#include <math.h>

TEST(nineteen_of_twenty_seeds_are_recovered)
{
    const tr_off off = {.rotation = 0.5, .cell = 0.005, .beam = 1, .fluence = 0.1};
    fth_err err = {0};
    br_refine_options opt = {.iterations = 50};
    OKE(br_variables_parse(&opt.variables, NULL, NULL, NULL, &err), &err);
    int good = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        tb_case c;
        tr_study s;
        br_refined r;
        double degrees = 0, edges = 0, pixels = 0;
        fth_err_clear(&err);
        tr_crystal(&c, 512);
        tr_make(&s, &c, 1e7, &off, seed);
        const fth_status status = br_refine(&r, s.ctx, &s.e, &s.o, &opt, &err);
        ONE_OF(status, FTH_OK, FTH_E_NUMERIC);
        tr_errors(&s, &r, &degrees, &edges, &pixels);
        const double worst = tr_worst(&s, &r, &opt.variables);
        good += status == FTH_OK && worst <= 4 && degrees < 1e-3 && edges < 1e-4 && pixels < 0.02;
        printf("seed %2d: status %d, %d evaluations, worst %.2f standard errors; these are at most "
               "%.2g deg, %.2g of an edge, %.2g pixel\n",
               (int)seed, (int)status, (int)r.evaluations, worst, degrees, edges, pixels);
        br_refined_clear(&r);
        tr_free(&s);
    }
    LE_F64(19, good);
}

TEST_MAIN()
