/* test_ptycho_scan.c - scans that are simulated, read, looked at and converted, running out of
 * memory or of disk at every point: a status says so, and nothing stays allocated or half written.
 *
 * seconds: 20 */
#include "instruments/ptycho/check/check.h"
#include "instruments/ptycho/convert/convert.h"
#include "instruments/ptycho/info/info.h"
#include "instruments/ptycho/simulate/simulate.h"
#include "testing/files.h"

#include <fathom/files.h>
#include <string.h>

typedef struct call {
    const fth_verb *verb;
    const char *word[3];
    int64_t fail_alloc, fail_write;
} call;

static const char *value_of(void *user, const char *flag)
{
    static const char *const flags[][2] = {
        {"size", "24"},       {"N", "16"},         {"n_images", "7"},           {"lines", "9"},
        {"energy_eV", "8e3"}, {"distance_m", "1"}, {"detector_pixel_m", "1e-4"}};
    (void)user;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(flag, flags[i][0]) == 0) return flags[i][1];
    return NULL;
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

static void make(const fth_verb *verb, const char *a, const char *b)
{
    fth_err err;
    call c = {.verb = verb, .word = {a, b}};
    OKE(run(&c, &err), &err);
}

/* Every `step`-th request and every write fails until one gets through; `made` is not there before
 * that. */
static void survive(call c, int64_t step, const char *made)
{
    fth_err err;
    for (int kind = 0; kind < (made ? 2 : 1); kind++) {
        int64_t n = 1;
        for (;; n += kind ? 1 : step) {
            if (made) remove(made);
            c.fail_alloc = kind ? 0 : n;
            c.fail_write = kind ? n : 0;
            const fth_status s = run(&c, &err);
            if (s == FTH_OK) break;
            IS_TRUE(err.text[0] != 0);
            ONE_OF(s, kind ? FTH_E_FILE_WRITE : FTH_E_NOMEM, FTH_E_BUDGET);
            IS_TRUE(!made || !fth_path_exists(made));
            IS_TRUE(n < 100000);
        }
        IS_TRUE(n > 1);
    }
    fth_texts *left = NULL;
    fth_mem *mem = t_mem(1 << 20);
    OK(fth_folder_list(&left, mem, t_temp_dir(), NULL));
    for (int64_t i = 0; i < fth_texts_count(left); i++)
        IS_TRUE(fth_texts_get(left, i)[0] != '.'); /* no temporary file */
    fth_texts_free(left);
    OK(fth_mem_destroy(mem, NULL));
}

static const char *path(char text[FTH_PATH], const char *name)
{
    snprintf(text, FTH_PATH, "%s", t_temp_path(name));
    return text;
}

TEST(simulate)
{
    char a[FTH_PATH];
    path(a, "a.npz");
    survive((call){.verb = &pt_verb_simulate, .word = {a}}, 7, a);
    remove(a);
}

TEST(info_of_every_format)
{
    static const char *const names[] = {"b.npz", "b.cxi", "b.h5"};
    char a[FTH_PATH], b[FTH_PATH];
    make(&pt_verb_simulate, path(a, "a.npz"), NULL);
    for (int i = 0; i < 3; i++) {
        make(&pt_verb_convert, a, path(b, names[i]));
        survive((call){.verb = &pt_verb_info, .word = {b}}, 1, NULL);
        remove(b);
    }
    remove(a);
}

TEST(convert_to_every_format)
{
    static const char *const names[] = {"b.npz", "b.cxi", "b.h5"};
    char a[FTH_PATH], b[FTH_PATH];
    make(&pt_verb_simulate, path(a, "a.npz"), NULL);
    for (int i = 0; i < 3; i++) {
        path(b, names[i]);
        survive((call){.verb = &pt_verb_convert, .word = {a, b}}, 3, b);
        remove(b);
    }
    remove(a);
}

TEST(check)
{
    char a[FTH_PATH];
    make(&pt_verb_simulate, path(a, "a.npz"), NULL);
    survive((call){.verb = &pt_verb_check, .word = {a}}, 97, NULL);
    remove(a);
}

TEST_MAIN()
