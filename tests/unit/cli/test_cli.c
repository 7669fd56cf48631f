/* seconds: 1
 * test_cli.c - the parser of the program, its help, its JSON and its support table.
 */
#include "testing/test.h"

#include "cli/core/stage.h"
#include "cli/doctor/doctor.h"

#include <fathom/samples.h>
#include <math.h>

static char words[32][64];
static char *argv_[33];

/* Parse the words of a line. */
static fth_status parse(cli_call *call, const char *line, fth_err *err)
{
    int n = 1;
    argv_[0] = words[0]; /* what a test left there: "" unless it is called by a link */
    while (*line) {
        const int len = (int)strcspn(line, " ");
        snprintf(words[n], sizeof words[n], "%.*s", len, line);
        argv_[n] = words[n];
        n++;
        line += len + (line[len] == ' ');
    }
    argv_[n] = NULL;
    *call = (cli_call){0};
    fth_err_clear(err);
    return cli_parse(call, n, argv_, err);
}

TEST(values_come_with_or_without_an_equals_sign)
{
    cli_call call;
    fth_err err = {0};
    OKE(parse(&call, "doctor --threads 3 --memory=2G --json", &err), &err);
    EQ_STR(call.command->name, "doctor");
    EQ_STR(cli_get(&call, "threads"), "3");
    EQ_STR(cli_get(&call, "memory"), "2G");
    EQ_STR(cli_get(&call, "json"), "");
    IS_TRUE(cli_get(&call, "ops") == NULL);
    OKE(parse(&call, "--threads=4 doctor", &err), &err); /* before the command */
    EQ_STR(cli_get(&call, "threads"), "4");
}

TEST(budgets_reach_the_engine)
{
    cli_call call;
    fth_err err = {0};
    fth_options opt;
    OKE(parse(&call, "bragg plan -c a.yaml --memory 1G --device-memory=1.5G", &err), &err);
    OKE(cli_context_options(&call, 0, &opt, &err), &err);
    EQ_U64(opt.mem.budget_bytes, UINT64_C(1) << 30);
    EQ_U64(opt.device_memory_bytes, UINT64_C(3) << 29);
    OKE(parse(&call, "bragg plan -c a.yaml --device-memory 50%", &err), &err);
    IS(cli_context_options(&call, 0, &opt, &err), FTH_E_USAGE);
    HAS(err.text, "a percentage is not supported for a device");
    HAS(err.hint, "1.5G");
}

TEST(the_log_has_the_level_that_was_asked)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    cli_call call;
    fth_err err = {0};
    fth_options opt;
    for (int i = 0; i < 4; i++) {
        char line[64];
        snprintf(line, sizeof line, "doctor --log %s", names[i]);
        OKE(parse(&call, line, &err), &err);
        OKE(cli_context_options(&call, 0, &opt, &err), &err);
        EQ_I64(opt.log.level, FTH_LOG_ERROR + i);
        IS_TRUE(opt.log.write != NULL);
    }
    OKE(parse(&call, "doctor", &err), &err);
    OKE(cli_context_options(&call, 0, &opt, &err), &err);
    IS_TRUE(opt.log.write == NULL);
}

/* As the base directory specification has it: a relative path counts for nothing. */
TEST(kernels_are_kept_in_the_cache_of_the_user)
{
    static const struct {
        const char *cache, *home, *wanted;
    } t[] = {{"/cache", "/home/ann", "/cache/fathom"},
             {"cache", "/home/ann", "/home/ann/.cache/fathom"},
             {"", "/home/ann", "/home/ann/.cache/fathom"},
             {"", "ann", NULL}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        cli_call call;
        fth_err err = {0};
        fth_options opt;
        setenv("XDG_CACHE_HOME", t[i].cache, 1);
        setenv("HOME", t[i].home, 1);
        OKE(parse(&call, "doctor", &err), &err);
        OKE(cli_context_options(&call, 0, &opt, &err), &err);
        if (t[i].wanted)
            EQ_STR(opt.cache_dir, t[i].wanted);
        else
            IS_TRUE(opt.cache_dir == NULL);
    }
}

static char *show_bar(cli_bar *bar, const char *json)
{
    static char text[400];
    memset(text, 0, sizeof text);
    bar->out = fmemopen(text, sizeof text, "w");
    cli_bar_show(bar, json);
    fclose(bar->out);
    return text;
}

/* Where no terminal is, a line now and then; what was shown long ago is shown again. */
TEST(progress_is_a_line_now_and_then)
{
    static const char three[] = "{\"t\":1,\"iter\":3,\"total\":12,\"eta_s\":7385,\"loss\":0.5}";
    cli_bar bar = {.figure = "loss"};
    EQ_STR(show_bar(&bar, three), ""); /* it has just begun */
    bar.first_at = bar.shown_at = 1e-9;
    HAS(show_bar(&bar, three), " 25 %  3/12");
    EQ_STR(show_bar(&bar, three), "");
    bar.shown_at = 1e-9;
    HAS(show_bar(&bar, three), "  2:03:05 left  loss 0.5\n");
    bar.shown_at = 1e-9;
    HAS(show_bar(&bar, "{\"t\":1,\"iter\":24,\"total\":12,\"eta_s\":64.7}"), "100 %  24/12");
    bar.shown_at = 1e-9;
    HAS(show_bar(&bar, "{\"t\":1,\"iter\":3,\"what\":\"cells\",\"eta_s\":64.7}"), "  1:05 left\n");
    bar.shown_at = 1e-9;
    EQ_STR(show_bar(&bar, "{\"t\":1,\"event\":\"plan\",\"text\":\",\\\"iter\\\":9\"}"), "");
}

TEST(two_dashes_end_the_flags)
{
    cli_call call;
    fth_err err = {0};
    OKE(parse(&call, "help -- --json", &err), &err);
    EQ_I64(call.n_args, 1);
    EQ_STR(call.arg[0], "--json");
    OKE(parse(&call, "help doctor", &err), &err);
    EQ_STR(call.arg[0], "doctor");
}

TEST(paths_may_begin_at_home)
{
    cli_call call;
    fth_err err = {0};
    setenv("HOME", "/home/ann", 1);
    unsetenv("NOWHERE");
    OKE(parse(&call, "report ~/out -o=$HOME/page.html", &err), &err);
    EQ_STR(call.arg[0], "/home/ann/out");
    EQ_STR(cli_get(&call, "output"), "/home/ann/page.html");
    OKE(parse(&call, "report ./~/out --output ${HOME}/$x", &err), &err);
    EQ_STR(call.arg[0], "./~/out");
    EQ_STR(cli_get(&call, "output"), "/home/ann/$x");
    setenv("RUN_20b", "/data/20", 1);
    OKE(parse(&call, "report $RUN_20b/out", &err), &err);
    EQ_STR(call.arg[0], "/data/20/out");
    OKE(parse(&call, "report ${HOME/out", &err), &err); /* begins no variable */
    EQ_STR(call.arg[0], "${HOME/out");
    IS(parse(&call, "report ~bob/out", &err), FTH_E_COMMAND);
    HAS(err.text, "home folder of another user");
    IS(parse(&call, "report --output $NOWHERE/x", &err), FTH_E_COMMAND);
    HAS(err.text, "--output '$NOWHERE/x' begins with a variable that is not set");
    HAS(err.hint, "./$NOWHERE/x");
}

typedef struct wrong {
    const char *line, *text, *hint;
} wrong;

TEST(mistakes_are_named_with_the_nearest_name)
{
    static const wrong lines[] = {
        {"docter", "'docter' is not a command", "did you mean 'fathom doctor'?"},
        {"zzzzzz", "'zzzzzz' is not a command", "'fathom help' lists"},
        {"doctor --treads 2", "'fathom doctor' does not take --treads", "did you mean --threads?"},
        {"doctor --zzzzzzz", "does not take --zzzzzzz", "'fathom help doctor' lists"},
        {"version --seed 3", "'fathom version' does not take --seed", "'fathom help version'"},
        {"--seed 3 version", "'fathom version' does not take --seed", "'fathom help version'"},
        {"--ops doctor", "--ops is not a flag that can stand before", "after the command"},
        {"--josn doctor", "--josn is not a flag that can stand before", "did you mean --json?"},
        {"doctor --threads", "--threads has no value", "--threads=N"},
        {"doctor --threads two", "takes a whole number", "--threads=N"},
        {"doctor --threads -1", "takes a whole number", "--threads=N"},
        {"doctor --threads=", "takes a whole number", "--threads=N"},
        {"doctor --threads 1234567890", "at most nine digits", "--threads=N"},
        {"run all --set =3", "takes KEY=VALUE, not '=3'", "--set=KEY=VALUE"},
        {"run all --set seed", "takes KEY=VALUE, not 'seed'", "--set=KEY=VALUE"},
        {"doctor --memory lots", "takes a size", "--memory=SIZE"},
        {"doctor --device gpu", "takes auto, cpu, cuda or cuda:N, not 'gpu'", "--device=DEVICE"},
        {"doctor --device cuda:", "takes auto, cpu, cuda or cuda:N", "--device=DEVICE"},
        {"doctor --device cuda:1000", "takes auto, cpu, cuda or cuda:N", "--device=DEVICE"},
        {"doctor --log loud", "takes error, warn, info or debug", "--log=LEVEL"},
        {"doctor --scratch=", "takes a path", "--scratch=DIR"},
        {"doctor --json=yes", "--json takes no value", "--json alone"},
        {"doctor --json --json", "--json is given twice", "keep one"},
        {"doctor now", "'fathom doctor' does not take 'now'", "'fathom help doctor'"},
        {"doctor -j", "'-j' is not a flag", "two dashes"},
        {"-j", "'-j' is not a flag", "two dashes"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        cli_call call;
        fth_err err = {0};
        IS(parse(&call, lines[i].line, &err), FTH_E_COMMAND);
        HAS(err.text, lines[i].text);
        HAS(err.hint, lines[i].hint);
    }
}

/* An instrument that is a command by itself: its words are left alone, ours are taken out. */
TEST(words_of_a_direct_command_are_passed_on)
{
    cli_call call;
    fth_err err = {0};
    OKE(parse(&call,
              "bragg -cell 40 45 50 90 90 90 --threads 2 -misset -10 -h 30 --quirk cstar-z=on "
              "--quirk=last-layer=off -phi -0.5 --json",
              &err),
        &err);
    EQ_STR(call.command->name, "bragg");
    IS_TRUE(call.command->direct != NULL && !call.link);
    EQ_I64(call.n_args, 13);
    static const char *const left[] = {"-cell",   "40",  "45", "50", "90",   "90",  "90",
                                       "-misset", "-10", "-h", "30", "-phi", "-0.5"};
    for (int i = 0; i < 13; i++) EQ_STR(call.arg[i], left[i]);
    EQ_STR(cli_get(&call, "threads"), "2");
    EQ_STR(cli_get_at(&call, "quirk", 1), "last-layer=off");
    IS_TRUE(cli_get_at(&call, "quirk", 2) == NULL && cli_get(&call, "compat") == NULL);
    OKE(parse(&call, "--memory 1G bragg --compat c -- --odd", &err), &err);
    EQ_I64(call.n_args, 1);
    EQ_STR(call.arg[0], "--odd");
    EQ_STR(cli_get(&call, "compat"), "c");
    OKE(parse(&call, "bragg -hkl ~bob/a.hkl $nowhere/b", &err), &err); /* paths are its own too */
    EQ_STR(call.arg[1], "~bob/a.hkl");
    EQ_STR(call.arg[2], "$nowhere/b");
    OKE(parse(&call, "bragg", &err), &err); /* it tells its usage itself */
    IS_TRUE(call.command->direct != NULL && call.n_args == 0);
    OKE(parse(&call, "bragg --memory 1G plan -c a.yaml", &err), &err);
    EQ_STR(call.command->name, "bragg plan");
    OKE(parse(&call, "bragg --help", &err), &err);
    IS_TRUE(call.command && call.command->direct);
    IS(parse(&call, "bragg --compta c", &err), FTH_E_COMMAND);
    HAS(err.hint, "did you mean --compat?");
    IS(parse(&call, "bragg -cell 40 --treads 2", &err), FTH_E_COMMAND);
    HAS(err.hint, "did you mean --threads?");
    IS(parse(&call, "bragg plann -c a.yaml", &err), FTH_E_COMMAND);
    HAS(err.hint, "did you mean 'fathom bragg plan'?");
    IS(parse(&call, "bragg --compat c --compat c", &err), FTH_E_COMMAND);
    HAS(err.text, "--compat is given twice");
    IS(parse(&call, "--monitor 1 bragg -cell 4", &err), FTH_E_COMMAND);
    HAS(err.text, "does not take --monitor");
}

TEST(a_link_is_the_direct_command_with_its_flags)
{
    cli_call call;
    fth_err err = {0};
    snprintf(words[0], sizeof words[0], "/usr/bin/nanoBragg");
    OKE(parse(&call, "plan -cell 40 --hkl a.hkl --seed 3", &err), &err);
    words[0][0] = '\0';
    IS_TRUE(call.link && call.command->direct != NULL);
    EQ_STR(cli_get(&call, "compat"), "c");
    EQ_STR(cli_get(&call, "seed"), "3");
    EQ_I64(call.n_args, 5); /* the other program knows no verbs, and finds -hkl in --hkl */
    EQ_STR(call.arg[0], "plan");
    EQ_STR(call.arg[3], "--hkl");
    EQ_I64(call.link->code, 9);
    IS_TRUE(!call.link->gpu);
    snprintf(words[0], sizeof words[0], "nanoBragg");
    OKE(parse(&call, "--compat spec", &err), &err);
    words[0][0] = '\0';
    EQ_STR(cli_get(&call, "compat"), "spec"); /* what is typed wins */
}

/* The programs that come with nanoBragg, each as the command that does its work. */
TEST(every_companion_has_a_link)
{
    static const struct {
        const char *name, *command;
        bool gpu;
    } t[] = {{"nanoBragg", "bragg", false},
             {"nanoBraggCUDA", "bragg", true},
             {"noisify", "bragg noisify", false},
             {"nonBragg", "bragg nonbragg", false}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        cli_call call;
        fth_err err = {0};
        snprintf(words[0], sizeof words[0], "./bin/%s", t[i].name);
        OKE(parse(&call, "-seed 3 -what --ever", &err), &err);
        words[0][0] = '\0';
        EQ_STR(call.command->name, t[i].command);
        EQ_STR(cli_get(&call, "compat"), "c");
        EQ_I64(call.n_args, 4);
        EQ_I64(call.link->code, 9);
        EQ_I64(call.link->gpu, t[i].gpu);
    }
}

TEST(every_device_and_level_is_taken)
{
    static const char *const lines[] = {
        "doctor --device auto", "doctor --device cuda:12", "doctor --log error",
        "doctor --log debug",   "doctor --memory 50%",     "doctor --device=cpu",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        cli_call call;
        fth_err err = {0};
        OKE(parse(&call, lines[i], &err), &err);
    }
}

TEST(help_fits_eighty_columns)
{
    for (int i = -1; i < 0 || cli_command_at(i); i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *f = open_memstream(&text, &bytes);
        if (i < 0)
            cli_help_all(f);
        else
            cli_help_command(f, cli_command_at(i));
        fclose(f);
        for (const char *line = text; *line;) {
            const size_t n = strcspn(line, "\n");
            if (n > 80) FAIL("%zu columns: %.*s", n, (int)n, line);
            line += n + 1;
        }
        IS_TRUE(bytes > 100);
        free(text);
    }
}

/* Names are unique, and every word of `globals` is a global flag. */
TEST_REPEAT(the_table_is_sound)
{
    const cli_command *c;
    for (int i = 0; (c = cli_command_at(i)); i++) {
        EQ_PTR(cli_find(c->name), c);
        int wanted = 2, own = 0, all = 0; /* --help and --trace, named or not */
        for (const char *w = c->globals; *w; w += *w == ' ') {
            const size_t n = strcspn(w, " ");
            wanted += n != 5 || strncmp(w, "trace", n) != 0;
            w += n;
        }
        for (const fth_flag *f = c->own; f && f->name; f++) own++;
        for (const fth_flag *f = c->stage; f && f->name; f++) own++;
        for (const fth_flag *f = c->both; f && f->name; f++) own += cli_is_verbs_alone(c, f->name);
        while (cli_flag_at(c, all)) all++;
        EQ_I64(all, own + wanted);
        for (int a = 0; a < all; a++)
            for (int b = 0; b < a; b++) {
                const fth_flag *x = cli_flag_at(c, a), *y = cli_flag_at(c, b);
                IS_TRUE(strcmp(x->name, y->name) != 0);
                IS_TRUE(x->letter == 0 || x->letter != y->letter);
            }
    }
    for (int s = FTH_OK + 1; s < FTH_STATUS_COUNT; s++) {
        bool known = false;
        for (int i = 0; i < cli_n_exits; i++)
            known |= cli_exits[i].code == fth_status_get_info((fth_status)s)->exit_code;
        IS_TRUE(known);
    }
}

/* What a verb does not heed is refused: it would compute and write where a plan was asked for. */
TEST(verbs_take_only_the_flags_that_they_heed)
{
    static const char *const own[] = {"seed", "plan", "json", "quiet"};
    fth_err err = {0};
    for (int i = 0; cli_verb_at(i); i++) {
        const cli_command *c = cli_verb_at(i);
        char line[200];
        if (!c->verb) continue;
        IS_TRUE(c->verb->heeds != NULL);
        size_t known = 0;
        for (int k = 0; k < 4; k++) {
            cli_call call;
            const bool heeds = strstr(c->verb->heeds, own[k]) != NULL;
            known += heeds ? strlen(own[k]) + 1 : 0;
            int n = snprintf(line, sizeof line, "%s --%s%s", c->name, own[k], k == 0 ? "=1" : "");
            for (int w = 0; w < c->min_args; w++)
                n += snprintf(line + n, sizeof line - (size_t)n, " word");
            /* What the stage of this name takes is refused when the verb runs. */
            IS(parse(&call, line, &err), heeds || c->of_stage ? FTH_OK : FTH_E_COMMAND);
        }
        EQ_U64(strlen(c->verb->heeds) + 1, known > 0 ? known : 1); /* and no other word */
    }
}

static fth_status run_nothing(fth_context *ctx, int n_args, char *const *arg,
                              const char *(*value)(void *user, const char *flag), void *user,
                              FILE *out, fth_err *err)
{
    (void)ctx, (void)n_args, (void)arg, (void)value, (void)user, (void)out, (void)err;
    return FTH_OK;
}

TEST(a_verb_says_which_flags_it_heeds_or_is_refused)
{
    fth_verb verb = {.name = "tell", .run = run_nothing};
    const fth_verb *const verbs[] = {&verb};
    fth_instrument in = *cli_verb_at(0)->instrument;
    fth_err err = {0};
    in.verb = verbs;
    in.n_verbs = 1;
    IS(fth_instrument_check(&in, &err), FTH_E_USAGE);
    HAS(err.text, "verb 'tell' of instrument ");
    HAS(err.text, " is refused: it does not say which flags it heeds");
    verb.heeds = "";
    OKE(fth_instrument_check(&in, &err), &err);
    verb.run = NULL;
    IS(fth_instrument_check(&in, &err), FTH_E_USAGE);
}

static const char *given; /* flags, between blanks */

static const char *value_of(void *user, const char *flag)
{
    (void)user;
    return strstr(given, flag) ? "" : NULL;
}

/* What a verb with one file says under these flags; to be freed. */
static char *answer_of(const char *flags, fth_status ends)
{
    fth_context *ctx = NULL;
    fth_answer a;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    given = flags;
    OK(fth_context_create(&ctx, NULL, NULL));
    OK(fth_answer_begin(&a, ctx, value_of, NULL, out, NULL));
    fth_answer_file(&a, FTH_FILE_OUTPUT, "a.npy", 3 << 10, "f32 %d x %d", 24, 32);
    fth_answer_file(&a, FTH_FILE_INPUT, "/nowhere", -1, NULL);
    if (a.plan) fth_answer_memory(&a, 5 << 20, "worked out");
    if (!a.plan) fprintf(a.out, "42\n");
    if (!a.plan) fprintf(a.notes, "wrote a.npy\n");
    if (a.json) fth_json_int(fth_answer_facts(&a), "depth", 42);
    IS(fth_answer_end(&a, ends, NULL), ends);
    OK(fth_context_destroy(ctx, NULL));
    fclose(out);
    return text;
}

TEST(an_answer_is_lines_or_one_document)
{
    static const struct {
        const char *flags, *said;
    } rows[] = {
        {"", "42\nwrote a.npy\n"},
        {"quiet", "42\n"},
        {"plan",
         "writes a.npy: f32 24 x 32, 3.00 KiB\nreads  /nowhere\nmemory 5.00 MiB: worked out\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = answer_of(rows[i].flags, FTH_OK);
        EQ_STR(text, rows[i].said);
        free(text);
    }
    char *text = answer_of("json", FTH_OK), *plan = answer_of("json plan", FTH_OK),
         *none = answer_of("json", FTH_E_NUMERIC);
    HAS(text, "\"path\":\"a.npy\",\"use\":\"writes\",\"bytes\":3072,\"holds\":\"f32 24 x 32\"");
    HAS(text, "\"depth\": 42");
    IS_TRUE(!strstr(text, "wrote"));
    HAS(plan, "\"planned_bytes\": 5242880");
    EQ_STR(none, "");
    free(text);
    free(plan);
    free(none);
}

TEST(documents_have_a_line_for_every_value)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fth_json_writer j;
    cli_json_begin(&j, out);
    fth_json_open(&j, NULL, '{');
    fth_json_text(&j, "a\"", "l\xc3\xa9s\\\n\x01\xe9");
    fth_json_text(&j, "none", NULL);
    fth_json_open(&j, "list", '[');
    fth_json_u64(&j, NULL, INT64_MAX);
    fth_json_real(&j, NULL, (double)NAN);
    fth_json_real(&j, NULL, 2.0 / 3);
    fth_json_open(&j, NULL, '{');
    fth_json_real(&j, "half", 0.5);
    fth_json_close(&j);
    fth_json_close(&j);
    fth_json_open(&j, "empty", '{');
    fth_json_close(&j);
    fth_json_bool(&j, "yes", true);
    fth_json_close(&j);
    OK(fth_json_end(&j, NULL));
    fclose(out);
    EQ_STR(text, "{\n  \"a\\\"\": \"l\xc3\xa9s\\\\\\n\\u0001\xef\xbf\xbd\",\n  \"none\": null,\n"
                 "  \"list\": [\n    9223372036854775807,\n    null,\n    0.666667,\n"
                 "    {\n      \"half\": 0.5\n    }\n  ],\n"
                 "  \"empty\": {},\n  \"yes\": true\n}\n");
    free(text);
}

/* Every operation has a sample, which the support table shows, but for those that only the planner,
 * a gradient or a cast makes, and index, which has no dtype. */
TEST(every_operation_is_in_the_support_table)
{
    static const char *const ops[] = {
#define FTH_OP(name, ...) #name,
#define FTH_OP_INNER(name, ...) #name,
#include <fathom/ops.def>
    };
    static const char hidden[] = " fused checked_cast index fold dot_reduce conv2d_grad_input "
                                 "conv2d_grad_weight ";
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", ops[k]);
        bool found = strstr(hidden, word) != NULL;
        for (int i = 0; !found && fth_sample_at(i); i++)
            found = strcmp(fth_sample_at(i)->op, ops[k]) == 0;
        if (!found) FAIL("%s is not in the table", ops[k]);
    }
}

TEST(every_row_of_the_support_table_takes_something)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    OK(fth_context_create(&ctx, &opt, NULL));
    for (int i = 0; fth_sample_at(i); i++) {
        const char *name = fth_sample_at(i)->name;
        int taken = 0;
        for (int t = 0; t < FTH_DTYPE_COUNT; t++) taken += doctor_supports(ctx, i, (fth_dtype)t);
        if (taken == 0) FAIL("%s takes no dtype", name);
        if (strcmp(name, "cholesky") == 0) { /* reals and complex numbers */
            IS_TRUE(doctor_supports(ctx, i, FTH_F64));
            IS_TRUE(!doctor_supports(ctx, i, FTH_BOOL));
        }
    }
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
