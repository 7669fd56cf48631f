/* test_stage_kit.c - small services of stages: rows of a table into an array, files that appear
 * together, an array of an earlier stage, the line of a plan; constants, shapes and columns like
 * something else. seconds: 1 */
#include "testing/io/files.h"
#include "testing/test.h"

#include "job/stage/stage.h"

#include <fathom/fathom.h>

#include <string.h>

enum { COLUMNS = 3, BATCH = 4096 / COLUMNS, MOST = 3 * BATCH };

static fth_context *context(void)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 64 << 20;
    opt.threads = 2;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* ---- rows ---- */

static const double low[COLUMNS] = {0, -1e6, 0}, high[COLUMNS] = {1e6, 0, 1};

/* A file of n rows, an empty line behind every seventh, and one more line. */
static const char *write_rows(int64_t n, const char *more)
{
    const char *path = t_temp_path("rows.csv");
    FILE *f = fopen(path, "w");
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%lld,-%lld,0.5\n%s", (long long)i, (long long)i, i % 7 == 6 ? "\n" : "");
    fprintf(f, "%s", more);
    fclose(f);
    return path;
}

static fth_status read_rows(const fth_stage_call *call, const char *path, fth_tensor *t,
                            int64_t *rows, fth_err *err)
{
    fth_reader r;
    const fth_sink sink = fth_tensor_sink(t);
    FTH_TRY(fth_reader_open(&r, fth_context_mem(call->context), path, NULL, err));
    const fth_status s = fth_stage_read_rows(call, &r, ',', low, high, "a,b,c", &sink, rows, err);
    fth_reader_close(&r);
    return s;
}

static bool stop(void *user)
{
    return --*(int *)user < 0;
}

TEST(rows_of_any_number_become_an_array)
{
    int steps = 1000000;
    fth_context *ctx = context();
    fth__stage_link link = {.sent_at = 1e300}; /* nothing is sent */
    const fth_stage_options opt = {.stop = stop, .user = &steps};
    link.opt = &opt;
    pthread_mutex_init(&link.lock, NULL);
    const fth_stage_call call = {.context = ctx, .link = &link};
    const int64_t size[2] = {MOST, COLUMNS};
    static const int64_t counts[] = {0, 1, BATCH - 1, BATCH, BATCH + 1, MOST};
    fth_tensor *t = NULL;
    fth_err err = {0};
    OK(fth_tensor_create(&t, fth_context_mem(ctx), "rows", FTH_F32, 2, size, NULL));
    const float *v = fth_tensor_data(t);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int64_t rows = -1;
        OKE(read_rows(&call, write_rows(counts[i], ""), t, &rows, &err), &err);
        EQ_I64(rows, counts[i]);
        for (int64_t k = 0; k < rows; k++)
            IS_TRUE(v[3 * k] == (float)k && v[3 * k + 1] == -(float)k && v[3 * k + 2] == 0.5f);
    }
    int64_t rows = 0;
    IS(read_rows(&call, write_rows(MOST, "1,-1,0\n"), t, &rows, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "rows.csv:4681: only 4095 rows were expected");
    fth_err_clear(&err);
    IS(read_rows(&call, write_rows(2, "1,2,0\n"), t, &rows, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "rows.csv:3:3: expected a number from -1e+06 to 0, found \"2\"");
    fth_err_clear(&err);
    IS(read_rows(&call, write_rows(2, "1,-2\n"), t, &rows, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "rows.csv:3: expected a,b,c");
    fth_err_clear(&err);
    steps = 1; /* after the first batch */
    IS(read_rows(&call, write_rows(MOST, ""), t, &rows, &err), FTH_E_CANCELLED);
    HAS(err.text, "was stopped after row 2730");
    fth_err_clear(&err);
    fth_tensor_release(t);
    remove(t_temp_path("rows.csv"));
    pthread_mutex_destroy(&link.lock);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(rows_go_to_f32_with_columns)
{
    fth_context *ctx = context();
    const fth_stage_call call = {.context = ctx};
    const int64_t size[2] = {4, COLUMNS};
    fth_err err = {0};
    for (int i = 0; i < 2; i++) {
        fth_tensor *t = NULL;
        int64_t rows = 0;
        OK(fth_tensor_create(&t, fth_context_mem(ctx), "rows", i ? FTH_F32 : FTH_F64, 2 - i, size,
                             NULL));
        IS(read_rows(&call, write_rows(1, ""), t, &rows, &err), FTH_E_USAGE);
        fth_err_clear(&err);
        fth_tensor_release(t);
    }
    remove(t_temp_path("rows.csv"));
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- files of the model ---- */

TEST(files_that_a_stage_leaves_appear_together)
{
    static const fth_stage_file files[] = {{"a.npy", "a", false}, {"b.txt", "b", false}, {0}};
    const fth_stage stage = {.name = "fit", .leaves = files};
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    const fth_stage_call call = {.context = ctx, .stage = &stage, .model_dir = t_temp_dir()};
    const int64_t size[2] = {2, 3};
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    fth_err err = {0};
    for (int whole = 0; whole < 2; whole++) {
        const char *temp[2] = {NULL, NULL};
        fth_file_set *set = NULL;
        OKE(fth_stage_file_set(&call, &set, temp, &err), &err);
        OKE(fth_npy_save(mem, temp[0], FTH_F32, 2, size, numbers, &err), &err);
        OKE(fth_file_save(mem, temp[1], "b", 1, &err), &err);
        IS_TRUE(!fth_path_exists(t_temp_path("a.npy")) && !fth_path_exists(t_temp_path("b.txt")));
        if (whole) OKE(fth_file_set_commit(set, &err), &err);
        fth_file_set_destroy(set);
        EQ_I64(t_file_count(), whole ? 2 : 0);
    }
    fth_source s = {0};
    float got[6];
    OKE(fth_stage_npy(&call, "a.npy", false, 2, size, &s, &err), &err);
    OKE(s.read(s.self, (int64_t[]){0, 0}, size, got, &err), &err);
    SAME_BYTES(got, numbers, sizeof got);
    fth_source_close(&s);
    OKE(fth_stage_npy(&call, "none.npy", true, 2, size, &s, &err), &err);
    IS_TRUE(s.dtype == FTH_F32 && s.n_axes == 2 && s.size[0] == 2 && s.size[1] == 3);
    OKE(s.read(s.self, (int64_t[]){0, 0}, size, got, &err), &err);
    EQ_F64(got[5], 0);
    fth_source_close(&s);
    IS(fth_stage_npy(&call, "none.npy", false, 2, size, &s, &err), FTH_E_FILE_OPEN);
    remove(t_temp_path("a.npy"));
    remove(t_temp_path("b.txt"));
    OK(fth_context_destroy(ctx, NULL));
}

TEST(axes_of_a_plan_are_told_in_a_row)
{
    fth_stage_plan plan = {0};
    fth_stage_plan_axis(&plan, "term", 5, false);
    EQ_STR(plan.text, "term=5");
    IS_TRUE(!plan.bound);
    fth_stage_plan_axis(&plan, "cell", 20000, true);
    fth_stage_plan_axis(&plan, "side", 7, false);
    EQ_STR(plan.text, "term=5, cell<=20000, side=7");
    IS_TRUE(plan.bound);
    for (int i = 0; i < 40; i++) fth_stage_plan_axis(&plan, "more", i, false);
    IS_TRUE(strlen(plan.text) == sizeof plan.text - 1); /* the rest is left out */
}

/* ---- like something else ---- */

static fth_status infer(fth_node *node, fth_err *err)
{
    return fth_infer_like(node, FTH_F32, 1, err);
}

TEST(constants_and_shapes_are_like_a_value)
{
    static const fth_op op = {.name = "test_like", .brief = "none", .infer = infer};
    static const fth_dtype row[][2] = {
        {FTH_F32, FTH_F32}, {FTH_F64, FTH_F64}, {FTH_C64, FTH_F32}, {FTH_C128, FTH_F64}};
    fth_context *ctx = context();
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "i", 4);
    fth_axis(g, "j", 2);
    for (int i = 0; i < 4; i++) {
        const fth_val v = fth_const_like(fth_const(g, row[i][0], 1), 0.5);
        IS_TRUE(fth_val_dtype(v) == row[i][1] && fth_val_axes(v) == 0);
    }
    const fth_val x = fth_cast(fth_index(g, "i"), FTH_F32);
    const fth_val y = fth_custom(g, &op, 1, &x, NULL, 0);
    IS_TRUE(fth_val_dtype(y) == FTH_F32 && fth_val_axes(y) == 1 && fth_val_size(y, 0) == 4);
    fth_err err = {0};
    OKE(fth_graph_check(g, &err), &err);
    const fth_val two = fth_expand(x, "j");
    IS_TRUE(!fth_val_ok(fth_custom(g, &op, 1, &two, NULL, 0)));
    IS(fth_graph_check(g, &err), FTH_E_DTYPE_OP);
    HAS(err.text, "test_like: ");
    HAS(err.text, "is not f32 over one axis");
    IS_TRUE(!fth_val_ok(fth_const_like(fth_custom(g, &op, 1, &two, NULL, 0), 1)));
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(columns_of_a_tensor)
{
    fth_mem *mem = NULL;
    fth_tensor *t[2] = {NULL, NULL};
    const int64_t size[2] = {5, 2};
    fth_column_range range;
    OK(fth_mem_create(&mem, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        OK(fth_tensor_create(&t[i], mem, "t", FTH_F32, 1 + i, size, NULL));
        float *v = fth_tensor_data(t[i]);
        for (int k = 0; k < 5 * (i + 1); k++) v[k] = (float)(10 + k);
    }
    const fth_column line = fth_column_tensor(t[0], 0), second = fth_column_tensor(t[1], 1);
    OK(fth_column_get_range(&line, 1, &range, NULL));
    IS_TRUE(line.n == 5 && range.low == 10 && range.high == 14);
    OK(fth_column_get_range(&second, 1, &range, NULL));
    IS_TRUE(second.n == 5 && range.low == 11 && range.high == 19);
    IS_TRUE(fth_column_tensor(t[0], 1).n == 0 && fth_column_tensor(t[1], 2).n == 0 &&
            fth_column_tensor(NULL, 0).n == 0);
    for (int i = 0; i < 2; i++) fth_tensor_release(t[i]);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
