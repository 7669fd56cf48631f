/* test_ptycho_study.c - lists of a config as jobs, and names of doses.
 * seconds: 1 */
#include "instruments/ptycho/study/study.h"
#include "testing/io/files.h"

#include <string.h>

static fth_config *config(fth_mem *mem, const char *text)
{
    fth_config *cfg = NULL;
    fth_err err = {0};
    OKE(fth_config_create(&cfg, mem, &err), &err);
    OKE(fth_config_parse(cfg, "test", text, strlen(text), &err), &err);
    return cfg;
}

static bool sets(const fth_variant_made *v, const char *text)
{
    for (int i = 0; i < 8; i++)
        if (v->variant.set[i] && strcmp(v->variant.set[i], text) == 0) return true;
    return false;
}

TEST(doses_and_losses_are_four_jobs)
{
    static const char *const name[] = {"high_nll", "high_mae", "low_nll", "low_mae"};
    fth_mem *mem = t_mem(1 << 20);
    fth_config *cfg = config(mem, "doses: [1e9, 1e4]\nlosses: [nll, mae]\n");
    fth_variant_made v;
    IS_TRUE(pt_is_general(cfg));
    for (int i = 0; i < 4; i++) {
        IS_TRUE(pt_expand(cfg, i, &v));
        EQ_STR(v.variant.name, name[i]);
        IS_TRUE(sets(&v, i < 2 ? "nphotons=1e9" : "nphotons=1e4"));
        IS_TRUE(sets(&v, i % 2 ? "nll_weight=0" : "nll_weight=1"));
        IS_TRUE(sets(&v, i % 2 ? "mae_weight=1" : "mae_weight=0"));
        IS_TRUE(sets(&v, "method=learn"));
        IS_TRUE(sets(&v, "doses=~") && sets(&v, "losses=~") && !sets(&v, "algorithms=~"));
    }
    IS_TRUE(!pt_expand(cfg, 4, &v));
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(solvers_stand_beside_losses)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_config *cfg = config(mem, "doses: [1e3, 1e5, 1e7]\nlosses: [nll]\nalgorithms: [lsqml]\n");
    fth_variant_made v;
    IS_TRUE(pt_expand(cfg, 3, &v)); /* the second way of the second dose */
    EQ_STR(v.variant.name, "d1e05_lsqml");
    IS_TRUE(sets(&v, "nphotons=1e5") && sets(&v, "algorithm=lsqml") && sets(&v, "method=solve"));
    IS_TRUE(sets(&v, "model=d1e05_lsqml"));
    IS_TRUE(pt_expand(cfg, 5, &v) && !pt_expand(cfg, 6, &v));
    OK(fth_config_destroy(cfg, NULL));
    cfg = config(mem, "algorithms: [epie, dm]\n");
    IS_TRUE(pt_is_general(cfg) && pt_expand(cfg, 1, &v) && !pt_expand(cfg, 2, &v));
    OK(fth_config_destroy(cfg, NULL));
    cfg = config(mem, "nphotons: 1e9\n");
    IS_TRUE(!pt_is_general(cfg) && !pt_expand(cfg, 0, &v));
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(names_of_doses)
{
    const double one[] = {5}, two[] = {1e4, 1e9}, three[] = {1e3, 1e5, 1e7};
    char name[20];
    pt_dose_name(one, 1, 0, name, sizeof name);
    EQ_STR(name, "dose");
    pt_dose_name(two, 2, 0, name, sizeof name);
    EQ_STR(name, "low");
    pt_dose_name(two, 2, 1, name, sizeof name);
    EQ_STR(name, "high");
    pt_dose_name(three, 3, 2, name, sizeof name);
    EQ_STR(name, "d1e07");
}

TEST_MAIN()
