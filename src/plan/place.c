/* place.c - blocks placed in order of time: an allocator that sees every release coming.
 *
 * When blocks come by their first item, those of the same time are just those that have not ended
 * yet. So memory is a list of parts in order of offset, used or free; the free ones are also in a
 * tree in order of size and then of offset. Neighbours of a part that is freed are joined with it,
 * and what lies behind the last used part is no gap.
 */
#include "base/assert.h"
#include "mem/heap.h"
#include "plan/block.h"

typedef struct part {
    uint64_t offset, bytes;
    int prev, next;  /* in memory; -1 */
    int less, more;  /* in the tree of gaps; -1 */
    uint32_t weight; /* of the tree: a pseudo-random heap keeps it shallow */
    bool free;
} part;

typedef struct memory {
    part *part;
    int *spare; /* numbers of parts that are not in use */
    int n_spare;
    int last, root;
    uint32_t dice;
} memory;

static bool before(const part *a, uint64_t bytes, uint64_t offset)
{
    return a->bytes < bytes || (a->bytes == bytes && a->offset < offset);
}

/* The gaps of tree t before (bytes, offset), and the others. */
static void split(memory *m, int t, uint64_t bytes, uint64_t offset, int *low, int *high)
{
    while (t >= 0) {
        part *p = &m->part[t];
        if (before(p, bytes, offset)) {
            *low = t;
            low = &p->more;
            t = *low;
        } else {
            *high = t;
            high = &p->less;
            t = *high;
        }
    }
    *low = *high = -1;
}

/* One tree of two, all of `low` before all of `high`. */
static int join(memory *m, int low, int high)
{
    int root = -1, *at = &root;
    while (low >= 0 && high >= 0) {
        FTH_ASSERT(before(&m->part[low], m->part[high].bytes, m->part[high].offset));
        if (m->part[low].weight > m->part[high].weight) {
            *at = low;
            at = &m->part[low].more;
            low = *at;
        } else {
            *at = high;
            at = &m->part[high].less;
            high = *at;
        }
    }
    *at = low >= 0 ? low : high;
    return root;
}

static void add_gap(memory *m, int k)
{
    part *p = &m->part[k];
    int low, high;
    m->dice = m->dice * 1664525u + 1013904223u;
    p->weight = m->dice >> 8;
    p->less = p->more = -1;
    p->free = true;
    split(m, m->root, p->bytes, p->offset, &low, &high);
    m->root = join(m, join(m, low, k), high);
}

static void remove_gap(memory *m, int k)
{
    const part *p = &m->part[k];
    int low, one, high;
    split(m, m->root, p->bytes, p->offset, &low, &high);
    split(m, high, p->bytes, p->offset + 1, &one, &high);
    FTH_ASSERT(one == k && p->free && p->less < 0 && p->more < 0);
    m->root = join(m, low, high);
    m->part[k].free = false;
}

/* The smallest gap of at least so many bytes, of equal ones the lowest; -1. */
static int find_gap(const memory *m, uint64_t bytes)
{
    int best = -1;
    for (int t = m->root; t >= 0;) {
        const part *p = &m->part[t];
        if (p->bytes >= bytes) best = t;
        t = p->bytes >= bytes ? p->less : p->more;
    }
    FTH_ASSERT(best < 0 || m->part[best].free);
    return best;
}

static void unlink_part(memory *m, int k)
{
    const part *p = &m->part[k];
    if (p->prev >= 0) m->part[p->prev].next = p->next;
    if (p->next >= 0)
        m->part[p->next].prev = p->prev;
    else
        m->last = p->prev;
    m->spare[m->n_spare++] = k;
}

/* A used part of so many bytes: in a gap, whose rest stays one, or behind everything. */
static int take(memory *m, uint64_t bytes)
{
    FTH_ASSERT(m->n_spare > 0);
    FTH_ASSERT(m->last < 0 || !m->part[m->last].free); /* nothing lies behind the last used part */
    const int gap = find_gap(m, bytes), k = m->spare[--m->n_spare];
    part *p = &m->part[k];
    *p = (part){.bytes = bytes, .prev = m->last, .next = -1};
    if (gap < 0) {
        if (m->last >= 0) {
            p->offset = m->part[m->last].offset + m->part[m->last].bytes;
            m->part[m->last].next = k;
        }
        m->last = k;
        return k;
    }
    part *g = &m->part[gap];
    remove_gap(m, gap);
    p->offset = g->offset;
    p->prev = g->prev;
    p->next = gap;
    if (g->prev >= 0) m->part[g->prev].next = k;
    g->prev = k;
    g->offset += bytes;
    g->bytes -= bytes;
    if (g->bytes > 0)
        add_gap(m, gap);
    else
        unlink_part(m, gap);
    return k;
}

static void give_back(memory *m, int k)
{
    part *p = &m->part[k];
    const int prev = p->prev, next = p->next;
    FTH_ASSERT(!p->free);
    FTH_ASSERT(prev < 0 || m->part[prev].offset + m->part[prev].bytes == p->offset);
    FTH_ASSERT(next < 0 || p->offset + p->bytes == m->part[next].offset);
    if (prev >= 0 && m->part[prev].free) {
        remove_gap(m, prev);
        p->offset = m->part[prev].offset;
        p->bytes += m->part[prev].bytes;
        unlink_part(m, prev);
    }
    if (next >= 0 && m->part[next].free) {
        remove_gap(m, next);
        p->bytes += m->part[next].bytes;
        unlink_part(m, next);
    }
    if (p->next >= 0)
        add_gap(m, k);
    else
        unlink_part(m, k);
}

static void place(memory *m, fth__block *b, int64_t n, int *ends, int *after, int *used,
                  uint64_t *top)
{
    int64_t now = 0;
    *top = 0;
    for (int64_t i = 0; i < n; i++) {
        FTH_ASSERT(b[i].t0 <= b[i].t1 && (i == 0 || b[i - 1].t0 <= b[i].t0));
        for (; now < b[i].t0; now++) /* what ended before */
            for (int j = ends[now] - 1; j >= 0; j = after[j] - 1) give_back(m, used[j]);
        used[i] = take(m, b[i].bytes);
        b[i].offset = m->part[used[i]].offset;
        after[i] = ends[b[i].t1];
        ends[b[i].t1] = (int)i + 1;
        if (b[i].offset + b[i].bytes > *top) *top = b[i].offset + b[i].bytes;
    }
}

fth_status fth__place_in_time(fth_mem *mem, fth__block *b, int64_t n, int64_t items, uint64_t *top,
                              fth_err *err)
{
    memory m = {.last = -1, .root = -1, .dice = 1};
    int *ends = NULL, *after = NULL, *used = NULL; /* ends, after: number of a block, and one */
    const int64_t parts = 2 * n + 2;               /* there is a used part between any two gaps */
    fth_status s = fth__heap_take(mem, parts, sizeof *m.part, (void **)&m.part, err);
    if (s == FTH_OK) s = fth__heap_take(mem, parts, sizeof *m.spare, (void **)&m.spare, err);
    if (s == FTH_OK) s = fth__heap_take(mem, items + 1, sizeof *ends, (void **)&ends, err);
    if (s == FTH_OK) s = fth__heap_take(mem, n + 1, sizeof *after, (void **)&after, err);
    if (s == FTH_OK) s = fth__heap_take(mem, n + 1, sizeof *used, (void **)&used, err);
    for (; s == FTH_OK && m.n_spare < parts; m.n_spare++) m.spare[m.n_spare] = m.n_spare;
    if (s == FTH_OK) place(&m, b, n, ends, after, used, top);
    fth__heap_free(mem, m.part);
    fth__heap_free(mem, m.spare);
    fth__heap_free(mem, ends);
    fth__heap_free(mem, after);
    fth__heap_free(mem, used);
    return s;
}
