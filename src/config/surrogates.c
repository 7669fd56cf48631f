/* surrogates.c - pairs of UTF-16 in a config: see surrogates.h. */
#include "config/surrogates.h"

#include "base/assert.h"

#include <string.h>

enum {
    PAIR = 12,             /* bytes of \ud83d\ude00 */
    MARK = 4,              /* of a mark in UTF-8 */
    LONG = 10,             /* of \U0001f600 */
    FIRST = 0xf0000,       /* private use: no text means anything by them */
    LAST = FIRST + 64 * 16 /* 64 rows are tried; a text that uses all of them keeps its pairs */
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "\uXXXX" */
static bool read_escape(const char *s, unsigned *out)
{
    if (s[0] != '\\' || s[1] != 'u') return false;
    *out = 0;
    for (int i = 2; i < 6; i++) {
        const int digit = hex_digit(s[i]);
        if (digit < 0) return false;
        *out = *out << 4 | (unsigned)digit;
    }
    return true;
}

static bool is_pair(const char *s, size_t left, unsigned *code)
{
    unsigned high, low;
    if (left < PAIR || !read_escape(s, &high) || !read_escape(s + 6, &low)) return false;
    if (high < 0xd800 || high > 0xdbff || low < 0xdc00 || low > 0xdfff) return false;
    *code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static void put_char(char *to, unsigned code)
{
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 63));
    to[2] = (char)(0x80 | (code >> 6 & 63));
    to[3] = (char)(0x80 | (code & 63));
}

/* The code of a character of four bytes in good UTF-8; 0: it has fewer. */
static unsigned read_char(const char *text, size_t left)
{
    const unsigned char *s = (const unsigned char *)text;
    if (left < MARK || s[0] < 0xf0) return 0;
    return (unsigned)(s[0] & 7) << 18 | (unsigned)(s[1] & 63) << 12 | (unsigned)(s[2] & 63) << 6 |
           (unsigned)(s[3] & 63);
}

/* 16 characters that the text does not hold; 0: it has taken all that are tried. */
static unsigned find_marks(const char *text, size_t bytes)
{
    for (unsigned first = FIRST; first < LAST; first += 16) {
        bool held = false;
        for (size_t i = 0; i < bytes && !held; i++)
            held = read_char(text + i, bytes - i) >> 4 == first >> 4;
        if (!held) return first;
    }
    return 0;
}

/* Bit i: hex digit i of the pair is a large letter. */
static unsigned read_case(const char *pair)
{
    static const int at[8] = {2, 3, 4, 5, 8, 9, 10, 11};
    unsigned bits = 0;
    for (int i = 0; i < 8; i++)
        if (pair[at[i]] >= 'A' && pair[at[i]] <= 'F') bits |= 1u << i;
    return bits;
}

static void put_hex(char *to, unsigned code, int digits)
{
    for (int i = digits; i-- > 0; code >>= 4) to[i] = "0123456789abcdef"[code & 15];
}

static void put_pair(char *to, unsigned code, unsigned bits)
{
    static const int at[8] = {2, 3, 4, 5, 8, 9, 10, 11};
    memcpy(to, "\\u....\\u....", PAIR);
    put_hex(to + 2, 0xd800 + ((code - 0x10000) >> 10), 4);
    put_hex(to + 8, 0xdc00 + ((code - 0x10000) & 0x3ff), 4);
    for (int i = 0; i < 8; i++)
        if (bits >> i & 1) to[at[i]] = (char)(to[at[i]] - 'a' + 'A');
}

const char *fth__surrogates_hide(fth__store *store, const char *text, size_t *bytes,
                                 unsigned *marks)
{
    size_t pairs = 0;
    unsigned code = 0;
    *marks = 0;
    for (size_t i = 0; i + PAIR <= *bytes; i++)
        if (text[i] == '\\') pairs += is_pair(text + i, *bytes - i, &code);
    if (pairs > 0) *marks = find_marks(text, *bytes);
    if (*marks == 0) return text;
    const size_t room = *bytes + pairs * (2 * MARK + LONG - PAIR) + 1;
    char *copy = fth__store_take(store, room);
    if (!copy) return NULL;
    size_t n = 0;
    for (size_t i = 0; i < *bytes;) {
        /* A backslash before it would make this one a character of its own. */
        const bool escaped = text[i] == '\\' && i + 1 < *bytes && text[i + 1] == '\\';
        if (text[i] == '\\' && is_pair(text + i, *bytes - i, &code)) {
            const unsigned bits = read_case(text + i);
            put_char(copy + n, *marks + (bits & 15));
            put_char(copy + n + MARK, *marks + (bits >> 4));
            memcpy(copy + n + 2 * MARK, "\\U", 2);
            put_hex(copy + n + 2 * MARK + 2, code, 8);
            n += 2 * MARK + LONG;
            i += PAIR;
            continue;
        }
        const size_t take = escaped ? 2 : 1;
        memcpy(copy + n, text + i, take);
        n += take;
        i += take;
    }
    FTH_ASSERT(n < room);
    *bytes = n;
    return copy;
}

/* A mark: its four bits; -1: it is none. */
static int read_mark(const char *s, size_t left, unsigned marks)
{
    const unsigned code = read_char(s, left);
    return code >> 4 == marks >> 4 ? (int)(code & 15) : -1;
}

char *fth__surrogates_show(fth__store *store, const char *text, size_t n, bool double_quoted,
                           unsigned marks)
{
    char *out = fth__store_text(store, text, n); /* it never becomes longer */
    size_t to = 0;
    if (!out || marks == 0) return out;
    for (size_t i = 0; i < n;) {
        const int low = read_mark(text + i, n - i, marks);
        if (low < 0) {
            out[to++] = text[i++];
            continue;
        }
        const int high = read_mark(text + i + MARK, n - i - MARK, marks);
        i += 2 * MARK;
        FTH_ASSERT(high >= 0 && i <= n); /* marks stand in pairs */
        if (double_quoted) continue;
        FTH_ASSERT(i + LONG <= n && text[i] == '\\' && text[i + 1] == 'U');
        unsigned code = 0;
        for (size_t k = 2; k < LONG; k++) code = code << 4 | (unsigned)hex_digit(text[i + k]);
        put_pair(out + to, code, (unsigned)low | (unsigned)high << 4);
        to += PAIR;
        i += LONG;
    }
    FTH_ASSERT(to <= n);
    out[to] = '\0';
    return out;
}
