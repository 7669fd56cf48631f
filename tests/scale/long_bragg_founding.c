/* long_bragg_founding.c - the image of test_bragg_founding.c whole, with 10 and 100 domains.
 * seconds: 120
 */
#include "testing/bragg/bragg_founding.h"

TEST(ten_domains)
{
    founding_runs(10, 2527);
}

TEST(hundred_domains)
{
    founding_runs(100, 2527);
}

TEST_MAIN()
