/* seconds: 2
 * test_selftest.c - the self-test of doctor, for real.
 *
 * A program of its own, since it loads oneDNN, which the other tests of doctor do without.
 */
#include "testing/test.h"

#include "cli/doctor.h"

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

TEST_MAIN()
