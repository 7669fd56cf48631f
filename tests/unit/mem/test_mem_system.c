/* test_mem_system.c - a ledger over memory of a device, played by the host's. seconds: 2
 *
 * The device here counts what it has given to the byte, page by page, and can say no to any call:
 * what the ledger believes is compared with what the device knows.
 */
#include "testing/test.h"

#include "mem/inject.h"
#include "mem/system.h"

#include <fathom/memory.h>

#include <sys/mman.h>

enum { PAGE = 2 << 20, MOST_PAGES = 1024 };
static const uint64_t MiB = 1 << 20;

typedef struct device {
    uint64_t total;  /* what it has; more is refused */
    uint64_t given;  /* pages behind the range, and mapped blocks */
    uint64_t kept;   /* of unmapped POOL blocks: with the driver until trimmed */
    int64_t n_calls; /* of reserve, commit and map: those that may say no */
    int64_t fail;    /* the n-th of them does; 0 never */
    int n_commits, n_decommits, n_maps, n_unmaps, n_trims, n_wrong, n_ranges, n_blocks;
    uint64_t range_bytes, most_range;
    char *base;
    bool backed[MOST_PAGES];
    bool keeps, refuses_decommit;
} device;

static bool says_no(device *d)
{
    return ++d->n_calls == d->fail;
}

static bool has_room(device *d, uint64_t bytes)
{
    return d->given + d->kept + bytes <= d->total;
}

static char *reserve(void *self, uint64_t *bytes)
{
    device *d = self;
    if (says_no(d)) return NULL;
    if (d->most_range && *bytes > d->most_range) *bytes = d->most_range;
    if (*bytes > (uint64_t)MOST_PAGES * PAGE) *bytes = (uint64_t)MOST_PAGES * PAGE;
    void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    d->base = p;
    d->range_bytes = *bytes;
    d->n_ranges++;
    return p;
}

static void unreserve(void *self, char *base, uint64_t bytes)
{
    device *d = self;
    if (base != d->base || bytes != d->range_bytes) d->n_wrong++;
    for (int i = 0; i < MOST_PAGES; i++)
        if (d->backed[i] && !d->refuses_decommit) d->n_wrong++; /* memory would be lost */
    munmap(base, bytes);
    d->base = NULL;
    d->n_ranges--;
}

/* Whole pages inside the range, each of them as it should be before the call. */
static bool check_pages(device *d, const char *base, uint64_t bytes, bool backed)
{
    const uint64_t at = (uint64_t)(base - d->base);
    bool ok = at % PAGE == 0 && bytes % PAGE == 0 && bytes > 0 && at + bytes <= d->range_bytes;
    for (uint64_t i = 0; ok && i < bytes / PAGE; i++) ok = d->backed[at / PAGE + i] == backed;
    d->n_wrong += !ok;
    return ok;
}

static void set_pages(device *d, const char *base, uint64_t bytes, bool backed)
{
    const uint64_t at = (uint64_t)(base - d->base);
    for (uint64_t i = 0; i < bytes / PAGE; i++) d->backed[at / PAGE + i] = backed;
}

static bool commit(void *self, char *base, uint64_t bytes)
{
    device *d = self;
    d->n_commits++;
    if (says_no(d) || !check_pages(d, base, bytes, false) || !has_room(d, bytes)) return false;
    set_pages(d, base, bytes, true);
    d->given += bytes;
    return true;
}

static bool decommit(void *self, char *base, uint64_t bytes)
{
    device *d = self;
    d->n_decommits++;
    if (d->refuses_decommit || !check_pages(d, base, bytes, true)) return false;
    set_pages(d, base, bytes, false);
    d->given -= bytes;
    return true;
}

static void *map(void *self, fth_how how, uint64_t bytes)
{
    device *d = self;
    d->n_maps++;
    if (how != FTH_MEM_POOL && how != FTH_MEM_DIRECT) d->n_wrong++;
    if (says_no(d) || !has_room(d, bytes)) return NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) return NULL;
    d->given += bytes;
    d->n_blocks++;
    return p;
}

static bool unmap(void *self, fth_how how, void *block, uint64_t bytes)
{
    device *d = self;
    d->n_unmaps++;
    d->n_blocks--;
    d->given -= bytes;
    if (d->keeps && how == FTH_MEM_POOL) d->kept += bytes;
    return munmap(block, bytes) == 0;
}

static uint64_t trim(void *self)
{
    device *d = self;
    const uint64_t kept = d->kept;
    d->n_trims++;
    d->kept = 0;
    return kept;
}

static uint64_t free_now(void *self)
{
    const device *d = self;
    return d->total - d->given - d->kept;
}

static fth_mem_system system_of(device *d)
{
    return (fth_mem_system){
        .self = d,
        .device = 3,
        .page = PAGE,
        .reserve = reserve,
        .unreserve = unreserve,
        .commit = commit,
        .decommit = decommit,
        .map = map,
        .unmap = unmap,
        .trim = trim,
        .free_now = free_now,
    };
}

static fth_mem *make_with(fth_mem_system system, uint64_t budget)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = budget;
    fth_mem *mem;
    OK(fth_mem_create_on(&mem, &opt, &system, NULL));
    return mem;
}

static fth_mem *make(device *d, uint64_t budget)
{
    return make_with(system_of(d), budget);
}

static fth_mem_stats stats(const fth_mem *mem)
{
    fth_mem_stats s;
    fth_mem_get_stats(mem, &s);
    return s;
}

static void *take(fth_mem *mem, uint64_t bytes)
{
    void *p;
    fth_err err = {0};
    OKE(fth_mem_take(mem, FTH_MEM_ANY, bytes, "block", &p, &err), &err);
    return p;
}

static void destroy_clean(fth_mem *mem, const device *d)
{
    fth_err err = {0};
    OKE(fth_mem_destroy(mem, &err), &err);
    EQ_U64(d->given, 0);
    EQ_I64(d->n_ranges, 0);
    EQ_I64(d->n_wrong, 0);
    EQ_I64(d->n_blocks, 0);
}

TEST(size_chooses_the_class_and_blocks_say_the_device)
{
    device d = {.total = (uint64_t)8 << 30};
    fth_mem *mem = make(&d, (uint64_t)4 << 30);
    const struct {
        uint64_t bytes;
        fth_how how;
        uint64_t got;
    } want[] = {
        {0, FTH_MEM_ARENA, 64},
        {65, FTH_MEM_ARENA, 128},
        {(100 << 20) - 1, FTH_MEM_ARENA, 100 << 20},
        {100 << 20, FTH_MEM_POOL, 100 << 20},
        {(100 << 20) + 1, FTH_MEM_POOL, 102 << 20},
        {((uint64_t)1 << 30) - 1, FTH_MEM_POOL, (uint64_t)1 << 30},
        {((uint64_t)1 << 30) + 5, FTH_MEM_DIRECT, ((uint64_t)1 << 30) + PAGE},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        void *p = take(mem, want[i].bytes);
        fth_mem_block b;
        IS_TRUE(fth_mem_find(mem, p, &b));
        EQ_I64(b.how, want[i].how);
        EQ_U64(b.got_bytes, want[i].got);
        EQ_U64(b.got_bytes, fth__mem_cost(mem, FTH_MEM_ANY, want[i].bytes));
        EQ_I64(b.device, 3);
        OK(fth_mem_release(mem, p, NULL));
    }
    destroy_clean(mem, &d);
}

TEST(pages_are_backed_exactly_when_blocks_need_them)
{
    device d = {.total = 64 * MiB};
    fth_mem *mem = make(&d, 32 * MiB);
    void *a = take(mem, MiB); /* [0, 1) MiB: the first page */
    EQ_U64(d.given, PAGE);
    void *b = take(mem, MiB / 2); /* [1, 1.5): the same */
    EQ_U64(d.given, PAGE);
    EQ_I64(d.n_commits, 1);
    void *c = take(mem, 5 * MiB); /* [1.5, 6.5): three pages more, in one call */
    EQ_U64(d.given, 4 * (uint64_t)PAGE);
    EQ_I64(d.n_commits, 2);
    EQ_U64(stats(mem).cached_bytes, 0);
    OK(fth_mem_release(mem, c, NULL)); /* the first page still holds b */
    EQ_U64(stats(mem).cached_bytes, 3 * (uint64_t)PAGE);
    EQ_U64(d.given, 4 * (uint64_t)PAGE);
    c = take(mem, 3 * MiB); /* [1.5, 4.5): cached pages serve it */
    EQ_I64(d.n_commits, 2);
    EQ_U64(stats(mem).cached_bytes, PAGE);
    EQ_U64(fth_mem_trim(mem), PAGE);
    EQ_U64(d.given, 3 * (uint64_t)PAGE);
    OK(fth_mem_release(mem, a, NULL));
    EQ_U64(fth_mem_trim(mem), 0); /* b and c hold every page */
    OK(fth_mem_release(mem, b, NULL));
    OK(fth_mem_release(mem, c, NULL));
    EQ_U64(stats(mem).cached_bytes, 3 * (uint64_t)PAGE);
    EQ_U64(fth_mem_trim(mem), 3 * (uint64_t)PAGE);
    EQ_U64(d.given, 0);
    EQ_U64(stats(mem).cached_bytes, 0);
    destroy_clean(mem, &d);
}

TEST(a_failed_commit_leaves_nothing)
{
    device d = {.total = 64 * MiB};
    fth_mem *mem = make(&d, 32 * MiB);
    void *a = take(mem, 5 * MiB), *b = take(mem, MiB); /* [0, 5) and [5, 6) */
    OK(fth_mem_release(mem, a, NULL));
    (void)fth_mem_trim(mem); /* pages 0 and 1 go; 2 holds b */
    EQ_U64(d.given, PAGE);
    d.total = d.given; /* it has no more */
    void *p = &d;
    fth_err err = {0};
    IS(fth_mem_take(mem, FTH_MEM_ARENA, 9 * MiB, "wide", &p, &err), FTH_E_NOMEM);
    EQ_PTR(p, NULL);
    HAS(err.text, "wide wants 9.00 MiB (arena); the device refused to allocate it");
    HAS(err.text, "largest  block 1.00 MiB");
    EQ_U64(d.given, PAGE);
    EQ_U64(stats(mem).used_bytes, MiB);
    EQ_U64(stats(mem).cached_bytes, 0);
    EQ_U64(stats(mem).refusals, 1);
    d.total = 64 * MiB;
    a = take(mem, 5 * MiB); /* the addresses are whole again */
    OK(fth_mem_release(mem, a, NULL));
    OK(fth_mem_release(mem, b, NULL));
    destroy_clean(mem, &d);
}

TEST(a_half_backed_block_is_cached_and_trimmed)
{
    device d = {.total = 64 * MiB};
    fth_mem *mem = make(&d, 32 * MiB);
    void *a = take(mem, 2 * MiB), *b = take(mem, 2 * MiB), *c = take(mem, 2 * MiB);
    OK(fth_mem_release(mem, a, NULL));
    (void)fth_mem_trim(mem); /* hole at page 0 */
    OK(fth_mem_release(mem, b, NULL));
    OK(fth_mem_release(mem, c, NULL));
    /* Pages 1 and 2 are backed; [0, 10) wants 0 in one call and 3, 4 in another. */
    d.fail = d.n_calls + 2;
    a = take(mem, 10 * MiB); /* trimmed, and tried again as a whole */
    EQ_I64(d.n_wrong, 0);
    EQ_U64(d.given, 5 * (uint64_t)PAGE);
    EQ_U64(stats(mem).cached_bytes, 0);
    OK(fth_mem_release(mem, a, NULL));
    destroy_clean(mem, &d);
}

TEST(cached_blocks_serve_their_own_size_alone)
{
    device d = {.total = (uint64_t)4 << 30};
    fth_mem *mem = make(&d, (uint64_t)2 << 30);
    void *a = take(mem, 200 * MiB);
    OK(fth_mem_release(mem, a, NULL));
    EQ_U64(stats(mem).cached_bytes, 200 * MiB);
    void *b = take(mem, 200 * MiB - 5); /* costs the same */
    EQ_PTR(a, b);
    EQ_I64(d.n_maps, 1);
    OK(fth_mem_release(mem, b, NULL));
    b = take(mem, 198 * MiB);
    EQ_I64(d.n_maps, 2);
    EQ_U64(stats(mem).used_bytes, 198 * MiB);
    EQ_U64(stats(mem).cached_bytes, 200 * MiB);
    OK(fth_mem_release(mem, b, NULL));
    b = take(mem, (uint64_t)1 << 30); /* direct blocks are never kept */
    OK(fth_mem_release(mem, b, NULL));
    EQ_I64(d.n_unmaps, 1);
    destroy_clean(mem, &d);
}

TEST(caches_make_room_within_the_budget)
{
    device d = {.total = (uint64_t)4 << 30, .keeps = true};
    fth_mem *mem = make(&d, 600 * MiB);
    void *a = take(mem, 200 * MiB), *b = take(mem, 90 * MiB);
    OK(fth_mem_release(mem, a, NULL));
    OK(fth_mem_release(mem, b, NULL));
    EQ_U64(stats(mem).cached_bytes, 290 * MiB);
    a = take(mem, 500 * MiB); /* the pool's block must go, from the driver too; the pages fit */
    EQ_U64(d.given, 590 * MiB);
    EQ_U64(d.kept, 0);
    EQ_U64(stats(mem).cached_bytes, 90 * MiB);
    EQ_U64(stats(mem).trims, 1);
    b = take(mem, 90 * MiB);
    EQ_U64(d.given, 590 * MiB);
    OK(fth_mem_release(mem, b, NULL)); /* cached again, and more than fits beside the next */
    OK(fth_mem_release(mem, a, NULL));
    EQ_U64(d.given, 590 * MiB);
    a = take(mem, 550 * MiB);
    EQ_U64(d.given, 550 * MiB);
    EQ_U64(d.kept, 0);
    OK(fth_mem_release(mem, a, NULL));
    destroy_clean(mem, &d);
}

TEST(a_refused_block_is_tried_again_with_room)
{
    /* Another program took most of the device: caches within the budget are in the way. */
    device d = {.total = 300 * MiB, .keeps = true};
    fth_mem *mem = make(&d, (uint64_t)1 << 30);
    void *a = take(mem, 200 * MiB);
    OK(fth_mem_release(mem, a, NULL));
    a = take(mem, 250 * MiB);
    EQ_I64(d.n_maps, 3); /* refused, and given */
    EQ_U64(d.given, 250 * MiB);
    IS_TRUE(d.n_trims > 0);
    void *p;
    fth_err err = {0};
    IS(fth_mem_take(mem, FTH_MEM_ANY, 120 * MiB, "beside", &p, &err), FTH_E_NOMEM);
    HAS(err.text, "beside wants 120.00 MiB (pool); the device refused to allocate it");
    HAS(err.text, "largest  block 250.00 MiB (tests/unit/mem/test_mem_system.c:");
    OK(fth_mem_release(mem, a, NULL));
    destroy_clean(mem, &d);
}

TEST(what_only_the_driver_keeps_is_handed_back_too)
{
    device d = {.total = 300 * MiB, .kept = 250 * MiB};
    fth_mem *mem = make(&d, 300 * MiB);
    void *a = take(mem, 200 * MiB);
    EQ_U64(d.kept, 0);
    OK(fth_mem_release(mem, a, NULL));
    destroy_clean(mem, &d);
}

TEST(the_budget_is_refused_before_the_device_is_asked)
{
    device d = {.total = (uint64_t)4 << 30};
    fth_mem *mem = make(&d, 256 * MiB);
    void *a = take(mem, 200 * MiB), *p;
    const int64_t calls = d.n_calls;
    fth_err err = {0};
    IS(fth_mem_take(mem, FTH_MEM_ANY, 57 * MiB, "more", &p, &err), FTH_E_BUDGET);
    EQ_PTR(p, NULL);
    EQ_I64(d.n_calls, calls);
    HAS(err.text, "more wants 57.00 MiB (59768832 bytes); 200.00 MiB of 256.00 MiB are held");
    HAS(err.text, "largest  block 200.00 MiB");
    OK(fth_mem_release(mem, a, NULL));
    destroy_clean(mem, &d);
}

TEST(the_budget_is_most_of_what_is_free)
{
    device d = {.total = 1000 * MiB, .kept = 200 * MiB};
    fth_mem *mem = make(&d, 0);
    EQ_U64(stats(mem).budget_bytes, 800 * MiB / 10 * 9);
    destroy_clean(mem, &d);
    d.kept = d.total;
    const fth_mem_system s = system_of(&d);
    fth_err err = {0};
    IS(fth_mem_create_on(&mem, NULL, &s, &err), FTH_E_NOMEM);
    HAS(err.text, "no memory of the device is free");
}

TEST(wrong_releases_name_both_lines)
{
    device d = {.total = 64 * MiB};
    fth_mem *mem = make(&d, 32 * MiB);
    void *a = take(mem, MiB);
    OK(fth_mem_release(mem, a, NULL));
    fth_err err = {0};
    IS(fth_mem_release(mem, a, &err), FTH_E_MEM_TWICE);
    HAS(err.text, "released at tests/unit/mem/test_mem_system.c:");
    a = take(mem, MiB);
    IS(fth_mem_release(mem, (char *)a + 64, &err), FTH_E_MEM_UNKNOWN);
    OK(fth_mem_release(mem, a, NULL));
    destroy_clean(mem, &d);
}

TEST(blocks_still_held_are_listed_and_given_back)
{
    device d = {.total = (uint64_t)4 << 30};
    fth_mem *mem = make(&d, (uint64_t)2 << 30);
    (void)take(mem, MiB);
    (void)take(mem, 300 * MiB);
    fth_err err = {0};
    IS(fth_mem_destroy(mem, &err), FTH_E_LEAK);
    HAS(err.text, "2 blocks (301.00 MiB)");
    HAS(err.text, "block 300.00 MiB, pool, taken at tests/unit/mem/test_mem_system.c:");
    EQ_U64(d.given, 0);
    EQ_I64(d.n_wrong, 0);
    EQ_I64(d.n_ranges, 0);
}

TEST(without_a_range_small_blocks_are_mapped)
{
    device d = {.total = 64 * MiB};
    fth_mem_system s = system_of(&d);
    s.reserve = NULL;
    s.trim = NULL;
    fth_mem *mem = make_with(s, 32 * MiB);
    const struct {
        uint64_t bytes, got;
    } want[] = {{1, 4096}, {MiB, MiB}, {MiB + 1, PAGE}, {3 * MiB, 4 << 20}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        void *p;
        OK(fth_mem_take(mem, i % 2 ? FTH_MEM_ARENA : FTH_MEM_ANY, want[i].bytes, "b", &p, NULL));
        fth_mem_block b;
        IS_TRUE(fth_mem_find(mem, p, &b));
        EQ_I64(b.how, FTH_MEM_DIRECT);
        EQ_U64(b.got_bytes, want[i].got);
        EQ_U64(b.got_bytes, fth__mem_cost(mem, FTH_MEM_ARENA, want[i].bytes));
        EQ_U64(d.given, want[i].got);
        OK(fth_mem_release(mem, p, NULL));
        EQ_U64(d.given, 0);
    }
    EQ_I64(d.n_commits, 0);
    destroy_clean(mem, &d);
}

TEST(a_range_that_is_too_short_is_gone_around)
{
    device d = {.total = 256 * MiB, .most_range = 4 * MiB};
    fth_mem *mem = make(&d, 128 * MiB);
    void *a = take(mem, 3 * MiB), *b = take(mem, 3 * MiB);
    fth_mem_block block;
    IS_TRUE(fth_mem_find(mem, b, &block));
    EQ_I64(block.how, FTH_MEM_DIRECT);
    OK(fth_mem_release(mem, a, NULL));
    OK(fth_mem_release(mem, b, NULL));
    destroy_clean(mem, &d);
}

TEST(pages_that_cannot_be_taken_away_stay_cached)
{
    device d = {.total = 64 * MiB};
    fth_mem *mem = make(&d, 32 * MiB);
    OK(fth_mem_release(mem, take(mem, 3 * MiB), NULL));
    d.refuses_decommit = true;
    EQ_U64(fth_mem_trim(mem), 0);
    EQ_U64(stats(mem).cached_bytes, 2 * (uint64_t)PAGE);
    d.refuses_decommit = false;
    EQ_U64(fth_mem_trim(mem), 2 * (uint64_t)PAGE);
    destroy_clean(mem, &d);
}

TEST(memory_of_the_host_is_not_taken_here)
{
    device d = {.total = 64 * MiB};
    fth_mem *mem = make(&d, 32 * MiB);
    void *p;
    fth_err err = {0};
    IS(fth_mem_take(mem, FTH_MEM_PINNED, 4096, "staging", &p, &err), FTH_E_USAGE);
    HAS(err.text, "a device has no pinned blocks; take staging of the host");
    IS(fth_mem_take(mem, FTH_MEM_MAPPED, 4096, NULL, &p, &err), FTH_E_USAGE);
    destroy_clean(mem, &d);

    fth_mem_system s = system_of(&d);
    s.map = NULL;
    IS(fth_mem_create_on(&mem, NULL, &s, &err), FTH_E_USAGE);
    s = system_of(&d);
    s.commit = NULL;
    IS(fth_mem_create_on(&mem, NULL, &s, &err), FTH_E_USAGE);
    s = system_of(&d);
    s.page = 1000;
    IS(fth_mem_create_on(&mem, NULL, &s, &err), FTH_E_USAGE);
    IS(fth_mem_create_on(&mem, NULL, NULL, &err), FTH_E_USAGE);
    IS(fth_mem_create_on(NULL, NULL, &s, &err), FTH_E_USAGE);
}

/* Blocks of every class come and go; the first failure ends it. */
static fth_status job(fth_mem *mem, fth_err *err)
{
    static const uint64_t sizes[] = {1, 3 << 20, 120 << 20, 70, 7 << 20, 200 << 20, 130 << 20};
    enum { N = sizeof sizes / sizeof sizes[0] };
    void *p[N] = {0};
    fth_status s = FTH_OK;
    for (int i = 0; i < N && s == FTH_OK; i++) {
        s = fth_mem_take(mem, FTH_MEM_ANY, sizes[i], "job", &p[i], err);
        if (i % 3 == 2 && s == FTH_OK) {
            OK(fth_mem_release(mem, p[i - 1], NULL));
            p[i - 1] = NULL;
            if (i == 5) (void)fth_mem_trim(mem);
        }
    }
    for (int i = 0; i < N; i++) OK(fth_mem_release(mem, p[i], NULL));
    return s;
}

TEST(every_request_may_fail)
{
    device d = {.total = (uint64_t)1 << 30};
    fth_mem *mem = make(&d, 460 * MiB);
    OK(job(mem, NULL));
    const int64_t n = fth__mem_alloc_count(mem);
    destroy_clean(mem, &d);
    IS_TRUE(n > 10);
    for (int64_t i = 1; i <= n; i++) {
        mem = make(&d, 460 * MiB);
        fth__mem_inject(mem, i, 0);
        IS(job(mem, NULL), FTH_E_NOMEM);
        EQ_U64(stats(mem).used_bytes, 0);
        OK(job(mem, NULL));
        destroy_clean(mem, &d);
    }
}

TEST(every_call_of_the_device_may_fail)
{
    device d = {.total = (uint64_t)1 << 30};
    fth_mem *mem = make(&d, 460 * MiB);
    OK(job(mem, NULL));
    destroy_clean(mem, &d);
    const int64_t n = d.n_calls;
    IS_TRUE(n > 5);
    int n_failed = 0;
    for (int64_t i = 1; i <= n; i++) {
        d.n_calls = 0;
        d.fail = i;
        mem = make(&d, 460 * MiB);
        n_failed += job(mem, NULL) != FTH_OK; /* with something cached it is tried again */
        EQ_U64(stats(mem).used_bytes, 0);
        OK(job(mem, NULL));
        destroy_clean(mem, &d);
    }
    IS_TRUE(n_failed > 0);
}

TEST(random_takes_agree_with_the_device)
{
    enum { LIVE = 24, STEPS = 4000 };
    device d = {.total = (uint64_t)1 << 30};
    fth_mem *mem = make(&d, 512 * MiB);
    t_random r = t_random_make(6);
    void *live[LIVE] = {0};
    for (int step = 0; step < STEPS; step++) {
        const int64_t i = t_random_i64(&r, 0, LIVE - 1);
        if (live[i]) {
            OK(fth_mem_release(mem, live[i], NULL));
            live[i] = NULL;
        } else {
            const uint64_t bytes = (uint64_t)1 << t_random_i64(&r, 0, 27);
            const fth_status s =
                fth_mem_take(mem, FTH_MEM_ANY, bytes + (uint64_t)step, "random", &live[i], NULL);
            if (s != FTH_OK) IS(s, FTH_E_BUDGET);
        }
        if (step % 500 == 499) (void)fth_mem_trim(mem);
        EQ_I64(d.n_wrong, 0);
        const fth_mem_stats s = stats(mem);
        /* Each page is full, cached, or shared by blocks that end or begin in it. */
        IS_TRUE(d.given >= s.used_bytes);
        IS_TRUE(d.given <= s.used_bytes + s.cached_bytes + (s.blocks + 1) * PAGE);
        IS_TRUE(s.used_bytes + s.cached_bytes <= s.budget_bytes);
    }
    for (int i = 0; i < LIVE; i++) OK(fth_mem_release(mem, live[i], NULL));
    destroy_clean(mem, &d);
}

TEST_MAIN()
