/* test_spatial_sizes.c - sizes of cells by their totals, counts divided by them, and the
 * dispersions that training starts from. seconds: 2
 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_data.h"

#include "instruments/spatial/data/totals.h"
#include "instruments/spatial/data/walk.h"
#include "instruments/spatial/start/init_parts.h"

#include <math.h>

enum { N = 6, D = 3 };
/* Totals 4, 0, 10, 2, 8, 40; the last has most entries. */
static const float counts[N * D] = {3, 0, 1, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 8, 10, 20, 10};

static const char *folder(void)
{
    static const float xy[2 * N] = {0, 0, 1, 0, 2, 0, 0, 1, 1, 1, 2, 1};
    static const int64_t group[N] = {0};
    const char *dir = t_temp_path("preprocessed");
    t_spatial_write(dir, xy, counts, group, N, D, 1);
    return dir;
}

static fth_tensor *vector(fth_mem *mem, fth_dtype t, int64_t n)
{
    fth_tensor *out = NULL;
    OK(fth_tensor_create(&out, mem, "sizes", t, 1, &n, NULL));
    return out;
}

TEST(the_median_is_that_of_cells_with_counts)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    sp_data d;
    double median = 0;
    OKE(sp_data_open(&d, mem, folder(), &err), &err);
    OKE(sp_size_median(&median, &d, &err), &err);
    EQ_F64(median, 8); /* of 2 4 8 10 40 */
    OKE(sp_data_choose(&d, (int64_t[]){0, 1, 2, 3, 4}, 5, &err), &err);
    OKE(sp_size_median(&median, &d, &err), &err);
    EQ_F64(median, 6); /* of 2 4 8 10 */
    sp_data_close(&d);
    OKE(sp_data_open(&d, mem, folder(), &err), &err);
    OKE(sp_data_choose(&d, (int64_t[]){1}, 1, &err), &err);
    OKE(sp_size_median(&median, &d, &err), &err);
    EQ_F64(median, 1); /* of none */
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

/* Totals are in the plan of a training: what it says is what they take at most. */
TEST(the_median_takes_what_is_planned)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    fth_mem_stats before, after;
    sp_data d;
    double median = 0;
    OKE(sp_data_open(&d, mem, folder(), &err), &err);
    fth_mem_mark(mem);
    fth_mem_get_stats(mem, &before);
    OKE(sp_size_median(&median, &d, &err), &err);
    fth_mem_get_stats(mem, &after);
    const uint64_t took = after.peak_bytes - before.used_bytes;
    IS_TRUE(took <= sp_size_median_bytes(&d.size));
    IS_TRUE(took + (64 << 10) > sp_size_median_bytes(&d.size)); /* which counts pages */
    sp_data more = d;
    more.size.cells += 1000;
    EQ_U64(sp_size_median_bytes(&more.size) - sp_size_median_bytes(&d.size), 1000 * (8 + 16));
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

/* Chosen cells have logarithms in their own order; rows that were not chosen, of which one is
 * longer than those that were, have sizes too. */
TEST(sizes_of_chosen_cells_and_of_all_rows)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    sp_data d;
    OKE(sp_data_open(&d, mem, folder(), &err), &err);
    OKE(sp_data_choose(&d, (int64_t[]){1, 2, 4}, 3, &err), &err);
    fth_tensor *log_size = vector(mem, FTH_F64, 3), *narrow = vector(mem, FTH_F32, 3),
               *size = vector(mem, FTH_F32, N);
    OKE(sp_log_sizes(log_size, &d, 4, &err), &err);
    OKE(sp_log_sizes(narrow, &d, 4, &err), &err);
    OKE(sp_row_sizes(size, &d, 4, &err), &err);
    static const double want[N] = {1, 0.25, 2.5, 0.5, 2, 10}; /* without counts: that of one */
    for (int i = 0; i < N; i++) EQ_F64((double)((float *)fth_tensor_data(size))[i], want[i]);
    for (int i = 0; i < 3; i++) {
        const double v = log(want[d.row[i]]);
        EQ_F64(((double *)fth_tensor_data(log_size))[i], v);
        EQ_F64((double)((float *)fth_tensor_data(narrow))[i], (double)(float)v);
    }
    fth_tensor_release(log_size);
    fth_tensor_release(narrow);
    fth_tensor_release(size);
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

static void sum_rows(void *user, const sp_walk_row *r)
{
    for (int64_t i = 0; i < r->n; i++) ((double *)user)[r->cell] += (double)r->value[i];
}

TEST(counts_are_divided_by_the_size_of_their_cell)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    sp_data d;
    sp_walk w;
    double sum[N] = {0}, one[D];
    OKE(sp_data_open(&d, mem, folder(), &err), &err);
    OKE(sp_walk_open(&w, &d, &err), &err);
    w.median = 8;
    OKE(sp_walk_each(&w, sum_rows, sum, &err), &err);
    for (int i = 0; i < N; i++) EQ_F64(sum[i], i == 1 ? 0 : 8); /* all as large as the median */
    OKE(sp_walk_get(&w, 0, one, &err), &err);
    EQ_F64(one[0], 6);
    EQ_F64(one[2], 2);
    sp_walk_close(&w);
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

static void start(const char *dir, bool sizes, double theta[D])
{
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    sp_data d;
    sp_model m;
    OKE(sp_data_open(&d, mem, dir, &err), &err);
    const sp_settings set = {.cells = N,
                             .genes = D,
                             .n_groups = 1,
                             .n_components = 1,
                             .likelihood = SP_NB,
                             .size_factors = sizes ? SP_SIZE_TOTAL : SP_SIZE_NONE,
                             .size_median = sizes ? 8 : 0};
    OKE(sp_model_create(&m, mem, &set, FTH_F64, false, &err), &err);
    OKE(sp_init_dispersion(&m, &d, &err), &err);
    for (int g = 0; g < D; g++) theta[g] = exp(((double *)fth_tensor_data(m.param[SP_P_THETA]))[g]);
    sp_model_clear(&m);
    sp_data_close(&d);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(dispersions_start_at_the_moments)
{
    static const double total[N] = {4, 1, 10, 2, 8, 40};
    for (int sizes = 0; sizes < 2; sizes++) {
        double got[D];
        start(folder(), sizes, got);
        for (int g = 0; g < D; g++) {
            double y = 0, all = 0, square = 0, rest = 0;
            for (int i = 0; i < N; i++) {
                const double v = sizes ? total[i] / 8 : 1;
                y += (double)counts[i * D + g];
                all += v;
                square += v * v;
            }
            for (int i = 0; i < N; i++) {
                const double v = sizes ? total[i] / 8 : 1;
                rest += pow((double)counts[i * D + g] - v * y / all, 2);
            }
            const double m = y / all, theta = m * m * square / (rest - m * all);
            NEAR(got[g], fmin(fmax(theta, 0.1), 100), 1e-9);
        }
    }
}

TEST(genes_without_counts_or_with_equal_ones)
{
    float y[N * D] = {0};
    static const float xy[2 * N] = {0, 0, 1, 0, 2, 0, 0, 1, 1, 1, 2, 1};
    static const int64_t group[N] = {0};
    const char *dir = t_temp_path("flat");
    double theta[D];
    for (int i = 0; i < N; i++) y[i * D] = 2; /* variance 0: not above that of Poisson counts */
    y[2] = 50;
    t_spatial_write(dir, xy, y, group, N, D, 1);
    start(dir, false, theta);
    NEAR(theta[0], 100, 1e-9);
    NEAR(theta[1], 1, 1e-12);
    NEAR(theta[2], 0.2, 0.05); /* one cell has all: 0.204 */
}

TEST(every_request_may_fail)
{
    const char *dir = folder();
    fth_status s = FTH_E_NOMEM;
    int64_t n = 0;
    while (s != FTH_OK) {
        fth_mem_options opt;
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 24;
        opt.fail_alloc = ++n;
        fth_mem *mem = NULL;
        s = fth_mem_create(&mem, &opt, NULL);
        sp_data d = {0};
        double median = 0;
        fth_tensor *size = NULL;
        const int64_t rows = N;
        if (s == FTH_OK) s = sp_data_open(&d, mem, dir, NULL);
        if (s == FTH_OK) s = sp_size_median(&median, &d, NULL);
        if (s == FTH_OK) s = fth_tensor_create(&size, mem, "sizes", FTH_F32, 1, &rows, NULL);
        if (s == FTH_OK) s = sp_row_sizes(size, &d, median, NULL);
        fth_tensor_release(size);
        sp_data_close(&d);
        if (mem) OK(fth_mem_destroy(mem, NULL));
    }
    IS_TRUE(n > 10);
}

TEST_MAIN()
