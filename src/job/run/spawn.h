/* job/run/spawn.h - run a task as a child process: start, follow, end, reap.
 *
 * The process leads a group, so that what it starts can be ended with it. It reads nothing, writes
 * its text to one pipe and its progress to another (descriptor 3), and has no other descriptor of
 * ours. It asks the kernel to end it with the runner (see the flag --attempt). Only its own
 * pid is ever waited for.
 */
#ifndef FTH_JOB_SPAWN_H
#define FTH_JOB_SPAWN_H

#include <fathom/memory.h>

typedef struct fth__child {
    int64_t pid;          /* 0: none */
    int output, progress; /* ends for reading that never block; -1: closed */
    int exit_code;        /* when it was reaped; 0 after a signal */
    int signal;           /* that ended it; 0: none */
} fth__child;

/* `device` is the number of the GPU that it sees, or NULL for none; it takes the place of
 * CUDA_VISIBLE_DEVICES in `environment` ("NAME=value", then NULL; may be NULL). */
fth_status fth__child_start(fth__child *child, fth_mem *mem, const char *const *argv,
                            const char *const *environment, const char *device, fth_err *err);
/* To the whole group. */
void fth__child_signal(const fth__child *child, int signal);
/* True once it has ended: the rest of its group is killed, and the pid is given back. */
bool fth__child_reap(fth__child *child);
/* Close the pipes. */
void fth__child_close(fth__child *child);
/* "SIGKILL"; "signal 40" for those without a name. */
void fth__signal_name(int signal, char *text, size_t bytes);

/* Whether a process that was started with `--attempt attempt` still runs. */
bool fth__attempt_lives(int64_t pid, const char *attempt);
/* End its group and wait for it, at most `seconds`. False: it is still there. */
bool fth__attempt_kill(int64_t pid, const char *attempt, double seconds);
/* Resident bytes of a process now; 0: not known. */
uint64_t fth__process_bytes(int64_t pid);
/* Remove temporary files ("*.PID-*.tmp") below `dir` whose process is `pid`, or with 0 any that
 * does not live. What cannot be removed stays. Returns how many were. */
int64_t fth__leftover_sweep(const char *dir, int64_t pid);
/* The same of dead processes in the folder of a file, and not below it. */
int64_t fth__leftover_sweep_beside(const char *path);

#endif
