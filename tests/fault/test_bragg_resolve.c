/* test_bragg_resolve.c - every request for memory fails once while a command line is resolved.
 *
 * After each failure nothing is held, and nothing was written. seconds: 4 */
#include "testing/bragg/bragg_resolve.h"

#include "mem/inject.h"

static const char *const lines[] = {
    "-cell 40 45 50 -misset random -hkl P1_tiny.hkl -N 4 -mask mask64.img -sourcefile sources.txt "
    "-mosaic 1 -phi 0 -osc 1 -stol sources.txt",
    "-mat A.mat -hkl P1_tiny.hkl -img header48x64.img -divergence 2 -divsteps 3 -dispersion 1 "
    "-dmin "
    "3 -phisteps 3",
};

static fth_status resolve(br_experiment *e, fth_mem *mem, const char *args, fth_err *err)
{
    static bgr_line l;
    br_flags f;
    bgr_split(&l, args);
    br_flags_default(&f, false);
    FTH_TRY(br_flags_parse(&f, l.n, l.word, err));
    return br_experiment_resolve(e, mem, &f, err);
}

TEST(nothing_is_held_after_any_failure)
{
    static br_experiment e;
    char home[4096];
    IS_TRUE(getcwd(home, sizeof home) != NULL);
    IS_TRUE(chdir("tests/golden/bragg/inputs") == 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        fth_status s = FTH_E_NOMEM;
        int64_t n = 1;
        for (; s != FTH_OK && n < 200; n++) {
            fth_mem *mem = t_mem(1 << 24);
            fth_err err = {0};
            fth__mem_inject(mem, n, 0);
            s = resolve(&e, mem, lines[i], &err);
            if (s != FTH_OK && s != FTH_E_NOMEM) FAIL("request %lld: %s", (long long)n, err.text);
            const bool met = fth__mem_alloc_count(mem) >= n;
            if (s == FTH_OK) br_experiment_clear(&e);
            if (s == FTH_OK && met) s = FTH_E_NOMEM; /* it managed without */
            OK(fth_mem_destroy(mem, NULL));
        }
        IS(s, FTH_OK);
        IS_TRUE(n > 8);
        IS_TRUE(!t_file_exists("Fdump.bin"));
    }
    IS_TRUE(chdir(home) == 0);
}

TEST_MAIN()
