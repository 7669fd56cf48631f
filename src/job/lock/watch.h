/* job/lock/watch.h - a thread beside the runner, for what must not wait for its I/O.
 *
 * It updates the heartbeat of every lock each ten seconds, so that other machines can detect a
 * crashed runner. And it pauses the run on Ctrl-Z: stages lead process groups of their own, which
 * the terminal does not stop.
 */
#ifndef FTH_JOB_WATCH_H
#define FTH_JOB_WATCH_H

#include "job/lock/lock.h"

typedef struct fth__job_watch fth__job_watch;

typedef struct fth__watch_options {
    const fth__who *me;        /* holder of the locks; outlives the watch */
    double beat_s;             /* between heartbeats; 0: FTH__BEAT_S */
    bool (*pause)(void *user); /* as in fth_runner_options; NULL: never */
    void (*rest)(void *user);
    void *user;
} fth__watch_options;

fth_status fth__watch_start(fth__job_watch **out, fth_mem *mem, const fth__watch_options *opt,
                            fth_err *err);
void fth__watch_stop(fth__job_watch *w); /* NULL is allowed, here and below */
/* A directory whose lock we hold; the path outlives the watch. */
fth_status fth__watch_dir(fth__job_watch *w, const char *output_dir, fth_err *err);
/* FTH_E_LOCKED when another process has taken over one of the locks, because this one was stopped
 * for longer than FTH__DEAD_S. */
fth_status fth__watch_check(fth__job_watch *w, fth_err *err);

/* While locked, no pause begins: a process that is started is in the list, one that was reaped is
 * not. `room` makes room for one more beforehand. */
fth_status fth__watch_room(fth__job_watch *w, fth_err *err);
void fth__watch_lock(fth__job_watch *w);
void fth__watch_unlock(fth__job_watch *w);
void fth__watch_add(fth__job_watch *w, int64_t pid);
void fth__watch_remove(fth__job_watch *w, int64_t pid);

/* Seconds on the clock that only moves forward, without those of pauses. */
double fth__watch_clock(fth__job_watch *w);

#endif
