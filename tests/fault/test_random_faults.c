/* seconds: 10
 * test_random_faults.c - random programs run out of memory, now and then.
 */
#include "testing/engine/random_faults.h"

TEST(random_programs_survive_failures)
{
    rf_check_many(1, 20, 7);
}

TEST_MAIN()
