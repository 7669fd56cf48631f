/* job/slurm/commands.h - Slurm's programs as child processes: one call, its text, its error.
 *
 * Standard output and error come as one text; what is parsed is found in it by its form. A program
 * that does not answer in time is killed, which is an error like any other.
 */
#ifndef FTH_JOB_SLURM_COMMANDS_H
#define FTH_JOB_SLURM_COMMANDS_H

#include <fathom/memory.h>

/* MOST: words of one call. */
enum { FTH__SLURM_WORDS = 32 };

typedef struct fth__slurm_shell {
    fth_mem *mem;
    const char *const *environment; /* PATH is looked up there */
    int64_t calls;                  /* so far */
} fth__slurm_shell;

typedef struct fth__slurm_reply {
    fth_mem *mem;
    char *text; /* terminated; "" */
    int64_t n, cap;
    int exit_code;
} fth__slurm_reply;

/* Where a program of Slurm is; false: not on PATH. */
bool fth__slurm_find(const fth__slurm_shell *shell, const char *program, char *path, size_t bytes);
/* Run "program word...", words until NULL. FTH_E_EXECUTOR when it is missing, does not end within
 * `seconds` or, with `must`, fails: the error has the first line of what it said. Clear the reply
 * in any case. */
fth_status fth__slurm_call(fth__slurm_shell *shell, fth__slurm_reply *reply, double seconds,
                           bool must, const char *const *words, fth_err *err);
void fth__slurm_reply_clear(fth__slurm_reply *reply);

/* The next line of a text, cut off it; NULL: none is left. */
char *fth__slurm_line(char **text);
/* Cut a line at each '|'; how many fields there are, at most `most`. */
int fth__slurm_fields(char *line, char **field, int most);

#endif
