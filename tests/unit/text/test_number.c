/* test_number.c - numbers as text: whole texts, edges of double, every locale. seconds: 1 */
#include "testing/test.h"

#include "text/number.h"

#include <fathom/number.h>

#include <locale.h>
#include <math.h>

static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8"};

/* Where no other locale is installed only C is tried. */
#define FOR_LOCALES(l)                                                                             \
    for (size_t l = 0; l < 3; setlocale(LC_NUMERIC, "C"), l++)                                     \
        if (setlocale(LC_NUMERIC, locales[l]))

TEST(a_text_is_one_number_or_none)
{
    static const struct {
        const char *text;
        double v;
    } good[] = {{"1.5", 1.5},
                {" -2.5e3", -2500},
                {".5", 0.5},
                {"0x1p-3", 0.125},
                {"5e-324", 5e-324},
                {"1e999", (double)INFINITY},
                {"-inf", -(double)INFINITY},
                {"0.30000000000000004", 0.1 + 0.2}};
    static const char *const bad[] = {"", " ", "1,5", "1.5x", "x", "1 ", "--1", "1.5.2"};
    FOR_LOCALES(l)
    {
        double v = 7;
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
            if (!fth_real_parse(good[i].text, &v)) FAIL("%s in %s", good[i].text, locales[l]);
            EQ_F64(v, good[i].v);
        }
        v = 7;
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            if (fth_real_parse(bad[i], &v)) FAIL("\"%s\" is a number in %s", bad[i], locales[l]);
        IS_TRUE(!fth_real_parse(NULL, &v));
        EQ_F64(v, 7);
        IS_TRUE(fth_real_parse("nan", &v) && isnan(v));
    }
}

TEST(the_start_of_a_text_is_read_up_to_its_end)
{
    FOR_LOCALES(l)
    {
        const char *end = NULL, *text = "2.25,3.5";
        EQ_F64(fth_strtod(text, &end), 2.25);
        EQ_STR(end, ",3.5");
        EQ_F64(fth_strtod(end + 1, &end), 3.5);
        EQ_STR(end, "");
        EQ_F64(fth_strtod("7e", &end), 7);
        EQ_STR(end, "e");
        EQ_F64(fth_strtod("12", NULL), 12);
    }
}

TEST(whole_numbers_fit_or_are_none)
{
    int64_t v = 7;
    IS_TRUE(fth_int_parse("-9223372036854775808", &v) && v == INT64_MIN);
    IS_TRUE(fth_int_parse(" +42", &v) && v == 42);
    static const char *const bad[] = {"9223372036854775808", "-9223372036854775809", "1.0", "",
                                      "4 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (fth_int_parse(bad[i], &v)) FAIL("\"%s\" is a whole number", bad[i]);
    IS_TRUE(!fth_int_parse(NULL, &v));
    EQ_I64(v, 42);
}

TEST(what_is_written_reads_back)
{
    static const double values[] = {0.1,    -1.0 / 3, 1e22, 5e-324, 1.7976931348623157e308,
                                    100000, 0.5};
    char text[FTH_NUMBER];
    FOR_LOCALES(l)
    {
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            for (int digits = 0; digits <= 17; digits += 17) {
                double v = 0;
                IS_TRUE(
                    fth_real_parse(fth_number_format(text, sizeof text, values[i], digits), &v));
                EQ_F64(v, values[i]);
            }
        EQ_STR(fth_number_format(text, sizeof text, 2.0 / 3, 3), "0.667");
        EQ_STR(fth_number_format(text, sizeof text, 100000, 1), "1e+05");
        EQ_STR(fth_number_format(text, sizeof text, 0.1, 17), "0.10000000000000001");
    }
    EQ_STR(fth_number_format(text, sizeof text, (double)NAN, 17), "nan");
    EQ_STR(fth_number_format(text, sizeof text, (double)INFINITY, 0), "inf");
    EQ_STR(fth_number_format(text, sizeof text, -(double)INFINITY, 0), "-inf");
    EQ_STR(fth_number_format(text, 4, 1.25, 0), "1.2"); /* cut, and terminated */
}

TEST(numbers_of_configs_at_their_edges)
{
    double real = 0;
    int64_t v = 0;
    EQ_I64(fth__number_real("01", &real), FTH__NUMBER_ZERO);
    EQ_I64(fth__number_real("0", &real), FTH__NUMBER_OK);
    EQ_I64(fth__number_int("9007199254740992.0", &v), FTH__NUMBER_OK);
    EQ_I64(v, 9007199254740992);
    EQ_I64(fth__number_int("9007199254740994.0", &v), FTH__NUMBER_HUGE);
}

TEST(intervals_at_their_edges)
{
    fth__interval i;
    char text[64];
    IS_TRUE(fth__interval_parse("[0,1]", &i)); /* the shortest */
    IS_TRUE(fth__interval_parse("[ 0 , 2 )", &i));
    IS_TRUE(i.high == 2 && fth__interval_has(&i, 0) && !fth__interval_has(&i, 2));
    for (int n = 39; n <= 40; n++) { /* the longest bound, and one more */
        snprintf(text, sizeof text, "[0.%0*d,1]", n - 2, 1);
        IS_TRUE(fth__interval_parse(text, &i) == (n == 39));
    }
}

TEST_MAIN()
