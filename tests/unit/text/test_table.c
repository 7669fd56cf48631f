/* test_table.c - the live table: order, widths, heights, names that want to break it.
 * seconds: 2 */
#include "testing/io/files.h"
#include "testing/job/view.h"

#include "base/clock.h"
#include "job/view/show.h"
#include "text/width.h"

#include <locale.h>
#include <math.h>

enum { ROOM = 1 << 21 };

typedef struct bench {
    fth_mem *mem;
    fth_view *view;
    char *text;
} bench;

static bench start(void)
{
    bench b = {.mem = t_mem(1 << 24), .text = malloc(ROOM)};
    OK(fth__view_create(&b.view, b.mem, "/data/out", NULL));
    return b;
}

static void drop(bench *b)
{
    free(b->text);
    fth_view_destroy(b->view);
    OK(fth_mem_destroy(b->mem, NULL));
}

static const char *format(bench *b, int width, int height, bool colour)
{
    const fth_table_options opt = {.width = width, .height = height, .colour = colour};
    const size_t n = fth_table_format(b->view, &opt, b->text, ROOM);
    EQ_U64(n, strlen(b->text));
    return b->text;
}

/* Line number i; valid until the next call. */
static const char *line(const char *text, int i)
{
    static char copy[4096];
    for (; i > 0 && text; i--) text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    if (!text) FAIL("there is no such line");
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(text, "\n"), text);
    return copy;
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static void narrow_enough(const char *text, int width)
{
    for (int i = 0; i < lines(text); i++)
        if (fth__text_columns(line(text, i)) > width) FAIL("too wide: '%s'", line(text, i));
}

static void add_all_states(bench *b)
{
    for (int s = 0; s < FTH_STATE_COUNT; s++) {
        fth_task *t =
            t_view_task(b->view, s % 2 ? "liver_svgp" : "brain_pnmf", "train", (fth_state)s);
        t->planned_bytes = 3ull << 30;
        t->device = "cpu";
        t->seconds = s == FTH_STATE_PENDING ? 0 : 205;
        if (s == FTH_STATE_RUNNING) {
            t->doing = "training";
            t->done = 120, t->total = 480;
            t->figure = "elbo", t->value = -123456.7;
            t->now_bytes = 1288490189;
        }
        if (s == FTH_STATE_FAILED) t->reason = "the disk is full", t->exit_code = 3;
    }
}

TEST(a_running_task_says_all)
{
    bench b = start();
    add_all_states(&b);
    b.view->budget_bytes = 8ull << 30;
    b.view->started = 1000, b.view->now = 4600;
    const char *text = format(&b, 0, 0, false);
    EQ_STR(line(text, 0),
           "1 running, 1 pending, 1 blocked, 1 failed, 1 interrupted, 1 skipped, 1 stale, "
           "1 completed; memory 1.2G of 8.0G; 1:00:00");
    EQ_STR(line(text, 1), "job         stage     device  state                  progress  figure"
                          "            elapsed   left  memory/plan  note");
    EQ_STR(line(text, 2), "brain_pnmf  training  cpu     running      [##......] 120/480  elbo "
                          "-1.2346e+05     3:25  10:15    1.2G/3.0G");
    HAS(line(text, 3), "brain_pnmf  train     cpu     pending");
    HAS(line(text, 5), "brain_pnmf  train     cpu     failed");
    HAS(line(text, 5), "the disk is full");
    HAS(line(text, 8), "stale");
    HAS(line(text, 9), "completed");
    EQ_I64(lines(text), 10);
    HAS_NOT(text, "\x1b");
    drop(&b);
}

TEST(rows_are_ordered_by_state_job_and_stage)
{
    bench b = start();
    t_view_task(b.view, "b", "train", FTH_STATE_COMPLETED);
    t_view_task(b.view, "b", "analyze", FTH_STATE_PENDING);
    t_view_task(b.view, "a", "train", FTH_STATE_COMPLETED);
    t_view_task(b.view, "a", "analyze", FTH_STATE_COMPLETED);
    t_view_task(b.view, "z", "train", FTH_STATE_FAILED);
    t_view_task(b.view, "z", "preprocess", FTH_STATE_RUNNING);
    t_view_task(b.view, "y", "preprocess", FTH_STATE_RUNNING);
    const char *text = format(&b, 0, 0, false);
    static const char *const wanted[] = {"y    preprocess", "z    preprocess", "b    analyze",
                                         "z    train",      "a    train",      "a    analyze",
                                         "b    train"};
    for (int i = 0; i < 7; i++) HAS(line(text, i + 2), wanted[i]);
    drop(&b);
}

TEST(no_line_is_wider_than_the_terminal)
{
    bench b = start();
    add_all_states(&b);
    t_view_task(b.view, "a_very_long_name_of_a_job_in_a_very_deep_folder_of_many_others_svgp",
                "preprocess_with_a_long_name", FTH_STATE_RUNNING);
    t_view_task(b.view, "肝臓_健康_肝臓_健康_肝臓_健康_肝臓_健康", "train", FTH_STATE_RUNNING);
    for (int width = 1; width < 200; width++) narrow_enough(format(&b, width, 0, false), width);
    HAS(format(&b, 80, 0, false), "a_very"); /* cut in its middle: both ends tell jobs apart */
    HAS(format(&b, 80, 0, false), "..");
    HAS(format(&b, 80, 0, false), "svgp");
    HAS_NOT(format(&b, 80, 0, false), "folder_of_many");
    drop(&b);
}

TEST(columns_go_least_important_first)
{
    bench b = start();
    add_all_states(&b);
    HAS(line(format(&b, 110, 0, false), 1), "device");
    HAS(format(&b, 110, 0, false), "[##");
    HAS_NOT(line(format(&b, 70, 0, false), 1), "device");
    HAS_NOT(format(&b, 70, 0, false), "[##");
    HAS(line(format(&b, 70, 0, false), 1), "progress");
    const char *text = format(&b, 34, 0, false);
    HAS(line(text, 1), "job");
    HAS(line(text, 1), "state");
    HAS_NOT(line(text, 1), "memory");
    drop(&b);
}

TEST(what_is_too_high_is_counted)
{
    bench b = start();
    for (int i = 0; i < 40; i++)
        t_view_task(b.view, "job", "train", i < 3 ? FTH_STATE_RUNNING : FTH_STATE_PENDING);
    t_view_task(b.view, "job", "train", FTH_STATE_COMPLETED)->cached = true;
    for (int height = 1; height < 50; height++) {
        const char *text = format(&b, 80, height, false);
        EQ_I64(lines(text), height == 3 ? 2 : height < 43 ? height : 43);
    }
    EQ_STR(line(format(&b, 80, 10, false), 9), "and 34 more: 33 pending, 1 completed (1 cached)");
    EQ_STR(line(format(&b, 80, 2, false), 1),
           "and 41 more: 3 running, 37 pending, 1 completed (1 cached)");
    drop(&b);
}

TEST(colours_come_only_when_asked_and_take_no_room)
{
    bench b = start();
    add_all_states(&b);
    char plain[4096], *to = plain;
    const char *text = format(&b, 90, 0, true);
    HAS(text, "\x1b[1;31mfailed");
    for (; *text; text++) { /* without its codes it is the plain one */
        if (*text == '\x1b')
            text = strchr(text, 'm');
        else
            *to++ = *text;
    }
    *to = '\0';
    EQ_STR(plain, format(&b, 90, 0, false));
    drop(&b);
}

TEST(names_cannot_break_the_table)
{
    bench b = start();
    t_view_task(b.view, "a\x1b[2J\nb\tc\x7f\xff\xc0\x80\xed\xa0\x80", "tr\rain", FTH_STATE_RUNNING);
    t_view_task(b.view, "safe\xe2\x80\xaegnp.exe", "train", FTH_STATE_RUNNING);
    const char *text = format(&b, 0, 0, false);
    EQ_I64(lines(text), 4);
    HAS(text, "a?[2J?b?c???????  tr?ain");
    HAS(text, "safe?gnp.exe");
    char one[256];
    fth_task_format(&b.view->task[0], one, sizeof one);
    EQ_STR(one, "a?[2J?b?c??????"
                "?/tr?ain: running");
    drop(&b);
}

TEST(characters_are_as_wide_as_terminals_show_them)
{
    EQ_I64(fth__text_columns("liver"), 5);
    EQ_I64(fth__text_columns("Le\xcc\x81ger"), 5);    /* e and a combining acute */
    EQ_I64(fth__text_columns("L\xc3\xa9ger"), 5);     /* the same in one */
    EQ_I64(fth__text_columns("肝臓"), 4);             /* wide */
    EQ_I64(fth__text_columns("\xf0\x9f\x94\xac"), 2); /* a microscope */
    EQ_I64(fth__text_columns("\xef\xbd\xb6"), 1);     /* half-width katakana */
    EQ_I64(fth__text_columns("한국"), 4);             /* Hangul */
    EQ_I64(fth__text_columns("\xe2\x82\xac \xce\xb1\xce\xb2"), 4);
    EQ_I64(fth__text_columns("\xf0\x9f"), 2); /* cut short: two bytes, two marks */
    EQ_I64(fth__text_columns(""), 0);
}

TEST(numbers_are_short)
{
    char w[FTH__WORD];
    EQ_STR(fth__show_size(0, w), "0B");
    EQ_STR(fth__show_size(999, w), "999B");
    EQ_STR(fth__show_size(1000, w), "1.0K");
    EQ_STR(fth__show_size(10 << 10, w), "10K");
    EQ_STR(fth__show_size(1ull << 30, w), "1.0G");
    EQ_STR(fth__show_size(UINT64_MAX, w), "16E");
    EQ_STR(fth__show_seconds(0.04, w), "0.0s");
    EQ_STR(fth__show_seconds(9.949, w), "9.9s");
    EQ_STR(fth__show_seconds(9.96, w), "10s");
    EQ_STR(fth__show_seconds(59.6, w), "1:00");
    EQ_STR(fth__show_seconds(3599, w), "59:59");
    EQ_STR(fth__show_seconds(3600, w), "1:00:00");
    EQ_STR(fth__show_seconds(1e6, w), "11d 13h");
    EQ_STR(fth__show_seconds(-1, w), "");
    EQ_STR(fth__show_seconds((double)NAN, w), "");
    EQ_STR(fth__show_value((double)NAN, w), "");
    EQ_STR(fth__show_value(0.5, w), "0.5");
}

TEST(one_line_says_what_happened)
{
    bench b = start();
    char text[512];
    fth_task *t = t_view_task(b.view, "liver_svgp", "train", FTH_STATE_FAILED);
    t->exit_code = 7, t->seconds = 12, t->reason = "a number is not finite";
    fth_task_format(t, text, sizeof text);
    EQ_STR(text, "liver_svgp/train: failed (exit code 7) after 12s: a number is not finite");
    t->signal = 9, t->exit_code = 0, t->reason = "";
    fth_task_format(t, text, sizeof text);
    EQ_STR(text, "liver_svgp/train: failed (signal 9) after 12s");
    t->state = FTH_STATE_RUNNING, t->device = "cuda:0", t->done = 3, t->total = 10;
    t->what = "epoch", t->figure = "elbo", t->value = -2, t->now_bytes = 1 << 30;
    fth_task_format(t, text, sizeof text);
    EQ_STR(text, "liver_svgp/train: running on cuda:0, 12s, epoch 3/10, elbo -2, memory/plan "
                 "1.0G/-");
    EQ_U64(fth_task_format(t, NULL, 0), strlen(text));
    t->state = FTH_STATE_COMPLETED, t->cached = true;
    t->value = (double)NAN, t->peak_bytes = 5 << 20, t->planned_bytes = 6 << 20;
    fth_task_format(t, text, sizeof text);
    EQ_STR(text, "liver_svgp/train: cached, memory/plan 5.0M/6.0M");
    drop(&b);
}

TEST(odd_numbers_do_no_harm)
{
    bench b = start();
    fth_task *t = t_view_task(b.view, "j", "s", FTH_STATE_RUNNING);
    t->done = INT64_MAX, t->total = INT64_MAX, t->seconds = 1e300;
    t->remaining_s = (double)NAN, t->planned_seconds = (double)INFINITY;
    t->now_bytes = t->planned_bytes = UINT64_MAX;
    t->value = 1e308, t->figure = "f";
    HAS(format(&b, 0, 0, false), "16E/16E");
    t->done = -5, t->total = 3;
    HAS(format(&b, 0, 0, false), "[........] 0/3");
    t->done = 5;
    HAS(format(&b, 0, 0, false), "[########] 3/3");
    t->done = 5, t->total = 0;
    HAS(format(&b, 0, 0, false), " 5 ");
    drop(&b);
    b = start();
    EQ_STR(format(&b, 80, 24, false), "no jobs\n");
    drop(&b);
}

TEST(a_text_that_does_not_fit_is_cut_and_its_size_told)
{
    bench b = start();
    add_all_states(&b);
    const size_t all = strlen(format(&b, 0, 0, false));
    char small[40];
    const fth_table_options opt = {0};
    EQ_U64(fth_table_format(b.view, &opt, small, sizeof small), all);
    EQ_U64(strlen(small), sizeof small - 1);
    EQ_U64(fth_table_format(b.view, NULL, NULL, 0), all);
    drop(&b);
}

TEST(five_thousand_tasks_take_milliseconds)
{
    bench b = start();
    char name[64];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "dataset_%04d_svgp", (i * 7919) % 5000);
        fth_task *t = t_view_task(b.view, name, "train", (fth_state)(i % FTH_STATE_COUNT));
        t->done = i, t->total = 5000, t->seconds = i, t->planned_bytes = 1u << 30;
        t->now_bytes = t->peak_bytes = 5u << 20, t->value = i, t->figure = "elbo";
    }
    int64_t least = INT64_MAX, whole = INT64_MAX;
    for (int rep = 0; rep < 5; rep++) {
        const int64_t t0 = fth__clock_ns();
        format(&b, 120, 50, true);
        const int64_t t1 = fth__clock_ns();
        format(&b, 120, 0, true);
        const int64_t t2 = fth__clock_ns();
        least = t1 - t0 < least ? t1 - t0 : least;
        whole = t2 - t1 < whole ? t2 - t1 : whole;
    }
    printf("5000 tasks: %.2f ms for a screen, %.2f ms for all\n", (double)least * 1e-6,
           (double)whole * 1e-6);
    if (!T_SANITIZED) LE_F64((double)least * 1e-6, 50); /* loaded machines included */
    drop(&b);
}

TEST_MAIN()
