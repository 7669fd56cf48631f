/* spread.c - blocks moved apart inside an arena that is laid out already.
 *
 * A layout puts a block where another has just ended. That orders two steps that may have nothing
 * to do with each other, and a device that could have both at work at once has to wait. So blocks
 * are moved, one by one, to places where fewer such pairs share bytes. The layout is valid after
 * every move and the arena stays as large as it is.
 */
#include "base/assert.h"
#include "mem/heap.h"
#include "plan/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BLOCKS = 1024, /* its tables are n^2: 4 MiB then; 401 blocks take 26 ms */
    MOST_ITEMS = 2048,  /* as lanes.c compares at most */
    SWEEPS = 4,         /* over all blocks; ends earlier when none moves */
    WORD = 64
};

typedef struct spread {
    fth_plan *p;
    int64_t n, words; /* blocks; of a set of items */
    fth__block *block;
    fth__block **by_offset;
    int *block_of;     /* per buffer; -1 */
    int *burst;        /* per item: steps between reads and writes have one number */
    uint64_t *before;  /* per item: those that its data come from */
    double *end;       /* per item: seconds from the start, if it waits for its data alone */
    uint64_t *touched; /* per block: items that read or write it */
    float *waits; /* per two blocks: seconds that the second would wait for bytes of the first */
} spread;

static uint64_t *set_of(const spread *s, uint64_t *sets, int64_t i)
{
    return sets + i * s->words;
}

static void put(uint64_t *set, int64_t i)
{
    set[i / WORD] |= (uint64_t)1 << i % WORD;
}

static bool has(const uint64_t *set, int64_t i)
{
    return set[i / WORD] >> i % WORD & 1;
}

/* Item t comes after item j and all that came before it. */
static void follow(const spread *s, int64_t t, int64_t j)
{
    FTH_ASSERT(j >= 0 && j < t && t < s->p->n_items);
    uint64_t *to = set_of(s, s->before, t);
    const uint64_t *from = set_of(s, s->before, j);
    for (int64_t k = 0; k < s->words; k++) to[k] |= from[k];
    put(to, j);
}

static int block_at(const spread *s, int buf)
{
    return buf < 0 ? -1 : s->block_of[s->p->buf[fth__buf_storage(s->p, buf)].root];
}

/* A use of a buffer by item t, which follows those who wrote it; a writer follows all users. */
static void use(const spread *s, int64_t *writer, int64_t t, int buf, bool writes)
{
    const int b = block_at(s, buf);
    if (b < 0) return;
    FTH_ASSERT(s->block[b].t0 <= t && t <= s->block[b].t1);
    uint64_t *touched = set_of(s, s->touched, b);
    if (writer[b] >= 0) follow(s, t, writer[b]);
    for (int64_t j = s->block[b].t0; writes && j < t; j++)
        if (has(touched, j)) follow(s, t, j);
    put(touched, t);
    if (writes) writer[b] = t;
}

static void find_uses(const spread *s, int64_t *writer)
{
    const fth_plan *p = s->p;
    int burst = 0;
    for (int64_t b = 0; b < s->n; b++) writer[b] = -1;
    for (int64_t t = 0; t < p->n_items; t++) {
        const fth__item *it = &p->item[t];
        burst += it->kind != FTH__STEP || t == p->late;
        s->burst[t] = burst;
        for (int k = 0; k < FTH_MAX_IN && it->in[k] >= 0; k++) use(s, writer, t, it->in[k], false);
        for (int o = 0; o < FTH_MAX_OUT && it->out[o] >= 0; o++) {
            use(s, writer, t, it->out[o], true);
            use(s, writer, t, it->state[o], true);
        }
        if (it->kind != FTH__STEP) continue;
        use(s, writer, t, it->scratch, true);
    }
}

/* When an item can begin that waits for its data alone. */
static double beginning(const spread *s, int64_t t)
{
    double begin = 0.0;
    for (int64_t j = 0; j < t; j++)
        if (has(set_of(s, s->before, t), j) && s->end[j] > begin) begin = s->end[j];
    return begin;
}

static void find_ends(const spread *s)
{
    for (int64_t t = 0; t < s->p->n_items; t++)
        s->end[t] = beginning(s, t) +
                    (s->p->item[t].kind == FTH__STEP ? fth__item_guess(&s->p->item[t]) : 0.0);
}

/* How long the first user of block b would wait for the users of block a that are of its burst and
 * not before it anyway; a little where it would not, for times are guessed. */
static float wait_seconds(const spread *s, int64_t a, int64_t b)
{
    static const double little = 1e-7;
    const uint64_t *touched = set_of(s, s->touched, a);
    const fth__block *x = &s->block[a], *y = &s->block[b];
    int64_t first = y->t0;
    while (first <= y->t1 && !has(set_of(s, s->touched, b), first)) first++;
    if (x->t1 >= y->t0 || first > y->t1) return 0.0F;
    double longest = 0.0;
    const double begin = s->end[first] - fth__item_guess(&s->p->item[first]);
    for (int64_t t = x->t0; t <= x->t1; t++)
        if (has(touched, t) && s->burst[t] == s->burst[first] &&
            !has(set_of(s, s->before, first), t))
            longest = fmax(longest, fmax(little, s->end[t] - begin));
    return (float)longest;
}

/* How bad it is that block b lies at `offset`: the seconds of all pairs that wait. */
static double cost(const spread *s, int64_t b, uint64_t offset)
{
    const fth__block *x = &s->block[b];
    double sum = 0.0;
    for (int64_t o = 0; o < s->n; o++) {
        const fth__block *y = &s->block[o];
        if (y->offset >= offset + x->bytes || offset >= y->offset + y->bytes) continue;
        sum += (double)s->waits[o * s->n + b] + (double)s->waits[b * s->n + o];
    }
    return sum;
}

static int by_place(const void *a_, const void *b_)
{
    const fth__block *a = *(fth__block *const *)a_, *b = *(fth__block *const *)b_;
    return a->offset != b->offset ? (a->offset < b->offset ? -1 : 1) : a->buf < b->buf ? -1 : 1;
}

typedef struct best {
    uint64_t offset;
    double cost;
} best;

static void consider(const spread *s, int64_t b, uint64_t offset, best *o)
{
    const double c = cost(s, b, offset);
    if (c < o->cost) *o = (best){offset, c};
}

/* Try both ends of every gap among the blocks of its time; true: it moved. */
static bool move(const spread *s, int64_t b, uint64_t top)
{
    fth__block *x = &s->block[b];
    best o = {x->offset, cost(s, b, x->offset)};
    uint64_t from = 0;
    for (int64_t i = 0; i <= s->n && o.cost > 0.0; i++) {
        const fth__block *y = i < s->n ? s->by_offset[i] : NULL;
        if (y == x || (y && (y->t1 < x->t0 || x->t1 < y->t0))) continue;
        const uint64_t to = y ? y->offset : top;
        if (to >= from && to - from >= x->bytes) {
            consider(s, b, from, &o);
            consider(s, b, to - x->bytes, &o);
        }
        if (y && y->offset + y->bytes > from) from = y->offset + y->bytes;
    }
    if (o.offset == x->offset) return false;
    FTH_ASSERT(o.offset % FTH__ALIGN == 0 && o.offset + x->bytes <= top);
    x->offset = o.offset;
    qsort(s->by_offset, (size_t)s->n, sizeof *s->by_offset, by_place);
    return true;
}

static void move_all(const spread *s)
{
    fth_plan *p = s->p;
    bool moved = true;
    for (int64_t i = 0; i < s->n; i++) s->by_offset[i] = &s->block[i];
    qsort(s->by_offset, (size_t)s->n, sizeof *s->by_offset, by_place);
    for (int k = 0; moved && k < SWEEPS; k++) {
        moved = false;
        for (int64_t b = 0; b < s->n; b++)
            if (move(s, b, p->faults)) moved = true;
    }
    for (int64_t b = 0; b < s->n; b++) p->buf[s->block[b].buf].offset = s->block[b].offset;
    for (int64_t i = 0; i < p->n_bufs; i++) p->buf[i].offset = p->buf[p->buf[i].root].offset;
}

static fth_status take(spread *s, int64_t **writer, fth_err *err)
{
    fth_mem *mem = s->p->mem;
    const int64_t n = s->n + 1, items = s->p->n_items + 1;
    FTH_TRY(fth__heap_take(mem, n, sizeof *s->by_offset, (void **)&s->by_offset, err));
    FTH_TRY(fth__heap_take(mem, n, sizeof **writer, (void **)writer, err));
    FTH_TRY(fth__heap_take(mem, items, sizeof *s->burst, (void **)&s->burst, err));
    FTH_TRY(fth__heap_take(mem, items, sizeof *s->end, (void **)&s->end, err));
    FTH_TRY(fth__heap_take(mem, items * s->words, sizeof *s->before, (void **)&s->before, err));
    FTH_TRY(fth__heap_take(mem, n * s->words, sizeof *s->touched, (void **)&s->touched, err));
    return fth__heap_take(mem, n * n, sizeof *s->waits, (void **)&s->waits, err);
}

static fth_status find_blocks(spread *s, fth_err *err)
{
    fth_plan *p = s->p;
    FTH_TRY(fth__heap_take(p->mem, p->n_bufs + 1, sizeof *s->block, (void **)&s->block, err));
    FTH_TRY(fth__heap_take(p->mem, p->n_bufs + 1, sizeof *s->block_of, (void **)&s->block_of, err));
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        s->block_of[i] = -1;
        if (!fth__buf_is_placed(b)) continue;
        s->block_of[i] = (int)s->n;
        s->block[s->n++] = (fth__block){.buf = (int)i,
                                        .bytes = b->double_buffered ? 2 * b->bytes : b->bytes,
                                        .offset = b->offset,
                                        .t0 = b->t0,
                                        .t1 = b->t1};
    }
    return FTH_OK;
}

fth_status fth__plan_spread(fth_plan *p, fth_err *err)
{
    spread s = {.p = p, .words = (p->n_items + WORD - 1) / WORD};
    int64_t *writer = NULL;
    if (p->n_items > MOST_ITEMS) return FTH_OK;
    fth_status status = find_blocks(&s, err);
    const bool tried = status == FTH_OK && s.n > 1 && s.n <= MOST_BLOCKS;
    if (tried) status = take(&s, &writer, err);
    if (tried && status == FTH_OK) {
        find_uses(&s, writer);
        find_ends(&s);
        for (int64_t a = 0; a < s.n; a++)
            for (int64_t b = 0; b < s.n; b++) s.waits[a * s.n + b] = wait_seconds(&s, a, b);
        move_all(&s);
    }
    fth__heap_free(p->mem, s.block);
    fth__heap_free(p->mem, s.block_of);
    fth__heap_free(p->mem, s.by_offset);
    fth__heap_free(p->mem, s.burst);
    fth__heap_free(p->mem, s.before);
    fth__heap_free(p->mem, s.end);
    fth__heap_free(p->mem, s.touched);
    fth__heap_free(p->mem, s.waits);
    fth__heap_free(p->mem, writer);
    return status;
}
