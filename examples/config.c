/* config.c - settings from a file, checked against a table before anything runs.
 *
 * The first text is right; the second has four mistakes, and all of them are shown.
 * seconds: 1 */
#include <fathom/fathom.h>

#include <stdlib.h>
#include <string.h>

static const fth_config_key keys[] = {
    FTH_CONFIG_COMMON_KEYS,
    {.name = "name", .type = FTH_CONFIG_TEXT, .required = true, .doc = "name of the run"},
    {.name = "data", .type = FTH_CONFIG_PATH, .value = "${HOME}/data", .doc = "folder to read"},
    {.name = "model.kernel",
     .type = FTH_CONFIG_CHOICE,
     .choices = "Matern32 RBF",
     .value = "Matern32",
     .doc = "covariance"},
    {.name = "model.neighbors", .type = FTH_CONFIG_INT, .value = "50", .range = "[1, inf)"},
    {.name = "model.rank", .type = FTH_CONFIG_INT, .range = "[1, inf)", .doc = "at most neighbors"},
    {.name = "training.rate", .type = FTH_CONFIG_REAL, .value = "0.01", .range = "(0, 1]"},
};

/* What a single row cannot say. */
static void across_keys(fth_config *cfg, void *user)
{
    (void)user;
    if (fth_config_has(cfg, "model.rank") &&
        fth_config_int(cfg, "model.rank") > fth_config_int(cfg, "model.neighbors"))
        fth_config_complain(cfg, "model.rank model.neighbors", NULL,
                            "the rank is larger than neighbors");
}

static const fth_schema schema = {.name = "example",
                                  .brief = "Keys of the example.",
                                  .key = keys,
                                  .n_keys = sizeof keys / sizeof keys[0],
                                  .check = across_keys};

/* The library never reads the environment by itself. */
static const char *from_environment(void *user, const char *name)
{
    (void)user;
    const char *value = getenv(name);
    return value ? value : strcmp(name, "HOME") == 0 ? "/root" : NULL;
}

static fth_status show(fth_mem *mem, const char *name, const char *text, fth_err *err)
{
    const fth_config_options opt = {.lookup = from_environment};
    fth_config *cfg = NULL;
    fth_status s = fth_config_create(&cfg, mem, err);
    if (s == FTH_OK) s = fth_config_parse(cfg, name, text, strlen(text), err);
    if (s == FTH_OK) s = fth_config_set(cfg, "training.rate=2e-3", err);
    if (s == FTH_OK) s = fth_config_check(cfg, &schema, &opt, err);
    if (s == FTH_OK) {
        char all[1000];
        printf("%s: kernel %s, rate %g, hash %016llx\n", name, fth_config_text(cfg, "model.kernel"),
               fth_config_real(cfg, "training.rate"),
               (unsigned long long)fth_config_hash(cfg, NULL));
        fth_config_canonical(cfg, all, sizeof all);
        printf("%s", all);
    }
    const fth_status asked = fth_config_destroy(cfg, err); /* a question that made no sense */
    return s == FTH_OK ? asked : s;
}

int main(void)
{
    fth_mem *mem = NULL;
    fth_err err = {0};
    char text[4096];
    if (fth_mem_create(&mem, NULL, &err) != FTH_OK) return 1;
    const fth_status right =
        show(mem, "right.yaml", "name: first\nmodel: {kernel: RBF, rank: 8}\n", &err);
    if (right == FTH_OK) {
        const fth_status wrong =
            show(mem, "wrong.yaml", "model:\n  kernel: rbf\n  neighbours: 5\n  rank: 80\n", &err);
        fth_err_format(&err, text, sizeof text);
        printf("\n%s\n", text);
        if (wrong != FTH_E_CONFIG) return 1;
    }
    return fth_mem_destroy(mem, NULL) == FTH_OK && right == FTH_OK ? 0 : 1;
}
