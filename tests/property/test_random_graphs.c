/* test_random_graphs.c - random programs keep every promise of the engine.
 * seconds: 40
 *
 * long_random_graphs takes many thousand.
 */
#include "testing/engine/random_check.h"
#include "testing/full.h"

/* Sanitizers make each graph several times slower: a sample is enough to look for stray bytes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GRAPHS = 30, FULL = 120 };
#else
enum { GRAPHS = 300, FULL = 600 };
#endif

TEST(random_graphs)
{
    rg_check_many(1, t_full() ? FULL : GRAPHS);
}

TEST_MAIN()
