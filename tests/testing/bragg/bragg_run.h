/* testing/bragg/bragg_run.h - the command of the bragg instrument, run inside the test in a folder
 * of its own.
 */
#ifndef FATHOM_TESTING_BRAGG_RUN_H
#define FATHOM_TESTING_BRAGG_RUN_H

#include "instruments/bragg/image/image.h"
#include "testing/bragg/bragg_golden.h"
#include "testing/engine/op_device.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct bg_run {
    const char *args;                               /* words of nanoBragg */
    const char *compat;                             /* "c" or "spec"; NULL: "c" */
    const char *quirk;                              /* "phi-carryover=off"; NULL: none */
    const char *preview, *smv32, *cbf, *checkpoint; /* flags of these names; NULL: none */
    fth_progress_fn *progress;                      /* NULL: none */
    int threads;                                    /* 0: 2 */
    uint64_t budget_bytes;                          /* 0: 256 MiB */
    uint64_t device_bytes;                          /* budget on a device; 0: as always */
    bool plan, json;
    fth_err err; /* out */
    char *text;  /* out: what was printed; to be freed */
    char cwd[PATH_MAX];
} bg_run;

static inline const char *bg_value_at(void *user, const char *flag, int i)
{
    const bg_run *r = user;
    if (!strcmp(flag, "compat")) return i == 0 ? (r->compat ? r->compat : "c") : NULL;
    if (!strcmp(flag, "quirk")) return i == 0 ? r->quirk : NULL;
    if (!strcmp(flag, "preview")) return i == 0 ? r->preview : NULL;
    if (!strcmp(flag, "smv32")) return i == 0 ? r->smv32 : NULL;
    if (!strcmp(flag, "cbf")) return i == 0 ? r->cbf : NULL;
    if (!strcmp(flag, "json")) return i == 0 && r->json ? "" : NULL;
    if (!strcmp(flag, "checkpoint")) return i == 0 ? r->checkpoint : NULL;
    return NULL;
}

static inline const char *bg_value(void *user, const char *flag)
{
    return bg_value_at(user, flag, 0);
}

/* Into a new folder with the golden inputs; and back. */
static inline void bg_enter(bg_run *r, const char *folder)
{
    static const char *const inputs[] = {"P1_full.hkl", "P1_sparse.hkl",  "P1_tiny.hkl",
                                         "A.mat",       "sources.txt",    "sources_short.txt",
                                         "mask64.img",  "header48x64.img"};
    char path[PATH_MAX + 100];
    if (!getcwd(r->cwd, sizeof r->cwd)) FAIL("no current folder");
    snprintf(path, sizeof path, "%s/%s", t_temp_dir(), folder);
    (void)t_device(); /* skips the case, while we are still at home, when there is none */
    if (mkdir(path, 0777) != 0 || chdir(path) != 0) FAIL("no folder %s", path);
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        snprintf(path, sizeof path, "%s/" BG_INPUTS "%s", r->cwd, inputs[i]);
        if (symlink(path, inputs[i]) != 0) FAIL("no link to %s", path);
    }
}

static inline void bg_leave(bg_run *r)
{
    if (chdir(r->cwd) != 0) FAIL("%s is gone", r->cwd);
}

/* One command in the current folder; on the device that FATHOM_TEST_DEVICE names, where it does. */
static inline fth_status bg_go(bg_run *r)
{
    char words[2000], *word[BG_WORDS];
    const int n = bg_words(r->args, words, sizeof words, word);
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = r->threads ? r->threads : 2;
    opt.mem.budget_bytes = r->budget_bytes ? r->budget_bytes : 256 << 20;
    if (t_device()) {
        opt.device = "cuda";
        opt.backend_path = getenv("FATHOM_TEST_DEVICE");
        opt.device_memory_bytes = r->device_bytes;
    }
    fth_context *ctx = NULL;
    fth_err_clear(&r->err);
    OKE(fth_context_create(&ctx, &opt, &r->err), &r->err);
    size_t bytes = 0;
    r->text = NULL;
    FILE *out = open_memstream(&r->text, &bytes);
    const fth_direct_call call = {.context = ctx,
                                  .n_words = n,
                                  .word = word,
                                  .value = bg_value,
                                  .value_at = bg_value_at,
                                  .user = r,
                                  .plan = r->plan,
                                  .out = out,
                                  .progress = r->progress};
    const fth_status s = br_image_command(&call, &r->err);
    fclose(out);
    fth_err leak = {0};
    OKE(fth_context_destroy(ctx, &leak), &leak);
    return s;
}

#endif
