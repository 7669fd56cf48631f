/* test_over.c - several values in one text, and the names of folders made of them.
 * seconds: 1 */
#include "testing/test.h"

#include <fathom/config.h>

/* All values, each in angle brackets. */
static const char *split(const char *text)
{
    static char all[400];
    size_t n = 0, used = 0;
    const char *value;
    all[0] = '\0';
    for (int64_t i = 0; (value = fth_config_split(text, i, &n)) != NULL; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "<%.*s>", (int)n, value);
    return all;
}

TEST(commas_split_outside_of_quotes_and_brackets)
{
    EQ_STR(split("4"), "<4>");
    EQ_STR(split("4,8, 2e-3 ,x"), "<4><8><2e-3><x>");
    EQ_STR(split("'a,b',\"c,\\\",d\",e"), "<'a,b'><\"c,\\\",d\"><e>");
    EQ_STR(split("[1, 2],[3, [4, 5]],{a: 1, b: 2}"), "<[1, 2]><[3, [4, 5]]><{a: 1, b: 2}>");
    EQ_STR(split("'it''s, so',']',2"), "<'it''s, so'><']'><2>");
}

TEST(empty_and_damaged_texts_end)
{
    EQ_STR(split(""), "<>");
    EQ_STR(split("a,"), "<a><>");
    EQ_STR(split(",,"), "<><><>");
    EQ_STR(split("'open, and"), "<'open, and>");
    EQ_STR(split("[1, 2"), "<[1, 2>");
    EQ_STR(split("a],b"), "<a]><b>");
    EQ_STR(split("\"x\\"), "<\"x\\>");
}

TEST(names_are_fit_for_folders)
{
    char text[40];
    EQ_U64(fth_config_tag("model.n_components", "5,6", 1, text, sizeof text), 14);
    EQ_STR(text, "n_components-5");
    fth_config_tag("seed", "[1, 2]/../x", 11, text, sizeof text);
    EQ_STR(text, "seed-_1__2__.._x");
    EQ_U64(fth_config_tag("a.b", "0123456789", 10, text, 5), 12);
    EQ_STR(text, "b-01");
    EQ_U64(fth_config_tag("a.b", "1", 1, NULL, 0), 3);
}

TEST_MAIN()
