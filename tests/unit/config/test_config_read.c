/* test_config_read.c - YAML and JSON to values with places, and everything that is refused.
 * seconds: 2 */
#include "testing/io/files.h"

#include "config/node.h"
#include "text/number.h"

#include <fathom/config.h>
#include <locale.h>
#include <math.h>

typedef struct bench {
    fth_mem *mem;
    fth__store store;
    fth_err err;
    fth__config_node *root;
    fth_status status;
} bench;

static bench parse_bytes(const char *text, size_t bytes)
{
    bench b = {.mem = t_mem(1 << 20)};
    b.store.mem = b.mem;
    b.status = fth__node_parse(&b.store, "f.yaml", text, bytes, &b.root, &b.err);
    return b;
}

static bench parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void drop(bench *b)
{
    fth__store_clear(&b->store);
    OK(fth_mem_destroy(b->mem, NULL));
}

static const fth__config_node *child(const fth__config_node *n, int64_t i)
{
    n = n->first;
    while (i-- > 0) n = n->next;
    return n;
}

#define AT(place, l, c) (EQ_I64((place).line, (l)), EQ_I64((place).column, (c)))

TEST(yaml_and_json_give_one_tree_with_places)
{
    static const char *const texts[] = {
        "a: 1\nb:\n  c: [x, \"y\"]\n  d: ~\n",
        "{\"a\":1,\n\"b\":{\n  \"c\":[\"x\",\"y\"],\t\"d\":null}}\n"};
    for (int i = 0; i < 2; i++) {
        bench b = parse(texts[i]);
        OKE(b.status, &b.err);
        EQ_I64(b.root->n, 2);
        const fth__config_node *a = child(b.root, 0), *s = child(b.root, 1);
        EQ_STR(a->key, "a");
        EQ_STR(a->text, "1");
        IS_TRUE(!a->quoted);
        AT(a->key_at, 1, i ? 2 : 1);
        AT(a->at, 1, i ? 6 : 4);
        EQ_STR(a->at.file, "f.yaml");
        EQ_I64(s->kind, FTH__NODE_MAP);
        const fth__config_node *list = child(s, 0);
        AT(list->key_at, 3, 3);
        AT(list->at, 3, i ? 7 : 6);
        EQ_I64(list->n, 2);
        IS_TRUE(child(list, 1)->quoted);
        EQ_STR(child(list, 1)->text, "y");
        IS_TRUE(fth__node_is_null(child(s, 1)));
        drop(&b);
    }
}

TEST(nothing_is_an_empty_map)
{
    static const char *const texts[] = {"", "\n", "# only words\n", "---\n", "~\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bench b = parse(texts[i]);
        OKE(b.status, &b.err);
        EQ_I64(b.root->kind, FTH__NODE_MAP);
        EQ_I64(b.root->n, 0);
        drop(&b);
    }
}

TEST(what_cannot_be_read_is_refused_with_its_place)
{
    static const struct {
        const char *text, *place, *word;
    } rows[] = {
        {"a: 1\n\tb: 2\n", "f.yaml:2:1: ", "tab"},
        {"a: 1\nb: [1, 2\n", "f.yaml:3:1: ", "flow sequence"},
        {"a: 1\n  b: 2\n", "f.yaml:2:4: ", "indented too far"},
        {"{\"a\": 1,\n \"b\": }x", "f.yaml:2:8: ", "after the end"},
        {"a: \"x\n", "f.yaml:2:1: ", "quoted"},
        {"a: 1\nb: \xc3\x28\n", "f.yaml:2:4: ", "0xc3 is not UTF-8"},
        {"a: \xc3\xa9 \xed\xa0\x80\n", "f.yaml:1:6: ", "0xed"},
        {"a: \xf4\x90\x80\x80\n", "f.yaml:1:4: ", "0xf4"},
        {"a: \xe0\x80\x80\n", "f.yaml:1:4: ", "0xe0"},
        {"a: \xf0\x80\x80\x80\n", "f.yaml:1:4: ", "0xf0"},
        {"a: \xc3", "f.yaml:1:4: ", "0xc3"},
        {"a: \x80\n", "f.yaml:1:4: ", "0x80"},
        {"\xff\xfe"
         "a",
         "f.yaml:1:1: ", "UTF-16"},
        {"a:\nb: \x01\n", "f.yaml:2:4: ", "control"},
        {"a:\nb: \x7f\n", "f.yaml:2:4: ", "control"},
        {"a:\nbc: \xc2\x81\n", "f.yaml:2:5: ", "control"},
        {"a: &x 1\n", "f.yaml:1:4: ", "anchors (&x)"},
        {"a: 1\nb: *x\n", "f.yaml:2:4: ", "aliases (*x)"},
        {"a: &x [1]\n", "f.yaml:1:4: ", "anchors"},
        {"a: !!str 1\n", "f.yaml:1:4: ", "tags"},
        {"a: !thing {b: 1}\n", "f.yaml:1:4: ", "tags (!thing)"},
        {"a: 1\n---\nb: 1\n", "f.yaml:2:1: ", "second document"},
        {"? [1, 2]\n: 3\n", "f.yaml:1:3: ", "key"},
        {"a: \"x\\0y\"\n", "f.yaml:1:4: ", "zero byte"},
        {"a: @x\n", "f.yaml:1:4: ", "need quotes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench b = parse(rows[i].text);
        if (b.status != FTH_E_CONFIG_SYNTAX) FAIL("row %zu gave %s", i, b.err.text);
        HAS(b.err.text, rows[i].place);
        HAS(b.err.text, rows[i].word);
        drop(&b);
    }
}

/* A text of n times `piece`. */
static char *many(const char *piece, int n)
{
    const size_t k = strlen(piece);
    char *text = malloc(k * (size_t)n + 1);
    for (int i = 0; i < n; i++) memcpy(text + k * (size_t)i, piece, k + 1);
    return text;
}

static void refused(char *text, const char *word)
{
    bench b = parse(text);
    IS(b.status, FTH_E_CONFIG_SYNTAX);
    HAS(b.err.text, word);
    drop(&b);
    free(text);
}

TEST(limits_hold)
{
    refused(many("[", 33), "f.yaml:1:33: nested more than 32 deep");
    refused(many("[", 100000), "deep");
    refused(many("{a: ", 5000), "deep");
    refused(many("- ", 5000), "deep");
    refused(many("- a\n", 100001), "more than 100000 values");
    refused(many("a:\n", 4097), "f.yaml:4097:1: more than 4096 keys");
    refused(many("abcdefgh", (1 << 17) + 1), "bytes");
    char *deep = many("[", 32), *close = many("]", 32), both[65];
    snprintf(both, sizeof both, "%s%s", deep, close);
    bench b = parse(both);
    OKE(b.status, &b.err);
    drop(&b);
    free(deep);
    free(close);
}

/* Nine levels of nine aliases each would be 387 million values. */
TEST(a_bomb_of_aliases_is_one_error)
{
    bench b = parse("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n");
    IS(b.status, FTH_E_CONFIG_SYNTAX);
    HAS(b.err.text, "f.yaml:1:4: ");
    HAS(b.err.hint, "write the value out");
    drop(&b);
}

TEST(texts_keep_every_character)
{
    bench b =
        parse("a: \"\\u00e9\\t\\\"\\\\\\/\"\nb: '''x'\nc: |\n  two\n  lines\nd: a  b#c # e\n");
    OKE(b.status, &b.err);
    EQ_STR(child(b.root, 0)->text, "\xc3\xa9\t\"\\/");
    EQ_STR(child(b.root, 1)->text, "'x");
    EQ_STR(child(b.root, 2)->text, "two\nlines\n");
    IS_TRUE(child(b.root, 2)->quoted);
    EQ_STR(child(b.root, 3)->text, "a  b#c");
    drop(&b);
}

TEST(pairs_of_utf16_are_one_character)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{\"a\": \"x\\ud83d\\ude00y\", \"b\": @}", NULL},
        {"{\"a\": \"x\\ud83d\\ude00y\"}", "x\xf0\x9f\x98\x80y"},
        {"a: \"\\uD83D\\uDE00\\uDBFF\\uDFFF\"", "\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf"},
        {"a: \"\\\\ud83d\\\\ude00\"", "\\ud83d\\ude00"},
        {"a: '\\uD83d\\udE00'", "\\uD83d\\udE00"}, /* backslashes mean nothing there */
        {"a: x\\ud83d\\uDe00", "x\\ud83d\\uDe00"},
        {"a: |\n  \"\\ud83d\\ude0F\"\n", "\"\\ud83d\\ude0F\"\n"},
        {"a: \"\xf3\xb0\x80\x80\\ud83d\\ude00\"", "\xf3\xb0\x80\x80\xf0\x9f\x98\x80"},
        {"a: \"\\ud83d\"", NULL},
        {"a: \"\\ude00\\ud83d\"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench b = parse(rows[i].text);
        IS(b.status, rows[i].want ? FTH_OK : FTH_E_CONFIG_SYNTAX);
        if (rows[i].want) EQ_STR(child(b.root, 0)->text, rows[i].want);
        if (i == 0) HAS(b.err.text, "f.yaml:1:30: "); /* the place is as in the file */
        drop(&b);
    }
}

TEST(a_mark_before_the_text_is_skipped)
{
    bench b = parse("\xef\xbb\xbf"
                    "a: 1\nb: 2\n");
    OKE(b.status, &b.err);
    EQ_I64(b.root->n, 2);
    EQ_STR(child(b.root, 0)->key, "a");
    AT(child(b.root, 0)->key_at, 1, 1);
    drop(&b);
    b = parse("\xef\xbb\xbf{\"a\": \x01}");
    HAS(b.err.text, "f.yaml:1:7: ");
    drop(&b);
}

/* ---- numbers ---- */

static void check_reals(void)
{
    static const struct {
        const char *text;
        double v;
    } rows[] = {
        {"2e-3", 2e-3},   {"1e-4", 1e-4}, {".5", .5},    {"5.", 5},        {"-1.5E+2", -150},
        {"0x10", 16},     {"+3", 3},      {"0", 0},      {"1e308", 1e308}, {"0.1", .1},
        {"0x1fF", 0x1ff}, {"-0x2", -2},   {"1e-999", 0}, {"0.5e0", .5},    {"5e-324", 5e-324},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double v = -7;
        EQ_I64(fth__number_real(rows[i].text, &v), FTH__NUMBER_OK);
        EQ_F64(v, rows[i].v);
        char text[40];
        fth__text t;
        fth__text_init(&t, text, sizeof text);
        fth__number_print(&t, v);
        IS_TRUE(strchr(text, ',') == NULL);
        double again = -7;
        EQ_I64(fth__number_real(text, &again), FTH__NUMBER_OK);
        SAME_BYTES(&again, &v, sizeof v);
    }
}

TEST(reals_are_the_same_in_every_locale)
{
    check_reals();
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
        check_reals();
        setlocale(LC_NUMERIC, "C");
    }
    double v = 0;
    EQ_I64(fth__number_real("-.inf", &v), FTH__NUMBER_OK);
    IS_TRUE(isinf(v) && v < 0);
    static const char *const bad[] = {"",    ".",    "e5",  "1e",   "1e+", "--1", "+-1", "1 ",
                                      " 1",  "0x",   "0xg", ".nan", "inf", "1_0", "1,5", "1.2.3",
                                      "ten", "1e1.", "0b1", "0o7",  "-",   "nan", "1d3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (fth__number_real(bad[i], &v) != FTH__NUMBER_NONE) FAIL("'%s' was a number", bad[i]);
    EQ_I64(fth__number_real("1e999", &v), FTH__NUMBER_HUGE);
    EQ_I64(fth__number_real("010", &v), FTH__NUMBER_ZERO);
    char *longest = many("1", 101);
    EQ_I64(fth__number_real(longest, &v), FTH__NUMBER_NONE);
    free(longest);
}

TEST(integers_are_exact)
{
    static const struct {
        const char *text;
        fth__number kind;
        int64_t v;
    } rows[] = {
        {"9223372036854775807", FTH__NUMBER_OK, INT64_MAX},
        {"-9223372036854775808", FTH__NUMBER_OK, INT64_MIN},
        {"9223372036854775808", FTH__NUMBER_HUGE, 0},
        {"-9223372036854775809", FTH__NUMBER_HUGE, 0},
        {"0x7fffffffffffffff", FTH__NUMBER_OK, INT64_MAX},
        {"0xffffffffffffffff", FTH__NUMBER_HUGE, 0},
        {"9007199254740993", FTH__NUMBER_OK, 9007199254740993},
        {"2e4", FTH__NUMBER_OK, 20000},
        {"3.0", FTH__NUMBER_OK, 3},
        {"-1.5e1", FTH__NUMBER_OK, -15},
        {"3.5", FTH__NUMBER_BROKEN, 0},
        {"1e-3", FTH__NUMBER_BROKEN, 0},
        {"1e16", FTH__NUMBER_HUGE, 0},
        {".inf", FTH__NUMBER_NONE, 0},
        {"007", FTH__NUMBER_ZERO, 0},
        {"x", FTH__NUMBER_NONE, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t v = 0;
        if (fth__number_int(rows[i].text, &v) != rows[i].kind) FAIL("'%s'", rows[i].text);
        if (rows[i].kind == FTH__NUMBER_OK) EQ_I64(v, rows[i].v);
    }
}

TEST(intervals)
{
    fth__interval i;
    IS_TRUE(fth__interval_parse("(0, 1]", &i));
    IS_TRUE(!fth__interval_has(&i, 0) && fth__interval_has(&i, 1e-300) && fth__interval_has(&i, 1));
    IS_TRUE(!fth__interval_has(&i, (double)NAN));
    IS_TRUE(fth__interval_parse("[1, inf)", &i));
    IS_TRUE(fth__interval_has(&i, 1e300) && !fth__interval_has(&i, (double)INFINITY));
    IS_TRUE(fth__interval_parse("[-inf,inf]", &i) && fth__interval_has(&i, -(double)INFINITY));
    IS_TRUE(fth__interval_parse(NULL, &i) && !fth__interval_has(&i, (double)INFINITY));
    static const char *const bad[] = {"",       "[1]",    "1, 2", "[1, 2",
                                      "[2, 1]", "[a, b]", "[,]",  ">= 1"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        if (fth__interval_parse(bad[k], &i)) FAIL("'%s' was an interval", bad[k]);
}

/* ---- files ---- */

TEST(files_are_read_and_refused)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_config *cfg = NULL;
    fth_err err = {0};
    OK(fth_config_create(&cfg, mem, NULL));
    const char *path = t_temp_path("x.yaml");
    t_file_write(path, "a: 1\nb.c: word\n", 15);
    OKE(fth_config_read(cfg, path, &err), &err);
    EQ_STR(fth_config_peek(cfg, "a"), "1");
    EQ_STR(fth_config_peek(cfg, "b.c"), "word");
    IS_TRUE(fth_config_peek(cfg, "b") == NULL && fth_config_peek(cfg, "b.c.d") == NULL);
    OK(fth_config_set(cfg, "a=2", NULL));
    EQ_STR(fth_config_peek(cfg, "a"), "2");
    IS(fth_config_read(cfg, t_temp_path("none.yaml"), NULL), FTH_E_FILE_OPEN);
    IS(fth_config_read(cfg, t_temp_dir(), NULL), FTH_E_FILE_OPEN);
    char *large = many("abcdefgh", (1 << 17) + 1);
    t_file_write(path, large, strlen(large));
    IS(fth_config_read(cfg, path, &err), FTH_E_CONFIG_SYNTAX);
    HAS(err.text, "is it a data file?");
    free(large);
    static const char *const bad[] = {"", "a", "=1", "a=[1", "a=\t- 1\n- *x", "a=\x80", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fth_err_clear(&err);
        IS(fth_config_set(cfg, bad[i], &err), FTH_E_CONFIG_SYNTAX);
        HAS(err.text, "--set #2: "); /* a failed one has no number of its own */
    }
    EQ_STR(fth_config_peek(cfg, "a"), "2");
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
