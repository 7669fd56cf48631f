/* test_random_graphs.c - a thousand random programs keep every promise of the engine.
 * seconds: 150
 */
#include "testing/random_check.h"

TEST(random_graphs)
{
    rg_check_many(1, 1000);
}

TEST_MAIN()
