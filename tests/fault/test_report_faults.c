/* test_report_faults.c - a report and a table without memory, and a disk that is full.
 *
 * After each failure: a status that says so, the old page byte for byte, nothing held.
 * seconds: 6 */
#include "testing/io/files.h"
#include "testing/job/sample.h"

#include "mem/inject.h"

static fth_view *start(fth_mem *mem)
{
    fth_view *view = NULL;
    char *real = realpath(t_temp_dir(), NULL);
    OK(fth__view_create(&view, mem, real, NULL));
    t_sample_make(view, &(t_sample){.root = view->root, .jobs = 7, .figures = 2, .side = 120});
    free(real);
    return view;
}

static const char old[] = "the old page";

static void old_page_is_there(const char *path)
{
    size_t bytes = 0;
    unsigned char *now = t_file_read(path, &bytes);
    EQ_U64(bytes, sizeof old);
    SAME_BYTES(now, old, bytes);
    free(now);
}

static uint64_t meta(const fth_mem *mem)
{
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    return stats.meta_bytes;
}

/* A log or a figure that there is no memory for may be left out; then the page is whole. */
static void fail_each(bool writes, fth_status wanted, int64_t at_least)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = start(mem);
    const char *path = t_temp_path("report.html");
    const fth_report_options opt = {.path = path, .embed = true};
    fth__mem_inject(mem, 0, 0);
    OK(fth_report_save(view, &opt, NULL));
    const int64_t all = writes ? fth__mem_write_count(mem) : fth__mem_alloc_count(mem);
    const int64_t files = t_file_count();
    const uint64_t held = meta(mem);
    int64_t failed = 0;
    for (int64_t n = 1; n <= all; n++) {
        fth_err err = {0};
        t_file_write(path, old, sizeof old);
        fth__mem_inject(mem, writes ? 0 : n, writes ? n : 0);
        const fth_status s = fth_report_save(view, &opt, &err);
        EQ_I64(err.status, s);
        if (s != FTH_OK) {
            IS(s, wanted);
            old_page_is_there(path);
            failed++;
        }
        EQ_I64(t_file_count(), files);
        EQ_U64(meta(mem), held);
    }
    fth__mem_inject(mem, 0, 0);
    printf("%lld of %lld end it\n", (long long)failed, (long long)all);
    IS_TRUE(failed >= at_least);
    if (writes) EQ_I64(failed, all);
    fth_view_destroy(view);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(every_request_for_memory_may_fail)
{
    fail_each(false, FTH_E_NOMEM, 20);
}

TEST(every_write_may_fail)
{
    fail_each(true, FTH_E_FILE_WRITE, 3); /* data, sync, rename */
}

TEST(a_table_without_memory_shows_its_counts)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = start(mem);
    char text[8192];
    fth__mem_inject(mem, 1, 0);
    fth_table_format(view, &(fth_table_options){.width = 100, .height = 20}, text, sizeof text);
    HAS(text, "failed");
    HAS(text, "completed");
    IS_TRUE(strchr(text, '\n')[1] == '\0');
    fth__mem_inject(mem, 0, 0);
    fth_view_destroy(view);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_folder_that_cannot_be_written_is_named)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_view *view = start(mem);
    fth_err err = {0};
    IS(fth_report_save(view, &(fth_report_options){.path = "/proc/report.html"}, &err),
       FTH_E_FILE_WRITE);
    HAS(err.text, "/proc/report.html");
    fth_view_destroy(view);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
