/* seconds: 60
 * long_random_faults.c - random programs run out of memory at every request they make.
 */
#include "testing/engine/random_faults.h"

TEST(random_programs_survive_every_failure)
{
    rf_check_many(1, 200, 1);
}

TEST_MAIN()
