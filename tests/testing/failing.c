/* failing.c - every check of test.h on something that does not hold.
 *
 * The layer is trusted by all tests, so it has to be seen failing: selftest
 * runs this program and wants each case below to fail or to be skipped.
 */
#include "testing/test.h"

#include <math.h>

TEST(ok_of_an_error)
{
    OK(FTH_E_NOMEM);
}

TEST(oke_of_an_error)
{
    fth_err err = {0};
    OKE(FTH_FAIL(&err, FTH_E_AXIS_NAME, "no axis 'colour'"), &err);
}

TEST(is_of_another_error)
{
    IS(FTH_E_NOMEM, FTH_E_BUDGET);
}

TEST(one_of_of_a_third)
{
    ONE_OF(FTH_E_NOMEM, FTH_OK, FTH_E_BUDGET);
}

TEST(true_of_false)
{
    IS_TRUE(1 > 2);
}

TEST(i64_differ)
{
    EQ_I64(INT64_MAX, INT64_MIN);
}

TEST(u64_differ)
{
    EQ_U64(UINT64_MAX, 0);
}

TEST(f64_differ)
{
    EQ_F64(1.0, 1.0000000000000002);
}

TEST(strings_differ)
{
    EQ_STR("a", NULL);
}

TEST(pointers_differ)
{
    const int a[2] = {0};
    EQ_PTR(&a[0], &a[1]);
}

TEST(le_refuses_nan)
{
    LE_F64(NAN, 1.0);
}

TEST(near_refuses_nan)
{
    NEAR(NAN, NAN, 1.0);
}

TEST(near_refuses_far)
{
    NEAR(1.0, 2.0, 0.5);
}

TEST(has_misses)
{
    HAS("axis", "axes");
}

TEST(has_not_finds)
{
    HAS_NOT("axis", "axi");
}

TEST(bytes_differ)
{
    SAME_BYTES("abc", "abd", 3);
}

TEST(crash_is_caught)
{
    volatile int *nowhere = NULL;
    *nowhere = 1;
}

TEST(missing_data_skips)
{
    t_data_path("no/such/file");
}

TEST_MAIN()
