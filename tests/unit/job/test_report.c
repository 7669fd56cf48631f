/* test_report.c - the page of a report: what may never get into it, and what must.
 *
 * What the page looks like and does is tested in a browser: tests/python/long_report_browser.py.
 * seconds: 4 */
#include "testing/io/files.h"
#include "testing/job/sample.h"

#include "base/clock.h"
#include "job/report/report.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct bench {
    fth_mem *mem;
    fth_view *view;
    char *text; /* of the last page */
    size_t bytes;
} bench;

static bench start(void)
{
    char *real = realpath(t_temp_dir(), NULL);
    bench b = {.mem = t_mem(1 << 25)};
    OK(fth__view_create(&b.view, b.mem, real, NULL));
    free(real);
    return b;
}

static void drop(bench *b)
{
    free(b->text);
    fth_view_destroy(b->view);
    fth_err err = {0};
    OKE(fth_mem_destroy(b->mem, &err), &err);
}

static const char *print(bench *b, const fth_report_options *opt)
{
    free(b->text);
    FILE *f = open_memstream(&b->text, &b->bytes);
    fth_err err = {0};
    OKE(fth_report_print(b->view, opt, f, &err), &err);
    fclose(f);
    return b->text;
}

/* The JSON of the element with an id. */
static json_t *block(const bench *b, const char *id)
{
    char mark[64];
    snprintf(mark, sizeof mark, "id=\"%s\">", id);
    const char *at = strstr(b->text, mark);
    if (!at) FAIL("no element %s", id);
    at += strlen(mark);
    const char *end = strstr(at, "</script>");
    json_error_t err;
    json_t *json = json_loadb(at, (size_t)(end - at), JSON_ALLOW_NUL, &err);
    if (!json) FAIL("%s: %s at byte %d", id, err.text, err.position);
    return json;
}

static int64_t count(const char *text, const char *part)
{
    int64_t n = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) n++;
    return n;
}

static void add_file(bench *b, fth_file_kind kind, const char *path, const char *title)
{
    const fth_task_file f = {.kind = kind, .path = path, .title = title};
    OK(fth__view_add_file(b->view, b->view->n_tasks - 1, &f, NULL));
}

/* ---- texts ---- */

static const char evil[] = "</script><script>alert(1)</script><img src=x onerror=\"alert('2')\">\n"
                           "\r\t\x01\x7f & \\ \" ' <!-- ]]> \xff\xc0\x80 \xe2\x80\xa8 肝臓";

TEST(no_text_of_a_view_becomes_markup)
{
    bench b = start();
    b.view->root = b.view->host = b.view->command = b.view->version = b.view->note = evil;
    fth_task *t = t_view_task(b.view, evil, evil, FTH_STATE_FAILED);
    t->id = t->instrument = t->model = t->doing = t->output_dir = t->config_path = evil;
    t->reason = t->error = t->command = t->device = t->what = t->figure = t->bound_by = evil;
    t->attempt = evil;
    const char *log = t_temp_path("evil.log");
    t_file_write(log, evil, strlen(evil));
    t->log_path = log;
    add_file(&b, FTH_FILE_FIGURE, evil, evil);
    add_file(&b, FTH_FILE_FIGURE, "/x/\"><script>alert(3)</script>.png", evil);
    const fth_change change = {.note = evil};
    OK(fth__view_add_change(b.view, &change, NULL));
    const char *page = print(&b, NULL);
    EQ_I64(count(page, "<script>"), 1); /* its own */
    EQ_I64(count(page, "<script"), 5);  /* and four of data */
    EQ_I64(count(page, "</script"), 5);
    EQ_I64(count(page, "<img"), 1);
    HAS_NOT(page, "<!--");
    HAS_NOT(page, "onerror=\"");
    HAS(page, "<title>script&gt;&lt;img src=x onerror=&quot;alert(&#39;2&#39;)&quot;&gt;");
    json_t *data = block(&b, "data"), *extra = block(&b, "page"), *tails = block(&b, "tails");
    const char *name = json_string_value(
        json_object_get(json_array_get(json_object_get(data, "tasks"), 0), "job"));
    HAS(name, "</script><script>alert(1)</script><img src=x onerror=\"alert('2')\">\n\r\t\x01\x7f");
    HAS(name, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xe2\x80\xa8 肝臓"); /* what is no UTF-8 */
    HAS(json_string_value(json_object_get(tails, "0")), "alert(1)");
    json_t *links = json_object_get(extra, "links");
    EQ_STR(json_string_value(json_array_get(links, 0)), ""); /* no path at all */
    HAS(json_string_value(json_array_get(links, 1)), "%22%3E%3Cscript%3Ealert%283%29%3C/script%3E");
    json_decref(data);
    json_decref(extra);
    json_decref(tails);
    drop(&b);
}

TEST(the_policy_names_what_is_inside)
{
    bench b = start();
    const char *page = print(&b, NULL);
    HAS(page, "default-src 'none'; script-src 'sha256-");
    HAS_NOT(page, "unsafe-inline");
    HAS_NOT(page, "connect-src");
    HAS_NOT(page, "@SCRIPT@");
    EQ_I64(count(page, " onclick="), 0);
    EQ_I64(count(page, " style="), 0);
    EQ_I64(count(page, "http://"), count(page, "http://www.w3.org/2000/svg")); /* a name */
    EQ_I64(count(page, "https://"), 0);
    HAS(print(&b, &(fth_report_options){.live = true}), "connect-src 'self'");
    drop(&b);
}

TEST(json_is_the_same_in_every_locale)
{
    bench b = start();
    fth_task *t = t_view_task(b.view, "j", "train", FTH_STATE_RUNNING);
    t->value = 0.5, t->seconds = 1.25, t->started = 1768435200.125, t->config_hash = UINT64_MAX;
    t->planned_seconds = (double)NAN;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) printf("no German locale here: only C is tested\n");
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    OK(fth_view_print_json(b.view, f, NULL));
    fclose(f);
    setlocale(LC_NUMERIC, "C");
    HAS(text, "\"value\":0.5");
    HAS(text, "\"seconds\":1.250");
    HAS(text, "\"started\":1768435200.125");
    HAS(text, "\"config_hash\":\"ffffffffffffffff\"");
    HAS(text, "\"planned_seconds\":null");
    HAS(text, "\"state\":\"running\"");
    json_t *json = json_loads(text, 0, NULL);
    IS_TRUE(json != NULL);
    json_decref(json);
    free(text);
    drop(&b);
}

/* ---- links ---- */

TEST(links_lead_from_the_page_to_the_files)
{
    static const char *const cases[][3] = {
        {"/a/b", "/a/b/c.png", "c.png"},
        {"/a/b", "/a/b", ""},
        {"/a/b", "/a/c/d.png", "../c/d.png"},
        {"/a/b", "/a/bc/d.png", "../bc/d.png"},
        {"/", "/x.png", "x.png"},
        {"/a/b/c", "/x.png", "../../../x.png"},
        {"/a", "/a/b c#?%.png", "b%20c%23%3F%25.png"},
        {"/a", "/a/javascript:alert(1)", "javascript%3Aalert%281%29"},
        {"/a", "/a/\xe8\x82\x9d.png", "%E8%82%9D.png"},
    };
    char link[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        IS_TRUE(fth__link_between(cases[i][0], cases[i][1], link, sizeof link));
        EQ_STR(link, cases[i][2]);
    }
    IS_TRUE(!fth__link_between("/a", "/a/a long name", link, 8));
}

TEST(a_page_elsewhere_has_other_links)
{
    bench b = start();
    char figure[4096], other[4096];
    t_view_task(b.view, "j", "figures", FTH_STATE_COMPLETED);
    snprintf(figure, sizeof figure, "%s/out/f 1.png", b.view->root);
    add_file(&b, FTH_FILE_FIGURE, figure, "f");
    add_file(&b, FTH_FILE_INPUT, "/data/counts.h5ad", "i");
    HAS(print(&b, NULL), "\"links\":[\"out/f%201.png\",\"\"]");
    snprintf(other, sizeof other, "%s/pages", b.view->root);
    mkdir(other, 0755);
    snprintf(other, sizeof other, "%s/pages/../pages/r.html", b.view->root);
    HAS(print(&b, &(fth_report_options){.path = other}), "\"links\":[\"../out/f%201.png\",\"\"]");
    HAS(print(&b, &(fth_report_options){.live = true}),
        "\"links\":[\"\",\"\"]"); /* asks for them */
    drop(&b);
}

/* ---- figures ---- */

static void sample(bench *b, int64_t jobs, int figures)
{
    t_sample_make(
        b->view, &(t_sample){.root = b->view->root, .jobs = jobs, .figures = figures, .side = 200});
}

/* How many figures of each job have a thumbnail: the least and the most. */
static void spread(const bench *b, int64_t *least, int64_t *most, uint64_t *bytes)
{
    int64_t of[64] = {0}, has[64] = {0};
    *bytes = 0;
    for (int64_t i = 0; i < b->view->n_files; i++)
        if (b->view->file[i].kind == FTH_FILE_FIGURE) has[b->view->file[i].task / 3] = 1;
    for (const char *at = b->text; (at = strstr(at, "class=\"thumbs\">"));) {
        at += 15;
        json_t *list = json_loadb(at, (size_t)(strstr(at, "</script>") - at), 0, NULL);
        IS_TRUE(list != NULL);
        for (size_t i = 0; i < json_array_size(list); i++) {
            json_t *row = json_array_get(list, i);
            const int64_t file = json_integer_value(json_array_get(row, 0));
            of[b->view->file[file].task / 3]++;
            *bytes += json_string_length(json_array_get(row, 3));
            HAS(json_string_value(json_array_get(row, 3)), "iVBORw0KGgo"); /* a PNG */
        }
        json_decref(list);
    }
    *least = INT64_MAX, *most = 0;
    for (int i = 0; i < 64; i++)
        if (has[i]) {
            if (of[i] < *least) *least = of[i];
            if (of[i] > *most) *most = of[i];
        }
}

TEST(thumbnails_keep_to_their_limit_and_are_shared_fairly)
{
    bench b = start();
    sample(&b, 12, 4);
    int64_t least, most;
    uint64_t bytes;
    print(&b, NULL);
    spread(&b, &least, &most, &bytes);
    EQ_I64(least, 4);
    EQ_I64(most, 4);
    const uint64_t all = bytes;
    print(&b, &(fth_report_options){.inline_bytes = all / 2}); /* smaller ones */
    spread(&b, &least, &most, &bytes);
    IS_TRUE(bytes <= all / 2);
    IS_TRUE(least >= 1 && most - least <= 1);
    print(&b, &(fth_report_options){.inline_bytes = 16000}); /* not enough for all */
    spread(&b, &least, &most, &bytes);
    IS_TRUE(bytes <= 16000);
    IS_TRUE(least >= 1 && most < 4 && most - least <= 1);
    print(&b, &(fth_report_options){.inline_bytes = 1});
    EQ_I64(count(b.text, "class=\"thumbs\">"), 0);
    drop(&b);
}

TEST(embed_holds_every_byte_of_the_figures)
{
    bench b = start();
    sample(&b, 3, 2);
    char svg[4096];
    snprintf(svg, sizeof svg, "%s/a.svg", b.view->root);
    t_file_write(svg, "<svg xmlns='http://www.w3.org/2000/svg'/>", 42);
    add_file(&b, FTH_FILE_FIGURE, svg, "drawing");
    const char *page = print(&b, &(fth_report_options){.embed = true});
    EQ_I64(count(page, ">data:image/png;base64,"), 6);
    HAS(page,
        "data:image/svg+xml;base64,PHN2ZyB4bWxucz0naHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmcnLz4A<");
    EQ_I64(count(print(&b, NULL), ">data:image/png;base64,"), 0);
    drop(&b);
}

TEST(base64_of_any_length)
{
    static const char *const wanted[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                         "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t n = 0; n < 7; n++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *f = open_memstream(&text, &bytes);
        fth__base64_put((const uint8_t *)"foobar", n, f);
        fclose(f);
        EQ_STR(text, wanted[n]);
        free(text);
    }
}

TEST(what_is_missing_or_broken_is_no_failure)
{
    bench b = start();
    char path[4096];
    fth_task *t = t_view_task(b.view, "j", "figures", FTH_STATE_FAILED);
    t->log_path = "/no/such/log";
    add_file(&b, FTH_FILE_FIGURE, "/no/such/figure.png", "gone");
    snprintf(path, sizeof path, "%s/broken.png", b.view->root);
    t_file_write(path, "\x89PNG but not really", 19);
    add_file(&b, FTH_FILE_FIGURE, path, "broken");
    add_file(&b, FTH_FILE_FIGURE, b.view->root, "a folder");
    b.view->file[b.view->n_files - 1].task = 99; /* of no task */
    for (int embed = 0; embed < 2; embed++) {
        print(&b, &(fth_report_options){.embed = embed});
        json_t *missing = block(&b, "missing");
        EQ_I64((int64_t)json_array_size(missing), 1);
        EQ_I64(json_integer_value(json_array_get(missing, 0)), 0);
        json_decref(missing);
    }
    drop(&b);
}

/* ---- logs ---- */

TEST(the_end_of_a_log_is_read_from_its_end)
{
    bench b = start();
    char text[4096];
    const char *path = t_temp_path("a.log");
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 1000; i++) fprintf(f, "line %d\n", i);
    fclose(f);
    size_t n = fth__log_tail(b.mem, path, 0, 0, 3, text, sizeof text);
    text[n] = '\0';
    EQ_STR(text, "line 997\nline 998\nline 999\n");
    n = fth__log_tail(b.mem, path, 0, 14, 3, text, sizeof text); /* a section */
    text[n] = '\0';
    EQ_STR(text, "line 0\nline 1\n");
    n = fth__log_tail(b.mem, path, 7, 21, 9, text, sizeof text);
    text[n] = '\0';
    EQ_STR(text, "line 1\nline 2\n");
    n = fth__log_tail(b.mem, path, 0, 0, 100, text, 20); /* whole lines only */
    text[n] = '\0';
    EQ_STR(text, "line 998\nline 999\n");
    t_file_write(path, "0123456789", 10);
    n = fth__log_tail(b.mem, path, 0, 0, 100, text, 4); /* one long line */
    text[n] = '\0';
    EQ_STR(text, "6789");
    n = fth__log_tail(b.mem, path, 500, 900, 100, text, 100); /* shorter than the ledger says */
    EQ_U64(n, 10);
    EQ_U64(fth__log_tail(b.mem, "", 0, 0, 9, text, 100), 0);
    EQ_U64(fth__log_tail(b.mem, t_temp_dir(), 0, 0, 9, text, 100), 0);
    t_file_write(path, "", 0);
    EQ_U64(fth__log_tail(b.mem, path, 0, 0, 9, text, 100), 0);
    drop(&b);
}

TEST(a_log_of_a_gigabyte_takes_no_time)
{
    bench b = start();
    const char *path = t_temp_path("big.log");
    t_file_write(path, "", 0);
    if (truncate(path, 1 << 30) != 0) SKIP("no sparse files here");
    FILE *f = fopen(path, "a");
    fputs("\nthe end\n", f);
    fclose(f);
    char text[4096];
    const double before = fth__clock_seconds();
    const size_t n = fth__log_tail(b.mem, path, 0, 0, 1, text, sizeof text - 1);
    LE_F64(fth__clock_seconds() - before, 0.5);
    text[n] = '\0';
    EQ_STR(text, "the end\n");
    remove(path);
    drop(&b);
}

/* ---- files ---- */

TEST(a_report_is_written_whole)
{
    bench b = start();
    sample(&b, 6, 1);
    const char *path = t_temp_path("report.html");
    fth_err err = {0};
    OKE(fth_report_save(b.view, &(fth_report_options){.path = path}, &err), &err);
    size_t bytes = 0;
    unsigned char *data = t_file_read(path, &bytes);
    data[bytes] = '\0';
    HAS((char *)data, "<!doctype html>");
    HAS((char *)data + bytes - 10, "</html>");
    free(data);
    IS(fth_report_save(b.view, &(fth_report_options){.path = "/no/such/folder/r.html"}, &err),
       FTH_E_FILE_WRITE);
    IS(fth_report_save(b.view, NULL, &err), FTH_E_USAGE);
    err = (fth_err){0};
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        IS(fth_report_print(b.view, NULL, full, &err), FTH_E_FILE_WRITE);
        HAS(err.text, "could not be written");
        fclose(full);
    }
    drop(&b);
}

TEST(an_empty_view_has_a_page)
{
    bench b = start();
    const char *page = print(&b, NULL);
    HAS(page, "\"tasks\": []");
    HAS(page, "0 stages");
    drop(&b);
}

TEST_MAIN()
