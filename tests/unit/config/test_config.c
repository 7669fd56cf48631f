/* test_config.c - a config against its table: values, places, every kind of mistake, texts.
 * seconds: 2 */
#include "testing/io/files.h"
#include "testing/job/config_table.h"

#include "config/read.h"

#include <fathom/config.h>
#include <math.h>

typedef struct bench {
    fth_mem *mem;
    fth_config *cfg;
    fth_err err;
} bench;

static bench start(const char *text)
{
    bench b = {.mem = t_mem(1 << 20)};
    OK(fth_config_create(&b.cfg, b.mem, NULL));
    if (text) OKE(fth_config_parse(b.cfg, "configs/run.yaml", text, strlen(text), &b.err), &b.err);
    return b;
}

static fth_status check(bench *b)
{
    return fth_config_check(b->cfg, &ct_schema, &ct_options, &b->err);
}

static bench checked(const char *text)
{
    bench b = start(text);
    OKE(check(&b), &b.err);
    return b;
}

static void drop(bench *b)
{
    fth_err err = {0};
    OKE(fth_config_destroy(b->cfg, &err), &err);
    OKE(fth_mem_destroy(b->mem, &err), &err);
}

static fth_config_mistake mistake(const bench *b, int64_t i)
{
    fth_config_mistake m;
    if (!fth_config_get_mistake(b->cfg, i, &m)) FAIL("there are only %lld", (long long)i);
    return m;
}

static int64_t count(const bench *b)
{
    fth_config_mistake m;
    int64_t n = 0;
    while (fth_config_get_mistake(b->cfg, n, &m)) n++;
    return n;
}

/* The name of a section with one value under it is another name of one of its keys. */
TEST(a_section_may_be_a_single_value)
{
    static const fth_config_key keys[] = {
        {.name = "draw", .type = FTH_CONFIG_SECTION},
        {.name = "draw.which",
         .type = FTH_CONFIG_CHOICE,
         .choices = "main all",
         .value = "main",
         .aliases = "draw"},
        {.name = "draw.dpi", .type = FTH_CONFIG_INT, .value = "150"},
    };
    static const fth_schema schema = {.name = "draw", .key = keys, .n_keys = 3};
    static const struct {
        const char *text;
        int which;
        int64_t dpi;
        const char *mistake;
    } cases[] = {{"draw: all\n", 1, 150, NULL},
                 {"draw: {which: all, dpi: 30}\n", 1, 30, NULL},
                 {"draw: {dpi: 30}\n", 0, 30, NULL},
                 {"draw:\n", 0, 150, NULL},
                 {"draw: many\n", 0, 0, "'main' or 'all'"},
                 {"draw: {what: all}\n", 0, 0, "draw.what"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench b = start(cases[i].text);
        const fth_status s = fth_config_check(b.cfg, &schema, NULL, &b.err);
        if (cases[i].mistake) {
            IS(s, FTH_E_CONFIG);
        } else {
            OKE(s, &b.err);
            EQ_I64(fth_config_choice(b.cfg, "draw.which"), cases[i].which);
            EQ_I64(fth_config_int(b.cfg, "draw.dpi"), cases[i].dpi);
        }
        drop(&b);
    }
    static const fth_config_key wrong[] = {
        {.name = "draw.dpi", .type = FTH_CONFIG_INT, .value = "1"},
        {.name = "which", .type = FTH_CONFIG_INT, .value = "1", .aliases = "draw"}};
    bench b = start("which: 2\n");
    const fth_schema bad = {.name = "bad", .key = wrong, .n_keys = 2};
    IS(fth_config_check(b.cfg, &bad, NULL, &b.err), FTH_E_USAGE); /* of another section */
    drop(&b);
}

TEST(values_have_their_types_and_places)
{
    bench b = checked("name: 123\n"
                      "output: {dir: out/x}\n"
                      "preprocessing:\n"
                      "  path: ${DATA}/a.h5ad\n"
                      "  angle: -1.5e1\n"
                      "model:\n"
                      "  spatial: True\n"
                      "  kernel: RBF\n"
                      "  prior.scale: 2e-3\n"
                      "training: {x_batch: 7000, memory: 1.5G, save_steps: 5}\n");
    const fth_config *c = b.cfg;
    EQ_STR(fth_config_text(c, "name"), "123");
    EQ_I64(fth_config_int(c, "seed"), 42);
    EQ_STR(fth_config_text(c, "output_dir"), "out/x");
    EQ_STR(fth_config_text(c, "preprocessing.path"), "/data/big/a.h5ad");
    EQ_F64(fth_config_real(c, "preprocessing.angle"), -15);
    IS_TRUE(fth_config_bool(c, "model.spatial") && !fth_config_bool(c, "model.local"));
    EQ_STR(fth_config_text(c, "model.kernel"), "RBF");
    EQ_I64(fth_config_choice(c, "model.kernel"), 2);
    EQ_F64(fth_config_real(c, "model.prior.scale"), 2e-3);
    EQ_I64(fth_config_int(c, "training.max_iter"), 10000);
    EQ_I64(fth_config_int(c, "training.batch_size"), 7000);
    EQ_U64(fth_config_size(c, "training.memory", 0), (uint64_t)3 << 29);
    EQ_I64(fth_config_count(c, "training.save_steps"), 1);
    EQ_I64(fth_config_int_at(c, "training.save_steps", 0), 5);
    IS_TRUE(!fth_config_has(c, "model.K") && fth_config_has(c, "seed"));
    IS_TRUE(!fth_config_is_given(c, "seed") && fth_config_is_given(c, "training.batch_size"));
    const fth_place p = fth_config_where(c, "preprocessing.angle");
    EQ_STR(p.file, "configs/run.yaml");
    EQ_I64(p.line, 5);
    EQ_I64(p.column, 10);
    EQ_STR(fth_config_where(c, "seed").file, "default");
    EQ_I64(fth_config_count(c, "model.K"), 0);
    drop(&b);
}

TEST(lists_and_shares)
{
    bench b = checked("name: x\npreprocessing: {extra: []}\n");
    EQ_I64(fth_config_count(b.cfg, "training.save_steps"), 2);
    EQ_I64(fth_config_int_at(b.cfg, "training.save_steps", 1), 30000);
    EQ_U64(fth_config_size(b.cfg, "training.memory", 1000), 900);
    EQ_U64(fth_config_size(b.cfg, "training.memory", UINT64_MAX), UINT64_MAX / 10 * 9 + 4);
    IS_TRUE(fth_config_has(b.cfg, "preprocessing.extra"));
    EQ_I64(fth_config_count(b.cfg, "preprocessing.extra"), 0);
    drop(&b);
}

/* ---- mistakes ---- */

TEST(ten_mistakes_are_ten_in_one_go)
{
    bench b = start("seed: -1\n"      /*  1 range, and name is missing (1:1) */
                    "outptu_dir: x\n" /*  2 unknown, near */
                    "preprocessing:\n"
                    "  path: ${NOWHERE}/x\n" /*  4 variable */
                    "  angle: \"5\"\n"       /*  5 quoted number */
                    "model:\n"
                    "  spatial: yes\n"     /*  7 not a bool */
                    "  kernel: matern32\n" /*  8 not a choice, near */
                    "  local: true\n"      /*    silent: spatial has a mistake */
                    "  max_iter: 3\n"      /* 10 in the wrong section */
                    "training:\n"
                    "  max_iter: 10\n"
                    "  batch_size: 1\n"
                    "  x_batch: 2\n"            /* 14 the alias of line 13 */
                    "  learning_rate: fast\n"); /* 15 not a number */
    IS(check(&b), FTH_E_CONFIG);
    HAS(b.err.text, "10 mistakes:");
    static const struct {
        int line, column;
        fth_mistake kind;
        const char *key, *nearest, *line_has;
    } rows[] = {
        {1, 1, FTH_MISTAKE_MISSING, "name", NULL, "run.yaml:1:1: required key 'name' is missing"},
        {1, 7, FTH_MISTAKE_RANGE, "seed", NULL, "expected an integer in [0, inf), found '-1'"},
        {2, 1, FTH_MISTAKE_UNKNOWN, "outptu_dir", "output_dir", "did you mean 'output_dir'?"},
        {4, 9, FTH_MISTAKE_VARIABLE, "preprocessing.path", NULL, "variable NOWHERE to be set"},
        {5, 10, FTH_MISTAKE_TYPE, "preprocessing.angle", NULL, "(take the quotes away)"},
        {7, 12, FTH_MISTAKE_TYPE, "model.spatial", NULL, "found 'yes' (write true)"},
        {8, 11, FTH_MISTAKE_CHOICE, "model.kernel", "Matern32", "one of Matern32 Matern52 RBF"},
        {10, 3, FTH_MISTAKE_UNKNOWN, "model.max_iter", "training.max_iter", "unknown key"},
        {14, 3, FTH_MISTAKE_TWICE, "training.x_batch", NULL, "after configs/run.yaml:13:3"},
        {15, 18, FTH_MISTAKE_TYPE, "training.learning_rate", NULL, "a number in (0, 1], found"},
    };
    EQ_I64(count(&b), 10);
    for (int i = 0; i < 10; i++) {
        const fth_config_mistake m = mistake(&b, i);
        char line[600];
        fth_config_mistake_format(&m, line, sizeof line);
        if (m.at.line != rows[i].line || m.at.column != rows[i].column || m.kind != rows[i].kind)
            FAIL("mistake %d is another: %s", i, line);
        EQ_STR(m.key, rows[i].key);
        EQ_STR(m.nearest ? m.nearest : "", rows[i].nearest ? rows[i].nearest : "");
        HAS(line, rows[i].line_has);
        EQ_STR(m.at.file, "configs/run.yaml");
        IS_TRUE(!m.notice);
    }
    drop(&b);
}

/* Each row alone: a text with one mistake, its place, and what its line says. */
TEST(every_way_to_be_wrong)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"[1, 2]", "run.yaml:1:1: the config: expected a section with keys under it, found a list"},
        {"word", "run.yaml:1:1: the config: expected a section with keys under it, found a single"},
        {"", "run.yaml:1:1: required key 'name' is missing, a text: name of the run"},
        {"name: ~", "run.yaml:1:7: name: expected a text, found no value"},
        {"name: [a]", "1:7: name: expected a text, found a list"},
        {"name: {a: b}", "1:7: name: expected a text, found a section"},
        {"name: a\nname: b", "2:1: 'name' is given a second time, after configs/run.yaml:1:1"},
        {"name: a\nmodel: 3", "2:8: model: expected a section with keys under it, found a single"},
        {"name: a\nmodel: {K: 1}\nmodel: {K: 2}", "3:1: 'model' is given a second time, after"},
        {"name: a\nmodel.K: 1\nmodel: {K: 2}", "3:9: 'model.K' is given a second time, after"},
        {"name: a\nmodel: {k: 1}", "2:9: unknown key 'model.k'; did you mean 'model.K'?"},
        {"name: a\nmodle: {K: 1}", "2:1: unknown key 'modle'"},
        {"name: a\nmax_iter: 1", "2:1: unknown key 'max_iter'; did you mean 'training.max_iter'?"},
        {"name: taken", "1:7: name: another run has this name"},
        {"name: a\nnonsense: 1", "2:1: unknown key 'nonsense'"},
        {"name: a\n'': 1", "2:1: unknown key ''"},
        {"name: a\nmodel: {prior: {scael: 1}}", "did you mean 'model.prior.scale'?"},
        {"name: a\nseed: ~", "no value (leave the line out to get the default, 42)"},
        {"name: a\nseed: 1.5",
         "seed: expected an integer in [0, inf), found '1.5' (it must be whole)"},
        {"name: a\nseed: 012", "found '012' (take the leading zero away)"},
        {"name: a\nseed: 99999999999999999999", "(it does not fit in 64 bits)"},
        {"name: a\nmodel: {prior.scale: .inf}", "expected a number in (0, inf), found '.inf'"},
        {"name: a\nmodel: {prior.scale: .nan}", "(this is not a number)"},
        {"name: a\nmodel: {prior.scale: 1e999}", "(it is too large)"},
        {"name: a\npreprocessing: {angle: 180}", "a number in [-180, 180), in deg, found '180'"},
        {"name: a\nmodel: {spatial: 'true'}",
         "expected true or false, found \"true\" (write true)"},
        {"name: a\nmodel: {spatial: off}", "found 'off' (write false)"},
        {"name: a\nmodel: {spatial: maybe}", "expected true or false, found 'maybe'"},
        {"name: a\ntraining: {memory: 8X}", "expected a size like 8G or 50%, found '8X' (write"},
        {"name: a\ntraining: {memory: 101%}", "found '101%'"},
        {"name: a\ntraining: {save_steps: [1, x, 3]}",
         "2:28: training.save_steps: expected a list"},
        {"name: a\ntraining: {save_steps: [1, [2]]}",
         "2:28: training.save_steps: expected a list of"},
        {"name: a\ntraining: {save_steps: [1, ~]}", "found no value"},
        {"name: a\noutput_dir: ${EMPTY}/x",
         "expected the variable EMPTY to be set, found an empty"},
        {"name: a\noutput_dir: ${x", "expected a variable like ${NAME}, found a '${' without"},
        {"name: a\noutput_dir: a${}", "expected a variable like ${NAME}"},
        {"name: a\noutput_dir: $NOWHERE/x", "expected the variable NOWHERE to be set"},
        {"name: a\noutput_dir: ~bob/x", "expected ~/ for your home, or a whole path"},
        {"name: a\nmodel: {local: true}", "2:16: model.local: local needs spatial (write spatial"},
        {"name: a\npaths: here", "one of cwd config, found 'here'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench b = start(rows[i].text);
        IS(check(&b), FTH_E_CONFIG);
        HAS(b.err.text, rows[i].says);
        HAS(b.err.text, i < 2 ? "2 mistakes" : "1 mistake:"); /* without keys the name is missing */
        drop(&b);
    }
}

TEST(only_near_names_are_suggested)
{
    static const struct {
        const char *written, *nearest;
    } rows[] = {
        {"SEED", "seed"},
        {"sed", "seed"},
        {"esed", "seed"},
        {"name_", "name"},
        {"model.x", ""}, /* not K */
        {"model.k", "model.K"},
        {"speed_of_light", ""},
        {"output-dir", "output_dir"},
        {"training.batchsize", "training.batch_size"},
        {"model.x_batch", "training.batch_size"}, /* by its alias */
        {"train.max_iter", "training.max_iter"},
        {"model.Kernel", "model.kernel"},
        {"n_component", "model.n_components"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "name: x\n%s: 1\n", rows[i].written);
        bench b = start(text);
        IS(check(&b), FTH_E_CONFIG);
        const fth_config_mistake m = mistake(&b, 0);
        EQ_STR(m.nearest ? m.nearest : "", rows[i].nearest);
        drop(&b);
    }
}

TEST(a_required_key_is_missed_in_its_section)
{
    static const fth_config_key keys[] = {
        {.name = "a.b.c", .type = FTH_CONFIG_INT, .required = true},
        {.name = "a.x", .type = FTH_CONFIG_INT}};
    const fth_schema schema = {.name = "t", .key = keys, .n_keys = 2};
    static const struct {
        const char *text;
        int line, column;
    } rows[] = {{"\n\na:\n  b: ~\n", 4, 3}, {"\na:\n  x: 1\n", 2, 1}, {"\n", 1, 1}};
    for (int i = 0; i < 3; i++) {
        bench b = start(rows[i].text);
        IS(fth_config_check(b.cfg, &schema, NULL, &b.err), FTH_E_CONFIG);
        EQ_I64(mistake(&b, 0).at.line, rows[i].line);
        EQ_I64(mistake(&b, 0).at.column, rows[i].column);
        drop(&b);
    }
    bench b = start(NULL);
    IS(fth_config_check(b.cfg, &schema, NULL, &b.err), FTH_E_CONFIG);
    HAS(b.err.text, "no config: required key 'a.b.c' is missing, an integer");
    drop(&b);
}

TEST(lenient_makes_unknown_keys_notices)
{
    bench b = start("name: x\nmaxiter: 3\nmodel: {n_components: 600}\n");
    fth_config_options opt = ct_options;
    opt.lenient = true;
    OKE(fth_config_check(b.cfg, &ct_schema, &opt, &b.err), &b.err);
    EQ_I64(count(&b), 2);
    IS_TRUE(mistake(&b, 0).notice && mistake(&b, 1).notice);
    EQ_STR(mistake(&b, 0).nearest, "training.max_iter");
    EQ_STR(mistake(&b, 1).expected, "that is a lot");
    EQ_I64(mistake(&b, 1).at.line, 3);
    drop(&b);
}

TEST(many_mistakes_are_counted_and_the_first_shown)
{
    char text[8000] = "name: x\n";
    for (int i = 0; i < 250; i++) snprintf(text + strlen(text), 40, "nothing_known_%d: 1\n", i);
    bench b = start(text);
    IS(check(&b), FTH_E_CONFIG);
    HAS(b.err.text, "250 mistakes:\n  configs/run.yaml:2:1: unknown key 'nothing_known_0'");
    HAS(b.err.text, "more");
    EQ_I64(count(&b), 100);
    drop(&b);
}

/* ---- layers ---- */

TEST(later_layers_win_and_repair)
{
    bench b = start("name: x\nseed: oops\nmodel: {K: 5}\noutput: {dir: a}\n");
    OK(fth_config_parse(b.cfg, "more.json", "{\"model\":{\"K\":6}}", 17, NULL));
    OK(fth_config_set(b.cfg, "seed=7", NULL));
    OK(fth_config_set(b.cfg, "output_dir=b c", NULL));
    OK(fth_config_set(b.cfg, "seed=8", NULL));
    OK(fth_config_set(b.cfg, "training={max_iter: 3, save_steps: [1, 2, 3]}", NULL));
    OKE(check(&b), &b.err);
    EQ_I64(fth_config_int(b.cfg, "seed"), 8);
    EQ_STR(fth_config_where(b.cfg, "seed").file, "--set #3");
    EQ_I64(fth_config_where(b.cfg, "seed").line, 0);
    EQ_I64(fth_config_int(b.cfg, "model.K"), 6);
    EQ_STR(fth_config_where(b.cfg, "model.K").file, "more.json");
    EQ_STR(fth_config_text(b.cfg, "output_dir"), "b c");
    EQ_I64(fth_config_int(b.cfg, "training.max_iter"), 3);
    EQ_I64(fth_config_count(b.cfg, "training.save_steps"), 3);
    drop(&b);
    b = start("name: x\nmodel: {K: 5}\n");
    OK(fth_config_set(b.cfg, "model.K=~", NULL));
    OK(fth_config_set(b.cfg, "sede=1", NULL));
    IS(check(&b), FTH_E_CONFIG);
    HAS(b.err.text, "--set #2: unknown key 'sede'; did you mean 'seed'?");
    IS_TRUE(!fth_config_has(b.cfg, "model.K"));
    drop(&b);
}

TEST(values_of_the_program_are_layers_with_a_name)
{
    bench b = start("name: x\nmodel: {K: 3}\n");
    OK(fth__config_set_as(b.cfg, "run.yaml (svgp)", "model.spatial=true", NULL));
    OK(fth_config_set(b.cfg, "model={K: 4, kernel: [1]}", NULL));
    EQ_STR(fth_config_peek(b.cfg, "model.K"), "4"); /* inside what is set, too */
    EQ_STR(fth__config_peek_place(b.cfg, "model.K").file, "--set #1");
    EQ_STR(fth__config_peek_place(b.cfg, "model.spatial").file, "run.yaml (svgp)");
    EQ_I64(fth__config_peek_place(b.cfg, "name").column, 7);
    EQ_I64(fth__config_peek_place(b.cfg, "instrument").line, 1); /* not there */
    IS_TRUE(fth_config_peek(b.cfg, "model.kernel") == NULL);
    IS_TRUE(fth_config_peek(b.cfg, "mode") == NULL);
    IS(fth__config_set_as(b.cfg, "run.yaml (svgp)", "model.spatial", &b.err), FTH_E_CONFIG_SYNTAX);
    HAS(b.err.text, "run.yaml (svgp): expected key=value, found 'model.spatial'");
    drop(&b);
}

TEST(paths_lead_where_they_should)
{
    static const struct {
        const char *text, *cwd, *output, *extra;
    } rows[] = {
        {"output_dir: o", NULL, "o", "a"},
        {"output_dir: o", "/home/me", "/home/me/o", "/home/me/a"},
        {"output_dir: o\npaths: config", NULL, "configs/o", "a"},
        {"output_dir: o\npaths: config", "/w/", "/w/configs/o", "/w/a"},
        {"paths: config", "/w", "/w/configs/outputs", "/w/a"}, /* the default too */
        {"output_dir: /o\npaths: config", "/w", "/o", "/w/a"},
        {"output_dir: '${SET}/$${x}$y'", NULL, "set 7/${x}$y", "a"},
        {"output_dir: ''", "/w", "", "/w/a"},
        {"output_dir: ${DATA}${DATA}", "/w", "/data/big/data/big", "/w/a"},
        {"output_dir: ~/x", "/w", "/home/ann/x", "/w/a"},
        {"output_dir: \"~\"", "/w", "/home/ann", "/w/a"},
        {"output_dir: $HOME/x", "/w", "/home/ann/x", "/w/a"},
        {"output_dir: $DATA", "/w", "/data/big", "/w/a"},
        {"output_dir: ./~/x", "/w", "/w/./~/x", "/w/a"},
        {"output_dir: a/~/$HOME", "/w", "/w/a/~/$HOME", "/w/a"},
        {"output_dir: $1/x", "/w", "/w/$1/x", "/w/a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench b = start(rows[i].text);
        fth_config_options opt = ct_options;
        opt.cwd = rows[i].cwd;
        OK(fth_config_set(b.cfg, "name=x", NULL));
        OK(fth_config_set(b.cfg, "preprocessing.extra=[a]",
                          NULL)); /* typed in a shell: its folder */
        OKE(fth_config_check(b.cfg, &ct_schema, &opt, &b.err), &b.err);
        EQ_STR(fth_config_text(b.cfg, "output_dir"), rows[i].output);
        EQ_STR(fth_config_text(b.cfg, "preprocessing.extra"), rows[i].extra);
        drop(&b);
    }
    bench b = start("name: x\noutput_dir: ${NOWHERE}/x\n");
    OKE(fth_config_check(b.cfg, &ct_schema, NULL, &b.err), &b.err); /* nobody to ask */
    EQ_STR(fth_config_text(b.cfg, "output_dir"), "${NOWHERE}/x");
    drop(&b);
}

/* ---- texts ---- */

static const char canonical[] = "instrument: ~\n"
                                "paths: \"cwd\"\n"
                                "name: \"a \\\"b\\\"\\u0009\\\\ \xc3\xa9\"\n"
                                "seed: 42\n"
                                "output_dir: \"${DATA}/x\"\n"
                                "preprocessing.path: ~\n"
                                "preprocessing.extra: [\"p\", \"q, r\"]\n"
                                "preprocessing.angle: 0.1\n"
                                "model.n_components: 10\n"
                                "model.spatial: false\n"
                                "model.local: false\n"
                                "model.kernel: \"Matern32\"\n"
                                "model.K: ~\n"
                                "model.prior.scale: 1\n"
                                "training.max_iter: 10000\n"
                                "training.learning_rate: 0.002\n"
                                "training.batch_size: ~\n"
                                "training.memory: 12.5%\n"
                                "training.save_steps: []\n";

TEST(canonical_text_is_stable_and_reads_back)
{
    static const char *const texts[] = {
        "name: \"a \\\"b\\\"\\t\\\\ \xc3\xa9\"\noutput_dir: ${DATA}/x\n"
        "training: {memory: 12.50 %, learning_rate: 2e-3, save_steps: []}\n"
        "preprocessing: {angle: 1e-1, extra: [p, 'q, r']}\n",
        canonical};
    for (int i = 0; i < 2; i++) {
        bench b = checked(texts[i]);
        char text[2000];
        EQ_U64(fth_config_canonical(b.cfg, text, sizeof text), strlen(canonical));
        EQ_STR(text, canonical);
        EQ_STR(fth_config_text(b.cfg, "output_dir"), "/data/big/x");
        EQ_U64(fth_config_canonical(b.cfg, NULL, 0), strlen(canonical));
        drop(&b);
    }
}

TEST(one_value_is_that_of_its_canonical_line)
{
    bench b = checked(canonical);
    char line[400], value[300];
    for (const char *at = canonical; *at; at = strchr(at, '\n') + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        char *colon = strstr(line, ": ");
        *colon = '\0';
        EQ_U64(fth_config_value(b.cfg, line, value, sizeof value), strlen(colon + 2));
        EQ_STR(value, colon + 2);
        char cut[3];
        EQ_U64(fth_config_value(b.cfg, line, cut, sizeof cut), strlen(colon + 2));
        EQ_U64(strlen(cut), strlen(colon + 2) < 2 ? strlen(colon + 2) : 2);
    }
    EQ_U64(fth_config_value(b.cfg, "training", value, sizeof value), 0); /* a section */
    EQ_U64(fth_config_value(b.cfg, "model.none", value, sizeof value), 0);
    EQ_STR(value, "");
    drop(&b);
}

TEST(hashes_follow_their_section)
{
    bench a = checked("name: x\nmodel: {K: 5}\n"), b = checked("name: y\nmodel.K: 0x5\n"),
          c = checked("name: x\nmodel: {K: 6}\n");
    IS_TRUE(fth_config_hash(a.cfg, "model") == fth_config_hash(b.cfg, "model"));
    IS_TRUE(fth_config_hash(a.cfg, "model") != fth_config_hash(c.cfg, "model"));
    IS_TRUE(fth_config_hash(a.cfg, "training") == fth_config_hash(c.cfg, "training"));
    IS_TRUE(fth_config_hash(a.cfg, "model.prior") == fth_config_hash(c.cfg, "model.prior"));
    IS_TRUE(fth_config_hash(a.cfg, "name") != fth_config_hash(b.cfg, "name"));
    IS_TRUE(fth_config_hash(a.cfg, NULL) != fth_config_hash(b.cfg, NULL));
    IS_TRUE(fth_config_hash(a.cfg, "mod") == fth_config_hash(a.cfg, "trai")); /* of nothing */
    drop(&a);
    drop(&b);
    drop(&c);
}

TEST(layout_is_what_a_person_writes)
{
    static const char text[] =
        "training: {learning_rate: 2e-3, save_steps: [7e3, 'a b'], batch_size: ~}\n"
        "model:\n  kernel: RBF\n  K: 20\n  prior: {scale: 5.0}\n  n_components: 10\n"
        "preprocessing:\n  extra:\n  - a,b\n  - c d\n"
        "output: {dir: \"x: y\"}\nseed: 67\n";
    static const char wanted[] = "# made from general.yaml\n"
                                 "#\n"
                                 "# by hand\n"
                                 "name: run 1\n"
                                 "seed: 67\n"
                                 "output_dir: \"x: y\"\n"
                                 "\n"
                                 "preprocessing:\n"
                                 "  extra: [\"a,b\", c d]\n"
                                 "\n"
                                 "model:\n"
                                 "  n_components: 10\n"
                                 "  kernel: RBF\n"
                                 "%s"
                                 "  prior:\n"
                                 "    scale: 5.0\n"
                                 "\n"
                                 "training:\n"
                                 "  learning_rate: 2e-3\n"
                                 "  batch_size: ~\n"
                                 "  save_steps: [7e3, 9000]\n";
    for (int i = 0; i < 2; i++) {
        char made[2000], full[2000], again[2000];
        bench b = start(text);
        OK(fth_config_set(b.cfg, "name=run 1", NULL));
        OK(fth_config_set(b.cfg, "training.save_steps=[7e3, 9000]", NULL));
        OKE(check(&b), &b.err);
        fth_config_layout(b.cfg, i ? "svgp" : NULL, "made from general.yaml\n\nby hand\n", made,
                          sizeof made);
        snprintf(full, sizeof full, wanted, i ? "" : "  K: 20\n");
        EQ_STR(made, full);
        bench c = checked(made);
        fth_config_layout(c.cfg, NULL, "made from general.yaml\n\nby hand", again, sizeof again);
        EQ_STR(again, made);
        if (i == 0) IS_TRUE(fth_config_hash(b.cfg, NULL) == fth_config_hash(c.cfg, NULL));
        drop(&c);
        drop(&b);
    }
}

/* Without quotes an empty line inside a text is a line break. */
TEST(layout_quotes_what_has_lines)
{
    char text[200];
    bench b = checked("name: a\n\n  b\noutput_dir: c\n  d\n");
    EQ_STR(fth_config_text(b.cfg, "name"), "a\nb");
    fth_config_layout(b.cfg, NULL, NULL, text, sizeof text);
    EQ_STR(text, "name: \"a\\u000ab\"\noutput_dir: c d\n");
    drop(&b);
}

TEST(a_file_is_written_and_read_back)
{
    bench b = checked("name: x\nmodel: {K: 7}\n");
    const char *path = t_temp_path("lcgp.yaml");
    OKE(fth_config_write(b.cfg, "lcgp", "made", path, &b.err), &b.err);
    size_t bytes = 0;
    unsigned char *text = t_file_read(path, &bytes);
    text[bytes] = '\0';
    EQ_STR((const char *)text, "# made\nname: x\n\nmodel:\n  K: 7\n");
    free(text);
    bench c = start(NULL);
    OKE(fth_config_read(c.cfg, path, &c.err), &c.err);
    OKE(check(&c), &c.err);
    EQ_I64(fth_config_compare(b.cfg, c.cfg, NULL, NULL, 0), 0);
    IS(fth_config_write(b.cfg, NULL, NULL, t_temp_dir(), NULL), FTH_E_FILE_WRITE);
    drop(&c);
    c = start("name: x");
    IS(fth_config_write(c.cfg, NULL, NULL, path, NULL), FTH_E_USAGE);
    drop(&c);
    drop(&b);
}

/* A checkpoint with K=20 was once loaded into a model built with K=50. */
TEST(differences_are_listed_with_their_places)
{
    bench a = checked("name: x\nmodel: {K: 20}\n"),
          b = checked("name: y\n\nmodel: {K: 50, prior.scale: 2}\n");
    char text[400];
    EQ_I64(fth_config_compare(a.cfg, b.cfg, "model", text, sizeof text), 2);
    EQ_STR(text, "model.K: 20 (configs/run.yaml:2:12) and 50 (configs/run.yaml:3:12)\n"
                 "model.prior.scale: 1 (default) and 2 (configs/run.yaml:3:29)");
    EQ_I64(fth_config_compare(a.cfg, b.cfg, NULL, text, sizeof text), 3);
    EQ_I64(fth_config_compare(a.cfg, b.cfg, "training", text, sizeof text), 0);
    EQ_STR(text, "");
    bench c = start("name: x");
    EQ_I64(fth_config_compare(a.cfg, c.cfg, NULL, text, sizeof text), -1);
    drop(&a);
    drop(&b);
    drop(&c);
}

TEST(tables_that_contradict_themselves_are_refused)
{
    static const struct {
        fth_config_key key[2];
        const char *says;
    } rows[] = {
        {{{.name = "a", .type = FTH_CONFIG_INT}, {.name = "a", .type = FTH_CONFIG_INT}}, "earlier"},
        {{{.name = "a", .type = FTH_CONFIG_INT}, {.name = "a.b", .type = FTH_CONFIG_INT}},
         "section"},
        {{{.name = "a..b", .type = FTH_CONFIG_INT}}, "name"},
        {{{.name = "a b", .type = FTH_CONFIG_INT}}, "name"},
        {{{.name = NULL, .type = FTH_CONFIG_INT}}, "name"},
        {{{.name = "a", .type = FTH_CONFIG_TYPE_COUNT}}, "type"},
        {{{.name = "a", .type = FTH_CONFIG_SECTION, .value = "1"}}, "no value"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .value = "x"}}, "default of 'a'"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .value = "0", .range = "[1, 2]"}},
         "default of 'a'"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .value = "[1"}}, "default of 'a'"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .value = "~"}}, "default of 'a'"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .value = "1", .required = true}}, "no default"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .range = "1..2"}}, "range"},
        {{{.name = "a", .type = FTH_CONFIG_TEXT, .range = "[1, 2]"}}, "range"},
        {{{.name = "a", .type = FTH_CONFIG_CHOICE}}, "choice"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .choices = "x"}}, "choice"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .aliases = "a"}}, "alias"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .aliases = "b"},
          {.name = "b", .type = FTH_CONFIG_INT}},
         "earlier"},
        {{{.name = "a", .type = FTH_CONFIG_INT, .aliases = "x."}}, "alias"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const fth_schema schema = {
            .name = "t", .key = rows[i].key, .n_keys = rows[i].key[1].name ? 2 : 1};
        bench b = start("x: 1");
        IS(fth_config_check(b.cfg, &schema, NULL, &b.err), FTH_E_USAGE);
        HAS(b.err.text, rows[i].says);
        EQ_U64(fth_schema_docs(&schema, NULL, 0) == 0, strstr(rows[i].says, "default of") == NULL);
        drop(&b);
    }
}

TEST(questions_that_make_no_sense_are_reported_at_the_end)
{
    static const char *const why[] = {"no such key",       "another type", "it has no value",
                                      "beyond the end of", "no such key",  "not checked"};
    for (int i = 0; i < 6; i++) {
        bench b = i == 5 ? start("name: x") : checked("name: x");
        const int line = __LINE__ + 2 + i;
        switch (i) {
        case 0: EQ_I64(fth_config_int(b.cfg, "sede"), 0); break;
        case 1: EQ_F64(fth_config_real(b.cfg, "seed"), 0); break;
        case 2: EQ_I64(fth_config_int(b.cfg, "model.K"), 0); break;
        case 3: EQ_I64(fth_config_int_at(b.cfg, "training.save_steps", 2), 0); break;
        case 4: IS_TRUE(!fth_config_has(b.cfg, "sede")); break;
        case 5: EQ_STR(fth_config_text(b.cfg, "name"), ""); break;
        }
        fth_err err = {0};
        IS(fth_config_destroy(b.cfg, &err), FTH_E_USAGE);
        HAS(err.text, why[i]);
        if (i < 4) EQ_I64(err.origin.line, line);
        OK(fth_mem_destroy(b.mem, NULL));
    }
}

TEST(a_config_is_checked_once)
{
    bench b = checked("name: x");
    IS(check(&b), FTH_E_USAGE);
    IS(fth_config_set(b.cfg, "name=y", NULL), FTH_E_USAGE);
    EQ_STR(fth_config_text(b.cfg, "name"), "x");
    drop(&b);
}

TEST(docs_have_a_row_for_every_key)
{
    char text[4000];
    const size_t n = fth_schema_docs(&ct_schema, text, sizeof text);
    IS_TRUE(n < sizeof text);
    EQ_U64(n, strlen(text));
    HAS(text, "# Config keys of `test`\n\nA table for tests.\n\n## Top\n\n| key | type |");
    HAS(text, "| `name` | text | **required** |  | all | name of the run |\n");
    HAS(text,
        "| `output_dir` | path | `outputs` |  | all | folder of results; also `output.dir` |\n");
    HAS(text, "## `preprocessing`\n\nFrom raw data to counts.\n\n");
    HAS(text, "| `angle` | number, deg | `0` | `[-180, 180)` | all | turn by \\| this |\n");
    HAS(text, "| `kernel` | choice | `Matern32` | `Matern32` `Matern52` `RBF` | svgp lcgp |  |\n");
    HAS(text, "| `save_steps` | list of integer | `[7000, 30000]` | `[0, inf)` | all |  |\n");
    HAS(text, "## `model.prior`\n");
    int rows = 0;
    for (const char *s = text; (s = strstr(s, "\n| `")); s++) rows++;
    EQ_I64(rows, ct_schema.n_keys - 1); /* the section has none */
}

TEST_MAIN()
