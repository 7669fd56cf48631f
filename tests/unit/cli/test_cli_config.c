/* test_cli_config.c - `fathom config check` and `fathom config docs`, with instruments of the test.
 * seconds: 1 */
#include "testing/job/jobs.h"

#include "cli/core/config.h"

typedef struct said {
    fth_status status;
    char out[1 << 14], lines[1 << 14];
    fth_err err;
} said;

/* Run a command line, in the folder of the test. */
static said *run(char *const *word)
{
    static said s;
    char *argv[16] = {NULL};
    char home[4096];
    int n = 0;
    s = (said){0};
    for (; word[n]; n++) argv[n + 1] = word[n];
    argv[0] = word[0];
    FILE *lines = fmemopen(s.lines, sizeof s.lines, "w");
    cli_call call = {.out = fmemopen(s.out, sizeof s.out, "w")};
    OKE(cli_parse(&call, n + 1, argv, &s.err), &s.err);
    if (!getcwd(home, sizeof home) || chdir(t_temp_dir()) != 0) FAIL("cannot change the folder");
    if (strcmp(call.command->name, "config docs") == 0)
        s.status = cli_config_docs(&call, jt_instruments, 2, &s.err);
    else
        s.status = cli_config_check(&call, jt_instruments, 2, lines, &s.err);
    if (chdir(home) != 0) FAIL("cannot go back to %s", home);
    fclose(call.out);
    fclose(lines);
    return &s;
}
#define RUN(...) run((char *[]){__VA_ARGS__, NULL})

static void put_good(void)
{
    jt_clean();
    jt_put("c/general.yaml", "instrument: spatial\nname: g\noutput_dir: out\n");
    jt_put("e.yaml", "instrument: echo\nname: e\noutput_dir: ${HOME}/e\nsede: 1\n");
}

TEST(good_configs_are_a_line_each)
{
    put_good();
    const uint64_t before = jt_listing();
    said *s = RUN("config", "check", "c", "e.yaml", "--lenient");
    OKE(s->status, &s->err);
    char wanted[5000];
    snprintf(wanted, sizeof wanted,
             "c/general.yaml: spatial, models pnmf svgp mggp_svgp, to out\n"
             "e.yaml: echo, model echo, to %s/e\n",
             getenv("HOME"));
    EQ_STR(s->out, wanted);
    EQ_STR(s->lines, "notice: e.yaml:4:1: unknown key 'sede'; did you mean 'seed'?\n");
    EQ_U64(jt_listing(), before);
    s = RUN("config", "check", "e.yaml", "--lenient", "--quiet");
    EQ_STR(s->lines, "");
}

TEST(mistakes_are_lines_and_exit_code_two)
{
    put_good();
    jt_put("bad.yaml", "instrument: spatial\nmodel: {spatial: maybe}\n");
    said *s = RUN("config", "check", "bad.yaml", "e.yaml", "--set", "seed=-3");
    IS(s->status, FTH_E_CONFIG);
    EQ_I64(fth_status_get_info(s->status)->exit_code, 2);
    EQ_STR(s->out, "");
    HAS(s->lines, "bad.yaml:1:1: required key 'name' is missing");
    HAS(s->lines, "bad.yaml:2:18: model.spatial: expected");
    HAS(s->lines, "--set #1: seed: expected");
    HAS(s->lines, "e.yaml:4:1: unknown key 'sede'");
    HAS(s->err.text, "4 mistakes in 2 configs");
    s = RUN("config", "check");
    IS(s->status, FTH_E_COMMAND);
}

TEST(programs_get_json)
{
    put_good();
    said *s = RUN("config", "check", "c", "--json");
    OKE(s->status, &s->err);
    HAS(s->out, "\"mistakes\": []");
    HAS(s->out, "\"file\": \"c/general.yaml\"");
    HAS(s->out, "\"mggp_svgp\"\n");
    HAS(s->out, "\"error\": null");
    s = RUN("config", "check", "e.yaml", "--json");
    IS(s->status, FTH_E_CONFIG);
    EQ_STR(s->lines, "");
    HAS(s->out, "\"kind\": \"unknown\",\n");
    HAS(s->out, "\"notice\": false,\n      \"file\": \"e.yaml\",\n      \"line\": 4,\n"
                "      \"column\": 1,\n      \"key\": \"sede\",\n      \"expected\": \"\",\n"
                "      \"found\": \"\",\n      \"nearest\": \"seed\",\n      \"hint\": \"\"\n");
    HAS(s->out, "\"configs\": []");
    HAS(s->out, "\"code\": \"FTH-CONF-002\"");
    jt_put("d/x.yaml", "instrument: spatial\nname: x\noutput_dir: out\nmodel: {spatial: true}\n");
    s = RUN("config", "check", "c", "d", "--json");
    IS(s->status, FTH_E_COLLISION);
    HAS(s->out, "c/general.yaml (svgp) and d/x.yaml would both write");
}

TEST(docs_of_an_instrument)
{
    said *s = RUN("config", "docs");
    OKE(s->status, &s->err);
    EQ_STR(s->out, "spatial      for tests\necho         without models\n");
    s = RUN("config", "docs", "spatial");
    OKE(s->status, &s->err);
    HAS(s->out, "`n_components` | integer");
    s = RUN("config", "docs", "spatail");
    IS(s->status, FTH_E_COMMAND);
    EQ_STR(s->err.hint, "did you mean 'spatial'?");
    s = RUN("config", "docs", "zzz");
    EQ_STR(s->err.hint, "there are: spatial echo");
}

TEST_MAIN()
