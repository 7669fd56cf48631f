/* cuts.c - where a trial cuts the axes of its operation. */
#include "trial/pieces.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum { EMPTY = 3 };

static fth__check_cuts uncut(int64_t size)
{
    return (fth__check_cuts){.n = 1, .at = {0, size}};
}

/* Ends of at most `pieces` pieces, on the grid. */
static fth__check_cuts cut(fth__trial *t, int64_t size, int64_t grid, int pieces)
{
    fth__check_cuts c = uncut(size);
    const int64_t want = fth__check_draw(&t->seed, 2, pieces);
    for (int64_t left = want; left > 1 && c.n < FTH__CUTS - 2 * EMPTY; left--) {
        const int64_t from = c.at[c.n - 1], rest = (size - from + grid - 1) / grid;
        const int64_t at = from + fth__check_draw(&t->seed, 1, rest * 2 / left) * grid;
        if (at >= size) break;
        c.at[c.n++] = at;
        c.at[c.n] = size;
    }
    return c;
}

/* Pieces without elements, as where an axis begins or ends inside what is streamed: first, last or
 * in between. */
static void add_empty(fth__trial *t, fth__check_cuts *c)
{
    const int64_t more = fth__check_draw(&t->seed, 0, EMPTY);
    for (int64_t k = 0; k < more; k++) {
        const int64_t at =
            fth__check_draw(&t->seed, 0, 2) == 0 ? 0 : fth__check_draw(&t->seed, 0, c->n);
        memmove(&c->at[at + 1], &c->at[at], (size_t)(c->n + 1 - at) * sizeof c->at[0]);
        c->n++;
    }
}

static int64_t grid_of(const fth_node *node, int in, int dim)
{
    const int64_t g = node->op->grid ? node->op->grid(node, in, dim) : 1;
    return g > 0 ? g : 1;
}

/* May dimension d of out[0] be made in pieces? */
static bool may_cut(const fth_node *node, int d)
{
    if (node->op->flags & FTH_OP_FREE_AXES) return true;
    for (int in = 0; in < node->n_in; in++)
        for (int i = 0; i < node->in[in].n_axes; i++)
            if (fth__check_relation(node, in, i).out_dim == d) return true;
    return false;
}

/* Every output has dimension d of out[0]: no piece writes what another has written. */
static bool all_have(const fth_node *node, int d)
{
    bool all = true;
    for (int k = 0; k < node->n_out; k++) all = all && fth__out_dim(node, k, d) >= 0;
    return all;
}

/* The j-th axis of the operands that is accumulated, where it is first; false: there are fewer. */
static bool summed(const fth_node *node, int j, int *in, int *dim)
{
    fth_axis_id seen[FTH_MAX_IN * FTH_MAX_AXES];
    int n = 0;
    for (int k = 0; k < node->n_in; k++)
        for (int i = 0; i < node->in[k].n_axes; i++) {
            if (fth__check_relation(node, k, i).along != FTH_ACCUMULATE) continue;
            bool again = false;
            for (int m = 0; m < n; m++) again |= seen[m] == node->in[k].axis[i];
            if (again) continue;
            if (n == j) return *in = k, *dim = i, true;
            seen[n++] = node->in[k].axis[i];
        }
    return false;
}

int fth__trial_axes(const fth_node *node)
{
    int n = node->out[0].n_axes, in, dim;
    for (int j = 0; summed(node, j, &in, &dim); j++) n++;
    return n;
}

void fth__trial_whole(fth__trial *t)
{
    const fth_node *node = t->node;
    t->carry = t->sum_axis = -1;
    t->sum = uncut(0);
    for (int in = 0; in < node->n_in; in++)
        for (int i = 0; i < node->in[in].n_axes; i++) {
            const fth_relation r = fth__check_relation(node, in, i);
            if (r.along == FTH_CARRY) t->carry = r.out_dim;
        }
    for (int d = 0; d < node->out[0].n_axes; d++) t->axis[d] = uncut(node->out[0].size[d]);
}

/* Cut the j-th accumulated axis. */
static void cut_sum(fth__trial *t, int j, int pieces, bool empty)
{
    int in, dim;
    if (t->carry >= 0 || !summed(t->node, j, &in, &dim)) return;
    const int64_t grid = grid_of(t->node, in, dim), size = t->node->in[in].size[dim];
    t->sum_axis = t->node->in[in].axis[dim];
    t->sum = cut(t, size, grid, pieces);
    if (empty && size > grid) add_empty(t, &t->sum);
}

void fth__trial_cut(fth__trial *t, int only, int pieces, bool empty)
{
    const fth_desc *d = &t->node->out[0];
    int in, dim, sums = 0;
    fth__trial_whole(t);
    while (summed(t->node, sums, &in, &dim)) sums++;
    for (int i = 0; i < d->n_axes; i++) {
        if ((only >= 0 && only != i) || !may_cut(t->node, i)) continue;
        const int64_t grid = grid_of(t->node, -1, i);
        t->axis[i] = cut(t, d->size[i], grid, pieces);
        const bool fits = i == t->carry ? d->size[i] > grid : t->thorough && all_have(t->node, i);
        if (empty && fits) add_empty(t, &t->axis[i]);
    }
    if (only >= d->n_axes) cut_sum(t, only - d->n_axes, pieces, empty);
    if (only < 0 && sums > 0)
        cut_sum(t, (int)fth__check_draw(&t->seed, 0, sums - 1), pieces, empty);
}

bool fth__trial_is_cut(const fth__trial *t)
{
    bool any = t->sum.n > 1;
    for (int d = 0; d < t->node->out[0].n_axes; d++) any |= t->axis[d].n > 1;
    return any;
}

static int put(const fth__trial *t, fth_axis_id axis, const fth__check_cuts *c, char *text,
               size_t bytes, int n)
{
    if (c->n < 2) return n;
    n += snprintf(text + n, bytes - (size_t)n, "%saxis '%s' at", n ? "; " : "",
                  fth_axis_name(t->node->graph, axis));
    for (int i = 1; i < c->n && (size_t)n + 40 < bytes; i++)
        n += snprintf(text + n, bytes - (size_t)n, "%s%lld", i > 1 ? ", " : " ",
                      (long long)c->at[i]);
    return n;
}

const char *fth__trial_places(const fth__trial *t, char *text, size_t bytes)
{
    const fth_desc *d = &t->node->out[0];
    int n = 0;
    text[0] = '\0';
    for (int i = 0; i < d->n_axes && (size_t)n + 120 < bytes; i++)
        n = put(t, d->axis[i], &t->axis[i], text, bytes, n);
    if ((size_t)n + 120 < bytes) (void)put(t, t->sum_axis, &t->sum, text, bytes, n);
    return text;
}
