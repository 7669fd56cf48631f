/* test_stage_whole.c - a graph into numbers and files, figures of a stage, and steps that are
 * stopped. seconds: 2 */
#include "testing/io/files.h"
#include "testing/test.h"

#include "job/stage/stage.h"

#include <fathom/fathom.h>

#include <string.h>

static const fth_file_item items[] = {{"square", FTH_F32, 2, {0, 3}, "row col"},
                                      {"sum", FTH_F64, 1, {0}, "row"}};

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

/* row * col as f32, its sums by rows as f64, and the sum of all. */
static fth_graph *build(fth_context *ctx, fth_val out[3])
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", 4);
    fth_axis(g, "col", 3);
    const fth_val product =
        fth_layout(fth_mul(fth_expand(fth_cast(fth_index(g, "row"), FTH_F32), "col"),
                           fth_cast(fth_index(g, "col"), FTH_F32)),
                   "row col");
    out[0] = product;
    out[1] = fth_sum(fth_cast(product, FTH_F64), "col");
    out[2] = fth_sum(out[1], "row");
    return g;
}

TEST(a_graph_becomes_numbers_and_files)
{
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    const fth_stage_call call = {.context = ctx};
    const char *path = t_temp_path("square.npy");
    fth_err err = {0};
    fth_val out[3];
    double all = 0;
    fth_tensor *t = NULL;
    fth_graph *g = build(ctx, out);
    const fth_val outs[] = {out[2], out[0]};
    const fth_outlet to[] = {{.number = &all}, {.path = path}};
    OKE(fth_stage_compute_to(&call, g, outs, to, 2, &err), &err);
    EQ_F64(all, 18);
    OKE(fth_npy_load(mem, path, "square", &t, &err), &err);
    EQ_I64(fth_tensor_axes(t), 2);
    EQ_I64(fth_tensor_size(t, 1), 3);
    EQ_F64(((const float *)fth_tensor_data(t))[11], 6);
    fth_tensor_release(t);
    /* A graph with a mistake leaves no file. */
    remove(path);
    (void)fth_sum(out[0], "nowhere");
    IS_TRUE(fth_stage_compute_to(&call, g, outs, to, 2, &err) != FTH_OK);
    EQ_I64(t_file_count(), 0);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_graph_becomes_one_file_that_opens_as_arrays)
{
    fth_context *ctx = context();
    const fth_stage_call call = {.context = ctx};
    const char *path = t_temp_path("arrays.safetensors");
    fth_file_item other[2] = {items[0], items[1]};
    fth_err err = {0};
    fth_val out[3];
    fth_arrays a;
    double sum[4];
    fth_graph *g = build(ctx, out);
    OKE(fth_stage_compute_file(&call, path, g, out, items, 2, &err), &err);
    OKE(fth_arrays_open(&a, fth_context_mem(ctx), path, items, 2, &err), &err);
    EQ_I64(a.rows, 4);
    OK(a.source[1].read(a.source[1].self, (int64_t[]){0}, (int64_t[]){4}, sum, &err));
    EQ_F64(sum[3], 9);
    EQ_STR(fth_safetensors_meta(a.file, "axes.square"), "row col");
    fth_arrays_close(&a);
    remove(path);
    other[1].axes = "col";
    IS(fth_stage_compute_file(&call, path, g, out, other, 2, &err), FTH_E_USAGE);
    HAS(err.text, "'sum' of ");
    HAS(err.text, "is f64 [col], and the value is ");
    other[1] = items[1];
    other[0].dtype = FTH_F64;
    IS(fth_stage_compute_file(&call, path, g, out, other, 2, &err), FTH_E_USAGE);
    EQ_I64(t_file_count(), 0);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

static fth_status make_figure(void *user, int i, fth_figure **out, fth_err *err)
{
    static const float y[3] = {1, 2, 4};
    const fth_stage_call *call = user;
    if (i == 2) return FTH_FAIL(err, FTH_E_STATE, "there is no third");
    FTH_TRY(fth_figure_create(out, fth_context_mem(call->context), &(fth_figure_options){.dpi = 30},
                              err));
    fth_panel_line(fth_figure_panel(*out, 0), (fth_column){0}, fth_column_of(FTH_F32, y, 3), NULL);
    return FTH_OK;
}

TEST(figures_are_planned_and_drawn_by_one_function)
{
    static const fth_stage_file files[] = {
        {"a.png", "a", true}, {"b.svg", "b", true}, {"c.png", "c", true}, {0}};
    const fth_stage_file two[] = {files[0], files[1], {0}};
    fth_context *ctx = context();
    fth_stage_call call = {.context = ctx, .model_dir = t_temp_dir()};
    fth_stage_plan plan = {0};
    fth_err err = {0};
    char shown[400] = "";
    FILE *show = fmemopen(shown, sizeof shown - 1, "w");
    OKE(fth_stage_draw(&call, &plan, show, two, make_figure, &call, &err), &err);
    fclose(show);
    HAS(shown, "a.png ");
    HAS(shown, "b.svg ");
    IS_TRUE(plan.host_bytes > 0);
    EQ_I64(t_file_count(), 0); /* a plan writes nothing */
    OKE(fth_stage_draw(&call, NULL, NULL, two, make_figure, &call, &err), &err);
    EQ_I64(t_file_count(), 2);
    IS(fth_stage_draw(&call, NULL, NULL, files, make_figure, &call, &err), FTH_E_STATE);
    EQ_I64(t_file_count(), 2);
    remove(t_temp_path("a.png"));
    remove(t_temp_path("b.svg"));
    OK(fth_context_destroy(ctx, NULL));
}

static bool stop(void *user)
{
    return *(const bool *)user;
}

TEST(a_step_that_is_stopped_says_how_far_it_was)
{
    bool stopped = false;
    const fth_stage stage = {.name = "fit"};
    fth__stage_link link = {.sent_at = 1e300}; /* nothing is sent */
    const fth_stage_options opt = {.stop = stop, .user = &stopped};
    link.opt = &opt;
    pthread_mutex_init(&link.lock, NULL);
    const fth_stage_call call = {.stage = &stage, .link = &link};
    fth_stage_progress p = {.done = 3, .total = 7, .what = "iteration"};
    fth_err err = {0};
    OKE(fth_stage_step(&call, &p, &err), &err);
    stopped = true;
    IS(fth_stage_step(&call, &p, &err), FTH_E_CANCELLED);
    HAS(err.text, "fit was stopped after iteration 3 of 7");
    fth_err_clear(&err);
    p = (fth_stage_progress){.done = 5};
    IS(fth_stage_step(&call, &p, &err), FTH_E_CANCELLED);
    EQ_STR(err.text, "fit was stopped after part 5");
    pthread_mutex_destroy(&link.lock);
}

TEST_MAIN()
