/* long_random_graphs.c - ten thousand more random programs.
 * seconds: 600
 */
#include "testing/engine/random_check.h"

TEST(random_graphs)
{
    rg_check_many(1000001, 10000);
}

TEST_MAIN()
