/* seconds: 10
 * test_plan.c - what the planner decides: passes, nests, gaps, what is kept and what is in place.
 *
 * Each program is run with all the memory it wants and again with less; the bytes must agree, and
 * the plan must have done what the case is about.
 */
#include "testing/job/plan_stage.h"

#include <math.h>
#include <stdatomic.h>

/* ---- cases ---- */

TEST(values_needed_in_two_passes_are_made_again)
{
    stage s;
    open_stage(&s, NULL);
    const fth_val y = fth_exp(waves(&s, "x"));
    const fth_val v = fth_div(y, fth_sum(y, "row")); /* softmax over rows */
    fth_plan_info info;
    same_at(&s, v, (fth_limits){.memory_bytes = 300 << 10}, &info);
    EQ_I64(info.passes, 2);
    IS_TRUE(info.recomputed >= 1);
    close_stage(&s);
}

TEST(a_dear_value_is_kept_when_it_fits)
{
    stage s;
    open_stage(&s, NULL);
    fth_axis(s.g, "k", 600);
    const fth_val x = waves(&s, "x");
    /* many flops per byte: a product over k that leaves one number per row */
    const fth_val w = fth_sin(fth_cast(fth_expand(fth_index(s.g, "k"), "col"), FTH_F32));
    const fth_val y = fth_sum(fth_sqr(fth_dot(x, w, "col")), "k");
    const fth_val v = fth_sub(y, fth_mean(y, "row"));
    fth_plan_info info;
    same_at(&s, v, (fth_limits){.memory_bytes = 18 << 20, .no_recompute = true, .stream = "row"},
            &info);
    EQ_I64(info.recomputed, 0);
    close_stage(&s);
}

TEST(blocks_wait_on_file_when_memory_is_short)
{
    stage s;
    open_stage(&s, t_temp_dir());
    /* one axis, and every step needs all of it: only giving blocks up can help */
    const fth_val x = fth_sum(waves(&s, "x"), "col");
    const fth_val a = fth_sort(x, "row", false), b = fth_sort(fth_neg(a), "row", true);
    const fth_val c = fth_sort(fth_sqr(b), "row", false);
    const fth_val v = fth_add(fth_flip(c, "row"), fth_add(fth_flip(a, "row"), fth_flip(b, "row")));
    fth_plan_info whole, info = {0};
    float *want = evaluate(&s, v, (fth_limits){0}, &whole);
    int spilled = 0;
    for (uint64_t bytes = whole.peak_bytes;; bytes -= 32u << 10) {
        fth_err err = {0};
        fth_plan *p = fth_plan_make(s.g, &v, 1, &(fth_limits){.memory_bytes = bytes}, &err);
        fth_plan_destroy(p);
        if (!p) break;
        float *got = evaluate(&s, v, (fth_limits){.memory_bytes = bytes}, &info);
        SAME_BYTES(want, got, sizeof(float) * ROWS);
        free(got);
        if (info.spilled == 0) continue;
        spilled++;
        IS_TRUE(info.scratch_bytes >= ROWS * sizeof(float));
    }
    IS_TRUE(spilled >= 1);
    free(want);
    close_stage(&s);
}

TEST(an_input_is_read_again_rather_than_held)
{
    stage s;
    open_stage(&s, NULL);
    const fth_val x = waves(&s, "x");
    const fth_val a = fth_sort(fth_flip(x, "row"), "row", false); /* uses x, then needs room */
    const fth_val b = fth_sort(fth_flip(a, "row"), "row", true);
    const fth_val v = fth_flip(fth_add(fth_flip(b, "row"), fth_flip(x, "row")), "row");
    fth_plan_info whole, info;
    free(evaluate(&s, v, (fth_limits){0}, &whole));
    const int64_t before = s.reads;
    free(evaluate(&s, v, (fth_limits){.memory_bytes = whole.peak_bytes - 64}, &info));
    IS_TRUE(s.reads - before >= 2);
    EQ_I64(info.spilled, 0);
    close_stage(&s);
}

TEST(halos_widen_what_is_read_and_add_up)
{
    stage s;
    open_stage(&s, NULL);
    fth_axis(s.g, "tap", 5);
    const fth_val blur =
        fth_mean(fth_window(waves(&s, "x"), "row", 2, "tap", FTH_BORDER_CLAMP), "tap");
    const fth_val v = fth_mean(fth_window(fth_sqr(blur), "row", 2, "tap", FTH_BORDER_ZERO), "tap");
    fth_plan_info info;
    same_at(&s, v, (fth_limits){.memory_bytes = 500 << 10}, &info);
    IS_TRUE(info.chunks > 1);
    close_stage(&s);
}

TEST(running_sums_cross_chunks)
{
    stage s;
    open_stage(&s, NULL);
    const fth_val v = fth_cumsum(fth_sqr(waves(&s, "x")), "row");
    fth_plan_info info;
    same_at(&s, v, (fth_limits){.memory_bytes = 400 << 10}, &info);
    IS_TRUE(info.chunks > 1);
    close_stage(&s);
}

/* Chunks of the first and the second loop of a plan, as it is printed. */
static void printed_chunks(stage *s, fth_val v, fth_limits limits, long long chunk[2])
{
    fth_err err = {0};
    char *text = NULL;
    size_t bytes = 0;
    fth_plan *p = fth_plan_make(s->g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    FILE *f = open_memstream(&text, &bytes);
    IS_TRUE(f != NULL);
    OK(fth_plan_print(p, f));
    EQ_I64(fclose(f), 0);
    const char *at = text;
    for (int i = 0; i < 2; i++) {
        at = strstr(at, "chunks of ");
        IS_TRUE(at != NULL);
        at += strlen("chunks of ");
        chunk[i] = strtoll(at, NULL, 10);
    }
    free(text);
    fth_plan_destroy(p);
}

/* The first pass holds one input, the second three and the result. */
TEST(each_pass_has_the_largest_chunks_that_fit_it)
{
    stage s;
    open_stage(&s, NULL);
    const fth_val x = waves(&s, "x");
    const fth_val y = fth_add(fth_mul(x, waves(&s, "y")), waves(&s, "z"));
    const fth_val v = fth_div(y, fth_sum(fth_exp(x), "row"));
    const fth_limits limits = {.memory_bytes = 400 << 10};
    fth_plan_info info;
    same_at(&s, v, limits, &info);
    EQ_I64(info.passes, 2);
    long long chunk[2];
    printed_chunks(&s, v, limits, chunk);
    IS_TRUE(chunk[1] < ROWS);
    LE_F64(2.0 * (double)chunk[1], (double)chunk[0]);
    close_stage(&s);
}

TEST(slices_pads_and_concatenations_stream)
{
    stage s;
    open_stage(&s, NULL);
    fth_axis(s.g, "part", ROWS - 700);
    fth_axis(s.g, "rest", 700);
    fth_axis(s.g, "again", ROWS);
    const fth_val x = waves(&s, "x");
    const fth_val parts[2] = {fth_slice(x, "row", 700, "part"), fth_slice(x, "row", 0, "rest")};
    const char *const axes[2] = {"part", "rest"};
    const fth_val v = fth_exp(fth_concat(2, parts, axes, "again"));
    fth_plan_info info;
    same_at(&s, v, (fth_limits){.memory_bytes = 600 << 10}, &info);
    close_stage(&s);
}

/* The budget that a refusal of these limits names. */
static uint64_t floor_of(stage *s, fth_val v, fth_limits limits)
{
    fth_err err = {0};
    limits.memory_bytes = 1;
    IS_TRUE(fth_plan_make(s->g, &v, 1, &limits, &err) == NULL);
    IS(err.status, FTH_E_NO_FIT);
    return strtoull(strstr(err.hint, "memory_bytes = ") + 15, NULL, 10);
}

/* An axis that is shifted against the loop has its grid elsewhere: sums over it must not be cut
 * between the blocks of the grid. */
/* What two passes need takes no more in the second than if it were written where it is read. */
TEST(what_is_made_again_waits_for_its_reader)
{
    uint64_t bytes[2];
    for (int twice = 0; twice < 2; twice++) {
        stage s;
        open_stage(&s, NULL);
        const fth_val x = waves(&s, "x"), y = fth_sort(x, "col", false);
        const fth_val scaled = fth_mul(x, fth_sum(y, "row"));
        const fth_val up = fth_sort(scaled, "col", false), down = fth_sort(scaled, "col", true);
        const fth_val a = fth_sort(fth_atan2(up, down), "col", false);
        const fth_val again = twice ? fth_sort(x, "col", false) : y;
        const fth_val v = fth_sort(fth_add(a, again), "col", false);
        fth_plan_info info;
        same_at(&s, v, (fth_limits){.memory_bytes = 300 << 10}, &info);
        EQ_I64(info.passes, 2);
        bytes[twice] = floor_of(&s, v, (fth_limits){.memory_bytes = 1, .stream = "row"});
        close_stage(&s);
    }
    EQ_I64((int64_t)bytes[0], (int64_t)bytes[1]);
}

TEST(sums_over_shifted_axes_keep_their_grid)
{
    stage s;
    open_stage(&s, NULL);
    fth_axis(s.g, "part", ROWS - 40);
    const fth_val x = waves(&s, "x"), y = fth_slice(fth_sin(x), "row", 37, "part");
    const fth_val z = fth_slice(fth_exp(x), "row", 37, "part");
    fth_plan_info info;
    fth_limits limits = {.stream = "row"};
    const fth_val sum = fth_sum(y, "part"), product = fth_dot(y, z, "part");
    limits.memory_bytes = floor_of(&s, sum, limits);
    same_at(&s, sum, limits, &info);
    limits.memory_bytes = floor_of(&s, product, limits);
    same_at(&s, product, limits, &info);
    close_stage(&s);
}

/* A sum over the inner loop, read with its neighbours along the outer one: what it carries is as
 * wide as what is read. */
/* A running value is carried over the outer loop: if the inner one widened it, neighbours would
 * carry it twice. */
TEST(running_sums_are_not_widened_by_the_inner_loop)
{
    stage s;
    open_stage(&s, NULL);
    fth_axis(s.g, "line", 4000);
    fth_axis(s.g, "wide", 64);
    fth_axis(s.g, "tap", 5);
    const fth_val one = fth_const_i64(s.g, FTH_I64, 1);
    const fth_val run = fth_cumsum(fth_uniform(FTH_F32, "line wide", one, one, 0), "line");
    const fth_val v = fth_sum(fth_window(run, "wide", 2, "tap", FTH_BORDER_ZERO), "tap");
    fth_plan_info info;
    fth_limits limits = {.stream = "line"};
    limits.memory_bytes = floor_of(&s, v, limits);
    same_at(&s, v, limits, &info);
    IS_TRUE(info.chunks > 1);
    close_stage(&s);
}

TEST(halos_widen_sums_of_the_inner_loop)
{
    stage s;
    open_stage(&s, NULL);
    fth_axis(s.g, "deep", 5000);
    fth_axis(s.g, "line", 40);
    fth_axis(s.g, "wide", 16);
    fth_axis(s.g, "tap", 5);
    const fth_val one = fth_const_i64(s.g, FTH_I64, 1);
    const fth_val x = fth_uniform(FTH_F32, "line wide deep", one, one, 0);
    const fth_val v =
        fth_sum(fth_window(fth_sum(fth_sqr(x), "deep"), "line", 2, "tap", FTH_BORDER_ZERO), "tap");
    fth_plan_info info;
    fth_limits limits = {.stream = "line"};
    limits.memory_bytes = floor_of(&s, v, limits);
    same_at(&s, v, limits, &info);
    IS_TRUE(info.nested >= 1);
    close_stage(&s);
}

TEST(one_block_less_than_the_floor_is_refused_before_anything_is_read)
{
    stage s;
    open_stage(&s, NULL);
    const fth_val v = fth_sub(waves(&s, "x"), fth_mean(waves(&s, "y"), "row"));
    fth_err err = {0};
    IS_TRUE(fth_plan_make(s.g, &v, 1, &(fth_limits){.memory_bytes = 1000}, &err) == NULL);
    IS(err.status, FTH_E_NO_FIT);
    const char *number = strstr(err.hint, "memory_bytes = ");
    IS_TRUE(number != NULL);
    const uint64_t floor = strtoull(number + 15, NULL, 10);
    fth_err_clear(&err);
    IS_TRUE(fth_plan_make(s.g, &v, 1, &(fth_limits){.memory_bytes = floor - 1}, &err) == NULL);
    EQ_I64(s.reads, 0);
    fth_plan_info info;
    same_at(&s, v, (fth_limits){.memory_bytes = floor}, &info);
    close_stage(&s);
}

TEST(a_bound_is_planned_and_printed_but_not_run)
{
    stage s;
    fth_err err = {0};
    open_stage(&s, NULL);
    IS_TRUE(fth_axis_at_most(s.g, "cell", 50000));
    IS_TRUE(fth_axis_at_most(s.g, "cell", 50000));
    IS_TRUE(fth_axis_like(s.g, "cell2", "cell"));
    const fth_source src = {.kind = "header", .dtype = FTH_F32, .n_axes = 1, .size = {50000}};
    const fth_val x = fth_input(s.g, "x", FTH_F32, "cell", src);
    const fth_val v = fth_sort(fth_exp(x), "cell", false);
    fth_plan *p = fth_plan_make(s.g, &v, 1, NULL, &err);
    if (!p) OKE(err.status, &err);
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    OK(fth_plan_print(p, f));
    fclose(f);
    HAS(text, "[cell<=50000]");
    free(text);
    IS(fth_run(p, NULL, NULL, NULL, &err), FTH_E_PLAN_BOUND);
    HAS(err.text, "axis 'cell' is only known to be at most 50000");
    fth_plan_destroy(p);
    IS_TRUE(!fth_axis(s.g, "cell", 50000)); /* a bound is not a size */
    err = (fth_err){0};
    IS(fth_graph_check(s.g, &err), FTH_E_AXIS_SIZE);
    HAS(err.text, "is 50000 here but at most 50000 at");
    close_stage(&s);
}

TEST(a_value_is_shown_by_its_edges)
{
    stage s;
    fth_err err = {0};
    open_stage(&s, NULL);
    fth_axis(s.g, "few", 12);
    fth_axis(s.g, "many", 100);
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    OKE(fth_show(fth_index(s.g, "many"), 5, f, &err), &err);
    OKE(fth_show(fth_index(s.g, "few"), 5, f, &err), &err);
    const fth_val wide = fth_expand(fth_index(s.g, "many"), "row");
    OKE(fth_show(wide, 2, f, &err), &err);
    fclose(f);
    HAS(text, "0 1 2 3 4 5 6 7 ... 97 98 99\n");
    HAS(text, "0 1 2 3 4 5 6 7 8 9 10 11\n");
    HAS(text, "... 97 98 99\n0 1 2 3 4 5 6 7 ... 97 98 99\n... 20000 rows in all\n");
    free(text);
    close_stage(&s);
}

TEST(the_second_plan_of_a_kind_comes_from_the_cache)
{
    stage s;
    open_stage(&s, NULL);
    const fth_val y = fth_exp(waves(&s, "x"));
    const fth_val v = fth_div(y, fth_sum(y, "row"));
    fth_plan_info first, second;
    const fth_limits limits = {.memory_bytes = 300 << 10};
    float *a = evaluate(&s, v, limits, &first), *b = evaluate(&s, v, limits, &second);
    EQ_U64(first.peak_bytes, second.peak_bytes);
    EQ_I64(first.chunks, second.chunks);
    SAME_BYTES(a, b, sizeof(float) * ROWS * COLS);
    free(a);
    free(b);
    close_stage(&s);
}

/* What is remembered of one budget or axis is not taken for another. */
TEST(a_decision_holds_for_its_own_limits)
{
    stage s;
    open_stage(&s, NULL);
    const fth_val y = fth_exp(waves(&s, "x"));
    const fth_val v = fth_div(y, fth_sum(y, "row"));
    fth_plan_info small, large, forced;
    free(evaluate(&s, v, (fth_limits){.memory_bytes = 300 << 10}, &small));
    free(evaluate(&s, v, (fth_limits){.memory_bytes = 64 << 20}, &large));
    free(evaluate(&s, v, (fth_limits){.memory_bytes = 64 << 20, .stream = "row"}, &forced));
    IS_TRUE(small.passes >= 1);
    EQ_I64(large.passes, 0);
    IS_TRUE(forced.passes >= 1);
    close_stage(&s);
}

/* A value less its transpose, which is a view of it: the difference may not take its block, whole
 * or streamed, fused or not; nor a parameter's own memory. */
TEST(what_is_read_another_way_round_is_not_overwritten)
{
    enum { N = 300 };
    stage s;
    open_stage(&s, NULL);
    fth_err err = {0};
    fth_axis(s.g, "i", N);
    fth_axis(s.g, "j", N);
    fth_tensor *t;
    const int64_t size[2] = {N, N};
    OKE(fth_tensor_create(&t, fth_context_mem(s.ctx), "p", FTH_F32, 2, size, &err), &err);
    float *p = fth_tensor_data(t);
    for (int i = 0; i < N * N; i++) p[i] = (float)(i * 7919 % 10007);
    const fth_val param = fth_param(s.g, "p", "i j", t), y = fth_add(param, param);
    const fth_val v = fth_sub(y, fth_rename(y, "i j", "j i"));
    for (int way = 0; way < 3; way++) {
        const fth_limits limits = {.memory_bytes =
                                       way == 1 ? 2 * sizeof(float) * N * N + (400 << 10) : 0,
                                   .no_fuse = way == 2};
        fth_plan_info info;
        float *got = evaluate(&s, v, limits, &info);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) EQ_F64(got[i * N + j], 2 * (p[i * N + j] - p[j * N + i]));
        free(got);
    }
    const fth_val out = fth_assign(param, fth_sub(param, fth_rename(param, "i j", "j i")));
    fth_plan *plan = fth_plan_make(s.g, &out, 1, &(fth_limits){0}, &err);
    if (!plan) OKE(err.status, &err);
    float *old = malloc(sizeof(float) * N * N);
    memcpy(old, p, sizeof(float) * N * N);
    OKE(fth_run(plan, &(fth_sink){0}, NULL, NULL, &err), &err);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) EQ_F64(p[i * N + j], old[i * N + j] - old[j * N + i]);
    free(old);
    fth_plan_destroy(plan);
    fth_tensor_release(t);
    close_stage(&s);
}

/* One value for three sinks, beside another and an input that two want: whole and streamed, into
 * memory that is known when planning and into functions. */
TEST(a_value_wanted_twice_goes_to_each_sink)
{
    enum { OUTS = 6 };
    stage s;
    open_stage(&s, NULL);
    const fth_val x = waves(&s, "x"), y = fth_exp(x), z = fth_mul(y, x);
    const fth_val out[OUTS] = {y, x, z, y, x, y};
    const size_t bytes = sizeof(float) * ROWS * COLS;
    float *want[OUTS];
    fth_plan_info info;
    for (int i = 0; i < OUTS; i++) want[i] = evaluate(&s, out[i], (fth_limits){0}, &info);
    for (int way = 0; way < 4; way++) {
        taken t[OUTS];
        fth_sink sink[OUTS];
        fth_err err = {0};
        for (int i = 0; i < OUTS; i++) {
            t[i] = (taken){.data = calloc(1, bytes), .size = {ROWS, COLS}, .n_axes = 2};
            sink[i] = (fth_sink){.kind = "taken",
                                 .self = &t[i],
                                 .dtype = FTH_F32,
                                 .n_axes = 2,
                                 .size = {ROWS, COLS},
                                 .write = take,
                                 .data = way & 1 && i != 3 ? t[i].data : NULL};
        }
        const fth_limits limits = {.memory_bytes = way & 2 ? (700 << 10) : 0,
                                   .sinks = way & 1 ? sink : NULL};
        fth_plan *p = fth_plan_make(s.g, out, OUTS, &limits, &err);
        if (!p) OKE(err.status, &err);
        fth_plan_get_info(p, &info);
        IS_TRUE((info.passes > 0) == ((way & 2) != 0));
        fth_run_report report;
        OKE(fth_run(p, sink, NULL, &report, &err), &err);
        IS_TRUE(report.kept);
        for (int i = 0; i < OUTS; i++) SAME_BYTES(t[i].data, want[i], bytes);
        fth_plan_destroy(p);
        for (int i = 0; i < OUTS; i++) free(t[i].data);
    }
    for (int i = 0; i < OUTS; i++) free(want[i]);
    close_stage(&s);
}

/* p <- p + q and q <- p - q. */
TEST(assigns_see_the_old_values)
{
    stage s;
    open_stage(&s, NULL);
    fth_err err = {0};
    const int64_t size[1] = {COLS};
    fth_tensor *tp, *tq;
    OKE(fth_tensor_create(&tp, fth_context_mem(s.ctx), "p", FTH_F32, 1, size, &err), &err);
    OKE(fth_tensor_create(&tq, fth_context_mem(s.ctx), "q", FTH_F32, 1, size, &err), &err);
    for (int i = 0; i < COLS; i++) {
        ((float *)fth_tensor_data(tp))[i] = (float)(i + 1);
        ((float *)fth_tensor_data(tq))[i] = 10.0f;
    }
    const fth_val p = fth_param(s.g, "p", "col", tp), q = fth_param(s.g, "q", "col", tq);
    /* each reads the other's old value, so at most one of them may happen in place */
    const fth_val outs[2] = {fth_assign(p, fth_add(p, q)), fth_assign(q, fth_sub(p, q))};
    fth_plan *plan = fth_plan_make(s.g, outs, 2, &(fth_limits){0}, &err);
    if (!plan) OKE(err.status, &err);
    const fth_sink none[2] = {{0}};
    OKE(fth_run(plan, none, NULL, NULL, &err), &err);
    for (int i = 0; i < COLS; i++) {
        EQ_F64(((float *)fth_tensor_data(tp))[i], (i + 1) + 10.0);
        EQ_F64(((float *)fth_tensor_data(tq))[i], (i + 1) - 10.0);
    }
    fth_plan_destroy(plan);
    fth_tensor_release(tp);
    fth_tensor_release(tq);
    close_stage(&s);
}

/* Parameters of one axis "row", filled with first + step * i. */
static fth_tensor *row_param(stage *s, const char *name, float first, float step, fth_val *v)
{
    fth_err err = {0};
    fth_tensor *t;
    OKE(fth_tensor_create(&t, fth_context_mem(s->ctx), name, FTH_F32, 1, (const int64_t[]){ROWS},
                          &err),
        &err);
    for (int64_t i = 0; i < ROWS; i++) ((float *)fth_tensor_data(t))[i] = first + step * (float)i;
    *v = fth_param(s->g, name, "row", t);
    return t;
}

/* Three parameters go round, and a fourth takes the old value of one of them. */
TEST(parameters_change_places)
{
    stage s;
    open_stage(&s, NULL);
    fth_err err = {0};
    fth_val v[4];
    fth_tensor *t[4];
    for (int i = 0; i < 4; i++)
        t[i] = row_param(&s, (const char[2]){(char)('p' + i), 0}, (float)(1000 * i), 1.0f, &v[i]);
    const fth_val outs[4] = {fth_assign(v[0], v[1]), fth_assign(v[1], v[2]), fth_assign(v[2], v[0]),
                             fth_assign(v[3], v[1])};
    fth_plan *plan = fth_plan_make(s.g, outs, 4, &(fth_limits){0}, &err);
    if (!plan) OKE(err.status, &err);
    fth_run_report report;
    OKE(fth_run(plan, (const fth_sink[4]){{0}}, NULL, &report, &err), &err);
    EQ_U64(report.ledger_bytes, report.planned_bytes);
    static const int from[4] = {1, 2, 0, 1};
    for (int i = 0; i < 4; i++)
        for (int64_t k = 0; k < ROWS; k++)
            EQ_F64(((float *)fth_tensor_data(t[i]))[k], 1000.0 * from[i] + (double)k);
    fth_plan_destroy(plan);
    for (int i = 0; i < 4; i++) fth_tensor_release(t[i]);
    close_stage(&s);
}

/* Two assigned values wait on file while something large is sorted: at the end both must be back
 * before the first parameter changes. */
TEST(assigned_values_come_back_together)
{
    stage s;
    open_stage(&s, t_temp_dir());
    fth_err err = {0};
    fth_val p, q;
    fth_tensor *tp = row_param(&s, "p", 1.0f, 1.0f, &p), *tq = row_param(&s, "q", 0.5f, 2.0f, &q);
    const fth_val wide = fth_cast(fth_sum(waves(&s, "x"), "col"), FTH_F64);
    const fth_val big = fth_cast(fth_sort(wide, "row", false), FTH_F32);
    const fth_val x2 = waves(&s, "x2"); /* a sum is made in the loop and cannot be in place */
    const fth_val p2 = fth_sum(fth_mul(x2, p), "col"), q2 = fth_sum(fth_mul(x2, q), "col");
    fth_plan_info info;
    float *want_p = evaluate(&s, p2, (fth_limits){0}, &info),
          *want_q = evaluate(&s, q2, (fth_limits){0}, &info);
    const fth_val outs[3] = {fth_assign(p, p2), fth_assign(q, q2),
                             fth_sum(fth_flip(big, "row"), "row")};
    float sum;
    taken k = {.data = &sum};
    const fth_sink sinks[3] = {
        {0}, {0}, {.kind = "taken", .self = &k, .dtype = FTH_F32, .write = take}};
    fth_limits limits = {.memory_bytes = 1, .stream = "row"};
    IS_TRUE(fth_plan_make(s.g, outs, 3, &limits, &err) == NULL);
    limits.memory_bytes = strtoull(strstr(err.hint, "memory_bytes = ") + 15, NULL, 10);
    fth_err_clear(&err);
    fth_plan *plan = fth_plan_make(s.g, outs, 3, &limits, &err);
    if (!plan) OKE(err.status, &err);
    fth_plan_get_info(plan, &info);
    IS_TRUE(info.spilled >= 2);
    OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
    SAME_BYTES(fth_tensor_data(tp), want_p, ROWS * sizeof(float));
    SAME_BYTES(fth_tensor_data(tq), want_q, ROWS * sizeof(float));
    free(want_p);
    free(want_q);
    fth_plan_destroy(plan);
    fth_tensor_release(tp);
    fth_tensor_release(tq);
    close_stage(&s);
}

/* Everything here follows the rows, the update too; yet it waits for the end, where it works in
 * place, and of the three blocks only the gradient is held. */
TEST(an_update_waits_with_its_gradient_alone)
{
    stage s;
    open_stage(&s, NULL);
    fth_err err = {0};
    fth_val p, m, v;
    fth_tensor *t[3] = {row_param(&s, "p", 1.0f, 1.0f, &p), row_param(&s, "m", 0.0f, 0.0f, &m),
                        row_param(&s, "v", 0.0f, 0.0f, &v)};
    const fth_val g = fth_sum(waves(&s, "x"), "col");
    const fth_val m2 = fth_add(m, g), v2 = fth_add(v, fth_sqr(g)), p2 = fth_sub(p, fth_mul(m2, v2));
    const fth_val outs[3] = {fth_assign(p, p2), fth_assign(m, m2), fth_assign(v, v2)};
    const fth_limits limits = {.stream = "row"};
    fth_plan *plan = fth_plan_make(s.g, outs, 3, &limits, &err);
    if (!plan) OKE(err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    const uint64_t gradient = ROWS * sizeof(float);
    IS_TRUE(info.passes == 1);
    float *want = evaluate(&s, p2, (fth_limits){0}, &info);
    fth_limits tight = {.memory_bytes = 3 * gradient + 2 * gradient, .stream = "row"};
    fth_plan_destroy(plan);
    plan = fth_plan_make(s.g, outs, 3, &tight, &err); /* two gradients beside the parameters */
    if (!plan) OKE(err.status, &err);
    OKE(fth_run(plan, (const fth_sink[3]){{0}}, NULL, NULL, &err), &err);
    SAME_BYTES(fth_tensor_data(t[0]), want, gradient);
    free(want);
    fth_plan_destroy(plan);
    for (int i = 0; i < 3; i++) fth_tensor_release(t[i]);
    close_stage(&s);
}

typedef struct crowd {
    _Atomic int most;
} crowd;

static void count_worker(void *arg, int64_t i, int worker)
{
    crowd *c = arg;
    for (volatile int64_t spin = 0; spin < 20000; spin++) {
    } /* long enough for others to come */
    (void)i;
    for (int most = c->most;
         worker > most && !atomic_compare_exchange_weak(&c->most, &most, worker);) {
    }
}

static fth_status crowd_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = FTH_F32};
    return FTH_OK;
}

/* The highest worker number seen, against the size of the team that was announced. */
static fth_status crowd_run(const fth_call *call)
{
    crowd c = {0};
    fth_team_run(call->team, 400, count_worker, &c);
    *(float *)call->out[0].data = (float)(c.most < call->threads ? call->threads : -c.most);
    return FTH_OK;
}

static fth_status hungry_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void hungry_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static uint64_t hungry_scratch(const fth_call *call)
{
    return 8 * sizeof(float) * (uint64_t)(call->out[0].extent[0] * call->out[0].extent[1]);
}

/* A copy, after writing all over the workspace. */
static fth_status hungry_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    memset(call->scratch, 0xff, (size_t)hungry_scratch(call));
    for (int64_t i = 0; i < out->extent[0]; i++)
        for (int64_t j = 0; j < out->extent[1]; j++)
            ((float *)out->data)[i * out->stride[0] + j * out->stride[1]] =
                ((const float *)in->data)[(out->origin[0] + i - in->origin[0]) * in->stride[0] +
                                          (out->origin[1] + j - in->origin[1]) * in->stride[1]];
    return FTH_OK;
}

/* The first pieces of a shifted slice are empty and need no workspace; the later ones do. */
TEST(workspace_is_that_of_the_hungriest_piece)
{
    static const fth_op hungry = {.name = "hungry",
                                  .brief = "takes more workspace than data",
                                  .infer = hungry_infer,
                                  .relation = hungry_relation,
                                  .scratch = hungry_scratch,
                                  .run = hungry_run};
    stage s;
    open_stage(&s, NULL);
    fth_axis(s.g, "part", 5000);
    const fth_val x = fth_slice(waves(&s, "x"), "row", 12000, "part");
    const fth_val v = fth_custom(s.g, &hungry, 1, &x, NULL, 0);
    fth_plan_info info;
    fth_limits limits = {.stream = "row"};
    limits.memory_bytes = 2 * floor_of(&s, v, limits) + (64 << 10);
    same_at(&s, v, limits, &info);
    IS_TRUE(info.chunks >= 3);
    close_stage(&s);
}

/* Workspace is planned per worker: no plan may meet more workers than it was made for. */
TEST(a_plan_for_fewer_threads_meets_no_more_workers)
{
    static const fth_op op = {.name = "crowd",
                              .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,
                              .infer = crowd_infer,
                              .run = crowd_run};
    for (int threads = 1; threads <= 6; threads++) {
        fth_err err = {0};
        fth_options opt;
        fth_options_default(&opt);
        opt.threads = 4;
        stage s = {0};
        OKE(fth_context_create(&s.ctx, &opt, &err), &err);
        s.g = fth_graph_create(s.ctx);
        fth_axis(s.g, "row", ROWS);
        fth_axis(s.g, "col", COLS);
        const fth_val x = waves(&s, "x");
        fth_plan_info info;
        float *got = evaluate(&s, fth_custom(s.g, &op, 1, &x, NULL, 0),
                              (fth_limits){.threads = threads}, &info);
        EQ_F64(*got, threads);
        free(got);
        close_stage(&s);
    }
}

TEST(batches_are_read_by_row_numbers)
{
    stage s;
    open_stage(&s, NULL);
    fth_axis(s.g, "batch", 3);
    int64_t index[3] = {5, 19999, 0};
    fth_rows rows = {.base = {.kind = "waves",
                              .self = &s,
                              .dtype = FTH_F32,
                              .n_axes = 2,
                              .size = {ROWS, COLS},
                              .read = read_waves},
                     .index = index,
                     .n = 3};
    const fth_val x = fth_input(s.g, "x", FTH_F32, "batch col", fth_rows_source(&rows));
    const fth_val v = fth_mul(x, fth_const(s.g, FTH_F32, 1.0));
    fth_plan_info info;
    for (int turn = 0; turn < 2; turn++) {
        float *got = evaluate(&s, v, (fth_limits){0}, &info), want[COLS];
        for (int i = 0; i < 3; i++) {
            const int64_t lo[2] = {index[i], 0}, n[2] = {1, COLS};
            OK(read_waves(&s, lo, n, want, NULL));
            SAME_BYTES(got + i * COLS, want, sizeof want);
        }
        free(got);
        index[0] = 77; /* the next run reads other rows */
    }
    close_stage(&s);
}

enum { LARGE = 105000007 }; /* no multiple of a page */

static fth_status read_ones(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)lo, (void)err;
    memset(dst, 1, (size_t)n[0]);
    return FTH_OK;
}

/* Above 100 MiB the arena is a mapping of its own, counted in whole pages: so is the plan. */
TEST(a_large_arena_is_planned_in_whole_pages)
{
    fth_err err = {0};
    fth_run_report report;
    fth_plan_info info;
    fth_options opt;
    fth_context *ctx;
    fth_options_default(&opt);
    opt.mem.budget_bytes = (uint64_t)1 << 30;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    const fth_source bytes = {
        .kind = "ones", .dtype = FTH_U8, .n_axes = 1, .size = {LARGE}, .read = read_ones};
    fth_axis(g, "i", LARGE);
    uint8_t most = 0;
    const fth_val top = fth_rmax(fth_input(g, "bytes", FTH_U8, "i", bytes), "i");
    fth_plan *p = fth_plan_make(g, &top, 1, (&(fth_limits){.stream = ""}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_get_info(p, &info);
    IS_TRUE(info.peak_bytes > 100 << 20);
    const fth_sink sink = fth_scalar_sink(FTH_U8, &most);
    OKE(fth_run(p, &sink, NULL, &report, &err), &err);
    EQ_U64(report.ledger_bytes, info.peak_bytes);
    EQ_I64(most, 1);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST_MAIN()
