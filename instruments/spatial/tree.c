/* tree.c - places halved again and again: a balanced tree of boxes.
 *
 * A grid would do for places spread evenly; halving at the median costs the same for clusters,
 * lines and doubles, since leaves hold equal numbers whatever the density.
 */
#include "tree.h"

#include <string.h>

enum { LEAF = 12 }; /* most places of a leaf */

static int depth_for(int64_t n)
{
    int depth = 0;
    while (((n - 1) >> depth) + 1 > LEAF) depth++;
    return depth;
}

uint64_t sp_tree_bytes(int64_t n)
{
    return (sizeof(sp_tree_node) << (depth_for(n) + 1)) + 2 * sizeof(float) * (uint64_t)n + 128;
}

static void swap(float (*v)[2], int64_t a, int64_t b)
{
    float keep[2];
    memcpy(keep, v[a], sizeof keep);
    memcpy(v[a], v[b], sizeof keep);
    memcpy(v[b], keep, sizeof keep);
}

/* Of the first, the middle and the last, the one between the others. */
static float pivot(float (*v)[2], int64_t lo, int64_t hi, int side)
{
    const float a = v[lo][side], b = v[lo + (hi - lo) / 2][side], c = v[hi - 1][side];
    if (a < b) return b < c ? b : a < c ? c : a;
    return a < c ? a : b < c ? c : b;
}

/* Rearrange [lo, hi) so that none before `middle` is above any from there on. Both scans stop at
 * equal ones, so doubles cost no more than others. */
static void halve(float (*v)[2], int64_t lo, int64_t hi, int64_t middle, int side)
{
    while (hi - lo > 1) {
        const float p = pivot(v, lo, hi, side);
        int64_t i = lo, j = hi - 1;
        while (i <= j) {
            while (v[i][side] < p) i++;
            while (v[j][side] > p) j--;
            if (i > j) break;
            swap(v, i++, j--);
        }
        if (middle <= j)
            hi = j + 1;
        else if (middle >= i)
            lo = i;
        else
            return;
    }
}

static void enclose(sp_tree_node *node, const float (*v)[2])
{
    memcpy(node->lo, v[node->from], sizeof node->lo);
    memcpy(node->hi, v[node->from], sizeof node->hi);
    for (int64_t i = node->from; i < node->end; i++)
        for (int d = 0; d < 2; d++) {
            if (v[i][d] < node->lo[d]) node->lo[d] = v[i][d];
            if (v[i][d] > node->hi[d]) node->hi[d] = v[i][d];
            node->sum[d] += (double)v[i][d];
        }
}

static void grow(sp_tree *t)
{
    t->node[0] = (sp_tree_node){.end = (int32_t)t->n};
    for (int64_t k = 0; k < t->nodes; k++) {
        sp_tree_node *node = &t->node[k];
        enclose(node, (const float(*)[2])t->at);
        if (k >= t->first_leaf) continue;
        const int side = node->hi[1] - node->lo[1] > node->hi[0] - node->lo[0];
        const int32_t middle = node->from + (node->end - node->from) / 2;
        halve(t->at, node->from, node->end, middle, side);
        t->node[2 * k + 1] = (sp_tree_node){.from = node->from, .end = middle};
        t->node[2 * k + 2] = (sp_tree_node){.from = middle, .end = node->end};
    }
}

fth_status sp_tree_create(sp_tree *t, fth_mem *mem, const float *xy, int64_t n, fth_err *err)
{
    *t = (sp_tree){.mem = mem, .n = n, .depth = depth_for(n)};
    if (n < 1 || n >= INT32_MAX)
        return FTH_FAIL(err, FTH_E_USAGE, "%lld places: expected 1 to 2^31 - 2", (long long)n);
    t->nodes = ((int64_t)2 << t->depth) - 1;
    t->first_leaf = ((int64_t)1 << t->depth) - 1;
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *t->at * (uint64_t)n, "places of the tree",
                                (void **)&t->at, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, sizeof *t->node * (uint64_t)t->nodes,
                         "boxes of the tree", (void **)&t->node, err);
    if (s != FTH_OK) {
        sp_tree_clear(t);
        return s;
    }
    memcpy(t->at, xy, sizeof *t->at * (size_t)n);
    grow(t);
    return FTH_OK;
}

void sp_tree_clear(sp_tree *t)
{
    if (t->mem) {
        fth_mem_release(t->mem, t->at, NULL);
        fth_mem_release(t->mem, t->node, NULL);
    }
    *t = (sp_tree){0};
}
