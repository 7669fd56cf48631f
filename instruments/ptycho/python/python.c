/* python.c - see python.h. */
#include "python.h"

#include "../ptycho.h"

#include <fathom/files.h>

#include <string.h>

enum { MOST_WORDS = 16, NAMES = 8000 };

static const fth_verb *const verbs[] = {
#define PT_VERB(name) &pt_verb_##name,
#include "../verbs.def"
#undef PT_VERB
};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

/* "data.kind" is also data_kind, which Python can write as a keyword. */
static bool is_same(const char *flag, const char *option)
{
    for (; *flag && *option; flag++, option++)
        if (*flag != *option && !(*flag == '.' && *option == '_')) return false;
    return *flag == *option;
}

/* Value of a flag; of one that may be given often ("set#1") the number behind it counts. */
static const char *value_of(void *user, const char *flag)
{
    const char *hash = strchr(flag, '#');
    char name[64];
    int skip = 0;
    snprintf(name, sizeof name, "%.*s", hash ? (int)(hash - flag) : 63, flag);
    for (const char *c = hash ? hash + 1 : ""; *c >= '0' && *c <= '9'; c++)
        skip = skip * 10 + (*c - '0');
    for (const char *const *o = user; o && o[0]; o += 2)
        if (is_same(name, o[0]) && skip-- == 0) return o[1];
    return NULL;
}

static void add_name(char *names, size_t *used, const char *name)
{
    const int n = snprintf(names + *used, NAMES - *used, "%s%s", *used ? " " : "", name);
    if (n > 0 && *used + (size_t)n < NAMES) *used += (size_t)n;
}

static fth_status refuse(const char *what, const char *word, const char *names, fth_err *err)
{
    FTH_FAIL(err, FTH_E_USAGE, "ptycho has no %s '%.60s'", what, word);
    const int near = fth_word_nearest(names, word);
    const char *at = names;
    for (int i = 0; i < near; i++) at = strchr(at, ' ') + 1;
    if (near >= 0) fth_err_hint(err, "did you mean '%.*s'?", (int)strcspn(at, " "), at);
    return FTH_E_USAGE;
}

static fth_status find_verb(const char *name, char *names, const fth_verb **out, fth_err *err)
{
    size_t used = 0;
    for (int i = 0; i < VERBS; i++) {
        *out = verbs[i];
        if (strcmp(verbs[i]->name, name) == 0) return FTH_OK;
        add_name(names, &used, verbs[i]->name);
    }
    return refuse("verb", name, names, err);
}

static fth_status check_options(const fth_verb *verb, const char *const *option, char *names,
                                fth_err *err)
{
    static const char *const usual[] = {"json", "quiet", "seed", NULL};
    size_t used = 0;
    names[0] = '\0';
    for (const fth_flag *f = verb->flag; f && f->name; f++) add_name(names, &used, f->name);
    for (const char *const *o = option; o && o[0]; o += 2) {
        const fth_flag *f = verb->flag;
        while (f && f->name && !is_same(f->name, o[0])) f++;
        bool known = f && f->name;
        for (int i = 0; usual[i]; i++)
            known = known || (strcmp(usual[i], o[0]) == 0 && strstr(verb->heeds, usual[i]));
        if (!known) return refuse("option", o[0], names, err);
    }
    return FTH_OK;
}

static fth_status run(fth_context *ctx, const fth_verb *verb, const char *const *word, int n_words,
                      const char *const *option, const char *text, fth_err *err)
{
    char *arg[MOST_WORDS];
    fth_file_stream *out = NULL;
    void *block = NULL;
    fth_mem *mem = fth_context_mem(ctx);
    if (n_words < verb->min_args || n_words > verb->max_args || n_words > MOST_WORDS)
        return FTH_FAIL(err, FTH_E_USAGE, "%s takes %d to %d words, not %d", verb->name,
                        verb->min_args, verb->max_args, n_words);
    /* a verb may change its words, as a command line lets it */
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_META, (uint64_t)(n_words + 1) * FTH_PATH, "words", &block, err));
    for (int i = 0; i < n_words; i++) {
        arg[i] = (char *)block + (int64_t)i * FTH_PATH;
        snprintf(arg[i], FTH_PATH, "%s", word[i]);
    }
    const char *const *given = option;
    fth_status s = fth_file_stream_create(&out, mem, text, err);
    if (s == FTH_OK) {
        void *user = NULL;
        memcpy(&user, &given, sizeof user); /* read alone: the callback's type has no const */
        s = verb->run(ctx, n_words, arg, value_of, user, fth_file_stream_file(out), err);
        if (s == FTH_OK)
            s = fth_file_stream_commit(out, err);
        else
            fth_file_stream_abandon(out);
    }
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status fth_ptycho_run(fth_context *ctx, const char *verb, const char *const *word, int n_words,
                          const char *const *option, const char *text, fth_err *err)
{
    const fth_verb *found = NULL;
    void *names = NULL;
    fth_mem *mem = fth_context_mem(ctx);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, NAMES, "names of options", &names, err));
    fth_status s = find_verb(verb, names, &found, err);
    if (s == FTH_OK) s = check_options(found, option, names, err);
    (void)fth_mem_release(mem, names, NULL);
    return s == FTH_OK ? run(ctx, found, word, n_words, option, text, err) : s;
}
