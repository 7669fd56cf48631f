/* test_spatial_lister.c - lists that a thread makes ahead are those of the caller's own loop.
 * seconds: 1
 */
#include "instruments/spatial/ops/local/local.h"
#include "instruments/spatial/prior/lister.h"
#include "testing/test.h"

enum { CELLS = 300, K = 7, BATCH = 60, ITEMS = BATCH * (K + 1) };

static int32_t nbr[CELLS * K];

static fth_mem *open_lister(sp_lister **l)
{
    fth_mem *mem;
    fth_err err = {0};
    OKE(fth_mem_create(&mem, NULL, &err), &err);
    for (int i = 0; i < CELLS * K; i++) nbr[i] = (int32_t)((i * 37 + i / K) % CELLS);
    const sp_lists_of of = {nbr, CELLS, K, BATCH};
    OKE(sp_lister_create(l, mem, &of, &err), &err);
    return mem;
}

static void close_lister(sp_lister *l, fth_mem *mem)
{
    fth_err err = {0};
    sp_lister_destroy(l);
    OKE(fth_mem_destroy(mem, &err), &err);
}

TEST(lists_are_those_of_the_loop)
{
    sp_lister *l;
    fth_mem *mem = open_lister(&l);
    static int32_t ptr[2][CELLS + 1], items[2][ITEMS], want_ptr[CELLS + 1], want[ITEMS];
    int64_t cell[BATCH];
    fth_err err = {0};
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < BATCH; i++) cell[i] = (i * 5 + round * 11) % CELLS;
        sp_local_touch_lists(want_ptr, want, CELLS, cell, BATCH, nbr, K);
        sp_lister_ask(l, cell, ptr[round & 1], items[round & 1]);
        if (round % 7 == 3) sp_lister_ask(l, cell, ptr[round & 1], items[round & 1]);
        memset(cell, 0xff, sizeof cell); /* it has a copy */
        OKE(sp_lister_take(l, &err), &err);
        SAME_BYTES(ptr[round & 1], want_ptr, sizeof want_ptr);
        SAME_BYTES(items[round & 1], want, sizeof want);
    }
    close_lister(l, mem);
}

TEST(wrong_indices_are_told_when_lists_are_taken)
{
    sp_lister *l;
    fth_mem *mem = open_lister(&l);
    static int32_t ptr[CELLS + 1], items[ITEMS];
    int64_t cell[BATCH];
    for (int i = 0; i < BATCH; i++) cell[i] = i;
    nbr[5 * K + 2] = CELLS;
    fth_err err = {0};
    sp_lister_ask(l, cell, ptr, items);
    IS(sp_lister_take(l, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "neighbour 2 of cell 5 is 300, of 300 cells");
    nbr[5 * K + 2] = 0;
    cell[9] = -1;
    sp_lister_ask(l, cell, ptr, items);
    err = (fth_err){0};
    IS(sp_lister_take(l, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "cell -1 of a batch");
    cell[9] = 9;
    sp_lister_ask(l, cell, ptr, items);
    err = (fth_err){0};
    OKE(sp_lister_take(l, &err), &err);
    sp_lister_ask(l, cell, ptr, items); /* and closed without being taken */
    close_lister(l, mem);
}

TEST_MAIN()
