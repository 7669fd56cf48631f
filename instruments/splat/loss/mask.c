/* mask.c - see mask.h. */
#include "mask.h"

typedef struct bench {
    gs_mask *m;
    uint8_t *along;  /* [i j]: the window is kept along the row */
    int64_t *counts; /* of each row, kept and averaged */
} bench;

static uint64_t up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

uint64_t gs_mask_scratch(int64_t height, int64_t width)
{
    return up((uint64_t)(height * width)) + up(2 * (uint64_t)height * sizeof(int64_t));
}

static void along_row(void *arg, int64_t i, int worker)
{
    const bench *b = arg;
    const gs_mask *m = b->m;
    const int64_t n = m->width;
    const uint8_t *mask = m->mask + i * m->mask_i;
    int64_t kept = 0, gap = -1; /* last pixel that is left out */
    (void)worker;
    for (int64_t j = 0; j < n + GS_MASK_HALF; j++) {
        if (j < n) {
            const bool keep = mask[j * m->mask_j] >= GS_MASK_LEAST;
            m->flags[i * n + j] = keep ? GS_KEPT : 0;
            kept += keep;
            if (!keep) gap = j;
        }
        const int64_t at = j - GS_MASK_HALF;
        if (at >= 0) b->along[i * n + at] = gap < 0 || gap < at - GS_MASK_HALF;
    }
    b->counts[2 * i] = kept;
}

static void across_row(void *arg, int64_t i, int worker)
{
    const bench *b = arg;
    const gs_mask *m = b->m;
    const int64_t n = m->width;
    int64_t averaged = 0;
    (void)worker;
    for (int64_t j = m->border; j < n - m->border; j++) {
        bool whole = i >= m->border && i < m->height - m->border;
        for (int64_t k = i - GS_MASK_HALF; whole && k <= i + GS_MASK_HALF; k++)
            whole = k < 0 || k >= m->height || b->along[k * n + j];
        if (whole) m->flags[i * n + j] |= GS_AVERAGED;
        averaged += whole;
    }
    b->counts[2 * i + 1] = averaged;
}

void gs_mask_run(gs_mask *m, fth_team *team)
{
    bench b = {.m = m, .along = m->scratch};
    b.counts = (int64_t *)(void *)(b.along + up((uint64_t)(m->height * m->width)));
    fth_team_run(team, m->height, along_row, &b);
    fth_team_run(team, m->height, across_row, &b);
    m->kept = m->averaged = 0;
    for (int64_t i = 0; i < m->height; i++) {
        m->kept += b.counts[2 * i];
        m->averaged += b.counts[2 * i + 1];
    }
}
