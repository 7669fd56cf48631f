/* test_places.c - trees of places: the nearest are those of a search through all, boxes hold what
 * they should, and a tree that does not fit is refused.
 * seconds: 1 */
#include "testing/io/files.h"

#include <fathom/places.h>

#include <math.h>

enum { MOST = 300, K = 9 };

static void compare(const fth_places *tree, const double (*at)[2], int n, const double q[2], int k)
{
    int32_t got[K];
    double d2[K];
    bool used[MOST] = {false};
    fth_places_nearest(tree, q, k, got, d2);
    for (int j = 0; j < k; j++) {
        int best = -1;
        double least = (double)INFINITY;
        for (int i = 0; i < n; i++) {
            const double dx = at[i][0] - q[0], dy = at[i][1] - q[1], d = dx * dx + dy * dy;
            if (!used[i] && d < least) least = d, best = i;
        }
        used[best] = true;
        EQ_I64(got[j], best);
        NEAR(d2[j], least, 0);
    }
}

/* Every place is in one leaf, and in the boxes above it; sums are those of the places. */
static void check_boxes(const fth_places *t, const double (*at)[2])
{
    bool seen[MOST] = {false};
    for (int64_t k = 0; k < t->nodes; k++) {
        const fth_places_node *b = &t->node[k];
        double sum[2] = {0, 0};
        for (int64_t i = b->from; i < b->end; i++) {
            const int32_t id = t->id[i];
            for (int d = 0; d < 2; d++) {
                NEAR(t->at[i][d], at[id][d], 0);
                IS_TRUE(b->lo[d] <= t->at[i][d] && t->at[i][d] <= b->hi[d]);
                sum[d] += t->at[i][d];
            }
            if (k < t->first_leaf) continue;
            IS_TRUE(!seen[id]);
            seen[id] = true;
        }
        for (int d = 0; d < 2; d++) NEAR(b->sum[d], sum[d], 1e-9);
        if (k < t->first_leaf) {
            EQ_I64(t->node[2 * k + 1].from, b->from);
            EQ_I64(t->node[2 * k + 1].end, t->node[2 * k + 2].from);
            EQ_I64(t->node[2 * k + 2].end, b->end);
        }
    }
    for (int64_t i = 0; i < t->n; i++) IS_TRUE(seen[i]);
}

TEST(the_nearest_are_those_of_a_search_through_all)
{
    t_random r = t_random_make(1);
    fth_mem *mem = t_mem(1 << 20);
    for (int turn = 0; turn < 40; turn++) {
        static double at[MOST][2];
        static float single[2][MOST];
        const int n = (int)t_random_i64(&r, 1, MOST - 1), k = n < K ? n : K;
        for (int i = 0; i < n; i++) /* a lattice has many ties */
            for (int d = 0; d < 2; d++) {
                at[i][d] = turn % 2 ? (double)t_random_i64(&r, 0, 9 - 6 * d) : t_random_f64(&r);
                single[d][i] = (float)at[i][d];
                if (turn % 4 >= 2) at[i][d] = (double)single[d][i];
            }
        fth_places tree;
        if (turn % 4 >= 2)
            OK(fth_places_create(&tree, mem, FTH_F32, single[0], single[1], 1, n, NULL));
        else
            OK(fth_places_create(&tree, mem, FTH_F64, at[0], &at[0][1], 2, n, NULL));
        fth_mem_stats m;
        fth_mem_get_stats(mem, &m);
        IS_TRUE(m.used_bytes <= fth_places_bytes(n));
        check_boxes(&tree, (const double(*)[2])at);
        for (int i = 0; i < n; i++) {
            compare(&tree, (const double(*)[2])at, n, at[i], k);
            const double off[2] = {at[i][0] + 0.37, at[i][1] - 2.25};
            compare(&tree, (const double(*)[2])at, n, off, k);
        }
        fth_places_clear(&tree);
        fth_places_clear(&tree);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_cannot_be_a_tree)
{
    const double one[2] = {0, 0};
    fth_places tree;
    fth_mem *mem = t_mem(1 << 16);
    IS(fth_places_create(&tree, mem, FTH_F64, one, one + 1, 2, 0, NULL), FTH_E_USAGE);
    IS(fth_places_create(&tree, mem, FTH_F64, one, one + 1, 2, INT32_MAX, NULL), FTH_E_USAGE);
    IS(fth_places_create(&tree, mem, FTH_I32, one, one + 1, 2, 1, NULL), FTH_E_USAGE);
    IS(fth_places_create(&tree, mem, FTH_F64, one, one + 1, 0, 100000, NULL), FTH_E_BUDGET);
    OK(fth_mem_destroy(mem, NULL)); /* nothing stays allocated */
}

TEST_MAIN()
