/* test_spatial_match.c - assignments against every permutation there is.
 *
 * seconds: 2
 */
#include "instruments/spatial/statistics/match.h"
#include "testing/test.h"

#include <math.h>
#include <string.h>

/* Least sum over all ways to give rows different columns. */
static double least(const double *cost, int64_t rows, int64_t cols, int64_t row, unsigned used,
                    int64_t left)
{
    if (row == rows || left == 0) return 0.0;
    double best = rows - row > left ? least(cost, rows, cols, row + 1, used, left) : HUGE_VAL;
    for (int64_t j = 0; j < cols; j++) {
        if (used >> j & 1) continue;
        const double c =
            cost[row * cols + j] + least(cost, rows, cols, row + 1, used | 1u << j, left - 1);
        if (c < best) best = c;
    }
    return best;
}

static double sum_of(const double *cost, const int64_t *column, int64_t rows, int64_t cols)
{
    double sum = 0.0;
    unsigned used = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (column[i] < 0) continue;
        IS_TRUE(!(used >> column[i] & 1));
        used |= 1u << column[i];
        sum += cost[i * cols + column[i]];
        n++;
    }
    EQ_I64(n, rows < cols ? rows : cols);
    return sum;
}

TEST(the_best_is_the_best)
{
    fth_err err = {0};
    fth_mem *mem = NULL;
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    OK(fth_mem_create(&mem, &opt, &err));
    t_random r = t_random_make(1);
    for (int k = 0; k < 400; k++) {
        const int64_t rows = t_random_i64(&r, 1, 6), cols = t_random_i64(&r, 1, 6);
        double cost[36];
        int64_t column[6];
        for (int i = 0; i < rows * cols; i++)
            cost[i] = (double)t_random_i64(&r, -9, 9) + (k % 2 ? t_random_f64(&r) : 0.0);
        OK(sp_match_best(column, mem, cost, rows, cols, &err));
        const double want = least(cost, rows, cols, 0, 0, rows < cols ? rows : cols);
        NEAR(sum_of(cost, column, rows, cols), want, 1e-12 * 50);
        sp_match_greedy(column, cost, rows, cols);
        const double greedy = sum_of(cost, column, rows, cols);
        LE_F64(want - 1e-9, greedy);
        double smallest = cost[0];
        for (int i = 0; i < rows * cols; i++) smallest = fmin(smallest, cost[i]);
        bool taken = false;
        for (int64_t i = 0; i < rows; i++)
            taken = taken || (column[i] >= 0 && cost[i * cols + column[i]] == smallest);
        IS_TRUE(taken);
    }
    OK(fth_mem_destroy(mem, &err));
}

TEST(numbers_that_are_none_come_last)
{
    const double cost[4] = {(double)NAN, 1, 2, (double)INFINITY};
    int64_t column[2];
    fth_err err = {0};
    fth_mem *mem = NULL;
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    OK(fth_mem_create(&mem, &opt, &err));
    sp_match_greedy(column, cost, 2, 2);
    EQ_I64(column[0], 1);
    EQ_I64(column[1], 0);
    OK(sp_match_best(column, mem, cost, 2, 2, &err));
    EQ_I64(column[0], 1);
    EQ_I64(column[1], 0);
    OK(fth_mem_destroy(mem, &err));
}

TEST_MAIN()
