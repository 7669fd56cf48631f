/* width.c - characters of a terminal. The ranges are those of Unicode that people use in names:
 * marks that stand on the character before them, and the wide ones of East Asia and pictures. */
#include "text/width.h"

#include "base/assert.h"

typedef struct range {
    uint32_t first, last;
} range;

static const range marks[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},   {0x05bf, 0x05bf},   {0x05c1, 0x05c2},
    {0x05c4, 0x05c5}, {0x05c7, 0x05c7}, {0x0610, 0x061a},   {0x064b, 0x065f},   {0x0670, 0x0670},
    {0x06d6, 0x06dc}, {0x06df, 0x06e4}, {0x06e7, 0x06e8},   {0x06ea, 0x06ed},   {0x0900, 0x0902},
    {0x093a, 0x093a}, {0x093c, 0x093c}, {0x0941, 0x0948},   {0x094d, 0x094d},   {0x0e31, 0x0e31},
    {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1160, 0x11ff},   {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},
    {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0x302a, 0x302d},   {0x3099, 0x309a},   {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};
static const range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26a1, 0x26a1},
    {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},   {0x274c, 0x274c},
    {0x2753, 0x2755},   {0x2795, 0x2797},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},
    {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x17000, 0x18cff},
    {0x1b000, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f19a},
    {0x1f200, 0x1f320}, {0x1f32d, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
    {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};
/* Never written: controls, what turns the direction of a line, and line separators. */
static const range hidden[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x061c, 0x061c}, {0x200e, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfff9, 0xfffb},
};

static bool in_ranges(const range *r, size_t n, uint32_t code)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (code > r[mid].last)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && code >= r[low].first;
}
#define IN(list, code) in_ranges(list, sizeof(list) / sizeof(list)[0], code)

int fth__utf8_read(const char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    const int n = s[0] < 0x80             ? 1
                  : (s[0] & 0xe0) == 0xc0 ? 2
                  : (s[0] & 0xf0) == 0xe0 ? 3
                  : (s[0] & 0xf8) == 0xf0 ? 4
                                          : 0;
    if (n == 0) return 0;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0; /* the terminator ends here as well */
        c = c << 6 | (s[i] & 0x3f);
    }
    if (n > 1 && c < least[n]) return 0;
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return 0;
    *code = c;
    return n;
}

bool fth__glyph_next(const char **at, fth__glyph *out)
{
    const unsigned char first = (unsigned char)**at;
    if (first == 0) return false;
    *out = (fth__glyph){.text = *at, .bytes = 1, .columns = 1};
    if (first >= 0x20 && first < 0x7f) { /* nearly all of them */
        ++*at;
        return true;
    }
    uint32_t code = 0;
    const int n = fth__utf8_read(*at, &code);
    FTH_ASSERT(n >= 0 && n <= 4);
    *at += n ? n : 1;
    if (n == 0 || IN(hidden, code))
        out->text = "?";
    else
        *out = (fth__glyph){out->text, (size_t)n, IN(marks, code) ? 0 : IN(wide, code) ? 2 : 1};
    return true;
}

int64_t fth__text_columns(const char *text)
{
    int64_t columns = 0;
    for (fth__glyph g; fth__glyph_next(&text, &g);) columns += g.columns;
    return columns;
}
