/* draw.c - see draw.h. */
#include "draw.h"

#include "activate.h"

#include <fathom/ops.h>

#include <inttypes.h>

static int64_t blocks_of(int64_t n)
{
    return (n + GS_BLOCK - 1) / GS_BLOCK;
}

static double weight(const gs_urn *u, int64_t row)
{
    if (u->skip && gs_marks_has(u->skip, row)) return 0;
    return gs_sigmoid((double)u->opacity[row]);
}

static void add_blocks(void *arg, int64_t from, int64_t to)
{
    const gs_urn *u = arg;
    for (int64_t first = from; first < to; first += GS_BLOCK) {
        const int64_t end = first + GS_BLOCK < to ? first + GS_BLOCK : to;
        double sum = 0;
        for (int64_t i = first; i < end; i++) sum += weight(u, i);
        u->after[first / GS_BLOCK] = sum;
    }
}

/* The first block that ends above the value; the last one, should rounding leave none. */
static int64_t find_block(const gs_urn *u, double value)
{
    int64_t low = 0, high = blocks_of(u->n) - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (u->after[middle] > value)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t find_row(const gs_urn *u, double value)
{
    const int64_t b = find_block(u, value), first = b * GS_BLOCK;
    const int64_t end = first + GS_BLOCK < u->n ? first + GS_BLOCK : u->n;
    const double before = b > 0 ? u->after[b - 1] : 0;
    double sum = 0;
    int64_t last = -1; /* that can be drawn */
    for (int64_t i = first; i < end; i++) {
        const double w = weight(u, i);
        sum += w;
        if (w > 0) last = i;
        if (before + sum > value) return i;
    }
    return last >= 0 ? last : first;
}

static void draw_some(void *arg, int64_t from, int64_t to)
{
    const gs_urn *u = arg;
    for (int64_t j = from; j < to; j++)
        u->drawn[j] = (uint32_t)find_row(
            u, u->total * fth_random_uniform_at(u->seed, u->iteration, u->stream, j));
}

static uint64_t size_of(int64_t n, int64_t draws, int i)
{
    const uint64_t size[3] = {(uint64_t)blocks_of(n) * sizeof(double),
                              (uint64_t)draws * sizeof(uint32_t), (uint64_t)n};
    return size[i];
}

uint64_t gs_urn_bytes(const fth_mem *mem, int64_t n, int64_t draws)
{
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++)
        sum += fth_mem_range_cost(mem, size_of(n, draws, i), size_of(n, draws, i));
    return sum;
}

static fth_status take(gs_urn *u, fth_mem *mem, fth_err *err)
{
    static const char *const label[3] = {"sums of opacities", "drawn rows", "times drawn"};
    for (int i = 0; i < 3; i++) {
        const uint64_t bytes = size_of(u->n, u->draws, i);
        FTH_TRY(fth_mem_reserve(mem, bytes, label[i], &u->block[i], err));
        FTH_TRY(fth_mem_resize(mem, u->block[i], bytes, err)); /* of 0 */
    }
    u->after = u->block[0];
    u->drawn = u->block[1];
    u->times = u->block[2];
    return FTH_OK;
}

static void loop(const gs_urn *u, const char *name, int64_t n,
                 void (*fn)(void *arg, int64_t from, int64_t to))
{
    void *arg = (void *)(uintptr_t)u;
    if (u->context)
        gs_rows_loop(u->context, name, n, fn, arg);
    else
        fn(arg, 0, n);
}

void gs_urn_draw(gs_urn *urn)
{
    loop(urn, "sum opacities", urn->n, add_blocks);
    for (int64_t b = 0; b < blocks_of(urn->n); b++) {
        urn->total += urn->after[b];
        urn->after[b] = urn->total;
    }
    loop(urn, "draw", urn->draws, draw_some);
    for (int64_t j = 0; j < urn->draws; j++)
        if (urn->times[urn->drawn[j]] < UINT8_MAX) urn->times[urn->drawn[j]]++;
}

fth_status gs_urn_create(gs_urn *urn, const gs_rows *rows, const gs_marks *skip, int64_t draws,
                         int64_t seed, int64_t iteration, int stream, fth_err *err)
{
    gs_rows_memory m = {0};
    if (rows->n > UINT32_MAX)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "draws are among at most 2^32 rows, and there are %" PRId64, rows->n);
    FTH_TRY(gs_rows_open(rows, &m, err));
    *urn = (gs_urn){.context = rows->context,
                    .opacity = m.at[GS_VALUE][GS_OPACITY],
                    .skip = skip,
                    .n = rows->n,
                    .draws = draws,
                    .seed = seed,
                    .iteration = iteration,
                    .stream = stream};
    const fth_status s = take(urn, fth_context_mem(rows->context), err);
    if (s != FTH_OK) {
        gs_urn_free(urn);
        return s;
    }
    gs_urn_draw(urn);
    return FTH_OK;
}

void gs_urn_free(gs_urn *urn)
{
    for (int i = 2; i >= 0; i--)
        if (urn->block[i])
            (void)fth_mem_release(fth_context_mem(urn->context), urn->block[i], NULL);
    *urn = (gs_urn){0};
}
