/* fathom/memory.h - one allocator with a budget and a record of every live block.
 *
 * Each context has one fth_mem. It records how each block was allocated and
 * frees it accordingly, so the caller never chooses the free function. A
 * request that would exceed the budget fails before the system is asked.
 * All memory of Fathom comes from here: data blocks count against the
 * budget and the ledger; bookkeeping (FTH_MEM_META) is counted separately.
 *
 * Ownership: whoever takes a block releases it exactly once.
 * Threads:   any thread may call any function on one fth_mem.
 * Failure:   *out is NULL and nothing changes.
 */
#ifndef FATHOM_MEMORY_H
#define FATHOM_MEMORY_H

#include <fathom/base.h>

FTH_BEGIN_DECLS

typedef struct fth_mem fth_mem;

typedef enum fth_how {
    FTH_MEM_ARENA,   /* carved from the reserved address range             */
    FTH_MEM_POOL,    /* cached when released, trimmed under pressure       */
    FTH_MEM_DIRECT,  /* one mmap; unmapped as soon as it is released       */
    FTH_MEM_PINNED,  /* page-locked for device copies                      */
    FTH_MEM_MAPPED,  /* pages of a file or a growing range                 */
    FTH_MEM_FOREIGN, /* owned by the caller: counted, never freed here     */
    FTH_MEM_META,    /* bookkeeping of the library; outside the budget     */
    FTH_HOW_COUNT
} fth_how;

typedef struct fth_mem_options {
    uint64_t budget_bytes; /* 0: 90 % of the memory free now, within cgroup limits    */
    uint64_t arena_below;  /* FTH_MEM_ANY: smaller sizes use the arena; default 100 MB */
    uint64_t direct_above; /* FTH_MEM_ANY: sizes from here are direct; default 1 GB   */
    int64_t fail_alloc;    /* for tests: fail the n-th request; 0: never              */
    int64_t fail_write;    /* for tests: fail the n-th write to a file; 0: never      */
    const fth_log *log;    /* copied; may be NULL                                     */
} fth_mem_options;

/* Fill `opt` with the defaults above; call it before you change a field. */
FTH_API void fth_mem_options_default(fth_mem_options *opt);

FTH_API FTH_MUST_USE fth_status fth_mem_create(fth_mem **out, const fth_mem_options *opt,
                                               fth_err *err);

/* Destroy `mem` in any case; NULL is allowed. FTH_E_LEAK lists the blocks that were still held.
 * FTH_E_ORDER: a tensor, graph or plan is still alive, and the memory lives until the last of them
 * is released; or one of them was released twice, or too early, before this call. */
FTH_API fth_status fth_mem_destroy_(fth_mem *mem, fth_site site, fth_err *err);
#define fth_mem_destroy(mem, err) fth_mem_destroy_((mem), FTH_HERE, (err))

/* Choose between arena, pool and direct by size. */
#define FTH_MEM_ANY FTH_HOW_COUNT

/* Allocate `bytes`, aligned to 64 bytes, contents undefined; zero bytes give a unique pointer.
 * `label` names the block in reports; its first 31 characters are copied. FTH_E_BUDGET: it would
 * exceed the budget. FTH_E_NOMEM: the system refused. */
FTH_API FTH_MUST_USE fth_status fth_mem_take_(fth_mem *mem, fth_site site, fth_how how,
                                              uint64_t bytes, const char *label, void **out,
                                              fth_err *err);
/* Register memory that the caller owns: it counts against the budget until released. */
FTH_API FTH_MUST_USE fth_status fth_mem_adopt_(fth_mem *mem, fth_site site, void *block,
                                               uint64_t bytes, const char *label, fth_err *err);
/* FTH_E_NO_FIT unless a block of `bytes` (FTH_MEM_ANY) fits the budget beside what is held now: for
 * what a later step takes, before an earlier one begins. `what` is for the message: "drawing
 * a.png". */
FTH_API FTH_MUST_USE fth_status fth_mem_check_room(const fth_mem *mem, uint64_t bytes,
                                                   const char *what, fth_err *err);
/* Release a block the way it was allocated. NULL does nothing. An unknown pointer
 * (FTH_E_MEM_UNKNOWN) and a second release (FTH_E_MEM_TWICE) change nothing; the error names the
 * lines of both calls. */
FTH_API fth_status fth_mem_release_(fth_mem *mem, fth_site site, void *block, fth_err *err);
/* Reserve an address range for a block that can grow to `most` bytes without moving. Only pages
 * committed by fth_mem_resize use memory and count. On a device this requires
 * fth_device_info.address_ranges. */
FTH_API FTH_MUST_USE fth_status fth_mem_reserve_(fth_mem *mem, fth_site site, uint64_t most,
                                                 const char *label, void **out, fth_err *err);
/* Commit the first `bytes` of a reserved block, in whole pages, and decommit the rest. Existing
 * data does not move; new pages are zero on the host and undefined on a device. Shrinking never
 * fails. */
FTH_API FTH_MUST_USE fth_status fth_mem_resize_(fth_mem *mem, fth_site site, void *block,
                                                uint64_t bytes, fth_err *err);
/* Bytes that a block reserved for `most` counts against the budget when `bytes` are committed. */
FTH_API uint64_t fth_mem_range_cost(const fth_mem *mem, uint64_t most, uint64_t bytes);
/* Return cached pages to the system; the result is in bytes. */
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
    uint64_t used_bytes;   /* live data blocks, foreign ones included         */
    uint64_t peak_bytes;   /* maximum of used_bytes since fth_mem_mark        */
    uint64_t asked_bytes;  /* requested by callers, before rounding           */
    uint64_t cached_bytes; /* released but not returned to the system         */
    uint64_t largest_free; /* largest hole in the arena                       */
    uint64_t meta_bytes, meta_peak_bytes;
    uint64_t blocks;                           /* live blocks, bookkeeping excluded */
    uint64_t by_how[FTH_HOW_COUNT];            /* live bytes                        */
    uint64_t takes, releases, trims, refusals; /* calls since fth_mem_create        */
} fth_mem_stats;
FTH_API void fth_mem_get_stats(const fth_mem *mem, fth_mem_stats *out);
/* Restart the peak: set peak_bytes to used_bytes. */
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
/* Copy the record of a live block; false if `block` is not the address of one. */
FTH_API bool fth_mem_find(const fth_mem *mem, const void *block, fth_mem_block *out);
/* Copy up to `n` records of live data blocks, largest first; returns how many blocks are live. */
FTH_API int64_t fth_mem_list(const fth_mem *mem, fth_mem_block *out, int64_t n);
/* Resident bytes of [block, block+bytes), in whole pages, as the kernel reports them. */
FTH_API uint64_t fth_mem_touched(const void *block, uint64_t bytes);
/* Parse "512M", "2GiB", "1.5G", "50%" (of `free_bytes`) or "4096" into bytes. */
FTH_API FTH_MUST_USE fth_status fth_mem_parse_size(const char *text, uint64_t free_bytes,
                                                   uint64_t *out, fth_err *err);

/* Third-party libraries that allocate memory themselves while a plan runs. A set of them is a mask
 * of 1u << FTH_LIB_...; libraries.def lists them with the bytes reserved for each. */
typedef enum fth_library {
#define FTH_LIBRARY(id, name, fixed_bytes, thread_bytes, why) FTH_LIB_##id,
#include <fathom/libraries.def>
#undef FTH_LIBRARY
    FTH_LIBRARY_COUNT
} fth_library;
typedef struct fth_library_info {
    const char *name, *why;
    uint64_t fixed_bytes, thread_bytes; /* thread_bytes per worker of the run */
} fth_library_info;
FTH_API const fth_library_info *fth_library_get_info(fth_library library); /* NULL: unknown */
/* Bytes reserved for a set of libraries in a run with that many workers. */
FTH_API uint64_t fth_library_allowance(uint32_t libraries, int threads);

/* Bytes that can be allocated now without swapping: the least of MemAvailable and the free room in
 * every enclosing cgroup. */
FTH_API uint64_t fth_mem_free_now(void);
/* Format as "1.26 GiB" into `text`, of at least 24 bytes; returns `text`. */
FTH_API const char *fth_mem_format_size(uint64_t bytes, char *text, size_t text_bytes);

FTH_END_DECLS
#endif /* FATHOM_MEMORY_H */
