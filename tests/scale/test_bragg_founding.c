/* test_bragg_founding.c - the image that once asked for 9 GB of rotated vectors: 2463 x 2527 pixels
 * over ten steps of the spindle, with 1, 10 and 100 domains.
 * seconds: 20
 *
 * All are planned at full size. One domain is rendered whole; of the others some rows
 * (long_bragg_founding.c renders them whole).
 */
#include "testing/bragg/bragg_founding.h"

TEST(plans_stay_near_image_and_table)
{
    for (int64_t domains = 1; domains <= 100; domains *= 10)
        for (int threads = 1; threads <= 2; threads++) {
            tb_case c;
            tb_founding(&c, domains, 2527);
            tb_run run = {.dtype = FTH_F32, .threads = threads};
            tb_render(&c, &run);
            founding_bounds(&c, &run);
            tb_free(&c);
        }
}

TEST(one_domain)
{
    founding_runs(1, T_SANITIZED ? 200 : 2527);
}

TEST(ten_domains)
{
    founding_runs(10, T_SANITIZED ? 20 : 250);
}

TEST(hundred_domains)
{
    founding_runs(100, T_SANITIZED ? 2 : 25);
}

TEST_MAIN()
