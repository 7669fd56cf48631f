/* str.c - bounded text building; see str.h. */
#include "base/str.h"

#include "base/assert.h"

#include <stdarg.h>
#include <string.h>

/* Length of the longest prefix of s[0..n) that does not end inside a UTF-8 character. */
static size_t whole_chars(const char *s, size_t n)
{
    size_t start = n;
    while (start > 0 && n - start < 4) {
        const unsigned char c = (unsigned char)s[start - 1];
        start--;
        if ((c & 0xc0) == 0x80) continue; /* a continuation byte: its start is further left */
        const size_t need = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return need <= n - start ? n : start;
    }
    return n; /* not UTF-8: nothing to protect */
}

size_t fth__utf8_length(const char *text, size_t left)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return 1;
    const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0;  /* a longer form of a shorter one */
    if (s[0] == 0xed && s[1] >= 0xa0) return 0; /* half of a pair of UTF-16 */
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;
    if (s[0] == 0xf4 && s[1] >= 0x90) return 0; /* beyond the last character */
    return n;
}

size_t fth__utf8_bom(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

void fth__str_make_plain(char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        const unsigned char *s = (const unsigned char *)text;
        const size_t n = fth__utf8_length(text, left), taken = n > 0 ? n : 1;
        const bool control = (s[0] < 0x20 && s[0] != '\n' && s[0] != '\t') || s[0] == 0x7f;
        const bool high = n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
        const bool turns = n == 3 && s[0] == 0xe2 &&
                           ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
                            (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
        FTH_ASSERT(taken <= left);
        if (n == 0 || control || high || turns) memset(text, '?', taken);
        text += taken;
        left -= taken;
    }
}

void fth__text_init(fth__text *t, char *data, size_t bytes)
{
    *t = (fth__text){.data = data, .bytes = data ? bytes : 0};
    if (t->bytes > 0) data[0] = '\0';
}

void fth__text_add_chars(fth__text *t, const char *chars, size_t n)
{
    const bool open = !fth__text_is_cut(t); /* after a cut nothing more may follow the gap */
    t->wanted += n;
    if (!open || t->bytes == 0) return;
    FTH_ASSERT(t->used < t->bytes);
    const size_t room = t->bytes - 1 - t->used;
    const size_t take = n <= room ? n : whole_chars(chars, room);
    memcpy(t->data + t->used, chars, take);
    t->used += take;
    t->data[t->used] = '\0';
}

void fth__text_addv(fth__text *t, const char *fmt, va_list args)
{
    const bool open = !fth__text_is_cut(t);
    const size_t room = open && t->bytes > 0 ? t->bytes - t->used : 0;
    const int n = vsnprintf(room ? t->data + t->used : NULL, room, fmt, args);
    if (n < 0) { /* an encoding the C library refuses; keep what we have */
        if (room) t->data[t->used] = '\0';
        return;
    }
    t->wanted += (size_t)n;
    if (room == 0) return;
    const bool fits = (size_t)n < room;
    FTH_ASSERT(t->used + (fits ? (size_t)n : room - 1) < t->bytes);
    t->used += fits ? (size_t)n : whole_chars(t->data + t->used, room - 1);
    t->data[t->used] = '\0';
}

void fth__text_add(fth__text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fth__text_addv(t, fmt, args);
    va_end(args);
}

void fth__text_add_indented(fth__text *t, const char *s, int indent)
{
    while (*s) {
        const char *end = strchr(s, '\n');
        const size_t n = end ? (size_t)(end - s) : strlen(s);
        fth__text_add_chars(t, s, n);
        if (!end) return;
        if (end[1] == '\0') return; /* a break at the very end is the caller's business */
        fth__text_add(t, "\n%*s", indent, "");
        s = end + 1;
    }
}

bool fth__text_is_cut(const fth__text *t)
{
    return t->wanted != t->used;
}

void fth__text_mark_cut(fth__text *t)
{
    if (!fth__text_is_cut(t) || t->bytes < 4) return;
    size_t at = t->used;
    if (at + 3 > t->bytes - 1) at = whole_chars(t->data, t->bytes - 4);
    FTH_ASSERT(at + 4 <= t->bytes);
    memcpy(t->data + at, "...", 4);
    t->used = at + 3;
    if (t->wanted <= t->used) t->wanted = t->used + 1; /* it stays a cut text */
}

void fth__str_copy(char *to, size_t bytes, const char *from)
{
    fth__text t;
    fth__text_init(&t, to, bytes);
    if (from) fth__text_add_chars(&t, from, strlen(from));
}

void fth__str_copy_tail(char *to, size_t bytes, const char *from)
{
    if (!from) from = "";
    size_t n = strlen(from);
    if (bytes > 0 && n > bytes - 1) {
        from += n - (bytes - 1);
        while (((unsigned char)*from & 0xc0) == 0x80) from++;
    }
    fth__str_copy(to, bytes, from);
}
