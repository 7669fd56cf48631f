/* test_cuda_memory.c - the ledger of a real card against what its driver counts. seconds: 10
 *
 * labels: gpu alone
 * Up to 2 GiB of the card are taken. Other programs that take or give back memory of the card at
 * the same time make it fail.
 */
#include "testing/test.h"

#include "mem/system.h"
#include "run/backend.h"

#include <fathom/memory.h>

#include <dlfcn.h>

static const uint64_t MiB = 1 << 20;
static const uint64_t slack = 4 << 20; /* between ledger and driver */

typedef struct card {
    const fth_backend *backend;
    void *library;
    fth_device *device;
    fth_mem_system system;
    fth_mem *mem;
    uint64_t free_bytes; /* at the start */
} card;

static card open_card(uint64_t budget)
{
    card c = {0};
    fth_err err = {0};
    if (fth__backend_load(NULL, &c.backend, &c.library, &err) != FTH_OK ||
        c.backend->device->open(&c.device, 0, &err) != FTH_OK)
        SKIP("no card: %.200s", err.text);
    c.backend->device->get_memory(c.device, &c.system);
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = budget;
    OKE(fth_mem_create_on(&c.mem, &opt, &c.system, &err), &err);
    c.free_bytes = c.system.free_now(c.system.self);
    return c;
}

static void close_card(card *c)
{
    fth_err err = {0};
    OKE(fth_mem_destroy(c->mem, &err), &err);
    c->backend->device->close(c->device);
    dlclose(c->library);
}

static fth_mem_stats stats(const fth_mem *mem)
{
    fth_mem_stats s;
    fth_mem_get_stats(mem, &s);
    return s;
}

/* What the driver says was taken since the start agrees with the ledger. */
static void check_count(const card *c, const char *when)
{
    const fth_mem_stats s = stats(c->mem);
    const uint64_t free_now = c->system.free_now(c->system.self);
    const uint64_t taken = c->free_bytes > free_now ? c->free_bytes - free_now : 0;
    const uint64_t ours = s.used_bytes + s.cached_bytes;
    printf("%s: ledger %.1f MiB, driver %.1f MiB\n", when, (double)ours / (double)MiB,
           (double)taken / (double)MiB);
    IS_TRUE(taken + slack >= ours);
    IS_TRUE(taken <= ours + slack);
}

static void *take(const card *c, fth_how how, uint64_t bytes)
{
    void *p;
    fth_err err = {0};
    OKE(fth_mem_take(c->mem, how, bytes, "block", &p, &err), &err);
    return p;
}

TEST(a_card_tells_of_itself)
{
    card c = open_card(64 * MiB);
    fth_device_info info = {0};
    c.backend->device->get_info(c.device, &info);
    c.backend->device->get_libraries(c.device, &info);
    printf("%s, %d.%d, driver %d, %.1f of %.1f GiB free, context %.1f MiB\n", info.name, info.major,
           info.minor, info.driver, (double)info.free_bytes / 0x1p30,
           (double)info.total_bytes / 0x1p30, (double)info.context_bytes / 0x1p20);
    printf("ranges %d, pool %d, %s, %s, %s\n", info.address_ranges, info.stream_pool, info.compiler,
           info.products, info.factors);
    IS_TRUE(info.name[0] && info.major > 0 && info.multiprocessors > 0);
    IS_TRUE(info.total_bytes >= info.free_bytes && info.free_bytes > 0);
    IS_TRUE(info.context_bytes < info.total_bytes / 2);
    IS_TRUE(info.compiler[0] && info.products[0] && info.factors[0]);
    close_card(&c);
}

TEST(the_driver_counts_what_the_ledger_does)
{
    card c = open_card((uint64_t)2 << 30);
    void *small[20];
    for (int i = 0; i < 20; i++) small[i] = take(&c, FTH_MEM_ANY, 1000 * (uint64_t)(i + 1));
    check_count(&c, "20 small blocks");
    void *a = take(&c, FTH_MEM_ANY, 99 * MiB);
    check_count(&c, "with 99 MiB of the range");
    void *b = take(&c, FTH_MEM_ANY, 101 * MiB + 5), *d = take(&c, FTH_MEM_ANY, 128 * MiB);
    check_count(&c, "with 101 and 128 MiB as of the pool");
    void *e = take(&c, FTH_MEM_ANY, 1100 * MiB);
    check_count(&c, "with 1100 MiB");
    fth_mem_block block;
    IS_TRUE(fth_mem_find(c.mem, e, &block));
    EQ_I64(block.device, 1);
    void *all[] = {a, b, d, e};
    for (int i = 0; i < 4; i++) OK(fth_mem_release(c.mem, all[i], NULL));
    check_count(&c, "released, some of it cached");
    (void)fth_mem_trim(c.mem);
    check_count(&c, "trimmed");
    for (int i = 0; i < 20; i++) OK(fth_mem_release(c.mem, small[i], NULL));
    (void)fth_mem_trim(c.mem);
    EQ_U64(stats(c.mem).cached_bytes, 0);
    check_count(&c, "empty");
    close_card(&c);
}

TEST(blocks_hold_what_is_put_there)
{
    enum { N = 24, STEPS = 200 };
    card c = open_card(512 * MiB);
    const fth_device_table *t = c.backend->device;
    struct {
        char *at;
        uint64_t bytes;
        int mark;
    } live[N] = {0};
    t_random r = t_random_make(9);
    static unsigned char seen[4096];
    fth_err err = {0};
    for (int step = 0; step < STEPS; step++) {
        const int64_t i = t_random_i64(&r, 0, N - 1);
        if (live[i].at) { /* both ends still hold the mark */
            for (int end = 0; end < 2; end++) {
                const uint64_t n = live[i].bytes < sizeof seen ? live[i].bytes : sizeof seen;
                const char *from = live[i].at + (end ? live[i].bytes - n : 0);
                OKE(t->copy(c.device, FTH_LANE_OUT, seen, from, n, &err), &err);
                OKE(t->drain(c.device, FTH_LANE_OUT, &err), &err);
                for (uint64_t k = 0; k < n; k++) EQ_I64(seen[k], live[i].mark);
            }
            OK(fth_mem_release(c.mem, live[i].at, NULL));
            live[i].at = NULL;
            if (step % 20 == 0) (void)fth_mem_trim(c.mem);
            continue;
        }
        const uint64_t bytes = ((uint64_t)1 << t_random_i64(&r, 4, 27)) + (uint64_t)step;
        void *p;
        if (fth_mem_take(c.mem, FTH_MEM_ANY, bytes, "marked", &p, NULL) != FTH_OK) continue;
        live[i].at = p;
        live[i].bytes = bytes;
        live[i].mark = step % 251;
        OKE(t->fill(c.device, FTH_LANE_COMPUTE, p, live[i].mark, bytes, &err), &err);
        OKE(t->drain(c.device, FTH_LANE_COMPUTE, &err), &err);
    }
    for (int i = 0; i < N; i++) OK(fth_mem_release(c.mem, live[i].at, NULL));
    check_count(&c, "after many blocks");
    close_card(&c);
}

TEST(more_than_the_card_has_is_refused_in_words)
{
    card c = open_card((uint64_t)1 << 50);
    void *p;
    fth_err err = {0};
    IS(fth_mem_take(c.mem, FTH_MEM_ANY, (uint64_t)1 << 45, "huge", &p, &err), FTH_E_NOMEM);
    HAS(err.text, "huge wants 32.00 TiB (direct); the device refused to allocate it");
    p = take(&c, FTH_MEM_ANY, 3 * MiB); /* and nothing is broken */
    OK(fth_mem_release(c.mem, p, NULL));
    close_card(&c);
}

TEST_MAIN()
