/* help.c - help for people, from the table, within 80 columns. */
#include "../cli.h"

#include <string.h>

enum { WIDTH = 78, NAMES = 24 };

void cli_wrap(FILE *out, const char *text, int column, int indent)
{
    bool first = true;
    while (*text) {
        if (strncmp(text, "\n\n", 2) == 0) {
            fprintf(out, "\n\n");
            column = 0;
            first = true;
        }
        text += strspn(text, " \n");
        const int n = (int)strcspn(text, " \n");
        if (n == 0) break;
        if (!first && column + 1 + n > WIDTH) {
            fputc('\n', out);
            column = 0;
            first = true;
        }
        if (!first) column += fprintf(out, " ");
        if (column < indent) column += fprintf(out, "%*s", indent - column, "");
        column += fprintf(out, "%.*s", n, text);
        first = false;
        text += n;
    }
    fputc('\n', out);
}

/* "-c PATH" where there is a letter, else "--json". */
static void flag_text(const fth_flag *f, char *text, size_t bytes)
{
    const char *value = cli_value_name(f->value);
    char letter[2] = {f->letter, '\0'};
    snprintf(text, bytes, "%s%s%s%s", f->letter ? "-" : "--", f->letter ? letter : f->name,
             value ? " " : "", value ? value : "");
}

/* One word of a usage, on a new line where `width` columns would be passed; 0: never. */
static int usage_word(FILE *out, const char *word, int column, int width)
{
    const int n = (int)strlen(word) + 1;
    if (width > 0 && column + n > width) {
        fprintf(out, "\n          %s", word);
        return 9 + n;
    }
    fprintf(out, " %s", word);
    return column + n;
}

static void usage(FILE *out, const cli_command *command, int column, int width)
{
    column += fprintf(out, "fathom %s", command->name);
    const fth_flag *const lists[] = {command->own, command->stage, command->both};
    bool keys = false;
    for (int l = 0; l < 3; l++)
        for (const fth_flag *f = lists[l]; f && f->name; f++) {
            char text[64], word[72];
            keys = keys || f->value == FTH_FLAG_KEY;
            if (f->value == FTH_FLAG_KEY) continue;
            if (l == 2 && !cli_is_verbs_alone(command, f->name)) continue;
            flag_text(f, text, sizeof text);
            snprintf(word, sizeof word, "[%s]%s", text, f->many ? "..." : "");
            column = usage_word(out, word, column, width);
        }
    if (keys) column = usage_word(out, "[--KEY VALUE]...", column, width);
    if (command->globals[0]) column = usage_word(out, "[FLAGS]", column, width);
    if (command->args[0]) usage_word(out, command->args, column, width);
}

void cli_usage(FILE *out, const cli_command *command)
{
    usage(out, command, 0, 0);
}

void cli_help_all(FILE *out)
{
    fprintf(out,
            "fathom %s: scientific imaging and spatial data within a memory budget\n\n"
            "usage: fathom COMMAND [FLAGS] [ARGUMENTS]\n\n",
            fth_version());
    const cli_command *c;
    char last[64] = "";
    for (int i = 0; (c = cli_command_at(i)); i++) {
        char first[64];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(c->name, " "), c->name);
        if (strcmp(first, last) == 0) continue; /* a group has one line */
        const int n = fprintf(out, "  %-9s ", first);
        cli_wrap(out, strchr(c->name, ' ') ? cli_group_brief(first) : c->brief, n, n);
        snprintf(last, sizeof last, "%s", first);
    }
    fprintf(out, "\n'fathom help COMMAND' or 'fathom COMMAND --help' tells more.\n");
}

static void list_verbs(FILE *out, const char *group)
{
    const cli_command *c;
    for (int i = 0; (c = cli_command_at(i)); i++) {
        const char *verb = cli_verb_of(c, group);
        if (!verb) continue;
        const int n = fprintf(out, "  %-12s ", verb);
        cli_wrap(out, c->brief, n, n);
    }
    fprintf(out, "\n'fathom help %s VERB' tells more.\n", group);
}

void cli_help_group(FILE *out, const char *group)
{
    fprintf(out, "usage: fathom %s VERB [FLAGS] [ARGUMENTS]\n\n", group);
    cli_wrap(out, cli_group_brief(group), 0, 0);
    fputc('\n', out);
    list_verbs(out, group);
}

void cli_help_command(FILE *out, const cli_command *command)
{
    fprintf(out, "usage: ");
    usage(out, command, 7, 79);
    fprintf(out, "\n\n");
    cli_wrap(out, command->doc, 0, 0);
    fprintf(out, "\nflags:\n");
    const fth_flag *f;
    for (int i = 0; (f = cli_flag_at(command, i)); i++) {
        const char *value = cli_value_name(f->value);
        char letter[8] = "";
        if (f->letter) snprintf(letter, sizeof letter, "-%c, ", f->letter);
        const int n =
            fprintf(out, "  %s--%s%s%s", letter, f->name, value ? " " : "", value ? value : "");
        cli_wrap(out, f->doc, n, n < NAMES ? NAMES : n + 2);
    }
    if (command->example[0]) fprintf(out, "\nexamples:\n");
    for (const char *line = command->example; *line;) {
        const int n = (int)strcspn(line, "\n");
        fprintf(out, "  %.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
    if (command->direct) {
        fprintf(out, "\nverbs, each a command of its own:\n");
        list_verbs(out, command->name);
    }
}

fth_status cli_run_help(const cli_call *call, fth_err *err)
{
    if (call->n_args == 0) {
        cli_help_all(call->out);
        return FTH_OK;
    }
    /* The parser refuses unknown names. */
    cli_call other = {.out = call->out};
    char help[] = "--help";
    char *argv[] = {NULL, call->arg[0], call->n_args > 1 ? call->arg[1] : help, help};
    FTH_TRY(cli_parse(&other, call->n_args > 1 ? 4 : 3, argv, err));
    if (call->n_args > 1 && other.command && other.command->direct) {
        FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a verb of 'fathom %s'", call->arg[1],
                 call->arg[0]);
        fth_err_hint(err, "'fathom help %s' lists them", call->arg[0]);
        return FTH_E_COMMAND;
    }
    if (other.command && strcmp(call->arg[0], "--version") != 0)
        cli_help_command(call->out, other.command);
    else if (other.group)
        cli_help_group(call->out, other.group);
    else {
        FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a command of fathom", call->arg[0]);
        fth_err_hint(err, "'fathom help' lists the commands");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}
