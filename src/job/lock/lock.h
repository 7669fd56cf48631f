/* job/lock/lock.h - locks of output directories: identity of processes, locks, the folder .fathom.
 */
#ifndef FTH_JOB_LOCK_H
#define FTH_JOB_LOCK_H

#include <fathom/files.h>

typedef struct fth__who {
    char host[64], boot[40]; /* name of the machine, and of its boot */
    int64_t pid;
    uint64_t start; /* ticks since boot when the process started: pids come again */
    uint64_t space; /* pid namespace: containers on one machine may each have their own */
    char run[48];   /* token of the run */
    double since;   /* seconds since 1970 */
    bool beats;     /* updates the lock (fth__lock_beat) every FTH__BEAT_S seconds */
    double age;     /* of a lock that was read: seconds since the last heartbeat */
} fth__who;
/* A holder is dead after six missed heartbeats: a file server may be slow for tens of seconds, and
 * a heartbeat every ten costs it nothing. */
enum { FTH__BEAT_S = 10, FTH__DEAD_S = 60 };
/* `run` becomes a new token, `since` now. */
fth_status fth__who_am_i(fth__who *out, fth_err *err);
/* Start ticks of a process; 0: there is none, or it has ended and only waits for its parent. */
uint64_t fth__process_start(int64_t pid);
/* By its pid where that can be looked up. On another host, in another pid namespace, or in another
 * boot of a machine with this name (which may be another machine) the last heartbeat decides; a
 * holder on another host or in another namespace that gives none counts as alive. */
bool fth__who_lives(const fth__who *who);
/* As lines of "key value", and back; false: the text is not a lock. */
size_t fth__who_format(const fth__who *who, char *text, size_t bytes);
bool fth__who_parse(const char *text, fth__who *out);
/* FTH_E_LOCKED says who has it, where and since when. A dead holder's lock is taken over. Makes
 * output_dir and .fathom as needed; leaves no file open. */
fth_status fth__lock_take(const char *output_dir, const fth__who *me, fth_err *err);
/* A heartbeat: the time of the lock. False: another process has it. */
bool fth__lock_beat(const char *output_dir, const fth__who *me);
/* Does nothing when it is not, or no longer, ours. */
void fth__lock_release(const char *output_dir, const fth__who *me);
/* The last holder, dead or alive; false: none. */
bool fth__lock_read(const char *output_dir, fth__who *out);
/* FTH_E_LOCKED when a live process has it; changes nothing. */
fth_status fth__lock_check(const char *output_dir, fth_err *err);
/* Removes the lock of a dead holder; FTH_E_LOCKED when it is alive. */
fth_status fth__lock_clear(const char *output_dir, fth_err *err);

/* Whether jobs of a cluster were submitted for the directory and are not known to have ended: the
 * file .fathom/slurm. They run without a lock, since nodes cannot see the process of the runner,
 * and it may be gone. */
bool fth__lock_has_cluster(const char *output_dir);
/* FTH_E_LOCKED about such jobs. */
fth_status fth__lock_fail_cluster(const char *output_dir, fth_err *err);
/* Attempts of the workers on the nodes begin so. */
#define FTH__CLUSTER_ATTEMPT "slurm."

/* Wall clock, seconds since 1970. */
double fth__wall_seconds(void);

/* ---- the folder of it all ---- */

/* output_dir/.fathom/name, FTH_PATH bytes; false when it does not fit. */
bool fth__fathom_path(char *path, const char *output_dir, const char *name);
/* Make output_dir/.fathom with all folders above it. FTH_E_FILE_WRITE. */
fth_status fth__fathom_make(const char *output_dir, fth_err *err);

#endif
