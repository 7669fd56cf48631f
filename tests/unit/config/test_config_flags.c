/* test_config_flags.c - flags of a command as values of a config. seconds: 1 */
#include "testing/test.h"

#include <fathom/fathom.h>

#include <string.h>

static const fth_config_key keys[] = {
    FTH_CONFIG_COMMON_KEYS,
    FTH_KEY(INT, "seed", "a number", .value = "0", .range = "[0, 100]"),
    FTH_KEY(TEXT, "title", "a text", .value = "none"),
    FTH_KEY(CHOICE, "method", "a word", .choices = "log depth", .value = "log"),
    FTH_KEY(BOOL, "strict", "a switch", .value = "false"),
    FTH_KEY(REAL, "steps", "numbers", .list = true),
    FTH_KEY(SIZE, "room", "bytes"),
};

static void even(fth_config *cfg, void *user)
{
    (void)user;
    if (fth_config_int(cfg, "seed") % 2)
        fth_config_complain(cfg, "seed", NULL, "expected an even number, found %lld",
                            (long long)fth_config_int(cfg, "seed"));
}

static const fth_schema schema = {
    .name = "testing", .key = keys, .n_keys = sizeof keys / sizeof keys[0], .check = even};

static const char *flag_of(const char *key)
{
    return strcmp(key, "title") == 0 ? "name" : strcmp(key, "steps") == 0 ? NULL : key;
}

/* "set#0" and so on, from a list that ends with NULL. */
static const char *set_of(void *user, const char *flag)
{
    const char *const *sets = user;
    if (strncmp(flag, "set#", 4) != 0) return NULL;
    for (int i = flag[4] - '0'; i > 0 && *sets; i--) sets++;
    return *sets;
}

static fth_mem *mem_of(void)
{
    fth_mem_options opt;
    fth_mem *mem = NULL;
    fth_mem_options_default(&opt);
    OK(fth_mem_create(&mem, &opt, NULL));
    return mem;
}

typedef struct flag {
    const char *flag, *key, *value;
} flag;

/* One flag after the other, then the check. */
static fth_status read_all(fth_config *cfg, const flag *f, fth_err *err)
{
    for (; f->flag; f++) FTH_TRY(fth_config_set_flag(cfg, &schema, f->flag, f->key, f->value, err));
    return fth_config_check_flags(cfg, &schema, "settings", flag_of, err);
}

TEST(flags_are_values_of_their_rows)
{
    static const flag flags[] = {{"name", "title", "{a: [b"},
                                 {"strict", "strict", ""},
                                 {"steps", "steps", "1,2.5"},
                                 {"seed", "seed", "4"},
                                 {0}};
    fth_mem *mem = mem_of();
    fth_config *cfg = NULL;
    fth_err err = {0};
    char text[200];
    fth_json_writer w;
    OK(fth_config_create(&cfg, mem, NULL));
    OKE(read_all(cfg, flags, &err), &err);
    EQ_STR(fth_config_text(cfg, "title"), "{a: [b"); /* which is no YAML */
    fth_json_begin_fixed(&w, text, sizeof text);
    fth_json_open_row(&w, NULL, '{');
    for (int64_t i = 0; i < schema.n_keys; i++) fth_config_put(cfg, keys[i].name, &w);
    fth_config_put(cfg, "nothing", &w);
    fth_json_close(&w);
    OK(fth_json_end(&w, NULL));
    EQ_STR(text, "{\"paths\":\"cwd\",\"seed\":4,\"title\":\"{a: [b\",\"method\":\"log\","
                 "\"strict\":true,\"steps\":[1,2.5]}");
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_value_that_is_none_names_the_flag)
{
    static char endless[9000];
    memset(endless, 'a', sizeof endless - 1);
    const struct {
        flag flag;
        fth_status status;
        const char *says;
    } rows[] = {{{"name", "title", ""}, FTH_E_COMMAND, "--name has no value"},
                {{"name", "title", endless}, FTH_E_COMMAND, "--name: the value is too long"},
                {{"steps", "steps", "1,[2"}, FTH_E_COMMAND, "--steps: '1,[2' is no value"},
                {{"x", "nothing", "1"}, FTH_E_USAGE, "--x: the table has no key 'nothing'"}};
    fth_mem *mem = mem_of();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const flag flags[] = {rows[i].flag, {0}};
        fth_config *cfg = NULL;
        fth_err err = {0};
        OK(fth_config_create(&cfg, mem, NULL));
        IS(read_all(cfg, flags, &err), rows[i].status);
        HAS(err.text, rows[i].says);
        (void)fth_config_destroy(cfg, NULL);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(all_mistakes_are_told_by_where_they_were_made)
{
    static const flag flags[] = {{"name", "title", "x"},
                                 {"method", "method", "logg"},
                                 {"steps", "steps", "a"},
                                 {"strict", "strict", "maybe"},
                                 {0}};
    static const char *const sets[] = {"seed=200", "sed=2", NULL};
    fth_mem *mem = mem_of();
    fth_config *cfg = NULL;
    fth_err err = {0};
    OK(fth_config_create(&cfg, mem, NULL));
    OK(fth_config_parse(cfg, "run.yaml", "\nroom: much\n", 12, NULL));
    OK(fth_config_set(cfg, "instrument=testing", NULL));
    OK(fth_config_add_sets(cfg, set_of, (void *)(uintptr_t)sets, NULL));
    IS(read_all(cfg, flags, &err), FTH_E_COMMAND);
    HAS(err.text, "6 mistakes in the settings:");
    HAS(err.text, "\n  run.yaml:2:7: ");
    HAS(err.text, "\n  --set seed: expected an integer in [0, 100], found ");
    HAS(err.text, "\n  --set sed: there is no such key; did you mean 'seed'?");
    HAS(err.text, "\n  --method: expected one of log depth, found ");
    HAS(err.text, "; did you mean 'log'?");
    HAS(err.text, "\n  steps: expected "); /* without a flag */
    HAS(err.text, "\n  --strict: expected ");
    HAS(err.hint, "'fathom config docs testing' describes every key");
    (void)fth_config_destroy(cfg, NULL);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_rows_cannot_say_is_told_whole)
{
    static const flag flags[] = {{"seed", "seed", "3"}, {0}};
    fth_mem *mem = mem_of();
    fth_config *cfg = NULL;
    fth_err err = {0};
    OK(fth_config_create(&cfg, mem, NULL));
    IS(read_all(cfg, flags, &err), FTH_E_COMMAND);
    HAS(err.text, "1 mistake in the settings:\n  --seed: expected an even number, found 3");
    (void)fth_config_destroy(cfg, NULL);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
