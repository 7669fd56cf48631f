/* pieces.c - see pieces.h. */
#include "trial/pieces.h"

#include "base/hash.h"
#include "mem/heap.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { GUARD = 64, NEAR = 1 << 14 };

int64_t fth__check_draw(uint64_t *seed, int64_t lo, int64_t hi)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return hi <= lo ? lo : lo + (int64_t)(z % (uint64_t)(hi - lo + 1));
}

size_t fth__check_bytes(const fth_desc *d)
{
    return (size_t)(fth_desc_count(d) * fth_dtype_size(d->dtype));
}

fth_relation fth__check_relation(const fth_node *node, int in, int dim)
{
    fth_relation r = {.along = FTH_WHOLE, .out_dim = -1, .mul = 1, .div = 1};
    if (node->op->relation) node->op->relation(node, in, dim, &r);
    return r;
}

/* ---- tiles ---- */

typedef struct box {
    int64_t lo[FTH_MAX_AXES], n[FTH_MAX_AXES];
} box;

/* A tile: a view of a dense array, or a box in a block of its own. */
typedef struct held {
    const fth_desc *desc;
    int64_t size; /* of an element */
    int64_t whole[FTH_MAX_AXES];
    char *full;   /* the dense array behind it; NULL: none (state) */
    char *own;    /* NULL: a view */
    size_t bytes; /* of own */
    uint64_t hash;
    fth_tile tile;
} held;

static box whole_box(const fth_desc *d)
{
    box b = {0};
    for (int i = 0; i < d->n_axes; i++) b.n[i] = d->size[i];
    return b;
}

static void strides(int n, const int64_t *size, int64_t *stride)
{
    int64_t s = 1;
    for (int i = n - 1; i >= 0; i--) {
        stride[i] = s;
        s *= size[i] > 0 ? size[i] : 1;
    }
}

void fth__check_dense(fth_tile *t, const fth_desc *d, void *data)
{
    *t = (fth_tile){.data = data};
    for (int i = 0; i < d->n_axes; i++) t->extent[i] = d->size[i];
    strides(d->n_axes, d->size, t->stride);
}

static void copy(int n, int64_t size, const int64_t *extent, char *to, const int64_t *ts,
                 const char *from, const int64_t *fs)
{
    if (n == 0 || (n == 1 && ts[0] == 1 && fs[0] == 1)) {
        memcpy(to, from, (size_t)(size * (n ? extent[0] : 1)));
        return;
    }
    for (int64_t i = 0; i < extent[0]; i++)
        copy(n - 1, size, extent + 1, to + i * ts[0] * size, ts + 1, from + i * fs[0] * size,
             fs + 1);
}

static bool is_empty(int n, const int64_t *extent)
{
    bool any = false;
    for (int i = 0; i < n; i++) any |= extent[i] == 0;
    return any;
}

static fth_status no_room(fth_err *err, uint64_t bytes)
{
    return FTH_FAIL(err, FTH_E_NOMEM, "the check of an operation needs %llu bytes",
                    (unsigned long long)bytes);
}

/* The part `b` of an array: in place, or in a block of its own with garbage around it. */
static fth_status hold(held *h, fth__trial *t, const fth_desc *d, int64_t size, char *full,
                       const box *b, bool view, uint64_t *seed, fth_err *err)
{
    *h = (held){.desc = d, .size = size, .full = full};
    strides(d->n_axes, d->size, h->whole);
    int64_t at = 0, extent[FTH_MAX_AXES], before[FTH_MAX_AXES], count = 1;
    for (int i = 0; i < d->n_axes; i++) {
        h->tile.extent[i] = b->n[i];
        h->tile.origin[i] = b->lo[i];
        h->tile.stride[i] = h->whole[i];
        at += b->lo[i] * h->whole[i];
    }
    if (view && full) {
        h->tile.data = full + at * size;
        return FTH_OK;
    }
    for (int i = 0; i < d->n_axes; i++) {
        /* a tile lies in a box that is part of the whole value: an axis that it covers is dense.
         * State, with no array behind it, may lie in any box. */
        const int64_t front = full ? b->lo[i] : t->most,
                      behind = full ? d->size[i] - b->lo[i] - b->n[i] : t->most;
        before[i] = fth__check_draw(seed, 0, front < t->most ? front : t->most);
        extent[i] =
            b->n[i] + before[i] + fth__check_draw(seed, 0, behind < t->most ? behind : t->most);
        count *= extent[i] > 0 ? extent[i] : 1;
    }
    strides(d->n_axes, extent, h->tile.stride);
    /* what lies one row before the first element and one behind the last is garbage too */
    const int64_t row = d->n_axes > 0 ? h->tile.stride[0] * size : 0,
                  guard = (GUARD +
                           (!t->thorough ? 0
                            : row < NEAR ? row
                                         : NEAR) +
                           63) /
                          64 * 64;
    int64_t inside = 0;
    for (int i = 0; i < d->n_axes; i++) inside += before[i] * h->tile.stride[i];
    h->bytes = (size_t)(count * size + 2 * guard);
    h->own = fth__heap_alloc(t->mem, h->bytes);
    if (!h->own) return no_room(err, h->bytes);
    memset(h->own, t->garbage, h->bytes);
    h->tile.data = h->own + guard + inside * size;
    if (full && !is_empty(d->n_axes, b->n))
        copy(d->n_axes, size, b->n, h->tile.data, h->tile.stride, full + at * size, h->whole);
    return FTH_OK;
}

static fth__check_span span_of(const held *h)
{
    if (h->own) return (fth__check_span){h->own, h->bytes};
    return (fth__check_span){h->full, (size_t)(fth_desc_count(h->desc) * h->size)};
}

/* Bytes of a line of garbage and of the tile's own are compared without a copy of the block. */
static bool is_garbage(const char *p, int64_t n, int garbage)
{
    if (n <= 0) return true;
    return (unsigned char)p[0] == (unsigned char)garbage && memcmp(p, p + 1, (size_t)n - 1) == 0;
}

/* From `*at` on, up to the lines of dimension `dim` at `p`, everything is garbage; moves on. */
static bool lines_ok(const held *h, int dim, const char *p, const char **at, int garbage)
{
    const int n = h->desc->n_axes;
    if (dim >= n - 1) {
        const bool ok = p < *at || is_garbage(*at, p - *at, garbage);
        *at = p + h->size * (n > 0 ? h->tile.extent[n - 1] : 1);
        return ok;
    }
    for (int64_t i = 0; i < h->tile.extent[dim]; i++)
        if (!lines_ok(h, dim + 1, p + i * h->tile.stride[dim] * h->size, at, garbage)) return false;
    return true;
}

static fth_status outside(const fth_node *node, const char *what, int k, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                    "operation '%.40s': it writes outside the tile of %s %d", node->op->name, what,
                    k);
}

/* Nothing but the tile itself may differ from the garbage around it. */
static fth_status check_around(const held *h, const fth__trial *t, const char *what, int k,
                               fth_err *err)
{
    if (!h->own) return FTH_OK;
    const char *at = h->own;
    bool ok = true;
    if (!is_empty(h->desc->n_axes, h->tile.extent))
        ok = lines_ok(h, 0, h->tile.data, &at, t->garbage);
    ok = ok && is_garbage(at, h->own + h->bytes - at, t->garbage);
    return ok ? FTH_OK : outside(t->node, what, k, err);
}

static void put_back(const held *h)
{
    if (!h->own || is_empty(h->desc->n_axes, h->tile.extent)) return;
    int64_t at = 0;
    for (int i = 0; i < h->desc->n_axes; i++) at += h->tile.origin[i] * h->whole[i];
    copy(h->desc->n_axes, h->size, h->tile.extent, h->full + at * h->size, h->whole, h->tile.data,
         h->tile.stride);
}

static void let_go(fth__trial *t, held *h)
{
    fth__heap_free(t->mem, h->own);
    h->own = NULL;
}

/* ---- one call ---- */

static fth_status check_asked(const fth__trial *t, const fth_call *call, uint64_t *bytes,
                              fth_err *err)
{
    const fth_op *op = t->node->op;
    fth_call probe = *call; /* while planning there are no data */
    for (int i = 0; i < FTH_MAX_IN; i++) probe.in[i].data = NULL;
    for (int k = 0; k < FTH_MAX_OUT; k++) probe.out[k].data = probe.state[k].data = NULL;
    *bytes = t->scratch ? t->scratch(&probe) : 0;
    const uint64_t again = t->scratch ? t->scratch(&probe) : 0;
    if (again != *bytes)
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': scratch asks for %llu bytes, and for %llu when asked "
                        "again for the same call",
                        op->name, (unsigned long long)*bytes, (unsigned long long)again);
    const double flops = op->flops ? op->flops(&probe) : 0.0;
    if (!isfinite(flops) || flops < 0.0)
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': flops gives %g; it is finite and not negative",
                        op->name, flops);
    return FTH_OK;
}

fth_status fth__check_call(fth__trial *t, fth_call *call, fth_err *err)
{
    uint64_t bytes;
    call->threads = t->team ? t->threads : 1;
    call->team = t->team;
    FTH_TRY(check_asked(t, call, &bytes, err));
    const uint64_t all = bytes + 2 * GUARD;
    char *block = fth__heap_alloc(t->mem, all + GUARD);
    if (!block) return no_room(err, all);
    char *base = block + (GUARD - (uintptr_t)block % GUARD) % GUARD; /* aligned to 64 */
    memset(base, t->garbage, all);
    fth_err own = {0};
    call->err = &own;
    call->scratch = bytes ? base : NULL;
    fth_status s = t->run(call);
    if (s != FTH_OK && own.status != s)
        own = (fth_err){0},
        (void)FTH_FAIL(&own, s, "operation '%.40s' failed without a message", t->node->op->name);
    if (s != FTH_OK && err) *err = own;
    if (s == FTH_OK && !is_garbage(base + bytes, 2 * GUARD, t->garbage))
        s = FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                     "operation '%.40s': it writes behind the %llu bytes that scratch asked for",
                     t->node->op->name, (unsigned long long)bytes);
    fth__heap_free(t->mem, block);
    return s;
}

/* ---- which part of what ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

/* The elements of an input axis that [a, b) of the output needs. */
static void follow(const fth_relation *r, int64_t size, int64_t a, int64_t b, int64_t *lo,
                   int64_t *n)
{
    if (r->along == FTH_HALO) {
        a = floor_div(a * r->mul, r->div) - r->lo;
        b = -floor_div(-b * r->mul, r->div) + r->hi;
    }
    if (r->along == FTH_COLLECT) {
        a = r->row_ptr[a];
        b = r->row_ptr[b];
    }
    if (r->along == FTH_SPREAD) { /* rows that own one of these entries */
        const int64_t first = a, end = b;
        for (a = 0; a < size && r->row_ptr[a + 1] <= first;) a++;
        for (b = a; b < size && first < end && r->row_ptr[b] < end;) b++;
    }
    a = a < 0 ? 0 : a > size ? size : a;
    b = b < a ? a : b > size ? size : b;
    *lo = a;
    *n = b - a;
}

static box input_box(const fth__trial *t, int in, const box *out, int64_t sum_lo, int64_t sum_hi)
{
    const fth_desc *d = &t->node->in[in];
    box b = whole_box(d);
    for (int i = 0; i < d->n_axes; i++) {
        const fth_relation r = fth__check_relation(t->node, in, i);
        if (r.along == FTH_ACCUMULATE && d->axis[i] == t->sum_axis) {
            b.lo[i] = sum_lo;
            b.n[i] = sum_hi - sum_lo;
        } else if (r.along != FTH_WHOLE && r.along != FTH_ACCUMULATE) {
            const int o = r.out_dim;
            follow(&r, d->size[i], out->lo[o], out->lo[o] + out->n[o], &b.lo[i], &b.n[i]);
        }
    }
    return b;
}

/* Axes of a further output are cut with the axes of the same name of out[0]. `once`: the state, of
 * whose carried axis there is one element. */
static box output_box(const fth__trial *t, int k, const box *out, bool once)
{
    const fth_desc *d = &t->node->out[k], *first = &t->node->out[0];
    box b = whole_box(d);
    for (int i = 0; i < d->n_axes; i++) {
        const int o = fth_desc_find(first, d->axis[i]);
        if (o < 0) continue;
        b.lo[i] = once && o == t->carry ? 0 : out->lo[o];
        b.n[i] = once && o == t->carry ? 1 : out->n[o];
    }
    return b;
}

/* ---- pieces ---- */

/* What is there for one piece of the output. */
typedef struct piece {
    fth_desc carried[FTH_MAX_OUT];
    held out[FTH_MAX_OUT], state[FTH_MAX_OUT], in[FTH_MAX_IN];
    fth_call call;
    uint64_t seed;
} piece;

/* Inputs that are views may be the caller's only copy: they are as before. */
static fth_status check_inputs(const fth__trial *t, const piece *p, fth_err *err)
{
    for (int i = 0; i < t->node->n_in; i++) {
        const held *h = &p->in[i];
        const fth__check_span s = span_of(h);
        if (h->hash && fth__hash_bytes(s.base, s.bytes, 1) != h->hash)
            return FTH_FAIL(err, FTH_E_GRAPH_PROMISE, "operation '%.40s': it changes its input %d",
                            t->node->op->name, i);
    }
    return FTH_OK;
}

static fth_status call_once(fth__trial *t, piece *p, const box *out, int64_t sum_lo, int64_t sum_hi,
                            fth_err *err)
{
    const fth_node *node = t->node;
    fth_call *call = &p->call;
    fth_status s = FTH_OK;
    int made = 0;
    for (; made < node->n_in && s == FTH_OK; made++) {
        const box b = input_box(t, made, out, sum_lo, sum_hi);
        const bool view = t->views || (t->mixed && fth__check_draw(&p->seed, 0, 3) == 0);
        s = hold(&p->in[made], t, &node->in[made], fth_dtype_size(node->in[made].dtype),
                 t->in[made], &b, view, &p->seed, err);
        call->in[made] = p->in[made].tile;
        const fth__check_span lies = span_of(&p->in[made]);
        /* whole arrays for every piece take as long as all else: where nothing is left out, alone
         */
        const bool looks = t->thorough || p->in[made].own;
        if (s == FTH_OK && looks && !t->crowd && !t->updates)
            p->in[made].hash = fth__hash_bytes(lies.base, lies.bytes, 1);
    }
    for (int k = 0; k < node->n_out; k++) {
        call->out[k] = p->out[k].tile;
        if (!t->want[k]) call->out[k].data = NULL;
        call->state[k] = p->state[k].tile;
    }
    if (s == FTH_OK && t->elsewhere) {
        fth__check_span in[FTH_MAX_IN], outs[FTH_MAX_OUT], state[FTH_MAX_OUT];
        for (int i = 0; i < node->n_in; i++) in[i] = span_of(&p->in[i]);
        for (int k = 0; k < node->n_out; k++) {
            outs[k] = span_of(&p->out[k]);
            state[k] = span_of(&p->state[k]);
        }
        call->err = err;
        s = t->elsewhere(t->self, call, in, outs, state);
    } else if (s == FTH_OK) {
        s = fth__check_call(t, call, err);
    }
    if (s == FTH_OK) s = check_inputs(t, p, err);
    for (int i = 0; i < made; i++) let_go(t, &p->in[i]);
    return s;
}

static fth_status hold_outputs(fth__trial *t, piece *p, const box *now, fth_err *err)
{
    for (int k = 0; k < t->node->n_out; k++) {
        const fth_desc *d = &t->node->out[k];
        const box b = output_box(t, k, now, false);
        const bool view = t->views || (t->mixed && fth__check_draw(&p->seed, 0, 3) == 0);
        FTH_TRY(
            hold(&p->out[k], t, d, fth_dtype_size(d->dtype), t->out[k], &b, view, &p->seed, err));
        /* nothing of what an output held before may be seen */
        if (p->out[k].own) memset(p->out[k].own, t->garbage, p->out[k].bytes);
    }
    return FTH_OK;
}

static fth_status give_outputs(fth__trial *t, piece *p, bool good, fth_err *err)
{
    fth_status s = FTH_OK;
    for (int k = 0; k < t->node->n_out; k++) {
        if (good && s == FTH_OK) s = check_around(&p->out[k], t, "output", k, err);
        if (good && s == FTH_OK && t->want[k]) put_back(&p->out[k]);
        let_go(t, &p->out[k]);
    }
    return s;
}

static fth_status hold_state(fth__trial *t, piece *p, const box *out, fth_err *err)
{
    for (int k = 0; k < t->node->n_out; k++) {
        const uint64_t element = fth__node_state(t->node, k);
        const int once = fth__out_dim(t->node, k, t->carry);
        p->carried[k] = t->node->out[k];
        if (once >= 0) p->carried[k].size[once] = 1;
        const box b = output_box(t, k, out, true);
        FTH_TRY(hold(&p->state[k], t, &p->carried[k], (int64_t)element, NULL, &b, false, &p->seed,
                     err));
        if (element == 0 && !t->elsewhere) p->state[k].tile.data = NULL;
    }
    return FTH_OK;
}

/* One piece of the output: all pieces of a carried or accumulated axis in order. */
static fth_status run_turns(fth__trial *t, piece *p, const box *out, fth_err *err)
{
    const bool carry = t->carry >= 0;
    const fth__check_cuts *turn = carry ? &t->axis[t->carry] : &t->sum;
    fth_status s = hold_state(t, p, out, err);
    for (int i = 0; i < turn->n && s == FTH_OK; i++) {
        box now = *out;
        if (carry) {
            now.lo[t->carry] = turn->at[i];
            now.n[t->carry] = turn->at[i + 1] - turn->at[i];
        }
        const bool last = i + 1 == turn->n;
        if (i == 0 || carry) s = hold_outputs(t, p, &now, err);
        p->call = (fth_call){.node = t->node, .first = i == 0, .last = last};
        if (s == FTH_OK)
            s = call_once(t, p, &now, carry ? 0 : turn->at[i], carry ? 0 : turn->at[i + 1], err);
        if (carry || last || s != FTH_OK) {
            const fth_status gave = give_outputs(t, p, s == FTH_OK, err);
            if (s == FTH_OK) s = gave;
        }
    }
    for (int k = 0; k < t->node->n_out; k++) {
        if (s == FTH_OK && p->state[k].tile.data)
            s = check_around(&p->state[k], t, "the state of output", k, err);
        let_go(t, &p->state[k]);
    }
    return s;
}

typedef struct pieces {
    fth__trial *t;
    int64_t n, step;
    atomic_int_fast64_t calls, failed; /* 1 + the first piece that failed */
    fth_err *err;
    pthread_mutex_t lock;
} pieces;

static void run_piece(void *arg, int64_t i, int worker)
{
    pieces *w = arg;
    fth__trial *t = w->t;
    int64_t at = i * w->step % w->n; /* in any order */
    fth_err err = {0};
    (void)worker;
    if (atomic_load(&w->failed)) return;
    piece *p = fth__heap_alloc(t->mem, sizeof *p);
    fth_status s = p ? FTH_OK : no_room(&err, sizeof *p);
    if (p) p->seed = t->seed * 1009 + (uint64_t)at;
    box b = whole_box(&t->node->out[0]);
    for (int d = t->node->out[0].n_axes - 1; d >= 0; d--) {
        if (d == t->carry) continue;
        const int64_t k = at % t->axis[d].n;
        at /= t->axis[d].n;
        b.lo[d] = t->axis[d].at[k];
        b.n[d] = t->axis[d].at[k + 1] - b.lo[d];
    }
    if (s == FTH_OK) s = run_turns(t, p, &b, &err);
    fth__heap_free(t->mem, p);
    if (s == FTH_OK) return;
    pthread_mutex_lock(&w->lock);
    if (!atomic_load(&w->failed) && w->err) *w->err = err;
    atomic_store(&w->failed, s);
    pthread_mutex_unlock(&w->lock);
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* Pieces run at once only where no two of them make the same elements. */
static bool are_apart(const fth__trial *t)
{
    for (int k = 1; k < t->node->n_out; k++)
        for (int d = 0; d < t->node->out[0].n_axes; d++)
            if (t->axis[d].n > 1 && fth__out_dim(t->node, k, d) < 0) return false;
    return true;
}

fth_status fth__trial_run(fth__trial *t, fth_err *err)
{
    pieces w = {.t = t, .n = 1, .step = 1, .err = err, .lock = PTHREAD_MUTEX_INITIALIZER};
    for (int d = 0; d < t->node->out[0].n_axes; d++)
        if (d != t->carry) w.n *= t->axis[d].n;
    w.step = fth__check_draw(&t->seed, 1, w.n);
    while (gcd(w.step, w.n) != 1) w.step++;
    if (t->crowd && are_apart(t))
        fth_team_run(t->crowd, w.n, run_piece, &w);
    else
        for (int64_t i = 0; i < w.n; i++) run_piece(&w, i, 0);
    t->calls += w.n * (t->carry >= 0 ? t->axis[t->carry].n : t->sum.n);
    pthread_mutex_destroy(&w.lock);
    return (fth_status)atomic_load(&w.failed);
}
