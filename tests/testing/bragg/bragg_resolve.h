/* testing/bragg/bragg_resolve.h - a command line of nanoBragg, parsed and resolved where its files
 * are.
 */
#ifndef FATHOM_TESTING_BRAGG_RESOLVE_H
#define FATHOM_TESTING_BRAGG_RESOLVE_H

#include "testing/io/files.h"
#include "testing/test.h"

#include "instruments/bragg/experiment/resolve.h"

#include <unistd.h>

enum { BGR_WORDS = 128 };

typedef struct bgr_line {
    char text[3000];
    char *word[BGR_WORDS];
    int n;
} bgr_line;

static inline void bgr_split(bgr_line *l, const char *text)
{
    snprintf(l->text, sizeof l->text, "%s", text);
    l->n = 0;
    for (char *w = strtok(l->text, " "); w && l->n < BGR_WORDS; w = strtok(NULL, " "))
        l->word[l->n++] = w;
}

/* The experiment of a line; files are looked for in the inputs of the golden cases. Ended by
 * bgr_end, also when it was refused. */
typedef struct bgr {
    bgr_line line;
    br_flags flags;
    br_experiment e;
    fth_mem *mem;
    fth_status status;
    fth_err err;
    char home[4096];
} bgr;

static inline void bgr_start(bgr *b, const char *args, bool spec, const char *quirk)
{
    memset(b, 0, sizeof *b);
    OK(fth_mem_create(&b->mem, NULL, NULL));
    bgr_split(&b->line, args);
    br_flags_default(&b->flags, spec);
    b->flags.clock = 1000;
    if (quirk) OKE(br_flags_quirk(&b->flags, quirk, &b->err), &b->err);
    IS_TRUE(getcwd(b->home, sizeof b->home) != NULL);
    IS_TRUE(chdir("tests/golden/bragg/inputs") == 0);
    b->status = br_flags_parse(&b->flags, b->line.n, b->line.word, &b->err);
    if (b->status == FTH_OK) b->status = br_experiment_resolve(&b->e, b->mem, &b->flags, &b->err);
}

static inline void bgr_end(bgr *b)
{
    br_experiment_clear(&b->e);
    IS_TRUE(chdir(b->home) == 0);
    OKE(fth_mem_destroy(b->mem, &b->err), &b->err); /* nothing may be held */
}

#endif
