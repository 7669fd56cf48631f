/* verbs.c - the commands of the instruments: every stage is one, and so is every further verb.
 *
 * They are made from the structs of the instruments when the first one is asked for, so help,
 * pages and completions know a new instrument without a line here.
 */
#include "instruments/list.h"
#include "stage.h"

#include <limits.h>
#include <string.h>

enum { VERBS = 128, TEXT = 192 * VERBS };

#define STAGE_FLAGS                                                                                \
    {.name = "config",                                                                             \
     .value = FTH_FLAG_FILE,                                                                       \
     .letter = 'c',                                                                                \
     .doc = "config of one job, YAML or JSON"},                                                    \
        {.name = "set",                                                                            \
         .value = FTH_FLAG_SET,                                                                    \
         .many = true,                                                                             \
         .doc = "change one key of the config, as in training.max_iter=100"},                      \
        {.name = "lenient", .doc = "report unknown keys of the config as notices, not errors"},    \
        {.name = "verify", .doc = "hash inputs over 1 GiB whole, not only their ends"},            \
    {                                                                                              \
        .name = "attempt", .value = FTH_FLAG_WORD,                                                 \
        .doc = "set by the runner: progress goes to file descriptor 3, and the process ends with " \
               "its parent"                                                                        \
    }
/* Every stage has --force; those that keep partial results list it themselves. */
static const fth_flag stage_flags[] = {STAGE_FLAGS, FTH_STAGE_FORCE, {0}};
static const fth_flag keeping_flags[] = {STAGE_FLAGS, {0}};

static const fth_flag generate_flags[] = {
    {.name = "config", .value = FTH_FLAG_FILE, .letter = 'c', .doc = "general config"},
    {.name = "force", .doc = "also overwrite files that were edited"},
    {0}};

static struct {
    bool made;
    int n;
    size_t used;
    cli_command command[VERBS + 1];
    char text[TEXT];
} built;

static const char *name_of(const char *instrument, const char *verb)
{
    char *name = built.text + built.used;
    const int n = snprintf(name, TEXT - built.used, "%s%s%s", instrument, verb[0] ? " " : "", verb);
    built.used += (size_t)n + 1 < TEXT - built.used ? (size_t)n + 1 : 0;
    return name;
}

/* Flags that the context handles, and those that the verb handles itself. */
static const char *verb_globals(const fth_verb *verb)
{
    char *text = built.text + built.used;
    const int n = snprintf(text, TEXT - built.used, "%s %s",
                           "memory device-memory device plain-products threads monitor "
                           "trace-kernels scratch log",
                           verb->heeds ? verb->heeds : "");
    built.used += (size_t)n + 1 < TEXT - built.used ? (size_t)n + 1 : 0;
    return text;
}

static void add(const fth_instrument *in, const char *verb, const cli_command *made)
{
    if (built.n == VERBS) return;
    cli_command *c = &built.command[built.n++];
    *c = *made;
    c->name = name_of(in->name, verb);
    c->instrument = in;
}

/* The verb of that name that an instrument has of its own; NULL: it has none. */
static const fth_verb *verb_named(const fth_instrument *in, const char *name)
{
    for (int i = 0; i < in->n_verbs; i++)
        if (strcmp(in->verb[i]->name, name) == 0) return in->verb[i];
    return NULL;
}

static bool is_stage(const fth_instrument *in, const char *name)
{
    for (int i = 0; i < in->n_stages; i++)
        if (strcmp(in->stage[i].name, name) == 0) return true;
    return false;
}

/* The first flag that was given and only the verb has; NULL: there is none. */
static const char *own_flag(const cli_call *call)
{
    for (int i = 0; i < call->n_set; i++)
        if (cli_is_verbs_alone(call->command, call->set[i].flag->name))
            return call->set[i].flag->name;
    return NULL;
}

static bool has_config(const cli_command *command)
{
    for (const fth_flag *f = command->both; f && f->name; f++)
        if (strcmp(f->name, "config") == 0) return true;
    return false;
}

/* A config that can be read and names no instrument is no job. */
static bool is_nameless(const char *path)
{
    fth_mem *mem = NULL;
    fth_config *cfg = NULL;
    if (fth_mem_create(&mem, NULL, NULL) != FTH_OK) return false;
    const bool nameless = fth_config_create(&cfg, mem, NULL) == FTH_OK &&
                          fth_config_read(cfg, path, NULL) == FTH_OK &&
                          !fth_config_peek(cfg, "instrument");
    (void)fth_config_destroy(cfg, NULL);
    (void)fth_mem_destroy(mem, NULL);
    return nameless;
}

/* A verb that takes no words is meant when one of its own flags is given, or settings of its own
 * --config. */
static bool is_meant(const cli_call *call)
{
    if (call->n_args > 0 || call->command->max_args > 0) return call->n_args > 0;
    const char *config = cli_get(call, "config");
    return own_flag(call) || (config && has_config(call->command) && is_nameless(config));
}

static fth_status run_one_stage(const cli_call *call, fth_err *err)
{
    const char *flag = own_flag(call);
    if (!flag) return cli_run_stage(call, err);
    if (!cli_get(call, "config")) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected %s, found none", call->command->args);
        fth_err_hint(err, "fathom %s %s --%s ..", call->command->name, call->command->args, flag);
        return FTH_E_COMMAND;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "--%s goes with '%s'; this is the stage of a config", flag,
             call->command->args);
    fth_err_hint(err, "write --set %s=VALUE, or name the files", flag);
    return FTH_E_COMMAND;
}

/* A stage and a verb of one name: words after it are files of the verb, a config alone is a job. */
static fth_status run_either(const cli_call *call, fth_err *err)
{
    static const char *const of_runner[] = {"attempt", "lenient", "verify", "seed"};
    const char *heeds = call->command->verb->heeds;
    if (!is_meant(call)) return run_one_stage(call, err);
    for (size_t i = 0; i < sizeof of_runner / sizeof of_runner[0]; i++)
        if (cli_get(call, of_runner[i]) && !(heeds && strstr(heeds, of_runner[i]))) {
            const char *flag = own_flag(call);
            FTH_FAIL(err, FTH_E_COMMAND, "--%s goes with the config of a job, not with %s%s",
                     of_runner[i],
                     call->n_args > 0 ? ""
                     : flag           ? "--"
                                      : "a config that names no instrument",
                     call->n_args > 0 ? call->command->args
                     : flag           ? flag
                                      : "");
            fth_err_hint(err, "leave it out, or give the config alone");
            return FTH_E_COMMAND;
        }
    return cli_run_verb(call, err);
}

static void add_stage(const fth_instrument *in, const fth_stage *stage, const char *globals)
{
    const fth_verb *verb = verb_named(in, stage->name);
    cli_command c = {.args = "",
                     .brief = stage->brief,
                     .doc =
                         "Runs this stage of the job of one config in this process. Its inputs, "
                         "and the results of earlier stages, must exist; 'fathom run' makes them.",
                     .example = "",
                     .globals = globals,
                     .own = stage->keeps ? keeping_flags : stage_flags,
                     .stage = stage->flag,
                     .of_stage = stage,
                     .run = cli_run_stage};
    if (verb) {
        c.args = verb->args;
        c.max_args = verb->max_args;
        c.brief = verb->brief;
        c.doc = verb->doc ? verb->doc : verb->brief;
        c.both = verb->flag;
        c.verb = verb;
        c.run = run_either;
    }
    add(in, stage->name, &c);
}

static void add_instrument(const fth_instrument *in)
{
#define COMPUTES                                                                                   \
    "memory device-memory device plain-products threads seed plan json monitor trace-kernels "     \
    "scratch log quiet"
#define PLANS "memory device-memory device plain-products threads seed json scratch log"
#define DIRECT                                                                                     \
    "memory device-memory device plain-products threads seed plan json trace trace-kernels "       \
    "scratch log quiet"
    const char *computes = in->ranks ? COMPUTES " ranks" : COMPUTES,
               *direct_globals = in->ranks ? DIRECT " ranks" : DIRECT;
    if (in->direct)
        add(in, "",
            &(cli_command){.args = in->direct->args,
                           .max_args = INT_MAX,
                           .brief = in->direct->brief,
                           .doc = in->direct->doc,
                           .example = in->direct->example,
                           .globals = direct_globals,
                           .stage = in->direct->flag,
                           .direct = in->direct,
                           .run = cli_run_direct});
    for (int i = 0; i < in->n_stages; i++) add_stage(in, &in->stage[i], computes);
    if (in->n_stages > 0 && !verb_named(in, "plan"))
        add(in, "plan",
            &(cli_command){
                .args = "",
                .brief = "show the memory of every stage, and write nothing",
                .doc = "Plans all stages of the jobs of a config within the memory budget, from "
                       "metadata alone. The exit code is 4 when one does not fit.",
                .example = "",
                .globals = in->ranks ? PLANS " ranks" : PLANS,
                .own = cli_plan_flags,
                .run = cli_run_plan});
    if (in->n_variants || in->expand || in->model_key)
        add(in, "generate",
            &(cli_command){.args = "",
                           .brief = "write the configs that a general config stands for",
                           .doc = "Writes one config for each model beside the general one. Files "
                                  "that were edited since are kept.",
                           .example = "",
                           .globals = "json quiet",
                           .own = generate_flags,
                           .run = cli_run_generate});
    for (int i = 0; i < in->n_verbs; i++) {
        if (is_stage(in, in->verb[i]->name)) continue; /* one command: add_stage */
        add(in, in->verb[i]->name,
            &(cli_command){.args = in->verb[i]->args,
                           .min_args = in->verb[i]->min_args,
                           .max_args = in->verb[i]->max_args,
                           .brief = in->verb[i]->brief,
                           .doc = in->verb[i]->doc ? in->verb[i]->doc : in->verb[i]->brief,
                           .example = "",
                           .globals = verb_globals(in->verb[i]),
                           .stage = in->verb[i]->flag,
                           .verb = in->verb[i],
                           .run = cli_run_verb});
    }
}

const cli_command *cli_verb_at(int i)
{
    if (!built.made) {
        built.made = true;
        for (int k = 0; k < fth_n_instruments; k++) add_instrument(fth_instruments[k]);
    }
    return i >= 0 && i < built.n ? &built.command[i] : NULL;
}
