/* over.c - several values of one key in one text, "4,8,'a,b',[1, 2]", and names made of them. */
#include <fathom/config.h>

#include <string.h>

/* Behind the value that starts at `s`: a comma outside of quotes and brackets, or the end. */
static const char *skip_value(const char *s)
{
    int depth = 0;
    char quote = 0;
    for (; *s; s++) {
        if (quote == '"' && *s == '\\' && s[1]) {
            s++;
        } else if (quote) {
            if (*s == quote) quote = 0;
        } else if (*s == '"' || *s == '\'') {
            quote = *s;
        } else if (*s == '[' || *s == '{') {
            depth++;
        } else if (*s == ']' || *s == '}') {
            depth--;
        } else if (*s == ',' && depth <= 0) {
            break;
        }
    }
    return s;
}

const char *fth_config_split(const char *values, int64_t i, size_t *length)
{
    const char *start = values;
    for (; i > 0; i--) {
        start = skip_value(start);
        if (!*start) return NULL;
        start++;
    }
    const char *end = skip_value(start);
    start += strspn(start, " ");
    while (end > start && end[-1] == ' ') end--;
    *length = (size_t)(end - start);
    return start;
}

size_t fth_config_tag(const char *key, const char *value, size_t length, char *text, size_t bytes)
{
    const char *dot = strrchr(key, '.');
    const int n = snprintf(text, bytes, "%s-%.*s", dot ? dot + 1 : key, (int)length, value);
    for (char *c = text; bytes > 0 && *c; c++) {
        const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                           (*c >= '0' && *c <= '9') || *c == '.' || *c == '-' || *c == '_';
        if (!plain) *c = '_';
    }
    return n < 0 ? 0 : (size_t)n;
}
