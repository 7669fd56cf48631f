/* testing/bragg/bragg_verbs.h - verbs of the instrument bragg, called as the program calls them. */
#ifndef FATHOM_TESTING_BRAGG_VERBS_H
#define FATHOM_TESTING_BRAGG_VERBS_H

#include "testing/engine/op_device.h"
#include "testing/io/files.h"

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

/* What a run is given beside its flags; zero: plenty, never. */
typedef struct tv_limits {
    uint64_t budget;
    int64_t fail_alloc, fail_write;
} tv_limits;

/* The verb with the words of `line` on two workers. What it writes goes to `said`, of TV_SAID
 * bytes, if wanted. Fails the case when something is left allocated. On the device that
 * FATHOM_TEST_DEVICE names, where it does. */
static inline fth_status tv_try(tv_verb *verb, tv_flags f, const char *line, tv_limits limits,
                                char *said, fth_err *err)
{
    char text[4096], *word[TV_WORDS];
    int n = 0;
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = limits.budget ? limits.budget : 256u << 20;
    opt.mem.fail_alloc = limits.fail_alloc;
    opt.mem.fail_write = limits.fail_write;
    if (t_device()) {
        opt.device = "cuda";
        opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    }
    snprintf(text, sizeof text, "%s", line);
    for (char *w = strtok(text, " "); w && n < TV_WORDS; w = strtok(NULL, " ")) word[n++] = w;
    fth_status s = fth_context_create(&ctx, &opt, err);
    if (s != FTH_OK) return s;
    FILE *out = fopen(t_temp_path("said.txt"), "w+");
    s = verb(ctx, n, word, tv_value, &f, out, err);
    rewind(out);
    if (said) said[fread(said, 1, TV_SAID - 1, out)] = '\0';
    fclose(out);
    fth_err leak = {0};
    OKE(fth_context_destroy(ctx, &leak), &leak);
    return s;
}

static inline fth_status tv_run(tv_verb *verb, tv_flags f, const char *line, uint64_t budget,
                                char *said, fth_err *err)
{
    return tv_try(verb, f, line, (tv_limits){.budget = budget}, said, err);
}

#endif
