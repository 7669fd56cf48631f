/* gen_cli_docs.c - write the pages of the program from its table of commands.
 *
 * gen_cli_docs FOLDER writes cli.md, bragg-flags.md, man/fathom.1, man/fathom-COMMAND.1,
 * completions/fathom.bash and completions/_fathom there. They are committed, so that they can be
 * read and installed without running this; a test compares.
 */
#include "../cli/cli.h"
#include "../instruments/bragg/flags/flags.h"

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
        "not when `NO_COLOR` is set.\n",
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

/* ---- completions ---- */

/* Whether command i is the first that has this flag, or that starts with this word. */
static bool is_first_flag(int i, int k)
{
    const fth_flag *wanted = cli_flag_at(cli_command_at(i), k), *other;
    for (int a = 0; a < i; a++)
        for (int b = 0; (other = cli_flag_at(cli_command_at(a), b)); b++)
            if (strcmp(other->name, wanted->name) == 0) return false;
    return true;
}

static bool is_first_word(int i)
{
    const char *name = cli_command_at(i)->name;
    const size_t n = strcspn(name, " ");
    for (int a = 0; a < i; a++) {
        const char *other = cli_command_at(a)->name;
        if (strcspn(other, " ") == n && strncmp(other, name, n) == 0) return false;
    }
    return true;
}

/* The first words of all commands, or the verbs of one group, between blanks. */
static void words(FILE *f, const char *group)
{
    const cli_command *c;
    const char *verb;
    int n = 0;
    for (int i = 0; (c = cli_command_at(i)); i++)
        if (!group && is_first_word(i))
            fprintf(f, "%s%.*s", n++ ? " " : "", (int)strcspn(c->name, " "), c->name);
        else if (group && (verb = cli_verb_of(c, group)))
            fprintf(f, "%s%s", n++ ? " " : "", verb);
}

/* Which values may stand behind a flag. */
static void bash_values(FILE *f)
{
    fputs("    case $before in\n", f);
    const cli_command *c;
    const fth_flag *flag;
    for (int i = 0; (c = cli_command_at(i)); i++)
        for (int k = 0; (flag = cli_flag_at(c, k)); k++) {
            if (!flag->value || !is_first_flag(i, k)) continue;
            char list[128] = "";
            if (cli_value_words(flag->value))
                snprintf(list, sizeof list, "-W \"%s\"", cli_value_words(flag->value));
            else if (flag->value == FTH_FLAG_DIR)
                snprintf(list, sizeof list, "-d");
            else if (flag->value == FTH_FLAG_FILE || flag->value == FTH_FLAG_PATH)
                snprintf(list, sizeof list, "-f");
            fprintf(f, "    --%s", flag->name);
            if (flag->letter) fprintf(f, " | -%c", flag->letter);
            fputs(")\n", f);
            if (list[0])
                fprintf(f, "        mapfile -t COMPREPLY < <(compgen %s -- \"$word\")\n", list);
            fputs("        return\n        ;;\n", f);
        }
    fputs("    esac\n", f);
}

/* The words behind one command; commands of two words stand before their group, and so before the
 * command that a group is by itself. */
static void bash_command(FILE *f, int i)
{
    const cli_command *c = cli_command_at(i);
    const fth_flag *flag;
    if (c->direct) return;
    fprintf(f, "    '%s%s'*) words=\"", c->name, strchr(c->name, ' ') ? "" : " ");
    for (int k = 0; (flag = cli_flag_at(c, k)); k++) fprintf(f, "%s--%s", k ? " " : "", flag->name);
    fprintf(f, "%s\" ;;\n", strcmp(c->args, "[COMMAND]") ? "" : " $known");
}

static void bash_groups(FILE *f)
{
    const cli_command *c;
    for (int i = 0; (c = cli_command_at(i)); i++) {
        char group[64];
        snprintf(group, sizeof group, "%.*s", (int)strcspn(c->name, " "), c->name);
        if (!cli_is_group(group) || !is_first_word(i)) continue;
        fprintf(f, "    '%s '*) words=\"", group);
        words(f, group);
        const fth_flag *flag;
        for (int k = 0; c->direct && (flag = cli_flag_at(c, k)); k++)
            fprintf(f, " --%s", flag->name);
        fputs("\" ;;\n", f);
    }
}

static void bash(FILE *f)
{
    fputs("# Completion of fathom for bash. Made from cli/commands.c by make docs; do not edit.\n"
          "_fathom() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local first='' second='' words='' known=\"",
          f);
    words(f, NULL);
    fputs("\" i\n    COMPREPLY=()\n", f);
    bash_values(f);
    fputs("    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        if [ -n \"$first\" ]; then\n"
          "            case ${COMP_WORDS[i]} in -*) ;; *) second=${COMP_WORDS[i]}; break ;; esac\n"
          "        fi\n"
          "        case \" $known \" in *\" ${COMP_WORDS[i]} \"*) first=${COMP_WORDS[i]} ;; esac\n"
          "    done\n    case \"$first $second\" in\n"
          "    ' '*) words=\"$known --help --version\" ;;\n",
          f);
    for (int i = 0; cli_command_at(i); i++) bash_command(f, i);
    bash_groups(f);
    fputs("    esac\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\n"
          "complete -F _fathom fathom\n",
          f);
}

/* Text inside '...[...]' of _arguments. */
static void zsh_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", f);
        else if (strchr("[]:\\", *text))
            fprintf(f, "\\%c", *text);
        else
            fputc(*text, f);
    }
}

static void zsh_flag(FILE *f, const fth_flag *flag)
{
    fprintf(f, " \\\n                '%s--%s%s[", flag->many ? "*" : "", flag->name,
            flag->value ? "=" : "");
    zsh_text(f, flag->doc);
    fputc(']', f);
    if (flag->value) fprintf(f, ":%s:", cli_value_name(flag->value));
    if (cli_value_words(flag->value)) fprintf(f, "(%s)", cli_value_words(flag->value));
    if (flag->value == FTH_FLAG_FILE || flag->value == FTH_FLAG_PATH) fputs("_files", f);
    if (flag->value == FTH_FLAG_DIR) fputs("_files -/", f);
    fputc('\'', f);
}

/* One case per command, by its words; a group that has no verb yet offers them. */
static void zsh_cases(FILE *f)
{
    const cli_command *c;
    const fth_flag *flag;
    for (int i = 0; (c = cli_command_at(i)); i++) {
        if (c->direct) continue;
        fprintf(f, "        '%s%s'*)\n            _arguments", c->name,
                strchr(c->name, ' ') ? "" : " ");
        for (int k = 0; (flag = cli_flag_at(c, k)); k++) zsh_flag(f, flag);
        if (strcmp(c->args, "[COMMAND]") == 0) {
            fputs(" \\\n                '1:command:(", f);
            words(f, NULL);
            fputs(")'", f);
        }
        fputs("\n            ;;\n", f);
    }
    for (int i = 0; (c = cli_command_at(i)); i++) {
        char group[64];
        snprintf(group, sizeof group, "%.*s", (int)strcspn(c->name, " "), c->name);
        if (!cli_is_group(group) || !is_first_word(i)) continue;
        fprintf(f, "        '%s '*)\n            _arguments '1:verb:(", group);
        words(f, group);
        fputs(")'", f);
        for (int k = 0; c->direct && (flag = cli_flag_at(c, k)); k++) zsh_flag(f, flag);
        if (c->direct) fputs(" \\\n                '*:file:_files'", f);
        fputs("\n            ;;\n", f);
    }
}

static void zsh(FILE *f)
{
    fputs("#compdef fathom\n# Made from cli/commands.c by make docs; do not edit.\n"
          "_fathom() {\n    local -a commands\n    local state line\n    commands=(\n",
          f);
    const cli_command *c;
    for (int i = 0; (c = cli_command_at(i)); i++) {
        if (!is_first_word(i)) continue;
        char first[64];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(c->name, " "), c->name);
        fprintf(f, "        '%s:", first);
        zsh_text(f, strchr(c->name, ' ') ? cli_group_brief(first) : c->brief);
        fputs("'\n", f);
    }
    fputs("    )\n    _arguments -C '--help[show help and stop]' '--version[show the version]' \\\n"
          "        '1:command:->command' '*::argument:->argument'\n    case $state in\n"
          "    command) _describe command commands ;;\n    argument)\n"
          "        case \"$line[1] $line[2]\" in\n",
          f);
    zsh_cases(f);
    fputs("        esac\n        ;;\n    esac\n}\n_fathom \"$@\"\n", f);
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
                   one(argv[1], "completions/fathom.bash", bash) &&
                   one(argv[1], "completions/_fathom", zsh)
               ? 0
               : 1;
}
