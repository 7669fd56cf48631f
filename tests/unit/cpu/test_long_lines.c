/* test_long_lines.c - values of one long line in order, by vectors and by counts: the same bytes as
 * from elements at sorted positions, and called off in between. unit/ops_order has what the order
 * is.
 *
 * seconds: 4
 */
#include "cpu/quick.h"
#include "cpu/radix.h"
#include "run/team.h"
#include "testing/io/files.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum shape { BITS, PLAIN, EQUAL, FEW, SORTED, REVERSED, PIPE, MOSTLY, SIGNS, SHAPES } shape;

/* Element i of n as an integer that every dtype here has. */
static int64_t number(shape s, int64_t i, int64_t n, t_random *r)
{
    switch (s) {
    case PLAIN: return t_random_i64(r, -30000, 30000);
    case FEW: return t_random_i64(r, -2, 2) * 1000;
    case SORTED: return i * 60000 / n - 30000;
    case REVERSED: return 30000 - i * 60000 / n;
    case PIPE: return (i < n / 2 ? i : n - i) * 60000 / n - 30000;
    case MOSTLY: return t_random_i64(r, 0, 99) == 0 ? t_random_i64(r, -9, 9) : 7;
    case SIGNS: return t_random_i64(r, -1, 1);
    case BITS:
    case EQUAL:
    case SHAPES: break;
    }
    return 5;
}

static void fill(fth_dtype t, shape s, char *x, int64_t n, t_random *r)
{
    const int64_t size = fth_dtype_size(t);
    for (int64_t i = 0; i < n * size && s == BITS; i++) x[i] = (char)t_random_i64(r, 0, 255);
    for (int64_t i = 0; i < n && s != BITS; i++) {
        const int64_t v = number(s, i, n, r);
        const bool minus_zero = s == SIGNS && v == 0 && fth_dtype_is_real(t) && i % 3 == 0;
        if (size == 2) ((uint16_t *)(void *)x)[i] = minus_zero ? 0x8000 : (uint16_t)v;
        if (t == FTH_I32 || t == FTH_U32) ((int32_t *)(void *)x)[i] = (int32_t)v;
        if (t == FTH_F32) ((float *)(void *)x)[i] = minus_zero ? -0.0f : (float)v;
        if (t == FTH_I64) ((int64_t *)(void *)x)[i] = v * ((int64_t)1 << 40);
        if (t == FTH_F64) ((double *)(void *)x)[i] = minus_zero ? -0.0 : (double)v;
    }
}

/* By positions, which bring each element with its own bits. */
static void sort_by_positions(fth_dtype t, const char *x, int64_t n, bool down, char *value)
{
    const int64_t size = fth_dtype_size(t);
    int64_t *order = malloc((size_t)n * sizeof *order);
    void *scratch = malloc(fth__radix_room(n, 8));
    fth__radix_sort(&(fth__radix_line){.line = x,
                                       .value = value,
                                       .order = (char *)order,
                                       .n = n,
                                       .step = size,
                                       .value_step = size,
                                       .order_step = sizeof *order,
                                       .dtype = t,
                                       .descending = down,
                                       .scratch = scratch,
                                       .ask = &(fth__asking){0}});
    free(order);
    free(scratch);
}

/* With fewer tries the range of keys is halved. */
static void sort_quick(fth_dtype t, const char *x, int64_t n, bool down, int tries, char *value)
{
    const int64_t size = fth_dtype_size(t);
    const fth__radix_line l = {.line = x,
                               .value = value,
                               .n = n,
                               .step = size,
                               .value_step = size,
                               .dtype = t,
                               .descending = down,
                               .ask = &(fth__asking){0}};
    void *columns = malloc(FTH__QUICK_ROOM);
    const fth__quick_line q = {.line = x,
                               .value = value,
                               .n = n,
                               .rule = fth__key_rule_of(t, down),
                               .tries = tries,
                               .columns = columns,
                               .ask = &(fth__asking){0}};
    if (FTH_ISA_BEST(fth__quick_loops)->of[size](&q)) fth__radix_restore(&l);
    free(columns);
}

static void try_quick(fth_dtype t, shape s, int64_t n, t_random *r)
{
    const int64_t bytes = n * fth_dtype_size(t);
    char *x = malloc((size_t)bytes), *value = malloc((size_t)bytes),
         *wanted = malloc((size_t)bytes);
    const int tries[] = {fth__quick_tries(n), 3, 0};
    fill(t, s, x, n, r);
    for (int down = 0; down < 2; down++) {
        sort_by_positions(t, x, n, down, wanted);
        for (int k = 0; k < 3; k++) {
            memset(value, 0x55, (size_t)bytes);
            sort_quick(t, x, n, down, tries[k], value);
            SAME_BYTES(value, wanted, bytes);
        }
    }
    free(x);
    free(value);
    free(wanted);
}

TEST(by_vectors)
{
    static const fth_dtype dtypes[] = {FTH_I32, FTH_U32, FTH_F32, FTH_I64, FTH_F64};
    static const int64_t lengths[] = {FTH__QUICK_LEAST, FTH__QUICK_LEAST + 1, 2111, 4099, 30011};
    t_random r = t_random_make(1);
    if (!FTH_ISA_BEST(fth__quick_loops)->of[4]) SKIP("no set of instructions that packs elements");
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
            for (int s = 0; s < SHAPES; s++) try_quick(dtypes[t], (shape)s, lengths[k], &r);
}

/* Values `apart` elements from each other, what is between them untouched. */
static void try_counts(fth_dtype t, shape s, int64_t n, int64_t apart, t_random *r)
{
    uint16_t *x = malloc((size_t)n * 2), *wanted = malloc((size_t)n * 2),
             *value = malloc((size_t)(n * apart) * 2);
    void *scratch = malloc(fth__radix_room(n, 2));
    fill(t, s, (char *)x, n, r);
    for (int down = 0; down < 2; down++) {
        sort_by_positions(t, (const char *)x, n, down, (char *)wanted);
        memset(value, 0x55, (size_t)(n * apart) * 2);
        fth__radix_sort(&(fth__radix_line){.line = (const char *)x,
                                           .value = (char *)value,
                                           .n = n,
                                           .step = 2,
                                           .value_step = 2 * apart,
                                           .dtype = t,
                                           .descending = down,
                                           .scratch = scratch,
                                           .ask = &(fth__asking){0}});
        bool same = true, kept = true;
        for (int64_t i = 0; i < n * apart; i++) {
            same &= i % apart != 0 || value[i] == wanted[i / apart];
            kept &= i % apart == 0 || value[i] == 0x5555;
        }
        IS_TRUE(same);
        IS_TRUE(kept);
    }
    free(x);
    free(wanted);
    free(value);
    free(scratch);
}

TEST(by_counts_of_patterns)
{
    static const fth_dtype dtypes[] = {FTH_U16, FTH_I16, FTH_F16, FTH_BF16};
    static const int64_t lengths[] = {65535, 65536, 65537, 150001};
    t_random r = t_random_make(2);
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
            for (int s = 0; s < SHAPES; s++) {
                try_counts(dtypes[t], (shape)s, lengths[k], 1, &r);
                if (k % 2) try_counts(dtypes[t], (shape)s, lengths[k], 3, &r);
            }
}

static bool has_patience(void *user)
{
    int64_t *questions = user;
    return --*questions > 0;
}

/* Processor time of a sort that may ask so many questions before it is called off. */
static double seconds_of(const float *x, float *value, int64_t n, int64_t questions)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_team *team = NULL;
    fth_err err = {0};
    void *columns = malloc(FTH__QUICK_ROOM);
    OKE(fth__team_share(&team, mem, NULL, has_patience, &questions, &err), &err);
    const fth__quick_line q = {.line = x,
                               .value = value,
                               .n = n,
                               .rule = fth__key_rule_of(FTH_F32, false),
                               .tries = fth__quick_tries(n),
                               .columns = columns,
                               .ask = &(fth__asking){.team = team}};
    const clock_t begin = clock();
    (void)FTH_ISA_BEST(fth__quick_loops)->of[4](&q);
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    fth_team_destroy(team);
    OK(fth_mem_destroy(mem, NULL));
    free(columns);
    return seconds;
}

/* While the line becomes keys, and while a part is parted. */
TEST(called_off_by_vectors)
{
    enum { N = 4 << 20 };
    t_random r = t_random_make(3);
    if (!FTH_ISA_BEST(fth__quick_loops)->of[4]) SKIP("no set of instructions that packs elements");
    float *x = malloc(N * sizeof *x), *value = malloc(N * sizeof *value);
    for (int64_t i = 0; i < N; i++) x[i] = (float)t_random_i64(&r, 0, 1 << 24);
    (void)seconds_of(x, value, N, INT64_MAX); /* touches memory first */
    const double whole = seconds_of(x, value, N, INT64_MAX);
    LE_F64(seconds_of(x, value, N, 2), 0.25 * whole);
    LE_F64(seconds_of(x, value, N, 20), 0.5 * whole);
    free(x);
    free(value);
}
TEST_MAIN()
