/* test_ptycho_evaluate.c - comparisons and pictures that run out of memory or of disk at every
 * point: a status says so, and nothing stays allocated or half written.
 *
 * seconds: 8 */
#include "instruments/ptycho/compare/compare.h"
#include "instruments/ptycho/evaluate/evaluate.h"
#include "instruments/ptycho/view/view.h"
#include "testing/files.h"

#include <fathom/files.h>
#include <string.h>

typedef struct call {
    const fth_verb *verb;
    const char *word[3];
    const char *out;
    int64_t fail_alloc, fail_write;
} call;

static const char *value_of(void *user, const char *flag)
{
    return strcmp(flag, "out") == 0 ? ((const call *)user)->out : NULL;
}

static fth_status run(call *c, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    char *text = NULL, word[3][FTH_PATH], *arg[3];
    size_t bytes = 0;
    int n = 0;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 1 << 26;
    opt.mem.fail_alloc = c->fail_alloc;
    opt.mem.fail_write = c->fail_write;
    opt.threads = 1;
    *err = (fth_err){0};
    fth_status s = fth_context_create(&ctx, &opt, err);
    if (s != FTH_OK) return s;
    for (; n < 3 && c->word[n]; n++) {
        snprintf(word[n], sizeof word[n], "%s", c->word[n]);
        arg[n] = word[n];
    }
    FILE *out = open_memstream(&text, &bytes);
    s = c->verb->run(ctx, n, arg, value_of, c, out, err);
    fclose(out);
    free(text);
    OK(fth_context_destroy(ctx, NULL)); /* nothing stays allocated */
    return s;
}

/* every `step`-th request and every third write fails until one gets through. */
static void survive(call c, int64_t step)
{
    fth_err err;
    fth_texts *left = NULL;
    fth_mem *mem = t_mem(1 << 20);
    for (int kind = 0; kind < 2; kind++) {
        int64_t n = 1;
        for (;; n += kind ? 3 : step) {
            c.fail_alloc = kind ? 0 : n;
            c.fail_write = kind ? n : 0;
            const fth_status s = run(&c, &err);
            if (s == FTH_OK) break;
            IS_TRUE(err.text[0] != 0);
            ONE_OF(s, kind ? FTH_E_FILE_WRITE : FTH_E_NOMEM, FTH_E_BUDGET);
            IS_TRUE(n < 100000);
        }
        IS_TRUE(n > 1);
    }
    OK(fth_folder_list(&left, mem, c.out, NULL));
    for (int64_t i = 0; i < fth_texts_count(left); i++)
        IS_TRUE(fth_texts_get(left, i)[0] != '.'); /* no temporary file */
    fth_texts_free(left);
    OK(fth_mem_destroy(mem, NULL));
}

static const char golden[] = "tests/golden/ptycho/g7_metrics.npz";

TEST(evaluate)
{
    char a[FTH_PATH], b[FTH_PATH];
    snprintf(a, sizeof a, "%s:recon", golden);
    snprintf(b, sizeof b, "%s:truth", golden);
    char out[FTH_PATH];
    snprintf(out, sizeof out, "%s", t_temp_path("evaluate"));
    survive((call){.verb = &pt_verb_evaluate, .word = {a, b}, .out = out}, 47);
}

TEST(compare)
{
    char a[FTH_PATH], b[FTH_PATH], c[FTH_PATH], out[FTH_PATH];
    snprintf(a, sizeof a, "%s:truth", golden);
    snprintf(b, sizeof b, "one=%s:recon", golden);
    snprintf(c, sizeof c, "two=%s:recon", golden);
    snprintf(out, sizeof out, "%s", t_temp_path("compare"));
    survive((call){.verb = &pt_verb_compare, .word = {a, b, c}, .out = out}, 401);
}

TEST(view)
{
    char a[FTH_PATH], out[FTH_PATH];
    snprintf(a, sizeof a, "%s:recon", golden);
    snprintf(out, sizeof out, "%s", t_temp_path("view"));
    survive((call){.verb = &pt_verb_view, .word = {a}, .out = out}, 47);
}

TEST_MAIN()
