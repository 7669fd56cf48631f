/* test_bragg_companions.c - every request for memory and every write of the companion verbs fails
 * once: a status says so, nothing stays allocated, nothing half-written is left. seconds: 10 */
#include "instruments/bragg/companions/companions.h"
#include "instruments/bragg/figures/figures.h"
#include "testing/bragg/bragg_verbs.h"

#include <unistd.h>

static const char *const outputs[] = {"a.img", "b.img", "c.pgm", "d.bin", "e.txt", "spots.png"};
enum { OUTPUTS = sizeof outputs / sizeof outputs[0] };

static int64_t remove_outputs(void)
{
    int64_t n = 0;
    for (int i = 0; i < OUTPUTS; i++) n += unlink(t_temp_path(outputs[i])) == 0;
    return n;
}

/* Every `step`-th request fails until one run gets through; and the same with writes. What is left
 * of a failed run are whole files or none: `whole` counts those of a good one. */
static void survive(tv_verb *verb, tv_flags f, const char *line, int64_t step)
{
    fth_err err = {0};
    remove_outputs();
    OKE(tv_run(verb, f, line, 0, NULL, &err), &err);
    const int64_t whole = remove_outputs(), files = t_file_count();
    IS_TRUE(whole > 0);
    for (int kind = 0; kind < 2; kind++) {
        fth_status s = FTH_E_NOMEM;
        int64_t failures = 0;
        for (int64_t n = 1; s != FTH_OK; n += kind ? 1 : step) {
            err = (fth_err){0};
            s = tv_try(verb, f, line,
                       (tv_limits){.fail_alloc = kind ? 0 : n, .fail_write = kind ? n : 0}, NULL,
                       &err);
            if (s != FTH_OK && !*err.text) FAIL("failure %lld says nothing", (long long)n);
            const int64_t left = remove_outputs();
            EQ_I64(t_file_count(), files); /* nothing under another name */
            if (s == FTH_OK) EQ_I64(left, whole);
            failures += s != FTH_OK;
        }
        IS_TRUE(failures > 0);
    }
}

#define INPUT "tests/golden/bragg/public/p37_noise_low.float.bin"

TEST(noisify)
{
    char line[1024];
    snprintf(line, sizeof line,
             "-bin " INPUT " -seed 1 -readout 2 -psf gauss -psf_fwhm 200 -noisefile %s -intfile %s "
             "-pgmfile %s",
             t_temp_path("a.img"), t_temp_path("b.img"), t_temp_path("c.pgm"));
    survive(br_noisify_run, (tv_flags){.compat = "c"}, line, 5);
    survive(br_noisify_run, (tv_flags){.compat = "spec"}, line, 5);
    strcat(line, " -header tests/golden/bragg/aux/noisify_a1.img -psf fiber");
    survive(br_noisify_run, (tv_flags){.compat = "c"}, line, 5);
}

TEST(nonbragg_forwards_and_back)
{
    char line[1024];
    const char table[] = "0 2.5\n0.1 3\n0.2 6\n0.3 5\n0.4 4\n";
    t_file_write(t_temp_path("t.stol"), table, sizeof table - 1);
    snprintf(line, sizeof line,
             "-stol %s -detpixels 24 -pixel 0.4 -distance 60 -fluence 1e20 -samplesize 0.05 "
             "-floatfile %s -intfile %s -noisefile %s -nopgm -seed 1",
             t_temp_path("t.stol"), t_temp_path("d.bin"), t_temp_path("a.img"),
             t_temp_path("b.img"));
    survive(br_nonbragg_run, (tv_flags){0}, line, 5);
    fth_err err = {0};
    OKE(tv_run(br_nonbragg_run, (tv_flags){0}, line, 0, NULL, &err), &err);
    char img[256];
    snprintf(img, sizeof img, "%s", t_temp_path("kept.img"));
    IS_TRUE(rename(t_temp_path("b.img"), img) == 0);
    snprintf(line, sizeof line, "-img %s -stol %s -stolout %s", img, t_temp_path("t.stol"),
             t_temp_path("e.txt"));
    survive(br_nonbragg_run, (tv_flags){0}, line, 3);
}

TEST(figures)
{
    survive(br_figures_run_verb, (tv_flags){.out = t_temp_dir(), .only = "spots"},
            "-default_F 100 -cell 40 45 50 90 90 90 -N 4 -lambda 1 -distance 60 -pixel 0.8 "
            "-detpixels 16",
            11);
}
TEST_MAIN()
