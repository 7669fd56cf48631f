/* test_bragg_schema.c - every flag has a key and every key its flag; grids of jobs. seconds: 1 */
#include "instruments/bragg/settings/settings.h"
#include "testing/io/files.h"

#include <string.h>

static fth_mem *mem;

static fth_config *checked(const char *text, fth_err *err)
{
    fth_config *cfg = NULL;
    OK(fth_config_create(&cfg, mem, err));
    OK(fth_config_parse(cfg, "test.yaml", text, strlen(text), err));
    if (fth_config_check(cfg, &br_schema, NULL, err) != FTH_OK) {
        OK(fth_config_destroy(cfg, NULL));
        return NULL;
    }
    return cfg;
}

/* A config with one key more than what every job needs. */
static void write_config(char *text, size_t bytes, const char *key, const char *value)
{
    snprintf(text, bytes, "name: t\n%s%s%s: %s\n",
             strcmp(key, "crystal.cell") == 0 ? "" : "crystal.cell: [70, 80, 90]\n",
             strcmp(key, "crystal.default_F") == 0 ? "" : "crystal.default_F: 1\n", key, value);
}

static const fth_config_key *row_of(const char *name)
{
    for (int64_t i = 0; i < br_schema.n_keys; i++)
        if (strcmp(br_schema.key[i].name, name) == 0) return &br_schema.key[i];
    return NULL;
}

/* A value that the row takes, long enough for every flag of a list. */
static void sample(const fth_config_key *k, char *text, size_t bytes)
{
    const char *one = k->type == FTH_CONFIG_INT || k->type == FTH_CONFIG_REAL ? "1" : "true";
    if (k->type == FTH_CONFIG_PATH || k->type == FTH_CONFIG_TEXT) one = "file.txt";
    if (k->type == FTH_CONFIG_CHOICE) {
        snprintf(text, bytes, "%.*s", (int)strcspn(k->choices, " "), k->choices);
        return;
    }
    static const struct {
        const char *key, *value;
    } lists[] = {{"crystal.cell", "[1, 1, 1, 90, 90, 90]"},
                 {"detector.roi", "[1, 1, 1, 1]"},
                 {"detector.pixels", "[1, 1]"},
                 {"detector.size", "[1, 1]"},
                 {"detector.beam", "[1, 1]"},
                 {"detector.close", "[1, 1]"},
                 {"detector.org", "[1, 1]"}};
    snprintf(text, bytes, "%s", k->list ? "[1, 1, 1]" : one);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (strcmp(lists[i].key, k->name) == 0) snprintf(text, bytes, "%s", lists[i].value);
}

static void flags_of(br_flags *f, const char *key, const char *value)
{
    char text[400];
    fth_err err = {0};
    write_config(text, sizeof text, key, value);
    fth_config *cfg = checked(text, &err);
    if (!cfg) FAIL("%s\n%s", text, err.text);
    OKE(br_job_flags(f, cfg, &err), &err);
    OKE(fth_config_destroy(cfg, &err), &err);
}

TEST(every_flag_with_a_key_is_set_by_it)
{
    mem = t_mem(1 << 22);
    int with = 0;
    for (int i = 0; i < BR_FLAG_COUNT; i++) {
        const br_flag_info *info = br_flag_get_info((br_flag_id)i);
        char key[80], value[80];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(info->key, "="), info->key);
        if (!key[0]) continue;
        with++;
        const fth_config_key *row = row_of(key);
        if (!row) FAIL("flag %s has the key '%s', which is not in the table", info->names, key);
        if (strncmp(key, "output.", 7) == 0 && row->type == FTH_CONFIG_BOOL) continue;
        sample(row, value, sizeof value);
        if (strchr(info->key, '=')) snprintf(value, sizeof value, "%s", strchr(info->key, '=') + 1);
        br_flags f;
        flags_of(&f, key, value);
        bool given = f.given[i];
        if (!given) { /* one number for all elements */
            flags_of(&f, key, "1");
            given = f.given[i];
        }
        if (!given) FAIL("%s: %s does not set %s", key, value, info->names);
    }
    IS_TRUE(with > 80);
    OK(fth_mem_destroy(mem, NULL));
}

/* Keys of jobs alone. */
static const char own[] =
    " instrument paths name seed output_dir time_limit model compat crystal.random "
    "detector.material "
    "output.cbf "
    "crystal.fdump scan.frames stills.count stills.seed stills.spread "
    "sampling.precision output.container output.counts output.dtype output.gzip ";

TEST(every_key_belongs_to_a_flag_or_to_jobs)
{
    for (int64_t i = 0; i < br_schema.n_keys; i++) {
        const fth_config_key *k = &br_schema.key[i];
        char word[100];
        bool found = k->type == FTH_CONFIG_SECTION || strncmp(k->name, "figures.", 8) == 0 ||
                     strncmp(k->name, "quirks.", 7) == 0 || strncmp(k->name, "slurm.", 6) == 0;
        for (int b = 0; b < BR_FLAG_COUNT && !found; b++) {
            const char *key = br_flag_get_info((br_flag_id)b)->key;
            const size_t n = strcspn(key, "=");
            found = n == strlen(k->name) && strncmp(key, k->name, n) == 0;
        }
        snprintf(word, sizeof word, " %s ", k->name);
        if (!found && !strstr(own, word)) FAIL("the key '%s' belongs to no flag", k->name);
    }
}

TEST(values_arrive_with_their_units)
{
    mem = t_mem(1 << 22);
    br_flags f;
    flags_of(&f, "detector.distance", "250");
    EQ_F64(f.distance, 0.25);
    flags_of(&f, "detector.rot", "[1, 2, 3]");
    EQ_F64(f.rot[2], br_radians(3));
    flags_of(&f, "crystal.N", "[5, 6, 7]");
    EQ_I64(f.cells[0], 5);
    EQ_I64(f.cells[2], 7);
    flags_of(&f, "crystal.N", "9");
    EQ_I64(f.cells[1], 9);
    flags_of(&f, "crystal.shape", "gauss");
    EQ_I64(f.shape, BR_GAUSS);
    flags_of(&f, "crystal.random", "true");
    EQ_I64(f.misset_kind, -1);
    flags_of(&f, "seed", "5");
    EQ_I64(f.seed_all, 5);
    flags_of(&f, "sampling.precision", "f32");
    EQ_I64(f.precision, BR_F32);
    flags_of(&f, "compat", "c");
    EQ_I64(f.spec, false);
    EQ_U64(f.quirks, BR_QUIRKS_C & ~(1u << BR_QUIRK_AUTO_FDUMP));
    flags_of(&f, "quirks.cstar-z", "true");
    EQ_U64(f.quirks, 1u << BR_QUIRK_CSTAR_Z);
    flags_of(&f, "detector.curved", "false");
    EQ_I64(f.curved, false);
    /* whatever comes first, the vector changes the convention */
    flags_of(&f, "beam.vector: [0, 0, 2]\ndetector.convention", "xds");
    EQ_I64(f.convention, BR_CUSTOM);
    EQ_F64(f.beam[2], 2);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_cannot_be_is_said)
{
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"crystal.cell: [1, 2, 3]", "crystal.default_F is needed"},
        {"crystal.default_F: 1", "crystal.cell or crystal.mat"},
        {"crystal: {cell: 1, default_F: 1, N: [1, 2]}", "one number or three"},
        {"crystal: {cell: 1, default_F: 1, misset: [1, 2]}", "three angles"},
        {"crystal: {cell: 1, default_F: 1}\nscan.frames: 3", "needs scan.osc"},
        {"crystal: {cell: 1, default_F: 1}\nscan: {frames: 3, osc: 1}\nstills.count: 2",
         "not both"},
        {"crystal: {cell: 1, default_F: 1}\noutput.dtype: u16", "only for counts"},
        {"crystal: {cell: 1, default_F: 1}\nbeam: {lambda: 1, energy: 12000}", "set only one"},
        {"crystal: {cell: 1, default_F: 1}\noutput.container: a/b.h5", "name of a file"},
        {"crystal: {cell: 1, default_F: 1}\ndetector.convention: xsd", "did you mean 'xds'"},
        {"crystal: {cell: 1, default_F: 1}\ndetector.distnace: 1", "detector.distance"},
    };
    mem = t_mem(1 << 22);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[300];
        fth_err err = {0};
        snprintf(text, sizeof text, "name: t\n%s\n", wrong[i].text);
        fth_config *cfg = checked(text, &err);
        if (cfg) FAIL("taken: %s", text);
        HAS(err.text, wrong[i].said);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(lists_span_a_grid)
{
    mem = t_mem(1 << 22);
    fth_config *cfg = NULL;
    fth_variant_made v;
    static const char text[] = "crystal.cell: [70, 80, 90]\ndetector: {distance: [100, 2e2]}\n"
                               "beam: {lambda: [0.9, 1, 1.1]}\n";
    OK(fth_config_create(&cfg, mem, NULL));
    OK(fth_config_parse(cfg, "a.yaml", text, strlen(text), NULL));
    IS_TRUE(br_is_general(cfg));
    IS_TRUE(br_expand(cfg, 0, &v));
    EQ_STR(v.variant.name, "lambda0.9_distance100");
    EQ_STR(v.variant.set[0], "beam.lambda=0.9");
    EQ_STR(v.variant.set[1], "detector.distance=100");
    EQ_STR(v.variant.set[2], "model=lambda0.9_distance100");
    EQ_PTR(v.variant.set[3], NULL);
    IS_TRUE(br_expand(cfg, 5, &v));
    EQ_STR(v.variant.name, "lambda1.1_distance2e2");
    IS_TRUE(!br_expand(cfg, 6, &v));
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_config_create(&cfg, mem, NULL));
    OK(fth_config_parse(cfg, "a.yaml", "crystal.cell: [1, 2, 3]", 23, NULL));
    IS_TRUE(!br_is_general(cfg));
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
