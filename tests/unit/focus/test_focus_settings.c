/* test_focus_settings.c - options of the commands and keys of configs are one table.
 *
 * seconds: 1 */
#include "instruments/focus/settings/settings.h"
#include "testing/io/files.h"

/* Flags and values, one after the other, then NULL. */
static const char *value_of(void *user, const char *flag)
{
    for (const char *const *w = user; *w; w += 2)
        if (strcmp(w[0], flag) == 0) return w[1];
    return NULL;
}

#define FLAGS(...) ((void *)(uintptr_t)(const char *const[]){__VA_ARGS__, NULL})

static fth_status read_flags(fth_mem *mem, fth_config **cfg, void *flags, fth_err *err)
{
    return fo_settings_from_flags(cfg, mem, true, value_of, flags, err);
}

TEST(every_option_is_a_flag_and_a_key)
{
    for (const fo_option *o = fo_options; o->flag; o++) {
        char key[80] = "focus.";
        size_t n = strlen(key);
        for (const char *c = o->flag; *c; c++) key[n++] = *c == '-' ? '_' : *c;
        key[n] = '\0';
        EQ_STR(o->key, key);
        IS_TRUE(o->stack || o->plate);
        int found = 0;
        for (int64_t i = 0; i < fo_schema.n_keys; i++)
            if (strcmp(fo_schema.key[i].name, o->key) == 0) {
                found++;
                IS_TRUE(strlen(fo_schema.key[i].doc) > 5);
            }
        EQ_I64(found, 1);
    }
}

TEST(flags_become_a_checked_config)
{
    fth_mem *mem = t_mem(1 << 22);
    fth_config *cfg = NULL;
    fth_err err = {0};
    fo_selection s;
    OKE(read_flags(mem, &cfg,
                   FLAGS("method", "cwt", "filter-size", "5", "channel", "0", "times", "0:57:2",
                         "z-range", "2:9", "metrics", "", "wells", "A01,B03", "raw",
                         "17,2189,1152,u16,4096"),
                   &err),
        &err);
    EQ_STR(fth_config_text(cfg, "focus.method"), "cwt");
    EQ_I64(fth_config_int(cfg, "focus.filter_size"), 5);
    IS_TRUE(fth_config_bool(cfg, "focus.metrics") && !fth_config_bool(cfg, "focus.index_map"));
    NEAR(fth_config_real(cfg, "focus.high"), 99.99, 1e-12);
    OKE(fo_selection_read(cfg, &s, &err), &err);
    EQ_STR(s.channel, "0");
    EQ_STR(s.wells, "A01,B03");
    EQ_I64(fo_range_count(&s.times, 57), 29);
    EQ_I64(s.planes.first, 2);
    EQ_I64(s.planes.end, 9);
    EQ_I64(s.raw.size[0], 17);
    EQ_I64(s.raw.size[2], 1152);
    EQ_I64(s.raw.dtype, FTH_U16);
    EQ_U64(s.raw.offset, 4096);
    EQ_U64(s.images.search_bytes, 65536);
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

/* Nothing in a value means anything to YAML. */
TEST(texts_are_taken_as_they_are)
{
    static const char *const names[] = {"a: b", "#1", "[x", "'", "\"q\"", "null", "~", "é", "*"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fth_mem *mem = t_mem(1 << 22);
        fth_config *cfg = NULL;
        fth_err err = {0};
        OKE(read_flags(mem, &cfg, FLAGS("channel", names[i]), &err), &err);
        EQ_STR(fth_config_text(cfg, "focus.channel"), names[i]);
        OK(fth_config_destroy(cfg, NULL));
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(all_mistakes_are_told_at_once)
{
    fth_mem *mem = t_mem(1 << 22);
    fth_config *cfg = NULL;
    fth_err err = {0};
    IS(read_flags(mem, &cfg,
                  FLAGS("method", "lap-pry", "filter-size", "4", "sigma", "-1", "low", "60", "high",
                        "40", "window", "2"),
                  &err),
       FTH_E_COMMAND);
    IS_TRUE(cfg == NULL);
    HAS(err.text, "mistakes in the options");
    HAS(err.text, "--method: expected ");
    HAS(err.text, "did you mean 'lap-pyr'?");
    HAS(err.text, "--sigma: expected ");
    HAS(err.text, "--filter-size: expected an odd number, found 4");
    HAS(err.text, "--window: expected an odd number, found 2");
    HAS(err.text, "--low: black (60 %) must lie below white (40 %)");
    HAS_NOT(err.text, "focus.");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(bad_values_are_named)
{
    static const struct {
        const char *flag, *value, *text;
    } t[] = {
        {"filter-size", "33", "--filter-size: expected "},
        {"filter-size", "three", "--filter-size: expected "},
        {"filter-size", "", "--filter-size"},
        {"border", "zeros", "did you mean 'zero'?"},
        {"times", "5", "--times: expected A:B or A:B:STEP"},
        {"times", "5:2", "--times: expected A:B or A:B:STEP"},
        {"times", "0:9:0", "--times: expected"},
        {"times", "0:9:1:1", "--times: expected"},
        {"times", "99999999999999999999999999:", "--times: expected"},
        {"z-range", "0:9:2", "--z-range: expected A:B"},
        {"z-range", "x:9", "--z-range: expected A:B"},
        {"raw", "17,2189,1152", "--raw: expected Z,Y,X,DTYPE"},
        {"raw", "17,2189,1152,f64", "--raw: expected Z,Y,X,DTYPE"},
        {"raw", "0,2189,1152,u16", "--raw: expected Z,Y,X,DTYPE"},
        {"raw", "17,2189,1152,u16,-1", "--raw: expected Z,Y,X,DTYPE"},
        {"raw", "17,2189,1152,u16,0,0", "--raw: expected Z,Y,X,DTYPE"},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        fth_mem *mem = t_mem(1 << 22);
        fth_config *cfg = NULL;
        fth_err err = {0};
        fo_selection s;
        fth_status status = read_flags(mem, &cfg, FLAGS(t[i].flag, t[i].value), &err);
        if (status == FTH_OK) status = fo_selection_read(cfg, &s, &err);
        if (status != FTH_E_COMMAND) FAIL("--%s %s is taken", t[i].flag, t[i].value);
        HAS(err.text, t[i].text);
        OK(fth_config_destroy(cfg, NULL));
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(a_flag_of_another_command_is_not_read)
{
    fth_mem *mem = t_mem(1 << 22);
    fth_config *cfg = NULL;
    fth_err err = {0};
    IS(fo_settings_from_flags(&cfg, mem, false, value_of, FLAGS("raw", "nonsense"), &err),
       FTH_E_COMMAND);
    HAS(err.text, "--data-root is missing");
    err = (fth_err){0};
    OKE(fo_settings_from_flags(
            &cfg, mem, false, value_of,
            FLAGS("raw", "nonsense", "data-root", "d", "exp", "e", "microscope", "YX1"), &err),
        &err);
    IS_TRUE(!fth_config_has(cfg, "focus.raw"));
    EQ_STR(fth_config_text(cfg, "input.exp"), "e");
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(ranges)
{
    fo_range r;
    IS_TRUE(fo_range_parse(":", &r));
    EQ_I64(fo_range_count(&r, 7), 7);
    IS_TRUE(fo_range_parse("3:", &r));
    EQ_I64(fo_range_count(&r, 7), 4);
    EQ_I64(fo_range_count(&r, 3), 0);
    IS_TRUE(fo_range_parse(":4:3", &r));
    EQ_I64(fo_range_count(&r, 7), 2);
    IS_TRUE(fo_range_parse("1::3", &r));
    EQ_I64(fo_range_count(&r, 8), 3);
    IS_TRUE(!fo_range_parse("", &r) && !fo_range_parse("4", &r) && !fo_range_parse("-1:4", &r));
}

TEST(the_nth_allocation_fails)
{
    for (int64_t n = 1; n < 10000; n++) {
        fth_mem_options opt;
        fth_mem *mem = NULL;
        fth_config *cfg = NULL;
        fth_err err = {0};
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 22;
        opt.fail_alloc = n;
        if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) continue;
        const fth_status s = read_flags(mem, &cfg, FLAGS("method", "cwt", "times", "0:2"), &err);
        OK(fth_config_destroy(cfg, NULL));
        OK(fth_mem_destroy(mem, NULL));
        if (s == FTH_OK) return;
        EQ_I64(fth_status_get_info(s)->exit_code == 70, 0);
    }
    FAIL("it never succeeds");
}

TEST_MAIN()
