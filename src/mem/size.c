/* size.c - sizes as people write and read them. Units are powers of 1024. */
#include <fathom/memory.h>

#include "base/checked.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

static const struct {
    const char *name;
    int shift; /* -1: percent of what is free */
} units[] = {
    {"", 0},     {"B", 0},   {"K", 10},   {"KB", 10},  {"KIB", 10},
    {"M", 20},   {"MB", 20}, {"MIB", 20}, {"G", 30},   {"GB", 30},
    {"GIB", 30}, {"T", 40},  {"TB", 40},  {"TIB", 40}, {"%", -1},
};

static int find_unit(const char *s)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const char *u = units[i].name, *t = s;
        while (*u && toupper((unsigned char)*t) == *u) u++, t++;
        if (!*u && !*t) return (int)i;
    }
    return -1;
}

/* Digits, and up to six of them after a point, as a number of millionths. Not strtod: the
 * locale would decide what a point is. Returns what follows, NULL when it is no number. */
static const char *read_millionths(const char *s, wide *out)
{
    wide v = 0;
    int digits = 0, decimals = 0;
    for (; isdigit((unsigned char)*s); s++, digits++) {
        if (digits >= 20) return NULL;
        v = v * 10 + (unsigned)(*s - '0');
    }
    if (*s == '.')
        for (s++; isdigit((unsigned char)*s); s++, decimals++) {
            if (decimals >= 6) return NULL;
            v = v * 10 + (unsigned)(*s - '0');
        }
    if (digits + decimals == 0) return NULL;
    for (; decimals < 6; decimals++) v *= 10;
    *out = v;
    return s;
}

static fth_status refuse(fth_err *err, const char *text, const char *why)
{
    const fth_status status = FTH_FAIL(err, FTH_E_USAGE, "'%.60s' is not a size: %s", text, why);
    fth_err_hint(err, "write 512M, 1.5G, 2GiB, 50%% or a number of bytes");
    return status;
}

fth_status fth_mem_parse_size(const char *text, uint64_t free_bytes, uint64_t *out, fth_err *err)
{
    if (!text || !out) return FTH_FAIL(err, FTH_E_USAGE, "a size was asked for without a text");
    const char *s = text;
    while (*s == ' ') s++;
    wide v = 0;
    s = read_millionths(s, &v);
    if (!s) return refuse(err, text, "wanted a number, with at most six decimals");
    while (*s == ' ') s++;
    const int unit = find_unit(s);
    if (unit < 0) return refuse(err, text, "the unit must be one of K M G T, KiB MiB GiB TiB or %");
    const int shift = units[unit].shift;
    const wide million = 1000000;
    if (shift < 0 && v > 100 * million) return refuse(err, text, "more than 100 %");
    v = shift < 0 ? v * free_bytes / (100 * million) : (v << shift) / million;
    if (v > (wide)INT64_MAX) return refuse(err, text, "it does not fit in 63 bits");
    if (v == 0) return refuse(err, text, "it is less than one byte");
    *out = (uint64_t)v;
    return FTH_OK;
}

const char *fth_mem_format_size(uint64_t bytes, char *text, size_t text_bytes)
{
    static const char *const name[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    fth__text t;
    fth__text_init(&t, text, text_bytes);
    double v = (double)bytes;
    int u = 0;
    /* 1023.995 would print as 1024.00 */
    while (u < 6 && v >= (u == 0 ? 1024.0 : 1023.995)) v /= 1024, u++;
    if (u == 0)
        fth__text_add(&t, "%llu B", (unsigned long long)bytes);
    else
        fth__text_add(&t, "%.2f %s", v, name[u]);
    for (size_t i = 0; i < t.used; i++)
        if (text[i] == ',') text[i] = '.'; /* the same text in every locale */
    return text;
}
