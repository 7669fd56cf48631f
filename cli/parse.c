/* parse.c - from argv to a call: the command, its flags with checked values, and the rest.
 *
 * Flags may stand anywhere, also before the command. `--` ends them. What is not known is refused
 * with the nearest name that is.
 */
#include "cli.h"

#include <string.h>

static const struct {
    const char *name, *words;
} values[CLI_VALUE_COUNT] = {
    [CLI_NONE] = {NULL, NULL},
    [CLI_COUNT] = {"N", NULL},
    [CLI_SIZE] = {"SIZE", NULL},
    [CLI_DEVICE] = {"DEVICE", "auto cpu cuda"},
    [CLI_LEVEL] = {"LEVEL", "error warn info debug"},
    [CLI_FILE] = {"FILE", NULL},
    [CLI_DIR] = {"DIR", NULL},
};

const char *cli_value_name(cli_value value)
{
    return values[value].name;
}

const char *cli_value_words(cli_value value)
{
    return values[value].words;
}

const cli_command *cli_find(const char *name)
{
    for (int i = 0; i < cli_n_commands; i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
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

const cli_flag *cli_flag_at(const cli_command *command, int i)
{
    for (int k = 0; k < CLI_FLAGS && command->own[k].name; k++)
        if (i-- == 0) return &command->own[k];
    for (int k = 0; k < cli_n_globals; k++) {
        const char *name = cli_globals[k].name;
        if ((strcmp(name, "help") == 0 || has_word(command->globals, name)) && i-- == 0)
            return &cli_globals[k];
    }
    return NULL;
}

const char *cli_get(const cli_call *call, const char *flag)
{
    for (int i = 0; i < call->n_set; i++)
        if (strcmp(call->set[i].flag->name, flag) == 0) return call->set[i].value;
    return NULL;
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

static fth_status no_command(const char *name, fth_err *err)
{
    char list[1024] = "", near[64];
    for (int i = 0; i < cli_n_commands; i++) add_word(list, sizeof list, cli_commands[i].name);
    FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a command of fathom", name);
    if (nearest(list, name, near, sizeof near))
        fth_err_hint(err, "did you mean 'fathom %s'?", near);
    else
        fth_err_hint(err, "'fathom help' lists the commands");
    return FTH_E_COMMAND;
}

static fth_status no_flag(const cli_command *command, const char *name, fth_err *err)
{
    char list[1024] = "", near[64];
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
        fth_err_hint(err, "put it behind the command; 'fathom help' lists the commands");
    return FTH_E_COMMAND;
}

static bool is_device(const char *text)
{
    if (has_word(values[CLI_DEVICE].words, text)) return *text != '\0';
    const char *number = text + 5;
    return strncmp(text, "cuda:", 5) == 0 && *number && strlen(number) < 4 &&
           strspn(number, "0123456789") == strlen(number);
}

static fth_status check_value(const cli_flag *flag, const char *text, fth_err *err)
{
    uint64_t bytes = 0;
    const char *wanted = NULL;
    if (flag->value == CLI_COUNT &&
        (!*text || strlen(text) > 9 || text[strspn(text, "0123456789")]))
        wanted = "a whole number, at most nine digits";
    else if (flag->value == CLI_SIZE && fth_mem_parse_size(text, 1 << 30, &bytes, NULL) != FTH_OK)
        wanted = "a size such as 512M, 8GiB or 50%";
    else if (flag->value == CLI_DEVICE && !is_device(text))
        wanted = "auto, cpu, cuda or cuda:N";
    else if (flag->value == CLI_LEVEL && (!*text || !has_word(values[CLI_LEVEL].words, text)))
        wanted = "error, warn, info or debug";
    else if ((flag->value == CLI_FILE || flag->value == CLI_DIR) && !*text)
        wanted = "a path";
    if (!wanted) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "--%s takes %s, not '%.200s'", flag->name, wanted, text);
    fth_err_hint(err, "write --%s=%s", flag->name, values[flag->value].name);
    return FTH_E_COMMAND;
}

static const cli_flag *find_flag(const cli_command *command, const char *name, size_t n)
{
    const cli_flag *f;
    for (int i = 0; command && (f = cli_flag_at(command, i)); i++)
        if (strlen(f->name) == n && strncmp(f->name, name, n) == 0) return f;
    for (int i = 0; !command && i < cli_n_globals; i++)
        if (strlen(cli_globals[i].name) == n && strncmp(cli_globals[i].name, name, n) == 0)
            return &cli_globals[i];
    return NULL;
}

/* `text` stands behind the dashes; *next is the word after it and is taken if it is the value. */
static fth_status take_flag(cli_call *call, const char *text, const char *next, bool *took,
                            fth_err *err)
{
    const size_t n = strcspn(text, "=");
    const cli_flag *flag = find_flag(call->command, text, n);
    if (!flag) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), text);
        return no_flag(call->command, name, err);
    }
    const char *value = text[n] ? text + n + 1 : NULL;
    if (flag->value == CLI_NONE && value) {
        FTH_FAIL(err, FTH_E_COMMAND, "--%s takes no value, and got '%.200s'", flag->name, value);
        fth_err_hint(err, "write --%s alone", flag->name);
        return FTH_E_COMMAND;
    }
    if (flag->value != CLI_NONE && !value) {
        if (!next) {
            FTH_FAIL(err, FTH_E_COMMAND, "--%s has no value", flag->name);
            fth_err_hint(err, "write --%s=%s", flag->name, values[flag->value].name);
            return FTH_E_COMMAND;
        }
        value = next;
        *took = true;
    }
    if (cli_get(call, flag->name) || call->n_set == CLI_SET) {
        FTH_FAIL(err, FTH_E_COMMAND, "--%s is given twice", flag->name);
        fth_err_hint(err, "keep one of them");
        return FTH_E_COMMAND;
    }
    if (value) FTH_TRY(check_value(flag, value, err));
    call->set[call->n_set].flag = flag;
    call->set[call->n_set++].value = value ? value : "";
    return FTH_OK;
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

fth_status cli_parse(cli_call *call, int argc, char **argv, fth_err *err)
{
    call->arg = argv + 1;
    bool ended = false;
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        bool took = false;
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (!ended && strcmp(word, "-h") == 0) {
            FTH_TRY(take_flag(call, "help", NULL, &took, err));
        } else if (!ended && !call->command && strcmp(word, "--version") == 0) {
            call->command = cli_find("version");
        } else if (!ended && strncmp(word, "--", 2) == 0) {
            FTH_TRY(take_flag(call, word + 2, i + 1 < argc ? argv[i + 1] : NULL, &took, err));
        } else if (!ended && word[0] == '-' && word[1]) {
            FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a flag", word);
            fth_err_hint(err, "flags are written out, with two dashes; 'fathom help' lists them");
            return FTH_E_COMMAND;
        } else if (!call->command) {
            call->command = cli_find(word);
            if (!call->command) return no_command(word, err);
            FTH_TRY(check_early(call, err));
        } else {
            call->arg[call->n_args++] = word;
        }
        i += took;
    }
    if (call->command && !cli_get(call, "help") && call->n_args > call->command->max_args) {
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom %s' does not take '%.200s'", call->command->name,
                 call->arg[call->command->max_args]);
        fth_err_hint(err, "'fathom help %s' shows what it takes", call->command->name);
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}
