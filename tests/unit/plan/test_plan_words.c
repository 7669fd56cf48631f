/* test_plan_words.c - what plans and refusals say, and whose words they use.
 *
 * seconds: 1
 */
#include "testing/job/plan_stage.h"

/* A refusal names the limit as whoever reads it sets it; a plan's own, or the context's. */
TEST(refusals_speak_as_their_reader_does)
{
    static const char *const word[3][2] = {
        [FTH_FRONT_C] = {"would fit: memory_bytes = ", "would fit: mem.budget_bytes = "},
        [FTH_FRONT_PYTHON] = {"would fit: memory=", "would fit: Context(memory="},
        [FTH_FRONT_CLI] = {"would fit: --memory ", "would fit: --memory "}};
    for (int front = 0; front < 3; front++)
        for (int own = 0; own < 2; own++) {
            stage s = {0};
            fth_err err = {0};
            fth_options opt;
            fth_options_default(&opt);
            opt.threads = 1;
            opt.front = (fth_front)front;
            if (!own) opt.mem.budget_bytes = 6 << 20;
            OKE(fth_context_create(&s.ctx, &opt, &err), &err);
            s.g = fth_graph_create(s.ctx);
            fth_axis(s.g, "row", ROWS * 100);
            fth_axis(s.g, "col", COLS);
            const fth_source src = {.kind = "waves",
                                    .self = &s,
                                    .dtype = FTH_F32,
                                    .n_axes = 2,
                                    .size = {ROWS * 100, COLS},
                                    .read = read_waves};
            const fth_val v = fth_sort(fth_input(s.g, "x", FTH_F32, "row col", src), "row", false);
            fth_plan *p = fth_plan_make(
                s.g, &v, 1, (&(fth_limits){.memory_bytes = own ? 4096 : 0, .no_spill = true}),
                &err);
            IS_TRUE(p == NULL);
            IS(err.status, FTH_E_NO_FIT);
            HAS(err.hint, word[front][!own]);
            close_stage(&s);
        }
}

/* What a fused step does, by operation, label and line, for people and for programs. */
TEST(a_fused_step_lists_what_it_does)
{
    stage s;
    open_stage(&s, NULL);
    fth_err err = {0};
    const fth_val x = waves(&s, "x");
    const fth_val rate = fth_label(fth_exp(fth_mul(x, fth_const(s.g, FTH_F32, 3.0))), "rate");
    const fth_val v = fth_label(fth_sum(fth_add(rate, x), "col"), "total");
    fth_plan *p = fth_plan_make(s.g, &v, 1, NULL, &err);
    if (!p) OKE(err.status, &err);
    char *text = NULL, *json = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    OK(fth_plan_print(p, f));
    fclose(f);
    f = open_memstream(&json, &bytes);
    OK(fth_plan_print_json(p, f));
    fclose(f);
    HAS(text, "      mul, exp as rate, add, sum as total\n");
    HAS(json, "\"ops\":[{\"op\":\"mul\",\"label\":\"map.");
    HAS(json, "{\"op\":\"exp\",\"label\":\"rate\",\"line\":\"");
    HAS(json, "{\"op\":\"sum\",\"label\":\"total\",\"line\":\"");
    free(text);
    free(json);
    fth_plan_destroy(p);
    close_stage(&s);
}

TEST(a_number_of_threads_that_makes_no_sense_is_refused)
{
    static const int wrong[] = {-1, 4097, 1000000};
    stage s;
    open_stage(&s, NULL);
    const fth_val v = fth_exp(waves(&s, "x"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fth_err err = {0};
        IS_TRUE(fth_plan_make(s.g, &v, 1, &(fth_limits){.threads = wrong[i]}, &err) == NULL);
        IS(err.status, FTH_E_USAGE);
        HAS(err.text, "threads must be 0 to 4096");
    }
    close_stage(&s);
}

TEST_MAIN()
