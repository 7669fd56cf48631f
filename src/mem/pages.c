/* pages.c - whole pages from the system, and how many of them are resident. */
#include "base/assert.h"
#include "base/bits.h"
#include "base/checked.h"
#include "mem/state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Addresses to leave out behind a block of so many bytes. Processors that look a line up by a hash
 * of its address (AMD's, by bits 12 to 27) take two for one that are a multiple of 256 MiB apart: a
 * program over two arrays of that size ran at 13.6 GB/s, and at 23.5 with anything between them. */
static uint64_t gap_behind(uint64_t bytes)
{
    enum { ALIKE = 256 << 20 };
    uint64_t whole = 0;
    return fth__round_up_u64(bytes, FTH__HUGE, &whole) && whole % ALIKE == 0 ? FTH__HUGE : 0;
}

void *fth__pages_map(uint64_t bytes, bool huge)
{
    if (!huge || bytes < FTH__HUGE) return map(bytes);
    const uint64_t gap = gap_behind(bytes), spare = gap + FTH__HUGE;
    char *p = gap > 0 ? NULL : map(bytes);
    if (gap > 0 || (p && !fth__is_aligned(p, FTH__HUGE))) {
        /* Map more, keep the aligned middle: only whole huge pages can be used. */
        if (p) munmap(p, bytes);
        p = map(bytes + spare);
        if (!p) return map(bytes);
        const uint64_t skip = (FTH__HUGE - ((uintptr_t)p & (FTH__HUGE - 1))) & (FTH__HUGE - 1);
        if (skip) munmap(p, skip);
        munmap(p + skip + bytes, spare - skip);
        p += skip;
    }
    if (!p) return NULL;
    FTH_ASSERT(fth__is_aligned(p, FTH__HUGE));
    (void)madvise(p, bytes, MADV_HUGEPAGE); /* a wish; small pages serve too */
    return p;
}

bool fth__pages_unmap(void *pages, uint64_t bytes)
{
    return !pages || munmap(pages, bytes) == 0;
}

enum { BATCH = 2048 }; /* pages asked about at once: 16 KiB on the stack, 8 MiB of memory */

/* How many bytes of page number `page` lie in [from, to). */
static uint64_t inside(uint64_t page, uint64_t from, uint64_t to)
{
    const uint64_t a = fth__max_u64(page * FTH__PAGE, from);
    const uint64_t b = fth__min_u64((page + 1) * FTH__PAGE, to);
    FTH_ASSERT(a < b);
    return b - a;
}

/* /proc/self/pagemap: 8 bytes per page, bit 63 says resident. False when it cannot be read. */
static bool ask_pagemap(uint64_t from, uint64_t to, uint64_t *resident)
{
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    uint64_t entry[BATCH], sum = 0;
    const uint64_t end = (to + FTH__PAGE - 1) / FTH__PAGE;
    bool ok = true;
    for (uint64_t page = from / FTH__PAGE; ok && page < end;) {
        const uint64_t want = fth__min_u64(BATCH, end - page) * sizeof *entry;
        const ssize_t got = pread(fd, entry, want, (off_t)(page * sizeof *entry));
        ok = got > 0 && got % (ssize_t)sizeof *entry == 0;
        const uint64_t n = ok ? (uint64_t)got / sizeof *entry : 0;
        for (uint64_t i = 0; i < n; i++)
            if (entry[i] >> 63) sum += inside(page + i, from, to);
        page += n;
    }
    close(fd);
    if (ok) *resident = sum;
    return ok;
}

static bool ask_mincore(const void *block, uint64_t from, uint64_t to, uint64_t *resident)
{
    unsigned char present[BATCH];
    uint64_t sum = 0;
    const uint64_t start = from / FTH__PAGE, end = (to + FTH__PAGE - 1) / FTH__PAGE;
    for (uint64_t page = start; page < end; page += BATCH) {
        const uint64_t n = fth__min_u64(BATCH, end - page);
        const uint64_t back = from % FTH__PAGE; /* from the block down to its page */
        char *address = (char *)((uintptr_t)block - back + (page - start) * FTH__PAGE);
        if (mincore(address, n * FTH__PAGE, present) != 0) return false;
        for (uint64_t i = 0; i < n; i++)
            if (present[i] & 1) sum += inside(page + i, from, to);
    }
    *resident = sum;
    return true;
}

uint64_t fth_mem_touched(const void *block, uint64_t bytes)
{
    const uint64_t from = (uint64_t)(uintptr_t)block;
    uint64_t to, resident = 0;
    if (!block || bytes == 0 || !fth__add_u64(from, bytes, &to)) return 0;
    if (to > UINT64_MAX - FTH__PAGE) return 0;
    if (ask_pagemap(from, to, &resident)) return resident;
    return ask_mincore(block, from, to, &resident) ? resident : 0;
}
