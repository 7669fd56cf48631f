/* help.c - help for people, from the table, within 80 columns. */
#include "cli.h"

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

void cli_usage(FILE *out, const cli_command *command)
{
    fprintf(out, "fathom %s", command->name);
    for (int i = 0; i < CLI_FLAGS && command->own[i].name; i++)
        fprintf(out, " [--%s%s%s]", command->own[i].name, command->own[i].value ? " " : "",
                command->own[i].value ? cli_value_name(command->own[i].value) : "");
    if (command->globals[0]) fprintf(out, " [FLAGS]");
    if (command->args[0]) fprintf(out, " %s", command->args);
}

void cli_help_all(FILE *out)
{
    fprintf(out,
            "fathom %s: scientific imaging and spatial data within a memory budget\n\n"
            "usage: fathom COMMAND [FLAGS] [ARGUMENTS]\n\n",
            fth_version());
    for (int i = 0; i < cli_n_commands; i++) {
        const int n = fprintf(out, "  %-9s ", cli_commands[i].name);
        cli_wrap(out, cli_commands[i].brief, n, n);
    }
    fprintf(out, "\n'fathom help COMMAND' or 'fathom COMMAND --help' tells more.\n");
}

void cli_help_command(FILE *out, const cli_command *command)
{
    fprintf(out, "usage: ");
    cli_usage(out, command);
    fprintf(out, "\n\n");
    cli_wrap(out, command->doc, 0, 0);
    fprintf(out, "\nflags:\n");
    const cli_flag *f;
    for (int i = 0; (f = cli_flag_at(command, i)); i++) {
        const char *value = cli_value_name(f->value);
        const int n = fprintf(out, "  --%s%s%s", f->name, value ? " " : "", value ? value : "");
        cli_wrap(out, f->doc, n, n < NAMES ? NAMES : n + 2);
    }
    if (command->example[0]) fprintf(out, "\nexamples:\n");
    for (const char *line = command->example; *line;) {
        const int n = (int)strcspn(line, "\n");
        fprintf(out, "  %.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
}

fth_status cli_run_help(const cli_call *call, fth_err *err)
{
    if (call->n_args == 0) {
        cli_help_all(call->out);
        return FTH_OK;
    }
    /* The parser knows how to refuse a name that is no command. */
    cli_call other = {.out = call->out};
    char *argv[] = {NULL, call->arg[0]};
    FTH_TRY(cli_parse(&other, 2, argv, err));
    if (!other.command) {
        FTH_FAIL(err, FTH_E_COMMAND, "'%.200s' is not a command of fathom", call->arg[0]);
        fth_err_hint(err, "'fathom help' lists the commands");
        return FTH_E_COMMAND;
    }
    cli_help_command(call->out, other.command);
    return FTH_OK;
}
