/* test_random_nan.c - NaNs and infinities have the same bits at every budget and thread count.
 * seconds: 10
 *
 * Random programs whose inputs have infinities, and NaNs of both signs and many payloads. Which of
 * two NaNs an instruction keeps must not show how an axis was cut. Operations that refuse such
 * numbers are left out, and so are libraries that make NaNs of their own.
 */
#include "testing/engine/random_check.h"
#include "testing/full.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GRAPHS = 12, FULL = 60 };
#else
enum { GRAPHS = 50, FULL = 250 };
#endif

static bool is_left_out(const char *name)
{
    static const char *const names[] = {"cast",      "cholesky",  "solve",  "eigh", "inverse",
                                        "poisson",   "conv2d",    "fft",    "fft2", "own halo",
                                        "own carry", "own whole", "own sum"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

TEST(nans_have_the_same_bits)
{
    bool may[RG_OPS];
    for (int i = 0; i < rg_op_count(); i++) may[i] = !is_left_out(rg_op_name(i));
    rg_use_ops(may);
    rg_use_odd(true);
    rg_check_many(1, t_full() ? FULL : GRAPHS);
    rg_use_odd(false);
    rg_use_ops(NULL);
}

TEST_MAIN()
