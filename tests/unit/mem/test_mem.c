/* test_mem.c - blocks of every origin: taken, refused, reused, released. seconds: 5
 *
 * Up to 3 GiB of addresses are taken, but few pages are touched: under 200 MiB.
 */
#include "testing/test.h"

#include "mem/heap.h"
#include "mem/inject.h"

#include <fathom/memory.h>

#include <sys/mman.h>

static const uint64_t MiB = 1 << 20;

static fth_mem *make(uint64_t budget, uint64_t arena_below, uint64_t direct_above)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = budget;
    opt.arena_below = arena_below;
    opt.direct_above = direct_above;
    fth_mem *mem;
    OK(fth_mem_create(&mem, &opt, NULL));
    return mem;
}

static fth_mem_stats stats(const fth_mem *mem)
{
    fth_mem_stats s;
    fth_mem_get_stats(mem, &s);
    return s;
}

static void destroy_clean(fth_mem *mem)
{
    const fth_mem_stats s = stats(mem);
    EQ_U64(s.used_bytes, 0);
    EQ_U64(s.asked_bytes, 0);
    EQ_U64(s.blocks, 0);
    EQ_U64(s.takes, s.releases);
    fth_err err = {0};
    OKE(fth_mem_destroy(mem, &err), &err);
}

TEST(size_chooses_the_class)
{
    fth_mem *mem = make(64 * MiB, 1 * MiB, 4 * MiB);
    const struct {
        uint64_t bytes;
        fth_how how;
        uint64_t got;
    } want[] = {
        {1, FTH_MEM_ARENA, 64},
        {65, FTH_MEM_ARENA, 128},
        {MiB - 1, FTH_MEM_ARENA, MiB},
        {MiB, FTH_MEM_POOL, MiB},
        {4 * MiB - 1, FTH_MEM_POOL, 4 * MiB},
        {4 * MiB, FTH_MEM_DIRECT, 4 * MiB},
        {4 * MiB + 1, FTH_MEM_DIRECT, 4 * MiB + 4096},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        void *p;
        fth_mem_block b;
        OK(fth_mem_take(mem, FTH_MEM_ANY, want[i].bytes, "x", &p, NULL));
        IS_TRUE(fth_mem_find(mem, p, &b));
        EQ_I64(b.how, want[i].how);
        EQ_U64(b.got_bytes, want[i].got);
        EQ_U64(b.got_bytes, fth__mem_cost(mem, FTH_MEM_ANY, want[i].bytes));
        EQ_U64(b.asked_bytes, want[i].bytes);
        EQ_U64((uintptr_t)p % 64, 0);
        memset(p, 1, want[i].bytes);
        EQ_U64(stats(mem).by_how[b.how], want[i].got);
        OK(fth_mem_release(mem, p, NULL));
        IS_TRUE(!fth_mem_find(mem, p, &b));
    }
    destroy_clean(mem);
}

TEST(a_record_tells_everything)
{
    fth_mem *mem = make(64 * MiB, MiB, 4 * MiB);
    void *p, *q;
    OK(fth_mem_take(mem, FTH_MEM_DIRECT, 100, "a label that is longer than thirty-one", &p, NULL));
    const int line = __LINE__ - 1;
    OK(fth_mem_take(mem, FTH_MEM_DIRECT, 100, NULL, &q, NULL));
    fth_mem_block b;
    IS_TRUE(fth_mem_find(mem, p, &b));
    EQ_STR(b.label, "a label that is longer than thi");
    EQ_I64(b.site.line, line);
    HAS(b.site.file, "test_mem.c");
    EQ_PTR(b.address, p);
    EQ_I64(b.device, 0);
    const uint64_t serial = b.serial;
    IS_TRUE(fth_mem_find(mem, q, &b));
    EQ_U64(b.serial, serial + 1);
    EQ_STR(b.label, "unnamed");
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_release(mem, q, NULL));
    destroy_clean(mem);
}

TEST(zero_bytes_are_unique_blocks)
{
    fth_mem *mem = make(64 * MiB, MiB, 4 * MiB);
    enum { N = 21 };
    void *p[N];
    const fth_how hows[] = {FTH_MEM_ARENA, FTH_MEM_POOL, FTH_MEM_DIRECT, FTH_MEM_MAPPED,
                            FTH_MEM_META,  FTH_MEM_ANY,  FTH_MEM_ARENA};
    for (int i = 0; i < N; i++) {
        OK(fth_mem_take(mem, hows[i % 7], 0, "none", &p[i], NULL));
        IS_TRUE(p[i] != NULL);
        for (int k = 0; k < i; k++) IS_TRUE(p[k] != p[i]);
    }
    EQ_U64(stats(mem).asked_bytes, 0);
    for (int i = 0; i < N; i++) OK(fth_mem_release(mem, p[i], NULL));
    destroy_clean(mem);
}

TEST(more_than_two_to_the_31_bytes)
{
    fth_mem *mem = make(UINT64_C(8) << 30, 100 * MiB, 1024 * MiB);
    const uint64_t bytes = (UINT64_C(3) << 30) + 5;
    const fth_how hows[] = {FTH_MEM_ANY, FTH_MEM_ARENA, FTH_MEM_POOL, FTH_MEM_MAPPED};
    for (int i = 0; i < 4; i++) {
        char *p;
        OK(fth_mem_take(mem, hows[i], bytes, "large", (void **)&p, NULL));
        p[0] = 1;
        p[(UINT64_C(1) << 31) + 1] = 2;
        p[bytes - 1] = 3;
        EQ_I64(p[0] + p[bytes - 1], 4);
        const uint64_t touched = fth_mem_touched(p, bytes);
        IS_TRUE(touched >= 3 * 4096 - 4095 && touched <= 6 * MiB); /* huge pages, at most */
        EQ_U64(stats(mem).used_bytes, fth__mem_cost(mem, hows[i], bytes));
        OK(fth_mem_release(mem, p, NULL));
    }
    destroy_clean(mem);
}

/* Processors that find lines by a hash of bits 12 to 27 take such addresses for the same. */
TEST(blocks_are_no_multiple_of_256_mib_apart)
{
    enum { N = 3 };
    fth_mem *mem = make(UINT64_C(4) << 30, 100 * MiB, 1024 * MiB);
    const uint64_t bytes[] = {256 * MiB, 512 * MiB, 256 * MiB - 4096};
    for (int k = 0; k < 3; k++) {
        void *p[N];
        for (int i = 0; i < N; i++)
            OK(fth_mem_take(mem, FTH_MEM_DIRECT, bytes[k], "large", &p[i], NULL));
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++)
                IS_TRUE(((uintptr_t)p[i] - (uintptr_t)p[j]) % (256 * MiB) != 0);
        for (int i = 0; i < N; i++) OK(fth_mem_release(mem, p[i], NULL));
    }
    destroy_clean(mem);
}

/* What the check allows can be taken, and what it refuses cannot, to the byte. */
TEST(room_for_later_is_checked_as_it_is_taken)
{
    fth_mem *mem = make(8 * MiB, 1 * MiB, 4 * MiB);
    fth_err err = {0};
    void *held, *few, *later;
    OK(fth_mem_take(mem, FTH_MEM_ANY, 3 * MiB + 1, "held", &held, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ANY, 100, "few", &few, NULL));
    const uint64_t left = 8 * MiB - stats(mem).used_bytes; /* the last pages are not whole */
    for (uint64_t bytes = left - 8200; bytes < left + 4200; bytes += 100) {
        const bool fits = fth_mem_check_room(mem, bytes, "drawing", NULL) == FTH_OK;
        IS_TRUE(fits == (fth_mem_take(mem, FTH_MEM_ANY, bytes, "later", &later, NULL) == FTH_OK));
        IS_TRUE(fits == (bytes <= left / 4096 * 4096));
        if (fits) OK(fth_mem_release(mem, later, NULL));
    }
    IS(fth_mem_check_room(mem, 6 * MiB, "drawing", &err), FTH_E_NO_FIT);
    HAS(err.text, "drawing needs 6.00 MiB; the budget has 5.00 MiB left");
    OK(fth_mem_release(mem, held, NULL));
    OK(fth_mem_release(mem, few, NULL));
    OK(fth_mem_check_room(mem, 6 * MiB, "drawing", NULL));
    destroy_clean(mem);
}

TEST(absurd_sizes_are_refused)
{
    fth_mem *mem = make(INT64_MAX, MiB, 4 * MiB);
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 63, (uint64_t)INT64_MAX + 1, INT64_MAX};
    for (int how = 0; how <= (int)FTH_MEM_ANY; how++)
        for (int i = 0; i < 4; i++) {
            if (how == FTH_MEM_FOREIGN) continue;
            void *p = &p;
            const fth_status s = fth_mem_take(mem, (fth_how)how, sizes[i], "absurd", &p, NULL);
            ONE_OF(s, FTH_E_BUDGET, FTH_E_NOMEM);
            IS_TRUE(p == NULL);
        }
    destroy_clean(mem);
}

TEST(wrong_arguments_are_refused)
{
    fth_mem *mem = make(64 * MiB, MiB, 4 * MiB);
    void *p;
    fth_err err = {0};
    IS(fth_mem_take(mem, FTH_MEM_FOREIGN, 1, "x", &p, &err), FTH_E_USAGE);
    HAS(err.text, "fth_mem_adopt");
    IS(fth_mem_take(mem, (fth_how)99, 1, "x", &p, NULL), FTH_E_USAGE);
    IS(fth_mem_take(mem, (fth_how)-1, 1, "x", &p, NULL), FTH_E_USAGE);
    IS(fth_mem_take(NULL, FTH_MEM_ANY, 1, "x", &p, NULL), FTH_E_USAGE);
    IS(fth_mem_take(mem, FTH_MEM_ANY, 1, "x", NULL, NULL), FTH_E_USAGE);
    IS(fth_mem_adopt(mem, NULL, 1, "x", NULL), FTH_E_USAGE);
    IS(fth_mem_create(NULL, NULL, NULL), FTH_E_USAGE);
    OK(fth_mem_release(mem, NULL, NULL));
    OK(fth_mem_release(NULL, NULL, NULL));
    IS(fth_mem_release(NULL, mem, NULL), FTH_E_USAGE);
    OK(fth_mem_destroy(NULL, NULL));
    EQ_U64(fth_mem_trim(NULL), 0);
    fth_mem_stats s;
    fth_mem_get_stats(NULL, &s);
    EQ_U64(s.budget_bytes, 0);
    destroy_clean(mem);
}

TEST(a_second_release_names_all_three_lines)
{
    const fth_how hows[] = {FTH_MEM_ARENA,  FTH_MEM_POOL,   FTH_MEM_DIRECT,
                            FTH_MEM_MAPPED, FTH_MEM_PINNED, FTH_MEM_META};
    fth_mem *mem = make(64 * MiB, MiB, 4 * MiB);
    for (int i = 0; i < 6; i++) {
        void *p;
        fth_err err = {0};
        OK(fth_mem_take_(mem, (fth_site){"take.c", "f", 11}, hows[i], 5000, "weights", &p, &err));
        OK(fth_mem_release_(mem, (fth_site){"first.c", "g", 22}, p, &err));
        const fth_mem_stats before = stats(mem);
        IS(fth_mem_release_(mem, (fth_site){"second.c", "h", 33}, p, &err), FTH_E_MEM_TWICE);
        EQ_STR(err.text, "weights (5000 bytes)\ntaken at take.c:11\nreleased at first.c:22\n"
                         "and again at second.c:33");
        const fth_mem_stats after = stats(mem);
        SAME_BYTES(&before, &after, sizeof before);
    }
    destroy_clean(mem);
}

TEST(unknown_pointers_are_refused_and_described)
{
    fth_mem *mem = make(64 * MiB, MiB, 4 * MiB), *other = make(64 * MiB, MiB, 4 * MiB);
    char local[64];
    void *p, *theirs;
    OK(fth_mem_take(mem, FTH_MEM_DIRECT, 10000, "inner", &p, NULL));
    OK(fth_mem_take(other, FTH_MEM_ARENA, 10000, "theirs", &theirs, NULL));
    fth_err err = {0};
    IS(fth_mem_release(mem, local, &err), FTH_E_MEM_UNKNOWN);
    HAS(err.text, "is not a block of this memory");
    HAS(err.text, "test_mem.c");
    fth_err_clear(&err);
    IS(fth_mem_release(mem, (char *)p + 64, &err), FTH_E_MEM_UNKNOWN);
    HAS(err.text, "64 bytes inside inner");
    IS(fth_mem_release(mem, theirs, NULL), FTH_E_MEM_UNKNOWN);
    void *note = fth__heap_alloc(mem, 10);
    fth_err_clear(&err);
    IS(fth_mem_release(mem, note, &err), FTH_E_MEM_UNKNOWN);
    HAS(err.text, "bookkeeping");
    fth__heap_free(mem, note);
    EQ_U64(stats(mem).blocks, 1);
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_release(other, theirs, NULL));
    destroy_clean(mem);
    destroy_clean(other);
}

TEST(releases_are_remembered_for_a_while)
{
    fth_mem *mem = make(64 * MiB, MiB, 4 * MiB);
    void *first, *p;
    OK(fth_mem_take(mem, FTH_MEM_META, 64, "first", &first, NULL));
    OK(fth_mem_release(mem, first, NULL));
    for (int i = 0; i < 511; i++) {
        OK(fth_mem_take(mem, FTH_MEM_ARENA, 64, "later", &p, NULL));
        OK(fth_mem_release(mem, p, NULL));
    }
    IS(fth_mem_release(mem, first, NULL), FTH_E_MEM_TWICE);
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 64, "later", &p, NULL));
    OK(fth_mem_release(mem, p, NULL));
    IS(fth_mem_release(mem, first, NULL), FTH_E_MEM_UNKNOWN);
    destroy_clean(mem);
}

TEST(the_budget_refusal_lists_who_holds_what)
{
    fth_mem *mem = make(10 * MiB, MiB, 4 * MiB);
    void *p[12], *q = &q;
    for (int i = 0; i < 10; i++) {
        char label[32];
        snprintf(label, sizeof label, "block%d", i);
        OK(fth_mem_take_(mem, (fth_site){"hold.c", "f", i}, FTH_MEM_ANY, (uint64_t)(i + 1) * 65536,
                         label, &p[i], NULL));
    }
    fth_err err = {0};
    IS(fth_mem_take(mem, FTH_MEM_ANY, 7 * MiB, "toomuch", &q, &err), FTH_E_BUDGET);
    IS_TRUE(q == NULL);
    HAS(err.text, "toomuch wants 7.00 MiB (7340032 bytes); 3.44 MiB of 10.00 MiB are held");
    HAS(err.text, "\nlargest  block9 640.00 KiB (hold.c:9) | block8 576.00 KiB (hold.c:8)");
    HAS(err.text, "block2 192.00 KiB (hold.c:2) | and 2 more");
    HAS_NOT(err.text, "block1 ");
    EQ_U64(stats(mem).refusals, 1);
    EQ_U64(stats(mem).blocks, 10);
    for (int i = 0; i < 10; i++) OK(fth_mem_release(mem, p[i], NULL));
    destroy_clean(mem);
}

TEST(the_last_byte_of_the_budget_can_be_used)
{
    fth_mem *mem = make(4 * MiB, MiB, 2 * MiB);
    void *p, *q;
    OK(fth_mem_take(mem, FTH_MEM_DIRECT, 4 * MiB - 64, "most", &p, NULL)); /* costs whole pages */
    IS(fth_mem_take(mem, FTH_MEM_ARENA, 1, "one", &q, NULL), FTH_E_BUDGET);
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 4 * MiB - 64, "most", &p, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 1, "one", &q, NULL));
    EQ_U64(stats(mem).used_bytes, 4 * MiB);
    void *r;
    IS(fth_mem_take(mem, FTH_MEM_ARENA, 0, "none", &r, NULL), FTH_E_BUDGET);
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_release(mem, q, NULL));
    destroy_clean(mem);
}

TEST(leaks_are_listed_and_cleared)
{
    fth_mem *mem = make(64 * MiB, MiB, 4 * MiB);
    char mine[100];
    void *p;
    const fth_how hows[] = {FTH_MEM_ARENA, FTH_MEM_POOL, FTH_MEM_DIRECT, FTH_MEM_MAPPED,
                            FTH_MEM_META};
    for (int i = 0; i < 5; i++)
        OK(fth_mem_take_(mem, (fth_site){"leak.c", "f", i}, hows[i], 100, "kept", &p, NULL));
    OK(fth_mem_adopt(mem, mine, sizeof mine, "mine", NULL));
    (void)fth__heap_alloc_(mem, (fth_site){"notes.c", "g", 77}, 40);
    fth_err err = {0};
    IS(fth_mem_destroy(mem, &err), FTH_E_LEAK);
    HAS(err.text, "5 blocks (12.22 KiB)");
    HAS(err.text, "2 pieces of bookkeeping (168 bytes)");
    HAS(err.text, "kept 4.00 KiB, pool, taken at leak.c:1");
    HAS(err.text, "mine 100 B, foreign");
    HAS(err.text, "kept 128 bytes, meta, taken at leak.c:4");
    HAS(err.text, "bookkeeping 40 bytes, taken at notes.c:77");
}

TEST(foreign_blocks_count_and_are_never_freed)
{
    fth_mem *mem = make(1 * MiB, MiB, 4 * MiB);
    char *mine = malloc(600000), *more = malloc(600000);
    OK(fth_mem_adopt(mem, mine, 600000, "mine", NULL));
    EQ_U64(stats(mem).used_bytes, 600000);
    EQ_U64(stats(mem).by_how[FTH_MEM_FOREIGN], 600000);
    fth_err err = {0};
    IS(fth_mem_adopt(mem, more, 600000, "more", &err), FTH_E_BUDGET);
    fth_err_clear(&err);
    IS(fth_mem_adopt(mem, mine, 1, "again", &err), FTH_E_USAGE);
    HAS(err.text, "already known as mine");
    void *p;
    IS(fth_mem_take(mem, FTH_MEM_ANY, 500000, "x", &p, NULL), FTH_E_BUDGET);
    OK(fth_mem_release(mem, mine, NULL));
    mine[599999] = 1; /* still ours */
    OK(fth_mem_adopt(mem, mine, 0, "again", NULL));
    OK(fth_mem_release(mem, mine, NULL));
    IS(fth_mem_release(mem, mine, NULL), FTH_E_MEM_TWICE);
    free(mine);
    free(more);
    destroy_clean(mem);
}

/* F7: memory from one allocator was given back to another. Blocks of every origin are mixed,
 * released in any order, and wrong releases are thrown in: nothing may come apart. */
TEST(every_origin_goes_back_the_way_it_came)
{
    enum { N = 200 };
    static char own[N][64];
    fth_mem *mem = make(256 * MiB, MiB, 4 * MiB);
    t_random r = t_random_make(7);
    for (int round = 0; round < 20; round++) {
        unsigned char *p[N];
        uint64_t bytes[N];
        fth_how how[N];
        for (int i = 0; i < N; i++) {
            how[i] = (fth_how)t_random_i64(&r, 0, FTH_HOW_COUNT - 1);
            bytes[i] = (uint64_t)t_random_i64(&r, 1, how[i] == FTH_MEM_PINNED ? 9000 : 40000);
            if (how[i] == FTH_MEM_FOREIGN) {
                p[i] = (unsigned char *)own[i];
                bytes[i] = 64;
                OK(fth_mem_adopt(mem, p[i], 64, "own", NULL));
            } else
                OK(fth_mem_take(mem, how[i], bytes[i], "mix", (void **)&p[i], NULL));
            memset(p[i], i & 255, bytes[i]);
        }
        for (int left = N; left > 0; left--) {
            const int k = (int)t_random_i64(&r, 0, left - 1);
            fth_mem_block b;
            IS_TRUE(fth_mem_find(mem, p[k], &b));
            EQ_I64(b.how, how[k]);
            const unsigned char mark = p[k][0];
            for (uint64_t i = 0; i < bytes[k]; i++)
                if (p[k][i] != mark) FAIL("block %d was written by another at %d", k, (int)i);
            IS(fth_mem_release(mem, p[k] + 1, NULL), FTH_E_MEM_UNKNOWN);
            OK(fth_mem_release(mem, p[k], NULL));
            IS(fth_mem_release(mem, p[k], NULL), FTH_E_MEM_TWICE);
            p[k] = p[left - 1];
            bytes[k] = bytes[left - 1];
            how[k] = how[left - 1];
        }
        EQ_U64(stats(mem).used_bytes, 0);
        for (int h = 0; h < FTH_MEM_META; h++) EQ_U64(stats(mem).by_how[h], 0);
    }
    destroy_clean(mem);
}

/* Random takes and releases against a model that keeps its own sum. */
TEST(the_budget_is_never_passed)
{
    enum { N = 64 };
    const uint64_t budget = 3 * MiB;
    fth_mem *mem = make(budget, 256 << 10, 2 * MiB);
    void *p[N] = {0};
    uint64_t got[N] = {0}, used = 0, peak = 0, refusals = 0;
    t_random r = t_random_make(3);
    for (int step = 0; step < 20000; step++) {
        const int k = (int)t_random_i64(&r, 0, N - 1);
        if (p[k]) {
            OK(fth_mem_release(mem, p[k], NULL));
            used -= got[k];
            p[k] = NULL;
        } else {
            const uint64_t bytes =
                (uint64_t)t_random_i64(&r, 0, INT64_C(1) << t_random_i64(&r, 4, 21));
            const fth_how how = (fth_how)t_random_i64(&r, 0, 7) == 7 ? FTH_MEM_MAPPED : FTH_MEM_ANY;
            const uint64_t cost = fth__mem_cost(mem, how, bytes);
            const fth_status want = used + cost > budget ? FTH_E_BUDGET : FTH_OK;
            IS(fth_mem_take(mem, how, bytes, "model", &p[k], NULL), want);
            refusals += want != FTH_OK;
            if (p[k]) {
                used += got[k] = cost;
                memset(p[k], 1, bytes < 8192 ? bytes : 8192);
            }
        }
        if (used > peak) peak = used;
        const fth_mem_stats s = stats(mem);
        EQ_U64(s.used_bytes, used);
        EQ_U64(s.peak_bytes, peak);
        IS_TRUE(s.used_bytes + s.cached_bytes <= budget);
    }
    IS_TRUE(refusals > 100);
    EQ_U64(stats(mem).refusals, refusals);
    for (int k = 0; k < N; k++) OK(fth_mem_release(mem, p[k], NULL));
    destroy_clean(mem);
}

TEST(arena_blocks_never_overlap)
{
    enum { N = 300 };
    fth_mem *mem = make(64 * MiB, 64 * MiB, 64 * MiB);
    unsigned char *p[N] = {0};
    uint64_t bytes[N] = {0};
    t_random r = t_random_make(5);
    for (int step = 0; step < 6000; step++) {
        const int k = (int)t_random_i64(&r, 0, N - 1);
        if (p[k]) {
            for (uint64_t i = 0; i < bytes[k]; i++)
                if (p[k][i] != (unsigned char)k) FAIL("block %d changed", k);
            OK(fth_mem_release(mem, p[k], NULL));
            p[k] = NULL;
            continue;
        }
        bytes[k] = (uint64_t)t_random_i64(&r, 0, INT64_C(1) << t_random_i64(&r, 0, 17));
        OK(fth_mem_take(mem, FTH_MEM_ARENA, bytes[k], "a", (void **)&p[k], NULL));
        EQ_U64((uintptr_t)p[k] % (bytes[k] >= 65536 ? 4096 : 64), 0);
        memset(p[k], k & 255, bytes[k]);
        if (step % 997 == 0) (void)fth_mem_trim(mem); /* must not touch what is held */
    }
    for (int k = 0; k < N; k++) OK(fth_mem_release(mem, p[k], NULL));
    /* All holes are one hole again. */
    EQ_U64(stats(mem).largest_free, 128 * MiB);
    destroy_clean(mem);
}

TEST(holes_are_reused_best_fit)
{
    fth_mem *mem = make(64 * MiB, 64 * MiB, 64 * MiB);
    enum { N = 6 };
    const uint64_t bytes[N] = {4096, 64, 1024, 64, 1600, 64};
    char *b[N], *p;
    for (int i = 0; i < N; i++)
        OK(fth_mem_take(mem, FTH_MEM_ARENA, bytes[i], "x", (void **)&b[i], NULL));
    for (int i = 0; i < N; i += 2) OK(fth_mem_release(mem, b[i], NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 1000, "p", (void **)&p, NULL));
    EQ_PTR(p, b[2]);
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 1030, "p", (void **)&p, NULL));
    EQ_PTR(p, b[4]);
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_release(mem, b[1], NULL)); /* the first three are one hole now */
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 4096 + 64 + 1024, "p", (void **)&p, NULL));
    EQ_PTR(p, b[0]);
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_release(mem, b[3], NULL));
    OK(fth_mem_release(mem, b[5], NULL));
    destroy_clean(mem);
}

/* Dirty, clean and dirty again in one hole: what is cut out of it never makes more dirty. */
TEST(cached_bytes_are_never_made_up)
{
    fth_mem *mem = make(64 * MiB, 64 * MiB, 64 * MiB);
    void *first, *a, *b, *c, *last, *p;
    const uint64_t some = 60 << 10;
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 64, "first", &first,
                    NULL)); /* what follows starts no page */
    OK(fth_mem_take(mem, FTH_MEM_ARENA, some, "a", &a, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 8 * some, "b", &b, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, some, "c", &c, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 8192, "last", &last, NULL));
    OK(fth_mem_release(mem, b, NULL));
    (void)fth_mem_trim(mem);
    OK(fth_mem_release(mem, a, NULL));
    OK(fth_mem_release(mem, c, NULL));
    EQ_U64(stats(mem).cached_bytes, 2 * some);
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 64 << 10, "p", &p,
                    NULL)); /* cuts a piece off either side */
    IS_TRUE(stats(mem).cached_bytes <= 2 * some);
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_release(mem, first, NULL));
    OK(fth_mem_release(mem, last, NULL));
    destroy_clean(mem);
}

TEST(a_long_life_keeps_no_notes)
{
    fth_mem *mem = make(64 * MiB, MiB, 64 * MiB);
    uint64_t meta = 0;
    for (int i = 0; i < 10000; i++) {
        void *p;
        OK(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(i % 100) * 100, "p", &p, NULL));
        void *note = fth__heap_alloc(mem, 10);
        OK(fth_mem_release(mem, p, NULL));
        fth__heap_free(mem, note);
        if (i == 100) meta = stats(mem).meta_bytes;
    }
    EQ_U64(stats(mem).meta_bytes, meta);
    destroy_clean(mem);
}

/* 6 of 40 MiB are free in the ledger, but no hole of the 80 MiB range is larger than 5. */
TEST(a_range_in_pieces_is_survived)
{
    fth_mem *mem = make(40 * MiB, 64 * MiB, 64 * MiB);
    void *one[40], *two[10], *half[4], *five, *p;
    for (int i = 0; i < 40; i++) OK(fth_mem_take(mem, FTH_MEM_ARENA, MiB, "one", &one[i], NULL));
    for (int i = 0; i < 40; i += 2) OK(fth_mem_release(mem, one[i], NULL));
    for (int i = 0; i < 10; i++) OK(fth_mem_take(mem, FTH_MEM_ARENA, 2 * MiB, "2", &two[i], NULL));
    for (int i = 0; i < 10; i += 2) OK(fth_mem_release(mem, two[i], NULL));
    for (int i = 0; i < 4; i++)
        OK(fth_mem_take(mem, FTH_MEM_ARENA, 5 * MiB / 2, "2.5", &half[i], NULL));
    for (int i = 0; i < 4; i += 2) OK(fth_mem_release(mem, half[i], NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 5 * MiB, "5", &five, NULL));
    for (int i = 1; i < 24; i += 4) OK(fth_mem_release(mem, one[i], NULL));
    EQ_U64(stats(mem).used_bytes, 34 * MiB);
    EQ_U64(stats(mem).largest_free, 5 * MiB);

    IS(fth_mem_take(mem, FTH_MEM_ARENA, 6 * MiB, "no hole", &p, NULL), FTH_E_NOMEM);
    OK(fth_mem_take(mem, FTH_MEM_ANY, 6 * MiB, "pages", &p, NULL)); /* the choice was ours */
    fth_mem_block b;
    IS_TRUE(fth_mem_find(mem, p, &b));
    EQ_I64(b.how, FTH_MEM_DIRECT);

    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_release(mem, five, NULL));
    for (int i = 1; i < 4; i += 2) OK(fth_mem_release(mem, half[i], NULL));
    for (int i = 1; i < 10; i += 2) OK(fth_mem_release(mem, two[i], NULL));
    for (int i = 1; i < 40; i += 2)
        if (i >= 24 || i % 4 == 3) OK(fth_mem_release(mem, one[i], NULL));
    EQ_U64(stats(mem).largest_free, 80 * MiB);
    destroy_clean(mem);
}

/* Adopted memory was unmapped without a release; the system hands its address out again. */
TEST(a_stale_foreign_block_is_noticed)
{
    fth_mem *mem = make(64 * MiB, MiB, 64 * MiB);
    void *p = mmap(NULL, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;
    IS_TRUE(p != MAP_FAILED);
    OK(fth_mem_adopt_(mem, (fth_site){"adopt.c", "f", 9}, p, MiB, "theirs", NULL));
    munmap(p, MiB);
    fth_err err = {0};
    IS(fth_mem_take(mem, FTH_MEM_DIRECT, MiB, "ours", &q, &err), FTH_E_STATE);
    HAS(err.text, "theirs, adopted at adopt.c:9, was freed without being released");
    OK(fth_mem_release(mem, p, NULL));
    OK(fth_mem_take(mem, FTH_MEM_DIRECT, MiB, "ours", &q, NULL));
    OK(fth_mem_release(mem, q, NULL));
    destroy_clean(mem);
}

TEST(the_pool_reuses_and_gives_back_under_pressure)
{
    fth_mem *mem = make(16 * MiB, MiB, 64 * MiB);
    void *a, *b, *c;
    OK(fth_mem_take(mem, FTH_MEM_ANY, 4 * MiB, "a", &a, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ANY, 8 * MiB, "b", &b, NULL));
    memset(a, 1, 4 * MiB);
    void *const a0 = a, *const b0 = b;
    OK(fth_mem_release(mem, a, NULL));
    OK(fth_mem_release(mem, b, NULL));
    EQ_U64(stats(mem).cached_bytes, 12 * MiB);
    OK(fth_mem_take(mem, FTH_MEM_ANY, 4 * MiB, "again", &a, NULL)); /* the fitting one */
    EQ_PTR(a, a0);
    EQ_U64(stats(mem).cached_bytes, 8 * MiB);
    OK(fth_mem_take(mem, FTH_MEM_ANY, 5 * MiB, "part", &b, NULL)); /* the tail goes back */
    EQ_PTR(b, b0);
    EQ_U64(stats(mem).cached_bytes, 0);
    EQ_U64(stats(mem).used_bytes, 9 * MiB);
    OK(fth_mem_release(mem, a, NULL));
    OK(fth_mem_release(mem, b, NULL));
    OK(fth_mem_take(mem, FTH_MEM_POOL, MiB, "small", &c, NULL)); /* too small for either */
    IS_TRUE(c != a0 && c != b0);
    OK(fth_mem_release(mem, c, NULL));
    OK(fth_mem_take(mem, FTH_MEM_POOL, MiB, "small", &c, NULL));
    EQ_U64(stats(mem).cached_bytes, 9 * MiB);
    fth_mem *other = make(16 * MiB, MiB, 64 * MiB); /* caches are not shared */
    EQ_U64(stats(other).cached_bytes, 0);
    destroy_clean(other);
    OK(fth_mem_release(mem, c, NULL));
    EQ_U64(fth_mem_trim(mem), 10 * MiB);
    OK(fth_mem_take(mem, FTH_MEM_ANY, 4 * MiB, "a", &a, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ANY, 5 * MiB, "b", &b, NULL));
    OK(fth_mem_release(mem, a, NULL));
    OK(fth_mem_release(mem, b, NULL));
    /* 9 MiB cached: 12 more fit only after both went back, 10 after the older one did. */
    OK(fth_mem_take(mem, FTH_MEM_DIRECT, 10 * MiB, "c", &c, NULL));
    EQ_U64(stats(mem).cached_bytes, 5 * MiB);
    EQ_U64(stats(mem).trims, 2);
    OK(fth_mem_release(mem, c, NULL));
    OK(fth_mem_take(mem, FTH_MEM_DIRECT, 12 * MiB, "c", &c, NULL));
    EQ_U64(stats(mem).cached_bytes, 0);
    OK(fth_mem_release(mem, c, NULL));
    destroy_clean(mem);
}

TEST(a_warm_loop_asks_the_system_for_nothing)
{
    fth_mem *mem = make(64 * MiB, MiB, 64 * MiB);
    void *first[3], *p[3];
    const uint64_t bytes[3] = {5000, 3 * MiB, 700 << 10};
    for (int rep = 0; rep < 10; rep++) {
        for (int i = 0; i < 3; i++) {
            OK(fth_mem_take(mem, FTH_MEM_ANY, bytes[i], "step", &p[i], NULL));
            if (rep == 0) first[i] = p[i];
            EQ_PTR(p[i], first[i]);
        }
        for (int i = 0; i < 3; i++) OK(fth_mem_release(mem, p[i], NULL));
    }
    EQ_U64(stats(mem).trims, 0);
    destroy_clean(mem);
}

TEST(touched_counts_only_touched_pages)
{
    fth_mem *mem = make(64 * MiB, MiB, 64 * MiB);
    char *p;
    OK(fth_mem_take(mem, FTH_MEM_MAPPED, 8 * MiB, "range", (void **)&p, NULL)); /* small pages */
    EQ_U64(fth_mem_touched(p, 8 * MiB), 0);
    for (int i = 0; i < 10; i++) p[i * 100 * 4096] = 1;
    EQ_U64(fth_mem_touched(p, 8 * MiB), 10 * 4096);
    EQ_U64(fth_mem_touched(p + 100, 50), 50);
    EQ_U64(fth_mem_touched(p + 4000, 4096), 96);
    EQ_U64(fth_mem_touched(p + 4096, 99 * 4096), 0);
    EQ_U64(fth_mem_touched(NULL, 5), 0);
    EQ_U64(fth_mem_touched(p, 0), 0);
    EQ_U64(fth_mem_touched(p, UINT64_MAX), 0);
    OK(fth_mem_release(mem, p, NULL));
    destroy_clean(mem);
}

TEST(trim_hands_arena_pages_back)
{
    fth_mem *mem = make(64 * MiB, 64 * MiB, 64 * MiB);
    char *keep, *p;
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 5000, "keep", (void **)&keep, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ARENA, 16 * MiB, "p", (void **)&p, NULL));
    memset(keep, 7, 5000);
    memset(p, 1, 16 * MiB);
    OK(fth_mem_release(mem, p, NULL));
    EQ_U64(fth_mem_touched(p, 16 * MiB), 16 * MiB); /* kept, in case it is needed again */
    IS_TRUE(stats(mem).cached_bytes >= 16 * MiB);
    EQ_U64(fth_mem_trim(mem), 16 * MiB);
    EQ_U64(fth_mem_touched(p, 16 * MiB), 0);
    EQ_U64(stats(mem).cached_bytes, 0);
    EQ_U64(fth_mem_trim(mem), 0);
    for (int i = 0; i < 5000; i++) EQ_I64(keep[i], 7);
    OK(fth_mem_release(mem, keep, NULL));
    destroy_clean(mem);
}

TEST(lists_are_sorted_and_bounded)
{
    fth_mem *mem = make(64 * MiB, MiB, 64 * MiB);
    enum { N = 50 };
    void *p[N], *meta;
    for (int i = 0; i < N; i++)
        OK(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(i * 37 % 10 + 1) * 64, "x", &p[i], NULL));
    OK(fth_mem_take(mem, FTH_MEM_META, 99999, "meta", &meta, NULL));
    fth_mem_block all[N + 5], some[7];
    EQ_I64(fth_mem_list(mem, NULL, 0), N);
    EQ_I64(fth_mem_list(mem, all, N + 5), N);
    EQ_I64(fth_mem_list(mem, some, 7), N);
    for (int i = 1; i < N; i++) {
        IS_TRUE(all[i - 1].got_bytes >= all[i].got_bytes);
        if (all[i - 1].got_bytes == all[i].got_bytes) IS_TRUE(all[i - 1].serial < all[i].serial);
    }
    for (int i = 0; i < 7; i++) EQ_U64(some[i].serial, all[i].serial);
    for (int i = 0; i < N; i++) OK(fth_mem_release(mem, p[i], NULL));
    OK(fth_mem_release(mem, meta, NULL));
    destroy_clean(mem);
}

TEST(marks_start_a_new_peak)
{
    fth_mem *mem = make(64 * MiB, MiB, 64 * MiB);
    void *a, *b;
    OK(fth_mem_take(mem, FTH_MEM_ANY, 6400, "a", &a, NULL));
    OK(fth_mem_take(mem, FTH_MEM_ANY, 64000, "b", &b, NULL));
    OK(fth_mem_release(mem, b, NULL));
    EQ_U64(stats(mem).peak_bytes, 70400);
    fth_mem_mark(mem);
    EQ_U64(stats(mem).peak_bytes, 6400);
    OK(fth_mem_take(mem, FTH_MEM_ANY, 640, "b", &b, NULL));
    EQ_U64(stats(mem).peak_bytes, 7040);
    OK(fth_mem_release(mem, a, NULL));
    OK(fth_mem_release(mem, b, NULL));
    destroy_clean(mem);
}

TEST(the_default_budget_is_most_of_what_is_free)
{
    fth_mem *mem;
    const uint64_t free_bytes = fth_mem_free_now();
    OK(fth_mem_create(&mem, NULL, NULL));
    const double ratio = (double)stats(mem).budget_bytes / (double)free_bytes;
    NEAR(ratio, 0.9, 0.1); /* others use the machine meanwhile */
    destroy_clean(mem);
}

/* Bookkeeping is counted apart and never refused by the budget. */
TEST(meta_blocks_are_outside_the_budget)
{
    fth_mem *mem = make(64, MiB, 64 * MiB);
    char *p;
    const uint64_t meta = stats(mem).meta_bytes;
    OK(fth_mem_take(mem, FTH_MEM_META, 1000, "m", (void **)&p, NULL));
    for (int i = 0; i < 1000; i++) EQ_I64(p[i], 0);
    IS_TRUE(stats(mem).meta_bytes >= meta + 1024);
    EQ_U64(stats(mem).used_bytes, 0);
    EQ_U64(stats(mem).blocks, 0);
    OK(fth_mem_release(mem, p, NULL));
    EQ_U64(stats(mem).by_how[FTH_MEM_META], stats(mem).meta_bytes);
    destroy_clean(mem);
}

TEST_MAIN()
