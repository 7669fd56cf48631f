/* fathom/memory.h - blocks that know how they were obtained, under one budget.
 *
 * One fth_mem per context. It hands out blocks, keeps one record for each, and
 * gives a block back the way it was got, never the way the caller guesses. A
 * request that would pass the budget is refused before the system is asked.
 * All of Fathom's own memory comes from here: data blocks count against the
 * budget and the ledger; bookkeeping (FTH_MEM_META) is counted apart.
 *
 * Ownership: whoever takes a block releases it exactly once.
 * Threads:   every function may be called from any thread on one fth_mem.
 * Failure:   on failure *out is NULL and nothing changed.
 */
#ifndef FATHOM_MEMORY_H
#define FATHOM_MEMORY_H

#include <fathom/base.h>

FTH_BEGIN_DECLS

typedef struct fth_mem fth_mem;

typedef enum fth_how {
    FTH_MEM_ARENA,   /* carved from the reserved range                    */
    FTH_MEM_POOL,    /* kept in a cache when released, trimmed on pressure */
    FTH_MEM_DIRECT,  /* one system call; goes back at once                */
    FTH_MEM_PINNED,  /* page-locked for device copies                     */
    FTH_MEM_MAPPED,  /* pages of a file or a growing range                */
    FTH_MEM_FOREIGN, /* the caller's; counted, never freed by us          */
    FTH_MEM_META,    /* bookkeeping of ours; outside the budget           */
    FTH_HOW_COUNT
} fth_how;

typedef struct fth_mem_options {
    uint64_t budget_bytes; /* 0: 90 % of what is free now, cgroup limits respected */
    uint64_t arena_below;  /* FTH_MEM_ANY: sizes under this use the arena; 100 MB  */
    uint64_t direct_above; /* FTH_MEM_ANY: sizes from this on are direct; 1 GB     */
    int64_t fail_alloc;    /* tests: fail the n-th request; 0 never                */
    int64_t fail_write;    /* tests: fail the n-th write to a file; 0 never        */
    const fth_log *log;    /* copied; may be NULL                                  */
} fth_mem_options;

/* Fill `opt` with the defaults above; call it before changing a field. */
FTH_API void fth_mem_options_default(fth_mem_options *opt);

FTH_API FTH_MUST_USE fth_status fth_mem_create(fth_mem **out, const fth_mem_options *opt,
                                               fth_err *err);

/* Destroy. FTH_E_LEAK lists what was still held; it is destroyed all the same. FTH_E_ORDER: a
 * tensor, graph or plan still lives, and the memory ends with the last of them; or one was released
 * twice or too early before. NULL is allowed. */
FTH_API fth_status fth_mem_destroy_(fth_mem *mem, fth_site site, fth_err *err);
#define fth_mem_destroy(mem, err) fth_mem_destroy_((mem), FTH_HERE, (err))

/* Let the size choose between arena, pool and direct. */
#define FTH_MEM_ANY FTH_HOW_COUNT

/* Take `bytes` (zero is allowed and gives a unique pointer), aligned to 64.
 * `label` names the block in reports and is copied (31 characters). */
FTH_API FTH_MUST_USE fth_status fth_mem_take_(fth_mem *mem, fth_site site, fth_how how,
                                              uint64_t bytes, const char *label, void **out,
                                              fth_err *err);
/* Register memory of the caller's: counted against the budget until released. */
FTH_API FTH_MUST_USE fth_status fth_mem_adopt_(fth_mem *mem, fth_site site, void *block,
                                               uint64_t bytes, const char *label, fth_err *err);
/* Give a block back by its own record. NULL does nothing. Unknown pointers and
 * second releases change nothing and are errors that name both lines. */
FTH_API fth_status fth_mem_release_(fth_mem *mem, fth_site site, void *block, fth_err *err);
/* Addresses for a block that grows to `most` bytes where it lies: none has memory behind it until
 * fth_mem_resize, and only what has counts. On a device this needs fth_device_info.address_ranges.
 */
FTH_API FTH_MUST_USE fth_status fth_mem_reserve_(fth_mem *mem, fth_site site, uint64_t most,
                                                 const char *label, void **out, fth_err *err);
/* Put memory behind its first `bytes`, in whole pages, and take it from behind the rest. What stays
 * is not moved; what comes is 0 on the host, and anything on a device. Less never fails. */
FTH_API FTH_MUST_USE fth_status fth_mem_resize_(fth_mem *mem, fth_site site, void *block,
                                                uint64_t bytes, fth_err *err);
/* What a block reserved for `most` bytes counts when its first `bytes` have memory. */
FTH_API uint64_t fth_mem_range_cost(const fth_mem *mem, uint64_t most, uint64_t bytes);
/* Hand cached pages back to the system; returns how many bytes. */
FTH_API uint64_t fth_mem_trim(fth_mem *mem);

#define fth_mem_take(mem, how, bytes, label, out, err)                                             \
    fth_mem_take_((mem), FTH_HERE, (how), (bytes), (label), (out), (err))
#define fth_mem_adopt(mem, block, bytes, label, err)                                               \
    fth_mem_adopt_((mem), FTH_HERE, (block), (bytes), (label), (err))
#define fth_mem_reserve(mem, most, label, out, err)                                                \
    fth_mem_reserve_((mem), FTH_HERE, (most), (label), (out), (err))
#define fth_mem_resize(mem, block, bytes, err)                                                     \
    fth_mem_resize_((mem), FTH_HERE, (block), (bytes), (err))
#define fth_mem_release(mem, block, err) fth_mem_release_((mem), FTH_HERE, (block), (err))

typedef struct fth_mem_stats {
    uint64_t budget_bytes;
    uint64_t used_bytes;   /* data blocks held now, foreign included          */
    uint64_t peak_bytes;   /* most ever held at once (see fth_mem_mark)       */
    uint64_t asked_bytes;  /* what callers asked for, before rounding         */
    uint64_t cached_bytes; /* released but not handed back to the system      */
    uint64_t largest_free; /* largest hole in the arena                       */
    uint64_t meta_bytes, meta_peak_bytes;
    uint64_t blocks;                /* live blocks, bookkeeping excluded               */
    uint64_t by_how[FTH_HOW_COUNT]; /* live bytes                               */
    uint64_t takes, releases, trims, refusals;
} fth_mem_stats;
FTH_API void fth_mem_get_stats(const fth_mem *mem, fth_mem_stats *out);
/* Start a new peak: peak_bytes becomes used_bytes. */
FTH_API void fth_mem_mark(fth_mem *mem);

typedef struct fth_mem_block {
    const void *address;
    fth_how how;
    uint64_t asked_bytes, got_bytes, serial;
    int device; /* 0 is the CPU */
    const void *stream;
    char label[32];
    fth_site site;
} fth_mem_block;
/* Copy the record of a live block; false when `block` is not one. */
FTH_API bool fth_mem_find(const fth_mem *mem, const void *block, fth_mem_block *out);
/* Live data blocks, largest first: up to `n` records; returns how many there are. */
FTH_API int64_t fth_mem_list(const fth_mem *mem, fth_mem_block *out, int64_t n);
/* Pages of [block, block+bytes) that are resident, in bytes, as the kernel counts. */
FTH_API uint64_t fth_mem_touched(const void *block, uint64_t bytes);
/* "512M", "2GiB", "1.5G", "50%" (of `free_bytes`), "4096" to bytes. */
FTH_API FTH_MUST_USE fth_status fth_mem_parse_size(const char *text, uint64_t free_bytes,
                                                   uint64_t *out, fth_err *err);

/* Libraries beside ours that take memory of their own while a plan runs. A set of them is a mask
 * of 1u << FTH_LIB_...; the rows, with the bytes allowed to each, are in libraries.def. */
typedef enum fth_library {
#define FTH_LIBRARY(id, name, fixed_bytes, thread_bytes, why) FTH_LIB_##id,
#include <fathom/libraries.def>
#undef FTH_LIBRARY
    FTH_LIBRARY_COUNT
} fth_library;
typedef struct fth_library_info {
    const char *name, *why;
    uint64_t fixed_bytes, thread_bytes; /* thread_bytes for each worker of the run */
} fth_library_info;
FTH_API const fth_library_info *fth_library_get_info(fth_library library); /* NULL: no such row */
/* The most that a set of libraries may take in a run with that many workers. */
FTH_API uint64_t fth_library_allowance(uint32_t libraries, int threads);

/* What could be taken now without swapping: MemAvailable and every cgroup limit above us. */
FTH_API uint64_t fth_mem_free_now(void);
/* "1.26 GiB" into a caller's buffer of at least 24 bytes; returns it. */
FTH_API const char *fth_mem_format_size(uint64_t bytes, char *text, size_t text_bytes);

FTH_END_DECLS
#endif /* FATHOM_MEMORY_H */
