/* test_random_device.c - random programs keep every promise on a device with memory of its own.
 * seconds: 25
 */
#include "testing/host_device.h"
#include "testing/random_check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GRAPHS = 40 };
#else
enum { GRAPHS = 100 };
#endif

TEST(random_graphs_on_a_device)
{
    rg_stats stats = {0};
    rg_use_device((rg_device){.backend = &t_host_backend});
    for (int i = 0; i < GRAPHS; i++) {
        t_host_device_delay(i % 10 == 0 ? 20 : 0);
        if (!rg_check_seed((uint64_t)(i + 1), &stats)) FAIL("graph %d", i + 1);
    }
    rg_use_device((rg_device){0});
    t_host_device_delay(0);
    IS_TRUE(stats.runs > GRAPHS);
    IS_TRUE(stats.spilled > 0);
    IS_TRUE(stats.nested > 0);
}

TEST_MAIN()
