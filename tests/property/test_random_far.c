/* test_random_far.c - random programs about parts of axes much longer than a chunk.
 * seconds: 15
 */
#include "testing/random_check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GRAPHS = 40 };
#else
enum { GRAPHS = 150 };
#endif

TEST(random_graphs_of_far_parts)
{
    rg_check_far(1, GRAPHS);
}

TEST_MAIN()
