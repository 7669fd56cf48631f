/* test_spatial_group_steps.c - iterations of the loadings of a group, from every instruction set,
 * against the obvious loop: the same bits. seconds: 2
 */
#include "instruments/spatial/statistics/group_steps.h"
#include "testing/test.h"

enum { MOST_D = 40, MOST_L = 19 };

typedef struct group {
    double W[MOST_D * MOST_L], before[MOST_D * MOST_L], YF[MOST_D * MOST_L], FF[MOST_L * MOST_L];
} group;

static void fill(double *v, int n, t_random *r)
{
    for (int i = 0; i < n; i++) v[i] = t_random_f64(r);
}

static void obvious(group *g, int D, int L, int steps)
{
    for (int s = 0; s < steps; s++) {
        memcpy(g->before, g->W, sizeof g->W);
        for (int d = 0; d < D; d++)
            for (int l = 0; l < L; l++) {
                double below = 0;
                for (int k = 0; k < L; k++) below += g->before[d * L + k] * g->FF[l * L + k];
                g->W[d * L + l] = g->before[d * L + l] * g->YF[d * L + l] / (below + 1e-8);
            }
    }
}

TEST(every_instruction_set_has_the_bits_of_the_loop)
{
    static const int shape[][3] = {{1, 1, 1}, {8, 3, 2},   {9, 12, 7},
                                   {7, 5, 0}, {40, 19, 4}, {33, 8, 100}};
    t_random r = t_random_make(1);
    int levels = 0;
    for (int level = 1; level <= 4; level++) {
        if (!sp_group_loops_at(level)) continue;
        levels++;
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
            const int D = shape[i][0], L = shape[i][1];
            double room[3 * 8 * MOST_L];
            IS_TRUE(sp_group_steps_room(L) <= (int64_t)(sizeof room / sizeof *room));
            group want, got;
            fill(want.W, MOST_D * MOST_L, &r);
            fill(want.before, MOST_D * MOST_L, &r);
            fill(want.YF, MOST_D * MOST_L, &r);
            fill(want.FF, MOST_L * MOST_L, &r);
            want.YF[0] = 0; /* a gene without counts */
            got = want;
            obvious(&want, D, L, shape[i][2]);
            sp_group_loops_at(level)->steps(
                &(sp_group_rows){D, L, shape[i][2], got.W, got.before, got.YF, got.FF}, room);
            SAME_BYTES(got.W, want.W, sizeof(double) * (size_t)(D * L));
            SAME_BYTES(got.before, want.before, sizeof(double) * (size_t)(D * L));
        }
    }
    IS_TRUE(levels >= 1);
}

TEST_MAIN()
