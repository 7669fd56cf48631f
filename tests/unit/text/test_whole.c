/* test_whole.c - the line about a whole run: what counts as done, and how time left is estimated.
 * seconds: 2 */
#include "base/clock.h"
#include "testing/io/files.h"
#include "testing/job/view.h"

typedef struct bench {
    fth_mem *mem;
    fth_view *view;
    char text[200];
} bench;

/* A run that began 100 s ago. */
static bench start(void)
{
    bench b = {.mem = t_mem(1 << 24)};
    OK(fth__view_create(&b.view, b.mem, "/data/out", NULL));
    b.view->started = 1000;
    b.view->now = 1100;
    b.view->runner_pid = 7;
    return b;
}

static void drop(bench *b)
{
    fth_view_destroy(b->view);
    OK(fth_mem_destroy(b->mem, NULL));
}

static fth_task *add(bench *b, const char *stage, fth_state state, double planned, double seconds)
{
    fth_task *t = t_view_task(b->view, "liver_svgp", stage, state);
    t->queued = 1000;
    t->planned_seconds = planned;
    t->seconds = seconds;
    return t;
}

static const char *line(bench *b)
{
    const size_t n = fth_run_format(b->view, b->text, sizeof b->text);
    EQ_U64(n, strlen(b->text));
    return b->text;
}

TEST(predictions_give_percent_and_time_left)
{
    bench b = start();
    add(&b, "train", FTH_STATE_COMPLETED, 50, 50);
    add(&b, "train", FTH_STATE_PENDING, 100, 0);
    add(&b, "train", FTH_STATE_RUNNING, 50, 50)->remaining_s = 50;
    EQ_STR(line(&b), "40 % done, 1 of 3 tasks, 1:40 elapsed, about 2:30 left");
    drop(&b);
}

TEST(what_was_measured_corrects_what_is_predicted)
{
    bench b = start();
    add(&b, "train", FTH_STATE_COMPLETED, 25, 50); /* it took twice as long */
    add(&b, "train", FTH_STATE_PENDING, 25, 0);
    EQ_STR(line(&b), "50 % done, 1 of 2 tasks, 1:40 elapsed, about 50s left");
    drop(&b);
}

TEST(what_is_not_predicted_takes_the_mean_of_its_stage)
{
    bench b = start();
    add(&b, "train", FTH_STATE_COMPLETED, 0, 80);
    add(&b, "plot", FTH_STATE_COMPLETED, 0, 10);
    add(&b, "plot", FTH_STATE_COMPLETED, 0, 30);
    add(&b, "plot", FTH_STATE_PENDING, 0, 0);
    EQ_STR(line(&b), "85 % done, 3 of 4 tasks, 1:40 elapsed, about 20s left");
    add(&b, "export", FTH_STATE_PENDING, 0, 0); /* of a stage that nobody has seen: (80+10+30)/3 */
    EQ_STR(line(&b), "66 % done, 3 of 5 tasks, 1:40 elapsed, about 1:00 left");
    drop(&b);
}

TEST(without_any_number_tasks_are_counted)
{
    bench b = start();
    add(&b, "train", FTH_STATE_FAILED, 0, 0);
    add(&b, "train", FTH_STATE_PENDING, 0, 0);
    add(&b, "train", FTH_STATE_RUNNING, 0, 3);
    EQ_STR(line(&b), "33 % done, 1 of 3 tasks, 1:40 elapsed");
    drop(&b);
}

TEST(tasks_that_run_at_a_time_share_what_is_left)
{
    bench b = start();
    for (int i = 0; i < 2; i++) add(&b, "train", FTH_STATE_RUNNING, 50, 10)->remaining_s = 40;
    for (int i = 0; i < 6; i++) add(&b, "train", FTH_STATE_PENDING, 50, 0);
    EQ_STR(line(&b), "5 % done, 0 of 8 tasks, 1:40 elapsed, about 3:10 left");
    b.view->task[0].remaining_s = 400; /* nothing ends before the longest */
    EQ_STR(line(&b), "2 % done, 0 of 8 tasks, 1:40 elapsed, about 6:40 left");
    drop(&b);
}

TEST(cached_tasks_cost_nothing_and_earlier_runs_do_not_count)
{
    bench b = start();
    fth_task *t = add(&b, "train", FTH_STATE_COMPLETED, 500, 500);
    t->cached = true;
    add(&b, "train", FTH_STATE_COMPLETED, 500, 500)->queued = 900;
    add(&b, "train", FTH_STATE_RUNNING, 100, 25)->remaining_s = 75;
    EQ_STR(line(&b), "25 % done, 1 of 2 tasks, 1:40 elapsed, about 1:15 left");
    drop(&b);
}

TEST(it_is_the_second_line_of_a_table_while_somebody_runs)
{
    bench b = start();
    char text[2000];
    add(&b, "train", FTH_STATE_RUNNING, 100, 25)->remaining_s = 75;
    add(&b, "plot", FTH_STATE_COMPLETED, 0, 0);
    fth_table_format(b.view, NULL, text, sizeof text);
    HAS(text, "\n25 % done, 1 of 2 tasks, 1:40 elapsed, about 1:15 left\njob ");
    for (int height = 1; height < 8; height++) {
        int n = 0;
        fth_table_format(b.view, &(fth_table_options){.height = height}, text, sizeof text);
        for (const char *s = text; *s; s++) n += *s == '\n';
        IS_TRUE(n <= height);
    }
    b.view->runner_pid = 0;
    EQ_STR(line(&b), "");
    b.view->runner_pid = 7;
    b.view->task[0].state = FTH_STATE_COMPLETED;
    EQ_STR(line(&b), "");
    drop(&b);
}

TEST(twenty_thousand_tasks_take_milliseconds)
{
    bench b = start();
    static const char *const stage[] = {"preprocess", "train", "analyze", "figures"};
    for (int i = 0; i < 20000; i++) add(&b, stage[i % 4], FTH_STATE_PENDING, 0, 0);
    b.view->task[0].planned_seconds = 1;
    const int64_t t0 = fth__clock_ns();
    line(&b);
    const double ms = (double)(fth__clock_ns() - t0) * 1e-6;
    printf("20000 tasks: %.2f ms\n", ms);
    if (!T_SANITIZED) LE_F64(ms, 100); /* loaded machines included */
    drop(&b);
}

TEST_MAIN()
