/* tape.c - recordings of one plan, by where their steps begin. */
#include "run/tape.h"

#include "array/tensor.h"
#include "base/assert.h"
#include "base/hash.h"
#include "graph/program.h"
#include "mem/heap.h"
#include "run/lanes.h"

#include <string.h>

enum {
    TAPES = 8, /* bursts of steps of a plan that are recorded; others are queued step by step */
    FEW = 2    /* steps that are not worth a recording: see is_short */
};

typedef struct tape {
    int64_t from, to;
    uint64_t places; /* of everything it touches, when it was made */
    fth_recording *recording;
    fth__lanes *lanes; /* NULL: all of it is on one */
} tape;

struct fth__tapes {
    const fth_device_table *table;
    fth_device *device;
    bool never; /* some step cannot be recorded */
    int n;
    tape tape[TAPES];
};

static void forget(const fth_plan *p, tape *t)
{
    p->tapes->table->forget(p->tapes->device, t->recording);
    fth__lanes_drop(p, t->lanes);
}

static void drop(fth_plan *p)
{
    struct fth__tapes *t = p->tapes;
    for (int i = 0; t && i < t->n; i++) forget(p, &t->tape[i]);
    fth__heap_free(p->mem, t);
    p->tapes = NULL;
}

static struct fth__tapes *tapes_of(fth_plan *p)
{
    if (p->tapes || !p->ctx->backend->device->record) return p->tapes;
    struct fth__tapes *t = fth__heap_alloc(p->mem, sizeof *t);
    if (!t) return NULL; /* then nothing is recorded */
    t->table = p->ctx->backend->device;
    t->device = p->ctx->gpu;
    p->tapes = t;
    p->drop_tapes = drop;
    return t;
}

static uint64_t places(const fth__runner *r)
{
    const fth_plan *p = r->p;
    fth__hash h;
    fth__hash_init(&h, 0);
    fth__hash_add(&h, &r->arena, sizeof r->arena);
    for (int64_t i = 0; i < p->graph->n_inputs; i++) {
        const void *mirror = fth__tensor_mirror(p->graph->input[i].param);
        fth__hash_add(&h, &mirror, sizeof mirror);
    }
    return fth__hash_get(&h);
}

static tape *find(struct fth__tapes *t, int64_t from, int64_t to)
{
    for (int i = 0; i < t->n; i++)
        if (t->tape[i].from == from && t->tape[i].to == to) return &t->tape[i];
    return NULL;
}

/* Queue into a recording. Whatever goes wrong, nothing was done yet: it can be queued plainly. */
static fth_recording *record(fth__runner *r, struct fth__tapes *t, const tape *what,
                             fth__queue_fn *queue)
{
    FTH_ASSERT(r->lane == FTH_LANE_COMPUTE);
    fth_err *callers = r->err, err = {0};
    fth_recording *recording = NULL;
    if (t->table->record(t->device, NULL) != FTH_OK) return NULL;
    r->err = &err;
    r->lanes = what->lanes;
    const fth_status queued = queue(r, what->from, what->to);
    r->lanes = NULL;
    r->lane = FTH_LANE_COMPUTE;
    r->err = callers;
    if (t->table->recorded(t->device, &recording, NULL) != FTH_OK) return NULL;
    if (queued == FTH_OK) return recording;
    t->table->forget(t->device, recording);
    return NULL;
}

static bool make(fth__runner *r, struct fth__tapes *t, tape *out, fth__queue_fn *queue)
{
    out->lanes = fth__lanes_make(r, out->from, out->to);
    out->recording = record(r, t, out, queue);
    if (!out->recording) fth__lanes_drop(r->p, out->lanes);
    return out->recording != NULL;
}

static const uint64_t LITTLE = 16 << 20; /* bytes that a short kernel reads and writes */

/* A recording of a kernel or two takes longer to launch than they do: 33 us on an H200, where a
 * fill takes 6. Those of a product are few, and the first is at work while the others are queued.
 */
static bool is_short(const fth__runner *r, int64_t from, int64_t to)
{
    bool few = to - from <= FEW;
    for (int64_t i = from; few && i < to; i++) {
        const fth__item *it = &r->p->item[i];
        const fth_op *op = r->p->unit[it->unit].node->op;
        few = (op == &fth__op_fused && it->moved < LITTLE) || strcmp(op->name, "dot") == 0;
    }
    return few;
}

static fth_status start_and_queue(fth__runner *r, int64_t from, int64_t to, fth__queue_fn *queue)
{
    FTH_TRY(fth__device_burst(r));
    return queue(r, from, to);
}

fth_status fth__tape_run(fth__runner *r, int64_t from, int64_t to, fth__queue_fn *queue)
{
    FTH_ASSERT(from < to && !r->lanes && r->p->item[from].loop < 0);
    struct fth__tapes *t = r->p->ctx->trace ? NULL : tapes_of(r->p);
    if (!t || t->never || r->p->runs < 2 || is_short(r, from, to))
        return start_and_queue(r, from, to, queue);
    FTH_ASSERT(t->n >= 0 && t->n <= TAPES);
    const uint64_t now = places(r);
    tape *known = find(t, from, to);
    if (known && known->places != now) {
        forget(r->p, known);
        *known = t->tape[--t->n];
        known = NULL;
    }
    if (!known && t->n < TAPES) {
        tape made = {.from = from, .to = to, .places = now};
        t->never = !make(r, t, &made, queue);
        if (t->never) return start_and_queue(r, from, to, queue);
        known = &t->tape[t->n++];
        *known = made;
    }
    if (!known) return start_and_queue(r, from, to, queue);
    return fth__device_replay(r, known->recording);
}
