/* test_spatial_kernels.c - the six covariance functions against the golden ones, on the host and as
 * values of a graph; distances between groups that a user gives.
 *
 * seconds: 1 */
#include "testing/spatial/spatial_golden.h"

#include "instruments/spatial/model/kernel.h"

typedef struct points {
    fth_tensor *a, *b, *ga, *gb;
} points;

static points load_points(fth_mem *mem)
{
    return (points){sg_load(mem, "kernels", "A", FTH_F32), sg_load(mem, "kernels", "B", FTH_F32),
                    sg_load(mem, "kernels", "gA", FTH_I32), sg_load(mem, "kernels", "gB", FTH_I32)};
}

static void drop_points(points *p)
{
    fth_tensor_release(p->a);
    fth_tensor_release(p->b);
    fth_tensor_release(p->ga);
    fth_tensor_release(p->gb);
}

static fth_tensor *block(fth_context *ctx, const points *p, const sp_cov *c, fth_dtype real)
{
    fth_err err = {0};
    fth_tensor *out = NULL;
    const int64_t rows = fth_tensor_size(p->a, 0), cols = fth_tensor_size(p->b, 0);
    OKE(fth_tensor_create(&out, fth_context_mem(ctx), "k", real, 2, ((int64_t[]){rows, cols}),
                          &err),
        &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", rows);
    fth_axis(g, "col", cols);
    fth_axis(g, "dim", 2);
    fth_axis(g, "group", 4);
    fth_axis_like(g, "group2", "group");
    const fth_val a = fth_input(g, "a", FTH_F32, "row dim", fth_tensor_source(p->a));
    const fth_val b = fth_input(g, "b", FTH_F32, "col dim", fth_tensor_source(p->b));
    fth_val ga = {0}, gb = {0};
    if (c->groups) {
        ga = fth_input(g, "ga", FTH_I32, "row", fth_tensor_source(p->ga));
        gb = fth_input(g, "gb", FTH_I32, "col", fth_tensor_source(p->gb));
    }
    const fth_val k = sp_cov_block(g, c, real, a, ga, "row", b, gb, "col");
    fth_plan *plan = fth_plan_make(g, &k, 1, NULL, &err);
    if (!plan) t_status(err.status, FTH_OK, "plan", &err, T_AT);
    const fth_sink sink = fth_tensor_sink(out);
    OKE(fth_run(plan, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    return out;
}

static sp_cov cov_of(sp_kernel k, bool groups)
{
    return (sp_cov){.kernel = k,
                    .sigma = 1.3,
                    .lengthscale = 8.0,
                    .groups = groups,
                    .alpha = 0.7,
                    .n_groups = 4};
}

static void compare(fth_context *ctx, const points *p, const sp_cov *c, const char *name)
{
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *want = sg_load(mem, "kernels", name, FTH_F64);
    fth_tensor *got = block(ctx, p, c, FTH_F64), *single = block(ctx, p, c, FTH_F32);
    sg_near(name, got, want, 1e-12);
    sg_near(name, single, want, 1e-6);
    const float *a = fth_tensor_data(p->a), *b = fth_tensor_data(p->b);
    const int32_t *ga = fth_tensor_data(p->ga), *gb = fth_tensor_data(p->gb);
    const int64_t rows = fth_tensor_size(p->a, 0), cols = fth_tensor_size(p->b, 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            NEAR(sp_cov_at(c, a + 2 * i, ga[i], b + 2 * j, gb[j]), sg_at(want, i * cols + j),
                 2e-12);
    fth_tensor_release(want);
    fth_tensor_release(got);
    fth_tensor_release(single);
}

TEST(six_kernels)
{
    static const char *const name[SP_KERNEL_COUNT][2] = {
        {"matern32", "mggp_matern32"}, {"matern52", "mggp_matern52"}, {"rbf", "mggp_rbf"}};
    fth_context *ctx = sg_context(2, 0, NULL);
    points p = load_points(fth_context_mem(ctx));
    for (int k = 0; k < SP_KERNEL_COUNT; k++)
        for (int groups = 0; groups < 2; groups++) {
            const sp_cov c = cov_of((sp_kernel)k, groups == 1);
            compare(ctx, &p, &c, name[k][groups]);
        }
    drop_points(&p);
    OK(fth_context_destroy(ctx, NULL));
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    IS_TRUE(f != NULL);
    fputs(text, f);
    IS_TRUE(fclose(f) == 0);
}

/* All distances 1 is the default geometry, by the rule for any other. */
TEST(distances_of_one_are_the_default)
{
    fth_context *ctx = sg_context(1, 0, NULL);
    fth_mem *mem = fth_context_mem(ctx);
    points p = load_points(mem);
    fth_err err = {0};
    fth_tensor *d2 = NULL;
    const char *path = t_temp_path("ones.csv");
    write_text(path, "# four groups\n0,1,1,1\n1,0,1,1\n1, 1, 0, 1\n1,1,1,0\n");
    OKE(sp_group_distance_read(&d2, mem, path, 4, &err), &err);
    fth_tensor *want = sg_load(mem, "kernels", "group_d2", FTH_F64);
    sg_near("d2", d2, want, 1e-12);
    sp_cov c = cov_of(SP_MATERN32, true);
    c.distance = fth_tensor_data(d2);
    c.table = d2;
    compare(ctx, &p, &c, "mggp_matern32");
    fth_tensor_release(want);
    fth_tensor_release(d2);
    drop_points(&p);
    OK(fth_context_destroy(ctx, NULL));
}

/* Points on a line: the embedding gives their squared distances back, plus 2e-6. */
TEST(distances_of_a_line)
{
    fth_context *ctx = sg_context(1, 0, NULL);
    fth_mem *mem = fth_context_mem(ctx);
    points p = load_points(mem);
    fth_err err = {0};
    fth_tensor *d2 = NULL;
    const char *path = t_temp_path("line.csv");
    static const double x[4] = {0.0, 1.0, 2.5, 4.0};
    write_text(path, "0 1 2.5 4\n1 0 1.5 3\n2.5 1.5 0 1.5\n4 3 1.5 0\n");
    OKE(sp_group_distance_read(&d2, mem, path, 4, &err), &err);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            NEAR(sg_at(d2, i * 4 + j), i == j ? 0.0 : (x[i] - x[j]) * (x[i] - x[j]) + 2e-6, 1e-11);
    sp_cov c = cov_of(SP_MATERN52, true);
    c.distance = fth_tensor_data(d2);
    c.table = d2;
    fth_tensor *got = block(ctx, &p, &c, FTH_F64);
    const float *a = fth_tensor_data(p.a), *b = fth_tensor_data(p.b);
    const int32_t *ga = fth_tensor_data(p.ga), *gb = fth_tensor_data(p.gb);
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 15; j++)
            NEAR(sg_at(got, i * 15 + j), sp_cov_at(&c, a + 2 * i, ga[i], b + 2 * j, gb[j]), 1e-13);
    fth_tensor_release(got);
    fth_tensor_release(d2);
    drop_points(&p);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(wrong_distances_are_refused)
{
    static const struct {
        const char *text;
        fth_status status;
        const char *says;
    } cases[] = {
        {"0 1 1\n1 0 1\n1 1 0\n", FTH_E_FILE_SHAPE, "16 numbers, 9"},
        {"0 1 1 1\n1 0 1 1\n1 1 0 1\n1 1 1 0 1", FTH_E_FILE_SHAPE, "at least 17"},
        {"0 1 1 1\n2 0 1 1\n1 1 0 1\n1 1 1 0", FTH_E_FILE_FORMAT, "groups 1 and 0"},
        {"0 1 1 1\n1 0 1 1\n1 1 3 1\n1 1 1 0", FTH_E_FILE_FORMAT, "groups 2 and 2"},
        {"0 1 1 nan\n1 0 1 1\n1 1 0 1\nnan 1 1 0", FTH_E_FILE_FORMAT, "groups 3 and 0"},
        {"0 -1 1 1\n-1 0 1 1\n1 1 0 1\n1 1 1 0", FTH_E_FILE_FORMAT, "not negative"},
        {"0 a 1 1", FTH_E_FILE_FORMAT, "'a'"},
    };
    fth_context *ctx = sg_context(1, 0, NULL);
    fth_tensor *t = NULL;
    const char *path = t_temp_path("wrong.csv");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fth_err err = {0};
        write_text(path, cases[i].text);
        IS(sp_group_distance_read(&t, fth_context_mem(ctx), path, 4, &err), cases[i].status);
        HAS(err.text, cases[i].says);
        IS_TRUE(t == NULL);
    }
    IS(sp_group_distance_read(&t, fth_context_mem(ctx), "no/such.csv", 4, NULL), FTH_E_FILE_OPEN);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
