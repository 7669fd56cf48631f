/* test_random_far.c - random programs about parts of axes much longer than a chunk.
 * seconds: 15
 */
#include "testing/engine/random_check.h"
#include "testing/full.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GRAPHS = 10, FULL = 40 };
#else
enum { GRAPHS = 40, FULL = 150 };
#endif

TEST(random_graphs_of_far_parts)
{
    rg_check_far(1, t_full() ? FULL : GRAPHS);
}

/* Found among ten thousand: workspace was asked of empty turns only; a refusal named more than the
 * least that fits. */
TEST_REPEAT(graphs_that_were_wrong_once)
{
    static const uint64_t seed[] = {1005833, 1006536, 1009190};
    for (size_t i = 0; i < sizeof seed / sizeof seed[0]; i++) rg_check_far(seed[i], 1);
}

TEST_MAIN()
