/* kmeans_rows.c - k-means of rows in two steps: groups, and codes within each group.
 *
 * Distances are found to sixteen codes at once, whose numbers lie side by side.
 */
#include "kmeans.h"

#include <fathom/ops.h>

#include <math.h>
#include <string.h>

/* Of random numbers; codes compared at once; rows that groups are found from, which bounds the
 * time. */
enum { STREAM = 7, SIDE = 16, SAMPLE = 1 << 16 };

/* Rows by number: those of a group. */
typedef struct rows {
    const float *at;
    const uint32_t *number; /* NULL: all */
    int64_t n;
    int dims;
} rows;

typedef struct work {
    int rounds;
    float *side;       /* codes, sixteen side by side: [block dims 16] */
    double *sum;       /* [k dims] */
    int64_t *count;    /* [k] */
    uint16_t *nearest; /* [n] */
} work;

static const float *row_of(const rows *r, int64_t i)
{
    return r->at + (r->number ? (int64_t)r->number[i] : i) * r->dims;
}

static void lay_side_by_side(const float *code, int64_t k, int dims, float *side)
{
    const int64_t blocks = (k + SIDE - 1) / SIDE;
    for (int64_t b = 0; b < blocks; b++)
        for (int d = 0; d < dims; d++)
            for (int j = 0; j < SIDE; j++) {
                const int64_t e = b * SIDE + j < k ? b * SIDE + j : k - 1;
                side[(b * dims + d) * SIDE + j] = code[e * dims + d];
            }
}

/* The nearest code, the first of several. */
static uint16_t find_nearest(const float *x, const float *side, int64_t k, int dims)
{
    float best = INFINITY;
    int64_t at = 0;
    for (int64_t b = 0; b < (k + SIDE - 1) / SIDE; b++) {
        float square[SIDE] = {0};
        for (int d = 0; d < dims; d++)
            for (int j = 0; j < SIDE; j++) {
                const float off = x[d] - side[(b * dims + d) * SIDE + j];
                square[j] += off * off;
            }
        for (int j = 0; j < SIDE && b * SIDE + j < k; j++)
            if (square[j] < best) {
                best = square[j];
                at = b * SIDE + j;
            }
    }
    return (uint16_t)at;
}

static void assign(const rows *r, const float *code, int64_t k, work *w)
{
    lay_side_by_side(code, k, r->dims, w->side);
    for (int64_t i = 0; i < r->n; i++)
        w->nearest[i] = find_nearest(row_of(r, i), w->side, k, r->dims);
}

/* Codes to the means of their rows; one without rows stays. */
static void move(const rows *r, float *code, int64_t k, work *w)
{
    memset(w->sum, 0, (size_t)(k * r->dims) * sizeof *w->sum);
    memset(w->count, 0, (size_t)k * sizeof *w->count);
    for (int64_t i = 0; i < r->n; i++) {
        const float *x = row_of(r, i);
        double *sum = w->sum + (int64_t)w->nearest[i] * r->dims;
        w->count[w->nearest[i]]++;
        for (int d = 0; d < r->dims; d++) sum[d] += (double)x[d];
    }
    for (int64_t e = 0; e < k; e++)
        for (int d = 0; d < r->dims && w->count[e] > 0; d++)
            code[e * r->dims + d] = (float)(w->sum[e * r->dims + d] / (double)w->count[e]);
}

/* Code e starts at a row of the e-th part of them: all are different rows. */
static void start(const rows *r, float *code, int64_t k, int64_t group)
{
    for (int64_t e = 0; e < k; e++) {
        const int64_t low = e * r->n / k, high = (e + 1) * r->n / k;
        int64_t i =
            low + (int64_t)(fth_random_uniform_at(0, group, STREAM, e) * (double)(high - low));
        if (i >= high) i = high > low ? high - 1 : low;
        memcpy(code + e * r->dims, row_of(r, i), (size_t)r->dims * sizeof *code);
    }
}

/* w->nearest says at the end which code each row has. */
static void lloyd(const rows *r, float *code, int64_t k, int64_t group, work *w)
{
    start(r, code, k, group);
    for (int round = 0; round < w->rounds; round++) {
        assign(r, code, k, w);
        move(r, code, k, w);
    }
    assign(r, code, k, w);
}

/* Rows by group, each group's in their order; first[g] to first[g + 1]. */
static void gather(const uint16_t *group, int64_t n, int64_t groups, int64_t *first,
                   uint32_t *number)
{
    memset(first, 0, (size_t)(groups + 1) * sizeof *first);
    for (int64_t i = 0; i < n; i++) first[group[i] + 1]++;
    for (int64_t g = 0; g < groups; g++) first[g + 1] += first[g];
    for (int64_t i = 0; i < n; i++) number[first[group[i]]++] = (uint32_t)i;
    for (int64_t g = groups; g > 0; g--) first[g] = first[g - 1];
    first[0] = 0;
}

/* Codes of a group: its share of those that are left, by its share of the rows that are left. */
static int64_t share(int64_t rows_here, int64_t rows_left, int64_t codes_left)
{
    const int64_t k =
        rows_left > 0 ? (int64_t)((double)codes_left * (double)rows_here / (double)rows_left + 0.5)
                      : 0;
    const int64_t most = rows_here < codes_left ? rows_here : codes_left;
    return k < 1 ? (most < 1 ? 0 : 1) : k < most ? k : most;
}

static void code_groups(const rows *all, int64_t groups, const int64_t *first, uint32_t *number,
                        int64_t k, float *centroid, uint16_t *label, work *w)
{
    int64_t used = 0;
    for (int64_t g = 0; g < groups; g++) {
        const rows here = {all->at, number + first[g], first[g + 1] - first[g], all->dims};
        const int64_t rest = groups - 1 - g; /* each may want one */
        int64_t codes = share(here.n, all->n - first[g], k - used);
        if (codes > 1 && k - used - codes < rest) codes = k - used - rest > 1 ? k - used - rest : 1;
        if (here.n == 0 || codes == 0) continue;
        lloyd(&here, centroid + used * all->dims, codes, 1 + g, w);
        for (int64_t i = 0; i < here.n; i++)
            label[here.number[i]] = (uint16_t)(used + w->nearest[i]);
        used += codes;
    }
    for (; used < k; used++) /* no row has these */
        memset(centroid + used * all->dims, 0, (size_t)all->dims * sizeof *centroid);
}

static void two_steps(const rows *all, int64_t k, int64_t groups, float *centroid, uint16_t *label,
                      work *w, int64_t *first, uint32_t *number)
{
    const int64_t step = (all->n + SAMPLE - 1) / SAMPLE, sample = (all->n + step - 1) / step;
    for (int64_t i = 0; i < sample; i++) number[i] = (uint32_t)(i * step);
    const rows some = {all->at, number, sample, all->dims};
    lloyd(&some, centroid, groups, 0, w); /* centroid holds those of groups for now */
    assign(all, centroid, groups, w);
    gather(w->nearest, all->n, groups, first, number);
    code_groups(all, groups, first, number, k, centroid, label, w);
}

fth_status gs_kmeans_rows(fth_mem *mem, const float *row, int64_t n, int dims, int64_t k,
                          int rounds, float *centroid, uint16_t *label, fth_err *err)
{
    const rows all = {row, NULL, n, dims};
    if (k >= n) {
        memcpy(centroid, row, (size_t)(n * dims) * sizeof *row);
        for (int64_t i = 0; i < n; i++) label[i] = (uint16_t)i;
        return FTH_OK;
    }
    const int64_t groups = (int64_t)ceil(sqrt((double)k));
    const uint64_t side = (uint64_t)(k + SIDE) * (uint64_t)dims * sizeof(float),
                   sum = (uint64_t)(k * dims) * sizeof(double), count = (uint64_t)k * 8,
                   first = (uint64_t)(groups + 1) * 8, number = (uint64_t)n * 4;
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sum + count + first + side + number + (uint64_t)n * 2,
                         "k-means", &block, err));
    char *at = block;
    work w = {
        .rounds = rounds, .sum = (double *)(void *)at, .count = (int64_t *)(void *)(at + sum)};
    int64_t *firsts = (int64_t *)(void *)(at + sum + count);
    w.side = (float *)(void *)(at + sum + count + first);
    uint32_t *numbers = (uint32_t *)(void *)(at + sum + count + first + side);
    w.nearest = (uint16_t *)(void *)(at + sum + count + first + side + number);
    two_steps(&all, k, groups, centroid, label, &w, firsts, numbers);
    (void)fth_mem_release(mem, block, NULL);
    return FTH_OK;
}
