/* testing/focus/focus_plate.h - commands of focus on a made-up tree of data, as the program calls
 * them.
 */
#ifndef FATHOM_TESTING_FOCUS_PLATE_H
#define FATHOM_TESTING_FOCUS_PLATE_H

#include "instruments/focus/process/command.h"
#include "instruments/focus/toy/toy.h"
#include "testing/io/files.h"

#include <sys/stat.h>
#include <unistd.h>

/* The tree, and how a command may use the machine. */
typedef struct tp_plate {
    const char *exp, *microscope;
    char root[1000];
    int threads;                    /* 0: 1 */
    uint64_t memory;                /* 0: 128 MiB */
    int64_t fail_write, fail_alloc; /* which one fails; 0: none */
    char said[60000];               /* what the last command said */
} tp_plate;

enum { TP_WORDS = 24 };
typedef struct tp_words {
    const char *flag[TP_WORDS], *value[TP_WORDS];
    int n;
} tp_words;

static inline const char *tp_value(void *user, const char *flag)
{
    const tp_words *w = user;
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->flag[i], flag) == 0) return w->value[i];
    return NULL;
}

/* "--flag=value" words; they are cut in place. */
static inline void tp_add_words(tp_words *w, char *text)
{
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *eq = strchr(word, '=');
        if (eq) *eq = '\0';
        w->flag[w->n] = word + 2;
        w->value[w->n++] = eq ? eq + 1 : "";
    }
}

/* The verb, with these words and at most one that is no flag. */
static inline fth_status tp_run(tp_plate *p, const fth_verb *verb, char *arg, tp_words *w,
                                fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    char *out_text = NULL;
    size_t bytes = 0;
    fth_options_default(&opt);
    opt.mem.budget_bytes = p->memory ? p->memory : 1 << 27;
    opt.mem.fail_write = p->fail_write;
    opt.mem.fail_alloc = p->fail_alloc;
    opt.threads = p->threads ? p->threads : 1;
    if (err) *err = (fth_err){0};
    const fth_status made = fth_context_create(&ctx, &opt, err);
    if (made != FTH_OK) return made; /* no memory for it */
    FILE *out = open_memstream(&out_text, &bytes);
    const fth_status s = verb->run(ctx, arg != NULL, &arg, tp_value, w, out, err);
    fclose(out);
    snprintf(p->said, sizeof p->said, "%s", out_text);
    free(out_text);
    OK(fth_context_destroy(ctx, NULL));
    return s;
}

/* The verb, with words behind those that name the experiment. */
static inline fth_status tp_call(tp_plate *p, const fth_verb *verb, const char *extra, fth_err *err)
{
    char text[2000];
    tp_words w = {{"data-root", "exp", "microscope"}, {p->root, p->exp, p->microscope}, 3};
    snprintf(text, sizeof text, "%s", extra);
    tp_add_words(&w, text);
    return tp_run(p, verb, NULL, &w, err);
}

static inline void tp_shell(const tp_plate *p, const char *fmt, ...) FTH_PRINTF(2, 3);
static inline void tp_shell(const tp_plate *p, const char *fmt, ...)
{
    char line[3000], command[6000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    snprintf(command, sizeof command, "cd '%s' && %s", p->root, line);
    if (system(command) != 0) FAIL("%s", command);
}

/* An empty tree of that name with a made-up plate in it. */
static inline void tp_make(tp_plate *p, const char *name, const fo_toy *toy)
{
    fth_mem *mem = t_mem(1 << 26);
    fth_err err = {0};
    fo_toy here = *toy;
    snprintf(p->root, sizeof p->root, "%s/%s", t_temp_dir(), name);
    mkdir(p->root, 0777);
    tp_shell(p, "rm -rf ./*");
    here.dir = p->root;
    here.exp = p->exp;
    OKE(fo_toy_make(&here, mem, &err), &err);
    OK(fth_mem_destroy(mem, NULL));
}

static inline const char *tp_path(const tp_plate *p, const char *name)
{
    static char path[2000];
    snprintf(path, sizeof path, "%s/%s", p->root, name);
    return path;
}

static inline bool tp_there(const tp_plate *p, const char *name)
{
    return t_file_exists(tp_path(p, name));
}

/* Freed by the caller. */
static inline char *tp_text(const tp_plate *p, const char *name)
{
    size_t n;
    char *text = (char *)t_file_read(tp_path(p, name), &n);
    text[n] = '\0';
    return text;
}

/* Hash of all that was made; run.json tells how it was, so it is left out. */
static inline uint64_t tp_hash(const tp_plate *p)
{
    char command[3000], text[100] = "";
    snprintf(command, sizeof command,
             "cd '%s' && find built_image_data metadata/built_metadata_files -type f ! -name "
             "run.json | LC_ALL=C sort | xargs cat | cksum",
             p->root);
    FILE *f = popen(command, "r");
    IS_TRUE(f && fgets(text, sizeof text, f) != NULL);
    IS_TRUE(pclose(f) == 0);
    return fth_hash_bytes(text, strlen(text), 0);
}

#endif
