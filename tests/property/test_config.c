/* test_config.c - random tables with random values, through files and canonical text.
 *
 * Each value is written by this file in one of several ways (nested or dotted, YAML or JSON,
 * escaped or not), must be read as exactly what it is, and again from the canonical text.
 * seconds: 5 */
#include "testing/io/files.h"

#include <fathom/config.h>
#include <math.h>

enum { KEYS = 24, ITEMS = 4, TEXT = 24, ROUNDS = 400 };

typedef struct item {
    bool truth;
    int64_t integer;
    double real;
    uint64_t size;
    char text[4 * TEXT + 1];
} item;

typedef struct world {
    t_random r;
    fth_config_key key[KEYS];
    char name[KEYS][40], value[KEYS][2000];
    bool given[KEYS], written[KEYS];
    int64_t n_items[KEYS];
    item items[KEYS][ITEMS];
    char file[KEYS * 2100];
} world;

static int64_t pick(world *w, int64_t n)
{
    return t_random_i64(&w->r, 0, n - 1);
}

/* ---- values ---- */

static void random_text(world *w, char *text)
{
    static const unsigned odd[] = {'\t', '\n', ' ',      '"',  '\'',   '\\',   ':',    '#',
                                   '$',  0x7f, 0x85,     0xa0, 0x2028, 0xfeff, 0xfffe, 0x1f600,
                                   '~',  '{',  0x10ffff, 0xe9, '&',    '*',    '%',    '1'};
    int n = (int)pick(w, TEXT);
    while (n-- > 0) {
        const unsigned c = pick(w, 2) ? odd[pick(w, 24)] : (unsigned)t_random_i64(&w->r, 'a', 'z');
        if (c < 0x80) {
            *text++ = (char)c;
        } else if (c < 0x800) {
            *text++ = (char)(0xc0 | c >> 6);
            *text++ = (char)(0x80 | (c & 63));
        } else {
            if (c < 0x10000)
                *text++ = (char)(0xe0 | c >> 12);
            else
                *text++ = (char)(0xf0 | c >> 18), *text++ = (char)(0x80 | (c >> 12 & 63));
            *text++ = (char)(0x80 | (c >> 6 & 63));
            *text++ = (char)(0x80 | (c & 63));
        }
    }
    *text = '\0';
}

static double random_real(world *w)
{
    union {
        uint64_t bits;
        double v;
    } u;
    do u.bits = t_random_u64(&w->r);
    while ((u.bits >> 52 & 0x7ff) == 0x7ff);
    return pick(w, 2) ? u.v : (double)pick(w, 2000) / 10;
}

static void random_item(world *w, fth_config_type type, bool infinite, item *i)
{
    static const char *const choices[] = {"red", "green", "blue"};
    i->truth = pick(w, 2) == 1;
    i->integer = (int64_t)(t_random_u64(&w->r) >> pick(w, 64));
    if (pick(w, 2)) i->integer = -i->integer - 1;
    i->real = random_real(w);
    if (infinite && pick(w, 4) == 0) i->real = pick(w, 2) ? (double)INFINITY : -(double)INFINITY;
    i->size = (t_random_u64(&w->r) >> (1 + pick(w, 62))) + 1;
    random_text(w, i->text);
    if (type == FTH_CONFIG_CHOICE) strcpy(i->text, choices[i->integer = pick(w, 3)]);
}

/* ---- writing, by rules of this file's own ---- */

static char *write_text(world *w, char *to, const char *text)
{
    const bool escape = pick(w, 2) == 1;
    *to++ = '"';
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        unsigned c = s[0];
        int n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        if (n > 1) c &= 0x7fu >> n;
        for (int i = 1; i < n; i++) c = c << 6 | (s[i] & 63u);
        const bool plain =
            (c >= 'a' && c <= 'z') || c == ' ' || (!escape && c > 0xa0 && c < 0x2000);
        if (plain) {
            memcpy(to, s, (size_t)n);
            to += n;
        } else {
            to += sprintf(to, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
        }
        s += n;
    }
    *to++ = '"';
    *to = '\0';
    return to;
}

static char *write_item(world *w, char *to, fth_config_type type, const item *i)
{
    switch (type) {
    case FTH_CONFIG_BOOL: return to + sprintf(to, "%s", i->truth ? "true" : "false");
    case FTH_CONFIG_INT: return to + sprintf(to, "%lld", (long long)i->integer);
    case FTH_CONFIG_REAL:
        if (isinf(i->real)) return to + sprintf(to, i->real < 0 ? "-.inf" : ".inf");
        return to + sprintf(to, pick(w, 2) ? "%.17g" : "%.16e", i->real);
    case FTH_CONFIG_SIZE: return to + sprintf(to, "%llu", (unsigned long long)i->size);
    case FTH_CONFIG_SECTION:
    case FTH_CONFIG_TYPE_COUNT:
    case FTH_CONFIG_TEXT:
    case FTH_CONFIG_PATH:
    case FTH_CONFIG_CHOICE: break;
    }
    return write_text(w, to, i->text);
}

static void write_value(world *w, int k)
{
    const bool list = w->key[k].list;
    char *to = w->value[k];
    if (list) *to++ = '[';
    for (int64_t i = 0; i < w->n_items[k]; i++) {
        if (i > 0) to += sprintf(to, ", ");
        to = write_item(w, to, w->key[k].type, &w->items[k][i]);
    }
    if (list) *to++ = ']';
    *to = '\0';
}

static void make_row(world *w, int k)
{
    const fth_config_type type =
        (fth_config_type)t_random_i64(&w->r, FTH_CONFIG_BOOL, FTH_CONFIG_CHOICE);
    w->key[k] = (fth_config_key){
        .name = w->name[k],
        .type = type,
        .list = pick(w, 4) == 0,
        .range = type == FTH_CONFIG_REAL && pick(w, 2) ? "[-inf, inf]" : NULL,
        .choices = type == FTH_CONFIG_CHOICE ? "red green blue" : NULL,
    };
    const int64_t depth = pick(w, 3);
    snprintf(w->name[k], sizeof w->name[k], "%s%sk%d", depth > 0 ? "s1." : "",
             depth > 1 ? "s2." : "", k);
    w->n_items[k] = w->key[k].list ? pick(w, ITEMS + 1) : 1;
    for (int i = 0; i < ITEMS; i++) random_item(w, type, w->key[k].range != NULL, &w->items[k][i]);
    write_value(w, k);
    w->given[k] = pick(w, 3) > 0;
    if (!w->given[k] && pick(w, 2)) {
        w->key[k].value = w->value[k]; /* the same value comes from the table */
    } else if (!w->given[k]) {
        w->n_items[k] = 0;
    } else {
        w->key[k].required = pick(w, 2) == 1;
    }
}

/* Entries at one depth of the file: dotted in the top, or inside their sections. */
static char *write_section(world *w, char *to, const char *prefix, int indent, bool json, int n)
{
    bool first = true;
    for (int k = 0; k < n; k++) {
        const size_t m = strlen(prefix);
        if (!w->given[k] || w->written[k] || strncmp(w->name[k], prefix, m) != 0) continue;
        const char *rest = w->name[k] + m, *dot = strchr(rest, '.');
        const char *quote = json ? "\"" : "";
        if (json && !first) to += sprintf(to, ",\n");
        first = false;
        to += sprintf(to, "%*s%s", indent, "", quote);
        if (dot && pick(w, 3)) { /* a section: with everything that is left for it */
            char inside[40];
            snprintf(inside, sizeof inside, "%.*s", (int)(dot + 1 - w->name[k]), w->name[k]);
            to += sprintf(to, "%.*s%s:%s\n", (int)(dot - rest), rest, quote, json ? "{" : "");
            to = write_section(w, to, inside, indent + 2, json, n);
            if (json) to += sprintf(to, "}");
        } else {
            to += sprintf(to, "%s%s: %s%s", rest, quote, w->value[k], json ? "" : "\n");
            w->written[k] = true;
        }
    }
    return to;
}

static void check_values(const world *w, const fth_config *cfg, int n)
{
    for (int k = 0; k < n; k++) {
        const char *key = w->name[k];
        const bool none = !w->given[k] && !w->key[k].value;
        EQ_I64(fth_config_has(cfg, key), !none);
        EQ_I64(fth_config_count(cfg, key), w->n_items[k]);
        for (int64_t i = 0; i < w->n_items[k]; i++) {
            const item *it = &w->items[k][i];
            const fth_config_type type = w->key[k].type;
            if (type == FTH_CONFIG_BOOL) EQ_I64(fth_config_bool_at(cfg, key, i), it->truth);
            if (type == FTH_CONFIG_INT) EQ_I64(fth_config_int_at(cfg, key, i), it->integer);
            if (type == FTH_CONFIG_SIZE) EQ_U64(fth_config_size_at(cfg, key, i, 1), it->size);
            if (type == FTH_CONFIG_TEXT || type == FTH_CONFIG_PATH || type == FTH_CONFIG_CHOICE)
                EQ_STR(fth_config_text_at(cfg, key, i), it->text);
            if (type == FTH_CONFIG_CHOICE) EQ_I64(fth_config_choice_at(cfg, key, i), it->integer);
            const double real =
                type == FTH_CONFIG_REAL ? fth_config_real_at(cfg, key, i) : it->real;
            SAME_BYTES(&real, &it->real, sizeof real);
        }
    }
}

static void read_back(const world *w, fth_mem *mem, const fth_schema *s, const char *text,
                      fth_config **cfg)
{
    fth_err err = {0};
    OK(fth_config_create(cfg, mem, NULL));
    OKE(fth_config_parse(*cfg, "t", text, strlen(text), &err), &err);
    OKE(fth_config_check(*cfg, s, NULL, &err), &err);
    check_values(w, *cfg, (int)s->n_keys);
}

TEST(random_tables_round_trip)
{
    static world w;
    static char once[sizeof w.file], twice[sizeof w.file];
    for (uint64_t round = 0; round < ROUNDS; round++) {
        w.r = t_random_make(round);
        memset(w.written, 0, sizeof w.written);
        const int n = (int)t_random_i64(&w.r, 1, KEYS);
        for (int k = 0; k < n; k++) make_row(&w, k);
        const bool json = pick(&w, 2) == 1;
        char *end = w.file + sprintf(w.file, json ? "{" : "");
        end = write_section(&w, end, "", json ? 1 : 0, json, n);
        sprintf(end, json ? "}" : "");

        const fth_schema s = {.name = "random", .key = w.key, .n_keys = n};
        fth_mem *mem = t_mem(1 << 22);
        fth_config *a = NULL, *b = NULL;
        read_back(&w, mem, &s, w.file, &a);
        IS_TRUE(fth_config_canonical(a, once, sizeof once) < sizeof once);
        read_back(&w, mem, &s, once, &b);
        fth_config_canonical(b, twice, sizeof twice);
        EQ_STR(once, twice);
        EQ_U64(fth_config_hash(a, NULL), fth_config_hash(b, NULL));
        EQ_U64(fth_config_hash(a, "s1"), fth_config_hash(b, "s1"));
        EQ_I64(fth_config_compare(a, b, NULL, NULL, 0), 0);
        OK(fth_config_destroy(a, NULL));
        OK(fth_config_destroy(b, NULL));

        /* The layout has what was given; the table has the rest. */
        OK(fth_config_create(&a, mem, NULL));
        OK(fth_config_parse(a, "t", w.file, strlen(w.file), NULL));
        OK(fth_config_check(a, &s, NULL, NULL));
        fth_config_layout(a, NULL, "header", once, sizeof once);
        read_back(&w, mem, &s, once, &b);
        OK(fth_config_destroy(a, NULL));
        OK(fth_config_destroy(b, NULL));
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST_MAIN()
