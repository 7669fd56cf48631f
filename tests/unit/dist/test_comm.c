/* test_comm.c - messages between ranks, and how they meet when one of them fails.
 * seconds: 3
 */
#include "testing/engine/ranks.h"

#include "dist/comm.h"

enum { WORDS = 1 << 16 };

typedef struct found {
    fth_status status;
    int64_t number;
    uint64_t sum, sent, received;
    char text[512];
} found;

TEST(one_rank_needs_nobody)
{
    fth_err err = {0};
    EQ_I64(fth_ranks_rank(NULL), 0);
    EQ_I64(fth_ranks_count(NULL), 1);
    fth_ranks_close(NULL);
    OK(fth__comm_settle(NULL, FTH_OK, &err));
    IS(fth__comm_settle(NULL, FTH_E_USAGE, &err), FTH_E_USAGE);
    OK(fth__comm_check_same(NULL, "anything", &err));
}

TEST(every_rank_needs_a_part)
{
    fth__comm c = {.size = 5};
    fth_err err = {0};
    OK(fth_ranks_check_parts(NULL, "it", 0, &err));
    OKE(fth_ranks_check_parts(fth__comm_ranks(&c), "it", 5, &err), &err);
    IS(fth_ranks_check_parts(fth__comm_ranks(&c), "it", 4, &err), FTH_E_RANKS);
    HAS(err.text, "it can be shared by at most 4 ranks, and there are 5");
    HAS(err.hint, "start at most 4");
    err = (fth_err){0};
    IS(fth_ranks_check_parts(fth__comm_ranks(&c), "it", 1, &err), FTH_E_RANKS);
    HAS(err.text, "it has no work that 5 ranks would share");
    HAS(err.hint, "without mpirun");
}

/* Around a ring, then from every rank to all: more bytes than a socket holds. */
static void exchange(fth_ranks *ranks, void *user, void *found_)
{
    found *f = found_;
    fth__comm *c = fth__comm_of(ranks);
    static uint64_t data[WORDS];
    fth_err err = {0};
    (void)user;
    const uint64_t bytes = sizeof data;
    const int next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
    for (int i = 0; i < WORDS; i++) data[i] = (uint64_t)(i * (c->rank + 1));
    f->status = FTH_OK;
    if (c->rank == 0) f->status = fth__comm_send(c, next, data, bytes, &err);
    if (f->status == FTH_OK) f->status = fth__comm_receive(c, before, data, bytes, &err);
    if (c->rank > 0) f->status = fth__comm_send(c, next, data, bytes, &err);
    for (int r = 0; f->status == FTH_OK && r < c->size; r++)
        f->status = fth__comm_broadcast(c, r, data, bytes, &err);
    for (int i = 0; i < WORDS; i++) f->sum += data[i];
    f->number = 100 - (c->rank - 2) * (c->rank - 2);
    if (f->status == FTH_OK) f->status = fth__comm_agree(c, &f->number, &err);
    f->sent = c->sent_bytes;
    f->received = c->received_bytes;
}

TEST(exchanges_data_and_agrees_on_the_largest)
{
    const uint64_t bytes = WORDS * sizeof(uint64_t), all = (uint64_t)WORDS * (WORDS - 1) / 2;
    char *block = t_ranks(5, exchange, NULL, sizeof(found));
    for (int r = 0; r < 5; r++) {
        const found *f = (const found *)(void *)(block + (uint64_t)r * sizeof *f);
        OK(f->status);
        EQ_U64(f->sum, all); /* those that rank 0 began with */
        EQ_I64(f->number, 100);
        EQ_U64(f->sent, 2 * bytes);
        EQ_U64(f->received, 5 * bytes);
    }
    t_ranks_free(block, 5, sizeof(found));
}

static void fail_on_two(fth_ranks *ranks, void *user, void *found_)
{
    found *f = found_;
    fth__comm *c = fth__comm_of(ranks);
    fth_err err = {0};
    const fth_status wanted = *(const fth_status *)user;
    f->number = fth__comm_settle(c, FTH_OK, &err);
    fth_status s = FTH_OK;
    if (c->rank == 2) s = FTH_FAIL(&err, wanted, "the disk of rank 2 is on fire");
    if (c->rank == 3) s = FTH_FAIL(&err, FTH_E_USAGE, "a later one");
    f->status = fth__comm_settle(c, s, &err);
    snprintf(f->text, sizeof f->text, "%.500s", err.text);
}

TEST(the_lowest_rank_that_failed_is_heard_by_all)
{
    fth_status s = FTH_E_FILE_READ;
    char *block = t_ranks(4, fail_on_two, &s, sizeof(found));
    for (int r = 0; r < 4; r++) {
        const found *f = (const found *)(void *)(block + (uint64_t)r * sizeof *f);
        EQ_I64(f->number, FTH_OK);
        IS(f->status, r == 3 ? FTH_E_FILE_READ : s);
        HAS(f->text, "the disk of rank 2 is on fire");
        if (r != 2) HAS(f->text, "rank 2: ");
    }
    t_ranks_free(block, 4, sizeof(found));
}

/* Three ranks have begun to settle and compute on; rank 2 fails in that and settles. */
static void fail_while_others_compute(fth_ranks *ranks, void *user, void *found_)
{
    found *f = found_;
    fth__comm *c = fth__comm_of(ranks);
    fth_err err = {0};
    (void)user;
    f->number = fth__comm_settle_begin(c, FTH_OK, &err);
    f->number += fth__comm_settle_end(c, FTH_OK, &err);
    if (c->rank == 2) {
        FTH_FAIL(&err, FTH_E_FILE_READ, "the disk of rank 2 is on fire");
        f->status = fth__comm_settle(c, FTH_E_FILE_READ, &err);
    } else {
        f->number += fth__comm_settle_begin(c, FTH_OK, &err);
        f->status = fth__comm_settle_end(c, FTH_OK, &err);
    }
    snprintf(f->text, sizeof f->text, "%.500s", err.text);
}

TEST(a_failure_is_heard_by_ranks_that_have_begun_to_settle)
{
    char *block = t_ranks(4, fail_while_others_compute, NULL, sizeof(found));
    for (int r = 0; r < 4; r++) {
        const found *f = (const found *)(void *)(block + (uint64_t)r * sizeof *f);
        EQ_I64(f->number, FTH_OK);
        IS(f->status, FTH_E_FILE_READ);
        HAS(f->text, "the disk of rank 2 is on fire");
    }
    t_ranks_free(block, 4, sizeof(found));
}

TEST(a_cancelled_run_is_no_failure_of_a_rank)
{
    fth_status s = FTH_E_CANCELLED;
    char *block = t_ranks(3, fail_on_two, &s, sizeof(found));
    for (int r = 0; r < 3; r++) {
        const found *f = (const found *)(void *)(block + (uint64_t)r * sizeof *f);
        IS(f->status, FTH_E_CANCELLED);
        HAS_NOT(f->text, "rank 2: ");
    }
    t_ranks_free(block, 3, sizeof(found));
}

static void differ(fth_ranks *ranks, void *user, void *found_)
{
    found *f = found_;
    fth_err err = {0};
    (void)user;
    f->number = fth__comm_check_same(fth__comm_of(ranks), "fathom 1, AVX2", &err);
    f->status = fth__comm_check_same(
        fth__comm_of(ranks), fth_ranks_rank(ranks) == 1 ? "fathom 1, SSE2" : "fathom 1, AVX2",
        &err);
    snprintf(f->text, sizeof f->text, "%.500s", err.text);
}

TEST(ranks_that_would_compute_other_bits_are_refused)
{
    char *block = t_ranks(3, differ, NULL, sizeof(found));
    for (int r = 0; r < 3; r++) {
        const found *f = (const found *)(void *)(block + (uint64_t)r * sizeof *f);
        EQ_I64(f->number, FTH_OK);
        IS(f->status, FTH_E_RANKS);
        HAS(f->text, "rank 0 computes with fathom 1, AVX2, rank 1 with fathom 1, SSE2");
    }
    t_ranks_free(block, 3, sizeof(found));
}

TEST(a_rank_that_is_gone_is_an_error)
{
    fth_err err = {0};
    IS(t_ranks_lost(&err), FTH_E_MESSAGE);
    HAS(err.text, "rank 1 does not answer");
}

TEST_MAIN()
