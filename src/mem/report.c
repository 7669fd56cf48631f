/* report.c - what memory says when something is wrong, and the list of blocks. */
#include "mem/state.h"

#include <stdlib.h>

const char *const fth__how_names[FTH_HOW_COUNT] = {
    [FTH_MEM_ARENA] = "arena",   [FTH_MEM_POOL] = "pool",     [FTH_MEM_DIRECT] = "direct",
    [FTH_MEM_PINNED] = "pinned", [FTH_MEM_MAPPED] = "mapped", [FTH_MEM_FOREIGN] = "foreign",
    [FTH_MEM_META] = "meta",
};

/* Largest first; among equals the older one first, so that lists do not change between runs. */
static int by_size(const void *a_, const void *b_)
{
    const fth_mem_block *a = a_, *b = b_;
    if (a->got_bytes != b->got_bytes) return a->got_bytes < b->got_bytes ? 1 : -1;
    return a->serial < b->serial ? -1 : 1;
}

int64_t fth__list_blocks(const fth_mem *mem, fth_mem_block *out, int64_t n)
{
    int64_t kept = 0, total = 0;
    for (uint64_t i = 0; i < mem->blocks.n_slots; i++) {
        const fth__record *r = mem->blocks.slot[i].thing;
        if (!r || r->b.how == FTH_MEM_META) continue;
        total++;
        if (n <= 0) continue;
        if (kept < n) {
            out[kept++] = r->b;
            if (kept == n) qsort(out, (size_t)n, sizeof *out, by_size);
            continue;
        }
        /* Full: the list is sorted, and the newcomer may push out the last. */
        int64_t at = n;
        while (at > 0 && by_size(&r->b, &out[at - 1]) < 0) at--;
        if (at == n) continue;
        for (int64_t k = n - 1; k > at; k--) out[k] = out[k - 1];
        out[at] = r->b;
    }
    if (kept < n) qsort(out, (size_t)kept, sizeof *out, by_size);
    return total;
}

enum { LISTED = 8 }; /* blocks: the message has room for these beside its words */

void fth__report_largest(const fth_mem *mem, fth__text *text)
{
    fth_mem_block top[LISTED];
    const int64_t total = fth__list_blocks(mem, top, LISTED);
    char size[24];
    for (int64_t i = 0; i < total && i < LISTED; i++)
        fth__text_add(text, "%s%s %s (%s:%d)", i == 0 ? "\nlargest  " : " | ", top[i].label,
                      fth_mem_format_size(top[i].got_bytes, size, sizeof size),
                      fth__site_file(top[i].site), top[i].site.line);
    if (total > LISTED) fth__text_add(text, " | and %lld more", (long long)(total - LISTED));
}

fth_status fth__report_leaks(const fth_mem *mem, fth_err *err)
{
    char body[FTH_ERR_TEXT], size[24];
    fth__text t;
    fth__text_init(&t, body, sizeof body);
    fth_mem_block top[LISTED];
    const int64_t total = fth__list_blocks(mem, top, LISTED);
    uint64_t n_meta = 0, meta_bytes = 0;
    for (int64_t i = 0; i < total && i < LISTED; i++)
        fth__text_add(&t, "\n%s %s, %s, taken at %s:%d", top[i].label,
                      fth_mem_format_size(top[i].got_bytes, size, sizeof size),
                      fth__how_names[top[i].how], fth__site_file(top[i].site), top[i].site.line);
    for (uint64_t i = 0; i < mem->blocks.n_slots; i++) {
        const fth__record *r = mem->blocks.slot[i].thing;
        if (!r || r->b.how != FTH_MEM_META) continue;
        meta_bytes += r->b.got_bytes;
        if (n_meta++ < LISTED)
            fth__text_add(&t, "\n%s %llu bytes, meta, taken at %s:%d", r->b.label,
                          (unsigned long long)r->b.got_bytes, fth__site_file(r->b.site),
                          r->b.site.line);
    }
    uint64_t heap_bytes;
    n_meta += fth__heap_leaks(mem, &t, &heap_bytes);
    meta_bytes += heap_bytes;
    if (mem->bad_frees)
        fth__text_add(&t, "\n%llu wrong releases of bookkeeping, the first at %s:%d",
                      (unsigned long long)mem->bad_frees, fth__site_file(mem->bad_free),
                      mem->bad_free.line);
    if (total == 0 && n_meta == 0 && mem->bad_frees == 0) return FTH_OK;
    const fth_status status = total + (int64_t)n_meta > 0 ? FTH_E_LEAK : FTH_E_MEM_UNKNOWN;
    return FTH_FAIL(err, status, "%lld blocks (%s) and %llu pieces of bookkeeping (%llu bytes)%s",
                    (long long)total, fth_mem_format_size(mem->used, size, sizeof size),
                    (unsigned long long)n_meta, (unsigned long long)meta_bytes, body);
}

fth_status fth__report_wrong_release(const fth_mem *mem, fth_site site, const void *block,
                                     fth_err *err)
{
    const uint64_t known = mem->n_released < FTH__RELEASED ? mem->n_released : FTH__RELEASED;
    for (uint64_t back = 1; back <= known; back++) { /* the latest first */
        const fth__released *r = &mem->released[(mem->n_released - back) % FTH__RELEASED];
        if (r->address != block) continue;
        return fth_err_set(err, site, FTH_E_MEM_TWICE,
                           "%s (%llu bytes)\ntaken at %s:%d\nreleased at %s:%d\nand again at %s:%d",
                           r->label, (unsigned long long)r->asked_bytes, fth__site_file(r->taken),
                           r->taken.line, fth__site_file(r->released), r->released.line,
                           fth__site_file(site), site.line);
    }
    if (fth__addresses_find(&mem->heap, block))
        return fth_err_set(err, site, FTH_E_MEM_UNKNOWN,
                           "%p, released at %s:%d, is bookkeeping and not a block", block,
                           fth__site_file(site), site.line);
    for (uint64_t i = 0; i < mem->blocks.n_slots; i++) {
        const fth__record *r = mem->blocks.slot[i].thing;
        if (!r) continue;
        const uintptr_t from = (uintptr_t)r->b.address, at = (uintptr_t)block;
        if (at <= from || at - from >= r->b.got_bytes) continue;
        return fth_err_set(err, site, FTH_E_MEM_UNKNOWN,
                           "%p, released at %s:%d, lies %llu bytes inside %s, taken at %s:%d",
                           block, fth__site_file(site), site.line, (unsigned long long)(at - from),
                           r->b.label, fth__site_file(r->b.site), r->b.site.line);
    }
    return fth_err_set(err, site, FTH_E_MEM_UNKNOWN,
                       "%p, released at %s:%d, is not a block of this memory", block,
                       fth__site_file(site), site.line);
}
