/* kmeans.c - k-means: several starts, Lloyd's iterations from each, the best of them (model 11.1).
 *
 * An iteration descends a tree of boxes with the candidate centres of each box. A centre that is
 * farther than another everywhere in the box is dropped; where one is left, it takes the whole box
 * with its stored sums. Restarts are independent and each runs on one worker, so the result does
 * not depend on the number of workers. With a device, workers find the seeds and the device
 * iterates, one restart after the other (kmeans_graph.h).
 */
#include "kmeans.h"

#include "kmeans_graph.h"

#include <math.h>
#include <stdatomic.h>

enum { RESTARTS = 10, ITERATIONS = 300, FALLBACK_SEED = 123, WORTH = 1 << 24 };
static const double TOLERANCE = 1e-4; /* of the mean variance of the coordinates */

/* ---- which centre is nearest ---- */

/* Whether z is nowhere in the box nearer than `best`: not even in the corner towards z. */
static bool hopeless(const fth_places_node *b, const double z[2], const double best[2])
{
    double corner[2], mine = 0, other = 0;
    for (int d = 0; d < 2; d++) {
        corner[d] = z[d] > best[d] ? b->hi[d] : b->lo[d];
        mine += (z[d] - corner[d]) * (z[d] - corner[d]);
        other += (best[d] - corner[d]) * (best[d] - corner[d]);
    }
    return mine >= other;
}

static int32_t nearest_to(const sp_restart *r, const double at[2], const int32_t *list, int64_t n)
{
    int32_t best = list[0];
    double least = HUGE_VAL;
    for (int64_t i = 0; i < n; i++) {
        const double *z = r->centre[list[i]];
        const double dx = z[0] - at[0], dy = z[1] - at[1], d2 = dx * dx + dy * dy;
        if (d2 < least) least = d2, best = list[i];
    }
    return best;
}

static void take_box(sp_restart *r, const fth_places_node *b, int32_t centre)
{
    r->count[centre] += b->end - b->from;
    for (int d = 0; d < 2; d++) r->sum[centre][d] += b->sum[d];
    for (int64_t i = b->from; r->nearest && i < b->end; i++) r->nearest[i] = centre;
}

static void take_places(sp_restart *r, const fth_places_node *b, const int32_t *list, int64_t n)
{
    for (int64_t i = b->from; i < b->end; i++) {
        const double at[2] = {r->tree->at[i][0], r->tree->at[i][1]};
        const int32_t c = nearest_to(r, at, list, n);
        r->count[c]++;
        for (int d = 0; d < 2; d++) r->sum[c][d] += at[d];
        if (r->nearest) r->nearest[i] = c;
    }
}

static void descend(sp_restart *r, int64_t k, int depth, const int32_t *list, int64_t n)
{
    const fth_places_node *b = &r->tree->node[k];
    int32_t *own = r->candidate + (int64_t)depth * r->opt->k;
    const double middle[2] = {(b->lo[0] + b->hi[0]) / 2, (b->lo[1] + b->hi[1]) / 2};
    const int32_t best = nearest_to(r, middle, list, n);
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++)
        if (list[i] == best || !hopeless(b, r->centre[list[i]], r->centre[best]))
            own[left++] = list[i];
    if (left == 1) {
        take_box(r, b, best);
    } else if (k >= r->tree->first_leaf) {
        take_places(r, b, own, left);
    } else {
        descend(r, 2 * k + 1, depth + 1, own, left);
        descend(r, 2 * k + 2, depth + 1, own, left);
    }
}

static void assign(sp_restart *r, const int32_t *all)
{
    for (int64_t c = 0; c < r->opt->k; c++) {
        r->count[c] = 0;
        r->sum[c][0] = r->sum[c][1] = 0;
    }
    descend(r, 0, 1, all, r->opt->k);
}

/* ---- one restart ---- */

static double distances(sp_restart *r)
{
    double sum = 0;
    for (int64_t i = 0; i < r->tree->n; i++) {
        r->d2[i] = sp_square(r->tree->at[i], r->centre[r->nearest[i]]);
        sum += r->d2[i];
    }
    return sum;
}

/* An empty cluster takes the place farthest from its centre, unless that place is alone in its
 * cluster. */
static void fill_empty(sp_restart *r)
{
    distances(r);
    for (int64_t c = 0; c < r->opt->k; c++) {
        if (r->count[c] > 0) continue;
        int64_t far = -1;
        for (int64_t i = 0; i < r->tree->n; i++)
            if (r->count[r->nearest[i]] > 1 && (far < 0 || r->d2[i] > r->d2[far])) far = i;
        if (far < 0) return;
        const int32_t from = r->nearest[far];
        r->count[from]--;
        r->count[c] = 1;
        r->nearest[far] = (int32_t)c;
        r->d2[far] = 0;
        for (int d = 0; d < 2; d++) {
            r->sum[from][d] -= r->tree->at[far][d];
            r->sum[c][d] = r->tree->at[far][d];
        }
    }
}

static bool any_empty(const sp_restart *r)
{
    for (int64_t c = 0; c < r->opt->k; c++)
        if (r->count[c] == 0) return true;
    return false;
}

/* Moves centres to their means; returns the sum of squared shifts. */
static double move(sp_restart *r)
{
    double shift = 0;
    for (int64_t c = 0; c < r->opt->k; c++)
        for (int d = 0; d < 2; d++) {
            const double mean = r->sum[c][d] / (double)r->count[c];
            shift += (mean - r->centre[c][d]) * (mean - r->centre[c][d]);
            r->centre[c][d] = mean;
        }
    return shift;
}

static double mean_variance(const fth_places *t)
{
    double total = 0;
    for (int d = 0; d < 2; d++) {
        const double mean = t->node[0].sum[d] / (double)t->n;
        for (int64_t i = 0; i < t->n; i++) total += (t->at[i][d] - mean) * (t->at[i][d] - mean);
    }
    return total / (2.0 * (double)t->n);
}

/* ---- all of them ---- */

typedef struct starts {
    sp_kmeans opt; /* with its defaults filled in */
    const fth_places *tree;
    double tolerance;
    int slots; /* restarts in memory at once */
    sp_restart *slot;
    void *memory;
    double *centre;  /* [restarts][k][2] */
    double *inertia; /* [restarts] */
    int64_t *seeded; /* [restarts]: centres found, k where there are enough places */
    atomic_int done;
    atomic_bool cancelled;
    sp_kmeans_graph *device; /* NULL: no device, or not enough memory there */
} starts;

static bool go_on(starts *s, int worker)
{
    if (worker == 0 && s->opt.progress &&
        !s->opt.progress(s->opt.user, (double)atomic_load(&s->done) / s->opt.restarts))
        atomic_store(&s->cancelled, true);
    return !atomic_load(&s->cancelled);
}

static fth_status assign_anywhere(const starts *s, sp_restart *r, fth_err *err)
{
    if (s->device) return sp_kmeans_graph_assign(s->device, r, err);
    assign(r, r->candidate); /* the root's candidates: all centres */
    return FTH_OK;
}

static fth_status lloyd(starts *s, sp_restart *r, int worker, fth_err *err)
{
    int32_t *nearest = r->nearest;
    for (int64_t c = 0; c < s->opt.k; c++) r->candidate[c] = (int32_t)c;
    for (int i = 0; i < s->opt.iterations && go_on(s, worker); i++) {
        r->nearest = NULL;
        const fth_status found = assign_anywhere(s, r, err);
        r->nearest = nearest;
        FTH_TRY(found);
        if (any_empty(r)) {
            FTH_TRY(assign_anywhere(s, r, err));
            fill_empty(r);
        }
        if (move(r) <= s->tolerance) break;
    }
    FTH_TRY(assign_anywhere(s, r, err));
    s->inertia[r->number] = distances(r);
    atomic_fetch_add(&s->done, 1);
    return FTH_OK;
}

/* The memory of one restart, used by this worker alone. */
static sp_restart *slot_of(const starts *s, int64_t number, int worker)
{
    sp_restart *r = &s->slot[s->slots == s->opt.restarts ? number : worker];
    r->number = number;
    r->centre = (double(*)[2])(s->centre + 2 * number * s->opt.k);
    return r;
}

static void restart(void *arg, int64_t number, int worker)
{
    starts *s = arg;
    sp_restart *r = slot_of(s, number, worker);
    if (!go_on(s, worker)) return;
    s->seeded[number] = sp_kmeans_seed(r);
    if (s->seeded[number] == s->opt.k && !s->device) (void)lloyd(s, r, worker, NULL);
}

static fth_status iterate_on_device(starts *s, fth_err *err)
{
    for (int64_t i = 0; s->device && i < s->opt.restarts; i++)
        if (s->seeded[i] == s->opt.k && go_on(s, 0)) FTH_TRY(lloyd(s, slot_of(s, i, 0), 0, err));
    return FTH_OK;
}

static void *carve(char **at, uint64_t bytes)
{
    void *p = *at;
    if (*at) *at += (bytes + 63) / 64 * 64;
    return p;
}

/* Called with NULL for the bytes, then for the pointers. */
static uint64_t layout(sp_restart *r, const fth_places *t, int64_t k, char *base)
{
    const uint64_t n = (uint64_t)t->n, nodes = (uint64_t)t->nodes, K = (uint64_t)k;
    const uint64_t each[] = {sizeof *r->sum * K,
                             sizeof *r->count * K,
                             sizeof *r->d2 * n,
                             sizeof *r->node_sum * nodes,
                             sizeof *r->node_max * nodes,
                             sizeof *r->nearest * n,
                             sizeof *r->candidate * K * (uint64_t)(t->depth + 2)};
    char *at = base;
    r->sum = carve(&at, each[0]);
    r->count = carve(&at, each[1]);
    r->d2 = carve(&at, each[2]);
    r->node_sum = carve(&at, each[3]);
    r->node_max = carve(&at, each[4]);
    r->nearest = carve(&at, each[5]);
    r->candidate = carve(&at, each[6]);
    uint64_t bytes = 0;
    for (int i = 0; i < 7; i++) bytes += (each[i] + 63) / 64 * 64;
    return bytes;
}

static fth_status prepare(starts *s, fth_context *ctx, fth_err *err)
{
    const int restarts = s->opt.restarts, threads = fth_context_threads(ctx);
    const uint64_t K = (uint64_t)s->opt.k, R = (uint64_t)restarts;
    s->slots = threads < restarts ? threads : restarts;
    sp_restart sizes = {0};
    const uint64_t one = layout(&sizes, s->tree, s->opt.k, NULL);
    const uint64_t slots = (sizeof *s->slot * (uint64_t)s->slots + 63) / 64 * 64;
    const uint64_t results = (sizeof(double) * (2 * K + 2) * R + 63) / 64 * 64;
    FTH_TRY(fth_mem_take(fth_context_mem(ctx), FTH_MEM_ANY,
                         slots + results + one * (uint64_t)s->slots, "k-means", &s->memory, err));
    char *at = s->memory;
    s->slot = carve(&at, slots);
    s->centre = carve(&at, results);
    s->inertia = s->centre + 2 * K * R;
    s->seeded = (int64_t *)(void *)(s->inertia + R);
    for (int i = 0; i < s->slots; i++) {
        s->slot[i] = (sp_restart){.tree = s->tree, .opt = &s->opt};
        at += layout(&s->slot[i], s->tree, s->opt.k, at);
    }
    return FTH_OK;
}

/* For a few thousand places launching a device takes longer than the work. Without enough memory on
 * host or device, workers do it. */
static fth_status find_device(starts *s, fth_context *ctx, fth_err *err)
{
    fth_err why = {0};
    if (!fth_context_device_mem(ctx) || s->tree->n < s->opt.worth / s->opt.k) return FTH_OK;
    const fth_status found = sp_kmeans_graph_create(&s->device, ctx, s->tree, s->opt.k, &why);
    if (found == FTH_E_NO_FIT || found == FTH_E_BUDGET) return FTH_OK;
    if (found != FTH_OK && err) *err = why;
    return found;
}

static fth_status judge(const starts *s, float *centre, double *inertia, fth_err *err)
{
    const int64_t k = s->opt.k;
    if (atomic_load(&s->cancelled)) return FTH_FAIL(err, FTH_E_CANCELLED, "k-means was cancelled");
    int best = 0;
    for (int i = 0; i < s->opt.restarts; i++) {
        if (s->seeded[i] < k) {
            const fth_status status =
                FTH_FAIL(err, FTH_E_NUMERIC,
                         "k-means: %lld centres were asked for, but there are only %lld distinct "
                         "positions",
                         (long long)k, (long long)s->seeded[i]);
            fth_err_hint(err, "set model.num_inducing to at most %lld", (long long)s->seeded[i]);
            return status;
        }
        if (s->inertia[i] < s->inertia[best]) best = i;
    }
    for (int64_t i = 0; i < 2 * k; i++) centre[i] = (float)s->centre[2 * k * best + i];
    if (inertia) *inertia = s->inertia[best];
    return FTH_OK;
}

fth_status sp_kmeans_run(float *centre, fth_context *ctx, const float *xy, int64_t n,
                         const sp_kmeans *opt, double *inertia, fth_err *err)
{
    if (opt->k < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "k-means: %lld centres: expected at least 1",
                        (long long)opt->k);
    starts s = {.opt = *opt};
    if (s.opt.restarts <= 0) s.opt.restarts = RESTARTS;
    if (s.opt.iterations <= 0) s.opt.iterations = ITERATIONS;
    if (s.opt.seed == 0) s.opt.seed = FALLBACK_SEED;
    if (s.opt.worth <= 0) s.opt.worth = WORTH;
    fth_places tree;
    FTH_TRY(fth_places_create(&tree, fth_context_mem(ctx), FTH_F32, xy, xy + 1, 2, n, err));
    s.tree = &tree;
    s.tolerance = TOLERANCE * mean_variance(&tree);
    fth_status status = prepare(&s, ctx, err);
    if (status == FTH_OK) status = find_device(&s, ctx, err);
    if (status == FTH_OK)
        status = fth_context_loop(ctx, "k-means", s.opt.restarts, restart, &s, err);
    if (status == FTH_OK) status = iterate_on_device(&s, err);
    if (status == FTH_OK) status = judge(&s, centre, inertia, err);
    sp_kmeans_graph_destroy(s.device);
    fth_mem_release(fth_context_mem(ctx), s.memory, NULL);
    fth_places_clear(&tree);
    return status;
}
