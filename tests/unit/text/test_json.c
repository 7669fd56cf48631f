/* test_json.c - JSON as it is written and read back, and texts that others wrote.
 * seconds: 2 */
#include "testing/io/files.h"

#include "mem/inject.h"
#include <fathom/json.h>

#include <locale.h>
#include <math.h>

static fth_json *parse(fth_mem *mem, const char *text)
{
    fth_json *doc = NULL;
    fth_err err = {0};
    OKE(fth_json_parse(&doc, mem, "test", text, strlen(text), &err), &err);
    return doc;
}

static void write_all(fth_json_writer *w)
{
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "text", "a\"b\\c\n\t\x01\x7f<\xc3\xa9 \xff\xe2\x82");
    fth_json_text(w, "none", NULL);
    fth_json_int(w, "least", INT64_MIN);
    fth_json_int(w, "most", INT64_MAX);
    fth_json_u64(w, "bytes", INT64_MAX);
    fth_json_u64(w, "huge", UINT64_MAX);
    fth_json_hash(w, "hash", 0xfedcba9876543210u);
    fth_json_open(w, "list", '[');
    fth_json_real(w, NULL, 0.1);
    fth_json_real(w, NULL, (double)NAN);
    fth_json_real(w, NULL, -(double)INFINITY);
    fth_json_open(w, NULL, '[');
    fth_json_close(w);
    fth_json_bool(w, NULL, true);
    fth_json_close(w);
    fth_json_open(w, "o", '{');
    fth_json_close(w);
    fth_json_real(w, "time", 1789459200.123456);
    fth_json_close(w);
}

static const char wanted[] =
    "{\"text\":\"a\\\"b\\\\c\\n\\u0009\\u0001\\u007f\\u003c\xc3\xa9 "
    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\","
    "\"none\":null,\"least\":-9223372036854775808,\"most\":9223372036854775807,"
    "\"bytes\":9223372036854775807,\"huge\":\"18446744073709551615\","
    "\"hash\":\"fedcba9876543210\",\"list\":[0.1,null,null,[],true],\"o\":{},"
    "\"time\":1789459200.123456}";

TEST(what_is_written_is_read_back)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json_writer w;
    fth_json_begin(&w, mem, false);
    write_all(&w);
    OK(fth_json_end(&w, NULL));
    EQ_STR(w.data, wanted);
    fth_json *doc = parse(mem, w.data);
    fth_json_free(&w);
    const fth_json_value *v = fth_json_root(doc);
    EQ_I64(fth_json_get_int(v, "least", 0), INT64_MIN);
    EQ_I64(fth_json_get_int(v, "most", 0), INT64_MAX);
    EQ_U64(fth_json_get_u64(v, "bytes", 0), INT64_MAX);
    EQ_U64(fth_json_get_u64(v, "huge", 0), UINT64_MAX);
    EQ_U64(fth_json_get_hash(v, "hash", 0), 0xfedcba9876543210u);
    EQ_F64(fth_json_get_real(v, "time", 0), 1789459200.123456);
    EQ_STR(fth_json_get_text(v, "text", ""),
           "a\"b\\c\n\t\x01\x7f<\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    const fth_json_value *list = fth_json_get(v, "list");
    EQ_I64(fth_json_count(list), 5);
    EQ_F64(fth_json_get_real(fth_json_at(list, 0), NULL, 7), 0.1);
    IS_TRUE(isnan(fth_json_get_real(fth_json_at(list, 1), NULL, (double)NAN)));
    IS_TRUE(fth_json_get_bool(fth_json_at(list, 4), NULL, false));
    IS_TRUE(!fth_json_at(list, 5) && !fth_json_at(list, -1));
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_copy_says_the_same)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json *doc = parse(mem, wanted);
    fth_json_writer w;
    fth_json_begin(&w, mem, true);
    fth_json_copy(&w, NULL, fth_json_root(doc));
    OK(fth_json_end(&w, NULL));
    HAS(w.data, "\n  \"list\": [\n    0.1,\n");
    fth_json *again = parse(mem, w.data);
    fth_json_writer one;
    fth_json_begin(&one, mem, false);
    fth_json_copy(&one, NULL, fth_json_root(again));
    OK(fth_json_end(&one, NULL));
    EQ_STR(one.data, wanted);
    fth_json_free(&one);
    fth_json_free(&w);
    fth_json_destroy(doc);
    fth_json_destroy(again);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_text_of_some_bytes_needs_no_end)
{
    static const char bytes[] = {'a', '\0', '&', '<', '\xe2', '\x82', '\xac', '\xe2', '\x82'};
    char text[80];
    fth_json_writer w;
    for (size_t n = 0; n <= sizeof bytes; n++) {
        char *copy = malloc(n + !n); /* so that a byte too many is noticed */
        memcpy(copy, bytes, n);
        fth_json_begin_fixed(&w, text, sizeof text);
        fth_json_bytes(&w, NULL, copy, n);
        OK(fth_json_end(&w, NULL));
        free(copy);
        if (n == 6) EQ_STR(text, "\"a\\u0000&\\u003c\xef\xbf\xbd\xef\xbf\xbd\"");
        if (n == 7) EQ_STR(text, "\"a\\u0000&\\u003c\xe2\x82\xac\"");
    }
    EQ_STR(text, "\"a\\u0000&\\u003c\xe2\x82\xac\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(seconds_have_three_decimals_or_none)
{
    static const double seconds[] = {0,           0.0004,          1.25,     -1.9996,
                                     -0.0001,     1768435200.125,  1e15 / 8, 1e15,
                                     (double)NAN, (double)INFINITY};
    char text[200];
    fth_json_writer w;
    fth_json_begin_fixed(&w, text, sizeof text);
    fth_json_open(&w, NULL, '[');
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        fth_json_seconds(&w, NULL, seconds[i]);
    fth_json_close(&w);
    OK(fth_json_end(&w, NULL));
    EQ_STR(text, "[0,0,1.250,-2,0,1768435200.125,125000000000000,1e+15,null,null]");
}

/* Python's json module writes these words; to a reader of ours they are numbers that are missing.
 */
TEST(what_is_not_finite_has_words_when_asked_for)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json_writer w;
    fth_json_begin(&w, mem, false);
    w.nan = FTH_JSON_NAN_NAME;
    fth_json_open(&w, NULL, '[');
    fth_json_real(&w, NULL, (double)NAN);
    fth_json_real(&w, NULL, (double)INFINITY);
    fth_json_real(&w, NULL, -(double)INFINITY);
    fth_json_real(&w, NULL, -1);
    fth_json_text(&w, NULL, "\"NaN\\");
    fth_json_text(&w, NULL, "Infinity");
    fth_json_close(&w);
    OK(fth_json_end(&w, NULL));
    EQ_STR(w.data, "[NaN,Infinity,-Infinity,-1,\"\\\"NaN\\\\\",\"Infinity\"]");
    fth_json *doc = parse(mem, w.data);
    const fth_json_value *v = fth_json_root(doc);
    for (int64_t i = 0; i < 3; i++) EQ_F64(fth_json_get_real(fth_json_at(v, i), NULL, 7), 7);
    EQ_F64(fth_json_get_real(fth_json_at(v, 3), NULL, 7), -1);
    EQ_STR(fth_json_get_text(fth_json_at(v, 4), NULL, ""), "\"NaN\\");
    EQ_STR(fth_json_get_text(fth_json_at(v, 5), NULL, ""), "Infinity");
    fth_json_destroy(doc);
    fth_json_free(&w);
    IS(fth_json_parse(&doc, mem, "test", "NaNa", 4, NULL), FTH_E_FILE_FORMAT);
    IS(fth_json_parse(&doc, mem, "test", "[-Infinite]", 11, NULL), FTH_E_FILE_FORMAT);
    OK(fth_mem_destroy(mem, NULL));
}

static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0, 1.0 / 3};

static void put_odd(char *text, size_t bytes, fth_json_nan nan, int digits)
{
    fth_json_writer w;
    fth_json_begin_fixed(&w, text, bytes);
    w.nan = nan;
    w.digits = digits;
    fth_json_open(&w, NULL, '[');
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) fth_json_real(&w, NULL, odd[i]);
    fth_json_close(&w);
    OK(fth_json_end(&w, NULL));
}

TEST(numbers_that_are_not_finite_follow_the_policy)
{
    char text[200];
    put_odd(text, sizeof text, FTH_JSON_NAN_NULL, 0);
    EQ_STR(text, "[null,null,null,0,0.3333333333333333]");
    put_odd(text, sizeof text, FTH_JSON_NAN_NAME, 6);
    EQ_STR(text, "[NaN,Infinity,-Infinity,0,0.333333]");
    put_odd(text, sizeof text, FTH_JSON_NAN_ZERO, 17);
    EQ_STR(text, "[0,0,0,0,0.33333333333333331]");
}

/* The shortest text that reads as the number, at the edges of double and in every locale. */
TEST(numbers_read_back_as_they_were)
{
    static const struct {
        double v;
        const char *text;
    } edge[] = {{0.1, "0.1"},
                {1.0 / 3, "0.3333333333333333"},
                {0.1 + 0.2, "0.30000000000000004"},
                {5e-324, "4.94065645841247e-324"},
                {2.2250738585072014e-308, "2.2250738585072014e-308"},
                {1.7976931348623157e308, "1.7976931348623157e+308"},
                {-9007199254740993.0, "-9007199254740992"},
                {1e22, "1e+22"},
                {123456789012345680.0, "1.2345678901234568e+17"}};
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8"};
    for (size_t l = 0; l < 3; l++) {
        if (!setlocale(LC_NUMERIC, locales[l])) continue;
        for (size_t i = 0; i < sizeof edge / sizeof edge[0]; i++) {
            char text[64];
            fth_json_writer w;
            fth_json_begin_fixed(&w, text, sizeof text);
            fth_json_real(&w, NULL, edge[i].v);
            OK(fth_json_end(&w, NULL));
            EQ_STR(text, edge[i].text);
        }
        setlocale(LC_NUMERIC, "C");
    }
}

TEST(scaled_numbers_keep_their_decimals)
{
    char text[300];
    fth_json_writer w;
    fth_json_begin_fixed(&w, text, sizeof text);
    fth_json_open(&w, NULL, '[');
    fth_json_scaled(&w, NULL, 1500, 3);
    fth_json_scaled(&w, NULL, 0, 3);
    fth_json_scaled(&w, NULL, -7, 3);
    fth_json_scaled(&w, NULL, 42, 0);
    fth_json_scaled(&w, NULL, 100, 2);
    fth_json_scaled(&w, NULL, INT64_MIN, 18);
    fth_json_scaled(&w, NULL, INT64_MAX, 0);
    fth_json_close(&w);
    OK(fth_json_end(&w, NULL));
    EQ_STR(text, "[1.500,0.000,-0.007,42,1.00,-9.223372036854775808,9223372036854775807]");
}

TEST(rows_have_blanks_when_asked_for)
{
    char text[300];
    FILE *out = fmemopen(text, sizeof text, "w");
    fth_json_writer w;
    fth_json_begin_file(&w, out, "a text", true);
    w.spaced = true;
    fth_json_open(&w, NULL, '{');
    fth_json_open_row(&w, "a", '{');
    fth_json_int(&w, "x", 1);
    fth_json_open(&w, "y", '[');
    fth_json_int(&w, NULL, 2);
    fth_json_int(&w, NULL, 3);
    fth_json_close(&w);
    fth_json_close(&w);
    fth_json_int(&w, "b", 4);
    fth_json_close(&w);
    OK(fth_json_end(&w, NULL));
    fclose(out);
    EQ_STR(text, "{\n  \"a\": {\"x\": 1, \"y\": [2, 3]},\n  \"b\": 4\n}\n");
}

TEST(a_tall_document_has_a_line_for_every_value)
{
    char text[300];
    FILE *out = fmemopen(text, sizeof text, "w");
    fth_json_writer w;
    fth_json_begin_file(&w, out, "a text", true);
    w.tall = true;
    fth_json_open(&w, NULL, '[');
    fth_json_open(&w, NULL, '{');
    fth_json_int(&w, "a", 1);
    fth_json_open(&w, "b", '[');
    fth_json_close(&w);
    fth_json_close(&w);
    fth_json_close(&w);
    OK(fth_json_end(&w, NULL));
    fclose(out);
    EQ_STR(text, "[\n  {\n    \"a\": 1,\n    \"b\": []\n  }\n]\n");
}

/* Only well-formed UTF-8 passes: no surrogates, nothing overlong, nothing beyond U+10FFFF. */
TEST(bytes_that_are_not_utf8_are_replaced)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {{"l\xc3\xa9s", "\"l\xc3\xa9s\""},
                 {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
                 {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
                 {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
                 {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
                 {"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
                 {"</script>", "\"\\u003c/script>\""},
                 {"\x1b[0m\x7f", "\"\\u001b[0m\\u007f\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[100];
        fth_json_writer w;
        fth_json_begin_fixed(&w, text, sizeof text);
        fth_json_text(&w, NULL, cases[i].bytes);
        OK(fth_json_end(&w, NULL));
        EQ_STR(text, cases[i].text);
    }
}

/* For people: a line for each value, but what stands in a list is short and many. */
TEST(rows_of_a_list_are_lines)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json *doc = parse(mem, "{\"a\":[{\"b\":[1,{\"c\":{}}]},[2,[3]],4],\"d\":{\"e\":5}}");
    fth_json_writer w;
    fth_json_begin(&w, mem, true);
    fth_json_copy(&w, NULL, fth_json_root(doc));
    OK(fth_json_end(&w, NULL));
    EQ_STR(w.data, "{\n"
                   "  \"a\": [\n"
                   "    {\"b\":[1,{\"c\":{}}]},\n"
                   "    [2,[3]],\n"
                   "    4\n"
                   "  ],\n"
                   "  \"d\": {\n"
                   "    \"e\": 5\n"
                   "  }\n"
                   "}\n");
    fth_json_free(&w);
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(members_come_in_their_order)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json *doc = parse(mem, "{\"z\":1,\"a\":2,\"m\":3}");
    const void *at = NULL;
    const char *key = NULL;
    const fth_json_value *value = NULL;
    char order[8] = "";
    while (fth_json_next(fth_json_root(doc), &at, &key, &value)) strcat(order, key);
    EQ_STR(order, "zam");
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_is_missing_or_of_another_type_is_the_default)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json *doc = parse(mem, "{\"t\":\"x\",\"n\":-1,\"r\":2.5,\"w\":3.0,\"b\":true,\"l\":[]}");
    const fth_json_value *v = fth_json_root(doc);
    EQ_I64(fth_json_get_int(v, "t", 5), 5);
    EQ_I64(fth_json_get_int(v, "r", 5), 5);
    EQ_I64(fth_json_get_int(v, "w", 5), 3);
    EQ_I64(fth_json_get_int(v, "nothing", 5), 5);
    EQ_U64(fth_json_get_u64(v, "n", 6), 6);
    EQ_U64(fth_json_get_hash(v, "t", 6), 6);
    EQ_STR(fth_json_get_text(v, "n", "d"), "d");
    EQ_F64(fth_json_get_real(v, "b", 1.5), 1.5);
    EQ_F64(fth_json_get_real(v, "n", 1.5), -1);
    IS_TRUE(!fth_json_get_bool(v, "n", false) && fth_json_get_bool(v, "b", false));
    IS_TRUE(!fth_json_get(fth_json_get(v, "l"), "x") && !fth_json_get(NULL, "x"));
    EQ_I64(fth_json_count(fth_json_get(v, "t")), 0);
    EQ_I64(fth_json_count(NULL), 0);
    IS_TRUE(!fth_json_is_object(fth_json_get(v, "l")) && fth_json_is_object(v));
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(texts_of_other_programs_are_read)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json *doc = parse(mem, "\xef\xbb\xbf{\"a\": \"\\ud83d\\ude00\"}");
    EQ_STR(fth_json_get_text(fth_json_root(doc), "a", ""), "\xf0\x9f\x98\x80");
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(hostile_texts_are_refused)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "{\"a\":1,\"a\":2}",
                                      "[1,]",
                                      "\"\xff\"",
                                      "[nan]",
                                      "[1e999]",
                                      "\"\\u0000\"",
                                      "{} {}",
                                      "[1] x",
                                      "99999999999999999999",
                                      "\"\\ud800\""};
    fth_mem *mem = t_mem(1 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fth_json *doc = NULL;
        fth_err err = {0};
        IS(fth_json_parse(&doc, mem, "bad.json", bad[i], strlen(bad[i]), &err), FTH_E_FILE_FORMAT);
        HAS(err.text, "bad.json:");
        IS_TRUE(doc == NULL);
        if (strstr(bad[i], "999")) HAS(err.hint, "there is no u64");
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(depth_and_number_of_values_are_bounded)
{
    fth_mem *mem = t_mem(1 << 20);
    const size_t n = 5000000;
    char *text = malloc(n);
    fth_err err = {0};
    fth_json *doc = NULL;
    memset(text, '[', n);
    IS(fth_json_parse(&doc, mem, "deep", text, n, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "64 brackets");
    for (size_t i = 0; i < n; i++) text[i] = i == 0 ? '[' : i == n - 1 ? ']' : i % 2 ? '0' : ',';
    fth_err_clear(&err);
    IS(fth_json_parse(&doc, mem, "long", text, n, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "two million");
    memset(text, ',', n); /* inside a text they count for nothing */
    text[0] = text[n - 1] = '"';
    OK(fth_json_parse(&doc, mem, "text", text, n, NULL));
    fth_json_destroy(doc);
    free(text);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_buffer_that_is_too_small_and_wrong_brackets_are_noticed)
{
    char buffer[400];
    fth_json_writer w;
    for (size_t bytes = 0; bytes <= sizeof wanted; bytes++) {
        memset(buffer, 'x', sizeof buffer);
        fth_json_begin_fixed(&w, buffer, bytes);
        write_all(&w);
        IS(fth_json_end(&w, NULL), bytes < sizeof wanted ? FTH_E_INTERNAL : FTH_OK);
        IS_TRUE(buffer[bytes] == 'x');
    }
    EQ_STR(buffer, (buffer[sizeof wanted] = '\0', wanted));
    for (int how = 0; how < 5; how++) {
        fth_json_begin_fixed(&w, buffer, sizeof buffer);
        if (how > 0) fth_json_open(&w, NULL, '{');
        if (how == 1) fth_json_int(&w, NULL, 1); /* no key */
        if (how == 2) fth_json_open(&w, "l", '['), fth_json_int(&w, "k", 1), fth_json_close(&w);
        if (how == 3) fth_json_close(&w), fth_json_close(&w);
        if (how == 4) fth_json_close(&w), fth_json_int(&w, NULL, 1); /* two texts */
        if (how < 3 && how > 0) fth_json_close(&w);
        IS(fth_json_end(&w, NULL), FTH_E_INTERNAL);
    }
}

TEST(files_are_written_whole_and_read)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("a.json");
    fth_json_writer w;
    fth_json_begin(&w, mem, true);
    write_all(&w);
    OK(fth_json_save(&w, path, NULL));
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, mem, path, NULL));
    EQ_I64(fth_json_count(fth_json_root(doc)), 10);
    fth_json_destroy(doc);
    IS(fth_json_load(&doc, mem, t_temp_path("none.json"), NULL), FTH_E_FILE_OPEN);
    FILE *full = fopen("/dev/full", "w");
    fth_json_begin_file(&w, full, "a list", true);
    write_all(&w);
    fth_err err = {0};
    IS(fth_json_end(&w, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "a list could not be written: No space left");
    fclose(full);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(no_memory_is_reported_at_the_end)
{
    for (int64_t n = 1;; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth__mem_inject(mem, n, 0);
        fth_json_writer w;
        fth_json *doc = NULL;
        fth_json_begin(&w, mem, false);
        write_all(&w);
        fth_status s = fth_json_end(&w, NULL);
        if (s == FTH_OK) s = fth_json_parse(&doc, mem, "x", w.data, (size_t)w.used, NULL);
        fth_json_free(&w);
        fth_json_destroy(doc);
        const bool over = fth__mem_alloc_count(mem) < n;
        IS(s, over ? FTH_OK : FTH_E_NOMEM);
        OK(fth_mem_destroy(mem, NULL));
        if (over) break;
    }
}

static fth_status parse_only(const char *text, size_t bytes, fth_err *err)
{
    fth_mem *mem = t_mem(1 << 26);
    fth_json *doc = NULL;
    *err = (fth_err){0};
    const fth_status s = fth_json_parse(&doc, mem, "text", text, bytes, err);
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
    return s;
}

/* What is open, not what was; and not what stands in a text. */
TEST(brackets_are_counted_while_they_are_open)
{
    fth_err err;
    char text[400];
    for (int n = 64; n <= 65; n++) {
        memset(text, '[', (size_t)n);
        memset(text + n, ']', (size_t)n);
        IS(parse_only(text, (size_t)(2 * n), &err), n == 64 ? FTH_OK : FTH_E_FILE_FORMAT);
    }
    HAS(err.text, "more than 64 brackets");
    size_t n = (size_t)snprintf(text, sizeof text, "[[]");
    while (n < 300) n += (size_t)snprintf(text + n, sizeof text - n, ",[]");
    text[n++] = ']';
    OK(parse_only(text, n, &err));
    memset(text, '[', sizeof text);
    memcpy(text, "\"\\\"", 3); /* a quote within quotes */
    text[100] = '"';
    OK(parse_only(text, 101, &err));
}

TEST(numbers_that_do_not_fit_are_none)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json *doc = parse(mem, "[1e300, \"18446744073709551615\", \"18446744073709551616\", "
                               "9007199254740992.0, 9007199254740994.0]");
    const fth_json_value *v = fth_json_root(doc);
    EQ_I64(fth_json_get_int(fth_json_at(v, 0), NULL, 7), 7);
    EQ_U64(fth_json_get_u64(fth_json_at(v, 1), NULL, 7), UINT64_MAX);
    EQ_U64(fth_json_get_u64(fth_json_at(v, 2), NULL, 7), 7);
    EQ_I64(fth_json_get_int(fth_json_at(v, 3), NULL, 7), 9007199254740992);
    EQ_I64(fth_json_get_int(fth_json_at(v, 4), NULL, 7), 7);
    fth_json_destroy(doc);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(so_many_brackets_can_be_written)
{
    for (int n = FTH_JSON_DEPTH; n <= FTH_JSON_DEPTH + 1; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth_json_writer w;
        fth_json_begin(&w, mem, false);
        for (int i = 0; i < n; i++) fth_json_open(&w, NULL, '[');
        for (int i = 0; i < n; i++) fth_json_close(&w);
        IS(fth_json_end(&w, NULL), n == FTH_JSON_DEPTH ? FTH_OK : FTH_E_INTERNAL);
        fth_json_free(&w);
        OK(fth_mem_destroy(mem, NULL));
    }
}

/* Objects in objects: each level begins a line of its own with two blanks more than the one around
 * it. */
TEST(the_deepest_level_is_indented)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_json_writer w;
    fth_json_begin(&w, mem, true);
    fth_json_open(&w, NULL, '{');
    for (int i = 1; i < FTH_JSON_DEPTH; i++) fth_json_open(&w, "a", '{');
    fth_json_int(&w, "deepest", 1);
    for (int i = 0; i < FTH_JSON_DEPTH; i++) fth_json_close(&w);
    OK(fth_json_end(&w, NULL));
    EQ_I64((int64_t)strlen(w.data), w.used);
    const char *line = strstr(w.data, "\"deepest\"");
    IS_TRUE(line && line - w.data > 2 * FTH_JSON_DEPTH);
    for (int i = 1; line && i <= 2 * FTH_JSON_DEPTH; i++) EQ_I64(line[-i], ' ');
    if (line) EQ_I64(line[-2 * FTH_JSON_DEPTH - 1], '\n');
    fth_json_free(&w);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_text_has_bounds)
{
    enum { MEMBERS = 1000001, MOST = 64 << 20 };
    fth_err err;
    char *text = malloc(MOST + 1);
    memset(text, ' ', MOST + 1);
    text[0] = '0';
    OK(parse_only(text, MOST, &err));
    IS(parse_only(text, MOST + 1, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "more than 64 MiB");
    text[0] = '{'; /* keys are values too */
    for (int i = 0; i < MEMBERS; i++) memcpy(text + 1 + 5 * (size_t)i, "\"\":0,", 5);
    IS(parse_only(text, 1 + 5 * (size_t)MEMBERS, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "two million values");
    free(text);
    IS(parse_only("NaN", 2, &err), FTH_E_FILE_FORMAT); /* the third is not part of it */
}

TEST_MAIN()
