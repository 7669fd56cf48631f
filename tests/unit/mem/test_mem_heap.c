/* test_mem_heap.c - bookkeeping, failures on purpose, threads, and systems that say no. seconds: 2
 */
#include "testing/test.h"

#include "mem/heap.h"
#include "mem/inject.h"

#include <fathom/memory.h>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const uint64_t MiB = 1 << 20;

static fth_mem *make(uint64_t budget)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = budget;
    opt.arena_below = 64 << 10;
    opt.direct_above = 4 * MiB;
    fth_mem *mem;
    OK(fth_mem_create(&mem, &opt, NULL));
    return mem;
}

static uint64_t meta(const fth_mem *mem)
{
    fth_mem_stats s;
    fth_mem_get_stats(mem, &s);
    return s.meta_bytes;
}

TEST(blocks_are_zeroed_aligned_and_counted)
{
    fth_mem *mem = make(MiB);
    char *p[100];
    for (int round = 0; round < 2; round++) { /* the second round gets used memory */
        for (int i = 0; i < 100; i++) {
            const uint64_t before = meta(mem);
            p[i] = fth__heap_alloc(mem, (uint64_t)i * 10);
            IS_TRUE(p[i] != NULL);
            IS_TRUE(meta(mem) >= before + (uint64_t)i * 10);
            EQ_U64((uintptr_t)p[i] % 16, 0);
            for (int k = 0; k < i * 10; k++) EQ_I64(p[i][k], 0);
            memset(p[i], 255, (size_t)i * 10);
        }
        for (int i = 99; i >= 0; i--) fth__heap_free(mem, p[i]);
    }
    fth__heap_free(mem, NULL);
    fth__heap_free(NULL, p);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(sizes_that_cannot_be)
{
    fth_mem *mem = make(MiB);
    void *p = &p;
    IS_TRUE(fth__heap_alloc(mem, UINT64_MAX) == NULL);
    IS_TRUE(fth__heap_alloc(mem, UINT64_MAX / 2) == NULL);
    IS_TRUE(fth__heap_alloc(NULL, 1) == NULL);
    IS(fth__heap_take(mem, -1, 8, &p, NULL), FTH_E_SIZE_OVERFLOW);
    IS_TRUE(p == NULL);
    IS(fth__heap_take(mem, INT64_MAX, 8, &p, NULL), FTH_E_SIZE_OVERFLOW);
    IS(fth__heap_take(mem, INT64_MAX, 1, &p, NULL), FTH_E_NOMEM);
    OK(fth__heap_take(mem, 3, 8, &p, NULL));
    fth__heap_free(mem, p);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(strings_are_copied)
{
    fth_mem *mem = make(MiB);
    char *a = fth__heap_strdup(mem, "hello"), *b = fth__heap_strndup(mem, "hello", 3);
    EQ_STR(a, "hello");
    EQ_STR(b, "hel");
    IS_TRUE(fth__heap_strdup(mem, NULL) == NULL);
    fth__heap_free(mem, a);
    fth__heap_free(mem, b);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(arrays_grow_and_keep_what_they_hold)
{
    fth_mem *mem = make(MiB);
    struct pair {
        int64_t a, b;
    } *items = NULL;
    int64_t cap = 0;
    for (int64_t n = 0; n < 1000; n++) {
        OK(fth__grow(mem, &items, &cap, n + 1, NULL));
        IS_TRUE(cap > n);
        EQ_I64(items[n].b, 0);
        items[n] = (struct pair){n, n + 1};
    }
    for (int64_t n = 0; n < 1000; n++) EQ_I64(items[n].a + items[n].b, 2 * n + 1);
    EQ_I64(cap, 1024);
    const struct pair *before = items;
    IS(fth__grow(mem, &items, &cap, INT64_MAX, NULL), FTH_E_SIZE_OVERFLOW);
    fth__mem_inject(mem, 1, 0);
    IS(fth__grow(mem, &items, &cap, 2000, NULL), FTH_E_NOMEM);
    EQ_PTR(items, before);
    EQ_I64(cap, 1024);
    fth__heap_free(mem, items);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(wrong_frees_change_nothing_and_are_reported)
{
    fth_mem *mem = make(MiB);
    char local[64];
    void *p = fth__heap_alloc(mem, 10), *block;
    OK(fth_mem_take(mem, FTH_MEM_ANY, 10, "data", &block, NULL));
    fth__heap_free(mem, p);
    fth__heap_free_(mem, (fth_site){"wrong.c", "f", 5}, p); /* twice */
    fth__heap_free(mem, local + 32);
    fth__heap_free(mem, block);
    OK(fth_mem_release(mem, block, NULL));
    fth_err err = {0};
    IS(fth_mem_destroy(mem, &err), FTH_E_MEM_UNKNOWN);
    HAS(err.text, "3 wrong releases of bookkeeping, the first at wrong.c:5");
}

/* A job that uses every origin; on failure it gives everything back. */
static fth_status job(fth_mem *mem, fth_err *err)
{
    void *p[8] = {0};
    char *note = NULL;
    int64_t *list = NULL, cap = 0;
    const fth_how hows[8] = {FTH_MEM_ARENA,  FTH_MEM_POOL, FTH_MEM_DIRECT, FTH_MEM_MAPPED,
                             FTH_MEM_PINNED, FTH_MEM_META, FTH_MEM_ANY,    FTH_MEM_POOL};
    fth_status status = FTH_OK;
    for (int i = 0; i < 8 && status == FTH_OK; i++)
        status = fth_mem_take(mem, hows[i], 5000, "job", &p[i], err);
    if (status == FTH_OK && !(note = fth__heap_strdup(mem, "note")))
        status = FTH_FAIL(err, FTH_E_NOMEM, "no note");
    for (int64_t n = 1; n < 100 && status == FTH_OK; n += 10)
        status = fth__grow(mem, &list, &cap, n, err);
    fth__heap_free(mem, list);
    fth__heap_free(mem, note);
    for (int i = 0; i < 8; i++) OK(fth_mem_release(mem, p[i], NULL));
    return status;
}

TEST(every_allocation_failure_is_survived)
{
    fth_mem *mem = make(MiB);
    OK(job(mem, NULL));
    const int64_t total = fth__mem_alloc_count(mem);
    IS_TRUE(total > 20);
    OK(fth_mem_destroy(mem, NULL));
    for (int64_t n = 1; n <= total; n++) {
        mem = make(MiB);
        fth__mem_inject(mem, n, 0);
        fth_err err = {0};
        IS(job(mem, &err), FTH_E_NOMEM);
        IS_TRUE(err.text[0] != '\0');
        OK(job(mem, NULL)); /* it failed once; the next time works */
        OK(fth_mem_destroy(mem, NULL));
    }
    mem = make(MiB);
    fth__mem_inject(mem, total + 1, 0);
    OK(job(mem, NULL));
    /* Caches that could be given up do not hide a failure on purpose. */
    fth__mem_inject(mem, 0, 0);
    OK(job(mem, NULL));
    const int64_t warm = fth__mem_alloc_count(mem);
    for (int64_t n = 1; n <= warm; n++) {
        fth__mem_inject(mem, n, 0);
        IS(job(mem, NULL), FTH_E_NOMEM);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(writes_are_counted_and_one_fails)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = MiB;
    opt.fail_write = 3;
    fth_mem *mem;
    OK(fth_mem_create(&mem, &opt, NULL));
    for (int i = 1; i < 10; i++) IS_TRUE(fth__mem_write_fails(mem) == (i == 3));
    EQ_I64(fth__mem_write_count(mem), 9);
    fth__mem_inject(mem, 0, 1);
    EQ_I64(fth__mem_write_count(mem), 0);
    IS_TRUE(fth__mem_write_fails(mem));
    IS_TRUE(!fth__mem_write_fails(mem));
    IS_TRUE(!fth__mem_write_fails(NULL));
    OK(fth_mem_destroy(mem, NULL));
}

/* Many threads on one memory: nothing lost, nothing shared, the budget kept. */
typedef struct worker {
    fth_mem *mem;
    uint64_t seed;
    int mistakes;
} worker;
static void *work(void *user)
{
    worker *w = user;
    t_random r = {w->seed};
    for (int i = 0; i < 500; i++) {
        const fth_how how = (fth_how)t_random_i64(&r, 0, 2);
        const uint64_t bytes = (uint64_t)t_random_i64(&r, 1, 20000);
        unsigned char *p;
        if (fth_mem_take(w->mem, how, bytes, "thread", (void **)&p, NULL) != FTH_OK) {
            w->mistakes++;
            continue;
        }
        memset(p, (int)w->seed, bytes);
        void *note = fth__heap_alloc(w->mem, 30);
        fth_mem_stats s;
        fth_mem_get_stats(w->mem, &s);
        w->mistakes += s.used_bytes + s.cached_bytes > s.budget_bytes;
        for (uint64_t k = 0; k < bytes; k++) w->mistakes += p[k] != (unsigned char)w->seed;
        fth__heap_free(w->mem, note);
        w->mistakes += fth_mem_release(w->mem, p, NULL) != FTH_OK;
    }
    return NULL;
}

TEST(threads_share_one_memory)
{
    enum { N = 6 };
    fth_mem *mem = make(200 << 10);
    pthread_t thread[N];
    worker w[N];
    for (int i = 0; i < N; i++) {
        w[i] = (worker){mem, (uint64_t)i + 1, 0};
        EQ_I64(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < N; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < N; i++) EQ_I64(w[i].mistakes, 0);
    OK(fth_mem_destroy(mem, NULL));
}

#if !SANITIZED /* a sanitizer needs the addresses itself, and makes locking do nothing */

/* Runs `body` in a process of its own, whose limits may then be changed. */
static void in_child(int (*body)(fth_mem *mem))
{
    fth_mem *mem = make(512 * MiB);
    fflush(NULL);
    const pid_t pid = fork();
    IS_TRUE(pid >= 0);
    if (pid == 0) _exit(body(mem));
    int status = 0;
    IS_TRUE(waitpid(pid, &status, 0) == pid);
    OK(fth_mem_destroy(mem, NULL));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) SKIP("the limit could not be set");
    IS_TRUE(WIFEXITED(status));
    EQ_I64(WEXITSTATUS(status), 0);
}

static int locking_is_forbidden(fth_mem *mem)
{
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) return 77;
    if (getuid() == 0 && setuid(65534) != 0) return 77; /* root may always lock */
    void *p;
    fth_err err = {0};
    if (fth_mem_take(mem, FTH_MEM_PINNED, 8192, "copies", &p, &err) != FTH_E_NOMEM) return 1;
    if (!strstr(err.text, "copies") || !strstr(err.text, "could not be locked")) return 2;
    if (!strstr(err.hint, "ulimit -l")) return 3;
    return fth_mem_destroy(mem, NULL) == FTH_OK ? 0 : 4;
}

TEST(pages_that_cannot_be_locked_are_refused)
{
    in_child(locking_is_forbidden);
}

static int addresses_are_few(fth_mem *mem)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1) return 77;
    fclose(f);
    const rlim_t most = pages * 4096 + 256 * MiB;
    const struct rlimit some = {most, most};
    if (setrlimit(RLIMIT_AS, &some) != 0) return 77;
    void *p, *q, *cached;
    fth_err err = {0};
    if (fth_mem_take(mem, FTH_MEM_DIRECT, 400 * MiB, "too large", &p, &err) != FTH_E_NOMEM)
        return 1;
    if (!strstr(err.text, "too large wants 400.00 MiB (direct); the system refused to allocate it"))
        return 2;
    /* The range was to have a gigabyte; with less it works as well. */
    if (fth_mem_take(mem, FTH_MEM_ARENA, 5000, "small", &p, NULL) != FTH_OK) return 3;
    /* Cached pages are given up before the system's no is passed on. */
    if (fth_mem_take(mem, FTH_MEM_POOL, 64 * MiB, "cached", &cached, NULL) != FTH_OK) return 4;
    if (fth_mem_release(mem, cached, NULL) != FTH_OK) return 5;
    if (fth_mem_take(mem, FTH_MEM_DIRECT, 80 * MiB, "needs it", &q, NULL) != FTH_OK) return 6;
    fth_mem_stats s;
    fth_mem_get_stats(mem, &s);
    if (s.trims != 1 || s.cached_bytes != 0 || s.refusals != 1) return 7;
    if (fth_mem_release(mem, p, NULL) != FTH_OK || fth_mem_release(mem, q, NULL) != FTH_OK)
        return 8;
    return fth_mem_destroy(mem, NULL) == FTH_OK ? 0 : 9;
}

TEST(a_system_without_room_is_survived)
{
    in_child(addresses_are_few);
}

static int no_file_can_be_opened(fth_mem *mem)
{
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 77;
    char *p;
    if (fth_mem_take(mem, FTH_MEM_MAPPED, 20 * MiB, "range", (void **)&p, NULL) != FTH_OK) return 1;
    if (fth_mem_touched(p, 20 * MiB) != 0) return 2;
    for (int i = 0; i < 10; i++) p[i * 500 * 4096] = 1;
    if (fth_mem_touched(p, 20 * MiB) != 10 * 4096) return 3;
    if (fth_mem_touched(p + 4000, 200) != 96) return 4;
    if (fth__mem_process_bytes() != 0 || fth__mem_process_peak() != 0) return 5;
    if (fth__mem_process_peak_reset() || fth_mem_free_now() != 0) return 6;
    fth_mem *other = NULL;
    if (fth_mem_create(&other, NULL, NULL) != FTH_E_NOMEM || other) return 7;
    if (fth_mem_release(mem, p, NULL) != FTH_OK) return 8;
    return fth_mem_destroy(mem, NULL) == FTH_OK ? 0 : 9;
}

/* Pages are then counted another way; what only files tell is said to be unknown. */
TEST(touched_pages_are_counted_without_files)
{
    in_child(no_file_can_be_opened);
}

#endif

TEST_MAIN()
