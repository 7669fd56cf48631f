/* test_sounding_gaps.c - the search for the nearest sounding: every instruction set against a plain
 * loop, bit for bit, at every length of the rest. seconds: 1 */
#include "instruments/sounding/gaps/gaps.h"
#include "testing/test.h"

#include <math.h>

enum { MOST = 70 };

static float plain(const float *x, const float *y, int64_t n, float u, float v, float least)
{
    for (int64_t i = 0; i < n; i++) {
        const float dx = x[i] - u, dy = y[i] - v, square = dx * dx + dy * dy;
        if (square < least) least = square;
    }
    return least;
}

TEST(every_set_finds_the_same)
{
    t_random r = t_random_make(1);
    int sets = 0;
    for (int level = 1; level <= 4; level++) {
        const so_gap_loops *loops = FTH_ISA_AT(so_gap_loops, level);
        if (!loops) continue;
        sets++;
        for (int64_t n = 0; n <= MOST; n++)
            for (int k = 0; k < 5; k++) {
                float *x = malloc((size_t)n * sizeof(float) + 1),
                      *y = malloc((size_t)n * sizeof(float) + 1);
                t_random_fill_f32(&r, x, n);
                t_random_fill_f32(&r, y, n);
                const float u = (float)t_random_normal(&r), v = (float)t_random_normal(&r),
                            least = k == 0 ? INFINITY : 0.2f * (float)k;
                const float found = loops->nearest(x, y, n, u, v, least),
                            wanted = plain(x, y, n, u, v, least);
                SAME_BYTES(&found, &wanted, sizeof found);
                free(x);
                free(y);
            }
    }
    IS_TRUE(sets > 0);
}

/* The nearest one may stand anywhere, the last places included. */
TEST(each_place_is_looked_at)
{
    float x[MOST], y[MOST];
    const so_gap_loops *loops = FTH_ISA_BEST(so_gap_loops);
    for (int64_t n = 1; n <= MOST; n++)
        for (int64_t at = 0; at < n; at++) {
            for (int64_t i = 0; i < n; i++) x[i] = 9, y[i] = 9;
            x[at] = 3, y[at] = 4;
            EQ_F64(loops->nearest(x, y, n, 0, 0, INFINITY), 25);
        }
}

TEST_MAIN()
