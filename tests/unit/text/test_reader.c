/* test_reader.c - text files: ends of lines, marks, zero bytes, bounds, fields, words, numbers.
 * seconds: 3 */
#include "testing/io/files.h"

#include "mem/inject.h"

#include <fathom/reader.h>

#include <locale.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *put(const void *bytes, size_t n)
{
    const char *path = t_temp_path("text");
    t_file_write(path, bytes, n);
    return path;
}
#define PUT(text) put(text, sizeof(text) - 1)

typedef struct bench {
    fth_mem *mem;
    fth_reader r;
    fth_err err;
} bench;

static bench start(const char *path, const fth_reader_options *options)
{
    bench b = {.mem = t_mem(1 << 20)};
    OKE(fth_reader_open(&b.r, b.mem, path, options, &b.err), &b.err);
    return b;
}

static void end(bench *b)
{
    fth_reader_close(&b->r);
    fth_reader_close(&b->r); /* twice is fine */
    OK(fth_mem_destroy(b->mem, NULL));
}

/* All lines, each in angle brackets. */
static const char *lines(const char *path, const fth_reader_options *options)
{
    static char all[2000];
    bench b = start(path, options);
    fth_text_line line;
    size_t n = 0;
    all[0] = '\0';
    for (int64_t i = 1;; i++) {
        OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
        EQ_I64(line.number, i);
        if (!line.text) break;
        EQ_U64(line.n, strlen(line.text));
        n += (size_t)snprintf(all + n, sizeof all - n, "<%s>%s", line.text, line.whole ? "" : "!");
    }
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err); /* the end stays the end */
    IS_TRUE(line.text == NULL);
    end(&b);
    return all;
}

TEST(lines_end_with_lf_or_cr_lf)
{
    EQ_STR(lines(PUT(""), NULL), "");
    EQ_STR(lines(PUT("\n"), NULL), "<>");
    EQ_STR(lines(PUT("a\nb\r\n\r\nc"), NULL), "<a><b><><c>");
    EQ_STR(lines(PUT("a\rb\r\r\nc\r"), NULL), "<a\rb\r><c>");
    EQ_STR(lines(PUT("a\n\n"), NULL), "<a><>");
}

TEST(a_mark_before_utf8_is_left_out_unless_it_is_kept)
{
    EQ_STR(lines(PUT("\xef\xbb\xbfx\n\xef\xbb\xbfy"), NULL), "<x><\xef\xbb\xbfy>");
    EQ_STR(lines(PUT("\xef\xbb\xbfx"), &(fth_reader_options){.keep_bom = true}), "<\xef\xbb\xbfx>");
    EQ_STR(lines(PUT("\xef\xbb\xbf"), NULL), "");
    EQ_STR(lines(PUT("\xef\xbb"), NULL), "<\xef\xbb>");
}

TEST(zero_bytes_are_refused_or_end_the_text_of_their_line)
{
    EQ_STR(lines(PUT("a\0b\nc\n\0"), &(fth_reader_options){.allow_nul = true}), "<a>!<c><>!");
    bench b = start(PUT("a\nbc\0d\n"), NULL);
    fth_text_line line;
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    IS(fth_reader_next(&b.r, &line, &b.err), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "text:2:3: expected text, found a zero byte");
    end(&b);
}

TEST(lines_and_files_have_bounds)
{
    char text[3000];
    memset(text, 'x', sizeof text);
    text[1000] = text[2001] = '\n'; /* 1000, 1000 and 998 */
    fth_reader_options o = {.room = 1001};
    bench b = start(put(text, sizeof text), &o);
    fth_text_line line;
    for (int i = 0; i < 3; i++) {
        OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
        EQ_U64(line.n, i < 2 ? 1000 : 998);
    }
    OK(fth_reader_rewind(&b.r, NULL));
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    EQ_I64(line.number, 1);
    end(&b);
    o.room = 999;
    b = start(put(text, sizeof text), &o);
    IS(fth_reader_next(&b.r, &line, &b.err), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "text:1: a line has more than 999 characters");
    end(&b);
    for (int how = 0; how < 3; how++) { /* lines, the whole, the whole behind a line */
        o = (fth_reader_options){.max_bytes = how < 2 ? 2999 : 2500};
        b = start(put(text, sizeof text), &o);
        char *rest = NULL;
        int64_t bytes = 0;
        fth_status s = how == 1 ? FTH_OK : fth_reader_next(&b.r, &line, &b.err);
        if (how > 0 && s == FTH_OK) s = fth_reader_rest(&b.r, "rest", &rest, &bytes, &b.err);
        IS(s, FTH_E_FILE_FORMAT);
        HAS(b.err.text, "text: expected at most 2");
        if (how == 1) HAS(b.err.text, "found 3000"); /* known before any of it is read */
        end(&b);
    }
    o.max_bytes = 3000;
    b = start(put(text, sizeof text), &o);
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    end(&b);
}

TEST(a_file_is_read_twice_as_if_once)
{
    fth_reader_options o = {.max_bytes = 13};
    bench b = start(PUT("\xef\xbb\xbfone # two"), &o);
    fth_text_field f;
    for (int i = 0; i < 2; i++) { /* the mark, the bound and the comment begin again */
        OKE(fth_reader_word(&b.r, " ", '#', &f, &b.err), &b.err);
        EQ_U64(f.n, 3);
        SAME_BYTES(f.text, "one", 3);
        OKE(fth_reader_word(&b.r, " ", '#', &f, &b.err), &b.err);
        EQ_U64(f.n, 0);
        OK(fth_reader_rewind(&b.r, NULL));
    }
    end(&b);
    /* the smallest buffer still holds a word */
    o = (fth_reader_options){.room = 4};
    b = start(PUT("a long word"), &o);
    OKE(fth_reader_word(&b.r, "", 0, &f, &b.err), &b.err);
    EQ_U64(f.n, 11);
    end(&b);
}

TEST(a_file_that_became_shorter_ends_there)
{
    char text[3000];
    memset(text, 'x', sizeof text);
    text[10] = '\n';
    const fth_reader_options o = {.room = 1000};
    const char *path = put(text, sizeof text);
    bench b = start(path, &o);
    fth_text_line line;
    char *rest = NULL;
    int64_t bytes = 0;
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    EQ_I64(truncate(path, 100), 0);
    OKE(fth_reader_rest(&b.r, "rest", &rest, &bytes, &b.err), &b.err);
    EQ_I64(bytes, 989);
    OK(fth_mem_release(b.mem, rest, NULL));
    end(&b);
}

TEST(numbers_at_the_edges_of_scanf)
{
    char text[1200];
    double v = 0;
    bool found, digits;
    static const char *const half[] = {"1e+ 7", "1E- 7", "0x1P 7", "0x1p+ 7"};
    for (size_t i = 0; i < sizeof half / sizeof *half; i++) { /* an exponent without digits */
        bench b = start(put(half[i], strlen(half[i])), NULL);
        for (int k = 0; k < 2; k++) {
            OKE(fth_reader_scan(&b.r, &v, &found, &digits, &b.err), &b.err);
            IS_TRUE(found);
            EQ_F64(v, k ? 7 : 1);
        }
        end(&b);
    }
    const fth_reader_options o = {.room = FTH_READER_NUMBER};
    memset(text, ' ', sizeof text); /* more blanks than the buffer holds */
    memcpy(text + 1000, "12345", 5);
    bench b = start(put(text, 1005), &o);
    OKE(fth_reader_scan(&b.r, &v, &found, &digits, &b.err), &b.err);
    EQ_F64(v, 12345);
    end(&b);
    memset(text, '0', sizeof text);
    for (int n = FTH_READER_NUMBER - 2; n < FTH_READER_NUMBER; n++) { /* the longest, one more */
        b = start(put(text, (size_t)n), NULL);
        IS(fth_reader_scan(&b.r, &v, &found, &digits, &b.err),
           n == FTH_READER_NUMBER - 2 ? FTH_OK : FTH_E_FILE_FORMAT);
        end(&b);
    }
}

TEST(a_bad_field_is_shown_plainly)
{
    bench b = start(PUT("\x1b[31mx 2"), NULL);
    fth_text_line line;
    fth_text_field f;
    double v;
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    IS_TRUE(fth_text_field_next(&line, " ", &f));
    IS(fth_reader_real(&b.r, &f, 0, 1, &v, &b.err), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "text:1:1: expected");
    IS_TRUE(strchr(b.err.text, 0x1b) == NULL);
    end(&b);
}

static const char *rest_of(const char *path, int64_t skip, int64_t *bytes)
{
    static char copy[200000];
    bench b = start(path, NULL);
    fth_text_line line;
    char *text = NULL;
    for (int64_t i = 0; i < skip; i++) OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    OKE(fth_reader_rest(&b.r, "rest", &text, bytes, &b.err), &b.err);
    memcpy(copy, text, (size_t)*bytes + 1);
    OK(fth_mem_release(b.mem, text, NULL));
    OKE(fth_reader_rest(&b.r, "rest", &text, &skip, &b.err), &b.err);
    EQ_I64(skip, 0);
    OK(fth_mem_release(b.mem, text, NULL));
    end(&b);
    return copy;
}

TEST(the_rest_is_one_text)
{
    int64_t n = 0;
    EQ_STR(rest_of(PUT("a\nb\nc"), 0, &n), "a\nb\nc");
    EQ_STR(rest_of(PUT("a\nb\nc"), 1, &n), "b\nc");
    EQ_STR(rest_of(PUT("\xef\xbb\xbfhello"), 0, &n), "hello");
    EQ_I64(n, 5);
    EQ_STR(rest_of(PUT(""), 0, &n), "");
    char *large = malloc(150000);
    memset(large, 'y', 150000);
    large[3] = '\n';
    const char *text = rest_of(put(large, 150000), 1, &n); /* more than the buffer */
    EQ_I64(n, 149996);
    IS_TRUE(memcmp(text, large + 4, (size_t)n) == 0);
    free(large);
}

/* A pipe has no size, and cannot be read twice. */
TEST(pipes_are_read)
{
    int fd[2];
    char path[40];
    IS_TRUE(pipe(fd) == 0);
    IS_TRUE(write(fd[1], "one\ntwo", 7) == 7);
    close(fd[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd[0]);
    bench b = start(path, NULL);
    fth_text_line line;
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    EQ_STR(line.text, "one");
    IS(fth_reader_rewind(&b.r, &b.err), FTH_E_FILE_READ);
    HAS(b.err.text, "is read twice, and cannot be");
    end(&b);
    close(fd[0]);
    IS_TRUE(pipe(fd) == 0);
    IS_TRUE(write(fd[1], "all of it", 9) == 9);
    close(fd[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd[0]);
    int64_t n = 0;
    EQ_STR(rest_of(path, 0, &n), "all of it");
    close(fd[0]);
}

TEST(what_cannot_be_read_is_named)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_reader r;
    fth_text_line line;
    fth_err err = {0};
    IS(fth_reader_open(&r, mem, t_temp_path("none"), NULL, &err), FTH_E_FILE_OPEN);
    HAS(err.text, "none cannot be opened: No such file");
    fth_reader_close(&r);
    fth_err_clear(&err);
    OK(fth_reader_open(&r, mem, t_temp_dir(), NULL, NULL));
    IS(fth_reader_next(&r, &line, &err), FTH_E_FILE_READ);
    HAS(err.text, "cannot be read: Is a directory");
    fth_reader_close(&r);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- fields ---- */

static const char *shown(const fth_text_field *f)
{
    static char text[200];
    snprintf(text, sizeof text, "%lld:%lld:%.*s", (long long)f->line, (long long)f->column,
             (int)f->n, f->text);
    return text;
}

TEST(fields_stand_between_separators)
{
    bench b = start(PUT("x\n  10,,20 \t-3;\n\n"), NULL);
    fth_text_line line;
    fth_text_field f;
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    IS_TRUE(fth_text_field_next(&line, " ", &f));
    EQ_STR(shown(&f), "1:1:x");
    IS_TRUE(!fth_text_field_next(&line, " ", &f) && !fth_text_field_next(&line, " ", &f));
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    static const char *const want[] = {"2:3:10", "2:7:20", "2:11:-3"};
    for (int i = 0; i < 3; i++) {
        IS_TRUE(fth_text_field_next(&line, " \t,;", &f));
        EQ_STR(shown(&f), want[i]);
    }
    IS_TRUE(!fth_text_field_next(&line, " \t,;", &f));
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    IS_TRUE(!fth_text_field_next(&line, " \t,;", &f));
    end(&b);
}

TEST(columns_may_be_empty_and_quoted)
{
    bench b = start(PUT("a,,\"b,\"\"c\"\"\",d\"e\"f,\n\n\"open,x\n"), NULL);
    static const char *const want[] = {"1:1:a", "1:3:", "1:4:b,\"c\"", "1:14:def", "1:20:"};
    fth_text_line line;
    fth_text_field f;
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    for (int i = 0; i < 5; i++) {
        IS_TRUE(fth_text_column_next(&line, ',', &f));
        EQ_STR(shown(&f), want[i]);
    }
    IS_TRUE(!fth_text_column_next(&line, ',', &f));
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    IS_TRUE(fth_text_column_next(&line, ',', &f) && f.n == 0);
    IS_TRUE(!fth_text_column_next(&line, ',', &f));
    OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
    IS_TRUE(fth_text_column_next(&line, ',', &f));
    EQ_STR(shown(&f), "3:1:open,x"); /* a quote that stays open takes the line */
    IS_TRUE(!fth_text_column_next(&line, ',', &f));
    end(&b);
}

static const char *words(const char *path, char comment)
{
    static char all[500];
    bench b = start(path, NULL);
    fth_text_field f;
    size_t n = 0;
    all[0] = '\0';
    for (;;) {
        OKE(fth_reader_word(&b.r, ", ;\t\r", comment, &f, &b.err), &b.err);
        if (!f.text) break;
        n += (size_t)snprintf(all + n, sizeof all - n, "%lld<%.*s>", (long long)f.line, (int)f.n,
                              f.text);
    }
    end(&b);
    return all;
}

TEST(words_cross_lines_and_skip_comments)
{
    EQ_STR(words(PUT("1, 2\n\n3;4 # 5\n6#7 8\n#9\n10"), '#'), "1<1>1<2>3<3>3<4>4<6>6<10>");
    EQ_STR(words(PUT("# only\r\n"), '#'), "");
    EQ_STR(words(PUT(""), '#'), "");
    EQ_STR(words(PUT("a #b\n"), 0), "1<a>1<#b>");
    char text[FTH_READER_NUMBER + 2];
    memset(text, '1', sizeof text);
    text[FTH_READER_NUMBER - 1] = ' ';
    bench b = start(put(text, FTH_READER_NUMBER), NULL);
    fth_text_field f;
    OKE(fth_reader_word(&b.r, " ", 0, &f, &b.err), &b.err);
    EQ_U64(f.n, FTH_READER_NUMBER - 1);
    end(&b);
    text[FTH_READER_NUMBER - 1] = '1';
    b = start(put(text, FTH_READER_NUMBER), NULL);
    IS(fth_reader_word(&b.r, " ", 0, &f, &b.err), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "text:1: a word has more than 511 characters");
    end(&b);
}

/* A comment, and the blanks between words, may be longer than the buffer. */
TEST(words_far_apart)
{
    char *text = malloc(200001);
    memset(text, ' ', 200000);
    text[200000] = '9';
    EQ_STR(words(put(text, 200001), '#'), "1<9>");
    text[5] = '#';
    text[199990] = '\n';
    EQ_STR(words(put(text, 200001), '#'), "2<9>");
    free(text);
}

/* ---- numbers ---- */

static fth_text_field field(const char *text)
{
    return (fth_text_field){text, strlen(text), 3, 7};
}

TEST(a_field_is_one_number_or_none)
{
    static const struct {
        const char *text;
        double v;
    } good[] = {{"1", 1},
                {"-.5", -0.5},
                {"+5.", 5},
                {"1e3", 1e3},
                {"0x1F", 31},
                {"0x1p-2", 0.25},
                {"4.9406564584124654e-324", 5e-324},
                {"2.2250738585072011e-308", 2.2250738585072011e-308},
                {"0.1000000000000000055511151231257827", 0.1},
                {"1.7976931348623157e308", 1.7976931348623157e308},
                {"1e999", (double)INFINITY},
                {"-inf", -(double)INFINITY},
                {"1e-999", 0}};
    static const char *const bad[] = {"", " 1", "1 ", "1,5", "1.5.", "e5", "0x", "--1", "1e", "x"};
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8"};
    for (size_t l = 0; l < 3; l++) {
        if (!setlocale(LC_NUMERIC, locales[l])) continue;
        double v = 7;
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
            const fth_text_field f = field(good[i].text);
            if (!fth_text_real(&f, &v)) FAIL("%s is no number", good[i].text);
            EQ_F64(v, good[i].v);
        }
        v = 7;
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            const fth_text_field f = field(bad[i]);
            if (fth_text_real(&f, &v)) FAIL("\"%s\" is a number", bad[i]);
        }
        EQ_F64(v, 7);
        setlocale(LC_NUMERIC, "C");
    }
    char longest[FTH_READER_NUMBER + 1];
    double v = 0;
    memset(longest, '0', sizeof longest);
    fth_text_field f = {longest, FTH_READER_NUMBER - 1, 1, 1};
    IS_TRUE(fth_text_real(&f, &v));
    f.n++;
    IS_TRUE(!fth_text_real(&f, &v));
    f = (fth_text_field){"1\0", 2, 1, 1};
    IS_TRUE(!fth_text_real(&f, &v));
}

TEST(whole_numbers_fit_or_are_refused)
{
    int64_t v = 0;
    fth_text_field f = field("-9223372036854775808");
    IS_TRUE(fth_text_int(&f, &v) && v == INT64_MIN);
    f = field("9223372036854775807");
    IS_TRUE(fth_text_int(&f, &v) && v == INT64_MAX);
    static const char *const bad[] = {"9223372036854775808", "1.0", "0x10", "", "1e3", " 1", "-"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        f = field(bad[i]);
        if (fth_text_int(&f, &v)) FAIL("\"%s\" is a whole number", bad[i]);
    }
}

TEST(ranges_are_kept_and_errors_say_where)
{
    const fth_reader r = {.path = "depths.txt"};
    double v = 0;
    int64_t n = 0;
    fth_err err = {0};
    fth_text_field f = field("0.5");
    OK(fth_reader_real(&r, &f, 0.5, 0.5, &v, NULL));
    IS(fth_reader_real(&r, &f, 1, 2, &v, &err), FTH_E_FILE_FORMAT);
    EQ_STR(err.text, "depths.txt:3:7: expected a number from 1 to 2, found \"0.5\"");
    fth_err_clear(&err);
    IS(fth_reader_real(&r, &f, 0.75, (double)INFINITY, &v, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "expected a finite number not below 0.75, found");
    fth_err_clear(&err);
    f = field("1e999");
    IS(fth_reader_real(&r, &f, -(double)INFINITY, (double)INFINITY, &v, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "expected a finite number, found \"1e999\"");
    fth_err_clear(&err);
    f = field("12");
    OK(fth_reader_int(&r, &f, 0, 12, &n, NULL));
    EQ_I64(n, 12);
    IS(fth_reader_int(&r, &f, 0, 11, &n, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "expected a whole number from 0 to 11, found \"12\"");
    fth_err_clear(&err);
    f = field("a name that is longer than anybody would want\x1b");
    f.column = 0;
    IS(fth_reader_fail(&r, &f, "a word", &err), FTH_E_FILE_FORMAT);
    EQ_STR(err.text, "depths.txt:3: expected a word, found \"a name that is longer than anybody "
                     "would...\"");
}

TEST(a_row_has_as_many_numbers_as_are_expected)
{
    static const struct {
        const char *text, *error; /* NULL: it is one */
    } row[] = {{"1,2\n", NULL},
               {"-1,\"10\"\n", NULL},
               {"1\n", ":1: expected a,b, found"},
               {"1,\n", ":1:3: expected a number from 2 to 10, found \"\""},
               {"1,11\n", "found \"11\""},
               {"2,3\n", ":1:1: expected a number from -1 to 1, found \"2\""},
               {"1,2,3\n", ":1:5: expected the end of the line, found \"3\""}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        bench b = start(put(row[i].text, strlen(row[i].text)), NULL);
        fth_text_line line;
        double v[2] = {0};
        OKE(fth_reader_next(&b.r, &line, &b.err), &b.err);
        const fth_status s = fth_reader_row(&b.r, &line, ',', 2, (double[]){-1, 2},
                                            (double[]){1, 10}, v, "a,b", &b.err);
        IS(s, row[i].error ? FTH_E_FILE_FORMAT : FTH_OK);
        if (row[i].error) HAS(b.err.text, row[i].error);
        if (!row[i].error) EQ_F64(v[1], i ? 10 : 2);
        end(&b);
    }
}

TEST(scan_counts_lines_and_ends_at_words)
{
    bench b = start(PUT("1 2.5\n\n-3 end"), NULL);
    static const double want[] = {1, 2.5, -3};
    static const int64_t at[] = {1, 1, 3};
    for (int i = 0; i < 4; i++) {
        double v;
        bool found, digits;
        OKE(fth_reader_scan(&b.r, &v, &found, &digits, &b.err), &b.err);
        IS_TRUE(found == (i < 3));
        if (!found) break;
        EQ_F64(v, want[i]);
        EQ_I64(b.r.line, at[i]);
        IS_TRUE(digits == (i != 1));
    }
    end(&b);
}

/* ---- tables ---- */

TEST(tables_have_rows_of_one_width)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_csv c;
    fth_err err = {0};
    OK(fth_csv_read(&c, mem, PUT("\xef\xbb\xbfname,\"x, y\"\r\n\r\n\"a \"\"b\"\"\nc\",1\r\nlast,"),
                    NULL));
    EQ_I64(c.rows, 3);
    EQ_I64(c.width, 2);
    EQ_STR(fth_csv_get(&c, 0, 0), "name");
    EQ_STR(fth_csv_get(&c, 0, 1), "x, y");
    EQ_STR(fth_csv_get(&c, 1, 0), "a \"b\"\nc");
    EQ_STR(fth_csv_get(&c, 1, 1), "1");
    EQ_STR(fth_csv_get(&c, 2, 1), "");
    fth_csv_free(&c);
    fth_csv_free(&c);
    OK(fth_csv_read(&c, mem, PUT("a,b\r"), NULL));
    EQ_STR(fth_csv_get(&c, 0, 1), "b");
    fth_csv_free(&c);
    IS(fth_csv_read(&c, mem, PUT("a,b\n1\n"), &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "text: row 2 has 1 fields, the first has 2");
    fth_err_clear(&err);
    IS(fth_csv_read(&c, mem, PUT("\n\r\n"), &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "text: the table is empty");
    IS(fth_csv_read(&c, mem, t_temp_path("none"), NULL), FTH_E_FILE_OPEN);
    OK(fth_mem_destroy(mem, NULL));
}

/* No row and no part of a field is lost without a word. */
TEST(a_damaged_table_is_refused_and_a_quoted_nothing_is_a_row)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_csv c;
    fth_err err = {0};
    const char *path = t_temp_path("zero.csv");
    t_file_write(path, "a,b\n1,x\0y\n", 11);
    IS(fth_csv_read(&c, mem, path, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "zero.csv:2:4: expected text, found a zero byte");
    fth_err_clear(&err);
    IS(fth_csv_read(&c, mem, PUT("name\n\"abc\ndef\n"), &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "row 2: a quote is opened and never closed");
    OK(fth_csv_read(&c, mem, PUT("name\nA\n\"\"\nB\n"), NULL));
    EQ_I64(c.rows, 4);
    EQ_STR(fth_csv_get(&c, 2, 0), "");
    fth_csv_free(&c);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(no_memory_is_an_error_at_every_step)
{
    const char *path = PUT("a,b\n1,2\n");
    for (int64_t n = 1;; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth__mem_inject(mem, n, 0);
        fth_csv c;
        fth_reader r;
        fth_text_line line;
        char *rest = NULL;
        int64_t bytes = 0;
        fth_status s = fth_csv_read(&c, mem, path, NULL);
        fth_csv_free(&c);
        if (s == FTH_OK) s = fth_reader_open(&r, mem, path, NULL, NULL);
        if (s == FTH_OK) {
            s = fth_reader_next(&r, &line, NULL);
            if (s == FTH_OK) s = fth_reader_rest(&r, "rest", &rest, &bytes, NULL);
            OK(fth_mem_release(mem, rest, NULL));
            fth_reader_close(&r);
        }
        const bool over = fth__mem_alloc_count(mem) < n;
        IS(s, over ? FTH_OK : FTH_E_NOMEM);
        OK(fth_mem_destroy(mem, NULL));
        if (over) break;
    }
}

/* ---- packed files ---- */

/* Two members, "one\n" "two\nthr" and "ee\n", as gzip of Python packs them. */
static const unsigned char packed[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0xcf, 0x4b, 0xe5,
    0x2a, 0x29, 0xcf, 0xe7, 0x2a, 0xc9, 0x28, 0x02, 0x00, 0x78, 0xc7, 0xb9, 0xda, 0x0b,
    0x00, 0x00, 0x00, 0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b,
    0x4d, 0xe5, 0x02, 0x00, 0x25, 0xa6, 0x02, 0x49, 0x03, 0x00, 0x00, 0x00};

TEST(packed_lines_are_read_where_they_are_asked_for)
{
    const fth_reader_options unpack = {.unpack = true};
    EQ_STR(lines(put(packed, sizeof packed), &unpack), "<one><two><three>");
    EQ_STR(lines(PUT("a\nb\n"), &unpack), "<a><b>"); /* not packed */
    EQ_STR(lines(PUT(""), &unpack), "");
    bench b = start(put(packed, sizeof packed), &unpack);
    fth_text_line line;
    for (int pass = 0; pass < 3; pass++) {
        OK(fth_reader_next(&b.r, &line, &b.err));
        EQ_STR(line.text, "one");
        OK(fth_reader_rewind(&b.r, &b.err));
    }
    char *rest = NULL;
    int64_t n = 0;
    OK(fth_reader_rest(&b.r, "rest", &rest, &n, &b.err));
    EQ_STR(rest, "one\ntwo\nthree\n");
    OK(fth_mem_release(b.mem, rest, NULL));
    end(&b);
}

TEST(packed_files_that_are_cut_or_damaged_are_refused)
{
    const fth_reader_options unpack = {.unpack = true};
    unsigned char copy[sizeof packed];
    for (size_t cut = 2; cut < sizeof packed; cut++) {
        bench b = start(put(packed, cut), &unpack);
        fth_text_line line;
        fth_status s = FTH_OK;
        do s = fth_reader_next(&b.r, &line, &b.err);
        while (s == FTH_OK && line.text);
        if (cut == 31)
            OK(s); /* a whole member */
        else {
            EQ_I64(s, FTH_E_FILE_SHORT);
            HAS(b.err.text, "before its packed stream does");
        }
        end(&b);
    }
    memcpy(copy, packed, sizeof packed);
    copy[31 - 6] ^= 1; /* of the checksum */
    bench b = start(put(copy, sizeof copy), &unpack);
    fth_text_line line;
    IS(fth_reader_next(&b.r, &line, &b.err), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "the packed bytes are damaged");
    end(&b);
    fth_mem *mem = t_mem(1 << 20);
    fth_reader r;
    fth__mem_inject(mem, 1, 0);
    IS(fth_reader_open(&r, mem, put(packed, sizeof packed), &unpack, NULL), FTH_E_NOMEM);
    fth_reader_close(&r);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
