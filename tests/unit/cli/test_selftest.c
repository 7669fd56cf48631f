/* seconds: 2
 * test_selftest.c - the self-test of doctor, for real.
 *
 * A program of its own, since it loads oneDNN, which the other tests of doctor do without.
 */
#include "testing/test.h"
#include "testing/engine/host_device.h"

#include "cli/doctor/doctor.h"

/* With one worker and with two. */
TEST(the_fast_kernels_agree_with_the_reference)
{
    for (int threads = 1; threads <= 2; threads++) {
        fth_options opt;
        fth_context *ctx = NULL;
        doctor_case c;
        fth_options_default(&opt);
        opt.threads = threads;
        OK(fth_context_create(&ctx, &opt, NULL));
        int n = 0;
        double most = 0;
        for (; doctor_selftest(NULL, ctx, n, &c); n++) {
            if (c.status != FTH_OK) FAIL("%s: status %d", c.name, (int)c.status);
            LE_F64(c.difference, c.allowed);
            if (c.difference > most) most = c.difference;
        }
        IS_TRUE(n >= 10 && n <= DOCTOR_CASES);
        IS_TRUE(most > 0); /* two ways were taken, not one twice */
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST(a_device_is_held_against_the_cpu)
{
    fth_options opt;
    fth_context *ctx = NULL;
    doctor_case c;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    OK(fth_context_create(&ctx, &opt, NULL));
    const int64_t before = t_host_device_seen().kernels;
    t_host_device_lacks("sort");
    for (int i = 0; doctor_selftest(NULL, ctx, i, &c); i++) {
        const bool sorts = strncmp(c.name, "sort", 4) == 0;
        EQ_I64(c.absent, sorts);
        EQ_I64(c.status, sorts ? FTH_E_NO_KERNEL : FTH_OK);
        LE_F64(c.difference, c.allowed);
    }
    t_host_device_lacks(NULL);
    IS_TRUE(t_host_device_seen().kernels > before);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
