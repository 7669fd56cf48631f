/* testing/bragg_verbs.h - verbs of the instrument bragg, called as the program calls them. */
#ifndef FATHOM_TESTING_BRAGG_VERBS_H
#define FATHOM_TESTING_BRAGG_VERBS_H

#include "testing/files.h"

#include <fathom/fathom.h>

enum { TV_WORDS = 128, TV_SAID = 8192 };

/* Flags with two dashes; NULL where not given. */
typedef struct tv_flags {
    const char *compat, *quirk, *plan, *seed, *out, *only;
} tv_flags;

typedef fth_status tv_verb(fth_context *ctx, int n_args, char *const *arg,
                           const char *(*value)(void *user, const char *flag), void *user,
                           FILE *out, fth_err *err);

static inline const char *tv_value(void *user, const char *flag)
{
    const tv_flags *f = user;
    const struct {
        const char *name, *value;
    } rows[] = {{"compat", f->compat}, {"quirk", f->quirk}, {"plan", f->plan},
                {"seed", f->seed},     {"out", f->out},     {"only", f->only}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, flag) == 0) return rows[i].value;
    return NULL;
}

/* The verb with the words of `line` on two workers; `budget` 0: plenty. What it writes goes to
 * `said`, of TV_SAID bytes, if wanted. Fails the case when something is left allocated. */
static inline fth_status tv_run(tv_verb *verb, tv_flags f, const char *line, uint64_t budget,
                                char *said, fth_err *err)
{
    char text[4096], *word[TV_WORDS];
    int n = 0;
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = budget ? budget : 256u << 20;
    snprintf(text, sizeof text, "%s", line);
    for (char *w = strtok(text, " "); w && n < TV_WORDS; w = strtok(NULL, " ")) word[n++] = w;
    OK(fth_context_create(&ctx, &opt, err));
    FILE *out = fopen(t_temp_path("said.txt"), "w+");
    const fth_status s = verb(ctx, n, word, tv_value, &f, out, err);
    rewind(out);
    if (said) said[fread(said, 1, TV_SAID - 1, out)] = '\0';
    fclose(out);
    OKE(fth_context_destroy(ctx, NULL), err);
    return s;
}

#endif
