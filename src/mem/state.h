/* mem/state.h - what an fth_mem is made of; only for the files of src/mem.
 *
 * One mutex guards everything. Functions declared here expect it to be held,
 * and never take it. Nothing on a release path allocates: a record, once made,
 * becomes the node of the pool's cache, and a segment of the arena becomes the
 * hole it leaves.
 */
#ifndef FTH_MEM_STATE_H
#define FTH_MEM_STATE_H

#include <fathom/backend.h>

#include "base/str.h"
#include "mem/disk.h"
#include "mem/object.h"
#include "mem/system.h"

#include <pthread.h>
#include <sys/types.h>

enum {
    FTH__ALIGN = 64,        /* of every data block: a cache line, the widest vector      */
    FTH__PAGE = 4096,       /* unit of whole mappings                                    */
    FTH__HUGE = 2 << 20,    /* unit of transparent huge pages                            */
    FTH__RELEASED = 512,    /* releases remembered, to name a second one: 50 KiB or so   */
    FTH__SIZE_CLASSES = 64, /* of holes: one per power of two                            */
    FTH__GRAVES = 32,       /* objects remembered after their release; their blocks stay */
};

/* ---- addresses to things (addresses.c) ---- */
typedef struct fth__slot {
    uintptr_t key; /* 0: empty */
    void *thing;
} fth__slot;
typedef struct fth__addresses {
    fth__slot *slot;
    uint64_t n_slots, n_used; /* n_slots is 0 or a power of two */
} fth__addresses;
/* Make sure one more insert cannot fail. */
bool fth__addresses_reserve(fth_mem *mem, fth__addresses *map);
void fth__addresses_insert(fth__addresses *map, const void *key, void *thing);
void *fth__addresses_find(const fth__addresses *map, const void *key);
void *fth__addresses_remove(fth__addresses *map, const void *key);
void fth__addresses_clear(fth_mem *mem, fth__addresses *map);

/* ---- raw bookkeeping (heap.c) ---- */
/* Zeroed memory that counts as META and can be made to fail. */
void *fth__raw_alloc(fth_mem *mem, uint64_t bytes);
void fth__raw_free(fth_mem *mem, void *block, uint64_t bytes);
/* Counts a request; true when this one must fail. */
bool fth__request_fails(fth_mem *mem);
void fth__meta_count(fth_mem *mem, uint64_t add, uint64_t subtract);
/* Appends up to 8 lines about bookkeeping still held; returns how many blocks, and their bytes. */

/* Bytes that a block of the heap takes; NULL: 0. */
uint64_t fth__heap_bytes(const void *block);
uint64_t fth__heap_leaks(const fth_mem *mem, fth__text *text, uint64_t *bytes);
void fth__heap_clear(fth_mem *mem);

/* ---- pages from the system (pages.c) ---- */
/* New zero pages; NULL when the system says no. Large ones are aligned for huge pages. */
void *fth__pages_map(uint64_t bytes, bool huge);
/* False when the system refuses (too many mappings); the pages then stay. */
bool fth__pages_unmap(void *pages, uint64_t bytes);

/* ---- the reserved range (arena.c) ---- */
typedef struct fth__mem_segment {
    uint64_t offset, bytes;
    uint64_t from, to; /* holes: outside [from, to) no page is resident       */
    uint64_t dirty;    /* holes: bytes inside it that may be, at most to-from */
    bool live;
    struct fth__mem_segment *left, *right;    /* neighbours by address            */
    struct fth__mem_segment *previous, *next; /* others of the same class (holes) */
} fth__mem_segment;
typedef struct fth__page fth__page;
typedef struct fth__arena {
    char *base; /* NULL until the first block */
    uint64_t bytes, committed, dirty;
    fth__mem_segment *first;
    fth__mem_segment *hole[FTH__SIZE_CLASSES];
    fth__page *page; /* on a device: every page of the range */
    uint64_t n_pages, reserved;
} fth__arena;
/* Addresses for a block, and memory behind them: false leaves nothing but the addresses. */
fth__mem_segment *fth__arena_take(fth_mem *mem, uint64_t bytes, uint64_t align);
bool fth__arena_back(fth_mem *mem, const fth__mem_segment *segment);
void fth__arena_give(fth_mem *mem, fth__mem_segment *segment);
uint64_t fth__arena_trim(fth_mem *mem);
uint64_t fth__arena_largest(const fth__arena *arena);
void fth__arena_clear(fth_mem *mem);

/* ---- the pages of a device's range (device.c) ---- */
/* Sets base and the pages of the arena; *bytes becomes what there is. */
bool fth__device_reserve(fth_mem *mem, uint64_t *bytes);
void fth__device_unreserve(fth_mem *mem);
/* A block comes to lie in its pages, memory is put behind them, the block leaves. */
void fth__device_enter(fth_mem *mem, const fth__mem_segment *block);
bool fth__device_back(fth_mem *mem, const fth__mem_segment *block);
void fth__device_leave(fth_mem *mem, const fth__mem_segment *block);
uint64_t fth__device_trim(fth_mem *mem);

/* ---- records (mem.c, pool.c) ---- */
typedef struct fth__record {
    fth_mem_block b;
    char *memory;                      /* b.address, writable */
    fth__mem_segment *segment;         /* ARENA */
    uint64_t range;                    /* MAPPED: addresses it may grow into; 0: it cannot */
    uint64_t spare;                    /* of a range: bytes of pages behind it that are cached */
    struct fth__record *older, *newer; /* in the pool's cache */
} fth__record;
typedef struct fth__released {
    const void *address;
    uint64_t asked_bytes;
    char label[32];
    fth_site taken, released;
} fth__released;
typedef struct fth__pool {
    fth__record *oldest, *newest;
    uint64_t bytes;
} fth__pool;
/* A cached block that serves `bytes` (its tail goes back to the system; on a device only one of
 * exactly that size does), or NULL. */
fth__record *fth__pool_reuse(fth_mem *mem, uint64_t bytes);
void fth__pool_keep(fth_mem *mem, fth__record *record);
/* Hand back the oldest cached block; returns its bytes, 0 when there is none. */
uint64_t fth__pool_drop_oldest(fth_mem *mem);
/* Whole blocks from where this ledger gets them: the host's pages, or a device. */
void *fth__block_map(fth_mem *mem, fth_how how, uint64_t bytes);
void fth__block_unmap(fth_mem *mem, fth_how how, void *block, uint64_t bytes);

/* ---- what every way to take a block needs (mem.c) ---- */
uint64_t fth__cached(const fth_mem *mem);
/* Cached bytes go back until `cost` more fit the budget. */
void fth__make_room(fth_mem *mem, uint64_t cost);
/* Give cached bytes back until `excess` of them are gone, oldest first; how many did. */
uint64_t fth__shrink_caches(fth_mem *mem, uint64_t excess);
fth_status fth__refuse_budget(fth_mem *mem, fth_site site, uint64_t bytes, const char *label,
                              fth_err *err);
fth_status fth__refuse_system(fth_mem *mem, fth_site site, fth_how how, uint64_t bytes,
                              const char *label, fth_err *err);
/* A record with its memory becomes a live block. */
void fth__enter(fth_mem *mem, fth__record *r);

/* ---- blocks that grow (range.c) ---- */
/* The pages of such a block and its addresses go back. */
void fth__range_unmap(fth_mem *mem, fth__record *r);
/* Hand back pages that ranges have lost until `excess` of them are gone; how many did. */
uint64_t fth__range_trim(fth_mem *mem, uint64_t excess);

/* ---- words about blocks (report.c) ---- */
/* "\nlargest  W 1.00 GiB (a.c:3) | ..." of up to 8 live blocks; nothing when there are none. */
void fth__report_largest(const fth_mem *mem, fth__text *text);
/* The status of a destroyed memory: FTH_OK, or what was still held. */
fth_status fth__report_leaks(const fth_mem *mem, fth_err *err);
/* The error of a release that has no live block. */
fth_status fth__report_wrong_release(const fth_mem *mem, fth_site site, const void *block,
                                     fth_err *err);
/* Copies live data blocks, largest first; the lock is held. */
int64_t fth__list_blocks(const fth_mem *mem, fth_mem_block *out, int64_t n);
extern const char *const fth__how_names[FTH_HOW_COUNT];

/* ---- objects (object.c) ---- */
void fth__graves_clear(fth_mem *mem);

struct fth_mem {
    pid_t pid; /* process that alone may use it; 0: any */
    pthread_mutex_t mutex;
    pthread_mutex_t *lock; /* &mutex: lets functions on a const fth_mem lock it */
    fth_mem_options opt;
    fth_log log;
    bool on_device; /* and then: */
    fth_mem_system system;
    fth__mem_owner owner;

    fth__addresses blocks; /* address -> fth__record    */
    fth__addresses heap;   /* address -> bookkeeping    */
    fth__arena arena;
    fth__pool pool;
    uint64_t spare; /* cached pages of ranges */

    fth__released released[FTH__RELEASED];
    uint64_t n_released;

    uint64_t used, peak, asked, meta, meta_peak, n_blocks, serial;
    uint64_t by_how[FTH_HOW_COUNT];
    uint64_t takes, releases, trims, refusals;
    int64_t n_allocs, n_writes; /* since the last fth__mem_inject */
    uint64_t n_injected;        /* requests failed on purpose      */

    uint64_t bad_frees; /* wrong fth__heap_free calls; the first one's line */
    fth_site bad_free;

    fth__object *newest; /* of those that live */
    uint64_t n_objects, n_graves;
    void *grave[FTH__GRAVES];
    uint64_t grave_bytes; /* of the bookkeeping, that no object holds any more */
    fth_err blame;        /* the first wrong release of an object */
    bool closing;         /* destroyed at `ended`, and objects still lived */
    fth_site ended;
    void (*last)(void *user); /* called when they are gone; NULL: the memory ends */
    void *last_user;
    fth__disk_role role; /* set once, before files are made */
};

/* Where a site is, for messages. */
static inline const char *fth__site_file(fth_site s)
{
    return s.file ? s.file : "?";
}

#endif
