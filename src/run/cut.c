/* cut.c - long kernel calls, cut so that a run can be cancelled inside a step.
 *
 * A call that would take long is halved along the outermost dimension that can be cut, and so are
 * its halves. Where a step is cut never changes its bits: pieces lie on the grid of the operation,
 * as those of workers do. How long a call takes is guessed from its work, and the guess follows the
 * calls that were timed.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "ops/build.h"
#include "run/run.h"
#include "run/team.h"

#include <stdatomic.h>

/* A tile takes at most this long, if it can be cut, half of it at least. Before
 * anything is known, a kernel may be this much slower than guessed, and an operation's own loop any
 * time: its first tile is a sixty-fourth. Both only size the first tile; later ones follow the
 * clock. */
static const double tile_seconds = 0.05, unknown_pace = 8.0;
enum { FIRST_TILE = 64 };
/* Pieces of rows that are shorter than this bring most lines of memory again for every piece:
 * columns of a reduction, which its kernel takes at once. Sixteen f32 in halves took 1.9 times as
 * long. */
enum { NARROW = 1024 };

static uint64_t tile_bytes(const fth_desc *d, const fth_tile *t)
{
    uint64_t bytes = (uint64_t)fth_dtype_size(d->dtype);
    for (int i = 0; i < d->n_axes; i++) bytes *= (uint64_t)t->extent[i];
    return bytes;
}

/* Seconds on a slow core. */
static double guess(const fth__unit *u, const fth_call *call)
{
    const fth_node *n = u->node;
    uint64_t bytes = 0;
    for (int k = 0; k < n->n_in; k++) bytes += tile_bytes(&n->in[k], &call->in[k]);
    for (int o = 0; o < n->n_out; o++) bytes += tile_bytes(&n->out[o], &call->out[o]);
    return fth__work_seconds(fth__unit_flops(u, call), (double)bytes) + 1e-7; /* never 0 */
}

/* What is to be computed: a call, or what is left of one. */
typedef struct work {
    fth_call call;
    double share; /* of the step */
} work;

static void add_share(fth__way *way, double share)
{
    (void)atomic_fetch_add_explicit(&way->done, (int64_t)(share * (double)FTH__WAY),
                                    memory_order_relaxed);
}

static fth_status run_kernel(fth__tiles *t, const work *w, double guessed, int worker)
{
    const fth__unit *u = t->unit;
    const fth_call *call = &w->call;
    fth__way *own = worker == 0 ? t->way : NULL;
    if (own) {
        fth__team_begin(call->team);
        own->team = call->team;
        own->call = w->share;
    }
    const double t0 = fth__clock_seconds();
    const fth_status s = u->kernel ? u->kernel->run(call) : u->node->op->run(call);
    const double took = fth__clock_seconds() - t0;
    atomic_store_explicit(&t->pace, took / guessed, memory_order_relaxed);
    if (own) own->call = 0.0;
    if (t->way) add_share(t->way, w->share);
    return s;
}

/* Where a call is cut in two: `at` of dimension `dim` of output 0. */
typedef struct cut {
    int dim;
    int64_t at, extent;
} cut;

/* `part` becomes the first or second half of the call. */
static void take_half(const fth__tiles *t, const fth_call *call, const cut *c, bool second,
                      fth_call *part)
{
    if (part != call) *part = *call;
    if (second)
        fth__call_piece(t->unit, part, c->dim, c->at, c->extent - c->at);
    else
        fth__call_piece(t->unit, part, c->dim, 0, c->at);
}

/* The first half of a call; false: it cannot be cut, or a half wants more workspace than there is.
 */
static bool halve(const fth__tiles *t, const fth_call *call, cut *c, fth_call *first)
{
    const fth__unit *u = t->unit;
    if (fth__unit_flags(u) & FTH_OP_NO_SPLIT) return false;
    for (c->dim = 0; c->dim < u->node->out[0].n_axes; c->dim++) {
        int64_t grid;
        const int64_t n = fth__call_pieces(u, call, c->dim, &grid);
        if (n < 2) continue;
        c->at = n / 2 * grid;
        c->extent = call->out[0].extent[c->dim];
        FTH_ASSERT(c->at > 0 && c->at < c->extent);
        take_half(t, call, c, true, first);
        if (fth__unit_scratch(u, first) > t->scratch_bytes) return false;
        take_half(t, call, c, false, first);
        return fth__unit_scratch(u, first) <= t->scratch_bytes;
    }
    return false;
}

/* A reduction asks by itself whether to go on, if it may, so its rows can stay whole: they come
 * faster. */
static bool is_asking(const fth__unit *u, const fth_call *call)
{
    if (!call->team || !u->kernel || u->node->op != &fth__op_fused) return false;
    const fth__program *pr = u->node->attr;
    return pr->tail_dim >= 0 && pr->inner_red == 0;
}

/* Bytes of a row of an input that a cut must leave. What a kernel's guess is wrong by is no worse
 * than what narrow pieces cost. */
static int64_t least_row(const fth__unit *u, const fth_call *call, double guessed)
{
    if (is_asking(u, call)) return INT64_MAX;
    return u->kernel && guessed <= tile_seconds ? NARROW : 0;
}

static bool is_short(const fth__tiles *t, double guessed, double whole)
{
    const double pace = atomic_load_explicit(&t->pace, memory_order_relaxed);
    if (pace <= 0.0 && !t->unit->kernel) return guessed * FIRST_TILE <= whole;
    return guessed * (pace > 0.0 ? pace : unknown_pace) <= tile_seconds;
}

/* `whole`: guessed seconds of the call that this one is a part of. What is left of the call stays
 * where it is: a call is large, and stacks are not. */
static fth_status run_part(fth__tiles *t, work *rest, double whole, int worker)
{
    for (;;) {
        if (worker == 0 ? !fth__team_goes_on(t->team) : fth__team_off(t->team))
            return FTH_E_CANCELLED;
        const double guessed = guess(t->unit, &rest->call);
        work first;
        cut c;
        if (is_short(t, guessed, whole) || !halve(t, &rest->call, &c, &first.call))
            return run_kernel(t, rest, guessed, worker);
        if (fth__piece_is_narrow(t->unit, &first.call, c.dim,
                                 least_row(t->unit, &rest->call, guessed)))
            return run_kernel(t, rest, guessed, worker);
        const double share = rest->share * (double)c.at / (double)c.extent;
        first.share = share;
        FTH_TRY(run_part(t, &first, whole, worker));
        take_half(t, &rest->call, &c, true, &rest->call);
        rest->share -= share;
    }
}

fth_status fth__run_tiles(fth__tiles *t, const fth_call *call, double share, int worker)
{
    work all = {*call, share};
    if (call->device) return run_kernel(t, &all, 1.0, worker); /* queued, not run */
    return run_part(t, &all, guess(t->unit, call), worker);
}
