/* cost.c - predicted seconds of steps, of passes and of a plan.
 *
 * A step computes (work.c) or waits for its operands, whichever takes longer. Where an operand is,
 * in a cache or in memory, follows from how many bytes were touched since its last use: in the same
 * iteration, in the one before, or before the pass. Nothing here decides a bit of a result.
 */
#include "plan/plan.h"
#include "plan/rates.h"
#include "plan/work.h"

#include <math.h>
#include <string.h>

static const double MIB = 1048576.0;
/* What a stretch takes in a cache of what it takes in memory. */
static const double IN_CACHE = 0.2;

typedef struct walk {
    fth_plan *p;
    const fth__rates *r;
    double clock;                     /* bytes touched so far, each iteration's once */
    double again[FTH__MAX_DEPTH + 1]; /* per depth of loops, 0 for none: bytes of one iteration */
    double whole;                     /* bytes of everything */
} walk;

static double tile_bytes(const fth_desc *d, const fth_tile *t)
{
    double bytes = (double)fth_dtype_size(d->dtype);
    for (int i = 0; i < d->n_axes; i++) bytes *= (double)t->extent[i];
    return bytes;
}

static int depth_of(const fth_plan *p, int loop)
{
    return loop < 0 ? 0 : p->loop[loop].depth + 1;
}

/* Buffers of an arena that took over another's bytes are that one. */
static fth__buf *bytes_of(fth_plan *p, int buf)
{
    return &p->buf[p->buf[fth__buf_storage(p, buf)].root];
}

/* Iterations of the loops around an item down to `depth` of them. */
static double iterations(const fth_plan *p, int loop)
{
    double n = 1.0;
    for (int l = loop; l >= 0; l = p->loop[l].parent) n *= (double)p->loop[l].n_chunks;
    return n;
}

/* What a buffer takes up in one iteration of `loop`: of one that stands outside, about its share.
 */
static double part_bytes(const fth_plan *p, const fth__buf *b, int loop)
{
    double bytes = (double)b->element;
    for (int d = 0; d < b->desc.n_axes; d++) bytes *= (double)b->extent[d];
    if (depth_of(p, b->owner_loop) >= depth_of(p, loop)) return bytes;
    for (int l = loop; l >= 0 && l != b->owner_loop; l = p->loop[l].parent)
        for (int d = 0; d < b->desc.n_axes; d++)
            if (p->loop[l].map[b->desc.axis[d]].in) {
                bytes /= (double)p->loop[l].n_chunks;
                break;
            }
    return bytes;
}

/* Of the bytes of an operand, those that a step reads or writes. */
static double share_of(const fth_plan *p, const fth__item *it, int in)
{
    const fth_node *n = p->unit[it->unit].node;
    return n->op == &fth__op_gather && in == 0 ? fth__gather_share(n) : 1.0;
}

/* Bytes that the items of a loop (-1: of the plan) touch in one iteration, each once. */
static double touched(fth_plan *p, int loop, int64_t from, int64_t to)
{
    double bytes = 0.0;
    for (int64_t t = from; t < to; t++) {
        const fth__item *it = &p->item[t];
        if (it->kind != FTH__STEP) continue;
        for (int k = 0; k < FTH_MAX_IN + FTH_MAX_OUT; k++) {
            const int at = k < FTH_MAX_IN ? it->in[k] : it->out[k - FTH_MAX_IN];
            if (at < 0) {
                if (k >= FTH_MAX_IN) break;
                k = FTH_MAX_IN - 1;
                continue;
            }
            fth__buf *b = bytes_of(p, at);
            if (b->counted == loop) continue;
            b->counted = loop;
            bytes += part_bytes(p, b, loop) * (k < FTH_MAX_IN ? share_of(p, it, k) : 1.0);
        }
    }
    return bytes;
}

/* Bytes touched since the operand was used last. */
static double distance(const walk *w, const fth__buf *b, const fth__item *it, double tile)
{
    const fth_plan *p = w->p;
    const int depth = depth_of(p, it->loop);
    double bytes;
    if (b->seen_in == it->loop)
        bytes = w->clock - b->seen; /* in this iteration, or outside of loops */
    else if (b->kind == FTH__BUF_ARENA && b->owner_loop >= 0 && b->owner_loop == it->loop)
        bytes = w->again[depth]; /* the same bytes as an iteration ago */
    else if (it->loop >= 0 && tile >= (double)b->bytes && b->kind == FTH__BUF_ARENA)
        bytes = w->again[depth]; /* all of it, each time */
    else if (it->loop >= 0 && b->kind == FTH__BUF_FOREIGN && tile >= part_bytes(p, b, -1))
        bytes = w->again[depth];
    else if (b->seen_in != -2)
        bytes = w->clock - b->seen;
    else
        bytes = w->whole; /* since the run before */
    return bytes < w->whole ? bytes : w->whole;
}

/* A byte from or to a cache or memory, by the rates of what is only read and of copies, one byte
 * written for each one read. What is written is read first, but may be slower or faster. */
static double byte_seconds(const fth__rates *r, fth__rate_id read, fth__rate_id copy, bool out)
{
    const double one = 1.0 / r->of[read], both = 2.0 / r->of[copy];
    return 1e-9 * (out ? fmax(both - one, 0.0) : one);
}

/* In a cache. Workers take pieces as they come, so what one left in its own another may want. */
static double near_seconds(const fth__rates *r, double bytes, int workers, bool out)
{
    const double each = workers > 1 ? r->of[FTH__RATE_CACHED] / r->of[FTH__RATE_CACHED_EACH] : 1.0;
    return bytes * byte_seconds(r, FTH__RATE_CACHED_READ, FTH__RATE_CACHED, out) * each / workers;
}

double fth__near_share(const fth__rates *r, double dist)
{
    const double over = dist / (r->of[FTH__RATE_CACHE] * MIB);
    return over <= 0.5 ? 1.0 : over <= 1.0 ? 1.5 - over : 0.5 / over;
}

/* Seconds to bring so many bytes, with all `workers` at it. */
static double move_seconds(const fth__rates *r, double bytes, double dist, int workers, bool out,
                           double strides)
{
    const double near = fth__near_share(r, dist),
                 all = out ? r->of[FTH__RATE_MEMORY_ALL] / r->of[FTH__RATE_MEMORY]
                           : r->of[FTH__RATE_READ_ALL] / r->of[FTH__RATE_READ],
                 at_once = fmin(workers, all),
                 far = byte_seconds(r, FTH__RATE_READ, FTH__RATE_MEMORY, out) / fmax(1.0, at_once);
    return near * near_seconds(r, bytes, workers, out) + (1.0 - near) * strides * bytes * far;
}

/* Stretches of memory that a tile is made of: rows of a narrow piece lie apart in what it is a
 * piece of. */
static double stretches(const fth_desc *d, const fth_tile *t, const fth__buf *b)
{
    double all = 1.0, one = 1.0;
    bool dense = true, open = true;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        all *= (double)t->extent[i];
        if (i < b->desc.n_axes) dense &= t->extent[i] == b->extent[i];
        if (open) one *= (double)t->extent[i];
        open &= t->extent[i] == d->size[i];
    }
    return dense || one <= 0.0 ? 1.0 : all / one;
}

typedef struct operand {
    const fth_desc *desc;
    const fth_tile *tile;
    int buf;
    bool out;
    double share; /* of its bytes */
} operand;

static double operand_seconds(walk *w, const fth__item *it, const operand *o, int workers,
                              double strides, double *next)
{
    fth__buf *b = bytes_of(w->p, o->buf);
    const double tile = tile_bytes(o->desc, o->tile), dist = distance(w, b, it, tile),
                 bytes = tile * o->share;
    const bool far = dist > w->r->of[FTH__RATE_CACHE] * MIB;
    *next += bytes;
    b->seen = w->clock;
    b->seen_in = it->loop;
    double seconds = move_seconds(w->r, bytes, dist, workers, o->out, strides);
    const double begin = 1e-9 * w->r->of[FTH__RATE_STRETCH] * (far ? 1.0 : IN_CACHE);
    seconds += begin * stretches(o->desc, o->tile, b) / workers;
    return seconds;
}

/* A step in the middle of its loops. */
static void middle_call(fth_plan *p, const fth__item *it, fth_call *call)
{
    int64_t middle[FTH__MAX_DEPTH] = {0};
    for (int l = it->loop; l >= 0; l = p->loop[l].parent)
        middle[p->loop[l].depth] = p->loop[l].n_chunks / 2;
    fth__item_shape(p, it, middle, call);
}

/* Views of one value are operands of their own, which find near what the first one brought. */
static bool is_brought(fth_plan *p, const fth__item *it, int k)
{
    for (int j = 0; j < k; j++)
        if (bytes_of(p, it->in[j]) == bytes_of(p, it->in[k])) return true;
    return false;
}

static double step_seconds(walk *w, const fth__item *it)
{
    fth_plan *p = w->p;
    const fth__rates *r = w->r;
    const fth__unit *u = &p->unit[it->unit];
    fth_call call;
    middle_call(p, it, &call);
    const double strides = fth__unit_strides(r, u);
    const bool spread = it->split_dim >= 0 || it->team;
    const double busy = fth__item_workers(p, it, &call);
    const int workers = (int)ceil(busy);
    double near = 0.0, moves = 0.0, next = w->clock;
    uint32_t wanted = 0;
    for (int k = 0; k < u->node->n_in + u->node->n_out; k++) {
        const bool out = k >= u->node->n_in;
        const int o = k - u->node->n_in, buf = out ? it->out[o] : it->in[k];
        if (out && bytes_of(p, buf)->kind == FTH__BUF_ARENA && p->buf[buf].bytes == 0) continue;
        if (!out && is_brought(p, it, k)) continue;
        if (out) wanted |= 1u << o;
        const operand at = {out ? &u->node->out[o] : &u->node->in[k],
                            out ? &call.out[o] : &call.in[k], buf, out,
                            out ? 1.0 : share_of(p, it, k)};
        near += near_seconds(r, tile_bytes(at.desc, at.tile) * at.share, workers, out);
        moves += operand_seconds(w, it, &at, workers, strides, &next);
    }
    w->clock = next;
    const double kernel = fth__unit_seconds(p, u, &call, wanted) / busy, computes = kernel + near;
    const bool far = moves > 1.2 * near; /* some come from memory */
    const double calls = 1e-6 * (r->of[FTH__RATE_STEP] + (spread ? r->of[FTH__RATE_TEAM] : 0.0));
    double seconds = computes > moves ? computes : moves;
    if (far) seconds += fth__unit_waits(p, u) * fmin(kernel, moves - near);
    return iterations(p, it->loop) * (seconds + calls);
}

/* `flops` and `moved` of an item are those of all iterations. */
static double device_seconds(fth_plan *p, const fth__item *it)
{
    const double n = iterations(p, it->loop);
    fth_call call;
    middle_call(p, it, &call);
    return n * (fth__unit_device_seconds(p, &call, it->flops / n, (double)it->moved / n) +
                1e-6 * p->ctx->rates->of[FTH__RATE_GPU_STEP]);
}

/* Bytes of an input that are read, or of an output that are written, in the whole run. */
static double file_bytes(const fth_plan *p, const fth__buf *b)
{
    double bytes = (double)b->element * (double)fth_desc_count(&b->desc);
    int path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(p, b->owner_loop, path);
    for (int d = 0; d < depth; d++) {
        bool cut = false;
        for (int s = 0; s < b->n_span; s++) cut |= b->span[s].loop == path[d];
        if (!cut) bytes *= (double)p->loop[path[d]].n_chunks; /* again in every iteration */
    }
    return bytes;
}

/* Sources in memory and small copies go at the speed of memory, files at theirs. */
static double files_seconds(const fth_plan *p)
{
    const fth__rates *r = p->ctx->rates;
    double seconds = 0.0;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->kind != FTH__BUF_ARENA || (b->input < 0 && b->output < 0)) continue;
        const bool memory = b->input >= 0
                                ? p->graph->input[b->input].source.data != NULL
                                : p->limits.sinks && p->limits.sinks[b->output].data != NULL;
        const fth__rate_id id = !memory            ? FTH__RATE_FILE
                                : p->device_memory ? FTH__RATE_GPU_COPY
                                                   : FTH__RATE_MEMORY;
        seconds += fth__rate_seconds(r, id, file_bytes(p, b));
    }
    return seconds;
}

static double touch_seconds(const fth_plan *p, uint64_t arena)
{
    const fth__rates *r = p->ctx->rates;
    if (p->device_memory) return 0.0;
    const double one = r->of[FTH__RATE_TOUCH] * p->threads, all = r->of[FTH__RATE_TOUCH_ALL];
    return (double)arena / (1e9 * (p->threads > 1 && all < one ? all : one));
}

static void begin(walk *w)
{
    fth_plan *p = w->p;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        p->buf[i].seen_in = -2;
        p->buf[i].counted = -2;
    }
    w->whole = touched(p, -1, 0, p->n_items);
}

void fth__plan_predict(fth_plan *p, uint64_t arena)
{
    walk w = {.p = p, .r = p->ctx->rates};
    double clock[FTH__MAX_DEPTH + 1];
    if (!p->device_memory) begin(&w);
    p->seconds =
        files_seconds(p) + 1e-6 * w.r->of[p->device_memory ? FTH__RATE_GPU_RUN : FTH__RATE_RUN];
    for (int64_t t = 0; t < p->n_items; t++) {
        fth__item *it = &p->item[t];
        it->seconds = 0.0;
        const int depth = depth_of(p, it->loop);
        if (it->kind == FTH__STEP) {
            it->seconds = p->device_memory ? device_seconds(p, it) : step_seconds(&w, it);
        } else if (it->kind == FTH__BEGIN) {
            const fth__sweep *l = &p->loop[it->loop];
            it->seconds = 1e-6 * w.r->of[FTH__RATE_ITERATION] * iterations(p, it->loop);
            if (!p->device_memory) w.again[depth] = touched(p, it->loop, l->begin, l->end);
            clock[depth] = w.clock;
        } else if (it->kind == FTH__END && !p->device_memory) {
            it->seconds = fth__sweep_exchange(p, &p->loop[it->loop]).seconds;
            w.clock = clock[depth] + (w.clock - clock[depth]) * (double)p->loop[it->loop].n_chunks;
        }
        const bool exchange = it->kind == FTH__END;
        p->seconds +=
            exchange ? it->seconds : it->seconds * fth__plan_part(p, fth__item_pass(p, it));
    }
    p->touch_seconds = touch_seconds(p, arena);
}
