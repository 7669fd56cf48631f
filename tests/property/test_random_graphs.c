/* test_random_graphs.c - six hundred random programs keep every promise of the engine.
 * seconds: 40
 *
 * long_random_graphs takes many thousand.
 */
#include "testing/random_check.h"

/* Sanitizers make each graph several times slower: a sample is enough to look for stray bytes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GRAPHS = 120 };
#else
enum { GRAPHS = 600 };
#endif

TEST(random_graphs)
{
    rg_check_many(1, GRAPHS);
}

TEST_MAIN()
