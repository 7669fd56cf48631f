/* cli.h - what the files of the program share: the table of commands and a parsed command line.
 *
 * The parser, the help, the man pages, docs/cli.md and the completions are all made from the one
 * table in commands.c. A command gets its flags checked and returns a status; the exit code is the
 * one that errors.def gives that status.
 */
#ifndef FATHOM_CLI_H
#define FATHOM_CLI_H

#include <fathom/fathom.h>

typedef struct cli_call cli_call;
typedef struct cli_probes cli_probes;

/* What stands after a flag; the parser checks it. */
typedef enum cli_value {
    CLI_NONE,
    CLI_COUNT,  /* a whole number, not negative   */
    CLI_SIZE,   /* bytes: 8G, 50%                 */
    CLI_DEVICE, /* auto, cpu, cuda, cuda:N        */
    CLI_LEVEL,  /* error, warn, info, debug       */
    CLI_FILE,
    CLI_DIR,
    CLI_VALUE_COUNT
} cli_value;
/* "SIZE": how help writes it; NULL for CLI_NONE. */
const char *cli_value_name(cli_value value);
/* Words that completions offer; NULL: none. */
const char *cli_value_words(cli_value value);

typedef struct cli_flag {
    const char *name; /* without the dashes */
    cli_value value;
    const char *doc; /* one sentence, without its full stop */
} cli_flag;

enum { CLI_FLAGS = 8, CLI_SET = 32 };

typedef struct cli_command {
    const char *name;
    const char *args;        /* "[COMMAND]"; "" for none */
    int max_args;            /* more are refused */
    const char *brief;       /* one line */
    const char *doc;         /* paragraphs, an empty line between them */
    const char *example;     /* lines of shell */
    const char *globals;     /* names of the global flags it takes; --help always */
    cli_flag own[CLI_FLAGS]; /* ends with a row that has no name */
    fth_status (*run)(const cli_call *call, fth_err *err);
} cli_command;

extern const cli_command cli_commands[];
extern const int cli_n_commands;
extern const cli_flag cli_globals[];
extern const int cli_n_globals;

typedef struct cli_exit {
    int code;
    const char *meaning;
} cli_exit;
extern const cli_exit cli_exits[];
extern const int cli_n_exits;

const cli_command *cli_find(const char *name); /* NULL: no such command */
/* Flag number i of a command, its own first, then the global ones it takes; NULL beyond the last.
 */
const cli_flag *cli_flag_at(const cli_command *command, int i);

struct cli_call {
    const cli_command *command; /* NULL: none was named */
    int n_set;
    struct {
        const cli_flag *flag;
        const char *value; /* "" where the flag has none */
    } set[CLI_SET];
    int n_args;
    char **arg; /* what is neither flag nor command; inside argv, which is reordered */
    FILE *out;
    bool colour;
    const cli_probes *probes; /* of doctor */
};

/* Fill `call` from a command line. FTH_E_COMMAND names the word and the nearest known one. */
fth_status cli_parse(cli_call *call, int argc, char **argv, fth_err *err);
/* Value of a flag, "" where it has none; NULL: not given. */
const char *cli_get(const cli_call *call, const char *flag);

/* Words wrapped to 78 columns with `indent` spaces before each line; the cursor is at `column`. */
void cli_wrap(FILE *out, const char *text, int column, int indent);
void cli_help_all(FILE *out);
void cli_help_command(FILE *out, const cli_command *command);
/* The line of all usages: "fathom doctor [--ops] [--json]". */
void cli_usage(FILE *out, const cli_command *command);

fth_status cli_run_help(const cli_call *call, fth_err *err);
fth_status cli_run_version(const cli_call *call, fth_err *err);

/* JSON, one value after another; commas are set by the writer. */
typedef struct cli_json {
    FILE *out;
    int depth;
    bool comma;
} cli_json;
void cli_json_open(cli_json *j, const char *key, char bracket); /* key NULL: inside a list */
void cli_json_close(cli_json *j, char bracket);
void cli_json_text(cli_json *j, const char *key, const char *value); /* NULL: null */
void cli_json_int(cli_json *j, const char *key, uint64_t value);
void cli_json_real(cli_json *j, const char *key, double value); /* null unless finite */
void cli_json_bool(cli_json *j, const char *key, bool value);

/* Libraries that the program stands on, and what is found of them in this process. */
typedef struct cli_library {
    const char *name;
    const char *symbol; /* asked for its version */
    enum {
        CLI_RETURNS_TEXT,
        CLI_IS_TEXT,
        CLI_RETURNS_NUMBER,
        CLI_FILLS_THREE,
        CLI_RETURNS_STRUCT
    } kind;
    const char *open; /* opened at run time, and may be missing; NULL: linked */
    const char *use;
    const char *package; /* of Debian */
} cli_library;
extern const cli_library cli_libraries[];
extern const int cli_n_libraries;
/* Its version and the file it is in; false: not there. */
bool cli_library_find(const cli_library *library, char *version, size_t bytes, char *file,
                      size_t file_bytes);

#endif
