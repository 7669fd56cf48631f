/* test_spatial_permute.c - batches without replacement: distinct, ascending, fair, repeatable.
 * seconds: 2 */
#include "testing/test.h"

#include "instruments/spatial/data/permute.h"

#include <math.h>

static int64_t *numbers(int64_t n)
{
    int64_t *v = calloc((size_t)n + 1, sizeof *v);
    if (!v) FAIL("no memory");
    return v;
}

TEST(distinct_ascending_and_within)
{
    t_random r = t_random_make(1);
    int64_t *v = numbers(5000);
    for (int i = 0; i < 400; i++) {
        const int64_t n = t_random_i64(&r, 1, i < 200 ? 40 : 5000);
        const int64_t count = t_random_i64(&r, 1, n);
        v[count] = -77; /* nothing is written behind the batch */
        sp_permute_first(v, count, n, (int64_t)t_random_u64(&r), 5, i);
        for (int64_t k = 0; k < count; k++)
            if (v[k] < 0 || v[k] >= n || (k && v[k] <= v[k - 1]))
                FAIL("number %lld of %lld below %lld is %lld", (long long)k, (long long)count,
                     (long long)n, (long long)v[k]);
        EQ_I64(v[count], -77);
    }
    free(v);
}

TEST(all_of_them_when_there_are_no_more)
{
    int64_t v[9];
    for (int64_t count = 7; count <= 9; count++) {
        for (int i = 0; i < 9; i++) v[i] = -5;
        sp_permute_first(v, count, 7, 42, 5, 3);
        for (int i = 0; i < 7; i++) EQ_I64(v[i], i);
        EQ_I64(v[7], -5);
    }
    sp_permute_first(v, 1, 1, 42, 5, 3);
    EQ_I64(v[0], 0);
}

TEST(the_same_for_the_same_key_and_others_for_others)
{
    enum { N = 900, COUNT = 300 };
    int64_t *a = numbers(COUNT), *b = numbers(COUNT);
    sp_permute_first(a, COUNT, N, 42, 5, 0);
    sp_permute_first(b, COUNT, N, 42, 5, 0);
    SAME_BYTES(a, b, COUNT * sizeof *a);
    const int64_t other[3][3] = {{43, 5, 0}, {42, 6, 0}, {42, 5, 1}};
    for (int k = 0; k < 3; k++) {
        sp_permute_first(b, COUNT, N, other[k][0], other[k][1], other[k][2]);
        int64_t shared = 0;
        for (int64_t i = 0, j = 0; i < COUNT && j < COUNT;) {
            shared += a[i] == b[j];
            if (a[i] <= b[j])
                i++;
            else
                j++;
        }
        /* A third of a third, 100, with deviation 6.7. */
        IS_TRUE(shared > 65 && shared < 135);
    }
    free(a);
    free(b);
}

/* Pearson's sum over cells that should all be hit `expected` times, as deviations of its normal
 * limit; draws without replacement make it smaller by (n - count) / (n - 1). */
static double excess(const int64_t *hits, int64_t n, double expected, double thin)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)hits[i] - expected;
        sum += d * d / expected;
    }
    const double free_cells = (double)(n - 1);
    return (sum / thin - free_cells) / sqrt(2 * free_cells);
}

static void check_single(int64_t n, int64_t count, int64_t draws)
{
    int64_t *v = numbers(count), *hits = numbers(n);
    for (int64_t t = 0; t < draws; t++) {
        sp_permute_first(v, count, n, 42, 5, t);
        for (int64_t k = 0; k < count; k++) hits[v[k]]++;
    }
    const double thin = (double)(n - count) / (double)(n - 1);
    const double z = excess(hits, n, (double)draws * (double)count / (double)n, thin);
    if (fabs(z) > 5) FAIL("%lld of %lld: %g", (long long)count, (long long)n, z);
    free(v);
    free(hits);
}

TEST(every_number_comes_equally_often)
{
    const int64_t n[] = {2, 3, 5, 16, 17, 64, 100, 1000, 4097};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        check_single(n[i], 1, 20000);
        check_single(n[i], n[i] / 2 + 1 < n[i] ? n[i] / 2 + 1 : 1, n[i] < 1000 ? 4000 : 400);
    }
}

TEST(every_pair_comes_equally_often)
{
    enum { N = 23, DRAWS = 60000 };
    int64_t *hits = numbers((int64_t)N * N);
    for (int64_t t = 0; t < DRAWS; t++) {
        int64_t v[2];
        sp_permute_first(v, 2, N, 7, 5, t);
        hits[v[0] * N + v[1]]++;
    }
    int64_t packed[N * (N - 1) / 2], n = 0;
    for (int a = 0; a < N; a++)
        for (int b = a + 1; b < N; b++) packed[n++] = hits[a * N + b];
    const double z = excess(packed, n, (double)DRAWS / (double)n, 1);
    if (fabs(z) > 5) FAIL("pairs: %g", z);
    free(hits);
}

TEST(more_numbers_than_any_data_have)
{
    int64_t v[4];
    sp_permute_first(v, 4, INT64_C(3000000000), 42, 5, 0);
    for (int i = 0; i < 4; i++) IS_TRUE(v[i] >= 0 && v[i] < INT64_C(3000000000));
    IS_TRUE(v[3] > INT64_C(100000000));
}

TEST_MAIN()
