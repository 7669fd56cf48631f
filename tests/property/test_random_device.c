/* test_random_device.c - random programs keep every promise on a device with memory of its own: one
 * made of the host, or the one whose backend FATHOM_TEST_DEVICE names.
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
    const char *path = getenv("FATHOM_TEST_DEVICE");
    const rg_device made = {.backend = &t_host_backend}, real = {.path = path};
    rg_stats stats = {0};
    int64_t failed = 0;
    rg_use_device(path ? real : made);
    for (int i = 0; i < GRAPHS; i++) {
        t_host_device_delay(i % 10 == 0 ? 20 : 0);
        failed += !rg_check_seed((uint64_t)(i + 1), &stats);
    }
    rg_use_device((rg_device){0});
    t_host_device_delay(0);
    printf("%d graphs, %lld of them without kernels, %lld runs\n", GRAPHS, (long long)stats.lacking,
           (long long)stats.runs);
    EQ_I64(failed, 0);
    if (path) return;
    EQ_I64(stats.lacking, 0);
    IS_TRUE(stats.runs > GRAPHS && stats.spilled > 0 && stats.nested > 0);
}

TEST_MAIN()
