/* lanes.c - which steps must wait for which, and on which lane each would begin first.
 *
 * Kernels of the last lanes give way to those of the first (PATIENT and on). Steps that others wait
 * for all the way to the end have every lane; those with time to spare, as gradients of weights
 * are, have the last ones and fill what the others leave of the card.
 */
#include "run/lanes.h"

#include "array/tensor.h"
#include "base/assert.h"
#include "base/lanes.h"
#include "mem/heap.h"

enum {
    LANES = 1 + FTH_BESIDE_LANES, /* the first is COMPUTE */
    PATIENT = LANES - FTH__PATIENT_LANES,
    FEWEST = 4,  /* steps that are worth the marks between them; not measured, */
    MOST = 2048, /* and that are compared with each other: n^2 bits, 512 KiB then */
    PARTS = FTH_MAX_IN + 2 * FTH_MAX_OUT + 1
};

/* Bytes that a step touches. */
typedef struct part {
    const char *lo, *hi;
    bool written;
} part;

typedef struct step {
    int lane;
    int wait[LANES];  /* per lane: the step that this one waits for; -1 */
    int known[LANES]; /* per lane: the last step that is done before this one ends */
    fth_mark *mark;   /* set after it, where somebody waits for it */
    bool awaited;
    double end;   /* guessed */
    bool patient; /* it can begin later and nothing ends later */
} step;

struct fth__lanes {
    int64_t from, n;
    int last[LANES]; /* steps; -1: the lane is not used */
    fth_mark *start; /* of the recording, on COMPUTE */
    step *step;
};

/* What is being compared. */
typedef struct work {
    const fth__runner *r;
    fth__lanes *l;
    part *part;
    int64_t *first; /* per step: of its parts */
    uint8_t *after; /* bit i * n + j: step i comes after j */
    double *path;   /* per step: seconds from its beginning to the end of all */
} work;

static fth_lane lane_of(int i)
{
    FTH_ASSERT(i >= 0 && i < LANES);
    return i == 0 ? FTH_LANE_COMPUTE : (fth_lane)(FTH_LANE_BESIDE + i - 1);
}

/* ---- what steps touch ---- */

/* False: the buffer lies nowhere that is known. */
static bool part_of(const fth__runner *r, int buf, bool written, part *out)
{
    const fth_plan *p = r->p;
    const fth__buf *b = &p->buf[fth__buf_storage(p, buf)];
    if (b->kind == FTH__BUF_ARENA) {
        const char *at = r->arena + b->offset;
        *out = (part){at, at + (b->double_buffered ? 2 * b->bytes : b->bytes), written};
        return true;
    }
    const fth_tensor *param = b->input >= 0 ? p->graph->input[b->input].param : NULL;
    if (b->kind != FTH__BUF_FOREIGN || !param) return false;
    const char *at = fth__tensor_mirror(param);
    *out = (part){at, at + fth_tensor_bytes(param), written};
    return at != NULL;
}

/* How many parts; -1: not all are known. */
static int parts_of(const fth__runner *r, const fth__item *it, part *out)
{
    const fth_node *node = r->p->unit[it->unit].node;
    int n = 0;
    for (int k = 0; k < node->n_in; k++)
        if (!part_of(r, it->in[k], false, &out[n++])) return -1;
    for (int o = 0; o < node->n_out; o++)
        if (!part_of(r, it->out[o], true, &out[n++])) return -1;
    for (int o = 0; o < node->n_out; o++)
        if (it->state[o] >= 0 && !part_of(r, it->state[o], true, &out[n++])) return -1;
    if (it->scratch >= 0 && !part_of(r, it->scratch, true, &out[n++])) return -1;
    return n;
}

static bool find_parts(work *w)
{
    int64_t at = 0;
    for (int64_t i = 0; i < w->l->n; i++) {
        const int n = parts_of(w->r, &w->r->p->item[w->l->from + i], &w->part[at]);
        if (n < 0) return false;
        FTH_ASSERT(n <= PARTS);
        w->first[i] = at;
        at += n;
    }
    w->first[w->l->n] = at;
    return true;
}

static bool touch(const work *w, int64_t i, int64_t j)
{
    for (int64_t a = w->first[i]; a < w->first[i + 1]; a++)
        for (int64_t b = w->first[j]; b < w->first[j + 1]; b++) {
            const part *x = &w->part[a], *y = &w->part[b];
            if ((x->written || y->written) && x->lo < y->hi && y->lo < x->hi) return true;
        }
    return false;
}

static void find_order(const work *w)
{
    const int64_t n = w->l->n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (touch(w, i, j)) w->after[(i * n + j) / 8] |= (uint8_t)(1u << (i * n + j) % 8);
}

static bool comes_after(const work *w, int64_t i, int64_t j)
{
    const int64_t at = i * w->l->n + j;
    return w->after[at / 8] >> at % 8 & 1;
}

/* ---- time to spare ---- */

/* Of the longest chain of steps: guesses are not better than that, and a step that gives way by
 * mistake makes everything wait. */
static const double SPARE = 0.1;

static void find_patient(const work *w)
{
    fth__lanes *l = w->l;
    const fth__item *item = &w->r->p->item[l->from];
    double longest = 0;
    for (int64_t i = l->n - 1; i >= 0; i--) { /* what comes after it has told it already */
        w->path[i] += fth__item_guess(&item[i]);
        for (int64_t j = 0; j < i; j++)
            if (comes_after(w, i, j) && w->path[i] > w->path[j]) w->path[j] = w->path[i];
        if (w->path[i] > longest) longest = w->path[i];
    }
    for (int64_t i = 0; i < l->n; i++) { /* `end`: for now of what it waits for */
        step *s = &l->step[i];
        const double end = s->end + fth__item_guess(&item[i]);
        s->patient = s->end + w->path[i] < (1 - SPARE) * longest;
        for (int64_t j = i + 1; j < l->n; j++)
            if (comes_after(w, j, i) && end > l->step[j].end) l->step[j].end = end;
    }
}

/* ---- lanes ---- */

static void raise(int *known, const int *by)
{
    for (int m = 0; m < LANES; m++)
        if (by[m] > known[m]) known[m] = by[m];
}

/* Per lane the last step that step i must come after; those of a lane are in order, and what they
 * waited for is done as well. */
static void find_needs(const work *w, int64_t i, int *need)
{
    int known[LANES];
    for (int m = 0; m < LANES; m++) need[m] = known[m] = -1;
    for (int64_t j = i - 1; j >= 0; j--) {
        const step *s = &w->l->step[j];
        if (j <= known[s->lane] || !comes_after(w, i, j)) continue;
        FTH_ASSERT(s->known[s->lane] == j); /* steps of a lane are done in order */
        need[s->lane] = (int)j;
        raise(known, s->known);
    }
}

/* The lane on which the step can begin first; of several the one that it would wait for longest. */
static int choose(const fth__lanes *l, bool patient, const int *need, double *begin)
{
    double ready = 0;
    for (int m = 0; m < LANES; m++)
        if (need[m] >= 0 && l->step[need[m]].end > ready) ready = l->step[need[m]].end;
    int best = 0;
    double best_end = -1;
    *begin = -1;
    for (int m = patient ? PATIENT : 0; m < LANES; m++) {
        const double end = l->last[m] >= 0 ? l->step[l->last[m]].end : 0,
                     at = end > ready ? end : ready;
        const bool sooner = *begin < 0 || at < *begin,
                   nearer = at <= *begin && need[m] >= 0 && need[m] == l->last[m] && end > best_end;
        if (!sooner && !nearer) continue;
        best = m;
        best_end = need[m] >= 0 && need[m] == l->last[m] ? end : -1;
        *begin = at;
    }
    return best;
}

static void place(const work *w, int64_t i)
{
    fth__lanes *l = w->l;
    step *s = &l->step[i];
    int need[LANES];
    double begin;
    find_needs(w, i, need);
    s->lane = choose(l, s->patient, need, &begin);
    s->end = begin + fth__item_guess(&w->r->p->item[l->from + i]);
    for (int m = 0; m < LANES; m++) s->wait[m] = s->known[m] = -1;
    if (l->last[s->lane] >= 0) raise(s->known, l->step[l->last[s->lane]].known);
    for (int m = 0; m < LANES; m++) { /* what one of the others brings along is not waited for */
        bool brought = need[m] <= s->known[m];
        for (int k = 0; !brought && k < LANES; k++)
            brought = k != m && need[k] >= 0 && l->step[need[k]].known[m] >= need[m];
        if (!brought) s->wait[m] = need[m];
    }
    for (int m = 0; m < LANES; m++) {
        if (s->wait[m] < 0) continue;
        FTH_ASSERT(s->wait[m] < i && l->step[s->wait[m]].lane == m && m != s->lane);
        raise(s->known, l->step[s->wait[m]].known);
        l->step[s->wait[m]].awaited = true;
    }
    s->known[s->lane] = l->last[s->lane] = (int)i;
}

/* Place all; false: they are all on one lane, or not known. */
static bool place_all(work *w)
{
    fth__lanes *l = w->l;
    if (!find_parts(w)) return false;
    find_order(w);
    find_patient(w);
    for (int m = 0; m < LANES; m++) l->last[m] = -1;
    for (int64_t i = 0; i < l->n; i++) place(w, i);
    bool beside = false;
    for (int m = 1; m < LANES; m++) {
        if (l->last[m] < 0) continue;
        l->step[l->last[m]].awaited = beside = true;
    }
    return beside;
}

static bool make_marks(const fth__runner *r, fth__lanes *l)
{
    const fth_device_table *t = r->p->ctx->backend->device;
    fth_device *d = r->p->ctx->gpu;
    if (t->mark_create(d, &l->start, NULL) != FTH_OK) return false;
    for (int64_t i = 0; i < l->n; i++)
        if (l->step[i].awaited && t->mark_create(d, &l->step[i].mark, NULL) != FTH_OK) return false;
    return true;
}

fth__lanes *fth__lanes_make(const fth__runner *r, int64_t from, int64_t to)
{
    fth_mem *mem = r->p->mem;
    work w = {.r = r};
    const int64_t n = to - from;
    if (n < FEWEST || n > MOST) return NULL;
    w.l = fth__heap_alloc(mem, sizeof *w.l);
    w.part = fth__heap_alloc(mem, (uint64_t)(n * PARTS) * sizeof *w.part);
    w.first = fth__heap_alloc(mem, (uint64_t)(n + 1) * sizeof *w.first);
    w.after = fth__heap_alloc(mem, (uint64_t)(n * n + 7) / 8);
    w.path = fth__heap_alloc(mem, (uint64_t)n * sizeof *w.path);
    if (w.l) *w.l = (fth__lanes){.from = from, .n = n};
    if (w.l) w.l->step = fth__heap_alloc(mem, (uint64_t)n * sizeof *w.l->step);
    const bool made = w.l && w.l->step && w.part && w.first && w.after && w.path && place_all(&w) &&
                      make_marks(r, w.l);
    fth__heap_free(mem, w.part);
    fth__heap_free(mem, w.first);
    fth__heap_free(mem, w.after);
    fth__heap_free(mem, w.path);
    if (made) return w.l;
    fth__lanes_drop(r->p, w.l);
    return NULL;
}

void fth__lanes_drop(const fth_plan *p, fth__lanes *l)
{
    if (!l) return;
    const fth_device_table *t = p->ctx->backend->device;
    for (int64_t i = 0; l->step && i < l->n; i++)
        if (l->step[i].mark) t->mark_destroy(p->ctx->gpu, l->step[i].mark);
    if (l->start) t->mark_destroy(p->ctx->gpu, l->start);
    fth__heap_free(p->mem, l->step);
    fth__heap_free(p->mem, l);
}

/* ---- queueing ---- */

static fth_status set(const fth__runner *r, fth_lane lane, fth_mark *mark)
{
    const fth_context *ctx = r->p->ctx;
    return ctx->backend->device->mark_set(ctx->gpu, lane, mark, r->err);
}

static fth_status wait(const fth__runner *r, fth_lane lane, fth_mark *mark)
{
    const fth_context *ctx = r->p->ctx;
    return ctx->backend->device->lane_wait(ctx->gpu, lane, mark, r->err);
}

static fth_status part_lanes(const fth__runner *r, const fth__lanes *l)
{
    FTH_TRY(set(r, FTH_LANE_COMPUTE, l->start));
    for (int m = 1; m < LANES; m++)
        if (l->last[m] >= 0) FTH_TRY(wait(r, lane_of(m), l->start));
    return FTH_OK;
}

fth_status fth__lanes_before(fth__runner *r, int64_t i)
{
    const fth__lanes *l = r->lanes;
    if (!l) return FTH_OK;
    FTH_ASSERT(i >= l->from && i < l->from + l->n);
    if (i == l->from) FTH_TRY(part_lanes(r, l));
    const step *s = &l->step[i - l->from];
    r->lane = lane_of(s->lane);
    for (int m = 0; m < LANES; m++) FTH_ASSERT(s->wait[m] < 0 || l->step[s->wait[m]].mark);
    for (int m = 0; m < LANES; m++)
        if (s->wait[m] >= 0) FTH_TRY(wait(r, r->lane, l->step[s->wait[m]].mark));
    return FTH_OK;
}

fth_status fth__lanes_after(fth__runner *r, int64_t i)
{
    const fth__lanes *l = r->lanes;
    if (!l) return FTH_OK;
    const step *s = &l->step[i - l->from];
    if (s->awaited) FTH_TRY(set(r, r->lane, s->mark));
    r->lane = FTH_LANE_COMPUTE;
    if (i - l->from + 1 < l->n) return FTH_OK;
    for (int m = 1; m < LANES; m++)
        if (l->last[m] >= 0) FTH_TRY(wait(r, FTH_LANE_COMPUTE, l->step[l->last[m]].mark));
    return FTH_OK;
}
