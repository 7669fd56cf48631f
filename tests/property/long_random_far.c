/* long_random_far.c - ten thousand more random programs about parts of long axes.
 * seconds: 600
 */
#include "testing/engine/random_check.h"

TEST(random_graphs_of_far_parts)
{
    rg_check_far(1000001, 10000);
}

TEST_MAIN()
