/* test_spatial_toy.c - synthetic cells: what the folder holds, that it follows its rules, and that
 * the same options give the same bytes.
 * seconds: 8 */
#include "testing/test.h"

#include "instruments/spatial/data/data.h"
#include "instruments/spatial/toy/toy.h"

#include <fathom/fathom.h>
#include <math.h>
#include <unistd.h>

static fth_context *context(int threads)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.device = "cpu";
    opt.mem.budget_bytes = 512 << 20;
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static void drop(fth_context *ctx)
{
    fth_err err = {0};
    OKE(fth_context_destroy(ctx, &err), &err);
}

static sp_toy options(fth_context *ctx, int64_t side, bool exact)
{
    return (sp_toy){.ctx = ctx,
                    .mem = fth_context_mem(ctx),
                    .cells = side * side,
                    .side = side,
                    .genes = 31,
                    .factors = 4,
                    .groups = 3,
                    .seed = 7,
                    .lengthscale = 100,
                    .alpha = 0.1,
                    .jitter = 7e-5,
                    .exact = exact};
}

static void make(sp_toy *t, const char *dir, const char *h5ad)
{
    fth_err err = {0};
    OKE(sp_toy_make(t, dir, h5ad, &err), &err);
}

static const char *in(const char *dir, const char *name)
{
    static char path[4][8300];
    static int at = 0;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "%s/%s", dir, name);
    return path[at];
}

/* A whole .npy file, of malloc. */
static void *array(fth_mem *mem, const char *path, fth_dtype dtype, int64_t rows, int64_t cols)
{
    fth_source s;
    fth_err err = {0};
    OKE(fth_npy_open(&s, mem, path, &err), &err);
    EQ_STR(fth_dtype_name(s.dtype), fth_dtype_name(dtype));
    EQ_I64(s.size[0], rows);
    if (cols) EQ_I64(s.size[1], cols);
    EQ_I64(s.n_axes, cols ? 2 : 1);
    void *v = malloc((size_t)(rows * (cols ? cols : 1) * fth_dtype_size(dtype)));
    if (!v) FAIL("no memory");
    OKE(s.read(s.self, (int64_t[]){0, 0}, s.size, v, &err), &err);
    fth_source_close(&s);
    return v;
}

/* ---- the folder ---- */

TEST(the_folder_is_one_that_stages_read)
{
    fth_context *ctx = context(2);
    sp_toy t = options(ctx, 20, true);
    t.cells = 390; /* the last row is not full */
    t.groups = 5;
    t.missing = 2;
    const char *dir = t_temp_path("read");
    make(&t, dir, NULL);
    sp_data d;
    fth_err err = {0};
    OKE(sp_data_open(&d, t.mem, dir, &err), &err);
    EQ_I64(d.size.cells, 390);
    EQ_I64(d.size.genes, 31);
    EQ_I64(d.size.groups, 5);
    EQ_I64(d.size.entries, t.entries);
    EQ_STR(fth_texts_get(d.gene_names, 30), "gene_30");
    EQ_STR(fth_texts_get(d.group_names, 4), "group_4");
    const float *xy = fth_tensor_data(d.xy);
    EQ_F64(xy[0], -100);
    EQ_F64(xy[1], -100);
    EQ_F64(xy[2 * 19], 100); /* row by row: x runs first */
    EQ_F64(xy[2 * 19 + 1], -100);
    NEAR(xy[2 * 20 + 1], -100 + 200.0 / 19, 1e-4);
    const int32_t *group = fth_tensor_data(d.group);
    int64_t n[5] = {0};
    for (int i = 0; i < 390; i++) n[group[i]]++;
    for (int g = 0; g + 1 < 5; g++) IS_TRUE(n[g] >= n[g + 1]); /* larger ones first */
    EQ_I64(n[3], 10);
    EQ_I64(n[4], 10);
    for (int i = 0; i + 1 < 390; i++) /* scattered: no two of them in a row */
        if (group[i] >= 3) IS_TRUE(group[i + 1] != group[i]);
    sp_data_close(&d);
    drop(ctx);
}

TEST(sectors_hold_their_group_and_half_of_the_cells_are_mixed)
{
    fth_context *ctx = context(1);
    sp_toy t = options(ctx, 60, false);
    const char *dir = t_temp_path("sectors");
    make(&t, dir, NULL);
    int64_t *c = array(t.mem, in(dir, SP_C), FTH_I64, 3600, 0);
    float *xy = array(t.mem, in(dir, SP_X), FTH_F32, 3600, 2);
    int64_t own[3][3] = {{0}}, n[3] = {0};
    for (int i = 0; i < 3600; i++) {
        const double angle =
            atan2((double)xy[2 * i + 1], (double)xy[2 * i]) * 180 / 3.14159265358979;
        own[angle < -60 ? 0 : angle < 60 ? 1 : 2][c[i]]++;
        n[c[i]]++;
    }
    bool taken[3] = {false};
    for (int s = 0; s < 3; s++) { /* half stay, a third of the others come back: 2/3 of 1200 */
        int most = 0;
        for (int g = 1; g < 3; g++)
            if (own[s][g] > own[s][most]) most = g;
        IS_TRUE(!taken[most]);
        taken[most] = true;
        NEAR((double)own[s][most] / (double)(own[s][0] + own[s][1] + own[s][2]), 2.0 / 3, 0.04);
        NEAR((double)n[s] / 3600, 1.0 / 3, 0.05);
    }
    free(c), free(xy);
    drop(ctx);
}

/* ---- the same bytes ---- */

static void same_file(const char *a, const char *b, const char *name)
{
    FILE *f[2] = {fopen(in(a, name), "rb"), fopen(in(b, name), "rb")};
    if (!f[0] || !f[1]) FAIL("%s is not there", name);
    for (int64_t at = 0;; at++) {
        const int x = getc(f[0]), y = getc(f[1]);
        if (x != y) FAIL("%s differs at byte %lld", name, (long long)at);
        if (x == EOF) break;
    }
    fclose(f[0]);
    fclose(f[1]);
}

TEST_REPEAT(the_same_bytes_with_any_number_of_workers)
{
    static const char *const files[] = {SP_X,
                                        SP_Y,
                                        SP_C,
                                        "ground_truth_factors.npy",
                                        "ground_truth_loadings.npy",
                                        "ground_truth_factors_group_0.npy",
                                        "ground_truth_factors_group_3.npy"};
    for (int exact = 0; exact < 2; exact++) {
        char dir[2][4096];
        for (int k = 0; k < 2; k++) {
            fth_context *ctx = context(1 + 2 * k);
            sp_toy t = options(ctx, 45, exact);
            t.groups = 4;
            t.missing = 1;
            t.density = 0.3;
            snprintf(dir[k], sizeof dir[k], "%s", t_temp_path(k ? "many" : "one"));
            make(&t, dir[k], NULL);
            drop(ctx);
        }
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            same_file(dir[0], dir[1], files[i]);
    }
}

TEST(another_seed_gives_other_cells)
{
    fth_context *ctx = context(1);
    sp_toy t = options(ctx, 10, true), u = options(ctx, 10, true);
    u.seed = 8;
    make(&t, t_temp_path("seven"), NULL);
    make(&u, t_temp_path("eight"), NULL);
    float *a = array(t.mem, in(t_temp_path("seven"), "ground_truth_factors.npy"), FTH_F32, 100, 4);
    float *b = array(t.mem, in(t_temp_path("eight"), "ground_truth_factors.npy"), FTH_F32, 100, 4);
    IS_TRUE(memcmp(a, b, 1600) != 0);
    for (int l = 0; l < 4; l++) { /* each has a positive sum */
        double sum = 0;
        for (int i = 0; i < 100; i++) sum += (double)a[4 * i + l];
        IS_TRUE(sum > 0);
    }
    free(a), free(b);
    drop(ctx);
}

/* ---- counts ---- */

typedef struct counts {
    fth_npz *npz;
    fth_csr *csr;
    int64_t *ptr;
    int32_t *col;
    float *val;
} counts;

static counts read_counts(fth_mem *mem, const char *dir)
{
    counts c = {0};
    fth_err err = {0};
    OKE(fth_npz_open(&c.npz, mem, in(dir, SP_Y), &err), &err);
    OKE(fth_csr_open_npz(&c.csr, c.npz, &err), &err);
    const int64_t rows = fth_csr_rows(c.csr), n = fth_csr_entries(c.csr, 0, rows);
    c.ptr = malloc((size_t)(8 * (rows + 1)));
    c.col = malloc((size_t)(4 * (n + 1)));
    c.val = malloc((size_t)(4 * (n + 1)));
    if (!c.ptr || !c.col || !c.val) FAIL("no memory");
    OKE(fth_csr_read(c.csr, 0, rows, c.ptr, c.col, c.val, &err), &err);
    return c;
}

static void drop_counts(counts *c)
{
    fth_csr_close(c->csr);
    fth_npz_close(c->npz);
    free(c->ptr), free(c->col), free(c->val);
}

/* Sums over cells and over genes, against those of the rates exp(F) W^T / 10. */
TEST(counts_follow_the_rates)
{
    enum { N = 900, D = 31, L = 4 };
    fth_context *ctx = context(2);
    sp_toy t = options(ctx, 30, true);
    const char *dir = t_temp_path("rates");
    make(&t, dir, NULL);
    float *F = array(t.mem, in(dir, "ground_truth_factors.npy"), FTH_F32, N, L);
    float *W = array(t.mem, in(dir, "ground_truth_loadings.npy"), FTH_F32, D, L);
    double rate[D] = {0}, sum[D] = {0}, spread = 0;
    counts c = read_counts(t.mem, dir);
    for (int i = 0; i < N; i++) {
        double of[D] = {0};
        for (int d = 0; d < D; d++) {
            for (int l = 0; l < L; l++)
                of[d] += (double)W[L * d + l] * exp((double)F[L * i + l]) / 10;
            rate[d] += of[d];
        }
        double seen[D] = {0};
        for (int64_t e = c.ptr[i]; e < c.ptr[i + 1]; e++) {
            IS_TRUE(c.val[e] >= 1 && c.val[e] == floorf(c.val[e]));
            if (e > c.ptr[i]) IS_TRUE(c.col[e] > c.col[e - 1]);
            seen[c.col[e]] = (double)c.val[e];
            sum[c.col[e]] += (double)c.val[e];
        }
        for (int d = 0; d < D; d++) spread += (seen[d] - of[d]) * (seen[d] - of[d]) / of[d];
    }
    for (int d = 0; d < D; d++) NEAR(sum[d], rate[d], 5 * sqrt(rate[d]));
    /* Variance and mean of a Poisson number are the same; small rates spread more. */
    NEAR(spread / (N * D), 1, 0.06);
    for (int i = 0; i < D * L; i++) IS_TRUE(W[i] > 0 && W[i] < 1);
    drop_counts(&c);
    free(F), free(W);
    drop(ctx);
}

TEST_REPEAT(density_is_about_what_is_asked_for)
{
    const double want[3] = {0.02, 0.3, 0.97};
    for (int k = 0; k < 3; k++) {
        fth_context *ctx = context(2);
        sp_toy t = options(ctx, 40, false);
        t.density = want[k];
        make(&t, t_temp_path("density"), NULL);
        NEAR((double)t.entries / (1600.0 * 31), want[k], 0.01 + 0.05 * want[k] * (1 - want[k]));
        drop(ctx);
    }
}

/* ---- factors ---- */

/* Products of factors at two cells, over many factors, against the covariance. Neighbour by
 * neighbour it is an approximation, by a few hundredths. */
static void check_covariance(int64_t side, bool exact, double lengthscale, double alpha)
{
    enum { L = 800 };
    const int64_t n = side * side;
    fth_context *ctx = context(2);
    sp_toy t = options(ctx, side, exact);
    t.factors = L;
    t.lengthscale = lengthscale;
    t.alpha = alpha;
    t.xy = malloc((size_t)(8 * n));
    t.group = malloc((size_t)(4 * n));
    t.size_of = malloc(24);
    t.factor = malloc((size_t)(4 * n * L));
    if (!t.xy || !t.group || !t.size_of || !t.factor) FAIL("no memory");
    fth_err err = {0};
    OKE(sp_toy_place(&t, &err), &err);
    OKE(sp_toy_draw(&t, &err), &err);
    const sp_cov cov = sp_toy_cov(&t);
    t_random r = t_random_make(31);
    const double bias = exact ? 0 : 0.03;
    double worst = 0, off = 0;
    for (int pair = 0; pair < 600; pair++) {
        const int64_t i = t_random_i64(&r, 0, n - 1);
        int64_t j = t_random_i64(&r, 0, n - 1);
        if (pair % 3 == 0) j = i + 1 < n ? i + 1 : i - 1; /* neighbours */
        if (pair % 7 == 0) j = i;
        const double k =
            i == j ? 1 : sp_cov_at(&cov, t.xy + 2 * i, t.group[i], t.xy + 2 * j, t.group[j]);
        double sum = 0;
        for (int l = 0; l < L; l++)
            sum += (double)t.factor[i * L + l] * (double)t.factor[j * L + l];
        const double z = fmax(fabs(sum / L - k) - bias, 0) / sqrt((1 + k * k) / L);
        worst = z > worst ? z : worst;
        off += z * z / 600;
    }
    if (worst > 5 || off > 2)
        FAIL("side %lld, exact %d, lengthscale %g: %g deviations, mean square %g", (long long)side,
             exact, lengthscale, worst, off);
    fth_tensor_release(t.projected);
    free(t.xy), free(t.group), free(t.size_of), free(t.factor);
    drop(ctx);
}

TEST_REPEAT(factors_have_the_covariance_of_the_prior)
{
    check_covariance(12, true, 100, 0.1);
    check_covariance(30, false, 100, 0.1); /* 900 cells: a coarse lattice, then three steps */
    check_covariance(30, false, 15, 1);
}

/* As its own group a cell keeps its factor, but for the noise; elsewhere it is another's. */
TEST(factors_as_another_group)
{
    for (int exact = 0; exact < 2; exact++) {
        fth_context *ctx = context(2);
        sp_toy t = options(ctx, 30, exact);
        t.alpha = 1;
        t.lengthscale = 40;
        const char *dir = t_temp_path("groups");
        make(&t, dir, NULL);
        float *F = array(t.mem, in(dir, "ground_truth_factors.npy"), FTH_F32, 900, 4);
        int64_t *c = array(t.mem, in(dir, SP_C), FTH_I64, 900, 0);
        double own = 0, other = 0;
        for (int64_t g = 0; g < 3; g++) {
            char name[64];
            snprintf(name, sizeof name, "ground_truth_factors_group_%lld.npy", (long long)g);
            float *f = array(t.mem, in(dir, name), FTH_F32, 900, 4);
            for (int i = 0; i < 3600; i++) {
                const double off = fabs((double)f[i] - (double)F[i]);
                if (c[i / 4] == g)
                    own = off > own ? off : own;
                else
                    other += off / 7200;
            }
            free(f);
        }
        LE_F64(own, 0.02);
        IS_TRUE(other > 0.1);
        free(F), free(c);
        drop(ctx);
    }
}

/* ---- one file, and the command ---- */

TEST(the_h5ad_file_holds_the_same)
{
    fth_context *ctx = context(1);
    sp_toy t = options(ctx, 15, true);
    const char *dir = t_temp_path("folder"), *path = t_temp_path("toy.h5ad");
    make(&t, dir, path);
    fth_h5 *h5 = NULL;
    fth_csr *csr = NULL;
    fth_err err = {0};
    OKE(fth_h5_open(&h5, t.mem, path, &err), &err);
    OKE(fth_csr_open_h5(&csr, h5, "/X", &err), &err);
    counts c = read_counts(t.mem, dir);
    EQ_I64(fth_csr_rows(csr), 225);
    EQ_I64(fth_csr_cols(csr), 31);
    EQ_I64(fth_csr_entries(csr, 0, 225), c.ptr[225]);
    fth_source s;
    float xy[450];
    OKE(fth_h5_source(h5, "/obsm/spatial", &s, &err), &err);
    OKE(s.read(s.self, (int64_t[]){0, 0}, s.size, xy, &err), &err);
    EQ_F64(xy[449], 100);
    fth_source_close(&s);
    IS_TRUE(fth_h5_kind_of(h5, "/obs/group/codes") == FTH_H5_DATASET);
    fth_texts *columns = NULL; /* every column that is listed is there */
    OKE(fth_h5_attr_text(h5, "/obs", "column-order", &columns, &err), &err);
    for (int64_t i = 0; i < fth_texts_count(columns); i++) {
        char place[200];
        snprintf(place, sizeof place, "/obs/%s", fth_texts_get(columns, i));
        IS_TRUE(fth_h5_kind_of(h5, place) != FTH_H5_NONE);
    }
    fth_texts_free(columns);
    drop_counts(&c);
    fth_csr_close(csr);
    fth_h5_close(h5);
    drop(ctx);
}

typedef struct words {
    const char *flag[6], *value[6];
} words;

static const char *look_up(void *user, const char *flag)
{
    const words *w = user;
    for (int i = 0; i < 6 && w->flag[i]; i++)
        if (strcmp(w->flag[i], flag) == 0) return w->value[i];
    return NULL;
}

static fth_status command(words w, char *text, fth_err *err)
{
    fth_context *ctx = context(1);
    FILE *out = tmpfile();
    if (!out) FAIL("no file");
    fth_err_clear(err);
    const fth_status s = sp_verb_toy.run(ctx, 0, NULL, look_up, &w, out, err);
    rewind(out);
    text[fread(text, 1, 499, out)] = '\0';
    fclose(out);
    drop(ctx);
    return s;
}

TEST(the_command_takes_its_flags_and_refuses_others)
{
    fth_err err = {0};
    char text[500], path[4096];
    snprintf(path, sizeof path, "%s", t_temp_path("by_command"));
    const words good = {{"output", "cells", "genes", "factors", "missing-groups", "seed"},
                        {path, "130", "7", "2", "1", "5"}};
    OKE(command(good, text, &err), &err);
    HAS(text, "130 cells, 7 genes, 2 factors, 4 groups");
    EQ_I64(access(in(path, SP_Y), F_OK), 0);
    static const words bad[] = {{{"cells"}, {"3000000"}},      {{"cells"}, {"12x"}},
                                {{"lengthscale"}, {"-2"}},     {{"density"}, {"1.5"}},
                                {{"sampler"}, {"fast"}},       {{"cells", "side"}, {"100", "10"}},
                                {{"missing-groups"}, {"1001"}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        words w = bad[i];
        int at = 0;
        while (w.flag[at]) at++;
        w.flag[at] = "output";
        w.value[at] = path;
        IS(command(w, text, &err), FTH_E_COMMAND);
        HAS(err.text, "--");
    }
    const words nowhere = {{"output", "cells"}, {"/nowhere/at/all", "100"}};
    IS(command(nowhere, text, &err), FTH_E_FILE_WRITE);
}

TEST_MAIN()
