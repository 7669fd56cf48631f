/* object.c - the list of what lives in a memory, and the graves of what did.
 *
 * A grave is the block of bookkeeping that an object was, kept until some more have gone the same
 * way: only then may its address be given to another, so a pointer that was released twice is
 * known.
 */
#include "mem/object.h"

#include "base/assert.h"
#include "mem/heap.h"
#include "mem/state.h"

#include <unistd.h>

fth_status fth__mem_check_process(const fth_mem *mem, fth_err *err)
{
    if (!mem || mem->pid == 0) return FTH_OK;
    const pid_t now = getpid();
    if (mem->pid == now) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_STATE,
                                  "this belongs to process %ld, and process %ld came from it by "
                                  "fork: the workers and the locks of the parent are not here",
                                  (long)mem->pid, (long)now);
    fth_err_hint(err, "create a context in the child; what the parent made ends with the parent");
    return s;
}

void fth__mem_bind(fth_mem *mem)
{
    mem->pid = getpid();
}

fth_status fth__mem_blame(fth_mem *mem, const fth_err *err)
{
    pthread_mutex_lock(mem->lock);
    if (mem->blame.status == FTH_OK) mem->blame = *err;
    pthread_mutex_unlock(mem->lock);
    fth_log_line(&mem->log, FTH_LOG_ERROR, "%s: %s", fth_status_get_info(err->status)->code,
                 err->text);
    return err->status;
}

void fth__object_begin(fth__object *o, fth_mem *mem, const char *what, fth_site site,
                       void (*gone)(fth__object *o))
{
    o->what = what;
    o->mem = mem;
    o->made = site;
    o->gone = gone;
    o->over = false;
    pthread_mutex_lock(mem->lock);
    o->older = mem->newest;
    o->newer = NULL;
    if (mem->newest) mem->newest->newer = o;
    mem->newest = o;
    mem->n_objects++;
    pthread_mutex_unlock(mem->lock);
}

void fth__object_use(fth__object *o)
{
    pthread_mutex_lock(o->mem->lock);
    o->users++;
    pthread_mutex_unlock(o->mem->lock);
}

void fth__object_unuse(fth__object *o)
{
    pthread_mutex_lock(o->mem->lock);
    FTH_ASSERT(o->users > 0);
    const bool gone = --o->users == 0 && __atomic_load_n(&o->over, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(o->mem->lock);
    if (gone) o->gone(o);
}

void fth__object_stand(fth__object *o, fth__object *base)
{
    FTH_ASSERT(!o->on && o->mem == base->mem);
    fth__object_use(base);
    o->on = base;
}

/* Give an error to who asked, or only to the log and the end of the memory. */
static fth_status tell(fth_mem *mem, const fth_err *own, fth_err *err)
{
    (void)fth__mem_blame(mem, own);
    if (err && err->status == FTH_OK) *err = *own;
    return own->status;
}

fth_status fth__object_end(fth__object *o, fth_site site, fth_err *err)
{
    FTH_TRY(fth__mem_check_process(o->mem, err));
    if (!__atomic_exchange_n(&o->over, true, __ATOMIC_SEQ_CST)) {
        o->ended = site;
        return FTH_OK;
    }
    fth_err own = {0};
    (void)fth_err_set(
        &own, site, FTH_E_ORDER,
        "a %s is released twice\nmade at %s:%d\nreleased at %s:%d\nand again at %s:%d", o->what,
        fth__site_file(o->made), o->made.line, fth__site_file(o->ended), o->ended.line,
        fth__site_file(site), site.line);
    fth_err_origin(&own, site);
    return tell(o->mem, &own, err);
}

fth_status fth__object_check(const fth__object *o, const char *doing, fth_err *err)
{
    FTH_TRY(fth__mem_check_process(o->mem, err));
    if (!__atomic_load_n(&o->over, __ATOMIC_SEQ_CST)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_ORDER, "%s a %s that was made at %s:%d and released at %s:%d", doing,
                    o->what, fth__site_file(o->made), o->made.line, fth__site_file(o->ended),
                    o->ended.line);
}

fth_status fth__object_early(const fth__object *early, const fth__object *user, fth_err *err)
{
    fth_err own = {0};
    char made[FTH_ERR_TEXT / 2] = "";
    if (early->made.file)
        snprintf(made, sizeof made, " made at %s:%d", early->made.file, early->made.line);
    (void)fth_err_set(&own, early->ended, FTH_E_ORDER,
                      "the %s%s is released at %s:%d while the %s made at %s:%d lives", early->what,
                      made, fth__site_file(early->ended), early->ended.line, user->what,
                      fth__site_file(user->made), user->made.line);
    fth_err_origin(&own, early->ended);
    fth_err_hint(&own, "release the %s first; until then the %s stays", user->what, early->what);
    return tell(early->mem, &own, err);
}

/* What stands on it, for messages; false: nothing. */
static bool find_user(const fth__object *o, fth__object *user)
{
    pthread_mutex_lock(o->mem->lock);
    const fth__object *at = o->mem->newest;
    while (at && at->on != o) at = at->older;
    if (at) {
        user->what = at->what;
        user->made = at->made;
    }
    pthread_mutex_unlock(o->mem->lock);
    return at != NULL;
}

fth_status fth__object_release(fth__object *o, fth_site site, fth_err *err)
{
    FTH_TRY(fth__object_end(o, site, err));
    fth__object user = {0};
    if (find_user(o, &user)) return fth__object_early(o, &user, err);
    o->gone(o);
    return FTH_OK;
}

uint64_t fth__mem_objects(const fth_mem *mem, fth__object *oldest)
{
    pthread_mutex_lock(mem->lock);
    const fth__object *o = mem->newest;
    while (o && o->older) o = o->older;
    if (o && oldest) {
        oldest->what = o->what;
        oldest->mem = o->mem;
        oldest->made = o->made;
    }
    const uint64_t n = mem->n_objects;
    pthread_mutex_unlock(mem->lock);
    return n;
}

void fth__mem_when_empty(fth_mem *mem, void (*last)(void *user), void *user)
{
    pthread_mutex_lock(mem->lock);
    mem->closing = true;
    mem->last = last;
    mem->last_user = user;
    pthread_mutex_unlock(mem->lock);
}

void fth__object_bury(fth__object *o)
{
    fth_mem *mem = o->mem;
    pthread_mutex_lock(mem->lock);
    FTH_ASSERT(mem->n_objects > 0 && o->users == 0 && (o->newer || mem->newest == o));
    if (o->older) o->older->newer = o->newer;
    if (o->newer) o->newer->older = o->older;
    if (mem->newest == o) mem->newest = o->older;
    void **grave = &mem->grave[mem->n_graves++ % FTH__GRAVES], *oldest = *grave;
    *grave = o;
    FTH_ASSERT(mem->grave_bytes >= fth__heap_bytes(oldest));
    mem->grave_bytes += fth__heap_bytes(o) - fth__heap_bytes(oldest);
    const bool last = --mem->n_objects == 0 && mem->closing;
    pthread_mutex_unlock(mem->lock);
    fth__heap_free(mem, oldest);
    if (last && mem->last)
        mem->last(mem->last_user);
    else if (last)
        (void)fth__mem_end(mem, NULL);
}

void fth__graves_clear(fth_mem *mem)
{
    for (int i = 0; i < FTH__GRAVES; i++) {
        fth__heap_free(mem, mem->grave[i]);
        mem->grave[i] = NULL;
    }
    mem->grave_bytes = 0;
}
