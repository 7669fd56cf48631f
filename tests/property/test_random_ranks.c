/* test_random_ranks.c - random programs give the bits of one rank on any number of ranks.
 * seconds: 40
 *
 * Every graph is planned at several budgets and streaming axes; outputs go to memory in place, to
 * functions, and to sinks that rank 0 commits. The ledger is the plan on every rank.
 */
#include "testing/engine/random_graph.h"
#include "testing/engine/ranks.h"

#include "array/rect.h"
#include "base/hash.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GRAPHS = 25 };
#else
enum { GRAPHS = 150 };
#endif
enum { PLANS = 4 };

typedef struct one_plan {
    fth_status status;
    uint64_t hash, committed; /* of outputs that every rank has, and of those that rank 0 has */
    bool planned;             /* the ledger was the plan */
    int64_t shared;
    char text[256];
} one_plan;

typedef struct found {
    bool made[GRAPHS];
    one_plan plan[GRAPHS][PLANS];
} found;

typedef struct asked {
    uint64_t first;
    bool far, odd;
} asked;

typedef struct taker {
    char *data;
    int64_t element, size[FTH_MAX_AXES], count;
    int n_axes;
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
    (void)self, (void)err;
    return FTH_OK;
}

static void add_bytes(uint64_t *hash, const void *data, uint64_t bytes)
{
    fth__hash h;
    fth__hash_init(&h, *hash);
    fth__hash_add(&h, data, (size_t)bytes);
    *hash = fth__hash_get(&h);
}

static void run_one(rg *g, const fth_limits *limits, bool commits, one_plan *f, uint64_t *peak)
{
    fth_val outs[RG_OUTS];
    fth_sink sinks[RG_OUTS];
    taker to[RG_OUTS];
    fth_err err = {0};
    fth_limits l = *limits;
    memset(sinks, 0, sizeof sinks);
    for (int i = 0; i < g->n_outs; i++) {
        const fth_val v = rg_val(g, g->out[i]);
        taker *t = &to[i];
        outs[i] = g->into[i] >= 0 ? g->param[g->into[i]].assign : v;
        *t = (taker){.element = fth_dtype_size(fth_val_dtype(v)),
                     .n_axes = fth_val_axes(v),
                     .count = rg_count(v)};
        t->data = calloc((size_t)(t->count * t->element) + 64, 1);
        sinks[i] = (fth_sink){.kind = "taker",
                              .self = t,
                              .dtype = fth_val_dtype(v),
                              .n_axes = t->n_axes,
                              .write = take,
                              .data = g->direct[i] ? t->data : NULL,
                              .commit = commits && !g->direct[i] && i % 2 ? commit : NULL};
        for (int d = 0; d < t->n_axes; d++) sinks[i].size[d] = t->size[d] = fth_val_size(v, d);
    }
    l.sinks = sinks;
    fth_plan *p = fth_plan_make(g->g, outs, g->n_outs, &l, &err);
    f->status = p ? FTH_OK : err.status;
    fth_plan_info info = {0};
    fth_run_report report = {0};
    if (p) fth_plan_get_info(p, &info);
    *peak = info.peak_bytes + info.foreign_bytes;
    f->shared = info.shared_passes;
    for (int i = 0; i < g->n_params; i++)
        memcpy(fth_tensor_data(g->param[i].tensor), g->param[i].before, (size_t)g->param[i].bytes);
    if (p) f->status = fth_run(p, sinks, NULL, &report, &err);
    f->planned = report.ledger_bytes == report.planned_bytes;
    snprintf(f->text, sizeof f->text, "%.250s", err.text);
    for (int i = 0; i < g->n_outs; i++) {
        uint64_t *hash = sinks[i].commit ? &f->committed : &f->hash;
        if (g->into[i] < 0) add_bytes(hash, to[i].data, (uint64_t)(to[i].count * to[i].element));
        free(to[i].data);
    }
    for (int i = 0; i < g->n_params; i++)
        add_bytes(&f->hash, fth_tensor_data(g->param[i].tensor), g->param[i].bytes);
    fth_plan_destroy(p);
}

/* The longest axis of the graph. */
static const char *longest(const rg *g)
{
    int best = 0;
    for (int i = 1; i < g->n_axes; i++)
        if (g->axis_size[i] > g->axis_size[best]) best = i;
    return g->n_axes > 0 ? g->axis[best] : NULL;
}

static void all_graphs(fth_ranks *ranks, void *user, void *found_)
{
    const asked *a = user;
    found *f = found_;
    char why[2048];
    rg_use_ranks(ranks);
    rg_use_far(a->far);
    rg_use_odd(a->odd);
    for (int i = 0; i < GRAPHS; i++) {
        rg *g = rg_make(a->first + (uint64_t)i, why, sizeof why);
        f->made[i] = g != NULL;
        if (!g) continue;
        uint64_t peak = 0, other;
        run_one(g, &(fth_limits){.stream = ""}, false, &f->plan[i][0], &peak);
        run_one(g, &(fth_limits){0}, true, &f->plan[i][1], &other);
        run_one(g, &(fth_limits){.stream = longest(g)}, true, &f->plan[i][2], &other);
        run_one(g, &(fth_limits){.memory_bytes = peak * 2 / 3 + 1}, false, &f->plan[i][3], &other);
        rg_free(g);
    }
}

static void check_ranks(asked a, int count)
{
    char *alone = t_ranks(1, all_graphs, &a, sizeof(found));
    char *block = t_ranks(count, all_graphs, &a, sizeof(found));
    const found *one = (const found *)(const void *)alone;
    int64_t shared = 0, runs = 0, wrong = 0;
    for (int i = 0; i < GRAPHS; i++)
        for (int r = 0; r < count; r++) {
            const found *f = (const found *)(const void *)(block + (uint64_t)r * sizeof *f);
            EQ_I64(f->made[i], one->made[i]);
            for (int k = 0; f->made[i] && k < PLANS; k++) {
                const one_plan *x = &f->plan[i][k], *y = &one->plan[i][k];
                if (k == 3 && (x->status == FTH_E_NO_FIT || y->status == FTH_E_NO_FIT)) continue;
                const bool failed = a.odd && y->status != FTH_OK; /* a rate that is infinite */
                const bool bits =
                    x->hash == y->hash && (r > 0 || x->committed == y->committed) && x->planned;
                const bool same =
                    x->status == y->status && (failed || (x->status == FTH_OK && bits));
                shared += x->shared > 0;
                runs++;
                if (same) continue;
                wrong++;
                fprintf(stderr,
                        "graph %llu, plan %d, rank %d of %d: status %d and %d alone, %s planned, "
                        "bits %s, %lld shared: %s\n",
                        (unsigned long long)(a.first + (uint64_t)i), k, r, count, x->status,
                        y->status, x->planned ? "as" : "NOT as",
                        x->hash == y->hash ? "same" : "DIFFER", (long long)x->shared, x->text);
            }
        }
    printf("%d ranks: %lld runs, %lld of them shared\n", count, (long long)runs, (long long)shared);
    EQ_I64(wrong, 0);
    IS_TRUE(shared * 4 > runs);
    t_ranks_free(alone, 1, sizeof(found));
    t_ranks_free(block, count, sizeof(found));
}

TEST(two_ranks)
{
    check_ranks((asked){.first = 1}, 2);
}
TEST(three_ranks)
{
    check_ranks((asked){.first = 2001}, 3);
}
TEST_REPEAT(five_ranks)
{
    check_ranks((asked){.first = 4001}, 5);
}
TEST_REPEAT(eight_ranks)
{
    check_ranks((asked){.first = 6001}, 8);
}
TEST(part_of_a_long_axis)
{
    check_ranks((asked){.first = 8001, .far = true}, 3);
}

TEST(infinities_and_nans)
{
    check_ranks((asked){.first = 10001, .odd = true}, 3);
}

TEST_MAIN()
