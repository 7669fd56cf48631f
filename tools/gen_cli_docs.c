/* gen_cli_docs.c - write the pages of the program from its table of commands.
 *
 * gen_cli_docs FOLDER writes cli.md, bragg-flags.md, man/fathom.1, man/fathom-COMMAND.1 and
 * completions/ (gen_completions.c) there. They are committed, so that they can be
 * read and installed without running this; a test compares.
 */
#include "../cli/cli.h"
#include "../instruments/bragg/flags/flags.h"
#include "gen_completions.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

/* The date of the man pages; the format wants one. */
static const char date[] = "November 15, 2026";

static FILE *page(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) perror(path);
    return f;
}

/* ---- man pages, in the language of mdoc ---- */

/* Text in which nothing is a command of roff; paragraphs become .Pp. */
static void man_text(FILE *f, const char *text)
{
    for (bool start = true; *text; text++) {
        if (strncmp(text, "\n\n", 2) == 0) {
            fputs("\n.Pp\n", f);
            text++;
            start = true;
            continue;
        }
        if (start && (*text == '.' || *text == '\'')) fputs("\\&", f);
        start = false;
        if (text[0] == '.' && text[1] == ' ') { /* each sentence has a line of its own */
            fputs(".\n", f);
            text++;
            start = true;
        } else if (*text == '\\')
            fputs("\\e", f);
        else if (*text == '-')
            fputs("\\-", f);
        else
            fputc(*text, f);
    }
    fputc('\n', f);
}

static void man_flag(FILE *f, const char *macro, const fth_flag *flag)
{
    fputs(macro, f);
    if (flag->letter) fprintf(f, " Fl %c ,", flag->letter);
    fprintf(f, " Fl \\-%s", flag->name);
    if (flag->value) fprintf(f, " Ar %s", cli_value_name(flag->value));
    fputc('\n', f);
}

static void man_head(FILE *f, const char *name, const char *title, const char *brief)
{
    fprintf(f, ".\\\" Made from cli/commands.c by make docs; do not edit.\n");
    fprintf(f, ".Dd %s\n.Dt %s 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s\n", date, title, name, brief);
}

static void man_exits(FILE *f)
{
    fputs(".Sh EXIT STATUS\n.Bl -tag -width Ds\n", f);
    for (int i = 0; i < cli_n_exits; i++) {
        fprintf(f, ".It %d\n", cli_exits[i].code);
        man_text(f, cli_exits[i].meaning);
    }
    fputs(".El\n", f);
}

/* "fathom-config-check" */
static void page_name(char *name, size_t bytes, const cli_command *c)
{
    snprintf(name, bytes, "fathom-%s", c->name);
    for (char *blank = name; (blank = strchr(blank, ' '));) *blank = '-';
}

static void man_command(FILE *f, const cli_command *c)
{
    char name[64], title[64];
    page_name(name, sizeof name, c);
    for (size_t i = 0; i <= strlen(name); i++) title[i] = (char)toupper((unsigned char)name[i]);
    man_head(f, name, title, c->brief);
    fprintf(f, ".Sh SYNOPSIS\n.Nm fathom %s\n", c->name);
    const fth_flag *flag;
    for (int i = 0; (flag = cli_flag_at(c, i)); i++) man_flag(f, ".Op", flag);
    if (strcmp(c->args, "[COMMAND]") == 0)
        fputs(".Op Ar COMMAND\n", f);
    else if (c->args[0])
        fprintf(f, ".Ar %s\n", c->args);
    fputs(".Sh DESCRIPTION\n", f);
    man_text(f, c->doc);
    fputs(".Bl -tag -width Ds\n", f);
    for (int i = 0; (flag = cli_flag_at(c, i)); i++) {
        man_flag(f, ".It", flag);
        man_text(f, flag->doc);
    }
    fputs(".El\n", f);
    man_exits(f);
    if (c->example[0]) {
        fputs(".Sh EXAMPLES\n.Bd -literal\n", f);
        man_text(f, c->example);
        fputs(".Ed\n", f);
    }
    fputs(".Sh SEE ALSO\n.Xr fathom 1\n", f);
}

/* All pages in the order of their names. */
static void man_others(FILE *f)
{
    char last[128] = "", next[128];
    do {
        const cli_command *c;
        next[0] = '\0';
        for (int i = 0; (c = cli_command_at(i)); i++) {
            char name[128];
            page_name(name, sizeof name, c);
            if (strcmp(name, last) > 0 && (!next[0] || strcmp(name, next) < 0)) strcpy(next, name);
        }
        if (next[0]) fprintf(f, "%s.Xr %s 1", last[0] ? " ,\n" : "", next);
        strcpy(last, next);
    } while (next[0]);
    fputc('\n', f);
}

static void man_program(FILE *f)
{
    man_head(f, "fathom", "FATHOM", "scientific imaging and spatial data within a memory budget");
    fputs(".Sh SYNOPSIS\n.Nm\n.Ar COMMAND\n.Op Ar FLAGS\n.Op Ar ARGUMENTS\n.Sh DESCRIPTION\n"
          "Flags may be written as\n.Fl \\-flag Ns = Ns Ar value\nor\n.Fl \\-flag Ar value ,\n"
          "before or behind the command;\n.Fl \\-\nends them.\nThe commands are:\n"
          ".Bl -tag -width Ds\n",
          f);
    const cli_command *c;
    for (int i = 0; (c = cli_command_at(i)); i++) {
        fprintf(f, ".It Cm %s\n", c->name);
        man_text(f, c->brief);
    }
    fputs(".El\n.Sh ENVIRONMENT\n.Bl -tag -width Ds\n.It Ev NO_COLOR\n"
          "If it is not empty, no colours are written.\n"
          "They are never written to a file or a pipe.\n.It Ev TMPDIR\n"
          "The scratch folder where\n.Fl \\-scratch\nis not given.\n.El\n",
          f);
    man_exits(f);
    fputs(".Sh SEE ALSO\n", f);
    man_others(f);
}

static bool man_pages(const char *folder)
{
    FILE *f = page(folder, "man/fathom.1");
    if (!f) return false;
    man_program(f);
    bool ok = fclose(f) == 0;
    const cli_command *c;
    for (int i = 0; ok && (c = cli_command_at(i)); i++) {
        char name[128], file[144];
        page_name(name, sizeof name, c);
        snprintf(file, sizeof file, "man/%s.1", name);
        if (!(f = page(folder, file))) return false;
        man_command(f, c);
        ok = fclose(f) == 0;
    }
    return ok;
}

/* ---- docs/cli.md ---- */

static void markdown_flag(FILE *f, const fth_flag *flag)
{
    fputs("| `", f);
    if (flag->letter) fprintf(f, "-%c, ", flag->letter);
    fprintf(f, "--%s%s%s` | %s%s |\n", flag->name, flag->value ? " " : "",
            flag->value ? cli_value_name(flag->value) : "", flag->doc,
            flag->many ? "; may be given more than once" : "");
}

static void markdown(FILE *f)
{
    fputs(
        "# The program\n\nMade from `cli/commands.c` by `make docs`; do not edit.\n\n"
        "`fathom COMMAND [FLAGS] [ARGUMENTS]`. Flags may be written as `--flag=value` or\n"
        "`--flag value`, before or behind the command; `--` ends them. `fathom help COMMAND` "
        "shows\n"
        "what is written here. A name that is not known is refused, with the nearest one that is.\n"
        "Results go to standard output, errors to standard error; colours only to a terminal, and\n"
        "not when `NO_COLOR` is set. Tab completes commands, flags, stages, instruments and the "
        "names\n"
        "of jobs below the current folder in bash, zsh and fish (`make install` puts this in "
        "place).\n",
        f);
    const cli_command *c;
    for (int i = 0; (c = cli_command_at(i)); i++) {
        fprintf(f, "\n## fathom %s\n\n`", c->name);
        cli_usage(f, c);
        fprintf(f, "`: %s.\n\n%s\n\n| flag | |\n|---|---|\n", c->brief, c->doc);
        const fth_flag *flag;
        for (int k = 0; (flag = cli_flag_at(c, k)); k++) markdown_flag(f, flag);
        if (c->example[0]) fprintf(f, "\n```sh\n%s\n```\n", c->example);
    }
    fputs("\n## Exit codes\n\n| code | |\n|---|---|\n", f);
    for (int i = 0; i < cli_n_exits; i++)
        fprintf(f, "| %d | %s |\n", cli_exits[i].code, cli_exits[i].meaning);
    fputs("\nThe code of an error is in the table of [errors](errors.md).\n", f);
}

/* ---- docs/bragg-flags.md ---- */

static void bragg_flags(FILE *f)
{
    fputs("# Flags of nanoBragg in `fathom bragg`\n\n"
          "Made from `instruments/bragg/flags/flags.def` and `geometry/quirks.def` by `make docs`; "
          "do not edit. "
          "`fathom bragg --flags` prints it.\n\n"
          "Every flag of nanoBragg is taken, with the units and defaults of that program. In c "
          "mode (`--compat c`,\nor the `nanoBragg` link) a token is a flag when it contains its "
          "text, unless the table says that it has\nto be the whole token; so one token can be "
          "several flags, and what nobody knows is passed over. In spec mode,\nthe default, names "
          "are exact, and a word that belongs to no flag is an error. Jobs set the same things by "
          "their\nconfig keys ([docs/config.md](config.md)).\n\n",
          f);
    br_flags_markdown(f);
}

static bool one(const char *folder, const char *name, void (*fill)(FILE *f))
{
    FILE *f = page(folder, name);
    if (!f) return false;
    fill(f);
    return fclose(f) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: gen_cli_docs FOLDER\n");
        return 2;
    }
    char path[1024];
    snprintf(path, sizeof path, "%s/man", argv[1]);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/completions", argv[1]);
    mkdir(path, 0777);
    return man_pages(argv[1]) && one(argv[1], "cli.md", markdown) &&
                   one(argv[1], "bragg-flags.md", bragg_flags) &&
                   one(argv[1], "completions/fathom.bash", gen_bash) &&
                   one(argv[1], "completions/_fathom", gen_zsh) &&
                   one(argv[1], "completions/fathom.fish", gen_fish)
               ? 0
               : 1;
}
