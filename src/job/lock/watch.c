/* watch.c - heartbeat and pauses: see watch.h. */
#include "job/lock/watch.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/thread.h"
#include "mem/heap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fth__job_watch {
    fth_mem *mem;
    fth__watch_options opt;
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t wake;
    bool ending;
    const char **dir;
    int64_t n_dirs, cap_dirs;
    const char *lost; /* a directory whose lock another process has; NULL: none */
    int64_t *pid;
    int64_t n_pids, cap_pids;
    double paused;
};

enum { LOOK_MS = 100 }; /* a person who presses Ctrl-Z sees no delay */

static void beat(fth__job_watch *w)
{
    for (int64_t i = 0; i < w->n_dirs; i++)
        if (!fth__lock_beat(w->dir[i], w->opt.me) && !w->lost) w->lost = w->dir[i];
}

static void signal_all(const fth__job_watch *w, int number)
{
    for (int64_t i = 0; i < w->n_pids; i++) {
        FTH_ASSERT(w->pid[i] > 1); /* -1 would be every process of the user */
        kill((pid_t)-w->pid[i], number);
    }
}

/* Returns when the process continues. If another runner took over a lock meanwhile, it works on the
 * same files, so the stages stay stopped until this runner ends them. */
static void pause_all(fth__job_watch *w)
{
    const double before = fth__clock_seconds();
    signal_all(w, SIGSTOP);
    w->opt.rest(w->opt.user);
    w->paused += fth__clock_seconds() - before;
    beat(w);
    if (!w->lost) signal_all(w, SIGCONT);
}

static void *run(void *user)
{
    fth__job_watch *w = user;
    double next = fth__clock_seconds() + w->opt.beat_s;
    pthread_mutex_lock(&w->lock);
    while (!w->ending) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&w->wake, &w->lock, &until);
        if (w->ending) break;
        if (w->opt.pause && w->opt.pause(w->opt.user)) pause_all(w);
        if (fth__clock_seconds() < next) continue;
        beat(w);
        next = fth__clock_seconds() + w->opt.beat_s;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals go to the thread that runs the jobs: they interrupt its poll. */
static int start_thread(fth__job_watch *w)
{
    sigset_t all, old;
    pthread_condattr_t attr;
    sigfillset(&all);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int why = fth__thread_start(&w->thread, run, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return why;
}

static void free_watch(fth__job_watch *w)
{
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    fth__heap_free(w->mem, w->dir);
    fth__heap_free(w->mem, w->pid);
    fth__heap_free(w->mem, w);
}

fth_status fth__watch_start(fth__job_watch **out, fth_mem *mem, const fth__watch_options *opt,
                            fth_err *err)
{
    *out = NULL;
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__job_watch), &block, err));
    fth__job_watch *w = block;
    w->mem = mem;
    w->opt = *opt;
    if (w->opt.beat_s <= 0) w->opt.beat_s = FTH__BEAT_S;
    FTH_ASSERT(w->opt.me->beats);
    const int why = start_thread(w);
    if (why) {
        free_watch(w);
        return FTH_FAIL(err, FTH_E_STATE, "no thread could be started to keep the locks: %s",
                        strerror(why));
    }
    *out = w;
    return FTH_OK;
}

void fth__watch_stop(fth__job_watch *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    free_watch(w);
}

fth_status fth__watch_dir(fth__job_watch *w, const char *output_dir, fth_err *err)
{
    if (!w) return FTH_OK;
    fth__watch_lock(w);
    const fth_status s = fth__grow(w->mem, &w->dir, &w->cap_dirs, w->n_dirs + 1, err);
    if (s == FTH_OK) w->dir[w->n_dirs++] = output_dir;
    fth__watch_unlock(w);
    return s;
}

fth_status fth__watch_check(fth__job_watch *w, fth_err *err)
{
    if (!w) return FTH_OK;
    fth__watch_lock(w);
    const char *lost = w->lost;
    fth__watch_unlock(w);
    fth__who by = {0};
    if (!lost) return FTH_OK;
    if (fth__lock_read(lost, &by))
        FTH_FAIL(err, FTH_E_LOCKED,
                 "%s was taken over by process %lld on %s: this run gave no heartbeat for too long",
                 lost, (long long)by.pid, by.host);
    else
        FTH_FAIL(err, FTH_E_LOCKED, "%s was taken over by another process", lost);
    fth_err_hint(err, "this run wrote nothing there since; its finished stages remain valid");
    return FTH_E_LOCKED;
}

fth_status fth__watch_room(fth__job_watch *w, fth_err *err)
{
    if (!w) return FTH_OK;
    fth__watch_lock(w);
    const fth_status s = fth__grow(w->mem, &w->pid, &w->cap_pids, w->n_pids + 1, err);
    fth__watch_unlock(w);
    return s;
}

void fth__watch_lock(fth__job_watch *w)
{
    if (w) pthread_mutex_lock(&w->lock);
}

void fth__watch_unlock(fth__job_watch *w)
{
    if (w) pthread_mutex_unlock(&w->lock);
}

void fth__watch_add(fth__job_watch *w, int64_t pid)
{
    FTH_ASSERT(pid > 1 && (!w || w->n_pids < w->cap_pids)); /* room was made beforehand */
    if (w && w->n_pids < w->cap_pids) w->pid[w->n_pids++] = pid;
}

void fth__watch_remove(fth__job_watch *w, int64_t pid)
{
    for (int64_t i = 0; w && i < w->n_pids; i++)
        if (w->pid[i] == pid) w->pid[i] = w->pid[--w->n_pids];
}

double fth__watch_clock(fth__job_watch *w)
{
    fth__watch_lock(w);
    const double paused = w ? w->paused : 0;
    fth__watch_unlock(w);
    return fth__clock_seconds() - paused;
}
