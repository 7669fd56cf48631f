/* arena.c - blocks carved out of one reserved range of addresses.
 *
 * The range is reserved without memory behind it and is twice the budget, so that
 * holes seldom make a request fail that the budget allows. Pages become
 * usable as blocks need them. Neighbouring holes merge; the smallest hole that
 * fits is used. A hole remembers which of its bytes may still be resident: they
 * count as cached, and are what trimming can give back. On a device the pages
 * themselves are counted instead (device.c); holes there know nothing of them.
 */
#include "base/assert.h"
#include "base/bits.h"
#include "base/checked.h"
#include "mem/state.h"

#include <sys/mman.h>

static const uint64_t least_range = 64 << 20;          /* room for holes under small budgets */
static const uint64_t most_range = (uint64_t)16 << 40; /* an eighth of what x86-64 can address */
static const uint64_t commit_step = 32 << 20; /* made usable at once: few calls of mprotect */

/* Class of a size: the position of its highest bit. */
static int class_of(uint64_t bytes)
{
    return 63 - __builtin_clzll(bytes);
}

static void link_hole(fth__arena *a, fth__mem_segment *s)
{
    FTH_ASSERT(s->bytes > 0 && s->offset + s->bytes <= a->bytes);
    FTH_ASSERT(s->from <= s->to && s->dirty <= s->to - s->from);
    fth__mem_segment **head = &a->hole[class_of(s->bytes)];
    s->live = false;
    s->previous = NULL;
    s->next = *head;
    if (*head) (*head)->previous = s;
    *head = s;
    a->dirty += s->dirty;
}

static void unlink_hole(fth__arena *a, fth__mem_segment *s)
{
    FTH_ASSERT(!s->live && a->dirty >= s->dirty);
    *(s->previous ? &s->previous->next : &a->hole[class_of(s->bytes)]) = s->next;
    if (s->next) s->next->previous = s->previous;
    s->previous = s->next = NULL;
    a->dirty -= s->dirty;
}

/* Reserve addresses aligned for huge pages, as many as wanted or fewer: a limit on addresses
 * (ulimit -v) may be in the way of a large range and not of a smaller one. */
static char *reserve_addresses(uint64_t *bytes)
{
    for (; *bytes >= least_range; *bytes = fth__round_down_u64(*bytes / 2, FTH__HUGE)) {
        char *p = mmap(NULL, *bytes + FTH__HUGE, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) continue;
        const uint64_t skip = (FTH__HUGE - ((uintptr_t)p & (FTH__HUGE - 1))) & (FTH__HUGE - 1);
        if (skip) (void)munmap(p, skip);
        (void)munmap(p + skip + *bytes, FTH__HUGE - skip);
        return p + skip;
    }
    return NULL;
}

static bool reserve_host(fth__arena *a, uint64_t *bytes)
{
    a->base = reserve_addresses(bytes);
    if (a->base) (void)madvise(a->base, *bytes, MADV_HUGEPAGE); /* a wish; small pages serve too */
    return a->base != NULL;
}

static bool reserve(fth_mem *mem)
{
    fth__arena *a = &mem->arena;
    const uint64_t budget = mem->opt.budget_bytes;
    uint64_t bytes = budget > most_range / 2 ? most_range : budget * 2;
    bytes = fth__max_u64(fth__round_down_u64(bytes, FTH__HUGE), least_range);
    fth__mem_segment *all = fth__raw_alloc(mem, sizeof *all);
    if (!all) return false;
    if (!(mem->on_device ? fth__device_reserve(mem, &bytes) : reserve_host(a, &bytes))) {
        fth__raw_free(mem, all, sizeof *all);
        return false;
    }
    a->bytes = all->bytes = bytes;
    a->first = all;
    link_hole(a, all);
    return true;
}

/* Bytes to skip at the start of a hole; UINT64_MAX when the block does not fit. */
static uint64_t skip_in(const fth__mem_segment *hole, uint64_t bytes, uint64_t align)
{
    const uint64_t skip = (align - hole->offset % align) % align;
    return hole->bytes >= bytes && hole->bytes - bytes >= skip ? skip : UINT64_MAX;
}

/* The smallest hole of the lowest class that has a fitting one. With very many holes of one
 * class the best of the first few must do: a take stays a take, not a search. */
static fth__mem_segment *best_hole(const fth__arena *a, uint64_t bytes, uint64_t align)
{
    enum { LOOKS = 256 };
    fth__mem_segment *best = NULL;
    for (int c = class_of(bytes); c < FTH__SIZE_CLASSES && !best; c++) {
        int looks = 0;
        for (fth__mem_segment *s = a->hole[c]; s && !(best && looks >= LOOKS);
             s = s->next, looks++) {
            if (skip_in(s, bytes, align) == UINT64_MAX) continue;
            if (!best || s->bytes < best->bytes ||
                (s->bytes == best->bytes && s->offset < best->offset))
                best = s;
        }
    }
    return best;
}

bool fth__arena_back(fth_mem *mem, const fth__mem_segment *segment)
{
    fth__arena *a = &mem->arena;
    if (mem->on_device) return fth__device_back(mem, segment);
    const uint64_t end = segment->offset + segment->bytes;
    FTH_ASSERT(segment->live && end <= a->bytes && a->committed <= a->bytes);
    if (end <= a->committed) return true;
    uint64_t target = a->bytes;
    if (fth__round_up_u64(end, commit_step, &target)) target = fth__min_u64(target, a->bytes);
    if (mprotect(a->base + a->committed, target - a->committed, PROT_READ | PROT_WRITE) != 0)
        return false;
    a->committed = target;
    return true;
}

/* Cut the first `bytes` of s off into `front`, which becomes its left neighbour. Where in
 * [from, to) the dirty bytes are is not known: each part gets as many as it could hold. */
static void split(fth__arena *a, fth__mem_segment *s, fth__mem_segment *front, uint64_t bytes)
{
    FTH_ASSERT(bytes > 0 && bytes < s->bytes);
    const uint64_t cut = s->offset + bytes;
    *front = (fth__mem_segment){.offset = s->offset, .bytes = bytes, .left = s->left, .right = s};
    *(s->left ? &s->left->right : &a->first) = front;
    s->left = front;
    front->from = fth__min_u64(s->from, cut);
    front->to = fth__min_u64(s->to, cut);
    s->from = fth__max_u64(s->from, cut);
    s->to = fth__max_u64(s->to, cut);
    front->dirty = fth__min_u64(s->dirty, front->to - front->from);
    s->dirty = fth__min_u64(s->dirty, s->to - s->from);
    s->offset = cut;
    s->bytes -= bytes;
}

/* A hole that was split keeps at most the dirty bytes it had. */
static void share_dirty(uint64_t had, fth__mem_segment *before, fth__mem_segment *after)
{
    const uint64_t first = before ? before->dirty : 0;
    FTH_ASSERT(first <= had);
    if (after && first + after->dirty > had) after->dirty = had - first;
}

fth__mem_segment *fth__arena_take(fth_mem *mem, uint64_t bytes, uint64_t align)
{
    fth__arena *a = &mem->arena;
    if (!a->base && !reserve(mem)) return NULL;
    fth__mem_segment *s = best_hole(a, bytes, align);
    if (!s) return NULL;
    const uint64_t skip = skip_in(s, bytes, align);
    const bool has_tail = s->bytes - skip > bytes;
    fth__mem_segment *before = skip ? fth__raw_alloc(mem, sizeof *before) : NULL;
    fth__mem_segment *spare = has_tail ? fth__raw_alloc(mem, sizeof *spare) : NULL;
    if ((skip && !before) || (has_tail && !spare)) {
        fth__raw_free(mem, before, sizeof *before);
        fth__raw_free(mem, spare, sizeof *spare);
        return NULL;
    }
    unlink_hole(a, s);
    const uint64_t had = s->dirty;
    fth__mem_segment *block = s;
    if (before) split(a, s, before, skip);
    if (has_tail) split(a, s, block = spare, bytes);
    share_dirty(had, before, has_tail ? s : NULL);
    if (before) link_hole(a, before);
    if (has_tail) link_hole(a, s);
    FTH_ASSERT(block->bytes == bytes && block->offset % align == 0);
    block->live = true;
    if (mem->on_device) fth__device_enter(mem, block);
    return block;
}

/* Append the hole s->right to s; both are unlinked. */
static void absorb_right(fth_mem *mem, fth__mem_segment *s)
{
    fth__mem_segment *r = s->right;
    FTH_ASSERT(s->offset + s->bytes == r->offset);
    if (s->dirty == 0) s->from = s->to = r->from;
    if (r->dirty) s->to = r->to;
    s->dirty += r->dirty;
    s->bytes += r->bytes;
    s->right = r->right;
    if (r->right) r->right->left = s;
    fth__raw_free(mem, r, sizeof *r);
}

void fth__arena_give(fth_mem *mem, fth__mem_segment *s)
{
    fth__arena *a = &mem->arena;
    FTH_ASSERT(s->live);
    if (mem->on_device) fth__device_leave(mem, s);
    s->from = s->offset;
    s->to = s->offset + (mem->on_device ? 0 : s->bytes);
    s->dirty = s->to - s->from;
    if (s->right && !s->right->live) {
        unlink_hole(a, s->right);
        absorb_right(mem, s);
    }
    if (s->left && !s->left->live) {
        s = s->left;
        unlink_hole(a, s);
        absorb_right(mem, s);
    }
    link_hole(a, s);
}

uint64_t fth__arena_trim(fth_mem *mem)
{
    fth__arena *a = &mem->arena;
    if (mem->on_device) return fth__device_trim(mem);
    uint64_t given = 0;
    for (fth__mem_segment *s = a->first; s; s = s->right) {
        if (s->live || s->dirty == 0) continue;
        /* Pages shared with a living neighbour stay. */
        const uint64_t end = s->offset + s->bytes;
        const uint64_t first = (s->offset + FTH__PAGE - 1) / FTH__PAGE * FTH__PAGE;
        const uint64_t from = fth__max_u64(first, fth__round_down_u64(s->from, FTH__PAGE));
        const uint64_t to =
            fth__round_down_u64(fth__min_u64(s->to + FTH__PAGE - 1, end), FTH__PAGE);
        if (to > from && madvise(a->base + from, to - from, MADV_DONTNEED) == 0) given += to - from;
        a->dirty -= s->dirty;
        s->dirty = s->from = s->to = 0;
    }
    FTH_ASSERT(a->dirty == 0); /* all of it was in holes */
    return given;
}

uint64_t fth__arena_largest(const fth__arena *a)
{
    uint64_t most = 0;
    for (int c = FTH__SIZE_CLASSES - 1; c >= 0 && !most; c--)
        for (const fth__mem_segment *s = a->hole[c]; s; s = s->next)
            most = fth__max_u64(most, s->bytes);
    return most;
}

void fth__arena_clear(fth_mem *mem)
{
    fth__arena *a = &mem->arena;
    if (mem->on_device)
        fth__device_unreserve(mem);
    else if (a->base)
        (void)munmap(a->base, a->bytes);
    for (fth__mem_segment *s = a->first, *next; s; s = next) {
        next = s->right;
        fth__raw_free(mem, s, sizeof *s);
    }
    *a = (fth__arena){0};
}
