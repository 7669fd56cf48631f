/* nested.c - see nested.h. Damaged texts are left to the parser that reads what is kept. */
#include "nested.h"

#include "settings.h"

#include <string.h>

static const char blanks[] = " \t\r\n";

/* One member of an object, by where its parts begin and end. */
typedef struct member {
    char *key, *value, *end; /* the key: behind its quote; end: behind the comma, where one is */
    size_t key_bytes;
} member;

/* Behind a text in quotes. */
static char *skip_text(char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

/* Behind a value: to the comma or the end of the object around it. */
static char *skip_value(char *at)
{
    for (int depth = 0; *at; at++) {
        if (*at == '"') {
            at = skip_text(at) - 1;
            continue;
        }
        if (depth == 0 && strchr(",]}", *at)) return at;
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
    }
    return at;
}

static char *skip_blanks(char *at)
{
    return at + strspn(at, blanks);
}

/* The member that begins here or behind blanks; false: there is none. */
static bool read_member(char *at, member *m)
{
    at = skip_blanks(at);
    if (*at != '"') return false;
    char *end = skip_text(at);
    *m = (member){.key = at + 1, .key_bytes = (size_t)(end - at) - 2};
    at = skip_blanks(end);
    if (*at != ':' || end - m->key < 1) return false;
    m->value = skip_blanks(at + 1);
    m->end = skip_value(m->value);
    m->end += *m->end == ',';
    return true;
}

static bool is_key(const member *m, const char *name)
{
    return strlen(name) == m->key_bytes && memcmp(m->key, name, m->key_bytes) == 0;
}

static bool find(char *text, const char *name, member *m)
{
    char *at = skip_blanks(text);
    if (*at != '{') return false;
    for (at++; read_member(at, m); at = m->end)
        if (is_key(m, name)) return *m->value == '{';
    return false;
}

static void blank(char *from, const char *to)
{
    for (; from < to; from++)
        if (*from != '\n' && *from != '\r') *from = ' ';
}

bool gs_nested_is(const char *text)
{
    member m;
    return find((char *)(size_t)text, "optimization", &m); /* it only looks */
}

const char *gs_nested_stranger(const char *text)
{
    static const char *const known[] = {"optimization", "dataset", "library", "timestamp"};
    member m;
    char *at = skip_blanks((char *)(size_t)text);
    for (at += *at == '{'; read_member(at, &m); at = m.end) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            is_known = is_known || is_key(&m, known[i]);
        if (!is_known) return m.key;
    }
    return NULL;
}

static bool is_option(const member *m)
{
    for (const gs_option *o = gs_options; o->key; o++)
        if (is_key(m, o->key)) return true;
    return false;
}

bool gs_nested_keep(char *text, const char *section)
{
    member m, inner;
    if (!find(text, section, &m)) return false;
    char *end = skip_value(m.value);
    blank(text, m.value);
    blank(end, end + strlen(end));
    if (strcmp(section, "dataset") != 0) return true;
    for (char *at = m.value + 1; read_member(at, &inner); at = inner.end)
        if (!is_option(&inner)) blank(inner.key - 1, inner.end);
    return true;
}
