/* test_watch.c - kernels and copies one by one in a timeline: clocks, names, what is lost, and a
 * profiler that says no. With a device made of the host. seconds: 4 */
#include "testing/engine/host_device.h"
#include "testing/test.h"

#include "run/watch.h"

#include <fathom/fathom.h>
#include <jansson.h>

enum { ROWS = 4000, COLUMNS = 16 };

typedef struct scene {
    fth_mem *mem;
    fth_trace *trace;
    fth_context *ctx;
    fth_graph *g;
    int64_t sum;
    int64_t begin, end; /* of the run, by the clock of the timeline */
    char log[1024];
} scene;

static void keep_log(void *user, fth_log_level level, const char *line)
{
    scene *s = user;
    if (level == FTH_LOG_WARN) snprintf(s->log, sizeof s->log, "%s", line);
}

static fth_status open_scene(scene *s, bool trace_kernels, fth_err *err)
{
    fth_options opt;
    memset(s, 0, sizeof *s);
    OKE(fth_mem_create(&s->mem, NULL, err), err);
    OKE(fth_trace_create(&s->trace, s->mem, 1 << 20, err), err);
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.trace = s->trace;
    opt.trace_kernels = trace_kernels;
    opt.log = (fth_log){.write = keep_log, .user = s, .level = FTH_LOG_WARN};
    return fth_context_create(&s->ctx, &opt, err);
}

static fth_status run_scene(scene *s, fth_err *err)
{
    s->g = fth_graph_create(s->ctx);
    fth_axis(s->g, "row", ROWS);
    fth_axis(s->g, "column", COLUMNS);
    const fth_val sorted = fth_sort(fth_index(s->g, "row"), "row", true);
    s->begin = fth_trace_now(s->trace);
    FTH_TRY(fth_fetch_i64(fth_sum(sorted, "row"), &s->sum, err));
    s->end = fth_trace_now(s->trace);
    return FTH_OK;
}

static json_t *close_scene(scene *s)
{
    fth_graph_destroy(s->g);
    OK(fth_context_destroy(s->ctx, NULL));
    char *text = malloc((1 << 20) + 1);
    IS_TRUE(fth_trace_format(s->trace, text, (1 << 20) + 1) <= 1 << 20);
    json_t *root = json_loads(text, 0, NULL);
    IS_TRUE(root != NULL);
    free(text);
    fth_trace_destroy(s->trace);
    OK(fth_mem_destroy(s->mem, NULL));
    return root;
}

static double number(const json_t *e, const char *key)
{
    return json_number_value(json_object_get(e, key));
}

static bool has(const json_t *e, const char *key, const char *value)
{
    const char *is = json_string_value(json_object_get(e, key));
    return is && strcmp(is, value) == 0;
}

static const json_t *event(const json_t *root, size_t i)
{
    return json_array_get(json_object_get(root, "traceEvents"), i);
}

static int64_t count(const json_t *root, const char *key, const char *value)
{
    int64_t n = 0;
    for (size_t i = 0; event(root, i); i++) n += has(event(root, i), key, value);
    return n;
}

static int64_t tracks(const json_t *root, const char *name)
{
    int64_t n = 0;
    for (size_t i = 0; event(root, i); i++)
        n += has(event(root, i), "name", "thread_name") &&
             has(json_object_get(event(root, i), "args"), "name", name);
    return n;
}

/* ---- clocks and names ---- */

TEST(a_line_through_two_pairs)
{
    const fth__watch_pair first = {1000, 700000}, last = {1001000, 1700500};
    EQ_I64(fth__watch_time(first, last, 700000), 1000);
    EQ_I64(fth__watch_time(first, last, 1700500), 1001000);
    EQ_I64(fth__watch_time(first, last, 1200250), 501000); /* half way, though one goes fast */
    EQ_I64(fth__watch_time(first, last, 200000), -498750); /* and before the first */
    EQ_I64(fth__watch_time(first, first, 700100), 1100);   /* one pair alone */
    const fth__watch_pair near = {1200, 700100};           /* 200 ns here, 100 there: no line */
    EQ_I64(fth__watch_time(first, near, 700600), 1700);
    const fth__watch_pair back = {2000, 600000}; /* a clock that was set back */
    EQ_I64(fth__watch_time(first, back, 600010), 2010);
    /* a day later, on a clock that counts from 1970 */
    const int64_t epoch = INT64_C(1800000000000000000), day = INT64_C(86400000000000);
    const fth__watch_pair from = {0, epoch}, to = {day, epoch + day};
    EQ_I64(fth__watch_time(from, to, epoch + day / 3), day / 3);
}

static void name_is(const char *symbol, const char *want)
{
    char name[48];
    fth__watch_name(symbol, name, sizeof name);
    EQ_STR(name, want);
}

TEST(names_of_functions)
{
    name_is("fth_kernel", "fth_kernel");
    name_is("_Z5countIfEvPT_", "count");
    name_is("_ZL5twicePKfPfl", "twice");
    name_is("_ZN39_GLOBAL__N__1234_10_reduce_cu_5678_901213interpret_mapE4both", "interpret_map");
    name_is("_ZN7cutlass6KernelI3abcEEvNT_6ParamsE", "cutlass::Kernel");
    name_is("_ZN3one3twoE", "one::two");
    /* what is no such name stays, whatever it is */
    name_is("_Z", "_Z");
    name_is("_Z99999999999count", "_Z99999999999count");
    name_is("_Z9cut", "_Z9cut");
    name_is("", "");
    name_is(NULL, "");
    char few[8];
    fth__watch_name("_ZN3one3twoE", few, sizeof few);
    EQ_STR(few, "one::tw");
}

/* ---- events ---- */

TEST(each_kernel_is_a_span_of_its_stream)
{
    scene s;
    fth_err err = {0};
    OKE(open_scene(&s, true, &err), &err);
    OKE(run_scene(&s, &err), &err);
    EQ_I64(s.sum, (int64_t)ROWS * (ROWS - 1) / 2);
    const int64_t kernels = t_host_device_seen().kernels;
    json_t *root = close_scene(&s);
    EQ_STR(s.log, "");
    EQ_I64(count(root, "cat", "kernel"), kernels);
    EQ_I64(tracks(root, "host:0 stream 0"), 1);
    EQ_I64(tracks(root, "host:0"), 1); /* the steps are there as ever */
    IS_TRUE(count(root, "cat", "copy") > 0);
    for (size_t i = 0; event(root, i); i++) {
        const json_t *e = event(root, i), *args = json_object_get(e, "args");
        if (!has(e, "cat", "kernel")) continue;
        /* in the run, on the clock of the host; one millisecond for a machine that is busy */
        IS_TRUE(1e3 * number(e, "ts") >= (double)s.begin - 1e6);
        IS_TRUE(1e3 * (number(e, "ts") + number(e, "dur")) <= (double)s.end + 1e6);
        EQ_F64(number(args, "registers"), 40);
        EQ_F64(number(args, "shared bytes"), 1024);
        EQ_F64(json_number_value(json_array_get(json_object_get(args, "grid"), 1)), 5);
        EQ_F64(json_number_value(json_array_get(json_object_get(args, "block"), 0)), 256);
        EQ_F64(number(args, "stream"), 0);
    }
    json_decref(root);
}

TEST(not_asked_for_is_not_there)
{
    scene s;
    fth_err err = {0};
    OKE(open_scene(&s, false, &err), &err);
    OKE(run_scene(&s, &err), &err);
    json_t *root = close_scene(&s);
    EQ_I64(count(root, "cat", "kernel"), 0);
    json_decref(root);
}

TEST(what_found_no_room_is_told)
{
    scene s;
    fth_err err = {0};
    t_host_device_watch(1, NULL);
    OKE(open_scene(&s, true, &err), &err);
    OKE(run_scene(&s, &err), &err);
    const t_host_seen seen = t_host_device_seen();
    json_t *root = close_scene(&s);
    t_host_device_watch(0, NULL);
    IS_TRUE(seen.kernels > 1);
    IS_TRUE(count(root, "cat", "kernel") + count(root, "cat", "copy") + count(root, "cat", "fill") <
            seen.kernels + seen.copies);
    HAS(s.log, "kernels and copies are not shown");
    HAS(s.log, "no room");
    bool told = false;
    for (size_t i = 0; event(root, i); i++) {
        const char *name = json_string_value(json_object_get(event(root, i), "name"));
        told = told || (name && strstr(name, "kernels and copies are not shown"));
    }
    IS_TRUE(told);
    json_decref(root);
}

TEST(a_profiler_that_says_no_stops_nothing)
{
    scene s;
    fth_err err = {0};
    t_host_device_watch(0, "profiling is for others");
    OKE(open_scene(&s, true, &err), &err);
    t_host_device_watch(0, NULL);
    OKE(run_scene(&s, &err), &err);
    EQ_I64(s.sum, (int64_t)ROWS * (ROWS - 1) / 2);
    json_t *root = close_scene(&s);
    HAS(s.log, "profiling is for others");
    HAS(s.log, "to do: ask somebody else");
    EQ_I64(count(root, "cat", "kernel"), 0);
    EQ_I64(count(root, "name", "kernels are not shown one by one: see the log"), 1);
    json_decref(root);
}

TEST_MAIN()
