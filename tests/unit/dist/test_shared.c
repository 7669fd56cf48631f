/* test_shared.c - passes that ranks share give the bytes of one rank, in the memory that is
 * planned. seconds: 20
 *
 * Every program here runs alone and on several ranks, at two budgets; outputs go to memory that is
 * written in place, to functions on every rank, and to sinks that rank 0 commits.
 */
#include "testing/engine/ranks.h"

#include "array/rect.h"

#include <fathom/fathom.h>

enum { OUTS = 16, MOST_BYTES = 1 << 20, LONG = 150000, SHORT = 40 };

typedef enum where { IN_PLACE, BY_CALL, COMMITTED, WHERE_COUNT } where;

/* ---- data ---- */

static float number(int64_t i, int64_t j)
{
    const uint64_t h = (uint64_t)(i * 37 + j * 101 + 11) * 0x9e3779b97f4a7c15u;
    return (float)((double)(h >> 40) / (double)(1 << 24) * 3.0 - 1.4);
}

typedef struct rows {
    int64_t cols;
    int64_t fail_at; /* reading this row fails; -1: none does */
} rows;

static fth_status read_rows(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const rows *r = self;
    float *to = dst;
    if (r->fail_at >= lo[0] && r->fail_at < lo[0] + n[0])
        return FTH_FAIL(err, FTH_E_FILE_READ, "row %lld is damaged", (long long)r->fail_at);
    for (int64_t i = lo[0]; i < lo[0] + n[0]; i++)
        for (int64_t j = lo[1]; j < lo[1] + n[1]; j++) *to++ = number(i, j);
    return FTH_OK;
}

/* ---- sinks ---- */

typedef struct taker {
    char *data;
    int64_t element, size[FTH_MAX_AXES];
    int n_axes;
    int *commits, *abandons;
} taker;

static fth_status take(void *self, const int64_t *lo, const int64_t *n, const void *src,
                       fth_err *err)
{
    const taker *t = self;
    (void)err;
    fth__rect_put(t->data, src, t->element, t->n_axes, t->size, lo, n);
    return FTH_OK;
}

static fth_status commit(void *self, fth_err *err)
{
    (void)err;
    ++*((const taker *)self)->commits;
    return FTH_OK;
}

static void abandon(void *self)
{
    ++*((const taker *)self)->abandons;
}

/* ---- a run ---- */

typedef int builder(fth_graph *g, fth_val x, fth_val *out);

typedef struct job {
    builder *build;
    int64_t n;
    const char *stream;
    uint64_t memory;
    int threads;
    where to;
    int64_t fail_at; /* row that cannot be read */
    int fail_rank;   /* on this rank; -1: on all */
    int cancel_rank; /* cancels its first pass; -1: none does */
    int runs;        /* of the same plan */
    bool must_share;
} job;

typedef struct result {
    fth_status status;
    char text[1024];
    fth_plan_info info;
    fth_run_report report;
    uint64_t sent, read;
    int commits, abandons;
    uint64_t bytes;
    char data[MOST_BYTES];
} result;

static bool stop(void *user, const fth_progress *progress)
{
    (void)user, (void)progress;
    return false;
}

static fth_status run_job(fth_ranks *ranks, const job *j, result *f, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = j->threads > 0 ? j->threads : 1;
    opt.ranks = ranks;
    FTH_TRY(fth_context_create(&ctx, &opt, err));
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", j->n);
    fth_axis(g, "col", 6);
    const int me = fth_ranks_rank(ranks);
    rows r = {6, j->fail_at > 0 && (j->fail_rank < 0 || j->fail_rank == me) ? j->fail_at : -1};
    const fth_source source = {.kind = "made",
                               .self = &r,
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {j->n, 6},
                               .read = read_rows};
    fth_val out[OUTS];
    const int n_outs = j->build(g, fth_input(g, "x", FTH_F32, "row col", source), out);
    fth_sink sink[OUTS];
    taker to[OUTS];
    uint64_t at = 0;
    memset(sink, 0, sizeof sink);
    for (int o = 0; o < n_outs && fth_val_ok(out[o]); o++) {
        taker *t = &to[o];
        *t = (taker){.data = f->data + at,
                     .element = fth_dtype_size(fth_val_dtype(out[o])),
                     .n_axes = fth_val_axes(out[o]),
                     .commits = &f->commits,
                     .abandons = &f->abandons};
        uint64_t bytes = (uint64_t)t->element;
        sink[o] = (fth_sink){.kind = "test",
                             .self = t,
                             .dtype = fth_val_dtype(out[o]),
                             .n_axes = t->n_axes,
                             .write = take};
        for (int d = 0; d < t->n_axes; d++) {
            t->size[d] = sink[o].size[d] = fth_val_size(out[o], d);
            bytes *= (uint64_t)t->size[d];
        }
        if (j->to == IN_PLACE) sink[o].data = t->data;
        if (j->to == COMMITTED) sink[o].commit = commit, sink[o].abandon = abandon;
        at += (bytes + 63) / 64 * 64;
        if (at > MOST_BYTES) return FTH_FAIL(err, FTH_E_USAGE, "the test has too little room");
    }
    f->bytes = at;
    fth_plan *p = fth_plan_make(
        g, out, n_outs,
        &(fth_limits){.memory_bytes = j->memory, .stream = j->stream, .sinks = sink}, err);
    fth_status s = p ? FTH_OK : err->status;
    if (p) fth_plan_get_info(p, &f->info);
    const fth_run_options how = {.progress = j->cancel_rank == me ? stop : NULL};
    for (int i = 0; s == FTH_OK && i < (j->runs > 0 ? j->runs : 1); i++)
        s = fth_run(p, sink, &how, &f->report, err);
    f->read = f->report.read_bytes;
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    const fth_status end = fth_context_destroy(ctx, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

static void one_rank(fth_ranks *ranks, void *user, void *found)
{
    result *f = found;
    fth_err err = {0};
    f->status = run_job(ranks, user, f, &err);
    snprintf(f->text, sizeof f->text, "%.1000s", err.text);
}

static const result *of_rank(const char *found, int r)
{
    return (const result *)(const void *)(found + (uint64_t)r * sizeof(result));
}

/* Alone and on so many ranks: the same bytes, and what was planned. */
static void same_everywhere(const job *j, int count)
{
    char *alone = t_ranks(1, one_rank, (void *)(uintptr_t)j, sizeof(result));
    char *found = t_ranks(count, one_rank, (void *)(uintptr_t)j, sizeof(result));
    const result *one = of_rank(alone, 0);
    t_status(one->status, FTH_OK, one->text, NULL, T_AT);
    for (int r = 0; r < count; r++) {
        const result *f = of_rank(found, r);
        t_status(f->status, FTH_OK, f->text, NULL, T_AT);
        EQ_I64(f->info.ranks, count);
        if (j->must_share) IS_TRUE(f->info.shared_passes > 0);
        EQ_U64(f->report.ledger_bytes, f->report.planned_bytes);
        EQ_U64(f->report.planned_bytes, f->info.peak_bytes);
        IS_TRUE(f->info.peak_bytes == of_rank(found, 0)->info.peak_bytes);
        if (j->to == COMMITTED) {
            EQ_I64(f->commits, r == 0 ? one->commits : 0);
            EQ_I64(f->abandons, r == 0 ? 0 : one->commits);
            if (r > 0) continue;
        }
        SAME_BYTES(f->data, one->data, one->bytes);
    }
    t_ranks_free(alone, 1, sizeof(result));
    t_ranks_free(found, count, sizeof(result));
}

static void same_in_all_ways(builder *build, int64_t n, bool must_share)
{
    static const int counts[] = {2, 3, 8};
    for (int i = 0; i < 3; i++)
        for (where to = IN_PLACE; to < WHERE_COUNT; to++) {
            job j = {.build = build,
                     .n = n,
                     .stream = "row",
                     .to = to,
                     .threads = 1 + i % 2,
                     .cancel_rank = -1,
                     .must_share = must_share};
            same_everywhere(&j, counts[i]);
            j.memory = 1600 << 10; /* the smaller budget */
            same_everywhere(&j, counts[i]);
        }
}

/* ---- programs ---- */

static int maps(fth_graph *g, fth_val x, fth_val *out)
{
    (void)g;
    out[0] = fth_exp(fth_mul(x, x));
    out[1] = fth_sum(x, "col");
    return 2;
}

TEST(values_made_piece_by_piece)
{
    same_in_all_ways(maps, 20011, true);
}

/* The streamed axis is not the outermost one of the result. */
static int turned(fth_graph *g, fth_val x, fth_val *out)
{
    (void)g;
    out[0] = fth_layout(fth_exp(x), "col row");
    return 1;
}

TEST(parts_that_are_not_side_by_side)
{
    same_in_all_ways(turned, 9001, true);
}

static int sums(fth_graph *g, fth_val x, fth_val *out)
{
    (void)g;
    const fth_val wide = fth_cast(x, FTH_F64),
                  whole = fth_cast(fth_mul(x, fth_const(g, FTH_F32, 9)), FTH_I32);
    const fth_val near =
        fth_add(fth_mul(wide, fth_const(g, FTH_F64, 1e-6)), fth_const(g, FTH_F64, 1.0));
    out[0] = fth_sum(x, "row");
    out[1] = fth_sum(fth_exp(wide), "row col");
    out[2] = fth_prod(near, "row");
    out[3] = fth_rmin(x, "row");
    out[4] = fth_rmax(whole, "row");
    out[5] = fth_sum(whole, "row");
    out[6] = fth_argmax(x, "row");
    out[7] = fth_argmin(whole, "row");
    out[8] = fth_any(fth_gt(x, fth_const(g, FTH_F32, 1.59)), "row");
    fth_axis(g, "bin", 10);
    out[9] = fth_histogram(x, "row", "bin", -1.0, 1.0);
    out[10] = fth_sum(fth_cast(x, FTH_F16), "row");
    return 11;
}

TEST(sums_over_a_long_axis)
{
    same_in_all_ways(sums, LONG, true);
}

TEST(sums_over_a_short_axis)
{
    same_in_all_ways(sums, 2000, true);
}

TEST(chunks_shorter_than_superblocks)
{
    job j = {.build = sums,
             .n = 700001,
             .stream = "row",
             .memory = 600 << 10,
             .cancel_rank = -1,
             .must_share = true};
    same_everywhere(&j, 3);
    char *found = t_ranks(1, one_rank, &j, sizeof(result));
    IS_TRUE(of_rank(found, 0)->info.chunks > 2 * 64);
    t_ranks_free(found, 1, sizeof(result));
}

static int exponentials(fth_graph *g, fth_val x, fth_val *out)
{
    (void)g;
    out[0] = fth_logsumexp(x, "row");
    return 1;
}

TEST(sums_of_exponentials)
{
    same_in_all_ways(exponentials, LONG, true);
}

static int products(fth_graph *g, fth_val x, fth_val *out)
{
    fth_axis_like(g, "other", "col");
    const fth_val y = fth_rename(x, "col", "other"), half = fth_cast(x, FTH_F16);
    out[0] = fth_dot(x, y, "row");
    out[1] = fth_dot_triangle(x, y, "row", FTH_LOWER, "col", "other");
    out[2] = fth_dot(half, fth_rename(half, "col", "other"), "row");
    out[3] = fth_dot(fth_cast(x, FTH_C64), fth_cast(y, FTH_C64), "row");
    out[4] = fth_dot(x, fth_sum(x, "col"), "row");
    /* every product, and so the sum, is -0 */
    const fth_val none = fth_mul(fth_cast(fth_gt(x, x), FTH_F32), x);
    const fth_val tiny = fth_add(none, fth_const(g, FTH_F32, 1e-30));
    out[5] = fth_dot(tiny, fth_rename(fth_neg(tiny), "col", "other"), "row");
    return 6;
}

TEST(products_over_a_long_axis)
{
    same_in_all_ways(products, 250000, true);
}

/* Halves are cut every few tiles, whatever the superblocks of several are; and beside them a sum
 * and a product of reals. */
static int halves(fth_graph *g, fth_val x, fth_val *out)
{
    fth_axis_like(g, "other", "col");
    const fth_val half = fth_cast(x, FTH_BF16);
    out[0] = fth_dot(half, fth_rename(half, "col", "other"), "row");
    return 1;
}
static int halves_and_reals(fth_graph *g, fth_val x, fth_val *out)
{
    halves(g, x, out);
    out[1] = fth_sum(fth_exp(x), "row");
    out[2] = fth_dot(x, fth_rename(x, "col", "other"), "row");
    return 3;
}

TEST(products_of_halves_at_any_length)
{
    static builder *const builds[] = {halves, halves_and_reals};
    static const int64_t tiles[] = {65, 129, 193, 257, 321, 449}; /* 2 to 8 in a superblock */
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 6; k++) {
            job j = {.build = builds[i],
                     .n = tiles[k] * 1024 + 5,
                     .stream = "row",
                     .cancel_rank = -1,
                     .must_share = true};
            same_everywhere(&j, 3);
        }
}

/* Centred by its mean, which a first pass makes. */
static int passes(fth_graph *g, fth_val x, fth_val *out)
{
    fth_axis(g, "some", 500);
    const fth_val centred = fth_sub(x, fth_expand(fth_mean(x, "row"), "row"));
    out[0] = fth_sum(fth_sqr(centred), "row");
    out[1] = fth_rmax(fth_cumsum(fth_slice(centred, "row", 70000, "some"), "some"), "some");
    return 2;
}

TEST(several_passes)
{
    same_in_all_ways(passes, LONG, true);
}

static int carried(fth_graph *g, fth_val x, fth_val *out)
{
    (void)g;
    out[0] = fth_sum(fth_cumsum(x, "row"), "row");
    return 1;
}

TEST(what_cannot_be_shared_is_done_by_every_rank)
{
    same_in_all_ways(carried, 30000, false);
    job j = {.build = carried, .n = 30000, .stream = "row", .cancel_rank = -1};
    char *found = t_ranks(2, one_rank, &j, sizeof(result));
    EQ_I64(of_rank(found, 0)->info.shared_passes, 0);
    EQ_F64(of_rank(found, 0)->info.shared_fraction, 0.0);
    t_ranks_free(found, 2, sizeof(result));
}

/* Sums over another axis than the one that is cut. */
static int sums_of(fth_graph *g, fth_val v, const char *axis, fth_val *out)
{
    const fth_val wide = fth_cast(v, FTH_F64), near = fth_mul(wide, fth_const(g, FTH_F64, 1e-3));
    out[0] = fth_sum(fth_exp(wide), axis);
    out[1] = fth_prod(fth_add(near, fth_const(g, FTH_F64, 1.0)), axis);
    out[2] = fth_logsumexp(wide, axis);
    return 3;
}

/* It goes on behind the end of the one that is cut, for more than a superblock; a part from a later
 * superblock on; one that is twice as long. */
static int of_longer(fth_graph *g, fth_val x, fth_val *out)
{
    fth_axis(g, "other", fth_val_size(x, 0) + 9);
    return sums_of(g, fth_pad(x, "row", 0, "other", 0.7), "other", out);
}
static int of_much_longer(fth_graph *g, fth_val x, fth_val *out)
{
    fth_axis(g, "other", fth_val_size(x, 0) + 1000);
    return sums_of(g, fth_pad(x, "row", 128, "other", 0.7), "other", out);
}
static int of_later(fth_graph *g, fth_val x, fth_val *out)
{
    fth_axis(g, "other", fth_val_size(x, 0) - 64);
    return sums_of(g, fth_slice(x, "row", 64, "other"), "other", out);
}
static int of_every_one_twice(fth_graph *g, fth_val x, fth_val *out)
{
    fth_axis(g, "other", 2 * fth_val_size(x, 0));
    return sums_of(g, fth_upsample(x, "row", 2, "other"), "other", out);
}

TEST(sums_of_axes_beside_the_one_that_is_cut)
{
    static builder *const builds[] = {of_longer, of_much_longer, of_later, of_every_one_twice};
    static const int64_t sizes[] = {2040, 2049, 2100, 4090, 4097, 20011};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++)
            for (int count = 3; count <= 8; count += 5) {
                job j = {.build = builds[i], .n = sizes[k], .stream = "row", .cancel_rank = -1};
                same_everywhere(&j, count);
            }
}

/* Much work per row, and then sums of reals in the order of the rows. */
static int scattered(fth_graph *g, fth_val x, fth_val *out)
{
    fth_axis(g, "place", 7);
    fth_val heavy = fth_sin(fth_cast(x, FTH_F64));
    for (int i = 0; i < 80; i++) heavy = fth_sub(fth_const(g, FTH_F64, 0.9), fth_mul(heavy, heavy));
    const fth_val of_row = fth_sum(heavy, "col"),
                  first = fth_sum(fth_cast(fth_gt(x, fth_const(g, FTH_F32, 0)), FTH_I32), "col");
    out[0] = fth_scatter_add(of_row, "row", fth_cast(first, FTH_I32), "place");
    out[1] = fth_sum(of_row, "row");
    return 2;
}

TEST(sums_that_cannot_be_joined_wait_for_the_end_of_a_shared_pass)
{
    same_in_all_ways(scattered, 60000, true);
    job j = {.build = scattered, .n = 60000, .cancel_rank = -1};
    char *found = t_ranks(2, one_rank, &j, sizeof(result));
    IS_TRUE(of_rank(found, 1)->info.shared_fraction > 0.9);
    EQ_U64(of_rank(found, 0)->read + of_rank(found, 1)->read, (uint64_t)j.n * 24);
    t_ranks_free(found, 2, sizeof(result));
    j.n = LONG; /* keeping what it sums does not fit: done by every rank, but done */
    j.memory = 600 << 10;
    same_everywhere(&j, 2);
}

/* ---- work, failures ---- */

TEST(each_rank_reads_its_part)
{
    job j = {
        .build = sums, .n = LONG, .stream = "row", .to = BY_CALL, .cancel_rank = -1, .runs = 2};
    char *found = t_ranks(3, one_rank, &j, sizeof(result));
    uint64_t read = 0;
    for (int r = 0; r < 3; r++) {
        const result *f = of_rank(found, r);
        t_status(f->status, FTH_OK, f->text, NULL, T_AT);
        read += f->read;
        IS_TRUE(f->read < (uint64_t)LONG * 24 / 2);
    }
    EQ_U64(read, (uint64_t)LONG * 24);
    t_ranks_free(found, 3, sizeof(result));
}

static void fails_everywhere(const job *j, int count, fth_status wanted, const char *words)
{
    char *found = t_ranks(count, one_rank, (void *)(uintptr_t)j, sizeof(result));
    for (int r = 0; r < count; r++) {
        const result *f = of_rank(found, r);
        t_status(f->status, wanted, f->text, NULL, T_AT);
        HAS(f->text, words);
        EQ_I64(f->commits, 0);
    }
    t_ranks_free(found, count, sizeof(result));
}

TEST(a_source_that_fails_on_one_rank_fails_on_all)
{
    for (where to = IN_PLACE; to < WHERE_COUNT; to++) {
        job j = {.build = maps, .n = 20011, .stream = "row", .to = to, .cancel_rank = -1};
        j.fail_rank = -1; /* only the rank that has the row reads it */
        j.fail_at = 19000;
        fails_everywhere(&j, 3, FTH_E_FILE_READ, "row 19000 is damaged");
        j.fail_at = 10;
        fails_everywhere(&j, 3, FTH_E_FILE_READ, "row 10 is damaged");
        j.build = sums;
        fails_everywhere(&j, 3, FTH_E_FILE_READ, "row 10 is damaged");
    }
}

/* In any step of any rank, while tiles of the step before are on their way. */
TEST(a_failure_in_any_step_ends_all_ranks)
{
    for (int64_t row = 100; row < 20011; row += 1500) {
        job j = {.build = maps,
                 .n = 20011,
                 .stream = "row",
                 .memory = 1600 << 10,
                 .to = row % 1000 ? COMMITTED : BY_CALL,
                 .cancel_rank = -1,
                 .fail_rank = -1,
                 .fail_at = row};
        fails_everywhere(&j, 3, FTH_E_FILE_READ, "is damaged");
    }
}

TEST(a_rank_that_is_cancelled_cancels_all)
{
    for (int who = 0; who < 3; who++)
        for (where to = IN_PLACE; to < WHERE_COUNT; to++) {
            job j = {.build = who % 2 ? sums : maps,
                     .n = 20011,
                     .stream = "row",
                     .to = to,
                     .cancel_rank = who};
            fails_everywhere(&j, 3, FTH_E_CANCELLED, "cancelled");
        }
}

/* ---- plans for ranks that are not there ---- */

static fth_status plan_for(const job *j, int ranks, bool strict, fth_plan_info *info, char *text,
                           size_t bytes, fth_err *err)
{
    fth_context *ctx;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.ranks_strict = strict;
    OK(fth_context_create(&ctx, &opt, err));
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", j->n);
    fth_axis(g, "col", 6);
    rows r = {6, -1};
    const fth_source source = {.kind = "made",
                               .self = &r,
                               .dtype = FTH_F32,
                               .n_axes = 2,
                               .size = {j->n, 6},
                               .read = read_rows};
    fth_val out[OUTS];
    const int n = j->build(g, fth_input(g, "x", FTH_F32, "row col", source), out);
    fth_plan *p = fth_plan_make(g, out, n, &(fth_limits){.stream = j->stream, .ranks = ranks}, err);
    const fth_status s = p ? FTH_OK : err->status;
    if (p) fth_plan_get_info(p, info);
    FILE *file = fmemopen(text, bytes, "w");
    if (p) OK(fth_plan_print(p, file));
    fclose(file);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
    return s;
}

TEST(plans_for_any_number_of_ranks)
{
    static char text[1 << 16];
    fth_plan_info info = {0};
    fth_err err = {0};
    job j = {.build = sums, .n = 100000000};
    OKE(plan_for(&j, 64, false, &info, text, sizeof text, &err), &err);
    EQ_I64(info.ranks, 64);
    IS_TRUE(info.shared_passes > 0);
    IS_TRUE(info.shared_fraction > 0.99);
    EQ_I64(info.most_parts, 64);
    IS_TRUE(info.exchanged_bytes > 0);
    IS_TRUE(info.seconds_together < info.seconds_alone / 40.0);
    HAS(text, "64 ranks");
    OKE(plan_for(&j, 1, false, &info, text, sizeof text, &err), &err);
    EQ_I64(info.shared_passes, 0);
    HAS_NOT(text, "ranks");
    j.build = carried;
    j.stream = "row";
    OKE(plan_for(&j, 4, false, &info, text, sizeof text, &err), &err);
    HAS(text, "on every rank: ");
    HAS(text, "carries a state from chunk to chunk");
}

TEST(too_many_ranks_are_an_error_where_that_is_asked_for)
{
    static char text[1 << 16];
    fth_plan_info info = {0};
    fth_err err = {0};
    job j = {.build = products, .n = 250000, .stream = "row"};
    OKE(plan_for(&j, 1000, false, &info, text, sizeof text, &err), &err);
    IS(plan_for(&j, 1000, true, &info, text, sizeof text, &err), FTH_E_RANKS);
    HAS(err.text, "1000 ranks cannot share axis 'row' of 250000: it has 62 superblocks");
    OKE(plan_for(&j, 62, true, &info, text, sizeof text, &err), &err);
    j.build = carried;
    err = (fth_err){0};
    IS(plan_for(&j, 2, true, &info, text, sizeof text, &err), FTH_E_RANKS);
    HAS(err.text, "no pass of the plan can be shared by 2 ranks");
    err = (fth_err){0};
    IS(plan_for(&j, -2, false, &info, text, sizeof text, &err), FTH_E_USAGE);
}

TEST_MAIN()
