/* chunk.c - how large the chunks of each loop can be.
 *
 * The chunk of a loop decides what is alive between its begin and its end, and nothing outside: so
 * all loops of one depth are searched at once, each with bounds of its own, and a pass that needs
 * little is not held to the chunks of one that needs much.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"
#include "plan/plan.h"

/* Where ranks share a loop at any chunk: few enough to be long, and so many that a rank with one
 * chunk more than another does a quarter more at most. */
enum { PIECES_PER_RANK = 4 };

/* A search along one loop, in blocks of its grid. */
typedef struct bounds {
    int64_t lo, hi; /* lo fits; hi does not, or is beyond the end */
    int64_t guess;
    uint64_t at_lo, at_hi; /* bytes alive in the loop */
} bounds;

static int64_t blocks_of(const fth__sweep *l)
{
    return fth__max_i64(fth__ceil_div_i64(l->size, l->grid), 1);
}

/* At most so many; where ranks share the loop, as many as divide what partial sums are about. */
static void set_blocks(fth__sweep *l, int64_t blocks)
{
    FTH_ASSERT(blocks >= 1 && l->grid >= 1 && l->join % l->grid == 0);
    if (l->join > 0) {
        blocks = fth__min_i64(blocks, l->join / l->grid);
        while (l->join % (blocks * l->grid) != 0) blocks--;
    }
    fth__sweep_set_chunk(l, fth__min_i64(blocks * l->grid, l->size));
}

void fth__plan_smallest_chunks(fth_plan *p)
{
    for (int64_t i = 0; i < p->n_loops; i++) set_blocks(&p->loop[i], 1);
}

bool fth__plan_smaller_chunks(fth_plan *p, int depth)
{
    bool did = false;
    for (int64_t i = 0; i < p->n_loops; i++) {
        fth__sweep *l = &p->loop[i];
        const int64_t blocks = fth__ceil_div_i64(l->chunk, l->grid);
        if (l->depth != depth || blocks < 2) continue;
        set_blocks(l, blocks - fth__max_i64(blocks / 16, 1));
        did = true;
    }
    return did;
}

static uint64_t alive_in(const fth_plan *p, const fth__sweep *l)
{
    uint64_t most = 0;
    FTH_ASSERT(l->begin >= 0 && l->begin < l->end && l->end < p->n_items);
    for (int64_t t = l->begin; t <= l->end; t++)
        if (p->live[t] > most) most = p->live[t];
    return most;
}

/* Bytes that are read in the iterations of a loop, all together. */
static uint64_t read_in(const fth_plan *p, const fth__sweep *l)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->kind == FTH__BUF_ARENA && b->input >= 0 && b->owner_loop >= 0 &&
            &p->loop[b->owner_loop] == l)
            bytes += (uint64_t)fth_desc_count(&b->desc) * (uint64_t)b->element;
    }
    return bytes;
}

/* Most blocks of a chunk, so that there are as many pieces as were asked for. By themselves they
 * are as many as hide all but a few percent of the reading (one part in 32 on the CPU and in 16 on
 * a device), and not so small that their iterations cost more than that: at 1 GB/s reading 8 MiB
 * takes 400 times the 2e-5 s of an iteration (search.c), and a device needs more of each to be kept
 * busy. */
static int64_t most_blocks(const fth_plan *p, const fth__sweep *l)
{
    int64_t pieces = l->depth == 0 ? p->limits.min_pieces : 0;
    if (l->shared) pieces = fth__max_i64(pieces, (int64_t)PIECES_PER_RANK * p->ranks);
    if (pieces == FTH_PIECES_AUTO) {
        const uint64_t worth = (uint64_t)(p->device_memory ? 64 : 8) << 20;
        pieces = (int64_t)fth__min_u64(read_in(p, l) / worth, p->device_memory ? 16 : 32);
    }
    return fth__max_i64(blocks_of(l) / fth__max_i64(pieces, 1), 1);
}

fth_status fth__plan_measure(fth_plan *p, uint64_t *bytes, fth_err *err)
{
    FTH_TRY(fth__plan_size(p, err));
    *bytes = fth__plan_lower_bound(p, NULL);
    return FTH_OK;
}

/* Bytes grow almost linearly with the chunk, so guesses go where the line through both ends meets
 * the room; every third halves. */
static int64_t guess(const bounds *b, uint64_t room, int round)
{
    FTH_ASSERT(b->lo + 1 < b->hi);
    int64_t mid = b->lo + (b->hi - b->lo) / 2;
    if (round % 3 != 0 && b->at_hi > b->at_lo && b->at_lo <= room)
        mid = b->lo + (int64_t)((double)(b->hi - b->lo) *
                                ((double)(room - b->at_lo) / (double)(b->at_hi - b->at_lo)));
    return mid <= b->lo ? b->lo + 1 : mid >= b->hi ? b->hi - 1 : mid;
}

/* Take the guesses of all loops at once, then look where each one got. */
static fth_status take_guesses(fth_plan *p, int depth, uint64_t room, bounds *b, fth_err *err)
{
    uint64_t bytes;
    for (int64_t i = 0; i < p->n_loops; i++)
        if (p->loop[i].depth == depth) set_blocks(&p->loop[i], b[i].guess);
    FTH_TRY(fth__plan_measure(p, &bytes, err));
    for (int64_t i = 0; i < p->n_loops; i++) {
        if (p->loop[i].depth != depth || b[i].guess == b[i].lo) continue;
        bytes = alive_in(p, &p->loop[i]);
        if (bytes <= room)
            b[i].lo = b[i].guess, b[i].at_lo = bytes;
        else
            b[i].hi = b[i].guess, b[i].at_hi = bytes;
        b[i].guess = b[i].lo;
        FTH_ASSERT(b[i].lo >= 1 && b[i].lo < b[i].hi);
    }
    return FTH_OK;
}

static fth_status search_depth(fth_plan *p, int depth, uint64_t room, bounds *b, fth_err *err)
{
    for (int64_t i = 0; i < p->n_loops; i++) {
        const int64_t most = most_blocks(p, &p->loop[i]);
        if (p->loop[i].depth != depth) continue;
        b[i] = (bounds){.lo = 1, .hi = most + 1, .guess = most};
        b[i].at_lo = alive_in(p, &p->loop[i]);
    }
    FTH_TRY(take_guesses(p, depth, room, b, err));
    bool open = true;
    for (int round = 1; open; round++) {
        open = false;
        for (int64_t i = 0; i < p->n_loops; i++) {
            if (p->loop[i].depth != depth || b[i].lo + 1 >= b[i].hi) continue;
            b[i].guess = guess(&b[i], room, round);
            open = true;
        }
        if (open) FTH_TRY(take_guesses(p, depth, room, b, err));
    }
    for (int64_t i = 0; i < p->n_loops; i++) {
        if (p->loop[i].depth != depth) continue;
        const int64_t blocks = blocks_of(&p->loop[i]);
        const int64_t chunks = fth__ceil_div_i64(blocks, b[i].lo);
        set_blocks(&p->loop[i], fth__ceil_div_i64(blocks, chunks)); /* evened out */
    }
    return FTH_OK;
}

fth_status fth__plan_largest_chunks(fth_plan *p, int depth, uint64_t room, fth_err *err)
{
    bounds *b;
    FTH_TRY(fth__heap_take(p->mem, p->n_loops, sizeof *b, (void **)&b, err));
    const fth_status s = search_depth(p, depth, room, b, err);
    fth__heap_free(p->mem, b);
    return s;
}
