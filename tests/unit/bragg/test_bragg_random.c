/* test_bragg_random.c - the generators of the reference program against its own tables.
 * seconds: 2 */
#include "testing/io/files.h"

#include "instruments/bragg/experiment/mosaic.h"
#include "instruments/bragg/geometry/dual.h"

#include <inttypes.h>
#include <math.h>

#define RNG(name) "tests/golden/bragg/rng/" name

/* Lines of a table without the comment; `line` has room for 1000 characters. */
static bool next(FILE *f, char *line)
{
    do
        if (!fgets(line, 1000, f)) return false;
    while (line[0] == '#');
    return true;
}

static FILE *table(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) FAIL("cannot open %s", path);
    return f;
}

/* Numbers of a line of commas; words count as 0. */
static int numbers(const char *line, double *v, int most)
{
    int n = 0;
    for (const char *p = line; p && n < most; p = strchr(p, ',')) {
        if (*p == ',') p++;
        v[n++] = strtod(p, NULL);
    }
    return n;
}

TEST(uniform_numbers_and_seeds_are_those_of_ran1)
{
    FILE *f = table(RNG("ran1.csv"));
    char line[1000];
    br_ran1 r;
    int64_t seed = 0, at = -1, rows = 0;
    while (next(f, line)) {
        double v[4];
        EQ_I64(numbers(line, v, 4), 4);
        if (v[1] == 0) {
            br_ran1_clear(&r);
            seed = (int64_t)v[0];
            at = -1;
        }
        float got = 0;
        int64_t before = seed;
        for (; at < (int64_t)v[1]; at++) {
            before = seed;
            got = br_uniform(&r, &seed);
        }
        EQ_F64(got, (float)v[2]);
        /* the rows of the far end were printed with the seed of before the draw */
        EQ_I64(v[1] == 100000 ? before : seed, (int64_t)v[3]);
        rows++;
    }
    fclose(f);
    EQ_I64(rows, 205);
}

TEST(normal_numbers_are_those_of_gaussdev)
{
    FILE *f = table(RNG("gaussdev.csv"));
    char line[1000];
    br_ran1 r;
    br_ran1_clear(&r);
    r.seed = -777;
    int rows = 0;
    while (next(f, line)) {
        double v[2];
        EQ_I64(numbers(line, v, 2), 2);
        EQ_F64(br_gauss(&r, &r.seed), (float)v[1]);
        rows++;
    }
    fclose(f);
    EQ_I64(rows, 64);
}

TEST(counts_are_those_of_poidev)
{
    FILE *f = table(RNG("poidev.csv"));
    char line[1000];
    br_ran1 r;
    br_ran1_clear(&r);
    r.seed = -2024;
    int rows = 0;
    while (next(f, line)) {
        double v[3];
        EQ_I64(numbers(line, v, 3), 3);
        EQ_F64(br_poisson(&r, (float)v[1], &r.seed), (float)v[2]);
        rows++;
    }
    fclose(f);
    EQ_I64(rows, 340);
}

/* The same bits on every machine, whatever NaN its arithmetic makes. */
TEST(counts_that_are_no_numbers_are_one_nan)
{
    static const uint32_t means[] = {0x7fc00000, 0x7fffffff, 0xffc00000, 0x7f812345, 0x7f800000};
    int found = 0;
    for (size_t k = 0; k < sizeof means / sizeof *means; k++) {
        br_ran1 r;
        br_ran1_clear(&r);
        r.seed = -5;
        float mean;
        memcpy(&mean, &means[k], sizeof mean);
        for (int i = 0; i < 8; i++) {
            const float n = br_poisson(&r, mean, &r.seed);
            uint32_t bits;
            memcpy(&bits, &n, sizeof bits);
            IS_TRUE(isnan(n) || isinf(mean));
            if (!isnan(n)) continue;
            EQ_I64(bits, 0x7fc00000);
            found++;
        }
    }
    IS_TRUE(found > 4 * 8); /* infinity less infinity, too */
}

TEST(log_gamma_is_that_of_gammln)
{
    FILE *f = table(RNG("gammln.csv"));
    char line[1000];
    int rows = 0;
    while (next(f, line)) {
        double v[2];
        EQ_I64(numbers(line, v, 2), 2);
        EQ_F64(br_log_gamma((float)v[0]), (float)v[1]);
        rows++;
    }
    fclose(f);
    EQ_I64(rows, 28);
}

/* The table has 17 digits; they differ in none. Angles were made from it and have 15. */
TEST(cap_rotations_and_their_angles_are_those_of_the_reference)
{
    FILE *f = table(RNG("mosaic_umat.csv"));
    char line[1000];
    br_ran1 r, r2;
    int rows = 0;
    while (next(f, line)) {
        double v[16], u[9], angle[3];
        EQ_I64(numbers(line, v, 16), 16);
        if (v[2] == 0) {
            br_ran1_clear(&r);
            r.seed = (int64_t)v[0];
        }
        r2 = r;
        br_cap_rotation(&r, (float)v[1], &r.seed, u);
        for (int i = 0; i < 9; i++) EQ_F64(u[i], v[3 + i]);
        if (v[1] == 90) {
            br_random_misset(&r2, &r2.seed, true, angle);
            for (int i = 0; i < 3; i++) NEAR(angle[i] * BR_RTD, v[13 + i], 1e-11);
        }
        rows++;
    }
    fclose(f);
    EQ_I64(rows, 32);
}

TEST(domain_zero_is_not_turned_and_the_others_follow_the_stream)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    br_ran1 r, r2;
    br_ran1_clear(&r);
    br_ran1_clear(&r2);
    int64_t seed = -12345678, seed2 = seed;
    fth_tensor *t;
    OKE(br_mosaic_make(&t, mem, 3, 0.5 / BR_RTD, &r, &seed, &err), &err);
    EQ_I64(fth_tensor_size(t, 0), 3);
    EQ_I64(fth_tensor_size(t, 1), 9);
    const double *u = fth_tensor_data(t);
    for (int i = 0; i < 9; i++) EQ_F64(u[i], i % 4 == 0 ? 1 : 0);
    double want[9];
    br_cap_rotation(&r2, (float)(0.5 / BR_RTD), &seed2, want);
    for (int k = 1; k < 3; k++) {
        br_cap_rotation(&r2, (float)(0.5 / BR_RTD), &seed2, want);
        SAME_BYTES(u + 9 * k, want, sizeof want);
    }
    EQ_I64(seed, seed2);
    fth_tensor_release(t);
    IS(br_mosaic_make(&t, mem, 0, 0, &r, &seed, NULL), FTH_E_USAGE);
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* A positive seed goes on with the table that is there; a negative one fills it anew. */
TEST(streams_share_the_table)
{
    br_ran1 one, other, none;
    br_ran1_clear(&one);
    br_ran1_clear(&other);
    int64_t a = -12345678, b = -99;
    br_uniform(&one, &a);
    br_uniform(&other, &b);
    br_ran1 again = other;
    int64_t noise = 5, same = 5;
    const float with_one = br_uniform(&one, &noise), with_other = br_uniform(&other, &same);
    EQ_I64(noise, same);
    IS_TRUE(with_one != with_other);
    br_ran1_clear(&none);
    int64_t fresh = -5, first = -5;
    const float after = br_uniform(&again, &fresh), alone = br_uniform(&none, &first);
    EQ_F64(after, alone);
    EQ_I64(fresh, first);
}

/* Without a table a positive seed fills one, from max(-seed, 1). */
TEST(a_positive_seed_without_a_table_starts_at_one)
{
    br_ran1 r, r2;
    br_ran1_clear(&r);
    br_ran1_clear(&r2);
    int64_t five = 5, one = -1;
    const float a = br_uniform(&r, &five), b = br_uniform(&r2, &one);
    EQ_F64(a, b);
    EQ_I64(five, one);
}

TEST(the_largest_number_is_below_one)
{
    br_ran1 r;
    br_ran1_clear(&r);
    int64_t seed = -1;
    br_uniform(&r, &seed);
    for (int j = 0; j < 32; j++) r.table[j] = 2147483646;
    EQ_F64(br_uniform(&r, &seed), (float)(1 - 1.2e-7));
}

TEST(seeds_of_any_size_stay_in_the_table)
{
    static const int64_t seeds[] = {INT64_MIN,  INT64_MAX,   -INT64_MAX,  2147483647,
                                    2147483648, -2147483648, -4294967296, 1};
    for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++)
        for (int filled = 0; filled < 2; filled++) {
            br_ran1 r;
            br_ran1_clear(&r);
            int64_t first = -1, seed = seeds[k];
            if (filled) br_uniform(&r, &first);
            for (int i = 0; i < 200; i++) {
                const float u = br_uniform(&r, &seed);
                if (!(u >= 0 && u < 1)) FAIL("seed %" PRId64 " gave %g", seeds[k], (double)u);
            }
        }
}

/* Uniform over SO(3): the mean of a turned axis and of its squares are 0 and 1/3 for each. */
TEST(random_orientations_are_uniform_without_the_quirk)
{
    br_ran1 r;
    br_ran1_clear(&r);
    r.seed = -4321;
    enum { N = 20000 };
    double mean[9] = {0}, square[9] = {0};
    for (int i = 0; i < N; i++) {
        double a[3];
        br_random_misset(&r, &r.seed, false, a);
        const double cx = cos(a[0]), sx = sin(a[0]), cy = cos(a[1]), sy = sin(a[1]), cz = cos(a[2]),
                     sz = sin(a[2]);
        const double u[9] = {cz * cy,
                             cz * sy * sx - sz * cx,
                             cz * sy * cx + sz * sx,
                             sz * cy,
                             sz * sy * sx + cz * cx,
                             sz * sy * cx - cz * sx,
                             -sy,
                             cy * sx,
                             cy * cx};
        for (int j = 0; j < 9; j++) {
            mean[j] += u[j] / N;
            square[j] += u[j] * u[j] / N;
        }
    }
    /* five standard errors: sqrt(1/3/N) and sqrt((1/5 - 1/9)/N) */
    for (int j = 0; j < 9; j++) {
        NEAR(mean[j], 0, 5 * 0.0041);
        NEAR(square[j], 1.0 / 3, 5 * 0.0022);
    }
}

TEST_MAIN()
