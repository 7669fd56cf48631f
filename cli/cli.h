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

/* "SIZE": how help writes what stands after a flag; NULL for FTH_FLAG_NONE. */
const char *cli_value_name(fth_flag_value value);
/* Words that completions offer; NULL: none. */
const char *cli_value_words(fth_flag_value value);

enum { CLI_SET = 256 }; /* flags of one command line */

/* A command has one word, "doctor", or two, "config check": a group and a verb. */
typedef struct cli_command {
    const char *name;
    const char *args;       /* "[COMMAND]"; "" for none */
    int min_args, max_args; /* allowed number of words */
    const char *brief;      /* one line */
    const char *doc;        /* paragraphs, an empty line between them */
    const char *example;    /* lines of shell */
    const char *globals;    /* names of the global flags it takes; --help and --trace always */
    const fth_flag *own;    /* ends with a row that has no name; NULL: none */
    const fth_flag *stage;  /* the same, of a stage or verb of an instrument */
    const fth_flag *both;   /* the same, of the verb that has the name of a stage */
    fth_status (*run)(const cli_call *call, fth_err *err);
    const fth_instrument *instrument; /* NULL: none; then also the next two */
    const fth_stage *of_stage;
    const fth_verb *verb;
    const fth_direct *direct; /* the instrument itself: the command has the name of a group */
} cli_command;

extern const cli_command cli_commands[]; /* without those of the instruments */
extern const int cli_n_commands;
extern const cli_command cli_worker; /* internal: in no list, help or completion */
/* All commands, those of the instruments last: number i, NULL beyond the last. */
const cli_command *cli_command_at(int i);
/* Commands of the instruments, made from their structs (verbs.c). */
const cli_command *cli_verb_at(int i);
extern const fth_flag cli_globals[];
extern const fth_flag cli_plan_flags[]; /* of 'plan' and of 'INSTRUMENT plan' */
extern const int cli_n_globals;

typedef struct cli_exit {
    int code;
    const char *meaning;
} cli_exit;
extern const cli_exit cli_exits[];
extern const int cli_n_exits;

const cli_command *cli_find(const char *name); /* NULL: no such command */
/* The command that a group is by itself: `fathom bragg -cell ...`; NULL: it is none. */
const cli_command *cli_direct_of(const char *group);
/* Whether commands of two words start with this one; then also what they have in common. */
bool cli_is_group(const char *word);
const char *cli_group_brief(const char *word);
/* The verb of a command of that group; NULL: it is of another. */
const char *cli_verb_of(const cli_command *command, const char *group);
/* Flag number i of a command, its own first, then the global ones it takes; NULL beyond the last.
 */
const fth_flag *cli_flag_at(const cli_command *command, int i);
/* Whether a command that is a stage and a verb takes this flag as the verb only. */
bool cli_is_verbs_alone(const cli_command *command, const char *flag);

struct cli_call {
    const cli_command *command; /* NULL: none was named */
    const char *group;          /* first word of a command whose second was not named */
    const fth_link *link;       /* called by the name of this one; NULL: by its own */
    int n_set;
    struct {
        const fth_flag *flag;
        const char *value; /* "" where the flag has none */
    } set[CLI_SET];
    int n_args;
    char **arg; /* what is neither flag nor command; inside argv, which is reordered */
    FILE *out;
    FILE *screen; /* the terminal itself, where `out` shows no controls; NULL: `out` is it */
    bool colour;
    const cli_probes *probes; /* of doctor */
    fth_mem *trace_mem;
    fth_trace *trace; /* NULL: none was asked for */
    fth_mem *ranks_mem;
    fth_ranks *ranks; /* NULL: not started by mpirun */
    FILE *errors;     /* of a rank that is silent else; NULL: standard error */
};

/* The program may have been called by the name of a link of an instrument, whose exit code counts
 * from then on: before anything can fail. */
void cli_take_link(cli_call *call, const char *program);
/* Fill `call` from a command line. FTH_E_COMMAND names the word and the closest known one. */
fth_status cli_parse(cli_call *call, int argc, char **argv, fth_err *err);
/* Whether a text names a device as --device does. */
bool cli_is_device(const char *text);
/* Value of a flag, "" where it has none; NULL: not given. */
const char *cli_get(const cli_call *call, const char *flag);
/* The same for a flag that may be given often: value number i, NULL beyond the last. */
const char *cli_get_at(const cli_call *call, const char *flag, int i);

/* screen.c: untrusted text on a terminal, without control characters. */
typedef struct cli_plain_state {
    unsigned before; /* the last byte */
    int left;        /* bytes that the character still has */
} cli_plain_state;
/* n bytes with their controls shown as '?', into at most 2 n bytes; how many they became. */
size_t cli_plain(cli_plain_state *s, const char *in, size_t n, char *out);
/* A stream that does so; `to` itself when there is no memory. */
FILE *cli_plain_stream(FILE *to);
/* Where a command draws with escapes of its own. */
FILE *cli_screen(const cli_call *call);

/* limits.c: FTH_E_NOMEM when the limits of the shell are too small to work, or even to end by
 * returning from main. */
fth_status cli_check_limits(fth_err *err);

/* ranks.c: where mpirun or srun started several processes, join the others: all commands that come
 * here run together. The end waits for them; after a failure it says which rank failed, and ends
 * all with `code`. Both do nothing in a process that was started alone. */
fth_status cli_ranks_begin(cli_call *call, fth_err *err);
void cli_ranks_end(cli_call *call, fth_status s, int code, const fth_err *err);

/* trace.c: --trace, which every command takes. Begin before the command, end after it, also when
 * it failed: then the file is written and all is given back. Returns `s`, or what went wrong. */
fth_status cli_trace_begin(cli_call *call, fth_err *err);
fth_status cli_trace_end(cli_call *call, fth_status s, fth_err *err);
/* A part of the command, from `start` (cli_now) until now, as a span of the timeline. */
int64_t cli_now(const cli_call *call);
void cli_phase(const cli_call *call, const char *name, int64_t start);
/* Options of a context as the global flags want them, the trace among them. `free_bytes`: what a
 * share in --memory is of. */
fth_status cli_context_options(const cli_call *call, uint64_t free_bytes, fth_options *opt,
                               fth_err *err);

/* entry.c: with --log debug, which devices there are, which one is taken and why, or why none can
 * be: to the log. The context may be NULL. */
void cli_entry(const cli_call *call, fth_context *ctx);
/* Whether log lines for developers are wanted: --log, else FATHOM_DEBUG, for focus also
 * MSEQ_YX1_DEBUG. */
bool cli_is_debug(const cli_call *call);
/* Whether the value of a variable means yes: 1, true, yes or on, case-insensitive. */
bool cli_is_yes(const char *text);

/* monitor.c: --monitor, for commands that compute; the files go into `folder`, which is made. The
 * end writes one line to standard error, and returns `s`, or what went wrong. */
typedef struct cli_monitor {
    fth_mem *mem;
    fth_monitor *monitor; /* NULL: not asked for */
} cli_monitor;
fth_status cli_monitor_begin(cli_monitor *m, const cli_call *call, const char *folder,
                             fth_err *err);
fth_status cli_monitor_end(cli_monitor *m, const cli_call *call, fth_status s, fth_err *err);

/* Words wrapped to 78 columns with `indent` spaces before each line; the cursor is at `column`. */
void cli_wrap(FILE *out, const char *text, int column, int indent);
void cli_help_all(FILE *out);
void cli_help_group(FILE *out, const char *group);
void cli_help_command(FILE *out, const cli_command *command);
/* The line of all usages: "fathom doctor [--ops] [--json]". */
void cli_usage(FILE *out, const cli_command *command);

fth_status cli_run_help(const cli_call *call, fth_err *err);
fth_status cli_run_version(const cli_call *call, fth_err *err);
fth_status cli_run_report(const cli_call *call, fth_err *err);
fth_status cli_run_serve(const cli_call *call, fth_err *err);

/* One document for programs to a stream, a line for every value; numbers that were measured have
 * six digits. The caller ends it with fth_json_end. */
void cli_json_begin(fth_json_writer *w, FILE *out);

/* Libraries that the program stands on, and what is found of them in this process. */
typedef struct cli_library {
    const char *name;
    const char *symbol; /* symbol that returns its version */
    enum {
        CLI_RETURNS_TEXT,
        CLI_RETURNS_NUMBER,
        CLI_FILLS_THREE,
        CLI_RETURNS_STRUCT,
        CLI_FILLS_TEXT
    } kind;
    const char *open; /* opened at run time, and may be missing; NULL: linked */
    const char *use;
    const char *package; /* of Debian */
    bool optional;       /* nobody misses it who does not know it */
} cli_library;
extern const cli_library cli_libraries[];
extern const int cli_n_libraries;
/* Its version and the file it is in; false: not there. */
bool cli_library_find(const cli_library *library, char *version, size_t bytes, char *file,
                      size_t file_bytes);

#endif
