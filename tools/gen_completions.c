/* gen_completions.c - completions for bash, zsh and fish from the table of commands: commands,
 * flags with their values, stages, instruments, and the names of jobs, which `fathom status
 * --names` reads from the ledgers below the current folder. */
#include "gen_completions.h"

#include "../cli/cli.h"
#include "../instruments/list.h"

#include <string.h>

/* ---- what is offered ---- */

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

/* What the arguments of a command are, by their name in its synopsis. */
typedef enum kind { NOTHING, JOBS, STAGES, INSTRUMENTS, COMMANDS, FOLDERS, FILES } kind;

static kind kind_of(const cli_command *c)
{
    static const struct {
        const char *word;
        kind kind;
    } rows[] = {{"JOB", JOBS},
                {"STAGE", STAGES},
                {"INSTRUMENT", INSTRUMENTS},
                {"COMMAND", COMMANDS},
                {"DIR", FOLDERS}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(c->args, rows[i].word)) return rows[i].kind;
    return c->args[0] ? FILES : NOTHING;
}

static kind kind_of_value(fth_flag_value value)
{
    switch ((int)value) {
    case FTH_FLAG_JOB: return JOBS;
    case FTH_FLAG_STAGE: return STAGES;
    case FTH_FLAG_DIR: return FOLDERS;
    case FTH_FLAG_FILE:
    case FTH_FLAG_PATH: return FILES;
    default: return NOTHING;
    }
}

static void instruments(FILE *f)
{
    for (int i = 0; i < fth_n_instruments; i++)
        fprintf(f, "%s%s", i ? " " : "", fth_instruments[i]->name);
}

/* Names of the stages of all instruments, each once. */
static void stages(FILE *f)
{
    char known[2000] = " ";
    for (int i = 0; i < fth_n_instruments; i++)
        for (int k = 0; k < fth_instruments[i]->n_stages; k++) {
            char word[100];
            snprintf(word, sizeof word, " %s ", fth_instruments[i]->stage[k].name);
            if (strstr(known, word)) continue;
            fprintf(f, "%s%s", known[1] ? " " : "", fth_instruments[i]->stage[k].name);
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s ",
                     fth_instruments[i]->stage[k].name);
        }
}

/* ---- bash ---- */

static const char *const bash_kind[] = {"",         "jobs",    "stages", "instruments",
                                        "commands", "folders", "files"};

/* Which values may stand behind a flag. */
static void bash_values(FILE *f)
{
    fputs("    case $before in\n", f);
    const cli_command *c;
    const fth_flag *flag;
    for (int i = 0; (c = cli_command_at(i)); i++)
        for (int k = 0; (flag = cli_flag_at(c, k)); k++) {
            if (!flag->value || !is_first_flag(i, k)) continue;
            fprintf(f, "    --%s", flag->name);
            if (flag->letter) fprintf(f, " | -%c", flag->letter);
            fputs(")\n", f);
            if (cli_value_words(flag->value))
                fprintf(f, "        mapfile -t COMPREPLY < <(compgen -W \"%s\" -- \"$word\")\n",
                        cli_value_words(flag->value));
            else if (kind_of_value(flag->value))
                fprintf(f, "        _fathom_add %s\n", bash_kind[kind_of_value(flag->value)]);
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
    fprintf(f, "\"");
    if (kind_of(c)) fprintf(f, " kind=%s", bash_kind[kind_of(c)]);
    fputs(" ;;\n", f);
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

/* Names of jobs are compared here: compgen -W would evaluate what is in them. */
static const char bash_add[] =
    "_fathom_jobs() {\n"
    "    local name dir=. i\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        [ \"${COMP_WORDS[i]}\" = --dir ] || continue\n"
    "        dir=${COMP_WORDS[i+1]}\n"
    "        [ \"$dir\" = '=' ] && dir=${COMP_WORDS[i+2]}\n"
    "    done\n"
    "    while IFS= read -r name; do\n"
    "        case $name in \"$word\"*) ;; *) continue ;; esac\n"
    "        [[ $name == */* && $word != */* ]] && continue # stages when there is a slash\n"
    "        printf -v name %q \"$name\"\n"
    "        COMPREPLY+=(\"$name\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" status --names \"$dir\" 2>/dev/null)\n"
    "}\n"
    "_fathom_add() {\n"
    "    local more=()\n"
    "    case $1 in\n"
    "    jobs) _fathom_jobs ;;\n"
    "    stages) mapfile -t more < <(compgen -W \"$stages\" -- \"$word\") ;;\n"
    "    instruments) mapfile -t more < <(compgen -W \"$instruments\" -- \"$word\") ;;\n"
    "    commands) mapfile -t more < <(compgen -W \"$known\" -- \"$word\") ;;\n"
    "    folders) mapfile -t more < <(compgen -d -- \"$word\") ;;\n"
    "    files) mapfile -t more < <(compgen -f -- \"$word\") ;;\n"
    "    esac\n"
    "    case $1 in folders | files) compopt -o filenames 2>/dev/null ;; esac\n"
    "    COMPREPLY+=(\"${more[@]}\")\n"
    "}\n";

void gen_bash(FILE *f)
{
    fputs("# Completion of fathom for bash. Made from cli/commands.c by make docs; do not edit.\n",
          f);
    fputs(bash_add, f);
    fputs("_fathom() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local first='' second='' words='' kind='' i known=\"",
          f);
    words(f, NULL);
    fputs("\"\n    local stages=\"", f);
    stages(f);
    fputs(" all\" instruments=\"", f);
    instruments(f);
    fputs("\"\n    COMPREPLY=()\n"
          "    [ \"$word\" = '=' ] && word='' # --flag=value is three words here\n"
          "    [ \"$before\" = '=' ] && before=${COMP_WORDS[COMP_CWORD-2]}\n",
          f);
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
    fputs("    esac\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
          "    case $word in -*) ;; *) _fathom_add \"$kind\" ;; esac\n}\n"
          "complete -F _fathom fathom\n",
          f);
}

/* ---- zsh ---- */

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

static void zsh_offer(FILE *f, kind what)
{
    if (what == JOBS) fputs("_fathom_jobs", f);
    if (what == FOLDERS) fputs("_files -/", f);
    if (what == FILES) fputs("_files", f);
    if (what == STAGES || what == INSTRUMENTS || what == COMMANDS) fputc('(', f);
    if (what == STAGES) stages(f);
    if (what == INSTRUMENTS) instruments(f);
    if (what == COMMANDS) words(f, NULL);
    if (what == STAGES || what == INSTRUMENTS || what == COMMANDS)
        fputs(what == STAGES ? " all)" : ")", f);
}

static void zsh_flag(FILE *f, const fth_flag *flag)
{
    fprintf(f, " \\\n                '%s--%s%s[", flag->many ? "*" : "", flag->name,
            flag->value ? "=" : "");
    zsh_text(f, flag->doc);
    fputc(']', f);
    if (flag->value) fprintf(f, ":%s:", cli_value_name(flag->value));
    if (cli_value_words(flag->value)) fprintf(f, "(%s)", cli_value_words(flag->value));
    zsh_offer(f, kind_of_value(flag->value));
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
        if (kind_of(c)) {
            fputs(" \\\n                '*:argument:", f);
            zsh_offer(f, kind_of(c));
            fputc('\'', f);
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

void gen_zsh(FILE *f)
{
    fputs("#compdef fathom\n# Made from cli/commands.c by make docs; do not edit.\n"
          "_fathom_jobs() {\n    local -a names\n    local name\n"
          "    for name in ${(f)\"$(_call_program jobs fathom status --names 2>/dev/null)\"}; do\n"
          "        [[ $name == */* && $PREFIX != */* ]] || names+=$name\n    done\n"
          "    compadd -a names\n}\n"
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

/* ---- fish ---- */

/* Text inside '...'. */
static void fish_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') fputc('\\', f);
        fputc(*text, f);
    }
}

static void fish_offer(FILE *f, kind what)
{
    if (what == NOTHING) return;
    if (what == FILES) {
        fputs(" -F", f);
        return;
    }
    fputs(" -a '", f);
    if (what == JOBS) fputs("(__fathom_jobs)", f);
    if (what == FOLDERS) fputs("(__fish_complete_directories)", f);
    if (what == STAGES) stages(f), fputs(" all", f);
    if (what == INSTRUMENTS) instruments(f);
    if (what == COMMANDS) words(f, NULL);
    fputc('\'', f);
}

static void fish_flag(FILE *f, const char *condition, const fth_flag *flag)
{
    fprintf(f, "complete -c fathom -n '%s' -l %s", condition, flag->name);
    if (flag->letter) fprintf(f, " -s %c", flag->letter);
    if (flag->value) fputs(kind_of_value(flag->value) == FILES ? " -r" : " -x", f);
    if (cli_value_words(flag->value)) fprintf(f, " -a '%s'", cli_value_words(flag->value));
    fish_offer(f, kind_of_value(flag->value));
    fputs(" -d '", f);
    fish_text(f, flag->doc);
    fputs("'\n", f);
}

/* The words of the command line that are no flags, without the one that is being written. */
static const char fish_functions[] =
    "function __fathom_words\n"
    "    for word in (commandline -opc)[2..-1]\n"
    "        string match -q -- '-*' $word; or echo $word\n"
    "    end\n"
    "end\n"
    "function __fathom_is\n"
    "    set -l words (__fathom_words)\n"
    "    for i in (seq (count $argv))\n"
    "        test \"$words[$i]\" = \"$argv[$i]\"; or return 1\n"
    "    end\n"
    "end\n"
    "function __fathom_is_all\n"
    "    test (count (__fathom_words)) = (count $argv); and __fathom_is $argv\n"
    "end\n"
    "function __fathom_jobs\n"
    "    for name in (fathom status --names 2>/dev/null)\n"
    "        if string match -q '*/*' -- (commandline -ct); or not string match -q '*/*' -- $name\n"
    "            echo $name\n"
    "        end\n"
    "    end\n"
    "end\n";

void gen_fish(FILE *f)
{
    const cli_command *c;
    const fth_flag *flag;
    fputs("# Completion of fathom for fish. Made from cli/commands.c by make docs; do not edit.\n",
          f);
    fputs(fish_functions, f);
    fputs("complete -c fathom -f\n", f);
    for (int i = 0; (c = cli_command_at(i)); i++) {
        char first[64], condition[100];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(c->name, " "), c->name);
        if (is_first_word(i)) {
            fprintf(f, "complete -c fathom -n __fathom_is_all -a %s -d '", first);
            fish_text(f, strchr(c->name, ' ') ? cli_group_brief(first) : c->brief);
            fputs("'\n", f);
        }
        if (cli_is_group(first) && strchr(c->name, ' ')) {
            fprintf(f, "complete -c fathom -n '__fathom_is_all %s' -a %s -d '", first,
                    strchr(c->name, ' ') + 1);
            fish_text(f, c->brief);
            fputs("'\n", f);
        }
        snprintf(condition, sizeof condition, "__fathom_is%s %s", c->direct ? "_all" : "", c->name);
        for (int k = 0; (flag = cli_flag_at(c, k)); k++) fish_flag(f, condition, flag);
        if (kind_of(c) == NOTHING) continue;
        fprintf(f, "complete -c fathom -n '%s'", condition);
        fish_offer(f, kind_of(c));
        fputc('\n', f);
    }
}
