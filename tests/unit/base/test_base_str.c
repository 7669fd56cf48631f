/* test_base_str.c - bounded texts, hashes, checked arithmetic, bits, clock. seconds: 1 */
#include "testing/test.h"

#include "base/bits.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"

TEST(text_grows_and_counts)
{
    char b[16];
    fth__text t;
    fth__text_init(&t, b, sizeof b);
    EQ_STR(b, "");
    fth__text_add(&t, "%d", 12345);
    fth__text_add_chars(&t, "abc", 3);
    EQ_STR(b, "12345abc");
    IS_TRUE(!fth__text_is_cut(&t));
    fth__text_add(&t, "%s", "0123456789");
    EQ_STR(b, "12345abc0123456");
    EQ_U64(t.wanted, 18);
    IS_TRUE(fth__text_is_cut(&t));
    fth__text_add(&t, "later");
    fth__text_add_chars(&t, "x", 1);
    EQ_STR(b, "12345abc0123456");
    EQ_U64(t.wanted, 24);
    fth__text_mark_cut(&t);
    EQ_STR(b, "12345abc0123...");
}

TEST(text_of_exactly_the_size_is_not_cut)
{
    char b[4];
    fth__text t;
    fth__text_init(&t, b, sizeof b);
    fth__text_add(&t, "abc");
    IS_TRUE(!fth__text_is_cut(&t));
    fth__text_mark_cut(&t);
    EQ_STR(b, "abc");
    fth__text_add_chars(&t, "d", 1);
    IS_TRUE(fth__text_is_cut(&t));
    fth__text_mark_cut(&t);
    EQ_STR(b, "...");
}

TEST(text_without_a_buffer_only_counts)
{
    fth__text t;
    fth__text_init(&t, NULL, 100);
    fth__text_add(&t, "%s", "hello");
    fth__text_add_chars(&t, "you", 3);
    fth__text_mark_cut(&t);
    EQ_U64(t.wanted, 8);
    char one[1] = {'q'};
    fth__text_init(&t, one, 1);
    fth__text_add(&t, "hello");
    EQ_STR(one, "");
}

/* A half character made a whole JSON report unreadable. */
TEST(cuts_fall_between_characters)
{
    const char *s = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1, 2, 3, 4 bytes and one more */
    const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
    for (size_t room = 0; room <= 11; room++) {
        char b[16], c[16];
        fth__str_copy(b, room + 1, s);
        EQ_U64(strlen(b), ends[room]);
        fth__text t;
        fth__text_init(&t, c, room + 1);
        fth__text_add(&t, "%s", s);
        EQ_STR(c, b);
    }
    const size_t tails[] = {0, 1, 1, 1, 1, 5, 5, 5, 8, 8, 10, 11};
    for (size_t room = 0; room <= 11; room++) {
        char b[16];
        fth__str_copy_tail(b, room + 1, s);
        EQ_U64(strlen(b), tails[room]);
        EQ_STR(b, s + 11 - tails[room]);
    }
}

TEST(copies_take_null_and_nothing)
{
    char b[8] = "old";
    fth__str_copy(b, sizeof b, NULL);
    EQ_STR(b, "");
    fth__str_copy_tail(b, sizeof b, "/long/path/x.c");
    EQ_STR(b, "ath/x.c");
    fth__str_copy_tail(b, sizeof b, NULL);
    EQ_STR(b, "");
    fth__str_copy(NULL, 0, "x");
}

TEST(lines_are_indented)
{
    char b[64];
    fth__text t;
    fth__text_init(&t, b, sizeof b);
    fth__text_add_indented(&t, "one\ntwo\n\nfour\n", 3);
    EQ_STR(b, "one\n   two\n   \n   four");
}

/* Known answers of the public algorithm. */
TEST(xxh64_gives_its_known_answers)
{
    EQ_U64(fth__hash_bytes("", 0, 0), UINT64_C(0xef46db3751d8e999));
    EQ_U64(fth__hash_bytes(NULL, 0, 0), UINT64_C(0xef46db3751d8e999));
    EQ_U64(fth__hash_bytes("a", 1, 0), UINT64_C(0xd24ec4f1a98c6e5b));
    EQ_U64(fth_hash_bytes("a", 1, 0), UINT64_C(0xd24ec4f1a98c6e5b));
    EQ_U64(fth__hash_str("abc", 0), UINT64_C(0x44bc2cf5ad770999));
    EQ_U64(fth__hash_str(NULL, 0), UINT64_C(0xef46db3751d8e999));
    IS_TRUE(fth__hash_str("abc", 1) != fth__hash_str("abc", 0));
    char hex[17];
    fth__hash_hex(UINT64_C(0x00ef46db3751d8e9), hex);
    EQ_STR(hex, "00ef46db3751d8e9");
}

TEST(pieces_hash_like_the_whole)
{
    uint8_t data[1000];
    t_random r = t_random_make(1);
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)t_random_u64(&r);
    const uint64_t whole = fth__hash_bytes(data, sizeof data, 7);
    for (int rep = 0; rep < 50; rep++) {
        fth__hash h;
        fth__hash_init(&h, 7);
        for (size_t at = 0; at < sizeof data;) {
            size_t n = (size_t)t_random_i64(&r, 0, 100);
            if (n > sizeof data - at) n = sizeof data - at;
            fth__hash_add(&h, data + at, n);
            at += n;
        }
        EQ_U64(fth__hash_get(&h), whole);
        EQ_U64(fth__hash_get(&h), whole); /* asking changes nothing */
    }
}

TEST(arithmetic_says_when_it_overflows)
{
    int64_t i = 5;
    uint64_t u = 5;
    IS_TRUE(fth__mul_i64(INT64_MAX, 1, &i) && i == INT64_MAX);
    IS_TRUE(!fth__mul_i64(INT64_MAX / 2 + 1, 2, &i) && i == INT64_MAX);
    IS_TRUE(!fth__mul_i64(INT64_MIN, -1, &i));
    IS_TRUE(!fth__add_i64(INT64_MAX, 1, &i));
    IS_TRUE(!fth__sub_i64(INT64_MIN, 1, &i));
    IS_TRUE(fth__sub_i64(3, 5, &i) && i == -2);
    IS_TRUE(fth__mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &u));
    IS_TRUE(!fth__mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &u));
    IS_TRUE(!fth__add_u64(UINT64_MAX, 1, &u));
    IS_TRUE(!fth__sub_u64(1, 2, &u));
}

TEST(narrowing_says_when_it_does_not_fit)
{
    int64_t i = 7;
    IS_TRUE(!fth__u64_to_i64((uint64_t)INT64_MAX + 1, &i) && i == 7);
    IS_TRUE(fth__u64_to_i64(INT64_MAX, &i) && i == INT64_MAX);
}

TEST(rounding)
{
    uint64_t u = 1;
    IS_TRUE(fth__round_up_u64(0, 64, &u) && u == 0);
    IS_TRUE(fth__round_up_u64(1, 64, &u) && u == 64);
    IS_TRUE(fth__round_up_u64(64, 64, &u) && u == 64);
    IS_TRUE(fth__round_up_u64(10, 3, &u) && u == 12);
    IS_TRUE(!fth__round_up_u64(UINT64_MAX, 64, &u) && u == 12);
    IS_TRUE(fth__round_up_u64(UINT64_MAX - 63, 64, &u) && u == UINT64_MAX - 63);
    EQ_U64(fth__round_down_u64(127, 64), 64);
    EQ_I64(fth__ceil_div_i64(INT64_MAX, 2), INT64_C(4611686018427387904));
    EQ_I64(fth__ceil_div_i64(0, 5), 0);
}

TEST(bits)
{
    IS_TRUE(!fth__is_pow2_u64(0) && fth__is_pow2_u64(1) && !fth__is_pow2_u64(12));
    IS_TRUE(fth__is_aligned((void *)(uintptr_t)128, 64));
    IS_TRUE(!fth__is_aligned((void *)(uintptr_t)96, 64));
}

TEST(the_clock_moves_forward)
{
    int64_t last = fth__clock_ns();
    for (int i = 0; i < 1000; i++) {
        const int64_t now = fth__clock_ns();
        IS_TRUE(now >= last);
        last = now;
    }
    NEAR(fth__clock_seconds(), (double)last * 1e-9, 1.0);
}

TEST(what_steers_a_terminal_is_taken_out)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"plain \xc3\xa9 \xf0\x9f\x98\x80\n\ttext", "plain \xc3\xa9 \xf0\x9f\x98\x80\n\ttext"},
        {"\x1b[2J\x07\r\x7f", "?[2J???"},
        {"a\xc2\x9b\x9b\xc2\xa0z", "a???\xc2\xa0z"},
        {"\xe2\x80\xae\xe2\x81\xa6\xe2\x82\xac", "??????\xe2\x82\xac"},
        {"\xff\xe2\x82", "???"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        strcpy(text, rows[i].from);
        fth__str_make_plain(text);
        EQ_STR(text, rows[i].to);
    }
    fth_err err = {0};
    FTH_FAIL(&err, FTH_E_FILE_OPEN, "%s", "a\x1b[2J");
    fth_err_hint(&err, "%s", "\x9b");
    EQ_STR(err.text, "a?[2J");
    EQ_STR(err.hint, "?");
}

TEST_MAIN()
