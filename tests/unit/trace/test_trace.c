/* test_trace.c - timelines that any JSON parser reads, whatever went into them. seconds: 2 */
#include "testing/test.h"

#include "mem/inject.h"

#include <fathom/trace.h>

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

static const uint64_t least = 128 << 10;

static fth_mem *make_mem(void)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 20;
    fth_mem *mem;
    OK(fth_mem_create(&mem, &opt, NULL));
    return mem;
}

static fth_trace *make(fth_mem *mem, uint64_t max_bytes)
{
    fth_trace *t;
    OK(fth_trace_create(&t, mem, max_bytes, NULL));
    return t;
}

/* The JSON of a trace, parsed; the text is within its limit and consistent. */
static json_t *parse(fth_trace *t, uint64_t max_bytes)
{
    char *text = malloc(max_bytes + 1);
    const size_t n = fth_trace_format(t, text, max_bytes + 1);
    IS_TRUE(n <= max_bytes);
    EQ_U64(strlen(text), n);
    json_error_t e;
    json_t *root = json_loads(text, 0, &e);
    if (!root) FAIL("line %d column %d: %s", e.line, e.column, e.text);
    free(text);
    return root;
}

/* All but the label of the process, which is the second; see processes_have_names_and_labels. */
static size_t n_events(const json_t *root)
{
    return json_array_size(json_object_get(root, "traceEvents")) - 1;
}
static const json_t *event(const json_t *root, size_t i)
{
    return json_array_get(json_object_get(root, "traceEvents"), i > 0 ? i + 1 : 0);
}
static const char *text_of(const json_t *e, const char *key)
{
    return json_string_value(json_object_get(e, key));
}
static double number_of(const json_t *e, const char *key)
{
    return json_number_value(json_object_get(e, key));
}
static const json_t *args_of(const json_t *e)
{
    return json_object_get(e, "args");
}

TEST(an_empty_trace_is_a_file)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, 0);
    json_t *root = parse(t, 64 << 20);
    EQ_U64(n_events(root), 1); /* the name of the process */
    EQ_F64(number_of(json_object_get(root, "otherData"), "dropped"), 0);
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_span_carries_its_numbers)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    EQ_I64(fth_trace_track(t, "worker 0"), 0);
    EQ_I64(fth_trace_track(t, "worker 1"), 1);
    EQ_I64(fth_trace_track(t, "worker 0"), 0);
    fth_trace_add_span(t, &(fth_trace_span){.name = "dot W Lu",
                                            .category = "step",
                                            .track = 1,
                                            .start_ns = 1234567,
                                            .end_ns = 3234567,
                                            .chunk = 2,
                                            .n_chunks = 5,
                                            .bytes = 8000000,
                                            .flops = 6e6,
                                            .peak_bytes_per_s = 16e9,
                                            .site = {"model.c", "f", 42}});
    json_t *root = parse(t, least);
    EQ_U64(n_events(root), 4);
    EQ_STR(text_of(event(root, 1), "name"), "thread_name");
    EQ_STR(text_of(args_of(event(root, 2)), "name"), "worker 1");
    EQ_F64(number_of(event(root, 2), "tid"), 2);
    EQ_U64(fth_trace_format(t, NULL, 0), fth_trace_format(t, (char[64]){0}, 64));
    const json_t *e = event(root, 3), *a = args_of(e);
    EQ_STR(text_of(e, "name"), "dot W Lu");
    EQ_STR(text_of(e, "cat"), "step");
    EQ_STR(text_of(e, "ph"), "X");
    EQ_F64(number_of(e, "tid"), 2);
    NEAR(number_of(e, "ts"), 1234.567, 1e-9);
    EQ_F64(number_of(e, "dur"), 2000);
    EQ_F64(number_of(a, "chunk"), 2);
    EQ_F64(number_of(a, "chunks"), 5);
    EQ_F64(number_of(a, "bytes"), 8000000);
    EQ_F64(number_of(a, "GB/s"), 4);
    EQ_F64(number_of(a, "% of bandwidth"), 25);
    EQ_F64(number_of(a, "flops"), 6e6);
    EQ_F64(number_of(a, "GFLOP/s"), 3);
    EQ_STR(text_of(a, "at"), "model.c:42");
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

/* The program and each device are processes: their rows lie together in a viewer. */
TEST(processes_have_names_and_labels)
{
    static const char *const tracks[] = {"steps",  "cuda:0",  "cuda:0 stream 7", "cuda:12 stream 2",
                                         "cuda:x", "cuda:1b", "cudart"};
    const int64_t own = getpid(), process[] = {own, 0, 0, 12, own, own, own};
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    for (int i = 0; i < 7; i++)
        fth_trace_add_span(t, &(fth_trace_span){.name = "s",
                                                .track = fth_trace_track(t, tracks[i]),
                                                .start_ns = i,
                                                .end_ns = i + 1});
    fth_trace_add_counter(t, "depth", 3, 2);
    json_t *root = parse(t, least);
    const json_t *all = json_object_get(root, "traceEvents");
    static const struct {
        const char *what, *key, *text;
        int device;
    } names[] = {
        {"process_name", "name", "fathom", -1},  {"process_labels", "labels", "CPU", -1},
        {"process_name", "name", "cuda:0", 0},   {"process_labels", "labels", "GPU 0", 0},
        {"process_name", "name", "cuda:12", 12}, {"process_labels", "labels", "GPU 12", 12}};
    for (size_t i = 0; i < 6; i++) {
        const json_t *e = json_array_get(all, i);
        EQ_STR(text_of(e, "name"), names[i].what);
        EQ_STR(text_of(args_of(e), names[i].key), names[i].text);
        EQ_F64(number_of(e, "pid"), names[i].device < 0 ? (double)own : names[i].device);
    }
    for (size_t i = 0; i < 7; i++) { /* rows, and what is in them */
        EQ_F64(number_of(json_array_get(all, 6 + i), "pid"), (double)process[i]);
        EQ_F64(number_of(json_array_get(all, 13 + i), "pid"), (double)process[i]);
        EQ_F64(number_of(json_array_get(all, 13 + i), "tid"), (double)i + 1);
    }
    EQ_F64(number_of(json_array_get(all, 20), "pid"), (double)own);
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(fields_left_zero_are_not_shown)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    fth_trace_add_span(t, &(fth_trace_span){.start_ns = -1500, .end_ns = -2000});
    json_t *root = parse(t, least);
    const json_t *e = event(root, 1);
    EQ_STR(text_of(e, "name"), "");
    EQ_STR(text_of(e, "cat"), "fathom");
    NEAR(number_of(e, "ts"), -1.5, 1e-12);
    EQ_F64(number_of(e, "dur"), 0); /* time does not run backwards */
    EQ_U64(json_object_size(args_of(e)), 0);
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(counters_memory_and_marks)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    fth_trace_add_memory(t, "cpu", 5000, UINT64_C(1) << 40, 77);
    fth_trace_add_counter(t, "rows/s", 6000, 0.5);
    fth_trace_add_counter(t, "bad", 6000, (double)NAN);
    fth_trace_add_counter(t, "bad", 6000, (double)-INFINITY);
    fth_trace_add_instant(t, 3, "checkpoint", 7000);
    json_t *root = parse(t, least);
    EQ_U64(n_events(root), 6);
    EQ_STR(text_of(event(root, 1), "ph"), "C");
    EQ_F64(number_of(args_of(event(root, 1)), "planned"), 1099511627776.0);
    EQ_F64(number_of(args_of(event(root, 1)), "actual"), 77);
    EQ_F64(number_of(args_of(event(root, 2)), "value"), 0.5);
    EQ_F64(number_of(args_of(event(root, 3)), "value"), 0);
    EQ_F64(number_of(args_of(event(root, 4)), "value"), 0);
    EQ_STR(text_of(event(root, 5), "ph"), "i");
    EQ_F64(number_of(event(root, 5), "tid"), 4);
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(odd_names_stay_readable)
{
    const struct {
        const char *in, *out;
    } rows[] = {
        {"quote \" back \\ slash /", "quote \" back \\ slash /"},
        {"line\nbreak\ttab\x01", "line\nbreak\ttab\x01"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"bad \xff\xc3", "bad \xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* too long a form */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
        {"\xf4\x90\x80\x80",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* beyond the last */
        {"0123456789012345678901234567890123456789012345678901234567890",
         "01234567890123456789012345678901234567890123456"},
    };
    enum { N = sizeof rows / sizeof rows[0] };
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    for (int i = 0; i < N; i++) {
        fth_trace_track(t, rows[i].in);
        fth_trace_add_span(t, &(fth_trace_span){.name = rows[i].in,
                                                .category = rows[i].in,
                                                .site = {rows[i].in, "f", 1}});
    }
    json_t *root = parse(t, least);
    for (size_t i = 0; i < N; i++) {
        EQ_STR(text_of(args_of(event(root, 1 + i)), "name"), rows[i].out);
        EQ_STR(text_of(event(root, 1 + N + i), "name"), rows[i].out);
    }
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

/* Random bytes as names, the longest numbers: always JSON, never above the limit. */
TEST(anything_gives_json_within_the_limit)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    t_random r = t_random_make(1);
    for (int i = 0; i < FTH_TRACE_TRACKS + 50; i++) {
        char name[64] = {0};
        for (int k = 0; k < 63; k++) name[k] = (char)t_random_i64(&r, 1, 255);
        const int track = fth_trace_track(t, name);
        EQ_I64(track, i < FTH_TRACE_TRACKS ? i : FTH_TRACE_TRACKS - 1);
    }
    for (int i = 0; i < 3000; i++) {
        char name[64] = {0};
        for (int k = 0; k < 63; k++) name[k] = (char)t_random_i64(&r, 1, i % 2 ? 255 : 8);
        fth_trace_add_span(t, &(fth_trace_span){.name = name,
                                                .category = name,
                                                .track = INT32_MIN + 1,
                                                .start_ns = INT64_MIN + 1,
                                                .end_ns = -5,
                                                .chunk = INT64_MAX,
                                                .n_chunks = INT64_MIN,
                                                .bytes = UINT64_MAX,
                                                .flops = -1.0 / 3.0 * -1e300,
                                                .peak_bytes_per_s = 1e-300,
                                                .site = {name, "f", INT32_MIN}});
    }
    json_t *root = parse(t, least);
    IS_TRUE(n_events(root) > FTH_TRACE_TRACKS + 3);
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_ring_drops_the_oldest_and_says_so)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    fth_trace_stats s;
    fth_trace_get_stats(t, &s);
    const int n = (int)s.capacity + 100;
    for (int i = 0; i < n; i++) fth_trace_add_instant(t, 0, "x", 1000 * (int64_t)i);
    fth_trace_get_stats(t, &s);
    EQ_U64(s.recorded, (uint64_t)n);
    EQ_U64(s.dropped, 100);
    json_t *root = parse(t, least);
    EQ_U64(n_events(root), s.capacity + 2);
    EQ_STR(text_of(event(root, 1), "name"), "100 older events were dropped");
    EQ_F64(number_of(event(root, 1), "ts"), 100);
    EQ_F64(number_of(event(root, 2), "ts"), 100);
    EQ_F64(number_of(event(root, n_events(root) - 1), "ts"), n - 1);
    EQ_F64(number_of(json_object_get(root, "otherData"), "dropped"), 100);
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(long_events_are_dropped_by_size_too)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    fth_trace_stats s;
    fth_trace_get_stats(t, &s);
    const fth_trace_span span = {.name = "a name as long as a name can be in this place..",
                                 .category = "category",
                                 .chunk = 1000000,
                                 .n_chunks = 1000000,
                                 .end_ns = 123456789012345,
                                 .bytes = 1234567890123456,
                                 .flops = 1.2345678901234567e15,
                                 .site = {"instruments/spatial/ops/some_long_name.c", "f", 1000}};
    for (uint64_t i = 0; i < s.capacity; i++) fth_trace_add_span(t, &span);
    json_t *root = parse(t, least);
    const double dropped = number_of(json_object_get(root, "otherData"), "dropped");
    IS_TRUE(dropped > 0);
    EQ_F64((double)n_events(root) - 2, (double)s.capacity - dropped);
    IS_TRUE(fth_trace_format(t, NULL, 0) > least - 2000); /* the room is used */
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_part_has_what_touches_it)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    const char *path = t_temp_path("part.json");
    const struct {
        const char *name;
        int64_t from, to;
        bool inside;
    } spans[] = {{"before", 0, 99, false}, {"into", 50, 100, true},    {"within", 120, 130, true},
                 {"over", 10, 900, true},  {"out of", 200, 250, true}, {"after", 201, 300, false}};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
        fth_trace_add_span(t, &(fth_trace_span){.name = spans[i].name,
                                                .start_ns = spans[i].from,
                                                .end_ns = spans[i].to});
    fth_trace_add_instant(t, 0, "early", 99);
    fth_trace_add_instant(t, 0, "late", 200);
    OK(fth_trace_write_part(t, path, 100, 200, NULL));
    json_error_t e;
    json_t *root = json_load_file(path, 0, &e);
    IS_TRUE(root != NULL);
    char names[400] = "";
    for (size_t i = 0; i < n_events(root); i++) {
        strcat(names, text_of(event(root, i), "name"));
        strcat(names, ";");
    }
    HAS(names, ";into;within;over;out of;late;");
    IS_TRUE(!strstr(names, "before") && !strstr(names, "after") && !strstr(names, "early"));
    json_decref(root);
    remove(path);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(without_a_trace_nothing_happens)
{
    fth_trace_add_span(NULL, &(fth_trace_span){.name = "x"});
    fth_trace_add_memory(NULL, "x", 0, 0, 0);
    fth_trace_add_counter(NULL, "x", 0, 0);
    fth_trace_add_instant(NULL, 0, "x", 0);
    EQ_I64(fth_trace_track(NULL, "x"), 0);
    EQ_I64(fth_trace_now(NULL), 0);
    EQ_U64(fth_trace_format(NULL, NULL, 0), 0);
    fth_trace_stats s;
    fth_trace_get_stats(NULL, &s);
    EQ_U64(s.capacity, 0);
    fth_trace_destroy(NULL);
    IS(fth_trace_write(NULL, "x", NULL), FTH_E_USAGE);
    fth_trace *t = NULL;
    IS(fth_trace_create(&t, NULL, 0, NULL), FTH_E_USAGE);
    fth_mem *mem = make_mem();
    fth_err err = {0};
    IS(fth_trace_create(&t, mem, 100, &err), FTH_E_USAGE);
    HAS(err.text, "131072");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(recording_allocates_nothing)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    fth__mem_inject(mem, 0, 0);
    for (int i = 0; i < 5000; i++) {
        fth_trace_add_span(t, &(fth_trace_span){.name = "x", .track = fth_trace_track(t, "y")});
        fth_trace_add_memory(t, "cpu", fth_trace_now(t), 1, 1);
    }
    OK(fth_trace_write(t, t_temp_path("none.json"), NULL));
    EQ_I64(fth__mem_alloc_count(mem), 0);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(creation_survives_every_allocation_failure)
{
    fth_mem *mem = make_mem();
    fth_status s = FTH_E_NOMEM;
    int64_t n = 1;
    for (; s != FTH_OK; n++) {
        fth__mem_inject(mem, n, 0);
        fth_trace *t;
        s = fth_trace_create(&t, mem, least, NULL);
        ONE_OF(s, FTH_OK, FTH_E_NOMEM);
        IS_TRUE((t != NULL) == (s == FTH_OK));
        fth_trace_destroy(t);
    }
    IS_TRUE(n > 3);
    OK(fth_mem_destroy(mem, NULL));
}

static int n_files(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    IS_TRUE(d != NULL);
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    IS_TRUE(f != NULL);
    static char text[1 << 20];
    *n = fread(text, 1, sizeof text - 1, f);
    text[*n] = '\0';
    fclose(f);
    return text;
}

/* Fail the first, the second... write: the old file stays, no other file is left behind. */
TEST(every_failing_write_leaves_the_old_file)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, 4 * least);
    for (int i = 0; i < 2000; i++) fth_trace_add_instant(t, 0, "something to write", i);
    const char *path = t_temp_path("kept.json");
    const int before = n_files(t_temp_dir());
    FILE *old = fopen(path, "w");
    fputs("old", old);
    fclose(old);
    size_t n;
    fth_status s = FTH_E_FILE_WRITE;
    int64_t k = 1;
    for (; s != FTH_OK; k++) {
        fth__mem_inject(mem, 0, k);
        fth_err err = {0};
        s = fth_trace_write(t, path, &err);
        EQ_I64(n_files(t_temp_dir()), before + 1);
        if (s == FTH_OK) break;
        IS(s, FTH_E_FILE_WRITE);
        HAS(err.text, "kept.json");
        HAS(err.text, "No space left");
        EQ_STR(read_all(path, &n), "old");
    }
    IS_TRUE(k > 5); /* several buffers, the synchronisation and the renaming */
    static char want[1 << 20];
    const size_t length = fth_trace_format(t, want, sizeof want);
    const char *got = read_all(path, &n);
    EQ_U64(n, length);
    SAME_BYTES(got, want, n);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

/* A packed file as zlib reads it. */
static size_t unpack(const char *path, char *text, size_t bytes)
{
    gzFile f = gzopen(path, "rb");
    IS_TRUE(f != NULL && !gzdirect(f));
    const int n = gzread(f, text, (unsigned)bytes);
    IS_TRUE(n >= 0 && gzclose(f) == Z_OK);
    return (size_t)n;
}

/* The same when it is packed; and every request for memory may fail too. */
TEST(a_packed_trace_is_whole_or_not_there)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, 4 * least);
    t_random r = t_random_make(3);
    char name[48];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "%016llx", (unsigned long long)t_random_u64(&r));
        fth_trace_add_instant(t, 0, name, i);
    }
    const char *path = t_temp_path("packed.json.gz");
    const int before = n_files(t_temp_dir());
    fth_status s = FTH_E_NOMEM;
    int64_t allocs = 0, writes = 0;
    while (s != FTH_OK) {
        fth__mem_inject(mem, ++allocs, 0);
        s = fth_trace_write(t, path, NULL);
        if (s == FTH_OK) break;
        IS(s, FTH_E_NOMEM);
        EQ_I64(n_files(t_temp_dir()), before);
    }
    EQ_I64(allocs, 2); /* zlib gets all of its memory in one block */
    remove(path);
    for (s = FTH_E_FILE_WRITE; s != FTH_OK;) {
        fth__mem_inject(mem, 0, ++writes);
        s = fth_trace_write(t, path, NULL);
        if (s == FTH_OK) break;
        IS(s, FTH_E_FILE_WRITE);
        EQ_I64(n_files(t_temp_dir()), before);
    }
    IS_TRUE(writes > 3);
    static char want[1 << 20], got[1 << 20];
    const size_t length = fth_trace_format(t, want, sizeof want);
    EQ_U64(unpack(path, got, sizeof got), length);
    SAME_BYTES(got, want, length);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

/* One buffer, the synchronisation, the renaming: each can fail. */
TEST(a_small_trace_is_three_writes)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    const char *path = t_temp_path("small.json");
    for (int64_t k = 1; k <= 3; k++) {
        fth__mem_inject(mem, 0, k);
        IS(fth_trace_write(t, path, NULL), FTH_E_FILE_WRITE);
        IS_TRUE(access(path, F_OK) != 0);
    }
    fth__mem_inject(mem, 0, 4);
    OK(fth_trace_write(t, path, NULL));
    IS_TRUE(access(path, F_OK) == 0);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

static int files_are_small(fth_trace *t, const char *path)
{
    const struct rlimit most = {40000, 40000};
    if (setrlimit(RLIMIT_FSIZE, &most) != 0 || signal(SIGXFSZ, SIG_IGN) == SIG_ERR) return 1;
    fth_err err = {0};
    if (fth_trace_write(t, path, &err) != FTH_E_FILE_WRITE) return 2;
    if (!strstr(err.text, "File too large")) return 3;
    return access(path, F_OK) == 0 ? 4 : 0;
}

/* The system's own no, in the middle of the file. */
TEST(a_full_disk_leaves_nothing_behind)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    for (int i = 0; i < 500; i++)
        fth_trace_add_instant(t, 0, "a name of some length to fill it", i);
    const char *path = t_temp_path("full.json");
    const int before = n_files(t_temp_dir());
    fflush(NULL);
    const pid_t pid = fork();
    IS_TRUE(pid >= 0);
    if (pid == 0) _exit(files_are_small(t, path));
    int status = 0;
    IS_TRUE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    EQ_I64(WEXITSTATUS(status), 0);
    EQ_I64(n_files(t_temp_dir()), before);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(places_that_cannot_be_written)
{
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    fth_err err = {0};
    IS(fth_trace_write(t, t_temp_path("no/such/folder.json"), &err), FTH_E_FILE_OPEN);
    HAS(err.text, "no/such/folder.json");
    IS(fth_trace_write(t, "", NULL), FTH_E_USAGE);
    static char path[6000];
    memset(path, 'p', sizeof path - 1);
    IS(fth_trace_write(t, path, NULL), FTH_E_FILE_OPEN);
    const int before = n_files(t_temp_dir());
    fth_err_clear(&err);
    IS(fth_trace_write(t, t_temp_dir(), &err), FTH_E_FILE_WRITE); /* a folder in the way */
    EQ_I64(n_files(t_temp_dir()), before);
    const char *pipe = t_temp_path("pipe"); /* as /dev/null would be */
    struct stat st;
    IS_TRUE(mkfifo(pipe, 0600) == 0);
    fth_err_clear(&err);
    IS(fth_trace_write(t, pipe, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "not a regular file");
    IS_TRUE(stat(pipe, &st) == 0 && S_ISFIFO(st.st_mode));
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

static void *record(void *user)
{
    fth_trace *t = user;
    for (int i = 0; i < 2000; i++) {
        const int64_t now = fth_trace_now(t);
        fth_trace_add_span(t, &(fth_trace_span){.name = "same",
                                                .category = "same",
                                                .chunk = 7,
                                                .n_chunks = 7,
                                                .start_ns = now,
                                                .end_ns = now + 7});
    }
    return NULL;
}

TEST(threads_record_whole_events)
{
    enum { N = 4 };
    fth_mem *mem = make_mem();
    fth_trace *t = make(mem, least);
    pthread_t thread[N];
    for (int i = 0; i < N; i++) EQ_I64(pthread_create(&thread[i], NULL, record, t), 0);
    for (int i = 0; i < 5; i++) json_decref(parse(t, least)); /* reading meanwhile is allowed */
    for (int i = 0; i < N; i++) pthread_join(thread[i], NULL);
    fth_trace_stats s;
    fth_trace_get_stats(t, &s);
    EQ_U64(s.recorded, N * 2000);
    json_t *root = parse(t, least);
    for (size_t i = 2; i < n_events(root); i++) {
        EQ_STR(text_of(event(root, i), "name"), "same");
        NEAR(number_of(event(root, i), "dur"), 0.007, 1e-12);
        EQ_F64(number_of(args_of(event(root, i)), "chunk"), 7);
    }
    json_decref(root);
    fth_trace_destroy(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
