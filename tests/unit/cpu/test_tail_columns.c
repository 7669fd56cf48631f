/* test_tail_columns.c - the loops that join columns of integers: every instruction set, dtype and
 * reduction beside a plain loop, at the ends of the dtypes.
 *
 * seconds: 3
 */
#include "cpu/vec.h"
#include "ops/identity.h"
#include "testing/engine/op_harness.h"

enum { MOST = 4096 };

static int64_t joined(int red, int64_t a, int64_t x)
{
    return red == FTH_RED_SUM    ? (int64_t)((uint64_t)a + (uint64_t)x)
           : red == FTH_RED_PROD ? (int64_t)((uint64_t)a * (uint64_t)x)
           : red == FTH_RED_MIN  ? (x < a ? x : a)
                                 : (x > a ? x : a);
}

static void try_shape(const fth__tail_loops *loops, int red, fth_dtype t, int64_t rows,
                      int64_t cols, bool along, const char *v)
{
    int64_t got[MOST], want[MOST];
    const int64_t row = along ? 1 : cols, col = along ? rows : 1;
    for (int64_t c = 0; c < cols; c++) got[c] = want[c] = fth__identity_int(red, (int)t);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            want[c] =
                joined(red, want[c], fth__load(t, v + (r * row + c * col) * fth_dtype_size(t)).i);
    loops->column[red][t](rows, cols, row, col, v, got);
    SAME_BYTES(got, want, (size_t)cols * sizeof *want);
}

TEST(columns_of_integers)
{
    static const int64_t shape[][2] = {{1, 1},   {2, 5},    {3, 7},   {7, 3},   {5, 512},
                                       {513, 2}, {1300, 3}, {2, 600}, {4, 1000}};
    t_random r = t_random_make(1);
    char v[MOST * 8];
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
        if (!fth_dtype_is_int((fth_dtype)t)) continue;
        for (int i = 0; i < (int)sizeof v; i++) v[i] = (char)t_random_i64(&r, 0, 255);
        for (int level = 1; level <= 4; level++) {
            const fth__tail_loops *loops = FTH_ISA_AT(fth__tail_loops, level);
            if (!loops) continue;
            for (int red = FTH_RED_SUM; red <= FTH_RED_MAX; red++)
                for (size_t k = 0; k < sizeof shape / sizeof shape[0]; k++) {
                    try_shape(loops, red, (fth_dtype)t, shape[k][0], shape[k][1], false, v);
                    if (shape[k][0] > 1)
                        try_shape(loops, red, (fth_dtype)t, shape[k][0], shape[k][1], true, v);
                }
        }
    }
}

TEST_MAIN()
