/* parse.c - from argv to a call: the command, its flags with checked values, and the rest.
 *
 * Flags may stand anywhere, also before the command. `--` ends them. What is not known is refused
 * with the nearest name that is. An instrument that is a command by itself gets all words that are
 * not flags with two dashes as they are: -cell and -0.5 are its own business.
 */
#include "../cli.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *words;
} values[FTH_FLAG_VALUE_COUNT] = {
    [FTH_FLAG_NONE] = {NULL, NULL},
    [FTH_FLAG_COUNT] = {"N", NULL},
    [FTH_FLAG_PERIOD] = {"N", NULL},
    [FTH_FLAG_SIZE] = {"SIZE", NULL},
    [FTH_FLAG_DEVICE] = {"DEVICE", "auto cpu cuda"},
    [FTH_FLAG_LEVEL] = {"LEVEL", "error warn info debug"},
    [FTH_FLAG_FILE] = {"FILE", NULL},
    [FTH_FLAG_DIR] = {"DIR", NULL},
    [FTH_FLAG_PATH] = {"PATH", NULL},
    [FTH_FLAG_WORD] = {"TEXT", NULL},
    [FTH_FLAG_SET] = {"KEY=VALUE", NULL},
    [FTH_FLAG_KEY] = {"VALUE", NULL},
    [FTH_FLAG_STAGE] = {"STAGE", NULL},
    [FTH_FLAG_JOB] = {"PATTERN", NULL},
};

const char *cli_value_name(fth_flag_value value)
{
    return values[value].name;
}

const char *cli_value_words(fth_flag_value value)
{
    return values[value].words;
}

const cli_command *cli_find(const char *name)
{
    const cli_command *c;
    for (int i = 0; (c = cli_command_at(i)); i++)
        if (strcmp(c->name, name) == 0) return c;
    return strcmp(cli_worker.name, name) == 0 ? &cli_worker : NULL;
}

const char *cli_verb_of(const cli_command *command, const char *group)
{
    const size_t n = strlen(group);
    const bool inside = strncmp(command->name, group, n) == 0 && command->name[n] == ' ';
    return inside ? command->name + n + 1 : NULL;
}

const cli_command *cli_direct_of(const char *group)
{
    const cli_command *c = group ? cli_find(group) : NULL;
    return c && c->direct ? c : NULL;
}

bool cli_is_group(const char *word)
{
    const cli_command *c;
    for (int i = 0; (c = cli_command_at(i)); i++)
        if (cli_verb_of(c, word)) return true;
    return false;
}

static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *w = words; w && *w;) {
        const size_t len = strcspn(w, " ");
        if (len == n && strncmp(w, word, n) == 0) return true;
        w += len;
        w += strspn(w, " ");
    }
    return false;
}

static bool has_flag(const fth_flag *list, const char *name)
{
    for (; list && list->name; list++)
        if (strcmp(list->name, name) == 0) return true;
    return false;
}

bool cli_is_verbs_alone(const cli_command *c, const char *flag)
{
    return has_flag(c->both, flag) && !has_flag(c->own, flag) && !has_flag(c->stage, flag);
}

const fth_flag *cli_flag_at(const cli_command *command, int i)
{
    const fth_flag *const lists[] = {command->own, command->stage};
    for (int l = 0; l < 2; l++)
        for (const fth_flag *f = lists[l]; f && f->name; f++)
            if (i-- == 0) return f;
    for (const fth_flag *f = command->both; f && f->name; f++)
        if (cli_is_verbs_alone(command, f->name) && i-- == 0) return f;
    for (int k = 0; k < cli_n_globals; k++) {
        const char *name = cli_globals[k].name;
        if ((has_word("help trace", name) || has_word(command->globals, name)) && i-- == 0)
            return &cli_globals[k];
    }
    return NULL;
}

const char *cli_get_at(const cli_call *call, const char *flag, int i)
{
    for (int k = 0; k < call->n_set; k++)
        if (strcmp(call->set[k].flag->name, flag) == 0 && i-- == 0) return call->set[k].value;
    return NULL;
}

const char *cli_get(const cli_call *call, const char *flag)
{
    return cli_get_at(call, flag, 0);
}

/* The number of the word of `list` that is nearest, copied to `near`; false: none is. */
static bool nearest(const char *list, const char *word, char *near, size_t bytes)
{
    int i = fth_word_nearest(list, word);
    if (i < 0) return false;
    for (; i > 0; i--) list = strchr(list, ' ') + 1;
    snprintf(near, bytes, "%.*s", (int)strcspn(list, " "), list);
    return true;
}

static void add_word(char *list, size_t bytes, const char *word)
{
    const size_t n = strlen(list);
    snprintf(list + n, bytes - n, "%s%s", n ? " " : "", word);
}

/* The verbs of a group; the first words of all commands where it is NULL. */
static void list_words(const char *group, char *list, size_t bytes)
{
    const cli_command *c;
    list[0] = '\0';
    for (int i = 0; (c = cli_command_at(i)); i++) {
        const char *verb = group ? cli_verb_of(c, group) : NULL;
        if (verb) add_word(list, bytes, verb);
        if (group) continue;
        char first[64];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(c->name, " "), c->name);
        if (!has_word(list, first)) add_word(list, bytes, first);
    }
}

/* A first word that is neither command nor group, or a verb that its group does not have. */
static fth_status no_command(const char *group, const char *name, fth_err *err)
{
    char list[4096], near[64];
    list_words(group, list, sizeof list);
    if (!group)
        FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a command of fathom", name);
    else if (!name)
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom %s' needs a verb: %s", group, list);
    else
        FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a verb of 'fathom %s'", name, group);
    if (name && nearest(list, name, near, sizeof near))
        fth_err_hint(err, "did you mean 'fathom %s%s%s'?", group ? group : "", group ? " " : "",
                     near);
    else
        fth_err_hint(err, "'fathom help%s%s' lists them", group ? " " : "", group ? group : "");
    return FTH_E_COMMAND;
}

static fth_status no_flag(const cli_command *command, const char *name, fth_err *err)
{
    char list[8192] = "", near[64];
    for (int i = 0; command && cli_flag_at(command, i); i++)
        add_word(list, sizeof list, cli_flag_at(command, i)->name);
    for (int i = 0; !command && i < cli_n_globals; i++)
        add_word(list, sizeof list, cli_globals[i].name);
    if (command)
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom %s' does not take --%.200s", command->name, name);
    else
        FTH_FAIL(err, FTH_E_COMMAND, "--%.200s is not a flag that can stand before the command",
                 name);
    if (nearest(list, name, near, sizeof near))
        fth_err_hint(err, "did you mean --%s?", near);
    else if (command)
        fth_err_hint(err, "'fathom help %s' lists the flags", command->name);
    else
        fth_err_hint(err, "put it after the command; 'fathom help' lists the commands");
    return FTH_E_COMMAND;
}

bool cli_is_device(const char *text)
{
    if (has_word(values[FTH_FLAG_DEVICE].words, text)) return *text != '\0';
    const char *number = text + 5;
    return strncmp(text, "cuda:", 5) == 0 && *number && strlen(number) < 4 &&
           strspn(number, "0123456789") == strlen(number);
}

static bool is_path(const fth_flag *flag)
{
    return flag->value == FTH_FLAG_FILE || flag->value == FTH_FLAG_DIR ||
           flag->value == FTH_FLAG_PATH;
}

static bool is_count(const char *text)
{
    return *text && strlen(text) <= 9 && !text[strspn(text, "0123456789")];
}

static bool is_period(const char *text)
{
    const long seconds = is_count(text) ? strtol(text, NULL, 10) : 0;
    return seconds >= 1 && seconds <= 86400;
}

static fth_status check_value(const fth_flag *flag, const char *text, fth_err *err)
{
    uint64_t bytes = 0;
    const char *wanted = NULL;
    if (flag->value == FTH_FLAG_COUNT && !is_count(text))
        wanted = "a whole number, at most nine digits";
    else if (flag->value == FTH_FLAG_PERIOD && !is_period(text))
        wanted = "whole seconds, from 1 to 86400";
    else if (flag->value == FTH_FLAG_SIZE &&
             fth_mem_parse_size(text, 1 << 30, &bytes, NULL) != FTH_OK)
        wanted = "a size such as 512M, 8GiB or 50%";
    else if (flag->value == FTH_FLAG_DEVICE && !cli_is_device(text))
        wanted = "auto, cpu, cuda or cuda:N";
    else if (flag->value == FTH_FLAG_LEVEL &&
             (!*text || !has_word(values[FTH_FLAG_LEVEL].words, text)))
        wanted = "error, warn, info or debug";
    else if (is_path(flag) && !*text)
        wanted = "a path";
    else if (flag->value == FTH_FLAG_SET && (strcspn(text, "=") == 0 || !strchr(text, '=')))
        wanted = "KEY=VALUE";
    if (!wanted) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "--%s takes %s, not '%.200s'", flag->name, wanted, text);
    fth_err_hint(err, "write --%s=%s", flag->name, values[flag->value].name);
    return FTH_E_COMMAND;
}

static const fth_flag *find_flag(const cli_command *command, const char *name, size_t n)
{
    const fth_flag *f;
    for (int i = 0; command && (f = cli_flag_at(command, i)); i++)
        if (strlen(f->name) == n && strncmp(f->name, name, n) == 0) return f;
    for (int i = 0; !command && i < cli_n_globals; i++)
        if (strlen(cli_globals[i].name) == n && strncmp(cli_globals[i].name, name, n) == 0)
            return &cli_globals[i];
    return NULL;
}

/* A path may begin with ~ or $NAME where no shell has seen it (--out=~/x, quotes): the same as in a
 * config. The text lives as long as the program. */
static fth_status expand_path(const char **path, const char *what, fth_err *err)
{
    static struct kept {
        struct kept *next;
        char text[];
    } * all;
    char name[FTH_VARIABLE_NAME];
    const char *rest;
    const fth_path_start start = fth_path_look(*path, name, &rest);
    if (start == FTH_PATH_PLAIN) return FTH_OK;
    const char *value = start == FTH_PATH_VARIABLE ? getenv(name) : NULL;
    if (!value || !*value) {
        FTH_FAIL(err, FTH_E_COMMAND, "%s '%.200s' begins with %s", what, *path,
                 start == FTH_PATH_VARIABLE ? "a variable that is not set"
                                            : "the home folder of another user");
        fth_err_hint(err, "write the whole path; ./%.60s is a file of that name", *path);
        return FTH_E_COMMAND;
    }
    const size_t bytes = strlen(value) + strlen(rest) + 1;
    struct kept *k = malloc(sizeof *k + bytes);
    if (!k) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a path");
    snprintf(k->text, bytes, "%s%s", value, rest);
    k->next = all;
    all = k;
    *path = k->text;
    return FTH_OK;
}

static fth_status keep_flag(cli_call *call, const fth_flag *flag, const char *value, fth_err *err)
{
    if ((!flag->many && cli_get(call, flag->name)) || call->n_set == CLI_SET) {
        FTH_FAIL(err, FTH_E_COMMAND, "--%s is given %s", flag->name,
                 flag->many ? "too often" : "twice");
        fth_err_hint(err, flag->many ? "at most %d flags are taken" : "keep one of them", CLI_SET);
        return FTH_E_COMMAND;
    }
    if (value) FTH_TRY(check_value(flag, value, err));
    if (value && is_path(flag)) {
        char what[64];
        snprintf(what, sizeof what, "--%.50s", flag->name);
        FTH_TRY(expand_path(&value, what, err));
    }
    call->set[call->n_set].flag = flag;
    call->set[call->n_set++].value = value ? value : "";
    return FTH_OK;
}

/* `value` was written with the flag, or is NULL; then the word after it is taken, if it has one. */
static fth_status take_value(cli_call *call, const fth_flag *flag, const char *value,
                             const char *next, bool *took, fth_err *err)
{
    if (flag->value == FTH_FLAG_NONE && value) {
        FTH_FAIL(err, FTH_E_COMMAND, "--%s takes no value, found '%.200s'", flag->name, value);
        fth_err_hint(err, "write --%s alone", flag->name);
        return FTH_E_COMMAND;
    }
    if (flag->value != FTH_FLAG_NONE && !value) {
        if (!next) {
            FTH_FAIL(err, FTH_E_COMMAND, "--%s has no value", flag->name);
            fth_err_hint(err, "write --%s=%s", flag->name, values[flag->value].name);
            return FTH_E_COMMAND;
        }
        value = next;
        *took = true;
    }
    return keep_flag(call, flag, value, err);
}

/* Flags that stood before the command were looked up among all global ones. */
static fth_status check_early(const cli_call *call, fth_err *err)
{
    for (int i = 0; i < call->n_set; i++) {
        const char *name = call->set[i].flag->name;
        if (!find_flag(call->command, name, strlen(name))) return no_flag(call->command, name, err);
    }
    return FTH_OK;
}

/* `word` starts with the dashes. */
static fth_status take_flag(cli_call *call, char *word, const char *next, bool *took, fth_err *err)
{
    const char *text = word + 2;
    const size_t n = strcspn(text, "=");
    const fth_flag *flag = find_flag(call->command, text, n);
    if (!flag && !call->command && cli_direct_of(call->group)) { /* no verb can follow */
        call->command = cli_direct_of(call->group);
        FTH_TRY(check_early(call, err));
        flag = find_flag(call->command, text, n);
    }
    if (!flag && call->link) { /* the program it stands for knew no such words */
        call->arg[call->n_args++] = word;
        return FTH_OK;
    }
    if (!flag) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), text);
        return no_flag(call->command, name, err);
    }
    return take_value(call, flag, text[n] ? text + n + 1 : NULL, next, took, err);
}

/* `word` is -c, -cVALUE or -h. */
static fth_status take_letter(cli_call *call, const char *word, const char *next, bool *took,
                              fth_err *err)
{
    const fth_flag *flag;
    char help[] = "--help";
    if (strcmp(word, "-h") == 0) return take_flag(call, help, NULL, took, err);
    for (int i = 0; call->command && (flag = cli_flag_at(call->command, i)); i++)
        if (flag->letter == word[1] && (flag->value != FTH_FLAG_NONE || !word[2]))
            return take_value(call, flag, word[2] ? word + 2 + (word[2] == '=') : NULL, next, took,
                              err);
    FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a flag", word);
    fth_err_hint(err, "most flags have two dashes and a whole word; 'fathom help' lists them");
    return FTH_E_COMMAND;
}

/* The first word, or the second of a group. */
static fth_status take_command(cli_call *call, char *word, fth_err *err)
{
    char name[128];
    if (!call->group && cli_is_group(word)) {
        call->group = word;
        return FTH_OK;
    }
    snprintf(name, sizeof name, "%s%s%.60s", call->group ? call->group : "", call->group ? " " : "",
             word);
    call->command = cli_find(name);
    if (call->command) return check_early(call, err);
    call->command = cli_direct_of(call->group);
    if (!call->command) return no_command(call->group, word, err);
    char list[4096], near[64]; /* a verb with a slip is no word to pass on */
    list_words(call->group, list, sizeof list);
    if (word[0] != '-' && nearest(list, word, near, sizeof near))
        return no_command(call->group, word, err);
    call->arg[call->n_args++] = word;
    return check_early(call, err);
}

void cli_take_link(cli_call *call, const char *program)
{
    const char *slash = program ? strrchr(program, '/') : NULL;
    const char *name = slash ? slash + 1 : program;
    const cli_command *c;
    for (int i = 0; name && (c = cli_command_at(i)); i++) {
        const fth_link *link = c->direct ? c->direct->link : c->verb ? c->verb->link : NULL;
        for (; link && link->name; link++)
            if (strcmp(link->name, name) == 0) {
                call->command = c;
                call->link = link;
            }
    }
}

/* Flags that the link stands for, unless they were typed. */
static fth_status take_link_flags(cli_call *call, fth_err *err)
{
    enum { MOST = sizeof call->link->flags / sizeof(char *) };
    for (int i = 0; call->link && i < MOST; i++) {
        const char *text = call->link->flags[i];
        if (!text) break;
        const size_t n = strcspn(text + 2, "=");
        const fth_flag *flag = find_flag(call->command, text + 2, n);
        if (!flag) return no_flag(call->command, text + 2, err);
        if (!cli_get(call, flag->name))
            FTH_TRY(keep_flag(call, flag, text[2 + n] ? text + 3 + n : NULL, err));
    }
    return FTH_OK;
}

/* Whether single dashes mean nothing to us. */
static bool is_raw(const cli_call *call)
{
    if (!call->command) return cli_direct_of(call->group) != NULL;
    return call->command->direct || (call->command->verb && call->command->verb->raw);
}

/* 'fathom bragg -h' asks us; a -h among the words of the instrument is its own business. */
static bool is_lone_help(const cli_call *call, const char *word)
{
    return strcmp(word, "-h") == 0 && call->n_args == 0 && !call->link;
}

static fth_status check_rest(cli_call *call, fth_err *err)
{
    if (call->group && !call->command && cli_direct_of(call->group)) {
        call->command = cli_direct_of(call->group);
        FTH_TRY(check_early(call, err));
    }
    FTH_TRY(take_link_flags(call, err));
    if (cli_get(call, "help") || is_raw(call)) return FTH_OK;
    if (call->group && !call->command) return no_command(call->group, NULL, err);
    const cli_command *c = call->command;
    if (!c || (call->n_args >= c->min_args && call->n_args <= c->max_args)) return FTH_OK;
    if (call->n_args < c->min_args) {
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom %s' needs %s, and has %d word%s", c->name, c->args,
                 call->n_args, call->n_args == 1 ? "" : "s");
        fth_err_hint(err, "write 'fathom %s %s'", c->name, c->args);
        return FTH_E_COMMAND;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "'fathom %s' does not take '%.200s'", c->name,
             call->arg[c->max_args]);
    fth_err_hint(err, "'fathom help %s' shows what it takes", c->name);
    return FTH_E_COMMAND;
}

fth_status cli_parse(cli_call *call, int argc, char **argv, fth_err *err)
{
    call->arg = argv + 1;
    cli_take_link(call, argv[0]);
    bool ended = false;
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        bool took = false;
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (!ended && !call->command && !call->group && strcmp(word, "--version") == 0) {
            call->command = cli_find("version");
        } else if (!ended && strncmp(word, "--", 2) == 0) {
            FTH_TRY(take_flag(call, word, next, &took, err));
        } else if (!ended && word[0] == '-' && word[1] &&
                   (!is_raw(call) || is_lone_help(call, word))) {
            FTH_TRY(take_letter(call, word, next, &took, err));
        } else if (!call->command) {
            FTH_TRY(take_command(call, word, err));
        } else {
            const char *path = word;
            if (!is_raw(call)) FTH_TRY(expand_path(&path, "the path", err));
            memcpy(&call->arg[call->n_args++], &path, sizeof path); /* an array of char * */
        }
        i += took;
    }
    return check_rest(call, err);
}
