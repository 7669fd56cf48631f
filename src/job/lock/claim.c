/* claim.c - one process at a time in a folder: a lock with a heartbeat, for instruments and for
 * stages that are started by hand. */
#include "job/lock/lock.h"

#include <fathom/instrument.h>

#include "base/str.h"
#include "base/thread.h"
#include "mem/heap.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct fth_claim {
    fth_mem *mem;
    fth__who me;
    bool borrowed; /* the lock is held by this process or by the runner that waits for it */
    bool ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    char folder[FTH_PATH];
};

/* Another claim of this process, or the runner that waits for it: by parent and start. */
static bool is_ours(const fth__who *holder, const fth__who *me)
{
    const int64_t pids[] = {getpid(), getppid()};
    if (strcmp(holder->host, me->host) != 0 || holder->space != me->space) return false;
    for (int i = 0; i < 2; i++)
        if (holder->pid == pids[i] && holder->start == fth__process_start(pids[i])) return true;
    return false;
}

static void *beat(void *user)
{
    fth_claim *c = user;
    pthread_mutex_lock(&c->lock);
    while (!c->ending) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += FTH__BEAT_S;
        if (pthread_cond_timedwait(&c->wake, &c->lock, &until) != 0)
            (void)fth__lock_beat(c->folder, &c->me);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static fth_status take(fth_claim *c, fth_err *err)
{
    fth__who holder;
    FTH_TRY(fth__who_am_i(&c->me, err));
    c->me.beats = true;
    if (fth__lock_read(c->folder, &holder) && fth__who_lives(&holder) && is_ours(&holder, &c->me)) {
        c->borrowed = true;
        return FTH_OK;
    }
    FTH_TRY(fth__lock_take(c->folder, &c->me, err));
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    if (fth__thread_start(&c->thread, beat, c) == 0) return FTH_OK;
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    fth__lock_release(c->folder, &c->me);
    return FTH_FAIL(err, FTH_E_THREAD, "no thread could be started to keep the claim on %s",
                    c->folder);
}

fth_status fth_folder_claim(fth_claim **out, fth_mem *mem, const char *folder, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    if (!folder || !*folder || strlen(folder) >= FTH_PATH)
        return FTH_FAIL(err, FTH_E_USAGE, "a claim needs the path of a folder");
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_claim), &block, err));
    fth_claim *c = memset(block, 0, sizeof *c);
    c->mem = mem;
    fth__str_copy(c->folder, sizeof c->folder, folder);
    const fth_status s = take(c, err);
    if (s == FTH_OK)
        *out = c;
    else
        fth__heap_free(mem, c);
    return s;
}

void fth_folder_release(fth_claim *c)
{
    if (!c) return;
    fth_mem *mem = c->mem;
    if (!c->borrowed) {
        pthread_mutex_lock(&c->lock);
        c->ending = true;
        pthread_cond_signal(&c->wake);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
        pthread_cond_destroy(&c->wake);
        pthread_mutex_destroy(&c->lock);
        fth__lock_release(c->folder, &c->me);
    }
    fth__heap_free(mem, c);
}
