/* mem/object.h - what is made and released by hand: graphs, plans, tensors.
 *
 * Each is the first member of a block of bookkeeping and knows the lines that made and released it.
 * A memory knows those that live, so that nothing ends under them: whoever is released too early
 * waits for what stands on it, and that is an error which names both lines. What is gone leaves its
 * block behind for a while, and a second release finds it there.
 */
#ifndef FTH_MEM_OBJECT_H
#define FTH_MEM_OBJECT_H

#include <fathom/memory.h>

typedef struct fth__object {
    const char *what; /* "graph" */
    fth_mem *mem;
    fth_site made, ended;
    bool over; /* its owner has released it; reached through __atomic_, as C++ has no atomic_bool */
    uint64_t users;                      /* what stands on it, or still looks at it */
    const struct fth__object *on;        /* what it stands on itself; NULL: the memory alone */
    void (*gone)(struct fth__object *o); /* frees what it holds, and buries it */
    struct fth__object *older, *newer;   /* others that live in this memory */
} fth__object;

void fth__object_begin(fth__object *o, fth_mem *mem, const char *what, fth_site site,
                       void (*gone)(fth__object *o));
/* `o` stands on `base` from now on. */
void fth__object_stand(fth__object *o, fth__object *base);
/* Keep the block of an object, and let it go: when it is released and nobody does, it is gone. */
void fth__object_use(fth__object *o);
void fth__object_unuse(fth__object *o);
/* The owner lets go. FTH_E_ORDER: it did so before; FTH_E_STATE: in another process. Then do
 * nothing more: the error is in the log, and the end of the memory reports it again. */
fth_status fth__object_end(fth__object *o, fth_site site, fth_err *err);
/* The same, and then it is gone, or as soon as nothing stands on it: FTH_E_ORDER. */
fth_status fth__object_release(fth__object *o, fth_site site, fth_err *err);
/* FTH_E_ORDER names the lines where it was made and released; `doing` says what was tried. */
fth_status fth__object_check(const fth__object *o, const char *doing, fth_err *err);
/* Nothing uses it any more. The object is not to be touched afterwards; its memory may end here. */
void fth__object_bury(fth__object *o);

/* `early` was released at early->ended while `user` stands on it: logs the error and keeps it. */
fth_status fth__object_early(const fth__object *early, const fth__object *user, fth_err *err);

/* Objects of a memory that live; the oldest of them. */
uint64_t fth__mem_objects(const fth_mem *mem, fth__object *oldest);
/* Call `last` when the last of them is gone, instead of ending the memory. */
void fth__mem_when_empty(fth_mem *mem, void (*last)(void *user), void *user);
/* Free everything of a memory without objects: FTH_OK, or what was held or wrong before. */
fth_status fth__mem_end(fth_mem *mem, fth_err *err);
/* Keep an error for the end of this memory, and log it. */
fth_status fth__mem_blame(fth_mem *mem, const fth_err *err);

/* The memory is that of a context, which has threads: it is of no use after fork. */
void fth__mem_bind(fth_mem *mem);
/* FTH_E_STATE in a child that came from fork: threads and locks of its parent are not there. */
fth_status fth__mem_check_process(const fth_mem *mem, fth_err *err);

#endif
