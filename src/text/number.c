/* number.c - numbers and intervals as they are written; see number.h. */
#include "text/number.h"

#include "base/assert.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 100 }; /* characters of a number: 25 write any f64, the rest is for zeros */

static size_t count_digits(const char *s)
{
    size_t n = 0;
    while (isdigit((unsigned char)s[n])) n++;
    return n;
}

/* A sign may come first; returns what follows it. */
static const char *skip_sign(const char *s, bool *negative)
{
    *negative = *s == '-';
    return s + (*s == '-' || *s == '+');
}

static bool is_hex(const char *s)
{
    return s[0] == '0' && s[1] == 'x' && s[2] != '\0' &&
           strspn(s + 2, "0123456789abcdefABCDEF") == strlen(s + 2);
}

/* digits[.digits][e[sign]digits], where one side of the point may be empty. */
static fth__number is_decimal(const char *s)
{
    const size_t whole = count_digits(s);
    const char *rest = s + whole;
    size_t part = 0;
    if (*rest == '.') part = count_digits(++rest), rest += part;
    if (whole + part == 0) return FTH__NUMBER_NONE;
    if (*rest == 'e' || *rest == 'E') {
        bool sign;
        rest = skip_sign(rest + 1, &sign);
        const size_t n = count_digits(rest);
        if (n == 0) return FTH__NUMBER_NONE;
        rest += n;
    }
    if (*rest) return FTH__NUMBER_NONE;
    return whole > 1 && s[0] == '0' ? FTH__NUMBER_ZERO : FTH__NUMBER_OK;
}

/* strtod takes the point of the program's locale, so it is given that one. */
static double read_decimal(const char *s)
{
    char probe[16], copy[LONGEST + 16];
    snprintf(probe, sizeof probe, "%.1f", 1.5); /* 1<point>5 */
    const size_t point = strlen(probe) - 2;
    fth__text t;
    fth__text_init(&t, copy, sizeof copy);
    for (; *s; s++)
        if (*s == '.')
            fth__text_add_chars(&t, probe + 1, point);
        else
            fth__text_add_chars(&t, s, 1);
    FTH_ASSERT(!fth__text_is_cut(&t));
    return strtod(copy, NULL);
}

static fth__number read_real(const char *text, double *out)
{
    bool negative;
    const char *s = skip_sign(text, &negative);
    double v = 0;
    fth__number kind = FTH__NUMBER_OK;
    if (strlen(s) > LONGEST)
        return FTH__NUMBER_NONE;
    else if (strcmp(s, ".inf") == 0 || strcmp(s, ".Inf") == 0 || strcmp(s, ".INF") == 0)
        v = (double)INFINITY;
    else if (is_hex(s))
        for (const char *h = s + 2; *h; h++)
            v = v * 16 + (isdigit((unsigned char)*h) ? *h - '0' : tolower(*h) - 'a' + 10);
    else if ((kind = is_decimal(s)) == FTH__NUMBER_OK && isinf(v = read_decimal(s)))
        kind = FTH__NUMBER_HUGE;
    *out = negative ? -v : v;
    return kind;
}

fth__number fth__number_real(const char *text, double *out)
{
    double v;
    const fth__number kind = read_real(text, &v);
    if (kind == FTH__NUMBER_OK) *out = v;
    return kind;
}

fth__number fth__number_int(const char *text, int64_t *out)
{
    bool negative;
    const char *s = skip_sign(text, &negative);
    double real;
    const fth__number kind = read_real(text, &real);
    if (kind != FTH__NUMBER_OK) return kind;
    const int base = is_hex(s) ? 16 : 10;
    const char *digits = base == 16 ? s + 2 : s;
    if (base == 16 || s[count_digits(s)] == '\0') { /* exact, all 64 bits */
        int64_t v = 0;
        for (; *digits; digits++) {
            const int d =
                isdigit((unsigned char)*digits) ? *digits - '0' : tolower(*digits) - 'a' + 10;
            if (__builtin_mul_overflow(v, base, &v) ||
                __builtin_add_overflow(v, negative ? -d : d, &v))
                return FTH__NUMBER_HUGE;
        }
        *out = v;
        return FTH__NUMBER_OK;
    }
    if (isinf(real)) return FTH__NUMBER_NONE;
    if (real != floor(real)) return FTH__NUMBER_BROKEN;
    if (fabs(real) > 9007199254740992.0) return FTH__NUMBER_HUGE; /* 2^53: not sure to be exact */
    *out = (int64_t)real;
    return FTH__NUMBER_OK;
}

void fth__number_print(fth__text *t, double v)
{
    fth__number_print_digits(t, v, 0);
}

void fth__number_print_digits(fth__text *t, double v, int digits)
{
    if (isinf(v)) {
        fth__text_add(t, v < 0 ? "-.inf" : ".inf");
        return;
    }
    char text[40];
    for (int n = digits > 0 ? digits : 15; n <= 17; n++) {
        snprintf(text, sizeof text, "%.*g", n, v);
        if (digits > 0 || strtod(text, NULL) == v) break;
    }
    for (const char *s = text; *s; s++)
        if (isalnum((unsigned char)*s) || *s == '-' || *s == '+')
            fth__text_add_chars(t, s, 1);
        else if (s[1] && isdigit((unsigned char)s[1])) /* the last byte of the locale's point */
            fth__text_add_chars(t, ".", 1);
}

/* A bound up to `end`, or inf or -inf. */
static bool read_bound(const char *s, const char *end, double *out)
{
    char text[40];
    while (*s == ' ') s++;
    while (end > s && end[-1] == ' ') end--;
    if (end - s >= (ptrdiff_t)sizeof text) return false;
    memcpy(text, s, (size_t)(end - s));
    text[end - s] = '\0';
    if (strcmp(text, "inf") == 0) return *out = (double)INFINITY, true;
    if (strcmp(text, "-inf") == 0) return *out = -(double)INFINITY, true;
    return fth__number_real(text, out) == FTH__NUMBER_OK;
}

bool fth__interval_parse(const char *text, fth__interval *out)
{
    *out = (fth__interval){-(double)INFINITY, (double)INFINITY, false, false};
    if (!text) return true;
    const size_t n = strlen(text);
    const char *comma = strchr(text, ',');
    if (n < 5 || !comma || !strchr("[(", text[0]) || !strchr("])", text[n - 1])) return false;
    out->low_in = text[0] == '[';
    out->high_in = text[n - 1] == ']';
    return read_bound(text + 1, comma, &out->low) &&
           read_bound(comma + 1, text + n - 1, &out->high) && out->low <= out->high;
}

bool fth__interval_has(const fth__interval *i, double v)
{
    return (i->low_in ? v >= i->low : v > i->low) && (i->high_in ? v <= i->high : v < i->high);
}
