/* test_spatial_allocation.c - inducing points per group: the golden counts, and what always holds.
 * seconds: 2 */
#include "testing/test.h"

#include "instruments/spatial/inducing/inducing.h"

#include <jansson.h>

enum { MOST = 64 };

static int64_t numbers(const json_t *of, const char *key, int64_t *v)
{
    const json_t *list = json_object_get(of, key);
    const size_t n = json_array_size(list);
    IS_TRUE(n > 0 && n <= MOST);
    for (size_t i = 0; i < n; i++) v[i] = json_integer_value(json_array_get(list, i));
    return (int64_t)n;
}

static int64_t sum(const int64_t *v, int64_t n)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) total += v[i];
    return total;
}

TEST(counts_are_the_golden_ones)
{
    json_error_t why;
    json_t *cases = json_load_file("tests/golden/spatial/allocation.json", 0, &why);
    if (!cases) FAIL("%s", why.text);
    EQ_I64((int64_t)json_array_size(cases), 3);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const int64_t M = json_integer_value(json_object_get(c, "M"));
        int64_t n[MOST], d[MOST], want[MOST], t[MOST];
        const int64_t groups = numbers(c, "counts", n);
        EQ_I64(numbers(c, "derived", d), groups);
        EQ_I64(sum(d, groups), M);
        OK(sp_allocate_missing(d, n, groups, M, false, NULL, NULL));
        numbers(c, "fathom", want);
        SAME_BYTES(d, want, 8 * groups);
        sp_allocate_shares(t, n, groups, M, false, false);
        numbers(c, "proportional", want);
        SAME_BYTES(t, want, 8 * groups);
        sp_allocate_shares(t, n, groups, M, true, false);
        numbers(c, "equal", want);
        SAME_BYTES(t, want, 8 * groups);
    }
    json_decref(cases);
}

/* The founding report: 52 groups, 3000 points asked for, 2796 given. */
TEST(no_point_is_lost_where_groups_are_missing)
{
    t_random r = t_random_make(11);
    enum { G = 52, T = 3000 };
    int64_t n[G], d[G];
    for (int round = 0; round < 50; round++) {
        for (int g = 0; g < G; g++) n[g] = 20 + t_random_i64(&r, 0, 8000);
        sp_allocate_shares(d, n, G, T, false, false);
        for (int k = 0; k < 5; k++) { /* their points were voted to the first group */
            const int64_t g = t_random_i64(&r, 1, G - 1);
            d[0] += d[g];
            d[g] = 0;
        }
        OK(sp_allocate_missing(d, n, G, T, false, NULL, NULL));
        EQ_I64(sum(d, G), T);
        for (int g = 0; g < G; g++) IS_TRUE(d[g] >= 1);
    }
}

/* ---- any counts ---- */

typedef struct problem {
    int64_t groups, cells, T, present;
    int64_t n[MOST], d[MOST];
} problem;

/* Votes: T points among the groups with cells, unevenly, many of them without any. */
static problem random_problem(t_random *r)
{
    problem p = {.groups = t_random_i64(r, 1, MOST)};
    const int64_t top = t_random_i64(r, 0, 3) ? 50 : 20000;
    for (int64_t g = 0; g < p.groups; g++) {
        p.n[g] = t_random_i64(r, 0, 5) ? t_random_i64(r, 1, 1 + t_random_i64(r, 0, top)) : 0;
        p.cells += p.n[g];
        p.present += p.n[g] > 0;
    }
    if (p.cells == 0) p.n[0] = p.cells = p.present = 1;
    p.T = t_random_i64(r, 1, p.cells < 3000 ? p.cells : 3000);
    for (int64_t i = 0; i < p.T; i++) {
        int64_t g;
        do g = t_random_i64(r, 0, t_random_i64(r, 0, p.groups - 1));
        while (p.n[g] == 0);
        p.d[g]++;
    }
    return p;
}

static void check_shares(const problem *p, bool equal, bool compat)
{
    int64_t t[MOST];
    sp_allocate_shares(t, p->n, p->groups, p->T, equal, compat);
    EQ_I64(sum(t, p->groups), p->T);
    for (int64_t g = 0; g < p->groups; g++) IS_TRUE(t[g] >= 0 && t[g] <= p->n[g]);
    sp_allocate_raise(t, p->n, p->groups);
    EQ_I64(sum(t, p->groups), p->T);
    for (int64_t g = 0; g < p->groups; g++) {
        IS_TRUE(t[g] >= 0 && t[g] <= p->n[g]);
        if (p->T >= p->present && p->n[g] > 0) IS_TRUE(t[g] >= 1);
    }
}

static void check_missing(const problem *p)
{
    int64_t d[MOST];
    memcpy(d, p->d, sizeof d);
    fth_err err = {0};
    bool missing = false;
    for (int64_t g = 0; g < p->groups; g++) missing |= p->n[g] > 0 && p->d[g] == 0;
    if (missing && p->present > p->T) {
        IS(sp_allocate_missing(d, p->n, p->groups, p->T, false, NULL, &err), FTH_E_CONFIG);
        HAS(err.text, "would have none");
        memcpy(d, p->d, sizeof d);
        OK(sp_allocate_missing(d, p->n, p->groups, p->T, true, NULL, NULL));
        EQ_I64(sum(d, p->groups), p->T);
        for (int64_t g = 0; g < p->groups; g++) /* nobody without is larger than one with */
            for (int64_t h = 0; h < p->groups; h++)
                if (d[g] == 0 && d[h] > 0) IS_TRUE(p->n[g] <= p->n[h]);
        return;
    }
    OKE(sp_allocate_missing(d, p->n, p->groups, p->T, false, NULL, &err), &err);
    EQ_I64(sum(d, p->groups), p->T);
    for (int64_t g = 0; g < p->groups; g++) {
        EQ_I64(d[g] >= 1, p->n[g] > 0);
        if (p->d[g] > 0) IS_TRUE(d[g] <= p->d[g]); /* who has points only gives */
        if (p->d[g] == 0) IS_TRUE(d[g] <= p->n[g]);
        if (!missing) EQ_I64(d[g], p->d[g]);
    }
}

TEST(totals_and_ones_hold_for_any_counts)
{
    t_random r = t_random_make(12);
    for (int i = 0; i < (T_SANITIZED ? 2000 : 10000); i++) {
        const problem p = random_problem(&r);
        check_shares(&p, false, i % 2);
        check_shares(&p, true, i % 2);
        check_missing(&p);
    }
}

/* ---- single rules ---- */

TEST(compat_lets_the_first_in_line_take_all)
{
    const int64_t n[4] = {33, 33, 33, 1};
    int64_t t[4];
    sp_allocate_shares(t, n, 4, 10, false, false); /* 3.3 3.3 3.3 0.1 */
    SAME_BYTES(t, ((int64_t[]){4, 3, 3, 0}), sizeof t);
    const int64_t m[3] = {26, 26, 48};
    sp_allocate_shares(t, m, 3, 7, false, false); /* 1.82 1.82 3.36 */
    SAME_BYTES(t, ((int64_t[]){2, 2, 3}), 24);
    sp_allocate_shares(t, m, 3, 7, false, true);
    SAME_BYTES(t, ((int64_t[]){3, 1, 3}), 24);
    const int64_t small[3] = {2, 26, 72};
    sp_allocate_shares(t, small, 3, 50, true, true); /* 16.7 each, of which 2 can be had */
    SAME_BYTES(t, ((int64_t[]){2, 16, 32}), 24);
}

TEST(the_largest_gives_where_a_group_has_none)
{
    const int64_t n[5] = {50, 0, 60, 1, 1};
    int64_t t[5] = {3, 0, 3, 0, 0};
    sp_allocate_raise(t, n, 5);
    SAME_BYTES(t, ((int64_t[]){2, 0, 2, 1, 1}), sizeof t);
    int64_t few[5] = {1, 0, 1, 0, 0};
    sp_allocate_raise(few, n, 5);
    SAME_BYTES(few, ((int64_t[]){1, 0, 1, 0, 0}), sizeof few);
}

/* Needs of 5 and 40 with room for 8: the larger one gives way first. */
TEST(needs_shrink_to_what_can_be_given)
{
    const int64_t n[4] = {10, 10, 50, 430};
    int64_t d[4] = {25, 25, 0, 0};
    OK(sp_allocate_missing(d, n, 4, 50, false, NULL, NULL));
    SAME_BYTES(d, ((int64_t[]){1, 1, 5, 43}), sizeof d);
    int64_t e[4] = {5, 5, 0, 0};
    OK(sp_allocate_missing(e, n, 4, 10, false, NULL, NULL));
    SAME_BYTES(e, ((int64_t[]){1, 1, 1, 7}), sizeof e);
}

/* A share of exactly two and a half is two: halves go to the even number. */
TEST(halves_are_rounded_to_even)
{
    const int64_t n[3] = {25, 35, 40};
    int64_t d[3] = {0, 0, 10};
    OK(sp_allocate_missing(d, n, 3, 10, false, NULL, NULL));
    SAME_BYTES(d, ((int64_t[]){2, 4, 4}), sizeof d);
}

TEST(too_few_points_are_an_error_that_names_the_groups)
{
    const int64_t n[5] = {9, 3, 8, 3, 7};
    int64_t d[5] = {2, 0, 1, 0, 0};
    fth_err err = {0};
    IS(sp_allocate_missing(d, n, 5, 3, false, NULL, &err), FTH_E_CONFIG);
    HAS(err.text, "3 inducing points for 5 groups: groups 1, 3 would have none");
    HAS(err.hint, "at least 5");
    OK(sp_allocate_missing((int64_t[]){2, 0, 1, 0, 0}, n, 5, 3, true, NULL, NULL));
    int64_t e[5] = {2, 0, 1, 0, 0};
    OK(sp_allocate_missing(e, n, 5, 3, true, NULL, NULL));
    SAME_BYTES(e, ((int64_t[]){1, 0, 1, 0, 1}), sizeof e);
}

TEST_MAIN()
