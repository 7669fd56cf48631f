/* test_focus_diagnose.c - scale bars, turns of threads, who has a folder, and what a run tells.
 *
 * seconds: 4 */
#include "instruments/focus/output/scalebar.h"
#include "instruments/focus/process/command.h"
#include "instruments/focus/run/outlook.h"
#include "instruments/focus/toy/toy.h"
#include "instruments/focus/watch/watch.h"
#include "testing/io/files.h"

#include <fathom/nd2.h>

#include "io/nd2.h"
#include "job/ledger/ledger.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- scale bars ---- */

enum { ROWS = 200, COLUMNS = 240 };

static int64_t longest_white_run(const uint8_t *image, int64_t *row)
{
    int64_t most = 0;
    for (int64_t y = 0; y < ROWS; y++)
        for (int64_t x = 0, run = 0; x < COLUMNS; x++) {
            run = image[y * COLUMNS + x] == 255 ? run + 1 : 0;
            if (run > most) {
                most = run;
                *row = y;
            }
        }
    return most;
}

TEST(a_bar_has_its_length_and_its_height)
{
    static uint8_t image[ROWS * COLUMNS];
    const fo_scalebar bar = {100, 1.25}; /* 80 px */
    int64_t row = 0, high = 0;
    memset(image, 77, sizeof image);
    fo_scalebar_draw(&bar, FTH_U8, ROWS, COLUMNS, image);
    EQ_I64(longest_white_run(image, &row), 80);
    int64_t x = 0;
    while (image[row * COLUMNS + x] != 255) x++;
    EQ_I64(image[row * COLUMNS + x - 1], 0); /* the outline is black and one pixel wide */
    EQ_I64(image[row * COLUMNS + x - 2], 77);
    EQ_I64(image[(row - 1) * COLUMNS + x], 0);
    while (image[(row + high) * COLUMNS + x] == 255) high++;
    EQ_I64(high, 3);             /* 1.5 % of 200 */
    EQ_I64(x + 80 + 5, COLUMNS); /* in the lower right */
    for (int64_t i = 0; i < ROWS / 2 * COLUMNS; i++) EQ_I64(image[i], 77);
    int64_t label = 0;
    for (int64_t i = 0; i < row * COLUMNS; i++) label += image[i] == 255;
    IS_TRUE(label > 60); /* "100 um" in a font of 5x7 */
}

TEST(bars_are_the_same_in_every_dtype)
{
    static uint8_t a[ROWS * COLUMNS];
    static uint16_t b[ROWS * COLUMNS];
    static float c[ROWS * COLUMNS];
    const fo_scalebar bar = {50, 2.5}, none = {0, 2.5};
    for (int i = 0; i < ROWS * COLUMNS; i++) a[i] = 9, b[i] = 9, c[i] = 9;
    fo_scalebar_draw(&none, FTH_U8, ROWS, COLUMNS, a);
    for (int i = 0; i < ROWS * COLUMNS; i++) EQ_I64(a[i], 9);
    fo_scalebar_draw(&bar, FTH_U8, ROWS, COLUMNS, a);
    fo_scalebar_draw(&bar, FTH_U16, ROWS, COLUMNS, b);
    fo_scalebar_draw(&bar, FTH_F32, ROWS, COLUMNS, c);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        EQ_I64(b[i], a[i] == 255 ? 65535 : a[i]);
        IS_TRUE(c[i] == (float)b[i]);
    }
}

TEST(bars_that_cannot_be_drawn_are_refused)
{
    fth_err err = {0};
    IS(fo_scalebar_check(&(fo_scalebar){100, 0}, ROWS, COLUMNS, &err), FTH_E_COMMAND);
    HAS(err.text, "size of a pixel is not known");
    HAS(err.hint, "--um-per-px");
    fth_err_clear(&err);
    IS(fo_scalebar_check(&(fo_scalebar){1000, 1.25}, ROWS, COLUMNS, &err), FTH_E_COMMAND);
    HAS(err.text, "found one of 800 px");
    HAS(err.hint, "300 um wide");
    OK(fo_scalebar_check(&(fo_scalebar){0, 0}, ROWS, COLUMNS, NULL));
    IS(fo_scalebar_check(&(fo_scalebar){1, 1}, 8, 240, NULL), FTH_E_COMMAND); /* no room above */
}

/* ---- turns ---- */

typedef struct crowd {
    fo_watch *watch;
    pthread_mutex_t lock;
    int inside, most, whole;
} crowd;

static void *work(void *user)
{
    crowd *c = user;
    for (int i = 0; i < 20; i++) {
        const fo_turn turn = fo_watch_begin(c->watch, FO_ENCODE, i);
        pthread_mutex_lock(&c->lock);
        if (++c->inside > c->most) c->most = c->inside;
        pthread_mutex_unlock(&c->lock);
        usleep(200);
        pthread_mutex_lock(&c->lock);
        c->inside--;
        pthread_mutex_unlock(&c->lock);
        fo_watch_end(c->watch, &turn, 10);
        fo_watch_arrive(c->watch, i, 1);
    }
    return NULL;
}

static void on_whole(void *user, int64_t stack)
{
    crowd *c = user;
    (void)stack;
    c->whole++;
}

TEST(no_more_threads_encode_than_workers_says)
{
    enum { THREADS = 6, ALLOWED = 2 };
    crowd c = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread[THREADS];
    fth_mem *mem = t_mem(1 << 22);
    const fo_watch_options opt = {
        .n_stacks = 20, .most = {0, ALLOWED, 0}, .whole = on_whole, .user = &c};
    OK(fo_watch_create(&c.watch, mem, &opt, NULL));
    for (int i = 0; i < 20; i++) fo_watch_expect(c.watch, i, THREADS);
    for (int i = 0; i < THREADS; i++) EQ_I64(pthread_create(&thread[i], NULL, work, &c), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    EQ_I64(c.most, ALLOWED);
    EQ_I64(c.whole, 20);
    const fo_stack_times t = fo_watch_times(c.watch, 3);
    EQ_U64(t.phase[FO_ENCODE].bytes, 10 * THREADS);
    IS_TRUE(t.phase[FO_ENCODE].seconds >= THREADS * 0.0002 && t.phase[FO_READ].seconds == 0);
    fo_watch_destroy(c.watch);
    OK(fth_mem_destroy(mem, NULL));
    const fo_turn free_for_all = fo_watch_begin(NULL, FO_READ, 0);
    fo_watch_end(NULL, &free_for_all, 1);
}

/* ---- a plate ---- */

static char root[1000], logged[60000], said[60000];
static const char *words[40]; /* flag, value */

static const char *value_of(void *user, const char *flag)
{
    (void)user;
    for (int i = 0; words[i]; i += 2)
        if (strcmp(words[i], flag) == 0) return words[i + 1];
    return NULL;
}

static void take_line(void *user, fth_log_level level, const char *line)
{
    const size_t n = strlen(logged);
    (void)user, (void)level;
    snprintf(logged + n, sizeof logged - n, "%s\n", line);
}

static void make_plate(void)
{
    const fo_toy toy = {.dir = root,
                        .exp = "20250101_toy",
                        .wells = 3,
                        .times = 2,
                        .planes = 3,
                        .rows = 80,
                        .columns = 90,
                        .seed = 3};
    fth_mem *mem = t_mem(1 << 26);
    fth_err err = {0};
    char command[2100];
    snprintf(root, sizeof root, "%s/plate", t_temp_dir());
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", root, root);
    EQ_I64(system(command), 0);
    OKE(fo_toy_make_yx1(&toy, mem, &err), &err);
    OK(fth_mem_destroy(mem, NULL));
}

static fth_status call_verb(const fth_verb *verb, fth_log_level level, fth_err *err,
                            const char *flag, const char *value)
{
    fth_context *ctx = NULL;
    fth_options opt;
    char *text = NULL;
    size_t bytes = 0;
    const char *all[] = {"data-root",  root,  "exp", "20250101_toy",
                         "microscope", "YX1", flag,  value};
    memset(words, 0, sizeof words);
    memcpy(words, all, sizeof all);
    fth_options_default(&opt);
    opt.mem.budget_bytes = 1 << 27;
    opt.threads = 2;
    opt.log = (fth_log){.write = take_line, .level = level};
    logged[0] = '\0';
    OK(fth_context_create(&ctx, &opt, NULL));
    FILE *out = open_memstream(&text, &bytes);
    const fth_status s = verb->run(ctx, 0, NULL, value_of, NULL, out, err);
    fclose(out);
    snprintf(said, sizeof said, "%s", text);
    free(text);
    OK(fth_context_destroy(ctx, NULL));
    return s;
}

static fth_status run(fth_log_level level, fth_err *err, const char *flag, const char *value)
{
    return call_verb(&fo_verb_run, level, err, flag, value);
}

static const char *path_of(const char *name)
{
    static char path[2000];
    snprintf(path, sizeof path, "%s/built_image_data/%s", root, name);
    return path;
}
#define RUNS "focus_runs/20250101_toy/"
#define IMAGES "stitched_FF_images/20250101_toy/"

/* A strict parser, and what every timeline of the CPU says. */
static int64_t check_trace(const char *name)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_json *doc = NULL;
    fth_err err = {0};
    OKE(fth_json_load(&doc, mem, path_of(name), &err), &err);
    const fth_json_value *events = fth_json_get(fth_json_root(doc), "traceEvents");
    int64_t n = 0;
    bool noted = false, reads = false, labelled = false;
    double deepest = -1;
    for (const fth_json_value *e; (e = fth_json_at(events, n)); n++) {
        const char *label = fth_json_get_text(e, "name", "");
        noted |= strcmp(label, "no device activity: run on cpu") == 0;
        reads |= strncmp(label, "read ", 5) == 0;
        labelled |= strcmp(label, "process_labels") == 0;
        if (strncmp(label, "queue_depth ", 12) != 0) continue;
        const double depth = fth_json_get_real(fth_json_get(e, "args"), "value", -1);
        EQ_STR(fth_json_get_text(e, "ph", ""), "C");
        IS_TRUE(depth >= 0 && depth <= 64);
        deepest = depth > deepest ? depth : deepest;
    }
    IS_TRUE(noted && reads && labelled);
    IS_TRUE(deepest >= 1);
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
    return n;
}

TEST(who_debugs_gets_a_line_and_a_timeline_of_each_stack)
{
    fth_err err = {0};
    make_plate();
    OKE(run(FTH_LOG_DEBUG, &err, NULL, NULL), &err);
    HAS(logged, "stack A01 t0000: shape z=3,y=80,x=90 u16 device=cpu read=");
    HAS(logged, "ms(");
    HAS(logged, "h2d=- kernel=- d2h=- encode=");
    HAS(logged, " kept=3/3");
    int lines = 0;
    for (const char *at = logged; (at = strstr(at, "stack ")) && strstr(at, ": shape"); at++)
        lines += strncmp(at + 9, " t000", 5) == 0;
    EQ_I64(lines, 6);
    const int64_t all = check_trace(RUNS "trace_run.json");
    IS_TRUE(check_trace(RUNS "profiler_trace_stack_000.json") <= all);
    (void)check_trace(RUNS "profiler_trace_stack_002.json");
    IS_TRUE(!t_file_exists(path_of(RUNS "profiler_trace_stack_003.json")));
}

TEST(timelines_are_as_many_as_asked_for)
{
    make_plate();
    OK(run(FTH_LOG_INFO, NULL, "trace-stacks", "1"));
    (void)check_trace(RUNS "profiler_trace_stack_000.json");
    IS_TRUE(!t_file_exists(path_of(RUNS "profiler_trace_stack_001.json")));
    IS_TRUE(!strstr(logged, "stack A01"));
    make_plate();
    OK(run(FTH_LOG_INFO, NULL, NULL, NULL));
    IS_TRUE(!t_file_exists(path_of(RUNS "trace_run.json")));
}

TEST(a_plan_tells_memory_time_and_what_bounds)
{
    make_plate();
    OK(run(FTH_LOG_INFO, NULL, "plan", ""));
    HAS(said,
        "input   20250101_toy.nd2   t=2 p=3 z=3 c=1 y=80 x=90 u16   0.0002592 GB in 18 frames "
        "(0 missing)");
    HAS(said, "device  cpu (");
    HAS(said, "   method log-smooth k=3 sigma=2");
    HAS(said, "memory  host ");
    HAS(said, " of 128.00 MiB, device -");
    HAS(said, "time    storage 0.0002592 GB at ");
    HAS(said, " <- bound");
    IS_TRUE(!t_file_exists(path_of(RUNS "run.json")));
}

/* Where there is a card, pixels have to get there; the longest of all bounds. */
TEST(an_outlook_names_copies_where_there_is_a_card)
{
    fo_outlook o = {.bytes = 449500000000,
                    .read_rate = 1.9e9,
                    .storage_s = 236.6,
                    .kernel_s = 4,
                    .encode_s = 9,
                    .threads = 8,
                    .bound = "storage"};
    char text[300];
    fo_outlook_format(&o, text, sizeof text);
    EQ_STR(text, "storage 449.5 GB at 1.9 GB/s = 3.9 min <- bound; kernels 4 s; encoding 9 s on 8 "
                 "threads");
    o.copy_bytes = o.bytes;
    o.copy_s = 18;
    fo_outlook_format(&o, text, sizeof text);
    HAS(text, "<- bound; H2D 449.5 GB = 18 s; kernels 4 s;");
    o.bound = "copies";
    o.threads = 1;
    fo_outlook_format(&o, text, sizeof text);
    HAS(text, "3.9 min; H2D 449.5 GB = 18 s <- bound; kernels");
    HAS(text, " on 1 thread");
}

/* 449.5 GB of frames that are holes, and a table of 92 wells. */
static void make_large_plate(void)
{
    const fth_nd2_options o = {
        .size = {57, 92, 17, 1, 2189, 1152}, .dtype = FTH_U16, .period_ms = 1.9e6};
    char path[2000], table[8000] = "well,medium,genotype,chem_perturbation,start_age_hpf,"
                                   "embryos_per_well,temperature,pair,series_number_map\n";
    fth_mem *mem = t_mem(1 << 28);
    fth_err err = {0};
    make_plate();
    snprintf(path, sizeof path, "%s/raw_image_data/YX1/20250101_toy/20250101_toy.nd2", root);
    OKE(fth__nd2_write(mem, path, &o, NULL, NULL, 57 * 92 * 17 / 16, &err), &err);
    for (int i = 0; i < 92; i++) {
        const size_t n = strlen(table);
        snprintf(table + n, sizeof table - n, "%c%02d,E3,wt,none,20,1,28.5,1,%d\n", 'A' + i / 12,
                 i % 12 + 1, i + 1);
    }
    snprintf(path, sizeof path, "%s/metadata/well_metadata/20250101_toy_well_metadata.csv", root);
    t_file_write(path, table, strlen(table));
    OK(fth_mem_destroy(mem, NULL));
}

TEST_REPEAT(a_large_experiment_is_planned_within_a_second)
{
    double best = 1e9;
    make_large_plate();
    for (int i = 0; i < 3; i++) {
        fth_err err = {0};
        const clock_t from = clock(); /* of the process: others may keep the cores busy */
        OKE(call_verb(&fo_verb_plan, FTH_LOG_INFO, &err, NULL, NULL), &err);
        const double took = (double)(clock() - from) / CLOCKS_PER_SEC;
        best = took < best ? took : best;
    }
    HAS(said, "t=57 p=92 z=17 c=1 y=2189 x=1152 u16   449.6 GB in 89148 frames (0 missing)");
    HAS(said, "wells   92 mapped by series_number_map");
    HAS(said, "todo    5244 images, 0 done");
    if (!T_SANITIZED) LE_F64(best, 1.0);
}

/* Defect 9 of MorphSeq: with two channels it took the places of other positions. */
TEST(defect_09_places_of_a_file_with_channels_are_those_of_its_positions)
{
    const fth_images_position at[] = {{.name = "one", .x_um = 1000, .y_um = 2000},
                                      {.name = "two", .x_um = 1000, .y_um = 11000},
                                      {.name = "three", .x_um = 1000, .y_um = 20000}};
    static const char *const channels[] = {"BF", "GFP"};
    const fth_nd2_options o = {.size = {1, 3, 4, 2, 80, 90},
                               .dtype = FTH_U16,
                               .um_per_px = 1,
                               .channel = channels,
                               .position = at};
    static const char reference[] =
        "well,x_um,y_um\nA01,1000,2000\nB01,1000,11000\nC01,1000,20040\n";
    char path[2000], table[2000];
    fth_mem *mem = t_mem(1 << 26);
    fth_err err = {0};
    make_plate();
    snprintf(path, sizeof path, "%s/raw_image_data/YX1/20250101_toy/20250101_toy.nd2", root);
    OKE(fth_nd2_write(mem, path, &o, NULL, NULL, &err), &err);
    OK(fth_mem_destroy(mem, NULL));
    snprintf(table, sizeof table, "%s/wells.csv", root);
    t_file_write(table, reference, strlen(reference));
    OKE(call_verb(&fo_verb_plan, FTH_LOG_INFO, &err, "ref-xy", table), &err);
    HAS(said, "wells   3 mapped by xy (max 40 um), 0 rejected");
}

TEST(options_of_a_run_are_checked_before_work)
{
    fth_err err = {0};
    make_plate();
    IS(run(FTH_LOG_INFO, &err, "require-gpu", ""), FTH_E_DEVICE);
    HAS(err.text, "--require-gpu: no GPU is used: ");
    fth_err_clear(&err);
    IS(run(FTH_LOG_INFO, &err, "workers", "2,x"), FTH_E_COMMAND);
    HAS(err.text, "--workers: expected R,E with numbers from 1 to 1024, found '2,x'");
    IS(run(FTH_LOG_INFO, NULL, "workers", "0"), FTH_E_COMMAND);
    IS(run(FTH_LOG_INFO, NULL, "workers", "1,2,3"), FTH_E_COMMAND);
    IS(run(FTH_LOG_INFO, NULL, "scalebar", "9000"), FTH_E_COMMAND);
    IS_TRUE(!t_file_exists(path_of(RUNS "run.json")));
    if (!T_SANITIZED) OK(run(FTH_LOG_INFO, NULL, "strict", "")); /* memory was as planned */
}

static pid_t sleeper(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    return pid;
}

/* A lock of another process of this machine. */
static void put_lock(pid_t pid)
{
    fth__who who;
    OK(fth__who_am_i(&who, NULL));
    who.pid = pid;
    who.start = fth__process_start(pid);
    OK(fth__lock_take(path_of(IMAGES), &who, NULL));
}

TEST(two_processes_do_not_write_the_same_images)
{
    fth_err err = {0};
    make_plate();
    const pid_t other = sleeper();
    put_lock(other);
    IS(run(FTH_LOG_INFO, &err, NULL, NULL), FTH_E_LOCKED);
    char who[64];
    snprintf(who, sizeof who, "belongs to process %d on this machine", (int)other);
    HAS(err.text, who);
    HAS(err.hint, "wait until it ends");
    IS_TRUE(!t_file_exists(path_of(RUNS "run.json")));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0); /* his lock is stale from now on */
    OK(run(FTH_LOG_INFO, NULL, NULL, NULL));
    IS_TRUE(!t_file_exists(path_of(IMAGES ".fathom/lock")));
}

TEST(a_claim_is_ours_alone_and_may_be_made_twice)
{
    fth_mem *mem = t_mem(1 << 22);
    fth_claim *one = NULL, *two = NULL;
    fth__who who;
    char folder[1200];
    snprintf(folder, sizeof folder, "%s/claimed/deep", t_temp_dir());
    OK(fth_folder_claim(&one, mem, folder, NULL));
    IS_TRUE(fth__lock_read(folder, &who) && who.pid == getpid() && who.beats);
    OK(fth_folder_claim(&two, mem, folder, NULL));
    fth_folder_release(two);
    IS_TRUE(fth__lock_read(folder, &who)); /* the first is still there */
    fth_folder_release(one);
    IS_TRUE(!fth__lock_read(folder, &who));
    fth_folder_release(NULL);
    fth_err err = {0};
    IS(fth_folder_claim(&one, mem, "", &err), FTH_E_USAGE);
    IS_TRUE(one == NULL);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
