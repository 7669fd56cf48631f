/* mem.c - the ledger: who holds what, under one budget.
 *
 * Every block passes through take_locked, the one place where the budget is
 * enforced, and leaves through give_back, which looks only at the record. Held
 * and cached bytes together stay within the budget; caches make room first.
 */
#include "base/assert.h"
#include "base/bits.h"
#include "base/checked.h"
#include "mem/inject.h"
#include "mem/state.h"
#include "mem/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Arena blocks of this size start a page, so that what they leave can be handed back; at most a
 * sixteenth of one is lost to that. */
static const uint64_t page_aligned_from = 64 << 10;

void fth_mem_options_default(fth_mem_options *opt)
{
    if (!opt) return;
    /* Above the one a mapping of its own costs nothing beside filling it; above the other a cached
     * block would hold much of a budget for a request that may never come. */
    *opt = (fth_mem_options){.arena_below = (uint64_t)100 << 20, .direct_above = (uint64_t)1 << 30};
}

/* What a budget is made of when none was asked for. */
static fth_status choose_budget(fth_mem_options *opt, const fth_mem_system *system,
                                uint64_t *free_bytes, fth_err *err)
{
    *free_bytes = 0;
    if (opt->budget_bytes > 0) return FTH_OK;
    *free_bytes = system ? system->free_now(system->self) : fth_mem_free_now();
    opt->budget_bytes = *free_bytes / 10 * 9; /* the rest is for the page cache and for others */
    if (opt->budget_bytes > 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_NOMEM, "no memory%s is free, so there is no budget to share",
                    system ? " of the device" : "");
}

static void log_budget(const fth_mem *mem, uint64_t free_bytes)
{
    char budget[24], from[24];
    const char *what = mem->on_device ? "device memory" : "memory";
    fth_mem_format_size(mem->opt.budget_bytes, budget, sizeof budget);
    if (free_bytes > 0)
        fth_log_line(&mem->log, FTH_LOG_INFO, "%s budget %s: 90 %% of the %s that are free", what,
                     budget, fth_mem_format_size(free_bytes, from, sizeof from));
    else
        fth_log_line(&mem->log, FTH_LOG_INFO, "%s budget %s: as asked", what, budget);
}

static fth_status create(fth_mem **out, const fth_mem_options *opt, const fth_mem_system *system,
                         fth_err *err)
{
    *out = NULL;
    fth_mem_options o;
    fth_mem_options_default(&o);
    if (opt) o = *opt;
    uint64_t free_bytes;
    FTH_TRY(choose_budget(&o, system, &free_bytes, err));
    fth_mem *mem = calloc(1, sizeof *mem);
    if (!mem) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the ledger itself");
    if (pthread_mutex_init(&mem->mutex, NULL) != 0) {
        free(mem);
        return FTH_FAIL(err, FTH_E_LIBRARY, "a mutex could not be created");
    }
    mem->lock = &mem->mutex;
    mem->opt = o;
    mem->on_device = system != NULL;
    if (system) mem->system = *system;
    if (o.log) mem->log = *o.log;
    mem->opt.log = NULL; /* the caller's pointer need not stay valid */
    log_budget(mem, free_bytes);
    *out = mem;
    return FTH_OK;
}

fth_status fth_mem_create(fth_mem **out, const fth_mem_options *opt, fth_err *err)
{
    if (!out) return FTH_FAIL(err, FTH_E_USAGE, "fth_mem_create needs somewhere to put the result");
    return create(out, opt, NULL, err);
}

fth_status fth_mem_create_on(fth_mem **out, const fth_mem_options *opt,
                             const fth_mem_system *system, fth_err *err)
{
    if (!out) return FTH_FAIL(err, FTH_E_USAGE, "fth_mem_create_on needs somewhere to put it");
    *out = NULL;
    const bool ranges = system && system->reserve;
    if (!system || !system->map || !system->unmap || !system->free_now || system->page == 0 ||
        system->page % FTH__PAGE != 0)
        return FTH_FAIL(err, FTH_E_USAGE, "a ledger needs a system with pages, map and unmap");
    if (ranges && (!system->unreserve || !system->commit || !system->decommit))
        return FTH_FAIL(err, FTH_E_USAGE, "a system that reserves must commit and give back too");
    return create(out, opt, system, err);
}

void fth__mem_set_owner(fth_mem *mem, const fth__mem_owner *owner)
{
    mem->owner = *owner;
}

bool fth__mem_get_owner(const fth_mem *mem, fth__mem_owner *owner)
{
    *owner = mem->owner;
    return mem->on_device;
}

static fth_how by_size(const fth_mem *mem, uint64_t bytes)
{
    if (bytes < mem->opt.arena_below) return FTH_MEM_ARENA;
    return bytes < mem->opt.direct_above ? FTH_MEM_POOL : FTH_MEM_DIRECT;
}

/* How a block is got when it was asked for as `how`. */
static fth_how choose(const fth_mem *mem, fth_how how, uint64_t bytes)
{
    if (how == FTH_MEM_ANY) how = by_size(mem, bytes);
    const bool no_range = mem->on_device && !mem->system.reserve;
    return how == FTH_MEM_ARENA && no_range ? FTH_MEM_DIRECT : how;
}

/* What whole blocks are made of. A device's driver puts several small ones into one page. */
static uint64_t block_unit(const fth_mem *mem, uint64_t bytes)
{
    return mem->on_device && bytes > mem->system.page / 2 ? mem->system.page : FTH__PAGE;
}

uint64_t fth__mem_cost(const fth_mem *mem, fth_how how, uint64_t bytes)
{
    how = choose(mem, how, bytes);
    if (how == FTH_MEM_FOREIGN) return bytes;
    const bool small = how == FTH_MEM_ARENA || how == FTH_MEM_META;
    uint64_t cost;
    if (!fth__round_up_u64(bytes ? bytes : 1, small ? FTH__ALIGN : block_unit(mem, bytes), &cost))
        return UINT64_MAX;
    return cost;
}

uint64_t fth__shrink_caches(fth_mem *mem, uint64_t excess)
{
    uint64_t given = 0;
    while (given < excess) {
        const uint64_t bytes = fth__pool_drop_oldest(mem);
        if (bytes == 0) break;
        given += bytes;
    }
    if (given < excess) given += fth__arena_trim(mem);
    if (given < excess) given += fth__range_trim(mem, excess - given);
    /* What was dropped may now lie with the driver, or something from before. */
    const uint64_t kept =
        mem->on_device && mem->system.trim ? mem->system.trim(mem->system.self) : 0;
    if (given == 0) given = kept;
    if (given) mem->trims++;
    return given;
}

uint64_t fth__cached(const fth_mem *mem)
{
    return mem->pool.bytes + mem->arena.dirty + mem->spare;
}

void fth__make_room(fth_mem *mem, uint64_t cost)
{
    FTH_ASSERT(mem->used <= mem->opt.budget_bytes);
    const uint64_t cached = fth__cached(mem);
    const uint64_t free_bytes = mem->opt.budget_bytes - mem->used;
    if (cached == 0 || (cost <= free_bytes && cached <= free_bytes - cost)) return;
    fth__shrink_caches(mem, cached + cost - free_bytes);
}

/* A block of the arena: addresses first, then room in the budget, then memory behind them. */
static char *obtain_arena(fth_mem *mem, fth__record *r)
{
    r->segment = fth__arena_take(mem, r->b.got_bytes,
                                 r->b.got_bytes >= page_aligned_from ? FTH__PAGE : FTH__ALIGN);
    if (!r->segment) return NULL;
    /* The hole may have been cached pages already: only now is it known what is too much. */
    fth__make_room(mem, r->b.got_bytes);
    if (fth__arena_back(mem, r->segment)) return mem->arena.base + r->segment->offset;
    fth__arena_give(mem, r->segment);
    r->segment = NULL;
    return NULL;
}

/* Ask for the memory of one record. Its how and got_bytes are set; false when there is none. */
static bool obtain(fth_mem *mem, fth__record *r)
{
    FTH_ASSERT(!r->memory && !r->segment && r->b.got_bytes > 0);
    switch (r->b.how) {
    case FTH_MEM_ARENA: r->memory = obtain_arena(mem, r); break;
    case FTH_MEM_POOL:
    case FTH_MEM_DIRECT:
    case FTH_MEM_MAPPED:
        fth__make_room(mem, r->b.got_bytes);
        r->memory = fth__block_map(mem, r->b.how, r->b.got_bytes);
        break;
    case FTH_MEM_PINNED:
        fth__make_room(mem, r->b.got_bytes);
        r->memory = fth__pages_map(r->b.got_bytes, false);
        if (r->memory && mlock(r->memory, r->b.got_bytes) != 0) {
            (void)fth__pages_unmap(r->memory, r->b.got_bytes);
            r->memory = NULL;
        }
        break;
    case FTH_MEM_META:
        r->memory = aligned_alloc(FTH__ALIGN, r->b.got_bytes);
        if (r->memory) memset(r->memory, 0, r->b.got_bytes);
        break;
    case FTH_MEM_FOREIGN: /* memory is set by the caller */
    case FTH_HOW_COUNT: break;
    }
    return r->memory != NULL;
}

/* The memory of a record goes back the way it came. The record goes into the cache or is freed. */
static void give_back(fth_mem *mem, fth__record *r)
{
    switch (r->b.how) {
    case FTH_MEM_ARENA:
        FTH_ASSERT(r->segment->live && r->segment->bytes == r->b.got_bytes);
        fth__arena_give(mem, r->segment);
        break;
    case FTH_MEM_POOL: fth__pool_keep(mem, r); return;
    case FTH_MEM_MAPPED:
        if (r->range > 0) {
            fth__range_unmap(mem, r);
            break;
        }
        /* fall through */
    case FTH_MEM_DIRECT:
    case FTH_MEM_PINNED: /* unmapping unlocks */
        fth__block_unmap(mem, r->b.how, r->memory, r->b.got_bytes);
        break;
    case FTH_MEM_META: free(r->memory); break;
    case FTH_MEM_FOREIGN:
    case FTH_HOW_COUNT: break;
    }
    fth__raw_free(mem, r, sizeof *r);
}

fth_status fth__refuse_budget(fth_mem *mem, fth_site site, uint64_t bytes, const char *label,
                              fth_err *err)
{
    mem->refusals++;
    char wants[24], held[24], budget[24], list[FTH_ERR_TEXT];
    fth__text t;
    fth__text_init(&t, list, sizeof list);
    fth__report_largest(mem, &t);
    fth_mem_format_size(bytes, wants, sizeof wants);
    fth_mem_format_size(mem->used, held, sizeof held);
    fth_mem_format_size(mem->opt.budget_bytes, budget, sizeof budget);
    fth_log_line(&mem->log, FTH_LOG_DEBUG, "memory: refused %s for %s", wants, label);
    return fth_err_set(err, site, FTH_E_BUDGET,
                       "%s wants %s (%llu bytes); %s of %s are held, %llu bytes are left%s", label,
                       wants, (unsigned long long)bytes, held, budget,
                       (unsigned long long)(mem->opt.budget_bytes - mem->used), list);
}

fth_status fth__refuse_system(fth_mem *mem, fth_site site, fth_how how, uint64_t bytes,
                              const char *label, fth_err *err)
{
    mem->refusals++;
    char wants[24], list[FTH_ERR_TEXT];
    fth__text t;
    fth__text_init(&t, list, sizeof list);
    fth__report_largest(mem, &t);
    fth_mem_format_size(bytes, wants, sizeof wants);
    const fth_status status = fth_err_set(err, site, FTH_E_NOMEM, "%s wants %s (%s); %s%s", label,
                                          wants, fth__how_names[how],
                                          how == FTH_MEM_PINNED ? "the pages could not be locked"
                                          : mem->on_device ? "the device refused to allocate it"
                                                           : "the system refused to allocate it",
                                          list);
    struct rlimit limit;
    if (how == FTH_MEM_PINNED && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY)
        fth_err_hint(err, "this process may lock %llu bytes (ulimit -l); raise that limit",
                     (unsigned long long)limit.rlim_cur);
    return status;
}

void fth__enter(fth_mem *mem, fth__record *r)
{
    FTH_ASSERT(r->memory && r->b.asked_bytes <= r->b.got_bytes);
    FTH_ASSERT(mem->on_device || r->b.how == FTH_MEM_FOREIGN ||
               fth__is_aligned(r->memory, FTH__ALIGN));
    r->b.address = r->memory;
    r->b.serial = ++mem->serial;
    fth__addresses_insert(&mem->blocks, r->memory, r);
    mem->takes++;
    if (r->b.how == FTH_MEM_META) {
        fth__meta_count(mem, r->b.got_bytes, 0);
        return;
    }
    mem->used += r->b.got_bytes;
    mem->asked += r->b.asked_bytes;
    mem->by_how[r->b.how] += r->b.got_bytes;
    mem->n_blocks++;
    FTH_ASSERT(mem->used <= mem->opt.budget_bytes && mem->asked <= mem->used);
    if (mem->used > mem->peak) mem->peak = mem->used;
}

static void leave(fth_mem *mem, const fth__record *r)
{
    mem->releases++;
    if (r->b.how == FTH_MEM_META) {
        fth__meta_count(mem, 0, r->b.got_bytes);
        return;
    }
    FTH_ASSERT(mem->used >= r->b.got_bytes && mem->asked >= r->b.asked_bytes);
    FTH_ASSERT(mem->by_how[r->b.how] >= r->b.got_bytes && mem->n_blocks > 0);
    mem->used -= r->b.got_bytes;
    mem->asked -= r->b.asked_bytes;
    mem->by_how[r->b.how] -= r->b.got_bytes;
    mem->n_blocks--;
}

/* A record whose memory is there: reused, carved, mapped or the caller's. NULL when none. */
static fth__record *make_record(fth_mem *mem, fth_how how, uint64_t cost, void *foreign)
{
    fth__record *r = how == FTH_MEM_POOL ? fth__pool_reuse(mem, cost) : NULL;
    if (r) return r;
    r = fth__raw_alloc(mem, sizeof *r);
    if (!r) return NULL;
    r->b.how = how;
    r->b.device = mem->on_device ? mem->system.device : 0;
    r->b.got_bytes = cost;
    r->memory = foreign;
    if (foreign) {
        fth__make_room(mem, cost);
        return r;
    }
    const uint64_t injected = mem->n_injected;
    if (obtain(mem, r)) return r;
    /* Once more, with room; not after a failure on purpose, which must be seen to fail. */
    if (injected == mem->n_injected && fth__shrink_caches(mem, UINT64_MAX) > 0 && obtain(mem, r))
        return r;
    fth__raw_free(mem, r, sizeof *r);
    return NULL;
}

static fth_status take_locked(fth_mem *mem, fth_site site, fth_how how, uint64_t bytes,
                              const char *label, void *foreign, void **out, fth_err *err)
{
    const bool any = how == FTH_MEM_ANY;
    how = choose(mem, how, bytes);
    if (fth__request_fails(mem))
        return fth_err_set(err, site, FTH_E_NOMEM, "%s: request %lld failed on purpose", label,
                           (long long)mem->n_allocs);
    const uint64_t cost = fth__mem_cost(mem, how, bytes);
    if (how != FTH_MEM_META && cost > mem->opt.budget_bytes - mem->used)
        return fth__refuse_budget(mem, site, bytes, label, err);
    if (cost > PTRDIFF_MAX || !fth__addresses_reserve(mem, &mem->blocks))
        return fth__refuse_system(mem, site, how, bytes, label, err);

    const uint64_t injected = mem->n_injected;
    fth__record *r = make_record(mem, how, cost, foreign);
    if (!r && any && how == FTH_MEM_ARENA && injected == mem->n_injected) {
        /* No hole left in the range: whole pages still do. */
        const uint64_t pages = fth__mem_cost(mem, FTH_MEM_DIRECT, bytes);
        if (pages <= mem->opt.budget_bytes - mem->used)
            r = make_record(mem, FTH_MEM_DIRECT, pages, NULL);
    }
    if (!r) return fth__refuse_system(mem, site, how, bytes, label, err);

    const fth__record *stale = fth__addresses_find(&mem->blocks, r->memory);
    if (stale) { /* the caller freed adopted memory, and the system gave us its address */
        const fth_mem_block s = stale->b;
        give_back(mem, r);
        return fth_err_set(err, site, FTH_E_STATE,
                           "%s, adopted at %s:%d, was freed without being released first", s.label,
                           fth__site_file(s.site), s.site.line);
    }
    r->b.asked_bytes = bytes;
    r->b.site = site;
    fth__str_copy(r->b.label, sizeof r->b.label, label);
    fth__enter(mem, r);
    *out = r->memory;
    return FTH_OK;
}

fth_status fth_mem_take_(fth_mem *mem, fth_site site, fth_how how, uint64_t bytes,
                         const char *label, void **out, fth_err *err)
{
    if (out) *out = NULL;
    if (!mem || !out)
        return fth_err_set(err, site, FTH_E_USAGE, "no memory, or nowhere to put a block");
    if ((int)how < 0 || how > FTH_MEM_ANY || how == FTH_MEM_FOREIGN)
        return fth_err_set(err, site, FTH_E_USAGE,
                           "a block cannot be taken as %d; foreign memory is "
                           "registered with fth_mem_adopt",
                           (int)how);
    if (mem->on_device && (how == FTH_MEM_PINNED || how == FTH_MEM_MAPPED))
        return fth_err_set(err, site, FTH_E_USAGE, "a device has no %s blocks; take %s of the host",
                           fth__how_names[how], label ? label : "it");
    FTH_TRY(fth__mem_check_process(mem, err));
    pthread_mutex_lock(mem->lock);
    const fth_status status =
        take_locked(mem, site, how, bytes, label ? label : "unnamed", NULL, out, err);
    pthread_mutex_unlock(mem->lock);
    return status;
}

fth_status fth_mem_check_room(const fth_mem *mem, uint64_t bytes, const char *what, fth_err *err)
{
    fth_mem_stats now;
    char need[24], left[24];
    fth_mem_get_stats(mem, &now);
    const uint64_t cost = fth__mem_cost(mem, FTH_MEM_ANY, bytes),
                   room = now.budget_bytes - now.used_bytes;
    if (cost <= room) return FTH_OK;
    FTH_FAIL(err, FTH_E_NO_FIT, "%s needs %s; the budget has %s left", what,
             fth_mem_format_size(cost, need, sizeof need),
             fth_mem_format_size(room, left, sizeof left));
    fth_err_hint(err, "allow more with --memory");
    return FTH_E_NO_FIT;
}

fth_status fth_mem_adopt_(fth_mem *mem, fth_site site, void *block, uint64_t bytes,
                          const char *label, fth_err *err)
{
    if (!mem || !block)
        return fth_err_set(err, site, FTH_E_USAGE, "there is no block to adopt at NULL");
    FTH_TRY(fth__mem_check_process(mem, err));
    if (!label) label = "unnamed";
    void *same = NULL;
    pthread_mutex_lock(mem->lock);
    const fth__record *r = fth__addresses_find(&mem->blocks, block);
    fth_status status;
    if (r)
        status = fth_err_set(err, site, FTH_E_USAGE, "%s is already known as %s, taken at %s:%d",
                             label, r->b.label, fth__site_file(r->b.site), r->b.site.line);
    else
        status = take_locked(mem, site, FTH_MEM_FOREIGN, bytes, label, block, &same, err);
    pthread_mutex_unlock(mem->lock);
    return status;
}

static void remember(fth_mem *mem, const fth__record *r, fth_site site)
{
    fth__released *slot = &mem->released[mem->n_released++ % FTH__RELEASED];
    slot->address = r->memory;
    slot->asked_bytes = r->b.asked_bytes;
    slot->taken = r->b.site;
    slot->released = site;
    memcpy(slot->label, r->b.label, sizeof slot->label);
}

fth_status fth_mem_release_(fth_mem *mem, fth_site site, void *block, fth_err *err)
{
    if (!block) return FTH_OK;
    if (!mem) return fth_err_set(err, site, FTH_E_USAGE, "a block was released into no memory");
    FTH_TRY(fth__mem_check_process(mem, err));
    fth_status status = FTH_OK;
    pthread_mutex_lock(mem->lock);
    fth__record *r = fth__addresses_remove(&mem->blocks, block);
    if (r) {
        remember(mem, r, site);
        leave(mem, r);
        give_back(mem, r);
    } else {
        status = fth__report_wrong_release(mem, site, block, err);
    }
    pthread_mutex_unlock(mem->lock);
    return status;
}

uint64_t fth_mem_trim(fth_mem *mem)
{
    if (!mem) return 0;
    pthread_mutex_lock(mem->lock);
    const uint64_t given = fth__shrink_caches(mem, UINT64_MAX);
    pthread_mutex_unlock(mem->lock);
    return given;
}

fth_status fth_mem_destroy_(fth_mem *mem, fth_site site, fth_err *err)
{
    if (!mem) return FTH_OK;
    FTH_TRY(fth__mem_check_process(mem, err));
    fth__object memory = {.what = "memory", .mem = mem, .ended = site}, user = {0};
    if (mem->closing)
        return FTH_FAIL(err, FTH_E_ORDER, "a memory is released twice, at %s:%d and at %s:%d",
                        fth__site_file(mem->ended), mem->ended.line, fth__site_file(site),
                        site.line);
    if (fth__mem_objects(mem, &user) == 0) return fth__mem_end(mem, err);
    mem->ended = site;
    fth__mem_when_empty(mem, NULL, NULL);
    return fth__object_early(&memory, &user, err);
}

fth_status fth__mem_end(fth_mem *mem, fth_err *err)
{
    fth__graves_clear(mem);
    fth_status status = fth__report_leaks(mem, err);
    if (status == FTH_OK && mem->blame.status != FTH_OK) {
        status = mem->blame.status;
        if (err && err->status == FTH_OK) *err = mem->blame;
    }
    for (uint64_t i = 0; i < mem->blocks.n_slots; i++)
        if (mem->blocks.slot[i].thing) give_back(mem, mem->blocks.slot[i].thing);
    fth__shrink_caches(mem, UINT64_MAX);
    fth__arena_clear(mem);
    fth__addresses_clear(mem, &mem->blocks);
    fth__heap_clear(mem);
    FTH_ASSERT(!mem->pool.oldest && mem->pool.bytes == 0);
    FTH_ASSERT(status != FTH_OK || (mem->used == 0 && mem->asked == 0 && mem->meta == 0));
    pthread_mutex_destroy(&mem->mutex);
    free(mem);
    return status;
}

void fth_mem_get_stats(const fth_mem *mem, fth_mem_stats *out)
{
    *out = (fth_mem_stats){0};
    if (!mem) return;
    pthread_mutex_lock(mem->lock);
    out->budget_bytes = mem->opt.budget_bytes;
    out->used_bytes = mem->used;
    out->peak_bytes = mem->peak;
    out->asked_bytes = mem->asked;
    out->cached_bytes = fth__cached(mem);
    out->largest_free = fth__arena_largest(&mem->arena);
    FTH_ASSERT(mem->grave_bytes <= mem->meta && mem->used <= mem->peak);
    out->meta_bytes = mem->meta - mem->grave_bytes;
    out->meta_peak_bytes = mem->meta_peak;
    out->blocks = mem->n_blocks;
    memcpy(out->by_how, mem->by_how, sizeof out->by_how);
    out->by_how[FTH_MEM_META] -= mem->grave_bytes;
    out->takes = mem->takes;
    out->releases = mem->releases;
    out->trims = mem->trims;
    out->refusals = mem->refusals;
    pthread_mutex_unlock(mem->lock);
}

void fth_mem_mark(fth_mem *mem)
{
    if (!mem) return;
    pthread_mutex_lock(mem->lock);
    mem->peak = mem->used;
    mem->meta_peak = mem->meta;
    pthread_mutex_unlock(mem->lock);
}

bool fth_mem_find(const fth_mem *mem, const void *block, fth_mem_block *out)
{
    if (!mem || !block) return false;
    pthread_mutex_lock(mem->lock);
    const fth__record *r = fth__addresses_find(&mem->blocks, block);
    if (r && out) *out = r->b;
    pthread_mutex_unlock(mem->lock);
    return r != NULL;
}

int64_t fth_mem_list(const fth_mem *mem, fth_mem_block *out, int64_t n)
{
    if (!mem) return 0;
    pthread_mutex_lock(mem->lock);
    const int64_t total = fth__list_blocks(mem, out, out ? n : 0);
    pthread_mutex_unlock(mem->lock);
    return total;
}
