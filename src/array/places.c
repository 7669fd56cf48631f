/* places.c - places in the plane, halved again and again: a balanced tree of boxes. */
#include <fathom/places.h>

#include "base/assert.h"

#include <math.h>
#include <string.h>

enum { LEAF = 12 }; /* most places of a leaf, 6 at least: boxes take less than places; not tuned */

static int depth_for(int64_t n)
{
    int depth = 0;
    while (((n - 1) >> depth) + 1 > LEAF) depth++;
    return depth;
}

uint64_t fth_places_bytes(int64_t n)
{
    const uint64_t place = 2 * sizeof(double) + sizeof(int32_t);
    return (sizeof(fth_places_node) << (depth_for(n) + 1)) + place * (uint64_t)n + 192;
}

/* ---- the tree ---- */

static void swap(fth_places *p, int64_t a, int64_t b)
{
    double keep[2];
    memcpy(keep, p->at[a], sizeof keep);
    memcpy(p->at[a], p->at[b], sizeof keep);
    memcpy(p->at[b], keep, sizeof keep);
    const int32_t id = p->id[a];
    p->id[a] = p->id[b];
    p->id[b] = id;
}

/* Of the first, the middle and the last, the one between the others. */
static double pivot(double (*v)[2], int64_t lo, int64_t hi, int side)
{
    const double a = v[lo][side], b = v[lo + (hi - lo) / 2][side], c = v[hi - 1][side];
    if (a < b) return b < c ? b : a < c ? c : a;
    return a < c ? a : b < c ? c : b;
}

/* Rearrange [lo, hi) so that none before `middle` is above any from there on. Both scans stop at
 * equal ones, so doubles cost no more than others. */
static void halve(fth_places *p, int64_t lo, int64_t hi, int64_t middle, int side)
{
    while (hi - lo > 1) {
        FTH_ASSERT(lo <= middle && middle < hi);
        const double at = pivot(p->at, lo, hi, side);
        int64_t i = lo, j = hi - 1;
        while (i <= j) {
            while (p->at[i][side] < at) i++;
            while (p->at[j][side] > at) j--;
            if (i > j) break;
            swap(p, i++, j--);
        }
        if (middle <= j)
            hi = j + 1;
        else if (middle >= i)
            lo = i;
        else
            return;
    }
}

static void enclose(fth_places_node *node, double (*v)[2])
{
    memcpy(node->lo, v[node->from], sizeof node->lo);
    memcpy(node->hi, v[node->from], sizeof node->hi);
    for (int64_t i = node->from; i < node->end; i++)
        for (int d = 0; d < 2; d++) {
            if (v[i][d] < node->lo[d]) node->lo[d] = v[i][d];
            if (v[i][d] > node->hi[d]) node->hi[d] = v[i][d];
            node->sum[d] += v[i][d];
        }
}

static void grow(fth_places *p)
{
    p->node[0] = (fth_places_node){.end = (int32_t)p->n};
    for (int64_t k = 0; k < p->nodes; k++) {
        fth_places_node *node = &p->node[k];
        FTH_ASSERT(node->from < node->end && node->end <= p->n);
        FTH_ASSERT(k < p->first_leaf || node->end - node->from <= LEAF);
        enclose(node, p->at);
        if (k >= p->first_leaf) continue;
        const int side = node->hi[1] - node->lo[1] > node->hi[0] - node->lo[0];
        const int32_t middle = node->from + (node->end - node->from) / 2;
        halve(p, node->from, node->end, middle, side);
        p->node[2 * k + 1] = (fth_places_node){.from = node->from, .end = middle};
        p->node[2 * k + 2] = (fth_places_node){.from = middle, .end = node->end};
    }
}

static double number(fth_dtype dtype, const void *v, int64_t i)
{
    return dtype == FTH_F32 ? (double)((const float *)v)[i] : ((const double *)v)[i];
}

fth_status fth_places_create(fth_places *out, fth_mem *mem, fth_dtype dtype, const void *x,
                             const void *y, int64_t step, int64_t n, fth_err *err)
{
    *out = (fth_places){.mem = mem, .n = n};
    if (n < 1 || n >= INT32_MAX || (dtype != FTH_F32 && dtype != FTH_F64))
        return FTH_FAIL(err, FTH_E_USAGE,
                        "a tree of %lld places of %s: expected 1 to 2^31 - 2 of f32 or f64",
                        (long long)n, fth_dtype_name(dtype));
    out->depth = depth_for(n);
    out->nodes = ((int64_t)2 << out->depth) - 1;
    out->first_leaf = ((int64_t)1 << out->depth) - 1;
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *out->at * (uint64_t)n,
                                "places of the tree", (void **)&out->at, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *out->id * (uint64_t)n, "numbers of the tree",
                         (void **)&out->id, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *out->node * (uint64_t)out->nodes,
                         "boxes of the tree", (void **)&out->node, err);
    if (s != FTH_OK) {
        fth_places_clear(out);
        return s;
    }
    for (int64_t i = 0; i < n; i++) {
        out->at[i][0] = number(dtype, x, i * step);
        out->at[i][1] = number(dtype, y, i * step);
        out->id[i] = (int32_t)i;
    }
    grow(out);
    return FTH_OK;
}

void fth_places_clear(fth_places *p)
{
    if (p->mem) {
        (void)fth_mem_release(p->mem, p->at, NULL);
        (void)fth_mem_release(p->mem, p->id, NULL);
        (void)fth_mem_release(p->mem, p->node, NULL);
    }
    *p = (fth_places){0};
}

/* ---- searching ---- */

typedef struct search {
    const fth_places *p;
    double at[2];
    int64_t k, found;
    int32_t *out; /* sorted by (distance, number) */
    double *d2;
} search;

static void offer(search *s, int64_t i)
{
    const double dx = s->p->at[i][0] - s->at[0], dy = s->p->at[i][1] - s->at[1],
                 d = dx * dx + dy * dy;
    const int32_t id = s->p->id[i];
    int64_t at = s->found;
    while (at > 0 && (d < s->d2[at - 1] || (d == s->d2[at - 1] && id < s->out[at - 1]))) at--;
    if (at >= s->k) return;
    if (s->found < s->k) s->found++;
    for (int64_t j = s->found - 1; j > at; j--) {
        s->d2[j] = s->d2[j - 1];
        s->out[j] = s->out[j - 1];
    }
    FTH_ASSERT(at < s->found && s->found <= s->k);
    s->d2[at] = d;
    s->out[at] = id;
}

/* Squared distance to a box, rounded as those to its places are: never above any of them. */
static double to_box(const search *s, const fth_places_node *b)
{
    double d2 = 0;
    for (int d = 0; d < 2; d++) {
        const double near = fmin(fmax(s->at[d], b->lo[d]), b->hi[d]) - s->at[d];
        d2 += near * near;
    }
    return d2;
}

static void walk(search *s, int64_t k)
{
    const fth_places_node *b = &s->p->node[k];
    if (k >= s->p->first_leaf) {
        for (int64_t i = b->from; i < b->end; i++) offer(s, i);
        return;
    }
    const double d[2] = {to_box(s, b + k + 1), to_box(s, b + k + 2)};
    const int first = d[1] < d[0];
    for (int i = 0; i < 2; i++) {
        const int child = i ? !first : first;
        /* an equal distance may still have a lower number */
        if (s->found < s->k || d[child] <= s->d2[s->k - 1]) walk(s, 2 * k + 1 + child);
    }
}

void fth_places_nearest(const fth_places *p, const double at[2], int64_t k, int32_t *out,
                        double *d2)
{
    search s = {.p = p, .at = {at[0], at[1]}, .k = k, .out = out, .d2 = d2};
    walk(&s, 0);
}
