/* test_cuda_worth.c - which programs are compiled before a run, and which are interpreted.
 * seconds: 1 */
#include "cuda/worth.h"
#include "testing/test.h"

static fth__program program(int in, int instr, int out, int tail)
{
    fth__program p;
    memset(&p, 0, sizeof p);
    p.n_in = in;
    p.n_instr = instr;
    p.n_out = out;
    p.tail_dim = tail;
    return p;
}

TEST(work_is_what_an_interpreter_does)
{
    const fth__program map = program(2, 8, 3, -1), sum = program(2, 8, 1, 0);
    EQ_I64(fth__worth_of(&map, 10), 130);
    EQ_I64(fth__worth_of(&sum, 10), 110);
    EQ_I64(fth__worth_of(&map, 0), 0);
    EQ_I64(fth__worth_of(&map, INT64_C(3000000000)), INT64_C(39000000000));
}

/* The largest program of a whole image of 4096^2 (13 instructions), even were it there ten times.
 */
TEST(one_image_is_interpreted)
{
    const fth__program largest = program(2, 13, 1, -1);
    const int64_t n = 4096 * 4096, work = fth__worth_of(&largest, n);
    IS_TRUE(!fth__worth_at_once(work, n, 0));
    IS_TRUE(10 * work < FTH__WORTH_COMPILING);
}

TEST(long_and_repeated_plans_are_compiled)
{
    const fth__program chain = program(1, 8, 1, -1);
    const int64_t n = (int64_t)1 << 30, few = FTH__WORTH_NOTHING;
    IS_TRUE(fth__worth_at_once(fth__worth_of(&chain, n), n, 0));
    IS_TRUE(!fth__worth_at_once(fth__worth_of(&chain, few), few, 0));
    IS_TRUE(fth__worth_at_once(fth__worth_of(&chain, few), few, 1));
    IS_TRUE(!fth__worth_at_once(fth__worth_of(&chain, few - 1), few - 1, 1));
}

TEST_MAIN()
