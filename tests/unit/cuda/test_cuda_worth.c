/* test_cuda_worth.c - which programs are compiled before a run, and which are interpreted.
 * seconds: 1 */
#include "cuda/program/worth.h"
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
    EQ_I64(fth__worth_before(&largest, n, 0, false), 0);
    IS_TRUE(10 * work < FTH__WORTH_COMPILING);
}

TEST(long_and_repeated_plans_are_compiled)
{
    const fth__program chain = program(1, 8, 1, -1);
    const int64_t n = (int64_t)1 << 30, few = FTH__WORTH_NOTHING;
    EQ_I64(fth__worth_before(&chain, n, 0, false), FTH__WORTH_COMPILING);
    EQ_I64(fth__worth_before(&chain, few, 0, false), 0);
    EQ_I64(fth__worth_before(&chain, few, 1, false), FTH__WORTH_COMPILING);
}

/* A step of training: what a small program counts grows with its runs, up to enough. */
TEST(small_programs_count_by_their_runs)
{
    const fth__program map = program(2, 1, 1, -1);
    const int64_t n = 1 << 20;
    EQ_I64(fth__worth_before(&map, n, 0, false), 0);
    EQ_I64(fth__worth_before(&map, n, 1, false), 4 * n);
    EQ_I64(fth__worth_before(&map, n, 64, false), 256 * n);
    EQ_I64(fth__worth_before(&map, n, INT64_MAX, false), FTH__WORTH_COMPILING);
    EQ_I64(fth__worth_before(&map, 1, 1, false), 4 * FTH__WORTH_ALONE);
    EQ_I64(fth__worth_before(&map, n, 1, true), 4 * n * FTH__WORTH_KEPT);
    fth__program sum = program(1, 0, 1, 1);
    sum.size[1] = 32;
    EQ_I64(fth__worth_before(&sum, 1 << 10, 1, false), INT64_C(32) * 2 * FTH__WORTH_ALONE);
    sum.size[1] = 4096;
    EQ_I64(fth__worth_before(&sum, 1 << 12, 1, false), INT64_C(64) * 2 * FTH__WORTH_ALONE);
}

TEST_MAIN()
