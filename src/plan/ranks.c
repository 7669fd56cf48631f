/* ranks.c - which passes several ranks share, where they meet, and what that takes.
 *
 * A pass is cut between ranks where the running values of all its sums can be joined again to the
 * same bits: at superblocks. Each rank keeps one partial result per superblock of its part; after
 * the pass they are joined in order, and what was made piece by piece is collected. A pass with
 * something that cannot be joined is done by every rank, whole.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "plan/plan.h"

#include <math.h>

/* Round figures, which fathom/plan.h states: a byte at 1 GB/s, and a message of none. */
static const double byte_seconds = 1e-9, message_seconds = 2e-5;

/* Rows that are short are collected in messages of this size: a hundred times as long under way as
 * a message of no bytes takes, by the figures above. */
enum { EXCHANGE_BYTES = 2 << 20 };

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + FTH__ALIGN - 1) / FTH__ALIGN * FTH__ALIGN;
}

/* ---- who has what ---- */

int64_t fth__sweep_unit(const fth__sweep *l)
{
    FTH_ASSERT(l->share == 0 || l->share % l->chunk == 0);
    return l->share > 0 ? l->share / l->chunk : 1;
}

int64_t fth__sweep_units(const fth__sweep *l)
{
    return fth__ceil_div_i64(l->n_chunks, fth__sweep_unit(l));
}

fth__range fth__sweep_of_rank(const fth__sweep *l, int rank, int ranks)
{
    if (!l->shared) return (fth__range){0, l->n_chunks};
    const int64_t unit = fth__sweep_unit(l), units = fth__sweep_units(l);
    const int64_t each = units / ranks, more = units % ranks;
    const int64_t lo = rank * each + fth__min_i64(rank, more), hi = lo + each + (rank < more);
    return (fth__range){fth__min_i64(lo * unit, l->n_chunks), fth__min_i64(hi * unit, l->n_chunks)};
}

/* Part of the pass that the busiest rank does. */
static double busiest(const fth_plan *p, const fth__sweep *l)
{
    const fth__range mine = fth__sweep_of_rank(l, 0, p->ranks);
    return l->n_chunks > 0 ? (double)(mine.hi - mine.lo) / (double)l->n_chunks : 1.0;
}

const fth__sweep *fth__item_pass(const fth_plan *p, const fth__item *it)
{
    int path[FTH__MAX_DEPTH];
    return fth__sweep_path(p, it->loop, path) > 0 ? &p->loop[path[0]] : NULL;
}

static const fth__sweep *buf_pass(const fth_plan *p, const fth__buf *b)
{
    int path[FTH__MAX_DEPTH];
    return fth__sweep_path(p, b->owner_loop, path) > 0 ? &p->loop[path[0]] : NULL;
}

double fth__plan_part(const fth_plan *p, const fth__sweep *pass)
{
    return pass && pass->shared ? busiest(p, pass) : 1.0;
}

/* ---- whether a pass can be shared ---- */

static bool refuse(fth__sweep *l, const fth__item *it, const char *why)
{
    l->shared = false;
    l->alone = why;
    l->alone_unit = it ? it->unit : -1;
    return false;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

bool fth__unit_may_join(const fth__unit *u, fth_axis_id axis)
{
    const fth_node *n = u->node;
    for (int k = 0; k < n->n_in; k++)
        for (int d = 0; d < n->in[k].n_axes; d++)
            if (u->rel[k][d].along == FTH_ACCUMULATE && n->in[k].axis[d] == axis)
                return n->op->join && n->op->join->grain(n, k, d) >= 0;
    return false;
}

/* The driver's last chunk has the end of the axis, however long that is: no more of it than one
 * superblock, because a rank keeps one partial for each that the driver has. */
static bool ends_together(const fth__sweep *l, const fth__map *m, int64_t size, int64_t g)
{
    const int64_t grain = g * m->den / m->num, last = (l->size - 1) / grain * grain;
    return size - (last * m->num / m->den + m->off) <= g;
}

/* The grain of a sum in elements of the driver; 0: parts of any length; -1: it has none, and *why.
 */
static int64_t driver_grain(const fth__sweep *l, const fth__unit *u, const char **why)
{
    const fth_node *n = u->node;
    *why = "is summed in one piece";
    for (int k = 0; n->op->join && k < n->n_in; k++)
        for (int d = 0; d < n->in[k].n_axes; d++) {
            const fth__map *m = &l->map[n->in[k].axis[d]];
            const int64_t size = n->in[k].size[d];
            if (u->rel[k][d].along != FTH_ACCUMULATE || !m->in) continue;
            const int64_t g = n->op->join->grain(n, k, d);
            if (g <= 0) return g;
            if (m->row_ptr || m->off % g != 0 || g * m->den % m->num != 0 || g >= size) return -1;
            if (ends_together(l, m, size, g)) return g * m->den / m->num;
            *why = "sums an axis that goes on behind the end of the one that is cut";
            return -1;
        }
    return -1;
}

static bool share_sum(fth__sweep *l, fth__item *it, const fth__unit *u)
{
    const char *why;
    const int64_t g = driver_grain(l, u, &why);
    if (g < 0) return refuse(l, it, why);
    it->joined = true;
    it->grain = g;
    if (g == 0) return true;
    l->join = gcd(l->join, g);
    const int64_t share = l->share > 0 ? l->share / gcd(l->share, g) * g : g;
    if (share >= l->size || l->join % l->grid != 0)
        return refuse(l, it, "has superblocks that do not go with those of other sums");
    l->share = share;
    return true;
}

int fth__item_shared_dim(const fth_plan *p, const fth__item *it, int o)
{
    const fth_node *n = p->unit[it->unit].node;
    return it->sdim[0] < 0 ? -1 : fth_desc_find(&n->out[o], n->out[0].axis[it->sdim[0]]);
}

bool fth__item_outlives(const fth_plan *p, const fth__item *it, int o)
{
    const fth__buf *b = &p->buf[it->out[o]];
    return b->kind != FTH__BUF_ARENA || b->owner_loop < 0;
}

static bool share_step(const fth_plan *p, fth__sweep *l, fth__item *it)
{
    const fth__unit *u = &p->unit[it->unit];
    const fth_node *n = u->node;
    for (int k = 0; k < n->n_in; k++)
        for (int d = 0; d < n->in[k].n_axes; d++)
            if (u->rel[k][d].along == FTH_CARRY && l->map[n->in[k].axis[d]].in)
                return refuse(l, it, "carries a state from chunk to chunk");
    if (it->acc == 0) return share_sum(l, it, u);
    for (int o = 0; o < n->n_out; o++) {
        if (!fth__item_outlives(p, it, o)) continue;
        const fth__buf_kind kind = p->buf[it->out[o]].kind;
        if (kind != FTH__BUF_ARENA && kind != FTH__BUF_DIRECT)
            return refuse(l, it, "changes parameters where they lie");
        if (fth__item_shared_dim(p, it, o) < 0)
            return refuse(l, it, "makes all of a value in every chunk");
    }
    return true;
}

static bool can_share(const fth_plan *p, fth__sweep *l)
{
    l->join = l->share = 0;
    l->shared = true;
    if (l->begin >= p->late) return refuse(l, NULL, "parameters are changed in it");
    for (int t = l->begin + 1; t < l->end; t++)
        if (p->item[t].kind == FTH__STEP && !share_step(p, l, &p->item[t])) return false;
    return true;
}

/* A buffer of bytes that is set by size_shares. */
static fth_status add_room(fth_plan *p, const char *role, uint32_t value, int *out, fth_err *err)
{
    FTH_TRY(fth__plan_add_buf(p, FTH__BUF_ARENA, value, -1, out, err));
    p->buf[*out].desc = (fth_desc){0};
    p->buf[*out].element = 0;
    p->buf[*out].role = role;
    return FTH_OK;
}

static fth_status add_rooms(fth_plan *p, fth__sweep *l, fth_err *err)
{
    int buf;
    for (int t = l->begin + 1; t < l->end; t++) {
        if (p->item[t].kind != FTH__STEP || !p->item[t].joined) continue;
        const fth_node *n = p->unit[p->item[t].unit].node;
        FTH_TRY(add_room(p, "(partials)", n->out_val[0].id, &buf, err));
        p->item[t].partial = buf;
    }
    FTH_TRY(add_room(p, "(exchange)", p->out_value[0], &buf, err));
    p->item[l->end].scratch = buf;
    return FTH_OK;
}

fth_status fth__plan_share(fth_plan *p, fth_err *err)
{
    for (int64_t i = 0; p->sharing && i < p->n_loops; i++) {
        fth__sweep *l = &p->loop[i];
        if (l->depth > 0) continue;
        if (can_share(p, l)) {
            FTH_TRY(add_rooms(p, l, err));
            continue;
        }
        for (int t = l->begin + 1; t < l->end; t++) p->item[t].joined = false;
        l->join = l->share = 0;
    }
    return FTH_OK;
}

/* ---- bytes ---- */

uint64_t fth__node_partial(const fth_node *n, int o)
{
    const fth_join *join = n->op->join;
    const bool state = o >= n->n_out;
    FTH_ASSERT(join && o < 2 * n->n_out);
    if (state) o -= n->n_out;
    if (join->in_state && join->in_state(n, o) != state) return 0;
    const uint64_t element =
        state ? fth__node_state(n, o) : (uint64_t)fth_dtype_size(n->out[o].dtype);
    return (uint64_t)fth_desc_count(&n->out[o]) * element;
}

uint64_t fth__item_partial_bytes(const fth_plan *p, const fth__item *it)
{
    const fth_node *n = p->unit[it->unit].node;
    uint64_t bytes = 0;
    for (int o = 0; o < 2 * n->n_out; o++) bytes += round_up(fth__node_partial(n, o));
    return bytes;
}

/* Partials of the busiest rank. */
static int64_t slots(const fth_plan *p, const fth__sweep *l, const fth__item *it)
{
    if (it->grain == 0) return 1;
    const fth__range most = fth__sweep_of_rank(l, 0, p->ranks);
    return fth__ceil_div_i64((most.hi - most.lo) * l->chunk, it->grain);
}

static uint64_t whole_bytes(const fth__buf *b)
{
    return (uint64_t)fth_desc_count(&b->desc) * (uint64_t)b->element;
}

static bool is_tile_of(const fth_plan *p, const fth__buf *b, const fth__sweep *l)
{
    return b->kind == FTH__BUF_ARENA && b->output >= 0 && buf_pass(p, b) == l;
}

/* Tiles on their way to a sink take two blocks in turns; rows that are collected, one. */
static uint64_t exchange_room(const fth_plan *p, const fth__sweep *l)
{
    uint64_t tile = 0, rows = 0;
    for (int64_t i = 0; i < p->n_bufs; i++)
        if (is_tile_of(p, &p->buf[i], l) && p->buf[i].bytes > tile) tile = p->buf[i].bytes;
    for (int t = l->begin + 1; t < l->end; t++) {
        const fth__item *it = &p->item[t];
        const int n_out = it->kind == FTH__STEP ? p->unit[it->unit].node->n_out : 0;
        for (int o = 0; !it->joined && o < n_out; o++)
            if (fth__item_outlives(p, it, o) && fth__item_shared_dim(p, it, o) > 0)
                rows = fth__max_u64(
                    rows, fth__min_u64(whole_bytes(&p->buf[it->out[o]]), (uint64_t)EXCHANGE_BYTES));
    }
    return fth__max_u64(2 * round_up(tile), round_up(rows));
}

void fth__plan_size_shares(fth_plan *p)
{
    for (int64_t i = 0; i < p->n_loops; i++) {
        const fth__sweep *l = &p->loop[i];
        if (!l->shared) continue;
        for (int t = l->begin + 1; t < l->end; t++) {
            const fth__item *it = &p->item[t];
            if (it->partial >= 0)
                p->buf[it->partial].bytes =
                    (uint64_t)slots(p, l, it) * fth__item_partial_bytes(p, it);
        }
        p->buf[p->item[l->end].scratch].bytes = exchange_room(p, l);
    }
}

/* ---- what is said of it ---- */

/* What the exchange after one step's pass costs a rank. */
static void add_step(const fth_plan *p, const fth__item *it, fth__exchange *x)
{
    const double hops = (double)p->ranks, spread = ceil(log2((double)p->ranks));
    const fth_node *n = p->unit[it->unit].node;
    if (it->joined) { /* from rank to rank, then to all */
        const uint64_t one = fth__item_partial_bytes(p, it);
        x->bytes += 3 * one;
        x->seconds += (hops + spread) * (message_seconds + (double)one * byte_seconds);
    }
    for (int o = 0; !it->joined && o < n->n_out; o++) {
        if (!fth__item_outlives(p, it, o)) continue;
        const uint64_t all = whole_bytes(&p->buf[it->out[o]]);
        x->bytes += all;
        x->seconds += hops * message_seconds + spread * (double)all * byte_seconds;
    }
}

fth__exchange fth__sweep_exchange(const fth_plan *p, const fth__sweep *l)
{
    fth__exchange x = {0};
    if (!l->shared) return x;
    for (int t = l->begin + 1; t < l->end; t++)
        if (p->item[t].kind == FTH__STEP) add_step(p, &p->item[t], &x);
    for (int64_t i = 0; i < p->n_bufs; i++) {
        if (!is_tile_of(p, &p->buf[i], l)) continue;
        const uint64_t all = whole_bytes(&p->buf[i]);
        x.bytes += all;
        x.seconds += (double)l->n_chunks * 2.0 * message_seconds + (double)all * byte_seconds;
    }
    return x;
}

void fth__plan_share_info(const fth_plan *p, fth_plan_info *out)
{
    double all = 0.0, shared = 0.0;
    out->ranks = p->ranks;
    out->most_parts = 1;
    for (int64_t i = 0; i < p->n_items; i++) {
        const fth__item *it = &p->item[i];
        const double work = fth__work_seconds(it->flops, (double)it->moved);
        const fth__sweep *pass = fth__item_pass(p, it);
        all += work;
        if (pass && pass->shared) shared += work;
        out->seconds_together += work * fth__plan_part(p, pass);
    }
    for (int64_t i = 0; i < p->n_loops; i++) {
        const fth__exchange x = fth__sweep_exchange(p, &p->loop[i]);
        out->shared_passes += p->loop[i].shared;
        if (p->loop[i].shared)
            out->most_parts = fth__max_i64(out->most_parts, fth__sweep_units(&p->loop[i]));
        out->exchanged_bytes += x.bytes;
        out->seconds_together += x.seconds;
    }
    out->seconds_alone = all;
    out->shared_fraction = all > 0.0 ? shared / all : 0.0;
}

fth_status fth__plan_check_strict(const fth_plan *p, fth_err *err)
{
    int64_t shared = 0;
    if (p->ranks < 2 || !p->ctx->ranks_strict) return FTH_OK;
    for (int64_t i = 0; i < p->n_loops; i++) {
        const fth__sweep *l = &p->loop[i];
        const int64_t units = fth__sweep_units(l);
        if (!l->shared) continue;
        shared++;
        if (units < p->ranks)
            return FTH_FAIL(err, FTH_E_RANKS,
                            "%d ranks cannot share axis '%s' of %lld: it has %lld %s", p->ranks,
                            fth_axis_name(p->graph, l->axis), (long long)l->size, (long long)units,
                            l->share > 0 ? "superblocks" : "chunks");
    }
    if (shared > 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_RANKS, "no pass of the plan can be shared by %d ranks", p->ranks);
}
