/* test_ptycho_evaluate.c - comparisons and pictures that run out of memory or of disk at every
 * point: a status says so, and nothing stays allocated or half written.
 *
 * seconds: 8 */
#include "instruments/ptycho/compare/compare.h"
#include "instruments/ptycho/evaluate/evaluate.h"
#include "instruments/ptycho/view/view.h"
#include "testing/full.h"
#include "testing/ptycho/ptycho_faults.h"

static void survive(const pf_call *c, int64_t step)
{
    pf_survive(*c, step, 3, NULL);
    pf_no_remains(c->out);
}

static const char golden[] = "tests/golden/ptycho/g7_metrics.npz";

TEST(evaluate)
{
    char a[FTH_PATH], b[FTH_PATH];
    snprintf(a, sizeof a, "%s:recon", golden);
    snprintf(b, sizeof b, "%s:truth", golden);
    char out[FTH_PATH];
    snprintf(out, sizeof out, "%s", t_temp_path("evaluate"));
    survive(&(pf_call){.verb = &pt_verb_evaluate, .word = {a, b}, .out = out}, 47);
}

TEST(compare)
{
    char a[FTH_PATH], b[FTH_PATH], c[FTH_PATH], out[FTH_PATH];
    snprintf(a, sizeof a, "%s:truth", golden);
    snprintf(b, sizeof b, "one=%s:recon", golden);
    snprintf(c, sizeof c, "two=%s:recon", golden);
    snprintf(out, sizeof out, "%s", t_temp_path("compare"));
    survive(&(pf_call){.verb = &pt_verb_compare, .word = {a, b, c}, .out = out},
            t_full() ? 401 : 1201);
}

TEST(view)
{
    char a[FTH_PATH], out[FTH_PATH];
    snprintf(a, sizeof a, "%s:recon", golden);
    snprintf(out, sizeof out, "%s", t_temp_path("view"));
    survive(&(pf_call){.verb = &pt_verb_view, .word = {a}, .out = out}, 47);
}

TEST_MAIN()
