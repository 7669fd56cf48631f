/* test_job_log.c - sections of logs: limits, the end that is always kept, full disks, quoting.
 * seconds: 2 */
#include "job/run/log.h"
#include "mem/inject.h"
#include "testing/io/files.h"

#include <unistd.h>

static char *read_log(const char *path, size_t *n)
{
    char *text = (char *)t_file_read(path, n);
    text[*n] = '\0';
    return text;
}

static fth__log *open_log(fth_mem *mem, const char *path, uint64_t limit)
{
    fth__log *log;
    fth_err err = {0};
    OKE(fth__log_open(&log, mem, path, limit, &err), &err);
    return log;
}

TEST(sections_are_appended_and_know_their_bytes)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("logs/svgp.log");
    uint64_t from[2], to[2];
    for (int i = 0; i < 2; i++) {
        fth__log *log = open_log(mem, path, 0);
        fth__log_print(log, "==== head %d\n", i);
        fth__log_add(log, "text\n", 5);
        fth__log_end_text(log);
        fth__log_print(log, "==== foot\n");
        fth__log_flush(log);
        from[i] = log->from;
        to[i] = log->to;
        fth__log_close(log);
    }
    size_t n;
    char *text = read_log(path, &n);
    EQ_STR(text, "==== head 0\ntext\n==== foot\n==== head 1\ntext\n==== foot\n");
    EQ_U64(from[0], 0);
    EQ_U64(to[0], n / 2);
    EQ_U64(from[1], n / 2);
    EQ_U64(to[1], n);
    free(text);
    OK(fth_mem_destroy(mem, NULL));
}

/* Numbered words of 8 bytes, so that any cut shows. */
static void chatter(fth__log *log, int64_t words, size_t piece)
{
    char text[8 * 4096];
    size_t used = 0;
    for (int64_t i = 0; i < words; i++) {
        snprintf(text + used, 9, "%07d\n", (int)i);
        used += 8;
        if (used + 8 > piece || i == words - 1) {
            fth__log_add(log, text, used);
            used = 0;
        }
    }
}

TEST(a_long_section_keeps_its_begin_and_its_end)
{
    const uint64_t limit = 100 << 10;
    static const int64_t words[] = {4608, 4609, 12800, 12801, 20000, 200000};
    static const size_t pieces[] = {8, 1000, 8 * 4000};
    for (size_t k = 0; k < 6 * 3; k++) {
        const int64_t n_words = words[k / 3];
        fth_mem *mem = t_mem(1 << 20);
        const char *path = t_temp_path("long.log");
        unlink(path);
        fth__log *log = open_log(mem, path, limit);
        chatter(log, n_words, pieces[k % 3]);
        fth__log_end_text(log);
        fth__log_close(log);
        size_t n;
        char *text = read_log(path, &n);
        const uint64_t all = (uint64_t)n_words * 8;
        if (all <= limit) {
            EQ_U64(n, all);
        } else {
            char line[80];
            snprintf(line, sizeof line, "\n==== %llu bytes are left out here",
                     (unsigned long long)(all - limit));
            HAS(text, line);
            IS_TRUE(n > limit && n < limit + 200);
        }
        char last[16];
        for (int64_t i = 0; i < FTH__LOG_TAIL / 8 && i < n_words; i++) {
            snprintf(last, sizeof last, "%07d\n", (int)(n_words - 1 - i));
            SAME_BYTES(text + n - 8 * (size_t)(i + 1), last, 8);
        }
        free(text);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(a_full_disk_loses_text_and_says_so)
{
    int64_t writes = 0;
    for (int64_t fail = 1; fail <= 12; fail++) {
        fth_mem *mem = t_mem(1 << 20);
        const char *path = t_temp_path("full.log");
        unlink(path);
        fth__mem_inject(mem, 0, fail);
        fth__log *log = NULL;
        const fth_status s = fth__log_open(&log, mem, path, 100 << 10, NULL);
        ONE_OF(s, FTH_OK, FTH_E_FILE_WRITE);
        if (s == FTH_OK) {
            chatter(log, 20000, 1000);
            fth__log_end_text(log);
            writes = fth__mem_write_count(mem);
            size_t n;
            char *text = read_log(path, &n);
            if (log->failed && fail < 3) HAS(text, "text is missing here: No space left");
            if (fail < 3) HAS(text, "0019999\n"); /* the end is there again */
            IS_TRUE((fail <= writes) == (log->failed != 0));
            free(text);
        }
        fth__log_close(log);
        OK(fth_mem_destroy(mem, NULL));
    }
    IS_TRUE(writes > 2 && writes < 12);
}

TEST(every_request_for_memory_may_fail)
{
    for (int64_t fail = 1; fail <= 2; fail++) {
        fth_mem *mem = t_mem(1 << 20);
        const char *path = t_temp_path("memory.log");
        unlink(path);
        fth__mem_inject(mem, fail, 0);
        fth__log *log = NULL;
        if (fth__log_open(&log, mem, path, 100 << 10, NULL) == FTH_OK) {
            chatter(log, 20000, 1000);
            fth__log_end_text(log);
            size_t n;
            char *text = read_log(path, &n);
            HAS(text, "bytes are left out here"); /* the ring could not be had */
            HAS_NOT(text, "0019999\n");
            free(text);
        }
        fth__log_close(log);
        OK(fth_mem_destroy(mem, NULL));
    }
}

static void check_error(const char *text, const char *wanted)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__log *log = open_log(mem, t_temp_path("error.log"), 0);
    for (const char *s = text; *s; s++) fth__log_add(log, s, 1);
    char got[2000];
    fth__log_error(log, got, sizeof got);
    EQ_STR(got, wanted);
    fth__log_close(log);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_error_is_found_at_the_end)
{
    check_error("", "");
    check_error("reading\nerror FTH-A\n  hint x\nlater\nerror FTH-B\n  hint y\n",
                "error FTH-B\n  hint y");
    check_error("a\nb\n\n", "a\nb");
    check_error("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n",
                "3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14");
    static char long_text[20000];
    memset(long_text, '.', sizeof long_text - 40);
    strcpy(long_text + sizeof long_text - 40, "\nerror FTH-C\n");
    check_error(long_text, "error FTH-C");
}

TEST(a_log_that_cannot_be_made_names_its_path)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__log *log;
    fth_err err = {0};
    IS(fth__log_open(&log, mem, "/proc/nowhere/logs/a.log", 0, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "/proc/nowhere/logs");
    fth_err_clear(&err);
    IS(fth__log_open(&log, mem, t_temp_dir(), 0, &err), FTH_E_FILE_WRITE);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(words_are_quoted_for_the_shell)
{
    static const char *const words[] = {"plain", "a b",   "",      "it's",
                                        "$HOME", "--set", "k=v,w", "\n"};
    char text[200];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        fth__text_add(&t, "%s", i ? " " : "");
        fth__shell_quote(&t, words[i]);
    }
    EQ_STR(text, "plain 'a b' '' 'it'\\''s' '$HOME' --set k=v,w '\n'");
}

TEST_MAIN()
